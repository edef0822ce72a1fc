/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The system call filter of a box.
 *
 * The filters are compiled from seccomp.table when the program is built (scripts/seccomp-gen.c)
 * and are constant data here: nothing is decided, allocated or looked up when a box starts. What
 * each profile allows, and why, stands in the table.
 *
 * I1: a call that the table does not name fails with ENOSYS.
 * I2: the architecture is looked at first; a call of another one kills the process.
 */

struct sock_fprog;

enum seccomp_profile {
    SECCOMP_DEFAULT, /* tool calls */
    SECCOMP_BROWSER, /* Chromium's own sandbox: user, pid and net namespaces, chroot */
    SECCOMP_BUILD,   /* image building: changing owners and ids seems to work */
    SECCOMP_RUNTIME, /* boxes inside: all namespaces, the mount family; never for tool calls */
};

/* The filter for this machine; static, never freed. NULL for a value outside the enum. */
const struct sock_fprog *seccomp_program(enum seccomp_profile profile);

/*
 * Puts the calling thread under `prog`, for good and for everything it starts. Returns 0 or -errno.
 * The caller has set no_new_privs. Safe between clone and exec: one system call, no memory.
 */
__attribute__((warn_unused_result)) int seccomp_load(const struct sock_fprog *prog);
