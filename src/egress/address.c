/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* ---- text ---- */

static bool parse_v4(const char *text, size_t len, uint8_t ret[4])
{
    const char *at = text, *end = text + len;

    for (int i = 0; i < 4; i++) {
        unsigned value = 0;
        const char *start;

        if (i > 0 && (at == end || *at++ != '.'))
            return false;
        start = at;
        while (at < end && at - start < 3 && *at >= '0' && *at <= '9')
            value = value * 10 + (unsigned)(*at++ - '0');
        /* A leading zero means octal to some readers. */
        if (at == start || value > 255 || (*start == '0' && at - start > 1))
            return false;
        ret[i] = (uint8_t)value;
    }
    return at == end;
}

static bool parse_v6(const char *text, size_t len, uint8_t ret[16])
{
    char copy[LIMIT_ADDRESS_TEXT];

    if (len < 2 || len >= sizeof(copy))
        return false;
    memcpy(copy, text, len);
    copy[len] = 0;
    if (strspn(copy, "0123456789abcdefABCDEF:.") != len)
        return false;
    return inet_pton(AF_INET6, copy, ret) == 1;
}

bool address_parse(const char *text, size_t len, struct address *ret)
{
    struct address a = {0};

    if (parse_v4(text, len, a.bytes))
        a.bits = 32;
    else if (parse_v6(text, len, a.bytes))
        a.bits = 128;
    else
        return false;
    *ret = a;
    return true;
}

const char *address_format(const struct address *a, char text[LIMIT_ADDRESS_TEXT])
{
    text[0] = 0;
    if (a->bits != 0)
        (void)inet_ntop(a->bits == 32 ? AF_INET : AF_INET6, a->bytes, text, LIMIT_ADDRESS_TEXT);
    return text;
}

struct address address_v4(uint32_t n)
{
    return (struct address){
        .bits = 32,
        .bytes = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n}};
}

bool address_equal(const struct address *a, const struct address *b)
{
    return a->bits == b->bits && memcmp(a->bytes, b->bytes, a->bits / 8) == 0;
}

/* ---- classes ---- */

/*
 * The longest range that holds an address says its class. IPv6 is the other way round from IPv4:
 * only 2000::/3 is given out at all, so ::/0 is reserved.
 */
static const struct special {
    struct cidr range;
    enum address_class class;
} specials[] = {
#define V4(a, b, c, d, n, k)       \
    {                              \
        {{32, {a, b, c, d}}, n}, k \
    }
#define V6(n, k, ...)                \
    {                                \
        {{128, {__VA_ARGS__}}, n}, k \
    }
    V4(0, 0, 0, 0, 0, ADDRESS_PUBLIC),
    V4(0, 0, 0, 0, 8, ADDRESS_UNSPECIFIED),
    V4(10, 0, 0, 0, 8, ADDRESS_PRIVATE),
    V4(100, 64, 0, 0, 10, ADDRESS_SHARED),
    V4(100, 100, 100, 200, 32, ADDRESS_METADATA), /* Alibaba */
    V4(127, 0, 0, 0, 8, ADDRESS_LOOPBACK),
    V4(168, 63, 129, 16, 32, ADDRESS_METADATA), /* Azure's wire server, among public ones */
    V4(169, 254, 0, 0, 16, ADDRESS_LINK_LOCAL),
    V4(169, 254, 0, 23, 32, ADDRESS_METADATA),    /* Tencent */
    V4(169, 254, 42, 42, 32, ADDRESS_METADATA),   /* Scaleway */
    V4(169, 254, 169, 254, 32, ADDRESS_METADATA), /* nearly everywhere */
    V4(169, 254, 170, 2, 32, ADDRESS_METADATA),   /* AWS ECS */
    V4(169, 254, 170, 23, 32, ADDRESS_METADATA),  /* AWS EKS */
    V4(172, 16, 0, 0, 12, ADDRESS_PRIVATE),
    V4(192, 0, 0, 0, 24, ADDRESS_RESERVED),
    V4(192, 0, 0, 192, 32, ADDRESS_METADATA), /* Oracle, classic */
    V4(192, 0, 2, 0, 24, ADDRESS_DOCUMENTATION),
    V4(192, 88, 99, 0, 24, ADDRESS_RESERVED), /* relays of 6to4 */
    V4(192, 168, 0, 0, 16, ADDRESS_PRIVATE),
    V4(198, 18, 0, 0, 15, ADDRESS_BENCHMARK), /* our stand-ins too: never to be dialled */
    V4(198, 51, 100, 0, 24, ADDRESS_DOCUMENTATION),
    V4(203, 0, 113, 0, 24, ADDRESS_DOCUMENTATION),
    V4(224, 0, 0, 0, 4, ADDRESS_MULTICAST),
    V4(240, 0, 0, 0, 4, ADDRESS_RESERVED),
    V4(255, 255, 255, 255, 32, ADDRESS_BROADCAST),

    V6(0, ADDRESS_RESERVED, 0),
    V6(3, ADDRESS_PUBLIC, 0x20),
    V6(96, ADDRESS_COMPATIBLE, 0),
    V6(128, ADDRESS_UNSPECIFIED, 0),
    V6(128, ADDRESS_LOOPBACK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
    V6(96, ADDRESS_MAPPED, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff),
    V6(96, ADDRESS_TRANSLATED, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff),
    V6(96, ADDRESS_NAT64, 0, 0x64, 0xff, 0x9b),
    V6(48, ADDRESS_NAT64, 0, 0x64, 0xff, 0x9b, 0, 1),
    V6(64, ADDRESS_DISCARD, 0x01),
    V6(64, ADDRESS_DISCARD, 0x01, 0, 0, 0, 0, 0, 0, 1), /* "dummy", 100:0:0:1::/64 */
    V6(23, ADDRESS_RESERVED, 0x20, 0x01),               /* protocol assignments, ORCHID */
    V6(32, ADDRESS_TEREDO, 0x20, 0x01, 0, 0),
    V6(48, ADDRESS_BENCHMARK, 0x20, 0x01, 0, 2),
    V6(32, ADDRESS_DOCUMENTATION, 0x20, 0x01, 0x0d, 0xb8),
    V6(16, ADDRESS_6TO4, 0x20, 0x02),
    V6(16, ADDRESS_RESERVED, 0x3f, 0xfe), /* 6bone, given back */
    V6(20, ADDRESS_DOCUMENTATION, 0x3f, 0xff),
    V6(7, ADDRESS_PRIVATE, 0xfc),
    V6(128, ADDRESS_METADATA, 0xfd, 0, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54),
    V6(128, ADDRESS_METADATA, 0xfd, 0, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x23),
    V6(128, ADDRESS_METADATA, 0xfd, 0, 0, 0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x42),
    V6(128, ADDRESS_METADATA, 0xfd, 0x20, 0, 0xce, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54),
    V6(10, ADDRESS_LINK_LOCAL, 0xfe, 0x80),
    V6(128, ADDRESS_METADATA, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xa9, 0xfe, 0xa9, 0xfe),
    V6(10, ADDRESS_SITE_LOCAL, 0xfe, 0xc0),
    V6(8, ADDRESS_MULTICAST, 0xff),
#undef V4
#undef V6
};

static const struct special *special_of(const struct address *a)
{
    const struct special *best = NULL;

    for (size_t i = 0; i < sizeof(specials) / sizeof(*specials); i++)
        if (cidr_contains(&specials[i].range, a) &&
            (!best || specials[i].range.len > best->range.len))
            best = &specials[i];
    return best;
}

enum address_class address_class_outer(const struct address *a)
{
    const struct special *s = special_of(a);

    return s ? s->class : ADDRESS_UNSPECIFIED; /* no address: barred */
}

/* The byte at which a form of IPv6 carries an IPv4 address; 0: it carries none. */
static unsigned inner_at(const struct address *a)
{
    static const uint8_t isatap[] = {0x00, 0x5e, 0xfe};
    enum address_class c = address_class_outer(a);

    if (a->bits != 128)
        return 0;
    if (c == ADDRESS_6TO4)
        return 2;
    if (c >= ADDRESS_MAPPED && c <= ADDRESS_TEREDO)
        return 12;
    /* ISATAP may stand in any network; 0x02 marks an inner address that is the only one. */
    return (a->bytes[8] & ~0x02u) == 0 && memcmp(a->bytes + 9, isatap, 3) == 0 ? 12 : 0;
}

bool address_inner(const struct address *a, struct address *ret)
{
    struct address inner = {.bits = 32};
    unsigned at = inner_at(a);

    if (at == 0)
        return false;
    memcpy(inner.bytes, a->bytes + at, 4);
    if (address_class_outer(a) == ADDRESS_TEREDO) /* the client's, written inverted */
        for (int i = 0; i < 4; i++)
            inner.bytes[i] = (uint8_t)~inner.bytes[i];
    *ret = inner;
    return true;
}

enum address_class address_class(const struct address *a)
{
    enum address_class outer = address_class_outer(a), within;
    struct address inner;

    if (!address_inner(a, &inner))
        return outer;
    within = address_class_outer(&inner);
    return within > outer ? within : outer;
}

const char *address_class_text(enum address_class c)
{
    switch (c) {
    case ADDRESS_PUBLIC:
        return "a public address";
    case ADDRESS_MAPPED:
        return "an IPv4 address mapped into IPv6";
    case ADDRESS_COMPATIBLE:
        return "an IPv4-compatible IPv6 address";
    case ADDRESS_TRANSLATED:
        return "an IPv4 address translated into IPv6";
    case ADDRESS_NAT64:
        return "an IPv4 address behind NAT64";
    case ADDRESS_6TO4:
        return "a 6to4 address";
    case ADDRESS_TEREDO:
        return "a Teredo address";
    case ADDRESS_DOCUMENTATION:
        return "an address for documentation";
    case ADDRESS_BENCHMARK:
        return "an address for benchmarks";
    case ADDRESS_RESERVED:
        return "a reserved address";
    case ADDRESS_DISCARD:
        return "a discard address";
    case ADDRESS_PRIVATE:
        return "a private address";
    case ADDRESS_SITE_LOCAL:
        return "a site-local address";
    case ADDRESS_SHARED:
        return "a carrier's shared address";
    case ADDRESS_LINK_LOCAL:
        return "a link-local address";
    case ADDRESS_METADATA:
        return "a cloud's metadata service";
    case ADDRESS_MULTICAST:
        return "a multicast address";
    case ADDRESS_BROADCAST:
        return "the broadcast address";
    case ADDRESS_UNSPECIFIED:
        return "an unspecified address";
    case ADDRESS_LOOPBACK:
        return "a loopback address";
    }
    return "an unknown address";
}

bool address_class_is_barred(enum address_class c)
{
    return c >= ADDRESS_MULTICAST;
}

/* ---- ranges ---- */

/* Do the first `len` bits of both agree? */
static bool same_prefix(const uint8_t *a, const uint8_t *b, unsigned len)
{
    unsigned whole = len / 8, rest = len % 8;
    uint8_t mask = (uint8_t)(0xff00u >> rest);

    return memcmp(a, b, whole) == 0 && (rest == 0 || ((a[whole] ^ b[whole]) & mask) == 0);
}

bool cidr_contains(const struct cidr *c, const struct address *a)
{
    return c->network.bits == a->bits && same_prefix(c->network.bytes, a->bytes, c->len);
}

bool cidr_names(const struct cidr *c, const struct address *a)
{
    const struct special *s;

    if (!cidr_contains(c, a))
        return false;
    s = special_of(a);
    if (!s)
        return false;
    return s->class == ADDRESS_PUBLIC || c->len >= s->range.len;
}

struct cidr cidr_of(const struct address *a)
{
    return (struct cidr){.network = *a, .len = a->bits};
}

const char *cidr_parse(const char *text, size_t len, struct cidr *ret)
{
    const char *slash = memchr(text, '/', len);
    struct cidr c;
    struct address zero = {0};
    size_t digits;
    unsigned n = 0;

    if (!slash || !address_parse(text, (size_t)(slash - text), &c.network))
        return "no address stands before '/'";
    digits = len - (size_t)(slash - text) - 1;
    if (digits < 1 || digits > 3 || (digits > 1 && slash[1] == '0'))
        return "no prefix length stands behind '/'";
    for (size_t i = 1; i <= digits; i++) {
        if (slash[i] < '0' || slash[i] > '9')
            return "no prefix length stands behind '/'";
        n = n * 10 + (unsigned)(slash[i] - '0');
    }
    if (n > c.network.bits)
        return "the prefix is longer than the address";
    c.len = (uint8_t)n;
    memcpy(zero.bytes, c.network.bytes, (n + 7) / 8);
    if (n % 8)
        zero.bytes[n / 8] &= (uint8_t)(0xff00u >> n % 8);
    if (memcmp(zero.bytes, c.network.bytes, sizeof(zero.bytes)) != 0)
        return "bits behind the prefix are not zero";
    *ret = c;
    return NULL;
}

const char *cidr_format(const struct cidr *c, char text[LIMIT_CIDR_TEXT])
{
    char address[LIMIT_ADDRESS_TEXT];

    (void)snprintf(text, LIMIT_CIDR_TEXT, "%s/%u", address_format(&c->network, address), c->len);
    return text;
}
