/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First byte: flags; then a pattern, a NUL, and the text. Whatever compiles must say the same of a
 * text at once and after another text, line by line and over all lines; and in the subset that
 * POSIX reads alike, the same as libc.
 */
#include <regex.h>

#include "base/error.h"
#include "files/regex.h"
#include "tests/fuzz/fuzz.h"

/* Only what both read alike: no empty parts, no repeated repetitions, no escapes. */
static bool is_common(const char *s)
{
    if (!*s || strlen(s) > 24)
        return false;
    for (const char *p = s; *p; p++) {
        char before = p == s ? 0 : p[-1];

        if (!strchr("abc.()|*+?^$", *p))
            return false;
        if (strchr("*+?", *p) && (!before || strchr("(|^$*+?", before)))
            return false;
        if (strchr("|)", *p) && (!before || strchr("(|", before)))
            return false;
        if (strchr("|(", *p) && !p[1])
            return false;
    }
    return true;
}

static void check_libc(const char *pattern, struct files_regex *re, const char *text, size_t len)
{
    char copy[64];
    regex_t posix;

    if (!is_common(pattern) || len >= sizeof(copy) || memchr(text, 0, len) ||
        memchr(text, '\n', len) || memchr(text, '\r', len))
        return;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] >= 0x80)
            return;
    memcpy(copy, text, len);
    copy[len] = 0;
    if (regcomp(&posix, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return;
    PROPERTY((regexec(&posix, copy, 0, NULL, 0) == 0) == files_regex_match(re, text, len),
             "'%s' on '%s': not like libc", pattern, copy);
    regfree(&posix);
}

/* The first line that matches, one by one. */
static const char *first_line(struct files_regex *re, const char *text, size_t len)
{
    const char *end = text + len;

    for (const char *p = text; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));

        if (files_regex_match(re, p, (size_t)((nl ? nl : end) - p)))
            return p;
        p = nl ? nl + 1 : end;
    }
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned flags = size ? data[0] & (FILES_REGEX_ICASE | FILES_REGEX_LITERAL) : 0;
    const char *s = (const char *)data + (size > 0);
    size_t n = size - (size > 0), len = strnlen(s, n);
    const char *text = s + len + (len < n), *line;
    size_t text_len = (size_t)(s + n - text);
    struct files_regex *re = NULL;
    struct error err = {0};
    ptrdiff_t at;
    int r = files_regex_new(s, len, flags, &re, &err);

    PROPERTY(r == 0 ? re != NULL : !re && strstr(err.msg, "pattern"), "result %d: %s", r, err.msg);
    if (!re)
        return 0;
    line = first_line(re, text, text_len);
    at = files_regex_scan(re, text, text_len);
    PROPERTY((line != NULL) == (at >= 0), "scan and lines differ: %td", at);
    PROPERTY(at < 0 || (at >= line - text && !memchr(line, '\n', (size_t)(text + at - line))),
             "another line: %td", at);
    PROPERTY(files_regex_scan(re, text, text_len) == at, "the second time differs");
    if (flags == 0) {
        char pattern[32];

        if (len < sizeof(pattern)) {
            memcpy(pattern, s, len);
            pattern[len] = 0;
            check_libc(pattern, re, text, text_len);
        }
    }
    files_regex_free(re);
    return 0;
}
