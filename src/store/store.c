/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "store/internal.h"

#define VERSION     2    /* of the tables, in user_version */
#define BUSY_MS     5000 /* another process writes: it has the file for one batch at most */
#define LIMIT_NOTE  1024u
#define TEXT_OF(x)  TEXT_OF_(x)
#define TEXT_OF_(x) #x

/*
 * `n` is the order in which calls came. Results stand apart: lists do not read them. There is no
 * index but those by which single calls are found: each costs every call a page of the -wal, and a
 * list reads at most LIMIT_CALLS rows.
 */
#define SET_VERSION "PRAGMA user_version = " TEXT_OF(VERSION) ";"
#define APPROVALS_TABLE                                                                           \
    "CREATE TABLE approvals(id TEXT PRIMARY KEY NOT NULL, token TEXT NOT NULL,"                   \
    " request TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL,"     \
    " target TEXT NOT NULL, rule TEXT NOT NULL, arguments TEXT NOT NULL, state INTEGER NOT NULL," \
    " asked INTEGER NOT NULL, expires INTEGER NOT NULL, by TEXT NOT NULL) STRICT, WITHOUT ROWID;" \
    "CREATE UNIQUE INDEX approvals_of ON approvals(token, request, session);"

static const char schema[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE calls(n INTEGER PRIMARY KEY, id TEXT NOT NULL, key TEXT, request TEXT NOT NULL,"
    " token TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL,"
    " target TEXT NOT NULL, state INTEGER NOT NULL, begun INTEGER NOT NULL, ended INTEGER NOT NULL,"
    " status INTEGER NOT NULL, owner INTEGER NOT NULL) STRICT;"
    "CREATE UNIQUE INDEX calls_id ON calls(id);"
    "CREATE UNIQUE INDEX calls_key ON calls(token, key) WHERE key IS NOT NULL;"
    "CREATE TABLE results(n INTEGER PRIMARY KEY, size INTEGER NOT NULL, body BLOB NOT NULL) STRICT;"
    "CREATE TABLE sessions(key TEXT PRIMARY KEY NOT NULL, agent TEXT NOT NULL, token TEXT NOT NULL,"
    " created INTEGER NOT NULL, used INTEGER NOT NULL, calls INTEGER NOT NULL)"
    " STRICT, WITHOUT ROWID;"
    "CREATE TABLE totals(calls INTEGER NOT NULL, bytes INTEGER NOT NULL, sessions INTEGER NOT NULL,"
    " owners INTEGER NOT NULL) STRICT;"
    "INSERT INTO totals VALUES(0, 0, 0, 0);" APPROVALS_TABLE SET_VERSION "COMMIT;";

/* Version 1 had no approvals. Who has opened such a file goes on with it: its tables are the same.
 */
static const char from_1[] = "BEGIN IMMEDIATE;" APPROVALS_TABLE SET_VERSION "COMMIT;";

#define CALL_COLUMNS \
    "id, key, request, token, agent, session, tool, target, state, begun, ended, status"
#define CALL_VALUES "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
#define CALL_FILTER                                                    \
    "(?1 IS NULL OR session = ?1) AND (?2 IS NULL OR agent = ?2) AND " \
    "(?3 IS NULL OR token = ?3) AND (?4 IS NULL OR tool = ?4) AND "    \
    "(?5 IS NULL OR state = ?5) AND (?6 = 0 OR begun >= ?6) AND "      \
    "(?7 = 0 OR begun <= ?7) ORDER BY n DESC LIMIT ?8"

#define APPROVAL_COLUMNS                                                                         \
    "id, token, request, agent, session, tool, target, rule, arguments, state, asked, expires, " \
    "by"

static const char *const queries[N_QUERIES] = {
    [Q_BEGIN] = "BEGIN IMMEDIATE",
    [Q_COMMIT] = "COMMIT",
    [Q_ROLLBACK] = "ROLLBACK",
    [Q_TOTALS] = "UPDATE totals SET calls = calls + ?1, bytes = bytes + ?2,"
                 " sessions = sessions + ?3 RETURNING calls, bytes, sessions",
    [Q_OWNER] = "UPDATE totals SET owners = owners + 1 RETURNING owners",
    [Q_CALL_PUT] = "INSERT INTO calls(" CALL_COLUMNS ", owner) " CALL_VALUES,
    [Q_CALL_REBUILD] = "INSERT OR IGNORE INTO calls(" CALL_COLUMNS ", owner) " CALL_VALUES,
    [Q_CALL_END] = "UPDATE calls SET state = ?2, status = ?3, ended = ?4"
                   " WHERE id = ?1 AND state = 0 RETURNING n, key IS NOT NULL",
    [Q_CALL_END_REBUILD] = "UPDATE calls SET state = ?2, status = ?3, ended = ?4"
                           " WHERE id = ?1 AND (state = 0 OR state = 4 AND ended = 0)",
    [Q_CALL_FIND] = "SELECT " CALL_COLUMNS ", (SELECT body FROM results WHERE n = calls.n)"
                    " FROM calls WHERE id = ?1",
    [Q_CALL_KEY] = "SELECT " CALL_COLUMNS ", (SELECT body FROM results WHERE n = calls.n)"
                   " FROM calls WHERE token = ?1 AND key = ?2",
    [Q_CALL_NEWEST] = "SELECT begun FROM calls ORDER BY n DESC LIMIT 1",
    [Q_CALL_LEFT] = "SELECT " CALL_COLUMNS ", NULL, n, owner FROM calls"
                    " WHERE n > ?1 AND (state = 0 OR state = 4 AND ended = 0) ORDER BY n LIMIT 1",
    [Q_CALL_INTERRUPT] = "UPDATE calls SET state = 4, ended = ?2 WHERE n = ?1",
    [Q_CALL_INTERRUPT_REBUILD] = "UPDATE calls SET state = 4 WHERE state = 0 AND owner = 0",
    [Q_CALLS] = "SELECT " CALL_COLUMNS " FROM calls WHERE " CALL_FILTER,
    [Q_CALLS_OLDEST] = "SELECT n FROM calls WHERE state <> 0 ORDER BY n LIMIT 1 OFFSET ?1",
    [Q_CALLS_CUT] = "DELETE FROM calls WHERE n <= ?1 AND state <> 0",
    [Q_RESULT_PUT] = "INSERT INTO results VALUES(?1, ?2, ?3)",
    [Q_RESULTS_BYTES] = "SELECT coalesce(sum(size), 0) FROM results WHERE n <= ?1",
    [Q_RESULTS_OLDEST] = "SELECT n, size FROM results ORDER BY n",
    [Q_RESULTS_CUT] = "DELETE FROM results WHERE n <= ?1",
    [Q_SESSION_USE] = "UPDATE sessions SET agent = ?2, token = ?3, used = max(used, ?4),"
                      " calls = calls + 1 WHERE key = ?1",
    [Q_SESSION_MORE] = "UPDATE sessions SET used = max(used, ?2), calls = calls + ?3"
                       " WHERE key = ?1",
    [Q_SESSION_PUT] = "INSERT INTO sessions VALUES(?1, ?2, ?3, ?4, ?4, 1)",
    [Q_SESSION_REMOVE] = "DELETE FROM sessions WHERE key = ?1",
    [Q_SESSIONS] = "SELECT key, agent, created, used, calls FROM sessions"
                   " WHERE ?1 IS NULL OR agent = ?1 ORDER BY used DESC LIMIT ?2",
    [Q_SESSIONS_CUT] = "DELETE FROM sessions WHERE key IN"
                       " (SELECT key FROM sessions ORDER BY used LIMIT ?1)",
    [Q_APPROVAL_OF] = "SELECT " APPROVAL_COLUMNS " FROM approvals"
                      " WHERE token = ?1 AND request = ?2 AND session = ?3",
    [Q_APPROVAL_FIND] = "SELECT " APPROVAL_COLUMNS " FROM approvals WHERE id = ?1",
    [Q_APPROVAL_PUT] = "INSERT INTO approvals(" APPROVAL_COLUMNS ")"
                       " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?10, ?11, '')",
    [Q_APPROVAL_ANSWER] = "UPDATE approvals SET state = ?2, by = ?3, expires = ?4 WHERE id = ?1",
    [Q_APPROVAL_REMOVE] = "DELETE FROM approvals WHERE id = ?1",
    [Q_APPROVALS] = "SELECT " APPROVAL_COLUMNS " FROM approvals"
                    " WHERE state = 0 AND expires > ?1 AND expires <= ?2 ORDER BY asked, id",
    [Q_APPROVALS_COUNT] = "SELECT count(*), coalesce(sum(token = ?1), 0) FROM approvals",
    [Q_APPROVALS_CUT] = "DELETE FROM approvals WHERE expires <= ?1 OR expires > ?2",
};

_Static_assert(APPROVAL_PENDING == 0, "as it stands in the statements");
_Static_assert(CALL_RUNNING == 0 && CALL_INTERRUPTED == 4, "as they stand in the statements");

/* ---- statements ---- */

sqlite3_stmt *store_query(struct store *s, enum query q)
{
    return s->queries[q];
}

const char *query_column(sqlite3_stmt *q, int i)
{
    const unsigned char *text = sqlite3_column_text(q, i);

    return text ? (const char *)text : "";
}

json_t *query_json(sqlite3_stmt *q, int i)
{
    json_t *text = json_string(query_column(q, i));

    return text ? text : json_null();
}

int store_fail(struct store *s, const char *step, struct error *err)
{
    int code = sqlite3_extended_errcode(s->db);
    const char *says = sqlite3_errmsg(s->db);

    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return error_sys(err, -ENOMEM, DB_NAME ": %s", step);
    case SQLITE_BUSY:
        return error_set(err, ERR_TIMEOUT, DB_NAME ": %s: another process is writing to it", step);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return error_set(err, ERR_SYS,
                         DB_NAME ": %s: it is damaged (%s); stop what uses it and move it away: it "
                                 "is made anew from the audit",
                         step, says);
    default:
        return error_set(err, ERR_SYS, DB_NAME ": %s: %s (%d)", step, says, code);
    }
}

int store_run(struct store *s, sqlite3_stmt *q, const char *step, struct error *err)
{
    int code = sqlite3_step(q);

    return code == SQLITE_DONE || code == SQLITE_ROW ? 0 : store_fail(s, step, err);
}

int query_list(struct store *s, sqlite3_stmt *q, int (*put)(sqlite3_stmt *q, json_t *list),
               const char *step, json_t **ret, struct error *err)
{
    json_t *list = json_array();
    int r = list ? 0 : error_sys(err, -ENOMEM, "%s", step), code = SQLITE_DONE;

    while (r >= 0 && (code = sqlite3_step(q)) == SQLITE_ROW)
        if (put(q, list) != 0)
            r = error_sys(err, -ENOMEM, "%s", step);
    if (r >= 0 && code != SQLITE_DONE)
        r = store_fail(s, step, err);
    if (r < 0)
        json_decref(list);
    else
        *ret = list;
    return r;
}

/* ---- the transaction ---- */

static void forget(struct store *s)
{
    s->change = (struct totals){0};
    s->waiting = 0;
    s->waiting_bytes = 0;
    s->latest.key[0] = 0;
    s->latest.calls = 0;
}

int store_write(struct store *s, struct error *err)
{
    autoquery *q = store_query(s, Q_BEGIN);

    if (!sqlite3_get_autocommit(s->db))
        return 0;
    forget(s); /* what waited is gone if SQLite has rolled it back */
    return store_run(s, q, "begin to write", err);
}

static void rollback(struct store *s)
{
    autoquery *q = store_query(s, Q_ROLLBACK);

    if (!sqlite3_get_autocommit(s->db))
        (void)sqlite3_step(q);
    forget(s);
}

int store_give_up(struct store *s, int r)
{
    if (s->waiting == 0)
        rollback(s);
    return r;
}

static int add_totals(struct store *s, const struct totals *change, struct totals *ret,
                      struct error *err)
{
    autoquery *q = store_query(s, Q_TOTALS);

    query_int(q, 1, change->calls);
    query_int(q, 2, change->bytes);
    query_int(q, 3, change->sessions);
    if (sqlite3_step(q) != SQLITE_ROW)
        return store_fail(s, "count what is kept", err);
    *ret = (struct totals){sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1),
                           sqlite3_column_int64(q, 2)};
    return 0;
}

/* The numbers go into the file with what they count, and what is over the limits goes out of it. */
static int settle(struct store *s, struct error *err)
{
    struct totals have, gone = {0};
    int r = sessions_settle(s, err);

    if (r < 0)
        return r;
    if (!s->change.calls && !s->change.bytes && !s->change.sessions)
        return 0;
    r = add_totals(s, &s->change, &have, err);
    if (r >= 0)
        r = calls_prune(s, &have, &gone, err);
    if (r >= 0)
        r = sessions_prune(s, &have, &gone, err);
    if (r >= 0 && (gone.calls || gone.bytes || gone.sessions)) {
        gone = (struct totals){-gone.calls, -gone.bytes, -gone.sessions};
        r = add_totals(s, &gone, &have, err);
    }
    return r;
}

int store_flush(struct store *s, struct error *err)
{
    autoquery *q = store_query(s, Q_COMMIT);
    int r;

    if (sqlite3_get_autocommit(s->db))
        return 0;
    r = settle(s, err);
    if (r >= 0)
        r = store_run(s, q, "commit", err);
    if (r < 0)
        rollback(s);
    else
        forget(s);
    return r;
}

int store_wrote(struct store *s, size_t bytes, bool now, struct error *err)
{
    s->waiting++;
    s->waiting_bytes += bytes;
    if (now || s->waiting >= LIMIT_BATCH || s->waiting_bytes >= LIMIT_BATCH_BYTES)
        return store_flush(s, err);
    return 0;
}

/* ---- opening ---- */

/* Why the file is of no use; empty: it is not the file's fault. */
struct fault {
    char why[192];
};

static int broken(struct fault *f, const char *why, struct error *err)
{
    (void)snprintf(f->why, sizeof(f->why), "%.*s", (int)strcspn(why, "\n"), why);
    return error_set(err, ERR_SYS, DB_NAME ": %s", f->why);
}

/* Is it the file's content that is wrong? SQLITE_ERROR: a table is missing or is another one. */
static bool is_broken(sqlite3 *db)
{
    int code = sqlite3_extended_errcode(db);

    return code == SQLITE_IOERR_SHORT_READ || (code & 0xff) == SQLITE_CORRUPT ||
           (code & 0xff) == SQLITE_NOTADB || (code & 0xff) == SQLITE_ERROR;
}

static int exec(struct store *s, const char *sql, const char *step, struct error *err)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : store_fail(s, step, err);
}

/* The first column of the first row. */
static int ask(struct store *s, const char *sql, char *ret, size_t size, struct error *err)
{
    sqlite3_stmt *q = NULL;
    int r = 0;

    if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK || sqlite3_step(q) != SQLITE_ROW)
        r = store_fail(s, sql, err);
    else
        (void)snprintf(ret, size, "%s", query_column(q, 0));
    (void)sqlite3_finalize(q);
    return r;
}

static int open_db(struct store *s, struct error *err)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
                      SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE;
    char path[LIMIT_PATH], file[LIMIT_PATH + sizeof("/" DB_NAME)];
    int r = path_of_fd(s->data, path, sizeof(path));

    if (r < 0)
        return error_sys(err, r, "find the path of the data folder");
    (void)snprintf(file, sizeof(file), "%s/" DB_NAME, path);
    if (sqlite3_open_v2(file, &s->db, flags, NULL) != SQLITE_OK)
        return s->db ? store_fail(s, "open", err) : error_sys(err, -ENOMEM, "open " DB_NAME);
    (void)sqlite3_busy_timeout(s->db, BUSY_MS);
    (void)sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, (int)(2 * LIMIT_RESULT));
    (void)sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
    /* What a damaged file has in the place of its tables does not run. */
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    return 0;
}

/* The path still leads to what was looked at. */
static int check_same(struct store *s, struct error *err)
{
    struct stat a, b;

    if (fstatat(s->data, DB_NAME, &a, AT_SYMLINK_NOFOLLOW) < 0 ||
        lstat(sqlite3_db_filename(s->db, "main"), &b) < 0)
        return error_sys(err, -errno, "look at '" DB_NAME "'");
    if (a.st_dev != b.st_dev || a.st_ino != b.st_ino)
        return error_set(err, ERR_DENIED,
                         "the data folder was moved while '" DB_NAME "' was opened: start again");
    return 0;
}

static int check_pages(struct store *s, struct fault *fault, struct error *err)
{
    static const char *const parts[] = {"PRAGMA quick_check(calls)", "PRAGMA quick_check(sessions)",
                                        "PRAGMA quick_check(totals)",
                                        "PRAGMA quick_check(approvals)"};
    static const char *const whole[] = {"PRAGMA quick_check(1)"};
    char says[256];
    struct stat st;
    bool small = fstatat(s->data, DB_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                 st.st_size <= (off_t)LIMIT_CHECKED;
    const char *const *list = small ? whole : parts;
    size_t n = small ? 1 : sizeof(parts) / sizeof(*parts);

    for (size_t i = 0; i < n; i++) {
        int r = ask(s, list[i], says, sizeof(says), err);

        if (r < 0)
            return r;
        if (strcmp(says, "ok") != 0)
            return broken(fault, says, err);
    }
    return 0;
}

/* Tables that are ours, made if there are none, and brought up to date if they are older. */
static int check_version(struct store *s, struct error *err)
{
    char version[32];
    int r = ask(s, "PRAGMA user_version", version, sizeof(version), err);

    if (r < 0 || strcmp(version, TEXT_OF(VERSION)) == 0)
        return r;
    if (strcmp(version, "1") == 0)
        return exec(s, from_1, "bring its tables up to date", err);
    if (strcmp(version, "0") != 0)
        return error_set(err, ERR_UNSUPPORTED,
                         DB_NAME " has version %s, this program knows %d: use the ClawDen that "
                                 "made it, or move it away",
                         version, VERSION);
    r = exec(s, schema, "make its tables", err); /* which fails if it has some */
    /* They stand in the file itself: a -wal that is lost then shows. */
    return r < 0 ? r : exec(s, "PRAGMA wal_checkpoint(TRUNCATE)", "write its tables", err);
}

static int prepare(struct store *s, struct error *err)
{
    for (int i = 0; i < N_QUERIES; i++)
        if (sqlite3_prepare_v3(s->db, queries[i], -1, SQLITE_PREPARE_PERSISTENT, &s->queries[i],
                               NULL) != SQLITE_OK)
            return store_fail(s, "prepare its statements", err);
    return 0;
}

/* A number that no living process has. */
static int claim(struct store *s, struct fault *fault, struct error *err)
{
    do {
        autoquery *q = store_query(s, Q_OWNER);
        int code = sqlite3_step(q);

        if (code == SQLITE_DONE)
            return broken(fault, "its totals are missing", err);
        if (code != SQLITE_ROW)
            return store_fail(s, "take a number", err);
        s->owner = sqlite3_column_int64(q, 0);
    } while (!place_claim(s, s->owner));
    return 0;
}

static int open_checked(struct store *s, struct fault *fault, struct error *err)
{
    char mode[16] = "";
    int r = place_make(s->data, err);

    *fault = (struct fault){0};
    if (r >= 0)
        r = open_db(s, err);
    if (r >= 0)
        r = ask(s, "PRAGMA journal_mode = WAL", mode, sizeof(mode), err);
    if (r >= 0 && strcmp(mode, "wal") != 0)
        return error_set(err, ERR_UNSUPPORTED,
                         DB_NAME ": its file system cannot share memory (mode '%s')", mode);
    if (r >= 0)
        r = exec(
            s,
            "PRAGMA synchronous = NORMAL; PRAGMA cell_size_check = ON; PRAGMA cache_size = -16384;"
            "PRAGMA wal_autocheckpoint = 4096; PRAGMA journal_size_limit = 33554432",
            "set it up", err);
    if (r >= 0)
        r = check_same(s, err);
    if (r >= 0)
        r = check_version(s, err);
    if (r >= 0)
        r = check_pages(s, fault, err);
    if (r >= 0)
        r = prepare(s, err);
    if (r >= 0)
        r = claim(s, fault, err);
    if (r < 0 && !fault->why[0] && s->db && is_broken(s->db))
        r = broken(fault, sqlite3_errmsg(s->db), err);
    return r;
}

static void close_db(struct store *s)
{
    for (int i = 0; i < N_QUERIES; i++)
        (void)sqlite3_finalize(TAKE_PTR(s->queries[i]));
    (void)sqlite3_close(TAKE_PTR(s->db));
}

static int open_or_move(struct store *s, bool alone, struct buf *note, struct error *err)
{
    struct fault fault;
    int r = 0;

    if (alone && place_has_only_wal(s->data))
        r = place_move_aside(s->data, "it was gone or empty beside its -wal", note, err);
    else if (alone && wal_is_torn(s->data))
        buf_puts(note, DB_NAME "-wal ends in a damaged or unfinished write: what it held is taken "
                               "from the audit, without results");
    if (r < 0)
        return r;
    r = open_checked(s, &fault, err);
    if (r >= 0 || !fault.why[0])
        return r;
    close_db(s);
    if (!alone)
        return error_set(err, ERR_SYS,
                         DB_NAME " is broken (%s), and another process uses it: stop "
                                 "that one first",
                         fault.why);
    r = place_move_aside(s->data, fault.why, note, err);
    return r < 0 ? r : open_checked(s, &fault, err);
}

int store_open(int data, struct store **ret, char **ret_note, struct error *err)
{
    autoptr(store) s = calloc(1, sizeof(*s));
    autobuf note;
    bool alone;
    int r;

    buf_init(&note, LIMIT_NOTE);
    if (!s)
        return error_sys(err, -ENOMEM, "open " DB_NAME);
    s->lock = -1;
    s->limit = (struct totals){LIMIT_CALLS, LIMIT_KEPT, LIMIT_SESSIONS};
    s->data = fcntl(data, F_DUPFD_CLOEXEC, 3);
    if (s->data < 0)
        return error_sys(err, -errno, "open the data folder");
    r = place_check(s->data, err);
    if (r >= 0)
        r = place_lock(s, err);
    if (r < 0)
        return r;
    alone = place_is_alone(s);
    r = open_or_move(s, alone, &note, err);
    if (r >= 0 && alone)
        r = store_rebuild(s, &note, err);
    if (r < 0)
        return r;
    place_unlock(s);
    if (ret_note)
        *ret_note = note.len ? TAKE_PTR(note.data) : NULL;
    *ret = TAKE_PTR(s);
    return 0;
}

void store_free(struct store *s)
{
    struct error ignored;

    if (!s)
        return;
    if (s->queries[Q_COMMIT])
        (void)store_flush(s, &ignored);
    close_db(s);
    close_fd(&s->lock);
    close_fd(&s->data);
    free(s);
}
