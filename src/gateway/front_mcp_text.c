/* SPDX-License-Identifier: Apache-2.0 */
/* A result as the model reads it: what a person would see, where that is less than the JSON. */
#include <string.h>

#include "gateway/front_internal.h"
#include "tool/tool.h"

/* On a line of its own. */
static void put_note(struct buf *out, const char *fmt, const char *what)
{
    if (out->len > 0 && out->data[out->len - 1] != '\n')
        buf_puts(out, "\n");
    buf_printf(out, fmt, what);
}

static void put_string(struct buf *out, const json_t *v)
{
    if (!json_is_string(v))
        return;
    if (out->len > 0 && out->data[out->len - 1] != '\n' && json_string_length(v) > 0)
        buf_puts(out, "\n");
    buf_append(out, json_string_value(v), json_string_length(v));
}

static const char *text_of(const json_t *result, const char *name)
{
    const char *s = json_string_value(json_object_get(result, name));

    return s ? s : "";
}

static void put_end(struct buf *out, const json_t *result)
{
    const char *status = text_of(result, "status");
    json_int_t code = json_integer_value(json_object_get(result, "exitCode"));
    char number[24];

    (void)snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, code);
    if (strcmp(status, "exited") == 0 && code != 0)
        put_note(out, "[exit status %s]", number);
    else if (strcmp(status, "signaled") == 0)
        put_note(out, "[ended by %s]", text_of(result, "signal"));
    else if (strcmp(status, "limit") == 0)
        put_note(out, "[ended by the limit '%s']",
                 text_of(json_object_get(result, "limit"), "name"));
    else if (strcmp(status, "running") == 0)
        put_note(out, "[it goes on: process '%s']", text_of(result, "process"));
    else if (*status && strcmp(status, "exited") != 0)
        put_note(out, "[%s]", status);
    if (*text_of(result, "reason"))
        put_note(out, "[%s]", text_of(result, "reason"));
    if (json_is_true(json_object_get(result, "truncated")))
        put_note(out, "%s", "[output is cut; process, action log has the whole]");
}

static void put_command(struct buf *out, const json_t *result)
{
    put_string(out, json_object_get(result, "stdout"));
    put_string(out, json_object_get(result, "stderr"));
    put_end(out, result);
    if (out->len == 0)
        buf_puts(out, "[no output]");
}

static void put_json(struct buf *out, const json_t *v)
{
    char *text = json_dumps(v, JSON_COMPACT);

    if (text)
        buf_puts(out, text);
    free(text);
}

void front_mcp_text(const char *name, const json_t *result, struct buf *out)
{
    const struct tool *t = tool_find(name);
    const json_t *content = json_object_get(result, "content");

    if (t && t->kind == TOOL_EXEC) {
        put_command(out, result);
    } else if (t && strcmp(t->name, "read") == 0 && json_is_string(content)) {
        put_string(out, content);
        if (*text_of(result, "note"))
            put_note(out, "[%s]", text_of(result, "note"));
    } else {
        put_json(out, result);
    }
}
