/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Bytes between two connected sockets, both ways, by splice: they never enter our memory. Each
 * direction has a pipe; a side that does not read stops the other by the pipe being full, and
 * nothing is buffered beyond that. An end of one direction is passed on (shutdown), the other goes
 * on; when both have ended, or one side fails, the tunnel is over.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/loop.h"

struct tunnel;

enum tunnel_end {
    TUNNEL_CLOSED, /* both sides have said all */
    TUNNEL_BROKEN, /* a side was reset */
    TUNNEL_IDLE,   /* nothing moved for too long */
    TUNNEL_SPENT,  /* a budget of bytes is used up: spent() said so */
};

struct tunnel_side {
    struct loop_io io;
    struct tunnel *tunnel;
    int fd;
    int pipe[2];     /* what was read here and is on its way to the other side */
    uint32_t queued; /* bytes in it */
    bool wide;       /* it has been made larger */
    bool ended;      /* no more comes from here */
    bool told;       /* and the other side knows */
    bool gone;       /* the peer has nothing more to do with us */
    uint64_t bytes;  /* read here, in all */
};

struct tunnel {
    /* Called once, from the loop; the tunnel is closed then, and may be freed. */
    void (*on_end)(struct tunnel *t, enum tunnel_end how);
    /* How many bytes may be read now; 0: none, and it is asked again soon. NULL: any number. */
    size_t (*allowance)(struct tunnel *t);
    /* So many were read, from side a or else b. False: it has to end. May be NULL. */
    bool (*spent)(struct tunnel *t, uint64_t n, bool from_a);
    struct loop *loop;
    struct tunnel_side a, b;
    struct loop_timer timer, pause;
    uint64_t idle_usec;
    bool moved;  /* since the timer looked last */
    bool paused; /* nothing may be read just now */
};

/* Nothing is open: tunnel_close() may be called. */
void tunnel_init(struct tunnel *t);
/* Takes both descriptors over, connected and non-blocking, whatever it returns. -errno. */
int tunnel_start(struct tunnel *t, struct loop *l, int a, int b);
/* Closes everything; on_end is not called. Nothing to do when it is closed. */
void tunnel_close(struct tunnel *t);
