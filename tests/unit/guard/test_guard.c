/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/guard.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/error.h"
#include "tests/test.h"

struct world {
    struct audit audit;
    struct guard *guard;
    char text[TOKEN_TEXT], id[TOKEN_ID];
};

/* A data folder of its own, a configuration, and a token for one agent's sessions. */
static void begin(struct world *w, void **state, const char *config, unsigned rights)
{
    struct temp *t = *state;
    char *sessions[] = {(char *)"agent:main:*", NULL};
    const struct token wanted = {.agent = (char *)"main", .sessions = sessions, .rights = rights};
    const struct guard_options o = {.audit = &w->audit};
    char path[512];
    struct error err;

    assert_int_equal(chmod(t->path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/openclaw.json", t->path);
    temp_write(t, "openclaw.json", config, strlen(config));
    assert_int_equal(setenv("CLAWDEN_DATA_DIR", t->path, 1), 0);
    assert_int_equal(setenv("HOME", t->path, 1), 0);
    assert_int_equal(setenv("OPENCLAW_CONFIG_PATH", path, 1), 0);
    CHECK_OK(tokens_create(&wanted, w->text, w->id, &err), err);
    CHECK_OK(audit_open(&w->audit, &err), err);
    CHECK_OK(guard_new(&o, &w->guard, &err), err);
}

static void end(struct world *w)
{
    guard_free(w->guard);
    audit_close(&w->audit);
}

static int admit(struct world *w, const char *tool, unsigned right, const char *session,
                 struct pass **pass, struct denial *d, struct error *err)
{
    const struct guard_wish wish = {.tool = tool,
                                    .session = session,
                                    .command = "true",
                                    .target = "true",
                                    .request = "r",
                                    .right = right,
                                    .now_ms = 1};
    struct identity who;

    CHECK_OK(guard_identify(w->guard, w->text, strlen(w->text), 1, &who, err), *err);
    return guard_admit(w->guard, &who, &wish, pass, d, err);
}

static size_t count_lines(struct temp *t, const char *with)
{
    autofree char *text = temp_read(t, "logs/audit.jsonl", NULL);
    size_t n = 0;

    for (const char *at = text; (at = strstr(at, with)); at++)
        n++;
    return n;
}

/* ---- approvals ---- */

#define ASKS "{agents: {defaults: {sandbox: {approve: ['write']}}}}"

/* A guard with a store, and a second token that has another right. */
struct asking {
    struct world w;
    struct store *store;
    char other[TOKEN_TEXT], other_id[TOKEN_ID];
};

static void begin_asking(struct asking *a, void **state, unsigned rights, unsigned others)
{
    struct temp *t = *state;
    char *sessions[] = {(char *)"agent:main:*", NULL};
    const struct token wanted = {.agent = (char *)"main", .sessions = sessions, .rights = others};
    struct guard_options o = {.audit = &a->w.audit};
    struct error err;

    begin(&a->w, state, ASKS, rights);
    CHECK_OK(tokens_create(&wanted, a->other, a->other_id, &err), err);
    CHECK_OK(store_open(t->fd, &a->store, NULL, &err), err);
    guard_free(a->w.guard);
    o.store = a->store;
    CHECK_OK(guard_new(&o, &a->w.guard, &err), err);
}

static void end_asking(struct asking *a)
{
    end(&a->w);
    store_free(a->store);
}

static void identify(struct asking *a, const char *text, struct identity *ret)
{
    struct error err;

    CHECK_OK(guard_identify(a->w.guard, text, strlen(text), 1, ret, &err), err);
}

/* 1: admitted; the pass is dropped. */
static int ask(struct asking *a, const char *text, const char *request, int64_t now,
               struct denial *d, struct error *err)
{
    const struct guard_wish wish = {.tool = "write",
                                    .target = "f",
                                    .key = "k",
                                    .request = request,
                                    .right = RIGHT_RUN,
                                    .now_ms = now};
    autoptr(pass) p = NULL;
    struct identity who;

    identify(a, text, &who);
    return guard_admit(a->w.guard, &who, &wish, &p, d, err);
}

static int answer(struct asking *a, const char *text, const char *id, bool allow, struct error *err)
{
    struct store_approval x;
    struct identity who;

    identify(a, text, &who);
    return guard_answer(a->w.guard, &who, id, allow, 1, &x, err);
}

#define RUN (RIGHT_READ | RIGHT_RUN)
#define R1  "1111111111111111111111111111111111111111111111111111111111111111"
#define R2  "2222222222222222222222222222222222222222222222222222222222222222"

static void test_approval(void **state)
{
    struct asking a;
    struct denial d, again;
    struct error err;

    begin_asking(&a, state, RUN, RUN | RIGHT_APPROVE);
    assert_int_equal(ask(&a, a.w.text, R1, 1, &d, &err), 0);
    assert_false(d.final);
    assert_string_equal(d.rule, "write");
    assert_string_equal(d.key, "agents.defaults.sandbox.approve");
    assert_int_equal(strlen(d.approval), APPROVAL_ID - 1);
    assert_int_equal(count_lines(*state, "approval.ask"), 1);
    assert_int_equal(count_lines(*state, "\"key\":\"k\""), 0); /* it is not used up */
    assert_int_equal(ask(&a, a.w.text, R1, 1, &again, &err), 0);
    assert_string_equal(again.approval, d.approval);
    assert_int_equal(count_lines(*state, "approval.ask"), 1);
    CHECK_OK(answer(&a, a.other, d.approval, true, &err), err);
    assert_int_equal(count_lines(*state, "approval.allow"), 1);
    assert_int_equal(ask(&a, a.w.text, R2, 1, &again, &err), 0); /* another request */
    assert_int_equal(ask(&a, a.other, R1, 1, &again, &err), 0);  /* another token */
    assert_int_equal(ask(&a, a.w.text, R1, APPROVAL_MS, &again, &err), 1);
    assert_int_equal(count_lines(*state, "approval.use"), 1);
    assert_int_equal(ask(&a, a.w.text, R1, 2, &again, &err), 0); /* once */
    assert_string_not_equal(again.approval, d.approval);
    end_asking(&a);
}

static void test_no(void **state)
{
    struct asking a;
    struct denial d, again;
    struct error err;

    begin_asking(&a, state, RUN, RUN | RIGHT_APPROVE);
    assert_int_equal(ask(&a, a.w.text, R1, 1, &d, &err), 0);
    CHECK_OK(answer(&a, a.other, d.approval, true, &err), err);
    CHECK_ERR(answer(&a, a.other, d.approval, true, &err), err, ERR_EXISTS, "allowed already");
    CHECK_OK(answer(&a, a.other, d.approval, false, &err), err); /* taken back */
    CHECK_ERR(answer(&a, a.other, d.approval, true, &err), err, ERR_EXISTS, a.other_id);
    assert_int_equal(ask(&a, a.w.text, R1, 1, &again, &err), 0);
    assert_true(again.final && !again.approval[0]);
    assert_int_equal(count_lines(*state, "approval.deny"), 1);
    assert_int_equal(ask(&a, a.w.text, R1, 1 + APPROVAL_MS, &again, &err), 0);
    assert_true(!again.final && again.approval[0]); /* asked anew */
    end_asking(&a);
}

static void test_who_answers(void **state)
{
    static const struct {
        unsigned own, others;
        int by_itself, by_other; /* negative: this error */
    } rows[] = {
        {RUN, RUN, -ERR_DENIED, -ERR_NOT_FOUND},
        {RUN, RUN | RIGHT_ADMIN, -ERR_DENIED, 0},
        {RUN | RIGHT_ADMIN, RIGHT_APPROVE, -ERR_DENIED, 0},
        {RUN | RIGHT_APPROVE, RUN, 0, -ERR_NOT_FOUND},
    };

    FOR_EACH(row, rows)
    {
        struct asking a;
        struct denial d;
        struct error err;

        begin_asking(&a, state, row->own, row->others);
        assert_int_equal(ask(&a, a.w.text, R1, 1, &d, &err), 0);
        assert_int_equal(answer(&a, a.other, d.approval, true, &err), row->by_other);
        assert_int_equal(answer(&a, a.w.text, d.approval, false, &err), row->by_itself);
        end_asking(&a);
    }
}

static void test_approval_unrecorded(void **state)
{
    struct asking a;
    struct denial d;
    struct error err;

    begin_asking(&a, state, RUN, RIGHT_APPROVE);
    assert_int_equal(mkdirat(a.w.audit.dir, "audit.jsonl", 0700), 0);
    assert_true(ask(&a, a.w.text, R1, 1, &d, &err) < 0);
    assert_int_equal(unlinkat(a.w.audit.dir, "audit.jsonl", AT_REMOVEDIR), 0);
    assert_int_equal(ask(&a, a.w.text, R1, 1, &d, &err), 0);
    assert_int_equal(count_lines(*state, "approval.ask"), 1); /* it was not there */
    assert_int_equal(renameat(a.w.audit.dir, "audit.jsonl", a.w.audit.dir, "away"), 0);
    assert_int_equal(mkdirat(a.w.audit.dir, "audit.jsonl", 0700), 0);
    assert_true(answer(&a, a.other, d.approval, true, &err) < 0);
    assert_int_equal(unlinkat(a.w.audit.dir, "audit.jsonl", AT_REMOVEDIR), 0);
    assert_int_equal(ask(&a, a.w.text, R1, 1, &d, &err), 0); /* it was not allowed */
    CHECK_OK(answer(&a, a.other, d.approval, true, &err), err);
    assert_int_equal(unlinkat(a.w.audit.dir, "audit.jsonl", 0), 0);
    assert_int_equal(mkdirat(a.w.audit.dir, "audit.jsonl", 0700), 0);
    assert_true(ask(&a, a.w.text, R1, 1, &d, &err) < 0);
    assert_int_equal(unlinkat(a.w.audit.dir, "audit.jsonl", AT_REMOVEDIR), 0);
    assert_int_equal(ask(&a, a.w.text, R1, 1, &d, &err), 1); /* it was not used */
    end_asking(&a);
}

static void test_nobody_asked(void **state)
{
    struct pass *p = NULL;
    struct world w;
    struct denial d;
    struct error err;

    begin(&w, state, ASKS, RUN); /* without a store */
    assert_int_equal(admit(&w, "write", RIGHT_RUN, NULL, &p, &d, &err), 0);
    assert_true(d.final && !p);
    end(&w);
}

#define STRICT "{}"
#define OFF    "{agents: {defaults: {sandbox: {mode: 'off'}}}}"

static void test_admit(void **state)
{
    autoptr(pass) p = NULL;
    struct world w;
    struct denial d;
    struct error err;

    begin(&w, state, STRICT, RIGHT_READ | RIGHT_RUN);
    assert_int_equal(admit(&w, "exec", RIGHT_RUN, NULL, &p, &d, &err), 1);
    assert_string_equal(p->agent, "main");
    assert_string_equal(p->session, "agent:main:main");
    assert_int_equal(p->verdict.route, ROUTE_ISOLATED);
    assert_true(p->may_write);
    assert_int_equal(strlen(p->call), 32);
    assert_int_equal(count_lines(*state, "\"call.begin\""), 1);
    assert_int_equal(count_lines(*state, p->call), 1);
    end(&w);
}

/* Each refusal names its rule, makes no pass, and is recorded. */
static void test_refuse(void **state)
{
    static const struct {
        const char *config, *tool, *session, *rule;
        unsigned has, wants;
    } rows[] = {
        {STRICT, "exec", "agent:other:x", "token's sessions", RIGHT_READ | RIGHT_RUN, RIGHT_RUN},
        {STRICT, "exec", "agent:main:x", "token's rights", RIGHT_READ, RIGHT_RUN},
        {STRICT, "gateway", "agent:main:x", "", RIGHT_READ | RIGHT_RUN, RIGHT_RUN},
        {OFF, "exec", "agent:main:x", "", RIGHT_READ | RIGHT_RUN, RIGHT_RUN},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct pass *p = NULL;
        struct world w;
        struct denial d;
        struct error err;
        size_t before;
        int r;

        begin(&w, state, rows[i].config, rows[i].has);
        before = i ? count_lines(*state, "\"deny\"") : 0;
        r = admit(&w, rows[i].tool, rows[i].wants, rows[i].session, &p, &d, &err);
        CHECK(r == 0 && !p, "row %zu: %d %s", i, r, r < 0 ? err.msg : "admitted");
        CHECK(d.reason[0] && d.rule[0] && d.final, "row %zu: it says nothing", i);
        CHECK(!rows[i].rule[0] || strcmp(d.rule, rows[i].rule) == 0, "row %zu: rule '%s'", i,
              d.rule);
        assert_int_equal(count_lines(*state, "\"deny\""), before + 1);
        end(&w);
    }
}

static void test_unrecorded(void **state)
{
    struct temp *t = *state;
    struct pass *p = NULL;
    struct world w;
    struct denial d;
    struct error err;

    begin(&w, state, STRICT, RIGHT_READ | RIGHT_RUN);
    assert_int_equal(mkdirat(w.audit.dir, "audit.jsonl", 0700), 0); /* nobody can write there */
    assert_true(admit(&w, "exec", RIGHT_RUN, NULL, &p, &d, &err) < 0);
    assert_null(p);
    assert_int_equal(unlinkat(w.audit.dir, "audit.jsonl", AT_REMOVEDIR), 0);
    (void)t;
    end(&w);
}

static void note_gone(void *arg, const char *id)
{
    char *noted = arg;

    (void)snprintf(noted, TOKEN_ID, "%s", id);
}

static void test_refresh(void **state)
{
    char gone[TOKEN_ID] = "", fresh[TOKEN_TEXT];
    struct identity who;
    struct world w;
    struct error err;

    begin(&w, state, STRICT, RIGHT_READ);
    assert_int_equal(guard_refresh(w.guard, note_gone, gone, &err), 0);
    CHECK_OK(tokens_rotate(w.id, fresh, &err), err);
    assert_int_equal(guard_refresh(w.guard, note_gone, gone, &err), 1);
    assert_string_equal(gone, w.id);
    assert_true(guard_identify(w.guard, w.text, strlen(w.text), 1, &who, &err) < 0);
    CHECK_OK(guard_identify(w.guard, fresh, strlen(fresh), 1, &who, &err), err);
    gone[0] = 0;
    CHECK_OK(tokens_revoke(w.id, &err), err);
    assert_int_equal(guard_refresh(w.guard, note_gone, gone, &err), 1);
    assert_string_equal(gone, w.id);
    assert_false(guard_knows(w.guard, w.id, 1));
    end(&w);
}

static void test_local(void **state)
{
    struct guard_options o = {.local_agent = "main",
                              .local_session = "agent:main:mcp",
                              .local_rights = RIGHT_READ | RIGHT_RUN};
    struct identity who;
    struct guard *g;
    struct world w;
    struct error err;

    begin(&w, state, STRICT, RIGHT_READ);
    o.audit = &w.audit;
    assert_true(guard_identify(w.guard, NULL, 0, 1, &who, &err) < 0);
    CHECK_OK(guard_new(&o, &g, &err), err);
    assert_true(guard_identify(g, NULL, 0, 1, &who, &err) < 0); /* not open */
    CHECK_OK(guard_recall(g, GUARD_LOCAL, 1, &who, &err), err);
    assert_true(guard_may(&who, RIGHT_RUN, "agent:main:mcp"));
    assert_false(guard_may(&who, RIGHT_RUN, "agent:main:other"));
    assert_false(guard_may(&who, RIGHT_RUN, "nonsense"));
    guard_free(g);
    o.local_is_open = true;
    CHECK_OK(guard_new(&o, &g, &err), err);
    CHECK_OK(guard_identify(g, NULL, 0, 1, &who, &err), err);
    assert_string_equal(who.token, GUARD_LOCAL);
    guard_free(g);
    end(&w);
}

static void test_names(void **state)
{
    static const struct {
        const char *agent, *session, *want_agent, *want_session;
    } rows[] = {
        {NULL, NULL, "main", "agent:main:main"},
        {"main", NULL, "main", "agent:main:main"},
        {"Work Bot", NULL, "work-bot", "agent:work-bot:main"},
        {NULL, "agent:ci:x", "ci", "agent:ci:x"},
        {"ci", "agent:main:x", NULL, NULL},
        {NULL, "x", "main", "agent:main:x"},
        {"ci", "x", "ci", "agent:ci:x"},
        {"a\nb", NULL, NULL, NULL},
    };
    struct identity who;
    struct world w;
    struct error err;

    begin(&w, state, STRICT, RIGHT_READ);
    CHECK_OK(guard_identify(w.guard, w.text, strlen(w.text), 1, &who, &err), err);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char agent[NAMES_AGENT], session[NAMES_SESSION];
        int r = guard_names(&who, rows[i].agent, rows[i].session, agent, session, &err);

        CHECK((r >= 0) == (rows[i].want_agent != NULL), "row %zu: %s", i, r < 0 ? err.msg : agent);
        if (r < 0)
            continue;
        CHECK(strcmp(agent, rows[i].want_agent) == 0, "row %zu: agent '%s'", i, agent);
        CHECK(strcmp(session, rows[i].want_session) == 0, "row %zu: session '%s'", i, session);
    }
    end(&w);
}

static int knows(struct world *w, const char *text, struct identity *who)
{
    struct error err;

    return guard_identify(w->guard, text, strlen(text), 1, who, &err);
}

static void test_door(void **state)
{
    static const char session[] = "agent:main:w*"; /* what looks like a pattern is none */
    const struct guard_wish wish = {.tool = "exec", .command = "true", .right = RIGHT_RUN};
    const struct guard_door door = {.agent = "main", .session = session},
                            another = {.agent = "main", .session = "agent:main:b"};
    autoptr(pass) p = NULL;
    char text[TOKEN_TEXT], other[TOKEN_TEXT], id[TOKEN_ID], other_id[TOKEN_ID];
    struct identity who;
    struct world w;
    struct denial d;
    struct error err;

    begin(&w, state, STRICT, RIGHT_READ);
    CHECK_OK(guard_door(w.guard, &door, text, id, &err), err);
    CHECK_OK(guard_door(w.guard, &another, other, other_id, &err), err);
    assert_int_equal(knows(&w, text, &who), 0);
    assert_string_equal(who.token, id);
    assert_true(guard_knows(w.guard, id, 1));
    assert_true(guard_may(&who, RIGHT_READ | RIGHT_RUN, session));
    assert_false(guard_may(&who, RIGHT_READ, "agent:main:work"));
    assert_false(guard_may(&who, RIGHT_READ, "agent:main:b"));
    assert_false(guard_may(&who, RIGHT_ADMIN, session));
    assert_int_equal(guard_admit(w.guard, &who, &wish, &p, &d, &err), 1);
    assert_string_equal(p->session, session);
    assert_true(p->sibling);
    text[TOKEN_TEXT - 2] = text[TOKEN_TEXT - 2] == '0' ? '1' : '0';
    assert_true(knows(&w, text, &who) < 0);
    guard_door_close(w.guard, other_id);
    assert_true(knows(&w, other, &who) < 0);
    assert_false(guard_knows(w.guard, other_id, 1));
    assert_true(guard_knows(w.guard, id, 1));
    end(&w);
}

/* What a box without a network asks for is not what gives it one, nor our rights to files. */
static void test_door_gets_no_more(void **state)
{
    static const struct {
        const char *tool, *command;
        bool has_network, detached;
        int want;
        bool second_box;
    } rows[] = {
        {"exec", "gh pr list", false, false, 1, false},
        {"exec", "gh pr list", true, false, 1, true},
        {"exec", "ls", true, false, 1, false},
        {"exec", "ls", false, true, 0, false},
        {"process", NULL, false, false, 1, false},
        {"session_status", NULL, false, false, 1, false},
        {"read", NULL, false, false, 0, false},
        {"write", NULL, true, false, 0, false},
        {"grep", NULL, false, false, 0, false},
        {"web_fetch", NULL, true, false, 0, false},
        {"apply_patch", NULL, false, false, 0, false},
        {"web_search", NULL, false, false, 0, false},
    };
    struct world w;

    begin(&w, state, STRICT, RIGHT_READ);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct guard_door door = {
            .agent = "main", .session = "agent:main:a", .has_network = rows[i].has_network};
        const struct guard_wish wish = {.tool = rows[i].tool,
                                        .command = rows[i].command,
                                        .detached = rows[i].detached,
                                        .right = RIGHT_RUN};
        autoptr(pass) p = NULL;
        char text[TOKEN_TEXT], id[TOKEN_ID];
        struct identity who;
        struct denial d;
        struct error err;
        int r;

        CHECK_OK(guard_door(w.guard, &door, text, id, &err), err);
        assert_int_equal(knows(&w, text, &who), 0);
        r = guard_admit(w.guard, &who, &wish, &p, &d, &err);
        CHECK(r == rows[i].want, "%s %s: %d (%s)", rows[i].tool, rows[i].command, r,
              r < 0 ? err.msg : d.reason);
        CHECK(r == 1 || strcmp(d.rule, "door") == 0, "%s: by %s", rows[i].tool, d.rule);
        if (r == 1)
            CHECK(p->verdict.second_box == rows[i].second_box &&
                      (p->verdict.route == ROUTE_NETWORK) == rows[i].second_box,
                  "%s %s: the wrong box", rows[i].tool, rows[i].command);
    }
    end(&w);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM_IN_TEMP("a call is admitted once it is recorded", test_admit),
        CLAIM_IN_TEMP("a refusal names its rule and is recorded", test_refuse),
        CLAIM_IN_TEMP("what cannot be recorded is not admitted", test_unrecorded),
        CLAIM_IN_TEMP("a token that is withdrawn or changed is told", test_refresh),
        CLAIM_IN_TEMP("who started us is let in only where that was said", test_local),
        CLAIM_IN_TEMP("agent and session of a call", test_names),
        CLAIM_IN_TEMP("who speaks out of a box is its session and nobody else", test_door),
        CLAIM_IN_TEMP("who speaks out of a box gets commands, and no network by that",
                      test_door_gets_no_more),
        CLAIM_IN_TEMP("a yes is for one request of one token, once", test_approval),
        CLAIM_IN_TEMP("a no is final while it holds; a yes can be taken back", test_no),
        CLAIM_IN_TEMP("who may answer, and who may not", test_who_answers),
        CLAIM_IN_TEMP("a step that cannot be recorded is not taken", test_approval_unrecorded),
        CLAIM_IN_TEMP("where nobody can be asked the refusal is final", test_nobody_asked),
    };

    return RUN_CLAIMS("guard/guard", claims);
}
