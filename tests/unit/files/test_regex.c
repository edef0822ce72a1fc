/* SPDX-License-Identifier: Apache-2.0 */
#include "files/regex.h"

#include <regex.h>
#include <time.h>

#include "tests/test.h"

static bool match(const char *pattern, unsigned flags, const char *text)
{
    autoptr(files_regex) re = NULL;
    struct error err;

    CHECK_OK(files_regex_new(pattern, strlen(pattern), flags, &re, &err), err);
    return files_regex_match(re, text, strlen(text));
}

static void test_matches(void **state)
{
    static const struct {
        const char *pattern, *yes, *no;
        unsigned flags;
    } rows[] = {
        {"abc", "xabcx", "ab c", 0},
        {"a.c",
         "a\xc3\xa9"
         "c",
         "ac", 0},
        {"^.$", "\xe2\x82\xac", "ab", 0},
        {"^a", "ab", "ba", 0},
        {"a$", "ba", "ab", 0},
        {"a$", "ba\r", "a\rb", 0},
        {"^$", "", "a", 0},
        {"ab*c", "ac", "abb", 0},
        {"ab+c", "abbc", "ac", 0},
        {"^ab?c$", "ac", "abbc", 0},
        {"^(a|b|)c$", "c", "dc", 0},
        {"^a{2,3}$", "aaa", "aaaa", 0},
        {"^a{2}$", "aa", "aaa", 0},
        {"^a{2,}$", "aaaaa", "a", 0},
        {"^(ab){2}$", "abab", "ab", 0},
        {"a{b", "a{b", "ab", 0},
        {"f() {", "f {", "f(", 0},
        {"[abc]", "b", "d", 0},
        {"[^abc]", "d", "b", 0},
        {"^[^a]$", "\xc3\xa9", "a", 0},
        {"[]a]", "]", "b", 0},
        {"[a-c-]", "-", "d", 0},
        {"^[\xd0\xb0-\xd1\x8f]+$", "\xd0\xbf\xd1\x80", "\xd0\x9f", 0},
        {"[[:digit:]]x", "1x", "ax", 0},
        {"\\d+", "a1", "a", 0},
        {"^\\D$", "a", "1", 0},
        {"^[\\w.]+$", "a.b_9", "a b", 0},
        {"^[\\D]$", "x", "5", 0},
        {"\\bfoo\\b", "a foo.", "food", 0},
        {"\\bfoo\\b", "foo", "xfoo", 0},
        {"\\Boo\\b", "foo", "oo", 0},
        {"a\\sb", "a\tb", "ab", 0},
        {"a\\.b", "a.b", "axb", 0},
        {"\\x41", "A", "B", 0},
        {"a.*?b", "axxb", "a", 0},
        {"(?:ab)+c", "ababc", "abab", 0},
        {"(?i)HeLLo", "hEllO", "help", 0},
        {"HeLLo", "hEllO", "help", FILES_REGEX_ICASE},
        {"[a-c]X", "Bx", "dx", FILES_REGEX_ICASE},
        {"a.*[b", "xa.*[bx", "ab", FILES_REGEX_LITERAL},
        {"A.*", "xa.*", "ab", FILES_REGEX_LITERAL | FILES_REGEX_ICASE},
        {"(a*)*$", "b", NULL, 0},
        {"((a?)*)+b", "b", "a", 0},
        {"(|a)+$", "aa", NULL, 0},
        {"^(\\b|a)*c", "c", "d", 0},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        CHECK(match(row->pattern, row->flags, row->yes), "'%s' does not match '%s'", row->pattern,
              row->yes);
        CHECK(!row->no || !match(row->pattern, row->flags, row->no), "'%s' matches '%s'",
              row->pattern, row->no);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *pattern, *why;
        enum error_code code;
    } rows[] = {
        {"", "empty", ERR_INVALID},
        {"*a", "nothing stands before", ERR_INVALID},
        {"(a", "without ')'", ERR_INVALID},
        {"a)", "without '('", ERR_INVALID},
        {"[a", "without ']'", ERR_INVALID},
        {"[b-a]", "wrong way", ERR_INVALID},
        {"a{3,2}", "wrong way", ERR_INVALID},
        {"a\\", "backslash", ERR_INVALID},
        {"(a)\\1", "linear", ERR_INVALID},
        {"(?=a)", "linear", ERR_INVALID},
        {"\\y", "no such escape", ERR_INVALID},
        {"\\<a", "\\b", ERR_INVALID},
        {"\xff", "UTF-8", ERR_INVALID},
        {"[[:foo:]]", "no such class", ERR_INVALID},
        {"a{1001}", "1000", ERR_TOO_LARGE},
        {"((a{1000}){1000}){1000}", "steps", ERR_TOO_LARGE},
        {"((((){1000}){1000}){1000}){1000}", "steps", ERR_TOO_LARGE},
    };
    char deep[400];

    (void)state;
    FOR_EACH(row, rows)
    {
        struct files_regex *re = NULL;
        struct error err;

        CHECK_ERR(files_regex_new(row->pattern, strlen(row->pattern), 0, &re, &err), err, row->code,
                  row->why);
        assert_null(re);
    }
    memset(deep, '(', sizeof(deep));
    struct files_regex *re = NULL;
    struct error err;
    CHECK_ERR(files_regex_new(deep, sizeof(deep), 0, &re, &err), err, ERR_TOO_LARGE, "deep");
    CHECK_ERR(files_regex_new("a\0b", 3, 0, &re, &err), err, ERR_INVALID, "NUL");
}

/* FS-27: what makes backtracking matchers explode. */
static void test_linear(void **state)
{
    static const char *const patterns[] = {"(a+)+$",
                                           "(a*)*b",
                                           "(a|aa)+$",
                                           "(a|a?)+b",
                                           "a*a*a*a*a*a*a*a*a*a*a*a*a*b",
                                           "(.*)(.*)(.*)(.*)(.*)[^a]x",
                                           "(a?){200}a{200}c",
                                           ".*.*.*=.*",
                                           "(x|[^b]*a[^b]{100})c"};
    size_t n = 1u << 20;
    char *text = malloc(n);

    (void)state;
    memset(text, 'a', n);
    text[n - 1] = '!';
    FOR_EACH(pattern, patterns)
    {
        autoptr(files_regex) re = NULL;
        struct error err;
        clock_t start = clock();

        CHECK_OK(files_regex_new(*pattern, strlen(*pattern), 0, &re, &err), err);
        CHECK(!files_regex_match(re, text, n), "'%s' matches", *pattern);
        CHECK(clock() - start < 5 * CLOCKS_PER_SEC, "'%s': %.1f s for 1 MiB", *pattern,
              (double)(clock() - start) / CLOCKS_PER_SEC);
    }
    free(text);
}

/* A set of states that keeps changing: the cache is full again and again, the answer stays. */
static void test_many_states(void **state)
{
    autoptr(files_regex) re = NULL;
    const char *pattern = "a[ab]{14}c";
    size_t n = 300000;
    char *text = malloc(n);
    unsigned seed = 1;
    struct error err;

    (void)state;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1103515245 + 12345;
        text[i] = seed >> 16 & 1 ? 'a' : 'b';
    }
    CHECK_OK(files_regex_new(pattern, strlen(pattern), 0, &re, &err), err);
    assert_false(files_regex_match(re, text, n));
    text[n - 16] = 'a';
    text[n - 1] = 'c';
    assert_true(files_regex_match(re, text, n));
    text[n - 16] = 'b';
    assert_false(files_regex_match(re, text, n));
    free(text);
}

static void test_scan(void **state)
{
    static const struct {
        const char *pattern, *text;
        ptrdiff_t line; /* offset where the line that matches begins, -1 */
    } rows[] = {
        {"b$", "a\nab\nb\n", 2}, {"^b", "a\nab\nb\n", 5}, {"^$", "a\n\nb", 2},
        {"^$", "a\n", -1},       {"^$", "", -1},          {"x", "a\nb\nx", 4},
        {"a\\nb", "a\nb\n", -1}, {"[^x]b", "a\nb\n", -1}, {"\\bb", "a\nb\n", 2},
        {".", "\n\n", -1},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        autoptr(files_regex) re = NULL;
        struct error err;
        ptrdiff_t at;

        CHECK_OK(files_regex_new(row->pattern, strlen(row->pattern), 0, &re, &err), err);
        at = files_regex_scan(re, row->text, strlen(row->text));
        while (at > 0 && row->text[at - 1] != '\n')
            at--;
        CHECK(at == row->line, "'%s' in '%s': line at %td, want %td", row->pattern, row->text, at,
              row->line);
    }
}

/* Random patterns of a subset that POSIX and we read alike, against libc. */
static const char *piece(unsigned *seed)
{
    static const char *const pieces[] = {"a", "b", "c", ".", "[ab]", "[^a]", "(",    ")",
                                         "|", "*", "+", "?", "^",    "$",    "a{2}", "b{1,2}"};

    *seed = *seed * 1103515245 + 12345;
    return pieces[(*seed >> 16) % COUNT(pieces)];
}

static void test_like_libc(void **state)
{
    static const char *const texts[] = {"",     "a",     "b",     "c",   "ab",   "ba",
                                        "aa",   "bb",    "abc",   "cab", "aabb", "abab",
                                        "ccba", "babab", "acacb", "d"};
    unsigned seed = 7, compared = 0;

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        char pattern[64] = "";
        struct files_regex *re = NULL;
        struct error err;
        regex_t posix;
        size_t n = 0;

        for (unsigned k = 0; k < 2 + i % 7; k++)
            n += (size_t)snprintf(pattern + n, sizeof(pattern) - n, "%s", piece(&seed));
        /* "a|*b", "(*a", "^*", "a+?", "()" are read differently, or by nobody alike. */
        for (const char *p = pattern; *p; p++)
            if (strchr("*+?{", *p) && (p == pattern || strchr("(|^$*+?}", p[-1])))
                n = 0;
        if (n == 0 || strstr(pattern, "()") || strstr(pattern, "(|") || strstr(pattern, "|)") ||
            strstr(pattern, "||") || pattern[0] == '|' || pattern[n - 1] == '|' ||
            regcomp(&posix, pattern, REG_EXTENDED | REG_NOSUB) != 0)
            continue;
        if (files_regex_new(pattern, strlen(pattern), 0, &re, &err) == 0) {
            FOR_EACH(text, texts)
            {
                bool want = regexec(&posix, *text, 0, NULL, 0) == 0;

                CHECK(files_regex_match(re, *text, strlen(*text)) == want, "'%s' on '%s': libc %s",
                      pattern, *text, want ? "matches" : "does not match");
                compared++;
            }
        }
        files_regex_free(re);
        regfree(&posix);
    }
    print_message("# %u comparisons with regexec\n", compared);
    assert_true(compared > 10000);
}

static void test_globs(void **state)
{
    static const struct {
        const char *pattern, *yes, *no;
    } rows[] = {
        {"*.c", "a.c", "a.h"},
        {"*.c", ".c", "d/a.c"},
        {"**/*.c", "a.c", "a.h"},
        {"**/*.c", "d/e/a.c", "d/e/a.cc"},
        {"src/**/x", "src/x", "srcx"},
        {"src/**/x", "src/a/b/x", "other/src/x"},
        {"src/**", "src/a/b", "src"},
        {"**", "a/b/c", NULL},
        {"a/*/c", "a/b/c", "a/b/b/c"},
        {"a?c",
         "a\xc3\xa9"
         "c",
         "a/c"},
        {"[a-c].txt", "b.txt", "d.txt"},
        {"[!a-c].txt", "d.txt", "a.txt"},
        {"a[!x]b", "a.b", "a/b"},
        {"a[+-:]b", "a.b", "a/b"},
        {"*.{ts,tsx}", "a.tsx", "a.js"},
        {"{a,b{c,d}}", "bd", "b"},
        {"\\*", "*", "a"},
        {"./a", "a", "b"},
        {"*", "\xff\xfe", NULL},
        {"*", "a\nb", "a/b"},
        {"a*b", "a\nb", "a\nc"},
        {"x\n", "x\n", "x"},
    };
    static const char *const wrong[] = {"", "/a", "[a", "{a", "a\\", "[b-a]"};

    (void)state;
    FOR_EACH(row, rows)
    {
        CHECK(match(row->pattern, FILES_REGEX_GLOB, row->yes), "'%s' does not match '%s'",
              row->pattern, row->yes);
        CHECK(!row->no || !match(row->pattern, FILES_REGEX_GLOB, row->no), "'%s' matches '%s'",
              row->pattern, row->no);
    }
    FOR_EACH(row, wrong)
    {
        struct files_regex *re = NULL;
        struct error err;

        CHECK_ERR(files_regex_new(*row, strlen(*row), FILES_REGEX_GLOB, &re, &err), err,
                  ERR_INVALID, "glob");
    }
}

static const struct CMUnitTest claims[] = {
    CLAIM("patterns match what they say", test_matches),
    CLAIM("patterns that cannot be kept are refused with a reason", test_refused),
    CLAIM("no pattern takes more than linear time", test_linear),
    CLAIM("a full cache changes no answer", test_many_states),
    CLAIM("lines are matched alone", test_scan),
    CLAIM("what both know, we match like libc", test_like_libc),
    CLAIM("globs match names and paths", test_globs),
};

int main(void)
{
    return RUN_CLAIMS("files/regex", claims);
}
