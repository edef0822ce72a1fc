/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions go into the record: host, port, rule and bytes; never a path, a query or a header. */
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "cmd/egress/egress.h"
#include "egress/dest.h"

static void put_if(struct buf *f, const char *key, const char *value)
{
    if (value && value[0])
        buf_json_str(f, key, value);
}

void report_event(struct relay *r, const struct relay_event *e)
{
    struct service *s = service_of(r);
    struct error err;
    autobuf f;
    int failed;

    buf_init(&f, LIMIT_AUDIT_LINE);
    buf_json_str(&f, "box", e->box);
    put_if(&f, "call", e->calls);
    buf_json_str(&f, "via", e->via);
    buf_json_str(&f, "target", e->target);
    put_if(&f, "address", e->address);
    put_if(&f, "rule", e->rule);
    put_if(&f, "setting", e->setting);
    put_if(&f, "reason", e->reason);
    if (e->is_end) {
        buf_json_num(&f, "bytes_out", (long long)e->bytes_out);
        buf_json_num(&f, "bytes_in", (long long)e->bytes_in);
    }
    if (e->times > 1)
        buf_json_num(&f, "times", (long long)e->times);
    failed = audit_append(&s->audit,
                          e->is_end    ? "egress.end"
                          : e->allowed ? "egress.allow"
                                       : "egress.deny",
                          e->target, &f, &err) < 0;
    if (failed && !s->audit_fails) /* told once: a full disk is full for a while */
        log_warn("%s: decisions about the network are not recorded", err.msg);
    s->audit_fails = failed;
    /* What cannot be written down does not happen; the next refusal tries again. */
    r->closed = failed ? "decisions cannot be recorded: is the disk full?" : NULL;
}

/* ---- what is known of a box ---- */

static void put_dest(struct buf *out, const struct dest *d, bool first)
{
    buf_puts(out, first ? "{" : ",{");
    buf_json_str(out, "host", d->host);
    buf_json_num(out, "connections", (long long)d->connections);
    buf_json_num(out, "denied", (long long)d->denied);
    buf_json_num(out, "bytesOut", (long long)d->bytes_out);
    buf_json_num(out, "bytesIn", (long long)d->bytes_in);
    buf_puts(out, "}");
}

void report_box(const struct relay_box *b, struct buf *out)
{
    uint64_t bytes_out = 0, bytes_in = 0;
    const struct dest *d;

    for (size_t i = 0; (d = dests_at(b->dests, i)); i++) {
        bytes_out += d->bytes_out;
        bytes_in += d->bytes_in;
    }
    buf_puts(out, "{");
    buf_json_num(out, "allowed", (long long)b->allowed);
    buf_json_num(out, "denied", (long long)b->denied);
    buf_json_num(out, "questions", (long long)b->questions);
    buf_json_num(out, "udpRefused", (long long)relay_udp_refused(b));
    buf_json_num(out, "bytesOut", (long long)bytes_out);
    buf_json_num(out, "bytesIn", (long long)bytes_in);
    buf_json_num(out, "connections", b->n_conns);
    buf_json_bool(out, "recorded", !service_of(b->relay)->audit_fails);
    buf_json_key(out, "hosts");
    buf_puts(out, "[");
    /* As far as a message goes. */
    for (size_t i = 0; (d = dests_at(b->dests, i)) && out->len < WIRE_TEXT - 1024; i++)
        put_dest(out, d, i == 0);
    buf_puts(out, "]}");
}
