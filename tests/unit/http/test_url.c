/* SPDX-License-Identifier: Apache-2.0 */
#include "http/url.h"

#include <string.h>

#include "tests/test.h"

/* A string that may hold NULs. */
#define BYTES(s) (s), sizeof(s) - 1

static bool is(struct http_slice s, const char *text)
{
    return s.len == strlen(text) && (s.len == 0 || memcmp(s.at, text, s.len) == 0);
}

static void test_authorities(void **state)
{
    static const struct {
        const char *text, *host;
        unsigned port;
        bool is_ipv6;
    } rows[] = {
        {"a.test", "a.test", 0, false},
        {"A.Test.:443", "A.Test.", 443, false},
        {"under_score.test:1", "under_score.test", 1, false},
        {"127.0.0.1:65535", "127.0.0.1", 65535, false},
        {"0x7f.1", "0x7f.1", 0, false}, /* the canonicaliser's to refuse */
        {"[::1]", "::1", 0, true},
        {"[::ffff:127.0.0.1]:80", "::ffff:127.0.0.1", 80, true},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct http_fault fault = {0};
        struct http_url url;
        int r = http_authority_parse(row->text, strlen(row->text), &url, &fault);

        CHECK(r == 0, "'%s': %s", row->text, fault.reason);
        CHECK(is(url.host, row->host) && url.port == row->port && url.is_ipv6 == row->is_ipv6 &&
                  is(url.authority, row->text),
              "'%s': host '%.*s' port %u", row->text, (int)url.host.len, url.host.at, url.port);
    }
}

/* EG-05, EG-11, EG-12, EG-15. */
static void test_bad_authorities(void **state)
{
    static const struct {
        const char *text;
        size_t len;
    } rows[] = {
        {BYTES("")},
        {BYTES(":80")},
        {BYTES("a.test:")},
        {BYTES("a.test:0")},
        {BYTES("a.test:00")},
        {BYTES("a.test:0443")},
        {BYTES("a.test:+443")},
        {BYTES("a.test:-1")},
        {BYTES("a.test: 443")},
        {BYTES("a.test:443 ")},
        {BYTES("a.test:443x")},
        {BYTES("a.test:0x1bb")},
        {BYTES("a.test:65536")},
        {BYTES("a.test:4294967739")},
        {BYTES("a.test:443:443")},
        {BYTES("::1:443")},
        {BYTES("[::1")},
        {BYTES("[]")},
        {BYTES("[:]x")},
        {BYTES("[::1]443")},
        {BYTES("[::1]]:443")},
        {BYTES("[[::1]]:443")},
        {BYTES("[fe80::1%25lo]")},
        {BYTES("[fe80::1%lo]")},
        {BYTES("[v1.a:b]")},
        {BYTES("[::1\0]")},
        {BYTES("a test")},
        {BYTES(" a.test")},
        {BYTES("a.test ")},
        {BYTES("a\ttest")},
        {BYTES("a.test\r\n")},
        {BYTES("evil.test\0.a.test")},
        {BYTES("a\x7f.test")},
        {BYTES("\xd0\xb0.test")},
        {BYTES("\xef\xbc\x91.0.0.1")},
        {BYTES("%61.test")},
        {BYTES("*.test")},
        {BYTES("u@a.test")},
        {BYTES("u:p@a.test")},
        {BYTES("a.test/")},
        {BYTES("a.test\\b")},
        {BYTES("a.test?x")},
        {BYTES("a.test#x")},
        {BYTES("a.test,b.test")},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct http_url url = {.port = 7};
        struct http_fault fault = {0};
        int r = http_authority_parse(row->text, row->len, &url, &fault);

        CHECK(r == -400 && fault.status == 400 && fault.reason[0], "'%s' was read", row->text);
        CHECK(url.port == 7, "'%s': written although refused", row->text);
    }
}

static void test_host_length(void **state)
{
    struct http_fault fault = {0};
    char text[LIMIT_HTTP_HOST + 8];
    struct http_url url;

    (void)state;
    memset(text, 'a', sizeof(text));
    assert_int_equal(http_authority_parse(text, LIMIT_HTTP_HOST, &url, &fault), 0);
    assert_int_equal(http_authority_parse(text, LIMIT_HTTP_HOST + 1, &url, &fault), -400);
}

static void test_urls(void **state)
{
    static const struct {
        const char *text, *host, *path, *query;
        unsigned port;
        bool https, has_query;
    } rows[] = {
        {"http://a.test", "a.test", "", "", 80, false, false},
        {"http://a.test/", "a.test", "/", "", 80, false, false},
        {"HTTPS://a.test:8443/x/../%2e?q=/?", "a.test", "/x/../%2e", "q=/?", 8443, true, true},
        {"https://[::1]?", "::1", "", "", 443, true, true},
        {"http://a.test?x@y", "a.test", "", "x@y", 80, false, true},
        {"http://a.test//b.test/@", "a.test", "//b.test/@", "", 80, false, false},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct http_fault fault = {0};
        struct http_url url;
        int r = http_url_parse(row->text, strlen(row->text), &url, &fault);

        CHECK(r == 0, "'%s': %s", row->text, fault.reason);
        CHECK(is(url.host, row->host) && is(url.path, row->path) && is(url.query, row->query) &&
                  http_url_port(&url) == row->port && url.https == row->https &&
                  url.has_query == row->has_query,
              "'%s': host '%.*s' path '%.*s' query '%.*s' port %u", row->text, (int)url.host.len,
              url.host.at, (int)url.path.len, url.path.at, (int)url.query.len, url.query.at,
              http_url_port(&url));
    }
}

static void test_bad_urls(void **state)
{
    static const struct {
        const char *text;
        size_t len;
    } rows[] = {
        {BYTES("")},
        {BYTES("http")},
        {BYTES("http:")},
        {BYTES("http:/a.test")},
        {BYTES("http://")},
        {BYTES("http:///x")},
        {BYTES("http://?x")},
        {BYTES("http:\\\\a.test")},
        {BYTES(" http://a.test")},
        {BYTES("httpx://a.test")},
        {BYTES("ftp://a.test/")},
        {BYTES("ws://a.test/")},
        {BYTES("//a.test/")},
        {BYTES("a.test")},
        {BYTES("http://u@a.test/")},
        {BYTES("http://u:p@a.test/")},
        {BYTES("http://a.test:80@b.test/")},
        {BYTES("http://@a.test/")},
        {BYTES("http://a.test\\b/")},
        {BYTES("http://a.test#b")},
        {BYTES("http://a.test/#b")},
        {BYTES("http://a.test/ b")},
        {BYTES("http://a.test/\tb")},
        {BYTES("http://a.test/\0b")},
        {BYTES("http://a.test/\r\nX: y")},
        {BYTES("http://a.test/\x7f")},
        {BYTES("http://a.test/\xc3\xa9")},
        {BYTES("http://a.test/?a b")},
        {BYTES("http://a.test:/")},
        {BYTES("http://a.test:99999/")},
        {BYTES("http://[::1/")},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct http_fault fault = {0};
        struct http_url url;

        CHECK(http_url_parse(row->text, row->len, &url, &fault) == -400 && fault.reason[0],
              "'%s' was read", row->text);
    }
}

static void test_paths(void **state)
{
    struct http_fault fault = {0};
    struct http_url url;

    (void)state;
    assert_int_equal(http_path_parse("/a/b?c?d", 8, &url, &fault), 0);
    assert_true(is(url.path, "/a/b") && is(url.query, "c?d") && url.has_query);
    assert_int_equal(http_path_parse("/", 1, &url, &fault), 0);
    assert_true(is(url.path, "/") && !url.has_query);
    assert_int_equal(http_path_parse("", 0, &url, &fault), -400);
    assert_int_equal(http_path_parse("a", 1, &url, &fault), -400);
    assert_int_equal(http_path_parse("/a b", 4, &url, &fault), -400);
    assert_int_equal(http_path_parse("/a\0b", 4, &url, &fault), -400);
}

static void test_segments(void **state)
{
    static const struct {
        const char *text, *want; /* NULL: refused */
    } rows[] = {
        {"", ""},
        {"exec", "exec"},
        {"%65xec", "exec"},
        {"a%20b", "a b"},
        {"%2e%2E", ".."},
        {"%c3%A9", "\xc3\xa9"},
        {"a+b", "a+b"},
        {"%252f", "%2f"},
        {"%00", NULL},
        {"a%2fb", NULL},
        {"a%2Fb", NULL},
        {"a/b", NULL},
        {"%", NULL},
        {"%4", NULL},
        {"a%", NULL},
        {"%4g", NULL},
        {"%g4", NULL},
        {"%%41", NULL},
        {"% 41", NULL},
        {"%u0041", NULL},
        {"0123456", "0123456"},
        {"01234567", NULL},
        {"012345%36", "0123456"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct http_fault fault = {0};
        char out[8];
        int r = http_segment_decode(row->text, strlen(row->text), out, sizeof(out), &fault);

        CHECK((r >= 0) == (row->want != NULL), "'%s': %d", row->text, r);
        if (row->want)
            CHECK(r == (int)strlen(row->want) && strcmp(out, row->want) == 0, "'%s': '%s'",
                  row->text, out);
    }
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a host and port are handed on as written", test_authorities),
        CLAIM("what is no host, or no plain port, is refused", test_bad_authorities),
        CLAIM("a host has an end", test_host_length),
        CLAIM("an absolute URL is taken apart", test_urls),
        CLAIM("no user names, fragments, blanks, control bytes or other schemes", test_bad_urls),
        CLAIM("a path and its query are kept raw", test_paths),
        CLAIM("a segment decodes once, and never into a NUL or a '/'", test_segments),
    };

    return RUN_CLAIMS("http/url", claims);
}
