/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a command wrote, in the order in which it came, for as many readers as there are: the first
 * LIMIT_SPOOL_MEMORY bytes in memory, then all of it in a file without a name, then nothing more,
 * and that is counted. Each piece has a place, a number that only grows: a reader that remembers
 * how far it got goes on from there and misses nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define LIMIT_SPOOL_MEMORY (64u << 10)
#define LIMIT_SPOOL        (64u << 20) /* of one command, with 8 bytes for each piece */
#define LIMIT_SPOOL_PIECE  (64u << 10)
#define LIMIT_SPOOLS       (2ull << 30)   /* files of all commands together */
#define SPOOL_RESERVE      (256ull << 20) /* free space of the disk that is left to others */
#define SPOOL_HEAD         (48u << 10)    /* of each stream, at hand for a result */
#define SPOOL_TAIL         (16u << 10)

enum spool_stream { SPOOL_OUT, SPOOL_ERR, SPOOL_STREAMS };

/* What all of them share. */
struct spools {
    int folder;     /* borrowed */
    uint64_t bytes; /* in files */
};

struct spool {
    struct spools *all;
    struct buf memory;
    int fd;       /* -1: still in memory */
    uint64_t end; /* the place behind the last piece */
    uint64_t in_file, looked_at;
    uint64_t bytes[SPOOL_STREAMS], dropped;
    /* The beginning and the end of each stream. */
    struct buf head[SPOOL_STREAMS], tail[SPOOL_STREAMS];
};

struct spool_piece {
    enum spool_stream stream;
    uint64_t at, next; /* its place, and that of the one behind it */
    size_t len;
};

/* `head`: how much of the beginning of each stream is kept at hand. */
void spool_init(struct spool *s, struct spools *all, size_t head);
void spool_done(struct spool *s);
void spool_add(struct spool *s, enum spool_stream stream, const char *data, size_t len);
/* The piece at this place, into `data`. 0: there is none (yet). -EINVAL: no piece begins there. */
int spool_get(const struct spool *s, uint64_t at, struct spool_piece *ret,
              char data[LIMIT_SPOOL_PIECE]);
/* One stream as text: whole if it has at most `head` and SPOOL_TAIL bytes, else its beginning and
 * its end with a line between them that says what is missing. True: something is. */
bool spool_text(const struct spool *s, enum spool_stream stream, struct buf *out);
