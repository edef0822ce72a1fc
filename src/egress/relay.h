/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The relay: what stands at the other end of a box's listeners (egress/net.h) and decides for each
 * connection whether, and to where, it goes on.
 *
 * A box's identity is the listener a connection came in by, never anything it says. The life of a
 * connection:
 *
 *   come in    conn_on_accept()   by the proxy's port, or caught on its way to somewhere else
 *   understand conn_step_*()      SOCKS, HTTP, TLS hello, or bytes; the target by name or address
 *   decide     conn_decide()      rules_decide_name(): before anything is resolved or dialled
 *   find       resolver           each address asked of rules_decide_address(); the first that is
 *              dial.c             allowed is dialled, that very address
 *   check      conn_inner()       what is said inside (SNI, Host) names the same host
 *   carry      tunnel, pump       by splice; an HTTP request with its framing counted
 *
 * Nothing is sent upstream before the check. A caught connection to another port than 80 and 443 is
 * decided about and dialled before it has said anything: the server may be the one who begins.
 * Every decision is told to on_event(); what nobody decided (too many at once) at most once a
 * second, with a count. What is carried is metered as it goes (meter.h).
 *
 * The other way in: a published port is a listener on the host's side. A connection to it goes on
 * to the same port of the box's own loopback, and nowhere else, by way of a spare: a socket that
 * was made in the box's network and brought out of it, since the relay never goes in. There are as
 * many such connections at once as spares; one that has ended is disconnected and used again. The
 * rules have no say in it: who publishes a port decides who may connect to the listener.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "egress/dest.h"
#include "egress/hello.h"
#include "egress/host.h"
#include "egress/meter.h"
#include "egress/resolver.h"
#include "egress/rules.h"
#include "egress/standin.h"
#include "http/http.h"
#include "loop/loop.h"

struct error;

#define LIMIT_RELAY_CONNS      1024u /* connections of one box at once, unless it asks for less */
#define LIMIT_RELAY_HOST_CONNS 256u  /* the same for one host that it reaches */
#define LIMIT_RELAY_PORTS      24u   /* ports that are caught one by one, where nft is missing */
#define LIMIT_RELAY_PUBLISHED  16u   /* ports of a box that are published */
#define LIMIT_RELAY_SPARES     64u   /* connections to those at once */
#define LIMIT_RELAY_PER_SEC    128u  /* new ones and questions: an agent is no load generator */
#define LIMIT_RELAY_LINES      8u    /* refusals per second that are told one by one ... */
#define LIMIT_RELAY_LINES_MOST 256u  /* ... and in one go: a box must not fill the disk */
#define LIMIT_RELAY_BYTES      (64ull << 30) /* bytes of one box both ways, unless it asks for less */
#define LIMIT_RELAY_RATE       100000000ull                    /* the same per second */
#define LIMIT_RELAY_INPUT      (LIMIT_HTTP_HEAD + LIMIT_HELLO) /* what is read before a decision */
#define LIMIT_RELAY_NAMES      8192u                           /* stand-in names of one box */

struct conn;
struct guest;
struct relay_box;

/* One decision, or the end of what it allowed. Borrowed for the call. */
struct relay_event {
    const char *box;
    const char *via;     /* "http", "connect", "socks", "tls", "tcp", "dns", "udp", "published" */
    const char *target;  /* "example.test:443"; "(none)": it could not be understood */
    const char *address; /* that was dialled, or "" */
    bool allowed, is_end;
    const char *rule, *setting; /* may be NULL */
    const char *reason;         /* may be NULL; of an end: why it was not its own */
    const char *calls;          /* ids of the calls active when it began: "a,b", or "" */
    uint64_t times;             /* how often; 0 and 1: once */
    uint64_t bytes_out, bytes_in;
};

struct relay {
    struct loop *loop;
    struct resolver *resolver;
    struct relay_box *boxes;
    /* Why nothing new is let out at present ("the record cannot be written"), or NULL. */
    const char *closed;
    int reserve; /* any descriptor, to have one when there is no other; 0, -1: none */
    /* How often refused UDP is looked for; 0: the usual time. */
    uint64_t udp_usec;
    /* Told of every decision, and of the end of every connection that was allowed. It must not
     * change a box or make it leave; calls may begin and end. */
    void (*on_event)(struct relay *r, const struct relay_event *e);
    /* A box is gone; so is everything of it. */
    void (*on_gone)(struct relay *r, const char *box);
};

/* What a box may use; 0: as much as is usual, of host_bytes and call_bytes as much as of bytes. */
struct relay_budgets {
    uint64_t bytes, bytes_per_sec, host_bytes, call_bytes; /* bytes: both ways together */
    uint32_t conns, host_conns;                            /* at once */
    uint32_t new_per_sec; /* connections and questions; twice as many in one go */
};

/* A command that runs in a box; embedded in its owner. What it used stays readable afterwards. */
struct relay_call {
    struct relay_call *next, **back;
    struct relay_box *box; /* NULL: not in use */
    uint64_t since;        /* its number among the calls of the box */
    char id[33];           /* set by the owner */
    uint64_t bytes_out, bytes_in, allowed, denied;
};

enum relay_kind {
    RELAY_PROXY, /* it says where it wants to go */
    RELAY_DNS,
    RELAY_PORT, /* caught, at one port: it was connected to the very address it meant */
    RELAY_ANY,  /* caught and redirected: the kernel knows whom it meant */
};

struct relay_listener {
    struct loop_io io; /* first: it is cast */
    struct relay_box *box;
    enum relay_kind kind;
    uint16_t port; /* of RELAY_PORT, and of a published one */
};

/* Refusals that nobody decided, held back until the second is over. */
struct relay_held {
    struct loop_timer timer;
    uint64_t times;
    const char *via, *setting;
    char target[LIMIT_AUTHORITY_TEXT], reason[LIMIT_METER_REASON];
    char calls[LIMIT_METER_CALLS_TEXT];
};

/* So many at once, and so many per second after that; in millionths. */
struct relay_credit {
    uint64_t left, usec;
};

struct relay_spare {
    int fd; /* -1: none any more */
    bool busy;
};

struct relay_box {
    struct relay *relay;
    struct relay_box *next, **back;
    char id[65];
    struct rules *rules;
    struct standins *standins;
    struct dests *dests; /* for receipts: dests_at() */
    struct relay_budgets budgets;
    const char *budgets_key;
    struct loop_io life; /* the pidfd of its init */
    struct relay_listener proxy, dns_tcp, caught[2], ports[LIMIT_RELAY_PORTS];
    size_t n_ports;
    struct loop_io dns;
    struct conn *conns;
    uint32_t n_conns;
    struct relay_call *calls;
    uint64_t n_calls; /* ever */
    struct relay_listener published[LIMIT_RELAY_PUBLISHED];
    size_t n_published;
    struct relay_spare spares[LIMIT_RELAY_SPARES];
    size_t n_spares;
    struct guest *guests;
    struct loop_timer udp_timer;
    int counters[2];
    uint64_t udp_told;
    struct relay_held held;
    uint64_t bytes;                  /* both ways */
    uint64_t allowed, denied;        /* decisions */
    uint64_t questions;              /* to its resolver that were answered */
    struct relay_credit news;        /* new connections and questions */
    struct relay_credit visits;      /* connections to published ports */
    struct relay_credit lines;       /* refusals that are told one by one */
    uint64_t rate_credit, rate_usec; /* of bytes, in millionths */
};

struct relay_publish {
    int listener; /* on the host's side: bound, listening, non-blocking */
    uint16_t port;
};

/* What a box brings: its descriptors are taken over when it succeeds. */
struct relay_join {
    const char *id;
    struct rules *rules; /* taken over */
    struct relay_budgets budgets;
    const char *budgets_key; /* of the setting, named in refusals; borrowed for good; or NULL */
    int pidfd;
    int proxy, dns, dns_tcp;
    int caught[2]; /* to which everything is redirected: IPv4, IPv6 */
    const int *ports;
    const uint16_t *port_numbers;
    size_t n_ports;
    const struct relay_publish *published;
    size_t n_published;
    const int *spares; /* unconnected TCP sockets, AF_INET, of the box's network */
    size_t n_spares;
    int counters[2]; /* its /proc/net/snmp and snmp6 */
};

/* A join without descriptors: but for the pidfd, -1 is a good value of each. */
#define RELAY_JOIN_INIT                                                                       \
    {                                                                                         \
        .pidfd = -1, .proxy = -1, .dns = -1, .dns_tcp = -1, .caught = {-1, -1}, .counters = { \
            -1,                                                                               \
            -1                                                                                \
        }                                                                                     \
    }

int relay_join(struct relay *r, const struct relay_join *join, struct error *err);
struct relay_box *relay_find(struct relay *r, const char *id);
/* New rules (taken over) and budgets from now on; connections that the rules would not allow any
 * more are closed. NULL: as they are. */
void relay_change(struct relay_box *b, struct rules *rules, const struct relay_budgets *budgets);
/* Closes everything of it, and releases its calls. */
void relay_leave(struct relay_box *b);

/* A call begins: from now on connections count for it. Its id is set, its counts are zero. */
void relay_use(struct relay_box *b, struct relay_call *c);
/* It is over; nothing to do when it is not in use. */
void relay_release(struct relay_call *c);

/* Datagrams of the box that nobody took, since its network is there. */
uint64_t relay_udp_refused(const struct relay_box *b);

/* ---- tell.c ---- */

/* May it open one more, or ask one more question, now? */
bool relay_spend(struct relay_box *b);
/* May one more connect to a port that it publishes? */
bool relay_spend_visit(struct relay_box *b);
/* All of it is there at the beginning. */
void relay_fill_credits(struct relay_box *b);
/* With the calls of the meter, or those that are active now. */
void relay_tell(struct relay_box *b, struct relay_event *e, const struct meter *m);
/* The same for what was refused only because there was too much of it: at most once a second. */
void relay_tell_often(struct relay_box *b, struct relay_event *e, const struct meter *m);
/* What is held back is told now. */
void relay_tell_held(struct relay_box *b);

/* ---- udp.c ---- */

/* Looks from time to time, if there is anything to look at. -errno. */
int udp_start(struct relay_box *b);
/* Looks a last time. */
void udp_stop(struct relay_box *b);

/* ---- names.c: the box's resolver ---- */

/* So that its answers may come from whatever address was asked. */
void names_prepare(int fd);
void names_on_datagram(struct loop_io *io, uint32_t events);
/* The answer to one question; its length, 0: say nothing. */
size_t names_answer(struct relay_box *b, const uint8_t *msg, size_t len, bool tcp, uint8_t *out);

/* ---- accept.c, conn.c ---- */

/* accept() found no descriptor left. */
void relay_shed(struct relay *r, int listener);

void conn_on_accept(struct loop_io *io, uint32_t events);
void conn_close_all(struct relay_box *b);
/* Those that the present rules do not allow. */
void conn_close_denied(struct relay_box *b);

/* ---- publish.c ---- */

void publish_on_accept(struct loop_io *io, uint32_t events);
/* All connections; the listeners and spares stay. */
void publish_close_all(struct relay_box *b);
