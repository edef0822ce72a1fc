/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What dns.c and dns_answer.c share: numbers on the wire, and names. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/dns.h"

#define DNS_HEADER 12u

enum {
    DNS_FLAG_QR = 0x8000,
    DNS_FLAG_TC = 0x0200,
    DNS_FLAG_RD = 0x0100,
    DNS_FLAG_RA = 0x0080,
    DNS_OPCODE_SHIFT = 11,
};

static inline uint16_t dns_get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t dns_get32(const uint8_t *p)
{
    return (uint32_t)dns_get16(p) << 16 | dns_get16(p + 2);
}

static inline void dns_put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

/* The bytes of an uncompressed name that begins at `at`, with its end; 0 if it is none. */
size_t dns_plain_name(const uint8_t *msg, size_t len, size_t at);
/* A name on the wire as a host's; false for what host.h refuses, and for dots within labels. */
bool dns_name_to_host(const uint8_t *wire, size_t len, struct host *ret);
/* A host's name on the wire; its length. */
size_t dns_host_to_name(const char *name, uint8_t wire[LIMIT_DNS_NAME]);
