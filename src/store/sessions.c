/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "store/internal.h"

#define PRUNE_SESSIONS 64 /* so many more than must go: not one at each commit */

static int touch(struct store *s, enum query which, const char *key, const char *agent,
                 const char *token, int64_t now_ms, struct error *err)
{
    autoquery *q = store_query(s, which);

    query_text(q, 1, key);
    query_text(q, 2, agent);
    query_text(q, 3, token);
    query_int(q, 4, now_ms);
    return store_run(s, q, "remember a session", err);
}

/* ---- calls of the same session, one after the other ---- */

static bool is_latest(const struct store *s, const char *key, const char *agent, const char *token)
{
    const struct latest *l = &s->latest;

    return l->key[0] && strcmp(l->key, key) == 0 && strcmp(l->agent, agent) == 0 &&
           strcmp(l->token, token) == 0 && !sqlite3_get_autocommit(s->db);
}

static void set_latest(struct store *s, const char *key, const char *agent, const char *token)
{
    struct latest *l = &s->latest;

    (void)snprintf(l->key, sizeof(l->key), "%s", key);
    (void)snprintf(l->agent, sizeof(l->agent), "%s", agent);
    (void)snprintf(l->token, sizeof(l->token), "%s", token);
    l->used_ms = 0;
    l->calls = 0;
}

int sessions_settle(struct store *s, struct error *err)
{
    autoquery *q = store_query(s, Q_SESSION_MORE);

    if (!s->latest.calls || sqlite3_get_autocommit(s->db))
        return 0;
    query_text(q, 1, s->latest.key);
    query_int(q, 2, s->latest.used_ms);
    query_int(q, 3, s->latest.calls);
    s->latest.calls = 0;
    return store_run(s, q, "count a session's calls", err);
}

int store_session(struct store *s, const char *key, const char *agent, const char *token,
                  int64_t now_ms, struct error *err)
{
    int r;

    if (!key[0] || strlen(key) > LIMIT_STORE_TEXT || strlen(agent) > LIMIT_STORE_TEXT ||
        strlen(token) > LIMIT_STORE_TEXT)
        return error_set(err, ERR_INVALID, "a session's key has 1 to %u bytes", LIMIT_STORE_TEXT);
    if (is_latest(s, key, agent, token)) { /* an agent makes many calls, one after the other */
        s->latest.used_ms = now_ms > s->latest.used_ms ? now_ms : s->latest.used_ms;
        s->latest.calls++;
        return 0;
    }
    r = store_write(s, err);
    if (r < 0)
        return r;
    r = sessions_settle(s, err);
    if (r >= 0)
        r = touch(s, Q_SESSION_USE, key, agent, token, now_ms, err);
    if (r >= 0 && sqlite3_changes(s->db) == 0) {
        r = touch(s, Q_SESSION_PUT, key, agent, token, now_ms, err);
        s->change.sessions += r >= 0;
    }
    if (r < 0)
        return store_give_up(s, r);
    set_latest(s, key, agent, token);
    return store_wrote(s, 0, false, err);
}

int store_session_remove(struct store *s, const char *key, struct error *err)
{
    autoquery *q = store_query(s, Q_SESSION_REMOVE);
    int r = store_write(s, err);

    if (r < 0)
        return r;
    r = sessions_settle(s, err);
    s->latest.key[0] = 0;
    query_text(q, 1, key);
    if (r >= 0)
        r = store_run(s, q, "forget a session", err);
    if (r >= 0 && sqlite3_changes(s->db) == 0)
        r = error_set(err, ERR_NOT_FOUND, "no such session: '%s'", key);
    if (r < 0)
        return store_give_up(s, r);
    s->change.sessions--;
    return store_wrote(s, 0, false, err);
}

static int json_session(sqlite3_stmt *q, json_t *list)
{
    json_t *o = json_object();
    int bad = json_object_set_new(o, "session", query_json(q, 0));

    bad |= json_object_set_new(o, "agent", query_json(q, 1));
    bad |= json_object_set_new(o, "created", json_integer(sqlite3_column_int64(q, 2)));
    bad |= json_object_set_new(o, "used", json_integer(sqlite3_column_int64(q, 3)));
    bad |= json_object_set_new(o, "calls", json_integer(sqlite3_column_int64(q, 4)));
    return bad | json_array_append_new(list, o);
}

int store_sessions(struct store *s, const char *agent, size_t limit, json_t **ret,
                   struct error *err)
{
    autoquery *q = store_query(s, Q_SESSIONS);
    int r = sessions_settle(s, err);

    if (r < 0)
        return r;
    query_text(q, 1, agent);
    query_int(q, 2, (int64_t)rows_limit(limit));
    return query_list(s, q, json_session, "list sessions", ret, err);
}

int sessions_prune(struct store *s, const struct totals *have, struct totals *ret_gone,
                   struct error *err)
{
    autoquery *q = store_query(s, Q_SESSIONS_CUT);
    int64_t over = have->sessions - s->limit.sessions;
    int r;

    if (over <= 0)
        return 0;
    query_int(q, 1, over + PRUNE_SESSIONS);
    r = store_run(s, q, "forget the oldest sessions", err);
    if (r >= 0)
        ret_gone->sessions = sqlite3_changes(s->db);
    return r;
}
