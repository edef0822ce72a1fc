/* SPDX-License-Identifier: Apache-2.0 */
#include "http/websocket.h"

#include "tests/http_world.h"

#define KEY      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define FIXED    "GET /ws HTTP/1.1\r\nHost: x.test\r\n"
#define GOOD     FIXED "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" KEY
#define BYTES(s) (s), sizeof(s) - 1

/* Masked with a key of zeroes, so that the payload can be read here. */
#define M "\0\0\0\0"

struct seen {
    struct ws *w;
    unsigned messages, gone, code, writable;
    bool closes; /* after the first message */
    uint64_t ping_usec;
    const char *protocol;
};

static void on_message(struct ws *w, bool is_text, const char *data, size_t len)
{
    struct seen *s = ws_user(w);

    s->messages++;
    (void)ws_send(w, is_text, data, len);
    if (s->closes)
        ws_close(w, 4000, "enough");
}

static void on_ws_writable(struct ws *w)
{
    ((struct seen *)ws_user(w))->writable++;
}

static void on_ws_gone(struct ws *w, unsigned code)
{
    struct seen *s = ws_user(w);

    s->gone++;
    s->code = code;
    s->w = NULL;
}

static const struct ws_ops echo = {
    .on_message = on_message, .on_writable = on_ws_writable, .on_gone = on_ws_gone};

static void on_request(struct http_exchange *x)
{
    struct seen *s = ((struct world *)http_server_user(x->server))->user;
    const struct ws_options o = {.ops = &echo,
                                 .user = s,
                                 .max_message = 100,
                                 .ping_usec = s->ping_usec,
                                 .protocol = s->protocol};

    s->w = ws_accept(x, &o);
}

static void never(struct http_exchange *x)
{
    (void)x;
    fail_msg("the exchange has become a socket");
}

static void never_body(struct http_exchange *x, const char *data, size_t len, bool last)
{
    (void)data;
    (void)len;
    (void)last;
    never(x);
}

static const struct http_server_ops ops = {
    .on_request = on_request, .on_body = never_body, .on_gone = never, .on_writable = never};

static void start(struct world *w, struct seen *s)
{
    world_init(w, &ops);
    http_server_limits(w->server)->linger_usec = 10000;
    w->user = s;
}

static int open_socket(struct world *w, struct seen *s)
{
    autobuf raw = {0};
    int fd = world_connect(w);

    buf_init(&raw, 1u << 20);
    client_say(fd, GOOD "\r\n");
    world_run(w);
    assert_non_null(s->w);
    assert_false(client_read(fd, &raw));
    CHECK(strncmp(raw.data, "HTTP/1.1 101 ", 13) == 0 &&
              strstr(raw.data, "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
          "%s", raw.data);
    return fd;
}

/* ---- the handshake ---- */

static const struct {
    const char *in;
    unsigned status;
    const char *protocol;
} handshakes[] = {
    {GOOD "\r\n", 101, NULL},
    {GOOD "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n", 101, NULL},
    {GOOD "Sec-WebSocket-Protocol: a, mcp\r\n\r\n", 101, "mcp"},
    {GOOD "Sec-WebSocket-Protocol: a, b\r\n\r\n", 400, "mcp"},
    {GOOD "\r\n", 400, "mcp"},
    {GOOD KEY "\r\n", 400, NULL},
    {FIXED "\r\n", 426, NULL},
    {FIXED "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" KEY "\r\n", 426, NULL},
    {FIXED "Connection: upgrade\r\nSec-WebSocket-Version: 13\r\n" KEY "\r\n", 426, NULL},
    {FIXED "Upgrade: h2c\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\n" KEY "\r\n", 426,
     NULL},
    {FIXED "Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 8\r\n" KEY "\r\n",
     426, NULL},
    {FIXED "Upgrade: websocket\r\nConnection: upgrade\r\n" KEY "\r\n", 426, NULL},
    {FIXED "Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n", 400,
     NULL},
    {FIXED "Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR==\r\n\r\n",
     400, NULL},
    {FIXED "Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=\r\n\r\n",
     400, NULL},
    {"POST /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
     "Sec-WebSocket-Version: 13\r\n" KEY "\r\n",
     405, NULL},
    {"GET /ws HTTP/1.0\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
     "Sec-WebSocket-Version: 13\r\n" KEY "\r\n",
     426, NULL},
};

static void test_handshake(void **state)
{
    (void)state;
    FOR_EACH(row, handshakes)
    {
        struct seen s = {.protocol = row->protocol};
        autobuf raw = {0};
        struct world w;
        char want[32];
        int fd;

        start(&w, &s);
        buf_init(&raw, 1u << 20);
        fd = world_connect(&w);
        client_say(fd, row->in);
        world_run(&w);
        (void)client_read(fd, &raw);
        (void)snprintf(want, sizeof(want), "HTTP/1.1 %u ", row->status);
        CHECK(strncmp(raw.data, want, strlen(want)) == 0, "'%s': '%s'", row->in, raw.data);
        CHECK((row->status == 101) == (s.w != NULL), "'%s'", row->in);
        CHECK(!strstr(raw.data, "deflate"), "an extension was taken");
        if (row->status == 101)
            CHECK(!!row->protocol == !!strstr(raw.data, "Sec-WebSocket-Protocol: mcp\r\n"), "%s",
                  raw.data);
        (void)close(fd);
        world_run(&w);
        world_done(&w);
    }
}

/* ---- frames ---- */

#define CLOSE(code) "\x88\x02" code
#define E1000       "\x03\xe8"
#define E1002       "\x03\xea"
#define E1007       "\x03\xef"
#define E1009       "\x03\xf1"
#define TEN         "0123456789"
#define HUNDRED     TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static const struct row {
    const char *what;
    const char *in;
    size_t in_len;
    const char *out;
    size_t out_len;
    unsigned code; /* 0: it stays open */
} rows[] = {
    {"text", BYTES("\x81\x85" M "hello"), BYTES("\x81\x05hello"), 0},
    {"binary", BYTES("\x82\x83" M "\0\xff\1"), BYTES("\x82\x03\0\xff\1"), 0},
    {"nothing", BYTES("\x81\x80" M), BYTES("\x81\0"), 0},
    {"a mask", BYTES("\x81\x83\1\2\3\4\x60\x60\x60"),
     BYTES("\x81\x03"
           "abc"),
     0},
    {"two", BYTES("\x81\x81" M "a\x81\x81" M "b"), BYTES("\x81\1a\x81\1b"), 0},
    {"fragments", BYTES("\x01\x82" M "he\x00\x80" M "\x80\x83" M "llo"), BYTES("\x81\x05hello"), 0},
    {"a ping between", BYTES("\x01\x82" M "he\x89\x81" M "!\x80\x83" M "llo"),
     BYTES("\x8a\x01!\x81\x05hello"), 0},
    {"a pong nobody asked for", BYTES("\x8a\x81" M "!"), BYTES(""), 0},
    {"as large as may be", BYTES("\x82\xe4" M HUNDRED), BYTES("\x82\x64" HUNDRED), 0},
    {"a character in two fragments", BYTES("\x01\x81" M "\xc3\x80\x81" M "\xa9"),
     BYTES("\x81\x02\xc3\xa9"), 0},
    /* HT-30 */
    {"unmasked", BYTES("\x81\x05hello"), BYTES(CLOSE(E1002)), 1002},
    {"RSV1", BYTES("\xc1\x85" M "hello"), BYTES(CLOSE(E1002)), 1002},
    {"RSV2", BYTES("\xa1\x85" M "hello"), BYTES(CLOSE(E1002)), 1002},
    {"RSV3", BYTES("\x91\x85" M "hello"), BYTES(CLOSE(E1002)), 1002},
    {"opcode 3", BYTES("\x83\x80" M), BYTES(CLOSE(E1002)), 1002},
    {"opcode 11", BYTES("\x8b\x80" M), BYTES(CLOSE(E1002)), 1002},
    {"a ping of 126", BYTES("\x89\xfe\x00\x7e" M), BYTES(CLOSE(E1002)), 1002},
    {"a ping in fragments", BYTES("\x09\x80" M), BYTES(CLOSE(E1002)), 1002},
    {"a long form of a short length", BYTES("\x81\xfe\x00\x05" M "hello"), BYTES(CLOSE(E1002)),
     1002},
    {"a longer form", BYTES("\x81\xff\0\0\0\0\0\0\0\x05" M "hello"), BYTES(CLOSE(E1002)), 1002},
    {"2^63", BYTES("\x81\xff\x80\0\0\0\0\0\0\0" M), BYTES(CLOSE(E1002)), 1002},
    {"2^62", BYTES("\x82\xff\x40\0\0\0\0\0\0\0" M "x"), BYTES(CLOSE(E1009)), 1009},
    {"too large", BYTES("\x82\xe5" M HUNDRED "x"), BYTES(CLOSE(E1009)), 1009},
    {"too large in fragments", BYTES("\x02\xe4" M HUNDRED "\x80\x81" M "x"), BYTES(CLOSE(E1009)),
     1009},
    {"goes on with nothing", BYTES("\x80\x81" M "x"), BYTES(CLOSE(E1002)), 1002},
    {"begins in the middle", BYTES("\x01\x81" M "a\x81\x81" M "b"), BYTES(CLOSE(E1002)), 1002},
    {"no UTF-8", BYTES("\x81\x82" M "\xc0\x80"), BYTES(CLOSE(E1007)), 1007},
    {"half a character", BYTES("\x81\x81" M "\xc3"), BYTES(CLOSE(E1007)), 1007},
    {"a surrogate", BYTES("\x81\x83" M "\xed\xa0\x80"), BYTES(CLOSE(E1007)), 1007},
    /* closing */
    {"goodbye", BYTES("\x88\x82" M E1000), BYTES(CLOSE(E1000)), 1000},
    {"goodbye with words", BYTES("\x88\x85" M E1000 "bye"), BYTES("\x88\x05" E1000 "bye"), 1000},
    {"goodbye without a code", BYTES("\x88\x80" M), BYTES("\x88\0"), 1005},
    {"half a code", BYTES("\x88\x81" M "\x03"), BYTES(CLOSE(E1002)), 1002},
    {"code 999", BYTES("\x88\x82" M "\x03\xe7"), BYTES(CLOSE(E1002)), 1002},
    {"code 1005", BYTES("\x88\x82" M "\x03\xed"), BYTES(CLOSE(E1002)), 1002},
    {"code 1006", BYTES("\x88\x82" M "\x03\xee"), BYTES(CLOSE(E1002)), 1002},
    {"code 5000", BYTES("\x88\x82" M "\x13\x88"), BYTES(CLOSE(E1002)), 1002},
    {"words that are no UTF-8", BYTES("\x88\x83" M E1000 "\xff"), BYTES(CLOSE(E1007)), 1007},
    {"more after goodbye", BYTES("\x88\x82" M E1000 "\x81\x85" M "hello"), BYTES(CLOSE(E1000)),
     1000},
    {"more after a fault", BYTES("\x81\x05hello\x81\x85" M "hello"), BYTES(CLOSE(E1002)), 1002},
};

static void test_frames(void **state)
{
    (void)state;
    FOR_EACH(row, rows)
    {
        for (size_t step = 1; step <= row->in_len; step += row->in_len > 1 ? row->in_len - 1 : 1) {
            struct seen s = {0};
            autobuf raw = {0};
            struct world w;
            bool closed;
            int fd;

            start(&w, &s);
            buf_init(&raw, 1u << 20);
            fd = open_socket(&w, &s);
            for (size_t at = 0; at < row->in_len; at += step) {
                client_send(fd, row->in + at, row->in_len - at < step ? row->in_len - at : step);
                world_run(&w);
            }
            closed = client_read(fd, &raw);
            CHECK(raw.len == row->out_len &&
                      (raw.len == 0 || memcmp(raw.data, row->out, raw.len) == 0),
                  "%s in steps of %zu: %zu bytes came, the second 0x%x, the last 0x%x", row->what,
                  step, raw.len, raw.len > 1 ? raw.data[1] & 0xff : 0,
                  raw.len ? raw.data[raw.len - 1] & 0xff : 0);
            CHECK(closed == (row->code != 0), "%s in steps of %zu: %s", row->what, step,
                  closed ? "closed" : "open");
            CHECK(s.gone == (row->code != 0) && s.code == row->code, "%s: gone %u, code %u",
                  row->what, s.gone, s.code);
            (void)close(fd);
            world_run(&w);
            CHECK(s.gone == 1 && http_server_conns(w.server) == 0, "%s: left", row->what);
            world_done(&w);
        }
    }
}

/* An empty fragment costs its sender six bytes. */
static void test_fragments(void **state)
{
    struct seen s = {0};
    autobuf raw = {0};
    struct world w;
    int fd;

    (void)state;
    start(&w, &s);
    buf_init(&raw, 1u << 20);
    fd = open_socket(&w, &s);
    client_send(fd, BYTES("\x02\x80" M));
    for (unsigned i = 0; i < LIMIT_WS_FRAGMENTS - 2; i++) {
        client_send(fd, BYTES("\x00\x80" M));
        if (i % 100 == 0)
            world_run(&w);
    }
    client_send(fd, BYTES("\x80\x80" M)); /* as many as may be */
    world_run(&w);
    assert_int_equal(s.messages, 1);
    client_send(fd, BYTES("\x02\x80" M));
    for (unsigned i = 0; i < LIMIT_WS_FRAGMENTS; i++) {
        client_send(fd, BYTES("\x00\x80" M));
        if (i % 100 == 0)
            world_run(&w);
    }
    world_run(&w);
    assert_true(client_read(fd, &raw));
    assert_int_equal(s.code, 1008);
    assert_memory_equal(raw.data + raw.len - 4, "\x88\x02\x03\xf0", 4);
    (void)close(fd);
    world_done(&w);
}

/* Pings of a client that takes no pongs are left in its socket. */
static void test_ping_flood(void **state)
{
    static const char ping[] = "\x89\xfd" M HUNDRED TEN TEN "12345";
    struct seen s = {0};
    struct world w;
    size_t taken = 0;
    ssize_t n;
    int fd;

    (void)state;
    start(&w, &s);
    fd = open_socket(&w, &s);
    for (int i = 0; i < 20000; i++) {
        size_t at = taken % (sizeof(ping) - 1); /* a socket may take half a ping */

        n = send(fd, ping + at, sizeof(ping) - 1 - at, MSG_NOSIGNAL);
        taken += n > 0 ? (size_t)n : 0;
        if (i % 50 == 0)
            world_run(&w);
    }
    /* two socket buffers, and what the server lets wait */
    CHECK(taken < 1500000, "%zu bytes of pings were taken", taken);
    CHECK(s.gone == 0, "gone, code %u", s.code);
    (void)close(fd);
    world_run(&w);
    assert_int_equal(s.code, 1006);
    world_done(&w);
}

static void test_backpressure(void **state)
{
    static const char block[4096];
    struct seen s = {0};
    autobuf raw = {0};
    struct world w;
    size_t n = 0;
    int fd;

    (void)state;
    start(&w, &s);
    buf_init(&raw, 4u << 20);
    fd = open_socket(&w, &s);
    while (ws_send(s.w, false, block, sizeof(block)))
        n++;
    assert_true(n >= 15 && n < 20);
    assert_int_equal(s.writable, 0);
    world_run(&w); /* the socket takes it */
    assert_int_equal(s.writable, 1);
    for (int i = 0; i < 1000 && !s.gone; i++) { /* who does not listen */
        (void)ws_send(s.w, false, block, sizeof(block));
        if (i % 300 == 299)
            world_run(&w);
    }
    assert_int_equal(s.gone, 1);
    (void)close(fd);
    world_done(&w);
}

static void test_close(void **state)
{
    struct seen s = {.closes = true};
    autobuf raw = {0};
    struct world w;
    int fd;

    (void)state;
    start(&w, &s);
    buf_init(&raw, 1u << 20);
    fd = open_socket(&w, &s);
    client_send(fd, BYTES("\x81\x81" M "a\x81\x81" M "b"));
    world_run(&w);
    assert_true(client_read(fd, &raw));
    assert_int_equal(raw.len, 3 + 10);
    assert_memory_equal(raw.data,
                        "\x81\1a\x88\x08\x0f\xa0"
                        "enough",
                        13);
    assert_int_equal(s.messages, 1);
    assert_int_equal(s.gone, 0); /* it knows */
    world_wait(&w, 30);
    assert_int_equal(http_server_conns(w.server), 0);
    (void)close(fd);

    s = (struct seen){0};
    fd = open_socket(&w, &s);
    buf_clear(&raw);
    ws_close(s.w, 1001, /* 122 bytes fit with the character, 124 do not */
             HUNDRED TEN TEN "12\xc3\xa9");
    world_run(&w);
    assert_true(client_read(fd, &raw));
    assert_int_equal(raw.len, 2 + 2 + 122);
    (void)close(fd);
    world_done(&w);
}

static void test_pings(void **state)
{
    struct seen s = {.ping_usec = 60000};
    autobuf raw = {0};
    struct world w;
    int fd;

    (void)state;
    start(&w, &s);
    buf_init(&raw, 1u << 20);
    fd = open_socket(&w, &s);
    for (int i = 0; i < 8; i++) {
        world_wait(&w, 20);
        client_send(fd, BYTES("\x8a\x80" M));
    }
    assert_int_equal(s.gone, 0);
    world_wait(&w, 250); /* silence */
    assert_int_equal(s.gone, 1);
    assert_int_equal(s.code, 1006);
    assert_true(client_read(fd, &raw));
    assert_memory_equal(raw.data, "\x89\0", 2);
    (void)close(fd);
    world_done(&w);
}

static void test_hold(void **state)
{
    struct seen s = {0};
    struct world w;
    int fd;

    (void)state;
    start(&w, &s);
    fd = open_socket(&w, &s);
    ws_hold(s.w, true);
    client_send(fd, BYTES("\x81\x81" M "a"));
    world_run(&w);
    assert_int_equal(s.messages, 0);
    ws_hold(s.w, false);
    world_run(&w);
    assert_int_equal(s.messages, 1);
    world_done(&w); /* open */
    assert_int_equal(s.gone, 1);
    (void)close(fd);
}

static const struct CMUnitTest claims[] = {
    CLAIM("a handshake is good or answered", test_handshake),
    CLAIM("frames in, frames out, in any pieces", test_frames),
    CLAIM("a message has a limit of fragments", test_fragments),
    CLAIM("a flood of pings stays in the socket", test_ping_flood),
    CLAIM("a slow reader stops the handler", test_backpressure),
    CLAIM("a handler says goodbye", test_close),
    CLAIM("who answers no ping is dropped", test_pings),
    CLAIM("a handler may pause", test_hold),
};

int main(void)
{
    return RUN_CLAIMS("http/websocket", claims);
}
