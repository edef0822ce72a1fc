/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends of what egress.py measures: a server, and the load of one run against it.
 *
 *   egress hold                            a network namespace of its own, until it is killed
 *   egress serve ADDRESS PORT              four ports from PORT on, one for each kind of load
 *   egress up ADDRESS PORT SECONDS         large writes, one connection
 *   egress down ADDRESS PORT SECONDS       large reads, one connection
 *   egress round ADDRESS PORT TIMES        one byte there and back, one connection
 *   egress open ADDRESS PORT SECONDS [N]   connect, a byte there and back, close: N at a time
 *
 * A load writes its result as one line of JSON; whoever runs it knows where it went. It takes no
 * notice of proxy variables, and PORT is none of those where a relay has to read before it dials.
 * Every wait has an end: sockets time out, and a load that is still there long after its time is
 * ended by SIGALRM. Static, so that it runs in any box.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    CHUNK = 256 << 10,
    WAIT_SEC = 10,  /* of one socket */
    GRACE_SEC = 30, /* of a load, beyond its time */
    WARM_UP = 200,  /* rounds that do not count */
    MAX_TIMES = 1000000,
    MAX_WORKERS = 64,
    MAX_ERRORS = 100, /* of one worker */
    READY = 64,
};

enum kind { UP, DOWN, ROUND, OPEN, KINDS };
static const char *const kind_names[KINDS] = {"up", "down", "round", "open"};

static char chunk[CHUNK];

__attribute__((noreturn)) static void die(const char *what)
{
    (void)fprintf(stderr, "egress: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_sec(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static unsigned long number(const char *text, unsigned long most)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (end == text || *end || n < 1 || n > most) {
        errno = ERANGE;
        die(text);
    }
    return n;
}

static struct sockaddr_in address(const char *host, const char *port, enum kind kind)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)(number(port, UINT16_MAX - KINDS) + kind))};

    if (inet_pton(AF_INET, host, &a.sin_addr) != 1) {
        errno = EINVAL;
        die(host);
    }
    return a;
}

static void bound(int fd)
{
    const struct timeval t = {.tv_sec = WAIT_SEC};
    const int one = 1;

    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
        die("set up a socket");
}

/* ---- the server: large and long loads in a process each, short ones in the loop ---- */

static int listen_at(struct sockaddr_in a)
{
    const int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 4096) < 0)
        die("listen");
    return fd;
}

/* Takes what comes, and says how much it was. */
static void serve_up(int fd)
{
    uint64_t total = 0;
    ssize_t n;

    while ((n = read(fd, chunk, sizeof(chunk))) > 0)
        total += (uint64_t)n;
    if (n == 0)
        (void)!write(fd, &total, sizeof(total));
}

static void serve_down(int fd)
{
    while (write(fd, chunk, sizeof(chunk)) > 0)
        ;
}

static void serve_round(int fd)
{
    char byte;

    while (read(fd, &byte, 1) == 1 && write(fd, &byte, 1) == 1)
        ;
}

static void serve_one(int fd, enum kind kind)
{
    static void (*const serve[KINDS])(int) = {
        [UP] = serve_up, [DOWN] = serve_down, [ROUND] = serve_round};
    pid_t pid = fork();

    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        bound(fd);
        serve[kind](fd);
        _exit(0);
    }
    (void)close(fd);
}

static void take_all(int epoll, int listener, enum kind kind)
{
    int fd;

    while ((fd = accept4(listener, NULL, NULL, kind == OPEN ? SOCK_NONBLOCK : 0)) >= 0) {
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

        if (kind != OPEN)
            serve_one(fd, kind);
        else if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0)
            (void)close(fd);
    }
}

/* The server is the first to close: its address keeps the closed connections, and no client runs
 * out of ports. */
static void answer(int fd)
{
    char byte;

    if (read(fd, &byte, 1) == 1)
        (void)!write(fd, &byte, 1);
    (void)close(fd);
}

static int serve(const char *host, const char *port)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC), listeners[KINDS];
    struct epoll_event ready[READY];

    (void)signal(SIGCHLD, SIG_IGN);
    for (enum kind k = 0; k < KINDS; k++) {
        struct epoll_event e = {.events = EPOLLIN};

        e.data.fd = listeners[k] = listen_at(address(host, port, k));
        if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listeners[k], &e) < 0)
            die("wait for connections");
    }
    (void)!write(STDOUT_FILENO, "ready\n", 6);
    for (;;) {
        int n = epoll_wait(epoll, ready, READY, -1);

        for (int i = 0; i < n; i++) {
            enum kind k = 0;

            while (k < KINDS && listeners[k] != ready[i].data.fd)
                k++;
            if (k < KINDS)
                take_all(epoll, ready[i].data.fd, k);
            else
                answer(ready[i].data.fd);
        }
    }
}

/* ---- the loads ---- */

static int reach(const struct sockaddr_in *to)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    bound(fd);
    if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0) {
        int sys = errno;

        (void)close(fd);
        errno = sys;
        return -1;
    }
    return fd;
}

static int must_reach(const struct sockaddr_in *to)
{
    int fd = reach(to);

    if (fd < 0)
        die("connect");
    return fd;
}

static void say_bytes(uint64_t bytes, double seconds)
{
    (void)printf("{\"bytes\": %llu, \"seconds\": %.6f}\n", (unsigned long long)bytes, seconds);
}

/* The time ends when the server has said that it has everything. */
static int load_up(const struct sockaddr_in *to, unsigned long seconds)
{
    int fd = must_reach(to);
    double began = now_sec();
    uint64_t sent = 0, got = 0;

    while (now_sec() - began < (double)seconds) {
        ssize_t n = write(fd, chunk, sizeof(chunk));

        if (n <= 0)
            die("write");
        sent += (uint64_t)n;
    }
    if (shutdown(fd, SHUT_WR) < 0)
        die("close our side");
    if (recv(fd, &got, sizeof(got), MSG_WAITALL) != sizeof(got))
        die("read the server's count");
    if (got != sent) {
        (void)fprintf(stderr, "egress: %llu bytes sent, %llu arrived\n", (unsigned long long)sent,
                      (unsigned long long)got);
        return 1;
    }
    say_bytes(got, now_sec() - began);
    return 0;
}

static int load_down(const struct sockaddr_in *to, unsigned long seconds)
{
    int fd = must_reach(to);
    double began = now_sec(), passed = 0;
    uint64_t got = 0;

    while (passed < (double)seconds) {
        ssize_t n = read(fd, chunk, sizeof(chunk));

        if (n <= 0)
            die("read");
        got += (uint64_t)n;
        passed = now_sec() - began;
    }
    say_bytes(got, passed);
    return 0;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static int load_round(const struct sockaddr_in *to, unsigned long times)
{
    double *usec = calloc(times, sizeof(*usec));
    int fd = must_reach(to);
    char byte = 'x';

    if (!usec)
        die("memory");
    for (unsigned long i = 0; i < WARM_UP + times; i++) {
        double began = now_sec();

        if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
            die("a byte there and back");
        if (i >= WARM_UP)
            usec[i - WARM_UP] = (now_sec() - began) * 1e6;
    }
    qsort(usec, times, sizeof(*usec), by_size);
    (void)printf("{\"n\": %lu, \"p10\": %.2f, \"p50\": %.2f, \"p99\": %.2f}\n", times,
                 usec[times / 10], usec[times / 2], usec[times * 99 / 100]);
    free(usec);
    return 0;
}

struct tally {
    unsigned long opened, errors;
    int sys; /* of the last error */
};

/* Waits for the server's end, too: that is when it is over for a client that is well behaved. */
static bool open_once(const struct sockaddr_in *to)
{
    char byte = 'x';
    int fd = reach(to), sys;
    bool ok;

    if (fd < 0)
        return false;
    errno = 0;
    ok = write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 0;
    sys = errno ? errno : ECONNRESET;
    (void)close(fd);
    errno = sys;
    return ok;
}

static void open_many(const struct sockaddr_in *to, double until, struct tally *t)
{
    while (now_sec() < until && t->errors < MAX_ERRORS)
        if (open_once(to)) {
            t->opened++;
        } else {
            t->sys = errno;
            t->errors++;
        }
}

static int load_open(const struct sockaddr_in *to, unsigned long seconds, unsigned long workers)
{
    struct tally *t = mmap(NULL, MAX_WORKERS * sizeof(*t), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0),
                 sum = {0};
    double began = now_sec();

    if (t == MAP_FAILED)
        die("memory");
    for (unsigned long i = 0; i < workers; i++) {
        pid_t pid = fork();

        if (pid < 0)
            die("fork");
        if (pid == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            open_many(to, began + (double)seconds, &t[i]);
            _exit(0);
        }
    }
    while (wait(NULL) > 0 || errno == EINTR)
        ;
    for (unsigned long i = 0; i < workers; i++) {
        sum.opened += t[i].opened;
        sum.errors += t[i].errors;
        sum.sys = t[i].sys ? t[i].sys : sum.sys;
    }
    (void)printf("{\"n\": %lu, \"errors\": %lu, \"error\": \"%s\", \"seconds\": %.6f}\n",
                 sum.opened, sum.errors, sum.sys ? strerror(sum.sys) : "", now_sec() - began);
    return 0;
}

/* ---- all ---- */

/* A place for the others: they enter by its /proc/PID/ns/net. */
static int hold(void)
{
    if (unshare(CLONE_NEWNET) < 0)
        die("make a network namespace");
    (void)!write(STDOUT_FILENO, "ready\n", 6);
    for (;;)
        (void)pause();
}

static int usage(void)
{
    (void)fputs("egress: wrong words; it is started by tests/bench/egress.py\n", stderr);
    return 2;
}

static void raise_descriptors(void)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) < 0)
        return;
    l.rlim_cur = l.rlim_max < 65536 ? l.rlim_max : 65536;
    (void)setrlimit(RLIMIT_NOFILE, &l);
}

static int load(enum kind kind, const struct sockaddr_in *to, const char *amount, const char *more)
{
    unsigned long n = number(amount, kind == ROUND ? MAX_TIMES : 3600);

    (void)alarm((unsigned)(kind == ROUND ? 60 : n) + GRACE_SEC);
    switch (kind) {
    case UP:
        return load_up(to, n);
    case DOWN:
        return load_down(to, n);
    case ROUND:
        return load_round(to, n);
    case OPEN:
        return load_open(to, n, more ? number(more, MAX_WORKERS) : 1);
    case KINDS:
        break;
    }
    return usage();
}

int main(int argc, char **argv)
{
    struct sockaddr_in to;

    (void)signal(SIGPIPE, SIG_IGN);
    raise_descriptors();
    if (argc == 2 && strcmp(argv[1], "hold") == 0)
        return hold();
    if (argc == 4 && strcmp(argv[1], "serve") == 0)
        return serve(argv[2], argv[3]);
    if (argc < 5 || argc > 6)
        return usage();
    for (enum kind k = 0; k < KINDS; k++)
        if (strcmp(argv[1], kind_names[k]) == 0) {
            to = address(argv[2], argv[3], k);
            return load(k, &to, argv[4], argv[5]);
        }
    return usage();
}
