/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_done(struct buf *b)
{
    free(b->data);
    *b = (struct buf){.max = b->max};
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = 0;
}

static bool reserve(struct buf *b, size_t more)
{
    size_t want;
    char *p;

    if (b->failed || more > b->max - b->len)
        return !(b->failed = true);
    if (b->len + more < b->cap)
        return true;
    want = b->cap ? b->cap : 256;
    while (want < b->len + more + 1)
        want *= 2;
    if (want > b->max + 1)
        want = b->max + 1;
    p = realloc(b->data, want);
    if (!p)
        return !(b->failed = true);
    b->data = p;
    b->cap = want;
    return true;
}

void buf_append(struct buf *b, const void *data, size_t len)
{
    if (!reserve(b, len))
        return;
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = 0;
}

void buf_puts(struct buf *b, const char *s)
{
    buf_append(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    char small[256];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    if (n < 0) {
        b->failed = true;
        return;
    }
    if ((size_t)n < sizeof(small)) {
        buf_append(b, small, (size_t)n);
        return;
    }
    if (!reserve(b, (size_t)n))
        return;
    va_start(ap, fmt);
    (void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
}

/* Length of the valid UTF-8 sequence at s (1-4), or 0. Surrogates and overlong forms are invalid.
 */
static size_t utf8_len(const unsigned char *s, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t want = s[0] < 0x80         ? 1
                  : (s[0] >> 5) == 6  ? 2
                  : (s[0] >> 4) == 14 ? 3
                  : (s[0] >> 3) == 30 ? 4
                                      : 0;
    uint32_t c;

    if (want <= 1)
        return want;
    if (want > n)
        return 0;
    c = s[0] & (0x7fu >> want);
    for (size_t i = 1; i < want; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3fu);
    }
    return c < least[want] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : want;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c != '"' && c != '\\' && c != 0x7f;
}

void buf_json_string(struct buf *b, const char *s, size_t len)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t from = 0; /* as it stands, up to i */

    buf_append(b, "\"", 1);
    for (size_t i = 0; i < len;) {
        size_t n = utf8_len(p + i, len - i);

        if (n && is_plain(p[i])) {
            i += n;
            continue;
        }
        buf_append(b, p + from, i - from);
        if (n == 0)
            buf_puts(b, "\\ufffd");
        else if (p[i] == '"' || p[i] == '\\')
            buf_append(b, (char[]){'\\', (char)p[i]}, 2);
        else
            buf_printf(b, "\\u%04x", p[i]);
        from = i += n ? n : 1;
    }
    buf_append(b, p + from, len - from);
    buf_append(b, "\"", 1);
}

void buf_json_key(struct buf *b, const char *key)
{
    if (b->len && b->data[b->len - 1] != '{')
        buf_append(b, ",", 1);
    buf_json_string(b, key, strlen(key));
    buf_append(b, ":", 1);
}

void buf_json_str(struct buf *b, const char *key, const char *value)
{
    buf_json_key(b, key);
    buf_json_string(b, value, strlen(value));
}

void buf_json_strings(struct buf *b, const char *key, char *const *list, size_t n)
{
    buf_json_key(b, key);
    buf_puts(b, "[");
    for (size_t i = 0; list && i < n && list[i]; i++) {
        if (i)
            buf_puts(b, ",");
        buf_json_string(b, list[i], strlen(list[i]));
    }
    buf_puts(b, "]");
}

void buf_json_num(struct buf *b, const char *key, long long value)
{
    buf_json_key(b, key);
    buf_printf(b, "%lld", value);
}

void buf_json_bool(struct buf *b, const char *key, bool value)
{
    buf_json_key(b, key);
    buf_puts(b, value ? "true" : "false");
}

void buf_json_seconds(struct buf *b, const char *key, unsigned long long usec)
{
    buf_json_key(b, key);
    buf_printf(b, "%llu.%06llu", usec / 1000000, usec % 1000000);
}
