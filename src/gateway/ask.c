/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <errno.h>

#include "gateway/back_internal.h"

int64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct ask *ask_new(struct back *b, uint32_t id)
{
    struct ask *a = calloc(1, sizeof(*a));

    if (!a)
        return NULL;
    a->back = b;
    a->id = id;
    a->search = (struct worker)WORKER_NONE;
    a->survey.worker = (struct worker)WORKER_NONE;
    a->next = b->asks;
    a->back_link = &b->asks;
    if (a->next)
        a->next->back_link = &a->next;
    b->asks = a;
    b->n_asks++;
    return a;
}

void ask_free(struct ask *a)
{
    struct back *b = a->back;

    box_wait_stop(&a->wait);
    survey_stop(&a->survey);
    job_unwatch(&a->watch);
    loop_stop_timer(&a->poll);
    search_stop(a);
    *a->back_link = a->next;
    if (a->next)
        a->next->back_link = a->back_link;
    b->n_asks--;
    if (a->session)
        a->session->users--;
    if (a->rate)
        a->rate->waiting--;
    b->n_door_asks -= a->is_door;
    pass_free(a->pass);
    json_decref(a->params);
    free(a->argv);
    free(a);
    if (b->is_draining && !b->n_asks && b->on_drained)
        b->on_drained(b->drain_arg);
}

struct ask *ask_find(struct back *b, uint32_t id)
{
    for (struct ask *a = b->asks; a; a = a->next)
        if (a->id == id && !a->is_gone)
            return a;
    return NULL;
}

char *json_inside(json_t *object)
{
    char *text = object ? json_text(object) : NULL;
    size_t n = text ? strlen(text) : 0;

    if (n < 2)
        return text;
    memmove(text, text + 1, n - 2);
    text[n - 2] = 0;
    return text;
}

void ask_answer(struct ask *a, unsigned status, json_t *body)
{
    char *text = body ? json_text(body) : NULL;

    if (!a->is_gone) {
        if (text)
            link_answer(&a->back->link, a->id, status, text, strlen(text));
        else
            link_answer(&a->back->link, a->id, 500, "{\"error\":{\"code\":\"internal\"}}", 29);
    }
    free(text);
    json_decref(body);
    ask_free(a);
}

static json_t *error_body(const char *code, const char *message)
{
    json_t *e = json_object(), *body = json_object();

    (void)json_object_set_new(e, "code", json_string(code));
    (void)json_object_set_new(e, "message", tool_text(message, strlen(message)));
    (void)json_object_set_new(body, "error", e);
    return body;
}

void ask_refuse(struct ask *a, unsigned status, const char *code, const char *message)
{
    json_t *body = error_body(code, message);

    if (status == 429 || status == 503)
        (void)json_object_set_new(json_object_get(body, "error"), "retry_after", json_integer(1));
    if (a->call[0])
        (void)json_object_set_new(body, "call", json_string(a->call));
    ask_answer(a, status, body);
}

/* The one table: what went wrong → the status of HTTP. */
unsigned error_status(const struct error *err)
{
    if (err->sys == ESTALE)
        return 409;
    if (err->sys == EHOSTUNREACH)
        return 502;
    switch (err->code) {
    case ERR_INVALID:
        return 400;
    case ERR_DENIED:
        return 403;
    case ERR_NOT_FOUND:
        return 404;
    case ERR_EXISTS:
        return 409;
    case ERR_TOO_LARGE:
        return 413;
    case ERR_TIMEOUT:
        return 504;
    case ERR_UNSUPPORTED:
        return 501;
    case ERR_SYS:
        return err->sys == ENOENT                         ? 404
               : err->sys == EACCES || err->sys == EPERM  ? 403
               : err->sys == ENOSPC || err->sys == EDQUOT ? 507
               : err->sys == ENOTDIR || err->sys == EISDIR || err->sys == ELOOP ||
                       err->sys == EXDEV || err->sys == ENAMETOOLONG || err->sys == ENXIO ||
                       err->sys == ENOTTY
                   ? 400
               : err->sys == EPIPE || err->sys == ENOBUFS ? 409
                                                          : 500;
    case ERR_NONE:
        break;
    }
    return 500;
}

const char *error_word(const struct error *err)
{
    return err->sys == ESTALE         ? "changed"
           : err->sys == EHOSTUNREACH ? "unreachable"
                                      : error_code_name(err->code);
}

void ask_fail(struct ask *a, const struct error *err)
{
    ask_refuse(a, error_status(err), error_word(err), err->msg);
}
