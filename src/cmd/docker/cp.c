/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and folders between the host and a box. Both ends are descriptors: a path of the
 * box is looked up once beneath its root, with its links resolved inside; from there on no link is
 * followed on either side. Links are copied as links, set-id bits never.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/path.h"
#include "cmd/docker/docker.h"
#include "cmd/docker/flags.h"
#include "sandbox/sandbox.h"

/* One end: `name` in the folder `dir`. */
struct side {
    const struct side *source; /* of the target: where it comes from */
    const char *box;           /* what the box was called, or NULL: the host */
    const char *path;          /* as it was given */
    int root;                  /* of the box, or -1: the host */
    int dir;
    char name[LIMIT_PATH];
    bool contents; /* of the source: what is in the folder, not the folder */
    bool is_dir;   /* of the source */
    bool follow;   /* of the source: -L, a link means what it leads to */
    /* Who makes files in a box that root started: its own user, whose ids the kernel can map. */
    bool as_user;
    uid_t uid;
    gid_t gid;
};

static void side_done(struct side *s)
{
    close_fd(&s->root);
    close_fd(&s->dir);
}

/* ---- who we are while something is opened or made ---- */

static void become(const struct side *to)
{
    if (!to || !to->as_user)
        return;
    (void)setfsgid(to->gid);
    (void)setfsuid(to->uid);
}

static void become_self(const struct side *to)
{
    if (!to || !to->as_user)
        return;
    (void)setfsuid(geteuid());
    (void)setfsgid(getegid());
}

/* The host's number of an id of the box, from its map. */
static bool map_id(pid_t pid, const char *file, unsigned id, unsigned *ret)
{
    char path[64], text[4096];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
    if (fd_read_value(AT_FDCWD, path, text, sizeof(text)) <= 0)
        return false;
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        unsigned inside, outside, count;

        if (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 && id >= inside &&
            id - inside < count) {
            *ret = outside + (id - inside);
            return true;
        }
    }
    return false;
}

/* ---- copying ---- */

static int copy_at(int from, const char *name, const struct side *to, int to_dir,
                   const char *to_name, unsigned depth, struct error *err);

static int copy_bytes(int from, int to)
{
    static char block[LIMIT_STREAM_CHUNK];

    for (;;) {
        ssize_t n = fd_read_full(from, block, sizeof(block));
        int r = n < 0 ? (int)n : fd_write_full(to, block, (size_t)n);

        if (r < 0 || n < (ssize_t)sizeof(block))
            return r;
    }
}

static int copy_file(int from, const struct stat *st, const struct side *to, int to_dir,
                     const char *to_name, struct error *err)
{
    autoclose int fd = -1;
    struct stat made;
    int r;

    become(to);
    fd = openat(to_dir, to_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                0600);
    r = fd < 0 ? -errno : 0;
    become_self(to);
    if (r < 0)
        return error_sys(err, r, "make '%s'", to_name);
    if (fstat(fd, &made) < 0 || !S_ISREG(made.st_mode))
        return error_set(err, ERR_DENIED, "'%s' is there and not a file", to_name);
    r = copy_bytes(from, fd);
    if (r >= 0 && fchmod(fd, st->st_mode & 0777) < 0)
        r = -errno;
    return r < 0 ? error_sys(err, r, "write '%s'", to_name) : 0;
}

static int copy_link(int from, const char *name, const struct side *to, int to_dir,
                     const char *to_name, struct error *err)
{
    char target[LIMIT_PATH];
    ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);
    int r = 0;

    if (n < 0)
        return error_sys(err, -errno, "read the link '%s'", name);
    target[n] = 0;
    become(to);
    (void)unlinkat(to_dir, to_name, 0);
    if (symlinkat(target, to_dir, to_name) < 0)
        r = -errno;
    become_self(to);
    return r < 0 ? error_sys(err, r, "make the link '%s'", to_name) : 0;
}

/* Everything in the open folder `from`, which is ours to close. */
static int copy_members(int from, const struct side *to, int to_dir, unsigned depth,
                        struct error *err)
{
    DIR *d = fdopendir(from);
    struct dirent *e;
    int r = 0;

    if (!d) {
        r = error_sys(err, -errno, "read a folder");
        (void)close(from);
        return r;
    }
    while (r >= 0 && (e = readdir(d)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            r = copy_at(dirfd(d), e->d_name, to, to_dir, e->d_name, depth, err);
    (void)closedir(d);
    return r;
}

static int copy_folder(int from, const struct stat *st, const struct side *to, int to_dir,
                       const char *to_name, unsigned depth, struct error *err)
{
    autoclose int source = from, fd = -1;
    int r = 0;

    if (depth == LIMIT_DOCKER_DEPTH)
        return error_set(err, ERR_TOO_LARGE, "'%s': folders are nested more than %u deep", to_name,
                         LIMIT_DOCKER_DEPTH);
    become(to);
    if (mkdirat(to_dir, to_name, 0700) < 0 && errno != EEXIST)
        r = -errno;
    fd = openat(to_dir, to_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (r >= 0 && fd < 0)
        r = -errno;
    become_self(to);
    if (r < 0)
        return error_sys(err, r, "make the folder '%s'", to_name);
    r = copy_members(TAKE_FD(source), to, fd, depth + 1, err);
    if (r >= 0 && fchmod(fd, st->st_mode & 0777) < 0 && errno != EPERM)
        r = error_sys(err, -errno, "set the mode of '%s'", to_name);
    return r;
}

/* What fd, ours to close, is open on. */
static int copy_open(int from, const char *name, const struct side *to, int to_dir,
                     const char *to_name, unsigned depth, struct error *err)
{
    autoclose int fd = from;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return error_sys(err, fd < 0 ? fd : -errno, "open '%s'", name);
    if (S_ISREG(st.st_mode))
        return copy_file(fd, &st, to, to_dir, to_name, err);
    if (S_ISDIR(st.st_mode))
        return copy_folder(TAKE_FD(fd), &st, to, to_dir, to_name, depth, err);
    say_note("'%s' is neither a file nor a folder nor a link: left out", name);
    return 0;
}

static int copy_at(int from, const char *name, const struct side *to, int to_dir,
                   const char *to_name, unsigned depth, struct error *err)
{
    int fd;

    become(to->source); /* what the box's user may not read is not to be had through us */
    fd = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        fd = -errno;
    become_self(to->source);
    if (fd == -ELOOP)
        return copy_link(from, name, to, to_dir, to_name, err);
    return copy_open(fd, name, to, to_dir, to_name, depth, err);
}

/* ---- finding both ends ---- */

static int open_in(const struct side *s, const char *path, int flags)
{
    int fd;

    if (s->root >= 0) { /* its paths begin at its root, with a slash or without */
        path += strspn(path, "/");
        become(s);
        fd = path_open(s->root, *path ? path : ".", flags | O_CLOEXEC, 0, PATH_IN_ROOT);
        become_self(s);
        return fd;
    }
    fd = open(path, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* In docker's words; what its client finds out itself is ERR_INVALID and not "from the daemon". */
static int say_no_source(const struct side *s, int r, struct error *err)
{
    if (r == -ENOENT && s->box)
        return error_set(err, ERR_NOT_FOUND, "Could not find the file %s in container %s", s->path,
                         s->box);
    if (r == -ENOENT)
        return error_set(err, ERR_INVALID, "lstat %s: no such file or directory", s->path);
    if (r == -ENOTDIR && !s->box)
        return error_set(err, ERR_INVALID, "not a directory");
    return error_sys(err, r, "open '%s'", s->path);
}

static int say_no_folder(const struct side *s, int r, const char *folder, struct error *err)
{
    if (r == -ENOENT && s->box)
        return error_set(err, ERR_NOT_FOUND, "Could not find the file %s in container %s", folder,
                         s->box);
    if (r == -ENOTDIR && s->box)
        return error_set(err, ERR_DENIED, "extraction point is not a directory");
    if (r == -ENOENT)
        return error_set(err, ERR_INVALID, "invalid output path: directory \"%s\" does not exist",
                         folder);
    return error_sys(err, r, "open '%s'", folder);
}

/* Splits a path into the folder that holds it, opened, and its name there. */
static int open_parent(struct side *s, const char *path, struct error *err)
{
    char text[LIMIT_PATH];
    char *slash;
    size_t n = strlen(path);

    if (n == 0 || n >= sizeof(text))
        return error_set(err, ERR_INVALID, "path '%s' is empty or too long", path);
    (void)snprintf(text, sizeof(text), "%s", path);
    while (n > 1 && text[n - 1] == '/')
        text[--n] = 0;
    slash = strrchr(text, '/');
    (void)snprintf(s->name, sizeof(s->name), "%s", slash ? slash + 1 : text);
    if (!slash)
        (void)snprintf(text, sizeof(text), ".");
    else
        slash[slash == text] = 0;
    s->dir = open_in(s, text, O_PATH | O_DIRECTORY);
    return s->dir < 0 ? say_no_folder(s, s->dir, text, err) : 0;
}

/* Is it there, and a folder? A link of the box is followed in the box alone. */
static int look_at(struct side *s, struct error *err)
{
    autoclose int fd = s->follow ? open_in(s, s->path, O_PATH) : -1;
    size_t n = strlen(s->path);
    struct stat st;
    int r = 0;

    become(s);
    if (s->follow)
        r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;
    else if (fstatat(s->dir, s->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    become_self(s);
    if (r < 0)
        return say_no_source(s, r, err);
    s->is_dir = S_ISDIR(st.st_mode);
    if (n > 1 && s->path[n - 1] == '/' && S_ISREG(st.st_mode))
        return say_no_source(s, -ENOTDIR, err);
    return 0;
}

/* "dir/." is what is in it; "." and "/" have no name of their own. */
static int open_source(struct side *s, const char *path, struct error *err)
{
    size_t n = strlen(path);

    s->contents = (n > 1 && strcmp(path + n - 2, "/.") == 0) || strcmp(path, ".") == 0 ||
                  strcmp(path, "/") == 0 || strcmp(path, "..") == 0 ||
                  (n > 2 && strcmp(path + n - 3, "/..") == 0);
    if (!s->contents) {
        int r = open_parent(s, path, err);

        if (r < 0)
            return s->dir == -ENOENT ? say_no_source(s, -ENOENT, err) : r;
        return look_at(s, err);
    }
    s->dir = open_in(s, path, O_PATH | O_DIRECTORY);
    s->is_dir = true;
    (void)snprintf(s->name, sizeof(s->name), ".");
    return s->dir < 0 ? say_no_source(s, s->dir, err) : 0;
}

/* A folder that is there takes the source under its own name; else the path is the new name. */
static int open_target(struct side *s, const char *path, const struct side *from, struct error *err)
{
    size_t n = strlen(path);

    s->dir = n ? open_in(s, path, O_PATH | O_DIRECTORY) : -ENOENT;
    if (s->dir >= 0) {
        (void)snprintf(s->name, sizeof(s->name), "%s", from->contents ? "." : from->name);
        return 0;
    }
    if (s->dir == -ENOTDIR && from->is_dir)
        return error_set(err, ERR_INVALID, "cannot copy directory");
    if (n == 0 || (n > 1 && path[n - 1] == '/' && !from->contents))
        return error_set(err, ERR_INVALID, "no such directory");
    return open_parent(s, path, err);
}

/* The root of a box; and who makes files in it. */
static int open_box(struct side *s, const struct box_record *r, pid_t init, struct error *err)
{
    char path[48];

    (void)snprintf(path, sizeof(path), "/proc/%d/root", (int)init);
    s->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (s->root < 0)
        return error_sys(err, -errno, "open the root of the box");
    s->as_user = geteuid() == 0 && map_id(init, "uid_map", r->uid, &s->uid) &&
                 map_id(init, "gid_map", r->gid, &s->gid);
    return 0;
}

/* "box:/path" or a path of the host, as docker tells them apart. */
static const char *split(const char *word, char *box, size_t size)
{
    const char *colon = strchr(word, ':');

    if (word[0] == '/' || word[0] == '.' || !colon || memchr(word, '/', (size_t)(colon - word)) ||
        (size_t)(colon - word) >= size)
        return NULL;
    (void)snprintf(box, size, "%.*s", (int)(colon - word), word);
    return colon + 1;
}

static int copy(struct side *from, struct side *to, struct error *err)
{
    to->source = from;
    if (from->follow && !from->contents)
        return copy_open(open_in(from, from->path, O_RDONLY | O_NONBLOCK | O_NOCTTY), from->name,
                         to, to->dir, to->name, 0, err);
    if (!from->contents || strcmp(to->name, ".") != 0)
        return copy_at(from->dir, from->name, to, to->dir, to->name, 0, err);
    {
        int fd;

        become(from);
        fd = openat(from->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        become_self(from);
        return fd < 0 ? error_sys(err, -errno, "read the folder")
                      : copy_members(fd, to, to->dir, 1, err);
    }
}

struct job {
    const struct box_record *box;
    struct side *from, *to;
};

static int on_visit(void *arg, pid_t init, struct error *err)
{
    const struct job *j = arg;
    int r = open_box(j->from->box ? j->from : j->to, j->box, init, err);

    if (r >= 0)
        r = open_source(j->from, j->from->path, err);
    if (r >= 0)
        r = open_target(j->to, j->to->path, j->from, err);
    return r < 0 ? r : copy(j->from, j->to, err);
}

static int on_flag(void *arg, const struct flags *f)
{
    if (f->flag->letter == 'L')
        ((struct side *)arg)->follow = f->on;
    return 0;
}

int cmd_cp(int argc, char **argv)
{
    static const struct flag rows[] = {{"archive", 'a', 0, NULL, NULL},
                                       {"follow-link", 'L', 1, NULL, NULL},
                                       {"quiet", 'q', 2, NULL, NULL}};
    struct flags f = {.verb = "cp",
                      .usage = "CONTAINER:PATH PATH | PATH CONTAINER:PATH",
                      .rows = rows,
                      .n_rows = 3,
                      .argc = argc,
                      .argv = argv};
    cleanup_(side_done) struct side from = {.root = -1, .dir = -1}, to = {.root = -1, .dir = -1};
    autoptr(box_record) record = NULL;
    char box[256];
    const char *inside_from, *inside_to, *path_from, *path_to;
    struct error err;
    int r;

    if (!flags_read(&f, 2, 2, on_flag, &from))
        return f.status;
    inside_from = split(f.words[0], box, sizeof(box));
    inside_to =
        inside_from ? split(f.words[1], (char[256]){0}, 256) : split(f.words[1], box, sizeof(box));
    if (!inside_from == !inside_to) {
        (void)fprintf(stderr, inside_from ? "copying between containers is not supported\n"
                                          : "must specify at least one container source\n");
        return 1;
    }
    path_from = inside_from ? inside_from : f.words[0];
    path_to = inside_to ? inside_to : f.words[1];
    if (strcmp(path_from, "-") == 0 || strcmp(path_to, "-") == 0)
        return say_daemon("tar streams are not supported by ClawDen's cp: name a file or a folder");
    *(inside_from ? &from.box : &to.box) = box;
    from.path = path_from;
    to.path = path_to;
    record = say_find(box);
    if (!record)
        return 1;
    r = sandbox_visit(record, on_visit, &(struct job){record, &from, &to}, &err);
    if (r < 0 && err.code == ERR_INVALID) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    return r < 0 ? say_daemon("%s", err.msg) : 0;
}
