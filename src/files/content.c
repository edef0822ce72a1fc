/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files: how they are known again, and how they come to stand beside their place. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "files/internal.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

int64_t files_nanoseconds(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t files_now_ns(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return files_nanoseconds(t);
}

/* ---- identity ---- */

void files_id_of(const struct stat *st, const void *data, size_t len, struct files_id *ret)
{
    *ret = (struct files_id){.dev = st->st_dev,
                             .ino = st->st_ino,
                             .size = (int64_t)len,
                             .mtime_ns = files_nanoseconds(st->st_mtim)};
    if (len <= LIMIT_FILES_HASH)
        sha256_hex(data, len, ret->sha256);
}

bool files_id_is(const struct files_id *expected, const struct files_id *now)
{
    if (expected->sha256[0])
        return strcmp(expected->sha256, now->sha256) == 0;
    return expected->dev == now->dev && expected->ino == now->ino && expected->size == now->size &&
           expected->mtime_ns == now->mtime_ns;
}

bool files_stat_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           files_nanoseconds(a->st_mtim) == files_nanoseconds(b->st_mtim);
}

int files_content_read(int fd, int64_t size, struct buf *ret)
{
    autofree char *data = NULL;
    ssize_t n;

    if (size > LIMIT_FILES_WRITE)
        return -EFBIG;
    data = malloc((size_t)size + 1);
    if (!data)
        return -ENOMEM;
    n = fd_read_full(fd, data, (size_t)size);
    if (n < 0)
        return (int)n;
    data[n] = 0;
    *ret = (struct buf){
        .data = data, .len = (size_t)n, .cap = (size_t)size + 1, .max = LIMIT_FILES_WRITE};
    data = NULL;
    return 0;
}

/* ---- temporary files ---- */

int files_temp_name(char name[TEMP_NAME])
{
    uint64_t random;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return -EIO;
    (void)snprintf(name, TEMP_NAME, FILES_TEMP_PREFIX "%016llx", (unsigned long long)random);
    return 0;
}

bool files_is_temp(const char *name)
{
    size_t n = strlen(FILES_TEMP_PREFIX);

    return strncmp(name, FILES_TEMP_PREFIX, n) == 0 && strspn(name + n, "0123456789abcdef") == 16 &&
           name[n + 16] == 0;
}

static int temp_open(int dir, char name[TEMP_NAME])
{
    for (unsigned i = 0; i < LIMIT_FILES_TRIES; i++) {
        int r = files_temp_name(name), fd;

        if (r < 0)
            return r;
        fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd < 0 ? -errno : fd;
    }
    return -EEXIST;
}

/* What a user put on a file. Never security.* or trusted.*: those say who may do what. */
static bool is_carried(const char *name)
{
    return strncmp(name, "user.", 5) == 0 || strcmp(name, "system.posix_acl_access") == 0;
}

/* Best effort: a file system without attributes has none to lose. */
static void carry_attributes(int from, int to)
{
    autofree char *value = NULL;
    char names[4096];
    ssize_t n = flistxattr(from, names, sizeof(names)), len;

    for (char *name = names; n > 0 && name < names + n; name += strlen(name) + 1) {
        if (!is_carried(name))
            continue;
        if (!value && !(value = malloc(LIMIT_FILES_XATTRS)))
            return;
        len = fgetxattr(from, name, value, LIMIT_FILES_XATTRS);
        if (len >= 0)
            (void)fsetxattr(to, name, value, (size_t)len, 0);
    }
}

/* The owner goes first: a change of owner takes mode bits away. */
static int dress_like(int fd, int old, bool *ret_owner)
{
    struct stat st, now;

    if (fstat(old, &st) < 0 || fstat(fd, &now) < 0)
        return -errno;
    *ret_owner = (now.st_uid == st.st_uid && now.st_gid == st.st_gid) ||
                 fchown(fd, st.st_uid, st.st_gid) == 0;
    if (!*ret_owner && st.st_uid == now.st_uid) /* the group alone may be ours to give */
        (void)!fchown(fd, (uid_t)-1, st.st_gid);
    if (fchmod(fd, st.st_mode & 0777) < 0)
        return -errno;
    carry_attributes(old, fd);
    return 0;
}

static int dress_new(const struct files_root *root, int dir, int fd, bool *ret_owner)
{
    struct stat st, now;

    if (fstat(dir, &st) < 0 || fstat(fd, &now) < 0)
        return -errno;
    *ret_owner = true;
    if (geteuid() == 0 && (now.st_uid != st.st_uid || now.st_gid != st.st_gid))
        *ret_owner = fchown(fd, st.st_uid, st.st_gid) == 0;
    return fchmod(fd, root->file_mode & 0777) < 0 ? -errno : 0;
}

int files_stage(const struct files_root *root, int dir, const void *data, size_t len, int old,
                char ret_temp[TEMP_NAME], bool *ret_owner, struct error *err)
{
    autoclose int fd = temp_open(dir, ret_temp);
    int r;

    if (fd < 0)
        return error_sys(err, fd, "make a temporary file beside it");
    r = fd_write_full(fd, data, len);
    if (r == 0)
        r = old >= 0 ? dress_like(fd, old, ret_owner) : dress_new(root, dir, fd, ret_owner);
    /* What is replaced must not be gone before this is on its way to the disk: ext4 looks after
     * that when a rename replaces, but not when names are exchanged. */
    if (r == 0 && old >= 0)
        (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    if (r == 0 && root->sync && fsync(fd) < 0)
        r = -errno;
    if (r == 0)
        return TAKE_FD(fd);
    (void)unlinkat(dir, ret_temp, 0);
    return error_sys(err, r, "write %zu bytes to a temporary file beside it", len);
}

/* ---- a staged file takes the place of an old one ---- */

/* Where a file system cannot exchange, the name is free for a moment. */
static int exchange(int dir, const char *a, const char *b)
{
    char aside[TEMP_NAME];
    int r;

    if (syscall(SYS_renameat2, dir, a, dir, b, RENAME_EXCHANGE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    r = files_temp_name(aside);
    if (r < 0)
        return r;
    if (renameat(dir, b, dir, aside) < 0 || renameat(dir, a, dir, b) < 0 ||
        renameat(dir, aside, dir, a) < 0)
        return -errno;
    return 0;
}

/* While a file is open its inode is nobody else's: numbers can be compared. */
bool files_is_at(int dir, const char *name, int fd)
{
    struct stat st, which;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &which) == 0 &&
           st.st_ino == which.st_ino && st.st_dev == which.st_dev;
}

/* Who waits for the folder's lock goes right after the one who holds it: without a pause two that
 * change it over and over stay in step. */
static void step_aside(unsigned tries)
{
    struct timespec pause = {.tv_nsec = 1000L * (tries < 100 ? tries : 100) * (1 + random() % 8)};

    if (tries > 2)
        (void)nanosleep(&pause, NULL);
}

/*
 * If somebody has put yet another file under the name, that one replaced ours and what is under
 * temp alike: it stays. If that happens just before the exchange, theirs comes out of it instead of
 * ours, and has to go back.
 */
int files_swap_back(int dir, const char *temp, const char *name, int fresh)
{
    autoclose int held = -1;
    int expected = fresh;

    for (unsigned i = 0; files_is_at(dir, name, expected); i++) {
        autoclose int was = openat(dir, temp, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        int r = was < 0 ? -errno : exchange(dir, temp, name);

        if (r < 0)
            return r;
        if (files_is_at(dir, temp, expected))
            break;
        if (i + 1 == LIMIT_FILES_TRIES)
            return -EAGAIN;
        close_fd(&held);
        expected = held = TAKE_FD(was);
        step_aside(i);
    }
    (void)unlinkat(dir, temp, 0);
    return 0;
}

int files_swap(int dir, const char *temp, const char *name, const struct stat *old, int fresh)
{
    struct stat st;
    int r = exchange(dir, temp, name);

    if (r < 0) {
        (void)unlinkat(dir, temp, 0);
        return r == -ENOENT ? -ESTALE : r;
    }
    if (fstatat(dir, temp, &st, AT_SYMLINK_NOFOLLOW) == 0 && files_stat_same(&st, old))
        return 0;
    r = files_swap_back(dir, temp, name, fresh);
    return r < 0 ? r : -ESTALE;
}
