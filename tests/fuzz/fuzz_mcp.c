/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Name: value" lines, an empty line, a message: over HTTP. Without an empty line, a message over
 * stdio, whose first character may be a digit: which session it is in. Whatever it is, what comes
 * back is one line of JSON-RPC with the request's id, or nothing, or a call whose arguments are
 * accepted again and whose reply is such a line too; and the same bytes give the same answer.
 */
#include "mcp/mcp.h"

#include <strings.h>

#include "base/error.h"
#include "mcp/schema.h"
#include "tests/fuzz/fuzz.h"
#include "tests/mcp_toys.h"

#define MOST 16

struct header {
    const char *name, *value;
};

struct headers {
    struct header list[MOST];
    size_t n;
};

static const char *find_header(void *ctx, const char *name)
{
    const struct headers *h = ctx;

    for (size_t i = 0; i < h->n; i++)
        if (strcasecmp(h->list[i].name, name) == 0)
            return h->list[i].value;
    return NULL;
}

static void split(char *text, struct headers *h)
{
    for (char *line = text, *next; line && h->n < MOST; line = next) {
        char *colon;

        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        colon = strchr(line, ':');
        if (colon) {
            *colon = 0;
            h->list[h->n++] = (struct header){line, colon + 1};
        }
    }
}

/* The id that a reply has to have, or NULL. */
static json_t *id_of(const char *text, size_t len)
{
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    json_t *id = json_incref(json_object_get(root, "id"));

    json_decref(root);
    return id;
}

static void check_reply(const struct mcp_answer *a, const json_t *id)
{
    json_t *reply = json_loadb(a->text.data, a->text.len, JSON_REJECT_DUPLICATES, NULL);
    const char *rpc = json_string_value(json_object_get(reply, "jsonrpc"));
    json_t *its = json_object_get(reply, "id"), *error = json_object_get(reply, "error");

    PROPERTY(reply, "not JSON: %s", a->text.data);
    PROPERTY(!memchr(a->text.data, '\n', a->text.len), "more than a line");
    PROPERTY(rpc && strcmp(rpc, "2.0") == 0, "not JSON-RPC: %s", a->text.data);
    PROPERTY(json_is_object(json_object_get(reply, "result")) != json_is_object(error),
             "neither or both: %s", a->text.data);
    PROPERTY(!its || (id && json_equal(its, (json_t *)id)), "another id: %s", a->text.data);
    PROPERTY(its || error, "a result without an id: %s", a->text.data);
    PROPERTY(!error || (json_is_integer(json_object_get(error, "code")) &&
                        json_is_string(json_object_get(error, "message"))),
             "an error without its parts: %s", a->text.data);
    PROPERTY(error ? a->status >= 200 && a->status <= 404 : a->status == 200, "status %d: %s",
             a->status, a->text.data);
    json_decref(reply);
}

static void check_call(struct mcp_call *c)
{
    json_t *schema = json_loads(c->tool->input_schema, 0, NULL), *q = toy_question("?");
    json_t *counted = json_pack("{si}", "counted", 1);
    const struct mcp_ask ask = {.requests = q, .state = "x", .state_len = 1};
    struct mcp_result r = {.structured = counted};
    struct error err = {0};
    struct buf told = {.max = 65536};
    struct mcp_answer a;

    PROPERTY(schema_check(schema, c->arguments, "arguments", &err) == 0, "%s", err.msg);
    if (mcp_progress(c, 1, 2, "m", &told)) {
        json_t *n = json_loadb(told.data, told.len, JSON_REJECT_DUPLICATES, NULL);

        PROPERTY(n, "progress is not JSON: %s", told.data);
        json_decref(n);
    }
    if (strcmp(c->tool->name, "ask") == 0)
        r.ask = &ask;
    mcp_finish(c, &r, &a);
    PROPERTY(a.kind == MCP_REPLY, "a call without a reply");
    check_reply(&a, c->id);
    mcp_answer_done(&a);
    buf_done(&told);
    json_decref(counted);
    json_decref(q);
    json_decref(schema);
}

static void run(const struct mcp *m, const char *text, size_t len, const struct mcp_transport *t)
{
    json_t *id = id_of(text, len);
    struct mcp_answer a, b;

    mcp_take(m, text, len, t, &a);
    mcp_take(m, text, len, t, &b);
    PROPERTY(a.kind == b.kind && a.status == b.status && a.text.len == b.text.len &&
                 (a.text.len == 0 || memcmp(a.text.data, b.text.data, a.text.len) == 0),
             "not the same twice");
    if (a.kind == MCP_REPLY)
        check_reply(&a, id);
    else
        PROPERTY(a.text.len == 0, "text without a reply: %s", a.text.data);
    if (a.kind == MCP_CALL)
        check_call(a.call);
    mcp_answer_done(&a);
    mcp_answer_done(&b);
    json_decref(id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const sessions[] = {NULL, "2025-11-25", "2025-06-18", "2025-03-26",
                                           "2024-11-05"};
    static struct mcp *m;
    struct headers headers = {0};
    struct mcp_transport t = {.header = find_header, .ctx = &headers, .now_ms = 1};
    const uint8_t *end = memmem(data, size, "\n\n", 2);
    struct error err = {0};
    char *head = NULL;

    if (!m)
        PROPERTY(mcp_new(&toy_info, &m, &err) == 0, "%s", err.msg);
    if (end) {
        head = fuzz_text(data, (size_t)(end - data));
        split(head, &headers);
        t.http = true;
        size -= (size_t)(end - data) + 2;
        data = end + 2;
    } else if (size && data[0] >= '0' && data[0] <= '4') {
        t.version = sessions[data[0] - '0'];
        data++;
        size--;
    }
    run(m, (const char *)data, size, &t);
    free(head);
    return 0;
}
