/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/limits.h"

#define LOOK_EVERY (1u << 20) /* bytes between two looks at the disk */

struct header {
    uint32_t stream, len;
};

/* ---- the beginning and the end ---- */

static void keep_ends(struct spool *s, enum spool_stream stream, const char *data, size_t len)
{
    struct buf *head = &s->head[stream], *tail = &s->tail[stream];
    size_t n = head->max - head->len < len ? head->max - head->len : len;

    buf_append(head, data, n);
    data += n;
    len -= n;
    if (len > SPOOL_TAIL) {
        data += len - SPOOL_TAIL;
        len = SPOOL_TAIL;
        buf_clear(tail);
    }
    if (tail->len + len > tail->max) {
        memmove(tail->data, tail->data + tail->len - SPOOL_TAIL, SPOOL_TAIL);
        tail->len = SPOOL_TAIL;
    }
    buf_append(tail, data, len);
}

/* ---- pieces ---- */

void spool_init(struct spool *s, struct spools *all, size_t head)
{
    *s = (struct spool){.all = all, .fd = -1};
    buf_init(&s->memory, LIMIT_SPOOL_MEMORY);
    for (int i = 0; i < SPOOL_STREAMS; i++) {
        buf_init(&s->head[i], head);
        buf_init(&s->tail[i], 2 * SPOOL_TAIL);
    }
}

void spool_done(struct spool *s)
{
    s->all->bytes -= s->in_file;
    buf_done(&s->memory);
    close_fd(&s->fd);
    for (int i = 0; i < SPOOL_STREAMS; i++) {
        buf_done(&s->head[i]);
        buf_done(&s->tail[i]);
    }
}

/* From here on in a file, with what memory holds at its beginning. */
static int spill(struct spool *s)
{
    autoclose int fd = openat(s->all->folder, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : fd_write_full(fd, s->memory.data, s->memory.len);

    if (r < 0)
        return r;
    s->fd = TAKE_FD(fd);
    s->in_file = s->memory.len;
    s->all->bytes += s->in_file;
    buf_done(&s->memory);
    buf_init(&s->memory, LIMIT_SPOOL_MEMORY);
    return 0;
}

/* The disk is everybody's, and the record needs it most. */
static bool has_room(struct spool *s, size_t len)
{
    struct statvfs v;

    if (s->all->bytes + len > LIMIT_SPOOLS)
        return false;
    if (s->end < s->looked_at)
        return true;
    s->looked_at = s->end + LOOK_EVERY;
    return fstatvfs(s->all->folder, &v) < 0 || (uint64_t)v.f_bavail * v.f_frsize > SPOOL_RESERVE;
}

static int put(struct spool *s, const void *data, size_t len)
{
    if (s->fd < 0 && s->memory.len + len <= LIMIT_SPOOL_MEMORY) {
        buf_append(&s->memory, data, len);
        return s->memory.failed ? -ENOMEM : 0;
    }
    if (!has_room(s, len + s->memory.len))
        return -ENOSPC;
    if (s->fd < 0) {
        int r = spill(s);

        if (r < 0)
            return r;
    }
    s->in_file += len;
    s->all->bytes += len;
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
        keep_ends(s, stream, data, n);
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

bool spool_text(const struct spool *s, enum spool_stream stream, struct buf *out)
{
    const struct buf *head = &s->head[stream], *tail = &s->tail[stream];
    size_t n = tail->len < SPOOL_TAIL ? tail->len : SPOOL_TAIL;
    uint64_t missing = s->bytes[stream] - head->len - n;

    buf_append(out, head->len ? head->data : "", head->len);
    if (missing)
        buf_printf(out, "\n[... %llu bytes left out ...]\n", (unsigned long long)missing);
    buf_append(out, n ? tail->data + tail->len - n : "", n);
    return missing || s->dropped;
}
