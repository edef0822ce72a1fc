/* SPDX-License-Identifier: Apache-2.0 */
#include "http/body.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/test.h"

/* A string that may hold NULs. */
#define BYTES(s) (s), sizeof(s) - 1

/* What a body gave: its payload, how many bytes it took, and how it ended. */
struct result {
    char payload[512];
    size_t n, used;
    int r;
    struct http_fault fault;
};

static void feed(struct http_body *b, const char *data, size_t len, struct result *res)
{
    size_t used = 0;

    res->r = http_body_is_done(b);
    while (res->r == 0 && used < len) {
        struct http_piece piece;

        res->r = http_body_feed(b, data + used, len - used, &piece, &res->fault);
        if (res->r < 0)
            return;
        CHECK(piece.used > 0, "no progress");
        CHECK(piece.used <= len - used && piece.at + piece.len <= piece.used,
              "took %zu of %zu, payload %zu+%zu", piece.used, len - used, piece.at, piece.len);
        assert_true(res->n + piece.len <= sizeof(res->payload));
        memcpy(res->payload + res->n, data + used + piece.at, piece.len);
        res->n += piece.len;
        used += piece.used;
    }
    res->used += used;
}

static struct result decode(enum http_framing framing, uint64_t length, const char *text,
                            size_t len, size_t split)
{
    struct result res = {0};
    struct http_body b;

    http_body_init(&b, framing, length, 200);
    feed(&b, text, split, &res);
    if (res.r == 0)
        feed(&b, text + split, len - split, &res);
    return res;
}

static const struct good {
    const char *text;
    size_t len;
    enum http_framing framing;
    uint64_t length;
    const char *payload;
    size_t left; /* what belongs to the next message */
} good[] = {
    {BYTES("GET"), HTTP_NO_BODY, 0, "", 3},
    {BYTES("GET"), HTTP_BY_LENGTH, 0, "", 3},
    {BYTES("helloGET"), HTTP_BY_LENGTH, 5, "hello", 3},
    {BYTES("0\r\n\r\nGET"), HTTP_CHUNKED, 0, "", 3},
    {BYTES("5\r\nhello\r\n0\r\n\r\nGET"), HTTP_CHUNKED, 0, "hello", 3},
    {BYTES("1\r\na\r\nA\r\n0123456789\r\n0b\r\n0123456789x\r\n000\r\n\r\n"), HTTP_CHUNKED, 0,
     "a01234567890123456789x", 0},
    {BYTES("0000000000000005\r\nhello\r\n0000000000000000\r\n\r\n"), HTTP_CHUNKED, 0, "hello", 0},
    {BYTES("5;a=b; c=\"d;e\"\r\nhello\r\n0;x\r\n\r\n"), HTTP_CHUNKED, 0, "hello", 0},
    {BYTES("2\r\n\r\n\r\n0\r\n\r\n"), HTTP_CHUNKED, 0, "\r\n", 0},
    {BYTES("1\r\na\r\n0\r\nX-Sum: 1\r\nX-Empty:\r\n\r\nGET"), HTTP_CHUNKED, 0, "a", 3},
    {BYTES("0\r\nContent-Lengthy: 5\r\nHosts: x\r\n\r\n"), HTTP_CHUNKED, 0, "", 0},
};

static void test_decodes(void **state)
{
    (void)state;
    FOR_EACH(row, good)
    {
        for (size_t split = 0; split <= row->len; split++) {
            struct result res = decode(row->framing, row->length, row->text, row->len, split);

            CHECK(res.r == 1, "'%s' split at %zu: %d (%s)", row->text, split, res.r,
                  res.r < 0 ? res.fault.reason : "");
            CHECK(res.used == row->len - row->left, "'%s' split at %zu: took %zu", row->text, split,
                  res.used);
            CHECK(res.n == strlen(row->payload) && memcmp(res.payload, row->payload, res.n) == 0,
                  "'%s' split at %zu: '%.*s'", row->text, split, (int)res.n, res.payload);
        }
    }
}

/* EG-23, HT-17. */
static const struct bad {
    const char *text;
    size_t len;
    unsigned status;
    const char *part;
} bad[] = {
    {BYTES("FFFFFFFFFFFFFFFFF\r\n"), 400, "16 digits"},
    {BYTES("00000000000000005\r\nhello\r\n"), 400, "16 digits"},
    {BYTES("FFFFFFFFFFFFFFFF\r\n"), 400, "out of range"},
    {BYTES("8000000000000000\r\n"), 400, "out of range"},
    {BYTES("7FFFFFFFFFFFFFFF\r\n"), 413, "too large"},
    {BYTES("c9\r\n"), 413, "too large"}, /* 201 */
    {BYTES("-1\r\n"), 400, "no size"},
    {BYTES("+5\r\nhello\r\n"), 400, "no size"},
    {BYTES("0x10\r\n"), 400, "neither"},
    {BYTES("x10\r\n"), 400, "no size"},
    {BYTES(" 5\r\nhello\r\n"), 400, "no size"},
    {BYTES("5 \r\nhello\r\n"), 400, "neither"},
    {BYTES("5\t;x\r\nhello\r\n"), 400, "neither"},
    {BYTES("\r\n"), 400, "no size"},
    {BYTES(";x\r\n"), 400, "no size"},
    {BYTES("5_0\r\nhello\r\n"), 400, "neither"},
    {BYTES("5,5\r\nhello\r\n"), 400, "neither"},
    {BYTES("1;\na\r\n0\r\n\r\n"), 400, "bare LF"},
    {BYTES("1;\ra\r\n"), 400, "without its LF"},
    {BYTES("1;a\0b\r\n"), 400, "control byte"},
    {BYTES("1;a=\"\r\n\"x\r\n"), 400, "longer than its size"},
    {BYTES("5\nhello\n0\n\n"), 400, "neither"},
    {BYTES("5\rhello\r0\r\r"), 400, "without its LF"},
    {BYTES("5\r\nhello\n0\r\n\r\n"), 400, "longer than its size"},
    {BYTES("5\r\nhello!\r\n0\r\n\r\n"), 400, "longer than its size"},
    {BYTES("5\r\nhello0\r\n\r\n"), 400, "longer than its size"},
    {BYTES("5\r\nhello\rx"), 400, "without its LF"},
    {BYTES("5\r\nhello\r\n\r\n"), 400, "no size"},
    {BYTES("0\r\n\n"), 400, "trailer field is malformed"},
    {BYTES("0\r\n\rx"), 400, "without its LF"},
    {BYTES("0\r\nHost: evil.test\r\n\r\n"), 400, "only stand in the head"},
    {BYTES("0\r\nhost:\r\n\r\n"), 400, "only stand in the head"},
    {BYTES("0\r\nX: y\r\nContent-Length: 5\r\n\r\n"), 400, "only stand in the head"},
    {BYTES("0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400, "only stand in the head"},
    {BYTES("0\r\nAuthorization: Bearer x\r\n\r\n"), 400, "only stand in the head"},
    {BYTES("0\r\nproxy-authorization-of-some-very-long-kind: x\r\n\r\n"), 400,
     "only stand in the head"},
    {BYTES("0\r\nX : y\r\n\r\n"), 400, "malformed"},
    {BYTES("0\r\n X: y\r\n\r\n"), 400, "malformed"},
    {BYTES("0\r\n: y\r\n\r\n"), 400, "malformed"},
    {BYTES("0\r\nX\r\n\r\n"), 400, "malformed"},
    {BYTES("0\r\nX: y\n\r\n"), 400, "bare LF"},
    {BYTES("0\r\nX: y\r\n z\r\n\r\n"), 400, "malformed"},
    {BYTES("0\r\nX: y\0\r\n\r\n"), 400, "control byte"},
    {BYTES("0\r\nX: y\rz\r\n\r\n"), 400, "without its LF"},
    {BYTES("0\r\nGET / HTTP/1.1\r\n"), 400, "malformed"},
};

static void test_refuses(void **state)
{
    (void)state;
    FOR_EACH(row, bad)
    {
        for (size_t split = 0; split <= row->len; split++) {
            struct result res = decode(HTTP_CHUNKED, 0, row->text, row->len, split);

            CHECK(res.r == -(int)row->status && res.fault.status == row->status,
                  "'%s' split at %zu: %d (%s)", row->text, split, res.r,
                  res.r < 0 ? res.fault.reason : "");
            CHECK(strstr(res.fault.reason, row->part), "'%s': '%s' does not say '%s'", row->text,
                  res.fault.reason, row->part);
        }
    }
}

static void test_refusal_stays(void **state)
{
    struct http_fault fault = {0};
    struct http_piece piece;
    struct http_body b;

    (void)state;
    http_body_init(&b, HTTP_CHUNKED, 0, 100);
    assert_int_equal(http_body_feed(&b, "x", 1, &piece, &fault), -400);
    assert_int_equal(http_body_feed(&b, "0\r\n\r\n", 5, &piece, &fault), -400);
    assert_int_equal(http_body_close(&b, &fault), -400);
    assert_true(strstr(fault.reason, "no size") != NULL);
}

static void test_closes(void **state)
{
    static const struct {
        enum http_framing framing;
        uint64_t length;
        const char *text;
        bool fine;
    } rows[] = {
        {HTTP_NO_BODY, 0, "", true},
        {HTTP_BY_LENGTH, 5, "hello", true},
        {HTTP_BY_LENGTH, 5, "hell", false},
        {HTTP_UNTIL_CLOSE, 0, "hello", true},
        {HTTP_UNTIL_CLOSE, 0, "", true},
        {HTTP_CHUNKED, 0, "0\r\n\r\n", true},
        {HTTP_CHUNKED, 0, "0\r\n\r", false},
        {HTTP_CHUNKED, 0, "0\r\n", false},
        {HTTP_CHUNKED, 0, "5\r\nhello\r\n", false},
        {HTTP_CHUNKED, 0, "", false},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct result res = {0};
        struct http_body b;

        http_body_init(&b, row->framing, row->length, 100);
        feed(&b, row->text, strlen(row->text), &res);
        CHECK((http_body_close(&b, &res.fault) == 0) == row->fine, "'%s'", row->text);
        CHECK(row->fine == http_body_is_done(&b), "'%s' is done: %d", row->text, !row->fine);
    }
}

static void test_limits(void **state)
{
    struct http_fault fault = {0};
    char text[LIMIT_HTTP_TRAILER + 16];
    struct http_piece piece;
    struct http_body b;

    (void)state;
    http_body_init(&b, HTTP_UNTIL_CLOSE, 0, 5);
    assert_int_equal(http_body_feed(&b, "hello!", 6, &piece, &fault), 0);
    assert_int_equal(piece.len, 5);
    assert_int_equal(http_body_feed(&b, "!", 1, &piece, &fault), -413);

    for (size_t more = 0; more < 2; more++) { /* counted over all chunks of a body */
        size_t n = LIMIT_HTTP_EXTENSION / 2;

        http_body_init(&b, HTTP_CHUNKED, 0, 5);
        memset(text, 'x', sizeof(text));
        memcpy(text, "1;", 2);
        memcpy(text + 2 + n, "\r\na", 3);
        assert_int_equal(http_body_feed(&b, text, n + 5, &piece, &fault), 0);
        memset(text, 'x', sizeof(text));
        memcpy(text, "\r\n0;", 4);
        memcpy(text + 4 + n + more, "\r\n\r\n", 4);
        assert_int_equal(http_body_feed(&b, text, n + more + 8, &piece, &fault), more ? -400 : 1);
    }
    http_body_init(&b, HTTP_CHUNKED, 0, 5);
    memset(text, 'x', sizeof(text));
    memcpy(text, "0\r\nX:", 5);
    assert_int_equal(http_body_feed(&b, text, sizeof(text), &piece, &fault), -400);
    assert_true(strstr(fault.reason, "trailer section") != NULL);
}

static void test_total_of_chunks(void **state)
{
    struct result res = {0};
    struct http_body b;

    (void)state;
    http_body_init(&b, HTTP_CHUNKED, 0, 9);
    feed(&b, BYTES("5\r\nhello\r\n5\r\nhello\r\n"), &res);
    assert_int_equal(res.r, -413);
    assert_int_equal(res.n, 5);
}

static void test_moves_unseen(void **state)
{
    struct http_fault fault = {0};
    struct http_piece piece;
    struct http_body b;

    (void)state;
    http_body_init(&b, HTTP_CHUNKED, 0, LIMIT_HTTP_BODY);
    assert_int_equal(http_body_run(&b), 0);
    assert_int_equal(http_body_feed(&b, "10000\r\n", 7, &piece, &fault), 0);
    assert_int_equal(http_body_run(&b), 65536);
    http_body_moved(&b, 65535);
    assert_int_equal(http_body_run(&b), 1);
    http_body_moved(&b, 1);
    assert_int_equal(http_body_run(&b), 0);
    assert_int_equal(http_body_feed(&b, "\r\n0\r\n\r\n", 7, &piece, &fault), 1);
    http_body_init(&b, HTTP_BY_LENGTH, 7, LIMIT_HTTP_BODY);
    http_body_moved(&b, 7);
    assert_true(http_body_is_done(&b));
}

static void test_encodes(void **state)
{
    static const char want[] = "5\r\nhello\r\n1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n";
    autobuf b;
    struct result res;

    (void)state;
    buf_init(&b, 1000);
    http_write_chunk(&b, "hello", 5);
    http_write_chunk(&b, "", 0);
    http_write_chunk(&b, "abcdefghijklmnopqrstuvwxyz", 26);
    http_write_last_chunk(&b);
    assert_false(b.failed);
    assert_string_equal(b.data, want);
    res = decode(HTTP_CHUNKED, 0, b.data, b.len, 0);
    assert_int_equal(res.r, 1);
    assert_int_equal(res.n, 31);
    http_write_chunk_size(&b, 0);
    assert_true(b.failed);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a body split at any byte gives the same payload and ends at the same byte",
              test_decodes),
        CLAIM("what is not exactly chunked is refused, wherever it is split", test_refuses),
        CLAIM("a refusal is final", test_refusal_stays),
        CLAIM("a body that closes early is told from one that ends by closing", test_closes),
        CLAIM("bodies, extensions and trailers have an end", test_limits),
        CLAIM("the maximum counts all chunks together", test_total_of_chunks),
        CLAIM("payload may be moved without being looked at", test_moves_unseen),
        CLAIM("what the encoder writes the decoder reads", test_encodes),
    };

    return RUN_CLAIMS("http/body", claims);
}
