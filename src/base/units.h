/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The values people type: durations, sizes, shares of a processor. 0, or -EINVAL / -ERANGE. */
#include <stddef.h>
#include <stdint.h>

/* "30s", "2m", "1h", "250ms", "1.5s"; a bare number is seconds. More than 0. */
int units_parse_duration(const char *s, uint64_t *ret_usec);
/* "256m", "1g", "4k", "512b"; a bare number is MB (C6). Powers of 1024. More than 0. */
int units_parse_size(const char *s, uint64_t *ret_bytes);
/* "0.5" processors or "50%"; in thousandths of a processor. More than 0. */
int units_parse_cpu(const char *s, uint32_t *ret_milli);
/* A decimal count from 1 to max. */
int units_parse_count(const char *s, uint64_t max, uint64_t *ret);

/* "256m", "1.5g", "512b": the shortest that is exact to one decimal. */
const char *units_format_size(uint64_t bytes, char *text, size_t size);
/* "1.250s". */
const char *units_format_usec(uint64_t usec, char *text, size_t size);
