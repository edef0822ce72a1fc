/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of a front that was taken over, as the back's link reads them: frames that keep the rules
 * come out as they went in, however they were cut; the first that does not ends the link, and
 * nothing comes out after it.
 */
#include "gateway/link.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

struct reader {
    struct link link;
    const uint8_t *data;
    size_t size, at; /* where the next frame must begin */
    bool closed;
};

static void on_frame(struct link *l, enum link_kind kind, uint32_t id, const char *data, size_t len)
{
    struct reader *r = (struct reader *)l;
    uint32_t wanted, wanted_id;

    PROPERTY(!r->closed && len <= LIMIT_LINK_FRAME && r->at + 9 + len <= r->size,
             "a frame of nothing");
    memcpy(&wanted, r->data + r->at, 4);
    memcpy(&wanted_id, r->data + r->at + 4, 4);
    PROPERTY(wanted == len && wanted_id == id && r->data[r->at + 8] == (uint8_t)kind,
             "another head");
    PROPERTY(memcmp(data, r->data + r->at + 9, len) == 0 && data[len] == 0, "another payload");
    r->at += 9 + len;
}

static struct loop *the_loop;

static void on_closed(struct link *l, const char *why)
{
    struct reader *r = (struct reader *)l;

    (void)why;
    PROPERTY(!r->closed, "it ends twice");
    r->closed = true;
    loop_quit(the_loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader r = {
        .link = {.on_frame = on_frame, .on_closed = on_closed}, .data = data, .size = size};
    int pair[2];

    if (size > 65536 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
        return 0;
    PROPERTY(loop_new(&the_loop) >= 0, "no loop");
    PROPERTY(write(pair[1], data, size) == (ssize_t)size || size == 0, "not sent");
    (void)close(pair[1]);
    PROPERTY(link_open(&r.link, the_loop, pair[0]) >= 0, "no link");
    PROPERTY(loop_run(the_loop) >= 0, "the loop failed");
    PROPERTY(r.closed, "it does not end");
    link_close(&r.link);
    loop_free(the_loop);
    return 0;
}
