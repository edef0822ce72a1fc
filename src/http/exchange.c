/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers see of a request, and how they answer it. Nothing here calls back (S4): it writes
 * into the connection's buffer and wakes the connection. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "http/chars.h"
#include "http/compose.h"
#include "http/server_internal.h"

static struct exchange *exchange_of(struct http_exchange *x)
{
    return (struct exchange *)x;
}

/* ---- paths ---- */

static bool is_unreserved(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

/* %XX at `at`: in capitals, and of a byte that has to be written so. */
static bool is_good_escape(const char *at, size_t len)
{
    int high = len > 2 ? http_hex(at[1]) : -1, low = len > 2 ? http_hex(at[2]) : -1, c;

    if (high < 0 || low < 0 || at[1] >= 'a' || at[2] >= 'a')
        return false;
    c = high << 4 | low;
    return c >= 0x20 && c != 0x7f && c != '/' && c != '\\' && !is_unreserved(c);
}

static bool is_good_segment(const char *at, size_t len)
{
    if ((len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.'))
        return false;
    for (size_t i = 0; i < len; i++)
        if (at[i] == '\\' || (at[i] == '%' && !is_good_escape(at + i, len - i)))
            return false;
    return true;
}

bool http_path_is_canonical(struct http_slice path)
{
    size_t at = 1;

    if (path.len == 0 || path.at[0] != '/')
        return false;
    while (at < path.len) {
        const char *slash = memchr(path.at + at, '/', path.len - at);
        size_t n = slash ? (size_t)(slash - path.at) - at : path.len - at;

        if (n == 0 || !is_good_segment(path.at + at, n))
            return false;
        at += n + 1;
    }
    return true;
}

/* ---- begin and end ---- */

/* The bytes have moved from one place to another. */
static void move(struct http_slice *s, const char *from, const char *to)
{
    if (s->at)
        s->at = to + (s->at - from);
}

static void move_url(struct http_url *u, const char *from, const char *to)
{
    move(&u->authority, from, to);
    move(&u->host, from, to);
    move(&u->path, from, to);
    move(&u->query, from, to);
}

static void move_head(struct http_head *head, const char *from, const char *to)
{
    move(&head->method_text, from, to);
    move(&head->target, from, to);
    move_url(&head->url, from, to);
    move_url(&head->host, from, to);
    for (size_t i = 0; i < head->n_headers; i++) {
        move(&head->headers[i].name, from, to);
        move(&head->headers[i].value, from, to);
    }
}

struct exchange *http_exchange_new(struct http_conn *c, const char *data, size_t len)
{
    const struct http_head *head = &c->server->head;
    size_t head_size =
        offsetof(struct http_head, headers) + head->n_headers * sizeof(head->headers[0]);
    size_t size = offsetof(struct exchange, head) + head_size;
    struct exchange *e = malloc(size + len);
    char *bytes = (char *)e + size;

    if (!e)
        return NULL;
    memset(e, 0, offsetof(struct exchange, head));
    memcpy(&e->head, head, head_size);
    memcpy(bytes, data, len);
    move_head(&e->head, data, bytes);
    e->conn = c;
    e->has_no_content = head->method == HTTP_HEAD;
    http_body_init(&e->body, head->framing, head->length, LIMIT_HTTP_BODY);
    e->pub = (struct http_exchange){
        .server = c->server,
        .listener = c->listener_user,
        .head = &e->head,
        .method = head->method,
        .path = e->head.url.path,
        .query = e->head.url.query,
        .peer = c->peer,
    };
    if (e->pub.path.len == 0) /* "*", or a URL that ends behind its host */
        e->pub.path = (struct http_slice){head->form == HTTP_ASTERISK ? "*" : "/", 1};
    return e;
}

void http_exchange_free(struct exchange *e)
{
    free(e);
}

struct loop *http_loop(const struct http_exchange *x)
{
    return x->server->loop;
}

void http_drop(struct http_exchange *x)
{
    struct exchange *e = exchange_of(x);

    e->conn->dead = true;
    http_conn_wake(e->conn);
}

/* ---- the request's body ---- */

bool http_exchange_can_drain(const struct exchange *e)
{
    if (http_body_is_done(&e->body))
        return true;
    /* Who waits for 100 and gets an answer instead may send its body all the same, or not. */
    return e->body.framing == HTTP_BY_LENGTH && e->body.left <= LIMIT_HTTP_DRAIN &&
           (e->wants_body || !e->head.expects_continue);
}

bool http_read_body(struct http_exchange *x, uint64_t max)
{
    struct exchange *e = exchange_of(x);
    struct http_conn *c = e->conn;

    assert(!e->wants_body && !e->ended);
    if (e->head.has_length && e->head.length > max) {
        http_fail(x, 413, NULL);
        return false;
    }
    e->body.max = max < LIMIT_HTTP_BODY ? max : LIMIT_HTTP_BODY;
    e->wants_body = true;
    if (e->head.expects_continue && !e->started && c->left == 0 && !http_body_is_done(&e->body))
        buf_puts(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
    http_conn_wake(c);
    return true;
}

void http_hold_body(struct http_exchange *x, bool hold)
{
    struct exchange *e = exchange_of(x);

    e->holds = hold;
    http_conn_wake(e->conn);
}

/* ---- heads of answers ---- */

#define POLICY "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"
#define STORE  "Cache-Control: no-store\r\n"
#define SNIFF  "X-Content-Type-Options: nosniff\r\n"

/* Those that only the server writes: two of them would be two meanings. */
static bool is_ours(const char *name)
{
    static const char *const names[] = {"Content-Length", "Transfer-Encoding", "Connection", "Date",
                                        "X-Content-Type-Options"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (http_same(name, strlen(name), names[i], strlen(names[i])))
            return true;
    return false;
}

static bool has_field(const struct http_field *fields, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (http_same(fields[i].name, strlen(fields[i].name), name, strlen(name)))
            return true;
    return false;
}

static void write_fields(struct buf *b, const struct http_field *fields, size_t n)
{
    size_t before = b->len;

    for (size_t i = 0; i < n; i++) {
        if (is_ours(fields[i].name))
            b->failed = true;
        http_write_header(b, fields[i].name, fields[i].value);
    }
    if (b->len - before > LIMIT_HTTP_FIELDS)
        b->failed = true;
}

static void write_security(struct buf *b, const struct http_field *fields, size_t n)
{
    buf_puts(b, SNIFF);
    if (!has_field(fields, n, "Cache-Control"))
        buf_puts(b, STORE);
    if (!has_field(fields, n, "Content-Security-Policy"))
        buf_puts(b, POLICY);
}

static void write_status(struct buf *b, struct http_server *s, unsigned status)
{
    http_write_status_line(b, status, NULL);
    buf_puts(b, http_server_date(s));
}

/* How the content ends. */
static void write_framing(struct buf *b, struct exchange *e, unsigned status, bool in_parts,
                          size_t len)
{
    if (in_parts) {
        e->is_chunked = e->head.minor > 0 && !e->has_no_content;
        e->closes |= e->head.minor == 0;
        if (e->is_chunked)
            buf_puts(b, "Transfer-Encoding: chunked\r\n");
    } else if (status != 204 && status != 304) {
        buf_printf(b, "Content-Length: %zu\r\n", len);
    }
    if (e->closes)
        buf_puts(b, "Connection: close\r\n");
}

/* Out of `failed` there is one way: what a mistake has begun to write is taken back. */
static void take_back(struct buf *b, size_t len)
{
    b->len = len;
    b->failed = false;
    if (b->data)
        b->data[len] = 0;
}

/* False: a field was not fit to be sent. */
static bool begin_answer(struct exchange *e, unsigned status, const struct http_field *fields,
                         size_t n, bool in_parts, size_t len)
{
    struct http_conn *c = e->conn;
    size_t mark = c->out.len;

    assert(!e->started && !e->ended);
    if (status == 204 || status == 304)
        e->has_no_content = true;
    e->closes |= !e->head.keep_alive || c->server->is_draining ||
                 (!(in_parts && e->wants_body) && !http_exchange_can_drain(e));
    write_status(&c->out, c->server, status);
    write_security(&c->out, fields, n);
    write_fields(&c->out, fields, n);
    write_framing(&c->out, e, status, in_parts, len);
    http_write_end(&c->out);
    e->started = true;
    if (!c->out.failed)
        return true;
    take_back(&c->out, mark);
    return false;
}

/* ---- errors ---- */

static const struct {
    unsigned status;
    const char *code, *message;
} errors[] = {
    {400, "bad_request", "the request is malformed"},
    {401, "unauthorized", "a token is needed"},
    {403, "forbidden", "that is not allowed"},
    {404, "not_found", "there is no such thing here"},
    {405, "method_not_allowed", "the method is not allowed here"},
    {408, "timeout", "the request did not come in time"},
    {409, "conflict", "it has changed meanwhile"},
    {413, "too_large", "the body is too large"},
    {414, "uri_too_long", "the request target is too long"},
    {415, "unsupported_media_type", "the body is of a type that is not understood"},
    {417, "expectation_failed", "Expect is not '100-continue'"},
    {421, "misdirected", "this server does not answer for that host"},
    {422, "unprocessable", "the request cannot be done"},
    {426, "upgrade_required", "another protocol is needed here"},
    {429, "too_many_requests", "too many requests"},
    {431, "head_too_large", "the head is too large"},
    {500, "internal", "something went wrong here"},
    {501, "not_implemented", "that is not implemented"},
    {502, "bad_gateway", "what stands behind this server failed"},
    {503, "unavailable", "the server is busy"},
    {504, "gateway_timeout", "what stands behind this server was too slow"},
    {505, "version", "the HTTP version is neither 1.0 nor 1.1"},
};

static size_t find_error(unsigned status)
{
    size_t n = sizeof(errors) / sizeof(*errors);

    for (size_t i = 0; i < n; i++)
        if (errors[i].status == status)
            return i;
    return status >= 500 ? find_error(500) : find_error(400);
}

const char *http_error_code(unsigned status)
{
    return errors[find_error(status)].code;
}

static void write_error(struct buf *b, unsigned status, const char *message)
{
    const char *text = message ? message : errors[find_error(status)].message;

    buf_puts(b, "{\"error\":{");
    buf_json_str(b, "code", http_error_code(status));
    buf_json_str(b, "message", text);
    buf_puts(b, "}}\n");
}

#define LIMIT_HTTP_MESSAGE (8u << 10) /* an error's body: one sentence, every byte escaped */

void http_conn_refuse(struct http_conn *c, unsigned status, const char *message)
{
    autobuf body = {0};

    buf_init(&body, LIMIT_HTTP_MESSAGE);
    write_error(&body, status, message);
    write_status(&c->out, c->server, status);
    write_security(&c->out, NULL, 0);
    buf_puts(&c->out, "Content-Type: application/json\r\nConnection: close\r\n");
    buf_printf(&c->out, "Content-Length: %zu\r\n\r\n", body.len);
    buf_append(&c->out, body.data, body.len);
}

void http_fail_with(struct http_exchange *x, unsigned status, const char *message,
                    const struct http_field *fields, size_t n_fields)
{
    struct exchange *e = exchange_of(x);
    struct http_field all[8] = {{"Content-Type", "application/json"}};
    autobuf body = {0};

    assert(n_fields < sizeof(all) / sizeof(*all));
    if (e->started) {
        e->ended = e->closes = true;
        http_drop(x);
        return;
    }
    for (size_t i = 0; i < n_fields; i++)
        all[i + 1] = fields[i];
    buf_init(&body, LIMIT_HTTP_MESSAGE);
    write_error(&body, status, message);
    if (body.failed) {
        buf_clear(&body);
        write_error(&body, status, NULL);
    }
    http_reply(x, status, all, n_fields + 1, body.data, body.len);
}

void http_fail(struct http_exchange *x, unsigned status, const char *message)
{
    http_fail_with(x, status, message, NULL, 0);
}

/* The answer that was meant cannot be written. */
static void fail_to_write(struct exchange *e)
{
    http_conn_refuse(e->conn, 500, NULL);
    e->closes = e->ended = true;
    http_conn_wake(e->conn);
}

/* ---- whole answers ---- */

void http_reply(struct http_exchange *x, unsigned status, const struct http_field *fields,
                size_t n_fields, const void *body, size_t len)
{
    struct exchange *e = exchange_of(x);
    struct http_conn *c = e->conn;
    size_t mark = c->out.len;

    if (!begin_answer(e, status, fields, n_fields, false, len)) {
        fail_to_write(e);
        return;
    }
    if (!e->has_no_content)
        buf_append(&c->out, body, len);
    if (c->out.failed) {
        take_back(&c->out, mark);
        fail_to_write(e);
        return;
    }
    e->ended = true;
    http_conn_wake(c);
}

/* ---- answers in parts ---- */

/* What was sent goes before the buffer grows for want of its room. */
static void make_room(struct http_conn *c)
{
    if (c->sent < 4096 || c->sent < c->out.len / 2)
        return;
    memmove(c->out.data, c->out.data + c->sent, http_conn_waiting(c));
    c->out.len -= c->sent;
    c->sent = 0;
}

/* True: the bytes may be put behind the others. */
static bool has_room(struct exchange *e, size_t len)
{
    struct http_conn *c = e->conn;
    size_t hard = c->server->limits.hard;

    if (c->dead)
        return false;
    if (len > hard || http_conn_waiting(c) > hard - len) {
        c->dead = true;
        http_conn_wake(c);
        return false;
    }
    make_room(c);
    return true;
}

static bool may_go_on(struct exchange *e)
{
    struct http_conn *c = e->conn;

    http_conn_wake(c);
    e->told_stop |= http_conn_waiting(c) > c->server->limits.soft;
    return !e->told_stop;
}

void http_reply_start(struct http_exchange *x, unsigned status, const struct http_field *fields,
                      size_t n_fields)
{
    struct exchange *e = exchange_of(x);

    if (!begin_answer(e, status, fields, n_fields, true, 0)) {
        http_conn_refuse(e->conn, 500, NULL);
        e->closes = e->has_no_content = true; /* its parts go nowhere */
        e->is_chunked = false;
    }
    http_conn_wake(e->conn);
}

bool http_reply_part(struct http_exchange *x, const void *data, size_t len)
{
    struct exchange *e = exchange_of(x);
    struct http_conn *c = e->conn;

    assert(e->started && !e->ended);
    if (e->has_no_content || len == 0)
        return true;
    if (!has_room(e, len))
        return false;
    if (e->is_chunked)
        http_write_chunk(&c->out, data, len);
    else
        buf_append(&c->out, data, len);
    return may_go_on(e);
}

void http_reply_end(struct http_exchange *x)
{
    struct exchange *e = exchange_of(x);

    assert(e->started && !e->ended);
    if (e->is_chunked)
        http_write_last_chunk(&e->conn->out);
    e->ended = true;
    http_conn_wake(e->conn);
}

/* ---- after HTTP ---- */

void http_upgrade(struct http_exchange *x, const char *protocol, const struct http_field *fields,
                  size_t n_fields, const struct http_upgrade_ops *ops, void *user)
{
    struct exchange *e = exchange_of(x);
    struct http_conn *c = e->conn;

    assert(!e->started && !e->ended && http_body_is_done(&e->body));
    e->upgrade = ops;
    e->upgrade_user = user;
    e->started = true;
    write_status(&c->out, c->server, 101);
    buf_puts(&c->out, "Connection: Upgrade\r\n");
    http_write_header(&c->out, "Upgrade", protocol);
    write_fields(&c->out, fields, n_fields);
    http_write_end(&c->out);
    c->stage = HTTP_STAGE_UPGRADED;
    http_conn_wake(c);
}

void *http_upgrade_user(const struct http_exchange *x)
{
    return ((const struct exchange *)x)->upgrade_user;
}

bool http_upgrade_write(struct http_exchange *x, const void *data, size_t len)
{
    struct exchange *e = exchange_of(x);

    if (e->ended || !has_room(e, len))
        return false;
    buf_append(&e->conn->out, data, len);
    return may_go_on(e);
}

void http_upgrade_hold(struct http_exchange *x, bool hold)
{
    struct exchange *e = exchange_of(x);

    e->holds = hold;
    http_conn_wake(e->conn);
}

size_t http_upgrade_room(const struct http_exchange *x)
{
    const struct exchange *e = (const struct exchange *)x;
    size_t waiting = http_conn_waiting(e->conn), hard = e->conn->server->limits.hard;

    return e->conn->dead || waiting > hard ? 0 : hard - waiting;
}

void http_upgrade_end(struct http_exchange *x)
{
    struct exchange *e = exchange_of(x);

    e->ended = true;
    http_conn_wake(e->conn);
}
