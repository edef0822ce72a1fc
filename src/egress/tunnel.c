/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/tunnel.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

#define CHUNK      (256u << 10) /* asked of one splice; the pipe says how much it is */
#define NARROW     (64u << 10)  /* a pipe as it is made */
#define SHORT      4096u        /* so little was there: more will be told of */
#define PER_TURN   8            /* splices of one side before the others have their turn */
#define PAUSE_USEC 10000        /* until it is asked again whether anything may be read */

static struct tunnel_side *other(struct tunnel_side *s)
{
    return s == &s->tunnel->a ? &s->tunnel->b : &s->tunnel->a;
}

static void close_side(struct tunnel_side *s)
{
    loop_remove(&s->io);
    close_fd(&s->fd);
    close_fd(&s->pipe[0]);
    close_fd(&s->pipe[1]);
}

void tunnel_close(struct tunnel *t)
{
    loop_stop_timer(&t->timer);
    loop_stop_timer(&t->pause);
    close_side(&t->a);
    close_side(&t->b);
}

static void finish(struct tunnel *t, enum tunnel_end how)
{
    tunnel_close(t);
    t->on_end(t, how);
}

/* ---- moving ---- */

static int hold_off(struct tunnel *t)
{
    t->paused = true;
    return loop_set_timer(t->loop, &t->pause, PAUSE_USEC);
}

/* A side that fills its pipe gets a wider one: bulk costs a third less then. Not before, because a
 * user has only so many pages for all his pipes. */
static void widen(struct tunnel_side *s)
{
    s->wide = true;
    (void)fcntl(s->pipe[1], F_SETPIPE_SZ, (int)CHUNK);
}

enum pulled { NOTHING, ALL, SOME };

/* From the socket into its pipe. Negative: it failed, -EDQUOT if a budget is used up. */
static int pull(struct tunnel_side *s)
{
    struct tunnel *t = s->tunnel;
    size_t most = CHUNK;
    ssize_t n;

    if (s->ended || t->paused)
        return NOTHING;
    if (t->allowance) {
        size_t may = t->allowance(t);

        if (!may)
            return hold_off(t);
        most = may < most ? may : most;
    }
    do {
        n = splice(s->fd, NULL, s->pipe[1], NULL, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? NOTHING : -errno;
    if (n == 0) {
        s->ended = true;
        return NOTHING;
    }
    s->queued += (uint32_t)n;
    s->bytes += (uint64_t)n;
    if (n >= NARROW && !s->wide)
        widen(s);
    if (t->spent && !t->spent(t, (uint64_t)n, s == &t->a))
        return -EDQUOT;
    return n < SHORT ? ALL : SOME;
}

/* From the pipe to the other side's socket. 1: something went; 0: it takes no more now. */
static int push(struct tunnel_side *s)
{
    ssize_t n;

    if (!s->queued)
        return 0;
    do {
        n = splice(s->pipe[0], NULL, other(s)->fd, NULL, s->queued,
                   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? 0 : -errno;
    s->queued -= (uint32_t)n;
    return n > 0;
}

/* One direction, until it stands still or has had its turn. */
static int move(struct tunnel_side *s)
{
    for (int i = 0; i < PER_TURN; i++) {
        int in = pull(s), out;

        if (in < 0)
            return in;
        out = push(s);
        if (out < 0)
            return out;
        if (in > 0 || out > 0)
            s->tunnel->moved = true;
        if ((!in && !out) || (in == ALL && !s->queued))
            break;
    }
    if (s->ended && !s->queued && !s->told) {
        s->told = true;
        (void)shutdown(other(s)->fd, SHUT_WR);
    }
    return 0;
}

/*
 * A side is read while its pipe has room, and written while the other's pipe has something. A peer
 * that is gone is always ready: while nothing is wanted of it, it is not in the loop at all.
 */
static int watch(struct tunnel_side *s)
{
    bool reads = !s->ended && !s->queued && !s->tunnel->paused;
    uint32_t events = (reads ? EPOLLIN | EPOLLRDHUP : 0) | (other(s)->queued ? EPOLLOUT : 0);

    if (!events && s->gone) {
        loop_remove(&s->io);
        return 0;
    }
    return s->io.loop ? loop_change(&s->io, events)
                      : loop_add(s->tunnel->loop, &s->io, s->fd, events);
}

/* What comes from these sides. False: it is over, and maybe freed. */
static bool turn(struct tunnel *t, bool from_a, bool from_b)
{
    int r = from_a ? move(&t->a) : 0;

    if (r >= 0 && from_b)
        r = move(&t->b);
    if (r >= 0 && !(t->a.told && t->b.told))
        return true;
    finish(t, r == -EDQUOT ? TUNNEL_SPENT : r < 0 ? TUNNEL_BROKEN : TUNNEL_CLOSED);
    return false;
}

static void watch_both(struct tunnel *t)
{
    if (watch(&t->a) < 0 || watch(&t->b) < 0)
        finish(t, TUNNEL_BROKEN);
}

static void on_ready(struct loop_io *io, uint32_t events)
{
    struct tunnel_side *s = (struct tunnel_side *)((char *)io - offsetof(struct tunnel_side, io));
    struct tunnel *t = s->tunnel;
    /* What ended or failed concerns both. */
    bool reads = events & ~(uint32_t)EPOLLOUT, writes = events & ~(uint32_t)(EPOLLIN | EPOLLRDHUP);

    if (!turn(t, s == &t->a ? reads : writes, s == &t->b ? reads : writes))
        return;
    s->gone = events & EPOLLHUP;
    /* Gone both ways with nothing left to read: no event that is asked for would tell. */
    if ((events & EPOLLERR) || (s->gone && s->ended && !s->queued))
        finish(t, TUNNEL_BROKEN);
    else
        watch_both(t);
}

static void on_pause_over(struct loop_timer *timer)
{
    struct tunnel *t = (struct tunnel *)((char *)timer - offsetof(struct tunnel, pause));

    t->paused = false;
    if (turn(t, true, true))
        watch_both(t);
}

static void on_time(struct loop_timer *timer)
{
    struct tunnel *t = (struct tunnel *)((char *)timer - offsetof(struct tunnel, timer));

    if (!t->moved && !t->paused) { /* to have to wait is not to be idle */
        finish(t, TUNNEL_IDLE);
        return;
    }
    t->moved = false;
    (void)loop_set_timer(t->loop, &t->timer, t->idle_usec);
}

/* ---- starting ---- */

void tunnel_init(struct tunnel *t)
{
    *t = (struct tunnel){.a = {.fd = -1, .pipe = {-1, -1}}, .b = {.fd = -1, .pipe = {-1, -1}}};
}

static int open_side(struct tunnel *t, struct tunnel_side *s, int fd)
{
    *s = (struct tunnel_side){.io.on_ready = on_ready, .tunnel = t, .fd = fd, .pipe = {-1, -1}};
    if (pipe2(s->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
        s->pipe[0] = s->pipe[1] = -1;
        return -errno;
    }
    return loop_add(t->loop, &s->io, fd, EPOLLIN | EPOLLRDHUP);
}

int tunnel_start(struct tunnel *t, struct loop *l, int a, int b)
{
    int r, q;

    t->loop = l;
    t->timer.on_time = on_time;
    t->pause.on_time = on_pause_over;
    t->moved = t->paused = false;
    r = open_side(t, &t->a, a);
    q = open_side(t, &t->b, b); /* both, so that both are closed if one cannot be */
    if (r >= 0)
        r = q;
    if (r >= 0 && t->idle_usec)
        r = loop_set_timer(l, &t->timer, t->idle_usec);
    if (r < 0)
        tunnel_close(t);
    return r;
}
