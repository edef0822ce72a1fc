/* SPDX-License-Identifier: Apache-2.0 */
/* From the text of a glob to the tree of an expression: the matcher is the same, and linear. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "files/regex.h"
#include "files/regex_internal.h"

struct glob {
    const char *s;
    size_t n, i;
    unsigned depth;
    struct tree *t;
    struct error *err;
};

bool files_glob_has_slash(const char *pattern)
{
    return strchr(strncmp(pattern, "./", 2) == 0 ? pattern + 2 : pattern, '/') != NULL;
}

static int fault(struct glob *g, const char *why)
{
    return error_set(g->err, ERR_INVALID, "glob: at byte %zu: %s", g->i + 1, why);
}

static int node(struct glob *g, int n)
{
    return n == -ENOMEM ? error_sys(g->err, -ENOMEM, "glob") : n;
}

/* Bytes, not characters: names need not be UTF-8. */
static int any_bytes(struct glob *g, bool slash_too, int min)
{
    size_t first = g->t->n_ranges;
    int r = slash_too ? files_tree_range(g->t, 0, 255) : files_tree_range(g->t, 0, '/' - 1), n;

    if (r == 0 && !slash_too)
        r = files_tree_range(g->t, '/' + 1, 255);
    n = r < 0 ? r : files_tree_class(g->t, first, false, false);
    if (n >= 0)
        g->t->nodes[n].kind = NODE_BYTES;
    return node(g, files_tree_repeat(g->t, n, min, -1));
}

/* "**" and the slash after it: any number of folders, none too. */
static int folders(struct glob *g)
{
    int cat = files_tree_node(g->t, NODE_CAT), last = -1, any, slash;

    if (cat < 0)
        return node(g, cat);
    any = any_bytes(g, true, 1);
    slash = any < 0 ? any : node(g, files_tree_byte(g->t, '/', false));
    if (slash < 0)
        return slash;
    files_tree_chain(g->t, cat, &last, any);
    files_tree_chain(g->t, cat, &last, slash);
    return node(g, files_tree_repeat(g->t, cat, 0, 1));
}

static int take_stars(struct glob *g)
{
    bool starts = g->i == 0 || strchr("/{,", g->s[g->i - 1]);
    size_t from = g->i;

    while (g->i < g->n && g->s[g->i] == '*')
        g->i++;
    if (g->i - from == 1)
        return any_bytes(g, false, 0);
    if (starts && g->i < g->n && g->s[g->i] == '/') {
        g->i++;
        return folders(g);
    }
    return any_bytes(g, true, starts && from > 0 && g->s[from - 1] == '/' ? 1 : 0);
}

static int class_char(struct glob *g, uint32_t *ret)
{
    size_t n;

    if (g->s[g->i] == '\\' && g->i + 1 < g->n)
        g->i++;
    n = utf8_take(g->s + g->i, g->n - g->i, ret);
    if (n == 0)
        return fault(g, "it is not UTF-8");
    g->i += n;
    return 0;
}

static int class_item(struct glob *g)
{
    uint32_t lo, hi;
    size_t used;
    int r = files_tree_posix_class(g->t, g->s + g->i, g->n - g->i, &used);

    g->i += used;
    if (r < 0 || used)
        return node(g, r);
    r = class_char(g, &lo);
    if (r < 0)
        return r;
    hi = lo;
    if (g->i + 1 < g->n && g->s[g->i] == '-' && g->s[g->i + 1] != ']') {
        g->i++;
        r = class_char(g, &hi);
        if (r < 0)
            return r;
        if (hi < lo)
            return fault(g, "the range is the wrong way round");
    }
    /* A slash is never matched by a class. */
    if (lo <= '/' && hi >= '/') {
        r = lo < '/' ? files_tree_range(g->t, lo, '/' - 1) : 0;
        lo = '/' + 1;
    }
    return node(g, r == 0 && lo <= hi ? files_tree_range(g->t, lo, hi) : r);
}

static int take_class(struct glob *g)
{
    size_t first = g->t->n_ranges, open = g->i++;
    bool negate = g->i < g->n && (g->s[g->i] == '!' || g->s[g->i] == '^');
    int r = negate ? files_tree_range(g->t, '/', '/') : 0;

    g->i += negate;
    if (r == 0 && g->i < g->n && g->s[g->i] == ']') {
        g->i++;
        r = files_tree_range(g->t, ']', ']');
    }
    while (r == 0 && g->i < g->n && g->s[g->i] != ']')
        r = class_item(g);
    if (r < 0)
        return node(g, r);
    if (g->i >= g->n) {
        g->i = open;
        return fault(g, "'[' without ']'; a literal one is \\[");
    }
    g->i++;
    return node(g, files_tree_class(g->t, first, false, negate));
}

static int take_cat(struct glob *g, bool inside);

static int take_braces(struct glob *g)
{
    int alt = node(g, files_tree_node(g->t, NODE_ALT)), last = -1;
    size_t open = g->i;

    if (++g->depth > LIMIT_FILES_NESTING)
        return error_set(g->err, ERR_TOO_LARGE, "glob: braces are more than %u deep",
                         LIMIT_FILES_NESTING);
    do {
        int n;

        g->i++;
        n = alt < 0 ? alt : take_cat(g, true);
        if (n < 0)
            return n;
        files_tree_chain(g->t, alt, &last, n);
    } while (g->i < g->n && g->s[g->i] == ',');
    if (g->i >= g->n) {
        g->i = open;
        return fault(g, "'{' without '}'; a literal one is \\{");
    }
    g->i++;
    g->depth--;
    return alt;
}

static int take_one(struct glob *g)
{
    size_t first = g->t->n_ranges;

    switch (g->s[g->i]) {
    case '*':
        return take_stars(g);
    case '?':
        g->i++;
        return node(g, files_tree_range(g->t, '/', '/') < 0
                           ? -ENOMEM
                           : files_tree_class(g->t, first, false, true));
    case '[':
        return take_class(g);
    case '{':
        return take_braces(g);
    case '\\':
        if (++g->i >= g->n)
            return fault(g, "it ends in a backslash");
        break;
    default:
        break;
    }
    return node(g, files_tree_byte(g->t, (unsigned char)g->s[g->i++], false));
}

static int take_cat(struct glob *g, bool inside)
{
    int cat = node(g, files_tree_node(g->t, NODE_CAT)), last = -1;

    while (cat >= 0 && g->i < g->n && !(inside && (g->s[g->i] == ',' || g->s[g->i] == '}'))) {
        int n = take_one(g);

        if (n < 0)
            return n;
        files_tree_chain(g->t, cat, &last, n);
    }
    return cat;
}

/* Anchored at both ends. */
int files_glob_parse(const char *s, size_t len, struct tree *t, struct error *err)
{
    struct glob g = {.s = s, .n = len, .t = t, .err = err};
    int whole, start, end, body, last = -1;

    if (len >= 2 && memcmp(s, "./", 2) == 0) {
        g.s += 2;
        g.n -= 2;
    }
    if (g.n == 0)
        return error_set(err, ERR_INVALID, "glob: it is empty; '*' is every name");
    if (g.s[0] == '/')
        return fault(&g, "it starts with '/'; it is held against paths below the folder");
    body = take_cat(&g, false);
    if (body < 0)
        return body;
    whole = node(&g, files_tree_node(t, NODE_CAT));
    start = node(&g, files_tree_assert(t, AT_START));
    end = node(&g, files_tree_assert(t, AT_END));
    if (whole < 0 || start < 0 || end < 0)
        return whole < 0 ? whole : start < 0 ? start : end;
    files_tree_chain(t, whole, &last, start);
    files_tree_chain(t, whole, &last, body);
    files_tree_chain(t, whole, &last, end);
    return whole;
}
