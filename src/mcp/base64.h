/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Base64 (RFC 4648). What is read is strict: one text for one value. */
#include <stdbool.h>
#include <stddef.h>

struct buf;

enum base64_kind {
    BASE64_PLAIN, /* + and /, padded with = */
    BASE64_URL,   /* - and _, not padded */
};

void base64_put(const void *data, size_t len, enum base64_kind kind, struct buf *out);
/* Appends what the text stands for; false if it is not such a text (or out has failed). */
bool base64_take(const char *text, size_t len, enum base64_kind kind, struct buf *out);
