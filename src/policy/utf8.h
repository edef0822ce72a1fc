/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Characters of what people and models write, for words.c and names.c. Pure. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The well-formed character (RFC 3629) at `s`: how many bytes it has; 0 if there is none. */
size_t utf8_take(const char *s, size_t len, uint32_t *ret);
/* C0, DEL and C1. */
bool utf8_is_control(uint32_t c);
/* What JavaScript's trim() takes off, line ends and U+FEFF included. */
bool utf8_is_space(uint32_t c);
