/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/security.h"

#include <jansson.h>

#include "config/settings.h"
#include "tests/test.h"

static const char *const homes[] = {"/home/u", "/srv/home/v/", NULL};
static const struct security_facts alone = {
    .homes = homes, .workspace = "/data/box", .agent_workspace = "/home/u/work"};
static const struct security_facts tenants = {.homes = homes,
                                              .workspace = "/data/box",
                                              .agent_workspace = "/home/u/work",
                                              .multi_tenant = true};

/* "key=JSON" lines over an empty block; what is wrong is the first of them. */
static void read_settings(const char *text, struct settings *s)
{
    char path[128];

    *s = (struct settings){0};
    while (*text) {
        const char *equals = strchr(text, '='), *end = strchrnul(text, '\n');
        const struct setting *setting;
        size_t id;

        (void)snprintf(path, sizeof(path), "%.*s", (int)(equals - text), text);
        setting = setting_find(HOME_SANDBOX, path);
        CHECK(setting, "no setting '%s'", path);
        id = (size_t)(setting - settings_table);
        s->value[id] = json_loadb(equals + 1, (size_t)(end - equals - 1),
                                  JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        CHECK(s->value[id], "no JSON: %s", text);
        text = *end ? end + 1 : end;
    }
}

static void check_row(const char *text, const struct security_facts *f, const char *part)
{
    struct error err = {0};
    struct settings s;
    int r;

    read_settings(text, &s);
    r = security_check(&s, f, &err);
    settings_done(&s);
    if (!part) {
        CHECK(r == 0, "%s: %s", text, err.msg);
        return;
    }
    CHECK(r < 0 && r == -(int)err.code, "%s: accepted (%d)", text, r);
    CHECK(err.code == ERR_DENIED || err.code == ERR_INVALID, "%s: code %d", text, err.code);
    CHECK(strncmp(err.msg, "Sandbox security: ", 18) == 0, "%s: '%s'", text, err.msg);
    CHECK(strncmp(err.msg + 18, text, strcspn(text, "=")) == 0, "%s: names no key: '%s'", text,
          err.msg);
    CHECK(strstr(err.msg, part), "%s: '%s' does not say '%s'", text, err.msg, part);
    CHECK(strchr(err.msg, ';'), "%s: no remedy: '%s'", text, err.msg);
    CHECK(strlen(err.msg) < sizeof(err.msg) - 1, "%s: cut: '%s'", text, err.msg);
    for (const char *c = err.msg; *c; c++)
        CHECK((unsigned char)*c >= 0x20, "%s: more than a line", text);
}

struct row {
    const char *text, *part; /* NULL: nothing is wrong */
};

static void check_rows(const struct row *rows, size_t n, const struct security_facts *f)
{
    for (size_t i = 0; i < n; i++)
        check_row(rows[i].text, f, rows[i].part);
}

/* ---- binds ---- */

#define BIND(text)  "docker.binds=[\"" text "\"]"
#define OUTER(text) BIND(text) "\ndocker.dangerouslyAllowExternalBindSources=true"
#define OVER(text)  BIND(text) "\ndocker.dangerouslyAllowReservedContainerTargets=true"
#define HOST        "belongs to the host"
#define SECRET      "of a home folder"
#define SHORTEST    "not an absolute path in its shortest form"

static const struct row binds[] = {
    {"docker.binds=[]", NULL},
    {BIND("/data/box:/x"), NULL},
    {BIND("/data/box/a b:/x/y:ro"), NULL},
    {BIND("/home/u/work/z:/x:rw,z,rprivate"), NULL},
    {BIND("/data/box:/x:Z"), NULL},
    {BIND("/data/box:/x:private,rprivate"), NULL},
    {BIND("/data/box:/workspace2"), NULL},
    {BIND("/data/box:/workspace-obsidian"), NULL},
    {BIND("/data/box2:/x"), "outside the workspace"},
    {BIND("/data:/x"), "outside the workspace"},
    {BIND("/opt/x:/x"), "dangerouslyAllowExternalBindSources"},
    {OUTER("/opt/x:/x"), NULL},
    {OUTER("/data:/x"), NULL},
    {OUTER("/etcetera:/x"), NULL},
    {OUTER("/:/x"), "the whole host"},
    {OUTER("/etc:/x"), HOST},
    {OUTER("/etc/ssl:/x"), HOST},
    {OUTER("/private/etc:/x"), HOST},
    {OUTER("/private:/x"), HOST},
    {OUTER("/proc/1:/x"), HOST},
    {OUTER("/sys:/x"), HOST},
    {OUTER("/dev/null:/x"), HOST},
    {OUTER("/root/w:/x"), HOST},
    {OUTER("/boot:/x"), HOST},
    {OUTER("/run/user/0:/x"), HOST},
    {OUTER("/var/run:/x"), HOST},
    {OUTER("/var/run/docker.sock:/x"), HOST},
    {OUTER("/run/podman/podman.sock:/x"), HOST},
    {OUTER("/opt/docker.sock:/x"), "docker.sock"},
    {OUTER("/opt/podman.sock:/x"), "podman.sock"},
    {OUTER("/var:/x"), HOST},
    {OUTER("/var/lib:/x"), HOST},
    {OUTER("/var/lib/clawden/boxes:/x"), HOST},
    {OUTER("/var/lib/docker:/x"), HOST},
    {OUTER("/var/lib/other:/x"), NULL},
    {OUTER("/home:/x"), SECRET},
    {OUTER("/home/u:/x"), SECRET},
    {OUTER("/home/u/.ssh:/x"), "'.ssh' " SECRET},
    {OUTER("/home/u/.ssh/id:/x"), SECRET},
    {OUTER("/home/u/.aws:/x"), SECRET},
    {OUTER("/home/u/.cargo:/x"), SECRET},
    {OUTER("/home/u/.config/gh:/x"), SECRET},
    {OUTER("/home/u/.docker:/x"), SECRET},
    {OUTER("/home/u/.gnupg:/x"), SECRET},
    {OUTER("/home/u/.netrc:/x"), SECRET},
    {OUTER("/home/u/.npm:/x"), SECRET},
    {OUTER("/home/u/.kube:/x"), SECRET},
    {OUTER("/home/u/.password-store:/x"), SECRET},
    {OUTER("/home/u/.openclaw:/x"), SECRET},
    {OUTER("/home/u/.openclaw/workspace:/x"), NULL},
    {OUTER("/home/u/.sshx:/x"), NULL},
    {OUTER("/home/w/.ssh:/x"), NULL},
    {OUTER("/srv/home/v/.ssh:/x"), SECRET},
    {OUTER("/srv:/x"), SECRET},
    {BIND("data:/x"), SHORTEST},
    {BIND("~/x:/x"), SHORTEST},
    {BIND(":/x"), SHORTEST},
    {BIND("/data/box/:/x"), SHORTEST},
    {BIND("/data//box:/x"), SHORTEST},
    {BIND("/data/box/..:/x"), SHORTEST},
    {BIND("/data/box/./a:/x"), SHORTEST},
    {BIND("/data/box/...:/x"), NULL},
    {BIND("/data/box"), "not a bind"},
    {BIND(""), "not a bind"},
    {BIND("/data/box:"), SHORTEST},
    {BIND("/data/box:x"), SHORTEST},
    {BIND("/data/box:/x/../y"), SHORTEST},
    {BIND("/data/box:/x/"), SHORTEST},
    {OVER("/data/box:/"), "the box's root"},
    {OVER("/data/box:/proc"), "in /proc"},
    {OVER("/data/box:/proc/self"), "in /proc"},
    {OVER("/data/box:/sys/fs"), "in /sys"},
    {OVER("/data/box:/dev/shm"), "in /dev"},
    {OVER("/data/box:/workspace"), NULL},
    {OVER("/data/box:/agent/x"), NULL},
    {BIND("/data/box:/workspace"), "covers /workspace"},
    {BIND("/data/box:/workspace/x"), "dangerouslyAllowReservedContainerTargets"},
    {BIND("/data/box:/agent"), "covers /agent"},
    {BIND("/data/box:/x:"), "unknown option ''"},
    {BIND("/data/box:/x:ro,"), "unknown option ''"},
    {BIND("/data/box:/x:RO"), "unknown option 'RO'"},
    {BIND("/data/box:/x:ro:rw"), "unknown option 'ro:rw'"},
    {BIND("/data/box:/x:ro,rw"), "both ro and rw"},
    {BIND("/data/box:/x:shared"), "between host and box"},
    {BIND("/data/box:/x:ro,rshared"), "rprivate"},
    {BIND("/data/box:/x:nocopy"), "unknown option 'nocopy'"},
    {BIND("/data/box\\n:/x"), "control character"},
    {BIND("/data/box\\u0000:/x"), "control character"},
    {"docker.binds=\"/data/box:/x\"", "not a list"},
    {"docker.binds=[1]", "not a string"},
    {"docker.binds=[\"/data/box:/x\",\"/etc:/y\"]", "/etc:/y"},
    {"browser.binds=[\"/etc:/x\"]", HOST},
    {"browser.binds=[\"/data/box:/x\"]", NULL},
    {"vaultPath=\"/workspace-obsidian\"", NULL},
    {BIND("/workspace-obsidian:/workspace-obsidian:rw") "\nvaultPath=\"/workspace-obsidian\"",
     NULL},
    {BIND("/workspace-obsidian:/x:rw") "\nvaultPath=\"/workspace-obsidian\"",
     "outside the workspace"},
    {BIND("/workspace-obsidian:/workspace-obsidian") "\nvaultPath=\"/other\"",
     "outside the workspace"},
    {BIND("/etc:/etc") "\nvaultPath=\"/etc\"", HOST},
    {"vaultPath=\"/home/u/.ssh\"", SECRET},
    {"vaultPath=\"/etc\"", HOST},
    {"vaultPath=\"vault\"", SHORTEST},
    {"vaultPath=\"/workspace/obsidian\"", "covers /workspace"},
};

static void test_binds(void **state)
{
    (void)state;
    check_rows(binds, COUNT(binds), &alone);
    check_rows(binds, COUNT(binds), &tenants);
}

static void test_no_facts(void **state)
{
    static const struct security_facts none = {0};
    static const struct security_facts root = {.workspace = "/"};

    (void)state;
    check_row(BIND("/data/box:/x"), &none, "outside the workspace");
    check_row(OUTER("/data/box:/x"), &none, NULL);
    check_row(BIND("/data/box:/x"), &root, "outside the workspace");
}

/* ---- networks and profiles ---- */

#define HOST_KEY "\ndangerouslyAllowHostNetwork=true"
#define JOIN_KEY "\ndocker.dangerouslyAllowContainerNamespaceJoin=true"

static const struct row networks[] = {
    {"docker.network=\"none\"", NULL},
    {"docker.network=\"bridge\"", NULL},
    {"docker.network=\"my_net.1\"", NULL},
    {"docker.network=\"host\"", "dangerouslyAllowHostNetwork"},
    {"docker.network=\" HOST \"", "the host's network"},
    {"docker.network=\"host\"" HOST_KEY, NULL},
    {"docker.network=\"host\"" HOST_KEY "\nmultiTenant=true", "never allowed"},
    {"docker.network=\"container:x\"", "dangerouslyAllowContainerNamespaceJoin"},
    {"docker.network=\"Container:x\"", "another's network"},
    {"docker.network=\"container:x\"" HOST_KEY, "another's network"},
    {"docker.network=\"container:x\"" JOIN_KEY, NULL},
    {"docker.network=\"container:\"" JOIN_KEY, "not the name of a network"},
    {"docker.network=\"container:x\"" JOIN_KEY "\nmultiTenant=true", "another's network"},
    {"docker.network=\"ns:/proc/1/ns/net\"", "not the name of a network"},
    {"docker.network=\"name=host\"", "not the name of a network"},
    {"docker.network=\"a,b\"", "not the name of a network"},
    {"docker.network=\"\"", "not the name of a network"},
    {"docker.network=1", "not a string"},
    {"networkDocker.network=\"bridge\"", NULL},
    {"networkDocker.network=\"none\"", NULL},
    {"networkDocker.network=\"host\"", "the host's network"},
    {"networkDocker.network=\"host\"" HOST_KEY, NULL},
    {"networkDocker.network=\"container:x\"", "another's network"},
    {"browser.network=\"openclaw-sandbox-browser\"", NULL},
    {"browser.network=\"host\"" HOST_KEY, "never allowed"},
    {"browser.network=\"none\"\nbrowser.enabled=true", "cannot be reached"},
    {"browser.network=\"none\"\nbrowser.enabled=false", NULL},
    {"browser.network=\"container:x\"", "another's network"},
    {"docker.seccompProfile=\"unconfined\"", "takes a belt off"},
    {"docker.seccompProfile=\" Unconfined\"", "takes a belt off"},
    {"docker.seccompProfile=\"/x.json\"", NULL},
    {"docker.apparmorProfile=\"UNCONFINED\"", "takes a belt off"},
    {"docker.apparmorProfile=\"docker-default\"", NULL},
};

static void test_networks(void **state)
{
    (void)state;
    check_rows(networks, COUNT(networks), &alone);
    check_row("docker.network=\"host\"" HOST_KEY, &tenants, "never allowed");
    check_row("docker.network=\"container:x\"" JOIN_KEY, &tenants, "another's network");
    check_row("docker.network=\"bridge\"", &tenants, NULL);
}

/* ---- the rest ---- */

static const struct row others[] = {
    {"docker.user=\"sandbox\"", NULL},
    {"docker.user=\"1000\"", NULL},
    {"docker.user=\"1000:1000\"", NULL},
    {"docker.user=\"4294967294:0\"", NULL},
    {"docker.user=\"4294967295\"", "not a user"},
    {"docker.user=\"99999999999\"", "not a user"},
    {"docker.user=\"1000:\"", "not a user"},
    {"docker.user=\":1\"", "not a user"},
    {"docker.user=\"1000:1000:1\"", "not a user"},
    {"docker.user=\"a:b\"", "not a user"},
    {"docker.user=\"-1\"", "not a user"},
    {"docker.user=\"\"", "not a user"},
    {"docker.user=\"a b\"", "not a user"},
    {"docker.tmpfs=[\"/tmp\",\"/var/tmp\",\"/run\"]", NULL},
    {"docker.tmpfs=[\"/tmp:size=500M,exec\"]", NULL},
    {"docker.tmpfs=[\"tmp\"]", SHORTEST},
    {"docker.tmpfs=[\"/tmp/\"]", SHORTEST},
    {"docker.tmpfs=[\"/a/../proc\"]", SHORTEST},
    {"docker.tmpfs=[\"/\"]", "the box's root"},
    {"docker.tmpfs=[\"/proc:size=1m\"]", "covers /proc"},
    {"docker.tmpfs=[\"/sys/fs\"]", "covers /sys"},
    {"docker.tmpfs=[\"/dev\"]", "covers /dev"},
    {"docker.tmpfs=[\"/workspace\"]", "covers /workspace"},
    {"docker.dns=[\"9.9.9.9\",\"2620:fe::fe\"]", NULL},
    {"docker.dns=[\"dns.example\"]", "not an IP address"},
    {"docker.dns=[\"9.9.9\"]", "not an IP address"},
    {"docker.dns=[\"\"]", "not an IP address"},
    {"docker.extraHosts=[\"db:10.0.0.1\",\"a.b-c:::1\"]", NULL},
    {"docker.extraHosts=[\"db\"]", "no IP address"},
    {"docker.extraHosts=[\"db:host-gateway\"]", "no IP address"},
    {"docker.extraHosts=[\":10.0.0.1\"]", "no host name"},
    {"docker.extraHosts=[\"a b:10.0.0.1\"]", "no host name"},
    {"docker.env={\"LANG\":\"C.UTF-8\",\"_a1\":\"${X}\",\"E\":\"\"}", NULL},
    {"docker.env={\"A-B\":\"x\"}", "'A-B'"},
    {"docker.env={\"1A\":\"x\"}", "not the name of a variable"},
    {"docker.env={\"\":\"x\"}", "not the name of a variable"},
    {"docker.env={\"A\":1}", "not a string"},
    {"docker.env={\"A\":\"b\\u0000c\"}", "NUL"},
    {"docker.env={\"A\":\"b\\nc\"}", "line break"},
    {"docker.env={\"A\":\"b\\rc\"}", "line break"},
    {"docker.env={\"A\":\"b\\tc\"}", NULL},
    {"docker.env=[]", "not an object"},
    {"networkDocker.env={\"A=B\":\"x\"}", "not the name of a variable"},
    {"browser.env={\"A B\":\"x\"}", "not the name of a variable"},
    {"docker.ulimits={\"nofile\":1024,\"nproc\":\"10:20\",\"core\":{\"soft\":0,\"hard\":-1}}",
     NULL},
    {"docker.ulimits={\"core\":\"-1\",\"stack\":\"5:-1\"}", NULL},
    {"docker.ulimits={\"files\":1}", "no such limit"},
    {"docker.ulimits={\"nofile\":\"x\"}", "not a limit"},
    {"docker.ulimits={\"nofile\":\"\"}", "not a limit"},
    {"docker.ulimits={\"nofile\":\"20:10\"}", "not above hard"},
    {"docker.ulimits={\"nofile\":\"-1:10\"}", "not above hard"},
    {"docker.ulimits={\"nofile\":\"1:2:3\"}", "not a limit"},
    {"docker.ulimits={\"nofile\":\"99999999999999999999\"}", "not a limit"},
    {"docker.ulimits={\"nofile\":-2}", "not a limit"},
    {"docker.ulimits={\"nofile\":1.5}", "not a limit"},
    {"docker.ulimits={\"nofile\":{\"soft\":2,\"hard\":1}}", "not a limit"},
    {"docker.ulimits={\"nofile\":{\"soft\":2}}", "not a limit"},
    {"docker.ulimits={\"nofile\":[1]}", "not a limit"},
    {"docker.ulimits=1", "not an object"},
    {"docker.memory=\"1g\"", NULL},
    {"docker.memory=1073741824", NULL},
    {"docker.memory=\"1x\"", "not a size"},
    {"docker.memory=\"0\"", "not a size"},
    {"docker.memory=0", "not a size"},
    {"docker.memory=-1", "not a size"},
    {"docker.memory=true", "not a size"},
    {"docker.memorySwap=\"x\"", "not a size"},
    {"docker.memorySwap=\"2g\"\ndocker.memory=\"1g\"", NULL},
    {"docker.memorySwap=\"512m\"\ndocker.memory=\"1g\"", "counts memory too"},
    {"docker.cpus=0.5", NULL},
    {"docker.cpus=0", "not a number above 0"},
    {"docker.cpus=-1", "not a number above 0"},
    {"docker.cpus=\"2\"", "not a number above 0"},
    {"docker.capDrop=[]", NULL},
    {"docker.capDrop=[\"NET_RAW\"]", NULL},
};

static void test_others(void **state)
{
    (void)state;
    check_rows(others, COUNT(others), &alone);
    check_row("docker.capDrop=[\"NET_RAW\"]", &tenants, "[\"ALL\"]");
    check_row("docker.capDrop=[]\nmultiTenant=true", &alone, "[\"ALL\"]");
    check_row("docker.capDrop=[\"NET_RAW\",\"all\"]", &tenants, NULL);
}

/* A value of any length makes one line, and a variable's none at all. */
static void test_long_values(void **state)
{
    struct error err = {0};
    struct settings s = {0};
    char text[33000];

    (void)state;
    memset(text, 'x', sizeof(text));
    text[32768] = 0;
    s.value[SETTING_ENV] = json_pack("{ss}", "A", text);
    CHECK_OK(security_check(&s, &alone, &err), err);
    text[32768] = 'x';
    text[32769] = 0;
    settings_done(&s);
    s.value[SETTING_ENV] = json_pack("{ss}", "A", text);
    CHECK_ERR(security_check(&s, &alone, &err), err, ERR_INVALID, "longer than 32768 bytes");
    assert_null(strstr(err.msg, "xx"));
    settings_done(&s);
    for (size_t i = 0; i < 6000; i += 3)
        memcpy(text + i, "\xe2\x82\xac", 4);
    s.value[SETTING_BINDS] = json_pack("[s]", text);
    CHECK_ERR(security_check(&s, &alone, &err), err, ERR_INVALID, "\xe2\x82\xac...': not a bind;");
    settings_done(&s);
    text[0] = '/';
    memset(text + 1, 'x', 4094);
    memcpy(text + 4093, ":/x", 4);
    s.value[SETTING_BINDS] = json_pack("[s]", text);
    CHECK_ERR(security_check(&s, &alone, &err), err, ERR_INVALID, "not a bind");
    settings_done(&s);
    s.value[SETTING_TMPFS] = json_pack("[s]", text);
    CHECK_OK(security_check(&s, &alone, &err), err);
    settings_done(&s);
}

/* Whatever stands where something else should, the answer is an answer. */
static void test_any_type(void **state)
{
    static const char *const values[] = {"null",        "true",  "-1",       "1e300",
                                         "\"\"",        "\":\"", "\"::\"",   "[]",
                                         "[[],1,\"\"]", "{}",    "{\"\":[]}"};

    (void)state;
    for (size_t i = 0; i < SETTINGS; i++)
        FOR_EACH(value, values)
        {
            struct error err = {0};
            struct settings s = {0};
            int r;

            s.value[i] = json_loads(*value, JSON_DECODE_ANY, NULL);
            assert_non_null(s.value[i]);
            r = security_check(&s, &tenants, &err);
            CHECK(r == -(int)err.code, "%s %s: %d", settings_table[i].path, *value, r);
            CHECK(!r || strstr(err.msg, settings_table[i].path), "%s", err.msg);
            settings_done(&s);
        }
}

/* What the product ships passes its own check, in both presets. */
static void test_presets(void **state)
{
    (void)state;
    for (int dev = 0; dev < 2; dev++) {
        struct error err = {0};
        struct settings s = {0};

        for (size_t i = 0; i < SETTINGS; i++) {
            const char *json = dev ? settings_table[i].dev : settings_table[i].strict;

            s.value[i] = json ? json_loads(json, JSON_DECODE_ANY, NULL) : NULL;
        }
        CHECK_OK(security_check(&s, &alone, &err), err);
        CHECK_OK(security_check(&s, &tenants, &err), err);
        settings_done(&s);
    }
}

static const struct CMUnitTest claims[] = {
    CLAIM("binds reach nothing of the host's, and cover nothing of the box's", test_binds),
    CLAIM("without a workspace every source is outside", test_no_facts),
    CLAIM("no box has the host's network, another's, or no belts", test_networks),
    CLAIM("users, scratch folders, names, variables and limits are well-formed", test_others),
    CLAIM("long values are cut, values of variables never shown", test_long_values),
    CLAIM("a value of any type is answered", test_any_type),
    CLAIM("both presets pass", test_presets),
};

int main(void)
{
    return RUN_CLAIMS("policy/security", claims);
}
