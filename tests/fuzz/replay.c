/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over the files and folders given: `fuzz_tty corpus/tty`. For builds without
 * libFuzzer, and for every input that ever failed. A failed property aborts and names the file.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

static const char *current = "";
static unsigned long n_files;

static void on_abort(int signo)
{
    (void)signo;
    (void)!write(STDERR_FILENO, "failed on ", 10);
    (void)!write(STDERR_FILENO, current, strlen(current));
    (void)!write(STDERR_FILENO, "\n", 1);
}

static int run_file(const char *path)
{
    FILE *f = fopen(path, "re");
    uint8_t *data;
    struct stat st;
    size_t n;

    if (!f || fstat(fileno(f), &st) < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        if (f)
            (void)fclose(f);
        return -1;
    }
    data = malloc((size_t)st.st_size + 1); /* its own block: a sanitizer sees what reads beyond */
    if (!data)
        abort();
    n = fread(data, 1, (size_t)st.st_size, f);
    (void)fclose(f);
    current = path;
    (void)LLVMFuzzerTestOneInput(data, n);
    n_files++;
    free(data);
    return 0;
}

static int run_path(const char *path)
{
    struct dirent **names;
    int n = scandir(path, &names, NULL, alphasort), r = 0;

    if (n < 0)
        return errno == ENOTDIR ? run_file(path) : -1;
    for (int i = 0; i < n; i++) {
        char file[4096];

        (void)snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.' && run_file(file) < 0)
            r = -1;
        free(names[i]);
    }
    free(names);
    return r;
}

int main(int argc, char **argv)
{
    int r = 0;

    (void)signal(SIGABRT, on_abort);
    for (int i = 1; i < argc; i++)
        if (run_path(argv[i]) < 0)
            r = 1;
    (void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    printf("%lu inputs\n", n_files);
    return r || !n_files;
}
