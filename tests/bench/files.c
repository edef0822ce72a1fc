/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the file tools' hands cost, without the gateway around them: `bench_files [FOLDER]` makes a
 * workspace below FOLDER (/tmp), measures, and removes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "files/files.h"
#include "files/patch.h"

#define TIMES 5000

struct bench {
    struct files_root root;
    char text[4096];
};

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void must(int r, const struct error *err)
{
    if (r >= 0)
        return;
    fprintf(stderr, "bench_files: %s\n", err->msg);
    exit(1);
}

static void report(const char *name, void (*call)(struct bench *), struct bench *b, unsigned times)
{
    double *took = calloc(times, sizeof(*took)), start = now();

    for (unsigned i = 0; took && i < times; i++) {
        double from = now();

        call(b);
        took[i] = now() - from;
    }
    if (!took)
        exit(1);
    qsort(took, times, sizeof(*took), by_value);
    printf("%-28s p50 %8.1f us   p99 %8.1f us   %9.0f/s\n", name, took[times / 2],
           took[times * 99 / 100], times / (now() - start) * 1e6);
    free(took);
}

static void do_read(struct bench *b)
{
    struct files_read ret;
    struct error err;
    autobuf text;

    buf_init(&text, LIMIT_FILES_READ);
    must(files_read(&b->root, "src/f", &(struct files_ask){0}, &text, &ret, &err), &err);
}

static void do_write(struct bench *b)
{
    struct files_written ret;
    struct error err;

    must(files_write(&b->root, "src/w", b->text, sizeof(b->text), 0, NULL, NULL, &ret, &err), &err);
}

static void do_edit(struct bench *b)
{
    static bool odd;
    struct files_edit e = {"line 7\n", "LINE 7\n", 7, 7, false};
    struct files_edit back = {"LINE 7\n", "line 7\n", 7, 7, false};
    struct files_written ret;
    struct error err;
    autobuf diff;

    buf_init(&diff, 2 * LIMIT_FILES_DIFF);
    must(files_edit(&b->root, "src/f", odd ? &back : &e, 1, NULL, &diff, &ret, &err), &err);
    odd = !odd;
}

static void do_patch(struct bench *b)
{
    static bool odd;
    static const char there[] = "*** Begin Patch\n*** Update File: src/p\n@@\n-line 7\n+LINE 7\n"
                                "*** End Patch\n";
    static const char back[] = "*** Begin Patch\n*** Update File: src/p\n@@\n-LINE 7\n+line 7\n"
                               "*** End Patch\n";
    autoptr(patch) p = NULL;
    struct patch_done done;
    struct error err;

    must(patch_parse(odd ? back : there, sizeof(back) - 1, &p, &err), &err);
    must(patch_apply(&b->root, p, 0, NULL, &done, &err), &err);
    odd = !odd;
}

static void do_list(struct bench *b)
{
    struct files_list l;
    struct error err;

    must(files_list(&b->root, "src", false, &(struct files_walk){0}, &l, &err), &err);
    files_list_done(&l);
}

static void do_find(struct bench *b)
{
    struct files_list l;
    struct error err;

    must(files_find(&b->root, ".", "**/g*7", &(struct files_walk){0}, &l, &err), &err);
    files_list_done(&l);
}

static void grep(struct bench *b, const char *name, const char *pattern, bool literal, bool icase)
{
    struct files_query q = {
        .pattern = pattern, .len = strlen(pattern), .literal = literal, .ignore_case = icase};
    double best = 0;

    for (int i = 0; i < 5; i++) {
        struct files_grep g;
        struct error err;
        clock_t start = clock(); /* of one core: others may be at work on this machine */
        double rate;

        must(files_grep(&b->root, "big", &q, &g, &err), &err);
        rate = (double)g.bytes / (double)(clock() - start) * CLOCKS_PER_SEC / 1e6;
        best = rate > best ? rate : best;
        if (i == 4)
            printf("grep %-22s %8.0f MB/s   %zu matches in %.0f MB\n", name, best, g.n_matching,
                   (double)g.bytes / 1e6);
        files_grep_done(&g);
    }
}

static void fill(struct bench *b)
{
    struct files_written ret;
    struct error err;
    autobuf text;
    size_t n = 0;

    for (unsigned i = 0; n < sizeof(b->text); i++)
        n += (size_t)snprintf(b->text + n, sizeof(b->text) - n, "line %u\n", i);
    must(files_write(&b->root, "src/f", b->text, sizeof(b->text), FILES_PARENTS, NULL, NULL, &ret,
                     &err),
         &err);
    must(files_write(&b->root, "src/p", b->text, sizeof(b->text), 0, NULL, NULL, &ret, &err), &err);
    for (unsigned i = 0; i < 1000; i++) {
        char name[64];

        (void)snprintf(name, sizeof(name), "many/%u/g%u", i % 20, i);
        must(files_write(&b->root, name, "x", 1, FILES_PARENTS, NULL, NULL, &ret, &err), &err);
    }
    buf_init(&text, 64u << 20);
    for (unsigned i = 0; text.len < 32u << 20; i++)
        buf_printf(&text, "    if (count[%u] > limit) return error_set(err, \"%x\");\n", i, i * 77);
    for (unsigned i = 0; i < 4; i++) {
        char name[64];

        (void)snprintf(name, sizeof(name), "big/%u", i);
        must(
            files_write(&b->root, name, text.data, text.len, FILES_PARENTS, NULL, NULL, &ret, &err),
            &err);
    }
}

int main(int argc, char **argv)
{
    char path[256];
    struct bench b;
    struct error err;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/clawden-bench-XXXXXX", argc > 1 ? argv[1] : "/tmp");
    if (!mkdtemp(path))
        return 1;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    files_root_init(&b.root, fd, NULL);
    fill(&b);
    report("read 4 KiB", do_read, &b, TIMES);
    report("write 4 KiB", do_write, &b, TIMES);
    b.root.sync = true;
    report("write 4 KiB, fsync", do_write, &b, 200);
    b.root.sync = false;
    report("edit 4 KiB", do_edit, &b, TIMES);
    report("patch, one file of 4 KiB", do_patch, &b, TIMES);
    report("list 3 files", do_list, &b, TIMES);
    report("find in 1,026 entries", do_find, &b, 500);
    grep(&b, "literal, none", "no such text", true, false);
    grep(&b, "literal, case folded", "NO SUCH TEXT", true, true);
    grep(&b, "regex, none", "foo\\w+bar", false, false);
    grep(&b, "regex, 1 % of lines", "count\\[\\d*77\\]", false, false);
    grep(&b, "regex, (a+)+$", "(a+)+$", false, false);
    must(files_remove(&b.root, "src", true, NULL, &err), &err);
    must(files_remove(&b.root, "many", true, NULL, &err), &err);
    must(files_remove(&b.root, "big", true, NULL, &err), &err);
    (void)close(fd);
    return rmdir(path) < 0;
}
