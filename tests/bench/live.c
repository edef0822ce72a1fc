/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands in a live box by the library, as a caller does it that stays: the box is looked up once,
 * then each command is a connection of its own. The command has our descriptors 0-2, as the bare
 * programs have.
 */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "sandbox/life.h"

static struct {
    struct box_record *record;
    struct hold hold;
    char **env;
} found;

static void drop_library_cases(struct bench *b)
{
    for (size_t i = 0; i < b->n_cases; i++)
        if (b->cases[i].launcher == LAUNCH_LIVE || b->cases[i].launcher == LAUNCH_LIVE_CAPTURED)
            b->cases[i].every = 0;
}

void live_find(struct bench *b)
{
    struct error err;
    int r;

    if (!b->box)
        return;
    found.hold = (struct hold)HOLD_EMPTY;
    r = sandbox_find(b->box, &found.record, &err);
    if (r >= 0)
        r = hold_open(found.record, false, &found.hold, &err);
    if (r < 0) {
        fail(b, "FAILED live box '%s': %s", b->box, err.msg);
        drop_library_cases(b);
        return;
    }
    found.env = exec_environment(found.record, NULL, found.record->home, false);
}

/* The last word of a command; false if it did not end well. */
static bool ended_well(struct box *box)
{
    struct box_event e;
    struct error err;

    if (box->ops->next_event(box, &e, &err) < 0) {
        failure_text(err.msg);
        return false;
    }
    if (e.kind == BOX_EXITED && e.status == 0)
        return true;
    if (e.kind == BOX_EXITED)
        failure_status(e.status);
    else
        failure_text(e.kind == BOX_FAILED ? strerror(e.sys) : "the box is gone");
    return false;
}

static struct box *start(char *const *argv, int out)
{
    struct box_exec what = {.argv = argv,
                            .env = found.env,
                            .cwd = "/",
                            .stdio = {STDIN_FILENO, out, STDERR_FILENO},
                            .leave = true,
                            .uid = found.record->uid,
                            .gid = found.record->gid};
    struct box *box = NULL;
    struct error err;
    int r = engine_native.attach(found.hold.folder, &found.hold.last.live, &box, &err);

    if (r >= 0)
        r = box->ops->exec(box, &what, &err);
    if (r >= 0)
        return box;
    failure_text(err.msg);
    if (box)
        box->ops->destroy(box);
    return NULL;
}

double live_run(struct bench *b, const struct bench_case *c)
{
    double began = now_usec();
    struct box *box = start(c->argv, STDOUT_FILENO);
    bool ok = box && ended_well(box);

    (void)b;
    if (box)
        box->ops->destroy(box);
    return ok ? now_usec() - began : -1;
}

/* Reads until the pipe is at its end and the command has ended, in whichever order. */
static bool carry(struct box *box, int from)
{
    struct pollfd p[] = {{.fd = from, .events = POLLIN}, {.fd = box->control_fd, .events = POLLIN}};
    char text[4096];
    bool ok = true;

    while (p[0].fd >= 0 || p[1].fd >= 0) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return false;
        if (p[0].revents && read(from, text, sizeof(text)) <= 0)
            p[0].fd = -1;
        if (p[1].revents) {
            ok = ended_well(box);
            p[1].fd = -1;
        }
    }
    return ok;
}

double live_run_captured(struct bench *b, const struct bench_case *c)
{
    double began = now_usec();
    struct box *box;
    bool ok = false;
    int fds[2];

    (void)b;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    box = start(c->argv, fds[1]);
    (void)close(fds[1]);
    if (box) {
        ok = carry(box, fds[0]);
        box->ops->destroy(box);
    }
    (void)close(fds[0]);
    return ok ? now_usec() - began : -1;
}
