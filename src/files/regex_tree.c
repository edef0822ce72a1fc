/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "files/regex_internal.h"

#define LAST_CHAR 0x10ffffu

void files_tree_done(struct tree *t)
{
    free(t->nodes);
    free(t->ranges);
    *t = (struct tree){0};
}

int files_tree_node(struct tree *t, enum node_kind kind)
{
    if (t->n_nodes == t->cap_nodes) {
        size_t cap = t->cap_nodes ? 2 * t->cap_nodes : 32;
        struct node *more = reallocarray(t->nodes, cap, sizeof(*more));

        if (!more)
            return -ENOMEM;
        t->nodes = more;
        t->cap_nodes = cap;
    }
    t->nodes[t->n_nodes] = (struct node){.kind = kind, .child = -1, .next = -1};
    return (int)t->n_nodes++;
}

int files_tree_assert(struct tree *t, enum assertion what)
{
    int n = files_tree_node(t, NODE_ASSERT);

    if (n >= 0)
        t->nodes[n].what = what;
    return n;
}

int files_tree_repeat(struct tree *t, int child, int min, int max)
{
    int n = child < 0 ? child : files_tree_node(t, NODE_REPEAT);

    if (n < 0)
        return n;
    t->nodes[n].child = child;
    t->nodes[n].min = min;
    t->nodes[n].max = max;
    return n;
}

void files_tree_chain(struct tree *t, int parent, int *last, int child)
{
    if (*last < 0)
        t->nodes[parent].child = child;
    else
        t->nodes[*last].next = child;
    *last = child;
}

int files_tree_range(struct tree *t, uint32_t lo, uint32_t hi)
{
    if (t->n_ranges == t->cap_ranges) {
        size_t cap = t->cap_ranges ? 2 * t->cap_ranges : 32;
        struct range *more = reallocarray(t->ranges, cap, sizeof(*more));

        if (!more)
            return -ENOMEM;
        t->ranges = more;
        t->cap_ranges = cap;
    }
    t->ranges[t->n_ranges++] = (struct range){lo, hi};
    return 0;
}

/* ---- classes ---- */

/* The part of a range in [a, z] once more, `by` away. */
static int fold_part(struct tree *t, struct range r, uint32_t a, uint32_t z, int by)
{
    uint32_t lo = r.lo > a ? r.lo : a, hi = r.hi < z ? r.hi : z;

    return lo > hi ? 0 : files_tree_range(t, (uint32_t)((int)lo + by), (uint32_t)((int)hi + by));
}

static int fold_ranges(struct tree *t, size_t first)
{
    size_t n = t->n_ranges;
    int r = 0;

    for (size_t i = first; i < n && r == 0; i++) {
        r = fold_part(t, t->ranges[i], 'a', 'z', 'A' - 'a');
        if (r == 0)
            r = fold_part(t, t->ranges[i], 'A', 'Z', 'a' - 'A');
    }
    return r;
}

static int by_low(const void *a, const void *b)
{
    const struct range *x = a, *y = b;

    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static void merge(struct tree *t, size_t first)
{
    size_t n = first;

    if (t->n_ranges == first)
        return;
    qsort(t->ranges + first, t->n_ranges - first, sizeof(*t->ranges), by_low);
    for (size_t i = first + 1; i < t->n_ranges; i++) {
        struct range *last = &t->ranges[n];

        if (t->ranges[i].lo > last->hi + 1)
            t->ranges[++n] = t->ranges[i];
        else if (t->ranges[i].hi > last->hi)
            last->hi = t->ranges[i].hi;
    }
    t->n_ranges = n + 1;
}

/* In place: between n ranges there are at most n + 1 gaps. */
static int turn_over(struct tree *t, size_t first)
{
    size_t n = t->n_ranges;
    uint32_t from = 0;
    int r = 0;

    for (size_t i = first; i < n && r == 0; i++) {
        struct range now = t->ranges[i];

        if (now.lo > from)
            r = files_tree_range(t, from, now.lo - 1);
        from = now.hi + 1;
    }
    if (r == 0 && from <= LAST_CHAR)
        r = files_tree_range(t, from, LAST_CHAR);
    if (r < 0)
        return r;
    memmove(t->ranges + first, t->ranges + n, (t->n_ranges - n) * sizeof(*t->ranges));
    t->n_ranges -= n - first;
    return 0;
}

int files_tree_class(struct tree *t, size_t first, bool fold, bool negate)
{
    int r = fold ? fold_ranges(t, first) : 0, n;

    if (r < 0)
        return r;
    merge(t, first);
    if (negate)
        r = turn_over(t, first);
    n = r < 0 ? r : files_tree_node(t, NODE_CHARS);
    if (n < 0)
        return n;
    t->nodes[n].first = first;
    t->nodes[n].n = t->n_ranges - first;
    return n;
}

int files_tree_char(struct tree *t, uint32_t c, bool fold)
{
    size_t first = t->n_ranges;
    int r = files_tree_range(t, c, c);

    return r < 0 ? r : files_tree_class(t, first, fold, false);
}

int files_tree_byte(struct tree *t, unsigned char c, bool fold)
{
    int n = files_tree_char(t, c, fold);

    if (n >= 0)
        t->nodes[n].kind = NODE_BYTES;
    return n;
}

int files_tree_posix_class(struct tree *t, const char *s, size_t len, size_t *ret_used)
{
    static const struct {
        const char *name;
        struct range r[4];
    } classes[] = {
        {"[:alpha:]", {{'A', 'Z'}, {'a', 'z'}}},
        {"[:digit:]", {{'0', '9'}}},
        {"[:alnum:]", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
        {"[:upper:]", {{'A', 'Z'}}},
        {"[:lower:]", {{'a', 'z'}}},
        {"[:space:]", {{'\t', '\r'}, {' ', ' '}}},
        {"[:blank:]", {{'\t', '\t'}, {' ', ' '}}},
        {"[:punct:]", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
        {"[:xdigit:]", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
    };

    *ret_used = 0;
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        size_t n = strlen(classes[i].name);

        if (len < n || memcmp(s, classes[i].name, n) != 0)
            continue;
        *ret_used = n;
        for (size_t k = 0; k < 4 && classes[i].r[k].hi; k++)
            if (files_tree_range(t, classes[i].r[k].lo, classes[i].r[k].hi) < 0)
                return -ENOMEM;
    }
    return 0;
}
