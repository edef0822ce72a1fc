/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/mcp.h"

#include <string.h>

#include "base/error.h"
#include "mcp/internal.h"
#include "mcp/schema.h"

void mcp_free(struct mcp *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->tools && i < m->info.n_tools; i++) {
        json_decref(m->tools[i].input);
        json_decref(m->tools[i].output);
    }
    free(m->tools);
    json_decref(m->listed);
    json_decref(m->listed_legacy);
    json_decref(m->server);
    explicit_bzero(m->key, sizeof(m->key));
    free(m);
}

static int read_schema(const char *text, json_t **ret, struct error *err)
{
    json_error_t error;
    json_t *schema = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    int r;

    if (!schema)
        return error_set(err, ERR_INVALID, "schema: %s", error.text);
    r = schema_accept(schema, err);
    if (r < 0)
        json_decref(schema);
    else
        *ret = schema;
    return r;
}

static bool is_object_schema(const json_t *schema)
{
    const char *type = json_string_value(json_object_get(schema, "type"));

    return type && strcmp(type, "object") == 0;
}

static bool is_tool_name(const char *s)
{
    size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");

    return n > 0 && n <= LIMIT_MCP_TOOL && s[n] == 0;
}

static int read_tool(struct mcp *m, size_t at, struct error *err)
{
    const struct mcp_tool *t = &m->info.tools[at];
    struct own_tool *own = &m->tools[at];
    int r;

    own->tool = t;
    if (!is_tool_name(t->name))
        return error_set(err, ERR_INVALID, "its name is not of letters, digits, '_', '-' and '.'");
    for (size_t i = 0; i < at; i++)
        if (strcmp(m->info.tools[i].name, t->name) == 0)
            return error_set(err, ERR_EXISTS, "its name is taken");
    r = read_schema(t->input_schema, &own->input, err);
    if (r < 0)
        return error_wrap(err, "input");
    if (!is_object_schema(own->input))
        return error_set(err, ERR_INVALID, "input schema: its type is not object");
    r = headers_accept(own->input, err);
    if (r < 0)
        return error_wrap(err, "input schema");
    r = t->output_schema ? read_schema(t->output_schema, &own->output, err) : 0;
    return r < 0 ? error_wrap(err, "output") : 0;
}

/* In the legacy era, structuredContent is an object. */
static json_t *describe(const struct own_tool *own, bool legacy)
{
    const struct mcp_tool *t = own->tool;
    json_t *d = json_pack("{ss ss* ss sO}", "name", t->name, "title", t->title, "description",
                          t->description, "inputSchema", own->input);

    if (own->output && (!legacy || is_object_schema(own->output)))
        (void)json_object_set(d, "outputSchema", own->output);
    (void)json_object_set_new(d, "annotations",
                              json_pack("{sb sb sb sb}", "readOnlyHint", t->read_only,
                                        "destructiveHint", t->destructive, "idempotentHint",
                                        t->idempotent, "openWorldHint", t->open_world));
    return d;
}

static json_t *describe_all(const struct mcp *m, bool legacy)
{
    json_t *all = json_array();

    for (size_t i = 0; i < m->info.n_tools; i++)
        if (!m->info.tools[i].unlisted &&
            json_array_append_new(all, describe(&m->tools[i], legacy)) < 0) {
            json_decref(all);
            return NULL;
        }
    return all;
}

int mcp_new(const struct mcp_info *info, struct mcp **ret, struct error *err)
{
    autoptr(mcp) m = calloc(1, sizeof(*m));

    if (!m || !(m->tools = calloc(info->n_tools ? info->n_tools : 1, sizeof(*m->tools))))
        return error_set(err, ERR_SYS, "out of memory");
    m->info = *info;
    memcpy(m->key, info->key, sizeof(m->key));
    m->info.key = NULL;
    for (size_t i = 0; i < info->n_tools; i++)
        if (read_tool(m, i, err) < 0)
            return error_wrap(err, "tool '%s'", info->tools[i].name);
    m->listed = describe_all(m, false);
    m->listed_legacy = describe_all(m, true);
    m->server = json_pack("{ss ss* ss}", "name", info->name, "title", info->title, "version",
                          info->version);
    if (!m->listed || !m->listed_legacy || !m->server)
        return error_set(err, ERR_SYS, "out of memory, or a text that is not UTF-8");
    *ret = TAKE_PTR(m);
    return 0;
}
