/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A small strict reader of JSON (RFC 8259) for the records that our own programs keep, in programs
 * that must start fast and link nothing. Refused: duplicate keys, bad UTF-8, \u0000, raw control
 * characters, numbers that are not JSON's, anything after the value, more than LIMIT_JSON_DEPTH
 * levels or LIMIT_JSON_NODES values.
 *
 * Not named json: jansson, which reads what comes from outside, has those names.
 *
 * The document owns its values; every function below takes NULL for "no such value" and passes it
 * on, so that a path of lookups needs one check, at its end.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct error;

enum jtext_type {
    JTEXT_NULL,
    JTEXT_FALSE,
    JTEXT_TRUE,
    JTEXT_NUMBER,
    JTEXT_STRING,
    JTEXT_ARRAY,
    JTEXT_OBJECT
};

struct jtext {
    enum jtext_type type;
    const char *key;  /* in an object, else NULL */
    const char *text; /* strings decoded, numbers as written */
    uint32_t count;   /* members of an array or object */
    uint32_t self;    /* its own index, its container's, and that of what follows it */
    uint32_t parent;
    uint32_t end;
};

struct jtext_doc;

int jtext_parse(const char *text, size_t len, struct jtext_doc **ret, struct error *err);
void jtext_doc_free(struct jtext_doc *doc);
DEFINE_AUTOPTR(jtext_doc)

const struct jtext *jtext_root(const struct jtext_doc *doc);
const struct jtext *jtext_get(const struct jtext *object, const char *key);
/* Members of an array or object, in order. */
const struct jtext *jtext_first(const struct jtext *v);
const struct jtext *jtext_next(const struct jtext *v);
const char *jtext_key(const struct jtext *v);
/* NULL unless it is a string. */
const char *jtext_string(const struct jtext *v);
bool jtext_int(const struct jtext *v, int64_t *ret);
bool jtext_is_true(const struct jtext *v);
size_t jtext_count(const struct jtext *v);
