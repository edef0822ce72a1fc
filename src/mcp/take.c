/* SPDX-License-Identifier: Apache-2.0 */
/* From a message to its era, and from there to its method. */
#include "mcp/internal.h"

#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct method {
    const char *name;
    void (*run)(struct asked *a);
};

static void refuse(struct asked *a, enum http_status status, const char *why)
{
    answer_error(a->ret, a->id, RPC_INVALID_PARAMS, status, NULL, "Invalid params: %s", why);
}

/* ---- methods ---- */

static void set_caching(const struct asked *a, json_t *result)
{
    const struct mcp_info *info = &a->m->info;

    (void)json_object_set_new(result, "ttlMs", json_integer(info->list_ttl_ms));
    (void)json_object_set_new(result, "cacheScope",
                              json_string(info->list_is_private ? "private" : "public"));
}

static void set_instructions(const struct asked *a, json_t *result)
{
    if (a->m->info.instructions)
        (void)json_object_set_new(result, "instructions", json_string(a->m->info.instructions));
}

static void discover(struct asked *a)
{
    json_t *result =
        json_pack("{so s{s{}}}", "supportedVersions", version_list(false), "capabilities", "tools");

    set_instructions(a, result);
    set_caching(a, result);
    answer_result(a, result);
}

/* The whole list is one page: there is no cursor that we could have given. */
static void list_tools(struct asked *a)
{
    json_t *result;

    if (json_object_get(a->params, "cursor")) {
        refuse(a, HTTP_OK, "cursor is not one of this server");
        return;
    }
    result = json_pack("{sO}", "tools", a->modern ? a->m->listed : a->m->listed_legacy);
    if (a->modern)
        set_caching(a, result);
    answer_result(a, result);
}

static void initialize(struct asked *a)
{
    const json_t *wanted = json_object_get(a->params, "protocolVersion");
    const char *version = version_legacy(json_string_value(wanted));
    json_t *result;

    if (!json_is_string(wanted) || !json_is_object(json_object_get(a->params, "capabilities")) ||
        !json_is_object(json_object_get(a->params, "clientInfo"))) {
        refuse(a, HTTP_OK, "initialize has a protocolVersion, capabilities and clientInfo");
        return;
    }
    if (!version)
        version = version_newest_legacy();
    result = json_pack("{ss s{s{} s{}} sO}", "protocolVersion", version, "capabilities", "logging",
                       "tools", "serverInfo", a->m->server);
    set_instructions(a, result);
    answer_result(a, result);
    if (a->ret->status == HTTP_OK)
        a->ret->version = version;
}

static void ping(struct asked *a)
{
    answer_result(a, json_object());
}

/* Nothing is ever logged to a client; old ones set a level before anything else. */
static void set_level(struct asked *a)
{
    static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                         "error", "critical", "alert",  "emergency"};
    const char *level = json_string_value(json_object_get(a->params, "level"));

    for (size_t i = 0; level && i < COUNT(levels); i++)
        if (strcmp(levels[i], level) == 0) {
            ping(a);
            return;
        }
    refuse(a, HTTP_OK, "level is not one of the eight");
}

static const struct method modern_methods[] = {
    {"server/discover", discover},
    {"tools/list", list_tools},
    {"tools/call", call_tool},
};

static const struct method legacy_methods[] = {
    {"initialize", initialize},      {"ping", ping},
    {"tools/list", list_tools},      {"tools/call", call_tool},
    {"logging/setLevel", set_level},
};

static void dispatch(struct asked *a, const struct method *methods, size_t n)
{
    const json_t *token = json_object_get(a->meta, "progressToken");

    if (token && !message_is_id(token)) {
        refuse(a, a->modern ? HTTP_BAD_REQUEST : HTTP_OK,
               "progressToken is not a short string or an integer");
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (strcmp(methods[i].name, a->method) == 0) {
            methods[i].run(a);
            return;
        }
    answer_error(a->ret, a->id, RPC_NO_METHOD, a->modern ? HTTP_NOT_FOUND : HTTP_OK, NULL,
                 "Method not found: %.64s", a->method);
}

/* ---- eras ---- */

/* Cut, and left out where it is not UTF-8: it came from outside. */
static json_t *show_version(const char *text)
{
    json_t *shown = json_stringn(text, strnlen(text, LIMIT_MCP_VERSION));

    return shown ? shown : json_string("");
}

static void refuse_version(struct asked *a, const char *requested, bool legacy_too)
{
    answer_error(a->ret, a->id, RPC_UNSUPPORTED_VERSION, HTTP_BAD_REQUEST,
                 json_pack("{so so}", "supported", version_list(legacy_too), "requested",
                           show_version(requested)),
                 "Unsupported protocol version");
}

static void take_modern(struct asked *a, const json_t *claim)
{
    const char *version = json_string_value(claim);

    a->modern = true;
    if (!version) {
        refuse(a, HTTP_BAD_REQUEST, "_meta needs " META_VERSION ", a string");
        return;
    }
    if (!json_is_object(json_object_get(a->meta, META_CAPABILITIES))) {
        refuse(a, HTTP_BAD_REQUEST, "_meta needs " META_CAPABILITIES ", an object");
        return;
    }
    if (json_object_get(a->meta, META_CLIENT) &&
        !json_is_object(json_object_get(a->meta, META_CLIENT))) {
        refuse(a, HTTP_BAD_REQUEST, "_meta has a " META_CLIENT " that is not an object");
        return;
    }
    if (a->has_version_header && strcmp(a->version_header, version) != 0) {
        answer_error(a->ret, a->id, RPC_HEADER_MISMATCH, HTTP_BAD_REQUEST,
                     json_pack("{ss}", "header", "MCP-Protocol-Version"),
                     "Header mismatch: MCP-Protocol-Version is not the version in the body");
        return;
    }
    a->version = version_modern(version);
    if (!a->version)
        refuse_version(a, version, false);
    else if (headers_agree(a))
        dispatch(a, modern_methods, COUNT(modern_methods));
}

static void take_legacy(struct asked *a)
{
    bool begins = strcmp(a->method, "initialize") == 0;

    a->version = version_legacy(a->t->version);
    if (!begins && a->t->session_unknown) {
        answer_error(a->ret, a->id, RPC_INVALID_REQUEST, HTTP_NOT_FOUND, NULL,
                     "Invalid request: no such session; initialize a new one");
        return;
    }
    if (!begins && a->has_version_header && !version_legacy(a->version_header)) {
        refuse_version(a, a->version_header, true);
        return;
    }
    if (!a->version && a->has_version_header)
        a->version = version_legacy(a->version_header);
    if (!a->version && (a->t->http || begins))
        a->version = version_legacy("2025-03-26"); /* the last one that had no such header */
    if (!a->version && strcmp(a->method, "ping") != 0) {
        refuse(a, HTTP_BAD_REQUEST,
               "neither was there an initialize, nor is there _meta with " META_VERSION);
        return;
    }
    dispatch(a, legacy_methods, COUNT(legacy_methods));
}

static void take_request(struct asked *a)
{
    const json_t *claim = json_object_get(a->meta, META_VERSION);
    bool begins = strcmp(a->method, "initialize") == 0;
    bool modern_header = a->has_version_header && version_modern(a->version_header);

    if (begins && !version_modern(json_string_value(claim))) {
        if (!modern_header)
            take_legacy(a);
        else
            answer_error(a->ret, a->id, RPC_HEADER_MISMATCH, HTTP_BAD_REQUEST,
                         json_pack("{ss}", "header", "MCP-Protocol-Version"),
                         "Header mismatch: %s has no initialize", a->version_header);
        return;
    }
    /* A method that only the modern era has is a request of it that lacks its _meta. */
    if (claim || modern_header || strcmp(a->method, "server/discover") == 0)
        take_modern(a, claim);
    else
        take_legacy(a);
}

/* ---- what needs no answer ---- */

static bool is_known_version(const char *text)
{
    return version_modern(text) || version_legacy(text);
}

static void take_notification(struct asked *a)
{
    bool modern_header = a->has_version_header && version_modern(a->version_header);
    json_t *id = json_object_get(a->params, "requestId");

    if (a->has_version_header && !is_known_version(a->version_header)) {
        refuse_version(a, a->version_header, true);
        return;
    }
    if (a->t->session_unknown && !modern_header) {
        answer_nothing(a->ret, HTTP_NOT_FOUND);
        return;
    }
    answer_nothing(a->ret, HTTP_ACCEPTED);
    /* Over modern HTTP a call is given up by closing its connection, and ids are nobody's own. */
    if (strcmp(a->method, "notifications/cancelled") == 0 && !modern_header && message_is_id(id))
        a->ret->cancel = json_incref(id);
}

/* We ask nothing, so nothing is expected; old clients may answer all the same. */
static void take_response(struct asked *a)
{
    if (a->has_version_header && version_modern(a->version_header))
        answer_error(a->ret, NULL, RPC_INVALID_REQUEST, HTTP_BAD_REQUEST, NULL,
                     "Invalid request: nobody asked");
    else
        answer_nothing(a->ret, HTTP_ACCEPTED);
}

void mcp_take(const struct mcp *m, const char *text, size_t len, const struct mcp_transport *t,
              struct mcp_answer *ret)
{
    struct asked a = {.m = m, .t = t, .ret = ret};

    answer_init(ret);
    headers_version(&a);
    if (!message_read(&a, text, len)) {
        /* Answered; but to a notification there is an answer over HTTP alone. */
        if (a.method && !a.id && !t->http)
            answer_nothing(ret, HTTP_ACCEPTED);
    } else if (!a.method) {
        take_response(&a);
    } else if (!a.id) {
        take_notification(&a);
    } else {
        take_request(&a);
    }
    json_decref(a.root);
}
