/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * WebSocket (RFC 6455), the server's side: frames by wslay, messages put together here within
 * limits. Every frame from the client is masked, RSV is 0, text is UTF-8, control frames have 125
 * bytes at most; whoever sends anything else is told why (1002, 1007, 1009) and closed. Pings are
 * answered; while the client does not take what is written, it is not read from.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_exchange;
struct ws;

#define LIMIT_WS_FRAGMENTS 1024u /* frames of one message: an empty one costs nothing to send */
#define LIMIT_WS_MESSAGE   (16u << 20) /* whatever a handler asks for */
#define LIMIT_WS_REASON    123u        /* of a close frame */

struct ws_ops {
    /* A whole message, good during the call. */
    void (*on_message)(struct ws *w, bool is_text, const char *data, size_t len);
    /* After ws_send() has said "stop": go on. May be NULL. */
    void (*on_writable)(struct ws *w);
    /* It is over: the close code of the client or of ours, 1006 if it just went away. Not after
     * ws_close(). */
    void (*on_gone)(struct ws *w, unsigned code);
};

struct ws_options {
    const struct ws_ops *ops;
    void *user;
    size_t max_message;   /* at most LIMIT_WS_MESSAGE */
    const char *protocol; /* one of those that the client offers, or NULL */
    uint64_t ping_usec;   /* who is silent so long is asked, and so long again dropped; 0: never */
};

/* Takes the exchange over. NULL: it is no good handshake, and has been answered (400, 405, 426). */
struct ws *ws_accept(struct http_exchange *x, const struct ws_options *o);
void *ws_user(const struct ws *w);

/* False: stop, until on_writable(); more than limits.hard drops the connection. Text must be UTF-8.
 */
bool ws_send(struct ws *w, bool is_text, const void *data, size_t len);
/* A message of so many bytes does not drop it. */
size_t ws_room(const struct ws *w);
/* on_message() pauses. */
void ws_hold(struct ws *w, bool hold);
/* Says goodbye; the socket is the caller's no more. The reason is cut to what fits. */
void ws_close(struct ws *w, unsigned code, const char *reason);
