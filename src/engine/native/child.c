/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/native/child.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if.h>
#include <linux/keyctl.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/landlock.h"
#include "base/limits.h"
#include "base/sys.h"
#include "engine/native/mounts.h"
#include "engine/native/weaken.h"
#include "wire/wire.h"

#define CAP_LAST 63 /* beyond the newest: the kernel answers EINVAL */
#define EINVAL_  (-22)

/* Descriptors that survive until init is executed. */
enum {
    KEEP_CONTROL = WIRE_CONTROL_FD,
    KEEP_INIT,
    KEEP_REPORT,
    KEEP_LOCKS,
    KEEP_END = KEEP_LOCKS + 2
};

void child_state_init(struct child_state *st)
{
    *st = (struct child_state){.root = -1,
                               .writer = -1,
                               .maps_ready = -1,
                               .maps_writer = -1,
                               .control = -1,
                               .init = -1,
                               .report = -1,
                               .locks = {-1, -1},
                               .host_ns = -1,
                               .template_ns = -1,
                               .parked_ns = -1,
                               .own_pid_ns = -1,
                               .cold = true};
    for (int i = 0; i < TREE_MAX; i++)
        st->trees[i] = -1;
}

static long write_file(const char *path, const char *text)
{
    long fd = sys_call(__NR_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC), r;

    if (fd < 0)
        return fd;
    r = sys_call(__NR_write, fd, text, sys_length(text));
    sys_call(__NR_close, fd);
    return r < 0 ? r : 0;
}

/* ---- steps: ids ---- */

/*
 * While this /proc folder is still ours, which a change of user ends: when memory is gone the
 * kernel's first choice is this box; inherited by all in it. And the caller's umask is not to
 * decide who can read the box's root.
 */
static long do_begin(void)
{
    (void)write_file("/proc/self/oom_score_adj", "1000");
    sys_call(__NR_umask, 022);
    return 0;
}

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
    long r;

    sys_close_fd(&st->maps_writer);
    r = sys_call(__NR_read, st->maps_ready, &byte, 1);

    sys_close_fd(&st->maps_ready);
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

static long do_bounding_set(uint64_t keep)
{
    for (long cap = 0; cap <= CAP_LAST; cap++) {
        long r;

        if (cap < 64 && keep >> cap & 1)
            continue;
        r = sys_call(__NR_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);

        if (r == EINVAL_)
            return 0;
        if (r < 0)
            return r;
    }
    return 0;
}

/* The bounding set is done already; these are the other four. */
static long do_caps(uint32_t keep)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2] = {
        {.effective = keep, .permitted = keep, .inheritable = keep}};
    long r = sys_call(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);

    if (r >= 0)
        r = sys_call(__NR_capset, &head, caps);
    /* Whoever is not user 0 takes along through exec only what is ambient. */
    for (long cap = 0; r >= 0 && cap < 32; cap++)
        if (keep >> cap & 1)
            r = sys_call(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);
    return r;
}

/* ---- steps: network and quotas ---- */

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
 * Quotas of this user namespace. Without them a box could make namespaces of its own, use up the
 * inotify instances of whoever made it (they are counted upwards), or keep memory in System V
 * objects that belong to no process. The last ones can be set since Linux 6.9; before, they stay as
 * they are.
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

int child_open_mounts(void)
{
    return open_ns("/proc/self/ns/mnt");
}

int child_split_host(struct child_state *st)
{
    st->host_ns = child_open_mounts();
    return st->host_ns < 0 ? st->host_ns : (int)sys_call(__NR_unshare, CLONE_NEWNS);
}

/* Back to the template, if this slot has had a box before. */
static long back_to_template(struct child_state *st)
{
    long r;

    if (st->template_ns < 0) {
        st->template_ns = child_open_mounts();
        st->own_pid_ns = open_ns("/proc/self/ns/pid");
        return st->template_ns < 0 ? st->template_ns : st->own_pid_ns < 0 ? st->own_pid_ns : 0;
    }
    sys_close_fd(&st->parked_ns);
    r = sys_call(__NR_setns, st->template_ns, CLONE_NEWNS);
    return r < 0 ? r : sys_call(__NR_setns, st->own_pid_ns, CLONE_NEWPID);
}

/*
 * Has nothing ever gone over this network namespace's loopback? Then it cannot be told from a new
 * one: sockets died with their processes, and nobody inside could change anything else.
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
    st->parked_ns = child_open_mounts();
    if (st->parked_ns < 0)
        return st->parked_ns;
    sys_close_fd(&st->root);
    return st->root = (int)sys_call(__NR_openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
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

static long do_soft(const struct child_state *st, const struct step *s)
{
    struct {
        uint64_t soft, hard;
    } limit;
    long r = sys_call(__NR_prlimit64, st->target, s->u, 0, &limit);

    if (r < 0)
        return r;
    if (s->v < limit.hard)
        limit.soft = s->v;
    return sys_call(__NR_prlimit64, st->target, s->u, &limit, 0);
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
    int *all[] = {&st->control, &st->init, &st->report, &st->locks[0], &st->locks[1]};
    long null, r = 0;

    /* First out of the way, so that none stands where another must go. */
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        if (*all[i] < 0)
            continue; /* a slot has no report pipe: it shares the child's memory; few have a lock */
        r = sys_call(__NR_fcntl, *all[i], F_DUPFD_CLOEXEC, KEEP_END);
        if (r < 0)
            return r;
        *all[i] = (int)r;
    }
    null = mounts_open(st->root, "dev/null", O_RDWR, 0);
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
    for (int i = 0; r >= 0 && i < 2; i++) { /* held as long as init lives */
        sys_call(__NR_close, KEEP_LOCKS + i);
        if (st->locks[i] >= 0)
            r = keep(st->locks[i], KEEP_LOCKS + i, 0);
    }
    if (r < 0)
        return r;
    if (st->report < 0)
        sys_call(__NR_close, KEEP_REPORT);
    st->init = KEEP_INIT;
    st->root = -1;
    if (st->report >= 0)
        st->report = KEEP_REPORT;
    /*
     * A live box can be found before its maker's lock is let go, which is one of those below: if
     * the maker was killed, whoever takes the lock next finds this box and ends it. Others' sockets
     * are connections, which cannot listen.
     */
    (void)sys_call(__NR_listen, KEEP_CONTROL, LIMIT_BACKLOG);
    return sys_call(__NR_close_range, KEEP_END, ~0U, 0);
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
    case OP_BEGIN:
        return do_begin();
    case OP_JOIN_CGROUP:
        return sys_call(__NR_write, s->fd, "0", 1);
    case OP_UNSHARE:
        return sys_call(__NR_unshare, s->u);
    case OP_WRITE_MAPS:
        return do_write_maps(s);
    case OP_WAIT_MAPS:
        return do_wait_maps(st);
    case OP_IDS_KEEP:
        sys_call(__NR_prctl, PR_SET_KEEPCAPS, 1, 0, 0, 0);
        return do_ids(s);
    case OP_IDS:
        return do_ids(s);
    case OP_BOUNDING_SET:
        return do_bounding_set(s->u);
    case OP_SPLIT_HOST:
        return child_split_host(st);
    case OP_TREE:
        return mounts_tree(st, s);
    case OP_DEVICE:
        return mounts_device(st, s);
    case OP_ROOT_TMPFS:
        return mounts_root_tmpfs(st, s);
    case OP_ROOT_TREE:
        return mounts_enter_root(st, st->trees[s->reg]);
    case OP_ROOT_OVERLAY:
        return mounts_root_overlay(st);
    case OP_DIR:
        return mounts_dir(st, s);
    case OP_DIRS:
        return mounts_dirs(st, s->a);
    case OP_LINK:
        return mounts_link(st, s);
    case OP_FILE:
        return mounts_file(st, s);
    case OP_ATTACH:
        return mounts_attach(st, s);
    case OP_TMPFS:
        return mounts_tmpfs(st, s);
    case OP_PROC:
        return mounts_proc(st, s);
    case OP_DEVPTS:
        return mounts_devpts(st, s);
    case OP_PIVOT:
        return mounts_pivot(st);
    case OP_WRITER:
        return mounts_writer(st);
    case OP_NO_NESTED:
        return do_quotas();
    case OP_LOOPBACK:
        return do_loopback();
    case OP_PARK:
        return do_park(st);
    case OP_PROC_INSTEAD:
        return mounts_proc_instead(st, s);
    case OP_MASK:
        return mounts_mask(st, s);
    case OP_READ_ONLY:
        return mounts_read_only(st, s);
    case OP_HOSTNAME:
        return sys_call(__NR_sethostname, s->a, sys_length(s->a));
    case OP_SCRATCH:
        return mounts_scratch(st, s);
    case OP_SCRATCH_DIR:
        return mounts_scratch_dir(st, s);
    case OP_SCRATCH_SIZE:
        return mounts_scratch_size(st, s);
    case OP_COPY:
        return mounts_copy(st, s);
    case OP_SEAL:
        return mounts_seal(st);
    case OP_KEYRING:
        return sys_call(__NR_keyctl, KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0);
    case OP_SESSION:
        return sys_call(__NR_setsid);
    case OP_SIGNALS:
        return do_signals();
    case OP_RLIMIT:
        return do_rlimit(st, s);
    case OP_SOFT:
        return do_soft(st, s);
    case OP_AFFINITY:
        return do_affinity(st, s);
    case OP_STDIO:
        return do_stdio(st);
    case OP_CAPS:
        return do_caps((uint32_t)s->u);
    case OP_LANDLOCK:
        return landlock_restrict((int)s->u, s->ptr);
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

int child_walk(struct child_state *st, const struct launch_plan *plan, enum stage first,
               enum stage last, uint32_t *ret_step)
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
