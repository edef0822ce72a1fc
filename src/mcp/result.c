/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "mcp/base64.h"
#include "mcp/schema.h"

bool mcp_cancels(const struct mcp_answer *a, const struct mcp_call *call)
{
    return a->cancel && json_equal(a->cancel, call->id);
}

void mcp_cancelled(struct mcp_call *call)
{
    call->own->ended = true;
}

bool mcp_progress(struct mcp_call *call, uint64_t done, uint64_t total, const char *message,
                  struct buf *out)
{
    struct mcp_call_own *own = call->own;

    if (own->ended || !call->progress_token || (own->progressed && done <= own->done))
        return false;
    own->progressed = true;
    own->done = done;
    buf_puts(out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{");
    buf_json_key(out, "progressToken");
    answer_json(out, call->progress_token);
    buf_printf(out, ",\"progress\":%" PRIu64, done);
    if (total)
        buf_printf(out, ",\"total\":%" PRIu64, total);
    if (message)
        buf_json_str(out, "message", message);
    buf_puts(out, "}}");
    return !out->failed;
}

/* ---- a result ---- */

/* How many bytes may stand in a JSON string as they are. */
static size_t count_plain(const char *s, size_t len)
{
    uint32_t c;
    size_t i = 0, n = 1;

    while (i < len && s[i] != '"' && s[i] != '\\' && (unsigned char)s[i] >= 0x20 && n) {
        n = (unsigned char)s[i] < 0x7f ? 1 : utf8_take(s + i, len - i, &c);
        i += n;
    }
    return i;
}

static void put_escaped(struct buf *b, char c)
{
    if (c == '"' || c == '\\')
        buf_printf(b, "\\%c", c);
    else if (c == '\n')
        buf_puts(b, "\\n");
    else if (c == '\t')
        buf_puts(b, "\\t");
    else if ((unsigned char)c < 0x20)
        buf_printf(b, "\\u%04x", (unsigned)c);
    else
        buf_puts(b, "\\ufffd"); /* no UTF-8 begins so */
}

/* As buf_json_string(), for megabytes: what needs no escape is copied in one piece. */
static void put_text(struct buf *b, const char *s, size_t len)
{
    buf_puts(b, "\"");
    while (len && !b->failed) {
        size_t n = count_plain(s, len);

        buf_append(b, s, n);
        if (n < len)
            put_escaped(b, s[n++]);
        s += n;
        len -= n;
    }
    buf_puts(b, "\"");
}

static void put_content(struct buf *b, const struct mcp_content *c)
{
    if (c->type == MCP_TEXT) {
        buf_puts(b, "{\"type\":\"text\",\"text\":");
        put_text(b, c->data, c->len);
    } else {
        buf_puts(b, "{\"type\":\"image\"");
        buf_json_str(b, "mimeType", c->mime);
        buf_puts(b, ",\"data\":\"");
        base64_put(c->data, c->len, BASE64_PLAIN, b);
        buf_puts(b, "\"");
    }
    buf_puts(b, "}");
}

/* For clients that know of no structured content, and models that are shown text only. */
static void put_as_text(struct buf *b, const json_t *v)
{
    autobuf text = {.max = LIMIT_MCP_REPLY};

    answer_json(&text, v);
    b->failed |= text.failed;
    if (!text.failed)
        put_content(b, &(struct mcp_content){.type = MCP_TEXT, .data = text.data, .len = text.len});
}

static void put_contents(struct buf *b, const struct mcp_result *r)
{
    buf_puts(b, "\"content\":[");
    for (size_t i = 0; i < r->n_content && !b->failed; i++) {
        buf_puts(b, i ? "," : "");
        put_content(b, &r->content[i]);
    }
    if (r->n_content == 0 && r->structured)
        put_as_text(b, r->structured);
    buf_puts(b, "]");
}

static void put_meta(struct buf *b, const struct mcp_call *call, const json_t *receipt)
{
    const bool modern = call->own->modern;

    if (!modern && !receipt)
        return;
    buf_puts(b, ",\"_meta\":{");
    if (modern) {
        buf_puts(b, "\"" META_SERVER "\":");
        answer_json(b, call->own->m->server);
    }
    if (receipt) {
        buf_puts(b, modern ? ",\"" MCP_RECEIPT "\":" : "\"" MCP_RECEIPT "\":");
        answer_json(b, receipt);
    }
    buf_puts(b, "}");
}

static bool shows_structured(const struct mcp_call *call, const json_t *structured)
{
    if (call->own->modern)
        return structured != NULL;
    return json_is_object(structured) && version_has_structured(call->version);
}

static void put_complete(struct mcp_call *call, const struct mcp_result *r, struct mcp_answer *ret)
{
    struct buf *b = &ret->text;

    answer_open(ret, call->id);
    buf_puts(b, call->own->modern ? "{\"resultType\":\"complete\"," : "{");
    put_contents(b, r);
    if (shows_structured(call, r->structured)) {
        buf_puts(b, ",\"structuredContent\":");
        answer_json(b, r->structured);
    }
    buf_printf(b, ",\"isError\":%s", r->is_error ? "true" : "false");
    put_meta(b, call, r->receipt);
    buf_puts(b, "}");
    answer_close(ret, call->id);
}

/* What a tool promises of its results is kept, or the client hears that it was not. */
static bool keeps_promise(struct mcp_call *call, const struct mcp_result *r, struct mcp_answer *ret)
{
    const json_t *schema = call->own->tool->output;
    struct error err = {0};

    if (!schema || r->is_error)
        return true;
    if (!r->structured)
        (void)error_set(&err, ERR_INVALID, "there is none");
    else if (schema_check(schema, r->structured, "result", &err) == 0)
        return true;
    answer_error(ret, call->id, RPC_INTERNAL, HTTP_OK, NULL,
                 "Internal error: the structured result of tool '%s' is not as promised: %s",
                 call->tool->name, err.msg);
    return false;
}

/* ---- a question ---- */

static const struct question {
    const char *method, *capability;
} questions[] = {
    {"elicitation/create", "elicitation"},
    {"sampling/createMessage", "sampling"},
    {"roots/list", "roots"},
};

static const char *capability_for(const char *method)
{
    for (size_t i = 0; method && i < sizeof(questions) / sizeof(*questions); i++)
        if (strcmp(questions[i].method, method) == 0)
            return questions[i].capability;
    return NULL;
}

/* elicitation:{} is the same as elicitation:{form:{}}; a URL has to be declared. */
static bool can_elicit(const json_t *declared, const json_t *params)
{
    const char *mode = json_string_value(json_object_get(params, "mode"));

    if (mode && strcmp(mode, "url") == 0)
        return json_is_object(json_object_get(declared, "url"));
    return json_object_size(declared) == 0 || json_is_object(json_object_get(declared, "form"));
}

static bool can_ask(const struct mcp_call *call, const char *method, const json_t *params)
{
    const char *capability = capability_for(method);
    const json_t *declared =
        capability ? json_object_get(json_object_get(call->meta, META_CAPABILITIES), capability)
                   : NULL;

    if (!call->own->modern || !json_is_object(declared))
        return false;
    return strcmp(capability, "elicitation") != 0 || can_elicit(declared, params);
}

bool mcp_can_ask(const struct mcp_call *call, const char *method)
{
    return can_ask(call, method, NULL);
}

/* NULL if all may be asked; else what the client would have to declare, to be freed. */
static json_t *find_missing(const struct mcp_call *call, const struct mcp_ask *ask)
{
    json_t *missing = json_object(), *one;
    const char *key;

    json_object_foreach(ask->requests, key, one)
    {
        const char *method = json_string_value(json_object_get(one, "method"));
        const json_t *params = json_object_get(one, "params");
        const char *mode = json_string_value(json_object_get(params, "mode"));

        if (can_ask(call, method, params) || !capability_for(method))
            continue;
        (void)json_object_set_new(missing, capability_for(method),
                                  mode ? json_pack("{s{}}", mode) : json_object());
    }
    if (json_object_size(missing) > 0)
        return missing;
    json_decref(missing);
    return NULL;
}

static bool are_questions(const json_t *requests)
{
    const char *key;
    json_t *one;

    json_object_foreach((json_t *)requests, key, one)
    {
        if (!capability_for(json_string_value(json_object_get(one, "method"))))
            return false;
    }
    return !requests || json_is_object(requests);
}

static void put_question(struct mcp_call *call, const struct mcp_ask *ask, struct mcp_answer *ret)
{
    struct buf *b = &ret->text;
    autobuf state = {.max = 2 * LIMIT_MCP_STATE};

    if (!are_questions(ask->requests) || state_seal(call, ask, &state) < 0) {
        answer_error(ret, call->id, RPC_INTERNAL, HTTP_OK, NULL,
                     "Internal error: tool '%s' has a question that cannot be put",
                     call->tool->name);
        return;
    }
    answer_open(ret, call->id);
    buf_puts(b, "{\"resultType\":\"input_required\"");
    if (ask->requests) {
        buf_puts(b, ",\"inputRequests\":");
        answer_json(b, ask->requests);
    }
    buf_json_str(b, "requestState", state.data);
    put_meta(b, call, NULL);
    buf_puts(b, "}");
    answer_close(ret, call->id);
}

static void ask_client(struct mcp_call *call, const struct mcp_ask *ask, struct mcp_answer *ret)
{
    static const char why[] = "This needs an answer of your user, and protocol versions before "
                              "2026-07-28 have no way to ask for it here.";
    const struct mcp_content text = {.type = MCP_TEXT, .data = why, .len = sizeof(why) - 1};
    json_t *missing;

    if (!call->own->modern) {
        put_complete(call, &(struct mcp_result){.content = &text, .n_content = 1, .is_error = true},
                     ret);
        return;
    }
    missing = find_missing(call, ask);
    if (missing)
        answer_error(ret, call->id, RPC_MISSING_CAPABILITY, HTTP_BAD_REQUEST,
                     json_pack("{so}", "requiredCapabilities", missing),
                     "Missing required client capability");
    else
        put_question(call, ask, ret);
}

void result_put(struct mcp_call *call, const struct mcp_result *result, struct mcp_answer *ret)
{
    if (call->own->ended) {
        answer_nothing(ret, HTTP_ACCEPTED);
        return;
    }
    call->own->ended = true;
    if (result->ask)
        ask_client(call, result->ask, ret);
    else if (keeps_promise(call, result, ret))
        put_complete(call, result, ret);
}

void mcp_finish(struct mcp_call *call, const struct mcp_result *result, struct mcp_answer *ret)
{
    answer_init(ret);
    result_put(call, result, ret);
}
