/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are dropped, refused or read as a question, and the answer built to one holds what was
 * put in; any answer of a resolver is refused or read within its limits. The first byte chooses.
 */
#include "egress/dns.h"

#include "base/error.h"
#include "tests/fuzz/fuzz.h"

static void check_reply(const struct dns_query *q, size_t n, bool tcp)
{
    struct address addresses[2 * LIMIT_DNS_ADDRESSES];
    struct dns_reply reply = {.addresses = addresses, .n = n, .ttl = 77, .ede = DNS_EDE_FILTERED};
    uint8_t out[LIMIT_DNS_REPLY];
    struct dns_answer a;
    struct error err;
    size_t len;

    reply.text = "because of an entry of the list";
    for (size_t i = 0; i < n; i++) {
        addresses[i] = address_v4(0x01000000u + (uint32_t)i);
        if (q->type == DNS_TYPE_AAAA)
            addresses[i].bits = 128;
    }
    len = dns_build_reply(q, &reply, tcp, out);
    PROPERTY(tcp || len <= (q->udp_size < LIMIT_DNS_UDP ? q->udp_size : LIMIT_DNS_UDP),
             "%zu bytes for %u", len, q->udp_size);
    if (!q->has_host)
        return;
    PROPERTY(dns_parse_answer(out, len, q->id, &q->host, q->type, &a, &err) == 0, "%s", err.msg);
    if (q->type != DNS_TYPE_A && q->type != DNS_TYPE_AAAA)
        n = 0;
    n = n < LIMIT_DNS_ADDRESSES ? n : LIMIT_DNS_ADDRESSES;
    PROPERTY(a.truncated ? a.n == 0 && n > 0 && !tcp : a.n == n, "%zu addresses of %zu", a.n, n);
    for (size_t i = 0; i < a.n; i++)
        PROPERTY(address_equal(&a.addresses[i], &addresses[i]), "address %zu", i);
    PROPERTY(a.n == 0 || a.ttl == 77, "ttl %u", a.ttl);
}

static void fuzz_query(const uint8_t *data, size_t size)
{
    uint8_t out[LIMIT_DNS_REPLY];
    struct dns_query q;
    enum dns_rcode rcode;

    switch (dns_parse_query(data, size, &q, &rcode)) {
    case DNS_DROP:
        return;
    case DNS_REJECT:
        PROPERTY(rcode != DNS_NOERROR, "rejected without a code");
        (void)dns_build_reply(&q, &(struct dns_reply){.rcode = rcode}, false, out);
        return;
    case DNS_QUERY:
        for (size_t n = 0; n < 2 * LIMIT_DNS_ADDRESSES; n += 7) {
            check_reply(&q, n, false);
            check_reply(&q, n, true);
        }
    }
}

static void fuzz_answer(const uint8_t *data, size_t size, uint16_t type)
{
    struct host host = {.kind = HOST_NAME, .text = "allowed.test"};
    struct dns_answer a = {.n = 0};
    struct error err;

    if (size < 2 ||
        dns_parse_answer(data, size, (uint16_t)(data[0] << 8 | data[1]), &host, type, &a, &err) < 0)
        return;
    PROPERTY(a.n <= LIMIT_DNS_ADDRESSES && a.chain <= LIMIT_DNS_CHAIN, "%zu, %u", a.n, a.chain);
    for (size_t i = 0; i < a.n; i++)
        PROPERTY(a.addresses[i].bits == (type == DNS_TYPE_A ? 32 : 128), "of another type");
}

/* Cut into pieces, a stream has the messages that it has as a whole. */
static void fuzz_stream(const uint8_t *data, size_t size, size_t step)
{
    struct dns_stream s = {0};
    size_t at = 0, whole = 0, used, len;

    while (at < size) {
        enum dns_framing f =
            dns_stream_feed(&s, data + at, size - at < step ? size - at : step, &used);
        size_t want = size - whole >= 2 ? (size_t)data[whole] << 8 | data[whole + 1] : 0;

        at += used;
        if (f == DNS_FRAME_REFUSED) {
            PROPERTY(want == 0 || want > LIMIT_DNS_QUERY, "%zu bytes are refused", want);
            return;
        }
        PROPERTY(used > 0, "no progress");
        if (f != DNS_FRAME_MESSAGE)
            continue;
        PROPERTY(memcmp(dns_stream_message(&s, &len), data + whole + 2, want) == 0 && len == want,
                 "another message");
        whole += 2 + want;
        PROPERTY(whole == at, "bytes of the next message are taken");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    switch (data[0] % 4) {
    case 0:
        fuzz_query(data + 1, size - 1);
        break;
    case 1:
        fuzz_answer(data + 1, size - 1, DNS_TYPE_A);
        break;
    case 2:
        fuzz_answer(data + 1, size - 1, DNS_TYPE_AAAA);
        break;
    default:
        fuzz_stream(data + 1, size - 1, 1 + data[0] / 4);
    }
    return 0;
}
