/* SPDX-License-Identifier: Apache-2.0 */
/* Where a connection begins and ends. */
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
#include "egress/conn.h"

#define SO_ORIGINAL_DST 80 /* of both families; the kernel's header does not go with libc's */
#define PER_TURN        16 /* connections taken before the others have their turn */

/* ---- the end ---- */

void conn_free(struct conn *c)
{
    struct relay_box *b = c->box;

    if (c->told)
        conn_tell_end(c);
    if (c->meter.dest)
        c->meter.dest->open--;
    loop_stop_timer(&c->timer);
    loop_stop_timer(&c->pause);
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

void conn_give_up(struct conn *c)
{
    struct egress_verdict v = {.decision = EGRESS_ALLOW};

    if (c->stage == STAGE_HEAR && c->has_host)
        rules_decide_name(c->box->rules, &c->host, c->port, &v);
    if (v.decision == EGRESS_DENY)
        conn_refuse(c, &v);
    else
        conn_free(c);
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
        if (c->at) {
            if (conn_may_reach(c, &c->found[c->at - 1], &v))
                continue;
        } else {
            rules_decide_name(b->rules, &c->host, c->port, &v);
            if (v.decision != EGRESS_DENY)
                continue;
        }
        c->end_reason = "the rules have changed";
        conn_free(c);
    }
}

/* ---- whom it was meant for ---- */

static struct address read_address(const struct sockaddr_storage *at, uint16_t *ret_port)
{
    struct address a = {.bits = 32};

    if (at->ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)at;

        memcpy(a.bytes, &four->sin_addr, 4);
        *ret_port = ntohs(four->sin_port);
        return a;
    }
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)at;

    *ret_port = ntohs(six->sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        memcpy(a.bytes, six->sin6_addr.s6_addr + 12, 4);
    } else {
        a.bits = 128;
        memcpy(a.bytes, six->sin6_addr.s6_addr, 16);
    }
    return a;
}

/* Where it was redirected from. Who was not redirected has connected to the listener itself, which
 * is at a loopback address: that is no place to go. */
static int find_address(int fd, enum relay_kind kind, struct sockaddr_storage *ret)
{
    socklen_t len = sizeof(*ret);
    int level;

    if (getsockname(fd, (struct sockaddr *)ret, &len) < 0)
        return -errno;
    if (kind != RELAY_ANY)
        return 0;
    level = ret->ss_family == AF_INET ? SOL_IP : SOL_IPV6;
    struct sockaddr_storage meant = {0};

    len = sizeof(meant);
    if (getsockopt(fd, level, SO_ORIGINAL_DST, &meant, &len) == 0)
        *ret = meant;
    return 0;
}

void conn_name_standin(struct conn *c)
{
    uint64_t now = loop_now(c->box->relay->loop) / 1000;
    const char *name = NULL;
    struct error err;
    struct host host;

    if (c->host.kind != HOST_NAME)
        name = standins_find(c->box->standins, &c->host.address, now);
    if (name && host_parse(name, strlen(name), HOST_BARE, &host, &err) >= 0)
        c->host = host;
}

static int find_meant(struct conn *c, const struct relay_listener *l)
{
    struct sockaddr_storage at;
    int r = find_address(c->client_fd, l->kind, &at);
    struct address a;

    if (r < 0)
        return r;
    a = read_address(&at, &c->port);
    if (l->kind == RELAY_PORT)
        c->port = l->port;
    host_from_address(&a, &c->host);
    c->has_host = true;
    conn_name_standin(c);
    return 0;
}

/* ---- coming in ---- */

static struct conn *conn_new(struct relay_box *b, int fd, const struct meter *m)
{
    struct conn *c = calloc(1, sizeof(*c));
    int on = 1;

    if (!c)
        return NULL;
    c->box = b;
    c->meter = *m;
    c->client_fd = fd;
    c->up_fd = -1;
    tunnel_init(&c->tunnel);
    buf_init(&c->in, LIMIT_RELAY_INPUT);
    buf_init(&c->to_client, LIMIT_RELAY_INPUT + (64u << 10));
    buf_init(&c->to_up, LIMIT_RELAY_INPUT + (64u << 10));
    c->timer.on_time = conn_on_time;
    c->client.on_ready = conn_on_client;
    c->next = b->conns;
    c->back = &b->conns;
    if (c->next)
        c->next->back = &c->next;
    b->conns = c;
    b->n_conns++;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return c;
}

static int prepare(struct conn *c, const struct relay_listener *l)
{
    switch (l->kind) {
    case RELAY_PROXY:
        c->by_proxy = true;
        return 0;
    case RELAY_DNS:
        c->via = VIA_DNS;
        c->questions = calloc(1, sizeof(*c->questions));
        return c->questions ? 0 : -ENOMEM;
    case RELAY_PORT:
    case RELAY_ANY:
        return find_meant(c, l);
    }
    return -EINVAL;
}

/* What does not depend on the first bytes is decided now. A request to port 80 is waited for even
 * if it is denied: it can be answered with the reason. */
static void begin_caught(struct conn *c)
{
    struct egress_verdict v;

    if (conn_server_may_begin(c)) {
        c->via = VIA_TCP;
        conn_decide(c);
    } else if (c->port == 443) {
        rules_decide_name(c->box->rules, &c->host, c->port, &v);
        if (v.decision == EGRESS_DENY)
            conn_refuse(c, &v);
    }
}

static void conn_begin(const struct relay_listener *l, int fd, const struct meter *m)
{
    struct relay_box *b = l->box;
    struct conn *c = conn_new(b, fd, m);

    if (!c) {
        (void)close(fd);
        return;
    }
    if (prepare(c, l) < 0 || loop_add(b->relay->loop, &c->client, fd, EPOLLIN) < 0 ||
        conn_set_timer(c, CONN_HEAR_USEC) < 0)
        conn_free(c);
    else if (c->has_host)
        begin_caught(c);
}

/* No descriptor is left: whoever waits is turned away, or the loop would turn for him without end.
 */
void relay_shed(struct relay *r, int listener)
{
    int fd;

    if (r->reserve > 0)
        close_fd(&r->reserve);
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close_fd(&fd);
    r->reserve = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* NULL: it may come in. */
static const char *find_limit(struct relay_box *b, const struct meter *m, const char **ret_setting,
                              char text[LIMIT_METER_REASON])
{
    const char *over = b->relay->closed ? b->relay->closed : meter_used_up(m, text);

    *ret_setting = over || b->n_conns >= b->budgets.conns ? b->budgets_key : NULL;
    if (over)
        return over;
    return b->n_conns >= b->budgets.conns || !relay_spend(b) ? "too many connections at once"
                                                             : NULL;
}

void conn_on_accept(struct loop_io *io, uint32_t events)
{
    struct relay_listener *l = (struct relay_listener *)io;
    struct relay_box *b = l->box;

    (void)events;
    for (int i = 0; i < PER_TURN; i++) {
        int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct relay_event e = {.via = "tcp", .target = "(any)", .address = ""};
        char text[LIMIT_METER_REASON];
        struct meter m;

        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE)
                relay_shed(b->relay, io->fd);
            return;
        }
        meter_begin(&m, b);
        e.reason = find_limit(b, &m, &e.setting, text);
        if (!e.reason) {
            conn_begin(l, fd, &m);
            continue;
        }
        (void)close(fd);
        relay_tell_often(b, &e, &m);
    }
}
