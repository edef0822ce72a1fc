/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/helper.h"
#include "base/landlock.h"
#include "base/state.h"
#include "engine/native/ids.h"
#include "engine/native/native.h"
#include "engine/native/plan.h"
#include "engine/native/slot.h"

#define LIMIT_GROUPS 256 /* of a user; with more, boxes are built in place */

/* ---- connecting ---- */

/* Slots serve the common case; anything else is built in place. */
static bool fits_a_slot(const struct box_spec *spec)
{
    return !spec->network && spec->root == ROOT_HOST && spec->uid == 1000 && spec->gid == 1000 &&
           spec->workspace_fd >= 0 &&
           getpriority(PRIO_PROCESS, 0) == 0; /* a slot does not have the caller's priority */
}

/* A box keeps the groups of whoever cloned it (not with a range of ids: there they are dropped). */
static bool has_our_groups(int conn, const struct ucred *spawner)
{
    gid_t ours[LIMIT_GROUPS], theirs[LIMIT_GROUPS];
    socklen_t bytes = sizeof(theirs);
    int n = getgroups(LIMIT_GROUPS, ours);

    if (geteuid() == 0)
        return true;
    return spawner->gid == getegid() && n >= 0 &&
           getsockopt(conn, SOL_SOCKET, SO_PEERGROUPS, theirs, &bytes) == 0 &&
           bytes == (size_t)n * sizeof(*ours) && memcmp(ours, theirs, bytes) == 0;
}

/* What the caller may not have, the box may not have either (child.c, do_rlimit). */
static bool has_no_more_than_us(pid_t spawner)
{
    cpu_set_t our_cpus, their_cpus;

    for (int i = 0; i < RLIM_NLIMITS; i++) {
        uint64_t most = plan_rlimit((unsigned)i); /* both values, in every box */
        bool is_planned = most != UINT64_MAX;
        struct rlimit ours, theirs;

        if (prlimit(0, i, NULL, &ours) < 0)
            return false;
        if (ours.rlim_max >= most && (is_planned || ours.rlim_cur == RLIM_INFINITY))
            continue; /* nobody has more: one question less, on the way of every command */
        if (prlimit(spawner, i, NULL, &theirs) < 0 || ours.rlim_max < theirs.rlim_max ||
            (!is_planned && ours.rlim_cur < theirs.rlim_cur))
            return false;
    }
    return sched_getaffinity(0, sizeof(our_cpus), &our_cpus) == 0 &&
           sched_getaffinity(spawner, sizeof(their_cpus), &their_cpus) == 0 &&
           CPU_EQUAL(&our_cpus, &their_cpus);
}

/* In another mount namespace something may lie open below a place that is covered in ours. */
static bool sees_our_mounts(pid_t spawner)
{
    struct stat ours, theirs;
    char path[48];

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)spawner);
    return stat("/proc/self/ns/mnt", &ours) == 0 && stat(path, &theirs) == 0 &&
           ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

/*
 * Only a spawner of this very user is talked to, and only one that is like us: a box that is built
 * in place has the caller's groups, limits and mounts, a slot's or berth's those of its spawner,
 * which may have been started by another program of this user, with more of each.
 */
static bool is_like_us(int conn)
{
    struct ucred spawner;
    socklen_t n = sizeof(spawner);

    return getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &spawner, &n) == 0 && spawner.pid > 0 &&
           spawner.uid == geteuid() && has_our_groups(conn, &spawner) &&
           has_no_more_than_us(spawner.pid) && sees_our_mounts(spawner.pid);
}

int slot_connect(const char *name)
{
    autoclose int dir = -1, fd = -1;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct error ignored;

    dir = state_open_runtime(&ignored);
    if (dir < 0)
        return -EACCES;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", dir, name);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        return -errno; /* EAGAIN: so many are waiting already that building is faster */
    if (!is_like_us(fd))
        return -EPERM;
    (void)fcntl(fd, F_SETFL, 0);
    return TAKE_FD(fd);
}

/* ---- the conversation ---- */

bool slot_wait(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;

    do {
        n = poll(&p, 1, ms);
    } while (n < 0 && errno == EINTR);
    return n > 0;
}

static int send_request(int fd, const struct box_spec *spec)
{
    static struct slot_request q;
    struct stat st;

    if (fstat(spec->workspace_fd, &st) < 0)
        return -errno;
    q = (struct slot_request){.type = SLOT_REQUEST,
                              .limits = spec->limits,
                              .workspace_ro = spec->workspace_ro,
                              .fresh_net = spec->fresh_net || spec->multi_tenant,
                              .ws_dev = st.st_dev,
                              .ws_ino = st.st_ino,
                              .build = slot_build_id()};
    (void)snprintf(q.ws_path, sizeof(q.ws_path), "%s", spec->workspace_path);
    return fd_send(fd, &q, sizeof(q), NULL, 0);
}

int slot_sort_taken(const struct slot_reply *r, int *fds, struct native_box *nb)
{
    int n = 0;

    nb->groups.kind = (enum cgroup_kind)r->cgroup_kind;
    for (int i = 0; i < CG_COUNT; i++)
        if (r->controllers & 1u << i)
            nb->groups.dirs[i] = fds[n++];
    return n < 4 ? fds[n] : -1;
}

static int send_tree(const struct box_spec *spec, const struct slot_reply *taken, int id_map,
                     struct native_box *nb, struct error *err)
{
    uint32_t type = SLOT_WORKSPACE;
    autoclose int own_map = -1, tree = -1;
    struct stat st;
    int r;

    if (!taken->range_base)
        return 0;
    if (fstat(spec->workspace_fd, &st) < 0)
        return error_sys(err, -errno, "look at workspace '%s'", spec->workspace_path);
    if (st.st_uid != 0 || st.st_gid != 0) { /* the slot's map is for root's own files */
        own_map = ids_make_map(st.st_uid, st.st_gid, taken->range_base + spec->uid,
                               taken->range_base + spec->gid);
        if (own_map < 0)
            return error_sys(err, own_map, "make the id map of workspace '%s'",
                             spec->workspace_path);
        id_map = own_map;
    }
    tree = ids_map_tree(spec->workspace_fd, id_map, spec->workspace_ro);
    if (tree < 0)
        return 1; /* another way is needed, which a slot does not have */
    r = fd_send(nb->slot_fd, &type, sizeof(type), &tree, 1);
    return r < 0 ? error_sys(err, r, "send the workspace to the slot") : 0;
}

static int set_limits(const struct box_spec *spec, const struct slot_reply *taken,
                      struct native_box *nb, struct error *err)
{
    struct box_limits l = spec->limits, now = taken->limits;
    int r;

    if (l.pids)
        l.pids += SLOT_PIDS;
    if (now.pids)
        now.pids += SLOT_PIDS;
    if (nb->groups.dirs[CG_MEMORY] >= 0 && nb->groups.kind == CGROUP_V1)
        (void)fd_write_text(nb->groups.dirs[CG_MEMORY], "memory.max_usage_in_bytes", "0");
    r = cgroup_set_limits(&nb->groups, &l, taken->limits_known ? &now : NULL);
    if (r < 0)
        return error_sys(err, r, "set the limits of the slot's cgroup");
    cgroup_counters(&nb->groups, &nb->at_start);
    return 0;
}

/* The pid of the box's init as this process sees it; the slot only knows its own view. */
pid_t slot_pid_of(int pidfd)
{
    char path[48], text[512], *p;

    (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
    if (fd_read_value(AT_FDCWD, path, text, sizeof(text)) <= 0)
        return 0;
    p = strstr(text, "\nPid:");
    return p ? (pid_t)strtol(p + 5, NULL, 10) : 0;
}

static int await_started(struct native_box *nb, struct error *err)
{
    struct slot_reply r = {0};
    int fds[2];
    ssize_t n;

    if (!slot_wait(nb->slot_fd, SLOT_STARTED_MS))
        return error_set(err, ERR_TIMEOUT,
                         "the spawner's slot does not answer: stop it with 'clawden-spawn --stop'");
    n = fd_recv(nb->slot_fd, &r, sizeof(r), fds, 2);
    nb->pidfd = fds[0];
    nb->box.control_fd = fds[1];
    if (n != (ssize_t)sizeof(r))
        return error_set(err, ERR_SYS, "the spawner's slot died while it made the box");
    if (r.type == SLOT_FAILED) {
        r.why[sizeof(r.why) - 1] = 0;
        (void)snprintf(nb->failure, sizeof(nb->failure), "%s", r.why);
        (void)error_set(err, ERR_SYS, "%s", r.why);
        err->sys = r.sys;
        return -ERR_SYS;
    }
    if (r.type != SLOT_STARTED || nb->pidfd < 0 || nb->box.control_fd < 0)
        return error_set(err, ERR_INVALID, "the spawner's slot sent an unknown message (%u)",
                         r.type);
    nb->box.belts = r.belts;
    nb->box.init_pid = slot_pid_of(nb->pidfd);
    return 0;
}

bool slot_grade(const struct box_spec *spec, struct native_box *nb, struct error *err)
{
    struct cgroup_base base = {.kind = nb->groups.kind};
    struct host_facts facts = {.landlock_abi = landlock_abi()};

    memcpy(base.dirs, nb->groups.dirs, sizeof(base.dirs));
    return native_grade(spec, &base, &facts, nb->box.grades, err) >= 0;
}

void slot_forget(struct native_box *nb)
{
    close_fd(&nb->slot_fd);
    close_fd(&nb->pidfd);
    close_fd(&nb->box.control_fd);
    for (int i = 0; i < CG_COUNT; i++)
        close_fd(&nb->groups.dirs[i]);
    nb->groups.kind = CGROUP_NONE;
}

int slot_client_start(const struct box_spec *spec, struct native_box *nb, struct error *err)
{
    int fds[4] = {-1, -1, -1, -1}, r;
    autoclose int id_map = -1;
    struct slot_reply taken;

    if (spec->live)
        return berth_client_start(spec, nb, err);
    if (!fits_a_slot(spec))
        return 0;
    nb->slot_fd = slot_connect(SLOT_SOCKET);
    if (nb->slot_fd < 0) {
        nb->slot_fd = -1;
        return 0;
    }
    if (send_request(nb->slot_fd, spec) < 0 || !slot_wait(nb->slot_fd, SLOT_TAKEN_MS) ||
        fd_recv(nb->slot_fd, &taken, sizeof(taken), fds, 4) != (ssize_t)sizeof(taken) ||
        taken.type != SLOT_TAKEN) {
        slot_forget(nb);
        return 0; /* nothing has happened: build it in place */
    }
    id_map = slot_sort_taken(&taken, fds, nb);
    if (!slot_grade(spec, nb, err)) {
        slot_forget(nb);
        return 0;
    }
    r = set_limits(spec, &taken, nb, err);
    if (r >= 0)
        r = send_tree(spec, &taken, id_map, nb, err);
    if (r == 1) {
        slot_forget(nb);
        return 0;
    }
    if (r < 0)
        return r;
    native_set_landlock(nb, spec, landlock_abi(), spec->workspace_path);
    /* The slot goes on by itself; STARTED is waited for when the command is to be sent. */
    nb->box.from_slot = true;
    return 1;
}

int slot_client_settle(struct native_box *nb, struct error *err)
{
    nb->settled = true; /* told once, whatever it is */
    return await_started(nb, err);
}

void slot_client_finish(struct native_box *nb)
{
    struct slot_reply r = {0};
    struct box_usage u = {0};

    if (!nb->failure[0] && slot_wait(nb->slot_fd, SLOT_STARTED_MS))
        (void)fd_recv(nb->slot_fd, &r, sizeof(r), NULL, 0);
    cgroup_usage(&nb->groups, &u);
    u.oom_kills -= nb->at_start.oom_kills;
    u.forks_refused -= nb->at_start.forks_refused;
    u.cpu_usec = r.cpu_usec;
    if (!u.peak_is_whole_box)
        u.peak_bytes = r.max_rss_kib * 1024;
    u.tmp_is_full = r.tmp_is_full;
    nb->final = u;
    for (int i = 0; i < CG_COUNT; i++) /* the slot's, not ours to remove */
        close_fd(&nb->groups.dirs[i]);
    nb->groups.kind = CGROUP_NONE;
}

/* ---- starting one for the next time ---- */

/* Under a user manager an ordinary user gets a delegated cgroup only through it. */
void slot_client_wake(void)
{
    static const char *const keep[] = {"CLAWDEN_RUNTIME_DIR", NULL};
    char path[LIMIT_PATH];

    if (helper_find("clawden-spawn", path, sizeof(path)))
        helper_start(path, keep);
}
