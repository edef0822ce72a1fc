/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/host.h"

#include <arpa/inet.h>

#include "tests/test.h"

#define L63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define L61 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void test_canonical(void **state)
{
    static const struct {
        const char *in, *out;
        enum host_form form;
        enum host_kind kind;
    } rows[] = {
        {"allowed.test", "allowed.test", HOST_BRACKETED, HOST_NAME},
        {"Allowed.TEST", "allowed.test", HOST_BRACKETED, HOST_NAME},
        {"allowed.test.", "allowed.test", HOST_BRACKETED, HOST_NAME},
        {"localhost", "localhost", HOST_BRACKETED, HOST_NAME},
        {"a", "a", HOST_BARE, HOST_NAME},
        {"r3---sn-x.example", "r3---sn-x.example", HOST_BARE, HOST_NAME},
        {"xn--bcher-kva.example", "xn--bcher-kva.example", HOST_BARE, HOST_NAME},
        {"xn--0.test", "xn--0.test", HOST_BARE, HOST_NAME},
        {"1.2.3.test", "1.2.3.test", HOST_BARE, HOST_NAME},
        {"4.in-addr.arpa", "4.in-addr.arpa", HOST_BARE, HOST_NAME},
        {"0x7f.example", "0x7f.example", HOST_BARE, HOST_NAME},
        {"1.0xg", "1.0xg", HOST_BARE, HOST_NAME},
        {L63 "." L63 "." L63 "." L61, L63 "." L63 "." L63 "." L61, HOST_BARE, HOST_NAME},
        {L63 "." L63 "." L63 "." L61 ".", L63 "." L63 "." L63 "." L61, HOST_BARE, HOST_NAME},
        {"127.0.0.1", "127.0.0.1", HOST_BRACKETED, HOST_V4},
        {"255.255.255.255", "255.255.255.255", HOST_BARE, HOST_V4},
        {"0.0.0.0", "0.0.0.0", HOST_BARE, HOST_V4},
        {"[::1]", "::1", HOST_BRACKETED, HOST_V6},
        {"::1", "::1", HOST_BARE, HOST_V6},
        {"[2001:DB8:0:0::0:7]", "2001:db8::7", HOST_BRACKETED, HOST_V6},
        {"[::ffff:7f00:1]", "::ffff:127.0.0.1", HOST_BRACKETED, HOST_V6},
        {"::ffff:127.0.0.1", "::ffff:127.0.0.1", HOST_BARE, HOST_V6},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct host h, again;
        struct error err;

        CHECK_OK(host_parse(row->in, strlen(row->in), row->form, &h, &err), err);
        CHECK_STR(h.text, row->out, row->in);
        CHECK(h.kind == row->kind, "%s: kind %d", row->in, h.kind);
        CHECK_OK(host_parse(h.text, strlen(h.text), HOST_BARE, &again, &err), err);
        CHECK(host_equal(&h, &again), "%s: its canonical form is another host", row->in);
    }
}

/* EG-04, EG-05, EG-11, EG-12. */
static void test_refused(void **state)
{
#define TEXT(s) s, sizeof(s) - 1
    static const struct {
        const char *in;
        size_t len;
        const char *why;
    } rows[] = {
        {TEXT(""), "empty"},
        {TEXT("."), "empty"},
        {TEXT(".."), "label is empty"},
        {TEXT("a..b"), "label is empty"},
        {TEXT(".a"), "label is empty"},
        {TEXT("allowed.test.."), "label is empty"},
        {TEXT(L63 "a.test"), "63"},
        {TEXT(L63 "." L63 "." L63 "." L61 "a"), "253"},
        {TEXT("-a.test"), "dash"},
        {TEXT("a-.test"), "dash"},
        {TEXT("a_b.test"), "underscore"},
        {TEXT("*"), "'*'"},
        {TEXT("*.allowed.test"), "'*'"},
        {TEXT("%61llowed.test"), "'%'"},
        {TEXT("user@allowed.test"), "'@'"},
        {TEXT("allowed.test/x"), "slash"},
        {TEXT("allowed.test\\x"), "slash"},
        {TEXT("allowed.test#x"), "no letter"},
        {TEXT("allowed.test?x"), "no letter"},
        {TEXT("allowed.test,evil.test"), "no letter"},
        {TEXT("\xd0\xb0llowed.test"), "ASCII"},     /* a Cyrillic a */
        {TEXT("allowed\xe3\x80\x82test"), "ASCII"}, /* an ideographic full stop */
        {TEXT(" allowed.test"), "blank"},
        {TEXT("allowed.test\t"), "blank"},
        {TEXT("evil.test\0.allowed.test"), "NUL"},
        {TEXT("allowed.test\0"), "NUL"},
        {TEXT("allowed.test\r"), "control"},
        {TEXT("allowed.test\n"), "control"},
        {TEXT("allowed.test\x7f"), "control"},
        {TEXT("allowed.test:443"), "':'"},
        {TEXT("2130706433"), "disguise"},
        {TEXT("0x7f000001"), "disguise"},
        {TEXT("0X7F000001"), "disguise"},
        {TEXT("0x"), "disguise"},
        {TEXT("0x7f.1"), "disguise"},
        {TEXT("1.0x7f"), "disguise"},
        {TEXT("017700000001"), "disguise"},
        {TEXT("127.1"), "disguise"},
        {TEXT("127.0.1"), "disguise"},
        {TEXT("0"), "disguise"},
        {TEXT("0177.0.0.1"), "disguise"},
        {TEXT("127.000.000.001"), "disguise"},
        {TEXT("127.0.0.1."), "disguise"},
        {TEXT("256.1.1.1"), "disguise"},
        {TEXT("1.2.3.4.5"), "disguise"},
        {TEXT("foo.123"), "disguise"},
        {TEXT("\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1"), "ASCII"},
        {TEXT("::1"), "':'"},
        {TEXT("[::1"), "brackets"},
        {TEXT("::1]"), "':'"},
        {TEXT("[]"), "no IPv6"},
        {TEXT("["), "brackets"},
        {TEXT("[[::1]]"), "brackets"},
        {TEXT("[::1]]"), "brackets"},
        {TEXT("[127.0.0.1]"), "no IPv6"},
        {TEXT("[fe80::1%25lo]"), "'%'"},
        {TEXT("[fe80::1%lo]"), "'%'"},
        {TEXT("[1::2::3]"), "no IPv6"},
        {TEXT("[12345::]"), "no IPv6"},
        {TEXT("[:1]"), "no IPv6"},
        {TEXT("[::ffff:0177.0.0.1]"), "no IPv6"},
        {TEXT("[v1.x]"), "no letter"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct host h = {.text = "untouched"};
        struct error err = {0};

        CHECK(host_parse(row->in, row->len, HOST_BRACKETED, &h, &err) == -ERR_INVALID,
              "'%s' was taken as '%s'", row->in, h.text);
        CHECK(strstr(err.msg, row->why), "'%s': %s", row->in, err.msg);
        CHECK_STR(h.text, "untouched", row->in);
    }
}

/* Whatever the C library's lax reader takes is the canonical form, or refused. */
static void test_against_inet_aton(void **state)
{
    static const char *const parts[] = {"0", "1", "127", "0x7f", "0177", "00", "256", "1.", "."};
    struct in_addr lax;
    char text[64];
    unsigned taken = 0;

    (void)state;
    for (unsigned i = 0; i < 9 * 9 * 9 * 9 * 4; i++) {
        unsigned n = i % 4 + 1, rest = i / 4;
        size_t len = 0;
        struct error err;
        struct host h;

        for (unsigned p = 0; p < n; p++, rest /= 9)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", p ? "." : "",
                                    parts[rest % 9]);
        if (host_parse(text, len, HOST_BARE, &h, &err) < 0)
            continue;
        taken += h.kind == HOST_V4;
        CHECK(h.kind == HOST_V4 && strcmp(h.text, text) == 0 && inet_aton(text, &lax) &&
                  memcmp(&lax, h.address.bytes, 4) == 0,
              "'%s' was taken as '%s'", text, h.text);
    }
    CHECK(taken > 0, "nothing was taken");
}

/* EG-11, EG-15. */
static void test_authority(void **state)
{
    static const struct {
        const char *in;
        uint16_t fallback, port; /* 0: refused */
        const char *host;
    } rows[] = {
        {"allowed.test:443", 0, 443, "allowed.test"},
        {"Allowed.Test.:1", 0, 1, "allowed.test"},
        {"allowed.test:65535", 0, 65535, "allowed.test"},
        {"allowed.test", 80, 80, "allowed.test"},
        {"[::1]:443", 0, 443, "::1"},
        {"[::1]", 80, 80, "::1"},
        {"192.0.2.1:8080", 80, 8080, "192.0.2.1"},
        {"allowed.test", 0, 0, ""},
        {"allowed.test:", 80, 0, ""},
        {"allowed.test:0", 80, 0, ""},
        {"allowed.test:65536", 80, 0, ""},
        {"allowed.test:99999", 80, 0, ""},
        {"allowed.test:100000", 80, 0, ""},
        {"allowed.test:+443", 80, 0, ""},
        {"allowed.test:-1", 80, 0, ""},
        {"allowed.test:0443", 80, 0, ""},
        {"allowed.test: 443", 80, 0, ""},
        {"allowed.test:443 ", 80, 0, ""},
        {"allowed.test:443x", 80, 0, ""},
        {"allowed.test:443:443", 80, 0, ""},
        {"::1:443", 80, 0, ""},
        {"[::1", 80, 0, ""},
        {"[::1]443", 80, 0, ""},
        {"[::1]x:443", 80, 0, ""},
        {"[::1]:443:443", 80, 0, ""},
        {":443", 80, 0, ""},
        {"", 80, 0, ""},
        {"user@allowed.test:443", 80, 0, ""},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct host h;
        uint16_t port = 0;
        char text[LIMIT_AUTHORITY_TEXT];
        struct error err;
        int r = host_parse_authority(row->in, strlen(row->in), row->fallback, &h, &port, &err);

        CHECK((r == 0) == (row->port != 0), "'%s': %d", row->in, r);
        CHECK(port == row->port, "'%s': port %u", row->in, port);
        if (r < 0)
            continue;
        CHECK_STR(h.text, row->host, row->in);
        host_format_authority(&h, port, text);
        CHECK_OK(host_parse_authority(text, strlen(text), 0, &h, &port, &err), err);
        CHECK(port == row->port && strcmp(h.text, row->host) == 0, "'%s' is not '%s'", text,
              row->in);
    }
}

/* EG-13. */
static void test_below(void **state)
{
    (void)state;
    assert_true(host_is_below("a.allowed.test", "allowed.test"));
    assert_true(host_is_below("a.b.allowed.test", "allowed.test"));
    assert_false(host_is_below("allowed.test", "allowed.test"));
    assert_false(host_is_below("notallowed.test", "allowed.test"));
    assert_false(host_is_below("allowed.test.evil.test", "allowed.test"));
    assert_false(host_is_below("allowed-test", "allowed.test"));
    assert_false(host_is_below("test", "allowed.test"));
    assert_false(host_is_below(".allowed.test", "allowed.test"));
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a host has one canonical spelling", test_canonical),
        CLAIM("what other readers could take for another host is refused, with the reason",
              test_refused),
        CLAIM("no spelling that inet_aton() takes passes, but four decimal numbers",
              test_against_inet_aton),
        CLAIM("an authority is a host and a decimal port, nothing else", test_authority),
        CLAIM("below a suffix are whole labels, at any depth, and not the suffix", test_below),
    };

    return RUN_CLAIMS("egress/host", claims);
}
