/* SPDX-License-Identifier: Apache-2.0 */
#include "toml/toml.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "tests/test.h"

/* A document and the JSON of its tree, keys sorted; or the place and a part of the error. */
struct reads {
    const char *text, *json;
};

struct refuses {
    const char *text;
    unsigned line, column;
    const char *part;
};

static void check_reads(const struct reads *row)
{
    json_auto_t *tree = NULL;
    autofree char *json = NULL;
    struct text_place place;
    struct error err = {0};
    size_t n = strlen(row->text);
    autofree char *text = malloc(n + 1); /* its own block, without NUL: nothing reads beyond */

    assert_non_null(text);
    memcpy(text, row->text, n);
    CHECK(toml_parse(text, n, &tree, &place, &err) == 0, "'%s': %u:%u %s", row->text, place.line,
          place.column, err.msg);
    json = json_dumps(tree, JSON_COMPACT | JSON_SORT_KEYS);
    assert_non_null(json);
    CHECK_STR(json, row->json, row->text);
}

static void check_refuses(const struct refuses *row)
{
    json_t *tree = NULL;
    struct text_place place = {0};
    struct error err = {0};
    int r = toml_parse(row->text, strlen(row->text), &tree, &place, &err);

    CHECK(r < 0 && !tree, "'%s': was read", row->text);
    CHECK(r == -(int)err.code && err.code == ERR_INVALID, "'%s': %d %s", row->text, r, err.msg);
    CHECK(place.line == row->line && place.column == row->column, "'%s': at %u:%u, not %u:%u (%s)",
          row->text, place.line, place.column, row->line, row->column, err.msg);
    CHECK(strstr(err.msg, row->part), "'%s': '%s' does not say '%s'", row->text, err.msg,
          row->part);
}

/* ---- what is read ---- */

static void test_keys(void **state)
{
    static const struct reads rows[] = {
        {"", "{}"},
        {" \t\r\n# only a comment", "{}"},
        {"a = 1", "{\"a\":1}"},
        {"a=1\r\nb=2\n", "{\"a\":1,\"b\":2}"},
        {"\ta\t=\t1\t# c", "{\"a\":1}"},
        {"1-_Z = 1", "{\"1-_Z\":1}"},
        {"1.2 = 3", "{\"1\":{\"2\":3}}"},
        {"true = true\ninf = 0", "{\"inf\":0,\"true\":true}"},
        {"\"\" = 1\n' ' = 2", "{\"\":1,\" \":2}"},
        {"\"a.b\" . 'c\\d' .e = 1", "{\"a.b\":{\"c\\\\d\":{\"e\":1}}}"},
        {"\"\\u00e9\\n\" = 1", "{\"\xc3\xa9\\n\":1}"},
        {"a.b = 1\na.c.d = 2\nb = 3\na.e = 4", "{\"a\":{\"b\":1,\"c\":{\"d\":2},\"e\":4},\"b\":3}"},
    };

    (void)state;
    FOR_EACH(row, rows)
    check_reads(row);
}

static void test_strings(void **state)
{
    static const struct reads rows[] = {
        {"x = \"\"", "{\"x\":\"\"}"},
        {"x = \"\\b\\t\\n\\f\\r\\\"\\\\\"", "{\"x\":\"\\b\\t\\n\\f\\r\\\"\\\\\"}"},
        {"x = \"\\u00e9\\U0001F600\"", "{\"x\":\"\xc3\xa9\xf0\x9f\x98\x80\"}"},
        {"x = \"\\u007f\\u0080\\u07ff\\u0800\\uFFFF\\U0010FFFF\"",
         "{\"x\":\"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf4\x8f\xbf\xbf\"}"},
        {"x = '\\n\"#'", "{\"x\":\"\\\\n\\\"#\"}"},
        {"x = \"\"\"\"\"\"", "{\"x\":\"\"}"},
        {"x = \"\"\"\r\n\na\r\nb\"\"\"", "{\"x\":\"\\na\\nb\"}"},
        {"x = \"\"\"a \\\r\n\t \n  b \\  \n\"\"\"", "{\"x\":\"a b \"}"},
        {"x = \"\"\"\"\"a\"\"\\\"\"\"\"\"\"", "{\"x\":\"\\\"\\\"a\\\"\\\"\\\"\\\"\\\"\"}"},
        {"x = '''\n''a\\\r\n'''''", "{\"x\":\"''a\\\\\\n''\"}"},
    };

    (void)state;
    FOR_EACH(row, rows)
    check_reads(row);
}

static void test_numbers(void **state)
{
    static const struct reads rows[] = {
        {"x = [0, +0, -0, 7, +7, -7, 1_000_0]", "{\"x\":[0,0,0,7,7,-7,10000]}"},
        {"x = [9223372036854775807, -9223372036854775808]",
         "{\"x\":[9223372036854775807,-9223372036854775808]}"},
        {"x = [0xDead_beef, 0x7fffffffffffffff, 0o7_5, 0b1_0, 0x00]",
         "{\"x\":[3735928559,9223372036854775807,61,2,0]}"},
        {"x = [1.0, -0.0, 0.5, 1e3, 1E+0_3, 2.5e-1, 1_0.0_1]",
         "{\"x\":[1.0,-0.0,0.5,1000.0,1000.0,0.25,10.01]}"},
        {"x = [0e0, 1e-400]", "{\"x\":[0.0,0.0]}"},
        {"x = [true, false]", "{\"x\":[true,false]}"},
    };

    (void)state;
    FOR_EACH(row, rows)
    check_reads(row);
}

static void test_date_times(void **state)
{
    static const struct reads rows[] = {
        {"x = 1979-05-27", "{\"x\":\"1979-05-27\"}"},
        {"x = 07:32:00", "{\"x\":\"07:32:00\"}"},
        {"x = 23:59:59.9999999999 # c", "{\"x\":\"23:59:59.9999999999\"}"},
        {"x = 1979-05-27T07:32:00", "{\"x\":\"1979-05-27T07:32:00\"}"},
        {"x = 1979-05-27 07:32:00.5", "{\"x\":\"1979-05-27T07:32:00.5\"}"},
        {"x = 1979-05-27t07:32:00z", "{\"x\":\"1979-05-27T07:32:00z\"}"},
        {"x = [1979-05-27 00:32:00-23:59,1979-05-27 ]",
         "{\"x\":[\"1979-05-27T00:32:00-23:59\",\"1979-05-27\"]}"},
        {"x = [2000-02-29, 2024-02-29, 0000-02-29, 2023-04-30]",
         "{\"x\":[\"2000-02-29\",\"2024-02-29\",\"0000-02-29\",\"2023-04-30\"]}"},
    };

    (void)state;
    FOR_EACH(row, rows)
    check_reads(row);
}

static void test_containers(void **state)
{
    static const struct reads rows[] = {
        {"x = []", "{\"x\":[]}"},
        {"x = [ # c\r\n\n 1 , # d\n [ ] , ]", "{\"x\":[1,[]]}"},
        {"x = [1, 'a', {b = [{}]}]", "{\"x\":[1,\"a\",{\"b\":[{}]}]}"},
        {"x = {}\ny = { }", "{\"x\":{},\"y\":{}}"},
        {"x = {a.b = 1, a.c = {d = 2} , 'e' = [\n3\n]}",
         "{\"x\":{\"a\":{\"b\":1,\"c\":{\"d\":2}},\"e\":[3]}}"},
        {"[a]\nb = 1\n[ a . 'c' ] # d\ne = 2", "{\"a\":{\"b\":1,\"c\":{\"e\":2}}}"},
        {"[[a]]\nb = 1\n[[ a ]]\n[[a]]\nb = 2", "{\"a\":[{\"b\":1},{},{\"b\":2}]}"},
        {"[[a]]\n[[a.b]]\nc = 1\n[[a.b]]\n[a.b.d]\n[[a]]\n[[a.b]]\nc = 2",
         "{\"a\":[{\"b\":[{\"c\":1},{\"d\":{}}]},{\"b\":[{\"c\":2}]}]}"},
    };

    (void)state;
    FOR_EACH(row, rows)
    check_reads(row);
}

static void test_definitions(void **state)
{
    static const struct reads rows[] = {
        {"[a.b.c]\n[a]\nd = 1\n[a.b]\ne = 2", "{\"a\":{\"b\":{\"c\":{},\"e\":2},\"d\":1}}"},
        {"[a]\nb.c = 1\n[a.b.d]\ne = 2", "{\"a\":{\"b\":{\"c\":1,\"d\":{\"e\":2}}}}"},
        {"a.b = 1\n[a.c]\n[[a.d]]", "{\"a\":{\"b\":1,\"c\":{},\"d\":[{}]}}"},
        {"[a.b.c]\n[a]\nb.d = 1\n[a.b.e]", "{\"a\":{\"b\":{\"c\":{},\"d\":1,\"e\":{}}}}"},
        {"[[a.b]]\n[a]\nc = 1\n[[a.b]]", "{\"a\":{\"b\":[{},{}],\"c\":1}}"},
        {"[[a]]\nb.c = 1\n[a.d]\n[[a]]\nb.c = 2\n[a.d]",
         "{\"a\":[{\"b\":{\"c\":1},\"d\":{}},{\"b\":{\"c\":2},\"d\":{}}]}"},
    };

    (void)state;
    FOR_EACH(row, rows)
    check_reads(row);
}

/* ---- what is refused ---- */

static void test_redefinitions(void **state)
{
    static const struct refuses rows[] = {
        {"a = 1\n'a' = 2", 2, 1, "expected a new key, but ''a'' is already defined"},
        {"a = 1\na.b = 2", 2, 1, "expected a table, but 'a' is already a value"},
        {"a.b = 1\na = 2", 2, 1, "already defined"},
        {"a = 1\n[a]", 2, 2, "already a value"},
        {"a = 1\n[[a]]", 2, 3, "already a value"},
        {"a = 1\n[a.b]", 2, 2, "'a' is already a value"},
        {"[a]\nb = 1\n[a.b.c]", 3, 4, "'a.b' is already a value"},
        {"[a]\n[a]", 2, 2, "'a' is already defined by [...]"},
        {"[a.b]\n[a]\n[a.b]", 3, 4, "'a.b' is already defined by [...]"},
        {"[a]\nb.c = 1\n[a.b]", 3, 4, "'a.b' is already defined by dotted keys"},
        {"[a]\nb.c.d = 1\n[a.b.c]", 3, 6, "'a.b.c' is already defined by dotted keys"},
        {"a.b = 1\n[a]", 2, 2, "already defined by dotted keys"},
        {"[a.b.c]\n[a]\nb.c.d = 1", 3, 3, "'b.c' is already defined by [...]"},
        {"[a.b.c]\n[a]\nb.d = 1\n[a.b]", 4, 4, "already defined by dotted keys"},
        {"[a]\nb.c = 1\n[[a.b]]", 3, 5, "'a.b' is already a table"},
        {"[a]\n[[a]]", 2, 3, "expected a list of tables, but 'a' is already a table"},
        {"[a.b]\n[[a]]", 2, 3, "already a table"},
        {"[[a]]\n[a]", 2, 2, "'a' is already defined by [[...]]"},
        {"[[a.b]]\n[a]\nb.c = 1", 3, 1, "'b' is already defined by [[...]]"},
        {"[[a]]\n[a.b]\n[a.b]", 3, 4, "already defined by [...]"},
        {"a = []\n[[a]]", 2, 3, "already an array, which is complete"},
        {"a = [{}]\n[a.b]", 2, 2, "already an array, which is complete"},
        {"a = {}\n[a.b]", 2, 2, "already an inline table, which is complete"},
        {"a = {}\na.b = 1", 2, 1, "already an inline table"},
        {"a = {b.c = 1}\n[a.b.d]", 2, 2, "already an inline table"},
        {"[a]\nb = {}\n[a.b]", 3, 4, "already an inline table"},
        {"a = {b = 1, b = 2}", 1, 13, "'b' is already defined"},
        {"a = {b = {}, b.c = 2}", 1, 14, "already an inline table"},
        {"a = {b.c = 1, b = 2}", 1, 15, "already defined"},
        {"a = {b = [{}], b.c = 2}", 1, 16, "already an array"},
    };

    (void)state;
    FOR_EACH(row, rows)
    check_refuses(row);
}

static void test_bad_lines(void **state)
{
    static const struct refuses rows[] = {
        {"x =", 1, 4, "expected a value after 'x =', found end of text"},
        {"\xc3\xa9 = 1", 1, 1, "expected a key, found U+00E9"},
        {"\xef\xbb\xbfx = 1", 1, 1, "found U+FEFF"},
        {"\"\xc3\xa9\" =\n", 1, 6, "expected a value after '\"\xc3\xa9\" =', found end of line"},
        {"x = # c", 1, 5, "expected a value after 'x =', found '#'"},
        {"x\n", 1, 2, "expected '=' after 'x', found end of line"},
        {"x y = 1", 1, 3, "expected '=' after 'x', found 'y'"},
        {"= 1", 1, 1, "expected a key, found '='"},
        {"x. = 1", 1, 4, "expected a key after '.', found '='"},
        {".x = 1", 1, 1, "expected a key, found '.'"},
        {"x..y = 1", 1, 3, "expected a key after '.', found '.'"},
        {"\"\"\"x\"\"\" = 1", 1, 3, "expected '=' after '\"\"', found '\"'"},
        {"x = 1 y = 2", 1, 7, "expected end of line after a value, found 'y'"},
        {"x = 'a''b'", 1, 8, "expected end of line after a value, found an apostrophe"},
        {"[a] b = 1", 1, 5, "expected end of line after a table's name, found 'b'"},
        {"[]", 1, 2, "expected a key, found ']'"},
        {"[[]]", 1, 3, "expected a key, found ']'"},
        {"[a\n]", 1, 3, "expected ']' after 'a', found end of line"},
        {"[[a]", 1, 5, "expected ']]' after 'a', found end of text"},
        {"[[a] ]", 1, 5, "expected ']]' after 'a', found ' '"},
        {"[ [a]]", 1, 3, "expected a key, found '['"},
        {"[a]]", 1, 4, "found ']'"},
        {"[a.b", 1, 5, "expected ']' after 'a.b', found end of text"},
        {"x = [1 2]", 1, 8, "expected ',' or ']' in an array, found '2'"},
        {"x = [,]", 1, 6, "expected a value, found ','"},
        {"x = [\n1,", 2, 3, "expected a value or ']', found end of text"},
        {"x = {a = 1,}", 1, 12, "expected a key, found '}'"},
        {"x = {a = 1\n}", 1, 11, "expected ',' or '}' in an inline table, found end of line"},
        {"x = {\n}", 1, 6, "expected a key, found end of line"},
        {"x = {a = 1 # c", 1, 12, "found '#'"},
        {"x = }", 1, 5, "expected a value, found '}'"},
    };

    (void)state;
    FOR_EACH(row, rows)
    check_refuses(row);
}

static void test_bad_scalars(void **state)
{
    static const struct refuses rows[] = {
        {"x = yes", 1, 5, "expected a value, found 'yes': a string needs quotes"},
        {"x = True", 1, 5, "found 'True'"},
        {"x = 01", 1, 5, "expected a number, found '01': it begins with 0"},
        {"x = 0_1", 1, 5, "it begins with 0"},
        {"x = 1_", 1, 5, "a digit is missing"},
        {"x = 1__0", 1, 5, "a digit is missing"},
        {"x = _1", 1, 5, "a digit is missing"},
        {"x = 1.", 1, 5, "a digit is missing"},
        {"x = .5", 1, 5, "a digit is missing"},
        {"x = 1._5", 1, 5, "a digit is missing"},
        {"x = 1e", 1, 5, "a digit is missing"},
        {"x = 0x", 1, 5, "a digit is missing"},
        {"x = 0x_1", 1, 5, "a digit is missing"},
        {"x = 0b2", 1, 5, "a digit is missing"},
        {"x = 0o78", 1, 5, "it goes on after its digits"},
        {"x = 0X1", 1, 5, "it goes on after its digits"},
        {"x = +0x1", 1, 5, "it goes on after its digits"},
        {"x = 0x1.5", 1, 5, "it goes on after its digits"},
        {"x = 1.5.5", 1, 5, "it goes on after its digits"},
        {"x = ++1", 1, 5, "found '++1'"},
        {"x = 9223372036854775808", 1, 5, "expected an integer of 64 bits, found '92233"},
        {"x = -9223372036854775809", 1, 5, "expected an integer of 64 bits"},
        {"x = 0x8000000000000000", 1, 5, "expected an integer of 64 bits"},
        {"x = 1e309", 1, 5, "expected a number of at most 1.8e308, found '1e309'"},
        {"x = inf", 1, 5, "expected a finite number, found 'inf'"},
        {"x = [1, -nan]", 1, 9, "expected a finite number, found '-nan'"},
        {"x = 1979-13-01", 1, 5, "expected a date, found '1979-13-01': months are 01 to 12"},
        {"x = 1900-02-29", 1, 5, "that month has no such day"},
        {"x = 2200-02-29", 1, 5, "that month has no such day"},
        {"x = 2023-04-31", 1, 5, "that month has no such day"},
        {"x = 2023-04-00", 1, 5, "that month has no such day"},
        {"x = 2023-4-01", 1, 5, "a date is written 1979-05-27"},
        {"x = 2023-04-01T", 1, 5, "a time is written"},
        {"x = 2023-04-01T10:00", 1, 5, "a time is written"},
        {"x = 2023-04-01 10:00", 1, 5, "found '2023-04-01 10:00': a time is written"},
        {"x = 2023-04-01  10:00:00", 1, 17, "expected end of line after a value, found '10'"},
        {"x = 2023-04-01_10:00:00", 1, 5, "a time comes after 'T' or one blank"},
        {"x = 24:00:00", 1, 5, "expected a time, found '24:00:00': hours are 00 to 23"},
        {"x = 23:60:00", 1, 5, "minutes are 00 to 59"},
        {"x = 23:59:60", 1, 5, "seconds are 00 to 59"},
        {"x = 23:59:59.", 1, 5, "a time is written"},
        {"x = 23:59:59Z", 1, 5, "it goes on after its end"},
        {"x = 2023-04-01T10:00:00+24:00", 1, 5, "hours are 00 to 23"},
        {"x = 2023-04-01T10:00:00+0100", 1, 5, "after the time comes Z or an offset"},
        {"x = 2023-04-01T10:00:00ZZ", 1, 5, "it goes on after its end"},
    };

    (void)state;
    FOR_EACH(row, rows)
    check_refuses(row);
}

static void test_bad_strings(void **state)
{
    static const struct refuses rows[] = {
        {"x = \"a", 1, 7, "expected \" at the end of a string, found end of text"},
        {"x = 'a\n'", 1, 7, "expected ' at the end of a string, found end of line"},
        {"x = \"a\r\n\"", 1, 7, "found end of line"},
        {"\"a\nb\" = 1", 1, 3, "found end of line"},
        {"\nx = \"\"\"a\n\"\"", 3, 3, "end of the string of line 2, found end of text"},
        {"x = '''a", 1, 9, "expected ''' at the end of the string of line 1"},
        {"x = \"\\q\"", 1, 7, "after '\\' in a string, found 'q'"},
        {"x = \"\\x41\"", 1, 7, "found 'x41'"},
        {"x = \"\\\n\"", 1, 7, "found end of line"},
        {"x = \"\"\"\\ a\"\"\"", 1, 10, "expected end of line after '\\' and blanks, found 'a'"},
        {"x = \"\\u12\"", 1, 10, "expected 4 hexadecimal digits after '\\u', found '\"'"},
        {"x = \"\\U0001f60\"", 1, 15, "expected 8 hexadecimal digits"},
        {"x = \"\\ud800\"", 1, 6, "expected the code of a character, found '\\ud800'"},
        {"x = \"\\U00110000\"", 1, 6, "found '\\U00110000'"},
        {"x = \"a\\u0000\"", 1, 7, "cannot hold NUL"},
        {"\"\\U00000000\" = 1", 1, 2, "cannot hold NUL"},
        {"x = \"\"\"a\"\"\"\"\"\"", 1, 14, "expected end of line after a value, found '\"'"},
    };

    (void)state;
    FOR_EACH(row, rows)
    check_refuses(row);
}

static void test_bad_characters(void **state)
{
    static const struct refuses rows[] = {
        {"# \x01", 1, 3, "found control character U+0001"},
        {"x = '\x7f'", 1, 6, "found control character U+007F"},
        {"x = \"\"\"\n\x1b\"\"\"", 2, 1, "found control character U+001B"},
        {"x = 1\ry = 2", 1, 6, "expected a line feed after a carriage return"},
        {"# a\r", 1, 4, "expected a line feed after a carriage return"},
        {"x = '\xff'", 1, 6, "expected UTF-8, found byte 0xff"},
        {"# \xc3\xa9\xc3", 1, 4, "found byte 0xc3"},
        {"# \xc0\x80", 1, 3, "found byte 0xc0"},
        {"# \xed\xa0\x80", 1, 3, "found byte 0xed"},
        {"# \xf4\x90\x80\x80", 1, 3, "found byte 0xf4"},
        {"# \xe0\x80\x80", 1, 3, "found byte 0xe0"},
    };
    static const char nul[] = "x = 'a\0'";
    struct text_place place;
    struct error err;
    json_t *tree;

    (void)state;
    FOR_EACH(row, rows)
    check_refuses(row);
    CHECK_ERR(toml_parse(nul, sizeof(nul) - 1, &tree, &place, &err), err, ERR_INVALID, "U+0000");
    assert_int_equal(place.column, 7);
}

static void test_messages_are_tame(void **state)
{
    static const char head[] = "\"\xc2\x9b\t\xe2\x80\xae\xc3\xa9";
    char text[5000];
    struct text_place place;
    struct error err;
    json_t *tree;

    (void)state;
    memset(text, 'k', sizeof(text));
    memcpy(text, head, sizeof(head) - 1);
    text[sizeof(text) - 1] = '"';
    CHECK_ERR(toml_parse(text, sizeof(text), &tree, &place, &err), err, ERR_INVALID,
              "expected '=' after '\"\\u009b\\u0009\\u202e\xc3\xa9kkk");
    assert_true(strstr(err.msg, "kkk...', found end of text") && strlen(err.msg) < 200);
    /* Characters are counted: four bytes only continue one. */
    assert_int_equal(place.column, sizeof(text) - 4 + 1);
}

/* ---- limits ---- */

/* `count` times `unit` between head and tail. */
static int parse_many(const char *head, const char *unit, size_t count, const char *tail,
                      struct error *err)
{
    autobuf b;
    struct text_place place = {0};
    json_auto_t *tree = NULL;
    int r;

    buf_init(&b, 2 * LIMIT_CONFIG_BYTES);
    buf_puts(&b, head);
    for (size_t i = 0; i < count; i++)
        buf_puts(&b, unit);
    buf_puts(&b, tail);
    assert_false(b.failed);
    r = toml_parse(b.data, b.len, &tree, &place, err);
    assert_true(r == 0 || place.line > 0);
    return r;
}

static void test_depth(void **state)
{
    static const struct {
        const char *head, *unit, *tail;
        size_t most;
    } rows[] = {
        {"x = ", "[", "", LIMIT_CONFIG_DEPTH - 1},
        {"x = ", "{a=", "", LIMIT_CONFIG_DEPTH - 1},
        {"x", ".x", " = 1", LIMIT_CONFIG_DEPTH - 1},
        {"[x", ".x", "]", LIMIT_CONFIG_DEPTH - 2},
        {"[[x", ".x", "]]", LIMIT_CONFIG_DEPTH - 3},
        {"[a.b]\nx", ".x", " = 1", LIMIT_CONFIG_DEPTH - 3},
        {"[[a]]\n[a.x", ".x", "]", LIMIT_CONFIG_DEPTH - 4},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct error err = {0};
        int r = parse_many(row->head, row->unit, row->most, row->tail, &err);

        CHECK(r == 0 || err.code == ERR_INVALID, "'%s%s': %s", row->head, row->unit, err.msg);
        CHECK_ERR(parse_many(row->head, row->unit, row->most + 1, row->tail, &err), err,
                  ERR_TOO_LARGE, "more than 64 ");
        CHECK_ERR(parse_many(row->head, row->unit, 500000, row->tail, &err), err, ERR_TOO_LARGE,
                  "more than 64 ");
    }
}

static void test_sizes(void **state)
{
    struct error err = {0};
    autobuf b;

    (void)state;
    CHECK_OK(parse_many("", "#", LIMIT_CONFIG_BYTES, "", &err), err);
    CHECK_ERR(parse_many("", "#", LIMIT_CONFIG_BYTES + 1, "", &err), err, ERR_TOO_LARGE,
              "more than 2097152 bytes");
    CHECK_OK(parse_many("x = [", "{a=1},", LIMIT_CONFIG_KEYS - 1, "]", &err), err);
    CHECK_ERR(parse_many("x = [", "{a=1},", LIMIT_CONFIG_KEYS, "]", &err), err, ERR_TOO_LARGE,
              "more than 65536 keys");
    CHECK_ERR(parse_many("", "[[a]]\n[a.b]\n", LIMIT_CONFIG_KEYS, "", &err), err, ERR_TOO_LARGE,
              "more than 65536 keys");
    CHECK_OK(parse_many("", "[[a]]\n", 340000, "", &err), err);
    buf_init(&b, LIMIT_CONFIG_BYTES);
    for (unsigned i = 0; i < LIMIT_CONFIG_KEYS; i++)
        buf_printf(&b, "key%u=%u\n", i, i);
    CHECK_OK(parse_many(b.data, "", 0, "", &err), err);
    CHECK_ERR(parse_many(b.data, "", 0, "x=1", &err), err, ERR_TOO_LARGE, "more than 65536 keys");
}

/* ---- places ---- */

static void test_locate(void **state)
{
    static const char text[] = "a = 1\n"                      /* 1 */
                               "\xc3\xa9.x = 1 # not a key\n" /* 2, refused later */
                               "";
    static const char good[] = "a = 1\n"                                 /* 1 */
                               " 'b \xc3\xa9'.c . d = [1,\r\n"           /* 2 */
                               "  { e = [[], 'x'] }]\r\n"                /* 3 */
                               "[s.t]\n"                                 /* 4 */
                               "k.l = {m.n = \"\"\"\n\n\"\"\", o = 2}\n" /* 5, 6, 7 */
                               "[s]\n"                                   /* 8 */
                               "[[s.list]]\n"                            /* 9 */
                               "v = 1\n"                                 /* 10 */
                               "[[s.list]]\n"                            /* 11 */
                               "w.0 = 1\n"                               /* 12 */
                               "[s.list.z]\n"                            /* 13 */
                               "[\"\"]\n";                               /* 14 */
    static const struct {
        const char *path[8];
        unsigned line, column; /* 0: the text does not hold it */
    } rows[] = {
        {{NULL}, 1, 1},
        {{"a"}, 1, 1},
        {{"b \xc3\xa9"}, 2, 2},
        {{"b \xc3\xa9", "c"}, 2, 8},
        {{"b \xc3\xa9", "c", "d"}, 2, 12},
        {{"b \xc3\xa9", "c", "d", "0"}, 2, 17},
        {{"b \xc3\xa9", "c", "d", "1"}, 3, 3},
        {{"b \xc3\xa9", "c", "d", "1", "e"}, 3, 5},
        {{"b \xc3\xa9", "c", "d", "1", "e", "0"}, 3, 10},
        {{"b \xc3\xa9", "c", "d", "1", "e", "1"}, 3, 14},
        {{"s"}, 4, 2},
        {{"s", "t"}, 4, 4},
        {{"s", "t", "k"}, 5, 1},
        {{"s", "t", "k", "l", "m", "n"}, 5, 10},
        {{"s", "t", "k", "l", "o"}, 7, 6},
        {{"s", "list"}, 9, 5},
        {{"s", "list", "0"}, 9, 5},
        {{"s", "list", "0", "v"}, 10, 1},
        {{"s", "list", "1"}, 11, 5},
        {{"s", "list", "1", "w", "0"}, 12, 3},
        {{"s", "list", "1", "z"}, 13, 9},
        {{""}, 14, 2},
        {{"b"}, 0, 0},
        {{"a", "b"}, 0, 0},
        {{"a", "0"}, 0, 0},
        {{"t"}, 0, 0},
        {{"s", "list", "2"}, 0, 0},
        {{"s", "list", "00"}, 0, 0},
        {{"s", "list", ""}, 0, 0},
        {{"s", "list", "v"}, 0, 0},
        {{"s", "list", "0", "w"}, 0, 0},
        {{"s", "list", "18446744073709551616"}, 0, 0},
    };
    struct text_place place;

    (void)state;
    FOR_EACH(row, rows)
    {
        bool there = toml_locate(good, strlen(good), row->path, &place) >= 0;

        CHECK(there == (row->line > 0), "row %zu: found is %d", (size_t)(row - rows), there);
        CHECK(!there || (place.line == row->line && place.column == row->column),
              "row %zu: at %u:%u", (size_t)(row - rows), place.line, place.column);
    }
    assert_true(toml_locate(text, strlen(text), (const char *const[]){"a", NULL}, &place) == 0);
    assert_true(toml_locate(text, strlen(text), (const char *const[]){"x", NULL}, &place) < 0);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("keys are bare, quoted or dotted", test_keys),
        CLAIM("the four kinds of strings are decoded", test_strings),
        CLAIM("integers are whole, floats are reals, in every spelling", test_numbers),
        CLAIM("date-times are strings as written, but with a T", test_date_times),
        CLAIM("arrays, inline tables, tables and lists of tables nest", test_containers),
        CLAIM("a table may be extended where the specification says so", test_definitions),
        CLAIM("a table or key that is complete cannot be defined again", test_redefinitions),
        CLAIM("a line that is not TOML is refused at its place, with what was expected",
              test_bad_lines),
        CLAIM("what is no number, date or time is refused with the reason", test_bad_scalars),
        CLAIM("strings that are not closed or badly escaped are refused", test_bad_strings),
        CLAIM("control characters and what is not UTF-8 are refused anywhere", test_bad_characters),
        CLAIM("messages are bounded and hold no control characters", test_messages_are_tame),
        CLAIM("depth has an end, whatever it is made of", test_depth),
        CLAIM("bytes and keys have an end", test_sizes),
        CLAIM("every key and element is found where it was first written", test_locate),
    };

    return RUN_CLAIMS("toml/toml", claims);
}
