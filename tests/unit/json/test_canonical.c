/* SPDX-License-Identifier: Apache-2.0 */
#include "json/canonical.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "tests/test.h"

/* Steals the value; to be freed. */
static char *format(json_t *value)
{
    json_auto_t *mine = value;
    struct error err = {0};
    struct buf out;

    assert_non_null(mine);
    buf_init(&out, 1u << 20);
    CHECK_OK(canonical_format(mine, &out, &err), err);
    return out.data;
}

static void test_numbers(void **state)
{
    static const struct {
        double value;
        const char *want;
    } rows[] = {
        {0.0, "0"},
        {-0.0, "0"},
        {1.0, "1"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {100.0, "100"},
        {123456.789, "123456.789"},
        {0.000001, "0.000001"},
        {0.00000123, "0.00000123"},
        {1e-7, "1e-7"},
        {-1.25e-7, "-1.25e-7"},
        {1e20, "100000000000000000000"},
        {123456789012345680000.0, "123456789012345680000"},
        {1e21, "1e+21"},
        {1.5e300, "1.5e+300"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {5e-324, "5e-324"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {9007199254740993.0, "9007199254740992"},
        {0x1p544, "5.758609657015292e+163"}, /* the nearest 16 digits are another */
        {0x1p-44, "5.684341886080802e-14"},
        {9.5, "9.5"},
        {1.0 / 3, "0.3333333333333333"},
    };
    static const struct {
        json_int_t value;
        const char *want;
    } whole[] = {
        {0, "0"},
        {-42, "-42"},
        {9007199254740991, "9007199254740991"},
        {-9007199254740992, "-9007199254740992"},
        {9007199254740993, "9007199254740992"},
        {INT64_MAX, "9223372036854776000"},
        {INT64_MIN, "-9223372036854776000"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        autofree char *got = format(json_real(row->value));

        CHECK_STR(got, row->want, "a real");
    }
    FOR_EACH(row, whole)
    {
        autofree char *got = format(json_integer(row->value));

        CHECK_STR(got, row->want, "an integer");
    }
}

static void test_strings(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *want;
    } rows[] = {
        {"", 0, "\"\""},
        {"a/'b", 4, "\"a/'b\""},
        {"\"\\", 2, "\"\\\"\\\\\""},
        {"\b\f\n\r\t\v", 6, "\"\\b\\f\\n\\r\\t\\u000b\""},
        {"\x01\x1f\x7f", 3, "\"\\u0001\\u001f\x7f\""},
        {"a\0b", 3, "\"a\\u0000b\""},
        {"\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80\""},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        autofree char *got = format(json_stringn(row->text, row->len));

        CHECK_STR(got, row->want, row->want);
    }
}

static void test_compare(void **state)
{
    /* Each before the next, by localeCompare. */
    static const char *const order[] = {"",
                                        "\t",
                                        " ",
                                        "_",
                                        "_a",
                                        "-",
                                        ",",
                                        ";",
                                        ":",
                                        "!",
                                        "?",
                                        ".",
                                        "'",
                                        "\"",
                                        "(",
                                        ")",
                                        "[",
                                        "]",
                                        "{",
                                        "}",
                                        "@",
                                        "*",
                                        "/",
                                        "\\",
                                        "&",
                                        "#",
                                        "%",
                                        "`",
                                        "^",
                                        "+",
                                        "<",
                                        "=",
                                        ">",
                                        "|",
                                        "~",
                                        "$",
                                        "0",
                                        "10",
                                        "2",
                                        "9",
                                        "a",
                                        "A",
                                        "a b",
                                        "a-b",
                                        "a.b",
                                        "a1",
                                        "aa",
                                        "aA",
                                        "Aa",
                                        "AA",
                                        "ab",
                                        "aB",
                                        "Ab",
                                        "AB",
                                        "aBc",
                                        "abd",
                                        "b",
                                        "B",
                                        "co-op",
                                        "coop",
                                        "z",
                                        "Z",
                                        "zz",
                                        "\x7f\x01\xc3\xa9",
                                        "\xe6\x97\xa5",
                                        "\xf0\x9f\x98\x80"};
    static const char *const equal[][2] = {{"", "\x01"},
                                           {"a", "\x01"
                                                 "a\x7f"},
                                           {"ab", "a\x1f"
                                                  "b"},
                                           {"A", "A"}};

    (void)state;
    for (size_t i = 0; i < COUNT(order); i++)
        for (size_t j = 0; j < COUNT(order); j++) {
            int r = canonical_compare(order[i], order[j]);

            CHECK((r < 0) == (i < j) && (r > 0) == (i > j), "'%s' and '%s': %d", order[i], order[j],
                  r);
        }
    FOR_EACH(row, equal)
    CHECK(canonical_compare((*row)[0], (*row)[1]) == 0 &&
              canonical_compare((*row)[1], (*row)[0]) == 0,
          "'%s' and '%s'", (*row)[0], (*row)[1]);
}

static void test_values(void **state)
{
    static const struct {
        const char *json, *want;
    } rows[] = {
        {"null", "null"},
        {"[]", "[]"},
        {"{}", "{}"},
        {"[true, false, [null, 1.0]]", "[true,false,[null,1]]"},
        {"{\"b\": 1, \"a\": {\"d\": [3, 1, 2], \"C\": 2}, \"_\": {}}",
         "{\"_\":{},\"a\":{\"C\":2,\"d\":[3,1,2]},\"b\":1}"},
        /* The indices of arrays first, as every object of JavaScript has them. */
        {"{\"a\": 1, \"-\": 2, \"10\": 3, \"9\": 4, \"01\": 5, \"4294967294\": 6, "
         "\"4294967295\": 7, \"0\": 8}",
         "{\"0\":8,\"9\":4,\"10\":3,\"4294967294\":6,\"-\":2,\"01\":5,\"4294967295\":7,\"a\":1}"},
        {"{\"a\\u0001\": 1, \"a\": 2}", "{\"a\":2,\"a\\u0001\":1}"},
        {"{\"a\": 2, \"a\\u0001\": 1}", "{\"a\":2,\"a\\u0001\":1}"},
        {"{\"\\n\\\"\": 1}", "{\"\\n\\\"\":1}"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        autofree char *got = format(json_loads(row->json, JSON_DECODE_ANY, NULL));

        CHECK_STR(got, row->want, row->json);
    }
}

/* The hash is what node's crypto gives for the text of the same value. */
static void test_hash(void **state)
{
    static const char json[] =
        "{\"workspaceDir\": \"/w\", \"docker\": {\"image\": \"debian:12\", \"env\": "
        "{\"LANG\": \"C.UTF-8\", \"A\": \"1\"}, \"memory\": 1.5, \"capDrop\": [\"ALL\"]}, "
        "\"workspaceAccess\": \"rw\", \"mountFormatVersion\": 3}";
    autofree char *got = format(json_loads(json, 0, NULL));
    char hex[SHA256_HEX];

    (void)state;
    CHECK_STR(got,
              "{\"docker\":{\"capDrop\":[\"ALL\"],\"env\":{\"A\":\"1\",\"LANG\":\"C.UTF-8\"},"
              "\"image\":\"debian:12\",\"memory\":1.5},\"mountFormatVersion\":3,"
              "\"workspaceAccess\":\"rw\",\"workspaceDir\":\"/w\"}",
              "a configuration");
    sha256_hex(got, strlen(got), hex);
    CHECK_STR(hex, "5ae229fef3a6fd2dd41fa7b702c190937d5e213584f8fefb9d336e0f602305d6",
              "a configuration");
}

static void test_ends(void **state)
{
    json_auto_t *deep = json_array();
    struct error err = {0};
    autobuf out, small;

    (void)state;
    buf_init(&out, 1u << 20);
    buf_init(&small, 1);
    CHECK_ERR(canonical_format(deep, &small, &err), err, ERR_TOO_LARGE, "more than 1 bytes");
    for (unsigned i = 1; i < 2 * LIMIT_CONFIG_DEPTH; i++) {
        json_t *outer = json_pack("[o]", deep);

        assert_non_null(outer);
        deep = outer;
    }
    CHECK_OK(canonical_format(deep, &out, &err), err);
    deep = json_pack("{so}", "a", deep);
    CHECK_ERR(canonical_format(deep, &out, &err), err, ERR_TOO_LARGE, "in each other");
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a number is printed as JavaScript prints it", test_numbers),
        CLAIM("a string is escaped as JavaScript escapes it", test_strings),
        CLAIM("keys compare as localeCompare has them", test_compare),
        CLAIM("objects are sorted at every level, arrays are not", test_values),
        CLAIM("a configuration has the hash that JavaScript gives it", test_hash),
        CLAIM("length and depth have an end", test_ends),
    };

    return RUN_CLAIMS("json/canonical", claims);
}
