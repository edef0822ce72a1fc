/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/native/watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/limits.h"
#include "engine/engine.h"

struct tree {
    pid_t pids[LIMIT_PROC_TREE]; /* init, its children, theirs … */
    size_t n, n_first;           /* n_first: init and its children */
};

bool watch_is_possible(void)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    return access(path, R_OK) == 0;
}

static void add_children(struct tree *t, int proc, const char *task)
{
    char path[64], text[LIMIT_SMALL_FILE], *p = text, *end;

    (void)snprintf(path, sizeof(path), "task/%s/children", task);
    if (fd_read_text(proc, path, text, sizeof(text)) <= 0)
        return;
    for (;; p = end) {
        long pid = strtol(p, &end, 10);

        if (end == p || pid <= 0 || t->n == LIMIT_PROC_TREE)
            return;
        t->pids[t->n++] = (pid_t)pid;
    }
}

static void close_dir(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

/* Children hang on the thread that made them. */
static void add_all_children(struct tree *t, int proc)
{
    cleanup_(close_dir) DIR *d =
        fdopendir(openat(proc, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.')
            add_children(t, proc, e->d_name);
}

static int open_proc(pid_t pid)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

struct sample {
    uint64_t cpu_ticks; /* own and of the children it has waited for */
    uint64_t threads;
};

/* The numbers of /proc/PID/stat stand behind the last ')': a name may hold anything. */
static bool read_stat(int proc, struct sample *ret)
{
    char text[4096], *p;
    unsigned long long ut, st, cut, cst, threads;

    if (fd_read_text(proc, "stat", text, sizeof(text)) <= 0)
        return false;
    p = strrchr(text, ')');
    if (!p ||
        sscanf(p + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d %llu", &ut,
               &st, &cut, &cst, &threads) != 5)
        return false;
    *ret = (struct sample){.cpu_ticks = ut + st + cut + cst, .threads = threads};
    return true;
}

/* Pages that only this process maps, from statm: resident without file and shared ones. */
static uint64_t private_bytes(int proc)
{
    unsigned long long resident = 0, shared = 0;
    char text[256];

    if (fd_read_text(proc, "statm", text, sizeof(text)) <= 0 ||
        sscanf(text, "%*u %llu %llu", &resident, &shared) != 2 || resident < shared)
        return 0;
    return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Anonymous memory shared between processes (after fork, or by mmap) must not count twice. */
static uint64_t fair_bytes(int proc)
{
    char text[4096], *line, *save = NULL;
    uint64_t kib = 0;

    if (fd_read_text(proc, "smaps_rollup", text, sizeof(text)) <= 0)
        return private_bytes(proc);
    for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (strncmp(line, "Pss_Anon:", 9) == 0 || strncmp(line, "Pss_Shmem:", 10) == 0)
            kib += strtoull(strchr(line, ':') + 1, NULL, 10);
    return kib * 1024;
}

/* What lies in the box's memory file systems, each counted once; reached through init, whose user
 * namespace is ours. */
static uint64_t tmpfs_bytes(pid_t init)
{
    static char text[LIMIT_SMALL_FILE];
    char path[LIMIT_PATH], *line, *save = NULL;
    char seen[32][24];
    size_t n_seen = 0;
    uint64_t bytes = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)init);
    if (fd_read_text(AT_FDCWD, path, text, sizeof(text)) <= 0)
        return 0;
    for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char dev[24], where[512];
        struct statfs fs;
        size_t i = 0;

        if (!strstr(line, " - tmpfs ") || sscanf(line, "%*s %*s %23s %*s %511s", dev, where) != 2)
            continue;
        while (i < n_seen && strcmp(seen[i], dev) != 0)
            i++;
        if (i < n_seen || n_seen == sizeof(seen) / sizeof(*seen))
            continue;
        (void)snprintf(seen[n_seen++], sizeof(seen[0]), "%s", dev);
        (void)snprintf(path, sizeof(path), "/proc/%d/root%s", (int)init, where);
        if (statfs(path, &fs) == 0)
            bytes += (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
    }
    return bytes;
}

/* Files in memory that no folder shows (memfd): written, they are nobody's resident pages. */
static uint64_t memfd_bytes(int proc, ino_t *seen, size_t *n_seen, size_t max)
{
    cleanup_(close_dir) DIR *d = fdopendir(openat(proc, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    uint64_t bytes = 0;

    if (!d)
        return 0;
    for (struct dirent *e; (e = readdir(d));) {
        char link[64];
        ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);
        struct stat st;
        size_t i = 0;

        if (n < 7 || strncmp(link, "/memfd:", 7) != 0 || fstatat(dirfd(d), e->d_name, &st, 0) < 0)
            continue;
        while (i < *n_seen && seen[i] != st.st_ino)
            i++;
        if (i < *n_seen || *n_seen == max)
            continue;
        seen[(*n_seen)++] = st.st_ino;
        bytes += (uint64_t)st.st_blocks * 512;
    }
    return bytes;
}

static void collect(pid_t init, struct tree *t, struct box_usage *u)
{
    uint64_t ticks = 0;

    t->n = t->n_first = 0;
    t->pids[t->n++] = init;
    u->pids = 0;
    for (size_t i = 0; i < t->n; i++) {
        autoclose int proc = open_proc(t->pids[i]);
        struct sample s;

        if (proc < 0 || !read_stat(proc, &s))
            continue;
        ticks += s.cpu_ticks;
        if (i)
            u->pids += (uint32_t)s.threads;
        if (s.threads > 1)
            add_all_children(t, proc);
        else {
            char self[16];

            (void)snprintf(self, sizeof(self), "%d", (int)t->pids[i]);
            add_children(t, proc, self);
        }
        if (i == 0)
            t->n_first = t->n;
    }
    u->cpu_usec = ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

void watch_cpu(pid_t init, struct box_usage *ret)
{
    static struct tree t;

    collect(init, &t, ret);
}

void watch_tree(pid_t init, struct box_usage *ret)
{
    static struct tree t;
    static ino_t seen[1024];
    size_t n_seen = 0;
    uint64_t bytes = 0;

    collect(init, &t, ret);
    for (size_t i = 1; i < t.n; i++) {
        autoclose int proc = open_proc(t.pids[i]);

        if (proc < 0)
            continue;
        bytes += fair_bytes(proc);
        bytes += memfd_bytes(proc, seen, &n_seen, sizeof(seen) / sizeof(*seen));
    }
    ret->memory_bytes = bytes + tmpfs_bytes(init);
}

void watch_signal(pid_t init, int signo)
{
    static struct tree t;
    struct box_usage u;

    collect(init, &t, &u);
    for (size_t i = 1; i < t.n; i++)
        (void)kill(t.pids[i], signo);
}

void watch_signal_commands(pid_t init, int signo)
{
    static struct tree t;
    struct box_usage u;

    collect(init, &t, &u);
    for (size_t i = t.n_first; i && i < t.n; i++)
        (void)kill(t.pids[i], signo);
}

void watch_signal_main(pid_t init, int signo)
{
    static struct tree t;
    struct box_usage u;

    collect(init, &t, &u);
    if (t.n_first && t.n_first < t.n)
        (void)kill(t.pids[t.n_first], signo);
}

void watch_each(pid_t init, void (*fn)(void *arg, pid_t pid), void *arg)
{
    static struct tree t;
    struct box_usage unused;

    collect(init, &t, &unused);
    for (size_t i = 0; i < t.n; i++)
        fn(arg, t.pids[i]);
}

static bool pid_namespace(const char *pid, struct stat *ret)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%s/ns/pid", pid);
    return stat(path, ret) == 0;
}

/* As getdents64() has it. */
struct kernel_entry {
    uint64_t inode;
    int64_t next;
    uint16_t length;
    uint8_t type;
    char name[];
};
#define LIST_ANY 320u /* one entry, whatever its name */
#define LIST_FEW 72u  /* three processes */

/* 1: it is one of the box's, and ran, or has just left its place to another. */
static unsigned stop_member(const char *name, const struct stat *box)
{
    long pid = strtol(name, NULL, 10);
    struct stat st;
    char state;

    if (pid <= 0 || !pid_namespace(name, &st) || st.st_ino != box->st_ino ||
        st.st_dev != box->st_dev)
        return 0;
    state = watch_state((pid_t)pid);
    (void)kill((pid_t)pid, SIGSTOP);
    return state == 'R' || state == 'S' || state == 0;
}

/*
 * All of /proc, upwards: whoever leaves its place to a child meanwhile has left it to a higher
 * number. That holds only if names are not fetched long before they are looked at, as readdir()
 * does: what lives for one fork would be gone by then, and its child not among them.
 */
unsigned watch_stop_namespace(pid_t init)
{
    _Alignas(struct kernel_entry) char list[LIST_ANY];
    size_t piece = sizeof(list); /* what is not a number comes first, and may have a long name */
    autoclose int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    unsigned running = 0;
    struct stat box;
    char text[16];
    long n;

    (void)snprintf(text, sizeof(text), "%d", (int)init);
    if (proc < 0 || !pid_namespace(text, &box))
        return 0;
    while ((n = syscall(SYS_getdents64, proc, list, piece)) > 0)
        for (long at = 0; at < n;) {
            const struct kernel_entry *e = (const void *)(list + at);

            running += stop_member(e->name, &box);
            if (e->name[0] > '0' && e->name[0] <= '9')
                piece = LIST_FEW;
            at += e->length;
        }
    return running;
}

char watch_state(pid_t pid)
{
    char path[32], text[512], *p;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (fd_read_value(AT_FDCWD, path, text, sizeof(text)) <= 0)
        return 0;
    p = strrchr(text, ')');
    return p && p[1] ? p[2] : 0;
}
