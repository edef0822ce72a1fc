/* SPDX-License-Identifier: Apache-2.0 */
/* What has changed since a moment, as far as the kernel's own times tell. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "files/internal.h"

struct since {
    int64_t ns;
    struct files_list *list;
};

/* A folder that was not there before; one whose file system does not say so, was. */
static bool is_made(int dir, const char *name, int64_t since_ns)
{
    struct statx x;

    return statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BTIME, &x) == 0 &&
           (x.stx_mask & STATX_BTIME) &&
           x.stx_btime.tv_sec * 1000000000ll + x.stx_btime.tv_nsec >= since_ns;
}

static int on_visited(struct walk *w, int dir, const char *name, unsigned char dt,
                      struct error *err)
{
    const struct since *s = w->arg;
    size_t before = s->list->n;
    struct stat st;
    int r;

    (void)dt;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return 0; /* gone meanwhile: its folder has changed */
    if (files_nanoseconds(st.st_ctim) < s->ns)
        return 0;
    r = files_list_add(w, s->list, &st, w->path.data, S_ISDIR(st.st_mode) ? "/" : "", err);
    if (s->list->n > before && S_ISDIR(st.st_mode))
        s->list->entries[before].made = is_made(dir, name, s->ns);
    return r;
}

/* ---- folders that something in them explains ---- */

/* Is `path` a name directly in the folder whose name, with its '/', has `len` bytes? */
static bool is_in(const char *folder, size_t len, const char *path)
{
    const char *slash;

    if (strncmp(folder, path, len) != 0 || !path[len])
        return false;
    slash = strchr(path + len, '/');
    return !slash || !slash[1];
}

enum { LEFT_OUT = 0 }; /* the kind of an entry that does not stay */

/* By one of entries[from..]: that stays, or is a new folder, for which something in it stands. */
static bool is_explained(const struct files_list *list, size_t from, const char *folder)
{
    for (size_t i = from; i < list->n; i++) {
        const struct files_entry *e = &list->entries[i];

        if ((e->kind != LEFT_OUT || e->made) &&
            is_in(folder, strlen(folder), files_list_name(list, i)))
            return true;
    }
    return false;
}

/* What is in a folder sorts behind it, and is decided first. */
static void leave_out_explained(struct files_list *list)
{
    for (size_t i = list->n; i-- > 0;)
        if (list->entries[i].kind == 'd' && is_explained(list, i + 1, files_list_name(list, i)))
            list->entries[i].kind = LEFT_OUT;
}

static void close_gaps(struct files_list *list)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++)
        if (list->entries[i].kind != LEFT_OUT)
            list->entries[n++] = list->entries[i];
    list->n = n;
}

static int by_name(const void *a, const void *b, void *text)
{
    const struct files_entry *x = a, *y = b;

    return strcmp((const char *)text + x->name, (const char *)text + y->name);
}

static void sort(struct files_list *list)
{
    if (list->n)
        qsort_r(list->entries, list->n, sizeof(*list->entries), by_name, list->text.data);
}

int files_changed(const struct files_root *root, int64_t since_ns, const struct files_walk *how,
                  struct files_list *ret, struct error *err)
{
    struct since s = {.ns = since_ns, .list = ret};
    struct walk w = {.recursive = true, .on_entry = on_visited, .arg = &s};
    bool root_changed;
    struct stat st;
    int r;

    *ret = (struct files_list){0};
    buf_init(&ret->text, LIMIT_FILES_OUT);
    if (fstat(root->fd, &st) < 0)
        return error_sys(err, -errno, "look at the workspace");
    r = files_list_collect(root, ".", "look at", &w, how, ret, err);
    if (r < 0)
        return r;
    sort(ret);
    leave_out_explained(ret);
    root_changed = files_nanoseconds(st.st_ctim) >= since_ns && !is_explained(ret, 0, "");
    close_gaps(ret);
    if (root_changed) {
        r = files_list_add(&w, ret, &st, ".", "/", err);
        ret->stop = w.stop;
        sort(ret);
    }
    if (r < 0)
        files_list_done(ret);
    return r;
}
