/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/hello.h"

#include <string.h>

#include "base/error.h"

#define RECORD_HEADER  5u
#define RECORD_MAX     16384u
#define MESSAGE_HEADER 4u

enum { CONTENT_HANDSHAKE = 22, MESSAGE_CLIENT_HELLO = 1, NAME_TYPE_HOST = 0 };
enum {
    EXTENSION_SERVER_NAME = 0,
    EXTENSION_SUPPORTED_VERSIONS = 43,
    EXTENSION_ECH = 0xfe0d,
    EXTENSION_ESNI = 0xffce, /* its draft */
};

void hello_init(struct hello *h)
{
    memset(h, 0, offsetof(struct hello, raw));
}

/* ---- the message, once it is whole ---- */

struct reader {
    const uint8_t *at, *end;
};

static bool take_number(struct reader *r, size_t bytes, unsigned *ret)
{
    unsigned v = 0;

    if ((size_t)(r->end - r->at) < bytes)
        return false;
    while (bytes-- > 0)
        v = v << 8 | *r->at++;
    *ret = v;
    return true;
}

/* A block that stands behind its length. */
static bool take_block(struct reader *r, size_t length_bytes, struct reader *ret)
{
    unsigned n;

    if (!take_number(r, length_bytes, &n) || (size_t)(r->end - r->at) < n)
        return false;
    *ret = (struct reader){r->at, r->at + n};
    r->at += n;
    return true;
}

static bool is_empty(const struct reader *r)
{
    return r->at == r->end;
}

static bool read_server_name(struct hello *h, struct reader ext)
{
    struct reader list, name;
    unsigned type, names = 0;
    struct error err;

    if (!take_block(&ext, 2, &list) || !is_empty(&ext) || is_empty(&list))
        return false;
    for (; !is_empty(&list); names++) {
        if (!take_number(&list, 1, &type) || !take_block(&list, 2, &name))
            return false;
        if (type != NAME_TYPE_HOST)
            names++; /* nobody has defined another: whatever it says, it is not one name */
    }
    if (names != 1) {
        h->sni = HELLO_SNI_SEVERAL;
        return true;
    }
    if (host_parse((const char *)name.at, (size_t)(name.end - name.at), HOST_BARE, &h->host, &err) <
        0) {
        h->sni = HELLO_SNI_INVALID;
        h->problem = "its server name is not a host";
    } else {
        h->sni = h->host.kind == HOST_NAME ? HELLO_SNI_NAME : HELLO_SNI_ADDRESS;
    }
    return true;
}

static bool read_versions(struct hello *h, struct reader ext)
{
    struct reader list;
    unsigned v;

    if (!take_block(&ext, 1, &list) || !is_empty(&ext) || is_empty(&list))
        return false;
    h->version = 0; /* the old field counts no longer */
    while (!is_empty(&list)) {
        if (!take_number(&list, 2, &v))
            return false;
        if (v >> 8 == 3 && v > h->version) /* others are there to keep servers tolerant */
            h->version = (uint16_t)v;
    }
    return true;
}

static bool read_extensions(struct hello *h, struct reader all)
{
    bool has_name = false, has_versions = false;

    while (!is_empty(&all)) {
        struct reader ext;
        unsigned type;
        bool fine = true;

        if (!take_number(&all, 2, &type) || !take_block(&all, 2, &ext))
            return false;
        switch (type) {
        case EXTENSION_SERVER_NAME: /* twice: two servers could each see another one */
            fine = !has_name && read_server_name(h, ext);
            has_name = true;
            break;
        case EXTENSION_SUPPORTED_VERSIONS:
            fine = !has_versions && read_versions(h, ext);
            has_versions = true;
            break;
        case EXTENSION_ECH:
        case EXTENSION_ESNI:
            h->ech = true;
            break;
        default:
            break;
        }
        if (!fine)
            return false;
    }
    return true;
}

static bool read_message(struct hello *h, struct reader r)
{
    struct reader block;
    unsigned version;

    if (!take_number(&r, 2, &version) || version >> 8 != 3 || r.end - r.at < 32)
        return false;
    h->version = (uint16_t)version;
    r.at += 32; /* random */
    if (!take_block(&r, 1, &block) || block.end - block.at > 32)
        return false; /* session */
    if (!take_block(&r, 2, &block) || is_empty(&block) || (block.end - block.at) % 2)
        return false; /* cipher suites */
    if (!take_block(&r, 1, &block) || is_empty(&block))
        return false; /* compression */
    if (is_empty(&r))
        return true; /* before TLS 1.2 extensions could be missing */
    return take_block(&r, 2, &block) && is_empty(&r) && read_extensions(h, block);
}

/* Joins what the records carry. */
static size_t join_records(const struct hello *h, uint8_t *out)
{
    size_t n = 0;

    for (size_t at = 0; at < h->n;) {
        size_t len = (size_t)h->raw[at + 3] << 8 | h->raw[at + 4];

        memcpy(out + n, h->raw + at + RECORD_HEADER, len);
        n += len;
        at += RECORD_HEADER + len;
    }
    return n;
}

static void finish(struct hello *h)
{
    uint8_t message[LIMIT_HELLO];
    size_t n = join_records(h, message);

    h->state = HELLO_DONE;
    if (!read_message(h, (struct reader){message + MESSAGE_HEADER, message + n})) {
        h->state = HELLO_MALFORMED;
        h->problem = "the hello is malformed";
    }
}

/* ---- byte by byte, so that no cut matters ---- */

static void fail(struct hello *h, enum hello_state state, const char *problem)
{
    h->state = state;
    h->problem = problem;
}

/* SSLv2: two bytes of length with the top bit set, then type 1 and the version. */
static void on_first_header_byte(struct hello *h, size_t at, uint8_t c)
{
    bool old = h->raw[0] & 0x80;

    if (at == 0 && c != CONTENT_HANDSHAKE && !old)
        fail(h, HELLO_NOT_TLS, "it does not begin with a TLS record");
    else if (at == 1 && !old && c != 3)
        fail(h, HELLO_NOT_TLS, "it does not begin with a TLS record");
    else if (at == 2 && old)
        fail(h, c == MESSAGE_CLIENT_HELLO ? HELLO_SSLV2 : HELLO_NOT_TLS,
             "it does not begin with a TLS record");
}

static void on_header_byte(struct hello *h, uint8_t c)
{
    size_t at = h->n - 1 - h->record_at, len;

    if (h->record_at == 0 && at < 3) {
        on_first_header_byte(h, at, c);
    } else if ((at == 0 && c != CONTENT_HANDSHAKE) || (at == 1 && c != 3)) {
        fail(h, HELLO_MALFORMED, "another record stands within the hello");
    } else if (at == RECORD_HEADER - 1) {
        len = (size_t)h->raw[h->n - 2] << 8 | c;
        if (len == 0 || len > RECORD_MAX)
            fail(h, HELLO_MALFORMED, "a record is empty or longer than TLS allows");
        else if (h->n + len > LIMIT_HELLO)
            fail(h, HELLO_TOO_LARGE, "the hello is longer than 16 KiB");
        h->record_end = h->n + len;
    }
}

static void on_body_byte(struct hello *h, uint8_t c)
{
    h->body++;
    if (h->body == 1 && c != MESSAGE_CLIENT_HELLO) {
        fail(h, HELLO_MALFORMED, "the first message is not a hello");
    } else if (h->body > 1 && h->body <= MESSAGE_HEADER) {
        h->message = h->message << 8 | c;
        if (h->body == MESSAGE_HEADER && h->message > LIMIT_HELLO - RECORD_HEADER - MESSAGE_HEADER)
            fail(h, HELLO_TOO_LARGE, "the hello is longer than 16 KiB");
    } else if (h->body > MESSAGE_HEADER + h->message) {
        /* What a server would read there is not known; no client sends it. */
        fail(h, HELLO_MALFORMED, "something follows the hello in its record");
    }
    if (h->state != HELLO_MORE || h->n < h->record_end)
        return;
    h->record_at = h->record_end;
    h->record_end = 0;
    if (h->body >= MESSAGE_HEADER && h->body == MESSAGE_HEADER + h->message)
        finish(h);
}

enum hello_state hello_feed(struct hello *h, const uint8_t *data, size_t len, size_t *ret_used)
{
    size_t used = 0;

    while (h->state == HELLO_MORE && used < len) {
        uint8_t c = data[used];

        if (h->n == LIMIT_HELLO) {
            fail(h, HELLO_TOO_LARGE, "the hello is longer than 16 KiB");
            break;
        }
        used++;
        h->raw[h->n++] = c;
        if (h->record_end == 0)
            on_header_byte(h, c);
        else
            on_body_byte(h, c);
    }
    *ret_used = used;
    return h->state;
}
