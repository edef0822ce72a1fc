/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resolver of a box. It asks nobody: a name that may be reached has an address that stands for
 * it, and what is behind the name is found out when somebody connects. So a question tells nothing
 * to the outside, and a name that may not be reached does not exist.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "egress/relay.h"

#define ANSWER_TTL 60 /* seconds; the address is kept for longer */
#define PER_TURN   32 /* questions of one box before the others have their turn */

static void tell(struct relay_box *b, const struct dns_query *q, bool allowed,
                 const struct egress_verdict *v)
{
    struct relay_event e = {.via = "dns",
                            .target = q->has_host ? q->host.text : "(not a host's name)",
                            .address = "",
                            .allowed = allowed,
                            .rule = v ? v->rule : NULL,
                            .setting = v ? v->setting : NULL,
                            .reason = v ? v->reason : "not the name of a host"};

    relay_tell(b, &e);
}

static size_t refuse(struct relay_box *b, const struct dns_query *q, const struct egress_verdict *v,
                     bool tcp, uint8_t *out)
{
    struct dns_reply reply = {.rcode = DNS_REFUSED,
                              .ede = DNS_EDE_BLOCKED,
                              .text = v ? v->reason : "not the name of a host"};

    tell(b, q, false, v);
    return dns_build_reply(q, &reply, tcp, out);
}

/* Literals are answered as they are: there is nothing to stand for. */
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
                        &stand[1], &err) < 0) {
        reply.rcode = DNS_SERVFAIL;
        reply.ede = DNS_EDE_NETWORK;
        reply.text = err.msg;
    } else if (q->type == DNS_TYPE_A || q->type == DNS_TYPE_AAAA) {
        reply.n = 2; /* those of the question's type are put in */
    }
    tell(b, q, reply.rcode == DNS_NOERROR, &v);
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
        return dns_build_reply(&q,
                               &(struct dns_reply){.rcode = DNS_SERVFAIL,
                                                   .ede = DNS_EDE_NETWORK,
                                                   .text = "too many questions at once"},
                               tcp, out);
    if (!q.has_host || q.host.kind != HOST_NAME)
        return refuse(b, &q, NULL, tcp, out);
    return answer_host(b, &q, tcp, out);
}

void names_on_datagram(struct loop_io *io, uint32_t events)
{
    struct relay_box *b = (struct relay_box *)((char *)io - offsetof(struct relay_box, dns));

    (void)events;
    for (int i = 0; i < PER_TURN; i++) {
        uint8_t msg[LIMIT_DNS_QUERY + 1], out[LIMIT_DNS_REPLY];
        struct sockaddr_storage from;
        socklen_t from_len = sizeof(from);
        ssize_t n =
            recvfrom(io->fd, msg, sizeof(msg), MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);
        size_t len;

        if (n < 0)
            return;
        len = names_answer(b, msg, (size_t)n, false, out);
        if (len)
            (void)sendto(io->fd, out, len, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&from,
                         from_len);
    }
}
