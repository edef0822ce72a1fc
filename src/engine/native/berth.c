/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A berth: the first process of a live box that has no name yet (slot.h).
 *
 * Theory of operation. The spawner clones it as it would clone a box of its own; it walks TEMPLATE
 * and INSIDE and waits in accept(). One request brings what makes it a certain box; it walks WORK
 * and DROP and executes init. Until then it dies with the spawner, and it is never used twice: so
 * no box sees anything of another, and whatever goes wrong costs this one process.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "engine/native/launch.h"
#include "engine/native/slot.h"

#define PATIENCE_SEC 2 /* for a client that stops in the middle of a request */

static struct launch_plan rest;
static struct berth_fittings fittings;
static struct box_place places[LIMIT_PLACES];

static int refuse(int conn, const char *why, int sys)
{
    struct slot_reply r = {.type = SLOT_FAILED, .sys = sys};

    (void)snprintf(r.why, sizeof(r.why), "%s", why);
    (void)fd_send(conn, &r, sizeof(r), NULL, 0);
    return -1;
}

static int refuse_step(int conn, const struct launch_plan *plan, uint32_t step, int r)
{
    struct step_report rep = {.step = step, .sys = -r};
    struct error err;

    (void)launch_error(&err, plan, &rep);
    return refuse(conn, err.msg, -r);
}

/*
 * Says what this berth is made of, so that the client can set the limits itself. Before that
 * nothing has happened: a client that has gone away, or is of another build, does not use the berth
 * up, nor does it keep a spawner from leaving.
 */
static int take(struct launch *l, int conn)
{
    const struct slot *slot = slot_get();
    struct slot_reply r = {
        .type = SLOT_TAKEN, .cgroup_kind = slot->cgroup_kind, .belts = l->plan->belts};
    autoclose int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    struct berth_request q;
    int fds[4];
    size_t n = 0;

    if (fd_recv(conn, &q, sizeof(q), NULL, 0) != (ssize_t)sizeof(q) || q.type != SLOT_BERTH ||
        self < 0)
        return -1;
    if (q.build != slot_build_id()) {
        r.type = SLOT_REFUSED;
        (void)fd_send(conn, &r, sizeof(r), NULL, 0);
        return -1;
    }
    for (int i = 0; i < 3; i++)
        if (slot->cgroups[i] >= 0) {
            r.controllers |= 1u << i;
            fds[n++] = slot->cgroups[i];
        }
    fds[n++] = self;
    r.range_base = l->facts->ids == IDS_RANGE ? l->facts->range_base : 0;
    (void)!write(slot->notify, "+", 1);
    if (fd_send(conn, &r, sizeof(r), fds, n) >= 0)
        return 0;
    (void)!write(slot->notify, "-", 1);
    return -1;
}

/* The connection of a client that has been told; negative: there will be none. */
static int await_client(struct launch *l)
{
    struct timeval patience = {.tv_sec = PATIENCE_SEC};

    for (;;) {
        int conn = accept4(slot_get()->listener, NULL, NULL, SOCK_CLOEXEC);

        if (conn < 0 && errno != EINTR && errno != ECONNABORTED)
            return -errno;
        if (conn < 0)
            continue;
        (void)setsockopt(conn, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        if (take(l, conn) >= 0)
            return conn;
        (void)close(conn);
    }
}

/* ---- the fittings ---- */

static bool are_sane(const struct launch *l)
{
    const struct berth_fittings *f = &fittings;

    return f->type == SLOT_FITTINGS && f->n_places <= LIMIT_PLACES &&
           f->n_rlimits <= LIMIT_RLIMITS && f->text_bytes && f->text_bytes <= LIMIT_BERTH_TEXT &&
           f->limits.tmp_bytes && !!f->has_trees == (l->facts->ids == IDS_RANGE);
}

/* The next string of the text, or NULL. */
static const char *next(const char **at, const char *end)
{
    const char *s = *at;
    const char *nul = s < end ? memchr(s, 0, (size_t)(end - s)) : NULL;

    if (!nul)
        return NULL;
    *at = nul + 1;
    return s;
}

static int read_text(const char *text, struct box_spec *spec)
{
    const char *at = text, *end = text + fittings.text_bytes;

    spec->hostname = next(&at, end);
    spec->hosts = next(&at, end);
    spec->network = fittings.network;
    for (uint32_t i = 0; i < fittings.n_places; i++) {
        const struct berth_place *p = &fittings.places[i];
        const char *target = next(&at, end), *source = next(&at, end);

        if (!target || !source || target[0] != '/' || (p->has_source && source[0] != '/'))
            return -EINVAL;
        places[i] = (struct box_place){.target = target,
                                       .source = p->has_source ? source : NULL,
                                       .fd = -1,
                                       .is_dir = p->is_dir,
                                       .read_only = p->read_only,
                                       .bytes = p->bytes,
                                       .mode = p->mode,
                                       .no_exec = p->no_exec};
    }
    return spec->hostname && spec->hosts ? 0 : -EINVAL;
}

/* One id: the berth goes back to the host's mounts, as the user, for the trees of the places. */
static int clone_trees(struct launch *l, int conn)
{
    struct child_state *st = &l->state;
    int r = 0;

    if (setns(st->host_ns, CLONE_NEWNS) < 0)
        return refuse(conn, "enter the host's mounts", errno);
    for (uint32_t i = 0; r >= 0 && i < fittings.n_places; i++) {
        const struct berth_place *p = &fittings.places[i];
        uint64_t attrs =
            MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (p->read_only ? MOUNT_ATTR_RDONLY : 0);

        if (!p->has_source)
            continue;
        if (!p->ino) /* 0 would mean: any object of that name */
            return refuse(conn, "a place without its object", EINVAL);
        r = child_clone_tree(places[i].source, p->dev, p->ino, attrs);
        st->trees[TREE_PLACE + i] = r;
        if (r < 0) {
            char why[256];

            (void)snprintf(why, sizeof(why), "open '%.200s': %s", places[i].source, strerror(-r));
            return refuse(conn, why, -r);
        }
    }
    return setns(st->parked_ns, CLONE_NEWNS) < 0 ? refuse(conn, "return to the box's mounts", errno)
                                                 : 0;
}

static int receive(struct launch *l, int conn, struct box_spec *spec)
{
    int fds[BERTH_FDS], n = 0;
    struct stat st;
    char *text;

    if (fd_recv(conn, &fittings, sizeof(fittings), fds, BERTH_FDS) != (ssize_t)sizeof(fittings) ||
        !are_sane(l))
        return -1;
    /* Nobody can shrink it under us: it is read once, into memory of our own. */
    if (fstat(fds[n], &st) < 0 || (uint64_t)st.st_size != fittings.text_bytes)
        return refuse(conn, "the text of the request is not as long as it says", EINVAL);
    text =
        mmap(NULL, fittings.text_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text == MAP_FAILED ||
        pread(fds[n], text, fittings.text_bytes, 0) != (ssize_t)fittings.text_bytes)
        return refuse(conn, "read the text of the request", EIO);
    n++;
    l->state.control = fds[n++];
    if (fittings.has_hold)
        l->state.locks[1] = fds[n++];
    if (read_text(text, spec) < 0)
        return refuse(conn, "the text of the request has too few strings", EINVAL);
    for (uint32_t i = 0; fittings.has_trees && i < fittings.n_places; i++)
        if (fittings.places[i].has_source)
            l->state.trees[TREE_PLACE + i] = fds[n++];
    if (l->state.control < 0 || (fittings.has_trees && n > 2 && fds[n - 1] < 0))
        return refuse(conn, "the request came with too few descriptors", EINVAL);
    return fittings.has_trees ? 0 : clone_trees(l, conn);
}

/* ---- becoming the box ---- */

/*
 * The box's socket answers from here on, so whoever looks for the box after our client finds us.
 * A client that is gone before that may have been followed by another one already, with a socket
 * of its own: then this box is nobody's.
 */
static int be_found(const struct launch *l, int conn)
{
    struct pollfd p = {.fd = conn, .events = POLLRDHUP};

    if (listen(l->state.control, LIMIT_BACKLOG) < 0)
        return refuse(conn, "listen on the box's socket", errno);
    return poll(&p, 1, 0) == 0 ? 0 : -1;
}

static int become(struct launch *l, int conn)
{
    struct box_spec spec = {.root = ROOT_HOST,
                            .root_fd = -1,
                            .workspace_fd = -1,
                            .rw_fd = -1,
                            .live = true,
                            .places = places,
                            .rlimits = fittings.rlimits};
    const struct slot *slot = slot_get();
    struct host_facts *facts = l->facts;
    struct error err;
    uint32_t step = 0;
    int r;

    if (receive(l, conn, &spec) < 0 || be_found(l, conn) < 0)
        return -1;
    spec.uid = fittings.uid;
    spec.gid = fittings.gid;
    spec.limits = fittings.limits;
    spec.n_places = fittings.n_places;
    spec.n_rlimits = fittings.n_rlimits;
    facts->grades[LIMIT_MEMORY] = slot->cgroups[0] >= 0 ? GRADE_KERNEL : GRADE_SUPERVISED;
    facts->grades[LIMIT_CPU] = slot->cgroups[2] >= 0 ? GRADE_KERNEL : GRADE_SUPERVISED;
    if (plan_fittings(&spec, facts, slot->tmp_bytes, &rest, &err) < 0)
        return refuse(conn, err.msg, E2BIG);
    l->state.locks[0] = slot->id_lock;
    l->state.report = conn; /* closes when init is executed; a failing step is told over it */
    r = child_walk(&l->state, &rest, STAGE_WORK, STAGE_WORK, &step);
    if (r < 0)
        return refuse_step(conn, &rest, step, r);
    (void)!write(slot->notify, "!", 1);
    (void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0); /* from here on it is nobody's */
    r = child_walk(&l->state, &rest, STAGE_DROP, STAGE_DROP, &step);
    return refuse_step(l->state.report, &rest, step, r);
}

int berth_main(struct launch *l, int report_fd)
{
    struct step_report rep = {0};
    int conn, r = 0;

    (void)prctl(PR_SET_NAME, "clawden-berth", 0, 0, 0);
    if (l->facts->ids == IDS_ONE)
        r = child_split_host(&l->state);
    if (r >= 0)
        r = child_walk(&l->state, l->plan, STAGE_TEMPLATE, STAGE_INSIDE, &rep.step);
    if (r >= 0)
        r = l->state.parked_ns = child_open_mounts();
    if (r >= 0)
        slot_keep_only(l);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    rep.sys = r < 0 ? -r : 0;
    /* A spawner that died before we were tied to it does not read this. */
    if (fd_write_full(r < 0 ? report_fd : l->state.report, &rep, sizeof(rep)) < 0 || r < 0)
        return 1;
    close_fd(&l->state.report);
    conn = await_client(l);
    if (conn >= 0)
        (void)become(l, conn);
    return 1; /* the spawner makes another */
}
