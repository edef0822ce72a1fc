/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "files/internal.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

/* The file that is to be replaced. */
struct target {
    struct place at;
    int fd; /* -1: there is none */
    struct stat st;
    struct buf text;  /* its content, if anybody needs it */
    struct made made; /* folders made for it, which go if nothing comes of it */
};
#define autotarget cleanup_(target_done) struct target

static void target_done(struct target *t)
{
    close_fd(&t->fd);
    files_place_done(&t->at);
    buf_done(&t->text);
    files_made_undo(&t->made);
}

static int target_find(const struct files_root *root, const char *path, unsigned flags,
                       const char *verb, bool with_text, struct target *t, struct error *err)
{
    int r = files_place_find(root, path, PLACE_FOLLOW | (flags & FILES_PARENTS ? PLACE_PARENTS : 0),
                             verb, &t->made, &t->at, err);

    if (r < 0)
        return r;
    t->fd = files_open_file_at(t->at.dir, t->at.name, &t->st);
    if (t->fd == -ENOENT) {
        t->fd = -1;
        return 0;
    }
    /* A link here was put after we had followed: next time it will be followed too. */
    r = t->fd < 0 ? t->fd : with_text ? files_content_read(t->fd, t->st.st_size, &t->text) : 0;
    return r < 0 ? files_place_error(err, r, verb, path) : 0;
}

static int check_expected(const struct target *t, const struct files_id *expected)
{
    struct files_id now;

    if (!expected)
        return 0;
    if (t->fd < 0)
        return -ESTALE;
    files_id_of(&t->st, t->text.data, t->text.len, &now);
    return files_id_is(expected, &now) ? 0 : -ESTALE;
}

/* A new name must not replace what came meanwhile; file systems without that rename get the old. */
static int put_new(const struct target *t, const char *temp)
{
    if (syscall(SYS_renameat2, t->at.dir, temp, t->at.dir, t->at.name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno == EEXIST ? -ESTALE : -errno;
    return renameat(t->at.dir, temp, t->at.dir, t->at.name) < 0 ? -errno : 0;
}

/* If `careful`, only the file that was read is replaced, and only as it was read. */
static int put(const struct target *t, const char *temp, int fresh, bool careful)
{
    int r;

    if (t->fd >= 0 && careful) {
        r = files_swap(t->at.dir, temp, t->at.name, &t->st, fresh);
        if (r == 0)
            (void)unlinkat(t->at.dir, temp, 0); /* the old one */
        return r;
    }
    r = t->fd < 0                                              ? put_new(t, temp)
        : renameat(t->at.dir, temp, t->at.dir, t->at.name) < 0 ? -errno
                                                               : 0;
    if (r < 0)
        (void)unlinkat(t->at.dir, temp, 0);
    return r;
}

static int publish(const struct files_root *root, struct target *t, const char *path,
                   const void *data, size_t len, bool careful, struct files_written *ret,
                   struct error *err)
{
    char temp[TEMP_NAME];
    bool owner = false;
    struct stat st;
    autoclose int fresh = files_stage(root, t->at.dir, data, len, t->fd, temp, &owner, err);
    int r;

    if (fresh < 0)
        return error_wrap(err, "write '%s'", SHOW(path));
    r = put(t, temp, fresh, careful);
    if (r == 0 && fstat(fresh, &st) < 0)
        r = -errno;
    if (r < 0)
        return files_place_error(err, r, "write", path);
    if (root->sync)
        (void)fsync(t->at.dir);
    files_made_done(&t->made);
    ret->created = t->fd < 0;
    ret->link_broken = t->fd >= 0 && t->st.st_nlink > 1;
    ret->owner_kept = owner;
    files_id_of(&st, data, len, &ret->id);
    return 0;
}

int files_write(const struct files_root *root, const char *path, const void *data, size_t len,
                unsigned flags, const struct files_id *expected, struct buf *diff,
                struct files_written *ret, struct error *err)
{
    autotarget t = {.at.dir = -1, .fd = -1};
    struct files_written done = {0};
    bool with_text = diff || expected;
    int r;

    if (len > LIMIT_FILES_WRITE)
        return error_set(err, ERR_TOO_LARGE, "write '%s': %zu bytes; at most %u at once",
                         SHOW(path), len, LIMIT_FILES_WRITE);
    r = target_find(root, path, flags, "write", with_text, &t, err);
    if (r < 0)
        return r;
    if (t.fd >= 0 && (flags & FILES_NEW))
        return files_place_error(err, -EEXIST, "write", path);
    r = check_expected(&t, expected);
    if (r < 0)
        return files_place_error(err, r, "write", path);
    r = publish(root, &t, path, data, len, expected != NULL, &done, err);
    if (r < 0)
        return r;
    if (diff)
        files_diff(t.text.len ? t.text.data : "", t.text.len, data, len, diff, &done.added,
                   &done.removed);
    *ret = done;
    return 0;
}

int files_edit(const struct files_root *root, const char *path, const struct files_edit *edits,
               size_t n, const struct files_id *expected, struct buf *diff,
               struct files_written *ret, struct error *err)
{
    autotarget t = {.at.dir = -1, .fd = -1};
    struct files_written done = {0};
    autobuf text = {0};
    int r = target_find(root, path, 0, "edit", true, &t, err);

    if (r < 0)
        return r;
    if (t.fd < 0)
        return files_place_error(err, -ENOENT, "edit", path);
    r = check_expected(&t, expected);
    if (r < 0)
        return files_place_error(err, r, "edit", path);
    r = files_edit_text(t.text.data, t.text.len, edits, n, &text, err);
    if (r < 0)
        return error_wrap(err, "edit '%s'", SHOW(path));
    r = publish(root, &t, path, text.data ? text.data : "", text.len, true, &done, err);
    if (r < 0)
        return r;
    files_diff(t.text.data, t.text.len, text.data ? text.data : "", text.len, diff, &done.added,
               &done.removed);
    *ret = done;
    return 0;
}
