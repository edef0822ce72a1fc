/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The verbs of clawden: each gets the words behind its name and returns the exit status. */
int cmd_approve(int argc, char **argv);
int cmd_audit(int argc, char **argv);
int cmd_docker(int argc, char **argv);
int cmd_gateway(int argc, char **argv);
int cmd_mcp(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_image(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_openclaw(int argc, char **argv);
int cmd_outside(int argc, char **argv);
int cmd_prune(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_image_build(int argc, char **argv);
int cmd_sandbox(int argc, char **argv);
int cmd_token(int argc, char **argv);
int cmd_why(int argc, char **argv);
int cmd_what_if(int argc, char **argv);
