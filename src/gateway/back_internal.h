/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of the back share. */
#include <jansson.h>

#include "audit/audit.h"
#include "base/error.h"
#include "gateway/back.h"
#include "gateway/doors.h"
#include "gateway/link.h"
#include "gateway/sessions.h"
#include "guard/guard.h"
#include "json/put.h"
#include "store/store.h"
#include "tool/jobs.h"
#include "tool/tool.h"

struct cookie {
    char digest[65];
    char token[TOKEN_ID];
    int64_t expires; /* seconds; 0: free */
};

struct code {
    char text[33];
    int64_t expires;
};

/* Wrong tokens of one address; two that share a place count together. */
struct peer {
    uint64_t minute;
    unsigned wrong;
};

struct rate {
    char token[TOKEN_ID];
    uint64_t second;
    unsigned n, waiting; /* questions in that second; without an answer yet */
};

enum counted { COUNT_DONE, COUNT_DENIED, COUNT_FAILED, COUNT_KINDS };

struct back {
    struct loop *loop;
    struct link link;
    struct audit audit;
    struct guard *guard;
    struct store *store;
    struct jobs *jobs;
    struct doors *doors; /* or NULL */
    struct sessions *sessions;
    int data, spool;
    char mcp_key[65];
    struct ask *asks; /* newest first */
    size_t n_asks, n_door_asks, n_searches, n_surveys;
    struct cookie cookies[LIMIT_COOKIES];
    struct code codes[LIMIT_CODES];
    struct peer peers[LIMIT_PEERS];
    struct rate rates[LIMIT_RATES];
    struct loop_timer tick, flush;
    uint64_t counts[32][COUNT_KINDS]; /* by place in the table of tools */
    uint64_t wrong_tokens, begun_usec;
    bool is_draining, metrics_are_open, is_local;
    void (*on_ready)(void *arg);
    void *ready_arg;
    void (*on_drained)(void *arg);
    void *drain_arg;
};

/* Finds out what a command has changed, once it is over. Embedded in whoever tells its end. */
struct survey {
    struct back *back;
    struct job *job; /* NULL: nothing is looked at */
    struct worker worker;
    void (*on_known)(struct survey *s); /* the job knows it now, and its receipt has it */
};

/* One question, until it is answered; longer, if what it began goes on. */
struct ask {
    struct back *back;
    struct ask *next, **back_link;
    uint32_t id;
    bool is_gone; /* nobody waits for the answer */
    bool is_door; /* it came out of a box, and is counted so */
    char token[TOKEN_ID];
    struct rate *rate; /* where it is counted, or NULL */
    char cookie[65];   /* the digest of the cookie it came with, or "" */
    json_t *params;
    /* a call */
    const struct tool *tool;
    json_t *arguments;
    struct pass *pass;
    char call[CALL_ID];
    bool is_ended;          /* the call is; its stream may go on */
    bool is_keyed, is_twin; /* twin: the answer of another one's call is this one's too */
    struct session *session;
    struct box_wait wait;
    unsigned tries; /* boxes that were gone when they were needed */
    char **argv;    /* words of the client's own, for an exec; texts are borrowed */
    /* a stream, or a wait for a command */
    struct job_watch watch;
    bool is_stream, owns_job; /* owns: the command ends with the question */
    uint64_t place;           /* in the spool */
    size_t on_the_way;        /* bytes of events that the front has not passed on */
    bool told_drop;
    struct survey survey;
    struct loop_timer poll;
    /* what takes its time, in a process of its own */
    struct worker search;
    void (*work)(const void *ask, int out, int kept);
    int work_fd; /* borrowed */
    bool waits_to_search;
};

/* NULL: it has none of that name, or no text. */
static inline const char *text_of(json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* ---- ask.c ---- */
struct ask *ask_new(struct back *b, uint32_t id);
void ask_free(struct ask *a);
struct ask *ask_find(struct back *b, uint32_t id);
/* All of them end the question (and free it, unless it goes on without a client). */
void ask_answer(struct ask *a, unsigned status, json_t *body); /* takes body */
void ask_fail(struct ask *a, const struct error *err);
void ask_refuse(struct ask *a, unsigned status, const char *code, const char *message);
unsigned error_status(const struct error *err);
const char *error_word(const struct error *err);
int64_t now_ms(void);
/* What the store was told is in the file soon: others of this user write it too. */
void store_soon(struct back *b);

/* What stands between an object's braces; to be freed; NULL. */
char *json_inside(json_t *object);

/* ---- calls.c ---- */
void op_call(struct ask *a, const struct identity *who);
void op_events(struct ask *a, const struct identity *who);
void op_look(struct ask *a, const struct identity *who);
void op_cancel(struct ask *a, const struct identity *who);
/* The call of this question has come to its end: record, remember, answer. Takes result and
 * receipt (which may be NULL). */
void call_done(struct ask *a, json_t *result, json_t *receipt);
void call_fail(struct ask *a, const struct error *err);
/* Sends it, after the last event if it is a stream's, and ends the question. */
void call_answer(struct ask *a, unsigned status, const char *text);
/* The client went away. */
void call_gone(struct ask *a);
void call_on_taken(struct ask *a, size_t n);

/* ---- search.c ---- */
/* Has a->work done in a process of its own, a few of them at once. It says what search_say() or
 * search_fail() say, and that is the call's result, or the answer if it is no call. */
void search_run(struct ask *a);
/* Ends it, or its wait. */
void search_stop(struct ask *a);
void search_say(int out, json_t *value); /* takes it */
void search_fail(int out, const struct error *err);

/* ---- survey.c ---- */
/* on_known() comes now or later, once; until then the job has to be watched. Nothing to do when it
 * is looked at already. */
void survey_start(struct survey *s, struct back *b, struct job *j);
/* on_known() will not come; the job knows what was seen so far. */
void survey_stop(struct survey *s);

/* ---- commands.c ---- */
void command_run(struct ask *a);
/* A stream of what the command writes, from a place on; then its answer. */
void command_follow(struct ask *a, struct job *j, uint64_t place);
void command_pump(struct ask *a);
void tool_process(struct ask *a);

/* ---- web.c ---- */
int web_words(struct ask *a, char ***ret, struct error *err);
json_t *web_result(struct ask *a, const struct job *j, struct error *err);

/* ---- approvals.c ---- */
void op_approvals(struct ask *a, const struct identity *who);
void op_approve(struct ask *a, const struct identity *who);
/* The answer of the client's own user, if the call brings one: before it is admitted. */
void approval_take(struct ask *a, const struct identity *who);
/* One line for the client's own user, if he can be asked and may answer; NULL. */
json_t *approval_question(const struct ask *a, const struct identity *who, const struct denial *d);

/* ---- look.c ---- */
void op_calls(struct ask *a, const struct identity *who);
void op_sessions(struct ask *a, const struct identity *who);
void op_session_end(struct ask *a, const struct identity *who);
void op_boxes(struct ask *a, const struct identity *who);
void op_audit(struct ask *a, const struct identity *who);
void op_me(struct ask *a, const struct identity *who);
void op_ready(struct ask *a, const struct identity *who);
void op_metrics(struct ask *a, const struct identity *who);
void tool_status(struct ask *a);
