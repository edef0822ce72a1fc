/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/docker/env.h"

#include "base/limits.h"
#include "tests/test.h"

static int parse(struct env *e, const char *text, size_t len, struct error *err)
{
    char *copy = malloc(len + 1);
    int r;

    assert_non_null(copy);
    memcpy(copy, text, len);
    copy[len] = 0;
    r = env_parse(e, "file", copy, len, err);
    free(copy);
    return r;
}

/* The list as one text, entries ended by '|'. */
static const char *shown(const struct env *e)
{
    static char text[4096];
    size_t n = 0;

    text[0] = 0;
    for (size_t i = 0; i < e->n; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s|", e->list[i]);
    CHECK(!e->list || !e->list[e->n], "no NULL at the end");
    return text;
}

static void test_files(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", ""},
        {"A=1\n", "A=1|"},
        {"A=1", "A=1|"},
        {"A=1\nB=2\n", "A=1|B=2|"},
        {"A=1\r\nB=2\r\n", "A=1|B=2|"},
        {"# no\n\n  # nor this\n\t\nA=1\n", "A=1|"},
        {"  A=1\n\tB=2\n", "A=1|B=2|"},
        {"A= a value with blanks \n", "A= a value with blanks |"},
        {"A=\"quoted\"\nB='x'\nC=a#b\n", "A=\"quoted\"|B='x'|C=a#b|"},
        {"A=\nB==\n", "A=|B==|"},
        {"A=1\nA=2\n", "A=2|"},
        {"HERE\nNOT_HERE\n", "HERE=value|"},
        {"\xef\xbb\xbf"
         "A=1\n",
         "A=1|"},
        {"a.b-c=1\n", "a.b-c=1|"},
    };

    (void)state;
    (void)setenv("HERE", "value", 1);
    (void)unsetenv("NOT_HERE");
    FOR_EACH(row, rows)
    {
        struct env e = {0};
        struct error err;

        CHECK_OK(parse(&e, row->text, strlen(row->text), &err), err);
        CHECK_STR(shown(&e), row->want, row->text);
        env_done(&e);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *part;
    } rows[] = {{"A=1\0\n", 5, "NUL"},
                {"=1\n", 3, "no variable name on line 1"},
                {"A=1\nB C=2\n", 10, "name on line 2 contains whitespaces"},
                {"A =1\n", 5, "whitespaces"},
                {"export A=1\n", 11, "whitespaces"},
                {"\xff\xfe"
                 "A\0",
                 4, "NUL"},
                {"\xff\xfe"
                 "AB",
                 4, "not UTF-8"}};

    (void)state;
    FOR_EACH(row, rows)
    {
        struct env e = {0};
        struct error err;

        CHECK_ERR(parse(&e, row->text, row->len, &err), err, ERR_INVALID, row->part);
        env_done(&e);
    }
}

static void test_sizes(void **state)
{
    const struct temp *t = *state;
    size_t len = (1 << 20) + 2;
    char *text = malloc(len + 1);
    struct env e = {0};
    struct error err;

    assert_non_null(text);
    memset(text, 'x', len);
    memcpy(text, "A=", 2);
    temp_write(t, "large", text, len);
    CHECK_ERR(env_read_file(&e, temp_path(t, "large"), &err), err, ERR_TOO_LARGE,
              "variable A has 1048576 bytes");
    CHECK(!strstr(err.msg, "xxx"), "the value is in the message");
    temp_write(t, "most", text, LIMIT_DOCKER_ENV_STRING);
    CHECK_OK(env_read_file(&e, temp_path(t, "most"), &err), err);
    assert_int_equal(strlen(env_find(&e, "A")), LIMIT_DOCKER_ENV_STRING - 2);
    CHECK_ERR(env_read_file(&e, temp_path(t, "none"), &err), err, ERR_NOT_FOUND,
              "no such file or directory");
    env_done(&e);
    free(text);
}

static void test_many(void **state)
{
    struct env e = {0};
    struct error err;
    char text[32];

    (void)state;
    for (unsigned i = 0; i < LIMIT_DOCKER_ENV_COUNT; i++) {
        (void)snprintf(text, sizeof(text), "N%u=%u", i, i);
        CHECK_OK(env_set(&e, text, &err), err);
    }
    assert_string_equal(env_find(&e, "N4095"), "4095");
    assert_null(env_find(&e, "N"));
    CHECK_ERR(env_set(&e, "ONE=MORE", &err), err, ERR_TOO_LARGE, "more than");
    CHECK_OK(env_set(&e, "N7=again", &err), err);
    assert_string_equal(env_find(&e, "N7"), "again");
    CHECK_OK(env_default(&e, "N7=other", &err), err);
    assert_string_equal(env_find(&e, "N7"), "again");
    env_done(&e);
}

static const struct CMUnitTest claims[] = {
    CLAIM("env files are read by docker's rules", test_files),
    CLAIM("what is no env file is refused with its line", test_refused),
    CLAIM_IN_TEMP("a value that the kernel cannot pass on is refused by name, without itself",
                  test_sizes),
    CLAIM("many variables, each once, the last wins", test_many),
};

int main(void)
{
    return RUN_CLAIMS("docker/env", claims);
}
