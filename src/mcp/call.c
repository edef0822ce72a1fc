/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/internal.h"

#include <string.h>

#include "base/error.h"
#include "mcp/schema.h"

void mcp_call_free(struct mcp_call *call)
{
    if (!call)
        return;
    json_decref(call->id);
    json_decref(call->arguments);
    json_decref(call->progress_token);
    json_decref(call->meta);
    json_decref(call->answers);
    free((char *)call->state);
    if (call->own)
        free(call->own->principal);
    free(call->own);
    free(call);
}

static void refuse(struct asked *a, const char *why)
{
    answer_error(a->ret, a->id, RPC_INVALID_PARAMS, HTTP_OK, NULL, "Invalid params: %s", why);
}

static const struct own_tool *find_tool(const struct mcp *m, const json_t *name)
{
    for (size_t i = 0; json_is_string(name) && i < m->info.n_tools; i++)
        if (strcmp(m->tools[i].tool->name, json_string_value(name)) == 0)
            return &m->tools[i];
    return NULL;
}

static struct mcp_call *new_call(const struct asked *a, const struct own_tool *tool)
{
    autoptr(mcp_call) c = calloc(1, sizeof(*c));
    const json_t *arguments = json_object_get(a->params, "arguments");

    if (!c || !(c->own = calloc(1, sizeof(*c->own))))
        return NULL;
    *c->own = (struct mcp_call_own){.m = a->m, .tool = tool, .modern = a->modern};
    c->tool = tool->tool;
    c->version = a->version;
    c->id = json_incref(a->id);
    c->meta = json_incref(a->meta);
    c->progress_token = json_incref(json_object_get(a->meta, "progressToken"));
    c->arguments = arguments ? json_incref((json_t *)arguments) : json_object();
    if (a->t->principal && !(c->own->principal = strdup(a->t->principal)))
        return NULL;
    return c->arguments ? TAKE_PTR(c) : NULL;
}

/* The model reads this and tries again: a result, not an error of the protocol. */
static void refuse_arguments(struct asked *a, struct mcp_call *call, const char *why)
{
    const struct mcp_content text = {.type = MCP_TEXT, .data = why, .len = strlen(why)};
    const struct mcp_result result = {.content = &text, .n_content = 1, .is_error = true};

    result_put(call, &result, a->ret);
}

static bool is_answers(const json_t *v)
{
    const char *key;
    json_t *one;

    json_object_foreach((json_t *)v, key, one)
    {
        if (!json_is_object(one))
            return false;
    }
    return json_is_object(v);
}

/* False: refused. */
static bool read_answers(struct asked *a, struct mcp_call *call)
{
    const json_t *state = json_object_get(a->params, "requestState");
    json_t *answers = json_object_get(a->params, "inputResponses");

    if (!a->modern)
        return true;
    if (answers && !is_answers(answers)) {
        refuse(a, "inputResponses is not an object of objects");
        return false;
    }
    if (!state)
        return true; /* answers to nothing that was asked are not answers */
    call->state = json_is_string(state)
                      ? state_open(call, json_string_value(state), a->t->now_ms, &call->state_len)
                      : NULL;
    if (!call->state) {
        refuse(a, "requestState is not one of this server for this call, or is too old");
        return false;
    }
    call->answers = json_incref(answers);
    return true;
}

static void run(struct asked *a, struct mcp_call *call)
{
    struct error err = {0};

    if (schema_check(call->own->tool->input, call->arguments, "arguments", &err) < 0) {
        refuse_arguments(a, call, err.msg);
        return;
    }
    if (!read_answers(a, call))
        return;
    a->ret->kind = MCP_CALL;
    a->ret->status = HTTP_OK;
}

void call_tool(struct asked *a)
{
    const json_t *name = json_object_get(a->params, "name");
    const json_t *arguments = json_object_get(a->params, "arguments");
    const struct own_tool *tool = find_tool(a->m, name);
    autoptr(mcp_call) call = NULL;

    if (!json_is_string(name)) {
        refuse(a, "name is not a string");
        return;
    }
    if (!tool) {
        answer_error(a->ret, a->id, RPC_INVALID_PARAMS, HTTP_OK, NULL, "Unknown tool: %.*s",
                     (int)LIMIT_MCP_TOOL, json_string_value(name));
        return;
    }
    if (arguments && !json_is_object(arguments)) {
        refuse(a, "arguments is not an object");
        return;
    }
    if (!headers_agree_params(a, tool->input, arguments))
        return;
    call = new_call(a, tool);
    if (!call) {
        answer_error(a->ret, a->id, RPC_INTERNAL, HTTP_INTERNAL, NULL, "out of memory");
        return;
    }
    run(a, call);
    if (a->ret->kind == MCP_CALL)
        a->ret->call = TAKE_PTR(call);
}
