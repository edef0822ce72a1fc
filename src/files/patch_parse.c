/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a patch becomes operations, hunks and lines, which point into a copy of it. */
#include "files/patch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

struct reader {
    struct patch *p;
    const char *at, *end; /* what is left */
    size_t row;           /* number of the line that was taken last */
    bool crlf;            /* the patch itself has such line ends: they are not content */
    struct error *err;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* ---- lines ---- */

static bool peek(const struct reader *r, struct patch_line *ret)
{
    const char *nl;

    if (r->at >= r->end)
        return false;
    nl = memchr(r->at, '\n', (size_t)(r->end - r->at));
    *ret = (struct patch_line){.text = r->at, .len = (size_t)((nl ? nl : r->end) - r->at)};
    if (r->crlf && ret->len && ret->text[ret->len - 1] == '\r')
        ret->len--;
    return true;
}

static void take(struct reader *r)
{
    const char *nl = memchr(r->at, '\n', (size_t)(r->end - r->at));

    r->at = nl ? nl + 1 : r->end;
    r->row++;
}

static struct patch_line trimmed(struct patch_line l)
{
    while (l.len && is_blank(l.text[l.len - 1]))
        l.len--;
    while (l.len && is_blank(l.text[0])) {
        l.text++;
        l.len--;
    }
    return l;
}

static bool is(const struct patch_line *l, const char *text)
{
    return l->len == strlen(text) && memcmp(l->text, text, l->len) == 0;
}

/* What follows the marker, trimmed; false if the line does not start with it. */
static bool after(const struct patch_line *l, const char *marker, struct patch_line *ret)
{
    size_t n = strlen(marker);

    if (l->len < n || memcmp(l->text, marker, n) != 0)
        return false;
    *ret = trimmed((struct patch_line){.text = l->text + n, .len = l->len - n});
    return true;
}

/* A header may be indented; a line of a hunk begins with its sign. */
static bool is_header(const struct patch_line *l)
{
    struct patch_line t = trimmed(*l);

    return t.len >= 4 && memcmp(t.text, "*** ", 4) == 0 && l->text[0] != '+' && l->text[0] != '-' &&
           (l->text[0] == '*' || l->text[0] == ' ' || l->text[0] == '\t');
}

static int fault(struct reader *r, size_t row, const char *why, const struct patch_line *l)
{
    if (!l)
        return error_set(r->err, ERR_INVALID, "patch line %zu: %s", row, why);
    return error_set(r->err, ERR_INVALID, "patch line %zu: %s: '%.*s'", row, why,
                     (int)(l->len < 80 ? l->len : 80), l->text);
}

/* ---- growing lists ---- */

static int more(struct reader *r, void *list, size_t n, size_t *cap, size_t size, size_t most)
{
    void **at = list, *bigger;
    size_t want = *cap ? 2 * *cap : 16;

    if (n < *cap)
        return 0;
    if (n >= most)
        return error_set(r->err, ERR_TOO_LARGE, "patch line %zu: more than %zu of its kind", r->row,
                         most);
    bigger = reallocarray(*at, want, size);
    if (!bigger)
        return error_sys(r->err, -ENOMEM, "patch");
    *at = bigger;
    *cap = want;
    return 0;
}

static int add_line(struct reader *r, const struct patch_line *l, char sign)
{
    struct patch *p = r->p;
    int e = more(r, &p->lines, p->n_lines, &p->cap_lines, sizeof(*p->lines), LIMIT_PATCH_LINES);

    if (e < 0)
        return e;
    p->lines[p->n_lines] = *l;
    p->lines[p->n_lines++].sign = sign;
    return 0;
}

static int copy_path(struct reader *r, const struct patch_line *l, char **ret)
{
    if (l->len == 0)
        return fault(r, r->row, "the path is missing", NULL);
    if (memchr(l->text, 0, l->len))
        return fault(r, r->row, "the path has a NUL byte", NULL);
    *ret = strndup(l->text, l->len);
    return *ret ? 0 : error_sys(r->err, -ENOMEM, "patch");
}

/* ---- hunks ---- */

static int add_hunk(struct reader *r, const struct patch_line *place)
{
    struct patch *p = r->p;
    int e = more(r, &p->hunks, p->n_hunks, &p->cap_hunks, sizeof(*p->hunks), LIMIT_PATCH_LINES);

    if (e < 0)
        return e;
    p->hunks[p->n_hunks++] =
        (struct patch_hunk){.place = *place, .first = p->n_lines, .row = r->row};
    return 0;
}

/* One line of a hunk: 1; 0 if the hunk ended before it. */
static int take_hunk_line(struct reader *r, const struct patch_line *l)
{
    struct patch_line rest = {.text = l->text + 1, .len = l->len ? l->len - 1 : 0};
    struct patch_line t = trimmed(*l);
    char sign = l->len ? l->text[0] : ' ';
    int e;

    if (is(&t, "*** End of File") && sign != '+' && sign != '-') {
        r->p->hunks[r->p->n_hunks - 1].at_end = true;
        take(r);
        return 0;
    }
    if (l->len >= 2 && memcmp(l->text, "@@", 2) == 0)
        return 0;
    if (is_header(l) && sign != ' ')
        return 0;
    if (l->len == 0 || is(&t, "")) /* an empty context line that lost its blank */
        rest = sign == ' ' && l->len ? rest : (struct patch_line){.text = l->text, .len = 0};
    else if (sign != ' ' && sign != '+' && sign != '-')
        return fault(r, r->row + 1, "a line of a hunk starts with ' ', '+' or '-'", l);
    take(r);
    e = add_line(r, &rest, sign == '+' || sign == '-' ? sign : ' ');
    return e < 0 ? e : 1;
}

/* Empty lines before the next header were put there for the eye: as context they say nothing. */
static void drop_trailing_blanks(struct patch *p, struct patch_hunk *h)
{
    while (h->n && p->lines[p->n_lines - 1].sign == ' ' && p->lines[p->n_lines - 1].len == 0 &&
           !h->at_end) {
        p->n_lines--;
        h->n--;
    }
}

static int take_hunk(struct reader *r, const struct patch_line *place)
{
    struct patch_line l;
    struct patch_hunk *h;
    int e = add_hunk(r, place);

    while (e >= 0 && peek(r, &l)) {
        e = take_hunk_line(r, &l);
        if (e == 0)
            break;
    }
    if (e < 0)
        return e;
    h = &r->p->hunks[r->p->n_hunks - 1];
    h->n = r->p->n_lines - h->first;
    drop_trailing_blanks(r->p, h);
    if (h->n == 0)
        return fault(r, h->row, "the hunk has no lines", NULL);
    for (size_t i = 0; i < h->n; i++)
        if (r->p->lines[h->first + i].sign != ' ')
            return 0;
    return fault(r, h->row, "the hunk changes nothing: it has no '+' and no '-' line", NULL);
}

/* "@@" or "@@ line"; 0 if it is something else. "@@ -1,2 +3,4 @@" of other formats is no place. */
static int take_place(struct reader *r, struct patch_line *ret)
{
    struct patch_line l;

    *ret = (struct patch_line){0};
    if (!peek(r, &l) || l.len < 2 || memcmp(l.text, "@@", 2) != 0)
        return 0;
    take(r);
    while (l.len && is_blank(l.text[l.len - 1]))
        l.len--;
    if (l.len > 3 && l.text[2] == ' ')
        *ret = (struct patch_line){.text = l.text + 3, .len = l.len - 3};
    if (ret->len > 4 && memcmp(ret->text, "-", 1) == 0 && memmem(ret->text, ret->len, " @@", 3) &&
        ret->text[1] >= '0' && ret->text[1] <= '9')
        *ret = (struct patch_line){0};
    return 1;
}

static int take_hunks(struct reader *r, struct patch_op *op)
{
    struct patch_line l, place;
    size_t first = r->p->n_hunks;

    while (peek(r, &l)) {
        struct patch_line t = trimmed(l);
        int e;

        if (t.len == 0) {
            take(r);
            continue;
        }
        if (is_header(&l))
            break;
        e = take_place(r, &place);
        if (e == 0 && r->p->n_hunks > first)
            return fault(r, r->row + 1, "a hunk starts with @@", &l);
        /* Two @@ lines after each other narrow the place down: the last one counts. */
        while (e && peek(r, &l) && l.len >= 2 && memcmp(l.text, "@@", 2) == 0)
            e = take_place(r, &place);
        e = take_hunk(r, &place);
        if (e < 0)
            return e;
    }
    op->first = first;
    op->n = r->p->n_hunks - first;
    if (op->n == 0 && !op->move_to)
        return fault(r, op->row, "the update has no hunks", NULL);
    return 0;
}

/* ---- operations ---- */

static int take_added(struct reader *r, struct patch_op *op)
{
    struct patch_line l;

    op->first = r->p->n_lines;
    while (peek(r, &l) && l.len && l.text[0] == '+') {
        struct patch_line rest = {.text = l.text + 1, .len = l.len - 1};
        int e;

        take(r);
        e = add_line(r, &rest, '+');
        if (e < 0)
            return e;
    }
    op->n = r->p->n_lines - op->first;
    return 0;
}

static int take_update(struct reader *r, struct patch_op *op)
{
    struct patch_line l, t, path;
    int e = 0;

    if (peek(r, &l)) {
        t = trimmed(l);
        if (after(&t, "*** Move to:", &path)) {
            take(r);
            e = copy_path(r, &path, &op->move_to);
        }
    }
    return e < 0 ? e : take_hunks(r, op);
}

/* The operation is in the list before its body is read: what it owns is freed with it. */
static int take_op(struct reader *r, const struct patch_line *l)
{
    struct patch_line t = trimmed(*l), path;
    struct patch_op *op, fresh = {0};
    int e;

    if (after(&t, "*** Add File:", &path))
        fresh.kind = PATCH_ADD;
    else if (after(&t, "*** Delete File:", &path))
        fresh.kind = PATCH_DELETE;
    else if (after(&t, "*** Update File:", &path))
        fresh.kind = PATCH_UPDATE;
    else
        return fault(r, r->row + 1,
                     "'*** Add File: ', '*** Update File: ' or '*** Delete File: ' must stand here",
                     l);
    take(r);
    fresh.row = r->row;
    e = more(r, &r->p->ops, r->p->n_ops, &r->p->cap_ops, sizeof(*op), LIMIT_PATCH_FILES);
    if (e < 0)
        return e;
    op = &r->p->ops[r->p->n_ops++];
    *op = fresh;
    e = copy_path(r, &path, &op->path);
    if (e < 0 || op->kind == PATCH_DELETE)
        return e;
    return op->kind == PATCH_ADD ? take_added(r, op) : take_update(r, op);
}

/* Models put patches into here-documents; the frame is not ours. */
static void unwrap(struct reader *r)
{
    struct patch_line l, t;
    const char *tail = r->end;

    while (tail > r->at && (is_blank(tail[-1]) || tail[-1] == '\n'))
        tail--;
    r->end = tail;
    while (peek(r, &l) && (t = trimmed(l)).len == 0)
        take(r);
    if (!peek(r, &l))
        return;
    t = trimmed(l);
    if (!is(&t, "<<EOF") && !is(&t, "<<'EOF'") && !is(&t, "<<\"EOF\""))
        return;
    if (tail - r->at < 4 || memcmp(tail - 4, "\nEOF", 4) != 0)
        return;
    take(r);
    r->end = tail - 3;
    while (r->end > r->at && (is_blank(r->end[-1]) || r->end[-1] == '\n'))
        r->end--;
}

static int read_all(struct reader *r)
{
    struct patch_line l, t;
    bool ended = false;

    unwrap(r);
    if (!peek(r, &l) || (t = trimmed(l), !is(&t, "*** Begin Patch")))
        return fault(r, r->row + 1, "it must start with '*** Begin Patch'", NULL);
    r->crlf = l.text[l.len - 1] == '\r';
    take(r);
    while (peek(r, &l) && !ended) {
        int e = 0;

        t = trimmed(l);
        ended = is(&t, "*** End Patch");
        if (ended || t.len == 0)
            take(r);
        else
            e = take_op(r, &l);
        if (e < 0)
            return e;
    }
    if (!ended)
        return fault(r, r->row + 1, "it must end with '*** End Patch'", NULL);
    if (peek(r, &l))
        return fault(r, r->row + 1, "something follows '*** End Patch'", &l);
    return r->p->n_ops ? 0 : fault(r, r->row, "there is nothing in it", NULL);
}

void patch_free(struct patch *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n_ops; i++) {
        free(p->ops[i].path);
        free(p->ops[i].move_to);
    }
    free(p->ops);
    free(p->hunks);
    free(p->lines);
    free(p->text);
    free(p);
}

int patch_parse(const char *text, size_t len, struct patch **ret, struct error *err)
{
    autoptr(patch) p = NULL;
    struct reader r = {.err = err};
    int e;

    if (len > LIMIT_PATCH_BYTES)
        return error_set(err, ERR_TOO_LARGE, "patch: it has %zu bytes; at most %u", len,
                         LIMIT_PATCH_BYTES);
    p = calloc(1, sizeof(*p));
    if (!p || !(p->text = malloc(len + 1)))
        return error_sys(err, -ENOMEM, "patch");
    memcpy(p->text, text, len);
    p->text[len] = 0;
    r.p = p;
    r.at = p->text;
    r.end = p->text + len;
    e = read_all(&r);
    if (e < 0)
        return e;
    *ret = TAKE_PTR(p);
    return 0;
}
