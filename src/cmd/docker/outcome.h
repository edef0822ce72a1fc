/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How the end of a command becomes docker's messages and exit status. */
struct error;
struct run_result;

/* `before` is what stands in front of the reason: "OCI runtime exec failed: exec failed: " */
int outcome_status(const struct run_result *res, const char *before, const char *word,
                   const char *workdir);

/* `before` of a main command: what docker's engine and runtime put in front of each other. */
#define OUTCOME_CREATE                                                                        \
    "Error response from daemon: failed to create task for container: failed to create shim " \
    "task: OCI runtime create failed: "
/* A main command that could not be executed in the background; 0 if `err` is something else. */
int outcome_of_start(const struct error *err, const char *before, const char *word,
                     const char *workdir);
