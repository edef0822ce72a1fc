/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A box's way out: sockets that are made inside its network namespace and served from outside.
 *
 * The namespace has nothing but its loopback, and stays so: no device, no address of the host. A
 * process of ours enters it for a moment, makes every address local ("local default dev lo") and
 * brings each TCP connection that is not to the loopback to one listener (redirect.h), whose owner
 * can ask for the address that was meant. Where the kernel has no nf_tables, sockets listen on the
 * ports that matter, at every address; connections to other ports are refused by the kernel and
 * nobody is told. Nothing in the box gains a capability, and who holds the descriptors decides what
 * becomes of a connection.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct error;

#define LIMIT_NET_PORTS  24u /* ports that are caught without nf_tables: each is a socket */
#define LIMIT_NET_SPARES 32u /* connections into the box at once, by its published ports */
#define NET_PROXY_PORT   3128
#define NET_CAUGHT_PORT  3129

struct net_sockets {
    int proxy;        /* TCP, 127.0.0.1:3128 */
    int dns, dns_tcp; /* port 53 of every address */
    int caught[2];    /* TCP, port 3129, IPv4 and IPv6: what was redirected; -1 */
    int counters[2];  /* /proc/net/snmp and snmp6 of the box; -1 */
    int ports[LIMIT_NET_PORTS];
    uint16_t port_numbers[LIMIT_NET_PORTS];
    size_t n_ports;               /* 0 where `caught` is there */
    int spares[LIMIT_NET_SPARES]; /* TCP, not connected yet: who connects them is in the box */
    size_t n_spares;
};

#define NET_SOCKETS_EMPTY                                                                 \
    {                                                                                     \
        .proxy = -1, .dns = -1, .dns_tcp = -1, .caught = {-1, -1}, .counters = { -1, -1 } \
    }

struct net_wish {
    const uint16_t *ports; /* that matter, should there be no nf_tables; cut at LIMIT_NET_PORTS */
    size_t n_ports;
    size_t n_spares;
    bool no_redirect; /* as if there were none: for tests */
};

/* `pidfd` is the box's init. All or nothing; every descriptor is close-on-exec and non-blocking. */
int net_open(int pidfd, const struct net_wish *wish, struct net_sockets *ret, struct error *err);
void net_close(struct net_sockets *s);
#define autonet cleanup_(net_close) struct net_sockets
