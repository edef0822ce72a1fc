/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/docker/native_fs.h"

#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "fs_image.h"

/* ---- arguments for which script and program are known to agree ---- */

/* Absolute, without empty parts and dots: the shell's cd and dirname see such a path differently
 * from the kernel. */
static bool is_plain(const char *path)
{
    if (path[0] != '/')
        return false;
    if (!path[1])
        return true;
    for (const char *p = path; *p == '/';) {
        size_t n = strcspn(++p, "/");

        if (n == 0 || (p[0] == '.' && (n == 1 || (n == 2 && p[1] == '.'))))
            return false;
        p += n;
    }
    return true;
}

static bool fits_pinned(char *const *args, size_t n)
{
    static const struct {
        const char *name;
        size_t words; /* at least, with the name */
    } operations[] = {{"write", 5},  {"create", 5}, {"read", 4},   {"readdir", 3},
                      {"mkdirp", 3}, {"remove", 6}, {"rename", 8}, {"copy", 8}};

    for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
        if (strcmp(args[0], operations[i].name) == 0)
            return n >= operations[i].words;
    return false;
}

/* How many arguments the script reads, or 0 if these are better left to it. */
static size_t fitting(enum native_kind kind, char *const *args, size_t n)
{
    switch (kind) {
    case NATIVE_CANON:
        return n >= 3 && is_plain(args[0]) ? 3 : 0;
    case NATIVE_OLD_CANON: /* it loses the newlines at the end of a name */
        return n >= 2 && is_plain(args[0]) && !strchr(args[0], '\n') ? 2 : 0;
    case NATIVE_STAT: /* to stat(1), "-" is its own stdin */
        return n >= 2 && is_plain(args[0]) && strcmp(args[1], "-") != 0 ? 2 : 0;
    case NATIVE_PINNED:
        return n >= 1 && fits_pinned(args, n) ? n : 0;
    default:
        return 0;
    }
}

/* ---- the scripts ---- */

static const struct native_script known[] = {
    /* 2026.9.6 */
    {NATIVE_CANON, 840, "3b45ccc8ebcbd0ff50acaa6e3ad5e095fa1e0a96439900da40a1bc5c1f2c2777"},
    {NATIVE_STAT, 54, "7e701e90bb9a7ef6d5b61af3dbef04645dc95babd46dc0c3ad8ba29a7a0566a0"},
    {NATIVE_PINNED, 24530, "c6a034108632f49c1a312593adadb7e33385426f31710ee8dd0320bdeb9a629e"},
    /* 2026.6.10; its third script does other things, and is run */
    {NATIVE_OLD_CANON, 455, "e69ae3583af33d903a26685328730a8f7b4f21fb39e2954a35991a9641c7086a"},
    {NATIVE_STAT, 45, "f6800a694812139142ead1b48670667666e1d67baf22458fc8e489cd5772ee2d"},
};

/* Only a text as long as one of them is hashed. */
static const struct native_script *find_script(const struct native_script *scripts,
                                               size_t n_scripts, const char *text)
{
    size_t n = strlen(text);
    char hex[SHA256_HEX] = "";

    for (size_t i = 0; i < n_scripts; i++) {
        if (scripts[i].bytes != n)
            continue;
        if (!hex[0])
            sha256_hex(text, n, hex);
        if (strcmp(hex, scripts[i].sha256) == 0)
            return &scripts[i];
    }
    return NULL;
}

/* The words before the script's arguments, or false. */
static bool is_script(char *const *argv)
{
    static const char *const words[] = {"sh", "-c", NULL, "openclaw-sandbox-fs"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (!argv[i])
            return false;
        if (words[i] && strcmp(argv[i], words[i]) != 0 &&
            (i > 0 || strcmp(argv[0], "/bin/sh") != 0))
            return false;
    }
    return true;
}

/* argv is not const, but nobody writes to it. */
static char **make_argv(enum native_kind kind, char *const *args, size_t n)
{
    static const char *const verbs[] = {"canon", "canon", "stat", "pinned"};
    char **list = calloc(n + 4, sizeof(*list));

    if (!list)
        abort();
    list[0] = (char *)"clawden-fs";
    list[1] = (char *)verbs[kind];
    for (size_t i = 0; i < n; i++)
        list[2 + i] = args[i];
    if (kind == NATIVE_OLD_CANON)
        list[2 + n] = (char *)"0"; /* it has no IDENTITY */
    return list;
}

bool native_fs_match_in(const struct native_script *scripts, size_t n_scripts, char *const *argv,
                        char ***ret_argv)
{
    const char *wanted = getenv("CLAWDEN_NATIVE_FS");
    const struct native_script *s;
    size_t n = 0;

    if ((wanted && strcmp(wanted, "0") == 0) || !is_script(argv))
        return false;
    s = find_script(scripts, n_scripts, argv[2]);
    if (!s)
        return false;
    argv += 4;
    while (argv[n])
        n++;
    n = fitting(s->kind, argv, n);
    if (n == 0)
        return false;
    *ret_argv = make_argv(s->kind, argv, n);
    return true;
}

bool native_fs_match(char *const *argv, char ***ret_argv)
{
    return native_fs_match_in(known, sizeof(known) / sizeof(*known), argv, ret_argv);
}

const void *native_fs_program(size_t *ret_bytes)
{
    *ret_bytes = sizeof(fs_image);
    return fs_image;
}
