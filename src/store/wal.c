/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk along store.db-wal, as in section 4 of SQLite's file format: a header of 32 bytes, then
 * frames of 24 bytes and a page, each with a checksum that goes on from the one before. SQLite
 * stops at the first frame that is not right and forgets what follows; here it is noticed.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/internal.h"

#define WAL_MAGIC    0x377f0682u /* its lowest bit: checksums are of big-endian words */
#define WAL_HEADER   32
#define FRAME_HEADER 24
#define PAGE_MAX     65536u
#define GENERATIONS  65536u /* rounds that an old frame may lie behind: each adds 1 to salt 1 */

struct sum {
    bool big;
    uint32_t a, b;
};

static uint32_t word(const unsigned char *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return be32toh(v);
}

static void sum_add(struct sum *s, const unsigned char *p, size_t len)
{
    for (size_t i = 0; i + 8 <= len; i += 8) {
        uint32_t x = word(p + i), y = word(p + i + 4);

        s->a += (s->big ? x : __builtin_bswap32(x)) + s->b;
        s->b += (s->big ? y : __builtin_bswap32(y)) + s->a;
    }
}

static bool sum_is(const struct sum *s, const unsigned char *p)
{
    return s->a == word(p) && s->b == word(p + 4);
}

/* The frames after a good header. What an earlier round left behind its last frame is no damage. */
static bool frames_are_torn(int fd, off_t size, const unsigned char *head, struct sum *sum)
{
    static unsigned char frame[FRAME_HEADER + PAGE_MAX];
    size_t page = word(head + 8), n = FRAME_HEADER + page;

    if (page < 512 || page > PAGE_MAX || page & (page - 1))
        return true;
    for (off_t at = WAL_HEADER; at < size; at += (off_t)n) {
        uint32_t behind;

        if (pread(fd, frame, n, at) != (ssize_t)n)
            return true;
        behind = word(head + 16) - word(frame + 8);
        if (behind && behind < GENERATIONS && word(frame + 12) != word(head + 20))
            return false;
        sum_add(sum, frame, 8);
        sum_add(sum, frame + FRAME_HEADER, page);
        if (memcmp(frame + 8, head + 16, 8) != 0 || !sum_is(sum, frame + 16))
            return true;
    }
    return false;
}

bool wal_is_torn(int data)
{
    autoclose int fd = openat(data, DB_NAME "-wal", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    unsigned char head[WAL_HEADER];
    struct stat st;
    struct sum sum = {0};

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size == 0 || st.st_size > (off_t)LIMIT_WAL_CHECKED)
        return false;
    if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
        (word(head) & ~1u) != WAL_MAGIC)
        return true;
    sum.big = word(head) & 1;
    sum_add(&sum, head, 24);
    return !sum_is(&sum, head + 24) || frames_are_torn(fd, st.st_size, head, &sum);
}
