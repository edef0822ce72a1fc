/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/native/mounts.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/sys.h"

#define ENOENT_ (-2)
#define EAGAIN_ (-11)
#define EEXIST_ (-17)
#define EROFS_  (-30)
#define ESTALE_ (-116)

/* Opens beneath dirfd without meeting a link; absolute paths (dirfd AT_FDCWD) may not hold one. */
int mounts_open(int dirfd, const char *path, uint64_t flags, uint64_t mode)
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

/* Splits path: the descriptor of its folder beneath dirfd (dirfd itself if it is that), and its
 * last name. */
static int open_parent(int dirfd, const char *path, const char **last)
{
    char part[LIMIT_PATH];
    size_t n = sys_length(path);

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
    return mounts_open(dirfd, part, O_PATH | O_DIRECTORY, 0);
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
 * Moves a mount onto root/path, whose folder the plan itself made on its own tmpfs: nobody else can
 * have put a link there, so no walk of our own is needed.
 */
static long attach_made(const struct child_state *st, int mount, const char *path)
{
    return sys_call(__NR_move_mount, mount, "", st->root, path, MOVE_MOUNT_F_EMPTY_PATH);
}

/* The same where the path may lead into a tree from outside: looked up once, without links. */
static long attach(const struct child_state *st, int mount, const char *path)
{
    int at = mounts_open(st->root, path, O_PATH, 0);
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

/* ---- root ---- */

int child_clone_tree(const char *path, uint64_t dev, uint64_t ino, uint64_t attrs)
{
    int fd = mounts_open(AT_FDCWD, path, O_PATH, 0), tree;
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

long mounts_tree(struct child_state *st, const struct step *s)
{
    return st->trees[s->reg] = child_clone_tree(s->a, s->u, s->v, tree_attrs(s));
}

/* Binds a device node of the host after making sure that it is that device (CVE-2025-31133). */
long mounts_device(struct child_state *st, const struct step *s)
{
    int fd = mounts_open(AT_FDCWD, s->a, O_PATH, 0);
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
long mounts_enter_root(struct child_state *st, int mount)
{
    if (mount < 0)
        return mount;
    st->root = mount;
    return sys_call(__NR_move_mount, mount, "", AT_FDCWD, "/usr", MOVE_MOUNT_F_EMPTY_PATH);
}

long mounts_root_tmpfs(struct child_state *st, const struct step *s)
{
    char text[24];
    const char *const options[][2] = {
        {"size", decimal(s->u, text)}, {"nr_inodes", "4096"}, {"mode", "0755"}, {0}};

    return mounts_enter_root(st, make_fs("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
}

/* Relative to the scaffold on which image and changes stand: its mounts are in this namespace, as
 * the kernel demands of layers. */
long mounts_root_overlay(struct child_state *st)
{
    static const char *const options[][2] = {
        {"lowerdir", "image"}, {"upperdir", "rw/upper"}, {"workdir", "rw/work"}, {0}};
    long fs = sys_call(__NR_fsopen, "overlay", FSOPEN_CLOEXEC), r = fs;

    if (fs < 0)
        return fs;
    r = sys_call(__NR_fchdir, st->root);
    for (size_t i = 0; r >= 0 && options[i][0]; i++)
        r = config(fs, options[i][0], options[i][1]);
    if (r >= 0)
        r = sys_call(__NR_fsconfig, fs, FSCONFIG_SET_FLAG, "userxattr", 0, 0);
    if (r >= 0)
        r = sys_call(__NR_fsconfig, fs, FSCONFIG_CMD_CREATE, 0, 0, 0);
    if (r >= 0)
        r = sys_call(__NR_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    sys_call(__NR_close, fs);
    return r < 0 ? r : mounts_enter_root(st, (int)r);
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
long mounts_dirs(struct child_state *st, const char *path)
{
    char part[LIMIT_PATH];
    size_t n = sys_length(path);

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
            int fd = mounts_open(st->root, part, O_PATH | O_DIRECTORY, 0);

            if (fd < 0)
                return r;
            sys_close_fd(&fd); /* read-only, and there already */
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

long mounts_dir(const struct child_state *st, const struct step *s)
{
    long r = make_dir(st->root, s->a, s->u);

    return r == EEXIST_ ? 0 : r;
}

/* Links and files too stand only in folders that the plan made itself: see attach_made(). */
long mounts_link(const struct child_state *st, const struct step *s)
{
    long r = sys_call(__NR_symlinkat, s->b, st->root, s->a);

    return r == EEXIST_ ? 0 : r;
}

long mounts_file(const struct child_state *st, const struct step *s)
{
    long r, fd;

    if (!s->b[0]) { /* only a place to mount on */
        r = sys_call(__NR_mknodat, st->root, s->a, S_IFREG | 0644, 0);
        return r == EEXIST_ ? 0 : r;
    }
    if (s->u)
        (void)sys_call(__NR_unlinkat, st->root, s->a, 0);
    fd = sys_call(__NR_openat, st->root, s->a, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                  0644);
    if (fd < 0)
        return fd == EEXIST_ ? 0 : fd;
    r = sys_call(__NR_write, fd, s->b, sys_length(s->b));
    sys_call(__NR_close, fd);
    return r;
}

long mounts_attach(struct child_state *st, const struct step *s)
{
    int tree = st->trees[s->reg];
    bool ours = s->reg != TREE_WORKSPACE && s->reg < TREE_PLACE;
    long r = ours ? attach_made(st, tree, s->a) : attach(st, tree, s->a);

    sys_close_fd(&st->trees[s->reg]);
    return r;
}

long mounts_pivot(struct child_state *st)
{
    long r = sys_call(__NR_fchdir, st->root);

    if (r >= 0)
        r = sys_call(__NR_pivot_root, ".", ".");
    if (r >= 0)
        r = sys_call(__NR_umount2, ".", MNT_DETACH);
    return r < 0 ? r : sys_call(__NR_chdir, "/");
}

long mounts_writer(struct child_state *st)
{
    st->writer = clone_fd(st->root, false);
    if (st->writer < 0)
        return st->writer;
    return set_attrs(st->root, 0, MOUNT_ATTR_RDONLY);
}

long mounts_seal(const struct child_state *st)
{
    return set_attrs(st->root, 0, MOUNT_ATTR_RDONLY);
}

/* ---- kernel file systems and scratch space ---- */

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
    sys_close_fd(&mount);
    return r;
}

long mounts_proc(const struct child_state *st, const struct step *s)
{
    return attach_new(st, new_proc(), s->a);
}

long mounts_devpts(const struct child_state *st, const struct step *s)
{
    static const char *const options[][2] = {{"ptmxmode", "0666"}, {"mode", "0620"}, {0}};

    return attach_new(st, make_fs("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC), s->a);
}

/* A file is covered by the box's own /dev/null, a folder by an empty read-only one. */
long mounts_mask(struct child_state *st, const struct step *s)
{
    int mount = (int)sys_call(__NR_open_tree, st->root, s->u ? "dev/shm" : "dev/null",
                              OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    long r;

    if (mount < 0)
        return mount;
    r = s->u ? set_attrs(mount, 0, MOUNT_ATTR_RDONLY) : 0;
    if (r >= 0) /* on /proc itself; other masks may lie in a tree from outside */
        r = s->a[0] == 'p' && s->a[4] == '/' ? attach_made(st, mount, s->a)
                                             : attach(st, mount, s->a);
    sys_close_fd(&mount);
    return r == ENOENT_ ? 0 : r; /* what is not there needs no mask */
}

long mounts_read_only(const struct child_state *st, const struct step *s)
{
    int fd = mounts_open(st->root, s->a, O_PATH | O_DIRECTORY, 0), mount;
    long r;

    if (fd < 0)
        return fd;
    if (!s->u) {
        r = set_attrs(fd, 0, MOUNT_ATTR_RDONLY);
        sys_close_fd(&fd);
        return r;
    }
    mount = clone_fd(fd, true);
    sys_close_fd(&fd);
    if (mount < 0)
        return mount;
    r = set_attrs(mount, AT_RECURSIVE,
                  MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    return r < 0 ? r : attach_new(st, mount, s->a);
}

long mounts_scratch(const struct child_state *st, const struct step *s)
{
    char text[24];
    const char *const options[][2] = {
        {"size", decimal(s->u, text)}, {"nr_inodes", "262144"}, {"mode", "0755"}, {0}};

    return attach_new(st, make_fs("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV), s->a);
}

static const char *octal(uint64_t n, char text[24])
{
    char *p = text + 23;

    *p = 0;
    do {
        *--p = (char)('0' + n % 8);
        n /= 8;
    } while (n);
    return p;
}

long mounts_tmpfs(const struct child_state *st, const struct step *s)
{
    char size[24], mode[24];
    const char *const options[][2] = {
        {"size", decimal(s->u, size)}, {"nr_inodes", "262144"}, {"mode", octal(s->v, mode)}, {0}};
    uint64_t attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

    return attach_new(
        st, make_fs("tmpfs", options, s->read_only ? attrs | MOUNT_ATTR_NOEXEC : attrs), s->a);
}

/* The scratch tmpfs stands on /run for the time being; its folders go where they are wanted. */
long mounts_scratch_dir(const struct child_state *st, const struct step *s)
{
    int run = mounts_open(st->root, "run", O_PATH | O_DIRECTORY, 0), mount;
    long r;

    if (run < 0)
        return run;
    r = make_dir_in(run, s->b, s->u);
    mount = r < 0 ? (int)r
                  : (int)sys_call(__NR_open_tree, run, s->b,
                                  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    sys_close_fd(&run);
    return attach_new(st, mount, s->a);
}

long mounts_scratch_size(const struct child_state *st, const struct step *s)
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

long mounts_copy(const struct child_state *st, const struct step *s)
{
    int from = mounts_open(st->root, s->b, O_PATH | O_DIRECTORY, 0), mount;

    if (from < 0)
        return from;
    mount = clone_fd(from, true);
    sys_close_fd(&from);
    return attach_new(st, mount, s->a);
}

/*
 * A proc shows the pid namespace of whoever mounts it, so this runs in the box's first process. The
 * slot's own must be there when the new one is made (the kernel demands a visible proc for that)
 * and is taken away before the new one takes its place.
 */
long mounts_proc_instead(const struct child_state *st, const struct step *s)
{
    int proc = new_proc();
    long r;

    if (proc < 0)
        return proc;
    r = sys_call(__NR_umount2, "/proc", MNT_DETACH);
    return r < 0 ? r : attach_new(st, proc, s->a);
}
