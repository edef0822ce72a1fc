/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/standin.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "egress/host.h"

#define NONE UINT32_MAX

/* Entry i stands at the addresses i + 1, so that no address ends in all zeros of the range. */
struct entry {
    char *name;
    uint64_t promised_ms;  /* not before this time is it given away */
    uint32_t chain;        /* the next with the same hash */
    uint32_t older, newer; /* in the order of use */
};

/*
 * Entries grow with the names that there are; buckets are found by hash and link entries by index.
 * I1: the list from `newest` to `oldest` holds every entry once, and promises fall along it, since
 * each use moves an entry to the front and renews its promise by the same time.
 */
struct standins {
    uint8_t key[16];
    uint64_t ttl_ms;
    uint32_t max, n, cap, n_buckets;
    uint32_t newest, oldest;
    struct entry *entries;
    uint32_t *buckets;
};

/* ---- SipHash-2-4: a box chooses the names, and must not choose where they collide ---- */

struct sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

static void sip_rounds(struct sip *s, int n)
{
    for (int i = 0; i < n; i++) {
        s->v0 += s->v1;
        s->v2 += s->v3;
        s->v1 = rotate(s->v1, 13) ^ s->v0;
        s->v3 = rotate(s->v3, 16) ^ s->v2;
        s->v0 = rotate(s->v0, 32) + s->v3;
        s->v2 += s->v1;
        s->v3 = rotate(s->v3, 21) ^ s->v0;
        s->v1 = rotate(s->v1, 17) ^ s->v2;
        s->v2 = rotate(s->v2, 32);
    }
}

static uint64_t load(const uint8_t *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static uint64_t sip_hash(const uint8_t key[16], const char *text)
{
    const uint8_t *p = (const uint8_t *)text;
    size_t len = strlen(text), i = 0;
    uint64_t k0 = load(key, 8), k1 = load(key + 8, 8), word;
    struct sip s = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                    k1 ^ 0x7465646279746573u};

    for (; i + 8 <= len; i += 8) {
        word = load(p + i, 8);
        s.v3 ^= word;
        sip_rounds(&s, 2);
        s.v0 ^= word;
    }
    word = load(p + i, len - i) | (uint64_t)len << 56;
    s.v3 ^= word;
    sip_rounds(&s, 2);
    s.v0 ^= word;
    s.v2 ^= 0xff;
    sip_rounds(&s, 4);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* ---- the order of use ---- */

static void unlink_entry(struct standins *s, uint32_t i)
{
    struct entry *e = &s->entries[i];

    if (e->newer != NONE)
        s->entries[e->newer].older = e->older;
    else
        s->newest = e->older;
    if (e->older != NONE)
        s->entries[e->older].newer = e->newer;
    else
        s->oldest = e->newer;
}

static void link_newest(struct standins *s, uint32_t i, uint64_t now_ms)
{
    struct entry *e = &s->entries[i];

    e->newer = NONE;
    e->older = s->newest;
    if (s->newest != NONE)
        s->entries[s->newest].newer = i;
    else
        s->oldest = i;
    s->newest = i;
    e->promised_ms = now_ms > UINT64_MAX - s->ttl_ms ? UINT64_MAX : now_ms + s->ttl_ms;
}

static void use(struct standins *s, uint32_t i, uint64_t now_ms)
{
    unlink_entry(s, i);
    link_newest(s, i, now_ms);
}

/* ---- names ---- */

static uint32_t *bucket_of(struct standins *s, const char *name)
{
    return &s->buckets[sip_hash(s->key, name) & (s->n_buckets - 1)];
}

static uint32_t find_name(struct standins *s, const char *name)
{
    uint32_t i = *bucket_of(s, name);

    while (i != NONE && strcmp(s->entries[i].name, name) != 0)
        i = s->entries[i].chain;
    return i;
}

static void link_name(struct standins *s, uint32_t i)
{
    uint32_t *bucket = bucket_of(s, s->entries[i].name);

    s->entries[i].chain = *bucket;
    *bucket = i;
}

static void unlink_name(struct standins *s, uint32_t i)
{
    uint32_t *at = bucket_of(s, s->entries[i].name);

    while (*at != i)
        at = &s->entries[*at].chain;
    *at = s->entries[i].chain;
}

/* Room for twice as many, and as many buckets; on failure all is as before. */
static int grow(struct standins *s)
{
    uint32_t cap = s->cap ? 2 * s->cap : 64, *buckets;
    struct entry *entries = realloc(s->entries, cap * sizeof(*entries));

    if (!entries)
        return -ENOMEM;
    s->entries = entries;
    buckets = malloc(cap * sizeof(*buckets));
    if (!buckets)
        return -ENOMEM;
    free(s->buckets);
    s->buckets = buckets;
    s->n_buckets = s->cap = cap;
    memset(buckets, 0xff, cap * sizeof(*buckets)); /* NONE */
    for (uint32_t i = 0; i < s->n; i++)
        link_name(s, i);
    return 0;
}

/* An entry of no name: a new one, or that of a name which nobody remembers. */
static int take_entry(struct standins *s, uint64_t now_ms, uint32_t *ret, struct error *err)
{
    int r = 0;

    if (s->n == s->max) {
        uint32_t i = s->oldest;

        if (s->entries[i].promised_ms > now_ms)
            return error_set(err, ERR_TOO_LARGE, "all %u stand-in addresses of the box are in use",
                             s->max);
        unlink_entry(s, i);
        unlink_name(s, i);
        free(s->entries[i].name);
        *ret = i;
        return 0;
    }
    if (s->n == s->cap)
        r = grow(s);
    if (r < 0)
        return error_sys(err, r, "add a stand-in address");
    *ret = s->n++;
    return 0;
}

/* ---- what others call ---- */

int standins_new(uint32_t max, uint64_t ttl_ms, const uint8_t key[16], struct standins **ret,
                 struct error *err)
{
    struct standins *s;

    if (max < 1 || max > LIMIT_STANDINS)
        return error_set(err, ERR_INVALID, "stand-in addresses: 1 to %u, not %u", LIMIT_STANDINS,
                         max);
    s = calloc(1, sizeof(*s));
    if (!s)
        return error_sys(err, -ENOMEM, "make a table of stand-in addresses");
    s->max = max;
    s->ttl_ms = ttl_ms;
    s->newest = s->oldest = NONE;
    memcpy(s->key, key, sizeof(s->key));
    *ret = s;
    return 0;
}

void standins_free(struct standins *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n; i++)
        free(s->entries[i].name);
    free(s->entries);
    free(s->buckets);
    free(s);
}

static struct address v4_of(uint32_t i)
{
    return address_v4((198u << 24 | 18u << 16) + i + 1);
}

static struct address v6_of(uint32_t i)
{
    struct address a = {.bits = 128, .bytes = {0xfd, 0xc1, 0xa3, 0xd0}};

    for (int at = 15; at >= 12; at--)
        a.bytes[at] = (uint8_t)((i + 1) >> 8 * (15 - at));
    return a;
}

int standins_assign(struct standins *s, const char *name, uint64_t now_ms, struct address *ret_v4,
                    struct address *ret_v6, struct error *err)
{
    uint32_t i = s->n_buckets ? find_name(s, name) : NONE;

    if (i != NONE) {
        use(s, i, now_ms);
    } else {
        autofree char *copy = NULL;
        int r;

        if (strlen(name) > LIMIT_HOST_NAME)
            return error_set(err, ERR_INVALID, "a name of %zu bytes", strlen(name));
        copy = strdup(name);
        if (!copy)
            return error_sys(err, -ENOMEM, "add a stand-in address");
        r = take_entry(s, now_ms, &i, err);
        if (r < 0)
            return r;
        s->entries[i].name = TAKE_PTR(copy);
        link_name(s, i);
        link_newest(s, i, now_ms);
    }
    *ret_v4 = v4_of(i);
    *ret_v6 = v6_of(i);
    return 0;
}

const char *standins_find(struct standins *s, const struct address *a, uint64_t now_ms)
{
    const uint8_t *p = a->bytes + (a->bits == 32 ? 0 : 12);
    uint32_t i = (uint32_t)load((uint8_t[]){p[3], p[2], p[1], p[0]}, 4);
    struct address want;

    i = (a->bits == 32 ? i - (198u << 24 | 18u << 16) : i) - 1; /* what is below wraps around */
    if (i >= s->n)
        return NULL;
    want = a->bits == 32 ? v4_of(i) : v6_of(i);
    if (!address_equal(a, &want))
        return NULL;
    use(s, i, now_ms);
    return s->entries[i].name;
}

size_t standins_count(const struct standins *s)
{
    return s->n;
}
