/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "store/internal.h"

#define PRUNE_SESSIONS 64 /* so many more than must go: not one at each commit */

static int touch(struct store *s, enum query which, const char *key, const char *agent,
                 const char *token, int64_t now_ms, struct error *err)
{
    autoquery *q = store_query(s, which);

    query_text(q, 1, key);
    query_text(q, 2, agent ? agent : "");
    query_text(q, 3, token ? token : "");
    query_int(q, 4, now_ms);
    return store_run(s, q, "remember a session", err);
}

int store_session(struct store *s, const char *key, const char *agent, const char *token,
                  int64_t now_ms, struct error *err)
{
    int r;

    if (!key[0] || strlen(key) > LIMIT_STORE_TEXT || (agent && strlen(agent) > LIMIT_STORE_TEXT) ||
        (token && strlen(token) > LIMIT_STORE_TEXT))
        return error_set(err, ERR_INVALID, "a session's key has 1 to %u bytes", LIMIT_STORE_TEXT);
    r = store_write(s, err);
    if (r < 0)
        return r;
    r = touch(s, Q_SESSION_USE, key, agent, token, now_ms, err);
    if (r >= 0 && sqlite3_changes(s->db) == 0) {
        r = touch(s, Q_SESSION_PUT, key, agent, token, now_ms, err);
        s->change.sessions += r >= 0;
    }
    return r < 0 ? store_give_up(s, r) : store_wrote(s, 0, false, err);
}

int store_session_remove(struct store *s, const char *key, struct error *err)
{
    autoquery *q = store_query(s, Q_SESSION_REMOVE);
    int r = store_write(s, err);

    if (r < 0)
        return r;
    query_text(q, 1, key);
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
