/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shortest script of changed lines (Myers), between what both texts have in common at either
 * end. Its work grows with the square of the changes: beyond LIMIT_FILES_DIFF_TRY the middle counts
 * as replaced.
 */
#include <stdio.h>
#include <string.h>

#include "files/internal.h"

#define AROUND 3 /* lines of context */

struct line {
    const char *s;
    size_t len;
};

struct side {
    struct line *line;
    size_t n;
};

/* What happens to lines: old [a, a+na) became new [b, b+nb). */
struct change {
    size_t a, na, b, nb;
};

struct script {
    struct change *list;
    size_t n;
};

static bool split(const char *s, size_t len, struct side *ret)
{
    size_t n = 0, i = 0;

    for (const char *p = s, *end = s + len; p < end; n++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));

        p = nl ? nl + 1 : end;
    }
    ret->line = malloc((n + 1) * sizeof(*ret->line));
    ret->n = n;
    if (!ret->line)
        return false;
    for (const char *p = s, *end = s + len; p < end; i++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));

        ret->line[i] = (struct line){p, (size_t)((nl ? nl + 1 : end) - p)};
        p += ret->line[i].len;
    }
    return true;
}

static bool same(const struct line *a, const struct line *b)
{
    return a->len == b->len && memcmp(a->s, b->s, a->len) == 0;
}

/* ---- Myers ---- */

struct search {
    const struct line *a, *b;
    long n, m;
    int *v;     /* furthest x per diagonal */
    int *trace; /* v after each round, a triangle */
};

static int *row(const struct search *s, long d)
{
    return s->trace + d * d; /* round d has 2d+1 diagonals: those before it have d*d */
}

/* One round; true when both ends are reached. */
static bool advance(struct search *s, long d, long max)
{
    int *v = s->v + max + 1;

    for (long k = -d; k <= d; k += 2) {
        long x = k == -d || (k != d && v[k - 1] < v[k + 1]) ? v[k + 1] : v[k - 1] + 1, y = x - k;

        while (x < s->n && y < s->m && same(&s->a[x], &s->b[y])) {
            x++;
            y++;
        }
        v[k] = (int)x;
        row(s, d)[k + d] = (int)x;
        if (x >= s->n && y >= s->m)
            return true;
    }
    return false;
}

/* Walks back from the end and writes the script, last change first, joining neighbours. */
static void walk_back(const struct search *s, long d, size_t skip, struct script *ret)
{
    long x = s->n, y = s->m;

    for (; d > 0; d--) {
        const int *prev = row(s, d - 1) + (d - 1);
        long k = x - y, px, pk;
        bool down = k == -d || (k != d && (k - 1 < -(d - 1) ? -1 : prev[k - 1]) <
                                              (k + 1 > d - 1 ? -1 : prev[k + 1]));
        struct change *c = ret->n ? &ret->list[ret->n - 1] : NULL;
        size_t a, b;

        pk = down ? k + 1 : k - 1;
        px = prev[pk];
        x = px;
        y = px - pk;
        a = skip + (size_t)x;
        b = skip + (size_t)y;
        if (c && c->a == a + !down && c->b == b + down) {
            c->a = a;
            c->b = b;
            c->na += !down;
            c->nb += down;
        } else {
            ret->list[ret->n++] = (struct change){a, !down, b, down};
        }
    }
}

static bool shortest(const struct side *a, const struct side *b, size_t skip, size_t n, size_t m,
                     struct script *ret)
{
    long max = (long)(n + m < LIMIT_FILES_DIFF_TRY ? n + m : LIMIT_FILES_DIFF_TRY);
    autofree int *v = calloc((size_t)(2 * max + 3), sizeof(int));
    autofree int *trace = calloc((size_t)((max + 1) * (max + 1)), sizeof(int));
    struct search s = {.a = a->line + skip,
                       .b = b->line + skip,
                       .n = (long)n,
                       .m = (long)m,
                       .v = v,
                       .trace = trace};

    ret->list = calloc((size_t)max + 1, sizeof(*ret->list));
    if (!v || !trace || !ret->list)
        return false;
    for (long d = 0; d <= max; d++)
        if (advance(&s, d, max)) {
            walk_back(&s, d, skip, ret);
            return true;
        }
    return false;
}

static void compare(const struct side *a, const struct side *b, struct script *ret)
{
    size_t least = a->n < b->n ? a->n : b->n, skip = 0, tail = 0, n, m;

    while (skip < least && same(&a->line[skip], &b->line[skip]))
        skip++;
    while (tail < least - skip && same(&a->line[a->n - 1 - tail], &b->line[b->n - 1 - tail]))
        tail++;
    n = a->n - skip - tail;
    m = b->n - skip - tail;
    if ((n == 0 && m == 0) || shortest(a, b, skip, n, m, ret) || !ret->list)
        return;
    ret->list[0] = (struct change){skip, n, skip, m};
    ret->n = 1;
}

/* ---- output ---- */

static void show_line(struct buf *out, char sign, const struct line *l)
{
    size_t n = l->len && l->s[l->len - 1] == '\n' ? l->len - 1 : l->len;

    buf_append(out, &sign, 1);
    buf_append(out, l->s, n < LIMIT_FILES_LINE_OUT ? n : LIMIT_FILES_LINE_OUT);
    buf_puts(out, n < LIMIT_FILES_LINE_OUT ? "\n" : " ... (cut)\n");
    if (n == l->len)
        buf_puts(out, "\\ No newline at end of file\n");
}

/* Changes list[first] down to list[last] (they stand last first) in one hunk. */
static void show_hunk(struct buf *out, const struct side *a, const struct side *b,
                      const struct script *s, size_t first, size_t last, size_t above)
{
    const struct change *f = &s->list[first], *l = &s->list[last];
    size_t before = f->a < AROUND ? f->a : AROUND, end = l->a + l->na + AROUND, at = f->a - before;
    size_t n_new;

    end = end < a->n ? end : a->n;
    n_new = l->b + l->nb + (end - l->a - l->na) - (f->b - before);
    /* An empty range names the line before it. */
    buf_printf(out, "@@ -%zu,%zu +%zu,%zu @@\n", above + at + (end > at), end - at,
               above + f->b - before + (n_new > 0), n_new);
    for (size_t i = first + 1; i-- > last;) {
        const struct change *c = &s->list[i];

        for (; at < c->a; at++)
            show_line(out, ' ', &a->line[at]);
        for (size_t k = 0; k < c->na; k++)
            show_line(out, '-', &a->line[c->a + k]);
        for (size_t k = 0; k < c->nb; k++)
            show_line(out, '+', &b->line[c->b + k]);
        at = c->a + c->na;
    }
    for (; at < end; at++)
        show_line(out, ' ', &a->line[at]);
}

static void show(struct buf *out, const struct side *a, const struct side *b,
                 const struct script *s, size_t above)
{
    size_t room = out->len + LIMIT_FILES_DIFF;

    for (size_t i = s->n; i-- > 0;) {
        size_t first = i;

        while (i > 0 && s->list[i - 1].a <= s->list[i].a + s->list[i].na + 2 * AROUND)
            i--;
        show_hunk(out, a, b, s, first, i, above);
        if (out->len > room || out->failed) {
            out->len = out->len > room ? room : out->len;
            out->failed = false;
            if (out->data)
                out->data[out->len] = 0;
            buf_puts(out, "\n... (cut)\n");
            return;
        }
    }
}

/* ---- the part that differs ---- */

struct window {
    const char *a, *b;
    size_t a_len, b_len;
    size_t line; /* lines before it */
};

static size_t count_lines(const char *s, size_t len)
{
    size_t n = 0;

    for (const char *p = s, *end = s + len; p < end; n++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));

        p = nl ? nl + 1 : end;
    }
    return n;
}

/* How many bytes both have in common at the end, but for the last `less`; whole lines. */
static size_t common_tail(const struct window *w, size_t less)
{
    size_t most = (w->a_len < w->b_len ? w->a_len : w->b_len) - less, n = 0;
    const char *s, *end = w->a + w->a_len;

    while (n < most && w->a[w->a_len - 1 - n] == w->b[w->b_len - 1 - n])
        n++;
    s = end - n;
    for (int i = 0; i < AROUND + 1 && s < end; i++) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));

        s = nl ? nl + 1 : end;
    }
    return (size_t)(end - s);
}

/* Large files are not split into lines as a whole: only around what differs. */
static void narrow(struct window *w)
{
    size_t most = w->a_len < w->b_len ? w->a_len : w->b_len, head = 0, tail;

    while (head < most && w->a[head] == w->b[head])
        head++;
    tail = common_tail(w, head);
    for (int i = 0; i < AROUND + 1 && head > 0; i++) {
        const char *nl = head > 1 ? memrchr(w->a, '\n', head - 1) : NULL;

        head = nl ? (size_t)(nl + 1 - w->a) : 0;
    }
    w->line = count_lines(w->a, head);
    w->a += head;
    w->b += head;
    w->a_len -= head + tail;
    w->b_len -= head + tail;
}

void files_diff(const char *old_text, size_t old_len, const char *new_text, size_t new_len,
                struct buf *out, uint64_t *ret_added, uint64_t *ret_removed)
{
    struct window w = {old_text, new_text, old_len, new_len, 0};
    struct side a = {0}, b = {0};
    struct script s = {0};

    narrow(&w);
    *ret_removed = count_lines(w.a, w.a_len);
    *ret_added = count_lines(w.b, w.b_len);
    if (*ret_removed > LIMIT_FILES_DIFF_LINES || *ret_added > LIMIT_FILES_DIFF_LINES)
        return;
    *ret_added = *ret_removed = 0;
    if (split(w.a, w.a_len, &a) && split(w.b, w.b_len, &b)) {
        compare(&a, &b, &s);
        for (size_t i = 0; i < s.n; i++) {
            *ret_added += s.list[i].nb;
            *ret_removed += s.list[i].na;
        }
        if (out && s.n)
            show(out, &a, &b, &s, w.line);
    }
    free(a.line);
    free(b.line);
    free(s.list);
}
