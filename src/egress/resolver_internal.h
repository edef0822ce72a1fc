/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What resolver.c, resolver_ask.c and their test share. */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "egress/resolver.h"

/* ---- how long things take ---- */

struct resolver_times {
    uint64_t try_usec;    /* for one server to answer one question */
    uint64_t grace_usec;  /* for the other type, when one has come with addresses */
    uint64_t total_usec;  /* for everything */
    uint64_t second_usec; /* what a TTL counts in */
};

/* resolver_new() for tests, which have no time. */
int resolver_new_timed(struct loop *loop, const struct resolver_server *servers, size_t n,
                       const struct resolver_times *times, struct resolver **ret,
                       struct error *err);

/* ---- one question to one server: by datagram, and over TCP if the answer is too long ---- */

/* Embedded, all zero before it is set up; on_end, host and type are its owner's to set. */
struct resolver_ask {
    /*
     * The ask is stopped by then, and may be started again. NULL: the time is over, or the server
     * cannot be reached or breaks off.
     */
    void (*on_end)(struct resolver_ask *a, const struct dns_answer *answer);
    const struct host *host; /* borrowed while it is under way */
    uint16_t type;
    /* private */
    struct loop *loop; /* NULL: not under way */
    struct resolver_server server;
    uint64_t usec;
    struct loop_io io;
    struct loop_timer timer;
    int fd;
    uint16_t id;
    bool tcp;
    size_t sent;   /* over TCP: of the question */
    struct buf in; /* over TCP: of the answer, with its length before it */
};

/* Its time runs from here, and once more from the change to TCP. -errno; then on_end is not called.
 */
int resolver_ask_start(struct resolver_ask *a, struct loop *loop,
                       const struct resolver_server *server, uint64_t usec);
/* Nothing to do when it is not under way. */
void resolver_ask_stop(struct resolver_ask *a);
