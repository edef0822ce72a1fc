/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/limits.h"

struct header {
    uint32_t stream, len;
};

void spool_init(struct spool *s, int folder)
{
    *s = (struct spool){.folder = folder, .fd = -1};
    buf_init(&s->memory, LIMIT_SPOOL_MEMORY);
}

void spool_done(struct spool *s)
{
    buf_done(&s->memory);
    close_fd(&s->fd);
}

/* From here on in a file, with what memory holds at its beginning. */
static int spill(struct spool *s)
{
    autoclose int fd = openat(s->folder, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : fd_write_full(fd, s->memory.data, s->memory.len);

    if (r < 0)
        return r;
    s->fd = TAKE_FD(fd);
    buf_done(&s->memory);
    buf_init(&s->memory, LIMIT_SPOOL_MEMORY);
    return 0;
}

static int put(struct spool *s, const void *data, size_t len)
{
    if (s->fd < 0 && s->memory.len + len <= LIMIT_SPOOL_MEMORY) {
        buf_append(&s->memory, data, len);
        return s->memory.failed ? -ENOMEM : 0;
    }
    if (s->fd < 0) {
        int r = spill(s);

        if (r < 0)
            return r;
    }
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(s->fd, (const char *)data + done, len - done, (off_t)(s->end + done));

        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

void spool_add(struct spool *s, enum spool_stream stream, const char *data, size_t len)
{
    char piece[sizeof(struct header) + LIMIT_SPOOL_PIECE];
    struct header h = {.stream = stream};

    while (len) {
        size_t n = len < LIMIT_SPOOL_PIECE ? len : LIMIT_SPOOL_PIECE;

        if (s->dropped || s->end + sizeof(h) + n > LIMIT_SPOOL) {
            s->dropped += len;
            return;
        }
        h.len = (uint32_t)n;
        memcpy(piece, &h, sizeof(h));
        memcpy(piece + sizeof(h), data, n);
        if (put(s, piece, sizeof(h) + n) < 0) { /* the disk is full: what is there stays whole */
            s->dropped += len;
            return;
        }
        s->end += sizeof(h) + n;
        s->bytes[stream] += n;
        data += n;
        len -= n;
    }
}

static bool get(const struct spool *s, uint64_t at, void *data, size_t len)
{
    if (at > s->end || len > s->end - at)
        return false;
    if (s->fd < 0) {
        memcpy(data, s->memory.data + at, len);
        return true;
    }
    return pread(s->fd, data, len, (off_t)at) == (ssize_t)len;
}

int spool_get(const struct spool *s, uint64_t at, struct spool_piece *ret,
              char data[LIMIT_SPOOL_PIECE])
{
    struct header h;

    if (at == s->end)
        return 0;
    if (!get(s, at, &h, sizeof(h)) || h.stream >= SPOOL_STREAMS || !h.len ||
        h.len > LIMIT_SPOOL_PIECE || !get(s, at + sizeof(h), data, h.len))
        return -EINVAL;
    *ret = (struct spool_piece){.stream = (enum spool_stream)h.stream,
                                .at = at,
                                .next = at + sizeof(h) + h.len,
                                .len = h.len};
    return 1;
}

/* Appends the bytes [from, to) of the stream. */
static void cut_out(const struct spool *s, enum spool_stream stream, uint64_t from, uint64_t to,
                    char *data, struct buf *out)
{
    struct spool_piece p = {0};
    uint64_t done = 0;

    for (uint64_t at = 0; done < to && spool_get(s, at, &p, data) > 0; at = p.next) {
        uint64_t first = done < from ? from - done : 0, last = to - done;

        if (p.stream != stream)
            continue;
        if (last > p.len)
            last = p.len;
        if (first < last)
            buf_append(out, data + first, (size_t)(last - first));
        done += p.len;
    }
}

bool spool_text(const struct spool *s, enum spool_stream stream, size_t head, size_t tail,
                struct buf *out)
{
    autofree char *data = malloc(LIMIT_SPOOL_PIECE);
    uint64_t all = s->bytes[stream];

    if (!data)
        return true;
    if (all <= (uint64_t)head + tail) {
        cut_out(s, stream, 0, all, data, out);
        return s->dropped > 0;
    }
    cut_out(s, stream, 0, head, data, out);
    buf_printf(out, "\n[... %llu bytes left out ...]\n", (unsigned long long)(all - head - tail));
    cut_out(s, stream, all - tail, all, data, out);
    return true;
}
