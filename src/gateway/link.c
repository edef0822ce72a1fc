/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/link.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"

#define HEAD      9u
#define READ      (64u << 10)
#define PER_TURN  8u           /* reads, before the others have their turn */
#define KEEP_ROOM (256u << 10) /* a buffer that was larger is given back once it is empty */

static struct link *link_of(struct loop_io *io)
{
    return (struct link *)((char *)io - offsetof(struct link, io));
}

/* From here on nothing is read or written; on_closed() comes from the loop. */
static void give_up(struct link *l, const char *why)
{
    if (l->why || !l->io.loop)
        return;
    l->why = why;
    loop_later(l->io.loop, &l->closing);
    loop_remove(&l->io);
}

/* ---- out ---- */

static void flush(struct link *l)
{
    while (l->sent < l->out.len) {
        ssize_t n = send(l->io.fd, l->out.data + l->sent, l->out.len - l->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            if (loop_change(&l->io, (l->was_full ? 0 : EPOLLIN) | EPOLLOUT) < 0)
                give_up(l, "it cannot be waited for");
            return;
        }
        if (n <= 0) {
            give_up(l, "the other side is gone");
            return;
        }
        l->sent += (size_t)n;
    }
    l->sent = 0;
    if (l->out.cap > KEEP_ROOM)
        buf_done(&l->out);
    else
        buf_clear(&l->out);
    (void)loop_change(&l->io, l->was_full ? 0 : EPOLLIN);
}

static void reopen(struct link *l);

/* What was queued in this round goes in one write; or it is over. */
static void on_turn(struct loop_task *t)
{
    struct link *l = (struct link *)((char *)t - offsetof(struct link, closing));

    if (!l->why)
        flush(l);
    reopen(l);
    if (!l->why)
        return;
    loop_forget(&l->closing);
    l->on_closed(l, l->why);
}

/* What was sent goes before the buffer grows for want of its room. */
static void make_room(struct link *l)
{
    if (l->sent < READ || l->sent < l->out.len / 2)
        return;
    memmove(l->out.data, l->out.data + l->sent, l->out.len - l->sent);
    l->out.len -= l->sent;
    l->sent = 0;
}

static void queue(struct link *l, enum link_kind kind, uint32_t id, const void *extra,
                  size_t extra_len, const void *data, size_t len)
{
    uint32_t size = (uint32_t)(extra_len + len);
    char head[HEAD];

    if (l->why || !l->io.loop)
        return;
    if (len > LIMIT_LINK_FRAME - extra_len) {
        give_up(l, "a frame of ours is too large");
        return;
    }
    if (l->out.len - l->sent + size > LIMIT_LINK_OUT) {
        give_up(l, "the other side does not take what is sent");
        return;
    }
    make_room(l);
    memcpy(head, &size, 4);
    memcpy(head + 4, &id, 4);
    head[8] = (char)kind;
    buf_append(&l->out, head, sizeof(head));
    buf_append(&l->out, extra, extra_len);
    buf_append(&l->out, data, len);
    if (l->out.failed)
        give_up(l, "out of memory");
    else
        loop_later(l->io.loop, &l->closing);
}

void link_send(struct link *l, enum link_kind kind, uint32_t id, const void *data, size_t len)
{
    queue(l, kind, id, "", 0, data ? data : "", len);
}

void link_answer(struct link *l, uint32_t id, unsigned status, const void *body, size_t len)
{
    static const char too_large[] = "{\"error\":{\"code\":\"too_large\",\"message\":\"the answer "
                                    "is too large: ask for less\"}}";
    uint16_t s = (uint16_t)status;

    if (len > LIMIT_LINK_FRAME - sizeof(s)) {
        link_answer(l, id, 413, too_large, sizeof(too_large) - 1);
        return;
    }
    queue(l, LINK_ANSWER, id, &s, sizeof(s), body ? body : "", len);
}

/* ---- in ---- */

/* What a kind may look like, whoever sends it. */
static bool is_frame(unsigned kind, size_t len)
{
    switch (kind) {
    case LINK_CANCEL:
    case LINK_READY:
        return len == 0;
    case LINK_TAKEN:
        return len == 4;
    case LINK_ANSWER:
        return len >= 2;
    case LINK_ASK:
    case LINK_EVENT:
    case LINK_FACTS:
    case LINK_REVOKE:
        return true;
    default:
        return false;
    }
}

/* The frame at `data`, told; its length, or 0 if it is not whole. */
static size_t take_frame(struct link *l, char *data, size_t len)
{
    uint32_t size, id;
    char *payload = data + HEAD, after;

    if (len < HEAD)
        return 0;
    memcpy(&size, data, 4);
    memcpy(&id, data + 4, 4);
    if (size > LIMIT_LINK_FRAME || !is_frame((unsigned char)data[8], size)) {
        give_up(l, "it sent a frame that breaks the rules");
        return 0;
    }
    if (len - HEAD < size)
        return 0;
    after = payload[size];
    payload[size] = 0;
    l->on_frame(l, (enum link_kind)data[8], id, payload, size);
    payload[size] = after;
    return HEAD + size;
}

bool link_is_full(struct link *l)
{
    if (!l->why && l->out.len - l->sent > LIMIT_LINK_SOFT)
        flush(l);
    if (!l->why && l->out.len - l->sent > LIMIT_LINK_SOFT && !l->was_full) {
        l->was_full = true;
        (void)loop_change(&l->io, EPOLLOUT);
    }
    return l->was_full;
}

/* All whole frames at `data`, which has one byte more than it says; how many bytes they had. */
static size_t take_frames(struct link *l, char *data, size_t len)
{
    size_t at = 0, n;

    while (!l->why && !(l->on_room && link_is_full(l)) &&
           (n = take_frame(l, data + at, len - at)) > 0)
        at += n;
    return at;
}

static void keep_rest(struct link *l, size_t used)
{
    if (used == 0)
        return;
    memmove(l->in.data, l->in.data + used, l->in.len - used);
    l->in.len -= used;
    if (l->in.len == 0 && l->in.cap > KEEP_ROOM)
        buf_done(&l->in);
}

/* The other side has taken most of what waited: what has come meanwhile is taken, too. */
static void reopen(struct link *l)
{
    if (l->why || !l->was_full || l->out.len - l->sent > LIMIT_LINK_SOFT / 2)
        return;
    l->was_full = false;
    (void)loop_change(&l->io, EPOLLIN | (l->sent < l->out.len ? EPOLLOUT : 0));
    if (l->in.len)
        keep_rest(l, take_frames(l, l->in.data, l->in.len));
    if (!l->why && !l->was_full && l->on_room)
        l->on_room(l);
}

/* True: there may be more. */
static bool read_once(struct link *l)
{
    char chunk[READ + 1];
    ssize_t n = recv(l->io.fd, chunk, READ, MSG_DONTWAIT);
    size_t used = 0;

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return errno == EINTR;
    if (n <= 0) {
        give_up(l, "the other side is gone");
        return false;
    }
    if (l->in.len == 0)
        used = take_frames(l, chunk, (size_t)n);
    if (!l->why && used < (size_t)n) {
        bool whole = l->in.len == 0;

        buf_append(&l->in, chunk + used, (size_t)n - used);
        if (l->in.failed)
            give_up(l, "out of memory");
        else if (!whole)
            keep_rest(l, take_frames(l, l->in.data, l->in.len));
    }
    return !l->why && !l->was_full && (size_t)n == READ;
}

static void on_ready(struct loop_io *io, uint32_t events)
{
    struct link *l = link_of(io);

    if (l->why)
        return;
    if (events & EPOLLOUT)
        flush(l);
    reopen(l);
    for (unsigned i = 0; !l->why && !l->was_full && i < PER_TURN; i++)
        if (!read_once(l))
            return;
}

/* ---- begin and end ---- */

int link_open(struct link *l, struct loop *loop, int fd)
{
    int r;

    l->io = (struct loop_io){.on_ready = on_ready, .fd = fd};
    l->closing = (struct loop_task){.on_turn = on_turn};
    l->sent = 0;
    l->why = NULL;
    buf_init(&l->in, HEAD + LIMIT_LINK_FRAME + READ + 1);
    buf_init(&l->out, 2 * LIMIT_LINK_OUT + READ); /* with what was sent and has not made room */
    r = loop_add(loop, &l->io, fd, EPOLLIN);
    if (r < 0)
        close_fd(&l->io.fd);
    return r;
}

void link_close(struct link *l)
{
    if (!l->io.on_ready)
        return;
    loop_forget(&l->closing);
    loop_remove(&l->io);
    close_fd(&l->io.fd);
    buf_done(&l->in);
    buf_done(&l->out);
    l->io.on_ready = NULL;
}
