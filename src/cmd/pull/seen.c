/* SPDX-License-Identifier: Apache-2.0 */
/* A set of 64-bit keys: open addressing, grown at two thirds. Key 0 stands for an empty place. */
#include <errno.h>
#include <stdlib.h>

#include "cmd/pull/pull.h"

static size_t place(const struct seen *s, uint64_t key)
{
    size_t i = (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & (s->cap - 1);

    while (s->keys[i] && s->keys[i] != key)
        i = (i + 1) & (s->cap - 1);
    return i;
}

static int grow(struct seen *s)
{
    struct seen bigger = {.cap = s->cap ? 2 * s->cap : 1024, .n = s->n};

    bigger.keys = calloc(bigger.cap, sizeof(*bigger.keys));
    if (!bigger.keys)
        return -ENOMEM;
    for (size_t i = 0; i < s->cap; i++)
        if (s->keys[i])
            bigger.keys[place(&bigger, s->keys[i])] = s->keys[i];
    free(s->keys);
    *s = bigger;
    return 0;
}

int seen_add(struct seen *s, uint64_t key)
{
    size_t i;

    key = key ? key : 1;
    if (3 * (s->n + 1) > 2 * s->cap && grow(s) < 0)
        return -ENOMEM;
    i = place(s, key);
    if (s->keys[i])
        return 0;
    s->keys[i] = key;
    s->n++;
    return 1;
}

bool seen_has(const struct seen *s, uint64_t key)
{
    key = key ? key : 1;
    return s->cap && s->keys[place(s, key)];
}

void seen_done(struct seen *s)
{
    free(s->keys);
    *s = (struct seen){0};
}
