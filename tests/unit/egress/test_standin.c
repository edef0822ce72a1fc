/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/standin.h"

#include "tests/test.h"

static const uint8_t key[16] = "0123456789abcdef";

static const char *name_of(unsigned i)
{
    static char text[64];

    (void)snprintf(text, sizeof(text), "n%u.allowed.test", i);
    return text;
}

static struct standins *make(uint32_t max, uint64_t ttl_ms)
{
    struct standins *s = NULL;
    struct error err;

    CHECK_OK(standins_new(max, ttl_ms, key, &s, &err), err);
    return s;
}

static void test_both_ways(void **state)
{
    autoptr(standins) s = make(100, 1000);
    struct address v4, v6, again4, again6;
    char text[LIMIT_ADDRESS_TEXT];
    struct error err;

    (void)state;
    CHECK_OK(standins_assign(s, "allowed.test", 5, &v4, &v6, &err), err);
    assert_string_equal(address_format(&v4, text), "198.18.0.1");
    assert_string_equal(address_format(&v6, text), "fdc1:a3d0::1");
    CHECK_OK(standins_assign(s, "allowed.test", 6, &again4, &again6, &err), err);
    assert_true(address_equal(&v4, &again4) && address_equal(&v6, &again6));
    assert_string_equal(standins_find(s, &v4, 7), "allowed.test");
    assert_string_equal(standins_find(s, &v6, 7), "allowed.test");
    assert_int_equal(standins_count(s), 1);
}

static void test_strangers(void **state)
{
    static const char *const rows[] = {
        "198.18.0.0",   "198.18.0.2",         "198.17.255.255",    "198.19.0.1",       "8.8.8.8",
        "0.0.0.1",      "255.255.255.255",    "fdc1:a3d0::",       "fdc1:a3d0::2",     "::1",
        "fdc1:a3d1::1", "fdc1:a3d0::1:0:0:1", "::ffff:198.18.0.1", "fdc1:a3d0:0:1::1",
    };
    autoptr(standins) s = make(100, 1000);
    struct address v4, v6, a;
    struct error err;

    (void)state;
    assert_true(address_parse("198.18.0.1", 10, &a));
    assert_null(standins_find(s, &a, 0)); /* before any */
    CHECK_OK(standins_assign(s, "allowed.test", 5, &v4, &v6, &err), err);
    FOR_EACH(row, rows)
    {
        assert_true(address_parse(*row, strlen(*row), &a));
        CHECK(!standins_find(s, &a, 6), "%s stands for somebody", *row);
    }
}

static void test_reuse(void **state)
{
    autoptr(standins) s = make(2, 1000);
    struct address a4, b4, c4, v6;
    struct error err;

    (void)state;
    CHECK_OK(standins_assign(s, "a", 0, &a4, &v6, &err), err);
    CHECK_OK(standins_assign(s, "b", 10, &b4, &v6, &err), err);
    CHECK_ERR(standins_assign(s, "c", 999, &c4, &v6, &err), err, ERR_TOO_LARGE, "in use");
    assert_string_equal(standins_find(s, &a4, 999), "a"); /* a use: now b is the oldest */
    CHECK_ERR(standins_assign(s, "c", 1009, &c4, &v6, &err), err, ERR_TOO_LARGE, "in use");
    CHECK_OK(standins_assign(s, "c", 1010, &c4, &v6, &err), err);
    assert_true(address_equal(&b4, &c4));
    assert_string_equal(standins_find(s, &b4, 1010), "c");
    assert_string_equal(standins_find(s, &a4, 1010), "a");
    CHECK_ERR(standins_assign(s, "b", 1011, &b4, &v6, &err), err, ERR_TOO_LARGE, "in use");
    CHECK_OK(standins_assign(s, "b", 2010, &b4, &v6, &err), err); /* c and a are both due */
    assert_int_equal(standins_count(s), 2);
}

static void test_limits(void **state)
{
    struct standins *s = NULL;
    struct address v4, v6;
    char name[300];
    struct error err;

    (void)state;
    CHECK_ERR(standins_new(0, 1, key, &s, &err), err, ERR_INVALID, "1 to");
    CHECK_ERR(standins_new(LIMIT_STANDINS + 1, 1, key, &s, &err), err, ERR_INVALID, "1 to");
    s = make(5, UINT64_MAX); /* promised for ever */
    memset(name, 'a', 299);
    name[299] = 0;
    CHECK_ERR(standins_assign(s, name, 1, &v4, &v6, &err), err, ERR_INVALID, "bytes");
    CHECK_OK(standins_assign(s, "a", 1, &v4, &v6, &err), err);
    standins_free(s);
}

/* The whole table, then again with other names, against the simplest model. */
static void test_full(void **state)
{
    static unsigned owner[LIMIT_STANDINS];
    autoptr(standins) s = make(LIMIT_STANDINS, 10);
    struct address v4, v6;
    struct error err;

    (void)state;
    for (unsigned i = 0; i < LIMIT_STANDINS; i++) {
        CHECK_OK(standins_assign(s, name_of(i), 0, &v4, &v6, &err), err);
        assert_int_equal((v4.bytes[1] << 16 | v4.bytes[2] << 8 | v4.bytes[3]) - (18 << 16), i + 1);
        assert_int_equal(address_class(&v4), ADDRESS_BENCHMARK);
        owner[i] = i;
    }
    CHECK_ERR(standins_assign(s, "more", 9, &v4, &v6, &err), err, ERR_TOO_LARGE, "in use");
    for (unsigned i = LIMIT_STANDINS; i < LIMIT_STANDINS + 30000; i++) {
        CHECK_OK(standins_assign(s, name_of(i), 10, &v4, &v6, &err), err);
        owner[i - LIMIT_STANDINS] = i;
    }
    for (unsigned i = 0; i < LIMIT_STANDINS; i++) {
        struct address a = address_v4((198u << 24 | 18u << 16) + i + 1);

        assert_string_equal(standins_find(s, &a, 11), name_of(owner[i]));
    }
    assert_int_equal(standins_count(s), LIMIT_STANDINS);
}

/* Few places and many names: each address stands for the name that got it last. */
static void test_churn(void **state)
{
    enum { PLACES = 5, NAMES = 400 };
    autoptr(standins) s = make(PLACES, 0);
    unsigned owner[PLACES] = {0}, seed = 1;
    struct error err;

    (void)state;
    for (unsigned round = 0; round < 50000; round++) {
        struct address v4, v6;
        unsigned name, place;

        seed = seed * 1664525u + 1013904223u;
        name = (seed >> 8) % NAMES;
        CHECK_OK(standins_assign(s, name_of(name), round, &v4, &v6, &err), err);
        place = v4.bytes[3] - 1u;
        assert_true(place < PLACES);
        for (unsigned i = 0; i < standins_count(s); i++)
            CHECK(i == place || owner[i] != name || round == 0, "%u has two places", name);
        owner[place] = name;
        for (unsigned i = 0; i < standins_count(s); i++) {
            struct address a = address_v4((198u << 24 | 18u << 16) + i + 1);

            assert_string_equal(standins_find(s, &a, round), name_of(owner[i]));
        }
    }
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a name has its addresses, and they have its name", test_both_ways),
        CLAIM("no other address stands for anybody", test_strangers),
        CLAIM("the least recently used is given away, after its time", test_reuse),
        CLAIM("a table has its size, a name its length", test_limits),
        CLAIM("an address stands for the name that got it last", test_churn),
        CLAIM("65536 names are found both ways, also after others took their place", test_full),
    };

    return RUN_CLAIMS("egress/standin", claims);
}
