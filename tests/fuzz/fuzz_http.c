/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes, taken as a request, as a response, as a body and as a URL: the result does not depend
 * on how they are split, nothing is taken that was not given, a head that is let in frames its body
 * in one way only, and what is rebuilt from a head reads as the same head.
 */
#include "http/body.h"
#include "http/compose.h"
#include "http/head.h"
#include "http/url.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "http/chars.h"
#include "tests/fuzz/fuzz.h"

#define MAX_BODY 100000

/* How the bytes are read: as a request, or as the answer to one. */
enum reading { REQUEST, ANSWER_TO_GET, ANSWER_TO_HEAD, N_READINGS };

static void init(struct http_parser *p, enum reading reading)
{
    if (reading == REQUEST)
        http_parser_init_request(p, MAX_BODY);
    else
        http_parser_init_response(p, reading == ANSWER_TO_HEAD ? HTTP_HEAD : HTTP_GET, MAX_BODY);
}

/* ---- heads ---- */

static bool same_slice(struct http_slice a, struct http_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static bool same_url(const struct http_url *a, const struct http_url *b)
{
    return a->https == b->https && a->port == b->port && a->is_ipv6 == b->is_ipv6 &&
           a->has_query == b->has_query && same_slice(a->host, b->host) &&
           same_slice(a->path, b->path) && same_slice(a->query, b->query);
}

static bool same_meaning(const struct http_head *a, const struct http_head *b)
{
    return a->method == b->method && a->status == b->status && same_slice(a->reason, b->reason) &&
           a->expects_continue == b->expects_continue && a->has_length == b->has_length &&
           a->length == b->length && a->framing == b->framing;
}

static bool same_head(const struct http_head *a, const struct http_head *b)
{
    if (!same_meaning(a, b) || a->form != b->form || !same_slice(a->target, b->target) ||
        !same_url(&a->url, &b->url) || !same_url(&a->host, &b->host) || a->minor != b->minor ||
        a->keep_alive != b->keep_alive || a->n_headers != b->n_headers)
        return false;
    for (size_t i = 0; i < a->n_headers; i++)
        if (!same_slice(a->headers[i].name, b->headers[i].name) ||
            !same_slice(a->headers[i].value, b->headers[i].value))
            return false;
    return true;
}

/* The first n bytes and then all, each from a block of its own, so that what reads beyond shows. */
static void check_split(enum reading reading, const char *data, size_t size, size_t n, int whole,
                        const struct http_head *want, const struct http_fault *want_fault)
{
    autofree char *first = malloc(n + 1), *all = malloc(size + 1);
    struct http_fault fault = {0};
    struct http_parser p;
    struct http_head head;
    int r;

    if (!first || !all)
        abort();
    memcpy(first, data, n);
    memcpy(all, data, size);
    init(&p, reading);
    r = http_parse(&p, first, n, &head, &fault);
    PROPERTY(r <= (int)n, "took %d of %zu", r, n);
    if (r == 0)
        r = http_parse(&p, all, size, &head, &fault);
    PROPERTY(r == whole, "split at %zu: %d, whole: %d", n, r, whole);
    if (r < 0)
        PROPERTY(fault.reason == want_fault->reason, "split at %zu: another reason", n);
    if (r > 0)
        PROPERTY(same_head(&head, want), "split at %zu: another head", n);
}

static void check_single_bytes(enum reading reading, const char *data, size_t size, int whole)
{
    struct http_fault fault = {0};
    struct http_parser p;
    struct http_head head;
    size_t n = 0;
    int r = 0;

    init(&p, reading);
    while (r == 0 && n < size)
        r = http_parse(&p, data, ++n, &head, &fault);
    PROPERTY(r == whole, "byte by byte: %d, whole: %d", r, whole);
    if (r > 0)
        PROPERTY(n == (size_t)r, "a head of %d bytes needs %zu", r, n);
}

/* Read by other means: how a careless server would look for the framing. */
static void check_framing(const char *data, int len, const struct http_head *head)
{
    unsigned framing = 0, hosts = 0;

    for (int i = 0; i < len; i++) {
        const char *at = data + i;
        size_t left = (size_t)(len - i);

        PROPERTY(*at, "a NUL was let in");
        if (*at == '\n')
            PROPERTY(i > 0 && at[-1] == '\r', "a bare LF was let in");
        if (*at == '\r')
            PROPERTY(i + 1 < len && at[1] == '\n', "a bare CR was let in");
        if (i == 0 || at[-1] != '\n')
            continue;
        framing += left > 14 && http_same(at, 14, "content-length", 14) && !strchr("-_y", at[14]);
        framing += left > 17 && http_same(at, 18, "transfer-encoding:", 18);
        hosts += left > 5 && http_same(at, 5, "host:", 5);
    }
    if (head->framing == HTTP_BY_LENGTH || head->framing == HTTP_CHUNKED)
        PROPERTY(framing == 1, "%u fields frame the body", framing);
    if (head->method_text.at)
        PROPERTY(hosts <= 1, "%u Hosts", hosts);
    if (head->framing == HTTP_BY_LENGTH)
        PROPERTY(head->length <= MAX_BODY, "a length of %llu", (unsigned long long)head->length);
}

/* ---- rebuilding ---- */

static void rebuild(struct buf *b, enum reading reading, const struct http_head *head)
{
    struct http_slice host = {"x.test", 6};

    if (head->form == HTTP_AUTHORITY && reading == REQUEST)
        host = head->target;
    if (reading == REQUEST)
        http_rebuild_request(b, head, host);
    else
        http_rebuild_response(b, head);
    http_write_end(b);
}

static void check_target(const struct http_head *head, const struct http_head *again)
{
    bool was_empty = head->form == HTTP_ABSOLUTE && head->url.path.len == 0;

    PROPERTY(again->form != HTTP_ABSOLUTE, "the target stayed absolute");
    if (was_empty && again->form == HTTP_ASTERISK)
        return;
    PROPERTY(was_empty ? again->url.path.len == 1 : same_slice(head->url.path, again->url.path),
             "another path");
    PROPERTY(head->url.has_query == again->url.has_query &&
                 same_slice(head->url.query, again->url.query),
             "another query");
}

static void check_rebuilt(enum reading reading, const struct http_head *head, int len)
{
    struct http_fault fault = {.reason = ""};
    struct http_parser p;
    struct http_head again;
    autobuf once, twice;
    int r;

    buf_init(&once, 2 * LIMIT_HTTP_HEAD);
    buf_init(&twice, 2 * LIMIT_HTTP_HEAD);
    rebuild(&once, reading, head);
    PROPERTY(!once.failed, "what was read cannot be written");
    if (len > (int)LIMIT_HTTP_LINE - 64 || head->n_headers == LIMIT_HTTP_HEADERS)
        return; /* "X:y" becomes "X: y", Host comes in: it may be over a limit now */
    init(&p, reading);
    r = http_parse(&p, once.data, once.len, &again, &fault);
    PROPERTY(r == (int)once.len, "rebuilt: %d of %zu (%s)", r, once.len, fault.reason);
    PROPERTY(same_meaning(head, &again), "rebuilt, it means something else");
    if (reading == REQUEST)
        check_target(head, &again);
    for (size_t i = 0; i < again.n_headers; i++)
        PROPERTY(!http_is_hop_by_hop(&again, again.headers[i].name), "a hop-by-hop field");
    rebuild(&twice, reading, &again);
    PROPERTY(!twice.failed && twice.len == once.len && memcmp(twice.data, once.data, once.len) == 0,
             "rebuilt twice, it differs");
}

/* ---- bodies ---- */

struct sum {
    uint64_t bytes, hash;
    size_t used;
    int r;
    const char *reason;
};

/* Feeds at most `step` bytes at a time. */
static struct sum read_body(enum http_framing framing, uint64_t length, const char *data,
                            size_t size, size_t step)
{
    struct sum sum = {.hash = 1469598103934665603u};
    struct http_body b;

    http_body_init(&b, framing, length, MAX_BODY);
    sum.r = http_body_is_done(&b);
    while (sum.r == 0 && sum.used < size) {
        size_t n = size - sum.used < step ? size - sum.used : step;
        struct http_fault fault = {0};
        struct http_piece piece;

        sum.r = http_body_feed(&b, data + sum.used, n, &piece, &fault);
        sum.reason = fault.reason;
        if (sum.r < 0)
            break;
        PROPERTY(piece.used > 0 && piece.used <= n, "took %zu of %zu", piece.used, n);
        PROPERTY(piece.at + piece.len <= piece.used, "payload beyond what was taken");
        for (size_t i = 0; i < piece.len; i++)
            sum.hash = (sum.hash ^ (uint8_t)data[sum.used + piece.at + i]) * 1099511628211u;
        sum.bytes += piece.len;
        sum.used += piece.used;
    }
    PROPERTY(sum.bytes <= MAX_BODY, "a body beyond its maximum");
    PROPERTY(sum.bytes == b.total, "%llu bytes, counted %llu", (unsigned long long)sum.bytes,
             (unsigned long long)b.total);
    return sum;
}

static void check_body(enum http_framing framing, uint64_t length, const char *data, size_t size)
{
    static const size_t steps[] = {1, 2, 3, 7};
    struct sum whole = read_body(framing, length, data, size, SIZE_MAX);

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        struct sum sum = read_body(framing, length, data, size, steps[i]);

        PROPERTY(sum.r == whole.r && sum.reason == whole.reason, "steps of %zu: %d, whole: %d",
                 steps[i], sum.r, whole.r);
        if (whole.r >= 0)
            PROPERTY(sum.bytes == whole.bytes && sum.hash == whole.hash && sum.used == whole.used,
                     "steps of %zu: other payload", steps[i]);
    }
    if (framing == HTTP_BY_LENGTH && whole.r == 1)
        PROPERTY(whole.bytes == length, "not its length");
}

static void check_encoder(const char *data, size_t size)
{
    struct sum sum, want = read_body(HTTP_BY_LENGTH, size, data, size, SIZE_MAX);
    size_t half = size / 2;
    autobuf b;

    if (size > MAX_BODY)
        return;
    buf_init(&b, size + 100);
    http_write_chunk(&b, data, half);
    http_write_chunk(&b, data + half, size - half);
    http_write_last_chunk(&b);
    PROPERTY(!b.failed, "the encoder failed");
    sum = read_body(HTTP_CHUNKED, 0, b.data, b.len, SIZE_MAX);
    PROPERTY(sum.r == 1 && sum.used == b.len && sum.bytes == size && sum.hash == want.hash,
             "what was encoded decodes otherwise");
}

/* ---- URLs ---- */

static void check_url(const char *data, size_t size)
{
    struct http_fault fault = {0};
    struct http_url url, again;
    char segment[64];
    int r;

    if (http_url_parse(data, size, &url, &fault) == 0) {
        PROPERTY(url.host.len > 0 && url.host.len <= LIMIT_HTTP_HOST, "a host of %zu",
                 url.host.len);
        PROPERTY(http_authority_parse(url.authority.at, url.authority.len, &again, &fault) == 0 &&
                     same_slice(url.host, again.host) && url.port == again.port,
                 "the authority reads otherwise by itself");
        PROPERTY(http_url_port(&url) != 0, "port 0");
        PROPERTY(!memchr(url.host.at, '@', url.host.len), "userinfo");
    }
    r = http_segment_decode(data, size, segment, sizeof(segment), &fault);
    if (r >= 0)
        PROPERTY((size_t)r == strlen(segment) && !strchr(segment, '/') && (size_t)r <= size,
                 "a segment of %d bytes: '%s'", r, segment);
}

static void check_head(enum reading reading, const char *data, size_t size)
{
    struct http_fault fault = {.reason = ""};
    struct http_parser p;
    struct http_head head;
    int r;

    init(&p, reading);
    r = http_parse(&p, data, size, &head, &fault);
    PROPERTY(r >= 0 || (fault.status == (unsigned)-r && fault.reason[0]), "no reason for %d", r);
    PROPERTY(r <= (int)size, "took %d of %zu", r, size);
    check_single_bytes(reading, data, size, r);
    for (size_t i = 1; i <= 4; i++) {
        size_t n = size ? (size * i / 5 + data[0] + data[size / 2] * i) % (size + 1) : 0;

        check_split(reading, data, size, n, r, &head, &fault);
    }
    if (r <= 0)
        return;
    check_framing(data, r, &head);
    check_rebuilt(reading, &head, r);
    check_body(head.framing, head.length, data + r, size - (size_t)r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;

    for (enum reading reading = REQUEST; reading < N_READINGS; reading++)
        check_head(reading, text, size);
    check_body(HTTP_CHUNKED, 0, text, size);
    check_body(HTTP_UNTIL_CLOSE, 0, text, size);
    check_encoder(text, size);
    check_url(text, size);
    return 0;
}
