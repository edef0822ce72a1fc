/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* box.json and state.json: what a box was created with, and what its last start left to know. */
#include "sandbox/sandbox.h"

struct buf;
struct jtext;

/* What the last start and the end after it wrote down. */
struct box_last {
    struct box_live live;
    int64_t started_usec, finished_usec;
    int exit_code;
    bool oom_killed;
    char problem[256];
    uint16_t published[LIMIT_PUBLISHED];
};

void record_write(const struct box_record *r, struct buf *out);
int record_read(const struct jtext *v, struct box_record **ret, struct error *err);
void last_write(const struct box_last *l, struct buf *out);
int last_read(const struct jtext *v, struct box_last *ret, struct error *err);

/* Lists of owned strings that end with NULL. */
char **strings_copy(char *const *list);
void strings_free(char **list);
