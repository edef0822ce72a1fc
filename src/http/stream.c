/* SPDX-License-Identifier: Apache-2.0 */
#include "http/stream.h"

#include <errno.h>
#include <sys/socket.h>

static int plain_open(struct http_stream *s, void *context)
{
    (void)s;
    (void)context;
    return 0;
}

static ssize_t plain_read(struct http_stream *s, void *data, size_t size)
{
    ssize_t n = recv(s->fd, data, size, MSG_DONTWAIT);

    if (n < 0)
        return errno == EINTR ? -EAGAIN : -errno;
    return n;
}

static ssize_t plain_write(struct http_stream *s, const void *data, size_t len)
{
    ssize_t n = send(s->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0)
        return errno == EINTR ? -EAGAIN : -errno;
    return n;
}

static void plain_finish(struct http_stream *s)
{
    (void)shutdown(s->fd, SHUT_WR);
}

static void plain_close(struct http_stream *s)
{
    (void)s;
}

const struct http_stream_ops http_plain = {
    .open = plain_open,
    .read = plain_read,
    .write = plain_write,
    .finish = plain_finish,
    .close = plain_close,
};
