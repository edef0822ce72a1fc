/* SPDX-License-Identifier: Apache-2.0 */
/* What calls over MCP have in common, whether they come by HTTP or standard input. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "gateway/front_internal.h"
#include "mcp/base64.h"
#include "mcp/limits.h"
#include "tool/tool.h"

#define STATE_TTL_MS 600000u
#define LIST_TTL_MS  300000u

static const char instructions[] =
    "These tools work in a box of this session's own: a Linux system whose workspace folder is "
    "kept, and nothing else. exec runs commands there; read, write, edit, apply_patch, ls, find "
    "and grep work on the workspace's files without starting anything, and are faster. A refusal "
    "names the rule and the setting that made it; when it says final, do not try again; when it "
    "has "
    "an approval, a person must allow it first: say so, and make the same call again afterwards.";

/* ---- the endpoint ---- */

static int read_key(const char *text, uint8_t ret[MCP_KEY], struct error *err)
{
    size_t n = text ? strlen(text) : 0;

    for (size_t i = 0; n == 2 * MCP_KEY && i < MCP_KEY; i++) {
        int high = utf8_hex(text[2 * i]), low = utf8_hex(text[2 * i + 1]);

        if (high < 0 || low < 0)
            n = 0;
        else
            ret[i] = (uint8_t)(high << 4 | low);
    }
    if (n != 2 * MCP_KEY)
        return error_set(err, ERR_INVALID, "facts: 'mcp_key' is not %d hexadecimal digits",
                         2 * MCP_KEY);
    return 0;
}

static struct mcp_tool *copy_tools(void)
{
    struct mcp_tool *all = calloc(n_tools + 1, sizeof(*all));

    for (size_t i = 0; all && i < n_tools; i++)
        all[i] = (struct mcp_tool){
            .name = tools[i].name,
            .title = tools[i].title,
            .description = tools[i].description,
            .input_schema = tools[i].input_schema,
            .output_schema = tools[i].output_schema,
            .read_only = tools[i].read_only,
            .destructive = tools[i].destructive,
            .idempotent = tools[i].idempotent,
            .open_world = tools[i].open_world,
            .unlisted = tools[i].unlisted,
        };
    return all;
}

int front_mcp_new(struct front *f, const char *key, struct error *err)
{
    uint8_t bytes[MCP_KEY];
    struct mcp_info info = {.name = "clawden",
                            .title = "ClawDen",
                            .version = f->facts.version,
                            .instructions = instructions,
                            .n_tools = n_tools,
                            .key = bytes,
                            .state_ttl_ms = STATE_TTL_MS,
                            .list_ttl_ms = LIST_TTL_MS};
    int r = read_key(key, bytes, err);

    if (r < 0)
        return r;
    f->tools = copy_tools();
    f->mcp_version = strdup(f->facts.version); /* the facts' own goes with the next ones */
    if (!f->tools || !f->mcp_version)
        return error_set(err, ERR_SYS, "out of memory");
    info.tools = f->tools;
    info.version = f->mcp_version;
    r = mcp_new(&info, &f->mcp, err);
    explicit_bzero(bytes, sizeof(bytes));
    return r;
}

/* ---- calls ---- */

#define QUESTION "approve" /* of the client's user; its answer has the same name */

uint64_t front_now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* What the client's user said to our question: whatever is no clear yes is a no. */
static json_t *answer_of(const struct mcp_call *call)
{
    const json_t *said = json_object_get(call->answers, QUESTION);
    const char *action = json_string_value(json_object_get(said, "action"));
    bool yes = action && strcmp(action, "accept") == 0 &&
               json_is_true(json_object_get(json_object_get(said, "content"), "allow"));

    return call->state && said
               ? json_pack("{ss# sb}", "approval", call->state, (int)call->state_len, "allow", yes)
               : NULL;
}

json_t *front_mcp_params(const struct mcp_call *call, const char *agent, const char *session)
{
    json_t *params =
        json_pack("{ss sO ss* ss* sb}", "tool", call->tool->name, "arguments", call->arguments,
                  "agent", agent, "session", session, "stream", call->progress_token != NULL);
    json_t *answer = answer_of(call);

    if (params && mcp_can_ask(call, "elicitation/create"))
        (void)json_object_set_new(params, "asks", json_true());
    if (params && answer)
        (void)json_object_set(params, "answer", answer);
    json_decref(answer);
    return params;
}

/* ---- progress ---- */

/* Whole characters that fit. */
static size_t cut(const char *text, size_t len)
{
    size_t at = 0, n;
    uint32_t c;

    while (at < len && (n = utf8_take(text + at, len - at, &c)) && at + n <= LIMIT_FRONT_PROGRESS)
        at += n;
    return at;
}

bool front_mcp_progress(struct mcp_call *call, const char *event, size_t len, struct buf *out)
{
    json_t *e = json_loadb(event, len, 0, NULL);
    const char *type = json_string_value(json_object_get(e, "type"));
    const json_t *data = json_object_get(e, "data");
    json_int_t seq = json_integer_value(json_object_get(e, "seq"));
    char message[LIMIT_FRONT_PROGRESS + 1] = "";
    bool told = false;

    if (json_is_string(data))
        (void)snprintf(message, sizeof(message), "%.*s",
                       (int)cut(json_string_value(data), json_string_length(data)),
                       json_string_value(data));
    else if (type && strcmp(type, "dropped") == 0)
        (void)snprintf(message, sizeof(message), "%" JSON_INTEGER_FORMAT " bytes are left out",
                       json_integer_value(json_object_get(e, "bytes")));
    else if (type)
        (void)snprintf(message, sizeof(message), "%.64s", type);
    if (type && strcmp(type, "end") != 0 && seq >= 0)
        told = mcp_progress(call, (uint64_t)seq, 0, message, out);
    json_decref(e);
    return told;
}

/* ---- results ---- */

static void finish_question(struct mcp_call *call, const char *message, const char *approval,
                            struct mcp_answer *ret)
{
    json_t *requests = json_pack("{s{ss s{ss ss s{ss s{s{ss ss}} s[s]}}}}", QUESTION, "method",
                                 "elicitation/create", "params", "mode", "form", "message", message,
                                 "requestedSchema", "type", "object", "properties", "allow", "type",
                                 "boolean", "title", "Allow this call once", "required", "allow");
    const struct mcp_ask ask = {.requests = requests,
                                .state = approval,
                                .state_len = strlen(approval),
                                .now_ms = front_now_ms()};

    mcp_finish(call, &(struct mcp_result){.ask = &ask}, ret);
    json_decref(requests);
}

static void finish_error(struct mcp_call *call, const json_t *body, struct mcp_answer *ret)
{
    const json_t *denied = json_object_get(body, "denied");
    const char *message =
        json_string_value(json_object_get(json_object_get(body, "error"), "message"));
    autofree char *text = denied ? json_dumps(body, JSON_COMPACT) : NULL;
    const char *said = text ? text : message ? message : "the call failed, and nobody says why";
    const struct mcp_content content = {.type = MCP_TEXT, .data = said, .len = strlen(said)};

    mcp_finish(call, &(struct mcp_result){.content = &content, .n_content = 1, .is_error = true},
               ret);
}

/* The picture is content; once is enough. */
static bool finish_image(struct mcp_call *call, json_t *result, json_t *receipt,
                         struct mcp_answer *ret)
{
    const char *mime = json_string_value(json_object_get(result, "mimeType"));
    const json_t *data = json_object_get(result, "data");
    autobuf bytes = {.max = LIMIT_MCP_REPLY};
    struct mcp_content content = {.type = MCP_IMAGE, .mime = mime};

    if (!mime || !json_is_string(data) ||
        !base64_take(json_string_value(data), json_string_length(data), BASE64_PLAIN, &bytes))
        return false;
    content.data = bytes.data;
    content.len = bytes.len;
    (void)json_object_del(result, "data");
    mcp_finish(call,
               &(struct mcp_result){
                   .content = &content, .n_content = 1, .structured = result, .receipt = receipt},
               ret);
    return true;
}

static void finish_good(struct mcp_call *call, json_t *result, json_t *receipt,
                        struct mcp_answer *ret)
{
    const char *kind = json_string_value(json_object_get(result, "kind"));
    autobuf text = {.max = LIMIT_MCP_REPLY};
    struct mcp_content content = {.type = MCP_TEXT};

    if (kind && strcmp(kind, "image") == 0 && finish_image(call, result, receipt, ret))
        return;
    front_mcp_text(call->tool->name, result, &text);
    content.data = text.data;
    content.len = text.failed ? 0 : text.len;
    mcp_finish(call,
               &(struct mcp_result){.content = &content,
                                    .n_content = text.len > 0 && !text.failed,
                                    .structured = result,
                                    .receipt = receipt},
               ret);
}

void front_mcp_finish(struct mcp_call *call, unsigned status, const char *body, size_t len,
                      struct mcp_answer *ret)
{
    json_t *v = json_loadb(body, len, 0, NULL);
    json_t *result = json_object_get(v, "result");
    const char *ask = json_string_value(json_object_get(v, "ask")),
               *approval =
                   json_string_value(json_object_get(json_object_get(v, "denied"), "approval"));

    if (status == 200 && json_is_object(result))
        finish_good(call, result, json_object_get(v, "receipt"), ret);
    else if (ask && approval)
        finish_question(call, ask, approval, ret);
    else
        finish_error(call, v, ret);
    json_decref(v);
}
