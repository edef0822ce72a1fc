/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published ports. Whoever connects to one is a guest: it gets a spare, which is connected to the
 * box's loopback, and the two are carried until one has enough.
 *
 * A spare is a socket of the box's network, and the relay can make no other: so the tunnel is given
 * a copy of the descriptor, and when that is closed the socket itself is disconnected, which
 * connect() does with an address of no family, and is free again. Disconnecting throws away what
 * the box has not read yet: a spare that said all and was not heard out is waited for.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/relay.h"
#include "egress/tunnel.h"

#define CONNECT_USEC 10000000ull
#define IDLE_USEC    3600000000ull /* a person may look at a page for long */
#define DRAIN_USEC   50000ull
#define DRAINS       200 /* then nobody reads it any more */
#define PER_TURN     16

struct guest {
    struct relay_box *box;
    struct guest *next, **back;
    struct relay_spare *spare;
    uint16_t port;
    int client_fd, up_fd; /* up: a copy of the spare's */
    struct loop_io up;    /* until it is connected */
    struct loop_timer timer;
    unsigned drains;
    bool told;
    const char *reason;
    struct meter meter;
    struct tunnel tunnel;
};

/* One line for each, at its end: other people of this machine can make as many as they like. */
static void tell(struct guest *g)
{
    char target[32];
    struct relay_event e = {.via = "published",
                            .target = target,
                            .address = "127.0.0.1",
                            .allowed = true,
                            .is_end = true,
                            .reason = g->reason,
                            .setting = g->reason ? g->box->budgets_key : NULL,
                            .bytes_out = g->meter.bytes_out,
                            .bytes_in = g->meter.bytes_in};

    (void)snprintf(target, sizeof(target), "127.0.0.1:%u", g->port);
    relay_tell(g->box, &e, &g->meter);
}

static void tell_refused(struct relay_box *b, uint16_t port, const char *reason,
                         const char *setting)
{
    char target[32];
    struct relay_event e = {
        .via = "published", .target = target, .address = "", .reason = reason, .setting = setting};

    (void)snprintf(target, sizeof(target), "127.0.0.1:%u", port);
    relay_tell_often(b, &e, &(struct meter){.box = b});
}

/* ---- spares ---- */

static struct relay_spare *find_spare(struct relay_box *b)
{
    for (size_t i = 0; i < b->n_spares; i++)
        if (b->spares[i].fd >= 0 && !b->spares[i].busy)
            return &b->spares[i];
    return NULL;
}

/* It can be connected again, or it is closed and forgotten. */
static void free_spare(struct relay_spare *s)
{
    struct sockaddr nobody = {.sa_family = AF_UNSPEC};

    s->busy = false;
    if (connect(s->fd, &nobody, sizeof(nobody)) < 0)
        close_fd(&s->fd);
}

static bool is_heard(const struct relay_spare *s)
{
    int unread = 0;

    return ioctl(s->fd, SIOCOUTQ, &unread) < 0 || unread == 0;
}

/* ---- the end ---- */

static void guest_free(struct guest *g)
{
    if (g->told)
        tell(g);
    loop_stop_timer(&g->timer);
    loop_remove(&g->up);
    tunnel_close(&g->tunnel);
    close_fd(&g->client_fd);
    close_fd(&g->up_fd);
    free_spare(g->spare);
    *g->back = g->next;
    if (g->next)
        g->next->back = g->back;
    free(g);
}

void publish_close_all(struct relay_box *b)
{
    while (b->guests)
        guest_free(b->guests);
}

static struct guest *guest_of_timer(struct loop_timer *t)
{
    return (struct guest *)((char *)t - offsetof(struct guest, timer));
}

static void on_drain(struct loop_timer *t)
{
    struct guest *g = guest_of_timer(t);

    if (is_heard(g->spare) || ++g->drains > DRAINS ||
        loop_set_timer(g->box->relay->loop, t, DRAIN_USEC) < 0)
        guest_free(g);
}

static void on_tunnel_end(struct tunnel *t, enum tunnel_end how)
{
    struct guest *g = (struct guest *)((char *)t - offsetof(struct guest, tunnel));
    char text[LIMIT_METER_REASON];

    if (how == TUNNEL_SPENT)
        g->reason = meter_overrun(&g->meter, text);
    g->timer.on_time = on_drain;
    if (how != TUNNEL_CLOSED || is_heard(g->spare) ||
        loop_set_timer(g->box->relay->loop, &g->timer, DRAIN_USEC) < 0)
        guest_free(g);
}

/* ---- carrying ---- */

static struct meter *meter_of(struct tunnel *t)
{
    return &((struct guest *)((char *)t - offsetof(struct guest, tunnel)))->meter;
}

static size_t allowance(struct tunnel *t)
{
    return meter_allowance(meter_of(t));
}

/* What a guest says goes in. */
static bool spent(struct tunnel *t, uint64_t n, bool from_guest)
{
    return meter_spend(meter_of(t), n, !from_guest);
}

static void carry(struct guest *g)
{
    struct loop *l = g->box->relay->loop;

    loop_stop_timer(&g->timer);
    loop_remove(&g->up);
    g->told = true;
    g->box->allowed++;
    g->tunnel.on_end = on_tunnel_end;
    g->tunnel.allowance = allowance;
    g->tunnel.spent = spent;
    g->tunnel.idle_usec = IDLE_USEC;
    if (tunnel_start(&g->tunnel, l, TAKE_FD(g->client_fd), TAKE_FD(g->up_fd)) < 0)
        guest_free(g);
}

static void on_up(struct loop_io *io, uint32_t events)
{
    struct guest *g = (struct guest *)((char *)io - offsetof(struct guest, up));
    socklen_t n = sizeof(int);
    int e = 0;

    (void)events;
    if (getsockopt(g->up_fd, SOL_SOCKET, SO_ERROR, &e, &n) < 0 || e)
        guest_free(g); /* nobody listens in the box */
    else
        carry(g);
}

static void on_too_late(struct loop_timer *t)
{
    guest_free(guest_of_timer(t));
}

/* ---- coming in ---- */

static int dial(struct guest *g)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(g->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct loop *l = g->box->relay->loop;
    int on = 1, r;

    g->up_fd = fcntl(g->spare->fd, F_DUPFD_CLOEXEC, 3);
    if (g->up_fd < 0)
        return -errno;
    (void)setsockopt(g->up_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(g->client_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(g->up_fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)
        return -errno;
    g->up.on_ready = on_up;
    g->timer.on_time = on_too_late;
    r = loop_add(l, &g->up, g->up_fd, EPOLLOUT);
    return r < 0 ? r : loop_set_timer(l, &g->timer, CONNECT_USEC);
}

static void guest_begin(struct relay_box *b, struct relay_spare *s, int fd, uint16_t port)
{
    struct guest *g = calloc(1, sizeof(*g));

    if (!g) {
        (void)close(fd);
        return;
    }
    g->box = g->meter.box = b;
    g->client_fd = fd;
    g->up_fd = -1;
    g->port = port;
    g->spare = s;
    s->busy = true;
    tunnel_init(&g->tunnel);
    g->next = b->guests;
    g->back = &b->guests;
    if (g->next)
        g->next->back = &g->next;
    b->guests = g;
    if (dial(g) < 0)
        guest_free(g);
}

void publish_on_accept(struct loop_io *io, uint32_t events)
{
    struct relay_listener *l = (struct relay_listener *)io;
    struct relay_box *b = l->box;

    (void)events;
    for (int i = 0; i < PER_TURN; i++) {
        int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct relay_spare *s = find_spare(b);
        char text[LIMIT_METER_REASON];
        const char *over = meter_used_up(&(struct meter){.box = b}, text);

        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE)
                relay_shed(b->relay, io->fd);
            return;
        }
        if (s && !over && relay_spend_visit(b)) {
            guest_begin(b, s, fd, l->port);
            continue;
        }
        (void)close(fd);
        tell_refused(b, l->port, over ? over : "too many connections to published ports at once",
                     over ? b->budgets_key : NULL);
    }
}
