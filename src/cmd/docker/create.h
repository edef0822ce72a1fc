/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
struct request;

/* Reads the words, makes the box, says where it differs. Negative: leave with *ret_status. */
int create_box(struct request *q, int argc, char **argv, int *ret_status);
