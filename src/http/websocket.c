/* SPDX-License-Identifier: Apache-2.0 */
#include "http/websocket.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <wslay/wslay.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "http/chars.h"
#include "http/server.h"
#include "loop/loop.h"

#define FRAME_HEAD 14u /* of a frame, at most */

struct ws {
    struct http_exchange *x;
    struct ws_options o;
    struct wslay_event_context *frames;
    const char *in; /* what on_bytes() was given and wslay has not taken */
    size_t in_len;
    struct buf message;
    unsigned n_fragments;
    bool is_text, is_data; /* of the frame that is being read */
    bool is_stopped;       /* the handler was told to stop */
    bool is_closed;        /* by the handler */
    unsigned broken;       /* the code for what wslay lets pass and we do not, or 0 */
    unsigned code;
    struct loop_timer ping;
    bool was_heard, was_asked;
};

/* ---- the handshake ---- */

/* SHA-1 is what the RFC names: it proves that the server knows the protocol, and nothing else. */
static bool make_answer(struct http_slice key, char ret[32])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    char text[64];

    memcpy(text, key.at, 24);
    memcpy(text + 24, guid, sizeof(guid) - 1);
    if (!EVP_Digest(text, 24 + sizeof(guid) - 1, digest, &len, EVP_sha1(), NULL) || len != 20)
        return false;
    (void)EVP_EncodeBlock((unsigned char *)ret, digest, (int)len);
    return true;
}

/* 16 bytes in base64: 21 digits, one whose low bits are 0, "==". */
static bool is_key(struct http_slice key)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    if (key.len != 24 || key.at[22] != '=' || key.at[23] != '=' || !strchr("AQgw", key.at[21]))
        return false;
    for (size_t i = 0; i < 21; i++)
        if (!memchr(digits, key.at[i], 64))
            return false;
    return true;
}

/* The only field of that name, or NULL. */
static const struct http_slice *find_once(const struct http_head *head, const char *name)
{
    const struct http_slice *found = NULL;

    for (size_t i = 0; i < head->n_headers; i++) {
        if (!http_slice_is(head->headers[i].name, name))
            continue;
        if (found)
            return NULL;
        found = &head->headers[i].value;
    }
    return found;
}

static bool refuse(struct http_exchange *x, unsigned status, const char *why)
{
    static const struct http_field upgrade[] = {{"Upgrade", "websocket"},
                                                {"Sec-WebSocket-Version", "13"}};
    static const struct http_field allow[] = {{"Allow", "GET"}};

    if (status == 426)
        http_fail_with(x, status, why, upgrade, 2);
    else
        http_fail_with(x, status, why, allow, status == 405);
    return false;
}

static bool check_handshake(struct http_exchange *x, const struct ws_options *o)
{
    const struct http_head *head = x->head;
    const struct http_slice *version = find_once(head, "Sec-WebSocket-Version");
    const struct http_slice *key = find_once(head, "Sec-WebSocket-Key");

    if (x->method != HTTP_GET)
        return refuse(x, 405, NULL);
    if (head->minor == 0 || !http_lists(head, "Upgrade", "websocket") ||
        !http_lists(head, "Connection", "Upgrade"))
        return refuse(x, 426, "a WebSocket is needed here");
    if (!version || !http_slice_is(*version, "13"))
        return refuse(x, 426, "Sec-WebSocket-Version is not 13");
    if (!key || !is_key(*key))
        return refuse(x, 400, "Sec-WebSocket-Key is not 16 bytes in base64");
    if (o->protocol && !http_lists(head, "Sec-WebSocket-Protocol", o->protocol))
        return refuse(x, 400, "Sec-WebSocket-Protocol does not name what is spoken here");
    return true;
}

/* ---- frames ---- */

static ssize_t pull(wslay_event_context_ptr frames, uint8_t *data, size_t size, int flags,
                    void *user)
{
    struct ws *w = user;
    size_t n = w->in_len < size ? w->in_len : size;

    (void)flags;
    if (n == 0) {
        wslay_event_set_error(frames, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(data, w->in, n);
    w->in += n;
    w->in_len -= n;
    return (ssize_t)n;
}

/* The connection's buffer takes all, or the connection is dropped, which it notices by itself. */
static ssize_t push(wslay_event_context_ptr frames, const uint8_t *data, size_t len, int flags,
                    void *user)
{
    struct ws *w = user;

    (void)frames;
    (void)flags;
    w->is_stopped |= !http_upgrade_write(w->x, data, len);
    return (ssize_t)len;
}

static void fail(struct ws *w, unsigned code)
{
    w->code = code;
    (void)wslay_event_queue_close(w->frames, (uint16_t)code, NULL, 0);
    wslay_event_shutdown_read(w->frames);
}

static void on_frame(wslay_event_context_ptr frames,
                     const struct wslay_event_on_frame_recv_start_arg *frame, void *user)
{
    struct ws *w = user;

    (void)frames;
    w->is_data = !wslay_is_ctrl_frame(frame->opcode);
    if (frame->opcode == WSLAY_CONNECTION_CLOSE && frame->payload_length == 1)
        w->broken = WSLAY_CODE_PROTOCOL_ERROR; /* half a code, which wslay takes for none */
    if (!w->is_data)
        return;
    if (frame->opcode != WSLAY_CONTINUATION_FRAME) {
        buf_clear(&w->message);
        w->n_fragments = 0;
        w->is_text = frame->opcode == WSLAY_TEXT_FRAME;
    }
    if (++w->n_fragments > LIMIT_WS_FRAGMENTS)
        fail(w, WSLAY_CODE_POLICY_VIOLATION);
}

static void on_chunk(wslay_event_context_ptr frames,
                     const struct wslay_event_on_frame_recv_chunk_arg *chunk, void *user)
{
    struct ws *w = user;

    (void)frames;
    if (!w->is_data || w->code)
        return;
    buf_append(&w->message, chunk->data, chunk->data_length);
    if (w->message.failed)
        fail(w, WSLAY_CODE_MESSAGE_TOO_BIG);
}

/* wslay misses the end of a reason that comes in pieces. */
static void check_reason(struct ws *w, const uint8_t *msg, size_t len)
{
    size_t at = 2, n;
    uint32_t c;

    while (at < len) {
        n = utf8_take((const char *)msg + at, len - at, &c);
        if (n == 0)
            w->broken = WSLAY_CODE_INVALID_FRAME_PAYLOAD_DATA;
        at += n ? n : len;
    }
}

static void on_whole(wslay_event_context_ptr frames, const struct wslay_event_on_msg_recv_arg *msg,
                     void *user)
{
    struct ws *w = user;

    (void)frames;
    if (msg->opcode == WSLAY_CONNECTION_CLOSE)
        check_reason(w, msg->msg, msg->msg_length);
    if (wslay_is_ctrl_frame(msg->opcode) || w->code || w->is_closed)
        return;
    w->o.ops->on_message(w, w->is_text, w->message.data ? w->message.data : "", w->message.len);
    buf_done(&w->message);
}

/* ---- the connection ---- */

static struct ws *ws_of(struct http_exchange *x)
{
    return http_upgrade_user(x);
}

/* What wslay's frame reader refuses it does not name to the peer: lengths that are no lengths, and
 * control frames that are too long or in fragments. */
static void refuse_frame(struct ws *w, unsigned code)
{
    const uint8_t frame[] = {0x88, 2, (uint8_t)(code >> 8), (uint8_t)code};

    w->code = code;
    (void)http_upgrade_write(w->x, frame, sizeof(frame));
    http_upgrade_end(w->x);
}

static void on_bytes(struct http_exchange *x, const char *data, size_t len)
{
    struct ws *w = ws_of(x);
    int r;

    w->was_heard = true;
    w->in = data;
    w->in_len = len;
    r = wslay_event_recv(w->frames);
    w->in_len = 0;
    if (r != 0 || w->broken) {
        refuse_frame(w, w->broken ? w->broken : WSLAY_CODE_PROTOCOL_ERROR);
        return;
    }
    if (wslay_event_send(w->frames) != 0) {
        http_drop(x);
        return;
    }
    if (!wslay_event_want_read(w->frames) && !wslay_event_want_write(w->frames))
        http_upgrade_end(x); /* both, or we, have said goodbye */
}

static void on_writable(struct http_exchange *x)
{
    struct ws *w = ws_of(x);

    if (w->is_stopped && !w->is_closed && w->o.ops->on_writable) {
        w->is_stopped = false;
        w->o.ops->on_writable(w);
    }
}

static unsigned end_code(const struct ws *w)
{
    if (w->code)
        return w->code;
    if (wslay_event_get_close_received(w->frames))
        return wslay_event_get_status_code_received(w->frames);
    if (wslay_event_get_close_sent(w->frames))
        return wslay_event_get_status_code_sent(w->frames);
    return WSLAY_CODE_ABNORMAL_CLOSURE;
}

static void ws_free(struct ws *w)
{
    if (!w)
        return;
    loop_stop_timer(&w->ping);
    if (w->frames)
        wslay_event_context_free(w->frames);
    buf_done(&w->message);
    free(w);
}
DEFINE_AUTOPTR(ws)

static void on_end(struct http_exchange *x)
{
    struct ws *w = ws_of(x);

    if (!w->is_closed) {
        w->is_closed = true;
        w->o.ops->on_gone(w, end_code(w));
    }
    ws_free(w);
}

static const struct http_upgrade_ops upgrade_ops = {
    .on_bytes = on_bytes, .on_writable = on_writable, .on_end = on_end};

static void on_ping(struct loop_timer *t)
{
    struct ws *w = (struct ws *)((char *)t - offsetof(struct ws, ping));
    struct wslay_event_msg ping = {.opcode = WSLAY_PING};

    if (!w->was_heard && w->was_asked) {
        http_drop(w->x);
        return;
    }
    w->was_asked = !w->was_heard;
    w->was_heard = false;
    if (wslay_event_queue_msg(w->frames, &ping) == 0)
        (void)wslay_event_send(w->frames);
    (void)loop_set_timer(http_loop(w->x), &w->ping, w->o.ping_usec);
}

static int init(struct ws *w)
{
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = pull,
        .send_callback = push,
        .on_frame_recv_start_callback = on_frame,
        .on_frame_recv_chunk_callback = on_chunk,
        .on_msg_recv_callback = on_whole,
    };

    if (wslay_event_context_server_init(&w->frames, &callbacks, w) != 0)
        return -1;
    /* Its own buffering has a block for each fragment. */
    wslay_event_config_set_no_buffering(w->frames, 1);
    /* Its limit is for control frames too; that of messages is their buffer's. */
    wslay_event_config_set_max_recv_msg_length(w->frames,
                                               w->message.max > 125 ? w->message.max : 125);
    w->ping.on_time = on_ping;
    return 0;
}

struct ws *ws_accept(struct http_exchange *x, const struct ws_options *o)
{
    const struct http_slice *key;
    autoptr(ws) w = NULL;
    char answer[32];

    if (!check_handshake(x, o))
        return NULL;
    key = http_find(x->head, "Sec-WebSocket-Key");
    w = calloc(1, sizeof(*w));
    if (w) {
        w->x = x;
        w->o = *o;
        buf_init(&w->message,
                 o->max_message < LIMIT_WS_MESSAGE ? o->max_message : LIMIT_WS_MESSAGE);
    }
    if (!w || init(w) < 0 || !make_answer(*key, answer)) {
        http_fail(x, 500, NULL);
        return NULL;
    }
    http_upgrade(x, "websocket",
                 (const struct http_field[]){{"Sec-WebSocket-Accept", answer},
                                             {"Sec-WebSocket-Protocol", o->protocol}},
                 o->protocol ? 2 : 1, &upgrade_ops, w);
    if (o->ping_usec)
        (void)loop_set_timer(http_loop(x), &w->ping, o->ping_usec);
    return TAKE_PTR(w);
}

void *ws_user(const struct ws *w)
{
    return w->o.user;
}

/* ---- out ---- */

bool ws_send(struct ws *w, bool is_text, const void *data, size_t len)
{
    struct wslay_event_msg msg = {
        .opcode = is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME, .msg = data, .msg_length = len};

    if (w->is_closed || wslay_event_get_close_sent(w->frames))
        return false;
    if (wslay_event_queue_msg(w->frames, &msg) != 0 || wslay_event_send(w->frames) != 0) {
        http_drop(w->x);
        return false;
    }
    return !w->is_stopped;
}

size_t ws_room(const struct ws *w)
{
    size_t room = http_upgrade_room(w->x);

    return room > FRAME_HEAD ? room - FRAME_HEAD : 0;
}

void ws_hold(struct ws *w, bool hold)
{
    http_upgrade_hold(w->x, hold);
}

/* Whole characters only: a client checks them. */
static size_t cut(const char *text)
{
    size_t len = strlen(text), at = 0, n;
    uint32_t c;

    while (at < len && (n = utf8_take(text + at, len - at, &c)) && at + n <= LIMIT_WS_REASON)
        at += n;
    return at;
}

void ws_close(struct ws *w, unsigned code, const char *reason)
{
    const char *text = reason ? reason : "";

    if (w->is_closed)
        return;
    w->is_closed = true;
    if (wslay_event_queue_close(w->frames, (uint16_t)code, (const uint8_t *)text, cut(text)) == 0)
        (void)wslay_event_send(w->frames);
    loop_stop_timer(&w->ping);
    http_upgrade_end(w->x);
}
