/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <stdbool.h>
#include <string.h>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

#define MUCH 16 /* blocks at once */

static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotr(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

/* One round: the names of the eight words move on, their values stay where they are. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                       \
    do {                                                                                       \
        uint32_t t_ =                                                                          \
            h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i]; \
                                                                                               \
        d += t_;                                                                               \
        h = t_ + (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));     \
    } while (0)

static void compress_plain(uint32_t s[8], const uint8_t *p)
{
    uint32_t w[64], a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];

    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + (rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
               (rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10);
    for (int i = 0; i < 64; i += 8) {
        ROUND(a, b, c, d, e, f, g, h, i);
        ROUND(h, a, b, c, d, e, f, g, i + 1);
        ROUND(g, h, a, b, c, d, e, f, i + 2);
        ROUND(f, g, h, a, b, c, d, e, i + 3);
        ROUND(e, f, g, h, a, b, c, d, i + 4);
        ROUND(d, e, f, g, h, a, b, c, i + 5);
        ROUND(c, d, e, f, g, h, a, b, i + 6);
        ROUND(b, c, d, e, f, g, h, a, i + 7);
    }
    s[0] += a;
    s[1] += b;
    s[2] += c;
    s[3] += d;
    s[4] += e;
    s[5] += f;
    s[6] += g;
    s[7] += h;
}

#ifdef __x86_64__
/*
 * The processor's own rounds, ten times as fast. They want the eight words as ABEF and CDGH; two
 * rounds at a time, four words of the schedule in each m[].
 */
__attribute__((target("sha,sse4.1,ssse3"))) static void compress_fast(uint32_t s[8],
                                                                      const uint8_t *p, size_t n)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)s), 0xb1);
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(s + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);

    for (; n; n--, p += 64) {
        const __m128i was_abef = abef, was_cdgh = cdgh;
        __m128i m[4];

        for (int i = 0; i < 4; i++)
            m[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), swap);
        for (int i = 0; i < 16; i++) {
            __m128i x = _mm_add_epi32(m[i % 4], _mm_loadu_si128((const __m128i *)(k + 4 * i)));

            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, x);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(x, 0x0e));
            if (i >= 12)
                continue;
            x = _mm_add_epi32(_mm_sha256msg1_epu32(m[i % 4], m[(i + 1) % 4]),
                              _mm_alignr_epi8(m[(i + 3) % 4], m[(i + 2) % 4], 4));
            m[i % 4] = _mm_sha256msg2_epu32(x, m[(i + 3) % 4]);
        }
        abef = _mm_add_epi32(abef, was_abef);
        cdgh = _mm_add_epi32(cdgh, was_cdgh);
    }
    low = _mm_shuffle_epi32(abef, 0x1b);
    high = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)s, _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128((__m128i *)(s + 4), _mm_alignr_epi8(high, low, 8));
}

/* Asked once, and only for much data: the question is dear in a virtual machine. */
static bool is_fast(void)
{
    static int known; /* 1: yes; -1: no */
    unsigned a, b, c, d;

    if (known == 0) {
        bool sse = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSSE3) && (c & bit_SSE4_1);

        known = sse && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA) ? 1 : -1;
    }
    return known > 0;
}
#endif

static void compress(struct sha256 *s, const uint8_t *p, size_t n)
{
#ifdef __x86_64__
    if (n >= MUCH && is_fast()) {
        compress_fast(s->h, p, n);
        return;
    }
#endif
    for (; n; n--, p += 64)
        compress_plain(s->h, p);
}

void sha256_init(struct sha256 *s)
{
    *s = (struct sha256){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                               0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_update(struct sha256 *s, const void *data, size_t len)
{
    const uint8_t *p = data;

    while (len) {
        size_t used = s->bytes % 64, n = 64 - used < len ? 64 - used : len;

        if (used == 0 && len >= 64) { /* whole blocks, where they are */
            n = len / 64 * 64;
            compress(s, p, n / 64);
        } else {
            memcpy(s->block + used, p, n);
            if (used + n == 64)
                compress(s, s->block, 1);
        }
        s->bytes += n;
        p += n;
        len -= n;
    }
}

void sha256_finish(struct sha256 *s, uint8_t digest[32])
{
    static const uint8_t pad[64] = {0x80};
    uint64_t bits = s->bytes * 8;
    uint8_t length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_update(s, pad, 1 + (119 - s->bytes % 64) % 64);
    sha256_update(s, length, sizeof(length));
    for (int i = 0; i < 32; i++)
        digest[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_finish_hex(struct sha256 *s, char hex[SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t d[32];

    sha256_finish(s, d);
    for (int i = 0; i < 32; i++) {
        hex[2 * i] = digits[d[i] >> 4];
        hex[2 * i + 1] = digits[d[i] & 15];
    }
    hex[64] = 0;
}

void sha256_hex(const void *data, size_t len, char hex[SHA256_HEX])
{
    struct sha256 s;

    sha256_init(&s);
    sha256_update(&s, data, len);
    sha256_finish_hex(&s, hex);
}
