/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A box against the relay, with real sockets. Three processes: the test runs the relay; a child is
 * the box, if asked for in a network of its own where every address is local, makes its listeners
 * there and passes them out; another one is the outside, reached as ports of the host. The box's
 * script is its init too: when it ends, nothing of it may be left.
 *
 * What a script expects and does not get is printed and counted; the count is its exit status.
 */
#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/fd.h"
#include "egress/redirect.h"
#include "egress/relay.h"
#include "egress/resolver_internal.h"
#include "tests/test.h"

#define HOST_NAME_HERE "host.clawden.internal"
#define HOST_OTHER     "host.docker.internal" /* the same, as another destination */
#define BUDGETS_KEY    "sandbox.egress"
#define MAX_SPARES     4u
#define CAUGHT_PORT    15001

/* ---- sockets ---- */

static inline struct sockaddr_storage make_addr(const char *ip, uint16_t port, socklen_t *len)
{
    struct sockaddr_storage s = {0};
    struct sockaddr_in *four = (struct sockaddr_in *)&s;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&s;

    if (inet_pton(AF_INET, ip, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        *len = sizeof(*four);
    } else {
        (void)inet_pton(AF_INET6, ip, &six->sin6_addr);
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(port);
        *len = sizeof(*six);
    }
    return s;
}

/* Bound, listening if it is a stream, non-blocking; -1 if it cannot be. */
static inline int bind_at(const char *ip, uint16_t port, int type)
{
    socklen_t len;
    struct sockaddr_storage a = make_addr(ip, port, &len);
    int fd = socket(a.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd >= 0 &&
        (bind(fd, (struct sockaddr *)&a, len) < 0 || (type == SOCK_STREAM && listen(fd, 512) < 0)))
        close_fd(&fd);
    return fd;
}

static inline uint16_t port_of(int fd)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof(a);

    (void)getsockname(fd, (struct sockaddr *)&a, &n);
    return ntohs(((struct sockaddr_in *)&a)->sin_port);
}

static inline int connect_to(const char *ip, uint16_t port)
{
    socklen_t len;
    struct sockaddr_storage a = make_addr(ip, port, &len);
    int fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {.tv_sec = 5};

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, len) < 0)
        close_fd(&fd);
    return fd;
}

/* Until its end, or until `enough` stands in it (a constant; or NULL). */
static inline size_t hear(int fd, char *text, size_t size, const char *enough)
{
    size_t n = 0;
    ssize_t got;

    text[0] = 0;
    while (n + 1 < size && (got = read(fd, text + n, size - 1 - n)) > 0) {
        n += (size_t)got;
        text[n] = 0;
        if (enough && memmem(text, n, enough, strlen(enough)))
            break;
    }
    return n;
}

static inline size_t talk(const char *ip, uint16_t port, const void *send_, size_t len,
                          char *answer, size_t size, const char *enough)
{
    autoclose int fd = connect_to(ip, port);

    answer[0] = 0;
    if (fd < 0 || write(fd, send_, len) != (ssize_t)len)
        return 0;
    return hear(fd, answer, size, enough);
}

/* The end arrives as a reset, not as an end. */
static inline void reset(int fd)
{
    struct linger none = {.l_onoff = 1};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    (void)close(fd);
}

#define IN_TIME 5000 /* ms, on any machine: a relay that waits for a word waits twice as long */

static inline uint64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- what a script says ---- */

static int bad;

#define EXPECT(cond, ...)                        \
    do {                                         \
        if (!(cond)) {                           \
            (void)fprintf(stderr, "# not so: "); \
            (void)fprintf(stderr, __VA_ARGS__);  \
            (void)fprintf(stderr, "\n");         \
            bad++;                               \
        }                                        \
    } while (0)

/* ---- the outside ---- */

static uint16_t outside, greeter; /* its ports; the second one speaks first */

static inline void send_many(int fd, size_t n)
{
    static char chunk[16 << 10];
    ssize_t sent = 1;

    for (; n && sent > 0; n -= (size_t)sent)
        sent = send(fd, chunk, n < sizeof(chunk) ? n : sizeof(chunk), MSG_NOSIGNAL);
}

/* Answers a GET with what it got, "SEND n." with n bytes, and echoes everything else. */
static inline void serve_one(int fd)
{
    char text[4096] = "";
    size_t n = 0, many;
    ssize_t got;

    while ((got = read(fd, text + n, sizeof(text) - 1 - n)) > 0) {
        n += (size_t)got;
        text[n] = 0;
        if (sscanf(text, "SEND %zu.", &many) == 1 && strchr(text, '.')) {
            send_many(fd, many);
            return;
        }
        if (strncmp(text, "GET ", 4) != 0 && strncmp(text, "SEND ", 5) != 0) {
            (void)send(fd, text, n, MSG_NOSIGNAL);
            n = 0;
        } else if (strstr(text, "\r\n\r\n")) {
            (void)send(fd, "HTTP/1.1 200 OK\r\n\r\n", 19, MSG_NOSIGNAL);
            (void)send(fd, text, n, MSG_NOSIGNAL);
            return;
        }
    }
}

static inline void serve(int listener, const char *greeting)
{
    (void)signal(SIGCHLD, SIG_IGN);
    (void)fcntl(listener, F_SETFL, 0);
    for (;;) {
        int fd = accept(listener, NULL, NULL);

        if (fork() == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
            (void)send(fd, greeting, strlen(greeting), MSG_NOSIGNAL);
            serve_one(fd);
            _exit(0);
        }
        (void)close(fd);
    }
}

static inline pid_t start_outside(uint16_t *ret_port, const char *greeting)
{
    int fd = bind_at("127.0.0.1", 0, SOCK_STREAM);
    pid_t pid;

    assert_true(fd >= 0);
    *ret_port = port_of(fd);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        serve(fd, greeting);
    }
    (void)close(fd);
    return pid;
}

static inline void stop(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

/* ---- the box's network ---- */

static inline int route_all(int family)
{
    struct {
        struct nlmsghdr head;
        struct rtmsg route;
        struct rtattr oif;
        int index;
    } m = {.head = {.nlmsg_len = sizeof(m),
                    .nlmsg_type = RTM_NEWROUTE,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE},
           .route = {.rtm_family = (unsigned char)family,
                     .rtm_table = RT_TABLE_LOCAL,
                     .rtm_protocol = RTPROT_STATIC,
                     .rtm_scope = RT_SCOPE_HOST,
                     .rtm_type = RTN_LOCAL},
           .oif = {.rta_len = RTA_LENGTH(sizeof(int)), .rta_type = RTA_OIF},
           .index = (int)if_nametoindex("lo")};
    autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct {
        struct nlmsghdr head;
        struct nlmsgerr err;
    } answer;

    if (send(fd, &m, sizeof(m), 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0)
        return -errno;
    return answer.err.error;
}

/* Every address is the box's own: whatever it connects to arrives. */
static inline int enter_network(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    autoclose int fd = -1;

    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
        return -errno;
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
        return -errno;
    return route_all(AF_INET) < 0 || route_all(AF_INET6) < 0 ? -EOPNOTSUPP : 0;
}

/* ---- the scene ---- */

enum { F_PROXY, F_DNS, F_DNS_TCP, F_CAUGHT, F_CAUGHT6, F_SNMP, F_SNMP6, F_PORTS };
#define MAX_PORTS 6u

struct scene {
    int (*box)(void);   /* its script */
    int (*guest)(void); /* a script on the host; then it is this that ends it */
    bool net;           /* the box has a network of its own */
    bool redirect;      /* and all of it leads to the listeners of RELAY_ANY */
    bool no_ipv6;       /* its resolver is asked by IPv4 alone */
    bool slow_names;    /* names of the outside are found in half a second, to be none */
    uint16_t ports[MAX_PORTS];
    size_t n_ports, n_spares, n_published;
    struct relay_publish published[2];
    struct relay_budgets budgets;
    uint64_t udp_usec;
    void (*on_joined)(struct relay_box *b);
    void (*on_event)(struct relay *r, const struct relay_event *e);
};

static uint16_t proxy_port, dns_port; /* for the script */

static inline int dns_socket(const struct scene *s)
{
    const char *ip = !s->net ? "127.0.0.1" : s->no_ipv6 ? "0.0.0.0" : "::";
    int fd = bind_at(ip, s->net ? 53 : 0, SOCK_DGRAM), on = 1;

    if (s->net && s->no_ipv6)
        (void)setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
    else if (s->net)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
    return fd;
}

static inline size_t make_sockets(const struct scene *s, int *fds)
{
    size_t n = F_PORTS;

    fds[F_PROXY] = bind_at("127.0.0.1", 0, SOCK_STREAM);
    fds[F_DNS] = dns_socket(s);
    fds[F_DNS_TCP] = bind_at("127.0.0.1", s->net ? 53 : 0, SOCK_STREAM);
    fds[F_CAUGHT] = bind_at("127.0.0.1", s->net ? CAUGHT_PORT : 0, SOCK_STREAM);
    fds[F_CAUGHT6] = bind_at("::1", s->net ? CAUGHT_PORT : 0, SOCK_STREAM);
    fds[F_SNMP] = open("/proc/self/net/snmp", O_RDONLY | O_CLOEXEC);
    fds[F_SNMP6] = open("/proc/self/net/snmp6", O_RDONLY | O_CLOEXEC);
    proxy_port = port_of(fds[F_PROXY]);
    dns_port = port_of(fds[F_DNS]);
    for (size_t i = 0; i < s->n_ports; i++)
        fds[n++] = bind_at("0.0.0.0", s->ports[i], SOCK_STREAM);
    for (size_t i = 0; i < s->n_spares; i++)
        fds[n++] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return n;
}

/* Sends 'x' if the network cannot be had; else its sockets, and then waits until it may begin. */
static inline void be_box(const struct scene *s, int talk_fd)
{
    int fds[F_PORTS + MAX_PORTS + MAX_SPARES];
    char go;
    size_t n;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)signal(SIGPIPE, SIG_IGN);
    if ((s->net && enter_network() < 0) || (s->redirect && redirect_tcp(CAUGHT_PORT) < 0)) {
        (void)fd_send(talk_fd, "x", 1, NULL, 0);
        _exit(0);
    }
    n = make_sockets(s, fds);
    for (size_t i = 0; i < n; i++)
        if (fds[i] < 0)
            (void)fprintf(stderr, "# socket %zu could not be made\n", i);
    if (fd_send(talk_fd, "s", 1, fds, n) < 0)
        _exit(99);
    for (size_t i = 0; i < n; i++)
        close_fd(&fds[i]);
    if (read(talk_fd, &go, 1) != 1)
        _exit(98);
    _exit(s->box());
}

static inline void on_scene_gone(struct relay *r, const char *box)
{
    assert_string_equal(box, "b0");
    loop_quit(r->loop);
}

static inline struct rules *scene_rules(void)
{
    static const char *const allow[] = {"allowed.test", "*.wild.test:8443"};
    uint16_t host_ports[2] = {outside, greeter};
    struct rules_source source = {.allow = allow,
                                  .n_allow = 2,
                                  .host_ports = host_ports,
                                  .n_host_ports = greeter ? 2 : 1,
                                  .allow_key = "network.allow",
                                  .deny_key = "network.deny",
                                  .host_ports_key = "network.hostPorts"};
    struct rules *rules;
    struct error err;

    CHECK_OK(rules_parse(&source, &rules, &err), err);
    return rules;
}

static inline void close_counters(const int *fds)
{
    (void)close(fds[F_SNMP]);
    (void)close(fds[F_SNMP6]);
}

static inline void scene_join(const struct scene *s, struct relay *r, pid_t life, const int *fds)
{
    struct relay_join join = RELAY_JOIN_INIT;
    struct error err;

    join.id = "b0";
    join.rules = scene_rules();
    join.budgets = s->budgets;
    join.budgets_key = BUDGETS_KEY;
    join.pidfd = (int)syscall(SYS_pidfd_open, life, 0);
    assert_true(join.pidfd >= 0);
    join.proxy = fds[F_PROXY];
    join.dns = fds[F_DNS];
    join.dns_tcp = fds[F_DNS_TCP];
    memcpy(join.caught, fds + F_CAUGHT, sizeof(join.caught));
    if (s->net) /* else they count what others do */
        memcpy(join.counters, fds + F_SNMP, sizeof(join.counters));
    else
        close_counters(fds);
    join.ports = fds + F_PORTS;
    join.port_numbers = s->ports;
    join.n_ports = s->n_ports;
    join.spares = fds + F_PORTS + s->n_ports;
    join.n_spares = s->n_spares;
    join.published = s->published;
    join.n_published = s->n_published;
    CHECK_OK(relay_join(r, &join, &err), err);
    CHECK_ERR(relay_join(r, &join, &err), err, ERR_EXISTS, "already");
}

static inline void check_exit(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the script ended with %#x",
          (unsigned)status);
}

/* Runs it to its end; false if this host cannot. */
static inline bool play(struct scene *s)
{
    const struct resolver_times times = {
        .try_usec = 500000, .grace_usec = 500000, .total_usec = 500000, .second_usec = 1000000};
    autoclose int silent = bind_at("127.0.0.1", 0, SOCK_DGRAM);
    struct resolver_server nobody = {.address = address_v4(INADDR_LOOPBACK),
                                     .port = s->slow_names ? port_of(silent) : 1};
    struct relay r = {.on_event = s->on_event, .on_gone = on_scene_gone, .udp_usec = s->udp_usec};
    int fds[F_PORTS + MAX_PORTS + MAX_SPARES], pair[2];
    pid_t box, guest = -1;
    struct error err;
    char what = 0;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    box = fork();
    assert_true(box >= 0);
    if (box == 0)
        be_box(s, pair[1]);
    (void)close(pair[1]);
    assert_int_equal(fd_recv(pair[0], &what, 1, fds, COUNT(fds)), 1);
    if (what != 's') {
        (void)close(pair[0]);
        (void)waitpid(box, NULL, 0);
        return !host_lacks("networks of one's own, or nf_tables in them");
    }
    assert_int_equal(loop_new(&r.loop), 0);
    CHECK_OK(resolver_new_timed(r.loop, &nobody, 1, &times, &r.resolver, &err), err);
    if (s->guest) {
        guest = fork();
        assert_true(guest >= 0);
        if (guest == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
            (void)signal(SIGPIPE, SIG_IGN);
            _exit(s->guest());
        }
    }
    scene_join(s, &r, guest > 0 ? guest : box, fds);
    if (s->on_joined)
        s->on_joined(r.boxes);
    assert_int_equal(write(pair[0], "g", 1), 1);
    assert_int_equal(loop_run(r.loop), 0);
    assert_null(r.boxes);
    if (guest > 0) {
        check_exit(guest);
        stop(box);
    } else {
        check_exit(box);
    }
    (void)close(pair[0]);
    resolver_free(r.resolver);
    loop_free(r.loop);
    return true;
}

/* ---- what was told ---- */

struct told {
    bool allowed, is_end;
    uint64_t times, bytes_out, bytes_in;
    char via[16], target[300], address[64], reason[700], setting[64], calls[160];
};

static struct told told[1024];
static size_t n_told;

static inline void on_told(struct relay *r, const struct relay_event *e)
{
    struct told *t = &told[n_told % COUNT(told)];

    (void)r;
    assert_string_equal(e->box, "b0");
    assert_non_null(e->calls);
    if (!e->allowed)
        assert_non_null(e->reason);
    *t = (struct told){.allowed = e->allowed,
                       .is_end = e->is_end,
                       .times = e->times ? e->times : 1,
                       .bytes_out = e->bytes_out,
                       .bytes_in = e->bytes_in};
    (void)snprintf(t->via, sizeof(t->via), "%s", e->via);
    (void)snprintf(t->target, sizeof(t->target), "%s", e->target);
    (void)snprintf(t->address, sizeof(t->address), "%s", e->address);
    (void)snprintf(t->reason, sizeof(t->reason), "%s", e->reason ? e->reason : "");
    (void)snprintf(t->setting, sizeof(t->setting), "%s", e->setting ? e->setting : "");
    (void)snprintf(t->calls, sizeof(t->calls), "%s", e->calls);
    n_told++;
}

enum kind { DENIED, BEGUN, ENDED };

/* The first of that kind, to that target (NULL: any), with that in its reason; or NULL. */
static inline const struct told *find_told(enum kind kind, const char *target, const char *reason)
{
    for (size_t i = 0; i < n_told && i < COUNT(told); i++) {
        const struct told *t = &told[i];

        if (t->is_end == (kind == ENDED) && t->allowed == (kind != DENIED) &&
            (!target || strcmp(t->target, target) == 0) && strstr(t->reason, reason))
            return t;
    }
    return NULL;
}

static inline size_t count_told(enum kind kind, const char *reason, uint64_t *ret_times)
{
    size_t n = 0;

    *ret_times = 0;
    for (size_t i = 0; i < n_told && i < COUNT(told); i++)
        if (told[i].is_end == (kind == ENDED) && told[i].allowed == (kind != DENIED) &&
            strstr(told[i].reason, reason)) {
            n++;
            *ret_times += told[i].times;
        }
    return n;
}

static inline void print_told(void)
{
    for (size_t i = 0; i < n_told && i < COUNT(told); i++)
        print_message("# told: %s %s %s '%s' x%llu [%s] out %llu in %llu\n",
                      told[i].is_end    ? "end"
                      : told[i].allowed ? "yes"
                                        : "no",
                      told[i].via, told[i].target, told[i].reason,
                      (unsigned long long)told[i].times, told[i].calls,
                      (unsigned long long)told[i].bytes_out, (unsigned long long)told[i].bytes_in);
}

/* There must be one. */
static inline const struct told *check_told(enum kind kind, const char *target, const char *reason)
{
    const struct told *t = find_told(kind, target, reason);

    if (!t)
        print_told();
    CHECK(t, "no event: %d %s %s", (int)kind, target, reason);
    return t;
}
