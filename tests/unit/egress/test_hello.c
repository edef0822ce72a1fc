/* SPDX-License-Identifier: Apache-2.0 */
/* EG-17. The samples of tests/data/hello are what OpenSSL sends, from python and from s_client. */
#include "egress/hello.h"

#include "tests/test.h"

static const char *data_dir = "tests/data";
static struct hello hello; /* 16 KiB: not on the stack */

struct bytes {
    uint8_t data[80000];
    size_t n;
};

/* Feeds the bytes in steps; 0: all at once. Returns how many were used. */
static size_t feed(const uint8_t *data, size_t len, size_t step)
{
    size_t at = 0, used;

    hello_init(&hello);
    while (at < len && hello.state == HELLO_MORE) {
        /* Its own block: a sanitizer sees what reads beyond. */
        size_t n = step && step < len - at ? step : len - at;
        uint8_t *part = malloc(n);

        assert_non_null(part);
        memcpy(part, data + at, n);
        (void)hello_feed(&hello, part, n, &used);
        free(part);
        at += used;
    }
    return at;
}

static void test_samples(void **state)
{
    static const struct {
        const char *file;
        enum hello_sni sni;
        uint16_t version;
    } rows[] = {
        {"python-tls13-allowed", HELLO_SNI_NAME, 0x0304},
        {"python-tls12-allowed", HELLO_SNI_NAME, 0x0303},
        {"python-both-mixed-case", HELLO_SNI_NAME, 0x0304},
        {"python-both-none", HELLO_SNI_NONE, 0x0304},
        {"python-both-address", HELLO_SNI_NONE, 0x0304}, /* OpenSSL leaves an address out */
        {"python-both-big", HELLO_SNI_NAME, 0x0304},
        {"openssl-default", HELLO_SNI_NAME, 0x0304},
        {"openssl-tls1", HELLO_SNI_NAME, 0x0301},
        {"openssl-noname", HELLO_SNI_NONE, 0x0304},
        {"openssl-split", HELLO_SNI_NAME, 0x0304}, /* five records */
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        static struct bytes b;
        char path[512];
        FILE *f;

        (void)snprintf(path, sizeof(path), "%s/hello/%s", data_dir, row->file);
        f = fopen(path, "re");
        CHECK(f, "%s: %s", path, strerror(errno));
        b.n = fread(b.data, 1, sizeof(b.data) - 8, f);
        (void)fclose(f);
        memcpy(b.data + b.n, "\x14\x03\x03\0\1\1", 6); /* what follows is not taken */
        for (size_t step = 0; step < b.n; step = step ? step * 3 : 1) {
            size_t used = feed(b.data, b.n + 6, step);

            CHECK(hello.state == HELLO_DONE, "%s by %zu: %d %s", row->file, step, hello.state,
                  hello.problem);
            CHECK(hello.sni == row->sni, "%s: sni %d", row->file, hello.sni);
            CHECK(hello.version == row->version, "%s: version %x", row->file, hello.version);
            CHECK(used == b.n && hello.n == b.n && memcmp(hello.raw, b.data, b.n) == 0,
                  "%s: %zu of %zu bytes", row->file, used, b.n);
            assert_false(hello.ech);
            if (row->sni == HELLO_SNI_NAME)
                assert_string_equal(hello.host.text, "allowed.test");
        }
        for (size_t n = 0; n < b.n; n++) { /* cut off */
            (void)feed(b.data, n, 0);
            CHECK(hello.state == HELLO_MORE, "%s: %zu bytes suffice", row->file, n);
        }
    }
}

/* ---- hellos by hand ---- */

static void put(struct bytes *b, const void *data, size_t n)
{
    memcpy(b->data + b->n, data, n);
    b->n += n;
}

static void put16(struct bytes *b, size_t v)
{
    put(b, (uint8_t[]){(uint8_t)(v >> 8), (uint8_t)v}, 2);
}

static void put_extension(struct bytes *b, unsigned type, const void *data, size_t n)
{
    put16(b, type);
    put16(b, n);
    put(b, data, n);
}

static void put_name(struct bytes *b, unsigned type, const void *name, size_t n)
{
    put(b, (uint8_t[]){(uint8_t)type}, 1);
    put16(b, n);
    put(b, name, n);
}

/* The message with these extensions. */
static void make_message(struct bytes *m, const struct bytes *extensions)
{
    static const uint8_t random[32];
    size_t len;

    m->n = 4;
    put(m, "\3\3", 2);
    put(m, random, 32);
    put(m, "\0\0\2\x13\1\1\0", 7); /* no session, one suite, no compression */
    if (extensions) {
        put16(m, extensions->n);
        put(m, extensions->data, extensions->n);
    }
    len = m->n - 4;
    memcpy(m->data, (uint8_t[]){1, (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len}, 4);
}

static void put_records(struct bytes *out, const struct bytes *m, size_t size)
{
    out->n = 0;
    for (size_t at = 0; at < m->n; at += size) {
        size_t n = m->n - at < size ? m->n - at : size;

        put(out, "\x16\3\1", 3);
        put16(out, n);
        put(out, m->data + at, n);
    }
}

static void put_server_names(struct bytes *ext, const struct bytes *list)
{
    put16(ext, 0);
    put16(ext, list->n + 2);
    put16(ext, list->n);
    put(ext, list->data, list->n);
}

static struct bytes list, extensions, message, records;

static void test_server_names(void **state)
{
    static const struct {
        const char *name;
        size_t len;
        enum hello_sni sni;
        const char *host;
    } rows[] = {
#define N(s) s, sizeof(s) - 1
        {N("allowed.test"), HELLO_SNI_NAME, "allowed.test"},
        {N("EVIL.test."), HELLO_SNI_NAME, "evil.test"},
        {N("127.0.0.1"), HELLO_SNI_ADDRESS, "127.0.0.1"},
        {N("::1"), HELLO_SNI_ADDRESS, "::1"},
        {N("[::1]"), HELLO_SNI_INVALID, ""},
        {N(""), HELLO_SNI_INVALID, ""},
        {N("evil.test\0.allowed.test"), HELLO_SNI_INVALID, ""},
        {N("allowed.test\0"), HELLO_SNI_INVALID, ""},
        {N("2130706433"), HELLO_SNI_INVALID, ""},
        {N("allowed_test"), HELLO_SNI_INVALID, ""},
        {N("allowed.test:443"), HELLO_SNI_INVALID, ""},
        {N("\xd0\xb0llowed.test"), HELLO_SNI_INVALID, ""},
#undef N
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        list.n = extensions.n = 0;
        put_name(&list, 0, row->name, row->len);
        put_server_names(&extensions, &list);
        make_message(&message, &extensions);
        for (size_t size = 1; size < message.n * 3; size *= 3) {
            put_records(&records, &message, size);
            (void)feed(records.data, records.n, 1);
            CHECK(hello.state == HELLO_DONE, "'%s': %s", row->name, hello.problem);
            CHECK(hello.sni == row->sni, "'%s': sni %d", row->name, hello.sni);
            CHECK_STR(hello.host.text, row->host, row->name);
        }
    }
}

static void test_several_names(void **state)
{
    (void)state;
    for (unsigned second = 0; second < 2; second++) { /* another name, another kind of name */
        list.n = extensions.n = 0;
        put_name(&list, 0, "allowed.test", 12);
        put_name(&list, second, "evil.test", 9);
        put_server_names(&extensions, &list);
        make_message(&message, &extensions);
        put_records(&records, &message, 16384);
        (void)feed(records.data, records.n, 0);
        assert_int_equal(hello.state, HELLO_DONE);
        assert_int_equal(hello.sni, HELLO_SNI_SEVERAL);
    }
    list.n = extensions.n = 0;
    put_name(&list, 7, "allowed.test", 12);
    put_server_names(&extensions, &list);
    make_message(&message, &extensions);
    put_records(&records, &message, 16384);
    (void)feed(records.data, records.n, 0);
    assert_int_equal(hello.sni, HELLO_SNI_SEVERAL);
    list.n = extensions.n = 0; /* the extension twice */
    put_name(&list, 0, "allowed.test", 12);
    put_server_names(&extensions, &list);
    put_server_names(&extensions, &list);
    make_message(&message, &extensions);
    put_records(&records, &message, 16384);
    (void)feed(records.data, records.n, 0);
    assert_int_equal(hello.state, HELLO_MALFORMED);
}

static void test_facts(void **state)
{
    (void)state;
    extensions.n = 0;
    put_extension(&extensions, 0xfe0d, "\0\0\1\0\1", 5);
    put_extension(&extensions, 43, "\6\x7a\x7a\3\4\3\3", 7); /* GREASE first */
    make_message(&message, &extensions);
    put_records(&records, &message, 16384);
    (void)feed(records.data, records.n, 0);
    assert_int_equal(hello.state, HELLO_DONE);
    assert_true(hello.ech);
    assert_int_equal(hello.version, 0x0304);
    assert_int_equal(hello.sni, HELLO_SNI_NONE);
    make_message(&message, NULL); /* none at all, as long ago */
    put_records(&records, &message, 16384);
    (void)feed(records.data, records.n, 0);
    assert_int_equal(hello.state, HELLO_DONE);
    assert_int_equal(hello.version, 0x0303);
}

static void test_malformed(void **state)
{
    /* Of the session, suites, compression, all extensions, the one, its list, its name. */
    static const size_t lengths[] = {38, 40, 43, 46, 50, 52, 55};

    (void)state;
    list.n = extensions.n = 0;
    put_name(&list, 0, "allowed.test", 12);
    put_server_names(&extensions, &list);
    make_message(&message, &extensions);
    FOR_EACH(at, lengths)
    {
        struct bytes *m = &message;

        for (int by = -1; by <= 1; by += 2) {
            m->data[*at] = (uint8_t)(m->data[*at] + by);
            put_records(&records, m, 16384);
            (void)feed(records.data, records.n, 0);
            CHECK(hello.state == HELLO_MALFORMED, "byte %zu (%u): %d", *at, m->data[*at],
                  hello.state);
            m->data[*at] = (uint8_t)(m->data[*at] - by);
        }
    }
    put_records(&records, &message, 16384);
    (void)feed(records.data, records.n, 0);
    assert_int_equal(hello.state, HELLO_DONE);
    message.data[message.n++] = 0; /* something behind it in the record */
    put_records(&records, &message, 16384);
    (void)feed(records.data, records.n, 0);
    assert_int_equal(hello.state, HELLO_MALFORMED);
    message.n--;
    put_records(&records, &message, 20); /* another record between */
    records.data[25] = 21;
    (void)feed(records.data, records.n, 0);
    assert_int_equal(hello.state, HELLO_MALFORMED);
}

static void test_beginnings(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        enum hello_state state;
    } rows[] = {
#define B(s) s, sizeof(s) - 1
        {B("GET / HTTP/1.1\r\n"), HELLO_NOT_TLS},
        {B("SSH-2.0-x"), HELLO_NOT_TLS},
        {B("\0"), HELLO_NOT_TLS},
        {B("\x15\3\1\0\2"), HELLO_NOT_TLS}, /* an alert */
        {B("\x17\3\3\0\2"), HELLO_NOT_TLS}, /* data */
        {B("\x16\2\0"), HELLO_NOT_TLS},
        {B("\x80\x2e\1\0\2"), HELLO_SSLV2},
        {B("\x80\x2e\1\3\1"), HELLO_SSLV2}, /* SSLv2 that offers TLS 1.0 */
        {B("\x80\x2e\2"), HELLO_NOT_TLS},
        {B("\xff\xff\xff"), HELLO_NOT_TLS},
        {B("\x80\x2e"), HELLO_MORE},
        {B("\x16\3\1\0\0"), HELLO_MALFORMED},             /* an empty record */
        {B("\x16\3\1\x40\1"), HELLO_MALFORMED},           /* 16385 bytes */
        {B("\x16\3\1\x40\0"), HELLO_TOO_LARGE},           /* with its header, above our limit */
        {B("\x16\3\1\0\4\2\0\0\0"), HELLO_MALFORMED},     /* a server's hello */
        {B("\x16\3\1\0\4\1\0\xff\xff"), HELLO_TOO_LARGE}, /* 64 KiB */
        {B("\x16\3\1\0\4\1\0\0\0"), HELLO_MALFORMED},     /* empty */
        {B("\x16\3\1\0\4\1\0\0"), HELLO_MORE},
        {B(""), HELLO_MORE},
#undef B
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        for (size_t step = 0; step < 3; step++) {
            (void)feed((const uint8_t *)row->bytes, row->len, step);
            CHECK(hello.state == row->state, "row %ld: %d", (long)(row - rows), hello.state);
            if (row->state != HELLO_MORE)
                assert_non_null(hello.problem);
        }
    }
}

static void test_large(void **state)
{
    static uint8_t padding[70000];

    (void)state;
    for (size_t n = 1000; n <= 65000; n += 1000) {
        bool fits;

        extensions.n = 0;
        put_extension(&extensions, 21, padding, n);
        make_message(&message, &extensions);
        put_records(&records, &message, 4000);
        fits = records.n <= LIMIT_HELLO;
        (void)feed(records.data, records.n, 7);
        CHECK(hello.state == (fits ? HELLO_DONE : HELLO_TOO_LARGE), "%zu bytes: %d", records.n,
              hello.state);
    }
    extensions.n = 0; /* small, but in records of one byte: six times as much */
    put_extension(&extensions, 21, padding, 3000);
    make_message(&message, &extensions);
    put_records(&records, &message, 1);
    (void)feed(records.data, records.n, 0);
    assert_int_equal(hello.state, HELLO_TOO_LARGE);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("what OpenSSL sends is read, however it is cut", test_samples),
        CLAIM("a server name is a canonical host, an address, or invalid", test_server_names),
        CLAIM("two server names are told, twice the extension refused", test_several_names),
        CLAIM("encrypted hellos and versions are told", test_facts),
        CLAIM("a wrong length anywhere is refused", test_malformed),
        CLAIM("what is not TLS is told by its first bytes, SSLv2 apart", test_beginnings),
        CLAIM("a hello has an end", test_large),
    };

    if (argc > 1)
        data_dir = argv[1];
    return RUN_CLAIMS("egress/hello", claims);
}
