/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes that outlive whoever made them.
 *
 * Nobody holds such a box: its init listens on a socket in the box's folder, and who can open that
 * folder can use the box. Each connection is one command. Who init is, is asked of the kernel (the
 * credentials of the socket are those of the process that listens), so a stale number in a file can
 * never lead to a signal for somebody else.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "engine/native/native.h"
#include "wire/wire.h"

#define END_WAIT_MS 10000

void live_leave(struct box *b, struct box_live *ret)
{
    struct native_box *nb = (struct native_box *)b;

    *ret = (struct box_live){.init_pid = b->init_pid,
                             .has_range = nb->has_range,
                             .from_slot = b->from_slot,
                             .belts = b->belts};
    memcpy(ret->grades, b->grades, sizeof(ret->grades));
    for (int i = 0; i < CG_COUNT; i++) {
        if (nb->groups.dirs[i] >= 0)
            (void)path_of_fd(nb->groups.dirs[i], ret->cgroups[i], sizeof(ret->cgroups[i]));
        close_fd(&nb->groups.dirs[i]);
    }
    nb->groups.kind = CGROUP_NONE; /* they stay, with the box in them */
    native_box_free(nb);
}

static int connect_box(int folder, pid_t *ret_pid)
{
    autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct ucred who;
    socklen_t len = sizeof(who);

    if (fd < 0)
        return -errno;
    /* By descriptor: the path may be longer than an address can hold. */
    (void)snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/" BOX_SOCKET, folder);
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        return -errno;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
        return -errno;
    *ret_pid = who.pid;
    return TAKE_FD(fd);
}

void live_open_groups(struct native_box *nb)
{
    char probe[64];

    for (int i = 0; i < CG_COUNT && nb->live && nb->groups.kind == CGROUP_NONE; i++) {
        if (!nb->live->cgroups[i][0] || nb->groups.dirs[i] >= 0)
            continue;
        nb->groups.dirs[i] = open(nb->live->cgroups[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    for (int i = 0; i < CG_COUNT; i++)
        if (nb->groups.dirs[i] >= 0)
            nb->groups.kind =
                fd_read_value(nb->groups.dirs[i], "cgroup.events", probe, sizeof(probe)) < 0
                    ? CGROUP_V1
                    : CGROUP_V2;
}

int live_attach(int folder, const struct box_live *live, struct box **ret, struct error *err)
{
    autoptr(native_box) nb = native_box_new();
    int fd;

    nb->box.live = true;
    fd = connect_box(folder, &nb->box.init_pid);
    if (fd == -ECONNREFUSED || fd == -ENOENT)
        return error_set(err, ERR_NOT_FOUND, "the box does not run");
    if (fd < 0)
        return error_sys(err, fd, "connect to the box");
    nb->box.control_fd = fd;
    nb->live = live;
    nb->has_range = live->has_range;
    nb->box.belts = live->belts;
    memcpy(nb->box.grades, live->grades, sizeof(nb->box.grades));
    nb->settled = true;
    *ret = &TAKE_PTR(nb)->box;
    return 0;
}

/* Asks for the end of the command and everything it started, and waits until that is so. */
int live_kill(struct native_box *nb)
{
    struct wire_signal m = {.type = WIRE_KILL, .signal = SIGKILL};
    struct wire_reply reply;
    int fd = -1;

    struct pollfd p = {.fd = nb->box.control_fd, .events = POLLIN};

    /* A reaper that does not answer in time: closing the connection is as good an order to kill. */
    if (p.fd >= 0 && fd_send(p.fd, &m, sizeof(m), NULL, 0) >= 0)
        while (poll(&p, 1, END_WAIT_MS) > 0 && fd_recv(p.fd, &reply, sizeof(reply), &fd, 1) > 0)
            close_fd(&fd);
    nb->dead = true;
    return 0;
}

/* Groups hold the dead for a moment; the next sweep gets what does not go now. */
static void remove_groups(const struct box_live *live)
{
    for (int i = 0; i < CG_COUNT; i++)
        for (int k = 0; live->cgroups[i][0] && k < 100; k++) {
            if (rmdir(live->cgroups[i]) == 0 || errno != EBUSY)
                break;
            (void)usleep(1000);
        }
}

int live_end(struct box *b, const struct box_live *live, struct error *err)
{
    autoclose int pidfd = -1;
    struct pollfd p;

    if (b) {
        pidfd = (int)syscall(SYS_pidfd_open, b->init_pid, 0);
        if (pidfd < 0 && errno != ESRCH)
            return error_sys(err, -errno, "open process %d of the box", (int)b->init_pid);
        /* Still the one that listens: the connection is up, so the number was not given away. */
        p = (struct pollfd){.fd = b->control_fd, .events = POLLIN};
        if (pidfd >= 0 && poll(&p, 1, 0) == 0) {
            (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
            p = (struct pollfd){.fd = pidfd, .events = POLLIN};
            if (poll(&p, 1, END_WAIT_MS) == 0)
                return error_set(err, ERR_TIMEOUT,
                                 "process %d of the box did not end within %d s of being killed",
                                 (int)b->init_pid, END_WAIT_MS / 1000);
        }
    }
    remove_groups(live);
    return 0;
}

void live_sweep(void)
{
    struct cgroup_base base;

    cgroup_find(false, &base);
    if (base.kind != CGROUP_NONE)
        cgroup_sweep(&base);
    cgroup_base_done(&base);
}
