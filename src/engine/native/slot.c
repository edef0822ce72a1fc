/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slot process. It is process 1 of a pid namespace of its own, so that whatever happens to it,
 * the box inside ends with it. It keeps every capability of its user namespace, and no request
 * makes it do more than mount one folder and execute init: limits, ids and paths are data of fixed
 * shape.
 */
#include "engine/native/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/sys.h"
#include "engine/native/launch.h"
#include "engine_hash.h"
#include "init_image.h"

#define CLIENT_MS    20  /* at most, until the client has read its result */
#define CLIENT_USEC  300 /* and for what it does then: write the audit line, exit */
#define PATIENCE_SEC 2   /* for a client that stops in the middle of a request */

static struct slot slot;
static struct box_limits known_limits; /* what the client of the last box set */
static bool limits_known;
static struct launch_plan request_plan;

void slot_set(const struct slot *s)
{
    slot = *s;
}

const struct slot *slot_get(void)
{
    return &slot;
}

uint64_t slot_build_id(void)
{
    return INIT_IMAGE_HASH ^ ENGINE_SOURCES_HASH ^ sizeof(struct slot_request) << 40 ^
           sizeof(struct slot_reply) << 20 ^ sizeof(struct berth_fittings) << 30 ^ OP_COUNT << 8 ^
           LIMIT_KINDS;
}

/* ---- the box's first process ---- */

/* Shares our memory until it has become init: how far it came is read there. */
static struct first {
    struct child_state state;
    uint32_t step;
    int r;
    pid_t pid;
    int pidfd, control; /* control: our end of init's socket */
} first = {.pidfd = -1, .control = -1};

static int first_main(void *arg)
{
    struct launch *l = arg;

    first.r = child_walk(&first.state, l->plan, STAGE_INSIDE, STAGE_INSIDE, &first.step);
    if (first.r >= 0)
        first.r = child_walk(&first.state, l->plan, STAGE_DROP, STAGE_DROP, &first.step);
    return 127;
}

static void drop_first(void)
{
    if (first.pid > 0) {
        (void)kill(first.pid, SIGKILL);
        while (waitpid(first.pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    first.pid = 0;
    close_fd(&first.pidfd);
    close_fd(&first.control);
}

/* Starts the next box's init, which waits for a command. Returns when it is executed. */
static int make_first(struct launch *l, uint32_t *ret_step)
{
    static char stack[64 << 10] __attribute__((aligned(64)));
    struct clone_args a = {
        .flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD,
        .pidfd = (uint64_t)(uintptr_t)&first.pidfd,
        .exit_signal = SIGCHLD,
        .stack = (uint64_t)(uintptr_t)stack,
        .stack_size = sizeof(stack),
    };
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    first = (struct first){.state = l->state, .pidfd = -1, .control = pair[0]};
    first.state.control = pair[1];
    first.state.report = -1;
    first.state.target = 0;
    first.pid = (pid_t)sys_clone_call(&a, sizeof(a), first_main, l);
    (void)close(pair[1]);
    if (first.pid < 0)
        return first.pid;
    *ret_step = first.step;
    return first.r;
}

/* ---- one box ---- */

struct service {
    struct launch *l;
    int conn;
    struct slot_request req;
};

static int refuse(struct service *s, const char *why, int sys)
{
    struct slot_reply r = {.type = SLOT_FAILED, .sys = sys};

    (void)snprintf(r.why, sizeof(r.why), "%s", why);
    (void)fd_send(s->conn, &r, sizeof(r), NULL, 0);
    return -1;
}

static int refuse_step(struct service *s, const struct launch_plan *plan, uint32_t step, int r)
{
    struct step_report rep = {.step = step, .sys = -r};
    struct error err;

    (void)launch_error(&err, plan, &rep);
    return refuse(s, err.msg, -r);
}

static bool is_sane(const struct slot_request *q)
{
    return q->type == SLOT_REQUEST && q->ws_path[0] == '/' &&
           memchr(q->ws_path, 0, sizeof(q->ws_path)) && q->limits.tmp_bytes &&
           q->ws_ino; /* 0 would mean: any object of that name */
}

static int take_request(struct service *s)
{
    struct slot_reply r = {.type = SLOT_TAKEN,
                           .cgroup_kind = slot.cgroup_kind,
                           .limits = known_limits,
                           .limits_known = limits_known};
    int fds[4];
    size_t n = 0;
    ssize_t len = fd_recv(s->conn, &s->req, sizeof(s->req), NULL, 0);

    if (len != (ssize_t)sizeof(s->req) || !is_sane(&s->req))
        return -1;
    if (waitpid(first.pid, NULL, WNOHANG) != 0) /* somebody killed it while it waited */
        _exit(1);
    if (s->req.build != slot_build_id()) {
        r.type = SLOT_REFUSED;
        (void)fd_send(s->conn, &r, sizeof(r), NULL, 0);
        return -1;
    }
    for (int i = 0; i < 3; i++)
        if (slot.cgroups[i] >= 0) {
            r.controllers |= 1u << i;
            fds[n++] = slot.cgroups[i];
        }
    if (slot.id_map >= 0)
        fds[n++] = slot.id_map;
    limits_known = false; /* until this box has come to a good end */
    r.range_base = s->l->facts->ids == IDS_RANGE ? s->l->facts->range_base : 0;
    return fd_send(s->conn, &r, sizeof(r), fds, n);
}

/* Whoever asks for a new network namespace once will do so again: the next one is made beforehand.
 */
static int renew_net(struct service *s)
{
    struct child_state *st = &s->l->state;
    int r;

    st->fresh_net = s->req.fresh_net;
    if (!s->req.fresh_net || st->net_is_new)
        return 0;
    r = child_new_net();
    return r < 0 ? refuse(s, "make a network namespace", -r) : 0;
}

/* The workspace's tree: sent by root, who had to map it; else found among the host's mounts. */
static int take_tree(struct service *s)
{
    struct child_state *st = &s->l->state;
    uint64_t attrs =
        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (s->req.workspace_ro ? MOUNT_ATTR_RDONLY : 0);
    uint32_t type;
    int tree;

    if (s->l->facts->ids == IDS_RANGE) {
        ssize_t n = fd_recv(s->conn, &type, sizeof(type), &tree, 1);

        if (n != (ssize_t)sizeof(type) || type != SLOT_WORKSPACE || tree < 0)
            return refuse(s, "the client sent no workspace", EPROTO);
        st->trees[TREE_WORKSPACE] = tree;
        return 0;
    }
    if (setns(st->host_ns, CLONE_NEWNS) < 0)
        return refuse(s, "enter the host's mounts", errno);
    tree = child_clone_tree(s->req.ws_path, s->req.ws_dev, s->req.ws_ino, attrs);
    if (setns(st->parked_ns, CLONE_NEWNS) < 0) /* nothing can be done with this slot any more */
        _exit(1);
    if (tree < 0) {
        char why[256];

        (void)snprintf(why, sizeof(why), "open workspace '%.200s': %s", s->req.ws_path,
                       strerror(-tree));
        return refuse(s, why, -tree);
    }
    st->trees[TREE_WORKSPACE] = tree;
    return 0;
}

static int build_box(struct service *s)
{
    struct box_spec spec = {.root = ROOT_HOST,
                            .root_fd = -1,
                            .workspace_fd = -1,
                            .workspace_path = s->req.ws_path,
                            .workspace_ro = s->req.workspace_ro,
                            .uid = 1000,
                            .gid = 1000,
                            .limits = s->req.limits};
    struct host_facts *facts = s->l->facts;
    struct error err;
    uint32_t step = 0;
    int r;

    facts->grades[LIMIT_MEMORY] = slot.cgroups[0] >= 0 ? GRADE_KERNEL : GRADE_SUPERVISED;
    facts->grades[LIMIT_CPU] = slot.cgroups[2] >= 0 ? GRADE_KERNEL : GRADE_SUPERVISED;
    if (plan_request(&spec, facts, slot.tmp_bytes, &request_plan, &err) < 0)
        return refuse(s, err.msg, E2BIG);
    if (take_tree(s) < 0)
        return -1;
    s->l->state.target = first.pid;
    r = child_walk(&s->l->state, &request_plan, STAGE_WORK, STAGE_WORK, &step);
    return r < 0 ? refuse_step(s, &request_plan, step, r) : 0;
}

/* Until init is gone; the client's going away is its end too. */
static void attend(struct service *s)
{
    struct slot_reply r = {.type = SLOT_STARTED, .belts = s->l->plan->belts};
    struct pollfd p[2] = {{.fd = s->conn, .events = POLLIN | POLLRDHUP},
                          {.fd = first.pidfd, .events = POLLIN}};
    int fds[2] = {first.pidfd, first.control};
    struct rusage u = {0};
    struct statvfs v;

    if (fd_send(s->conn, &r, sizeof(r), fds, 2) < 0)
        (void)kill(first.pid, SIGKILL);
    close_fd(&first.control); /* the client alone holds it now: when it goes, init goes */
    while (!p[1].revents) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            break;
        if (p[0].revents) {
            (void)kill(first.pid, SIGKILL);
            p[0].fd = -1;
        }
    }
    while (wait4(first.pid, NULL, 0, &u) < 0 && errno == EINTR)
        ;
    first.pid = 0;
    r = (struct slot_reply){.type = SLOT_ENDED};
    r.cpu_usec = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
                 (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    r.max_rss_kib = (uint64_t)u.ru_maxrss;
    r.tmp_is_full =
        statvfs("/tmp", &v) == 0 && v.f_blocks && v.f_bfree == 0; /* we still stand in its mounts */
    limits_known = fd_send(s->conn, &r, sizeof(r), NULL, 0) >= 0 && p[0].fd >= 0;
    known_limits = s->req.limits;
    /* Parking the next box keeps a processor busy for a millisecond: not the one the client needs
     * now. */
    p[0].events = POLLRDHUP;
    (void)poll(p, 1, CLIENT_MS);
    (void)usleep(CLIENT_USEC);
}

static void serve(struct launch *l, int conn)
{
    struct timeval patience = {.tv_sec = PATIENCE_SEC};
    struct service s = {.l = l, .conn = conn};

    (void)setsockopt(conn, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (take_request(&s) >= 0 && renew_net(&s) >= 0 && build_box(&s) >= 0)
        attend(&s);
    child_unmake_dirs(&l->state, s.req.ws_path + 1);
    drop_first();
    close_fd(&l->state.trees[TREE_WORKSPACE]);
    (void)close(conn);
}

/* ---- the process ---- */

static int report(int fd, uint32_t step, int r)
{
    struct step_report rep = {.step = step, .sys = -r};

    return fd_write_full(fd, &rep, sizeof(rep));
}

/* The spawner has more open than a slot may keep: only what is named here survives. */
void slot_keep_only(struct launch *l)
{
    int *kept[] = {&slot.listener,   &slot.id_map,   &slot.cgroups[0],  &slot.cgroups[1],
                   &slot.cgroups[2], &slot.notify,   &slot.id_lock,     &l->state.root,
                   &l->state.writer, &l->state.init, &l->state.host_ns, &l->state.parked_ns,
                   &l->state.report};
    enum { FIRST = 200 };
    unsigned last = FIRST - 1;

    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
        if (*kept[i] < 0)
            continue;
        *kept[i] = fcntl(*kept[i], F_DUPFD_CLOEXEC, FIRST);
        if (*kept[i] < 0)
            _exit(1);
        if ((unsigned)*kept[i] > last)
            last = (unsigned)*kept[i];
    }
    fd_close_range(3, FIRST - 1);
    fd_close_range(last + 1, ~0u);
}

int slot_main(struct launch *l, int report_fd)
{
    uint32_t step = 0;
    int r;

    (void)prctl(PR_SET_NAME, "clawden-slot", 0, 0, 0);
    l->state.cold = false;
    r = child_walk(&l->state, l->plan, STAGE_TEMPLATE, STAGE_TEMPLATE, &step);
    if (r < 0)
        return report(report_fd, step, r);
    slot_keep_only(l);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    for (bool starting = true;; starting = false) {
        int conn;

        r = child_walk(&l->state, l->plan, STAGE_PARK, STAGE_PARK, &step);
        if (r >= 0)
            r = make_first(l, &step);
        /* A spawner that died before we were tied to it does not read this. */
        if (starting && report(l->state.report, step, r) < 0)
            r = -EPIPE;
        close_fd(&l->state.report);
        if (r < 0) {
            drop_first();
            return 1; /* the spawner makes another */
        }
        do {
            conn = accept4(slot.listener, NULL, NULL, SOCK_CLOEXEC);
        } while (conn < 0 && (errno == EINTR || errno == ECONNABORTED));
        if (conn < 0)
            return 1;
        (void)!write(slot.notify, "+", 1);
        serve(l, conn);
        (void)!write(slot.notify, "-", 1);
    }
}
