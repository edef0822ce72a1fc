/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resolver of a box. It asks nobody: a name that may be reached has an address that stands for
 * it, and what is behind the name is found out when somebody connects. So a question tells nothing
 * to the outside, and a name that may not be reached does not exist.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "egress/dns.h"
#include "egress/relay.h"

#define ANSWER_TTL 60 /* seconds; the address is kept for longer */
#define PER_TURN   32 /* questions of one box before the others have their turn */

static size_t refuse(struct relay_box *b, const struct dns_query *q, const struct egress_verdict *v,
                     bool tcp, uint8_t *out)
{
    const char *reason = v ? v->reason : "not the name of a host";
    struct dns_reply reply = {.rcode = DNS_REFUSED, .ede = DNS_EDE_BLOCKED, .text = reason};
    struct relay_event e = {.via = "dns",
                            .target = q->has_host ? q->host.text : "(not a host's name)",
                            .address = "",
                            .rule = v ? v->rule : NULL,
                            .setting = v ? v->setting : NULL,
                            .reason = reason};

    if (q->has_host)
        dests_refuse(b->dests, q->host.text)->denied++;
    relay_tell(b, &e, NULL);
    return dns_build_reply(q, &reply, tcp, out);
}

/* Nobody decided against it: there is too much of it. */
static size_t put_off(struct relay_box *b, const struct dns_query *q, const char *why, bool tcp,
                      uint8_t *out)
{
    struct dns_reply reply = {.rcode = DNS_SERVFAIL, .ede = DNS_EDE_NETWORK, .text = why};
    struct relay_event e = {.via = "dns",
                            .target = q->has_host ? q->host.text : "(not a host's name)",
                            .address = "",
                            .reason = why};

    relay_tell_often(b, &e, NULL);
    return dns_build_reply(q, &reply, tcp, out);
}

/* Nothing leaves by it, so it is no event: whoever connects is told of then. */
static size_t answer_host(struct relay_box *b, const struct dns_query *q, bool tcp, uint8_t *out)
{
    struct address stand[2];
    struct dns_reply reply = {.addresses = stand, .ttl = ANSWER_TTL};
    struct egress_verdict v;
    struct error err;

    rules_decide_lookup(b->rules, &q->host, &v);
    if (v.decision == EGRESS_DENY)
        return refuse(b, q, &v, tcp, out);
    if (standins_assign(b->standins, q->host.text, loop_now(b->relay->loop) / 1000, &stand[0],
                        &stand[1], &err) < 0)
        return put_off(b, q, err.msg, tcp, out);
    if (q->type == DNS_TYPE_A || q->type == DNS_TYPE_AAAA)
        reply.n = 2; /* those of the question's type are put in */
    b->questions++;
    return dns_build_reply(q, &reply, tcp, out);
}

size_t names_answer(struct relay_box *b, const uint8_t *msg, size_t len, bool tcp, uint8_t *out)
{
    enum dns_rcode rcode = DNS_NOERROR;
    struct dns_query q;

    switch (dns_parse_query(msg, len, &q, &rcode)) {
    case DNS_DROP:
        return 0;
    case DNS_REJECT:
        return dns_build_reply(&q, &(struct dns_reply){.rcode = rcode}, tcp, out);
    case DNS_QUERY:
        break;
    }
    if (!relay_spend(b))
        return put_off(b, &q, "too many questions at once", tcp, out);
    if (!q.has_host || q.host.kind != HOST_NAME)
        return refuse(b, &q, NULL, tcp, out);
    return answer_host(b, &q, tcp, out);
}

/* ---- datagrams ---- */

/* An address that is only routed to the box, and not its own, is sent from with this alone; it is
 * one mark for both families. */
void names_prepare(int fd)
{
    int on = 1;

    (void)setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
}

/* Room for what says which address was asked, of either family. */
union control {
    struct cmsghdr align;
    char space[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo))];
};

static size_t put_control(union control *to, int level, int type, const void *data, size_t len)
{
    struct cmsghdr *c = &to->align;

    memset(to, 0, sizeof(*to));
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(len);
    memcpy(CMSG_DATA(c), data, len);
    return CMSG_SPACE(len);
}

/* A program takes an answer only from the server that it asked, and every address is one here. The
 * length of what goes with the answer so that it comes from there; 0: nobody said. */
static size_t answer_from(struct msghdr *asked, union control *to)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(asked); c; c = CMSG_NXTHDR(asked, c)) {
        struct in6_pktinfo six;
        struct in_pktinfo four;

        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            memcpy(&six, CMSG_DATA(c), sizeof(six));
            six.ipi6_ifindex = 0;
            return put_control(to, IPPROTO_IPV6, IPV6_PKTINFO, &six, sizeof(six));
        }
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            memcpy(&four, CMSG_DATA(c), sizeof(four));
            four.ipi_spec_dst = four.ipi_addr;
            four.ipi_ifindex = 0;
            return put_control(to, IPPROTO_IP, IP_PKTINFO, &four, sizeof(four));
        }
    }
    return 0;
}

/* False: there is none any more. */
static bool answer_one(struct relay_box *b, int fd)
{
    uint8_t msg[LIMIT_DNS_QUERY + 1], out[LIMIT_DNS_REPLY];
    struct iovec data = {.iov_base = msg, .iov_len = sizeof(msg)};
    struct sockaddr_storage from;
    union control asked, reply;
    struct msghdr m = {.msg_name = &from,
                       .msg_namelen = sizeof(from),
                       .msg_iov = &data,
                       .msg_iovlen = 1,
                       .msg_control = &asked,
                       .msg_controllen = sizeof(asked)};
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);

    if (n < 0)
        return false;
    data.iov_len = names_answer(b, msg, (size_t)n, false, out);
    data.iov_base = out;
    if (!data.iov_len)
        return true;
    m.msg_controllen = answer_from(&m, &reply);
    m.msg_control = m.msg_controllen ? &reply : NULL;
    (void)sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    return true;
}

void names_on_datagram(struct loop_io *io, uint32_t events)
{
    struct relay_box *b = (struct relay_box *)((char *)io - offsetof(struct relay_box, dns));

    (void)events;
    for (int i = 0; i < PER_TURN; i++)
        if (!answer_one(b, io->fd))
            return;
}
