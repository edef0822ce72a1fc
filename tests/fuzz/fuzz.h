/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What fuzz targets share: the entry point, and properties that abort when they do not hold. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PROPERTY(cond, ...)               \
    do {                                  \
        if (!(cond)) {                    \
            fprintf(stderr, __VA_ARGS__); \
            fprintf(stderr, "\n");        \
            abort();                      \
        }                                 \
    } while (0)

/* A NUL-terminated copy without inner NULs, to be freed. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *s = malloc(size + 1);

    if (!s)
        abort();
    for (size_t i = 0; i < size; i++)
        s[i] = data[i] ? (char)data[i] : ' ';
    s[size] = 0;
    return s;
}
