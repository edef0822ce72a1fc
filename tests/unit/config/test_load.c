/* SPDX-License-Identifier: Apache-2.0 */
#include "config/load.h"

#include "base/limits.h"
#include "tests/unit/config/fixture.h"

static const char *data_dir = "tests/data";
static char start_dir[4096];

/* ---- the source documents ---- */

static void copy_document(const struct temp *t, const char *name)
{
    char path[8192], text[8192];
    FILE *f;
    size_t n;

    (void)snprintf(path, sizeof(path), "%s%s%s/config/%s", data_dir[0] == '/' ? "" : start_dir,
                   data_dir[0] == '/' ? "" : "/", data_dir, name);
    f = fopen(path, "re");
    CHECK(f, "no %s", path);
    n = fread(text, 1, sizeof(text), f);
    (void)fclose(f);
    temp_write(t, MAIN, text, n);
}

static void test_s1(void **state)
{
    static const struct {
        enum setting_id id;
        const char *want;
    } rows[] = {
        {SETTING_MODE, "\"all\""},
        {SETTING_SCOPE, "\"session\""},
        {SETTING_WORKSPACE_ACCESS, "\"rw\""},
        {SETTING_NETWORK, "\"none\""},
        {SETTING_NETWORK_NETWORK, "\"bridge\""},
        {SETTING_NETWORK_ALLOW, "[\"web_fetch\",\"web_search\"]"},
        {SETTING_NETWORK_EXEC_ALLOW, "[\"gh\"]"},
        {SETTING_ENV, "{\"LANG\":\"C.UTF-8\",\"GH_TOKEN\":\"${GH_TOKEN}\","
                      "\"BRAVE_API_KEY\":\"${BRAVE_API_KEY}\"}"},
        {SETTING_IMAGE, "\"openclaw-sandbox:bookworm-slim\""},
    };
    autoptr(config) c = NULL;

    copy_document(*state, "s1.json");
    c = load();
    FOR_EACH(row, rows) check_value(c, "main", row->id, row->want, settings_table[row->id].path);
    assert_null(config_warning(c, 0));
    check_origin(c, "main", SETTING_MODE, "openclaw.json:5:9 agents.defaults.sandbox.mode", "mode");
    check_origin(c, "main", SETTING_IMAGE, "strict", "image");
    assert_null(config_fallback(c));
    assert_non_null(strstr(config_file(c, 0), MAIN));
    assert_null(config_file(c, 1));
}

static void test_s3(void **state)
{
    static const struct {
        enum setting_id id;
        const char *want;
    } rows[] = {
        {SETTING_MODE, "\"non-main\""},
        {SETTING_SCOPE, "\"agent\""},
        {SETTING_IMAGE, "\"openclaw-sandbox-common:bookworm-slim\""},
        {SETTING_USER, "\"1000:1000\""},
        {SETTING_MEMORY, "\"1g\""},
        {SETTING_CPUS, "1"},
        {SETTING_PIDS, "256"},
        {SETTING_BROWSER, "true"},
        {SETTING_BROWSER_ENV, "{\"LANG\":\"C.UTF-8\",\"OPENCLAW_GATEWAY_TOKEN\":"
                              "\"${OPENCLAW_GATEWAY_TOKEN}\"}"},
        {SETTING_PRUNE_AGE, "7"},
        {SETTING_TOOLS_ALLOW, "[\"exec\",\"process\",\"read\",\"write\",\"edit\",\"apply_patch\","
                              "\"sessions_*\",\"browser\"]"},
        {SETTING_TOOLS_DENY, "[\"canvas\",\"nodes\",\"cron\",\"discord\",\"gateway\"]"},
    };
    autoptr(config) c = NULL;

    copy_document(*state, "s3.json");
    c = load();
    FOR_EACH(row, rows) check_value(c, "main", row->id, row->want, settings_table[row->id].path);
    check_origin(c, "x", SETTING_TOOLS_DENY, " tools.sandbox.tools.deny", "deny");
}

static void test_nothing(void **state)
{
    autoptr(config) c = load();
    char path[LIMIT_PATH];
    struct error err;

    check_value(c, "main", SETTING_MODE, "\"all\"", "strict");
    check_value(c, "main", SETTING_GPUS, "unset", "gpus");
    assert_null(config_file(c, 0));
    assert_string_equal(config_state_dir(c), temp_path(*state, ".openclaw"));
    assert_false(config_sessions_are_global(c));
    assert_null(config_agent(c, 0));
    CHECK_OK(config_workspace(c, "main", path, sizeof(path), &err), err);
    assert_string_equal(path, temp_path(*state, ".openclaw/workspace"));
    CHECK_OK(config_workspace(c, "work", path, sizeof(path), &err), err);
    assert_string_equal(path, temp_path(*state, ".openclaw/workspace-work"));
    CHECK_ERR(config_workspace(c, "../x", path, sizeof(path), &err), err, ERR_INVALID, "id");
    CHECK_ERR(config_workspace(c, "", path, sizeof(path), &err), err, ERR_INVALID, "id");
    refuse_with(&(struct config_inputs){.file = "no.json"}, ERR_NOT_FOUND, "no.json: no such", "-");
    (void)setenv("OPENCLAW_CONFIG_PATH", "~/no.json", 1);
    refuse(ERR_NOT_FOUND, "/no.json: no such file", "OPENCLAW_CONFIG_PATH");
}

/* ---- layers ---- */

#define SANDBOX(text)  "{agents:{defaults:{sandbox:{" text "}}}}"
#define AGENT(text)    "{agents:{entries:{work:{sandbox:{" text "}}}}}"
#define BOTH(all, one) "{agents:{defaults:{sandbox:{" all "}},entries:{work:{sandbox:{" one "}}}}}"
#define VARS(text)     "[extra_vars]\n" text "\n"

static void test_layers(void **state)
{
    const struct temp *t = *state;
    static const char *set[] = {"mode=non-main", NULL}, *over[] = {"sandbox_mode=off", NULL};
    const struct config_inputs all = {.overrides = over, .what_if = set};
    static const char *const want[] = {"--set mode",
                                       "agents.entries.work.sandbox.mode",
                                       "-e sandbox_mode",
                                       "extra_vars.sandbox_mode",
                                       "agents.defaults.sandbox.mode",
                                       "clawden.yaml:2:3",
                                       "strict"};
    static const char *const value[] = {"\"non-main\"", "\"all\"", "\"off\"", "\"non-main\"",
                                        "\"all\"",      "\"off\"", "\"all\""};

    put_file(t, YAML, "sandbox:\n  mode: off\n");
    put_file(t, MAIN, BOTH("mode:'all'", "mode:'all'"));
    put_file(t, PROFILE, VARS("sandbox_mode = 'non-main'"));
    for (size_t i = 0; i < COUNT(want); i++) { /* the highest layer goes, one after the other */
        struct config_inputs in = all;
        autoptr(config) c = NULL;

        if (i > 0)
            in.what_if = NULL;
        if (i > 1)
            put_file(t, MAIN, SANDBOX("mode:'all'"));
        if (i > 2)
            in.overrides = NULL;
        if (i > 3)
            put_file(t, PROFILE, NULL);
        if (i > 4)
            put_file(t, MAIN, NULL);
        if (i > 5)
            put_file(t, YAML, NULL);
        c = load_with(&in);
        check_value(c, "work", SETTING_MODE, value[i], want[i]);
        check_origin(c, "work", SETTING_MODE, want[i], want[i]);
    }
}

static void test_merge(void **state)
{
    static const struct {
        const char *claim, *yaml, *main;
        enum setting_id id;
        const char *want_work, *want_main;
    } rows[] = {
        {"lists replace", "sandbox: {networkAllow: [a]}",
         BOTH("networkAllow:['b']", "networkAllow:[]"), SETTING_NETWORK_ALLOW, "[]", "[\"b\"]"},
        {"env merges by key", "sandbox: {docker: {env: {A: '1', B: '1'}}}",
         BOTH("docker:{env:{B:'2',C:'2'}}", "docker:{env:{C:'3'}}"), SETTING_ENV,
         "{\"LANG\":\"C.UTF-8\",\"A\":\"1\",\"B\":\"2\",\"C\":\"3\"}",
         "{\"LANG\":\"C.UTF-8\",\"A\":\"1\",\"B\":\"2\",\"C\":\"2\"}"},
        {"ulimits merge by key", NULL,
         BOTH("docker:{ulimits:{nofile:1}}", "docker:{ulimits:{nproc:'1:2'}}"), SETTING_ULIMITS,
         "{\"nofile\":1,\"nproc\":\"1:2\"}", "{\"nofile\":1}"},
        {"binds add up", "sandbox: {docker: {binds: ['/a:/a']}}",
         BOTH("docker:{binds:['/b:/b']}", "docker:{binds:['/c:/c']}"), SETTING_BINDS,
         "[\"/a:/a\",\"/b:/b\",\"/c:/c\"]", "[\"/a:/a\",\"/b:/b\"]"},
        {"shared: an agent's docker is ignored", NULL,
         BOTH("scope:'shared',docker:{network:'bridge'}", "docker:{network:'none'}"),
         SETTING_NETWORK, "\"bridge\"", "\"bridge\""},
        {"shared by the agent's own word", NULL,
         BOTH("docker:{network:'bridge'}", "scope:'shared',docker:{network:'none'}"),
         SETTING_NETWORK, "\"bridge\"", "\"bridge\""},
        {"shared: an agent's mode counts", NULL, BOTH("scope:'shared',mode:'all'", "mode:'off'"),
         SETTING_MODE, "\"off\"", "\"all\""},
        {"not shared: it counts", NULL,
         BOTH("scope:'shared',docker:{network:'bridge'}", "scope:'agent',docker:{network:'none'}"),
         SETTING_NETWORK, "\"none\"", "\"bridge\""},
        {"perSession true is session", NULL, BOTH("perSession:true", "perSession:false"),
         SETTING_SCOPE, "\"shared\"", "\"session\""},
        {"scope beats perSession", NULL, SANDBOX("scope:'agent',perSession:false"), SETTING_SCOPE,
         "\"agent\"", "\"agent\""},
        {"enableNoVnc is noVncEnabled", NULL, SANDBOX("browser:{enableNoVnc:false}"),
         SETTING_BROWSER_NOVNC, "false", "false"},
        {"an agent cannot switch boxes off", NULL, AGENT("enabled:false"), SETTING_ENABLED, "true",
         "true"},
        {"mode direct", "mode: direct", NULL, SETTING_ENABLED, "false", "false"},
        {"mode docker", "mode: docker", NULL, SETTING_ENABLED, "true", "true"},
        {"enabled says it itself", "mode: direct\nsandbox: {enabled: true}", NULL, SETTING_ENABLED,
         "true", "true"},
        {"preset of clawden.yaml", "preset: dev\nother: [1, {a: b}]", NULL, SETTING_MODE,
         "\"non-main\"", "\"non-main\""},
        {"an empty clawden.yaml", "# nothing\n", NULL, SETTING_MODE, "\"all\"", "\"all\""},
        {"tools of clawden.yaml", "sandbox: {tools: {deny: [exec]}}", NULL, SETTING_TOOLS_DENY,
         "[\"exec\"]", "[\"exec\"]"},
        {"each list of tools on its own", NULL,
         "{tools:{sandbox:{tools:{allow:['a'],deny:['b']}}},"
         "agents:{entries:{work:{tools:{profile:'x',sandbox:{tools:{deny:[]}}}}}}}",
         SETTING_TOOLS_DENY, "[]", "[\"b\"]"},
        {"the other list stays", NULL,
         "{tools:{sandbox:{tools:{allow:['a'],deny:['b']}}},"
         "agents:{entries:{work:{tools:{sandbox:{tools:{deny:[]}}}}}}}",
         SETTING_TOOLS_ALLOW, "[\"a\"]", "[\"a\"]"},
        {"alsoAllow beside an empty allow", NULL,
         "{tools:{sandbox:{tools:{allow:[],alsoAllow:['b']}}}}", SETTING_TOOLS_ALSO, "[\"b\"]",
         "[\"b\"]"},
        {"what is not ours is not looked at", NULL,
         "{$schema:'x',models:{$include:'nowhere'},agents:{defaults:{model:7,sandbox:{mode:'off'}}}"
         ","
         "tools:{profile:[],sandbox:{other:1}}}",
         SETTING_MODE, "\"off\"", "\"off\""},
    };

    FOR_EACH(row, rows)
    {
        autoptr(config) c = NULL;

        put_file(*state, YAML, row->yaml);
        put_file(*state, MAIN, row->main);
        c = load();
        check_value(c, "work", row->id, row->want_work, row->claim);
        check_value(c, "main", row->id, row->want_main, row->claim);
    }
}

static void test_warnings(void **state)
{
    autoptr(config) c = NULL;

    put_file(*state, PROFILE,
             VARS("sandbox_mode = 'all'\nmemgraph_enabled = true") "[mode]\nyolo = 1");
    put_file(*state, MAIN,
             "{session:{scope:'global'},agents:{defaults:{sandbox:{scope:'shared'}},"
             "list:[{id:'work',sandbox:{enabled:false,docker:{image:'${NO_SUCH}'}}}]}}");
    c = load();
    assert_true(warns_of(c, "openclaw.json:1:97: an agent cannot change 'enabled'"));
    assert_true(warns_of(c, "the variable 'NO_SUCH' is not set"));
    assert_true(warns_of(c, "'agents.list' is the older form"));
    assert_true(warns_of(c, "agent 'work': its scope is shared, so 'docker.image'"));
    assert_true(
        warns_of(c, "sandbox-profile.toml:3:1: 'extra_vars.memgraph_enabled' is not about"));
    assert_true(config_sessions_are_global(c));
}

static void test_near_misses(void **state)
{
    autoptr(config) c = NULL;

    put_file(*state, YAML, "other: 1\nSandbx: {mode: 'off'}\npresets: dev\nmodel: x\n");
    c = load();
    assert_true(warns_of(c, "clawden.yaml:2:1: unknown key 'Sandbx'; did you mean 'sandbox'?"));
    assert_true(warns_of(c, "unknown key 'presets'; did you mean 'preset'?"));
    assert_false(warns_of(c, "other"));
    assert_false(warns_of(c, "model"));
    check_value(c, "main", SETTING_MODE, "\"all\"", "it does not count");
}

/* ---- agents ---- */

static void test_agents(void **state)
{
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"{agents:{list:[{id:'a'}],entries:{a:{}}}}", ":1:16: the agent 'a' is given twice"},
        {"{agents:{list:[{id:'a'},{id:'A'}]}}", ":1:25: the agent 'A' is given twice"},
        {"{agents:{list:[{}]}}", ":1:16: an agent of 'agents.list' must have an 'id'"},
        {"{agents:{list:['x']}}", "must have an 'id'"},
        {"{agents:{list:{}}}", ":1:10: 'agents.list' must be a list"},
        {"{agents:{entries:[]}}", ":1:10: 'agents.entries' must be an object"},
        {"{agents:{entries:{a:1}}}", ":1:19: an agent must be an object"},
        {"{agents:{entries:{'a/b':{}}}}", ":1:19: an agent's id must have"},
        {"{agents:{entries:{a:{workspace:7}}}}", ":1:22: 'workspace' must be a path"},
        {"{agents:7}", ":1:2: 'agents' must be an object"},
        {"{agents:{defaults:[]}}", ":1:10: 'agents.defaults' must be an object"},
        {"{tools:{sandbox:true}}", ":1:9: 'tools.sandbox' must be an object"},
        {"{agents:{entries:{a:{sandbox:[]}}}}",
         ":1:22: 'agents.entries.a.sandbox' must be an object"},
    };
    autoptr(config) c = NULL;
    char path[LIMIT_PATH];
    struct error err;

    (void)setenv("WHERE", "/srv", 1);
    put_file(*state, MAIN,
             "{agents:{defaults:{workspace:'~/all'},list:[{id:'Old',sandbox:{mode:'off'}}],"
             "entries:{new:{workspace:'${WHERE}/new',sandbox:{mode:'non-main'}}}}}");
    c = load();
    check_value(c, "old", SETTING_MODE, "\"off\"", "old");
    check_value(c, "new", SETTING_MODE, "\"non-main\"", "new");
    check_value(c, "third", SETTING_MODE, "\"all\"", "third");
    assert_string_equal(config_agent(c, 0), "new");
    assert_string_equal(config_agent(c, 1), "Old");
    assert_null(config_agent(c, 2));
    check_origin(c, "old", SETTING_MODE, "openclaw.json:1:64 agents.list.0.sandbox.mode", "old");
    CHECK_OK(config_workspace(c, "new", path, sizeof(path), &err), err);
    assert_string_equal(path, "/srv/new");
    CHECK_OK(config_workspace(c, "main", path, sizeof(path), &err), err);
    assert_string_equal(path, temp_path(*state, "all"));
    CHECK_ERR(config_workspace(c, "main", path, 4, &err), err, ERR_TOO_LARGE, "bytes");
    FOR_EACH(row, bad)
    {
        put_file(*state, MAIN, row->text);
        refuse(ERR_INVALID, row->part, row->text);
    }
}

/* ---- operator variables ---- */

static void test_overrides(void **state)
{
    static const struct {
        const char *word;
        enum setting_id id;
        const char *want;
    } rows[] = {
        {"sandbox_enabled=no", SETTING_ENABLED, "false"},
        {"sandbox_mode=off", SETTING_MODE, "\"off\""},
        {"sandbox_scope=shared", SETTING_SCOPE, "\"shared\""},
        {"sandbox_workspace_access=ro", SETTING_WORKSPACE_ACCESS, "\"ro\""},
        {"sandbox_image=a:b", SETTING_IMAGE, "\"a:b\""},
        {"sandbox_build_browser=yes", SETTING_BROWSER, "true"},
        {"sandbox_docker_network=bridge", SETTING_NETWORK, "\"bridge\""},
        {"sandbox_network_allow=[a, 'b']", SETTING_NETWORK_ALLOW, "[\"a\",\"b\"]"},
        {"sandbox_network_allow_extra=[\"mcp_fetch\", \"web_fetch\"]", SETTING_NETWORK_ALLOW,
         "[\"web_fetch\",\"web_search\",\"mcp_fetch\"]"},
        {"sandbox_network_exec_allow=[]", SETTING_NETWORK_EXEC_ALLOW, "[]"},
        {"{\"sandbox_network_exec_allow_extra\": [\"curl\", \"npm\"]}", SETTING_NETWORK_EXEC_ALLOW,
         "[\"gh\",\"curl\",\"npm\"]"},
        {"sandbox_network_docker_network=host", SETTING_NETWORK_NETWORK, "\"host\""},
        {"sandbox_setup_script=a.sh", SETTING_SETUP_SCRIPT, "\"a.sh\""},
        {"sandbox_vault_path=/v", SETTING_VAULT_PATH, "\"/v\""},
        {"sandbox_vault_access=ro", SETTING_VAULT_ACCESS, "\"ro\""},
        {"docker_enabled=false", SETTING_ENABLED, "false"},
        {"{\"sandbox_network_allow\": [], \"sandbox_network_exec_allow\": []}",
         SETTING_NETWORK_ALLOW, "[]"},
        {" {\"docker_enabled\": false, \"sandbox_enabled\": \"true\"}", SETTING_ENABLED, "true"},
        {"{\"sandbox_enabled\": true, \"docker_enabled\": false}", SETTING_ENABLED, "true"},
    };
    static const char *several[] = {"sandbox_network_allow_extra=[x]", "sandbox_network_allow=[y]",
                                    "sandbox_mode=off", "sandbox_mode=all", NULL};
    autoptr(config) c = NULL;

    (void)state;
    FOR_EACH(row, rows)
    {
        const char *words[] = {row->word, NULL};
        autoptr(config) one = load_with(&(struct config_inputs){.overrides = words});

        check_value(one, "main", row->id, row->want, row->word);
        check_origin(one, "main", row->id, "-e ", row->word);
    }
    c = load_with(&(struct config_inputs){.overrides = several});
    check_value(c, "main", SETTING_NETWORK_ALLOW, "[\"y\",\"x\"]", "an extra comes last");
    check_value(c, "main", SETTING_MODE, "\"all\"", "the last of two counts");
}

static void test_bad_overrides(void **state)
{
    static const struct {
        const char *word;
        const char *part;
    } rows[] = {
        {"sandbox_moed=all", "-e: unknown variable 'sandbox_moed'; did you mean 'sandbox_mode'?"},
        {"sandbox_zzzzzzzzzzzzzz=1", "-e: unknown variable"},
        {"sandbox_network_alow_extra=[]", "did you mean 'sandbox_network_allow_extra'?"},
        {"sandbox_mode=some", "-e: sandbox_mode: 'mode' must be one of off|non-main|all"},
        {"sandbox_enabled=maybe", "-e: 'sandbox_enabled' must be true or false"},
        {"docker_enabled=1", "-e: 'docker_enabled' must be true or false"},
        {"sandbox_network_allow=gh", "must be a list of strings"},
        {"sandbox_network_allow=[1]", "must be a list of strings"},
        {"sandbox_network_allow=[a", "must be a list of strings"},
        {"sandbox_network_allow_extra=x", "'sandbox_network_allow_extra' must be a list"},
        {"{\"sandbox_mode\": 7}", "must be one of"},
        {"{\"sandbox_mode\": \"off\"", "-e:1:23: "},
        {"sandbox_image=", "must be a string that is not empty"},
        {"sandbox_mode", "-e: write key=value, or a JSON object"},
        {"=x", "-e: write key=value"},
        {"sandbox_image=\xff", "-e: not UTF-8"},
    };
    static const struct {
        const char *word;
        const char *part;
    } sets[] = {
        {"docker.netwrok=none",
         "--set: unknown key 'docker.netwrok'; did you mean 'docker.network'?"},
        {"tools.alow=[a]", "did you mean 'tools.allow'?"},
        {"docker.pidsLimit=0", "--set: 'docker.pidsLimit' must be a whole number"},
        {"docker.cpus=many", "--set: 'docker.cpus' must be a number"},
        {"mode", "--set: write key=value"},
        {"docker=x", "--set: unknown key 'docker'"},
    };
    static const char *other[] = {"memgraph=1", NULL};
    autoptr(config) c = load_with(&(struct config_inputs){.overrides = other});

    (void)state;
    assert_true(warns_of(c, "-e: 'memgraph' is not about sandboxes"));
    FOR_EACH(row, rows)
    {
        const char *words[] = {row->word, NULL};

        refuse_with(&(struct config_inputs){.overrides = words}, ERR_INVALID, row->part, row->word);
    }
    FOR_EACH(row, sets)
    {
        const char *words[] = {row->word, NULL};

        refuse_with(&(struct config_inputs){.what_if = words}, ERR_INVALID, row->part, row->word);
    }
    refuse_with(&(struct config_inputs){.preset = "lax"}, ERR_INVALID, "strict|dev", "preset");
}

static void test_what_if(void **state)
{
    static const struct {
        const char *word;
        enum setting_id id;
        const char *want;
    } rows[] = {
        {"docker.pidsLimit=17", SETTING_PIDS, "17"},
        {"docker.cpus=0.5", SETTING_CPUS, "0.5"},
        {"docker.memory=2g", SETTING_MEMORY, "\"2g\""},
        {"docker.env={A: \"x=y\"}", SETTING_ENV, "{\"LANG\":\"C.UTF-8\",\"A\":\"x=y\"}"},
        {"docker.ulimits={nofile: {soft: 1, hard: 2}}", SETTING_ULIMITS,
         "{\"nofile\":{\"soft\":1,\"hard\":2}}"},
        {"docker.setupCommand=a; b", SETTING_SETUP_COMMAND, "\"a; b\""},
        {"docker.setupCommand=[a, b]", SETTING_SETUP_COMMAND, "[\"a\",\"b\"]"},
        {"tools.deny=[]", SETTING_TOOLS_DENY, "[]"},
        {"enabled=false", SETTING_ENABLED, "false"},
        {"perSession=false", SETTING_SCOPE, "\"shared\""},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        const char *words[] = {row->word, NULL};
        autoptr(config) c = load_with(&(struct config_inputs){.what_if = words});

        check_value(c, "main", row->id, row->want, row->word);
        check_origin(c, "main", row->id, "--set ", row->word);
    }
}

static void test_profile(void **state)
{
    static const struct {
        const char *text;
        enum setting_id id;
        const char *want;
    } rows[] = {
        {VARS("sandbox_network_allow_extra = ['x']"), SETTING_NETWORK_ALLOW,
         "[\"web_fetch\",\"web_search\",\"x\"]"},
        {VARS("sandbox_enabled = 'no'"), SETTING_ENABLED, "false"},
        {VARS("sandbox_build_browser = true"), SETTING_BROWSER, "true"},
        {"[mode]\nno_docker = true\n", SETTING_ENABLED, "false"},
        {"[mode]\nno_docker = false\n", SETTING_ENABLED, "true"},
        {VARS("sandbox_enabled = true") "[mode]\nno_docker = true\n", SETTING_ENABLED, "true"},
        {VARS("sandbox_image = '${HOME}'"), SETTING_WORKDIR, "\"/workspace\""},
        {"[mounts]\nvault = 1\n[resources]\ncpus = 4\n", SETTING_CPUS, "unset"},
    };
    static const struct {
        const char *text, *part;
    } bad[] = {
        {VARS("sandbox_mode = 1"), "profile.toml:2:1: sandbox_mode: 'mode' must be one of"},
        {VARS("a = 1\nsandbox_skope = 'x'"), "profile.toml:3:1: unknown variable 'sandbox_skope'; "
                                             "did you mean 'sandbox_scope'?"},
        {"[mode]\nno_docker = 1\n", "profile.toml:2:1: 'mode.no_docker' must be true or false"},
        {"extra_vars = 1\n", "profile.toml:1:1: 'extra_vars' must be an object"},
        {"[extra_vars\n", "profile.toml:1:"},
        {"a = 1\na = 2\n", "profile.toml:2:1: "},
        {"a = '\xff'\n", "profile.toml:1:"},
    };
    static const char *follows[] = {"docker_enabled=false", NULL};
    autoptr(config) c = NULL;

    FOR_EACH(row, rows)
    {
        autoptr(config) one = NULL;

        put_file(*state, PROFILE, row->text);
        one = load();
        check_value(one, "main", row->id, row->want, row->text);
    }
    FOR_EACH(row, bad)
    {
        put_file(*state, PROFILE, row->text);
        refuse(ERR_INVALID, row->part, row->text);
    }
    put_file(*state, PROFILE, VARS("sandbox_enabled = true"));
    c = load_with(&(struct config_inputs){.overrides = follows});
    check_value(c, "main", SETTING_ENABLED, "true", "docker_enabled is only its default");
}

/* ---- the last good one ---- */

static void test_last_good(void **state)
{
    const struct temp *t = *state;
    const struct config_inputs in = {.remember = true};
    struct stat before, after;
    char *text;

    put_file(t, MAIN, "{");
    refuse_with(&in, ERR_INVALID, "openclaw.json:1:2: ", "nothing is remembered");

    (void)setenv("IMAGE", "quite-a-secret:1", 1);
    put_file(t, MAIN,
             "{models:{k:'not-ours'},agents:{defaults:{sandbox:{mode:'off',"
             "docker:{image:'${IMAGE}',env:{A:'${IMAGE}'}}}}}}");
    put_file(t, YAML, "sandbox: {scope: agent}\npreset: dev\nother: not-ours\n");
    put_file(t, PROFILE, VARS("sandbox_vault_access = 'ro'"));
    config_free(load_with(&in));
    text = temp_read(t, "data/config.last-good.json", NULL);
    CHECK(!strstr(text, "secret"), "a variable's value was kept: %s", text);
    CHECK(!strstr(text, "not-ours"), "what is not ours was kept: %s", text);
    free(text);
    assert_int_equal(fstatat(t->fd, "data/config.last-good.json", &before, 0), 0);
    assert_int_equal(before.st_mode & 07777, 0600);
    config_free(load_with(&in));
    assert_int_equal(fstatat(t->fd, "data/config.last-good.json", &after, 0), 0);
    assert_int_equal(before.st_ino, after.st_ino); /* nothing changed: nothing is written */

    for (int i = 0; i < 3; i++) {
        static const char *const files[] = {MAIN, YAML, PROFILE};
        autoptr(config) c = NULL;

        put_file(t, files[i], "{ 'a': [ ");
        c = load_with(&in);
        CHECK(strstr(config_fallback(c), "; the configuration of 20"), "%s", config_fallback(c));
        assert_non_null(strstr(config_fallback(c), " stays in force"));
        assert_non_null(strstr(config_file(c, 0), "config.last-good.json"));
        check_value(c, "main", SETTING_MODE, "\"off\"", "main");
        check_value(c, "main", SETTING_IMAGE, "\"quite-a-secret:1\"", "main");
        check_value(c, "main", SETTING_SCOPE, "\"agent\"", "yaml");
        check_value(c, "main", SETTING_BROWSER, "true", "preset");
        check_value(c, "main", SETTING_VAULT_ACCESS, "\"ro\"", "profile");
        check_origin(c, "main", SETTING_MODE, "last-good.json agents.defaults", "origin");
        refuse(ERR_INVALID, ":1:", "without remember");
    }
    put_file(t, "other.json", "[");
    refuse_with(&(struct config_inputs){.remember = true, .file = "other.json"}, ERR_INVALID,
                "other.json:1:", "another file is not remembered");
    put_file(t, "data/config.last-good.json", "[]");
    refuse_with(&in, ERR_INVALID, "openclaw.json:1:", "what is remembered is broken");
}

static void test_approve(void **state)
{
    static const char *const bad[] = {"git push",  "exec:",    "exec: git",   "exec:git ",
                                      "exec:a  b", "exec:'a'", "exec:a\\\\b", "Exec:a",
                                      "bash:a",    "",         "group:",      "group:nosuch",
                                      "group:f",   "a/b",      "wri te"};
    const struct temp *t = *state;
    autoptr(config) c = NULL;
    char text[512];

    FOR_EACH(entry, bad)
    {
        (void)snprintf(text, sizeof(text),
                       "{agents:{defaults:{sandbox:{approve:['read',\"%s\"]}}}}", *entry);
        put_file(t, MAIN, text);
        refuse(ERR_INVALID, "approve", *entry);
        if (!strchr(*entry, '\\'))
            (void)snprintf(text, sizeof(text), "'%s' is no tool", *entry);
        refuse(ERR_INVALID, strchr(*entry, '\\') ? "is no tool" : text, *entry);
    }
    put_file(t, MAIN, "{agents:{defaults:{sandbox:{approve:'write'}}}}");
    refuse(ERR_INVALID, "list of tools", "no list");
    put_file(t, MAIN,
             "{agents:{defaults:{sandbox:{approve:['web_*','exec:git push*']}},"
             "entries:{a:{sandbox:{approve:['group:fs']}},b:{sandbox:{approve:[]}}}}}");
    c = load();
    check_value(c, "main", SETTING_APPROVE, "[\"web_*\",\"exec:git push*\"]", "all");
    check_value(c, "a", SETTING_APPROVE, "[\"web_*\",\"exec:git push*\",\"group:fs\"]", "added");
    check_value(c, "b", SETTING_APPROVE, "[\"web_*\",\"exec:git push*\"]", "taken away");
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest claims[] = {
        CLAIM_AT_HOME("the JSON of S1 loads unchanged", test_s1),
        CLAIM_AT_HOME("the JSON of S3 loads unchanged", test_s3),
        CLAIM_AT_HOME("without any file the preset holds", test_nothing),
        CLAIM_AT_HOME("each layer beats the one below, and says so", test_layers),
        CLAIM_AT_HOME("values merge as the table says", test_merge),
        CLAIM_AT_HOME("what is odd is told", test_warnings),
        CLAIM_AT_HOME("a key that is nearly ours is told", test_near_misses),
        CLAIM_AT_HOME("agents stand in entries or in a list, each once", test_agents),
        CLAIM_AT_HOME("every operator variable sets its setting", test_overrides),
        CLAIM_AT_HOME("wrong words after -e and --set are refused", test_bad_overrides),
        CLAIM_AT_HOME("--set takes every kind of value", test_what_if),
        CLAIM_AT_HOME("the profile's extra_vars and no_docker count", test_profile),
        CLAIM_AT_HOME("what loaded last stays in force", test_last_good),
        CLAIM_AT_HOME("calls that wait for a yes are named as calls, and only added to",
                      test_approve),
    };

    if (!getcwd(start_dir, sizeof(start_dir)))
        return 1;
    if (argc > 1)
        data_dir = argv[1];
    return RUN_CLAIMS("config/load", claims);
}
