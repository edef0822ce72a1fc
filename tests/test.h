/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A thin layer over cmocka: tests whose names are claims, tables whose failing row is named, errors
 * checked by code and text, folders that clean up after themselves.
 *
 *     static const struct CMUnitTest claims[] = {
 *         CLAIM("a bare size is MB", test_bare_size),
 *         CLAIM_IN_TEMP("a torn line is told", test_torn),   (its state is a struct temp)
 *     };
 *     int main(void) { return RUN_CLAIMS("base/units", claims); }
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"

#define CLAIM(text, fn)                   \
    {                                     \
        .name = (text), .test_func = (fn) \
    }
#define CLAIM_IN_TEMP(text, fn)                                      \
    {                                                                \
        .name = (text), .test_func = (fn), .setup_func = temp_setup, \
        .teardown_func = temp_teardown                               \
    }
#define RUN_CLAIMS(group, claims) cmocka_run_group_tests_name((group), (claims), NULL, NULL)

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
/* FOR_EACH(row, rows) { ... row->field ... } */
#define FOR_EACH(row, rows)                                                                        \
    for (__typeof__((rows)[0]) *row = (rows), *row##_end = (rows) + COUNT(rows); row != row##_end; \
         row++)

/* Fails with words of one's own: tables say which row. */
#define CHECK(cond, ...)           \
    do {                           \
        if (!(cond))               \
            fail_msg(__VA_ARGS__); \
    } while (0)
#define CHECK_STR(got, want, row) \
    CHECK(strcmp((got), (want)) == 0, "%s: got '%s', want '%s'", (row), (got), (want))

/* The call fails with this code, returns -code, and its message holds `part`. */
#define CHECK_ERR(call, err, want, part)                                                          \
    do {                                                                                          \
        int r_ = (call);                                                                          \
                                                                                                  \
        CHECK(r_ < 0, "%s: succeeded (%d)", #call, r_);                                           \
        CHECK((err).code == (want), "%s: %s (%s), want %s", #call, error_code_name((err).code),   \
              (err).msg, error_code_name(want));                                                  \
        CHECK(r_ == -(int)(want), "%s: returned %d, not -code", #call, r_);                       \
        CHECK(strstr((err).msg, (part)), "%s: '%s' does not say '%s'", #call, (err).msg, (part)); \
    } while (0)
#define CHECK_OK(call, err)                                  \
    do {                                                     \
        int r_ = (call);                                     \
                                                             \
        CHECK(r_ >= 0, "%s: %d (%s)", #call, r_, (err).msg); \
    } while (0)

/* The same for what this host cannot do. */
static inline bool host_lacks(const char *what)
{
    const char *strict = getenv("STRICT");

    if (strict && strcmp(strict, "1") == 0)
        fail_msg("left out under STRICT=1: %s", what);
    print_message("# left out: %s\n", what);
    return true;
}

/* ---- a folder for one test ---- */

struct temp {
    char path[128];
    int fd;
};

static inline int temp_remove_one(const char *path, const struct stat *st, int flag,
                                  struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static inline int temp_setup(void **state)
{
    struct temp *t = calloc(1, sizeof(*t));

    if (!t)
        return -1;
    (void)snprintf(t->path, sizeof(t->path), "/tmp/clawden-test-XXXXXX");
    if (!mkdtemp(t->path))
        return -1;
    t->fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = t;
    return t->fd < 0 ? -1 : 0;
}

static inline int temp_teardown(void **state)
{
    struct temp *t = *state;

    (void)close(t->fd);
    (void)nftw(t->path, temp_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(t);
    return 0;
}

/* Borrowed until the eighth next call. */
static inline const char *temp_path(const struct temp *t, const char *name)
{
    static char paths[8][512];
    static unsigned n;
    char *p = paths[n++ % 8];

    (void)snprintf(p, sizeof(paths[0]), "%s/%s", t->path, name);
    return p;
}

/* Makes or replaces a file of the folder. */
static inline void temp_write(const struct temp *t, const char *name, const void *data, size_t len)
{
    int fd = openat(t->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), (ssize_t)len);
    assert_int_equal(close(fd), 0);
}

/* The whole of a file, NUL-terminated; freed by the caller. */
static inline char *temp_read(const struct temp *t, const char *name, size_t *ret_len)
{
    int fd = openat(t->fd, name, O_RDONLY | O_CLOEXEC);
    struct stat st;
    char *text;

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    text = malloc((size_t)st.st_size + 1);
    assert_non_null(text);
    assert_int_equal(read(fd, text, (size_t)st.st_size), st.st_size);
    text[st.st_size] = 0;
    assert_int_equal(close(fd), 0);
    if (ret_len)
        *ret_len = (size_t)st.st_size;
    return text;
}

/* How many descriptors this process has open: what a failed call leaks shows here. */
static inline size_t open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}
