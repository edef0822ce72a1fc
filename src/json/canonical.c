/* SPDX-License-Identifier: Apache-2.0 */
#include "json/canonical.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"

/* A caller may put a configuration that was read into something of its own. */
#define MOST_DEPTH (2 * LIMIT_CONFIG_DEPTH)
/* Whole numbers up to here are exact in JavaScript. */
#define MOST_EXACT (1ll << 53)

/* ---- order ---- */

/*
 * The first level of ICU's root collation for ASCII: letters without regard to case, and the
 * controls that are not here do not count at all. Bytes of other characters come after all of it in
 * their own order, which in UTF-8 is that of the code points.
 */
static unsigned primary(unsigned char c)
{
    static const char order[] = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789"
                                "abcdefghijklmnopqrstuvwxyz";
    const char *at;

    if (c >= 0x80)
        return c;
    if (c >= 'A' && c <= 'Z')
        c |= 0x20;
    at = memchr(order, c, sizeof(order) - 1);
    return at ? (unsigned)(at - order) + 1 : 0;
}

/* The next byte that counts, or the NUL. */
static const char *next_counted(const char *s)
{
    while (*s && primary((unsigned char)*s) == 0)
        s++;
    return s;
}

int canonical_compare(const char *a, const char *b)
{
    int by_case = 0; /* decides if nothing else does: the first difference, lower before upper */

    for (;; a++, b++) {
        unsigned x, y;

        a = next_counted(a);
        b = next_counted(b);
        x = *a ? primary((unsigned char)*a) : 0;
        y = *b ? primary((unsigned char)*b) : 0;
        if (x != y)
            return x < y ? -1 : 1;
        if (x == 0)
            return by_case;
        if (by_case == 0 && *a != *b)
            by_case = *a > *b ? -1 : 1;
    }
}

/* JavaScript keeps the keys that are indices of arrays before all others, by their number. */
static bool is_index(const char *key, uint64_t *ret)
{
    uint64_t n = 0;
    size_t len = strspn(key, "0123456789");

    if (len == 0 || len > 10 || key[len] || (key[0] == '0' && len > 1))
        return false;
    for (size_t i = 0; i < len; i++)
        n = 10 * n + (uint64_t)(key[i] - '0');
    *ret = n;
    return n < UINT32_MAX;
}

struct member {
    const char *key;
    json_t *value;
};

static int compare_members(const void *a, const void *b)
{
    const char *x = ((const struct member *)a)->key, *y = ((const struct member *)b)->key;
    uint64_t m = 0, n = 0;
    bool first = is_index(x, &m), second = is_index(y, &n);
    int r;

    if (first && second)
        return m < n ? -1 : m > n;
    if (first || second)
        return first ? -1 : 1;
    r = canonical_compare(x, y);
    return r ? r : strcmp(x, y); /* the order in the text must not show */
}

/* ---- numbers ---- */

/* The next decimal of as many digits, in the form D.DDDe+XX; false for 9.99. */
static bool step_up(char *text)
{
    char *at = strchr(text, 'e');

    while (at-- > text) {
        if (*at == '.')
            continue;
        if (*at != '9') {
            ++*at;
            return true;
        }
        *at = '0';
    }
    return false;
}

/*
 * The fewest digits that are this number again, and of those the nearest. *ret_point is where the
 * decimal point stands: 0.DDD times ten to that power. snprintf() and strtod() go by LC_NUMERIC,
 * which no program of ours sets.
 *
 * Below a power of two the doubles lie twice as dense as above it, so that of the decimals around
 * one the nearest may be another number when the next is not: 2^544 is 5.758609657015292e+163.
 */
static size_t shortest_digits(double d, char digits[24], int *ret_point)
{
    char text[40];
    size_t n = 0;

    for (int more = 0; more <= 16; more++) {
        (void)snprintf(text, sizeof(text), "%.*e", more, d);
        if (strtod(text, NULL) == d || (step_up(text) && strtod(text, NULL) == d))
            break;
    }
    for (const char *s = text; *s != 'e'; s++)
        if (*s != '.')
            digits[n++] = *s;
    digits[n] = 0;
    *ret_point = (int)strtol(strchr(text, 'e') + 1, NULL, 10) + 1;
    return n;
}

/* Number::toString of ECMAScript. */
static void put_double(struct buf *out, double d)
{
    char digits[24];
    int n, point;

    if (d < 0)
        buf_puts(out, "-");
    if (d == 0) { /* -0 too */
        buf_puts(out, "0");
        return;
    }
    n = (int)shortest_digits(fabs(d), digits, &point);
    if (point > 21 || point < -5)
        buf_printf(out, "%c%s%se%+d", digits[0], n > 1 ? "." : "", digits + 1, point - 1);
    else if (point <= 0)
        buf_printf(out, "0.%.*s%s", -point, "00000", digits);
    else if (n <= point)
        buf_printf(out, "%s%.*s", digits, point - n, "00000000000000000000");
    else
        buf_printf(out, "%.*s.%s", point, digits, digits + point);
}

static void put_integer(struct buf *out, json_int_t n)
{
    if (n > MOST_EXACT || n < -MOST_EXACT)
        put_double(out, (double)n);
    else
        buf_printf(out, "%lld", (long long)n);
}

/* ---- values ---- */

/* buf_json_string() escapes otherwise than JavaScript: \u000a, and DEL. */
static void put_string(struct buf *out, const char *s, size_t len)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";

    buf_append(out, "\"", 1);
    for (size_t i = 0, run = 0; i <= len; i++) {
        unsigned char c = i < len ? (unsigned char)s[i] : 0;
        const char *known;

        if (i < len && c >= 0x20 && c != '"' && c != '\\')
            continue;
        buf_append(out, s + run, i - run);
        run = i + 1;
        known = c ? memchr(from, c, sizeof(from) - 1) : NULL;
        if (known)
            buf_printf(out, "\\%c", to[known - from]);
        else if (i < len)
            buf_printf(out, "\\u%04x", c);
    }
    buf_append(out, "\"", 1);
}

static int put_value(const json_t *value, unsigned depth, struct buf *out, struct error *err);

static int put_array(const json_t *array, unsigned depth, struct buf *out, struct error *err)
{
    buf_puts(out, "[");
    for (size_t i = 0; i < json_array_size(array); i++) {
        int r;

        if (i)
            buf_puts(out, ",");
        r = put_value(json_array_get(array, i), depth, out, err);
        if (r < 0)
            return r;
    }
    buf_puts(out, "]");
    return 0;
}

static int put_object(const json_t *object, unsigned depth, struct buf *out, struct error *err)
{
    autofree struct member *members = calloc(json_object_size(object) + 1, sizeof(*members));
    const char *key;
    json_t *value;
    size_t n = 0;

    if (!members)
        return error_sys(err, -ENOMEM, "sort %zu keys", json_object_size(object));
    json_object_foreach((json_t *)object, key, value) /* which changes nothing */
        members[n++] = (struct member){key, value};
    qsort(members, n, sizeof(*members), compare_members);
    buf_puts(out, "{");
    for (size_t i = 0; i < n; i++) {
        int r;

        if (i)
            buf_puts(out, ",");
        put_string(out, members[i].key, strlen(members[i].key));
        buf_puts(out, ":");
        r = put_value(members[i].value, depth, out, err);
        if (r < 0)
            return r;
    }
    buf_puts(out, "}");
    return 0;
}

static int put_value(const json_t *value, unsigned depth, struct buf *out, struct error *err)
{
    if (depth == MOST_DEPTH && (json_is_object(value) || json_is_array(value)))
        return error_set(err, ERR_TOO_LARGE, "more than %u objects and arrays in each other",
                         MOST_DEPTH);
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return put_object(value, depth + 1, out, err);
    case JSON_ARRAY:
        return put_array(value, depth + 1, out, err);
    case JSON_STRING:
        put_string(out, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        put_integer(out, json_integer_value(value));
        break;
    case JSON_REAL:
        put_double(out, json_real_value(value));
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
    return 0;
}

int canonical_format(const json_t *value, struct buf *out, struct error *err)
{
    int r = put_value(value, 0, out, err);

    if (r >= 0 && out->failed)
        return error_set(err, ERR_TOO_LARGE, "the value as text has more than %zu bytes", out->max);
    return r;
}
