/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/internal.h"

#include <string.h>

/*
 * Depth and number of values, before anything is allocated for them: jansson's own limit is 2048
 * levels, and it has none for values, of which an empty object costs a hundred times its text.
 */
static const char *measure(const char *text, size_t len)
{
    size_t depth = 0, values = 1;
    bool quoted = false;

    for (size_t i = 0; i < len; i++) {
        if (quoted) {
            if (text[i] == '\\')
                i++;
            else if (text[i] == '"')
                quoted = false;
            continue;
        }
        switch (text[i]) {
        case '"':
            quoted = true;
            break;
        case '[':
        case '{':
            depth++;
            values++;
            break;
        case ']':
        case '}':
            depth -= depth > 0;
            break;
        case ',':
            values++;
            break;
        default:
            break;
        }
        if (depth > LIMIT_MCP_DEPTH)
            return "its values are nested too deeply";
        if (values > LIMIT_MCP_VALUES)
            return "it has too many values";
    }
    return NULL;
}

static bool refuse(struct asked *a, enum rpc_code code, const char *why)
{
    answer_error(a->ret, a->id, code, HTTP_BAD_REQUEST, NULL, "%s: %s",
                 code == RPC_PARSE ? "Parse error" : "Invalid request", why);
    return false;
}

bool message_is_id(const json_t *v)
{
    return json_is_integer(v) || (json_is_string(v) && json_string_length(v) <= LIMIT_MCP_ID);
}

/* Objects where the protocol has objects; everything that is read later relies on it. */
static bool read_params(struct asked *a)
{
    a->params = json_object_get(a->root, "params");
    if (!a->params)
        return true;
    if (!json_is_object(a->params))
        return refuse(a, RPC_INVALID_REQUEST, "params is not an object");
    a->meta = json_object_get(a->params, "_meta");
    if (a->meta && !json_is_object(a->meta)) {
        answer_error(a->ret, a->id, RPC_INVALID_PARAMS, HTTP_BAD_REQUEST, NULL,
                     "Invalid params: _meta is not an object");
        return false;
    }
    return true;
}

static bool read_envelope(struct asked *a)
{
    json_t *id = json_object_get(a->root, "id"), *method = json_object_get(a->root, "method");
    const char *rpc = json_string_value(json_object_get(a->root, "jsonrpc"));
    bool outcome = json_object_get(a->root, "result") || json_object_get(a->root, "error");

    if (message_is_id(id))
        a->id = id;
    if (!rpc || strcmp(rpc, "2.0") != 0)
        return refuse(a, RPC_INVALID_REQUEST, "jsonrpc is not \"2.0\"");
    if (id && !a->id && !(outcome && json_is_null(id)))
        return refuse(a, RPC_INVALID_REQUEST, "id is not a short string or an integer");
    if (outcome && !method)
        return true; /* a response; .method stays NULL */
    if (!json_is_string(method) || outcome)
        return refuse(a, RPC_INVALID_REQUEST, "it has no method, or an outcome beside it");
    a->method = json_string_value(method);
    return read_params(a);
}

bool message_read(struct asked *a, const char *text, size_t len)
{
    const char *why;
    json_error_t error;

    if (len > LIMIT_MCP_MESSAGE)
        return refuse(a, RPC_INVALID_REQUEST, "it is too long");
    why = measure(text, len);
    if (why)
        return refuse(a, RPC_INVALID_REQUEST, why);
    a->root = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!a->root)
        return refuse(a, RPC_PARSE, error.text);
    if (json_is_array(a->root))
        return refuse(a, RPC_INVALID_REQUEST, "batches are not taken: send one message at a time");
    if (!json_is_object(a->root))
        return refuse(a, RPC_INVALID_REQUEST, "it is not an object");
    return read_envelope(a);
}
