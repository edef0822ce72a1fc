/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A box's way out: sockets that listen inside its network namespace and are served from outside.
 *
 * The namespace has nothing but its loopback, and stays so: no device, no address of the host. A
 * process of ours enters it for a moment, makes every address local ("local default dev lo"), so
 * that whatever a program in the box connects to arrives at a socket that listens on all of them,
 * makes those sockets, and hands them out as descriptors. Nothing in the box gains a capability,
 * and who holds the descriptors decides what becomes of a connection; getsockname() tells what
 * was meant.
 */
#include <stddef.h>
#include <stdint.h>

struct error;

#define LIMIT_NET_PORTS 24u  /* ports that are caught: each is a socket */
#define NET_PROXY_PORT  3128 /* HTTP proxy and SOCKS, on the box's loopback */

struct net_sockets {
    int proxy;                  /* TCP, 127.0.0.1:3128 */
    int dns, dns_tcp;           /* 127.0.0.1:53 */
    int ports[LIMIT_NET_PORTS]; /* TCP, every address of both families */
    size_t n_ports;
};

#define NET_SOCKETS_EMPTY                     \
    {                                         \
        .proxy = -1, .dns = -1, .dns_tcp = -1 \
    }

/* `pidfd` is the box's init. All or nothing; every descriptor is close-on-exec and non-blocking. */
int net_open(int pidfd, const uint16_t *ports, size_t n_ports, struct net_sockets *ret,
             struct error *err);
void net_close(struct net_sockets *s);
