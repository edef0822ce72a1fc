/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A patch on a workspace. First everything is looked at, computed and staged; nothing but
 * temporary files (and new folders) is made. Then moves are made, each of which can be taken back:
 *
 *     PUT    a staged file takes a free name              back: it is removed
 *     SWAP   a staged file changes places with the old    back: again
 *     TAKE   an old file goes to a temporary name         back: it returns
 *
 * SWAP and TAKE look at what they got: if it is not the file that was read, they take it back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "files/internal.h"
#include "files/patch.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

enum move {
    PUT,
    SWAP,
    TAKE_AWAY,
};

struct item {
    const struct patch_op *op;
    enum move move;
    const char *path;
    struct place at;
    int old;            /* the file that is there; -1 for PUT */
    struct stat old_st; /* ... as it was read */
    struct buf old_text, new_text;
    char temp[TEMP_NAME];
    int fresh; /* the staged file; -1 for TAKE */
    bool staged, done;
};

struct job {
    const struct files_root *root;
    const struct patch *p;
    unsigned flags;
    struct item items[2 * LIMIT_PATCH_FILES];
    size_t n;
    struct made made;
    struct error *err;
};

static void job_free(struct job *j)
{
    if (!j)
        return;
    for (size_t i = 0; i < j->n; i++) {
        struct item *it = &j->items[i];

        if (it->staged)
            (void)unlinkat(it->at.dir, it->temp, 0);
        close_fd(&it->old);
        close_fd(&it->fresh);
        files_place_done(&it->at);
        buf_done(&it->old_text);
        buf_done(&it->new_text);
    }
    files_made_done(&j->made);
    free(j);
}
DEFINE_AUTOPTR(job)

/* ---- looking ---- */

static struct item *item_new(struct job *j, const struct patch_op *op, enum move move,
                             const char *path)
{
    struct item *it = &j->items[j->n++];

    *it = (struct item){.op = op, .move = move, .path = path, .at.dir = -1, .old = -1, .fresh = -1};
    buf_init(&it->new_text, LIMIT_FILES_WRITE);
    return it;
}

/* Finds the place and what stands there; `it->old` stays -1 if there is nothing. */
static int look(struct job *j, struct item *it, bool create)
{
    unsigned how = create ? PLACE_PARENTS : 0;
    int r;

    /* A removed or moved link is itself removed or moved; content goes where links lead. */
    if (it->move != TAKE_AWAY)
        how |= PLACE_FOLLOW;
    r = files_place_find(j->root, it->path, how, "patch", &j->made, &it->at, j->err);
    if (r < 0)
        return r;
    r = files_open_file_at(it->at.dir, it->at.name, &it->old_st);
    if (r == -ENOENT)
        return 0;
    if (r == -ELOOP && it->move == TAKE_AWAY)
        return error_set(j->err, ERR_INVALID, "patch '%s': it is a link; name the file itself",
                         SHOW(it->path));
    if (r < 0)
        return files_place_error(j->err, r, "patch", it->path);
    it->old = r;
    return 0;
}

static bool same_place(const struct item *a, const struct item *b)
{
    struct stat x, y;

    return strcmp(a->at.name, b->at.name) == 0 && fstat(a->at.dir, &x) == 0 &&
           fstat(b->at.dir, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* An earlier item for the same name, whatever path led there. */
static struct item *earlier(struct job *j, const struct item *it)
{
    for (size_t i = 0; i < j->n; i++)
        if (&j->items[i] != it && j->items[i].at.dir >= 0 && same_place(&j->items[i], it))
            return &j->items[i];
    return NULL;
}

static int twice(struct job *j, const struct item *it)
{
    return error_set(j->err, ERR_INVALID, "patch '%s': it is named twice in the patch",
                     SHOW(it->path));
}

/* ---- computing ---- */

static int load(struct job *j, struct item *it)
{
    int r = it->old < 0 ? -ENOENT : files_content_read(it->old, it->old_st.st_size, &it->old_text);

    return r < 0 ? files_place_error(j->err, r, "patch", it->path) : 0;
}

static int plan_add(struct job *j, const struct patch_op *op)
{
    struct item *it = item_new(j, op, PUT, op->path);
    int r = look(j, it, true);

    if (r < 0)
        return r;
    if (earlier(j, it))
        return twice(j, it);
    if (it->old >= 0) {
        if (!(j->flags & PATCH_REPLACE))
            return error_set(j->err, ERR_EXISTS,
                             "patch '%s': Add File, but it is there; use Update File, or Delete "
                             "File first",
                             SHOW(op->path));
        it->move = SWAP;
        r = load(j, it);
    }
    return r < 0 ? r : patch_text(j->p, op, NULL, 0, &it->new_text, j->err);
}

static int plan_delete(struct job *j, const struct patch_op *op)
{
    struct item *it = item_new(j, op, TAKE_AWAY, op->path);
    int r = look(j, it, false);

    if (r < 0)
        return r;
    if (earlier(j, it))
        return twice(j, it);
    return it->old < 0 ? files_place_error(j->err, -ENOENT, "patch", op->path) : 0;
}

/* A second update of the same file goes on from the text that the first left. */
static int update_again(struct job *j, struct item *first, const struct patch_op *op)
{
    struct buf next;
    int r;

    if (first->move != SWAP || first->op->kind != PATCH_UPDATE || first->op->move_to || op->move_to)
        return twice(j, first);
    buf_init(&next, LIMIT_FILES_WRITE);
    r = patch_text(j->p, op, first->new_text.len ? first->new_text.data : "", first->new_text.len,
                   &next, j->err);
    if (r < 0) {
        buf_done(&next);
        return r;
    }
    buf_done(&first->new_text);
    first->new_text = next;
    return 0;
}

static int plan_move(struct job *j, const struct patch_op *op, struct item *from)
{
    struct item *to = item_new(j, op, PUT, op->move_to);
    int r = look(j, to, true);

    if (r < 0)
        return r;
    if (earlier(j, to))
        return twice(j, to);
    if (to->old >= 0) {
        if (!(j->flags & PATCH_REPLACE))
            return files_place_error(j->err, -EEXIST, "patch: move to", op->move_to);
        to->move = SWAP;
    }
    to->new_text = from->new_text;
    buf_init(&from->new_text, LIMIT_FILES_WRITE);
    return 0;
}

static int plan_update(struct job *j, const struct patch_op *op)
{
    struct item *it = item_new(j, op, op->move_to ? TAKE_AWAY : SWAP, op->path), *first;
    int r = look(j, it, false);

    if (r < 0)
        return r;
    first = earlier(j, it);
    if (first) {
        r = update_again(j, first, op);
        files_place_done(&it->at);
        return r;
    }
    r = load(j, it);
    if (r == 0)
        r = patch_text(j->p, op, it->old_text.data, it->old_text.len, &it->new_text, j->err);
    return r < 0 || !op->move_to ? r : plan_move(j, op, it);
}

static int plan(struct job *j)
{
    int r = 0;

    for (size_t i = 0; i < j->p->n_ops && r == 0; i++) {
        const struct patch_op *op = &j->p->ops[i];

        r = op->kind == PATCH_ADD      ? plan_add(j, op)
            : op->kind == PATCH_DELETE ? plan_delete(j, op)
                                       : plan_update(j, op);
    }
    return r;
}

/* The file whose owner and mode the new one takes: the one that moves, or the one it replaces. */
static int model_of(const struct job *j, size_t i)
{
    const struct item *it = &j->items[i];

    return it->op->move_to && i > 0 ? j->items[i - 1].old : it->old;
}

static int stage_all(struct job *j)
{
    for (size_t i = 0; i < j->n; i++) {
        struct item *it = &j->items[i];
        bool owner;

        if (it->at.dir < 0 || it->move == TAKE_AWAY)
            continue;
        it->fresh = files_stage(j->root, it->at.dir, it->new_text.len ? it->new_text.data : "",
                                it->new_text.len, model_of(j, i), it->temp, &owner, j->err);
        if (it->fresh < 0)
            return error_wrap(j->err, "patch '%s'", SHOW(it->path));
        it->staged = true;
    }
    return 0;
}

/* ---- moving ---- */

static int shift(const struct item *it, const char *from, const char *to, unsigned how)
{
    return syscall(SYS_renameat2, it->at.dir, from, it->at.dir, to, how) < 0 ? -errno : 0;
}

static void take_back(struct item *it)
{
    /* An old file that cannot go back is left where it is: better a stray than a loss. */
    if (it->move == SWAP) {
        (void)files_swap_back(it->at.dir, it->temp, it->at.name, it->fresh);
        it->staged = false;
    } else if (it->move == TAKE_AWAY) {
        (void)shift(it, it->temp, it->at.name, RENAME_NOREPLACE);
        it->staged = false;
    } else if (files_is_at(it->at.dir, it->at.name, it->fresh)) {
        (void)unlinkat(it->at.dir, it->at.name, 0);
    }
    it->done = false;
}

/* The name is gone; was it the file that was read? */
static int take_away(struct item *it)
{
    struct stat st;
    int r = files_temp_name(it->temp);

    if (r == 0)
        r = shift(it, it->at.name, it->temp, RENAME_NOREPLACE);
    if (r < 0)
        return r;
    it->done = it->staged = true;
    if (fstatat(it->at.dir, it->temp, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return files_stat_same(&st, &it->old_st) ? 0 : -ESTALE;
}

static int do_move(struct item *it)
{
    int r;

    if (it->move == TAKE_AWAY)
        return take_away(it);
    r = it->move == PUT ? shift(it, it->temp, it->at.name, RENAME_NOREPLACE)
                        : files_swap(it->at.dir, it->temp, it->at.name, &it->old_st, it->fresh);
    if (it->move == SWAP)
        it->staged = r == 0; /* then the old file is what has to be removed */
    else if (r == 0)
        it->staged = false;
    it->done = r == 0;
    return r;
}

static int move_all(struct job *j)
{
    for (size_t i = 0; i < j->n; i++) {
        int r = j->items[i].at.dir < 0 ? 0 : do_move(&j->items[i]);

        if (r == 0)
            continue;
        for (size_t k = i + 1; k-- > 0;)
            if (j->items[k].done)
                take_back(&j->items[k]);
        return files_place_error(j->err, r, "patch", j->items[i].path);
    }
    return 0;
}

/* ---- */

static void count(const struct job *j, struct buf *diff, struct patch_done *ret)
{
    *ret = (struct patch_done){0};
    for (size_t i = 0; i < j->p->n_ops; i++) {
        const struct patch_op *op = &j->p->ops[i];

        ret->added += op->kind == PATCH_ADD;
        ret->deleted += op->kind == PATCH_DELETE;
        ret->updated += op->kind == PATCH_UPDATE;
        ret->moved += op->move_to != NULL;
    }
    for (size_t i = 0; i < j->n && diff; i++) {
        const struct item *it = &j->items[i], *from = it->op->move_to && i ? it - 1 : it;
        uint64_t added, removed;

        if (it->at.dir < 0 || it->move == TAKE_AWAY)
            continue;
        buf_puts(diff, "--- ");
        files_name_escape(diff, from->path, strlen(from->path));
        buf_puts(diff, "\n+++ ");
        files_name_escape(diff, it->path, strlen(it->path));
        buf_puts(diff, "\n");
        files_diff(from->old_text.len ? from->old_text.data : "", from->old_text.len,
                   it->new_text.len ? it->new_text.data : "", it->new_text.len, diff, &added,
                   &removed);
    }
}

int patch_apply(const struct files_root *root, const struct patch *p, unsigned flags,
                struct buf *diff, struct patch_done *ret, struct error *err)
{
    autoptr(job) j = calloc(1, sizeof(*j));
    int r;

    if (!j)
        return error_sys(err, -ENOMEM, "patch");
    j->root = root;
    j->p = p;
    j->flags = flags;
    j->err = err;
    r = plan(j);
    if (r == 0)
        r = stage_all(j);
    if (r == 0)
        r = move_all(j);
    if (r < 0) {
        for (size_t i = 0; i < j->n; i++)
            if (j->items[i].staged)
                j->items[i].staged = unlinkat(j->items[i].at.dir, j->items[i].temp, 0) < 0;
        files_made_undo(&j->made);
        return r;
    }
    count(j, diff, ret);
    return 0;
}
