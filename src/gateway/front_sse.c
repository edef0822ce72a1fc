/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question whose answer is a stream of events. What the back sends is written at once: it may
 * have LIMIT_LINK_WINDOW bytes on the way, and gets no more before the client has taken them (F3).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gateway/front_internal.h"

#define BEAT_USEC 15000000u /* proxies close what is silent for half a minute */

void feed_start(struct request *r)
{
    const struct http_field id = {"X-Request-Id", r->asker.request};

    sse_start(&r->sse, r->x, &id, 1, BEAT_USEC);
}

/* Too large for sse_event(), which copies it; JSON has no line ends. */
static bool send_large(struct request *r, const char *id, const char *name, const char *data,
                       size_t len)
{
    autobuf b = {.max = LIMIT_FRONT_WAITING};

    buf_printf(&b, "event: %s\n", name);
    if (id)
        buf_printf(&b, "id: %s\n", id);
    buf_puts(&b, "data: ");
    buf_append(&b, data, len);
    buf_puts(&b, "\n\n");
    if (b.failed || memchr(data, '\n', len) || memchr(data, '\r', len)) {
        http_drop(r->x);
        return false;
    }
    return http_reply_part(r->x, b.data, b.len);
}

void feed_send(struct request *r, const char *id, const char *name, const char *data, size_t len)
{
    bool goes_on = len > LIMIT_SSE_DATA ? send_large(r, id, name, data, len)
                                        : sse_event(&r->sse, id, name, data, len);

    r->is_stopped |= !goes_on;
    if (!r->is_stopped)
        question_taken(&r->ask);
}

void feed_end(struct request *r)
{
    sse_end(&r->sse);
    request_done(r, 200);
}

void feed_writable(struct request *r)
{
    r->is_stopped = false;
    question_taken(&r->ask);
}

/* Nothing was told before it: the answer, which comes next, may have a status of its own. */
static void hold_end(struct request *r, const char *id, const char *data, size_t len)
{
    (void)snprintf(r->held_id, sizeof(r->held_id), "%s", id);
    buf_init(&r->held, LIMIT_LINK_FRAME);
    buf_append(&r->held, data, len);
    question_taken(&r->ask);
}

static void on_event(struct question *a, const char *data, size_t len)
{
    struct request *r = request_of(a);
    json_t *e = json_loadb(data, len, 0, NULL);
    const char *type = json_string_value(json_object_get(e, "type"));
    char id[24];

    (void)snprintf(id, sizeof(id), "%" JSON_INTEGER_FORMAT,
                   json_integer_value(json_object_get(e, "seq")));
    if (type)
        r->has_ended = strcmp(type, "end") == 0;
    if (!type) {
        question_taken(a);
    } else if (!r->sse.x && r->has_ended) {
        hold_end(r, id, data, len);
    } else {
        if (!r->sse.x)
            feed_start(r);
        feed_send(r, id, type, data, len);
    }
    json_decref(e);
}

static void on_answer(struct question *a, unsigned status, const char *body, size_t len)
{
    struct request *r = request_of(a);

    if (!r->sse.x && status != 200) {
        request_answer(r, status, body, len);
        return;
    }
    if (!r->sse.x)
        feed_start(r);
    if (r->held.len > 0)
        feed_send(r, r->held_id, "end", r->held.data, r->held.len);
    else if (!r->has_ended) /* nothing was told about it: an answer that was kept, or a failure */
        feed_send(r, NULL, "end", body, len);
    feed_end(r);
}

void feed_ask(struct request *r, const char *op, json_t *params)
{
    r->wants_stream = true;
    r->ask.on_event = on_event;
    request_ask(r, op, params, on_answer);
}
