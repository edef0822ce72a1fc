/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/helper.h"

enum { OUT = 3, KEPT = 4 }; /* descriptors of the child */

/* In the child: only what it needs is open. */
static bool settle(int out, int keep)
{
    sigset_t none;
    int far = keep >= 0 ? fcntl(keep, F_DUPFD_CLOEXEC, 16) : -1; /* out of the others' way */

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* a killed gateway leaves nobody behind */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    if ((keep >= 0 && far < 0) || (out != OUT && dup3(out, OUT, O_CLOEXEC) < 0) ||
        (far >= 0 && dup3(far, KEPT, O_CLOEXEC) < 0))
        return false;
    (void)syscall(SYS_close_range, keep >= 0 ? KEPT + 1 : OUT + 1, ~0u, 0);
    return true;
}

void worker_become(int out, const char *const *argv)
{
    char path[PATH_MAX];

    if (dup2(out, STDOUT_FILENO) >= 0 && helper_find(argv[0], path, sizeof(path)))
        (void)execv(path, (char *const *)argv);
}

static void let_go(struct worker *w)
{
    loop_remove(&w->io);
    loop_remove(&w->life);
    close_fd(&w->io.fd);
    close_fd(&w->life.fd);
}

static void done(struct worker *w)
{
    let_go(w);
    (void)waitpid(w->pid, NULL, 0);
    w->pid = 0;
}

/* 1: something came; 0: nothing is there now; -1: nothing will, or it says too much. */
static int hear(struct worker *w)
{
    char data[16384];
    ssize_t n = read(w->io.fd, data, sizeof(data));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n > 0)
        buf_append(&w->said, data, (size_t)n);
    return n <= 0 || w->said.failed ? -1 : 1;
}

static void on_said(struct loop_io *io, uint32_t events)
{
    struct worker *w = OF(struct worker, io, io);

    (void)events;
    if (hear(w) >= 0)
        return;
    loop_remove(io);
    if (w->said.failed)
        (void)kill(w->pid, SIGKILL);
}

static void on_end_of_it(struct loop_io *io, uint32_t events)
{
    struct worker *w = OF(struct worker, life, io);

    (void)events;
    while (w->io.loop && hear(w) > 0)
        ;
    done(w);
    w->on_end(w); /* it may be gone now */
}

int worker_start(struct worker *w, struct loop *l, size_t max, int keep,
                 void (*work)(const void *arg, int out, int kept), const void *arg)
{
    int p[2], r;

    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    w->pid = fork();
    if (w->pid < 0) {
        r = -errno;
        w->pid = 0;
        (void)close(p[0]);
        (void)close(p[1]);
        return r;
    }
    if (w->pid == 0) {
        if (settle(p[1], keep))
            work(arg, OUT, keep >= 0 ? KEPT : -1);
        _exit(0);
    }
    (void)close(p[1]);
    (void)fcntl(p[0], F_SETFL, O_NONBLOCK);
    buf_done(&w->said);
    buf_init(&w->said, max);
    w->io = (struct loop_io){.on_ready = on_said, .fd = p[0]};
    w->life =
        (struct loop_io){.on_ready = on_end_of_it, .fd = (int)syscall(SYS_pidfd_open, w->pid, 0)};
    r = w->life.fd < 0 ? -errno : loop_add(l, &w->io, w->io.fd, EPOLLIN);
    if (r >= 0)
        r = loop_add(l, &w->life, w->life.fd, EPOLLIN);
    if (r < 0)
        worker_stop(w);
    return r;
}

void worker_stop(struct worker *w)
{
    if (w->pid) {
        (void)kill(w->pid, SIGKILL);
        done(w);
    }
    buf_done(&w->said);
}

void worker_leave(struct worker *w)
{
    if (w->pid) {
        let_go(w);
        w->pid = 0;
    }
    buf_done(&w->said);
}
