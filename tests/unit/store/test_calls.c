/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include <signal.h>
#include <sys/wait.h>

#include "store/internal.h"
#include "tests/unit/store/make.h"

/* ---- one call ---- */

static void test_life(void **state)
{
    autoptr(store) s = open_store(*state, NULL);
    struct store_call c = make_call(1, "my-key");
    auto_found running = {0}, done = {0};
    struct error err;

    CHECK_OK(store_begin(s, &c, NULL, &err), err);
    CHECK_OK(store_find(s, c.id, &running, &err), err);
    assert_int_equal(running.call.state, CALL_RUNNING);
    assert_null(running.call.result);
    end(s, 1, "{\"a\":1}");
    CHECK_OK(store_find(s, c.id, &done, &err), err);
    assert_string_equal(done.call.key, "my-key");
    assert_string_equal(done.call.request, c.request);
    assert_string_equal(done.call.token, c.token);
    assert_string_equal(done.call.agent, c.agent);
    assert_string_equal(done.call.session, c.session);
    assert_string_equal(done.call.tool, c.tool);
    assert_string_equal(done.call.target, c.target);
    assert_int_equal(done.call.state, CALL_DONE);
    assert_int_equal(done.call.begun_ms, c.begun_ms);
    assert_int_equal(done.call.ended_ms, c.begun_ms + 5);
    assert_int_equal(done.call.status, 200);
    assert_string_equal(done.call.result, "{\"a\":1}");
    assert_int_equal(done.call.result_len, 7);
    CHECK_ERR(store_end(s, c.id, CALL_FAILED, 500, NULL, 0, 9, &err), err, ERR_INVALID, "done");
    CHECK_ERR(store_end(s, "nobody", CALL_DONE, 200, NULL, 0, 9, &err), err, ERR_NOT_FOUND,
              "nobody");
    assert_int_equal(state_of(s, 2), -1);
}

static void test_bad_calls(void **state)
{
    autoptr(store) s = open_store(*state, NULL);
    static char longer[LIMIT_STORE_TEXT + 2];
    struct store_call c = make_call(1, "");
    struct error err;

    CHECK_ERR(store_begin(s, &c, NULL, &err), err, ERR_INVALID, "key");
    memset(longer, 'k', sizeof(longer) - 1);
    c.key = longer;
    CHECK_ERR(store_begin(s, &c, NULL, &err), err, ERR_INVALID, "key");
    c.key = NULL;
    c.target = longer;
    CHECK_ERR(store_begin(s, &c, NULL, &err), err, ERR_TOO_LARGE, "longer");
    c = make_call(1, NULL);
    c.id[5] = 0;
    CHECK_ERR(store_begin(s, &c, NULL, &err), err, ERR_INVALID, "digits");
    begin(s, 1, NULL);
    c = make_call(1, NULL);
    CHECK_ERR(store_begin(s, &c, NULL, &err), err, ERR_INVALID, "already");
    assert_int_equal(state_of(s, 1), CALL_RUNNING);
}

/* What would be SQL if it were not bound. */
static void test_quotes(void **state)
{
    autoptr(store) s = open_store(*state, NULL);
    struct store_call c = make_call(1, "'; DROP TABLE calls; --");
    struct store_filter f = {.session = "' OR 1=1 --"};
    auto_found found = {0};
    struct error err;

    c.session = "\"x\"'";
    CHECK_OK(store_begin(s, &c, NULL, &err), err);
    CHECK_OK(store_find(s, c.id, &found, &err), err);
    assert_string_equal(found.call.key, c.key);
    assert_int_equal(count_calls(s, &f), 0);
    f.session = c.session;
    assert_int_equal(count_calls(s, &f), 1);
}

static void test_refused(void **state)
{
    autoptr(store) s = open_store(*state, NULL);
    struct store_call c = make_call(1, "k");
    auto_found f = {0};
    struct error err;

    c.state = CALL_DENIED;
    c.status = 403;
    c.ended_ms = c.begun_ms;
    c.result = "{\"denied\":1}";
    c.result_len = strlen(c.result);
    CHECK_OK(store_begin(s, &c, NULL, &err), err);
    CHECK_OK(store_find(s, c.id, &f, &err), err);
    assert_int_equal(f.call.state, CALL_DENIED);
    assert_int_equal(f.call.status, 403);
    assert_string_equal(f.call.result, c.result);
}

/* ---- keys ---- */

static void test_keys(void **state)
{
    autoptr(store) s = open_store(*state, NULL);
    struct store_call first = make_call(1, "same"), again = make_call(2, "same");
    auto_found a = {0}, b = {0};
    struct error err;

    CHECK_OK(store_begin(s, &first, NULL, &err), err);
    CHECK_ERR(store_begin(s, &again, &a, &err), err, ERR_EXISTS, first.id);
    assert_int_equal(a.call.state, CALL_RUNNING);
    assert_string_equal(a.call.id, first.id);
    end(s, 1, "result");
    again.request[0] = 'f';
    CHECK_ERR(store_begin(s, &again, &b, &err), err, ERR_EXISTS, "same");
    assert_string_equal(b.call.result, "result");
    assert_string_not_equal(b.call.request, again.request); /* the caller says 422 */
    CHECK_ERR(store_begin(s, &again, NULL, &err), err, ERR_EXISTS, "same");
    assert_int_equal(state_of(s, 2), -1);
    again.token = "ffffffffffffffff"; /* another client's keys are its own */
    CHECK_OK(store_begin(s, &again, NULL, &err), err);
    assert_int_equal(state_of(s, 2), CALL_RUNNING);
}

/* A key that is taken does not take along what waits. */
static void test_key_and_batch(void **state)
{
    struct store *s = open_store(*state, NULL);
    struct store_call again = make_call(9, "k");
    struct error err;

    begin(s, 1, "k");
    begin(s, 2, NULL);
    CHECK_ERR(store_begin(s, &again, NULL, &err), err, ERR_EXISTS, "k");
    store_free(s);
    s = open_store(*state, NULL);
    assert_int_equal(state_of(s, 2), CALL_RUNNING);
    store_free(s);
}

/* Many processes, one key: exactly one of them runs it. */
static void test_key_race(void **state)
{
    enum { PROCESSES = 6, KEYS = 20 };
    const struct temp *t = *state;
    pid_t pids[PROCESSES];
    int won = 0, go[2];

    assert_int_equal(pipe(go), 0);
    store_free(open_store(t, NULL));
    for (unsigned p = 0; p < PROCESSES; p++) {
        pids[p] = fork();
        if (pids[p] == 0) {
            struct store *s = NULL;
            struct error err;
            int mine = 0;
            char c;

            (void)close(go[1]);
            if (store_open(t->fd, &s, NULL, &err) < 0 || read(go[0], &c, 1) != 0)
                _exit(255);
            for (unsigned k = 0; k < KEYS; k++) {
                char key[16];
                struct store_call call = make_call(p * KEYS + k, key);
                int r;

                (void)snprintf(key, sizeof(key), "key-%u", k);
                r = store_begin(s, &call, NULL, &err);
                if (r < 0 && r != -ERR_EXISTS)
                    _exit(255);
                mine += r == 0;
            }
            _exit(mine);
        }
    }
    (void)close(go[0]);
    (void)close(go[1]); /* all at once */
    for (unsigned p = 0; p < PROCESSES; p++) {
        int status;

        assert_int_equal(waitpid(pids[p], &status, 0), pids[p]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 255);
        won += WEXITSTATUS(status);
    }
    assert_int_equal(won, KEYS);
}

/* ---- being killed ---- */

static void kill_child(const struct temp *t, void (*work)(struct store *s))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        work(open_store(t, NULL));
        (void)raise(SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

static void begin_two(struct store *s)
{
    begin(s, 1, "finished");
    end(s, 1, "the result");
    begin(s, 2, "not finished");
    begin(s, 3, NULL); /* ST2: it waits, and is lost */
}

static void note_call(void *arg, const struct store_call *c)
{
    unsigned *n = arg;

    assert_int_equal(c->state, CALL_INTERRUPTED);
    assert_string_equal(c->key, "not finished");
    assert_int_equal(c->ended_ms, 77);
    (*n)++;
}

static void test_killed(void **state)
{
    autoptr(store) s = NULL;
    auto_found f = {0};
    struct error err;
    unsigned n = 0;

    kill_child(*state, begin_two);
    s = open_store(*state, NULL);
    begin(s, 4, NULL); /* our own goes on */
    assert_int_equal(state_of(s, 1), CALL_DONE);
    assert_int_equal(state_of(s, 2), CALL_RUNNING);
    CHECK_OK(store_interrupt(s, 77, note_call, &n, &err), err);
    assert_int_equal(n, 1);
    assert_int_equal(state_of(s, 2), CALL_INTERRUPTED);
    assert_int_equal(state_of(s, 4), CALL_RUNNING);
    CHECK_OK(store_interrupt(s, 78, note_call, &n, &err), err);
    assert_int_equal(n, 1);
    CHECK_OK(store_find(s, make_call(1, NULL).id, &f, &err), err);
    assert_string_equal(f.call.result, "the result");
}

/* ST1, wherever the blow falls: what was begun before is there. */
static void test_killed_anywhere(void **state)
{
    const struct temp *t = *state;
    unsigned next = 0;

    for (int round = 0; round < 12; round++) {
        unsigned last = 0;
        struct store *s;
        int told[2], status;
        pid_t pid;

        assert_int_equal(pipe(told), 0);
        pid = fork();
        if (pid == 0) {
            s = open_store(t, NULL);
            for (unsigned i = next + 1;; i++) {
                char key[16];

                (void)snprintf(key, sizeof(key), "key-%u", i);
                begin(s, i, key);
                if (write(told[1], &i, sizeof(i)) != (ssize_t)sizeof(i))
                    _exit(1);
                end(s, i, "result");
            }
        }
        (void)close(told[1]);
        assert_int_equal(read(told[0], &last, sizeof(last)), sizeof(last));
        (void)usleep((unsigned)random() % 20000);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        while (read(told[0], &last, sizeof(last)) == (ssize_t)sizeof(last))
            ;
        (void)close(told[0]);
        s = open_store(t, NULL);
        for (unsigned i = next + 1; i < last; i++)
            CHECK(state_of(s, i) == CALL_DONE, "call %u of %u: %d", i, last, state_of(s, i));
        assert_true(state_of(s, last) >= CALL_RUNNING);
        next = last + 1; /* which may have begun unheard */
        store_free(s);
    }
}

/* Another process that lives is not a gateway that was killed. */
static void test_two_alive(void **state)
{
    autoptr(store) a = open_store(*state, NULL);
    autoptr(store) b = NULL;
    struct error err;

    begin(a, 1, "k");
    b = open_store(*state, NULL);
    CHECK_OK(store_interrupt(b, 1, NULL, NULL, &err), err);
    assert_int_equal(state_of(b, 1), CALL_RUNNING);
    end(a, 1, "r");
    assert_int_equal(state_of(b, 1), CALL_DONE);
}

static void begin_many(struct store *s)
{
    for (unsigned i = 0; i < 2 * LIMIT_BATCH; i++)
        begin(s, i, NULL);
}

/* What waits is written by itself after a while, and by a keyed call. */
static void test_batches(void **state)
{
    autoptr(store) s = NULL;
    struct store_filter all = {.limit = 1000};

    kill_child(*state, begin_many);
    s = open_store(*state, NULL);
    assert_int_equal(count_calls(s, &all), 2 * LIMIT_BATCH);
    begin(s, 5000, NULL);
    begin(s, 5001, "k");
    assert_int_equal(s->waiting, 0);
    begin(s, 5002, NULL);
    assert_int_equal(s->waiting, 1);
    end(s, 5001, "r");
    assert_int_equal(s->waiting, 0);
}

/* ---- limits ---- */

static void test_many_calls(void **state)
{
    autoptr(store) s = open_store(*state, NULL);
    struct store_filter all = {.limit = 1000};
    struct error err;

    s->limit.calls = 200;
    begin(s, 0, "keyed"); /* it runs all the while */
    for (unsigned i = 1; i < 1000; i++) {
        begin(s, i, NULL);
        end(s, i, "r");
        assert_true(i % 100 || store_flush(s, &err) == 0);
        assert_true(i % 100 || count_calls(s, &all) <= 200);
    }
    assert_int_equal(state_of(s, 999), CALL_DONE);
    assert_int_equal(state_of(s, 1), -1);
    assert_int_equal(state_of(s, 0), CALL_RUNNING);
}

static void test_large_results(void **state)
{
    enum { SIZE = 100000, MOST = 20 };
    autoptr(store) s = open_store(*state, NULL);
    autofree char *text = calloc(1, LIMIT_RESULT + 2);
    struct store_call too_large = make_call(1000, NULL);
    auto_found oldest = {0}, newest = {0}, none = {0};
    struct error err;

    assert_non_null(text);
    s->limit.bytes = (int64_t)MOST * SIZE;
    memset(text, 'x', SIZE);
    for (unsigned i = 0; i < 50; i++) {
        begin(s, i, NULL);
        end(s, i, text);
    }
    CHECK_OK(store_flush(s, &err), err);
    CHECK_OK(store_find(s, make_call(0, NULL).id, &oldest, &err), err);
    assert_int_equal(oldest.call.state, CALL_DONE);
    assert_null(oldest.call.result);
    CHECK_OK(store_find(s, make_call(49, NULL).id, &newest, &err), err);
    assert_int_equal(newest.call.result_len, SIZE);
    memset(text, 'x', LIMIT_RESULT + 1);
    s->limit.bytes = LIMIT_KEPT;
    begin(s, 1000, NULL);
    end(s, 1000, text);
    CHECK_OK(store_find(s, too_large.id, &none, &err), err);
    assert_int_equal(none.call.state, CALL_DONE);
    assert_null(none.call.result);
}

/* The numbers in the file are those of what is in it. */
static void test_totals(void **state)
{
    autoptr(store) s = open_store(*state, NULL);
    static const char sql[] = "SELECT (SELECT count(*) FROM calls) = calls AND"
                              " (SELECT sum(length(body)) FROM results) = bytes AND"
                              " (SELECT count(*) FROM sessions) = sessions FROM totals";
    struct error err;
    sqlite3_stmt *q;
    char key[32];

    s->limit = (struct totals){150, 5000, 100};
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof(key), "s-%u", i * 7919 % 400);
        CHECK_OK(store_session(s, key, "main", "t", i, &err), err);
        begin(s, i, i % 3 ? NULL : key);
        end(s, i, "0123456789012345678901234567890123456789" + i % 40);
        if (i % 50 == 0)
            (void)store_session_remove(s, key, &err);
    }
    CHECK_OK(store_flush(s, &err), err);
    assert_int_equal(sqlite3_prepare_v2(s->db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(q, 0), 1);
    assert_int_equal(sqlite3_finalize(q), SQLITE_OK);
}

/* ---- lists ---- */

static void fill(struct store *s)
{
    static const char *const agents[] = {"main", "other"};
    static const char *const tools[] = {"exec", "read", "write"};
    struct error err;

    for (unsigned i = 0; i < 30; i++) {
        struct store_call c = make_call(i, NULL);

        c.agent = agents[i % 2];
        c.tool = tools[i % 3];
        c.session = i % 5 ? "agent:main:main" : "agent:main:second";
        CHECK_OK(store_begin(s, &c, NULL, &err), err);
        if (i % 2)
            end(s, i, "r");
    }
}

static void test_filters(void **state)
{
    autoptr(store) s = open_store(*state, NULL);
    static const int64_t start = 1700000000000;
    const struct {
        struct store_filter f;
        size_t n;
    } rows[] = {
        {{0}, 30},
        {{.limit = 7}, 7},
        {{.agent = "main"}, 15},
        {{.agent = "mai"}, 0},
        {{.tool = "read"}, 10},
        {{.tool = "read", .agent = "other"}, 5},
        {{.session = "agent:main:second"}, 6},
        {{.session = "agent:main:second", .state = "done"}, 3},
        {{.state = "running"}, 15},
        {{.token = "0011223344556677"}, 30},
        {{.token = "x"}, 0},
        {{.since_ms = start + 20}, 10},
        {{.until_ms = start + 9}, 10},
        {{.since_ms = start + 5, .until_ms = start + 6}, 2},
    };
    struct store_filter bad = {.state = "sleeping"};
    json_t *list = NULL;
    struct error err;

    fill(s);
    FOR_EACH(row, rows)
    CHECK(count_calls(s, &row->f) == row->n, "row %zu: %zu, not %zu", (size_t)(row - rows),
          count_calls(s, &row->f), row->n);
    CHECK_ERR(store_calls(s, &bad, &list, &err), err, ERR_INVALID, "sleeping");
    CHECK_OK(store_calls(s, &rows[0].f, &list, &err), err);
    assert_string_equal(field(list, 0, "call"), make_call(29, NULL).id);
    assert_string_equal(field(list, 0, "state"), "done");
    assert_string_equal(field(list, 29, "call"), make_call(0, NULL).id);
    assert_null(json_object_get(json_array_get(list, 0), "result"));
    json_decref(list);
}

static void test_sessions(void **state)
{
    autoptr(store) s = open_store(*state, NULL);
    json_t *list = NULL;
    struct error err;

    begin(s, 1, NULL);
    begin(s, 2, NULL);
    CHECK_OK(store_session(s, "agent:main:main", "main", "t", 10, &err), err);
    CHECK_OK(store_session(s, "agent:other:x", "other", "t", 20, &err), err);
    CHECK_OK(store_session(s, "agent:main:main", "main", "u", 30, &err), err);
    CHECK_ERR(store_session(s, "", "main", "t", 10, &err), err, ERR_INVALID, "key");
    CHECK_OK(store_sessions(s, NULL, 0, &list, &err), err);
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(field(list, 0, "session"), "agent:main:main");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "created")), 10);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "used")), 30);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "calls")), 2);
    json_decref(list);
    CHECK_OK(store_session_remove(s, "agent:main:main", &err), err);
    CHECK_ERR(store_session_remove(s, "agent:main:main", &err), err, ERR_NOT_FOUND, "main");
    CHECK_OK(store_sessions(s, "other", 0, &list, &err), err);
    assert_int_equal(json_array_size(list), 1);
    json_decref(list);
    assert_int_equal(state_of(s, 1), CALL_RUNNING); /* calls are the record's, not the session's */
}

static long long calls_of(struct store *s, const char *key, long long *ret_used)
{
    json_t *list = NULL;
    long long n = -1;
    struct error err;

    CHECK_OK(store_sessions(s, NULL, 0, &list, &err), err);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(field(list, i, "session"), key) == 0) {
            n = json_integer_value(json_object_get(json_array_get(list, i), "calls"));
            *ret_used = json_integer_value(json_object_get(json_array_get(list, i), "used"));
        }
    json_decref(list);
    return n;
}

/* Calls of one session in a row are only counted until something else needs the number. */
static void test_calls_in_a_row(void **state)
{
    struct store *s = open_store(*state, NULL);
    long long used = 0;
    struct error err;

    for (int i = 0; i < 10; i++)
        CHECK_OK(store_session(s, "a", "main", "t", 100 + i, &err), err);
    assert_int_equal(calls_of(s, "a", &used), 10);
    assert_int_equal(used, 109);
    for (int i = 0; i < 10; i++)
        CHECK_OK(store_session(s, i % 4 ? "a" : "b", "main", "t", 50, &err), err);
    for (int i = 0; i < 5; i++)
        CHECK_OK(store_session(s, "a", "main", "t", 120, &err), err);
    CHECK_OK(store_session(s, "gone", "main", "t", 120, &err), err);
    CHECK_OK(store_session(s, "gone", "main", "t", 120, &err), err);
    CHECK_OK(store_session_remove(s, "gone", &err), err);
    CHECK_OK(store_session(s, "gone", "main", "t", 120, &err), err);
    CHECK_OK(store_flush(s, &err), err);
    CHECK_OK(store_session(s, "b", "main", "t", 130, &err), err);
    CHECK_OK(store_session(s, "b", "main", "t", 131, &err), err);
    store_free(s);
    s = open_store(*state, NULL);
    assert_int_equal(calls_of(s, "a", &used), 22);
    assert_int_equal(used, 120);
    assert_int_equal(calls_of(s, "b", &used), 5);
    assert_int_equal(used, 131);
    assert_int_equal(calls_of(s, "gone", &used), 1);
    store_free(s);
}

static void test_many_sessions(void **state)
{
    autoptr(store) s = open_store(*state, NULL);
    json_t *list = NULL;
    struct error err;
    char key[32];

    s->limit.sessions = 100;
    for (unsigned i = 0; i < 500; i++) {
        (void)snprintf(key, sizeof(key), "s-%u", i);
        CHECK_OK(store_session(s, key, "main", "t", i, &err), err);
    }
    CHECK_OK(store_flush(s, &err), err);
    CHECK_OK(store_sessions(s, NULL, 1000, &list, &err), err);
    assert_in_range(json_array_size(list), 1, 100);
    assert_string_equal(field(list, 0, "session"), "s-499");
    json_decref(list);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM_IN_TEMP("a call is begun, found, ended once, and found again", test_life),
        CLAIM_IN_TEMP("calls that break the rules are refused", test_bad_calls),
        CLAIM_IN_TEMP("texts are never SQL", test_quotes),
        CLAIM_IN_TEMP("a refused call is begun and ended at once", test_refused),
        CLAIM_IN_TEMP("a key is there once for each token, and leads to its call", test_keys),
        CLAIM_IN_TEMP("a taken key does not lose what waits", test_key_and_batch),
        CLAIM_IN_TEMP("of many processes one gets a key", test_key_race),
        CLAIM_IN_TEMP("a killed process loses no keyed call", test_killed),
        CLAIM_IN_TEMP("wherever it is killed", test_killed_anywhere),
        CLAIM_IN_TEMP("calls of a process that lives are not interrupted", test_two_alive),
        CLAIM_IN_TEMP("what waits is written by and by", test_batches),
        CLAIM_IN_TEMP("the oldest calls go, running ones stay", test_many_calls),
        CLAIM_IN_TEMP("the oldest results go, too large ones do not come", test_large_results),
        CLAIM_IN_TEMP("the totals are exact", test_totals),
        CLAIM_IN_TEMP("the longest unused sessions are forgotten", test_many_sessions),
        CLAIM_IN_TEMP("calls are listed by filters, newest first", test_filters),
        CLAIM_IN_TEMP("sessions are made, used, listed and removed", test_sessions),
        CLAIM_IN_TEMP("calls of one session in a row are all counted", test_calls_in_a_row),
    };

    return RUN_CLAIMS("store/calls", claims);
}
