/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one request: its head is checked (front_gate.c), its route found, its body read, then
 * the route's function asks the back and answers. Every way out ends in request_done(), which logs
 * and frees.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/front_internal.h"
#include "http/chars.h"
#include "mcp/limits.h"

#define SOME_FIELDS 7u

/* ---- begin and end ---- */

static const char *token_of_door(const struct request *r)
{
    const struct front_listener *l = r->x->listener;

    return l ? l->token : NULL;
}

static struct request *request_new(struct front *f, struct http_exchange *x)
{
    struct request *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->front = f;
    r->x = x;
    r->begun = loop_now(f->loop);
    r->next = f->requests;
    r->back = &f->requests;
    if (r->next)
        r->next->back = &r->next;
    f->requests = r;
    buf_init(&r->body, LIMIT_GATEWAY_BODY);
    front_request_id(f, r->asker.request);
    gate_peer(&x->peer, r->asker.peer, sizeof(r->asker.peer));
    r->is_door = token_of_door(r) != NULL;
    x->user = r;
    return r;
}

static void request_free(struct request *r)
{
    *r->back = r->next;
    if (r->next)
        r->next->back = r->back;
    question_cancel(&r->ask);
    sse_done(&r->sse);
    mcp_call_free(r->call);
    mcp_answer_done(&r->reply);
    r->front->bodies -= r->body.len;
    if (r->is_door)
        r->front->door_bodies -= r->body.len;
    buf_done(&r->body);
    buf_done(&r->held);
    explicit_bzero(&r->asker.who, sizeof(r->asker.who));
    free(r);
}

void request_done(struct request *r, unsigned status)
{
    const struct http_exchange *x = r->x;

    request_log(r->front, &r->asker, http_method_name(x->method), x->path, status,
                loop_now(r->front->loop) - r->begun);
    request_free(r);
}

struct request *request_of(struct question *a)
{
    return (struct request *)((char *)a - offsetof(struct request, ask));
}

/* ---- answers ---- */

void request_reply(struct request *r, unsigned status, const struct http_field *fields, size_t n,
                   const void *body, size_t len)
{
    struct http_field all[SOME_FIELDS + 1] = {{"X-Request-Id", r->asker.request}};

    for (size_t i = 0; i < n && i < SOME_FIELDS; i++)
        all[i + 1] = fields[i];
    http_reply(r->x, status, all, 1 + (n < SOME_FIELDS ? n : SOME_FIELDS), body, len);
    request_done(r, status);
}

void request_fail(struct request *r, unsigned status, const char *why)
{
    struct http_field fields[3] = {{"X-Request-Id", r->asker.request}};
    size_t n = 1;

    if (status == 401)
        fields[n++] = (struct http_field){"WWW-Authenticate", "Bearer"};
    if (status == 405)
        fields[n++] = (struct http_field){"Allow", r->allow};
    if (status == 503)
        fields[n++] = (struct http_field){"Retry-After", "1"};
    http_fail_with(r->x, status, why, fields, n);
    request_done(r, status);
}

/* What the back says about when to come again; "" if it does not. */
static void find_retry(const char *body, size_t len, char ret[16])
{
    json_t *v = json_loadb(body, len, 0, NULL);
    const json_t *after = json_object_get(json_object_get(v, "error"), "retry_after");
    double seconds = json_number_value(after);

    ret[0] = 0;
    if (seconds > 0 && seconds < 86400)
        (void)snprintf(ret, 16, "%d", (int)(seconds + 0.999));
    json_decref(v);
}

void request_answer(struct request *r, unsigned status, const char *body, size_t len)
{
    struct http_field fields[2] = {{"Content-Type", "application/json"}};
    char retry[16] = "";
    size_t n = 1;

    if (status == 429 || status == 503)
        find_retry(body, len, retry);
    if (status == 401)
        fields[n++] = (struct http_field){"WWW-Authenticate", "Bearer"};
    if (retry[0])
        fields[n++] = (struct http_field){"Retry-After", retry};
    request_reply(r, status, fields, n, body, len);
}

void request_revoke(struct request *r)
{
    question_cancel(&r->ask);
    if (r->sse.x) {
        struct http_exchange *x = r->x;

        sse_done(&r->sse);
        request_log(r->front, &r->asker, http_method_name(x->method), x->path, 401,
                    loop_now(r->front->loop) - r->begun);
        http_fail(x, 401, NULL);
        request_free(r);
        return;
    }
    request_fail(r, 401, "the credential has been revoked");
}

/* ---- questions ---- */

void request_ask(struct request *r, const char *op, json_t *params,
                 void (*on_answer)(struct question *a, unsigned status, const char *body,
                                   size_t len))
{
    r->ask.on_answer = on_answer;
    if (!question_send(r->front, &r->ask, op, params, &r->asker))
        request_fail(r, 503, NULL);
}

static void on_passed(struct question *a, unsigned status, const char *body, size_t len)
{
    request_answer(request_of(a), status, body, len);
}

void request_pass(struct request *r, const char *op, json_t *params)
{
    request_ask(r, op, params, on_passed);
}

static void on_verified(struct question *a, unsigned status, const char *body, size_t len)
{
    struct request *r = request_of(a);

    if (status != 200) {
        request_answer(r, status, body, len);
        return;
    }
    r->is_known = true;
    r->then(r);
}

void request_verify(struct request *r, void (*then)(struct request *r))
{
    if (r->is_known) {
        then(r);
        return;
    }
    r->then = then;
    request_ask(r, "me", NULL, on_verified);
}

static void refuse_now(struct request *r)
{
    request_fail(r, r->refusal, r->why[0] ? r->why : NULL);
}

void request_refuse(struct request *r, unsigned status, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(r->why, sizeof(r->why), fmt, ap);
    va_end(ap);
    r->refusal = status;
    request_verify(r, refuse_now);
}

/* ---- heads and bodies ---- */

static uint64_t most_body(const struct request *r)
{
    if (token_of_door(r))
        return LIMIT_DOOR_BODY;
    return r->route->run == serve_mcp ? LIMIT_MCP_MESSAGE : LIMIT_GATEWAY_BODY;
}

static void read_body(struct request *r)
{
    (void)http_read_body(r->x, most_body(r)); /* its length was looked at */
}

/* Who is to be believed with megabytes, or waits for a 100, is asked about first. */
static void begin_body(struct request *r)
{
    const struct http_head *head = r->x->head;

    if (!gate_is_json(head))
        request_refuse(r, 415, "Content-Type is not application/json: send that header");
    else if (head->has_length && head->length > most_body(r))
        request_refuse(r, 413, "the body has more than %llu bytes",
                       (unsigned long long)most_body(r));
    else if (head->expects_continue || head->framing == HTTP_CHUNKED ||
             head->length > LIMIT_FRONT_UNKNOWN)
        request_verify(r, read_body);
    else
        read_body(r);
}

static bool needs_credential(const struct request *r)
{
    if (!r->route)
        return true;
    if (r->route->run == serve_metrics && r->front->facts.metrics_open &&
        !http_find(r->x->head, "Authorization") && gate_is_loopback(&r->x->peer) &&
        !token_of_door(r))
        return false;
    return !(r->route->flags & ROUTE_OPEN);
}

/* False: it has been refused. */
static bool pass_gate(struct request *r)
{
    const char *why = NULL;
    unsigned status = gate_host(r->front, r->x->head, &why);

    if (status == 0 && needs_credential(r))
        status = gate_credential(r->x, token_of_door(r), &r->asker.who, &why);
    else
        r->is_known = true;
    if (status == 0)
        return true;
    request_fail(r, status, why);
    return false;
}

static void on_request(struct http_exchange *x)
{
    struct front *f = http_server_user(x->server);
    struct request *r = request_new(f, x);

    if (!r) {
        http_fail(x, 503, NULL);
        return;
    }
    r->route = route_find(x->method, x->path, &r->arg, r->allow, sizeof(r->allow));
    if (!pass_gate(r))
        return;
    if (!r->route && r->allow[0])
        request_refuse(r, 405, "%s", "");
    else if (!r->route)
        request_refuse(r, 404, "%s", "");
    else if (r->route->flags & ROUTE_BODY)
        begin_body(r);
    else
        r->route->run(r);
}

static void on_body(struct http_exchange *x, const char *data, size_t len, bool last)
{
    struct request *r = x->user;
    size_t before = r->body.len;

    buf_append(&r->body, data, len);
    r->front->bodies += r->body.len - before;
    if (r->is_door)
        r->front->door_bodies += r->body.len - before;
    if (r->body.failed || r->front->bodies > LIMIT_FRONT_BODIES ||
        r->front->door_bodies > LIMIT_DOOR_BODIES)
        request_fail(r, 503, "too many bodies are being read");
    else if (last)
        r->route->run(r);
}

static void on_gone(struct http_exchange *x)
{
    request_done(x->user, 499);
}

static void on_writable(struct http_exchange *x)
{
    feed_writable(x->user);
}

static void on_drained(struct http_server *s)
{
    front_over(http_server_user(s), NULL);
}

const struct http_server_ops front_http_ops = {
    .on_request = on_request,
    .on_body = on_body,
    .on_gone = on_gone,
    .on_writable = on_writable,
    .on_drained = on_drained,
};
