/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of clawden-egress share. */
#include "audit/audit.h"
#include "egress/relay.h"
#include "egress/wire.h"
#include "egress/wish.h"

#define LIMIT_CLIENTS 2048u /* programs that talk to us at once: each is a command that runs */
#define LIMIT_BOXES   512u

/* A box that has joined. Its rules point into its wish. */
struct joined {
    struct joined *next;
    char id[65];
    struct wish *wish;
};

struct buf;
struct client;

struct service {
    struct loop *loop;
    struct relay relay;
    struct audit audit;
    int dir, lock, listener;
    char socket_name[48], lock_name[48];
    struct loop_io accept, signals;
    struct loop_timer idle;
    uint64_t idle_usec;
    struct joined *boxes;
    size_t n_boxes;
    struct client *clients;
    size_t n_clients;
    bool audit_fails;
};

static inline struct service *service_of(struct relay *r)
{
    return (struct service *)((char *)r - offsetof(struct service, relay));
}

/* ---- serve.c ---- */

void serve_on_accept(struct loop_io *io, uint32_t events);
/* Every connection and every box. */
void serve_end(struct service *s);
/* The relay has let go of a box. */
void serve_on_gone(struct relay *r, const char *box);
/* Somebody came or went: how long we stay is counted from now, if nobody is left. */
void serve_touch(struct service *s);

/* ---- report.c ---- */

void report_event(struct relay *r, const struct relay_event *e);
/* What the relay knows of a box, as JSON. */
void report_box(const struct relay_box *b, struct buf *out);

/* ---- confine.c ---- */

/* From here on: no file but the records, and the system calls of a relay. */
int confine(const struct service *s, struct error *err);
