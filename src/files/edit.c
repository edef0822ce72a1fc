/* SPDX-License-Identifier: Apache-2.0 */
/* Literal replacements in a text (pure). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "files/internal.h"

static size_t line_of(const char *text, size_t at)
{
    size_t n = 1;

    for (const char *p = text, *end = text + at; (p = memchr(p, '\n', (size_t)(end - p))); p++)
        n++;
    return n;
}

/* Occurrences, overlapping ones too: where two could be meant, none is. Stops at `most`. */
static size_t count(const struct buf *text, const struct files_edit *e, size_t most,
                    size_t first[3])
{
    const char *p = text->data, *end = text->data + text->len;
    size_t n = 0;

    while (n < most && (p = memmem(p, (size_t)(end - p), e->old_text, e->old_len))) {
        if (n < 3)
            first[n] = (size_t)(p - text->data);
        n++;
        p++;
    }
    return n;
}

/* ---- near misses ---- */

/* The text without blanks and line ends; where each byte came from, if anybody asks. */
static size_t squash(const char *s, size_t len, char *out, uint32_t *from)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        if (!isspace((unsigned char)s[i])) {
            if (from)
                from[n] = (uint32_t)i;
            out[n++] = s[i];
        }
    return n;
}

/* The line where the old text stands but for white space; 0 = nowhere, or the text is too large. */
static size_t near_line(const struct buf *text, const struct files_edit *e)
{
    autofree char *hay = NULL, *needle = NULL;
    autofree uint32_t *from = NULL;
    size_t n_hay, n_needle;
    const char *hit;

    if (text->len > LIMIT_FILES_NEAR || e->old_len > LIMIT_FILES_NEAR)
        return 0;
    hay = malloc(text->len + 1);
    needle = malloc(e->old_len + 1);
    from = malloc((text->len + 1) * sizeof(*from));
    if (!hay || !needle || !from)
        return 0;
    n_hay = squash(text->data, text->len, hay, from);
    n_needle = squash(e->old_text, e->old_len, needle, NULL);
    hit = n_needle ? memmem(hay, n_hay, needle, n_needle) : NULL;
    return hit ? line_of(text->data, from[hit - hay]) : 0;
}

static int none_found(const struct buf *text, const struct files_edit *e, size_t i,
                      struct error *err)
{
    size_t line = near_line(text, e);
    bool crlf = memmem(text->data, text->len, "\r\n", 2) && memchr(e->old_text, '\n', e->old_len) &&
                !memmem(e->old_text, e->old_len, "\r\n", 2);

    if (line && crlf)
        return error_set(err, ERR_NOT_FOUND,
                         "edit %zu: the old text has no match; line %zu is the same but for line "
                         "ends or blanks: the file's lines end in \\r\\n",
                         i + 1, line);
    if (line)
        return error_set(
            err, ERR_NOT_FOUND,
            "edit %zu: the old text has no match; line %zu is the same but for blanks: "
            "read it again and copy them exactly",
            i + 1, line);
    return error_set(err, ERR_NOT_FOUND,
                     "edit %zu: the old text has no match in the file%s: read it again", i + 1,
                     i ? " as the edits before left it" : "");
}

static int several_found(const struct buf *text, size_t n, const size_t first[3], size_t i,
                         struct error *err)
{
    return error_set(err, ERR_INVALID,
                     "edit %zu: the old text has %s%zu matches (lines %zu, %zu%s): give more of "
                     "what stands around it, or replace all",
                     i + 1, n > 999 ? "at least " : "", n, line_of(text->data, first[0]),
                     line_of(text->data, first[1]), n > 2 ? ", ..." : "");
}

/* ---- */

static int check_edit(const struct files_edit *e, size_t i, struct error *err)
{
    if (e->old_len == 0)
        return error_set(err, ERR_INVALID,
                         "edit %zu: the old text is empty; say what is to be replaced, or write "
                         "the file",
                         i + 1);
    if (e->old_len == e->new_len && memcmp(e->old_text, e->new_text, e->old_len) == 0)
        return error_set(err, ERR_INVALID,
                         "edit %zu: old and new text are the same; nothing would change", i + 1);
    return 0;
}

static void replace(const struct buf *text, const struct files_edit *e, struct buf *out)
{
    const char *p = text->data, *end = text->data + text->len, *hit;

    do {
        hit = memmem(p, (size_t)(end - p), e->old_text, e->old_len);
        if (!hit)
            break;
        buf_append(out, p, (size_t)(hit - p));
        buf_append(out, e->new_text, e->new_len);
        p = hit + e->old_len;
    } while (e->all);
    buf_append(out, p, (size_t)(end - p));
}

/* `text` becomes what the edit makes of it. */
static int apply(struct buf *text, const struct files_edit *e, size_t i, struct error *err)
{
    size_t first[3] = {0}, n;
    struct buf out;
    int r = check_edit(e, i, err);

    if (r < 0)
        return r;
    n = count(text, e, e->all ? 1 : 1000, first);
    if (n == 0)
        return none_found(text, e, i, err);
    if (n > 1)
        return several_found(text, n, first, i, err);
    buf_init(&out, LIMIT_FILES_WRITE);
    replace(text, e, &out);
    if (out.failed) {
        buf_done(&out);
        return error_set(err, ERR_TOO_LARGE, "edit %zu: the file would have more than %u bytes",
                         i + 1, LIMIT_FILES_WRITE);
    }
    buf_done(text);
    *text = out;
    return 0;
}

int files_edit_text(const char *text, size_t len, const struct files_edit *edits, size_t n,
                    struct buf *ret, struct error *err)
{
    autobuf work;

    if (n == 0 || n > LIMIT_FILES_EDITS)
        return error_set(err, ERR_INVALID, "%zu edits; there must be 1 to %u", n,
                         LIMIT_FILES_EDITS);
    buf_init(&work, LIMIT_FILES_WRITE);
    buf_append(&work, text, len);
    if (work.failed)
        return error_set(err, ERR_TOO_LARGE, "the file has %zu bytes; at most %u can be edited",
                         len, LIMIT_FILES_WRITE);
    for (size_t i = 0; i < n; i++) {
        int r = apply(&work, &edits[i], i, err);

        if (r < 0)
            return r;
    }
    *ret = work;
    work = (struct buf){0};
    return 0;
}
