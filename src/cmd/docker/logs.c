/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"
#include "cmd/docker/docker.h"
#include "cmd/docker/flags.h"
#include "engine/tty.h"
#include "sandbox/sandbox.h"

enum { G_FOLLOW, G_TAIL, G_OTHER };

static const struct flag rows[] = {
    {"follow", 'f', G_FOLLOW, NULL, "go on until the box ends"},
    {"tail", 'n', G_TAIL, "N|all", "only the last lines"},
    {"timestamps", 't', G_OTHER, NULL, NULL},
    {"since", 0, G_OTHER, "TIME", NULL},
    {"until", 0, G_OTHER, "TIME", NULL},
    {"details", 0, G_OTHER, NULL, NULL},
};

struct options {
    bool follow;
    long tail; /* -1: all */
};

static int on_flag(void *arg, const struct flags *f)
{
    struct options *o = arg;
    char *end;

    if (f->flag->id == G_FOLLOW) {
        o->follow = f->on;
    } else if (f->flag->id == G_TAIL) {
        o->tail = strtol(f->value, &end, 10);
        if (strcmp(f->value, "all") == 0 || o->tail < 0)
            o->tail = -1;
        else if (*end || !f->value[0])
            return flags_bad(f, "invalid value for \"tail\": %s", f->value);
    } else {
        (void)say_daemon(
            "--%s is not supported by ClawDen: the log holds what was written, not when",
            f->flag->name);
        return -1;
    }
    return 0;
}

/* The offset of the last `lines` lines, looked for from the end. */
static off_t find_tail(int fd, off_t size, long lines)
{
    static char block[LIMIT_STREAM_CHUNK];
    off_t at = size;

    while (at > 0) {
        size_t n = at < (off_t)sizeof(block) ? (size_t)at : sizeof(block);
        ssize_t got = pread(fd, block, n, at - (off_t)n);

        if (got != (ssize_t)n)
            return 0;
        for (size_t i = n; i-- > 0;)
            if (block[i] == '\n' && at - (off_t)n + (off_t)i != size - 1 && --lines <= 0)
                return at - (off_t)n + (off_t)i + 1;
        at -= (off_t)n;
    }
    return 0;
}

/* Everything from where fd is; the number of bytes, or negative when nobody reads any more. */
static long copy_rest(int fd)
{
    static char block[TTY_FILTER_ROOM + LIMIT_STREAM_CHUNK];
    static struct tty_filter filter;
    const bool to_person = isatty(STDOUT_FILENO);
    long all = 0;

    for (;;) {
        ssize_t n = fd_read_full(fd, block, LIMIT_STREAM_CHUNK);
        /* A terminal is not to be commanded by what a box has written. */
        size_t out = n > 0 && to_person ? tty_filter_apply(&filter, block, (size_t)n) : (size_t)n;

        if (n < 0 || fd_write_full(STDOUT_FILENO, block, out) < 0)
            return -1;
        all += n;
        if (n < (ssize_t)LIMIT_STREAM_CHUNK)
            return all;
    }
}

static int show_log(const struct box_record *r, int fd, const struct options *o)
{
    static const struct timespec pause = {.tv_nsec = 50000000};
    struct box_state s;
    struct error err;
    struct stat st;
    bool running;

    if (fstat(fd, &st) < 0)
        return say_daemon("read the log: %s", strerror(errno));
    if (o->tail == 0)
        (void)lseek(fd, 0, SEEK_END);
    else if (o->tail > 0)
        (void)lseek(fd, find_tail(fd, st.st_size, o->tail), SEEK_SET);
    do {
        /* Asked before reading: what is written before the end is there when we look. */
        running = o->follow && sandbox_state(r, &s, &err) >= 0 && s.running;
        if (copy_rest(fd) < 0)
            return 1;
        if (running)
            (void)nanosleep(&pause, NULL);
    } while (running);
    return 0;
}

int cmd_logs(int argc, char **argv)
{
    struct flags f = {.verb = "logs",
                      .usage = "CONTAINER",
                      .rows = rows,
                      .n_rows = sizeof(rows) / sizeof(*rows),
                      .argc = argc,
                      .argv = argv};
    struct options o = {.tail = -1};
    autoptr(box_record) r = NULL;
    autoclose int fd = -1;
    struct error err;

    if (!flags_read(&f, 1, 1, on_flag, &o))
        return f.status;
    r = say_find(f.words[0]);
    if (!r)
        return 1;
    fd = sandbox_open_log(r, &err);
    if (fd < 0)
        return err.code == ERR_NOT_FOUND ? 0
                                         : say_daemon("%s", err.msg); /* nothing was written yet */
    return show_log(r, fd, &o);
}
