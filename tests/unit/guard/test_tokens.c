/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/tokens.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "tests/test.h"

static char *all[] = {(char *)"*", NULL};

static struct temp *use(void **state)
{
    struct temp *t = *state;

    assert_int_equal(setenv("CLAWDEN_DATA_DIR", t->path, 1), 0);
    assert_int_equal(chmod(t->path, 0700), 0);
    return t;
}

static void make(const char *agent, char **sessions, unsigned rights, int64_t expires,
                 char text[TOKEN_TEXT], char id[TOKEN_ID])
{
    struct token w = {
        .agent = (char *)agent, .sessions = sessions, .rights = rights, .expires = expires};
    struct error err;

    CHECK_OK(tokens_create(&w, text, id, &err), err);
}

static struct tokens *load(void)
{
    struct tokens *t;
    struct error err;

    CHECK_OK(tokens_load(&t, &err), err);
    return t;
}

static void test_made(void **state)
{
    char text[TOKEN_TEXT], id[TOKEN_ID], other[TOKEN_TEXT], other_id[TOKEN_ID], disk[4096];
    autoptr(tokens) t = NULL;
    struct temp *temp = use(state);
    const struct token *one;
    struct stat st;
    ssize_t n;

    make("main", all, RIGHT_READ | RIGHT_RUN, 0, text, id);
    make("ci", all, RIGHT_READ, 0, other, other_id);
    t = load();
    one = tokens_check(t, text, strlen(text), 1000);
    assert_non_null(one);
    assert_string_equal(one->id, id);
    assert_string_equal(one->agent, "main");
    assert_string_equal(tokens_check(t, other, strlen(other), 1000)->id, other_id);
    assert_int_equal(fstatat(temp->fd, "tokens.json", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    n = fd_read_text(temp->fd, "tokens.json", disk, sizeof(disk));
    assert_true(n > 0);
    assert_null(strstr(disk, text + 17)); /* the secret is nowhere */
    assert_non_null(strstr(disk, id));
}

static void test_refused(void **state)
{
    char text[TOKEN_TEXT], id[TOKEN_ID], bad[TOKEN_TEXT + 2];
    autoptr(tokens) t = NULL;

    (void)use(state);
    make("main", all, RIGHT_RUN, 0, text, id);
    t = load();
    for (size_t i = 0; i < strlen(text); i++) { /* one letter other, everywhere */
        memcpy(bad, text, sizeof(text));
        bad[i] = bad[i] == 'a' ? 'b' : 'a';
        assert_null(tokens_check(t, bad, strlen(text), 1000));
        assert_null(tokens_check(t, text, i, 1000));
    }
    (void)snprintf(bad, sizeof(bad), "%sa", text);
    assert_null(tokens_check(t, bad, strlen(bad), 1000));
    for (char *p = bad; *p; p++) /* no other spelling */
        *p = (char)(*p >= 'a' && *p <= 'f' && p > bad + 4 ? *p - 32 : *p);
    assert_null(tokens_check(t, bad, strlen(text), 1000));
    assert_null(tokens_check(t, "", 0, 1000));
}

static void test_expiry(void **state)
{
    char text[TOKEN_TEXT], id[TOKEN_ID];
    autoptr(tokens) t = NULL;

    (void)use(state);
    make("main", all, RIGHT_RUN, 5000, text, id);
    t = load();
    assert_non_null(tokens_check(t, text, strlen(text), 4999));
    assert_null(tokens_check(t, text, strlen(text), 5000));
}

static void test_change(void **state)
{
    char text[TOKEN_TEXT], id[TOKEN_ID], again[TOKEN_TEXT];
    autoptr(tokens) before = NULL;
    autoptr(tokens) after = NULL;
    autoptr(tokens) end = NULL;
    struct error err;

    (void)use(state);
    make("main", all, RIGHT_RUN, 0, text, id);
    before = load();
    assert_false(tokens_is_stale(before));
    CHECK_OK(tokens_rotate(id, again, &err), err);
    assert_true(tokens_is_stale(before));
    after = load();
    assert_null(tokens_check(after, text, strlen(text), 1));
    assert_non_null(tokens_check(after, again, strlen(again), 1));
    CHECK_OK(tokens_revoke(id, &err), err);
    end = load();
    assert_null(tokens_check(end, again, strlen(again), 1));
    assert_null(tokens_at(end, 0));
    assert_int_equal(tokens_revoke(id, &err), -ERR_NOT_FOUND);
    assert_int_equal(tokens_rotate("nope", again, &err), -ERR_NOT_FOUND);
}

static void test_rights(void **state)
{
    static char *some[] = {(char *)"agent:ci:build-*", (char *)"agent:ci:main", NULL};
    const struct token run = {
        .agent = (char *)"ci", .sessions = some, .rights = RIGHT_READ | RIGHT_RUN};
    const struct token look = {.agent = (char *)"*", .sessions = all, .rights = RIGHT_READ};
    const struct token admin = {
        .agent = (char *)"x", .sessions = some, .rights = RIGHT_READ | RIGHT_RUN | RIGHT_ADMIN};

    (void)state;
    assert_true(token_may(&run, RIGHT_RUN, "ci", "agent:ci:build-7"));
    assert_true(token_may(&run, RIGHT_READ, "ci", "agent:ci:main"));
    assert_false(token_may(&run, RIGHT_RUN, "ci", "agent:ci:other"));
    assert_false(token_may(&run, RIGHT_RUN, "main", "agent:ci:main"));
    assert_false(token_may(&run, RIGHT_ADMIN, "ci", "agent:ci:main"));
    assert_true(token_may(&look, RIGHT_READ, "main", "agent:main:work"));
    assert_false(token_may(&look, RIGHT_RUN, "main", "agent:main:work"));
    assert_true(token_may(&admin, RIGHT_RUN, "main", "agent:main:work"));
}

static void test_bad_wishes(void **state)
{
    static char *none[] = {NULL}, *empty[] = {(char *)"", NULL};
    char text[TOKEN_TEXT], id[TOKEN_ID];
    struct error err;

    (void)use(state);
    assert_int_equal(tokens_create(&(struct token){.sessions = all, .rights = 1}, text, id, &err),
                     -ERR_INVALID);
    assert_int_equal(
        tokens_create(&(struct token){.agent = (char *)"a", .sessions = none, .rights = 1}, text,
                      id, &err),
        -ERR_INVALID);
    assert_int_equal(
        tokens_create(&(struct token){.agent = (char *)"a", .sessions = empty, .rights = 1}, text,
                      id, &err),
        -ERR_INVALID);
    assert_int_equal(
        tokens_create(&(struct token){.agent = (char *)"a", .sessions = all}, text, id, &err),
        -ERR_INVALID);
}

static void test_bad_files(void **state)
{
    static const char *const bad[] = {"{", "{\"tokens\":[{}]}",
                                      "{\"tokens\":[{\"id\":\"0123456789ab\",\"digest\":\"zz\"}]}"};
    struct temp *temp = use(state);
    char text[TOKEN_TEXT], id[TOKEN_ID];
    struct tokens *t;
    struct error err;

    make("main", all, RIGHT_RUN, 0, text, id);
    assert_int_equal(fchmodat(temp->fd, "tokens.json", 0644, 0), 0);
    CHECK_ERR(tokens_load(&t, &err), err, ERR_DENIED, "private");
    assert_int_equal(fchmodat(temp->fd, "tokens.json", 0600, 0), 0);
    for (size_t i = 0; i < COUNT(bad); i++) {
        autoclose int fd = openat(temp->fd, "tokens.json", O_WRONLY | O_TRUNC | O_CLOEXEC);

        assert_true(write(fd, bad[i], strlen(bad[i])) > 0);
        assert_true(tokens_load(&t, &err) < 0);
    }
    assert_int_equal(unlinkat(temp->fd, "tokens.json", 0), 0);
    assert_int_equal(symlinkat("/dev/null", temp->fd, "tokens.json"), 0);
    assert_true(tokens_load(&t, &err) < 0);
}

/* Eight at once: none is lost. */
static void test_together(void **state)
{
    autoptr(tokens) t = NULL;
    pid_t pids[8];
    size_t n = 0;

    (void)use(state);
    for (size_t i = 0; i < COUNT(pids); i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct token w = {.agent = (char *)"a", .sessions = all, .rights = RIGHT_READ};
            char text[TOKEN_TEXT], id[TOKEN_ID];
            struct error err;
            int r = 0;

            for (int k = 0; r >= 0 && k < 5; k++)
                r = tokens_create(&w, text, id, &err);
            _exit(r < 0);
        }
    }
    for (size_t i = 0; i < COUNT(pids); i++) {
        int status;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    t = load();
    while (tokens_at(t, n))
        n++;
    assert_int_equal(n, 40);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM_IN_TEMP("a token is known by its text, and its text is kept nowhere", test_made),
        CLAIM_IN_TEMP("no other text is taken for it", test_refused),
        CLAIM_IN_TEMP("it expires", test_expiry),
        CLAIM_IN_TEMP("what was rotated or revoked is worth nothing", test_change),
        CLAIM("a token has its rights for its sessions and no others", test_rights),
        CLAIM_IN_TEMP("a token without agent, sessions or rights is not made", test_bad_wishes),
        CLAIM_IN_TEMP("a file that others may read, or that is damaged, is refused",
                      test_bad_files),
        CLAIM_IN_TEMP("made by many at once none is lost", test_together),
    };

    return RUN_CLAIMS("guard/tokens", claims);
}
