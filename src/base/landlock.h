/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Landlock: a second belt behind the mounts. Everything may be read and executed, only the scratch
 * folders and the places that are named may be written. A box for one command gets it from init,
 * because only then its workspace is known; a live box before its init is executed. Raw system
 * calls, -errno.
 */
#include <stdbool.h>

#define LANDLOCK_LEAST 2 /* ABI 1 cannot allow a rename from one folder to another */

/* The ABI of this kernel, 0 if it has none. */
int landlock_abi(void);

/* writable: absolute paths besides the scratch folders; ends with NULL. */
long landlock_restrict(int abi, const char *const *writable);
