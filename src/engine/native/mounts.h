/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The steps of a plan that make the box's file system: called by child_walk(), under the same rules
 * (child.h). Results are the kernel's: -errno on failure. Nobody outside child.c and slot.c
 * includes this.
 */
#include <stdint.h>

#include "engine/native/child.h"

/* Opens beneath dirfd without meeting a link; absolute paths (dirfd AT_FDCWD) may not hold one. */
int mounts_open(int dirfd, const char *path, uint64_t flags, uint64_t mode);
long mounts_tree(struct child_state *st, const struct step *s);
long mounts_device(struct child_state *st, const struct step *s);
long mounts_enter_root(struct child_state *st, int mount);
long mounts_root_tmpfs(struct child_state *st, const struct step *s);
long mounts_root_overlay(struct child_state *st);
long mounts_tmpfs(const struct child_state *st, const struct step *s);
long mounts_dirs(struct child_state *st, const char *path);
long mounts_dir(const struct child_state *st, const struct step *s);
long mounts_link(const struct child_state *st, const struct step *s);
long mounts_file(const struct child_state *st, const struct step *s);
long mounts_attach(struct child_state *st, const struct step *s);
long mounts_pivot(struct child_state *st);
long mounts_writer(struct child_state *st);
long mounts_seal(const struct child_state *st);
long mounts_proc(const struct child_state *st, const struct step *s);
long mounts_devpts(const struct child_state *st, const struct step *s);
long mounts_mask(struct child_state *st, const struct step *s);
long mounts_read_only(const struct child_state *st, const struct step *s);
long mounts_scratch(const struct child_state *st, const struct step *s);
long mounts_scratch_dir(const struct child_state *st, const struct step *s);
long mounts_scratch_size(const struct child_state *st, const struct step *s);
long mounts_copy(const struct child_state *st, const struct step *s);
long mounts_proc_instead(const struct child_state *st, const struct step *s);
