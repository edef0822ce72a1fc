/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads for tests/bench/gateway.py; each prints one line of JSON.
 *
 *   gateway ask PORT CONNS SECONDS RATE WANT BODY...    POST /v1/call over connections that stay
 * open gateway spawn N WORD...                             vfork, exec and wait, N times
 *
 * TOKEN is in the environment. With RATE 0 each connection asks again as soon as it has its answer;
 * else so often a second, and time is counted from when it should have asked. Connection i sends
 * the BODYs in turn, with each '@' replaced by i. An answer is right if its status is 200 and WANT
 * is in it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ANSWER  65536u
#define SAMPLES (8u << 20)

extern char **environ;

struct conn {
    int fd;
    unsigned number, turn;
    double begun, due;
    bool waits; /* for an answer */
    size_t got;
    char in[ANSWER];
};

static float *times; /* microseconds */
static size_t n_times, n_errors;
static char first_error[256];

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static double quantile(double q)
{
    return n_times ? (double)times[(size_t)(q * (double)(n_times - 1))] : 0;
}

static void add_time(double usec)
{
    if (n_times < SAMPLES)
        times[n_times++] = (float)usec;
}

static void report(double seconds)
{
    qsort(times, n_times, sizeof(*times), compare);
    printf("{\"n\":%zu,\"seconds\":%.3f,\"errors\":%zu,\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,"
           "\"max\":%.1f,\"error\":\"%s\"}\n",
           n_times, seconds, n_errors, quantile(0.5), quantile(0.9), quantile(0.99), quantile(1),
           first_error);
}

/* ---- ask ---- */

static void fail(const char *why, size_t len)
{
    n_errors++;
    if (first_error[0])
        return;
    for (size_t i = 0; i < len && i < sizeof(first_error) - 1; i++)
        first_error[i] = why[i] < ' ' || why[i] == '"' || why[i] == '\\' ? ' ' : why[i];
}

static void open_conn(struct conn *c, int ep, unsigned port)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        die("connect");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) < 0)
        die("epoll");
    c->fd = fd;
}

static void ask(struct conn *c, unsigned port, const char *body)
{
    static char text[8192], request[16384];
    size_t n = 0;
    int len;

    for (; *body && n < sizeof(text) - 16; body++)
        if (*body == '@')
            n += (size_t)sprintf(text + n, "%u", c->number);
        else
            text[n++] = *body;
    len = snprintf(request, sizeof(request),
                   "POST /v1/call HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAuthorization: Bearer %s\r\n"
                   "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%.*s",
                   port, getenv("TOKEN"), n, (int)n, text);
    c->waits = true;
    c->got = 0;
    if (send(c->fd, request, (size_t)len, MSG_NOSIGNAL) != len)
        die("send");
}

/* True: the answer is whole. */
static bool take(struct conn *c, const char *want)
{
    ssize_t n = recv(c->fd, c->in + c->got, ANSWER - 1 - c->got, 0);
    char *end, *length;

    if (!c->waits) { /* idle for too long; the next question opens another */
        (void)close(c->fd);
        c->fd = -1;
        return false;
    }
    if (n <= 0) {
        fail("the connection was closed", 25);
        exit((report(0), 1));
    }
    c->got += (size_t)n;
    c->in[c->got] = 0;
    end = strstr(c->in, "\r\n\r\n");
    length = end ? strcasestr(c->in, "content-length:") : NULL;
    if (!length || (size_t)(end + 4 - c->in) + strtoul(length + 15, NULL, 10) > c->got)
        return false;
    if (strncmp(c->in + 9, "200", 3) != 0 || !strstr(end, want))
        fail(end + 4, c->got - (size_t)(end + 4 - c->in));
    return true;
}

static int ask_all(unsigned port, unsigned conns, double seconds, double rate, const char *want,
                   char **bodies, unsigned n_bodies)
{
    struct conn *all = calloc(conns, sizeof(*all));
    int ep = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[64];
    double begun = now(), end = begun + seconds;
    unsigned waiting = 0;

    for (unsigned i = 0; all && i < conns; i++) {
        open_conn(&all[i], ep, port);
        all[i].number = i;
        all[i].turn = i;
        all[i].due = begun + (rate > 0 ? (double)i / conns / rate : 0);
    }
    for (;;) {
        double t = now(), next = end;

        for (unsigned i = 0; i < conns; i++) {
            struct conn *c = &all[i];

            if (!c->waits && c->due <= t && t < end) {
                c->begun = rate > 0 ? c->due : t;
                if (c->fd < 0)
                    open_conn(c, ep, port);
                ask(c, port, bodies[c->turn++ % n_bodies]);
                c->due += rate > 0 ? 1 / rate : 0;
                waiting++;
            }
            if (!c->waits && c->due < next)
                next = c->due;
        }
        if (t >= end && !waiting)
            break;
        int ms = rate > 0 && next > t ? (int)((next - t) * 1e3) + 1 : -1;
        int n = epoll_wait(ep, events, 64, t >= end ? 30000 : ms);
        if (t >= end && n == 0)
            die("no answer after 30 s");
        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;

            if (!take(c, want))
                continue;
            add_time((now() - c->begun) * 1e6);
            c->waits = false;
            waiting--;
            if (rate <= 0)
                c->due = 0;
        }
    }
    report(now() - begun);
    return 0;
}

/* ---- spawn ---- */

static int spawn_all(unsigned count, unsigned pause_ms, char **words)
{
    double begun = now();

    for (unsigned i = 0; i < count; i++) {
        double t = now();
        int status;
        pid_t pid;

        errno = posix_spawnp(&pid, words[0], NULL, NULL, words, environ);
        if (errno || waitpid(pid, &status, 0) < 0)
            die(words[0]);
        if (status)
            fail("it failed", 9);
        add_time((now() - t) * 1e6);
        if (pause_ms)
            (void)usleep(pause_ms * 1000);
    }
    report(now() - begun);
    return 0;
}

int main(int argc, char **argv)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
        l.rlim_cur = l.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &l);
    }
    times = malloc(SAMPLES * sizeof(*times));
    if (times && argc > 7 && strcmp(argv[1], "ask") == 0 && getenv("TOKEN"))
        return ask_all((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), atof(argv[4]),
                       atof(argv[5]), argv[6], argv + 7, (unsigned)argc - 7);
    if (times && argc > 4 && strcmp(argv[1], "spawn") == 0)
        return spawn_all((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), argv + 4);
    fprintf(stderr, "gateway: see its first lines\n");
    return 2;
}
