/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/places.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/path.h"
#include "base/state.h"

#define DEFAULT_TMP (500u << 20)

/* ---- what no box may see ---- */

/* Neither these, nor anything in them, nor what holds them. */
static const char *const closed[] = {"/etc",       "/proc",    "/sys",      "/dev",
                                     "/boot",      "/run",     "/var/run",  "/var/lib/clawden",
                                     "/var/spool", "/var/log", "/var/mail", "/var/lib/docker"};
/* Not these themselves; what lies in them may be somebody's work. */
static const char *const whole[] = {"/",          "/home", "/root", "/var", "/var/lib",
                                    "/var/cache", "/opt",  "/srv",  "/usr"};
/* Programs of the host: to be read at most. */
static const char *const programs[] = {"/usr",   "/bin",   "/sbin",   "/lib",
                                       "/lib32", "/lib64", "/libx32", "/opt"};
static const char *const home_secrets[] = {".aws",   ".cargo",         ".config", ".docker",
                                           ".gnupg", ".netrc",         ".npm",    ".ssh",
                                           ".kube",  ".password-store"};

static int canonical(const char *path, char *real, size_t size)
{
    autoclose int fd = open(path, O_PATH | O_CLOEXEC);

    return fd < 0 ? -errno : path_of_fd(fd, real, size);
}

/* Is it inside, or does it hold, this path of ours or the person's? */
static int check_apart(const char *source, const char *secret, struct error *err)
{
    char real[LIMIT_PATH];

    if (canonical(secret, real, sizeof(real)) < 0)
        return 0; /* not there: nothing to see */
    if (path_is_within(source, real))
        return error_set(err, ERR_DENIED,
                         "bind '%s': it lies in '%s', which no box may see; bind another folder",
                         source, secret);
    if (path_is_within(real, source))
        return error_set(err, ERR_DENIED,
                         "bind '%s': it holds '%s', which no box may see; bind a folder inside it",
                         source, secret);
    return 0;
}

static int check_home(const char *source, const char *home, struct error *err)
{
    char path[LIMIT_PATH], real[LIMIT_PATH];
    int r = 0;

    if (!home || home[0] != '/' || !home[1])
        return 0;
    if (canonical(home, real, sizeof(real)) >= 0 && strcmp(real, source) == 0)
        return error_set(err, ERR_DENIED, "bind '%s': it is a home folder; bind a folder inside it",
                         source);
    for (size_t i = 0; r >= 0 && i < sizeof(home_secrets) / sizeof(*home_secrets); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", home, home_secrets[i]);
        r = check_apart(source, path, err);
    }
    return r;
}

/* Homes of others too: /home/x is one, /home/x/y is somebody's work. */
static int check_system(const char *source, bool read_only, struct error *err)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < sizeof(closed) / sizeof(*closed); i++)
        r = check_apart(source, closed[i], err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
        if (strcmp(source, whole[i]) == 0 && !(read_only && path_is_within(source, "/usr")))
            return error_set(err, ERR_DENIED,
                             "bind '%s': not a whole system folder; bind a folder inside it",
                             source);
    if (strncmp(source, "/home/", 6) == 0 && !strchr(source + 6, '/'))
        return error_set(err, ERR_DENIED, "bind '%s': it is a home folder; bind a folder inside it",
                         source);
    for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
        if (!read_only && path_is_within(source, programs[i]))
            return error_set(
                err, ERR_DENIED,
                "bind '%s': programs of the host are bound read-only (:ro) or not at all", source);
    return 0;
}

static int check_source(const char *source, bool read_only, struct error *err)
{
    const struct passwd *me = getpwuid(geteuid());
    char path[LIMIT_PATH];
    struct error ignored;
    int r = check_system(source, read_only, err);

    if (r >= 0)
        r = check_home(source, getenv("HOME"), err);
    if (r >= 0 && me)
        r = check_home(source, me->pw_dir, err);
    if (r >= 0 && state_data_path(path, sizeof(path), &ignored) >= 0 &&
        !(path_is_within(source, path) && path_is_within(source + strlen(path), "/workspaces")))
        r = check_apart(source, path, err);
    if (r >= 0 && state_runtime_path(path, sizeof(path), &ignored) >= 0)
        r = check_apart(source, path, err);
    return r;
}

/* ---- targets ---- */

/* "/a//b/../c/" -> "/a/c", in place. */
static bool normalise(char *path)
{
    char *out = path, *in = path;

    if (*path != '/')
        return false;
    while (*in) {
        char *end;
        size_t n;

        while (*in == '/')
            in++;
        end = in + strcspn(in, "/");
        n = (size_t)(end - in);
        if (n == 0)
            break;
        if (n == 2 && in[0] == '.' && in[1] == '.') {
            while (out > path && *--out != '/')
                ;
        } else if (!(n == 1 && in[0] == '.')) {
            *out++ = '/';
            memmove(out, in, n);
            out += n;
        }
        in = end;
    }
    if (out == path)
        *out++ = '/';
    *out = 0;
    return true;
}

static int check_target(char *target, struct error *err)
{
    static const char *const ours[] = {"/proc", "/sys", "/dev"};

    if (strlen(target) >= LIMIT_PATH || !normalise(target) || strcmp(target, "/") == 0)
        return error_set(err, ERR_INVALID,
                         "mount on '%s': a folder of the box is needed, with its whole path",
                         target);
    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        if (path_is_within(target, ours[i]) && !path_is_within(target, "/dev/shm"))
            return error_set(err, ERR_DENIED, "mount on '%s': %s is the box's own", target,
                             ours[i]);
    return 0;
}

/* ---- checking a record ---- */

static void drop(struct box_record *r, size_t i)
{
    free(r->mounts[i].source);
    free(r->mounts[i].target);
    free(r->mounts[i].options);
    memmove(&r->mounts[i], &r->mounts[i + 1], (r->n_mounts - i - 1) * sizeof(*r->mounts));
    r->n_mounts--;
}

/* 1: it is gone from the list. */
static int check_bind(struct box_record *r, size_t i, struct error *err)
{
    struct box_mount *m = &r->mounts[i];
    char real[LIMIT_PATH];
    int e;

    if (!m->source || m->source[0] != '/')
        return error_set(
            err, ERR_INVALID,
            "bind '%s': named volumes do not exist here; give a folder with its whole path",
            m->source ? m->source : "");
    e = canonical(m->source, real, sizeof(real));
    if (e == -ENOENT) {
        log_warn("bind '%s' is left out: it does not exist on the host", m->source);
        drop(r, i);
        return 1;
    }
    if (e < 0)
        return error_sys(err, e, "bind '%s'", m->source);
    e = check_source(real, m->read_only, err);
    if (e < 0)
        return e;
    free(m->source);
    m->source = strdup(real);
    return m->source ? 0 : error_sys(err, -ENOMEM, "bind '%s'", real);
}

static const struct box_mount *find_target(const struct box_record *r, const char *target)
{
    for (size_t i = 0; i < r->n_mounts; i++)
        if (strcmp(r->mounts[i].target, target) == 0)
            return &r->mounts[i];
    return NULL;
}

/* /tmp, /var/tmp and /run are always writable in memory, as they are in every box (C43). */
static int add_usual(struct box_record *r, struct error *err)
{
    static const char *const usual[] = {"/tmp", "/var/tmp", "/run"};

    for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++) {
        struct box_mount *grown;

        if (find_target(r, usual[i]))
            continue;
        grown = realloc(r->mounts, (r->n_mounts + 1) * sizeof(*grown));
        if (!grown)
            return error_sys(err, -ENOMEM, "list the mounts");
        r->mounts = grown;
        grown[r->n_mounts++] =
            (struct box_mount){.kind = BOX_TMPFS, .target = strdup(usual[i]), .implied = true};
    }
    return 0;
}

static int by_target(const void *a, const void *b)
{
    return strcmp(((const struct box_mount *)a)->target, ((const struct box_mount *)b)->target);
}

int places_check(struct box_record *r, struct error *err)
{
    int e;

    for (size_t i = 0; i < r->n_mounts;) {
        e = check_target(r->mounts[i].target, err);
        if (e >= 0 && r->mounts[i].kind == BOX_BIND)
            e = check_bind(r, i, err);
        if (e < 0)
            return e;
        i += e == 0;
    }
    e = add_usual(r, err);
    if (e < 0)
        return e;
    if (r->n_mounts > LIMIT_PLACES)
        return error_set(err, ERR_TOO_LARGE, "%zu mounts: at most %u", r->n_mounts, LIMIT_PLACES);
    /* By name: a folder sorts before what lies in it. */
    qsort(r->mounts, r->n_mounts, sizeof(*r->mounts), by_target);
    for (size_t i = 0; i + 1 < r->n_mounts; i++)
        if (strcmp(r->mounts[i].target, r->mounts[i + 1].target) == 0)
            return error_set(err, ERR_INVALID, "Duplicate mount point: %s", r->mounts[i].target);
    if (r->limits.tmp_bytes == 0)
        r->limits.tmp_bytes = DEFAULT_TMP;
    return 0;
}

/* ---- opening ---- */

/* The innermost bind that this target lies in, or NULL. */
static const struct box_place *holder_of(const struct places *p, const char *target)
{
    const struct box_place *best = NULL;

    for (size_t i = 0; i < p->n; i++)
        if (path_is_within(target, p->list[i].target) && strcmp(target, p->list[i].target) != 0 &&
            (!best || strlen(p->list[i].target) > strlen(best->target)))
            best = &p->list[i];
    return best && best->source ? best : NULL;
}

/* What is made in somebody's folder is made as its owner: nothing is given away afterwards by a
 * name that may mean something else by then. */
static void become(const struct stat *owner)
{
    if (geteuid() != 0)
        return;
    (void)setfsgid(owner->st_gid);
    (void)setfsuid(owner->st_uid);
}

static void become_self(void)
{
    if (geteuid() != 0)
        return;
    (void)setfsuid(geteuid());
    (void)setfsgid(getegid());
}

/* A folder, or an empty file, in the open folder `at`; what is there already will do. */
static int make_one(int at, const char *name, bool is_dir, const struct stat *owner)
{
    int fd, r = 0;

    become(owner);
    if (is_dir) {
        if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
            r = -errno;
    } else {
        fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd >= 0)
            (void)close(fd);
        else if (errno != EEXIST)
            r = -errno;
    }
    become_self();
    return r;
}

/*
 * A mount point inside another bind is a folder (or an empty file) on the host. It belongs to whom
 * the bind belongs to, and is looked up beneath it without links.
 */
static int make_point(const struct box_place *in, const char *rest, bool is_dir, struct error *err)
{
    autoclose int at = openat(in->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char part[LIMIT_PATH];
    struct stat owner;

    if (at < 0 || fstat(at, &owner) < 0)
        return error_sys(err, -errno, "open '%s'", in->source);
    for (rest += strspn(rest, "/"); *rest; rest += strspn(rest, "/")) {
        size_t n = strcspn(rest, "/");
        bool last = rest[n] == 0;
        int r, next;

        (void)snprintf(part, sizeof(part), "%.*s", (int)n, rest);
        r = make_one(at, part, !last || is_dir, &owner);
        if (r < 0)
            return error_sys(err, r, "make the mount point '%s' in '%s'", part, in->source);
        if (last && !is_dir)
            return 0;
        next = openat(at, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (next < 0)
            return error_sys(err, -errno, "open the mount point '%s' in '%s'", part, in->source);
        close_fd(&at);
        at = next;
        rest += n;
    }
    return 0;
}

static int open_bind(const struct box_mount *m, struct box_place *place, struct error *err)
{
    struct stat st;
    int r = check_source(m->source, m->read_only, err);

    if (r < 0)
        return r;
    place->fd = path_open(AT_FDCWD, m->source, O_PATH, 0, PATH_CANONICAL);
    if (place->fd == -ENOENT) {
        log_warn("bind '%s' is left out: it does not exist on the host any more", m->source);
        return 1;
    }
    if (place->fd < 0)
        return error_sys(err, place->fd, "bind '%s'", m->source);
    if (fstat(place->fd, &st) < 0 || !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
        return error_set(err, ERR_DENIED, "bind '%s': only folders and files can be bound",
                         m->source);
    place->source = m->source;
    place->is_dir = S_ISDIR(st.st_mode);
    place->read_only = m->read_only;
    return 0;
}

/* Those without a size of their own share one memory file system, which the box has anyway. */
static bool is_usual(const struct box_mount *m, uint64_t tmp_bytes)
{
    return (strcmp(m->target, "/tmp") == 0 || strcmp(m->target, "/var/tmp") == 0 ||
            strcmp(m->target, "/run") == 0 || strcmp(m->target, "/dev/shm") == 0) &&
           (m->bytes == 0 || m->bytes == tmp_bytes) && m->mode == 0 && !m->no_exec;
}

int places_open(const struct box_record *r, struct places *ret, struct error *err)
{
    ret->n = 0;
    for (size_t i = 0; i < r->n_mounts && ret->n < LIMIT_PLACES; i++) {
        const struct box_mount *m = &r->mounts[i];
        struct box_place *place = &ret->list[ret->n];
        const struct box_place *in;
        int e = 0;

        *place = (struct box_place){.target = m->target, .fd = -1, .is_dir = true};
        if (m->kind == BOX_TMPFS && is_usual(m, r->limits.tmp_bytes))
            continue;
        if (m->kind == BOX_BIND) {
            e = open_bind(m, place, err);
        } else {
            place->bytes = m->bytes ? m->bytes : r->limits.tmp_bytes;
            place->mode = m->mode ? m->mode : 01777;
            place->no_exec = m->no_exec;
            place->read_only = m->read_only;
        }
        in = e == 0 ? holder_of(ret, m->target) : NULL;
        if (in)
            e = make_point(in, m->target + strlen(in->target), place->is_dir, err);
        ret->n += e == 0; /* also on failure its descriptor is closed below */
        if (e < 0) {
            close_fd(&place->fd);
            places_close(ret);
            return e;
        }
    }
    return 0;
}

void places_close(struct places *p)
{
    for (size_t i = 0; i < p->n; i++)
        close_fd(&p->list[i].fd);
    p->n = 0;
}
