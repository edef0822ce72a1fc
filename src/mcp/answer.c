/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/internal.h"

#include <stdarg.h>
#include <stdio.h>

static int append(const char *data, size_t len, void *b)
{
    buf_append(b, data, len);
    return ((struct buf *)b)->failed ? -1 : 0;
}

void answer_json(struct buf *b, const json_t *v)
{
    if (json_dump_callback(v, append, b, JSON_COMPACT | JSON_ENCODE_ANY) < 0)
        b->failed = true;
}

void answer_init(struct mcp_answer *ret)
{
    *ret = (struct mcp_answer){.kind = MCP_NOTHING, .status = HTTP_ACCEPTED};
    buf_init(&ret->text, LIMIT_MCP_REPLY);
}

void mcp_answer_done(struct mcp_answer *a)
{
    buf_done(&a->text);
    json_decref(a->cancel);
    mcp_call_free(a->call);
    a->call = NULL;
    a->cancel = NULL;
}

static void open_reply(struct mcp_answer *ret, const json_t *id)
{
    buf_clear(&ret->text);
    ret->kind = MCP_REPLY;
    buf_puts(&ret->text, "{\"jsonrpc\":\"2.0\"");
    /* An id that could not be read is left out: null is none that the protocol has. */
    if (id) {
        buf_puts(&ret->text, ",\"id\":");
        answer_json(&ret->text, id);
    }
}

void answer_open(struct mcp_answer *ret, const json_t *id)
{
    open_reply(ret, id);
    ret->status = HTTP_OK;
    buf_puts(&ret->text, ",\"result\":");
}

static void put_error(struct mcp_answer *ret, const json_t *id, enum rpc_code code,
                      const json_t *data, const char *message)
{
    open_reply(ret, id);
    buf_printf(&ret->text, ",\"error\":{\"code\":%d", (int)code);
    buf_json_str(&ret->text, "message", message);
    if (data) {
        buf_json_key(&ret->text, "data");
        answer_json(&ret->text, data);
    }
    buf_puts(&ret->text, "}}");
}

/* Memory is gone: what fits in no buffer is not sent. */
static void give_up(struct mcp_answer *ret)
{
    buf_done(&ret->text);
    ret->kind = MCP_REPLY;
    ret->status = HTTP_INTERNAL;
}

void answer_close(struct mcp_answer *ret, const json_t *id)
{
    buf_puts(&ret->text, "}");
    if (!ret->text.failed)
        return;
    ret->status = HTTP_OK;
    put_error(ret, id, RPC_INTERNAL, NULL, "the result is too large to be sent");
    if (ret->text.failed)
        give_up(ret);
}

void answer_error(struct mcp_answer *ret, const json_t *id, enum rpc_code code,
                  enum http_status status, json_t *data, const char *fmt, ...)
{
    char message[1024];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    ret->status = (int)status;
    put_error(ret, id, code, data, message);
    json_decref(data);
    if (ret->text.failed)
        give_up(ret);
}

void answer_result(struct asked *a, json_t *result)
{
    if (a->modern) {
        (void)json_object_set_new(result, "resultType", json_string("complete"));
        (void)json_object_set_new(result, "_meta", json_pack("{sO}", META_SERVER, a->m->server));
    }
    answer_open(a->ret, a->id);
    answer_json(&a->ret->text, result);
    answer_close(a->ret, a->id);
    json_decref(result);
}

void answer_nothing(struct mcp_answer *ret, enum http_status status)
{
    buf_clear(&ret->text);
    ret->kind = MCP_NOTHING;
    ret->status = (int)status;
}
