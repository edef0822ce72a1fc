/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One direction of a byte stream between the caller and a box.
 *
 * A box never gets the caller's own file, pipe or terminal as a descriptor: through /proc/self/fd
 * it could open it again, against its direction, with more rights than it was given. It gets a pipe
 * of its own (or a terminal), and we carry the bytes. Only /dev/null passes as it is.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"

struct tty_filter;

struct stream {
    int from, to; /* -1: this end is done */
    bool own_from, own_to;
    char *data; /* LIMIT_STREAM_CHUNK bytes, made on first use */
    uint32_t start, end;
    uint64_t bytes;            /* carried so far */
    struct tty_filter *filter; /* what goes to a terminal, or NULL */
};

#define STREAM_EMPTY         \
    {                        \
        .from = -1, .to = -1 \
    }

/* May this descriptor of the caller's be handed to a box as it is? */
bool stream_can_pass(int fd);

bool stream_is_done(const struct stream *r);
/* The poll entry that this stream waits for; fd -1 if it waits for nothing. */
struct pollfd stream_wants(const struct stream *r);
/* Moves what can be moved, at most `allowance` more bytes; -errno only if the stream is broken. */
int stream_move(struct stream *r, uint64_t allowance);
void stream_done(struct stream *r);
