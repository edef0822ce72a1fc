/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The gateway's front: HTTP, server-sent events, WebSockets, TLS and MCP towards clients, questions
 * (ops.h) over the link towards the back. It knows no token but those that its clients send,
 * decides nothing, and keeps nothing once a client is gone.
 *
 * F1: whatever needs a credential is asked of the back with the client's own, before anything is
 *     told: also what the front knows by itself, and that a path does not exist.
 * F2: an answer goes to who asked: ids of questions are not used again while an answer to the
 *     earlier one may be on its way.
 * F3: what waits for a client that does not read is bounded: events flow with credits
 *     (LINK_TAKEN), which are given when the bytes have gone on.
 * F4: a client that goes away ends what it asked for, in the same turn of the loop.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct error;
struct front;
struct loop;

#define LIMIT_GATEWAY_BODY    (24u << 20)  /* a request's body: a file of 16 MiB, escaped */
#define LIMIT_FRONT_BODIES    (256u << 20) /* bodies that are being read, of all clients */
#define LIMIT_FRONT_UNKNOWN   (64u << 10)  /* a body that is read before its sender is known */
#define LIMIT_FRONT_WAITING   (64u << 20)  /* output that waits for one client; one answer fits */
#define LIMIT_FRONT_DEPTH     64u          /* objects and arrays of a body in each other */
#define LIMIT_FRONT_VALUES    131072u      /* values of a body: each costs up to 250 bytes */
#define LIMIT_FRONT_QUERY     16u          /* fields of a query: no operation has more than ten */
#define LIMIT_FRONT_TEXT      1024u        /* bytes of a name in a request: sessions have 400 */
#define LIMIT_FRONT_COOKIE    128u         /* bytes of the login cookie */
#define LIMIT_FRONT_HOSTS     256u         /* names that the back may have us answer to */
#define LIMIT_FRONT_LISTENERS 16u          /* listening sockets */
#define LIMIT_FRONT_SOCKETS   1024u        /* WebSockets of all clients */
#define LIMIT_FRONT_WS_ASKS   64u          /* questions of one WebSocket without an answer */
#define LIMIT_FRONT_CALLS     256u         /* calls over standard input that run at once */
#define LIMIT_FRONT_PROGRESS  4096u        /* bytes of output in one progress message */
#define LIMIT_FRONT_DOOR      32u          /* connections by one door */
#define LIMIT_FRONT_DOORS     1024u        /* connections by all doors */
#define LIMIT_DOOR_BODY       (1u << 20)   /* a request's body that came by a door */
#define LIMIT_DOOR_BODIES     (64u << 20)  /* those of all doors */

struct front_listener {
    int fd; /* a listening socket */
    bool tls;
    const char *token; /* who comes in by it has this one, and shows none; NULL */
};

struct front_options {
    int link_fd;
    int door_fd; /* where connections out of boxes come from (doors.h), or -1 */
    const struct front_listener *listeners;
    size_t n_listeners;
    bool stdio; /* MCP on in_fd and out_fd, a message per line, instead of listeners */
    int in_fd, out_fd;
    const char *agent, *session; /* of what stdio asks, or NULL; borrowed */
    bool logs;                   /* a line of JSON on standard error for each request */
    /* It is over: NULL for in order (drained, standard input has ended), else why. Once, from the
     * loop; the front is not to be freed in it. */
    void (*on_end)(void *user, const char *why);
    void *user;
};

/* Takes the descriptors, also on failure. Listeners are served once LINK_FACTS has come. */
int front_new(struct loop *l, const struct front_options *o, struct front **ret, struct error *err);
/* No new connections; on_end() comes when the last one has gone. */
void front_drain(struct front *f);
void front_free(struct front *f);
DEFINE_AUTOPTR(front)

/*
 * Of the whole process, once everything is open and before the loop runs: no capability, no file,
 * nothing executed, no new socket, and few system calls. 1: this kernel has no Landlock, and the
 * system calls alone keep the files away.
 */
int front_confine(struct error *err);
