/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Rules of nf_tables for the network namespace that we are in, by netlink. */
#include <stdint.h>

/*
 * From now on each TCP connection that is made here, but to the loopback or to port 53, arrives at
 * `port` of the loopback; SO_ORIGINAL_DST tells where it was going. Replaces what an earlier call
 * has set. -errno; the kernel may have no nf_tables.
 */
int redirect_tcp(uint16_t port);
