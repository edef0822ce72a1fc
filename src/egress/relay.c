/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/relay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"

#define STANDIN_TTL_MS 600000 /* as long as a program may remember what it was told */
#define MILLION        1000000ull

static struct relay_box *box_of_life(struct loop_io *io)
{
    return (struct relay_box *)((char *)io - offsetof(struct relay_box, life));
}

/* ---- leaving ---- */

static void close_listener(struct relay_listener *l)
{
    int fd = l->io.loop ? l->io.fd : -1;

    loop_remove(&l->io);
    close_fd(&fd);
}

static void close_io(struct loop_io *io)
{
    int fd = io->loop ? io->fd : -1;

    loop_remove(io);
    close_fd(&fd);
}

void relay_leave(struct relay_box *b)
{
    conn_close_all(b);
    close_listener(&b->proxy);
    close_listener(&b->dns_tcp);
    for (size_t i = 0; i < b->n_ports; i++)
        close_listener(&b->ports[i]);
    close_io(&b->dns);
    close_io(&b->life);
    if (b->back) {
        *b->back = b->next;
        if (b->next)
            b->next->back = b->back;
    }
    rules_free(b->rules);
    standins_free(b->standins);
    free(b);
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
    return loop_add(r->loop, io, fd, EPOLLIN);
}

static int watch_listener(struct relay_box *b, struct relay_listener *l, int fd, uint16_t port)
{
    l->box = b;
    l->port = port;
    return watch(b->relay, &l->io, fd, conn_on_accept);
}

static int watch_all(struct relay_box *b, const struct relay_join *join)
{
    int r = watch(b->relay, &b->life, join->pidfd, on_life);

    if (r >= 0)
        r = watch_listener(b, &b->proxy, join->proxy, 0);
    if (r >= 0)
        r = watch_listener(b, &b->dns_tcp, join->dns_tcp, 53);
    if (r >= 0)
        r = watch(b->relay, &b->dns, join->dns, names_on_datagram);
    for (size_t i = 0; r >= 0 && i < join->n_ports; i++) {
        r = watch_listener(b, &b->ports[i], join->ports[i], join->port_numbers[i]);
        if (r >= 0)
            b->n_ports++;
    }
    return r;
}

/* What was put into the loop before something failed is the caller's again. */
static void give_back(struct relay_box *b)
{
    loop_remove(&b->life);
    loop_remove(&b->proxy.io);
    loop_remove(&b->dns_tcp.io);
    loop_remove(&b->dns);
    for (size_t i = 0; i < b->n_ports; i++)
        loop_remove(&b->ports[i].io);
    standins_free(b->standins);
    free(b);
}

int relay_join(struct relay *r, const struct relay_join *join, struct error *err)
{
    struct relay_box *b;
    uint8_t key[16];
    int e;

    if (join->n_ports > LIMIT_RELAY_PORTS || strlen(join->id) >= sizeof(b->id))
        return error_set(err, ERR_INVALID, "a box with too many ports or too long an id");
    if (relay_find(r, join->id))
        return error_set(err, ERR_EXISTS, "box '%s' has a relay already", join->id);
    if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
        return error_sys(err, -errno, "get random bytes");
    b = calloc(1, sizeof(*b));
    if (!b)
        return error_sys(err, -ENOMEM, "join box '%s'", join->id);
    b->relay = r;
    (void)snprintf(b->id, sizeof(b->id), "%s", join->id);
    b->budget = join->budget ? join->budget : LIMIT_RELAY_BYTES;
    b->credit = LIMIT_RELAY_BURST * MILLION;
    b->credit_usec = loop_now(r->loop);
    e = standins_new(LIMIT_RELAY_NAMES, STANDIN_TTL_MS, key, &b->standins, err);
    if (e >= 0) {
        e = watch_all(b, join);
        if (e < 0)
            (void)error_sys(err, e, "join box '%s'", join->id);
    }
    if (e < 0) {
        give_back(b);
        return e;
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

void relay_change(struct relay_box *b, struct rules *rules)
{
    rules_free(b->rules);
    b->rules = rules;
    conn_close_denied(b);
}

/* ---- how fast, and who is told ---- */

bool relay_spend(struct relay_box *b)
{
    uint64_t now = loop_now(b->relay->loop), passed = now - b->credit_usec;

    b->credit_usec = now;
    b->credit += passed * LIMIT_RELAY_PER_SEC;
    if (b->credit > LIMIT_RELAY_BURST * MILLION)
        b->credit = LIMIT_RELAY_BURST * MILLION;
    if (b->credit < MILLION)
        return false;
    b->credit -= MILLION;
    return true;
}

void relay_tell(struct relay_box *b, struct relay_event *e)
{
    e->box = b->id;
    if (!e->is_end) {
        b->allowed += e->allowed;
        b->denied += !e->allowed;
    }
    if (b->relay->on_event)
        b->relay->on_event(b->relay, e);
}
