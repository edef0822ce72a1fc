/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include "tests/test.h"

static void test_vectors(void **state)
{
    static const struct {
        const char *text, *hex;
    } rows[] = {
        /* FIPS 180-4 and NIST's examples */
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrl"
         "mnopqrsmnopqrst"
         "nopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char hex[SHA256_HEX];

    (void)state;
    FOR_EACH(row, rows)
    {
        sha256_hex(row->text, strlen(row->text), hex);
        CHECK_STR(hex, row->hex, row->text);
    }
}

static void test_million(void **state)
{
    static const uint8_t want[32] = {0xcd, 0xc7, 0x6e, 0x5c, 0x99, 0x14, 0xfb, 0x92,
                                     0x81, 0xa1, 0xc7, 0xe2, 0x84, 0xd7, 0x3e, 0x67,
                                     0xf1, 0x80, 0x9a, 0x48, 0xa4, 0x97, 0x20, 0x0e,
                                     0x04, 0x6d, 0x39, 0xcc, 0xc7, 0x11, 0x2c, 0xd0};
    struct sha256 s;
    uint8_t digest[32];
    char block[1000];

    (void)state;
    memset(block, 'a', sizeof(block));
    sha256_init(&s);
    for (int i = 0; i < 1000; i++)
        sha256_update(&s, block, sizeof(block));
    sha256_finish(&s, digest);
    assert_memory_equal(digest, want, sizeof(want));
}

/* Every length around the block and its padding, in one piece, in two and byte by byte. */
static void test_pieces(void **state)
{
    char data[200];

    (void)state;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * 7);
    for (size_t len = 0; len <= sizeof(data); len++) {
        uint8_t whole[32], split[32], bytes[32];
        struct sha256 s;

        sha256_init(&s);
        sha256_update(&s, data, len);
        sha256_finish(&s, whole);
        sha256_init(&s);
        sha256_update(&s, data, len / 3);
        sha256_update(&s, NULL, 0);
        sha256_update(&s, data + len / 3, len - len / 3);
        sha256_finish(&s, split);
        sha256_init(&s);
        for (size_t i = 0; i < len; i++)
            sha256_update(&s, data + i, 1);
        sha256_finish(&s, bytes);
        CHECK(memcmp(whole, split, 32) == 0 && memcmp(whole, bytes, 32) == 0, "length %zu", len);
    }
}

/* The hash of the hashes of "a" * n for n = 0..129, computed with Python's hashlib. */
static void test_padding(void **state)
{
    static const char want[] = "c665ed20ef30f158e90c7e921d8182bc0943c4b087a82f64a18d417bcdfadce7";
    char hex[SHA256_HEX], data[130], all[130 * 64];

    (void)state;
    memset(data, 'a', sizeof(data));
    for (size_t n = 0; n < 130; n++) {
        sha256_hex(data, n, hex);
        memcpy(all + 64 * n, hex, 64);
    }
    sha256_hex(all, 130 * 64, hex);
    assert_string_equal(hex, want);
}

/* Many blocks at once go another way than one after the other: the same comes out. */
static void test_bulk(void **state)
{
    static uint8_t data[70000];
    uint32_t x = 1;

    (void)state;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
    for (size_t len = 0; len < sizeof(data); len = len * 5 / 4 + 61) {
        uint8_t whole[32], split[32];
        struct sha256 s;

        sha256_init(&s);
        sha256_update(&s, data + len % 13, len - len % 13);
        sha256_finish(&s, whole);
        sha256_init(&s);
        for (size_t i = len % 13, n; i < len; i += n) {
            n = len - i < 64 ? len - i : 64;
            sha256_update(&s, data + i, n);
        }
        sha256_finish(&s, split);
        CHECK(memcmp(whole, split, 32) == 0, "%zu bytes", len);
    }
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("much at once has the digest of its pieces", test_bulk),
        CLAIM("SHA-256 agrees with the published examples", test_vectors),
        CLAIM("SHA-256 of a million letters agrees with the published one", test_million),
        CLAIM("the hash does not depend on how the data comes", test_pieces),
        CLAIM("every length is padded as others pad it", test_padding),
    };

    return RUN_CLAIMS("base/sha256", claims);
}
