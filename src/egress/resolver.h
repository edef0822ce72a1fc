/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names to addresses, for the relay: a stub resolver on the loop that asks the servers it was given
 * and nobody else. It reads no files and never blocks.
 *
 * A and AAAA are asked together, each from a socket of its own that is connected to the server,
 * with a random id and a port of the kernel's choice: whoever wants to slip in an answer has to
 * guess both. What dns_parse_answer() refuses is passed over. Lookups of one name at the same time
 * share one set of questions, and answers are kept for a while; that is for speed only, as the
 * relay pins the address it has checked.
 *
 * A lookup holds at most two descriptors, so that LIMIT_RESOLVER_PENDING of them need twice as
 * many. One that gets none ends as if no server had answered.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "egress/dns.h"
#include "loop/loop.h"

struct error;
struct resolver;
struct resolver_name;

struct resolver_server {
    struct address address;
    uint16_t port;
};

#define LIMIT_RESOLVER_SERVERS 3u    /* as everywhere: MAXNS of resolv.conf */
#define LIMIT_RESOLVER_PENDING 4096u /* lookups at once; more are refused */
#define LIMIT_RESOLVER_CACHE   1024u /* names whose answers are kept */

/* Embedded in whoever asks, all zero but for on_done; not moved while it is under way. */
struct resolver_lookup {
    /*
     * Called once, from the loop, never from within resolver_start(); by then the lookup is over,
     * and everything may be started, cancelled and freed. The list is borrowed for the call: IPv4
     * first, then IPv6, no address twice. n == 0: `rcode` is NXDOMAIN, NOERROR for a name without
     * addresses, or SERVFAIL if no server said either in time. `ttl` is for how many seconds to
     * come this is kept here; 0 of SERVFAIL.
     */
    void (*on_done)(struct resolver_lookup *l, enum dns_rcode rcode, const struct address *list,
                    size_t n, uint32_t ttl);
    /* private */
    struct resolver_name *name; /* NULL: not under way */
    struct resolver_lookup *next, **back;
    struct loop_task task;
};

/* ERR_INVALID unless there are one to three servers, each with an address and a port. */
int resolver_new(struct loop *loop, const struct resolver_server *servers, size_t n,
                 struct resolver **ret, struct error *err);
/* Other servers from now on; what is under way goes on as it is. Nothing to do when they are the
 * same, or when it is not one to three. */
void resolver_change(struct resolver *r, const struct resolver_server *servers, size_t n);
/* Pending lookups must have been cancelled. */
void resolver_free(struct resolver *r);
DEFINE_AUTOPTR(resolver)

/* -EBUSY: too many are pending; -EINVAL: not a name; -ENOMEM. Then on_done is not called. */
int resolver_start(struct resolver *r, struct resolver_lookup *l, const struct host *host);
/* Nothing to do when it is not under way. */
void resolver_cancel(struct resolver_lookup *l);

/*
 * The nameserver lines of a resolv.conf's text, with port 53: at most `max`, and at most
 * LIMIT_RESOLVER_SERVERS. Lines that are malformed, and addresses with a zone, are passed over.
 * Returns how many. Pure.
 */
size_t resolver_parse_conf(const char *text, size_t len, struct resolver_server *ret, size_t max);
