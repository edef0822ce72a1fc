/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the gateway remembers: sessions, calls with their results, receipts, and approvals, in
 * store.db of the data folder (SQLite, WAL, 0600). The audit is the record, this is its index and
 * its memory of results: if the file is lost or broken it is made anew from the audit, without
 * results and approvals.
 *
 * ST1: a call that has a key is in the file before store_begin() returns (a killed process loses
 *      nothing that SQLite has been given; the machine's power is another matter).
 * ST2: a call without a key, and ends of calls without one, may wait for store_flush(): many small
 *      writes become one transaction.
 * ST3: (token, key) is there once. Who comes second gets -ERR_EXISTS and the first one's call.
 *
 * Several processes may have it open (a gateway, `clawden mcp`). While writes wait nobody else can
 * write: store_flush() before going to sleep. A store is not to be used after fork().
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct error;
struct store;

#define STORE_CALL    33u          /* 32 hex digits and NUL */
#define LIMIT_CALL_ID 128u         /* bytes of a client's own key */
#define LIMIT_RESULT  (4u << 20)   /* bytes of one result as it is kept; larger ones are not */
#define LIMIT_CALLS   100000u      /* calls that are kept; the oldest go */
#define LIMIT_KEPT    (512u << 20) /* bytes of results that are kept; the oldest go first */

enum call_state {
    CALL_RUNNING,
    CALL_DONE,        /* it ran, whatever came of it: the result says */
    CALL_DENIED,      /* the guard refused it */
    CALL_FAILED,      /* it could not be run; the result is the error */
    CALL_INTERRUPTED, /* the gateway ended meanwhile: what it had started was killed with it */
};
const char *call_state_name(enum call_state s);

struct store_call {
    char id[STORE_CALL];
    const char *key;   /* the client's own, or NULL */
    char request[65];  /* SHA-256 of what was asked for: the same key must mean the same */
    const char *token; /* its id */
    const char *agent, *session, *tool, *target;
    enum call_state state;
    int64_t begun_ms, ended_ms;
    int status;         /* HTTP's, of the answer */
    const char *result; /* JSON text, or NULL: there is none (yet), or it was too large */
    size_t result_len;
};
/* Of calls that were read: their texts belong to one block. */
struct store_found {
    struct store_call call;
    char *text;
};
void store_found_done(struct store_found *f);
#define auto_found cleanup_(store_found_done) struct store_found

/*
 * `data` is the data folder, borrowed during the call. A file of somebody else's, or a link, is
 * refused. A broken file is moved aside (store.db.bad-N); calls that the audit has and the file has
 * not are filled in, without their results: both is said in *ret_note (to be freed; NULL: nothing
 * to say). When another process has the file open, it is neither moved nor filled in.
 */
int store_open(int data, struct store **ret, char **ret_note, struct error *err);
void store_free(struct store *s);
DEFINE_AUTOPTR(store)
/* What waits is written. Cheap if nothing does. */
int store_flush(struct store *s, struct error *err);

/* -ERR_EXISTS: the key is taken; *ret (if not NULL) is who has it. A call that has ended already
 * (it was refused) brings its state, status, end and result along. */
int store_begin(struct store *s, const struct store_call *c, struct store_found *ret,
                struct error *err);
/* Once: a call that has ended is -ERR_INVALID, one that is not there -ERR_NOT_FOUND. */
int store_end(struct store *s, const char *id, enum call_state state, int status,
              const char *result, size_t len, int64_t ended_ms, struct error *err);
/* -ERR_NOT_FOUND. */
int store_find(struct store *s, const char *id, struct store_found *ret, struct error *err);
/* By the client's own key. -ERR_NOT_FOUND. */
int store_find_key(struct store *s, const char *token, const char *key, struct store_found *ret,
                   struct error *err);
/* Calls that still run according to the file, but whose process is gone. Each is marked
 * CALL_INTERRUPTED and told to `fn` (which may be NULL, and may not use the store). */
int store_interrupt(struct store *s, int64_t now_ms,
                    void (*fn)(void *arg, const struct store_call *c), void *arg,
                    struct error *err);

/* Newest first: [{"call","key"?,"token","agent","session","tool","target","state","begun","ended"?,
 * "status"?}], times in milliseconds. It reads LIMIT_CALLS rows at most. */
struct store_filter {
    const char *session, *agent, *token, *tool, *state; /* NULL: any */
    int64_t since_ms, until_ms;                         /* 0: any */
    size_t limit;                                       /* 0: 100; at most 1000 */
};
int store_calls(struct store *s, const struct store_filter *f, json_t **ret, struct error *err);

/* ---- sessions ---- */

/* Makes or updates it, once for each call: it counts them. Waits for store_flush(). */
int store_session(struct store *s, const char *key, const char *agent, const char *token,
                  int64_t now_ms, struct error *err);
/* [{"session","agent","created","used","calls"}], newest use first, times in milliseconds; agent
 * NULL: all. */
int store_sessions(struct store *s, const char *agent, size_t limit, json_t **ret,
                   struct error *err);
/* Its calls stay. -ERR_NOT_FOUND. */
int store_session_remove(struct store *s, const char *key, struct error *err);

/* ---- approvals: calls that wait for a person's yes, and what he said ---- */

#define APPROVAL_ID           17u    /* 16 hex digits and NUL */
#define APPROVAL_MS           600000 /* a question, and then its answer, is good for so long */
#define LIMIT_APPROVALS       1024u  /* that are kept at once, answered or not ... */
#define LIMIT_TOKEN_APPROVALS 64u    /* ... and of one token: a page that a person can read */
#define APPROVAL_TEXT         512u   /* bytes of each text, with NUL; longer ones are cut ... */
#define APPROVAL_ARGUMENTS    4096u  /* ... and of what the call wants */

enum approval_state { APPROVAL_PENDING, APPROVAL_ALLOWED, APPROVAL_DENIED };
const char *approval_state_name(enum approval_state s);

struct store_approval {
    char id[APPROVAL_ID];
    /* It is good for this request of this token in this session, and no other. */
    char token[33], request[65], session[APPROVAL_TEXT];
    char agent[APPROVAL_TEXT], tool[APPROVAL_TEXT], target[APPROVAL_TEXT], rule[APPROVAL_TEXT];
    char arguments[APPROVAL_ARGUMENTS]; /* JSON for people; cut */
    enum approval_state state;
    int64_t asked_ms, expires_ms;
    char by[33]; /* who answered */
};

/*
 * ST4: an approval is looked at and changed in one go: these two hold the file (nobody else writes)
 * until a change is made, or store_flush() says that there is none. What is too old is gone by
 * then. 1: there is one. 0: none. By its id: -ERR_NOT_FOUND.
 */
int store_approval_hold(struct store *s, const char *token, const char *request,
                        const char *session, int64_t now_ms, struct store_approval *ret,
                        struct error *err);
int store_approval_hold_id(struct store *s, const char *id, int64_t now_ms,
                           struct store_approval *ret, struct error *err);
/* -ERR_TOO_LARGE: no more of this token, or of anybody, can wait. While it is held. */
int store_approval_room(struct store *s, const char *token, struct error *err);
/* A new question, for APPROVAL_MS from asked_ms on. */
int store_approval_put(struct store *s, const struct store_approval *a, struct error *err);
/* The answer, for APPROVAL_MS from now on. */
int store_approval_answer(struct store *s, const char *id, enum approval_state state,
                          const char *by, int64_t now_ms, struct error *err);
/* It is used. */
int store_approval_remove(struct store *s, const char *id, struct error *err);
/* Those that wait, oldest first: [{"approval","token","request","agent","session","tool","target",
 * "rule","arguments","asked","expires"}], times in milliseconds. */
int store_approvals(struct store *s, int64_t now_ms, json_t **ret, struct error *err);

/* ---- the audit, read back ---- */

struct records_filter {
    const char *session, *agent, *token, *event, *call, *tool; /* NULL: any; event may end in '*' */
    const char *since, *until; /* "2026-11-15T12:00:00Z" or a beginning of it; NULL: any */
    size_t limit;              /* 0: 100; at most 1000 */
};
/* The newest records that match, newest first, each an object as in the file. *ret_more: there are
 * older ones (or a limit of work was reached). `logs` is the folder with audit.jsonl. */
int records_query(int logs, const struct records_filter *f, json_t **ret, bool *ret_more,
                  struct error *err);
