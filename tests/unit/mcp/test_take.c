/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and replies from tests/data/mcp. A file is an array of cases:
 *
 *   claim            what the case shows
 *   send | text      the message as JSON, or as the bytes of a string
 *   http, headers    over HTTP; a header that is null is left out
 *   modern           puts in the _meta and the headers that a modern client sends, unless they are
 * there session, unknown what initialize agreed on; the session is not there status           of
 * HTTP (200) reply | has | nothing | call    the whole reply, members of it, none, {tool,
 * arguments} version, cancel  what else the answer holds
 */
#include "mcp/mcp.h"

#include <strings.h>

#include "mcp/limits.h"
#include "tests/mcp_toys.h"
#include "tests/test.h"

#define META "io.modelcontextprotocol/"

static const char *data_dir = "tests/data";

static const char *find_header(void *ctx, const char *name)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)ctx, key, v)
    {
        if (strcasecmp(key, name) == 0)
            return json_string_value(v);
    }
    return NULL;
}

static struct mcp *make(void)
{
    struct mcp *m = NULL;
    struct error err = {0};

    CHECK_OK(mcp_new(&toy_info, &m, &err), err);
    return m;
}

static json_t *ensure(json_t *object, const char *key, json_t *value)
{
    if (json_object_get(object, key))
        json_decref(value);
    else
        assert_int_equal(json_object_set_new(object, key, value), 0);
    return json_object_get(object, key);
}

static void ensure_header(json_t *headers, const char *name, const char *value)
{
    if (value && !find_header(headers, name) && !json_is_null(json_object_get(headers, name)))
        assert_int_equal(json_object_set_new(headers, name, json_string(value)), 0);
}

static void make_modern(json_t *c, json_t *send, json_t *headers)
{
    json_t *params = ensure(send, "params", json_object());
    json_t *meta = ensure(params, "_meta", json_object());

    (void)c;
    ensure(meta, META "protocolVersion", json_string("2026-07-28"));
    ensure(meta, META "clientCapabilities", json_object());
    ensure_header(headers, "MCP-Protocol-Version",
                  json_string_value(json_object_get(meta, META "protocolVersion")));
    ensure_header(headers, "Mcp-Method", json_string_value(json_object_get(send, "method")));
    ensure_header(headers, "Mcp-Name", json_string_value(json_object_get(params, "name")));
}

/* Everything in `part` is in `whole`, and the same; "~text" is a text that holds it. */
static bool has(const json_t *whole, const json_t *part)
{
    const char *key, *text = json_string_value(part);
    json_t *v;

    if (text && text[0] == '~')
        return json_is_string(whole) && strstr(json_string_value(whole), text + 1);
    if (!json_is_object(part))
        return json_equal((json_t *)whole, (json_t *)part);
    json_object_foreach((json_t *)part, key, v)
    {
        if (!has(json_object_get(whole, key), v))
            return false;
    }
    return json_is_object(whole);
}

static void check_reply(const char *claim, const json_t *c, const struct mcp_answer *a)
{
    json_t *reply = json_loadb(a->text.data ? a->text.data : "", a->text.len, 0, NULL);
    json_t *want = json_object_get(c, "reply"), *part = json_object_get(c, "has");

    CHECK(a->kind == MCP_REPLY, "%s: kind %d, no reply", claim, (int)a->kind);
    CHECK(reply, "%s: '%s' is no JSON", claim, a->text.data);
    CHECK(!memchr(a->text.data, '\n', a->text.len), "%s: more than a line", claim);
    if (want)
        CHECK(json_equal(reply, want), "%s: got %s", claim, a->text.data);
    if (part)
        CHECK(has(reply, part), "%s: got %s", claim, a->text.data);
    json_decref(reply);
}

static void check_call(const char *claim, const json_t *want, const struct mcp_answer *a)
{
    CHECK(a->kind == MCP_CALL, "%s: no call but '%s'", claim, a->text.data ? a->text.data : "");
    CHECK_STR(a->call->tool->name, json_string_value(json_object_get(want, "tool")), claim);
    CHECK(json_equal(a->call->arguments, json_object_get(want, "arguments")), "%s: arguments",
          claim);
    if (json_object_get(want, "token"))
        CHECK(json_equal(a->call->progress_token, json_object_get(want, "token")), "%s: token",
              claim);
    if (json_object_get(want, "version"))
        CHECK_STR(a->call->version, json_string_value(json_object_get(want, "version")), claim);
}

static void check_answer(const json_t *c, const struct mcp_answer *a)
{
    const char *claim = json_string_value(json_object_get(c, "claim"));
    const json_t *status = json_object_get(c, "status"), *call = json_object_get(c, "call");
    const char *version = json_string_value(json_object_get(c, "version"));

    CHECK(a->status == (status ? json_integer_value(status) : 200), "%s: status %d '%s'", claim,
          a->status, a->text.data ? a->text.data : "");
    if (json_is_true(json_object_get(c, "nothing")))
        CHECK(a->kind == MCP_NOTHING && a->text.len == 0, "%s: '%s'", claim, a->text.data);
    else if (call)
        check_call(claim, call, a);
    else
        check_reply(claim, c, a);
    CHECK(version ? a->version && strcmp(a->version, version) == 0 : !a->version, "%s: version %s",
          claim, a->version ? a->version : "none");
    CHECK(json_equal(a->cancel, json_object_get(c, "cancel")) ||
              (!a->cancel && !json_object_get(c, "cancel")),
          "%s: cancel", claim);
}

static void run_case(const struct mcp *m, json_t *c)
{
    json_t *send = json_object_get(c, "send"), *text = json_object_get(c, "text");
    json_t *headers = json_incref(ensure(c, "headers", json_object()));
    const struct mcp_transport t = {.http = json_is_true(json_object_get(c, "http")),
                                    .header = find_header,
                                    .ctx = headers,
                                    .version = json_string_value(json_object_get(c, "session")),
                                    .session_unknown = json_is_true(json_object_get(c, "unknown")),
                                    .now_ms = 1000};
    struct mcp_answer a;
    char *sent = NULL;

    CHECK(json_object_get(c, "claim") && (send || text), "a case without a claim or a message");
    if (json_is_true(json_object_get(c, "modern")))
        make_modern(c, send, headers);
    if (send)
        sent = json_dumps(send, JSON_COMPACT);
    mcp_take(m, sent ? sent : json_string_value(text),
             sent ? strlen(sent) : json_string_length(text), &t, &a);
    check_answer(c, &a);
    mcp_answer_done(&a);
    free(sent);
    json_decref(headers);
}

static void run_file(const char *name)
{
    autoptr(mcp) m = make();
    char path[512];
    json_error_t error;
    json_t *cases, *c;
    size_t i;

    (void)snprintf(path, sizeof(path), "%s/mcp/%s.json", data_dir, name);
    cases = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    CHECK(cases, "%s:%d: %s", path, error.line, error.text);
    CHECK(json_array_size(cases) > 0, "%s: no cases", path);
    json_array_foreach(cases, i, c)
    {
        run_case(m, c);
    }
    print_message("# %zu cases\n", i);
    json_decref(cases);
}

static void test_messages(void **state)
{
    (void)state;
    run_file("messages");
}

static void test_eras(void **state)
{
    (void)state;
    run_file("eras");
}

static void test_headers(void **state)
{
    (void)state;
    run_file("headers");
}

static void test_methods(void **state)
{
    (void)state;
    run_file("methods");
}

static void test_calls(void **state)
{
    (void)state;
    run_file("calls");
}

/* ---- sizes ---- */

/* The error code of what is said to these bytes; 0 for no error. */
static int code_of(const struct mcp *m, const char *text, size_t len)
{
    const struct mcp_transport t = {.version = "2025-11-25"};
    struct mcp_answer a;
    json_t *reply;
    int code;

    mcp_take(m, text, len, &t, &a);
    reply = json_loadb(a.text.data ? a.text.data : "{}", a.text.data ? a.text.len : 2, 0, NULL);
    assert_non_null(reply);
    code = (int)json_integer_value(json_object_get(json_object_get(reply, "error"), "code"));
    json_decref(reply);
    mcp_answer_done(&a);
    return code;
}

static int code_of_filled(const struct mcp *m, const char *open, char filling, size_t n,
                          const char *close)
{
    size_t len = strlen(open) + n + strlen(close);
    char *text = malloc(len);
    int code;

    assert_non_null(text);
    memcpy(text, open, strlen(open));
    memset(text + strlen(open), filling, n);
    memcpy(text + strlen(open) + n, close, strlen(close));
    code = code_of(m, text, len);
    free(text);
    return code;
}

static void test_sizes(void **state)
{
    static const char open[] = "{\"jsonrpc\":\"2.0\",\"id\":\"",
                      close[] = "\",\"method\":\"ping\"}";
    static const char pad[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":\"";
    static const char deep[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":";
    autoptr(mcp) m = make();
    char brackets[2 * LIMIT_MCP_DEPTH + 8] = "";
    size_t rest = strlen(pad) + 2;

    (void)state;
    assert_int_equal(code_of_filled(m, open, 'a', LIMIT_MCP_ID, close), 0);
    assert_int_equal(code_of_filled(m, open, 'a', LIMIT_MCP_ID + 1, close), -32600);
    assert_int_equal(code_of_filled(m, pad, 'a', LIMIT_MCP_MESSAGE - rest, "\"}"), 0);
    assert_int_equal(code_of_filled(m, pad, 'a', LIMIT_MCP_MESSAGE - rest + 1, "\"}"), -32600);
    memset(brackets, ']', LIMIT_MCP_DEPTH - 1);
    brackets[LIMIT_MCP_DEPTH - 1] = '}';
    assert_int_equal(code_of_filled(m, deep, '[', LIMIT_MCP_DEPTH - 1, brackets), 0);
    memset(brackets, ']', LIMIT_MCP_DEPTH);
    brackets[LIMIT_MCP_DEPTH] = '}';
    assert_int_equal(code_of_filled(m, deep, '[', LIMIT_MCP_DEPTH, brackets), -32600);
    /* Far beyond what a parser's stack, or its memory, would bear. */
    assert_int_equal(code_of_filled(m, "", '[', LIMIT_MCP_MESSAGE, ""), -32600);
    assert_int_equal(code_of_filled(m, "[1", ',', LIMIT_MCP_VALUES, "1]"), -32600);
    /* Brackets in a text are no brackets. */
    assert_int_equal(code_of_filled(m, pad, '[', 1000, "\\\"[\"}"), 0);
}

static void test_bytes(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        int code;
    } rows[] = {
        {"", 0, -32700},
        {"\0", 1, -32700},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\0", 42, -32700},
        {"\xef\xbb\xbf{}", 5, -32700},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"\xc0\x80\",\"method\":\"ping\"}", 44, -32700},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"\xed\xa0\x80\",\"method\":\"ping\"}", 45, -32700},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", 43, -32700},
    };
    autoptr(mcp) m = make();

    (void)state;
    FOR_EACH(row, rows)
    {
        int code = code_of(m, row->text, row->len);

        CHECK(code == row->code, "row %zu: %d", (size_t)(row - rows), code);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("what is not one JSON-RPC message is refused with its code", test_messages),
        CLAIM("each request finds its era, or hears why not", test_eras),
        CLAIM("headers must say what the body says", test_headers),
        CLAIM("methods answer as their version has it", test_methods),
        CLAIM("calls reach a tool with arguments that its schema accepts", test_calls),
        CLAIM("length, depth, values and ids have limits", test_sizes),
        CLAIM("bytes that are not JSON's are refused", test_bytes),
    };

    if (argc > 1)
        data_dir = argv[1];
    return RUN_CLAIMS("mcp/take", claims);
}
