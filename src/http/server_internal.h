/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What server.c (listeners, peers), conn.c (the life of a connection) and exchange.c (what handlers
 * call) share. */
#include <time.h>

#include "base/buf.h"
#include "http/body.h"
#include "http/server.h"
#include "loop/loop.h"

enum http_stage {
    HTTP_STAGE_HEAD,     /* a request is awaited, or its head is being read */
    HTTP_STAGE_ANSWER,   /* the handler has it */
    HTTP_STAGE_DRAIN,    /* it is answered; the rest of its body is dropped */
    HTTP_STAGE_UPGRADED, /* no HTTP any more */
    HTTP_STAGE_CLOSE,    /* what is written is sent, then it ends */
    HTTP_STAGE_LINGER,   /* that is sent; what still comes is dropped */
};

struct http_conn;

/* The public part stands first. Its memory ends behind the head's last field and the head's bytes,
 * so that `head` must be last. */
struct exchange {
    struct http_exchange pub;
    struct http_conn *conn;
    bool wants_body, holds, told_last;
    bool started, ended, closes;
    bool has_no_content; /* HEAD, 204, 304 */
    bool is_chunked;
    bool told_stop;
    const struct http_upgrade_ops *upgrade;
    void *upgrade_user;
    struct http_body body;
    struct http_head head;
};

/* Connections of one address (of IPv6 one /64) or user. */
struct http_neighbour {
    struct http_neighbour *next;
    uint8_t key[17];
    unsigned n;
};

struct http_conn {
    struct http_server *server;
    struct loop_io io;
    struct loop_timer timer;
    struct loop_task turn;
    struct http_stream stream;
    struct http_peer peer;
    struct http_neighbour *neighbour;
    void *listener_user;
    struct http_conn *next, **back;
    struct http_conn *idle_next, *idle_previous;
    enum http_stage stage;
    bool is_idle;  /* in the server's list of those that wait for a request */
    bool may_read; /* once in this turn */
    bool busy;     /* in its turn: what handlers call needs not wake it */
    bool again;    /* it wants another turn soon */
    bool dead;
    bool had_request;
    bool lingers;   /* something may still come that nobody reads */
    bool in_held;   /* `at` is in `in`, not in the server's scratch */
    bool is_strict; /* epoll is asked for no more than is wanted */
    const char *at; /* bytes that came and are not used yet */
    size_t left;
    struct buf in;
    struct http_parser *parser; /* of a head that has begun, and looked at all that is left */
    struct buf out;
    size_t sent; /* of `out` */
    size_t dropped;
    uint64_t read_due, write_due; /* 0: none */
    struct exchange *x;
};

struct http_listener {
    struct loop_io io;
    struct loop_timer pause; /* after accept() has failed for want of something */
    struct http_server *server;
    struct http_listen how;
    struct http_listener *next;
    int fd;
};

#define HTTP_NEIGHBOURS 256 /* chains of the table */

struct http_server {
    struct loop *loop;
    const struct http_server_ops *ops;
    void *user;
    struct http_limits limits;
    struct http_listener *listeners;
    struct http_conn *conns;
    size_t n_conns;
    struct http_conn *idle_first, *idle_last; /* who has waited longest is first */
    struct http_neighbour *neighbours[HTTP_NEIGHBOURS];
    bool is_draining;
    struct loop_task drained;
    time_t date_at;
    char date[48];
    /* Of whoever has its turn: a connection that waits has none of these. */
    struct http_parser parser;
    struct http_head head;
    char scratch[HTTP_STREAM_READ];
};

/* ---- conn.c ---- */

/* The descriptor is the connection's, also on failure. -errno. */
int http_conn_open(struct http_server *s, int fd, const struct http_listen *how,
                   const struct http_peer *peer);
void http_conn_free(struct http_conn *c);
/* Something was written, or asked for: its turn comes, unless it has it already. */
void http_conn_wake(struct http_conn *c);
/* Bytes that are still to be sent. */
static inline size_t http_conn_waiting(const struct http_conn *c)
{
    return c->out.len - c->sent;
}

/* ---- exchange.c ---- */

/* From server->head, whose `len` bytes are at `data`; NULL without memory. */
struct exchange *http_exchange_new(struct http_conn *c, const char *data, size_t len);
void http_exchange_free(struct exchange *e);
/* Answers before there is an exchange, or instead of a handler; the connection is to close. */
void http_conn_refuse(struct http_conn *c, unsigned status, const char *message);
/* The rest of its body is small and surely comes. */
bool http_exchange_can_drain(const struct exchange *e);

/* ---- server.c ---- */

/* Counts one in; -EUSERS when the share is used up. */
int http_neighbour_enter(struct http_conn *c);
void http_neighbour_leave(struct http_conn *c);
void http_idle_enter(struct http_conn *c);
void http_idle_leave(struct http_conn *c);
/* The whole line, of this second. */
const char *http_server_date(struct http_server *s);
