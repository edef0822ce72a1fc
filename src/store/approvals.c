/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "store/internal.h"

#define SLACK_MS 60000 /* so far a clock is corrected without being set back */

static const char *const states[] = {
    [APPROVAL_PENDING] = "pending", [APPROVAL_ALLOWED] = "allowed", [APPROVAL_DENIED] = "denied"};

const char *approval_state_name(enum approval_state s)
{
    return (size_t)s < sizeof(states) / sizeof(*states) ? states[s] : "unknown";
}

/* Those whose time is over; and those whose time is further away than any can be: the clock was set
 * back, and nobody knows how old they are. */
static int forget_old(struct store *s, int64_t now_ms, struct error *err)
{
    autoquery *q = store_query(s, Q_APPROVALS_CUT);

    query_int(q, 1, now_ms);
    query_int(q, 2, now_ms + APPROVAL_MS + SLACK_MS);
    return store_run(s, q, "forget old approvals", err);
}

static void copy(sqlite3_stmt *q, int i, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s", query_column(q, i));
}

/* The columns as APPROVAL_COLUMNS has them. */
static void read_approval(sqlite3_stmt *q, struct store_approval *ret)
{
    copy(q, 0, ret->id, sizeof(ret->id));
    copy(q, 1, ret->token, sizeof(ret->token));
    copy(q, 2, ret->request, sizeof(ret->request));
    copy(q, 3, ret->agent, sizeof(ret->agent));
    copy(q, 4, ret->session, sizeof(ret->session));
    copy(q, 5, ret->tool, sizeof(ret->tool));
    copy(q, 6, ret->target, sizeof(ret->target));
    copy(q, 7, ret->rule, sizeof(ret->rule));
    copy(q, 8, ret->arguments, sizeof(ret->arguments));
    ret->state = (enum approval_state)sqlite3_column_int(q, 9);
    ret->asked_ms = sqlite3_column_int64(q, 10);
    ret->expires_ms = sqlite3_column_int64(q, 11);
    copy(q, 12, ret->by, sizeof(ret->by));
}

/* ---- one, held ---- */

/* 1: there is one. */
static int find(struct store *s, sqlite3_stmt *q, struct store_approval *ret, struct error *err)
{
    int code = sqlite3_step(q);

    if (code == SQLITE_ROW)
        read_approval(q, ret);
    return code == SQLITE_ROW    ? 1
           : code == SQLITE_DONE ? 0
                                 : store_fail(s, "find an approval", err);
}

int store_approval_hold(struct store *s, const char *token, const char *request,
                        const char *session, int64_t now_ms, struct store_approval *ret,
                        struct error *err)
{
    autoquery *q = store_query(s, Q_APPROVAL_OF);
    int r = store_write(s, err);

    if (r < 0)
        return r;
    r = forget_old(s, now_ms, err);
    if (r >= 0) {
        query_text(q, 1, token);
        query_text(q, 2, request);
        query_text(q, 3, session);
        r = find(s, q, ret, err);
    }
    return r < 0 ? store_give_up(s, r) : r;
}

int store_approval_hold_id(struct store *s, const char *id, int64_t now_ms,
                           struct store_approval *ret, struct error *err)
{
    autoquery *q = store_query(s, Q_APPROVAL_FIND);
    int r = store_write(s, err);

    if (r < 0)
        return r;
    r = forget_old(s, now_ms, err);
    if (r >= 0) {
        query_text(q, 1, id);
        r = find(s, q, ret, err);
    }
    if (r == 0)
        r = error_set(
            err, ERR_NOT_FOUND,
            "no call waits under '%.32s': it was answered and used, or %d minutes are over", id,
            APPROVAL_MS / 60000);
    return r < 0 ? store_give_up(s, r) : 0;
}

/* ---- changes, each of which is in the file when it returns ---- */

static int count(struct store *s, const char *token, int64_t *ret_all, int64_t *ret_own,
                 struct error *err)
{
    autoquery *q = store_query(s, Q_APPROVALS_COUNT);

    query_text(q, 1, token);
    if (sqlite3_step(q) != SQLITE_ROW)
        return store_fail(s, "count approvals", err);
    *ret_all = sqlite3_column_int64(q, 0);
    *ret_own = sqlite3_column_int64(q, 1);
    return 0;
}

int store_approval_room(struct store *s, const char *token, struct error *err)
{
    int64_t all = 0, own = 0;
    int r = count(s, token, &all, &own, err);

    if (r < 0)
        return r;
    if (own >= LIMIT_TOKEN_APPROVALS)
        return error_set(err, ERR_TOO_LARGE, "%u calls of this token wait for an answer already",
                         LIMIT_TOKEN_APPROVALS);
    if (all >= LIMIT_APPROVALS)
        return error_set(err, ERR_TOO_LARGE, "%u calls wait for an answer already",
                         LIMIT_APPROVALS);
    return 0;
}

int store_approval_put(struct store *s, const struct store_approval *a, struct error *err)
{
    autoquery *q = store_query(s, Q_APPROVAL_PUT);
    int r;

    query_text(q, 1, a->id);
    query_text(q, 2, a->token);
    query_text(q, 3, a->request);
    query_text(q, 4, a->agent);
    query_text(q, 5, a->session);
    query_text(q, 6, a->tool);
    query_text(q, 7, a->target);
    query_text(q, 8, a->rule);
    query_text(q, 9, a->arguments);
    query_int(q, 10, a->asked_ms);
    query_int(q, 11, a->asked_ms + APPROVAL_MS);
    r = store_run(s, q, "keep an approval", err);
    return r < 0 ? store_give_up(s, r) : store_wrote(s, 0, true, err);
}

int store_approval_answer(struct store *s, const char *id, enum approval_state state,
                          const char *by, int64_t now_ms, struct error *err)
{
    autoquery *q = store_query(s, Q_APPROVAL_ANSWER);
    int r;

    query_text(q, 1, id);
    query_int(q, 2, state);
    query_text(q, 3, by);
    query_int(q, 4, now_ms + APPROVAL_MS);
    r = store_run(s, q, "answer an approval", err);
    return r < 0 ? store_give_up(s, r) : store_wrote(s, 0, true, err);
}

int store_approval_remove(struct store *s, const char *id, struct error *err)
{
    autoquery *q = store_query(s, Q_APPROVAL_REMOVE);
    int r;

    query_text(q, 1, id);
    r = store_run(s, q, "use an approval", err);
    return r < 0 ? store_give_up(s, r) : store_wrote(s, 0, true, err);
}

/* ---- lists ---- */

static int json_approval(sqlite3_stmt *q, json_t *list)
{
    static const char *const names[] = {"approval", "token",  "request", "agent",    "session",
                                        "tool",     "target", "rule",    "arguments"};
    json_t *o = json_object();
    int bad = 0;

    for (int i = 0; i < (int)(sizeof(names) / sizeof(*names)); i++)
        bad |= json_object_set_new(o, names[i], query_json(q, i));
    bad |= json_object_set_new(o, "asked", json_integer(sqlite3_column_int64(q, 10)));
    bad |= json_object_set_new(o, "expires", json_integer(sqlite3_column_int64(q, 11)));
    return bad | json_array_append_new(list, o);
}

int store_approvals(struct store *s, int64_t now_ms, json_t **ret, struct error *err)
{
    autoquery *q = store_query(s, Q_APPROVALS);

    query_int(q, 1, now_ms);
    query_int(q, 2, now_ms + APPROVAL_MS + SLACK_MS);
    return query_list(s, q, json_approval, "list approvals", ret, err);
}
