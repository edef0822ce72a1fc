/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads the head of a request or response. The caller collects bytes in one growing buffer and
 * calls again when there are more; each byte is looked at once, so a peer that sends single bytes
 * costs no more than one that sends all at once, and a split changes no result.
 *
 * What comes out keeps these:
 * H1: one reading only. Line ends are CRLF, nothing is folded, blank or control bytes stand nowhere
 *     they are not meant to, and a name that decides something (Host, the framing, credentials)
 *     comes at most once.
 * H2: the framing is decided here: a length or "chunked", never both, and never a guess.
 * H3: a request has a method of ours, a target in the form that goes with it, and where the target
 *     names a host, no Host that says another.
 *
 * The parser holds no memory and needs no release; a refusal is final and is repeated.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/http.h"
#include "http/url.h"

enum http_target_form {
    HTTP_ORIGIN,    /* /path?query; url has path and query */
    HTTP_ABSOLUTE,  /* http://host/path; url has everything */
    HTTP_AUTHORITY, /* CONNECT host:port; url has host and port */
    HTTP_ASTERISK,  /* OPTIONS *; url is empty */
};

struct http_header {
    struct http_slice name, value; /* the value without blanks around it */
};

struct http_head {
    /* of a request */
    enum http_method method;
    enum http_target_form form;
    struct http_slice method_text, target;
    struct http_url url;
    struct http_url host;  /* the Host field; host.host.at is NULL without one (HTTP/1.0) */
    bool expects_continue; /* the client waits for 100 before it sends its body */

    /* of a response */
    unsigned status;
    struct http_slice reason;

    /* of both */
    unsigned minor;  /* HTTP/1.minor: 0 or 1 */
    bool keep_alive; /* HTTP/1.1 without "Connection: close", and the body ends by itself */
    bool has_length; /* also where no body follows: the answer to HEAD, and 304 */
    uint64_t length;
    enum http_framing framing;
    size_t n_headers;
    struct http_header headers[LIMIT_HTTP_HEADERS];
};

struct http_parser {
    bool is_response, started, skipped_line;
    enum http_method asked;
    uint64_t max_body;
    uint32_t seen; /* bytes already looked at */
    uint32_t line; /* where the line that is being read begins */
    uint32_t start, start_len;
    uint32_t n;
    struct {
        uint32_t name, value;
        uint16_t name_len, value_len;
    } fields[LIMIT_HTTP_HEADERS];
    struct http_fault fault; /* of a refusal; status 0 before */
};

/* A body announced with more than max_body bytes is refused with 413. */
void http_parser_init_request(struct http_parser *p, uint64_t max_body);
/* `asked` is the method of the request that is being answered. Every refusal has status 502. */
void http_parser_init_response(struct http_parser *p, enum http_method asked, uint64_t max_body);

/*
 * `data` is all that has come since the message began: `len` bytes, of which the earlier ones are
 * the same as in the last call (they may stand elsewhere). Returns 0 while the end of the head is
 * not there; its length once it is, with *ret filled, whose slices point into `data`; or a refusal,
 * -status. *ret is undefined but in the second case.
 */
int http_parse(struct http_parser *p, const char *data, size_t len, struct http_head *ret,
               struct http_fault *fault);

/* The first field of that name, or NULL. */
const struct http_slice *http_find(const struct http_head *head, const char *name);
/* Does one of the comma-separated lists of that name hold the token? */
bool http_lists(const struct http_head *head, const char *name, const char *token);
/* The next element of a comma-separated list, trimmed, maybe empty; false at its end. */
bool http_list_next(struct http_slice *rest, struct http_slice *ret);
/* "GET". */
const char *http_method_name(enum http_method method);
