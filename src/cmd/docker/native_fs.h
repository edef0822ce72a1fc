/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The file tools of the OpenClaw client are three constant scripts, which it has run by `sh -c` in
 * the box, twenty times for one write. Those that we know byte for byte are done by clawden-fs
 * instead; it gives the same answers without a shell or Python, which the box then need not have.
 *
 * Anything else, and any argument for which the two could differ, is simply run.
 */
#include <stdbool.h>
#include <stddef.h>

/*
 * Is argv (sh -c SCRIPT openclaw-sandbox-fs ARG...) one of them? Then ret_argv is what clawden-fs
 * is started with: a list to be freed, of strings that are argv's own. CLAWDEN_NATIVE_FS=0: never.
 */
bool native_fs_match(char *const *argv, char ***ret_argv);

enum native_kind { NATIVE_CANON, NATIVE_OLD_CANON, NATIVE_STAT, NATIVE_PINNED };

/* A script by its length and hash: what it says stays with those who wrote it. */
struct native_script {
    enum native_kind kind;
    size_t bytes;
    const char *sha256;
};

/* The same with other scripts than those known, for tests. */
bool native_fs_match_in(const struct native_script *scripts, size_t n_scripts, char *const *argv,
                        char ***ret_argv);

/* clawden-fs itself, to be executed in the box. */
const void *native_fs_program(size_t *ret_bytes);
