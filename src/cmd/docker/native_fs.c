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

static bool fits_canon(char *const *args, size_t n)
{
    (void)n;
    return is_plain(args[0]);
}

/* The older script takes the newline from the end of a name. */
static bool fits_old_canon(char *const *args, size_t n)
{
    return fits_canon(args, n) && !strchr(args[0], '\n');
}

/* To stat(1), "-" is its own stdin. */
static bool fits_stat(char *const *args, size_t n)
{
    (void)n;
    return is_plain(args[0]) && strcmp(args[1], "-") != 0;
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

/* ---- the scripts ---- */

static const struct script {
    size_t bytes;
    const char *sha256;
    const char *verb, *more; /* more: a last argument, which this version of the script has not */
    size_t n_args;           /* that it reads; 0: all */
    bool (*fits)(char *const *args, size_t n);
} scripts[] = {
    /* 2026.9.6 */
    {840, "3b45ccc8ebcbd0ff50acaa6e3ad5e095fa1e0a96439900da40a1bc5c1f2c2777", "canon", NULL, 3,
     fits_canon},
    {54, "7e701e90bb9a7ef6d5b61af3dbef04645dc95babd46dc0c3ad8ba29a7a0566a0", "stat", NULL, 2,
     fits_stat},
    {24530, "c6a034108632f49c1a312593adadb7e33385426f31710ee8dd0320bdeb9a629e", "pinned", NULL, 0,
     fits_pinned},
    /* 2026.6.10; its third script does other things, and is run */
    {455, "e69ae3583af33d903a26685328730a8f7b4f21fb39e2954a35991a9641c7086a", "canon", "0", 2,
     fits_old_canon},
    {45, "f6800a694812139142ead1b48670667666e1d67baf22458fc8e489cd5772ee2d", "stat", NULL, 2,
     fits_stat},
};

static const struct script *find_script(const char *text)
{
    size_t n = strlen(text);
    char hex[SHA256_HEX] = "";

    for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
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

bool native_fs_match(char *const *argv, char ***ret_argv)
{
    const char *wanted = getenv("CLAWDEN_NATIVE_FS");
    const struct script *s;
    size_t n = 0, k = 0;
    char *const *args;
    char **list;

    if ((wanted && strcmp(wanted, "0") == 0) || !is_script(argv))
        return false;
    args = argv + 4;
    while (args[n])
        n++;
    s = n ? find_script(argv[2]) : NULL;
    if (!s || n < s->n_args || !s->fits(args, n))
        return false;
    if (s->n_args)
        n = s->n_args;
    list = calloc(n + 4, sizeof(*list));
    if (!list)
        abort();
    list[k++] = (char *)"clawden-fs"; /* argv is not const; nobody writes to it */
    list[k++] = (char *)s->verb;
    for (size_t i = 0; i < n; i++)
        list[k++] = args[i];
    list[k] = (char *)s->more;
    *ret_argv = list;
    return true;
}

const void *native_fs_program(size_t *ret_bytes)
{
    *ret_bytes = sizeof(fs_image);
    return fs_image;
}
