/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of this folder share.
 *
 * SQL is constant text (store.c has all of it); whatever comes from outside is bound to it. Writes
 * go through one transaction: store_write() opens it, store_wrote() counts, and it is committed
 * when a keyed call asks for it, when it has grown, or by store_flush().
 */
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/limits.h"
#include "store/store.h"

struct buf;

#define DB_NAME             "store.db"
#define LIMIT_STORE_TEXT    4096u       /* bytes of each text of a call; longer ones are refused */
#define LIMIT_SESSIONS      10000u      /* sessions that are remembered; the longest unused go */
#define LIMIT_BATCH         256u        /* statements of one transaction ... */
#define LIMIT_BATCH_BYTES   (4u << 20)  /* ... and results in it */
#define LIMIT_ROWS          1000u       /* of one answer; 100 when nobody says */
#define LIMIT_BAD           16u         /* broken files that are kept beside the good one */
#define LIMIT_CHECKED       (32u << 20) /* larger files: all but the results is checked at opening */
#define LIMIT_RECORDS_SCAN  (64u << 20) /* bytes of the audit that one question reads */
#define LIMIT_LINE          (LIMIT_AUDIT_LINE + 128u) /* with its hash */
#define LIMIT_REBUILD       (256u << 20) /* bytes of the audit, its end, that a lost file is made of */
#define LIMIT_WAL_CHECKED   (256u << 20) /* a larger -wal is left to SQLite */
#define LIMIT_STRAY_RECORDS 1000u        /* records in a row before `since`: clocks are set back */

enum query {
    Q_BEGIN,
    Q_COMMIT,
    Q_ROLLBACK,
    Q_TOTALS,
    Q_OWNER,
    Q_CALL_PUT,
    Q_CALL_REBUILD,
    Q_CALL_END,
    Q_CALL_END_REBUILD,
    Q_CALL_FIND,
    Q_CALL_KEY,
    Q_CALL_NEWEST,
    Q_CALL_LEFT,
    Q_CALL_INTERRUPT,
    Q_CALL_INTERRUPT_REBUILD,
    Q_CALLS,
    Q_CALLS_OLDEST,
    Q_CALLS_CUT,
    Q_RESULT_PUT,
    Q_RESULTS_BYTES,
    Q_RESULTS_OLDEST,
    Q_RESULTS_CUT,
    Q_SESSION_USE,
    Q_SESSION_MORE,
    Q_SESSION_PUT,
    Q_SESSION_REMOVE,
    Q_SESSIONS,
    Q_SESSIONS_CUT,
    Q_APPROVAL_OF,
    Q_APPROVAL_FIND,
    Q_APPROVAL_PUT,
    Q_APPROVAL_ANSWER,
    Q_APPROVAL_REMOVE,
    Q_APPROVALS,
    Q_APPROVALS_COUNT,
    Q_APPROVALS_CUT,
    N_QUERIES,
};

struct totals {
    int64_t calls, bytes, sessions;
};

struct store {
    int data, lock;
    int64_t owner; /* the byte of store.lock that says we live */
    sqlite3 *db;
    sqlite3_stmt *queries[N_QUERIES];
    struct totals limit;  /* LIMIT_CALLS and the like; tests have smaller ones */
    struct totals change; /* by the open transaction; goes into the file with it */
    unsigned waiting;     /* statements of the open transaction */
    size_t waiting_bytes;
    struct latest {
        char key[LIMIT_STORE_TEXT + 1], agent[LIMIT_STORE_TEXT + 1], token[LIMIT_STORE_TEXT + 1];
        int64_t used_ms;
        int64_t calls; /* that are not in the open transaction yet */
    } latest;          /* the session of the last call; key "": none in this transaction */
};

/* ---- store.c ---- */

/* A statement that was prepared; autoquery resets it, which ends its reading. */
sqlite3_stmt *store_query(struct store *s, enum query q);
static inline void query_reset(sqlite3_stmt **q)
{
    (void)sqlite3_reset(*q);
}
#define autoquery cleanup_(query_reset) sqlite3_stmt

/* NULL is SQL's. The text must stay until the statement is reset. It cannot fail: nothing is
 * copied, and lengths were checked before. */
static inline void query_text(sqlite3_stmt *q, int i, const char *text)
{
    (void)sqlite3_bind_text(q, i, text, -1, SQLITE_STATIC);
}
static inline void query_int(sqlite3_stmt *q, int i, int64_t value)
{
    (void)sqlite3_bind_int64(q, i, value);
}
/* "" for SQL's NULL. Good until the next step or reset. */
const char *query_column(sqlite3_stmt *q, int i);
/* The same as a JSON string; null for what is not UTF-8. */
json_t *query_json(sqlite3_stmt *q, int i);

/* Every row, put into an array by `put` (0, or it failed). */
int query_list(struct store *s, sqlite3_stmt *q, int (*put)(sqlite3_stmt *q, json_t *list),
               const char *step, json_t **ret, struct error *err);

/* Of an answer: what was asked for, within LIMIT_ROWS. */
static inline size_t rows_limit(size_t wanted)
{
    return wanted == 0 ? 100 : wanted < LIMIT_ROWS ? wanted : LIMIT_ROWS;
}

/* Says what SQLite says of its last failure. */
int store_fail(struct store *s, const char *step, struct error *err);
/* From here until it is committed we are the only writer. */
int store_write(struct store *s, struct error *err);
/* One more statement waits; `now` commits. */
int store_wrote(struct store *s, size_t bytes, bool now, struct error *err);
/* After a failure: nobody is to wait for an empty transaction. Returns r. */
int store_give_up(struct store *s, int r);
/* Runs a statement that gives no row. */
int store_run(struct store *s, sqlite3_stmt *q, const char *step, struct error *err);

/* ---- place.c: the files, before SQLite sees them ---- */

/* The folder and every file in it that is ours by name are private, and no links. */
int place_check(int data, struct error *err);
/* Opens store.lock and waits for whoever is opening the store, too. */
int place_lock(struct store *s, struct error *err);
void place_unlock(struct store *s);
/* Has nobody else the store open? Between place_lock() and place_unlock(). */
bool place_is_alone(const struct store *s);
/* Does the process live that took this number? */
bool place_is_alive(const struct store *s, int64_t owner);
/* Takes the number, until the descriptor is closed. False: another has it. */
bool place_claim(const struct store *s, int64_t owner);
/* An empty private file if there is none. */
int place_make(int data, struct error *err);
/* store.db is gone or empty, but its -wal is not. */
bool place_has_only_wal(int data);
/* Moves store.db and its -wal to store.db.bad-N, and says so. */
int place_move_aside(int data, const char *why, struct buf *note, struct error *err);

/* ---- wal.c ---- */

/* Does store.db-wal end before its last byte? SQLite would leave the rest out and say nothing. */
bool wal_is_torn(int data);

/* ---- calls.c, sessions.c ---- */

/* Takes away what is over the limits. *ret_gone is how much. */
int calls_prune(struct store *s, const struct totals *have, struct totals *ret_gone,
                struct error *err);
/* Calls that were only counted so far go into the open transaction. */
int sessions_settle(struct store *s, struct error *err);
int sessions_prune(struct store *s, const struct totals *have, struct totals *ret_gone,
                   struct error *err);
/* For rebuild.c: a call of nobody's that the file may have already. 1: it had not. */
int calls_rebuild(struct store *s, const struct store_call *c, struct error *err);
/* What still runs of these was interrupted; store_interrupt() tells of it and says when. */
int calls_rebuilt(struct store *s, struct error *err);
bool call_state_parse(const char *name, enum call_state *ret);

/* ---- lines.c: the audit's lines from the last to the first, in bounded memory ---- */

struct lines {
    int fd;
    char *block; /* of the file, from `at` on */
    size_t len;  /* bytes in it that were not given yet */
    off_t at;
    bool in_long;  /* in a line that no writer of ours has written: it is left out */
    uint64_t read; /* bytes of the file */
    const char *line;
    size_t line_len;
    off_t line_at; /* where it begins in the file */
};
/* 0: there is no audit. */
int lines_open(struct lines *l, int logs, struct error *err);
void lines_done(struct lines *l);
/* 1: a line, without its newline, good until the next call. 0: that was the first. */
int lines_prev(struct lines *l, struct error *err);
#define autolines cleanup_(lines_done) struct lines

/* The time of a line as it stands there, 24 bytes; NULL if it has none in its place. */
const char *line_time(const char *line, size_t len);
#define LINE_TIME 25u
void line_time_format(int64_t ms, char ret[LINE_TIME]);
int64_t line_time_parse(const char *time);

/* ---- rebuild.c ---- */

/* Fills in what the audit knows and the file does not: all of it if the file is new, else what is
 * newer than its newest call. Only when nobody else has the store open. */
int store_rebuild(struct store *s, struct buf *note, struct error *err);
