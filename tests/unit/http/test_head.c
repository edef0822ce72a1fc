/* SPDX-License-Identifier: Apache-2.0 */
#include "http/head.h"

#include <string.h>

#include "tests/test.h"

/* A string that may hold NULs. */
#define BYTES(s) (s), sizeof(s) - 1

#define HOST "Host: a.test\r\n"
#define GET  "GET / HTTP/1.1\r\n" HOST
#define POST "POST / HTTP/1.1\r\n" HOST

static int parse_request(const char *data, size_t len, struct http_head *head,
                         struct http_fault *fault)
{
    struct http_parser p;

    http_parser_init_request(&p, 1000000);
    return http_parse(&p, data, len, head, fault);
}

static int parse_response(enum http_method asked, const char *data, size_t len,
                          struct http_head *head, struct http_fault *fault)
{
    struct http_parser p;

    http_parser_init_response(&p, asked, LIMIT_HTTP_BODY);
    return http_parse(&p, data, len, head, fault);
}

static bool is(struct http_slice s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static void test_reads(void **state)
{
    static const char text[] = "\r\nPOST /v1/call?x=%20&y HTTP/1.1\r\nHost: a.test:18789\r\n"
                               "Content-Length: 12\r\nX-Empty:\r\nX-Blank: \t \r\n"
                               "x-many:\t a  \tb\xff \t\r\nConnection: keep-alive, X-Many\r\n"
                               "Expect: 100-Continue\r\n\r\nhello world!";
    struct http_fault fault = {0};
    struct http_head head;

    (void)state;
    assert_int_equal(parse_request(BYTES(text), &head, &fault), sizeof(text) - 1 - 12);
    assert_int_equal(head.method, HTTP_POST);
    assert_true(is(head.method_text, "POST") && is(head.target, "/v1/call?x=%20&y"));
    assert_int_equal(head.form, HTTP_ORIGIN);
    assert_true(is(head.url.path, "/v1/call") && is(head.url.query, "x=%20&y"));
    assert_true(is(head.host.host, "a.test") && head.host.port == 18789);
    assert_int_equal(head.minor, 1);
    assert_true(head.keep_alive && head.expects_continue && head.has_length);
    assert_int_equal(head.framing, HTTP_BY_LENGTH);
    assert_int_equal(head.length, 12);
    assert_int_equal(head.n_headers, 7);
    assert_true(is(*http_find(&head, "x-empty"), "") && is(*http_find(&head, "x-blank"), ""));
    assert_true(is(head.headers[4].name, "x-many"));
    assert_true(is(*http_find(&head, "X-Many"), "a  \tb\xff"));
    assert_true(http_lists(&head, "connection", "x-MANY"));
    assert_false(http_lists(&head, "connection", "close"));
    assert_null(http_find(&head, "X-Man"));
}

static void test_accepts(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        enum http_method method;
        enum http_target_form form;
        enum http_framing framing;
        bool keep_alive;
    } rows[] = {
        {BYTES(GET "\r\n"), HTTP_GET, HTTP_ORIGIN, HTTP_NO_BODY, true},
        {BYTES("GET / HTTP/1.0\r\n\r\n"), HTTP_GET, HTTP_ORIGIN, HTTP_NO_BODY, false},
        {BYTES("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), HTTP_GET, HTTP_ORIGIN,
         HTTP_NO_BODY, false},
        {BYTES(GET "Connection: x, CLOSE\r\n\r\n"), HTTP_GET, HTTP_ORIGIN, HTTP_NO_BODY, false},
        {BYTES(GET "Connection: x,,\r\nConnection: y\r\n\r\n"), HTTP_GET, HTTP_ORIGIN, HTTP_NO_BODY,
         true},
        {BYTES(GET "Content-Length: 0\r\n\r\n"), HTTP_GET, HTTP_ORIGIN, HTTP_BY_LENGTH, true},
        {BYTES("POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\n"), HTTP_POST, HTTP_ORIGIN,
         HTTP_BY_LENGTH, false},
        {BYTES(POST "Content-Length: \t1000000 \r\n\r\n"), HTTP_POST, HTTP_ORIGIN, HTTP_BY_LENGTH,
         true},
        {BYTES(POST "Transfer-Encoding: chunked\r\n\r\n"), HTTP_POST, HTTP_ORIGIN, HTTP_CHUNKED,
         true},
        {BYTES(POST "transfer-encoding:Chunked \r\n\r\n"), HTTP_POST, HTTP_ORIGIN, HTTP_CHUNKED,
         true},
        {BYTES(POST "TE: trailers\r\n\r\n"), HTTP_POST, HTTP_ORIGIN, HTTP_NO_BODY, true},
        {BYTES("DELETE / HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\n"), HTTP_DELETE, HTTP_ORIGIN,
         HTTP_BY_LENGTH, true},
        {BYTES("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"), HTTP_OPTIONS, HTTP_ASTERISK, HTTP_NO_BODY,
         true},
        {BYTES("PROPFIND /dav/ HTTP/1.1\r\n" HOST "\r\n"), HTTP_PROPFIND, HTTP_ORIGIN, HTTP_NO_BODY,
         true},
        {BYTES("GET //b/../c HTTP/1.1\r\n" HOST "\r\n"), HTTP_GET, HTTP_ORIGIN, HTTP_NO_BODY, true},
        {BYTES("GET http://a.test/x?y HTTP/1.1\r\n" HOST "\r\n"), HTTP_GET, HTTP_ABSOLUTE,
         HTTP_NO_BODY, true},
        {BYTES("GET HTTP://A.test HTTP/1.1\r\nHost: a.TEST:80\r\n\r\n"), HTTP_GET, HTTP_ABSOLUTE,
         HTTP_NO_BODY, true},
        {BYTES("GET https://a.test:443/ HTTP/1.1\r\n" HOST "\r\n"), HTTP_GET, HTTP_ABSOLUTE,
         HTTP_NO_BODY, true},
        {BYTES("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"), HTTP_CONNECT,
         HTTP_AUTHORITY, HTTP_NO_BODY, true},
        {BYTES("CONNECT a.test:443 HTTP/1.1\r\n" HOST "\r\n"), HTTP_CONNECT, HTTP_AUTHORITY,
         HTTP_NO_BODY, true},
        {BYTES("CONNECT [::1]:443 HTTP/1.0\r\n\r\n"), HTTP_CONNECT, HTTP_AUTHORITY, HTTP_NO_BODY,
         false},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct http_fault fault = {0};
        struct http_head head;
        int r = parse_request(row->text, row->len, &head, &fault);

        CHECK(r == (int)row->len, "'%s': %d (%s)", row->text, r, r < 0 ? fault.reason : "");
        CHECK(head.method == row->method && head.form == row->form &&
                  head.framing == row->framing && head.keep_alive == row->keep_alive,
              "'%s': method %d form %d framing %d keep %d", row->text, head.method, head.form,
              head.framing, head.keep_alive);
    }
}

/* EG-12, EG-15, EG-16, EG-21, EG-23, EG-24, HT-02, HT-18, HT-19, HT-21. */
static const struct refused {
    const char *text;
    size_t len;
    unsigned status;
    const char *part;
} refused[] = {
    /* line ends */
    {BYTES("GET / HTTP/1.1\nHost: a.test\n\n"), 400, "without CR"},
    {BYTES("GET / HTTP/1.1\rHost: a.test\r\r"), 400, "without its LF"},
    {BYTES("\nGET / HTTP/1.1\r\n" HOST "\r\n"), 400, "without CR"},
    {BYTES(GET "X: a\nContent-Length: 5\r\n\r\n"), 400, "without CR"},
    {BYTES(GET "X: a\rb\r\n\r\n"), 400, "without its LF"},
    {BYTES(GET "X: a\r\r\n\r\n"), 400, "without its LF"},
    {BYTES(GET "\n"), 400, "without CR"},
    {BYTES(GET "\r\r\n"), 400, "without its LF"},
    {BYTES("\r\n\r\n" GET "\r\n"), 400, "empty lines"},
    /* header grammar */
    {BYTES(GET "X: a\r\n b\r\n\r\n"), 400, "folding"},
    {BYTES(GET "X: a\r\n\tb\r\n\r\n"), 400, "folding"},
    {BYTES("GET / HTTP/1.1\r\n Host: a.test\r\n\r\n"), 400, "folding"},
    {BYTES(GET " \r\n\r\n"), 400, "folding"},
    {BYTES(GET "X : a\r\n\r\n"), 400, "before its ':'"},
    {BYTES(GET "X\t: a\r\n\r\n"), 400, "before its ':'"},
    {BYTES(GET "X Y: a\r\n\r\n"), 400, "in a header name"},
    {BYTES(GET "X\r\n\r\n"), 400, "no ':'"},
    {BYTES(GET ": a\r\n\r\n"), 400, "no name"},
    {BYTES(GET "X\0: a\r\n\r\n"), 400, "control byte"},
    {BYTES(GET "X\x0b: a\r\n\r\n"), 400, "control byte"},
    {BYTES(GET "X\x7f: a\r\n\r\n"), 400, "control byte"},
    {BYTES(GET "X\xc3\xa9: a\r\n\r\n"), 400, "no name may"},
    {BYTES(GET "X(: a\r\n\r\n"), 400, "no name may"},
    {BYTES(GET "\"X\": a\r\n\r\n"), 400, "no name may"},
    {BYTES(GET "X: a\0b\r\n\r\n"), 400, "control byte"},
    {BYTES(GET "X: a\x1b[2J\r\n\r\n"), 400, "control byte"},
    {BYTES(GET "X: a\x7f\r\n\r\n"), 400, "control byte"},
    /* Content-Length */
    {BYTES(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"), 400,
     "Content-Length comes twice"},
    {BYTES(POST "Content-Length: 5\r\ncontent-length: 6\r\n\r\n"), 400,
     "Content-Length comes twice"},
    {BYTES(POST "Content-Length: +5\r\n\r\n"), 400, "plain number"},
    {BYTES(POST "Content-Length: -5\r\n\r\n"), 400, "plain number"},
    {BYTES(POST "Content-Length: 5,5\r\n\r\n"), 400, "plain number"},
    {BYTES(POST "Content-Length: 5, 5\r\n\r\n"), 400, "plain number"},
    {BYTES(POST "Content-Length: 0x5\r\n\r\n"), 400, "plain number"},
    {BYTES(POST "Content-Length:  5x\r\n\r\n"), 400, "plain number"},
    {BYTES(POST "Content-Length: 5 5\r\n\r\n"), 400, "plain number"},
    {BYTES(POST "Content-Length: 05\r\n\r\n"), 400, "plain number"},
    {BYTES(POST "Content-Length: 5.0\r\n\r\n"), 400, "plain number"},
    {BYTES(POST "Content-Length: 1e3\r\n\r\n"), 400, "plain number"},
    {BYTES(POST "Content-Length:\r\n\r\n"), 400, "plain number"},
    {BYTES(POST "Content-Length: \xd9\xa5\r\n\r\n"), 400, "plain number"},
    {BYTES(POST "Content-Length: 9223372036854775808\r\n\r\n"), 400, "plain number"},
    {BYTES(POST "Content-Length: 18446744073709551621\r\n\r\n"), 400, "plain number"},
    {BYTES(POST "Content-Length: 1000001\r\n\r\n"), 413, "too large"},
    {BYTES(GET "Content-Length : 5\r\n\r\n"), 400, "before its ':'"},
    /* Transfer-Encoding */
    {BYTES(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"), 400, "together"},
    {BYTES(POST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n"), 400, "together"},
    {BYTES(POST "Transfer-Encoding: xchunked\r\n\r\n"), 400, "not exactly"},
    {BYTES(POST "Transfer-Encoding: chunked, chunked\r\n\r\n"), 400, "not exactly"},
    {BYTES(POST "Transfer-Encoding: chunked, identity\r\n\r\n"), 400, "not exactly"},
    {BYTES(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"), 400, "not exactly"},
    {BYTES(POST "Transfer-Encoding: chunked;q=1\r\n\r\n"), 400, "not exactly"},
    {BYTES(POST "Transfer-Encoding: \"chunked\"\r\n\r\n"), 400, "not exactly"},
    {BYTES(POST "Transfer-Encoding: ,chunked\r\n\r\n"), 400, "not exactly"},
    {BYTES(POST "Transfer-Encoding: \xa0"
                "chunked\r\n\r\n"),
     400, "not exactly"},
    {BYTES(POST "Transfer-Encoding: \x0b"
                "chunked\r\n\r\n"),
     400, "control byte"},
    {BYTES(POST "Transfer-Encoding:\r\n\r\n"), 400, "not exactly"},
    {BYTES(POST "Transfer-Encoding:\r\n chunked\r\n\r\n"), 400, "folding"},
    {BYTES(POST "Transfer-Encoding : chunked\r\n\r\n"), 400, "before its ':'"},
    {BYTES(POST " Transfer-Encoding: chunked\r\n\r\n"), 400, "folding"},
    {BYTES(POST "X: y\nTransfer-Encoding: chunked\r\n\r\n"), 400, "without CR"},
    {BYTES(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"), 400,
     "Transfer-Encoding comes twice"},
    {BYTES(POST "Transfer-Encoding: gzip\r\n\r\n"), 501, "other than"},
    {BYTES(POST "Transfer-Encoding: identity\r\n\r\n"), 501, "other than"},
    {BYTES("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"), 400, "HTTP/1.0"},
    {BYTES(GET "Content-Length: 5\r\n\r\n"), 400, "GET and HEAD"},
    {BYTES(GET "Transfer-Encoding: chunked\r\n\r\n"), 400, "GET and HEAD"},
    {BYTES("HEAD / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n"), 400, "GET and HEAD"},
    {BYTES("CONNECT a.test:1 HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n"), 400, "CONNECT with"},
    /* Host */
    {BYTES("GET / HTTP/1.1\r\n\r\n"), 400, "Host is missing"},
    {BYTES("GET http://a.test/ HTTP/1.1\r\n\r\n"), 400, "Host is missing"},
    {BYTES(GET HOST "\r\n"), 400, "Host comes twice"},
    {BYTES(GET "host: b.test\r\n\r\n"), 400, "Host comes twice"},
    {BYTES("GET / HTTP/1.0\r\n" HOST HOST "\r\n"), 400, "Host comes twice"},
    {BYTES("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 400, "no host[:port]"},
    {BYTES("GET / HTTP/1.1\r\nHost: a.test, b.test\r\n\r\n"), 400, "no host[:port]"},
    {BYTES("GET / HTTP/1.1\r\nHost: a.test/x\r\n\r\n"), 400, "no host[:port]"},
    {BYTES("GET / HTTP/1.1\r\nHost: u@a.test\r\n\r\n"), 400, "no host[:port]"},
    {BYTES("GET / HTTP/1.1\r\nHost: a.test:\r\n\r\n"), 400, "no host[:port]"},
    {BYTES("GET / HTTP/1.1\r\nHost: a.test:99999\r\n\r\n"), 400, "no host[:port]"},
    {BYTES("GET / HTTP/1.1\r\nHost: a\xc3\xa9.test\r\n\r\n"), 400, "no host[:port]"},
    {BYTES("GET / HTTP/1.1\r\nHost: evil.test\0.a.test\r\n\r\n"), 400, "control byte"},
    {BYTES("GET http://a.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"), 400, "different hosts"},
    {BYTES("GET http://a.test/ HTTP/1.1\r\nHost: a.test:81\r\n\r\n"), 400, "different hosts"},
    {BYTES("GET http://a.test:81/ HTTP/1.1\r\n" HOST "\r\n"), 400, "different hosts"},
    {BYTES("GET http://a.test/ HTTP/1.0\r\nHost: evil.test\r\n\r\n"), 400, "different hosts"},
    {BYTES("CONNECT a.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n"), 400, "different hosts"},
    {BYTES("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:22\r\n\r\n"), 400, "different hosts"},
    {BYTES("CONNECT [dead]:443 HTTP/1.1\r\nHost: dead:443\r\n\r\n"), 400, "different hosts"},
    /* what may come once */
    {BYTES(GET "Authorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n"), 400,
     "Authorization comes twice"},
    {BYTES(GET "Proxy-Authorization: a\r\nProxy-Authorization: b\r\n\r\n"), 400, "comes twice"},
    {BYTES(POST "Content-Type: text/plain\r\nContent-Type: application/json\r\n\r\n"), 400,
     "Content-Type comes twice"},
    {BYTES(POST "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n"), 400, "Expect comes twice"},
    {BYTES(GET "Origin: null\r\nOrigin: http://a.test\r\n\r\n"), 400, "Origin comes twice"},
    {BYTES(POST "Expect: x\r\n\r\n"), 417, "Expect"},
    {BYTES(POST "Expect: 100-continue, x\r\n\r\n"), 417, "Expect"},
    {BYTES(POST "Expect:\r\n\r\n"), 417, "Expect"},
    {BYTES(GET "Connection: a b\r\n\r\n"), 400, "no list of names"},
    {BYTES(GET "Connection: a;b\r\n\r\n"), 400, "no list of names"},
    {BYTES(GET "Connection: ,,,,,,,,\r\nConnection: ,,,,,,,,\r\n\r\n"), 400, "too many"},
    /* methods and versions */
    {BYTES("TRACE / HTTP/1.1\r\n" HOST "\r\n"), 405, "not allowed"},
    {BYTES("TRACK / HTTP/1.1\r\n" HOST "\r\n"), 405, "not allowed"},
    {BYTES("BREW / HTTP/1.1\r\n" HOST "\r\n"), 405, "not allowed"},
    {BYTES("GETT / HTTP/1.1\r\n" HOST "\r\n"), 405, "not allowed"},
    {BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 405, "not allowed"},
    {BYTES("get / HTTP/1.1\r\n" HOST "\r\n"), 400, "capitals"},
    {BYTES("Get / HTTP/1.1\r\n" HOST "\r\n"), 400, "capitals"},
    {BYTES("G\"T / HTTP/1.1\r\n" HOST "\r\n"), 400, "no word"},
    {BYTES(" GET / HTTP/1.1\r\n" HOST "\r\n"), 400, "no word"},
    {BYTES("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\n\r\n"), 400, "method is too long"},
    {BYTES("GET /\r\n"), 400, "request line"},
    {BYTES("GET\r\n"), 400, "request line"},
    {BYTES("GET  / HTTP/1.1\r\n" HOST "\r\n"), 400, "URL"},
    {BYTES("GET /  HTTP/1.1\r\n" HOST "\r\n"), 400, "version"},
    {BYTES("GET / HTTP/1.1 \r\n" HOST "\r\n"), 400, "version"},
    {BYTES("GET\t/ HTTP/1.1\r\n" HOST "\r\n"), 400, "no word"},
    {BYTES("GET /\tHTTP/1.1\r\n" HOST "\r\n"), 400, "request line"},
    {BYTES("GET /a b HTTP/1.1\r\n" HOST "\r\n"), 400, "version"},
    {BYTES("GET / http/1.1\r\n" HOST "\r\n"), 400, "version"},
    {BYTES("GET / HTTP/1.10\r\n" HOST "\r\n"), 400, "version"},
    {BYTES("GET / HTTP/1.\r\n" HOST "\r\n"), 400, "version"},
    {BYTES("GET / HTTP/01.1\r\n" HOST "\r\n"), 400, "version"},
    {BYTES("GET / HTTP/0.9\r\n" HOST "\r\n"), 505, "neither"},
    {BYTES("GET / HTTP/1.2\r\n" HOST "\r\n"), 505, "neither"},
    {BYTES("GET / HTTP/2.0\r\n" HOST "\r\n"), 505, "neither"},
    {BYTES("SSH-2.0-OpenSSH_9.2\r\n"), 400, "capitals"},
    {BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), 400, "control byte"},
    /* targets */
    {BYTES("GET * HTTP/1.1\r\n" HOST "\r\n"), 400, "OPTIONS only"},
    {BYTES("GET a.test:443 HTTP/1.1\r\n" HOST "\r\n"), 400, "URL"},
    {BYTES("GET ftp://a.test/ HTTP/1.1\r\n" HOST "\r\n"), 400, "URL"},
    {BYTES("GET file:///etc/passwd HTTP/1.1\r\n" HOST "\r\n"), 400, "URL"},
    {BYTES("GET /a#b HTTP/1.1\r\n" HOST "\r\n"), 400, "target holds"},
    {BYTES("GET /\xc3\xa9 HTTP/1.1\r\n" HOST "\r\n"), 400, "target holds"},
    {BYTES("GET /\x01 HTTP/1.1\r\n" HOST "\r\n"), 400, "control byte"},
    {BYTES("GET http://u:p@a.test/ HTTP/1.1\r\n" HOST "\r\n"), 400, "user name"},
    {BYTES("GET http://a.test\\@b.test/ HTTP/1.1\r\n" HOST "\r\n"), 400, "user name"},
    {BYTES("CONNECT / HTTP/1.1\r\n" HOST "\r\n"), 400, "host"},
    {BYTES("CONNECT http://a.test:443/ HTTP/1.1\r\n" HOST "\r\n"), 400, "port"},
    {BYTES("CONNECT a.test HTTP/1.1\r\n" HOST "\r\n"), 400, "without a port"},
    {BYTES("CONNECT a.test:0 HTTP/1.1\r\n" HOST "\r\n"), 400, "port"},
    {BYTES("CONNECT a.test:65536 HTTP/1.1\r\n" HOST "\r\n"), 400, "port"},
    {BYTES("CONNECT a.test:+443 HTTP/1.1\r\n" HOST "\r\n"), 400, "port"},
    {BYTES("CONNECT a.test:0443 HTTP/1.1\r\n" HOST "\r\n"), 400, "port"},
    {BYTES("CONNECT a.test: 443 HTTP/1.1\r\n" HOST "\r\n"), 400, "port"},
    {BYTES("CONNECT a.test:443x HTTP/1.1\r\n" HOST "\r\n"), 400, "port"},
    {BYTES("CONNECT a.test:443:443 HTTP/1.1\r\n" HOST "\r\n"), 400, "port"},
    {BYTES("CONNECT * HTTP/1.1\r\n" HOST "\r\n"), 400, "host"},
};

static void test_refuses(void **state)
{
    (void)state;
    FOR_EACH(row, refused)
    {
        struct http_fault fault = {0};
        struct http_head head;
        int r = parse_request(row->text, row->len, &head, &fault);

        CHECK(r == -(int)row->status && fault.status == row->status, "'%s': %d, want -%u (%s)",
              row->text, r, row->status, r < 0 ? fault.reason : "accepted");
        CHECK(strstr(fault.reason, row->part), "'%s': '%s' does not say '%s'", row->text,
              fault.reason, row->part);
    }
}

/* ---- splits ---- */

/* Gives the first n bytes, then all, each time from memory of its own. */
static int parse_split(struct http_parser *p, const char *text, size_t len, size_t n,
                       struct http_head *head, struct http_fault *fault)
{
    char *first = malloc(n + 1);
    int r;

    assert_non_null(first);
    memcpy(first, text, n);
    r = http_parse(p, first, n, head, fault);
    free(first);
    if (r < 0) {
        int again = http_parse(p, text, len, head, fault);

        CHECK(again == r, "a refusal is not repeated: %d, then %d", r, again);
    }
    return r == 0 ? http_parse(p, text, len, head, fault) : r;
}

static void check_same(const char *text, const struct http_head *a, const struct http_head *b)
{
    CHECK(a->method == b->method && a->form == b->form && a->target.at == b->target.at &&
              a->target.len == b->target.len && a->status == b->status && a->minor == b->minor &&
              a->framing == b->framing && a->length == b->length &&
              a->keep_alive == b->keep_alive && a->n_headers == b->n_headers &&
              memcmp(a->headers, b->headers, a->n_headers * sizeof(*a->headers)) == 0,
          "'%s' is read in two ways", text);
}

static void test_splits(void **state)
{
    static const char *const good[] = {
        "\r\n" POST "Content-Length: 5\r\nX: y\r\nConnection: close\r\n\r\n",
        "GET http://a.test/x?y HTTP/1.1\r\n" HOST "Accept: */*\r\nX:\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.0\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good) + COUNT(refused); i++) {
        const char *text = i < COUNT(good) ? good[i] : refused[i - COUNT(good)].text;
        size_t len = i < COUNT(good) ? strlen(text) : refused[i - COUNT(good)].len;
        struct http_fault want = {0}, got = {0};
        struct http_head whole, head;
        int r = parse_request(text, len, &whole, &want);

        for (size_t n = 0; n <= len; n++) {
            struct http_parser p;
            int s;

            http_parser_init_request(&p, 1000000);
            s = parse_split(&p, text, len, n, &head, &got);
            CHECK(s == r, "'%s' split at %zu: %d, whole: %d", text, n, s, r);
            if (r < 0)
                CHECK(got.reason == want.reason, "'%s' split at %zu: '%s', whole: '%s'", text, n,
                      got.reason, want.reason);
            else if (n < len) /* at the end, the slices point into the copy */
                check_same(text, &whole, &head);
        }
    }
}

static void test_single_bytes(void **state)
{
    static const char text[] = POST "Content-Length: 5\r\n\r\nhello";
    struct http_fault fault = {0};
    struct http_parser p;
    struct http_head head;
    size_t n = 0;
    int r = 0;

    (void)state;
    http_parser_init_request(&p, 5);
    while (r == 0) {
        uint32_t before = p.seen;

        r = http_parse(&p, text, ++n, &head, &fault);
        CHECK(p.seen >= before && p.seen <= n, "looked at %u of %zu", p.seen, n);
    }
    assert_int_equal(r, sizeof(text) - 1 - 5);
    assert_int_equal(n, r);
}

/* ---- limits (HT-15, EG-24) ---- */

static char big[3 * LIMIT_HTTP_HEAD];

static size_t put(size_t at, const char *text)
{
    memcpy(big + at, text, strlen(text));
    return at + strlen(text);
}

static size_t fill(size_t at, char c, size_t n)
{
    memset(big + at, c, n);
    return at + n;
}

static void check_limit(const char *what, size_t len, int want)
{
    struct http_fault fault = {.reason = ""};
    struct http_head head;
    int r = parse_request(big, len, &head, &fault);

    CHECK(want < 0 ? r == want : r == (int)len, "%s: %d (%s), want %d", what, r, fault.reason,
          want);
}

static void test_line_limits(void **state)
{
    size_t n;

    (void)state;
    for (size_t more = 0; more < 2; more++) {
        n = fill(put(0, "GET /"), 'a', LIMIT_HTTP_TARGET - 1 + more);
        n = put(n, " HTTP/1.1\r\n" HOST "\r\n");
        check_limit("target", n, more ? -414 : 0);

        n = fill(put(0, GET "X: "), 'a', LIMIT_HTTP_LINE - 3 + more);
        check_limit("line", put(n, "\r\n\r\n"), more ? -431 : 0);
        if (more)
            check_limit("line without end", n, -431);
    }
    check_limit("a target without end", fill(put(0, "GET /"), 'a', 9u << 10), -414);
    check_limit("a method without end", fill(0, 'A', 9u << 10), -400);
    n = put(fill(0, 'A', 8u << 10), " / HTTP/1.1\r\n" HOST "\r\n");
    check_limit("a method of 8 KiB", n, -400);
    /* Refused for its length, although what it says would be refused as well. */
    n = put(fill(put(0, GET "X: "), 'a', 9u << 10), "\x01");
    check_limit("line", n, -431);
}

static void test_head_limits(void **state)
{
    size_t n;

    (void)state;
    for (size_t count = LIMIT_HTTP_HEADERS; count <= LIMIT_HTTP_HEADERS + 1; count++) {
        n = put(0, GET);
        for (size_t i = 1; i < count; i++)
            n = put(n, "X: y\r\n");
        n = put(n, "\r\n");
        check_limit("headers", n, count > LIMIT_HTTP_HEADERS ? -431 : 0);
    }
    /* Heads of exactly the limit, and one byte more, in a field and in the last line's place. */
    for (size_t total = LIMIT_HTTP_HEAD - 2; total <= LIMIT_HTTP_HEAD + 4; total++) {
        n = put(0, GET);
        while (total - n > LIMIT_HTTP_LINE + 16)
            n = put(fill(put(n, "X: "), 'a', 8000), "\r\n");
        n = put(fill(put(n, "X: "), 'a', total - n - 7), "\r\n\r\n");
        assert_int_equal(n, total);
        check_limit("head", n, total > LIMIT_HTTP_HEAD ? -431 : 0);
    }
}

static void test_limit_splits(void **state)
{
    (void)state;
    for (size_t total = LIMIT_HTTP_HEAD - 1; total <= LIMIT_HTTP_HEAD + 3; total++) {
        struct http_fault want = {0}, got = {0};
        struct http_parser p;
        struct http_head head;
        size_t n = put(0, GET);
        int whole, r = 0;

        while (total - n > LIMIT_HTTP_LINE + 16)
            n = put(fill(put(n, "X: "), 'a', 8000), "\r\n");
        n = put(fill(put(n, "X: "), 'a', total - n - 7), "\r\n\r\n");
        whole = parse_request(big, n, &head, &want);
        http_parser_init_request(&p, 0);
        for (size_t i = 1; i <= n && r == 0; i++)
            r = http_parse(&p, big, i, &head, &got);
        CHECK(r == whole && got.reason == want.reason, "%zu bytes: %d, byte by byte %d", total,
              whole, r);
    }
}

/* ---- responses ---- */

static void test_responses(void **state)
{
    static const struct {
        const char *text;
        enum http_method asked;
        unsigned status;
        enum http_framing framing;
        bool has_length, keep_alive;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", HTTP_GET, 200, HTTP_BY_LENGTH, true, true},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_GET, 200, HTTP_CHUNKED,
         false, true},
        {"HTTP/1.1 200 OK\r\n\r\n", HTTP_GET, 200, HTTP_UNTIL_CLOSE, false, false},
        {"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", HTTP_GET, 200, HTTP_BY_LENGTH, true,
         false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", HTTP_HEAD, 200, HTTP_NO_BODY, true, true},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_HEAD, 200, HTTP_NO_BODY,
         false, true},
        {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", HTTP_GET, 304, HTTP_NO_BODY,
         true, true},
        {"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", HTTP_GET, 204, HTTP_NO_BODY, false,
         true},
        {"HTTP/1.1 100 Continue\r\n\r\n", HTTP_POST, 100, HTTP_NO_BODY, false, true},
        {"HTTP/1.1 200 Connection established\r\nContent-Length: 9\r\n\r\n", HTTP_CONNECT, 200,
         HTTP_NO_BODY, false, true},
        {"HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\n", HTTP_CONNECT, 403, HTTP_BY_LENGTH, true,
         true},
        {"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n",
         HTTP_GET, 302, HTTP_BY_LENGTH, true, true},
        {"HTTP/1.1 200\r\n\r\n", HTTP_GET, 200, HTTP_UNTIL_CLOSE, false, false},
        {"HTTP/1.1 200 \r\n\r\n", HTTP_GET, 200, HTTP_UNTIL_CLOSE, false, false},
        {"HTTP/1.1 200 d\xe9j\xe0 vu\r\nConnection: close\r\nContent-Type: a/b\r\nContent-Type: "
         "a/b\r\nContent-Length: 1\r\n\r\n",
         HTTP_GET, 200, HTTP_BY_LENGTH, true, false},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct http_fault fault = {0};
        struct http_head head;
        int r = parse_response(row->asked, row->text, strlen(row->text), &head, &fault);

        CHECK(r == (int)strlen(row->text), "'%s': %d (%s)", row->text, r,
              r < 0 ? fault.reason : "");
        CHECK(head.status == row->status && head.framing == row->framing &&
                  head.has_length == row->has_length && head.keep_alive == row->keep_alive,
              "'%s': status %u framing %d length %d keep %d", row->text, head.status, head.framing,
              head.has_length, head.keep_alive);
    }
}

static void test_response_refusals(void **state)
{
    static const char *const rows[] = {
        "\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\n\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 600 OK\r\n\r\n",
        "HTTP/1.1 +20 OK\r\n\r\n",
        "HTTP/1.1\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "HTTP/1.1 200 a\x01\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n",
        "HTTP/1.1 200 OK\r\nSet-Cookie: a\rSet-Cookie: b\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct http_fault fault = {0};
        struct http_head head;
        int r = parse_response(HTTP_GET, rows[i], strlen(rows[i]), &head, &fault);

        CHECK(r == -502 && fault.status == 502 && fault.reason[0], "'%s': %d", rows[i], r);
    }
}

static void test_pipelined(void **state)
{
    static const char text[] = GET "\r\nGET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    struct http_fault fault = {0};
    struct http_parser p;
    struct http_head head;
    int first, second;

    (void)state;
    http_parser_init_request(&p, 0);
    first = http_parse(&p, BYTES(text), &head, &fault);
    assert_int_equal(first, strlen(GET "\r\n"));
    http_parser_init_request(&p, 0);
    second = http_parse(&p, text + first, sizeof(text) - 1 - (size_t)first, &head, &fault);
    assert_int_equal(first + second, sizeof(text) - 1);
    assert_true(is(head.url.host, "evil.test"));
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a request head is read whole", test_reads),
        CLAIM("every form of request that is fine is understood", test_accepts),
        CLAIM("what two readers could read differently is refused, with status and reason",
              test_refuses),
        CLAIM("a head split at any byte gives the same result", test_splits),
        CLAIM("single bytes are each looked at once", test_single_bytes),
        CLAIM("lines, targets and methods have an end", test_line_limits),
        CLAIM("heads and the number of their fields have an end", test_head_limits),
        CLAIM("a split does not change which limit is reached", test_limit_splits),
        CLAIM("a response's framing follows from its request and status", test_responses),
        CLAIM("an ambiguous response is a bad gateway", test_response_refusals),
        CLAIM("a second request in the same bytes is read on its own", test_pipelined),
    };

    return RUN_CLAIMS("http/head", claims);
}
