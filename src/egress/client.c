/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/helper.h"
#include "base/limits.h"
#include "base/state.h"
#include "config/config.h"

#define START_TRIES 3000 /* of a millisecond */
#define REPLY_MS    10000

#define PROXY "127.0.0.1:3128"

const char *const client_proxy_env[] = {
    "http_proxy=http://" PROXY,
    "HTTP_PROXY=http://" PROXY,
    "https_proxy=http://" PROXY,
    "HTTPS_PROXY=http://" PROXY,
    "all_proxy=socks5h://" PROXY,
    "ALL_PROXY=socks5h://" PROXY,
    "no_proxy=localhost,127.0.0.1,::1",
    "NO_PROXY=localhost,127.0.0.1,::1",
    NULL,
};

/* ---- connecting ---- */

static int connect_once(struct error *err)
{
    autoclose int dir = state_open_runtime(err), fd = -1;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct ucred peer;
    socklen_t n = sizeof(peer);
    struct stat net;
    char name[48];

    if (dir < 0)
        return dir;
    if (stat("/proc/self/ns/net", &net) < 0)
        return error_sys(err, -errno, "look at our network");
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_sys(err, -errno, "make a socket");
    (void)snprintf(name, sizeof(name), WIRE_SOCKET, (unsigned long long)net.st_ino);
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", dir, name);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        return errno == ENOENT || errno == ECONNREFUSED
                   ? error_set(err, ERR_NOT_FOUND, "no clawden-egress runs")
                   : error_sys(err, -errno, "connect to clawden-egress");
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.uid != geteuid())
        return error_set(err, ERR_DENIED, "clawden-egress: '%s' is somebody else's", name);
    return TAKE_FD(fd);
}

static int connect_or_start(struct error *err)
{
    static const char *const keep[] = {"CLAWDEN_RUNTIME_DIR", "CLAWDEN_DATA_DIR",
                                       "CLAWDEN_EGRESS_IDLE", "HOME", NULL};
    const struct timespec millisecond = {.tv_nsec = 1000000};
    char path[LIMIT_PATH];
    struct error why;
    int fd = connect_once(&why);

    if (fd >= 0)
        return fd;
    *err = why;
    if (fd != -ERR_NOT_FOUND)
        return fd;
    if (!helper_find("clawden-egress", path, sizeof(path)))
        return error_set(err, ERR_UNSUPPORTED,
                         "clawden-egress is not installed beside this program: without it a box "
                         "has no network");
    helper_start(path, keep);
    for (int i = 0; fd == -ERR_NOT_FOUND && i < START_TRIES; i++) {
        (void)nanosleep(&millisecond, NULL);
        fd = connect_once(&why);
    }
    if (fd == -ERR_NOT_FOUND)
        return error_set(err, ERR_TIMEOUT,
                         "clawden-egress did not start; run '%s' by hand to see why", path);
    *err = fd < 0 ? why : (struct error){0};
    return fd;
}

/* ---- what goes along ---- */

static int make_text(const char *text, size_t len, struct error *err)
{
    autoclose int fd = memfd_create("clawden", MFD_CLOEXEC);
    int r = fd < 0 ? -errno : fd_write_full(fd, text, len);

    return r < 0 ? error_sys(err, r, "make a text in memory") : TAKE_FD(fd);
}

static int open_wish(const struct wish *w, struct error *err)
{
    autobuf text;

    buf_init(&text, LIMIT_WISH_TEXT);
    wish_write(w, &text);
    return text.failed ? error_set(err, ERR_TOO_LARGE, "the rules of the box are longer than %u MB",
                                   LIMIT_WISH_TEXT >> 20)
                       : make_text(text.data, text.len, err);
}

/* The name servers as they are now: whoever uses a box tells the relay of a change. */
static int open_servers(struct error *err)
{
    const char *own = config_text(CONFIG_NAMESERVERS, NULL);
    autobuf text;
    int fd;

    buf_init(&text, LIMIT_SMALL_FILE);
    if (!own[0]) {
        fd = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd >= 0)
            return fd;
        own = "127.0.0.1"; /* as libc does without that file */
    }
    while (*own) {
        size_t n = strcspn(own, ", ");

        if (n)
            buf_printf(&text, "nameserver %.*s\n", (int)n, own);
        own += n + (own[n] != 0);
    }
    return text.failed ? error_set(err, ERR_INVALID, "CLAWDEN_NAMESERVERS: too long")
                       : make_text(text.data, text.len, err);
}

/* ---- asking ---- */

static int take_reply(int fd, struct buf *ret, struct error *err)
{
    static char data[sizeof(struct wire_reply) + WIRE_TEXT];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct wire_reply head;
    ssize_t n;

    do {
        n = poll(&p, 1, REPLY_MS);
    } while (n < 0 && errno == EINTR);
    if (n == 0)
        return error_set(err, ERR_TIMEOUT,
                         "clawden-egress does not answer: end it with 'clawden-egress --stop'");
    n = fd_recv(fd, data, sizeof(data), NULL, 0);
    if (n < (ssize_t)sizeof(head))
        return error_set(err, ERR_NOT_FOUND, "clawden-egress ended before it answered");
    memcpy(&head, data, sizeof(head));
    n -= (ssize_t)sizeof(head);
    if (head.code) {
        (void)error_set(err, (enum error_code)head.code, "%.*s", (int)n, data + sizeof(head));
        err->sys = head.sys;
        return -head.code;
    }
    if (ret)
        buf_append(ret, data + sizeof(head), (size_t)n);
    return 0;
}

static int ask(int fd, struct wire_request *q, const int *fds, size_t n, struct buf *ret,
               struct error *err)
{
    int r;

    q->version = WIRE_VERSION;
    r = fd_send(fd, q, sizeof(*q), fds, n);
    return r < 0 ? error_sys(err, r, "send to clawden-egress") : take_reply(fd, ret, err);
}

static struct wire_request request(enum wire_type type, const char *box)
{
    struct wire_request q = {.type = type};

    (void)snprintf(q.box, sizeof(q.box), "%s", box);
    return q;
}

/* ---- joining ---- */

/* In the order of wire_request; how many. */
static size_t list_sockets(const struct net_sockets *net, const struct client_box *b,
                           struct wire_request *q, int *fds)
{
    const int singles[WIRE_SOCKETS] = {net->proxy,      net->dns,       net->dns_tcp,
                                       net->caught[0],  net->caught[1], net->counters[0],
                                       net->counters[1]};
    size_t n = 0;

    for (int i = 0; i < WIRE_SOCKETS; i++)
        if (singles[i] >= 0) {
            q->has |= 1u << i;
            fds[n++] = singles[i];
        }
    for (size_t i = 0; i < net->n_ports; i++) {
        q->ports[q->n_ports++] = net->port_numbers[i];
        fds[n++] = net->ports[i];
    }
    for (; q->n_spares < net->n_spares; q->n_spares++)
        fds[n++] = net->spares[q->n_spares];
    for (size_t i = 0; i < b->n_ports; i++) {
        q->published[q->n_published++] = b->ports[i].port;
        fds[n++] = b->ports[i].listener;
    }
    return n;
}

static int open_net(const struct client_box *b, int pidfd, struct net_sockets *ret,
                    struct error *err)
{
    uint16_t ports[LIMIT_NET_PORTS];
    struct net_wish w = {.ports = ports,
                         .n_ports = wish_ports(b->wish, ports, LIMIT_NET_PORTS),
                         .n_spares = b->n_ports ? LIMIT_NET_SPARES : 0};

    return net_open(pidfd, &w, ret, err);
}

int client_join(const struct client_box *b, struct error *err)
{
    struct wire_request q = request(WIRE_JOIN, b->id);
    autoclose int conn = -1, servers = -1, wish = -1, pidfd = -1;
    autonet net = NET_SOCKETS_EMPTY;
    int fds[WIRE_FDS], r;

    if (b->n_ports > LIMIT_PUBLISHED)
        return error_set(err, ERR_TOO_LARGE, "%zu published ports: a box can have %u", b->n_ports,
                         LIMIT_PUBLISHED);
    pidfd = (int)syscall(SYS_pidfd_open, b->init, 0);
    if (pidfd < 0)
        return error_sys(err, -errno, "take hold of the box's init");
    r = conn = connect_or_start(err);
    if (r >= 0)
        r = servers = open_servers(err);
    if (r >= 0)
        r = wish = open_wish(b->wish, err);
    if (r >= 0)
        r = open_net(b, pidfd, &net, err);
    if (r < 0)
        return r;
    fds[0] = servers;
    fds[1] = wish;
    fds[2] = pidfd;
    return ask(conn, &q, fds, 3 + list_sockets(&net, b, &q, fds + 3), NULL, err);
}

/* ---- using ---- */

int client_use(const char *box, const char *call, int *ret_fd, struct error *err)
{
    struct wire_request q = request(WIRE_USE, box);
    autoclose int conn = connect_once(err), servers = -1;
    int r = conn;

    if (r >= 0)
        r = servers = open_servers(err);
    if (r < 0)
        return r;
    (void)snprintf(q.call, sizeof(q.call), "%s", call);
    r = ask(conn, &q, &servers, 1, NULL, err);
    if (r >= 0)
        *ret_fd = TAKE_FD(conn);
    return r;
}

int client_change(const char *box, const struct wish *w, struct error *err)
{
    struct wire_request q = request(WIRE_CHANGE, box);
    autoclose int conn = connect_once(err), servers = -1, wish = -1;
    int r = conn;

    if (r >= 0)
        r = servers = open_servers(err);
    if (r >= 0)
        r = wish = open_wish(w, err);
    return r < 0 ? r : ask(conn, &q, (int[]){servers, wish}, 2, NULL, err);
}

int client_look(const char *box, struct buf *ret, struct error *err)
{
    struct wire_request q = request(WIRE_LOOK, box);
    autoclose int conn = connect_once(err);

    return conn < 0 ? conn : ask(conn, &q, NULL, 0, ret, err);
}

int client_stop(struct error *err)
{
    struct wire_request q = request(WIRE_STOP, "");
    autoclose int conn = connect_once(err);

    return conn < 0 ? conn : ask(conn, &q, NULL, 0, NULL, err);
}
