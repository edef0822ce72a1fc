/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "toml/internal.h"

struct made_entry {
    const json_t *value; /* NULL: free */
    enum made made;
};

/* Where the value is, or the free entry where it would be. At least half of them are free. */
static struct made_entry *slot_of(const struct made_table *t, const json_t *value)
{
    /* Allocations differ in their middle bits; the multiplication moves those to the top. */
    uint64_t h = (uint64_t)(uintptr_t)value * 0x9e3779b97f4a7c15u;
    size_t i = (size_t)(h >> 32) & (t->cap - 1);

    while (t->entries[i].value && t->entries[i].value != value)
        i = (i + 1) & (t->cap - 1);
    return &t->entries[i];
}

static int grow(struct made_table *t)
{
    struct made_table wider = {.cap = t->cap ? 2 * t->cap : 64, .n = t->n};

    wider.entries = calloc(wider.cap, sizeof(*wider.entries));
    if (!wider.entries)
        return -ENOMEM;
    for (size_t i = 0; i < t->cap; i++)
        if (t->entries[i].value)
            *slot_of(&wider, t->entries[i].value) = t->entries[i];
    free(t->entries);
    *t = wider;
    return 0;
}

enum made *toml_made_find(const struct made_table *t, const json_t *value)
{
    struct made_entry *e = t->cap ? slot_of(t, value) : NULL;

    return e && e->value ? &e->made : NULL;
}

int toml_made_add(struct made_table *t, const json_t *value, enum made made)
{
    if (2 * (t->n + 1) > t->cap) {
        int r = grow(t);

        if (r < 0)
            return r;
    }
    *slot_of(t, value) = (struct made_entry){.value = value, .made = made};
    t->n++;
    return 0;
}

void toml_made_done(struct made_table *t)
{
    free(t->entries);
    *t = (struct made_table){0};
}
