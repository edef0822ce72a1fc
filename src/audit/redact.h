/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Keeps secrets out of what is written down. Pure; over-cautious on purpose. */
#include <stdbool.h>

struct buf;

/* Does a variable, option or header of this name usually hold a secret? (len bytes of name) */
bool redact_is_secret_name(const char *name, unsigned long len);

/*
 * Appends the JSON string of one word of a command line, with what looks like a secret replaced by
 * [redacted]. `before` is the word before it, or NULL: the value of `--token X` is a secret.
 */
void redact_word(struct buf *out, const char *before, const char *word);

/* "argv": the words of a command with their secrets taken out, cut at LIMIT_AUDIT_ARGV. */
void redact_argv(struct buf *b, char *const *argv);
/* "env": names only. */
void redact_env_names(struct buf *b, char *const *env);
