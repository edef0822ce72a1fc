/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A patch, then a line "====", then the text that it is for. It is refused with a line number, or
 * read; then applied: refused with a hunk, or every line of the result is one of the patch or of
 * the text, lines without a newline but the last one's are not invented, and a patch without "-"
 * lines loses nothing.
 */
#include "files/patch.h"

#include "base/buf.h"
#include "base/error.h"
#include "tests/fuzz/fuzz.h"

static size_t count(const char *s, size_t n)
{
    size_t lines = 0;

    for (size_t i = 0; i < n; i++)
        lines += s[i] == '\n' || i + 1 == n;
    return lines;
}

static void check_op(const struct patch *p, const struct patch_op *op, const char *old, size_t len)
{
    size_t minus = 0, plus = op->kind == PATCH_ADD ? op->n : 0;
    struct error err = {0};
    struct buf out;
    int r;

    buf_init(&out, 1u << 20);
    r = patch_text(p, op, old, len, &out, &err);
    for (size_t i = 0; op->kind == PATCH_UPDATE && i < op->n; i++)
        for (size_t k = 0; k < p->hunks[op->first + i].n; k++) {
            char sign = p->lines[p->hunks[op->first + i].first + k].sign;

            PROPERTY(sign == ' ' || sign == '+' || sign == '-', "sign %d", sign);
            minus += sign == '-';
            plus += sign == '+';
        }
    if (r < 0)
        PROPERTY(err.code == ERR_NOT_FOUND || err.code == ERR_TOO_LARGE, "code %u: %s", err.code,
                 err.msg);
    else if (op->kind == PATCH_UPDATE)
        PROPERTY(count(out.data, out.len) == count(old, len) + plus - minus,
                 "%zu lines + %zu - %zu made %zu", count(old, len), plus, minus,
                 count(out.data, out.len));
    else
        PROPERTY(count(out.data, out.len) == plus, "added");
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *cut = memmem(data, size, "\n====\n", 6);
    size_t len = cut ? (size_t)(cut + 1 - text) : size;
    const char *old = cut ? cut + 6 : text + size;
    struct patch *p = NULL;
    struct error err = {0};
    int r;

    r = patch_parse(text, len, &p, &err);
    PROPERTY(r == 0 ? p != NULL : !p && strstr(err.msg, "patch"), "result %d: %s", r, err.msg);
    for (size_t i = 0; p && i < p->n_ops; i++) {
        PROPERTY(p->ops[i].path && p->ops[i].path[0], "no path");
        check_op(p, &p->ops[i], old, (size_t)(text + size - old));
    }
    patch_free(p);
    return 0;
}
