/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* JSON in tests: with ' for ", so that it can be read. */
#include <jansson.h>
#include <string.h>

#include "tests/test.h"

#define autojson __attribute__((cleanup(json_done))) json_t *
static inline void json_done(json_t **v)
{
    json_decref(*v);
}

/* NULL: it is no JSON. */
static inline json_t *json_try(const char *text)
{
    char *copy = strdup(text);
    json_t *v;

    assert_non_null(copy);
    for (char *p = copy; *p; p++)
        *p = (char)(*p == '\'' ? '"' : *p);
    v = json_loads(copy, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    free(copy);
    return v;
}

static inline json_t *json_of(const char *text)
{
    json_t *v = json_try(text);

    CHECK(v, "no JSON: %s", text);
    return v;
}
