/* SPDX-License-Identifier: Apache-2.0 */
/* Questions whose answer has to be looked for: others do not wait meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "gateway/back_internal.h"

#define LIMIT_SEARCH (16u << 20) /* what one may say */

enum { SAYS_ERROR = 'E', SAYS_VALUE = 'V' };

static void say(int out, char kind, const void *data, size_t len)
{
    if (len < LIMIT_SEARCH && fd_write_full(out, &kind, 1) >= 0)
        (void)fd_write_full(out, data, len);
}

void search_say(int out, json_t *value)
{
    char *text = json_text(value);

    if (text)
        say(out, SAYS_VALUE, text, strlen(text));
    free(text);
    json_decref(value);
}

void search_fail(int out, const struct error *err)
{
    say(out, SAYS_ERROR, err, sizeof(*err));
}

static void search_next(struct back *b);

/* The value is the call's result, or the whole answer. */
static void found(struct ask *a, const char *text, size_t len)
{
    json_t *v;

    if (!a->pass) {
        if (!a->is_gone)
            link_answer(&a->back->link, a->id, 200, text, len);
        ask_free(a);
        return;
    }
    v = json_loadb(text, len, 0, NULL);
    if (!v)
        abort(); /* we have written it ourselves */
    call_done(a, v, NULL);
}

static void on_searched(struct worker *w)
{
    struct ask *a = OF(struct ask, search, w);
    struct error err;

    a->back->n_searches--;
    search_next(a->back);
    if (w->said.len > 1 && w->said.data[0] == SAYS_VALUE && !w->said.failed) {
        found(a, w->said.data + 1, w->said.len - 1);
        return;
    }
    if (w->said.len == 1 + sizeof(err) && w->said.data[0] == SAYS_ERROR)
        memcpy(&err, w->said.data + 1, sizeof(err));
    else
        (void)error_set(&err, ERR_TOO_LARGE, "the answer is too large: ask for less");
    if (a->pass)
        call_fail(a, &err);
    else
        ask_fail(a, &err);
}

/* Half of them are at work for this token: the rest is for others. */
static bool has_share(const struct ask *a)
{
    unsigned n = 0;

    for (const struct ask *b = a->back->asks; b; b = b->next)
        n += b->search.pid && strcmp(b->token, a->token) == 0;
    return n >= LIMIT_SEARCHES / 2;
}

void search_run(struct ask *a)
{
    struct back *b = a->back;
    struct error err;
    int r;

    a->waits_to_search = b->n_searches >= LIMIT_SEARCHES || has_share(a);
    if (a->waits_to_search)
        return;
    a->search.on_end = on_searched;
    r = worker_start(&a->search, b->loop, LIMIT_SEARCH, a->work_fd, a->work, a);
    if (r >= 0) {
        b->n_searches++;
        return;
    }
    (void)error_sys(&err, r, "start a process that searches");
    if (a->pass)
        call_fail(a, &err);
    else
        ask_fail(a, &err);
}

/* The one that has waited longest. */
static void search_next(struct back *b)
{
    struct ask *oldest = NULL;

    for (struct ask *a = b->asks; a; a = a->next)
        if (a->waits_to_search && !has_share(a))
            oldest = a;
    if (oldest)
        search_run(oldest);
}

void search_stop(struct ask *a)
{
    bool was = a->search.pid != 0;

    a->waits_to_search = false;
    worker_stop(&a->search);
    if (was) {
        a->back->n_searches--;
        search_next(a->back);
    }
}
