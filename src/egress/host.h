/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where a connection goes: the strict grammar of hosts and ports, and one canonical spelling.
 * Everything that names a host (CONNECT, Host, SNI, SOCKS, DNS, rules) passes here before anything
 * looks at it, so that two parts of the relay cannot read one text in two ways. Pure.
 *
 * A name is LDH: labels of 1 to 63 letters, digits and inner dashes, 253 bytes in all, lower-cased,
 * without its trailing dot. xn-- labels are just that. A name whose last label is a number is none:
 * inet_aton() would read 0x7f.1, 2130706433 or 127.1 as an address, so they are refused.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/address.h"

struct error;

#define LIMIT_HOST_NAME  253u /* bytes of a name without its trailing dot (RFC 1035) */
#define LIMIT_HOST_LABEL 63u  /* of one label */
#define LIMIT_HOST_INPUT 261u /* what is looked at: a name, its dot, ':' and a port */

enum host_kind { HOST_NAME, HOST_V4, HOST_V6 };

struct host {
    enum host_kind kind;
    struct address address;         /* of a literal */
    char text[LIMIT_HOST_NAME + 1]; /* canonical; IPv6 without brackets */
};

/* How an IPv6 literal is written: as in URLs and rules, or as in SOCKS and resolvers. */
enum host_form { HOST_BRACKETED, HOST_BARE };

/* ERR_INVALID, with the reason; the message repeats nothing of the text. */
int host_parse(const char *text, size_t len, enum host_form form, struct host *ret,
               struct error *err);
/* 1 to 65535 in decimal: no sign, blank or leading zero. */
bool port_parse(const char *text, size_t len, uint16_t *ret);
/* HOST:PORT as in CONNECT and Host. With a default_port that is not 0, ":PORT" may be left out. */
int host_parse_authority(const char *text, size_t len, uint16_t default_port, struct host *ret_host,
                         uint16_t *ret_port, struct error *err);

void host_from_address(const struct address *a, struct host *ret);
/* Of canonical forms. */
bool host_equal(const struct host *a, const struct host *b);
/* Is `name` one or more labels below `suffix`? Never the suffix itself. */
bool host_is_below(const char *name, const char *suffix);

#define LIMIT_AUTHORITY_TEXT 262u
/* "allowed.test:443", "[::1]:443". */
const char *host_format_authority(const struct host *h, uint16_t port,
                                  char text[LIMIT_AUTHORITY_TEXT]);
