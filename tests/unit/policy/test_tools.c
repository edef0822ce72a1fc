/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

#include <jansson.h>

#include "config/settings.h"
#include "tests/test.h"

static const struct {
    const char *tool, *name;
} names[] = {
    {"exec", "exec"},
    {"EXECUTE", "exec"},
    {"bash", "exec"},
    {"Shell", "exec"},
    {"apply-patch", "apply_patch"},
    {" \t read\n", "read"},
    {"\xc2\xa0read\xe3\x80\x80", "read"},
    {"bash2", "bash2"},
    {"\xc3\x84", "\xc3\x84"},
    {"", ""},
    {"  ", ""},
};

static void test_names(void **state)
{
    char name[64], small[5];

    (void)state;
    FOR_EACH(row, names)
    {
        policy_tool_name(row->tool, name, sizeof(name));
        CHECK_STR(name, row->name, row->tool);
    }
    policy_tool_name("exec", small, sizeof(small));
    assert_string_equal(small, "exec");
    policy_tool_name("exec2", small, sizeof(small));
    assert_string_equal(small, "");
    small[0] = 'x';
    policy_tool_name("exec", small, 0);
    assert_int_equal(small[0], 'x');
}

/* ---- lists ---- */

#define PRESET     ORIGIN_PRESET
#define CONFIGURED ORIGIN_AGENT

static void set(struct settings *s, enum setting_id id, enum origin_kind kind, const char *list)
{
    s->value[id] = list ? json_loads(list, 0, NULL) : NULL;
    s->from[id].kind = list ? kind : ORIGIN_UNSET;
    assert_true(!list || s->value[id]);
}

static void check_tool(const char *row, const struct settings *s, const char *tool, bool allowed,
                       const char *rule)
{
    struct call c = {"a", "agent:a:x", tool, NULL};
    struct error err = {0};
    struct policy p;
    struct verdict v;

    CHECK_OK(policy_make(s, false, &p, &err), err);
    policy_decide(&p, &c, &v);
    CHECK(v.allowed == allowed, "%s: '%s' is %d: %s", row, tool, v.allowed, v.reason);
    if (!allowed)
        CHECK_STR(v.rule, rule, row);
    verdict_done(&v);
    policy_done(&p);
}

#define DENIED(word) "tools.sandbox.tools.deny '" word "'"
#define UNLISTED     "tools.sandbox.tools.allow"
#define FINE         true, ""
#define NOT(rule)    false, rule

static const struct {
    const char *name;
    enum origin_kind allow_from;
    const char *allow, *also;
    enum origin_kind deny_from;
    const char *deny, *tool;
    bool allowed;
    const char *rule;
} rows[] = {
    {"listed", PRESET, "[\"read\"]", NULL, PRESET, "[]", "read", FINE},
    {"not listed", PRESET, "[\"read\"]", NULL, PRESET, "[]", "write", NOT(UNLISTED)},
    {"deny wins", CONFIGURED, "[\"read\"]", NULL, CONFIGURED, "[\"read\"]", "read",
     NOT(DENIED("read"))},
    {"deny wins over alsoAllow", PRESET, "[\"read\"]", "[\"nodes\"]", CONFIGURED, "[\"nodes\"]",
     "nodes", NOT(DENIED("nodes"))},
    {"alsoAllow adds", PRESET, "[\"read\"]", "[\"nodes\"]", PRESET, "[]", "nodes", FINE},
    {"alsoAllow keeps the list", PRESET, "[\"read\"]", "[\"nodes\"]", PRESET, "[]", "read", FINE},
    {"an empty list allows all", CONFIGURED, "[]", NULL, PRESET, "[]", "anything", FINE},
    {"an empty list with alsoAllow too", CONFIGURED, "[]", "[\"x\"]", PRESET, "[]", "y", FINE},
    {"an empty list keeps the preset's deny", CONFIGURED, "[]", NULL, PRESET, "[\"canvas\"]",
     "canvas", NOT(DENIED("canvas"))},
    {"allowed on purpose, the preset's deny gives way", CONFIGURED, "[\"canvas\"]", NULL, PRESET,
     "[\"canvas\",\"cron\"]", "canvas", FINE},
    {"only for that name", CONFIGURED, "[\"canvas\"]", NULL, PRESET, "[\"canvas\",\"cron\"]",
     "cron", NOT(DENIED("cron"))},
    {"by alsoAllow as well", PRESET, "[\"read\"]", "[\"canvas\"]", PRESET, "[\"canvas\"]", "canvas",
     FINE},
    {"by a group", CONFIGURED, "[\"group:ui\"]", NULL, PRESET, "[\"canvas\"]", "canvas", FINE},
    {"by a glob", CONFIGURED, "[\"can*\"]", NULL, PRESET, "[\"canvas\"]", "canvas", FINE},
    {"a preset's allow does not make it give way", PRESET, "[\"canvas\"]", NULL, PRESET,
     "[\"canvas\"]", "canvas", NOT(DENIED("canvas"))},
    {"a written deny does not give way", CONFIGURED, "[\"canvas\"]", NULL, CONFIGURED,
     "[\"canvas\"]", "canvas", NOT(DENIED("canvas"))},
    {"a written deny replaces the preset's", PRESET, "[\"canvas\"]", NULL, CONFIGURED, "[]",
     "canvas", FINE},
    {"no deny at all", PRESET, "[\"canvas\"]", NULL, PRESET, NULL, "canvas", FINE},
    {"image comes along", CONFIGURED, "[\"read\"]", NULL, PRESET, "[]", "image", FINE},
    {"view_image comes along", CONFIGURED, "[\"read\"]", NULL, PRESET, "[]", "view_image", FINE},
    {"unless denied", CONFIGURED, "[\"read\"]", NULL, CONFIGURED, "[\"image\"]", "image",
     NOT(DENIED("image"))},
    {"unless denied by a glob", CONFIGURED, "[\"read\"]", NULL, CONFIGURED, "[\"*image\"]",
     "view_image", NOT(DENIED("*image"))},
    {"image_generate does not", CONFIGURED, "[\"read\"]", NULL, PRESET, "[]", "image_generate",
     NOT(UNLISTED)},
    {"entries are trimmed and lower-cased", CONFIGURED, "[\" READ \"]", NULL, PRESET, "[]", "read",
     FINE},
    {"empty entries are dropped", CONFIGURED, "[\"\",\"read\",\"  \"]", NULL, PRESET, "[]", "write",
     NOT(UNLISTED)},
    {"names are trimmed and lower-cased", CONFIGURED, "[\"read\"]", NULL, PRESET, "[]", " ReAd ",
     FINE},
    {"an alias in a list", CONFIGURED, "[\"bash\"]", NULL, PRESET, "[]", "exec", FINE},
    {"an alias in a call", CONFIGURED, "[\"exec\"]", NULL, PRESET, "[]", "execute", FINE},
    {"an alias denied", CONFIGURED, "[\"*\"]", NULL, CONFIGURED, "[\"Shell\"]", "exec",
     NOT(DENIED("shell"))},
    {"apply-patch", CONFIGURED, "[\"apply-patch\"]", NULL, PRESET, "[]", "apply_patch", FINE},
    {"a star", CONFIGURED, "[\"*\"]", NULL, PRESET, "[]", "x", FINE},
    {"globs are anchored", CONFIGURED, "[\"sessions_*\"]", NULL, PRESET, "[]", "my_sessions_list",
     NOT(UNLISTED)},
    {"only the star is special", CONFIGURED, "[\"rea?\",\"[r]ead\"]", NULL, PRESET, "[]", "read",
     NOT(UNLISTED)},
    {"an unknown group is nothing", CONFIGURED, "[\"group:none\"]", NULL, PRESET, "[]",
     "group:none", NOT(UNLISTED)},
    {"a group is not a glob", CONFIGURED, "[\"group:*\"]", NULL, PRESET, "[]", "read",
     NOT(UNLISTED)},
    {"a denied group", CONFIGURED, "[]", NULL, CONFIGURED, "[\"group:fs\"]", "write",
     NOT(DENIED("group:fs"))},
    {"a denied group leaves others", CONFIGURED, "[]", NULL, CONFIGURED, "[\"group:fs\"]", "exec",
     FINE},
};

static void test_lists(void **state)
{
    (void)state;
    FOR_EACH(row, rows)
    {
        struct settings s = {0};

        set(&s, SETTING_TOOLS_ALLOW, row->allow_from, row->allow);
        set(&s, SETTING_TOOLS_ALSO, CONFIGURED, row->also);
        set(&s, SETTING_TOOLS_DENY, row->deny_from, row->deny);
        check_tool(row->name, &s, row->tool, row->allowed, row->rule);
        settings_done(&s);
    }
}

static void test_preset_also(void **state)
{
    struct settings s = {0};

    (void)state;
    set(&s, SETTING_TOOLS_ALLOW, PRESET, "[\"read\"]");
    set(&s, SETTING_TOOLS_ALSO, PRESET, "[\"canvas\"]");
    set(&s, SETTING_TOOLS_DENY, PRESET, "[\"canvas\"]");
    check_tool("alsoAllow of a preset", &s, "canvas", false, DENIED("canvas"));
    settings_done(&s);
}

/* ---- groups ---- */

static const struct {
    const char *group;
    const char *tools[9];
} groups[] = {
    {"group:fs", {"read", "write", "edit", "apply_patch", "ls"}},
    {"group:runtime", {"exec", "bash", "process", "code_execution"}},
    {"group:web", {"web_search", "web_fetch", "x_search"}},
    {"group:memory", {"memory_search", "memory_get"}},
    {"group:sessions",
     {"sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "session_status"}},
    {"group:ui", {"browser", "canvas"}},
    {"group:messaging", {"message"}},
    {"group:automation", {"heartbeat_respond", "cron", "gateway", "automations"}},
    {"group:nodes", {"nodes"}},
    {"group:agents", {"agents_list"}},
    {"group:media", {"image", "view_image", "tts"}},
};

static void test_groups(void **state)
{
    (void)state;
    FOR_EACH(group, groups)
    {
        FOR_EACH(other, groups)
        {
            struct settings s = {0}, all = {0};

            s.value[SETTING_TOOLS_ALLOW] = json_array();
            s.value[SETTING_TOOLS_DENY] = json_pack("[s]", group->group);
            all.value[SETTING_TOOLS_ALLOW] = json_pack("[s]", "group:openclaw");
            for (const char *const *tool = other->tools; *tool; tool++) {
                char rule[64];

                (void)snprintf(rule, sizeof(rule), "tools.sandbox.tools.deny '%s'", group->group);
                check_tool(group->group, &s, *tool, group != other, rule);
                check_tool("group:openclaw", &all, *tool, other >= groups + 2, UNLISTED);
            }
            settings_done(&s);
            settings_done(&all);
        }
    }
}

static const struct CMUnitTest claims[] = {
    CLAIM("names are trimmed, lower-cased, and aliases are resolved", test_names),
    CLAIM("allow, alsoAllow and deny are the client's", test_lists),
    CLAIM("only what somebody wrote makes a preset's deny give way", test_preset_also),
    CLAIM("every group has its tools and no others", test_groups),
};

int main(void)
{
    return RUN_CLAIMS("policy/tools", claims);
}
