/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Addresses that stand for names, in one box: its resolver answers a name with one, and a
 * connection that arrives for the address tells the relay which name was meant. They lead nowhere
 * outside: 198.18.0.0/15 is for benchmarks, fdc1:a3d0::/64 is ours.
 *
 * A name keeps its addresses as long as it is used. When all are taken, the least recently used is
 * given to another name, but only when the time for which it was promised is over: an address must
 * not change its meaning under a program that still holds it. Pure: the caller brings the clock
 * and the key against crafted collisions.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "egress/address.h"

struct error;

#define LIMIT_STANDINS 65536u /* names of one box: 20 MiB at most, half of the IPv4 range */

struct standins;

/* For at most `max` names (1 to LIMIT_STANDINS), each promised for `ttl_ms` since its last use. */
int standins_new(uint32_t max, uint64_t ttl_ms, const uint8_t key[16], struct standins **ret,
                 struct error *err);
void standins_free(struct standins *s);
DEFINE_AUTOPTR(standins)

/*
 * The addresses of a canonical name, which it is given if it has none. ERR_TOO_LARGE: all are
 * taken and promised. `now_ms` never goes back.
 */
int standins_assign(struct standins *s, const char *name, uint64_t now_ms, struct address *ret_v4,
                    struct address *ret_v6, struct error *err);
/* Whom the address stands for, or NULL. Borrowed until the next assign. A use like any other. */
const char *standins_find(struct standins *s, const struct address *a, uint64_t now_ms);
size_t standins_count(const struct standins *s);
