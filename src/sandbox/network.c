/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of a live box. Its rules are those it was created with, or egress.json in its folder,
 * once they were changed. The relay holds the sockets; if it is gone, so are they, and whoever runs
 * the next command in the box makes new ones and brings them to the next relay.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "egress/client.h"
#include "sandbox/boxes.h"
#include "sandbox/life.h"

#define BACKLOG 128

/* What was only looked at turns out to be what went wrong. */
static int give(struct error *err, const struct error *why)
{
    *err = *why;
    return -(int)why->code;
}

bool sandbox_has_network(const struct box_record *r)
{
    return r->network && strcmp(r->network, "none") != 0;
}

/* ---- rules ---- */

static int rules_of_name(const struct box_record *r, struct wish **ret, struct error *err)
{
    autoptr(wish) w = NULL;
    int e = wish_new("sandbox.egress.allow", "sandbox.egress.deny", "sandbox.egress.hostPorts",
                     "sandbox.egress", &w);

    if (e >= 0 && strcmp(r->network, "allowlist") != 0)
        e = wish_add(w, WISH_ALLOW, WISH_PUBLIC);
    if (e < 0)
        return error_sys(err, e, "make the rules of box '%s'", r->name);
    *ret = TAKE_PTR(w);
    return 0;
}

static int load_rules(const struct box_record *r, int folder, const char *name, struct wish **ret,
                      struct error *err)
{
    struct error why;

    if (boxes_load_rules(folder, name, ret, &why) >= 0)
        return 0;
    if (why.code != ERR_NOT_FOUND)
        return give(err, &why);
    if (!r->egress)
        return rules_of_name(r, ret, err);
    *ret = wish_copy(r->egress);
    return *ret ? 0 : error_sys(err, -ENOMEM, "read the rules of box '%s'", r->name);
}

static int check_network(const struct box_record *r, struct error *err)
{
    return sandbox_has_network(r)
               ? 0
               : error_set(err, ERR_INVALID, "box '%s' has network 'none': it reaches nothing",
                           r->name);
}

int sandbox_rules(const struct box_record *r, struct wish **ret, struct error *err)
{
    autohold h = HOLD_EMPTY;
    int e = check_network(r, err);

    if (e >= 0)
        e = hold_open(r, false, &h, err);
    return e < 0 ? e : load_rules(r, h.folder, RULES_NOW, ret, err);
}

static int apply(const struct box_record *r, const struct hold *h, const struct wish *wish,
                 struct error *err)
{
    autoptr(rules) rules = NULL;
    struct error why;
    int e = wish_rules(wish, &rules, err); /* what cannot be understood is not kept */

    if (e >= 0)
        e = boxes_save_rules(h->folder, RULES_NOW, wish, err);
    if (e < 0)
        return e;
    /* One that no relay has gets them by the next start, or the next command. */
    return client_change(r->id, wish, &why) >= 0 || why.code == ERR_NOT_FOUND ? 0 : give(err, &why);
}

int sandbox_set_rules(const struct box_record *r, const struct wish *wish, struct error *err)
{
    autohold h = HOLD_EMPTY;
    int e = check_network(r, err);

    if (e >= 0)
        e = hold_open(r, true, &h, err);
    return e < 0 ? e : apply(r, &h, wish, err);
}

int sandbox_follow_rules(const struct box_record *r, const struct wish *configured,
                         struct error *err)
{
    autohold h = HOLD_EMPTY;
    autoptr(wish) before = NULL;
    int e;

    if (!configured || !sandbox_has_network(r))
        return 0;
    e = hold_open(r, true, &h, err);
    if (e >= 0)
        e = load_rules(r, h.folder, RULES_CONFIGURED, &before, err);
    if (e < 0 || wish_equal(before, configured))
        return e;
    e = apply(r, &h, configured, err);
    return e < 0 ? e : boxes_save_rules(h.folder, RULES_CONFIGURED, configured, err);
}

int sandbox_traffic(const struct box_record *r, struct buf *ret, struct error *err)
{
    return client_look(r->id, ret, err);
}

/* ---- published ports ---- */

/* On the loopback, whatever the address: nothing of a box is offered to other machines. */
static int listen_on(const struct box_port *p, uint16_t wanted, uint16_t *ret_port,
                     struct error *err)
{
    const char *ip = p->host_ip && p->host_ip[0] ? p->host_ip : "127.0.0.1";
    bool six = strchr(ip, ':') != NULL;
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(wanted)};
    struct sockaddr_in6 large = {.sin6_family = AF_INET6, .sin6_port = htons(wanted)};
    struct sockaddr *at = six ? (struct sockaddr *)&large : (struct sockaddr *)&four;
    socklen_t n = six ? sizeof(large) : sizeof(four);
    autoclose int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;

    if (fd < 0)
        return error_sys(err, -errno, "make a socket");
    if (inet_pton(at->sa_family, ip, six ? (void *)&large.sin6_addr : (void *)&four.sin_addr) != 1)
        return error_set(err, ERR_INVALID, "published port %u: '%s' is no address", p->port, ip);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, at, n) < 0 || listen(fd, BACKLOG) < 0 || getsockname(fd, at, &n) < 0)
        return error_sys(err, -errno, "publish port %u of the box at %s:%u", p->port, ip, wanted);
    *ret_port = ntohs(six ? large.sin6_port : four.sin_port);
    return TAKE_FD(fd);
}

struct publishing {
    struct client_port list[LIMIT_PUBLISHED];
    size_t n;
};

static void stop_publishing(struct publishing *p)
{
    while (p->n)
        close_fd(&p->list[--p->n].listener);
}

/* The same ports as before where they were chosen for it once: somebody may know them. */
static int publish(const struct box_record *r, uint16_t chosen[static LIMIT_PUBLISHED],
                   struct publishing *ret, struct error *err)
{
    for (size_t i = 0; i < r->n_ports; i++) {
        const struct box_port *p = &r->ports[i];
        int fd;

        if (i >= LIMIT_PUBLISHED)
            return error_set(err, ERR_TOO_LARGE, "box '%s' has %zu published ports: at most %u",
                             r->name, r->n_ports, LIMIT_PUBLISHED);
        if (strcmp(p->protocol, "tcp") != 0)
            continue;
        fd = listen_on(p, chosen[i] ? chosen[i] : p->host_port, &chosen[i], err);
        if (fd < 0)
            return fd;
        ret->list[ret->n++] = (struct client_port){.listener = fd, .port = p->port};
    }
    return 0;
}

/* ---- to the relay ---- */

int network_begin(const struct box_record *r, struct hold *h, pid_t init, struct error *err)
{
    cleanup_(stop_publishing) struct publishing ports = {.n = 0};
    autoptr(wish) wish = NULL;
    int e;

    if (!sandbox_has_network(r))
        return 0;
    e = load_rules(r, h->folder, RULES_NOW, &wish, err);
    if (e >= 0)
        e = publish(r, h->last.published, &ports, err);
    if (e >= 0)
        e = client_join(
            &(struct client_box){
                .id = r->id, .init = init, .wish = wish, .ports = ports.list, .n_ports = ports.n},
            err);
    return e < 0 ? error_wrap(err, "the network of box '%s'", r->name) : 0;
}

int network_use(const struct box_record *r, pid_t init, const char *call, int *ret_fd,
                struct error *err)
{
    autohold locked = HOLD_EMPTY;
    struct error why;
    int e;

    *ret_fd = -1;
    if (!sandbox_has_network(r) || client_use(r->id, call, ret_fd, &why) >= 0)
        return 0;
    if (why.code != ERR_NOT_FOUND)
        return give(err, &why);
    e = hold_open(r, true, &locked,
                  err); /* one after the other: whoever is second finds it there */
    if (e < 0 || client_use(r->id, call, ret_fd, &why) >= 0)
        return e;
    e = network_begin(r, &locked, init, err);
    return e < 0 ? e : client_use(r->id, call, ret_fd, err);
}
