/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON strings: any bytes become one well-formed string of valid UTF-8 that reads back as the same
 * text, with U+FFFD for what was not text. A buffer that is too small fails and never runs over.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/fuzz/fuzz.h"

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Length of the character at p by the Unicode standard's table 3-7, written another way than buf.c.
 */
static size_t character(const uint8_t *p, size_t n)
{
#define AT(i, lo, hi) (n > (i) && p[i] >= (lo) && p[i] <= (hi))
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        return AT(1, 0x80, 0xbf) ? 2 : 0;
    if (p[0] >= 0xe0 && p[0] <= 0xef)
        return AT(1, p[0] == 0xe0 ? 0xa0 : 0x80, p[0] == 0xed ? 0x9f : 0xbf) && AT(2, 0x80, 0xbf)
                   ? 3
                   : 0;
    if (p[0] >= 0xf0 && p[0] <= 0xf4)
        return AT(1, p[0] == 0xf0 ? 0x90 : 0x80, p[0] == 0xf4 ? 0x8f : 0xbf) && AT(2, 0x80, 0xbf) &&
                       AT(3, 0x80, 0xbf)
                   ? 4
                   : 0;
#undef AT
    return 0;
}

/* Compares the string s (behind its first quote) with the bytes it was made of. */
static void check(const char *s, size_t len, const uint8_t *data, size_t size)
{
    size_t at = 0, i = 1;

    PROPERTY(len >= 2 && s[0] == '"' && s[len - 1] == '"' && s[len] == 0, "no quotes");
    while (i < len - 1) {
        size_t want = at < size ? character(data + at, size - at) : 0;
        unsigned code;

        PROPERTY(at < size, "more than was given");
        if (want == 0) {
            PROPERTY(strncmp(s + i, "\\ufffd", 6) == 0, "byte %zu is not text and not replaced",
                     at);
            i += 6;
            at++;
            continue;
        }
        if (s[i] != '\\') {
            PROPERTY((uint8_t)s[i] >= 0x20 && s[i] != '"' && s[i] != 0x7f,
                     "byte %zu is not escaped", at);
            PROPERTY(memcmp(s + i, data + at, want) == 0, "byte %zu differs", at);
            i += want;
        } else if (s[i + 1] == 'u') {
            code = 0;
            for (size_t k = 2; k < 6; k++) {
                PROPERTY(hex(s[i + k]) >= 0, "bad escape");
                code = code * 16 + (unsigned)hex(s[i + k]);
            }
            PROPERTY(code == data[at], "byte %zu differs", at);
            i += 6;
        } else {
            PROPERTY(s[i + 1] == '"' || s[i + 1] == '\\', "unknown escape");
            PROPERTY((uint8_t)s[i + 1] == data[at], "byte %zu differs", at);
            i += 2;
        }
        at += want;
    }
    PROPERTY(at == size && i == len - 1, "%zu of %zu bytes", at, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autobuf b, small;

    buf_init(&b, 6 * size + 2);
    buf_json_string(&b, (const char *)data, size);
    PROPERTY(!b.failed, "six times the size is not enough");
    check(b.data, b.len, data, size);
    buf_init(&small, size);
    buf_json_string(&small, (const char *)data, size);
    PROPERTY(small.failed && small.len <= size, "a buffer of %zu bytes holds %zu", size, small.len);
    return 0;
}
