/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

ssize_t fd_read_full(int fd, void *data, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = read(fd, (char *)data + done, len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            struct pollfd p = {.fd = fd, .events = POLLIN};

            if (poll(&p, 1, -1) >= 0 || errno == EINTR)
                continue;
        }
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int fd_write_full(int fd, const void *data, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = write(fd, (const char *)data + done, len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        done += (size_t)n;
    }
    return 0;
}

ssize_t fd_read_text(int dirfd, const char *name, char *text, size_t size)
{
    autoclose int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t n;

    if (fd < 0)
        return -errno;
    n = fd_read_full(fd, text, size);
    if (n < 0)
        return n;
    if ((size_t)n == size)
        return -EFBIG;
    text[n] = 0;
    return n;
}

ssize_t fd_read_value(int dirfd, const char *name, char *text, size_t size)
{
    autoclose int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n;

    if (fd < 0)
        return -errno;
    n = read(fd, text, size - 1);
    if (n < 0)
        return -errno;
    text[n] = 0;
    return n;
}

int fd_write_text(int dirfd, const char *name, const char *text)
{
    autoclose int fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return -errno;
    return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

void fd_close_range(unsigned first, unsigned last)
{
    (void)syscall(SYS_close_range, first, last, 0); /* musl has no function for it */
}

int fd_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
    } u = {0};
    struct iovec iov = {.iov_base = (void *)data, .iov_len = len};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    if (n_fds > FD_PASS_MAX)
        return -EMSGSIZE;
    if (n_fds) {
        struct cmsghdr *c;

        m.msg_control = u.space;
        m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    do {
        n = sendmsg(sock, &m, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

/* Keeps the descriptors of one control message, or closes those that do not fit. */
static size_t keep_fds(const struct cmsghdr *c, int *fds, size_t have, size_t max)
{
    size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

    for (size_t i = 0; i < n; i++) {
        int fd;

        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
        if (have < max)
            fds[have] = fd;
        else
            (void)close(fd);
        have++;
    }
    return have;
}

ssize_t fd_recv(int sock, void *data, size_t size, int *fds, size_t max_fds)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
    } u;
    struct iovec iov = {.iov_base = data, .iov_len = size};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = u.space,
                       .msg_controllen = sizeof(u.space)};
    size_t have = 0;
    ssize_t n;

    for (size_t i = 0; i < max_fds; i++)
        fds[i] = -1;
    do {
        n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            have = keep_fds(c, fds, have, max_fds);
    if (have > max_fds || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
        for (size_t i = 0; i < max_fds; i++)
            close_fd(&fds[i]);
        return -EMSGSIZE;
    }
    return n;
}
