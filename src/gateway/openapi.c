/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI 3.1 document and the list of tools, from the tables of routes, operations and tools:
 * what is served is what is described. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "gateway/front_internal.h"
#include "tool/tool.h"

#define MARK "#/components/schemas/"

/* ---- tools ---- */

static json_t *describe_tool(const struct tool *t)
{
    return json_pack("{ss ss ss so* so* s{sb sb sb sb}}", "name", t->name, "title", t->title,
                     "description", t->description, "inputSchema",
                     json_loads(t->input_schema, 0, NULL), "outputSchema",
                     t->output_schema ? json_loads(t->output_schema, 0, NULL) : NULL, "annotations",
                     "readOnlyHint", t->read_only, "destructiveHint", t->destructive,
                     "idempotentHint", t->idempotent, "openWorldHint", t->open_world);
}

/* Takes the value; its text is the front's. */
static const char *keep(char **place, json_t *v)
{
    *place = v ? json_dumps(v, JSON_COMPACT) : NULL;
    json_decref(v);
    return *place;
}

const char *tools_text(struct front *f)
{
    json_t *all = json_array();

    if (f->tools_text) {
        json_decref(all);
        return f->tools_text;
    }
    for (size_t i = 0; i < n_tools; i++)
        if (!tools[i].unlisted)
            (void)json_array_append_new(all, describe_tool(&tools[i]));
    return keep(&f->tools_text, json_pack("{so}", "tools", all));
}

/* ---- schemas ---- */

static json_t *field_schema(enum field_type type)
{
    switch (type) {
    case FIELD_TEXT:
        return json_pack("{ss si si}", "type", "string", "minLength", 1, "maxLength",
                         (int)LIMIT_FRONT_TEXT);
    case FIELD_NUMBER:
        return json_pack("{ss si}", "type", "integer", "minimum", 0);
    case FIELD_BOOL:
        return json_pack("{ss}", "type", "boolean");
    case FIELD_CALL:
        return json_pack("{ss ss}", "type", "string", "pattern", "^[0-9a-f]{32}$");
    case FIELD_OBJECT:
        break;
    }
    return json_pack("{ss}", "type", "object");
}

static json_t *ref(const char *fmt, const char *name)
{
    char text[256];

    (void)snprintf(text, sizeof(text), fmt, name);
    return json_pack("{ss}", "$ref", text);
}

/* One alternative for each tool: its name and its arguments. */
static json_t *call_schema(void)
{
    json_t *any = json_array();

    for (size_t i = 0; i < n_tools; i++)
        if (!tools[i].unlisted)
            (void)json_array_append_new(any, json_pack("{s{s{ss} so}}", "properties", "tool",
                                                       "const", tools[i].name, "arguments",
                                                       ref(MARK "%s_arguments", tools[i].name)));
    return json_pack("{ss s[s] s{s{ss} s{ss} so so s{ss si ss} s{ss}} sb so}", "type", "object",
                     "required", "tool", "properties", "tool", "type", "string", "arguments",
                     "type", "object", "agent", field_schema(FIELD_TEXT), "session",
                     field_schema(FIELD_TEXT), "id", "type", "string", "maxLength", 128,
                     "description", "The same id never runs twice (header Idempotency-Key).",
                     "stream", "type", "boolean", "additionalProperties", 0, "anyOf", any);
}

/* What is there depends on the tool; a command's has most. */
static json_t *receipt_schema(void)
{
    static const char *const numbers[] = {"wallSeconds", "cpuSeconds", "peakMemoryBytes",
                                          "outputBytes"};
    json_t *fields = json_pack(
        "{so s{ss s{ss} ss} s{ss ss} s{ss s{ss}}}", "call", field_schema(FIELD_CALL), "files",
        "type", "array", "items", "type", "string", "description",
        "What was made or changed in the workspace while a command ran; folders end in a slash.",
        "filesTruncated", "type", "boolean", "description", "There may be more of them.", "network",
        "type", "array", "items", "type", "object");

    for (size_t i = 0; i < COUNT(numbers); i++)
        (void)json_object_set_new(fields, numbers[i], json_pack("{ss}", "type", "number"));
    return json_pack("{ss so}", "type", "object", "properties", fields);
}

static json_t *answer_schema(void)
{
    json_t *any = json_array();

    for (size_t i = 0; i < n_tools; i++)
        if (!tools[i].unlisted && tools[i].output_schema)
            (void)json_array_append_new(any, ref(MARK "%s_result", tools[i].name));
    return json_pack("{ss s{so s{ss} s{ss} s{so} so}}", "type", "object", "properties", "call",
                     field_schema(FIELD_CALL), "tool", "type", "string", "session", "type",
                     "string", "result", "anyOf", any, "receipt", receipt_schema());
}

static json_t *error_schema(void)
{
    return json_pack("{ss s{s{ss s{s{ss} s{ss} s{ss}} s[s s]}}}", "type", "object", "properties",
                     "error", "type", "object", "properties", "code", "type", "string", "message",
                     "type", "string", "retry_after", "type", "number", "required", "code",
                     "message");
}

static json_t *denied_schema(void)
{
    return json_pack("{ss s{so s{ss s{s{ss} s{ss} s{ss} s{ss} s{ss} s{ss} s{ss}}}}}", "type",
                     "object", "properties", "call", field_schema(FIELD_CALL), "denied", "type",
                     "object", "properties", "op", "type", "string", "target", "type", "string",
                     "rule", "type", "string", "reason", "type", "string", "key", "type", "string",
                     "final", "type", "boolean", "approval", "type", "string");
}

static json_t *all_schemas(void)
{
    json_t *all = json_pack("{so so so so}", "Call", call_schema(), "Answer", answer_schema(),
                            "Error", error_schema(), "Denied", denied_schema());
    char name[256];

    for (size_t i = 0; i < n_tools; i++) {
        if (tools[i].unlisted)
            continue;
        (void)snprintf(name, sizeof(name), "%s_arguments", tools[i].name);
        (void)json_object_set_new(all, name, json_loads(tools[i].input_schema, 0, NULL));
        (void)snprintf(name, sizeof(name), "%s_result", tools[i].name);
        if (tools[i].output_schema)
            (void)json_object_set_new(all, name, json_loads(tools[i].output_schema, 0, NULL));
    }
    return all;
}

/* ---- operations ---- */

static json_t *parameters(const struct route *route)
{
    const struct op *op = route->op ? front_op(route->op) : NULL;
    json_t *all = json_array();
    char arg[32] = "";

    (void)route_arg(route, arg, sizeof(arg));
    for (size_t i = 0; op && i < op->n_fields; i++) {
        const struct field *f = &op->fields[i];
        bool in_path = strcmp(f->name, arg) == 0;

        if (!in_path && (route->flags & ROUTE_BODY))
            continue;
        (void)json_array_append_new(all, json_pack("{ss ss sb ss so}", "name", f->name, "in",
                                                   in_path ? "path" : "query", "required",
                                                   in_path || f->required, "description", f->about,
                                                   "schema", field_schema(f->type)));
    }
    return all;
}

static json_t *content(const char *type, json_t *schema)
{
    return json_pack("{s{s{so}}}", "content", type, "schema", schema);
}

/* The operation's fields that are not in the path. */
static json_t *body_schema(const struct route *route)
{
    const struct op *op = route->op ? front_op(route->op) : NULL;
    json_t *properties = json_object(), *required = json_array();
    char arg[32] = "";

    (void)route_arg(route, arg, sizeof(arg));
    for (size_t i = 0; op && i < op->n_fields; i++) {
        const struct field *f = &op->fields[i];
        json_t *one = field_schema(f->type);

        if (strcmp(f->name, arg) == 0) {
            json_decref(one);
            continue;
        }
        (void)json_object_set_new(one, "description", json_string(f->about));
        (void)json_object_set_new(properties, f->name, one);
        if (f->required)
            (void)json_array_append_new(required, json_string(f->name));
    }
    return json_pack("{ss so so}", "type", "object", "properties", properties, "required",
                     required);
}

static json_t *request_body(const struct route *route)
{
    json_t *schema = body_schema(route);
    json_t *body;

    if (route->run == serve_call) {
        json_decref(schema);
        schema = ref(MARK "%s", "Call");
    }
    body = content("application/json", schema);
    (void)json_object_set_new(body, "required", json_true());
    return body;
}

static json_t *response(const char *about, json_t *body)
{
    (void)json_object_set_new(body, "description", json_string(about));
    return body;
}

static json_t *good_response(const struct route *route)
{
    json_t *body;

    if (route->run == serve_metrics)
        return response("The metrics", content("text/plain", json_pack("{ss}", "type", "string")));
    if (route->run == serve_page)
        return response("The page", json_object());
    body = route->op && (strcmp(route->op, "call") == 0 || strcmp(route->op, "look") == 0 ||
                         strcmp(route->op, "events") == 0)
               ? content("application/json", ref(MARK "%s", "Answer"))
               : content("application/json", json_pack("{ss}", "type", "object"));
    if (route->flags & ROUTE_STREAM)
        (void)json_object_set_new(json_object_get(body, "content"), "text/event-stream",
                                  json_pack("{s{ss}}", "schema", "type", "string"));
    return response("The answer", body);
}

static json_t *responses(const struct route *route)
{
    bool upgrades = route->run == serve_socket;
    json_t *all = json_object();

    (void)json_object_set_new(all, upgrades ? "101" : "200",
                              upgrades ? response("A WebSocket", json_object())
                                       : good_response(route));
    if (!(route->flags & ROUTE_OPEN))
        (void)json_object_set_new(all, "401",
                                  response("The credential is missing or not good",
                                           content("application/json", ref(MARK "%s", "Error"))));
    if (route->run == serve_call)
        (void)json_object_set_new(all, "403",
                                  response("The call was refused",
                                           content("application/json", ref(MARK "%s", "Denied"))));
    (void)json_object_set_new(
        all, "default",
        response("What went wrong", content("application/json", ref(MARK "%s", "Error"))));
    return all;
}

static json_t *operation(const struct route *route)
{
    json_t *o = json_pack("{ss so so}", "summary", route->summary, "parameters", parameters(route),
                          "responses", responses(route));

    if (route->flags & ROUTE_BODY)
        (void)json_object_set_new(o, "requestBody", request_body(route));
    if (route->flags & ROUTE_OPEN)
        (void)json_object_set_new(o, "security", json_array());
    return o;
}

static json_t *paths(void)
{
    json_t *all = json_object();

    for (size_t i = 0; i < n_routes; i++) {
        json_t *path = json_object_get(all, routes[i].path);
        char method[16];

        if (!path) {
            path = json_object();
            (void)json_object_set_new(all, routes[i].path, path);
        }
        (void)snprintf(method, sizeof(method), "%s", http_method_name(routes[i].method));
        for (char *c = method; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        (void)json_object_set_new(path, method, operation(&routes[i]));
    }
    return all;
}

const char *openapi_text(struct front *f)
{
    if (f->openapi)
        return f->openapi;
    return keep(&f->openapi,
                json_pack("{ss s{ss ss ss} so s{so s{s{ss ss} s{ss ss ss}}} s[{s[]} {s[]}]}",
                          "openapi", "3.1.0", "info", "title", "ClawDen gateway", "version",
                          f->facts.version ? f->facts.version : "0", "summary",
                          "Tools for agents, in boxes", "paths", paths(), "components", "schemas",
                          all_schemas(), "securitySchemes", "bearer", "type", "http", "scheme",
                          "bearer", "cookie", "type", "apiKey", "in", "cookie", "name", "clawden",
                          "security", "bearer", "cookie"));
}
