/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct unit {
    const char *suffix;
    uint64_t factor;
};

/* Reads "digits[.digits]" as value * factor without floating point; what follows is in *rest. */
static int read_scaled(const char *s, uint64_t factor, uint64_t *ret, const char **rest)
{
    uint64_t value = 0, part = 0, whole = 1;
    size_t digits = 0;

    for (; *s >= '0' && *s <= '9'; s++, digits++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*s - '0'), &value))
            return -ERANGE;
    }
    if (__builtin_mul_overflow(value, factor, &value))
        return -ERANGE;
    if (digits && *s == '.') {
        const char *first = ++s;

        for (; *s >= '0' && *s <= '9'; s++)
            if (whole < 10000000000) { /* further digits are below what anybody means */
                part = part * 10 + (uint64_t)(*s - '0');
                whole *= 10;
            }
        if (s == first)
            return -EINVAL;
        if (__builtin_add_overflow(value, (uint64_t)((unsigned __int128)part * factor / whole),
                                   &value))
            return -ERANGE;
    }
    *ret = value;
    *rest = s;
    return digits ? 0 : -EINVAL;
}

/* The suffix decides the factor, so the number is read again once it is known. */
static int parse_united(const char *s, const struct unit *units, uint64_t *ret)
{
    const char *rest;
    uint64_t value;
    int r = read_scaled(s, 1, &value, &rest);

    if (r < 0)
        return r;
    for (; units->suffix; units++) {
        if (strcasecmp(rest, units->suffix) != 0)
            continue;
        r = read_scaled(s, units->factor, &value, &rest);
        if (r < 0)
            return r;
        if (value == 0)
            return -ERANGE;
        *ret = value;
        return 0;
    }
    return -EINVAL;
}

int units_parse_duration(const char *s, uint64_t *ret_usec)
{
    static const struct unit units[] = {
        {"", 1000000},        {"s", 1000000},        {"ms", 1000}, {"m", 60000000},
        {"h", 3600000000ULL}, {"d", 86400000000ULL}, {0}};
    uint64_t usec;
    int r = parse_united(s, units, &usec);

    if (r < 0)
        return r;
    if (usec > INT64_MAX)
        return -ERANGE;
    *ret_usec = usec;
    return 0;
}

int units_parse_size(const char *s, uint64_t *ret_bytes)
{
    static const struct unit units[] = {{"", 1 << 20},
                                        {"b", 1},
                                        {"k", 1 << 10},
                                        {"kb", 1 << 10},
                                        {"m", 1 << 20},
                                        {"mb", 1 << 20},
                                        {"g", 1 << 30},
                                        {"gb", 1 << 30},
                                        {"t", 1ULL << 40},
                                        {"tb", 1ULL << 40},
                                        {"kib", 1 << 10},
                                        {"mib", 1 << 20},
                                        {"gib", 1 << 30},
                                        {"tib", 1ULL << 40},
                                        {0}};
    uint64_t bytes;
    int r = parse_united(s, units, &bytes);

    if (r < 0)
        return r;
    if (bytes > INT64_MAX)
        return -ERANGE;
    *ret_bytes = bytes;
    return 0;
}

int units_parse_cpu(const char *s, uint32_t *ret_milli)
{
    static const struct unit units[] = {{"", 1000}, {"%", 10}, {0}};
    uint64_t milli;
    int r = parse_united(s, units, &milli);

    if (r < 0)
        return r;
    if (milli > 4096000)
        return -ERANGE;
    *ret_milli = (uint32_t)milli;
    return 0;
}

int units_parse_count(const char *s, uint64_t max, uint64_t *ret)
{
    const char *rest;
    uint64_t value;
    int r = strchr(s, '.') ? -EINVAL : read_scaled(s, 1, &value, &rest);

    if (r < 0)
        return r;
    if (*rest)
        return -EINVAL;
    if (value == 0 || value > max)
        return -ERANGE;
    *ret = value;
    return 0;
}

const char *units_format_size(uint64_t bytes, char *text, size_t size)
{
    static const struct unit units[] = {
        {"t", 1ULL << 40}, {"g", 1 << 30}, {"m", 1 << 20}, {"k", 1 << 10}};

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        uint64_t f = units[i].factor;

        if (bytes < f)
            continue;
        if (bytes % f == 0)
            (void)snprintf(text, size, "%llu%s", (unsigned long long)(bytes / f), units[i].suffix);
        else
            (void)snprintf(text, size, "%llu.%llu%s", (unsigned long long)(bytes / f),
                           (unsigned long long)(bytes % f * 10 / f), units[i].suffix);
        return text;
    }
    (void)snprintf(text, size, "%llub", (unsigned long long)bytes);
    return text;
}

const char *units_format_usec(uint64_t usec, char *text, size_t size)
{
    (void)snprintf(text, size, "%llu.%03llus", (unsigned long long)(usec / 1000000),
                   (unsigned long long)(usec % 1000000 / 1000));
    return text;
}
