/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whose ids a box has.
 *
 * An ordinary user's box has one id: its user is the caller. Root's boxes have 65,536 ids each,
 * from a range that nothing else on the machine uses: no id of the host, least of all 0, exists
 * inside (PROBES 0.1: sysctl, sysfs and devtmpfs check the uid, not the capability). A range
 * belongs to whoever holds its byte of the lock file, and returns when that process is gone.
 */
#include <stdint.h>
#include <sys/types.h>

struct error;

#define IDS_FIRST   1879048192u /* 0x70000000: far above what systems hand out */
#define IDS_PER_BOX 65536u
#define IDS_RANGES  32768u

/* Locks a range; *ret_lock keeps it. */
int ids_lock_range(uint32_t *ret_base, int *ret_lock, struct error *err);

/* One id of the host that stands for the box's user; 0: none (0 itself is never mapped). */
struct ids_owner {
    uint32_t uid, gid;
    uint32_t as_uid, as_gid;
};

/* Writes the maps of a process in a new user namespace: its range, with the owner in it. -errno. */
int ids_write_range(pid_t pid, uint32_t base, const struct ids_owner *owner);

/*
 * A user namespace whose only use is to be an id map: files of owner uid:gid appear as host ids
 * to_uid:to_gid, everything else as nobody. Its descriptor, or -errno.
 */
int ids_make_map(uint32_t uid, uint32_t gid, uint32_t to_uid, uint32_t to_gid);

/*
 * Clones the tree of a folder with that map on it (map_fd -1: with none); its descriptor, or
 * -errno. Mounts below it whose file system cannot be mapped stay unmapped: their files are
 * nobody's in the box.
 */
int ids_map_tree(int folder_fd, int map_fd, int read_only);

/* The same for all ids of a box: 0 to 65535 appear as the range that begins at base. */
int ids_make_range_map(uint32_t base);
