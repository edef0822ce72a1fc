/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/own.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "egress/address.h"

struct question {
    struct nlmsghdr head;
    struct rtmsg route;
    struct rtattr attr;
    uint8_t address[16];
};

static bool is_unreachable(int error)
{
    return error == -ENETUNREACH || error == -EHOSTUNREACH || error == -EAFNOSUPPORT ||
           error == -EACCES || error == -EINVAL;
}

/* ip route get ADDRESS */
bool own_address(const struct address *a)
{
    const size_t len = a->bits / 8u;
    struct question q = {
        .head = {.nlmsg_len = (uint32_t)(offsetof(struct question, address) + len),
                 .nlmsg_type = RTM_GETROUTE,
                 .nlmsg_flags = NLM_F_REQUEST},
        .route = {.rtm_family = a->bits == 32 ? AF_INET : AF_INET6, .rtm_dst_len = a->bits},
        .attr = {.rta_len = (uint16_t)RTA_LENGTH(len), .rta_type = RTA_DST}};
    _Alignas(struct nlmsghdr) char data[4096];
    const struct nlmsghdr *h = (const struct nlmsghdr *)data;
    autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    ssize_t n;

    memcpy(q.address, a->bytes, len);
    if (fd < 0 || send(fd, &q, q.head.nlmsg_len, 0) < 0)
        return true;
    n = recv(fd, data, sizeof(data), 0);
    if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct rtmsg)) || !NLMSG_OK(h, n))
        return true;
    if (h->nlmsg_type == NLMSG_ERROR)
        return !is_unreachable(((const struct nlmsgerr *)NLMSG_DATA(h))->error);
    return h->nlmsg_type != RTM_NEWROUTE ||
           ((const struct rtmsg *)NLMSG_DATA(h))->rtm_type != RTN_UNICAST;
}
