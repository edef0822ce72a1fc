/* SPDX-License-Identifier: Apache-2.0 */
#include "http/url.h"

#include <string.h>

#include "http/chars.h"

/* The bytes of the host with its brackets, or 0. Takes only what is surely inside. */
static size_t read_host(const char *text, size_t len, struct http_url *url)
{
    size_t n;

    if (len == 0 || text[0] != '[') {
        n = http_span(text, len, HTTP_CHAR_HOST);
        url->host = (struct http_slice){text, n};
        return n <= LIMIT_HTTP_HOST ? n : 0;
    }
    for (n = 1; n < len && (http_is(text[n], HTTP_CHAR_HEX) || text[n] == ':' || text[n] == '.');)
        n++;
    if (n == len || text[n] != ']' || n < 3 || n > LIMIT_HTTP_HOST)
        return 0;
    url->is_ipv6 = true;
    url->host = (struct http_slice){text + 1, n - 1};
    return n + 1;
}

int http_authority_parse(const char *text, size_t len, struct http_url *ret,
                         struct http_fault *fault)
{
    struct http_url url = {.authority = {text, len}};
    size_t n = read_host(text, len, &url);
    uint64_t port;

    if (n == 0)
        return http_refuse(fault, 400, "the host is missing, too long or malformed");
    if (n < len) {
        if (text[n] != ':')
            return http_refuse(fault, 400, "the host holds what no host may");
        if (!http_number((struct http_slice){text + n + 1, len - n - 1}, 65535, &port) || port == 0)
            return http_refuse(fault, 400, "the port is no number from 1 to 65535");
        url.port = (uint16_t)port;
    }
    *ret = url;
    return 0;
}

/* [/path][?query] at the end of any target. */
static int read_path(const char *text, size_t len, struct http_url *url, struct http_fault *fault)
{
    const char *mark = len ? memchr(text, '?', len) : NULL;

    if (http_span(text, len, HTTP_CHAR_TARGET) != len)
        return http_refuse(fault, 400,
                           "the target holds a blank, a control byte, '#' or a non-ASCII byte");
    url->path = (struct http_slice){text, mark ? (size_t)(mark - text) : len};
    if (mark) {
        url->has_query = true;
        url->query = (struct http_slice){mark + 1, len - url->path.len - 1};
    }
    return 0;
}

int http_path_parse(const char *text, size_t len, struct http_url *ret, struct http_fault *fault)
{
    struct http_url url = {0};
    int r;

    if (len == 0 || text[0] != '/')
        return http_refuse(fault, 400, "the path does not begin with '/'");
    r = read_path(text, len, &url, fault);
    if (r < 0)
        return r;
    *ret = url;
    return 0;
}

int http_url_parse(const char *text, size_t len, struct http_url *ret, struct http_fault *fault)
{
    struct http_url url;
    size_t scheme, end;
    bool https;
    int r;

    https = len >= 8 && http_same(text, 8, "https://", 8);
    if (!https && (len < 7 || !http_same(text, 7, "http://", 7)))
        return http_refuse(fault, 400, "the target is no http or https URL");
    scheme = https ? 8 : 7;
    for (end = scheme; end < len && text[end] != '/' && text[end] != '?';) {
        if (text[end] == '@')
            return http_refuse(fault, 400, "the URL carries a user name");
        end++;
    }
    r = http_authority_parse(text + scheme, end - scheme, &url, fault);
    if (r < 0)
        return r;
    url.https = https;
    r = read_path(text + end, len - end, &url, fault);
    if (r < 0)
        return r;
    *ret = url;
    return 0;
}

uint16_t http_url_port(const struct http_url *url)
{
    if (url->port)
        return url->port;
    return url->https ? 443 : 80;
}

int http_segment_decode(const char *text, size_t len, char *ret, size_t size,
                        struct http_fault *fault)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (c == '%') {
            int high = len - i > 2 ? http_hex(text[i + 1]) : -1;
            int low = len - i > 2 ? http_hex(text[i + 2]) : -1;

            if (high < 0 || low < 0)
                return http_refuse(fault, 400, "a '%' without two hex digits");
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (c == 0 || c == '/')
            return http_refuse(fault, 400, "a path segment holds a NUL or a '/'");
        if (n + 1 >= size)
            return http_refuse(fault, 414, "a path segment is too long");
        ret[n++] = c;
    }
    if (size == 0)
        return http_refuse(fault, 414, "a path segment is too long");
    ret[n] = 0;
    return (int)n;
}
