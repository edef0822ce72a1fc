/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The values of a template, how they print, and the functions that make new ones. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct error;
struct jtext;

enum value_kind {
    VALUE_NONE, /* a key that a map does not have */
    VALUE_JSON, /* an array, an object, null, or a number that is not whole */
    VALUE_TEXT,
    VALUE_INT,
    VALUE_BOOL,
};

struct value {
    enum value_kind kind;
    const struct jtext *json;
    const char *text;
    long long number;
};

/* Texts that functions made; they live until the template is done. */
struct value_heap {
    struct value_text *first;
    size_t bytes;
};

void value_heap_done(struct value_heap *h);
/* Takes the buffer's content; NULL when it failed or there is too much of it. */
const char *value_heap_take(struct value_heap *h, struct buf *b);

struct value value_of(const struct jtext *v);
/* As Go prints it. */
void value_print(struct buf *out, const struct value *v);
void value_json(struct buf *out, const struct jtext *v);
bool value_is_true(const struct value *v);
/* Docker declares these as maps, the others as structs: a map may be asked for any key. */
bool value_is_map(const struct jtext *v);
/* Members in the order of their keys; to be freed. NULL when there are none. */
const struct jtext **value_sorted(const struct jtext *object);

/* NULL when there is no such function. */
struct value_function;
const struct value_function *value_function(const char *name, size_t len);
const char *value_function_name(const struct value_function *f);
/* Fills *ret, or err with what Go says behind "error calling NAME: ". */
int value_call(const struct value_function *f, struct value_heap *heap, const struct value *args,
               size_t n_args, struct value *ret, struct error *err);
