/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/words.h"

#include "base/limits.h"
#include "tests/test.h"

/* The words joined by '|', which none of them holds. */
static const struct {
    const char *line, *words;
} accepted[] = {
    {"gh", "gh"},
    {" \tgh\t pr  list ", "gh|pr|list"},
    {"env gh", "env|gh"},
    {"/tmp/gh -x", "/tmp/gh|-x"},
    {"gh a_b-c+d.e,f/g:h@i%j=k", "gh|a_b-c+d.e,f/g:h@i%j=k"},
    {"gh GH=1 --a=b %1 + @ - --", "gh|GH=1|--a=b|%1|+|@|-|--"},
    {"git show HEAD~1 a#b", "git|show|HEAD~1|a#b"},
    {"gh if do cd eval", "gh|if|do|cd|eval"},
    {"gh 'a;b&c<d>(e)`f`$g\\h*?[i]{j}~#!^\"'", "gh|a;b&c<d>(e)`f`$g\\h*?[i]{j}~#!^\""},
    {"gh \"a;b&c<d>(e)*?[f]{g}~#^'=\"", "gh|a;b&c<d>(e)*?[f]{g}~#^'="},
    {"gh \"a\\\"b\\\\c\"", "gh|a\"b\\c"},
    {"gh 'a b'\"c d\"e''f", "gh|a bc def"},
    {"gh '' \"\" ''\"\"", "gh|||"},
    {"gh '~' '#' \"=\"", "gh|~|#|="},
    {"'gh' x", "gh|x"},
    {"g\"\"h", "gh"},
    {"'my program' x", "my program|x"},
    {"echo test", "echo|test"},
    {"true", "true"},
    {"iff", "iff"},
    {"./cd", "./cd"},
    {"gh \xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80", "gh|\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80"},
    {"gh 'a\xc2\xa0"
     "b'",
     "gh|a\xc2\xa0"
     "b"},
    {"gh 'a\tb' \"\t\"", "gh|a\tb|\t"},
};

#define SECOND   "starts a second command"
#define HOME     "is a home folder"
#define ASSIGN   "'GH=1' style assignment before the command"
#define RESERVED "'if' and other reserved words"
#define BUILTIN  "'cd' and other shell builtins"
#define UTF8     "not UTF-8"
#define SPACE    "a white space outside quotes"

static const struct {
    const char *line, *why;
} refused[] = {
    {"", "there is no command"},
    {" \t ", "there is no command"},
    {"gh; curl x", "';' " SECOND},
    {"gh & id", "'&' " SECOND},
    {"gh && id", "'&' " SECOND},
    {"gh | sh", "'|' pipes"},
    {"gh || sh", "'|' pipes"},
    {"gh <x", "'<' redirects"},
    {"gh 2>&1", "'>' redirects"},
    {"(gh)", "'(' starts"},
    {"gh )", "')' ends"},
    {"gh `id`", "'`' runs"},
    {"gh \"`id`\"", "'`' runs"},
    {"gh$(id)", "'$' may expand"},
    {"gh \"$x\"", "'$' may expand"},
    {"gh $'x'", "'$' may expand"},
    {"gh\nid", "a line break"},
    {"gh\n", "a line break"},
    {"gh '\n'", "a line break"},
    {"gh\r", "a carriage return"},
    {"gh \x01", "a control character"},
    {"gh '\x1b'", "a control character"},
    {"gh \x7f", "a control character"},
    {"gh \x0b", "a control character"},
    {"gh '\xc2\x85'", "a control character"},
    {"gh a\\ b", "a '\\' outside quotes"},
    {"gh \\", "a '\\' outside quotes"},
    {"gh \"a\\nb\"", "a '\\' in double quotes"},
    {"gh \"\\$x\"", "a '\\' in double quotes"},
    {"gh \"a\\", "a '\\' in double quotes"},
    {"gh *", "a '*' outside quotes may match file names"},
    {"gh a?", "a '?' outside"},
    {"gh [a]", "a '[' outside"},
    {"gh a]", "a ']' outside"},
    {"gh {a,b}", "a '{' outside"},
    {"gh a}", "a '}' outside"},
    {"gh ~", HOME},
    {"gh ~root/x", HOME},
    {"gh a=~", HOME},
    {"gh a=b:~", HOME},
    {"gh ''~", HOME},
    {"gh a'='~", HOME},
    {"gh # x", "starts a comment"},
    {"gh ''#", "starts a comment"},
    {"#gh", "starts a comment"},
    {"gh =ls", "'=' at the start of a word"},
    {"! gh", "'!' negates"},
    {"gh a!", "'!' negates"},
    {"gh \"!!\"", "'!' negates"},
    {"^a^b", "a '^' outside"},
    {"gh 'a", "a ' is not closed"},
    {"gh \"a", "a \" is not closed"},
    {"gh \"a'", "a \" is not closed"},
    {"GH=1 gh", ASSIGN},
    {"GH=1", ASSIGN},
    {"GH+=1 gh", ASSIGN},
    {"'GH'=1 gh", ASSIGN},
    {"GH'=1' gh", ASSIGN},
    {"''", "the program has an empty name"},
    {"\"\" gh", "the program has an empty name"},
    {"%1", "names a job"},
    {"'%1'", "names a job"},
    {"-x gh", "is an option to a shell"},
    {"'+x' gh", "is an option to a shell"},
    {"a: gh", "is a label"},
    {"if gh", RESERVED},
    {"'if' gh", RESERVED},
    {"i'f' gh", RESERVED},
    {"time gh", RESERVED},
    {"'[[' a", RESERVED},
    {"'{' gh", RESERVED},
    {"cd x", BUILTIN},
    {"'cd' x", BUILTIN},
    {"c\"d\" x", BUILTIN},
    {". x", BUILTIN},
    {"exec gh", BUILTIN},
    {"command gh", BUILTIN},
    {"eval gh", BUILTIN},
    {"wait", BUILTIN},
    {"'[' a", BUILTIN},
    {"gh \xff", UTF8},
    {"gh '\xff'", UTF8},
    {"gh \xc3", UTF8},
    {"gh \xc0\x80", UTF8},
    {"gh \xe0\x80\x80", UTF8},
    {"gh \xed\xa0\x80", UTF8},
    {"gh \xf0\x80\x80\x80", UTF8},
    {"gh \xf4\x90\x80\x80", UTF8},
    {"gh \"\xe2\x82\"", UTF8},
    {"gh\xc2\xa0x", SPACE},
    {"gh \xe3\x80\x80", SPACE},
    {"gh \xe2\x80\x8b", SPACE},
    {"\xef\xbb\xbfgh", SPACE},
};

static void test_accepts(void **state)
{
    (void)state;
    FOR_EACH(row, accepted)
    {
        struct words w;
        const char *why = "unset";
        char joined[256] = "";
        size_t n = 0;

        CHECK(words_split(row->line, strlen(row->line), &w, &why) == 0, "'%s': %s", row->line, why);
        assert_null(why);
        for (size_t i = 0; i < w.n; i++)
            n += (size_t)snprintf(joined + n, sizeof(joined) - n, "%s%s", i ? "|" : "", w.argv[i]);
        CHECK_STR(joined, row->words, row->line);
        assert_null(w.argv[w.n]);
        words_done(&w);
        assert_null(w.argv);
        words_done(&w);
    }
}

static void test_refuses(void **state)
{
    (void)state;
    FOR_EACH(row, refused)
    {
        struct words w = {.n = 7};
        const char *why = NULL;
        int r = words_split(row->line, strlen(row->line), &w, &why);

        CHECK(r == -EINVAL, "'%s': %d", row->line, r);
        CHECK(why && strstr(why, row->why), "'%s': '%s', want '%s'", row->line, why, row->why);
        assert_null(w.argv);
        assert_int_equal(w.n, 0);
    }
}

/* Every byte by itself in the middle of a word: what is not on this list is refused. */
static void test_every_byte(void **state)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "_-+.,/:@%=~# \t";

    (void)state;
    for (int c = 0; c < 256; c++) {
        char line[] = {'g', 'h', ' ', 'a', (char)c, 'b'};
        struct words w;
        const char *why;
        int r = words_split(line, sizeof(line), &w, &why);

        CHECK((r == 0) == (c && strchr(plain, c)), "byte 0x%02x: %d", (unsigned)c, r);
        words_done(&w);
    }
}

static void test_limits(void **state)
{
    static char line[LIMIT_COMMAND_LINE + 1];
    struct words w;
    const char *why;

    (void)state;
    memset(line, 'x', sizeof(line));
    assert_int_equal(words_split(line, LIMIT_COMMAND_LINE, &w, &why), 0);
    assert_int_equal(strlen(w.argv[0]), LIMIT_COMMAND_LINE);
    words_done(&w);
    assert_int_equal(words_split(line, LIMIT_COMMAND_LINE + 1, &w, &why), -E2BIG);
    assert_string_equal(why, "the command line is too long");
    for (size_t i = 1; i < sizeof(line); i += 2)
        line[i] = ' ';
    assert_int_equal(words_split(line, 2 * WORDS_MAX, &w, &why), 0);
    assert_int_equal(w.n, WORDS_MAX);
    words_done(&w);
    assert_int_equal(words_split(line, 2 * WORDS_MAX + 1, &w, &why), -E2BIG);
    assert_string_equal(why, "too many words");
    assert_int_equal(words_split("gh\0x", 4, &w, &why), -EINVAL);
    assert_string_equal(why, "a NUL byte cannot be part of a command");
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("one simple command is read into its words", test_accepts),
        CLAIM("whatever a shell might see in a line is refused, with its reason", test_refuses),
        CLAIM("a byte that is not known to be plain is refused", test_every_byte),
        CLAIM("bytes and words have an end, and a NUL is seen", test_limits),
    };

    return RUN_CLAIMS("policy/words", claims);
}
