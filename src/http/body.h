/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The bytes of a body, told from what frames them. A push decoder: it is given bytes, says how many
 * it took and which of them are payload, and keeps nothing of them. The encoder writes chunks.
 *
 * Chunked is read strictly: a size is 1 to 16 hex digits, line ends are CRLF, extensions are
 * skipped within LIMIT_HTTP_EXTENSION bytes. A trailer section is checked within
 * LIMIT_HTTP_TRAILER bytes and dropped; a field in it that could change what the head said is
 * refused. Refusals have status 400 or 413; of an answer from upstream the caller makes 502.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/http.h"

struct buf;

enum http_body_state {
    HTTP_BODY_DATA,
    HTTP_BODY_SIZE,
    HTTP_BODY_EXTENSION,
    HTTP_BODY_SIZE_LF,
    HTTP_BODY_DATA_CR,
    HTTP_BODY_DATA_LF,
    HTTP_BODY_FIELD, /* a line of the trailer section begins */
    HTTP_BODY_NAME,
    HTTP_BODY_VALUE,
    HTTP_BODY_VALUE_LF,
    HTTP_BODY_LAST_LF,
    HTTP_BODY_DONE,
    HTTP_BODY_REFUSED,
};

struct http_body {
    enum http_framing framing;
    enum http_body_state state;
    uint64_t left;     /* payload bytes that surely follow; without meaning until close */
    uint64_t total;    /* payload bytes seen */
    uint64_t max;      /* more are refused with 413 */
    uint32_t digits;   /* of the size that is being read */
    uint32_t skipped;  /* bytes of extensions */
    uint32_t trailer;  /* bytes of the trailer section */
    uint32_t name_len; /* of a trailer field; longer than the buffer: no name of ours */
    char name[24];
    struct http_fault fault;
};

/* What one call took: `used` bytes, of which `len` from `at` on are payload. */
struct http_piece {
    size_t used, at, len;
};

/* From a head's framing and length; max at most LIMIT_HTTP_BODY. */
void http_body_init(struct http_body *b, enum http_framing framing, uint64_t length, uint64_t max);

/*
 * Takes bytes up to the end of the first run of payload, at least one if there is one and the body
 * is not done. Returns 1 when the body is complete (what is left belongs to the next message), 0
 * while it is not, or a refusal.
 */
int http_body_feed(struct http_body *b, const char *data, size_t len, struct http_piece *ret,
                   struct http_fault *fault);
/* The peer has closed: 0 if the body may end here. */
int http_body_close(struct http_body *b, struct http_fault *fault);
bool http_body_is_done(const struct http_body *b);

/* How many of the next bytes are payload, so that they may be moved without being looked at. */
uint64_t http_body_run(const struct http_body *b);
/* So many of them were moved: at most http_body_run(). */
void http_body_moved(struct http_body *b, uint64_t n);

/* ---- the encoder ---- */

/* One chunk; nothing for no bytes, because an empty chunk ends the body. */
void http_write_chunk(struct buf *b, const void *data, size_t len);
/* Its size line alone; the payload and a CRLF must follow. Size 0 fails. */
void http_write_chunk_size(struct buf *b, uint64_t size);
void http_write_last_chunk(struct buf *b);
