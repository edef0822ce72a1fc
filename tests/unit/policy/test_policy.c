/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

#include <jansson.h>

#include "config/settings.h"
#include "policy/glob.h"
#include "tests/test.h"

#define SESSION "agent:main:telegram:42"
#define SIMPLE  "not one simple command: "

/* ---- settings by hand ---- */

static void set(struct settings *s, enum setting_id id, enum origin_kind kind, json_t *value)
{
    assert_non_null(value);
    json_decref(s->value[id]);
    s->value[id] = value;
    s->from[id].kind = kind;
}

static void preset(struct settings *s)
{
    *s = (struct settings){0};
    set(s, SETTING_ENABLED, ORIGIN_PRESET, json_true());
    set(s, SETTING_MODE, ORIGIN_PRESET, json_string("all"));
    set(s, SETTING_SCOPE, ORIGIN_PRESET, json_string("session"));
    set(s, SETTING_WORKSPACE_ACCESS, ORIGIN_PRESET, json_string("rw"));
    set(s, SETTING_NETWORK, ORIGIN_PRESET, json_string("none"));
    set(s, SETTING_NETWORK_NETWORK, ORIGIN_PRESET, json_string("bridge"));
    set(s, SETTING_NETWORK_ALLOW, ORIGIN_PRESET, json_pack("[ss]", "web_fetch", "web_search"));
    set(s, SETTING_NETWORK_EXEC_ALLOW, ORIGIN_PRESET, json_pack("[s]", "gh"));
    set(s, SETTING_TOOLS_ALLOW, ORIGIN_PRESET,
        json_pack("[sssss]", "exec", "read", "web_fetch", "web_search", "sessions_*"));
    set(s, SETTING_TOOLS_DENY, ORIGIN_PRESET, json_pack("[ss]", "canvas", "browser"));
}

static void make(const struct settings *s, struct policy *p)
{
    struct error err = {0};

    CHECK_OK(policy_make(s, false, p, &err), err);
}

/* Without the settings, which are released. */
static void make_and_drop(struct settings *s, struct policy *p)
{
    make(s, p);
    settings_done(s);
}

static void joined(const struct words *w, char *ret, size_t size)
{
    size_t n = 0;

    ret[0] = 0;
    for (size_t i = 0; i < w->n; i++)
        n += (size_t)snprintf(ret + n, size - n, "%s%s", i ? "|" : "", w->argv[i]);
}

/* ---- the preset ---- */

static const struct {
    const char *tool, *command;
    bool allowed;
    enum route route;
    const char *argv, *rule, *reason, *change;
} calls[] = {
#define EXEC_KEY "agents.defaults.sandbox.networkExecAllow"
#define NET_KEY  "agents.defaults.sandbox.networkAllow"
#define ISOLATED(command, reason)                                                       \
    {                                                                                   \
        "exec", command, true, ROUTE_ISOLATED, "", "networkExecAllow", reason, EXEC_KEY \
    }
#define NETWORK(command, argv)                                                                  \
    {                                                                                           \
        "exec", command, true, ROUTE_NETWORK, argv, "networkExecAllow 'gh'", "without a shell", \
            EXEC_KEY                                                                            \
    }
    NETWORK("gh pr create --title \"x\"", "gh|pr|create|--title|x"),
    NETWORK("  gh", "gh"),
    NETWORK("'gh' a", "gh|a"),
    NETWORK("GH a", "GH|a"),
    ISOLATED("gh; curl x", SIMPLE "';' starts a second command"),
    ISOLATED("gh && curl x", SIMPLE "'&'"),
    ISOLATED("gh$(id)", SIMPLE "'$' may expand to anything"),
    ISOLATED("ghx", "no entry of networkExecAllow matches 'ghx'"),
    ISOLATED("gh-evil", "no entry of networkExecAllow matches 'gh-evil'"),
    ISOLATED("env gh", "no entry of networkExecAllow matches 'env'"),
    ISOLATED("curl x", "no entry of networkExecAllow matches 'curl'"),
    ISOLATED("GH=1 gh", SIMPLE "'GH=1' style assignment"),
    ISOLATED("gh | sh", SIMPLE "'|' pipes into a second command"),
    ISOLATED("gh\nid", SIMPLE "a line break starts a second command"),
    ISOLATED("gh `id`", SIMPLE "'`'"),
    ISOLATED("gh > x", SIMPLE "'>' redirects"),
    ISOLATED("/tmp/gh", "no entry of networkExecAllow matches '/tmp/gh'"),
    ISOLATED("./gh", "no entry of networkExecAllow matches './gh'"),
    ISOLATED("gh/../curl", "matches 'gh/../curl'"),
    ISOLATED("sh -c gh", "matches 'sh'"),
    ISOLATED("", SIMPLE "there is no command"),
    ISOLATED(NULL, "the call has no command"),
    {"execute", "gh x", true, ROUTE_NETWORK, "gh|x", "networkExecAllow 'gh'", "shell", EXEC_KEY},
    {"bash", "gh x", true, ROUTE_NETWORK, "gh|x", "networkExecAllow 'gh'", "shell", EXEC_KEY},
    {" Shell ", "gh x", true, ROUTE_NETWORK, "gh|x", "networkExecAllow 'gh'", "shell", EXEC_KEY},
    {"web_fetch", NULL, true, ROUTE_NETWORK, "", "networkAllow 'web_fetch'",
     "the tool 'web_fetch' runs with a network", NET_KEY},
    {"WEB_SEARCH", "gh", true, ROUTE_NETWORK, "", "networkAllow 'web_search'", "web_search",
     NET_KEY},
    {"read", "gh x", true, ROUTE_ISOLATED, "", "networkAllow",
     "no entry of networkAllow matches 'read'", NET_KEY},
    {"sessions_list", NULL, true, ROUTE_ISOLATED, "", "networkAllow", "sessions_list", NET_KEY},
    {"canvas", NULL, false, ROUTE_ISOLATED, "", "tools.sandbox.tools.deny 'canvas'",
     "the tool 'canvas' is denied", "tools.sandbox.tools.deny"},
    {"nodes", NULL, false, ROUTE_ISOLATED, "", "tools.sandbox.tools.allow",
     "no entry of tools.sandbox.tools.allow matches 'nodes'", "tools.sandbox.tools.allow"},
    {"", NULL, false, ROUTE_ISOLATED, "", "tool", "names no tool", NULL},
    {"  ", NULL, false, ROUTE_ISOLATED, "", "tool", "names no tool", NULL},
    {NULL, NULL, false, ROUTE_ISOLATED, "", "tool", "names no tool", NULL},
    {"exec\n", NULL, false, ROUTE_ISOLATED, "", "tool", "not plain text", NULL},
    {"re\x01"
     "ad",
     NULL, false, ROUTE_ISOLATED, "", "tool", "not plain text", NULL},
    {"read\xff", NULL, false, ROUTE_ISOLATED, "", "tool", "not plain text", NULL},
    {"sessions_0123456789012345678901234567890123456789012345678901234", NULL, false,
     ROUTE_ISOLATED, "", "tool", "longer than 63 bytes", NULL},
};

static void test_calls(void **state)
{
    struct settings s;
    struct policy p;

    (void)state;
    preset(&s);
    make_and_drop(&s, &p);
    FOR_EACH(row, calls)
    {
        struct call c = {"main", SESSION, row->tool, row->command};
        struct verdict v;
        char argv[128], name[128];

        (void)snprintf(name, sizeof(name), "%s: %s", row->tool ? row->tool : "(none)",
                       row->command ? row->command : "(none)");
        policy_decide(&p, &c, &v);
        joined(&v.argv, argv, sizeof(argv));
        CHECK(v.allowed == row->allowed, "%s: allowed %d (%s)", name, v.allowed, v.reason);
        CHECK(v.route == row->route, "%s: %s (%s)", name, route_name(v.route), v.reason);
        CHECK(v.second_box == (row->route == ROUTE_NETWORK), "%s: wrong box", name);
        CHECK_STR(argv, row->argv, name);
        CHECK_STR(v.rule, row->rule, name);
        CHECK(strstr(v.reason, row->reason), "%s: '%s' does not say '%s'", name, v.reason,
              row->reason);
        CHECK_STR(v.change ? v.change : "", row->change ? row->change : "", name);
        verdict_done(&v);
    }
    policy_done(&p);
}

/* ---- sessions and agents ---- */

static const struct {
    const char *mode, *scope, *agent, *session;
    bool global, allowed;
    enum route route;
    const char *rule, *reason;
} sessions[] = {
#define NET    true, ROUTE_ISOLATED, "networkAllow", "no entry"
#define DIRECT true, ROUTE_DIRECT
#define NO     false, ROUTE_ISOLATED
    {"off", "session", "main", SESSION, false, DIRECT, "mode 'off'", "not sandboxed"},
    {"off", "session", NULL, NULL, false, DIRECT, "mode 'off'", "not sandboxed"},
    {"non-main", "session", "main", "agent:main:main", false, DIRECT, "mode 'non-main'", "not"},
    {"non-main", "session", "main", SESSION, false, NET},
    {"non-main", "session", "main", " agent:main:main", false, NET},
    {"non-main", "session", "main", "agent:main:MAIN", false, NET},
    {"non-main", "session", "main", "global", true, DIRECT, "mode 'non-main'", "not"},
    {"non-main", "session", "main", "agent:main:main", true, NET},
    {"non-main", "session", "other", "agent:main:main", false, NO, "session", "of agent 'main'"},
    {"all", "session", "main", "agent:main:main", false, NET},
    {"all", "session", "MAIN", SESSION, false, NET},
    {"all", "session", NULL, SESSION, false, NET},
    {"all", "session", "", "cron", false, NET},
    {"all", "session", "main", NULL, false, NO, "session", "no valid key"},
    {"all", "session", "main", "", false, NO, "session", "no valid key"},
    {"all", "session", "main", "a\nb", false, NO, "session", "no valid key"},
    {"all", "session", "main", "agent:main", false, NO, "session", "no valid key"},
    {"all", "session", "main", "shared", false, NO, "scope", "do not name a scope"},
    {"all", "session", "a\tb", SESSION, false, NO, "agent", "no valid id"},
    {"all", "session", "//", SESSION, false, NO, "agent", "no valid id"},
    {"all", "session", "other", SESSION, false, NO, "session", "of agent 'main', not of 'other'"},
    {"all", "agent", NULL, SESSION, false, NET},
    {"all", "agent", NULL, "cron", false, NO, "scope", "do not name a scope"},
    {"all", "shared", NULL, "cron", false, NET},
    {"all", "shared", "a\tb", "cron", false, NO, "agent", "no valid id"},
};

static void test_sessions(void **state)
{
    (void)state;
    FOR_EACH(row, sessions)
    {
        struct call c = {row->agent, row->session, "read", NULL};
        struct error err = {0};
        struct settings s;
        struct policy p;
        struct verdict v;
        char name[160];
        const char *rule;

        (void)snprintf(name, sizeof(name), "%s/%s %s %s", row->mode, row->scope,
                       row->agent ? row->agent : "-", row->session ? row->session : "-");
        preset(&s);
        set(&s, SETTING_MODE, ORIGIN_AGENT, json_string(row->mode));
        set(&s, SETTING_SCOPE, ORIGIN_AGENT, json_string(row->scope));
        CHECK_OK(policy_make(&s, row->global, &p, &err), err);
        policy_decide(&p, &c, &v);
        CHECK(v.allowed == row->allowed && v.route == row->route, "%s: %d %s (%s)", name, v.allowed,
              route_name(v.route), v.reason);
        CHECK_STR(v.rule, row->rule, name);
        CHECK(strstr(v.reason, row->reason), "%s: '%s'", name, v.reason);
        CHECK(policy_is_sandboxed(&p, c.agent, c.session, &rule) == (v.route != ROUTE_DIRECT),
              "%s: %s", name, rule);
        verdict_done(&v);
        policy_done(&p);
        settings_done(&s);
    }
}

static void test_disabled(void **state)
{
    struct call c = {"main", SESSION, "canvas", NULL};
    struct settings s;
    struct policy p;
    struct verdict v;

    (void)state;
    preset(&s);
    set(&s, SETTING_ENABLED, ORIGIN_OVERRIDE, json_false());
    make_and_drop(&s, &p);
    policy_decide(&p, &c, &v);
    assert_true(v.allowed && v.route == ROUTE_DIRECT && !v.second_box && !v.argv.n);
    assert_string_equal(v.rule, "enabled 'false'");
    assert_string_equal(v.change, "agents.defaults.sandbox.enabled");
    assert_string_equal(v.tool, "canvas");
    verdict_done(&v);
    policy_done(&p);
}

/* ---- networks ---- */

static const struct {
    const char *network, *second, *tools, *programs, *tool, *command;
    enum route route;
    bool second_box, dual;
    const char *argv, *rule;
} networks[] = {
#define ROUTED  ROUTE_NETWORK, true, true
#define APART   ROUTE_ISOLATED, false, true
#define ALONE   ROUTE_ISOLATED, false, false
#define ONE_BOX ROUTE_NETWORK, false, false, ""
    {"bridge", "bridge", "[\"read\"]", "[\"gh\"]", "exec", "gh x", ONE_BOX,
     "docker.network 'bridge'"},
    {"bridge", "bridge", "[]", "[]", "read", NULL, ONE_BOX, "docker.network 'bridge'"},
    {" Bridge", "bridge", "[]", "[]", "read", NULL, ONE_BOX, "docker.network 'bridge'"},
    {"host", "bridge", "[]", "[]", "read", NULL, ONE_BOX, "docker.network 'host'"},
    {"mine", "bridge", "[]", "[]", "read", NULL, ONE_BOX, "docker.network"},
    {"none", "bridge", "[]", "[]", "exec", "gh x", ALONE, "", "docker.network 'none'"},
    {"none", "none", "[\"read\"]", "[\"gh\"]", "read", NULL, ALONE, "",
     "networkDocker.network 'none'"},
    {"none", "host", "[\"read\"]", "[]", "read", NULL, ROUTED, "", "networkAllow 'read'"},
    {"none", "bridge", "[\"group:web\"]", "[]", "web_fetch", NULL, ROUTED, "",
     "networkAllow 'group:web'"},
    {"none", "bridge", "[\"web_*\"]", "[]", "web_fetch", NULL, ROUTED, "", "networkAllow 'web_*'"},
    {"none", "bridge", "[\" Bash \"]", "[]", "exec", "a | b", ROUTED, "", "networkAllow 'bash'"},
    {"none", "bridge", "[\"exec\"]", "[\"gh\"]", "exec", "gh x", ROUTED, "", "networkAllow 'exec'"},
    {"none", "bridge", "[\"read\"]", "[]", "exec", "gh x", APART, "", "networkExecAllow"},
    {"none", "bridge", "[]", "[\"g*\"]", "exec", "git x", ROUTED, "git|x", "networkExecAllow 'g*'"},
    {"none", "bridge", "[]", "[\"g*\"]", "exec", "g/x", APART, "", "networkExecAllow"},
    {"none", "bridge", "[]", "[\"*\"]", "exec", "/bin/x", APART, "", "networkExecAllow"},
    {"none", "bridge", "[]", "[\"/usr/bin/gh\"]", "exec", "/usr/bin/gh", ROUTED, "/usr/bin/gh",
     "networkExecAllow '/usr/bin/gh'"},
    {"none", "bridge", "[]", "[\"/usr/bin/gh\"]", "exec", "gh", APART, "", "networkExecAllow"},
    {"none", "bridge", "[]", "[\"gh pr\"]", "exec", "gh pr", APART, "", "networkExecAllow"},
    {"none", "bridge", "[]", "[\"gh\"]", "read", NULL, APART, "", "networkAllow"},
};

static void test_networks(void **state)
{
    (void)state;
    FOR_EACH(row, networks)
    {
        struct call c = {"main", SESSION, row->tool, row->command};
        struct settings s;
        struct policy p;
        struct verdict v;
        char argv[128], name[160];

        (void)snprintf(name, sizeof(name), "%s/%s %s %s %s", row->network, row->second, row->tools,
                       row->programs, row->command ? row->command : row->tool);
        preset(&s);
        set(&s, SETTING_NETWORK, ORIGIN_AGENT, json_string(row->network));
        set(&s, SETTING_NETWORK_NETWORK, ORIGIN_AGENT, json_string(row->second));
        set(&s, SETTING_NETWORK_ALLOW, ORIGIN_AGENT, json_loads(row->tools, 0, NULL));
        set(&s, SETTING_NETWORK_EXEC_ALLOW, ORIGIN_AGENT, json_loads(row->programs, 0, NULL));
        make_and_drop(&s, &p);
        policy_decide(&p, &c, &v);
        joined(&v.argv, argv, sizeof(argv));
        CHECK(v.allowed && v.route == row->route && v.second_box == row->second_box,
              "%s: %d %s %d (%s)", name, v.allowed, route_name(v.route), v.second_box, v.reason);
        CHECK(policy_is_dual(&p) == row->dual, "%s: dual", name);
        CHECK_STR(argv, row->argv, name);
        CHECK_STR(v.rule, row->rule, name);
        verdict_done(&v);
        policy_done(&p);
    }
}

/* Texts that outgrow a verdict are cut between characters. */
static void test_long_texts(void **state)
{
    struct call c = {"main", SESSION, "exec", NULL};
    struct settings s;
    struct policy p;
    struct verdict v;
    char word[400] = "";

    (void)state;
    for (size_t i = 0; i < 130; i++) /* three bytes each */
        memcpy(word + 3 * i, "\xe2\x82\xac", 4);
    preset(&s);
    make_and_drop(&s, &p);
    c.command = word;
    policy_decide(&p, &c, &v);
    assert_int_equal(v.route, ROUTE_ISOLATED);
    assert_non_null(strstr(v.reason, "\xe2\x82\xac'"));
    verdict_done(&v);
    policy_done(&p);
    preset(&s);
    word[255] = 0;
    set(&s, SETTING_NETWORK_EXEC_ALLOW, ORIGIN_AGENT, json_pack("[s]", word));
    make_and_drop(&s, &p);
    policy_decide(&p, &c, &v);
    assert_int_equal(v.route, ROUTE_NETWORK);
    assert_non_null(strstr(v.rule, "\xe2\x82\xac'"));
    verdict_done(&v);
    policy_done(&p);
}

/* ---- what settings come to ---- */

static const struct {
    enum setting_id id;
    const char *value, *part;
    enum error_code code;
} wrong[] = {
    {SETTING_MODE, "\"some\"", "must be one of off, non-main, all", ERR_INVALID},
    {SETTING_MODE, "1", "must be one of", ERR_INVALID},
    {SETTING_SCOPE, "\"box\"", "must be one of session, agent, shared", ERR_INVALID},
    {SETTING_WORKSPACE_ACCESS, "\"w\"", "must be one of none, ro, rw", ERR_INVALID},
    {SETTING_ENABLED, "\"no\"", "must be true or false", ERR_INVALID},
    {SETTING_NETWORK, "\" \"", "must be a string that is not empty", ERR_INVALID},
    {SETTING_NETWORK, "1", "must be a string", ERR_INVALID},
    {SETTING_TOOLS_ALLOW, "\"exec\"", "must be a list of strings", ERR_INVALID},
    {SETTING_TOOLS_ALLOW, "[1]", "must be a list of strings", ERR_INVALID},
    {SETTING_TOOLS_ALLOW, "[\"\"]", "only empty entries", ERR_INVALID},
    {SETTING_TOOLS_ALLOW, "[\" \",\"\\t\"]", "only empty entries", ERR_INVALID},
    {SETTING_TOOLS_DENY, "[\"can\\nvas\"]", "control character", ERR_INVALID},
    {SETTING_TOOLS_DENY, "[\"can\\u0000vas\"]", "NUL", ERR_INVALID},
    {SETTING_NETWORK_ALLOW, "{}", "must be a list of strings", ERR_INVALID},
};

static void test_wrong(void **state)
{
    (void)state;
    FOR_EACH(row, wrong)
    {
        struct error err = {0};
        struct settings s;
        struct policy p;

        preset(&s);
        set(&s, row->id, ORIGIN_DEFAULTS,
            json_loads(row->value, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
        CHECK_ERR(policy_make(&s, false, &p, &err), err, row->code, row->part);
        settings_done(&s);
    }
}

static void test_limits(void **state)
{
    struct error err = {0};
    struct settings s;
    struct policy p;
    char word[258];

    (void)state;
    preset(&s);
    memset(word, 'a', sizeof(word));
    word[256] = 0;
    set(&s, SETTING_TOOLS_DENY, ORIGIN_DEFAULTS, json_pack("[s]", word));
    make(&s, &p);
    assert_int_equal(strlen(p.deny.words[0]), 256);
    policy_done(&p);
    word[256] = 'a';
    word[257] = 0;
    set(&s, SETTING_TOOLS_DENY, ORIGIN_DEFAULTS, json_pack("[s]", word));
    CHECK_ERR(policy_make(&s, false, &p, &err), err, ERR_TOO_LARGE, "longer than 256 bytes");
    set(&s, SETTING_TOOLS_DENY, ORIGIN_DEFAULTS, json_array());
    for (int i = 0; i < 1024; i++)
        json_array_append_new(s.value[SETTING_TOOLS_DENY], json_string("a"));
    make(&s, &p);
    assert_int_equal(p.deny.n, 1024);
    policy_done(&p);
    json_array_append_new(s.value[SETTING_TOOLS_DENY], json_string("a"));
    CHECK_ERR(policy_make(&s, false, &p, &err), err, ERR_TOO_LARGE, "more than 1024 entries");
    settings_done(&s);
}

static void test_unset(void **state)
{
    struct error err = {0};
    struct settings s = {0};
    struct policy p;

    (void)state;
    CHECK_ERR(policy_make(&s, false, &p, &err), err, ERR_INVALID, "is not set");
    set(&s, SETTING_TOOLS_ALLOW, ORIGIN_PRESET, json_pack("[s]", "read"));
    make(&s, &p);
    assert_true(p.enabled && p.mode == MODE_ALL && p.scope == SCOPE_SESSION);
    assert_true(p.access == ACCESS_NONE && p.network == NETWORK_NONE && p.second == NETWORK_NONE);
    assert_true(!policy_is_dual(&p));
    policy_done(&p);
    policy_done(&p);
    settings_done(&s);
}

static void test_per_session(void **state)
{
    static const struct {
        bool per_session;
        enum origin_kind scope;
        enum scope want;
    } rows[] = {
        {true, ORIGIN_PRESET, SCOPE_SESSION},
        {false, ORIGIN_PRESET, SCOPE_SHARED},
        {true, ORIGIN_DEFAULTS, SCOPE_AGENT},
        {false, ORIGIN_DEFAULTS, SCOPE_AGENT},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct settings s;
        struct policy p;

        preset(&s);
        set(&s, SETTING_SCOPE, row->scope, json_string("agent"));
        set(&s, SETTING_PER_SESSION, ORIGIN_DEFAULTS, json_boolean(row->per_session));
        make_and_drop(&s, &p);
        CHECK(p.scope == row->want, "perSession %d: %d", row->per_session, p.scope);
        policy_done(&p);
    }
}

/* ---- properties ---- */

static uint64_t seed = 20260915;

static unsigned pick(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % n;
}

static const char *const tool_words[] = {
    "exec",     "read",  "write",   "bash",      "apply-patch",    "group:fs",  "*",
    "web_*",    "sess*", "image",   "group:web", "canvas",         "*patch",    "group:ui",
    "group:no", "e*c",   "process", "browser",   "group:openclaw", "view_image"};
static const char *const program_words[] = {"gh",         "g*", "*",    "git",
                                            "/usr/bin/*", "*h", "curl", "gh pr"};
static const char *const tools[] = {"exec",  "bash",   "Read",          "web_fetch", "apply_patch",
                                    "image", "canvas", "sessions_list", "process",   "zz",
                                    "",      "a\nb",   "shell",         "browser",   "view_image"};
static const char *const commands[] = {"gh pr",  "gh; id",  "git push",    "/usr/bin/gh a",
                                       "curl x", "/tmp/gh", NULL,          "gh | sh",
                                       "GH x",   "",        "A=1 gh pr x", "gh 'x y' \"z\""};
static const char *const keys[] = {"agent:a:main", "agent:a:x", "agent:b:x",
                                   "global",       "",          "shared"};

/* A list on the stack: `room` is its words. */
struct random_list {
    char *room[6];
    struct policy_list list;
};

static void random_list(struct random_list *l, const char *const *pool, unsigned n_pool)
{
    unsigned n = pick(5);

    for (unsigned i = 0; i < n; i++)
        l->room[i] = (char *)pool[pick(n_pool)]; /* nobody writes to it */
    l->list = (struct policy_list){.words = l->room, .n = n};
}

struct world {
    struct policy policy;
    struct random_list allow, also, deny, tools, programs;
    struct call call;
};

static void random_world(struct world *w)
{
    random_list(&w->allow, tool_words, COUNT(tool_words));
    random_list(&w->also, tool_words, COUNT(tool_words));
    random_list(&w->deny, tool_words, COUNT(tool_words));
    random_list(&w->tools, tool_words, COUNT(tool_words));
    random_list(&w->programs, program_words, COUNT(program_words));
    w->deny.list.n = pick(2) ? w->deny.list.n : 0; /* most calls would end there */
    w->policy = (struct policy){
        .enabled = pick(20) != 0,
        .mode = (enum policy_mode)pick(3),
        .scope = (enum scope)pick(3),
        .sessions_are_global = pick(2),
        .network = pick(4) ? NETWORK_NONE : (enum policy_network)pick(4),
        .second = (enum policy_network)pick(4),
    };
    w->call = (struct call){
        .agent = pick(3)   ? "a"
                 : pick(2) ? NULL
                           : "b",
        .session = keys[pick(COUNT(keys))],
        .tool = pick(2) ? "exec" : tools[pick(COUNT(tools))],
        .command = commands[pick(COUNT(commands))],
    };
}

static unsigned long n_decisions;

/* The policy's lists are copies of pointers: put what the lists are now into it. */
static void decide(struct world *w, struct verdict *v)
{
    n_decisions++;
    w->policy.allow = w->allow.list;
    w->policy.also = w->also.list;
    w->policy.deny = w->deny.list;
    w->policy.network_allow = w->tools.list;
    w->policy.network_exec = w->programs.list;
    policy_decide(&w->policy, &w->call, v);
}

/* How much a verdict lets through. A shell with a network is more than words with one. */
static int reach(const struct verdict *v)
{
    if (!v->allowed)
        return 0;
    return v->route == ROUTE_ISOLATED ? 1 : v->route == ROUTE_DIRECT ? 4 : v->argv.n ? 2 : 3;
}

/* The verdict never reaches further than `before`. */
static void check_no_further(struct world *w, int before, const char *what)
{
    struct verdict v;

    decide(w, &v);
    CHECK(reach(&v) <= before, "%s: %d became %d for %s '%s' (%s)", what, before, reach(&v),
          w->call.tool, w->call.command ? w->call.command : "", v.reason);
    verdict_done(&v);
}

static void check_removals(struct world *w, struct random_list *l, int before, const char *what)
{
    struct random_list full = *l;

    for (size_t i = 0; i < full.list.n; i++) {
        /* An empty allow list allows everything: the client's rule, and the one exception. */
        if (l == &w->allow && full.list.n == 1)
            continue;
        for (size_t j = 0, k = 0; j < full.list.n; j++)
            if (j != i)
                l->room[k++] = full.room[j];
        l->list.n = full.list.n - 1;
        check_no_further(w, before, what);
        memcpy(l->room, full.room, sizeof(full.room));
        l->list.n = full.list.n;
    }
}

static void check_additions(struct world *w, int before)
{
    for (unsigned i = 0; i < 3; i++) {
        w->deny.room[w->deny.list.n++] = (char *)tool_words[pick(COUNT(tool_words))];
        check_no_further(w, before, "deny");
        w->deny.list.n--;
    }
}

static bool is_listed(const struct policy_list *l, const char *program)
{
    for (size_t i = 0; i < l->n; i++)
        if (glob_match(l->words[i], program) && (!strchr(program, '/') || strchr(l->words[i], '/')))
            return true;
    return false;
}

static void check_answer(const struct world *w, const struct verdict *v)
{
    bool by_exec = v->route == ROUTE_NETWORK && strncmp(v->rule, "networkExec", 11) == 0;

    CHECK(by_exec == (v->argv.n > 0), "argv of %s", v->rule);
    if (by_exec)
        CHECK(v->second_box && is_listed(&w->programs.list, v->argv.argv[0]), "'%s' by '%s'",
              v->argv.argv[0], v->rule);
    CHECK(v->allowed || (v->route == ROUTE_ISOLATED && !v->second_box), "denied, and routed");
    CHECK(v->rule[0] && v->reason[0], "no rule or reason");
    CHECK(!v->second_box || policy_is_dual(&w->policy), "a second box where there is none");
}

static void test_properties(void **state)
{
    unsigned seen[5] = {0};

    (void)state;
    for (int i = 0; i < 100000; i++) {
        struct world w;
        struct verdict v, again;
        int before;

        random_world(&w);
        decide(&w, &v);
        decide(&w, &again);
        check_answer(&w, &v);
        before = reach(&v);
        seen[before]++;
        CHECK(reach(&again) == before && strcmp(v.rule, again.rule) == 0 &&
                  strcmp(v.reason, again.reason) == 0 && v.change == again.change &&
                  v.argv.n == again.argv.n,
              "two answers: '%s' and '%s'", v.reason, again.reason);
        verdict_done(&v);
        verdict_done(&again);
        check_removals(&w, &w.tools, before, "networkAllow");
        check_removals(&w, &w.programs, before, "networkExecAllow");
        check_removals(&w, &w.also, before, "alsoAllow");
        check_removals(&w, &w.allow, before, "allow");
        check_additions(&w, before);
    }
    print_message("# %lu decisions\n", n_decisions);
    for (size_t i = 0; i < COUNT(seen); i++)
        CHECK(seen[i] > 500, "only %u verdicts of kind %zu", seen[i], i);
}

/* The same through settings, where a preset's deny gives way to what is allowed on purpose. */
static json_t *random_array(unsigned at_least)
{
    json_t *list = json_array();
    unsigned n = at_least + pick(4);

    for (unsigned i = 0; i < n; i++)
        json_array_append_new(list, json_string(tool_words[pick(COUNT(tool_words))]));
    return list;
}

static int settings_reach(const struct settings *s, const struct call *c)
{
    struct policy p;
    struct verdict v;
    int r;

    make(s, &p);
    policy_decide(&p, c, &v);
    r = reach(&v);
    verdict_done(&v);
    policy_done(&p);
    return r;
}

static void check_settings(struct settings *s, const struct call *c)
{
    static const enum setting_id lists[] = {SETTING_TOOLS_ALLOW, SETTING_TOOLS_ALSO,
                                            SETTING_NETWORK_ALLOW};
    int before = settings_reach(s, c);

    FOR_EACH(id, lists)
    {
        json_t *list = s->value[*id];

        if (json_array_size(list) < 2)
            continue;
        s->value[*id] = json_copy(list);
        json_array_remove(s->value[*id], pick((unsigned)json_array_size(list)));
        CHECK(settings_reach(s, c) <= before, "a removal let '%s' further", c->tool);
        json_decref(s->value[*id]);
        s->value[*id] = list;
    }
    json_array_append_new(s->value[SETTING_TOOLS_DENY],
                          json_string(tool_words[pick(COUNT(tool_words))]));
    CHECK(settings_reach(s, c) <= before, "a deny let '%s' further", c->tool);
}

static void test_settings_properties(void **state)
{
    (void)state;
    for (int i = 0; i < 8000; i++) {
        struct call c = {"a", "agent:a:x", tools[pick(COUNT(tools))], "gh x"};
        struct settings s;

        preset(&s);
        set(&s, SETTING_TOOLS_ALLOW, pick(2) ? ORIGIN_PRESET : ORIGIN_AGENT, random_array(1));
        set(&s, SETTING_TOOLS_ALSO, ORIGIN_AGENT, random_array(0));
        set(&s, SETTING_TOOLS_DENY, pick(2) ? ORIGIN_PRESET : ORIGIN_AGENT, random_array(0));
        set(&s, SETTING_NETWORK_ALLOW, ORIGIN_AGENT, random_array(0));
        check_settings(&s, &c);
        settings_done(&s);
    }
}

static const struct CMUnitTest claims[] = {
    CLAIM("every call of the table has its verdict, rule, reason and key", test_calls),
    CLAIM("mode, session and agent decide who is sandboxed and who is denied", test_sessions),
    CLAIM("switched off, everything is direct", test_disabled),
    CLAIM("networks decide between one box and two", test_networks),
    CLAIM("long texts are cut between characters", test_long_texts),
    CLAIM("settings of a wrong type or word are refused", test_wrong),
    CLAIM("a list has 1024 entries of 256 bytes at most", test_limits),
    CLAIM("what nobody sets is the strictest", test_unset),
    CLAIM("perSession counts where nobody wrote scope", test_per_session),
    CLAIM("less allowed or more denied never reaches further", test_properties),
    CLAIM("nor does it through settings", test_settings_properties),
};

int main(void)
{
    return RUN_CLAIMS("policy/policy", claims);
}
