/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A root as a copy of its parent: folders are made anew, everything else is a hard link. Unpacking
 * never writes to a file that has a name (unpack.c, U2), so the parent cannot change.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/pull/pull.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

static DIR *open_again(int fd)
{
    int again = openat(fd, ".", FOLDER);
    DIR *d = again < 0 ? NULL : fdopendir(again);

    if (!d)
        close_fd(&again);
    return d;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Mode, owner and times of an open file or folder, as another has them. */
static int copy_meta(int to, const struct stat *st)
{
    const struct timespec t[2] = {st->st_atim, st->st_mtim};

    if (geteuid() == 0 && fchown(to, st->st_uid, st->st_gid) < 0)
        return -errno;
    if (fchmod(to, st->st_mode & 07777) < 0 || futimens(to, t) < 0)
        return -errno;
    return 0;
}

/* For a file with as many links as the file system takes (65,000 on ext4). */
static int copy_file(int from, int to, const char *name)
{
    autoclose int in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    autoclose int out = -1;
    struct stat st;
    ssize_t n;

    if (in < 0 || fstat(in, &st) < 0)
        return -errno;
    out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (out < 0)
        return -errno;
    while ((n = sendfile(out, in, NULL, 1 << 20)) > 0)
        ;
    return n < 0 ? -errno : copy_meta(out, &st);
}

static int clone_below(int from, int to);

static int clone_folder(int from, int to, const char *name, const struct stat *st)
{
    autoclose int in = openat(from, name, FOLDER), out = -1;
    int r;

    if (in < 0)
        return -errno;
    if (mkdirat(to, name, 0700) < 0)
        return -errno;
    out = openat(to, name, FOLDER);
    if (out < 0)
        return -errno;
    r = clone_below(in, out);
    return r < 0 ? r : copy_meta(out, st); /* last: every entry changes the time */
}

static int clone_one(int from, int to, const char *name)
{
    struct stat st;

    if (interrupted)
        return -EINTR;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return clone_folder(from, to, name, &st);
    if (linkat(from, name, to, name, 0) == 0)
        return 0;
    return errno == EMLINK && S_ISREG(st.st_mode) ? copy_file(from, to, name) : -errno;
}

static int clone_below(int from, int to)
{
    DIR *d = open_again(from);
    const struct dirent *e;
    int r = 0;

    if (!d)
        return -errno;
    while (r >= 0 && (e = readdir(d)))
        if (!is_dots(e->d_name))
            r = clone_one(from, to, e->d_name);
    (void)closedir(d);
    return r;
}

int clone_root(int from, int to, struct error *err)
{
    struct stat st;
    int r = fstat(from, &st) < 0 ? -errno : clone_below(from, to);

    if (r >= 0)
        r = copy_meta(to, &st);
    return r < 0 ? error_sys(err, r, "copy the root of the layers below") : 0;
}

/* ---- how large a root is: a file with many names counts once ---- */

static int measure_below(int fd, struct seen *inodes, struct measure *m)
{
    DIR *d = open_again(fd);
    const struct dirent *e;
    int r = 0;

    if (!d)
        return -errno;
    while (r >= 0 && (e = readdir(d))) {
        struct stat st;

        if (is_dots(e->d_name))
            continue;
        if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            r = -errno;
            break;
        }
        m->entries++;
        if (S_ISREG(st.st_mode)) {
            r = st.st_nlink > 1 ? seen_add(inodes, st.st_ino) : 1;
            m->bytes += r > 0 ? (uint64_t)st.st_size : 0;
        } else if (S_ISDIR(st.st_mode)) {
            autoclose int sub = openat(fd, e->d_name, FOLDER);

            r = sub < 0 ? -errno : measure_below(sub, inodes, m);
        }
    }
    (void)closedir(d);
    return r < 0 ? r : 0;
}

int measure_root(int root, struct measure *ret, struct error *err)
{
    struct seen inodes = {0};
    struct measure m = {0};
    int r = measure_below(root, &inodes, &m);

    seen_done(&inodes);
    if (r < 0)
        return error_sys(err, r, "measure the new root");
    *ret = m;
    return 0;
}
