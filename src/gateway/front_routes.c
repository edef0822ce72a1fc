/* SPDX-License-Identifier: Apache-2.0 */
/* Every path that is answered, in one table: the router, the OpenAPI document and the test that
 * asks each without a credential read it. */
#include <stdio.h>
#include <string.h>

#include "gateway/front_internal.h"
#include "http/chars.h"

const struct route routes[] = {
    {HTTP_GET, "/", ROUTE_OPEN | ROUTE_HEAD, NULL, serve_page, "A page for people"},
    {HTTP_GET, "/app.js", ROUTE_OPEN | ROUTE_HEAD, NULL, serve_page, "Its script"},
    {HTTP_GET, "/app.css", ROUTE_OPEN | ROUTE_HEAD, NULL, serve_page, "Its looks"},
    {HTTP_GET, "/healthz", ROUTE_OPEN | ROUTE_HEAD, NULL, serve_health, "Is somebody there?"},
    {HTTP_GET, "/readyz", 0, "ready", serve_op, "Can calls be made, and if not, why?"},
    {HTTP_GET, "/metrics", 0, "metrics", serve_metrics, "Counts, as Prometheus reads them"},
    {HTTP_GET, "/openapi.json", 0, NULL, serve_openapi, "This document"},
    {HTTP_GET, "/v1/me", 0, "me", serve_op, "What the credential is good for"},
    {HTTP_GET, "/v1/tools", 0, NULL, serve_tools, "The tools and their schemas"},
    {HTTP_POST, "/v1/call", ROUTE_BODY | ROUTE_STREAM, "call", serve_call, "Calls a tool"},
    {HTTP_GET, "/v1/calls", 0, "calls", serve_op, "Calls, newest first"},
    {HTTP_GET, "/v1/calls/{call}", 0, "look", serve_op, "The answer of a call"},
    {HTTP_DELETE, "/v1/calls/{call}", 0, "cancel", serve_op, "Ends a call that runs"},
    {HTTP_GET, "/v1/calls/{call}/events", ROUTE_STREAM, "events", serve_events,
     "The events of a call, again and as they come"},
    {HTTP_GET, "/v1/sessions", 0, "sessions", serve_op, "Sessions, last used first"},
    {HTTP_DELETE, "/v1/sessions/{session}", 0, "session.end", serve_op,
     "Ends a session's commands and removes its boxes"},
    {HTTP_GET, "/v1/boxes", 0, "boxes", serve_op, "Boxes"},
    {HTTP_GET, "/v1/audit", 0, "audit", serve_op, "The record, newest first"},
    {HTTP_GET, "/v1/approvals", 0, "approvals", serve_op, "Calls that wait for a person's yes"},
    {HTTP_POST, "/v1/approvals/{approval}", ROUTE_BODY, "approve", serve_approve,
     "Says yes or no to one of them"},
    {HTTP_POST, "/v1/login", ROUTE_OPEN | ROUTE_BODY, NULL, serve_login,
     "A one-use code for a cookie"},
    {HTTP_POST, "/v1/logout", 0, "logout", serve_logout, "The cookie is worth nothing any more"},
    {HTTP_GET, "/v1/ws", 0, NULL, serve_socket, "All operations over a WebSocket"},
    {HTTP_POST, "/mcp", ROUTE_BODY | ROUTE_STREAM, NULL, serve_mcp,
     "The Model Context Protocol, streamable HTTP"},
};
const size_t n_routes = COUNT(routes);

static struct http_slice next_segment(struct http_slice *rest)
{
    struct http_slice s = {rest->at + 1, rest->len - 1};
    const char *slash = memchr(s.at, '/', s.len);

    if (slash)
        s.len = (size_t)(slash - s.at);
    *rest = (struct http_slice){s.at + s.len, rest->len - 1 - s.len};
    return s;
}

static bool matches(const char *pattern, struct http_slice path, struct http_slice *ret_arg)
{
    struct http_slice p = {pattern, strlen(pattern)};

    while (p.len > 0 && path.len > 0) {
        struct http_slice want = next_segment(&p), have = next_segment(&path);

        if (want.len > 0 && want.at[0] == '{')
            *ret_arg = have;
        else if (want.len != have.len || memcmp(want.at, have.at, want.len) != 0)
            return false;
    }
    return p.len == 0 && path.len == 0;
}

static bool takes(const struct route *route, enum http_method method)
{
    return route->method == method || (method == HTTP_HEAD && (route->flags & ROUTE_HEAD));
}

static void add_allowed(const struct route *route, char *ret, size_t size)
{
    size_t n = strlen(ret);

    (void)snprintf(ret + n, size - n, "%s%s%s", n ? ", " : "", http_method_name(route->method),
                   route->flags & ROUTE_HEAD ? ", HEAD" : "");
}

const struct route *route_find(enum http_method method, struct http_slice path,
                               struct http_slice *ret_arg, char *ret_allow, size_t size)
{
    *ret_arg = (struct http_slice){0};
    ret_allow[0] = 0;
    if (path.len == 0 || path.at[0] != '/')
        return NULL;
    for (size_t i = 0; i < n_routes; i++) {
        if (!matches(routes[i].path, path, ret_arg))
            continue;
        if (takes(&routes[i], method))
            return &routes[i];
        add_allowed(&routes[i], ret_allow, size);
    }
    return NULL;
}

bool route_arg(const struct route *route, char *ret, size_t size)
{
    const char *open = strchr(route->path, '{');

    if (open)
        (void)snprintf(ret, size, "%.*s", (int)strcspn(open + 1, "}"), open + 1);
    return open != NULL;
}
