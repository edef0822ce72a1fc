/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * JSON5 text into jansson values. Pure: bytes in, values out; no files, no clock.
 *
 * The grammar is JSON5 1.0 as npm's `json5` reads it, but for five things that a configuration is
 * better without, each an error with its place: a key given twice in one object; NUL in a string
 * or key; a lone surrogate; Infinity and NaN, and numbers too large for a double; anything beyond
 * LIMIT_CONFIG_BYTES, LIMIT_CONFIG_DEPTH or LIMIT_CONFIG_KEYS. One thing is laxer: bare keys take
 * every letter-like character outside ASCII (json/chars.h). Whole numbers that fit become
 * json_integer (1e3 and 5.0 too), all others json_real; -0 is one of those.
 */
#include <jansson.h>
#include <stddef.h>

#include "base/place.h"

struct error;

/* On failure *ret_place says where, and err says what stood there and what was expected. */
int json5_parse(const char *text, size_t len, json_t **ret, struct text_place *ret_place,
                struct error *err);

/* Where the member stands that `path` leads to (keys, and decimal indices in arrays; NULL ends
 * it; an empty one leads to the whole value): the place of its key, or of the element. Negative
 * when the text does not hold it. Reads the text again, so that a tree of values need not carry
 * places: for messages only. */
int json5_locate(const char *text, size_t len, const char *const *path, struct text_place *ret);
