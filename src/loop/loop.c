/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/loop.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

#define ROUND 64 /* events taken at once: more would only make the others wait longer */

struct loop {
    int epoll;
    uint64_t now_usec;
    bool quit;
    size_t n_ios;
    /* Of the present round; a source that goes is taken out of it. */
    struct epoll_event round[ROUND];
    int at, n;
    /* A binary heap: the parent of i is (i - 1) / 2, and never later than i. */
    struct loop_timer **heap;
    size_t n_timers, cap;
    struct loop_task *tasks, **last;
};

static uint64_t clock_usec(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

int loop_new(struct loop **ret)
{
    struct loop *l = calloc(1, sizeof(*l));

    if (!l)
        return -ENOMEM;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll < 0) {
        int r = -errno;

        free(l);
        return r;
    }
    l->now_usec = clock_usec();
    l->last = &l->tasks;
    *ret = l;
    return 0;
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    assert(l->n_ios == 0 && l->n_timers == 0 && !l->tasks);
    close_fd(&l->epoll);
    free(l->heap);
    free(l);
}

uint64_t loop_now(const struct loop *l)
{
    return l->now_usec;
}

void loop_quit(struct loop *l)
{
    l->quit = true;
}

/* ---- descriptors ---- */

int loop_add(struct loop *l, struct loop_io *io, int fd, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = io};

    assert(!io->loop);
    if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) < 0)
        return -errno;
    io->loop = l;
    io->fd = fd;
    io->events = events;
    l->n_ios++;
    return 0;
}

int loop_change(struct loop_io *io, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = io};

    if (io->events == events)
        return 0;
    if (epoll_ctl(io->loop->epoll, EPOLL_CTL_MOD, io->fd, &e) < 0)
        return -errno;
    io->events = events;
    return 0;
}

void loop_remove(struct loop_io *io)
{
    struct loop *l = io->loop;

    if (!l)
        return;
    (void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, io->fd, NULL);
    for (int i = l->at; i < l->n; i++)
        if (l->round[i].data.ptr == io)
            l->round[i].data.ptr = NULL;
    io->loop = NULL;
    l->n_ios--;
}

/* ---- moments ---- */

static void put(struct loop *l, size_t place, struct loop_timer *t)
{
    l->heap[place] = t;
    t->place = place;
}

/* Moves it to where it belongs, up or down from a place that is free. */
static void settle(struct loop *l, size_t place, struct loop_timer *t)
{
    while (place && l->heap[(place - 1) / 2]->at_usec > t->at_usec) {
        put(l, place, l->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * place + 1;

        if (child + 1 < l->n_timers && l->heap[child + 1]->at_usec < l->heap[child]->at_usec)
            child++;
        if (child >= l->n_timers || l->heap[child]->at_usec >= t->at_usec)
            break;
        put(l, place, l->heap[child]);
        place = child;
    }
    put(l, place, t);
}

static int grow(struct loop *l)
{
    size_t cap = l->cap ? 2 * l->cap : 64;
    struct loop_timer **heap;

    if (l->n_timers < l->cap)
        return 0;
    heap = realloc(l->heap, cap * sizeof(*heap));
    if (!heap)
        return -ENOMEM;
    l->heap = heap;
    l->cap = cap;
    return 0;
}

int loop_set_timer(struct loop *l, struct loop_timer *t, uint64_t usec)
{
    int r = t->loop ? 0 : grow(l);

    if (r < 0)
        return r;
    if (usec == 0)
        usec = 1; /* the next round at the earliest */
    t->at_usec = usec > UINT64_MAX - l->now_usec ? UINT64_MAX : l->now_usec + usec;
    if (!t->loop) {
        t->loop = l;
        t->place = l->n_timers++;
    }
    settle(l, t->place, t);
    return 0;
}

void loop_stop_timer(struct loop_timer *t)
{
    struct loop *l = t->loop;
    struct loop_timer *moved;

    if (!l)
        return;
    t->loop = NULL;
    moved = l->heap[--l->n_timers];
    if (moved != t)
        settle(l, t->place, moved);
}

/* What a callback sets is later than now, so that this ends. The callback may free the timer. */
static void run_timers(struct loop *l)
{
    while (l->n_timers && l->heap[0]->at_usec <= l->now_usec && !l->quit) {
        struct loop_timer *t = l->heap[0];

        loop_stop_timer(t);
        t->on_time(t);
    }
}

/* ---- work put off ---- */

void loop_later(struct loop *l, struct loop_task *t)
{
    if (t->loop)
        return;
    t->loop = l;
    t->next = NULL;
    t->back = l->last;
    *l->last = t;
    l->last = &t->next;
}

void loop_forget(struct loop_task *t)
{
    struct loop *l = t->loop;

    if (!l)
        return;
    *t->back = t->next;
    if (t->next)
        t->next->back = t->back;
    else
        l->last = t->back;
    t->loop = NULL;
}

/* Those that are there now; what they put off is for the next round. */
static void run_tasks(struct loop *l)
{
    struct loop_task mark = {.loop = NULL};

    if (!l->tasks)
        return;
    loop_later(l, &mark);
    while (l->tasks != &mark) {
        struct loop_task *t = l->tasks;

        loop_forget(t);
        t->on_turn(t);
    }
    loop_forget(&mark);
}

/* ---- rounds ---- */

static int wait_ms(const struct loop *l)
{
    uint64_t left;

    if (l->tasks)
        return 0;
    if (!l->n_timers)
        return -1;
    if (l->heap[0]->at_usec <= l->now_usec)
        return 0;
    left = (l->heap[0]->at_usec - l->now_usec + 999) / 1000; /* not too early: it would spin */
    return left > INT_MAX ? INT_MAX : (int)left;
}

static int one_round(struct loop *l)
{
    int n;

    l->now_usec = clock_usec();
    n = epoll_wait(l->epoll, l->round, ROUND, wait_ms(l));
    if (n < 0 && errno != EINTR)
        return -errno;
    l->now_usec = clock_usec();
    l->n = n < 0 ? 0 : n;
    for (l->at = 0; l->at < l->n && !l->quit;) {
        const struct epoll_event *e = &l->round[l->at++];
        struct loop_io *io = e->data.ptr;

        if (io)
            io->on_ready(io, e->events);
    }
    l->at = l->n = 0;
    run_tasks(l); /* somebody waits for these; timers are mostly chores */
    if (!l->quit)
        run_timers(l);
    return 0;
}

int loop_run(struct loop *l)
{
    int r = 0;

    l->quit = false;
    while (r >= 0 && !l->quit && (l->n_ios || l->n_timers || l->tasks))
        r = one_round(l);
    return r;
}
