/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A root from a folder on this machine, through the same writer as archives. Names are taken in
 * order, so that equal folders have equal identities. Other file systems below the folder (/proc
 * of a live one) are left as empty folders.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cmd/pull/pull.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

#define BUCKETS 4096

struct linked { /* a file with several names */
    uint64_t ino;
    char *name;
    size_t next; /* in its bucket: an index + 1 */
};

struct copy {
    struct work *work;
    struct unpacker u;
    struct sha256 hash;
    dev_t device;
    struct stat store; /* ours: not copied into itself */
    struct linked *linked;
    size_t n_linked;
    size_t buckets[BUCKETS];
    unsigned depth;
};

static void copy_done(struct copy *c)
{
    unpack_done(&c->u);
    for (size_t i = 0; i < c->n_linked; i++)
        free(c->linked[i].name);
    free(c->linked);
}

static void hash_entry(struct copy *c, const struct entry *e)
{
    char text[160];
    int n =
        snprintf(text, sizeof(text), "%d %o %lld %lld %lld %ld %llu %zu %zu\n", (int)e->type,
                 e->mode & 07777u, c->u.own_ids ? (long long)e->uid : 0,
                 c->u.own_ids ? (long long)e->gid : 0, (long long)e->mtime_sec, e->mtime_nsec,
                 (unsigned long long)e->size, strlen(e->name), e->target ? strlen(e->target) : 0);

    sha256_update(&c->hash, text, (size_t)n);
    sha256_update(&c->hash, e->name, strlen(e->name));
    if (e->target)
        sha256_update(&c->hash, e->target, strlen(e->target));
}

/* The name under which this file was copied before, or NULL; then this one is remembered. */
static const char *earlier_name(struct copy *c, uint64_t ino, const char *name)
{
    size_t *bucket = &c->buckets[ino % BUCKETS];
    struct linked *p;

    for (size_t i = *bucket; i; i = c->linked[i - 1].next)
        if (c->linked[i - 1].ino == ino)
            return c->linked[i - 1].name;
    p = realloc(c->linked, (c->n_linked + 1) * sizeof(*p));
    if (!p)
        return NULL; /* it becomes a copy */
    c->linked = p;
    p[c->n_linked] = (struct linked){.ino = ino, .name = strdup(name), .next = *bucket};
    if (p[c->n_linked].name)
        *bucket = ++c->n_linked;
    return NULL;
}

static int copy_data(struct copy *c, const struct entry *e, int in, int out, struct error *err)
{
    char chunk[LIMIT_STREAM_CHUNK];
    uint64_t at = 0;
    ssize_t n;

    while ((n = fd_read_full(in, chunk, sizeof(chunk))) > 0) {
        int r = unpack_write(&c->u, e, out, chunk, (size_t)n, at, err);

        if (r < 0)
            return r;
        sha256_update(&c->hash, chunk, (size_t)n);
        at += (uint64_t)n;
    }
    if (n < 0)
        return error_sys(err, (int)n, "read '%.300s'", e->name);
    if (at != e->size)
        return error_set(err, ERR_INVALID, "'%.300s' changed while it was copied: try again",
                         e->name);
    return 0;
}

static int copy_file(struct copy *c, int dir, const char *base, struct entry *e, struct error *err)
{
    autoclose int in = openat(dir, base, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), out = -1;
    int r;

    if (in < 0)
        return error_sys(err, -errno,
                         "read '%.300s' of the folder (make it readable, or remove it "
                         "there)",
                         e->name);
    r = unpack_entry(&c->u, e, &out, err);
    if (r >= 0)
        r = copy_data(c, e, in, out, err);
    return r < 0 ? r : unpack_file_end(&c->u, e, out, err);
}

static int copy_below(struct copy *c, int dir, const char *path, struct error *err);

static int copy_sub(struct copy *c, int dir, const char *base, struct entry *e,
                    const struct stat *st, struct error *err)
{
    autoclose int sub = -1;
    int none, r = unpack_entry(&c->u, e, &none, err);

    if (r < 0)
        return r;
    if (st->st_dev != c->device) {
        c->work->dropped.mounts++;
        return 0;
    }
    if (st->st_dev == c->store.st_dev && st->st_ino == c->store.st_ino)
        return 0;
    sub = openat(dir, base, FOLDER);
    if (sub < 0)
        return error_sys(err, -errno,
                         "open '%.300s' of the folder (make it readable, or remove it "
                         "there)",
                         e->name);
    return copy_below(c, sub, e->name, err);
}

static int copy_link(struct copy *c, int dir, const char *base, struct entry *e, struct error *err)
{
    char target[LIMIT_PATH];
    ssize_t n = readlinkat(dir, base, target, sizeof(target) - 1);
    int none;

    if (n < 0)
        return error_sys(err, -errno, "read link '%.300s'", e->name);
    target[n] = 0;
    e->target = target;
    hash_entry(c, e);
    return unpack_entry(&c->u, e, &none, err);
}

static int copy_one(struct copy *c, int dir, const char *base, const char *name, struct error *err)
{
    struct entry e = {.name = name};
    struct stat st;
    int none;

    if (fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(err, -errno, "look at '%.300s' of the folder", name);
    e.mode = st.st_mode & 07777;
    e.uid = st.st_uid;
    e.gid = st.st_gid;
    e.mtime_sec = st.st_mtim.tv_sec;
    e.mtime_nsec = st.st_mtim.tv_nsec;
    if (S_ISLNK(st.st_mode)) {
        e.type = ENTRY_SYMLINK;
        return copy_link(c, dir, base, &e, err);
    }
    if (S_ISREG(st.st_mode)) {
        e.type = ENTRY_FILE;
        e.size = (uint64_t)st.st_size;
        e.target = st.st_nlink > 1 ? earlier_name(c, st.st_ino, name) : NULL;
        if (e.target)
            e.type = ENTRY_HARD_LINK;
    } else {
        e.type = S_ISDIR(st.st_mode) ? ENTRY_FOLDER : ENTRY_SPECIAL;
    }
    hash_entry(c, &e);
    if (e.type == ENTRY_FILE)
        return copy_file(c, dir, base, &e, err);
    if (e.type == ENTRY_FOLDER)
        return copy_sub(c, dir, base, &e, &st, err);
    return unpack_entry(&c->u, &e, &none, err);
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int not_dots(const struct dirent *e)
{
    return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static int copy_below(struct copy *c, int dir, const char *path, struct error *err)
{
    struct dirent **names;
    int n = scandirat(dir, ".", &names, not_dots, by_bytes), r = 0;

    if (n < 0)
        return error_sys(err, -errno, "list '%.300s' of the folder", path);
    if (++c->depth > LIMIT_IMAGE_DEPTH)
        r = error_set(err, ERR_TOO_LARGE, "'%.300s' is deeper than %u folders: refused", path,
                      LIMIT_IMAGE_DEPTH);
    for (int i = 0; i < n; i++) {
        char name[LIMIT_PATH];

        if (r >= 0 && (size_t)snprintf(name, sizeof(name), "%s%s%s", path, path[0] ? "/" : "",
                                       names[i]->d_name) >= sizeof(name))
            r = error_set(err, ERR_TOO_LARGE, "'%.300s' has too long a path: refused", path);
        if (r >= 0)
            r = copy_one(c, dir, names[i]->d_name, name, err);
        free(names[i]);
    }
    free(names);
    c->depth--;
    return r;
}

int copy_folder(struct work *w, int from, int root, char ret_hex[DIGEST_HEX], struct error *err)
{
    cleanup_(copy_done) struct copy c = {.work = w, .u = {.parent = -1}};
    struct stat st;
    int r = unpack_begin(&c.u, w, root, "the folder", err);

    if (r < 0)
        return r;
    if (fstat(from, &st) < 0 || fstat(w->store.fd, &c.store) < 0)
        return error_sys(err, -errno, "look at the folder");
    c.u.whiteouts = false;
    c.device = st.st_dev;
    sha256_init(&c.hash);
    r = copy_below(&c, from, "", err);
    if (r < 0)
        return r;
    unpack_end(&c.u);
    sha256_finish_hex(&c.hash, ret_hex);
    return 0;
}
