/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/limits.h"

static uint64_t resolve_flags(enum path_policy policy)
{
    switch (policy) {
    case PATH_BENEATH:
        return RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    case PATH_BENEATH_NOLINKS:
        return RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS;
    case PATH_IN_ROOT:
        return RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    case PATH_CANONICAL:
        return RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS;
    }
    return ~0ULL; /* unknown: the kernel answers EINVAL */
}

int path_open(int dirfd, const char *path, int flags, mode_t mode, enum path_policy policy)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? mode : 0,
        .resolve = resolve_flags(policy),
    };

    /* EAGAIN: something was renamed while the kernel walked. A few tries, then it is the caller's.
     */
    for (int i = 0; i < 16; i++) {
        long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

        if (fd >= 0)
            return (int)fd;
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
    }
    return -EAGAIN;
}

int path_of_fd(int fd, char *path, size_t size)
{
    char link[32];
    struct stat st;
    ssize_t n;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, size);
    if (n < 0)
        return -errno;
    if ((size_t)n >= size)
        return -ENAMETOOLONG;
    path[n] = 0;
    if (path[0] != '/')
        return -ENOENT;
    /* A folder that was removed has no path any more, whatever its link says. */
    return fstat(fd, &st) < 0 ? -errno : st.st_nlink == 0 ? -ENOENT : 0;
}

bool path_is_within(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    if (n == 1 && dir[0] == '/')
        return path[0] == '/';
    return strncmp(path, dir, n) == 0 && (path[n] == 0 || path[n] == '/');
}

int path_make_dirs(const char *path, mode_t mode)
{
    char part[LIMIT_PATH];
    size_t n = strlen(path);

    if (n >= sizeof(part))
        return -ENAMETOOLONG;
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (mkdir(part, mode) < 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}
