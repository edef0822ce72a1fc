/* SPDX-License-Identifier: Apache-2.0 */
#include "json/json5.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "json/chars.h"

/*
 * Recursive descent over bytes that are known to be UTF-8, so that a character can be decoded
 * without looking for the end of the text. Only positions are kept while reading; lines and columns
 * are counted once, for the one place that is told.
 *
 * json5_locate() is the same reader with a path: it stops at the member that the path leads to.
 * Every reading function returns false or NULL for "stop", be that an error or the member found.
 */
struct parser {
    const char *text, *at, *end;
    unsigned depth, keys;    /* containers open, members read */
    struct buf scratch;      /* the string, bare key or number being read */
    const char *const *path; /* what to look for, or NULL */
    unsigned matched;        /* leading words of path that the open containers stand for */
    const char *found;       /* where it is */
    const char *wrong;       /* where the text is not JSON5 */
    struct error *err;
};

static json_t *read_value(struct parser *p, const char *key);

/* ---- what is said about errors ---- */

static struct chars_shown show_text(const char *s)
{
    return chars_show(s, s + strlen(s));
}

/* The word, character or end that stands here. */
static struct chars_shown show_here(const struct parser *p)
{
    const char *end = p->at;
    size_t n;

    if (p->at == p->end)
        return (struct chars_shown){.text = "the end of the text"};
    if (chars_is_line_end(chars_at(p->at, &n)))
        return (struct chars_shown){.text = "the end of the line"};
    while (end < p->end && chars_is_word(chars_at(end, &n), end == p->at))
        end += n;
    if (end == p->at) {
        (void)chars_at(end, &n);
        end += n;
    }
    return chars_show(p->at, end);
}

/* Always false, so that a failure is reported and returned in one line. */
__attribute__((format(printf, 3, 4))) static bool fail(struct parser *p, const char *at,
                                                       const char *fmt, ...)
{
    char msg[sizeof(p->err->msg)];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    (void)error_set(p->err, ERR_INVALID, "%s", msg);
    p->wrong = at;
    return false;
}

static bool fail_limit(struct parser *p, const char *at, unsigned limit, const char *of_what)
{
    (void)error_set(p->err, ERR_TOO_LARGE, "more than %u %s", limit, of_what);
    p->wrong = at;
    return false;
}

static bool fail_memory(struct parser *p)
{
    (void)error_sys(p->err, -ENOMEM, "read JSON5");
    p->wrong = p->at;
    return false;
}

/* ---- between the values ---- */

static bool skip_comment(struct parser *p)
{
    const char *open = p->at;
    size_t n;

    p->at += 2;
    if (open[1] == '/') {
        while (p->at < p->end && !chars_is_line_end(chars_at(p->at, &n)))
            p->at += n;
        return true;
    }
    for (; p->end - p->at >= 2; p->at++)
        if (p->at[0] == '*' && p->at[1] == '/') {
            p->at += 2;
            return true;
        }
    return fail(p, open, "the comment is not closed");
}

static bool skip_space(struct parser *p)
{
    while (p->at < p->end) {
        size_t n;

        if (utf8_is_space(chars_at(p->at, &n))) {
            p->at += n;
        } else if (p->end - p->at >= 2 && p->at[0] == '/' && (p->at[1] == '/' || p->at[1] == '*')) {
            if (!skip_comment(p))
                return false;
        } else {
            break;
        }
    }
    return true;
}

static bool is_next(const struct parser *p, char c)
{
    return p->at < p->end && *p->at == c;
}

static bool is_digit_next(const struct parser *p)
{
    return p->at < p->end && *p->at >= '0' && *p->at <= '9';
}

/* ---- strings and bare keys, into the scratch buffer ---- */

/* The digits of an escape that began at `start`. */
static bool read_hex(struct parser *p, const char *start, int digits, uint32_t *ret)
{
    uint32_t v = 0;

    for (int i = 0; i < digits; i++, p->at++) {
        int h = p->at < p->end ? utf8_hex(*p->at) : -1;

        if (h < 0)
            return fail(p, start, "expected %d hexadecimal digits after '\\%c'", digits, start[1]);
        v = v << 4 | (uint32_t)h;
    }
    *ret = v;
    return true;
}

static bool put_char(struct parser *p, const char *start, uint32_t c)
{
    char bytes[4];

    if (c == 0)
        return fail(p, start, "a string cannot hold U+0000");
    buf_append(&p->scratch, bytes, utf8_put(c, bytes));
    return true;
}

/* After \u: one character, which takes a second escape if the first is half a pair. */
static bool read_unicode(struct parser *p, const char *start)
{
    uint32_t c = 0, low = 0;

    if (!read_hex(p, start, 4, &c))
        return false;
    if (c >= 0xd800 && c < 0xe000) {
        const char *second = p->at;

        if (c < 0xdc00 && p->end - p->at >= 2 && p->at[0] == '\\' && p->at[1] == 'u') {
            p->at += 2;
            if (!read_hex(p, second, 4, &low))
                return false;
        }
        if (low < 0xdc00 || low >= 0xe000)
            return fail(p, start, "'\\u%04x' is half a surrogate pair", c);
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    return put_char(p, start, c);
}

static bool read_escape(struct parser *p)
{
    static const char from[] = "bfnrtv", to[] = "\b\f\n\r\t\v";
    const char *start = p->at++, *known;
    uint32_t c;
    size_t n;

    if (p->at == p->end)
        return true; /* the string is not closed, which the caller tells */
    c = chars_at(p->at, &n);
    p->at += n;
    if (c == 'u')
        return read_unicode(p, start);
    if (c == 'x')
        return read_hex(p, start, 2, &c) && put_char(p, start, c);
    if (chars_is_line_end(c)) { /* the string goes on in the next line */
        if (c == '\r' && is_next(p, '\n'))
            p->at++;
        return true;
    }
    if ((c >= '1' && c <= '9') || (c == '0' && is_digit_next(p)))
        return fail(p, start, "a digit cannot be escaped: write \\xHH for a character");
    known = c && c < 0x80 ? memchr(from, (int)c, sizeof(from) - 1) : NULL;
    return put_char(p, start, known ? (uint32_t)to[known - from] : c == '0' ? 0 : c);
}

static bool read_string(struct parser *p)
{
    const char *open = p->at++;

    buf_clear(&p->scratch);
    for (;;) {
        const char *run = p->at;

        while (p->at < p->end && *p->at != *open && *p->at != '\\' && *p->at != '\n' &&
               *p->at != '\r' && *p->at)
            p->at++;
        buf_append(&p->scratch, run, (size_t)(p->at - run));
        if (p->at == p->end)
            return fail(p, open, "the string is not closed");
        if (*p->at == *open)
            break;
        if (!*p->at)
            return fail(p, p->at, "a string cannot hold U+0000");
        if (*p->at != '\\')
            return fail(p, open, "the string is not closed in its line");
        if (!read_escape(p))
            return false;
    }
    p->at++;
    return !p->scratch.failed || fail_memory(p);
}

static bool read_bare_key(struct parser *p)
{
    const char *start = p->at;

    buf_clear(&p->scratch);
    while (p->at < p->end) {
        const char *here = p->at;
        bool first = here == start;
        char bytes[4];
        uint32_t c;
        size_t n;

        c = chars_at(here, &n);
        if (c == '\\') {
            if (p->end - here < 2 || here[1] != 'u')
                return fail(p, here, "only \\uXXXX is an escape in a bare key");
            p->at += 2;
            if (!read_hex(p, here, 4, &c))
                return false;
            if (!chars_is_word(c, first))
                return fail(p, here, "'\\u%04x' cannot stand in a bare key", c);
        } else if (chars_is_word(c, first)) {
            p->at += n;
        } else {
            break;
        }
        buf_append(&p->scratch, bytes, utf8_put(c, bytes));
    }
    if (p->at == start)
        return fail(p, start, "expected a key or '}', found %s", show_here(p).text);
    return !p->scratch.failed || fail_memory(p);
}

/* ---- numbers and words ---- */

static bool skip_digits(struct parser *p)
{
    const char *start = p->at;

    while (is_digit_next(p))
        p->at++;
    return p->at > start;
}

/* Behind the sign. *ret_whole: digits only, so that it may be more exact than a double. */
static bool skip_decimal(struct parser *p, bool *ret_whole)
{
    const char *start = p->at;
    bool digits = skip_digits(p);

    if (digits && *start == '0' && p->at - start > 1)
        return fail(p, start, "a number cannot start with a zero and another digit");
    *ret_whole = true;
    if (is_next(p, '.')) {
        p->at++;
        digits |= skip_digits(p);
        *ret_whole = false;
    }
    if (!digits)
        return fail(p, p->at, "expected a digit, found %s", show_here(p).text);
    if (is_next(p, 'e') || is_next(p, 'E')) {
        p->at++;
        if (is_next(p, '+') || is_next(p, '-'))
            p->at++;
        if (!skip_digits(p))
            return fail(p, p->at, "expected the digits of an exponent, found %s",
                        show_here(p).text);
        *ret_whole = false;
    }
    return true;
}

static bool skip_number(struct parser *p, bool *ret_whole, bool *ret_hex)
{
    if (is_next(p, '+') || is_next(p, '-'))
        p->at++;
    *ret_hex = p->end - p->at >= 2 && p->at[0] == '0' && (p->at[1] | 0x20) == 'x';
    if (!*ret_hex)
        return skip_decimal(p, ret_whole);
    p->at += 2;
    if (p->at == p->end || utf8_hex(*p->at) < 0)
        return fail(p, p->at, "expected a hexadecimal digit, found %s", show_here(p).text);
    while (p->at < p->end && utf8_hex(*p->at) >= 0)
        p->at++;
    *ret_whole = true;
    return true;
}

/* strtod() reads by LC_NUMERIC, which no program of ours sets. */
static json_t *read_number(struct parser *p)
{
    const char *start = p->at;
    bool whole = false, is_hex = false;
    long long n;
    double d;

    if (!skip_number(p, &whole, &is_hex))
        return NULL;
    buf_clear(&p->scratch);
    buf_append(&p->scratch, start, (size_t)(p->at - start));
    if (p->scratch.failed) {
        (void)fail_memory(p);
        return NULL;
    }
    errno = 0;
    n = whole ? strtoll(p->scratch.data, NULL, is_hex ? 16 : 10) : 0;
    if (whole && !errno && (n != 0 || *start != '-'))
        return json_integer(n);
    d = strtod(p->scratch.data, NULL);
    if (!isfinite(d)) {
        (void)fail(p, start, "the number is too large");
        return NULL;
    }
    /* 1e3 and 5.0 are whole as well; -0 is not an integer of ours, and keeps its sign. Both ends
     * are left out, since what did not fit as it was written may have been rounded to them. */
    if (!whole && d == trunc(d) && d > -0x1p63 && d < 0x1p63 && !(d == 0 && signbit(d)))
        return json_integer((json_int_t)d);
    return json_real(d);
}

static json_t *read_word(struct parser *p, const char *key)
{
    static const char *const words[] = {"null", "true", "false", "Infinity", "NaN"};
    json_t *const values[] = {json_null(), json_true(), json_false(), NULL, NULL};
    const char *end = p->at;
    size_t n;

    while (end < p->end && chars_is_word(chars_at(end, &n), false))
        end += n;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t len = strlen(words[i]);

        if ((size_t)(end - p->at) != len || memcmp(p->at, words[i], len) != 0)
            continue;
        if (!values[i])
            (void)fail(p, p->at, "expected a finite number, found '%s'", words[i]);
        p->at = end;
        return values[i];
    }
    if (key)
        (void)fail(p, p->at, "expected the value of %s, found %s", show_text(key).text,
                   show_here(p).text);
    else
        (void)fail(p, p->at, "expected a value, found %s", show_here(p).text);
    return NULL;
}

/* ---- containers ---- */

static bool enter(struct parser *p)
{
    if (p->depth == LIMIT_CONFIG_DEPTH)
        return fail_limit(p, p->at, LIMIT_CONFIG_DEPTH, "objects and arrays in each other");
    p->depth++;
    p->at++;
    return true;
}

static void leave(struct parser *p)
{
    p->depth--;
    p->at++;
}

/* Before the value of the member called `word`, which stands at `at`: false if it is the one. */
static bool pass_member(struct parser *p, const char *word, const char *at)
{
    if (!p->path || p->matched != p->depth - 1 || strcmp(p->path[p->matched], word) != 0)
        return true;
    if (p->path[p->matched + 1]) {
        p->matched++; /* its value leads on */
        return true;
    }
    p->found = at;
    return false;
}

/* The value of that member, after which the path is no longer followed below it. */
static json_t *read_member(struct parser *p, const char *key)
{
    json_t *value = read_value(p, key);

    if (p->matched >= p->depth)
        p->matched = p->depth - 1;
    return value;
}

/* The first of the two stands where the object, read again and only as far, has the key. */
static bool fail_duplicate(struct parser *p, const char *object, const char *key, const char *at)
{
    const char *const path[] = {key, NULL};
    struct error ignored;
    struct parser again = {
        .text = p->text, .at = object, .end = p->end, .path = path, .err = &ignored};
    struct text_place first;

    buf_init(&again.scratch, LIMIT_CONFIG_BYTES);
    json_decref(read_value(&again, NULL));
    buf_done(&again.scratch);
    first = chars_place(p->text, again.found ? again.found : object);
    return fail(p, at, "the key %s is already given in line %u, column %u", show_text(key).text,
                first.line, first.column);
}

/* To be freed. The colon behind it is read too. */
static char *read_key(struct parser *p)
{
    bool quoted = is_next(p, '"') || is_next(p, '\'');
    autofree char *key = NULL;

    if (!(quoted ? read_string(p) : read_bare_key(p)))
        return NULL;
    key = strndup(p->scratch.data, p->scratch.len);
    if (!key) {
        (void)fail_memory(p);
        return NULL;
    }
    if (!skip_space(p))
        return NULL;
    if (!is_next(p, ':')) {
        (void)fail(p, p->at, "expected ':' after the key %s, found %s", show_text(key).text,
                   show_here(p).text);
        return NULL;
    }
    p->at++;
    return TAKE_PTR(key);
}

/* One key and its value, and the comma behind it if there is one. `open` is where the object is. */
static bool read_pair(struct parser *p, const char *open, json_t *object)
{
    const char *at = p->at;
    autofree char *key = read_key(p);
    json_t *value;

    if (!key)
        return false;
    if (json_object_get(object, key))
        return fail_duplicate(p, open, key, at);
    if (++p->keys > LIMIT_CONFIG_KEYS)
        return fail_limit(p, at, LIMIT_CONFIG_KEYS, "keys");
    if (!pass_member(p, key, at))
        return false;
    value = read_member(p, key);
    if (!value)
        return false;
    if (json_object_set_new_nocheck(object, key, value) < 0)
        return fail_memory(p);
    if (!skip_space(p))
        return false;
    if (is_next(p, ','))
        p->at++;
    else if (!is_next(p, '}'))
        return fail(p, p->at, "expected ',' or '}' after the value of %s, found %s",
                    show_text(key).text, show_here(p).text);
    return true;
}

static json_t *read_object(struct parser *p)
{
    const char *open = p->at;
    json_auto_t *object = json_object();

    if (!object || !enter(p))
        return NULL;
    for (;;) {
        if (!skip_space(p))
            return NULL;
        if (is_next(p, '}'))
            break;
        if (!read_pair(p, open, object))
            return NULL;
    }
    leave(p);
    return TAKE_PTR(object);
}

static bool read_element(struct parser *p, json_t *array)
{
    char index[24] = "";
    json_t *value;

    if (p->path && p->matched == p->depth - 1)
        (void)snprintf(index, sizeof(index), "%zu", json_array_size(array));
    if (*index && p->at < p->end && !pass_member(p, index, p->at))
        return false;
    value = read_member(p, NULL);
    if (!value)
        return false;
    if (json_array_append_new(array, value) < 0)
        return fail_memory(p);
    if (!skip_space(p))
        return false;
    if (is_next(p, ','))
        p->at++;
    else if (!is_next(p, ']'))
        return fail(p, p->at, "expected ',' or ']' after a value, found %s", show_here(p).text);
    return true;
}

static json_t *read_array(struct parser *p)
{
    json_auto_t *array = json_array();

    if (!array || !enter(p))
        return NULL;
    for (;;) {
        if (!skip_space(p))
            return NULL;
        if (is_next(p, ']'))
            break;
        if (!read_element(p, array))
            return NULL;
    }
    leave(p);
    return TAKE_PTR(array);
}

static json_t *read_value(struct parser *p, const char *key)
{
    if (!skip_space(p))
        return NULL;
    if (is_next(p, '{'))
        return read_object(p);
    if (is_next(p, '['))
        return read_array(p);
    if (is_next(p, '"') || is_next(p, '\''))
        return read_string(p) ? json_stringn_nocheck(p->scratch.data, p->scratch.len) : NULL;
    if (p->at < p->end && strchr("+-.0123456789", *p->at) && *p->at)
        return read_number(p);
    return read_word(p, key);
}

/* ---- documents ---- */

static json_t *read_document(struct parser *p)
{
    json_auto_t *value = NULL;

    if (p->end - p->text > (ptrdiff_t)LIMIT_CONFIG_BYTES) {
        (void)fail_limit(p, p->text, LIMIT_CONFIG_BYTES, "bytes");
        return NULL;
    }
    p->wrong = chars_find_bad(p->text, p->end);
    if (p->wrong) {
        (void)fail(p, p->wrong, "the byte 0x%02x is not UTF-8", (unsigned char)*p->wrong);
        return NULL;
    }
    if (!skip_space(p))
        return NULL;
    if (p->path && !p->path[0] && p->at < p->end) {
        p->found = p->at;
        return NULL;
    }
    value = read_value(p, NULL);
    if (!value || !skip_space(p))
        return NULL;
    if (p->at < p->end) {
        (void)fail(p, p->at, "expected nothing after the value, found %s", show_here(p).text);
        return NULL;
    }
    return TAKE_PTR(value);
}

int json5_parse(const char *text, size_t len, json_t **ret, struct text_place *ret_place,
                struct error *err)
{
    struct parser p = {.text = text, .at = text, .end = text + len, .err = err};
    json_t *value;

    buf_init(&p.scratch, LIMIT_CONFIG_BYTES);
    value = read_document(&p);
    buf_done(&p.scratch);
    if (value) {
        *ret = value;
        return 0;
    }
    if (!p.wrong) /* jansson gave no value, which is the one reason that it has */
        (void)fail_memory(&p);
    *ret_place = chars_place(text, p.wrong);
    return -(int)err->code;
}

int json5_locate(const char *text, size_t len, const char *const *path, struct text_place *ret)
{
    struct error ignored;
    struct parser p = {.text = text, .at = text, .end = text + len, .path = path, .err = &ignored};

    buf_init(&p.scratch, LIMIT_CONFIG_BYTES);
    json_decref(read_document(&p));
    buf_done(&p.scratch);
    if (!p.found)
        return -ENOENT;
    *ret = chars_place(text, p.found);
    return 0;
}
