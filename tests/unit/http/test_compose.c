/* SPDX-License-Identifier: Apache-2.0 */
#include "http/compose.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/test.h"

static struct http_slice slice(const char *text)
{
    return (struct http_slice){text, strlen(text)};
}

static void test_writes(void **state)
{
    autobuf b;

    (void)state;
    buf_init(&b, 1000);
    http_write_request_line(&b, HTTP_POST, slice("/x?y"));
    http_write_header(&b, "Host", "a.test");
    http_write_header(&b, "X-Empty", "");
    http_write_field(&b, slice("X-Text"), slice("a\tb \xff"));
    http_write_end(&b);
    assert_false(b.failed);
    assert_string_equal(b.data, "POST /x?y HTTP/1.1\r\nHost: a.test\r\nX-Empty: \r\n"
                                "X-Text: a\tb \xff\r\n\r\n");
    buf_clear(&b);
    http_write_status_line(&b, 404, NULL);
    http_write_status_line(&b, 299, NULL);
    http_write_status_line(&b, 200, &(struct http_slice){"Fine", 4});
    assert_string_equal(b.data, "HTTP/1.1 404 Not Found\r\nHTTP/1.1 299 \r\nHTTP/1.1 200 Fine\r\n");
}

static void test_fails(void **state)
{
    static const struct {
        struct http_slice name, value;
    } rows[] = {
        {{"X", 1}, {"a\rb", 3}},      {{"X", 1}, {"a\nb", 3}}, {{"X", 1}, {"a\0b", 3}},
        {{"X", 1}, {"a\r\nY: z", 7}}, {{"X", 1}, {"\x1b", 1}}, {{"X", 1}, {"\x7f", 1}},
        {{"", 0}, {"a", 1}},          {{"X Y", 3}, {"a", 1}},  {{"X:", 2}, {"a", 1}},
        {{"X\r\n", 3}, {"a", 1}},     {{"X\0", 2}, {"a", 1}},  {{"\xc3\xa9", 2}, {"a", 1}},
    };
    static const char *const targets[] = {"", "/a b", "/\r\n", "/\xc3\xa9", "/#x"};
    autobuf b;

    (void)state;
    buf_init(&b, 1000);
    for (size_t i = 0; i < COUNT(rows); i++) {
        buf_clear(&b);
        http_write_field(&b, rows[i].name, rows[i].value);
        CHECK(b.failed && b.len == 0, "row %zu was written", i);
        http_write_header(&b, "X", "fine");
        CHECK(b.failed && b.len == 0, "row %zu was forgotten", i);
    }
    for (size_t i = 0; i < COUNT(targets); i++) {
        buf_clear(&b);
        http_write_request_line(&b, HTTP_GET, slice(targets[i]));
        CHECK(b.failed && b.len == 0, "target '%s' was written", targets[i]);
    }
    buf_clear(&b);
    http_write_status_line(&b, 99, NULL);
    assert_true(b.failed);
    buf_clear(&b);
    http_write_status_line(&b, 200, &(struct http_slice){"a\r\nX: y", 7});
    assert_true(b.failed);
}

static void test_rebuilds_requests(void **state)
{
    static const struct {
        const char *what, *in, *out;
    } rows[] = {
        {"absolute form becomes origin form",
         "GET http://a.test/x?y HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\n\r\n",
         "GET /x?y HTTP/1.1\r\nHost: canon.test\r\nAccept: */*\r\n\r\n"},
        {"an empty path becomes '/'", "GET http://a.test HTTP/1.1\r\nHost: a.test\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: canon.test\r\n\r\n"},
        {"an empty path before a query becomes '/'",
         "GET http://a.test?q=1 HTTP/1.1\r\nHost: a.test\r\n\r\n",
         "GET /?q=1 HTTP/1.1\r\nHost: canon.test\r\n\r\n"},
        {"OPTIONS of a whole server becomes '*'",
         "OPTIONS http://a.test HTTP/1.1\r\nHost: a.test\r\n\r\n",
         "OPTIONS * HTTP/1.1\r\nHost: canon.test\r\n\r\n"},
        {"Host is written anew, once, and first", "GET / HTTP/1.1\r\nX: y\r\nhOST: a.test\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: canon.test\r\nX: y\r\n\r\n"},
        {"HTTP/1.0 goes on as 1.1", "GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: canon.test\r\n\r\n"},
        {"the length is written anew",
         "POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length:  5\r\nX:y\r\n\r\n",
         "POST / HTTP/1.1\r\nHost: canon.test\r\nX: y\r\nContent-Length: 5\r\n\r\n"},
        {"an empty body stays one", "POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: 0\r\n\r\n",
         "POST / HTTP/1.1\r\nHost: canon.test\r\nContent-Length: 0\r\n\r\n"},
        {"chunked is written anew",
         "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding:CHUNKED\r\n"
         "Expect: 100-continue\r\n\r\n",
         "POST / HTTP/1.1\r\nHost: canon.test\r\nExpect: 100-continue\r\n"
         "Transfer-Encoding: chunked\r\n\r\n"},
        {"what is meant for the next hop stays here",
         "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive, X-Mine,upgrade\r\n"
         "Keep-Alive: timeout=5\r\nProxy-Connection: x\r\nProxy-Authorization: Basic x\r\n"
         "proxy-anything: x\r\nTE: trailers\r\nTrailer: X\r\nUpgrade: h2c\r\n"
         "HTTP2-Settings: AAMAAABkAAQAAP__\r\nx-mine: 1\r\nX-Theirs: 2\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: canon.test\r\nX-Theirs: 2\r\n\r\n"},
        {"Connection cannot take the framing or Host away",
         "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n"
         "Connection: Host, Content-Length\r\n\r\n",
         "POST / HTTP/1.1\r\nHost: canon.test\r\nContent-Length: 5\r\n\r\n"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct http_fault fault = {0};
        struct http_parser p;
        struct http_head head;
        autobuf b;
        int r;

        http_parser_init_request(&p, 1000);
        r = http_parse(&p, row->in, strlen(row->in), &head, &fault);
        CHECK(r > 0, "%s: %s", row->what, fault.reason);
        buf_init(&b, 1000);
        http_rebuild_request(&b, &head, slice("canon.test"));
        http_write_end(&b);
        CHECK(!b.failed, "%s", row->what);
        CHECK_STR(b.data, row->out, row->what);
    }
}

static void test_rebuilds_responses(void **state)
{
    static const struct {
        const char *what;
        enum http_method asked;
        const char *in, *out;
    } rows[] = {
        {"a length", HTTP_GET,
         "HTTP/1.0 200 Fine\r\ncontent-length: 5\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n",
         "HTTP/1.1 200 Fine\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 5\r\n\r\n"},
        {"no reason", HTTP_GET, "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n",
         "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n"},
        {"the answer to HEAD keeps its length", HTTP_HEAD,
         "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"},
        {"until close", HTTP_GET, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
         "HTTP/1.1 200 OK\r\n\r\n"},
        {"hop by hop", HTTP_GET,
         "HTTP/1.1 304 X\r\nConnection: x-a\r\nX-A: 1\r\nProxy-Authenticate: y\r\nUpgrade: h2\r\n"
         "ETag: z\r\n\r\n",
         "HTTP/1.1 304 X\r\nETag: z\r\n\r\n"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct http_fault fault = {0};
        struct http_parser p;
        struct http_head head;
        autobuf b;
        int r;

        http_parser_init_response(&p, row->asked, 1000);
        r = http_parse(&p, row->in, strlen(row->in), &head, &fault);
        CHECK(r > 0, "%s: %s", row->what, fault.reason);
        buf_init(&b, 1000);
        http_rebuild_response(&b, &head);
        http_write_end(&b);
        CHECK(!b.failed, "%s", row->what);
        CHECK_STR(b.data, row->out, row->what);
    }
}

static void test_needs_host(void **state)
{
    static const char in[] = "GET / HTTP/1.0\r\n\r\n";
    struct http_fault fault = {0};
    struct http_parser p;
    struct http_head head;
    autobuf b;

    (void)state;
    http_parser_init_request(&p, 1000);
    assert_true(http_parse(&p, in, strlen(in), &head, &fault) > 0);
    buf_init(&b, 1000);
    http_rebuild_request(&b, &head, (struct http_slice){0});
    assert_true(b.failed);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("lines are written as they are meant", test_writes),
        CLAIM("no value, name or target can end its line", test_fails),
        CLAIM("a request is rebuilt from what was understood", test_rebuilds_requests),
        CLAIM("a response is rebuilt from what was understood", test_rebuilds_responses),
        CLAIM("a request without a host is not rebuilt", test_needs_host),
    };

    return RUN_CLAIMS("http/compose", claims);
}
