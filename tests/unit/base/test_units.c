/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"

#include "tests/test.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)
#define SEC UINT64_C(1000000)

struct row {
    const char *text;
    int r;
    uint64_t value;
};

typedef int (*parser)(const char *s, uint64_t *ret);

static void check_rows(const struct row *rows, size_t n, parser parse)
{
    for (size_t i = 0; i < n; i++) {
        const struct row *row = &rows[i];
        uint64_t got = 77;
        int r = parse(row->text, &got);

        CHECK(r == row->r, "'%s': result %d, want %d", row->text, r, row->r);
        CHECK(got == (r < 0 ? 77 : row->value), "'%s': %llu, want %llu", row->text,
              (unsigned long long)got, (unsigned long long)(r < 0 ? 77 : row->value));
    }
}

static void test_sizes(void **state)
{
    static const struct row rows[] = {
        {"1b", 0, 1},
        {"4k", 0, 4 * KIB},
        {"4kb", 0, 4 * KIB},
        {"4KiB", 0, 4 * KIB},
        {"256m", 0, 256 * MIB},
        {"256M", 0, 256 * MIB},
        {"256MB", 0, 256 * MIB},
        {"1g", 0, GIB},
        {"1GiB", 0, GIB},
        {"2t", 0, 2 * TIB},
        {"007k", 0, 7 * KIB},
        {"8388607t", 0, 8388607 * TIB},
    };

    (void)state;
    check_rows(rows, COUNT(rows), units_parse_size);
}

static void test_bare_size(void **state)
{
    static const struct row rows[] = {
        {"1", 0, MIB}, {"256", 0, 256 * MIB}, {"1000", 0, 1000 * MIB}};

    (void)state;
    check_rows(rows, COUNT(rows), units_parse_size);
}

static void test_no_size(void **state)
{
    static const struct row rows[] = {
        {"", -EINVAL, 0},     {"m", -EINVAL, 0},      {"-1m", -EINVAL, 0},
        {"+1m", -EINVAL, 0},  {" 1m", -EINVAL, 0},    {"1 m", -EINVAL, 0},
        {"1m ", -EINVAL, 0},  {"1mm", -EINVAL, 0},    {"1.m", -EINVAL, 0},
        {".5m", -EINVAL, 0},  {"1.5.5m", -EINVAL, 0}, {"1,5m", -EINVAL, 0},
        {"0x10", -EINVAL, 0}, {"1e3", -EINVAL, 0},    {"inf", -EINVAL, 0},
        {"1s", -EINVAL, 0},   {"%", -EINVAL, 0},      {"\xef\xbc\x91m", -EINVAL, 0},
    };

    (void)state;
    check_rows(rows, COUNT(rows), units_parse_size);
}

static void test_size_range(void **state)
{
    static const struct row rows[] = {
        {"0", -ERANGE, 0},
        {"0b", -ERANGE, 0},
        {"0.0g", -ERANGE, 0},
        {"8388608t", -ERANGE, 0}, /* 2^63: file offsets are signed */
        {"9223372036854775807b", 0, INT64_MAX},
        {"9223372036854775808b", -ERANGE, 0},
        {"18446744073709551616b", -ERANGE, 0},
        {"99999999999999999999999999g", -ERANGE, 0},
        {"18446744073709551615k", -ERANGE, 0},
    };

    (void)state;
    check_rows(rows, COUNT(rows), units_parse_size);
}

static void test_durations(void **state)
{
    static const struct row rows[] = {
        {"30", 0, 30 * SEC},      {"30s", 0, 30 * SEC},  {"250ms", 0, 250000},
        {"1.5s", 0, 1500000},     {"0.000001s", 0, 1},   {"2m", 0, 120 * SEC},
        {"1h", 0, 3600 * SEC},    {"1H", 0, 3600 * SEC}, {"1d", 0, 86400 * SEC},
        {"0.5h", 0, 1800 * SEC},  {"0", -ERANGE, 0},     {"0s", -ERANGE, 0},
        {"0.0001ms", -ERANGE, 0}, {"1us", -EINVAL, 0},   {"1y", -EINVAL, 0},
        {"", -EINVAL, 0},         {"s", -EINVAL, 0},     {"-5s", -EINVAL, 0},
        {"1m30s", -EINVAL, 0},    {"1:30", -EINVAL, 0},  {"999999999999999999d", -ERANGE, 0},
    };

    (void)state;
    check_rows(rows, COUNT(rows), units_parse_duration);
}

static int parse_cpu(const char *s, uint64_t *ret)
{
    uint32_t milli = 77;
    int r = units_parse_cpu(s, &milli);

    *ret = milli;
    return r;
}

static void test_cpus(void **state)
{
    static const struct row rows[] = {
        {"1", 0, 1000},       {"0.5", 0, 500},          {"50%", 0, 500},
        {"2.25", 0, 2250},    {"150%", 0, 1500},        {"12.5%", 0, 125},
        {"0.001", 0, 1},      {"0.0001", -ERANGE, 0},   {"0%", -ERANGE, 0},
        {"4096", 0, 4096000}, {"4096.001", -ERANGE, 0}, {"99999999999999", -ERANGE, 0},
        {"-1", -EINVAL, 0},   {"1x", -EINVAL, 0},       {"%", -EINVAL, 0},
        {"50%%", -EINVAL, 0},
    };

    (void)state;
    check_rows(rows, COUNT(rows), parse_cpu);
}

static int parse_count(const char *s, uint64_t *ret)
{
    return units_parse_count(s, 1000, ret);
}

static void test_counts(void **state)
{
    static const struct row rows[] = {
        {"1", 0, 1},        {"1000", 0, 1000},  {"1001", -ERANGE, 0},
        {"0", -ERANGE, 0},  {"", -EINVAL, 0},   {"-1", -EINVAL, 0},
        {"1k", -EINVAL, 0}, {"1 ", -EINVAL, 0}, {"18446744073709551617", -ERANGE, 0},
    };

    (void)state;
    check_rows(rows, COUNT(rows), parse_count);
}

static void test_count_is_whole(void **state)
{
    static const struct row rows[] = {{"1.5", -EINVAL, 0}, {"2.0", -EINVAL, 0}, {"1.", -EINVAL, 0}};

    (void)state;
    check_rows(rows, COUNT(rows), parse_count);
}

static void test_fractions(void **state)
{
    static const struct row rows[] = {
        {"0.5k", 0, 512},           {"1.5m", 0, 3 * MIB / 2},   {"1.5g", 0, 3 * GIB / 2},
        {"0.25g", 0, GIB / 4},      {"2.75t", 0, 11 * TIB / 4}, {"0.125m", 0, MIB / 8},
        {"1.0009765625k", 0, 1025},
    };

    (void)state;
    check_rows(rows, COUNT(rows), units_parse_size);
}

static void test_size_text(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {
        {0, "0b"},
        {1, "1b"},
        {1023, "1023b"},
        {KIB, "1k"},
        {KIB + 512, "1.5k"},
        {10 * MIB, "10m"},
        {256 * MIB, "256m"},
        {3 * GIB / 2, "1.5g"},
        {GIB - 1, "1023.9m"},
        {TIB, "1t"},
        {UINT64_MAX, "16777215.9t"},
    };
    char text[32];

    (void)state;
    FOR_EACH(row, rows)
    CHECK_STR(units_format_size(row->bytes, text, sizeof(text)), row->text, row->text);
}

static void test_size_round_trip(void **state)
{
    static const uint64_t sizes[] = {1,          512, KIB,     5 * KIB,      256 * MIB,
                                     1000 * MIB, GIB, 7 * TIB, 8388607 * TIB};
    char text[32];

    (void)state;
    FOR_EACH(size, sizes)
    {
        uint64_t back = 0;

        assert_int_equal(units_parse_size(units_format_size(*size, text, sizeof(text)), &back), 0);
        CHECK(back == *size, "%s: %llu, want %llu", text, (unsigned long long)back,
              (unsigned long long)*size);
    }
}

static void test_fraction_round_trip(void **state)
{
    static const char *const texts[] = {"1.5k", "1.5m", "1.5g", "2.5g", "10.5m", "1.5t"};
    char text[32];

    (void)state;
    FOR_EACH(want, texts)
    {
        uint64_t bytes = 0;

        assert_int_equal(units_parse_size(*want, &bytes), 0);
        CHECK_STR(units_format_size(bytes, text, sizeof(text)), *want, *want);
    }
}

static void test_usec_text(void **state)
{
    static const struct {
        uint64_t usec;
        const char *text;
    } rows[] = {{0, "0.000s"},
                {999, "0.000s"},
                {1000, "0.001s"},
                {1250000, "1.250s"},
                {3600 * SEC, "3600.000s"}};
    char text[40];

    (void)state;
    FOR_EACH(row, rows)
    CHECK_STR(units_format_usec(row->usec, text, sizeof(text)), row->text, row->text);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a size is a number and a power of 1024", test_sizes),
        CLAIM("a bare size is MB", test_bare_size),
        CLAIM("what is not wholly a size is none", test_no_size),
        CLAIM("a size is above 0 and fits a file offset", test_size_range),
        CLAIM("a fraction of a size is exact", test_fractions),
        CLAIM("a bare duration is seconds", test_durations),
        CLAIM("a share of a processor is a number or a percentage", test_cpus),
        CLAIM("a count lies between 1 and its maximum", test_counts),
        CLAIM("a count has no fraction", test_count_is_whole),
        CLAIM("sizes are written with one decimal at most", test_size_text),
        CLAIM("a whole size is read back as it was written", test_size_round_trip),
        CLAIM("a fraction is shown as it was typed", test_fraction_round_trip),
        CLAIM("times are written in seconds", test_usec_text),
    };

    return RUN_CLAIMS("base/units", claims);
}
