/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/docker/native_fs.h"

#include <elf.h>

#include "base/cleanup.h"
#include "base/sha256.h"
#include "tests/test.h"

#define NAME "openclaw-sandbox-fs"

/* Scripts of our own in the place of the client's: "C" is one of the kind NATIVE_CANON, and so on.
 */
static const char letters[] = "COSP";
static struct native_script scripts[4];
static char hashes[4][SHA256_HEX];

static int setup(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        sha256_hex(&letters[i], 1, hashes[i]);
        scripts[i] = (struct native_script){(enum native_kind)i, 1, hashes[i]};
    }
    return 0;
}

static bool match(const char *const *argv, char ***ret)
{
    return native_fs_match_in(scripts, 4, (char *const *)argv, ret);
}

static void test_known(void **state)
{
    static const struct {
        const char *call[14], *want[12];
    } rows[] = {
        {{"sh", "-c", "C", NAME, "/w", "0", "1"}, {"canon", "/w", "0", "1"}},
        {{"/bin/sh", "-c", "C", NAME, "/", "1", "1"}, {"canon", "/", "1", "1"}},
        {{"sh", "-c", "C", NAME, "/...a/b\n", "0", "1", "more"}, {"canon", "/...a/b\n", "0", "1"}},
        {{"sh", "-c", "O", NAME, "/w/x y", "1"}, {"canon", "/w/x y", "1", "0"}},
        {{"sh", "-c", "S", NAME, "/w", "-x"}, {"stat", "/w", "-x"}},
        {{"sh", "-c", "P", NAME, "mkdirp", "r", "../x"}, {"pinned", "mkdirp", "r", "../x"}},
        {{"sh", "-c", "P", NAME, "read", "r", "", "f"}, {"pinned", "read", "r", "", "f"}},
        {{"sh", "-c", "P", NAME, "read", "r", "", "f", "9"}, {"pinned", "read", "r", "", "f", "9"}},
        {{"sh", "-c", "P", NAME, "copy", "r", "", "f", "s", "", "g", "1"},
         {"pinned", "copy", "r", "", "f", "s", "", "g", "1"}},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        char **list = NULL;
        size_t i = 0;

        CHECK(match(row->call, &list), "%s %s is not known", row->call[2], row->call[4]);
        CHECK_STR(list[0], "clawden-fs", "program");
        for (; row->want[i]; i++)
            CHECK(list[i + 1] && strcmp(list[i + 1], row->want[i]) == 0, "%s: word %zu: %s",
                  row->call[2], i, list[i + 1] ? list[i + 1] : "none");
        CHECK(!list[i + 1], "%s: one too many", row->call[2]);
        free(list);
    }
}

static void test_run(void **state)
{
    static const char *const rows[][12] = {
        {"sh"},
        {"sh", "-c"},
        {"sh", "-c", "S"},
        {"sh", "-c", "S", NAME},
        {"sh", "-c", "S", NAME, "/w"},
        {"sh", "-c", "S\n", NAME, "/w", "f"},
        {"sh", "-c", "s", NAME, "/w", "f"},
        {"sh", "-c", "", NAME, "/w", "f"},
        {"sh", "-lc", "S", NAME, "/w", "f"},
        {"sh", "-c", "S", "other", "/w", "f"},
        {"bash", "-c", "S", NAME, "/w", "f"},
        {"/usr/bin/sh", "-c", "S", NAME, "/w", "f"},
        /* the shell's idea of a path, or stat's of a name, is its own */
        {"sh", "-c", "S", NAME, "w", "f"},
        {"sh", "-c", "S", NAME, "", "f"},
        {"sh", "-c", "S", NAME, "-", "f"},
        {"sh", "-c", "S", NAME, "/w/..", "f"},
        {"sh", "-c", "S", NAME, "/./w", "f"},
        {"sh", "-c", "S", NAME, "/w/", "f"},
        {"sh", "-c", "S", NAME, "//w", "f"},
        {"sh", "-c", "S", NAME, "/w", "-"},
        {"sh", "-c", "C", NAME, "/w", "0"},
        {"sh", "-c", "C", NAME, "w", "0", "0"},
        {"sh", "-c", "O", NAME, "/w"},
        {"sh", "-c", "O", NAME, "/w\n", "0"},
        /* what the third script would complain about, it may */
        {"sh", "-c", "P", NAME},
        {"sh", "-c", "P", NAME, "chmod", "r", "", "f", "1"},
        {"sh", "-c", "P", NAME, "write", "r", "", "f"},
        {"sh", "-c", "P", NAME, "remove", "r", "", "f", "1"},
        {"sh", "-c", "P", NAME, "rename", "r", "", "f", "s", "", "g"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        char **list = NULL;

        CHECK(!match(*row, &list), "row %zu is known", (size_t)(row - rows));
        CHECK(!list, "row %zu: written without success", (size_t)(row - rows));
    }
}

static void test_off(void **state)
{
    static const char *const call[] = {"sh", "-c", "S", NAME, "/w", "f", NULL};
    char **list = NULL;

    (void)state;
    (void)setenv("CLAWDEN_NATIVE_FS", "0", 1);
    CHECK(!match(call, &list), "on");
    (void)setenv("CLAWDEN_NATIVE_FS", "1", 1);
    CHECK(match(call, &list), "off");
    free(TAKE_PTR(list));
    (void)unsetenv("CLAWDEN_NATIVE_FS");
    CHECK(!native_fs_match((char *const *)call, &list), "a script of these tests is really known");
}

static void test_program(void **state)
{
    size_t bytes = 0;
    const unsigned char *image = native_fs_program(&bytes);
    Elf64_Ehdr e;
    Elf64_Phdr p;

    (void)state;
    CHECK(bytes > sizeof(e) && memcmp(image, ELFMAG, SELFMAG) == 0, "no ELF image");
    memcpy(&e, image, sizeof(e));
    for (unsigned i = 0; i < e.e_phnum; i++) {
        memcpy(&p, image + e.e_phoff + i * sizeof(p), sizeof(p));
        CHECK(p.p_type != PT_INTERP, "it needs a file of the box: a dynamic linker");
    }
}

static const struct CMUnitTest claims[] = {
    CLAIM("a known script becomes a call of clawden-fs with the arguments it reads", test_known),
    CLAIM("anything else is simply run", test_run),
    CLAIM("CLAWDEN_NATIVE_FS=0 turns it off", test_off),
    CLAIM("the program that the drop-in carries needs no other file", test_program),
};

int main(void)
{
    return cmocka_run_group_tests_name("docker/native_fs", claims, setup, NULL);
}
