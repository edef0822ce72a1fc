/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/internal.h"

#include <string.h>

static const char *const modern[] = {"2026-07-28"};
static const char *const legacy[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *find(const char *const *list, size_t n, const char *text)
{
    for (size_t i = 0; text && i < n; i++)
        if (strcmp(list[i], text) == 0)
            return list[i];
    return NULL;
}

const char *version_modern(const char *text)
{
    return find(modern, COUNT(modern), text);
}

const char *version_legacy(const char *text)
{
    return find(legacy, COUNT(legacy), text);
}

const char *version_newest_legacy(void)
{
    return legacy[0];
}

bool version_has_structured(const char *version)
{
    return strcmp(version, "2025-06-18") >= 0; /* they are dates */
}

json_t *version_list(bool legacy_too)
{
    json_t *list = json_array();

    for (size_t i = 0; i < COUNT(modern); i++)
        (void)json_array_append_new(list, json_string(modern[i]));
    for (size_t i = 0; legacy_too && i < COUNT(legacy); i++)
        (void)json_array_append_new(list, json_string(legacy[i]));
    return list;
}
