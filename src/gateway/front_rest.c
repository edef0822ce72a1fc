/* SPDX-License-Identifier: Apache-2.0 */
/* What the routes of the REST surface do. */
#include <stdio.h>
#include <string.h>

#include "gateway/front_internal.h"
#include "http/chars.h"
#include "http/url.h"

static const struct http_field json_field = {"Content-Type", "application/json"};

/* ---- fields from paths, queries and bodies ---- */

/* What stands in the path's braces. False: refused. */
static bool take_arg(struct request *r, json_t *params)
{
    char name[32], text[LIMIT_FRONT_TEXT + 1];
    struct http_fault fault;
    json_t *v;
    int n;

    if (!route_arg(r->route, name, sizeof(name)))
        return true;
    n = http_segment_decode(r->arg.at, r->arg.len, text, sizeof(text), &fault);
    v = n > 0 ? json_stringn(text, (size_t)n) : NULL;
    if (!v) {
        request_refuse(r, 400, "'%s' in the path is too long, or not UTF-8", name);
        return false;
    }
    (void)json_object_set_new(params, name, v);
    return true;
}

/* The operation's parameters from path and query; NULL: refused. */
static json_t *take_params(struct request *r)
{
    json_t *params = json_object();
    struct error err = {0};

    if (!take_arg(r, params)) {
        json_decref(params);
        return NULL;
    }
    if (fields_from_query(front_op(r->route->op), r->x->query, params, &err) >= 0)
        return params;
    json_decref(params);
    request_refuse(r, 400, "%s", err.msg);
    return NULL;
}

/* The body, held against these fields; NULL: refused. */
static json_t *take_body(struct request *r, const struct field *fields, size_t n)
{
    struct error err = {0};
    json_t *v = NULL;

    if (json_strict(r->body.data ? r->body.data : "", r->body.len, &v, &err) >= 0 &&
        fields_check(fields, n, v, &err) >= 0)
        return v;
    json_decref(v);
    request_refuse(r, 400, "%s", err.msg);
    return NULL;
}

/* ---- routes that only pass on ---- */

void serve_health(struct request *r)
{
    static const char ok[] = "{\"ok\":true}\n";

    request_reply(r, 200, &json_field, 1, ok, sizeof(ok) - 1);
}

void serve_op(struct request *r)
{
    json_t *params = take_params(r);

    if (params)
        request_pass(r, r->route->op, params);
}

static void tell_tools(struct request *r)
{
    const char *text = tools_text(r->front);

    if (text)
        request_reply(r, 200, &json_field, 1, text, strlen(text));
    else
        request_fail(r, 500, NULL);
}

void serve_tools(struct request *r)
{
    request_verify(r, tell_tools);
}

static void tell_openapi(struct request *r)
{
    const char *text = openapi_text(r->front);

    if (text)
        request_reply(r, 200, &json_field, 1, text, strlen(text));
    else
        request_fail(r, 500, NULL);
}

void serve_openapi(struct request *r)
{
    request_verify(r, tell_openapi);
}

static void on_metrics(struct question *a, unsigned status, const char *body, size_t len)
{
    static const struct http_field text = {"Content-Type",
                                           "text/plain; version=0.0.4; charset=utf-8"};
    struct request *r = request_of(a);
    autobuf out = {.max = LIMIT_LINK_FRAME};
    json_t *v;

    if (status != 200) {
        request_answer(r, status, body, len);
        return;
    }
    v = json_loadb(body, len, 0, NULL);
    if (metrics_put(v, &out))
        request_reply(r, 200, &text, 1, out.data, out.len);
    else
        request_fail(r, 500, "the metrics could not be written");
    json_decref(v);
}

void serve_metrics(struct request *r)
{
    json_t *params = take_params(r);

    if (params)
        request_ask(r, "metrics", params, on_metrics);
}

/* ---- calls ---- */

static const struct field call_body[] = {
    {"tool", FIELD_TEXT, true, NULL},   {"arguments", FIELD_OBJECT, false, NULL},
    {"agent", FIELD_TEXT, false, NULL}, {"session", FIELD_TEXT, false, NULL},
    {"id", FIELD_TEXT, false, NULL},    {"stream", FIELD_BOOL, false, NULL},
};

/* The client's own id, from the header or the body; false: they are not one. */
static bool take_key(struct request *r, json_t *params)
{
    bool twice;
    const struct http_slice *s = gate_find_once(r->x->head, "Idempotency-Key", &twice);
    json_t *id = json_object_get(params, "id"), *key;

    if (id && json_object_set(params, "key", id) == 0)
        (void)json_object_del(params, "id");
    if (!s)
        return true;
    key = s->len > 0 && s->len <= LIMIT_FRONT_TEXT && !twice ? json_stringn(s->at, s->len) : NULL;
    id = json_object_get(params, "key");
    if (!key || (id && !json_equal(id, key))) {
        json_decref(key);
        return false;
    }
    return json_object_set_new(params, "key", key) == 0;
}

void serve_call(struct request *r)
{
    json_t *params = take_body(r, call_body, COUNT(call_body));
    bool streams;

    if (!params)
        return;
    if (!take_key(r, params)) {
        json_decref(params);
        request_refuse(r, 400, "Idempotency-Key is empty, comes twice, or is not the field 'id'");
        return;
    }
    if (!json_object_get(params, "arguments"))
        (void)json_object_set_new(params, "arguments", json_object());
    streams = json_is_true(json_object_get(params, "stream")) ||
              gate_accepts(r->x->head, "text/event-stream");
    (void)json_object_set_new(params, "stream", json_boolean(streams));
    if (streams)
        feed_ask(r, "call", params);
    else
        request_pass(r, "call", params);
}

void serve_events(struct request *r)
{
    const struct http_slice *last = http_find(r->x->head, "Last-Event-ID");
    json_t *params = take_params(r);
    uint64_t after;

    if (!params)
        return;
    if (last && (!http_number(*last, INT64_MAX, &after) ||
                 json_object_set_new(params, "after", json_integer((json_int_t)after)) < 0)) {
        json_decref(params);
        request_refuse(r, 400, "Last-Event-ID is not the number of an event");
        return;
    }
    feed_ask(r, "events", params);
}

/* ---- approvals ---- */

void serve_approve(struct request *r)
{
    static const struct field fields[] = {{"allow", FIELD_BOOL, true, NULL}};
    json_t *params = take_body(r, fields, COUNT(fields));

    if (!params)
        return;
    if (take_arg(r, params))
        request_pass(r, r->route->op, params);
    else
        json_decref(params);
}

/* ---- cookies ---- */

static void set_cookie(struct request *r, const char *value, const char *more, char *ret,
                       size_t size)
{
    const struct front_listener *l = r->x->listener;

    (void)snprintf(ret, size, "clawden=%s; Path=/; HttpOnly; SameSite=Strict%s%s", value,
                   l && l->tls ? "; Secure" : "", more);
}

static void on_login(struct question *a, unsigned status, const char *body, size_t len)
{
    struct request *r = request_of(a);
    json_t *v = status == 200 ? json_loadb(body, len, 0, NULL) : NULL;
    const char *cookie = json_string_value(json_object_get(v, "cookie"));
    char field[LIMIT_FRONT_COOKIE + 128], text[64];

    if (cookie && strlen(cookie) <= LIMIT_FRONT_COOKIE) {
        set_cookie(r, cookie, "", field, sizeof(field));
        (void)snprintf(text, sizeof(text), "{\"expires\":%" JSON_INTEGER_FORMAT "}\n",
                       json_integer_value(json_object_get(v, "expires")));
        request_reply(r, 200, (const struct http_field[]){json_field, {"Set-Cookie", field}}, 2,
                      text, strlen(text));
        explicit_bzero(field, sizeof(field));
    } else if (status != 200) {
        request_answer(r, status, body, len);
    } else {
        request_fail(r, 500, NULL);
    }
    json_decref(v);
}

void serve_login(struct request *r)
{
    static const struct field fields[] = {{"code", FIELD_TEXT, true, NULL}};
    json_t *params = take_body(r, fields, COUNT(fields));

    if (params)
        request_ask(r, "login", params, on_login);
}

static void on_logout(struct question *a, unsigned status, const char *body, size_t len)
{
    struct request *r = request_of(a);
    char field[128];

    if (status != 200) {
        request_answer(r, status, body, len);
        return;
    }
    set_cookie(r, "", "; Max-Age=0", field, sizeof(field));
    request_reply(r, 200, (const struct http_field[]){json_field, {"Set-Cookie", field}}, 2, body,
                  len);
}

void serve_logout(struct request *r)
{
    json_t *params = take_params(r);

    if (params)
        request_ask(r, "logout", params, on_logout);
}
