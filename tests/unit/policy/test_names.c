/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/names.h"

#include "tests/test.h"

#define TEN(s) s s s s s s s s s s
#define K300   TEN(TEN("k")) TEN(TEN("k")) TEN(TEN("k"))
#define E100   TEN(TEN("\xc3\xa9"))
#define WS     "/home/claw/workspace"
#define SBX    "openclaw-sbx-"

/*
 * Made by a few lines of Python (hashlib) after OPENCLAW 2.2 and 2.3; the first two are in there
 * and in REQUIREMENTS 3.3. The code of the client 2026.9.6 gives the same for NAMES_WORKSPACE, but
 * for the network's box, which it does not have.
 */
static const struct {
    enum names_version version;
    enum scope scope;
    const char *agent, *session, *workspace, *prefix;
    const char *key, *slug, *box, *network;
} vectors[] = {
    {NAMES_PLAIN, SCOPE_SESSION, "main", "agent:main:explicit:t2", WS, SBX,
     "agent:main:explicit:t2", "agent-main-explicit-t2-ad3cbc73",
     SBX "agent-main-explicit-t2-ad3cbc73", SBX "agent-main-explicit-t2-ad3cbc73-net"},
    {NAMES_PLAIN, SCOPE_AGENT, "main", "agent:main:main", WS, SBX, "agent:main",
     "agent-main-f331f052", SBX "agent-main-f331f052", SBX "agent-main-f331f052-net"},
    {NAMES_PLAIN, SCOPE_SHARED, "main", "agent:main:main", WS, SBX, "shared", "shared",
     SBX "shared", SBX "shared-net"},
    {NAMES_PLAIN, SCOPE_SESSION, "main", "agent:main:main", WS, SBX, "agent:main:main",
     "agent-main-main-6d9217fe", SBX "agent-main-main-6d9217fe",
     SBX "agent-main-main-6d9217fe-net"},
    {NAMES_PLAIN, SCOPE_SESSION, "main", "agent:main:telegram:group:-1001234567890:topic:42", WS,
     SBX, "agent:main:telegram:group:-1001234567890:topic:42",
     "agent-main-telegram-group--10012-d2e66eb4", SBX "agent-main-telegram-group--10012-d2e66eb4",
     SBX "agent-main-telegram-group--10012-d2e66eb4-net"},
    {NAMES_PLAIN, SCOPE_SESSION, "main", "  agent:main:main  ", WS, SBX, "agent:main:main",
     "agent-main-main-6d9217fe", SBX "agent-main-main-6d9217fe",
     SBX "agent-main-main-6d9217fe-net"},
    {NAMES_PLAIN, SCOPE_SESSION, "main",
     "\xc2\xa0"
     "agent:main:main\xe3\x80\x80",
     WS, SBX, "agent:main:main", "agent-main-main-6d9217fe", SBX "agent-main-main-6d9217fe",
     SBX "agent-main-main-6d9217fe-net"},
    {NAMES_PLAIN, SCOPE_SESSION, "main", "agent:main:Signal:GROUP:AbC+/=", WS, SBX,
     "agent:main:Signal:GROUP:AbC+/=", "agent-main-signal-group-abc-de97775e",
     SBX "agent-main-signal-group-abc-de97775e", SBX "agent-main-signal-group-abc-de97775e-net"},
    {NAMES_PLAIN, SCOPE_SESSION, "main", "global", WS, SBX, "global", "global-8001c274",
     SBX "global-8001c274", SBX "global-8001c274-net"},
    {NAMES_PLAIN, SCOPE_SESSION, "main", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", WS, SBX,
     "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", "session-77710aed", SBX "session-77710aed",
     SBX "session-77710aed-net"},
    {NAMES_PLAIN, SCOPE_SESSION, "main",
     "agent:main:\xe2\x84\xaa"
     "elvin",
     WS, SBX,
     "agent:main:\xe2\x84\xaa"
     "elvin",
     "agent-main-kelvin-5f6c482f", SBX "agent-main-kelvin-5f6c482f",
     SBX "agent-main-kelvin-5f6c482f-net"},
    {NAMES_PLAIN, SCOPE_SESSION, "main", "agent:main:\xc4\xb0z", WS, SBX, "agent:main:\xc4\xb0z",
     "agent-main-i-z-67e53705", SBX "agent-main-i-z-67e53705", SBX "agent-main-i-z-67e53705-net"},
    {NAMES_PLAIN, SCOPE_SESSION, "main", "a--b__c..d", WS, SBX, "a--b__c..d", "a--b__c..d-c3af9061",
     SBX "a--b__c..d-c3af9061", SBX "a--b__c..d-c3af9061-net"},
    {NAMES_PLAIN, SCOPE_SESSION, "main", "--x--", WS, SBX, "--x--", "x-cf0e7da1", SBX "x-cf0e7da1",
     SBX "x-cf0e7da1-net"},
    {NAMES_PLAIN, SCOPE_SESSION, "main", "agent:a:0123456789012345678901:-tail", WS, SBX,
     "agent:a:0123456789012345678901:-tail", "agent-a-0123456789012345678901---30faf24d",
     SBX "agent-a-0123456789012345678901---30faf24d",
     SBX "agent-a-0123456789012345678901---30faf24d-net"},
    {NAMES_PLAIN, SCOPE_SESSION, "main", "agent:main:" K300, WS, SBX, "agent:main:" K300,
     "agent-main-kkkkkkkkkkkkkkkkkkkkk-c09cc574", SBX "agent-main-kkkkkkkkkkkkkkkkkkkkk-c09cc574",
     SBX "agent-main-kkkkkkkkkkkkkkkkkkkkk-c09cc574-net"},
    {NAMES_PLAIN, SCOPE_AGENT, "Research_Bot-2", "agent:x:main", WS, SBX, "agent:research_bot-2",
     "agent-research_bot-2-9f091f05", SBX "agent-research_bot-2-9f091f05",
     SBX "agent-research_bot-2-9f091f05-net"},
    {NAMES_PLAIN, SCOPE_AGENT, " My Agent! ", "agent:x:main", WS, SBX, "agent:my-agent",
     "agent-my-agent-6c2269f3", SBX "agent-my-agent-6c2269f3", SBX "agent-my-agent-6c2269f3-net"},
    {NAMES_PLAIN, SCOPE_AGENT, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
     "agent:x:main", WS, SBX,
     "agent:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
     "agent-xxxxxxxxxxxxxxxxxxxxxxxxxx-e2417f9a", SBX "agent-xxxxxxxxxxxxxxxxxxxxxxxxxx-e2417f9a",
     SBX "agent-xxxxxxxxxxxxxxxxxxxxxxxxxx-e2417f9a-net"},
    {NAMES_PLAIN, SCOPE_AGENT,
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
     "agent:x:main", WS, SBX,
     "agent:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
     "agent-xxxxxxxxxxxxxxxxxxxxxxxxxx-e2417f9a", SBX "agent-xxxxxxxxxxxxxxxxxxxxxxxxxx-e2417f9a",
     SBX "agent-xxxxxxxxxxxxxxxxxxxxxxxxxx-e2417f9a-net"},
    {NAMES_PLAIN, SCOPE_AGENT, "main", "x", WS, "pppppppppppppppppppppp", "agent:main",
     "agent-main-f331f052", "ppppppppppppppppppppppagent-main-f331f052",
     "ppppppppppppppppppppppagent-main-f331f052-net"},
    {NAMES_PLAIN, SCOPE_AGENT, "main", "x", WS,
     "a-prefix-so-long-that-it-leaves-no-room-for-the-slug-", "agent:main", "agent-main-f331f052",
     "a-prefix-so-long-that-it-leaves-no-room-for-the-slug-agent-main",
     "a-prefix-so-long-that-it-leaves-no-room-for-th-dd86c2c57547-net"},
    {NAMES_PLAIN, SCOPE_SESSION, "main", "agent:main:telegram:group:-1001234567890:topic:42", WS,
     "seventeen-letters-x-y-", "agent:main:telegram:group:-1001234567890:topic:42",
     "agent-main-telegram-group--10012-d2e66eb4",
     "seventeen-letters-x-y-agent-main-telegram-group--10012-d2e66eb4",
     "seventeen-letters-x-y-agent-main-telegram-grou-0a4e16d61bf8-net"},
    {NAMES_PLAIN, SCOPE_SHARED, "main", "x", WS,
     "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq", "shared", "shared",
     "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqshare",
     "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq-732a36dbb678-net"},
    {NAMES_WORKSPACE, SCOPE_AGENT, "main", "agent:main:main", WS, SBX,
     "agent:main:workspace:922ee40add251d4c6c7a2b2974251a97",
     "workspace-0e8bdb25132cde83b43c84b1d49bbdf3", SBX "workspace-0e8bdb25132cde83b43c84b1d49bbdf3",
     SBX "workspace-0e8bdb25132cde83b43c84b1d49bbdf3-net"},
    {NAMES_WORKSPACE, SCOPE_SESSION, "main", "agent:main:main", WS, SBX,
     "agent:main:main:workspace:922ee40add251d4c6c7a2b2974251a97",
     "workspace-75382beb2043e0de64c031c597478971", SBX "workspace-75382beb2043e0de64c031c597478971",
     SBX "workspace-75382beb2043e0de64c031c597478971-net"},
    {NAMES_WORKSPACE, SCOPE_SHARED, "main", "agent:main:main", WS, SBX, "shared", "shared",
     SBX "shared", SBX "shared-net"},
    {NAMES_WORKSPACE, SCOPE_AGENT, "main", "x", "/", SBX,
     "agent:main:workspace:8a5edab282632443219e051e4ade2d1d",
     "workspace-37d5ab78c5e412ab79c7f9ef86bdbba9", SBX "workspace-37d5ab78c5e412ab79c7f9ef86bdbba9",
     SBX "workspace-37d5ab78c5e412ab79c7f9ef86bdbba9-net"},
    {NAMES_WORKSPACE, SCOPE_SESSION, "main", "shared", WS, SBX,
     "shared:workspace:922ee40add251d4c6c7a2b2974251a97",
     "workspace-675ec3de96d213a1503c72290a80bb90", SBX "workspace-675ec3de96d213a1503c72290a80bb90",
     SBX "workspace-675ec3de96d213a1503c72290a80bb90-net"},
    {NAMES_WORKSPACE, SCOPE_SESSION, "main", "agent:main:" E100, WS, SBX,
     "agent:main:" E100 ":workspace:922ee40add251d4c6c7a2b2974251a97",
     "workspace-d27d3b5bf443d93fc5a09444d0bc617f", SBX "workspace-d27d3b5bf443d93fc5a09444d0bc617f",
     SBX "workspace-d27d3b5bf443d93fc5a09444d0bc617f-net"},
    {NAMES_WORKSPACE, SCOPE_AGENT, "main", "x", WS, SBX "podman-",
     "agent:main:workspace:922ee40add251d4c6c7a2b2974251a97",
     "workspace-0e8bdb25132cde83b43c84b1d49bbdf3",
     SBX "podman-workspace-0e8bdb25132cde83b43c84b1d49bbdf3",
     "ope-workspace-0e8bdb25132cde83b43c84b1d49bbdf3-ab68f25f7ecd-net"},
    {NAMES_WORKSPACE, SCOPE_AGENT, "main", "x", WS,
     "a-prefix-so-long-that-it-leaves-no-room-for-the-slug-",
     "agent:main:workspace:922ee40add251d4c6c7a2b2974251a97",
     "workspace-0e8bdb25132cde83b43c84b1d49bbdf3",
     "a-prefi-workspace-0e8bdb25132cde83b43c84b1d49bbdf3-1f7af74bbfb4",
     "a-p-workspace-0e8bdb25132cde83b43c84b1d49bbdf3-1f7af74bbfb4-net"},
    {NAMES_WORKSPACE, SCOPE_SHARED, "main", "x", WS,
     "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", "shared", "shared",
     "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz-8804669ca279",
     "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz-8804669ca279-net"},
};

static void test_vectors(void **state)
{
    (void)state;
    FOR_EACH(v, vectors)
    {
        char key[NAMES_KEY], slug[NAMES_SLUG], box[NAMES_BOX];

        CHECK(names_scope_key(v->version, v->scope, v->agent, v->session, v->workspace, key) == 0,
              "%s: no key", v->session);
        CHECK_STR(key, v->key, v->session);
        CHECK(names_slug(v->version, key, slug) == 0, "%s: no slug", v->session);
        CHECK_STR(slug, v->slug, v->session);
        CHECK(names_box(v->version, v->prefix, key, "", box) == 0, "%s: no box", v->session);
        CHECK_STR(box, v->box, v->session);
        CHECK(names_box(v->version, v->prefix, key, NAMES_NETWORK, box) == 0, "%s: no network", v->session);
        CHECK_STR(box, v->network, v->session);
        CHECK(strlen(box) <= 63, "%s is too long", box);
    }
}

/* The shape of a name, whatever the key and the prefix are; and no two keys share one. */
static void test_cutting(void **state)
{
    static const char *const keys[] = {"agent:a",
                                       "agent:b",
                                       "agent:a:main",
                                       "agent:a:mainx",
                                       "agent:a:workspace:0123456789abcdef0123456789abcdef",
                                       "agent:b:workspace:0123456789abcdef0123456789abcdef"};
    char prefix[NAMES_PREFIX + 1], names[2 * COUNT(keys)][NAMES_BOX];

    (void)state;
    for (size_t len = 1; len <= NAMES_PREFIX; len++) {
        memset(prefix, 'p', len);
        prefix[len] = 0;
        for (int v = NAMES_PLAIN; v <= NAMES_WORKSPACE; v++)
            for (size_t i = 0; i < COUNT(keys); i++) {
                assert_int_equal(names_box(v, prefix, keys[i], "", names[2 * i]), 0);
                assert_int_equal(names_box(v, prefix, keys[i], NAMES_NETWORK, names[2 * i + 1]), 0);
                for (size_t j = 0; j < 2 * i + 2; j++)
                    for (size_t k = j + 1; k < 2 * i + 2; k++)
                        /* the client's own weakness: see names.h */
                        CHECK(strcmp(names[j], names[k]) != 0 ||
                                  (v == NAMES_PLAIN && len > 22 && !(j & 1) && !(k & 1)),
                              "%s and %s: both %s", keys[j / 2], keys[k / 2], names[j]);
                assert_string_equal(names[2 * i + 1] + strlen(names[2 * i + 1]) - 4, "-net");
            }
    }
}

static void test_agents(void **state)
{
    static const struct {
        const char *session;
        int result;
        const char *agent;
    } rows[] = {
        {"agent:main:main", 0, "main"},
        {"agent:Research-:x:y", 0, "research-"},
        {" AGENT: a b :x ", 0, "a-b"},
        {"agent:_x:y", 0, "_x"},
        {"agent:\xe2\x84\xaa:x", 0, "k"},
        {"main", 0, ""},
        {"global", 0, ""},
        {"agents:x:y", 0, ""},
        {"agent:main", -EINVAL, NULL},
        {"agent:main:", -EINVAL, NULL},
        {"agent:main::x", -EINVAL, NULL},
        {"agent::main:x", -EINVAL, NULL},
        {"agent: :x", -EINVAL, NULL},
        {"agent:\xe6\x97\xa5:x", -EINVAL, NULL},
        {"agent:---:x", -EINVAL, NULL},
        {"", -EINVAL, NULL},
        {"  ", -EINVAL, NULL},
        {"agent:a:\n", -EINVAL, NULL},
        {"agent:a:\xc2\x85", -EINVAL, NULL},
        {"agent:a:\xff", -EINVAL, NULL},
        {NULL, -EINVAL, NULL},
    };
    char small[4];

    (void)state;
    FOR_EACH(row, rows)
    {
        char agent[NAMES_AGENT] = "untouched";
        int r = names_agent_of(row->session, agent, sizeof(agent));

        CHECK(r == row->result, "'%s': %d", row->session ? row->session : "NULL", r);
        CHECK_STR(agent, r < 0 ? "untouched" : row->agent, row->session ? row->session : "NULL");
    }
    assert_int_equal(names_agent_of("agent:main:x", small, sizeof(small)), -ENAMETOOLONG);
    assert_int_equal(names_agent_of("agent:abc:x", small, sizeof(small)), 0);
}

static void test_refuses(void **state)
{
    static const char long_key[] = "x" K300 K300;
    char key[NAMES_KEY], box[NAMES_BOX], slug[NAMES_SLUG], session[NAMES_SESSION + 2];

    (void)state;
    memset(session, 'x', sizeof(session));
    session[NAMES_SESSION] = 0;
    assert_int_equal(names_scope_key(NAMES_WORKSPACE, SCOPE_SESSION, NULL, session, WS, key), 0);
    assert_int_equal(names_slug(NAMES_WORKSPACE, key, slug), 0);
    session[NAMES_SESSION] = 'x';
    session[NAMES_SESSION + 1] = 0;
    /* clang-format off */
    assert_int_equal(names_scope_key(NAMES_PLAIN, SCOPE_SESSION, "a", session, NULL, key), -EINVAL);
    assert_int_equal(names_scope_key(NAMES_PLAIN, SCOPE_SESSION, "a", "", NULL, key), -EINVAL);
    assert_int_equal(names_scope_key(NAMES_PLAIN, SCOPE_SESSION, "a", NULL, NULL, key), -EINVAL);
    assert_int_equal(names_scope_key(NAMES_PLAIN, SCOPE_SESSION, "a", "a\tb", NULL, key), -EINVAL);
    assert_int_equal(names_scope_key(NAMES_PLAIN, SCOPE_SESSION, "a", "agent:b", NULL, key), -EINVAL);
    assert_int_equal(names_scope_key(NAMES_PLAIN, SCOPE_SESSION, "a", " shared", NULL, key), -EINVAL);
    assert_int_equal(names_scope_key(NAMES_PLAIN, SCOPE_AGENT, "---", "agent:a:b", NULL, key), -EINVAL);
    assert_int_equal(names_scope_key(NAMES_PLAIN, SCOPE_AGENT, " ", "agent:a:b", NULL, key), -EINVAL);
    assert_int_equal(names_scope_key(NAMES_PLAIN, SCOPE_AGENT, "a\n", "agent:a:b", NULL, key), -EINVAL);
    assert_int_equal(names_scope_key(NAMES_PLAIN, SCOPE_AGENT, long_key, NULL, NULL, key), -EINVAL);
    assert_int_equal(names_scope_key(NAMES_PLAIN, SCOPE_AGENT, NULL, "main", NULL, key), -EINVAL);
    assert_int_equal(names_scope_key(NAMES_PLAIN, SCOPE_AGENT, NULL, "agent:Z:b", NULL, key), 0);
    assert_string_equal(key, "agent:z");
    assert_int_equal(names_scope_key(NAMES_WORKSPACE, SCOPE_AGENT, "a", "s", NULL, key), -EINVAL);
    assert_int_equal(names_scope_key(NAMES_WORKSPACE, SCOPE_AGENT, "a", "s", "", key), -EINVAL);
    assert_int_equal(names_scope_key(NAMES_WORKSPACE, SCOPE_AGENT, "a", "s", "home", key), -EINVAL);
    /* clang-format on */
    assert_int_equal(names_slug(NAMES_PLAIN, "", slug), -EINVAL);
    assert_int_equal(names_slug(NAMES_PLAIN, long_key, slug), -EINVAL);
    assert_int_equal(names_box(NAMES_PLAIN, "a/", "agent:a", "", box), -EINVAL);
    assert_int_equal(names_box(NAMES_PLAIN, "-", "agent:a", "", box), -EINVAL);
    assert_int_equal(names_box(NAMES_PLAIN, "", "..", "", box), -EINVAL);
    assert_int_equal(names_box(NAMES_PLAIN, "", "agent:a", "", box), 0);
    assert_int_equal(names_box(NAMES_PLAIN, long_key, "agent:a", "", box), -EINVAL);
    assert_int_equal(names_box(NAMES_PLAIN, "p-", "\x7f", "", box), -EINVAL);
}

/* The hash is of the path as the client resolves it, so a box is found however it is spelled. */
static void test_workspace_spelling(void **state)
{
    static const char *const same[] = {WS,
                                       WS "/",
                                       "//home/./claw//workspace/.",
                                       "/home/claw/x/../workspace",
                                       "/../home/claw/a/b/../../workspace ",
                                       "/home/x/../../home/claw/workspace/"};
    char want[NAMES_KEY], key[NAMES_KEY];

    (void)state;
    assert_int_equal(names_scope_key(NAMES_WORKSPACE, SCOPE_AGENT, "a", "", WS, want), 0);
    FOR_EACH(path, same)
    {
        assert_int_equal(names_scope_key(NAMES_WORKSPACE, SCOPE_AGENT, "a", "", *path, key), 0);
        CHECK_STR(key, want, *path);
    }
    assert_int_equal(
        names_scope_key(NAMES_WORKSPACE, SCOPE_AGENT, "a", "", "/home/claw/workspac", key), 0);
    assert_string_not_equal(key, want);
}

static void test_main_session(void **state)
{
    (void)state;
    assert_true(names_is_main("main", "agent:main:main", false));
    assert_true(names_is_main("Ops Team", "agent:ops-team:main", false));
    assert_true(names_is_main("any", "global", true));
    assert_true(names_is_main(NULL, "global", true));
    assert_false(names_is_main("main", "agent:main:main", true));
    assert_false(names_is_main("main", "global", false));
    assert_false(names_is_main("main", "agent:main:main:thread:1", false));
    assert_false(names_is_main("main", "agent:main:main ", false));
    assert_false(names_is_main("main", "agent:other:main", false));
    assert_false(names_is_main("main", "agent:MAIN:main", false));
    assert_false(names_is_main("", "agent:main:main", false));
    assert_false(names_is_main(NULL, "agent:main:main", false));
    assert_false(names_is_main("\xe6\x97\xa5", "agent:main:main", false));
    assert_false(names_is_main("main", "", false));
    assert_false(names_is_main("main", NULL, false));
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("keys, slugs and names are those of both clients", test_vectors),
        CLAIM("no two scopes share a network box, however long the prefix", test_cutting),
        CLAIM("a session key tells its agent, or none, or is refused", test_agents),
        CLAIM("what cannot be a key or a name is refused", test_refuses),
        CLAIM("a workspace has one key, however it is spelled", test_workspace_spelling),
        CLAIM("only the one spelling is the main session", test_main_session),
    };

    return RUN_CLAIMS("policy/names", claims);
}
