/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One text for one value, so that equal configurations have equal hashes: JavaScript's
 * JSON.stringify of the value with the keys of every object in the order of localeCompare (for
 * ASCII as ICU's root collation has it; other characters after it, by code point); array order
 * kept; no blanks. OpenClaw hashes its configuration so (its config hash is the SHA-256 of this).
 *
 * As in every object of JavaScript, keys that are array indices ("0", "17") come first, by number.
 * Keys that differ in ignored controls only, which localeCompare takes for equal, go by bytes.
 */
#include <jansson.h>

struct buf;
struct error;

/* Appends to `out`. Numbers print as JavaScript prints them: beyond 2^53 as the nearest double. */
int canonical_format(const json_t *value, struct buf *out, struct error *err);
/* < 0, 0, > 0 as a.localeCompare(b) in the root locale, for ASCII. */
int canonical_compare(const char *a, const char *b);
