/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From paths to descriptors. Every lookup starts at the workspace (F1), so that ".." and links
 * count from there, and the kernel checks them while it walks.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"
#include "files/internal.h"

#define DIR_FLAGS  (O_RDONLY | O_DIRECTORY | O_NOCTTY | O_NONBLOCK)
#define FILE_FLAGS (O_RDONLY | O_NOCTTY | O_NONBLOCK) /* FIFOs and devices never hang */

void files_root_init(struct files_root *root, int fd, const char *mount)
{
    *root = (struct files_root){.fd = fd, .mount = mount, .file_mode = 0644, .dir_mode = 0755};
}

/* ---- paths as text ---- */

static int refuse(struct error *err, const char *path, const char *why)
{
    return error_set(err, ERR_INVALID, "path '%s': %s", SHOW(path), why);
}

/* Where the part below the workspace begins; NULL if the path is not below it. */
static const char *below_mount(const struct files_root *root, const char *path)
{
    size_t n = root->mount ? strlen(root->mount) : 0;

    if (path[0] != '/')
        return path;
    while (n > 1 && root->mount[n - 1] == '/')
        n--;
    if (n == 0 || strncmp(path, root->mount, n) != 0 || (path[n] && path[n] != '/'))
        return NULL;
    path += n;
    while (*path == '/')
        path++;
    return *path ? path : ".";
}

/* Joins the parts that mean something with single slashes. */
static void squeeze(const char *path, char ret[LIMIT_PATH])
{
    size_t n = 0;

    for (const char *p = path; *p;) {
        size_t part = strcspn(p, "/");

        if (part && !(part == 1 && p[0] == '.')) {
            if (n)
                ret[n++] = '/';
            memcpy(ret + n, p, part);
            n += part;
        }
        p += part;
        p += strspn(p, "/");
    }
    if (n == 0)
        ret[n++] = '.';
    ret[n] = 0;
}

int files_place_clean(const struct files_root *root, const char *path, bool folder,
                      char ret[LIMIT_PATH], struct error *err)
{
    const char *below;
    size_t n = strlen(path);

    if (n == 0)
        return error_set(err, ERR_INVALID, "path: it is empty; '.' is the workspace");
    if (n >= LIMIT_PATH)
        return error_set(err, ERR_INVALID, "path: it has %zu bytes; at most %u fit", n,
                         LIMIT_PATH - 1);
    if (strncmp(path, "file:", 5) == 0)
        return refuse(err, path, "it is a URL; give the path itself, relative to the workspace");
    if (path[0] == '~' && (path[1] == '/' || path[1] == 0))
        return refuse(err, path,
                      "there is no home folder here; if a folder '~' is meant, write './~'");
    below = below_mount(root, path);
    if (!below)
        return error_set(err, ERR_DENIED,
                         "path '%s': it is outside the workspace; give it relative to %s",
                         SHOW(path), root->mount ? root->mount : "the workspace");
    if (!folder && path[n - 1] == '/')
        return refuse(err, path, "it ends in '/', but a file is needed");
    squeeze(below, ret);
    return 0;
}

int files_place_error(struct error *err, int r, const char *verb, const char *path)
{
    static const struct {
        int sys;
        enum error_code code;
        const char *why;
    } known[] = {
        {ENOENT, ERR_NOT_FOUND, "no such file or folder in the workspace"},
        {EXDEV, ERR_DENIED, "it leads out of the workspace, by '..' or by a link"},
        {ELOOP, ERR_DENIED, "it meets a link that may not be followed, or too many of them"},
        {ENOTDIR, ERR_INVALID, "a part of it is not a folder"},
        {ENAMETOOLONG, ERR_INVALID, "a name in it is too long; at most 255 bytes fit"},
        {EISDIR, ERR_INVALID, "it is a folder, but a file is needed"},
        {ENXIO, ERR_INVALID, "it is a FIFO, socket or device, but a regular file is needed"},
        {EEXIST, ERR_EXISTS, "the name is taken"},
        {EFBIG, ERR_TOO_LARGE, "the file is larger than the 128 MiB that can be changed"},
        {ESTALE, ERR_EXISTS, "it has changed since it was read; read it again"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].sys == -r) {
            (void)error_set(err, known[i].code, "%s '%s': %s", verb, SHOW(path), known[i].why);
            err->sys = -r;
            return -(int)err->code;
        }
    return error_sys(err, r, "%s '%s'", verb, SHOW(path));
}

/* ---- descriptors ---- */

static int open_below(const struct files_root *root, const char *path, int flags)
{
    return path_open(root->fd, path, flags, 0, PATH_BENEATH);
}

/* Takes fd; F2: the descriptor says what it is. */
static int only_file(int fd, struct stat *ret)
{
    autoclose int taken = fd;

    if (fd < 0)
        return fd;
    if (fstat(fd, ret) < 0)
        return -errno;
    if (S_ISDIR(ret->st_mode))
        return -EISDIR;
    return S_ISREG(ret->st_mode) ? TAKE_FD(taken) : -ENXIO;
}

int files_open_file_at(int dir, const char *name, struct stat *ret)
{
    return only_file(path_open(dir, name, FILE_FLAGS, 0, PATH_BENEATH_NOLINKS), ret);
}

int files_open_dir_at(int dir, const char *name, bool stay)
{
    struct open_how how = {.flags = DIR_FLAGS | O_CLOEXEC | O_NOFOLLOW,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                      RESOLVE_NO_MAGICLINKS | (stay ? RESOLVE_NO_XDEV : 0)};

    for (int i = 0; i < 16; i++) {
        int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));

        if (fd >= 0)
            return fd;
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
    }
    return -EAGAIN;
}

int files_open_file(const struct files_root *root, const char *path, const char *verb,
                    struct stat *ret, struct error *err)
{
    char clean[LIMIT_PATH];
    int r = files_place_clean(root, path, false, clean, err);

    if (r < 0)
        return r;
    r = only_file(open_below(root, clean, FILE_FLAGS), ret);
    return r < 0 ? files_place_error(err, r, verb, path) : r;
}

int files_place_open_dir(const struct files_root *root, const char *path, const char *verb,
                         struct error *err)
{
    char clean[LIMIT_PATH];
    int r = files_place_clean(root, path, true, clean, err);

    if (r < 0)
        return r;
    r = open_below(root, clean, DIR_FLAGS);
    if (r == -ENOTDIR)
        return error_set(err, ERR_INVALID, "%s '%s': it is not a folder", verb, SHOW(path));
    return r < 0 ? files_place_error(err, r, verb, path) : r;
}

/* ---- folders ---- */

/*
 * The folder is born with the owner of the one it is in: to chown it afterwards would be to chown
 * whatever somebody put in its place meanwhile.
 */
int files_make_dir_at(const struct files_root *root, int dir, const char *name)
{
    struct stat st;
    int r;

    if (geteuid() != 0)
        return mkdirat(dir, name, root->dir_mode) < 0 ? -errno : 0;
    if (fstat(dir, &st) < 0)
        return -errno;
    (void)setfsgid(st.st_gid);
    (void)setfsuid(st.st_uid);
    r = mkdirat(dir, name, root->dir_mode) < 0 ? -errno : 0;
    (void)setfsuid(0);
    (void)setfsgid(getegid());
    return r;
}

void files_made_done(struct made *m)
{
    for (size_t i = 0; i < m->n; i++)
        files_place_done(&m->dirs[i]);
    free(m->dirs);
    *m = (struct made){0};
}

void files_made_undo(struct made *m)
{
    for (size_t i = m->n; i-- > 0;)
        (void)unlinkat(m->dirs[i].dir, m->dirs[i].name, AT_REMOVEDIR);
    files_made_done(m);
}

static int made_add(struct made *m, int dir, const char *name)
{
    struct place *more = m ? reallocarray(m->dirs, m->n + 1, sizeof(*more)) : NULL;

    if (!m)
        return 0;
    if (!more)
        return -ENOMEM;
    m->dirs = more;
    more[m->n].dir = fcntl(dir, F_DUPFD_CLOEXEC, 3);
    if (more[m->n].dir < 0)
        return -errno;
    (void)snprintf(more[m->n].name, NAME_SIZE, "%s", name);
    m->n++;
    return 0;
}

/* One more part of a path: opened, or made and opened. `upto` is the path so far. */
static int step_into(const struct files_root *root, int above, const char *upto, struct made *made)
{
    const char *slash = strrchr(upto, '/'), *name = slash ? slash + 1 : upto;
    int fd = open_below(root, upto, DIR_FLAGS), r;

    if (fd != -ENOENT)
        return fd;
    r = files_make_dir_at(root, above, name);
    if (r == 0)
        r = made_add(made, above, name);
    return r < 0 && r != -EEXIST ? r : open_below(root, upto, DIR_FLAGS);
}

/* Each part is looked up from the workspace again: what was made may have been swapped. */
static int open_parents(const struct files_root *root, const char *path, struct made *made)
{
    autoclose int above = open_below(root, ".", DIR_FLAGS);
    char upto[LIMIT_PATH];
    unsigned depth = 0;

    if (above < 0)
        return TAKE_FD(above);
    for (size_t i = 1;; i++) {
        int fd;

        if (path[i] && path[i] != '/')
            continue;
        if (++depth > LIMIT_FILES_DEPTH)
            return -ENAMETOOLONG;
        memcpy(upto, path, i);
        upto[i] = 0;
        fd = step_into(root, above, upto, made);
        if (fd < 0 || !path[i])
            return fd;
        close_fd(&above);
        above = fd;
    }
}

/* Splits "a/b/c" into its folder, which is opened, and its last name. -errno */
static int open_parent(const struct files_root *root, char *path, unsigned flags, struct made *made,
                       struct place *ret)
{
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path, *parent = slash ? path : ".";
    int fd;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return -EISDIR;
    if (strlen(name) >= NAME_SIZE)
        return -ENAMETOOLONG;
    (void)snprintf(ret->name, NAME_SIZE, "%s", name);
    if (slash)
        *slash = 0;
    fd = open_below(root, parent, DIR_FLAGS);
    if (fd == -ENOENT && slash && (flags & PLACE_PARENTS))
        fd = open_parents(root, parent, made);
    if (slash)
        *slash = '/';
    if (fd < 0)
        return fd;
    ret->dir = fd;
    return 0;
}

/* Puts what the link at the end of `path` says in its place: 1; 0 if there is no link. -errno */
static int follow(char path[LIMIT_PATH], const struct place *at)
{
    char link[LIMIT_PATH], joined[2 * LIMIT_PATH];
    ssize_t n = readlinkat(at->dir, at->name, link, sizeof(link));
    const char *slash = strrchr(path, '/');

    if (n < 0)
        return errno == EINVAL || errno == ENOENT ? 0 : -errno;
    if ((size_t)n >= sizeof(link))
        return -ENAMETOOLONG;
    link[n] = 0;
    if (link[0] == '/')
        return -EXDEV;
    if (n == 0 || link[n - 1] == '/')
        return -EISDIR;
    n = snprintf(joined, sizeof(joined), "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, link);
    if (n >= (ssize_t)LIMIT_PATH)
        return -ENAMETOOLONG;
    squeeze(joined, path);
    return 1;
}

/* -errno; path is changed to where it really goes. */
static int find(const struct files_root *root, char path[LIMIT_PATH], unsigned flags,
                struct made *made, struct place *ret)
{
    for (unsigned hops = 0; hops < LIMIT_FILES_LINKS; hops++) {
        autoplace here = {.dir = -1};
        int r = open_parent(root, path, flags, made, &here);

        if (r == 0 && (flags & PLACE_FOLLOW))
            r = follow(path, &here);
        if (r < 0)
            return r;
        if (r == 0) {
            *ret = here;
            here.dir = -1;
            return 0;
        }
    }
    return -ELOOP;
}

int files_place_find(const struct files_root *root, const char *path, unsigned flags,
                     const char *verb, struct made *made, struct place *ret, struct error *err)
{
    char clean[LIMIT_PATH];
    int r = files_place_clean(root, path, !(flags & PLACE_FOLLOW), clean, err);

    if (r < 0)
        return r;
    if (strcmp(clean, ".") == 0)
        return error_set(err, ERR_INVALID, "%s '%s': that is the workspace itself", verb,
                         SHOW(path));
    r = find(root, clean, flags, made, ret);
    return r < 0 ? files_place_error(err, r, verb, path) : 0;
}
