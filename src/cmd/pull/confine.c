/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A belt around the parsers of what strangers send: from here on this process writes below the
 * store only and executes nothing, whatever a layer, a registry or a bug wants. Reading stays as it
 * is. A kernel without Landlock (or with its first version, which knows no renames) goes without.
 */
#include <errno.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/landlock.h"
#include "cmd/pull/pull.h"

#define FS_TRUNCATE (1ULL << 14) /* ABI 3 */

/* Everything that changes a file system, and execution. */
static uint64_t handled(int abi)
{
    uint64_t fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                  LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                  LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
                  LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                  LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                  LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER;

    return abi >= 3 ? fs | FS_TRUNCATE : fs;
}

/* What the store needs: no devices, sockets or pipes, and nothing is run from it. */
static uint64_t allowed(int abi)
{
    return handled(abi) & ~(uint64_t)(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                                      LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                                      LANDLOCK_ACCESS_FS_MAKE_FIFO);
}

int confine(int store, struct error *err)
{
    int abi = landlock_abi();
    struct landlock_ruleset_attr attr = {.handled_access_fs = handled(abi)};
    struct landlock_path_beneath_attr rule = {.allowed_access = allowed(abi), .parent_fd = store};
    autoclose int set = -1;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_sys(err, -errno, "give up new privileges");
    if (abi < LANDLOCK_LEAST)
        return 0;
    /* The size of ABI 1: later kernels take what is missing for zero. */
    set = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr.handled_access_fs), 0);
    if (set < 0 || syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0 ||
        syscall(SYS_landlock_restrict_self, set, 0) < 0)
        return error_sys(err, -errno, "confine clawden-pull to its store");
    return 0;
}
