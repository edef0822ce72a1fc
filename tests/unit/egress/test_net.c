/* SPDX-License-Identifier: Apache-2.0 */
/* A child in a network of its own plays the box; this process serves its sockets from outside. */
#include "egress/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "tests/test.h"

#define WAIT_MS 2000

static struct {
    pid_t pid;
    int pidfd, talk;
} box;

/* ---- inside ---- */

static struct sockaddr_in address(const char *ip, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};

    (void)inet_pton(AF_INET, ip, &a.sin_addr);
    return a;
}

static void bring_up_loopback(void)
{
    struct ifreq q = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &q) < 0)
        _exit(2);
    (void)close(fd);
}

struct order {
    char kind; /* 't': connect; 'u': send a datagram and wait for an answer; 'l': listen */
    char ip[64];
    uint16_t port;
};

static int try_six(const struct order *o)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(o->port)};
    autoclose int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)inet_pton(AF_INET6, o->ip, &to.sin6_addr);
    return connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ? errno : 0;
}

static int try_four(const struct order *o)
{
    struct sockaddr_in to = address(o->ip, o->port), from = {0};
    autoclose int fd =
        socket(AF_INET, (o->kind == 't' ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);
    struct timeval wait = {.tv_sec = 2};
    socklen_t n = sizeof(from);
    char got[8] = "";

    if (o->kind == 't')
        return connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ? errno : 0;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || send(fd, "ask", 3, 0) < 0)
        return errno;
    if (recvfrom(fd, got, sizeof(got), 0, (struct sockaddr *)&from, &n) < 0)
        return errno;
    return memcmp(&from.sin_addr, &to.sin_addr, 4) == 0 ? 0 : EXDEV;
}

static int start_listening(const struct order *o)
{
    struct sockaddr_in at = address(o->ip, o->port);
    int fd = socket(AF_INET, SOCK_STREAM, 0); /* open until the box ends */

    return bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 8) < 0 ? errno : 0;
}

static __attribute__((noreturn)) void play_box(int talk)
{
    struct order o;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
        _exit(errno == EPERM ? 77 : 1);
    bring_up_loopback();
    (void)!write(talk, "r", 1);
    while (read(talk, &o, sizeof(o)) == (ssize_t)sizeof(o)) {
        int r = o.kind == 'l'       ? start_listening(&o)
                : strchr(o.ip, ':') ? try_six(&o)
                                    : try_four(&o);

        (void)!write(talk, &r, sizeof(r));
    }
    _exit(0);
}

/* ---- outside ---- */

static int setup(void **state)
{
    int pair[2];
    char ready;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    box.pid = fork();
    if (box.pid == 0)
        play_box(pair[1]);
    (void)close(pair[1]);
    box.talk = pair[0];
    assert_int_equal(read(box.talk, &ready, 1), 1);
    box.pidfd = (int)syscall(SYS_pidfd_open, box.pid, 0);
    assert_true(box.pidfd >= 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)close(box.talk);
    (void)close(box.pidfd);
    if (box.pid > 0) {
        (void)kill(box.pid, SIGKILL);
        (void)waitpid(box.pid, NULL, 0);
    }
    return 0;
}

static void order(char kind, const char *ip, uint16_t port)
{
    struct order o = {.kind = kind, .port = port};

    (void)snprintf(o.ip, sizeof(o.ip), "%s", ip);
    assert_int_equal(write(box.talk, &o, sizeof(o)), sizeof(o));
}

static int outcome(void)
{
    int r = -1;

    assert_int_equal(read(box.talk, &r, sizeof(r)), sizeof(r));
    return r;
}

static bool is_ready(int fd)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, WAIT_MS) == 1;
}

static void open_net(const struct net_wish *w, struct net_sockets *net)
{
    struct error err;

    CHECK_OK(net_open(box.pidfd, w, net, &err), err);
}

static void expect_meant(int listener, const char *ip, uint16_t port)
{
    struct sockaddr_in meant = {0}, want = address(ip, port);
    socklen_t n = sizeof(meant);
    autoclose int fd = -1;

    assert_true(is_ready(listener));
    fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    assert_int_equal(getsockopt(fd, SOL_IP, 80 /* SO_ORIGINAL_DST */, &meant, &n), 0);
    assert_int_equal(meant.sin_addr.s_addr, want.sin_addr.s_addr);
    assert_int_equal(meant.sin_port, want.sin_port);
}

static void test_caught(void **state)
{
    autonet net = NET_SOCKETS_EMPTY;

    (void)state;
    open_net(&(struct net_wish){0}, &net);
    if (net.caught[0] < 0) {
        print_message("# this kernel has no nf_tables\n");
        skip();
    }
    assert_int_equal(net.n_ports, 0);
    for (uint16_t port = 1; port < 50000; port = (uint16_t)(port * 7)) {
        order('t', "198.18.3.7", port);
        expect_meant(net.caught[0], "198.18.3.7", port);
        assert_int_equal(outcome(), 0);
    }
    order('t', "169.254.169.254", 80);
    expect_meant(net.caught[0], "169.254.169.254", 80);
    assert_int_equal(outcome(), 0);
    if (net.caught[1] >= 0) {
        order('t', "2001:db8::7", 443);
        assert_true(is_ready(net.caught[1]));
        assert_int_equal(outcome(), 0);
    }
    order('t', "127.0.0.1", 443); /* its own loopback is its own */
    assert_int_equal(outcome(), ECONNREFUSED);
    order('t', "127.0.0.1", NET_PROXY_PORT);
    assert_int_equal(outcome(), 0);
    assert_true(is_ready(net.proxy));
}

/* Brought to another relay: the rules of the first time are replaced, the ports are free again. */
static void test_again(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        autonet net = NET_SOCKETS_EMPTY;

        open_net(&(struct net_wish){.n_spares = 1}, &net);
        if (net.caught[0] < 0)
            skip();
        order('t', "192.0.2.1", 25);
        expect_meant(net.caught[0], "192.0.2.1", 25);
        assert_int_equal(outcome(), 0);
    }
}

static void test_ports(void **state)
{
    static const uint16_t ports[] = {443, 8443};
    autonet net = NET_SOCKETS_EMPTY;
    struct sockaddr_in6 at;
    socklen_t n = sizeof(at);
    autoclose int fd = -1;

    (void)state;
    open_net(&(struct net_wish){.ports = ports, .n_ports = 2, .no_redirect = true}, &net);
    assert_int_equal(net.caught[0], -1);
    assert_int_equal(net.n_ports, 2);
    assert_int_equal(net.port_numbers[1], 8443);
    order('t', "203.0.113.9", 8443);
    assert_true(is_ready(net.ports[1]));
    fd = accept(net.ports[1], NULL, NULL);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    assert_int_equal(at.sin6_addr.s6_addr[12], 203);
    assert_int_equal(outcome(), 0);
    order('t', "203.0.113.9", 22);
    assert_int_equal(outcome(), ECONNREFUSED);
}

/* A question to any server arrives, and is answered from the address that was asked. */
static void test_dns(void **state)
{
    union {
        struct cmsghdr align;
        char space[256];
    } control;
    char data[16];
    struct sockaddr_in6 from;
    struct iovec v = {.iov_base = data, .iov_len = sizeof(data)};
    struct msghdr m = {.msg_name = &from,
                       .msg_namelen = sizeof(from),
                       .msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};
    autonet net = NET_SOCKETS_EMPTY;

    (void)state;
    open_net(&(struct net_wish){0}, &net);
    order('u', "198.51.100.53", 53);
    assert_true(is_ready(net.dns));
    assert_int_equal(recvmsg(net.dns, &m, 0), 3);
    assert_non_null(CMSG_FIRSTHDR(&m));
    v.iov_len = 3;
    ((struct in6_pktinfo *)CMSG_DATA(CMSG_FIRSTHDR(&m)))->ipi6_ifindex = 0;
    assert_int_equal(sendmsg(net.dns, &m, 0), 3);
    assert_int_equal(outcome(), 0);
    order('u', "198.51.100.53", 123);
    assert_int_equal(outcome(), ECONNREFUSED);
    assert_true(pread(net.counters[0], data, sizeof(data), 0) > 0);
}

/* A socket that was made inside is connected from outside, to a port of the box's loopback. */
static void test_spares(void **state)
{
    struct sockaddr_in to = address("127.0.0.1", 9222);
    autonet net = NET_SOCKETS_EMPTY;

    (void)state;
    open_net(&(struct net_wish){.n_spares = 2}, &net);
    assert_int_equal(net.n_spares, 2);
    (void)connect(net.spares[0], (struct sockaddr *)&to, sizeof(to));
    order('l', "127.0.0.1", 9222);
    assert_int_equal(outcome(), 0);
    assert_int_equal(
        connect(net.spares[1], (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS, 0);
    assert_int_equal(poll(&(struct pollfd){.fd = net.spares[1], .events = POLLOUT}, 1, WAIT_MS), 1);
}

static void test_gone(void **state)
{
    struct net_sockets net;
    struct error err;
    int status;

    (void)state;
    (void)kill(box.pid, SIGKILL);
    (void)waitpid(box.pid, &status, 0);
    box.pid = 0;
    assert_true(net_open(box.pidfd, &(struct net_wish){0}, &net, &err) < 0);
    assert_non_null(strstr(err.msg, "enter the box's network"));
}

#define IN_BOX(text, fn)                                                                  \
    {                                                                                     \
        .name = (text), .test_func = (fn), .setup_func = setup, .teardown_func = teardown \
    }

int main(void)
{
    static const struct CMUnitTest claims[] = {
        IN_BOX("every TCP connection of a box arrives, with the address that was meant",
               test_caught),
        IN_BOX("a box is brought to another relay as to the first", test_again),
        IN_BOX("without nf_tables the ports that matter are caught", test_ports),
        IN_BOX("a name server at any address is the box's own", test_dns),
        IN_BOX("published ports are reached by sockets made inside", test_spares),
        IN_BOX("a box that has ended has no network", test_gone),
    };

    return RUN_CLAIMS("egress/net", claims);
}
