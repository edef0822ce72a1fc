/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clawden-egress: the way out of all boxes of one user in one network namespace.
 *
 * Theory of operation. Started by the first program that has a box to connect; a lock makes it the
 * only one. Programs hand it the sockets that they have made in a box's network, and rules; from
 * then on the relay (egress/relay.h) decides and carries, and every decision is written down. It
 * reads no files: what it has to know comes over its socket, name servers included. When the last
 * box is gone it stays for a minute and leaves. If it dies, boxes are without a network until the
 * next command in them, which brings them to a new one.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/helper.h"
#include "base/log.h"
#include "base/state.h"
#include "base/usage.h"
#include "cmd/egress/egress.h"
#include "egress/client.h"
#include "version.h"

#define IDLE_SEC        60      /* without a box: leave (CLAWDEN_EGRESS_IDLE) */
#define MAX_DESCRIPTORS 1048576 /* of all boxes together: six to a connection */

static struct service service = {
    .audit = {.dir = -1}, .dir = -1, .lock = -1, .listener = -1, .signals = {.fd = -1}};

static uint64_t idle_usec(void)
{
    const char *v = getenv("CLAWDEN_EGRESS_IDLE");
    long n = v ? strtol(v, NULL, 10) : 0;

    return (uint64_t)(n > 0 && n < 86400 ? n : IDLE_SEC) * 1000000;
}

/* ---- being the only one ---- */

static int name_files(struct service *s, struct error *err)
{
    struct stat net;

    if (stat("/proc/self/ns/net", &net) < 0)
        return error_sys(err, -errno, "look at our network");
    (void)snprintf(s->socket_name, sizeof(s->socket_name), WIRE_SOCKET,
                   (unsigned long long)net.st_ino);
    (void)snprintf(s->lock_name, sizeof(s->lock_name), WIRE_LOCK, (unsigned long long)net.st_ino);
    return 0;
}

/* 1: another one is there. */
static int take_lock(struct service *s, struct error *err)
{
    s->lock = openat(s->dir, s->lock_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->lock < 0)
        return error_sys(err, -errno, "open '%s'", s->lock_name);
    return flock(s->lock, LOCK_EX | LOCK_NB) < 0;
}

static int open_listener(struct service *s, struct error *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return error_sys(err, -errno, "make a socket");
    (void)unlinkat(s->dir, s->socket_name, 0); /* of one that was killed: the lock is ours */
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", s->dir, s->socket_name);
    (void)umask(0177);
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 256) < 0)
        return error_sys(err, -errno, "listen on '%s'", s->socket_name);
    (void)umask(077);
    s->listener = TAKE_FD(fd);
    return 0;
}

/* ---- the loop ---- */

static void on_signal(struct loop_io *io, uint32_t events)
{
    (void)events;
    loop_quit(io->loop);
}

static void on_idle(struct loop_timer *t)
{
    struct service *s = (struct service *)((char *)t - offsetof(struct service, idle));

    bool is_found = faccessat(s->dir, s->socket_name, F_OK, 0) == 0 || errno != ENOENT;

    /* Whom nobody can ask any more must not stand in the next one's way. */
    if ((!s->n_boxes && !s->n_clients) || !is_found)
        loop_quit(s->loop);
    else
        serve_touch(s);
}

static int watch_signals(struct service *s, struct error *err)
{
    sigset_t set;
    int fd;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    s->signals.on_ready = on_signal;
    if (fd < 0 || loop_add(s->loop, &s->signals, fd, EPOLLIN) < 0)
        return error_sys(err, -errno, "wait for signals");
    return 0;
}

static int open_loop(struct service *s, struct error *err)
{
    /* Until somebody says which: as libc without a resolv.conf. */
    const struct resolver_server here = {.address = address_v4(INADDR_LOOPBACK), .port = 53};
    int r = loop_new(&s->loop);

    if (r < 0)
        return error_sys(err, r, "make the loop");
    s->relay.loop = s->loop;
    s->relay.reserve = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    s->relay.on_event = report_event;
    s->relay.on_gone = serve_on_gone;
    r = resolver_new(s->loop, &here, 1, &s->relay.resolver, err);
    if (r >= 0)
        r = watch_signals(s, err);
    if (r < 0)
        return r;
    s->accept.on_ready = serve_on_accept;
    s->idle.on_time = on_idle;
    s->idle_usec = idle_usec();
    r = loop_add(s->loop, &s->accept, s->listener, EPOLLIN);
    if (r >= 0)
        r = loop_set_timer(s->loop, &s->idle, s->idle_usec);
    return r < 0 ? error_sys(err, r, "wait for programs") : 0;
}

static void close_all(struct service *s)
{
    if (s->listener >= 0)
        (void)unlinkat(s->dir, s->socket_name, 0); /* first: from here on nobody finds us */
    if (s->loop) {
        serve_end(s);
        loop_stop_timer(&s->idle);
        loop_remove(&s->accept);
        loop_remove(&s->signals);
        resolver_free(s->relay.resolver);
        loop_free(s->loop);
    }
    audit_close(&s->audit);
    close_fd(&s->signals.fd);
    close_fd(&s->listener);
    close_fd(&s->lock);
    close_fd(&s->dir);
}

/* 1: another one is there. */
static int run(struct service *s, struct error *err)
{
    int r = s->dir = state_open_runtime(err);

    if (r >= 0)
        r = name_files(s, err);
    if (r >= 0)
        r = take_lock(s, err);
    if (r != 0)
        return r;
    r = audit_open(&s->audit, err);
    if (r >= 0)
        r = open_listener(s, err);
    if (r >= 0)
        r = open_loop(s, err);
    if (r >= 0)
        r = confine(s, err);
    if (r < 0)
        return r;
    r = loop_run(s->loop);
    return r < 0 ? error_sys(err, r, "wait for connections") : 0;
}

static int help(void)
{
    puts("clawden-egress is the way out of a user's boxes: it decides by name which connections\n"
         "go on, carries them, and writes every decision down. It is started when a box needs it\n"
         "and leaves a minute after the last one is gone (CLAWDEN_EGRESS_IDLE, in seconds).\n"
         "\n"
         "  clawden-egress            run, in the foreground\n"
         "  clawden-egress --stop     stop the one that runs: its boxes have no network until the\n"
         "                            next command in them\n"
         "  clawden-egress --version | --help\n"
         "\n"
         "What a box may reach: clawden sandbox network NAME, clawden-sandbox exec "
         "--allow-network=HOST");
    return 0;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    int r;

    log_init("clawden-egress");
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        puts("clawden-egress " CLAWDEN_VERSION);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--stop") == 0) {
        r = client_stop(&err);
        if (r < 0 && r != -ERR_NOT_FOUND)
            log_error("%s", err.msg);
        return r < 0 && r != -ERR_NOT_FOUND;
    }
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return help();
    if (argc > 1)
        return usage_unknown("clawden-egress", argv[1]);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* it holds what boxes send */
    helper_raise_descriptors(MAX_DESCRIPTORS);
    r = run(&service, &err);
    close_all(&service);
    if (r < 0)
        log_error("%s", err.msg);
    return r < 0 ? 125 : 0;
}
