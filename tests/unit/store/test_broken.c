/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are not ours, damaged files, and what the audit gives back. */
#include <signal.h>
#include <sys/wait.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "store/internal.h"
#include "tests/unit/store/make.h"

#define CALLS 40u

/* ---- private files ---- */

static void test_modes(void **state)
{
    static const char *const names[] = {"store.db", "store.db-wal", "store.db-shm", "store.lock"};
    const struct temp *t = *state;
    autoptr(store) s = NULL;
    mode_t before = umask(0);
    struct stat st;

    s = open_store(t, NULL);
    (void)umask(before);
    begin(s, 1, "k");
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_int_equal(fstatat(t->fd, names[i], &st, AT_SYMLINK_NOFOLLOW), 0);
        CHECK((st.st_mode & 07777) == 0600, "%s has mode %o", names[i], st.st_mode);
    }
}

static void refuse(const struct temp *t, const char *what, const char *part)
{
    struct store *s = NULL;
    struct error err;
    int r = store_open(t->fd, &s, NULL, &err);

    CHECK(r == -ERR_DENIED && strstr(err.msg, part), "%s: %d %s", what, r, r < 0 ? err.msg : "");
}

/* AU-12 */
static void test_links(void **state)
{
    static const char *const names[] = {"store.db", "store.db-wal", "store.db-shm",
                                        "store.db-journal", "store.lock"};
    const struct temp *t = *state;

    temp_write(t, "victim", "", 0);
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_int_equal(symlinkat("victim", t->fd, names[i]), 0);
        refuse(t, names[i], names[i]);
        assert_int_equal(unlinkat(t->fd, names[i], 0), 0);
        assert_int_equal(linkat(t->fd, "victim", t->fd, names[i], 0), 0);
        refuse(t, names[i], names[i]);
        assert_int_equal(unlinkat(t->fd, names[i], 0), 0);
        assert_int_equal(mkdirat(t->fd, names[i], 0700), 0);
        refuse(t, names[i], names[i]);
        assert_int_equal(unlinkat(t->fd, names[i], AT_REMOVEDIR), 0);
        temp_write(t, names[i], "", 0);
        assert_int_equal(fchmodat(t->fd, names[i], 0640, 0), 0);
        refuse(t, names[i], "0640");
        if (geteuid() == 0) {
            assert_int_equal(fchownat(t->fd, names[i], 1, 1, 0), 0);
            refuse(t, names[i], "somebody else");
        } else {
            (void)host_lacks("files of another user, which only root can make");
        }
        assert_int_equal(unlinkat(t->fd, names[i], 0), 0);
    }
    assert_int_equal(fchmod(t->fd, 0755), 0);
    refuse(t, "folder", "data folder");
}

/* ---- damage ---- */

/* A store with CALLS calls, in the file or (killed) in its -wal. */
static void make_store(const struct temp *t, bool killed)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        struct store *s = open_store(t, NULL);

        for (unsigned i = 0; i < CALLS; i++) {
            char key[16];

            (void)snprintf(key, sizeof(key), "key-%u", i);
            begin(s, i, key);
            end(s, i, "some result of this call");
        }
        if (killed)
            (void)raise(SIGKILL);
        store_free(s);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(killed, WIFSIGNALED(status) != 0);
}

static void clear(const struct temp *t)
{
    static const char *const names[] = {
        "store.db",       "store.db-wal",       "store.db-shm",
        "store.db.bad-1", "store.db.bad-1-wal", "store.db-journal",
    };

    for (size_t i = 0; i < COUNT(names); i++)
        (void)unlinkat(t->fd, names[i], 0);
}

/* AU-13: whole, or said to be not. *said counts the latter. */
static void open_damaged(const struct temp *t, const char *what, size_t at, unsigned *said)
{
    struct store_filter all = {.limit = 1000};
    autofree char *note = NULL;
    autoptr(store) s = NULL;
    struct error err = {0};
    size_t n;

    if (store_open(t->fd, &s, &note, &err) < 0) {
        CHECK(err.msg[0], "%s %zu: no reason", what, at);
        (*said)++;
        return;
    }
    n = count_calls(s, &all);
    CHECK(note || n == CALLS, "%s %zu: %zu calls, and nothing is said", what, at, n);
    *said += note != NULL;
    begin(s, 999, "it works"); /* whatever it was */
}

static void flip(const struct temp *t, const char *name, const char *data, size_t len, size_t at,
                 char bits, unsigned *said)
{
    autofree char *copy = malloc(len);

    assert_non_null(copy);
    memcpy(copy, data, len);
    copy[at] ^= bits;
    temp_write(t, name, copy, len);
    open_damaged(t, name, at, said);
}

static void test_header(void **state)
{
    const struct temp *t = *state;
    autofree char *db = NULL;
    unsigned said = 0;
    size_t len;

    make_store(t, false);
    db = temp_read(t, "store.db", &len);
    for (size_t i = 0; i < 100; i++) {
        clear(t);
        flip(t, "store.db", db, len, i, (char)0xff, &said);
        clear(t);
        flip(t, "store.db", db, len, i, 1, &said);
    }
    assert_true(said > 30);
}

static void test_pages(void **state)
{
    const struct temp *t = *state;
    autofree char *db = NULL;
    unsigned said = 0;
    size_t len;

    make_store(t, false);
    db = temp_read(t, "store.db", &len);
    srandom(1);
    for (size_t i = 0; i < 200; i++) {
        clear(t);
        flip(t, "store.db", db, len, 100 + (size_t)random() % (len - 100), (char)0xff, &said);
    }
    for (size_t cut = 0; cut < len; cut += len / 40 + 1) {
        clear(t);
        temp_write(t, "store.db", db, cut);
        if (cut) /* an empty file is a new one: the audit tells what was in it */
            open_damaged(t, "cut at", cut, &said);
    }
    assert_true(said > 40);
}

static void test_wal(void **state)
{
    const struct temp *t = *state;
    autofree char *db = NULL, *wal = NULL;
    size_t len, wal_len;
    unsigned said = 0;

    make_store(t, true);
    db = temp_read(t, "store.db", &len);
    wal = temp_read(t, "store.db-wal", &wal_len);
    assert_true(wal_len > 100000);
    open_damaged(t, "whole", 0, &said);
    assert_int_equal(said, 0);
    srandom(2);
    for (size_t i = 0; i < 150; i++) {
        size_t at = i < 50 ? i : (size_t)random() % wal_len;

        clear(t);
        temp_write(t, "store.db", db, len);
        flip(t, "store.db-wal", wal, wal_len, at, (char)0xff, &said);
    }
    assert_int_equal(said, 150); /* nothing in it is without a checksum */
    for (size_t cut = 1; cut < wal_len; cut += wal_len / 50) {
        if ((cut - 32) % (24 + 4096) == 0)
            continue; /* whole frames: what is gone cannot be seen here */
        clear(t);
        temp_write(t, "store.db", db, len);
        temp_write(t, "store.db-wal", wal, cut);
        open_damaged(t, "-wal cut at", cut, &said);
    }
    assert_true(said > 195);
}

static void leave_old_frames(struct store *s, const char *result)
{
    assert_int_equal(sqlite3_exec(s->db, "PRAGMA wal_autocheckpoint = 200", NULL, NULL, NULL),
                     SQLITE_OK);
    for (unsigned i = 0; i < 300; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "key-%u", i);
        begin(s, i, key);
        end(s, i, result);
    }
}

/* What an earlier round left at the end of a -wal is no damage. */
static void test_wal_again(void **state)
{
    const struct temp *t = *state;
    static char result[6000];
    struct store_filter all = {.limit = 1000};
    autofree char *note = NULL;
    autoptr(store) s = NULL;
    int status;
    pid_t pid = fork();

    memset(result, 'r', sizeof(result) - 1);
    if (pid == 0) {
        leave_old_frames(open_store(t, NULL), result);
        (void)raise(SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    s = open_store(t, &note);
    assert_null(note);
    assert_int_equal(count_calls(s, &all), 300);
}

/* SQLite would remove a -wal without its file. */
static void test_only_wal(void **state)
{
    const struct temp *t = *state;

    for (int empty = 0; empty < 2; empty++) {
        autofree char *note = NULL;
        struct stat st;

        make_store(t, true);
        assert_int_equal(unlinkat(t->fd, "store.db", 0), 0);
        if (empty)
            temp_write(t, "store.db", "", 0);
        store_free(open_store(t, &note));
        assert_non_null(strstr(note, "store.db.bad-1"));
        assert_int_equal(fstatat(t->fd, "store.db.bad-1-wal", &st, 0), 0);
        assert_true(st.st_size > 100000);
        clear(t);
    }
}

static void test_moved(void **state)
{
    const struct temp *t = *state;
    static const char text[] = "this is not a database, but it is long enough to be one: ........."
                               "................................................................";
    autofree char *note = NULL, *kept = NULL;
    struct error err;
    struct store *s;

    for (unsigned i = 1; i <= LIMIT_BAD; i++) {
        char name[32];

        temp_write(t, "store.db", text, sizeof(text));
        s = open_store(t, &note);
        (void)snprintf(name, sizeof(name), "store.db.bad-%u", i);
        assert_non_null(strstr(note, name));
        store_free(s);
        kept = temp_read(t, name, NULL);
        assert_string_equal(kept, text);
        free(TAKE_PTR(kept));
        free(TAKE_PTR(note));
    }
    temp_write(t, "store.db", text, sizeof(text));
    CHECK_ERR(store_open(t->fd, &s, &note, &err), err, ERR_TOO_LARGE, "store.db.bad-*");
}

/* Nobody's file is taken from under him. */
static void test_in_use(void **state)
{
    const struct temp *t = *state;
    autoptr(store) a = open_store(t, NULL);
    struct store *b = NULL;
    struct error err;

    begin(a, 1, "k");
    store_free(open_store(t, NULL));
    temp_write(t, "store.db", "nothing that SQLite knows, by a program that should not", 50);
    CHECK_ERR(store_open(t->fd, &b, NULL, &err), err, ERR_SYS, "store.db");
    assert_int_equal(faccessat(t->fd, "store.db.bad-1", F_OK, 0), -1);
}

static void test_version(void **state)
{
    const struct temp *t = *state;
    struct store *s = open_store(t, NULL);
    struct error err;

    assert_int_equal(sqlite3_exec(s->db, "PRAGMA user_version = 9", NULL, NULL, NULL), SQLITE_OK);
    store_free(s);
    CHECK_ERR(store_open(t->fd, &s, NULL, &err), err, ERR_UNSUPPORTED, "version 9");
}

/* ---- what the audit gives back ---- */

static void record_begin(struct audit *a, unsigned n, const char *key, const char *verdict)
{
    struct store_call c = make_call(n, key);
    struct error err;
    autobuf f;

    buf_init(&f, LIMIT_AUDIT_LINE);
    buf_json_str(&f, "call", c.id);
    buf_json_str(&f, "token", c.token);
    buf_json_str(&f, "agent", c.agent);
    buf_json_str(&f, "session", c.session);
    buf_json_str(&f, "tool", c.tool);
    buf_json_str(&f, "target", "a \"quoted\"\n\\ target");
    buf_json_str(&f, "verdict", verdict);
    buf_json_str(&f, "route", "isolated");
    if (key) {
        buf_json_str(&f, "key", key);
        buf_json_str(&f, "request", c.request);
    }
    CHECK_OK(audit_append(a, "call.begin", c.tool, &f, &err), err);
}

static void record_end(struct audit *a, unsigned n, const char *state, int status)
{
    struct store_call c = make_call(n, NULL);
    struct error err;
    autobuf f;

    buf_init(&f, LIMIT_AUDIT_LINE);
    buf_json_str(&f, "call", c.id);
    buf_json_str(&f, "state", state);
    buf_json_num(&f, "status", status);
    CHECK_OK(audit_append(a, "call.end", c.tool, &f, &err), err);
}

static struct audit open_audit(const struct temp *t)
{
    struct audit a = {.dir = -1};
    struct error err;

    assert_int_equal(setenv("CLAWDEN_DATA_DIR", t->path, 1), 0);
    assert_int_equal(fchmod(t->fd, 0700), 0);
    CHECK_OK(audit_open(&a, &err), err);
    return a;
}

static void count_one(void *arg, const struct store_call *c)
{
    (void)c;
    (*(unsigned *)arg)++;
}

static void test_rebuild(void **state)
{
    const struct temp *t = *state;
    struct audit a = open_audit(t);
    struct store_call again = make_call(9, "k");
    autofree char *note = NULL;
    autoptr(store) s = NULL;
    auto_found f = {0};
    json_t *list = NULL;
    struct error err;
    unsigned told = 0;

    record_begin(&a, 1, "k", "allow");
    record_end(&a, 1, "done", 200);
    record_begin(&a, 2, NULL, "deny");
    record_begin(&a, 3, NULL, "allow");
    record_begin(&a, 4, NULL, "allow");
    record_end(&a, 4, "failed", 500);
    record_end(&a, 77, "done", 200);
    audit_close(&a);
    s = open_store(t, &note);
    assert_non_null(strstr(note, "4 calls"));
    assert_int_equal(state_of(s, 1), CALL_DONE);
    assert_int_equal(state_of(s, 2), CALL_DENIED);
    assert_int_equal(state_of(s, 3), CALL_INTERRUPTED);
    assert_int_equal(state_of(s, 4), CALL_FAILED);
    assert_int_equal(state_of(s, 77), -1);
    CHECK_ERR(store_begin(s, &again, &f, &err), err, ERR_EXISTS, "k");
    assert_string_equal(f.call.request, again.request);
    assert_string_equal(f.call.target, "a \"quoted\"\n\\ target");
    assert_true(f.call.begun_ms > 1700000000000 && f.call.ended_ms >= f.call.begun_ms);
    assert_int_equal(f.call.status, 200);
    CHECK_OK(store_sessions(s, NULL, 0, &list, &err), err);
    assert_string_equal(field(list, 0, "session"), "agent:main:main");
    json_decref(list);
    CHECK_OK(store_interrupt(s, 5, count_one, &told, &err), err);
    assert_int_equal(told, 1); /* the gateway records its end, now */
    CHECK_OK(store_interrupt(s, 5, count_one, &told, &err), err);
    assert_int_equal(told, 1);
}

/* A killed gateway: what waited for a flush is in the audit; a second look finds nothing new. */
static void test_catch_up(void **state)
{
    const struct temp *t = *state;
    struct audit a = open_audit(t);
    autofree char *note = NULL, *second = NULL;
    struct store *s;
    int status;
    pid_t pid;

    record_begin(&a, 1, NULL, "allow");
    record_end(&a, 1, "done", 200);
    s = open_store(t, &note);
    store_free(s);
    pid = fork();
    if (pid == 0) {
        s = open_store(t, NULL);
        record_begin(&a, 2, "keyed", "allow");
        begin(s, 2, "keyed");
        record_begin(&a, 3, NULL, "allow");
        begin(s, 3, NULL); /* it waits, and is lost */
        record_end(&a, 2, "done", 200);
        (void)raise(SIGKILL); /* before store_end() */
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    audit_close(&a);
    free(TAKE_PTR(note));
    s = open_store(t, &note);
    assert_non_null(strstr(note, "1 calls"));
    assert_int_equal(state_of(s, 1), CALL_DONE);
    assert_int_equal(state_of(s, 2), CALL_DONE);
    assert_int_equal(state_of(s, 3), CALL_INTERRUPTED);
    store_free(s);
    s = open_store(t, &second);
    assert_null(second);
    store_free(s);
}

/* The audit is of no use, or of somebody else: no crash, no silence. */
static void test_bad_audit(void **state)
{
    static const char lines[] =
        "{\"time\":\"2026-11-15T12:00:00.000Z\",\"event\":\"call.begin\"}\n"
        "{\"time\":\"2026-11-15T12:00:00.000Z\",\"event\":\"call.begin\",\"call\":7}\n"
        "{\"time\":\"2026-11-15T12:00:00.000Z\",\"event\":\"call.end\",\"call\":"
        "\"00000000000000000000000000000001\",\"state\":\"x\"}\n"
        "[\"time\",\"event\":\"call.\n\n\n{\"time\":\"2026-11-15T12:00:00.000Z\",\"event\":\"call.";
    const struct temp *t = *state;
    autofree char *note = NULL;
    struct error err;
    struct store *s;

    assert_int_equal(mkdirat(t->fd, "logs", 0700), 0);
    temp_write(t, "logs/audit.jsonl", lines, sizeof(lines) - 1);
    s = open_store(t, &note);
    assert_null(note);
    store_free(s);
    assert_int_equal(fchmodat(t->fd, "logs/audit.jsonl", 0644, 0), 0);
    CHECK_ERR(store_open(t->fd, &s, NULL, &err), err, ERR_DENIED, "audit.jsonl");
    assert_int_equal(unlinkat(t->fd, "logs/audit.jsonl", 0), 0);
    assert_int_equal(symlinkat("/dev/zero", t->fd, "logs/audit.jsonl"), 0);
    CHECK_ERR(store_open(t->fd, &s, NULL, &err), err, ERR_SYS, "audit.jsonl");
}

static void test_no_leaks(void **state)
{
    const struct temp *t = *state;
    size_t before = open_fds();

    for (int i = 0; i < 3; i++)
        store_free(open_store(t, NULL));
    assert_int_equal(fchmodat(t->fd, "store.db", 0644, 0), 0);
    refuse(t, "store.db", "0644");
    assert_int_equal(open_fds(), before);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM_IN_TEMP("its files are closed to others whatever the umask", test_modes),
        CLAIM_IN_TEMP("links and files of others are refused (AU-12)", test_links),
        CLAIM_IN_TEMP("a damaged header is noticed, or does no harm (AU-13)", test_header),
        CLAIM_IN_TEMP("damaged and missing pages are noticed, or do no harm (AU-13)", test_pages),
        CLAIM_IN_TEMP("a damaged or cut -wal is noticed (AU-13)", test_wal),
        CLAIM_IN_TEMP("a -wal with old frames at its end is whole", test_wal_again),
        CLAIM_IN_TEMP("a -wal without its file is kept", test_only_wal),
        CLAIM_IN_TEMP("a broken file is moved aside, and never over another", test_moved),
        CLAIM_IN_TEMP("a file that another has open is not moved", test_in_use),
        CLAIM_IN_TEMP("a file of a later version is left alone", test_version),
        CLAIM_IN_TEMP("a lost file is made anew from the audit", test_rebuild),
        CLAIM_IN_TEMP("lost writes are filled in from the audit", test_catch_up),
        CLAIM_IN_TEMP("an audit that is damaged or not ours does no harm", test_bad_audit),
        CLAIM_IN_TEMP("nothing stays open", test_no_leaks),
    };

    return RUN_CLAIMS("store/broken", claims);
}
