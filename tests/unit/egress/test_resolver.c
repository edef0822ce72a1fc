/* SPDX-License-Identifier: Apache-2.0 */
/* The resolver against servers of the test's own on the loopback: nothing leaves. */
#include "egress/resolver.h"

#include <sys/resource.h>

#include "tests/unit/egress/fake_dns.h"

/* ---- everything that a test needs ---- */

struct world {
    struct loop *loop;
    struct server servers[2];
    struct resolver *resolver;
    size_t fds; /* before there was anything */
    struct loop_timer watchdog;
    bool bitten;
};

static void on_watchdog(struct loop_timer *t)
{
    struct world *w = (struct world *)((char *)t - offsetof(struct world, watchdog));

    w->bitten = true;
    loop_quit(w->loop);
}

static void world_open(struct world *w, const struct resolver_times *times)
{
    struct resolver_server at[2];
    struct error err;

    *w = (struct world){.fds = open_fds(), .watchdog.on_time = on_watchdog};
    assert_int_equal(loop_new(&w->loop), 0);
    for (int i = 0; i < 2; i++) {
        assert_true(server_open(&w->servers[i], w->loop, "127.0.0.1"));
        at[i] = w->servers[i].at;
    }
    CHECK_OK(resolver_new_timed(w->loop, at, 2, times, &w->resolver, &err), err);
}

static void world_close(struct world *w)
{
    resolver_free(w->resolver);
    for (int i = 0; i < 2; i++)
        server_close(&w->servers[i]);
    loop_stop_timer(&w->watchdog);
    loop_free(w->loop);
    assert_int_equal(open_fds(), w->fds);
}

/* Until somebody quits; false if nobody does in time. */
static bool world_run(struct world *w, uint64_t usec)
{
    w->bitten = false;
    assert_int_equal(loop_set_timer(w->loop, &w->watchdog, usec), 0);
    assert_int_equal(loop_run(w->loop), 0);
    loop_stop_timer(&w->watchdog);
    return !w->bitten;
}

/* Nothing takes so long unless it is broken; less than one try of the patient. */
#define LONG 15000000

struct seen {
    struct resolver_lookup lookup; /* first: it is cast */
    struct world *world;
    unsigned calls;
    enum dns_rcode rcode;
    uint32_t ttl;
    char list[512];
    struct seen *cancels;
    unsigned *left; /* quits when it comes to 0 */
    unsigned turn;
};

static unsigned turns;

static void on_done(struct resolver_lookup *l, enum dns_rcode rcode, const struct address *list,
                    size_t n, uint32_t ttl)
{
    struct seen *s = (struct seen *)l;
    char text[LIMIT_ADDRESS_TEXT];
    size_t at = 0;

    s->calls++;
    s->turn = turns++;
    s->rcode = rcode;
    s->ttl = ttl;
    s->list[0] = 0;
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(s->list + at, sizeof(s->list) - at, "%s%s", i ? " " : "",
                               address_format(&list[i], text));
    if (s->cancels)
        resolver_cancel(&s->cancels->lookup);
    resolver_cancel(l); /* nothing to do: it is over */
    if (!s->left || --*s->left == 0)
        loop_quit(s->world->loop);
}

static void start(struct world *w, struct seen *s, const char *name)
{
    const struct host host = host_of(name);
    unsigned calls = s->calls;

    s->lookup.on_done = on_done;
    s->world = w;
    assert_int_equal(resolver_start(w->resolver, &s->lookup, &host), 0);
    assert_int_equal(s->calls, calls); /* never from within */
}

static void look_up(struct world *w, struct seen *s, const char *name)
{
    unsigned calls = s->calls;

    start(w, s, name);
    CHECK(world_run(w, LONG), "%s: never told", name);
    assert_int_equal(s->calls, calls + 1);
}

static unsigned asked(const struct world *w, int i)
{
    return w->servers[i].asked[0] + w->servers[i].asked[1];
}

#define ALL "192.0.2.1 192.0.2.2 2001:db8::1"
#define V4S "192.0.2.1 192.0.2.2"
#define V6S "2001:db8::1"
#define ONE "192.0.2.1 2001:db8::1"

struct row {
    const char *what;
    int a, aaaa, second_a, second_aaaa; /* what the servers do about each type */
    enum dns_rcode rcode;
    const char *list;
    unsigned asked, second_asked;
    int tcp; /* what the first does over TCP */
    unsigned streams;
    uint32_t ttl; /* 0: not looked at */
};

#define BOTH(act) (act), (act)

static void check_row(const struct row *row)
{
    struct world w;
    struct seen s = {0};

    world_open(&w, &quick);
    server_acts(&w.servers[0], row->a, row->aaaa);
    server_acts(&w.servers[1], row->second_a, row->second_aaaa);
    w.servers[0].tcp_act = row->tcp;
    start(&w, &s, "allowed.test");
    CHECK(world_run(&w, LONG), "%s: never told", row->what);
    CHECK(s.calls == 1, "%s: %u calls", row->what, s.calls);
    CHECK(s.rcode == row->rcode, "%s: rcode %d", row->what, (int)s.rcode);
    CHECK_STR(s.list, row->list, row->what);
    CHECK(asked(&w, 0) == row->asked, "%s: asked %u times", row->what, asked(&w, 0));
    CHECK(asked(&w, 1) == row->second_asked, "%s: the second %u", row->what, asked(&w, 1));
    CHECK(w.servers[0].streams == row->streams, "%s: %u streams", row->what, w.servers[0].streams);
    CHECK(!row->ttl || s.ttl == row->ttl, "%s: ttl %u", row->what, s.ttl);
    world_close(&w);
}

static void test_answers(void **state)
{
    static const struct row rows[] = {
        {"both", BOTH(ANSWER), BOTH(SILENT), DNS_NOERROR, ALL, 2, 0, 0, 0, 60},
        {"A only", ANSWER, NODATA, BOTH(SILENT), DNS_NOERROR, V4S, 2, 0, 0, 0, 60},
        {"AAAA only", NODATA, ANSWER, BOTH(SILENT), DNS_NOERROR, V6S, 2, 0, 0, 0, 60},
        {"neither", BOTH(NODATA), BOTH(ANSWER), DNS_NOERROR, "", 2, 0, 0, 0, 5},
        {"no such name", BOTH(NXDOMAIN), BOTH(ANSWER), DNS_NXDOMAIN, "", 2, 0, 0, 0, 5},
        {"no such name for AAAA", ANSWER, NXDOMAIN, BOTH(SILENT), DNS_NOERROR, V4S, 2, 0},
        {"no such name, or nothing", NXDOMAIN, NODATA, BOTH(SILENT), DNS_NOERROR, "", 2, 0},
        {"a chain", BOTH(CHAIN), BOTH(SILENT), DNS_NOERROR, ONE, 2, 0, 0, 0, 30},
        {"a chain without end", BOTH(ENDLESS), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2},
        {"an address twice", BOTH(REPEATED), BOTH(SILENT), DNS_NOERROR, ONE, 2, 0},
        {"late, but in time", BOTH(LATE), BOTH(SILENT), DNS_NOERROR, ALL, 2, 0},
    };

    (void)state;
    FOR_EACH(row, rows) check_row(row);
}

static void test_wrong(void **state)
{
    static const struct row rows[] = {
        {"id first", BOTH(WRONG_ID | FIRST), BOTH(SILENT), DNS_NOERROR, ALL, 2, 0},
        {"name first", BOTH(WRONG_NAME | FIRST), BOTH(SILENT), DNS_NOERROR, ALL, 2, 0},
        {"type first", BOTH(WRONG_TYPE | FIRST), BOTH(SILENT), DNS_NOERROR, ALL, 2, 0},
        {"a question first", BOTH(A_QUERY | FIRST), BOTH(SILENT), DNS_NOERROR, ALL, 2, 0},
        {"garbage first", BOTH(GARBAGE | FIRST), BOTH(SILENT), DNS_NOERROR, ALL, 2, 0},
        {"nothing first", BOTH(EMPTY | FIRST), BOTH(SILENT), DNS_NOERROR, ALL, 2, 0},
        {"oversize first", BOTH(OVERSIZE | FIRST), BOTH(SILENT), DNS_NOERROR, ALL, 2, 0},
        {"forged first", BOTH(ANSWER | FORGE | FIRST), BOTH(SILENT), DNS_NOERROR, ALL, 2, 0},
        {"id", BOTH(WRONG_ID), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2},
        {"name", BOTH(WRONG_NAME), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2},
        {"type", BOTH(WRONG_TYPE), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2},
        {"garbage", BOTH(GARBAGE), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2},
        {"forged", BOTH(ANSWER | FORGE), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2},
        {"all of it", BOTH(WRONG_ID), BOTH(WRONG_NAME), DNS_SERVFAIL, "", 4, 2},
    };

    (void)state;
    FOR_EACH(row, rows) check_row(row);
}

static void test_servers(void **state)
{
    static const struct row rows[] = {
        {"the first is silent", BOTH(SILENT), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2},
        {"the first is too late", BOTH(TOO_LATE), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2},
        {"the first fails", BOTH(SERVFAIL), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2},
        {"the first refuses A", REFUSED, BOTH(ANSWER), ANSWER, DNS_NOERROR, ALL, 2, 1},
        {"the first has no such name", BOTH(NXDOMAIN), BOTH(ANSWER), DNS_NXDOMAIN, "", 2, 0},
        /* asked after 0, 250 and 500 ms, of 600 */
        {"all are silent", BOTH(SILENT), BOTH(SILENT), DNS_SERVFAIL, "", 4, 2},
        {"all refuse: not again", BOTH(REFUSED), BOTH(SERVFAIL), DNS_SERVFAIL, "", 2, 2},
        {"one refuses", BOTH(REFUSED), BOTH(SILENT), DNS_SERVFAIL, "", 2, 4},
        {"only A comes", ANSWER, BOTH(SILENT), SILENT, DNS_NOERROR, V4S, 2, 0, 0, 0, 1},
        {"only AAAA comes", SILENT, ANSWER, BOTH(SILENT), DNS_NOERROR, V6S, 2, 0, 0, 0, 1},
        {"AAAA is refused", ANSWER, BOTH(REFUSED), REFUSED, DNS_NOERROR, V4S, 2, 1, 0, 0, 1},
        {"only that there is no A", NODATA, BOTH(SILENT), SILENT, DNS_SERVFAIL, "", 3, 1},
        {"no such name, and silence", NXDOMAIN, BOTH(SILENT), SILENT, DNS_SERVFAIL, "", 3, 1},
    };

    (void)state;
    FOR_EACH(row, rows) check_row(row);
}

static void test_tcp(void **state)
{
    static const struct row rows[] = {
        {"both", BOTH(TRUNCATED), BOTH(SILENT), DNS_NOERROR, ALL, 2, 0, ANSWER, 2},
        {"one", TRUNCATED, NODATA, BOTH(SILENT), DNS_NOERROR, V4S, 2, 0, ANSWER, 1},
        {"no such name", BOTH(TRUNCATED), BOTH(ANSWER), DNS_NXDOMAIN, "", 2, 0, NXDOMAIN, 2},
        {"byte by byte", BOTH(TRUNCATED), BOTH(SILENT), DNS_NOERROR, ALL, 2, 0, SLOW, 2},
        {"more behind it", BOTH(TRUNCATED), BOTH(SILENT), DNS_NOERROR, ALL, 2, 0, TWICE, 2},
        {"54 KiB", BOTH(TRUNCATED), BOTH(SILENT), DNS_NOERROR, ONE, 2, 0, BIG, 2},
        {"cut short", BOTH(TRUNCATED), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2, CUT, 2},
        {"closed", BOTH(TRUNCATED), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2, CLOSE, 2},
        {"silent", BOTH(TRUNCATED), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2, SILENT, 2},
        {"wrong id", BOTH(TRUNCATED), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2, WRONG_ID, 2},
        {"wrong name", BOTH(TRUNCATED), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2, WRONG_NAME, 2},
        {"garbage", BOTH(TRUNCATED), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2, GARBAGE, 2},
        {"no bytes", BOTH(TRUNCATED), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2, EMPTY, 2},
        {"truncated", BOTH(TRUNCATED), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2, TRUNCATED, 2},
        {"refused", BOTH(TRUNCATED), BOTH(ANSWER), DNS_NOERROR, ALL, 2, 2, REFUSED, 2},
        {"late", LATE, TRUNCATED, BOTH(SILENT), DNS_NOERROR, V6S, 2, 0, ANSWER, 1, 1},
    };

    (void)state;
    FOR_EACH(row, rows) check_row(row);
}

/* ---- servers that are not there ---- */

static void test_nobody(void **state)
{
    struct world w;
    struct seen s = {0};
    struct resolver_server at[2];
    struct resolver *r;
    struct error err;
    struct rlimit old, none;

    (void)state;
    world_open(&w, &quick);
    at[0] = w.servers[0].at;
    at[1] = w.servers[1].at;
    /* Nobody has the port: the kernel says so, and the next is asked without delay. */
    loop_remove(&w.servers[0].udp);
    close(w.servers[0].udp.fd);
    CHECK_OK(resolver_new_timed(w.loop, at, 2, &patient, &r, &err), err);
    resolver_free(TAKE(w.resolver, r));
    look_up(&w, &s, "allowed.test");
    assert_string_equal(s.list, ALL);
    assert_int_equal(asked(&w, 1), 2);
    /* And if there is no other. */
    CHECK_OK(resolver_new_timed(w.loop, at, 1, &patient, &r, &err), err);
    resolver_free(TAKE(w.resolver, r));
    look_up(&w, &s, "allowed.test");
    assert_int_equal(s.rcode, DNS_SERVFAIL);
    /* No descriptors: told from the loop all the same. */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    start(&w, &s, "other.test");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_true(world_run(&w, LONG));
    assert_int_equal(s.calls, 3);
    assert_int_equal(s.rcode, DNS_SERVFAIL);
    assert_int_equal(s.ttl, 0);
    w.servers[0].udp.fd = -1;
    world_close(&w);
}

/* Where a datagram says that TCP should be asked: nobody waits for what cannot come any more. */
static void test_streams_that_end(void **state)
{
    static const enum act acts[] = {CUT, CLOSE, WRONG_ID, GARBAGE, EMPTY, TRUNCATED, SERVFAIL};
    struct world w;
    struct seen s = {0};
    char name[32];
    unsigned n = 0;

    (void)state;
    world_open(&w, &patient);
    server_acts(&w.servers[0], BOTH(TRUNCATED));
    FOR_EACH(act, acts)
    {
        w.servers[0].tcp_act = *act;
        (void)snprintf(name, sizeof(name), "n%u.test", n++);
        look_up(&w, &s, name);
        assert_string_equal(s.list, ALL);
        assert_int_equal(asked(&w, 1), 2 * n);
    }
    loop_remove(&w.servers[0].tcp);
    close(TAKE_FD(w.servers[0].tcp.fd)); /* nobody listens */
    look_up(&w, &s, "allowed.test");
    assert_string_equal(s.list, ALL);
    assert_int_equal(asked(&w, 1), 2 * n + 2);
    world_close(&w);
}

static void test_ipv6(void **state)
{
    struct world w;
    struct server v6;
    struct seen s = {0};
    struct resolver *r;
    struct error err;

    (void)state;
    world_open(&w, &patient);
    if (!server_open(&v6, w.loop, "::1")) {
        host_lacks("IPv6 on the loopback");
    } else {
        v6.acts[1] = TRUNCATED;
        CHECK_OK(resolver_new(w.loop, &v6.at, 1, &r, &err), err);
        resolver_free(TAKE(w.resolver, r));
        look_up(&w, &s, "allowed.test");
        assert_string_equal(s.list, ALL);
        assert_int_equal(v6.streams, 1);
        server_close(&v6);
    }
    world_close(&w);
}

/* ---- cancelling ---- */

static void test_cancel(void **state)
{
    struct world w;
    struct seen a = {0}, b = {0};
    size_t fds;

    (void)state;
    world_open(&w, &quick);
    fds = open_fds();
    resolver_cancel(&a.lookup); /* nothing to do */
    w.servers[0].acts[1] = SILENT;
    w.servers[0].tcp_act = SILENT;
    start(&w, &a, "allowed.test");
    assert_int_equal(open_fds(), fds + 2);
    resolver_cancel(&a.lookup); /* before anything is sent back */
    assert_int_equal(open_fds(), fds);
    start(&w, &a, "allowed.test");
    start(&w, &b, "allowed.test");
    assert_false(world_run(&w, quick.grace_usec / 2)); /* half of the answer is there */
    assert_int_equal(open_fds(), fds + 1);             /* closed as soon as it is answered */
    resolver_cancel(&a.lookup);
    assert_int_equal(open_fds(), fds + 1); /* the other still waits */
    resolver_cancel(&b.lookup);
    assert_int_equal(open_fds(), fds);
    server_acts(&w.servers[0], TRUNCATED, TRUNCATED);
    start(&w, &a, "allowed.test");
    assert_false(world_run(&w, quick.grace_usec)); /* within a stream */
    assert_int_equal(w.servers[0].streams, 2);
    assert_int_equal(open_fds(), fds + 4); /* two of them the server's */
    resolver_cancel(&a.lookup);
    assert_int_equal(open_fds(), fds + 2);
    server_acts(&w.servers[0], ANSWER, ANSWER);
    look_up(&w, &a, "allowed.test");
    start(&w, &b, "allowed.test"); /* known by now: waits for its turn */
    resolver_cancel(&b.lookup);
    assert_false(world_run(&w, quick.total_usec * 3 / 2));
    assert_int_equal(a.calls, 1);
    assert_int_equal(b.calls, 0);
    world_close(&w);
}

static void test_cancel_in_callback(void **state)
{
    struct world w;
    struct seen s[3] = {0};

    (void)state;
    world_open(&w, &quick);
    for (int i = 0; i < 3; i++)
        start(&w, &s[i], "allowed.test");
    s[0].cancels = &s[2]; /* the last one; it is about to be told */
    assert_true(world_run(&w, LONG));
    assert_false(world_run(&w, 50000) && world_run(&w, 50000));
    assert_int_equal(s[0].calls, 1);
    assert_int_equal(s[1].calls, 1);
    assert_int_equal(s[2].calls, 0);
    s[0].cancels = &s[1]; /* another name's, in flight */
    w.servers[0].acts[0] = SILENT;
    start(&w, &s[1], "other.test");
    look_up(&w, &s[0], "allowed.test");
    assert_false(world_run(&w, 50000));
    assert_int_equal(s[1].calls, 1);
    world_close(&w);
}

struct last {
    struct resolver_lookup lookup;
    struct world *world;
    struct seen *other;
};

static void on_last(struct resolver_lookup *l, enum dns_rcode rcode, const struct address *list,
                    size_t n, uint32_t ttl)
{
    struct last *last = (struct last *)l;
    struct world *w = last->world;

    (void)ttl;
    resolver_cancel(&last->other->lookup);
    resolver_free(TAKE_PTR(w->resolver));
    free(last);
    assert_int_equal(rcode, DNS_NOERROR);
    assert_int_equal(n, 3); /* the list outlives the resolver */
    assert_int_equal(list[2].bits, 128);
    loop_quit(w->loop);
}

static void test_free_in_callback(void **state)
{
    struct world w;
    struct seen other = {0};
    struct last *last = calloc(1, sizeof(*last));
    const struct host host = host_of("allowed.test");

    (void)state;
    assert_non_null(last);
    world_open(&w, &quick);
    *last = (struct last){.lookup.on_done = on_last, .world = &w, .other = &other};
    assert_int_equal(resolver_start(w.resolver, &last->lookup, &host), 0);
    start(&w, &other, "allowed.test");
    assert_true(world_run(&w, LONG));
    assert_int_equal(other.calls, 0);
    world_close(&w);
}

/* ---- sharing, and what is kept ---- */

static void test_sharing(void **state)
{
    enum { N = 20 };
    struct world w;
    struct seen s[N] = {0};
    unsigned left = N;
    size_t fds;

    (void)state;
    world_open(&w, &quick);
    fds = open_fds();
    turns = 0;
    for (int i = 0; i < N; i++) {
        s[i].left = &left;
        start(&w, &s[i], i % 2 ? "allowed.test" : "Allowed.TEST."); /* one canonical name */
    }
    assert_int_equal(open_fds(), fds + 2);
    assert_true(world_run(&w, LONG));
    assert_int_equal(asked(&w, 0), 2);
    for (int i = 0; i < N; i++) {
        assert_int_equal(s[i].calls, 1);
        assert_int_equal(s[i].turn, i); /* who came first is told first */
        assert_string_equal(s[i].list, ALL);
    }
    world_close(&w);
}

static void test_kept(void **state)
{
    static const struct {
        const char *what;
        int act;
        uint32_t ttl, want;
    } rows[] = {
        {"as long as it says", ANSWER, 4, 4},      {"at least a second", ANSWER, 0, 1},
        {"at most a minute", ANSWER, 86400, 60},   {"an unlikely one", ANSWER, UINT32_MAX, 1},
        {"no such name", NXDOMAIN, 3600, 5},       {"nothing of the kind", NODATA, 3600, 5},
        {"a failure: not at all", SERVFAIL, 9, 0},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        const unsigned once = 2, again = 4;
        struct world w;
        struct seen s = {0};

        world_open(&w, &quick);
        server_acts(&w.servers[0], row->act, row->act);
        server_acts(&w.servers[1], row->act, row->act);
        w.servers[0].ttl = row->ttl;
        look_up(&w, &s, "allowed.test");
        CHECK(s.ttl == row->want, "%s: ttl %u", row->what, s.ttl);
        look_up(&w, &s, "allowed.test");
        CHECK(s.ttl <= row->want, "%s: then %u", row->what, s.ttl);
        CHECK(asked(&w, 0) == (row->want ? once : again), "%s: %u", row->what, asked(&w, 0));
        if (row->want && row->want < 10) {
            assert_false(world_run(&w, row->want * quick.second_usec + 10000));
            look_up(&w, &s, "allowed.test");
            CHECK(asked(&w, 0) == again, "%s: kept too long", row->what);
            CHECK(s.ttl == row->want, "%s: ttl at last %u", row->what, s.ttl);
        }
        world_close(&w);
    }
}

static void test_least_used(void **state)
{
    struct world w;
    struct seen s = {0};
    char name[32];

    (void)state;
    world_open(&w, &patient);
    server_acts(&w.servers[0], NUMBERED, NUMBERED);
    for (unsigned i = 0; i < LIMIT_RESOLVER_CACHE; i++) {
        (void)snprintf(name, sizeof(name), "n%u.test", i);
        look_up(&w, &s, name);
    }
    assert_int_equal(asked(&w, 0), 2 * LIMIT_RESOLVER_CACHE);
    look_up(&w, &s, "n0.test"); /* used again: n1 is the oldest now, then n2 */
    assert_int_equal(asked(&w, 0), 2 * LIMIT_RESOLVER_CACHE);
    server_acts(&w.servers[0], BOTH(REFUSED));
    server_acts(&w.servers[1], BOTH(REFUSED));
    look_up(&w, &s, "failing.test"); /* drives nobody out */
    server_acts(&w.servers[0], BOTH(NUMBERED));
    look_up(&w, &s, "n1.test");
    look_up(&w, &s, "n0.test");
    assert_int_equal(asked(&w, 0), 2 * LIMIT_RESOLVER_CACHE + 2);
    look_up(&w, &s, "n5000.test"); /* drives n2 out */
    look_up(&w, &s, "n0.test");
    assert_string_equal(s.list, "10.0.0.0");
    assert_int_equal(asked(&w, 0), 2 * LIMIT_RESOLVER_CACHE + 4);
    look_up(&w, &s, "n2.test");
    assert_string_equal(s.list, "10.0.0.2");
    assert_int_equal(asked(&w, 0), 2 * LIMIT_RESOLVER_CACHE + 6);
    world_close(&w);
}

/* ---- many ---- */

struct crowd {
    struct loop_task task;
    struct world *world;
    struct seen *seen;
    unsigned started, n;
};

/* A few in each round, as many as the server's socket holds until it is read. */
static void on_crowd(struct loop_task *t)
{
    struct crowd *c = (struct crowd *)t;
    char name[32];

    for (unsigned i = 0; i < 20 && c->started < c->n; i++) {
        (void)snprintf(name, sizeof(name), "n%u.test", c->started);
        start(c->world, &c->seen[c->started++], name);
    }
    if (c->started < c->n)
        loop_later(c->world->loop, t);
}

static void test_many(void **state)
{
    struct rlimit limit;
    struct world w;
    struct crowd c = {.task.on_turn = on_crowd, .world = &w, .n = 1000};
    unsigned left, ports = 0, ids = 0;
    static uint8_t port_seen[65536], id_seen[65536];

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur < 2100) {
        host_lacks("2100 descriptors; fewer lookups at once");
        c.n = 100;
    }
    left = c.n;
    c.seen = calloc(c.n, sizeof(*c.seen));
    assert_non_null(c.seen);
    world_open(&w, &patient);
    server_acts(&w.servers[0], HOLD, HOLD);
    w.servers[0].n_hold = 2 * c.n + 1; /* one more than there are: nobody is answered yet */
    for (unsigned i = 0; i < c.n; i++)
        c.seen[i].left = &left;
    loop_later(w.loop, &c.task);
    while (w.servers[0].n_held < 2 * c.n)
        assert_false(world_run(&w, 20000));
    assert_int_equal(open_fds(), w.fds + 5 + 2 * c.n); /* the loop's, the servers', and ours */
    for (unsigned i = 0; i < 2 * c.n; i++) {
        const struct question *q = &w.servers[0].held[i];

        ports += !port_seen[((const struct sockaddr_in *)&q->from)->sin_port]++;
        ids += !id_seen[q->query.id]++;
    }
    assert_int_equal(ports, 2 * c.n);    /* each from a port of its own */
    assert_true(ids > 2 * c.n * 9 / 10); /* 30 of 2000 come twice by chance */
    while (w.servers[0].n_held)
        send_answer(&w.servers[0], &w.servers[0].held[--w.servers[0].n_held], NUMBERED);
    assert_true(world_run(&w, LONG));
    for (unsigned i = 0; i < c.n; i++) {
        char want[32];

        (void)snprintf(want, sizeof(want), "10.0.%u.%u", i >> 8, i & 0xff);
        assert_int_equal(c.seen[i].calls, 1);
        assert_string_equal(c.seen[i].list, want);
    }
    assert_int_equal(asked(&w, 0) + asked(&w, 1), 2 * c.n);
    world_close(&w);
    free(c.seen);
}

static void test_limits(void **state)
{
    struct world w;
    struct seen *s = calloc(LIMIT_RESOLVER_PENDING + 1, sizeof(*s)), *last;
    const struct host host = host_of("allowed.test");
    unsigned left = LIMIT_RESOLVER_PENDING;

    (void)state;
    assert_non_null(s);
    world_open(&w, &patient);
    for (unsigned i = 0; i < LIMIT_RESOLVER_PENDING; i++) {
        s[i].left = &left;
        start(&w, &s[i], "allowed.test");
    }
    last = &s[LIMIT_RESOLVER_PENDING];
    last->lookup.on_done = on_done;
    last->world = &w;
    last->left = &left;
    assert_int_equal(resolver_start(w.resolver, &last->lookup, &host), -EBUSY);
    resolver_cancel(&last->lookup); /* nothing to do */
    resolver_cancel(&s[7].lookup);
    assert_int_equal(resolver_start(w.resolver, &last->lookup, &host), 0);
    assert_true(world_run(&w, LONG));
    assert_int_equal(s[7].calls, 0);
    assert_int_equal(last->calls, 1);
    world_close(&w);
    free(s);
}

static void test_refused(void **state)
{
    static const char *const literals[] = {"192.0.2.1", "::1"};
    const struct resolver_server good = {.address = address_of("127.0.0.1"), .port = 53},
                                 four[4] = {good, good, good, good}, bad[] = {good, {.port = 53}},
                                 no_port = {.address = good.address};
    struct resolver *r;
    struct resolver_lookup l = {.on_done = on_done};
    struct error err;
    struct world w;

    (void)state;
    world_open(&w, &quick);
    FOR_EACH(text, literals)
    {
        const struct host host = host_of(*text);

        assert_int_equal(resolver_start(w.resolver, &l, &host), -EINVAL);
    }
    CHECK_ERR(resolver_new(w.loop, &good, 0, &r, &err), err, ERR_INVALID, "0 servers");
    CHECK_ERR(resolver_new(w.loop, four, 4, &r, &err), err, ERR_INVALID, "4 servers");
    CHECK_ERR(resolver_new(w.loop, bad, 2, &r, &err), err, ERR_INVALID, "server 2");
    CHECK_ERR(resolver_new(w.loop, &no_port, 1, &r, &err), err, ERR_INVALID, "server 1");
    resolver_free(NULL);
    world_close(&w);
}

/* ---- resolv.conf ---- */

static void test_conf(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", ""},
        {"\n\n", ""},
        {"nameserver 127.0.0.53\n", "127.0.0.53"},
        {"nameserver 127.0.0.53", "127.0.0.53"},
        {"nameserver\t::1\r\n", "::1"},
        {"# a comment\n; another\nsearch test\nnameserver 192.0.2.1\noptions edns0\n", "192.0.2.1"},
        {"nameserver 192.0.2.1\nnameserver 2001:DB8:0::1\n", "192.0.2.1 2001:db8::1"},
        {"nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\nnameserver 192.0.2.4\n",
         "192.0.2.1 192.0.2.2 192.0.2.3"},
        {"nameserver  \t 192.0.2.1 \t\n", "192.0.2.1"},
        {"nameserver 192.0.2.1 # the first\nnameserver 192.0.2.2;the second\n",
         "192.0.2.1 192.0.2.2"},
        {"nameserver 192.0.2.1 192.0.2.2\n", "192.0.2.1"},
        /* passed over */
        {" nameserver 192.0.2.1\n", ""},
        {"#nameserver 192.0.2.1\n", ""},
        {"nameserver\n192.0.2.1\n", ""},
        {"nameserver", ""},
        {"nameserver ", ""},
        {"nameserver 192.0.2\nnameserver 192.0.2.1", "192.0.2.1"},
        {"nameserver 192.0.2.01\n", ""},
        {"nameserver 192.0.2.1:53\n", ""},
        {"nameserver [::1]\n", ""},
        {"nameserver fe80::1%eth0\n", ""},
        {"nameserver dns.test\n", ""},
        {"nameservers 192.0.2.1\n", ""},
        {"nameserver192.0.2.1\n", ""},
        {"NAMESERVER 192.0.2.1\n", ""},
        {"name", ""},
    };
    static const char with_nul[] = "nameserver 192.0.2.1\0\nnameserver 192.0.2.2\n";
    struct resolver_server list[4];

    (void)state;
    FOR_EACH(row, rows)
    {
        size_t len = strlen(row->text), n, at = 0;
        char *text = malloc(len + 1), got[200] = "", one[LIMIT_ADDRESS_TEXT]; /* ends are watched */

        assert_non_null(text);
        text = realloc(text, len ? len : 1);
        memcpy(text, row->text, len);
        n = resolver_parse_conf(text, len, list, COUNT(list));
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(list[i].port, 53);
            at += (size_t)snprintf(got + at, sizeof(got) - at, "%s%s", i ? " " : "",
                                   address_format(&list[i].address, one));
        }
        CHECK_STR(got, row->want, row->text);
        free(text);
    }
    assert_int_equal(resolver_parse_conf(with_nul, sizeof(with_nul) - 1, list, 3), 1);
    assert_int_equal(list[0].address.bytes[3], 2);
    assert_int_equal(resolver_parse_conf(rows[7].text, strlen(rows[7].text), list, 2), 2);
    assert_int_equal(resolver_parse_conf(rows[7].text, strlen(rows[7].text), list, 0), 0);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a name gets the addresses that its server has for it", test_answers),
        CLAIM("wrong answers are waited past", test_wrong),
        CLAIM("a server that does not answer is followed by the next", test_servers),
        CLAIM("a truncated answer is asked for again over TCP", test_tcp),
        CLAIM("a server that is not there costs no time", test_nobody),
        CLAIM("a stream that ends too early costs no time", test_streams_that_end),
        CLAIM("a server may have an IPv6 address", test_ipv6),
        CLAIM("a cancelled lookup is not told, and leaves nothing open", test_cancel),
        CLAIM("a lookup can be cancelled by another's callback", test_cancel_in_callback),
        CLAIM("the resolver can be freed by a callback", test_free_in_callback),
        CLAIM("lookups of one name share their questions", test_sharing),
        CLAIM("answers are kept as long as they say, within bounds", test_kept),
        CLAIM("of too many names the least used goes", test_least_used),
        CLAIM("a thousand at once, each from its own port with its own id", test_many),
        CLAIM("more than so many lookups are refused", test_limits),
        CLAIM("no resolver without servers, no lookup of a literal", test_refused),
        CLAIM("nameserver lines of resolv.conf", test_conf),
    };

    return RUN_CLAIMS("egress/resolver", claims);
}
