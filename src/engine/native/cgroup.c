/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/native/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/path.h"

#define CGROUP_ROOT   "/sys/fs/cgroup"
#define CGROUP_FOLDER "clawden"
#define CPU_PERIOD    100000 /* usec */
#define CPU_LEAST     1000   /* the kernel takes no less */

static const char *const controllers[CG_COUNT] = {"memory", "pids", "cpu"};

/* ---- where groups can be made ---- */

/* The caller's path in the hierarchy of a v1 controller, or (name "") of v2, from
 * /proc/self/cgroup. */
static bool own_path(char *text, const char *controller, const char **ret)
{
    char *line = text, *end;

    for (; *line; line = end + 1) {
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

        end = strchr(line, '\n');
        if (!end || !path || path > end)
            return false;
        *end = *path = 0;
        for (char *word = list + 1, *next; word; word = next) {
            bool same;

            next = strchr(word, ',');
            if (next)
                *next = 0;
            same = strcmp(word, controller) == 0;
            if (next)
                *next++ = ',';
            if (same) {
                *ret = path + 1;
                return true;
            }
        }
        *end = '\n';
        *path = ':';
    }
    return false;
}

static int open_dir(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* Opens at/name, making it if that is allowed. */
static int make_dir(int at, const char *name)
{
    if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
        return -errno;
    return open_dir(at, name);
}

/*
 * v1: below the caller's own group, so that limits on the caller bind its boxes too. An ordinary
 * user needs a folder there that root has handed over: clawden/user-UID.
 */
static int find_v1(int i, const char *self)
{
    autoclose int own = -1, folder = -1;
    char path[LIMIT_PATH], copy[LIMIT_CGROUP_FILE], user[32];
    const char *where;
    int fd;

    (void)snprintf(copy, sizeof(copy), "%s", self);
    if (!own_path(copy, controllers[i], &where))
        return -ENOENT;
    (void)snprintf(path, sizeof(path), CGROUP_ROOT "/%s%s", controllers[i], where);
    own = open_dir(AT_FDCWD, path);
    if (own < 0)
        return own;
    if (geteuid() == 0)
        return TAKE_FD(own);
    folder = open_dir(own, CGROUP_FOLDER);
    if (folder < 0)
        return folder;
    (void)snprintf(user, sizeof(user), "user-%u", (unsigned)geteuid());
    fd = open_dir(folder, user);
    if (fd >= 0 && faccessat(fd, ".", W_OK, AT_EACCESS) < 0) {
        (void)close(fd);
        return -EACCES;
    }
    return fd;
}

static bool enable_v2(int dir)
{
    char text[512];

    (void)fd_write_text(dir, "cgroup.subtree_control", "+memory +pids +cpu");
    if (fd_read_text(dir, "cgroup.subtree_control", text, sizeof(text)) < 0)
        return false;
    return strstr(text, "memory") && strstr(text, "pids");
}

/* A delegated group may have processes or children with controllers, not both: step aside first. */
static int take_own_v2(const char *where)
{
    autoclose int own = -1, aside = -1;
    char path[LIMIT_PATH];

    (void)snprintf(path, sizeof(path), CGROUP_ROOT "%s", where);
    own = open_dir(AT_FDCWD, path);
    if (own < 0)
        return own;
    if (faccessat(own, "cgroup.subtree_control", W_OK, AT_EACCESS) < 0)
        return -errno;
    aside = make_dir(own, "supervisor");
    if (aside < 0)
        return aside;
    if (fd_write_text(aside, "cgroup.procs", "0") < 0 || !enable_v2(own))
        return -EBUSY;
    return TAKE_FD(own);
}

static int find_v2(bool own, const char *self)
{
    char copy[LIMIT_CGROUP_FILE];
    autoclose int root = -1;
    const char *where;

    (void)snprintf(copy, sizeof(copy), "%s", self);
    if (own && own_path(copy, "", &where) && strcmp(where, "/") != 0) {
        int fd = take_own_v2(where);

        if (fd >= 0)
            return fd;
    }
    if (geteuid() != 0)
        return -EACCES;
    root = open_dir(AT_FDCWD, CGROUP_ROOT);
    if (root < 0 || !enable_v2(root))
        return -EACCES;
    return TAKE_FD(root);
}

void cgroup_find(bool own, struct cgroup_base *ret)
{
    char self[LIMIT_CGROUP_FILE];
    struct statfs fs;

    *ret = (struct cgroup_base){.dirs = {-1, -1, -1}};
    if (statfs(CGROUP_ROOT, &fs) < 0 ||
        fd_read_text(AT_FDCWD, "/proc/self/cgroup", self, sizeof(self)) < 0)
        return;
    if (fs.f_type == CGROUP2_SUPER_MAGIC) {
        int fd = find_v2(own, self);

        if (fd < 0)
            return;
        ret->kind = CGROUP_V2;
        for (int i = 0; i < CG_COUNT; i++)
            ret->dirs[i] = i ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : fd;
        return;
    }
    for (int i = 0; i < CG_COUNT; i++) {
        ret->dirs[i] = find_v1(i, self);
        if (ret->dirs[i] >= 0)
            ret->kind = CGROUP_V1;
        else
            ret->dirs[i] = -1;
    }
}

void cgroup_base_done(struct cgroup_base *b)
{
    for (int i = 0; i < CG_COUNT; i++)
        close_fd(&b->dirs[i]);
    b->kind = CGROUP_NONE;
}

/* ---- groups ---- */

int cgroup_make(const struct cgroup_base *base, const char *name, unsigned need,
                struct cgroup_set *ret)
{
    struct cgroup_set set = {.kind = base->kind};

    (void)snprintf(set.name, sizeof(set.name), "%s", name);
    for (int i = 0; i < CG_COUNT; i++) {
        set.bases[i] = base->dirs[i];
        set.dirs[i] = -1;
    }
    for (int i = 0; i < CG_COUNT; i++) {
        if (!(need & 1u << i) || base->dirs[i] < 0)
            continue;
        set.dirs[i] = make_dir(base->dirs[i], name);
        if (set.dirs[i] < 0) {
            int r = set.dirs[i];

            set.dirs[i] = -1;
            cgroup_remove(&set);
            return r;
        }
    }
    *ret = set;
    return 0;
}

static int write_number(int dir, const char *file, uint64_t n)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
    return fd_write_text(dir, file, text);
}

/* v1 keeps memory <= memory+swap at every moment, so the order depends on the direction. */
static int limit_memory_v1(int dir, uint64_t bytes)
{
    int r = write_number(dir, "memory.limit_in_bytes", bytes);

    if (r == -EINVAL || r == -EBUSY) {
        (void)write_number(dir, "memory.memsw.limit_in_bytes", bytes);
        r = write_number(dir, "memory.limit_in_bytes", bytes);
    }
    if (r < 0)
        return r;
    r = write_number(dir, "memory.memsw.limit_in_bytes", bytes);
    return r == -ENOENT ? 0 : r; /* no swap accounting on this kernel: nothing to limit */
}

static int limit_memory_v2(int dir, uint64_t bytes)
{
    int r = write_number(dir, "memory.max", bytes);

    if (r < 0)
        return r;
    (void)fd_write_text(dir, "memory.swap.max", "0");
    (void)fd_write_text(dir, "memory.oom.group", "0");
    return 0;
}

static int limit_cpu(const struct cgroup_set *set, uint32_t milli)
{
    uint64_t quota = (uint64_t)milli * CPU_PERIOD / 1000;
    char text[48];

    if (quota < CPU_LEAST)
        quota = CPU_LEAST;
    if (set->kind == CGROUP_V2) {
        if (milli)
            (void)snprintf(text, sizeof(text), "%llu %d", (unsigned long long)quota, CPU_PERIOD);
        else
            (void)snprintf(text, sizeof(text), "max");
        return fd_write_text(set->dirs[CG_CPU], "cpu.max", text);
    }
    if (!milli)
        return fd_write_text(set->dirs[CG_CPU], "cpu.cfs_quota_us", "-1");
    return write_number(set->dirs[CG_CPU], "cpu.cfs_quota_us", quota);
}

int cgroup_set_limits(const struct cgroup_set *set, const struct box_limits *l,
                      const struct box_limits *now)
{
    int r = 0;

    if (set->dirs[CG_MEMORY] >= 0 && l->memory_bytes &&
        !(now && l->memory_bytes == now->memory_bytes))
        r = set->kind == CGROUP_V2 ? limit_memory_v2(set->dirs[CG_MEMORY], l->memory_bytes)
                                   : limit_memory_v1(set->dirs[CG_MEMORY], l->memory_bytes);
    /* Init is one of them, and not the caller's: one more. */
    if (r >= 0 && set->dirs[CG_PIDS] >= 0 && l->pids && !(now && l->pids == now->pids))
        r = write_number(set->dirs[CG_PIDS], "pids.max", (uint64_t)l->pids + 1);
    if (r >= 0 && set->dirs[CG_CPU] >= 0 && !(now && l->cpu_milli == now->cpu_milli))
        r = limit_cpu(set, l->cpu_milli);
    return r;
}

int cgroup_clone_fd(const struct cgroup_set *set)
{
    for (int i = 0; i < CG_COUNT && set->kind == CGROUP_V2; i++)
        if (set->dirs[i] >= 0)
            return set->dirs[i];
    return -1;
}

int cgroup_open_joins(const struct cgroup_set *set, int ret[CG_COUNT + 1])
{
    int n = 0;

    for (int i = 0; i <= CG_COUNT; i++)
        ret[i] = -1;
    if (set->kind != CGROUP_V1)
        return 0;
    for (int i = 0; i < CG_COUNT; i++) {
        if (set->dirs[i] < 0)
            continue;
        ret[n] = openat(set->dirs[i], "tasks", O_WRONLY | O_CLOEXEC);
        if (ret[n] < 0) {
            int r = -errno;

            while (n-- > 0)
                close_fd(&ret[n]);
            ret[0] = -1;
            return r;
        }
        n++;
    }
    return 0;
}

/* ---- reading back ---- */

static bool read_number(int dir, const char *file, uint64_t *ret)
{
    char text[64], *end;

    if (dir < 0 || fd_read_value(dir, file, text, sizeof(text)) <= 0 || text[0] < '0' ||
        text[0] > '9')
        return false;
    *ret = strtoull(text, &end, 10);
    return true;
}

/* "key N" lines, as in memory.events and pids.events. */
static bool read_keyed(int dir, const char *file, const char *key, uint64_t *ret)
{
    char text[4096], *line, *save = NULL;
    size_t n = strlen(key);

    if (dir < 0 || fd_read_value(dir, file, text, sizeof(text)) < 0)
        return false;
    for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, key, n) != 0 || line[n] != ' ')
            continue;
        *ret = strtoull(line + n + 1, NULL, 10);
        return true;
    }
    return false;
}

void cgroup_counters(const struct cgroup_set *set, struct box_usage *u)
{
    bool v2 = set->kind == CGROUP_V2;
    int memory = set->dirs[CG_MEMORY];
    uint64_t n;

    if (set->kind == CGROUP_NONE)
        return;
    (void)read_keyed(memory, v2 ? "memory.events" : "memory.oom_control", "oom_kill",
                     &u->oom_kills);
    (void)read_keyed(set->dirs[CG_PIDS], "pids.events", "max", &u->forks_refused);
    if (v2 && read_keyed(set->dirs[CG_CPU] >= 0 ? set->dirs[CG_CPU] : memory, "cpu.stat",
                         "usage_usec", &n))
        u->cpu_usec = n;
}

void cgroup_usage(const struct cgroup_set *set, struct box_usage *u)
{
    bool v2 = set->kind == CGROUP_V2;
    int memory = set->dirs[CG_MEMORY];
    uint64_t n;

    if (set->kind == CGROUP_NONE)
        return;
    if (read_number(memory, v2 ? "memory.peak" : "memory.max_usage_in_bytes", &n)) {
        u->peak_bytes = n;
        u->peak_is_whole_box = true;
    }
    (void)read_number(memory, v2 ? "memory.current" : "memory.usage_in_bytes", &u->memory_bytes);
    if (read_number(set->dirs[CG_PIDS], "pids.current", &n))
        u->pids = (uint32_t)n;
    cgroup_counters(set, u);
}

void cgroup_forget(const struct cgroup_set *set)
{
    if (set->dirs[CG_MEMORY] < 0)
        return;
    if (set->kind == CGROUP_V1)
        (void)fd_write_text(set->dirs[CG_MEMORY], "memory.force_empty", "0");
    else
        (void)fd_write_text(set->dirs[CG_MEMORY], "memory.reclaim", "1g");
}

/* ---- removing ---- */

/* The kernel lets go of a group a moment after its last process was reaped; on a machine that has
 * something else to do, a long one. */
static void remove_dir(int base, const char *name)
{
    for (unsigned i = 0; i < 250 && unlinkat(base, name, AT_REMOVEDIR) < 0 && errno == EBUSY; i++)
        (void)usleep(i < 100 ? 1000 : 20000);
}

void cgroup_remove(struct cgroup_set *set)
{
    bool removed = false;

    for (int i = 0; i < CG_COUNT; i++) {
        if (set->dirs[i] < 0)
            continue;
        close_fd(&set->dirs[i]);
        if (set->kind == CGROUP_V1 || !removed) /* v2: one folder for all */
            remove_dir(set->bases[i], set->name);
        removed = true;
    }
    set->kind = CGROUP_NONE;
}

/* One that is being made just now, by somebody whose number we cannot see: another pid namespace
 * may share this hierarchy. */
static bool is_young(int base, const char *name)
{
    struct stat st;

    return fstatat(base, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && time(NULL) - st.st_mtime < 2;
}

static bool maker_is_gone(const char *name)
{
    const char *dash = strrchr(name, '-');
    long pid = dash ? strtol(dash + 1, NULL, 10) : 0;

    return pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

void cgroup_sweep(const struct cgroup_base *base)
{
    for (int i = 0; i < CG_COUNT; i++) {
        DIR *d;

        if (base->dirs[i] < 0 || (base->kind == CGROUP_V2 && i))
            continue;
        d = fdopendir(openat(base->dirs[i], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!d)
            continue;
        for (struct dirent *e; (e = readdir(d));)
            if (strncmp(e->d_name, CGROUP_PREFIX, sizeof(CGROUP_PREFIX) - 1) == 0 &&
                maker_is_gone(e->d_name) && !is_young(base->dirs[i], e->d_name))
                (void)unlinkat(base->dirs[i], e->d_name, AT_REMOVEDIR); /* refused while in use */
        (void)closedir(d);
    }
}
