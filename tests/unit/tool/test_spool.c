/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/spool.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/test.h"

static char piece[LIMIT_SPOOL_PIECE];

/* Everything of both streams, from a place on, in order; where the reader got to. */
static uint64_t read_on(const struct spool *s, uint64_t at, struct buf *out)
{
    struct spool_piece p;

    while (spool_get(s, at, &p, piece) > 0) {
        buf_append(out, piece, p.len);
        at = p.next;
    }
    return at;
}

static void test_order(void **state)
{
    struct temp *t = *state;
    struct spool_piece p;
    struct spools all = {.folder = t->fd};
    struct spool s;
    autobuf text = {.max = 4096};
    uint64_t at;

    spool_init(&s, &all, 4);
    assert_int_equal(spool_get(&s, 0, &p, piece), 0);
    spool_add(&s, SPOOL_OUT, "one ", 4);
    spool_add(&s, SPOOL_ERR, "two ", 4);
    at = read_on(&s, 0, &text);
    spool_add(&s, SPOOL_OUT, "three", 5);
    at = read_on(&s, at, &text);
    assert_string_equal(text.data, "one two three");
    assert_int_equal(at, s.end);
    assert_int_equal(s.bytes[SPOOL_OUT], 9);
    assert_int_equal(spool_get(&s, 1, &p, piece), -EINVAL); /* no piece begins there */
    assert_int_equal(spool_get(&s, s.end + 1, &p, piece), -EINVAL);
    assert_int_equal(s.fd, -1);
    spool_done(&s);
}

/* What goes to a file is read as before, and the file has no name. */
static void test_spill(void **state)
{
    struct temp *t = *state;
    struct spools all = {.folder = t->fd};
    struct spool s;
    autobuf text = {.max = 8u << 20};
    char line[32];
    uint64_t at = 0;

    spool_init(&s, &all, 4);
    for (int i = 0; i < 100000; i++) {
        int n = snprintf(line, sizeof(line), "%d\n", i);

        spool_add(&s, i % 2 ? SPOOL_OUT : SPOOL_ERR, line, (size_t)n);
        if (i % 7919 == 0)
            at = read_on(&s, at, &text);
    }
    assert_true(s.fd >= 0);
    assert_int_equal(read_on(&s, at, &text), s.end);
    assert_int_equal(text.len, s.bytes[0] + s.bytes[1]);
    for (long i = 0, n = 0; i < 100000; i++) {
        char *end;

        CHECK(strtol(text.data + n, &end, 10) == i && *end == '\n', "line %ld", i);
        n = end + 1 - text.data;
    }
    spool_done(&s);
}

static void test_limit(void **state)
{
    struct temp *t = *state;
    autofree char *block = calloc(1, 1u << 20);
    struct spool_piece p;
    struct spools all = {.folder = t->fd};
    struct spool s;
    uint64_t sum = 0, at = 0;

    spool_init(&s, &all, 4);
    for (unsigned i = 0; i < 80; i++)
        spool_add(&s, SPOOL_OUT, block, 1u << 20);
    assert_true(s.end <= LIMIT_SPOOL);
    assert_true(s.dropped > 0);
    assert_int_equal(s.bytes[SPOOL_OUT] + s.dropped, 80u << 20);
    while (spool_get(&s, at, &p, piece) > 0) {
        sum += p.len;
        at = p.next;
    }
    assert_int_equal(sum, s.bytes[SPOOL_OUT]);
    spool_add(&s, SPOOL_ERR, "late", 4); /* nothing comes after a gap */
    assert_int_equal(s.bytes[SPOOL_ERR], 0);
    spool_done(&s);
}

static void test_text(void **state)
{
    static const char cut[] = "abcd\n[... 3622 bytes left out ...]\n";
    struct temp *t = *state;
    struct spools all = {.folder = t->fd};
    struct spool s;
    autobuf text = {.max = 1u << 20};

    spool_init(&s, &all, 4);
    spool_add(&s, SPOOL_OUT, "abc", 3);
    spool_add(&s, SPOOL_ERR, "xxx", 3);
    spool_add(&s, SPOOL_OUT, "defghij", 7);
    assert_false(spool_text(&s, SPOOL_OUT, &text));
    assert_string_equal(text.data, "abcdefghij");
    for (int i = 0; i < 40000; i++) /* in single bytes, between those of the other stream */
        spool_add(&s, i % 2 ? SPOOL_OUT : SPOOL_ERR, i == 39999 ? "z" : "y", 1);
    buf_clear(&text);
    assert_true(spool_text(&s, SPOOL_OUT, &text));
    assert_memory_equal(text.data, cut, strlen(cut));
    assert_int_equal(text.data[text.len - 1], 'z');
    assert_int_equal(text.len, strlen(cut) + SPOOL_TAIL);
    spool_done(&s);
    assert_int_equal(all.bytes, 0);
}

/* All together have a limit, and what goes makes room. */
static void test_together(void **state)
{
    struct temp *t = *state;
    struct spools all = {.folder = t->fd, .bytes = LIMIT_SPOOLS - (1u << 20)};
    autofree char *block = calloc(1, 1u << 20);
    struct spool s;

    spool_init(&s, &all, 4);
    spool_add(&s, SPOOL_OUT, block, 512u << 10);
    assert_int_equal(s.dropped, 0);
    spool_add(&s, SPOOL_OUT, block, 1u << 20);
    assert_true(s.dropped > 0);
    spool_done(&s);
    assert_int_equal(all.bytes, LIMIT_SPOOLS - (1u << 20));
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM_IN_TEMP("pieces come back in order, from any place on", test_order),
        CLAIM_IN_TEMP("what goes to a file is read as before", test_spill),
        CLAIM_IN_TEMP("beyond the limit nothing is kept, and that is counted", test_limit),
        CLAIM_IN_TEMP("all spools together have a limit", test_together),
        CLAIM_IN_TEMP("a stream as text has its beginning and its end", test_text),
    };

    return RUN_CLAIMS("tool/spool", claims);
}
