/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/socks.h"

#include "tests/test.h"

#define B(s)  s, sizeof(s) - 1
#define HELLO "\5\1\0"

/* Feeds in steps and takes what is sent along; 0: all at once. Returns how many bytes were used. */
static size_t feed(struct socks *s, const char *data, size_t len, size_t step, char *sent,
                   size_t *n_sent)
{
    size_t at = 0, used;
    enum socks_state state = SOCKS_MORE;

    socks_init(s);
    *n_sent = 0;
    while (at < len && (state == SOCKS_MORE || state == SOCKS_SEND)) {
        size_t n = step && step < len - at ? step : len - at;

        state = socks_feed(s, (const uint8_t *)data + at, n, &used);
        at += used;
        if (state == SOCKS_SEND || state == SOCKS_CLOSE) {
            memcpy(sent + *n_sent, s->reply, s->reply_len);
            *n_sent += s->reply_len;
        }
    }
    return at;
}

static void test_connect(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *host;
        uint16_t port;
        enum host_kind kind;
    } rows[] = {
        {B(HELLO "\5\1\0\3\14allowed.test\1\273"), "allowed.test", 443, HOST_NAME},
        {B(HELLO "\5\1\0\3\15ALLOWED.test.\0\120"), "allowed.test", 80, HOST_NAME},
        {B("\5\2\2\0"
           "\5\1\0\1\177\0\0\1\377\377"),
         "127.0.0.1", 65535, HOST_V4},
        {B(HELLO "\5\1\0\3\0119.9.9.9.9\0\1"), NULL, 0, HOST_NAME},
        {B(HELLO "\5\1\0\3\0079.9.9.9\0\1"), "9.9.9.9", 1, HOST_V4},
        {B(HELLO "\5\1\0\3\3::1\0\1"), "::1", 1, HOST_V6},
        {B(HELLO "\5\1\0\4\0\0\0\0\0\0\0\0\0\0\377\377\177\0\0\1\0\1"), "::ffff:127.0.0.1", 1,
         HOST_V6},
    };
    struct socks s;
    char sent[64], tail[600];
    size_t n_sent;

    (void)state;
    FOR_EACH(row, rows)
    {
        memcpy(tail, row->bytes, row->len);
        memcpy(tail + row->len, "tunnel", 6);
        for (size_t step = 0; step <= row->len; step++) {
            size_t used = feed(&s, tail, row->len + 6, step, sent, &n_sent);

            CHECK(s.state == (row->host ? SOCKS_CONNECT : SOCKS_CLOSE), "row %ld by %zu: %d %s",
                  (long)(row - rows), step, s.state, s.problem);
            CHECK(used == row->len, "row %ld: %zu used", (long)(row - rows), used);
            assert_memory_equal(sent, "\5\0", 2);
            if (!row->host)
                continue;
            assert_int_equal(n_sent, 2);
            CHECK_STR(s.host.text, row->host, row->bytes);
            assert_int_equal(s.host.kind, row->kind);
            assert_int_equal(s.port, row->port);
        }
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *sent;
        size_t n_sent;
        const char *why;
    } rows[] = {
#define NO(code) \
    B("\5\0"     \
      "\5" code "\0\1\0\0\0\0\0\0")
        {B("\4\1\0\120\1\2\3\4\0"), B("\0\133\0\0\0\0\0\0"), "SOCKS4"},
        {B("\4\1\0\120\0\0\0\1\0evil.test\0"), B("\0\133\0\0\0\0\0\0"), "SOCKS4"},
        {B("\5\0"), B("\5\377"), "authenticate"},
        {B("\5\1\2"), B("\5\377"), "authenticate"},
        {B("\5\3\1\2\3"), B("\5\377"), "authenticate"},
        {B(HELLO "\4\1\0\1"), NO("\1"), "not SOCKS5"},
        {B(HELLO "\5\2\0\1\1\2\3\4\0\120"), NO("\7"), "BIND"},
        {B(HELLO "\5\3\0\1\0\0\0\0\0\0"), NO("\7"), "UDP"},
        {B(HELLO "\5\0\0\1\1\2\3\4\0\120"), NO("\7"), "unknown command"},
        {B(HELLO "\5\360\0\1\1\2\3\4\0\120"), NO("\7"), "unknown command"},
        {B(HELLO "\5\1\0\2\1"), NO("\10"), "type of address"},
        {B(HELLO "\5\1\0\0\1"), NO("\10"), "type of address"},
        {B(HELLO "\5\1\1\1\1\2\3\4\0\120"), NO("\1"), "reserved"},
        {B(HELLO "\5\1\0\1\1\2\3\4\0\0"), NO("\1"), "no port"},
        {B(HELLO "\5\1\0\3\0\0\120"), NO("\1"), "not a host"},
        {B(HELLO "\5\1\0\3\27evil.test\0.allowed.test\1\273"), NO("\1"), "not a host"}, /* EG-12 */
        {B(HELLO "\5\1\0\3\14allowed_test\1\273"), NO("\1"), "not a host"},
        {B(HELLO "\5\1\0\3\15allowed.test\n\1\273"), NO("\1"), "not a host"},
        {B(HELLO "\5\1\0\3\0122130706433\1\273"), NO("\1"), "not a host"},
        {B(HELLO "\5\1\0\3\5[::1]\1\273"), NO("\1"), "not a host"},
    };
    struct socks s;
    char sent[64];
    size_t n_sent;

    (void)state;
    FOR_EACH(row, rows)
    {
        for (size_t step = 0; step < 5; step++) {
            (void)feed(&s, row->bytes, row->len, step, sent, &n_sent);
            CHECK(s.state == SOCKS_CLOSE, "row %ld: %d", (long)(row - rows), s.state);
            CHECK(strstr(s.problem, row->why), "row %ld: %s", (long)(row - rows), s.problem);
            CHECK(n_sent == row->n_sent && memcmp(sent, row->sent, n_sent) == 0,
                  "row %ld: %zu bytes are sent", (long)(row - rows), n_sent);
        }
    }
}

static void test_longest(void **state)
{
    char greeting[2 + 255], request[3 + 262] = HELLO "\5\1\0\3\375", sent[64];
    struct socks s;
    size_t n_sent;

    (void)state;
    memset(greeting, 9, sizeof(greeting));
    memcpy(greeting, "\5\377", 2);
    greeting[256] = 0; /* the last method is the one */
    assert_int_equal(feed(&s, greeting, sizeof(greeting), 0, sent, &n_sent), sizeof(greeting));
    assert_int_equal(s.state, SOCKS_SEND);
    memset(request + 8, 'a', 253);
    request[8 + 63] = request[8 + 127] = request[8 + 191] = '.';
    request[8 + 253] = 1;
    request[8 + 254] = 1;
    assert_int_equal(feed(&s, request, 8 + 255, 0, sent, &n_sent), 8 + 255);
    assert_int_equal(s.state, SOCKS_CONNECT);
    assert_int_equal(strlen(s.host.text), 253);
    request[7] = (char)255; /* all that the length can say */
    memset(request + 8 + 253, 'a', 2);
    assert_int_equal(feed(&s, request, 8 + 255, 0, sent, &n_sent), 8 + 255);
    assert_int_equal(s.state, SOCKS_MORE);
    assert_int_equal(socks_feed(&s, (const uint8_t *)"\1\1x", 3, &n_sent), SOCKS_CLOSE);
    assert_int_equal(n_sent, 2);
}

static void test_others(void **state)
{
    struct socks s;
    uint8_t out[LIMIT_SOCKS_REPLY];
    size_t used;

    (void)state;
    socks_init(&s);
    assert_int_equal(socks_feed(&s, (const uint8_t *)"CONNECT a:1", 11, &used), SOCKS_NOT);
    assert_int_equal(used, 0);
    assert_int_equal(socks_reply(SOCKS_DENIED, out), 10);
    assert_memory_equal(out, "\5\2\0\1\0\0\0\0\0\0", 10);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a CONNECT is read however it is cut, and not a byte more", test_connect),
        CLAIM("everything else is answered with its code", test_refused),
        CLAIM("the longest messages fit", test_longest),
        CLAIM("what is not SOCKS is left alone", test_others),
    };

    return RUN_CLAIMS("egress/socks", claims);
}
