/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call from its question to its answer.
 *
 * The order is what makes it true: the guard's verdict is in the audit, then the call is in the
 * store (with its key, so that it never runs twice), then something happens, then its end is in
 * both, then the client hears of it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/sha256.h"
#include "gateway/back_internal.h"
#include "policy/words.h"

#define SMALL_WRITE (1u << 20)  /* bytes that are written at once */
#define KEPT_RESULT (64u << 10) /* of a call without a key */

/* ---- its end ---- */

static void count(struct ask *a, enum call_state state)
{
    enum counted k = state == CALL_DENIED ? COUNT_DENIED
                     : state == CALL_DONE ? COUNT_DONE
                                          : COUNT_FAILED;
    size_t i = (size_t)(a->tool - tools);

    if (i < sizeof(a->back->counts) / sizeof(*a->back->counts))
        a->back->counts[i][k]++;
}

/* What was only looked at has its one record, in the audit. */
static bool is_quiet(const struct ask *a)
{
    return a->tool->read_only && !a->is_keyed;
}

static void remember(struct ask *a, enum call_state state, unsigned status, const char *text,
                     json_t *receipt)
{
    size_t len = strlen(text), most = a->is_keyed ? LIMIT_RESULT : KEPT_RESULT;
    struct error err;
    char *inside = NULL;

    if (is_quiet(a))
        return;
    if (store_end(a->back->store, a->call, state, (int)status, len > most ? NULL : text,
                  len > most ? 0 : len, now_ms(), &err) < 0)
        log_warn("%s", err.msg);
    store_soon(a->back);
    if (state == CALL_DENIED)
        return;
    inside = json_inside(receipt);
    const struct guard_ended e = {.event = "call.end",
                                  .call = a->call,
                                  .token = a->token,
                                  .session = a->pass->session,
                                  .tool = a->tool->name,
                                  .state = call_state_name(state),
                                  .status = (int)status,
                                  .receipt = inside};
    if (guard_record_end(a->back->guard, &e, &err) < 0)
        log_warn("%s: the end of call %s is not recorded", err.msg, a->call);
    free(inside);
}

/* The last event of a stream has the answer in it. */
static void send_end_event(struct ask *a, unsigned status, const char *text, size_t len)
{
    struct buf e;

    buf_init(&e, len + 128);
    buf_printf(&e, "{\"seq\":%llu,\"type\":\"end\",\"status\":%u,",
               (unsigned long long)a->place + 1 + a->told_drop, status);
    buf_append(&e, text + 1, len - 1);
    if (!e.failed && len > 2)
        link_send(&a->back->link, LINK_EVENT, a->id, e.data, e.len);
    buf_done(&e);
}

void call_answer(struct ask *a, unsigned status, const char *text)
{
    size_t len = strlen(text);

    if (!a->is_gone) {
        if (a->is_stream)
            send_end_event(a, status, text, len);
        link_answer(&a->back->link, a->id, status, text, len);
    }
    ask_free(a);
}

/* Others who asked for the same call get the same answer; who follows its stream, at the end of
 * that. */
static void answer_twins(struct back *b, const char *call, unsigned status, const char *text)
{
    struct ask *next;

    for (struct ask *a = b->asks; a; a = next) {
        next = a->next;
        if (a->is_twin && !a->watch.job && strcmp(a->call, call) == 0)
            call_answer(a, status, text);
    }
}

static void call_end(struct ask *a, enum call_state state, unsigned status, json_t *body,
                     json_t *receipt)
{
    char *text = json_text(body);
    struct job *j = a->watch.job;

    if (!text)
        abort();
    a->is_ended = true;
    count(a, state);
    remember(a, state, status, text, receipt);
    answer_twins(a->back, a->call, status, text);
    if (j)
        job_set_answer(j, status, text);
    if (j && a->is_stream && !a->is_gone) {
        a->owns_job = false; /* from here on it only follows */
        command_pump(a);
    } else {
        call_answer(a, status, text);
    }
    json_decref(body);
    free(text);
}

void call_done(struct ask *a, json_t *result, json_t *receipt)
{
    json_t *body = json_object(), *kept = receipt ? receipt : json_object(), *shown;

    if (!receipt)
        (void)json_object_set_new(kept, "wallSeconds",
                                  json_real((double)(now_ms() - a->pass->begun_ms) / 1e3));
    shown = json_copy(kept);
    (void)json_object_set_new(shown, "call", json_string(a->call));
    (void)json_object_set_new(body, "call", json_string(a->call));
    (void)json_object_set_new(body, "tool", json_string(a->tool->name));
    (void)json_object_set_new(body, "session", json_string(a->pass->session));
    (void)json_object_set_new(body, "result", result);
    (void)json_object_set_new(body, "receipt", shown);
    call_end(a, CALL_DONE, 200, body, kept);
    json_decref(kept);
}

void call_fail(struct ask *a, const struct error *err)
{
    json_t *body = json_object(), *e = json_object();

    (void)json_object_set_new(e, "code", json_string(error_word(err)));
    (void)json_object_set_new(e, "message", tool_text(err->msg, strlen(err->msg)));
    (void)json_object_set_new(body, "call", json_string(a->call));
    (void)json_object_set_new(body, "error", e);
    call_end(a, CALL_FAILED, error_status(err), body, NULL);
}

static void call_deny(struct ask *a, const struct identity *who, const struct denial *d)
{
    json_t *body = json_object(), *e = json_object(), *question = approval_question(a, who, d);

    (void)json_object_set_new(e, "op", json_string(d->op));
    (void)json_object_set_new(e, "target", tool_text(d->target, strlen(d->target)));
    (void)json_object_set_new(e, "rule", json_string(d->rule));
    (void)json_object_set_new(e, "reason", tool_text(d->reason, strlen(d->reason)));
    (void)json_object_set_new(e, "key", json_string(d->key));
    (void)json_object_set_new(e, "final", json_boolean(d->final));
    if (d->approval[0])
        (void)json_object_set_new(e, "approval", json_string(d->approval));
    (void)json_object_set_new(body, "call", json_string(d->call));
    (void)json_object_set_new(body, "denied", e);
    if (question)
        (void)json_object_set_new(body, "ask", question);
    call_end(a, CALL_DENIED, 403, body, NULL);
}

/* ---- the same call again ---- */

static int request_hash(const struct ask *a, char ret[65], struct error *err)
{
    json_t *what = json_object();
    char *text;

    (void)json_object_set_new(what, "tool", json_string(a->tool->name));
    (void)json_object_set(what, "arguments", a->arguments);
    (void)json_object_set(what, "agent", json_object_get(a->params, "agent"));
    (void)json_object_set(what, "session", json_object_get(a->params, "session"));
    /* 17 digits are all that a number has: another number is another request. */
    text = json_dumps(what, JSON_COMPACT | JSON_REAL_PRECISION(17) | JSON_SORT_KEYS);
    json_decref(what);
    if (!text) /* two requests must not be one */
        return error_sys(err, -ENOMEM, "read the call");
    sha256_hex(text, strlen(text), ret);
    free(text);
    return 0;
}

static json_t *interrupted_body(const char *call)
{
    return json_pack("{s:s,s:s,s:{s:s,s:s}}", "call", call, "state", "interrupted", "error", "code",
                     "interrupted", "message",
                     "the gateway ended while this call ran: what it had started was killed with "
                     "it, and how far it came is not known");
}

/* What is known of a call that is over; `running` if it is not. */
static void answer_found(struct ask *a, const struct store_call *c)
{
    const struct job *j = c->result ? NULL : jobs_find(a->back->jobs, NULL, c->id);

    (void)snprintf(a->call, sizeof(a->call), "%s", c->id);
    if (c->state == CALL_INTERRUPTED) {
        json_t *body = interrupted_body(c->id);
        char *text = json_text(body);

        json_decref(body);
        call_answer(a, 500, text);
        free(text);
    } else if (c->result) {
        call_answer(a, (unsigned)c->status, c->result);
    } else if (c->state != CALL_RUNNING && j && j->answer) { /* too large to be kept for long */
        call_answer(a, j->answer_status, j->answer);
    } else {
        /* Running, but not here: of another program of this user; or its end could not be kept. */
        ask_answer(a, c->state == CALL_RUNNING ? 409 : 410,
                   json_pack("{s:s,s:s}", "call", c->id, "state", call_state_name(c->state)));
    }
}

/* The question that this call belongs to, while it is at work here. */
static struct ask *find_owner(struct back *b, const char *call)
{
    for (struct ask *a = b->asks; a; a = a->next)
        if (a->pass && !a->is_twin && !a->is_ended && strcmp(a->call, call) == 0)
            return a;
    return NULL;
}

/* True: this call was made before, and is answered from what is known of it. */
static bool answer_again(struct ask *a, const char *key, const char *request)
{
    auto_found found = {0};
    struct error err;

    if (store_find_key(a->back->store, a->token, key, &found, &err) < 0)
        return false;
    if (strcmp(found.call.request, request) != 0) {
        ask_refuse(a, 422, "key_reused",
                   "this id was used for another call: a new call needs a new one");
        return true;
    }
    if (found.call.state == CALL_RUNNING && find_owner(a->back, found.call.id)) {
        struct job *j = jobs_find(a->back->jobs, NULL, found.call.id);

        (void)snprintf(a->call, sizeof(a->call), "%s", found.call.id);
        a->is_twin = true;
        if (a->is_stream && j)
            command_follow(a, j, 0);
        return true;
    }
    answer_found(a, &found.call);
    return true;
}

/* ---- a call ---- */

static int words_of_client(struct ask *a, struct error *err)
{
    json_t *list = json_object_get(a->arguments, "argv");
    size_t n = json_array_size(list);

    if (!list)
        return 0;
    a->argv = calloc(n + 1, sizeof(*a->argv));
    if (!a->argv)
        return error_sys(err, -ENOMEM, "read the words");
    for (size_t i = 0; i < n; i++)
        a->argv[i] = (char *)json_string_value(json_array_get(list, i));
    return 0;
}

static unsigned right_of(const struct ask *a)
{
    static const char *const looks[] = {"list", "poll", "log"};
    const char *action = text_of(a->arguments, "action");

    for (size_t i = 0; a->tool->kind == TOOL_PROCESS && action && i < 3; i++)
        if (strcmp(action, looks[i]) == 0)
            return RIGHT_READ;
    return a->tool->read_only && a->tool->kind != TOOL_WEB ? RIGHT_READ : RIGHT_RUN;
}

static int admit(struct ask *a, const struct identity *who, const char *key, const char *request,
                 struct denial *denial, struct error *err)
{
    autofree char *quoted = a->argv ? words_quote(a->argv) : NULL;
    const char *line = text_of(a->arguments, "command");
    char target[TOOL_TARGET];
    const struct guard_wish wish = {.tool = a->tool->name,
                                    .agent = text_of(a->params, "agent"),
                                    .session = text_of(a->params, "session"),
                                    .command = line ? line : quoted,
                                    .target = tool_target(a->tool, a->arguments, target),
                                    .key = key,
                                    .request = request,
                                    .arguments = a->arguments,
                                    .right = right_of(a),
                                    .detached =
                                        json_is_true(json_object_get(a->arguments, "background")),
                                    .looks = is_quiet(a),
                                    .now_ms = now_ms()};

    if (a->argv && !quoted)
        return error_set(err, ERR_TOO_LARGE, "argv: more than %u bytes", (unsigned)LIMIT_ARG_BYTES);
    return guard_admit(a->back->guard, who, &wish, &a->pass, denial, err);
}

/* In the store before anything happens. */
static int begin(struct ask *a, const struct denial *d, const char *key, const char *request,
                 struct error *err)
{
    char target[TOOL_TARGET];
    struct store_call c = {.key = key,
                           .token = a->token,
                           .agent = a->pass ? a->pass->agent : "",
                           .session = a->pass ? a->pass->session : "",
                           .tool = a->tool->name,
                           .target = tool_target(a->tool, a->arguments, target),
                           .state = CALL_RUNNING,
                           .begun_ms = now_ms()};
    int r;

    (void)snprintf(a->call, sizeof(a->call), "%s", a->pass ? a->pass->call : d->call);
    (void)snprintf(c.id, sizeof(c.id), "%s", a->call);
    (void)snprintf(c.request, sizeof(c.request), "%s", request);
    store_soon(a->back);
    r = is_quiet(a) ? 0 : store_begin(a->back->store, &c, NULL, err);
    if (r >= 0 && a->pass)
        r = store_session(a->back->store, a->pass->session, a->pass->agent, a->token, c.begun_ms,
                          err);
    return r;
}

/* It was admitted, but cannot be kept: so much is recorded. */
static void record_failed(struct ask *a)
{
    const struct guard_ended e = {.event = "call.end",
                                  .call = a->call,
                                  .token = a->token,
                                  .session = a->pass ? a->pass->session : "",
                                  .tool = a->tool->name,
                                  .state = "failed",
                                  .status = 503};
    struct error none;

    (void)guard_record_end(a->back->guard, &e, &none);
}

static void run_files(struct ask *a)
{
    struct files_root root;
    json_t *result = NULL;
    struct error err;

    session_root(a->session, &root);
    if (tool_files(a->pass, a->tool, &root, a->arguments, &result, &err) < 0)
        call_fail(a, &err);
    else
        call_done(a, result, NULL);
}

static void work_search(const void *arg, int out, int kept)
{
    const struct ask *a = arg;
    struct files_root root;
    json_t *result = NULL;
    struct error err;

    session_root(a->session, &root);
    root.fd = kept;
    if (tool_files(a->pass, a->tool, &root, a->arguments, &result, &err) < 0)
        search_fail(out, &err);
    else
        search_say(out, result);
}

static void run_search(struct ask *a)
{
    a->work = work_search;
    a->work_fd = a->session->workspace;
    search_run(a);
}

static bool takes_time(const struct ask *a)
{
    const char *name = a->tool->name;

    /* How long an edit or a patch takes, the file says, and that is not known yet. */
    return strcmp(name, "find") == 0 || strcmp(name, "grep") == 0 || strcmp(name, "edit") == 0 ||
           strcmp(name, "apply_patch") == 0 ||
           json_string_length(json_object_get(a->arguments, "content")) > SMALL_WRITE ||
           (strcmp(name, "ls") == 0 && json_is_true(json_object_get(a->arguments, "recursive")));
}

static void run_tool(struct ask *a)
{
    struct error err;

    if (session_get(a->back->sessions, a->pass, &a->session, &err) < 0) {
        call_fail(a, &err);
        return;
    }
    a->session->users++;
    switch (a->tool->kind) {
    case TOOL_FILES:
        if (takes_time(a))
            run_search(a);
        else
            run_files(a);
        break;
    case TOOL_EXEC:
    case TOOL_WEB:
        command_run(a);
        break;
    case TOOL_PROCESS:
        tool_process(a);
        break;
    case TOOL_STATUS:
        tool_status(a);
        break;
    }
}

static bool is_key(const char *key)
{
    size_t n = strlen(key);

    if (n == 0 || n > LIMIT_CALL_ID)
        return false;
    for (size_t i = 0; i < n; i++)
        if (key[i] <= ' ' || key[i] > '~')
            return false;
    return true;
}

static int read_call(struct ask *a, struct error *err)
{
    static const char *const texts[] = {"tool", "agent", "session", "key"};
    const char *name = text_of(a->params, "tool"), *key = text_of(a->params, "key");

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        json_t *v = json_object_get(a->params, texts[i]);

        if (v && !json_is_string(v))
            return error_set(err, ERR_INVALID, "%s: a text is needed", texts[i]);
    }
    a->tool = name ? tool_find(name) : NULL;
    if (!a->tool)
        return error_set(err, ERR_NOT_FOUND, "tool '%.64s': there is none that is called so",
                         name ? name : "");
    if (key && !is_key(key))
        return error_set(err, ERR_INVALID, "id: 1 to %u printable characters without blanks",
                         LIMIT_CALL_ID);
    a->is_keyed = key != NULL;
    a->is_stream = json_is_true(json_object_get(a->params, "stream"));
    a->arguments = json_object_get(a->params, "arguments");
    if (!a->arguments) {
        a->arguments = json_object();
        (void)json_object_set_new(a->params, "arguments", a->arguments);
    }
    return tool_check(a->tool, a->arguments, err);
}

void op_call(struct ask *a, const struct identity *who)
{
    struct denial denial;
    char request[65];
    const char *key;
    struct error err;
    int r = read_call(a, &err);

    if (r >= 0)
        r = words_of_client(a, &err);
    if (r < 0) {
        ask_fail(a, &err);
        return;
    }
    key = text_of(a->params, "key");
    if (request_hash(a, request, &err) < 0) {
        ask_fail(a, &err);
        return;
    }
    if (key && answer_again(a, key, request))
        return;
    if (a->back->is_draining) {
        ask_refuse(a, 503, "draining", "the gateway is about to end");
        return;
    }
    approval_take(a, who);
    r = admit(a, who, key, request, &denial, &err);
    if (r == 0 && !denial.final) /* the same call may come again, and run */
        key = NULL;
    if (r >= 0 && begin(a, &denial, key, request, &err) < 0) {
        record_failed(a);
        r = -1;
    }
    if (r < 0 && err.code == ERR_SYS) /* not recorded: ours, not the caller's fault */
        ask_refuse(a, 503, "unavailable", err.msg);
    else if (r < 0)
        ask_fail(a, &err);
    else if (r == 0)
        call_deny(a, who, &denial);
    else
        run_tool(a);
}

/* ---- leaving ---- */

static bool has_twin(const struct ask *a)
{
    for (const struct ask *b = a->back->asks; b; b = b->next)
        if (b->is_twin && !b->is_gone && strcmp(b->call, a->call) == 0)
            return true;
    return false;
}

/* Whatever it waits for that is not a command of its own. */
static void stop_waiting(struct ask *a)
{
    box_wait_stop(&a->wait);
    search_stop(a);
    loop_stop_timer(&a->poll);
    job_unwatch(&a->watch);
}

/* ---- looking at a call ---- */

/* Fills `found`, if whoever asks may know of it; else answers. */
static bool find_call(struct ask *a, const struct identity *who, struct store_found *found)
{
    const char *id = text_of(a->params, "call");
    struct error err;

    if (id && store_find(a->back->store, id, found, &err) >= 0 &&
        (strcmp(found->call.token, who->token) == 0 ||
         (!who->bound->is_door && found->call.session[0] &&
          guard_may(who, RIGHT_READ, found->call.session))))
        return true;
    ask_refuse(a, 404, "not_found", "there is no such call");
    return false;
}

void op_look(struct ask *a, const struct identity *who)
{
    auto_found found = {0};

    if (!find_call(a, who, &found))
        return;
    if (found.call.state == CALL_RUNNING)
        ask_answer(a, 202, json_pack("{s:s,s:s}", "call", found.call.id, "state", "running"));
    else
        answer_found(a, &found.call);
}

void op_events(struct ask *a, const struct identity *who)
{
    json_t *after = json_object_get(a->params, "after");
    auto_found found = {0};
    struct job *j;

    if (!find_call(a, who, &found))
        return;
    a->is_stream = true;
    j = jobs_find(a->back->jobs, NULL, found.call.id);
    (void)snprintf(a->call, sizeof(a->call), "%s", found.call.id);
    a->is_twin = found.call.state == CALL_RUNNING && find_owner(a->back, found.call.id);
    a->place = after ? (uint64_t)json_integer_value(after) : 0; /* numbers grow, whatever comes */
    if (j) {
        command_follow(a, j, a->place);
    } else if (!a->is_twin) {
        answer_found(a, &found.call);
    }
}

void op_cancel(struct ask *a, const struct identity *who)
{
    auto_found found = {0};
    struct ask *owner;
    struct error err;
    struct job *j;
    bool runs;

    if (!find_call(a, who, &found))
        return;
    if (!guard_may(who, RIGHT_RUN, found.call.session)) {
        ask_refuse(a, 403, "denied", "the token may look, but not end a call");
        return;
    }
    j = jobs_find(a->back->jobs, NULL, found.call.id);
    owner = find_owner(a->back, found.call.id);
    runs = j ? !j->is_over : owner != NULL;
    if (j)
        job_cancel(j, "it was cancelled");
    else if (owner) {
        stop_waiting(owner);
        (void)error_set(&err, ERR_TIMEOUT, "it was cancelled before it was done");
        call_fail(owner, &err);
    }
    ask_answer(a, 200, json_pack("{s:s,s:b}", "call", found.call.id, "cancelled", runs));
}

/* ---- the client's side ---- */

void call_gone(struct ask *a)
{
    struct error err;

    if (a->pass && !a->is_ended && has_twin(a)) { /* another client waits for the same answer */
        a->is_gone = true;
    } else if (a->owns_job && a->watch.job) { /* its end is recorded all the same */
        a->is_gone = true;
        job_cancel(a->watch.job, "its client went away");
    } else if (a->pass && !a->is_ended) {
        a->is_gone = true;
        stop_waiting(a);
        (void)error_set(&err, ERR_TIMEOUT, "its client went away before it was done");
        call_fail(a, &err);
    } else {
        struct ask *owner = a->is_twin ? find_owner(a->back, a->call) : NULL;

        ask_free(a);
        if (owner && owner->is_gone && !has_twin(owner)) /* that was the last who waited */
            call_gone(owner);
    }
}

void call_on_taken(struct ask *a, size_t n)
{
    a->on_the_way -= n < a->on_the_way ? n : a->on_the_way;
    if (a->is_stream && a->watch.job)
        command_pump(a);
}
