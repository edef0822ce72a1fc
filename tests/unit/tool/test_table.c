/* SPDX-License-Identifier: Apache-2.0 */
/* The table of tools: schemas that can be kept, arguments that are held against them (EX-17). */
#include "tool/tool.h"

#include "base/cleanup.h"
#include "base/limits.h"
#include "mcp/mcp.h"
#include "mcp/schema.h"
#include "tests/unit/tool/json.h"

static const struct tool *find(const char *name)
{
    const struct tool *t = tool_find(name);

    CHECK(t, "no tool '%s'", name);
    return t;
}

/* One call of each that is in order. */
static const struct {
    const char *tool, *arguments;
} good[] = {
    {"exec", "{'command':'ls'}"},
    {"process", "{'action':'list'}"},
    {"read", "{'path':'a'}"},
    {"write", "{'path':'a','content':''}"},
    {"edit", "{'path':'a','edits':[{'oldText':'a','newText':'b'}]}"},
    {"apply_patch", "{'patch':'x'}"},
    {"ls", "{}"},
    {"find", "{'pattern':'*'}"},
    {"grep", "{'pattern':'x'}"},
    {"web_fetch", "{'url':'https://example.org/'}"},
    {"web_search", "{'query':'x'}"},
    {"session_status", "{}"},
};

/* ---- schemas ---- */

/* Every object is closed, every field is explained. */
static void check_shape(const char *name, const json_t *schema)
{
    const json_t *others = json_object_get(schema, "additionalProperties");
    const char *key;
    json_t *v;

    if (json_object_get(schema, "properties"))
        CHECK(json_is_false(others), "%s: an object takes unknown fields", name);
    json_object_foreach(json_object_get(schema, "properties"), key, v)
    {
        CHECK(json_object_get(v, "description") || strcmp(key, "limit") == 0,
              "%s: '%s' has no description", name, key);
        check_shape(name, v);
    }
    if (json_object_get(schema, "items"))
        check_shape(name, json_object_get(schema, "items"));
}

static void test_schemas(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_tools; i++) {
        const struct tool *t = &tools[i];
        autojson in = json_loads(t->input_schema, JSON_REJECT_DUPLICATES, NULL);
        autojson out = json_loads(t->output_schema, JSON_REJECT_DUPLICATES, NULL);
        struct error err;

        CHECK(in && out, "%s: a schema is no JSON", t->name);
        CHECK(schema_accept(in, &err) == 0, "%s: in: %s", t->name, err.msg);
        CHECK(schema_accept(out, &err) == 0, "%s: out: %s", t->name, err.msg);
        CHECK_STR(json_string_value(json_object_get(in, "type")), "object", t->name);
        CHECK_STR(json_string_value(json_object_get(out, "type")), "object", t->name);
        check_shape(t->name, in);
        if (t->kind != TOOL_STATUS)
            check_shape(t->name, out);
        CHECK(strlen(t->description) < 1000 && t->title[0], "%s: its texts", t->name);
    }
}

static void test_unknown_fields(void **state)
{
    (void)state;
    FOR_EACH(row, good)
    {
        autojson a = json_of(row->arguments);
        struct error err;

        CHECK_OK(tool_check(find(row->tool), a, &err), err); /* the control */
        assert_int_equal(json_object_set_new(a, "workdir", json_true()), 0);
        CHECK_ERR(tool_check(find(row->tool), a, &err), err, ERR_INVALID, "workdir");
    }
    assert_int_equal(COUNT(good), n_tools - 3);
}

/* The server of the protocol takes the table as it is. */
static void test_mcp(void **state)
{
    static const uint8_t key[MCP_KEY];
    struct mcp_tool list[32];
    struct mcp_info info = {
        .name = "clawden", .version = "1", .tools = list, .n_tools = n_tools, .key = key};
    autoptr(mcp) m = NULL;
    struct error err;

    (void)state;
    assert_true(n_tools <= COUNT(list));
    for (size_t i = 0; i < n_tools; i++)
        list[i] = (struct mcp_tool){.name = tools[i].name,
                                    .title = tools[i].title,
                                    .description = tools[i].description,
                                    .input_schema = tools[i].input_schema,
                                    .output_schema = tools[i].output_schema,
                                    .unlisted = tools[i].unlisted};
    CHECK_OK(mcp_new(&info, &m, &err), err);
}

/* ---- names ---- */

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(find("execute")->name, "exec");
    assert_string_equal(find("bash")->name, "exec");
    assert_string_equal(find("apply-patch")->name, "apply_patch");
    assert_null(tool_find(""));
    assert_null(tool_find("Exec"));
    assert_null(tool_find("exec "));
    for (size_t i = 0; i < n_tools; i++) {
        CHECK(tools[i].unlisted == (tools[i].same_as != NULL), "%s", tools[i].name);
        CHECK(find(tools[i].name)->input_schema == tools[i].input_schema, "%s", tools[i].name);
        CHECK(!(tools[i].read_only && tools[i].destructive), "%s", tools[i].name);
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(tools[i].name, tools[k].name) != 0, "%s: twice", tools[i].name);
    }
}

/* ---- arguments ---- */

static void test_arguments(void **state)
{
    static const struct {
        const char *tool, *arguments, *why; /* NULL: taken */
    } rows[] = {
        {"read", "{}", "path: is required"},
        {"read", "[]", "arguments: must be of type object, not array"},
        {"read", "null", "arguments: must be of type object, not null"},
        {"read", "{'path':5}", "path: must be of type string, not integer"},
        {"read", "{'path':''}", "path: must have at least 1 characters"},
        {"read", "{'path':'a\\u0000b'}", "path: it has a NUL byte"},
        {"read", "{'path':'a','offset':-1}", "offset: must be at least 0"},
        {"read", "{'path':'a','limit':0}", "limit: must be at least 1"},
        {"read", "{'path':'a','limit':1.5}", "limit: must be of type integer, not number"},
        {"read", "{'path':'a','offset':9223372036854775807}", NULL},
        {"read", "{'path':'a','bytes':'yes'}", "bytes: must be of type boolean, not string"},
        {"write", "{'path':'a'}", "content: is required"},
        {"write", "{'path':'a','content':'a\\u0000b'}", NULL},
        {"write", "{'path':'a','content':'','encoding':'latin1'}", "encoding: must be one of"},
        {"write", "{'path':'a','content':'','new':true,'expected':'x'}", "new, expected:"},
        {"edit", "{'path':'a','edits':[]}", "edits: must have at least 1 items"},
        {"edit", "{'path':'a','edits':[{'oldText':'a'}]}", "edits[0].newText: is required"},
        {"edit", "{'path':'a','edits':[{'oldText':'','newText':''}]}", "edits[0].oldText: must"},
        {"edit", "{'path':'a','edits':[{'oldText':'a','newText':'','x':1}]}", "no field 'x'"},
        {"ls", "{'limit':10001}", "limit: must be at most 10000"},
        {"grep", "{'pattern':'x','context':21}", "context: must be at most 20"},
        {"grep", "{'pattern':'x','glob':'a\\u0000'}", "glob: it has a NUL byte"},
        /* EX-17 */
        {"exec", "{'argv':['ls','-l']}", NULL},
        {"exec", "{}", "command, argv: exactly one of them is needed, and there is none"},
        {"exec", "{'command':'ls','argv':['ls']}", "there are both"},
        {"exec", "{'argv':[]}", "argv: must have at least 1 items"},
        {"exec", "{'argv':['']}", "argv[0]: it is empty"},
        {"exec", "{'argv':['a','']}", NULL},
        {"exec", "{'argv':['a',1]}", "argv[1]: must be of type string, not integer"},
        {"exec", "{'argv':'ls'}", "argv: must be of type array, not string"},
        {"exec", "{'command':''}", "command: must have at least 1"},
        {"exec", "{'command':'a\\u0000b'}", "command: it has a NUL byte"},
        {"exec", "{'argv':['a','b\\u0000']}", "argv: it has a NUL byte"},
        {"exec", "{'command':'a','stdin':'\\u0000'}", NULL},
        {"exec", "{'command':'a','env':{'A_1':'x','_':''}}", NULL},
        {"exec", "{'command':'a','env':{'1A':'x'}}", "env: '1A' is no name"},
        {"exec", "{'command':'a','env':{'A=B':'x'}}", "is no name"},
        {"exec", "{'command':'a','env':{'':'x'}}", "is no name"},
        {"exec", "{'command':'a','env':{'\xc3\xa4':'x'}}", "is no name"},
        {"exec", "{'command':'a','env':{'A':1}}", "env.A: must be of type string, not integer"},
        {"exec", "{'command':'a','env':{'A':'x\\u0000'}}", "A: it has a NUL byte"},
        {"exec", "{'command':'a','env':{'data':'x\\u0000'}}", "data: it has a NUL byte"},
        {"exec", "{'command':'a','timeout':0}", "timeout: must be at least 0.1"},
        {"exec", "{'command':'a','timeout':1.5}", NULL},
        {"exec", "{'command':'a','timeout':1e9}", "timeout: must be at most 86400"},
        {"exec", "{'command':'a','rows':10}", "rows, cols: they need pty"},
        {"exec", "{'command':'a','rows':10,'pty':true}", NULL},
        {"bash", "{'command':'a','argv':['a']}", "there are both"},
        {"process", "{}", "action: is required"},
        {"process", "{'action':'stop'}", "action: must be one of"},
        {"process", "{'action':'list','process':'p'}", "process: action 'list' does not take it"},
        {"process", "{'action':'poll'}", "process: is required by action 'poll'"},
        {"process", "{'action':'poll','process':'p','wait':1}", NULL},
        {"process", "{'action':'poll','process':'p','offset':1}", "offset: action 'poll' does not"},
        {"process", "{'action':'log','process':'p','offset':0,'limit':9}", NULL},
        {"process", "{'action':'log','process':'p','wait':1}", "wait: action 'log' does not"},
        {"process", "{'action':'write','process':'p'}", "data: is required"},
        {"process", "{'action':'write','process':'p','eof':true}", NULL},
        {"process", "{'action':'write','process':'p','data':'\\u0000'}", NULL},
        {"process", "{'action':'kill','process':'p','signal':'SIGINT'}", NULL},
        {"process", "{'action':'kill','process':'p','signal':'9'}", "signal: must be one of"},
        {"process", "{'action':'resize','process':'p','rows':1}", "cols: is required"},
        {"process", "{'action':'resize','process':'p','rows':1,'cols':1001}", "at most 1000"},
        {"web_fetch", "{'url':'HTTP://a'}", NULL},
        {"web_fetch", "{'url':'file:///etc/passwd'}", "url: 'file:///etc/passwd' does not"},
        {"web_fetch", "{'url':'https://'}", "does not begin"},
        {"web_fetch", "{'url':'https://a b'}", "url: it has a blank"},
        {"web_fetch", "{'url':'https://a\\r\\nX: y'}", "url: it has a blank"},
        {"web_search", "{'query':'x','count':21}", "count: must be at most 20"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        autojson a = json_of(row->arguments);
        struct error err = {0};
        int r = tool_check(tool_find(row->tool), a, &err);

        CHECK(r == (row->why ? -ERR_INVALID : 0), "%s %s: %d %s", row->tool, row->arguments, r,
              err.msg);
        CHECK(!row->why || strstr(err.msg, row->why), "%s %s: '%s'", row->tool, row->arguments,
              err.msg);
    }
}

static void test_sizes(void **state)
{
    struct error err;
    json_t *words = json_array();
    autojson a = json_pack("{s:o}", "argv", words);
    autojson env = json_pack("{s:s,s:o}", "command", "a", "env", json_object());
    char *most = malloc(LIMIT_EXEC_WORD + 2);

    (void)state;
    memset(most, 'a', LIMIT_EXEC_WORD + 1);
    most[LIMIT_EXEC_WORD + 1] = 0;
    /* Two bytes each: as many characters as fit, and too many bytes. */
    for (size_t i = 0; i + 1 < LIMIT_EXEC_WORD; i += 2)
        memcpy(most + i, "\xc3\xa4", 2);
    assert_int_equal(json_array_append_new(words, json_string(most)), 0);
    CHECK_ERR(tool_check(find("exec"), a, &err), err, ERR_INVALID, "argv: it has 131072 bytes");
    memset(most, 'a', LIMIT_EXEC_WORD);
    most[LIMIT_EXEC_WORD] = 0;
    assert_int_equal(json_array_clear(words), 0);
    for (size_t i = 0; i < 32; i++)
        assert_int_equal(json_array_append_new(words, json_string(most)), 0);
    CHECK_OK(tool_check(find("exec"), a, &err), err);
    assert_int_equal(json_array_append_new(words, json_string("")), 0);
    CHECK_ERR(tool_check(find("exec"), a, &err), err, ERR_INVALID, "together");
    free(most);
    for (int i = 0; i < LIMIT_EXEC_ENV + 1; i++) {
        char name[16];

        CHECK_OK(tool_check(find("exec"), env, &err), err);
        (void)snprintf(name, sizeof(name), "V%d", i);
        assert_int_equal(json_object_set_new(json_object_get(env, "env"), name, json_string("x")),
                         0);
    }
    CHECK_ERR(tool_check(find("exec"), env, &err), err, ERR_INVALID, "at most 256 variables");
}

/* Bytes count, not characters. */
static void test_content(void **state)
{
    char *text = malloc(LIMIT_TOOL_CONTENT + 3);
    autojson a = json_pack("{s:s,s:s}", "path", "a", "content", "");
    struct error err;

    (void)state;
    for (size_t i = 0; i < LIMIT_TOOL_CONTENT + 2; i += 2)
        memcpy(text + i, "\xc3\xa4", 2);
    text[LIMIT_TOOL_CONTENT] = 0;
    assert_int_equal(json_object_set_new(a, "content", json_string(text)), 0);
    CHECK_OK(tool_check(find("write"), a, &err), err);
    text[LIMIT_TOOL_CONTENT] = '\xc3';
    text[LIMIT_TOOL_CONTENT + 2] = 0;
    assert_int_equal(json_object_set_new(a, "content", json_string(text)), 0);
    CHECK_ERR(tool_check(find("write"), a, &err), err, ERR_INVALID, "16777218 bytes");
    free(text);
}

static void test_integers(void **state)
{
    autojson a = json_of("{'path':'a','offset':5.0}");
    struct error err;

    (void)state;
    CHECK_OK(tool_check(find("read"), a, &err), err);
    assert_true(json_is_integer(json_object_get(a, "offset")));
}

static void test_targets(void **state)
{
    static const struct {
        const char *tool, *arguments, *target;
    } rows[] = {
        {"exec", "{'command':'make -j2'}", "make -j2"},
        {"exec", "{'command':'a\\nb\\u001bc'}", "a b c"},
        {"exec", "{'argv':['cc','-c','a.c']}", "cc -c a.c"},
        {"process", "{'action':'list'}", ""},
        {"process", "{'action':'log','process':'p1'}", "p1"},
        {"read", "{'path':'src/a.c'}", "src/a.c"},
        {"write", "{'path':'b','content':'secret'}", "b"},
        {"ls", "{}", "."},
        {"find", "{'pattern':'*.c','path':'src'}", "src"},
        {"grep", "{'pattern':'x'}", "."},
        {"apply_patch",
         "{'patch':'*** Begin Patch\\n*** Delete File: old\\n*** Add File: n\\n+x\\n"
         "*** End Patch'}",
         "old"},
        {"apply-patch", "{'patch':'no patch'}", ""},
        {"web_fetch", "{'url':'https://a/'}", "https://a/"},
        {"web_search", "{'query':'cats'}", "cats"},
        {"session_status", "{}", ""},
    };
    char out[TOOL_TARGET], text[600];
    autojson a = NULL;

    (void)state;
    FOR_EACH(row, rows)
    {
        autojson args = json_of(row->arguments);

        CHECK_STR(tool_target(find(row->tool), args, out), row->target, row->arguments);
    }
    for (size_t i = 0; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa4", 3);
    a = json_pack("{s:s}", "command", text);
    assert_int_equal(strlen(tool_target(find("exec"), a, out)), 254); /* whole characters */
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("every schema can be kept, and its fields are explained", test_schemas),
        CLAIM("every tool refuses a field that it does not know", test_unknown_fields),
        CLAIM("an MCP server takes the table", test_mcp),
        CLAIM("other names lead to the same tool", test_names),
        CLAIM("EX-17, FS-10, FS-15: arguments that do not fit are told by field", test_arguments),
        CLAIM("words and variables fit what the kernel takes", test_sizes),
        CLAIM("content that is written is bounded in bytes", test_content),
        CLAIM("an integer written as 5.0 becomes one", test_integers),
        CLAIM("a call is about a file or a command", test_targets),
    };

    return RUN_CLAIMS("tool/table", claims);
}
