/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/dns.h"

#include <string.h>

#include "base/error.h"
#include "egress/dns_wire.h"

/* ---- names ---- */

size_t dns_plain_name(const uint8_t *msg, size_t len, size_t at)
{
    size_t start = at;

    while (at < len) {
        unsigned label = msg[at];

        if (label > LIMIT_HOST_LABEL) /* a pointer, or one of the label types nobody has */
            return 0;
        at += 1 + label;
        if (at - start > LIMIT_DNS_NAME)
            return 0;
        if (label == 0)
            return at - start;
    }
    return 0;
}

bool dns_name_to_host(const uint8_t *wire, size_t len, struct host *ret)
{
    char text[LIMIT_DNS_NAME];
    struct error err;
    size_t n = 0;

    for (size_t at = 0; at < len && wire[at]; at += 1u + wire[at]) {
        if (memchr(wire + at + 1, '.', wire[at])) /* "a.b" as one label is not the name a.b */
            return false;
        if (n > 0)
            text[n++] = '.';
        memcpy(text + n, wire + at + 1, wire[at]);
        n += wire[at];
    }
    return host_parse(text, n, HOST_BRACKETED, ret, &err) == 0 && ret->kind == HOST_NAME;
}

size_t dns_host_to_name(const char *name, uint8_t wire[LIMIT_DNS_NAME])
{
    size_t n = 0;

    while (*name) {
        size_t label = strcspn(name, ".");

        wire[n++] = (uint8_t)label;
        memcpy(wire + n, name, label);
        n += label;
        name += label + (name[label] == '.');
    }
    wire[n++] = 0;
    return n;
}

/* ---- questions ---- */

/* The one record that may follow a question. */
static enum dns_rcode parse_opt(const uint8_t *p, size_t len, struct dns_query *q)
{
    size_t options, at = 11;

    if (len < 11 || p[0] != 0 || dns_get16(p + 1) != DNS_TYPE_OPT)
        return DNS_FORMERR;
    options = dns_get16(p + 9);
    if (options > LIMIT_DNS_OPTIONS || len != 11 + options)
        return DNS_FORMERR;
    while (at < len) { /* each a code, a length, and that many bytes */
        if (len - at < 4 || len - at - 4 < dns_get16(p + at + 2))
            return DNS_FORMERR;
        at += 4u + dns_get16(p + at + 2);
    }
    q->edns = true;
    q->udp_size = dns_get16(p + 3);
    if (q->udp_size < 512)
        q->udp_size = 512;
    return p[6] == 0 ? DNS_NOERROR : DNS_BADVERS; /* its version */
}

static enum dns_rcode parse_body(const uint8_t *msg, size_t len, struct dns_query *q)
{
    size_t name, at = DNS_HEADER;

    if (q->opcode != 0)
        return DNS_NOTIMP;
    /* One question, no answers, no authority, and no flag but RD, AD and CD. */
    if (dns_get16(msg + 4) != 1 || dns_get32(msg + 6) != 0 || dns_get16(msg + 10) > 1 ||
        (dns_get16(msg + 2) & ~(DNS_FLAG_RD | 0x0030)) != 0)
        return DNS_FORMERR;
    name = dns_plain_name(msg, len, at);
    if (name == 0 || len - at - name < 4)
        return DNS_FORMERR;
    q->question_len = name + 4;
    memcpy(q->question, msg + at, q->question_len);
    at += q->question_len;
    q->type = dns_get16(msg + at - 4);
    q->class = dns_get16(msg + at - 2);
    if (dns_get16(msg + 10) == 1) {
        enum dns_rcode r = parse_opt(msg + at, len - at, q);

        if (r != DNS_NOERROR)
            return r;
    } else if (at != len) {
        return DNS_FORMERR;
    }
    if (q->class != DNS_CLASS_IN)
        return DNS_NOTIMP;
    q->has_host = dns_name_to_host(q->question, name, &q->host);
    return DNS_NOERROR;
}

enum dns_parsed dns_parse_query(const uint8_t *msg, size_t len, struct dns_query *ret,
                                enum dns_rcode *ret_rcode)
{
    struct dns_query q = {.udp_size = 512};

    if (len < DNS_HEADER || (dns_get16(msg + 2) & DNS_FLAG_QR))
        return DNS_DROP;
    q.id = dns_get16(msg);
    q.opcode = (uint8_t)(dns_get16(msg + 2) >> DNS_OPCODE_SHIFT & 0xf);
    q.recursion = dns_get16(msg + 2) & DNS_FLAG_RD;
    *ret_rcode = len > LIMIT_DNS_QUERY ? DNS_FORMERR : parse_body(msg, len, &q);
    *ret = q;
    return *ret_rcode == DNS_NOERROR ? DNS_QUERY : DNS_REJECT;
}

/* ---- answers ---- */

static size_t put_address(const struct address *a, uint32_t ttl, uint8_t *out)
{
    size_t n = a->bits / 8;

    dns_put16(out, 0xc000 | DNS_HEADER); /* the name of the question */
    dns_put16(out + 2, a->bits == 32 ? DNS_TYPE_A : DNS_TYPE_AAAA);
    dns_put16(out + 4, DNS_CLASS_IN);
    dns_put16(out + 6, ttl >> 16);
    dns_put16(out + 8, ttl & 0xffff);
    dns_put16(out + 10, (unsigned)n);
    memcpy(out + 12, a->bytes, n);
    return 12 + n;
}

static size_t ede_text_len(const struct dns_reply *reply)
{
    size_t n = reply->text ? strlen(reply->text) : 0;

    if (n <= LIMIT_DNS_EDE_TEXT)
        return n;
    n = LIMIT_DNS_EDE_TEXT;
    while (n > 0 && ((unsigned char)reply->text[n] & 0xc0) == 0x80) /* not within a character */
        n--;
    return n;
}

static size_t put_opt(const struct dns_reply *reply, uint8_t *out)
{
    size_t text = ede_text_len(reply), options = reply->ede == DNS_EDE_NONE ? 0 : 6 + text;

    memset(out, 0, 11);
    dns_put16(out + 1, DNS_TYPE_OPT);
    dns_put16(out + 3, LIMIT_DNS_UDP);
    out[5] = (uint8_t)(reply->rcode >> 4); /* the upper bits of the code */
    dns_put16(out + 9, (unsigned)options);
    if (options == 0)
        return 11;
    dns_put16(out + 11, 15); /* the option for extended errors */
    dns_put16(out + 13, (unsigned)(2 + text));
    dns_put16(out + 15, reply->ede);
    if (text > 0)
        memcpy(out + 17, reply->text, text);
    return 11 + options;
}

/* So that a refusal with its words needs no second try over TCP. */
_Static_assert(DNS_HEADER + LIMIT_DNS_NAME + 4 + 11 + 6 + LIMIT_DNS_EDE_TEXT <= 512,
               "the longest question and reason fit into the smallest datagram");

size_t dns_build_reply(const struct dns_query *q, const struct dns_reply *reply, bool tcp,
                       uint8_t *out)
{
    size_t max = tcp ? LIMIT_DNS_REPLY : q->udp_size < LIMIT_DNS_UDP ? q->udp_size : LIMIT_DNS_UDP;
    uint8_t opt[11 + 6 + LIMIT_DNS_EDE_TEXT];
    size_t opt_len = q->edns ? put_opt(reply, opt) : 0, len = DNS_HEADER + q->question_len;
    unsigned flags = DNS_FLAG_QR | DNS_FLAG_RA | (unsigned)q->opcode << DNS_OPCODE_SHIFT |
                     (q->recursion ? DNS_FLAG_RD : 0),
             answers = 0;

    memset(out, 0, DNS_HEADER);
    memcpy(out + DNS_HEADER, q->question, q->question_len);
    for (size_t i = 0; i < reply->n && answers < LIMIT_DNS_ADDRESSES; i++) {
        const struct address *a = &reply->addresses[i];

        if (q->type != (a->bits == 32 ? DNS_TYPE_A : DNS_TYPE_AAAA) || q->question_len == 0)
            continue;
        if (len + 12 + a->bits / 8 + opt_len > max) { /* half a list is no list */
            flags |= DNS_FLAG_TC;
            len = DNS_HEADER + q->question_len;
            answers = 0;
            break;
        }
        len += put_address(a, reply->ttl, out + len);
        answers++;
    }
    memcpy(out + len, opt, opt_len);
    dns_put16(out, q->id);
    dns_put16(out + 2, flags | ((unsigned)reply->rcode & 0xf));
    dns_put16(out + 4, q->question_len > 0);
    dns_put16(out + 6, answers);
    dns_put16(out + 10, q->edns);
    return len + opt_len;
}

/* ---- framing ---- */

enum dns_framing dns_stream_feed(struct dns_stream *s, const uint8_t *data, size_t len,
                                 size_t *ret_used)
{
    size_t used = 0, want;

    if (s->n >= 2 && s->n == 2u + dns_get16(s->bytes))
        s->n = 0; /* the message before has been seen */
    for (; s->n < 2 && used < len; used++)
        s->bytes[s->n++] = data[used];
    *ret_used = used;
    if (s->n < 2)
        return DNS_FRAME_MORE;
    want = dns_get16(s->bytes);
    if (want == 0 || want > LIMIT_DNS_QUERY)
        return DNS_FRAME_REFUSED;
    want = want + 2 - s->n;
    want = want < len - used ? want : len - used;
    if (want > 0)
        memcpy(s->bytes + s->n, data + used, want);
    s->n += want;
    *ret_used = used + want;
    return s->n == 2u + dns_get16(s->bytes) ? DNS_FRAME_MESSAGE : DNS_FRAME_MORE;
}

const uint8_t *dns_stream_message(const struct dns_stream *s, size_t *ret_len)
{
    *ret_len = s->n - 2;
    return s->bytes + 2;
}
