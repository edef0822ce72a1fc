/* SPDX-License-Identifier: Apache-2.0 */
/* The pattern is the first line, the text the rest: the same answer as from a plain table. */
#include "policy/glob.h"

#include "base/cleanup.h"
#include "tests/fuzz/fuzz.h"

#define TEXT_MAX 2048

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* may[j]: does the pattern so far match the first j characters? One row per pattern character. */
static bool by_table(const char *pattern, const char *text)
{
    bool may[TEXT_MAX + 1] = {true};
    size_t n = strlen(text);

    for (; *pattern; pattern++) {
        bool next[TEXT_MAX + 1] = {false};

        for (size_t j = 0; j <= n; j++)
            if (*pattern == '*')
                next[j] = may[j] || (j && next[j - 1]);
            else
                next[j] = j && may[j - 1] && lower(*pattern) == lower(text[j - 1]);
        memcpy(may, next, sizeof(may));
    }
    return may[n];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *pattern = fuzz_text(data, size < TEXT_MAX ? size : TEXT_MAX);
    char *text = strchr(pattern, '\n');
    bool match;

    if (!text)
        return 0;
    *text++ = 0;
    match = glob_match(pattern, text);
    PROPERTY(match == by_table(pattern, text), "'%s' on '%s': %d", pattern, text, match);
    return 0;
}
