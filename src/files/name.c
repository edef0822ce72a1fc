/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "files/files.h"
#include "files/internal.h"

/* Characters that show as nothing, or turn the direction of what stands around them. */
static bool deceives(uint32_t c)
{
    return c == 0xad || c == 0x61c || c == 0x180e || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

void files_name_escape(struct buf *out, const char *name, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint32_t c = 0;
        size_t n = utf8_take(name + i, len - i, &c);
        bool plain = n && !utf8_is_control(c) && !deceives(c);

        n = n ? n : 1;
        if (plain && c == '\\')
            buf_puts(out, "\\\\");
        else if (plain)
            buf_append(out, name + i, n);
        else
            for (size_t k = 0; k < n; k++)
                buf_printf(out, "\\x%02x", (unsigned char)name[i + k]);
        i += n;
    }
}

/* One character of the text, or one escape; how many bytes of text that was, or 0. */
static size_t parse_one(const char *s, size_t len, struct buf *ret)
{
    char c;

    if (s[0] != '\\') {
        buf_append(ret, s, 1);
        return 1;
    }
    if (len >= 2 && s[1] == '\\') {
        buf_append(ret, "\\", 1);
        return 2;
    }
    if (len < 4 || s[1] != 'x' || utf8_hex(s[2]) < 0 || utf8_hex(s[3]) < 0)
        return 0;
    c = (char)(utf8_hex(s[2]) << 4 | utf8_hex(s[3]));
    buf_append(ret, &c, 1);
    return 4;
}

int files_name_parse(const char *text, size_t len, struct buf *ret, struct error *err)
{
    autobuf again = {0};

    if (memchr(text, 0, len))
        return error_set(err, ERR_INVALID, "path: it has a NUL byte, which no file name can have");
    if (len >= 4 * LIMIT_PATH)
        return error_set(err, ERR_INVALID, "path: it has %zu bytes; at most %u fit", len,
                         LIMIT_PATH - 1);
    for (size_t i = 0, n; i < len; i += n) {
        n = parse_one(text + i, len - i, ret);
        if (n == 0)
            return error_set(err, ERR_INVALID,
                             "path: the backslash at byte %zu is neither '\\\\' (a backslash) nor "
                             "'\\xHH' (a byte); folders are parted by '/'",
                             i);
    }
    buf_init(&again, 4 * LIMIT_PATH);
    if (ret->len)
        files_name_escape(&again, ret->data, ret->len);
    if (ret->failed || again.failed)
        return error_set(err, ERR_INVALID, "path: it is too long; at most %u bytes fit",
                         LIMIT_PATH - 1);
    if (ret->len && memchr(ret->data, 0, ret->len))
        return error_set(err, ERR_INVALID, "path: '\\x00' is a NUL byte; no file name has one");
    if (again.len != len || (len && memcmp(again.data, text, len) != 0))
        return error_set(err, ERR_INVALID,
                         "path: it is not spelled as listings spell it (near '%.*s'): controls, "
                         "invisible characters and bytes that are not UTF-8 are '\\xhh', nothing "
                         "else is",
                         (int)(again.len < 60 ? again.len : 60), again.len ? again.data : "");
    return 0;
}

const char *files_show(const char *path, char out[SHOWN])
{
    autobuf text;
    size_t half = SHOWN / 2 - 4;

    buf_init(&text, 4 * LIMIT_PATH);
    files_name_escape(&text, path, strnlen(path, LIMIT_PATH));
    if (text.len < SHOWN) {
        (void)snprintf(out, SHOWN, "%s", text.len ? text.data : "");
        return out;
    }
    /* Whole characters only: what shows must stay UTF-8. */
    size_t head = half, tail = text.len - half;

    while (head && ((unsigned char)text.data[head] & 0xc0) == 0x80)
        head--;
    while (tail < text.len && ((unsigned char)text.data[tail] & 0xc0) == 0x80)
        tail++;
    (void)snprintf(out, SHOWN, "%.*s...%s", (int)head, text.data, text.data + tail);
    return out;
}
