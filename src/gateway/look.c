/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that change nothing, but for the end of a session. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "gateway/back_internal.h"
#include "sandbox/scope.h"
#include "version.h"

#define READY_BYTES (1u << 20)

static size_t limit_of(const struct ask *a)
{
    json_int_t n = json_integer_value(json_object_get(a->params, "limit"));

    return n < 0 ? 1 : (size_t)n;
}

/* Who may not see all is shown a choice of more. */
static size_t asked_of(const struct ask *a, const struct identity *who)
{
    return who->bound->rights & RIGHT_ADMIN ? limit_of(a) : 1000;
}

/* Keeps what whoever asks may see, at most so many: each entry has its session in it. */
static json_t *visible(json_t *list, const struct identity *who, size_t most)
{
    json_t *kept = json_array(), *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        const char *session = text_of(one, "session"), *token = text_of(one, "token");

        if (json_array_size(kept) >= (most ? most : 100))
            break;
        if ((who->bound->rights & RIGHT_ADMIN) ||
            (session && session[0] ? guard_may(who, RIGHT_READ, session)
                                   : token && strcmp(token, who->token) == 0))
            (void)json_array_append(kept, one);
    }
    json_decref(list);
    return kept;
}

static int64_t ms_of(const struct ask *a, const char *name)
{
    json_t *v = json_object_get(a->params, name);

    return json_is_number(v) ? (int64_t)(json_number_value(v) * 1000) : 0;
}

void op_calls(struct ask *a, const struct identity *who)
{
    const struct store_filter f = {.session = text_of(a->params, "session"),
                                   .agent = text_of(a->params, "agent"),
                                   .tool = text_of(a->params, "tool"),
                                   .state = text_of(a->params, "state"),
                                   .since_ms = ms_of(a, "since"),
                                   .until_ms = ms_of(a, "until"),
                                   .limit = asked_of(a, who)};
    json_t *list = NULL;
    struct error err;

    if (store_calls(a->back->store, &f, &list, &err) < 0)
        ask_fail(a, &err);
    else
        ask_answer(a, 200, json_pack("{s:o}", "calls", visible(list, who, limit_of(a))));
}

void op_sessions(struct ask *a, const struct identity *who)
{
    json_t *list = NULL;
    struct error err;

    if (store_sessions(a->back->store, text_of(a->params, "agent"), limit_of(a), &list, &err) < 0)
        ask_fail(a, &err);
    else
        ask_answer(a, 200, json_pack("{s:o}", "sessions", visible(list, who, limit_of(a))));
}

/* Boxes whose label says that they are this session's alone. */
static int count_boxes(const char *key)
{
    struct box_record **list = NULL;
    struct error none;
    int n = 0;

    if (sandbox_list(&list, &none) < 0)
        return 0;
    for (size_t i = 0; list && list[i]; i++) {
        const char *of = scope_label(list[i], LABEL_SESSION);

        n += of && strcmp(of, key) == 0;
    }
    sandbox_list_free(list);
    return n;
}

void op_session_end(struct ask *a, const struct identity *who)
{
    char agent[NAMES_AGENT], key[NAMES_SESSION];
    struct guard_agent *settings;
    struct error err;
    int n, r = guard_names(who, NULL, text_of(a->params, "session"), agent, key, &err);

    if (r < 0 || !guard_may(who, RIGHT_RUN, key)) {
        ask_refuse(a, 404, "not_found", "there is no such session");
        return;
    }
    n = count_boxes(key);
    for (struct job *j = NULL; (j = jobs_next(a->back->jobs, key, j));)
        job_cancel(j, "its session was ended");
    r = guard_settings(a->back->guard, agent, &settings, &err);
    /* A box that other sessions work in stays. */
    if (r >= 0 && settings->policy.scope == SCOPE_SESSION) {
        r = sessions_end(a->back->sessions, agent, key);
        if (r < 0)
            r = error_sys(&err, r, "end the session");
    }
    if (r >= 0)
        r = store_session_remove(a->back->store, key, &err);
    if (r < 0 && r != -ERR_NOT_FOUND)
        ask_fail(a, &err);
    else
        ask_answer(a, 200, json_pack("{s:s,s:i}", "session", key, "boxes", n));
}

void op_boxes(struct ask *a, const struct identity *who)
{
    struct box_record **list = NULL;
    json_t *out = json_array();
    struct error err;

    if (sandbox_list(&list, &err) < 0) {
        json_decref(out);
        ask_fail(a, &err);
        return;
    }
    for (size_t i = 0; list && list[i]; i++) {
        const struct box_record *r = list[i];
        const char *key = scope_label(r, LABEL_SESSION);
        struct box_state s;

        if (!(who->bound->rights & RIGHT_ADMIN) && !(key && guard_may(who, RIGHT_READ, key)))
            continue;
        (void)json_array_append_new(
            out, json_pack("{s:s,s:s,s:s,s:s*,s:s,s:b,s:f}", "id", r->id, "name", r->name, "image",
                           r->image ? r->image : "", "scope", key, "network",
                           r->network ? r->network : "none", "running",
                           sandbox_state(r, &s, &err) >= 0 && s.running, "created",
                           (double)r->created_usec / 1e6));
    }
    sandbox_list_free(list);
    ask_answer(a, 200, json_pack("{s:o}", "boxes", out));
}

/* Reads up to 64 MiB of the record. */
static void work_audit(const void *arg, int out, int kept)
{
    const struct ask *a = arg;
    struct identity who;
    struct error err;
    bool more = false;
    json_t *list = NULL;

    if (guard_recall(a->back->guard, a->token, now_ms() / 1000, &who, &err) < 0) {
        search_fail(out, &err);
        return;
    }
    const struct records_filter f = {.session = text_of(a->params, "session"),
                                     .agent = text_of(a->params, "agent"),
                                     .event = text_of(a->params, "event"),
                                     .call = text_of(a->params, "call"),
                                     .tool = text_of(a->params, "tool"),
                                     .since = text_of(a->params, "since"),
                                     .until = text_of(a->params, "until"),
                                     .limit = asked_of(a, &who)};
    if (records_query(kept, &f, &list, &more, &err) < 0)
        search_fail(out, &err);
    else
        search_say(
            out, json_pack("{s:o,s:b}", "records", visible(list, &who, limit_of(a)), "more", more));
}

void op_audit(struct ask *a, const struct identity *who)
{
    (void)who;
    a->work = work_audit;
    a->work_fd = a->back->audit.dir;
    search_run(a);
}

void op_me(struct ask *a, const struct identity *who)
{
    static const enum right rights[] = {RIGHT_READ, RIGHT_RUN, RIGHT_ADMIN, RIGHT_APPROVE};
    json_t *sessions = json_array(), *list = json_array();
    char agent[NAMES_AGENT] = "", session[NAMES_SESSION] = "";
    struct error none;

    for (size_t i = 0; who->bound->sessions && who->bound->sessions[i]; i++)
        (void)json_array_append_new(sessions, json_string(who->bound->sessions[i]));
    for (size_t i = 0; i < sizeof(rights) / sizeof(*rights); i++)
        if (who->bound->rights & rights[i])
            (void)json_array_append_new(list, json_string(right_name(rights[i])));
    (void)guard_names(who, NULL, NULL, agent, session, &none);
    ask_answer(a, 200,
               json_pack("{s:s,s:s,s:o,s:o,s:s}", "token", who->token, "agent", who->bound->agent,
                         "sessions", sessions, "rights", list, "session", session));
}

void op_ready(struct ask *a, const struct identity *who)
{
    const char *fallback = config_fallback(guard_config(a->back->guard)->config);
    json_t *reasons = json_array();
    struct statvfs v;
    struct error err;
    bool ready;

    (void)who;
    if (a->back->is_draining)
        (void)json_array_append_new(reasons, json_string("the gateway is about to end"));
    if (store_flush(a->back->store, &err) < 0)
        (void)json_array_append_new(reasons, tool_text(err.msg, strlen(err.msg)));
    if (fstatvfs(a->back->audit.dir, &v) == 0 && (uint64_t)v.f_bavail * v.f_frsize < READY_BYTES)
        (void)json_array_append_new(
            reasons, json_string("the disk of the record is full: no call can be recorded"));
    ready = json_array_size(reasons) == 0;
    if (fallback) /* it works, with what it had */
        (void)json_array_append_new(reasons, tool_text(fallback, strlen(fallback)));
    ask_answer(
        a, ready ? 200 : 503,
        json_pack("{s:b,s:o,s:s}", "ready", ready, "reasons", reasons, "version", CLAWDEN_VERSION));
}

/* ---- metrics ---- */

static json_t *family(json_t *to, const char *name, const char *type, const char *help)
{
    json_t *samples = json_array();

    (void)json_array_append_new(to, json_pack("{s:s,s:s,s:s,s:o}", "name", name, "type", type,
                                              "help", help, "samples", samples));
    return samples;
}

static void sample(json_t *to, json_t *labels, double value)
{
    (void)json_array_append_new(
        to, json_pack("{s:o,s:f}", "labels", labels ? labels : json_object(), "value", value));
}

void op_metrics(struct ask *a, const struct identity *who)
{
    static const char *const outcomes[] = {"done", "denied", "failed"};
    const struct back *b = a->back;
    json_t *all = json_array(), *s;

    (void)who;
    s = family(all, "clawden_calls_total", "counter",
               "Calls that were answered, by tool and outcome.");
    for (size_t i = 0; i < n_tools && i < 32; i++)
        for (size_t k = 0; k < COUNT_KINDS && !tools[i].unlisted; k++)
            sample(s, json_pack("{s:s,s:s}", "tool", tools[i].name, "outcome", outcomes[k]),
                   (double)b->counts[i][k]);
    sample(family(all, "clawden_commands_running", "gauge", "Commands that run now."), NULL,
           (double)jobs_running(b->jobs));
    sample(family(all, "clawden_sessions_open", "gauge", "Sessions with an open workspace."), NULL,
           (double)sessions_count(b->sessions));
    sample(family(all, "clawden_boxes_made_total", "counter",
                  "Boxes that were made or found for sessions."),
           NULL, (double)sessions_boxes_made(b->sessions));
    sample(family(all, "clawden_wrong_tokens_total", "counter",
                  "Requests with a token that is none of ours."),
           NULL, (double)b->wrong_tokens);
    sample(family(all, "clawden_questions_waiting", "gauge", "Requests without an answer yet."),
           NULL, (double)b->n_asks);
    sample(family(all, "clawden_uptime_seconds", "gauge", "Since the gateway began."), NULL,
           (double)(loop_now(b->loop) - b->begun_usec) / 1e6);
    ask_answer(a, 200, json_pack("{s:o}", "metrics", all));
}

/* ---- session_status ---- */

void tool_status(struct ask *a)
{
    static const char *const names[SESSION_BOXES] = {
        [0] = "isolated",
        [BOX_NETWORK] = "network",
        [BOX_SIBLING] = "isolated sibling",
        [BOX_SIBLING | BOX_NETWORK] = "network sibling",
    };
    const struct session *s = a->session;
    const struct policy *p = &s->settings->policy;
    json_t *boxes = json_array();
    size_t running = 0;

    for (int i = 0; i < SESSION_BOXES; i++)
        if (s->boxes[i].box)
            (void)json_array_append_new(boxes, json_pack("{s:s,s:s,s:s}", "route", names[i], "name",
                                                         s->boxes[i].box->record->name, "network",
                                                         s->boxes[i].box->record->network
                                                             ? s->boxes[i].box->record->network
                                                             : "none"));
    for (struct job *j = NULL; (j = jobs_next(a->back->jobs, s->key, j));)
        running += !j->is_over;
    call_done(a,
              json_pack("{s:s,s:s,s:s,s:s,s:o,s:I,s:b}", "agent", s->agent, "session", s->key,
                        "workspace", s->mount, "scope",
                        p->scope == SCOPE_SESSION ? "session"
                        : p->scope == SCOPE_AGENT ? "agent"
                                                  : "shared",
                        "boxes", boxes, "processes", (json_int_t)running, "mayWrite",
                        a->pass->may_write),
              NULL);
}
