/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which belts a live box really has on, asked of the kernel: the /proc files of its init, which
 * every command inherits from. Bits of enum belt.
 */
#include <stdint.h>
#include <sys/types.h>

/* *ret_held: seen on; *ret_seen: those that /proc can tell at all. -errno if the process is not
 * there. */
int belts_read(pid_t init, uint32_t *ret_held, uint32_t *ret_seen);
