/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <time.h>

#include "tests/http_world.h"

#define HOST "Host: x.test\r\n"
#define NEXT "GET /hello HTTP/1.1\r\n" HOST "\r\n"

/* What the handler has seen. S3: requests = ended + gone, when all is over. */
struct seen {
    unsigned requests, ended, gone, writable, stops;
    struct http_exchange *later;
    struct buf body;
    size_t pushed, most; /* of an answer in parts */
    unsigned at_204;     /* requests that had come when /204 did */
};

static struct seen *seen_of(const struct http_exchange *x)
{
    return ((struct world *)http_server_user(x->server))->user;
}

static void say(struct http_exchange *x, unsigned status, const char *text, size_t len)
{
    seen_of(x)->ended++;
    http_reply(x, status, NULL, 0, text, len);
}

static void say_text(struct http_exchange *x, const char *text)
{
    say(x, 200, text, strlen(text));
}

static void parts(struct http_exchange *x)
{
    http_reply_start(x, 200, NULL, 0);
    assert_true(http_reply_part(x, "ab", 2));
    assert_true(http_reply_part(x, "", 0));
    assert_true(http_reply_part(x, "cd", 2));
    seen_of(x)->ended++;
    http_reply_end(x);
}

/* Until told to stop. */
static void push(struct http_exchange *x)
{
    static const char block[4096];
    struct seen *s = seen_of(x);

    while (s->pushed < s->most) {
        s->pushed += sizeof(block);
        if (!http_reply_part(x, block, sizeof(block))) {
            s->stops++;
            return;
        }
    }
    s->ended++;
    http_reply_end(x);
}

static void ask_body(struct http_exchange *x, uint64_t max)
{
    buf_clear(&seen_of(x)->body);
    if (!http_read_body(x, max))
        seen_of(x)->ended++;
}

static void spoil(struct http_exchange *x, const char *name, const char *value)
{
    const struct http_field field = {name, value};

    seen_of(x)->ended++;
    http_reply(x, 200, &field, 1, "never", 5);
}

static void on_request(struct http_exchange *x)
{
    static const struct http_field own[] = {{"Content-Security-Policy", "default-src 'self'"},
                                            {"cache-control", "max-age=5"}};
    struct seen *s = seen_of(x);
    struct http_slice p = x->path;

    s->requests++;
    if (http_slice_is(p, "/hello"))
        say_text(x, "hello");
    else if (http_slice_is(p, "/echo"))
        ask_body(x, 100);
    else if (http_slice_is(p, "/early"))
        ask_body(x, 1u << 20);
    else if (http_slice_is(p, "/limit4"))
        ask_body(x, 4);
    else if (http_slice_is(p, "/ignore"))
        say_text(x, "ignored");
    else if (http_slice_is(p, "/later"))
        s->later = x;
    else if (http_slice_is(p, "/parts"))
        parts(x);
    else if (http_slice_is(p, "/204")) {
        s->at_204 = s->requests;
        say(x, 204, "x", 1);
    } else if (http_slice_is(p, "/split"))
        spoil(x, "X-A", "b\r\nX-C: d");
    else if (http_slice_is(p, "/twice"))
        spoil(x, "content-length", "7");
    else if (http_slice_is(p, "/query"))
        say(x, 200, x->query.at, x->query.len);
    else if (http_slice_is(p, "/push")) {
        http_reply_start(x, 200, NULL, 0);
        push(x);
    } else if (http_slice_is(p, "/page")) {
        s->ended++;
        http_reply(x, 200, own, 2, "page", 4);
    } else {
        s->ended++;
        http_fail(x, 404, NULL);
    }
}

static void on_body(struct http_exchange *x, const char *data, size_t len, bool last)
{
    struct seen *s = seen_of(x);

    buf_append(&s->body, data, len);
    if (http_slice_is(x->path, "/early"))
        say_text(x, "enough");
    else if (last)
        say(x, 200, s->body.data, s->body.len);
}

static void on_gone(struct http_exchange *x)
{
    struct seen *s = seen_of(x);

    s->gone++;
    if (s->later == x)
        s->later = NULL;
}

static void on_writable(struct http_exchange *x)
{
    seen_of(x)->writable++;
    push(x);
}

static const struct http_server_ops ops = {
    .on_request = on_request, .on_body = on_body, .on_gone = on_gone, .on_writable = on_writable};

static void start(struct world *w, struct seen *s)
{
    world_init(w, &ops);
    *s = (struct seen){0};
    buf_init(&s->body, 1u << 20);
    w->user = s;
}

static void finish(struct world *w, struct seen *s)
{
    world_done(w);
    buf_done(&s->body);
    CHECK(s->requests == s->ended + s->gone, "%u requests, %u ended, %u gone", s->requests,
          s->ended, s->gone);
}

/* ---- bytes in, bytes out ---- */

#define POST(path, rest) "POST " path " HTTP/1.1\r\n" HOST rest
#define BAD              "{\"error\":{\"code\":\"bad_request\",\"message\":\""

static const struct row {
    const char *in, *want;
    enum http_method asked; /* HEAD: no answer has a body */
} rows[] = {
    {"", "open"},
    {"GET /hel", "open"},
    {NEXT, "200 hello|open"},
    {"\r\n" NEXT, "200 hello|open"},
    {NEXT NEXT NEXT, "200 hello|200 hello|200 hello|open"},
    {NEXT NEXT NEXT NEXT NEXT NEXT NEXT NEXT NEXT NEXT NEXT NEXT,
     "200 hello|200 hello|200 hello|200 hello|200 hello|200 hello|200 hello|200 hello|200 hello|"
     "200 hello|200 hello|200 hello|open"},
    {"GET /hello HTTP/1.1\r\nConnection: close\r\n" HOST "\r\n", "200! hello|closed"},
    {"GET /hello HTTP/1.0\r\n\r\n", "200! hello|closed"},
    {"GET http://x.test HTTP/1.1\r\n" HOST "\r\n" NEXT,
     "404 {\"error\":{\"code\":\"not_found\",\"message\":\"there is no such thing here\"}}\n|"
     "200 hello|open"},
    {"GET http://x.test/hello HTTP/1.1\r\n" HOST "\r\n", "200 hello|open"},
    {"GET /query?a=%2F&b HTTP/1.1\r\n" HOST "\r\n", "200 a=%2F&b|open"},
    {"HEAD /hello HTTP/1.1\r\n" HOST "\r\nHEAD /parts HTTP/1.1\r\n" HOST "\r\n", "200 |200 |open",
     HTTP_HEAD},
    {"GET /parts HTTP/1.1\r\n" HOST "\r\n" NEXT, "200 abcd|200 hello|open"},
    {"GET /parts HTTP/1.0\r\n\r\n", "200! abcd|closed"},
    {"GET /204 HTTP/1.1\r\n" HOST "\r\n" NEXT, "204 |200 hello|open"},
    {"GET /page HTTP/1.1\r\n" HOST "\r\n", "200 page|open"},
    /* bodies */
    {POST("/echo", "Content-Length: 5\r\n\r\nabcde") NEXT, "200 abcde|200 hello|open"},
    {POST("/echo", "\r\n") NEXT, "200 |200 hello|open"},
    {POST("/echo", "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n") NEXT,
     "200 abcde|200 hello|open"},
    {POST("/echo", "Content-Length: 5\r\n\r\nabc"), "open"},
    {POST("/ignore", "Content-Length: 5\r\n\r\nabcde") NEXT, "200 ignored|200 hello|open"},
    {POST("/ignore", "Content-Length: 99999999\r\n\r\nabcde"), "200! ignored|closed"},
    {POST("/ignore", "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n") NEXT,
     "200! ignored|closed"},
    {POST("/early", "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n") NEXT,
     "200! enough|closed"},
    {POST("/early", "Content-Length: 5\r\n\r\nabcde") NEXT, "200 enough|200 hello|open"},
    /* HT-19: 100 only when the handler wants the body */
    {POST("/echo", "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"), "100 |open"},
    {POST("/ignore", "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"), "200! ignored|closed"},
    {POST("/limit4", "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"),
     "413! {\"error\":{\"code\":\"too_large\",\"message\":\"the body is too large\"}}\n|closed"},
    {POST("/echo", "Expect: x\r\nContent-Length: 2\r\n\r\nab"),
     "417! {\"error\":{\"code\":\"expectation_failed\",\"message\":\"Expect is not "
     "'100-continue'\"}}"
     "\n|closed"},
    /* limits of the route */
    {POST("/limit4", "Content-Length: 4\r\n\r\nabcd"), "200 abcd|open"},
    {POST("/limit4", "Content-Length: 5\r\n\r\nabcde") NEXT,
     "413 {\"error\":{\"code\":\"too_large\",\"message\":\"the body is too large\"}}\n|200 "
     "hello|open"},
    {POST("/limit4", "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n") NEXT,
     "413! {\"error\":{\"code\":\"too_large\",\"message\":\"the body is too large\"}}\n|closed"},
    /* S2: after a doubt nothing that follows is read */
    {POST("/echo", "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n") NEXT,
     "400! " BAD "a chunk has no size in hex digits\"}}\n|closed"},
    {POST("/echo", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n") NEXT,
     "400! " BAD "Content-Length and Transfer-Encoding together\"}}\n|closed"},
    {POST("/echo", "Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde") NEXT,
     "400! " BAD "Content-Length comes twice\"}}\n|closed"},
    {"GET /hello HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc" NEXT,
     "400! " BAD "GET and HEAD with a body\"}}\n|closed"},
    {POST("/echo", "Transfer-Encoding: gzip\r\n\r\n"),
     "501! {\"error\":{\"code\":\"not_implemented\",\"message\":"
     "\"Transfer-Encoding other than 'chunked'\"}}\n|closed"},
    {NEXT "GET /hello HTTP/1.1\n" HOST "\n", "200 hello|400! " BAD "a line ends without CR\"}}\n|"
                                             "closed"},
    /* HT-21 */
    {"GET /hello\r\n", "400! " BAD "the request line is not METHOD target HTTP/1.1\"}}\n|closed"},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
     "405! {\"error\":{\"code\":\"method_not_allowed\",\"message\":\"the method is not "
     "allowed\"}}\n|"
     "closed"},
    {"\x16\x03\x01", "400! " BAD "the head holds a control byte\"}}\n|closed"},
    {"SSH-2.0-x\r\n", "400! " BAD "the method is not in capitals\"}}\n|closed"},
    {"GET /hello HTTP/2.0\r\n" HOST "\r\n",
     "505! {\"error\":{\"code\":\"version\",\"message\":\"the HTTP version is neither 1.0 nor "
     "1.1\"}}"
     "\n|closed"},
    {"CONNECT x.test:80 HTTP/1.1\r\n" HOST "\r\n",
     "405 {\"error\":{\"code\":\"method_not_allowed\",\"message\":\"the method is not allowed "
     "here\"}}"
     "\n|open"},
    {"OPTIONS * HTTP/1.1\r\n" HOST "\r\n",
     "404 {\"error\":{\"code\":\"not_found\",\"message\":\"there is no such thing here\"}}\n|open"},
    /* HT-35 */
    {"GET //hello HTTP/1.1\r\n" HOST "\r\n" NEXT,
     "400 " BAD "the path is not written in its one canonical way\"}}\n|200 hello|open"},
    {"GET /hello/ HTTP/1.1\r\n" HOST "\r\n",
     "404 {\"error\":{\"code\":\"not_found\",\"message\":\"there is no such thing here\"}}\n|open"},
    /* a mistake of the handler's never leaves */
    {"GET /split HTTP/1.1\r\n" HOST "\r\n",
     "500! {\"error\":{\"code\":\"internal\",\"message\":\"something went wrong here\"}}\n|closed"},
    {"GET /twice HTTP/1.1\r\n" HOST "\r\n" NEXT,
     "500! {\"error\":{\"code\":\"internal\",\"message\":\"something went wrong here\"}}\n|closed"},
    {"GET /nothing HTTP/1.1\r\n" HOST "\r\n",
     "404 {\"error\":{\"code\":\"not_found\",\"message\":\"there is no such thing here\"}}\n|open"},
};

static void talk(struct world *w, const struct row *row, size_t step, struct buf *ret)
{
    autobuf raw = {0};
    int fd = world_connect(w);
    size_t len = strlen(row->in);
    bool closed = false;

    buf_init(&raw, 1u << 20);
    for (size_t at = 0; at < len; at += step) {
        client_send(fd, row->in + at, len - at < step ? len - at : step);
        world_run(w);
    }
    closed = client_read(fd, &raw);
    sum_up(&raw, row->asked, ret);
    buf_puts(ret, closed ? "closed" : "open");
    (void)close(fd);
    world_run(w);
}

static void test_rows(void **state)
{
    struct world w;
    struct seen s;

    (void)state;
    start(&w, &s);
    FOR_EACH(row, rows)
    {
        size_t len = strlen(row->in);

        for (size_t step = 1; step <= len + 1; step = step == 1   ? 7
                                                      : step == 7 ? len + 1
                                                                  : len + 2) {
            autobuf got = {0};

            buf_init(&got, 1u << 20);
            talk(&w, row, step, &got);
            CHECK(strcmp(got.data, row->want) == 0, "'%s' in steps of %zu: got '%s', want '%s'",
                  row->in, step, got.data, row->want);
        }
    }
    assert_int_equal(http_server_conns(w.server), 0);
    finish(&w, &s);
}

static void test_exact(void **state)
{
    static const char want[] = "X-Content-Type-Options: nosniff\r\n"
                               "Cache-Control: no-store\r\n"
                               "Content-Security-Policy: default-src 'none'; frame-ancestors "
                               "'none'\r\n"
                               "Content-Length: 5\r\n\r\nhello";
    struct world w;
    struct seen s;
    autobuf raw = {0};
    int fd;

    (void)state;
    start(&w, &s);
    buf_init(&raw, 1u << 20);
    fd = world_connect(&w);
    client_say(fd, NEXT);
    world_run(&w);
    assert_false(client_read(fd, &raw));
    CHECK(strncmp(raw.data, "HTTP/1.1 200 OK\r\nDate: ", 23) == 0, "%s", raw.data);
    CHECK(strcmp(strchr(raw.data + 17, '\n') + 1, want) == 0, "%s", raw.data);
    buf_clear(&raw);
    client_say(fd, "GET /page HTTP/1.1\r\n" HOST "\r\n");
    world_run(&w);
    assert_false(client_read(fd, &raw));
    CHECK(strstr(raw.data, "default-src 'self'") && strstr(raw.data, "max-age=5") &&
              strstr(raw.data, "nosniff") && !strstr(raw.data, "'none'") &&
              !strstr(raw.data, "no-store"),
          "%s", raw.data);
    buf_clear(&raw);
    client_say(fd, "GET /parts HTTP/1.0\r\n\r\n"); /* which knows no chunks */
    world_run(&w);
    assert_true(client_read(fd, &raw));
    CHECK(!strstr(raw.data, "chunked") && strcmp(strstr(raw.data, "\r\n\r\n"), "\r\n\r\nabcd") == 0,
          "%s", raw.data);
    (void)close(fd);
    finish(&w, &s);
}

/* HT-15. */
static void test_large_heads(void **state)
{
    static const struct {
        const char *what;
        size_t line, n;
        const char *want;
    } heads[] = {
        {"a long target", 9000, 0, "414!"},
        {"a long line", 9000, 1, "431!"},
        {"many headers", 4, 101, "431!"},
        {"a large head", 7000, 10, "431!"},
        {"a head that fits", 6000, 10, "200 hello"},
    };

    (void)state;
    FOR_EACH(row, heads)
    {
        autobuf in = {0}, raw = {0}, got = {0};
        struct world w;
        struct seen s;
        int fd;

        start(&w, &s);
        buf_init(&in, 1u << 20);
        buf_init(&raw, 1u << 20);
        buf_init(&got, 1u << 20);
        buf_puts(&in, "GET /hello");
        for (size_t i = 0; row->n == 0 && i < row->line; i++)
            buf_puts(&in, "?");
        buf_puts(&in, " HTTP/1.1\r\n" HOST);
        for (size_t k = 0; k < row->n; k++) {
            buf_puts(&in, "X: ");
            for (size_t i = 0; i < row->line; i++)
                buf_puts(&in, "x");
            buf_puts(&in, "\r\n");
        }
        buf_puts(&in, "\r\n");
        fd = world_connect(&w);
        client_send(fd, in.data, in.len);
        world_run(&w);
        (void)client_read(fd, &raw);
        sum_up(&raw, HTTP_GET, &got);
        CHECK(strncmp(got.data, row->want, strlen(row->want)) == 0, "%s: '%s'", row->what,
              got.data);
        (void)close(fd);
        finish(&w, &s);
    }
}

static void test_paths(void **state)
{
    static const char *const good[] = {"/",       "/a",   "/a/b",     "/a/", "/a%20b",
                                       "/%C3%A9", "/a;x", "/...",     "/.a", "/a..b",
                                       "/%25",    "/~u",  "/a=b&c,d", "/%3F"};
    static const char *const bad[] = {
        "",       "a",         "//",      "/a//b",   "/./a",   "/a/.",    "/a/..",
        "/../a",  "/%2e/a",    "/%2E%2E", "/%65xec", "/a%2Fb", "/a%2fb",  "/a%00",
        "/a%0A",  "/a%7F",     "/a%",     "/a%4",    "/a%zz",  "/%c3%a9", "/a\\b",
        "/a%5Cb", "/a/%2e%2e", "/.%2e/a", "/a//",    "/%2D"};

    (void)state;
    FOR_EACH(path, good)
    CHECK(http_path_is_canonical((struct http_slice){*path, strlen(*path)}), "%s", *path);
    FOR_EACH(path, bad)
    CHECK(!http_path_is_canonical((struct http_slice){*path, strlen(*path)}), "%s", *path);
}

/* ---- answers that come later, clients that go ---- */

static void test_later(void **state)
{
    struct world w;
    struct seen s;
    autobuf raw = {0}, got = {0};
    int fd;

    (void)state;
    start(&w, &s);
    buf_init(&raw, 1u << 20);
    buf_init(&got, 1u << 20);
    fd = world_connect(&w);
    client_say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n" NEXT);
    world_run(&w);
    assert_non_null(s.later);
    assert_int_equal(s.requests, 1); /* S1: the one behind it waits */
    client_say(fd, NEXT);
    world_run(&w);
    assert_int_equal(s.requests, 1);
    s.ended++;
    http_reply(s.later, 200, NULL, 0, "late", 4);
    world_run(&w);
    assert_false(client_read(fd, &raw));
    sum_up(&raw, HTTP_GET, &got);
    CHECK_STR(got.data, "200 late|200 hello|200 hello|", "pipelined");
    (void)close(fd);
    finish(&w, &s);
}

static const struct {
    const char *what, *in;
    bool half; /* shutdown(), not close() */
} leaving[] = {
    {"while the handler works", "GET /later HTTP/1.1\r\n" HOST "\r\n", false},
    {"half, while the handler works", "GET /later HTTP/1.1\r\n" HOST "\r\n", true},
    {"with a request behind it", "GET /later HTTP/1.1\r\n" HOST "\r\n" NEXT, false},
    {"half, with a request behind it", "GET /later HTTP/1.1\r\n" HOST "\r\n" NEXT, true},
    {"inside a body", POST("/echo", "Content-Length: 5\r\n\r\nabc"), false},
    {"half, inside a body", POST("/echo", "Content-Length: 5\r\n\r\nabc"), true},
    {"inside a chunk", POST("/echo", "Transfer-Encoding: chunked\r\n\r\n5\r\nab"), false},
};

static void test_gone(void **state)
{
    (void)state;
    FOR_EACH(row, leaving)
    {
        struct world w;
        struct seen s;
        int fd;

        start(&w, &s);
        fd = world_connect(&w);
        client_say(fd, row->in);
        world_run(&w);
        CHECK(s.requests == 1 && s.gone == 0, "%s: gone too early", row->what);
        if (row->half)
            (void)shutdown(fd, SHUT_WR);
        else
            (void)close(fd);
        world_run(&w);
        CHECK(s.gone == 1 && s.requests == 1, "%s: %u gone", row->what, s.gone);
        CHECK(http_server_conns(w.server) == 0, "%s: it is still there", row->what);
        if (row->half)
            (void)close(fd);
        finish(&w, &s);
    }
}

/* Requests that are answered at once reach a client that has closed its half after them. */
static void test_half_closed(void **state)
{
    struct world w;
    struct seen s;
    autobuf raw = {0}, got = {0};
    int fd;

    (void)state;
    start(&w, &s);
    buf_init(&raw, 1u << 20);
    buf_init(&got, 1u << 20);
    fd = world_connect(&w);
    client_say(fd, NEXT NEXT);
    (void)shutdown(fd, SHUT_WR);
    world_run(&w);
    assert_true(client_read(fd, &raw));
    sum_up(&raw, HTTP_GET, &got);
    CHECK_STR(got.data, "200 hello|200 hello|", "half closed");
    (void)close(fd);
    finish(&w, &s);
}

static void test_drop(void **state)
{
    struct world w;
    struct seen s;
    autobuf raw = {0};
    int fd;

    (void)state;
    start(&w, &s);
    buf_init(&raw, 1u << 20);
    fd = world_connect(&w);
    client_say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    world_run(&w);
    http_drop(s.later);
    assert_int_equal(s.gone, 0); /* S4 */
    world_run(&w);
    assert_int_equal(s.gone, 1);
    assert_true(client_read(fd, &raw));
    assert_int_equal(raw.len, 0);
    (void)close(fd);
    finish(&w, &s);
}

static void test_free_with_open(void **state)
{
    struct world w;
    struct seen s;
    int fd, idle;

    (void)state;
    start(&w, &s);
    fd = world_connect(&w);
    idle = world_connect(&w);
    client_say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    world_run(&w);
    finish(&w, &s);
    assert_int_equal(s.gone, 1);
    (void)close(fd);
    (void)close(idle);
}

/* ---- slow ones ---- */

static void test_slow(void **state)
{
    static const struct {
        const char *what, *in, *more; /* `more` comes byte by byte, 5 ms each */
        const char *want;
        unsigned gone;
    } slow[] = {
        {"says nothing", "", "", "", 0},
        {"half a head", "GET /hel", "", "408! ", 0},
        {"a head in single bytes", "", "GET /hello HTTP/1.1\r\nHost: x.testxxxxxxx", "408! ", 0},
        {"nothing after an answer", NEXT, "", "200 hello|", 0},
        {"half a head after an answer", NEXT "GET", "", "200 hello|408! ", 0},
        {"half a body", POST("/echo", "Content-Length: 90\r\n\r\nabc"), "", "408! ", 1},
        {"a body in single bytes", POST("/echo", "Content-Length: 90\r\n\r\n"),
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "408! ", 1},
        {"half a body that nobody wants", POST("/ignore", "Content-Length: 90\r\n\r\nabc"), "",
         "200 ignored|", 0},
    };

    (void)state;
    FOR_EACH(row, slow)
    {
        autobuf raw = {0}, got = {0};
        struct world w;
        struct seen s;
        struct http_limits *l;
        int fd;

        start(&w, &s);
        l = http_server_limits(w.server);
        l->head_usec = l->body_usec = 60000;
        l->idle_usec = 80000;
        l->linger_usec = 20000;
        l->min_rate = 1000; /* a byte in 5 ms is a fifth of it */
        buf_init(&raw, 1u << 20);
        buf_init(&got, 1u << 20);
        buf_puts(&got, "");
        fd = world_connect(&w);
        client_say(fd, row->in);
        for (const char *c = row->more; *c; c++) {
            world_wait(&w, 5);
            client_send(fd, c, 1);
        }
        world_wait(&w, 150);
        CHECK(client_read(fd, &raw), "%s: it is still open", row->what);
        sum_up(&raw, HTTP_GET, &got);
        CHECK(strncmp(got.data, row->want, strlen(row->want)) == 0 &&
                  (row->want[0] || got.len == 0),
              "%s: '%s'", row->what, got.data);
        CHECK(s.gone == row->gone, "%s: %u gone", row->what, s.gone);
        CHECK(http_server_conns(w.server) == 0, "%s: it is still there", row->what);
        (void)close(fd);
        finish(&w, &s);
    }
}

/* The first head's time runs since the connection came, not since its first byte. */
static void test_first_head(void **state)
{
    struct world w;
    struct seen s;
    autobuf raw = {0};
    int fd;

    (void)state;
    start(&w, &s);
    buf_init(&raw, 1u << 20);
    http_server_limits(w.server)->head_usec = 60000;
    fd = world_connect(&w);
    world_wait(&w, 45);
    client_say(fd, "GET");
    world_wait(&w, 35);
    assert_true(client_read(fd, &raw));
    (void)close(fd);
    finish(&w, &s);
}

/* The time of a handler, and of a body that it holds, does not run against the client. */
static void test_no_haste(void **state)
{
    struct world w;
    struct seen s;
    struct http_limits *l;
    autobuf raw = {0}, got = {0};
    int fd;

    (void)state;
    start(&w, &s);
    buf_init(&raw, 1u << 20);
    buf_init(&got, 1u << 20);
    l = http_server_limits(w.server);
    l->head_usec = l->body_usec = l->write_usec = 40000;
    fd = world_connect(&w);
    client_say(fd, POST("/later", "Content-Length: 5\r\n\r\nab"));
    world_wait(&w, 60);
    assert_non_null(s.later);
    http_hold_body(s.later, true);
    assert_true(http_read_body(s.later, 100));
    world_wait(&w, 60);
    assert_int_equal(s.body.len, 0);
    http_hold_body(s.later, false);
    world_run(&w);
    assert_int_equal(s.body.len, 2);
    http_hold_body(s.later, true);
    world_wait(&w, 60);
    http_hold_body(s.later, false);
    client_send(fd, "cde", 3);
    world_wait(&w, 10);
    assert_false(client_read(fd, &raw));
    sum_up(&raw, HTTP_GET, &got);
    CHECK_STR(got.data, "200 abcde|", "held");
    (void)close(fd);
    finish(&w, &s);
}

/* ---- clients that do not take their answers ---- */

static int connect_small(struct world *w)
{
    int p[2], size = 4096;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p), 0);
    assert_int_equal(setsockopt(p[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
    assert_int_equal(http_server_adopt(w->server, p[1], NULL), 0);
    return p[0];
}

/* HT-31: told to stop, told to go on, and in the end everything is there. */
static void test_backpressure(void **state)
{
    struct world w;
    struct seen s;
    autobuf raw = {0}, got = {0};
    int fd;

    (void)state;
    start(&w, &s);
    buf_init(&raw, 4u << 20);
    buf_init(&got, 4u << 20);
    s.most = 1u << 20;
    fd = connect_small(&w);
    client_say(fd, "GET /push HTTP/1.1\r\n" HOST "\r\n" NEXT);
    world_run(&w);
    CHECK(s.stops == 1 && s.pushed <= LIMIT_HTTP_SOFT + 16384, "%u stops, %zu pushed", s.stops,
          s.pushed);
    for (size_t before = 1; before != raw.len;) {
        before = raw.len;
        assert_false(client_read(fd, &raw));
        world_run(&w);
    }
    assert_true(s.writable > 3 && s.ended == 2);
    sum_up(&raw, HTTP_GET, &got);
    assert_int_equal(got.len, 4 + (1u << 20) + strlen("|200 hello|"));
    (void)close(fd);
    finish(&w, &s);
}

static void test_stalled(void **state)
{
    struct world w;
    struct seen s;
    int fd;

    (void)state;
    start(&w, &s);
    http_server_limits(w.server)->write_usec = 40000;
    s.most = 1u << 20;
    fd = connect_small(&w);
    client_say(fd, "GET /push HTTP/1.1\r\n" HOST "\r\n");
    world_wait(&w, 100);
    assert_int_equal(s.gone, 1);
    assert_int_equal(http_server_conns(w.server), 0);
    (void)close(fd);
    finish(&w, &s);
}

/* Who does not listen to "stop" loses the connection, and the memory stays bounded. */
static void test_hard_limit(void **state)
{
    static const char block[65536];
    struct world w;
    struct seen s;
    int fd, n = 0;

    (void)state;
    start(&w, &s);
    fd = connect_small(&w);
    client_say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    world_run(&w);
    http_reply_start(s.later, 200, NULL, 0);
    while (n < 100 && s.gone == 0) {
        (void)http_reply_part(s.later, block, sizeof(block));
        n++;
        if (n > 20)
            world_run(&w);
    }
    assert_int_equal(s.gone, 1);
    assert_int_equal(n, 21);
    (void)close(fd);
    finish(&w, &s);
}

/* Requests of a client that takes no answers are left in the socket. */
static void test_greedy_pipeline(void **state)
{
    struct world w;
    struct seen s;
    int fd;
    ssize_t n = 0;

    (void)state;
    start(&w, &s);
    fd = connect_small(&w);
    for (int i = 0; i < 1000; i++) {
        for (int k = 0; k < 100 && n >= 0; k++)
            n = send(fd, NEXT, strlen(NEXT), MSG_NOSIGNAL);
        n = 0;
        world_run(&w);
    }
    CHECK(s.requests < 2000, "%u requests were answered", s.requests);
    (void)close(fd);
    finish(&w, &s);
}

/* And once it takes them, all are answered. */
static void test_patient_pipeline(void **state)
{
    struct world w;
    struct seen s;
    autobuf raw = {0}, in = {0};
    int fd;

    (void)state;
    start(&w, &s);
    buf_init(&in, 1u << 20);
    buf_init(&raw, 1u << 20);
    fd = connect_small(&w);
    for (int i = 0; i < 400; i++) /* 100 KiB of answers */
        buf_puts(&in, NEXT);
    client_send(fd, in.data, in.len);
    world_run(&w);
    world_run(&w);
    CHECK(s.requests < 400, "%u were answered", s.requests);
    for (size_t before = 1; before != raw.len;) {
        before = raw.len;
        assert_false(client_read(fd, &raw));
        world_run(&w);
    }
    assert_int_equal(s.requests, 400);
    (void)close(fd);
    finish(&w, &s);
}

/* A stream of which the test says what it takes. */
struct toy {
    uint64_t taken;
    bool waits;
    unsigned ones;
    bool is_open; /* for write_when() */
};

/* Always leaves a byte, until no other comes. */
static ssize_t write_most(struct http_stream *s, const void *data, size_t len)
{
    struct toy *t = s->state;

    (void)data;
    t->waits = !t->waits;
    t->ones = len == 1 ? t->ones + 1 : 0;
    if (!t->waits || (len == 1 && t->ones < 5))
        return -EAGAIN;
    len -= len > 1;
    t->taken += len;
    return (ssize_t)len;
}

/* Nothing, and then all at once. */
static ssize_t write_when(struct http_stream *s, const void *data, size_t len)
{
    struct toy *t = s->state;

    (void)data;
    return t->is_open ? (ssize_t)len : -EAGAIN;
}

/* For the one byte that really came: many requests. */
static ssize_t read_many(struct http_stream *s, void *data, size_t size)
{
    size_t n = 0;

    if (recv(s->fd, data, 1, MSG_DONTWAIT) != 1)
        return -EAGAIN;
    for (; n < 400 * strlen(NEXT); n += strlen(NEXT))
        memcpy((char *)data + n, NEXT, strlen(NEXT));
    assert_true(n <= size);
    return (ssize_t)n;
}

static ssize_t read_once(struct http_stream *s, void *data, size_t size)
{
    static const char text[] = "GET /push HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n";

    (void)s;
    assert_true(size > sizeof(text));
    memcpy(data, text, sizeof(text) - 1);
    return sizeof(text) - 1;
}

static int open_toy(struct http_stream *s, void *context)
{
    s->state = context;
    return 0;
}

static void close_toy(struct http_stream *s)
{
    (void)s;
}

/* What was sent does not stay, however long an answer goes on. */
static void test_endless(void **state)
{
    static const struct http_stream_ops most = {.open = open_toy,
                                                .read = read_once,
                                                .write = write_most,
                                                .finish = close_toy,
                                                .close = close_toy};
    struct toy toy = {0};
    const struct http_listen how = {.stream = &most, .context = &toy};
    struct world w;
    struct seen s;

    (void)state;
    start(&w, &s);
    s.most = LIMIT_HTTP_WHOLE + (16u << 20);
    assert_int_equal(http_server_adopt(w.server, eventfd(1, EFD_CLOEXEC), &how), 0);
    for (int i = 0; i < 10000 && http_server_conns(w.server); i++)
        world_run(&w);
    assert_int_equal(s.ended, 1);
    assert_true(toy.taken > s.most);
    finish(&w, &s);
}

/* Room that comes all at once wakes those that wait for it. */
static void test_sudden_room(void **state)
{
    static const struct http_stream_ops when = {.open = open_toy,
                                                .read = read_many,
                                                .write = write_when,
                                                .finish = close_toy,
                                                .close = close_toy};
    struct toy toy = {0};
    const struct http_listen how = {.stream = &when, .context = &toy};
    struct world w;
    struct seen s;
    int p[2];

    (void)state;
    start(&w, &s);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p), 0);
    assert_int_equal(http_server_adopt(w.server, p[1], &how), 0);
    client_say(p[0], "x");
    world_run(&w);
    world_run(&w);
    CHECK(s.requests > 200 && s.requests < 400, "%u were answered", s.requests);
    toy.is_open = true;
    world_run(&w);
    world_run(&w);
    assert_int_equal(s.requests, 400);
    (void)close(p[0]);
    finish(&w, &s);
}

/* ---- who may come in ---- */

static int connect_to(uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void check_hello(struct world *w, int fd, const char *want)
{
    autobuf raw = {0}, got = {0};

    buf_init(&raw, 1u << 20);
    buf_init(&got, 1u << 20);
    buf_puts(&got, "");
    client_say(fd, NEXT);
    world_wait(w, 10);
    (void)client_read(fd, &raw);
    sum_up(&raw, HTTP_GET, &got);
    CHECK(strncmp(got.data, want, strlen(want)) == 0, "'%s', want '%s'", got.data, want);
}

/* What a client sends to nobody must not make a reset of its answer. */
static void test_linger(void **state)
{
    static char body[1u << 20];
    struct error err = {0};
    autobuf raw = {0}, got = {0};
    struct world w;
    struct seen s;
    uint16_t port = 0;
    ssize_t n;
    int fd;

    (void)state;
    start(&w, &s);
    http_server_limits(w.server)->linger_usec = 60000000;
    buf_init(&raw, 1u << 20);
    buf_init(&got, 1u << 20);
    CHECK_OK(http_listen_tcp(w.server, "127.0.0.1", 0, NULL, &port, &err), err);
    fd = connect_to(port);
    client_say(fd, POST("/ignore", "Content-Length: 99999999\r\n\r\n"));
    n = send(fd, body, 100000, MSG_NOSIGNAL);
    assert_true(n > 0);
    world_wait(&w, 20);
    client_say(fd, "more");
    world_wait(&w, 20);
    assert_true(client_read(fd, &raw));
    assert_int_equal(recv(fd, body, 1, 0), 0); /* an end, no reset */
    sum_up(&raw, HTTP_GET, &got);
    CHECK_STR(got.data, "200! ignored|", "lingering");
    assert_int_equal(http_server_conns(w.server), 1);
    for (int i = 0; i < 200 && http_server_conns(w.server); i++) { /* not for ever */
        (void)!send(fd, body, 65536, MSG_NOSIGNAL);
        world_wait(&w, 2);
    }
    assert_int_equal(http_server_conns(w.server), 0);
    (void)close(fd);
    finish(&w, &s);
}

/* Many requests in one read do not keep the others waiting. */
static void test_fair(void **state)
{
    struct world w;
    struct seen s;
    int greedy, fd;

    (void)state;
    start(&w, &s);
    greedy = world_connect(&w);
    fd = world_connect(&w);
    for (int i = 0; i < 100; i++)
        client_say(greedy, NEXT);
    client_say(fd, "GET /204 HTTP/1.1\r\n" HOST "\r\n");
    world_run(&w);
    assert_int_equal(s.requests, 101);
    CHECK(s.at_204 <= LIMIT_HTTP_PIPELINE + 1, "it was the %uth", s.at_204);
    (void)close(greedy);
    (void)close(fd);
    finish(&w, &s);
}

static uint64_t cpu_usec(void)
{
    struct timespec t;

    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Bytes that nobody reads yet do not keep the loop busy. */
static void test_calm(void **state)
{
    struct world w;
    struct seen s;
    uint64_t before;
    int fd;

    (void)state;
    start(&w, &s);
    fd = world_connect(&w);
    client_say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    world_run(&w);
    client_say(fd, NEXT);
    before = cpu_usec();
    world_wait(&w, 100);
    CHECK(cpu_usec() - before < 30000, "%llu us of 100 ms",
          (unsigned long long)(cpu_usec() - before));
    (void)close(fd);
    finish(&w, &s);
}

static void test_listeners(void **state)
{
    const struct temp *t = *state;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const char *path = temp_path(t, "sock");
    struct error err = {0};
    struct world w;
    struct seen s;
    uint16_t port = 0;
    struct stat st;
    int fd, other;

    start(&w, &s);
    CHECK_OK(http_listen_tcp(w.server, "127.0.0.1", 0, NULL, &port, &err), err);
    CHECK_OK(http_listen_unix(w.server, path, 0600, NULL, &err), err);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    fd = connect_to(port);
    check_hello(&w, fd, "200 hello|");
    (void)close(fd);
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    check_hello(&w, fd, "200 hello|");
    (void)close(fd);

    CHECK_ERR(http_listen_unix(w.server, path, 0600, NULL, &err), err, ERR_SYS, "in use");
    temp_write(t, "file", "x", 1);
    CHECK_ERR(http_listen_unix(w.server, temp_path(t, "file"), 0600, NULL, &err), err, ERR_SYS,
              "exists");
    finish(&w, &s);
    /* what a server that is gone has left is replaced */
    start(&w, &s);
    CHECK_OK(http_listen_unix(w.server, path, 0600, NULL, &err), err);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_ERR(http_listen_fd(w.server, fd, NULL, &err), err, ERR_INVALID, "does not listen");
    fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(listen(fd, 5), 0); /* at any address */
    other = dup(fd);
    CHECK_ERR(http_listen_fd(w.server, fd, NULL, &err), err, ERR_DENIED, "TLS");
    CHECK_OK(http_listen_fd(w.server, other, &(struct http_listen){.is_secret = true}, &err), err);
    finish(&w, &s);
}

/* HT-38: in the clear only on this host. */
static void test_plain_is_local(void **state)
{
    static const char *const beyond[] = {"0.0.0.0", "::", "10.1.2.3", "192.168.0.1"};
    struct error err = {0};
    struct world w;
    struct seen s;

    (void)state;
    start(&w, &s);
    FOR_EACH(address, beyond)
    CHECK_ERR(http_listen_tcp(w.server, *address, 0, NULL, NULL, &err), err, ERR_DENIED, "TLS");
    CHECK_ERR(http_listen_tcp(w.server, "localhost", 0, NULL, NULL, &err), err, ERR_INVALID,
              "address");
    finish(&w, &s);
}

/* HT-13: those that wait make room, the longest first; those at work stay. */
static void test_full(void **state)
{
    struct error err = {0};
    struct world w;
    struct seen s;
    struct http_limits *l;
    autobuf raw = {0};
    uint16_t port = 0;
    int fds[6], busy, good, other;

    (void)state;
    start(&w, &s);
    buf_init(&raw, 1u << 20);
    l = http_server_limits(w.server);
    l->conns = 6;
    l->share = 4;
    CHECK_OK(http_listen_tcp(w.server, "127.0.0.1", 0, NULL, &port, &err), err);
    other = world_connect(&w); /* waits longest, but is none of them */
    busy = connect_to(port);
    client_say(busy, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    world_wait(&w, 5);
    for (int i = 0; i < 6; i++) {
        fds[i] = connect_to(port);
        client_say(fds[i], "GET /");
        world_wait(&w, 5);
    }
    assert_int_equal(http_server_conns(w.server), 5); /* the share of one address, and the other */
    check_hello(&w, other, "200 hello|");
    (void)close(other);
    world_wait(&w, 5);
    assert_int_equal(http_server_conns(w.server), 4);
    assert_true(client_read(fds[0], &raw) && client_read(fds[2], &raw));
    assert_false(client_read(fds[3], &raw) || client_read(fds[5], &raw) || client_read(busy, &raw));
    good = connect_to(port);
    check_hello(&w, good, "200 hello|");
    assert_non_null(s.later);

    /* others are not touched by that, and come in as long as there is room at all */
    l->conns = 4;
    l->share = 3;
    fds[0] = (close(fds[0]), world_connect(&w));
    check_hello(&w, fds[0], "200 hello|");
    assert_int_equal(http_server_conns(w.server), 4);
    assert_false(client_read(busy, &raw));

    /* everybody at work: the next is told so */
    l->conns = 1;
    l->share = 1;
    (void)close(good);
    for (int i = 0; i < 6; i++)
        (void)close(fds[i]);
    world_wait(&w, 10);
    assert_int_equal(http_server_conns(w.server), 1);
    good = connect_to(port);
    check_hello(&w, good,
                "503! {\"error\":{\"code\":\"unavailable\",\"message\":\"the server is busy\"}}|");
    (void)close(good);
    (void)close(busy);
    finish(&w, &s);
}

/* Without descriptors the listener pauses, and does not spin. */
static void test_no_descriptors(void **state)
{
    struct error err = {0};
    struct rlimit old, few;
    struct world w;
    struct seen s;
    uint16_t port = 0;
    uint64_t before;
    int fd;

    (void)state;
    start(&w, &s);
    CHECK_OK(http_listen_tcp(w.server, "127.0.0.1", 0, NULL, &port, &err), err);
    fd = connect_to(port);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = old;
    few.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    before = cpu_usec();
    world_wait(&w, 80);
    before = cpu_usec() - before;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    CHECK(before < 30000, "%llu us of 80 ms", (unsigned long long)before);
    assert_int_equal(http_server_conns(w.server), 0);
    world_wait(&w, 60);
    check_hello(&w, fd, "200 hello|");
    (void)close(fd);
    finish(&w, &s);
}

/* ---- the end ---- */

static unsigned drained;

static void on_drained(struct http_server *s)
{
    assert_int_equal(http_server_conns(s), 0);
    drained++;
}

static void test_drain(void **state)
{
    struct http_server_ops with = ops;
    autobuf raw = {0}, got = {0};
    struct world w;
    struct seen s = {0};
    struct http_exchange *x;
    int fd, idle, begun;

    (void)state;
    with.on_drained = on_drained;
    drained = 0;
    world_init(&w, &with);
    w.user = &s;
    buf_init(&s.body, 1u << 20);
    buf_init(&raw, 1u << 20);
    buf_init(&got, 1u << 20);
    fd = world_connect(&w);
    idle = world_connect(&w);
    begun = world_connect(&w);
    client_say(begun, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    world_run(&w);
    x = s.later;
    http_reply_start(x, 200, NULL, 0);
    client_say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n" NEXT);
    world_run(&w);
    http_server_drain(w.server);
    world_run(&w);
    assert_true(client_read(idle, &raw));
    assert_int_equal(drained, 0);
    s.ended++;
    http_reply_end(x); /* it did not say "close", and is closed all the same */
    world_run(&w);
    assert_true(client_read(begun, &raw));
    (void)close(begun);
    buf_clear(&raw);
    s.ended++;
    http_reply(s.later, 200, NULL, 0, "last", 4);
    world_run(&w);
    (void)shutdown(fd, SHUT_WR);
    world_run(&w);
    assert_true(client_read(fd, &raw));
    sum_up(&raw, HTTP_GET, &got);
    CHECK_STR(got.data, "200! last|", "drained");
    assert_int_equal(drained, 1);
    (void)close(fd);
    (void)close(idle);
    finish(&w, &s);
}

static void test_no_leaks(void **state)
{
    size_t before = open_fds();
    struct world w;
    struct seen s;

    (void)state;
    start(&w, &s);
    for (int i = 0; i < 50; i++) {
        int fd = world_connect(&w);

        client_say(fd, NEXT "GET /later HTTP/1.1\r\n" HOST "\r\n");
        world_run(&w);
        (void)close(fd);
    }
    world_run(&w);
    finish(&w, &s);
    assert_int_equal(open_fds(), before);
}

static const struct CMUnitTest claims[] = {
    CLAIM("bytes in, bytes out, in any pieces", test_rows),
    CLAIM("every answer has its security headers, and no banner", test_exact),
    CLAIM("heads beyond the limits are 414 and 431", test_large_heads),
    CLAIM("a path has one spelling", test_paths),
    CLAIM("an answer may come later, and those behind it wait", test_later),
    CLAIM("a client that goes away is told to the handler, once", test_gone),
    CLAIM("a client that has closed its half gets its answers", test_half_closed),
    CLAIM("a dropped exchange ends from the loop", test_drop),
    CLAIM("a server that goes tells the handler", test_free_with_open),
    CLAIM("slow heads, bodies and idle connections are closed", test_slow),
    CLAIM("a connection has its time for the first head", test_first_head),
    CLAIM("a handler may take its time", test_no_haste),
    CLAIM("a slow reader stops the handler, which then goes on", test_backpressure),
    CLAIM("a reader that stalls is dropped", test_stalled),
    CLAIM("output has a limit", test_hard_limit),
    CLAIM("a client that takes no answers is not read from", test_greedy_pipeline),
    CLAIM("a client that takes its answers late gets all", test_patient_pipeline),
    CLAIM("room that comes at once wakes who waits for it", test_sudden_room),
    CLAIM("an answer in parts has no end that memory sets", test_endless),
    CLAIM("a client that sends on gets its answer and no reset", test_linger),
    CLAIM("a greedy client does not keep others waiting", test_fair),
    CLAIM("bytes that wait cost nothing", test_calm),
    CLAIM_IN_TEMP("listeners: TCP, unix, inherited", test_listeners),
    CLAIM("plain HTTP stays on this host", test_plain_is_local),
    CLAIM("a full server makes room for who has something to ask", test_full),
    CLAIM("a listener without descriptors waits", test_no_descriptors),
    CLAIM("a server that drains answers what it has", test_drain),
    CLAIM("no descriptor is left", test_no_leaks),
};

int main(void)
{
    return RUN_CLAIMS("http/server", claims);
}
