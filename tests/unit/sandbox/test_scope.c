/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/scope_parts.h"

#include <jansson.h>

#include "base/error.h"
#include "config/settings.h"
#include "tests/test.h"

static json_t *parse(const char *text)
{
    json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

    assert_non_null(v);
    return v;
}

/* The hash of a box with this env, these binds and this vault. */
static void hash_of(const char *env, const char *binds, const char *vault, const char *workspace,
                    char ret[65])
{
    struct settings s = {0};
    struct error err;

    s.value[SETTING_ENV] = parse(env);
    s.value[SETTING_BINDS] = parse(binds);
    s.value[SETTING_NETWORK] = parse("\"none\"");
    s.value[SETTING_WORKSPACE_ACCESS] = parse("\"rw\"");
    assert_int_equal(scope_hash(&s, workspace, "/home/c/ws", vault, NULL, 0, ret, &err), 0);
    settings_done(&s);
}

static void hash_knows_what_the_box_is(void **state)
{
    char a[65], b[65];
    (void)state;

    hash_of("{\"A\":\"1\",\"B\":\"${X}\"}", "[\"/a:/a\",\"/b:/b\"]", NULL, "/w", a);
    hash_of("{\"B\":\"${X}\",\"A\":\"1\"}", "[\"/a:/a\",\"/b:/b\"]", NULL, "/w", b);
    assert_string_equal(a, b); /* the order of keys is the file's business */
    hash_of("{\"A\":\"1\",\"B\":\"${X}\"}", "[\"/b:/b\",\"/a:/a\"]", NULL, "/w", b);
    assert_string_not_equal(a, b); /* that of a list is not */
    hash_of("{\"A\":\"1\",\"B\":\"${Y}\"}", "[\"/a:/a\",\"/b:/b\"]", NULL, "/w", b);
    assert_string_not_equal(a, b);
    hash_of("{\"A\":\"1\",\"B\":\"${X}\"}", "[\"/a:/a\",\"/b:/b\"]", NULL, "/w2", b);
    assert_string_not_equal(a, b);
    hash_of("{\"A\":\"1\",\"B\":\"${X}\"}", "[\"/a:/a\",\"/b:/b\"]", "/v:/v:rw", "/w", b);
    assert_string_not_equal(a, b);
    hash_of("{\"A\":\"1\",\"B\":\"${X}\"}", "[\"/a:/a\",\"/b:/b\"]", "/v:/v:ro", "/w", a);
    assert_string_not_equal(a, b);
    hash_of("{\"A\":\"1\",\"B\":\"${X}\"}", "[\"/a:/a\",\"/b:/b\",\"/v:/v:ro\"]", NULL, "/w", b);
    assert_string_equal(a, b); /* a vault is a bind, whoever wrote it */
}

/* Where a variable goes depends on lists that are no part of a box. */
static void hash_knows_who_gets_a_variable(void **state)
{
    struct scope_env env = {.name = (char *)"GH_TOKEN", .place = ENV_BOTH, .is_reference = true};
    struct settings s = {0};
    struct error err;
    char a[65], b[65];
    (void)state;

    assert_int_equal(scope_hash(&s, "/w", "/h", NULL, &env, 1, a, &err), 0);
    env.place = ENV_NETWORK_ONLY;
    assert_int_equal(scope_hash(&s, "/w", "/h", NULL, &env, 1, b, &err), 0);
    assert_string_not_equal(a, b);
    env.is_missing = true;
    assert_int_equal(scope_hash(&s, "/w", "/h", NULL, &env, 1, a, &err), 0);
    assert_string_not_equal(a, b);
}

/* As OpenClaw would: sha256 of the JSON text with sorted keys, made by Python. */
static void hash_is_that_of_the_text(void **state)
{
    char a[65];
    (void)state;

    hash_of("{\"LANG\":\"C.UTF-8\"}", "[]", NULL, "/w", a);
    assert_string_equal(a, "16298e2bb87e4540e681600ce11af5a37faff6af21e3a9106a57d57e0465fb73");
}

static void sizes_are_dockers(void **state)
{
    static const struct {
        const char *json;
        uint64_t bytes; /* 0: refused */
    } rows[] = {
        {"\"1g\"", 1ull << 30},
        {"\"512m\"", 512ull << 20},
        {"\"1048576\"", 1 << 20},
        {"1048576", 1 << 20},
        {"\"1.5k\"", 1536},
        {"\"2 GiB\"", 2ull << 30},
        {"\"64KB\"", 64 << 10},
        {"\"0\"", 0},
        {"0", 0},
        {"\"\"", 0},
        {"\"g\"", 0},
        {"\"1x\"", 0},
        {"\"-1\"", 0},
        {"\"1..5m\"", 0},
        {"\"99999999999p\"", 0},
        {"-5", 0},
        {"1e300", 0},
        {"true", 0},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        json_t *v = parse(rows[i].json);
        uint64_t bytes = 0;
        struct error err;
        int r = scope_size(v, &bytes, &err);

        json_decref(v);
        assert_int_equal(r, rows[i].bytes ? 0 : -ERR_INVALID);
        if (r == 0)
            assert_int_equal(bytes, rows[i].bytes);
    }
}

static void ulimits_have_three_forms(void **state)
{
    static const struct {
        const char *name, *json;
        int64_t soft, hard; /* -2: refused */
    } rows[] = {
        {"nofile", "1024", 1024, 1024},
        {"nofile", "\"1024:2048\"", 1024, 2048},
        {"nofile", "\"77\"", 77, 77},
        {"nofile", "{\"soft\":1,\"hard\":2}", 1, 2},
        {"nofile", "{\"soft\":5}", 5, 5},
        {"core", "\"-1\"", -1, -1},
        {"core", "\"0:-1\"", 0, -1},
        {"nofile", "\"2:1\"", -2, -2},
        {"nofile", "\"-1:5\"", -2, -2},
        {"nofile", "\"a\"", -2, -2},
        {"nofile", "{}", -2, -2},
        {"nofile", "-7", -2, -2},
        {"nope", "1", -2, -2},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        json_t *v = parse(rows[i].json);
        struct box_ulimit u = {0};
        struct error err;
        int r = scope_ulimit(rows[i].name, v, &u, &err);

        json_decref(v);
        assert_int_equal(r, rows[i].soft == -2 ? -ERR_INVALID : 0);
        if (r == 0) {
            assert_int_equal(u.soft, rows[i].soft);
            assert_int_equal(u.hard, rows[i].hard);
        }
        free(u.name);
    }
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a hash knows what the box is, not how its file is written",
              hash_knows_what_the_box_is),
        CLAIM("a hash knows who gets a variable", hash_knows_who_gets_a_variable),
        CLAIM("a hash is that of the canonical text", hash_is_that_of_the_text),
        CLAIM("sizes are docker's: a bare number is bytes", sizes_are_dockers),
        CLAIM("a ulimit has three forms", ulimits_have_three_forms),
    };

    return RUN_CLAIMS("sandbox/scope", claims);
}
