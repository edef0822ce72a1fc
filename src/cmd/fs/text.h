/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names and numbers as text, byte for byte as Python prints them. Names are UTF-8; a byte that is
 * not becomes a lone surrogate (U+DC80 to U+DCFF), from which the client gets the byte back.
 */
struct buf;

/* With at least this many digits. */
void text_number(struct buf *b, long long n, int digits);
/* A JSON string in ASCII, as json.dumps() makes it. */
void text_json(struct buf *b, const char *name);
/* As repr() shows it; of the characters that it thinks cannot be printed, the common ones. */
void text_quoted(struct buf *b, const char *name);
