/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One question to one server. Each has a fresh socket, connected so that the kernel drops what
 * comes from elsewhere and tells us of a server that is not there.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/error.h"
#include "egress/dns_wire.h"
#include "egress/resolver_internal.h"

static int begin(struct resolver_ask *a, bool tcp);

static void end(struct resolver_ask *a, const struct dns_answer *answer)
{
    resolver_ask_stop(a);
    a->on_end(a, answer);
}

/*
 * False if this is no answer to our question. Nothing of the ask may be touched after this: its
 * owner may be gone.
 */
static bool accept_answer(struct resolver_ask *a, const uint8_t *msg, size_t len)
{
    struct dns_answer answer;
    struct error err;

    if (dns_parse_answer(msg, len, a->id, a->host, a->type, &answer, &err) < 0)
        return false;
    if (!answer.truncated)
        end(a, &answer);
    else if (a->tcp || begin(a, true) < 0)
        end(a, NULL);
    return true;
}

/* ---- by datagram ---- */

static int send_datagram(struct resolver_ask *a)
{
    uint8_t msg[LIMIT_DNS_QUERY];
    size_t len = dns_build_query(a->id, a->host, a->type, msg);

    if (len == 0)
        return -EINVAL;
    return send(a->fd, msg, len, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* What is not our answer is waited past: it may have been sent by anybody who forges the server. */
static void on_datagram(struct loop_io *io, uint32_t events)
{
    struct resolver_ask *a =
        (struct resolver_ask *)((char *)io - offsetof(struct resolver_ask, io));
    uint8_t msg[LIMIT_DNS_REPLY];
    ssize_t n = recv(a->fd, msg, sizeof(msg), MSG_TRUNC);

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0)
        end(a, NULL);
    else if ((size_t)n <= sizeof(msg)) /* a longer one is more than we said we would take */
        (void)accept_answer(a, msg, (size_t)n);
}

/* ---- over TCP: two bytes of length before each message ---- */

/* 1: all of it is sent. */
static int send_stream(struct resolver_ask *a)
{
    uint8_t msg[2 + LIMIT_DNS_QUERY];
    size_t len = dns_build_query(a->id, a->host, a->type, msg + 2);
    ssize_t n;

    if (len == 0)
        return -EINVAL;
    dns_put16(msg, (unsigned)len);
    len += 2;
    n = send(a->fd, msg + a->sent, len - a->sent, MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    a->sent += (size_t)n;
    return a->sent == len;
}

/* 1: a message is there. Never reads behind its end. */
static int receive_stream(struct resolver_ask *a)
{
    uint8_t part[4096];
    size_t want = a->in.len < 2 ? 2 : 2u + dns_get16((const uint8_t *)a->in.data);
    ssize_t n;

    want -= a->in.len;
    n = recv(a->fd, part, want < sizeof(part) ? want : sizeof(part), 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -ECONNRESET;
    buf_append(&a->in, part, (size_t)n);
    if (a->in.failed)
        return -ENOMEM;
    return a->in.len >= 2 && a->in.len == 2u + dns_get16((const uint8_t *)a->in.data);
}

/* Nobody else can speak here, so that a wrong answer means that no right one follows. */
static void on_stream(struct loop_io *io, uint32_t events)
{
    struct resolver_ask *a =
        (struct resolver_ask *)((char *)io - offsetof(struct resolver_ask, io));
    struct buf in;
    int r;

    (void)events;
    if (io->events == EPOLLOUT) {
        r = send_stream(a);
        if (r > 0)
            r = loop_change(io, EPOLLIN);
        if (r < 0)
            end(a, NULL);
        return;
    }
    r = receive_stream(a);
    if (r < 0)
        end(a, NULL);
    if (r <= 0)
        return;
    in = a->in; /* outlives the ask, which ends while this is read */
    buf_init(&a->in, 0);
    if (!accept_answer(a, (const uint8_t *)in.data + 2, in.len - 2))
        end(a, NULL);
    buf_done(&in);
}

/* ---- both ---- */

static void on_late(struct loop_timer *t)
{
    end((struct resolver_ask *)((char *)t - offsetof(struct resolver_ask, timer)), NULL);
}

static int connect_to(int fd, const struct resolver_server *s)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(s->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(s->port)};
    int r;

    if (s->address.bits == 32) {
        memcpy(&v4.sin_addr, s->address.bytes, 4);
        r = connect(fd, (const struct sockaddr *)&v4, sizeof(v4));
    } else {
        memcpy(&v6.sin6_addr, s->address.bytes, 16);
        r = connect(fd, (const struct sockaddr *)&v6, sizeof(v6));
    }
    return r < 0 && errno != EINPROGRESS ? -errno : 0;
}

static int open_socket(const struct resolver_server *s, bool tcp)
{
    int family = s->address.bits == 32 ? AF_INET : AF_INET6,
        type = (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC;
    autoclose int fd = socket(family, type, 0);
    int r;

    if (fd < 0)
        return -errno;
    r = connect_to(fd, s);
    return r < 0 ? r : TAKE_FD(fd);
}

/* Leaves what it has opened to its caller, who stops the ask. */
static int try_begin(struct resolver_ask *a, bool tcp)
{
    int r;

    if (getrandom(&a->id, sizeof(a->id), 0) != (ssize_t)sizeof(a->id))
        return -EIO;
    a->fd = r = open_socket(&a->server, tcp);
    if (r < 0)
        return r;
    a->tcp = tcp;
    a->sent = 0;
    buf_init(&a->in, 2 + LIMIT_DNS_MESSAGE);
    a->io = (struct loop_io){.on_ready = tcp ? on_stream : on_datagram};
    a->timer = (struct loop_timer){.on_time = on_late};
    r = tcp ? 0 : send_datagram(a);
    if (r >= 0)
        r = loop_set_timer(a->loop, &a->timer, a->usec);
    return r < 0 ? r : loop_add(a->loop, &a->io, a->fd, tcp ? EPOLLOUT : EPOLLIN);
}

/* The second time, for TCP, the datagram's socket goes first: one ask has one descriptor. */
static int begin(struct resolver_ask *a, bool tcp)
{
    struct loop *loop = a->loop;
    int r;

    resolver_ask_stop(a);
    a->loop = loop;
    a->fd = -1;
    r = try_begin(a, tcp);
    if (r < 0)
        resolver_ask_stop(a);
    return r;
}

int resolver_ask_start(struct resolver_ask *a, struct loop *loop,
                       const struct resolver_server *server, uint64_t usec)
{
    resolver_ask_stop(a);
    a->loop = loop;
    a->fd = -1;
    a->server = *server;
    a->usec = usec;
    return begin(a, false);
}

void resolver_ask_stop(struct resolver_ask *a)
{
    if (!a->loop)
        return;
    loop_remove(&a->io);
    loop_stop_timer(&a->timer);
    close_fd(&a->fd);
    buf_done(&a->in);
    a->loop = NULL;
}
