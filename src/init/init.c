/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clawden-init: process 1 of a box.
 *
 * Theory of operation. Started by execveat from a sealed memfd with nothing open but /dev/null on
 * 0-2 and its control socket on 3; the belts of the box are already on it (no capabilities,
 * seccomp), so it can do no more than the commands it starts, which get Landlock on top. It waits
 * for messages (wire/wire.h) and for children. A command is started with a vfork-style clone: the
 * child shares this memory until it execs, so a failure is simply left in `failure` for the parent
 * to read. When the control socket closes, init exits and the kernel kills everything in the box
 * with it; so does the end of a one-shot command.
 *
 * No libc: a glibc start costs more than the rest of the box, and an idle init must cost the
 * machine a few pages only.
 */
#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>
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

/* One command: what the child needs, and what it leaves behind when it cannot execute. */
static struct command {
    char **argv, **envp;
    const char *cwd, *workspace;
    int landlock;
    int fds[WIRE_FD_COUNT];
    int master, slave;
    int pid;
    unsigned int flags;
} cmd;
static volatile struct {
    int sys, at;
} failure;
/* Used only until a command is executed; the pages are given back then. */
static struct {
    char stack[8192];
    char path[LIMIT_PATH];
} scratch __attribute__((aligned(4096)));

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

static void send_reply(struct wire_reply *r, int fd)
{
    struct iovec_ iov = {r, sizeof(*r)};
    struct cmsg_ c = {.len = 16 + sizeof(int), .level = SOCKET_SOL, .type = SOCKET_SCM_RIGHTS};
    struct msghdr_ m = {.iov = &iov, .iovlen = 1};

    if (fd >= 0) {
        c.fds[0] = fd;
        m.control = &c;
        m.controllen = 24; /* CMSG_SPACE of one descriptor */
    }
    sys_call(__NR_sendmsg, WIRE_CONTROL_FD, &m, SOCKET_NOSIGNAL);
}

static void reply_failed(int sys, int at)
{
    struct wire_reply r = {.type = WIRE_FAILED, .sys = sys, .at = at};

    send_reply(&r, -1);
    if (cmd.flags & WIRE_ONE_SHOT)
        end(0);
}

/* ---- the child, between clone and exec ---- */

static __attribute__((noreturn)) void child_fail(long r, int at)
{
    failure.sys = (int)-r;
    failure.at = at;
    end(127);
}

/* As execvp, but never through a shell: a file without a known format is an error, not a script. */
static long exec_in_path(const char *name)
{
    char *full = scratch.path;
    const char *path = DEFAULT_PATH;
    long r, worst = -2; /* ENOENT */

    for (char **e = cmd.envp; *e; e++)
        if ((*e)[0] == 'P' && (*e)[1] == 'A' && (*e)[2] == 'T' && (*e)[3] == 'H' && (*e)[4] == '=')
            path = *e + 5;
    for (;;) {
        size_t n = 0, m = sys_length(name);

        while (path[n] && path[n] != ':')
            n++;
        if (n + m + 2 <= sizeof(scratch.path)) {
            memcpy(full, path, n);
            full[n] = '/';
            memcpy(full + n + (n > 0), name, m + 1);
            r = sys_call(__NR_execve, full, cmd.argv, cmd.envp);
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

static long exec_command(void)
{
    for (const char *p = cmd.argv[0]; *p; p++)
        if (*p == '/')
            return sys_call(__NR_execve, cmd.argv[0], cmd.argv, cmd.envp);
    return exec_in_path(cmd.argv[0]);
}

static int child_main(void *unused)
{
    unsigned long none = 0;
    long r;

    (void)unused;
    sys_call(__NR_rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof(none));
    sys_call(__NR_setsid);
    if (cmd.slave >= 0) {
        sys_call(__NR_ioctl, cmd.slave, TIOCSCTTY, 0);
        for (int i = 0; i < 3; i++)
            sys_call(__NR_dup3, cmd.slave, i, 0);
    } else {
        for (int i = 0; i < 3; i++)
            if (cmd.fds[WIRE_FD_STDIN + i] >= 0)
                sys_call(__NR_dup3, cmd.fds[WIRE_FD_STDIN + i], i, 0);
    }
    sys_call(__NR_close_range, 3, ~0U, 0);
    if (cmd.cwd[0]) {
        r = sys_call(__NR_chdir, cmd.cwd);
        if (r < 0)
            child_fail(r, WIRE_AT_CHDIR);
    }
    if (cmd.landlock) {
        r = landlock_restrict(cmd.landlock, cmd.workspace, !(cmd.flags & WIRE_READ_ONLY));
        if (r < 0)
            child_fail(r, WIRE_AT_LANDLOCK);
    }
    child_fail(exec_command(), WIRE_AT_EXEC);
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
static int place_words(const struct wire_exec *x, char *text)
{
    size_t count = (size_t)x->argc + x->envc, at = 0;
    long table;

    if (x->argc == 0 || count > LIMIT_ARG_COUNT || x->bytes == 0 || text[x->bytes - 1])
        return -22; /* EINVAL */
    table = map(table_bytes(x), MAP_ANONYMOUS, -1);
    if (table < 0 && table > -4096)
        return (int)table;
    cmd.argv = (char **)table;
    cmd.envp = cmd.argv + x->argc + 1;
    for (size_t i = 0; i <= count + 1; i++) {
        if (at >= x->bytes)
            return -22;
        if (i == count)
            cmd.cwd = text + at;
        else if (i == count + 1)
            cmd.workspace = text + at;
        else
            cmd.argv[i < x->argc ? i : i + 1] = text + at;
        at += sys_length(text + at) + 1;
    }
    return 0;
}

static int open_pty(const struct wire_exec *x)
{
    struct winsize_ w = {x->rows, x->cols, 0, 0};
    int unlock = 0;
    long r;

    r = sys_call(__NR_openat, AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (r < 0)
        return (int)r;
    cmd.master = (int)r;
    sys_call(__NR_ioctl, cmd.master, TIOCSPTLCK, &unlock);
    r = sys_call(__NR_ioctl, cmd.master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (r < 0)
        return (int)r;
    cmd.slave = (int)r;
    if (x->rows)
        sys_call(__NR_ioctl, cmd.master, TIOCSWINSZ, &w);
    return 0;
}

static void start_child(void)
{
    struct wire_reply r = {.type = WIRE_STARTED};
    long pid;

    failure.sys = 0;
    /* clone, not clone3: that is closed to everything in the box, init included. */
    pid = sys_clone_on(CLONE_VM | CLONE_VFORK | SIGCHLD, scratch.stack + sizeof(scratch.stack),
                       child_main, NULL);
    sys_call(__NR_madvise, &scratch, sizeof(scratch), MADV_DONTNEED);
    if (pid < 0) {
        reply_failed((int)-pid, WIRE_AT_FORK);
        return;
    }
    cmd.pid = (int)pid;
    if (failure.sys) {
        reply_failed(failure.sys, failure.at);
        cmd.pid = 0;
        return;
    }
    if (cmd.master >= 0) { /* else the end is news enough: every message here delays the command */
        r.pid = cmd.pid;
        send_reply(&r, cmd.master);
    }
}

static void on_exec(const struct wire_exec *x, int *fds)
{
    long text;
    int r;

    cmd = (struct command){
        .master = -1, .slave = -1, .flags = x->flags, .landlock = (int)x->landlock};
    for (int i = 0; i < WIRE_FD_COUNT; i++)
        cmd.fds[i] = fds[i];
    text = x->bytes > LIMIT_ARG_BYTES + 2 * LIMIT_PATH ? -7 : map(x->bytes, 0, fds[WIRE_FD_ARGS]);
    r = text < 0 && text > -4096 ? (int)text : place_words(x, (char *)text);
    if (r < 0) {
        reply_failed(-r, WIRE_AT_ARGS);
    } else if ((x->flags & WIRE_PTY) && (r = open_pty(x)) < 0) {
        reply_failed(-r, WIRE_AT_PTY);
    } else {
        start_child();
    }
    for (int i = 0; i < WIRE_FD_COUNT; i++)
        sys_close_fd(&cmd.fds[i]);
    sys_close_fd(&cmd.master);
    sys_close_fd(&cmd.slave);
    if (text > 0)
        sys_call(__NR_munmap, text, x->bytes);
    if (cmd.argv) /* both were the child's business: an idle init is a few pages */
        sys_call(__NR_munmap, cmd.argv, table_bytes(x));
    cmd.argv = cmd.envp = NULL;
}

/* ---- the loop ---- */

static void on_message(void)
{
    union {
        unsigned int type;
        struct wire_exec exec;
        struct wire_signal signal;
    } msg;
    struct cmsg_ c = {0};
    struct iovec_ iov = {&msg, sizeof(msg)};
    struct msghdr_ m = {.iov = &iov, .iovlen = 1, .control = &c, .controllen = sizeof(c)};
    long n = sys_call(__NR_recvmsg, WIRE_CONTROL_FD, &m, SOCKET_CMSG_CLOEXEC);
    int fds[WIRE_FD_COUNT] = {-1, -1, -1, -1};

    if (n == -4) /* EINTR */
        return;
    if (n <= 0) /* whoever owned this box is gone */
        end(0);
    if (m.controllen >= 16 && c.type == SOCKET_SCM_RIGHTS)
        for (size_t i = 0; i < (c.len - 16) / sizeof(int) && i < WIRE_FD_COUNT; i++)
            fds[i] = c.fds[i];
    if (n == sizeof(struct wire_exec) && msg.type == WIRE_EXEC && fds[WIRE_FD_ARGS] >= 0 &&
        !cmd.pid) {
        on_exec(&msg.exec, fds);
        return;
    }
    if (n == sizeof(struct wire_signal) && msg.type == WIRE_SIGNAL && cmd.pid > 0)
        sys_call(__NR_kill, -cmd.pid, msg.signal.signal);
    for (int i = 0; i < WIRE_FD_COUNT; i++)
        sys_close_fd(&fds[i]);
}

static void reap(int signals)
{
    struct rusage u;
    char info[128];
    int status;
    long pid;

    sys_call(__NR_read, signals, info, sizeof(info));
    while ((pid = sys_call(__NR_wait4, -1, &status, WNOHANG, &u)) > 0) {
        struct wire_reply r = {.type = WIRE_EXITED, .pid = (int)pid, .status = status};

        if (pid != cmd.pid)
            continue;
        r.cpu_usec = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
                     (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
        r.max_rss_kib = (uint64_t)u.ru_maxrss;
        cmd.pid = 0;
        send_reply(&r, -1);
        if (cmd.flags & WIRE_ONE_SHOT)
            end(0);
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
    struct {
        long sec, nsec;
    } pause = {0, 5000000};
    char byte;

    while (sys_call(__NR_read, 3, &byte, 1) == -4)
        ;
    for (int fd = 4; fd < 8; fd++)
        for (int i = 0; i < 400 && sys_call(__NR_unlinkat, fd, name, AT_REMOVEDIR) == -16;
             i++) /* EBUSY */
            sys_call(__NR_nanosleep, &pause, 0);
    end(0);
}

__attribute__((noreturn, used)) void init_main(long *stack)
{
    unsigned long chld = 1UL << (SIGCHLD - 1);
    struct pollfd p[2] = {{.fd = WIRE_CONTROL_FD, .events = POLLIN}, {.events = POLLIN}};

    if (stack[0] > 1)
        sweep_after((const char *)stack[2]);
    be_first_to_go(); /* before the next line, after which this /proc folder is not ours any more */
    sys_call(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    sys_call(__NR_rt_sigprocmask, SIG_BLOCK, &chld, 0, sizeof(chld));
    p[1].fd = (int)sys_call(__NR_signalfd4, -1, &chld, sizeof(chld), SFD_FLAGS);
    for (;;) {
        sys_call(__NR_ppoll, p, 2, 0, 0, 0);
        if (p[1].revents)
            reap(p[1].fd);
        if (p[0].revents)
            on_message();
        p[0].revents = p[1].revents = 0;
    }
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall "
        "init_main\n");
#else
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\tmov x0, sp\n\tbl init_main\n");
#endif
