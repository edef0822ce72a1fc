/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values without quotes: booleans, numbers and date-times. Each is one word, the longest run of the
 * characters that any of them may have, which must then be one of them from end to end.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "toml/internal.h"

struct word {
    const char *at, *to; /* what is left of it */
};

static bool is_digit(char c, int base)
{
    if (c >= '0' && c <= '9')
        return c - '0' < base;
    return base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'));
}

static bool word_at(const struct word *w, char c)
{
    return w->at < w->to && *w->at == c;
}

static bool word_take(struct word *w, char c)
{
    if (!word_at(w, c))
        return false;
    w->at++;
    return true;
}

static bool word_is(const struct word *w, const char *s)
{
    size_t n = strlen(s);

    return (size_t)(w->to - w->at) == n && memcmp(w->at, s, n) == 0;
}

/* ---- numbers ---- */

/* Digits with single '_' between them. Here and below: NULL, or what is wrong with the word. */
static const char *take_digits(struct word *w, int base)
{
    do {
        if (w->at == w->to || !is_digit(*w->at, base))
            return "a digit is missing";
        while (w->at < w->to && is_digit(*w->at, base))
            w->at++;
    } while (word_take(w, '_'));
    return NULL;
}

static const char *take_whole_part(struct word *w)
{
    if (!word_take(w, '0'))
        return take_digits(w, 10);
    return w->at < w->to && (is_digit(*w->at, 10) || *w->at == '_') ? "it begins with 0" : NULL;
}

static const char *take_fraction(struct word *w)
{
    const char *problem = NULL;

    if (word_take(w, '.'))
        problem = take_digits(w, 10);
    if (!problem && (word_take(w, 'e') || word_take(w, 'E'))) {
        if (!word_take(w, '+'))
            (void)word_take(w, '-');
        problem = take_digits(w, 10);
    }
    return problem;
}

/* Counts downwards, because there is one more negative number than there are positive ones. */
static bool to_integer(struct word w, int base, bool negative, int64_t *ret)
{
    int64_t v = 0;

    for (; w.at < w.to; w.at++) {
        int digit = *w.at <= '9' ? *w.at - '0' : (*w.at | 0x20) - 'a' + 10;

        if (*w.at != '_' &&
            (__builtin_mul_overflow(v, base, &v) || __builtin_sub_overflow(v, digit, &v)))
            return false;
    }
    if (!negative && v == INT64_MIN)
        return false;
    *ret = negative ? v : -v;
    return true;
}

static int make_integer(struct toml_reader *p, struct word whole, struct word digits, int base,
                        json_t **ret)
{
    int64_t v;

    if (!to_integer(digits, base, *whole.at == '-', &v))
        return toml_fail(p, whole.at, "expected an integer of 64 bits, found %s",
                         toml_show(whole.at, whole.to).text);
    *ret = json_integer(v);
    return *ret ? 0 : toml_fail_memory(p);
}

/* No program of ours sets LC_NUMERIC, so that strtod() takes a point. */
static int make_real(struct toml_reader *p, struct word whole, json_t **ret)
{
    double v;

    buf_clear(&p->text);
    for (const char *s = whole.at; s < whole.to; s++)
        if (*s != '_')
            buf_append(&p->text, s, 1);
    if (p->text.failed)
        return toml_fail_memory(p);
    v = strtod(p->text.data, NULL);
    if (!isfinite(v))
        return toml_fail(p, whole.at, "expected a number of at most 1.8e308, found %s",
                         toml_show(whole.at, whole.to).text);
    *ret = json_real(v);
    return *ret ? 0 : toml_fail_memory(p);
}

static int bad_word(struct toml_reader *p, struct word whole, const char *kind, const char *problem)
{
    return toml_fail(p, whole.at, "expected a %s, found %s: %s", kind,
                     toml_show(whole.at, whole.to).text, problem);
}

static int base_of(const struct word *w)
{
    if (w->to - w->at < 2 || w->at[0] != '0')
        return 10;
    return w->at[1] == 'x' ? 16 : w->at[1] == 'o' ? 8 : w->at[1] == 'b' ? 2 : 10;
}

static int read_number(struct toml_reader *p, struct word whole, json_t **ret)
{
    struct word w = whole, digits;
    int base = base_of(&w);
    const char *problem;

    if (base != 10)
        w.at += 2;
    else if (!word_take(&w, '+'))
        (void)word_take(&w, '-');
    digits = w;
    problem = base == 10 ? take_whole_part(&w) : take_digits(&w, base);
    digits.to = w.at;
    if (!problem && base == 10)
        problem = take_fraction(&w);
    if (!problem && w.at < w.to)
        problem = "it goes on after its digits";
    if (problem)
        return bad_word(p, whole, "number", problem);
    if (w.at == digits.to)
        return make_integer(p, whole, digits, base, ret);
    return make_real(p, whole, ret);
}

/* ---- date-times ---- */

static bool take_fixed(struct word *w, int n, int *ret)
{
    int v = 0;

    for (; n > 0; n--, w->at++) {
        if (w->at == w->to || !is_digit(*w->at, 10))
            return false;
        v = 10 * v + (*w->at - '0');
    }
    *ret = v;
    return true;
}

static int days_of(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return month == 2 && leap ? 29 : days[month - 1];
}

static const char *take_date(struct word *w)
{
    int year, month, day;

    if (!take_fixed(w, 4, &year) || !word_take(w, '-') || !take_fixed(w, 2, &month) ||
        !word_take(w, '-') || !take_fixed(w, 2, &day))
        return "a date is written 1979-05-27";
    if (month < 1 || month > 12)
        return "months are 01 to 12";
    return day < 1 || day > days_of(year, month) ? "that month has no such day" : NULL;
}

static const char *take_hour_and_minute(struct word *w, const char *form)
{
    int hour, minute;

    if (!take_fixed(w, 2, &hour) || !word_take(w, ':') || !take_fixed(w, 2, &minute))
        return form;
    return hour > 23 ? "hours are 00 to 23" : minute > 59 ? "minutes are 00 to 59" : NULL;
}

static const char *take_time(struct word *w)
{
    static const char form[] = "a time is written 07:32:00 or 07:32:00.5";
    const char *problem = take_hour_and_minute(w, form);
    int second;

    if (problem)
        return problem;
    if (!word_take(w, ':') || !take_fixed(w, 2, &second))
        return form;
    /* RFC 3339 knows a second 60, but only on the days that had one. */
    if (second > 59)
        return "seconds are 00 to 59";
    if (!word_take(w, '.'))
        return NULL;
    if (w->at == w->to || !is_digit(*w->at, 10))
        return form;
    while (w->at < w->to && is_digit(*w->at, 10))
        w->at++;
    return NULL;
}

static const char *take_offset(struct word *w)
{
    static const char form[] = "after the time comes Z or an offset such as +02:00";

    if (word_take(w, 'Z') || word_take(w, 'z'))
        return NULL;
    return word_take(w, '+') || word_take(w, '-') ? take_hour_and_minute(w, form) : form;
}

static const char *take_date_time(struct word *w)
{
    const char *problem = take_date(w);

    if (problem || w->at == w->to)
        return problem;
    if (!word_take(w, 'T') && !word_take(w, 't') && !word_take(w, ' '))
        return "a time comes after 'T' or one blank";
    problem = take_time(w);
    return problem || w->at == w->to ? problem : take_offset(w);
}

static int read_date_time(struct toml_reader *p, struct word whole, bool is_time, json_t **ret)
{
    struct word w = whole;
    const char *problem = is_time ? take_time(&w) : take_date_time(&w);

    if (!problem && w.at < w.to)
        problem = "it goes on after its end";
    if (problem)
        return bad_word(p, whole, is_time ? "time" : "date", problem);
    buf_clear(&p->text);
    buf_append(&p->text, whole.at, (size_t)(whole.to - whole.at));
    if (p->text.failed)
        return toml_fail_memory(p);
    if (!is_time && p->text.len > 10)
        p->text.data[10] = 'T';
    *ret = json_stringn_nocheck(p->text.data, p->text.len);
    return *ret ? 0 : toml_fail_memory(p);
}

/* ---- words ---- */

/* n digits and then c: four before '-' begin a date, two before ':' a time. */
static bool begins_with(const struct word *w, int n, char c)
{
    if (w->to - w->at <= n || w->at[n] != c)
        return false;
    while (n > 0)
        if (!is_digit(w->at[--n], 10))
            return false;
    return true;
}

static void take_word(struct toml_reader *p)
{
    while (p->at < p->end &&
           (toml_is_bare(*p->at) || *p->at == '+' || *p->at == '.' || *p->at == ':'))
        p->at++;
}

/* Reads on after a date when a blank and a digit follow: that can only be its time. */
static struct word whole_word(struct toml_reader *p)
{
    struct word w = {.at = p->at};

    take_word(p);
    w.to = p->at;
    if (w.to - w.at == 10 && begins_with(&w, 4, '-') && p->end - p->at >= 2 && p->at[0] == ' ' &&
        is_digit(p->at[1], 10)) {
        p->at++;
        take_word(p);
        w.to = p->at;
    }
    return w;
}

static int read_special(struct toml_reader *p, struct word whole, json_t **ret)
{
    struct word w = whole;

    if (word_is(&w, "true") || word_is(&w, "false")) {
        *ret = json_boolean(*w.at == 't');
        return 0;
    }
    if (!word_take(&w, '+'))
        (void)word_take(&w, '-');
    if (word_is(&w, "inf") || word_is(&w, "nan"))
        return toml_fail(p, whole.at, "expected a finite number, found %s",
                         toml_show(whole.at, whole.to).text);
    return toml_fail(p, whole.at, "expected a value, found %s: a string needs quotes",
                     toml_show(whole.at, whole.to).text);
}

int toml_read_scalar(struct toml_reader *p, json_t **ret)
{
    struct word whole = whole_word(p);
    char first;

    if (whole.at == whole.to)
        return toml_fail(p, p->at, "expected a value, found %s", toml_found(p).text);
    if (begins_with(&whole, 4, '-') || begins_with(&whole, 2, ':'))
        return read_date_time(p, whole, whole.at[2] == ':', ret);
    first = *whole.at;
    if ((first == '+' || first == '-') && whole.to - whole.at > 1)
        first = whole.at[1];
    if (is_digit(first, 10) || first == '.' || first == '_')
        return read_number(p, whole, ret);
    return read_special(p, whole, ret);
}
