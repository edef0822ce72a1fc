/* SPDX-License-Identifier: Apache-2.0 */
/* The main command of a box, with the caller's own streams. */
#pragma once

#include <stdbool.h>

struct box_record;

/* Starts the box, follows its main command to the end, and gives its status. `before` begins the
 * message when there is no such command. */
int run_attached(const struct box_record *r, bool interactive, const char *before,
                 bool *ret_started);
/* What --rm asks for; tells what goes wrong. */
void run_remove(const struct box_record *r);
