/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the host's resolver, and what it says. Its answers are not trusted: whoever owns a
 * name that a box may ask for writes them.
 */
#include <string.h>

#include "base/error.h"
#include "egress/dns_wire.h"

size_t dns_build_query(uint16_t id, const struct host *host, uint16_t type, uint8_t *out)
{
    size_t at = DNS_HEADER;

    if (host->kind != HOST_NAME || !host->text[0])
        return 0;
    memset(out, 0, DNS_HEADER);
    dns_put16(out, id);
    dns_put16(out + 2, DNS_FLAG_RD);
    dns_put16(out + 4, 1);
    dns_put16(out + 10, 1);
    at += dns_host_to_name(host->text, out + at);
    dns_put16(out + at, type);
    dns_put16(out + at + 2, DNS_CLASS_IN);
    at += 4;
    memset(out + at, 0, 11); /* OPT: the root's name, type, what we take, no flags, no options */
    dns_put16(out + at + 1, DNS_TYPE_OPT);
    dns_put16(out + at + 3, LIMIT_DNS_UDP);
    return at + 11;
}

struct reader {
    const uint8_t *msg;
    size_t len, at;
};

/* A name without pointers, lower-cased: names are compared as bytes. */
struct name {
    uint8_t bytes[LIMIT_DNS_NAME];
    size_t len;
};

static bool name_equal(const struct name *a, const struct name *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static bool put_label(struct name *name, const uint8_t *label)
{
    size_t n = 1u + label[0];

    if (name->len + n > LIMIT_DNS_NAME)
        return false;
    name->bytes[name->len++] = label[0];
    for (size_t i = 1; i < n; i++) {
        uint8_t c = label[i];

        name->bytes[name->len++] = c >= 'A' && c <= 'Z' ? (uint8_t)(c + 'a' - 'A') : c;
    }
    return true;
}

/* Leaves the reader behind the name. Each pointer leads before the place where its name began. */
static bool read_name(struct reader *r, struct name *ret)
{
    size_t at = r->at, begin = at, after = 0;
    unsigned jumps = 0;

    ret->len = 0;
    while (at < r->len) {
        uint8_t c = r->msg[at];

        if (c >= 0xc0) {
            size_t to;

            if (r->len - at < 2 || ++jumps > LIMIT_DNS_JUMPS)
                return false;
            to = dns_get16(r->msg + at) & 0x3fffu;
            if (to >= begin || to < DNS_HEADER)
                return false;
            if (after == 0)
                after = at + 2;
            at = begin = to;
            continue;
        }
        if (c > LIMIT_HOST_LABEL || r->len - at < 1u + c || !put_label(ret, r->msg + at))
            return false;
        at += 1u + c;
        if (c == 0) {
            r->at = after ? after : at;
            return true;
        }
    }
    return false;
}

struct record {
    struct name owner;
    uint16_t type, class, len;
    uint32_t ttl;
    size_t data; /* where it begins */
};

static bool read_record(struct reader *r, struct record *ret)
{
    const uint8_t *p;

    if (!read_name(r, &ret->owner) || r->len - r->at < 10)
        return false;
    p = r->msg + r->at;
    ret->type = dns_get16(p);
    ret->class = dns_get16(p + 2);
    ret->ttl = dns_get32(p + 4);
    if (ret->ttl > INT32_MAX) /* RFC 2181: as if it were 0 */
        ret->ttl = 0;
    ret->len = dns_get16(p + 8);
    ret->data = r->at + 10;
    if (r->len - ret->data < ret->len)
        return false;
    r->at = ret->data + ret->len;
    return true;
}

/* The target is a name that fills the record's data exactly. */
static bool read_cname(const struct reader *r, const struct record *rec, struct name *ret)
{
    struct reader data = {.msg = r->msg, .len = r->len, .at = rec->data};

    return read_name(&data, ret) && data.at == rec->data + rec->len;
}

static void take_address(const struct record *rec, const uint8_t *msg, struct dns_answer *a)
{
    struct address address = {.bits = rec->type == DNS_TYPE_A ? 32 : 128};

    memcpy(address.bytes, msg + rec->data, rec->len);
    for (size_t i = 0; i < a->n; i++)
        if (address_equal(&a->addresses[i], &address))
            return;
    if (a->n < LIMIT_DNS_ADDRESSES) /* more are as good as these */
        a->addresses[a->n++] = address;
}

/*
 * One walk over the answer section with the name that is looked for. 1: `name` has become the
 * target of its CNAME; 0: its addresses are taken. NULL in *problem unless it is negative.
 */
static int walk(struct reader r, unsigned n_records, uint16_t type, struct name *name,
                struct dns_answer *a, const char **problem)
{
    struct name target, other;
    struct record rec;
    uint32_t ttl = a->ttl;
    bool alias = false;

    for (unsigned i = 0; i < n_records; i++) {
        *problem = "a record is malformed";
        if (!read_record(&r, &rec))
            return -1;
        if (rec.class != DNS_CLASS_IN || !name_equal(&rec.owner, name))
            continue;
        if (rec.type == DNS_TYPE_CNAME) {
            if (!read_cname(&r, &rec, &other))
                return -1;
            *problem = "a name is an alias of two others";
            if (alias && !name_equal(&target, &other))
                return -1;
            target = other;
            alias = true;
        } else if (rec.type == type && (type == DNS_TYPE_A || type == DNS_TYPE_AAAA)) {
            if (rec.len != (type == DNS_TYPE_A ? 4 : 16))
                return -1;
            take_address(&rec, r.msg, a);
        } else {
            continue;
        }
        ttl = rec.ttl < ttl ? rec.ttl : ttl;
    }
    *problem = "a name has an alias and addresses";
    if (alias && a->n > 0)
        return -1;
    *problem = NULL;
    a->ttl = ttl;
    if (alias)
        *name = target;
    return alias;
}

/* The question has to be ours; the reader is left behind it. */
static bool read_question(struct reader *r, const struct host *host, uint16_t type,
                          struct name *ret)
{
    struct name ours;
    size_t plain = dns_plain_name(r->msg, r->len, r->at);

    ours.len = dns_host_to_name(host->text, ours.bytes);
    if (plain == 0 || !read_name(r, ret) || r->len - r->at < 4)
        return false;
    r->at += 4;
    return name_equal(ret, &ours) && dns_get16(r->msg + r->at - 4) == type &&
           dns_get16(r->msg + r->at - 2) == DNS_CLASS_IN;
}

static const char *follow(struct reader r, unsigned n_records, uint16_t type, struct name *name,
                          struct dns_answer *a)
{
    const char *problem;
    int alias;

    a->ttl = UINT32_MAX;
    while ((alias = walk(r, n_records, type, name, a, &problem)) > 0)
        if (++a->chain > LIMIT_DNS_CHAIN)
            return "its chain of aliases is too long, or has no end";
    if (alias < 0)
        return problem;
    if (a->ttl == UINT32_MAX)
        a->ttl = 0;
    return NULL;
}

int dns_parse_answer(const uint8_t *msg, size_t len, uint16_t id, const struct host *host,
                     uint16_t type, struct dns_answer *ret, struct error *err)
{
    struct reader r = {.msg = msg, .len = len, .at = DNS_HEADER};
    struct dns_answer a = {0};
    struct host canonical;
    struct name name;
    const char *problem;
    unsigned flags;

    if (len < DNS_HEADER || len > LIMIT_DNS_MESSAGE || host->kind != HOST_NAME)
        return error_set(err, ERR_INVALID, "resolver's answer: it has %zu bytes", len);
    flags = dns_get16(msg + 2);
    if (dns_get16(msg) != id || !(flags & DNS_FLAG_QR) || (flags >> DNS_OPCODE_SHIFT & 0xf) != 0 ||
        dns_get16(msg + 4) != 1 || !read_question(&r, host, type, &name))
        return error_set(err, ERR_INVALID, "resolver's answer: it answers another question");
    a.rcode = (enum dns_rcode)(flags & 0xf);
    a.truncated = flags & DNS_FLAG_TC;
    if (a.rcode == DNS_NOERROR && !a.truncated) {
        if (dns_get16(msg + 6) > LIMIT_DNS_RECORDS)
            return error_set(err, ERR_TOO_LARGE, "resolver's answer: more than %u records",
                             LIMIT_DNS_RECORDS);
        problem = follow(r, dns_get16(msg + 6), type, &name, &a);
        if (problem)
            return error_set(err, ERR_INVALID, "resolver's answer: %s", problem);
    }
    if (dns_name_to_host(name.bytes, name.len, &canonical))
        memcpy(a.canonical, canonical.text, sizeof(a.canonical));
    *ret = a;
    return 0;
}
