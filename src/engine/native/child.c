/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/native/child.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/if.h>
#include <linux/keyctl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>

#include "base/sys.h"
#include "engine/native/weaken.h"
#include "wire/wire.h"

#define CAP_LAST 63 /* beyond the newest: the kernel answers EINVAL */
#define ENOENT_  (-2)
#define EEXIST_  (-17)
#define EROFS_   (-30)
#define EINVAL_  (-22)
#define ESTALE_  (-116)
#define EAGAIN_  (-11)

/* Descriptors that survive until init is executed. */
enum { KEEP_CONTROL = WIRE_CONTROL_FD, KEEP_INIT, KEEP_REPORT, KEEP_END };

void child_state_init(struct child_state *st)
{
    *st = (struct child_state){.root = -1,
                               .writer = -1,
                               .maps_ready = -1,
                               .control = -1,
                               .init = -1,
                               .report = -1,
                               .host_ns = -1,
                               .template_ns = -1,
                               .parked_ns = -1,
                               .own_pid_ns = -1,
                               .cold = true};
    for (int i = 0; i < TREE_MAX; i++)
        st->trees[i] = -1;
}

/* ---- small helpers ---- */

static size_t length(const char *s)
{
    size_t n = 0;

    while (s[n])
        n++;
    return n;
}

static void drop_fd(int *fd)
{
    if (*fd >= 0)
        sys_call(__NR_close, *fd);
    *fd = -1;
}

/* Opens beneath dirfd without meeting a link; absolute paths (dirfd AT_FDCWD) may not hold one. */
static int open_plain(int dirfd, const char *path, uint64_t flags, uint64_t mode)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC,
        .mode = mode,
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | (dirfd >= 0 ? RESOLVE_BENEATH : 0),
    };
    long r = EAGAIN_;

    for (int i = 0; i < 16 && r == EAGAIN_; i++)
        r = sys_call(__NR_openat2, dirfd, path, &how, sizeof(how));
    return (int)r;
}

/* Splits path: the descriptor of its folder beneath dirfd (dirfd itself if it is that), and its last name. */
static int open_parent(int dirfd, const char *path, const char **last)
{
    char part[LIMIT_PATH];
    size_t n = length(path);

    while (n && path[n - 1] != '/')
        n--;
    *last = path + n;
    if (n == 0)
        return dirfd;
    if (n > sizeof(part))
        return -36; /* ENAMETOOLONG */
    for (size_t i = 0; i + 1 < n; i++)
        part[i] = path[i];
    part[n - 1] = 0;
    return open_plain(dirfd, part, O_PATH | O_DIRECTORY, 0);
}

static long write_file(const char *path, const char *text)
{
    long fd = sys_call(__NR_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC), r;

    if (fd < 0)
        return fd;
    r = sys_call(__NR_write, fd, text, length(text));
    sys_call(__NR_close, fd);
    return r < 0 ? r : 0;
}

static long set_attrs(int fd, unsigned flags, uint64_t attrs)
{
    struct mount_attr a = {.attr_set = attrs, .propagation = MS_PRIVATE};

    return sys_call(__NR_mount_setattr, fd, "", AT_EMPTY_PATH | flags, &a, sizeof(a));
}

static int clone_fd(int fd, bool recursive)
{
    return (int)sys_call(__NR_open_tree, fd, "",
                         AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
                             (recursive ? AT_RECURSIVE : 0));
}

/*
 * Moves a mount onto root/path, whose folder the plan itself made on its own tmpfs: nobody else can have
 * put a link there, so no walk of our own is needed.
 */
static long attach_made(const struct child_state *st, int mount, const char *path)
{
    return sys_call(__NR_move_mount, mount, "", st->root, path, MOVE_MOUNT_F_EMPTY_PATH);
}

/* The same where the path may lead into a tree from outside: looked up once, without links. */
static long attach(const struct child_state *st, int mount, const char *path)
{
    int at = open_plain(st->root, path, O_PATH, 0);
    long r;

    if (at < 0)
        return at;
    r = sys_call(__NR_move_mount, mount, "", at, "",
                 MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
    sys_call(__NR_close, at);
    return r;
}

static long config(long fs, const char *key, const char *value)
{
    return sys_call(__NR_fsconfig, fs, FSCONFIG_SET_STRING, key, value, 0);
}

static const char *decimal(uint64_t n, char text[24])
{
    char *p = text + 23;

    *p = 0;
    do {
        *--p = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    return p;
}

/* A new file system of this type, not yet attached anywhere. */
static int make_fs(const char *type, const char *const (*options)[2], uint64_t attrs)
{
    long fs = sys_call(__NR_fsopen, type, FSOPEN_CLOEXEC), r = 0;

    if (fs < 0)
        return (int)fs;
    for (; r >= 0 && options && (*options)[0]; options++)
        r = config(fs, (*options)[0], (*options)[1]);
    if (r >= 0)
        r = sys_call(__NR_fsconfig, fs, FSCONFIG_CMD_CREATE, 0, 0, 0);
    if (r >= 0)
        r = sys_call(__NR_fsmount, fs, FSMOUNT_CLOEXEC, attrs);
    sys_call(__NR_close, fs);
    return (int)r;
}

/* ---- steps: ids ---- */

static long do_write_maps(const struct step *s)
{
    long r = write_file("/proc/self/setgroups", "deny");

    if (r < 0)
        return r;
    r = write_file("/proc/self/uid_map", s->a);
    return r < 0 ? r : write_file("/proc/self/gid_map", s->b);
}

static long do_wait_maps(struct child_state *st)
{
    char byte;
    long r = sys_call(__NR_read, st->maps_ready, &byte, 1);

    drop_fd(&st->maps_ready);
    return r == 1 ? 0 : r < 0 ? r : -32; /* EPIPE: the parent gave up */
}

static long do_ids(const struct step *s)
{
    long r = sys_call(__NR_setgroups, 0, 0);

    if (r < 0)
        return r;
    r = sys_call(__NR_setresgid, s->v, s->v, s->v);
    return r < 0 ? r : sys_call(__NR_setresuid, s->u, s->u, s->u);
}

static long do_bounding_set(void)
{
    for (long cap = 0; cap <= CAP_LAST; cap++) {
        long r = sys_call(__NR_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);

        if (r == EINVAL_)
            return 0;
        if (r < 0)
            return r;
    }
    return 0;
}

/* The bounding set is empty already; this empties the other four. */
static long do_caps(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    long r = sys_call(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);

    return r < 0 ? r : sys_call(__NR_capset, &head, none);
}

/* ---- steps: root ---- */

int child_clone_tree(const char *path, uint64_t dev, uint64_t ino, uint64_t attrs)
{
    int fd = open_plain(AT_FDCWD, path, O_PATH, 0), tree;
    struct stat st;
    long r;

    if (fd < 0)
        return fd;
    /* The object that was decided on, or none: the name may mean something else by now. */
    r = sys_call(__NR_fstat, fd, &st);
    if (r >= 0 && ino && (st.st_ino != ino || st.st_dev != dev))
        r = ESTALE_;
    tree = r < 0 ? (int)r : clone_fd(fd, true);
    sys_call(__NR_close, fd);
    if (tree < 0)
        return tree;
    r = set_attrs(tree, AT_RECURSIVE, attrs);
    if (r < 0) {
        sys_call(__NR_close, tree);
        return (int)r;
    }
    return tree;
}

static uint64_t tree_attrs(const struct step *s)
{
    uint64_t attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

    return s->read_only ? attrs | MOUNT_ATTR_RDONLY : attrs;
}

static long do_tree(struct child_state *st, const struct step *s)
{
    return st->trees[s->reg] = child_clone_tree(s->a, s->u, s->v, tree_attrs(s));
}

/* Binds a device node of the host after making sure that it is that device (CVE-2025-31133). */
static long do_device(struct child_state *st, const struct step *s)
{
    int fd = open_plain(AT_FDCWD, s->a, O_PATH, 0);
    struct stat sb;
    long r;

    if (fd < 0)
        return fd;
    r = sys_call(__NR_fstat, fd, &sb);
    if (r >= 0 && (!S_ISCHR(sb.st_mode) || sb.st_rdev != s->u))
        r = -19; /* ENODEV */
    if (r >= 0)
        r = st->trees[s->reg] = clone_fd(fd, false);
    sys_call(__NR_close, fd);
    return r;
}

/* Attached over /usr, which every host has: from here on only descriptors name things. */
static long enter_root(struct child_state *st, int mount)
{
    if (mount < 0)
        return mount;
    st->root = mount;
    return sys_call(__NR_move_mount, mount, "", AT_FDCWD, "/usr", MOVE_MOUNT_F_EMPTY_PATH);
}

static long do_root_tmpfs(struct child_state *st)
{
    static const char *const options[][2] = {{"size", "4m"}, {"nr_inodes", "4096"}, {"mode", "0755"}, {0}};

    return enter_root(st, make_fs("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
}

static long make_dir_in(int parent, const char *name, uint64_t mode)
{
    long r = sys_call(__NR_mkdirat, parent, name, mode);

    if (r >= 0 && (mode & S_ISVTX)) /* umask and mkdir both take bits away */
        r = sys_call(__NR_fchmodat, parent, name, mode);
    return r;
}

static long make_dir(int at, const char *path, uint64_t mode)
{
    const char *name;
    int parent = open_parent(at, path, &name);
    long r;

    if (parent < 0)
        return parent;
    r = make_dir_in(parent, name, mode);
    if (parent != at)
        sys_call(__NR_close, parent);
    return r;
}

/* Every missing folder of a path: on the mount that is there, or on the root's writable handle. */
static long do_dirs(struct child_state *st, const char *path)
{
    char part[LIMIT_PATH];
    size_t n = length(path);

    if (n >= sizeof(part))
        return -36;
    for (size_t i = 0; i <= n; i++) {
        long r;

        part[i] = path[i];
        if (path[i] != '/' && path[i] != 0)
            continue;
        part[i] = 0;
        r = make_dir(st->root, part, 0755);
        if (r == EROFS_ && st->writer >= 0) {
            r = make_dir(st->writer, part, 0755);
            if (r >= 0 && st->n_made < sizeof(st->made) / sizeof(*st->made))
                st->made[st->n_made++] = (uint16_t)i;
        }
        if (r < 0 && r != EEXIST_) {
            int fd = open_plain(st->root, part, O_PATH | O_DIRECTORY, 0);

            if (fd < 0)
                return r;
            drop_fd(&fd); /* read-only, and there already */
        }
        part[i] = path[i];
    }
    return 0;
}

void child_unmake_dirs(struct child_state *st, const char *path)
{
    char part[LIMIT_PATH];

    while (st->n_made) {
        size_t n = st->made[--st->n_made];

        for (size_t i = 0; i < n; i++)
            part[i] = path[i];
        part[n] = 0;
        (void)sys_call(__NR_unlinkat, st->writer, part, AT_REMOVEDIR);
    }
}

/* Links and files too stand only in folders that the plan made itself: see attach_made(). */
static long do_link(const struct child_state *st, const struct step *s)
{
    long r = sys_call(__NR_symlinkat, s->b, st->root, s->a);

    return r == EEXIST_ ? 0 : r;
}

static long do_file(const struct child_state *st, const struct step *s)
{
    long r, fd;

    if (!s->b[0]) { /* only a place to mount on */
        r = sys_call(__NR_mknodat, st->root, s->a, S_IFREG | 0644, 0);
        return r == EEXIST_ ? 0 : r;
    }
    fd = sys_call(__NR_openat, st->root, s->a, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return fd == EEXIST_ ? 0 : fd;
    r = sys_call(__NR_write, fd, s->b, length(s->b));
    sys_call(__NR_close, fd);
    return r;
}

static long do_attach(struct child_state *st, const struct step *s)
{
    int tree = st->trees[s->reg];
    long r = s->reg == TREE_WORKSPACE ? attach(st, tree, s->a) : attach_made(st, tree, s->a);

    drop_fd(&st->trees[s->reg]);
    return r;
}

static long do_pivot(struct child_state *st)
{
    long r = sys_call(__NR_fchdir, st->root);

    if (r >= 0)
        r = sys_call(__NR_pivot_root, ".", ".");
    if (r >= 0)
        r = sys_call(__NR_umount2, ".", MNT_DETACH);
    return r < 0 ? r : sys_call(__NR_chdir, "/");
}

static long do_writer(struct child_state *st)
{
    st->writer = clone_fd(st->root, false);
    if (st->writer < 0)
        return st->writer;
    return set_attrs(st->root, 0, MOUNT_ATTR_RDONLY);
}

/* ---- steps: kernel file systems ---- */

static int new_proc(void)
{
    return make_fs("proc", NULL, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

static long attach_new(const struct child_state *st, int mount, const char *path)
{
    long r;

    if (mount < 0)
        return mount;
    r = attach(st, mount, path);
    drop_fd(&mount);
    return r;
}

static long do_devpts(const struct child_state *st, const struct step *s)
{
    static const char *const options[][2] = {{"ptmxmode", "0666"}, {"mode", "0620"}, {0}};

    return attach_new(st, make_fs("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC), s->a);
}

/* A file is covered by the box's own /dev/null, a folder by an empty read-only one. */
static long do_mask(struct child_state *st, const struct step *s)
{
    int mount = (int)sys_call(__NR_open_tree, st->root, s->u ? "dev/shm" : "dev/null",
                              OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    long r;

    if (mount < 0)
        return mount;
    r = s->u ? set_attrs(mount, 0, MOUNT_ATTR_RDONLY) : 0;
    if (r >= 0) /* on /proc itself; other masks may lie in a tree from outside */
        r = s->a[0] == 'p' && s->a[4] == '/' ? attach_made(st, mount, s->a) : attach(st, mount, s->a);
    drop_fd(&mount);
    return r == ENOENT_ ? 0 : r; /* what is not there needs no mask */
}

static long do_read_only(const struct child_state *st, const struct step *s)
{
    int fd = open_plain(st->root, s->a, O_PATH | O_DIRECTORY, 0), mount;
    long r;

    if (fd < 0)
        return fd;
    if (!s->u) {
        r = set_attrs(fd, 0, MOUNT_ATTR_RDONLY);
        drop_fd(&fd);
        return r;
    }
    mount = clone_fd(fd, true);
    drop_fd(&fd);
    if (mount < 0)
        return mount;
    r = set_attrs(mount, AT_RECURSIVE,
                  MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    return r < 0 ? r : attach_new(st, mount, s->a);
}

static long do_scratch(const struct child_state *st, const struct step *s)
{
    char text[24];
    const char *const options[][2] = {
        {"size", decimal(s->u, text)}, {"nr_inodes", "262144"}, {"mode", "0755"}, {0}};

    return attach_new(st, make_fs("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV), s->a);
}

/* The scratch tmpfs stands on /run for the time being; its folders go where they are wanted. */
static long do_scratch_dir(const struct child_state *st, const struct step *s)
{
    int run = open_plain(st->root, "run", O_PATH | O_DIRECTORY, 0), mount;
    long r;

    if (run < 0)
        return run;
    r = make_dir_in(run, s->b, s->u);
    mount = r < 0 ? (int)r
                  : (int)sys_call(__NR_open_tree, run, s->b,
                                  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    drop_fd(&run);
    return attach_new(st, mount, s->a);
}

static long do_scratch_size(const struct child_state *st, const struct step *s)
{
    char text[24];
    long fs = sys_call(__NR_fspick, st->root, s->a, FSPICK_CLOEXEC | FSPICK_SYMLINK_NOFOLLOW), r;

    if (fs < 0)
        return fs;
    r = config(fs, "size", decimal(s->u, text));
    if (r >= 0)
        r = sys_call(__NR_fsconfig, fs, FSCONFIG_CMD_RECONFIGURE, 0, 0, 0);
    sys_call(__NR_close, fs);
    return r;
}

static long do_copy(const struct child_state *st, const struct step *s)
{
    int from = open_plain(st->root, s->b, O_PATH | O_DIRECTORY, 0), mount;

    if (from < 0)
        return from;
    mount = clone_fd(from, true);
    drop_fd(&from);
    return attach_new(st, mount, s->a);
}

static long do_loopback(void)
{
    struct ifreq q = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    long fd = sys_call(__NR_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

    if (fd < 0)
        return fd;
    r = sys_call(__NR_ioctl, fd, SIOCSIFFLAGS, &q);
    sys_call(__NR_close, fd);
    return r;
}

/*
 * Quotas of this user namespace. Without them a box could make namespaces of its own, use up the inotify
 * instances of whoever made it (they are counted upwards), or keep memory in System V objects that belong
 * to no process. The last ones can be set since Linux 6.9; before, they stay as they are.
 */
static long do_quotas(void)
{
    static const char *const wanted[][2] = {{"/proc/sys/user/max_inotify_instances", "24"},
                                            {"/proc/sys/user/max_inotify_watches", "65536"},
                                            {"/proc/sys/kernel/shmall", "16384"},
                                            {"/proc/sys/kernel/shmmni", "256"},
                                            {"/proc/sys/kernel/msgmni", "64"}};

    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
        (void)write_file(wanted[i][0], wanted[i][1]);
    return write_file("/proc/sys/user/max_user_namespaces", "0");
}

/* ---- steps: slots ---- */

int child_new_net(void)
{
    long r = sys_call(__NR_unshare, CLONE_NEWNET);

    return (int)(r < 0 ? r : do_loopback());
}

static int open_ns(const char *path)
{
    return (int)sys_call(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

static long do_split_host(struct child_state *st)
{
    st->host_ns = open_ns("/proc/self/ns/mnt");
    return st->host_ns < 0 ? st->host_ns : sys_call(__NR_unshare, CLONE_NEWNS);
}

/* Back to the template, if this slot has had a box before. */
static long back_to_template(struct child_state *st)
{
    long r;

    if (st->template_ns < 0) {
        st->template_ns = open_ns("/proc/self/ns/mnt");
        st->own_pid_ns = open_ns("/proc/self/ns/pid");
        return st->template_ns < 0 ? st->template_ns : st->own_pid_ns < 0 ? st->own_pid_ns : 0;
    }
    drop_fd(&st->parked_ns);
    r = sys_call(__NR_setns, st->template_ns, CLONE_NEWNS);
    return r < 0 ? r : sys_call(__NR_setns, st->own_pid_ns, CLONE_NEWPID);
}

/*
 * Has nothing ever gone over this network namespace's loopback? Then it cannot be told from a new one:
 * sockets died with their processes, and nobody inside could change anything else.
 */
static bool net_is_untouched(void)
{
    char text[1024], *p = text;
    long fd = sys_call(__NR_openat, AT_FDCWD, "/proc/self/net/dev", O_RDONLY | O_CLOEXEC), n;

    if (fd < 0)
        return false;
    n = sys_call(__NR_read, fd, text, sizeof(text) - 1);
    sys_call(__NR_close, fd);
    if (n <= 0)
        return false;
    text[n] = 0;
    while (*p && !(p[0] == 'l' && p[1] == 'o' && p[2] == ':'))
        p++;
    if (!*p)
        return false;
    for (p += 3; *p; p++) /* every counter of lo is 0 */
        if (*p >= '1' && *p <= '9')
            return false;
    return true;
}

/* The namespaces of the next box, all but its processes. */
static long do_park(struct child_state *st)
{
    unsigned long flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC;
    bool net, first = st->template_ns < 0; /* the first one comes with the slot */
    long r = back_to_template(st);

    net = st->fresh_net || !net_is_untouched();
    if (r >= 0)
        r = sys_call(__NR_unshare, flags);
    if (r >= 0 && net && !first)
        r = child_new_net();
    if (r < 0)
        return r;
    st->net_is_new = net || first;
    st->parked_ns = open_ns("/proc/self/ns/mnt");
    if (st->parked_ns < 0)
        return st->parked_ns;
    drop_fd(&st->root);
    return st->root = (int)sys_call(__NR_openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/*
 * A proc shows the pid namespace of whoever mounts it, so this runs in the box's first process. The
 * slot's own must be there when the new one is made (the kernel demands a visible proc for that) and is
 * taken away before the new one takes its place.
 */
static long do_proc_instead(const struct child_state *st, const struct step *s)
{
    int proc = new_proc();
    long r;

    if (proc < 0)
        return proc;
    r = sys_call(__NR_umount2, "/proc", MNT_DETACH);
    return r < 0 ? r : attach_new(st, proc, s->a);
}

/* ---- steps: the way down ---- */

static long do_signals(void)
{
    struct {
        unsigned long handler, flags, restorer, mask;
    } standard = {0};
    unsigned long none = 0;

    sys_call(__NR_umask, 022);
    for (long n = 1; n <= 64; n++)
        sys_call(__NR_rt_sigaction, n, &standard, 0, sizeof(none));
    return sys_call(__NR_rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof(none));
}

static long do_rlimit(const struct child_state *st, const struct step *s)
{
    struct {
        uint64_t soft, hard;
    } have, want = {s->v, s->v};
    long r = sys_call(__NR_prlimit64, st->target, s->u, 0, &have);

    if (r < 0)
        return r;
    /* Only downwards: what the caller may not have, the box may not have either. */
    if (have.hard < want.hard)
        want.soft = want.hard = have.hard;
    return sys_call(__NR_prlimit64, st->target, s->u, &want, 0);
}

static long do_affinity(const struct child_state *st, const struct step *s)
{
    unsigned long have[16] = {0}, want[16] = {0};
    long n = sys_call(__NR_sched_getaffinity, st->target, sizeof(have), have);
    uint64_t left = s->u;

    if (n < 0)
        return n;
    for (size_t i = 0; i < sizeof(have) * 8 && left; i++) {
        unsigned long bit = 1UL << (i % 64);

        if (have[i / 64] & bit) {
            want[i / 64] |= bit;
            left--;
        }
    }
    return sys_call(__NR_sched_setaffinity, st->target, sizeof(want), want);
}

/* Puts one descriptor at its place; the numbers below KEEP_END are free to use from here on. */
static long keep(int fd, int at, int flags)
{
    return sys_call(__NR_dup3, fd, at, flags);
}

static long do_stdio(struct child_state *st)
{
    int *all[] = {&st->control, &st->init, &st->report};
    long null, r = 0;

    /* First out of the way, so that none stands where another must go. */
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        if (*all[i] < 0)
            continue; /* a slot has no report pipe: it shares the child's memory */
        r = sys_call(__NR_fcntl, *all[i], F_DUPFD_CLOEXEC, KEEP_END);
        if (r < 0)
            return r;
        *all[i] = (int)r;
    }
    null = open_plain(st->root, "dev/null", O_RDWR, 0);
    if (null < 0)
        return null;
    null = sys_call(__NR_fcntl, null, F_DUPFD_CLOEXEC, KEEP_END);
    for (int i = 0; r >= 0 && i < 3; i++)
        r = keep((int)null, i, 0);
    if (r >= 0)
        r = keep(st->control, KEEP_CONTROL, 0);
    if (r >= 0)
        r = keep(st->init, KEEP_INIT, O_CLOEXEC);
    if (r >= 0 && st->report >= 0)
        r = keep(st->report, KEEP_REPORT, O_CLOEXEC);
    if (r < 0)
        return r;
    st->init = KEEP_INIT;
    st->root = -1;
    if (st->report >= 0)
        st->report = KEEP_REPORT;
    return sys_call(__NR_close_range, st->report >= 0 ? KEEP_END : KEEP_REPORT, ~0U, 0);
}

static long do_exec_init(const struct child_state *st)
{
    static const char *const argv[] = {"clawden-init", NULL};

    return sys_call(__NR_execveat, st->init, "", argv, argv + 1, AT_EMPTY_PATH);
}

static long do_step(struct child_state *st, const struct step *s)
{
    if (weaken_skips(s->op))
        return 0;
    switch (s->op) {
    case OP_JOIN_CGROUP:
        return sys_call(__NR_write, s->fd, "0", 1);
    case OP_UNSHARE:
        return sys_call(__NR_unshare, s->u);
    case OP_WRITE_MAPS:
        return do_write_maps(s);
    case OP_WAIT_MAPS:
        return do_wait_maps(st);
    case OP_IDS:
        return do_ids(s);
    case OP_BOUNDING_SET:
        return do_bounding_set();
    case OP_SPLIT_HOST:
        return do_split_host(st);
    case OP_TREE:
        return do_tree(st, s);
    case OP_DEVICE:
        return do_device(st, s);
    case OP_ROOT_TMPFS:
        return do_root_tmpfs(st);
    case OP_ROOT_TREE:
        return enter_root(st, st->trees[s->reg]);
    case OP_DIR: {
        long r = make_dir(st->root, s->a, s->u);

        return r == EEXIST_ ? 0 : r;
    }
    case OP_DIRS:
        return do_dirs(st, s->a);
    case OP_LINK:
        return do_link(st, s);
    case OP_FILE:
        return do_file(st, s);
    case OP_ATTACH:
        return do_attach(st, s);
    case OP_PROC:
        return attach_new(st, new_proc(), s->a);
    case OP_DEVPTS:
        return do_devpts(st, s);
    case OP_PIVOT:
        return do_pivot(st);
    case OP_WRITER:
        return do_writer(st);
    case OP_NO_NESTED:
        return do_quotas();
    case OP_LOOPBACK:
        return do_loopback();
    case OP_PARK:
        return do_park(st);
    case OP_PROC_INSTEAD:
        return do_proc_instead(st, s);
    case OP_MASK:
        return do_mask(st, s);
    case OP_READ_ONLY:
        return do_read_only(st, s);
    case OP_HOSTNAME:
        return sys_call(__NR_sethostname, s->a, length(s->a));
    case OP_SCRATCH:
        return do_scratch(st, s);
    case OP_SCRATCH_DIR:
        return do_scratch_dir(st, s);
    case OP_SCRATCH_SIZE:
        return do_scratch_size(st, s);
    case OP_COPY:
        return do_copy(st, s);
    case OP_SEAL:
        return set_attrs(st->root, 0, MOUNT_ATTR_RDONLY);
    case OP_KEYRING:
        return sys_call(__NR_keyctl, KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0);
    case OP_SESSION:
        return sys_call(__NR_setsid);
    case OP_SIGNALS:
        return do_signals();
    case OP_RLIMIT:
        return do_rlimit(st, s);
    case OP_AFFINITY:
        return do_affinity(st, s);
    case OP_STDIO:
        return do_stdio(st);
    case OP_CAPS:
        return do_caps();
    case OP_NO_NEW_PRIVS:
        return sys_call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    case OP_DIE_WITH_PARENT:
        return sys_call(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    case OP_SECCOMP:
        return sys_call(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, s->ptr);
    case OP_EXEC_INIT:
        return do_exec_init(st);
    case OP_COUNT:
        break;
    }
    return -38; /* ENOSYS */
}

int child_walk(struct child_state *st, const struct launch_plan *plan, enum stage first, enum stage last,
               uint32_t *ret_step)
{
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct step *s = &plan->steps[i];
        long r;

        if (s->stage < first || s->stage > last || s->only == (st->cold ? FOR_SLOT : FOR_COLD))
            continue;
        r = do_step(st, s);
        if (r < 0) {
            *ret_step = i;
            return (int)r;
        }
    }
    return 0;
}
