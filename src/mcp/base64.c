/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/base64.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"

static const char *const alphabets[] = {
    [BASE64_PLAIN] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    [BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

#define GROUPS 1024 /* written at once: a buffer takes its time over four bytes too */

/* Up to three bytes; how many characters they are. */
static size_t put_group(const uint8_t *in, size_t n, enum base64_kind kind, char four[4])
{
    const char *alphabet = alphabets[kind];
    uint32_t v = (uint32_t)in[0] << 16;

    if (n > 1)
        v |= (uint32_t)in[1] << 8;
    if (n > 2)
        v |= in[2];
    for (size_t k = 0; k < 4; k++)
        four[k] = k <= n ? alphabet[v >> (18 - 6 * k) & 63] : '=';
    return kind == BASE64_PLAIN ? 4 : n + 1;
}

void base64_put(const void *data, size_t len, enum base64_kind kind, struct buf *out)
{
    const uint8_t *in = data;
    char text[4 * GROUPS];

    while (len && !out->failed) {
        size_t n = 0;

        for (size_t i = 0; i < GROUPS && len; i++) {
            size_t taken = len < 3 ? len : 3;

            n += put_group(in, taken, kind, text + n);
            in += taken;
            len -= taken;
        }
        buf_append(out, text, n);
    }
}

static int digit(char c, enum base64_kind kind)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == alphabets[kind][62])
        return 62;
    return c == alphabets[kind][63] ? 63 : -1;
}

/* n characters, 2 to 4, are n - 1 bytes; what is left over of the last one must be zero. */
static bool take_group(const char *text, size_t n, enum base64_kind kind, struct buf *out)
{
    uint32_t v = 0;
    char three[3];

    for (size_t k = 0; k < n; k++) {
        int d = digit(text[k], kind);

        if (d < 0)
            return false;
        v |= (uint32_t)d << (18 - 6 * k);
    }
    if ((n == 2 && (v & 0xffff)) || (n == 3 && (v & 0xff)))
        return false;
    for (size_t k = 0; k < 3; k++)
        three[k] = (char)(v >> (16 - 8 * k));
    buf_append(out, three, n - 1);
    return !out->failed;
}

bool base64_take(const char *text, size_t len, enum base64_kind kind, struct buf *out)
{
    if (kind == BASE64_PLAIN) {
        if (len % 4)
            return false;
        for (int i = 0; i < 2 && len && text[len - 1] == '='; i++)
            len--;
    }
    if (len % 4 == 1)
        return false;
    for (size_t i = 0; i < len; i += 4)
        if (!take_group(text + i, len - i < 4 ? len - i : 4, kind, out))
            return false;
    return true;
}
