/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What bytes are in HTTP's grammar, without locales. For the files of this folder. */
#include <stdbool.h>
#include <stddef.h>

#include "http/http.h"

enum http_char {
    HTTP_CHAR_TEXT =
        1, /* in a line: blank, tab, visible, and 0x80-0xff, whose meaning is unknown */
    HTTP_CHAR_TOKEN = 2,  /* RFC 9110 tchar: names and methods */
    HTTP_CHAR_TARGET = 4, /* in a path or query: visible ASCII but '#', which never travels */
    HTTP_CHAR_HOST = 8,   /* letters, digits, '-', '.', '_' */
    HTTP_CHAR_HEX = 16,
};

extern const unsigned char http_chars[256];

static inline bool http_is(char c, unsigned classes)
{
    return http_chars[(unsigned char)c] & classes;
}

/* The value of a hex digit, or -1. */
int http_hex(char c);
/* How many bytes from the start are of the class. */
size_t http_span(const char *at, size_t len, enum http_char class);
/* Equal but for the case of ASCII letters. */
bool http_same(const char *a, size_t a_len, const char *b, size_t b_len);
bool http_slice_is(struct http_slice s, const char *text);
/* Without the blanks and tabs at both ends. */
struct http_slice http_trim(struct http_slice s);
/* A decimal number without sign, leading zero or anything around it, at most max. */
bool http_number(struct http_slice s, uint64_t max, uint64_t *ret);
