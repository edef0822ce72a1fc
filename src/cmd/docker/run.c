/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cmd/docker/create.h"
#include "cmd/docker/docker.h"
#include "cmd/docker/outcome.h"
#include "cmd/docker/request.h"
#include "cmd/docker/run.h"
#include "sandbox/sandbox.h"

void run_remove(const struct box_record *r)
{
    struct error err;

    if (sandbox_remove(r, true, &err) < 0)
        say_note("%s: the box stays", err.msg);
}

static int run_detached(const struct box_record *r)
{
    struct error err;
    int status;

    if (sandbox_start(r, &err) >= 0) {
        puts(r->id);
        return 0;
    }
    status = outcome_of_start(&err, "docker: " OUTCOME_CREATE, r->command[0], r->workdir);
    if (!status)
        return say_refused("%s", err.msg);
    puts(r->id); /* the box is there, and stays unless it was to be removed */
    return status;
}

int run_attached(const struct box_record *r, bool interactive, const char *before,
                 bool *ret_started)
{
    struct run_result res = {0};
    struct error err;

    *ret_started = false;
    if (r->tty && interactive && !isatty(STDIN_FILENO)) {
        (void)fprintf(stderr, "the input device is not a TTY\n");
        return 1;
    }
    if (sandbox_run(r, interactive, r->tty, &res, &err) < 0)
        return say_refused("%s", err.msg);
    *ret_started = res.started;
    return outcome_status(&res, before, r->command[0], r->workdir);
}

int cmd_run(int argc, char **argv)
{
    struct request q = {.run = true};
    bool started;
    int status = 0;

    say_for_run();
    if (create_box(&q, argc, argv, &status) >= 0) {
        status = q.detach ? run_detached(q.record)
                          : run_attached(q.record, q.record->open_stdin, "docker: " OUTCOME_CREATE,
                                         &started);
        /* A detached box removes itself when it ends, or the next docker does. */
        if (q.record->auto_remove && (!q.detach || status))
            run_remove(q.record);
    }
    request_done(&q);
    return status;
}
