/* SPDX-License-Identifier: Apache-2.0 */
#include "json/put.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "tests/test.h"

/* jansson is the judge. */
static void check(const json_t *v)
{
    char *want = json_dumps(v, JSON_COMPACT | JSON_REAL_PRECISION(15) | JSON_ENCODE_ANY);
    char *got = json_text(v);

    CHECK(want && got && strcmp(want, got) == 0, "got %s, want %s", got, want);
    free(want);
    free(got);
}

static void test_values(void **state)
{
    static const double reals[] = {0,    -0.0, 1,      1.5,   -2.25,   1e15,   1e16,  1e100,
                                   1e-5, 1e-7, 0.1234, 1e300, -1e-300, 123456, 0.001, 1.0 / 3};
    json_t *all = json_array();

    (void)state;
    for (size_t i = 0; i < sizeof(reals) / sizeof(*reals); i++)
        (void)json_array_append_new(all, json_real(reals[i]));
    (void)json_array_append_new(all, json_pack("{s:i,s:[],s:{},s:n,s:b,s:b,s:I}", "a", -7, "b", "c",
                                               "d\n", "e", 1, "f", 0, "g",
                                               (json_int_t)9007199254740993));
    check(all);
    json_decref(all);
}

static void test_strings(void **state)
{
    char text[300];
    json_t *v;

    (void)state;
    for (int c = 0; c < 128; c++) { /* each alone, at the ends and in between */
        char s[] = {'x', (char)c, 'y', (char)c, (char)c};

        v = json_stringn(s, sizeof(s));
        check(v);
        json_decref(v);
    }
    for (int c = 0; c < 128; c++) /* at every place of the words that are looked at at once */
        for (size_t at = 0; at < 20; at++) {
            memset(text, 'a', 22);
            memcpy(text + (at + 7) % 20, "\xc3\xa9", 2);
            text[at] = (char)c;
            v = json_stringn(text, 22);
            if (v)
                check(v);
            json_decref(v);
        }
    for (size_t n = 0; n < sizeof(text); n++) {
        memset(text, 'q', n);
        if (n > 4)
            memcpy(text + n / 2, "\xf0\x9f\x98\x80", n / 2 + 4 <= n ? 4 : 0);
        v = json_stringn(text, n);
        if (!v)
            continue;
        check(v);
        json_decref(v);
    }
}

static json_t *random_value(unsigned *seed, int depth)
{
    int kind = rand_r(seed) % (depth > 4 ? 4 : 6);
    char key[16];
    json_t *v;

    if (kind == 0)
        return json_integer((json_int_t)rand_r(seed) * (rand_r(seed) % 2 ? 1 : -1));
    if (kind == 1)
        return json_real((rand_r(seed) - RAND_MAX / 2) / 977.0);
    if (kind == 2)
        return json_boolean(rand_r(seed) % 2);
    if (kind == 3) {
        for (size_t i = 0; i < sizeof(key); i++)
            key[i] = (char)(rand_r(seed) % 128);
        return json_stringn(key, (size_t)rand_r(seed) % sizeof(key));
    }
    v = kind == 4 ? json_array() : json_object();
    for (int i = rand_r(seed) % 5; i > 0; i--) {
        (void)snprintf(key, sizeof(key), "k%d\"", rand_r(seed) % 1000);
        if (kind == 4)
            (void)json_array_append_new(v, random_value(seed, depth + 1));
        else
            (void)json_object_set_new(v, key, random_value(seed, depth + 1));
    }
    return v;
}

static void test_random(void **state)
{
    unsigned seed = 7;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        json_t *v = random_value(&seed, 0);

        check(v);
        json_decref(v);
    }
}

static void test_full(void **state)
{
    autobuf out;
    json_t *v = json_string("more than fits");

    (void)state;
    buf_init(&out, 8);
    json_put(&out, v);
    assert_true(out.failed);
    json_decref(v);
}

/* Bytes from few values, so that whole characters come about. */
static void test_validity(void **state)
{
    static const unsigned char from[] = {'a',  'b',  0,    0x7f, 0x80, 0x8f, 0x90,
                                         0x9f, 0xa0, 0xbf, 0xc1, 0xc2, 0xdf, 0xe0,
                                         0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff};
    unsigned seed = 1, valid = 0;

    (void)state;
    for (int round = 0; round < 200000; round++) {
        char s[24];
        size_t n = 1 + (size_t)round % sizeof(s), odd = (seed >> 8) % n;
        json_t *v;

        memset(s, 'x', sizeof(s));
        for (size_t i = odd; i < n && i < odd + 4; i++) {
            seed = seed * 1103515245u + 12345u;
            s[i] = (char)from[(seed >> 16) % sizeof(from)];
        }
        v = json_stringn(s, n);
        CHECK((v != NULL) == utf8_is_valid(s, n), "round %d: jansson says %d", round, v != NULL);
        valid += v != NULL;
        json_decref(v);
    }
    CHECK(valid > 1000 && valid < 199000, "%u of them are valid", valid);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("numbers, words and nesting as jansson writes them", test_values),
        CLAIM("every character is escaped as jansson does", test_strings),
        CLAIM("jansson takes the same bytes for UTF-8", test_validity),
        CLAIM("whatever comes, the text is jansson's", test_random),
        CLAIM("a buffer that is too small fails", test_full),
    };

    return RUN_CLAIMS("json/put", claims);
}
