/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/sandbox.h"

#define OF(type, member, p) ((type *)((char *)(p)-offsetof(type, member)))

enum { OUT = 3, KEPT = 4 }; /* descriptors of the child */

/* In the child: only what it needs is open. */
static bool settle(int out, int keep)
{
    sigset_t none;
    int far = keep >= 0 ? fcntl(keep, F_DUPFD_CLOEXEC, 16) : -1; /* out of the others' way */

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* else the id maps of a box cannot be written */
    if ((keep >= 0 && far < 0) || (out != OUT && dup3(out, OUT, O_CLOEXEC) < 0) ||
        (far >= 0 && dup3(far, KEPT, O_CLOEXEC) < 0))
        return false;
    (void)syscall(SYS_close_range, keep >= 0 ? KEPT + 1 : OUT + 1, ~0u, 0);
    sandbox_forked();
    return true;
}

static void done(struct worker *w)
{
    loop_remove(&w->io);
    close_fd(&w->io.fd);
    (void)waitpid(w->pid, NULL, 0);
    w->pid = 0;
}

static void on_ready(struct loop_io *io, uint32_t events)
{
    struct worker *w = OF(struct worker, io, io);
    char data[16384];
    ssize_t n = read(io->fd, data, sizeof(data));

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0 && !w->said.failed) {
        buf_append(&w->said, data, (size_t)n);
        return;
    }
    if (n > 0)
        (void)kill(w->pid, SIGKILL); /* it says too much */
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
    w->io.on_ready = on_ready;
    r = loop_add(l, &w->io, p[0], EPOLLIN);
    if (r < 0) {
        w->io.fd = p[0];
        worker_stop(w);
    }
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
        loop_remove(&w->io);
        close_fd(&w->io.fd);
        w->pid = 0;
    }
    buf_done(&w->said);
}
