/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two ends of tests/flow/words.py.
 *
 * Reads records "<length>\n<bytes>" and prints, for each, "ok <n>\n", n words each with a NUL, and
 * "\n"; or "no <reason>\n". With WORDS_PRINT=1 it is the program that a shell runs instead: it
 * prints the words it was given, the program's name first, in the same form.
 */
#include "policy/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

static void print_words(char *const *argv, size_t n)
{
    printf("ok %zu\n", n);
    for (size_t i = 0; i < n; i++)
        (void)fwrite(argv[i], 1, strlen(argv[i]) + 1, stdout);
    (void)putchar('\n');
}

static int split_one(const char *line, size_t len)
{
    struct words w;
    const char *why;
    int r = words_split(line, len, &w, &why);

    if (r == -ENOMEM)
        return r;
    if (r < 0)
        printf("no %s\n", why);
    else
        print_words(w.argv, w.n);
    words_done(&w);
    return 0;
}

int main(int argc, char **argv)
{
    const char *print = getenv("WORDS_PRINT");
    size_t len;
    char end;

    if (print && strcmp(print, "1") == 0) {
        print_words(argv, (size_t)argc);
        return 0;
    }
    while (scanf("%zu%c", &len, &end) == 2) {
        char *line;
        int r;

        if (end != '\n' || len > 2 * LIMIT_COMMAND_LINE)
            return 2;
        line = malloc(len ? len : 1); /* exactly: a sanitizer sees what reads beyond */
        if (!line || fread(line, 1, len, stdin) != len) {
            free(line);
            return 2;
        }
        r = split_one(line, len);
        free(line);
        if (r < 0)
            return 2;
    }
    return feof(stdin) ? 0 : 2;
}
