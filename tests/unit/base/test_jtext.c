/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jtext.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "tests/test.h"

static void test_reads(void **state)
{
    static const char text[] = " {\"a\": [1, -2.5e+3, \"x\\n\\u00e9\\ud83d\\ude00\", [], {}], "
                               "\"b\": true, \"c\": {\"d\": null},"
                               " \"big\": 9223372036854775807} ";
    autoptr(jtext_doc) doc = NULL;
    const struct jtext *root, *a, *v;
    struct error err;
    int64_t n;

    (void)state;
    assert_int_equal(jtext_parse(text, strlen(text), &doc, &err), 0);
    root = jtext_root(doc);
    a = jtext_get(root, "a");
    assert_int_equal(jtext_count(root), 4);
    assert_int_equal(jtext_count(a), 5);
    v = jtext_first(a);
    assert_true(jtext_int(v, &n));
    assert_int_equal(n, 1);
    v = jtext_next(v);
    assert_false(jtext_int(v, &n)); /* not a whole number as it is written */
    v = jtext_next(v);
    assert_string_equal(jtext_string(v), "x\n\xc3\xa9\xf0\x9f\x98\x80");
    v = jtext_next(jtext_next(v));
    assert_int_equal(v->type, JTEXT_OBJECT);
    assert_null(jtext_next(v));
    assert_true(jtext_is_true(jtext_get(root, "b")));
    assert_int_equal(jtext_get(jtext_get(root, "c"), "d")->type, JTEXT_NULL);
    assert_null(jtext_string(jtext_get(jtext_get(jtext_get(root, "no"), "such"), "path")));
    assert_true(jtext_int(jtext_get(root, "big"), &n) && n == INT64_MAX);
}

static void test_refuses(void **state)
{
    static const char *const bad[] = {"",
                                      " ",
                                      "{",
                                      "[1",
                                      "[1,]",
                                      "{\"a\":1,}",
                                      "{\"a\" 1}",
                                      "{a:1}",
                                      "[1 2]",
                                      "01",
                                      "1.",
                                      ".5",
                                      "+1",
                                      "1e",
                                      "-",
                                      "nul",
                                      "NaN",
                                      "'a'",
                                      "\"a",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\\ud800\"",
                                      "\"\\udc00\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\\u0000\"",
                                      "\"\x01\"",
                                      "\"\xff\"",
                                      "\"\xc0\x80\"",
                                      "\"\xed\xa0\x80\"",
                                      "\"\xf4\x90\x80\x80\"",
                                      "\"\xe2\x82\"",
                                      "1 1",
                                      "{}{}",
                                      "{\"a\":1,\"a\":2}",
                                      "{\"a\":{\"b\":1},\"a\":2}",
                                      "\xef\xbb\xbf{}",
                                      "]",
                                      "}",
                                      "[}",
                                      "{]"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct jtext_doc *doc = NULL;
        struct error err = {0};

        if (jtext_parse(bad[i], strlen(bad[i]), &doc, &err) >= 0)
            fail_msg("'%s' was read", bad[i]);
        assert_null(doc);
        assert_true(strncmp(err.msg, "JSON, byte ", 11) == 0);
    }
}

static void test_limits(void **state)
{
    char deep[2 * LIMIT_JSON_DEPTH + 4], wide[2 * LIMIT_JSON_NODES + 8];
    struct error err;

    (void)state;
    for (unsigned depth = LIMIT_JSON_DEPTH; depth <= LIMIT_JSON_DEPTH + 1; depth++) {
        autoptr(jtext_doc) doc = NULL;

        memset(deep, '[', depth);
        memset(deep + depth, ']', depth);
        assert_int_equal(jtext_parse(deep, 2 * depth, &doc, &err) == 0, depth <= LIMIT_JSON_DEPTH);
    }
    for (unsigned n = LIMIT_JSON_NODES - 1; n <= LIMIT_JSON_NODES; n++) { /* and the array itself */
        autoptr(jtext_doc) doc = NULL;

        for (unsigned i = 0; i < n; i++)
            memcpy(wide + 1 + 2 * i, "0,", 2);
        wide[0] = '[';
        wide[2 * n] = ']';
        assert_int_equal(jtext_parse(wide, 2 * n + 1, &doc, &err) == 0, n < LIMIT_JSON_NODES);
    }
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a document is read, and what is not there is NULL", test_reads),
        CLAIM("what is not JSON is refused, with the byte", test_refuses),
        CLAIM("depth and number of values have an end", test_limits),
    };

    return RUN_CLAIMS("base/json", claims);
}
