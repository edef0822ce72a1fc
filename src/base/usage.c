/* SPDX-License-Identifier: Apache-2.0 */
#include "base/usage.h"

#include <stdbool.h>
#include <string.h>

#include "base/log.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

unsigned usage_distance(const char *a, const char *b)
{
    enum { MAX = 80 };
    unsigned rows[3][MAX + 1];
    size_t n = strlen(a), m = strlen(b);

    if (n > MAX || m > MAX || n > m + 4 || m > n + 4)
        return 99;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned *now = rows[i % 3], *before = rows[(i + 2) % 3], *older = rows[(i + 1) % 3];

        now[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            bool same = lower(a[i - 1]) == lower(b[j - 1]);
            unsigned best = before[j - 1] + !same;

            if (before[j] + 1 < best)
                best = before[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]) && older[j - 2] + 1 < best)
                best = older[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[n % 3][m];
}

/* What stands behind the program's name, which every message has anyway. */
static const char *behind_name(const char *command)
{
    const char *space = strchr(command, ' ');

    return space ? space + 1 : "";
}

int usage_unknown(const char *command, const char *word)
{
    const char *where = behind_name(command);

    log_error("%s%sunknown %s '%s': see '%s --help'", where, *where ? ": " : "",
              word[0] == '-' ? "option" : "word", word, command);
    return 2;
}

int usage_unknown_verb(const char *command, const char *word, const void *verbs, size_t n,
                       size_t size)
{
    const char *where = behind_name(command), *near = NULL;
    unsigned best = 99;

    if (word[0] == '-')
        return usage_unknown(command, word);
    for (size_t i = 0; i < n; i++) {
        const char *name = *(const char *const *)((const char *)verbs + i * size);
        unsigned d = usage_distance(word, name);

        if (d < best && 3 * d <= strlen(name)) { /* a letter in three may be wrong */
            best = d;
            near = name;
        }
    }
    if (near)
        log_error("%s%sunknown verb '%s': did you mean '%s'? See '%s --help'", where,
                  *where ? ": " : "", word, near, command);
    else
        log_error("%s%sunknown verb '%s': see '%s --help'", where, *where ? ": " : "", word,
                  command);
    return 2;
}
