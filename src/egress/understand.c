/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection wants, from the bytes it begins with, and whether what is said inside names the
 * host that was allowed. Nothing goes upstream before that is clear. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "egress/conn.h"
#include "http/compose.h"

#define TLS_RECORD 0x16

/* ---- understanding: TLS ---- */

/* 1: it names the host that was meant; 0: more is needed; negative: refused, and over. */
static int check_hello(struct conn *c)
{
    struct egress_verdict v;
    size_t used;

    if (!c->hello) {
        c->hello = calloc(1, sizeof(*c->hello));
        if (!c->hello) {
            conn_free(c);
            return -1;
        }
        hello_init(c->hello);
    }
    (void)hello_feed(c->hello, (const uint8_t *)c->in.data, c->in.len, &used);
    if (used < c->in.len)
        buf_append(&c->to_up, c->in.data + used, c->in.len - used);
    buf_clear(&c->in);
    if (c->hello->state == HELLO_MORE)
        return 0;
    if (c->hello->state != HELLO_DONE) {
        conn_refuse_inner(c,
                          c->hello->problem ? c->hello->problem : "it does not begin as TLS does");
        return -1;
    }
    if (c->host.kind == HOST_NAME &&
        (c->hello->sni != HELLO_SNI_NAME || !host_equal(&c->hello->host, &c->host))) {
        conn_refuse_inner(
            c, "the TLS hello names another server than the one that was allowed, or none");
        return -1;
    }
    if (c->hello->sni == HELLO_SNI_INVALID || c->hello->sni == HELLO_SNI_SEVERAL ||
        (c->hello->sni == HELLO_SNI_ADDRESS && !host_equal(&c->hello->host, &c->host))) {
        conn_refuse_inner(c, "the TLS hello names a server in a way that can be read in two ways");
        return -1;
    }
    if (c->host.kind != HOST_NAME && c->hello->sni == HELLO_SNI_NAME) {
        rules_decide_name(c->box->rules, &c->hello->host, c->port, &v);
        if (v.decision == EGRESS_DENY) {
            conn_refuse(c, &v);
            return -1;
        }
    }
    return 1;
}

/* What was read of the hello goes first, then what came behind it. */
static void hold_hello(struct conn *c)
{
    struct buf rest = c->to_up;

    buf_init(&c->to_up, LIMIT_RELAY_INPUT);
    buf_append(&c->to_up, c->hello->raw, c->hello->n);
    buf_append(&c->to_up, rest.data, rest.len);
    buf_done(&rest);
    free(c->hello);
    c->hello = NULL;
}

/* ---- understanding: HTTP ---- */

static bool slice_is_host(const struct http_url *u, const struct conn *c)
{
    struct host h;
    uint16_t port;
    struct error err;

    return host_parse_authority(u->authority.at, u->authority.len, 80, &h, &port, &err) >= 0 &&
           host_equal(&h, &c->host) && port == c->port;
}

/* The request as it goes upstream; the rest of `in` is the beginning of its body. */
static void hold_request(struct conn *c, const struct http_head *head, size_t len)
{
    char authority[LIMIT_AUTHORITY_TEXT];
    struct buf rest;

    (void)host_format_authority(&c->host, c->port, authority);
    if (c->port == 80) /* as browsers write it */
        authority[strlen(authority) - 3] = 0;
    http_rebuild_request(&c->to_up, head,
                         (struct http_slice){.at = authority, .len = strlen(authority)});
    http_write_header(&c->to_up, "Connection", "close");
    http_write_end(&c->to_up);
    http_body_init(&c->body, head->framing, head->length, LIMIT_HTTP_BODY);
    buf_init(&rest, LIMIT_RELAY_INPUT);
    buf_append(&rest, c->in.data + len, c->in.len - len);
    buf_done(&c->in);
    c->in = rest;
    c->is_http = true;
}

static size_t skip(struct http_slice s, const char *prefix)
{
    size_t n = strlen(prefix);

    return s.len >= n && strncasecmp(s.at, prefix, n) == 0 ? n : 0;
}

/* The authority of a request's target as it was sent: neither who asks, nor for what. */
static struct http_slice sent_authority(const struct conn *c)
{
    struct http_slice s = {c->in.data, c->in.len};
    const char *p = memchr(s.at, ' ', s.len);
    size_t n = p ? (size_t)(p + 1 - s.at) : s.len;

    s = (struct http_slice){s.at + n, s.len - n};
    n = skip(s, "http://") + skip(s, "https://");
    s = (struct http_slice){s.at + n, s.len - n};
    for (n = 0; n < s.len && !memchr(" \r\n", s.at[n], 3);)
        n++;
    s.len = n;
    for (n = 0; n < s.len && !memchr("/?#", s.at[n], 3);)
        n++;
    if (memchr(s.at + n, '@', s.len - n)) /* a password may have one of these in it */
        return (struct http_slice){s.at, 0};
    s.len = n;
    p = memrchr(s.at, '@', s.len);
    n = p ? (size_t)(p + 1 - s.at) : 0;
    return (struct http_slice){s.at + n, s.len - n};
}

static void refuse_request(struct conn *c, const struct http_fault *f)
{
    struct http_slice sent = sent_authority(c);

    c->via = c->via == VIA_UNKNOWN ? VIA_HTTP : c->via;
    conn_refuse_sent(c, f, sent.at, sent.len);
}

static void take_proxy_request(struct conn *c, const struct http_head *head, size_t len)
{
    struct http_fault wrong = {400, "this is a proxy: a whole URL, or CONNECT, is asked for"};
    bool is_connect = head->method == HTTP_CONNECT;
    struct error err;

    if ((is_connect ? head->form != HTTP_AUTHORITY : head->form != HTTP_ABSOLUTE) ||
        (!is_connect && head->url.https)) {
        refuse_request(c, &wrong);
        return;
    }
    c->via = is_connect ? VIA_CONNECT : VIA_HTTP;
    if (host_parse_authority(head->url.authority.at, head->url.authority.len, is_connect ? 0 : 80,
                             &c->host, &c->port, &err) < 0) {
        wrong.reason = "the host is not a plain name or address, or has no port";
        refuse_request(c, &wrong);
        return;
    }
    c->has_host = true;
    conn_name_standin(c);
    if (is_connect) {
        struct buf rest;

        buf_init(&rest, LIMIT_RELAY_INPUT);
        buf_append(&rest, c->in.data + len, c->in.len - len);
        buf_done(&c->in);
        c->in = rest;
    } else {
        hold_request(c, head, len);
    }
    free(c->parser);
    c->parser = NULL;
    conn_decide(c);
}

/* Caught on its way, or inside a tunnel to port 80: it must be a request to that very host. */
static int take_plain_request(struct conn *c, const struct http_head *head, size_t len)
{
    struct http_fault wrong = {421, "the Host is not the one that this connection goes to"};

    if (c->via == VIA_UNKNOWN)
        c->via = VIA_HTTP;
    if (head->form != HTTP_ORIGIN && head->form != HTTP_ASTERISK) {
        wrong = (struct http_fault){400, "not a request to a server"};
    } else if (c->host.kind != HOST_NAME ||
               (head->host.authority.at && slice_is_host(&head->host, c))) {
        hold_request(c, head, len);
        return 1;
    }
    conn_refuse_inner(c, wrong.reason);
    return -1;
}

/* 1: there is a head; 0: more is needed; negative: refused, and over. */
static int read_head(struct conn *c, struct http_head *head, size_t *ret_len)
{
    struct http_fault fault;
    int r;

    if (!c->parser) {
        c->parser = malloc(sizeof(*c->parser));
        if (!c->parser) {
            conn_free(c);
            return -1;
        }
        http_parser_init_request(c->parser, LIMIT_HTTP_BODY);
    }
    r = http_parse(c->parser, c->in.data, c->in.len, head, &fault);
    if (r < 0) {
        refuse_request(c, &fault);
        return -1;
    }
    *ret_len = (size_t)r;
    return r > 0;
}

/* ---- what is said inside ---- */

/* What the box says after it was let through decides whether anything goes upstream. */
void conn_inner(struct conn *c)
{
    static struct http_head head;
    size_t len;
    int r;

    if (c->in.len == 0 && !c->hello)
        return;
    if (c->hello || c->port == 443 || (unsigned char)c->in.data[0] == TLS_RECORD) {
        c->via = c->via == VIA_TCP ? VIA_TLS : c->via;
        r = check_hello(c);
        if (r > 0)
            hold_hello(c);
    } else if (c->port == 80) {
        r = read_head(c, &head, &len);
        if (r > 0)
            r = take_plain_request(c, &head, len);
    } else {
        buf_append(&c->to_up, c->in.data, c->in.len);
        buf_clear(&c->in);
        r = 1;
    }
    if (r > 0)
        conn_send_held(c);
}

/* ---- what it wants ---- */

/* With the name that was asked for, if there is one that could be a name. */
static void refuse_socks(struct conn *c)
{
    const struct socks *s = &c->socks;
    const char *why = s->problem ? s->problem : "it does not begin as SOCKS does";
    bool has_name = s->greeted && s->n > 5 && s->message[3] == 3 && s->n >= 5u + s->message[4];

    conn_tell_sent(c, why, (const char *)s->message + 5, has_name ? s->message[4] : 0);
    buf_append(&c->to_client, s->reply, s->reply_len);
    conn_say_goodbye(c);
}

static void step_socks(struct conn *c)
{
    for (;;) {
        size_t used = 0;
        enum socks_state s = socks_feed(&c->socks, (const uint8_t *)c->in.data, c->in.len, &used);
        struct buf rest;

        buf_init(&rest, LIMIT_RELAY_INPUT);
        buf_append(&rest, c->in.data + used, c->in.len - used);
        buf_done(&c->in);
        c->in = rest;
        switch (s) {
        case SOCKS_MORE:
            return;
        case SOCKS_SEND:
            buf_append(&c->to_client, c->socks.reply, c->socks.reply_len);
            if (conn_flush(c) < 0 || c->in.len == 0)
                return;
            break;
        case SOCKS_CONNECT:
            c->host = c->socks.host;
            c->port = c->socks.port;
            c->has_host = true;
            conn_name_standin(c);
            conn_decide(c);
            return;
        case SOCKS_CLOSE:
        case SOCKS_NOT:
            refuse_socks(c);
            return;
        }
    }
}

void conn_step_proxy(struct conn *c)
{
    static struct http_head head;
    size_t len;

    if (c->via == VIA_UNKNOWN && (c->in.data[0] == 5 || c->in.data[0] == 4)) {
        c->via = VIA_SOCKS;
        socks_init(&c->socks);
    }
    if (c->via == VIA_SOCKS)
        step_socks(c);
    else if (read_head(c, &head, &len) > 0)
        take_proxy_request(c, &head, len);
}

/* To port 80 or 443: what it says is looked at before anything is resolved. */
void conn_step_caught(struct conn *c)
{
    static struct http_head head;
    size_t len;
    int r;

    if (c->hello || c->port == 443 || (unsigned char)c->in.data[0] == TLS_RECORD) {
        c->via = VIA_TLS;
        r = check_hello(c);
        if (r > 0)
            hold_hello(c);
    } else {
        c->via = VIA_HTTP;
        r = read_head(c, &head, &len);
        if (r > 0)
            r = take_plain_request(c, &head, len);
    }
    if (r > 0)
        conn_decide(c);
}

void conn_step_dns(struct conn *c)
{
    size_t at = 0;

    while (at < c->in.len) {
        uint8_t out[LIMIT_DNS_REPLY];
        const uint8_t *msg;
        size_t used, len;
        enum dns_framing f =
            dns_stream_feed(c->questions, (const uint8_t *)c->in.data + at, c->in.len - at, &used);

        at += used;
        if (f == DNS_FRAME_MORE)
            break;
        msg = f == DNS_FRAME_MESSAGE ? dns_stream_message(c->questions, &len) : NULL;
        len = msg ? names_answer(c->box, msg, len, true, out) : 0;
        if (!len) {
            conn_free(c);
            return;
        }
        buf_append(&c->to_client, (uint8_t[]){(uint8_t)(len >> 8), (uint8_t)len}, 2);
        buf_append(&c->to_client, out, len);
    }
    buf_clear(&c->in);
    (void)conn_flush(c);
}
