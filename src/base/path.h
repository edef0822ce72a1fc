/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Opening by path, under a named policy, through openat2: the kernel does the check while it walks,
 * so there is nothing to race with. Results are -errno.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum path_policy {
    PATH_BENEATH,         /* never leaves dirfd; links inside it are followed */
    PATH_BENEATH_NOLINKS, /* never leaves dirfd and meets no link at all */
    PATH_IN_ROOT,         /* dirfd is the root that absolute links refer to */
    PATH_CANONICAL,       /* absolute or relative, but no part of it may be a link */
};

int path_open(int dirfd, const char *path, int flags, mode_t mode, enum path_policy policy);

/* The canonical absolute path of an open descriptor; -ENAMETOOLONG if it does not fit. */
int path_of_fd(int fd, char *path, size_t size);

/* Is `path` the same as, or inside, `dir`? Both canonical and absolute: whole components count. */
bool path_is_within(const char *path, const char *dir);

/* Makes every missing folder of an absolute path with this mode. */
int path_make_dirs(const char *path, mode_t mode);
