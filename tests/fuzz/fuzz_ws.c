/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes behind a good handshake: what comes back is frames of a server, whole ones, none after
 * a close frame; messages are within their limit and text is UTF-8; and pieces change nothing.
 */
#include "http/websocket.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "tests/fuzz/memory_stream.h"

#define MOST 200
#define HANDSHAKE                                                                \
    "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

struct seen {
    unsigned sockets, gone, closed;
};

static bool is_utf8(const char *data, size_t len)
{
    size_t n;
    uint32_t c;

    for (size_t at = 0; at < len; at += n) {
        n = utf8_take(data + at, len - at, &c);
        if (n == 0)
            return false;
    }
    return true;
}

/* "bye" is a reason to close. */
static void on_message(struct ws *w, bool is_text, const char *data, size_t len)
{
    struct seen *s = ws_user(w);

    PROPERTY(s->gone + s->closed == 0, "a message after the end");
    PROPERTY(len <= MOST, "a message of %zu", len);
    PROPERTY(!is_text || is_utf8(data, len), "text that is none");
    if (len == 3 && memcmp(data, "bye", 3) == 0) {
        s->closed++;
        ws_close(w, 1000, "bye");
        return;
    }
    (void)ws_send(w, is_text, data, len);
}

static void on_ws_gone(struct ws *w, unsigned code)
{
    ((struct seen *)ws_user(w))->gone++;
    PROPERTY(code >= 1000 && code < 5000, "code %u", code);
}

static const struct ws_ops echo = {.on_message = on_message, .on_gone = on_ws_gone};

static void on_request(struct http_exchange *x)
{
    struct seen *s = http_server_user(x->server);
    const struct ws_options o = {.ops = &echo, .user = s, .max_message = MOST};

    s->sockets++;
    PROPERTY(ws_accept(x, &o), "a good handshake was refused");
}

static void on_nothing(struct http_exchange *x)
{
    PROPERTY(!x, "the exchange has become a socket");
}

static void on_body(struct http_exchange *x, const char *data, size_t len, bool last)
{
    (void)data;
    (void)len;
    (void)last;
    on_nothing(x);
}

static const struct http_server_ops ops = {
    .on_request = on_request, .on_body = on_body, .on_gone = on_nothing, .on_writable = on_nothing};

/*
 * A sum of what does not depend on pieces: pongs of pings in the same read as a fault are not sent,
 * and of two faults in one frame either may be told.
 */
static uint64_t check_frames(const uint8_t *at, size_t len)
{
    uint64_t sum = 0;
    bool closed = false;

    while (len) {
        size_t n, head = 2;
        unsigned opcode = at[0] & 15;

        PROPERTY(!closed, "a frame after the goodbye");
        PROPERTY(len >= 2 && (at[0] & 0xf0) == 0x80 && !(at[1] & 0x80), "frame 0x%x", at[0]);
        n = at[1];
        if (n == 126) {
            n = (size_t)at[2] << 8 | at[3];
            head = 4;
        }
        PROPERTY(opcode == 1 || opcode == 2 || (opcode >= 8 && opcode <= 10 && n <= 125),
                 "opcode %u of %zu", opcode, n);
        PROPERTY(n <= MOST && len >= head + n, "a frame of %zu", n);
        PROPERTY(opcode != 1 || is_utf8((const char *)at + head, n), "text that is none");
        if (opcode == 8) {
            PROPERTY(n != 1 && is_utf8((const char *)at + head + 2, n > 2 ? n - 2 : 0), "a reason");
            closed = true;
        }
        for (size_t i = 0; opcode < 8 && i < head + n; i++)
            sum = sum * 1099511628211u + at[i] + 1;
        at += head + n;
        len -= head + n;
    }
    return sum;
}

static uint64_t talk(const char *data, size_t size, size_t step)
{
    struct memory m = {.in = data, .len = size, .step = step};
    struct seen seen = {0};
    const char *end;
    uint64_t sum;

    memory_run(&m, &ops, &seen);
    PROPERTY(seen.sockets == 1 && seen.gone + seen.closed == 1, "%u sockets, %u gone, %u closed",
             seen.sockets, seen.gone, seen.closed);
    end = strstr(m.out.data, "\r\n\r\n");
    PROPERTY(end, "no handshake: %s", m.out.data);
    end += 4;
    sum = check_frames((const uint8_t *)end, m.out.len - (size_t)(end - m.out.data));
    buf_done(&m.out);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *all = NULL;

    if (size > 4096)
        size = 4096;
    all = malloc(sizeof(HANDSHAKE) - 1 + size);
    if (!all)
        abort();
    memcpy(all, HANDSHAKE, sizeof(HANDSHAKE) - 1);
    memcpy(all + sizeof(HANDSHAKE) - 1, data, size);
    size += sizeof(HANDSHAKE) - 1;
    PROPERTY(talk(all, size, SIZE_MAX) == talk(all, size, 1), "pieces change what comes back");
    return 0;
}
