/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/mcp.h"

#include "tests/mcp_toys.h"
#include "tests/test.h"

#define OBJECT             "{\"type\":\"object\"}"
#define HEADER(type, name) "{\"type\":\"" type "\",\"x-mcp-header\":\"" name "\"}"

static int try(const struct mcp_tool *tools, size_t n, struct error *err)
{
    struct mcp_info info = toy_info;
    struct mcp *m = NULL;
    int r;

    info.tools = tools;
    info.n_tools = n;
    r = mcp_new(&info, &m, err);
    CHECK((r == 0) == (m != NULL), "result %d, endpoint %p", r, (void *)m);
    mcp_free(m);
    return r;
}

static void test_tools(void **state)
{
    static const struct {
        const char *name, *input, *output, *why;
    } rows[] = {
        {"a", OBJECT, NULL, NULL},
        {"A.b-c_9", OBJECT, "{\"type\":\"array\",\"items\":{}}", NULL},
        {"", OBJECT, NULL, "name"},
        {"a b", OBJECT, NULL, "name"},
        {"a\xc3\xa4", OBJECT, NULL, "name"},
        {"a", "{", NULL, "schema"},
        {"a", "{}", NULL, "type is not object"},
        {"a", "{\"type\":\"array\"}", NULL, "type is not object"},
        {"a", "{\"type\":\"object\",\"type\":\"object\"}", NULL, "duplicate"},
        {"a", "{\"type\":\"object\",\"oneOf\":[]}", NULL,
         "tool 'a': input: schema: the word 'oneOf'"},
        {"a", OBJECT, "{\"pattern\":\"\"}", "tool 'a': output: schema: the word 'pattern'"},
        {"a",
         "{\"type\":\"object\",\"properties\":{\"x\":" HEADER(
             "string", "X") ",\"o\":{\"type\":"
                            "\"object\",\"properties\":{\"y\":" HEADER("integer", "Y") "}}}}",
         NULL, NULL},
        {"a", "{\"type\":\"object\",\"properties\":{\"x\":" HEADER("number", "X") "}}", NULL,
         "'X'"},
        {"a", "{\"type\":\"object\",\"properties\":{\"x\":" HEADER("string", "") "}}", NULL, "''"},
        {"a", "{\"type\":\"object\",\"properties\":{\"x\":" HEADER("string", "a b") "}}", NULL,
         "'a b'"},
        {"a", "{\"type\":\"object\",\"properties\":{\"x\":" HEADER("string", "a\\r") "}}", NULL,
         "token"},
        {"a",
         "{\"type\":\"object\",\"properties\":{\"x\":" HEADER("string", "X") ",\"y\":" HEADER(
             "string", "x") "}}",
         NULL, "twice"},
        {"a",
         "{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"array\",\"items\":" HEADER(
             "string", "X") "}}}",
         NULL, "properties alone"},
        {"a", "{\"type\":\"object\",\"additionalProperties\":" HEADER("string", "X") "}", NULL,
         "properties alone"},
        {"a", "{\"type\":\"object\",\"x-mcp-header\":\"X\"}", NULL, "the whole"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        const struct mcp_tool tool = {.name = row->name,
                                      .description = "",
                                      .input_schema = row->input,
                                      .output_schema = row->output};
        struct error err = {0};
        int r = try(&tool, 1, &err);

        CHECK(row->why ? r < 0 && strstr(err.msg, row->why) : r == 0, "%s %s: %d %s", row->name,
              row->input, r, err.msg);
    }
}

static void test_names(void **state)
{
    char name[130];
    struct mcp_tool tools[] = {{.name = "a", .description = "", .input_schema = OBJECT},
                               {.name = "a", .description = "", .input_schema = OBJECT}};
    struct error err = {0};

    (void)state;
    CHECK_ERR(try(tools, 2, &err), err, ERR_EXISTS, "taken");
    memset(name, 'a', sizeof(name));
    name[128] = 0;
    tools[0].name = name;
    CHECK_OK(try(tools, 1, &err), err);
    name[128] = 'a';
    name[129] = 0;
    CHECK_ERR(try(tools, 1, &err), err, ERR_INVALID, "name");
    CHECK_OK(try(tools, 0, &err), err);
    tools[0] = (struct mcp_tool){.name = "a", .description = "\xff", .input_schema = OBJECT};
    CHECK_ERR(try(tools, 1, &err), err, ERR_SYS, "UTF-8");
}

/* Clients of that time take structuredContent for an object, and refuse the whole list. */
static void test_output(void **state)
{
    static const char list[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{%s}}}";
    static const char modern[] = "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                                 "\"io.modelcontextprotocol/clientCapabilities\":{}";
    const struct mcp_tool tool = {.name = "a",
                                  .description = "",
                                  .input_schema = OBJECT,
                                  .output_schema = "{\"type\":\"array\"}"};
    const struct mcp_transport t = {.version = "2025-11-25"};
    struct mcp_info info = toy_info;
    autoptr(mcp) m = NULL;
    struct error err = {0};

    (void)state;
    info.tools = &tool;
    info.n_tools = 1;
    CHECK_OK(mcp_new(&info, &m, &err), err);
    for (int is_modern = 0; is_modern < 2; is_modern++) {
        struct mcp_answer a;
        char text[512];

        (void)snprintf(text, sizeof(text), list, is_modern ? modern : "");
        mcp_take(m, text, strlen(text), &t, &a);
        CHECK((strstr(a.text.data, "outputSchema") != NULL) == is_modern, "%s", a.text.data);
        mcp_answer_done(&a);
    }
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a tool that the protocol could not show, or we not check, is refused", test_tools),
        CLAIM("an output schema that is no object's is not shown in the legacy era", test_output),
        CLAIM("names are unique and at most 128 bytes, and texts are UTF-8", test_names),
    };

    return RUN_CLAIMS("mcp/mcp", claims);
}
