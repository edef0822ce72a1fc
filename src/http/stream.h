/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How the bytes of a connection come and go: plain, or through TLS (tls.h). The server knows no
 * more of it than this, and waits on the descriptor for whatever the stream says it waits for.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct http_stream_ops;

struct http_stream {
    const struct http_stream_ops *ops;
    int fd;
    void *state; /* of the ops */
    /* What epoll is asked for when reading, or writing, has said -EAGAIN. */
    uint32_t read_events, write_events;
};

/* A read takes at least HTTP_STREAM_READ bytes at once, so that no TLS record is left half read in
 * a place that epoll does not see. */
#define HTTP_STREAM_READ (16u << 10)

struct http_stream_ops {
    /* fd, read_events and write_events are set; `context` is that of the listener. -errno. */
    int (*open)(struct http_stream *s, void *context);
    /* How many bytes; 0 at the end; -EAGAIN; -errno. Never a signal. */
    ssize_t (*read)(struct http_stream *s, void *data, size_t size);
    ssize_t (*write)(struct http_stream *s, const void *data, size_t len);
    /* Tells the peer that nothing more is written. */
    void (*finish)(struct http_stream *s);
    /* Releases `state`; the descriptor is the caller's to close. */
    void (*close)(struct http_stream *s);
};

extern const struct http_stream_ops http_plain;
