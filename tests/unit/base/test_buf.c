/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include "base/cleanup.h"
#include "tests/test.h"

static void test_grows_to_max(void **state)
{
    autobuf b;

    (void)state;
    buf_init(&b, 1000);
    for (int i = 0; i < 1000; i++)
        buf_append(&b, "x", 1);
    assert_false(b.failed);
    assert_int_equal(b.len, 1000);
    assert_int_equal(b.data[1000], 0);
    assert_true(b.cap <= 1001);
}

static void test_failed_stays_failed(void **state)
{
    autobuf b;

    (void)state;
    buf_init(&b, 4);
    buf_puts(&b, "abc");
    buf_puts(&b, "de"); /* does not fit */
    buf_puts(&b, "f");  /* would */
    assert_true(b.failed);
    assert_string_equal(b.data, "abc");
    buf_clear(&b);
    assert_false(b.failed);
    buf_puts(&b, "wxyz");
    assert_false(b.failed);
    assert_string_equal(b.data, "wxyz");
}

static void test_no_room_at_all(void **state)
{
    autobuf b;

    (void)state;
    buf_init(&b, 0);
    buf_append(&b, NULL, 0);
    assert_false(b.failed);
    buf_puts(&b, "x");
    assert_true(b.failed);
    assert_int_equal(b.len, 0);
    buf_clear(&b);
    buf_append(&b, "y", SIZE_MAX); /* no wrap-around */
    assert_true(b.failed);
}

static void test_done_twice(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 10);
    buf_puts(&b, "x");
    buf_done(&b);
    buf_done(&b);
    buf_puts(&b, "again");
    assert_string_equal(b.data, "again");
    buf_done(&b);
}

static void test_printf(void **state)
{
    static const size_t sizes[] = {0, 1, 254, 255, 256, 257, 511, 1000};
    char text[1001];

    (void)state;
    FOR_EACH(size, sizes)
    {
        autobuf b;

        memset(text, 'a', *size);
        text[*size] = 0;
        buf_init(&b, 1024);
        buf_puts(&b, "<");
        buf_printf(&b, "%s", text);
        buf_puts(&b, ">");
        CHECK(!b.failed && b.len == *size + 2 && b.data[0] == '<' && b.data[b.len - 1] == '>' &&
                  strlen(b.data) == b.len,
              "size %zu: length %zu", *size, b.len);
    }
}

static void test_printf_too_long(void **state)
{
    autobuf b;

    (void)state;
    buf_init(&b, 300);
    buf_printf(&b, "%300d", 1);
    assert_false(b.failed);
    assert_int_equal(b.len, 300);
    buf_clear(&b);
    buf_printf(&b, "%301d", 1);
    assert_true(b.failed);
    assert_int_equal(b.len, 0);
}

static void test_json_strings(void **state)
{
    static const struct {
        const char *in;
        size_t len;
        const char *out;
    } rows[] = {
        {"", 0, "\"\""},
        {"plain", 5, "\"plain\""},
        {"a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\""},
        {"\n\t\r\b\f", 5, "\"\\u000a\\u0009\\u000d\\u0008\\u000c\""},
        {"\0x", 2, "\"\\u0000x\""},
        {"\x1b[31m\x7f", 6, "\"\\u001b[31m\\u007f\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9a", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9a\""},
        {"\xf4\x8f\xbf\xbf", 4, "\"\xf4\x8f\xbf\xbf\""},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        autobuf b;

        buf_init(&b, 256);
        buf_json_string(&b, row->in, row->len);
        CHECK_STR(b.data, row->out, row->out);
    }
}

static void test_json_not_utf8(void **state)
{
    static const struct {
        const char *name, *in, *out;
    } rows[] = {
        {"lone continuation", "a\x80z", "\"a\\ufffdz\""},
        {"cut sequence", "\xe2\x82", "\"\\ufffd\\ufffd\""},
        {"cut by another character", "\xe2\x82z", "\"\\ufffd\\ufffdz\""},
        {"overlong slash", "\xc0\xaf", "\"\\ufffd\\ufffd\""},
        {"overlong in three", "\xe0\x80\xaf", "\"\\ufffd\\ufffd\\ufffd\""},
        {"overlong in four", "\xf0\x80\x80\xaf", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
        {"surrogate", "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},
        {"above U+10FFFF", "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
        {"five bytes", "\xf8\x88\x80\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\""},
        {"latin-1", "caf\xe9", "\"caf\\ufffd\""},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        autobuf b;

        buf_init(&b, 256);
        buf_json_string(&b, row->in, strlen(row->in));
        CHECK_STR(b.data, row->out, row->name);
    }
}

static void test_json_object(void **state)
{
    autobuf b;

    (void)state;
    buf_init(&b, 256);
    buf_puts(&b, "{");
    buf_json_str(&b, "s", "a\"b");
    buf_json_num(&b, "n", -5);
    buf_json_bool(&b, "t", true);
    buf_json_key(&b, "o");
    buf_puts(&b, "{");
    buf_json_bool(&b, "f", false);
    buf_puts(&b, "}");
    buf_json_seconds(&b, "x", 1000001);
    buf_puts(&b, "}");
    assert_string_equal(
        b.data, "{\"s\":\"a\\\"b\",\"n\":-5,\"t\":true,\"o\":{\"f\":false},\"x\":1.000001}");
}

static void test_json_value_with_brace(void **state)
{
    autobuf b;

    (void)state;
    buf_init(&b, 256);
    buf_json_str(&b, "a", "{");
    buf_json_str(&b, "b{", "{");
    assert_string_equal(b.data, "\"a\":\"{\",\"b{\":\"{\"");
}

static void test_json_too_long(void **state)
{
    autobuf b;

    (void)state;
    buf_init(&b, 20);
    buf_json_str(&b, "key", "a value that does not fit");
    buf_json_num(&b, "n", 1);
    assert_true(b.failed);
    assert_true(b.len <= 20);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a buffer holds exactly its maximum", test_grows_to_max),
        CLAIM("a buffer that failed stays failed until it is cleared", test_failed_stays_failed),
        CLAIM("a buffer without room takes nothing", test_no_room_at_all),
        CLAIM("a buffer can be done twice", test_done_twice),
        CLAIM("formatted text of any length is whole", test_printf),
        CLAIM("formatted text that does not fit leaves no part of it", test_printf_too_long),
        CLAIM("JSON strings escape quotes and control bytes", test_json_strings),
        CLAIM("what is not UTF-8 becomes U+FFFD in JSON", test_json_not_utf8),
        CLAIM("JSON fields are separated by commas", test_json_object),
        CLAIM("a brace inside a value opens no object", test_json_value_with_brace),
        CLAIM("JSON that does not fit fails the buffer", test_json_too_long),
    };

    return RUN_CLAIMS("base/buf", claims);
}
