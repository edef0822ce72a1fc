/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * TOML 1.0 text into jansson values. Pure: bytes in, values out; no files, no clock.
 *
 * Date-times become strings as they were written (but 'T' between date and time); inf and nan, and
 * NUL in a string or key, are errors with their place, because a value of ours cannot hold them;
 * so is anything beyond LIMIT_CONFIG_BYTES or LIMIT_CONFIG_DEPTH. Everything else that TOML 1.0
 * allows is read and everything else is refused.
 */
#include <jansson.h>
#include <stddef.h>

#include "base/place.h"

struct error;

/* On failure *ret_place says where, and err says what stood there and what was expected. */
int toml_parse(const char *text, size_t len, json_t **ret, struct text_place *ret_place,
               struct error *err);

/* Where the key stands that `path` leads to (keys, and decimal indices in arrays; NULL ends it).
 * Negative when the text does not hold it. Reads the text again: for messages only. */
int toml_locate(const char *text, size_t len, const char *const *path, struct text_place *ret);
