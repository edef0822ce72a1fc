/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The line between the gateway's two processes. The front speaks HTTP, WebSocket, TLS and MCP with
 * strangers and can do nothing else; the back knows tokens, decides, runs and records, and never
 * sees a byte of these protocols. What crosses the line are frames:
 *
 *     4 bytes  length of the payload, host order; at most LIMIT_LINK_FRAME
 *     4 bytes  id: chosen by the front for each question, free again after its answer
 *     1 byte   kind
 *     payload  JSON text (LINK_ASK, LINK_EVENT, LINK_FACTS), or as said below
 *
 * The back believes nothing in a frame but that its connection is the front's; a frame that breaks
 * the rules ends the gateway. Questions carry the caller's own token, as text: a front that was
 * taken over can act for those who speak to it and for nobody else.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "loop/loop.h"

#define LIMIT_LINK_FRAME (48u << 20)  /* a file of 16 MiB as JSON with every byte escaped twice */
#define LIMIT_LINK_OUT   (384u << 20) /* frames that wait: the bodies of all clients fit */
#define LIMIT_LINK_SOFT  (8u << 20)   /* while more than this waits, the back takes no frame */
#define LIMIT_LINK_ASKS  8192u        /* questions without an answer */
#define LIMIT_LINK_WINDOW                                                 \
    (64u << 10) /* bytes of events of one question that are not taken yet \
                 */

enum link_kind {
    /* front → back */
    LINK_ASK = 1, /* {"op", "token"|"cookie"|"local", "params", "peer", "request"}: see ops.h */
    LINK_CANCEL,  /* nobody waits for this answer any more; none comes */
    LINK_TAKEN,   /* 4 bytes, host order: so many bytes of events have gone on to the client */
    /* back → front */
    LINK_EVENT,  /* one event of a stream, in order, before the answer */
    LINK_ANSWER, /* 2 bytes, host order: HTTP status; then the body, JSON text */
    LINK_FACTS,  /* id 0: what the front has to know; the first frame, and after each reload */
    LINK_REVOKE, /* id 0: {"token": id} or {"cookie": digest}: end its streams and WebSockets now */
    /* front → back */
    LINK_READY, /* id 0: clients can connect now; once, after the first facts */
};

struct link {
    struct loop_io io;
    struct loop_task closing;
    /* The payload is good during the call, and has a NUL after it. The link may not be closed in
     * it. */
    void (*on_frame)(struct link *l, enum link_kind kind, uint32_t id, const char *data,
                     size_t len);
    /* The other side is gone, or broke the rules (then `why` says how). Once; not after
     * link_close(). */
    void (*on_closed)(struct link *l, const char *why);
    /* There is room again after link_is_full(). NULL on the side that always takes: only one of the
     * two may wait for the other. */
    void (*on_room)(struct link *l);
    struct buf in, out;
    size_t sent;   /* of out */
    bool was_full; /* frames are not taken, and somebody may wait for room */
    const char *why;
};

/* Takes the socket. -errno. on_frame and on_closed are set. */
int link_open(struct link *l, struct loop *loop, int fd);
void link_close(struct link *l);
/* Queued and sent; a line that is broken or full ends in on_closed(), from the loop. */
void link_send(struct link *l, enum link_kind kind, uint32_t id, const void *data, size_t len);
/* More than LIMIT_LINK_SOFT waits: who can wait, waits for on_room(). */
bool link_is_full(struct link *l);
/* The same with a status before the payload. A body that is too large for a frame is answered with
 * 413 instead. */
void link_answer(struct link *l, uint32_t id, unsigned status, const void *body, size_t len);
