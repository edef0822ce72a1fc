/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the parts of the reader share: the state of one reading, and the words of its errors.
 *
 * toml_check_text() runs first; from then on the text is UTF-8, holds no control character but tab
 * and the two kinds of line end, and every CR is followed by its LF. Nothing below looks again.
 *
 * A function that fails returns a negative code, has filled p->err and set p->stop.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/place.h"

/* How a table or an array came to be, which decides what may still be added to it. */
enum made {
    MADE_AS_VALUE,   /* written whole, as { } or [ ]: nothing may be added */
    MADE_ON_THE_WAY, /* [a.b] made a: may still be defined, once, by header or dotted keys */
    MADE_BY_HEADER,  /* [a], or one element of [[a]] */
    MADE_BY_DOTS,    /* a.b = made a: more dotted keys may add to it, no header may define it */
    MADE_AS_LIST,    /* [[a]] made the array */
};

/* Open addressing over the addresses of values; what is not in it is MADE_AS_VALUE. */
struct made_table {
    struct made_entry *entries;
    size_t n, cap;
};

/* The key that was read last, as written and decoded. */
struct dotted_key {
    struct {
        size_t name; /* where it begins in names; NUL-terminated */
        const char *at, *end;
    } part[LIMIT_CONFIG_DEPTH];
    unsigned n;
    struct buf names;
};

struct toml_reader {
    const char *begin, *at, *end;
    const char *stop; /* where reading failed, or where toml_locate() found its key */
    struct error *err;

    json_t *root, *section; /* the section is the table that the last header opened */
    unsigned section_depth;
    size_t n_keys;
    struct made_table made;
    struct dotted_key key;
    struct buf text; /* the string or number that is being decoded */

    /* toml_locate(): what is left of its path, and the container in which that begins. */
    const char *const *path;
    const json_t *path_in;
    bool found;
};

/* Text that is safe in a message: bounded, in quotes, without control characters. */
struct shown {
    char text[96];
};

/* ---- scan.c: characters, errors, strings ---- */

int toml_check_text(struct toml_reader *p);
void toml_place(const char *text, const char *at, struct text_place *ret);

struct shown toml_show(const char *from, const char *to);
/* What stands at p->at: "end of line", "'word'", "U+FEFF". */
struct shown toml_found(const struct toml_reader *p);
int toml_fail(struct toml_reader *p, const char *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for a limit of ours. */
int toml_fail_limit(struct toml_reader *p, const char *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int toml_fail_memory(struct toml_reader *p);

bool toml_at(const struct toml_reader *p, char c);
bool toml_at_line_end(const struct toml_reader *p); /* or at the end of the text */
bool toml_is_bare(char c);
void toml_skip_blanks(struct toml_reader *p);
void toml_skip_comment(struct toml_reader *p);
/* Takes one line end, if there is one. */
bool toml_take_newline(struct toml_reader *p);

/* At a quote; append the decoded string to `out`. A key must be of one line. */
int toml_read_line_string(struct toml_reader *p, struct buf *out);
int toml_read_string(struct toml_reader *p, struct buf *out);

/* ---- scalar.c: booleans, numbers, date-times ---- */

int toml_read_scalar(struct toml_reader *p, json_t **ret);

/* ---- made.c ---- */

/* The record of a value, or NULL when it is MADE_AS_VALUE; valid until the next toml_made_add(). */
enum made *toml_made_find(const struct made_table *t, const json_t *value);
int toml_made_add(struct made_table *t, const json_t *value, enum made made);
void toml_made_done(struct made_table *t);
