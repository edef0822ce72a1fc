/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Authorities (host[:port]), absolute http and https URLs, and the path and query of a target.
 *
 * Nothing is decoded or normalised: slices are the bytes as they came, checked. A host is letters,
 * digits, '-', '.' and '_', or hex digits, ':' and '.' in brackets; whether it is a name or a
 * spelling of an address is for the egress layer's canonicaliser. Userinfo, fragments, escapes in
 * hosts and empty ports are refused.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/http.h"

struct http_url {
    bool https;
    bool has_query;              /* "/?" has one, an empty one */
    bool is_ipv6;                /* it was written in brackets */
    uint16_t port;               /* as written, or 0 */
    struct http_slice authority; /* host and port as written */
    struct http_slice host;      /* without brackets */
    struct http_slice path;      /* begins with '/', or is empty in an absolute URL */
    struct http_slice query;     /* without '?' */
};

/* host[:port]: fills authority, host, is_ipv6 and port of an otherwise empty url. */
int http_authority_parse(const char *text, size_t len, struct http_url *ret,
                         struct http_fault *fault);
/* http://host[:port][/path][?query], or https. */
int http_url_parse(const char *text, size_t len, struct http_url *ret, struct http_fault *fault);
/* /path[?query]: fills path, query and has_query of an otherwise empty url. */
int http_path_parse(const char *text, size_t len, struct http_url *ret, struct http_fault *fault);

/* The port as written, or the scheme's. */
uint16_t http_url_port(const struct http_url *url);

/*
 * One path segment with its %XX decoded and a NUL after it; its length, or a refusal: of '/' raw or
 * as %2f, of %00, of a '%' without two hex digits, and of what does not fit. "." and ".." are the
 * caller's to judge, on the decoded text.
 */
int http_segment_decode(const char *text, size_t len, char *ret, size_t size,
                        struct http_fault *fault);
