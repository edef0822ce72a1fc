/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Landlock: a second belt behind the mounts. Everything may be read and executed, only the scratch
 * folders and the workspace may be written. Put on by init for each command, because only then the
 * workspace is known; raw system calls, -errno.
 */
#include <stdbool.h>

#define LANDLOCK_LEAST 2 /* ABI 1 cannot allow a rename from one folder to another */

/* The ABI of this kernel, 0 if it has none. */
int landlock_abi(void);

long landlock_restrict(int abi, const char *workspace, bool writable);
