/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two mounts of one box may be two file systems, or two binds of one, which is the same to
 * rename(). Then the thing is copied beside its new name, renamed into place, and the source
 * removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/fs/fs.h"

/* Both folders that changed, on the disk. */
static int sync_both(int from_at, int at, struct fault *f)
{
    int r = file_sync(at, f);

    return r < 0 ? r : file_sync(from_at, f);
}

/* ---- a folder ---- */

static int fill_temp(int from_at, const char *from, int at, const char *temp, struct buf *manifest,
                     struct fault *f)
{
    autoclose int out = dir_open(at, temp, f), in = -1;

    if (out < 0)
        return out;
    in = dir_open(from_at, from, f);
    return in < 0 ? in : subtree_copy_inside(in, from, out, manifest, f);
}

static int move_dir(int from_at, const char *from, int at, const char *to, mode_t mode,
                    struct fault *f)
{
    char temp[TEMP_NAME];
    autobuf manifest;
    int r;

    buf_init(&manifest, LIMIT_FS_MANIFEST);
    r = temp_dir(at, ".openclaw-move-", mode ? mode : 0755, temp, f);
    if (r < 0)
        return r;
    r = fill_temp(from_at, from, at, temp, &manifest, f);
    if (r >= 0)
        r = file_rename(at, temp, at, to, f);
    if (r < 0)
        return subtree_drop(at, temp, r, f);
    return subtree_remove_copied(from_at, &manifest, f);
}

/* ---- a link ---- */

static int move_link(int from_at, const char *from, int at, const char *to, struct fault *f)
{
    char target[LIMIT_PATH], temp[TEMP_NAME];
    ssize_t n = readlinkat(from_at, from, target, sizeof(target) - 1);
    int r = 0, staging;

    if (n < 0)
        return fault_sys(f, errno, from);
    target[n] = 0;
    staging = temp_staging(at, temp, f);
    if (staging < 0)
        return staging;
    if (symlinkat(target, staging, "link") < 0)
        r = fault_pair(f, errno, target, "link");
    if (r >= 0)
        r = file_rename(staging, "link", at, to, f);
    r = file_drop(staging, "link", r, f);
    (void)close(staging);
    if (unlinkat(at, temp, AT_REMOVEDIR) < 0)
        r = fault_sys(f, errno, temp);
    if (r >= 0 && unlinkat(from_at, from, 0) < 0)
        r = fault_sys(f, errno, from);
    return r;
}

/* ---- a file ---- */

static int move_file(int from_at, const char *from, int at, const char *to, mode_t mode,
                     struct fault *f)
{
    char temp[TEMP_NAME];
    struct stat st;
    autoclose int in = file_open(from_at, from, &st, f), out = -1;
    int r;

    if (in < 0)
        return in;
    out = temp_file(at, ".openclaw-write-", temp, f);
    if (out < 0)
        return out;
    r = file_fill(in, out, (int)mode, f);
    if (r >= 0)
        r = file_rename(at, temp, at, to, f);
    if (r < 0)
        return file_drop(at, temp, r, f);
    return unlinkat(from_at, from, 0) < 0 ? fault_sys(f, errno, from) : 0;
}

int move_entry(int from_at, const char *from, int at, const char *to, struct fault *f)
{
    struct stat st;
    int r = file_rename(from_at, from, at, to, f);

    if (r == -EXDEV) {
        mode_t mode;

        r = file_lstat(from_at, from, &st, f);
        if (r < 0)
            return r;
        mode = st.st_mode & 07777;
        r = S_ISDIR(st.st_mode)   ? move_dir(from_at, from, at, to, mode, f)
            : S_ISLNK(st.st_mode) ? move_link(from_at, from, at, to, f)
                                  : move_file(from_at, from, at, to, mode, f);
    }
    return r < 0 ? r : sync_both(from_at, at, f);
}
