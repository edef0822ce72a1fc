/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One thread that waits for many things: descriptors (pidfds and signalfds among them), moments,
 * and work put off until the present round is over.
 *
 * A source is embedded in whoever owns it and is not copied or moved while it is in the loop. Its
 * callback may remove, change or free any source, itself included: what was waiting in the same
 * round for a source that is gone is dropped. Descriptors are level-triggered and stay their
 * owner's to close, after removal. The loop allocates only for its own tables, and only when
 * something is added: what runs never fails for memory.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct loop;

/* Whoever owns an embedded source: OF(struct conn, io, io). */
#define OF(type, member, p) ((type *)((char *)(p)-offsetof(type, member)))

struct loop_io {
    void (*on_ready)(struct loop_io *io, uint32_t events); /* EPOLLIN, EPOLLOUT, EPOLLHUP, ... */
    struct loop *loop;                                     /* NULL: not in one */
    int fd;
    uint32_t events;
};

struct loop_timer {
    void (*on_time)(struct loop_timer *t);
    struct loop *loop; /* NULL: not set */
    uint64_t at_usec;
    size_t place; /* in the heap */
};

struct loop_task {
    void (*on_turn)(struct loop_task *t);
    struct loop *loop; /* NULL: not waiting */
    struct loop_task *next, **back;
};

int loop_new(struct loop **ret);
/* Every source must have been removed. */
void loop_free(struct loop *l);
DEFINE_AUTOPTR(loop)

/* Adds a source whose on_ready is set. -errno. */
int loop_add(struct loop *l, struct loop_io *io, int fd, uint32_t events);
/* Nothing to do when the events are the same. 0 keeps it in, for EPOLLHUP and EPOLLERR. */
int loop_change(struct loop_io *io, uint32_t events);
/* Nothing to do when it is in no loop. */
void loop_remove(struct loop_io *io);

/* Calls on_time once, so many microseconds from now; setting it again moves it. -ENOMEM. */
int loop_set_timer(struct loop *l, struct loop_timer *t, uint64_t usec);
void loop_stop_timer(struct loop_timer *t);

/* Calls on_turn once, when the callbacks of this round are through. */
void loop_later(struct loop *l, struct loop_task *t);
void loop_forget(struct loop_task *t);

/* Monotonic; the same during one round. */
uint64_t loop_now(const struct loop *l);
/* Runs until loop_quit(), or until nothing is left that could ever happen: 0. -errno. */
int loop_run(struct loop *l);
void loop_quit(struct loop *l);
