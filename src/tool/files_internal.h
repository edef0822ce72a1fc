/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What files*.c share: arguments that became paths and versions, and a result in the making. The
 * arguments were checked: they have the types that the schema says.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "files/files.h"

struct error;

/* A value that could not be made is noticed once, at the end. */
struct reply {
    json_t *object;
    bool failed;
};
static inline void reply_put(struct reply *r, const char *key, json_t *value)
{
    r->failed |= json_object_set_new(r->object, key, value) < 0;
}
static inline void reply_number(struct reply *r, const char *key, int64_t n)
{
    reply_put(r, key, json_integer(n));
}
void reply_base64(struct reply *r, const char *key, const void *data, size_t len);
void reply_version(struct reply *r, const struct files_id *id);

/* A path of the arguments as bytes; `otherwise` if there is none. Initialises `ret`. */
int arg_path(const json_t *a, const char *otherwise, struct buf *ret, struct error *err);
/* *ret_there says whether `expected` was given. */
int arg_expected(const json_t *a, struct files_id *ret, bool *ret_there, struct error *err);
static inline bool arg_is(const json_t *a, const char *key)
{
    return json_is_true(json_object_get(a, key));
}
static inline int64_t arg_number(const json_t *a, const char *key, int64_t otherwise)
{
    const json_t *v = json_object_get(a, key);

    return v ? json_integer_value(v) : otherwise;
}

/* The verbs. The reply is an empty object. */
int verb_read(const struct files_root *root, json_t *a, struct reply *ret, struct error *err);
int verb_write(const struct files_root *root, json_t *a, struct reply *ret, struct error *err);
int verb_edit(const struct files_root *root, json_t *a, struct reply *ret, struct error *err);
int verb_patch(const struct files_root *root, json_t *a, struct reply *ret, struct error *err);
int verb_ls(const struct files_root *root, json_t *a, struct reply *ret, struct error *err);
int verb_find(const struct files_root *root, json_t *a, struct reply *ret, struct error *err);
int verb_grep(const struct files_root *root, json_t *a, struct reply *ret, struct error *err);
