/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

/* By a descriptor: what has become a link meanwhile leads somewhere else. */
static int make_writable(int at, const char *name)
{
    autoclose int fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char link[32];

    if (fd < 0)
        return -errno;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return chmod(link, 0700) < 0 ? -errno : 0;
}

/* A folder whose owner may not look into it is opened after all: it is about to go. */
static int open_dir(int at, const char *name)
{
    int fd = openat(at, name, DIR_FLAGS);

    if (fd < 0 && errno == EACCES && make_writable(at, name) == 0)
        fd = openat(at, name, DIR_FLAGS);
    if (fd >= 0)
        (void)fchmod(fd, 0700);
    return fd < 0 ? -errno : fd;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/*
 * Everything in `dir` but its folders is removed; those are moved up into `top` under a new name,
 * or, if dir is top itself (move false), left where they are. How many folders there were, or
 * -errno.
 */
static int empty(int top, int dir, bool move, unsigned *serial)
{
    int copy = openat(dir, ".", DIR_FLAGS), n = 0, r = 0;
    DIR *d = copy < 0 ? NULL : fdopendir(copy);

    if (!d)
        return -errno;
    for (struct dirent *e; r == 0 && (e = readdir(d));) {
        char fresh[32];

        if (is_dots(e->d_name) || unlinkat(dir, e->d_name, 0) == 0 || errno == ENOENT)
            continue;
        if (errno != EISDIR && errno != EPERM) {
            r = -errno;
            break;
        }
        n++;
        if (!move)
            continue;
        /* The folder's own ".." changes, so it must be writable. */
        r = make_writable(dir, e->d_name);
        do
            (void)snprintf(fresh, sizeof(fresh), ".removed-%u", (*serial)++);
        while (faccessat(top, fresh, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
        if (r == 0 && renameat(dir, e->d_name, top, fresh) < 0)
            r = -errno;
    }
    (void)closedir(d);
    return r < 0 ? r : n;
}

/* One pass over the folders that stand directly in top. */
static int take_apart(int top, unsigned *serial)
{
    int copy = openat(top, ".", DIR_FLAGS), r = 0;
    DIR *d = copy < 0 ? NULL : fdopendir(copy);

    if (!d)
        return -errno;
    for (struct dirent *e; r >= 0 && (e = readdir(d));) {
        autoclose int dir = -1;

        if (is_dots(e->d_name))
            continue;
        dir = open_dir(top, e->d_name);
        if (dir == -ENOENT || dir == -ENOTDIR)
            continue;
        r = dir < 0 ? dir : empty(top, dir, true, serial);
        if (r >= 0 && unlinkat(top, e->d_name, AT_REMOVEDIR) < 0 && errno != ENOENT)
            r = -errno;
    }
    (void)closedir(d);
    return r < 0 ? r : 0;
}

int tree_remove(int dirfd, const char *name)
{
    autoclose int top = -1;
    unsigned serial = 0;
    int r;

    if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    top = open_dir(dirfd, name);
    if (top < 0)
        return top;
    while ((r = empty(top, top, false, &serial)) > 0) {
        r = take_apart(top, &serial);
        if (r < 0)
            break;
    }
    if (r < 0)
        return r;
    return unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}
