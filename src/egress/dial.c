/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/conn.h"
#include "egress/own.h"

#define FIND_USEC 30000000 /* the resolver gives up before */
#define DIAL_USEC 10000000 /* for all addresses of a name together */

static struct conn *conn_of_up(struct loop_io *io)
{
    return (struct conn *)((char *)io - offsetof(struct conn, up));
}

static socklen_t socket_address(const struct address *a, uint16_t port,
                                struct sockaddr_storage *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (a->bits == 32) {
        struct sockaddr_in *four = (struct sockaddr_in *)ret;

        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        memcpy(&four->sin_addr, a->bytes, 4);
        return sizeof(*four);
    }
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;

    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    memcpy(&six->sin6_addr, a->bytes, 16);
    return sizeof(*six);
}

/* Asked before each address is dialled: the rules may have changed while another one was tried. */
bool conn_may_reach(const struct conn *c, const struct address *a, struct egress_verdict *v)
{
    rules_decide_name(c->box->rules, &c->host, c->port, v);
    if (v->decision == EGRESS_HOST_PORT)
        return true;
    if (v->decision == EGRESS_RESOLVE)
        rules_decide_address(c->box->rules, &c->host, c->port, a, v);
    if (v->decision == EGRESS_ALLOW && own_address(a))
        rules_decide_own(c->box->rules, &c->host, c->port, a, v);
    return v->decision == EGRESS_ALLOW;
}

static void on_up(struct loop_io *io, uint32_t events);

/* 1: under way or done; 0: not this address. */
static int dial_one(struct conn *c, const struct address *a)
{
    struct sockaddr_storage to;
    socklen_t len = socket_address(a, c->port, &to);
    int on = 1;

    c->up_fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->up_fd < 0)
        return 0;
    (void)setsockopt(c->up_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    c->up.on_ready = on_up;
    if ((connect(c->up_fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS) ||
        loop_add(c->box->relay->loop, &c->up, c->up_fd, EPOLLOUT) < 0) {
        close_fd(&c->up_fd);
        return 0;
    }
    return 1;
}

/* The next address that was allowed: none is tried that was not asked for. */
static void dial_next(struct conn *c)
{
    struct egress_verdict v;

    while (c->at < c->n_found) {
        const struct address *a = &c->found[c->at++];

        if (!conn_may_reach(c, a, &v)) {
            conn_refuse(c, &v);
            return;
        }
        if (dial_one(c, a))
            return;
    }
    conn_fail(c, 502, SOCKS_HOST_UNREACHABLE, "no address of it could be reached");
}

static void dial(struct conn *c)
{
    c->stage = STAGE_DIAL;
    c->at = 0;
    if (conn_set_timer(c, DIAL_USEC) < 0)
        conn_fail(c, 503, SOCKS_FAILED, "the relay is out of memory");
    else
        dial_next(c);
}

static void on_up(struct loop_io *io, uint32_t events)
{
    struct conn *c = conn_of_up(io);
    int e = 0;
    socklen_t n = sizeof(e);

    (void)events;
    if (getsockopt(c->up_fd, SOL_SOCKET, SO_ERROR, &e, &n) < 0 || e) {
        loop_remove(&c->up);
        close_fd(&c->up_fd);
        dial_next(c);
        return;
    }
    conn_connected(c);
}

/* ---- the name ---- */

static void on_found(struct resolver_lookup *l, enum dns_rcode rcode, const struct address *list,
                     size_t n, uint32_t ttl)
{
    struct conn *c = (struct conn *)((char *)l - offsetof(struct conn, lookup));
    struct egress_verdict v;

    (void)ttl;
    c->n_found = 0;
    for (size_t i = 0; i < n && c->n_found < LIMIT_DNS_ADDRESSES; i++) {
        if (conn_may_reach(c, &list[i], &v))
            c->found[c->n_found++] = list[i];
    }
    if (c->n_found) {
        dial(c);
    } else if (n) { /* it has addresses, and none may be dialled */
        conn_refuse(c, &v);
    } else {
        conn_fail(c, 502, SOCKS_HOST_UNREACHABLE,
                  rcode == DNS_NXDOMAIN  ? "no such name"
                  : rcode == DNS_NOERROR ? "the name has no address"
                                         : "the name could not be resolved");
    }
}

/* ---- the decision ---- */

/* Is there room for one more to that host? If not it is refused, and over. */
static bool take_place(struct conn *c)
{
    struct dest *d = dests_reach(c->box->dests, c->host.text);
    char text[LIMIT_METER_REASON];
    const char *over = NULL;

    c->meter.dest = d;
    if (d->open >= c->box->budgets.host_conns)
        (void)snprintf(text, sizeof(text), "too many connections to %s at once", d->host);
    else
        over = meter_used_up(&c->meter, text);
    if (!over && d->open < c->box->budgets.host_conns) {
        d->open++;
        return true;
    }
    c->meter.dest = NULL;
    conn_refuse_limit(c, text);
    return false;
}

static void find(struct conn *c)
{
    c->stage = STAGE_FIND;
    c->lookup.on_done = on_found;
    if (conn_set_timer(c, FIND_USEC) < 0 ||
        resolver_start(c->box->relay->resolver, &c->lookup, &c->host) < 0)
        conn_fail(c, 503, SOCKS_FAILED, "too many names are being resolved");
}

static void dial_this(struct conn *c, const struct address *a)
{
    c->found[0] = *a;
    c->n_found = 1;
    dial(c);
}

void conn_decide(struct conn *c)
{
    struct address loopback = address_v4(INADDR_LOOPBACK);
    struct egress_verdict v;

    rules_decide_name(c->box->rules, &c->host, c->port, &v);
    (void)snprintf(c->rule, sizeof(c->rule), "%s", v.rule ? v.rule : "");
    if (v.decision == EGRESS_DENY) {
        conn_refuse(c, &v);
        return;
    }
    if (!take_place(c))
        return;
    switch (v.decision) {
    case EGRESS_RESOLVE:
        find(c);
        return;
    case EGRESS_HOST_PORT:
        dial_this(c, &loopback);
        return;
    case EGRESS_ALLOW:
    case EGRESS_DENY: /* was refused above */
        dial_this(c, &c->host.address);
        return;
    }
}
