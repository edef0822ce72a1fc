/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

#include <jansson.h>

#include "config/settings.h"
#include "tests/test.h"

#define LONG_WORD "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void make(struct policy *p, const char *approve)
{
    struct settings s = {0};
    struct error err = {0};

    s.value[SETTING_TOOLS_ALLOW] = json_array();
    s.value[SETTING_APPROVE] = json_loads(approve, 0, NULL);
    assert_non_null(s.value[SETTING_APPROVE]);
    CHECK_OK(policy_make(&s, false, p, &err), err);
    settings_done(&s);
}

static void check(const struct policy *p, const char *tool, const char *command, const char *want)
{
    const struct call c = {.agent = "a", .session = "agent:a:x", .tool = tool, .command = command};
    struct verdict v;

    policy_decide(p, &c, &v);
    CHECK(v.allowed, "%s: %s", command ? command : tool, v.reason);
    CHECK_STR(v.approve, want, command ? command : tool);
    CHECK(!!v.approve[0] == !!v.approve_why[0], "%s: says nothing", command ? command : tool);
    verdict_done(&v);
}

static void test_tools(void **state)
{
    struct policy p;

    (void)state;
    make(&p, "[\"Write\",\"web_*\",\"group:memory\",\"bash\"]");
    check(&p, "write", NULL, "write");
    check(&p, " WRITE ", NULL, "write");
    check(&p, "writer", NULL, "");
    check(&p, "web_fetch", NULL, "web_*");
    check(&p, "memory_get", NULL, "group:memory");
    check(&p, "exec", "true", "bash");
    check(&p, "shell", "true", "bash");
    check(&p, "read", NULL, "");
    policy_done(&p);
    make(&p, "[]");
    check(&p, "exec", "a && b", "");
    policy_done(&p);
}

#define PUSH "exec:git push*"
#define RM   "exec:rm *"

static void test_commands(void **state)
{
    static const struct {
        const char *line, *want;
    } rows[] = {
        {"git push", PUSH},
        {"git push --force", PUSH},
        {" \t git \t  push", PUSH},
        {"'git' \"push\"", PUSH},
        {"Git PUSH", PUSH},
        {"/usr/local/bin/git push", PUSH},
        {"'./a b/git' push", PUSH},
        {"git '' push", PUSH},
        {"'' git push", PUSH}, /* not a simple command, and then the first entry is named */
        {"'git push'", PUSH},
        {"rm -rf x", RM},
        {"rm", ""},
        {"git status", ""},
        {"git-push", ""},
        {"git -C x push", ""}, /* as it says; 'git *push*' would mean it */
        {"echo git push", ""},
        {"echo 'a; git push'", ""},
        {"a;b", PUSH},
        {"a&&b", PUSH},
        {"a\nb", PUSH},
        {"$X", PUSH},
        {"`x`", PUSH},
        {"X=1 a", PUSH},
        {"if", PUSH},
        {"eval a", PUSH},
        {"", PUSH},
        {NULL, PUSH},
        {"sh x", PUSH},
        {"/bin/bash", PUSH},
        {"env a", PUSH},
        {"timeout 1 rm x", PUSH},
        {"find . -name x", PUSH},
        {"python3.12 -c x", PUSH},
        {"python3 -", PUSH},
        {"python3", PUSH},
        {"node --eval=x", PUSH},
        {"python3 x.py y", ""},
        {"perl -we x", PUSH},
        {"deno eval x", PUSH},
        {"python3 -m x y", ""},
        {"node --inspect x", ""},
        {"shfmt x", ""},
        {"findmnt", ""},
        {LONG_WORD, ""},
    };
    struct policy p;

    (void)state;
    make(&p, "[\"" PUSH "\",\"" RM "\"]");
    FOR_EACH(row, rows) check(&p, "exec", row->line, row->want);
    check(&p, "bash", "git push", PUSH);
    check(&p, "read", "git push", "");
    policy_done(&p);
}

static void test_long(void **state)
{
    size_t n = 200000;
    char *line = malloc(n + 1);
    struct policy p;

    (void)state;
    memset(line, 'x', n);
    line[n] = 0;
    make(&p, "[\"" PUSH "\"]");
    check(&p, "exec", line, PUSH);
    line[100000] = 0;
    check(&p, "exec", line, "");
    policy_done(&p);
    free(line);
}

/* The table of settings and the policy know the same groups. */
static void test_groups(void **state)
{
    const char *words = settings_table[SETTING_APPROVE].words;
    char list[64];
    struct policy p;
    int n;

    (void)state;
    for (; *words; words += n + (words[n] == '|')) {
        n = (int)strcspn(words, "|");
        (void)snprintf(list, sizeof(list), "[\"group:%.*s\"]", n, words);
        make(&p, list);
        policy_done(&p);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *list, *part;
    } rows[] = {{"[\"group:nosuch\"]", "group:nosuch"},
                {"[1]", "list of strings"},
                {"[\"a\\u0001\"]", "control character"},
                {"\"write\"", "list of strings"}};

    (void)state;
    FOR_EACH(row, rows)
    {
        struct settings s = {0};
        struct policy p;
        struct error err = {0};

        s.value[SETTING_TOOLS_ALLOW] = json_array();
        s.value[SETTING_APPROVE] = json_loads(row->list, JSON_DECODE_ANY, NULL);
        CHECK_ERR(policy_make(&s, false, &p, &err), err, ERR_INVALID, row->part);
        settings_done(&s);
    }
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("tools are asked about by name, pattern, group and alias", test_tools),
        CLAIM("commands are held against their words; what is not surely one is asked about",
              test_commands),
        CLAIM("a line that is too long to be read is asked about", test_long),
        CLAIM("every group that a file may name is one", test_groups),
        CLAIM("a list that means nothing is refused", test_refused),
    };

    return RUN_CLAIMS("policy/approve", claims);
}
