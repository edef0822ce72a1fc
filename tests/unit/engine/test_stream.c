/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/stream.h"

#include <signal.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "engine/tty.h"
#include "tests/test.h"

/* from[1] is the writer's end, to[0] the reader's; the stream owns the two between. */
struct ends {
    int from[2], to[2];
    struct stream r;
};

static void open_ends(struct ends *e)
{
    (void)signal(SIGPIPE, SIG_IGN); /* as run.c does */
    assert_int_equal(pipe2(e->from, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(pipe2(e->to, O_CLOEXEC | O_NONBLOCK), 0);
    e->r = (struct stream){.from = e->from[0], .to = e->to[1], .own_from = true, .own_to = true};
}

static void close_ends(struct ends *e)
{
    stream_done(&e->r);
    stream_done(&e->r); /* twice is once */
    if (e->from[1] >= 0)
        (void)close(e->from[1]);
    if (e->to[0] >= 0)
        (void)close(e->to[0]);
}

static void test_carries(void **state)
{
    struct ends e;
    char got[16];

    (void)state;
    open_ends(&e);
    assert_int_equal(write(e.from[1], "hello", 5), 5);
    assert_int_equal(stream_wants(&e.r).fd, e.r.from);
    assert_int_equal(stream_move(&e.r, UINT64_MAX), 0);
    assert_int_equal(read(e.to[0], got, sizeof(got)), 5);
    assert_memory_equal(got, "hello", 5);
    assert_int_equal(e.r.bytes, 5);
    assert_false(stream_is_done(&e.r));
    assert_int_equal(stream_move(&e.r, UINT64_MAX), 0); /* nothing there: no harm */
    assert_false(stream_is_done(&e.r));
    (void)close(e.from[1]);
    e.from[1] = -1;
    assert_int_equal(stream_move(&e.r, UINT64_MAX), 0);
    assert_true(stream_is_done(&e.r));
    assert_int_equal(e.r.to, -1); /* and the reader sees the end */
    assert_int_equal(read(e.to[0], got, sizeof(got)), 0);
    assert_int_equal(stream_wants(&e.r).fd, -1);
    close_ends(&e);
}

static void test_allowance(void **state)
{
    static const struct {
        uint64_t allowance;
        size_t written, carried, counted;
    } rows[] = {{10, 5, 5, 5},  {5, 5, 5, 5}, {4, 5, 4, 5},
                {4, 100, 4, 5}, {0, 5, 0, 1}, {UINT64_MAX, 100, 100, 100}};

    (void)state;
    FOR_EACH(row, rows)
    {
        char data[200] = {0};
        struct ends e;
        ssize_t n;

        open_ends(&e);
        assert_int_equal(write(e.from[1], data, row->written), (ssize_t)row->written);
        assert_int_equal(stream_move(&e.r, row->allowance), 0);
        n = read(e.to[0], data, sizeof(data));
        CHECK((n < 0 ? 0 : (size_t)n) == row->carried && e.r.bytes == row->counted,
              "allowance %llu of %zu: carried %zd, counted %llu",
              (unsigned long long)row->allowance, row->written, n, (unsigned long long)e.r.bytes);
        close_ends(&e);
    }
}

/* A reader that does not read: the rest is kept, and nothing more is taken. */
static void test_blocked(void **state)
{
    static char data[LIMIT_STREAM_CHUNK], got[4 * LIMIT_STREAM_CHUNK];
    struct ends e;
    size_t sent = 0, seen = 0;
    ssize_t n;

    (void)state;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * 13 >> 2);
    open_ends(&e);
    while (sent < 3 * sizeof(data)) {
        n = write(e.from[1], data + sent % sizeof(data), sizeof(data) - sent % sizeof(data));
        if (n > 0)
            sent += (size_t)n;
        assert_int_equal(stream_move(&e.r, UINT64_MAX), 0);
        if (e.r.start != e.r.end) {
            uint64_t before = e.r.bytes;

            assert_int_equal(stream_wants(&e.r).fd, e.r.to);
            assert_int_equal(stream_wants(&e.r).events, POLLOUT);
            assert_int_equal(stream_move(&e.r, UINT64_MAX), 0);
            assert_int_equal(e.r.bytes, before);
            n = read(e.to[0], got + seen, sizeof(got) - seen);
            assert_true(n > 0);
            seen += (size_t)n;
        }
    }
    (void)close(e.from[1]);
    e.from[1] = -1;
    while (!stream_is_done(&e.r)) {
        assert_int_equal(stream_move(&e.r, UINT64_MAX), 0);
        n = read(e.to[0], got + seen, sizeof(got) - seen);
        seen += n > 0 ? (size_t)n : 0;
    }
    while ((n = read(e.to[0], got + seen, sizeof(got) - seen)) > 0)
        seen += (size_t)n;
    assert_int_equal(seen, sent);
    for (size_t i = 0; i < sent; i += sizeof(data))
        assert_memory_equal(got + i, data, sent - i < sizeof(data) ? sent - i : sizeof(data));
    close_ends(&e);
}

static void test_reader_gone(void **state)
{
    struct ends e;

    (void)state;
    open_ends(&e);
    (void)close(e.to[0]);
    e.to[0] = -1;
    assert_int_equal(write(e.from[1], "x", 1), 1);
    assert_int_equal(stream_move(&e.r, UINT64_MAX), 0);
    assert_true(stream_is_done(&e.r));
    assert_int_equal(write(e.from[1], "x", 1), -1); /* the writer learns of it */
    assert_int_equal(errno, EPIPE);
    close_ends(&e);
}

static void test_broken(void **state)
{
    struct ends e;

    (void)state;
    open_ends(&e);
    assert_int_equal(close(e.r.to), 0);
    e.r.to = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(e.r.to >= 0);
    assert_int_equal(write(e.from[1], "x", 1), 1);
    assert_int_equal(stream_move(&e.r, UINT64_MAX), -ENOSPC);
    assert_true(stream_is_done(&e.r));
    close_ends(&e);
}

static void test_borrowed(void **state)
{
    struct ends e;
    int from, to;

    (void)state;
    open_ends(&e);
    e.r.own_from = e.r.own_to = false;
    from = e.r.from;
    to = e.r.to;
    stream_done(&e.r);
    assert_true(fcntl(from, F_GETFD) >= 0 && fcntl(to, F_GETFD) >= 0);
    (void)close(from);
    (void)close(to);
    close_ends(&e);
}

static void test_filters(void **state)
{
    static const char in[] = "a\x1b]0;evil\x07"
                             "b\x1b[31",
                      more[] = "mc";
    struct tty_filter f = {0};
    char got[32];
    struct ends e;

    (void)state;
    open_ends(&e);
    e.r.filter = &f;
    assert_int_equal(write(e.from[1], in, sizeof(in) - 1), sizeof(in) - 1);
    assert_int_equal(stream_move(&e.r, UINT64_MAX), 0);
    assert_int_equal(read(e.to[0], got, sizeof(got)), 2);
    assert_memory_equal(got, "ab", 2);
    assert_int_equal(write(e.from[1], more, 2), 2);
    assert_int_equal(stream_move(&e.r, UINT64_MAX), 0);
    assert_int_equal(read(e.to[0], got, sizeof(got)), 6);
    assert_memory_equal(got, "\x1b[31mc", 6);
    assert_int_equal(e.r.bytes, sizeof(in) - 1 + 2); /* what the box wrote, not what passed */
    close_ends(&e);
}

static void test_can_pass(void **state)
{
    struct temp *t = *state;
    int p[2], s[2], null = open("/dev/null", O_RDWR | O_CLOEXEC),
                    zero = open("/dev/zero", O_RDONLY | O_CLOEXEC), file;

    temp_write(t, "file", "x", 1);
    file = openat(t->fd, "file", O_RDONLY | O_CLOEXEC);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
    assert_false(stream_can_pass(p[0]) ||
                 stream_can_pass(p[1])); /* could be opened against its direction */
    assert_true(stream_can_pass(null));
    assert_false(stream_can_pass(zero));
    assert_false(stream_can_pass(file));
    assert_false(stream_can_pass(t->fd));
    assert_false(stream_can_pass(s[0]));
    assert_false(stream_can_pass(-1));
    for (int i = 0; i < 2; i++) {
        (void)close(p[i]);
        (void)close(s[i]);
    }
    (void)close(null);
    (void)close(zero);
    (void)close(file);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("bytes are carried until the end, which is passed on", test_carries),
        CLAIM("no byte above the allowance is carried, and going over is seen", test_allowance),
        CLAIM("a reader that does not read loses nothing", test_blocked),
        CLAIM("a reader that is gone ends the stream quietly", test_reader_gone),
        CLAIM("a broken end is an error, once", test_broken),
        CLAIM("borrowed descriptors stay open", test_borrowed),
        CLAIM("what goes to a terminal is filtered across moves", test_filters),
        CLAIM_IN_TEMP("only /dev/null passes as it is", test_can_pass),
    };

    return RUN_CLAIMS("engine/stream", claims);
}
