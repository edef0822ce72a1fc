/* SPDX-License-Identifier: Apache-2.0 */
/* What the client and the log are told of a connection. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/conn.h"
#include "http/compose.h"

#define BYE_USEC   1000000ull /* to read the last word */
#define LIMIT_SENT 100u       /* bytes of what a client sent that are repeated in an event */

static const char *const via_names[] = {
    [VIA_UNKNOWN] = "tcp", [VIA_DNS] = "dns", [VIA_SOCKS] = "socks", [VIA_CONNECT] = "connect",
    [VIA_HTTP] = "http",   [VIA_TLS] = "tls", [VIA_TCP] = "tcp",
};

const char *conn_target(const struct conn *c, char text[LIMIT_AUTHORITY_TEXT])
{
    return c->has_host ? host_format_authority(&c->host, c->port, text) : "(none)";
}

/* ---- the log ---- */

void conn_tell_begin(struct conn *c)
{
    char target[LIMIT_AUTHORITY_TEXT], address[LIMIT_ADDRESS_TEXT];
    struct relay_event e = {.via = via_names[c->via],
                            .target = conn_target(c, target),
                            .address = address_format(&c->found[c->at - 1], address),
                            .allowed = true,
                            .rule = c->rule};

    c->told = true;
    relay_tell(c->box, &e, &c->meter);
}

void conn_tell_end(struct conn *c)
{
    char target[LIMIT_AUTHORITY_TEXT], address[LIMIT_ADDRESS_TEXT], text[LIMIT_METER_REASON];
    const char *spent = c->spent ? meter_overrun(&c->meter, text) : NULL;
    struct relay_event e = {.via = via_names[c->via],
                            .target = conn_target(c, target),
                            .address = address_format(&c->found[c->at - 1], address),
                            .allowed = true,
                            .is_end = true,
                            .rule = c->rule,
                            .setting = spent ? c->box->budgets_key : NULL,
                            .reason = spent ? spent : c->end_reason,
                            .bytes_out = c->meter.bytes_out,
                            .bytes_in = c->meter.bytes_in};

    relay_tell(c->box, &e, &c->meter);
}

/* ---- the last word ---- */

#define BYE_READS 16           /* in one turn */
#define BYE_BYTES (256u << 10) /* that are read only to be thrown away */

static void on_bye(struct loop_io *io, uint32_t events)
{
    struct conn *c = (struct conn *)((char *)io - offsetof(struct conn, client));
    int r = conn_flush(c);
    char ignored[4096];
    ssize_t n = 0;

    (void)events;
    if (r < 0)
        return;
    if (r > 0)
        (void)shutdown(c->client_fd, SHUT_WR);
    /* Unread bytes would turn the end into a reset, and the last word would be lost. But who goes
     * on and on has not come to listen. */
    for (int i = 0; i < BYE_READS; i++) {
        n = recv(c->client_fd, ignored, sizeof(ignored), MSG_DONTWAIT);
        if (n <= 0)
            break;
        c->ignored += (uint32_t)n;
    }
    if (c->ignored > BYE_BYTES || (n == 0 && r > 0) || (n < 0 && errno != EAGAIN) ||
        loop_change(&c->client, (r ? 0 : EPOLLOUT) | (n ? EPOLLIN : 0)) < 0)
        conn_free(c);
}

void conn_say_goodbye(struct conn *c)
{
    if (c->to_client.len == 0) {
        conn_free(c);
        return;
    }
    c->stage = STAGE_BYE;
    loop_remove(&c->up);
    close_fd(&c->up_fd);
    c->client.on_ready = on_bye;
    if (conn_set_timer(c, BYE_USEC) < 0 || loop_change(&c->client, EPOLLIN | EPOLLOUT) < 0)
        conn_free(c);
}

/* A text that names the rule and the setting, so that whoever reads the output can act. */
static void say_http(struct conn *c, unsigned status, const char *text)
{
    char length[24];

    (void)snprintf(length, sizeof(length), "%zu", strlen(text));
    http_write_status_line(&c->to_client, status, NULL);
    http_write_header(&c->to_client, "Content-Type", "text/plain; charset=utf-8");
    http_write_header(&c->to_client, "Content-Length", length);
    http_write_header(&c->to_client, "Connection", "close");
    http_write_end(&c->to_client);
    buf_puts(&c->to_client, text);
}

void conn_say(struct conn *c, unsigned status, enum socks_code code, const char *text)
{
    uint8_t reply[LIMIT_SOCKS_REPLY];

    if (c->stage == STAGE_INNER || c->stage == STAGE_SEND || c->stage == STAGE_CARRY) {
        buf_clear(&c->to_client); /* it was told that it is through: only the end says more */
    } else if (c->via == VIA_SOCKS) {
        buf_append(&c->to_client, reply, socks_reply(code, reply));
    } else if (c->via == VIA_CONNECT || c->via == VIA_HTTP) {
        say_http(c, status, text);
    }
    conn_say_goodbye(c);
}

/* ---- no ---- */

static void refuse(struct conn *c, const struct relay_event *e)
{
    char text[LIMIT_RULES_REASON + 512];

    c->told = false;
    (void)snprintf(text, sizeof(text), "ClawDen denied %s: %s%s%s%s%s\n", e->target, e->reason,
                   e->rule ? "\nrule: " : "", e->rule ? e->rule : "",
                   e->setting ? "\nsetting: " : "", e->setting ? e->setting : "");
    conn_say(c, 403, SOCKS_DENIED, text);
}

static void count_refused(struct conn *c)
{
    if (c->has_host)
        dests_refuse(c->box->dests, c->host.text)->denied++;
}

void conn_refuse(struct conn *c, const struct egress_verdict *v)
{
    char target[LIMIT_AUTHORITY_TEXT];
    struct relay_event e = {.via = via_names[c->via],
                            .target = conn_target(c, target),
                            .address = "",
                            .rule = v->rule,
                            .setting = v->setting,
                            .reason = v->reason};

    count_refused(c);
    relay_tell(c->box, &e, &c->meter);
    refuse(c, &e);
}

/* Not a rule of the list, but one of ours: what is said inside must be what was allowed. */
void conn_refuse_inner(struct conn *c, const char *reason)
{
    struct egress_verdict v = {.decision = EGRESS_DENY};

    (void)snprintf(v.reason, sizeof(v.reason), "%s", reason);
    conn_refuse(c, &v);
}

void conn_refuse_limit(struct conn *c, const char *reason)
{
    char target[LIMIT_AUTHORITY_TEXT];
    struct relay_event e = {.via = via_names[c->via],
                            .target = conn_target(c, target),
                            .address = "",
                            .setting = c->box->budgets_key,
                            .reason = reason};

    count_refused(c);
    relay_tell_often(c->box, &e, &c->meter);
    refuse(c, &e);
}

/* Nothing of it may reach a log or a terminal as it is. */
static const char *make_plain(const char *sent, size_t len, char text[LIMIT_SENT + 1])
{
    size_t n = len < LIMIT_SENT ? len : LIMIT_SENT;

    for (size_t i = 0; i < n; i++)
        text[i] = sent[i] >= 0x21 && sent[i] <= 0x7e ? sent[i] : '?';
    text[n] = 0;
    return n ? text : "(none)";
}

void conn_tell_sent(struct conn *c, const char *reason, const char *sent, size_t len)
{
    char target[LIMIT_AUTHORITY_TEXT], plain[LIMIT_SENT + 1];
    struct relay_event e = {.via = via_names[c->via], .address = "", .reason = reason};

    e.target = c->has_host ? conn_target(c, target) : make_plain(sent, len, plain);
    count_refused(c);
    relay_tell(c->box, &e, &c->meter);
    c->told = false;
}

void conn_refuse_sent(struct conn *c, const struct http_fault *f, const char *sent, size_t len)
{
    char text[256];

    conn_tell_sent(c, f->reason, sent, len);
    (void)snprintf(text, sizeof(text), "ClawDen: %s\n", f->reason);
    conn_say(c, f->status, SOCKS_FAILED, text);
}

void conn_fail(struct conn *c, unsigned status, enum socks_code code, const char *why)
{
    char target[LIMIT_AUTHORITY_TEXT], text[512];
    struct relay_event e = {.via = via_names[c->via],
                            .target = conn_target(c, target),
                            .address = "",
                            .allowed = true,
                            .is_end = true,
                            .rule = c->rule,
                            .reason = why};

    if (!c->told) /* else its end will be */
        relay_tell(c->box, &e, &c->meter);

    (void)snprintf(text, sizeof(text), "ClawDen: %s: %s\n", conn_target(c, target), why);
    conn_say(c, status, code, text);
}
