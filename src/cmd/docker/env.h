/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Variables for a box or a command: NAME=VALUE, each name once, the last one wins. Values are
 * secrets: they are in no message, only their names are.
 */
#include <stdbool.h>
#include <stddef.h>

struct error;

struct env {
    char **list; /* ends with NULL, or is NULL when there is none; owned */
    size_t n;
};

void env_done(struct env *e);
/* NAME=VALUE, or NAME alone: from our own environment, nothing if it is not there. */
int env_set(struct env *e, const char *text, struct error *err);
/* The same unless the name is there already. */
int env_default(struct env *e, const char *text, struct error *err);
/* The text of an --env-file: docker's rules, no quoting. `name` is for messages; text[len] is NUL.
 */
int env_parse(struct env *e, const char *name, char *text, size_t len, struct error *err);
int env_read_file(struct env *e, const char *path, struct error *err);
/* The value of a name, or NULL. */
const char *env_find(const struct env *e, const char *name);
