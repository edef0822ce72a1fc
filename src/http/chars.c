/* SPDX-License-Identifier: Apache-2.0 */
#include "http/chars.h"

#include <string.h>

#define TEXT   HTTP_CHAR_TEXT
#define TARGET (TEXT | HTTP_CHAR_TARGET)
#define TOKEN  (TARGET | HTTP_CHAR_TOKEN)
#define HOST   (TOKEN | HTTP_CHAR_HOST)
#define HEX    (HOST | HTTP_CHAR_HEX)

const unsigned char http_chars[256] = {
    ['\t'] = TEXT,
    [' '] = TEXT,
    ['!'] = TOKEN,
    ['"'] = TARGET,
    ['#'] = TEXT | HTTP_CHAR_TOKEN,
    ['$' ... '\''] = TOKEN,
    ['(' ... ')'] = TARGET,
    ['*' ... '+'] = TOKEN,
    [','] = TARGET,
    ['-' ... '.'] = HOST,
    ['/'] = TARGET,
    ['0' ... '9'] = HEX,
    [':' ... '@'] = TARGET,
    ['A' ... 'F'] = HEX,
    ['G' ... 'Z'] = HOST,
    ['[' ... ']'] = TARGET,
    ['^'] = TOKEN,
    ['_'] = HOST,
    ['`'] = TOKEN,
    ['a' ... 'f'] = HEX,
    ['g' ... 'z'] = HOST,
    ['{'] = TARGET,
    ['|'] = TOKEN,
    ['}'] = TARGET,
    ['~'] = TOKEN,
    [0x80 ... 0xff] = TEXT,
};

int http_hex(char c)
{
    if (!http_is(c, HTTP_CHAR_HEX))
        return -1;
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

size_t http_span(const char *at, size_t len, enum http_char class)
{
    size_t n = 0;

    while (n < len && http_is(at[n], class))
        n++;
    return n;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

bool http_same(const char *a, size_t a_len, const char *b, size_t b_len)
{
    if (a_len != b_len)
        return false;
    for (size_t i = 0; i < a_len; i++)
        if (lower(a[i]) != lower(b[i]))
            return false;
    return true;
}

bool http_slice_is(struct http_slice s, const char *text)
{
    return http_same(s.at, s.len, text, strlen(text));
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct http_slice http_trim(struct http_slice s)
{
    while (s.len && is_blank(s.at[0])) {
        s.at++;
        s.len--;
    }
    while (s.len && is_blank(s.at[s.len - 1]))
        s.len--;
    return s;
}

bool http_number(struct http_slice s, uint64_t max, uint64_t *ret)
{
    uint64_t n = 0;

    if (s.len == 0 || (s.len > 1 && s.at[0] == '0'))
        return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned)(s.at[i] - '0');

        if (digit > 9 || n > (max - digit) / 10)
            return false;
        n = 10 * n + digit;
    }
    *ret = n;
    return true;
}
