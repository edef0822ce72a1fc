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

#define LIMIT_SAID (2 * LIMIT_CHANGED_TEXT) /* what a worker says */

static void work_survey(const void *arg, int out, int kept)
{
    const struct job *j = arg;
    struct changes c = changes_since(kept, &j->begun, true);
    json_t *v = json_pack("{s:o,s:b}", "files", c.files, "cut", c.is_cut);
    char *text = v ? json_text(v) : NULL;

    if (text)
        (void)fd_write_full(out, text, strlen(text));
    free(text);
    json_decref(v);
}

static void known(struct survey *s)
{
    s->job = NULL;
    s->on_known(s); /* it may be gone now */
}

/* A worker that was killed has said nothing, or half of it. */
static void on_surveyed(struct worker *w)
{
    struct survey *s = OF(struct survey, worker, w);
    json_t *v = w->said.len ? json_loadb(w->said.data, w->said.len, 0, NULL) : NULL;
    json_t *files = json_object_get(v, "files");

    s->back->n_surveys--;
    if (files)
        job_set_changed(s->job,
                        (struct changes){.files = json_incref(files),
                                         .is_cut = json_is_true(json_object_get(v, "cut"))});
    json_decref(v);
    buf_done(&w->said);
    known(s);
}

void survey_start(struct survey *s, struct back *b, struct job *j)
{
    struct changes c;
    int fd = j->workspace;

    if (s->job)
        return;
    s->back = b;
    s->job = j;
    if (fd < 0) {
        known(s);
        return;
    }
    c = changes_since(fd, &j->begun, false);
    s->worker.on_end = on_surveyed;
    if (c.is_worth_again && b->n_surveys < LIMIT_CHANGED_WALKS &&
        worker_start(&s->worker, b->loop, LIMIT_SAID, fd, work_survey, j) >= 0) {
        b->n_surveys++;
        job_set_changed(j, c);
        return;
    }
    job_set_changed(j, c);
    known(s);
}

void survey_stop(struct survey *s)
{
    if (s->worker.pid)
        s->back->n_surveys--;
    worker_stop(&s->worker);
    s->job = NULL;
}
