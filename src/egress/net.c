/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/net.h"

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
#include "egress/redirect.h"

#define BACKLOG     1024
#define LOOPBACK_IF 1 /* lo is the first device of every network namespace */

enum net_step { STEP_ENTER, STEP_ROUTE, STEP_PROXY, STEP_DNS, STEP_CAUGHT, STEP_PORT, STEP_SPARE };

static const char *const step_names[] = {
    [STEP_ENTER] = "enter the box's network",
    [STEP_ROUTE] = "make every address local in the box's network",
    [STEP_PROXY] = "listen on the box's port 3128",
    [STEP_DNS] = "listen on the box's port 53",
    [STEP_CAUGHT] = "listen on the box's port 3129",
    [STEP_PORT] = "listen on a port of the box",
    [STEP_SPARE] = "make a socket in the box's network",
};

enum slot { AT_PROXY, AT_DNS, AT_DNS_TCP, AT_CAUGHT_4, AT_CAUGHT_6, AT_SNMP, AT_SNMP_6, AT_PORTS };
#define LIMIT_FDS (AT_PORTS + LIMIT_NET_PORTS + LIMIT_NET_SPARES)

/* What the process inside says; the descriptors come along when it is done, those that are there.
 */
struct report {
    uint32_t step;
    int32_t sys;
    uint32_t has; /* bits of enum slot, below AT_PORTS */
    uint32_t n_ports, n_spares;
};

struct made {
    struct report report;
    int fds[LIMIT_FDS]; /* by enum slot, then ports, then spares */
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
    /* An answer has to come from the address that was asked. */
    if (type == SOCK_DGRAM && family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
    if (type == SOCK_DGRAM && family == AF_INET)
        (void)setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
    if (bind(fd, at, len) < 0 || (type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
        return -errno;
    return TAKE_FD(fd);
}

static int listen_four(int type, in_addr_t address, uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};

    return listen_on(AF_INET, type, (struct sockaddr *)&at, sizeof(at));
}

static int listen_six(int type, struct in6_addr address, uint16_t port)
{
    struct sockaddr_in6 at = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = address};

    return listen_on(AF_INET6, type, (struct sockaddr *)&at, sizeof(at));
}

static bool has_no_six(int r)
{
    return r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL;
}

/* Both families by one socket; where the kernel has no IPv6, the older one alone. */
static int listen_everywhere(int type, uint16_t port)
{
    int fd = listen_six(type, in6addr_any, port);

    return has_no_six(fd) ? listen_four(type, INADDR_ANY, port) : fd;
}

static int keep(struct made *m, enum net_step step, enum slot at, int fd)
{
    m->report.step = step;
    if (fd < 0)
        return fd;
    m->fds[at] = fd;
    m->report.has |= 1u << at;
    return 0;
}

/* 0: every connection comes to one socket; 1: the kernel cannot do that. */
static int make_caught(struct made *m)
{
    int r = keep(m, STEP_CAUGHT, AT_CAUGHT_4,
                 listen_four(SOCK_STREAM, INADDR_LOOPBACK, NET_CAUGHT_PORT)),
        six;

    if (r < 0)
        return r;
    six = listen_six(SOCK_STREAM, in6addr_loopback, NET_CAUGHT_PORT);
    if (!has_no_six(six))
        r = keep(m, STEP_CAUGHT, AT_CAUGHT_6, six);
    if (r < 0 || redirect_tcp(NET_CAUGHT_PORT) >= 0)
        return r;
    for (enum slot at = AT_CAUGHT_4; at <= AT_CAUGHT_6; at++)
        close_fd(&m->fds[at]);
    m->report.has &= ~(1u << AT_CAUGHT_4 | 1u << AT_CAUGHT_6);
    return 1;
}

static int make_ports(struct made *m, const struct net_wish *w)
{
    m->report.step = STEP_PORT;
    for (size_t i = 0; i < w->n_ports && i < LIMIT_NET_PORTS; i++) {
        int fd = listen_everywhere(SOCK_STREAM, w->ports[i]);

        if (fd < 0)
            return fd;
        m->fds[AT_PORTS + m->report.n_ports++] = fd;
    }
    return 0;
}

static int make_spares(struct made *m, size_t n)
{
    m->report.step = STEP_SPARE;
    for (size_t i = 0; i < n && i < LIMIT_NET_SPARES; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
            return -errno;
        m->fds[AT_PORTS + LIMIT_NET_PORTS + m->report.n_spares++] = fd;
    }
    return 0;
}

/* The kernel's own counters of this network, for what it refuses by itself. */
static void open_counters(struct made *m)
{
    (void)keep(m, STEP_SPARE, AT_SNMP, open("/proc/thread-self/net/snmp", O_RDONLY | O_CLOEXEC));
    (void)keep(m, STEP_SPARE, AT_SNMP_6, open("/proc/thread-self/net/snmp6", O_RDONLY | O_CLOEXEC));
}

static int make_sockets(struct made *m, const struct net_wish *w)
{
    int r;

    /* Between two ends of one machine there is nothing to be careful about: some hosts' own choice
     * paces every packet. Of this namespace alone; if it cannot be had, it is slower. */
    (void)fd_write_text(AT_FDCWD, "/proc/sys/net/ipv4/tcp_congestion_control", "reno");
    m->report.step = STEP_ROUTE;
    r = add_route(AF_INET);
    if (r < 0)
        return r;
    (void)add_route(AF_INET6); /* a kernel without it has no such addresses to catch */
    r = keep(m, STEP_PROXY, AT_PROXY, listen_four(SOCK_STREAM, INADDR_LOOPBACK, NET_PROXY_PORT));
    if (r >= 0)
        r = keep(m, STEP_DNS, AT_DNS, listen_everywhere(SOCK_DGRAM, 53));
    if (r >= 0)
        r = keep(m, STEP_DNS, AT_DNS_TCP, listen_everywhere(SOCK_STREAM, 53));
    if (r >= 0)
        r = w->no_redirect ? 1 : make_caught(m);
    if (r == 1)
        r = make_ports(m, w);
    if (r >= 0)
        r = make_spares(m, w->n_spares);
    if (r >= 0)
        open_counters(m);
    return r;
}

/* Those that are there, close together. */
static size_t gather(const struct made *m, int *ret)
{
    size_t n = 0;

    for (unsigned i = 0; i < AT_PORTS; i++)
        if (m->report.has & 1u << i)
            ret[n++] = m->fds[i];
    for (unsigned i = 0; i < m->report.n_ports; i++)
        ret[n++] = m->fds[AT_PORTS + i];
    for (unsigned i = 0; i < m->report.n_spares; i++)
        ret[n++] = m->fds[AT_PORTS + LIMIT_NET_PORTS + i];
    return n;
}

static __attribute__((noreturn)) void inside(int pidfd, int out, const struct net_wish *w)
{
    struct made m = {.report = {.step = STEP_ENTER}};
    int fds[LIMIT_FDS], r;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* for a moment it stands in the box's namespaces */
    r = setns(pidfd, CLONE_NEWUSER | CLONE_NEWNET) < 0 ? -errno : 0;
    if (r >= 0)
        r = make_sockets(&m, w);
    m.report.sys = -r;
    (void)fd_send(out, &m.report, sizeof(m.report), fds, r < 0 ? 0 : gather(&m, fds));
    _exit(0);
}

/* ---- outside ---- */

void net_close(struct net_sockets *s)
{
    close_fd(&s->proxy);
    close_fd(&s->dns);
    close_fd(&s->dns_tcp);
    for (int i = 0; i < 2; i++) {
        close_fd(&s->caught[i]);
        close_fd(&s->counters[i]);
    }
    for (size_t i = 0; i < s->n_ports; i++)
        close_fd(&s->ports[i]);
    for (size_t i = 0; i < s->n_spares; i++)
        close_fd(&s->spares[i]);
    s->n_ports = s->n_spares = 0;
}

static void sort_out(const struct report *rep, const int *fds, const struct net_wish *w,
                     struct net_sockets *ret)
{
    int *const singles[AT_PORTS] = {&ret->proxy,      &ret->dns,       &ret->dns_tcp,
                                    &ret->caught[0],  &ret->caught[1], &ret->counters[0],
                                    &ret->counters[1]};
    size_t n = 0;

    for (unsigned i = 0; i < AT_PORTS; i++)
        if (rep->has & 1u << i)
            *singles[i] = fds[n++];
    for (; ret->n_ports < rep->n_ports; ret->n_ports++) {
        ret->ports[ret->n_ports] = fds[n++];
        ret->port_numbers[ret->n_ports] = w->ports[ret->n_ports];
    }
    for (; ret->n_spares < rep->n_spares; ret->n_spares++)
        ret->spares[ret->n_spares] = fds[n++];
}

static int receive(int from, const struct net_wish *w, struct net_sockets *ret, struct error *err)
{
    int fds[LIMIT_FDS];
    struct report rep;
    ssize_t n = fd_recv(from, &rep, sizeof(rep), fds, LIMIT_FDS);

    *ret = (struct net_sockets)NET_SOCKETS_EMPTY;
    if (n != (ssize_t)sizeof(rep))
        return error_set(err, ERR_SYS, "the process that enters the box's network died");
    if (rep.sys)
        return error_sys(err, -rep.sys, "%s", step_names[rep.step <= STEP_SPARE ? rep.step : 0]);
    sort_out(&rep, fds, w, ret);
    return 0;
}

int net_open(int pidfd, const struct net_wish *wish, struct net_sockets *ret, struct error *err)
{
    autoclose int ours = -1, theirs = -1;
    int pair[2], r;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, -errno, "make a socket pair");
    ours = pair[0];
    theirs = pair[1];
    pid = fork();
    if (pid < 0)
        return error_sys(err, -errno, "start a process");
    if (pid == 0)
        inside(pidfd, theirs, wish);
    close_fd(&theirs); /* or its death would not be noticed */
    r = receive(ours, wish, ret, err);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}
