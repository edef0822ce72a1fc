/* SPDX-License-Identifier: Apache-2.0 */
#include "json/chars.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

const char *chars_find_bad(const char *text, const char *end)
{
    while (text < end) {
        uint32_t c;
        size_t n = utf8_take(text, (size_t)(end - text), &c);

        if (n == 0)
            return text;
        text += n;
    }
    return NULL;
}

uint32_t chars_at(const char *at, size_t *ret_len)
{
    const unsigned char *s = (const unsigned char *)at;
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    uint32_t c = n == 1 ? s[0] : s[0] & (0x7fu >> n);

    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s[i] & 0x3fu);
    *ret_len = n;
    return c;
}

/* ---- classes ---- */

struct range {
    uint32_t first, last;
};

static bool in_ranges(uint32_t c, const struct range *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (c >= r[i].first && c <= r[i].last)
            return true;
    return false;
}
#define IN_RANGES(c, table) in_ranges((c), (table), sizeof(table) / sizeof((table)[0]))

bool chars_is_line_end(uint32_t c)
{
    return c == '\n' || c == '\r' || c == 0x2028 || c == 0x2029;
}

/*
 * Letters, marks and digits outside ASCII are not told from each other by Unicode's tables, which
 * grow every year: whatever is not a control, blank, punctuation, symbol or private character by
 * its block passes. So every bare key that npm's json5 takes is taken, and some more.
 */
static bool is_letter_like(uint32_t c)
{
    static const struct range never[] = {
        {0x80, 0xa9},       {0xab, 0xb4},         {0xb6, 0xb9},     {0xbb, 0xbf},
        {0xd7, 0xd7},       {0xf7, 0xf7},         {0x61c, 0x61c},   {0x180e, 0x180e},
        {0x1d173, 0x1d17a}, {0x1680, 0x1680},     {0x2000, 0x200b}, {0x200e, 0x203e},
        {0x2041, 0x2053},   {0x2055, 0x2070},     {0x2072, 0x207e}, {0x2080, 0x208f},
        {0x20a0, 0x20cf},   {0x2189, 0x2bff},     {0x2e00, 0x2e2e}, {0x2e30, 0x2e7f},
        {0x2ff0, 0x3004},   {0x3008, 0x3020},     {0x3030, 0x3030}, {0x303d, 0x303f},
        {0xd800, 0xf8ff},   {0xfe10, 0xfe1f},     {0xfe30, 0xfe32}, {0xfe35, 0xfe4c},
        {0xfe50, 0xfe6f},   {0xfeff, 0xff0f},     {0xff1a, 0xff20}, {0xff3b, 0xff3e},
        {0xff40, 0xff40},   {0xff5b, 0xff65},     {0xffe0, 0xffff}, {0x1f000, 0x1faff},
        {0xe0000, 0xe00ff}, {0xe01f0, UINT32_MAX}};

    return c >= 0x80 && !IN_RANGES(c, never);
}

bool chars_is_word(uint32_t c, bool first)
{
    /* Marks, joiners and connectors continue a word but do not start one. */
    static const struct range later[] = {
        {0x300, 0x36f}, {0x200c, 0x200d}, {0x203f, 0x2040}, {0x2054, 0x2054}};

    if (c < 0x80)
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '$' || c == '_' ||
               (!first && c >= '0' && c <= '9');
    return is_letter_like(c) && !(first && IN_RANGES(c, later));
}

/* ---- messages ---- */

struct text_place chars_place(const char *text, const char *at)
{
    struct text_place place = {.line = 1, .column = 1};
    size_t n;

    for (; text < at; text += n) {
        uint32_t c = chars_at(text, &n);

        if (!chars_is_line_end(c)) {
            place.column++;
        } else if (c != '\r' || text + 1 >= at || text[1] != '\n') {
            place.line++;
            place.column = 1;
        }
    }
    return place;
}

/* A letter is shown as it is, but not the joiners, which look like nothing. */
static bool is_visible(uint32_t c)
{
    return c < 0x80 ? c >= 0x20 && c != 0x7f : is_letter_like(c) && c != 0x200c && c != 0x200d;
}

struct chars_shown chars_show(const char *s, const char *end)
{
    struct chars_shown out = {.text = "'"};
    size_t at = 1, n;

    for (; s < end; s += n) {
        uint32_t c = chars_at(s, &n);
        size_t left = sizeof(out.text) - at;

        if (left < 16) { /* the longest character here has 8 bytes: \u10ffff */
            at += (size_t)snprintf(out.text + at, left, "...");
            break;
        }
        if (is_visible(c)) {
            memcpy(out.text + at, s, n);
            at += n;
        } else {
            at += (size_t)snprintf(out.text + at, left, "\\u%04x", c);
        }
    }
    memcpy(out.text + at, "'", 2);
    return out;
}
