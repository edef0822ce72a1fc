/* SPDX-License-Identifier: Apache-2.0 */
#include "http/compose.h"

#include <string.h>

#include "base/buf.h"
#include "http/chars.h"

const char *http_status_text(unsigned status)
{
    static const struct {
        unsigned status;
        const char *text;
    } words[] = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {407, "Proxy Authentication Required"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {426, "Upgrade Required"},
        {428, "Precondition Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (words[i].status == status)
            return words[i].text;
    return "";
}

/* ---- lines ---- */

static struct http_slice slice(const char *text)
{
    return (struct http_slice){text, strlen(text)};
}

static bool is_text(struct http_slice s)
{
    return http_span(s.at, s.len, HTTP_CHAR_TEXT) == s.len;
}

void http_write_request_line(struct buf *b, enum http_method method, struct http_slice target)
{
    if (target.len == 0 || http_span(target.at, target.len, HTTP_CHAR_TARGET) != target.len) {
        b->failed = true;
        return;
    }
    buf_puts(b, http_method_name(method));
    buf_append(b, " ", 1);
    buf_append(b, target.at, target.len);
    buf_puts(b, " HTTP/1.1\r\n");
}

void http_write_status_line(struct buf *b, unsigned status, const struct http_slice *reason)
{
    struct http_slice words = reason ? *reason : slice(http_status_text(status));

    if (status < 100 || status > 599 || !is_text(words)) {
        b->failed = true;
        return;
    }
    buf_printf(b, "HTTP/1.1 %u ", status);
    buf_append(b, words.at, words.len);
    buf_append(b, "\r\n", 2);
}

void http_write_field(struct buf *b, struct http_slice name, struct http_slice value)
{
    if (name.len == 0 || http_span(name.at, name.len, HTTP_CHAR_TOKEN) != name.len ||
        !is_text(value)) {
        b->failed = true;
        return;
    }
    buf_append(b, name.at, name.len);
    buf_append(b, ": ", 2);
    buf_append(b, value.at, value.len);
    buf_append(b, "\r\n", 2);
}

void http_write_header(struct buf *b, const char *name, const char *value)
{
    http_write_field(b, slice(name), slice(value));
}

void http_write_end(struct buf *b)
{
    buf_append(b, "\r\n", 2);
}

/* ---- rebuilding ---- */

static bool is_one_of(struct http_slice name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (http_slice_is(name, names[i]))
            return true;
    return false;
}

static bool is_named_by_connection(const struct http_head *head, struct http_slice name)
{
    struct http_slice rest, token;

    for (size_t i = 0; i < head->n_headers; i++) {
        if (!http_slice_is(head->headers[i].name, "Connection"))
            continue;
        rest = head->headers[i].value;
        while (http_list_next(&rest, &token))
            if (http_same(token.at, token.len, name.at, name.len))
                return true;
    }
    return false;
}

bool http_is_hop_by_hop(const struct http_head *head, struct http_slice name)
{
    static const char *const names[] = {"Connection", "Keep-Alive", "TE",
                                        "Trailer",    "Upgrade",    "HTTP2-Settings"};

    return is_one_of(name, names, sizeof(names) / sizeof(*names)) ||
           (name.len >= 6 && http_same(name.at, 6, "Proxy-", 6)) ||
           is_named_by_connection(head, name);
}

/* Those that are written anew, from their meaning, or meant nothing in what was read. */
static bool is_rewritten(const struct http_head *head, struct http_slice name)
{
    static const char *const names[] = {"Content-Length", "Transfer-Encoding", "Host"};

    return is_one_of(name, names, sizeof(names) / sizeof(*names)) ||
           (http_slice_is(name, "Expect") && !head->expects_continue);
}

static void copy_fields(struct buf *b, const struct http_head *head)
{
    for (size_t i = 0; i < head->n_headers; i++) {
        const struct http_header *h = &head->headers[i];

        if (!is_rewritten(head, h->name) && !http_is_hop_by_hop(head, h->name))
            http_write_field(b, h->name, h->value);
    }
}

static void write_framing(struct buf *b, const struct http_head *head)
{
    if (head->framing == HTTP_CHUNKED)
        http_write_header(b, "Transfer-Encoding", "chunked");
    else if (head->has_length)
        buf_printf(b, "Content-Length: %llu\r\n", (unsigned long long)head->length);
}

/* The target in origin form: an absolute URL may leave out its path (RFC 9112 3.2). */
static void write_request_line(struct buf *b, const struct http_head *head)
{
    const struct http_url *url = &head->url;

    if (head->form != HTTP_ABSOLUTE) {
        http_write_request_line(b, head->method, head->target);
        return;
    }
    if (url->path.len) { /* the query follows it in the same bytes */
        size_t len = url->path.len + (url->has_query ? 1 + url->query.len : 0);

        http_write_request_line(b, head->method, (struct http_slice){url->path.at, len});
        return;
    }
    if (!url->has_query) {
        http_write_request_line(b, head->method, slice(head->method == HTTP_OPTIONS ? "*" : "/"));
        return;
    }
    buf_printf(b, "%s /?", http_method_name(head->method));
    buf_append(b, url->query.at, url->query.len); /* checked when it was parsed */
    buf_puts(b, " HTTP/1.1\r\n");
}

void http_rebuild_request(struct buf *b, const struct http_head *head, struct http_slice host)
{
    write_request_line(b, head);
    if (host.len == 0)
        b->failed = true;
    http_write_field(b, slice("Host"), host);
    copy_fields(b, head);
    write_framing(b, head);
}

void http_rebuild_response(struct buf *b, const struct http_head *head)
{
    http_write_status_line(b, head->status, &head->reason);
    copy_fields(b, head);
    write_framing(b, head);
}
