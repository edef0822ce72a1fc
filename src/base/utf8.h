/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* UTF-8 both ways (RFC 3629), and the few classes of characters that several readers ask for. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The well-formed character (RFC 3629) at `s`: how many bytes it has; 0 if there is none. */
size_t utf8_take(const char *s, size_t len, uint32_t *ret);
/* How many bytes of ASCII stand at its beginning. */
size_t utf8_ascii(const char *s, size_t len);
bool utf8_is_valid(const char *s, size_t len);
/* How many bytes it took; a surrogate is the caller's mistake. */
size_t utf8_put(uint32_t c, char out[4]);
/* The value of a hexadecimal digit, or -1. */
int utf8_hex(char c);
/* C0, DEL and C1. */
bool utf8_is_control(uint32_t c);
/* What JavaScript's trim() takes off, line ends and U+FEFF included; JSON5's white space too. */
bool utf8_is_space(uint32_t c);
