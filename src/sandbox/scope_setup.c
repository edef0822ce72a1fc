/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The setup command of a new box. It runs in a child of ours whose output is a pipe: what it says
 * is of interest only if it fails, and then its last line is.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "sandbox/scope_parts.h"

#define TAIL 2048 /* bytes of output that are kept */

struct tail {
    char text[2 * TAIL];
    size_t len;
};

/* False: there is nothing to read now, or never again. */
static bool tail_read(struct tail *t, int fd)
{
    ssize_t n;

    if (t->len > TAIL) {
        memmove(t->text, t->text + t->len - TAIL, TAIL);
        t->len = TAIL;
    }
    errno = 0; /* the end of the pipe is no error */
    n = read(fd, t->text + t->len, TAIL - 1);
    if (n > 0)
        t->len += (size_t)n;
    return n > 0;
}

/* The last line that is not empty, without what a terminal would obey. */
static const char *last_line(struct tail *t)
{
    char *line;

    while (t->len && (t->text[t->len - 1] == '\n' || t->text[t->len - 1] == '\r'))
        t->len--;
    t->text[t->len] = 0;
    line = memrchr(t->text, '\n', t->len);
    line = line ? line + 1 : t->text;
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
    return line;
}

static void child(const struct box_record *r, const char *command, int out, pid_t parent)
{
    char *argv[] = {(char *)"sh", (char *)"-lc", (char *)command, NULL};
    const struct sandbox_exec x = {.argv = argv};
    struct run_result result;
    struct error err;

    /* If we are killed the setup must not go on in a box that nobody has. */
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent ||
        dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
        _exit(125);
    if (sandbox_exec(r, &x, &result, &err) < 0) {
        (void)dprintf(STDERR_FILENO, "%s\n", err.msg);
        _exit(125);
    }
    if (!result.started)
        (void)dprintf(STDERR_FILENO, "sh: %s\n", strerror(result.exec_sys));
    _exit(run_exit_status(&result));
}

/* Until the child has ended; what it left running may keep the pipe open for ever. */
static int follow(pid_t pid, int fd, struct tail *t)
{
    autoclose int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
    int status = 0;

    while (pidfd >= 0 && !(p[1].revents & POLLIN)) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            break;
        if (p[0].revents && !tail_read(t, fd) && errno != EAGAIN && errno != EINTR)
            p[0].fd = -1;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    while (tail_read(t, fd))
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int scope_run_setup(const struct box_record *r, const char *command, struct error *err)
{
    autoclose int in = -1, out = -1;
    struct tail tail = {.len = 0};
    pid_t parent = getpid(), pid;
    int ends[2], status;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_sys(err, -errno, "make a pipe for the setup command");
    in = ends[0];
    out = ends[1];
    (void)fcntl(out, F_SETFL, 0);
    (void)fflush(NULL);
    pid = fork();
    if (pid < 0)
        return error_sys(err, -errno, "fork for the setup command");
    if (pid == 0)
        child(r, command, out, parent);
    close_fd(&out);
    status = follow(pid, in, &tail);
    if (status == 0)
        return 0;
    return error_set(err, ERR_INVALID, "the setup command of box '%s' failed (status %d): %.300s",
                     r->name, status, last_line(&tail));
}
