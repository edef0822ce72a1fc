/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/tty.h"

bool stream_can_pass(int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return false;
    return S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

bool stream_is_done(const struct stream *r)
{
    return r->from < 0 && r->start == r->end;
}

struct pollfd stream_wants(const struct stream *r)
{
    if (r->start != r->end)
        return (struct pollfd){.fd = r->to, .events = POLLOUT};
    return (struct pollfd){.fd = r->from, .events = POLLIN};
}

static void end_from(struct stream *r)
{
    if (r->own_from && r->from >= 0)
        (void)close(r->from);
    r->from = -1;
}

static void end_to(struct stream *r)
{
    if (r->own_to && r->to >= 0)
        (void)close(r->to);
    r->to = -1;
    r->start = r->end = 0;
}

static void fill(struct stream *r, uint64_t allowance)
{
    size_t want = LIMIT_STREAM_CHUNK;
    ssize_t n;

    if (!r->data)
        r->data = malloc(LIMIT_STREAM_CHUNK + TTY_FILTER_ROOM);
    if (!r->data)
        abort();
    if (allowance < want)
        want = (size_t)allowance + 1; /* one more, so that going over is seen */
    n = read(r->from, r->data, want);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) { /* end of file; EIO is a terminal's way to say it */
        end_from(r);
        return;
    }
    r->bytes += (uint64_t)n;
    r->start = 0;
    r->end = (uint32_t)((uint64_t)n > allowance ? allowance : (uint64_t)n);
    if (r->filter)
        r->end = (uint32_t)tty_filter_apply(r->filter, r->data, r->end);
}

static int drain(struct stream *r)
{
    while (r->start != r->end) {
        /* Blocks at most until the next tick's signal if the caller's end is stuck. */
        ssize_t n = write(r->to, r->data + r->start, r->end - r->start);

        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            return 0;
        if (n < 0) { /* nobody reads any more: what comes is thrown away, as by a closed pipe */
            int e = errno;

            end_to(r);
            end_from(r);
            return e == EPIPE ? 0 : -e;
        }
        r->start += (uint32_t)n;
    }
    return 0;
}

int stream_move(struct stream *r, uint64_t allowance)
{
    int e = 0;

    if (r->start == r->end && r->from >= 0)
        fill(r, allowance);
    if (r->start != r->end)
        e = drain(r);
    if (stream_is_done(r))
        end_to(r);
    return e;
}

void stream_done(struct stream *r)
{
    end_from(r);
    end_to(r);
    free(r->data);
    r->data = NULL;
}
