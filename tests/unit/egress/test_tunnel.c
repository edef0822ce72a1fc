/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/tunnel.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
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

static void test_budget(void **state)
{
    struct scene s = {.t.budget = 1000};
    char data[4096] = {0};

    (void)state;
    begin(&s);
    assert_int_equal(write(s.x, data, sizeof(data)), sizeof(data));
    assert_int_equal(loop_run(s.l), 0);
    assert_int_equal(s.how, TUNNEL_SPENT);
    end(&s);
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
        CLAIM("a budget that is used up ends it", test_budget),
        CLAIM("peers that are gone end it", test_gone),
    };

    return RUN_CLAIMS("egress/tunnel", claims);
}
