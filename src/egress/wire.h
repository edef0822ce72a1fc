/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What programs and clawden-egress say to each other, over a SEQPACKET socket in the runtime
 * folder. One request, one reply per connection; a connection on which a call was announced stays
 * open for as long as the call lasts, and its end is the call's.
 *
 * There is one relay per user and network namespace: what a box reaches by it is what its caller
 * could have reached himself.
 */
#include <stdint.h>

#include "egress/net.h"

#define WIRE_VERSION    1u
#define WIRE_TEXT       49152u /* bytes of a reply's text: it fits into one message */
#define LIMIT_PUBLISHED 16u    /* ports of one box */
#define WIRE_FDS        (4 + 7 + LIMIT_NET_PORTS + LIMIT_NET_SPARES + LIMIT_PUBLISHED)
/* With the namespace's number in it. */
#define WIRE_SOCKET "egress-%llu.sock"
#define WIRE_LOCK   "egress-%llu.lock"

enum wire_type {
    WIRE_JOIN = 1, /* fds: resolv.conf, wish, pidfd, then those of wire_request */
    WIRE_USE,      /* fds: resolv.conf. A command begins in the box, and goes on until we close */
    WIRE_CHANGE,   /* fds: resolv.conf, wish. New rules for the box */
    WIRE_LOOK,     /* the reply's text is what the relay knows of the box, as JSON */
    WIRE_STOP,     /* leave, whoever is there */
};

/* Of a box's single sockets, in the order of their descriptors. */
enum wire_socket {
    WIRE_PROXY,
    WIRE_DNS,
    WIRE_DNS_TCP,
    WIRE_CAUGHT_4,
    WIRE_CAUGHT_6,
    WIRE_SNMP,
    WIRE_SNMP_6,
    WIRE_SOCKETS
};

struct wire_request {
    uint32_t version, type;
    char box[65], call[33];
    uint32_t has; /* bits of enum wire_socket */
    uint32_t n_ports, n_spares, n_published;
    uint16_t ports[LIMIT_NET_PORTS], published[LIMIT_PUBLISHED];
};

/* Followed by its text, which has no NUL. */
struct wire_reply {
    int32_t code; /* 0, or that of struct error */
    int32_t sys;
};
