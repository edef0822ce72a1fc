/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole folders. A manifest is a row of notes in the order of the walk: a folder's note stands
 * before those of what is in it, and NOTE_END after them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/fs/fs.h"

enum note_kind { NOTE_LEAF, NOTE_DIR, NOTE_END };

/* Followed by the name with its NUL, which NOTE_END has not. */
struct note {
    enum note_kind kind;
    struct stat st;
};

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool same_state(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_mode == b->st_mode &&
           a->st_size == b->st_size && same_time(&a->st_mtim, &b->st_mtim) &&
           same_time(&a->st_ctim, &b->st_ctim);
}

static int too_deep(struct fault *f)
{
    return fault_type(f, "RecursionError", "folders are nested too deep");
}

/* ---- removing ---- */

static int remove_at(int at, const char *name, unsigned depth, struct fault *f);

static int remove_inside(int at, const char *name, unsigned depth, struct fault *f)
{
    autoclose int fd = -1;
    autobuf names;
    int r;

    buf_init(&names, LIMIT_FS_NAMES);
    if (depth >= LIMIT_FS_DEPTH)
        return too_deep(f);
    fd = dir_open(at, name, f);
    if (fd < 0)
        return fd;
    r = dir_names(fd, &names, f);
    for (size_t i = 0; i < names.len && r >= 0; i += strlen(names.data + i) + 1)
        r = remove_at(fd, names.data + i, depth + 1, f);
    return r;
}

static int remove_at(int at, const char *name, unsigned depth, struct fault *f)
{
    struct stat st;
    int r = file_lstat(at, name, &st, f);

    if (r < 0)
        return r;
    if (S_ISDIR(st.st_mode))
        r = remove_inside(at, name, depth, f);
    if (r >= 0 && unlinkat(at, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0)
        r = fault_sys(f, errno, name);
    return r;
}

int subtree_remove(int at, const char *name, struct fault *f)
{
    return remove_at(at, name, 0, f);
}

/* ---- copying ---- */

static int note(struct buf *manifest, enum note_kind kind, const struct stat *st, const char *name,
                struct fault *f)
{
    struct note n = {.kind = kind};

    if (st)
        n.st = *st;
    buf_append(manifest, &n, sizeof(n));
    if (name)
        buf_append(manifest, name, strlen(name) + 1);
    return manifest->failed ? fault_say(f, ENOMEM, "too many files to move", name) : 0;
}

static int copy_at(int from_at, const char *from, int at, const char *to, struct buf *manifest,
                   unsigned depth, struct fault *f);

static int copy_inside(int from, const char *name, int to, struct buf *manifest, unsigned depth,
                       struct fault *f)
{
    struct stat st;
    autobuf names;
    int r;

    buf_init(&names, LIMIT_FS_NAMES);
    if (depth >= LIMIT_FS_DEPTH)
        return too_deep(f);
    if (fstat(from, &st) < 0)
        return fault_sys(f, errno, NULL);
    r = note(manifest, NOTE_DIR, &st, name, f);
    if (r >= 0)
        r = dir_names(from, &names, f);
    for (size_t i = 0; i < names.len && r >= 0; i += strlen(names.data + i) + 1)
        r = copy_at(from, names.data + i, to, names.data + i, manifest, depth + 1, f);
    return r < 0 ? r : note(manifest, NOTE_END, NULL, NULL, f);
}

static int copy_dir(int from_at, const char *from, int at, const char *to, struct buf *manifest,
                    unsigned depth, struct fault *f)
{
    autoclose int in = dir_open(from_at, from, f), out = -1;

    if (in < 0)
        return in;
    out = dir_open(at, to, f);
    return out < 0 ? out : copy_inside(in, from, out, manifest, depth, f);
}

static int copy_link(int from_at, const char *from, int at, const char *to, struct fault *f)
{
    char target[LIMIT_PATH];
    ssize_t n = readlinkat(from_at, from, target, sizeof(target) - 1);

    if (n < 0)
        return fault_sys(f, errno, from);
    target[n] = 0;
    return symlinkat(target, at, to) < 0 ? fault_pair(f, errno, target, to) : 0;
}

static int copy_at(int from_at, const char *from, int at, const char *to, struct buf *manifest,
                   unsigned depth, struct fault *f)
{
    struct stat st;
    int r = file_lstat(from_at, from, &st, f);

    if (r < 0)
        return r;
    if (S_ISDIR(st.st_mode)) {
        mode_t mode = st.st_mode & 07777;

        if (mkdirat(at, to, mode ? mode : 0755) < 0)
            return fault_sys(f, errno, to);
        r = copy_dir(from_at, from, at, to, manifest, depth, f);
        return r < 0 ? subtree_drop(at, to, r, f) : 0;
    }
    r = S_ISLNK(st.st_mode) ? copy_link(from_at, from, at, to, f)
                            : file_copy(from_at, from, at, to, &st, f);
    return r < 0 ? r : note(manifest, NOTE_LEAF, &st, from, f);
}

int subtree_drop(int at, const char *name, int r, struct fault *f)
{
    struct fault second;
    int d = subtree_remove(at, name, &second);

    if (d >= 0 || d == -ENOENT)
        return r;
    *f = second;
    return d;
}

int subtree_copy_inside(int from, const char *name, int to, struct buf *manifest, struct fault *f)
{
    return copy_inside(from, name, to, manifest, 0, f);
}

/* ---- removing what was copied ---- */

struct notes {
    const char *at, *end;
};

/* The next note and its name. */
static bool next_note(struct notes *n, struct note *ret, const char **ret_name)
{
    if ((size_t)(n->end - n->at) < sizeof(*ret))
        return false;
    memcpy(ret, n->at, sizeof(*ret));
    n->at += sizeof(*ret);
    *ret_name = n->at;
    if (ret->kind != NOTE_END)
        n->at += strlen(n->at) + 1;
    return ret->kind != NOTE_END;
}

static int remove_noted(int at, const struct note *n, const char *name, struct notes *rest,
                        struct fault *f);

static int remove_noted_inside(int at, const char *name, struct notes *rest, struct fault *f)
{
    autoclose int fd = dir_open(at, name, f);
    const char *child;
    struct note n;
    int r = fd < 0 ? fd : 0;

    while (r >= 0 && next_note(rest, &n, &child))
        r = remove_noted(fd, &n, child, rest, f);
    return r;
}

static int remove_noted(int at, const struct note *n, const char *name, struct notes *rest,
                        struct fault *f)
{
    bool is_dir = n->kind == NOTE_DIR;
    struct stat st;
    int r = file_lstat(at, name, &st, f);

    if (r < 0)
        return r;
    if (!same_state(&n->st, &st))
        return fault_say(f, ESTALE, "source changed during move fallback cleanup", name);
    if (is_dir)
        r = remove_noted_inside(at, name, rest, f);
    if (r >= 0 && unlinkat(at, name, is_dir ? AT_REMOVEDIR : 0) < 0)
        r = fault_sys(f, errno, name);
    return r;
}

int subtree_remove_copied(int at, const struct buf *manifest, struct fault *f)
{
    struct notes rest = {manifest->data, manifest->data + manifest->len};
    const char *name;
    struct note n;

    return next_note(&rest, &n, &name) ? remove_noted(at, &n, name, &rest, f) : 0;
}
