/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/native/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/sys.h"
#include "engine/native/ids.h"
#include "init_image.h"

#ifndef MFD_EXEC
#define MFD_EXEC \
    0x0010U /* 6.3: the file may be executed whatever vm.memfd_noexec says by default */
#endif

#define BOX_NAMESPACES \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

int launch_init_image(struct error *err)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    autoclose int fd = memfd_create("clawden-init", flags | MFD_EXEC);
    int r;

    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("clawden-init", flags);
    if (fd < 0)
        return error_sys(err, -errno, "make an executable memfd (is vm.memfd_noexec 2?)");
    r = fd_write_full(fd, init_image, sizeof(init_image));
    if (r < 0)
        return error_sys(err, r, "write init");
    /* Nobody, inside or outside, can change what runs as process 1 (CVE-2019-5736). */
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return error_sys(err, -errno, "seal init");
    return TAKE_FD(fd);
}

/* What a person can do about the failures that hosts really have. */
static const char *remedy(const struct step *s, int sys)
{
    if ((s->op == OP_WRITE_MAPS || s->op == OP_UNSHARE || s->op == OP_TREE ||
         s->op == OP_ROOT_TMPFS) &&
        (sys == EPERM || sys == EACCES))
        return "; user namespaces are restricted here: run 'clawden doctor'";
    if (s->op == OP_TREE && sys == ESTALE)
        return "; it was replaced while the box was being made: try again";
    if (s->op == OP_PROC && sys == EPERM)
        return "; /proc is masked here (a container?): run 'clawden doctor'";
    if (sys == ENOSYS)
        return "; this kernel is too old or a filter is in the way: run 'clawden doctor'";
    if (sys == EMFILE)
        return "; raise the limit of open files (ulimit -n)";
    return "";
}

int launch_error(struct error *err, const struct launch_plan *plan, const struct step_report *rep)
{
    const struct step *s = &plan->steps[rep->step < plan->n_steps ? rep->step : 0];
    char what[512];

    (void)step_describe(s, what, sizeof(what));
    (void)error_set(err, ERR_SYS, "%s: %s%s", what, strerror(rep->sys), remedy(s, rep->sys));
    err->sys = rep->sys;
    return error_wrap(err, "make the box");
}

static int child_entry(void *arg)
{
    struct launch *l = arg;
    struct step_report rep = {0};
    int r;

    if (l->main)
        return l->main(l, l->state.report);
    r = child_walk(&l->state, l->plan, STAGE_TEMPLATE, STAGE_DROP, &rep.step);
    rep.sys = -r;
    (void)sys_call(__NR_write, l->state.report, &rep, sizeof(rep));
    return 127;
}

static void cleanup_kill(pid_t *pid)
{
    if (*pid <= 0)
        return;
    (void)kill(*pid, SIGKILL);
    while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static pid_t start(struct launch *l, int *ret_pidfd)
{
    static char stack[128 << 10] __attribute__((aligned(64)));
    struct clone_args a = {
        .flags = BOX_NAMESPACES | CLONE_PIDFD,
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
        .exit_signal = SIGCHLD,
    };

    /* A sanitizer keeps books on stacks and memory: under it the child gets a copy instead. */
#ifndef __SANITIZE_ADDRESS__
    if (!l->main) {
        a.flags |= CLONE_VM;
        a.stack = (uint64_t)(uintptr_t)stack;
        a.stack_size = sizeof(stack);
    }
#else
    (void)stack;
#endif
    if (l->cgroup_fd >= 0) {
        a.flags |= CLONE_INTO_CGROUP;
        a.cgroup = (uint64_t)l->cgroup_fd;
    }
    return (pid_t)sys_clone_call(&a, sizeof(a), child_entry, l);
}

int launch_child(struct launch *l, pid_t *ret_pid, int *ret_pidfd, struct error *err)
{
    autoclose int report_rd = -1, report_wr = -1, maps_rd = -1, maps_wr = -1, pidfd = -1;
    cleanup_(cleanup_kill) pid_t pid = -1;
    struct step_report rep;
    int p[2], q[2];
    ssize_t n;

    if (pipe2(p, O_CLOEXEC) < 0)
        return error_sys(err, -errno, "make the report pipe");
    report_rd = p[0];
    report_wr = p[1];
    if (pipe2(q, O_CLOEXEC) < 0)
        return error_sys(err, -errno, "make the id map pipe");
    maps_rd = q[0];
    maps_wr = q[1];
    l->state.report = report_wr;
    l->state.maps_ready = maps_rd;
    l->state.maps_writer = maps_wr;

    pid = start(l, &pidfd);
    if (pid < 0) {
        (void)error_sys(err, pid, "clone the namespaces%s",
                        pid == -EPERM || pid == -ENOSPC || pid == -EINVAL
                            ? " (user namespaces are off or used up: run 'clawden doctor')"
                            : "");
        return error_wrap(err, "make the box");
    }
    close_fd(&report_wr); /* ours would keep the pipe open for ever */
    if (l->facts->ids == IDS_RANGE) {
        int r = ids_write_range(pid, l->facts->range_base, &l->facts->owner);

        if (r < 0)
            return error_sys(err, r, "write the id map of the box");
        if (write(maps_wr, "", 1) != 1)
            return error_sys(err, -errno, "release the box");
    }
    n = fd_read_full(report_rd, &rep, sizeof(rep));
    if (n < 0)
        return error_sys(err, (int)n, "read the launch report");
    if (n == (ssize_t)sizeof(rep) && rep.sys)
        return launch_error(err, l->plan, &rep);
    *ret_pid = TAKE(pid, -1); /* from here the caller reaps it */
    *ret_pidfd = TAKE_FD(pidfd);
    return 0;
}
