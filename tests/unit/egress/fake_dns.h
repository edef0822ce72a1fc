/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A name server for tests, on the loopback and in the test's own loop: by datagram and over TCP,
 * and as wrong as it is told to be.
 */
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "egress/dns_wire.h"
#include "egress/resolver_internal.h"
#include "tests/test.h"

/* Short, but long enough for a machine that does other things too. */
static const struct resolver_times quick = {
    .try_usec = 250000, .grace_usec = 60000, .total_usec = 600000, .second_usec = 50000};
static const struct resolver_times patient = {
    .try_usec = 20000000, .grace_usec = 20000000, .total_usec = 30000000, .second_usec = 1000000};

static inline struct host host_of(const char *text)
{
    struct host h;
    struct error err;

    CHECK_OK(host_parse(text, strlen(text), HOST_BARE, &h, &err), err);
    return h;
}

static inline struct address address_of(const char *text)
{
    struct address a;

    CHECK(address_parse(text, strlen(text), &a), "'%s'", text);
    return a;
}

/* ---- a server ---- */

enum act {
    SILENT,
    ANSWER,
    NUMBERED, /* n<i>.test has one address, made from i */
    NXDOMAIN,
    NODATA,
    SERVFAIL,
    REFUSED,
    CHAIN,     /* two CNAMEs, then addresses */
    ENDLESS,   /* a CNAME that leads to itself */
    REPEATED,  /* an address twice */
    TRUNCATED, /* nothing but the mark */
    WRONG_ID,
    WRONG_NAME,
    WRONG_TYPE,
    A_QUERY, /* our own question back */
    GARBAGE,
    EMPTY,
    OVERSIZE, /* more than we said we would take, and not the truth */
    LATE,     /* but in time */
    TOO_LATE,
    HOLD, /* until n_hold questions are there */
    /* over TCP */
    CUT,   /* the half of it */
    CLOSE, /* not a byte */
    SLOW,  /* byte by byte */
    TWICE, /* and behind it a second one */
    BIG,   /* as much as is looked at */
};

#define FIRST 0x100 /* | act: this one, and then the right answer */
#define FORGE 0x200 /* | act: sent from another port */

struct question {
    struct dns_query query;
    struct sockaddr_storage from;
    socklen_t from_len;
};

struct conn {
    struct loop_io io; /* first: it is cast */
    struct server *server;
    struct dns_stream stream;
    struct conn *next;
};

struct server {
    struct loop_io udp, tcp;
    struct loop_timer timer; /* of the late ones */
    struct loop *loop;
    struct resolver_server at;
    int acts[2], tcp_act; /* for A and AAAA */
    uint32_t ttl;
    unsigned asked[2], streams;
    struct conn *conns;
    struct question *held;
    unsigned n_held, n_hold;
};

static inline void put_record(uint8_t *msg, size_t *n, const void *owner, size_t owner_len,
                              unsigned type, unsigned ttl, const void *data, size_t len)
{
    uint8_t *p = msg + *n;

    memcpy(p, owner, owner_len);
    p += owner_len;
    dns_put16(p, type);
    dns_put16(p + 2, DNS_CLASS_IN);
    dns_put16(p + 4, ttl >> 16);
    dns_put16(p + 6, ttl & 0xffff);
    dns_put16(p + 8, (unsigned)len);
    memcpy(p + 10, data, len);
    *n += owner_len + 10 + len;
    dns_put16(msg + 6, dns_get16(msg + 6) + 1u);
}

#define QNAME "\xc0\x0c"

/* Records behind the question, written by hand. */
static inline size_t answer_by_hand(struct server *s, const struct dns_query *q, int act,
                                    uint8_t *msg)
{
    const struct address good = address_of(q->type == DNS_TYPE_A ? "192.0.2.1" : "2001:db8::1");
    size_t n = DNS_HEADER + q->question_len, len = good.bits / 8;

    memset(msg, 0, DNS_HEADER);
    dns_put16(msg, q->id);
    dns_put16(msg + 2, DNS_FLAG_QR | DNS_FLAG_RD | DNS_FLAG_RA);
    dns_put16(msg + 4, 1);
    memcpy(msg + DNS_HEADER, q->question, q->question_len);
    if (act == CHAIN) {
        put_record(msg, &n, "\1b\4test", 8, DNS_TYPE_CNAME, 30, "\1c\4test", 8);
        put_record(msg, &n, QNAME, 2, DNS_TYPE_CNAME, 40, "\1b\4test", 8);
        put_record(msg, &n, "\1c\4test", 8, q->type, s->ttl, good.bytes, len);
    } else if (act == ENDLESS) {
        put_record(msg, &n, QNAME, 2, DNS_TYPE_CNAME, s->ttl, QNAME, 2);
    } else if (act == REPEATED) {
        put_record(msg, &n, QNAME, 2, q->type, s->ttl, good.bytes, len);
        put_record(msg, &n, QNAME, 2, q->type, s->ttl, good.bytes, len);
    } else { /* BIG: one good address, and records of no interest */
        static const uint8_t text[200] = {199};

        put_record(msg, &n, QNAME, 2, q->type, s->ttl, good.bytes, len);
        for (unsigned i = 1; i < LIMIT_DNS_RECORDS; i++)
            put_record(msg, &n, QNAME, 2, 16, 0, text, sizeof(text));
    }
    return n;
}

static inline size_t answer_plain(struct server *s, const struct dns_query *q, int act, bool tcp,
                                  uint8_t *msg)
{
    struct address list[3] = {address_of("192.0.2.1"), address_of("192.0.2.2"),
                              address_of("2001:db8::1")};
    struct dns_reply reply = {.addresses = list, .n = 3, .ttl = s->ttl};

    if (act == NUMBERED) {
        list[0] = address_v4(0x0a000000u + (uint32_t)strtoul(q->host.text + 1, NULL, 10));
        reply.n = 1;
    } else if (act == NXDOMAIN || act == NODATA || act == SERVFAIL || act == REFUSED) {
        reply.n = 0;
        reply.rcode = act == NXDOMAIN   ? DNS_NXDOMAIN
                      : act == NODATA   ? DNS_NOERROR
                      : act == SERVFAIL ? DNS_SERVFAIL
                                        : DNS_REFUSED;
    }
    return dns_build_reply(q, &reply, tcp, msg);
}

/* The message that this act sends; `msg` has 65535 bytes. */
static inline size_t answer(struct server *s, const struct dns_query *q, int act, bool tcp,
                            uint8_t *msg)
{
    size_t n;

    if (act == CHAIN || act == ENDLESS || act == REPEATED || act == BIG)
        return answer_by_hand(s, q, act, msg);
    n = answer_plain(s, q, act == TRUNCATED ? NODATA : act == OVERSIZE ? NXDOMAIN : act, tcp, msg);
    if (act == TRUNCATED)
        msg[2] |= DNS_FLAG_TC >> 8;
    else if (act == WRONG_ID)
        msg[1] ^= 1;
    else if (act == WRONG_NAME)
        msg[DNS_HEADER + 1] ^= 1;
    else if (act == WRONG_TYPE)
        msg[DNS_HEADER + q->question_len - 3] ^= DNS_TYPE_A ^ DNS_TYPE_AAAA;
    else if (act == A_QUERY)
        return dns_build_query(q->id, &q->host, q->type, msg);
    else if (act == GARBAGE)
        memset(msg + 2, 0xff, n - 2);
    else if (act == EMPTY)
        return 0;
    else if (act == OVERSIZE) {
        memset(msg + n, 0, 5000 - n);
        return 5000;
    }
    return n;
}

static inline void send_answer(struct server *s, const struct question *to, int act)
{
    static uint8_t msg[65536];
    size_t n = answer(s, &to->query, act & 0xff, false, msg);
    autoclose int other = -1;
    int fd = s->udp.fd;

    if (act & FORGE) {
        other = fd = socket(to->from.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        dns_put16(msg + DNS_HEADER + to->query.question_len + 12, 0x0808); /* it would be seen */
    }
    assert_true(sendto(fd, msg, n, 0, (const struct sockaddr *)&to->from, to->from_len) >= 0);
}

static inline void on_late(struct loop_timer *t)
{
    struct server *s = (struct server *)((char *)t - offsetof(struct server, timer));

    while (s->n_held)
        send_answer(s, &s->held[--s->n_held], ANSWER);
}

static inline void hold(struct server *s, const struct question *q, int act)
{
    if (!s->held)
        s->held = calloc(s->n_hold ? s->n_hold : 8, sizeof(*q));
    assert_non_null(s->held);
    s->held[s->n_held++] = *q;
    if (act == HOLD && s->n_held == s->n_hold)
        while (s->n_held)
            send_answer(s, &s->held[--s->n_held], NUMBERED);
    else if (act != HOLD)
        assert_int_equal(loop_set_timer(s->loop, &s->timer,
                                        act == LATE ? quick.try_usec / 2 : quick.try_usec * 3 / 2),
                         0);
}

/* False: there is none. */
static inline bool take_question(struct server *s)
{
    struct question q = {.from_len = sizeof(q.from)};
    uint8_t msg[LIMIT_DNS_QUERY];
    enum dns_rcode rcode;
    ssize_t n = recvfrom(s->udp.fd, msg, sizeof(msg), MSG_DONTWAIT, (struct sockaddr *)&q.from,
                         &q.from_len);
    int i, act;

    if (n < 0)
        return false;
    assert_int_equal(dns_parse_query(msg, (size_t)n, &q.query, &rcode), DNS_QUERY);
    i = q.query.type == DNS_TYPE_AAAA;
    assert_true(i || q.query.type == DNS_TYPE_A);
    s->asked[i]++;
    act = s->acts[i];
    if (act == LATE || act == TOO_LATE || act == HOLD)
        hold(s, &q, act);
    else if (act != SILENT)
        send_answer(s, &q, act & ~FIRST);
    if (act & FIRST)
        send_answer(s, &q, ANSWER);
    return true;
}

/* All that are there, or they would be lost when many come at once. */
static inline void on_question(struct loop_io *io, uint32_t events)
{
    struct server *s = (struct server *)((char *)io - offsetof(struct server, udp));

    (void)events;
    while (take_question(s))
        ;
}

/* ---- its streams ---- */

static inline void conn_close(struct conn *c)
{
    struct conn **at = &c->server->conns;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    loop_remove(&c->io);
    close(c->io.fd);
    free(c);
}

static inline void conn_answer(struct conn *c)
{
    static uint8_t msg[2 + 65535];
    struct dns_query q;
    enum dns_rcode rcode;
    size_t len, n;
    const uint8_t *p = dns_stream_message(&c->stream, &len);
    int act = c->server->tcp_act;

    assert_int_equal(dns_parse_query(p, len, &q, &rcode), DNS_QUERY);
    n = answer(c->server, &q, act == CUT || act == SLOW || act == TWICE ? ANSWER : act, true,
               msg + 2);
    dns_put16(msg, (unsigned)n);
    n += 2;
    if (act == CUT)
        n /= 2;
    if (act == TWICE) {
        memcpy(msg + n, msg, n);
        n *= 2;
    }
    if (act == SLOW)
        for (size_t i = 0; i < n; i++)
            assert_int_equal(send(c->io.fd, msg + i, 1, MSG_NOSIGNAL), 1);
    else if (act != SILENT && act != CLOSE)
        assert_int_equal(send(c->io.fd, msg, n, MSG_NOSIGNAL), (ssize_t)n);
    if (act == CUT || act == CLOSE)
        conn_close(c);
}

static inline void on_conn(struct loop_io *io, uint32_t events)
{
    struct conn *c = (struct conn *)io;
    uint8_t data[2 + LIMIT_DNS_QUERY];
    ssize_t n = recv(io->fd, data, sizeof(data), 0);
    size_t used;

    (void)events;
    if (n <= 0)
        conn_close(c);
    else if (dns_stream_feed(&c->stream, data, (size_t)n, &used) == DNS_FRAME_MESSAGE)
        conn_answer(c);
}

static inline void on_connection(struct loop_io *io, uint32_t events)
{
    struct server *s = (struct server *)((char *)io - offsetof(struct server, tcp));
    struct conn *c = calloc(1, sizeof(*c));
    int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC);

    (void)events;
    assert_non_null(c);
    assert_true(fd >= 0);
    s->streams++;
    *c = (struct conn){.io.on_ready = on_conn, .server = s, .next = s->conns};
    s->conns = c;
    assert_int_equal(loop_add(s->loop, &c->io, fd, EPOLLIN), 0);
}

/* A port that both protocols have free. False if the host has no such address. */
static inline bool server_bind(struct server *s, int *ret_udp, int *ret_tcp)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool is_v4 = s->at.address.bits == 32;
    struct sockaddr *sa = is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
    socklen_t len = is_v4 ? sizeof(v4) : sizeof(v6);

    for (int i = 0; i < 20; i++) {
        int udp = socket(sa->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0),
            tcp = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

        v4.sin_port = v6.sin6_port = 0;
        if (bind(udp, sa, len) == 0 && getsockname(udp, sa, &len) == 0 && bind(tcp, sa, len) == 0 &&
            listen(tcp, 64) == 0) {
            s->at.port = ntohs(is_v4 ? v4.sin_port : v6.sin6_port);
            *ret_udp = udp;
            *ret_tcp = tcp;
            return true;
        }
        close(udp);
        close(tcp);
    }
    return false;
}

static inline bool server_open(struct server *s, struct loop *l, const char *address)
{
    int udp, tcp;

    *s = (struct server){.loop = l,
                         .ttl = 60,
                         .acts = {ANSWER, ANSWER},
                         .tcp_act = ANSWER,
                         .at.address = address_of(address),
                         .udp.on_ready = on_question,
                         .tcp.on_ready = on_connection,
                         .timer.on_time = on_late};
    if (!server_bind(s, &udp, &tcp))
        return false;
    assert_int_equal(loop_add(l, &s->udp, udp, EPOLLIN), 0);
    assert_int_equal(loop_add(l, &s->tcp, tcp, EPOLLIN), 0);
    return true;
}

static inline void server_acts(struct server *s, int a, int aaaa)
{
    s->acts[0] = a;
    s->acts[1] = aaaa;
}

static inline void server_close(struct server *s)
{
    while (s->conns)
        conn_close(s->conns);
    loop_stop_timer(&s->timer);
    loop_remove(&s->udp);
    loop_remove(&s->tcp);
    close(s->udp.fd);
    close(s->tcp.fd);
    free(s->held);
}
