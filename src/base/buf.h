/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A growing byte buffer that cannot be made without a maximum.
 *
 * Once an append fails (too large, out of memory) the buffer stays failed and further appends do
 * nothing, so that a writer checks once, at the end. The content is always NUL-terminated.
 */
#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data;
    size_t len, cap, max;
    bool failed;
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);
void buf_clear(struct buf *b);
void buf_append(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void buf_json_string(struct buf *b, const char *s, size_t len);
/* "key": with a comma before it unless it opens an object. */
void buf_json_key(struct buf *b, const char *key);
void buf_json_str(struct buf *b, const char *key, const char *value);
/* An array of strings: `n` of them, or as many as stand before a NULL. */
void buf_json_strings(struct buf *b, const char *key, char *const *list, size_t n);
void buf_json_num(struct buf *b, const char *key, long long value);
void buf_json_bool(struct buf *b, const char *key, bool value);
/* Seconds with six decimals. */
void buf_json_seconds(struct buf *b, const char *key, unsigned long long usec);

#define autobuf cleanup_(buf_done) struct buf
