/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/redact.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "tests/test.h"

struct row {
    const char *before, *word, *out; /* out: without the quotes of JSON */
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        autobuf b, want;

        buf_init(&b, 8 * LIMIT_AUDIT_ARGV);
        buf_init(&want, 8 * LIMIT_AUDIT_ARGV);
        redact_word(&b, rows[i].before, rows[i].word);
        buf_printf(&want, "\"%s\"", rows[i].out);
        CHECK(!b.failed && strcmp(b.data, want.data) == 0, "'%s' '%s': %s, want %s",
              rows[i].before ? rows[i].before : "", rows[i].word, b.data, want.data);
    }
}

static void test_names(void **state)
{
    static const struct {
        const char *name;
        bool secret;
    } rows[] = {
        {"GITHUB_TOKEN", true},
        {"--api-key", true},
        {"api_key", true},
        {"ApiKey", true},
        {"PGPASSWORD", true},
        {"passwd", true},
        {"client_secret", true},
        {"Authorization", true},
        {"Cookie", true},
        {"AWS_SECRET_ACCESS_KEY", true},
        {"credentials", true},
        {"private-key", true},
        {"PATH", false},
        {"HOME", false},
        {"key", false},
        {"pass", false},
        {"", false},
        {"auth", false},
    };

    (void)state;
    FOR_EACH(row, rows)
    CHECK(redact_is_secret_name(row->name, strlen(row->name)) == row->secret, "'%s'", row->name);
    assert_false(redact_is_secret_name("token", 4)); /* only the bytes that belong to the name */
    assert_true(redact_is_secret_name("token=x", 5));
}

static void test_plain(void **state)
{
    static const struct row rows[] = {
        {NULL, "", ""},
        {NULL, "ls", "ls"},
        {"ls", "-la", "-la"},
        {NULL, "NAME=value", "NAME=value"},
        {NULL, "https://example.com/a?b=c", "https://example.com/a?b=c"},
        {NULL, "git@github.com:a/b.git", "git@github.com:a/b.git"},
        {NULL, "task-management-tool", "task-management-tool"}, /* no "sk-" in here */
        {NULL, "sk-short", "sk-short"},
        {"token", "value", "value"}, /* not an option */
        {NULL, "say \"hi\"\n", "say \\\"hi\\\"\\u000a"},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

static void test_by_name(void **state)
{
    static const struct row rows[] = {
        {"--token", "abc", "[redacted]"},
        {"--password", "", ""},
        {"-token", "abc", "[redacted]"},
        {"--token=abc", "next", "next"},
        {NULL, "--token=abc", "--token=[redacted]"},
        {NULL, "--password=", "--password="},
        {NULL, "PGPASSWORD=hunter2", "PGPASSWORD=[redacted]"},
        {"-H", "Authorization: Basic dTpw", "Authorization:[redacted]"},
        {"-H", "X-Api-Key: abc", "X-Api-Key:[redacted]"},
        {"-H", "X: bearer abc", "[redacted]"},
        {"-d", "{\"password\": \"x\"}", "{\\\"password\\\":[redacted]"},
        {"-c", "export TOKEN=abc; run", "export TOKEN=[redacted]"},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

/* One of each shape, long enough. */
static const char *const tokens[] = {
    "ghp_0123456789abcdef",  "gho_0123456789abcdef",
    "ghs_0123456789abcdef",  "ghu_0123456789abcdef",
    "github_pat_0123456789", "glpat-0123456789abcd",
    "sk-0123456789abcdef",   "xoxb-0123456789",
    "xoxp-0123456789",       "xoxa-0123456789",
    "AKIA0123456789ABCDEF",  "ASIA0123456789ABCDEF",
    "eyJhbGciOiJIUzI1NiJ9",  "npm_0123456789abcdef",
    "AIza0123456789abcdef",  "-----BEGIN RSA PRIVATE KEY-----",
};

/* The token in the place of the '%' must not come out. */
static void check_hidden(const char *place, const char *token)
{
    const char *at = strchr(place, '%');
    char word[256];
    autobuf b;

    (void)snprintf(word, sizeof(word), "%.*s%s%s", (int)(at - place), place, token, at + 1);
    buf_init(&b, 4096);
    redact_word(&b, NULL, word);
    CHECK(!strstr(b.data, token) && strstr(b.data, "[redacted]"), "'%s': %s", word, b.data);
}

static void test_by_shape(void **state)
{
    static const char *const places[] = {"%",     "X=%", "a:%",   "https://%@host/",
                                         "a,%,b", "'%'", "echo %"};

    (void)state;
    FOR_EACH(token, tokens)
    FOR_EACH(place, places)
    check_hidden(*place, *token);
}

static void test_by_shape_anywhere(void **state)
{
    static const char *const places[] = {"a\n%", "a\t%", "(%)", "[%]", "{%}",
                                         "<%",   "a|%",  "a?%", "a&%", "`%`"};

    (void)state;
    FOR_EACH(token, tokens)
    FOR_EACH(place, places)
    check_hidden(*place, *token);
}

static void test_token_before_name(void **state)
{
    autobuf b;

    (void)state;
    buf_init(&b, 4096);
    redact_word(&b, NULL, "deploy ghp_0123456789abcdef --password=x");
    CHECK(!strstr(b.data, "ghp_0123456789abcdef"), "%s", b.data);
}

static void test_url(void **state)
{
    static const struct row rows[] = {
        {NULL, "https://user:pass@host/x", "https://user:[redacted]@host/x"},
        {NULL, "postgres://u:p@db:5432/x", "postgres://u:[redacted]@db:5432/x"},
        {NULL, "https://user@host/x", "https://user@host/x"},
        {NULL, "https://host:8080/a@b", "https://host:8080/a@b"},
        {NULL, "--url=https://u:p@host", "--url=https://u:[redacted]@host"},
    };

    (void)state;
    check_rows(rows, COUNT(rows));
}

static void test_url_odd(void **state)
{
    static const char *const words[] = {
        "https://user:pa@hunter2@host/",                  /* an @ in the password */
        "https://user:pa/hunter2@host/",                  /* a slash */
        "curl http://a/ && curl https://u:hunter2@b/",    /* the second URL */
        "https://u:hunter2@host/?x=ghp_0123456789abcdef", /* and a token behind it */
    };

    (void)state;
    FOR_EACH(word, words)
    {
        autobuf b;

        buf_init(&b, 4096);
        redact_word(&b, NULL, *word);
        CHECK(!strstr(b.data, "hunter2"), "'%s': %s", *word, b.data);
    }
}

static void test_later_names(void **state)
{
    static const char *const words[] = {
        "https://api.example/x?access_token=hunter2",
        "{\"user\":\"a\",\"password\":\"hunter2\"}",
        "cd a=b; TOKEN=hunter2 run",
        "user:a,password:hunter2",
        "a=1&client_secret=hunter2",
    };

    (void)state;
    FOR_EACH(word, words)
    {
        autobuf b;

        buf_init(&b, 4096);
        redact_word(&b, NULL, *word);
        CHECK(!strstr(b.data, "hunter2"), "'%s': %s", *word, b.data);
    }
}

static void test_long(void **state)
{
    static char word[LIMIT_AUDIT_ARGV + 100];
    autobuf b;

    (void)state;
    memset(word, 'a', sizeof(word) - 1);
    buf_init(&b, 8 * LIMIT_AUDIT_ARGV);
    redact_word(&b, NULL, word);
    assert_string_equal(b.data, "\"[cut]\"");
    word[LIMIT_AUDIT_ARGV] = 0;
    buf_clear(&b);
    redact_word(&b, NULL, word);
    assert_int_equal(b.len, LIMIT_AUDIT_ARGV + 2);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("names that usually hold a secret are known", test_names),
        CLAIM("what holds no secret is written as it is", test_plain),
        CLAIM("the value of a secret name is not written", test_by_name),
        CLAIM("a token of a known shape is not written", test_by_shape),
        CLAIM("a token is found behind any separator", test_by_shape_anywhere),
        CLAIM("a token before a secret name is found as well", test_token_before_name),
        CLAIM("the password of a URL is not written", test_url),
        CLAIM("the password of an odd URL is not written either", test_url_odd),
        CLAIM("a secret name further on in the word counts as well", test_later_names),
        CLAIM("a word that is too long is left out whole", test_long),
    };

    return RUN_CLAIMS("audit/redact", claims);
}
