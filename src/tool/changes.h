/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which files of a workspace have changed since a moment, for the receipt of a command.
 *
 * It is the tree that is asked, not the command: what others changed meanwhile is there too, and so
 * is what changed in the last tick of the kernel's clock (up to 10 ms) before the moment.
 * Removed files are not, but the folder they were in is (files_changed()).
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* By both clocks: files have the wall's, and somebody may set that back meanwhile. */
struct moment {
    int64_t wall_ns, steady_ns;
};
struct moment moment_now(void);

struct changes {
    json_t *files;       /* paths as the file tools spell them, sorted; a folder's ends in '/' */
    bool is_cut;         /* there may be more */
    bool is_worth_again; /* ... and a thorough look may find them */
};

/* A quick look is bounded so that it can be had while others wait, a thorough one is not. The
 * caller owns ret.files. */
struct changes changes_since(int workspace, const struct moment *m, bool thorough);
