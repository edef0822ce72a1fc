/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "unit/gateway/front_world.h"

/* ---- credentials ---- */

/* A path that the route matches. */
static void make_path(const struct route *r, char *ret, size_t size)
{
    const char *open = strchr(r->path, '{');
    char name[32];

    if (!route_arg(r, name, sizeof(name))) {
        (void)snprintf(ret, size, "%s", r->path);
        return;
    }
    (void)snprintf(ret, size, "%.*s%s%s", (int)(open - r->path), r->path,
                   strcmp(name, "call") == 0 ? CALL_A : "main", strchr(open, '}') + 1);
}

static bool is_open(const struct route *r, const char *method)
{
    if (!(r->flags & ROUTE_OPEN))
        return false;
    return strcmp(method, http_method_name(r->method)) == 0 ||
           (strcmp(method, "HEAD") == 0 && (r->flags & ROUTE_HEAD));
}

/* HT-01 */
static void test_every_route(void **state)
{
    static const char *const methods[] = {"GET",    "POST",    "PUT", "PATCH",
                                          "DELETE", "OPTIONS", "HEAD"};
    static const char *const upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                                       "Sec-WebSocket-Version: 13\r\n"
                                       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    struct back_world b;
    unsigned n = 0, n_open = 0;

    (void)state;
    back_begin(&b);
    for (size_t i = 0; i < n_routes; i++)
        for (size_t k = 0; k < 2 * COUNT(methods); k++) {
            const char *method = methods[k / 2];
            char path[256], text[1024];
            char *got;

            make_path(&routes[i], path, sizeof(path));
            (void)snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\n" HOST "%s\r\n", method, path,
                           k % 2 ? upgrade : "");
            got = ask_raw(&b, text);
            if (is_open(&routes[i], method)) {
                n_open += k % 2;
                CHECK(status_of(got) != 401, "%s %s: %s", method, path, got);
            } else {
                CHECK(status_of(got) == 401, "%s %s: %s", method, path, got);
                CHECK(strstr(got, "WWW-Authenticate: Bearer\r\n"), "%s %s: %s", method, path, got);
                n++;
            }
            CHECK(strstr(got, "X-Request-Id: "), "%s %s: no id", method, path);
            free(got);
        }
    assert_int_equal(b.n_asked, 0);
    assert_int_equal(n_open, 9); /* the page and its files, healthz: GET, HEAD; login */
    print_message("# %u requests without a credential, %zu routes\n", n, n_routes);
    back_end(&b);
}

static void test_unknown_paths(void **state)
{
    struct back_world b;

    (void)state;
    back_begin(&b);
    CHECK_GET(&b, 401, "unauthorized", "GET /nowhere HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(b.n_asked, 0);
    CHECK_GET(&b, 401, "unauthorized",
              "GET /nowhere HTTP/1.1\r\n" HOST "Authorization: Bearer " TOKEN_B "\r\n\r\n");
    CHECK_GET(&b, 404, "not_found", "GET /nowhere HTTP/1.1\r\n" HOST AUTH "\r\n");
    CHECK_GET(&b, 404, "not_found", "OPTIONS * HTTP/1.1\r\n" HOST AUTH "\r\n");
    CHECK_GET(&b, 405, "Allow: GET, DELETE\r\n",
              "PUT /v1/calls/" CALL_A " HTTP/1.1\r\n" HOST AUTH "\r\n");
    CHECK_GET(&b, 405, "Allow: POST\r\n", "GET /mcp HTTP/1.1\r\n" HOST AUTH "\r\n");
    CHECK_GET(&b, 405, "Allow: POST\r\n", "DELETE /mcp HTTP/1.1\r\n" HOST AUTH "\r\n");
    CHECK_GET(&b, 405, "Allow: GET, HEAD\r\n", "POST /healthz HTTP/1.1\r\n" HOST AUTH "\r\n");
    back_end(&b);
}

/* HT-02 */
static void test_token_forms(void **state)
{
    static const struct {
        const char *fields;
        unsigned status;
    } rows[] = {
        {"Authorization: Bearer " TOKEN_A "\r\n", 200},
        {"Authorization: bearer " TOKEN_A "\r\n", 200},
        {"Authorization:\r\n", 401},
        {"Authorization: Bearer\r\n", 401},
        {"Authorization: Bearer \r\n", 401},
        {"Authorization: bearer x\r\n", 401},
        {"Authorization: Basic " TOKEN_A "\r\n", 401},
        {"Authorization: " TOKEN_A "\r\n", 401},
        {"Authorization: Bearer  " TOKEN_A "\r\n", 401},
        {"Authorization: Bearer " TOKEN_A "x\r\n", 401},
        {"Authorization: Bearer " TOKEN_A ", Bearer " TOKEN_A "\r\n", 401},
        {"Authorization: Bearer " TOKEN_B "\r\n", 401},
        {"Authorization: Bearer CDN_" TOKEN_ID_A "_" HEX64 "\r\n", 401},
        {"Authorization: Bearer \xc3\xa9\r\n", 401},
        {AUTH AUTH, 400},
        {AUTH "Cookie: clawden=" COOKIE "\r\n", 400},
        {"Cookie: clawden=" COOKIE "\r\n", 200},
        {"Cookie: a=b; clawden=" COOKIE "; c=d\r\n", 200},
        {"Cookie: clawden=" TOKEN_A "\r\n", 401},
        {"Cookie: xclawden=" COOKIE "\r\n", 401},
        {"Cookie: clawden=\r\n", 401},
        {"Cookie: clawden=a b\r\n", 401},
        {"Cookie: clawden=" COOKIE "; clawden=" COOKIE "\r\n", 400},
        {"Cookie: clawden=" COOKIE "\r\nCookie: clawden=x\r\n", 400},
        {"X-Token: " TOKEN_A "\r\nProxy-Authorization: Bearer " TOKEN_A "\r\n", 401},
    };
    struct back_world b;

    (void)state;
    back_begin(&b);
    FOR_EACH(row, rows)
    {
        char text[2048];
        char *got;

        (void)snprintf(text, sizeof(text), "GET /v1/me HTTP/1.1\r\n" HOST "%s\r\n", row->fields);
        got = ask_raw(&b, text);
        CHECK(status_of(got) == row->status, "'%s': got '%.60s'", row->fields, got);
        free(got);
    }
    CHECK_GET(&b, 401, "", "GET /v1/me?token=" TOKEN_A " HTTP/1.1\r\n" HOST "\r\n");
    CHECK_GET(&b, 400, "'token'", "GET /v1/me?token=" TOKEN_A " HTTP/1.1\r\n" HOST AUTH "\r\n");
    CHECK_POST(&b, 401, "", "/v1/call", JSON_TYPE, "{\"tool\":\"exec\",\"token\":\"" TOKEN_A "\"}");
    CHECK_GET(&b, 400, "", "GET /v1/me HTTP/1.1\r\n" HOST "Authorization: Bearer a\x01\r\n\r\n");
    back_end(&b);
}

static void test_long_token(void **state)
{
    struct buf text = {.max = 2u << 20};
    struct back_world b;
    char *got;

    (void)state;
    back_begin(&b);
    buf_puts(&text, "GET /v1/me HTTP/1.1\r\n" HOST "Authorization: Bearer ");
    for (int i = 0; i < 1 << 20; i++)
        buf_puts(&text, "a");
    buf_puts(&text, "\r\n\r\n");
    got = ask_raw_bytes(&b, text.data, text.len);
    assert_int_equal(status_of(got), 431);
    free(got);
    buf_done(&text);
    back_end(&b);
}

/* HT-06: identity is the token's; what else a client says of itself is not known. */
static void test_self_made_rights(void **state)
{
    struct back_world b;

    (void)state;
    back_begin(&b);
    CHECK_GET(&b, 200, "fine",
              "GET /v1/me HTTP/1.1\r\n" HOST AUTH "X-User: root\r\nX-Forwarded-User: a\r\n"
              "X-Role: admin\r\n\r\n");
    CHECK_STR(asked(&b, "params"), "{}", "params");
    assert_int_equal(json_object_size(b.last), 5); /* op params token peer request */
    CHECK_POST(&b, 400, "'owner'", "/v1/call", AUTH JSON_TYPE,
               "{\"tool\":\"exec\",\"owner\":true}");
    CHECK_POST(&b, 400, "'scope'", "/v1/call", AUTH JSON_TYPE,
               "{\"tool\":\"exec\",\"scope\":\"admin\"}");
    CHECK_GET(&b, 400, "'role'", "GET /v1/calls?role=admin HTTP/1.1\r\n" HOST AUTH "\r\n");
    back_end(&b);
}

/* ---- hosts and origins ---- */

static void test_hosts(void **state)
{
    static const struct {
        const char *host;
        unsigned status;
    } rows[] = {
        {"localhost:18789", 200}, {"LOCALHOST:18789", 200},
        {"127.0.0.1:18789", 200}, {"[::1]:18789", 200},
        {"any.test", 200},        {"any.test:1", 200},
        {"localhost", 421},       {"localhost:80", 421},
        {"evil.test", 421},       {"localhost.evil.test:18789", 421},
        {"127.0.0.1", 421},       {"[::1]", 421},
        {"xany.test", 421},       {"any.test.", 421},
    };
    struct back_world b;

    (void)state;
    back_begin(&b);
    FOR_EACH(row, rows)
    {
        char text[512];
        char *got;

        (void)snprintf(text, sizeof(text), "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", row->host);
        got = ask_raw(&b, text);
        CHECK(status_of(got) == row->status, "%s: %s", row->host, got);
        free(got);
    }
    CHECK_GET(&b, 421, "misdirected", "GET /healthz HTTP/1.0\r\n\r\n");
    back_end(&b);
}

/* HT-09, HT-11 */
static void test_origins(void **state)
{
    static const struct {
        const char *origin;
        unsigned status;
    } rows[] = {
        {"http://localhost:18789", 200},
        {"https://localhost:18789", 200},
        {"https://friend.test", 200},
        {"https://evil.test", 403},
        {"null", 403},
        {"http://localhost.evil.test", 403},
        {"http://127.0.0.1:18789", 403},
        {"http://localhost:1", 403},
        {"http://localhost", 403},
        {"ws://localhost:18789", 403},
        {"http://localhost:18789/", 403},
        {"localhost:18789", 403},
        {"http://x@localhost:18789", 403},
        {"", 403},
    };
    struct back_world b;

    (void)state;
    back_begin(&b);
    FOR_EACH(row, rows)
    {
        static const char *const shapes[] = {
            "POST /v1/call HTTP/1.1\r\n" HOST AUTH JSON_TYPE
            "Origin: %s\r\nContent-Length: 15\r\n\r\n"
            "{\"tool\":\"exec\"}",
            "GET /v1/calls/" CALL_A "/events HTTP/1.1\r\n" HOST AUTH "Origin: %s\r\n\r\n",
            "GET /healthz HTTP/1.1\r\n" HOST "Origin: %s\r\n\r\n",
        };

        for (size_t i = 0; i < COUNT(shapes); i++) {
            char text[1024];
            char *got;

            (void)snprintf(text, sizeof(text), shapes[i], row->origin);
            got = ask_raw(&b, text);
            CHECK(status_of(got) == row->status, "'%s' in %zu: %s", row->origin, i, got);
            CHECK(!strcasestr(got, "Access-Control"), "'%s': %s", row->origin, got);
            free(got);
        }
    }
    back_end(&b);
}

static void test_cookies_of_other_pages(void **state)
{
#define WITH_COOKIE "Cookie: clawden=" COOKIE "\r\n"
#define WS                                                                         \
    "GET /v1/ws HTTP/1.1\r\n" HOST "Upgrade: websocket\r\nConnection: Upgrade\r\n" \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    struct back_world b;

    (void)state;
    back_begin(&b);
    CHECK_POST(&b, 403, "Origin", "/v1/call", WITH_COOKIE JSON_TYPE, "{\"tool\":\"exec\"}");
    CHECK_POST(&b, 403, "Origin", "/v1/call",
               WITH_COOKIE JSON_TYPE "Origin: https://friend.test\r\n", "{\"tool\":\"exec\"}");
    CHECK_POST(&b, 200, "stdout", "/v1/call",
               WITH_COOKIE JSON_TYPE "Origin: http://localhost:18789\r\n", "{\"tool\":\"exec\"}");
    CHECK_STR(asked(&b, "cookie"), "\"" COOKIE "\"", "cookie");
    CHECK_GET(&b, 403, "Origin", "DELETE /v1/sessions/main HTTP/1.1\r\n" HOST WITH_COOKIE "\r\n");
    CHECK_GET(&b, 403, "Origin", WS WITH_COOKIE "\r\n");
    CHECK_GET(&b, 403, "Origin", WS WITH_COOKIE "Origin: https://evil.test\r\n\r\n");
    CHECK_GET(&b, 101, "", WS WITH_COOKIE "Origin: http://localhost:18789\r\n\r\n");
    CHECK_GET(&b, 403, "Origin", WS AUTH "Origin: https://evil.test\r\n\r\n");
    CHECK_GET(&b, 401, "", WS "Authorization: Bearer " TOKEN_B "\r\n\r\n");
    back_end(&b);
}

/* ---- heads and bodies ---- */

/* HT-10 */
static void test_types(void **state)
{
    static const char *const rows[] = {"",
                                       "Content-Type: text/plain\r\n",
                                       "Content-Type: application/x-www-form-urlencoded\r\n",
                                       "Content-Type: multipart/form-data; boundary=x\r\n",
                                       "Content-Type: application/jsonx\r\n",
                                       "Content-Type: text/plain; a=application/json\r\n",
                                       "Content-Type:\r\n"};
    struct back_world b;

    (void)state;
    back_begin(&b);
    FOR_EACH(row, rows)
    {
        char fields[512];

        (void)snprintf(fields, sizeof(fields), AUTH "%s", *row);
        CHECK_POST(&b, 415, "Content-Type", "/v1/call", fields, "{\"tool\":\"exec\"}");
        CHECK_POST(&b, 415, "Content-Type", "/mcp", fields, "{}");
        CHECK_POST(&b, 415, "Content-Type", "/v1/login", *row, "{\"code\":\"x\"}");
    }
    CHECK_POST(&b, 200, "stdout", "/v1/call",
               AUTH "Content-Type: Application/JSON; charset=utf-8\r\n", "{\"tool\":\"exec\"}");
    back_end(&b);
}

/* HT-15, HT-19, HT-21 */
static void test_heads(void **state)
{
    static const char *const rows[] = {"GET /healthz\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                                       "\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
                                       "SSH-2.0-OpenSSH_9.6\r\n", "\x80\x80\x80\x80\r\n\r\n"};
    struct buf text = {.max = 1u << 20};
    struct back_world b;
    char *got;

    (void)state;
    back_begin(&b);
    FOR_EACH(row, rows)
    {
        got = ask_raw(&b, *row);
        CHECK(status_of(got) >= 400 && status_of(got) < 506, "'%s': %s", *row, got);
        free(got);
    }
    buf_puts(&text, "GET /healthz HTTP/1.1\r\n" HOST);
    for (int i = 0; i < 100; i++)
        buf_printf(&text, "X-%d: y\r\n", i);
    buf_puts(&text, "\r\n");
    CHECK_GET(&b, 431, "", text.data);
    buf_clear(&text);
    buf_puts(&text, "GET /");
    for (int i = 0; i < 9000; i++)
        buf_puts(&text, "a");
    buf_puts(&text, " HTTP/1.1\r\n" HOST "\r\n");
    CHECK_GET(&b, 414, "", text.data);
    CHECK_GET(&b, 417, "",
              "POST /v1/call HTTP/1.1\r\n" HOST AUTH JSON_TYPE
              "Expect: x\r\nContent-Length: 2\r\n\r\n");
    assert_int_equal(b.n_asked, 0);
    /* No 100 to who is refused: without a credential, and with a wrong one. */
    CHECK_GET(&b, 401, "",
              "POST /v1/call HTTP/1.1\r\n" HOST JSON_TYPE
              "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    CHECK_GET(&b, 401, "",
              "POST /v1/call HTTP/1.1\r\n" HOST JSON_TYPE "Authorization: Bearer " TOKEN_B
              "\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    CHECK_GET(&b, 100, "",
              "POST /v1/call HTTP/1.1\r\n" HOST JSON_TYPE AUTH
              "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    buf_done(&text);
    back_end(&b);
}

/* HT-22, HT-23, HT-25, HT-26 */
static void test_bodies(void **state)
{
    static const struct {
        const char *body, *part;
    } rows[] = {
        {"", "JSON"},
        {"[]", "object"},
        {"null", "JSON"},
        {"{\"tool\":\"exec\"} x", "JSON"},
        {"{\"tool\":\"exec\",\"tool\":\"ls\"}", "duplicate"},
        {"{\"tool\":\"exec\",\"t\\u006fol\":\"ls\"}", "duplicate"},
        {"{\"tool\":\"exec\",\"arguments\":{\"a\":1,\"a\":2}}", "duplicate"},
        {"{\"tool\":\"\xff\"}", "JSON"},
        {"{\"tool\":\"\xc0\xaf\"}", "JSON"},
        {"{\"tool\":\"\\ud800\"}", "JSON"},
        {"\xef\xbb\xbf{\"tool\":\"exec\"}", "JSON"},
        {"{\"tool\":\"a\\u0000b\"}", "JSON"},
        {"{\"to\\u0000ol\":\"x\"}", "JSON"},
        {"{}", "'tool' is missing"},
        {"{\"tool\":null}", "'tool' is not a short string"},
        {"{\"tool\":\"\"}", "'tool'"},
        {"{\"tool\":7}", "'tool'"},
        {"{\"tool\":\"exec\",\"arguments\":[]}", "'arguments' is not an object"},
        {"{\"tool\":\"exec\",\"stream\":1}", "'stream' is not true or false"},
        {"{\"tool\":\"exec\",\"sesion\":\"x\"}", "'sesion' is not known"},
        {"{\"tool\":\"exec\",\"key\":\"x\"}", "'key' is not known"},
        {"{\"tool\":\"exec\",\"arguments\":{\"a\":1e999}}", "JSON"},
        {"{'tool':'exec'}", "JSON"},
        {"{\"tool\":\"exec\",}", "JSON"},
    };
    struct back_world b;

    (void)state;
    back_begin(&b);
    FOR_EACH(row, rows)
    {
        CHECK_POST(&b, 400, row->part, "/v1/call", AUTH JSON_TYPE, row->body);
        CHECK_STR(asked(&b, "op"), "\"me\"", row->body); /* never a call */
    }
    CHECK_POST(&b, 400, "'code'", "/v1/login", JSON_TYPE, "{\"code\":1}");
    CHECK_POST(&b, 400, "'x'", "/v1/login", JSON_TYPE, "{\"code\":\"y\",\"x\":1}");
    back_end(&b);
}

static void test_deep_and_many(void **state)
{
    struct buf body = {.max = 32u << 20};
    struct back_world b;

    (void)state;
    back_begin(&b);
    for (int i = 0; i < 1000000; i++)
        buf_puts(&body, "[");
    CHECK_POST(&b, 400, "nested", "/v1/call", AUTH JSON_TYPE, body.data);
    buf_clear(&body);
    for (int i = 0; i < 100000; i++)
        buf_puts(&body, "{\"a\":");
    CHECK_POST(&b, 400, "nested", "/v1/call", AUTH JSON_TYPE, body.data);
    buf_clear(&body);
    buf_puts(&body, "{\"tool\":\"exec\",\"arguments\":{\"a\":[0");
    for (int i = 0; i < 1000000; i++)
        buf_puts(&body, ",0");
    buf_puts(&body, "]}}");
    CHECK_POST(&b, 400, "values", "/v1/call", AUTH JSON_TYPE, body.data);
    buf_clear(&body);
    buf_puts(&body, "{\"tool\":\"exec\",\"arguments\":{\"a\":");
    for (int i = 0; i < 62; i++)
        buf_puts(&body, "[");
    for (int i = 0; i < 62; i++)
        buf_puts(&body, "]");
    buf_puts(&body, "}}");
    CHECK_POST(&b, 200, "stdout", "/v1/call", AUTH JSON_TYPE, body.data);
    buf_done(&body);
    back_end(&b);
}

/* HT-27 */
static void test_large(void **state)
{
    struct buf body = {.max = 32u << 20};
    struct back_world b;

    (void)state;
    back_begin(&b);
    CHECK_GET(&b, 413, "25165824",
              "POST /v1/call HTTP/1.1\r\n" HOST AUTH JSON_TYPE "Content-Length: 67108864\r\n\r\n");
    CHECK_GET(&b, 413, "8388608",
              "POST /mcp HTTP/1.1\r\n" HOST AUTH JSON_TYPE "Content-Length: 8388609\r\n\r\n");
    CHECK_GET(&b, 401, "",
              "POST /v1/call HTTP/1.1\r\n" HOST "Authorization: Bearer " TOKEN_B "\r\n" JSON_TYPE
              "Content-Length: 67108864\r\n\r\n");
    buf_puts(&body, "{\"tool\":\"write\",\"arguments\":{\"content\":\"");
    for (int i = 0; i < 2000000; i++)
        buf_puts(&body, "\\u0041\\u000a");
    buf_puts(&body, "\"}}");
    CHECK_POST(&b, 200, "stdout", "/v1/call", AUTH JSON_TYPE, body.data);
    assert_int_equal(
        json_string_length(json_object_get(
            json_object_get(json_object_get(b.last, "params"), "arguments"), "content")),
        4000000);
    assert_int_equal(b.front->bodies, 0);
    /* A large body of somebody unknown is not read at all. */
    b.n_asked = 0;
    CHECK_POST(&b, 401, "", "/v1/call", "Authorization: Bearer " TOKEN_B "\r\n" JSON_TYPE,
               body.data);
    assert_int_equal(b.n_asked, 1);
    CHECK_STR(asked(&b, "op"), "\"me\"", "a stranger's body");
    buf_done(&body);
    back_end(&b);
}

static void test_all_bodies(void **state)
{
    char *piece = calloc(1, 1u << 20);
    struct back_world b;
    int fds[12];

    (void)state;
    memset(piece, ' ', 1u << 20);
    back_begin(&b);
    for (size_t i = 0; i < COUNT(fds); i++) {
        fds[i] = world_connect(&b.w);
        client_say(fds[i], "POST /v1/call HTTP/1.1\r\n" HOST AUTH JSON_TYPE
                           "Content-Length: 25165824\r\n\r\n");
        world_run(&b.w);
        for (size_t sent = 0, idle = 0; sent < 24u << 20 && idle < 3;) {
            ssize_t n = send(fds[i], piece, 1u << 20, MSG_DONTWAIT | MSG_NOSIGNAL);

            idle = n > 0 ? 0 : idle + 1;
            sent += n > 0 ? (size_t)n : 0;
            if (sent >= (24u << 20) - (1u << 20))
                break;
            world_run(&b.w);
        }
        assert_true(b.front->bodies <= LIMIT_FRONT_BODIES + HTTP_STREAM_READ);
    }
    assert_true(b.front->bodies > LIMIT_FRONT_BODIES / 2);
    for (size_t i = 0; i < COUNT(fds); i++)
        (void)close(fds[i]);
    world_run(&b.w);
    assert_int_equal(b.front->bodies, 0);
    free(piece);
    back_end(&b);
}

/* ---- answers ---- */

/* HT-33 */
static void test_reflection(void **state)
{
    static const char *const rows[] = {
        "GET /%3Cscript%3Ealert(1)%3C/script%3E HTTP/1.1\r\n" HOST AUTH "\r\n",
        "GET /v1/calls?%3Cscript%3E=1 HTTP/1.1\r\n" HOST AUTH "\r\n",
        "GET /healthz HTTP/1.1\r\nHost: <script>\r\n\r\n",
        "GET /v1/calls?<script>=1 HTTP/1.1\r\n" HOST AUTH "\r\n",
    };
    struct back_world b;

    (void)state;
    back_begin(&b);
    FOR_EACH(row, rows)
    {
        char *got = ask_raw(&b, *row);

        CHECK(status_of(got) >= 400, "%s", got);
        CHECK(strstr(got, "Content-Type: application/json\r\n"), "%s", got);
        CHECK(strstr(got, "X-Content-Type-Options: nosniff\r\n"), "%s", got);
        CHECK(strstr(got, "Cache-Control: no-store\r\n"), "%s", got);
        CHECK(strstr(got, "Content-Security-Policy: default-src 'none'"), "%s", got);
        CHECK(!strcasestr(got, "Server:"), "%s", got);
        free(got);
    }
    back_end(&b);
}

/* HT-35, HT-37 */
static void test_paths(void **state)
{
    static const char *const paths[] = {"//v1//me", "/v1/./me",    "/v1/%6De", "/v1/me/",
                                        "/v1/me;x", "/v1/x/../me", "/V1/ME",   "/v1/me%00",
                                        "/v1%2Fme", "/v1\\me",     "/v1/me%0a"};
    static const char *const ids[] = {"..%2Fx",
                                      "a",
                                      "%00",
                                      "-x",
                                      "00112233445566778899AABBCCDDEEFF",
                                      "00112233445566778899aabbccddeeff0"};
    struct back_world b;

    (void)state;
    back_begin(&b);
    for (size_t i = 0; i < COUNT(paths); i++)
        for (int with = 0; with < 2; with++) {
            char text[512];
            char *got;

            (void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\n" HOST "%s\r\n", paths[i],
                           with ? AUTH : "");
            got = ask_raw(&b, text);
            CHECK(status_of(got) == 400 || status_of(got) == (with ? 404 : 401), "%s: %s", paths[i],
                  got);
            free(got);
        }
    for (size_t i = 0; i < COUNT(ids); i++) {
        char text[512];

        (void)snprintf(text, sizeof(text), "GET /v1/calls/%s HTTP/1.1\r\n" HOST AUTH "\r\n",
                       ids[i]);
        CHECK_GET(&b, 400, "bad_request", text);
        (void)snprintf(text, sizeof(text), "DELETE /v1/calls/%s HTTP/1.1\r\n" HOST AUTH "\r\n",
                       ids[i]);
        CHECK_GET(&b, 400, "bad_request", text);
    }
    back_end(&b);
}

static void test_operations(void **state)
{
    static const struct {
        const char *request, *op, *params;
    } rows[] = {
        {"GET /readyz", "\"ready\"", "{}"},
        {"GET /v1/me", "\"me\"", "{}"},
        {"GET /v1/calls?session=a%3Ab&agent=x&tool=exec&state=done&since=5&until=9&limit=3",
         "\"calls\"",
         "{\"agent\":\"x\",\"limit\":3,\"session\":\"a:b\",\"since\":5,\"state\":\"done\",\"tool\":"
         "\"exec\",\"until\":9}"},
        {"GET /v1/calls/" CALL_A, "\"look\"", "{\"call\":\"" CALL_A "\"}"},
        {"DELETE /v1/calls/" CALL_A, "\"cancel\"", "{\"call\":\"" CALL_A "\"}"},
        {"GET /v1/sessions?agent=a+b", "\"sessions\"", "{\"agent\":\"a b\"}"},
        {"DELETE /v1/sessions/agent:main:x%20%C3%A9", "\"session.end\"",
         "{\"session\":\"agent:main:x \xc3\xa9\"}"},
        {"GET /v1/boxes", "\"boxes\"", "{}"},
        {"GET /v1/audit?event=call.*&since=2026-11-15&call=" CALL_A, "\"audit\"",
         "{\"call\":\"" CALL_A "\",\"event\":\"call.*\",\"since\":\"2026-11-15\"}"},
    };
    static const char *const bad[] = {
        "GET /v1/calls?limit=x",     "GET /v1/calls?limit=-1",    "GET /v1/calls?limit=1&limit=2",
        "GET /v1/calls?since=1.5",   "GET /v1/calls?limit",       "GET /v1/calls?session=%zz",
        "GET /v1/calls?session=%00", "GET /v1/calls?session=%ff", "GET /v1/calls?session=",
        "GET /v1/audit?call=x",      "GET /v1/boxes?x=1",         "GET /v1/calls?&",
        "DELETE /v1/sessions/%FF",
    };
    struct back_world b;
    char text[1024];

    (void)state;
    back_begin(&b);
    FOR_EACH(row, rows)
    {
        (void)snprintf(text, sizeof(text), "%s HTTP/1.1\r\n" HOST AUTH "\r\n", row->request);
        CHECK_GET(&b, 200, "{\"fine\":true}", text);
        CHECK_STR(asked(&b, "op"), row->op, row->request);
        CHECK_STR(asked(&b, "params"), row->params, row->request);
        CHECK_STR(asked(&b, "token"), "\"" TOKEN_A "\"", row->request);
    }
    FOR_EACH(row, bad)
    {
        (void)snprintf(text, sizeof(text), "%s HTTP/1.1\r\n" HOST AUTH "\r\n", *row);
        CHECK_GET(&b, 400, "bad_request", text);
    }
    back_end(&b);
}

static void deny(struct back_world *b, uint32_t id, const json_t *q)
{
    const char *tool = json_string_value(json_object_get(json_object_get(q, "params"), "tool"));

    if (strcmp(tool, "busy") == 0)
        back_say(b, id, 429, "{\"error\":{\"code\":\"x\",\"message\":\"y\",\"retry_after\":2.5}}");
    else if (strcmp(tool, "odd") == 0)
        back_say(b, id, 999, "{}");
    else
        back_say(b, id, 403,
                 "{\"call\":\"" CALL_A "\",\"denied\":{\"op\":\"exec\",\"rule\":\"r\"}}");
}

static void test_call(void **state)
{
    struct back_world b;

    (void)state;
    back_begin(&b);
    CHECK_POST(&b, 200, "\"stdout\":\"hi\\n\"", "/v1/call", AUTH JSON_TYPE,
               "{\"tool\":\"exec\",\"arguments\":{\"command\":\"id\"},\"agent\":\"a\",\"session\":"
               "\"s\",\"id\":\"k1\"}");
    CHECK_STR(
        asked(&b, "params"),
        "{\"agent\":\"a\",\"arguments\":{\"command\":\"id\"},\"key\":\"k1\",\"session\":\"s\","
        "\"stream\":false,\"tool\":\"exec\"}",
        "call");
    CHECK_POST(&b, 200, "", "/v1/call", AUTH JSON_TYPE "Idempotency-Key: k2\r\n",
               "{\"tool\":\"exec\"}");
    CHECK_STR(asked(&b, "params"),
              "{\"arguments\":{},\"key\":\"k2\",\"stream\":false,\"tool\":\"exec\"}", "key");
    CHECK_POST(&b, 200, "", "/v1/call", AUTH JSON_TYPE "Idempotency-Key: k2\r\n",
               "{\"tool\":\"exec\",\"id\":\"k2\"}");
    CHECK_POST(&b, 400, "Idempotency-Key", "/v1/call", AUTH JSON_TYPE "Idempotency-Key: k2\r\n",
               "{\"tool\":\"exec\",\"id\":\"k3\"}");
    CHECK_POST(&b, 400, "Idempotency-Key", "/v1/call",
               AUTH JSON_TYPE "Idempotency-Key: a\r\nIdempotency-Key: a\r\n",
               "{\"tool\":\"exec\"}");
    b.on_call = deny;
    CHECK_POST(&b, 403, "\"denied\"", "/v1/call", AUTH JSON_TYPE, "{\"tool\":\"exec\"}");
    CHECK_POST(&b, 429, "Retry-After: 3\r\n", "/v1/call", AUTH JSON_TYPE, "{\"tool\":\"busy\"}");
    CHECK_POST(&b, 500, "", "/v1/call", AUTH JSON_TYPE, "{\"tool\":\"odd\"}");
    back_end(&b);
}

static void test_login(void **state)
{
    struct back_world b;

    (void)state;
    back_begin(&b);
    CHECK_POST(&b, 200, "Set-Cookie: clawden=" COOKIE "; Path=/; HttpOnly; SameSite=Strict\r\n",
               "/v1/login", JSON_TYPE WITH_COOKIE "Origin: http://localhost:18789\r\n",
               "{\"code\":\"abc\"}");
    CHECK_STR(asked(&b, "params"), "{\"code\":\"abc\"}", "login");
    CHECK_STR(asked(&b, "cookie"), "none", "login");
    CHECK_POST(&b, 200, "\r\n\r\n{\"expires\":3600}\n", "/v1/login", JSON_TYPE,
               "{\"code\":\"abc\"}");
    CHECK_POST(&b, 403, "", "/v1/login", JSON_TYPE "Origin: https://evil.test\r\n",
               "{\"code\":\"abc\"}");
    CHECK_POST(&b, 200, "Max-Age=0", "/v1/logout", WITH_COOKIE "Origin: http://localhost:18789\r\n",
               "");
    CHECK_STR(asked(&b, "op"), "\"logout\"", "logout");
    back_end(&b);
}

static void test_page(void **state)
{
    struct back_world b;

    (void)state;
    back_begin(&b);
    CHECK_GET(&b, 200, "<title>ClawDen</title>", "GET / HTTP/1.1\r\n" HOST "\r\n");
    CHECK_GET(&b, 200, "script-src 'self'", "GET / HTTP/1.1\r\n" HOST "\r\n");
    CHECK_GET(&b, 200, "/v1/login", "GET /app.js HTTP/1.1\r\n" HOST "\r\n");
    CHECK_GET(&b, 200, "Content-Length: 12\r\n", "HEAD /healthz HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(b.n_asked, 0);
    back_end(&b);
}

static void test_metrics(void **state)
{
    struct buf facts = {.max = 4096};
    struct back_world b;

    (void)state;
    back_begin(&b);
    CHECK_GET(&b, 200,
              "# HELP a_total x\\ny\\\\\n# TYPE a_total counter\n"
              "a_total{l=\"q\\\"\\n\\\\\"} 3\na_total 0.5\n",
              "GET /metrics HTTP/1.1\r\n" HOST AUTH "\r\n");
    CHECK_GET(&b, 200, "text/plain; version=0.0.4", "GET /metrics HTTP/1.1\r\n" HOST AUTH "\r\n");
    CHECK_GET(&b, 401, "", "GET /metrics HTTP/1.1\r\n" HOST "\r\n");
    /* Open to this host once the facts say so; a token that is sent must still be good. */
    buf_printf(&facts, "%.*s,\"metrics_open\":true}",
               (int)(strstr(facts_text, ",\"metrics") - facts_text), facts_text);
    back_facts(&b, facts.data);
    CHECK_GET(&b, 200, "a_total", "GET /metrics HTTP/1.1\r\n" HOST "\r\n");
    CHECK_STR(asked(&b, "token"), "none", "metrics");
    CHECK_GET(&b, 401, "",
              "GET /metrics HTTP/1.1\r\n" HOST "Authorization: Bearer " TOKEN_B "\r\n\r\n");
    CHECK_GET(&b, 401, "", "GET /readyz HTTP/1.1\r\n" HOST "\r\n");
    buf_done(&facts);
    back_end(&b);
}

static json_t *body_of(char *answer)
{
    char *body = strstr(answer, "\r\n\r\n");
    json_t *v = json_loads(body + 4, JSON_REJECT_DUPLICATES, NULL);

    CHECK(v, "no JSON: %.200s", answer);
    free(answer);
    return v;
}

/* Everything that is referred to is there. */
static void check_refs(const json_t *doc, const json_t *v)
{
    const char *ref = json_string_value(json_object_get(v, "$ref")), *key;
    json_t *one;
    size_t i;

    if (ref)
        CHECK(json_object_get(json_object_get(json_object_get(doc, "components"), "schemas"),
                              strrchr(ref, '/') + 1),
              "%s", ref);
    json_object_foreach((json_t *)v, key, one) check_refs(doc, one);
    json_array_foreach(v, i, one) check_refs(doc, one);
}

static void test_openapi(void **state)
{
    struct back_world b;
    json_t *doc, *list;
    size_t n = 0;

    (void)state;
    back_begin(&b);
    doc = body_of(ask_raw(&b, "GET /openapi.json HTTP/1.1\r\n" HOST AUTH "\r\n"));
    check_refs(doc, doc);
    for (size_t i = 0; i < n_routes; i++) {
        const json_t *path = json_object_get(json_object_get(doc, "paths"), routes[i].path);
        char method[16];

        (void)snprintf(method, sizeof(method), "%s",
                       routes[i].method == HTTP_GET    ? "get"
                       : routes[i].method == HTTP_POST ? "post"
                                                       : "delete");
        CHECK(json_object_get(json_object_get(path, method), "responses"), "%s", routes[i].path);
    }
    list = body_of(ask_raw(&b, "GET /v1/tools HTTP/1.1\r\n" HOST AUTH "\r\n"));
    for (size_t i = 0; i < n_tools; i++)
        n += !tools[i].unlisted;
    assert_int_equal(json_array_size(json_object_get(list, "tools")), n);
    assert_non_null(
        json_object_get(json_array_get(json_object_get(list, "tools"), 0), "outputSchema"));
    CHECK_GET(&b, 401, "",
              "GET /openapi.json HTTP/1.1\r\n" HOST "Authorization: Bearer " TOKEN_B "\r\n\r\n");
    json_decref(doc);
    json_decref(list);
    back_end(&b);
}

static void no_answer(struct back_world *b, uint32_t id, const json_t *q)
{
    (void)b;
    (void)id;
    (void)q;
}

static void test_gone(void **state)
{
    struct buf got = {.max = 1u << 20};
    struct back_world b;
    uint32_t first;
    int fd;

    (void)state;
    back_begin(&b);
    b.on_call = no_answer;
    fd = world_connect(&b.w);
    client_say(fd, "POST /v1/call HTTP/1.1\r\n" HOST AUTH JSON_TYPE
                   "Content-Length: 15\r\n\r\n{\"tool\":\"exec\"}");
    world_run(&b.w);
    first = b.id;
    assert_int_equal(b.n_cancelled, 0);
    (void)close(fd);
    world_run(&b.w);
    assert_int_equal(b.n_cancelled, 1);
    assert_int_equal(b.cancelled, first);
    /* The place is used again; the answer that was on its way is nobody's (F2). */
    fd = world_connect(&b.w);
    client_say(fd, "POST /v1/call HTTP/1.1\r\n" HOST AUTH JSON_TYPE
                   "Content-Length: 15\r\n\r\n{\"tool\":\"exec\"}");
    world_run(&b.w);
    assert_int_equal(b.id % LIMIT_LINK_ASKS, first % LIMIT_LINK_ASKS);
    assert_int_not_equal(b.id, first);
    back_say(&b, first, 200, "{\"secret\":1}");
    back_tell(&b, first, "{\"seq\":1,\"type\":\"output\"}");
    world_run(&b.w);
    (void)client_read(fd, &got);
    assert_int_equal(got.len, 0);
    back_say(&b, b.id, 200, "{\"mine\":1}");
    world_run(&b.w);
    (void)client_read(fd, &got);
    assert_non_null(strstr(got.data, "mine"));
    (void)close(fd);
    buf_done(&got);
    back_end(&b);
}

static void test_log(void **state)
{
    const struct temp *t = *state;
    struct front_options o = {.logs = true};
    struct back_world b;
    int saved = dup(STDERR_FILENO), fd;
    char *text;

    fd = openat(t->fd, "log", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    (void)dup2(fd, STDERR_FILENO);
    back_begin_with(&b, o);
    back_facts(&b, facts_text);
    free(ask_raw(&b, "GET /v1/me HTTP/1.1\r\n" HOST AUTH "\r\n"));
    free(ask_raw(&b, "GET /v1/calls?session=private HTTP/1.1\r\n" HOST WITH_COOKIE "\r\n"));
    back_end(&b);
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    (void)close(fd);
    text = temp_read(t, "log", NULL);
    CHECK(strstr(text, "\"method\":\"GET\",\"path\":\"/v1/me\",\"status\":200,\"usec\":"), "%s",
          text);
    CHECK(strstr(text, "\"token\":\"" TOKEN_ID_A "\""), "%s", text);
    CHECK(!strstr(text, HEX64) && !strstr(text, COOKIE) && !strstr(text, "private"), "%s", text);
    free(text);
}

static void test_end(void **state)
{
    struct back_world b;
    int fd;

    (void)state;
    back_begin(&b);
    link_close(&b.link);
    world_run(&b.w);
    assert_true(b.has_ended && b.ended);
    back_end(&b);

    back_begin(&b);
    b.on_call = no_answer;
    fd = world_connect(&b.w);
    client_say(fd, "POST /v1/call HTTP/1.1\r\n" HOST AUTH JSON_TYPE
                   "Content-Length: 15\r\n\r\n{\"tool\":\"exec\"}");
    world_run(&b.w);
    front_drain(b.front);
    world_run(&b.w);
    assert_false(b.has_ended);
    back_say(&b, b.id, 200, "{}");
    world_run(&b.w);
    assert_true(b.has_ended && !b.ended);
    (void)close(fd);
    back_end(&b);
}

/* ---- confinement and listeners ---- */

static char *make_facts(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    BIO *chain = BIO_new(BIO_s_mem()), *private = BIO_new(BIO_s_mem());
    json_t *facts = json_loads(facts_text, 0, NULL);
    char *chain_text, *key_text, *text;
    long chain_len, key_len;

    (void)ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    (void)X509_gmtime_adj(X509_getm_notBefore(cert), -60);
    (void)X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    (void)X509_set_pubkey(cert, key);
    assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
    assert_true(PEM_write_bio_X509(chain, cert) == 1);
    assert_true(PEM_write_bio_PrivateKey(private, key, NULL, NULL, 0, NULL, NULL) == 1);
    chain_len = BIO_get_mem_data(chain, &chain_text);
    key_len = BIO_get_mem_data(private, &key_text);
    (void)json_object_set_new(facts, "tls",
                              json_pack("{ss% ss%}", "certificate", chain_text, (size_t)chain_len,
                                        "key", key_text, (size_t)key_len));
    text = json_dumps(facts, 0);
    json_decref(facts);
    BIO_free(chain);
    BIO_free(private);
    X509_free(cert);
    EVP_PKEY_free(key);
    return text;
}

/* A bit for each thing that it can still do; _exit() is all that is left to it. */
static int count_freedoms(void)
{
    pid_t pid;
    int bad = 0;

    bad |= open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 ? 1 : 0;
    bad |= openat(AT_FDCWD, "/tmp", O_RDONLY | O_CLOEXEC) >= 0 ? 2 : 0;
    bad |= socket(AF_INET, SOCK_STREAM, 0) >= 0 ? 4 : 0;
    pid = fork();
    if (pid == 0)
        _exit(0);
    bad |= pid > 0 ? 8 : 0;
    bad |= kill(getppid(), 0) == 0 ? 16 : 0;
    bad |= prctl(PR_GET_DUMPABLE) == 1 ? 32 : 0; /* may not even ask */
    return bad;
}

static void serve_confined(int tls_fd, int plain_fd, const char *facts, int report)
{
    const struct front_listener l[] = {{tls_fd, true}, {plain_fd, false}};
    struct back_world b;
    struct error err = {0};
    char bad;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    back_begin_with(&b, (struct front_options){.listeners = l, .n_listeners = 2});
    bad = front_confine(&err) < 0 ? 64 : (char)count_freedoms();
    (void)!write(report, &bad, 1);
    link_send(&b.link, LINK_FACTS, 0, facts, strlen(facts));
    (void)loop_run(b.w.loop);
    _exit(1);
}

static int listen_somewhere(uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

#define ASK_LOGIN                                                                              \
    "POST /v1/login HTTP/1.1\r\n" HOST JSON_TYPE "Connection: close\r\nContent-Length: 14\r\n" \
    "\r\n{\"code\":\"abc\"}"

static void check_tls(uint16_t port)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    int fd = connect_to(port), n, at = 0;
    char got[4096];

    (void)SSL_set_fd(ssl, fd);
    assert_int_equal(SSL_connect(ssl), 1);
    assert_int_equal(SSL_write(ssl, ASK_LOGIN, sizeof(ASK_LOGIN) - 1), sizeof(ASK_LOGIN) - 1);
    while ((n = SSL_read(ssl, got + at, (int)sizeof(got) - at - 1)) > 0)
        at += n;
    got[at] = 0;
    CHECK(strstr(got, "SameSite=Strict; Secure\r\n"), "%s", got);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    (void)close(fd);
}

static void check_plain(uint16_t port)
{
    int fd = connect_to(port);
    char got[4096];
    ssize_t n;
    size_t at = 0;

    client_say(fd, ASK_LOGIN);
    while ((n = recv(fd, got + at, sizeof(got) - at - 1, 0)) > 0)
        at += (size_t)n;
    got[at] = 0;
    CHECK(strstr(got, "SameSite=Strict\r\n"), "%s", got);
    (void)close(fd);
}

static void test_confined(void **state)
{
    uint16_t secret, plain;
    int tls_fd = listen_somewhere(&secret), plain_fd = listen_somewhere(&plain), p[2], status;
    char *facts = make_facts(), bad = 127;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0)
        serve_confined(tls_fd, plain_fd, facts, p[1]);
    assert_int_equal(read(p[0], &bad, 1), 1);
    CHECK(bad == 0, "it can still do %d", bad);
    check_tls(secret);
    check_plain(plain);
    assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    free(facts);
    (void)close(tls_fd);
    (void)close(plain_fd);
    (void)close(p[0]);
    (void)close(p[1]);
}

/* Facts come again after each reload; what cannot be used leaves the old in force. */
static void test_facts_again(void **state)
{
    static const char *const bad[] = {
        "x", "[]",
        "{\"hosts\":[\"localhost:18789\"],\"tls\":{\"certificate\":\"a\",\"key\":\"b\"}}"};
    char *one = make_facts(), *two = make_facts();
    const struct http_tls *tls;
    struct back_world b;

    (void)state;
    back_begin_with(&b, (struct front_options){0});
    back_facts(&b, one);
    tls = b.front->tls;
    assert_non_null(tls);
    back_facts(&b, two);
    FOR_EACH(text, bad)
    {
        back_facts(&b, *text);
    }
    assert_true(b.front->tls == tls && !b.has_ended);
    CHECK_GET(&b, 200, "ok", "GET /healthz HTTP/1.1\r\n" HOST "\r\n");
    back_facts(&b, "{\"hosts\":[\"new.test\"]}");
    CHECK_GET(&b, 421, "", "GET /healthz HTTP/1.1\r\n" HOST "\r\n");
    CHECK_GET(&b, 200, "ok", "GET /healthz HTTP/1.1\r\nHost: new.test\r\n\r\n");
    back_end(&b);
    free(one);
    free(two);
}

static void test_no_certificate(void **state)
{
    uint16_t port;
    const struct front_listener l = {listen_somewhere(&port), true};
    struct back_world b;

    (void)state;
    back_begin_with(&b, (struct front_options){.listeners = &l, .n_listeners = 1});
    back_facts(&b, facts_text);
    assert_true(b.has_ended && b.ended);
    back_end(&b);
}

static const struct CMUnitTest claims[] = {
    CLAIM("no route but the open ones answers without a credential, whatever the method",
          test_every_route),
    CLAIM("paths and methods that are not there are told to who is known only", test_unknown_paths),
    CLAIM("one credential, in its one form and place", test_token_forms),
    CLAIM("a token of a megabyte is refused", test_long_token),
    CLAIM("what a client says of its own rights is not known, or not looked at",
          test_self_made_rights),
    CLAIM("only our hosts are answered for", test_hosts),
    CLAIM("only our origins and those of the settings may ask", test_origins),
    CLAIM("a cookie is good for our own page alone", test_cookies_of_other_pages),
    CLAIM("bodies are JSON by their type", test_types),
    CLAIM("heads that are none, too large, or wait for a 100 that nobody gets", test_heads),
    CLAIM("bodies that are not what is taken are refused by the field's name", test_bodies),
    CLAIM("depth and number of values are bounded", test_deep_and_many),
    CLAIM("large bodies are bounded, and of strangers not read", test_large),
    CLAIM("all bodies together are bounded", test_all_bodies),
    CLAIM("errors are JSON with every belt, and name no server", test_reflection),
    CLAIM("one spelling per path, one grammar of ids", test_paths),
    CLAIM("each route asks its operation with its fields", test_operations),
    CLAIM("calls: fields, keys, refusals", test_call),
    CLAIM("a code becomes a cookie, and a logout takes it away", test_login),
    CLAIM("the page stands alone", test_page),
    CLAIM("metrics are Prometheus' text, open only if the facts say so", test_metrics),
    CLAIM("the OpenAPI document has every route and no loose end", test_openapi),
    CLAIM("who goes away ends its question; a late answer is nobody's", test_gone),
    CLAIM_IN_TEMP("the log names the token's id, never the token, and no query", test_log),
    CLAIM("it ends with its back, or when drained", test_end),
    CLAIM("a confined front serves TLS and plain, and can do nothing else", test_confined),
    CLAIM("facts that come again are followed, bad ones leave the old in force", test_facts_again),
    CLAIM("without a certificate there is no TLS, and no front", test_no_certificate),
};

int main(void)
{
    return RUN_CLAIMS("gateway/front", claims);
}
