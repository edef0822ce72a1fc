/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An HTTP/1.1 server on the loop. It owns listeners, connections and deadlines; a handler gets one
 * exchange for each request, when its head is there, and answers it now or later.
 *
 * S1: of one connection one request at a time is with the handler; those behind it wait, unparsed,
 *     in at most one read's bytes. Answers therefore come in order.
 * S2: after any doubt about where a message ends the connection is answered once and closed.
 * S3: an exchange is the handler's from on_request until the handler has ended its answer
 *     (http_reply(), http_fail(), http_reply_end()) or on_gone() has been called: one of the two,
 *     never both, and no callback comes after it.
 * S4: what handlers call never calls back and frees nothing: callbacks come from the loop only.
 * S5: every size and time that the client chooses has its limit here: LIMIT_* or http_limits.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "http/head.h"
#include "http/stream.h"

struct error;
struct loop;
struct http_server;

#define LIMIT_HTTP_CONNS    4096u /* connections of one server; about 400 bytes each while idle */
#define LIMIT_HTTP_SHARE    3072u /* of them, those of one address or user: others still come in */
#define LIMIT_HTTP_PIPELINE 8u /* requests of one connection in one turn, then the others' turn */
#define LIMIT_HTTP_DRAIN    (64u << 10) /* of a body nobody wants, read so as to go on after it */
#define LIMIT_HTTP_LINGER   (1u << 20)  /* dropped after the last answer, lest a reset eat it */
#define LIMIT_HTTP_SOFT     (64u << 10) /* output that waits before the handler is told to stop */
#define LIMIT_HTTP_HARD     (1u << 20)  /* output that waits before the connection is dropped */
#define LIMIT_HTTP_WHOLE    (64u << 20) /* an answer that is given at once, by http_reply() */
#define LIMIT_HTTP_FIELDS   (32u << 10) /* the fields of an answer: they are the handler's */

/* Fields of a server that may be changed at any time; new connections and requests follow them. */
struct http_limits {
    uint64_t head_usec;   /* from the first byte of a head, or the connection's begin, to its end */
    uint64_t idle_usec;   /* between an answer and the next request */
    uint64_t body_usec;   /* a body may stand still so long ... */
    uint64_t write_usec;  /* and so may a client that does not take its answer ... */
    uint64_t min_rate;    /* ... and both keep up so many bytes a second */
    uint64_t linger_usec; /* after the last answer */
    size_t soft, hard;
    unsigned conns, share;
};

/* Who is at the other end. */
struct http_peer {
    bool is_unix; /* then `uid` is known, else `address` and `port` are */
    uid_t uid;
    uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d */
    uint16_t port;
};

/* Read only, but for `user`. Its slices are good for as long as it is the handler's (S3). */
struct http_exchange {
    struct http_server *server;
    void *user;                   /* the handler's own */
    void *listener;               /* what http_listen_*() was given */
    const struct http_head *head; /* http_find() and http_lists() look into it */
    enum http_method method;
    struct http_slice path;  /* canonical (http_path_is_canonical()), or "*" */
    struct http_slice query; /* without '?'; as it came */
    struct http_peer peer;
};

struct http_server_ops {
    void (*on_request)(struct http_exchange *x);
    /* Only after http_read_body(). The bytes are good during the call; `last` comes once, maybe
     * with no bytes. */
    void (*on_body)(struct http_exchange *x, const char *data, size_t len, bool last);
    /* The client went away, was too slow, or sent a bad body: nobody waits for the answer. One that
     * closes its sending half while the handler works counts as gone. */
    void (*on_gone)(struct http_exchange *x);
    /* After http_reply_part() has said "stop": go on. */
    void (*on_writable)(struct http_exchange *x);
    /* After http_server_drain(): no connection is left. May be NULL. */
    void (*on_drained)(struct http_server *s);
};

/* ---- servers ---- */

int http_server_new(struct loop *l, const struct http_server_ops *ops, void *user,
                    struct http_server **ret, struct error *err);
/* Closes everything; exchanges that are with the handler are told on_gone(). Not in a callback. */
void http_server_free(struct http_server *s);
DEFINE_AUTOPTR(http_server)
struct http_limits *http_server_limits(struct http_server *s);
void *http_server_user(const struct http_server *s);
size_t http_server_conns(const struct http_server *s);
/* No new connections, and none is kept after its answer. */
void http_server_drain(struct http_server *s);

/* ---- listeners ---- */

/* How a listener's connections are made, and what their exchanges carry as `listener`. NULL for
 * plain ones with nothing to carry. */
struct http_listen {
    const struct http_stream_ops *stream; /* NULL: http_plain */
    void *context;                        /* for stream->open() */
    bool is_secret;                       /* the stream encrypts: any address may be bound */
    void *user;
};

/* A literal IPv4 or IPv6 address; port 0 for any free one. Plain ones are loopback only. */
int http_listen_tcp(struct http_server *s, const char *address, uint16_t port,
                    const struct http_listen *how, uint16_t *ret_port, struct error *err);
/* A socket that nobody answers at is replaced, any other file is not. `mode` as for chmod(). */
int http_listen_unix(struct http_server *s, const char *path, mode_t mode,
                     const struct http_listen *how, struct error *err);
/* A listening socket that was inherited; the server's to close, also on failure. */
int http_listen_fd(struct http_server *s, int fd, const struct http_listen *how, struct error *err);
/* One connection that was accepted elsewhere; the server's to close, also on failure. -errno. */
int http_server_adopt(struct http_server *s, int fd, const struct http_listen *how);

/* ---- the request's body ---- */

/*
 * Asks for the body, at most `max` bytes of it; a client that waits for 100 is told. False: it is
 * announced larger, has been answered 413, and the exchange is the handler's no more.
 */
bool http_read_body(struct http_exchange *x, uint64_t max);
/* on_body() pauses; the client is not read from meanwhile, and its time does not run. */
void http_hold_body(struct http_exchange *x, bool hold);

/* ---- the answer ---- */

struct http_field {
    const char *name, *value;
};

/*
 * Every answer has Date, X-Content-Type-Options, and Cache-Control: no-store and a
 * Content-Security-Policy that allows nothing, unless a field given here says otherwise. The
 * framing and Connection are the server's. A field that cannot be written makes the answer a 500.
 */
void http_reply(struct http_exchange *x, unsigned status, const struct http_field *fields,
                size_t n_fields, const void *body, size_t len);
/* {"error":{"code","message"}}; message NULL for the usual words. Once an answer has begun it can
 * only be broken off, which is what this does then. */
void http_fail(struct http_exchange *x, unsigned status, const char *message);
void http_fail_with(struct http_exchange *x, unsigned status, const char *message,
                    const struct http_field *fields, size_t n_fields);
/* The code of the usual error body: "not_found". */
const char *http_error_code(unsigned status);

/* An answer in parts. */
void http_reply_start(struct http_exchange *x, unsigned status, const struct http_field *fields,
                      size_t n_fields);
/* False: stop, until on_writable(). Who goes on up to limits.hard loses the connection. */
bool http_reply_part(struct http_exchange *x, const void *data, size_t len);
void http_reply_end(struct http_exchange *x);
/* Ends the connection as if the client had; on_gone() follows, from the loop. */
void http_drop(struct http_exchange *x);

/*
 * One spelling per path: no empty, "." or ".." segment, no '\', and %XX in capitals only for what
 * cannot stand for itself, never for '/', a control byte or DEL. A slash at the end is another
 * path.
 */
bool http_path_is_canonical(struct http_slice path);

/* ---- what comes after HTTP, in the same connection (websocket.h) ---- */

struct http_upgrade_ops {
    void (*on_bytes)(struct http_exchange *x, const char *data, size_t len);
    void (*on_writable)(struct http_exchange *x);
    /* The exchange ends, for whatever reason: always called, once, and nothing after it. */
    void (*on_end)(struct http_exchange *x);
};

/* Answers 101 with these fields. From here on the server's ops hear no more of the exchange. */
void http_upgrade(struct http_exchange *x, const char *protocol, const struct http_field *fields,
                  size_t n_fields, const struct http_upgrade_ops *ops, void *user);
void *http_upgrade_user(const struct http_exchange *x);
/* As http_reply_part(). */
bool http_upgrade_write(struct http_exchange *x, const void *data, size_t len);
/* on_bytes() pauses. */
void http_upgrade_hold(struct http_exchange *x, bool hold);
/* So many bytes may wait besides those that do, before limits.hard drops the connection. */
size_t http_upgrade_room(const struct http_exchange *x);
/* What was written is sent, then the connection is closed. */
void http_upgrade_end(struct http_exchange *x);

/* The loop that it runs on. */
struct loop *http_loop(const struct http_exchange *x);
