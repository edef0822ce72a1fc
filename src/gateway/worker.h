/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Work that takes its time, in a process of its own: a copy of ours with nothing open but standard
 * error, one descriptor that it needs, and a pipe for what it has to say; or another program of
 * ours. It does not outlive its work, and whoever no longer wants it ends it. Its copy of our
 * memory is as closed to others as ours.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "loop/loop.h"

struct worker {
    /* It has ended, and w->said is all that it said. The worker may be started again or freed. */
    void (*on_end)(struct worker *w);
    struct loop_io io,
        life;  /* what it says; its end, which whoever it has left behind cannot hide */
    pid_t pid; /* 0: none is at work */
    struct buf said;
};

#define WORKER_NONE                           \
    {                                         \
        .io = {.fd = -1}, .life = {.fd = -1 } \
    }

/*
 * `work` runs in the child with the pipe's descriptor and that of `keep` (-1: none), says what it
 * has to say, and returns. At most `max` bytes are heard. -errno.
 */
int worker_start(struct worker *w, struct loop *l, size_t max, int keep,
                 void (*work)(const void *arg, int out, int kept), const void *arg);
/* In the child: the program beside ours, with what it prints going to us. Ends with NULL. */
void worker_become(int out, const char *const *argv);
/* Ends it at once, unheard. Nothing to do when none is at work. */
void worker_stop(struct worker *w);
/* Lets it go on unheard; init of the system will bury it when we are gone. */
void worker_leave(struct worker *w);
