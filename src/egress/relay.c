/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"

#define STANDIN_TTL_MS 600000 /* as long as a program may remember what it was told */

static struct relay_box *box_of_life(struct loop_io *io)
{
    return (struct relay_box *)((char *)io - offsetof(struct relay_box, life));
}

/* ---- calls ---- */

void relay_use(struct relay_box *b, struct relay_call *c)
{
    c->box = b;
    c->since = ++b->n_calls;
    c->next = b->calls;
    c->back = &b->calls;
    if (c->next)
        c->next->back = &c->next;
    b->calls = c;
}

void relay_release(struct relay_call *c)
{
    if (!c->box)
        return;
    *c->back = c->next;
    if (c->next)
        c->next->back = c->back;
    c->box = NULL;
}

/* ---- leaving ---- */

/* Everything of a box that waits in the loop. */
static void each_io(struct relay_box *b, void (*what)(struct loop_io *io))
{
    what(&b->life);
    what(&b->dns);
    what(&b->proxy.io);
    what(&b->dns_tcp.io);
    for (size_t i = 0; i < 2; i++)
        what(&b->caught[i].io);
    for (size_t i = 0; i < b->n_ports; i++)
        what(&b->ports[i].io);
    for (size_t i = 0; i < b->n_published; i++)
        what(&b->published[i].io);
}

static void close_io(struct loop_io *io)
{
    int fd = io->loop ? io->fd : -1;

    loop_remove(io);
    close_fd(&fd);
}

static void box_free(struct relay_box *b)
{
    loop_stop_timer(&b->udp_timer);
    loop_stop_timer(&b->held.timer);
    rules_free(b->rules);
    standins_free(b->standins);
    dests_free(b->dests);
    free(b);
}

void relay_leave(struct relay_box *b)
{
    conn_close_all(b);
    publish_close_all(b);
    udp_stop(b);
    relay_tell_held(b);
    each_io(b, close_io);
    for (size_t i = 0; i < b->n_spares; i++)
        close_fd(&b->spares[i].fd);
    for (size_t i = 0; i < 2; i++)
        close_fd(&b->counters[i]);
    while (b->calls)
        relay_release(b->calls);
    *b->back = b->next;
    if (b->next)
        b->next->back = b->back;
    box_free(b);
}

/* Its init is gone, and with it everybody who could be at the other end. */
static void on_life(struct loop_io *io, uint32_t events)
{
    struct relay_box *b = box_of_life(io);
    struct relay *r = b->relay;
    char id[sizeof(b->id)];

    (void)events;
    memcpy(id, b->id, sizeof(id));
    relay_leave(b);
    if (r->on_gone)
        r->on_gone(r, id);
}

/* ---- joining ---- */

static int watch(struct relay *r, struct loop_io *io, int fd,
                 void (*on_ready)(struct loop_io *, uint32_t))
{
    io->on_ready = on_ready;
    return fd < 0 ? 0 : loop_add(r->loop, io, fd, EPOLLIN);
}

static int watch_listener(struct relay_box *b, struct relay_listener *l, int fd,
                          enum relay_kind kind, uint16_t port)
{
    l->box = b;
    l->kind = kind;
    l->port = port;
    return watch(b->relay, &l->io, fd, conn_on_accept);
}

static int watch_ports(struct relay_box *b, const struct relay_join *join)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < 2; i++)
        r = watch_listener(b, &b->caught[i], join->caught[i], RELAY_ANY, 0);
    for (; r >= 0 && b->n_ports < join->n_ports; b->n_ports++)
        r = watch_listener(b, &b->ports[b->n_ports], join->ports[b->n_ports], RELAY_PORT,
                           join->port_numbers[b->n_ports]);
    return r;
}

static int watch_published(struct relay_box *b, const struct relay_join *join)
{
    int r = 0;

    for (; r >= 0 && b->n_published < join->n_published; b->n_published++) {
        struct relay_listener *l = &b->published[b->n_published];

        l->box = b;
        l->port = join->published[b->n_published].port;
        r = watch(b->relay, &l->io, join->published[b->n_published].listener, publish_on_accept);
    }
    for (; r >= 0 && b->n_spares < join->n_spares; b->n_spares++) {
        b->spares[b->n_spares].fd = join->spares[b->n_spares];
        r = fcntl(join->spares[b->n_spares], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
    }
    return r;
}

static int watch_all(struct relay_box *b, const struct relay_join *join)
{
    int r = watch(b->relay, &b->life, join->pidfd, on_life);

    if (r >= 0)
        r = watch_listener(b, &b->proxy, join->proxy, RELAY_PROXY, 0);
    if (r >= 0)
        r = watch_listener(b, &b->dns_tcp, join->dns_tcp, RELAY_DNS, 53);
    names_prepare(join->dns);
    if (r >= 0)
        r = watch(b->relay, &b->dns, join->dns, names_on_datagram);
    if (r >= 0)
        r = watch_ports(b, join);
    if (r >= 0)
        r = watch_published(b, join);
    return r < 0 ? r : udp_start(b);
}

static void set_budgets(struct relay_box *b, const struct relay_budgets *wanted)
{
    struct relay_budgets w = *wanted;

    w.bytes = w.bytes ? w.bytes : LIMIT_RELAY_BYTES;
    w.bytes_per_sec = w.bytes_per_sec ? w.bytes_per_sec : LIMIT_RELAY_RATE;
    w.host_bytes = w.host_bytes ? w.host_bytes : w.bytes;
    w.call_bytes = w.call_bytes ? w.call_bytes : w.bytes;
    w.conns = w.conns ? w.conns : LIMIT_RELAY_CONNS;
    w.host_conns = w.host_conns ? w.host_conns : LIMIT_RELAY_HOST_CONNS;
    if (!w.new_per_sec)
        w.new_per_sec = LIMIT_RELAY_PER_SEC;
    b->budgets = w;
}

static int box_new(struct relay *r, const struct relay_join *join, struct relay_box **ret,
                   struct error *err)
{
    struct relay_box *b;
    uint8_t key[16];
    int e;

    if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
        return error_sys(err, -errno, "get random bytes");
    b = calloc(1, sizeof(*b));
    if (!b)
        return error_sys(err, -ENOMEM, "join box '%s'", join->id);
    b->relay = r;
    (void)snprintf(b->id, sizeof(b->id), "%s", join->id);
    set_budgets(b, &join->budgets);
    b->budgets_key = join->budgets_key;
    memcpy(b->counters, join->counters, sizeof(b->counters));
    relay_fill_credits(b);
    b->rate_usec = loop_now(r->loop);
    b->rate_credit = UINT64_MAX; /* all that there is room for */
    e = dests_new(&b->dests);
    if (e < 0)
        (void)error_sys(err, e, "join box '%s'", join->id);
    else
        e = standins_new(LIMIT_RELAY_NAMES, STANDIN_TTL_MS, key, &b->standins, err);
    if (e < 0)
        box_free(b);
    else
        *ret = b;
    return e;
}

int relay_join(struct relay *r, const struct relay_join *join, struct error *err)
{
    struct relay_box *b;
    int e;

    if (join->n_ports > LIMIT_RELAY_PORTS || join->n_published > LIMIT_RELAY_PUBLISHED ||
        join->n_spares > LIMIT_RELAY_SPARES || strlen(join->id) >= sizeof(b->id))
        return error_set(err, ERR_INVALID, "a box with too many ports or too long an id");
    if (relay_find(r, join->id))
        return error_set(err, ERR_EXISTS, "box '%s' has a relay already", join->id);
    e = box_new(r, join, &b, err);
    if (e < 0)
        return e;
    e = watch_all(b, join);
    if (e < 0) { /* the descriptors are the caller's again */
        each_io(b, loop_remove);
        box_free(b);
        return error_sys(err, e, "join box '%s'", join->id);
    }
    b->rules = join->rules;
    b->next = r->boxes;
    b->back = &r->boxes;
    if (b->next)
        b->next->back = &b->next;
    r->boxes = b;
    return 0;
}

struct relay_box *relay_find(struct relay *r, const char *id)
{
    for (struct relay_box *b = r->boxes; b; b = b->next)
        if (strcmp(b->id, id) == 0)
            return b;
    return NULL;
}

void relay_change(struct relay_box *b, struct rules *rules, const struct relay_budgets *budgets)
{
    if (budgets)
        set_budgets(b, budgets);
    if (!rules)
        return;
    rules_free(b->rules);
    b->rules = rules;
    conn_close_denied(b);
}
