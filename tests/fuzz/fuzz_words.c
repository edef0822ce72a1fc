/* SPDX-License-Identifier: Apache-2.0 */
/* A line is refused with a reason, or its words are parts of it and survive being quoted again. */
#include "policy/words.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "tests/fuzz/fuzz.h"

/* The bytes of all words stand in the line, in their order: nothing was invented. */
static void check_subsequence(const struct words *w, const char *line, size_t len)
{
    const char *at = line, *end = line + len;

    for (size_t i = 0; i < w->n; i++)
        for (const char *s = w->argv[i]; *s; s++) {
            at = at < end ? memchr(at, *s, (size_t)(end - at)) : NULL;
            PROPERTY(at, "word %zu ('%s') is not of the line", i, w->argv[i]);
            at++;
        }
}

static void quote(struct buf *b, const char *word)
{
    buf_puts(b, "'");
    for (; *word; word++)
        if (*word == '\'')
            buf_puts(b, "'\"'\"'");
        else
            buf_append(b, word, 1);
    buf_puts(b, "' ");
}

static void check_again(const struct words *w)
{
    autobuf b;
    struct words again;
    const char *why;
    int r;

    buf_init(&b, LIMIT_COMMAND_LINE);
    for (size_t i = 0; i < w->n; i++)
        quote(&b, w->argv[i]);
    if (b.failed) /* quoted, it is too long for a command line */
        return;
    r = words_split(b.data, b.len, &again, &why);
    PROPERTY(r == 0, "quoted again it is refused: %s", why);
    PROPERTY(again.n == w->n, "%zu words became %zu", w->n, again.n);
    for (size_t i = 0; i < w->n; i++)
        PROPERTY(strcmp(w->argv[i], again.argv[i]) == 0, "'%s' became '%s'", w->argv[i],
                 again.argv[i]);
    words_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *line = (const char *)data, *why;
    struct words w;
    int r = words_split(line, size, &w, &why);

    if (r < 0) {
        PROPERTY(why && *why && !w.argv && !w.n, "refused (%d) without its due", r);
        return 0;
    }
    PROPERTY(!why && w.n > 0 && w.n <= WORDS_MAX && !w.argv[w.n], "%zu words", w.n);
    PROPERTY(w.argv[0][0] && !strchr(w.argv[0], '='), "'%s' is no program", w.argv[0]);
    check_subsequence(&w, line, size);
    check_again(&w);
    words_done(&w);
    return 0;
}
