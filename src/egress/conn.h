/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One connection of a box, shared by the files that carry it: conn.c (coming in, sending, ending),
 * understand.c (what it wants), dial.c (finding and dialling), pump.c (one HTTP request with its
 * framing counted). A function that may end the connection has freed it then: nothing touches it
 * afterwards. */
#include "egress/relay.h"

/* What it turned out to be; the name of it in events. */
enum conn_via { VIA_UNKNOWN, VIA_DNS, VIA_SOCKS, VIA_CONNECT, VIA_HTTP, VIA_TLS, VIA_TCP };

enum conn_stage {
    STAGE_HEAR, /* until it is clear what it wants */
    STAGE_FIND, /* the name is being resolved */
    STAGE_DIAL,
    STAGE_INNER, /* told that it is through; what it says inside is looked at */
    STAGE_SEND,  /* what was held back goes upstream */
    STAGE_CARRY,
    STAGE_BYE, /* a last word to the client, then the end */
};

struct conn {
    struct relay_box *box;
    struct conn *next, **back;
    enum conn_stage stage;
    enum conn_via via;
    bool by_proxy; /* else it was caught on its way to `host` */
    bool has_host, is_http, told;
    uint16_t port; /* caught: the listener's; then the target's */
    struct host host;
    struct loop_io client, up;
    int client_fd, up_fd;
    struct loop_timer timer;
    struct resolver_lookup lookup;
    struct address found[LIMIT_DNS_ADDRESSES];
    size_t n_found, at;
    char rule[LIMIT_RULE_TEXT + 1];
    struct buf in; /* from the client, not yet understood or sent on */
    struct buf to_client, to_up;
    size_t client_sent, up_sent;
    struct socks socks;
    struct hello *hello;
    struct http_parser *parser;
    struct dns_stream *questions;
    struct http_body body;
    bool body_done, up_ended;
    uint64_t bytes_out, bytes_in;
    struct tunnel tunnel;
};

/* The whole of it is gone. */
void conn_free(struct conn *c);
/* Denied, with what the rules say: the client is told as far as its protocol can. */
void conn_refuse(struct conn *c, const struct egress_verdict *v);
/* Not possible, for a reason that is nobody's rule. status: for HTTP; code: for SOCKS. */
void conn_fail(struct conn *c, unsigned status, enum socks_code code, const char *why);
/* The target is known: the rules are asked, the name resolved, the address dialled. */
void conn_decide(struct conn *c);
/* Up is connected. */
void conn_connected(struct conn *c);
/* Sends what is held for both sides. 1: all is gone; 0: later; negative: the connection is over
 * and freed. */
int conn_flush(struct conn *c);
int conn_set_timer(struct conn *c, uint64_t usec);
const char *conn_target(const struct conn *c, char text[LIMIT_AUTHORITY_TEXT]);

/* The same for what is said inside: it must be what was allowed. */
void conn_refuse_inner(struct conn *c, const char *reason);
/* A last word, in the protocol that it speaks, and the end. */
void conn_say(struct conn *c, unsigned status, enum socks_code code, const char *text);
void conn_say_goodbye(struct conn *c);
/* What was held back goes upstream; then it is carried. */
void conn_send_held(struct conn *c);

/* understand.c: looks at `in`, as far as it has come. */
void conn_step_proxy(struct conn *c);
void conn_step_caught(struct conn *c);
void conn_step_dns(struct conn *c);
void conn_inner(struct conn *c);

/* pump.c: from here on it is one request and its answer. */
void pump_start(struct conn *c);
