/* SPDX-License-Identifier: Apache-2.0 */
/* clawden-fs's names as text: ASCII, one JSON string, and the same bytes when it is read back. */
#include "base/buf.h"
#include "base/limits.h"
#include "cmd/fs/text.h"
#include "tests/fuzz/fuzz.h"

static unsigned hex4(const char *p)
{
    unsigned n = 0;

    for (int i = 0; i < 4; i++) {
        const char *at = strchr("0123456789abcdef", p[i]);

        PROPERTY(p[i] && at, "no hex digit");
        n = n << 4 | (unsigned)(at - "0123456789abcdef");
    }
    return n;
}

static size_t put_utf8(unsigned char *to, unsigned c)
{
    if (c < 0x80)
        return to[0] = (unsigned char)c, 1;
    if (c < 0x800)
        return to[0] = (unsigned char)(0xc0 | c >> 6), to[1] = 0x80 | (c & 63), 2;
    if (c < 0x10000)
        return to[0] = (unsigned char)(0xe0 | c >> 12), to[1] = 0x80 | (c >> 6 & 63),
               to[2] = 0x80 | (c & 63), 3;
    return to[0] = (unsigned char)(0xf0 | c >> 18), to[1] = 0x80 | (c >> 12 & 63),
           to[2] = 0x80 | (c >> 6 & 63), to[3] = 0x80 | (c & 63), 4;
}

/* What a JSON reader makes of one escape; how much of the text it was. */
static size_t read_escape(const char *p, unsigned char *to, size_t *ret_n)
{
    static const char letters[] = "\"\\bfnrt", plain[] = "\"\\\b\f\n\r\t";
    unsigned c;

    *ret_n = 1;
    if (p[1] != 'u') {
        PROPERTY(p[1] && strchr(letters, p[1]), "escape of %d", p[1]);
        to[0] = (unsigned char)plain[strchr(letters, p[1]) - letters];
        return 2;
    }
    c = hex4(p + 2);
    if (c >= 0xdc80 && c <= 0xdcff) { /* a byte that is no UTF-8 */
        to[0] = (unsigned char)(c - 0xdc00);
        return 6;
    }
    PROPERTY(c < 0xdc00 || c > 0xdfff, "a lone low surrogate %x", c);
    if (c >= 0xd800 && c < 0xdc00) {
        PROPERTY(p[6] == '\\' && p[7] == 'u', "a lone high surrogate");
        *ret_n = put_utf8(to, 0x10000 + ((c - 0xd800) << 10) + (hex4(p + 8) - 0xdc00));
        return 12;
    }
    *ret_n = put_utf8(to, c);
    return 6;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *name = fuzz_text(data, size);
    unsigned char *back = malloc(size * 4 + 8);
    size_t n = 0, more;
    struct buf b;

    if (!back)
        abort();
    buf_init(&b, LIMIT_FS_NAMES);
    text_json(&b, name);
    PROPERTY(b.len >= 2 && b.data[0] == '"' && b.data[b.len - 1] == '"', "no string");
    for (size_t i = 1; i < b.len - 1;) {
        PROPERTY(b.data[i] >= 0x20 && b.data[i] != '"', "a bare %d", b.data[i]);
        if (b.data[i] == '\\') {
            i += read_escape(b.data + i, back + n, &more);
            n += more;
        } else {
            back[n++] = (unsigned char)b.data[i++];
        }
    }
    PROPERTY(n == size && memcmp(back, name, n) == 0, "other bytes came back");
    buf_clear(&b);
    text_quoted(&b, name);
    PROPERTY(b.len >= 2 && b.data[0] == b.data[b.len - 1], "no quotes");
    for (size_t i = 0; i < b.len; i++)
        PROPERTY((unsigned char)b.data[i] >= 0x20 && b.data[i] != 0x7f, "a bare %d", b.data[i]);
    buf_done(&b);
    free(back);
    free(name);
    return 0;
}
