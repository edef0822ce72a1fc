/* SPDX-License-Identifier: Apache-2.0 */
#include "json/put.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

/* What is not written as it stands: 'u' as \u00XX, others as a backslash and that letter. */
static const char escapes[256] = {"uuuuuuuubtnufruuuuuuuuuuuuuuuuuu" /* 0 to 31 */};

static char escape_of(unsigned char c)
{
    return c == '"' || c == '\\' ? (char)c : escapes[c];
}

#define EACH(byte) (0x0101010101010101u * (byte))
/* Of the bytes in w that are below n: their highest bits. Above the first of them others may be
 * named, too. */
#define BELOW(w, n) (((w)-EACH(n)) & ~(w)&EACH(0x80))

/* How many bytes are written as they stand. */
static size_t plain(const char *s, size_t len)
{
    size_t i = 0;
    uint64_t w;

    for (; len - i >= sizeof(w); i += sizeof(w)) {
        memcpy(&w, s + i, sizeof(w));
        if (BELOW(w, 0x20u) | BELOW(w ^ EACH((unsigned)'"'), 1u) |
            BELOW(w ^ EACH((unsigned)'\\'), 1u))
            break;
    }
    while (i < len && !escape_of((unsigned char)s[i]))
        i++;
    return i;
}

static void put_string(struct buf *out, const char *s, size_t len)
{
    static const char hex[] = "0123456789ABCDEF";

    buf_append(out, "\"", 1);
    for (size_t i = 0;; i++) {
        size_t n = plain(s + i, len - i);

        buf_append(out, s + i, n);
        i += n;
        if (i == len)
            break;
        unsigned char c = (unsigned char)s[i];
        char e = escape_of(c), text[6] = {'\\', e, '0', '0', hex[c >> 4], hex[c & 15]};

        buf_append(out, text, e == 'u' ? 6 : 2);
    }
    buf_append(out, "\"", 1);
}

/* As jansson: always with a point or an exponent, and that without '+' and leading zeros. */
static void put_real(struct buf *out, double value)
{
    char text[40], *e;
    size_t n = (size_t)snprintf(text, sizeof(text), "%.15g", value);

    if (!strpbrk(text, ".e")) {
        memcpy(text + n, ".0", 3);
    } else if ((e = strchr(text, 'e'))) {
        char *digits = e + 1 + (e[1] == '+' || e[1] == '-'), *to = e + 1 + (e[1] == '-');

        while (*digits == '0')
            digits++;
        memmove(to, digits, strlen(digits) + 1);
    }
    buf_puts(out, text);
}

static void put_object(struct buf *out, const json_t *value)
{
    const char *key, *comma = "";
    json_t *member;

    buf_append(out, "{", 1);
    json_object_foreach((json_t *)value, key, member)
    {
        buf_puts(out, comma);
        put_string(out, key, strlen(key));
        buf_append(out, ":", 1);
        json_put(out, member);
        comma = ",";
    }
    buf_append(out, "}", 1);
}

static void put_array(struct buf *out, const json_t *value)
{
    buf_append(out, "[", 1);
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (i)
            buf_append(out, ",", 1);
        json_put(out, json_array_get(value, i));
    }
    buf_append(out, "]", 1);
}

void json_put(struct buf *out, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        put_object(out, value);
        break;
    case JSON_ARRAY:
        put_array(out, value);
        break;
    case JSON_STRING:
        put_string(out, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        put_real(out, json_real_value(value));
        break;
    case JSON_TRUE:
        buf_puts(out, "true");
        break;
    case JSON_FALSE:
        buf_puts(out, "false");
        break;
    case JSON_NULL:
        buf_puts(out, "null");
        break;
    }
}

char *json_text(const json_t *value)
{
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    json_put(&out, value);
    if (out.failed) {
        buf_done(&out);
        return NULL;
    }
    return out.data;
}
