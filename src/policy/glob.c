/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/glob.h"

#include <stddef.h>

/* Not tolower(): a locale must not change what a policy means. */
static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same(char a, char b, bool exact)
{
    return exact ? a == b : lower(a) == lower(b);
}

static bool match(const char *pattern, const char *text, bool exact)
{
    /* Only the last star needs to be tried again: what an earlier one could take more of, the
     * last one can take as well. So there is one place to come back to, and no recursion. */
    const char *after_star = NULL, *taken = NULL;

    while (*text) {
        if (*pattern == '*') {
            after_star = ++pattern;
            taken = text;
        } else if (same(*pattern, *text, exact)) {
            pattern++;
            text++;
        } else if (after_star) {
            pattern = after_star;
            text = ++taken;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == 0;
}

bool glob_match(const char *pattern, const char *text)
{
    return match(pattern, text, false);
}

bool glob_match_exact(const char *pattern, const char *text)
{
    return match(pattern, text, true);
}
