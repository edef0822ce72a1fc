/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `nft` would say as
 *
 *     table inet clawden {
 *         chain out {
 *             type nat hook output priority -100
 *             ip daddr 127.0.0.0/8 accept
 *             ip6 daddr ::1 accept
 *             tcp dport 53 accept
 *             meta l4proto tcp redirect to :PORT
 *         }
 *     }
 *
 * in one transaction. Written out by hand: it is the whole of what we need of nf_tables, on the way
 * of every box with a network, and the library for it brings ten others along.
 */
#include "egress/redirect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define TABLE        "clawden"
#define CHAIN        "out"
#define PRIORITY     (-100) /* of destination NAT */
#define DNS_PORT     53
#define ADDRESS_AT_4 16 /* of the destination, in the header */
#define ADDRESS_AT_6 24

/* One message after the other. Too small a buffer is a fault of ours: it fails, it is not cut. */
struct batch {
    _Alignas(struct nlmsghdr) char data[4096];
    size_t len, message;
    bool failed;
    uint32_t n;
};

static void *grow(struct batch *b, size_t len)
{
    size_t whole = NLMSG_ALIGN(len);
    void *at = b->data + b->len;

    if (whole > sizeof(b->data) - b->len) {
        b->failed = true;
        b->len = b->message;
        return b->data; /* not sent */
    }
    memset(at, 0, whole);
    b->len += whole;
    return at;
}

static void begin(struct batch *b, uint16_t type, uint16_t flags, uint8_t family, uint16_t res)
{
    struct nlmsghdr *head;
    struct nfgenmsg *gen;

    b->message = b->len;
    head = grow(b, sizeof(*head));
    head->nlmsg_type = type;
    head->nlmsg_flags = NLM_F_REQUEST | flags;
    head->nlmsg_seq = b->n++;
    gen = grow(b, sizeof(*gen));
    gen->nfgen_family = family;
    gen->version = NFNETLINK_V0;
    gen->res_id = htons(res);
}

static void end(struct batch *b)
{
    ((struct nlmsghdr *)(b->data + b->message))->nlmsg_len = (uint32_t)(b->len - b->message);
}

static void nft(struct batch *b, uint16_t what, uint16_t flags)
{
    begin(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | what), flags, NFPROTO_INET, 0);
}

static void put(struct batch *b, uint16_t type, const void *data, size_t len)
{
    struct nlattr *a = grow(b, sizeof(*a) + len);

    if (b->failed)
        return;
    a->nla_type = type;
    a->nla_len = (uint16_t)(sizeof(*a) + len);
    memcpy(a + 1, data, len);
}

static void put_text(struct batch *b, uint16_t type, const char *text)
{
    put(b, type, text, strlen(text) + 1);
}

static void put_u32(struct batch *b, uint16_t type, uint32_t value)
{
    value = htonl(value);
    put(b, type, &value, sizeof(value));
}

static size_t open_nest(struct batch *b, uint16_t type)
{
    size_t at = b->len;

    put(b, type | NLA_F_NESTED, "", 0);
    return at;
}

static void close_nest(struct batch *b, size_t at)
{
    if (!b->failed)
        ((struct nlattr *)(b->data + at))->nla_len = (uint16_t)(b->len - at);
}

/* ---- expressions of a rule ---- */

struct expr {
    size_t elem, data;
};

static struct expr open_expr(struct batch *b, const char *name)
{
    struct expr e = {.elem = open_nest(b, NFTA_LIST_ELEM)};

    put_text(b, NFTA_EXPR_NAME, name);
    e.data = open_nest(b, NFTA_EXPR_DATA);
    return e;
}

static void close_expr(struct batch *b, struct expr e)
{
    close_nest(b, e.data);
    close_nest(b, e.elem);
}

static void load_meta(struct batch *b, uint32_t key)
{
    struct expr e = open_expr(b, "meta");

    put_u32(b, NFTA_META_DREG, NFT_REG_1);
    put_u32(b, NFTA_META_KEY, key);
    close_expr(b, e);
}

static void load_payload(struct batch *b, uint32_t base, uint32_t at, uint32_t len)
{
    struct expr e = open_expr(b, "payload");

    put_u32(b, NFTA_PAYLOAD_DREG, NFT_REG_1);
    put_u32(b, NFTA_PAYLOAD_BASE, base);
    put_u32(b, NFTA_PAYLOAD_OFFSET, at);
    put_u32(b, NFTA_PAYLOAD_LEN, len);
    close_expr(b, e);
}

static void must_be(struct batch *b, const void *value, size_t len)
{
    struct expr e = open_expr(b, "cmp");
    size_t data;

    put_u32(b, NFTA_CMP_SREG, NFT_REG_1);
    put_u32(b, NFTA_CMP_OP, NFT_CMP_EQ);
    data = open_nest(b, NFTA_CMP_DATA);
    put(b, NFTA_DATA_VALUE, value, len);
    close_nest(b, data);
    close_expr(b, e);
}

static void accept_it(struct batch *b)
{
    struct expr e = open_expr(b, "immediate");
    size_t data, verdict;

    put_u32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    data = open_nest(b, NFTA_IMMEDIATE_DATA);
    verdict = open_nest(b, NFTA_DATA_VERDICT);
    put_u32(b, NFTA_VERDICT_CODE, NF_ACCEPT);
    close_nest(b, verdict);
    close_nest(b, data);
    close_expr(b, e);
}

static void redirect_it(struct batch *b, uint16_t port)
{
    struct expr e = open_expr(b, "immediate");
    uint16_t value = htons(port);
    size_t data;

    put_u32(b, NFTA_IMMEDIATE_DREG, NFT_REG_1);
    data = open_nest(b, NFTA_IMMEDIATE_DATA);
    put(b, NFTA_DATA_VALUE, &value, sizeof(value));
    close_nest(b, data);
    close_expr(b, e);
    e = open_expr(b, "redir");
    put_u32(b, NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1);
    put_u32(b, NFTA_REDIR_FLAGS, NF_NAT_RANGE_PROTO_SPECIFIED);
    close_expr(b, e);
}

/* ---- table, chain, rules ---- */

static void table(struct batch *b, uint16_t what, uint16_t flags)
{
    nft(b, what, flags);
    put_text(b, NFTA_TABLE_NAME, TABLE);
    end(b);
}

static void chain(struct batch *b)
{
    size_t hook;

    nft(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    put_text(b, NFTA_CHAIN_TABLE, TABLE);
    put_text(b, NFTA_CHAIN_NAME, CHAIN);
    put_text(b, NFTA_CHAIN_TYPE, "nat");
    hook = open_nest(b, NFTA_CHAIN_HOOK);
    put_u32(b, NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
    put_u32(b, NFTA_HOOK_PRIORITY, (uint32_t)PRIORITY);
    close_nest(b, hook);
    end(b);
}

static size_t open_rule(struct batch *b)
{
    nft(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
    put_text(b, NFTA_RULE_TABLE, TABLE);
    put_text(b, NFTA_RULE_CHAIN, CHAIN);
    return open_nest(b, NFTA_RULE_EXPRESSIONS);
}

static void close_rule(struct batch *b, size_t expressions)
{
    close_nest(b, expressions);
    end(b);
}

static void accept_loopback(struct batch *b, uint8_t family, uint32_t at, const void *address,
                            size_t len)
{
    size_t rule = open_rule(b);

    load_meta(b, NFT_META_NFPROTO);
    must_be(b, &family, sizeof(family));
    load_payload(b, NFT_PAYLOAD_NETWORK_HEADER, at, (uint32_t)len);
    must_be(b, address, len);
    accept_it(b);
    close_rule(b, rule);
}

static void rules(struct batch *b, uint16_t port)
{
    static const uint8_t loopback_net = 127, tcp = IPPROTO_TCP;
    static const struct in6_addr loopback_6 = IN6ADDR_LOOPBACK_INIT;
    const uint16_t dns = htons(DNS_PORT);
    size_t rule;

    accept_loopback(b, NFPROTO_IPV4, ADDRESS_AT_4, &loopback_net, sizeof(loopback_net));
    accept_loopback(b, NFPROTO_IPV6, ADDRESS_AT_6, &loopback_6, sizeof(loopback_6));
    rule = open_rule(b);
    load_meta(b, NFT_META_L4PROTO);
    must_be(b, &tcp, sizeof(tcp));
    load_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, sizeof(dns));
    must_be(b, &dns, sizeof(dns));
    accept_it(b);
    close_rule(b, rule);
    rule = open_rule(b);
    load_meta(b, NFT_META_L4PROTO);
    must_be(b, &tcp, sizeof(tcp));
    redirect_it(b, port);
    close_rule(b, rule);
}

/* The answer to the batch: an error for what failed, or the acknowledgement of its last part. */
static int read_answers(int fd, uint32_t last)
{
    _Alignas(struct nlmsghdr) char data[8192];

    for (;;) {
        ssize_t n = recv(fd, data, sizeof(data), 0);

        if (n < 0)
            return -errno;
        for (struct nlmsghdr *h = (struct nlmsghdr *)data; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
            const struct nlmsgerr *e = NLMSG_DATA(h);

            if (h->nlmsg_type != NLMSG_ERROR || h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)))
                return -EPROTO;
            if (e->error || e->msg.nlmsg_seq == last)
                return e->error;
        }
    }
}

static int set_rules(uint16_t port, bool replace)
{
    autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    struct batch b = {.len = 0};
    uint32_t last;

    if (fd < 0)
        return -errno;
    begin(&b, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
    end(&b);
    if (replace)
        table(&b, NFT_MSG_DELTABLE, 0);
    table(&b, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
    chain(&b);
    rules(&b, port);
    last = b.n - 1;
    ((struct nlmsghdr *)(b.data + b.message))->nlmsg_flags |= NLM_F_ACK;
    begin(&b, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
    end(&b);
    if (b.failed)
        return -EMSGSIZE;
    if (sendto(fd, b.data, b.len, 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
        return -errno;
    return read_answers(fd, last);
}

/* The kernel takes ten milliseconds to let go of something that was removed: only if it has to. */
int redirect_tcp(uint16_t port)
{
    int r = set_rules(port, false);

    return r == -EEXIST ? set_rules(port, true) : r;
}
