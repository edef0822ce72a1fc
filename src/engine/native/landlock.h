/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Landlock: a second belt behind the mounts. Everything may be read and executed, only the scratch
 * folders and the workspace may be written. Called in the child after the root has changed; raw
 * system calls, -errno.
 */
#include <stdbool.h>

/* The ABI of this kernel, 0 if it has none. */
int landlock_abi(void);

long landlock_restrict(int abi, const char *workspace, bool writable);
