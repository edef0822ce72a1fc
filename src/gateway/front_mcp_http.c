/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MCP over streamable HTTP, without sessions of the protocol's own: a message is a request, its
 * reply the answer, or an event stream when the client wants to hear of progress. A call is given
 * up by closing its connection; legacy clients send a notification instead, which is matched with
 * the one call of that id that the same credential has running from the same address.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gateway/front_internal.h"
#include "http/chars.h"

#define MOST_COPIES 32u /* headers that one message may make us look at */

/* ---- headers as texts ---- */

struct copies {
    const struct http_head *head;
    char *at[MOST_COPIES];
    size_t n;
};

static const char *find_header(void *ctx, const char *name)
{
    struct copies *c = ctx;
    const struct http_slice *s = http_find(c->head, name);
    char *text = s && c->n < MOST_COPIES ? strndup(s->at, s->len) : NULL;

    if (text)
        c->at[c->n++] = text;
    return text;
}

static bool is_protocols(struct http_slice name)
{
    return (name.len > 4 && http_same(name.at, 4, "Mcp-", 4)) ||
           (name.len > 10 && http_same(name.at, 10, "X-ClawDen-", 10));
}

/* One reader would take the first, another the last. */
static bool has_twice(const struct http_head *head)
{
    for (size_t i = 0; i < head->n_headers; i++)
        for (size_t k = 0; k < i && is_protocols(head->headers[i].name); k++)
            if (http_same(head->headers[i].name.at, head->headers[i].name.len,
                          head->headers[k].name.at, head->headers[k].name.len))
                return true;
    return false;
}

/* ---- replies ---- */

/* What mcp_take() or mcp_finish() made of it; the request ends. */
static void tell(struct request *r, const struct mcp_answer *a)
{
    static const struct http_field json = {"Content-Type", "application/json"};
    bool has_text = a->kind == MCP_REPLY;

    if (r->sse.x) {
        if (has_text)
            feed_send(r, NULL, "message", a->text.data, a->text.len);
        feed_end(r);
    } else if (has_text && a->text.len == 0) {
        request_fail(r, 500, NULL);
    } else {
        request_reply(r, (unsigned)a->status, &json, has_text, has_text ? a->text.data : "",
                      has_text ? a->text.len : 0);
    }
}

static void on_event(struct question *a, const char *data, size_t len)
{
    struct request *r = request_of(a);
    autobuf told = {.max = LIMIT_FRONT_WAITING};

    if (!front_mcp_progress(r->call, data, len, &told)) {
        if (!r->is_stopped)
            question_taken(a);
        return;
    }
    if (!r->sse.x)
        feed_start(r);
    feed_send(r, NULL, "message", told.data, told.len);
}

static void on_answer(struct question *a, unsigned status, const char *body, size_t len)
{
    struct request *r = request_of(a);
    struct mcp_answer answer;

    if (status == 401 && !r->sse.x) {
        request_answer(r, status, body, len);
        return;
    }
    front_mcp_finish(r->call, status, body, len, &answer);
    tell(r, &answer);
    mcp_answer_done(&answer);
}

/* ---- cancellation ---- */

static bool is_same_client(const struct request *a, const struct request *b)
{
    return a->asker.who.kind == b->asker.who.kind &&
           strcmp(a->asker.who.id, b->asker.who.id) == 0 &&
           strcmp(a->asker.peer, b->asker.peer) == 0;
}

static void cancel(struct request *r)
{
    struct request *found = NULL;
    unsigned n = 0;

    for (struct request *q = r->front->requests; q && r->reply.cancel; q = q->next)
        if (q->call && is_same_client(q, r) && mcp_cancels(&r->reply, q->call)) {
            found = q;
            n++;
        }
    if (n != 1) /* none, or it cannot be said which */
        return;
    mcp_cancelled(found->call);
    question_cancel(&found->ask);
    tell(found, &(struct mcp_answer){.kind = MCP_NOTHING, .status = 202});
}

/* ---- messages ---- */

static void tell_reply(struct request *r)
{
    cancel(r);
    tell(r, &r->reply);
}

static void begin_call(struct request *r, struct copies *headers)
{
    const char *agent = find_header(headers, "X-ClawDen-Agent");
    const char *session = find_header(headers, "X-ClawDen-Session");
    json_t *params = front_mcp_params(r->call, agent, session);

    if (!params) {
        request_refuse(r, 400, "X-ClawDen-Agent or X-ClawDen-Session is not UTF-8");
        return;
    }
    if (!gate_accepts(r->x->head, "text/event-stream"))
        (void)json_object_set_new(params, "stream", json_false());
    r->ask.on_event = on_event;
    request_ask(r, "call", params, on_answer);
}

void serve_mcp(struct request *r)
{
    struct copies headers = {.head = r->x->head};
    const struct mcp_transport t = {.http = true,
                                    .header = find_header,
                                    .ctx = &headers,
                                    .principal = r->asker.who.id,
                                    .now_ms = front_now_ms()};

    if (has_twice(r->x->head)) {
        request_refuse(r, 400, "a header of MCP or ClawDen comes twice");
        return;
    }
    mcp_take(r->front->mcp, r->body.data ? r->body.data : "", r->body.len, &t, &r->reply);
    if (r->reply.kind == MCP_CALL) {
        r->call = TAKE_PTR(r->reply.call);
        begin_call(r, &headers);
    } else {
        request_verify(r, tell_reply);
    }
    for (size_t i = 0; i < headers.n; i++)
        free(headers.at[i]);
}
