/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine that only pretends, for tests of what stands above: no process is made. What the
 * command would have done is said by its words:
 *
 *   exit N | signal N | fail ERRNO | print TEXT (then exit 0) | hang (until killed)
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "engine/engine.h"

struct fake_box {
    struct box box; /* first */
    int inner;      /* where events come from */
    bool dead;
};

static int fake_start(const struct box_spec *spec, struct box **ret, struct error *err)
{
    struct fake_box *f = calloc(1, sizeof(*f));
    int p[2];

    (void)spec;
    if (!f)
        abort();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p) < 0) {
        free(f);
        return error_sys(err, -errno, "make the control socket");
    }
    f->box.ops = &engine_fake;
    f->box.control_fd = p[0];
    f->inner = p[1];
    (void)snprintf(f->box.id, sizeof(f->box.id), "%064d", 0);
    *ret = &f->box;
    return 0;
}

static int fake_exec(struct box *b, const struct box_exec *what, struct error *err)
{
    struct fake_box *f = (struct fake_box *)b;
    const char *verb = what->argv[0], *word = what->argv[1] ? what->argv[1] : "0";
    int n = (int)strtol(word, NULL, 10), r;
    struct box_event e = {.kind = BOX_STARTED, .pty_fd = -1};

    if (strcmp(verb, "fail") == 0) {
        e = (struct box_event){.kind = BOX_FAILED, .pty_fd = -1, .sys = n, .at = "execute"};
        r = fd_send(f->inner, &e, sizeof(e), NULL, 0);
        return r < 0 ? error_sys(err, r, "pretend") : 0;
    }
    r = fd_send(f->inner, &e, sizeof(e), NULL, 0);
    if (r < 0 || strcmp(verb, "hang") == 0)
        return r < 0 ? error_sys(err, r, "pretend") : 0;
    if (strcmp(verb, "print") == 0) {
        (void)fd_write_full(what->stdio[1], word, strlen(word));
        n = 0;
    }
    e = (struct box_event){
        .kind = BOX_EXITED, .pty_fd = -1, .status = strcmp(verb, "signal") == 0 ? n : n << 8};
    r = fd_send(f->inner, &e, sizeof(e), NULL, 0);
    return r < 0 ? error_sys(err, r, "pretend") : 0;
}

static int fake_settle(struct box *b, struct error *err)
{
    (void)b;
    (void)err;
    return 0;
}

static int fake_next_event(struct box *b, struct box_event *ret, struct error *err)
{
    ssize_t n = fd_recv(b->control_fd, ret, sizeof(*ret), NULL, 0);

    if (n == 0)
        *ret = (struct box_event){.kind = BOX_GONE, .pty_fd = -1};
    else if (n != (ssize_t)sizeof(*ret))
        return error_sys(err, n < 0 ? (int)n : -EBADMSG, "read an event");
    return 0;
}

static int fake_signal(struct box *b, int signo)
{
    struct box_event e = {.kind = BOX_EXITED, .pty_fd = -1, .status = signo};

    return fd_send(((struct fake_box *)b)->inner, &e, sizeof(e), NULL, 0);
}

static int fake_usage(struct box *b, struct box_usage *ret)
{
    (void)b;
    *ret = (struct box_usage){0};
    return 0;
}

static int fake_kill(struct box *b)
{
    struct fake_box *f = (struct fake_box *)b;

    close_fd(&f->inner);
    f->dead = true;
    return 0;
}

static void fake_destroy(struct box *b)
{
    struct fake_box *f = (struct fake_box *)b;

    close_fd(&f->inner);
    close_fd(&f->box.control_fd);
    free(f);
}

const struct engine_ops engine_fake = {
    .name = "fake",
    .start = fake_start,
    .exec = fake_exec,
    .settle = fake_settle,
    .next_event = fake_next_event,
    .signal = fake_signal,
    .usage = fake_usage,
    .ask_end = fake_kill,
    .kill = fake_kill,
    .destroy = fake_destroy,
};
