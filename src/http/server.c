/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listeners, and who may come in. When a server, or the share of one address or user, is full, the
 * connection of theirs that has waited longest for a request makes room: slow senders push out each
 * other, not the clients that have something to ask.
 */
#include "http/server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "http/server_internal.h"

#define BACKLOG    1024
#define PER_TURN   32     /* connections taken before the others have their turn */
#define PAUSE_USEC 100000 /* after accept() has failed for want of descriptors or memory */
#define SECOND     1000000ull

/* ---- neighbours ---- */

static void neighbour_key(const struct http_peer *p, uint8_t key[17])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    memset(key, 0, 17);
    if (p->is_unix) {
        key[0] = 1;
        memcpy(key + 1, &p->uid, sizeof(p->uid));
        return;
    }
    /* A host has a whole /64 to choose from. */
    memcpy(key + 1, p->address, memcmp(p->address, mapped, 12) == 0 ? 16 : 8);
}

static struct http_neighbour **find_neighbour(struct http_server *s, const uint8_t key[17])
{
    struct http_neighbour **at;
    uint32_t hash = 2166136261u;

    for (int i = 0; i < 17; i++)
        hash = (hash ^ key[i]) * 16777619u;
    at = &s->neighbours[(hash >> 16 ^ hash) % HTTP_NEIGHBOURS];
    while (*at && memcmp((*at)->key, key, 17) != 0)
        at = &(*at)->next;
    return at;
}

int http_neighbour_enter(struct http_conn *c)
{
    struct http_neighbour **at, *n;
    uint8_t key[17];

    neighbour_key(&c->peer, key);
    at = find_neighbour(c->server, key);
    n = *at;
    if (!n) {
        n = calloc(1, sizeof(*n));
        if (!n)
            return -ENOMEM;
        memcpy(n->key, key, sizeof(n->key));
        *at = n;
    }
    n->n++;
    c->neighbour = n;
    return 0;
}

void http_neighbour_leave(struct http_conn *c)
{
    struct http_neighbour *n = TAKE_PTR(c->neighbour), **at;

    if (!n || --n->n > 0)
        return;
    at = find_neighbour(c->server, n->key);
    *at = n->next;
    free(n);
}

/* ---- who waits ---- */

void http_idle_enter(struct http_conn *c)
{
    struct http_server *s = c->server;

    c->is_idle = true;
    c->idle_next = NULL;
    c->idle_previous = s->idle_last;
    if (s->idle_last)
        s->idle_last->idle_next = c;
    else
        s->idle_first = c;
    s->idle_last = c;
}

void http_idle_leave(struct http_conn *c)
{
    struct http_server *s = c->server;

    if (!c->is_idle)
        return;
    c->is_idle = false;
    if (c->idle_previous)
        c->idle_previous->idle_next = c->idle_next;
    else
        s->idle_first = c->idle_next;
    if (c->idle_next)
        c->idle_next->idle_previous = c->idle_previous;
    else
        s->idle_last = c->idle_previous;
}

/* Of one neighbour, or of all. False: everybody is at work. */
static bool push_out(struct http_server *s, const struct http_neighbour *of)
{
    for (struct http_conn *c = s->idle_first; c; c = c->idle_next) {
        if (of && c->neighbour != of)
            continue;
        http_conn_free(c);
        return true;
    }
    return false;
}

static bool make_room(struct http_server *s, const struct http_peer *peer)
{
    const struct http_neighbour *n;
    uint8_t key[17];

    neighbour_key(peer, key);
    n = *find_neighbour(s, key);
    if (n && n->n >= s->limits.share)
        return push_out(s, n);
    return s->n_conns < s->limits.conns || push_out(s, NULL);
}

/* ---- connections ---- */

static void read_inet(const struct sockaddr_storage *at, struct http_peer *p)
{
    if (at->ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)at;

        p->address[10] = p->address[11] = 0xff;
        memcpy(p->address + 12, &four->sin_addr, 4);
        p->port = ntohs(four->sin_port);
    } else if (at->ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)at;

        memcpy(p->address, &six->sin6_addr, 16);
        p->port = ntohs(six->sin6_port);
    }
}

/* -errno: nobody who can be named. */
static int find_peer(int fd, const struct sockaddr_storage *from, struct http_peer *ret)
{
    struct ucred who;
    socklen_t len = sizeof(who);
    int on = 1;

    *ret = (struct http_peer){0};
    if (from->ss_family != AF_UNIX) {
        read_inet(from, ret);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        return 0;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
        return -errno;
    ret->is_unix = true;
    ret->uid = who.uid;
    return 0;
}

/* A stream that encrypts has nothing to say yet, and no time to. */
static void turn_away(int fd, const struct http_listen *how)
{
    static const char busy[] =
        "HTTP/1.1 503 Service Unavailable\r\nX-Content-Type-Options: nosniff\r\n"
        "Cache-Control: no-store\r\nContent-Security-Policy: default-src 'none'\r\n"
        "Content-Type: application/json\r\nConnection: close\r\nRetry-After: 1\r\n"
        "Content-Length: 63\r\n\r\n"
        "{\"error\":{\"code\":\"unavailable\",\"message\":\"the server is busy\"}}";

    if (!how->is_secret)
        (void)!send(fd, busy, sizeof(busy) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)close(fd);
}

static int come_in(struct http_server *s, int fd, const struct sockaddr_storage *from,
                   const struct http_listen *how)
{
    static const struct http_listen plain = {0};
    struct http_peer peer;
    int r = find_peer(fd, from, &peer);

    if (r < 0) {
        (void)close(fd);
        return r;
    }
    if (make_room(s, &peer))
        return http_conn_open(s, fd, how, &peer);
    turn_away(fd, how ? how : &plain);
    return -EUSERS;
}

int http_server_adopt(struct http_server *s, int fd, const struct http_listen *how)
{
    struct sockaddr_storage from = {0};
    socklen_t len = sizeof(from);

    if (getpeername(fd, (struct sockaddr *)&from, &len) < 0)
        from.ss_family = AF_UNSPEC; /* no socket at all: the stream knows how to read it */
    return come_in(s, fd, &from, how);
}

static void on_pause_over(struct loop_timer *t)
{
    struct http_listener *l =
        (struct http_listener *)((char *)t - offsetof(struct http_listener, pause));

    (void)loop_change(&l->io, EPOLLIN);
}

static bool is_want(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void on_accept(struct loop_io *io, uint32_t events)
{
    struct http_listener *l = (struct http_listener *)io;

    (void)events;
    for (int i = 0; i < PER_TURN; i++) {
        struct sockaddr_storage from = {0};
        socklen_t len = sizeof(from);
        int fd = accept4(io->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            (void)come_in(l->server, fd, &from, &l->how);
            continue;
        }
        /* It stays ready: without a pause the loop would do nothing else. */
        if (is_want(errno) && loop_set_timer(io->loop, &l->pause, PAUSE_USEC) == 0)
            (void)loop_change(io, 0);
        return;
    }
}

/* ---- listeners ---- */

static bool is_loopback(const struct sockaddr_storage *at)
{
    if (at->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)at)->sin_addr.s_addr) >> 24 == 127;
    return at->ss_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)at)->sin6_addr);
}

/* A token that travels in the clear is everybody's. */
static int check_address(const struct sockaddr_storage *at, const struct http_listen *how,
                         struct error *err)
{
    if (at->ss_family == AF_UNIX || is_loopback(at) || (how && how->is_secret))
        return 0;
    return error_set(err, ERR_DENIED, "listen beyond this host: only with TLS");
}

static int add_listener(struct http_server *s, int fd, const struct http_listen *how,
                        struct error *err)
{
    struct http_listener *l = calloc(1, sizeof(*l));
    int r;

    if (!l)
        return error_sys(err, -ENOMEM, "listen");
    l->server = s;
    l->io.on_ready = on_accept;
    l->pause.on_time = on_pause_over;
    if (how)
        l->how = *how;
    r = loop_add(s->loop, &l->io, fd, EPOLLIN);
    if (r < 0) {
        free(l);
        return error_sys(err, r, "listen");
    }
    l->fd = fd;
    l->next = s->listeners;
    s->listeners = l;
    return 0;
}

int http_listen_fd(struct http_server *s, int fd, const struct http_listen *how, struct error *err)
{
    autoclose int own = fd;
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof(at), size = sizeof(int);
    int listens = 0, r;

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        return error_sys(err, -errno, "look at inherited socket %d", fd);
    if (!listens)
        return error_set(err, ERR_INVALID, "inherited socket %d does not listen", fd);
    r = check_address(&at, how, err);
    if (r < 0)
        return r;
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return error_sys(err, -errno, "prepare inherited socket %d", fd);
    r = add_listener(s, fd, how, err);
    if (r < 0)
        return r;
    (void)TAKE_FD(own);
    return 0;
}

static int read_address(const char *text, uint16_t port, struct sockaddr_storage *ret,
                        socklen_t *ret_len)
{
    struct sockaddr_in *four = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;

    memset(ret, 0, sizeof(*ret));
    if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        *ret_len = sizeof(*four);
        return 0;
    }
    if (inet_pton(AF_INET6, text, &six->sin6_addr) != 1)
        return -EINVAL;
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    *ret_len = sizeof(*six);
    return 0;
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage at = {0};
    struct http_peer p = {0};
    socklen_t len = sizeof(at);

    if (getsockname(fd, (struct sockaddr *)&at, &len) == 0)
        read_inet(&at, &p);
    return p.port;
}

int http_listen_tcp(struct http_server *s, const char *address, uint16_t port,
                    const struct http_listen *how, uint16_t *ret_port, struct error *err)
{
    struct sockaddr_storage at;
    autoclose int fd = -1;
    socklen_t len;
    int on = 1, r;

    if (read_address(address, port, &at, &len) < 0)
        return error_set(err, ERR_INVALID, "listen at '%s': no IPv4 or IPv6 address", address);
    r = check_address(&at, how, err);
    if (r < 0)
        return error_wrap(err, "listen at '%s'", address);
    fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_sys(err, -errno, "listen at '%s'", address);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (at.ss_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, BACKLOG) < 0)
        return error_sys(err, -errno, "listen at '%s', port %u", address, port);
    r = add_listener(s, fd, how, err);
    if (r < 0)
        return r;
    if (ret_port)
        *ret_port = port_of(fd);
    (void)TAKE_FD(fd);
    return 0;
}

/* A socket that is left over from a server that is gone. */
static int remove_stale(const struct sockaddr_un *at)
{
    autoclose int fd = -1;
    struct stat st;

    if (lstat(at->sun_path, &st) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(st.st_mode))
        return -EEXIST;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 || errno != ECONNREFUSED)
        return -EADDRINUSE;
    return unlink(at->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

int http_listen_unix(struct http_server *s, const char *path, mode_t mode,
                     const struct http_listen *how, struct error *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    autoclose int fd = -1;
    int r;

    if (len == 0 || len >= sizeof(at.sun_path))
        return error_set(err, ERR_INVALID, "listen at '%s': the path is empty or too long", path);
    memcpy(at.sun_path, path, len);
    r = remove_stale(&at);
    if (r < 0)
        return error_sys(err, r, "listen at '%s'", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_sys(err, -errno, "listen at '%s'", path);
    /* Nobody gets in before listen(), whatever the file's mode was at first. */
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || chmod(path, mode) < 0 ||
        listen(fd, BACKLOG) < 0)
        return error_sys(err, -errno, "listen at '%s'", path);
    r = add_listener(s, fd, how, err);
    if (r < 0)
        return r;
    (void)TAKE_FD(fd);
    return 0;
}

static void free_listener(struct http_listener *l)
{
    loop_stop_timer(&l->pause);
    loop_remove(&l->io);
    close_fd(&l->fd);
    free(l);
}

static void close_listeners(struct http_server *s)
{
    while (s->listeners) {
        struct http_listener *l = s->listeners;

        s->listeners = l->next;
        free_listener(l);
    }
}

/* ---- servers ---- */

static void on_drained(struct loop_task *t)
{
    struct http_server *s =
        (struct http_server *)((char *)t - offsetof(struct http_server, drained));

    s->ops->on_drained(s);
}

int http_server_new(struct loop *l, const struct http_server_ops *ops, void *user,
                    struct http_server **ret, struct error *err)
{
    struct http_server *s = calloc(1, sizeof(*s));

    if (!s)
        return error_sys(err, -ENOMEM, "make an HTTP server");
    s->loop = l;
    s->ops = ops;
    s->user = user;
    s->drained.on_turn = on_drained;
    s->date_at = -1;
    s->limits = (struct http_limits){
        .head_usec = 10 * SECOND,
        .idle_usec = 60 * SECOND,
        .body_usec = 10 * SECOND,
        .write_usec = 30 * SECOND,
        .min_rate = 1024,
        .linger_usec = 2 * SECOND,
        .soft = LIMIT_HTTP_SOFT,
        .hard = LIMIT_HTTP_HARD,
        .conns = LIMIT_HTTP_CONNS,
        .share = LIMIT_HTTP_SHARE,
    };
    *ret = s;
    return 0;
}

void http_server_free(struct http_server *s)
{
    if (!s)
        return;
    close_listeners(s);
    while (s->conns) {
        assert(!s->conns->busy);
        http_conn_free(s->conns);
    }
    loop_forget(&s->drained);
    free(s);
}

struct http_limits *http_server_limits(struct http_server *s)
{
    return &s->limits;
}

void *http_server_user(const struct http_server *s)
{
    return s->user;
}

size_t http_server_conns(const struct http_server *s)
{
    return s->n_conns;
}

/* Those that wait for a request and have said nothing yet are closed; a head that has begun is
 * still answered. */
void http_server_drain(struct http_server *s)
{
    struct http_conn *next;

    s->is_draining = true;
    close_listeners(s);
    for (struct http_conn *c = s->idle_first; c; c = next) {
        next = c->idle_next;
        if (c->left == 0 && !c->busy && http_conn_waiting(c) == 0)
            http_conn_free(c);
    }
    if (s->n_conns == 0 && s->ops->on_drained)
        loop_later(s->loop, &s->drained);
}

const char *http_server_date(struct http_server *s)
{
    time_t at = time(NULL);
    struct tm tm;

    if (at != s->date_at && gmtime_r(&at, &tm)) {
        s->date_at = at;
        /* The names of days and months are English in the "C" locale, which programs of ours
         * do not leave. */
        (void)strftime(s->date, sizeof(s->date), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &tm);
    }
    return s->date;
}
