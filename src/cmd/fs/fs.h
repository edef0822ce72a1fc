/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * clawden-fs: what an agent's file tools ask of a box, done by one small program instead of a shell
 * with readlink, or a Python interpreter. It runs inside the box as the box's user, from a memfd:
 * it has no privilege and no file of its own, and is bound by the same filter and rules as anything
 * else there.
 *
 * Three verbs, each with the positional arguments of the script that it stands for; results, exit
 * statuses and messages are the script's. That is the whole specification: where a script does
 * something odd, so does this.
 *
 * Paths are walked one folder at a time from a descriptor, no link followed (openat2 would do it in
 * one call, but answers ENOSYS in a box); `canon` and `stat` follow where readlink and cd do.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "cmd/fs/fault.h"

struct buf;

/* ---- the verbs: arguments end with NULL; the result is the exit status ---- */

int fs_canon(char **args);
int fs_stat(char **args);
int fs_pinned(char **args);

/* Writes to stdout; an exit status. */
int fs_answer(const struct buf *b);

/* ---- dir.c: folders by descriptor ---- */

/* A folder that is no link, or a negative result. at may be AT_FDCWD. */
int dir_open(int at, const char *name, struct fault *f);
/* The folder `rel` below root, as a new descriptor; with make, missing folders are made. Cuts rel
 * into its parts in place. */
int dir_walk(int root, char *rel, bool make, struct fault *f);
/* Appends every name in the folder with its NUL. */
int dir_names(int fd, struct buf *names, struct fault *f);
/* A JSON array of what is in the folder. */
int dir_list(int fd, struct buf *json, struct fault *f);

/* ---- file.c: whole files ---- */

int file_lstat(int at, const char *name, struct stat *ret, struct fault *f);
/* Opens a file to read that is regular, no link and has one name. */
int file_open(int at, const char *name, struct stat *ret, struct fault *f);
/* Everything from one descriptor to the other, with this mode unless it is negative, on the disk.
 */
int file_fill(int from, int to, int mode, struct fault *f);
int file_sync(int fd, struct fault *f);
/* The file as bytes on stdout, at most max of them unless that is negative. */
int file_read(int at, const char *name, long long max, struct fault *f);
/* at/to, which must not exist, becomes a copy; ret is the source as it was before. */
int file_copy(int from_at, const char *from, int at, const char *to, struct stat *ret,
              struct fault *f);
int file_rename(int from_at, const char *from, int at, const char *to, struct fault *f);
/* Removes what is left of a temporary thing after r: r, or the failure of removing. Gone is fine.
 */
int file_drop(int at, const char *name, int r, struct fault *f);

/* ---- publish.c: content that appears at once, or not at all ---- */

#define TEMP_NAME 40 /* bytes of a temporary name, with its NUL */

/* prefix and twelve random digits. */
int temp_file(int at, const char *prefix, char name[TEMP_NAME], struct fault *f);
int temp_dir(int at, const char *prefix, mode_t mode, char name[TEMP_NAME], struct fault *f);
/* The same, opened, and known to be the one that was made. */
int temp_staging(int at, char name[TEMP_NAME], struct fault *f);

/* stdin becomes at/name; the mode of a file that was there is kept. */
int publish_write(int at, const char *name, struct fault *f);
/* The same, but -EEXIST if something is there. */
int publish_create(int at, const char *name, struct fault *f);
int publish_copy(int from_at, const char *from, int at, const char *to, struct fault *f);

/* ---- subtree.c, move.c ---- */

/* What identifies a file and its state; a change of anything but its reading time shows. */
bool same_state(const struct stat *a, const struct stat *b);

/* Removes at/name with everything in it; no link is followed. */
int subtree_remove(int at, const char *name, struct fault *f);
/* The same for what is left of a failed copy: r, or the failure of removing. Gone is fine. */
int subtree_drop(int at, const char *name, int r, struct fault *f);
/* Copies what is in the open folder `from`, called `name`, into the open folder `to`, and notes in
 * the manifest what was copied and in which state. */
int subtree_copy_inside(int from, const char *name, int to, struct buf *manifest, struct fault *f);
/* Removes what a manifest lists, unless it has changed since. */
int subtree_remove_copied(int at, const struct buf *manifest, struct fault *f);

/* Renames, or, from one mount to another, copies, checks and removes. */
int move_entry(int from_at, const char *from, int at, const char *to, struct fault *f);
