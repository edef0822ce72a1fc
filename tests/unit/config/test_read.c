/* SPDX-License-Identifier: Apache-2.0 */
/* How files are found, read and refused: includes, variables, syntax, limits. */
#include "config/internal.h"

#include "tests/unit/config/fixture.h"

#define SANDBOX(text) "{agents:{defaults:{sandbox:{" text "}}}}"

static const char *inc(const char *name)
{
    static char path[64];

    (void)snprintf(path, sizeof(path), ".openclaw/%s", name);
    return path;
}

/* ---- where openclaw.json is ---- */

static void test_paths(void **state)
{
    const struct temp *t = *state;
    static const struct {
        const char *variable, *value, *file; /* in the order in which they win, last first */
    } rows[] = {
        {"HOME", NULL, ".openclaw/openclaw.json"},
        {"OPENCLAW_HOME", "h", "h/.openclaw/openclaw.json"},
        {"OPENCLAW_STATE_DIR", "s", "s/openclaw.json"},
        {"OPENCLAW_CONFIG_PATH", "c.json5", "c.json5"},
    };
    autoptr(config) c = NULL;

    assert_int_equal(mkdirat(t->fd, "h", 0700) | mkdirat(t->fd, "h/.openclaw", 0700) |
                         mkdirat(t->fd, "s", 0700),
                     0);
    FOR_EACH(row, rows)
    {
        autoptr(config) one = NULL;

        if (row->value) /* relative and absolute ones alike */
            (void)setenv(row->variable, row - rows == 1 ? row->value : temp_path(t, row->value), 1);
        put_file(t, row->file, SANDBOX("mode:'off'"));
        one = load();
        CHECK_STR(config_file(one, 0), temp_path(t, row->file), row->variable);
    }
    put_file(t, "asked.json", "{}");
    c = load_with(&(struct config_inputs){.file = "./asked.json"});
    CHECK_STR(config_file(c, 0), temp_path(t, "asked.json"), "asked");
}

static void test_regular(void **state)
{
    const struct temp *t = *state;
    autoptr(config) c = NULL;

    assert_int_equal(mkdirat(t->fd, MAIN, 0700), 0);
    refuse(ERR_INVALID, "openclaw.json: not a regular file", "folder");
    assert_int_equal(unlinkat(t->fd, MAIN, AT_REMOVEDIR), 0);
    assert_int_equal(mkfifoat(t->fd, MAIN, 0600), 0);
    refuse(ERR_INVALID, "openclaw.json: not a regular file", "fifo");
    put_file(t, MAIN, NULL);
    assert_int_equal(symlinkat("/dev/zero", t->fd, MAIN), 0);
    refuse(ERR_INVALID, "openclaw.json: not a regular file", "device");
    put_file(t, MAIN, NULL);
    put_file(t, "dotfiles.json", SANDBOX("mode:'off',$include:'./more.json'"));
    put_file(t, inc("more.json"), "{scope:'agent'}"); /* beside the link, not beside the file */
    assert_int_equal(symlinkat("../dotfiles.json", t->fd, MAIN), 0);
    c = load();
    check_value(c, "main", SETTING_MODE, "\"off\"", "link");
    check_value(c, "main", SETTING_SCOPE, "\"agent\"", "link");
}

/* ---- includes ---- */

static void test_includes(void **state)
{
    const struct temp *t = *state;
    static const struct {
        const char *claim, *main;
        enum setting_id id;
        const char *want, *origin;
    } rows[] = {
        {"a string replaces the object", "{agents:{defaults:{sandbox:{$include:'./a.json'}}}}",
         SETTING_MODE, "\"off\"", "a.json:1:2 agents.defaults.sandbox.mode"},
        {"members beside it win", SANDBOX("$include:'a.json',mode:'all'"), SETTING_MODE, "\"all\"",
         "openclaw.json:1:47"},
        {"and what they leave stays", SANDBOX("mode:'all',$include:'a.json'"), SETTING_SCOPE,
         "\"agent\"", "a.json:2:2"},
        {"the later of a list wins", SANDBOX("$include:['a.json','b.json']"), SETTING_MODE,
         "\"non-main\"", "b.json:1:2"},
        {"the earlier fills in", SANDBOX("$include:['a.json','b.json']"), SETTING_SCOPE,
         "\"agent\"", "a.json:2:2"},
        {"lists are joined", SANDBOX("$include:['a.json','b.json']"), SETTING_NETWORK_ALLOW,
         "[\"a\",\"b\"]", "openclaw.json agents.defaults.sandbox.networkAllow"},
        {"members merge deeply", SANDBOX("docker:{$include:'sub/d.json',user:'1:1'}"), SETTING_PIDS,
         "7", "sub/e.json:1:2"},
        {"relative to the including file", SANDBOX("docker:{$include:'sub/d.json'}"),
         SETTING_NETWORK, "\"bridge\"", "sub/d.json:1:23"},
        {"the whole file", "{$include:'whole.json'}", SETTING_MODE, "\"off\"", "a.json:1:2"},
        {"an agent of a list", "{agents:{list:[{$include:'agent.json'}]}}", SETTING_MODE, "\"all\"",
         "preset strict"},
        {"a list of one setting", SANDBOX("networkAllow:{$include:'list.json'}"),
         SETTING_NETWORK_ALLOW, "[\"l\"]", "list.json:1:1"},
    };

    assert_int_equal(mkdirat(t->fd, ".openclaw/sub", 0700), 0);
    put_file(t, inc("a.json"), "{mode:'off',\n scope:'agent',networkAllow:['a']}");
    put_file(t, inc("b.json"), "{mode:'non-main',networkAllow:['b']}");
    put_file(t, inc("sub/d.json"), "{$include:'./e.json', network:'bridge'}");
    put_file(t, inc("sub/e.json"), "{pidsLimit:7}");
    put_file(t, inc("whole.json"), "{agents:{defaults:{sandbox:{$include:'a.json'}}},models:7}");
    put_file(t, inc("agent.json"), "{id:'a',sandbox:{mode:'off'}}");
    put_file(t, inc("list.json"), "['l']");
    FOR_EACH(row, rows)
    {
        autoptr(config) c = NULL;

        put_file(t, MAIN, row->main);
        c = load();
        check_value(c, "main", row->id, row->want, row->claim);
        check_origin(c, "main", row->id, row->origin, row->claim);
    }
}

static void test_bad_includes(void **state)
{
    const struct temp *t = *state;
    static const struct {
        const char *main;
        enum error_code code;
        const char *part;
    } rows[] = {
        {SANDBOX("$include:'none.json'"), ERR_NOT_FOUND, "/none.json: no such file"},
        {SANDBOX("$include:'none.json'"), ERR_NOT_FOUND, ".openclaw/openclaw.json:1:20: "},
        {SANDBOX("$include:'a\\nb'"), ERR_NOT_FOUND, "/a?b: no such file"},
        {SANDBOX("$include:7"), ERR_INVALID, "'$include' must be a path or a list"},
        {SANDBOX("$include:[]"), ERR_INVALID, "'$include' must be a path or a list"},
        {SANDBOX("$include:[7]"), ERR_INVALID, "'$include' must list paths"},
        {SANDBOX("$include:''"), ERR_INVALID, "'$include' must be a path of 1 to 4095 bytes"},
        {SANDBOX("$include:'list.json',mode:'off'"), ERR_INVALID, "must be an object"},
        {SANDBOX("$include:'../out.json'"), ERR_DENIED, "outside the configuration's folder"},
        {SANDBOX("$include:'link.json'"), ERR_DENIED, "outside the configuration's folder"},
        {SANDBOX("$include:'/etc/passwd'"), ERR_DENIED, "/etc/passwd: outside"},
        {SANDBOX("$include:'fd.json'"), ERR_INVALID, "fd.json: not a regular file"},
        {SANDBOX("$include:'c1.json'"), ERR_INVALID,
         "c2.json:1:1: c1.json includes itself: c1.json in c2.json in c1.json; leave one"},
        {SANDBOX("$include:'openclaw.json'"), ERR_INVALID,
         "openclaw.json includes itself: openclaw.json in openclaw.json"},
        {SANDBOX("$include:'0.json'"), ERR_TOO_LARGE, "includes in each other more than 10 deep"},
        {SANDBOX("$include:'bad.json'"), ERR_INVALID, "bad.json:2:1: "},
        {SANDBOX("$include:'typo.json'"), ERR_INVALID,
         "typo.json:2:2: unknown key 'agents.defaults.sandbox.moed'; did you mean 'mode'?"},
        {"{$include:'agents.json',agents:{list:[{id:'b',sandbox:{}}]}}", ERR_INVALID,
         "/openclaw.json: unknown key 'agents.list.0.sandbox.moed'"}, /* not list.0 of this file */
        {SANDBOX("$include:'fan.json'"), ERR_TOO_LARGE, "more than 256 files"},
    };
    autoptr(config) c = NULL;
    autoptr(config) roots = NULL;
    char name[32], text[64], fan[4096] = "{$include:[";

    put_file(t, "out.json", "{mode:'off'}");
    put_file(t, inc("list.json"), "['l']");
    put_file(t, inc("c1.json"), "{$include:'c2.json'}");
    put_file(t, inc("c2.json"), "{$include:'./c1.json'}");
    put_file(t, inc("agents.json"), "{agents:{list:[{id:'a',sandbox:{moed:1}}]}}");
    put_file(t, inc("bad.json"), "{a:\n]");
    put_file(t, inc("typo.json"), "{\n moed:'off'}");
    assert_int_equal(symlinkat("../out.json", t->fd, ".openclaw/link.json"), 0);
    assert_int_equal(mkfifoat(t->fd, ".openclaw/fd.json", 0600), 0);
    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof(name), ".openclaw/%d.json", i);
        (void)snprintf(text, sizeof(text), "{$include:'%d.json'}", i + 1);
        put_file(t, name, text);
    }
    put_file(t, inc("10.json"), "{mode:'off'}");
    for (int i = 0; i < 256; i++)
        (void)snprintf(fan + strlen(fan), sizeof(fan) - strlen(fan), "'10.json',");
    (void)snprintf(fan + strlen(fan), sizeof(fan) - strlen(fan), "]}");
    put_file(t, inc("fan.json"), fan);
    FOR_EACH(row, rows)
    {
        put_file(t, MAIN, row->main);
        refuse(row->code, row->part, row->main);
    }
    put_file(t, MAIN, SANDBOX("$include:'1.json'")); /* ten, and the top file */
    c = load();
    check_value(c, "main", SETTING_MODE, "\"off\"", "ten deep");
    put_file(t, MAIN, SANDBOX("$include:'link.json'"));
    (void)snprintf(fan, sizeof(fan), "/nowhere:%s", t->path);
    (void)setenv("OPENCLAW_INCLUDE_ROOTS", fan, 1);
    roots = load();
    check_value(roots, "main", SETTING_MODE, "\"off\"", "OPENCLAW_INCLUDE_ROOTS");
}

/* ---- variables ---- */

static void test_substitution(void **state)
{
    static const struct {
        const char *raw, *want;
    } rows[] = {
        {"a-${FROM_ENV}-b", "\"a-1-b\""},
        {"${FROM_DOTENV}${FROM_SECRETS}", "\"23\""},
        {"$${FROM_ENV}", "\"${FROM_ENV}\""},
        {"$$${FROM_ENV}", "\"$${FROM_ENV}\""},
        {"${from_env}", "\"${from_env}\""},
        {"${FROM_ENV", "\"${FROM_ENV\""},
        {"${}$FROM_ENV$", "\"${}$FROM_ENV$\""},
        {"${1A}", "\"${1A}\""},
        {"${FROM_ENV}${NO_SUCH}", "\"${FROM_ENV}${NO_SUCH}\""},
        {"${SET_TO_NOTHING}", "\"${SET_TO_NOTHING}\""},
        {"${BOTH}", "\"env\""},
    };
    char text[256];

    (void)setenv("FROM_ENV", "1", 1);
    (void)setenv("SET_TO_NOTHING", "", 1);
    (void)setenv("BOTH", "env", 1);
    put_file(*state, DOTENV, "FROM_DOTENV=2\nBOTH=dotenv\n");
    put_file(*state, SECRETS, "FROM_SECRETS=3\nFROM_DOTENV=secrets\n");
    FOR_EACH(row, rows)
    {
        autoptr(config) c = NULL;
        char quoted[128];

        (void)snprintf(text, sizeof(text), SANDBOX("docker:{image:'%s',env:{A:'%s'}}"), row->raw,
                       row->raw);
        put_file(*state, MAIN, text);
        c = load();
        check_value(c, "main", SETTING_IMAGE, row->want, row->raw);
        (void)snprintf(quoted, sizeof(quoted), "{\"LANG\":\"C.UTF-8\",\"A\":\"%s\"}", row->raw);
        check_value(c, "main", SETTING_ENV, quoted, row->raw);
        CHECK(warns_of(c, "is not set; 'agents.defaults.sandbox.docker.image' stays") ==
                  (strstr(row->raw, "NO") != NULL),
              "%s: %s", row->raw, config_warning(c, 0) ? config_warning(c, 0) : "no warning");
    }
    (void)setenv("MODE", "tell-nobody", 1);
    (void)setenv("RAW", "\xff", 1);
    put_file(*state, MAIN, SANDBOX("mode:'${MODE}'"));
    refuse(ERR_INVALID, "openclaw.json:1:29: 'mode' must be one of off|non-main|all", "MODE");
    put_file(*state, MAIN, SANDBOX("mode:'${RAW}'"));
    refuse(ERR_INVALID, "too long or not UTF-8", "RAW");
}

static void test_env_value(void **state)
{
    static const struct {
        const char *raw;
        enum env_result want;
        const char *value;
    } rows[] = {
        {"plain", ENV_LITERAL, "plain"}, {"", ENV_LITERAL, ""},
        {"$${A}", ENV_LITERAL, "${A}"},  {"x${A}", ENV_REFERENCE, "xv"},
        {"${NO}", ENV_MISSING, NULL},    {"${A}${NO}", ENV_MISSING, NULL},
        {"$A", ENV_LITERAL, "$A"},
    };
    autoptr(config) c = NULL;

    put_file(*state, SECRETS, "A=v\n");
    c = load();
    FOR_EACH(row, rows)
    {
        char *got = NULL;

        CHECK(config_env_value(c, row->raw, &got) == row->want, "%s: another result", row->raw);
        if (row->value)
            CHECK_STR(got, row->value, row->raw);
        else
            assert_null(got);
        free(got);
    }
    assert_string_equal(config_variable(c, "A"), "v");
    assert_null(config_variable(c, "NO"));
}

static void test_env_files(void **state)
{
    static const struct {
        const char *text, *value; /* of A; NULL: refused */
        const char *part;
    } rows[] = {
        {"A=1", "1", NULL},
        {"  export\tA=1  \r\n", "1", NULL},
        {"# A=2\n; A=3\n\nA=\n", "", NULL},
        {"A='x # \"y'\n", "x # \"y", NULL},
        {"A=\"x \\\" \\\\ \\$ \\n\" # why\n", "x \" \\ $ \\n", NULL},
        {"A=\"two\nlines\"\n", "two\nlines", NULL},
        {"A=one \\\ntwo\n", "one two", NULL},
        {"A=x\\ y\n", "x y", NULL},
        {"A=x # y\n", "x # y", NULL},
        {"A=1\nA=2\n", "2", NULL},
        {"A='\xc3\xa9'", "\xc3\xa9", NULL},
        {"B=1\nA", NULL, "secrets.env:2:2: '=' expected"},
        {"A =1", NULL, "secrets.env:1:2: '=' expected"},
        {"1A=1", NULL, "secrets.env:1:1: a name of letters"},
        {"A=1\n  =x", NULL, "secrets.env:2:3: a name of letters"},
        {"A='never", NULL, "secrets.env:1:3: this quote is never closed"},
        {"A=\"x\"tell-nobody", NULL, "secrets.env:1:6: text after the closing quote"},
        {"A=1\nB=\xff", NULL, "secrets.env:2:3: not UTF-8"},
    };

    FOR_EACH(row, rows)
    {
        put_file(*state, SECRETS, row->text);
        if (row->value) {
            autoptr(config) c = load();

            CHECK_STR(config_variable(c, "A"), row->value, row->text);
        } else {
            refuse(ERR_INVALID, row->part, row->text);
        }
    }
    temp_write(*state, SECRETS, "A=\0", 3);
    refuse(ERR_INVALID, "secrets.env:1:3: a NUL byte", "NUL");
    put_file(*state, SECRETS, NULL);
    put_file(*state, DOTENV, "A=x # y\n");
    {
        autoptr(config) c = load();

        CHECK_STR(config_variable(c, "A"), "x", ".env has comments after values");
    }
}

static void test_env_modes(void **state)
{
    const struct temp *t = *state;
    static const struct {
        mode_t mode;
        const char *part; /* NULL: fine */
    } rows[] = {
        {0600, NULL},
        {0400, NULL},
        {0640, ": mode 0640: "},
        {0604, ": mode 0604: "},
        {0620, ": mode 0620: "},
        {0601, ": mode 0601: "},
    };
    static const char *const files[] = {DOTENV, SECRETS};
    char *big = calloc(1, LIMIT_ENV_FILE + 2);

    for (size_t i = 0; i < 2; i++) {
        put_file(t, files[i], "A=1\n");
        FOR_EACH(row, rows)
        {
            assert_int_equal(fchmodat(t->fd, files[i], row->mode, 0), 0);
            if (row->part)
                refuse(ERR_DENIED, row->part, files[i]);
            else
                config_free(load());
        }
        assert_int_equal(fchmodat(t->fd, files[i], 0600, 0), 0);
    }
    if (geteuid() == 0) {
        assert_int_equal(fchownat(t->fd, DOTENV, 4242, 0, 0), 0);
        refuse(ERR_DENIED, ".env: belongs to uid 4242", "owner");
        put_file(t, DOTENV, NULL);
    }
    if (geteuid() != 0) { /* the system's secrets are not there for everybody */
        assert_int_equal(fchmodat(t->fd, SECRETS, 0, 0), 0);
        config_free(load());
        put_file(t, SECRETS, NULL);
        assert_int_equal(fchmodat(t->fd, DOTENV, 0, 0), 0);
        refuse(ERR_SYS, ".env: Permission denied", "one's own file");
        put_file(t, DOTENV, NULL);
    }
    memset(big, '\n', LIMIT_ENV_FILE + 1);
    put_file(t, SECRETS, big);
    refuse(ERR_TOO_LARGE, "secrets.env: more than 1048576 bytes", "size");
    free(big);
    assert_int_equal(unlinkat(t->fd, SECRETS, 0) | mkdirat(t->fd, SECRETS, 0700), 0);
    refuse(ERR_INVALID, "secrets.env: not a regular file", "folder");
}

/* ---- what is wrong in openclaw.json ---- */

static void test_bad_json(void **state)
{
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"", "openclaw.json:1:1: "},
        {"{\n  a: 1,,\n}", "openclaw.json:2:8: "},
        {"{a:1,\n a:2}", "openclaw.json:2:2: "},
        {"{a:'\xff'}", "openclaw.json:1:5: "},
        {"[]", "openclaw.json:1:1: the whole must be an object"},
        {"7", "the whole must be an object"},
        {SANDBOX("docker:{netwrok:'none'}"),
         "openclaw.json:1:37: unknown key 'agents.defaults.sandbox.docker.netwrok'; did you mean "
         "'docker.network'?"},
        {SANDBOX("\n\tnetwork:'none'"),
         "openclaw.json:2:2: unknown key 'agents.defaults.sandbox.network'; did you mean '"},
        {SANDBOX("'docker.network':'none'"),
         "unknown key 'agents.defaults.sandbox.docker.network'"},
        {SANDBOX("zzzzzzzzzzzzz:1"),
         "unknown key 'agents.defaults.sandbox.zzzzzzzzzzzzz'; take it"},
        {SANDBOX("'a\\u001b[2J':1"), "sandbox.a\\u001b[2J'"},
        {SANDBOX("tools:{}"), "unknown key 'agents.defaults.sandbox.tools'"},
        {"{tools:{sandbox:{tools:{alow:[]}}}}",
         "openclaw.json:1:25: unknown key 'tools.sandbox.tools.alow'; did you mean 'allow'?"},
        {"{tools:{sandbox:{tools:{allow:['a'],alsoAllow:['b']}}}}",
         "openclaw.json:1:37: 'allow' and 'alsoAllow' in one place"},
        {"{agents:{entries:{a:{tools:{sandbox:{tools:{allow:['a'],alsoAllow:['b']}}}}}}}",
         "'allow' and 'alsoAllow' in one place"},
        {SANDBOX("mode:'some'"), "openclaw.json:1:29: 'mode' must be one of off|non-main|all"},
        {SANDBOX("mode:null"), "openclaw.json:1:29: 'mode' must be"},
        {SANDBOX("docker:7"), "openclaw.json:1:29: 'docker' must be an object"},
        {SANDBOX("docker:{readOnlyRoot:'yes'}"), "'docker.readOnlyRoot' must be true or false"},
        {SANDBOX("docker:{pidsLimit:0}"), "'docker.pidsLimit' must be a whole number from 1"},
        {SANDBOX("docker:{cpus:0}"), "'docker.cpus' must be a number above 0"},
        {SANDBOX("docker:{memory:'lots'}"), "'docker.memory' must be a size"},
        {SANDBOX("docker:{capDrop:[1]}"), "'docker.capDrop' must be a list of strings"},
        {SANDBOX("docker:{env:{A:1}}"), "'docker.env' must be an object of strings"},
        {SANDBOX("browser:{cdpPort:70000}"), "'browser.cdpPort' must be"},
    };

    FOR_EACH(row, rows)
    {
        put_file(*state, MAIN, row->text);
        refuse(ERR_INVALID, row->part, row->text);
    }
}

/* ---- clawden.yaml ---- */

static void test_bad_yaml(void **state)
{
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"a: [1, 2", "clawden.yaml:1:9: "},
        {"a: b: c", "clawden.yaml:1:5: mapping values are not allowed"},
        {"a: &x 1\nb: *x", "clawden.yaml:1:4: anchors and aliases are not read"},
        {"b: *x", "clawden.yaml:1:4: anchors and aliases are not read"},
        {"a: !!str 1", "clawden.yaml:1:4: tags are not read"},
        {"a: ! 1", "clawden.yaml:1:4: tags are not read"},
        {"%YAML 1.1\n---\na: 1", "clawden.yaml:1:1: directives are not read"},
        {"---\na: 1\n---\nb: 1", "clawden.yaml:3:1: a second document"},
        {"a: 1\nb: 2\na: 3", "clawden.yaml:3:1: the key 'a' stands twice"},
        {"? [a]\n: 1", "clawden.yaml:1:3: a key must be a word"},
        {"a: .inf", "clawden.yaml:1:4: infinity"},
        {"a: 1e999", "clawden.yaml:1:4: infinity"},
        {"a: \"\\0\"", "clawden.yaml:1:4: a NUL"},
        {"a: \xff", "clawden.yaml:1:4: not UTF-8"},
        {"a:\n\t- b", "clawden.yaml:2:1: "},
        {"- a", "clawden.yaml: the whole must be a mapping"},
        {"preset: lax", "clawden.yaml:1:1: 'preset' must be one of strict|dev"},
        {"mode: [direct]", "clawden.yaml:1:1: 'mode' must be one of direct|docker"},
        {"sandbox: true", "clawden.yaml:1:1: 'sandbox' must be an object"},
        {"sandbox:\n  docker:\n    imagge: x",
         "clawden.yaml:3:5: unknown key 'sandbox.docker.imagge'; did you mean 'docker.image'?"},
        {"sandbox:\n  tools: {alow: []}",
         "clawden.yaml:2:11: unknown key 'sandbox.tools.alow'; did you mean 'allow'?"},
        {"sandbox: {docker: {memory: yes}}", "clawden.yaml:1:20: 'docker.memory' must be a size"},
    };

    FOR_EACH(row, rows)
    {
        put_file(*state, YAML, row->text);
        refuse(ERR_INVALID, row->part, row->text);
    }
    put_file(*state, YAML, NULL);
    (void)setenv("CLAWDEN_YAML", "named.yaml", 1);
    refuse(ERR_NOT_FOUND, "named.yaml: no such file", "CLAWDEN_YAML");
    {
        autoptr(config) c = NULL;

        put_file(*state, "named.yaml", "sandbox: {mode: 'off'}");
        c = load();
        check_value(c, "main", SETTING_MODE, "\"off\"", "CLAWDEN_YAML");
    }
    (void)unsetenv("CLAWDEN_YAML");
    {
        autoptr(config) c = NULL;

        put_file(*state, "data/clawden.yaml", "sandbox: {mode: 'off'}");
        c = load();
        check_value(c, "main", SETTING_MODE, "\"off\"", "data dir");
    }
    { /* the present folder's own, which anybody may have written */
        autoptr(config) c = NULL;

        assert_int_equal(unlinkat(((struct temp *)*state)->fd, YAML, 0), 0);
        put_file(*state, "clawden.yaml", "mode: direct");
        c = load();
        check_value(c, "main", SETTING_ENABLED, "true", "present folder");
        assert_non_null(strstr(config_warning(c, 0), "does not count"));
    }
}

static void test_yaml_values(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"[true, True, yes, on, 'true']", "[true,true,\"yes\",\"on\",\"true\"]"},
        {"[null, ~, '', \"\", ]", "[null,null,\"\",\"\"]"},
        {"[1, -1, +1, 017, 0o17, 0x1F, 1_000]", "[1,-1,1,17,15,31,\"1_000\"]"},
        {"[1.5, .5, 1., 1e3, 1e, '.', -, 12:30]",
         "[1.5,0.5,1.0,1000.0,\"1e\",\".\",\"-\",\"12:30\"]"},
        {"[99999999999999999999]", "[1e20]"},
        {"[2026-11-15, \"\\u00e9\", 'it''s']", "[\"2026-11-15\",\"\xc3\xa9\",\"it's\"]"},
        {"{a: 1, 2: b, <<: c}", "{\"a\":1,\"2\":\"b\",\"<<\":\"c\"}"},
        {"a:\n- b\n- c: |\n    d\n    e\n", "{\"a\":[\"b\",{\"c\":\"d\\ne\\n\"}]}"},
        {"", "null"},
        {"# only\n", "null"},
        {"--- \nx\n...\n", "\"x\""},
    };
    static const char *const way[] = {"a", "1", "c", NULL}, *const no[] = {"a", "2", NULL};
    struct text_place place = {0};

    (void)state;
    FOR_EACH(row, rows)
    {
        struct error err = {0};
        json_t *v = NULL;
        char *got;

        CHECK(yaml_parse(row->text, strlen(row->text), &v, &place, &err) >= 0, "%s: %u:%u: %s",
              row->text, place.line, place.column, err.msg);
        got = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
        CHECK_STR(got, row->want, row->text);
        free(got);
        json_decref(v);
    }
    assert_int_equal(yaml_locate(rows[7].text, strlen(rows[7].text), way, &place), 0);
    assert_true(place.line == 3 && place.column == 3);
    assert_true(yaml_locate(rows[7].text, strlen(rows[7].text), no, &place) < 0);
}

/* ---- limits ---- */

static size_t put_text(char *at, const char *text)
{
    memcpy(at, text, strlen(text) + 1);
    return strlen(text);
}

static void test_limits(void **state)
{
    const struct temp *t = *state;
    static const struct {
        const char *file, *open, *before, *part;
    } rows[] = {
        {MAIN, "[", "{a:", "openclaw.json:1:67: "}, {MAIN, "{a:", "", "openclaw.json:1:193: "},
        {YAML, "[", "a: ", "clawden.yaml:1:67: "},  {YAML, "- ", "", "clawden.yaml:1:129: "},
        {YAML, "{a: ", "", "clawden.yaml:1:257: "}, {PROFILE, "[", "a = ", "profile.toml:1:68: "},
    };
    char *text = calloc(1, LIMIT_CONFIG_BYTES + 64);
    autoptr(config) c = NULL;

    FOR_EACH(row, rows)
    {
        char *at = text + put_text(text, row->before);

        for (int i = 0; i < 10000; i++)
            at += put_text(at, row->open);
        put_file(t, row->file, text);
        refuse(ERR_TOO_LARGE, row->part, row->open);
        put_file(t, row->file, NULL);
    }
    for (size_t n = LIMIT_CONFIG_BYTES; n <= LIMIT_CONFIG_BYTES + 1; n++) {
        static const char good[] = SANDBOX("mode:'off',scope:'agent'");

        memset(text, ' ', n);
        memcpy(text + n - sizeof(good) + 1, good, sizeof(good) - 1);
        temp_write(t, MAIN, text, n);
        if (n > LIMIT_CONFIG_BYTES)
            refuse(ERR_TOO_LARGE, "openclaw.json: more than 2097152 bytes", "size");
        else
            c = load();
    }
    check_value(c, "main", SETTING_MODE, "\"off\"", "2 MiB");
    free(text);
}

static void test_long_paths(void **state)
{
    char name[900], want[160];
    const char *at = name;

    (void)state;
    memset(name, 'a', sizeof(name));
    for (size_t i = 100; i < sizeof(name); i += 100)
        name[i] = '/';
    name[sizeof(name) - 1] = 0;
    (void)snprintf(want, sizeof(want), "...%s: no such file", at + strlen(name) - 128);
    refuse_with(&(struct config_inputs){.file = name}, ERR_NOT_FOUND, want, "cut from the left");
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM_AT_HOME("openclaw.json is where the environment says", test_paths),
        CLAIM_AT_HOME("only a regular file is read, through links too", test_regular),
        CLAIM_AT_HOME("includes are put in, and their places known", test_includes),
        CLAIM_AT_HOME("includes are confined and end", test_bad_includes),
        CLAIM_AT_HOME("variables are put in, but not into env maps", test_substitution),
        CLAIM_AT_HOME("an env value says whether it is a reference", test_env_value),
        CLAIM_AT_HOME("files of variables are read as systemd reads them", test_env_files),
        CLAIM_AT_HOME("files of variables must be closed to others", test_env_modes),
        CLAIM_AT_HOME("what is wrong in openclaw.json is told with its place", test_bad_json),
        CLAIM_AT_HOME("what is wrong in clawden.yaml is told with its place", test_bad_yaml),
        CLAIM_AT_HOME("YAML values are those of the core schema", test_yaml_values),
        CLAIM_AT_HOME("depth and size have an end", test_limits),
        CLAIM_AT_HOME("a long path loses its beginning, not the message", test_long_paths),
    };

    return RUN_CLAIMS("config/read", claims);
}
