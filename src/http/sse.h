/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Server-sent events: an answer in parts whose parts are events. Embedded in whoever owns the
 * stream, who stops it before the exchange is no longer theirs: sse_end(), or sse_done() in
 * on_gone(). A comment is sent when nothing else was for a while, so that proxies keep the
 * connection and a client that is gone is noticed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/server.h"
#include "loop/loop.h"

#define LIMIT_SSE_NAME 256u         /* an event's name or id */
#define LIMIT_SSE_DATA (512u << 10) /* of one event; as lines it must fit LIMIT_HTTP_HARD */

struct sse {
    struct http_exchange *x; /* NULL: not going */
    struct loop_timer beat;
    uint64_t beat_usec;
};

/* Answers 200. Comments come after `beat_usec` of silence; 0 for never. */
void sse_start(struct sse *s, struct http_exchange *x, const struct http_field *fields,
               size_t n_fields, uint64_t beat_usec);
/*
 * One event; `id` and `name` may be NULL. False: stop, until on_writable(). An id or a name with a
 * line end, a NUL or too many bytes is a mistake of the program: the event is not sent, and the
 * stream is broken off. Lines of the data may end with CR, LF or both: they arrive ended by LF.
 */
bool sse_event(struct sse *s, const char *id, const char *name, const char *data, size_t len);
bool sse_comment(struct sse *s);
/* The answer is complete. */
void sse_end(struct sse *s);
/* The exchange is gone. Nothing to do if it is not going. */
void sse_done(struct sse *s);

/* The number in Last-Event-ID, where a client goes on that has lost its stream. */
bool sse_last_id(const struct http_exchange *x, uint64_t *ret);
