/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/fs/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

void text_number(struct buf *b, long long n, int digits)
{
    unsigned long long u = n < 0 ? 0 - (unsigned long long)n : (unsigned long long)n;
    char text[24];
    size_t at = sizeof(text);

    do {
        text[--at] = (char)('0' + u % 10);
        u /= 10;
        digits--;
    } while ((u || digits > 0) && at > 1);
    if (n < 0)
        text[--at] = '-';
    buf_append(b, text + at, sizeof(text) - at);
}

/* ---- characters ---- */

/* The length of the UTF-8 character at p and its code; a byte that begins none is one surrogate. */
static size_t next_char(const unsigned char *p, uint32_t *ret)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;
    uint32_t c = n < 2 ? *p : *p & (0xffu >> (n + 1));

    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) { /* a NUL too: nothing is read past the end */
            n = 0;
            break;
        }
        c = c << 6 | (p[i] & 0x3f);
    }
    if (n == 0 || c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
        *ret = 0xdc00u + *p;
        return 1;
    }
    *ret = c;
    return n;
}

static void put_hex(struct buf *b, const char *prefix, uint32_t value, int digits)
{
    char text[8];

    for (int i = digits - 1; i >= 0; i--, value >>= 4)
        text[i] = "0123456789abcdef"[value & 15];
    buf_puts(b, prefix);
    buf_append(b, text, (size_t)digits);
}

void text_json(struct buf *b, const char *name)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    const unsigned char *p = (const unsigned char *)name;
    uint32_t c;

    buf_puts(b, "\"");
    for (size_t n; *p; p += n) {
        const char *at;

        n = next_char(p, &c);
        at = c < 0x80 ? strchr(plain, (int)c) : NULL;
        if (at) {
            buf_puts(b, "\\");
            buf_append(b, &letter[at - plain], 1);
        } else if (c >= 0x20 && c < 0x80) {
            buf_append(b, p, 1);
        } else if (c < 0x10000) {
            put_hex(b, "\\u", c, 4);
        } else {
            put_hex(b, "\\u", 0xd800 + ((c - 0x10000) >> 10), 4);
            put_hex(b, "\\u", 0xdc00 + ((c - 0x10000) & 0x3ff), 4);
        }
    }
    buf_puts(b, "\"");
}

static bool is_hidden(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } rows[] = {{0, 0x1f},        {0x7f, 0xa0},     {0xad, 0xad},
                {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f},
                {0x3000, 0x3000}, {0xd800, 0xf8ff}, {0xfeff, 0xfeff}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (c >= rows[i].first && c <= rows[i].last)
            return true;
    return false;
}

void text_quoted(struct buf *b, const char *name)
{
    const char *quote = strchr(name, '\'') && !strchr(name, '"') ? "\"" : "'";
    const unsigned char *p = (const unsigned char *)name;
    uint32_t c;

    buf_puts(b, quote);
    for (size_t n; *p; p += n) {
        n = next_char(p, &c);
        if (c == '\\' || c == (unsigned char)*quote) {
            buf_puts(b, "\\");
            buf_append(b, p, 1);
        } else if (c == '\n' || c == '\r' || c == '\t') {
            buf_puts(b, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        } else if (!is_hidden(c)) {
            buf_append(b, p, n);
        } else if (c < 0x100) {
            put_hex(b, "\\x", c, 2);
        } else {
            put_hex(b, "\\u", c, 4);
        }
    }
    buf_puts(b, quote);
}
