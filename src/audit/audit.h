/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The record of what ran: logs/audit.jsonl in the data folder, 0600, append-only.
 *
 * Each line is a JSON object whose last field is the SHA-256 of the previous line's hash followed
 * by this line without its hash field: a line that is changed, removed or put in breaks the chain
 * from there on (`clawden audit verify`). What a chain cannot show is a file cut at its end: copy
 * the last hash elsewhere if that matters. audit.log beside it has one line of tab-separated text
 * per event (C40).
 */
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct error;

/* A file of it, open from its first line on, for as long as it is the one of that name. */
struct audit_file {
    bool is_open;
    int fd;
    unsigned long long device, inode;
};

struct audit {
    int dir; /* the logs folder */
    struct audit_file lines, text;
};

int audit_open(struct audit *ret, struct error *err);
void audit_close(struct audit *a);

/*
 * Appends one event. `fields` is the inside of a JSON object ("\"a\":1,\"b\":2"); time, event and
 * hash are added. `target` and the caller's id go to audit.log too.
 */
int audit_append(struct audit *a, const char *event, const char *target, const struct buf *fields,
                 struct error *err);

struct audit_check {
    unsigned long lines;
    unsigned long bad_line; /* 0: the chain holds */
    const char *why;
};

/* Walks the whole file. */
int audit_verify(struct audit *a, struct audit_check *ret, struct error *err);
