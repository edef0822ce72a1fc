/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The relay: what stands at the other end of a box's listeners (engine/native/net.h) and decides
 * for each connection whether, and to where, it goes on.
 *
 * A box's identity is the listener a connection came in by, never anything it says. The life of a
 * connection:
 *
 *   come in    conn_accept()      by the proxy's port, or by a port that is caught
 *   understand conn_step()        SOCKS, HTTP, TLS hello, or bytes; the target by name or address
 *   decide     conn_decide()      rules_decide_name(): before anything is resolved or dialled
 *   find       resolver           each address asked of rules_decide_address(); the first that is
 *              conn_dial()        allowed is dialled, that very address
 *   check      conn_inner()       what is said inside (SNI, Host) names the same host
 *   carry      tunnel, pump       by splice; an HTTP request with its framing counted
 *
 * Nothing is sent upstream before the check. Every decision is told to on_event().
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "egress/hello.h"
#include "egress/host.h"
#include "egress/resolver.h"
#include "egress/rules.h"
#include "egress/socks.h"
#include "egress/standin.h"
#include "egress/tunnel.h"
#include "http/body.h"
#include "http/head.h"
#include "loop/loop.h"

struct error;

#define LIMIT_RELAY_CONNS   1024u /* connections of one box at once */
#define LIMIT_RELAY_PORTS   24u   /* ports that are caught; as many as net.h can listen on */
#define LIMIT_RELAY_BURST   256u  /* connections and questions of one box in one go ... */
#define LIMIT_RELAY_PER_SEC 128u  /* ... and per second after that: an agent is no load generator \
                                   */
#define LIMIT_RELAY_BYTES (64ull << 30) /* bytes of one box both ways, unless it asks for less */
#define LIMIT_RELAY_INPUT (LIMIT_HTTP_HEAD + LIMIT_HELLO) /* what is read before a decision */
#define LIMIT_RELAY_NAMES 8192u                           /* stand-in names of one box */

struct conn;
struct relay_box;

/* One decision, or the end of what it allowed. Borrowed for the call. */
struct relay_event {
    const char *box, *via; /* via: "http", "connect", "socks", "tls", "tcp", "dns" */
    const char *target;    /* "example.test:443" */
    const char *address;   /* that was dialled, or "" */
    bool allowed, is_end;
    const char *rule, *setting, *reason; /* may be NULL */
    uint64_t bytes_out, bytes_in;
};

struct relay {
    struct loop *loop;
    struct resolver *resolver;
    struct relay_box *boxes;
    /* Told of every decision, and of the end of every connection that was allowed. */
    void (*on_event)(struct relay *r, const struct relay_event *e);
    /* A box is gone; so is everything of it. */
    void (*on_gone)(struct relay *r, const char *box);
};

struct relay_listener {
    struct loop_io io;
    struct relay_box *box;
    uint16_t port; /* 0: the proxy's */
};

struct relay_box {
    struct relay *relay;
    struct relay_box *next, **back;
    char id[65];
    struct rules *rules;
    struct standins *standins;
    struct loop_io life; /* the pidfd of its init */
    struct relay_listener proxy, dns_tcp, ports[LIMIT_RELAY_PORTS];
    size_t n_ports;
    struct loop_io dns;
    struct conn *conns;
    uint32_t n_conns;
    uint64_t bytes, budget;       /* both ways */
    uint64_t allowed, denied;     /* decisions */
    uint64_t credit, credit_usec; /* of new connections and questions, in millionths */
};

/* What a box brings: its descriptors are taken over when it succeeds. */
struct relay_join {
    const char *id;
    struct rules *rules; /* taken over */
    int pidfd, proxy, dns, dns_tcp;
    const int *ports;
    const uint16_t *port_numbers;
    size_t n_ports;
    uint64_t budget; /* 0: the usual one */
};

int relay_join(struct relay *r, const struct relay_join *join, struct error *err);
struct relay_box *relay_find(struct relay *r, const char *id);
/* New rules from now on; connections that they would not allow any more are closed. */
void relay_change(struct relay_box *b, struct rules *rules);
/* Closes everything of it. */
void relay_leave(struct relay_box *b);

/* May it open one more, or ask one more question, now? */
bool relay_spend(struct relay_box *b);
void relay_tell(struct relay_box *b, struct relay_event *e);

/* ---- names.c: the box's resolver ---- */

void names_on_datagram(struct loop_io *io, uint32_t events);
/* The answer to one question; its length, 0: say nothing. */
size_t names_answer(struct relay_box *b, const uint8_t *msg, size_t len, bool tcp, uint8_t *out);

/* ---- conn.c ---- */

void conn_on_accept(struct loop_io *io, uint32_t events);
void conn_close_all(struct relay_box *b);
/* Those that the present rules do not allow. */
void conn_close_denied(struct relay_box *b);
