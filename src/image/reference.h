/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names of images: [REGISTRY/]REPOSITORY[:TAG][@sha256:HEX], by the grammar that registries share.
 * Pure. A digest becomes part of a path only after digest_parse() has seen it.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"

struct error;

#define DIGEST_HEX 65 /* with NUL */

struct reference {
    char registry[LIMIT_IMAGE_NAME + 1]; /* host[:port], or "" */
    char repository[LIMIT_IMAGE_NAME + 1];
    char tag[129];           /* "latest" if neither tag nor digest was given */
    char digest[DIGEST_HEX]; /* hex of @sha256:, or "" */
};

/* "sha256:" and 64 lower-case hex digits, nothing else. */
bool digest_parse(const char *text, char ret_hex[DIGEST_HEX]);
/* From 1 to 64 lower-case hex digits. */
bool digest_is_hex(const char *text, size_t len);

int reference_parse(const char *text, struct reference *ret, struct error *err);

#define REFERENCE_TEXT (LIMIT_IMAGE_NAME + 1)
/* The one spelling: with tag, or with digest if it has one; "" if that does not fit. */
void reference_format(const struct reference *ref, char text[REFERENCE_TEXT]);
/* The file name of such a text in names/, and back; -EINVAL for what is none. */
int reference_encode(const char *text, char *file, size_t size);
int reference_decode(const char *file, char text[REFERENCE_TEXT]);
