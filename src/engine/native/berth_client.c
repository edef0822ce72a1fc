/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "engine/native/native.h"
#include "engine/native/slot.h"

#define INIT_TRIES 200 /* of which half without a pause: exec is through in microseconds */
#define HIDDEN_MS  5   /* dying takes less */

/*
 * Berths are made for the common box: the host's system folders, read-only, and as its user the
 * caller's own numbers (with a range of ids, any). Everything else is built in place.
 */
static bool fits_a_berth(const struct box_spec *spec)
{
    return spec->root == ROOT_HOST && !spec->writable_root && !spec->workspace_path &&
           !spec->builds_image && spec->limits.tmp_bytes && spec->n_rlimits <= LIMIT_RLIMITS &&
           (geteuid() == 0 || (spec->uid == geteuid() && spec->gid == getegid())) &&
           getpriority(PRIO_PROCESS, 0) == 0; /* a berth does not have the caller's priority */
}

/* ---- the request ---- */

static int pack_text(const struct box_spec *spec, struct berth_fittings *f, struct error *err)
{
    autoclose int fd = memfd_create("fittings", MFD_CLOEXEC);
    autobuf text;
    int r;

    if (fd < 0)
        return error_sys(err, -errno, "make a memfd for the request");
    buf_init(&text, LIMIT_BERTH_TEXT);
    buf_append(&text, spec->hostname, strlen(spec->hostname) + 1);
    buf_append(&text, spec->hosts ? spec->hosts : "", (spec->hosts ? strlen(spec->hosts) : 0) + 1);
    for (size_t i = 0; i < spec->n_places; i++) {
        const struct box_place *p = &spec->places[i];

        buf_append(&text, p->target, strlen(p->target) + 1);
        buf_append(&text, p->source ? p->source : "", (p->source ? strlen(p->source) : 0) + 1);
    }
    if (text.failed)
        return error_set(err, ERR_TOO_LARGE, "the places of the box have too long names");
    f->text_bytes = text.len;
    r = fd_write_full(fd, text.data, text.len);
    return r < 0 ? error_sys(err, r, "write the request") : TAKE_FD(fd);
}

static int describe(const struct box_spec *spec, struct berth_fittings *f, struct error *err)
{
    *f = (struct berth_fittings){.type = SLOT_FITTINGS,
                                 .uid = spec->uid,
                                 .gid = spec->gid,
                                 .limits = spec->limits,
                                 .n_places = (uint32_t)spec->n_places,
                                 .n_rlimits = (uint32_t)spec->n_rlimits,
                                 .has_hold = spec->hold_fd >= 0,
                                 .network = spec->network};
    if (spec->n_rlimits)
        memcpy(f->rlimits, spec->rlimits, spec->n_rlimits * sizeof(*spec->rlimits));
    for (size_t i = 0; i < spec->n_places; i++) {
        const struct box_place *p = &spec->places[i];
        struct stat st = {0};

        if (p->source && fstat(p->fd, &st) < 0)
            return error_sys(err, -errno, "look at '%s'", p->source);
        f->places[i] = (struct berth_place){.dev = st.st_dev,
                                            .ino = st.st_ino,
                                            .bytes = p->bytes,
                                            .mode = p->mode,
                                            .has_source = p->source != NULL,
                                            .is_dir = p->is_dir,
                                            .read_only = p->read_only,
                                            .no_exec = p->no_exec};
    }
    return 0;
}

static int send_fittings(const struct box_spec *spec, uint32_t range_base, struct native_box *nb,
                         struct error *err)
{
    static struct berth_fittings f;
    int trees[LIMIT_PLACES], fds[BERTH_FDS], r;
    autoclose int text = -1;
    size_t n = 0;

    memset(trees, -1, sizeof(trees));
    r = describe(spec, &f, err);
    if (r >= 0)
        r = text = pack_text(spec, &f, err);
    if (r >= 0 && range_base) {
        f.has_trees = 1;
        r = native_map_places(spec, range_base, trees, err);
    }
    if (r >= 0) {
        fds[n++] = text;
        fds[n++] = spec->listener;
        if (f.has_hold)
            fds[n++] = spec->hold_fd;
        for (size_t i = 0; i < spec->n_places; i++)
            if (trees[i] >= 0)
                fds[n++] = trees[i];
        r = fd_send(nb->slot_fd, &f, sizeof(f), fds, n);
        if (r < 0)
            (void)error_sys(err, r, "send the request to the berth");
    }
    for (size_t i = 0; i < spec->n_places; i++)
        close_fd(&trees[i]);
    return r;
}

/*
 * Is it init by now? The connection of a berth that dies closes as well, and a moment before that
 * can be seen of its process; but what it was called dies first.
 */
static bool became_init(const struct native_box *nb)
{
    static const char name[] = "clawden-init";
    struct pollfd p = {.fd = nb->pidfd, .events = POLLIN};
    char path[48], text[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)slot_pid_of(nb->pidfd));
    for (int i = 0; i < INIT_TRIES; i++) {
        ssize_t n = fd_read_value(AT_FDCWD, path, text, sizeof(text));

        if (n < 0) /* hidden even from its own user: some mount /proc like that */
            return poll(&p, 1, HIDDEN_MS) == 0;
        if (poll(&p, 1, i < INIT_TRIES / 2 ? 0 : 1) != 0)
            return false;
        if (n == (ssize_t)sizeof(name) && memcmp(text, name, sizeof(name)) == 0)
            return true;
    }
    return false;
}

static int await_init(struct native_box *nb, struct error *err)
{
    struct slot_reply r = {0};
    ssize_t n;

    if (!slot_wait(nb->slot_fd, SLOT_STARTED_MS))
        return error_set(err, ERR_TIMEOUT, "the spawner's berth does not answer");
    n = fd_recv(nb->slot_fd, &r, sizeof(r), NULL, 0);
    if (n == (ssize_t)sizeof(r) && r.type == SLOT_FAILED) {
        r.why[sizeof(r.why) - 1] = 0;
        (void)error_set(err, ERR_SYS, "%s", r.why);
        err->sys = r.sys;
        return -ERR_SYS;
    }
    if (n > 0 || !became_init(nb))
        return error_set(err, ERR_SYS, "the spawner's berth died while it became the box");
    return 0;
}

static int take(const struct box_spec *spec, struct native_box *nb, uint32_t *ret_base,
                struct error *err)
{
    struct berth_request q = {.type = SLOT_BERTH, .build = slot_build_id()};
    int fds[4] = {-1, -1, -1, -1};
    struct slot_reply taken;

    nb->slot_fd = slot_connect(BERTH_SOCKET);
    if (nb->slot_fd < 0) {
        nb->slot_fd = -1;
        return 0;
    }
    if (fd_send(nb->slot_fd, &q, sizeof(q), NULL, 0) < 0 ||
        !slot_wait(nb->slot_fd, SLOT_TAKEN_MS) ||
        fd_recv(nb->slot_fd, &taken, sizeof(taken), fds, 4) != (ssize_t)sizeof(taken) ||
        taken.type != SLOT_TAKEN)
        return 0;
    nb->pidfd = slot_sort_taken(&taken, fds, nb);
    nb->box.belts = taken.belts;
    nb->has_range = taken.range_base != 0;
    *ret_base = taken.range_base;
    return nb->pidfd >= 0 && slot_grade(spec, nb, err);
}

static int fit_out(const struct box_spec *spec, struct native_box *nb, uint32_t base,
                   struct error *err)
{
    struct box_limits limits = native_group_limits(spec);
    int r = cgroup_set_limits(&nb->groups, &limits, NULL);

    if (r < 0)
        return error_sys(err, r, "set the limits of the berth's cgroup");
    r = send_fittings(spec, base, nb, err);
    return r < 0 ? r : await_init(nb, err);
}

/*
 * A berth that failed is gone before anything else is tried with the same socket. The spawner may
 * have let go of it, and with it of its groups.
 */
static void scrap(struct native_box *nb)
{
    struct pollfd p = {.fd = nb->pidfd, .events = POLLIN};
    char path[LIMIT_PATH];

    (void)syscall(SYS_pidfd_send_signal, nb->pidfd, SIGKILL, NULL, 0);
    (void)poll(&p, 1, SLOT_STARTED_MS);
    for (int i = 0; i < CG_COUNT; i++)
        if (nb->groups.dirs[i] >= 0 && path_of_fd(nb->groups.dirs[i], path, sizeof(path)) >= 0)
            for (int k = 0; k < 100 && rmdir(path) < 0 && errno == EBUSY; k++)
                (void)usleep(1000); /* it holds the dead for a moment */
}

int berth_client_start(const struct box_spec *spec, struct native_box *nb, struct error *err)
{
    uint32_t base = 0;

    if (!fits_a_berth(spec) || take(spec, nb, &base, err) <= 0) {
        slot_forget(nb); /* nothing has happened: build it in place */
        return 0;
    }
    if (fit_out(spec, nb, base, err) < 0) { /* a reason that lasts is found again in place */
        scrap(nb);
        slot_forget(nb);
        return 0;
    }
    close_fd(&nb->slot_fd);
    nb->box.init_pid = slot_pid_of(nb->pidfd);
    nb->box.from_slot = true;
    nb->settled = true;
    return 1;
}
