/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One connection of a box, shared by the files that carry it: accept.c (coming in), understand.c
 * (what it wants), dial.c (finding and dialling), conn.c (checking, sending, ending), say.c (what
 * the client and the log are told), pump.c (one HTTP request with its framing counted). A function
 * that may end the connection has freed it then: nothing touches it afterwards. */
#include "base/buf.h"
#include "egress/relay.h"
#include "egress/socks.h"
#include "egress/tunnel.h"
#include "http/body.h"
#include "http/head.h"

#define CONN_HEAR_USEC 10000000ull /* to say what it wants */

/* What it turned out to be; the name of it in events. */
enum conn_via { VIA_UNKNOWN, VIA_DNS, VIA_SOCKS, VIA_CONNECT, VIA_HTTP, VIA_TLS, VIA_TCP };

enum conn_stage {
    STAGE_HEAR, /* until it is clear what it wants */
    STAGE_FIND, /* the name is being resolved */
    STAGE_DIAL,
    STAGE_INNER, /* it is through; what it says inside is looked at */
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
    uint16_t port; /* of `host` */
    struct host host;
    struct loop_io client, up;
    int client_fd, up_fd;
    struct loop_timer timer, pause;
    struct resolver_lookup lookup;
    struct address found[LIMIT_DNS_ADDRESSES];
    size_t n_found, at;
    char rule[LIMIT_RULE_TEXT + 1];
    struct buf in; /* from the client, not yet understood or sent on */
    struct buf to_client, to_up;
    uint32_t ignored; /* bytes that came after the last word */
    size_t client_sent, up_sent;
    struct socks socks;
    struct hello *hello;
    struct http_parser *parser;
    struct dns_stream *questions;
    struct http_body body;
    bool body_done, up_ended, paused;
    bool spent;             /* a budget ended it */
    const char *end_reason; /* why it is ended, if not by itself; or NULL */
    struct meter meter;
    struct tunnel tunnel;
};

/* ---- accept.c ---- */

/* The whole of it is gone. */
void conn_free(struct conn *c);
/* It ends before it said what it wants. If it was on its way to where it must not go, that is told.
 */
void conn_give_up(struct conn *c);

/* ---- conn.c ---- */

int conn_set_timer(struct conn *c, uint64_t usec);
/* May the server be the one who begins? Not where TLS or HTTP is spoken. */
bool conn_server_may_begin(const struct conn *c);
/* Up is connected. */
void conn_connected(struct conn *c);
/* Sends what is held for both sides. 1: all is gone; 0: later; negative: the connection is over
 * and freed. */
int conn_flush(struct conn *c);
/* What was held back goes upstream; then it is carried. */
void conn_send_held(struct conn *c);
void conn_on_client(struct loop_io *io, uint32_t events);
void conn_on_time(struct loop_timer *t);

/* ---- say.c ---- */

const char *conn_target(const struct conn *c, char text[LIMIT_AUTHORITY_TEXT]);
void conn_tell_begin(struct conn *c);
void conn_tell_end(struct conn *c);
/* Denied, with what the rules say: the client is told as far as its protocol can. */
void conn_refuse(struct conn *c, const struct egress_verdict *v);
/* The same for what is said inside: it must be what was allowed. */
void conn_refuse_inner(struct conn *c, const char *reason);
/* The same for what there is too much of. */
void conn_refuse_limit(struct conn *c, const char *reason);
/* What it sent is no request, or names no host that could be one: `sent`, in whatever bytes. The
 * first only tells. */
void conn_tell_sent(struct conn *c, const char *reason, const char *sent, size_t len);
void conn_refuse_sent(struct conn *c, const struct http_fault *f, const char *sent, size_t len);
/* Not possible, for a reason that is nobody's rule. status: for HTTP; code: for SOCKS. */
void conn_fail(struct conn *c, unsigned status, enum socks_code code, const char *why);
/* A last word, in the protocol that it speaks, and the end. */
void conn_say(struct conn *c, unsigned status, enum socks_code code, const char *text);
void conn_say_goodbye(struct conn *c);

/* ---- dial.c ---- */

/* The target is known: the rules are asked, the name resolved, the address dialled. */
void conn_decide(struct conn *c);

/* Is this address of its host's still to be dialled, and may what goes there go on? */
bool conn_may_reach(const struct conn *c, const struct address *a, struct egress_verdict *v);

/* An address that stands for a name is that name: as a connection has it that was caught, or as
 * a program gives it to the proxy that has asked the resolver itself. */
void conn_name_standin(struct conn *c);

/* ---- understand.c: looks at `in`, as far as it has come ---- */

void conn_step_proxy(struct conn *c);
void conn_step_caught(struct conn *c);
void conn_step_dns(struct conn *c);
void conn_inner(struct conn *c);

/* ---- pump.c: from here on it is one request and its answer ---- */

void pump_start(struct conn *c);
