/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP request and its answer. The request's head was written anew and says "close", its body
 * is followed by its framing, and what comes after it is not read: a second request would not have
 * been decided about. The answer goes back as it is, until upstream closes.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/conn.h"

#define CHUNK     (64u << 10)
#define IDLE_USEC 120000000ull

static int watch(struct conn *c)
{
    bool client_waits = c->to_client.len > c->client_sent, up_waits = c->to_up.len > c->up_sent;
    int r = loop_change(&c->client,
                        (c->body_done || up_waits ? 0 : EPOLLIN) | (client_waits ? EPOLLOUT : 0));

    return r < 0 ? r
                 : loop_change(&c->up, (c->up_ended || client_waits ? 0 : EPOLLIN) |
                                           (up_waits ? EPOLLOUT : 0));
}

/* The part of the body that is in `in`. Negative: it is not one. */
static int take_body(struct conn *c)
{
    size_t at = 0;

    while (!c->body_done && at < c->in.len) {
        struct http_piece piece;
        struct http_fault fault;
        int r = http_body_feed(&c->body, c->in.data + at, c->in.len - at, &piece, &fault);

        if (r < 0)
            return -1;
        buf_append(&c->to_up, c->in.data + at, piece.used);
        at += piece.used;
        c->body_done = r > 0;
        if (!piece.used)
            break;
    }
    buf_clear(&c->in);
    return c->to_up.failed ? -1 : 0;
}

/* 0 at its end, negative if it failed or there is nothing now. */
static ssize_t read_into(int fd, struct buf *b)
{
    static char chunk[CHUNK];
    ssize_t n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT);

    if (n > 0)
        buf_append(b, chunk, (size_t)n);
    return n < 0 ? -errno : n;
}

static void turn(struct conn *c)
{
    int r = 0;
    ssize_t n;

    if (!c->body_done && c->to_up.len == c->up_sent) {
        n = read_into(c->client_fd, &c->in);
        if (n == 0 || (n < 0 && n != -EAGAIN)) { /* a client that is gone wants no answer */
            conn_free(c);
            return;
        }
        if (n > 0)
            r = take_body(c);
    }
    if (r >= 0 && !c->up_ended && c->to_client.len == c->client_sent) {
        n = read_into(c->up_fd, &c->to_client);
        if (n > 0)
            c->bytes_in += (uint64_t)n;
        c->up_ended = n == 0 || (n < 0 && n != -EAGAIN);
    }
    if (r < 0) {
        conn_free(c);
        return;
    }
    r = conn_flush(c);
    if (r < 0)
        return;
    if ((r > 0 && c->up_ended) || watch(c) < 0 || conn_set_timer(c, IDLE_USEC) < 0)
        conn_free(c);
}

static void on_client(struct loop_io *io, uint32_t events)
{
    (void)events;
    turn((struct conn *)((char *)io - offsetof(struct conn, client)));
}

static void on_up(struct loop_io *io, uint32_t events)
{
    (void)events;
    turn((struct conn *)((char *)io - offsetof(struct conn, up)));
}

void pump_start(struct conn *c)
{
    c->stage = STAGE_CARRY;
    c->client.on_ready = on_client;
    c->up.on_ready = on_up;
    if (c->body.framing == HTTP_NO_BODY)
        c->body_done = true;
    if (take_body(c) < 0)
        conn_free(c);
    else
        turn(c);
}
