/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * jansson's values as text: what json_dumps(JSON_COMPACT | JSON_REAL_PRECISION(15)) writes, byte
 * for byte, at a fifth of its cost for long strings. jansson looks at each character on its own;
 * its strings are UTF-8 already, so only what has to be escaped is looked for here.
 */
#include <jansson.h>

struct buf;

void json_put(struct buf *out, const json_t *value);
/* The same as a text of its own, to be freed; NULL without memory. */
char *json_text(const json_t *value);
