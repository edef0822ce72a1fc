/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Characters of a text that is read for people: places in UTF-8, the classes that JSON5 has, and
 * how a piece of the text is shown in a message. Pure, without tables of Unicode's own size.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/place.h"

/* The first byte that does not belong to a well-formed character (RFC 3629), or NULL. */
const char *chars_find_bad(const char *text, const char *end);
/* Only for text without such a byte, and before its end. */
uint32_t chars_at(const char *at, size_t *ret_len);

bool chars_is_line_end(uint32_t c);
/* What a bare key may hold, or start with: ECMAScript's identifiers, and outside ASCII more. */
bool chars_is_word(uint32_t c, bool first);

/* In quotes, cut, and with nothing that a terminal would obey or hide. */
struct chars_shown {
    char text[112];
};
struct chars_shown chars_show(const char *s, const char *end);

/* A line begins after whatever ends one of JSON5's; CR LF is one such end. `at` is not within it.
 */
struct text_place chars_place(const char *text, const char *at);
