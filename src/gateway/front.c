/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/front.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "gateway/front_internal.h"

void front_over(struct front *f, const char *why)
{
    if (f->is_over)
        return;
    f->is_over = true;
    if (f->o.on_end)
        f->o.on_end(f->o.user, why);
}

/* Distinct, and not to be guessed from each other by whoever sees one: splitmix64 of a counter that
 * begins anywhere. */
void front_request_id(struct front *f, char ret[17])
{
    uint64_t z = f->ids += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    (void)snprintf(ret, 17, "%016" PRIx64, z ^ z >> 31);
}

/* ---- the link ---- */

static struct front *front_of(struct link *l)
{
    return (struct front *)((char *)l - offsetof(struct front, link));
}

static void revoke_all(struct front *f, const char *data, size_t len)
{
    json_t *what = json_loadb(data, len, 0, NULL);

    for (struct request *r = f->requests, *next; r; r = next) {
        next = r->next;
        if (gate_is_revoked(&r->asker.who, what))
            request_revoke(r);
    }
    sockets_revoke(f, what);
    json_decref(what);
}

static void take_facts(struct front *f, const char *data, size_t len)
{
    struct error err = {0};

    if (facts_take(f, data, len, &err) >= 0)
        return;
    log_error("%s", err.msg);
    if (!f->has_facts)
        front_over(f, "what the back told at the beginning is no good");
}

static void on_frame(struct link *l, enum link_kind kind, uint32_t id, const char *data, size_t len)
{
    struct front *f = front_of(l);

    switch (kind) {
    case LINK_EVENT:
    case LINK_ANSWER:
        questions_on_frame(f, kind, id, data, len);
        break;
    case LINK_FACTS:
        take_facts(f, data, len);
        break;
    case LINK_REVOKE:
        revoke_all(f, data, len);
        break;
    case LINK_ASK:
    case LINK_CANCEL:
    case LINK_TAKEN:
    case LINK_READY:
        front_over(f, "the back sent what only a front sends");
        break;
    }
}

static void on_closed(struct link *l, const char *why)
{
    front_over(front_of(l), why);
}

/* ---- begin and end ---- */

static int open_server(struct front *f, struct error *err)
{
    struct http_limits *limits;
    int r = http_server_new(f->loop, &front_http_ops, f, &f->server, err);

    if (r < 0)
        return r;
    limits = http_server_limits(f->server);
    limits->hard = LIMIT_FRONT_WAITING;
    return 0;
}

static int open_all(struct front *f, int link_fd, struct error *err)
{
    int r;

    questions_init(&f->asks);
    if (getrandom(&f->ids, sizeof(f->ids), 0) != sizeof(f->ids))
        f->ids = (uint64_t)(uintptr_t)f;
    f->link.on_frame = on_frame;
    f->link.on_closed = on_closed;
    r = link_open(&f->link, f->loop, link_fd);
    if (r < 0)
        return error_sys(err, r, "open the line to the gateway's back");
    r = f->o.stdio ? stdio_new(f, err) : open_server(f, err);
    return r < 0 || f->doors.fd < 0 ? r : doors_watch(f, f->doors.fd, err);
}

/* The options' descriptors are ours from here on. */
static int take_options(struct front *f, const struct front_options *o, struct error *err)
{
    f->o = *o;
    f->doors.fd = o->door_fd;
    f->o.n_listeners = 0;
    f->listeners = calloc(o->n_listeners + 1, sizeof(*f->listeners));
    if (!f->listeners)
        return error_sys(err, -ENOMEM, "start the gateway's front");
    for (size_t i = 0; i < o->n_listeners; i++)
        f->listeners[f->o.n_listeners++] = o->listeners[i];
    f->o.listeners = NULL;
    return 0;
}

static void close_options(const struct front_options *o)
{
    for (size_t i = 0; i < o->n_listeners; i++)
        (void)close(o->listeners[i].fd);
    (void)close(o->link_fd);
    if (o->door_fd >= 0)
        (void)close(o->door_fd);
}

int front_new(struct loop *l, const struct front_options *o, struct front **ret, struct error *err)
{
    autoptr(front) f = o->n_listeners <= LIMIT_FRONT_LISTENERS ? calloc(1, sizeof(*f)) : NULL;
    int r;

    if (!f || take_options(f, o, err) < 0) {
        close_options(o);
        return error_sys(err, f ? -ENOMEM : -E2BIG, "start the gateway's front");
    }
    f->loop = l;
    r = open_all(f, o->link_fd, err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(f);
    return 0;
}

void front_drain(struct front *f)
{
    if (f->is_draining)
        return;
    f->is_draining = true;
    if (f->server) {
        sockets_drain(f);
        http_server_drain(f->server);
    } else {
        front_over(f, NULL);
    }
}

void front_free(struct front *f)
{
    if (!f)
        return;
    f->is_over = true; /* nobody is told any more */
    loop_remove(&f->doors);
    close_fd(&f->doors.fd);
    sockets_free(f);
    http_server_free(f->server); /* its requests are told that they are gone */
    stdio_free(f->stdio);
    link_close(&f->link);
    http_tls_free(f->tls);
    mcp_free(f->mcp);
    free(f->tools);
    free(f->mcp_version);
    free(f->openapi);
    free(f->tools_text);
    facts_done(&f->facts);
    for (size_t i = 0; i < f->o.n_listeners; i++)
        close_fd(&f->listeners[i].fd);
    free(f->listeners);
    free(f);
}
