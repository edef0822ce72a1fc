/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/native/net.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"

#define BACKLOG     1024
#define LOOPBACK_IF 1 /* lo is the first device of every network namespace */

enum net_step { STEP_ENTER, STEP_ROUTE, STEP_PROXY, STEP_DNS, STEP_PORT };

static const char *const step_names[] = {
    [STEP_ENTER] = "enter the box's network",
    [STEP_ROUTE] = "make every address local in the box's network",
    [STEP_PROXY] = "listen on the box's port 3128",
    [STEP_DNS] = "listen on the box's port 53",
    [STEP_PORT] = "listen on a port of the box",
};

/* What the process inside says; the descriptors come along when it is done. */
struct report {
    uint32_t step;
    int32_t sys;
};

/* ---- inside ---- */

/* ip route add local default dev lo */
static int add_route(unsigned char family)
{
    struct {
        struct nlmsghdr head;
        struct rtmsg route;
        struct rtattr attr;
        uint32_t device;
    } q = {.head = {.nlmsg_len = sizeof(q),
                    .nlmsg_type = RTM_NEWROUTE,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE},
           .route = {.rtm_family = family,
                     .rtm_table = RT_TABLE_LOCAL,
                     .rtm_protocol = RTPROT_STATIC,
                     .rtm_scope = RT_SCOPE_HOST,
                     .rtm_type = RTN_LOCAL},
           .attr = {.rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = RTA_OIF},
           .device = LOOPBACK_IF};
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[512];
    } answer;
    autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0)
        return -errno;
    if (send(fd, &q, sizeof(q), 0) < 0)
        return -errno;
    if (recv(fd, &answer, sizeof(answer), 0) < (ssize_t)sizeof(answer.head) + 4)
        return -EPROTO;
    return answer.head.nlmsg_type == NLMSG_ERROR ? answer.error.error : -EPROTO;
}

static int listen_on(int family, int type, const struct sockaddr *at, socklen_t len)
{
    autoclose int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1, off = 0;

    if (fd < 0)
        return -errno;
    if (family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (type == SOCK_STREAM)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, at, len) < 0 || (type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
        return -errno;
    return TAKE_FD(fd);
}

static int listen_here(int type, uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    return listen_on(AF_INET, type, (struct sockaddr *)&at, sizeof(at));
}

/* Both families by one socket; where the kernel has no IPv6, the older one alone. */
static int listen_everywhere(uint16_t port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = listen_on(AF_INET6, SOCK_STREAM, (struct sockaddr *)&six, sizeof(six));

    return fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL
               ? listen_on(AF_INET, SOCK_STREAM, (struct sockaddr *)&four, sizeof(four))
               : fd;
}

static int make_sockets(const uint16_t *ports, size_t n_ports, int *fds, uint32_t *step)
{
    size_t n = 0;
    int r;

    *step = STEP_ROUTE;
    r = add_route(AF_INET);
    if (r < 0)
        return r;
    (void)add_route(AF_INET6); /* a kernel without it has no such addresses to catch */
    *step = STEP_PROXY;
    r = fds[n++] = listen_here(SOCK_STREAM, NET_PROXY_PORT);
    if (r >= 0) {
        *step = STEP_DNS;
        r = fds[n++] = listen_here(SOCK_DGRAM, 53);
    }
    if (r >= 0)
        r = fds[n++] = listen_here(SOCK_STREAM, 53);
    for (size_t i = 0; r >= 0 && i < n_ports; i++) {
        *step = STEP_PORT;
        r = fds[n++] = listen_everywhere(ports[i]);
    }
    return r < 0 ? r : 0;
}

static __attribute__((noreturn)) void inside(int pidfd, int out, const uint16_t *ports,
                                             size_t n_ports)
{
    int fds[3 + LIMIT_NET_PORTS];
    struct report rep = {.step = STEP_ENTER};
    int r;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* for a moment it stands in the box's namespaces */
    memset(fds, -1, sizeof(fds));
    r = setns(pidfd, CLONE_NEWUSER | CLONE_NEWNET) < 0 ? -errno : 0;
    if (r >= 0)
        r = make_sockets(ports, n_ports, fds, &rep.step);
    rep.sys = -r;
    (void)fd_send(out, &rep, sizeof(rep), fds, r < 0 ? 0 : 3 + n_ports);
    _exit(0);
}

/* ---- outside ---- */

void net_close(struct net_sockets *s)
{
    close_fd(&s->proxy);
    close_fd(&s->dns);
    close_fd(&s->dns_tcp);
    for (size_t i = 0; i < s->n_ports; i++)
        close_fd(&s->ports[i]);
    s->n_ports = 0;
}

static int receive(int from, size_t n_ports, struct net_sockets *ret, struct error *err)
{
    int fds[3 + LIMIT_NET_PORTS];
    struct report rep;
    ssize_t n = fd_recv(from, &rep, sizeof(rep), fds, 3 + LIMIT_NET_PORTS);

    if (n != (ssize_t)sizeof(rep))
        return error_set(err, ERR_SYS, "the process that enters the box's network died");
    if (rep.sys)
        return error_sys(err, -rep.sys, "%s", step_names[rep.step <= STEP_PORT ? rep.step : 0]);
    *ret =
        (struct net_sockets){.proxy = fds[0], .dns = fds[1], .dns_tcp = fds[2], .n_ports = n_ports};
    memcpy(ret->ports, fds + 3, n_ports * sizeof(*fds));
    return 0;
}

int net_open(int pidfd, const uint16_t *ports, size_t n_ports, struct net_sockets *ret,
             struct error *err)
{
    autoclose int ours = -1, theirs = -1;
    int pair[2], r;
    pid_t pid;

    if (n_ports > LIMIT_NET_PORTS)
        return error_set(err, ERR_TOO_LARGE, "%zu ports of a box to listen on: at most %u", n_ports,
                         LIMIT_NET_PORTS);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, -errno, "make a socket pair");
    ours = pair[0];
    theirs = pair[1];
    pid = fork();
    if (pid < 0)
        return error_sys(err, -errno, "start a process");
    if (pid == 0)
        inside(pidfd, theirs, ports, n_ports);
    close_fd(&theirs); /* or its death would not be noticed */
    r = receive(ours, n_ports, ret, err);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}
