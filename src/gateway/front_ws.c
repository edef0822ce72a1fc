/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations over a WebSocket, many at once. Each question has an id of the client's; to each there
 * is one last message, which has a status, whatever becomes of it.
 *
 *   {"id": 1, "op": "call", "params": {...}}   →  {"id": 1, "event": {...}} ...
 *                                                 {"id": 1, "status": 200, "body": {...}}
 *   {"id": 1, "op": "stop"}                    →  {"id": 1, "status": 499, ...}
 */
#include <stdlib.h>
#include <string.h>

#include "gateway/front_internal.h"
#include "http/websocket.h"

#define PING_USEC  30000000u
#define GOING_AWAY 1001u
#define POLICY     1008u
#define ERROR_ROOM (64u << 10) /* for what is said instead of answers that are too large */

struct socket_ask {
    struct question ask;
    struct socket *socket;
    struct socket_ask *next, **back;
    json_int_t id;
};

struct socket {
    struct front *front;
    struct ws *ws;
    struct socket *next, **back;
    struct socket_ask *asks;
    size_t n_asks;
    struct asker asker;
    uint64_t begun;
    bool is_stopped;
};

/* ---- messages out ---- */

static void send_message(struct socket *s, json_int_t id, const char *what, const char *json,
                         size_t len)
{
    autobuf b = {.max = LIMIT_FRONT_WAITING};

    buf_printf(&b, "{\"id\":%" JSON_INTEGER_FORMAT ",%s", id, what);
    buf_append(&b, json, len);
    buf_puts(&b, "}");
    if (!b.failed)
        s->is_stopped |= !ws_send(s->ws, true, b.data, b.len);
}

static void send_status(struct socket *s, json_int_t id, unsigned status, const char *body,
                        size_t len)
{
    autobuf what = {.max = 64};

    buf_printf(&what, "\"status\":%u,\"body\":", status);
    send_message(s, id, what.data, body, len);
}

static void send_error(struct socket *s, json_int_t id, unsigned status, const char *why)
{
    autobuf b = {.max = 8192};

    buf_puts(&b, "{\"error\":{");
    buf_json_str(&b, "code", status == 499 ? "stopped" : http_error_code(status));
    buf_json_str(&b, "message", why);
    buf_puts(&b, "}}");
    send_status(s, id, status, b.data, b.len);
}

/* ---- questions ---- */

static void ask_free(struct socket_ask *a)
{
    question_cancel(&a->ask);
    *a->back = a->next;
    if (a->next)
        a->next->back = a->back;
    a->socket->n_asks--;
    free(a);
}

static void on_event(struct question *base, const char *data, size_t len)
{
    struct socket_ask *a = (struct socket_ask *)base;

    send_message(a->socket, a->id, "\"event\":", data, len);
    if (!a->socket->is_stopped)
        question_taken(base);
}

static void close_if_idle(struct socket *s);

static void on_answer(struct question *base, unsigned status, const char *body, size_t len)
{
    struct socket_ask *a = (struct socket_ask *)base;
    struct socket *s = a->socket;

    if (len + ERROR_ROOM > ws_room(s->ws))
        send_error(s, a->id, 503,
                   "too much waits for this client already: read it, then ask again");
    else
        send_status(s, a->id, status, body, len);
    ask_free(a);
    close_if_idle(s);
}

static struct socket_ask *find_ask(struct socket *s, json_int_t id)
{
    for (struct socket_ask *a = s->asks; a; a = a->next)
        if (a->id == id)
            return a;
    return NULL;
}

/* Takes params. */
static void begin(struct socket *s, json_int_t id, const char *op, json_t *params)
{
    struct socket_ask *a = calloc(1, sizeof(*a));

    if (!a) {
        json_decref(params);
        send_error(s, id, 503, "out of memory");
        return;
    }
    a->socket = s;
    a->id = id;
    a->ask.on_event = on_event;
    a->ask.on_answer = on_answer;
    a->next = s->asks;
    a->back = &s->asks;
    if (a->next)
        a->next->back = &a->next;
    s->asks = a;
    s->n_asks++;
    if (question_send(s->front, &a->ask, op, params, &s->asker))
        return;
    ask_free(a);
    send_error(s, id, 503, "too many questions are open");
}

static void stop(struct socket *s, json_int_t id)
{
    struct socket_ask *a = find_ask(s, id);

    if (!a) {
        send_error(s, id, 404, "no question of this id is open");
        return;
    }
    ask_free(a);
    send_error(s, id, 499, "stopped by the client");
}

static void take_question(struct socket *s, json_int_t id, const char *name, json_t *message)
{
    const struct op *op = front_op(name);
    json_t *params = json_object_get(message, "params");
    struct error err = {0};

    params = params ? json_incref(params) : json_object();
    if (!op)
        send_error(s, id, 400, "field 'op' is not an operation");
    else if (find_ask(s, id))
        send_error(s, id, 409, "field 'id' is that of a question that is open");
    else if (s->n_asks >= LIMIT_FRONT_WS_ASKS)
        send_error(s, id, 429, "too many questions are open on this WebSocket");
    else if (fields_check(op->fields, op->n_fields, params, &err) < 0)
        send_error(s, id, 400, err.msg);
    else
        begin(s, id, op->name, json_incref(params));
    json_decref(params);
}

static void take_message(struct socket *s, json_t *m)
{
    static const struct field fields[] = {{"id", FIELD_NUMBER, true, NULL},
                                          {"op", FIELD_TEXT, true, NULL},
                                          {"params", FIELD_OBJECT, false, NULL}};
    const char *op = json_string_value(json_object_get(m, "op"));
    json_int_t id = json_integer_value(json_object_get(m, "id"));
    struct error err = {0};

    if (fields_check(fields, COUNT(fields), m, &err) < 0)
        send_error(s, id, 400, err.msg);
    else if (strcmp(op, "stop") == 0)
        stop(s, id);
    else
        take_question(s, id, op, m);
}

/* ---- the socket ---- */

static void socket_free(struct socket *s)
{
    while (s->asks)
        ask_free(s->asks);
    *s->back = s->next;
    if (s->next)
        s->next->back = s->back;
    s->front->n_sockets--;
    request_log(s->front, &s->asker, "GET", (struct http_slice){"/v1/ws", 6}, 101,
                loop_now(s->front->loop) - s->begun);
    explicit_bzero(&s->asker, sizeof(s->asker));
    free(s);
}

static void socket_close(struct socket *s, unsigned code, const char *why)
{
    ws_close(s->ws, code, why);
    socket_free(s);
}

static void close_if_idle(struct socket *s)
{
    if (s->front->is_draining && !s->asks)
        socket_close(s, GOING_AWAY, "the gateway ends");
}

static void on_message(struct ws *w, bool is_text, const char *data, size_t len)
{
    struct socket *s = ws_user(w);
    struct error err = {0};
    json_t *m = NULL;

    if (!is_text)
        send_error(s, 0, 400, "messages are text");
    else if (json_strict(data, len, &m, &err) < 0)
        send_error(s, 0, 400, err.msg);
    else
        take_message(s, m);
    json_decref(m);
}

static void on_writable(struct ws *w)
{
    struct socket *s = ws_user(w);

    s->is_stopped = false;
    for (struct socket_ask *a = s->asks; a; a = a->next)
        question_taken(&a->ask);
}

static void on_gone(struct ws *w, unsigned code)
{
    (void)code;
    socket_free(ws_user(w));
}

static const struct ws_ops socket_ops = {
    .on_message = on_message, .on_writable = on_writable, .on_gone = on_gone};

/* The request's exchange goes over to the socket, or has been answered. */
static void accept_socket(struct request *r)
{
    struct front *f = r->front;
    bool full = f->is_draining || f->n_sockets >= LIMIT_FRONT_SOCKETS;
    struct socket *s = full ? NULL : calloc(1, sizeof(*s));
    struct ws_options o = {
        .ops = &socket_ops, .max_message = LIMIT_WS_MESSAGE, .ping_usec = PING_USEC};

    if (!s) {
        request_fail(r, 503, "too many WebSockets are open");
        return;
    }
    o.user = s;
    s->ws = ws_accept(r->x, &o);
    if (!s->ws) {
        free(s);
        request_done(r, 426);
        return;
    }
    s->front = f;
    s->asker = r->asker;
    s->begun = r->begun;
    s->next = f->sockets;
    s->back = &f->sockets;
    if (s->next)
        s->next->back = &s->next;
    f->sockets = s;
    f->n_sockets++;
    request_done(r, 101);
}

void serve_socket(struct request *r)
{
    request_verify(r, accept_socket);
}

void sockets_revoke(struct front *f, const json_t *what)
{
    for (struct socket *s = f->sockets, *next; s; s = next) {
        next = s->next;
        if (gate_is_revoked(&s->asker.who, what))
            socket_close(s, POLICY, "the credential has been revoked");
    }
}

void sockets_drain(struct front *f)
{
    for (struct socket *s = f->sockets, *next; s; s = next) {
        next = s->next;
        close_if_idle(s);
    }
}

void sockets_free(struct front *f)
{
    while (f->sockets)
        socket_close(f->sockets, GOING_AWAY, "the gateway ends");
}
