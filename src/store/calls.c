/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "store/internal.h"

#define PRUNE_CALLS 64 /* so many more than must go: not one at each commit */
#define PRUNE_SHARE 16 /* the same for results: this part of their limit */

static const char *const states[] = {[CALL_RUNNING] = "running",
                                     [CALL_DONE] = "done",
                                     [CALL_DENIED] = "denied",
                                     [CALL_FAILED] = "failed",
                                     [CALL_INTERRUPTED] = "interrupted"};
#define N_STATES (sizeof(states) / sizeof(*states))

const char *call_state_name(enum call_state s)
{
    return (size_t)s < N_STATES ? states[s] : "unknown";
}

bool call_state_parse(const char *name, enum call_state *ret)
{
    for (size_t i = 0; i < N_STATES; i++)
        if (strcmp(states[i], name) == 0) {
            *ret = (enum call_state)i;
            return true;
        }
    return false;
}

void store_found_done(struct store_found *f)
{
    free(TAKE_PTR(f->text));
}

/* ---- reading one ---- */

/* Copies a column to *at and moves it on; the text has a NUL after it. */
static const char *copy_column(sqlite3_stmt *q, int i, char **at)
{
    const char *from = query_column(q, i);
    size_t n = (size_t)sqlite3_column_bytes(q, i) + 1;
    char *to = memcpy(*at, from, n);

    *at += n;
    return to;
}

static bool has(sqlite3_stmt *q, int i)
{
    return sqlite3_column_type(q, i) != SQLITE_NULL;
}

/* The columns as CALL_COLUMNS has them, then the result. */
static int read_call(sqlite3_stmt *q, struct store_found *ret, struct error *err)
{
    size_t size = 0, body = (size_t)sqlite3_column_bytes(q, 12);
    const void *blob = sqlite3_column_blob(q, 12);
    struct store_call *c = &ret->call;
    char *at;

    for (int i = 1; i <= 7; i++) {
        (void)sqlite3_column_text(q, i); /* first: it may convert */
        size += (size_t)sqlite3_column_bytes(q, i) + 1;
    }
    ret->text = at = calloc(1, size + body + 1);
    if (!at)
        return error_sys(err, -ENOMEM, "read a call of " DB_NAME);
    *c = (struct store_call){.state = (enum call_state)sqlite3_column_int(q, 8),
                             .begun_ms = sqlite3_column_int64(q, 9),
                             .ended_ms = sqlite3_column_int64(q, 10),
                             .status = sqlite3_column_int(q, 11)};
    (void)snprintf(c->id, sizeof(c->id), "%s", query_column(q, 0));
    (void)snprintf(c->request, sizeof(c->request), "%s", query_column(q, 2));
    c->key = has(q, 1) ? copy_column(q, 1, &at) : NULL;
    c->token = copy_column(q, 3, &at);
    c->agent = copy_column(q, 4, &at);
    c->session = copy_column(q, 5, &at);
    c->tool = copy_column(q, 6, &at);
    c->target = copy_column(q, 7, &at);
    if (blob || has(q, 12)) {
        c->result = body ? memcpy(at, blob, body) : at;
        c->result_len = body;
    }
    return 0;
}

int store_find(struct store *s, const char *id, struct store_found *ret, struct error *err)
{
    autoquery *q = store_query(s, Q_CALL_FIND);
    int code;

    query_text(q, 1, id);
    code = sqlite3_step(q);
    if (code == SQLITE_DONE)
        return error_set(err, ERR_NOT_FOUND, "no such call: '%s'", id);
    return code == SQLITE_ROW ? read_call(q, ret, err) : store_fail(s, "find a call", err);
}

int store_find_key(struct store *s, const char *token, const char *key, struct store_found *ret,
                   struct error *err)
{
    autoquery *q = store_query(s, Q_CALL_KEY);
    int code;

    query_text(q, 1, token);
    query_text(q, 2, key);
    code = sqlite3_step(q);
    if (code == SQLITE_DONE)
        return error_set(err, ERR_NOT_FOUND, "no call has the key '%s'", key);
    return code == SQLITE_ROW ? read_call(q, ret, err)
                              : store_fail(s, "find the call of a key", err);
}

/* ---- beginning ---- */

static int check_call(const struct store_call *c, struct error *err)
{
    const char *const texts[] = {c->key, c->token, c->agent, c->session, c->tool, c->target};

    if (strlen(c->id) != STORE_CALL - 1)
        return error_set(err, ERR_INVALID, "a call's id has %u digits, not '%s'", STORE_CALL - 1,
                         c->id);
    if (c->key && (!c->key[0] || strlen(c->key) > LIMIT_CALL_ID))
        return error_set(err, ERR_INVALID, "the key of a call has 1 to %u bytes", LIMIT_CALL_ID);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (texts[i] && strlen(texts[i]) > LIMIT_STORE_TEXT)
            return error_set(err, ERR_TOO_LARGE, "a text of call '%s' is longer than %u bytes",
                             c->id, LIMIT_STORE_TEXT);
    return 0;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* As in CALL_VALUES. */
static void bind_call(sqlite3_stmt *q, const struct store_call *c, int64_t owner)
{
    query_text(q, 1, c->id);
    query_text(q, 2, c->key);
    query_text(q, 3, c->request);
    query_text(q, 4, or_empty(c->token));
    query_text(q, 5, or_empty(c->agent));
    query_text(q, 6, or_empty(c->session));
    query_text(q, 7, or_empty(c->tool));
    query_text(q, 8, or_empty(c->target));
    query_int(q, 9, c->state);
    query_int(q, 10, c->begun_ms);
    query_int(q, 11, c->ended_ms);
    query_int(q, 12, c->status);
    query_int(q, 13, owner);
}

/* Results that are too large are not kept; the call is. */
static int put_result(struct store *s, int64_t n, const char *result, size_t len, struct error *err)
{
    autoquery *q = store_query(s, Q_RESULT_PUT);
    int r;

    if (!result || len > LIMIT_RESULT)
        return 0;
    query_int(q, 1, n);
    query_int(q, 2, (int64_t)len);
    (void)sqlite3_bind_blob64(q, 3, len ? result : "", len, SQLITE_STATIC);
    r = store_run(s, q, "keep a result", err);
    if (r >= 0)
        s->change.bytes += (int64_t)len;
    return r;
}

/* ST3: somebody has the key, or the id. */
static int tell_taken(struct store *s, const struct store_call *c, struct store_found *ret,
                      struct error *err)
{
    autoquery *q = store_query(s, Q_CALL_KEY);
    int code;

    query_text(q, 1, or_empty(c->token));
    query_text(q, 2, c->key);
    code = c->key ? sqlite3_step(q) : SQLITE_DONE;
    if (code == SQLITE_DONE)
        return error_set(err, ERR_INVALID, "there is a call '%s' already", c->id);
    if (code != SQLITE_ROW)
        return store_fail(s, "find the call of a key", err);
    if (ret && read_call(q, ret, err) < 0)
        return -(int)err->code;
    return error_set(err, ERR_EXISTS, "key '%s' is that of call '%s'", c->key, query_column(q, 0));
}

int store_begin(struct store *s, const struct store_call *c, struct store_found *ret,
                struct error *err)
{
    autoquery *q = store_query(s, Q_CALL_PUT);
    int r = check_call(c, err), code;

    if (r >= 0)
        r = store_write(s, err);
    if (r < 0)
        return r;
    bind_call(q, c, s->owner);
    code = sqlite3_step(q);
    if (code == SQLITE_CONSTRAINT_UNIQUE)
        return store_give_up(s, tell_taken(s, c, ret, err));
    if (code != SQLITE_DONE)
        return store_give_up(s, store_fail(s, "begin a call", err));
    s->change.calls++;
    if (c->state != CALL_RUNNING)
        r = put_result(s, sqlite3_last_insert_rowid(s->db), c->result, c->result_len, err);
    if (r < 0)
        return store_give_up(s, r);
    return store_wrote(s, c->result_len, c->key != NULL, err); /* ST1 */
}

/* ---- ending ---- */

/* It did not run, says the file: because it has ended, or because nobody knows it. */
static int tell_ended(struct store *s, const char *id, struct error *err)
{
    auto_found f = {0};
    int r = store_find(s, id, &f, err);

    if (r < 0)
        return r;
    return error_set(err, ERR_INVALID, "call '%s' has ended already: it is %s", id,
                     call_state_name(f.call.state));
}

int store_end(struct store *s, const char *id, enum call_state state, int status,
              const char *result, size_t len, int64_t ended_ms, struct error *err)
{
    autoquery *q = store_query(s, Q_CALL_END);
    int r = store_write(s, err), code;
    bool keyed;

    if (r < 0)
        return r;
    query_text(q, 1, id);
    query_int(q, 2, state);
    query_int(q, 3, status);
    query_int(q, 4, ended_ms);
    code = sqlite3_step(q);
    if (code == SQLITE_DONE)
        return store_give_up(s, tell_ended(s, id, err));
    if (code != SQLITE_ROW)
        return store_give_up(s, store_fail(s, "end a call", err));
    keyed = sqlite3_column_int(q, 1);
    r = put_result(s, sqlite3_column_int64(q, 0), result, len, err);
    if (r < 0)
        return store_give_up(s, r);
    (void)sqlite3_reset(q); /* a statement at work would keep the transaction open */
    return store_wrote(s, len, keyed, err);
}

/* ---- of those who were killed ---- */

struct left {
    struct store_found found;
    int64_t n, owner;
};

/* 1: one after number n. */
static int next_left(struct store *s, int64_t n, struct left *ret, struct error *err)
{
    autoquery *q = store_query(s, Q_CALL_LEFT);
    int code;

    query_int(q, 1, n);
    code = sqlite3_step(q);
    if (code == SQLITE_DONE)
        return 0;
    if (code != SQLITE_ROW)
        return store_fail(s, "look for calls that were interrupted", err);
    ret->n = sqlite3_column_int64(q, 13);
    ret->owner = sqlite3_column_int64(q, 14);
    return read_call(q, &ret->found, err) < 0 ? -(int)err->code : 1;
}

static int mark_interrupted(struct store *s, int64_t n, int64_t now_ms, struct error *err)
{
    autoquery *q = store_query(s, Q_CALL_INTERRUPT);
    int r = store_write(s, err);

    if (r < 0)
        return r;
    query_int(q, 1, n);
    query_int(q, 2, now_ms);
    r = store_run(s, q, "mark a call as interrupted", err);
    return r < 0 ? store_give_up(s, r) : store_wrote(s, 0, false, err);
}

int store_interrupt(struct store *s, int64_t now_ms,
                    void (*fn)(void *arg, const struct store_call *c), void *arg, struct error *err)
{
    struct left left = {0};
    int r;

    while ((r = next_left(s, left.n, &left, err)) > 0) {
        auto_found f = TAKE(left.found, (struct store_found){0});

        if (place_is_alive(s, left.owner))
            continue;
        r = mark_interrupted(s, left.n, now_ms, err);
        if (r < 0)
            return r;
        f.call.state = CALL_INTERRUPTED;
        f.call.ended_ms = now_ms;
        if (fn)
            fn(arg, &f.call);
    }
    return r < 0 ? r : store_flush(s, err);
}

/* ---- from the audit ---- */

int calls_rebuild(struct store *s, const struct store_call *c, struct error *err)
{
    autoquery *q = store_query(s, Q_CALL_REBUILD);
    int r = store_write(s, err), n;

    if (r < 0)
        return r;
    bind_call(q, c, 0);
    r = store_run(s, q, "take a call from the audit", err);
    if (r < 0)
        return store_give_up(s, r);
    n = sqlite3_changes(s->db);
    s->change.calls += n;
    r = store_wrote(s, 0, false, err);
    return r < 0 ? r : n;
}

int calls_rebuilt(struct store *s, struct error *err)
{
    autoquery *q = store_query(s, Q_CALL_INTERRUPT_REBUILD);
    int r = store_write(s, err);

    if (r >= 0)
        r = store_run(s, q, "mark calls as interrupted", err);
    return r < 0 ? store_give_up(s, r) : store_flush(s, err);
}

/* ---- lists ---- */

static int json_call(sqlite3_stmt *q, json_t *list)
{
    json_t *o = json_object();
    int64_t ended = sqlite3_column_int64(q, 10);
    int bad = json_object_set_new(o, "call", query_json(q, 0));

    if (has(q, 1))
        bad |= json_object_set_new(o, "key", query_json(q, 1));
    bad |= json_object_set_new(o, "token", query_json(q, 3));
    bad |= json_object_set_new(o, "agent", query_json(q, 4));
    bad |= json_object_set_new(o, "session", query_json(q, 5));
    bad |= json_object_set_new(o, "tool", query_json(q, 6));
    bad |= json_object_set_new(o, "target", query_json(q, 7));
    bad |= json_object_set_new(
        o, "state", json_string(call_state_name((enum call_state)sqlite3_column_int(q, 8))));
    bad |= json_object_set_new(o, "begun", json_integer(sqlite3_column_int64(q, 9)));
    if (ended)
        bad |= json_object_set_new(o, "ended", json_integer(ended));
    if (sqlite3_column_int(q, 11))
        bad |= json_object_set_new(o, "status", json_integer(sqlite3_column_int(q, 11)));
    return bad | json_array_append_new(list, o);
}

int store_calls(struct store *s, const struct store_filter *f, json_t **ret, struct error *err)
{
    autoquery *q = store_query(s, Q_CALLS);
    enum call_state state = CALL_RUNNING;

    if (f->state && !call_state_parse(f->state, &state))
        return error_set(err, ERR_INVALID,
                         "state '%s': it is running, done, denied, failed or interrupted",
                         f->state);
    query_text(q, 1, f->session);
    query_text(q, 2, f->agent);
    query_text(q, 3, f->token);
    query_text(q, 4, f->tool);
    (void)(f->state ? sqlite3_bind_int(q, 5, (int)state) : sqlite3_bind_null(q, 5));
    query_int(q, 6, f->since_ms);
    query_int(q, 7, f->until_ms);
    query_int(q, 8, (int64_t)rows_limit(f->limit));
    return query_list(s, q, json_call, "list calls", ret, err);
}

/* ---- limits ---- */

static int sum_results(struct store *s, int64_t upto, int64_t *ret, struct error *err)
{
    autoquery *q = store_query(s, Q_RESULTS_BYTES);

    query_int(q, 1, upto);
    if (sqlite3_step(q) != SQLITE_ROW)
        return store_fail(s, "count old results", err);
    *ret = sqlite3_column_int64(q, 0);
    return 0;
}

/* Runs DELETE ... ?1 and says how many rows are gone. */
static int cut(struct store *s, enum query which, int64_t value, int64_t *ret_n, struct error *err)
{
    autoquery *q = store_query(s, which);
    int r;

    query_int(q, 1, value);
    r = store_run(s, q, "remove the oldest", err);
    if (r >= 0 && ret_n)
        *ret_n = sqlite3_changes(s->db);
    return r;
}

/* The number of the call up to which `count` ended ones stand; 0: there are not so many. */
static int oldest(struct store *s, int64_t count, int64_t *ret, struct error *err)
{
    autoquery *q = store_query(s, Q_CALLS_OLDEST);
    int code;

    query_int(q, 1, count - 1);
    code = sqlite3_step(q);
    *ret = code == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
    return code == SQLITE_ROW || code == SQLITE_DONE ? 0
                                                     : store_fail(s, "find the oldest call", err);
}

static int prune_calls(struct store *s, int64_t count, struct totals *gone, struct error *err)
{
    int64_t upto = 0, bytes = 0, n = 0;
    int r = oldest(s, count, &upto, err);

    if (r < 0 || upto == 0)
        return r;
    r = sum_results(s, upto, &bytes, err);
    if (r >= 0)
        r = cut(s, Q_RESULTS_CUT, upto, NULL, err);
    if (r >= 0)
        r = cut(s, Q_CALLS_CUT, upto, &n, err);
    gone->bytes += bytes;
    gone->calls += n;
    return r;
}

static int prune_results(struct store *s, int64_t bytes, struct totals *gone, struct error *err)
{
    autoquery *q = store_query(s, Q_RESULTS_OLDEST);
    int64_t upto = 0, freed = 0;
    int code = SQLITE_DONE;

    while (freed < bytes && (code = sqlite3_step(q)) == SQLITE_ROW) {
        upto = sqlite3_column_int64(q, 0);
        freed += sqlite3_column_int64(q, 1);
    }
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return store_fail(s, "find the oldest results", err);
    (void)sqlite3_reset(q);
    gone->bytes += freed;
    return cut(s, Q_RESULTS_CUT, upto, NULL, err);
}

int calls_prune(struct store *s, const struct totals *have, struct totals *ret_gone,
                struct error *err)
{
    int64_t over = have->calls - s->limit.calls, bytes;
    int r = over > 0 ? prune_calls(s, over + PRUNE_CALLS, ret_gone, err) : 0;

    if (r < 0)
        return r;
    bytes = have->bytes - ret_gone->bytes - s->limit.bytes;
    return bytes > 0 ? prune_results(s, bytes + s->limit.bytes / PRUNE_SHARE, ret_gone, err) : 0;
}
