/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/units.h"
#include "engine/native/watch.h"
#include "engine/stream.h"
#include "engine/throttle.h"
#include "engine/tty.h"

#define FIRST_TICK_USEC 4000        /* a bomb goes off at once */
#define TICK_USEC       20000       /* how often limits are looked at */
#define SLOW_TICK_USEC  100000      /* when the kernel keeps the hard ones */
#define GRACE_USEC      2000000     /* between a signal passed on and the kill that follows it */
#define DRAIN_USEC      500000      /* for the output of a killed command, if nobody takes it */
#define DISK_FLOOR      (64u << 20) /* free space that a box may not take from its file system */

enum { STREAM_IN, STREAM_OUT, STREAM_ERR, N_STREAMS };

struct run {
    const struct run_request *req;
    struct run_result *res;
    struct box *box;
    struct stream streams[N_STREAMS];
    int inner[3]; /* the box's ends, closed once init has them */
    struct tty_filter filters[N_STREAMS];
    int pty;   /* the box's terminal, or -1 */
    bool over; /* the command has ended, or the box is gone */
    bool killed;
    uint64_t begun, deadline, kill_at, next_tick;
    uint64_t disk_free_at_start;
    struct throttle throttle;
    sigset_t waiting; /* what is blocked while we wait: everything else is noted before that */
};

/* ---- signals: noted by handlers, read by the loop ---- */

static volatile sig_atomic_t got_signal, got_resize;

static void on_signal(int signo)
{
    if (signo == SIGWINCH)
        got_resize = 1;
    else if (signo != SIGALRM)
        got_signal = signo;
}

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

/* Blocked except while we wait, so that none is lost between looking and sleeping. */
static void catch_signals(sigset_t *ret_waiting)
{
    struct sigaction a = {.sa_handler = on_signal};
    sigset_t block;

    (void)sigemptyset(&block);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(*passed_on); i++) {
        (void)sigaction(passed_on[i], &a, NULL);
        (void)sigaddset(&block, passed_on[i]);
    }
    (void)sigaction(SIGWINCH, &a, NULL);
    (void)sigaddset(&block, SIGWINCH);
    (void)sigaction(SIGALRM, &a, NULL); /* never blocked: it cuts a stuck write short */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigprocmask(SIG_BLOCK, &block, ret_waiting);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(*passed_on); i++)
        (void)sigdelset(ret_waiting, passed_on[i]);
    (void)sigdelset(ret_waiting, SIGWINCH);
}

static uint64_t now_usec(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* ---- streams ---- */

static int open_stream(struct run *run, int i, bool must_carry, struct error *err)
{
    int fd = run->req->exec->stdio[i], p[2];
    struct stream *r = &run->streams[i];

    if (fcntl(fd, F_GETFD) < 0) { /* closed by whoever started us: the box gets nothing there */
        run->inner[i] = -1;
        return 0;
    }
    if (!must_carry && stream_can_pass(fd)) {
        run->inner[i] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        return run->inner[i] < 0 ? error_sys(err, -errno, "copy descriptor %d", fd) : 0;
    }
    if (pipe2(p, O_CLOEXEC) < 0)
        return error_sys(err, -errno, "make a pipe for descriptor %d", fd);
    run->inner[i] = i == STREAM_IN ? p[0] : p[1];
    *r = i == STREAM_IN ? (struct stream){.from = fd, .to = p[1], .own_to = true}
                        : (struct stream){.from = p[0], .to = fd, .own_from = true};
    (void)fcntl(i == STREAM_IN ? p[1] : p[0], F_SETFL, O_NONBLOCK);
    if (i != STREAM_IN && isatty(fd))
        r->filter = &run->filters[i];
    return 0;
}

static int open_streams(struct run *run, struct error *err)
{
    bool count = run->req->spec->limits.output_bytes != 0;

    for (int i = 0; i < N_STREAMS; i++) {
        int r = open_stream(run, i, count && i != STREAM_IN, err);

        if (r < 0)
            return r;
    }
    return 0;
}

static void use_terminal(struct run *run, int master)
{
    run->pty = master;
    run->streams[STREAM_IN] = (struct stream){.from = STDIN_FILENO, .to = master};
    run->streams[STREAM_OUT] =
        (struct stream){.from = master, .to = STDOUT_FILENO, .filter = &run->filters[STREAM_OUT]};
    (void)tty_raw(STDIN_FILENO);
}

static uint64_t output_so_far(const struct run *run)
{
    return run->streams[STREAM_OUT].bytes + run->streams[STREAM_ERR].bytes;
}

/* ---- limits ---- */

static void kill_box(struct run *run)
{
    run->killed = true;
    (void)run->box->ops->kill(run->box);
}

static void end_by_limit(struct run *run, enum limit_kind kind, uint64_t limit, uint64_t seen)
{
    if (run->res->limit != LIMIT_NONE)
        return;
    run->res->limit = kind;
    run->res->limit_value = limit;
    run->res->observed = seen;
    kill_box(run);
}

static uint64_t free_disk(const struct run *run)
{
    struct statvfs v;

    if (run->req->spec->workspace_fd < 0 || fstatvfs(run->req->spec->workspace_fd, &v) < 0)
        return UINT64_MAX;
    return (uint64_t)v.f_bavail * v.f_frsize;
}

/* A bound folder has no quota: what can be seen is how the free space of its file system falls. */
static void check_disk(struct run *run)
{
    const struct box_limits *l = &run->req->spec->limits;
    uint64_t start = run->disk_free_at_start, left = free_disk(run);

    if (run->req->spec->workspace_ro || left == UINT64_MAX || left >= start)
        return;
    if (l->disk_bytes && start - left > l->disk_bytes)
        end_by_limit(run, LIMIT_DISK, l->disk_bytes, start - left);
    else if (left < DISK_FLOOR && start > 2 * DISK_FLOOR)
        end_by_limit(run, LIMIT_DISK, start - DISK_FLOOR, start - left);
}

static void throttle(struct run *run, const struct box_usage *u, uint64_t now)
{
    uint32_t milli = run->req->spec->limits.cpu_milli;

    if (milli && run->box->grades[LIMIT_CPU] == GRADE_SUPERVISED && run->pty < 0)
        throttle_tick(&run->throttle, milli, run->box->init_pid, u->cpu_usec, now, watch_signal);
}

static void check_limits(struct run *run, uint64_t now)
{
    const struct box_limits *l = &run->req->spec->limits;
    struct box_usage u = {0};

    if (run->box->ops->usage(run->box, &u) < 0)
        return;
    if (u.memory_bytes > run->res->usage.memory_bytes)
        run->res->usage.memory_bytes = u.memory_bytes; /* the highest that was seen */
    if (u.oom_kills)
        end_by_limit(run, LIMIT_MEMORY, l->memory_bytes, u.peak_bytes);
    else if (l->memory_bytes && run->box->grades[LIMIT_MEMORY] == GRADE_SUPERVISED &&
             u.memory_bytes > l->memory_bytes)
        end_by_limit(run, LIMIT_MEMORY, l->memory_bytes, u.memory_bytes);
    else if (u.forks_refused)
        end_by_limit(run, LIMIT_PIDS, l->pids, (uint64_t)l->pids + 1);
    else if (l->pids && run->box->grades[LIMIT_PIDS] == GRADE_SUPERVISED && u.pids > l->pids)
        end_by_limit(run, LIMIT_PIDS, l->pids, u.pids);
    else if (l->cpu_usec && u.cpu_usec > l->cpu_usec)
        end_by_limit(run, LIMIT_CPU_TIME, l->cpu_usec, u.cpu_usec);
    else
        throttle(run, &u, now);
    check_disk(run);
}

static bool needs_ticks(const struct run *run)
{
    return run->box->ops == &engine_native && !run->box->live;
}

static uint64_t tick_length(const struct run *run)
{
    const enum grade *g = run->box->grades;
    bool kernel = g[LIMIT_MEMORY] == GRADE_KERNEL && g[LIMIT_PIDS] == GRADE_KERNEL;

    return kernel && !run->req->spec->limits.cpu_milli ? SLOW_TICK_USEC : TICK_USEC;
}

/* ---- the loop ---- */

static void on_box_event(struct run *run, struct error *err)
{
    struct box_event e;

    if (run->box->ops->next_event(run->box, &e, err) < 0) {
        kill_box(run);
        run->over = true;
        return;
    }
    switch (e.kind) {
    case BOX_STARTED:
        if (e.pty_fd >= 0)
            use_terminal(run, e.pty_fd);
        break;
    case BOX_FAILED:
        run->res->started = false;
        run->res->exec_sys = e.sys;
        run->res->exec_at = e.at;
        run->over = true;
        break;
    case BOX_EXITED:
        run->res->status = e.status;
        run->over = true;
        break;
    case BOX_GONE:
        run->res->status = SIGKILL; /* init was killed, and everything with it */
        run->over = true;
        break;
    }
}

static void on_signals(struct run *run, uint64_t now)
{
    int signo = got_signal;

    if (got_resize && run->pty >= 0) {
        got_resize = 0;
        tty_copy_size(STDIN_FILENO, run->pty);
    }
    if (!signo)
        return;
    got_signal = 0;
    (void)run->box->ops->signal(run->box, signo);
    if (signo == SIGUSR1 || signo == SIGUSR2)
        return;
    run->res->signal = signo;
    if (run->kill_at == UINT64_MAX)
        run->kill_at = now + GRACE_USEC;
}

static void on_time(struct run *run, uint64_t now)
{
    if (now >= run->deadline)
        end_by_limit(run, LIMIT_WALL, run->req->spec->limits.wall_usec, now - run->begun);
    else if (now >= run->kill_at)
        kill_box(run);
    else if (now >= run->next_tick) {
        if (run->pty >= 0) /* a size that changed while no signal could reach us */
            tty_copy_size(STDIN_FILENO, run->pty);
        check_limits(run, now);
        run->next_tick = now_usec() + tick_length(run);
    }
}

static uint64_t soonest(const struct run *run)
{
    uint64_t t = run->deadline < run->kill_at ? run->deadline : run->kill_at;

    return run->next_tick < t ? run->next_tick : t;
}

static void move_streams(struct run *run, const struct pollfd *polled)
{
    uint64_t limit = run->req->spec->limits.output_bytes;

    for (int i = 0; i < N_STREAMS; i++) {
        struct stream *r = &run->streams[i];
        uint64_t done = output_so_far(run);
        uint64_t allowance = i == STREAM_IN || !limit ? UINT64_MAX
                             : done >= limit          ? 0
                                                      : limit - done;

        if (!polled[i].revents)
            continue;
        (void)stream_move(r, allowance);
        if (i != STREAM_IN && limit && output_so_far(run) > limit)
            end_by_limit(run, LIMIT_OUTPUT, limit, output_so_far(run));
    }
}

/* One wait: streams, init, time, signals. `until` bounds it (UINT64_MAX: none). */
static int turn(struct run *run, const sigset_t *waiting, uint64_t until, struct error *err)
{
    struct pollfd p[N_STREAMS + 1];
    uint64_t now = now_usec();
    struct timespec t;
    int n;

    for (int i = 0; i < N_STREAMS; i++)
        p[i] = stream_wants(&run->streams[i]);
    p[N_STREAMS] = (struct pollfd){.fd = run->over ? -1 : run->box->control_fd, .events = POLLIN};
    t.tv_sec = until > now ? (time_t)((until - now) / 1000000) : 0;
    t.tv_nsec = until > now ? (long)((until - now) % 1000000 * 1000) : 0;
    n = ppoll(p, N_STREAMS + 1, until == UINT64_MAX ? NULL : &t, waiting);
    if (n > 0) {
        move_streams(run, p);
        if (p[N_STREAMS].revents)
            on_box_event(run, err);
    }
    return n;
}

/* A stuck reader of our output must not keep us from looking at the clock. */
static void start_alarm(bool on)
{
    struct itimerval every = {0};

    if (on)
        every.it_interval.tv_usec = every.it_value.tv_usec = TICK_USEC;
    (void)setitimer(ITIMER_REAL, &every, NULL);
}

static bool carries_output(const struct run *run)
{
    return run->streams[STREAM_OUT].to >= 0 || run->streams[STREAM_ERR].to >= 0 ||
           run->req->terminal;
}

static bool is_holding(const struct stream *r)
{
    return r->start != r->end;
}

/*
 * The command of a live box has ended, but what it left running may still hold its streams: what it
 * wrote itself is in the pipes now.
 */
static void carry_the_rest(struct run *run, struct error *err)
{
    struct stream *out = &run->streams[STREAM_OUT], *e = &run->streams[STREAM_ERR];
    bool holding;
    int n;

    stream_done(&run->streams[STREAM_IN]);
    do {
        holding = is_holding(out) || is_holding(e);
        n = turn(run, &run->waiting, now_usec() + (holding ? TICK_USEC : 0), err);
    } while ((n > 0 || holding) && !got_signal);
    start_alarm(false);
    tty_restore();
}

static void follow(struct run *run, struct error *err)
{
    const sigset_t waiting = run->waiting;
    uint64_t ended;

    if (carries_output(run))
        start_alarm(true);
    while (!run->over && !run->killed) {
        turn(run, &waiting, soonest(run), err);
        on_signals(run, now_usec());
        if (!run->over)
            on_time(run, now_usec());
    }
    if (run->killed && !run->over) /* the command's own last word may be there already */
        run->res->status = SIGKILL;
    /* Ended by itself, it may leave something running; ended by us, it may not. */
    if (run->box->live && !run->killed && !run->res->signal) {
        carry_the_rest(run, err);
        return;
    }
    (void)run->box->ops->kill(run->box);
    ended = now_usec();
    /* Every process of the box is gone: what is in the pipes is all there will be. */
    while (!stream_is_done(&run->streams[STREAM_OUT]) ||
           !stream_is_done(&run->streams[STREAM_ERR])) {
        stream_done(&run->streams[STREAM_IN]);
        turn(run, &waiting, now_usec() + TICK_USEC, err);
        /* A reader that does not read holds up a command that ended by itself, never one that was
         * killed. */
        if (got_signal || (run->killed && now_usec() - ended > DRAIN_USEC))
            break;
    }
    start_alarm(false);
    tty_restore();
}

/* ---- before and after ---- */

/* Limits that the kernel kept without killing: told, but the command's status stays its own. */
static void look_back(struct run *run)
{
    const struct box_limits *l = &run->req->spec->limits;
    struct run_result *res = run->res;
    uint64_t highest = res->usage.memory_bytes;

    (void)run->box->ops->usage(run->box, &res->usage);
    if (highest > res->usage.peak_bytes) {
        res->usage.peak_bytes = highest;
        res->usage.peak_is_whole_box = true;
    }
    res->belts = run->box->belts;
    if (res->limit != LIMIT_NONE)
        return;
    if (res->usage.oom_kills) {
        res->limit = LIMIT_MEMORY;
        res->limit_value = l->memory_bytes;
        res->observed = res->usage.peak_bytes;
    } else if (res->usage.forks_refused) {
        res->limit = LIMIT_PIDS;
        res->limit_value = l->pids;
        res->observed = (uint64_t)l->pids + 1;
    } else if (WIFSIGNALED(res->status) && WTERMSIG(res->status) == SIGXFSZ && l->file_bytes) {
        res->limit = LIMIT_FILE_SIZE;
        res->limit_value = res->observed = l->file_bytes;
    } else if (WIFSIGNALED(res->status) && WTERMSIG(res->status) == SIGXCPU && l->cpu_usec) {
        res->limit = LIMIT_CPU_TIME;
        res->limit_value = l->cpu_usec;
        res->observed = res->usage.cpu_usec;
    } else if (res->usage.tmp_is_full) {
        res->limit = LIMIT_TMP;
        res->limit_value = res->observed = l->tmp_bytes;
    }
}

static int begin(struct run *run, struct error *err)
{
    const struct run_request *req = run->req;
    struct box_exec what = *req->exec;
    int r;

    run->disk_free_at_start = free_disk(run);
    if (!req->terminal) {
        r = open_streams(run, err);
        if (r < 0) {
            run->box = req->live;
            return r;
        }
        memcpy(what.stdio, run->inner, sizeof(run->inner));
    }
    what.pty = req->terminal;
    run->box = req->live;
    r = run->box ? 0 : req->engine->start(req->spec, &run->box, err);
    if (r < 0)
        return r;
    memcpy(run->res->box_id, run->box->id, sizeof(run->box->id));
    memcpy(run->res->grades, run->box->grades, sizeof(run->box->grades));
    run->res->from_slot = run->box->from_slot;
    r = req->on_box ? req->on_box(req->arg, run->box, err) : 0;
    if (r >= 0)
        r = req->engine->exec(run->box, &what, err);
    if (r < 0)
        return r;
    for (int i = 0; i < 3; i++)
        close_fd(&run->inner[i]);
    /* Nothing here is anybody else's business from now on; before, /proc had to be writable to us.
     */
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return 0;
}

static void finish(struct run *run)
{
    for (int i = 0; i < N_STREAMS; i++)
        stream_done(&run->streams[i]);
    for (int i = 0; i < 3; i++)
        close_fd(&run->inner[i]);
    close_fd(&run->pty);
    if (run->box)
        run->box->ops->destroy(run->box);
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

int run_command(const struct run_request *req, struct run_result *ret, struct error *err)
{
    struct run run = {
        .req = req,
        .res = ret,
        .streams = {STREAM_EMPTY, STREAM_EMPTY, STREAM_EMPTY},
        .inner = {-1, -1, -1},
        .pty = -1,
        .deadline = UINT64_MAX,
        .kill_at = UINT64_MAX,
        .next_tick = UINT64_MAX,
    };
    int r;

    *ret = (struct run_result){0};
    err->code = ERR_NONE;
    catch_signals(&run.waiting);
    r = begin(&run, err);
    if (r >= 0) {
        run.begun = run.throttle.begun = now_usec();
        if (req->spec->limits.wall_usec)
            run.deadline = add_capped(run.begun, req->spec->limits.wall_usec);
        ret->started = true; /* unless init says that it could not */
        if (needs_ticks(&run))
            run.next_tick = run.begun + FIRST_TICK_USEC;
        follow(&run, err);
        ret->wall_usec = now_usec() - run.begun;
        ret->output_counted = req->terminal || req->spec->limits.output_bytes;
        ret->output_bytes = output_so_far(&run);
        look_back(&run);
        if (err->code != ERR_NONE)
            r = -(int)err->code;
    }
    finish(&run);
    return r;
}

int run_exit_status(const struct run_result *r)
{
    if (r->limit == LIMIT_WALL)
        return 124;
    if (r->limit == LIMIT_MEMORY || (r->limit != LIMIT_NONE && r->status == SIGKILL))
        return 137;
    if (!r->started && r->exec_sys)
        return r->exec_sys == ENOENT ? 127 : 126;
    return WIFSIGNALED(r->status) ? 128 + WTERMSIG(r->status) : WEXITSTATUS(r->status);
}

static const char *amount(enum limit_kind kind, uint64_t n, char *text, size_t size)
{
    if (kind == LIMIT_WALL || kind == LIMIT_CPU_TIME)
        return units_format_usec(n, text, size);
    if (kind == LIMIT_PIDS) {
        (void)snprintf(text, size, "%llu", (unsigned long long)n);
        return text;
    }
    return units_format_size(n, text, size);
}

const char *run_limit_text(const struct run_result *r, char *text, size_t size)
{
    char limit[32], seen[32];

    text[0] = 0;
    if (r->limit == LIMIT_NONE)
        return text;
    (void)snprintf(text, size, "%s limit %s reached (%s seen): %s",
                   r->limit == LIMIT_WALL ? "time" : limit_name(r->limit),
                   amount(r->limit, r->limit_value, limit, sizeof(limit)),
                   amount(r->limit, r->observed, seen, sizeof(seen)),
                   r->status == SIGKILL ? "killed" : "refused by the kernel");
    return text;
}
