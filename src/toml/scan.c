/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "toml/internal.h"

/* ---- the text as a whole ---- */

int toml_check_text(struct toml_reader *p)
{
    for (const char *at = p->begin; at < p->end;) {
        unsigned char c = (unsigned char)*at;
        size_t n = 1;

        if (c >= 0x80) {
            n = utf8_take(at, (size_t)(p->end - at), &(uint32_t){0});
            if (n == 0)
                return toml_fail(p, at, "expected UTF-8, found byte 0x%02x", c);
        } else if (c == '\r') {
            if (p->end - at < 2 || at[1] != '\n')
                return toml_fail(p, at, "expected a line feed after a carriage return");
        } else if ((c < 0x20 && c != '\t' && c != '\n') || c == 0x7f) {
            return toml_fail(p, at, "expected text, found control character U+%04X", c);
        }
        at += n;
    }
    return 0;
}

void toml_place(const char *text, const char *at, struct text_place *ret)
{
    *ret = (struct text_place){1, 1};
    for (; text < at; text++) {
        if (*text == '\n')
            *ret = (struct text_place){ret->line + 1, 1};
        else if (((unsigned char)*text & 0xc0) != 0x80)
            ret->column++;
    }
}

/* ---- errors ---- */

/* Of a character in checked text; *at moves past it. */
static uint32_t next_code_point(const char **at)
{
    const unsigned char *s = (const unsigned char *)*at;
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    uint32_t c = n == 1 ? s[0] : s[0] & (0x7fu >> n);

    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s[i] & 0x3f);
    *at += n;
    return c;
}

/* What would move a terminal's cursor, or turn the direction of the words around it. */
static bool is_hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

struct shown toml_show(const char *from, const char *to)
{
    enum { ROOM = 72 }; /* for what is copied; one character, the dots and the quote come after */
    struct shown s = {"'"};
    size_t n = 1;

    while (from < to && n < ROOM) {
        const char *start = from;
        uint32_t c = next_code_point(&from);

        if (is_hidden(c)) {
            n += (size_t)snprintf(s.text + n, sizeof(s.text) - n, "\\u%04x", (unsigned)c);
        } else {
            memcpy(s.text + n, start, (size_t)(from - start));
            n += (size_t)(from - start);
        }
    }
    (void)snprintf(s.text + n, sizeof(s.text) - n, "%s'", from < to ? "..." : "");
    return s;
}

struct shown toml_found(const struct toml_reader *p)
{
    struct shown s = {"end of text"};
    const char *to = p->at;
    uint32_t c;

    if (p->at == p->end)
        return s;
    if (toml_at_line_end(p))
        return (struct shown){"end of line"};
    while (to < p->end && toml_is_bare(*to))
        to++;
    if (to > p->at)
        return toml_show(p->at, to);
    c = next_code_point(&to);
    if (c == '\t')
        return (struct shown){"a tab"};
    if (c == '\'')
        return (struct shown){"an apostrophe"};
    if (c < 0x80)
        return toml_show(p->at, to);
    (void)snprintf(s.text, sizeof(s.text), "U+%04X", (unsigned)c);
    return s;
}

static int fail(struct toml_reader *p, const char *at, enum error_code code, const char *fmt,
                va_list ap)
{
    char msg[sizeof(p->err->msg)];

    p->stop = at;
    (void)vsnprintf(msg, sizeof(msg), fmt, ap);
    return error_set(p->err, code, "%s", msg);
}

int toml_fail(struct toml_reader *p, const char *at, const char *fmt, ...)
{
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = fail(p, at, ERR_INVALID, fmt, ap);
    va_end(ap);
    return r;
}

int toml_fail_limit(struct toml_reader *p, const char *at, const char *fmt, ...)
{
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = fail(p, at, ERR_TOO_LARGE, fmt, ap);
    va_end(ap);
    return r;
}

int toml_fail_memory(struct toml_reader *p)
{
    p->stop = p->at;
    return error_sys(p->err, -ENOMEM, "read %zu bytes of TOML", (size_t)(p->end - p->begin));
}

/* ---- characters ---- */

bool toml_at(const struct toml_reader *p, char c)
{
    return p->at < p->end && *p->at == c;
}

bool toml_at_line_end(const struct toml_reader *p)
{
    return p->at == p->end || *p->at == '\n' || *p->at == '\r';
}

bool toml_is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

void toml_skip_blanks(struct toml_reader *p)
{
    while (toml_at(p, ' ') || toml_at(p, '\t'))
        p->at++;
}

void toml_skip_comment(struct toml_reader *p)
{
    if (toml_at(p, '#'))
        while (!toml_at_line_end(p))
            p->at++;
}

bool toml_take_newline(struct toml_reader *p)
{
    if (p->at == p->end || !toml_at_line_end(p))
        return false;
    p->at += *p->at == '\r' ? 2 : 1;
    return true;
}

/* ---- strings ---- */

/* After \u or \U, which want four or eight digits. */
static int read_code_point(struct toml_reader *p, const char *escape, int digits, struct buf *out)
{
    uint32_t c = 0;
    char bytes[4];

    for (int i = 0; i < digits; i++, p->at++) {
        int h = p->at < p->end ? utf8_hex(*p->at) : -1;

        if (h < 0)
            return toml_fail(p, p->at, "expected %d hexadecimal digits after '\\%c', found %s",
                             digits, escape[1], toml_found(p).text);
        c = c << 4 | (uint32_t)h;
    }
    if (c == 0)
        return toml_fail(p, escape, "a string here cannot hold NUL ('%.*s')", digits + 2, escape);
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return toml_fail(p, escape, "expected the code of a character, found '%.*s'", digits + 2,
                         escape);
    buf_append(out, bytes, utf8_put(c, bytes));
    return 0;
}

static int read_escape(struct toml_reader *p, struct buf *out)
{
    static const char from[] = "\"\\bfnrt", to[] = "\"\\\b\f\n\r\t";
    const char *escape = p->at++, *at;

    if (toml_at(p, 'u') || toml_at(p, 'U'))
        return read_code_point(p, escape, *p->at++ == 'u' ? 4 : 8, out);
    at = p->at < p->end ? memchr(from, *p->at, sizeof(from) - 1) : NULL;
    if (!at)
        return toml_fail(p, p->at, "expected one of \"\\bfnrtuU after '\\' in a string, found %s",
                         toml_found(p).text);
    buf_append(out, &to[at - from], 1);
    p->at++;
    return 0;
}

int toml_read_line_string(struct toml_reader *p, struct buf *out)
{
    char quote = *p->at++;

    for (;;) {
        const char *run = p->at;
        int r;

        while (!toml_at_line_end(p) && *p->at != quote && (*p->at != '\\' || quote == '\''))
            p->at++;
        buf_append(out, run, (size_t)(p->at - run));
        if (toml_at_line_end(p))
            return toml_fail(p, p->at, "expected %c at the end of a string, found %s", quote,
                             toml_found(p).text);
        if (*p->at == quote)
            break;
        r = read_escape(p, out);
        if (r < 0)
            return r;
    }
    p->at++;
    return out->failed ? toml_fail_memory(p) : 0;
}

/* A backslash at the end of a line takes all blanks and line ends that follow; else an escape. */
static int read_long_escape(struct toml_reader *p, struct buf *out)
{
    const char *escape = p->at++;

    toml_skip_blanks(p);
    if (p->at < p->end && toml_at_line_end(p)) {
        while (toml_take_newline(p))
            toml_skip_blanks(p);
        return 0;
    }
    if (p->at > escape + 1)
        return toml_fail(p, p->at, "expected end of line after '\\' and blanks, found %s",
                         toml_found(p).text);
    p->at = escape;
    return read_escape(p, out);
}

/* At one or more quotes. Up to two that stand before the closing three belong to the string. */
static bool read_long_end(struct toml_reader *p, char quote, struct buf *out)
{
    size_t n = 0, own;

    while (n < 5 && toml_at(p, quote)) {
        p->at++;
        n++;
    }
    own = n < 3 ? n : n - 3;
    buf_append(out, p->at - n, own);
    return n >= 3;
}

static int read_long_string(struct toml_reader *p, struct buf *out)
{
    const char *open = p->at;
    char quote = *p->at;
    struct text_place place;

    p->at += 3;
    (void)toml_take_newline(p);
    while (p->at < p->end) {
        const char *run = p->at;
        int r = 0;

        while (p->at < p->end && *p->at != quote && *p->at != '\r' &&
               (*p->at != '\\' || quote == '\''))
            p->at++;
        buf_append(out, run, (size_t)(p->at - run));
        if (toml_at(p, '\r'))
            p->at++; /* a line end is one LF in the value, however it was written */
        else if (toml_at(p, '\\'))
            r = read_long_escape(p, out);
        else if (toml_at(p, quote) && read_long_end(p, quote, out))
            return out->failed ? toml_fail_memory(p) : 0;
        if (r < 0)
            return r;
    }
    toml_place(p->begin, open, &place);
    return toml_fail(p, p->at, "expected %c%c%c at the end of the string of line %u, found %s",
                     quote, quote, quote, place.line, toml_found(p).text);
}

int toml_read_string(struct toml_reader *p, struct buf *out)
{
    bool is_long = p->end - p->at >= 3 && p->at[1] == p->at[0] && p->at[2] == p->at[0];

    return is_long ? read_long_string(p, out) : toml_read_line_string(p, out);
}
