/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include "store/internal.h"
#include "tests/unit/store/make.h"

#define NOW     1700000000000
#define TOKEN   "001122334455"
#define SESSION "agent:main:main"

static struct store_approval make(unsigned n, const char *token)
{
    struct store_approval a = {.session = SESSION,
                               .agent = "main",
                               .tool = "exec",
                               .target = "git push",
                               .rule = "exec:git push*",
                               .arguments = "{\"command\":\"git push\"}",
                               .asked_ms = NOW};

    (void)snprintf(a.id, sizeof(a.id), "%016x", n);
    (void)snprintf(a.request, sizeof(a.request), "%064x", n);
    (void)snprintf(a.token, sizeof(a.token), "%s", token);
    return a;
}

static void put(struct store *s, unsigned n, const char *token)
{
    struct store_approval a = make(n, token);
    struct error err;

    CHECK_OK(store_approval_put(s, &a, &err), err);
}

/* 1: it is there. What it holds is let go. */
static int look(struct store *s, unsigned n, const char *token, const char *session, int64_t now,
                struct store_approval *ret)
{
    struct store_approval want = make(n, token);
    struct error err;
    int r = store_approval_hold(s, token, want.request, session, now, ret, &err);

    CHECK_OK(r, err);
    CHECK_OK(store_flush(s, &err), err);
    return r;
}

static size_t count(struct store *s, int64_t now)
{
    json_t *list = NULL;
    struct error err;
    size_t n;

    CHECK_OK(store_approvals(s, now, &list, &err), err);
    n = json_array_size(list);
    json_decref(list);
    return n;
}

static void test_life(void **state)
{
    struct store *s = open_store(*state, NULL);
    struct store_approval got = {0}, want = make(1, TOKEN);
    struct error err;

    put(s, 1, TOKEN);
    store_free(s);
    s = open_store(*state, NULL); /* it stays */
    assert_int_equal(look(s, 1, TOKEN, SESSION, NOW, &got), 1);
    assert_string_equal(got.id, want.id);
    assert_string_equal(got.request, want.request);
    assert_string_equal(got.arguments, want.arguments);
    assert_string_equal(got.rule, want.rule);
    assert_string_equal(got.by, "");
    assert_int_equal(got.state, APPROVAL_PENDING);
    assert_int_equal(got.expires_ms, NOW + APPROVAL_MS);
    assert_int_equal(count(s, NOW), 1);
    CHECK_OK(store_approval_hold_id(s, want.id, NOW, &got, &err), err);
    CHECK_OK(store_approval_answer(s, want.id, APPROVAL_ALLOWED, "me", NOW + 5, &err), err);
    assert_int_equal(count(s, NOW), 0); /* it waits no longer */
    assert_int_equal(look(s, 1, TOKEN, SESSION, NOW, &got), 1);
    assert_int_equal(got.state, APPROVAL_ALLOWED);
    assert_string_equal(got.by, "me");
    assert_int_equal(got.expires_ms, NOW + 5 + APPROVAL_MS);
    CHECK_OK(store_approval_remove(s, want.id, &err), err);
    assert_int_equal(look(s, 1, TOKEN, SESSION, NOW, &got), 0);
    CHECK_ERR(store_approval_hold_id(s, want.id, NOW, &got, &err), err, ERR_NOT_FOUND, want.id);
    store_free(s);
}

static void test_bound(void **state)
{
    autoptr(store) s = open_store(*state, NULL);
    struct store_approval got;

    put(s, 1, TOKEN);
    assert_int_equal(look(s, 2, TOKEN, SESSION, NOW, &got), 0);
    assert_int_equal(look(s, 1, "665544332211", SESSION, NOW, &got), 0);
    assert_int_equal(look(s, 1, TOKEN, "agent:main:other", NOW, &got), 0);
    assert_int_equal(look(s, 1, TOKEN, SESSION, NOW, &got), 1);
}

static void test_old(void **state)
{
    autoptr(store) s = open_store(*state, NULL);
    struct store_approval got;

    put(s, 1, TOKEN);
    assert_int_equal(look(s, 1, TOKEN, SESSION, NOW + APPROVAL_MS - 1, &got), 1);
    assert_int_equal(count(s, NOW + APPROVAL_MS), 0);
    assert_int_equal(look(s, 1, TOKEN, SESSION, NOW + APPROVAL_MS, &got), 0);
    put(s, 1, TOKEN); /* it is gone: there is room for it again */
    assert_int_equal(look(s, 1, TOKEN, SESSION, NOW - 1000, &got), 1); /* a clock is corrected */
    assert_int_equal(count(s, NOW - 100000), 0);
    assert_int_equal(look(s, 1, TOKEN, SESSION, NOW - 100000, &got), 0); /* it is set back */
}

static void test_room(void **state)
{
    autoptr(store) s = open_store(*state, NULL);
    struct store_approval got;
    struct error err;
    unsigned n = 0;

    for (; n < LIMIT_TOKEN_APPROVALS; n++) {
        CHECK_OK(store_approval_room(s, TOKEN, &err), err);
        put(s, n, TOKEN);
    }
    CHECK_ERR(store_approval_room(s, TOKEN, &err), err, ERR_TOO_LARGE, "of this token");
    CHECK_OK(store_approval_room(s, "665544332211", &err), err);
    for (; n < LIMIT_APPROVALS; n++) {
        char token[13];

        (void)snprintf(token, sizeof(token), "%012x", n / 8);
        put(s, n, token);
    }
    CHECK_ERR(store_approval_room(s, "665544332211", &err), err, ERR_TOO_LARGE, "1024");
    (void)look(s, 0, TOKEN, SESSION, NOW + APPROVAL_MS, &got);
    CHECK_OK(store_approval_room(s, TOKEN, &err), err);
}

/* ST4: between the look and the change nobody else writes. */
static void test_held(void **state)
{
    autoptr(store) a = open_store(*state, NULL);
    autoptr(store) b = open_store(*state, NULL);
    struct store_approval got, again;
    struct error err;

    put(a, 1, TOKEN);
    CHECK_OK(store_approval_hold_id(a, make(1, TOKEN).id, NOW, &got, &err), err);
    (void)sqlite3_busy_timeout(b->db, 10);
    CHECK_ERR(store_approval_hold_id(b, got.id, NOW, &again, &err), err, ERR_TIMEOUT, "writing");
    CHECK_OK(store_approval_remove(a, got.id, &err), err);
    CHECK_ERR(store_approval_hold_id(b, got.id, NOW, &again, &err), err, ERR_NOT_FOUND, got.id);
    assert_int_equal(look(a, 1, TOKEN, SESSION, NOW, &got), 0); /* b has let go */
}

/* As version 1 made its file. */
static const char version_1[] =
    "PRAGMA journal_mode = WAL; BEGIN IMMEDIATE;"
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
    "INSERT INTO totals VALUES(1, 0, 0, 7);"
    "INSERT INTO calls VALUES(1, '00000000000000000000000000000001', 'k', 'r', 't', 'main', 's',"
    " 'exec', 'x', 1, 5, 6, 200, 7);"
    "PRAGMA user_version = 1; COMMIT;";

static void run_sql(const struct temp *t, const char *sql)
{
    sqlite3 *db;
    mode_t before = umask(077);

    assert_int_equal(sqlite3_open(temp_path(t, "store.db"), &db), SQLITE_OK);
    CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    (void)umask(before);
}

static void test_migrate(void **state)
{
    autofree char *note = NULL;
    struct store_approval got;
    auto_found f = {0};
    struct store *s;
    struct error err;

    run_sql(*state, version_1);
    s = open_store(*state, &note);
    CHECK(!note, "%s", note);
    CHECK_OK(store_find_key(s, "t", "k", &f, &err), err);
    assert_int_equal(f.call.state, CALL_DONE);
    put(s, 1, TOKEN);
    store_free(s);
    s = open_store(*state, NULL);
    assert_int_equal(look(s, 1, TOKEN, SESSION, NOW, &got), 1);
    store_free(s);
    run_sql(*state, "PRAGMA user_version = 3");
    CHECK_ERR(store_open(((struct temp *)*state)->fd, &s, NULL, &err), err, ERR_UNSUPPORTED,
              "version 3");
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM_IN_TEMP("an approval is asked, answered and used, and outlives its process",
                      test_life),
        CLAIM_IN_TEMP("it is of one token, one request and one session", test_bound),
        CLAIM_IN_TEMP("it is forgotten in time, and when the clock was set back", test_old),
        CLAIM_IN_TEMP("so many are kept of one token, and of all", test_room),
        CLAIM_IN_TEMP("who looks at one holds it until he has changed it", test_held),
        CLAIM_IN_TEMP("a file of version 1 keeps what it has and gets approvals", test_migrate),
    };

    return RUN_CLAIMS("store/approvals", claims);
}
