/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * HTTP/1.0 and 1.1 as bytes in, events out: what the parts of this folder share. Pure: no
 * descriptors, no clock, and nothing is allocated but by the struct buf that a caller hands to the
 * composer.
 *
 * Strict on purpose: whatever two readers could understand differently is refused, never mended,
 * because one of the two may be the one that decides and the other the one that acts.
 *
 * Slices borrow the bytes they were parsed from, and are good for as long as those stay in place.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMIT_HTTP_HEADERS    100u       /* fields of one head; browsers send twenty */
#define LIMIT_HTTP_LINE       (8u << 10) /* one field or status line, as nginx and Apache have it */
#define LIMIT_HTTP_HEAD       (64u << 10) /* a whole head with its last CRLF */
#define LIMIT_HTTP_TARGET     (8u << 10)  /* a request target: RFC 9112 asks for 8000 at least */
#define LIMIT_HTTP_METHOD     32u         /* the longest registered one has 17 bytes */
#define LIMIT_HTTP_HOST       255u        /* a DNS name has 253 */
#define LIMIT_HTTP_CONNECTION 16u        /* names in Connection: each is compared with each field */
#define LIMIT_HTTP_EXTENSION  256u       /* chunk extensions of one body: nobody uses them */
#define LIMIT_HTTP_TRAILER    (8u << 10) /* the trailer section of one body, read and dropped */
/* A body's bytes: lengths stay inside what off_t and splice() can count. */
#define LIMIT_HTTP_BODY ((uint64_t)INT64_MAX)

struct http_slice {
    const char *at;
    size_t len;
};

/*
 * Why bytes are refused, and the status to answer before closing the connection. The reason is a
 * constant of ours: it holds no byte of the peer's, so it may be logged and sent as it is.
 */
struct http_fault {
    unsigned status;
    const char *reason;
};

/* Returns -status, so that a refusal is told and returned in one line. */
static inline int http_refuse(struct http_fault *fault, unsigned status, const char *reason)
{
    *fault = (struct http_fault){.status = status, .reason = reason};
    return -(int)status;
}

/* The methods that are let in; any other is answered 405. TRACE is none: it echoes credentials. */
enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_PATCH,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_CONNECT,
    /* WebDAV and Subversion */
    HTTP_PROPFIND,
    HTTP_PROPPATCH,
    HTTP_MKCOL,
    HTTP_COPY,
    HTTP_MOVE,
    HTTP_LOCK,
    HTTP_UNLOCK,
    HTTP_REPORT,
    HTTP_MKACTIVITY,
    HTTP_CHECKOUT,
    HTTP_MERGE,
};

/* What says where a body ends. */
enum http_framing {
    HTTP_NO_BODY,
    HTTP_BY_LENGTH,
    HTTP_CHUNKED,
    HTTP_UNTIL_CLOSE, /* responses only */
};
