/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/glob.h"

#include "tests/test.h"

static void test_table(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool match;
    } rows[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "anything", true},
        {"***", "", true},
        {"exec", "exec", true},
        {"exec", "execute", false},
        {"exec", "an exec", false},
        {"EXEC", "exec", true},
        {"exec", "ExEc", true},
        {"g*", "git", true},
        {"g*", "G", true},
        {"g*", "agit", false},
        {"*_list", "sessions_list", true},
        {"*_list", "sessions_list2", false},
        {"sessions_*", "sessions_", true},
        {"a*b*c", "aXXbYYc", true},
        {"a*b*c", "aXXcYYb", false},
        {"a*bc", "abcbc", true},
        {"a*bc*", "abdbcd", true},
        {"*a*", "bab", true},
        {"*aab", "aaaaab", true},
        {"*ab*ab", "abab", true},
        {"*ab*ab", "aab", false},
        {"a?c", "abc", false}, /* only '*' is special */
        {"a?c", "a?c", true},
        {"[ab]", "a", false},
        {"a.c", "abc", false},
        {"a\\*", "a\\x", true},
        {"*", "a\nb", true},
        {"\xc3\xa9*", "\xc3\xa9t\xc3\xa9", true},
        {"\xc3\x89", "\xc3\xa9", false}, /* no case but ASCII's */
        {"[", "{", false},               /* apart like 'A' and 'a', and no letters */
        {"@", "`", false},
    };

    (void)state;
    FOR_EACH(row, rows)
    CHECK(glob_match(row->pattern, row->text) == row->match, "'%s' on '%s'", row->pattern,
          row->text);
}

/* A matcher that tries every star anew would be here until the end of the world. */
static void test_time(void **state)
{
    char pattern[201], text[10001];

    (void)state;
    for (size_t i = 0; i < 200; i += 2)
        memcpy(pattern + i, "a*", 2);
    pattern[199] = 'b';
    pattern[200] = 0;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    assert_false(glob_match(pattern, text));
    text[sizeof(text) - 2] = 'b';
    pattern[198] = '*';
    assert_true(glob_match(pattern, text));
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a star is any run, everything else itself, case aside", test_table),
        CLAIM("many stars take no long time", test_time),
    };

    return RUN_CLAIMS("policy/glob", claims);
}
