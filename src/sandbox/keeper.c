/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: a small process beside a box that has something to be waited for.
 *
 * A box whose main command only sleeps, with limits that the kernel keeps, has none. Otherwise
 * `start` leaves one behind. It holds the connection of the main command: writes its output to the
 * log, and when it ends, writes down how and ends the box. Where no cgroup is to be had it also
 * looks at the box's processes and ends it when a limit is reached. If the keeper is killed, the
 * box lives on: its main command as long as nobody has to read its output.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/units.h"
#include "engine/native/watch.h"
#include "engine/throttle.h"
#include "sandbox/boxes.h"
#include "sandbox/life.h"
#include "sandbox/receipt.h"

#define BUSY_MS 20  /* between looks at a box that does something */
#define IDLE_MS 250 /* … and at one that does not */

struct keeper {
    const struct box_record *r;
    struct hold *h;
    struct box *box;
    int out[2]; /* stdout and stderr of the main command, read ends */
    int in;     /* what holds the stdin of the main command open, or -1 */
    int log;
    bool has_main, watches;
    struct receipt receipt; /* of the main command */
    uint64_t last_cpu;
    struct throttle throttle;
};

static bool is_supervised(const struct box_record *r, const struct box_last *last)
{
    const enum grade *g = last->live.grades;

    return (r->limits.memory_bytes && g[LIMIT_MEMORY] == GRADE_SUPERVISED) ||
           (r->limits.pids && g[LIMIT_PIDS] == GRADE_SUPERVISED) ||
           (r->limits.cpu_milli && g[LIMIT_CPU] == GRADE_SUPERVISED);
}

bool keeper_is_needed(const struct box_record *r, const struct box_last *last)
{
    return !life_only_waits(r) || is_supervised(r, last);
}

/* ---- in the keeper ---- */

static uint64_t now_usec(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void keep_log(struct keeper *k, int i)
{
    static char data[LIMIT_STREAM_CHUNK];
    static const char dropped[] = "[clawden: older output was dropped]\n";
    ssize_t n = read(k->out[i], data, sizeof(data));
    struct stat st;

    if (n <= 0) {
        if (n == 0 || (errno != EINTR && errno != EAGAIN))
            close_fd(&k->out[i]);
        return;
    }
    if (k->log < 0)
        return;
    if (fstat(k->log, &st) == 0 && st.st_size > (off_t)LIMIT_BOX_LOG && ftruncate(k->log, 0) == 0)
        (void)fd_write_full(k->log, dropped, sizeof(dropped) - 1);
    (void)fd_write_full(k->log, data, (size_t)n);
}

/* Writes down how it ended and takes it away. */
static void end_box(struct keeper *k, int exit_code, const char *problem)
{
    struct error none;

    hold_close(k->h);
    *k->h = (struct hold)HOLD_EMPTY;
    if (hold_open(k->r, true, k->h, &none) < 0)
        return;
    if (k->h->last.live.init_pid != k->box->init_pid)
        return; /* while we waited for the lock it was started anew: that is not ours */
    if (problem) {
        (void)snprintf(k->h->last.problem, sizeof(k->h->last.problem), "%s", problem);
        k->h->last.oom_killed = true;
    }
    if (life_end(k->h, exit_code, &none) >= 0 && k->r->auto_remove)
        (void)boxes_drop(k->r, &none);
}

/* True if the box is at its end. */
static bool on_event(struct keeper *k)
{
    struct box_event e;
    struct error none;

    if (k->box->ops->next_event(k->box, &e, &none) < 0 || e.kind == BOX_GONE) {
        /* Its reaper was killed, and the command with it: a box without either would stay. */
        if (k->has_main)
            end_box(k, 128 + SIGKILL, NULL);
        return true;
    }
    if (e.kind != BOX_EXITED)
        return false;
    while (k->out[0] >= 0 || k->out[1] >= 0) { /* what it wrote is in the pipes */
        struct pollfd p[2] = {{.fd = k->out[0], .events = POLLIN},
                              {.fd = k->out[1], .events = POLLIN}};

        if (poll(p, 2, 0) <= 0)
            break;
        for (int i = 0; i < 2; i++)
            if (p[i].revents)
                keep_log(k, i);
    }
    receipt_end(&k->receipt, &(struct run_result){.started = true, .status = e.status});
    end_box(k, WIFSIGNALED(e.status) ? 128 + WTERMSIG(e.status) : WEXITSTATUS(e.status), NULL);
    return true;
}

static bool on_tick(struct keeper *k, int *ret_wait)
{
    const struct box_limits *l = &k->r->limits;
    struct box_usage u = {0};
    char text[200], limit[32], seen[32];

    if (k->box->ops->usage(k->box, &u) < 0)
        return false;
    *ret_wait = u.cpu_usec != k->last_cpu ? BUSY_MS : IDLE_MS;
    k->last_cpu = u.cpu_usec;
    if (k->throttle.stopped)
        *ret_wait = BUSY_MS;
    if (l->cpu_milli && k->box->grades[LIMIT_CPU] == GRADE_SUPERVISED)
        throttle_tick(&k->throttle, l->cpu_milli, k->box->init_pid, u.cpu_usec, now_usec(),
                      watch_signal_commands);
    if (l->memory_bytes && u.memory_bytes > l->memory_bytes)
        (void)snprintf(text, sizeof(text), "memory limit %s reached (%s seen): killed",
                       units_format_size(l->memory_bytes, limit, sizeof(limit)),
                       units_format_size(u.memory_bytes, seen, sizeof(seen)));
    else if (l->pids && u.pids > l->pids + LIMIT_REAPERS_FREE)
        (void)snprintf(text, sizeof(text), "pids limit %u reached (%u seen): killed", l->pids,
                       u.pids);
    else
        return false;
    end_box(k, 128 + SIGKILL, text);
    return true;
}

static void keep(struct keeper *k)
{
    int wait = BUSY_MS;

    for (;;) {
        struct pollfd p[3] = {{.fd = k->box->control_fd, .events = POLLIN},
                              {.fd = k->out[0], .events = POLLIN},
                              {.fd = k->out[1], .events = POLLIN}};
        int n = poll(p, 3, k->watches ? wait : -1);

        if (n < 0 && errno != EINTR)
            return;
        for (int i = 0; n > 0 && i < 2; i++)
            if (p[1 + i].revents)
                keep_log(k, i);
        if (n > 0 && p[0].revents && on_event(k))
            return;
        if (k->watches && on_tick(k, &wait))
            return;
    }
}

static void leave_terminal(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)setsid();
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_NAME, "clawden-keep", 0, 0, 0);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    for (int i = 0; i < 3 && null >= 0; i++)
        (void)dup2(null, i);
}

/* ---- in whoever starts the box ---- */

static int start_main(struct keeper *k, struct error *err)
{
    autofree char **env = exec_environment(k->r, NULL, k->r->home ? k->r->home : "/", k->r->tty);
    int p[2], stdin_fd = -1, r = 0, inner[2] = {-1, -1};
    struct box_event e = {.pty_fd = -1};

    k->log =
        openat(k->h->folder, "log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (k->r->open_stdin || k->r->tty) { /* -di, -dt: a shell waits, though nobody writes */
        r = pipe2(p, O_CLOEXEC) < 0 ? error_sys(err, -errno, "make the stdin of the main command")
                                    : 0;
        stdin_fd = r < 0 ? -1 : p[0];
        k->in = r < 0 ? -1 : p[1];
    } else {
        stdin_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    for (int i = 0; r >= 0 && i < 2; i++) {
        if (pipe2(p, O_CLOEXEC) < 0) {
            r = error_sys(err, -errno, "make the pipes of the main command");
            break;
        }
        k->out[i] = p[0];
        inner[i] = p[1];
        (void)fcntl(p[0], F_SETFL, O_NONBLOCK);
    }
    k->receipt = (struct receipt){.r = k->r, .argv = k->r->command, .env = k->r->env};
    if (r >= 0)
        r = receipt_begin(&k->receipt, err);
    if (r >= 0)
        r = k->box->ops->exec(k->box,
                              &(struct box_exec){.argv = k->r->command,
                                                 .env = env,
                                                 .cwd = k->r->workdir ? k->r->workdir : "/",
                                                 .stdio = {stdin_fd, inner[0], inner[1]},
                                                 .detach = true,
                                                 .uid = k->r->uid,
                                                 .gid = k->r->gid},
                              err);
    if (r >= 0)
        r = k->box->ops->next_event(k->box, &e, err);
    if (r >= 0 && e.kind == BOX_FAILED) {
        r = error_sys(err, -e.sys, "%s '%s'", e.at,
                      strcmp(e.at, "execute") == 0 ? k->r->command[0] : k->r->workdir);
    }
    close_fd(&stdin_fd);
    close_fd(&inner[0]);
    close_fd(&inner[1]);
    return r;
}

int keeper_start(const struct box_record *r, struct hold *h, bool with_main, struct error *err)
{
    struct keeper k = {.r = r, .h = h, .out = {-1, -1}, .in = -1, .log = -1, .has_main = with_main};
    int e = hold_attach(h, &k.box, err);
    pid_t pid;

    if (e < 0)
        return e;
    k.watches = is_supervised(r, &h->last);
    if (with_main)
        e = start_main(&k, err);
    pid = e < 0 ? 0 : fork();
    if (e >= 0 && pid == 0) {
        close_fd(&h->lock);
        leave_terminal();
        keep(&k);
        _exit(0);
    }
    if (pid < 0)
        e = error_sys(err, -errno, "start the keeper of the box");
    close_fd(&k.out[0]);
    close_fd(&k.out[1]);
    close_fd(&k.in);
    close_fd(&k.log);
    engine_native.destroy(k.box);
    return e;
}
