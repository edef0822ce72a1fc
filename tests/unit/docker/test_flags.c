/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/docker/flags.h"

#include "tests/test.h"

static const struct flag rows[] = {
    {"interactive", 'i', 'i', NULL, "x"}, {"tty", 't', 't', NULL, "x"},
    {"detach", 'd', 'd', NULL, "x"},      {"user", 'u', 'u', "USER", "x"},
    {"name", 0, 'n', "NAME", "x"},        {"init", 0, 'I', NULL, "x"},
};

/* Reads words apart by blanks; what was found, as one text: "i u=root | word word". */
static const char *read_words(const char *line, bool words_end_flags)
{
    static char found[512];
    char copy[256], *argv[32];
    struct flags f = {.verb = "test",
                      .rows = rows,
                      .n_rows = COUNT(rows),
                      .words_end_flags = words_end_flags,
                      .argv = argv};
    size_t n = 0;
    int r;

    (void)snprintf(copy, sizeof(copy), "%s", line);
    for (char *save = NULL, *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[f.argc++] = w;
    argv[f.argc] = NULL;
    while ((r = flags_next(&f)) > 0) {
        if (f.flag->arg)
            n += (size_t)snprintf(found + n, sizeof(found) - n, "%c=%s ", f.flag->id, f.value);
        else
            n += (size_t)snprintf(found + n, sizeof(found) - n, "%s%c ", f.on ? "" : "!",
                                  f.flag->id);
    }
    if (r < 0)
        return r == -2 ? "help" : "bad";
    n += (size_t)snprintf(found + n, sizeof(found) - n, "|");
    for (int i = 0; i < f.n_words; i++)
        n += (size_t)snprintf(found + n, sizeof(found) - n, " %s", f.words[i]);
    return found;
}

static void test_forms(void **state)
{
    static const struct {
        const char *line;
        bool words_end_flags;
        const char *want;
    } table[] = {
        {"", false, "|"},
        {"-i -t a b", true, "i t | a b"},
        {"-it a", true, "i t | a"},
        {"-itd a", true, "i t d | a"},
        {"-itu root a", true, "i t u=root | a"},
        {"-ituroot a", true, "i t u=root | a"},
        {"-u=root a", true, "u=root | a"},
        {"--user root --name=x=y a", true, "u=root n=x=y | a"},
        {"--name= a", true, "n= | a"},
        {"--init=false --tty=1 a", true, "!I t | a"},
        {"a -i --name x", true, "| a -i --name x"},
        {"a -i --name x b", false, "i n=x | a b"},
        {"-i -- -t a", true, "i | -t a"},
        {"a -- -t", false, "| a -t"},
        {"a - b", false, "| a - b"},
        {"--name -i a", true, "n=-i | a"},
        {"--nope a", true, "bad"},
        {"-iz a", true, "bad"},
        {"--name", true, "bad"},
        {"-u", true, "bad"},
        {"--init=maybe a", true, "bad"},
        {"--help", true, "help"},
    };

    (void)state;
    FOR_EACH(row, table)
    CHECK_STR(read_words(row->line, row->words_end_flags), row->want, row->line);
}

static void test_word_count(void **state)
{
    static const struct {
        int words, least, most, status;
    } table[] = {{0, 1, -1, 1}, {1, 1, -1, -1}, {5, 1, -1, -1},
                 {1, 0, 0, 1},  {0, 0, 0, -1},  {3, 2, 2, 1}};

    (void)state;
    FOR_EACH(row, table)
    {
        char word[] = "w", *argv[8] = {word, word, word, word, word, word, NULL};
        struct flags f = {.verb = "test", .argc = row->words, .argv = argv};
        bool fine;

        argv[row->words] = NULL;
        fine = flags_read(&f, row->least, row->most, NULL, NULL);
        CHECK(fine == (row->status < 0), "%d words of %d to %d", row->words, row->least, row->most);
        CHECK(fine || f.status == row->status, "status %d", f.status);
    }
}

static const struct CMUnitTest claims[] = {
    CLAIM("flags are read as docker reads them", test_forms),
    CLAIM("the number of words is checked", test_word_count),
};

int main(void)
{
    (void)!freopen("/dev/null", "w", stderr); /* what is refused says so */
    return RUN_CLAIMS("docker/flags", claims);
}
