/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/dns.h"

#include "tests/test.h"

static struct host host_of(const char *text)
{
    struct host h;
    struct error err;

    CHECK_OK(host_parse(text, strlen(text), HOST_BARE, &h, &err), err);
    return h;
}

static struct address address_of(const char *text)
{
    struct address a;

    CHECK(address_parse(text, strlen(text), &a), "'%s'", text);
    return a;
}

/* ---- messages by hand: bytes are appended, names written as "\3www\4test" with their end ---- */

struct message {
    uint8_t bytes[70000];
    size_t n;
};

static void put(struct message *m, const void *bytes, size_t n)
{
    memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

static void put16(struct message *m, unsigned v)
{
    put(m, (uint8_t[]){(uint8_t)(v >> 8), (uint8_t)v}, 2);
}

static void put_header(struct message *m, unsigned id, unsigned flags, unsigned qd, unsigned an,
                       unsigned ns, unsigned ar)
{
    unsigned words[] = {id, flags, qd, an, ns, ar};

    m->n = 0;
    FOR_EACH(w, words) put16(m, *w);
}

#define PUT_NAME(m, name) put((m), name, sizeof(name)) /* the NUL is the root */

static void put_question(struct message *m, const char *name, size_t len, unsigned type)
{
    put(m, name, len);
    put16(m, type);
    put16(m, DNS_CLASS_IN);
}

static void put_record(struct message *m, const void *name, size_t name_len, unsigned type,
                       unsigned ttl, const void *data, size_t len)
{
    put(m, name, name_len);
    put16(m, type);
    put16(m, DNS_CLASS_IN);
    put16(m, ttl >> 16);
    put16(m, ttl & 0xffff);
    put16(m, (unsigned)len);
    put(m, data, len);
}

#define A64   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define QNAME "\7allowed\4test"

static enum dns_parsed parse(const struct message *m, struct dns_query *q, enum dns_rcode *rcode)
{
    return dns_parse_query(m->bytes, m->n, q, rcode);
}

static void test_query(void **state)
{
    static struct message m;
    struct dns_query q;
    enum dns_rcode rcode;

    (void)state;
    put_header(&m, 0x1234, 0x0120, 1, 0, 0, 1);
    put_question(&m, "\7aLLowed\4tEst", 14, DNS_TYPE_AAAA);
    put(&m, "\0\0\51\4\320\0\0\200\0\0\14\0\12\0\10cookie!!", 23); /* OPT, 1232, DO, a cookie */
    assert_int_equal(parse(&m, &q, &rcode), DNS_QUERY);
    assert_int_equal(q.id, 0x1234);
    assert_int_equal(q.type, DNS_TYPE_AAAA);
    assert_true(q.edns && q.recursion && q.has_host);
    assert_int_equal(q.udp_size, 1232);
    assert_string_equal(q.host.text, "allowed.test");
    assert_memory_equal(q.question, "\7aLLowed\4tEst", 14); /* 0x20 is kept */
    put_header(&m, 1, 0, 1, 0, 0, 0);
    put_question(&m, QNAME, sizeof(QNAME), DNS_TYPE_A);
    assert_int_equal(parse(&m, &q, &rcode), DNS_QUERY);
    assert_false(q.edns);
    assert_int_equal(q.udp_size, 512);
}

static void test_query_refused(void **state)
{
    static struct message m;
    static const struct {
        const char *name;
        unsigned flags, qd, an, ns, ar;
        const char *rest;
        size_t rest_len;
        enum dns_parsed parsed;
        enum dns_rcode rcode;
    } rows[] = {
#define Q(s) s, sizeof(s) - 1
        {"an answer", 0x8000, 1, 0, 0, 0, Q(QNAME "\0\0\1\0\1"), DNS_DROP, 0},
        {"a status", 0x1000, 1, 0, 0, 0, Q(QNAME "\0\0\1\0\1"), DNS_REJECT, DNS_NOTIMP},
        {"an update", 0x2800, 1, 0, 0, 0, Q(QNAME "\0\0\1\0\1"), DNS_REJECT, DNS_NOTIMP},
        {"no question", 0x0100, 0, 0, 0, 0, Q(""), DNS_REJECT, DNS_FORMERR},
        {"two questions", 0, 2, 0, 0, 0, Q(QNAME "\0\0\1\0\1" QNAME "\0\0\1\0\1"), DNS_REJECT,
         DNS_FORMERR},
        {"an answer within", 0, 1, 1, 0, 0, Q(QNAME "\0\0\1\0\1"), DNS_REJECT, DNS_FORMERR},
        {"an authority", 0, 1, 0, 1, 0, Q(QNAME "\0\0\1\0\1"), DNS_REJECT, DNS_FORMERR},
        {"two additional", 0, 1, 0, 0, 2, Q(QNAME "\0\0\1\0\1"), DNS_REJECT, DNS_FORMERR},
        {"truncated flag", 0x0200, 1, 0, 0, 0, Q(QNAME "\0\0\1\0\1"), DNS_REJECT, DNS_FORMERR},
        {"a result", 0x0003, 1, 0, 0, 0, Q(QNAME "\0\0\1\0\1"), DNS_REJECT, DNS_FORMERR},
        {"reserved flag", 0x0040, 1, 0, 0, 0, Q(QNAME "\0\0\1\0\1"), DNS_REJECT, DNS_FORMERR},
        {"class CH", 0, 1, 0, 0, 0, Q(QNAME "\0\0\1\0\3"), DNS_REJECT, DNS_NOTIMP},
        {"class ANY", 0, 1, 0, 0, 0, Q(QNAME "\0\0\1\0\377"), DNS_REJECT, DNS_NOTIMP},
        {"a pointer", 0, 1, 0, 0, 0, Q("\300\14\0\1\0\1"), DNS_REJECT, DNS_FORMERR},
        {"a pointer behind a label", 0, 1, 0, 0, 0, Q("\1a\300\14\0\1\0\1"), DNS_REJECT,
         DNS_FORMERR},
        {"a label of 64", 0, 1, 0, 0, 0, Q("\100aaaa"), DNS_REJECT, DNS_FORMERR},
        {"a whole label of 64", 0, 1, 0, 0, 0, Q("\100" A64 "\0\0\1\0\1"), DNS_REJECT, DNS_FORMERR},
        {"a label of 0x80", 0, 1, 0, 0, 0, Q("\200" A64 A64 "\0\0\1\0\1"), DNS_REJECT, DNS_FORMERR},
        {"no end", 0, 1, 0, 0, 0, Q("\7allowed"), DNS_REJECT, DNS_FORMERR},
        {"no class", 0, 1, 0, 0, 0, Q(QNAME "\0\0\1\0"), DNS_REJECT, DNS_FORMERR},
        {"trailing bytes", 0, 1, 0, 0, 0, Q(QNAME "\0\0\1\0\1x"), DNS_REJECT, DNS_FORMERR},
        {"EDNS 1", 0, 1, 0, 0, 1, Q(QNAME "\0\0\1\0\1\0\0\51\4\320\0\1\0\0\0\0"), DNS_REJECT,
         DNS_BADVERS},
        {"OPT of a name", 0, 1, 0, 0, 1, Q(QNAME "\0\0\1\0\1\1a\0\0\51\4\320\0\0\0\0\0\0"),
         DNS_REJECT, DNS_FORMERR},
        {"TSIG", 0, 1, 0, 0, 1, Q(QNAME "\0\0\1\0\1\0\0\372\4\320\0\0\0\0\0\0"), DNS_REJECT,
         DNS_FORMERR},
        {"OPT cut off", 0, 1, 0, 0, 1, Q(QNAME "\0\0\1\0\1\0\0\51\4\320\0\0\0\0\0\4\0\12"),
         DNS_REJECT, DNS_FORMERR},
        {"an option cut off", 0, 1, 0, 0, 1,
         Q(QNAME "\0\0\1\0\1\0\0\51\4\320\0\0\0\0\0\4\0\12\0\1"), DNS_REJECT, DNS_FORMERR},
        {"behind OPT", 0, 1, 0, 0, 1, Q(QNAME "\0\0\1\0\1\0\0\51\4\320\0\0\0\0\0\0x"), DNS_REJECT,
         DNS_FORMERR},
#undef Q
    };
    uint8_t out[LIMIT_DNS_REPLY];
    struct dns_query q;
    enum dns_rcode rcode;

    (void)state;
    FOR_EACH(row, rows)
    {
        put_header(&m, 7, row->flags, row->qd, row->an, row->ns, row->ar);
        put(&m, row->rest, row->rest_len);
        CHECK(parse(&m, &q, &rcode) == row->parsed, "%s", row->name);
        if (row->parsed == DNS_DROP)
            continue;
        CHECK(rcode == row->rcode, "%s: code %d", row->name, rcode);
        /* It can be told so. */
        assert_true(dns_build_reply(&q, &(struct dns_reply){.rcode = rcode}, false, out) >= 12);
        assert_int_equal(out[0] << 8 | out[1], 7);
        assert_int_equal(out[2] & 0x80, 0x80);
        assert_int_equal(out[3] & 0xf, row->rcode & 0xf);
    }
    assert_int_equal(dns_parse_query(m.bytes, 11, &q, &rcode), DNS_DROP);
    put_header(&m, 7, 0, 1, 0, 0, 0);
    memset(m.bytes + 12, 1, 2000);
    assert_int_equal(dns_parse_query(m.bytes, 1025, &q, &rcode), DNS_REJECT);
}

/* EG-11, EG-12 on the wire: fine as DNS, and no host. */
static void test_query_names(void **state)
{
    static struct message m;
    static const struct {
        const char *wire;
        size_t len;
        const char *host; /* NULL: none */
    } rows[] = {
#define N(s) s, sizeof(s)
        {N("\7ALLOWED\4test"), "allowed.test"},
        {N("\1a"), "a"},
        {N(""), NULL},                /* the root */
        {N("\14allowed.test"), NULL}, /* a dot within a label */
        {N("\3a.b\4test"), NULL},
        {N("\4a\0bc\4test"), NULL},
        {N("\6_dmarc\4test"), NULL},
        {N("\1*\4test"), NULL},
        {N("\3"
           "127\1"
           "0\1"
           "0\1"
           "1"),
         NULL}, /* 127.0.0.1 */
        {N("\5[::1]"), NULL},
        {N("\2-a\4test"), NULL},
        {N("\3\xc3\xa9x\4test"), NULL},
#undef N
    };
    struct dns_query q;
    enum dns_rcode rcode;

    (void)state;
    FOR_EACH(row, rows)
    {
        put_header(&m, 7, 0, 1, 0, 0, 0);
        put_question(&m, row->wire, row->len, DNS_TYPE_A);
        CHECK(parse(&m, &q, &rcode) == DNS_QUERY, "row %ld", (long)(row - rows));
        CHECK(q.has_host == (row->host != NULL), "row %ld: %s", (long)(row - rows), q.host.text);
        if (row->host)
            assert_string_equal(q.host.text, row->host);
    }
}

static struct dns_query query_of(const char *name, uint16_t type, bool edns)
{
    uint8_t out[LIMIT_DNS_QUERY];
    struct host h = host_of(name);
    struct dns_query q;
    enum dns_rcode rcode;
    size_t n = dns_build_query(99, &h, type, out);

    if (!edns) {
        n -= 11;
        out[11] = 0;
    }
    assert_int_equal(dns_parse_query(out, n, &q, &rcode), DNS_QUERY);
    assert_true(q.has_host);
    assert_string_equal(q.host.text, h.text);
    assert_int_equal(q.edns, edns);
    return q;
}

static void test_reply(void **state)
{
    struct address addresses[] = {address_of("198.18.0.1"), address_of("fdc1:a3d0::1"),
                                  address_of("198.18.0.2")};
    struct dns_reply reply = {.addresses = addresses, .n = 3, .ttl = 60};
    uint8_t out[LIMIT_DNS_REPLY];
    struct dns_answer a;
    struct host h = host_of("allowed.test");
    struct error err;
    struct dns_query q;

    (void)state;
    q = query_of("allowed.test", DNS_TYPE_A, true);
    CHECK_OK(dns_parse_answer(out, dns_build_reply(&q, &reply, false, out), 99, &h, DNS_TYPE_A, &a,
                              &err),
             err);
    assert_int_equal(a.n, 2);
    assert_true(address_equal(&a.addresses[0], &addresses[0]));
    assert_true(address_equal(&a.addresses[1], &addresses[2]));
    assert_int_equal(a.ttl, 60);
    assert_string_equal(a.canonical, "allowed.test");
    q = query_of("allowed.test", DNS_TYPE_AAAA, false);
    CHECK_OK(dns_parse_answer(out, dns_build_reply(&q, &reply, false, out), 99, &h, DNS_TYPE_AAAA,
                              &a, &err),
             err);
    assert_int_equal(a.n, 1);
    assert_true(address_equal(&a.addresses[0], &addresses[1]));
    /* HTTPS: the name is there, and has none. */
    q = query_of("allowed.test", DNS_TYPE_HTTPS, false);
    CHECK_OK(dns_parse_answer(out, dns_build_reply(&q, &reply, false, out), 99, &h, DNS_TYPE_HTTPS,
                              &a, &err),
             err);
    assert_int_equal(a.n, 0);
    assert_int_equal(a.rcode, DNS_NOERROR);
}

static void test_reply_reason(void **state)
{
    static const char want[] = "\0\0\51\4\320\0\0\0\0\0\22\0\17\0\16\0\17not in allow";
    struct dns_reply reply = {.rcode = DNS_REFUSED, .ede = DNS_EDE_BLOCKED, .text = "not in allow"};
    struct dns_query q = query_of("evil.test", DNS_TYPE_A, true);
    char longer[400];
    uint8_t out[LIMIT_DNS_REPLY];
    size_t n = dns_build_reply(&q, &reply, false, out);

    (void)state;
    assert_int_equal(out[3] & 0xf, DNS_REFUSED);
    assert_memory_equal(out + n - (sizeof(want) - 1), want, sizeof(want) - 1);
    memset(longer, 'x', sizeof(longer));
    longer[399] = 0;
    memcpy(longer + 199, "\xc3\xa9", 2); /* cut before, not within */
    reply.text = longer;
    n = dns_build_reply(&q, &reply, false, out);
    assert_int_equal(out[n - 1], 'x');
    assert_int_equal(n, 12 + q.question_len + 11 + 6 + 199);
    q = query_of("evil.test", DNS_TYPE_A, false); /* who knows no EDNS is told nothing */
    assert_int_equal(dns_build_reply(&q, &reply, false, out), 12 + q.question_len);
    q.edns = true;
    reply = (struct dns_reply){.rcode = DNS_BADVERS};
    n = dns_build_reply(&q, &reply, false, out);
    assert_int_equal(out[3] & 0xf, 0);
    assert_int_equal(out[n - 11 + 5], 1);
}

static void test_truncation(void **state)
{
    struct address addresses[LIMIT_DNS_ADDRESSES + 3];
    struct dns_reply reply = {.addresses = addresses, .n = COUNT(addresses), .ttl = 1};
    struct dns_query q = query_of("allowed.test", DNS_TYPE_AAAA, false);
    uint8_t out[LIMIT_DNS_REPLY];
    struct host h = host_of("allowed.test");
    struct dns_answer a;
    struct error err;
    size_t n;

    (void)state;
    FOR_EACH(x, addresses)
    {
        *x = address_of("2600::");
        x->bytes[15] = (uint8_t)(x - addresses + 1);
    }
    n = dns_build_reply(&q, &reply, false, out);
    assert_true(n <= 512);
    CHECK_OK(dns_parse_answer(out, n, 99, &h, DNS_TYPE_AAAA, &a, &err), err);
    assert_true(a.truncated);
    assert_int_equal(a.n, 0);
    n = dns_build_reply(&q, &reply, true, out);
    CHECK_OK(dns_parse_answer(out, n, 99, &h, DNS_TYPE_AAAA, &a, &err), err);
    assert_false(a.truncated);
    assert_int_equal(a.n, LIMIT_DNS_ADDRESSES);
}

static void test_stream(void **state)
{
    static const uint8_t two[] = {0, 3, 'a', 'b', 'c', 0, 1, 'd'};
    static const uint8_t none[] = {0, 0}, large[] = {4, 1};
    struct dns_stream s;
    size_t used, len;

    (void)state;
    for (size_t step = 1; step <= sizeof(two); step++) {
        unsigned messages = 0;

        s.n = 0;
        for (size_t at = 0; at < sizeof(two); at += used) {
            size_t n = sizeof(two) - at < step ? sizeof(two) - at : step;
            enum dns_framing f = dns_stream_feed(&s, two + at, n, &used);

            assert_true(used > 0);
            if (f != DNS_FRAME_MESSAGE)
                continue;
            if (messages++ == 0)
                assert_memory_equal(dns_stream_message(&s, &len), "abc", 3);
            else
                assert_memory_equal(dns_stream_message(&s, &len), "d", 1);
            assert_int_equal(len, messages == 1 ? 3 : 1);
        }
        assert_int_equal(messages, 2);
    }
    s.n = 0;
    assert_int_equal(dns_stream_feed(&s, none, 2, &used), DNS_FRAME_REFUSED);
    s.n = 0;
    assert_int_equal(dns_stream_feed(&s, large, 2, &used), DNS_FRAME_REFUSED);
}

/* ---- what a resolver says ---- */

#define POINTER_TO_QUESTION "\300\14"

static void begin_answer(struct message *m, unsigned records)
{
    put_header(m, 99, 0x8180, 1, records, 0, 0);
    put_question(m, QNAME, sizeof(QNAME), DNS_TYPE_A);
}

static int answer(const struct message *m, struct dns_answer *a, struct error *err)
{
    struct host h = host_of("allowed.test");

    *err = (struct error){0};
    return dns_parse_answer(m->bytes, m->n, 99, &h, DNS_TYPE_A, a, err);
}

static void test_chain(void **state)
{
    static struct message m;
    struct dns_answer a;
    struct error err;
    char text[LIMIT_ADDRESS_TEXT];

    (void)state;
    /* In any order, with other records between: CDN.b.test is 1.2.3.4 and 127.0.0.1. */
    begin_answer(&m, 7);
    put_record(&m, "\1b\4test", 8, DNS_TYPE_CNAME, 50, "\3CDN\1b\4test", 12);
    put_record(&m, "\3cdn\1b\4TEST", 12, DNS_TYPE_A, 300, "\1\2\3\4", 4);
    put_record(&m, POINTER_TO_QUESTION, 2, DNS_TYPE_CNAME, 70, "\1b\4test", 8);
    put_record(&m, POINTER_TO_QUESTION, 2, 46, 1, "signature", 9);
    put_record(&m, "\4evil\4test", 11, DNS_TYPE_A, 1, "\6\6\6\6", 4);
    put_record(&m, "\3cdn\1b\4test", 12, DNS_TYPE_A, 300, "\177\0\0\1", 4);
    put_record(&m, "\3cdn\1b\4test", 12, DNS_TYPE_A, 300, "\1\2\3\4", 4);
    CHECK_OK(answer(&m, &a, &err), err);
    assert_int_equal(a.n, 2); /* each is judged by the rules */
    assert_string_equal(address_format(&a.addresses[0], text), "1.2.3.4");
    assert_string_equal(address_format(&a.addresses[1], text), "127.0.0.1");
    assert_int_equal(a.chain, 2);
    assert_int_equal(a.ttl, 50);
    assert_string_equal(a.canonical, "cdn.b.test");
}

/* EG-09: 20 aliases, a loop. */
static void test_chain_ends(void **state)
{
    static struct message m;
    struct dns_answer a;
    struct error err;

    (void)state;
    for (unsigned n = LIMIT_DNS_CHAIN; n <= 20; n++) {
        char name[] = "\1a\4test", next[] = "\1b\4test";

        begin_answer(&m, n + 1);
        put_record(&m, POINTER_TO_QUESTION, 2, DNS_TYPE_CNAME, 9, name, sizeof(name));
        for (unsigned i = 1; i < n; i++, name[1]++, next[1]++)
            put_record(&m, name, sizeof(name), DNS_TYPE_CNAME, 9, next, sizeof(next));
        put_record(&m, name, sizeof(name), DNS_TYPE_A, 9, "\1\2\3\4", 4);
        if (n > LIMIT_DNS_CHAIN) {
            CHECK_ERR(answer(&m, &a, &err), err, ERR_INVALID, "chain");
            continue;
        }
        CHECK_OK(answer(&m, &a, &err), err);
        assert_int_equal(a.n, 1);
        assert_int_equal(a.chain, n);
    }
    begin_answer(&m, 2);
    put_record(&m, POINTER_TO_QUESTION, 2, DNS_TYPE_CNAME, 9, "\1b\4test", 8);
    put_record(&m, "\1b\4test", 8, DNS_TYPE_CNAME, 9, POINTER_TO_QUESTION, 2);
    CHECK_ERR(answer(&m, &a, &err), err, ERR_INVALID, "chain");
    begin_answer(&m, 1);
    put_record(&m, POINTER_TO_QUESTION, 2, DNS_TYPE_CNAME, 9, POINTER_TO_QUESTION, 2);
    CHECK_ERR(answer(&m, &a, &err), err, ERR_INVALID, "chain");
}

static void test_answer_refused(void **state)
{
    static struct message m;
    struct dns_answer a;
    struct error err;

    (void)state;
    begin_answer(&m, 2);
    put_record(&m, POINTER_TO_QUESTION, 2, DNS_TYPE_CNAME, 9, "\1b\4test", 8);
    put_record(&m, POINTER_TO_QUESTION, 2, DNS_TYPE_CNAME, 9, "\1c\4test", 8);
    CHECK_ERR(answer(&m, &a, &err), err, ERR_INVALID, "two others");
    begin_answer(&m, 2);
    put_record(&m, POINTER_TO_QUESTION, 2, DNS_TYPE_CNAME, 9, "\1b\4test", 8);
    put_record(&m, POINTER_TO_QUESTION, 2, DNS_TYPE_A, 9, "\1\2\3\4", 4);
    CHECK_ERR(answer(&m, &a, &err), err, ERR_INVALID, "alias and addresses");
    begin_answer(&m, 1);
    put_record(&m, POINTER_TO_QUESTION, 2, DNS_TYPE_A, 9, "\1\2\3\4\5", 5);
    CHECK_ERR(answer(&m, &a, &err), err, ERR_INVALID, "malformed");
    begin_answer(&m, 1);
    put_record(&m, POINTER_TO_QUESTION, 2, DNS_TYPE_CNAME, 9, "\1b\4test\0x", 9);
    CHECK_ERR(answer(&m, &a, &err), err, ERR_INVALID, "malformed");
    begin_answer(&m, 2); /* one is missing */
    put_record(&m, POINTER_TO_QUESTION, 2, DNS_TYPE_A, 9, "\1\2\3\4", 4);
    CHECK_ERR(answer(&m, &a, &err), err, ERR_INVALID, "malformed");
    begin_answer(&m, 1);
    put_record(&m, POINTER_TO_QUESTION, 2, DNS_TYPE_A, 9, "\1\2\3\4", 4);
    m.n--; /* cut off */
    CHECK_ERR(answer(&m, &a, &err), err, ERR_INVALID, "malformed");
    begin_answer(&m, LIMIT_DNS_RECORDS + 1);
    CHECK_ERR(answer(&m, &a, &err), err, ERR_TOO_LARGE, "records");
    /* Pointers forwards, to themselves, into the header. */
    for (unsigned to = 0; to < 64; to++) {
        uint8_t pointer[] = {0xc0, (uint8_t)to};

        begin_answer(&m, 1);
        if (to >= 12 && to < m.n)
            continue;
        put_record(&m, pointer, 2, DNS_TYPE_A, 9, "\1\2\3\4", 4);
        CHECK_ERR(answer(&m, &a, &err), err, ERR_INVALID, "malformed");
    }
}

/* Names that pointers make long: too many of them, or more than 255 bytes. */
static void test_pointers(void **state)
{
    static struct message m;
    struct dns_answer a;
    struct error err;

    (void)state;
    for (unsigned jumps = LIMIT_DNS_JUMPS - 1; jumps <= LIMIT_DNS_JUMPS + 1; jumps++) {
        size_t at = 12;

        begin_answer(&m, 2);
        put_record(&m, "", 1, 99, 0, "", 0); /* its data: each pointer leads to the one before */
        for (unsigned i = 1; i < jumps; i++) {
            size_t here = m.n;

            put16(&m, 0xc000u | (unsigned)at);
            at = here;
        }
        m.bytes[30 + 10] = (uint8_t)(2 * (jumps - 1));
        put_record(&m, (uint8_t[]){(uint8_t)(0xc0 | at >> 8), (uint8_t)at}, 2, DNS_TYPE_A, 9,
                   "\1\2\3\4", 4);
        if (jumps > LIMIT_DNS_JUMPS) {
            CHECK_ERR(answer(&m, &a, &err), err, ERR_INVALID, "malformed");
        } else {
            CHECK_OK(answer(&m, &a, &err), err);
            assert_int_equal(a.n, 1);
        }
    }
    for (unsigned labels = 3; labels <= 4; labels++) { /* with 14 bytes of the question's name */
        static const char label[64] = "\x3f";
        size_t at;

        begin_answer(&m, 1);
        for (at = 0; at < labels; at++)
            put(&m, label, 64);
        put_record(&m, POINTER_TO_QUESTION, 2, DNS_TYPE_A, 9, "\1\2\3\4", 4);
        if (labels == 4)
            CHECK_ERR(answer(&m, &a, &err), err, ERR_INVALID, "malformed");
        else
            CHECK_OK(answer(&m, &a, &err), err);
    }
}

static void test_answer_mismatch(void **state)
{
    static struct message m;
    static const struct {
        size_t at;
        uint8_t value;
    } rows[] = {
        {1, 98},           /* id */
        {2, 0x01},         /* a question */
        {2, 0x89},         /* another opcode */
        {5, 0},            /* no question */
        {5, 2},            /* two */
        {13, 'b'},         /* the name */
        {12 + 14 + 1, 28}, /* the type */
        {12 + 14 + 3, 3},  /* the class */
    };
    struct dns_answer a;
    struct error err;

    (void)state;
    FOR_EACH(row, rows)
    {
        begin_answer(&m, 1);
        put_record(&m, POINTER_TO_QUESTION, 2, DNS_TYPE_A, 9, "\1\2\3\4", 4);
        CHECK_OK(answer(&m, &a, &err), err);
        m.bytes[row->at] = row->value;
        CHECK_ERR(answer(&m, &a, &err), err, ERR_INVALID, "another question");
    }
    begin_answer(&m, 1);
    put_record(&m, POINTER_TO_QUESTION, 2, DNS_TYPE_A, 0x80000001, "\1\2\3\4", 4);
    m.bytes[13] = 'A'; /* its case is free */
    CHECK_OK(answer(&m, &a, &err), err);
    assert_int_equal(a.ttl, 0);
    m.bytes[3] |= DNS_NXDOMAIN;
    CHECK_OK(answer(&m, &a, &err), err);
    assert_int_equal(a.rcode, DNS_NXDOMAIN);
    assert_int_equal(a.n, 0);
    assert_int_equal(dns_build_query(1, &(struct host){.kind = HOST_V4}, 1, m.bytes), 0);
}

static void test_long_names(void **state)
{
    char name[254];
    struct host h;
    uint8_t out[LIMIT_DNS_REPLY];
    struct address address = address_of("198.18.0.1");
    struct dns_reply reply = {.addresses = &address, .n = 1, .ede = DNS_EDE_FILTERED};
    char reason[300];
    struct dns_query q;
    struct dns_answer a;
    struct error err;
    size_t n;

    (void)state;
    memset(name, 'a', 253);
    name[63] = name[127] = name[191] = '.';
    name[253] = 0;
    memset(reason, 'r', sizeof(reason));
    reason[299] = 0;
    reply.text = reason;
    h = host_of(name);
    q = query_of(name, DNS_TYPE_A, true);
    q.udp_size = 512; /* the question, an address and the reason fit only just, or not */
    n = dns_build_reply(&q, &reply, false, out);
    assert_true(n <= 512);
    CHECK_OK(dns_parse_answer(out, n, 99, &h, DNS_TYPE_A, &a, &err), err);
    assert_int_equal(a.n, 1);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a question is read, and its case kept", test_query),
        CLAIM("what is not one plain question is refused by its code", test_query_refused),
        CLAIM("a name that is no host's is told apart", test_query_names),
        CLAIM("an answer holds the addresses of the type that was asked for", test_reply),
        CLAIM("a refusal says why to those who know EDNS", test_reply_reason),
        CLAIM("what does not fit is asked for again over TCP", test_truncation),
        CLAIM("messages in a stream are found however it is cut", test_stream),
        CLAIM("aliases are followed within the answer, in any order", test_chain),
        CLAIM("a chain of aliases has an end", test_chain_ends),
        CLAIM("a malformed answer is refused", test_answer_refused),
        CLAIM("pointers have an end, and so have names made of them", test_pointers),
        CLAIM("the answer to another question is refused", test_answer_mismatch),
        CLAIM("the longest name fits into the smallest datagram", test_long_names),
    };

    return RUN_CLAIMS("egress/dns", claims);
}
