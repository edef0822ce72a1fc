/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server_internal.h"
#include "unit/gateway/front_world.h"

#define CALL(fields, body_len, body)                                                    \
    "POST /v1/call HTTP/1.1\r\n" HOST AUTH JSON_TYPE fields "Content-Length: " body_len \
    "\r\n\r\n" body
#define STREAM CALL("Accept: text/event-stream\r\n", "15", "{\"tool\":\"exec\"}")
#define WS                                                                              \
    "GET /v1/ws HTTP/1.1\r\n" HOST AUTH "Upgrade: websocket\r\nConnection: Upgrade\r\n" \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

static void keep(struct back_world *b, uint32_t id, const json_t *q)
{
    (void)b;
    (void)id;
    (void)q;
}

/* A client whose question is with the back. */
static int begin_stream(struct back_world *b, const char *text)
{
    int fd = world_connect(&b->w);

    b->on_call = keep;
    client_say(fd, text);
    world_run(&b->w);
    return fd;
}

/* ---- server-sent events ---- */

static void test_events(void **state)
{
    struct buf got = {.max = 1u << 20}, sum = {.max = 1u << 20};
    struct back_world b;
    int fd;

    (void)state;
    back_begin(&b);
    fd = begin_stream(&b, STREAM);
    CHECK_STR(asked(&b, "params/stream"), "true", "stream");
    back_tell(&b, b.id, "{\"seq\":1,\"type\":\"started\",\"call\":\"" CALL_A "\"}");
    back_tell(&b, b.id, "{\"seq\":2,\"type\":\"output\",\"stream\":\"stdout\",\"data\":\"a\"}");
    world_run(&b.w);
    (void)client_read(fd, &got);
    CHECK(strstr(got.data, "Content-Type: text/event-stream\r\n"), "%s", got.data);
    CHECK(strstr(got.data, "X-Request-Id: "), "%s", got.data);
    back_tell(&b, b.id, "{\"seq\":3,\"type\":\"end\",\"status\":200}");
    back_say(&b, b.id, 200, ANSWER);
    world_run(&b.w);
    (void)client_read(fd, &got);
    sum_up(&got, HTTP_POST, &sum);
    CHECK_STR(sum.data,
              "200 event: started\nid: 1\ndata: {\"seq\":1,\"type\":\"started\",\"call\":\"" CALL_A
              "\"}\n\n"
              "event: output\nid: 2\ndata: "
              "{\"seq\":2,\"type\":\"output\",\"stream\":\"stdout\",\"data\":\"a\"}\n\n"
              "event: end\nid: 3\ndata: {\"seq\":3,\"type\":\"end\",\"status\":200}\n\n|",
              "stream");
    assert_null(b.front->requests);
    (void)close(fd);
    buf_done(&got);
    buf_done(&sum);
    back_end(&b);
}

/* Before the first event an answer has its own status; one that was kept is an end. */
static void test_no_events(void **state)
{
    struct buf got = {.max = 1u << 20};
    struct back_world b;
    int fd;

    (void)state;
    back_begin(&b);
    fd = begin_stream(&b, STREAM);
    back_tell(&b, b.id, "{\"seq\":0,\"type\":\"end\",\"denied\":{}}");
    back_say(&b, b.id, 403, "{\"denied\":{\"op\":\"exec\"}}");
    world_run(&b.w);
    (void)client_read(fd, &got);
    assert_int_equal(status_of(got.data), 403);
    buf_clear(&got);
    (void)close(fd);
    fd = begin_stream(&b, STREAM);
    back_tell(&b, b.id, "{\"seq\":7,\"type\":\"end\"}");
    back_say(&b, b.id, 200, "{}");
    world_run(&b.w);
    (void)client_read(fd, &got);
    CHECK(strstr(got.data, "event: end\nid: 7\ndata: {\"seq\":7,\"type\":\"end\"}\n\n"), "%s",
          got.data);
    buf_clear(&got);
    (void)close(fd);
    fd = begin_stream(&b, CALL("", "29", "{\"tool\":\"exec\",\"stream\":true}"));
    back_say(&b, b.id, 200, "{\"kept\":1}");
    world_run(&b.w);
    (void)client_read(fd, &got);
    CHECK(strstr(got.data, "event: end\ndata: {\"kept\":1}\n\n"), "%s", got.data);
    (void)close(fd);
    buf_done(&got);
    back_end(&b);
}

static void test_resume(void **state)
{
    static const struct {
        const char *path, *fields, *params;
        unsigned status;
    } rows[] = {
        {"/events", "", "{\"call\":\"" CALL_A "\"}", 200},
        {"/events", "Last-Event-ID: 41\r\n", "{\"after\":41,\"call\":\"" CALL_A "\"}", 200},
        {"/events?after=7", "", "{\"after\":7,\"call\":\"" CALL_A "\"}", 200},
        {"/events?after=7", "Last-Event-ID: 9\r\n", "{\"after\":9,\"call\":\"" CALL_A "\"}", 200},
        {"/events", "Last-Event-ID: x\r\n", "{}", 400},
        {"/events", "Last-Event-ID: -1\r\n", "{}", 400},
        {"/events?after=x", "", "{}", 400},
    };
    struct back_world b;

    (void)state;
    back_begin(&b);
    FOR_EACH(row, rows)
    {
        struct buf got = {.max = 1u << 20};
        char text[512];
        int fd;

        (void)snprintf(text, sizeof(text),
                       "GET /v1/calls/" CALL_A "%s HTTP/1.1\r\n" HOST AUTH "%s\r\n", row->path,
                       row->fields);
        fd = begin_stream(&b, text);
        CHECK_STR(asked(&b, "params"), row->params, row->fields);
        if (row->status == 200) {
            back_tell(&b, b.id, "{\"seq\":42,\"type\":\"output\"}");
            world_run(&b.w);
        }
        (void)client_read(fd, &got);
        CHECK(status_of(got.data) == row->status, "%s: %s", row->fields, got.data);
        (void)close(fd);
        world_run(&b.w);
        buf_done(&got);
    }
    assert_int_equal(b.n_cancelled, 4);
    back_end(&b);
}

/* A stream whose last event is larger than what may wait for a client that is slow. */
static void test_large_end(void **state)
{
    struct buf got = {.max = 64u << 20}, event = {.max = 8u << 20};
    struct back_world b;
    int fd;

    (void)state;
    back_begin(&b);
    fd = begin_stream(&b, STREAM);
    buf_puts(&event, "{\"seq\":1,\"type\":\"end\",\"x\":\"");
    for (int i = 0; i < 4 << 20; i++)
        buf_puts(&event, "y");
    buf_puts(&event, "\"}");
    back_tell(&b, b.id, event.data);
    back_say(&b, b.id, 200, "{}");
    for (int i = 0; i < 100; i++) {
        world_run(&b.w);
        (void)client_read(fd, &got);
    }
    assert_true(got.len > 4u << 20);
    CHECK_STR(got.data + got.len - 5, "0\r\n\r\n", "the end");
    (void)close(fd);
    buf_done(&got);
    buf_done(&event);
    back_end(&b);
}

/* ---- credits ---- */

/* HT-31: a back that keeps its window, and a client that does not read. */
static void test_slow_client(void **state)
{
    struct buf got = {.max = 256u << 20};
    struct back_world b;
    char event[8192];
    size_t sent = 0, n;
    unsigned events = 0, rounds = 0;
    int fd;

    (void)state;
    memset(event, 'y', sizeof(event));
    memcpy(event, "{\"seq\":1,\"type\":\"output\",\"data\":\"", 33);
    memcpy(event + sizeof(event) - 3, "\"}", 3);
    n = strlen(event);
    back_begin(&b);
    fd = begin_stream(&b, STREAM);
    for (unsigned i = 0; i < 10000; i++) {
        if (sent - b.taken + n <= LIMIT_LINK_WINDOW) {
            back_tell(&b, b.id, event);
            sent += n;
            events++;
        } else if (++rounds > 50) {
            break;
        }
        world_run(&b.w);
    }
    /* The socket's own buffer, what may wait, and one window: then it stands still. */
    assert_true(events < 200);
    assert_true(sent - b.taken <= LIMIT_LINK_WINDOW);
    assert_true(b.front->requests->is_stopped);
    assert_true(b.w.server->conns->out.cap <= 2 * (LIMIT_HTTP_SOFT + LIMIT_LINK_WINDOW));
    assert_true(b.front->link.in.cap <= LIMIT_LINK_WINDOW);
    print_message("# stands still after %u events, %zu bytes\n", events, sent);
    /* It goes on when the client does. */
    while (events < 2000) {
        world_run(&b.w);
        (void)client_read(fd, &got);
        while (sent - b.taken + n <= LIMIT_LINK_WINDOW && events < 2000) {
            back_tell(&b, b.id, event);
            sent += n;
            events++;
        }
    }
    back_say(&b, b.id, 200, ANSWER);
    for (int i = 0; i < 20; i++) {
        world_run(&b.w);
        (void)client_read(fd, &got);
    }
    assert_true(got.len > sent);
    assert_null(b.front->requests);
    (void)close(fd);
    buf_done(&got);
    back_end(&b);
}

static void test_gone_stream(void **state)
{
    struct back_world b;
    uint32_t id;
    int fd;

    (void)state;
    back_begin(&b);
    fd = begin_stream(&b, STREAM);
    id = b.id;
    back_tell(&b, id, "{\"seq\":1,\"type\":\"started\"}");
    world_run(&b.w);
    (void)close(fd);
    world_run(&b.w);
    assert_int_equal(b.n_cancelled, 1);
    assert_int_equal(b.cancelled, id);
    back_tell(&b, id, "{\"seq\":2,\"type\":\"output\"}"); /* was on its way */
    world_run(&b.w);
    assert_null(b.front->requests);
    back_end(&b);
}

/* ---- revocation ---- */

static void test_revoke(void **state)
{
    struct buf got = {.max = 1u << 20};
    struct back_world b;
    int stream, waiting, other, socket;

    (void)state;
    back_begin(&b);
    stream = begin_stream(&b, STREAM);
    back_tell(&b, b.id, "{\"seq\":1,\"type\":\"started\"}");
    waiting = begin_stream(&b, CALL("", "15", "{\"tool\":\"exec\"}"));
    socket = begin_stream(&b, WS);
    other = begin_stream(&b, "GET /v1/calls/" CALL_A "/events HTTP/1.1\r\n" HOST
                             "Cookie: clawden=" COOKIE "\r\n\r\n");
    (void)client_read(stream, &got);
    (void)client_read(socket, &got);
    assert_int_equal(b.front->n_sockets, 1);
    link_send(&b.link, LINK_REVOKE, 0, "{\"token\":\"ba9876543210\"}", 24);
    world_run(&b.w);
    assert_int_equal(b.n_cancelled, 0); /* another's */
    link_send(&b.link, LINK_REVOKE, 0, "{\"token\":\"" TOKEN_ID_A "\"}", 24);
    world_run(&b.w);
    buf_clear(&got);
    assert_true(client_read(stream, &got)); /* broken off: closed, without its last chunk */
    CHECK(!got.data || !strstr(got.data, "0\r\n\r\n"), "%s", got.data);
    buf_clear(&got);
    (void)client_read(waiting, &got);
    assert_int_equal(status_of(got.data), 401);
    buf_clear(&got);
    assert_true(client_read(socket, &got));
    assert_int_equal((unsigned char)got.data[0], 0x88);
    assert_memory_equal(got.data + 2, "\x03\xf0", 2); /* 1008 */
    assert_int_equal(b.front->n_sockets, 0);
    assert_int_equal(b.n_cancelled, 2);
    assert_non_null(b.front->requests); /* the cookie's */
    {
        char hex[SHA256_HEX], text[128];

        sha256_hex(COOKIE, strlen(COOKIE), hex);
        (void)snprintf(text, sizeof(text), "{\"cookie\":\"%s\"}", hex);
        link_send(&b.link, LINK_REVOKE, 0, text, strlen(text));
    }
    world_run(&b.w);
    assert_null(b.front->requests);
    (void)close(stream);
    (void)close(waiting);
    (void)close(socket);
    (void)close(other);
    buf_done(&got);
    back_end(&b);
}

/* ---- WebSockets ---- */

/* Masked with zeroes. */
static void ws_say(int fd, const char *text)
{
    struct buf b = {.max = 1u << 20};
    size_t n = strlen(text);
    char head[8] = {(char)0x81, (char)(0x80 | (n < 126 ? n : 126)), (char)(n >> 8), (char)n};

    if (n < 126) {
        buf_append(&b, head, 2);
        buf_append(&b, "\0\0\0\0", 4);
    } else {
        buf_append(&b, head, 4);
        buf_append(&b, "\0\0\0\0", 4);
    }
    buf_append(&b, text, n);
    client_send(fd, b.data, b.len);
    buf_done(&b);
}

/* The payloads of what has come, with a '|' after each. */
static void ws_hear(struct back_world *b, int fd, struct buf *ret)
{
    struct buf raw = {.max = 64u << 20};
    size_t at = 0;

    world_run(&b->w);
    (void)client_read(fd, &raw);
    buf_clear(ret);
    buf_puts(ret, "");
    while (at + 2 <= raw.len) {
        const unsigned char *f = (const unsigned char *)raw.data + at;
        size_t n = f[1], head = 2;

        if (n == 126) {
            n = (size_t)f[2] << 8 | f[3];
            head = 4;
        }
        buf_append(ret, f + head, n);
        buf_puts(ret, "|");
        at += head + n;
    }
    buf_done(&raw);
}

static int ws_open(struct back_world *b)
{
    struct buf got = {.max = 1u << 20};
    int fd = begin_stream(b, WS);

    (void)client_read(fd, &got);
    assert_int_equal(status_of(got.data), 101);
    buf_done(&got);
    return fd;
}

static void test_ws(void **state)
{
    struct buf got = {.max = 1u << 20};
    struct back_world b;
    uint32_t one;
    int fd;

    (void)state;
    back_begin(&b);
    fd = ws_open(&b);
    CHECK_STR(asked(&b, "op"), "\"me\"", "handshake");
    ws_say(fd, "{\"id\":1,\"op\":\"call\",\"params\":{\"tool\":\"exec\",\"arguments\":{},"
               "\"stream\":true}}");
    ws_hear(&b, fd, &got);
    one = b.id;
    CHECK_STR(asked(&b, "params"), "{\"arguments\":{},\"stream\":true,\"tool\":\"exec\"}", "call");
    CHECK_STR(asked(&b, "token"), "\"" TOKEN_A "\"", "call");
    ws_say(fd, "{\"id\":2,\"op\":\"sessions\"}"); /* while the first one runs */
    ws_hear(&b, fd, &got);
    CHECK_STR(got.data, "{\"id\":2,\"status\":200,\"body\":{\"fine\":true}}|", "second");
    back_tell(&b, one, "{\"seq\":1}");
    back_say(&b, one, 403, "{\"denied\":{}}");
    ws_hear(&b, fd, &got);
    CHECK_STR(
        got.data,
        "{\"id\":1,\"event\":{\"seq\":1}}|{\"id\":1,\"status\":403,\"body\":{\"denied\":{}}}|",
        "first");
    assert_int_equal(b.taken, 9);
    ws_say(fd, "{\"id\":1,\"op\":\"events\",\"params\":{\"call\":\"" CALL_A "\",\"after\":3}}");
    ws_hear(&b, fd, &got);
    ws_say(fd, "{\"id\":1,\"op\":\"stop\"}");
    ws_hear(&b, fd, &got);
    CHECK(strstr(got.data, "{\"id\":1,\"status\":499,"), "%s", got.data);
    assert_int_equal(b.n_cancelled, 1);
    assert_int_equal(b.cancelled, b.id);
    (void)close(fd);
    world_run(&b.w);
    assert_int_equal(b.front->n_sockets, 0);
    buf_done(&got);
    back_end(&b);
}

static void test_ws_refusals(void **state)
{
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"x", "\"status\":400"},
        {"[]", "\"status\":400"},
        {"{\"id\":1}", "'op' is missing"},
        {"{\"op\":\"me\"}", "'id' is missing"},
        {"{\"id\":\"1\",\"op\":\"me\"}", "'id'"},
        {"{\"id\":1,\"op\":\"login\",\"params\":{\"code\":\"x\"}}", "not an operation"},
        {"{\"id\":1,\"op\":\"nothing\"}", "not an operation"},
        {"{\"id\":1,\"op\":\"me\",\"token\":\"x\"}", "'token' is not known"},
        {"{\"id\":1,\"op\":\"me\",\"params\":{\"x\":1}}", "'x' is not known"},
        {"{\"id\":1,\"op\":\"look\",\"params\":{\"call\":\"x\"}}", "'call'"},
        {"{\"id\":1,\"op\":\"call\",\"params\":{\"tool\":\"a\",\"tool\":\"b\"}}", "duplicate"},
        {"{\"id\":5,\"op\":\"stop\"}", "\"id\":5,\"status\":404"},
    };
    struct buf got = {.max = 1u << 20};
    struct back_world b;
    unsigned asked_before;
    int fd;

    (void)state;
    back_begin(&b);
    fd = ws_open(&b);
    asked_before = b.n_asked;
    FOR_EACH(row, rows)
    {
        ws_say(fd, row->text);
        ws_hear(&b, fd, &got);
        CHECK(strstr(got.data, row->part), "%s: %s", row->text, got.data);
    }
    assert_int_equal(b.n_asked, asked_before);
    ws_say(fd, "{\"id\":1,\"op\":\"call\",\"params\":{\"tool\":\"exec\"}}");
    ws_say(fd, "{\"id\":1,\"op\":\"me\"}");
    ws_hear(&b, fd, &got);
    CHECK(strstr(got.data, "\"status\":409"), "%s", got.data);
    for (unsigned i = 2; i <= LIMIT_FRONT_WS_ASKS + 1; i++) {
        char text[128];

        (void)snprintf(text, sizeof(text),
                       "{\"id\":%u,\"op\":\"call\",\"params\":{\"tool\":\"exec\"}}", i);
        ws_say(fd, text);
    }
    ws_hear(&b, fd, &got);
    CHECK(strstr(got.data, "\"status\":429"), "%s", got.data);
    (void)close(fd);
    world_run(&b.w);
    assert_int_equal(b.n_cancelled, LIMIT_FRONT_WS_ASKS);
    buf_done(&got);
    back_end(&b);
}

static void test_ws_slow(void **state)
{
    struct buf got = {.max = 64u << 20};
    struct back_world b;
    char event[8192];
    size_t sent = 0, n;
    unsigned i;
    int fd;

    (void)state;
    memset(event, 'y', sizeof(event));
    memcpy(event, "{\"seq\":1,\"data\":\"", 17);
    memcpy(event + sizeof(event) - 3, "\"}", 3);
    n = strlen(event);
    back_begin(&b);
    fd = ws_open(&b);
    ws_say(fd, "{\"id\":1,\"op\":\"call\",\"params\":{\"tool\":\"exec\",\"stream\":true}}");
    world_run(&b.w);
    for (i = 0; i < 1000 && sent - b.taken + n <= LIMIT_LINK_WINDOW; i++) {
        back_tell(&b, b.id, event);
        sent += n;
        world_run(&b.w);
    }
    assert_true(i < 200);
    for (i = 0; i < 100 && b.taken < sent; i++) {
        (void)client_read(fd, &got);
        world_run(&b.w);
    }
    assert_int_equal(b.taken, sent);
    (void)close(fd);
    buf_done(&got);
    back_end(&b);
}

static void test_ws_drain(void **state)
{
    struct buf got = {.max = 1u << 20};
    struct back_world b;
    int idle, busy;

    (void)state;
    back_begin(&b);
    idle = ws_open(&b);
    busy = ws_open(&b);
    ws_say(busy, "{\"id\":1,\"op\":\"call\",\"params\":{\"tool\":\"exec\"}}");
    world_run(&b.w);
    front_drain(b.front);
    world_run(&b.w);
    assert_true(client_read(idle, &got));
    assert_false(b.has_ended);
    buf_clear(&got);
    back_say(&b, b.id, 200, "{}");
    world_run(&b.w);
    assert_true(client_read(busy, &got));
    CHECK(strstr(got.data + 2, "{\"id\":1,\"status\":200"), "%s", got.data + 2);
    (void)close(idle);
    (void)close(busy);
    world_run(&b.w);
    assert_true(b.has_ended && !b.ended);
    buf_done(&got);
    back_end(&b);
}

static const struct CMUnitTest claims[] = {
    CLAIM("a call's events and its end arrive in order, with their numbers", test_events),
    CLAIM("before the first event an answer keeps its status", test_no_events),
    CLAIM("who comes again goes on after Last-Event-ID, or ?after=", test_resume),
    CLAIM("an end of megabytes arrives whole", test_large_end),
    CLAIM("a client that does not read stops the back, and memory stays bounded", test_slow_client),
    CLAIM("who leaves a stream ends it", test_gone_stream),
    CLAIM("a revoked credential ends streams, questions and WebSockets at once", test_revoke),
    CLAIM("a WebSocket carries many questions at once", test_ws),
    CLAIM("what a WebSocket refuses it says, under the question's id", test_ws_refusals),
    CLAIM("a WebSocket that is not read stops the back", test_ws_slow),
    CLAIM("a drained front lets open questions end, and no others begin", test_ws_drain),
};

int main(void)
{
    return RUN_CLAIMS("gateway/front_stream", claims);
}
