/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that bring boxes, announce commands in them, change their rules, or ask. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"
#include "cmd/egress/egress.h"

#define OTHER_FDS 200u        /* that are no connection's */
#define TALK_USEC 10000000ull /* to say what it wants */

struct client {
    struct service *service;
    struct client *next, **back;
    struct loop_io io;
    struct loop_timer timer;
    int fd;
    struct relay_call call; /* .box: it uses this one */
};

static struct client *client_of(struct loop_io *io)
{
    return (struct client *)((char *)io - offsetof(struct client, io));
}

void serve_touch(struct service *s)
{
    (void)loop_set_timer(s->loop, &s->idle, s->idle_usec);
}

static void drop(struct client *c)
{
    struct service *s = c->service;

    relay_release(&c->call);
    loop_stop_timer(&c->timer);
    loop_remove(&c->io);
    close_fd(&c->fd);
    *c->back = c->next;
    if (c->next)
        c->next->back = c->back;
    s->n_clients--;
    free(c);
    serve_touch(s);
}

static void on_time(struct loop_timer *t)
{
    drop((struct client *)((char *)t - offsetof(struct client, timer)));
}

/* ---- boxes ---- */

static struct joined **find(struct service *s, const char *id)
{
    struct joined **p = &s->boxes;

    while (*p && strcmp((*p)->id, id) != 0)
        p = &(*p)->next;
    return p;
}

static void forget(struct service *s, struct joined **p)
{
    struct joined *j = *p;

    *p = j->next;
    wish_free(j->wish);
    free(j);
    s->n_boxes--;
    serve_touch(s);
}

void serve_on_gone(struct relay *r, const char *box)
{
    struct joined **p = find(service_of(r), box);

    if (*p)
        forget(service_of(r), p);
}

/* The box of this name that is there, if any: it was started anew, or whoever brought it could not
 * know. */
static void leave(struct service *s, const char *id)
{
    struct relay_box *b = relay_find(&s->relay, id);
    struct joined **p = find(s, id);

    if (b)
        relay_leave(b);
    if (*p)
        forget(s, p);
}

/* ---- what comes along ---- */

static int read_text(int fd, char *text, size_t size, size_t *ret_len)
{
    size_t n = 0;
    ssize_t got = 1;

    while (n < size && got > 0) {
        got = pread(fd, text + n, size - n, (off_t)n);
        if (got < 0)
            return -errno;
        n += (size_t)got;
    }
    *ret_len = n;
    return n == size ? -EFBIG : 0;
}

/* Which name servers to ask. A file that cannot be read changes nothing. */
static void take_servers(struct service *s, int fd)
{
    static char text[LIMIT_SMALL_FILE];
    struct resolver_server list[LIMIT_RESOLVER_SERVERS];
    size_t len;

    if (read_text(fd, text, sizeof(text), &len) >= 0)
        resolver_change(s->relay.resolver, list,
                        resolver_parse_conf(text, len, list, LIMIT_RESOLVER_SERVERS));
}

static int take_wish(int fd, struct wish **ret_wish, struct rules **ret_rules, struct error *err)
{
    autofree char *text = malloc(LIMIT_WISH_TEXT);
    autoptr(wish) w = NULL;
    size_t len;
    int r = text ? read_text(fd, text, LIMIT_WISH_TEXT, &len) : -ENOMEM;

    if (r < 0)
        return error_sys(err, r, "read the rules of a box");
    r = wish_parse(text, len, &w, err);
    if (r >= 0)
        r = wish_rules(w, ret_rules, err);
    if (r >= 0)
        *ret_wish = TAKE_PTR(w);
    return r;
}

/* Six descriptors to a connection: no box gets more than half of them all. */
static uint32_t most_conns(uint32_t wanted)
{
    struct rlimit l = {.rlim_cur = 1024};
    uint64_t most;

    (void)getrlimit(RLIMIT_NOFILE, &l);
    most = l.rlim_cur > 2 * OTHER_FDS ? (l.rlim_cur - OTHER_FDS) / 12 : 16;
    if (!wanted || wanted > LIMIT_RELAY_CONNS)
        wanted = LIMIT_RELAY_CONNS;
    return wanted < most ? wanted : (uint32_t)most;
}

static struct relay_budgets budgets_of(const struct wish *w)
{
    return (struct relay_budgets){.bytes = w->budgets.bytes,
                                  .bytes_per_sec = w->budgets.bytes_per_sec,
                                  .host_bytes = w->budgets.host_bytes,
                                  .call_bytes = w->budgets.call_bytes,
                                  .conns = most_conns(w->budgets.conns),
                                  .host_conns = w->budgets.host_conns,
                                  .new_per_sec = w->budgets.new_per_sec};
}

/* ---- joining ---- */

struct brought {
    int fds[WIRE_FDS];
    size_t n;
};

/* Those that the relay has taken are -1 by now. */
static void close_brought(struct brought *b)
{
    for (size_t i = 0; i < WIRE_FDS; i++)
        close_fd(&b->fds[i]);
}

static bool fits(const struct wire_request *q, const struct brought *b)
{
    size_t n = 3;

    if (q->n_ports > LIMIT_NET_PORTS || q->n_spares > LIMIT_NET_SPARES ||
        q->n_published > LIMIT_PUBLISHED || q->has >> WIRE_SOCKETS)
        return false;
    for (unsigned i = 0; i < WIRE_SOCKETS; i++)
        n += q->has >> i & 1;
    return n + q->n_ports + q->n_spares + q->n_published == b->n &&
           (q->has & 7) == (1 << WIRE_PROXY | 1 << WIRE_DNS | 1 << WIRE_DNS_TCP);
}

static int hand_over(struct service *s, const struct wire_request *q, const struct brought *b,
                     const struct wish *w, struct rules *rules, struct error *err)
{
    struct relay_publish published[LIMIT_PUBLISHED];
    struct relay_budgets budgets = budgets_of(w);
    int singles[WIRE_SOCKETS];
    size_t n = 3, ports, spares;

    for (unsigned i = 0; i < WIRE_SOCKETS; i++)
        singles[i] = q->has >> i & 1 ? b->fds[n++] : -1;
    ports = n;
    spares = ports + q->n_ports;
    n = spares + q->n_spares;
    for (unsigned i = 0; i < q->n_published; i++)
        published[i] = (struct relay_publish){.listener = b->fds[n + i], .port = q->published[i]};
    return relay_join(
        &s->relay,
        &(struct relay_join){.id = q->box,
                             .rules = rules,
                             .pidfd = b->fds[2],
                             .proxy = singles[WIRE_PROXY],
                             .dns = singles[WIRE_DNS],
                             .dns_tcp = singles[WIRE_DNS_TCP],
                             .caught = {singles[WIRE_CAUGHT_4], singles[WIRE_CAUGHT_6]},
                             .counters = {singles[WIRE_SNMP], singles[WIRE_SNMP_6]},
                             .ports = b->fds + ports,
                             .port_numbers = q->ports,
                             .n_ports = q->n_ports,
                             .spares = b->fds + spares,
                             .n_spares = q->n_spares,
                             .published = published,
                             .n_published = q->n_published,
                             .budgets = budgets,
                             .budgets_key = w->budgets_key},
        err);
}

static int join(struct service *s, const struct wire_request *q, struct brought *b,
                struct error *err)
{
    autoptr(rules) rules = NULL;
    autoptr(wish) w = NULL;
    autofree struct joined *j = calloc(1, sizeof(*j));
    int r;

    if (!j)
        return error_sys(err, -ENOMEM, "join a box");
    if (!fits(q, b))
        return error_set(err, ERR_INVALID, "a box was brought without its sockets");
    leave(s, q->box);
    if (s->n_boxes >= LIMIT_BOXES)
        return error_set(err, ERR_TOO_LARGE, "%zu boxes have a network already: that is the limit",
                         s->n_boxes);
    r = take_wish(b->fds[1], &w, &rules, err);
    if (r >= 0)
        r = hand_over(s, q, b, w, rules, err);
    if (r < 0)
        return r;
    rules = NULL; /* the relay's now, and all but the two texts */
    memset(b->fds + 2, -1, sizeof(b->fds) - 2 * sizeof(*b->fds));
    memcpy(j->id, q->box, sizeof(j->id));
    j->wish = TAKE_PTR(w);
    j->next = s->boxes;
    s->boxes = TAKE_PTR(j);
    s->n_boxes++;
    return 0;
}

/* ---- the others ---- */

static int change(struct service *s, struct relay_box *box, const struct brought *b,
                  struct error *err)
{
    struct joined **j = find(s, box->id);
    struct relay_budgets budgets;
    struct rules *rules = NULL;
    struct wish *w = NULL;
    int r = b->n < 2 ? error_set(err, ERR_INVALID, "a change without rules")
                     : take_wish(b->fds[1], &w, &rules, err);

    if (r < 0)
        return r;
    budgets = budgets_of(w);
    relay_change(box, rules, &budgets);
    box->budgets_key = w->budgets_key;
    wish_free((*j)->wish);
    (*j)->wish = w;
    return 0;
}

/* 1: the connection stays. */
static int act(struct client *c, const struct wire_request *q, struct brought *b, struct buf *text,
               struct error *err)
{
    struct service *s = c->service;
    struct relay_box *box;

    if (q->type == WIRE_STOP) {
        loop_quit(s->loop);
        return 0;
    }
    if (b->n && q->type != WIRE_LOOK)
        take_servers(s, b->fds[0]);
    if (q->type == WIRE_JOIN)
        return join(s, q, b, err);
    box = relay_find(&s->relay, q->box);
    if (!box)
        return error_set(err, ERR_NOT_FOUND, "the relay does not know this box");
    switch ((enum wire_type)q->type) {
    case WIRE_USE:
        memcpy(c->call.id, q->call, sizeof(c->call.id));
        relay_use(box, &c->call);
        return 1;
    case WIRE_CHANGE:
        return change(s, box, b, err);
    case WIRE_LOOK:
        report_box(box, text);
        return 0;
    case WIRE_JOIN:
    case WIRE_STOP:
        break;
    }
    return error_set(err, ERR_INVALID, "a request that is not known (%u)", q->type);
}

static void reply(const struct client *c, int r, const struct buf *text, const struct error *err)
{
    static char data[sizeof(struct wire_reply) + WIRE_TEXT];
    struct wire_reply head = {.code = r < 0 ? -r : 0, .sys = r < 0 ? err->sys : 0};
    const char *say = r < 0 ? err->msg : text->len ? text->data : "";
    size_t n = r < 0 ? strlen(err->msg) : text->len;

    memcpy(data, &head, sizeof(head));
    memcpy(data + sizeof(head), say, n);
    (void)fd_send(c->fd, data, sizeof(head) + n, NULL, 0);
}

static void on_client(struct loop_io *io, uint32_t events)
{
    struct client *c = client_of(io);
    struct wire_request q = {0};
    struct brought b;
    struct error err = {0};
    autobuf text;
    ssize_t n;
    int r;

    (void)events;
    n = fd_recv(c->fd, &q, sizeof(q), b.fds, WIRE_FDS);
    if (n <= 0 || c->call.box) { /* gone; or it says more than there is to say */
        if (n > 0)
            close_brought(&b);
        drop(c);
        return;
    }
    for (b.n = 0; b.n < WIRE_FDS && b.fds[b.n] >= 0; b.n++)
        ;
    q.box[sizeof(q.box) - 1] = q.call[sizeof(q.call) - 1] = 0;
    buf_init(&text, WIRE_TEXT);
    r = n != (ssize_t)sizeof(q) || q.version != WIRE_VERSION
            ? error_set(&err, ERR_UNSUPPORTED,
                        "clawden-egress is of another version: end it with 'clawden-egress --stop'")
            : act(c, &q, &b, &text, &err);
    close_brought(&b);
    reply(c, r, &text, &err);
    if (r == 1)
        loop_stop_timer(&c->timer);
    else
        drop(c);
}

/* ---- coming and going ---- */

static bool is_ours(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.uid == geteuid();
}

static void begin(struct service *s, int fd)
{
    struct client *c = calloc(1, sizeof(*c));

    if (!c) {
        (void)close(fd);
        return;
    }
    c->service = s;
    c->fd = fd;
    c->io.on_ready = on_client;
    c->timer.on_time = on_time;
    c->next = s->clients;
    c->back = &s->clients;
    if (c->next)
        c->next->back = &c->next;
    s->clients = c;
    s->n_clients++;
    if (loop_add(s->loop, &c->io, fd, EPOLLIN) < 0 ||
        loop_set_timer(s->loop, &c->timer, TALK_USEC) < 0)
        drop(c);
}

void serve_on_accept(struct loop_io *io, uint32_t events)
{
    struct service *s = (struct service *)((char *)io - offsetof(struct service, accept));
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)events;
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE)
            relay_shed(&s->relay, s->listener);
        return;
    }
    if (s->n_clients >= LIMIT_CLIENTS || !is_ours(fd))
        (void)close(fd);
    else
        begin(s, fd);
}

void serve_end(struct service *s)
{
    while (s->clients)
        drop(s->clients);
    while (s->boxes)
        leave(s, s->boxes->id);
}
