/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A box's programs against the relay: a child plays the box, another one the outside, which is
 * reached as the host's port. The child that plays the box is its init too: when it ends, nothing
 * of it may be left.
 */
#include "egress/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "tests/test.h"

static int listen_here(int type, uint16_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    if (type == SOCK_STREAM)
        assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

/* ---- the outside: answers a request with what it got, echoes everything else ---- */

static void serve(int listener)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)fcntl(listener, F_SETFL, 0);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        char text[4096] = "";
        ssize_t n = 0, got;

        while ((got = read(fd, text + n, sizeof(text) - 1 - (size_t)n)) > 0) {
            n += got;
            text[n] = 0;
            if (strstr(text, "\r\n\r\n") && strncmp(text, "GET ", 4) == 0)
                break;
            if (strncmp(text, "GET ", 4) != 0) {
                (void)!write(fd, text, (size_t)n);
                n = 0;
            }
        }
        if (n > 0) {
            char head[64];
            int len = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\n\r\n");

            (void)!write(fd, head, (size_t)len);
            (void)!write(fd, text, (size_t)n);
        }
        (void)close(fd);
    }
}

/* ---- the box ---- */

struct row {
    const char *claim;
    const char *send;
    size_t len;
    const char *want;     /* in the answer */
    const char *want_not; /* or NULL */
};

static size_t talk(uint16_t port, const char *send_, size_t len, char *answer, size_t size)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {.tv_sec = 5};
    size_t n = 0;
    ssize_t got;

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && write(fd, send_, len) == (ssize_t)len)
        while (n + 1 < size && (got = read(fd, answer + n, size - 1 - n)) > 0) {
            n += (size_t)got;
            answer[n] = 0;
            if (strstr(answer, "bye")) /* an echo does not end by itself */
                break;
        }
    answer[n] = 0;
    (void)close(fd);
    return n;
}

static bool holds(const char *answer, size_t n, const char *want)
{
    return memmem(answer, n, want, strlen(want)) != NULL;
}

static int play_box(uint16_t proxy, const struct row *rows, size_t n_rows)
{
    int bad = 0;

    for (size_t i = 0; i < n_rows; i++) {
        char answer[8192];
        size_t n = talk(proxy, rows[i].send, rows[i].len, answer, sizeof(answer));

        if ((rows[i].want && !holds(answer, n, rows[i].want)) ||
            (rows[i].want_not && holds(answer, n, rows[i].want_not))) {
            (void)fprintf(stderr, "# %s: got '%.*s'\n", rows[i].claim, (int)n, answer);
            bad++;
        }
    }
    return bad;
}

/* ---- both ---- */

static struct {
    unsigned allowed, denied, ends;
    uint64_t in;
    char denied_targets[512];
} seen;

static void on_event(struct relay *r, const struct relay_event *e)
{
    (void)r;
    if (e->is_end) {
        seen.ends++;
        seen.in += e->bytes_in;
        return;
    }
    seen.allowed += e->allowed;
    seen.denied += !e->allowed;
    if (!e->allowed) {
        size_t n = strlen(seen.denied_targets);

        (void)snprintf(seen.denied_targets + n, sizeof(seen.denied_targets) - n, "%s ", e->target);
        assert_non_null(e->reason);
    }
}

static void on_gone(struct relay *r, const char *box)
{
    assert_string_equal(box, "b0");
    loop_quit(r->loop);
}

static void run(uint16_t outside, const struct row *rows, size_t n_rows)
{
    static const char *const allow[] = {"allowed.test", "*.wild.test:8443"};
    struct rules_source source = {.allow = allow,
                                  .n_allow = 2,
                                  .host_ports = &outside,
                                  .n_host_ports = 1,
                                  .allow_key = "network.allow",
                                  .deny_key = "network.deny",
                                  .host_ports_key = "network.hostPorts"};
    struct resolver_server nobody = {.address = address_v4(INADDR_LOOPBACK), .port = 1};
    struct relay r = {.on_event = on_event, .on_gone = on_gone};
    struct relay_join join = {.id = "b0"};
    uint16_t proxy, dns, dns_tcp;
    struct error err;
    int status;
    pid_t pid;

    memset(&seen, 0, sizeof(seen));
    assert_int_equal(loop_new(&r.loop), 0);
    CHECK_OK(resolver_new(r.loop, &nobody, 1, &r.resolver, &err), err);
    CHECK_OK(rules_parse(&source, &join.rules, &err), err);
    join.proxy = listen_here(SOCK_STREAM, &proxy);
    join.dns = listen_here(SOCK_DGRAM, &dns);
    join.dns_tcp = listen_here(SOCK_STREAM, &dns_tcp);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(play_box(proxy, rows, n_rows));
    join.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    assert_true(join.pidfd >= 0);
    CHECK_OK(relay_join(&r, &join, &err), err);
    CHECK_ERR(relay_join(&r, &join, &err), err, ERR_EXISTS, "already");
    assert_int_equal(loop_run(r.loop), 0);
    assert_null(r.boxes);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    resolver_free(r.resolver);
    loop_free(r.loop);
}

#define TEXT(s) s, sizeof(s) - 1

static void test_proxy(void **state)
{
    uint16_t port;
    int listener = listen_here(SOCK_STREAM, &port);
    char get[128], connect_[160], wrong_host[160];
    size_t before;
    pid_t server = fork();

    (void)state;
    if (server == 0)
        serve(listener);
    before = open_fds();
    (void)snprintf(get, sizeof(get),
                   "GET http://host.clawden.internal:%u/path HTTP/1.1\r\nHost: "
                   "host.clawden.internal:%u\r\nProxy-Authorization: secret\r\n\r\n",
                   port, port);
    (void)snprintf(connect_, sizeof(connect_),
                   "CONNECT host.clawden.internal:%u HTTP/1.1\r\nHost: "
                   "host.clawden.internal:%u\r\n\r\nhello, bye",
                   port, port);
    (void)snprintf(wrong_host, sizeof(wrong_host),
                   "GET http://host.clawden.internal:%u/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
                   port);
    {
        const struct row rows[] = {
            {"a request is rebuilt and answered", get, strlen(get), "GET /path HTTP/1.1", "secret"},
            {"it says close", get, strlen(get), "Connection: close", "http://"},
            {"a tunnel carries bytes", connect_, strlen(connect_), "hello, bye", NULL},
            {"another Host is refused", wrong_host, strlen(wrong_host), "HTTP/1.1 400", "200 OK"},
            {"a name that no rule has",
             TEXT("CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n"), "HTTP/1.1 403",
             NULL},
            {"the setting is named",
             TEXT("CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n"), "network.allow",
             NULL},
            {"the metadata service",
             TEXT("GET http://169.254.169.254/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n"),
             "HTTP/1.1 403", NULL},
            {"an address in disguise",
             TEXT("CONNECT 2130706433:80 HTTP/1.1\r\nHost: 2130706433:80\r\n\r\n"), "HTTP/1.1 400",
             NULL},
            {"another port of a name",
             TEXT("CONNECT allowed.test:22 HTTP/1.1\r\nHost: allowed.test:22\r\n\r\n"),
             "HTTP/1.1 403", NULL},
            {"a name that cannot be resolved",
             TEXT("CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n"),
             "HTTP/1.1 502", NULL},
            {"a request to a server, not to a proxy",
             TEXT("GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n"), "HTTP/1.1 400", NULL},
            {"two lengths",
             TEXT(
                 "POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 1\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n"),
             "HTTP/1.1 400", NULL},
            {"SOCKS to a denied name", TEXT("\5\1\0\5\1\0\3\11evil.test\1\273"), "\5\2", NULL},
            {"SOCKS4 is refused", TEXT("\4\1\0\120\300\0\2\1u\0"), NULL, "200"},
        };

        run(port, rows, sizeof(rows) / sizeof(*rows));
    }
    assert_int_equal(open_fds(), before);
    assert_int_equal(seen.allowed, 3);
    assert_int_equal(seen.ends, 3);
    assert_true(seen.denied >= 5 && seen.in > 100);
    assert_non_null(strstr(seen.denied_targets, "evil.test:443"));
    assert_non_null(strstr(seen.denied_targets, "169.254.169.254:80"));
    (void)kill(server, SIGKILL);
    (void)waitpid(server, NULL, 0);
    (void)close(listener);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a box reaches what its rules allow by way of the proxy, and nothing else",
              test_proxy),
    };

    return RUN_CLAIMS("egress/relay", claims);
}
