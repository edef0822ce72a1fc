/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/rules.h"

#include "tests/test.h"

#define ALLOW_KEY "sandbox.egress.allow"
#define DENY_KEY  "sandbox.egress.deny"
#define PORTS_KEY "sandbox.egress.hostPorts"

#define LISTED 12 /* entries a row may have */

static struct rules *make(const char *const *allow, const char *const *deny, uint16_t host_port)
{
    struct rules_source s = {.allow = allow,
                             .deny = deny,
                             .host_ports = &host_port,
                             .n_host_ports = host_port != 0,
                             .allow_key = ALLOW_KEY,
                             .deny_key = DENY_KEY,
                             .host_ports_key = PORTS_KEY};
    struct rules *r = NULL;
    struct error err = {0};

    while (allow && allow[s.n_allow])
        s.n_allow++;
    while (deny && deny[s.n_deny])
        s.n_deny++;
    CHECK_OK(rules_parse(&s, &r, &err), err);
    return r;
}

static struct host host_of(const char *text)
{
    struct host h;
    struct error err;

    CHECK_OK(host_parse(text, strlen(text), HOST_BARE, &h, &err), err);
    return h;
}

static struct address address_of(const char *text)
{
    struct address a;

    CHECK(address_parse(text, strlen(text), &a), "'%s'", text);
    return a;
}

/* EG-29 among others. */
static void test_refused(void **state)
{
    static const struct {
        const char *entry, *why;
    } rows[] = {
        {"", "empty"},
        {"*", "'public'"},
        {"*:443", "'public'"},
        {"**.test", "'*'"},
        {"*allowed.test", "'*'"},
        {"*.", "empty"},
        {"*.*.test", "'*'"},
        {"a.*.test", "'*'"},
        {"*.10.0.0.1", "nothing below"},
        {"*.[::1]", "more than one"},
        {"https://allowed.test", "URL"},
        {"allowed.test/x", "no address"},
        {"allowed.test:", "no port"},
        {"allowed.test:0", "no port"},
        {"allowed.test:65536", "no port"},
        {"allowed.test:0443", "no port"},
        {"allowed.test:+443", "no port"},
        {"allowed.test: 443", "no port"},
        {"allowed.test:443x", "no port"},
        {"allowed.test:443:443", "no port"},
        {"allowed.test:**", "no port"},
        {"allowed.test:80,443", "no port"},
        {" allowed.test", "blank"},
        {"allowed.test ", "blank"},
        {"allowed_test", "underscore"},
        {"\xd0\xb0llowed.test", "ASCII"},
        {"allowed.test\n", "control"},
        {"2130706433", "disguise"},
        {"127.1", "disguise"},
        {"::1", "more than one"},
        {"2001:db8::7", "more than one"},
        {"[::1", "brackets"},
        {"[fe80::1%lo]", "'%'"},
        {"10.0.0.1/8", "not zero"},
        {"10.0.0.0/33", "longer"},
        {"10.0.0.0/8x", "no port"},
        {"10.0.0.0/8:0", "no port"},
        {"[10.0.0.0]/8", "brackets"},
        {"0.0.0.0/0", "'public'"},
        {"::/0", "'public'"},
        {"127.0.0.1", "hostPorts"},
        {"127.0.0.1:5000", "hostPorts"},
        {"127.0.0.0/8", "hostPorts"},
        {"[::1]:80", "hostPorts"},
        {"[::ffff:127.0.0.1]", "hostPorts"},
        {"[2002:7f00:1::]", "hostPorts"},
        {"0.0.0.0", "cannot be allowed"},
        {"0.0.0.0/8", "cannot be allowed"},
        {"[::]", "cannot be allowed"},
        {"224.0.0.0/4", "cannot be allowed"},
        {"255.255.255.255", "cannot be allowed"},
        {"[ff02::1]", "cannot be allowed"},
        {"publicx:", "no port"},
        {"public:x", "no port"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        const char *entries[] = {"fine.test", row->entry};
        struct rules_source s = {
            .allow = entries, .n_allow = 2, .allow_key = ALLOW_KEY, .deny_key = DENY_KEY};
        struct rules *r = NULL;
        struct error err = {0};

        CHECK(rules_parse(&s, &r, &err) == -ERR_INVALID, "'%s' was taken", row->entry);
        assert_null(r);
        CHECK(strstr(err.msg, ALLOW_KEY ", entry 2 '"), "'%s': %s", row->entry, err.msg);
        CHECK(strstr(err.msg, row->why), "'%s': %s", row->entry, err.msg);
        CHECK(!strpbrk(err.msg, "\n\r\t"), "'%s': %s", row->entry, err.msg);
    }
}

static void test_limits(void **state)
{
    static const char *entries[LIMIT_RULES + 1];
    static uint16_t ports[LIMIT_HOST_PORTS + 1];
    char big[LIMIT_RULE_TEXT + 2];
    struct rules_source s = {
        .allow = entries, .allow_key = ALLOW_KEY, .host_ports = ports, .host_ports_key = PORTS_KEY};
    struct rules *r;
    struct error err;

    (void)state;
    FOR_EACH(e, entries) *e = "a.test";
    s.n_allow = LIMIT_RULES;
    CHECK_OK(rules_parse(&s, &r, &err), err);
    rules_free(r);
    s.n_allow++;
    CHECK_ERR(rules_parse(&s, &r, &err), err, ERR_TOO_LARGE, ALLOW_KEY);
    s.n_allow = 1;
    memset(big, 'a', sizeof(big) - 1);
    big[sizeof(big) - 1] = 0;
    entries[0] = big;
    CHECK_ERR(rules_parse(&s, &r, &err), err, ERR_INVALID, "too long");
    s.n_allow = 0;
    s.n_host_ports = 1;
    CHECK_ERR(rules_parse(&s, &r, &err), err, ERR_INVALID, "0 is no port");
    s.n_host_ports = LIMIT_HOST_PORTS + 1;
    CHECK_ERR(rules_parse(&s, &r, &err), err, ERR_TOO_LARGE, PORTS_KEY);
}

struct decision_row {
    const char *allow[LISTED], *deny[LISTED];
    const char *host;
    uint16_t port;
    enum egress_decision decision;
    const char *rule, *setting, *reason; /* NULL: none */
};

/* Short, so that a row is a line. */
#define NO  EGRESS_DENY
#define RES EGRESS_RESOLVE
#define YES EGRESS_ALLOW
#define A   ALLOW_KEY
#define D   DENY_KEY

static void test_names(void **state)
{
    static const struct decision_row rows[] = {
        /* an empty list, EG-29 */
        {{0}, {0}, "allowed.test", 443, NO, NULL, A, "is empty"},
        {{0}, {0}, "8.8.8.8", 443, NO, NULL, A, "is empty"},
        {{0}, {"evil.test"}, "allowed.test", 443, NO, NULL, A, "is empty"},
        /* names and their ports, EG-13, EG-15 */
        {{"allowed.test"}, {0}, "allowed.test", 443, RES, "allowed.test", A, ""},
        {{"allowed.test"}, {0}, "ALLOWED.test.", 80, RES, "allowed.test", A, ""},
        {{"Allowed.Test."}, {0}, "allowed.test", 80, RES, "Allowed.Test.", A, ""},
        {{"allowed.test"}, {0}, "allowed.test", 22, NO, "allowed.test", A, "443 and 80"},
        {{"allowed.test"}, {0}, "allowed.test", 53, NO, "allowed.test", A, "port 53"},
        {{"allowed.test"}, {0}, "allowed.test", 2375, NO, "allowed.test", A, "2375"},
        {{"allowed.test"}, {0}, "allowed.test", 0, NO, NULL, NULL, "0 is no port"},
        {{"allowed.test:22"}, {0}, "allowed.test", 22, RES, "allowed.test:22", A, ""},
        {{"allowed.test:22"}, {0}, "allowed.test", 443, NO, "allowed.test:22", A, "is port 22"},
        {{"allowed.test:*"}, {0}, "allowed.test", 6379, RES, "allowed.test:*", A, ""},
        {{"allowed.test"}, {0}, "evil.test", 443, NO, NULL, A, "no entry"},
        {{"allowed.test"}, {0}, "notallowed.test", 443, NO, NULL, A, "no entry"},
        {{"allowed.test"}, {0}, "allowed.test.evil.test", 443, NO, NULL, A, ""},
        {{"allowed.test"}, {0}, "allowed-test", 443, NO, NULL, A, ""},
        {{"allowed.test"}, {0}, "www.allowed.test", 443, NO, NULL, A, ""},
        {{"*.allowed.test"}, {0}, "allowed.test", 443, NO, NULL, A, ""},
        {{"*.allowed.test"}, {0}, "a.allowed.test", 443, RES, "*.allowed.test", A, ""},
        {{"*.allowed.test"}, {0}, "a.b.allowed.test", 443, RES, "*.allowed.test", A, ""},
        {{"*.allowed.test"}, {0}, "notallowed.test", 443, NO, NULL, A, ""},
        {{"*.allowed.test:8443"}, {0}, "a.allowed.test", 8443, RES, "*.allowed.test:8443", A, ""},
        {{"public"}, {0}, "any.test", 443, RES, "public", A, ""},
        {{"public"}, {0}, "any.test", 25, NO, "public", A, "443 and 80"},
        {{"public:*"}, {0}, "any.test", 25, RES, "public:*", A, ""},
        {{"10.0.0.0/8", "8.8.8.8"}, {0}, "any.test", 443, NO, NULL, A, "no entry"},
        /* deny beats allow, and means every port unless it says one */
        {{"*.allowed.test"},
         {"bad.allowed.test"},
         "bad.allowed.test",
         443,
         NO,
         "bad.allowed.test",
         D,
         "denied by"},
        {{"public:*"}, {"*.bad.test"}, "x.bad.test", 9999, NO, "*.bad.test", D, "denied by"},
        {{"public:*"}, {"*.bad.test"}, "bad.test", 443, RES, "public:*", A, ""},
        {{"public:*"}, {"bad.test:25"}, "bad.test", 25, NO, "bad.test:25", D, ""},
        {{"public:*"}, {"bad.test:25"}, "bad.test", 443, RES, "public:*", A, ""},
        {{"allowed.test"}, {"allowed.test"}, "allowed.test", 443, NO, "allowed.test", D, ""},
        /* addresses as they are, EG-03, EG-05 */
        {{"allowed.test"}, {0}, "8.8.8.8", 443, NO, NULL, A, "no entry"},
        {{"8.8.8.8"}, {0}, "8.8.8.8", 443, YES, "8.8.8.8", A, ""},
        {{"8.8.8.8:53"}, {0}, "8.8.8.8", 443, NO, "8.8.8.8:53", A, "is port 53"},
        {{"8.8.0.0/16:53"}, {0}, "8.8.8.8", 53, YES, "8.8.0.0/16:53", A, ""},
        {{"[2606:4700::1]:853"}, {0}, "2606:4700:0::1", 853, YES, "[2606:4700::1]:853", A, ""},
        {{"2606:4700::/32:853"}, {0}, "2606:4700::1", 853, YES, "2606:4700::/32:853", A, ""},
        {{"[2606:4700::]/32"}, {0}, "2606:4700::1", 443, YES, "[2606:4700::]/32", A, ""},
        {{"public"}, {0}, "8.8.8.8", 443, YES, "public", A, ""},
        {{"public"}, {"8.8.8.0/24"}, "8.8.8.8", 443, NO, "8.8.8.0/24", D, ""},
        {{"public"}, {"public:80"}, "8.8.8.8", 80, NO, "public:80", D, ""},
        {{"public:*"}, {0}, "169.254.169.254", 80, NO, NULL, A, "metadata"},
        {{"public:*"}, {0}, "fd00:ec2::254", 80, NO, NULL, A, "metadata"},
        {{"public:*"}, {0}, "100.100.100.200", 80, NO, NULL, A, "metadata"},
        {{"public:*"}, {0}, "168.63.129.16", 80, NO, NULL, A, "metadata"},
        {{"public:*", "169.254.0.0/16"}, {0}, "169.254.169.254", 80, NO, NULL, A, "metadata"},
        {{"169.254.169.254"}, {0}, "169.254.169.254", 80, YES, "169.254.169.254", A, ""},
        {{"public:*"}, {0}, "metadata.google.internal", 80, NO, NULL, A, "metadata"},
        {{"*.google.internal"}, {0}, "metadata.google.internal", 80, NO, NULL, A, "metadata"},
        {{"metadata.google.internal"},
         {0},
         "metadata.google.internal",
         80,
         RES,
         "metadata.google.internal",
         A,
         ""},
        {{"public:*"}, {0}, "localhost", 80, NO, NULL, A, "loopback"},
        {{"public:*"}, {0}, "a.localhost", 80, NO, NULL, A, "loopback"},
        {{"public:*"}, {0}, "127.0.0.1", 80, NO, NULL, NULL, "loopback"},
        {{"public:*"}, {0}, "::1", 80, NO, NULL, NULL, "loopback"},
        {{"public:*"}, {0}, "::", 80, NO, NULL, NULL, "unspecified"},
        {{"public:*"}, {0}, "::ffff:127.0.0.1", 80, NO, NULL, NULL, "loopback"},
        {{"public:*"}, {0}, "::127.0.0.1", 80, NO, NULL, NULL, "loopback"},
        {{"public:*"}, {0}, "64:ff9b::7f00:1", 80, NO, NULL, NULL, "loopback"},
        {{"public:*", "64:ff9b::/96:*"}, {0}, "64:ff9b::7f00:1", 80, NO, NULL, NULL, "loopback"},
        {{"public:*"}, {0}, "2002:7f00:1::", 80, NO, NULL, NULL, "loopback"},
        {{"public:*"}, {0}, "fc00::1", 80, NO, NULL, A, "private"},
        {{"public:*"}, {0}, "::ffff:8.8.8.8", 80, NO, NULL, A, "mapped"},
        {{"public:*"}, {0}, "10.0.0.1", 80, NO, NULL, A, "private"},
        {{"public:*"}, {0}, "198.18.0.7", 80, NO, NULL, A, "benchmark"},
        {{"10.0.0.0/8:5432"}, {0}, "10.0.0.1", 5432, YES, "10.0.0.0/8:5432", A, ""},
        {{"10.0.0.0/8:5432"}, {0}, "10.0.0.1", 80, NO, NULL, A, "for port 80"},
        {{"10.0.0.0/8"}, {"10.0.0.1"}, "10.0.0.1", 80, NO, "10.0.0.1", D, ""},
        {{"8.0.0.0/5"}, {0}, "10.0.0.1", 80, NO, NULL, A, "private"},
        {{"8.0.0.0/5"}, {0}, "8.8.8.8", 80, YES, "8.0.0.0/5", A, ""},
        /* what is carried has to be named as well, and a deny reaches it */
        {{"64:ff9b::/96"}, {0}, "64:ff9b::8.8.8.8", 80, YES, "64:ff9b::/96", A, ""},
        {{"64:ff9b::/96"}, {0}, "64:ff9b::10.0.0.1", 80, NO, NULL, A, "private"},
        {{"64:ff9b::/96", "10.0.0.1"}, {0}, "64:ff9b::10.0.0.1", 80, YES, "64:ff9b::/96", A, ""},
        {{"10.0.0.1"}, {0}, "::ffff:10.0.0.1", 80, NO, NULL, A, "private"},
        {{"64:ff9b::/96"}, {"8.8.8.8"}, "64:ff9b::8.8.8.8", 80, NO, "8.8.8.8", D, ""},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        autoptr(rules) r = make(row->allow, row->deny, 0);
        struct host h = host_of(row->host);
        struct egress_verdict v;
        long at = row - rows;

        rules_decide_name(r, &h, row->port, &v);
        CHECK(v.decision == row->decision, "row %ld, %s:%u: %d (%s)", at, row->host, row->port,
              v.decision, v.reason);
        CHECK(!v.rule == !row->rule && (!v.rule || strcmp(v.rule, row->rule) == 0),
              "row %ld, %s: rule '%s'", at, row->host, v.rule ? v.rule : "none");
        CHECK(!v.setting == !row->setting && (!v.setting || strcmp(v.setting, row->setting) == 0),
              "row %ld, %s: setting '%s'", at, row->host, v.setting ? v.setting : "none");
        CHECK(strstr(v.reason, row->reason), "row %ld: '%s' does not say '%s'", at, v.reason,
              row->reason);
    }
}

/* EG-07, EG-08, EG-09: after resolution. */
static void test_addresses(void **state)
{
    static const struct {
        const char *allow[LISTED], *deny[LISTED];
        const char *host;
        uint16_t port;
        const char *address;
        bool allowed;
        const char *reason;
    } rows[] = {
        {{"allowed.test"}, {0}, "allowed.test", 443, "8.8.8.8", true, "allowed by"},
        {{"allowed.test"}, {0}, "allowed.test", 22, "8.8.8.8", false, "port 22"},
        {{"allowed.test"}, {0}, "evil.test", 443, "8.8.8.8", false, "no entry"},
        {{"allowed.test"},
         {0},
         "allowed.test",
         443,
         "127.0.0.1",
         false,
         "allowed.test: 127.0.0.1 is a loopback"},
        {{"allowed.test"}, {0}, "allowed.test", 443, "::1", false, "loopback"},
        {{"allowed.test"}, {0}, "allowed.test", 443, "10.0.0.1", false, "private"},
        {{"allowed.test"}, {0}, "allowed.test", 443, "fd00::1", false, "private"},
        {{"allowed.test"}, {0}, "allowed.test", 443, "100.64.0.1", false, "shared"},
        {{"allowed.test"}, {0}, "allowed.test", 443, "169.254.169.254", false, "metadata"},
        {{"allowed.test"}, {0}, "allowed.test", 443, "fe80::1", false, "link-local"},
        {{"allowed.test"}, {0}, "allowed.test", 443, "224.0.0.1", false, "multicast"},
        {{"allowed.test"}, {0}, "allowed.test", 443, "0.0.0.0", false, "unspecified"},
        {{"allowed.test"}, {0}, "allowed.test", 443, "::ffff:8.8.8.8", false, "mapped"},
        {{"allowed.test"}, {0}, "allowed.test", 443, "64:ff9b::7f00:1", false, "loopback"},
        {{"allowed.test"}, {0}, "allowed.test", 443, "198.18.0.1", false, "benchmark"},
        {{"public"}, {0}, "any.test", 443, "192.168.1.1", false, "private"},
        {{"public"}, {"8.8.8.8"}, "any.test", 443, "8.8.8.8", false, "denied by '8.8.8.8'"},
        {{"any.test"}, {"public"}, "any.test", 443, "8.8.8.8", false, "denied by 'public'"},
        {{"public:*"}, {"8.8.8.8:25"}, "any.test", 26, "8.8.8.8", true, ""},
        /* R221: one internal service, by name and by range */
        {{"ollama:11434"}, {0}, "ollama", 11434, "172.18.0.3", false, "private"},
        {{"ollama:11434", "172.18.0.0/16:11434"},
         {0},
         "ollama",
         11434,
         "172.18.0.3",
         true,
         "named by"},
        {{"ollama:11434", "172.18.0.0/16:11434"},
         {0},
         "ollama",
         11434,
         "172.19.0.3",
         false,
         "private"},
        {{"ollama:11434", "172.18.0.0/16:80"},
         {0},
         "ollama",
         11434,
         "172.18.0.3",
         false,
         "for port 11434"},
        {{"ollama:11434", "172.18.0.0/16:11434"},
         {0},
         "other",
         11434,
         "172.18.0.3",
         false,
         "no entry"},
        {{"ollama:11434", "172.18.0.0/16:11434"},
         {"172.18.0.3"},
         "ollama",
         11434,
         "172.18.0.3",
         false,
         "denied"},
        {{"localhost:80", "public"}, {0}, "localhost", 80, "127.0.0.1", false, "loopback"},
        /* a literal is its own address */
        {{"8.8.8.8"}, {0}, "8.8.8.8", 443, "8.8.8.8", true, ""},
        {{"8.8.8.8", "8.8.4.4"}, {0}, "8.8.8.8", 443, "8.8.4.4", false, "is not the address"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        autoptr(rules) r = make(row->allow, row->deny, 0);
        struct host h = host_of(row->host);
        struct address a = address_of(row->address);
        struct egress_verdict v;

        rules_decide_address(r, &h, row->port, &a, &v);
        CHECK(v.decision == (row->allowed ? EGRESS_ALLOW : EGRESS_DENY),
              "row %ld, %s = %s: %d (%s)", (long)(row - rows), row->host, row->address, v.decision,
              v.reason);
        CHECK(strstr(v.reason, row->reason), "row %ld: '%s' does not say '%s'", (long)(row - rows),
              v.reason, row->reason);
    }
}

static void test_host_port(void **state)
{
    static const char *const all[] = {"public:*", "*.internal:*", "host.docker.internal:*", NULL};
    static const char *const bad[] = {"host.docker.internal", NULL};
    autoptr(rules) one = make(NULL, NULL, 5000);
    autoptr(rules) none = make(all, NULL, 0);
    autoptr(rules) denied = make(NULL, bad, 5000);
    struct host docker = host_of("host.docker.internal"), own = host_of("Host.Clawden.Internal");
    struct host loopback = host_of("127.0.0.1"), other = host_of("x.host.docker.internal");
    struct address a = address_of("127.0.0.1");
    struct egress_verdict v;

    (void)state;
    rules_decide_name(one, &docker, 5000, &v);
    assert_int_equal(v.decision, EGRESS_HOST_PORT);
    assert_string_equal(v.setting, PORTS_KEY);
    rules_decide_name(one, &own, 5000, &v);
    assert_int_equal(v.decision, EGRESS_HOST_PORT);
    rules_decide_name(one, &docker, 5001, &v);
    assert_int_equal(v.decision, EGRESS_DENY);
    assert_non_null(strstr(v.reason, "port 5001"));
    rules_decide_name(one, &loopback, 5000, &v);
    assert_int_equal(v.decision, EGRESS_DENY);
    rules_decide_name(one, &other, 5000, &v);
    assert_int_equal(v.decision, EGRESS_DENY);
    rules_decide_address(one, &docker, 5000, &a, &v); /* nobody resolves it */
    assert_int_equal(v.decision, EGRESS_DENY);
    rules_decide_name(none, &docker, 5000, &v); /* no entry reaches the host */
    assert_int_equal(v.decision, EGRESS_DENY);
    assert_string_equal(v.setting, PORTS_KEY);
    rules_decide_name(denied, &docker, 5000, &v);
    assert_int_equal(v.decision, EGRESS_DENY);
    assert_string_equal(v.setting, DENY_KEY);
}

static void test_lookup(void **state)
{
    static const char *const allow[] = {"a.test:22", "*.b.test", "10.0.0.0/8", NULL};
    static const char *const deny[] = {"bad.b.test", "half.b.test:443", NULL};
    static const struct {
        const char *name;
        bool answered;
    } rows[] = {
        {"a.test", true},     {"x.b.test", true},    {"b.test", false},
        {"evil.test", false}, {"bad.b.test", false}, {"half.b.test", true},
        {"10.0.0.1", false},  {"localhost", false},  {"host.docker.internal", true},
        {"metadata", false},
    };
    autoptr(rules) r = make(allow, deny, 8080);
    autoptr(rules) closed = make(allow, deny, 0);
    struct host own = host_of("host.docker.internal");
    struct egress_verdict v;

    (void)state;
    FOR_EACH(row, rows)
    {
        struct host h = host_of(row->name);

        rules_decide_lookup(r, &h, &v);
        CHECK((v.decision != EGRESS_DENY) == row->answered, "%s: %s", row->name, v.reason);
    }
    rules_decide_lookup(closed, &own, &v);
    assert_int_equal(v.decision, EGRESS_DENY);
}

/* ---- properties ---- */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static const char *const pool[] = {
    "a.test",        "*.a.test",     "b.a.test:22",   "*.test:*",       "public",
    "public:22",     "public:*",     "10.0.0.0/8",    "10.0.0.1:22",    "8.8.8.8",
    "8.0.0.0/5:*",   "64:ff9b::/96", "[fd00::1]:443", "169.254.0.0/16", "fc00::/7:*",
    "c.b.a.test:80", "localhost",    "metadata:*",
};

/* How far this request comes: 0 nowhere, 1 resolved, 2 dialled. */
static int reach(const char *const *allow, const char *const *deny, const struct host *h,
                 uint16_t port, const struct address *a)
{
    autoptr(rules) r = make(allow, deny, 0);
    struct egress_verdict name, address;

    rules_decide_name(r, h, port, &name);
    rules_decide_address(r, h, port, a, &address);
    if (address.decision == EGRESS_ALLOW) {
        CHECK(name.decision != EGRESS_DENY, "%s: dialled though its name is denied", h->text);
        CHECK(address_class(a) < ADDRESS_MULTICAST, "%s: a barred address is dialled", h->text);
        return 2;
    }
    return name.decision != EGRESS_DENY;
}

static void test_monotonic(void **state)
{
    static const char *const hosts[] = {"a.test", "b.a.test",  "c.b.a.test", "x.test",
                                        "other",  "localhost", "metadata"};
    static const char *const addresses[] = {
        "8.8.8.8", "10.0.0.1", "10.9.9.9",       "127.0.0.1",       "64:ff9b::8.8.8.8",
        "fd00::1", "::1",      "64:ff9b::a00:1", "169.254.169.254", "169.254.1.1",
        "2600::1", "1.1.1.1",  "::ffff:10.0.0.1"};
    static const uint16_t ports[] = {22, 80, 443, 9};
    uint32_t seed = 7;
    unsigned reached[3] = {0};

    (void)state;
    for (int round = 0; round < 20000; round++) {
        const char *allow[6] = {0}, *deny[4] = {0}, *fewer[6] = {0}, *more[5] = {0};
        size_t n = next_random(&seed) % 5 + 1, d = next_random(&seed) % 3, m = 0;
        struct address a = address_of(addresses[next_random(&seed) % COUNT(addresses)]);
        bool literal = next_random(&seed) % 3 == 0;
        uint16_t port = ports[next_random(&seed) % COUNT(ports)];
        size_t without = next_random(&seed) % n;
        struct host h;
        int before, removed, added;

        if (literal)
            host_from_address(&a, &h);
        else
            h = host_of(hosts[next_random(&seed) % COUNT(hosts)]);
        for (size_t i = 0; i < n; i++)
            allow[i] = pool[next_random(&seed) % COUNT(pool)];
        for (size_t i = 0; i < d; i++)
            more[i] = deny[i] = pool[next_random(&seed) % COUNT(pool)];
        for (size_t i = 0; i < n; i++)
            if (i != without)
                fewer[m++] = allow[i];
        more[d] = pool[next_random(&seed) % COUNT(pool)];
        before = reach(allow, deny, &h, port, &a);
        removed = reach(fewer, deny, &h, port, &a);
        added = reach(allow, more, &h, port, &a);
        reached[before]++;
        CHECK(removed <= before, "%s:%u: without '%s' it comes further", h.text, port,
              allow[without]);
        CHECK(added <= before, "%s:%u: with deny '%s' it comes further", h.text, port, more[d]);
        /* The order of entries means nothing. */
        for (size_t i = 0; i < n / 2; i++) {
            const char *swap = allow[i];

            allow[i] = allow[n - 1 - i];
            allow[n - 1 - i] = swap;
        }
        CHECK(reach(allow, deny, &h, port, &a) == before, "%s:%u: order counts", h.text, port);
    }
    CHECK(reached[0] > 500 && reached[1] > 500 && reached[2] > 500, "%u %u %u", reached[0],
          reached[1], reached[2]);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("an entry that is none is refused, by list, number and reason", test_refused),
        CLAIM("lists and entries have an end", test_limits),
        CLAIM("a name or literal is decided by its entry, and deny beats allow", test_names),
        CLAIM("an address that is not public is dialled only if it is named", test_addresses),
        CLAIM("the host's loopback has the ports that were asked for, and no others",
              test_host_port),
        CLAIM("a name is looked up only if some port of it may be reached", test_lookup),
        CLAIM("fewer allow entries or more deny entries never allow more", test_monotonic),
    };

    return RUN_CLAIMS("egress/rules", claims);
}
