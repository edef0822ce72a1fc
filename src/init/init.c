/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clawden-init: process 1 of a box.
 *
 * Theory of operation. Started by execveat from a sealed memfd with nothing open but /dev/null on
 * 0-2 and its control socket on 3; the belts of the box are already on it, so it can do no more
 * than the commands it starts (in a live box with a range of ids it may also change its user).
 *
 * A box for one command: descriptor 3 is a connection. Init waits for messages (wire/wire.h) and
 * for children; when the connection closes or the command has ended, init exits, and the kernel
 * kills everything in the box with it.
 *
 * A live box: descriptor 3 can listen. For each connection init clones a reaper, which shares its
 * memory but not its descriptors and serves that connection as above. As a subreaper it keeps every
 * process that its command starts below itself, whatever they do, so that they can all be found and
 * killed when the client goes away. Init's own children are reapers only: what else comes to it
 * has lost its reaper, and is killed.
 *
 * A command is started with a vfork-style clone: the child shares this memory until it execs, so a
 * failure is simply left for the parent to read.
 *
 * No libc: a glibc start costs more than the rest of the box, and an idle init must cost the
 * machine a few pages only.
 */
#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <linux/capability.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/landlock.h"
#include "base/limits.h"
#include "base/sys.h"
#include "wire/wire.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif
#define SOCKET_SCM_RIGHTS   1
#define SOCKET_SOL          1
#define SOCKET_CMSG_CLOEXEC 0x40000000
#define SOCKET_NOSIGNAL     0x4000
#define SFD_FLAGS           (02000000 | 04000) /* close-on-exec, non-blocking */
#define PROGRAM_FD          3
#define DEFAULT_PATH        "/usr/local/bin:/usr/bin:/bin"

struct iovec_ {
    void *base;
    unsigned long len;
};
struct msghdr_ {
    void *name;
    unsigned int namelen;
    struct iovec_ *iov;
    unsigned long iovlen;
    void *control;
    unsigned long controllen;
    unsigned int flags;
};
struct cmsg_ {
    unsigned long len;
    int level, type;
    int fds[WIRE_FD_COUNT];
};
struct winsize_ {
    unsigned short rows, cols, x, y;
};

/* Used only until a command is executed; the pages are given back then. */
struct scratch {
    char stack[8192];
    char path[LIMIT_PATH];
} __attribute__((aligned(4096)));

/* One command and whoever asked for it. */
struct command {
    int conn;    /* -1: the client is gone, and may be */
    int signals; /* tells of children */
    int pid;     /* the command, 0 before and after it */
    unsigned int flags;
    bool live;  /* this is a reaper, not init */
    bool begun; /* a command was started: when no process is left, that is the end */
    /* What the child needs. */
    char **argv, **envp;
    const char *cwd, *workspace;
    int landlock;
    unsigned int uid, gid;
    int fds[WIRE_FD_COUNT];
    int master, slave;
    struct scratch *scratch;
    /* What the child leaves behind when it cannot execute. */
    volatile int fail_sys, fail_at;
};

/* A process that serves one connection of a live box. Freed by init when it has ended. */
struct reaper {
    struct scratch scratch;
    char stack[8192];
    struct reaper *next;
    int pid, conn, signals;
};

static struct reaper *reapers;
static struct scratch only_scratch;

/* gcc turns loops and initialisers into calls to these, libc or not. */
void *memset(void *p, int c, size_t n);
void *memcpy(void *to, const void *from, size_t n);
void init_main(long *stack);

void *memset(void *p, int c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((volatile char *)p)[i] = (char)c;
    return p;
}

void *memcpy(void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

static __attribute__((noreturn)) void end(int status)
{
    for (;;)
        sys_call(__NR_exit_group, status);
}

static void send_reply(const struct command *c, struct wire_reply *r, int fd)
{
    struct iovec_ iov = {r, sizeof(*r)};
    struct cmsg_ cm = {.len = 16 + sizeof(int), .level = SOCKET_SOL, .type = SOCKET_SCM_RIGHTS};
    struct msghdr_ m = {.iov = &iov, .iovlen = 1};

    if (fd >= 0) {
        cm.fds[0] = fd;
        m.control = &cm;
        m.controllen = 24; /* CMSG_SPACE of one descriptor */
    }
    sys_call(__NR_sendmsg, c->conn, &m, SOCKET_NOSIGNAL);
}

static void reply_failed(struct command *c, int sys, int at)
{
    struct wire_reply r = {.type = WIRE_FAILED, .sys = sys, .at = at};

    send_reply(c, &r, -1);
    if (c->live || (c->flags & WIRE_ONE_SHOT))
        end(0);
}

/* ---- the child, between clone and exec ---- */

static __attribute__((noreturn)) void child_fail(struct command *c, long r, int at)
{
    c->fail_sys = (int)-r;
    c->fail_at = at;
    end(127);
}

/* As execvp, but never through a shell: a file without a known format is an error, not a script. */
static long exec_in_path(struct command *c)
{
    char *full = c->scratch->path;
    const char *path = DEFAULT_PATH;
    long r, worst = -2; /* ENOENT */

    for (char **e = c->envp; *e; e++)
        if ((*e)[0] == 'P' && (*e)[1] == 'A' && (*e)[2] == 'T' && (*e)[3] == 'H' && (*e)[4] == '=')
            path = *e + 5;
    for (;;) {
        size_t n = 0, m = sys_length(c->argv[0]);

        while (path[n] && path[n] != ':')
            n++;
        if (n + m + 2 <= sizeof(c->scratch->path)) {
            memcpy(full, path, n);
            full[n] = '/';
            memcpy(full + n + (n > 0), c->argv[0], m + 1);
            r = sys_call(__NR_execve, full, c->argv, c->envp);
            if (r != -2 && r != -20) /* ENOENT, ENOTDIR: look further, keep any better reason */
                worst = r;
            if (r != -2 && r != -20 && r != -13)
                return r;
        }
        if (!path[n])
            return worst;
        path += n + 1;
    }
}

static long exec_command(struct command *c)
{
    if (c->flags & WIRE_PROGRAM)
        return sys_call(__NR_execveat, PROGRAM_FD, "", c->argv, c->envp, AT_EMPTY_PATH);
    for (const char *p = c->argv[0]; *p; p++)
        if (*p == '/')
            return sys_call(__NR_execve, c->argv[0], c->argv, c->envp);
    return exec_in_path(c);
}

/*
 * The user of the command; init's few capabilities end here, in all five sets, and with them the
 * memory that is still shared can be read by nobody (a change of user may have changed that).
 */
static long become(const struct command *c)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    long r = 0;

    for (int cap = 0; cap <= WIRE_LAST_CAP; cap++) /* an error: it was not there */
        sys_call(__NR_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);
    if (c->flags & WIRE_USER) {
        r = sys_call(__NR_setgroups, 0, 0);
        if (r >= 0)
            r = sys_call(__NR_setresgid, c->gid, c->gid, c->gid);
        if (r >= 0)
            r = sys_call(__NR_setresuid, c->uid, c->uid, c->uid);
    }
    if (r >= 0)
        r = sys_call(__NR_capset, &head, none);
    sys_call(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    return r;
}

static int child_main(void *arg)
{
    struct command *c = arg;
    const char *const writable[] = {c->flags & WIRE_READ_ONLY ? NULL : c->workspace, NULL};
    unsigned long none = 0;
    long r;

    sys_call(__NR_rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof(none));
    sys_call(__NR_setsid);
    if (c->slave >= 0) {
        sys_call(__NR_ioctl, c->slave, TIOCSCTTY, 0);
        for (int i = 0; i < 3; i++)
            sys_call(__NR_dup3, c->slave, i, 0);
    } else {
        for (int i = 0; i < 3; i++)
            if (c->fds[WIRE_FD_STDIN + i] >= 0)
                sys_call(__NR_dup3, c->fds[WIRE_FD_STDIN + i], i, 0);
    }
    if (c->flags & WIRE_PROGRAM)
        sys_call(__NR_dup3, c->fds[WIRE_FD_PROGRAM], PROGRAM_FD, O_CLOEXEC);
    sys_call(__NR_close_range, c->flags & WIRE_PROGRAM ? PROGRAM_FD + 1 : 3, ~0U, 0);
    if (c->live) {
        r = become(c);
        if (r < 0)
            child_fail(c, r, WIRE_AT_USER);
    }
    if (c->cwd[0]) {
        r = sys_call(__NR_chdir, c->cwd);
        if (r < 0)
            child_fail(c, r, WIRE_AT_CHDIR);
    }
    if (c->landlock) {
        r = landlock_restrict(c->landlock, writable);
        if (r < 0)
            child_fail(c, r, WIRE_AT_LANDLOCK);
    }
    child_fail(c, exec_command(c), WIRE_AT_EXEC);
}

/* ---- starting a command ---- */

static long map(size_t bytes, int flags, int fd)
{
    return sys_call(__NR_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | flags, fd, 0);
}

static size_t table_bytes(const struct wire_exec *x)
{
    return ((size_t)x->argc + x->envc + 2) * sizeof(char *);
}

/* Points argv, envp and cwd into the mapped strings. The counts are checked against the bytes. */
static int place_words(struct command *c, const struct wire_exec *x, char *text)
{
    size_t count = (size_t)x->argc + x->envc, at = 0;
    long table;

    if (x->argc == 0 || count > LIMIT_ARG_COUNT || x->bytes == 0 || text[x->bytes - 1])
        return -22; /* EINVAL */
    table = map(table_bytes(x), MAP_ANONYMOUS, -1);
    if (table < 0 && table > -4096)
        return (int)table;
    c->argv = (char **)table;
    c->envp = c->argv + x->argc + 1;
    for (size_t i = 0; i <= count + 1; i++) {
        if (at >= x->bytes)
            return -22;
        if (i == count)
            c->cwd = text + at;
        else if (i == count + 1)
            c->workspace = text + at;
        else
            c->argv[i < x->argc ? i : i + 1] = text + at;
        at += sys_length(text + at) + 1;
    }
    return 0;
}

static int open_pty(struct command *c, const struct wire_exec *x)
{
    struct winsize_ w = {x->rows, x->cols, 0, 0};
    int unlock = 0;
    long r;

    r = sys_call(__NR_openat, AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (r < 0)
        return (int)r;
    c->master = (int)r;
    sys_call(__NR_ioctl, c->master, TIOCSPTLCK, &unlock);
    r = sys_call(__NR_ioctl, c->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (r < 0)
        return (int)r;
    c->slave = (int)r;
    if (x->rows)
        sys_call(__NR_ioctl, c->master, TIOCSWINSZ, &w);
    return 0;
}

static void start_child(struct command *c)
{
    struct wire_reply r = {.type = WIRE_STARTED};
    long pid;

    c->fail_sys = 0;
    /* clone, not clone3: that is closed to everything in the box, init included. */
    pid = sys_clone_on(CLONE_VM | CLONE_VFORK | SIGCHLD,
                       c->scratch->stack + sizeof(c->scratch->stack), child_main, c);
    sys_call(__NR_madvise, c->scratch, sizeof(*c->scratch), MADV_DONTNEED);
    if (pid < 0) {
        reply_failed(c, (int)-pid, WIRE_AT_FORK);
        return;
    }
    if (c->fail_sys) {
        reply_failed(c, c->fail_sys, c->fail_at);
        return;
    }
    c->pid = (int)pid;
    c->begun = true;
    /* Otherwise the end is news enough: every message here delays the command. */
    if (c->master >= 0 || (c->flags & WIRE_DETACH)) {
        r.pid = c->pid;
        send_reply(c, &r, c->master);
    }
}

static void on_exec(struct command *c, const struct wire_exec *x, int *fds)
{
    long text;
    int r;

    c->master = c->slave = -1;
    c->argv = NULL;
    c->flags = x->flags;
    c->landlock = (int)x->landlock;
    c->uid = x->uid;
    c->gid = x->gid;
    for (int i = 0; i < WIRE_FD_COUNT; i++)
        c->fds[i] = fds[i];
    text = x->bytes > LIMIT_ARG_BYTES + 2 * LIMIT_PATH ? -7 : map(x->bytes, 0, fds[WIRE_FD_ARGS]);
    r = text < 0 && text > -4096 ? (int)text : place_words(c, x, (char *)text);
    if (r < 0) {
        reply_failed(c, -r, WIRE_AT_ARGS);
    } else if ((x->flags & WIRE_PTY) && (r = open_pty(c, x)) < 0) {
        reply_failed(c, -r, WIRE_AT_PTY);
    } else {
        start_child(c);
    }
    for (int i = 0; i < WIRE_FD_COUNT; i++)
        sys_close_fd(&c->fds[i]);
    sys_close_fd(&c->master);
    sys_close_fd(&c->slave);
    if (text > 0)
        sys_call(__NR_munmap, text, x->bytes);
    if (c->argv) /* both were the child's business: an idle init is a few pages */
        sys_call(__NR_munmap, c->argv, table_bytes(x));
}

/* ---- killing all that a command has started ---- */

struct process {
    int pid, parent;
    bool ours, halted; /* halted: stopped or dead, it starts nothing any more */
};

static int number(const char *s)
{
    int n = 0;

    for (; *s >= '0' && *s <= '9'; s++)
        n = 10 * n + (*s - '0');
    return n;
}

static bool read_process(const char *name, struct process *ret)
{
    char text[512], path[32] = "/proc/";
    size_t n = 6;
    long fd, len;
    char *p;

    for (; *name && n < sizeof(path) - 6; name++)
        path[n++] = *name;
    memcpy(path + n, "/stat", 6);
    fd = sys_call(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    len = sys_call(__NR_read, fd, text, sizeof(text) - 1);
    sys_call(__NR_close, fd);
    if (len <= 0)
        return false;
    text[len] = 0;
    /* "pid (name) S parent": the name may hold anything, so from its last ')' on. */
    for (p = text + len - 1; p > text && *p != ')'; p--)
        ;
    *ret = (struct process){.pid = number(text)};
    if (p == text || len - (p - text) < 5)
        return false;
    ret->halted = p[2] == 'T' || p[2] == 'Z' || p[2] == 'X';
    ret->parent = number(p + 4);
    return true;
}

static bool is_reaper(int pid)
{
    for (const struct reaper *r = reapers; r; r = r->next)
        if (r->pid == pid)
            return true;
    return false;
}

/*
 * All of them. A child of top that runs is stopped as soon as it is seen: one that forks and exits,
 * again and again, is always such a child, and gone before a whole list is made.
 */
static size_t list_processes(struct process *all, size_t max, int top)
{
    long fd = sys_call(__NR_openat, AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n;
    char buf[2048] __attribute__((aligned(8)));
    size_t count = 0;

    while (fd >= 0 && (n = sys_call(__NR_getdents64, fd, buf, sizeof(buf))) > 0) {
        for (long at = 0; at < n;) {
            const char *name = buf + at + 19; /* struct linux_dirent64 */
            unsigned short len;

            memcpy(&len, buf + at + 16, sizeof(len));
            if (*name >= '1' && *name <= '9' && count < max && read_process(name, &all[count])) {
                const struct process *p = &all[count++];

                if (p->parent == top && !p->halted && !(top == 1 && is_reaper(p->pid)))
                    sys_call(__NR_kill, p->pid, SIGSTOP);
            }
            at += len;
        }
    }
    if (fd >= 0)
        sys_call(__NR_close, fd);
    return count;
}

/* Marks what descends from top, reapers apart; how many there are. */
static size_t mark_below(struct process *all, size_t n, int top)
{
    size_t marked = 0, before;

    do {
        before = marked;
        for (size_t i = 0; i < n; i++) {
            bool ours = all[i].parent == top && !(top == 1 && is_reaper(all[i].pid));

            for (size_t k = 0; k < n && !ours && all[i].parent != top; k++)
                ours = all[k].ours && all[k].pid == all[i].parent;
            if (ours && !all[i].ours) {
                all[i].ours = true;
                marked++;
            }
        }
    } while (marked != before);
    return marked;
}

static void nap(long nsec)
{
    struct {
        long sec, nsec;
    } t = {0, nsec};

    sys_call(__NR_nanosleep, &t, 0);
}

static void take_dead(struct command *c);

/*
 * First everything is stopped, round after round until no round finds one that runs: a process that
 * is stopped starts no other. Then all are killed together.
 */
static void kill_below(struct command *c, int top, int rounds)
{
    const size_t max = LIMIT_KILL_TABLE;
    long table = map(max * sizeof(struct process), MAP_ANONYMOUS, -1);
    struct process *all = (struct process *)table;

    if (table < 0 && table > -4096)
        return;
    for (int round = 0; round < rounds; round++) {
        size_t n = list_processes(all, max, top), running = 0;

        if (mark_below(all, n, top) == 0)
            break;
        for (size_t i = 0; i < n; i++)
            running += all[i].ours && !all[i].halted;
        for (size_t i = 0; i < n; i++)
            if (all[i].ours)
                sys_call(__NR_kill, all[i].pid, running && round % 32 != 31 ? SIGSTOP : SIGKILL);
        if (c)
            take_dead(c);
        else
            while (sys_call(__NR_wait4, -1, 0, WNOHANG, 0) > 0)
                ;
        if (round > 1)
            nap(round < 64 ? 100000 : 5000000);
    }
    sys_call(__NR_munmap, table, max * sizeof(struct process));
}

/* ---- serving one connection ---- */

static void on_end(struct command *c, int status, const struct rusage *u)
{
    struct wire_reply r = {.type = WIRE_EXITED, .pid = c->pid, .status = status};

    r.cpu_usec = (uint64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000 +
                 (uint64_t)(u->ru_utime.tv_usec + u->ru_stime.tv_usec);
    r.max_rss_kib = (uint64_t)u->ru_maxrss;
    c->pid = 0;
    if (c->conn >= 0)
        send_reply(c, &r, -1);
    if (c->flags & WIRE_ONE_SHOT)
        end(0);
}

static void take_dead(struct command *c)
{
    struct rusage u;
    int status;
    long pid;

    while ((pid = sys_call(__NR_wait4, -1, &status, WNOHANG, &u)) > 0)
        if (pid == c->pid)
            on_end(c, status, &u);
    if (pid == -10 && c->live && c->begun && !c->pid) /* ECHILD: nothing is left */
        end(0);
}

static void kill_all(struct command *c)
{
    if (!c->live || !c->begun)
        end(0);
    kill_below(c, (int)sys_call(__NR_getpid), LIMIT_KILL_ROUNDS);
    end(0);
}

/* Whoever asked is gone. What may live on, does; everything else ends now. */
static void on_hangup(struct command *c)
{
    bool may_stay = c->live && ((c->pid && (c->flags & WIRE_DETACH)) ||
                                (!c->pid && (c->flags & (WIRE_LEAVE | WIRE_DETACH))));

    if (!may_stay)
        kill_all(c);
    sys_close_fd(&c->conn);
}

static void on_message(struct command *c)
{
    union {
        unsigned int type;
        struct wire_exec exec;
        struct wire_signal signal;
    } msg;
    struct cmsg_ cm = {0};
    struct iovec_ iov = {&msg, sizeof(msg)};
    struct msghdr_ m = {.iov = &iov, .iovlen = 1, .control = &cm, .controllen = sizeof(cm)};
    long n = sys_call(__NR_recvmsg, c->conn, &m, SOCKET_CMSG_CLOEXEC);
    int fds[WIRE_FD_COUNT] = {-1, -1, -1, -1, -1};

    if (n == -4) /* EINTR */
        return;
    if (n <= 0) {
        on_hangup(c);
        return;
    }
    if (m.controllen >= 16 && cm.type == SOCKET_SCM_RIGHTS)
        for (size_t i = 0; i < (cm.len - 16) / sizeof(int) && i < WIRE_FD_COUNT; i++)
            fds[i] = cm.fds[i];
    if (n == sizeof(struct wire_exec) && msg.type == WIRE_EXEC && fds[WIRE_FD_ARGS] >= 0 &&
        !c->pid) {
        on_exec(c, &msg.exec, fds);
        return;
    }
    if (n == sizeof(struct wire_signal) && msg.type == WIRE_SIGNAL && c->pid > 0)
        sys_call(__NR_kill, -c->pid, msg.signal.signal);
    if (n == sizeof(struct wire_signal) && msg.type == WIRE_KILL)
        kill_all(c);
    for (int i = 0; i < WIRE_FD_COUNT; i++)
        sys_close_fd(&fds[i]);
}

static void drain_signals(int fd)
{
    char info[128];

    sys_call(__NR_read, fd, info, sizeof(info));
}

static __attribute__((noreturn)) void serve(struct command *c)
{
    for (;;) {
        struct pollfd p[2] = {{.fd = c->conn, .events = POLLIN},
                              {.fd = c->signals, .events = POLLIN}};

        sys_call(__NR_ppoll, p, 2, 0, 0, 0);
        if (p[1].revents) {
            drain_signals(c->signals);
            take_dead(c);
        }
        if (p[0].revents && c->conn >= 0)
            on_message(c);
    }
}

/* ---- a live box ---- */

static int reaper_main(void *arg)
{
    struct reaper *r = arg;
    struct command c = {
        .conn = r->conn, .signals = r->signals, .live = true, .scratch = &r->scratch};

    sys_call(__NR_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    sys_call(__NR_close, WIRE_CONTROL_FD);
    serve(&c);
}

static void on_connection(int signals)
{
    long conn = sys_call(__NR_accept4, WIRE_CONTROL_FD, 0, 0, O_CLOEXEC), area;
    struct reaper *r;

    if (conn < 0)
        return;
    area = map(sizeof(*r), MAP_ANONYMOUS, -1);
    if (!(area < 0 && area > -4096)) {
        r = (struct reaper *)area;
        r->conn = (int)conn;
        r->signals = signals;
        r->pid = (int)sys_clone_on(CLONE_VM | SIGCHLD, r->stack + sizeof(r->stack), reaper_main, r);
        r->next = reapers;
        reapers = r;
        if (r->pid < 0) {
            reapers = r->next;
            sys_call(__NR_munmap, area, sizeof(*r));
        }
    }
    sys_call(__NR_close, conn); /* without a reaper: the client sees the end at once */
}

/* Still, that is: a pause stops init as well, and what it hears of afterwards may be over. */
static bool is_stopped(int pid)
{
    char text[12], *name = text + 11;
    struct process p;

    *name = 0;
    for (; pid; pid /= 10)
        *--name = (char)('0' + pid % 10);
    return read_process(name, &p) && p.halted;
}

/* More children than reapers: one ended without having killed its command. */
static bool has_strays(void)
{
    long fd = sys_call(__NR_openat, AT_FDCWD, "/proc/thread-self/children", O_RDONLY | O_CLOEXEC),
         n;
    char text[256];
    int children = 0;

    if (fd < 0)
        return false;
    n = sys_call(__NR_read, fd, text, sizeof(text));
    sys_call(__NR_close, fd);
    for (long i = 0; i < n; i++)
        children += text[i] == ' ';
    for (const struct reaper *r = reapers; r; r = r->next)
        children--;
    return children > 0;
}

static void take_reapers(void)
{
    bool lost = false;
    int status;
    long pid;

    while ((pid = sys_call(__NR_wait4, -1, &status, WNOHANG | WUNTRACED, 0)) > 0) {
        struct reaper **at = &reapers, *r;

        if ((status & 0xff) == 0x7f) {
            if (is_stopped((int)pid)) /* by a command of the same user: it is of no use any more */
                sys_call(__NR_kill, pid, SIGKILL);
            continue;
        }

        while ((r = *at) && r->pid != pid)
            at = &r->next;
        lost = lost || status || !r; /* it was killed, or this is somebody who had none */
        if (!r)
            continue;
        *at = r->next;
        sys_call(__NR_munmap, r, sizeof(*r));
    }
    if (lost || has_strays())
        kill_below(NULL, 1, LIMIT_ORPHAN_ROUNDS);
}

static __attribute__((noreturn)) void serve_live(int signals)
{
    struct pollfd p[2] = {{.fd = WIRE_CONTROL_FD, .events = POLLIN},
                          {.fd = signals, .events = POLLIN}};

    for (;;) {
        sys_call(__NR_ppoll, p, 2, 0, 0, 0);
        if (p[1].revents) {
            drain_signals(signals);
            take_reapers();
        }
        if (p[0].revents)
            on_connection(signals);
        p[0].revents = p[1].revents = 0;
    }
}

/* When memory is gone, the kernel's first choice is this box. Inherited by every command. */
static void be_first_to_go(void)
{
    long fd = sys_call(__NR_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    sys_call(__NR_write, fd, "1000", 4);
    sys_call(__NR_close, fd);
}

/*
 * The other use of this program: outside a box, waiting beside the one who made it. When that
 * process is gone, even by SIGKILL, the box's empty cgroups are still there, and somebody has to
 * take them away. Descriptor 3 is a pipe that ends with the maker, 4 and up are the folders,
 * argv[1] the name in them.
 */
static __attribute__((noreturn)) void sweep_after(const char *name)
{
    char byte;

    while (sys_call(__NR_read, 3, &byte, 1) == -4)
        ;
    for (int fd = 4; fd < 8; fd++)
        for (int i = 0; i < 400 && sys_call(__NR_unlinkat, fd, name, AT_REMOVEDIR) == -16;
             i++) /* EBUSY */
            nap(5000000);
    end(0);
}

__attribute__((noreturn, used)) void init_main(long *stack)
{
    struct command c = {.conn = WIRE_CONTROL_FD, .scratch = &only_scratch};
    unsigned long chld = 1UL << (SIGCHLD - 1);

    if (stack[0] > 1)
        sweep_after((const char *)stack[2]);
    be_first_to_go(); /* before the next line, after which this /proc folder is not ours any more */
    sys_call(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    sys_call(__NR_rt_sigprocmask, SIG_BLOCK, &chld, 0, sizeof(chld));
    c.signals = (int)sys_call(__NR_signalfd4, -1, &chld, sizeof(chld), SFD_FLAGS);
    /* A connection cannot listen; a live box's socket can, and from here on it tells who init is.
     */
    if (sys_call(__NR_listen, WIRE_CONTROL_FD, LIMIT_BACKLOG) == 0)
        serve_live(c.signals);
    serve(&c);
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall "
        "init_main\n");
#else
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\tmov x0, sp\n\tbl init_main\n");
#endif
