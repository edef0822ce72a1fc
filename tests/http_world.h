/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * For the tests of the HTTP server: a server and clients in one process and one loop, over socket
 * pairs. The loop runs for some rounds in which nothing is waited for, so that what can happen has
 * happened when world_run() returns, or for so many milliseconds.
 */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/buf.h"
#include "http/body.h"
#include "http/chars.h"
#include "http/server.h"
#include "loop/loop.h"
#include "tests/test.h"

#define WORLD_ROUNDS 40

struct world {
    struct loop *loop;
    struct http_server *server;
    struct loop_task round;
    struct loop_timer end;
    int rounds;
    void *user;
};

static void world_on_round(struct loop_task *t)
{
    struct world *w = (struct world *)((char *)t - offsetof(struct world, round));

    if (--w->rounds > 0)
        loop_later(w->loop, t);
    else
        loop_quit(w->loop);
}

static void world_on_end(struct loop_timer *t)
{
    loop_quit(((struct world *)((char *)t - offsetof(struct world, end)))->loop);
}

static inline void world_init(struct world *w, const struct http_server_ops *ops)
{
    struct error err = {0};

    *w = (struct world){.round.on_turn = world_on_round, .end.on_time = world_on_end};
    assert_int_equal(loop_new(&w->loop), 0);
    CHECK_OK(http_server_new(w->loop, ops, w, &w->server, &err), err);
}

static inline void world_done(struct world *w)
{
    http_server_free(w->server);
    loop_stop_timer(&w->end);
    loop_free(w->loop);
}

static inline void world_run(struct world *w)
{
    w->rounds = WORLD_ROUNDS;
    loop_later(w->loop, &w->round);
    assert_int_equal(loop_run(w->loop), 0);
}

static inline void world_wait(struct world *w, unsigned ms)
{
    assert_int_equal(loop_set_timer(w->loop, &w->end, ms * 1000ull), 0);
    assert_int_equal(loop_run(w->loop), 0);
}

/* The client's end of a new connection. */
static inline int world_connect(struct world *w)
{
    int p[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p), 0);
    assert_int_equal(http_server_adopt(w->server, p[1], NULL), 0);
    return p[0];
}

static inline void client_send(int fd, const void *data, size_t len)
{
    ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

    CHECK(n == (ssize_t)len || (n < 0 && errno == EPIPE), "sent %zd of %zu: %s", n, len,
          strerror(errno));
}

static inline void client_say(int fd, const char *text)
{
    client_send(fd, text, strlen(text));
}

/* What has come, added to `b`; true once the server has closed. */
static inline bool client_read(int fd, struct buf *b)
{
    char chunk[65536];
    ssize_t n;

    while ((n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT)) > 0)
        buf_append(b, chunk, (size_t)n);
    assert_false(b->failed);
    return n == 0 || errno != EAGAIN;
}

/* One answer as "STATUS body", with '!' after a status that closes; its length, 0 if it is not
 * whole. */
static inline size_t sum_up_one(const char *data, size_t len, enum http_method asked,
                                struct buf *ret)
{
    struct http_parser p;
    struct http_fault fault;
    struct http_head head;
    struct http_body body;
    size_t at;
    int r;

    http_parser_init_response(&p, asked, LIMIT_HTTP_BODY);
    r = http_parse(&p, data, len, &head, &fault);
    CHECK(r >= 0, "no answer: %s: '%.*s'", r < 0 ? fault.reason : "", (int)len, data);
    if (r == 0)
        return 0;
    buf_printf(ret, "%u%s ", head.status, head.keep_alive ? "" : "!");
    http_body_init(&body, head.framing, head.length, LIMIT_HTTP_BODY);
    for (at = (size_t)r, r = http_body_is_done(&body); r == 0 && at < len;) {
        struct http_piece piece;

        r = http_body_feed(&body, data + at, len - at, &piece, &fault);
        CHECK(r >= 0, "no body: %s: '%.*s'", fault.reason, (int)len, data);
        buf_append(ret, data + at + piece.at, piece.len);
        at += piece.used;
    }
    if (r == 0 && head.framing != HTTP_UNTIL_CLOSE)
        buf_puts(ret, "(cut)");
    return at;
}

/* All of them, with a '|' after each. */
static inline void sum_up(const struct buf *raw, enum http_method asked, struct buf *ret)
{
    size_t at = 0;

    while (at < raw->len) {
        size_t n = sum_up_one(raw->data + at, raw->len - at, asked, ret);

        if (n == 0) {
            buf_puts(ret, "(half a head)");
            return;
        }
        at += n;
        buf_puts(ret, "|");
    }
}
