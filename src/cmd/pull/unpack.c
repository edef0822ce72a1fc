/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only writer into a root. Theory: what an archive says is never a path of ours. A name is
 * cleaned (no "..", not absolute), its folder is opened with the new root as "/" (so that links
 * of the image, absolute or not, stay in it), and its last part is made fresh, without following
 * anything, after what had the name was removed.
 *
 * U1: nothing outside the root is opened, made, changed or removed.
 * U2: no file that has a name in another root is ever opened for writing or gets another mode: a
 *     name is unlinked before it is made (roots share files as hard links, see clone.c).
 * U3: folders are always u+rwx, so that we can remove them.
 * U4: no set-id bit, no device, no security.* attribute gets in.
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
#include "base/path.h"
#include "base/tree.h"
#include "cmd/pull/pull.h"

#define WHITEOUT ".wh."
#define OPAQUE   WHITEOUT WHITEOUT ".opq"
#define MAX_ID   65535 /* what the id maps of boxes hold */
#define NOBODY   65534

int unpack_begin(struct unpacker *u, struct work *w, int root, const char *what, struct error *err)
{
    int r;

    *u = (struct unpacker){.work = w,
                           .root = root,
                           .what = what,
                           .parent = -1,
                           .whiteouts = true,
                           .own_ids = geteuid() == 0};
    r = path_of_fd(root, u->root_path, sizeof(u->root_path));
    return r < 0 ? error_sys(err, r, "look at the new root in '%s'", w->store.path) : 0;
}

static void forget_parent(struct unpacker *u)
{
    close_fd(&u->parent);
    u->parent_name[0] = 0;
}

void unpack_done(struct unpacker *u)
{
    forget_parent(u);
    seen_done(&u->seen);
    for (size_t i = 0; i < u->n_times; i++)
        free(u->times[i].path);
    free(u->times);
    u->times = NULL;
    u->n_times = 0;
}

static int refuse(const struct unpacker *u, const char *name, const char *why, struct error *err)
{
    return error_set(err, ERR_INVALID, "%s: entry '%.200s' %s; the image is refused", u->what, name,
                     why);
}

static int failed(const struct unpacker *u, int r, const char *doing, const char *name,
                  struct error *err)
{
    if (r == -ENOSPC || r == -EDQUOT || r == -EFBIG)
        return error_sys(err, r,
                         "%s: %s '%.150s' in '%.150s' (free space there, or set CLAWDEN_DATA_DIR)",
                         u->what, doing, name, u->work->store.path);
    if (r == -ENOTDIR || r == -ELOOP || r == -ENAMETOOLONG)
        return error_sys(err, r, "%s: %s '%.200s': the image is refused", u->what, doing, name);
    return error_sys(err, r, "%s: %s '%.200s'", u->what, doing, name);
}

/*
 * "./a//b/" becomes "a/b"; "" is the root itself. NULL if it is clean, else what is wrong with it.
 */
static const char *clean_name(const char *raw, char clean[LIMIT_PATH])
{
    size_t n = 0, depth = 0;

    if (raw[0] == '/')
        return "is absolute: names must be relative to the root";
    if (strlen(raw) >= LIMIT_PATH)
        return "has a name of more than 4095 bytes";
    while (*raw) {
        size_t len = strcspn(raw, "/");

        if (len == 2 && raw[0] == '.' && raw[1] == '.')
            return "has '..' in its name";
        if (len > 0 && !(len == 1 && raw[0] == '.')) {
            if (n)
                clean[n++] = '/';
            memcpy(clean + n, raw, len);
            n += len;
            depth++;
        }
        raw += len;
        while (*raw == '/')
            raw++;
    }
    clean[n] = 0;
    return depth > LIMIT_IMAGE_DEPTH ? "is deeper than 256 folders" : NULL;
}

/* ---- the folder of an entry ---- */

/*
 * Links can lead deeper than a name has parts: what counts is where the folder is. That it is below
 * the root the kernel has seen to; it is looked at once more because this is the place (U1).
 */
static int check_place(const struct unpacker *u, int fd, const char *name, struct error *err)
{
    char path[LIMIT_PATH];
    size_t depth = 0;
    int r = path_of_fd(fd, path, sizeof(path));

    if (r < 0)
        return failed(u, r, "find the folder of", name, err);
    if (!path_is_within(path, u->root_path))
        return refuse(u, name, "leads out of the image", err);
    for (const char *p = path + strlen(u->root_path); *p; p++)
        depth += *p == '/';
    if (depth > LIMIT_IMAGE_DEPTH)
        return refuse(u, name, "is deeper than 256 folders", err);
    return 0;
}

/* Opens one folder of the image, and makes it if it is not there. */
static int step_into(struct unpacker *u, const char *path, const char *name, struct error *err)
{
    int fd = path_open(u->root, path, O_PATH | O_DIRECTORY, 0, PATH_IN_ROOT);
    const char *slash = strrchr(path, '/');
    autoclose int above = -1;
    char folder[LIMIT_PATH];

    if (fd != -ENOENT)
        return fd < 0 ? failed(u, fd, "open the folder of", name, err) : fd;
    (void)snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1,
                   slash ? path : ".");
    above = path_open(u->root, folder, O_PATH | O_DIRECTORY, 0, PATH_IN_ROOT);
    if (above < 0)
        return failed(u, above, "open the folder of", name, err);
    if (check_place(u, above, name, err) < 0)
        return -(int)err->code;
    if (mkdirat(above, slash ? slash + 1 : path, 0755) < 0)
        return errno == EEXIST ? refuse(u, name,
                                        "goes through a link that leads nowhere in the "
                                        "image",
                                        err)
                               : failed(u, -errno, "make the folder of", name, err);
    fd = path_open(u->root, path, O_PATH | O_DIRECTORY, 0, PATH_IN_ROOT);
    return fd < 0 ? failed(u, fd, "open the folder of", name, err) : fd;
}

/* Every part of the path in turn; `path` is a clean name, "" for the root. */
static int make_folders(struct unpacker *u, const char *path, const char *name, struct error *err)
{
    char part[LIMIT_PATH];
    int fd = -1;

    for (size_t i = 1; path[0]; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        close_fd(&fd);
        fd = step_into(u, part, name, err);
        if (fd < 0 || path[i] == 0)
            return fd;
    }
    return -EINVAL;
}

/* -ENOENT without an error if it is not there and must not be made. */
static int open_folder(struct unpacker *u, const char *path, const char *name, bool make,
                       struct error *err)
{
    autoclose int fd = -1;
    int r;

    r = path_open(u->root, path[0] ? path : ".", O_PATH | O_DIRECTORY, 0, PATH_IN_ROOT);
    if (r == -ENOENT && make)
        r = make_folders(u, path, name, err);
    else if (r == -ENOENT)
        return r;
    else if (r < 0)
        return failed(u, r, "open the folder of", name, err);
    if (r < 0)
        return r;
    fd = r;
    r = check_place(u, fd, name, err);
    return r < 0 ? r : TAKE_FD(fd);
}

/*
 * The folder that `clean` stands in becomes u->parent; *ret_base is its last part. Archives are
 * mostly in order, so the folder of the entry before is kept open.
 */
static int enter_parent(struct unpacker *u, const char *clean, bool make, const char **ret_base,
                        struct error *err)
{
    const char *slash = strrchr(clean, '/');
    size_t n = slash ? (size_t)(slash - clean) : 0;
    char folder[LIMIT_PATH];
    struct stat st;
    int fd;

    *ret_base = slash ? slash + 1 : clean;
    if (u->parent >= 0 && strlen(u->parent_name) == n && strncmp(u->parent_name, clean, n) == 0)
        return 0;
    forget_parent(u);
    memcpy(folder, clean, n);
    folder[n] = 0;
    fd = open_folder(u, folder, clean, make, err);
    if (fd < 0)
        return fd;
    u->parent = fd;
    if (fstat(fd, &st) < 0)
        return failed(u, -errno, "look at the folder of", clean, err);
    u->parent_ino = st.st_ino;
    memcpy(u->parent_name, folder, n + 1);
    return 0;
}

/* ---- what was there ---- */

static uint64_t name_key(uint64_t folder_ino, const char *name)
{
    uint64_t h = 0xcbf29ce484222325u ^ (folder_ino * 0x9e3779b97f4a7c15u);

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}

/* Takes away what has the name, but a folder if a folder is wanted: then *ret_folder is true. */
static int clear_name(struct unpacker *u, const char *base, const char *clean, bool want_folder,
                      bool *ret_folder, struct error *err)
{
    struct stat st;
    int r;

    *ret_folder = false;
    if (fstatat(u->parent, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : failed(u, -errno, "look at", clean, err);
    if (want_folder && S_ISDIR(st.st_mode)) {
        *ret_folder = true;
        return 0;
    }
    r = tree_remove(u->parent, base);
    if (r < 0)
        return failed(u, r, "replace", clean, err);
    return 0;
}

/* ---- whiteouts ---- */

static int remove_lower(struct unpacker *u, int dirfd, uint64_t ino, const char *name);

/* Removes what lower layers left in an open folder; it stays itself. */
static int remove_lower_in(struct unpacker *u, int fd)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *d = again < 0 ? NULL : fdopendir(again);
    const struct dirent *e;
    struct stat st;

    if (!d || fstat(fd, &st) < 0) {
        r = -errno;
        if (d)
            (void)closedir(d);
        else
            close_fd(&again);
        return r;
    }
    while (r >= 0 && (e = readdir(d)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            r = remove_lower(u, fd, st.st_ino, e->d_name);
    (void)closedir(d);
    return r;
}

/* The same for one name. What this layer itself has brought stays, in whatever order it came. */
static int remove_lower(struct unpacker *u, int dirfd, uint64_t ino, const char *name)
{
    bool ours = seen_has(&u->seen, name_key(ino, name));
    autoclose int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int r;

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 && errno != ENOTDIR && errno != ELOOP)
        return -errno;
    if (fd < 0)
        return ours || unlinkat(dirfd, name, 0) == 0 ? 0 : -errno;
    r = remove_lower_in(u, fd);
    if (r < 0 || ours)
        return r;
    return unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY && errno != EEXIST ? -errno
                                                                                            : 0;
}

/* `hidden` is what stands behind .wh. in the last part of the name. */
static int apply_whiteout(struct unpacker *u, const char *clean, const char *hidden,
                          struct error *err)
{
    const char *base;
    int r;

    if (hidden[0] == 0 || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
        return refuse(u, clean, "is a whiteout of nothing", err);
    r = enter_parent(u, clean, false, &base, err);
    if (r == -ENOENT)
        return 0; /* no such folder below: nothing to take away */
    if (r < 0)
        return r;
    if (strcmp(base, OPAQUE) == 0)
        r = remove_lower_in(u, u->parent);
    else if (strncmp(hidden, WHITEOUT, strlen(WHITEOUT)) == 0)
        return 0; /* bookkeeping of an old union file system */
    else
        r = remove_lower(u, u->parent, u->parent_ino, hidden);
    forget_parent(u);
    return r < 0 ? failed(u, r, "apply the whiteout", clean, err) : 0;
}

/* Is a part of the name but the last a whiteout? Such a folder cannot be. */
static bool below_whiteout(const char *clean)
{
    for (const char *p = clean, *slash; (slash = strchr(p, '/')); p = slash + 1)
        if (strncmp(p, WHITEOUT, strlen(WHITEOUT)) == 0)
            return true;
    return false;
}

/* ---- one entry ---- */

/* Ownership is kept only by root, and only for ids that a box can have. */
static void owner_of(struct unpacker *u, const struct entry *e, uid_t *ret_uid, gid_t *ret_gid)
{
    bool good = e->uid >= 0 && e->uid <= MAX_ID && e->gid >= 0 && e->gid <= MAX_ID;

    *ret_uid = e->uid >= 0 && e->uid <= MAX_ID ? (uid_t)e->uid : NOBODY;
    *ret_gid = e->gid >= 0 && e->gid <= MAX_ID ? (gid_t)e->gid : NOBODY;
    if (!good)
        u->work->dropped.owners++;
}

static unsigned mode_of(struct unpacker *u, const struct entry *e)
{
    if (e->mode & (S_ISUID | S_ISGID))
        u->work->dropped.set_ids++;
    return (e->mode & 01777) | (e->type == ENTRY_FOLDER ? 0700u : 0u); /* U3, U4 */
}

static void set_times(int fd, const struct entry *e)
{
    struct timespec t[2] = {{.tv_nsec = UTIME_OMIT},
                            {.tv_sec = (time_t)e->mtime_sec, .tv_nsec = e->mtime_nsec}};

    if (e->mtime_nsec >= 0 && e->mtime_nsec < 1000000000)
        (void)futimens(fd, t);
}

static int remember_time(struct unpacker *u, const char *clean, const struct entry *e)
{
    if (u->n_times == u->cap_times) {
        size_t cap = u->cap_times ? 2 * u->cap_times : 256;
        void *p = realloc(u->times, cap * sizeof(*u->times));

        if (!p)
            return -ENOMEM;
        u->times = p;
        u->cap_times = cap;
    }
    u->times[u->n_times] =
        (struct folder_time){.path = strdup(clean), .sec = e->mtime_sec, .nsec = e->mtime_nsec};
    return u->times[u->n_times++].path ? 0 : -ENOMEM;
}

static int put_folder(struct unpacker *u, const struct entry *e, const char *base,
                      const char *clean, bool there, struct error *err)
{
    autoclose int fd = -1;
    uid_t uid;
    gid_t gid;

    if (!there && mkdirat(u->parent, base, 0700) < 0)
        return failed(u, -errno, "make folder", clean, err);
    fd = openat(u->parent, base, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return failed(u, -errno, "open folder", clean, err);
    owner_of(u, e, &uid, &gid);
    if ((u->own_ids && fchown(fd, uid, gid) < 0) || fchmod(fd, mode_of(u, e)) < 0)
        return failed(u, -errno, "set the mode of folder", clean, err);
    return remember_time(u, clean, e) < 0 ? failed(u, -ENOMEM, "remember folder", clean, err) : 0;
}

static int put_symlink(struct unpacker *u, const struct entry *e, const char *base,
                       const char *clean, struct error *err)
{
    struct timespec t[2] = {{.tv_nsec = UTIME_OMIT},
                            {.tv_sec = (time_t)e->mtime_sec, .tv_nsec = e->mtime_nsec}};
    uid_t uid;
    gid_t gid;

    if (!e->target || !e->target[0] || strlen(e->target) >= LIMIT_PATH)
        return refuse(u, clean, "is a link without a target, or with one that is too long", err);
    if (symlinkat(e->target, u->parent, base) < 0)
        return failed(u, -errno, "make link", clean, err);
    owner_of(u, e, &uid, &gid);
    if (u->own_ids && fchownat(u->parent, base, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
        return failed(u, -errno, "set the owner of", clean, err);
    if (e->mtime_nsec >= 0 && e->mtime_nsec < 1000000000)
        (void)utimensat(u->parent, base, t, AT_SYMLINK_NOFOLLOW);
    return 0;
}

/*
 * The target is looked up before the name is cleared, in the same root, and must be a file: a hard
 * link to a symbolic link would be followed by some and not by others.
 */
static int put_hard_link(struct unpacker *u, const struct entry *e, const char *base,
                         const char *clean, struct error *err)
{
    char target[LIMIT_PATH], folder[LIMIT_PATH];
    const char *bad = e->target ? clean_name(e->target, target) : "has no target", *slash;
    autoclose int dir = -1;
    struct stat st, here;
    bool there;

    if (bad || !target[0])
        return refuse(u, clean, "is a hard link to what is no name in the image", err);
    slash = strrchr(target, '/');
    (void)snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - target) : 0, target);
    dir = open_folder(u, folder, clean, false, err);
    if (dir == -ENOENT ||
        (dir >= 0 && fstatat(dir, slash ? slash + 1 : target, &st, AT_SYMLINK_NOFOLLOW) < 0))
        return refuse(u, clean, "is a hard link to what is not in the image (yet)", err);
    if (dir < 0)
        return dir;
    if (!S_ISREG(st.st_mode))
        return refuse(u, clean, "is a hard link to what is no file", err);
    if (fstat(dir, &here) == 0 && here.st_ino == u->parent_ino &&
        strcmp(slash ? slash + 1 : target, base) == 0)
        return refuse(u, clean, "is a hard link to itself", err);
    if (clear_name(u, base, clean, false, &there, err) < 0)
        return -(int)err->code;
    if (linkat(dir, slash ? slash + 1 : target, u->parent, base, 0) < 0)
        return failed(u, -errno, "make hard link", clean, err);
    return 0;
}

static int put_file(struct unpacker *u, const struct entry *e, const char *base, const char *clean,
                    int *ret_fd, struct error *err)
{
    int fd;

    if (e->size > u->work->o->max_bytes - u->work->bytes)
        return error_set(err, ERR_TOO_LARGE,
                         "%s: with '%.150s' (%llu bytes) the image unpacks more than %llu bytes: "
                         "refused, --max-size says how much is taken",
                         u->what, clean, (unsigned long long)e->size,
                         (unsigned long long)u->work->o->max_bytes);
    u->work->bytes += e->size;
    fd = openat(u->parent, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return failed(u, -errno, "make file", clean, err);
    *ret_fd = fd;
    return 0;
}

static int put(struct unpacker *u, const struct entry *e, const char *base, const char *clean,
               int *ret_fd, struct error *err)
{
    bool there = false;
    int r = e->type == ENTRY_HARD_LINK /* clears the name itself, when the target is known */
                ? 0
                : clear_name(u, base, clean, e->type == ENTRY_FOLDER, &there, err);

    if (r < 0)
        return r;
    switch (e->type) {
    case ENTRY_FILE:
        return put_file(u, e, base, clean, ret_fd, err);
    case ENTRY_FOLDER:
        return put_folder(u, e, base, clean, there, err);
    case ENTRY_SYMLINK:
        return put_symlink(u, e, base, clean, err);
    case ENTRY_HARD_LINK:
        return put_hard_link(u, e, base, clean, err);
    case ENTRY_SPECIAL:
        u->work->dropped.specials++;
        return 0;
    }
    return -EINVAL;
}

/* The root's own entry: only its mode matters. */
static int put_root(struct unpacker *u, const struct entry *e, struct error *err)
{
    if (e->type != ENTRY_FOLDER)
        return refuse(u, e->name, "has no name", err);
    return fchmod(u->root, mode_of(u, e)) < 0 ? failed(u, -errno, "set the mode of", "/", err) : 0;
}

int unpack_entry(struct unpacker *u, const struct entry *e, int *ret_fd, struct error *err)
{
    char clean[LIMIT_PATH];
    const char *bad = clean_name(e->name, clean), *base;
    int r;

    *ret_fd = -1;
    if (bad)
        return refuse(u, e->name, bad, err);
    if (++u->work->entries > u->work->o->max_entries)
        return error_set(err, ERR_TOO_LARGE,
                         "%s: the image has more than %llu entries: refused, --max-entries says "
                         "how many are taken",
                         u->what, (unsigned long long)u->work->o->max_entries);
    if (!clean[0])
        return put_root(u, e, err);
    base = strrchr(clean, '/') ? strrchr(clean, '/') + 1 : clean;
    if (u->whiteouts && below_whiteout(clean))
        return refuse(u, clean, "stands below a whiteout", err);
    if (u->whiteouts && strncmp(base, WHITEOUT, strlen(WHITEOUT)) == 0)
        return apply_whiteout(u, clean, base + strlen(WHITEOUT), err);
    r = enter_parent(u, clean, true, &base, err);
    if (r < 0)
        return r;
    r = put(u, e, base, clean, ret_fd, err);
    if (r < 0)
        return r;
    if (seen_add(&u->seen, name_key(u->parent_ino, base)) < 0)
        return failed(u, -ENOMEM, "remember", clean, err);
    /* What was just made may have replaced a folder or link on the way to the next entry. */
    if (e->type != ENTRY_FILE)
        forget_parent(u);
    return 0;
}

int unpack_write(struct unpacker *u, const struct entry *e, int fd, const void *data, size_t len,
                 uint64_t offset, struct error *err)
{
    int r = check_interrupt(err);

    if (r < 0)
        return r;
    if (offset > e->size || len > e->size - offset)
        return refuse(u, e->name, "has more bytes than it says", err);
    while (len) {
        ssize_t n = pwrite(fd, data, len, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(u, -errno, "write file", e->name, err);
        data = (const char *)data + n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

int unpack_file_end(struct unpacker *u, const struct entry *e, int fd, struct error *err)
{
    struct stat st;
    uid_t uid;
    gid_t gid;

    if (fstat(fd, &st) < 0)
        return failed(u, -errno, "look at file", e->name, err);
    if ((uint64_t)st.st_size != e->size && ftruncate(fd, (off_t)e->size) < 0) /* ends in a hole */
        return failed(u, -errno, "write file", e->name, err);
    owner_of(u, e, &uid, &gid);
    if ((u->own_ids && fchown(fd, uid, gid) < 0) || fchmod(fd, mode_of(u, e)) < 0)
        return failed(u, -errno, "set the mode of file", e->name, err);
    set_times(fd, e);
    return 0;
}

void unpack_end(struct unpacker *u)
{
    for (size_t i = u->n_times; i-- > 0;) {
        const struct folder_time *t = &u->times[i];
        const struct entry e = {.mtime_sec = t->sec, .mtime_nsec = t->nsec};
        autoclose int fd =
            path_open(u->root, t->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, PATH_IN_ROOT);

        if (fd >= 0) /* else a later entry took it away */
            set_times(fd, &e);
    }
}
