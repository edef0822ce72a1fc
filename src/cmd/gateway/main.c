/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clawden-gateway: two processes. The front (our child) has the listening sockets, and nothing
 * else; the back, this one, has everything else, and no socket that a stranger could speak to. They
 * end together: whichever goes first, the link between them closes.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/helper.h"
#include "base/log.h"
#include "base/state.h"
#include "cmd/gateway/gateway.h"
#include "gateway/back.h"
#include "loop/loop.h"

#define DRAIN_USEC      10000000ull
#define LAST_USEC       2000000ull /* for answers on their way */
#define PRUNE_USEC      300000000ull
#define MAX_DESCRIPTORS 65536

struct gateway {
    struct options options;
    struct listening listening;
    struct loop *loop;
    struct back *back;
    struct loop_io signals;
    struct loop_timer drained, prune;
    char url[sizeof(((struct listening *)0)->url)];
    pid_t front;
    bool is_next, is_ending; /* next: the usual port was taken */
};

static struct gateway gateway = {.signals.fd = -1};

void notify(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    autoclose int fd = -1;
    size_t n = path ? strlen(path) : 0;

    if (n < 2 || n >= sizeof(a.sun_path))
        return;
    memcpy(a.sun_path, path, n + 1);
    if (path[0] == '@')
        a.sun_path[0] = 0;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&a,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
}

static int signals_open(struct loop_io *io, struct loop *l, const int *list, size_t n,
                        struct error *err)
{
    sigset_t set;
    int fd;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < n; i++)
        (void)sigaddset(&set, list[i]);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return error_sys(err, -errno, "wait for signals");
    if (loop_add(l, io, fd, EPOLLIN) < 0) {
        (void)close(fd);
        return error_set(err, ERR_SYS, "wait for signals");
    }
    return 0;
}

static int signal_read(int fd)
{
    struct signalfd_siginfo s;

    return read(fd, &s, sizeof(s)) == (ssize_t)sizeof(s) ? (int)s.ssi_signo : 0;
}

/* ---- the front ---- */

struct front_process {
    struct loop *loop;
    struct front *front;
    struct loop_io signals;
    int status;
};

static void on_front_end(void *user, const char *why)
{
    struct front_process *p = user;

    if (why)
        log_error("%s", why);
    p->status = why ? 1 : 0;
    loop_quit(p->loop);
}

static void on_front_signal(struct loop_io *io, uint32_t events)
{
    struct front_process *p = OF(struct front_process, signals, io);

    (void)events;
    if (signal_read(io->fd) == SIGTERM)
        front_drain(p->front);
}

/* Between the two processes; `door` has no use where nobody listens, and is -1 then. */
struct line {
    int link, door;
};

static int front_start(struct front_process *p, const struct gateway *g, struct line line,
                       struct error *err)
{
    static const int caught[] = {SIGTERM, SIGINT, SIGHUP}; /* a terminal's go to the back alone */
    const struct front_options o = {.link_fd = line.link,
                                    .door_fd = line.door,
                                    .listeners = g->listening.list,
                                    .n_listeners = g->listening.n,
                                    .stdio = g->options.stdio,
                                    .in_fd = STDIN_FILENO,
                                    .out_fd = STDOUT_FILENO,
                                    .agent = g->options.agent,
                                    .session = g->options.session,
                                    .logs = g->options.logs,
                                    .on_end = on_front_end,
                                    .user = p};
    int r = loop_new(&p->loop);

    if (r < 0)
        return error_sys(err, r, "make the loop");
    r = front_new(p->loop, &o, &p->front, err);
    if (r >= 0)
        r = signals_open(&p->signals, p->loop, caught, 3, err);
    return r < 0 ? r : front_confine(err);
}

static int front_main(const struct gateway *g, struct line line)
{
    struct front_process p = {.signals = {.on_ready = on_front_signal, .fd = -1}, .status = 1};
    struct error err;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* if the back is killed, so are we */
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    json_object_seed(0); /* while there still is a source of it */
    if (front_start(&p, g, line, &err) < 0) {
        log_error("%s", err.msg);
        return 1;
    }
    if (loop_run(p.loop) < 0)
        return 1;
    front_free(p.front);
    loop_remove(&p.signals);
    close_fd(&p.signals.fd);
    loop_free(p.loop);
    return p.status;
}

/* Everything but standard streams, the line and the listening sockets. */
static void close_others(const struct gateway *g, struct line line)
{
    int last = STDERR_FILENO;

    for (int fd = 3; fd < 4096; fd++) {
        bool keep = fd == line.link || fd == line.door;

        for (size_t i = 0; i < g->listening.n; i++)
            keep |= g->listening.list[i].fd == fd;
        if (keep)
            last = fd;
        else
            (void)close(fd);
    }
    (void)syscall(SYS_close_range, last + 1 > 4096 ? last + 1 : 4096, ~0u, 0);
}

static void line_close(struct line *l)
{
    close_fd(&l->link);
    close_fd(&l->door);
}

static int make_line(bool has_door, struct line *ours, struct line *theirs)
{
    const int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
    int pair[2];

    *ours = *theirs = (struct line){-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | flags, 0, pair) < 0)
        return -errno;
    ours->link = pair[0];
    theirs->link = pair[1];
    if (!has_door)
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | flags, 0, pair) < 0)
        return -errno;
    ours->door = pair[0];
    theirs->door = pair[1];
    return 0;
}

static int fork_front(struct gateway *g, struct line *ret, struct error *err)
{
    struct line theirs;
    int r = make_line(!g->options.stdio, ret, &theirs);

    g->front = r < 0 ? -1 : fork();
    if (g->front == 0) {
        close_others(g, theirs);
        _exit(front_main(g, theirs));
    }
    if (r >= 0 && g->front < 0)
        r = -errno;
    line_close(&theirs);
    if (r < 0) {
        line_close(ret);
        return error_sys(err, r, "start the gateway's front");
    }
    listening_close(&g->listening);
    if (g->options.stdio) { /* they are the front's: nothing of ours may get between */
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (null >= 0) {
            (void)dup2(null, STDIN_FILENO);
            (void)dup2(null, STDOUT_FILENO);
            (void)close(null);
        }
    }
    return 0;
}

/* ---- the back ---- */

static void end(struct gateway *g)
{
    loop_quit(g->loop);
}

/* Every answer is on the link; the front ends by itself when the last one is with its client. */
static void on_drained(void *arg)
{
    struct gateway *g = arg;

    (void)loop_set_timer(g->loop, &g->drained, LAST_USEC);
}

static void on_drain_time(struct loop_timer *t)
{
    log_warn("who still waits for an answer, or does not take it, is left now");
    end(OF(struct gateway, drained, t));
}

static void begin_end(struct gateway *g)
{
    if (g->is_ending) { /* asked twice: at once */
        end(g);
        return;
    }
    g->is_ending = true;
    notify("STOPPING=1");
    (void)kill(g->front, SIGTERM);
    (void)loop_set_timer(g->loop, &g->drained, DRAIN_USEC);
    back_drain(g->back, on_drained, g);
}

static void reload(struct gateway *g)
{
    struct error err;
    autobuf facts;

    notify("RELOADING=1");
    if (facts_write(&g->options, &facts, &err) < 0 || back_reload(g->back, facts.data, &err) < 0)
        log_error("%s: what was in force stays so", err.msg);
    else
        log_warn("settings and certificates were read again");
    notify("READY=1");
}

static void on_signal(struct loop_io *io, uint32_t events)
{
    struct gateway *g = OF(struct gateway, signals, io);
    int signo = signal_read(io->fd);

    (void)events;
    if (signo == SIGHUP)
        reload(g);
    else if (signo == SIGTERM || signo == SIGINT)
        begin_end(g);
}

/* As `clawden sandbox prune`, by itself. */
static void on_prune(struct loop_timer *t)
{
    struct gateway *g = OF(struct gateway, prune, t);
    char path[4096];
    pid_t pid = helper_find("clawden", path, sizeof(path)) ? fork() : -1;

    if (pid == 0) {
        if (fork() == 0) /* nobody waits for it */
            (void)execl(path, "clawden", "sandbox", "prune", (char *)NULL);
        _exit(0);
    }
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
    (void)loop_set_timer(g->loop, t, PRUNE_USEC);
}

/* One gateway of a user: its store has one writer, and what it finds begun there is over. */
static int take_lock(struct error *err)
{
    autoclose int dir = state_open_data(err);
    int fd;

    if (dir < 0)
        return dir;
    fd = openat(dir, "gateway.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_sys(err, -errno, "open 'gateway.lock'");
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0; /* until we end */
    (void)close(fd);
    return error_set(err, ERR_EXISTS,
                     "a gateway of this user runs already; end it, or give this one a data folder "
                     "of its own (CLAWDEN_DATA_DIR)");
}

static void on_ready(void *arg)
{
    struct gateway *g = arg;
    char code[33];

    notify("READY=1");
    if (g->options.stdio)
        return;
    if (g->is_next)
        printf("port %u is taken, this is the next one that is free\n", GATEWAY_PORT);
    printf("clawden-gateway listens on %s\n", g->url[0] ? g->url : "its socket");
    if (!g->options.no_link && g->url[0]) {
        back_code(g->back, code);
        printf("this link works once, for ten minutes: %s/#code=%s\n", g->url, code);
    }
    (void)fflush(stdout);
}

static int start(struct gateway *g, struct line line, const char *facts, struct error *err)
{
    static const int caught[] = {SIGTERM, SIGINT, SIGHUP};
    struct back_options o = {
        .link = line.link,
        .channel = line.door,
        .local_agent = g->options.stdio ? (g->options.agent ? g->options.agent : "*") : NULL,
        .local_session = g->options.session,
        .on_ready = on_ready,
        .facts = facts,
        .arg = g};
    int r = loop_new(&g->loop);

    if (r < 0) {
        line_close(&line);
        return error_sys(err, r, "make the loop");
    }
    r = back_new(g->loop, &o, &g->back, err);
    if (r >= 0)
        r = signals_open(&g->signals, g->loop, caught, 3, err);
    if (r < 0)
        return r;
    (void)loop_set_timer(g->loop, &g->prune, PRUNE_USEC);
    return 0;
}

static void finish(struct gateway *g)
{
    loop_stop_timer(&g->drained);
    loop_stop_timer(&g->prune);
    loop_remove(&g->signals);
    close_fd(&g->signals.fd);
    back_free(g->back);
    loop_free(g->loop);
}

static int run(struct gateway *g, struct error *err)
{
    struct line line;
    autobuf facts;
    int status = 0, r = facts_write(&g->options, &facts, err);

    if (r >= 0 && !g->options.stdio)
        r = take_lock(err);
    if (r >= 0 && !g->options.stdio)
        r = listening_open(&g->options, &g->listening, err);
    if (r < 0)
        return r;
    (void)snprintf(g->url, sizeof(g->url), "%s", g->listening.url);
    g->is_next = g->listening.is_next;
    r = fork_front(g, &line, err);
    if (r >= 0)
        r = start(g, line, facts.data, err);
    buf_done(&facts);
    if (r >= 0 && loop_run(g->loop) < 0)
        r = error_set(err, ERR_SYS, "wait for the front");
    if (g->loop)
        finish(g); /* closes the link: the front ends */
    if (g->front > 0)
        (void)waitpid(g->front, &status, 0);
    if (r >= 0 && !g->is_ending && status != 0)
        r = error_set(err, ERR_SYS, "the gateway's front ended (wait status %d)", status);
    return r;
}

int main(int argc, char **argv)
{
    struct gateway *g = &gateway;
    struct error err;
    int r;

    (void)signal(SIGCHLD, SIG_DFL);
    log_init("clawden-gateway");
    r = options_read(&g->options, argc, argv);
    if (r >= 0)
        return r;
    if (g->options.stdio && !g->options.session)
        g->options.session = "agent:main:mcp";
    g->signals.on_ready = on_signal;
    g->drained.on_time = on_drain_time;
    g->prune.on_time = on_prune;
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    /* Answers of a megabyte come and go: what was given back is asked for again at once. */
    (void)mallopt(M_TRIM_THRESHOLD, 32 << 20);
    (void)mallopt(M_TOP_PAD, 1 << 20);
    helper_raise_descriptors(MAX_DESCRIPTORS);
    r = run(g, &err);
    if (r < 0)
        log_error("%s", err.msg);
    return r < 0 ? 1 : 0;
}
