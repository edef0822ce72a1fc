/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Messages of the domain name system, both ways: questions of a box that are answered here, and
 * our own questions to the host's resolver with its answers. Pure: bytes in, facts out.
 *
 * From a box: one question, opcode 0, no compression, at most one OPT record, nothing behind it.
 * Its bytes are given back as they came, so that a mixed-case name (0x20) returns as it was sent.
 *
 * From a resolver: pointers lead only backwards; the chain of CNAMEs is followed within the answer
 * and has an end; records of other names and types are passed over.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/host.h"

struct error;

#define LIMIT_DNS_NAME      255u   /* a name on the wire (RFC 1035) */
#define LIMIT_DNS_QUERY     1024u  /* a question: a name, OPT with a cookie and padding */
#define LIMIT_DNS_OPTIONS   512u   /* bytes of options in OPT: padding goes to 468 */
#define LIMIT_DNS_UDP       1232u  /* what is sent in one datagram (DNS flag day 2020) */
#define LIMIT_DNS_REPLY     4096u  /* what is sent over TCP: our answers are short */
#define LIMIT_DNS_MESSAGE   65535u /* what a resolver may send over TCP */
#define LIMIT_DNS_RECORDS   256u   /* records of an answer that are looked at */
#define LIMIT_DNS_CHAIN     16u    /* CNAMEs from the question to the address */
#define LIMIT_DNS_JUMPS     16u    /* pointers in one name */
#define LIMIT_DNS_ADDRESSES 32u    /* addresses taken of one answer, or put into one */
#define LIMIT_DNS_EDE_TEXT  200u   /* bytes of a reason in an answer */

enum {
    DNS_TYPE_A = 1,
    DNS_TYPE_CNAME = 5,
    DNS_TYPE_AAAA = 28,
    DNS_TYPE_OPT = 41,
    DNS_TYPE_HTTPS = 65
};
enum { DNS_CLASS_IN = 1 };

enum dns_rcode {
    DNS_NOERROR = 0, /* without addresses: the name is there, but nothing of this type */
    DNS_FORMERR = 1,
    DNS_SERVFAIL = 2,
    DNS_NXDOMAIN = 3,
    DNS_NOTIMP = 4,
    DNS_REFUSED = 5,
    DNS_BADVERS = 16,
};

/* Codes of RFC 8914. */
enum dns_ede {
    DNS_EDE_NONE = 0,
    DNS_EDE_BLOCKED = 15,
    DNS_EDE_FILTERED = 17,
    DNS_EDE_NETWORK = 23
};

/* ---- a box's questions ---- */

struct dns_query {
    uint16_t id, type, class;
    uint8_t opcode;
    bool recursion; /* desired */
    bool edns;
    uint16_t udp_size;                    /* what it can take in a datagram; 512 without EDNS */
    uint8_t question[LIMIT_DNS_NAME + 4]; /* as it came */
    size_t question_len;                  /* 0: none that could be given back */
    bool has_host;                        /* its name is a host's by host.h */
    struct host host;                     /* the name, canonical */
};

enum dns_parsed {
    DNS_QUERY,  /* answer it */
    DNS_REJECT, /* answer with *ret_rcode */
    DNS_DROP,   /* no message, or itself an answer: say nothing, or two servers talk for ever */
};

enum dns_parsed dns_parse_query(const uint8_t *msg, size_t len, struct dns_query *ret,
                                enum dns_rcode *ret_rcode);

struct dns_reply {
    enum dns_rcode rcode;
    const struct address *addresses; /* those of the question's type are put in */
    size_t n;
    uint32_t ttl;
    enum dns_ede ede; /* told if the question had EDNS */
    const char *text; /* and why, in words; may be NULL */
};

/*
 * The answer's length. `out` has LIMIT_DNS_REPLY bytes. What does not fit into a datagram is left
 * out and the answer marked as truncated, so that it is asked for again over TCP.
 */
size_t dns_build_reply(const struct dns_query *q, const struct dns_reply *reply, bool tcp,
                       uint8_t *out);

/* ---- messages in a TCP stream: two bytes of length each ---- */

struct dns_stream {
    size_t n;
    uint8_t bytes[2 + LIMIT_DNS_QUERY];
};

enum dns_framing { DNS_FRAME_MORE, DNS_FRAME_MESSAGE, DNS_FRAME_REFUSED };

/*
 * Takes bytes up to the end of one message; *ret_used says how many. MESSAGE: it stands at
 * dns_stream_message() until the next call. REFUSED: the length is 0 or above LIMIT_DNS_QUERY, and
 * the connection has to be closed.
 */
enum dns_framing dns_stream_feed(struct dns_stream *s, const uint8_t *data, size_t len,
                                 size_t *ret_used);
const uint8_t *dns_stream_message(const struct dns_stream *s, size_t *ret_len);

/* ---- our questions ---- */

/* The length, or 0 if `host` is no name. `out` has LIMIT_DNS_QUERY bytes. */
size_t dns_build_query(uint16_t id, const struct host *host, uint16_t type, uint8_t *out);

struct dns_answer {
    enum dns_rcode rcode;
    bool truncated; /* ask again over TCP */
    struct address addresses[LIMIT_DNS_ADDRESSES];
    size_t n;
    unsigned chain;                      /* CNAMEs that were followed */
    uint32_t ttl;                        /* the smallest of those that led here; 0 without any */
    char canonical[LIMIT_HOST_NAME + 1]; /* the name at the chain's end; "" if it is no host's */
};

/* For the question with this id, host and type; whatever answers another one is refused. */
int dns_parse_answer(const uint8_t *msg, size_t len, uint16_t id, const struct host *host,
                     uint16_t type, struct dns_answer *ret, struct error *err);
