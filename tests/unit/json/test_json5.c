/* SPDX-License-Identifier: Apache-2.0 */
#include "json/json5.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "tests/test.h"

/* The value as compact JSON, or the error; to be freed. */
static char *read_text(const char *text, size_t len)
{
    json_auto_t *value = NULL;
    struct text_place place = {0};
    struct error err = {0};
    char *out = NULL;

    if (json5_parse(text, len, &value, &place, &err) < 0) {
        CHECK(!value, "'%s': an error and a value", text);
        CHECK(asprintf(&out, "%u:%u %s", place.line, place.column, err.msg) > 0, "memory");
        return out;
    }
    CHECK(place.line == 0 && err.msg[0] == 0, "'%s': a value and an error", text);
    out = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    assert_non_null(out);
    return out;
}

struct row {
    const char *text, *want;
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        autofree char *got = read_text(rows[i].text, strlen(rows[i].text));

        CHECK_STR(got, rows[i].want, rows[i].text);
    }
}

static void test_values(void **state)
{
    static const struct row rows[] = {
        {"null", "null"},
        {" true ", "true"},
        {"false", "false"},
        {"''", "\"\""},
        {"[]", "[]"},
        {"{}", "{}"},
        {"[1,]", "[1]"},
        {"[[],{},]", "[[],{}]"},
        {"{a:1,}", "{\"a\":1}"},
        {"{\"a\":1,'b':[null],$_9:{},if:true,null:null}",
         "{\"a\":1,\"b\":[null],\"$_9\":{},\"if\":true,\"null\":null}"},
        {"{\xc3\xbcn\xc3\xaf:1}", "{\"\xc3\xbcn\xc3\xaf\":1}"},
        {"{\\u0061b\\u00e9:1}", "{\"ab\xc3\xa9\":1}"},
        {"{a\xe2\x80\x8c:1}", "{\"a\xe2\x80\x8c\":1}"},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

static void test_numbers(void **state)
{
    static const struct row rows[] = {
        {"0", "0"},
        {"+7", "7"},
        {"-7", "-7"},
        {".5", "0.5"},
        {"-.5", "-0.5"},
        {"5.", "5"},
        {"5.e1", "50"},
        {"1e3", "1000"},
        {"1.25E-1", "0.125"},
        {"0x1F", "31"},
        {"-0XfF", "-255"},
        {"-0", "-0.0"},
        {"-0.0", "-0.0"},
        {"-0x0", "-0.0"},
        {"0e9", "0"},
        {"1e-400", "0"},
        {"-1e-400", "-0.0"},
        {"9007199254740993", "9007199254740993"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"0x7fffffffffffffff", "9223372036854775807"},
        {"9223372036854775808", "9.2233720368547758e18"},
        {"-9223372036854775809", "-9.2233720368547758e18"},
        {"0x8000000000000000", "9.2233720368547758e18"},
        {"-9223372036854775808.0", "-9.2233720368547758e18"},
        {"1e18", "1000000000000000000"},
        {"1e19", "1e19"},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

static void test_strings(void **state)
{
    static const struct row rows[] = {
        {"\"it's\"", "\"it's\""},
        {"'say \"a\"'", "\"say \\\"a\\\"\""},
        {"'\\b\\f\\n\\r\\t\\v'", "\"\\b\\f\\n\\r\\t\\u000B\""},
        {"'\\'\\\"\\\\\\/\\a\\\xc3\xa9'", "\"'\\\"\\\\/a\xc3\xa9\""},
        {"'\\x41\\xe9\\u00e9\\ud83d\\ude00'", "\"A\xc3\xa9\xc3\xa9\xf0\x9f\x98\x80\""},
        {"'a\\\nb\\\r\nc\\\rd\\\xe2\x80\xa8"
         "e\\\xe2\x80\xa9'",
         "\"abcde\""},
        {"'a\xe2\x80\xa8'", "\"a\xe2\x80\xa8\""},
        {"'\t\x01'", "\"\\t\\u0001\""},
        {"'// /* no comment */'", "\"// /* no comment */\""},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

static void test_space(void **state)
{
    static const struct row rows[] = {
        {"\xef\xbb\xbf{}", "{}"},
        {"\t\v\f \xc2\xa0\xe1\x9a\x80\xe2\x80\x80\xe2\x80\x8a\xe2\x80\xaf\xe2\x81\x9f\xe3\x80\x80"
         "\r\n\xe2\x80\xa8\xe2\x80\xa9"
         "1",
         "1"},
        {"// a\n1// b", "1"},
        {"// a\r1", "1"},
        {"// a\xe2\x80\xa8"
         "1",
         "1"},
        {"// a\xe2\x80\xa9"
         "1",
         "1"},
        {"//", "1:3 expected a value, found the end of the text"},
        {"/**/1/* a * / // \n **/", "1"},
        {"{/**/a/**/:/**/1/**/,/**/}", "{\"a\":1}"},
        {"[1//\n,2]", "[1,2]"},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

static void test_refuses(void **state)
{
    static const struct row rows[] = {
        {"", "1:1 expected a value, found the end of the text"},
        {"{mode: 5 x}", "1:10 expected ',' or '}' after the value of 'mode', found 'x'"},
        {"{mode: yes}", "1:8 expected the value of 'mode', found 'yes'"},
        {"{mode:}", "1:7 expected the value of 'mode', found '}'"},
        {"{mode 5}", "1:7 expected ':' after the key 'mode', found '5'"},
        {"{\n  a: 1\n  b: 2\n}", "3:3 expected ',' or '}' after the value of 'a', found 'b'"},
        {"{a: 1,, b: 2}", "1:7 expected a key or '}', found ','"},
        {"{,}", "1:2 expected a key or '}', found ','"},
        {"{1: 2}", "1:2 expected a key or '}', found '1'"},
        {"{a", "1:3 expected ':' after the key 'a', found the end of the text"},
        {"{a:\x01}", "1:4 expected the value of 'a', found '\\u0001'"},
        {"{\xe2\x82\xac:1}", "1:2 expected a key or '}', found '\\u20ac'"},
        {"{'\x1b[31m' 1}", "1:10 expected ':' after the key '\\u001b[31m', found '1'"},
        {"[1 2]", "1:4 expected ',' or ']' after a value, found '2'"},
        {"[,]", "1:2 expected a value, found ','"},
        {"[1\n", "2:1 expected ',' or ']' after a value, found the end of the text"},
        {"{}}", "1:3 expected nothing after the value, found '}'"},
        {"nullx", "1:1 expected a value, found 'nullx'"},
        {"TRUE", "1:1 expected a value, found 'TRUE'"},
        {"/", "1:1 expected a value, found '/'"},
        {"1 /* a\n * /", "1:3 the comment is not closed"},
        {"/*/", "1:1 the comment is not closed"},
        {" 'a", "1:2 the string is not closed"},
        {" 'a\nb'", "1:2 the string is not closed in its line"},
        {"'a\\", "1:1 the string is not closed"},
        {"'\\1'", "1:2 a digit cannot be escaped: write \\xHH for a character"},
        {"'\\01'", "1:2 a digit cannot be escaped: write \\xHH for a character"},
        {"'\\x4'", "1:2 expected 2 hexadecimal digits after '\\x'"},
        {"'\\u12g4'", "1:2 expected 4 hexadecimal digits after '\\u'"},
        {"{\\x61:1}", "1:2 only \\uXXXX is an escape in a bare key"},
        {"{\\u0031:1}", "1:2 '\\u0031' cannot stand in a bare key"},
        {"{\\ud83d\\ude00:1}", "1:2 '\\ud83d' cannot stand in a bare key"},
        {"01", "1:1 a number cannot start with a zero and another digit"},
        {"-", "1:2 expected a digit, found the end of the text"},
        {"+ 1", "1:2 expected a digit, found ' '"},
        {".", "1:2 expected a digit, found the end of the text"},
        {"1e+", "1:4 expected the digits of an exponent, found the end of the text"},
        {"0x", "1:3 expected a hexadecimal digit, found the end of the text"},
        {"0xg", "1:3 expected a hexadecimal digit, found 'g'"},
        {"[0\n,1.5.5]", "2:5 expected ',' or ']' after a value, found '.'"},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

/* What npm's json5 reads. */
static void test_stricter(void **state)
{
    static const struct row rows[] = {
        {"{a:1,\nb:2,\n 'a':3}", "3:2 the key 'a' is already given in line 1, column 2"},
        {"{a:{b:1,c:{a:1},\\u0062:2}}", "1:17 the key 'b' is already given in line 1, column 5"},
        {"[{a:1},{a:1,/*\n*/b:[{a:0}], a:1}]",
         "2:14 the key 'a' is already given in line 1, column 9"},
        {"{'':1,\"\":2}", "1:7 the key '' is already given in line 1, column 2"},
        {"'a\\0'", "1:3 a string cannot hold U+0000"},
        {"'\\x00'", "1:2 a string cannot hold U+0000"},
        {"{'\\u0000':1}", "1:3 a string cannot hold U+0000"},
        {"'\\ud83d'", "1:2 '\\ud83d' is half a surrogate pair"},
        {"'\\ude00\\ud83d'", "1:2 '\\ude00' is half a surrogate pair"},
        {"'\\ud83d\\u0041'", "1:2 '\\ud83d' is half a surrogate pair"},
        {"'\\ud83d\\\n\\ude00'", "1:2 '\\ud83d' is half a surrogate pair"},
        {"Infinity", "1:1 expected a finite number, found 'Infinity'"},
        {"[NaN]", "1:2 expected a finite number, found 'NaN'"},
        {"-Infinity", "1:2 expected a digit, found 'Infinity'"},
        {"[1e309]", "1:2 the number is too large"},
        {"[\n-1e309]", "2:1 the number is too large"},
    };
    autofree char *nul = read_text("'a\0b'", 5), *bare = read_text("1\0", 2);

    (void)state;
    check_rows(rows, COUNT(rows));
    CHECK_STR(nul, "1:3 a string cannot hold U+0000", "a raw NUL");
    CHECK_STR(bare, "1:2 expected nothing after the value, found '\\u0000'", "a NUL at the end");
}

static void test_utf8(void **state)
{
    static const struct row rows[] = {
        {"'\xff'", "1:2 the byte 0xff is not UTF-8"},
        {"// \xc3\xa9\n\x80", "2:1 the byte 0x80 is not UTF-8"},
        {"'\xc3\xa9\xc0\x80'", "1:3 the byte 0xc0 is not UTF-8"},
        {"'\xe0\x80\x80'", "1:2 the byte 0xe0 is not UTF-8"},
        {"'\xed\xa0\x80'", "1:2 the byte 0xed is not UTF-8"},
        {"'\xf0\x80\x80\x80'", "1:2 the byte 0xf0 is not UTF-8"},
        {"'\xf4\x90\x80\x80'", "1:2 the byte 0xf4 is not UTF-8"},
        {"'\xf5\x80\x80\x80'", "1:2 the byte 0xf5 is not UTF-8"},
        {"/*\xe2\x82*/", "1:3 the byte 0xe2 is not UTF-8"},
        {"1\xe2\x82", "1:2 the byte 0xe2 is not UTF-8"},
        {"{\xf0\x9f\x98", "1:2 the byte 0xf0 is not UTF-8"},
        {"'\xf4\x8f\xbf\xbf\xed\x9f\xbf'", "\"\xf4\x8f\xbf\xbf\xed\x9f\xbf\""},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

static void test_places(void **state)
{
    static const struct row rows[] = {
        {"\n\n  ?", "3:3 expected a value, found '?'"},
        {"\r\n\r\n?", "3:1 expected a value, found '?'"},
        {"\r\r?", "3:1 expected a value, found '?'"},
        {"\n\r?", "3:1 expected a value, found '?'"},
        {"\xe2\x80\xa8\xe2\x80\xa9?", "3:1 expected a value, found '?'"},
        {"['\xc3\xa9\xf0\x9f\x98\x80' ?]", "1:7 expected ',' or ']' after a value, found '?'"},
        {"['a\\\nb' ?]", "2:4 expected ',' or ']' after a value, found '?'"},
        {"/*\n*/ ?", "2:4 expected a value, found '?'"},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

static void test_bounded(void **state)
{
    char text[2048];
    struct text_place place;
    struct error err;
    json_t *value;

    (void)state;
    memset(text, 'k', sizeof(text));
    text[0] = '{';
    text[1000] = ' ';
    CHECK_ERR(json5_parse(text, sizeof(text), &value, &place, &err), err, ERR_INVALID,
              "expected ':' after the key 'kkkk");
    CHECK(strlen(err.msg) < 300 && strstr(err.msg, "k...', found 'kkk"), "%s", err.msg);
    for (size_t i = 1; i < sizeof(text) - 1; i += 2)
        memcpy(text + i, "\xc2\x80", 2);
    text[1] = '\'';
    text[2] = '\'';
    CHECK_ERR(json5_parse(text, sizeof(text) - 1, &value, &place, &err), err, ERR_INVALID,
              "expected ':' after the key '', found '\\u0080'");
}

/* `n` times `piece`, between two other texts; to be freed. */
static char *repeat(const char *before, const char *piece, size_t n, const char *after)
{
    size_t len = strlen(piece), at = strlen(before);
    char *text = malloc(at + n * len + strlen(after) + 1);

    assert_non_null(text);
    memcpy(text, before, at);
    for (size_t i = 0; i < n; i++, at += len)
        memcpy(text + at, piece, len);
    memcpy(text + at, after, strlen(after) + 1);
    return text;
}

static void check_limit(const char *text, bool fits, const char *part)
{
    json_auto_t *value = NULL;
    struct text_place place;
    struct error err = {0};

    if (fits)
        CHECK_OK(json5_parse(text, strlen(text), &value, &place, &err), err);
    else
        CHECK_ERR(json5_parse(text, strlen(text), &value, &place, &err), err, ERR_TOO_LARGE, part);
}

/* Keys of all objects are counted together; to be freed. */
static char *many_keys(size_t n)
{
    char *text = malloc(n * 20 + 20);
    size_t at = 2;

    assert_non_null(text);
    memcpy(text, "[{", 2);
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, 20, "%sk%zu:0", i % 1000 ? "," : i ? "},{" : "", i);
    memcpy(text + at, "}]", 3);
    return text;
}

static void test_limits(void **state)
{
    (void)state;
    for (unsigned more = 0; more <= 1; more++) {
        autofree char *spaces = repeat("1", " ", LIMIT_CONFIG_BYTES - 1 + more, "");
        autofree char *keys = many_keys(LIMIT_CONFIG_KEYS + more);
        autofree char *after = repeat("1", "]}", (LIMIT_CONFIG_DEPTH + more) / 2, "");
        autofree char *deep = repeat(more ? "[" : "", "{a:[", LIMIT_CONFIG_DEPTH / 2, after);

        check_limit(spaces, !more, "more than 2097152 bytes");
        check_limit(keys, !more, "more than 65536 keys");
        check_limit(deep, !more, "more than 64 objects and arrays in each other");
    }
}

static void test_large(void **state)
{
    autofree char *arrays = repeat("", "[", LIMIT_CONFIG_BYTES, ""),
                  *members = repeat("", "{\"a\":", LIMIT_CONFIG_BYTES / 5, ""),
                  *comment = repeat("/*", "*", LIMIT_CONFIG_BYTES - 2, ""),
                  *number = repeat("1.", "7", LIMIT_CONFIG_BYTES - 2, ""),
                  *key = repeat("{", "\\u0061", LIMIT_CONFIG_BYTES / 6 - 1, ":1}");
    autofree char *got = read_text(comment, strlen(comment)), *one = read_text(number, 1u << 20);

    (void)state;
    check_limit(arrays, false, "in each other");
    check_limit(members, false, "in each other");
    check_limit(key, true, "");
    CHECK_STR(got, "1:1 the comment is not closed", "a comment");
    CHECK_STR(one, "1.7777777777777777", "a number");
}

static void test_locate(void **state)
{
    static const char text[] = "// first\n{\n  a: {b: [10, {c: 1}, [20, 30]], '': 5},\n"
                               "  \"a b\": {a: 1}, \\u00fc: 7,\n  b: [[0]], 0: 1 }\n";
    static const struct {
        const char *path[5];
        unsigned line, column; /* 0: not there */
    } rows[] = {
        {{NULL}, 2, 1},
        {{"a"}, 3, 3},
        {{"a", "b"}, 3, 7},
        {{"a", "b", "0"}, 3, 11},
        {{"a", "b", "1"}, 3, 15},
        {{"a", "b", "1", "c"}, 3, 16},
        {{"a", "b", "2", "1"}, 3, 28},
        {{"a", ""}, 3, 34},
        {{"a b"}, 4, 3},
        {{"a b", "a"}, 4, 11},
        {{"\xc3\xbc"}, 4, 18},
        {{"b", "0", "0"}, 5, 8},
        {{"c"}, 0, 0},
        {{"b", "1"}, 0, 0},
        {{"b", "00"}, 0, 0},
        {{"b", ""}, 0, 0},
        {{"a", "b", "3"}, 0, 0},
        {{"a", "b", "0", "c"}, 0, 0},
        {{"a", "c"}, 0, 0},
        {{"a b", "b"}, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        /* The text is wrong at its end (0 is no key): what stands before that is found. */
        struct text_place at = {0};
        int r = json5_locate(text, sizeof(text) - 1, rows[i].path, &at);

        CHECK((r == 0) == (rows[i].line != 0), "row %zu: %d", i, r);
        CHECK(at.line == rows[i].line && at.column == rows[i].column, "row %zu: %u:%u", i, at.line,
              at.column);
    }
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("values and keys of every kind are read", test_values),
        CLAIM("a number is an integer when it is whole and fits", test_numbers),
        CLAIM("strings have JSON5's escapes and go over lines", test_strings),
        CLAIM("white space is Unicode's, and comments end with every kind of line", test_space),
        CLAIM("what is not JSON5 is refused with what was expected and found", test_refuses),
        CLAIM("keys given twice, NUL, half pairs and infinities are refused", test_stricter),
        CLAIM("bytes that are not UTF-8 are refused anywhere", test_utf8),
        CLAIM("places count lines of every kind, and characters", test_places),
        CLAIM("a message is short and holds no control characters", test_bounded),
        CLAIM("bytes, depth and keys have an end", test_limits),
        CLAIM("large and hostile texts are dealt with at once", test_large),
        CLAIM("a member is located by its path, without what is below or beside it", test_locate),
    };

    return RUN_CLAIMS("json/json5", claims);
}
