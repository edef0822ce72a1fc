/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe: what an attacker does inside a box, one function per probe of the catalogue.
 *
 *     probe ID [arguments]
 *
 * prints one line: a verdict, and what was seen. A function notes every thing it could do with
 * escape() or leak() and every refusal with held(); the worst note is the verdict. A probe that
 * has checked nothing is INCONCLUSIVE, and so is one that could not set its attack up (unsure()).
 *
 * It is linked statically, so that it also runs in an image that holds nothing else. Nothing is
 * ever written to a file of the kernel: those are opened at most. The same program runs outside
 * a box as well (the "native oracle" of harness.py): there the probes must report what they find.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- verdicts ---- */

static char notes[3][4096];
enum { NOTE_ESCAPE, NOTE_LEAK, NOTE_UNSURE };
static unsigned checks, noted[3];

static void note(int kind, const char *fmt, va_list ap)
{
    size_t n = strlen(notes[kind]);

    noted[kind]++;
    if (n < sizeof(notes[kind]) - 200) {
        n += (size_t)snprintf(notes[kind] + n, sizeof(notes[kind]) - n, "%s", n ? "; " : "");
        vsnprintf(notes[kind] + n, sizeof(notes[kind]) - n, fmt, ap);
    }
}

#define NOTER(name, kind)                                                        \
    __attribute__((format(printf, 1, 2))) static void name(const char *fmt, ...) \
    {                                                                            \
        va_list ap;                                                              \
                                                                                 \
        va_start(ap, fmt);                                                       \
        note(kind, fmt, ap);                                                     \
        va_end(ap);                                                              \
    }
NOTER(escape, NOTE_ESCAPE)
NOTER(leak, NOTE_LEAK)
NOTER(unsure, NOTE_UNSURE)

static void held(void)
{
    checks++;
}

/* r of a call that must fail, whoever refuses it. */
static void must_fail(long r, const char *what)
{
    if (r < 0)
        held();
    else
        escape("%s worked (%ld)", what, r);
}

static int finish(const char *good)
{
    for (char *p = notes[0]; p < notes[0] + sizeof(notes); p++)
        if (*p == '\n')
            *p = ' ';
    if (noted[NOTE_ESCAPE])
        printf("ESCAPE %u: %s%s%s\n", noted[NOTE_ESCAPE], notes[NOTE_ESCAPE],
               noted[NOTE_LEAK] ? "; and LEAK: " : "", notes[NOTE_LEAK]);
    else if (noted[NOTE_LEAK])
        printf("LEAK %u: %s\n", noted[NOTE_LEAK], notes[NOTE_LEAK]);
    else if (noted[NOTE_UNSURE])
        printf("INCONCLUSIVE %s\n", notes[NOTE_UNSURE]);
    else if (!checks)
        printf("INCONCLUSIVE nothing was checked\n");
    else
        printf("%s %u checks\n", good, checks);
    return 0;
}

/* ---- helpers ---- */

/* No return address on the stack: vfork by number must be able to come back twice. */
static inline long raw6(long nr, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    long r;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;

    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return r;
#else
    long r = syscall(nr, a, b, c, d, e, f);

    return r < 0 ? -errno : r;
#endif
}

static ssize_t slurp(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n, all = 0;

    if (fd < 0)
        return -errno;
    while ((size_t)all < size - 1 && (n = read(fd, buf + all, size - 1 - (size_t)all)) > 0)
        all += n;
    buf[all] = 0;
    close(fd);
    return all;
}

/* Runs f in a child under an alarm; its wait status, or -1. */
static int in_child(void (*f)(void *), void *arg)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        alarm(3);
        f(arg);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return status;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool all_digits(const char *s)
{
    if (!*s)
        return false;
    for (; *s; s++)
        if (!isdigit((unsigned char)*s))
            return false;
    return true;
}

static long status_field(const char *pid, const char *key, int base)
{
    char path[64], text[8192], *p;

    snprintf(path, sizeof(path), "/proc/%s/status", pid);
    if (slurp(path, text, sizeof(text)) <= 0 || !(p = strstr(text, key)))
        return -1;
    return (long)strtoull(p + strlen(key), NULL, base);
}

/* ---- A: descriptors ---- */

static void fd_01(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int fd = 0; fd < 70000; fd++) {
        char path[64], to[512] = "";
        ssize_t n;

        if (fcntl(fd, F_GETFD) < 0)
            continue;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        n = readlink(path, to, sizeof(to) - 1);
        if (n < 0)
            unsure("readlink %s: %s", path, strerror(errno));
        else if (fd > 2)
            leak("descriptor %d is open: %s", fd, to);
        else if (strncmp(to, "pipe:", 5) && strcmp(to, "/dev/null") && strncmp(to, "/dev/pts/", 9))
            leak("descriptor %d is %s", fd, to);
        else
            held();
    }
}

/* A script run by whatever /proc/self/exe is at that moment, and every exe opened for writing. */
static void fd_04(int argc, char **argv)
{
    int rounds = argc > 0 ? atoi(argv[0]) : 50;
    int fd = open("magic", O_WRONLY | O_CREAT | O_TRUNC, 0755);

    if (fd < 0 || write(fd, "#!/proc/self/exe\n", 17) != 17) {
        unsure("make the script: %s", strerror(errno));
        return;
    }
    close(fd);
    for (int i = 0; i < rounds; i++) {
        pid_t pid = fork();
        DIR *d;

        if (pid == 0) {
            char *const words[] = {"magic", NULL}, *const none[] = {NULL};

            alarm(2);
            dup2(open("/dev/null", O_WRONLY), 1);
            execve("./magic", words, none);
            _exit(0);
        }
        d = opendir("/proc");
        for (struct dirent *e; d && (e = readdir(d));) {
            char path[300], to[300] = "";
            int x;

            if (!all_digits(e->d_name))
                continue;
            snprintf(path, sizeof(path), "/proc/%s/exe", e->d_name);
            x = open(path, O_WRONLY | O_CLOEXEC);
            if (x < 0) {
                held();
                continue;
            }
            (void)!readlink(path, to, sizeof(to) - 1);
            /* Its own file, not running any more, is the attacker's to write. */
            if (!strstr(to, "/probe") && !strstr(to, "/magic"))
                escape("%s (%s) open for writing", path, to);
            close(x);
        }
        if (d)
            closedir(d);
        waitpid(pid, NULL, 0);
    }
    unlink("magic");
}

/* What 0, 1 and 2 really are. */
static void fd_06(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int fd = 0; fd < 3; fd++) {
        struct stat st, dev;

        if (fstat(fd, &st) < 0) {
            held(); /* closed */
            continue;
        }
        if (S_ISFIFO(st.st_mode) || (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)))
            held();
        else if (S_ISCHR(st.st_mode) && stat("/dev/pts/ptmx", &dev) == 0 && dev.st_dev == st.st_dev)
            held(); /* a terminal of the box's own */
        else
            leak("descriptor %d is a host file: mode %o device %u:%u inode %lu", fd, st.st_mode,
                 major(st.st_dev), minor(st.st_dev), (unsigned long)st.st_ino);
    }
}

/* A pipe given for writing is read, one given for reading is written, through its /proc name. */
static void fd_06b(int argc, char **argv)
{
    char data[4096];
    ssize_t n;
    int fd;

    (void)argc, (void)argv;
    fd = open("/proc/self/fd/2", O_RDONLY | O_NONBLOCK);
    if (fd < 0) {
        held();
    } else if ((n = read(fd, data, sizeof(data) - 1)) > 0 &&
               (data[n] = 0, strstr(data, "earlier words"))) {
        leak("read %zd bytes back from the caller's stderr pipe: %.60s", n, data);
    } else {
        held(); /* a pipe of the box's own: whatever is in it, the box wrote */
    }
    /* Whether this arrives in the caller's pipe is seen from outside. */
    fd = open("/proc/self/fd/0", O_WRONLY | O_NONBLOCK);
    if (fd >= 0)
        (void)!write(fd, "INJECTED", 8);
    held();
}

static void fd_09(int argc, char **argv)
{
    static const char *const sets[] = {"SigBlk:", "SigIgn:", "SigPnd:", "ShdPnd:"};
    mode_t mask = umask(022);

    (void)argc, (void)argv;
    for (size_t i = 0; i < COUNT(sets); i++) {
        long v = status_field("self", sets[i], 16);

        if (v)
            leak("%s %lx", sets[i], (unsigned long)v);
        else
            held();
    }
    if (mask != 022)
        leak("umask %o", mask);
    else
        held();
}

/* ---- B: /proc, /sys, devices ---- */

static void pr_01(int argc, char **argv)
{
    static const char *const files[] = {
        "/proc/kcore",         "/proc/keys",        "/proc/key-users",  "/proc/timer_list",
        "/proc/timer_stats",   "/proc/sched_debug", "/proc/interrupts", "/proc/softirqs",
        "/proc/latency_stats", "/proc/kallsyms",    "/proc/kpagecount", "/proc/kpageflags",
        "/proc/kpagecgroup",   "/proc/slabinfo",    "/proc/kmsg",       "/proc/config.gz",
        "/proc/iomem",         "/proc/ioports",     "/proc/modules",    "/proc/diskstats",
        "/proc/partitions",    "/proc/vmallocinfo", "/proc/zoneinfo",   "/proc/sysrq-trigger"};
    static const char *const folders[] = {
        "/proc/acpi", "/proc/scsi", "/proc/asound",  "/proc/bus",
        "/proc/fs",   "/proc/irq",  "/sys/firmware", "/sys/devices/virtual/powercap",
        "/sys/class", "/sys/kernel"};

    (void)argc, (void)argv;
    for (size_t i = 0; i < COUNT(files); i++) {
        char c;
        int fd = open(files[i], O_RDONLY | O_NONBLOCK);

        if (fd < 0 || read(fd, &c, 1) <= 0)
            held();
        else
            leak("%s can be read", files[i]);
        if (fd >= 0)
            close(fd);
    }
    for (size_t i = 0; i < COUNT(folders); i++) {
        DIR *d = opendir(folders[i]);
        int n = 0;

        for (struct dirent *e; d && (e = readdir(d));)
            n += e->d_name[0] != '.';
        if (n)
            leak("%s has %d entries", folders[i], n);
        else
            held();
        if (d)
            closedir(d);
    }
}

/* Files of its own process folder that a process may write: they concern nobody else. */
static bool is_own_writable(const char *path)
{
    static const char *const own[] = {
        "attr",         "autogroup",    "clear_refs",     "comm",          "coredump_filter",
        "gid_map",      "mem",          "oom_adj",        "oom_score_adj", "projid_map",
        "sched",        "setgroups",    "timens_offsets", "timerslack_ns", "uid_map",
        "children",     "make-it-fail", "fail-nth",       "latency",       "loginuid",
        "seccomp_cache"};
    char copy[512], *p, *last;
    pid_t pid;

    snprintf(copy, sizeof(copy), "%s", path);
    if (strncmp(copy, "/proc/", 6))
        return false;
    /* Anybody may open them; only the task itself may write its own (proc_pid_attr_write). */
    if (strstr(copy, "/attr/"))
        return true;
    /* Likewise: that of another process takes CAP_SYS_NICE to write. */
    if (!strcmp(strrchr(copy, '/'), "/timerslack_ns"))
        return true;
    p = copy + 6;
    pid = (pid_t)strtol(p, &p, 10);
    if (!strncmp(copy + 6, "self/", 5) || !strncmp(copy + 6, "thread-self/", 12))
        p = strchr(copy + 6, '/');
    else if (pid <= 1 || *p != '/')
        return false;
    last = strrchr(p, '/') + 1;
    for (size_t i = 0; i < COUNT(own); i++)
        if (!strcmp(own[i], last))
            return true;
    return false;
}

static unsigned swept;

static int try_write_open(const char *path, const struct stat *st, int type, struct FTW *f)
{
    int fd;

    (void)f;
    if (type != FTW_F || !S_ISREG(st->st_mode))
        return 0;
    /* Descriptors lead back to what is already open, and map_files to what is mapped. */
    if (strstr(path, "/fd/") || strstr(path, "/map_files/"))
        return 0;
    swept++;
    fd = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        held();
        return 0;
    }
    close(fd);
    if (is_own_writable(path))
        held();
    else
        escape("%s can be opened for writing", path);
    return 0;
}

static void pr_03(int argc, char **argv)
{
    struct statvfs v;

    (void)argc, (void)argv;
    nftw("/proc", try_write_open, 32, FTW_PHYS);
    if (swept < 500)
        unsure("only %u files in /proc", swept);
    nftw("/sys", try_write_open, 32, FTW_PHYS);
    /* The ids keep /proc/sys as well; that the belt is on shows in the mount itself. */
    if (statvfs("/proc/sys", &v) < 0)
        unsure("statvfs /proc/sys: %s", strerror(errno));
    else if (!(v.f_flag & ST_RDONLY))
        leak("/proc/sys is not a read-only mount");
    else
        held();
}

static void crash(void *arg)
{
    struct rlimit r = {RLIM_INFINITY, RLIM_INFINITY};

    (void)arg;
    setrlimit(RLIMIT_CORE, &r);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

static void pr_04(int argc, char **argv)
{
    struct rlimit r;
    int status;
    DIR *d;

    (void)argc, (void)argv;
    getrlimit(RLIMIT_CORE, &r);
    if (r.rlim_max)
        leak("RLIMIT_CORE may be raised to %lld", (long long)r.rlim_max);
    status = in_child(crash, NULL);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV)
        unsure("the child did not crash (status %x)", status);
    else if (WCOREDUMP(status))
        escape("a core was dumped");
    else
        held();
    d = opendir(".");
    for (struct dirent *e; d && (e = readdir(d));)
        if (!strncmp(e->d_name, "core", 4))
            leak("%s was left in the workspace", e->d_name);
    if (d)
        closedir(d);
}

/* /dev/null is the null device, whatever the image says, and masks still mask. */
static void pr_05(int argc, char **argv)
{
    struct stat st;

    if (lstat("/dev/null", &st) < 0)
        unsure("stat /dev/null: %s", strerror(errno));
    else if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3))
        escape("/dev/null has mode %o, device %u:%u", st.st_mode, major(st.st_rdev),
               minor(st.st_rdev));
    else
        held();
    pr_01(argc, argv);
}

static void pr_08(int argc, char **argv)
{
    struct statfs fs;
    char text[256];

    (void)argc, (void)argv;
    if (statfs("/proc/self/attr", &fs) < 0 || statfs("/proc", &fs) < 0)
        unsure("statfs /proc: %s", strerror(errno));
    else if (fs.f_type != 0x9fa0)
        escape("/proc is of type %lx", (long)fs.f_type);
    else
        held();
    if (slurp("/proc/self/uid_map", text, sizeof(text)) <= 0 || strstr(text, "FAKE"))
        escape("/proc/self/uid_map is the image's");
    else
        held();
}

static void pr_09(int argc, char **argv)
{
    struct stat own, st;
    char me[16];
    int pids = 0;
    DIR *d = opendir("/proc");

    snprintf(me, sizeof(me), "%d", getpid());
    stat("/", &own);
    for (struct dirent *e; d && (e = readdir(d));) {
        static const char *const links[] = {"root", "cwd", "exe", "ns/mnt", "ns/pid"};
        char path[300], to[512];

        if (!all_digits(e->d_name))
            continue;
        pids++;
        snprintf(path, sizeof(path), "/proc/%s/root", e->d_name);
        if (stat(path, &st) == 0 && (st.st_dev != own.st_dev || st.st_ino != own.st_ino))
            escape("%s is another root", path);
        else
            held();
        if (!strcmp(e->d_name, me))
            continue;
        for (size_t i = 0; i < COUNT(links); i++) {
            ssize_t n;

            snprintf(path, sizeof(path), "/proc/%s/%s", e->d_name, links[i]);
            n = readlink(path, to, sizeof(to) - 1);
            if (n > 0 && !strcmp(e->d_name, "1")) {
                to[n] = 0;
                leak("%s is %s", path, to);
            } else {
                held();
            }
        }
    }
    if (pids > 4)
        leak("%d processes are visible", pids);
    /* Arguments: pids of the host that must mean nothing here. */
    for (int i = 0; i < argc; i++)
        if (kill(atoi(argv[i]), 0) == 0 && atoi(argv[i]) > 10)
            escape("pid %s of the host can be signalled", argv[i]);
        else
            held();
}

/* Arguments: paths that must not be named anywhere. */
static void pr_11(int argc, char **argv)
{
    static const char *const files[] = {
        "/proc/self/mountinfo", "/proc/self/mounts", "/proc/self/mountstats", "/proc/self/cgroup",
        "/proc/self/environ",   "/proc/1/environ",   "/proc/1/cmdline",       "/proc/self/maps",
        "/proc/swaps",          "/proc/locks"};
    static char text[1 << 18];

    for (size_t i = 0; i < COUNT(files); i++) {
        ssize_t n = slurp(files[i], text, sizeof(text));

        for (ssize_t j = 0; j < n; j++)
            if (!text[j])
                text[j] = ' ';
        held();
        for (int k = 0; n > 0 && k < argc; k++)
            if (strstr(text, argv[k]))
                leak("%s names %s", files[i], argv[k]);
    }
    if (slurp("/proc/self/cgroup", text, sizeof(text)) > 0)
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
            char *p = strchr(line, ':');

            p = p ? strchr(p + 1, ':') : NULL;
            /* The name=systemd and v2 hierarchies are not joined; from the namespace they are "/".
             */
            if (p && strcmp(p + 1, "/"))
                leak("cgroup path %s", p + 1);
            else
                held();
        }
}

static void pr_12(int argc, char **argv)
{
    char buf[64];

    (void)argc, (void)argv;
    must_fail(syscall(SYS_syslog, 3, buf, sizeof(buf)), "syslog(3)");
    must_fail(syscall(SYS_syslog, 10, NULL, 0), "syslog(10)");
    must_fail(open("/dev/kmsg", O_RDONLY | O_NONBLOCK), "open /dev/kmsg for reading");
    must_fail(open("/dev/kmsg", O_WRONLY | O_NONBLOCK), "open /dev/kmsg for writing");
    must_fail(open("/proc/kmsg", O_WRONLY | O_NONBLOCK), "open /proc/kmsg for writing");
}

static int look_for_device(const char *path, const struct stat *st, int type, struct FTW *f)
{
    static const char *const good[] = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                       "/dev/urandom", "/dev/tty",  "/dev/ptmx", "/dev/pts/ptmx"};

    (void)type, (void)f;
    if (!S_ISCHR(st->st_mode) && !S_ISBLK(st->st_mode))
        return 0;
    for (size_t i = 0; i < COUNT(good); i++)
        if (!strcmp(path, good[i])) {
            held();
            return 0;
        }
    if (!strncmp(path, "/dev/pts/", 9) && major(st->st_rdev) == 136)
        held();
    else
        leak("device node %s (%u:%u)", path, major(st->st_rdev), minor(st->st_rdev));
    return 0;
}

static void pr_13(int argc, char **argv)
{
    static const struct {
        mode_t type;
        unsigned major, minor;
    } nodes[] = {{S_IFBLK, 8, 0},    {S_IFBLK, 252, 0},  {S_IFBLK, 254, 0},  {S_IFBLK, 7, 0},
                 {S_IFCHR, 1, 1},    {S_IFCHR, 1, 2},    {S_IFCHR, 1, 3},    {S_IFCHR, 1, 11},
                 {S_IFCHR, 10, 200}, {S_IFCHR, 10, 229}, {S_IFCHR, 10, 232}, {S_IFCHR, 10, 237},
                 {S_IFCHR, 4, 64},   {S_IFCHR, 0, 0}};
    static const char *const dirs[] = {".", "/tmp", "/dev/shm", "/run"};

    (void)argc, (void)argv;
    nftw("/dev", look_for_device, 16, FTW_PHYS);
    for (size_t i = 0; i < COUNT(nodes); i++)
        for (size_t j = 0; j < COUNT(dirs); j++) {
            char path[64];

            snprintf(path, sizeof(path), "%s/node%zu", dirs[j], i);
            must_fail(mknod(path, nodes[i].type | 0600, makedev(nodes[i].major, nodes[i].minor)),
                      path);
            must_fail(mknodat(AT_FDCWD, path, nodes[i].type | 0600,
                              makedev(nodes[i].major, nodes[i].minor)),
                      path);
            unlink(path);
        }
}

static void pr_15(int argc, char **argv)
{
    int fd = open("/dev/shm/contain-probe", O_RDWR | O_CREAT, 0600);

    (void)argc, (void)argv;
    if (fd < 0 || ftruncate(fd, 1 << 20) < 0 || write(fd, "x", 1) != 1)
        unsure("make /dev/shm/contain-probe: %s", strerror(errno));
    else
        held();
}

static int look_for_cgroup(const char *path, const struct stat *st, int type, struct FTW *f)
{
    static const char *const names[] = {"release_agent", "notify_on_release",      "cgroup.procs",
                                        "tasks",         "cgroup.subtree_control", "devices.allow"};
    const char *last = strrchr(path, '/') + 1;

    (void)st, (void)f;
    if (type != FTW_F || !strncmp(path, "/proc/", 6))
        return 0;
    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(last, names[i])) {
            int fd = open(path, O_WRONLY | O_CLOEXEC);

            leak("%s exists", path);
            if (fd >= 0) {
                escape("%s can be opened for writing", path);
                close(fd);
            }
        }
    return 0;
}

static void pr_16(int argc, char **argv)
{
    (void)argc, (void)argv;
    nftw("/sys", look_for_cgroup, 16, FTW_PHYS);
    mkdir("cg", 0700);
    must_fail(mount("none", "cg", "cgroup2", 0, NULL), "mount cgroup2");
    must_fail(mount("none", "cg", "cgroup", 0, "pids"), "mount cgroup v1");
    must_fail(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWCGROUP),
              "unshare user, mnt and cgroup");
    must_fail(unshare(CLONE_NEWCGROUP), "unshare cgroup");
    rmdir("cg");
}

static void pr_17(int argc, char **argv)
{
    (void)argc, (void)argv;
    must_fail(syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL), "reboot(CAD_OFF)");
    must_fail(syscall(SYS_swapon, "/nonexistent", 0), "swapon");
    must_fail(syscall(SYS_swapoff, "/nonexistent"), "swapoff");
    must_fail(syscall(SYS_kexec_load, 0, 0, NULL, 0), "kexec_load");
    must_fail(syscall(SYS_acct, NULL), "acct");
    must_fail(syscall(SYS_quotactl, 0, NULL, 0, NULL), "quotactl");
#if defined(__x86_64__)
    must_fail(syscall(SYS_iopl, 3), "iopl");
    must_fail(syscall(SYS_ioperm, 0x80, 1, 1), "ioperm");
    must_fail(syscall(SYS_nfsservctl, 0, NULL, NULL), "nfsservctl");
#endif
    must_fail(open("/proc/sysrq-trigger", O_WRONLY) >= 0 && access("/proc/sysrq-trigger", F_OK) == 0
                  ? 0
                  : -1,
              "open sysrq-trigger");
    must_fail(settimeofday(&(struct timeval){1, 0}, NULL), "settimeofday");
    must_fail(clock_settime(CLOCK_REALTIME, &(struct timespec){1, 0}), "clock_settime");
    must_fail(syscall(SYS_vhangup), "vhangup");
}

/* Argument: the host's name. */
static void pr_19(int argc, char **argv)
{
    struct utsname u;

    must_fail(sethostname("pwned", 5), "sethostname");
    must_fail(setdomainname("pwned", 5), "setdomainname");
    uname(&u);
    if (argc > 0 && !strcmp(u.nodename, argv[0]))
        leak("the host's name '%s' is seen", u.nodename);
    else
        held();
}

/* What may be known is listed in tests/contain/README.md; these are not on the list. */
static void pr_20(int argc, char **argv)
{
    static char text[1 << 16];
    DIR *d;

    (void)argc, (void)argv;
    if (slurp("/proc/net/dev", text, sizeof(text)) <= 0) {
        unsure("read /proc/net/dev: %s", strerror(errno));
    } else {
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
            char *colon = strchr(line, ':');

            while (*line == ' ')
                line++;
            if (colon && strncmp(line, "lo:", 3))
                leak("interface %.*s", (int)(colon - line), line);
            else
                held();
        }
    }
    must_fail(open("/sys/class/dmi/id/product_uuid", O_RDONLY), "open the machine's uuid");
    must_fail(open("/etc/machine-id", O_RDONLY), "open /etc/machine-id");
    must_fail(open("/etc/shadow", O_RDONLY), "open /etc/shadow");
    for (const char *const *p = (const char *const[]){"/home", "/root", "/sys", NULL}; *p; p++) {
        int n = 0;

        d = opendir(*p);
        for (struct dirent *e; d && (e = readdir(d));)
            n += e->d_name[0] != '.';
        if (n)
            leak("%s has %d entries", *p, n);
        else
            held();
        if (d)
            closedir(d);
    }
    if (slurp("/proc/net/unix", text, sizeof(text)) > 0 && strstr(text, "canary"))
        leak("/proc/net/unix shows a socket of the host");
}

/* ---- C: mounts ---- */

#define SYS_NEW(name, nr) enum { N_##name = nr }
SYS_NEW(open_tree, 428);
SYS_NEW(move_mount, 429);
SYS_NEW(fsopen, 430);
SYS_NEW(fsconfig, 431);
SYS_NEW(fsmount, 432);
SYS_NEW(fspick, 433);
SYS_NEW(openat2, 437);
SYS_NEW(mount_setattr, 442);
SYS_NEW(fchmodat2, 452);
SYS_NEW(statmount, 457);
SYS_NEW(listmount, 458);
SYS_NEW(open_tree_attr, 467);

struct attr_ {
    uint64_t set, clr, propagation, userns_fd;
};

static void mt_05(int argc, char **argv)
{
    static const char *const dirs[] = {"/usr",           "/",         "/proc/sys", "/proc",
                                       "/etc/ssl/certs", "/dev/null", "."};
    struct attr_ a = {.clr = 1 | 2 | 4}; /* RDONLY, NOSUID, NODEV */

    (void)argc, (void)argv;
    for (size_t i = 0; i < COUNT(dirs); i++) {
        must_fail(mount(NULL, dirs[i], NULL, MS_REMOUNT | MS_BIND, NULL), "bind remount rw");
        must_fail(mount(NULL, dirs[i], NULL, MS_REMOUNT, NULL), "remount rw");
        must_fail(syscall(N_mount_setattr, AT_FDCWD, dirs[i], 0, &a, sizeof(a)), "mount_setattr");
        must_fail(umount2(dirs[i], MNT_DETACH), "umount");
        must_fail(mount(dirs[i], "/tmp", NULL, MS_BIND, NULL), "bind");
        must_fail(mount(NULL, dirs[i], NULL, MS_SHARED, NULL), "make shared");
    }
    must_fail(open("/usr/contain-probe", O_WRONLY | O_CREAT, 0600), "create /usr/contain-probe");
}

static void mt_08(int argc, char **argv)
{
    struct {
        uint32_t size, spare;
        uint64_t id, param;
    } q = {24, 0, ~0ull, 0};
    uint64_t ids[64];
    struct attr_ a = {0};

    (void)argc, (void)argv;
    must_fail(syscall(N_open_tree, AT_FDCWD, "/", 1), "open_tree(CLONE)");
    must_fail(syscall(N_open_tree, AT_FDCWD, "/", 0), "open_tree");
    must_fail(syscall(N_open_tree_attr, AT_FDCWD, "/", 1, &a, sizeof(a)), "open_tree_attr");
    must_fail(syscall(N_fsopen, "tmpfs", 0), "fsopen");
    must_fail(syscall(N_fspick, AT_FDCWD, "/", 0), "fspick");
    must_fail(syscall(N_fsconfig, -1, 0, 0, 0, 0), "fsconfig");
    must_fail(syscall(N_fsmount, -1, 0, 0), "fsmount");
    must_fail(syscall(N_move_mount, AT_FDCWD, "/tmp", AT_FDCWD, "/run", 0), "move_mount");
    must_fail(syscall(N_mount_setattr, AT_FDCWD, "/", 0, &a, sizeof(a)), "mount_setattr");
    must_fail(syscall(N_listmount, &q, ids, COUNT(ids), 0), "listmount");
    q.id = 1;
    q.param = 1;
    must_fail(syscall(N_statmount, &q, ids, sizeof(ids), 0), "statmount");
}

/* Argument: the canary file outside. */
static void mt_09(int argc, char **argv)
{
    mkdir("jail", 0700);
    if (chroot("jail") == 0) {
        escape("chroot worked");
        for (int i = 0; i < 64; i++)
            (void)!chdir("..");
        (void)!chroot(".");
    } else {
        held();
    }
    for (int i = 0; i < argc; i++)
        must_fail(open(argv[i], O_RDONLY), argv[i]);
    rmdir("jail");
}

static void mt_11(int argc, char **argv)
{
    union {
        struct file_handle h;
        char room[sizeof(struct file_handle) + 128];
    } u = {.h = {.handle_bytes = 128}};
    int id, dir = open(".", O_RDONLY | O_DIRECTORY);

    (void)argc, (void)argv;
    must_fail(name_to_handle_at(AT_FDCWD, ".", &u.h, &id, 0), "name_to_handle_at");
    for (uint32_t inode = 2; inode < 12; inode++) {
        u.h.handle_bytes = 8;
        u.h.handle_type = 1;
        memcpy(u.h.f_handle, &inode, 4);
        memset(u.h.f_handle + 4, 0, 4);
        must_fail(open_by_handle_at(dir, &u.h, O_RDONLY), "open_by_handle_at");
    }
    close(dir);
}

/* Every folder and file outside the places made for writing. */
static char workspace[4096];
static unsigned places;

static int try_make(const char *path, const struct stat *st, int type, struct FTW *f)
{
    static const char *const fine[] = {"/proc", "/tmp",     "/var/tmp",
                                       "/run",  "/dev/shm", "/workspace"};
    char name[4200];
    int fd;

    for (size_t i = 0; i < COUNT(fine); i++)
        if (!strcmp(path, fine[i]))
            return FTW_SKIP_SUBTREE;
    if (!strcmp(path, workspace))
        return FTW_SKIP_SUBTREE;
    if (type == FTW_F && S_ISREG(st->st_mode)) {
        fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
        must_fail(fd, path);
        if (fd >= 0)
            close(fd);
    }
    if (type == FTW_D) {
        places++;
        snprintf(name, sizeof(name), "%s/contain-probe", strcmp(path, "/") ? path : "");
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        must_fail(fd, name);
        must_fail(mkdir(name, 0700), name);
        if (fd >= 0) {
            close(fd);
            unlink(name);
        }
        rmdir(name);
    }
    return f->level >= 4 ? FTW_SKIP_SUBTREE : FTW_CONTINUE;
}

static void mt_14(int argc, char **argv)
{
    (void)argc, (void)argv;
    if (!getcwd(workspace, sizeof(workspace)))
        unsure("getcwd: %s", strerror(errno));
    nftw("/", try_make, 64, FTW_PHYS | FTW_ACTIONRETVAL);
    if (places < 20)
        unsure("only %u folders were tried", places);
}

/* Argument: a file that must be refused for writing with EROFS or the like. */
static void mt_12(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        int fd = open(argv[i], O_WRONLY | O_CREAT, 0600);

        if (fd >= 0)
            escape("%s can be written", argv[i]);
        else if (errno == ENOENT)
            unsure("%s: %s", argv[i], strerror(errno));
        else
            held();
    }
}

/* ---- D: namespaces, ids, capabilities ---- */

static const char *const ns_names[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};

/* Arguments: the host's "name:[inode]" texts. */
static void ns_01(int argc, char **argv)
{
    for (size_t i = 0; i < COUNT(ns_names); i++) {
        char path[64], to[64] = "";

        snprintf(path, sizeof(path), "/proc/self/ns/%s", ns_names[i]);
        if (readlink(path, to, sizeof(to) - 1) < 0) {
            unsure("%s: %s", path, strerror(errno));
            continue;
        }
        held();
        for (int k = 0; k < argc; k++)
            if (!strcmp(to, argv[k]))
                escape("shares %s with the host", to);
    }
    if (argc < 7)
        unsure("the host's namespaces were not given");
}

static void ns_02(int argc, char **argv)
{
    static const char *const files[] = {"/proc/self/uid_map", "/proc/self/gid_map"};
    char text[4096];
    bool one = false;

    (void)argc, (void)argv;
    for (size_t i = 0; i < COUNT(files); i++) {
        unsigned long in, out, n;

        if (slurp(files[i], text, sizeof(text)) <= 0) {
            unsure("%s is empty", files[i]);
            continue;
        }
        /* Read from inside: the second column is in the parent's ids, which are the host's. */
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
            if (sscanf(line, "%lu %lu %lu", &in, &out, &n) != 3)
                unsure("%s: %s", files[i], line);
            else if (out == 0 || out + n > 4294967295ul)
                escape("%s maps host id 0: %s", files[i], line);
            else
                held();
            one = one || n == 1;
        }
    }
    if (slurp("/proc/self/setgroups", text, sizeof(text)) > 0 && one && strncmp(text, "deny", 4))
        escape("setgroups is %s", text);
    if (getuid() == 0 || geteuid() == 0)
        leak("the command runs as uid 0 of the box");
    must_fail(setresuid(0, 0, 0), "setresuid(0)");
    must_fail(setresgid(0, 0, 0), "setresgid(0)");
    must_fail(setgroups(0, NULL) == 0 && one ? 0 : setgroups(1, &(gid_t){0}), "setgroups");
}

static void ns_03(int argc, char **argv)
{
    gid_t groups[256];
    int n = getgroups(256, groups);

    (void)argc, (void)argv;
    for (int i = 0; i < n; i++)
        if (groups[i] != getgid() && groups[i] != 65534) /* 65534: documented for single-id boxes */
            leak("group %u", groups[i]);
    held();
}

static void ns_05(int argc, char **argv)
{
    static const char *const caps[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};

    (void)argc, (void)argv;
    for (size_t i = 0; i < COUNT(caps); i++) {
        long v = status_field("self", caps[i], 16);

        if (v)
            escape("%s %lx", caps[i], (unsigned long)v);
        else
            held();
    }
    if (status_field("self", "NoNewPrivs:", 10) != 1)
        escape("no_new_privs is not set");
    if (status_field("self", "Seccomp:", 10) != 2)
        escape("no seccomp filter");
    if (status_field("1", "NoNewPrivs:", 10) != 1 || status_field("1", "Seccomp:", 10) != 2 ||
        status_field("1", "CapEff:", 16) != 0)
        escape("init lacks a belt");
    must_fail(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), "clear no_new_privs");
    must_fail(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21, 0, 0), "raise an ambient capability");
}

/* Arguments: set-id or file-capability programs which print their ids and CapEff when run as
 * `PROGRAM NS-06-inner`. */
static void ns_06_inner(int argc, char **argv)
{
    (void)argc, (void)argv;
    if (geteuid() != getuid() || getegid() != getgid() || geteuid() == 0)
        escape("euid %d uid %d", geteuid(), getuid());
    if (status_field("self", "CapEff:", 16) != 0)
        escape("CapEff %lx", (unsigned long)status_field("self", "CapEff:", 16));
    held();
}

static void ns_09(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int who = 0; who < 2; who++) {
        int pidfd = (int)syscall(SYS_pidfd_open, who ? getppid() : 1, 0);

        for (size_t i = 0; i < COUNT(ns_names); i++) {
            char path[64];
            int fd;

            snprintf(path, sizeof(path), "/proc/%s/ns/%s", who ? "self" : "1", ns_names[i]);
            fd = open(path, O_RDONLY);
            if (fd >= 0 && !who)
                leak("%s can be opened", path);
            must_fail(syscall(SYS_setns, fd, 0), "setns");
            if (fd >= 0)
                close(fd);
        }
        if (pidfd >= 0)
            must_fail(
                syscall(SYS_setns, pidfd, CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWUTS),
                "setns by pidfd");
    }
}

static void ns_10(int argc, char **argv)
{
    char buf[64];
    struct iovec here = {buf, sizeof(buf)}, there = {(void *)0x400000, sizeof(buf)};
    int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);

    (void)argc, (void)argv;
    must_fail(ptrace(PTRACE_SEIZE, 1, 0, 0), "ptrace(SEIZE, 1)");
    must_fail(ptrace(PTRACE_ATTACH, 1, 0, 0), "ptrace(ATTACH, 1)");
    must_fail(syscall(SYS_process_vm_readv, 1, &here, 1, &there, 1, 0), "process_vm_readv(1)");
    must_fail(syscall(SYS_process_vm_writev, 1, &here, 1, &there, 1, 0), "process_vm_writev(1)");
    must_fail(open("/proc/1/mem", O_RDONLY), "open /proc/1/mem");
    must_fail(open("/proc/1/mem", O_RDWR), "open /proc/1/mem for writing");
    must_fail(open("/proc/1/fd/3", O_RDONLY), "open /proc/1/fd/3");
    must_fail(open("/proc/1/environ", O_RDONLY), "open /proc/1/environ");
    must_fail(open("/proc/1/maps", O_RDONLY), "open /proc/1/maps");
    must_fail(open("/proc/1/exe", O_RDONLY), "open /proc/1/exe");
    must_fail(opendir("/proc/1/fd") ? 0 : -1, "list /proc/1/fd");
    must_fail(opendir("/proc/1/map_files") ? 0 : -1, "list /proc/1/map_files");
    if (pidfd >= 0)
        for (int fd = 0; fd < 8; fd++)
            must_fail(syscall(SYS_pidfd_getfd, pidfd, fd, 0), "pidfd_getfd(1)");
    must_fail(syscall(SYS_kcmp, getpid(), 1, 0, 0, 0), "kcmp(1)");
    must_fail(syscall(SYS_process_madvise, pidfd, &here, 1, 21, 0), "process_madvise(1)");
}

/* Init must outlive what its children do to it; the harness looks at the wrapper. */
static void ns_11(int argc, char **argv)
{
    static const int signals[] = {SIGKILL, SIGSTOP, SIGTERM, SIGINT, SIGHUP,
                                  SIGSEGV, SIGABRT, SIGALRM, 34,     64};

    (void)argc, (void)argv;
    for (size_t i = 0; i < COUNT(signals); i++)
        kill(1, signals[i]);
    usleep(50000);
    if (kill(1, 0) < 0)
        escape("init is gone: %s", strerror(errno));
    else
        held();
    printf("CONTAINED init stands; now kill(-1)\n");
    fflush(stdout);
    kill(-1, SIGKILL);
    _exit(0);
}

/* Takes per-user quotas; the harness then takes 100 of each outside. */
static void ns_13(int argc, char **argv)
{
    struct rlimit r;
    int n = 0, pipes = 0, p[2];

    (void)argc, (void)argv;
    getrlimit(RLIMIT_NOFILE, &r);
    while (n < 2000 && inotify_init1(0) >= 0)
        n++;
    while (pipes < 4000 && pipe(p) == 0) {
        fcntl(p[0], F_SETPIPE_SZ, 1 << 20);
        pipes++;
    }
    printf("CONTAINED took %d inotify instances, %d pipes\n", n, pipes);
    fflush(stdout);
    sleep((unsigned)(argc > 0 ? atoi(argv[0]) : 2));
    _exit(0);
}

static void ns_15(int argc, char **argv)
{
    static const char *const files[] = {"/proc/sys/kernel/core_pattern",
                                        "/proc/sys/kernel/modprobe",
                                        "/proc/sys/vm/overcommit_memory",
                                        "/proc/sys/fs/file-max",
                                        "/proc/sys/user/max_user_namespaces",
                                        "/proc/sys/net/ipv4/ip_forward",
                                        "/proc/sys/kernel/shmmax",
                                        "/proc/sys/kernel/ns_last_pid"};

    (void)argc, (void)argv;
    for (size_t i = 0; i < COUNT(files); i++) {
        int fd = open(files[i], O_WRONLY);

        must_fail(fd, files[i]);
        if (fd >= 0)
            close(fd);
    }
}

/* ---- E: system calls ---- */

#if defined(__x86_64__)
static long int80(long nr, long a, long b, long c)
{
    long r;

    __asm__ volatile("int $0x80"
                     : "=a"(r)
                     : "a"(nr), "b"(a), "c"(b), "d"(c)
                     : "memory", "r8", "r9", "r10", "r11");
    return (int)r;
}

static void call_int80(void *arg)
{
    long nr = *(long *)arg, r = int80(nr, 0, 0, 0);

    _exit(r == -ENOSYS ? 10 : 11);
}

static void call_x32(void *arg)
{
    long r = raw6(0x40000000L | *(long *)arg, 0, 0, 0, 0, 0, 0);

    _exit(r == -ENOSYS ? 10 : 11);
}

static void foreign_calls(void (*call)(void *), const long *nrs, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        long nr = nrs[i];
        int status = in_child(call, &nr);

        if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGKILL))
            held();
        else if (WIFEXITED(status) && WEXITSTATUS(status) == 10)
            held();
        else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV)
            held(); /* a kernel without 32-bit calls */
        else
            escape("%s %ld is answered (status %x)", what, nr, status);
    }
}

static void sc_01(int argc, char **argv)
{
    /* getpid, mount, keyctl, socketcall, ptrace, unshare, setns, add_key, bpf, socket */
    static const long nrs[] = {20, 21, 288, 102, 26, 310, 346, 286, 357, 359};

    (void)argc, (void)argv;
    foreign_calls(call_int80, nrs, COUNT(nrs), "int 0x80 call");
}

static void sc_02(int argc, char **argv)
{
    static const long nrs[] = {39,  101, 155, 161, 165, 166, 167, 168, 169, 175,
                               246, 248, 249, 250, 272, 298, 308, 310, 321, 323,
                               425, 428, 430, 434, 435, 512, 520, 521};

    (void)argc, (void)argv;
    foreign_calls(call_x32, nrs, COUNT(nrs), "x32 call");
}
#else
static void sc_01(int argc, char **argv)
{
    (void)argc, (void)argv;
    held();
}
#define sc_02 sc_01
#endif

/* Refusal by the filter, not by chance: exactly this error. */
static void must_be(long r, int e, const char *what)
{
    if (r < 0 && errno == e)
        held();
    else if (r < 0)
        escape("%s: %s, not the filter's %s", what, strerror(errno), strerror(e));
    else
        escape("%s worked (%ld)", what, r);
}

static void sc_03(int argc, char **argv)
{
    char params[256] = {0};

    (void)argc, (void)argv;
    must_be(syscall(425, 8, params), EPERM, "io_uring_setup");
    must_be(syscall(426, -1, 0, 0, 0, NULL, 0), EPERM, "io_uring_enter");
    must_be(syscall(427, -1, 0, NULL, 0), EPERM, "io_uring_register");
}

static void sc_04(int argc, char **argv)
{
    char attr[128] = {1, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1};

    (void)argc, (void)argv;
    for (int cmd = 0; cmd < 40; cmd++)
        must_be(syscall(SYS_bpf, cmd, attr, sizeof(attr)), EPERM, "bpf");
}

static void sc_06(int argc, char **argv)
{
    char attr[128] = {1, 0, 0, 0, 112};

    (void)argc, (void)argv;
    must_be(syscall(SYS_perf_event_open, attr, 0, -1, -1, 0), EPERM, "perf_event_open");
    must_be(syscall(SYS_userfaultfd, 1), EPERM, "userfaultfd");
}

static void sc_07(int argc, char **argv)
{
    char buf[64];

    (void)argc, (void)argv;
    must_be(syscall(SYS_add_key, "user", "x", "y", 1, KEY_SPEC_PROCESS_KEYRING), EPERM, "add_key");
    must_be(syscall(SYS_request_key, "user", "x", NULL, KEY_SPEC_PROCESS_KEYRING), EPERM,
            "request_key");
    for (int op = 0; op <= 32; op++)
        must_be(syscall(SYS_keyctl, op, KEY_SPEC_SESSION_KEYRING, buf, sizeof(buf), 0), EPERM,
                "keyctl");
}

static void sc_08(int argc, char **argv)
{
    static const int nrs[] = {165,
                              166,
                              155,
                              161,
                              N_open_tree,
                              N_move_mount,
                              N_fsopen,
                              N_fsconfig,
                              N_fsmount,
                              N_fspick,
                              N_mount_setattr,
                              N_statmount,
                              N_listmount,
                              N_open_tree_attr};

    (void)argc, (void)argv;
#if defined(__x86_64__)
    for (size_t i = 0; i < COUNT(nrs); i++) {
        char what[32];

        snprintf(what, sizeof(what), "call %d", nrs[i]);
        must_be(syscall(nrs[i], 0, 0, 0, 0, 0), EPERM, what);
    }
#else
    (void)nrs;
    held();
#endif
}

static void try_unshare(void *arg)
{
    _exit(unshare((int)*(unsigned long *)arg) == 0 ? 11 : 10);
}

static void try_clone(void *arg)
{
    long r = raw6(SYS_clone, (long)(*(unsigned long *)arg | SIGCHLD), 0, 0, 0, 0, 0);

    if (r == 0)
        _exit(0);
    _exit(r > 0 ? 11 : 10);
}

static void try_clone3(void *arg)
{
    uint64_t a[11] = {*(unsigned long *)arg, 0, 0, 0, SIGCHLD};
    long r = raw6(435, (long)a, sizeof(a), 0, 0, 0, 0);

    if (r == 0)
        _exit(0);
    _exit(r > 0 ? 11 : 10);
}

static void sc_10(int argc, char **argv)
{
    static const unsigned long flags[] = {0x80,         CLONE_NEWNS,  CLONE_NEWCGROUP,
                                          CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER,
                                          CLONE_NEWPID, CLONE_NEWNET};
    static void (*const ways[])(void *) = {try_unshare, try_clone, try_clone3};
    static const char *const names[] = {"unshare", "clone", "clone3"};

    (void)argc, (void)argv;
    for (unsigned set = 1; set < 256; set++) {
        unsigned long f = 0;

        for (int b = 0; b < 8; b++)
            f |= set & 1u << b ? flags[b] : 0;
        for (int w = 0; w < 3; w++) {
            unsigned long g = w == 1 ? f & ~0x80ul : f;
            int status;

            if (!g)
                continue;
            status = in_child(ways[w], &g);
            if (WIFEXITED(status) && WEXITSTATUS(status) == 10)
                held();
            else if (WIFEXITED(status) && WEXITSTATUS(status) == 11)
                escape("%s %lx worked", names[w], g);
            else
                unsure("%s %lx: status %x", names[w], g, status);
        }
    }
    /* clone3 must look missing, or libc would not fall back. */
    must_be(syscall(435, NULL, 0), ENOSYS, "clone3");
}

static void sc_11(int argc, char **argv)
{
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET, 6, 10};
    static const int protocols[] = {132 /* SCTP */, 256 /* SMC */, 262 /* MPTCP */, 255, 136, 33};

    (void)argc, (void)argv;
    for (int family = 0; family < 64; family++)
        for (size_t i = 0; i < COUNT(types); i++)
            for (int flags = 0; flags < 2; flags++) {
                int type = types[i] | (flags ? SOCK_CLOEXEC | SOCK_NONBLOCK : 0), pair[2];
                bool unix_ok =
                    family == AF_UNIX && (types[i] == SOCK_STREAM || types[i] == SOCK_DGRAM ||
                                          types[i] == SOCK_SEQPACKET);
                bool good =
                    unix_ok ||
                    ((family == AF_INET || family == AF_INET6) &&
                     (types[i] == SOCK_STREAM || types[i] == SOCK_DGRAM)) ||
                    (family == AF_NETLINK && (types[i] == SOCK_RAW || types[i] == SOCK_DGRAM));
                int fd = socket(family, type, 0);

                if (fd >= 0 && !good)
                    escape("socket family %d type %d", family, types[i]);
                else if (fd < 0 && good)
                    unsure("socket family %d type %d: %s", family, types[i], strerror(errno));
                else
                    held();
                if (fd >= 0)
                    close(fd);
                if (socketpair(family, type, 0, pair) == 0) {
                    if (!unix_ok)
                        escape("socketpair family %d type %d", family, types[i]);
                    close(pair[0]);
                    close(pair[1]);
                } else {
                    held();
                }
            }
    for (size_t i = 0; i < COUNT(protocols); i++)
        for (int type = 1; type <= 5; type++) {
            must_fail(socket(AF_INET, type, protocols[i]), "socket of a rare protocol");
            must_fail(socket(AF_INET6, type, protocols[i]), "socket of a rare protocol (v6)");
        }
    /* The family in the high half of the register must change nothing. */
    must_fail(syscall(SYS_socket, (1UL << 32) | 40, SOCK_STREAM, 0), "AF_VSOCK with a high bit");
    must_fail(syscall(SYS_socket, (1UL << 32) | 38, SOCK_SEQPACKET, 0), "AF_ALG with a high bit");
}

static void sc_12(int argc, char **argv)
{
    static const struct {
        unsigned long cmd;
        const char *name;
    } ioctls[] = {{0x5412, "TIOCSTI"},    {0x541c, "TIOCLINUX"},   {0x541d, "TIOCCONS"},
                  {0x5423, "TIOCSETD"},   {0x4b3a, "KDSETMODE"},   {0x4b46, "KDGKBENT"},
                  {0x4b47, "KDSKBENT"},   {0x4b45, "KDSKBMODE"},   {0x4b34, "KDADDIO"},
                  {0x4b36, "KDENABIO"},   {0x4b72, "KDFONTOP"},    {0x4b61, "PIO_FONT"},
                  {0x5602, "VT_SETMODE"}, {0x5606, "VT_ACTIVATE"}, {0x560b, "VT_LOCKSWITCH"},
                  {0x5600, "VT_OPENQRY"}};
    static const unsigned long high[] = {0, 1UL << 32, 1UL << 63, 0xffffffff00000000UL};
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), zero = 0, slave = -1;

    (void)argc, (void)argv;
    if (master >= 0 && ioctl(master, TIOCSPTLCK, &zero) == 0)
        slave = ioctl(master, 0x5441, O_RDWR | O_NOCTTY); /* TIOCGPTPEER */
    if (slave < 0)
        unsure("no terminal: %s", strerror(errno));
    for (size_t i = 0; i < COUNT(ioctls); i++)
        for (size_t h = 0; h < COUNT(high); h++)
            for (int fd = -1; fd <= 2; fd++)
                must_be(syscall(SYS_ioctl, fd < 0 ? slave : fd, ioctls[i].cmd | high[h], "x"),
                        EPERM, ioctls[i].name);
}

static void sc_14(int argc, char **argv)
{
    (void)argc, (void)argv;
#if defined(__x86_64__)
    char buf[64] = {0};

    must_be(syscall(SYS_modify_ldt, 0, buf, sizeof(buf)), EPERM, "modify_ldt");
    must_be(syscall(SYS_modify_ldt, 1, buf, 16), EPERM, "modify_ldt write");
    for (int code = 0x2001; code < 0x2004; code++)
        must_be(syscall(SYS_arch_prctl, code, buf), EPERM, "arch_prctl(MAP_VDSO)");
    must_be(syscall(SYS_arch_prctl, 0x1024, buf), EPERM, "arch_prctl(guest permission)");
    must_be(syscall(SYS_uselib, "x"), ENOSYS, "uselib");
    must_be(syscall(SYS_ustat, 0, buf), ENOSYS, "ustat");
    must_be(syscall(SYS_sysfs, 3), ENOSYS, "sysfs");
    must_be(syscall(156, buf), ENOSYS, "_sysctl");
    must_be(syscall(SYS_remap_file_pages, 0, 0, 0, 0, 0), ENOSYS, "remap_file_pages");
#endif
    must_be(syscall(SYS_personality, 0x0400000), EPERM, "personality(READ_IMPLIES_EXEC)");
    must_be(syscall(SYS_personality, 0x0100000), EPERM, "personality(MMAP_PAGE_ZERO)");
    must_be(syscall(SYS_personality, 0x0440000), EPERM, "personality(both)");
}

static void sc_15(int argc, char **argv)
{
    (void)argc, (void)argv;
    must_be(syscall(SYS_init_module, "", 0, ""), EPERM, "init_module");
    must_be(syscall(SYS_finit_module, -1, "", 0), EPERM, "finit_module");
    must_be(syscall(SYS_delete_module, "x", 0), EPERM, "delete_module");
#if defined(__x86_64__)
    must_be(syscall(SYS_create_module, "x", 0), EPERM, "create_module");
#endif
}

static void sc_16(int argc, char **argv)
{
    (void)argc, (void)argv;
    must_be(syscall(SYS_mbind, 0, 0, 0, NULL, 0, 0), EPERM, "mbind");
    must_be(syscall(SYS_set_mempolicy, 0, NULL, 0), EPERM, "set_mempolicy");
    must_be(syscall(SYS_migrate_pages, 1, 0, NULL, NULL), EPERM, "migrate_pages");
    must_be(syscall(SYS_move_pages, 1, 0, NULL, NULL, NULL, 0), EPERM, "move_pages");
    must_be(syscall(448, -1, 0), EPERM, "process_mrelease");
    must_be(syscall(447, 0), EPERM, "memfd_secret");
    must_be(syscall(450, 0, 0, 0, 0), EPERM, "set_mempolicy_home_node");
}

static void sc_18(int argc, char **argv)
{
    (void)argc, (void)argv;
    must_be(ptrace(PTRACE_TRACEME, 0, 0, 0), EPERM, "ptrace(TRACEME)");
    must_be(ptrace(PTRACE_SEIZE, 1, 0, 0), EPERM, "ptrace(SEIZE, 1)");
    must_be(ptrace(PTRACE_ATTACH, getppid(), 0, 0), EPERM, "ptrace(ATTACH, parent)");
}

/* Argument: seccomp_golden.txt. */
struct answer {
    int nr;
    long r;
};
static struct answer *volatile answer;

static void call_by_number(int nr)
{
    long r;

    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 100000}}, NULL);
    r = raw6(nr, 0, 0, 0, 0, 0, 0);
    if (answer->nr == -1) {
        answer->r = r;
        answer->nr = nr;
    }
    raw6(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

static void check_answer(int nr, const char *name, const char *want, int status)
{
    int e = !strcmp(want, "errno EPERM") ? EPERM : !strcmp(want, "errno ENOSYS") ? ENOSYS : 0;

    if (!e) {
        held(); /* allowed: whatever the kernel says; that the sweep came back is enough */
        return;
    }
    if (answer->nr != nr)
        escape("%d %s: no answer (status %x), must be refused", nr, name, status);
    else if (answer->r != -e)
        escape("%d %s: %ld, table says %s", nr, name, answer->r, want);
    else
        held();
}

static void sc_20(int argc, char **argv)
{
    static char want[1024][48], name[1024][40];
    FILE *f = argc > 0 ? fopen(argv[0], "r") : NULL;
    char line[256];
    int rows = 0;

    answer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    while (f && fgets(line, sizeof(line), f)) {
        char n[40], a[48] = "", b[48] = "";
        int nr;

        if (sscanf(line, "%d %39s %47s %47s", &nr, n, a, b) < 3 || nr < 0 || nr > 1023)
            continue;
        snprintf(want[nr], sizeof(want[nr]), "%.20s%s%.20s", a, *b ? " " : "", b);
        memcpy(name[nr], n, sizeof(n));
        rows++;
    }
    if (rows != 1024) {
        unsure("the golden table has %d rows", rows);
        return;
    }
    for (int nr = 0; nr < 1024; nr++) {
        int status = 0;
        pid_t pid;

        if (!strcmp(want[nr], "unfiltered")) /* uprobe, uretprobe: the kernel asks no filter */
            continue;
        answer->nr = -1;
        pid = fork();
        if (pid == 0)
            call_by_number(nr);
        if (pid < 0 || waitpid(pid, &status, 0) != pid) {
            unsure("fork: %s", strerror(errno));
            return;
        }
        check_answer(nr, name[nr], want[nr], status);
    }
}

/* Set-id bits by every call that takes a mode. */
static void setid_try(const char *what, const char *path, long r)
{
    struct stat st;

    if (stat(path, &st) == 0 && (st.st_mode & 06000))
        escape("%s made %s with mode %o", what, path, st.st_mode & 07777);
    else
        held();
    if (r >= 0 && strstr(what, "open"))
        close((int)r);
    (void)unlink(path);
}

static void set_id(int argc, char **argv)
{
    static const char *const dirs[] = {".", "/tmp", "/dev/shm", "/run"};
    static const mode_t bits[] = {04755, 02755, 06755, 04000, 02000, 06777};
    static const unsigned long high[] = {0, 1UL << 32};

    (void)argc, (void)argv;
    umask(0);
    for (size_t d = 0; d < COUNT(dirs); d++)
        for (size_t b = 0; b < COUNT(bits); b++)
            for (size_t h = 0; h < COUNT(high); h++) {
                unsigned long mode = bits[b] | high[h];
                char path[64], proc[64];
                struct {
                    uint64_t flags, mode, resolve;
                } how = {O_WRONLY | O_CREAT, bits[b], 0};
                long r;
                int fd;

                snprintf(path, sizeof(path), "%s/setid", dirs[d]);
#define FRESH() (unlink(path), close(open(path, O_WRONLY | O_CREAT | O_EXCL, 0755)))
#if defined(__x86_64__)
                FRESH();
                setid_try("chmod", path, syscall(SYS_chmod, path, mode));
                setid_try("open", path, syscall(SYS_open, path, O_WRONLY | O_CREAT, mode));
                setid_try("creat-open", path, syscall(SYS_creat, path, mode));
                setid_try("mknod", path, syscall(SYS_mknod, path, S_IFREG | mode, 0));
                setid_try("mknod without a type", path, syscall(SYS_mknod, path, mode, 0));
                setid_try("mknod fifo", path, syscall(SYS_mknod, path, S_IFIFO | mode, 0));
                setid_try("mkdir", path, syscall(SYS_mkdir, path, mode));
                rmdir(path);
#endif
                FRESH();
                setid_try("fchmodat", path, syscall(SYS_fchmodat, AT_FDCWD, path, mode));
                FRESH();
                setid_try("fchmodat2", path, syscall(N_fchmodat2, AT_FDCWD, path, mode, 0));
                FRESH();
                setid_try("fchmodat2(NOFOLLOW)", path,
                          syscall(N_fchmodat2, AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW));
                setid_try("openat", path,
                          syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT, mode));
                setid_try("openat2-open", path,
                          syscall(N_openat2, AT_FDCWD, path, &how, sizeof(how)));
                setid_try("mknodat", path, syscall(SYS_mknodat, AT_FDCWD, path, S_IFREG | mode, 0));
                setid_try("mknodat socket", path,
                          syscall(SYS_mknodat, AT_FDCWD, path, S_IFSOCK | mode, 0));
                FRESH();
                fd = open(path, O_RDWR);
                (void)syscall(SYS_fchmod, fd, mode);
                setid_try("fchmod", path, -1);
                close(fd);
                FRESH();
                fd = open(path, O_PATH);
                snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
                (void)syscall(SYS_fchmodat, AT_FDCWD, proc, mode);
                (void)syscall(N_fchmodat2, fd, "", mode, AT_EMPTY_PATH);
                setid_try("chmod through /proc", path, -1);
                close(fd);
                /* A nameless file that gets its name later. */
                r = syscall(SYS_openat, AT_FDCWD, dirs[d], O_TMPFILE | O_WRONLY, mode);
                if (r >= 0) {
                    snprintf(proc, sizeof(proc), "/proc/self/fd/%ld", r);
                    (void)linkat(AT_FDCWD, proc, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
                }
                setid_try("O_TMPFILE-open", path, r);
            }
}

/* Argument: a set-id file of the workspace's owner that was there before: its text changes in
 * place. */
static void setid_map(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        struct stat st;
        int fd = open(argv[i], O_RDWR);
        char *p = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (fd < 0 || p == MAP_FAILED) {
            held();
            continue;
        }
        memcpy(p, "PWNED", 5);
        msync(p, 4096, MS_SYNC);
        munmap(p, 4096);
        close(fd);
        if (stat(argv[i], &st) == 0 && (st.st_mode & 06000))
            escape("%s was rewritten through a mapping and keeps mode %o", argv[i],
                   st.st_mode & 07777);
        else
            held();
    }
}

/* ---- F: IPC, sockets ---- */

/* Arguments: @name (abstract), /path, host:port. */
static void ip_01(int argc, char **argv)
{
    static char *const more[] = {"@/tmp/.X11-unix/X0", "@/containerd-shim/x.sock", "@/tmp/dbus-x",
                                 "@canary", NULL};
    char *const *lists[] = {argv, more};

    for (int l = 0; l < 2; l++)
        for (int i = 0; l ? more[i] != NULL : i < argc; i++) {
            const char *to = lists[l][i];

            for (int type = 0; type < 2; type++) {
                struct sockaddr_un u = {.sun_family = AF_UNIX};
                socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(to));
                int fd = socket(AF_UNIX, type ? SOCK_DGRAM : SOCK_STREAM, 0);

                snprintf(u.sun_path, sizeof(u.sun_path), "%s", to);
                if (to[0] == '@')
                    u.sun_path[0] = 0;
                else
                    len = sizeof(u);
                if (connect(fd, (struct sockaddr *)&u, len) == 0) {
                    (void)!send(fd, "probe", 5, MSG_NOSIGNAL);
                    escape("connected to %s", to);
                } else {
                    held();
                }
                close(fd);
            }
        }
}

/* Arguments: ports on the host's loopback. */
static void ip_03(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[i]))};
        struct sockaddr_in6 b = {.sin6_family = AF_INET6,
                                 .sin6_port = htons((uint16_t)atoi(argv[i])),
                                 .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        int fd = socket(AF_INET, SOCK_STREAM, 0), fd6 = socket(AF_INET6, SOCK_STREAM, 0);

        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        must_fail(connect(fd, (struct sockaddr *)&a, sizeof(a)), "connect to 127.0.0.1");
        must_fail(connect(fd6, (struct sockaddr *)&b, sizeof(b)), "connect to ::1");
        close(fd);
        close(fd6);
        /* TEST-NET-1: nothing is there, and there must be no way to it. */
        fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        a.sin_addr.s_addr = inet_addr("192.0.2.1");
        if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 && errno == ENETUNREACH)
            held();
        else
            escape("there is a route to 192.0.2.1 (%s)", strerror(errno));
        close(fd);
    }
}

static int look_for_socket(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)type, (void)f;
    if (!strcmp(path, "/proc"))
        return FTW_SKIP_SUBTREE;
    if (S_ISSOCK(st->st_mode))
        leak("socket %s", path);
    checks++;
    return f->level >= 8 ? FTW_SKIP_SUBTREE : FTW_CONTINUE;
}

static void ip_02(int argc, char **argv)
{
    static const char *const paths[] = {
        "/run/docker.sock",        "/var/run/docker.sock", "/run/containerd/containerd.sock",
        "/run/podman/podman.sock", "/run/crio/crio.sock",  "/run/dbus/system_bus_socket",
        "/run/systemd/private",    "/run/snapd.socket",    "/tmp/.X11-unix/X0",
        "/run/user/0/bus",         "/run/user/1000/bus",   "/run/user/1000/wayland-0"};
    static const char *const names[] = {"DBUS_SESSION_BUS_ADDRESS",
                                        "DBUS_SYSTEM_BUS_ADDRESS",
                                        "SSH_AUTH_SOCK",
                                        "SSH_AGENT_PID",
                                        "GPG_AGENT_INFO",
                                        "DISPLAY",
                                        "WAYLAND_DISPLAY",
                                        "DOCKER_HOST",
                                        "XDG_RUNTIME_DIR",
                                        "PULSE_SERVER",
                                        "XAUTHORITY",
                                        "LD_PRELOAD",
                                        "LD_LIBRARY_PATH",
                                        "C_ENV",
                                        "CLAWDEN_DATA_DIR",
                                        "CLAWDEN_RUNTIME_DIR",
                                        "BASH_ENV",
                                        "ENV",
                                        "IFS"};
    extern char **environ;

    for (size_t i = 0; i < COUNT(paths); i++)
        must_fail(access(paths[i], F_OK), paths[i]);
    for (size_t i = 0; i < COUNT(names); i++)
        if (getenv(names[i]))
            leak("variable %s is set", names[i]);
        else
            held();
    for (char **e = environ; *e; e++)
        for (int i = 0; i < argc; i++)
            if (strstr(*e, argv[i]))
                leak("%s holds %s", *e, argv[i]);
    nftw("/", look_for_socket, 64, FTW_PHYS | FTW_ACTIONRETVAL);
}

/* Arguments: description and payload of the key in the caller's session keyring. */
static void ip_04(int argc, char **argv)
{
    char payload[256] = "", text[65536];
    long id;

    if (argc < 2) {
        unsure("no key was given");
        return;
    }
    id = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", argv[0], 0);
    if (id < 0)
        id = syscall(SYS_request_key, "user", argv[0], NULL, 0);
    if (id >= 0 && syscall(SYS_keyctl, KEYCTL_READ, id, payload, sizeof(payload) - 1) > 0 &&
        strstr(payload, argv[1]))
        escape("the caller's key was read");
    else if (id >= 0)
        leak("the caller's key was found (%ld)", id);
    else
        held();
    /* The keyring itself, by number. */
    id = syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
    if (id >= 0)
        held();
    if (slurp("/proc/keys", text, sizeof(text)) > 0 && strstr(text, argv[0]))
        leak("/proc/keys shows the caller's key");
    else
        held();
}

/* Whose session is it: seen from the box, 0 is one outside. */
static void ip_05(int argc, char **argv)
{
    int fd = open("/dev/tty", O_RDWR | O_NONBLOCK);
    struct stat tty, pts;

    (void)argc, (void)argv;
    if (getsid(1) == 0)
        leak("init is in a session outside the box");
    else
        held();
    if (getsid(0) == 0 || getpgid(0) == 0)
        leak("the command is in a session or group outside the box");
    else
        held();
    if (fd < 0) {
        held();
    } else if (isatty(0) && fstat(0, &tty) == 0 && stat("/dev/pts/ptmx", &pts) == 0 &&
               tty.st_dev == pts.st_dev) {
        for (const char *p = "touch pwned\n"; *p; p++)
            if (ioctl(fd, TIOCSTI, p) == 0)
                escape("typed into the terminal");
            else
                held();
    } else {
        escape("the caller's terminal can be opened");
    }
}

static void ip_08(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int protocol = 1; protocol < 40; protocol++)
        for (int type = 2; type < 4; type++) {
            char what[32];
            int fd = socket(AF_NETLINK, type | SOCK_NONBLOCK, protocol);

            snprintf(what, sizeof(what), "netlink %d", protocol);
            must_fail(fd, what);
            if (fd >= 0)
                close(fd);
        }
}

static void ip_09(int argc, char **argv)
{
    (void)argc, (void)argv;
    must_be(syscall(SYS_fanotify_init, 0, 0), EPERM, "fanotify_init");
    must_be(syscall(SYS_fanotify_init, 0x200, 0), EPERM, "fanotify_init(FID)");
    must_be(syscall(SYS_fanotify_mark, -1, 1, 1, AT_FDCWD, "/"), EPERM, "fanotify_mark");
}

/* ---- G: resources ---- */

static void rl_01(int argc, char **argv)
{
    double end = now() + (argc > 0 ? atof(argv[0]) : 2);

    /* Every process makes two more for as long as it may. */
    signal(SIGCHLD, SIG_IGN);
    while (now() < end)
        if (fork() < 0)
            usleep(1000);
    _exit(7);
}

static void *idle(void *arg)
{
    pause();
    return arg;
}

static void rl_02(int argc, char **argv)
{
    int want = argc > 0 ? atoi(argv[0]) : 2000, n = 0;
    pthread_attr_t a;
    pthread_t t;

    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 16384);
    while (n < want && pthread_create(&t, &a, idle, NULL) == 0)
        n++;
    if (n == want)
        escape("made all %d threads", n);
    printf("CONTAINED stopped at %d threads\n", n);
    fflush(stdout);
    _exit(0);
}

static void touch(char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 4096)
        p[i] = 1;
}

/* Arguments: way, MiB. Fills memory in one way; prints ESCAPE if it still stands with all of it. */
static void rl_mem(int argc, char **argv)
{
    const char *way = argc > 0 ? argv[0] : "anon";
    size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 128) << 20, chunk = 4 << 20;
    int pair[2], flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *p;

    setvbuf(stdout, NULL, _IONBF, 0);
    if (!strcmp(way, "shared"))
        flags = MAP_SHARED | MAP_ANONYMOUS;
    if (!strcmp(way, "anon") || !strcmp(way, "shared")) {
        p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (p != MAP_FAILED)
            touch(p, bytes);
        else
            held();
    } else if (!strcmp(way, "children")) { /* each below the limit, together above */
        for (int i = 0; i < 8; i++)
            if (fork() == 0) {
                p = mmap(NULL, bytes / 8, PROT_READ | PROT_WRITE, flags, -1, 0);
                if (p != MAP_FAILED)
                    touch(p, bytes / 8);
                sleep(3);
                _exit(0);
            }
    } else if (!strcmp(way, "sysv")) { /* written, then let go of: only the namespace holds it */
        for (size_t done = 0; done < bytes; done += chunk) {
            int id = shmget(IPC_PRIVATE, chunk, IPC_CREAT | 0600);

            p = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
            if (p == (char *)-1) {
                held();
                break;
            }
            touch(p, chunk);
            shmdt(p);
        }
    } else if (!strcmp(way, "memfd") || !strcmp(way, "flight")) {
        static char block[1 << 20];
        bool flight = !strcmp(way, "flight");

        memset(block, 1, sizeof(block));
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
            unsure("socketpair: %s", strerror(errno));
        for (size_t done = 0; done < bytes; done += chunk) {
            int fd = memfd_create("x", 0);
            struct iovec iov = {"x", 1};
            union {
                struct cmsghdr h;
                char room[CMSG_SPACE(sizeof(int))];
            } c = {.h = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
            struct msghdr m = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)};

            for (size_t i = 0; i < chunk; i += sizeof(block))
                if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
                    held();
            if (!flight)
                continue;
            memcpy(CMSG_DATA(&c.h), &fd, sizeof(int)); /* in flight: in nobody's table */
            if (sendmsg(pair[0], &m, MSG_DONTWAIT) < 0)
                unsure("send a descriptor: %s", strerror(errno));
            close(fd);
        }
    } else if (!strcmp(way, "unlinked")) {
        static char block[1 << 20];
        int fd = open("/dev/shm/gone", O_RDWR | O_CREAT, 0600);

        memset(block, 1, sizeof(block));
        unlink("/dev/shm/gone");
        for (size_t i = 0; i < bytes; i += sizeof(block))
            if (write(fd, block, sizeof(block)) < 0) {
                held();
                break;
            }
    } else if (!strcmp(way, "pipes")) {
        static char block[1 << 16];
        size_t done = 0;

        while (done < bytes && pipe2(pair, O_NONBLOCK) == 0) {
            ssize_t n, sum = 0;

            (void)fcntl(pair[0], F_SETPIPE_SZ, 1 << 20);
            while ((n = write(pair[1], block, sizeof(block))) > 0)
                sum += n;
            if (sum <= 0)
                break;
            done += (size_t)sum;
        }
        if (done < bytes)
            held();
    } else if (!strcmp(way, "sockets")) {
        static char block[1 << 16];
        size_t done = 0;
        int big = 1 << 24;

        while (done < bytes && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0) {
            ssize_t n, sum = 0;

            setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
            while ((n = write(pair[0], block, sizeof(block))) > 0)
                sum += n;
            if (sum <= 0)
                break;
            done += (size_t)sum;
        }
        if (done < bytes)
            held();
    } else {
        unsure("unknown way %s", way);
    }
    sleep(1); /* a supervisor has fifty looks */
    if (!checks && !noted[NOTE_UNSURE])
        escape("holds %zu MiB by '%s'", bytes >> 20, way);
}

/* Arguments: MiB that must not fit, then folders. */
static void rl_04(int argc, char **argv)
{
    static char block[1 << 20];
    long limit = argc > 0 ? atoi(argv[0]) : 64, all = 0;

    memset(block, 1, sizeof(block));
    for (int i = 1; i < argc; i++) {
        char path[300];
        int fd, mib = 0;

        snprintf(path, sizeof(path), "%s/fill", argv[i]);
        fd = open(path, O_WRONLY | O_CREAT, 0600);
        if (fd < 0) {
            held(); /* not writable at all */
            continue;
        }
        while (mib < 2 * limit && write(fd, block, sizeof(block)) == (ssize_t)sizeof(block))
            mib++;
        if (mib >= 2 * limit)
            escape("%s took %d MiB", argv[i], mib);
        else if (errno != ENOSPC)
            unsure("%s: %s after %d MiB", argv[i], strerror(errno), mib);
        else
            held();
        all += mib;
        close(fd);
    }
    if (all > limit + 1)
        escape("the folders took %ld MiB together, the limit is %ld", all, limit);
}

static void rl_06(int argc, char **argv)
{
    int sockets = 0, pipes = 0, timers = 0, p[2], dirs = 0;
    struct rlimit r;
    timer_t t;

    (void)argc, (void)argv;
    getrlimit(RLIMIT_NOFILE, &r);
    if (r.rlim_max > 65536)
        leak("RLIMIT_NOFILE %lld", (long long)r.rlim_max);
    while (sockets < 100000 && socket(AF_UNIX, SOCK_STREAM, 0) >= 0)
        sockets++;
    closefrom(3);
    while (pipes < 100000 && pipe(p) == 0)
        pipes++;
    closefrom(3);
    while (timers < 20000 && timer_create(CLOCK_MONOTONIC, NULL, &t) == 0)
        timers++;
    while (dirs < 300000) {
        char path[64];

        snprintf(path, sizeof(path), "/tmp/d%d", dirs);
        if (mkdir(path, 0700) < 0)
            break;
        dirs++;
    }
    if (sockets >= 100000 || pipes >= 100000 || timers >= 20000 || dirs >= 300000)
        escape("%d sockets, %d pipes, %d timers, %d folders", sockets, pipes, timers, dirs);
    else
        held();
}

static void rl_10(int argc, char **argv)
{
    int fd = open("sparse", O_RDWR | O_CREAT, 0600);
    struct stat st;

    (void)argc, (void)argv;
    if (fd < 0)
        unsure("open: %s", strerror(errno));
    (void)!ftruncate(fd, INT64_MAX);
    (void)!ftruncate(fd, (off_t)1 << 43);
    (void)!pwrite(fd, "x", 1, (off_t)1 << 42);
    if (fstat(fd, &st) == 0 && st.st_blocks < 1000)
        held();
    else
        leak("%lld blocks", (long long)st.st_blocks);
    close(fd);
    unlink("sparse");
}

static void rl_20(int argc, char **argv)
{
    int n = argc > 0 ? atoi(argv[0]) : 100;

    for (int i = 0; i < n; i++)
        if (fork() == 0) {
            setsid();
            if (fork() > 0)
                _exit(0);
            (void)!chdir("/");
            for (int s = 1; s < 65; s++)
                signal(s, SIG_IGN);
            for (;;)
                pause();
        }
    while (wait(NULL) > 0)
        ;
    _exit(0);
}

static void rl_22(int argc, char **argv)
{
    int n = argc > 0 ? atoi(argv[0]) : 500, zombies = 0;
    char path[300], text[512];
    DIR *d;

    for (int i = 0; i < n; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            if (fork() == 0) {
                usleep(2000);
                _exit(3);
            }
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    for (double end = now() + 1; now() < end;)
        usleep(20000);
    d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!all_digits(e->d_name))
            continue;
        snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
        if (slurp(path, text, sizeof(text)) > 0 && strstr(text, ") Z "))
            zombies++;
    }
    if (zombies)
        leak("%d zombies after a second", zombies);
    else
        held();
}

/* Arguments: the RLIMIT_NPROC or 0. */
static void rl_25(int argc, char **argv)
{
    static const int kept[] = {RLIMIT_CORE,   RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE, RLIMIT_SIGPENDING,
                               RLIMIT_NOFILE, RLIMIT_RTPRIO,  RLIMIT_NICE};
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    struct sched_param sp = {.sched_priority = 1};
    char text[64];
    int fd;

    (void)argc, (void)argv;
    for (size_t i = 0; i < COUNT(kept); i++)
        must_fail(setrlimit(kept[i], &all), "setrlimit to infinity");
    errno = 0;
    must_fail(setpriority(PRIO_PROCESS, 0, -20), "nice -20");
    must_fail(sched_setscheduler(0, SCHED_FIFO, &sp), "SCHED_FIFO");
    must_fail(sched_setscheduler(0, SCHED_RR, &sp), "SCHED_RR");
    must_fail(syscall(SYS_ioprio_set, 1, 0, (1 << 13) | 0), "ioprio realtime");
    fd = open("/proc/self/oom_score_adj", O_WRONLY);
    must_fail(write(fd, "-1000", 5), "oom_score_adj -1000");
    must_fail(write(fd, "-1", 2), "oom_score_adj -1");
    must_fail(write(fd, "0", 1) < 0                                                         ? -1
              : slurp("/proc/self/oom_score_adj", text, sizeof(text)) > 0 && atoi(text) < 0 ? 0
                                                                                            : -1,
              "a negative oom_score_adj");
    must_fail(
        mlock(mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
              64 << 20),
        "mlock 64 MiB");
}

/* Argument: exit status, or s and a signal. */
static void rl_26(int argc, char **argv)
{
    if (argc > 1) {
        sigset_t none;

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        raise(atoi(argv[1]));
        usleep(1000);
        _exit(99); /* the signal did not kill */
    }
    _exit(argc > 0 ? atoi(argv[0]) : 0);
}

/* Argument: the folder of /tmp that leads to the workspace. Then everything is left for the next
 * box. */
static void one_after_another(int argc, char **argv)
{
    static const char *const dirs[] = {"/tmp", "/var/tmp", "/dev/shm", "/run", "/dev/pts"};
    static const char *const tables[] = {
        "/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg", "/proc/net/tcp",
        "/proc/net/udp",     "/proc/net/tcp6",    "/proc/net/unix"};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(4242)};
    struct sockaddr_un u = {.sun_family = AF_UNIX, .sun_path = "\0left-behind"};
    static char text[65536];
    unsigned long long bytes;
    char *p;

    for (size_t i = 0; i < COUNT(dirs); i++) {
        DIR *d = opendir(dirs[i]);

        for (struct dirent *e; d && (e = readdir(d));)
            if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strcmp(e->d_name, "ptmx") &&
                (argc < 1 || strcmp(e->d_name, argv[0])))
                leak("%s/%s is there", dirs[i], e->d_name);
        held();
        if (d)
            closedir(d);
    }
    for (size_t i = 0; i < COUNT(tables); i++) {
        int lines = 0;

        if (slurp(tables[i], text, sizeof(text)) < 0)
            continue;
        for (p = text; (p = strchr(p, '\n')); p++)
            lines++;
        /* Both ends of init's own control socket may be listed: a slot makes them in the box's
         * namespace. */
        if (lines > (strstr(tables[i], "unix") ? 3 : 1) || strstr(text, "left-behind"))
            leak("%s has %d lines", tables[i], lines - 1);
        else
            held();
    }
    if (slurp("/proc/net/dev", text, sizeof(text)) > 0 && (p = strstr(text, "lo:")) &&
        sscanf(p + 3, "%llu", &bytes) == 1) {
        if (bytes)
            leak("lo has carried %llu bytes before", bytes);
        else
            held();
    }
    if (status_field("self", "SigPnd:", 16) || status_field("self", "ShdPnd:", 16))
        leak("signals are pending");
    /* ... and now leave everything that can be left. */
    for (size_t i = 0; i < 4; i++) {
        char path[64];

        snprintf(path, sizeof(path), "%s/left-behind", dirs[i]);
        close(open(path, O_WRONLY | O_CREAT, 0666));
    }
    shmget(0x1234, 4096, IPC_CREAT | 0666);
    syscall(SYS_semget, 0x1234, 1, IPC_CREAT | 0666);
    syscall(SYS_msgget, 0x1234, IPC_CREAT | 0666);
    if (fork() == 0) {
        int fd = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0),
            un = socket(AF_UNIX, SOCK_STREAM, 0);

        setsid();
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        bind(fd, (struct sockaddr *)&a, sizeof(a));
        listen(fd, 1);
        connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&a, sizeof(a));
        sendto(udp, "x", 1, 0, (struct sockaddr *)&a, sizeof(a));
        bind(un, (struct sockaddr *)&u, 20);
        listen(un, 1);
        closefrom(un + 1);
        close(0), close(1), close(2);
        sleep(30);
        _exit(0);
    }
    usleep(20000);
}

/* Sits and says so. */
static void sit(int argc, char **argv)
{
    printf("sitting\n");
    fflush(stdout);
    sleep((unsigned)(argc > 0 ? atoi(argv[0]) : 5));
    _exit(0);
}

static void env_all(int argc, char **argv)
{
    extern char **environ;

    (void)argc, (void)argv;
    for (char **e = environ; *e; e++)
        puts(*e);
    fflush(stdout);
    _exit(0);
}

/* Writes stdin to stdout slowly, or not at all: `cat`, `none`, `slow`. */
static void eat(int argc, char **argv)
{
    static char buf[65536];
    const char *how = argc > 0 ? argv[0] : "cat";
    unsigned long long all = 0;
    ssize_t n;

    if (!strcmp(how, "none"))
        sleep(1);
    else
        while ((n = read(0, buf, sizeof(buf))) > 0) {
            all += (unsigned long long)n;
            if (!strcmp(how, "slow") && all < 40 * 65536)
                usleep(5000);
        }
    printf("%llu\n", all);
    fflush(stdout);
    _exit(5);
}

static void dump_fds(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int i = 0; i < 3; i++) {
        char path[64], to[200] = "closed";

        snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
        (void)!readlink(path, to, sizeof(to) - 1);
        printf("%d %s\n", i, to);
    }
    fflush(stdout);
    _exit(0);
}

static const struct {
    const char *id;
    void (*fn)(int argc, char **argv);
    const char *what;
    const char *good;
} probes[] = {
    {"FD-01", fd_01, "nothing is open but 0, 1 and 2", "BLOCKED"},
    {"FD-04", fd_04, "no program outside can be opened for writing", "BLOCKED"},
    {"FD-06", fd_06, "0, 1 and 2 are pipes, /dev/null or a terminal of the box", "BLOCKED"},
    {"FD-06b", fd_06b, "a pipe keeps its direction", "BLOCKED"},
    {"FD-09", fd_09, "signals and umask start fresh", "BLOCKED"},
    {"PR-01", pr_01, "masked files cannot be read", "BLOCKED"},
    {"PR-03", pr_03, "no file of the kernel can be opened for writing", "BLOCKED"},
    {"PR-04", pr_04, "no core is dumped", "BLOCKED"},
    {"PR-05", pr_05, "/dev/null is the null device", "BLOCKED"},
    {"PR-08", pr_08, "/proc is a real procfs", "BLOCKED"},
    {"PR-09", pr_09, "no process outside is seen", "BLOCKED"},
    {"PR-11", pr_11, "no path of the host is named", "BLOCKED"},
    {"PR-12", pr_12, "the kernel log is closed", "BLOCKED"},
    {"PR-13", pr_13, "no device node can be made", "BLOCKED"},
    {"PR-15", pr_15, "/dev/shm is the box's own", "CONTAINED"},
    {"PR-16", pr_16, "no cgroup can be reached", "BLOCKED"},
    {"PR-17", pr_17, "the machine cannot be stopped or changed", "BLOCKED"},
    {"PR-19", pr_19, "the host's name stays", "BLOCKED"},
    {"PR-20", pr_20, "the host is not told apart", "BLOCKED"},
    {"MT-05", mt_05, "read-only mounts stay so", "BLOCKED"},
    {"MT-08", mt_08, "the mount API is closed", "BLOCKED"},
    {"MT-09", mt_09, "chroot leads nowhere", "BLOCKED"},
    {"MT-11", mt_11, "file handles are closed", "BLOCKED"},
    {"MT-12", mt_12, "read-only goes all the way down", "BLOCKED"},
    {"MT-14", mt_14, "nothing but scratch and workspace can be written", "BLOCKED"},
    {"NS-01", ns_01, "every namespace is its own", "BLOCKED"},
    {"NS-02", ns_02, "host id 0 is not mapped", "BLOCKED"},
    {"NS-03", ns_03, "no group of the caller", "BLOCKED"},
    {"NS-05", ns_05, "no capability, no_new_privs, seccomp", "BLOCKED"},
    {"NS-06-inner", ns_06_inner, "run by NS-06", "BLOCKED"},
    {"NS-09", ns_09, "setns is closed", "BLOCKED"},
    {"NS-10", ns_10, "init cannot be looked into", "BLOCKED"},
    {"NS-11", ns_11, "kill -1 stays inside", "CONTAINED"},
    {"NS-13", ns_13, "per-user quotas", "CONTAINED"},
    {"NS-15", ns_15, "sysctls cannot be opened for writing", "BLOCKED"},
    {"SC-01", sc_01, "no 32-bit calls", "BLOCKED"},
    {"SC-02", sc_02, "no x32 calls", "BLOCKED"},
    {"SC-03", sc_03, "no io_uring", "BLOCKED"},
    {"SC-04", sc_04, "no bpf", "BLOCKED"},
    {"SC-06", sc_06, "no perf, no userfaultfd", "BLOCKED"},
    {"SC-07", sc_07, "no keys", "BLOCKED"},
    {"SC-08", sc_08, "no mounts by number", "BLOCKED"},
    {"SC-10", sc_10, "no new namespaces", "BLOCKED"},
    {"SC-11", sc_11, "few socket families", "BLOCKED"},
    {"SC-12", sc_12, "no terminal ioctls", "BLOCKED"},
    {"SC-14", sc_14, "no odd calls", "BLOCKED"},
    {"SC-15", sc_15, "no modules", "BLOCKED"},
    {"SC-16", sc_16, "no memory placement", "BLOCKED"},
    {"SC-18", sc_18, "no ptrace", "BLOCKED"},
    {"SC-20", sc_20, "every call as in the table", "BLOCKED"},
    {"SETID", set_id, "no set-id file can be made", "BLOCKED"},
    {"SETID-map", setid_map, "a set-id file cannot be rewritten", "BLOCKED"},
    {"IP-01", ip_01, "no socket of the host answers", "BLOCKED"},
    {"IP-02", ip_02, "no control socket, no variable", "BLOCKED"},
    {"IP-03", ip_03, "no network", "BLOCKED"},
    {"IP-04", ip_04, "no key of the caller", "BLOCKED"},
    {"IP-05", ip_05, "no terminal of the caller", "BLOCKED"},
    {"IP-08", ip_08, "no netlink but routes", "BLOCKED"},
    {"IP-09", ip_09, "no fanotify", "BLOCKED"},
    {"RL-01", rl_01, "fork bomb", "CONTAINED"},
    {"RL-02", rl_02, "thread bomb", "CONTAINED"},
    {"RL-mem", rl_mem, "fill memory", "CONTAINED"},
    {"RL-04", rl_04, "fill scratch space", "CONTAINED"},
    {"RL-06", rl_06, "kernel memory", "CONTAINED"},
    {"RL-10", rl_10, "sparse files", "CONTAINED"},
    {"RL-20", rl_20, "daemons", "CONTAINED"},
    {"RL-22", rl_22, "orphans are reaped", "CONTAINED"},
    {"RL-25", rl_25, "limits cannot be raised", "BLOCKED"},
    {"RL-26", rl_26, "end with a status", "CONTAINED"},
    {"NEXT", one_after_another, "nothing of an earlier box is there", "BLOCKED"},
    {"sit", sit, "sit for some seconds", "CONTAINED"},
    {"env", env_all, "print the environment", "CONTAINED"},
    {"eat", eat, "read stdin", "CONTAINED"},
    {"fds", dump_fds, "print 0, 1 and 2", "CONTAINED"},
};

/* Probes that only look: harmless with capabilities too, so that they can be run outside a box. */
static bool only_looks(const char *id)
{
    static const char *const ids[] = {"FD-01", "FD-06", "FD-06b", "FD-09",       "PR-01", "PR-09",
                                      "PR-11", "NS-01", "NS-02",  "NS-03",       "NS-05", "IP-01",
                                      "IP-02", "IP-03", "IP-04",  "NS-06-inner", "sit",   "env"};

    for (size_t i = 0; i < COUNT(ids); i++)
        if (!strcmp(ids[i], id))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < COUNT(probes); i++)
        if (argc > 1 && !strcmp(argv[1], probes[i].id)) {
            if (!only_looks(argv[1]) && status_field("self", "CapEff:", 16) != 0) {
                printf(
                    "INCONCLUSIVE it would run with capabilities, which no box gives: refused\n");
                return 0;
            }
            probes[i].fn(argc - 2, argv + 2);
            return finish(probes[i].good);
        }
    if (argc > 1 && !strcmp(argv[1], "--list")) {
        for (size_t i = 0; i < COUNT(probes); i++)
            printf("%s\t%s\n", probes[i].id, probes[i].what);
        return 0;
    }
    printf("INCONCLUSIVE no probe '%s'\n", argc > 1 ? argv[1] : "");
    return 0;
}
