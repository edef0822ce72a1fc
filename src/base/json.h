/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A small strict reader of JSON (RFC 8259) for the records that our own programs keep, in programs
 * that must start fast and link nothing. Refused: duplicate keys, bad UTF-8, \u0000, raw control
 * characters, numbers that are not JSON's, anything after the value, more than LIMIT_JSON_DEPTH
 * levels or LIMIT_JSON_NODES values.
 *
 * The document owns its values; every function below takes NULL for "no such value" and passes it
 * on, so that a path of lookups needs one check, at its end.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct error;

enum json_type {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};

struct json {
    enum json_type type;
    const char *key;  /* in an object, else NULL */
    const char *text; /* strings decoded, numbers as written */
    uint32_t count;   /* members of an array or object */
    uint32_t self;    /* its own index, its container's, and that of what follows it */
    uint32_t parent;
    uint32_t end;
};

struct json_doc;

int json_parse(const char *text, size_t len, struct json_doc **ret, struct error *err);
void json_doc_free(struct json_doc *doc);
DEFINE_AUTOPTR(json_doc)

const struct json *json_root(const struct json_doc *doc);
const struct json *json_get(const struct json *object, const char *key);
/* Members of an array or object, in order. */
const struct json *json_first(const struct json *v);
const struct json *json_next(const struct json *v);
const char *json_key(const struct json *v);
/* NULL unless it is a string. */
const char *json_string(const struct json *v);
bool json_int(const struct json *v, int64_t *ret);
bool json_is_true(const struct json *v);
size_t json_count(const struct json *v);
