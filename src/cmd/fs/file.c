/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cmd/fs/fs.h"

static char chunk[LIMIT_FS_CHUNK];

int file_lstat(int at, const char *name, struct stat *ret, struct fault *f)
{
    return fstatat(at, name, ret, AT_SYMLINK_NOFOLLOW) < 0 ? fault_sys(f, errno, name) : 0;
}

int file_open(int at, const char *name, struct stat *ret, struct fault *f)
{
    /* A fifo without a writer must not hold us up. */
    autoclose int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return fault_sys(f, errno, name);
    if (fstat(fd, ret) < 0)
        return fault_sys(f, errno, NULL);
    if (!S_ISREG(ret->st_mode))
        return fault_say(f, EPERM, "only regular files are allowed", name);
    if (ret->st_nlink > 1) /* its other name may stand where the caller must not look */
        return fault_say(f, EPERM, "hardlinked file is not allowed", name);
    return TAKE_FD(fd);
}

int file_fill(int from, int to, int mode, struct fault *f)
{
    ssize_t n;
    int r = 0;

    while (r == 0 && (n = fd_read_full(from, chunk, sizeof(chunk))) != 0)
        r = n < 0 ? (int)n : fd_write_full(to, chunk, (size_t)n);
    if (r == 0 && ((mode >= 0 && fchmod(to, (mode_t)mode) < 0) || fsync(to) < 0))
        r = -errno;
    return r < 0 ? fault_sys(f, -r, NULL) : 0;
}

int file_sync(int fd, struct fault *f)
{
    return fsync(fd) < 0 ? fault_sys(f, errno, NULL) : 0;
}

int file_read(int at, const char *name, long long max, struct fault *f)
{
    static const char too_large[] = "file exceeds bounded read limit";
    struct stat st;
    autoclose int fd = file_open(at, name, &st, f);
    long long done = 0;

    if (fd < 0)
        return fd;
    if (max >= 0 && st.st_size > max)
        return fault_say(f, EFBIG, too_large, name);
    for (;;) {
        size_t want =
            max >= 0 && max - done < LIMIT_FS_CHUNK ? (size_t)(max - done) + 1 : sizeof(chunk);
        ssize_t n = read(fd, chunk, want > sizeof(chunk) ? sizeof(chunk) : want);
        int r;

        if (n <= 0)
            return n < 0 ? fault_sys(f, errno, NULL) : 0;
        done += n;
        if (max >= 0 && done > max) /* it has grown since */
            return fault_say(f, EFBIG, too_large, name);
        r = fd_write_full(STDOUT_FILENO, chunk, (size_t)n);
        if (r < 0)
            return fault_sys(f, -r, NULL);
    }
}

int file_rename(int from_at, const char *from, int at, const char *to, struct fault *f)
{
    return renameat(from_at, from, at, to) < 0 ? fault_pair(f, errno, from, to) : 0;
}

int file_drop(int at, const char *name, int r, struct fault *f)
{
    return unlinkat(at, name, 0) < 0 && errno != ENOENT ? fault_sys(f, errno, name) : r;
}

int file_copy(int from_at, const char *from, int at, const char *to, struct stat *ret,
              struct fault *f)
{
    autoclose int in = file_open(from_at, from, ret, f), out = -1;
    int r;

    if (in < 0)
        return in;
    out =
        openat(at, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, ret->st_mode & 07777);
    if (out < 0)
        return fault_sys(f, errno, to);
    r = file_fill(in, out, (int)(ret->st_mode & 07777), f);
    return r < 0 ? file_drop(at, to, r, f) : 0;
}
