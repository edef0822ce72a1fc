/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

#define IDLE_USEC 600000000ull /* a tunnel in which nothing moves */
#define HELD      (16u << 10)  /* of what it says while it is being dialled; more waits */

static struct conn *conn_of_client(struct loop_io *io)
{
    return (struct conn *)((char *)io - offsetof(struct conn, client));
}

static struct conn *conn_of_up(struct loop_io *io)
{
    return (struct conn *)((char *)io - offsetof(struct conn, up));
}

int conn_set_timer(struct conn *c, uint64_t usec)
{
    return loop_set_timer(c->box->relay->loop, &c->timer, usec);
}

bool conn_server_may_begin(const struct conn *c)
{
    return c->port != 80 && c->port != 443;
}

/* ---- sending ---- */

static int send_some(int fd, struct buf *b, size_t *sent)
{
    while (*sent < b->len) {
        ssize_t n = send(fd, b->data + *sent, b->len - *sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -errno;
        *sent += (size_t)n;
    }
    buf_clear(b);
    *sent = 0;
    return 1;
}

int conn_flush(struct conn *c)
{
    size_t before = c->up_sent, had = c->to_up.len;
    int client, up = 1;

    if (c->to_client.failed || c->to_up.failed) {
        conn_free(c);
        return -1;
    }
    client = send_some(c->client_fd, &c->to_client, &c->client_sent);
    if (c->up_fd >= 0)
        up = send_some(c->up_fd, &c->to_up, &c->up_sent);
    if (c->up_fd >= 0 && up >= 0)
        c->spent = !meter_spend(&c->meter, (up > 0 ? had : c->up_sent) - before, true);
    if (client < 0 || up < 0 || c->spent) {
        conn_free(c);
        return -1;
    }
    return client && up;
}

/* ---- carrying ---- */

static struct conn *conn_of_tunnel(struct tunnel *t)
{
    return (struct conn *)((char *)t - offsetof(struct conn, tunnel));
}

static void on_tunnel_end(struct tunnel *t, enum tunnel_end how)
{
    struct conn *c = conn_of_tunnel(t);

    c->spent = how == TUNNEL_SPENT;
    conn_free(c);
}

static size_t allowance(struct tunnel *t)
{
    return meter_allowance(&conn_of_tunnel(t)->meter);
}

static bool spent(struct tunnel *t, uint64_t n, bool from_client)
{
    return meter_spend(&conn_of_tunnel(t)->meter, n, from_client);
}

static void carry(struct conn *c)
{
    if (c->is_http) {
        pump_start(c);
        return;
    }
    c->stage = STAGE_CARRY;
    loop_stop_timer(&c->timer);
    loop_remove(&c->client);
    loop_remove(&c->up);
    c->tunnel.on_end = on_tunnel_end;
    c->tunnel.allowance = allowance;
    c->tunnel.spent = spent;
    c->tunnel.idle_usec = IDLE_USEC;
    if (tunnel_start(&c->tunnel, c->box->relay->loop, TAKE_FD(c->client_fd), TAKE_FD(c->up_fd)) < 0)
        conn_free(c);
}

static void on_send(struct loop_io *io, uint32_t events)
{
    if (events & (EPOLLERR | EPOLLHUP)) /* gone both ways: it would be told of for ever */
        conn_free(conn_of_client(io));
    else
        conn_send_held(conn_of_client(io));
}

static void on_send_up(struct loop_io *io, uint32_t events)
{
    if (events & (EPOLLERR | EPOLLHUP))
        conn_free(conn_of_up(io));
    else
        conn_send_held(conn_of_up(io));
}

void conn_send_held(struct conn *c)
{
    int r;

    c->stage = STAGE_SEND;
    r = conn_flush(c);
    if (r < 0)
        return;
    if (r > 0) {
        carry(c);
        return;
    }
    c->client.on_ready = on_send;
    c->up.on_ready = on_send_up;
    if (loop_change(&c->client, c->to_client.len ? EPOLLOUT : 0) < 0 ||
        loop_change(&c->up, c->to_up.len ? EPOLLOUT : 0) < 0)
        conn_free(c);
}

/* ---- what is said first ---- */

/* The server speaks, and the client has not begun: there is nothing to look at. */
static void on_up_first(struct loop_io *io, uint32_t events)
{
    struct conn *c = conn_of_up(io);

    if (conn_server_may_begin(c) && !c->hello)
        conn_send_held(c);
    else if (events & (EPOLLERR | EPOLLHUP))
        conn_free(c);
    else if (loop_change(io, 0) < 0) /* what the client has begun to say comes first */
        conn_free(c);
}

static void wait_inner(struct conn *c)
{
    bool server = conn_server_may_begin(c);

    c->stage = STAGE_INNER;
    if (conn_flush(c) < 0)
        return;
    c->up.on_ready = on_up_first;
    if (loop_change(&c->up, server ? EPOLLIN : 0) < 0 ||
        loop_change(&c->client, EPOLLIN | EPOLLRDHUP) < 0 ||
        conn_set_timer(c, server ? IDLE_USEC : CONN_HEAR_USEC) < 0) {
        conn_free(c);
        return;
    }
    conn_inner(c);
}

void conn_connected(struct conn *c)
{
    uint8_t reply[LIMIT_SOCKS_REPLY];

    c->meter.dest->connections++;
    conn_tell_begin(c);
    if (c->via == VIA_TLS) { /* what came behind the hello */
        buf_append(&c->to_up, c->in.data, c->in.len);
        buf_clear(&c->in);
    }
    if (c->via == VIA_HTTP || c->via == VIA_TLS) { /* that was looked at before */
        conn_send_held(c);
        return;
    }
    if (c->via == VIA_SOCKS)
        buf_append(&c->to_client, reply, socks_reply(SOCKS_OK, reply));
    else if (c->via == VIA_CONNECT)
        buf_puts(&c->to_client, "HTTP/1.1 200 Connection established\r\n\r\n");
    wait_inner(c);
}

/* ---- the client ---- */

static void on_heard(struct conn *c)
{
    switch (c->stage) {
    case STAGE_HEAR:
        if (c->via == VIA_DNS)
            conn_step_dns(c);
        else if (c->by_proxy)
            conn_step_proxy(c);
        else
            conn_step_caught(c);
        return;
    case STAGE_INNER:
        conn_inner(c);
        return;
    case STAGE_FIND: /* it goes on talking: that is kept until it is wanted */
    case STAGE_DIAL:
        if (c->in.len >= HELD && loop_change(&c->client, 0) < 0)
            conn_free(c);
        return;
    case STAGE_SEND:
    case STAGE_CARRY:
    case STAGE_BYE:
        return;
    }
}

/* It says no more; it may still want to hear. */
static void on_client_end(struct conn *c)
{
    bool is_dialled = c->stage == STAGE_FIND || c->stage == STAGE_DIAL;

    if (is_dialled && c->via == VIA_TCP) {
        if (loop_change(&c->client, 0) < 0)
            conn_free(c);
    } else if (c->stage == STAGE_INNER && conn_server_may_begin(c) && !c->hello) {
        conn_send_held(c);
    } else {
        conn_give_up(c);
    }
}

void conn_on_client(struct loop_io *io, uint32_t events)
{
    static char chunk[HELD];
    struct conn *c = conn_of_client(io);
    bool is_dialled = c->stage == STAGE_FIND || c->stage == STAGE_DIAL;
    ssize_t n;

    if (is_dialled && events & (EPOLLERR | EPOLLHUP)) { /* gone: nobody waits for the answer */
        conn_free(c);
        return;
    }
    n = recv(c->client_fd, chunk, sizeof(chunk), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == 0) {
        on_client_end(c);
        return;
    }
    if (n > 0)
        buf_append(&c->in, chunk, (size_t)n);
    if (n < 0 || c->in.failed)
        conn_give_up(c);
    else
        on_heard(c);
}

void conn_on_time(struct loop_timer *t)
{
    struct conn *c = (struct conn *)((char *)t - offsetof(struct conn, timer));

    if (c->stage == STAGE_FIND || c->stage == STAGE_DIAL) {
        resolver_cancel(&c->lookup);
        loop_remove(&c->up);
        close_fd(&c->up_fd);
        conn_fail(c, 504, SOCKS_TTL, "it did not answer in time");
    } else {
        conn_give_up(c);
    }
}
