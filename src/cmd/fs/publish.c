/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content is written to a temporary name in the same folder, made durable, and renamed. A reader
 * sees the old file or the new one; a crash leaves at worst a name that begins with `.openclaw-`.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/fs/fs.h"

#define CREATE_FLAGS (O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC)

/* ---- temporary names ---- */

static int temp_name(const char *prefix, char name[TEMP_NAME], struct fault *f)
{
    size_t n = strlen(prefix);
    uint8_t random[6];

    if (syscall(SYS_getrandom, random, sizeof(random), 0) != (long)sizeof(random))
        return fault_sys(f, errno, NULL);
    memcpy(name, prefix, n);
    for (size_t i = 0; i < sizeof(random); i++) {
        name[n++] = "0123456789abcdef"[random[i] >> 4];
        name[n++] = "0123456789abcdef"[random[i] & 15];
    }
    name[n] = 0;
    return 0;
}

int temp_file(int at, const char *prefix, char name[TEMP_NAME], struct fault *f)
{
    for (unsigned i = 0; i < LIMIT_FS_TRIES; i++) {
        int fd = temp_name(prefix, name, f);

        if (fd < 0)
            return fd;
        fd = openat(at, name, CREATE_FLAGS, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd < 0 ? fault_sys(f, errno, name) : fd;
    }
    return fault_type(f, "RuntimeError", "failed to allocate sandbox temp file");
}

int temp_dir(int at, const char *prefix, mode_t mode, char name[TEMP_NAME], struct fault *f)
{
    for (unsigned i = 0; i < LIMIT_FS_TRIES; i++) {
        int r = temp_name(prefix, name, f);

        if (r < 0)
            return r;
        r = mkdirat(at, name, mode);
        if (r >= 0 || errno != EEXIST)
            return r < 0 ? fault_sys(f, errno, name) : 0;
    }
    return fault_type(f, "RuntimeError", "failed to allocate sandbox temp directory");
}

/* Removes the folder if it is still the one we made. */
static int drop_staging(int at, const char *name, const struct stat *made, int r, struct fault *f)
{
    struct stat now;

    if (fstatat(at, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? r : fault_sys(f, errno, name);
    if (!same_state(made, &now))
        return r;
    if (unlinkat(at, name, AT_REMOVEDIR) < 0)
        return errno == ENOENT ? r : fault_sys(f, errno, name);
    return fsync(at) < 0 ? fault_sys(f, errno, NULL) : r;
}

int temp_staging(int at, char name[TEMP_NAME], struct fault *f)
{
    int fd = -1, r = temp_dir(at, ".openclaw-create-", 0700, name, f);
    struct stat made, now;

    if (r >= 0)
        r = file_lstat(at, name, &made, f);
    if (r < 0)
        return r;
    fd = dir_open(at, name, f);
    if (fd < 0)
        return drop_staging(at, name, &made, fd, f);
    if (fstat(fd, &now) == 0 && same_state(&made, &now))
        return fd;
    r = fault_say(f, ESTALE, "create staging directory changed", name);
    (void)close(fd);
    return drop_staging(at, name, &made, r, f);
}

/* ---- write, copy ---- */

int publish_write(int at, const char *name, struct fault *f)
{
    char temp[TEMP_NAME];
    int fd, mode = -1, r;
    struct stat st;

    r = file_lstat(at, name, &st, f);
    if (r < 0 && r != -ENOENT)
        return r;
    if (r >= 0 && S_ISREG(st.st_mode))
        mode = (int)(st.st_mode & 07777);
    fd = temp_file(at, ".openclaw-write-", temp, f);
    if (fd < 0)
        return fd;
    r = file_fill(STDIN_FILENO, fd, mode, f);
    (void)close(fd);
    if (r >= 0)
        r = file_rename(at, temp, at, name, f);
    return r < 0 ? file_drop(at, temp, r, f) : file_sync(at, f);
}

int publish_copy(int from_at, const char *from, int at, const char *to, struct fault *f)
{
    char temp[TEMP_NAME];
    int r = -EEXIST;
    struct stat st;

    for (unsigned i = 0; i < LIMIT_FS_TRIES && r == -EEXIST; i++) {
        r = temp_name(".openclaw-copy-", temp, f);
        if (r >= 0)
            r = file_copy(from_at, from, at, temp, &st, f);
    }
    if (r == -EEXIST)
        return fault_type(f, "RuntimeError", "failed to allocate sandbox copy temp file");
    if (r < 0)
        return r;
    r = file_rename(at, temp, at, to, f);
    return r < 0 ? file_drop(at, temp, r, f) : file_sync(at, f);
}

/* ---- create ---- */

#define PAYLOAD "payload"

/* A rename that replaces nothing; where the file system has none, a link. */
static int rename_new(int from_at, const char *from, int at, const char *to, struct fault *f)
{
    if (syscall(SYS_renameat2, from_at, from, at, to, 1 /* RENAME_NOREPLACE */) == 0)
        return 0;
    if (errno != ENOSYS && errno != EINVAL && errno != ENOTSUP)
        return fault_sys(f, errno, to);
    return linkat(from_at, from, at, to, 0) < 0 ? fault_pair(f, errno, from, to) : 0;
}

static int create_from(int staging, int fd, int at, const char *name, struct fault *f)
{
    struct stat made, now;
    int r = file_fill(STDIN_FILENO, fd, -1, f);

    if (r >= 0 && fstat(fd, &made) < 0)
        r = fault_sys(f, errno, NULL);
    if (r >= 0)
        r = rename_new(staging, PAYLOAD, at, name, f);
    if (r >= 0)
        r = file_lstat(at, name, &now, f);
    if (r < 0)
        return r;
    if (made.st_dev != now.st_dev || made.st_ino != now.st_ino)
        return fault_say(f, ESTALE, "exclusive publication source changed", name);
    return file_sync(at, f);
}

/* The staging folder is emptied by descriptor: whoever moves it cannot redirect that. */
static int create_staged(int staging, int at, const char *name, struct stat *ret_staging,
                         struct fault *f)
{
    int fd = openat(staging, PAYLOAD, CREATE_FLAGS, 0600), r;

    if (fd < 0) {
        r = fault_sys(f, errno, PAYLOAD);
    } else {
        r = create_from(staging, fd, at, name, f);
        (void)close(fd);
    }
    r = file_drop(staging, PAYLOAD, r, f);
    return fstat(staging, ret_staging) < 0 ? fault_sys(f, errno, NULL) : r;
}

int publish_create(int at, const char *name, struct fault *f)
{
    char temp[TEMP_NAME];
    struct stat st = {0};
    int r, staging;

    r = file_lstat(at, name, &st, f);
    if (r != -ENOENT)
        return r < 0 ? r : fault_sys(f, EEXIST, name);
    staging = temp_staging(at, temp, f);
    if (staging < 0)
        return staging;
    r = create_staged(staging, at, name, &st, f);
    (void)close(staging);
    return drop_staging(at, temp, &st, r, f);
}
