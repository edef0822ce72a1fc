/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/audit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "tests/test.h"

#define FILE_NAME "logs/audit.jsonl"

/* Every test has a data folder of its own. */
static int setup(void **state)
{
    int r = temp_setup(state);

    (void)setenv("CLAWDEN_DATA_DIR", ((struct temp *)*state)->path, 1);
    return r;
}

static void append_text(const char *event, const char *fields)
{
    struct audit a = {.dir = -1};
    struct error err;
    autobuf f;

    buf_init(&f, LIMIT_AUDIT_LINE);
    buf_puts(&f, fields);
    CHECK_OK(audit_open(&a, &err), err);
    CHECK_OK(audit_append(&a, event, "target", &f, &err), err);
    audit_close(&a);
}

static struct audit_check verify(void)
{
    struct audit a = {.dir = -1};
    struct audit_check c = {0};
    struct error err;

    CHECK_OK(audit_open(&a, &err), err);
    CHECK_OK(audit_verify(&a, &c, &err), err);
    audit_close(&a);
    return c;
}

static void append_three(void)
{
    append_text("run.begin", "\"argv\":[\"a\"]");
    append_text("run.end", "\"exit\":0,\"hash\":\"not this one\"");
    append_text("run.begin", "");
}

static void test_chain_holds(void **state)
{
    struct temp *t = *state;
    autofree char *text = NULL;
    struct audit_check c;
    struct stat st;

    append_three();
    c = verify();
    assert_int_equal(c.lines, 3);
    assert_int_equal(c.bad_line, 0);
    assert_null(c.why);
    assert_int_equal(fstatat(t->fd, FILE_NAME, &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    text = temp_read(t, FILE_NAME, NULL);
    assert_memory_equal(text, "{\"time\":\"20", 11);
    assert_non_null(strstr(text, ",\"event\":\"run.begin\",\"argv\":[\"a\"],\"hash\":\""));
    assert_non_null(strstr(text, ",\"event\":\"run.begin\",\"hash\":\""));
}

/* Which line a byte belongs to, from 1. */
static unsigned long line_of(const char *text, size_t at)
{
    unsigned long n = 1;

    for (size_t i = 0; i < at; i++)
        n += text[i] == '\n';
    return n;
}

/* The two bytes between hash and newline are the only ones that are not looked at. */
static bool is_after_hash(const char *text, size_t at)
{
    return (text[at] == '"' && text[at + 1] == '}' && text[at + 2] == '\n') ||
           (text[at] == '}' && text[at + 1] == '\n');
}

static void flip_all(struct temp *t, bool after_hash)
{
    autofree char *text = NULL;
    struct audit_check c;
    size_t len;

    append_three();
    text = temp_read(t, FILE_NAME, &len);
    for (size_t i = 0; i < len; i++) {
        char was = text[i];

        if (is_after_hash(text, i) != after_hash)
            continue;
        text[i] ^= 1;
        temp_write(t, FILE_NAME, text, len);
        text[i] = was;
        c = verify();
        CHECK(c.bad_line && c.bad_line <= line_of(text, i) + 1,
              "byte %zu of line %lu: bad line %lu", i, line_of(text, i), c.bad_line);
        CHECK(c.bad_line >= line_of(text, i) && c.why && c.why[0], "byte %zu: line %lu", i,
              c.bad_line);
    }
}

static void test_changed(void **state)
{
    flip_all(*state, false);
}

static void test_changed_end(void **state)
{
    flip_all(*state, true);
}

static void test_removed(void **state)
{
    struct temp *t = *state;
    autofree char *text = NULL, *cut = NULL;
    char *second, *third;
    size_t len;

    append_three();
    text = temp_read(t, FILE_NAME, &len);
    cut = malloc(len);
    assert_non_null(cut);
    second = strchr(text, '\n') + 1;
    third = strchr(second, '\n') + 1;

    temp_write(t, FILE_NAME, second, len - (size_t)(second - text)); /* the first */
    assert_int_equal(verify().bad_line, 1);

    memcpy(cut, text, (size_t)(second - text)); /* one in the middle */
    memcpy(cut + (second - text), third, len - (size_t)(third - text));
    temp_write(t, FILE_NAME, cut, len - (size_t)(third - second));
    assert_int_equal(verify().bad_line, 2);

    temp_write(t, FILE_NAME, text, (size_t)(third - text)); /* the last: a chain cannot show that */
    assert_int_equal(verify().bad_line, 0);
    assert_int_equal(verify().lines, 2);
}

static void test_put_in(void **state)
{
    struct temp *t = *state;
    autofree char *text = NULL, *more = NULL;
    size_t len, first;

    append_three();
    text = temp_read(t, FILE_NAME, &len);
    first = (size_t)(strchr(text, '\n') + 1 - text);
    more = malloc(len + first);
    assert_non_null(more);
    memcpy(more, text, first); /* the first line twice */
    memcpy(more + first, text, len);
    temp_write(t, FILE_NAME, more, len + first);
    assert_int_equal(verify().bad_line, 2);
}

static void test_swapped(void **state)
{
    struct temp *t = *state;
    autofree char *text = NULL, *other = NULL;
    size_t len, a, b;

    append_three();
    text = temp_read(t, FILE_NAME, &len);
    other = malloc(len);
    assert_non_null(other);
    a = (size_t)(strchr(text, '\n') + 1 - text);
    b = (size_t)(strchr(text + a, '\n') + 1 - text) - a;
    memcpy(other, text + a, b);
    memcpy(other + b, text, a);
    memcpy(other + a + b, text + a + b, len - a - b);
    temp_write(t, FILE_NAME, other, len);
    assert_int_equal(verify().bad_line, 1);
}

static void test_torn(void **state)
{
    struct temp *t = *state;
    autofree char *text = NULL, *after = NULL;
    size_t len, cut, now;

    append_three();
    text = temp_read(t, FILE_NAME, &len);
    cut = len - 40;
    temp_write(t, FILE_NAME, text, cut);
    assert_int_equal(verify().bad_line, 3);
    assert_string_equal(verify().why, "the last line is torn");
    append_text("run.begin", "\"after\":true");
    after = temp_read(t, FILE_NAME, &now);
    assert_memory_equal(after, text, cut); /* what was there is not overwritten */
    assert_int_equal(after[cut], '\n');
    assert_non_null(strstr(after + cut + 1, "\"after\":true"));
    assert_int_equal(verify().bad_line, 3);
}

static void test_no_newline(void **state)
{
    struct temp *t = *state;
    autofree char *text = NULL;
    size_t len;

    append_three();
    text = temp_read(t, FILE_NAME, &len);
    temp_write(t, FILE_NAME, text, len - 1);
    append_text("run.begin", "");
    assert_int_equal(verify().bad_line, 0);
    assert_int_equal(verify().lines, 4);
}

/* A line whose body has exactly `want` bytes, or fails. */
static int append_body(size_t want, struct error *err)
{
    static const char head[] = "{\"time\":\"2025-01-01T00:00:00.000Z\",\"event\":\"e\",";
    struct audit a = {.dir = -1};
    autobuf f;
    int r;

    buf_init(&f, 2 * LIMIT_AUDIT_LINE);
    buf_puts(&f, "\"x\":\"");
    while (f.len < want - (sizeof(head) - 1) - 1)
        buf_puts(&f, "a");
    buf_puts(&f, "\"");
    CHECK_OK(audit_open(&a, err), *err);
    r = audit_append(&a, "e", "t", &f, err);
    audit_close(&a);
    return r;
}

static void test_too_long(void **state)
{
    struct error err = {0};

    (void)state;
    assert_int_equal(append_body(LIMIT_AUDIT_LINE - 100, &err), 0);
    CHECK_ERR(append_body(LIMIT_AUDIT_LINE + 1, &err), err, ERR_TOO_LARGE, "too long");
    assert_int_equal(append_body(1000, &err), 0);
    assert_int_equal(verify().bad_line, 0);
    assert_int_equal(verify().lines, 2);
}

static void test_almost_too_long(void **state)
{
    struct error err = {0};

    (void)state;
    for (size_t n = LIMIT_AUDIT_LINE - 80; n <= LIMIT_AUDIT_LINE + 1; n++) {
        int r = append_body(n, &err);
        struct audit_check c = verify();

        CHECK(c.bad_line == 0, "body of %zu bytes (result %d): line %lu, %s", n, r, c.bad_line,
              c.why);
    }
}

static void test_failed_fields(void **state)
{
    struct audit a = {.dir = -1};
    struct error err;
    autobuf f;

    (void)state;
    buf_init(&f, 3);
    buf_puts(&f, "too much");
    CHECK_OK(audit_open(&a, &err), err);
    CHECK_ERR(audit_append(&a, "e", "t", &f, &err), err, ERR_TOO_LARGE, "'e'");
    assert_int_equal(verify().lines, 0);
    audit_close(&a);
}

static void test_not_private(void **state)
{
    struct temp *t = *state;
    struct audit a = {.dir = -1};
    struct error err;
    autobuf f;

    buf_init(&f, 10);
    append_three();
    CHECK_OK(audit_open(&a, &err), err);
    assert_int_equal(fchmodat(t->fd, FILE_NAME, 0644, 0), 0);
    CHECK_ERR(audit_append(&a, "e", "t", &f, &err), err, ERR_DENIED, "0600");
    assert_int_equal(unlinkat(t->fd, FILE_NAME, 0), 0);
    temp_write(t, "elsewhere", "", 0);
    assert_int_equal(symlinkat("../elsewhere", t->fd, FILE_NAME), 0);
    CHECK_ERR(audit_append(&a, "e", "t", &f, &err), err, ERR_SYS, "audit.jsonl");
    assert_int_equal(unlinkat(t->fd, FILE_NAME, 0), 0);
    assert_int_equal(mkfifoat(t->fd, FILE_NAME, 0600), 0);
    CHECK_ERR(audit_append(&a, "e", "t", &f, &err), err, ERR_DENIED, "not a private file");
    audit_close(&a);
    audit_close(&a); /* twice is once */
}

static void test_plain_text(void **state)
{
    struct temp *t = *state;
    autofree char *text = NULL;
    unsigned long long when;
    unsigned uid;

    append_text("run.begin", "");
    text = temp_read(t, "logs/audit.log", NULL);
    assert_int_equal(sscanf(text, "%llu\trun.begin\ttarget\tuid:%u\n", &when, &uid), 2);
    assert_int_equal(uid, getuid());
    assert_true(when > 1600000000000ULL); /* milliseconds */
}

static void test_plain_text_is_one_line(void **state)
{
    struct temp *t = *state;
    struct audit a = {.dir = -1};
    struct error err;
    autofree char *text = NULL;
    autobuf f;
    size_t tabs = 0;

    buf_init(&f, 10);
    CHECK_OK(audit_open(&a, &err), err);
    CHECK_OK(audit_append(&a, "run.begin", "x\tuid:0\n1\trun.end\ty", &f, &err), err);
    audit_close(&a);
    text = temp_read(t, "logs/audit.log", NULL);
    for (const char *p = text; *p; p++)
        tabs += *p == '\t';
    assert_int_equal(tabs, 3);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void test_long_target(void **state)
{
    struct temp *t = *state;
    struct audit a = {.dir = -1};
    struct error err;
    char target[3000];
    autofree char *text = NULL;
    autobuf f;

    memset(target, 'a', sizeof(target) - 1);
    target[sizeof(target) - 1] = 0;
    buf_init(&f, 10);
    CHECK_OK(audit_open(&a, &err), err);
    CHECK_OK(audit_append(&a, "run.begin", target, &f, &err), err);
    audit_close(&a);
    text = temp_read(t, "logs/audit.log", NULL);
    assert_int_equal(text[strlen(text) - 1], '\n');
    assert_true(strlen(text) < 1024);
}

/* Several writers at once: lines neither mix nor break the chain. */
static void test_writers(void **state)
{
    enum { WRITERS = 4, LINES = 25 };
    pid_t pids[WRITERS];
    int status;

    (void)state;
    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            struct audit a = {.dir = -1};
            struct error err;
            struct buf f;
            int bad = 0;

            buf_init(&f, 10);
            bad += audit_open(&a, &err) < 0;
            for (int n = 0; n < LINES; n++)
                bad += audit_append(&a, "run.begin", "t", &f, &err) < 0;
            _exit(bad ? 1 : 0);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(verify().lines, WRITERS * LINES);
    assert_int_equal(verify().bad_line, 0);
}

#define CLAIM_AUDIT(text, fn)                                                                  \
    {                                                                                          \
        .name = (text), .test_func = (fn), .setup_func = setup, .teardown_func = temp_teardown \
    }

static int append_to(struct audit *a)
{
    struct error err;
    autobuf f;

    buf_init(&f, LIMIT_AUDIT_LINE);
    return audit_append(a, "run.begin", "target", &f, &err);
}

/* Who keeps it open writes where the name leads, and keeps nobody out in between. */
static void test_kept_open(void **state)
{
    struct temp *t = *state;
    struct audit a = {.dir = -1};
    char path[512], away[512];
    struct error err;

    (void)snprintf(path, sizeof(path), "%s/" FILE_NAME, t->path);
    (void)snprintf(away, sizeof(away), "%s/logs/away", t->path);
    CHECK_OK(audit_open(&a, &err), err);
    assert_int_equal(append_to(&a), 0);
    append_text("run.end", ""); /* another one: it would wait for ever */
    assert_int_equal(append_to(&a), 0);
    assert_int_equal(verify().lines, 3);
    assert_int_equal(rename(path, away), 0);
    assert_int_equal(append_to(&a), 0);
    assert_int_equal(verify().lines, 1);
    assert_int_equal(chmod(path, 0644), 0);
    assert_true(append_to(&a) < 0);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(append_to(&a), 0);
    assert_int_equal(verify().lines, 2);
    audit_close(&a);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM_AUDIT("a chain that nobody touched holds, in a file of 0600", test_chain_holds),
        CLAIM_AUDIT("an audit line that was changed breaks the chain from there on", test_changed),
        CLAIM_AUDIT("a change behind the hash breaks the chain too", test_changed_end),
        CLAIM_AUDIT("an audit line that was removed breaks the chain", test_removed),
        CLAIM_AUDIT("an audit line that was put in breaks the chain", test_put_in),
        CLAIM_AUDIT("audit lines that changed places break the chain", test_swapped),
        CLAIM_AUDIT("a torn last line is told, not overwritten", test_torn),
        CLAIM_AUDIT("a last line without its newline keeps its place in the chain",
                    test_no_newline),
        CLAIM_AUDIT("an event that is too long is refused whole", test_too_long),
        CLAIM_AUDIT("an event at the limit is written whole or not at all", test_almost_too_long),
        CLAIM_AUDIT("fields that did not fit are not recorded as if they had", test_failed_fields),
        CLAIM_AUDIT("a log that others may read, or that is no file, is not used",
                    test_not_private),
        CLAIM_AUDIT("the plain log has time, event, target and user", test_plain_text),
        CLAIM_AUDIT("an event is one line of the plain log, whatever its target is",
                    test_plain_text_is_one_line),
        CLAIM_AUDIT("a long target is cut in the plain log", test_long_target),
        CLAIM_AUDIT("writers at the same time keep one chain", test_writers),
        CLAIM_AUDIT("a record that is kept open follows its file, and locks it for a line only",
                    test_kept_open),
    };

    return RUN_CLAIMS("audit/audit", claims);
}
