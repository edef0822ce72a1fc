/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/native/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/landlock.h"
#include "base/path.h"
#include "base/state.h"

/* System folders and the parts of /etc that programs cannot do without (C5). Nothing else is seen.
 */
static const char *const host_names[] = {
    "usr",
    "bin",
    "sbin",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "etc/ld.so.cache",
    "etc/alternatives",
    "etc/ssl/certs",
    "etc/ssl/openssl.cnf",
    "etc/ca-certificates",
    "etc/pki/tls",
    "etc/localtime",
    "etc/os-release",
    "etc/java-11-openjdk",
    "etc/java-17-openjdk",
    "etc/java-21-openjdk",
    "etc/fonts",
};

/* Names of an image's top folder that a box always has from us. */
static const char *const own_names[] = {"proc", "sys", "dev", "tmp", "run", "workspace"};

/* What the kernel tells about the machine rather than the box. */
static const char *const proc_names[] = {
    "proc/acpi",          "proc/asound",      "proc/bus",           "proc/fs",
    "proc/irq",           "proc/pressure",    "proc/scsi",          "proc/config.gz",
    "proc/diskstats",     "proc/interrupts",  "proc/iomem",         "proc/ioports",
    "proc/kallsyms",      "proc/kcore",       "proc/key-users",     "proc/keys",
    "proc/kmsg",          "proc/kpagecgroup", "proc/kpagecount",    "proc/kpageflags",
    "proc/latency_stats", "proc/modules",     "proc/partitions",    "proc/sched_debug",
    "proc/slabinfo",      "proc/softirqs",    "proc/sysrq-trigger", "proc/timer_list",
    "proc/timer_stats",   "proc/vmallocinfo", "proc/zoneinfo",
};

/* --rootfs host-ro: where credentials and other people's files live. */
static const char *const secret_names[] = {
    "home",          "root",         "sys",         "mnt",
    "media",         "srv",          "etc/ssh",     "etc/ssl/private",
    "etc/sudoers.d", "etc/openclaw", "etc/clawden", "var/lib",
    "var/log",       "var/spool",    "var/mail",    "var/backups",
    "var/cache",     "boot",         "etc/shadow",  "etc/gshadow",
    "etc/shadow-",   "etc/gshadow-", "etc/sudoers",
};

static int add_entry(struct host_facts *f, int at, const char *prefix, const char *name)
{
    struct root_entry *e = &f->entries[f->n_entries];
    struct stat st;
    ssize_t n;

    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return 0;
    if (f->n_entries == LIMIT_ROOT_ENTRIES || strlen(name) >= sizeof(e->name) ||
        strlen(prefix) + strlen(name) + 2 > sizeof(e->source))
        return -E2BIG;
    (void)snprintf(e->name, sizeof(e->name), "%s", name);
    e->dev = st.st_dev;
    e->ino = st.st_ino;
    e->kind = S_ISDIR(st.st_mode) ? ENTRY_DIR : S_ISREG(st.st_mode) ? ENTRY_FILE : ENTRY_LINK;
    (void)snprintf(e->source, sizeof(e->source), "%s/%s", prefix, name);
    if (e->kind == ENTRY_LINK) {
        n = readlinkat(at, name, e->source, sizeof(e->source) - 1);
        if (n < 0)
            return -errno;
        if ((size_t)n == sizeof(e->source) - 1)
            return -ENAMETOOLONG;
        e->source[n] = 0;
    }
    f->n_entries++;
    return 0;
}

static int look_host_root(struct host_facts *f, struct error *err)
{
    autoclose int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; i < sizeof(host_names) / sizeof(*host_names); i++) {
        int r = add_entry(f, root, "", host_names[i]);

        if (r < 0)
            return error_sys(err, r, "look at '/%s'", host_names[i]);
    }
    return 0;
}

static bool is_own_name(const char *name)
{
    for (size_t i = 0; i < sizeof(own_names) / sizeof(*own_names); i++)
        if (strcmp(name, own_names[i]) == 0)
            return true;
    return false;
}

static void close_dir(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

static int look_image(const struct box_spec *spec, struct host_facts *f, struct error *err)
{
    char path[256];
    int r = path_of_fd(spec->root_fd, path, sizeof(path)), fd;
    autoclose int var_tmp = -1;
    cleanup_(close_dir) DIR *d = NULL;

    if (r < 0)
        return error_sys(err, r, "name the root folder");
    fd = openat(spec->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        return error_sys(err, -errno, "list the root folder '%s'", path);
    for (struct dirent *e; (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || is_own_name(e->d_name))
            continue;
        r = add_entry(f, dirfd(d), path, e->d_name);
        if (r < 0)
            return error_sys(err, r, "take '%s' of the root folder '%s'", e->d_name, path);
    }
    var_tmp = path_open(spec->root_fd, "var/tmp", O_PATH | O_DIRECTORY, 0, PATH_BENEATH_NOLINKS);
    f->no_var_tmp = var_tmp < 0;
    return 0;
}

/* The image's folder and the one for changes: decided on here, opened by the child. */
static int look_writable(const struct box_spec *spec, struct host_facts *f, struct error *err)
{
    struct stat st;
    int r = path_of_fd(spec->root_fd, f->root_path, sizeof(f->root_path));

    if (r < 0 || fstat(spec->root_fd, &st) < 0)
        return error_sys(err, r < 0 ? r : -errno, "look at the root folder");
    f->root_id.dev = st.st_dev;
    f->root_id.ino = st.st_ino;
    if (spec->rw_fd < 0)
        return 0;
    r = path_of_fd(spec->rw_fd, f->rw_path, sizeof(f->rw_path));
    if (r < 0 || fstat(spec->rw_fd, &st) < 0)
        return error_sys(err, r < 0 ? r : -errno, "look at the folder of the box's changes");
    f->rw_id.dev = st.st_dev;
    f->rw_id.ino = st.st_ino;
    return 0;
}

/* Of /proc only what others may read or write: the rest is root's, and no box has a root of the
 * host. */
static void look_masks(struct host_facts *f)
{
    for (size_t i = 0; i < sizeof(proc_names) / sizeof(*proc_names); i++) {
        char path[64];
        struct stat st;

        (void)snprintf(path, sizeof(path), "/%s", proc_names[i]);
        if (lstat(path, &st) < 0 || !(st.st_mode & 07))
            continue;
        f->mask_is_dir[f->n_masks] = S_ISDIR(st.st_mode);
        f->masks[f->n_masks++] = proc_names[i];
    }
}

/* The caller's home and our own folders, if they lie outside what is hidden anyway. */
static void hide_own(struct host_facts *f, const char *path)
{
    autoclose int fd = path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    char real[384];

    if (fd < 0 || path_of_fd(fd, real, sizeof(real)) < 0 || strcmp(real, "/") == 0 ||
        path_is_within(real, "/run") || path_is_within(real, "/tmp") ||
        path_is_within(real, "/var/tmp"))
        return;
    for (size_t i = 0; i < f->n_hides; i++)
        if (f->hide_is_dir[i] && path_is_within(real + 1, f->hides[i]))
            return;
    for (size_t i = 0; i < sizeof(f->own_hides) / sizeof(*f->own_hides); i++) {
        if (f->own_hides[i][0])
            continue;
        (void)snprintf(f->own_hides[i], sizeof(f->own_hides[i]), "%s", real + 1);
        f->hide_is_dir[f->n_hides] = true;
        f->hides[f->n_hides++] = f->own_hides[i];
        return;
    }
}

static void look_hides(struct host_facts *f)
{
    char path[LIMIT_PATH];
    struct error ignored;
    struct stat st;

    for (size_t i = 0; i < sizeof(secret_names) / sizeof(*secret_names); i++) {
        (void)snprintf(path, sizeof(path), "/%s", secret_names[i]);
        if (lstat(path, &st) < 0 || !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
            continue;
        f->hide_is_dir[f->n_hides] = S_ISDIR(st.st_mode);
        f->hides[f->n_hides++] = secret_names[i];
    }
    hide_own(f, getenv("HOME"));
    hide_own(f, getenv("XDG_RUNTIME_DIR"));
    if (state_data_path(path, sizeof(path), &ignored) >= 0)
        hide_own(f, path);
    if (state_runtime_path(path, sizeof(path), &ignored) >= 0)
        hide_own(f, path);
    f->no_var_tmp = lstat("/var/tmp", &st) < 0 || !S_ISDIR(st.st_mode);
    f->has_workspace_dir = lstat("/workspace", &st) == 0 && S_ISDIR(st.st_mode);
}

int host_look(const struct box_spec *spec, struct host_facts *ret, struct error *err)
{
    struct host_facts *f = ret;
    cpu_set_t cpus;
    struct stat st;
    int r = 0;

    memset(f, 0, sizeof(*f));
    f->caller_uid = geteuid();
    f->caller_gid = getegid();
    f->ids = f->caller_uid == 0 ? IDS_RANGE : IDS_ONE;
    f->landlock_abi = landlock_abi();
    f->processors = sched_getaffinity(0, sizeof(cpus), &cpus) < 0 ? 1 : (uint32_t)CPU_COUNT(&cpus);
    for (int i = 0; i < 4; i++)
        f->cgroup_join[i] = -1;
    if (spec->root == ROOT_HOST)
        r = look_host_root(f, err);
    else if (spec->root == ROOT_DIR && spec->writable_root)
        r = look_writable(spec, f, err);
    else if (spec->root == ROOT_DIR)
        r = look_image(spec, f, err);
    else
        look_hides(f);
    if (r < 0)
        return r;
    look_masks(f);
    if (spec->n_places > LIMIT_PLACES)
        return error_set(err, ERR_TOO_LARGE, "the box is to have %zu mounts: at most %u",
                         spec->n_places, LIMIT_PLACES);
    for (size_t i = 0; i < spec->n_places; i++) {
        if (!spec->places[i].source)
            continue;
        if (fstat(spec->places[i].fd, &st) < 0)
            return error_sys(err, -errno, "look at '%s'", spec->places[i].source);
        f->places[i].dev = st.st_dev;
        f->places[i].ino = st.st_ino;
    }
    if (spec->workspace_fd >= 0) {
        if (fstat(spec->workspace_fd, &st) < 0)
            return error_sys(err, -errno, "look at workspace '%s'", spec->workspace_path);
        f->ws_dev = st.st_dev;
        f->ws_ino = st.st_ino;
    }
    return 0;
}
