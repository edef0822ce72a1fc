/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * SOCKS5 as a box's programs speak it to the relay (RFC 1928): no authentication, since the
 * listener says whose box it is, and CONNECT only. Pure: bytes in, what to send and where to out.
 *
 * The result does not depend on how the bytes are cut. What a client sends before it was answered
 * is left with the caller.
 */
#include <stddef.h>
#include <stdint.h>

#include "egress/host.h"

#define LIMIT_SOCKS_MESSAGE                                              \
    262u /* the longest request: a name of 255 bytes; greetings have 257 \
          */
#define LIMIT_SOCKS_REPLY 10u

enum socks_state {
    SOCKS_MORE,
    SOCKS_SEND,    /* send .reply, then go on feeding */
    SOCKS_CONNECT, /* to .host and .port; answer with socks_reply() */
    SOCKS_CLOSE,   /* send .reply, which may be empty, and close; see .problem */
    SOCKS_NOT,     /* it does not begin like SOCKS; nothing was used */
};

/* What a CONNECT is answered with. */
enum socks_code {
    SOCKS_OK = 0,
    SOCKS_FAILED = 1,
    SOCKS_DENIED = 2, /* by a rule */
    SOCKS_NET_UNREACHABLE = 3,
    SOCKS_HOST_UNREACHABLE = 4,
    SOCKS_REFUSED = 5,
    SOCKS_TTL = 6,
    SOCKS_NO_COMMAND = 7,
    SOCKS_NO_ADDRESS_TYPE = 8,
};

struct socks {
    struct host host;
    uint16_t port;
    const char *problem;
    uint8_t reply[LIMIT_SOCKS_REPLY];
    size_t reply_len;

    enum socks_state state;
    uint8_t greeted; /* the greeting is over */
    size_t n;
    uint8_t message[LIMIT_SOCKS_MESSAGE];
};

void socks_init(struct socks *s);
/* Takes bytes up to the end of one message; *ret_used says how many. */
enum socks_state socks_feed(struct socks *s, const uint8_t *data, size_t len, size_t *ret_used);
/* The answer to a CONNECT, without an address: no client looks at it. */
size_t socks_reply(enum socks_code code, uint8_t out[LIMIT_SOCKS_REPLY]);
