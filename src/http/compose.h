/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes heads into a struct buf, always as HTTP/1.1. A name that is no token, or a value with a
 * control byte, is a mistake of the program, not of the peer: the buffer fails, so that half a
 * header, or two in one, never leaves. As with every buf, the writer checks `failed` once, at the
 * end.
 *
 * A proxy does not pass a head on, it rebuilds it: http_rebuild_request() and _response() write the
 * target, Host and the framing from what was understood and copy only the fields that are meant for
 * the far end. Then come the caller's own fields, then http_write_end().
 */
#include <stdbool.h>
#include <stddef.h>

#include "http/head.h"
#include "http/http.h"

struct buf;

void http_write_request_line(struct buf *b, enum http_method method, struct http_slice target);
/* Status 100 to 599; reason NULL for the usual words. */
void http_write_status_line(struct buf *b, unsigned status, const struct http_slice *reason);
void http_write_header(struct buf *b, const char *name, const char *value);
void http_write_field(struct buf *b, struct http_slice name, struct http_slice value);
/* The empty line. */
void http_write_end(struct buf *b);

/* Meant for the next hop only: Connection, what it names, and what belongs to proxies. */
bool http_is_hop_by_hop(const struct http_head *head, struct http_slice name);

/*
 * The request as the origin server gets it: the target in origin form (that of CONNECT as it is),
 * `host` as its Host, the fields for the far end, the framing; without the empty line.
 */
void http_rebuild_request(struct buf *b, const struct http_head *head, struct http_slice host);
/* The same for a response. Until close: the caller says "Connection: close", or makes chunks. */
void http_rebuild_response(struct buf *b, const struct http_head *head);

/* "Not Found"; "" for what has no usual words. */
const char *http_status_text(unsigned status);
