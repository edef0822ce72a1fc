/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The back of the gateway: it knows who may do what, runs it, and writes it down. Questions come
 * over the link (ops.h), and each is one `struct ask` until its answer is sent.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "guard/tokens.h"

struct back;
struct error;
struct loop;

#define LIMIT_COOKIES      64u
#define LIMIT_PEERS        1024u  /* addresses whose wrong tokens are counted */
#define LIMIT_WRONG_TOKENS 20u    /* of one address in a minute; then they wait */
#define LIMIT_TOKEN_RATE   20000u /* questions of one token in a second */
#define LIMIT_SEARCHES     16u    /* at once, half of them of one token; others wait for them */
#define LIMIT_TOKEN_ASKS   1024u  /* questions of one token without an answer */
#define LIMIT_RATES        (LIMIT_TOKENS + 256u) /* and those who speak out of boxes */
#define LIMIT_DOOR_RATE    200u                  /* questions out of one box in a second */
#define LIMIT_DOOR_ASKS    64u                   /* and without an answer */
#define LIMIT_DOORS_ASKS   1024u                 /* out of all boxes */
#define COOKIE_SEC         (12 * 3600)
#define CODE_SEC           600 /* a one-use link is good so long */
#define LIMIT_CODES        8u

struct back_options {
    int link;    /* the socket to the front; ours from here on */
    int channel; /* the one for connections out of boxes (doors.h), also; -1: boxes have no door */
    /* `clawden mcp`: who started us, and for which session; NULL for a gateway. */
    const char *local_agent, *local_session;
    /* The front's facts (ops.h), as a JSON object text without "instance" and "version". */
    const char *facts;
    void (*on_ready)(void *arg); /* clients can connect now; once; or NULL */
    void *arg;
};

int back_new(struct loop *l, const struct back_options *o, struct back **ret, struct error *err);
void back_free(struct back *b);
DEFINE_AUTOPTR(back)
/* The settings and the front's facts, again. A bad configuration is said, and the old one stays. */
int back_reload(struct back *b, const char *facts, struct error *err);
/* No new calls; on_drained once nothing runs that somebody waits for. */
void back_drain(struct back *b, void (*on_drained)(void *arg), void *arg);
/* A new one-use code for the page; "" if there is no room. */
void back_code(struct back *b, char ret[33]);
