/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The strict word reader (C14): is this command line one simple command, and which words is it?
 * Only what every POSIX shell certainly splits into the same words is accepted, because the words
 * are then executed without a shell. Whatever it is not sure about it refuses, with a reason for
 * people. Pure.
 */
#include <stdbool.h>
#include <stddef.h>

#define WORDS_MAX 4096u /* words of one command, the program included */

struct words {
    char **argv; /* NULL-terminated; owned */
    size_t n;
};

/* 0, and the words; or negative and in *ret_why a constant sentence fragment for people ("';'
 * starts a second command"). Never both; on failure `ret` is empty. -EINVAL: no such command;
 * -E2BIG: over LIMIT_COMMAND_LINE or WORDS_MAX; -ENOMEM. */
int words_split(const char *line, size_t len, struct words *ret, const char **ret_why);
void words_done(struct words *w);

/* Each word in single quotes, one line of them: the words that are read from it are those that run.
 * To be freed; NULL: longer than LIMIT_ARG_BYTES. */
char *words_quote(char *const *argv);
