/* SPDX-License-Identifier: Apache-2.0 */
/* A glob, a NUL, a name: compared with a plain recursive matcher where there are only * ? and
 * letters. */
#include "base/error.h"
#include "files/regex.h"
#include "tests/fuzz/fuzz.h"

/* Short patterns only: it is exponential, which is why it is not the one we use. */
static int slow(const char *p, size_t np, const char *s, size_t ns)
{
    if (np == 0)
        return ns == 0;
    if (p[0] == '*')
        return slow(p + 1, np - 1, s, ns) || (ns && s[0] != '/' && slow(p, np, s + 1, ns - 1));
    if (ns == 0)
        return 0;
    return (p[0] == '?' ? s[0] != '/' : p[0] == s[0]) && slow(p + 1, np - 1, s + 1, ns - 1);
}

static int is_simple(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr("abc./*?", p[i]) || !p[i] || (p[i] == '*' && i && p[i - 1] == '*'))
            return 0;
    return n < 12 && n > 0 && p[0] != '/' && !(n > 1 && p[0] == '.' && p[1] == '/');
}

static int is_ascii(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] >= 0x80)
            return 0;
    return n < 24;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    size_t np = strnlen(p, size), ns = size - np - (np < size);
    const char *s = p + size - ns;
    struct files_regex *re = NULL;
    struct error err = {0};
    int r = files_regex_new(p, np, FILES_REGEX_GLOB, &re, &err), got;

    PROPERTY(r == 0 ? re != NULL : !re && (strstr(err.msg, "glob") || strstr(err.msg, "pattern")),
             "result %d: %s", r, err.msg);
    if (!re)
        return 0;
    got = files_regex_match(re, s, ns);
    PROPERTY(files_regex_match(re, s, ns) == got, "the second time differs");
    if (is_simple(p, np) && is_ascii(s, ns))
        PROPERTY(got == slow(p, np, s, ns), "'%.*s' on '%.*s': %d", (int)np, p, (int)ns, s, got);
    files_regex_free(re);
    return 0;
}
