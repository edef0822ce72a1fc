/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "http/compose.h"

#define HEAR_USEC   10000000ull  /* to say what it wants */
#define SILENT_USEC 500000ull    /* then it is a protocol in which the server speaks first */
#define IDLE_USEC   600000000ull /* a tunnel in which nothing moves */
#define BYE_USEC    1000000ull   /* to read the last word */
#define PER_TURN    16           /* connections taken before the others have their turn */

static const char *const via_names[] = {
    [VIA_UNKNOWN] = "unknown", [VIA_DNS] = "dns", [VIA_SOCKS] = "socks", [VIA_CONNECT] = "connect",
    [VIA_HTTP] = "http",       [VIA_TLS] = "tls", [VIA_TCP] = "tcp",
};

static struct conn *conn_of_client(struct loop_io *io)
{
    return (struct conn *)((char *)io - offsetof(struct conn, client));
}

const char *conn_target(const struct conn *c, char text[LIMIT_AUTHORITY_TEXT])
{
    return c->has_host ? host_format_authority(&c->host, c->port, text) : "";
}

int conn_set_timer(struct conn *c, uint64_t usec)
{
    return loop_set_timer(c->box->relay->loop, &c->timer, usec);
}

/* ---- the end ---- */

static void tell_end(struct conn *c)
{
    char target[LIMIT_AUTHORITY_TEXT], address[LIMIT_ADDRESS_TEXT] = "";
    struct relay_event e = {.via = via_names[c->via],
                            .target = conn_target(c, target),
                            .address = address,
                            .allowed = true,
                            .is_end = true,
                            .rule = c->rule,
                            .bytes_out = c->bytes_out,
                            .bytes_in = c->bytes_in};

    if (c->at)
        (void)address_format(&c->found[c->at - 1], address);
    relay_tell(c->box, &e);
}

void conn_free(struct conn *c)
{
    struct relay_box *b = c->box;

    if (c->told)
        tell_end(c);
    b->bytes += c->bytes_out + c->bytes_in;
    loop_stop_timer(&c->timer);
    resolver_cancel(&c->lookup);
    loop_remove(&c->client);
    loop_remove(&c->up);
    tunnel_close(&c->tunnel);
    close_fd(&c->client_fd);
    close_fd(&c->up_fd);
    buf_done(&c->in);
    buf_done(&c->to_client);
    buf_done(&c->to_up);
    free(c->hello);
    free(c->parser);
    free(c->questions);
    *c->back = c->next;
    if (c->next)
        c->next->back = c->back;
    b->n_conns--;
    free(c);
}

void conn_close_all(struct relay_box *b)
{
    while (b->conns)
        conn_free(b->conns);
}

void conn_close_denied(struct relay_box *b)
{
    struct conn *next;

    for (struct conn *c = b->conns; c; c = next) {
        struct egress_verdict v;

        next = c->next;
        if (!c->has_host || c->stage == STAGE_BYE)
            continue;
        rules_decide_name(b->rules, &c->host, c->port, &v);
        if (v.decision == EGRESS_RESOLVE && c->at)
            rules_decide_address(b->rules, &c->host, c->port, &c->found[c->at - 1], &v);
        if (v.decision == EGRESS_DENY)
            conn_free(c);
    }
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
    int client, up = 1;

    if (c->to_client.failed || c->to_up.failed) {
        conn_free(c);
        return -1;
    }
    client = send_some(c->client_fd, &c->to_client, &c->client_sent);
    if (c->up_fd >= 0) {
        size_t before = c->up_sent, had = c->to_up.len;

        up = send_some(c->up_fd, &c->to_up, &c->up_sent);
        c->bytes_out += up > 0 ? had - before : c->up_sent - before;
    }
    if (client < 0 || up < 0) {
        conn_free(c);
        return -1;
    }
    return client && up;
}

/* ---- the last word ---- */

static void on_bye(struct loop_io *io, uint32_t events)
{
    struct conn *c = conn_of_client(io);
    char ignored[4096];
    ssize_t n;

    (void)events;
    do { /* unread bytes would turn the end into a reset, and the last word would be lost */
        n = recv(c->client_fd, ignored, sizeof(ignored), MSG_DONTWAIT);
    } while (n > 0);
    if (n == 0 || errno != EAGAIN) {
        conn_free(c);
        return;
    }
    if (conn_flush(c) > 0)
        (void)shutdown(c->client_fd, SHUT_WR);
}

void conn_say_goodbye(struct conn *c)
{
    if (c->to_client.len == 0) {
        conn_free(c);
        return;
    }
    c->stage = STAGE_BYE;
    loop_remove(&c->up);
    close_fd(&c->up_fd);
    c->client.on_ready = on_bye;
    if (conn_set_timer(c, BYE_USEC) < 0 ||
        loop_change(&c->client, EPOLLIN | EPOLLOUT | EPOLLRDHUP) < 0)
        conn_free(c);
}

/* A text that names the rule and the setting, so that whoever reads the output can act. */
static void say_http(struct conn *c, unsigned status, const char *text)
{
    char length[24];

    (void)snprintf(length, sizeof(length), "%zu", strlen(text));
    http_write_status_line(&c->to_client, status, NULL);
    http_write_header(&c->to_client, "Content-Type", "text/plain; charset=utf-8");
    http_write_header(&c->to_client, "Content-Length", length);
    http_write_header(&c->to_client, "Connection", "close");
    http_write_end(&c->to_client);
    buf_puts(&c->to_client, text);
}

void conn_say(struct conn *c, unsigned status, enum socks_code code, const char *text)
{
    uint8_t reply[LIMIT_SOCKS_REPLY];

    if (c->stage == STAGE_INNER || c->stage == STAGE_SEND || c->stage == STAGE_CARRY) {
        buf_clear(&c->to_client); /* it was told that it is through: only the end says more */
    } else if (c->via == VIA_SOCKS) {
        buf_append(&c->to_client, reply, socks_reply(code, reply));
    } else if (c->via == VIA_CONNECT || c->via == VIA_HTTP) {
        say_http(c, status, text);
    }
    conn_say_goodbye(c);
}

void conn_refuse(struct conn *c, const struct egress_verdict *v)
{
    char target[LIMIT_AUTHORITY_TEXT], text[LIMIT_RULES_REASON + 512];
    struct relay_event e = {.via = via_names[c->via],
                            .target = conn_target(c, target),
                            .address = "",
                            .rule = v->rule,
                            .setting = v->setting,
                            .reason = v->reason};

    relay_tell(c->box, &e);
    c->told = false;
    (void)snprintf(text, sizeof(text), "ClawDen denied %s: %s%s%s%s%s\n", target, v->reason,
                   v->rule ? "\nrule: " : "", v->rule ? v->rule : "",
                   v->setting ? "\nsetting: " : "", v->setting ? v->setting : "");
    conn_say(c, 403, SOCKS_DENIED, text);
}

void conn_fail(struct conn *c, unsigned status, enum socks_code code, const char *why)
{
    char target[LIMIT_AUTHORITY_TEXT], text[512];

    (void)snprintf(text, sizeof(text), "ClawDen: %s: %s\n", conn_target(c, target), why);
    conn_say(c, status, code, text);
}

/* Not a rule of the list, but one of ours: what is said inside must be what was allowed. */
void conn_refuse_inner(struct conn *c, const char *reason)
{
    struct egress_verdict v = {.decision = EGRESS_DENY};

    (void)snprintf(v.reason, sizeof(v.reason), "%s", reason);
    conn_refuse(c, &v);
}

/* ---- carrying ---- */

static void on_tunnel_end(struct tunnel *t, enum tunnel_end how)
{
    struct conn *c = (struct conn *)((char *)t - offsetof(struct conn, tunnel));

    (void)how;
    c->bytes_out += t->a.bytes;
    c->bytes_in += t->b.bytes;
    conn_free(c);
}

static void carry(struct conn *c)
{
    struct relay_box *b = c->box;

    if (c->is_http) {
        pump_start(c);
        return;
    }
    c->stage = STAGE_CARRY;
    loop_stop_timer(&c->timer);
    loop_remove(&c->client);
    loop_remove(&c->up);
    c->tunnel.on_end = on_tunnel_end;
    c->tunnel.idle_usec = IDLE_USEC;
    c->tunnel.budget = b->budget > b->bytes ? b->budget - b->bytes : 1;
    if (tunnel_start(&c->tunnel, b->relay->loop, TAKE_FD(c->client_fd), TAKE_FD(c->up_fd)) < 0)
        conn_free(c);
}

static void on_send(struct loop_io *io, uint32_t events);
static void on_send_up(struct loop_io *io, uint32_t events);

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
    if (loop_change(&c->client, EPOLLOUT) < 0 || loop_change(&c->up, EPOLLOUT) < 0)
        conn_free(c);
}

static void on_send(struct loop_io *io, uint32_t events)
{
    (void)events;
    conn_send_held(conn_of_client(io));
}

static void on_send_up(struct loop_io *io, uint32_t events)
{
    (void)events;
    conn_send_held((struct conn *)((char *)io - offsetof(struct conn, up)));
}

void conn_connected(struct conn *c)
{
    char target[LIMIT_AUTHORITY_TEXT], address[LIMIT_ADDRESS_TEXT];
    uint8_t reply[LIMIT_SOCKS_REPLY];
    struct relay_event e = {.via = via_names[c->via],
                            .target = conn_target(c, target),
                            .address = address_format(&c->found[c->at - 1], address),
                            .allowed = true,
                            .rule = c->rule};

    relay_tell(c->box, &e);
    c->told = true;
    if (c->via != VIA_CONNECT && c->via != VIA_SOCKS) {
        conn_send_held(c);
        return;
    }
    if (c->via == VIA_SOCKS)
        buf_append(&c->to_client, reply, socks_reply(SOCKS_OK, reply));
    else
        buf_puts(&c->to_client, "HTTP/1.1 200 Connection established\r\n\r\n");
    c->stage = STAGE_INNER;
    if (conn_flush(c) < 0)
        return;
    /* Where the server speaks first there is nothing to wait for. */
    if (loop_change(&c->up, 0) < 0 || loop_change(&c->client, EPOLLIN | EPOLLRDHUP) < 0 ||
        conn_set_timer(c, c->port == 443 || c->port == 80 ? HEAR_USEC : SILENT_USEC) < 0) {
        conn_free(c);
        return;
    }
    conn_inner(c);
}

/* ---- coming in ---- */

static void on_client(struct loop_io *io, uint32_t events)
{
    static char chunk[16 << 10];
    struct conn *c = conn_of_client(io);
    ssize_t n = recv(c->client_fd, chunk, sizeof(chunk), MSG_DONTWAIT);

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        conn_free(c);
        return;
    }
    buf_append(&c->in, chunk, (size_t)n);
    if (c->in.failed) {
        conn_free(c);
        return;
    }
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
    case STAGE_SEND:
    case STAGE_CARRY:
    case STAGE_BYE:
        return;
    }
}

static void on_time(struct loop_timer *t)
{
    struct conn *c = (struct conn *)((char *)t - offsetof(struct conn, timer));

    /* Silent on a port that is neither TLS nor HTTP: a protocol in which the server begins. */
    if (c->stage == STAGE_HEAR && !c->by_proxy && c->via == VIA_UNKNOWN && c->port != 443 &&
        c->port != 80) {
        c->via = VIA_TCP;
        conn_decide(c);
    } else if (c->stage == STAGE_INNER && c->port != 443 && c->port != 80 && !c->hello) {
        conn_send_held(c);
    } else if (c->stage == STAGE_DIAL) {
        loop_remove(&c->up);
        close_fd(&c->up_fd);
        conn_fail(c, 504, SOCKS_TTL, "it did not answer in time");
    } else {
        conn_free(c);
    }
}

/* Whom it was meant for, as the box's resolver has named the address, or the address itself. */
static int find_meant(struct conn *c)
{
    struct sockaddr_storage at;
    socklen_t len = sizeof(at);
    struct address a = {.bits = 32};
    const char *name;
    struct error err;

    if (getsockname(c->client_fd, (struct sockaddr *)&at, &len) < 0)
        return -errno;
    if (at.ss_family == AF_INET) {
        memcpy(a.bytes, &((struct sockaddr_in *)&at)->sin_addr, 4);
    } else {
        const struct in6_addr *six = &((struct sockaddr_in6 *)&at)->sin6_addr;

        if (IN6_IS_ADDR_V4MAPPED(six)) {
            memcpy(a.bytes, six->s6_addr + 12, 4);
        } else {
            a.bits = 128;
            memcpy(a.bytes, six->s6_addr, 16);
        }
    }
    c->has_host = true;
    name = standins_find(c->box->standins, &a, loop_now(c->box->relay->loop) / 1000);
    if (name)
        return host_parse(name, strlen(name), HOST_BARE, &c->host, &err);
    host_from_address(&a, &c->host);
    return 0;
}

static void conn_begin(struct relay_box *b, int fd, uint16_t port)
{
    struct conn *c = calloc(1, sizeof(*c));
    int on = 1;

    if (!c) {
        (void)close(fd);
        return;
    }
    c->box = b;
    c->client_fd = fd;
    c->up_fd = -1;
    c->tunnel.a.fd = c->tunnel.b.fd = -1;
    c->tunnel.a.pipe[0] = c->tunnel.a.pipe[1] = c->tunnel.b.pipe[0] = c->tunnel.b.pipe[1] = -1;
    buf_init(&c->in, LIMIT_RELAY_INPUT);
    buf_init(&c->to_client, LIMIT_RELAY_INPUT + (64u << 10));
    buf_init(&c->to_up, LIMIT_RELAY_INPUT + (64u << 10));
    c->timer.on_time = on_time;
    c->client.on_ready = on_client;
    c->next = b->conns;
    c->back = &b->conns;
    if (c->next)
        c->next->back = &c->next;
    b->conns = c;
    b->n_conns++;
    c->by_proxy = port == 0;
    c->port = port;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (port == 53) {
        c->via = VIA_DNS;
        c->questions = calloc(1, sizeof(*c->questions));
    }
    if ((port == 53 && !c->questions) || (port && port != 53 && find_meant(c) < 0) ||
        loop_add(b->relay->loop, &c->client, fd, EPOLLIN) < 0 ||
        conn_set_timer(c, port && port != 53 && port != 80 && port != 443 ? SILENT_USEC
                                                                          : HEAR_USEC) < 0)
        conn_free(c);
}

void conn_on_accept(struct loop_io *io, uint32_t events)
{
    struct relay_listener *l = (struct relay_listener *)io;
    struct relay_box *b = l->box;

    (void)events;
    for (int i = 0; i < PER_TURN; i++) {
        int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
            return;
        if (b->n_conns >= LIMIT_RELAY_CONNS || b->bytes >= b->budget || !relay_spend(b)) {
            struct relay_event e = {.via = "tcp",
                                    .target = "",
                                    .address = "",
                                    .reason = b->bytes >= b->budget
                                                  ? "the box's budget of bytes is used up"
                                                  : "too many connections at once"};

            relay_tell(b, &e);
            (void)close(fd);
            continue;
        }
        conn_begin(b, fd, l->port);
    }
}
