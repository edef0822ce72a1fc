/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A store in a folder of the test's own, and calls for it. */
#include "base/cleanup.h"
#include "store/store.h"
#include "tests/test.h"

static inline struct store *open_store(const struct temp *t, char **ret_note)
{
    struct store *s = NULL;
    struct error err;

    assert_int_equal(fchmod(t->fd, 0700), 0);
    CHECK_OK(store_open(t->fd, &s, ret_note, &err), err);
    return s;
}

/* Texts are borrowed. */
static inline struct store_call make_call(unsigned n, const char *key)
{
    struct store_call c = {.key = key,
                           .token = "0011223344556677",
                           .agent = "main",
                           .session = "agent:main:main",
                           .tool = "exec",
                           .target = "echo hello",
                           .begun_ms = 1700000000000 + n};

    (void)snprintf(c.id, sizeof(c.id), "%032x", n);
    (void)snprintf(c.request, sizeof(c.request), "%064x", 7u);
    return c;
}

static inline void begin(struct store *s, unsigned n, const char *key)
{
    struct store_call c = make_call(n, key);
    struct error err;

    CHECK_OK(store_begin(s, &c, NULL, &err), err);
}

static inline void end(struct store *s, unsigned n, const char *result)
{
    struct store_call c = make_call(n, NULL);
    struct error err;

    CHECK_OK(store_end(s, c.id, CALL_DONE, 200, result, strlen(result), c.begun_ms + 5, &err), err);
}

/* The state of a call, -1 if it is not there. */
static inline int state_of(struct store *s, unsigned n)
{
    struct store_call c = make_call(n, NULL);
    auto_found f = {0};
    struct error err;
    int r = store_find(s, c.id, &f, &err);

    if (r == -ERR_NOT_FOUND)
        return -1;
    CHECK_OK(r, err);
    assert_string_equal(f.call.id, c.id);
    return (int)f.call.state;
}

static inline size_t count_calls(struct store *s, const struct store_filter *f)
{
    json_t *list = NULL;
    struct error err;
    size_t n;

    CHECK_OK(store_calls(s, f, &list, &err), err);
    n = json_array_size(list);
    json_decref(list);
    return n;
}

/* Of a list of objects: this field of the i-th, a string. */
static inline const char *field(const json_t *list, size_t i, const char *name)
{
    const char *s = json_string_value(json_object_get(json_array_get(list, i), name));

    return s ? s : "";
}
