/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command has changed in its workspace, for its receipt: a quick look on the loop, which is
 * all that a small workspace needs; then, if that did not see all, a thorough one by a worker, for
 * which the answer waits. Who finds all workers busy is told what the quick look saw, and that it
 * is not all.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/limits.h"
#include "gateway/back_internal.h"

#define LIMIT_SEEN (2 * LIMIT_CHANGED_TEXT) /* what a worker says */

static void work_look(const void *arg, int out, int kept)
{
    const struct job *j = arg;
    struct changes c = changes_since(kept, &j->begun, true);
    json_t *v = json_pack("{s:o,s:b}", "files", c.files, "cut", c.is_cut);
    char *text = v ? json_dumps(v, DUMP) : NULL;

    if (text)
        (void)fd_write_full(out, text, strlen(text));
    free(text);
    json_decref(v);
}

static void seen(struct look *l)
{
    l->job = NULL;
    l->on_seen(l); /* it may be gone now */
}

/* A worker that was killed has said nothing, or half of it. */
static void on_looked(struct worker *w)
{
    struct look *l = OF(struct look, worker, w);
    json_t *v = w->said.len ? json_loadb(w->said.data, w->said.len, 0, NULL) : NULL;
    json_t *files = json_object_get(v, "files");

    l->back->n_looks--;
    if (files)
        job_set_changed(l->job,
                        (struct changes){.files = json_incref(files),
                                         .is_cut = json_is_true(json_object_get(v, "cut"))});
    json_decref(v);
    buf_done(&w->said);
    seen(l);
}

void look_start(struct look *l, struct back *b, struct job *j)
{
    struct changes c;
    int fd = j->workspace;

    if (l->job)
        return;
    l->back = b;
    l->job = j;
    if (fd < 0) {
        seen(l);
        return;
    }
    c = changes_since(fd, &j->begun, false);
    l->worker.on_end = on_looked;
    if (c.is_worth_again && b->n_looks < LIMIT_CHANGED_WALKS &&
        worker_start(&l->worker, b->loop, LIMIT_SEEN, fd, work_look, j) >= 0) {
        b->n_looks++;
        job_set_changed(j, c);
        return;
    }
    job_set_changed(j, c);
    seen(l);
}

void look_stop(struct look *l)
{
    if (l->worker.pid)
        l->back->n_looks--;
    worker_stop(&l->worker);
    l->job = NULL;
}
