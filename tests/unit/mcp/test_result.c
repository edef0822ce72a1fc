/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/mcp.h"

#include "mcp/limits.h"
#include "tests/mcp_toys.h"
#include "tests/test.h"

#define META    "io.modelcontextprotocol/"
#define ELICITS "{\"elicitation\":{}}"

static struct mcp *make_with(const struct mcp_info *info)
{
    struct mcp *m = NULL;
    struct error err = {0};

    CHECK_OK(mcp_new(info, &m, &err), err);
    return m;
}

static struct mcp *make(void)
{
    return make_with(&toy_info);
}

struct wish {
    const char *tool, *arguments, *capabilities; /* JSON; no capabilities: legacy */
    const char *version;                         /* of the legacy session */
    const char *principal, *state, *answers;
    uint64_t now;
    bool progress;
};

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *v = json_loads(text, JSON_DECODE_ANY, &error);

    CHECK(v, "%s: %s", text, error.text);
    return v;
}

static json_t *meta_of(const struct wish *w)
{
    json_t *meta = json_object();

    if (w->progress)
        (void)json_object_set_new(meta, "progressToken", json_string("tok\"en"));
    if (w->capabilities) {
        (void)json_object_set_new(meta, META "protocolVersion", json_string("2026-07-28"));
        (void)json_object_set_new(meta, META "clientCapabilities", parse(w->capabilities));
    }
    return meta;
}

static void send(const struct mcp *m, const struct wish *w, struct mcp_answer *ret)
{
    const struct mcp_transport t = {
        .version = w->version, .principal = w->principal, .now_ms = w->now};
    json_t *params = json_pack("{ss so so}", "name", w->tool, "arguments", parse(w->arguments),
                               "_meta", meta_of(w));
    json_t *message;
    char *text;

    if (w->state)
        (void)json_object_set_new(params, "requestState", json_string(w->state));
    if (w->answers)
        (void)json_object_set_new(params, "inputResponses", parse(w->answers));
    message = json_pack("{ss si ss so}", "jsonrpc", "2.0", "id", 7, "method", "tools/call",
                        "params", params);
    text = json_dumps(message, 0);
    mcp_take(m, text, strlen(text), &t, ret);
    free(text);
    json_decref(message);
}

static struct mcp_call *call(const struct mcp *m, const struct wish *w)
{
    struct mcp_answer a;
    struct mcp_call *c;

    send(m, w, &a);
    CHECK(a.kind == MCP_CALL, "no call: %s", a.text.data);
    c = TAKE_PTR(a.call);
    mcp_answer_done(&a);
    return c;
}

/* The reply as JSON, to be freed. */
static json_t *finish(struct mcp_call *c, const struct mcp_result *r, int status)
{
    struct mcp_answer a;
    json_t *reply;

    mcp_finish(c, r, &a);
    CHECK(a.kind == MCP_REPLY && a.status == status, "kind %d, status %d: %s", (int)a.kind,
          a.status, a.text.data);
    reply = json_loadb(a.text.data, a.text.len, JSON_REJECT_DUPLICATES, NULL);
    CHECK(reply, "no JSON: %.300s", a.text.data);
    assert_int_equal(json_integer_value(json_object_get(reply, "id")), 7);
    mcp_answer_done(&a);
    return reply;
}

static void check_json(json_t *got, const char *want)
{
    json_t *w = parse(want);
    char *text = json_dumps(got, JSON_COMPACT | JSON_ENCODE_ANY);

    CHECK(json_equal(got, w), "got %.600s", text);
    free(text);
    json_decref(w);
    json_decref(got);
}

static json_t *result_of(json_t *reply)
{
    json_t *r = json_incref(json_object_get(reply, "result"));

    json_decref(reply);
    (void)json_object_del(r, "_meta");
    return r;
}

static const struct wish modern_echo = {
    .tool = "echo", .arguments = "{\"text\":\"x\"}", .capabilities = "{}"};
static const struct wish legacy_echo = {
    .tool = "echo", .arguments = "{\"text\":\"x\"}", .version = "2025-06-18"};

/* ---- results ---- */

static void test_content(void **state)
{
    static const char text[] = "a\"\\\n\t\x01\xff\xc3\xa4\x7f";
    const struct mcp_content content[] = {
        {.type = MCP_TEXT, .data = text, .len = sizeof(text) - 1},
        {.type = MCP_IMAGE, .data = "\x89PNG", .len = 4, .mime = "image/png"},
        {.type = MCP_TEXT, .data = "", .len = 0},
    };
    const struct mcp_result r = {.content = content, .n_content = 3};
    autoptr(mcp) m = make();
    autoptr(mcp_call) a = call(m, &modern_echo);
    autoptr(mcp_call) b = call(m, &legacy_echo);

#define CONTENT                                                                         \
    "\"content\":[{\"type\":\"text\",\"text\":\"a\\\"\\\\\\n\\t\\u0001\\ufffd\\u00e4"   \
    "\\u007f\"},{\"type\":\"image\",\"data\":\"iVBORw==\",\"mimeType\":\"image/png\"}," \
    "{\"type\":\"text\",\"text\":\"\"}],\"isError\":false"
    (void)state;
    check_json(result_of(finish(a, &r, 200)), "{\"resultType\":\"complete\"," CONTENT "}");
    check_json(result_of(finish(b, &r, 200)), "{" CONTENT "}");
}

static void test_server_info(void **state)
{
    autoptr(mcp) m = make();
    autoptr(mcp_call) a = call(m, &modern_echo);

    (void)state;
    check_json(finish(a, &(struct mcp_result){.is_error = true}, 200),
               "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"resultType\":\"complete\","
               "\"content\":[],\"isError\":true,\"_meta\":{\"" META "serverInfo\":"
               "{\"name\":\"toys\",\"title\":\"Toys\",\"version\":\"1.0\"}}}}");
}

static void test_structured(void **state)
{
    static const struct {
        const char *version, *value, *want;
    } rows[] = {
        {NULL, "{\"a\":1}", "{\"a\":1}"},
        {NULL, "[1]", "[1]"},
        {NULL, "null", "null"},
        {"2025-11-25", "{\"a\":1}", "{\"a\":1}"},
        {"2025-06-18", "{\"a\":1}", "{\"a\":1}"},
        {"2025-06-18", "[1]", NULL},
        {"2025-03-26", "{\"a\":1}", NULL},
        {"2024-11-05", "{\"a\":1}", NULL},
    };
    autoptr(mcp) m = make();

    (void)state;
    FOR_EACH(row, rows)
    {
        const struct wish w = {.tool = "echo",
                               .arguments = "{\"text\":\"x\"}",
                               .capabilities = row->version ? NULL : "{}",
                               .version = row->version};
        autoptr(mcp_call) c = call(m, &w);
        json_t *v = parse(row->value);
        json_t *r = result_of(finish(c, &(struct mcp_result){.structured = v}, 200));
        json_t *text = json_object_get(json_array_get(json_object_get(r, "content"), 0), "text");

        CHECK_STR(json_string_value(text), row->value, row->version ? row->version : "modern");
        if (row->want)
            check_json(json_incref(json_object_get(r, "structuredContent")), row->want);
        else
            CHECK(!json_object_get(r, "structuredContent"), "%s", row->version);
        json_decref(r);
        json_decref(v);
    }
}

static void test_promise(void **state)
{
    static const char *const bad[] = {NULL, "{}", "{\"counted\":\"3\"}", "[3]", "null"};
    const struct wish w = {.tool = "count", .arguments = "{\"to\":3}", .capabilities = "{}"};
    autoptr(mcp) m = make();

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        autoptr(mcp_call) c = call(m, &w);
        json_t *v = bad[i] ? parse(bad[i]) : NULL;
        json_t *reply = finish(c, &(struct mcp_result){.structured = v}, 200);

        CHECK(json_integer_value(json_object_get(json_object_get(reply, "error"), "code")) ==
                  -32603,
              "%s was sent", bad[i] ? bad[i] : "nothing");
        json_decref(reply);
        json_decref(v);
    }
    {
        autoptr(mcp_call) c = call(m, &w);

        check_json(result_of(finish(c, &(struct mcp_result){.is_error = true}, 200)),
                   "{\"resultType\":\"complete\",\"content\":[],\"isError\":true}");
    }
}

static void test_too_large(void **state)
{
    char *text = calloc(1, LIMIT_MCP_REPLY);
    const struct mcp_content c = {.type = MCP_TEXT, .data = text, .len = LIMIT_MCP_REPLY};
    autoptr(mcp) m = make();
    autoptr(mcp_call) a = call(m, &modern_echo);
    json_t *reply;

    (void)state;
    assert_non_null(text);
    reply = finish(a, &(struct mcp_result){.content = &c, .n_content = 1}, 200);
    check_json(reply, "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32603,\"message\":\"the "
                      "result is too large to be sent\"}}");
    free(text);
}

/* ---- progress and cancellation ---- */

static void test_progress(void **state)
{
    struct wish w = modern_echo;
    autoptr(mcp) m = make();
    autobuf out = {.max = 4096};
    struct mcp_call *c;

    (void)state;
    w.progress = true;
    c = call(m, &w);
    assert_true(mcp_progress(c, 0, 0, NULL, &out));
    CHECK_STR(out.data,
              "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
              "{\"progressToken\":\"tok\\\"en\",\"progress\":0}}",
              "first");
    buf_clear(&out);
    assert_false(mcp_progress(c, 0, 0, NULL, &out));
    assert_true(mcp_progress(c, 5, 10, "ha\xfflf", &out));
    check_json(parse(out.data), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
                                "\"params\":{\"progressToken\":\"tok\\\"en\",\"progress\":5,"
                                "\"total\":10,\"message\":\"ha\\ufffdlf\"}}");
    buf_clear(&out);
    assert_false(mcp_progress(c, 5, 10, NULL, &out));
    assert_false(mcp_progress(c, 4, 10, NULL, &out));
    json_decref(finish(c, &(struct mcp_result){0}, 200));
    assert_false(mcp_progress(c, 6, 10, NULL, &out));
    assert_int_equal(out.len, 0);
    mcp_call_free(c);
    c = call(m, &modern_echo); /* nobody wants to hear of it */
    assert_false(mcp_progress(c, 1, 0, NULL, &out));
    mcp_call_free(c);
}

static bool cancels(const struct mcp *m, const char *id, const struct mcp_call *c)
{
    const struct mcp_transport t = {0};
    struct mcp_answer a;
    char text[128];
    bool r;

    (void)snprintf(text, sizeof(text),
                   "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                   "\"params\":{\"requestId\":%s}}",
                   id);
    mcp_take(m, text, strlen(text), &t, &a);
    assert_int_equal(a.kind, MCP_NOTHING);
    r = mcp_cancels(&a, c);
    mcp_answer_done(&a);
    return r;
}

static void test_cancelled(void **state)
{
    autoptr(mcp) m = make();
    struct wish w = modern_echo;
    autobuf out = {.max = 4096};
    struct mcp_answer a;
    struct mcp_call *c;

    (void)state;
    w.progress = true;
    c = call(m, &w);
    assert_false(cancels(m, "8", c));
    assert_false(cancels(m, "\"7\"", c));
    assert_true(cancels(m, "7", c));
    mcp_cancelled(c);
    assert_false(mcp_progress(c, 1, 0, NULL, &out));
    mcp_finish(c, &(struct mcp_result){0}, &a);
    assert_int_equal(a.kind, MCP_NOTHING);
    assert_int_equal(a.text.len, 0);
    mcp_answer_done(&a);
    mcp_call_free(c);
}

static void test_once(void **state)
{
    autoptr(mcp) m = make();
    autoptr(mcp_call) c = call(m, &modern_echo);
    struct mcp_answer a;

    (void)state;
    json_decref(finish(c, &(struct mcp_result){0}, 200));
    mcp_finish(c, &(struct mcp_result){0}, &a);
    assert_int_equal(a.kind, MCP_NOTHING);
    mcp_answer_done(&a);
}

/* ---- questions ---- */

static const struct wish asks = {.tool = "ask",
                                 .arguments = "{\"what\":\"rm\"}",
                                 .capabilities = ELICITS,
                                 .principal = "alice",
                                 .now = 5000};
#define YES  "{\"allow\":{\"action\":\"accept\",\"content\":{\"yes\":true}}}"
#define KEPT "call\0 17" /* any bytes */

static json_t *put(struct mcp_call *c, json_t *question, uint64_t now, int status)
{
    const struct mcp_ask ask = {
        .requests = question, .state = KEPT, .state_len = sizeof(KEPT) - 1, .now_ms = now};

    return finish(c, &(struct mcp_result){.ask = &ask}, status);
}

/* A requestState, to be freed. */
static char *question(const struct mcp *m, const struct wish *w)
{
    autoptr(mcp_call) c = call(m, w);
    json_t *q = toy_question("sure?"), *r = result_of(put(c, q, w->now, 200));
    char *text;

    CHECK_STR(json_string_value(json_object_get(r, "resultType")), "input_required", "question");
    assert_true(json_equal(json_object_get(r, "inputRequests"), q));
    assert_null(json_object_get(r, "ttlMs"));
    text = strdup(json_string_value(json_object_get(r, "requestState")));
    json_decref(q);
    json_decref(r);
    return text;
}

static void test_question(void **state)
{
    autoptr(mcp) m = make();
    autofree char *text = question(m, &asks);
    struct wish again = asks;

    (void)state;
    again.state = text;
    again.answers = YES;
    again.now = 5000 + toy_info.state_ttl_ms;
    {
        autoptr(mcp_call) c = call(m, &again);

        assert_int_equal(c->state_len, sizeof(KEPT) - 1);
        assert_memory_equal(c->state, KEPT, sizeof(KEPT));
        check_json(json_incref(c->answers), YES);
    }
    again.answers = NULL; /* the client may come back without an answer, and is asked again */
    {
        autoptr(mcp_call) c = call(m, &again);

        assert_non_null(c->state);
        assert_null(c->answers);
    }
}

static void test_unasked(void **state)
{
    autoptr(mcp) m = make();
    struct wish w = asks;

    (void)state;
    w.answers = YES;
    {
        autoptr(mcp_call) c = call(m, &w);

        assert_null(c->answers);
        assert_null(c->state);
    }
}

static bool is_taken(const struct mcp *m, const struct wish *w)
{
    struct mcp_answer a;
    bool taken;

    send(m, w, &a);
    taken = a.kind == MCP_CALL;
    CHECK(taken || strstr(a.text.data, "requestState"), "refused for another reason: %s",
          a.text.data);
    CHECK(taken || strstr(a.text.data, "-32602"), "%s", a.text.data);
    mcp_answer_done(&a);
    return taken;
}

static void test_other_call(void **state)
{
    static const uint8_t other_key[MCP_KEY] = "another";
    struct mcp_info info = toy_info;
    autoptr(mcp) m = make();
    autofree char *text = question(m, &asks);
    struct wish w = asks;

    (void)state;
    w.state = text;
    w.answers = YES;
    assert_true(is_taken(m, &w));
    w.now = 5001 + toy_info.state_ttl_ms;
    CHECK(!is_taken(m, &w), "too old");
    w.now = 5000;
    w.principal = "bob";
    CHECK(!is_taken(m, &w), "another principal");
    w.principal = NULL;
    CHECK(!is_taken(m, &w), "no principal");
    w.principal = asks.principal;
    w.arguments = "{\"what\":\"rm -r\"}";
    CHECK(!is_taken(m, &w), "other arguments");
    w.arguments = asks.arguments;
    w.tool = "say";
    CHECK(!is_taken(m, &w), "another tool");
    w.tool = "ask";
    info.key = other_key;
    {
        autoptr(mcp) other = make_with(&info);

        CHECK(!is_taken(other, &w), "another key");
    }
    assert_true(is_taken(m, &w));
}

static void test_same_arguments(void **state)
{
    const struct wish first = {.tool = "say",
                               .arguments = "{\"a\":1,\"b\":{\"c\":[1,2],\"d\":null}}",
                               .capabilities = ELICITS};
    autoptr(mcp) m = make();
    autofree char *text = question(m, &first);
    struct wish w = first;

    (void)state;
    w.state = text;
    w.arguments = "{ \"b\": {\"d\":null, \"c\":[1,2]}, \"a\":1 }";
    CHECK(is_taken(m, &w), "the same in another order");
    w.arguments = "{\"a\":1,\"b\":{\"c\":[2,1],\"d\":null}}";
    CHECK(!is_taken(m, &w), "an array in another order");
    w.arguments = "{\"a\":1,\"b\":{\"c\":[1,2]}}";
    CHECK(!is_taken(m, &w), "without the null");
}

/* Computed by Python's hmac: all that serve an endpoint, of whatever build, agree on it. */
static void test_known(void **state)
{
    autoptr(mcp) m = make();
    autofree char *text = question(m, &asks);

    (void)state;
    CHECK_STR(text, "G6cprowmniQ_7LihV9rGzTU2MuBbuwUh5ZCFdqUONcEAAAAAAAD96GNhbGwAIDE3",
              "requestState");
}

/* Every character of it counts. */
static void test_tampered(void **state)
{
    autoptr(mcp) m = make();
    autofree char *text = question(m, &asks), *longer = NULL;
    struct wish w = asks;

    (void)state;
    w.state = text;
    for (size_t i = 0; text[i]; i++) {
        char was = text[i];

        text[i] = was == 'A' ? 'B' : 'A';
        CHECK(!is_taken(m, &w), "character %zu", i);
        text[i] = '!';
        CHECK(!is_taken(m, &w), "no base64 at %zu", i);
        text[i] = 0;
        CHECK(!is_taken(m, &w), "cut at %zu", i);
        text[i] = was;
    }
    assert_true(asprintf(&longer, "%s-TAMPERED", text) > 0);
    w.state = longer;
    CHECK(!is_taken(m, &w), "longer");
    longer[strlen(text)] = 'A';
    longer[strlen(text) + 1] = 0;
    CHECK(!is_taken(m, &w), "a character longer");
}

static void test_capabilities(void **state)
{
    static const struct {
        const char *capabilities, *mode;
        bool can, form;
        const char *missing;
    } rows[] = {
        {"{}", "form", false, false, "{\"elicitation\":{\"form\":{}}}"},
        {"{\"sampling\":{}}", "form", false, false, "{\"elicitation\":{\"form\":{}}}"},
        {"{\"elicitation\":true}", "form", false, false, "{\"elicitation\":{\"form\":{}}}"},
        {"{\"elicitation\":{\"url\":{}}}", "form", false, false, "{\"elicitation\":{\"form\":{}}}"},
        {"{\"elicitation\":{}}", "url", false, true, "{\"elicitation\":{\"url\":{}}}"},
        {"{\"elicitation\":{}}", "form", true, true, NULL},
        {"{\"elicitation\":{\"form\":{}}}", "form", true, true, NULL},
        {"{\"elicitation\":{\"url\":{}}}", "url", true, false, NULL},
    };
    autoptr(mcp) m = make();

    (void)state;
    FOR_EACH(row, rows)
    {
        struct wish w = asks;
        json_t *q = toy_question("sure?"), *reply;
        struct mcp_call *c;

        w.capabilities = row->capabilities;
        c = call(m, &w);
        (void)json_object_set_new(json_object_get(json_object_get(q, "allow"), "params"), "mode",
                                  json_string(row->mode));
        CHECK(mcp_can_ask(c, "elicitation/create") == row->form, "%s", row->capabilities);
        reply = put(c, q, 1, row->can ? 200 : 400);
        if (row->missing) {
            json_t *e = json_object_get(reply, "error"), *d = json_object_get(e, "data");

            assert_int_equal(json_integer_value(json_object_get(e, "code")), -32021);
            check_json(json_incref(json_object_get(d, "requiredCapabilities")), row->missing);
        }
        json_decref(reply);
        json_decref(q);
        mcp_call_free(c);
    }
}

static void test_legacy_question(void **state)
{
    struct wish w = asks;
    autoptr(mcp) m = make();
    json_t *q = toy_question("sure?"), *r;
    struct mcp_call *c;

    (void)state;
    w.capabilities = NULL;
    w.version = "2025-11-25";
    c = call(m, &w);
    assert_false(mcp_can_ask(c, "elicitation/create"));
    r = result_of(put(c, q, 1, 200));
    assert_true(json_is_true(json_object_get(r, "isError")));
    assert_null(json_object_get(r, "requestState"));
    json_decref(r);
    json_decref(q);
    mcp_call_free(c);
}

static void test_bad_question(void **state)
{
    static char large[LIMIT_MCP_STATE + 1];
    json_t *q = json_pack("{s{ss}}", "x", "method", "tools/call");
    const struct mcp_ask asked[] = {
        {.requests = q},
        {.state = large, .state_len = sizeof(large)},
        {.state = large, .state_len = sizeof(large) - 1},
    };
    autoptr(mcp) m = make();

    (void)state;
    for (size_t i = 0; i < COUNT(asked); i++) {
        autoptr(mcp_call) c = call(m, &asks);
        json_t *reply = finish(c, &(struct mcp_result){.ask = &asked[i]}, 200);

        CHECK((json_object_get(reply, "error") != NULL) == (i < 2), "question %zu", i);
        json_decref(reply);
    }
    json_decref(q);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("text and images are sent as they must be, in both eras", test_content),
        CLAIM("a modern result says who made it", test_server_info),
        CLAIM("structured content is shown to those who know of it, and to all as text",
              test_structured),
        CLAIM("a result that breaks the output schema is not sent", test_promise),
        CLAIM("a result that is too large becomes an error", test_too_large),
        CLAIM("progress is told to those who want it, and only grows", test_progress),
        CLAIM("a cancelled call says nothing more", test_cancelled),
        CLAIM("a call is answered once", test_once),
        CLAIM("a question comes back with what was kept and with its answers", test_question),
        CLAIM("answers to what was not asked are none", test_unasked),
        CLAIM("a requestState is good for its call, caller, key and time alone", test_other_call),
        CLAIM("the same arguments in another order are the same", test_same_arguments),
        CLAIM("a requestState is HMAC-SHA-256 as others compute it", test_known),
        CLAIM("a requestState that was touched is refused", test_tampered),
        CLAIM("a client is asked only what it can be asked", test_capabilities),
        CLAIM("in the legacy era a question is an error that says so", test_legacy_question),
        CLAIM("a question that cannot be put is an internal error", test_bad_question),
    };

    return RUN_CLAIMS("mcp/result", claims);
}
