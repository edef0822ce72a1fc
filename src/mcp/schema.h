/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part of JSON Schema 2020-12 that our tools are described in, and its check. Pure.
 *
 *  type (a word or a list of words), enum, const · properties, required, additionalProperties (a
 *  boolean or a schema) · items, minItems, maxItems · minLength, maxLength (characters) · minimum,
 *  maximum. Told to people only: title, description, default, examples, format, deprecated,
 *  $schema, $comment, x-mcp-header.
 *
 * A schema with any other word is refused when it is read: what a tool promises of its arguments
 * is kept, or it is not promised.
 */
#include <jansson.h>

struct error;

/* Can schema_check() keep this? The message names the place. */
int schema_accept(const json_t *schema, struct error *err);

/*
 * Is the value as the schema wants it? The message begins with the path of what is not
 * ("edits[2].old"; `root` for the value itself). Where an integer is wanted, 5.0 is one, and
 * becomes the integer 5 in place: whoever reads the value later need not know of both.
 */
int schema_check(const json_t *schema, json_t *value, const char *root, struct error *err);
