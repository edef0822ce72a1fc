/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "store/internal.h"
#include "tests/unit/store/make.h"

static json_t *ask(const struct temp *t, const struct records_filter *f, bool *more)
{
    json_t *list = NULL;
    struct error err;

    CHECK_OK(records_query(t->fd, f, &list, more, &err), err);
    return list;
}

static size_t count(const struct temp *t, const struct records_filter *f)
{
    bool more;
    json_t *list = ask(t, f, &more);
    size_t n = json_array_size(list);

    json_decref(list);
    return n;
}

/* 60 records, one each second of a minute. */
static void fill(const struct temp *t)
{
    autobuf b;

    buf_init(&b, 1u << 20);
    for (unsigned i = 0; i < 60; i++)
        buf_printf(&b,
                   "{\"time\":\"2026-11-15T12:00:%02u.%03uZ\",\"event\":\"%s\",\"call\":\"c%u\","
                   "\"agent\":\"%s\",\"session\":\"%s\",\"token\":\"t\",\"tool\":\"exec\","
                   "\"hash\":\"%064x\"}\n",
                   i, i, i % 2 ? "call.end" : "call.begin", i / 2, i % 3 ? "main" : "other",
                   i % 5 ? "agent:main:main" : "a \\\"b\\\" c", i);
    temp_write(t, "audit.jsonl", b.data, b.len);
}

static void test_filters(void **state)
{
    static const struct {
        struct records_filter f;
        size_t n;
    } rows[] = {
        {{0}, 60},
        {{.limit = 9}, 9},
        {{.limit = 5000}, 60},
        {{.event = "call.end"}, 30},
        {{.event = "call.*"}, 60},
        {{.event = "*"}, 60},
        {{.event = "run.*"}, 0},
        {{.event = "call"}, 0},
        {{.call = "c7"}, 2},
        {{.call = "c"}, 0},
        {{.agent = "other"}, 20},
        {{.agent = "call.end"}, 0},
        {{.session = "a \"b\" c"}, 12},
        {{.session = "agent:main:main", .event = "call.begin", .agent = "main"}, 16},
        {{.token = "t", .tool = "exec"}, 60},
        {{.tool = "read"}, 0},
        {{.since = "2026-11-15T12:00:30Z"}, 30},
        {{.since = "2026-11-15T12:00:30.030Z"}, 30},
        {{.since = "2026-11-15T12:00:30.031Z"}, 29},
        {{.until = "2026-11-15T12:00:30Z"}, 31},
        {{.until = "2026-11-15T12:00:30.029Z"}, 30},
        {{.since = "2026-11-15", .until = "2026-11-15T12:00:0"}, 10},
        {{.since = "2027"}, 0},
        {{.until = "2025"}, 0},
    };
    const struct temp *t = *state;

    fill(t);
    FOR_EACH(row, rows)
    CHECK(count(t, &row->f) == row->n, "row %zu: %zu, not %zu", (size_t)(row - rows),
          count(t, &row->f), row->n);
}

static void test_order(void **state)
{
    const struct temp *t = *state;
    struct records_filter f = {.limit = 60};
    bool more;
    json_t *list;

    fill(t);
    list = ask(t, &f, &more);
    assert_false(more);
    assert_string_equal(field(list, 0, "time"), "2026-11-15T12:00:59.059Z");
    assert_string_equal(field(list, 59, "time"), "2026-11-15T12:00:00.000Z");
    json_decref(list);
    f.limit = 59;
    list = ask(t, &f, &more);
    assert_true(more);
    json_decref(list);
}

/* The clock was set back for a while: what came before is found all the same. */
static void test_clock(void **state)
{
    const struct temp *t = *state;
    struct records_filter f = {.since = "2026-11-15T12:00:30"};
    int fd;

    fill(t);
    fd = openat(t->fd, "audit.jsonl", O_WRONLY | O_APPEND | O_CLOEXEC);
    for (int i = 0; i < 500; i++)
        assert_true(dprintf(fd, "{\"time\":\"2025-01-01T00:00:00.000Z\"}\n") > 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(count(t, &f), 30);
}

static void test_bad_times(void **state)
{
    static const char *const bad[] = {"yesterday", "2026-11-15 12:00", "2026-11-15T12:00:00+01",
                                      "2026-11-15T12:00:00.0000Z", "20x6"};
    const struct temp *t = *state;
    struct error err;
    json_t *list;
    bool more;

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct records_filter since = {.since = bad[i]}, until = {.until = bad[i]};

        CHECK_ERR(records_query(t->fd, &since, &list, &more, &err), err, ERR_INVALID, "time");
        CHECK_ERR(records_query(t->fd, &until, &list, &more, &err), err, ERR_INVALID, "time");
    }
}

static void test_torn(void **state)
{
    const struct temp *t = *state;
    static const char torn[] = "{\"time\":\"2026-11-15T12:01:00.000Z\",\"event\":\"call.beg";
    struct records_filter f = {0};
    int fd;

    assert_int_equal(count(t, &f), 0); /* there is none */
    temp_write(t, "audit.jsonl", "", 0);
    assert_int_equal(count(t, &f), 0);
    temp_write(t, "audit.jsonl", "\n\n", 2);
    assert_int_equal(count(t, &f), 0);
    temp_write(t, "audit.jsonl", "{\"a\":1}", 7); /* only its newline is missing */
    assert_int_equal(count(t, &f), 1);
    fill(t);
    fd = openat(t->fd, "audit.jsonl", O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, torn, sizeof(torn) - 1), sizeof(torn) - 1);
    assert_int_equal(count(t, &f), 60);
    assert_int_equal(write(fd, "\n[1]\n{\"time\":1}\n7\n", 18), 18);
    assert_int_equal(count(t, &f), 61);
    assert_int_equal(close(fd), 0);
}

/* A line that is longer than any of ours, wherever it meets the blocks. */
static void test_long_lines(void **state)
{
    static const size_t lens[] = {LIMIT_LINE - 1, LIMIT_LINE,         LIMIT_LINE + 1, 65536,
                                  131072,         LIMIT_LINE + 65536, 1u << 20};
    const struct temp *t = *state;
    struct records_filter f = {0};

    for (size_t i = 0; i < COUNT(lens); i++) {
        for (size_t shift = 0; shift < 3; shift++) {
            autobuf b;
            size_t n = lens[i] - 7;

            buf_init(&b, 4u << 20);
            buf_puts(&b, "{\"a\":1}\n{\"b\":2}\n");
            buf_puts(&b, "{\"l\":1"); /* with its spaces alone it would be one */
            for (size_t k = 0; k < n; k++)
                buf_append(&b, k == 0 ? "}" : " ", 1);
            buf_puts(&b, lens[i] <= LIMIT_LINE ? " \n" : "x\n");
            for (size_t k = 0; k < shift * 4681; k++)
                buf_puts(&b, "{\"c\":3}   \n   "); /* blocks end elsewhere */
            buf_puts(&b, "{\"d\":3}\n");
            assert_false(b.failed);
            temp_write(t, "audit.jsonl", b.data, b.len);
            f.limit = 1000;
            if (shift == 0)
                CHECK(count(t, &f) == (lens[i] <= LIMIT_LINE ? 4 : 3), "%zu: %zu", lens[i],
                      count(t, &f));
            else
                assert_int_equal(count(t, &f), 1000);
        }
    }
}

static void test_not_ours(void **state)
{
    const struct temp *t = *state;
    struct records_filter f = {0};
    struct error err;
    json_t *list;
    bool more;

    fill(t);
    assert_int_equal(fchmodat(t->fd, "audit.jsonl", 0644, 0), 0);
    CHECK_ERR(records_query(t->fd, &f, &list, &more, &err), err, ERR_DENIED, "chmod 600");
    assert_int_equal(unlinkat(t->fd, "audit.jsonl", 0), 0);
    assert_int_equal(symlinkat("/dev/zero", t->fd, "audit.jsonl"), 0);
    CHECK_ERR(records_query(t->fd, &f, &list, &more, &err), err, ERR_SYS, "audit.jsonl");
    assert_int_equal(unlinkat(t->fd, "audit.jsonl", 0), 0);
    assert_int_equal(mkfifoat(t->fd, "audit.jsonl", 0600), 0);
    CHECK_ERR(records_query(t->fd, &f, &list, &more, &err), err, ERR_DENIED, "private");
}

/* As audit_append() writes them. */
static void test_format(void **state)
{
    const struct temp *t = *state;
    struct records_filter f = {.session = "\"\\\n\x7f é /:-"};
    struct audit a = {.dir = t->fd};
    struct error err;
    char text[LINE_TIME];
    json_t *list;
    autobuf b;
    bool more;
    int64_t ms;

    buf_init(&b, 4096);
    buf_json_str(&b, "session", f.session);
    CHECK_OK(audit_append(&a, "call.begin", "x", &b, &err), err);
    list = ask(t, &f, &more);
    assert_int_equal(json_array_size(list), 1);
    ms = line_time_parse(field(list, 0, "time"));
    assert_in_range(ms / 1000, (int64_t)time(NULL) - 5, (int64_t)time(NULL) + 1);
    line_time_format(ms, text);
    assert_string_equal(text, field(list, 0, "time"));
    json_decref(list);
}

static double seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* 10^5 lines: any question is answered soon, and with little memory. */
static void test_many(void **state)
{
    const struct temp *t = *state;
    struct records_filter rare = {.call = "c7"}, none = {.session = "a / b"}, last = {.limit = 3},
                          soon = {.since = "2026-11-15T13:59"};
    double start;
    autobuf b;

    buf_init(&b, 64u << 20);
    for (unsigned i = 0; i < 100000; i++)
        buf_printf(&b,
                   "{\"time\":\"2026-11-15T%02u:%02u:%02u.000Z\",\"event\":\"call.begin\",\"call\":"
                   "\"c%u\",\"agent\":\"main\",\"session\":\"agent:main:main\",\"tool\":\"exec\","
                   "\"target\":\"echo hello and some more words\",\"verdict\":\"allow\","
                   "\"hash\":\"%064x\"}\n",
                   i / 10000, i / 200 % 60, i / 3 % 60, i, i);
    temp_write(t, "audit.jsonl", b.data, b.len);
    start = seconds();
    assert_int_equal(count(t, &last), 3);
    assert_int_equal(count(t, &soon), 0);
    CHECK(seconds() - start < 0.5, "the end of the file took %.1f s", seconds() - start);
    assert_int_equal(count(t, &rare), 1);
    assert_int_equal(count(t, &none), 0);
    CHECK(seconds() - start < 30, "the whole file took %.1f s", seconds() - start);
    print_message("# 100000 lines, %zu MB: %.3f s\n", b.len >> 20, seconds() - start);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM_IN_TEMP("records are found by their fields and times", test_filters),
        CLAIM_IN_TEMP("the newest comes first, and more is said", test_order),
        CLAIM_IN_TEMP("a clock that was set back hides nothing", test_clock),
        CLAIM_IN_TEMP("times that are none are refused", test_bad_times),
        CLAIM_IN_TEMP("torn lines are left out", test_torn),
        CLAIM_IN_TEMP("lines that are too long are left out, wherever they lie", test_long_lines),
        CLAIM_IN_TEMP("a file that is not ours is refused", test_not_ours),
        CLAIM_IN_TEMP("what audit_append() writes is read", test_format),
        CLAIM_IN_TEMP("a hundred thousand lines take a moment", test_many),
    };

    return RUN_CLAIMS("store/records", claims);
}
