/* SPDX-License-Identifier: Apache-2.0 */
#include "http/body.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "http/chars.h"

void http_body_init(struct http_body *b, enum http_framing framing, uint64_t length, uint64_t max)
{
    *b = (struct http_body){.framing = framing,
                            .max = max < LIMIT_HTTP_BODY ? max : LIMIT_HTTP_BODY};
    switch (framing) {
    case HTTP_NO_BODY:
        b->state = HTTP_BODY_DONE;
        break;
    case HTTP_BY_LENGTH:
        b->left = length;
        b->state = length ? HTTP_BODY_DATA : HTTP_BODY_DONE;
        break;
    case HTTP_CHUNKED:
        b->state = HTTP_BODY_SIZE;
        break;
    case HTTP_UNTIL_CLOSE:
        b->state = HTTP_BODY_DATA;
        break;
    }
}

bool http_body_is_done(const struct http_body *b)
{
    return b->state == HTTP_BODY_DONE;
}

static int refuse(struct http_body *b, unsigned status, const char *reason)
{
    b->state = HTTP_BODY_REFUSED;
    return http_refuse(&b->fault, status, reason);
}

/* ---- payload ---- */

uint64_t http_body_run(const struct http_body *b)
{
    if (b->state != HTTP_BODY_DATA)
        return 0;
    return b->framing == HTTP_UNTIL_CLOSE ? b->max - b->total : b->left;
}

void http_body_moved(struct http_body *b, uint64_t n)
{
    assert(n <= http_body_run(b));
    b->total += n;
    if (b->framing == HTTP_UNTIL_CLOSE || n == 0)
        return;
    b->left -= n;
    if (b->left == 0)
        b->state = b->framing == HTTP_CHUNKED ? HTTP_BODY_DATA_CR : HTTP_BODY_DONE;
}

static int take_payload(struct http_body *b, size_t len, struct http_piece *piece)
{
    uint64_t run = http_body_run(b);

    if (run == 0) /* until close, and one byte beyond the maximum */
        return refuse(b, 413, "the body is too large");
    piece->at = piece->used;
    piece->len = len - piece->used < run ? len - piece->used : (size_t)run;
    piece->used += piece->len;
    http_body_moved(b, piece->len);
    return 0;
}

/* ---- chunk sizes ---- */

static int take_digit(struct http_body *b, int digit)
{
    if (++b->digits > 16)
        return refuse(b, 400, "a chunk size has more than 16 digits");
    b->left = b->left << 4 | (unsigned)digit;
    return 0;
}

static int after_size(struct http_body *b, char c)
{
    if (b->digits == 0)
        return refuse(b, 400, "a chunk has no size in hex digits");
    if (c != '\r' && c != ';')
        return refuse(b, 400, "a chunk size is followed by neither CRLF nor ';'");
    if (b->left > LIMIT_HTTP_BODY)
        return refuse(b, 400, "a chunk size is out of range");
    if (b->left > b->max - b->total)
        return refuse(b, 413, "the body is too large");
    b->state = c == ';' ? HTTP_BODY_EXTENSION : HTTP_BODY_SIZE_LF;
    return 0;
}

static int take_size(struct http_body *b, char c)
{
    int digit = http_hex(c);

    return digit >= 0 ? take_digit(b, digit) : after_size(b, c);
}

static int take_extension(struct http_body *b, char c)
{
    if (c == '\r') {
        b->state = HTTP_BODY_SIZE_LF;
        return 0;
    }
    if (!http_is(c, HTTP_CHAR_TEXT))
        return refuse(b, 400, "a chunk extension holds a control byte or a bare LF");
    if (++b->skipped > LIMIT_HTTP_EXTENSION)
        return refuse(b, 400, "too many bytes of chunk extensions");
    return 0;
}

static int take_lf(struct http_body *b, char c, enum http_body_state next)
{
    if (c != '\n')
        return refuse(b, 400, "a CR in the chunked body stands without its LF");
    b->state = next;
    return 0;
}

/* ---- trailers ---- */

/* Fields that frame, route, authenticate or change how the content is read (RFC 9110 6.5.1). */
static bool is_forbidden(const char *name, size_t len)
{
    static const char *const names[] = {
        "Transfer-Encoding",
        "Content-Length",
        "Host",
        "Connection",
        "Keep-Alive",
        "TE",
        "Trailer",
        "Upgrade",
        "Authorization",
        "Cookie",
        "Set-Cookie",
        "Content-Type",
        "Content-Range",
        "Content-Encoding",
        "Expect",
        "Range",
        "Location",
        "Origin",
        "HTTP2-Settings",
        "Cache-Control",
        "Max-Forwards",
        "If-Match",
        "If-None-Match",
        "WWW-Authenticate",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (http_same(name, len, names[i], strlen(names[i])))
            return true;
    return len >= 6 && http_same(name, 6, "Proxy-", 6);
}

static int take_name(struct http_body *b, char c)
{
    if (http_is(c, HTTP_CHAR_TOKEN)) {
        if (b->name_len < sizeof(b->name))
            b->name[b->name_len] = c;
        b->name_len++;
        return 0;
    }
    if (c != ':' || b->name_len == 0)
        return refuse(b, 400, "a trailer field is malformed");
    /* A name that was cut has more bytes than any that is compared whole. */
    if (is_forbidden(b->name, b->name_len < sizeof(b->name) ? b->name_len : sizeof(b->name)))
        return refuse(b, 400, "a trailer field that may only stand in the head");
    b->state = HTTP_BODY_VALUE;
    return 0;
}

static int take_trailer(struct http_body *b, char c)
{
    if (++b->trailer > LIMIT_HTTP_TRAILER)
        return refuse(b, 400, "the trailer section is too large");
    if (b->state == HTTP_BODY_FIELD) {
        if (c == '\r') {
            b->state = HTTP_BODY_LAST_LF;
            return 0;
        }
        b->name_len = 0;
        b->state = HTTP_BODY_NAME;
    }
    if (b->state == HTTP_BODY_NAME)
        return take_name(b, c);
    if (c == '\r')
        b->state = HTTP_BODY_VALUE_LF;
    else if (!http_is(c, HTTP_CHAR_TEXT))
        return refuse(b, 400, "a trailer field holds a control byte or a bare LF");
    return 0;
}

/* ---- the whole ---- */

/* One byte that is not payload. */
static int take_frame(struct http_body *b, char c)
{
    int r;

    switch (b->state) {
    case HTTP_BODY_SIZE:
        return take_size(b, c);
    case HTTP_BODY_EXTENSION:
        return take_extension(b, c);
    case HTTP_BODY_SIZE_LF:
        return take_lf(b, c, b->left ? HTTP_BODY_DATA : HTTP_BODY_FIELD);
    case HTTP_BODY_DATA_CR:
        if (c != '\r')
            return refuse(b, 400, "a chunk is longer than its size");
        b->state = HTTP_BODY_DATA_LF;
        return 0;
    case HTTP_BODY_DATA_LF:
        r = take_lf(b, c, HTTP_BODY_SIZE);
        b->digits = 0;
        return r;
    case HTTP_BODY_FIELD:
    case HTTP_BODY_NAME:
    case HTTP_BODY_VALUE:
        return take_trailer(b, c);
    case HTTP_BODY_VALUE_LF:
        return take_lf(b, c, HTTP_BODY_FIELD);
    case HTTP_BODY_LAST_LF:
        return take_lf(b, c, HTTP_BODY_DONE);
    case HTTP_BODY_DATA:
    case HTTP_BODY_DONE:
    case HTTP_BODY_REFUSED:
        break;
    }
    return 0;
}

int http_body_feed(struct http_body *b, const char *data, size_t len, struct http_piece *ret,
                   struct http_fault *fault)
{
    struct http_piece piece = {0};
    int r = 0;

    if (b->state == HTTP_BODY_REFUSED) {
        *fault = b->fault;
        return -(int)fault->status;
    }
    while (r == 0 && piece.len == 0 && piece.used < len && b->state != HTTP_BODY_DONE)
        r = b->state == HTTP_BODY_DATA ? take_payload(b, len, &piece)
                                       : take_frame(b, data[piece.used++]);
    if (r < 0) {
        *fault = b->fault;
        return r;
    }
    *ret = piece;
    return b->state == HTTP_BODY_DONE;
}

int http_body_close(struct http_body *b, struct http_fault *fault)
{
    if (b->state == HTTP_BODY_DATA && b->framing == HTTP_UNTIL_CLOSE)
        b->state = HTTP_BODY_DONE;
    if (b->state == HTTP_BODY_DONE)
        return 0;
    if (b->state != HTTP_BODY_REFUSED)
        (void)refuse(b, 400, "the connection closed inside a body");
    *fault = b->fault;
    return -(int)fault->status;
}

/* ---- the encoder ---- */

void http_write_chunk_size(struct buf *b, uint64_t size)
{
    if (size == 0)
        b->failed = true; /* it would end the body */
    else
        buf_printf(b, "%" PRIx64 "\r\n", size);
}

void http_write_chunk(struct buf *b, const void *data, size_t len)
{
    if (len == 0)
        return;
    http_write_chunk_size(b, len);
    buf_append(b, data, len);
    buf_append(b, "\r\n", 2);
}

void http_write_last_chunk(struct buf *b)
{
    buf_puts(b, "0\r\n\r\n");
}
