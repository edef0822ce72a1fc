/* SPDX-License-Identifier: Apache-2.0 */
/* What a patch makes of one text (pure). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "files/internal.h"
#include "files/patch.h"

enum care {
    EXACT,
    NO_END_BLANKS,
    NO_BLANKS,
    N_CARES,
};

struct span {
    const char *s;
    size_t len; /* without the newline */
};

struct work {
    const struct patch *p;
    const struct patch_op *op;
    struct span *lines;
    size_t n;
    const char *end; /* of the text */
    bool crlf;
    uint64_t compared;
    size_t next; /* the first line not yet written */
    struct buf *out;
    struct error *err;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* ---- lines of the file ---- */

static bool split(struct work *w, const char *s, size_t len)
{
    size_t n = 0;

    w->end = s + len;
    for (const char *p = s; p < w->end; n++) {
        const char *nl = memchr(p, '\n', (size_t)(w->end - p));

        p = nl ? nl + 1 : w->end;
    }
    w->lines = malloc((n + 1) * sizeof(*w->lines));
    if (!w->lines)
        return false;
    for (const char *p = s; p < w->end;) {
        const char *nl = memchr(p, '\n', (size_t)(w->end - p));

        w->lines[w->n++] = (struct span){p, (size_t)((nl ? nl : w->end) - p)};
        p = nl ? nl + 1 : w->end;
    }
    w->crlf = w->n && w->lines[0].len && w->lines[0].s[w->lines[0].len - 1] == '\r';
    return true;
}

static struct span shorn(struct span l, enum care care)
{
    while (care != EXACT && l.len && is_blank(l.s[l.len - 1]))
        l.len--;
    while (care == NO_BLANKS && l.len && is_blank(l.s[0])) {
        l.s++;
        l.len--;
    }
    return l;
}

static bool same(const struct span *file, const struct patch_line *patch, enum care care)
{
    struct span a = shorn(*file, care), b = shorn((struct span){patch->text, patch->len}, care);

    return a.len == b.len && (a.len == 0 || memcmp(a.s, b.s, a.len) == 0);
}

/* ---- finding ---- */

/* Old lines of the hunk from file line `at` on: how many match before one does not. */
static size_t agree(struct work *w, const struct patch_hunk *h, size_t at, enum care care,
                    size_t *ret_old)
{
    size_t n = 0, i;

    for (i = 0; i < h->n; i++) {
        const struct patch_line *l = &w->p->lines[h->first + i];

        if (l->sign == '+')
            continue;
        w->compared++;
        if (at + n >= w->n || !same(&w->lines[at + n], l, care))
            break;
        n++;
    }
    *ret_old = i; /* == h->n: all of them */
    return n;
}

static size_t count_old(const struct work *w, const struct patch_hunk *h)
{
    size_t n = 0;

    for (size_t i = 0; i < h->n; i++)
        n += w->p->lines[h->first + i].sign != '+';
    return n;
}

static int too_much(struct work *w, const struct patch_hunk *h)
{
    return error_set(w->err, ERR_TOO_LARGE,
                     "'%s', hunk at patch line %zu: too many places have to be compared; give "
                     "smaller hunks with an @@ line",
                     SHOW(w->op->path), h->row);
}

/* Why there is no place: the first line that differs where most lines agree. */
static int not_found(struct work *w, const struct patch_hunk *h, size_t from, size_t best,
                     size_t best_n, size_t best_i)
{
    const struct patch_line *l = &w->p->lines[h->first + best_i];
    const struct span *have = best + best_n < w->n ? &w->lines[best + best_n] : NULL;
    int n = (int)(l->len < 90 ? l->len : 90);

    if (best_n == 0)
        return error_set(w->err, ERR_NOT_FOUND,
                         "'%s', hunk at patch line %zu: its first line '%.*s' is not in the file%s",
                         SHOW(w->op->path), h->row, n, l->text,
                         h->at_end ? " at its end"
                         : from    ? " after the place before"
                                   : "");
    return error_set(
        w->err, ERR_NOT_FOUND,
        "'%s', hunk at patch line %zu: %zu lines match at line %zu of the file, then the patch has "
        "'%.*s', but the file %s%.*s%s",
        SHOW(w->op->path), h->row, best_n, best + 1, n, l->text, have ? "'" : "ends",
        have ? (int)(have->len < 90 ? have->len : 90) : 0, have ? have->s : "", have ? "'" : "");
}

/* The file line where the old lines of the hunk begin. */
static int locate(struct work *w, const struct patch_hunk *h, size_t from, size_t *ret)
{
    size_t old = count_old(w, h), best = from, best_n = 0, best_i = 0;
    size_t first = h->at_end && w->n >= old && w->n - old > from ? w->n - old : from;

    while (best_i < h->n && w->p->lines[h->first + best_i].sign == '+')
        best_i++;
    for (enum care care = EXACT; care < N_CARES; care++)
        for (size_t at = first; at < w->n; at++) {
            size_t i, n = agree(w, h, at, care, &i);

            if (i == h->n) {
                *ret = at;
                return 0;
            }
            if (w->compared > LIMIT_PATCH_WORK)
                return too_much(w, h);
            if (n > best_n) {
                best = at;
                best_n = n;
                best_i = i;
            }
        }
    return not_found(w, h, from, best, best_n, best_i);
}

/* The line after the one that @@ names. */
static int go_to(struct work *w, const struct patch_hunk *h, size_t *at)
{
    if (!h->place.text)
        return 0;
    for (enum care care = EXACT; care < N_CARES; care++)
        for (size_t i = *at; i < w->n; i++) {
            if (++w->compared > LIMIT_PATCH_WORK)
                return too_much(w, h);
            if (same(&w->lines[i], &h->place, care)) {
                *at = i + 1;
                return 0;
            }
        }
    return error_set(w->err, ERR_NOT_FOUND,
                     "'%s', hunk at patch line %zu: its @@ line '%.*s' is not in the file%s",
                     SHOW(w->op->path), h->row, (int)(h->place.len < 120 ? h->place.len : 120),
                     h->place.text, *at ? " after the place before" : "");
}

/* ---- writing ---- */

static bool has_newline(const struct work *w, size_t i)
{
    return w->lines[i].s + w->lines[i].len < w->end;
}

/* The file's own bytes; `closed` if something is to follow a last line without its newline. */
static void copy_line(struct work *w, bool closed)
{
    const struct span *l = &w->lines[w->next];
    bool newline = has_newline(w, w->next);

    buf_append(w->out, l->s, l->len + newline);
    if (!newline && closed)
        buf_puts(w->out, w->crlf ? "\r\n" : "\n");
    w->next++;
}

static void new_line(struct work *w, const struct patch_line *l)
{
    bool has_cr = l->len && l->text[l->len - 1] == '\r';

    buf_append(w->out, l->text, l->len);
    buf_puts(w->out, w->crlf && !has_cr ? "\r\n" : "\n");
}

static bool adds_after(const struct work *w, const struct patch_hunk *h, size_t i)
{
    while (++i < h->n)
        if (w->p->lines[h->first + i].sign == '+')
            return true;
    return false;
}

static void write_hunk(struct work *w, const struct patch_hunk *h, size_t at)
{
    bool added_first = w->p->lines[h->first].sign == '+';

    while (w->next < at)
        copy_line(w, w->next + 1 < at || added_first || at < w->n);
    for (size_t i = 0; i < h->n; i++) {
        const struct patch_line *l = &w->p->lines[h->first + i];

        if (l->sign == '+')
            new_line(w, l);
        else if (l->sign == '-')
            w->next++;
        else
            copy_line(w, adds_after(w, h, i));
    }
}

static int apply_hunk(struct work *w, const struct patch_hunk *h)
{
    size_t at = w->next;
    int r = go_to(w, h, &at);

    if (r < 0)
        return r;
    if (count_old(w, h) == 0)
        at = h->place.text && !h->at_end ? at : w->n;
    else
        r = locate(w, h, at, &at);
    if (r < 0)
        return r;
    write_hunk(w, h, at);
    return 0;
}

static int update(struct work *w)
{
    int r = 0;

    for (size_t i = 0; i < w->op->n && r == 0; i++)
        r = apply_hunk(w, &w->p->hunks[w->op->first + i]);
    while (r == 0 && w->next < w->n)
        copy_line(w, false);
    return r;
}

int patch_text(const struct patch *p, const struct patch_op *op, const char *old, size_t len,
               struct buf *out, struct error *err)
{
    struct work w = {.p = p, .op = op, .out = out, .err = err};
    int r = 0;

    if (op->kind == PATCH_ADD) {
        for (size_t i = 0; i < op->n; i++)
            new_line(&w, &p->lines[op->first + i]);
    } else if (op->kind == PATCH_UPDATE) {
        if (!split(&w, old, len))
            return error_sys(err, -ENOMEM, "patch '%s'", SHOW(op->path));
        r = update(&w);
        free(w.lines);
    }
    if (r == 0 && out->failed)
        return error_set(err, ERR_TOO_LARGE, "'%s': the file would have more than %zu bytes",
                         SHOW(op->path), out->max);
    return r;
}
