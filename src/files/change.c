/* SPDX-License-Identifier: Apache-2.0 */
/* Names come and go: remove, move, make folders, sweep. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"
#include "files/internal.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

/* ---- remove ---- */

/*
 * A folder whose owner may not look into it is made readable by a descriptor of it: by name, it
 * could be a link by then.
 */
static int open_to_empty(int dir, const char *name)
{
    int fd = files_open_dir_at(dir, name, true);
    autoclose int pinned = -1;
    char link[32];

    if (fd != -EACCES)
        return fd;
    pinned = path_open(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, PATH_BENEATH_NOLINKS);
    if (pinned < 0)
        return pinned;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", pinned);
    return chmod(link, 0700) < 0 ? -errno : files_open_dir_at(dir, name, true);
}

static int remove_tree(int dir, const char *name, unsigned depth, uint64_t *n);

/* A few names at a time, until there are none: *n bounds it, whoever makes new ones meanwhile. */
static int empty(int dir, unsigned depth, uint64_t *n)
{
    for (;;) {
        struct names names = {0};
        int r = files_names_read(dir, LIMIT_FILES_AT_ONCE, &names);
        bool done = names.n == 0;

        for (size_t i = 0; i < names.n && r == 0; i++)
            r = remove_tree(dir, names.list[i] + 1, depth, n);
        files_names_done(&names);
        if (r < 0 || done)
            return r;
    }
}

static int remove_tree(int dir, const char *name, unsigned depth, uint64_t *n)
{
    autoclose int fd = -1;
    int r;

    if (++*n > LIMIT_FILES_VISIT)
        return -E2BIG;
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return -errno;
    if (depth >= LIMIT_FILES_DEPTH)
        return -ENAMETOOLONG;
    fd = open_to_empty(dir, name);
    if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
        return 0; /* something else by now: the next round takes it */
    if (fd < 0)
        return fd;
    r = empty(fd, depth + 1, n);
    if (r < 0)
        return r;
    return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

static int remove_error(struct error *err, int r, const char *path)
{
    if (r == -E2BIG)
        return error_set(err, ERR_TOO_LARGE,
                         "remove '%s': it has more than %u entries; those are gone, go on with "
                         "another call",
                         SHOW(path), LIMIT_FILES_VISIT);
    if (r == -ENAMETOOLONG)
        return error_set(err, ERR_TOO_LARGE,
                         "remove '%s': folders stand in each other more than %u deep; remove an "
                         "inner one first",
                         SHOW(path), LIMIT_FILES_DEPTH);
    if (r == -EXDEV || r == -EBUSY)
        return error_set(err, ERR_DENIED, "remove '%s': a mount is in it, which is not entered",
                         SHOW(path));
    return files_place_error(err, r, "remove", path);
}

int files_remove(const struct files_root *root, const char *path, bool recursive, uint64_t *ret_n,
                 struct error *err)
{
    autoplace at = {.dir = -1};
    uint64_t n = 0;
    struct stat st;
    int r = files_place_find(root, path, 0, "remove", NULL, &at, err);

    if (r < 0)
        return r;
    if (fstatat(at.dir, at.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return files_place_error(err, -errno, "remove", path);
    if (recursive)
        r = remove_tree(at.dir, at.name, 0, &n);
    else
        r = unlinkat(at.dir, at.name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
    if (r == -ENOTEMPTY && !recursive)
        return error_set(err, ERR_INVALID,
                         "remove '%s': the folder is not empty; ask for recursive", SHOW(path));
    if (r < 0)
        return remove_error(err, r, path);
    if (ret_n)
        *ret_n = recursive ? n : 1;
    return 0;
}

/* ---- move, mkdir ---- */

static int rename_error(struct error *err, int r, const char *from, const char *to)
{
    if (r == -EEXIST || r == -ENOTEMPTY)
        return error_set(err, ERR_EXISTS, "move '%s' to '%s': the name is taken%s", SHOW(from),
                         SHOW(to),
                         r == -EEXIST ? "; ask for replace" : " by a folder with content");
    if (r == -EXDEV)
        return error_set(err, ERR_UNSUPPORTED,
                         "move '%s' to '%s': they are on different mounts; copy and remove",
                         SHOW(from), SHOW(to));
    if (r == -EINVAL)
        return error_set(err, ERR_INVALID, "move '%s' to '%s': a folder cannot go into itself",
                         SHOW(from), SHOW(to));
    return files_place_error(err, r, "move", from);
}

int files_move(const struct files_root *root, const char *from, const char *to, unsigned flags,
               struct error *err)
{
    autoplace a = {.dir = -1}, b = {.dir = -1};
    unsigned how = flags & FILES_REPLACE ? 0 : RENAME_NOREPLACE;
    struct made made = {0};
    int r = files_place_find(root, from, 0, "move", NULL, &a, err);

    if (r < 0)
        return r;
    r = files_place_find(root, to, flags & FILES_PARENTS ? PLACE_PARENTS : 0, "move to", &made, &b,
                         err);
    if (r == 0 && syscall(SYS_renameat2, a.dir, a.name, b.dir, b.name, how) < 0)
        r = rename_error(err, -errno, from, to);
    if (r < 0)
        files_made_undo(&made);
    files_made_done(&made);
    return r;
}

int files_mkdir(const struct files_root *root, const char *path, unsigned flags, struct error *err)
{
    autoplace at = {.dir = -1};
    struct stat st;
    int r = files_place_find(root, path, flags & FILES_PARENTS ? PLACE_PARENTS : 0, "make folder",
                             NULL, &at, err);

    if (r < 0)
        return r;
    r = files_make_dir_at(root, at.dir, at.name);
    if (r == -EEXIST && (flags & FILES_PARENTS) &&
        fstatat(at.dir, at.name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        r = 0;
    return r < 0 ? files_place_error(err, r, "make folder", path) : 0;
}

/* ---- sweep ---- */

struct sweep {
    int64_t before_ns;
    uint64_t n;
};

static int on_swept(struct walk *w, int dir, const char *name, unsigned char dt, struct error *err)
{
    struct sweep *s = w->arg;
    struct stat st;

    (void)dt;
    (void)err;
    if (files_is_temp(name) && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(st.st_mode) && files_nanoseconds(st.st_ctim) <= s->before_ns &&
        unlinkat(dir, name, 0) == 0)
        s->n++;
    return 0;
}

int files_sweep(const struct files_root *root, int64_t older_ms, uint64_t *ret_n, struct error *err)
{
    struct sweep s = {.before_ns = files_now_ns(CLOCK_REALTIME) - older_ms * 1000000};
    struct walk w = {.recursive = true, .on_entry = on_swept, .arg = &s};
    static const struct files_walk how = {.with_git = true};
    autoclose int dir = files_place_open_dir(root, ".", "sweep", err);
    int r;

    if (dir < 0)
        return TAKE_FD(dir);
    files_walk_start(&w, &how);
    r = files_walk_dir(&w, dir, err);
    if (ret_n)
        *ret_n = s.n;
    return r;
}
