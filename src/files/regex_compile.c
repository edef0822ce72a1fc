/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the tree to a program of single steps. It is written from the end to the start: each part
 * is told where to go on, so that nothing has to be filled in later but loops.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "files/regex_internal.h"

struct compiler {
    const struct tree *t;
    struct step *steps;
    size_t n, work;
    bool failed;
};

static uint32_t emit(struct compiler *c, struct step s)
{
    if (c->n >= LIMIT_FILES_PROGRAM) {
        c->failed = true;
        return 0;
    }
    c->steps[c->n] = s;
    return (uint32_t)c->n++;
}

static uint32_t emit_byte(struct compiler *c, uint8_t lo, uint8_t hi, uint32_t next)
{
    return emit(c, (struct step){STEP_BYTE, lo, hi, next, 0});
}

/* `none` is where there is no alternative yet. */
#define NONE UINT32_MAX
static uint32_t either(struct compiler *c, uint32_t a, uint32_t b)
{
    return a == NONE ? b : emit(c, (struct step){STEP_SPLIT, 0, 0, b, a});
}

/* ---- characters as bytes ---- */

static uint32_t utf8_ranges(struct compiler *c, uint32_t lo, uint32_t hi, uint32_t next,
                            uint32_t others);

static uint32_t in_two(struct compiler *c, uint32_t lo, uint32_t cut, uint32_t hi, uint32_t next,
                       uint32_t others)
{
    return utf8_ranges(c, cut + 1, hi, next, utf8_ranges(c, lo, cut, next, others));
}

/* Both ends have the same length, and differ only where every byte in between is possible. */
static uint32_t sequence(struct compiler *c, uint32_t lo, uint32_t hi, uint32_t next,
                         uint32_t others)
{
    char a[4], b[4];
    size_t n = utf8_put(lo, a);

    (void)utf8_put(hi, b);
    while (n-- > 0)
        next = emit_byte(c, (uint8_t)a[n], (uint8_t)b[n], next);
    return either(c, others, next);
}

static uint32_t utf8_ranges(struct compiler *c, uint32_t lo, uint32_t hi, uint32_t next,
                            uint32_t others)
{
    static const uint32_t ends[] = {0x7f, 0x7ff, 0xd7ff, 0xdfff, 0xffff};

    if (lo > hi || (lo >= 0xd800 && hi <= 0xdfff))
        return others;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (lo <= ends[i] && hi > ends[i])
            return in_two(c, lo, ends[i], hi, next, others);
    for (unsigned shift = 6; hi > 0x7f && shift <= 18; shift += 6) {
        uint32_t m = (1u << shift) - 1;

        if ((lo & ~m) == (hi & ~m))
            break;
        if (lo & m)
            return in_two(c, lo, lo | m, hi, next, others);
        if ((hi & m) != m)
            return in_two(c, lo, (hi & ~m) - 1, hi, next, others);
    }
    return sequence(c, lo, hi, next, others);
}

static uint32_t chars(struct compiler *c, const struct node *n, uint32_t next)
{
    uint32_t all = NONE;

    for (size_t i = 0; i < n->n && !c->failed; i++) {
        struct range r = c->t->ranges[n->first + i];

        if (n->kind == NODE_CHARS)
            all = utf8_ranges(c, r.lo, r.hi, next, all);
        else
            all = either(c, all, emit_byte(c, (uint8_t)r.lo, (uint8_t)r.hi, next));
    }
    /* A class without any character: a byte range that is the wrong way round never matches. */
    return all == NONE ? emit_byte(c, 1, 0, next) : all;
}

/* ---- the rest ---- */

static uint32_t compile(struct compiler *c, int node, uint32_t next);

/* Children in reverse, without recursion over their number. */
static uint32_t cat(struct compiler *c, int child, uint32_t next)
{
    int list[64], n = 0;

    for (; child >= 0; child = c->t->nodes[child].next) {
        if (n == 64) {
            next = cat(c, child, next);
            break;
        }
        list[n++] = child;
    }
    while (n-- > 0)
        next = compile(c, list[n], next);
    return next;
}

static uint32_t repeat(struct compiler *c, const struct node *n, uint32_t next)
{
    uint32_t at = next;

    if (n->max < 0) {
        at = emit(c, (struct step){STEP_SPLIT, 0, 0, 0, next});
        uint32_t body = compile(c, n->child, at);

        if (!c->failed)
            c->steps[at].x = body;
    }
    for (int i = n->min; i < n->max && !c->failed; i++)
        at = either(c, next, compile(c, n->child, at));
    for (int i = 0; i < n->min && !c->failed; i++)
        at = compile(c, n->child, at);
    return at;
}

static uint32_t assertion(struct compiler *c, enum assertion what, uint32_t next)
{
    uint32_t at;

    if (what != AT_END_CR)
        return emit(c, (struct step){STEP_ASSERT, (uint8_t)what, 0, next, 0});
    at = emit(c, (struct step){STEP_ASSERT, AT_END, 0, next, 0});
    return either(c, at, emit_byte(c, '\r', '\r', at));
}

static uint32_t compile(struct compiler *c, int node, uint32_t next)
{
    const struct node *n = &c->t->nodes[node];
    uint32_t all = NONE;

    /* Parts that make no step could still be repeated for ever. */
    if (c->failed || ++c->work > 4 * LIMIT_FILES_PROGRAM) {
        c->failed = true;
        return 0;
    }
    switch (n->kind) {
    case NODE_EMPTY:
        return next;
    case NODE_CHARS:
    case NODE_BYTES:
        return chars(c, n, next);
    case NODE_CAT:
        return cat(c, n->child, next);
    case NODE_ALT:
        for (int child = n->child; child >= 0; child = c->t->nodes[child].next)
            all = either(c, all, compile(c, child, next));
        return all == NONE ? next : all;
    case NODE_REPEAT:
        return repeat(c, n, next);
    case NODE_ASSERT:
        return assertion(c, n->what, next);
    }
    return next;
}

int files_regex_compile(const struct tree *t, int root, struct program *ret, struct error *err)
{
    struct compiler c = {.t = t, .steps = malloc(LIMIT_FILES_PROGRAM * sizeof(struct step))};
    uint32_t start;

    if (!c.steps)
        return error_sys(err, -ENOMEM, "pattern");
    start = compile(&c, root, emit(&c, (struct step){.op = STEP_MATCH}));
    if (c.failed) {
        free(c.steps);
        return error_set(err, ERR_TOO_LARGE,
                         "pattern: written out it has more than %u steps; repeat less",
                         LIMIT_FILES_PROGRAM);
    }
    ret->steps = c.steps;
    ret->n = c.n;
    ret->start = start;
    return 0;
}
