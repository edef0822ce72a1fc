/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <string.h>

size_t utf8_take(const char *text, size_t len, uint32_t *ret)
{
    const unsigned char *s = (const unsigned char *)text;
    unsigned char low = 0x80, high = 0xbf;
    size_t n;
    uint32_t c;

    if (len == 0)
        return 0;
    if (s[0] < 0x80) {
        *ret = s[0];
        return 1;
    }
    n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (s[0] < 0xc2 || s[0] > 0xf4 || len < n)
        return 0;
    /* The second byte's range is what keeps out overlong forms, surrogates, and U+110000 on. */
    if (s[0] == 0xe0)
        low = 0xa0;
    else if (s[0] == 0xed)
        high = 0x9f;
    else if (s[0] == 0xf0)
        low = 0x90;
    else if (s[0] == 0xf4)
        high = 0x8f;
    c = s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++, low = 0x80, high = 0xbf) {
        if (s[i] < low || s[i] > high)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    *ret = c;
    return n;
}

size_t utf8_ascii(const char *s, size_t len)
{
    size_t i = 0;
    uint64_t word;

    for (; len - i >= sizeof(word); i += sizeof(word)) {
        memcpy(&word, s + i, sizeof(word));
        if (word & 0x8080808080808080u)
            break;
    }
    while (i < len && (unsigned char)s[i] < 0x80)
        i++;
    return i;
}

bool utf8_is_valid(const char *s, size_t len)
{
    uint32_t c;

    for (size_t i = 0, n; i < len; i += n) {
        n = utf8_ascii(s + i, len - i);
        if (n == 0)
            n = utf8_take(s + i, len - i, &c);
        if (n == 0)
            return false;
    }
    return true;
}

bool utf8_is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

bool utf8_is_space(uint32_t c)
{
    return c == ' ' || (c >= 0x09 && c <= 0x0d) || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000 || c == 0xfeff;
}

size_t utf8_put(uint32_t c, char out[4])
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n] | c);
    return n;
}

int utf8_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
