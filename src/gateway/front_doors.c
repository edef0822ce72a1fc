/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that came out of boxes (doors.h). The back has accepted them, and says with each
 * whose it is; from then on they are as any other, but for the credential, which is the door's, and
 * for how many there may be: a box is nobody whom others should have to make room for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"
#include "gateway/front_internal.h"

#define PER_TURN 16

struct front_door {
    struct front_listener as; /* what its exchanges carry */
    struct front *front;
    struct front_door *next, **back;
    char token[TOKEN_TEXT];
    size_t conns, refs; /* refs: who has it in hand while connections come and go */
};

/* ---- the stream: plain, and counted ---- */

static void release(struct front_door *d)
{
    if (d->conns || d->refs)
        return;
    *d->back = d->next;
    if (d->next)
        d->next->back = d->back;
    explicit_bzero(d->token, sizeof(d->token));
    free(d);
}

static int counted_open(struct http_stream *s, void *context)
{
    struct front_door *d = context;

    s->state = d;
    d->conns++;
    d->front->n_door_conns++;
    return 0;
}

static ssize_t counted_read(struct http_stream *s, void *data, size_t size)
{
    return http_plain.read(s, data, size);
}

static ssize_t counted_write(struct http_stream *s, const void *data, size_t len)
{
    return http_plain.write(s, data, len);
}

static void counted_finish(struct http_stream *s)
{
    http_plain.finish(s);
}

static void counted_close(struct http_stream *s)
{
    struct front_door *d = s->state;

    d->conns--;
    d->front->n_door_conns--;
    release(d);
}

static const struct http_stream_ops counted = {
    .open = counted_open,
    .read = counted_read,
    .write = counted_write,
    .finish = counted_finish,
    .close = counted_close,
};

/* ---- who comes ---- */

static struct front_door *find(struct front *f, const char *token)
{
    struct front_door *d;

    for (d = f->door_list; d; d = d->next)
        if (strcmp(d->token, token) == 0)
            return d;
    d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    memcpy(d->token, token, sizeof(d->token));
    d->as = (struct front_listener){.fd = -1, .token = d->token};
    d->front = f;
    d->next = f->door_list;
    d->back = &f->door_list;
    if (d->next)
        d->next->back = &d->next;
    f->door_list = d;
    return d;
}

static void take(struct front *f, const char *token, int fd)
{
    struct front_door *d = find(f, token);

    if (!d) {
        (void)close(fd);
        return;
    }
    d->refs++; /* another connection of its may be the one that makes room */
    if (d->conns >= LIMIT_FRONT_DOOR || f->n_door_conns >= LIMIT_FRONT_DOORS)
        (void)close(fd); /* before anybody makes room for it */
    else
        (void)http_server_adopt(
            f->server, fd, &(struct http_listen){.stream = &counted, .context = d, .user = &d->as});
    d->refs--;
    release(d);
}

static void on_door(struct loop_io *io, uint32_t events)
{
    struct front *f = (struct front *)((char *)io - offsetof(struct front, doors));
    char token[TOKEN_TEXT];

    (void)events;
    for (int i = 0; i < PER_TURN; i++) {
        int fd = -1;
        ssize_t n = fd_recv(io->fd, token, sizeof(token), &fd, 1);

        if (n == -EAGAIN)
            return;
        if (n == 0) { /* the back is gone, and the link says so too */
            loop_remove(io);
            return;
        }
        if (fd < 0) /* there was no room for its descriptor */
            continue;
        if (n != (ssize_t)sizeof(token) || token[sizeof(token) - 1] || !f->has_facts ||
            f->is_draining)
            (void)close(fd);
        else
            take(f, token, fd);
    }
}

int doors_watch(struct front *f, int fd, struct error *err)
{
    int r;

    f->doors = (struct loop_io){.on_ready = on_door, .fd = fd};
    r = loop_add(f->loop, &f->doors, fd, EPOLLIN);
    return r < 0 ? error_sys(err, r, "wait for who comes out of boxes") : 0;
}
