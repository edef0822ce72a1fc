/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The words of a docker command line, by its own rules: `--flag value`, `--flag=value`, letters
 * together (`-it`, `-itd`, `-uroot`), `--` ends the flags. `create`, `run` and `exec` end them at
 * the first other word; everywhere else flags and words may be mixed.
 *
 *     struct flags f = {.verb = "rm", .rows = rows, .n_rows = N, .argc = argc, .argv = argv};
 *     while ((r = flags_next(&f)) > 0) switch (f.flag->id) ...
 *     (then the other words are f.words, f.n_words of them)
 */
#include <stdbool.h>
#include <stddef.h>

struct flag {
    const char *name;
    char letter; /* or 0 */
    int id;
    const char *arg; /* what its value is called in the help; NULL: a switch */
    const char *help;
};

struct flags {
    const char *verb;  /* "create", "image ls" */
    const char *usage; /* what follows the verb and [OPTIONS] */
    const struct flag *rows;
    size_t n_rows;
    bool words_end_flags;
    int argc; /* words behind the verb */
    char **argv;

    const struct flag *flag; /* the one just read */
    const char *value;       /* "true" or "false" for a switch */
    bool on;                 /* a switch: its value */
    char **words;            /* the words that are no flags, NULL at the end */
    int n_words;
    int status; /* of flags_read, when it says no */

    int at;              /* private */
    const char *cluster; /* private: what is left of -itd */
    bool no_more;        /* private */
};

/*
 * 1: f->flag and f->value are the next; 0: no more; -1: a message was written, exit FLAGS_FAILED.
 * `--help` prints the help and gives -2: exit 0.
 */
int flags_next(struct flags *f);
/* Says in docker's words why a value is not one; -FLAGS_FAILED. */
int flags_bad(const struct flags *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * Gives every flag to fn (negative: it said why not; minus the exit status), then counts the words;
 * most < 0 is any number. False: leave with f->status.
 */
bool flags_read(struct flags *f, int least, int most, int (*fn)(void *arg, const struct flags *f),
                void *arg);
void flags_help(const struct flags *f);

enum { FLAGS_FAILED = 125 };
