/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A connection whose bytes are in memory: what comes is given in pieces, what goes is kept. Its
 * descriptor is always ready, so that the loop never waits. */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "http/server.h"
#include "loop/loop.h"
#include "tests/fuzz/fuzz.h"

struct memory {
    const char *in;
    size_t len, at, step;
    bool is_slow; /* takes 100 bytes at a time, every second time */
    unsigned n_writes;
    struct buf out;
};

static int memory_open(struct http_stream *s, void *context)
{
    s->state = context;
    return 0;
}

static ssize_t memory_read(struct http_stream *s, void *data, size_t size)
{
    struct memory *m = s->state;
    size_t n = m->len - m->at;

    PROPERTY(size >= HTTP_STREAM_READ, "a read of %zu", size);
    if (n > m->step)
        n = m->step;
    if (n > size)
        n = size;
    memcpy(data, m->in + m->at, n);
    m->at += n;
    return (ssize_t)n;
}

static ssize_t memory_write(struct http_stream *s, const void *data, size_t len)
{
    struct memory *m = s->state;

    if (m->is_slow && m->n_writes++ % 2)
        return -EAGAIN;
    if (m->is_slow && len > 100)
        len = 100;
    buf_append(&m->out, data, len);
    return (ssize_t)len;
}

static void memory_nothing(struct http_stream *s)
{
    (void)s;
}

static const struct http_stream_ops memory_ops = {.open = memory_open,
                                                  .read = memory_read,
                                                  .write = memory_write,
                                                  .finish = memory_nothing,
                                                  .close = memory_nothing};

/* One connection from its begin to its end. */
static inline void memory_run(struct memory *m, const struct http_server_ops *ops, void *user)
{
    const struct http_listen how = {.stream = &memory_ops, .context = m};
    struct http_server *server;
    struct loop *loop;
    struct error err;

    buf_init(&m->out, 16u << 20);
    if (loop_new(&loop) < 0 || http_server_new(loop, ops, user, &server, &err) < 0)
        abort();
    if (http_server_adopt(server, eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK), &how) < 0)
        abort();
    PROPERTY(loop_run(loop) == 0, "the loop failed");
    PROPERTY(http_server_conns(server) == 0, "the connection is left");
    PROPERTY(!m->out.failed, "too much came out");
    buf_puts(&m->out, "");
    http_server_free(server);
    loop_free(loop);
}
