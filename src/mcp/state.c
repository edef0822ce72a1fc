/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requestState: what a tool keeps, in the hands of its client, while that asks its user.
 *
 *   base64url( mac[32] | expiry in ms, big-endian[8] | what the tool keeps )
 *
 * The mac is HMAC-SHA-256 over expiry, whom and what it is for, and what is kept: the principal,
 * the tool and its arguments are not in the text, but must be the same when it comes back.
 */
#include "mcp/internal.h"

#include <errno.h>
#include <string.h>

#include "mcp/base64.h"

#define MAC    32
#define EXPIRY 8
#define HEAD   (MAC + EXPIRY)
#define BLOCK  64 /* of SHA-256 */

struct hmac {
    struct sha256 inner;
    uint8_t outer_key[BLOCK];
};

static void hmac_init(struct hmac *h, const uint8_t key[MCP_KEY])
{
    uint8_t inner_key[BLOCK];

    memset(inner_key, 0x36, sizeof(inner_key));
    memset(h->outer_key, 0x5c, sizeof(h->outer_key));
    for (size_t i = 0; i < MCP_KEY; i++) {
        inner_key[i] ^= key[i];
        h->outer_key[i] ^= key[i];
    }
    sha256_init(&h->inner);
    sha256_update(&h->inner, inner_key, sizeof(inner_key));
    explicit_bzero(inner_key, sizeof(inner_key));
}

static void hmac_finish(struct hmac *h, uint8_t mac[MAC])
{
    struct sha256 outer;
    uint8_t digest[32];

    sha256_finish(&h->inner, digest);
    sha256_init(&outer);
    sha256_update(&outer, h->outer_key, sizeof(h->outer_key));
    sha256_update(&outer, digest, sizeof(digest));
    sha256_finish(&outer, mac);
    explicit_bzero(h, sizeof(*h));
}

static bool is_equal(const uint8_t *a, const uint8_t *b, size_t n)
{
    volatile uint8_t differs = 0; /* no early end: time must not tell how much was right */

    for (size_t i = 0; i < n; i++)
        differs |= a[i] ^ b[i];
    return differs == 0;
}

static void put_number(uint8_t out[8], uint64_t n)
{
    for (size_t i = 0; i < 8; i++)
        out[i] = (uint8_t)(n >> (56 - 8 * i));
}

static uint64_t get_number(const uint8_t in[8])
{
    uint64_t n = 0;

    for (size_t i = 0; i < 8; i++)
        n = n << 8 | in[i];
    return n;
}

/* With its length before it, so that no two lists of fields run into the same bytes. */
static void hash_field(struct sha256 *s, const void *data, size_t len)
{
    uint8_t n[8];

    put_number(n, len);
    sha256_update(s, n, sizeof(n));
    sha256_update(s, data, len);
}

static int hash_piece(const char *data, size_t len, void *s)
{
    sha256_update(s, data, len);
    return 0;
}

/* Keys sorted: the same arguments in another order are the same arguments. */
static int bind(const struct mcp_call *call, uint8_t digest[32])
{
    const char *who = call->own->principal;
    struct sha256 s;

    sha256_init(&s);
    hash_field(&s, who ? who : "", who ? strlen(who) : 0);
    hash_field(&s, call->tool->name, strlen(call->tool->name));
    if (json_dump_callback(call->arguments, hash_piece, &s,
                           JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(17)) < 0)
        return -ENOMEM;
    sha256_finish(&s, digest);
    return 0;
}

static int seal(const struct mcp_call *call, const uint8_t expiry[EXPIRY], const void *state,
                size_t len, uint8_t mac[MAC])
{
    static const char label[] = "clawden mcp requestState 1"; /* with its NUL */
    uint8_t bound[32];
    struct hmac h;
    int r = bind(call, bound);

    if (r < 0)
        return r;
    hmac_init(&h, call->own->m->key);
    sha256_update(&h.inner, label, sizeof(label));
    sha256_update(&h.inner, bound, sizeof(bound));
    sha256_update(&h.inner, expiry, EXPIRY);
    sha256_update(&h.inner, state, len);
    hmac_finish(&h, mac);
    return 0;
}

int state_seal(const struct mcp_call *call, const struct mcp_ask *ask, struct buf *out)
{
    uint8_t head[HEAD];
    autobuf whole = {.max = HEAD + LIMIT_MCP_STATE};
    int r;

    put_number(head + MAC, ask->now_ms + call->own->m->info.state_ttl_ms);
    r = seal(call, head + MAC, ask->state, ask->state_len, head);
    if (r < 0)
        return r;
    buf_append(&whole, head, sizeof(head));
    buf_append(&whole, ask->state, ask->state_len);
    if (whole.failed)
        return -EMSGSIZE; /* or no memory */
    base64_put(whole.data, whole.len, BASE64_URL, out);
    return out->failed ? -ENOMEM : 0;
}

char *state_open(const struct mcp_call *call, const char *text, uint64_t now_ms, size_t *ret_len)
{
    uint8_t mac[MAC];
    const uint8_t *head;
    autobuf whole = {.max = HEAD + LIMIT_MCP_STATE};
    char *state;

    if (!base64_take(text, strlen(text), BASE64_URL, &whole) || whole.len < HEAD)
        return NULL;
    head = (const uint8_t *)whole.data;
    if (seal(call, head + MAC, whole.data + HEAD, whole.len - HEAD, mac) < 0 ||
        !is_equal(mac, head, MAC) || now_ms > get_number(head + MAC))
        return NULL;
    state = malloc(whole.len - HEAD + 1);
    if (!state)
        return NULL;
    memcpy(state, whole.data + HEAD, whole.len - HEAD + 1); /* a buffer ends in NUL */
    *ret_len = whole.len - HEAD;
    return state;
}
