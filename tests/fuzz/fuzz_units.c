/* SPDX-License-Identifier: Apache-2.0 */
/* Units: what is read is what the digits say, and what is written can be read again. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "tests/fuzz/fuzz.h"

typedef unsigned __int128 wide;

/* "digits[.digits]" in thousandths of a unit, rounded down, if it is short enough to say exactly.
 */
static int read_exact(const char *s, wide *ret, const char **rest)
{
    size_t whole = strspn(s, "0123456789"), part = 0;
    wide v = 0;

    if (whole == 0 || whole > 18)
        return -1;
    for (size_t i = 0; i < whole; i++)
        v = v * 10 + (wide)(s[i] - '0');
    s += whole;
    if (*s == '.') {
        part = strspn(++s, "0123456789");
        if (part == 0)
            return -1;
    }
    for (size_t i = 0; i < 3; i++)
        v = v * 10 + (wide)(i < part ? s[i] - '0' : 0);
    *rest = s + part;
    *ret = v;
    return 0;
}

static uint64_t size_factor(const char *unit)
{
    static const struct {
        const char *name;
        uint64_t factor;
    } units[] = {{"", 1 << 20},      {"b", 1},           {"k", 1 << 10},   {"kb", 1 << 10},
                 {"kib", 1 << 10},   {"m", 1 << 20},     {"mb", 1 << 20},  {"mib", 1 << 20},
                 {"g", 1 << 30},     {"gb", 1 << 30},    {"gib", 1 << 30}, {"t", 1ULL << 40},
                 {"tb", 1ULL << 40}, {"tib", 1ULL << 40}};

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (strcasecmp(unit, units[i].name) == 0)
            return units[i].factor;
    return 0;
}

static void check_size(const char *s)
{
    uint64_t v = 77, back, f;
    int r = units_parse_size(s, &v);
    const char *rest;
    char text[32];
    wide milli;

    PROPERTY(r == 0 || r == -EINVAL || r == -ERANGE, "size '%s': %d", s, r);
    PROPERTY(r == 0 || v == 77, "size '%s': written though it failed", s);
    if (r < 0)
        return;
    PROPERTY(v > 0 && v <= INT64_MAX, "size '%s': %llu", s, (unsigned long long)v);
    if (read_exact(s, &milli, &rest) == 0) {
        f = size_factor(rest);
        PROPERTY(f, "size '%s': no such unit", s);
        /* Never a byte more than the digits say, and less only by what comes after three decimals
         * and rounding. */
        PROPERTY((wide)v <= (milli + 1) * f / 1000 + 1, "size '%s': %llu is too much", s,
                 (unsigned long long)v);
        PROPERTY((wide)v + f / 500 + 200 >= milli * f / 1000, "size '%s': %llu is too little", s,
                 (unsigned long long)v);
    }
    PROPERTY(units_parse_size(units_format_size(v, text, sizeof(text)), &back) == 0,
             "size '%s': wrote '%s'", s, text);
    PROPERTY(back <= v && v - back <= v / 8, "size '%s': %llu became '%s'", s,
             (unsigned long long)v, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *s = fuzz_text(data, size), text[40];
    uint64_t usec = 77, count = 77;
    uint32_t milli = 77;
    int r;

    check_size(s);
    r = units_parse_duration(s, &usec);
    PROPERTY(r < 0 ? usec == 77 : usec > 0, "duration '%s': %d, %llu", s, r,
             (unsigned long long)usec);
    (void)units_format_usec(usec, text, sizeof(text));
    PROPERTY(text[strlen(text) - 1] == 's', "duration '%s': wrote '%s'", s, text);
    r = units_parse_cpu(s, &milli);
    PROPERTY(r < 0 ? milli == 77 : milli > 0 && milli <= 4096000, "cpu '%s': %d, %u", s, r, milli);
    r = units_parse_count(s, 1000, &count);
    PROPERTY(r < 0 ? count == 77 : count > 0 && count <= 1000, "count '%s': %d, %llu", s, r,
             (unsigned long long)count);
    free(s);
    return 0;
}
