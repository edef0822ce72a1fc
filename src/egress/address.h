/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * IP addresses: one text form, what kind of place each is (the IANA special-purpose registries, and
 * where clouds keep their metadata), and ranges. Pure.
 *
 * An IPv6 address may carry an IPv4 address (mapped, NAT64, 6to4, ...). Whoever routes it may end
 * at the inner one, so its class is the stricter of both.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMIT_ADDRESS_TEXT 46u /* the longest text form, with its NUL */
#define LIMIT_CIDR_TEXT    50u /* and "/128" */

struct address {
    uint8_t bits; /* 32 or 128; 0 is no address */
    uint8_t bytes[16];
};

/* The further down, the stricter. */
enum address_class {
    ADDRESS_PUBLIC,
    ADDRESS_MAPPED,     /* ::ffff:0:0/96 */
    ADDRESS_COMPATIBLE, /* ::/96 */
    ADDRESS_TRANSLATED, /* ::ffff:0:0:0/96 */
    ADDRESS_NAT64,
    ADDRESS_6TO4,
    ADDRESS_TEREDO,
    ADDRESS_DOCUMENTATION,
    ADDRESS_BENCHMARK,
    ADDRESS_RESERVED,
    ADDRESS_DISCARD,
    ADDRESS_PRIVATE,
    ADDRESS_SITE_LOCAL,
    ADDRESS_SHARED, /* 100.64.0.0/10, carrier-grade NAT */
    ADDRESS_LINK_LOCAL,
    ADDRESS_METADATA, /* a cloud's keys are handed out here */
    ADDRESS_MULTICAST,
    ADDRESS_BROADCAST,
    ADDRESS_UNSPECIFIED, /* 0.0.0.0/8 and ::, which Linux takes for itself */
    ADDRESS_LOOPBACK,
};

/* IPv4 in four decimal parts without leading zeros; IPv6 without brackets and zone. Nothing else.
 */
bool address_parse(const char *text, size_t len, struct address *ret);
/* "" of no address. */
const char *address_format(const struct address *a, char text[LIMIT_ADDRESS_TEXT]);
struct address address_v4(uint32_t host_order);
bool address_equal(const struct address *a, const struct address *b);

/* Of the address and of the IPv4 address in it, whichever is stricter. */
enum address_class address_class(const struct address *a);
/* Of the address as it is written. */
enum address_class address_class_outer(const struct address *a);
/* The IPv4 address that an IPv6 address carries. */
bool address_inner(const struct address *a, struct address *ret);
/* "a private address". */
const char *address_class_text(enum address_class c);
/* No connection of a box to one of these makes sense or is safe, whatever the rules say. */
bool address_class_is_barred(enum address_class c);

struct cidr {
    struct address network;
    uint8_t len;
};

/* "10.0.0.0/8", "2001:db8::/32". NULL, or what is wrong: bits behind the length must be zero. */
const char *cidr_parse(const char *text, size_t len, struct cidr *ret);
/* The range of this one address. */
struct cidr cidr_of(const struct address *a);
const char *cidr_format(const struct cidr *c, char text[LIMIT_CIDR_TEXT]);
/* By the bytes: an IPv4 range holds no IPv6 address. */
bool cidr_contains(const struct cidr *c, const struct address *a);
/*
 * Does a rule with this range mean this address? A public address: if it is in the range. One of a
 * special range: only if the rule lies wholly in that special range. So 0.0.0.0/1 does not speak of
 * 10.0.0.1, nor 169.254.0.0/16 of the metadata service within.
 */
bool cidr_names(const struct cidr *c, const struct address *a);
