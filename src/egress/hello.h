/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The first message of a TLS connection, read as it arrives, to learn which server it is meant for.
 * The relay lets no byte through before the name in it is the one that was allowed. Pure.
 *
 * The result does not depend on how the bytes are cut: into segments, or into records. Every byte
 * taken is kept in `raw`, to be sent on once the verdict is there.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/host.h"

#define LIMIT_HELLO \
    16384u /* bytes with record headers; browsers with post-quantum keys send 2 KiB */

enum hello_state {
    HELLO_MORE,
    HELLO_DONE,
    HELLO_NOT_TLS,   /* it does not begin like TLS */
    HELLO_SSLV2,     /* a hello of the last century */
    HELLO_MALFORMED, /* it begins like TLS; see .problem */
    HELLO_TOO_LARGE,
};

enum hello_sni {
    HELLO_SNI_NONE,
    HELLO_SNI_NAME,    /* exactly one, in .host */
    HELLO_SNI_ADDRESS, /* an address instead of a name, in .host */
    HELLO_SNI_SEVERAL, /* names, or kinds of name */
    HELLO_SNI_INVALID, /* not a host; see .problem */
};

struct hello {
    enum hello_state state;
    enum hello_sni sni;
    struct host host;
    uint16_t version; /* the newest that is offered: 0x0304 is TLS 1.3 */
    bool ech;         /* an encrypted hello, or what looks like one: browsers always send that */
    const char *problem;

    /* How far it is read. */
    size_t n;          /* bytes in raw */
    size_t record_end; /* where the present record ends; 0: within its header */
    size_t record_at;  /* where its header begins */
    size_t body;       /* bytes of the message so far, with its header of four */
    uint32_t message;  /* its length, once body >= 4 */
    uint8_t raw[LIMIT_HELLO];
};

void hello_init(struct hello *h);
/* Takes bytes up to the end of the hello; *ret_used says how many. Only while the state is MORE. */
enum hello_state hello_feed(struct hello *h, const uint8_t *data, size_t len, size_t *ret_used);
