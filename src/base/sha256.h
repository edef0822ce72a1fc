/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * SHA-256 (FIPS 180-4). Here rather than in a library because the programs on the hot path are
 * static and hash a few hundred bytes per run; nothing secret is hashed with it.
 */
#include <stddef.h>
#include <stdint.h>

#define SHA256_HEX 65 /* with NUL */

struct sha256 {
    uint32_t h[8];
    uint64_t bytes;
    uint8_t block[64];
};

void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, size_t len);
void sha256_finish(struct sha256 *s, uint8_t digest[32]);
/* The same as lower-case hex. */
void sha256_finish_hex(struct sha256 *s, char hex[SHA256_HEX]);
/* One call: the digest of data as lower-case hex. */
void sha256_hex(const void *data, size_t len, char hex[SHA256_HEX]);
