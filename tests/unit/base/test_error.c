/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include "tests/test.h"

static void test_set(void **state)
{
    struct error err = {.sys = 5};

    (void)state;
    CHECK_ERR(error_set(&err, ERR_DENIED, "workspace '%s': no", "/w"), err, ERR_DENIED,
              "workspace '/w': no");
    assert_int_equal(err.sys, 0);
}

static void test_sys(void **state)
{
    struct error err = {0};

    (void)state;
    CHECK_ERR(error_sys(&err, -ENOENT, "open '%s'", "x"), err, ERR_SYS,
              "open 'x': No such file or directory");
    assert_int_equal(err.sys, ENOENT);
}

static void test_wrap(void **state)
{
    struct error err = {0};

    (void)state;
    (void)error_sys(&err, -EPERM, "mount proc");
    CHECK_ERR(error_wrap(&err, "make the box"), err, ERR_SYS,
              "make the box: mount proc: Operation not permitted");
    assert_int_equal(err.sys, EPERM);
    (void)error_set(&err, ERR_TIMEOUT, "late");
    CHECK_ERR(error_wrap(&err, "a%d", 1), err, ERR_TIMEOUT, "a1: late");
}

static void test_long(void **state)
{
    struct error err = {0};
    char text[2000];

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    (void)error_set(&err, ERR_INVALID, "%s", text);
    assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
    (void)error_sys(&err, -EIO, "%s", text);
    assert_true(strlen(err.msg) < sizeof(err.msg));
    assert_int_equal(error_wrap(&err, "%s", text), -ERR_SYS);
    assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
    (void)error_set(&err, ERR_INVALID, "short");
    (void)error_wrap(&err, "%.505s", text);
    assert_true(strstr(err.msg, "aaa: sho") || strstr(err.msg, "aaa: sh"));
}

static void test_long_reason(void **state)
{
    struct error err = {0};
    char path[2000];

    (void)state;
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = 0;
    CHECK_ERR(error_sys(&err, -EACCES, "workspace '%s'", path), err, ERR_SYS, "Permission denied");
}

static void test_names(void **state)
{
    (void)state;
    for (int a = ERR_NONE; a <= ERR_UNSUPPORTED; a++) {
        const char *name = error_code_name((enum error_code)a);

        CHECK(name[0] && strspn(name, "abcdefghijklmnopqrstuvwxyz_") == strlen(name),
              "code %d: '%s'", a, name);
        CHECK(strcmp(name, "unknown") != 0, "code %d has no name", a);
        for (int b = ERR_NONE; b < a; b++)
            CHECK(strcmp(name, error_code_name((enum error_code)b)) != 0, "codes %d and %d: '%s'",
                  a, b, name);
    }
    assert_string_equal(error_code_name((enum error_code)99), "unknown");
    assert_string_equal(error_code_name(ERR_NOT_FOUND), "not_found");
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("an error is told and returned in one line", test_set),
        CLAIM("a failed system call is told with its reason", test_sys),
        CLAIM("wrapping keeps code, errno and message", test_wrap),
        CLAIM("a message that is too long is cut and terminated", test_long),
        CLAIM("a long path does not hide why it failed", test_long_reason),
        CLAIM("every code has a name of its own", test_names),
    };

    return RUN_CLAIMS("base/error", claims);
}
