/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clawden doctor: tries every primitive that boxes are made of, as this user, here and now. Each
 * check is an attempt, never a look at a version number; what it means and how to mend it stand
 * beside it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/landlock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/path.h"
#include "base/state.h"
#include "base/usage.h"
#include "cmd/clawden/clawden.h"
#include "egress/net.h"
#include "egress/redirect.h"
#include "engine/native/cgroup.h"
#include "engine/native/ids.h"
#include "engine/native/seccomp.h"
#include "engine/native/watch.h"
#include "engine/run.h"

enum weight { NEEDED, WANTED }; /* no box without it; or a belt or comfort less */

struct finding {
    bool works;
    char detail[192];
    const char *fix; /* only if it does not work */
};

struct check {
    const char *name;
    enum weight weight;
    void (*try)(struct finding *f);
    const char *without; /* what follows if it does not work */
};

static void say(struct finding *f, bool works, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void say(struct finding *f, bool works, const char *fmt, ...)
{
    va_list ap;

    f->works = works;
    va_start(ap, fmt);
    (void)vsnprintf(f->detail, sizeof(f->detail), fmt, ap);
    va_end(ap);
}

static long sysctl_number(const char *path, long missing)
{
    char text[64];

    return fd_read_text(AT_FDCWD, path, text, sizeof(text)) <= 0 ? missing : strtol(text, NULL, 10);
}

/* Runs fn in a child; its return value (0, or an errno). */
static int in_child(int (*fn)(void))
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(fn());
    if (pid < 0)
        return errno;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

/* ---- the primitives ---- */

static int try_user_ns(void)
{
    return unshare(CLONE_NEWUSER) < 0 ? errno : 0;
}

static int try_mount_in_ns(void)
{
    int fs, m;

    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return errno;
    fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
    if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return errno;
    m = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
    if (m < 0)
        return errno;
    return syscall(SYS_move_mount, m, "", AT_FDCWD, "/usr", MOVE_MOUNT_F_EMPTY_PATH) < 0 ? errno
                                                                                         : 0;
}

static const char *user_ns_fix(void)
{
    if (sysctl_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) == 1)
        return "AppArmor restricts user namespaces (Ubuntu 24.04): as root, install a profile with "
               "'userns,' for "
               "clawden-sandbox and clawden-spawn in /etc/apparmor.d and run 'apparmor_parser -r' "
               "on it";
    if (sysctl_number("/proc/sys/kernel/unprivileged_userns_clone", 1) == 0)
        return "as root: sysctl -w kernel.unprivileged_userns_clone=1";
    if (sysctl_number("/proc/sys/user/max_user_namespaces", 1) == 0)
        return "as root: sysctl -w user.max_user_namespaces=15000";
    return "inside a container: start it with user namespaces allowed (seccomp and AppArmor "
           "profiles)";
}

static void check_user_ns(struct finding *f)
{
    int r = in_child(try_user_ns);

    f->fix = user_ns_fix();
    say(f, r == 0, r ? "unshare: %s" : "%s", r ? strerror(r) : "can be made");
}

static void check_mounts(struct finding *f)
{
    int r = in_child(try_mount_in_ns);

    f->fix = r == ENOSYS ? "needs Linux 5.12 or newer" : user_ns_fix();
    say(f, r == 0, "%s", r ? strerror(r) : "fsopen, fsmount, move_mount work inside a namespace");
}

static void check_openat2(struct finding *f)
{
    autoclose int fd = path_open(AT_FDCWD, "/", O_PATH, 0, PATH_CANONICAL);

    f->fix = "needs Linux 5.6 or newer, and no filter that hides openat2";
    say(f, fd >= 0, "%s", fd < 0 ? strerror(-fd) : "works");
}

static int try_seccomp(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return errno;
    return -seccomp_load(seccomp_program(SECCOMP_DEFAULT));
}

static void check_seccomp(struct finding *f)
{
    int r = in_child(try_seccomp);

    f->fix = "needs a kernel with CONFIG_SECCOMP_FILTER";
    say(f, r == 0, "%s", r ? strerror(r) : "the box's filter loads");
}

static void check_landlock(struct finding *f)
{
    int abi = landlock_abi();

    f->fix =
        "needs Linux 5.19 or newer with 'landlock' among the active LSMs (boot option lsm=...)";
    say(f, abi >= 2, "ABI %d", abi);
}

static int try_keyring(void)
{
    return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) < 0 ? errno : 0;
}

static void check_keyring(struct finding *f)
{
    int r = in_child(try_keyring);

    f->fix = "needs a kernel with CONFIG_KEYS; containers often forbid keyctl";
    say(f, r == 0, "%s", r ? strerror(r) : "a new session keyring can be joined");
}

static void check_memfd(struct finding *f)
{
    autoclose int fd = memfd_create("doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    long noexec = sysctl_number("/proc/sys/vm/memfd_noexec", 0);

    f->fix = "as root: sysctl -w vm.memfd_noexec=1";
    say(f, fd >= 0 && noexec < 2, "%s",
        fd < 0        ? strerror(errno)
        : noexec >= 2 ? "vm.memfd_noexec is 2"
                      : "works");
}

static void check_id_maps(struct finding *f)
{
    autoclose int map = -1, dir = -1, tree = -1;

    f->fix = "keep workspaces on ext4, xfs, btrfs, f2fs or overlay of a recent kernel";
    if (geteuid() != 0) {
        say(f, true, "not needed: the box's user is you");
        return;
    }
    dir = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
    map = ids_make_map(0, 0, IDS_FIRST, IDS_FIRST);
    tree = map < 0 ? map : ids_map_tree(dir, map, 1);
    say(f, tree >= 0, "%s", tree < 0 ? strerror(-tree) : "mounts can be id-mapped (tried on /usr)");
}

static void check_cgroup(struct finding *f)
{
    struct cgroup_base base;

    cgroup_find(false, &base);
    f->fix = geteuid() == 0
                 ? "mount cgroup v2 (or v1 with memory, pids and cpu) on /sys/fs/cgroup"
                 : "log in through systemd (the spawner then gets a delegated group), or as root: "
                   "mkdir and chown .../clawden/user-UID in the memory, pids and cpu hierarchies";
    say(f, base.kind != CGROUP_NONE, "%s%s%s%s",
        base.kind == CGROUP_V2   ? "v2:"
        : base.kind == CGROUP_V1 ? "v1:"
                                 : "no group can be made directly by this user",
        base.dirs[CG_MEMORY] >= 0 ? " memory" : "", base.dirs[CG_PIDS] >= 0 ? " pids" : "",
        base.dirs[CG_CPU] >= 0 ? " cpu" : "");
    cgroup_base_done(&base);
}

static void check_watch(struct finding *f)
{
    f->fix = "needs a kernel with CONFIG_PROC_CHILDREN";
    say(f, watch_is_possible(), "%s",
        watch_is_possible() ? "the process tree can be watched" : "no children files");
}

static void check_audit(struct finding *f)
{
    struct audit a = {.dir = -1};
    struct error err;
    int r = audit_open(&a, &err);

    f->fix = "make the data folder writable, or set CLAWDEN_DATA_DIR";
    say(f, r >= 0, "%.150s", r < 0 ? err.msg : "the record can be written");
    audit_close(&a);
}

static uint64_t now_usec(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* The proof: a whole box, in a fresh folder, running `true`. */
static void check_box(struct finding *f)
{
    char dir[] = "/tmp/clawden-doctor-XXXXXX";
    static char word[] = "true", path[] = "PATH=/usr/bin:/bin";
    char *argv[] = {word, NULL}, *env[] = {path, NULL};
    autoclose int ws = -1, null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct box_exec what = {.argv = argv, .env = env, .cwd = dir, .stdio = {null, null, null}};
    struct box_spec spec = {
        .root = ROOT_HOST, .root_fd = -1, .workspace_path = dir, .uid = 1000, .gid = 1000};
    struct run_request req = {.engine = &engine_native, .spec = &spec, .exec = &what};
    struct run_result res;
    struct error err = {0};
    uint64_t begun;

    f->fix = "mend what is missing above; the message names the step";
    if (!mkdtemp(dir)) {
        say(f, false, "make a folder in /tmp: %s", strerror(errno));
        return;
    }
    spec.workspace_fd = ws = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    spec.limits = (struct box_limits){
        .memory_bytes = 256u << 20, .pids = 64, .tmp_bytes = 16u << 20, .wall_usec = 10000000};
    begun = now_usec();
    if (run_command(&req, &res, &err) < 0)
        say(f, false, "%.180s", err.msg);
    else
        say(f, run_exit_status(&res) == 0,
            "'true' ran in one, built in place, in %.1f ms; memory limit: %s",
            (double)(now_usec() - begun) / 1000, grade_name(res.grades[LIMIT_MEMORY]));
    (void)rmdir(dir);
}

static int try_redirect(void)
{
    int r = unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 ? -errno : redirect_tcp(NET_CAUGHT_PORT);

    return -r;
}

static void check_redirect(struct finding *f)
{
    int r = in_child(try_redirect);

    f->fix = "load the kernel's modules for it: modprobe -a nf_tables nft_redir nft_chain_nat";
    say(f, r == 0, r ? "redirect connections: %s" : "%s", r ? strerror(r) : "works");
}

static const struct check checks[] = {
    {"user namespaces", NEEDED, check_user_ns, "no box can be made"},
    {"mount API", NEEDED, check_mounts, "no box can be made"},
    {"openat2", NEEDED, check_openat2, "no path can be opened safely: no box"},
    {"seccomp filter", NEEDED, check_seccomp, "no box can be made"},
    {"executable memfd", NEEDED, check_memfd, "init cannot be started: no box"},
    {"Landlock", WANTED, check_landlock,
     "boxes run with one belt less; multi-tenant mode denies every run"},
    {"session keyring", NEEDED, check_keyring, "no box can be made"},
    {"id-mapped mounts", NEEDED, check_id_maps, "root cannot give a box its workspace"},
    {"cgroups", WANTED, check_cgroup,
     "memory, cpu and pids limits are supervised (every 20 ms), not kept by the kernel; "
     "multi-tenant mode denies"},
    {"process tree", WANTED, check_watch, "limits without a cgroup are refused"},
    {"network of boxes", WANTED, check_redirect,
     "programs that know no proxy reach only the ports that rules name, and what the kernel "
     "refuses "
     "itself is in no record"},
    {"audit record", NEEDED, check_audit, "no run is allowed that cannot be recorded"},
    {"a box", NEEDED, check_box, "nothing can be run"},
};
enum { N_CHECKS = sizeof(checks) / sizeof(*checks) };

/* ---- printing ---- */

static void print_text(const struct finding *found)
{
    bool color = isatty(STDOUT_FILENO);
    struct utsname u;

    (void)uname(&u);
    printf("ClawDen on Linux %s (%s), uid %u\n\n", u.release, u.machine, (unsigned)geteuid());
    for (int i = 0; i < N_CHECKS; i++) {
        const struct finding *f = &found[i];
        const char *mark = f->works ? "ok" : checks[i].weight == NEEDED ? "NO" : "--";
        const char *paint = !color                       ? ""
                            : f->works                   ? "\033[32m"
                            : checks[i].weight == NEEDED ? "\033[31m"
                                                         : "\033[33m";

        printf("%s%-3s%s %-18s %s\n", paint, mark, color ? "\033[0m" : "", checks[i].name,
               f->detail);
        if (!f->works)
            printf("      so:  %s\n      fix: %s\n", checks[i].without, f->fix);
    }
}

static void print_json(const struct finding *found, bool ok)
{
    autobuf b;

    buf_init(&b, LIMIT_JSON_RESULT);
    buf_puts(&b, "{");
    buf_json_bool(&b, "ok", ok);
    buf_json_key(&b, "checks");
    buf_puts(&b, "[");
    for (int i = 0; i < N_CHECKS; i++) {
        buf_puts(&b, i ? ",{" : "{");
        buf_json_str(&b, "name", checks[i].name);
        buf_json_bool(&b, "works", found[i].works);
        buf_json_bool(&b, "needed", checks[i].weight == NEEDED);
        buf_json_str(&b, "detail", found[i].detail);
        if (!found[i].works) {
            buf_json_str(&b, "without", checks[i].without);
            buf_json_str(&b, "fix", found[i].fix);
        }
        buf_puts(&b, "}");
    }
    buf_puts(&b, "]}\n");
    if (!b.failed)
        (void)fd_write_full(STDOUT_FILENO, b.data, b.len);
}

int cmd_doctor(int argc, char **argv)
{
    struct finding found[N_CHECKS] = {0};
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0, ok = true;

    if (argc > 1 && !json) {
        if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
            puts("clawden doctor [--json]: tries everything that boxes are made of, as this user; "
                 "exits 1 if no box works.");
            return 0;
        }
        return usage_unknown("clawden doctor", argv[1]);
    }
    for (int i = 0; i < N_CHECKS; i++) {
        checks[i].try(&found[i]);
        ok = ok && (found[i].works || checks[i].weight != NEEDED);
    }
    if (json)
        print_json(found, ok);
    else
        print_text(found);
    return ok ? 0 : 1;
}
