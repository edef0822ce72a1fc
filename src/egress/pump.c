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

#define CHUNK      (64u << 10)
#define IDLE_USEC  120000000ull
#define PAUSE_USEC 10000ull /* until it is asked again whether anything may be read */

static int watch(struct conn *c)
{
    bool client_waits = c->to_client.len > c->client_sent, up_waits = c->to_up.len > c->up_sent;
    uint32_t client =
        (c->body_done || up_waits || c->paused ? 0 : EPOLLIN) | (client_waits ? EPOLLOUT : 0);
    uint32_t up =
        (c->up_ended || client_waits || c->paused ? 0 : EPOLLIN) | (up_waits ? EPOLLOUT : 0);
    int r = loop_change(&c->client, client);

    if (r < 0 || c->up.loop)
        return r < 0 ? r : loop_change(&c->up, up);
    return up ? loop_add(c->box->relay->loop, &c->up, c->up_fd, up) : 0;
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
static ssize_t read_into(struct conn *c, int fd, struct buf *b)
{
    static char chunk[CHUNK];
    size_t may = meter_allowance(&c->meter);
    ssize_t n;

    if (!may) {
        int r = loop_set_timer(c->box->relay->loop, &c->pause, PAUSE_USEC);

        c->paused = true;
        return r < 0 ? r : -EAGAIN;
    }
    n = recv(fd, chunk, may < sizeof(chunk) ? may : sizeof(chunk), MSG_DONTWAIT);
    if (n > 0)
        buf_append(b, chunk, (size_t)n);
    return n < 0 ? -errno : n;
}

/* Negative: it is over. What is read here counts when it is sent. */
static int read_client(struct conn *c)
{
    ssize_t n;

    if (c->body_done || c->paused || c->to_up.len > c->up_sent)
        return 0;
    n = read_into(c, c->client_fd, &c->in);
    if (n == -EAGAIN)
        return 0;
    return n <= 0 ? -1 : take_body(c); /* a client that is gone wants no answer */
}

static int read_up(struct conn *c)
{
    ssize_t n;

    if (c->up_ended || c->paused || c->to_client.len > c->client_sent)
        return 0;
    n = read_into(c, c->up_fd, &c->to_client);
    if (n > 0)
        c->spent = !meter_spend(&c->meter, (uint64_t)n, false);
    c->up_ended = n == 0 || (n < 0 && n != -EAGAIN);
    return c->spent ? -1 : 0;
}

static void turn(struct conn *c)
{
    int r = read_client(c);

    if (r >= 0)
        r = read_up(c);
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
    struct conn *c = (struct conn *)((char *)io - offsetof(struct conn, client));

    if (events & (EPOLLERR | EPOLLHUP))
        conn_free(c);
    else
        turn(c);
}

/* An upstream that is gone is always ready: until it may be read, it is not in the loop. */
static void on_up(struct loop_io *io, uint32_t events)
{
    struct conn *c = (struct conn *)((char *)io - offsetof(struct conn, up));

    if ((events & (EPOLLERR | EPOLLHUP)) && !(events & EPOLLIN))
        loop_remove(io);
    turn(c);
}

static void on_pause_over(struct loop_timer *t)
{
    struct conn *c = (struct conn *)((char *)t - offsetof(struct conn, pause));

    c->paused = false;
    turn(c);
}

void pump_start(struct conn *c)
{
    c->stage = STAGE_CARRY;
    c->client.on_ready = on_client;
    c->up.on_ready = on_up;
    c->pause.on_time = on_pause_over;
    if (c->body.framing == HTTP_NO_BODY)
        c->body_done = true;
    if (take_body(c) < 0)
        conn_free(c);
    else
        turn(c);
}
