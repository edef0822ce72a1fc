/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/tunnel.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/test.h"

/* Two peers with a tunnel between them: x <-> (tunnel) <-> y. */
struct scene {
    struct tunnel t;
    struct loop *l;
    int x, y;
    int ends;
    enum tunnel_end how;
};

static void on_end(struct tunnel *t, enum tunnel_end how)
{
    struct scene *s = (struct scene *)t;

    s->ends++;
    s->how = how;
    loop_quit(s->l);
}

static void begin(struct scene *s)
{
    int a[2], b[2];

    assert_int_equal(loop_new(&s->l), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, a), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, b), 0);
    s->x = a[0];
    s->y = b[0];
    s->t.on_end = on_end;
    assert_int_equal(tunnel_start(&s->t, s->l, a[1], b[1]), 0);
}

static void end(struct scene *s)
{
    tunnel_close(&s->t);
    close(s->x);
    close(s->y);
    loop_free(s->l);
}

struct pump {
    struct loop_io out, in;
    const char *data;
    char *got;
    size_t len, sent, received;
    struct scene *s;
    bool half; /* shut the writing end when all is sent */
};

static void on_out(struct loop_io *io, uint32_t events)
{
    struct pump *p = (struct pump *)io;
    ssize_t n = write(io->fd, p->data + p->sent, p->len - p->sent);

    (void)events;
    if (n > 0)
        p->sent += (size_t)n;
    if (p->sent == p->len) {
        if (p->half)
            (void)shutdown(io->fd, SHUT_WR);
        loop_remove(io);
    }
}

static void on_in(struct loop_io *io, uint32_t events)
{
    struct pump *p = (struct pump *)((char *)io - offsetof(struct pump, in));
    ssize_t n = read(io->fd, p->got + p->received, p->len + 1 - p->received);

    (void)events;
    if (n > 0)
        p->received += (size_t)n;
    if (n == 0 || (!p->half && p->received == p->len)) {
        loop_remove(io);
        if (!p->half)
            loop_quit(p->s->l);
    }
}

static void start_pump(struct pump *p, struct scene *s, int from, int to, char *data, size_t len)
{
    *p = (struct pump){.out.on_ready = on_out,
                       .in.on_ready = on_in,
                       .data = data,
                       .len = len,
                       .got = malloc(len + 1),
                       .s = s,
                       .half = true};
    assert_non_null(p->got);
    /* Two sources on one socket need two descriptors. */
    assert_int_equal(loop_add(s->l, &p->out, dup(from), EPOLLOUT), 0);
    assert_int_equal(loop_add(s->l, &p->in, dup(to), EPOLLIN), 0);
}

static void check_pump(struct pump *p)
{
    assert_int_equal(p->received, p->len);
    assert_memory_equal(p->got, p->data, p->len);
    close(p->out.fd);
    close(p->in.fd);
    free(p->got);
}

static void test_both_ways(void **state)
{
    enum { LEN = 3 << 20 };
    struct scene s = {0};
    struct pump there, back;
    size_t before = open_fds();
    char *data = malloc(LEN);

    (void)state;
    assert_non_null(data);
    for (size_t i = 0; i < LEN; i++)
        data[i] = (char)(i * 2654435761u >> 13);
    begin(&s);
    start_pump(&there, &s, s.x, s.y, data, LEN);
    start_pump(&back, &s, s.y, s.x, data, LEN - 7);
    assert_int_equal(loop_run(s.l), 0);
    assert_int_equal(s.ends, 1);
    assert_int_equal(s.how, TUNNEL_CLOSED);
    assert_int_equal(s.t.a.bytes, LEN);
    assert_int_equal(s.t.b.bytes, LEN - 7);
    while (there.in.loop || back.in.loop) /* what is still in the peers' sockets */
        assert_int_equal(loop_run(s.l), 0);
    check_pump(&there);
    check_pump(&back);
    end(&s);
    free(data);
    assert_int_equal(open_fds(), before);
}

static void test_idle(void **state)
{
    struct scene s = {.t.idle_usec = 20000};

    (void)state;
    begin(&s);
    assert_int_equal(write(s.x, "x", 1), 1);
    assert_int_equal(loop_run(s.l), 0);
    assert_int_equal(s.how, TUNNEL_IDLE);
    end(&s);
}

static uint64_t told_a, told_b, asked;

static bool count_up_to_1000(struct tunnel *t, uint64_t n, bool from_a)
{
    (void)t;
    *(from_a ? &told_a : &told_b) += n;
    return told_a + told_b <= 1000;
}

static void test_spent(void **state)
{
    struct scene s = {.t.spent = count_up_to_1000};
    char data[4096] = {0};

    (void)state;
    told_a = told_b = 0;
    begin(&s);
    assert_int_equal(write(s.y, data, 600), 600);
    assert_int_equal(write(s.x, data, 401), 401);
    assert_int_equal(loop_run(s.l), 0);
    assert_int_equal(s.how, TUNNEL_SPENT);
    assert_int_equal(told_a, 401);
    assert_int_equal(told_b, 600);
    end(&s);
}

/* Every second time none, else a hundred bytes. */
static size_t a_hundred(struct tunnel *t)
{
    (void)t;
    return asked++ % 2 ? 100 : 0;
}

static void test_allowance(void **state)
{
    struct scene s = {.t.allowance = a_hundred, .t.idle_usec = 5000};
    char data[1000] = {0}, got[2000];
    uint64_t began;

    (void)state;
    asked = 0;
    begin(&s);
    began = loop_now(s.l);
    assert_int_equal(write(s.x, data, sizeof(data)), sizeof(data));
    (void)shutdown(s.x, SHUT_WR);
    (void)shutdown(s.y, SHUT_WR);
    assert_int_equal(loop_run(s.l), 0);
    assert_int_equal(s.how, TUNNEL_CLOSED); /* to be made to wait is not to be idle */
    assert_int_equal(read(s.y, got, sizeof(got)), sizeof(data));
    /* A pause of 10 ms before each hundred, and one more for either end. */
    CHECK(loop_now(s.l) - began >= 50000, "%llu us", (unsigned long long)(loop_now(s.l) - began));
    CHECK(asked >= 20 && asked <= 60, "asked %llu times", (unsigned long long)asked);
    end(&s);
}

/* ---- a peer that is gone while the other is slow ---- */

struct slow {
    struct loop_timer timer;
    struct scene *s;
    size_t got;
    bool over;
};

static void on_slow(struct loop_timer *t)
{
    struct slow *w = (struct slow *)t;
    static char piece[40000];
    ssize_t n = read(w->s->x, piece, sizeof(piece));

    w->got += n > 0 ? (size_t)n : 0;
    w->over = n == 0;
    if (!w->over)
        assert_int_equal(loop_set_timer(w->s->l, t, 5000), 0);
}

static uint64_t cpu_ms(void)
{
    return (uint64_t)clock() * 1000 / CLOCKS_PER_SEC;
}

/* As much as there is room for, or so much that its end is in sight when the pipe is full. */
static void be_slow(size_t most)
{
    struct scene s = {0};
    struct slow w = {.timer.on_time = on_slow, .s = &s};
    static char data[30000];
    int little = 4096;
    size_t sent = 0;
    ssize_t n;
    uint64_t cpu;

    begin(&s);
    (void)setsockopt(s.t.a.fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little));
    assert_int_equal(shutdown(s.x, SHUT_WR), 0);
    while (sent < most && (n = write(s.y, data, 30000)) > 0)
        sent += (size_t)n;
    close(s.y); /* it has said all, and hears nothing more */
    s.y = -1;
    assert_int_equal(loop_set_timer(s.l, &w.timer, 300000), 0);
    cpu = cpu_ms();
    while (!w.over)
        assert_int_equal(loop_run(s.l), 0);
    assert_int_equal(w.got, sent);
    CHECK(cpu_ms() - cpu < 150, "it was waited for with %llu ms of work",
          (unsigned long long)(cpu_ms() - cpu));
    assert_int_equal(s.how, TUNNEL_CLOSED);
    end(&s);
}

static void test_slow(void **state)
{
    (void)state;
    be_slow(SIZE_MAX);
    be_slow(90000);
}

static void test_gone(void **state)
{
    struct scene s = {0};

    (void)state;
    begin(&s);
    close(s.x);
    close(s.y);
    s.x = s.y = -1;
    assert_int_equal(loop_run(s.l), 0);
    assert_int_equal(s.ends, 1);
    end(&s);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("megabytes arrive whole both ways, and nothing is left open", test_both_ways),
        CLAIM("a tunnel in which nothing moves ends", test_idle),
        CLAIM("each read is told as it happens, and a budget that is used up ends it", test_spent),
        CLAIM("it reads no more than it is allowed, and asks again", test_allowance),
        CLAIM("a peer that is gone is neither lost to a slow one nor waited for with work",
              test_slow),
        CLAIM("peers that are gone end it", test_gone),
    };

    return RUN_CLAIMS("egress/tunnel", claims);
}
