/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native engine: engine_ops over a box made of namespaces.
 *
 * Theory of operation. start() looks at the host, plans, and either hands the work to a ready slot
 * (slot_client.c) or clones a child that walks the plan (launch.c). Both end the same way: an init
 * that waits on its control socket, whose other end we hold, and a pidfd on it. Killing init kills
 * the box; when our end of the control socket closes, whatever the reason, init ends by itself.
 */
#include "engine/native/native.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/landlock.h"
#include "base/sys.h"
#include "engine/native/host.h"
#include "engine/native/ids.h"
#include "engine/native/launch.h"
#include "engine/native/watch.h"
#include "wire/wire.h"

#define SPAWNER_WAIT_MS 3000

/* ---- limits ---- */

unsigned native_controllers(const struct box_limits *l)
{
    return (l->memory_bytes ? 1u << CG_MEMORY : 0) | (l->pids ? 1u << CG_PIDS : 0) |
           (l->cpu_milli ? 1u << CG_CPU : 0);
}

static int check_belts(const struct box_spec *spec, const struct host_facts *facts,
                       struct error *err)
{
    if (!spec->multi_tenant)
        return 0;
    if (spec->root == ROOT_HOST_RO)
        return error_set(
            err, ERR_DENIED,
            "multi-tenant mode: root 'host-ro' shows the whole host; use 'host' or an image");
    if (facts->landlock_abi < LANDLOCK_LEAST)
        return error_set(
            err, ERR_DENIED,
            "multi-tenant mode: this kernel has no Landlock (ABI %d, 2 is needed): denied",
            facts->landlock_abi);
    return 0;
}

int native_grade(const struct box_spec *spec, const struct cgroup_base *base,
                 const struct host_facts *facts, enum grade grades[LIMIT_KINDS], struct error *err)
{
    static const struct {
        enum limit_kind kind;
        int controller;
    } kept_by_cgroup[] = {{LIMIT_MEMORY, CG_MEMORY}, {LIMIT_PIDS, CG_PIDS}, {LIMIT_CPU, CG_CPU}};
    const struct box_limits *l = &spec->limits;
    const uint64_t asked[] = {l->memory_bytes, l->pids, l->cpu_milli};
    enum grade fallback = watch_is_possible() ? GRADE_SUPERVISED : GRADE_NONE;

    for (int i = 0; i < LIMIT_KINDS; i++)
        grades[i] = GRADE_SUPERVISED; /* time and bytes: whoever runs the command counts them */
    grades[LIMIT_NONE] = GRADE_NONE;
    grades[LIMIT_TMP] = grades[LIMIT_FILE_SIZE] = GRADE_KERNEL;
    for (size_t i = 0; i < 3; i++) {
        enum grade g = base->dirs[kept_by_cgroup[i].controller] >= 0 ? GRADE_KERNEL : fallback;

        grades[kept_by_cgroup[i].kind] = g;
        if (!asked[i] || g == GRADE_KERNEL)
            continue;
        if (spec->multi_tenant)
            return error_set(
                err, ERR_DENIED,
                "multi-tenant mode: the %s limit would be '%s', not kept by the kernel (no "
                "cgroup for this user): denied; run 'clawden doctor'",
                limit_name(kept_by_cgroup[i].kind), grade_name(g));
        if (g == GRADE_NONE && !spec->allow_degraded)
            return error_set(err, ERR_DENIED,
                             "the %s limit cannot be kept here (no cgroup, no process list): add "
                             "--allow-degraded to run without it",
                             limit_name(kept_by_cgroup[i].kind));
    }
    return check_belts(spec, facts, err);
}

/* ---- making ---- */

static void make_id(char id[65])
{
    unsigned char raw[32];

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        memset(raw, 0, sizeof(raw));
    for (size_t i = 0; i < sizeof(raw); i++)
        (void)snprintf(id + 2 * i, 3, "%02x", raw[i]);
}

struct native_box *native_box_new(void)
{
    struct native_box *nb = calloc(1, sizeof(*nb));

    if (!nb)
        abort();
    nb->box.ops = &engine_native;
    nb->box.control_fd = nb->pidfd = nb->slot_fd = nb->id_lock = nb->tmp_fd = nb->sweeper = -1;
    nb->base = (struct cgroup_base){.dirs = {-1, -1, -1}};
    nb->groups = (struct cgroup_set)CGROUP_SET_EMPTY;
    make_id(nb->box.id);
    return nb;
}

/* It ends by itself, a moment from now: it is waited for when the next one is let go. */
static void reap_sweeper(pid_t pid)
{
    static pid_t last;

    if (pid <= 0)
        return;
    while (last > 0 && waitpid(last, NULL, __WALL) < 0 && errno == EINTR)
        ;
    last = pid;
}

void native_box_free(struct native_box *nb)
{
    if (!nb)
        return;
    close_fd(&nb->box.control_fd);
    close_fd(&nb->pidfd);
    close_fd(&nb->slot_fd);
    close_fd(&nb->id_lock);
    close_fd(&nb->tmp_fd);
    if (nb->box.live)
        for (int i = 0; i < CG_COUNT; i++)
            close_fd(&nb->groups.dirs[i]); /* the box goes on in them */
    else
        cgroup_remove(&nb->groups);
    cgroup_base_done(&nb->base);
    close_fd(&nb->sweeper);
    reap_sweeper(nb->sweeper_pid);
    free(nb);
}

/*
 * The workspace's tree with its owner turned into the box's user: by an id-mapped mount; where its
 * file system cannot do that, by that one id in the box's own map, unless it is 0.
 */
static int map_workspace(const struct box_spec *spec, struct host_facts *facts, struct error *err)
{
    const uint32_t base = facts->range_base;
    autoclose int map = -1;
    struct stat st;
    int tree;

    if (fstat(spec->workspace_fd, &st) < 0)
        return error_sys(err, -errno, "look at workspace '%s'", spec->workspace_path);
    map = ids_make_map(st.st_uid, st.st_gid, base + spec->uid, base + spec->gid);
    if (map < 0)
        return error_sys(err, map, "make the id map of workspace '%s'", spec->workspace_path);
    tree = ids_map_tree(spec->workspace_fd, map, spec->workspace_ro);
    if (tree >= 0)
        return tree;
    if (st.st_uid == 0 || st.st_gid == 0)
        return error_sys(err, tree,
                         "map the owner of workspace '%s' (its file system has no id-mapped "
                         "mounts, and an owner 0 "
                         "is never given to a box: chown it)",
                         spec->workspace_path);
    facts->owner = (struct ids_owner){st.st_uid, st.st_gid, spec->uid, spec->gid};
    tree = ids_map_tree(spec->workspace_fd, -1, spec->workspace_ro);
    return tree < 0 ? error_sys(err, tree, "clone workspace '%s'", spec->workspace_path) : tree;
}

/*
 * The places of a live box, each cloned with the box's user in the place of an owner: a user with a
 * number of its own sees as its own what has that number on the host, as everybody else on this
 * machine would; user 0, who is used to owning everything, what belongs to the owner of the place.
 */
int native_map_places(const struct box_spec *spec, uint32_t base, int *ret_trees, struct error *err)
{
    for (size_t i = 0; i < spec->n_places; i++) {
        const struct box_place *p = &spec->places[i];
        autoclose int map = -1;
        struct stat st;
        int tree;

        if (!p->source)
            continue;
        if (fstat(p->fd, &st) < 0)
            return error_sys(err, -errno, "look at '%s'", p->source);
        map = ids_make_map(spec->uid ? spec->uid : st.st_uid, spec->gid ? spec->gid : st.st_gid,
                           base + spec->uid, base + spec->gid);
        if (map < 0)
            return error_sys(err, map, "make the id map of '%s'", p->source);
        tree = ids_map_tree(p->fd, map, p->read_only);
        if (tree < 0 && p->read_only) /* no id-mapped mounts there: what all may read is enough */
            tree = ids_map_tree(p->fd, -1, true);
        if (tree < 0)
            return error_sys(err, tree,
                             "mount '%s' for the box's user (its file system has no id-mapped "
                             "mounts: make it read-only, or run as an ordinary user)",
                             p->source);
        ret_trees[i] = tree;
    }
    return 0;
}

/* Image and changes keep the ids that they have on disk, as ids of the box's own range. */
static int map_image(const struct box_spec *spec, const struct host_facts *facts,
                     struct child_state *state, struct error *err)
{
    autoclose int map = -1;
    const int fds[] = {spec->root_fd, spec->rw_fd}, regs[] = {TREE_ROOT, TREE_RW};

    if (spec->root != ROOT_DIR || !spec->writable_root)
        return 0;
    map = ids_make_range_map(facts->range_base);
    if (map < 0)
        return error_sys(err, map, "make the id map of the image");
    for (int i = 0; i < 2; i++) {
        int tree = fds[i] < 0 ? -1 : ids_map_tree(fds[i], map, false);

        if (tree < 0 && fds[i] >= 0)
            return error_sys(err, tree,
                             "map the ids of the image (its file system cannot: use --read-only)");
        state->trees[regs[i]] = tree;
    }
    return 0;
}

struct box_limits native_group_limits(const struct box_spec *spec)
{
    struct box_limits limits = spec->limits;

    if (spec->live && limits.pids)
        limits.pids += LIMIT_REAPERS_FREE;
    return limits;
}

static int make_groups(const struct box_spec *spec, struct native_box *nb, struct host_facts *facts,
                       struct error *err)
{
    const struct box_limits limits = native_group_limits(spec);
    char name[48];
    int r;

    (void)snprintf(name, sizeof(name), CGROUP_PREFIX "box-%.12s-%d", nb->box.id, (int)getpid());
    r = cgroup_make(&nb->base, name, native_controllers(&spec->limits), &nb->groups);
    if (r < 0)
        return error_sys(err, r, "make cgroup '%s'", name);
    r = cgroup_set_limits(&nb->groups, &limits, NULL);
    if (r < 0)
        return error_sys(err, r, "set the limits of cgroup '%s'", name);
    r = cgroup_open_joins(&nb->groups, facts->cgroup_join);
    if (r < 0)
        return error_sys(err, r, "open cgroup '%s'", name);
    return 0;
}

struct sweep {
    int fds[2 + CG_COUNT]; /* init's image, the pipe, the folders */
    const char *name;
};

static int sweep_child(void *arg)
{
    const struct sweep *s = arg;
    const char *const argv[] = {"clawden-sweep", s->name, NULL};
    int high[2 + CG_COUNT];

    (void)sys_call(__NR_setsid);
    for (int i = 0; i < 2 + CG_COUNT; i++)
        high[i] = (int)sys_call(__NR_fcntl, s->fds[i], F_DUPFD_CLOEXEC, 3 + 1 + CG_COUNT);
    for (int i = 1; i < 2 + CG_COUNT; i++) {
        (void)sys_call(__NR_close, 2 + i);
        if (high[i] >= 0)
            (void)sys_call(__NR_dup3, high[i], 2 + i, 0);
    }
    (void)sys_call(__NR_close_range, 3 + 1 + CG_COUNT, ~0U, CLOSE_RANGE_CLOEXEC);
    (void)sys_call(__NR_execveat, high[0], "", argv, argv + 2, AT_EMPTY_PATH);
    return 127;
}

/* A few KiB that outlive us: see sweep_after() in init.c. Not to have one costs only tidiness. */
static void start_sweeper(struct native_box *nb, int init)
{
    static char stack[8192] __attribute__((aligned(16)));
    struct sweep s = {.fds = {init, -1, -1, -1, -1}, .name = nb->groups.name};
    int p[2];

    if (nb->groups.kind == CGROUP_NONE || pipe2(p, O_CLOEXEC) < 0)
        return;
    s.fds[1] = p[0];
    for (int i = 0; i < CG_COUNT; i++)
        if (nb->groups.dirs[i] >= 0 && (nb->groups.kind == CGROUP_V1 || i == CG_MEMORY))
            s.fds[2 + i] = nb->base.dirs[i];
    /* No exit signal: it is not a child that anybody waits for (__WALL excepted). */
    nb->sweeper_pid =
        (pid_t)sys_clone_on(CLONE_VM | CLONE_VFORK, stack + sizeof(stack), sweep_child, &s);
    (void)close(p[0]);
    nb->sweeper = p[1];
}

static int launch_here(const struct box_spec *spec, struct native_box *nb, struct host_facts *facts,
                       struct launch *l, struct error *err)
{
    static struct launch_plan plan;
    autoclose int init = -1, inner = -1;
    int pair[2], r;
    char tmp[48];

    r = plan_make(spec, facts, &plan, err);
    if (r < 0)
        return r;
    init = launch_init_image(err);
    if (init < 0)
        return init;
    if (spec->live) {
        inner = fcntl(spec->listener, F_DUPFD_CLOEXEC, 3);
        if (inner < 0)
            return error_sys(err, -errno, "copy the box's socket");
        l->state.locks[0] = nb->id_lock;
        l->state.locks[1] = spec->hold_fd;
    } else {
        start_sweeper(nb, init);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
            return error_sys(err, -errno, "make the control socket");
        nb->box.control_fd = pair[0];
        inner = pair[1];
    }
    l->plan = &plan;
    l->facts = facts;
    l->cgroup_fd = cgroup_clone_fd(&nb->groups);
    l->state.control = inner;
    l->state.init = init;
    r = launch_child(l, &nb->box.init_pid, &nb->pidfd, err);
    if (r < 0)
        return r;
    nb->box.belts = plan.belts;
    nb->settled = true;
    (void)snprintf(tmp, sizeof(tmp), "/proc/%d/root/tmp", (int)nb->box.init_pid);
    nb->tmp_fd = open(tmp, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return 0;
}

int native_start_here(const struct box_spec *spec, struct native_box *nb, struct error *err)
{
    static struct host_facts facts;
    struct launch l = {.cgroup_fd = -1};
    int r = host_look(spec, &facts, err);

    if (r < 0)
        return r;
    if (facts.ids == IDS_ONE && facts.caller_gid == 0)
        return error_set(err, ERR_DENIED,
                         "your primary group is 0, and a box never has an id 0 of the host: change "
                         "it with newgrp");
    child_state_init(&l.state);
    cgroup_find(false, &nb->base);
    r = native_grade(spec, &nb->base, &facts, facts.grades, err);
    if (r < 0)
        return r;
    memcpy(nb->box.grades, facts.grades, sizeof(facts.grades));
    nb->has_range = facts.ids == IDS_RANGE;
    if (!spec->live && !spec->writable_root)
        native_set_landlock(nb, spec, facts.landlock_abi, plan_workspace_place(spec, &facts));
    if (nb->has_range) {
        r = ids_lock_range(&facts.range_base, &nb->id_lock, err);
        if (r < 0)
            return r;
        if (spec->workspace_path) {
            r = map_workspace(spec, &facts, err);
            if (r < 0)
                return r;
            l.state.trees[TREE_WORKSPACE] = r;
        }
        facts.ws_tree_given = true;
        r = native_map_places(spec, facts.range_base, l.state.trees + TREE_PLACE, err);
        if (r >= 0)
            r = map_image(spec, &facts, &l.state, err);
    }
    if (r >= 0)
        r = make_groups(spec, nb, &facts, err);
    if (r >= 0)
        r = launch_here(spec, nb, &facts, &l, err);
    for (int i = 0; i < 4; i++)
        close_fd(&facts.cgroup_join[i]);
    for (int i = 0; i < TREE_MAX; i++)
        close_fd(&l.state.trees[i]);
    return r;
}

/*
 * For the next time; and for this time too where only the spawner can get a cgroup (an ordinary
 * user under systemd) and the run was denied for lack of one.
 */
static int wake_spawner(const struct box_spec *spec, struct native_box *nb, int r,
                        struct error *err)
{
    slot_client_wake();
    for (int i = 0; r == -ERR_DENIED && i < SPAWNER_WAIT_MS / 20; i++) {
        struct error again;
        int taken;

        (void)usleep(20000);
        taken = slot_client_start(spec, nb, &again);
        if (taken)
            r = taken;
        if (taken < 0)
            *err = again;
    }
    return r;
}

void native_set_landlock(struct native_box *nb, const struct box_spec *spec, int abi,
                         const char *workspace)
{
    nb->landlock = abi >= LANDLOCK_LEAST ? abi : 0;
    nb->workspace_ro = spec->workspace_ro;
    (void)snprintf(nb->workspace, sizeof(nb->workspace), "%s", workspace);
}

static int native_start(const struct box_spec *spec, struct box **ret, struct error *err)
{
    autoptr(native_box) nb = native_box_new();
    int r = 0;

    nb->box.live = spec->live;
    if (spec->use_spawner)
        r = slot_client_start(spec, nb, err);
    if (r == 0) {
        r = native_start_here(spec, nb, err);
        if (spec->use_spawner)
            r = wake_spawner(spec, nb, r, err);
    }
    if (r < 0)
        return r;
    *ret = &TAKE_PTR(nb)->box;
    return 0;
}

/* ---- commands ---- */

static struct native_box *native(struct box *b)
{
    return (struct native_box *)b;
}

static int native_settle(struct box *b, struct error *err)
{
    return native(b)->settled ? 0 : slot_client_settle(native(b), err);
}

/* The words of a command, one after the other, in a memfd. */
static int pack_words(const struct native_box *nb, const struct box_exec *what, struct wire_exec *x,
                      struct error *err)
{
    autoclose int fd = memfd_create("words", MFD_CLOEXEC);
    const char *cwd = what->cwd ? what->cwd : "";
    struct iovec iov[64];
    int n = 0;

    if (fd < 0)
        return error_sys(err, -errno, "make a memfd for the command");
    for (int part = 0; part < 3; part++) {
        const char *only[] = {cwd, nb->workspace, NULL};
        char *const *words = part == 0 ? what->argv : part == 1 ? what->env : (char *const *)only;

        for (; *words; words++) {
            if (n == 64) {
                if (writev(fd, iov, n) < 0)
                    return error_sys(err, -errno, "write the command");
                n = 0;
            }
            iov[n++] = (struct iovec){*words, strlen(*words) + 1};
            x->bytes += strlen(*words) + 1;
            x->argc += part == 0;
            x->envc += part == 1;
        }
    }
    if (x->bytes > LIMIT_ARG_BYTES || x->argc + x->envc > LIMIT_ARG_COUNT)
        return error_set(err, ERR_TOO_LARGE,
                         "the command and its environment have %llu bytes: at most %u",
                         (unsigned long long)x->bytes, LIMIT_ARG_BYTES);
    if (writev(fd, iov, n) < 0)
        return error_sys(err, -errno, "write the command");
    return TAKE_FD(fd);
}

static uint32_t live_flags(const struct native_box *nb, const struct box_exec *what)
{
    return (what->detach ? WIRE_DETACH : 0) | (what->leave ? WIRE_LEAVE : 0) |
           (nb->has_range ? WIRE_USER : 0);
}

static int native_exec(struct box *b, const struct box_exec *what, struct error *err)
{
    struct native_box *nb = native(b);
    struct wire_exec x = {.type = WIRE_EXEC,
                          .flags = b->live
                                       ? live_flags(nb, what)
                                       : WIRE_ONE_SHOT | (nb->workspace_ro ? WIRE_READ_ONLY : 0),
                          .rows = what->rows,
                          .cols = what->cols,
                          .landlock = (uint32_t)nb->landlock,
                          .uid = what->uid,
                          .gid = what->gid};
    int r = native_settle(b, err), words = r < 0 ? r : pack_words(nb, what, &x, err);
    int fds[WIRE_FD_COUNT] = {words, what->stdio[0], what->stdio[1], what->stdio[2], what->program};

    if (words < 0)
        return words;
    if (what->pty)
        x.flags |= WIRE_PTY;
    if (what->program)
        x.flags |= WIRE_PROGRAM;
    r = fd_send(b->control_fd, &x, sizeof(x), fds,
                what->program                     ? WIRE_FD_COUNT
                : what->pty || what->stdio[0] < 0 ? 1
                                                  : WIRE_FD_PROGRAM);
    (void)close(words);
    return r < 0 ? error_sys(err, r, "send the command to init") : 0;
}

static const char *failed_at(int at)
{
    switch (at) {
    case WIRE_AT_ARGS:
        return "read its words";
    case WIRE_AT_PTY:
        return "make a terminal";
    case WIRE_AT_CHDIR:
        return "enter the folder";
    case WIRE_AT_FORK:
        return "start a process";
    case WIRE_AT_LANDLOCK:
        return "put under Landlock";
    case WIRE_AT_USER:
        return "become its user";
    default:
        return "execute";
    }
}

static int native_kill(struct box *b);

static int native_next_event(struct box *b, struct box_event *ret, struct error *err)
{
    struct wire_reply m;
    int fd = -1;
    ssize_t n = fd_recv(b->control_fd, &m, sizeof(m), &fd, 1);

    *ret = (struct box_event){.kind = BOX_GONE, .pty_fd = -1};
    if (n == 0 || n == -ECONNRESET) {
        if (b->live)
            return 0;
        (void)native_kill(b);
        return native(b)->failure[0] ? error_set(err, ERR_SYS, "%s", native(b)->failure) : 0;
    }
    if (n != (ssize_t)sizeof(m))
        return error_sys(err, n < 0 ? (int)n : -EBADMSG, "read from init");
    switch (m.type) {
    case WIRE_STARTED:
        ret->kind = BOX_STARTED;
        ret->pty_fd = fd;
        return 0;
    case WIRE_FAILED:
        if (m.at != WIRE_AT_EXEC && m.at != WIRE_AT_CHDIR) { /* ours, not the command's */
            close_fd(&fd);
            return error_sys(err, -m.sys, "start the command: %s", failed_at(m.at));
        }
        ret->kind = BOX_FAILED;
        ret->sys = m.sys;
        ret->at = failed_at(m.at);
        break;
    case WIRE_EXITED:
        ret->kind = BOX_EXITED;
        ret->status = m.status;
        native(b)->ended = true;
        if (b->live) /* of this command; the box has more of them */
            native(b)->final =
                (struct box_usage){.cpu_usec = m.cpu_usec, .peak_bytes = m.max_rss_kib * 1024};
        break;
    default:
        close_fd(&fd);
        return error_set(err, ERR_INVALID, "init sent an unknown message (%u)", m.type);
    }
    close_fd(&fd);
    return 0;
}

static int native_signal(struct box *b, int signo)
{
    struct wire_signal m = {.type = WIRE_SIGNAL, .signal = (uint32_t)signo};

    return fd_send(b->control_fd, &m, sizeof(m), NULL, 0);
}

/* ---- the end ---- */

static void subtract(struct box_usage *u, const struct box_usage *start)
{
    u->oom_kills -= u->oom_kills < start->oom_kills ? u->oom_kills : start->oom_kills;
    u->forks_refused -=
        u->forks_refused < start->forks_refused ? u->forks_refused : start->forks_refused;
    u->cpu_usec -= u->cpu_usec < start->cpu_usec ? u->cpu_usec : start->cpu_usec;
}

static int native_ask_end(struct box *b)
{
    struct wire_signal m = {.type = WIRE_KILL, .signal = SIGKILL};

    return b->live ? fd_send(b->control_fd, &m, sizeof(m), NULL, 0) : -EOPNOTSUPP;
}

static int native_usage(struct box *b, struct box_usage *ret)
{
    struct native_box *nb = native(b);

    struct error ignored;

    if (!nb->dead && native_settle(b, &ignored) < 0)
        return -1;
    if (nb->dead || (b->live && nb->ended)) {
        *ret = nb->final;
        return 0;
    }
    *ret = (struct box_usage){0};
    if (b->live)
        live_open_groups(nb);
    if (nb->groups.kind == CGROUP_NONE || b->grades[LIMIT_MEMORY] != GRADE_KERNEL)
        watch_tree(b->init_pid, ret);
    else
        watch_cpu(b->init_pid, ret);
    cgroup_usage(&nb->groups, ret);
    subtract(ret, &nb->at_start);
    return 0;
}

static void take_rusage(struct box_usage *u, const struct rusage *r)
{
    u->cpu_usec = (uint64_t)(r->ru_utime.tv_sec + r->ru_stime.tv_sec) * 1000000 +
                  (uint64_t)(r->ru_utime.tv_usec + r->ru_stime.tv_usec);
    if (!u->peak_is_whole_box)
        u->peak_bytes = (uint64_t)r->ru_maxrss * 1024;
}

static int native_kill(struct box *b)
{
    struct native_box *nb = native(b);
    struct box_usage u = {0}, before = {0};
    struct statvfs v;
    struct rusage r;

    if (nb->dead)
        return 0;
    if (b->live)
        return live_kill(nb);
    if (nb->slot_fd >= 0)
        (void)native_settle(b, &(struct error){0});
    /* What is killed with init is not in its rusage: the kernel drops it. Look before. */
    if (!nb->ended && b->init_pid > 0)
        watch_cpu(b->init_pid, &before);
    if (nb->pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, nb->pidfd, SIGKILL, NULL, 0);
    if (nb->slot_fd >= 0) {
        slot_client_finish(nb);
        if (nb->final.cpu_usec < before.cpu_usec)
            nb->final.cpu_usec = before.cpu_usec;
        nb->dead = true;
        return 0;
    }
    while (wait4(b->init_pid, NULL, 0, &r) < 0)
        if (errno != EINTR) {
            r = (struct rusage){0};
            break;
        }
    cgroup_usage(&nb->groups, &u);
    subtract(&u, &nb->at_start);
    take_rusage(&u, &r);
    if (u.cpu_usec < before.cpu_usec)
        u.cpu_usec = before.cpu_usec;
    u.tmp_is_full =
        nb->tmp_fd >= 0 && fstatvfs(nb->tmp_fd, &v) == 0 && v.f_blocks && v.f_bfree == 0;
    nb->final = u;
    nb->dead = true;
    return 0;
}

static void native_destroy(struct box *b)
{
    struct native_box *nb = native(b);

    if (!b->live)
        (void)native_kill(b);
    if (nb->base.kind != CGROUP_NONE) {
        cgroup_remove(&nb->groups);
        cgroup_sweep(&nb->base);
        cgroup_base_done(&nb->base);
    }
    native_box_free(nb);
}

const struct engine_ops engine_native = {
    .name = "native",
    .start = native_start,
    .exec = native_exec,
    .settle = native_settle,
    .next_event = native_next_event,
    .signal = native_signal,
    .ask_end = native_ask_end,
    .usage = native_usage,
    .kill = native_kill,
    .destroy = native_destroy,
    .leave = live_leave,
    .attach = live_attach,
    .end = live_end,
    .sweep = live_sweep,
};
