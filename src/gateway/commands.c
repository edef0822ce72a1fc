/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that run a command, and what is asked of commands that run. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gateway/back_internal.h"
#include "sandbox/scope.h"

#define LIMIT_TRIES 3u
#define LOG_BYTES   (64u << 10) /* of a log at once, if no limit is asked for */
#define LOG_PIECES  8192u       /* however small they are */

/* ---- the stream ---- */

static void send_event(struct ask *a, json_t *e)
{
    char *text = json_text(e);

    json_decref(e);
    if (!text)
        return;
    a->on_the_way += strlen(text);
    link_send(&a->back->link, LINK_EVENT, a->id, text, strlen(text));
    free(text);
}

/* As many events as the client has room for; the answer behind the last of them. */
void command_pump(struct ask *a)
{
    struct job *j = a->watch.job;
    autofree char *data = malloc(LIMIT_SPOOL_PIECE);
    struct spool_piece p;
    int r = 0;

    while (data && a->on_the_way < LIMIT_LINK_WINDOW && !link_is_full(&a->back->link) &&
           (r = spool_get(&j->spool, a->place, &p, data)) > 0) {
        send_event(a, job_event(&p, data));
        a->place = p.next;
    }
    if (r < 0) /* it was told a place where nothing begins */
        a->place = j->spool.end;
    if (!j->is_over || a->place < j->spool.end)
        return;
    if (j->spool.dropped && !a->told_drop) {
        a->told_drop = true;
        send_event(a, json_pack("{s:I,s:s,s:I}", "seq", (json_int_t)a->place + 1, "type", "dropped",
                                "bytes", (json_int_t)j->spool.dropped));
    }
    if (j->answer)
        call_answer(a, j->answer_status, j->answer);
}

static void on_followed(struct job_watch *w)
{
    command_pump(OF(struct ask, watch, w));
}

void command_follow(struct ask *a, struct job *j, uint64_t place)
{
    struct spool_piece p;
    autofree char *data = malloc(LIMIT_SPOOL_PIECE);

    if (place > j->spool.end)
        place = j->spool.end;
    if (!data || spool_get(&j->spool, place, &p, data) < 0) {
        ask_refuse(a, 400, "invalid", "after: no event of this call has that number");
        return;
    }
    a->place = place;
    a->watch.on_news = on_followed;
    job_watch(j, &a->watch);
    if (place == 0)
        send_event(a, json_pack("{s:i,s:s,s:s}", "seq", 0, "type", "started", "call", j->id));
    command_pump(a);
}

/* ---- its end ---- */

/* What ran in the background: its end is recorded, though nobody waits for it. */
struct tail {
    struct job_watch watch;
    struct survey survey;
    struct back *back;
    char token[TOKEN_ID], call[CALL_ID], session[NAMES_SESSION];
};

static void tail_record(const struct tail *t, const char *state, json_t *receipt)
{
    autofree char *inside = json_inside(receipt);
    const struct guard_ended e = {.event = "process.end",
                                  .call = t->call,
                                  .token = t->token,
                                  .session = t->session,
                                  .tool = "exec",
                                  .state = state,
                                  .receipt = inside};
    struct error err;

    if (guard_record_end(t->back->guard, &e, &err) < 0)
        log_warn("%s", err.msg);
}

/* What whoever follows its stream is told at the end of that. */
static void tail_tell(struct job *j, json_t *receipt)
{
    json_t *body = json_object(), *shown = json_copy(receipt);
    char *text;

    (void)json_object_set_new(shown, "call", json_string(j->id));
    (void)json_object_set_new(body, "call", json_string(j->id));
    (void)json_object_set_new(body, "tool", json_string("exec"));
    (void)json_object_set_new(body, "session", json_string(j->session));
    (void)json_object_set_new(body, "result", job_result(j, true));
    (void)json_object_set_new(body, "receipt", shown);
    text = json_text(body);
    if (!text)
        abort();
    job_set_answer(j, 200, text);
    free(text);
    json_decref(body);
}

static void on_tail_known(struct survey *s)
{
    struct tail *t = OF(struct tail, survey, s);
    struct job *j = t->watch.job;
    json_t *receipt = job_receipt(j);

    tail_record(t, "done", receipt);
    tail_tell(j, receipt);
    json_decref(receipt);
    job_unwatch(&t->watch);
    free(t);
}

static void on_tail(struct job_watch *w)
{
    struct tail *t = OF(struct tail, watch, w);

    if (w->job->is_over)
        survey_start(&t->survey, t->back, w->job);
}

/* The gateway ends, and the command with it, unless that is over and only looked after. */
static void on_tail_gone(struct job_watch *w)
{
    struct tail *t = OF(struct tail, watch, w);
    json_t *receipt = t->survey.job ? job_receipt(t->survey.job) : NULL;

    survey_stop(&t->survey);
    tail_record(t, receipt ? "done" : "interrupted", receipt);
    json_decref(receipt);
    free(t);
}

static void watch_tail(const struct ask *a, struct job *j)
{
    struct tail *t = calloc(1, sizeof(*t));

    if (!t)
        abort();
    t->back = a->back;
    (void)snprintf(t->token, sizeof(t->token), "%s", a->token);
    (void)snprintf(t->call, sizeof(t->call), "%s", j->id);
    (void)snprintf(t->session, sizeof(t->session), "%s", j->session);
    t->survey = (struct survey){.worker = WORKER_NONE, .on_known = on_tail_known};
    t->watch.on_news = on_tail;
    t->watch.on_gone = on_tail_gone;
    job_watch(j, &t->watch);
}

static void on_own_known(struct survey *s)
{
    struct ask *a = OF(struct ask, survey, s);
    struct job *j = a->watch.job;
    struct error err;
    json_t *result = a->tool->kind == TOOL_WEB ? web_result(a, j, &err) : job_result(j, true);

    if (!result)
        call_fail(a, &err);
    else
        call_done(a, result, job_receipt(j));
}

static void on_own_news(struct job_watch *w)
{
    struct ask *a = OF(struct ask, watch, w);
    struct job *j = w->job;

    if (a->owns_job && j->is_over)
        survey_start(&a->survey, a->back, j); /* its stream, if it has one, goes on by itself */
    else if (a->is_stream && !a->is_gone)
        command_pump(a);
}

/* ---- its beginning ---- */

static void began(struct ask *a, struct job *j)
{
    if (j->background) {
        watch_tail(a, j);
        call_done(a, job_result(j, true), NULL);
        return;
    }
    a->owns_job = true;
    a->survey.on_known = on_own_known;
    a->watch.on_news = on_own_news;
    job_watch(j, &a->watch);
    if (a->is_stream)
        send_event(a, json_pack("{s:i,s:s,s:s}", "seq", 0, "type", "started", "call", j->id));
}

/* Which of the session's boxes it runs in. */
static unsigned box_of(const struct ask *a)
{
    return (a->pass->verdict.second_box ? BOX_NETWORK : 0u) | (a->pass->sibling ? BOX_SIBLING : 0u);
}

static void on_box(struct box_wait *w, struct job_box *box, const struct error *why)
{
    struct ask *a = OF(struct ask, wait, w);
    const struct verdict *v = &a->pass->verdict;
    char *shell[] = {(char *)"sh", (char *)"-lc", (char *)text_of(a->arguments, "command"), NULL};
    char **web = NULL;
    struct job_request q = {.pass = a->pass,
                            .arguments = a->arguments,
                            .argv = v->argv.n ? v->argv.argv
                                    : a->argv ? a->argv
                                              : shell,
                            .env = v->argv.n ? (char *const *)scope_routed_env : NULL,
                            .box = box,
                            .workspace = a->session->workspace};
    struct error err;
    struct job *j;
    int r = 0;

    if (why) {
        call_fail(a, why);
        return;
    }
    if (a->tool->kind == TOOL_WEB) {
        r = web_words(a, &web, &err);
        q.argv = web;
        q.workspace = -1; /* the words are ours, and write nothing */
        q.head = LIMIT_WEB_BYTES + 1;
        q.arguments = json_object_get(a->params, "run");
    }
    if (r >= 0)
        r = job_begin(a->back->jobs, &q, &j, &err);
    free(web);
    if (r == -ERR_NOT_FOUND && a->tries++ < LIMIT_TRIES) { /* somebody has ended the box */
        session_lost_box(a->session, box_of(a));
        session_box(a->session, box_of(a), &a->wait);
    } else if (r < 0) {
        call_fail(a, &err);
    } else {
        began(a, j);
    }
}

void command_run(struct ask *a)
{
    struct error err;

    if (a->tool->kind == TOOL_WEB && a->pass->verdict.route != ROUTE_NETWORK) {
        (void)error_set(&err, ERR_DENIED,
                        "%s: this session's calls of it have no network; networkAllow changes that",
                        a->tool->name);
        call_fail(a, &err);
        return;
    }
    a->wait.on_box = on_box;
    session_box(a->session, box_of(a), &a->wait);
}

/* ---- process ---- */

static json_t *process_line(const struct job *j)
{
    json_t *r = job_result(j, false);

    (void)json_object_set_new(r, "process", json_string(j->id));
    (void)json_object_set_new(r, "command",
                              tool_text(j->line ? j->line : "", strlen(j->line ? j->line : "")));
    (void)json_object_set_new(r, "background", json_boolean(j->background));
    return r;
}

/* What a box has not begun is not its business, though it is of its session. */
static bool may_see(const struct ask *a, const struct job *j)
{
    return !a->pass->sibling || strcmp(j->token, a->token) == 0;
}

static void process_list(struct ask *a)
{
    json_t *list = json_array();

    for (struct job *j = NULL; (j = jobs_next(a->back->jobs, a->pass->session, j));)
        if (may_see(a, j))
            (void)json_array_append_new(list, process_line(j));
    call_done(a, json_pack("{s:o}", "processes", list), NULL);
}

static void process_log(struct ask *a, struct job *j)
{
    json_t *limit = json_object_get(a->arguments, "limit"), *r = process_line(j);
    uint64_t at = (uint64_t)json_integer_value(json_object_get(a->arguments, "offset"));
    size_t most = limit ? (size_t)json_integer_value(limit) : LOG_BYTES;
    autofree char *data = malloc(LIMIT_SPOOL_PIECE);
    struct spool_piece p;
    struct error err;
    autobuf text;
    int n = 0;

    buf_init(&text, LIMIT_FILES_WRITE);
    for (unsigned pieces = 0; data && text.len < most && pieces < LOG_PIECES &&
                              (n = spool_get(&j->spool, at, &p, data)) > 0;
         pieces++) {
        buf_append(&text, data, p.len);
        at = p.next;
    }
    if (n < 0) {
        json_decref(r);
        (void)error_set(&err, ERR_INVALID,
                        "offset: give back the `next` of an earlier answer, or 0");
        call_fail(a, &err);
        return;
    }
    (void)json_object_set_new(r, "content", tool_text(text.data ? text.data : "", text.len));
    (void)json_object_set_new(r, "next", json_integer((json_int_t)at));
    (void)json_object_set_new(r, "more", json_boolean(at < j->spool.end));
    call_done(a, r, NULL);
}

static void on_poll_time(struct loop_timer *t)
{
    struct ask *a = OF(struct ask, poll, t);
    struct job *j = a->watch.job;

    job_unwatch(&a->watch);
    call_done(a, process_line(j), NULL);
}

static void on_polled(struct job_watch *w)
{
    if (w->job->is_over)
        on_poll_time(&OF(struct ask, watch, w)->poll);
}

static void process_poll(struct ask *a, struct job *j)
{
    double wait = json_number_value(json_object_get(a->arguments, "wait"));

    if (j->is_over || wait <= 0) {
        call_done(a, process_line(j), NULL);
        return;
    }
    a->watch.on_news = on_polled;
    a->poll.on_time = on_poll_time;
    job_watch(j, &a->watch);
    (void)loop_set_timer(a->back->loop, &a->poll, (uint64_t)(wait * 1e6));
}

static int signal_number(const char *name)
{
    const char *word = strncmp(name, "SIG", 3) == 0 ? name + 3 : name;

    for (int i = 1; i < 32; i++)
        if (sigabbrev_np(i) && strcmp(sigabbrev_np(i), word) == 0)
            return i;
    return 0;
}

static int process_change(struct ask *a, struct job *j, const char *action, struct error *err)
{
    json_t *data = json_object_get(a->arguments, "data");
    const char *name = text_of(a->arguments, "signal");
    int r = 0;

    if (strcmp(action, "write") == 0) {
        r = job_write(j, json_string_value(data) ? json_string_value(data) : "",
                      json_string_length(data), json_is_true(json_object_get(a->arguments, "eof")));
    } else if (strcmp(action, "resize") == 0) {
        r = job_resize(j, (uint16_t)json_integer_value(json_object_get(a->arguments, "rows")),
                       (uint16_t)json_integer_value(json_object_get(a->arguments, "cols")));
    } else if (!name || signal_number(name) == SIGKILL) {
        job_cancel(j, "it was killed by process kill");
    } else if (signal_number(name)) {
        job_signal(j, signal_number(name));
    } else {
        return error_set(err, ERR_INVALID, "signal '%.32s': there is none that is called so", name);
    }
    return r < 0 ? error_sys(err, r, "process %s", action) : 0;
}

void tool_process(struct ask *a)
{
    const char *action = text_of(a->arguments, "action"), *id = text_of(a->arguments, "process");
    struct job *j = id ? jobs_find(a->back->jobs, a->pass->session, id) : NULL;
    struct error err;

    if (strcmp(action, "list") == 0) {
        process_list(a);
    } else if (!j || !may_see(a, j)) {
        (void)error_set(&err, ERR_NOT_FOUND,
                        "process '%.64s': this session has none that is "
                        "called so",
                        id ? id : "");
        call_fail(a, &err);
    } else if (strcmp(action, "log") == 0) {
        process_log(a, j);
    } else if (strcmp(action, "poll") == 0) {
        process_poll(a, j);
    } else if (process_change(a, j, action, &err) < 0) {
        call_fail(a, &err);
    } else {
        call_done(a, process_line(j), NULL);
    }
}
