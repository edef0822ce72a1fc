/* SPDX-License-Identifier: Apache-2.0 */
/* A box that comes by way of the proxy: what it reaches, what is told, and how much it may have. */
#include "egress/relay.h"

#include "tests/unit/egress/relay_scene.h"

static char get[160], connect_[160], connect_other[160], wrong_host[160];

static void write_requests(void)
{
    (void)snprintf(get, sizeof(get),
                   "GET http://" HOST_NAME_HERE ":%u/path HTTP/1.1\r\nHost: " HOST_NAME_HERE
                   ":%u\r\nProxy-Authorization: secret\r\n\r\n",
                   outside, outside);
    (void)snprintf(connect_, sizeof(connect_),
                   "CONNECT " HOST_NAME_HERE ":%u HTTP/1.1\r\nHost: " HOST_NAME_HERE ":%u\r\n\r\n",
                   outside, outside);
    (void)snprintf(connect_other, sizeof(connect_other),
                   "CONNECT " HOST_OTHER ":%u HTTP/1.1\r\nHost: " HOST_OTHER ":%u\r\n\r\n", outside,
                   outside);
    (void)snprintf(wrong_host, sizeof(wrong_host),
                   "GET http://" HOST_NAME_HERE ":%u/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
                   outside);
}

static char here[64], there[64]; /* the two names of the outside, as targets */
static struct relay_box *the_box;

static void run(struct scene *s)
{
    pid_t server = start_outside(&outside, "");
    size_t before = open_fds();

    write_requests();
    (void)snprintf(here, sizeof(here), HOST_NAME_HERE ":%u", outside);
    (void)snprintf(there, sizeof(there), HOST_OTHER ":%u", outside);
    n_told = 0;
    if (!s->on_event)
        s->on_event = on_told;
    assert_true(play(s));
    assert_int_equal(open_fds(), before);
    stop(server);
}

/* Connected through the proxy, and told so. */
static int open_tunnel(const char *request, char *answer, size_t size)
{
    int fd = connect_to("127.0.0.1", proxy_port);

    if (fd >= 0 && write(fd, request, strlen(request)) == (ssize_t)strlen(request))
        (void)hear(fd, answer, size, "\r\n\r\n");
    return fd;
}

/* How many bytes come for "SEND n.". */
static size_t fetch(const char *request, size_t n)
{
    static char answer[2 << 20];
    char head[1024], ask[32];
    autoclose int fd = open_tunnel(request, head, sizeof(head));
    int len = snprintf(ask, sizeof(ask), "SEND %zu.", n);

    if (!strstr(head, " 200 ") || write(fd, ask, (size_t)len) != len)
        return 0;
    return hear(fd, answer, sizeof(answer), NULL);
}

/* ---- what it reaches ---- */

struct row {
    const char *claim;
    const char *send;
    size_t len;
    const char *want;     /* in the answer */
    const char *want_not; /* or NULL */
};

#define TEXT(s) s, sizeof(s) - 1

static bool holds(const char *answer, size_t n, const char *want)
{
    return memmem(answer, n, want, strlen(want)) != NULL;
}

static int try_all(void)
{
    char echo[256];
    int echo_len = snprintf(echo, sizeof(echo), "%shello, bye", connect_);
    const struct row rows[] = {
        {"a request is rebuilt and answered", get, strlen(get), "GET /path HTTP/1.1", "secret"},
        {"it says close", get, strlen(get), "Connection: close", "http://"},
        {"a tunnel carries bytes", echo, (size_t)echo_len, "hello, bye", NULL},
        {"another Host is refused", wrong_host, strlen(wrong_host), "HTTP/1.1 400", "200 OK"},
        {"a name that no rule has",
         TEXT("CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n"), "HTTP/1.1 403",
         NULL},
        {"the setting is named",
         TEXT("CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n"), "network.allow",
         NULL},
        {"the metadata service",
         TEXT("GET http://169.254.169.254/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n"),
         "HTTP/1.1 403", NULL},
        {"an address in disguise",
         TEXT("CONNECT 2130706433:80 HTTP/1.1\r\nHost: 2130706433:80\r\n\r\n"), "HTTP/1.1 400",
         NULL},
        {"a name with a byte that is none", TEXT("CONNECT ev\0il.test:443 HTTP/1.1\r\n\r\n"),
         "HTTP/1.1 400", NULL},
        {"a name as long as a page",
         TEXT(
             "CONNECT aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1 HTTP/1.1\r\nHost: a\r\n\r\n"),
         "HTTP/1.1 400", NULL},
        {"who asks", TEXT("GET http://me:pw@evil.test/q?u=http://x/ HTTP/1.1\r\nHost: a\r\n\r\n"),
         "HTTP/1.1 400", NULL},
        {"another port of a name",
         TEXT("CONNECT allowed.test:22 HTTP/1.1\r\nHost: allowed.test:22\r\n\r\n"), "HTTP/1.1 403",
         NULL},
        {"a name that cannot be resolved",
         TEXT("CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n"),
         "HTTP/1.1 502", NULL},
        {"a request to a server, not to a proxy",
         TEXT("GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n"), "HTTP/1.1 400", NULL},
        {"two lengths",
         TEXT("POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 1\r\n"
              "Transfer-Encoding: chunked\r\n\r\n"),
         "HTTP/1.1 400", NULL},
        {"SOCKS to a denied name", TEXT("\5\1\0\5\1\0\3\11evil.test\1\273"), "\5\2", NULL},
        {"SOCKS to what is no name", TEXT("\5\1\0\5\1\0\3\7no name\1\273"), "\5\1", NULL},
        {"SOCKS4 is refused", TEXT("\4\1\0\120\300\0\2\1u\0"), NULL, "200"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char answer[8192];
        size_t n =
            talk("127.0.0.1", proxy_port, rows[i].send, rows[i].len, answer, sizeof(answer), "bye");

        EXPECT(!rows[i].want || holds(answer, n, rows[i].want), "%s: got '%.*s'", rows[i].claim,
               (int)n, answer);
        EXPECT(!rows[i].want_not || !holds(answer, n, rows[i].want_not), "%s: got '%.*s'",
               rows[i].claim, (int)n, answer);
    }
    return bad;
}

static void test_proxy(void **state)
{
    struct scene s = {.box = try_all};
    uint64_t times;

    (void)state;
    run(&s);
    assert_int_equal(count_told(BEGUN, "", &times), 3);
    assert_int_equal(count_told(ENDED, "", &times), 4); /* one of them never began: no such name */
    assert_true(check_told(ENDED, here, "")->bytes_in > 50);
    assert_string_equal(check_told(BEGUN, here, "")->address, "127.0.0.1");
    (void)check_told(DENIED, "evil.test:443", "no entry of network.allow");
    (void)check_told(DENIED, "169.254.169.254:80", "");
    (void)check_told(DENIED, "allowed.test:22", "");
    /* What was no request is told as well, with nothing of it as it came but its letters. */
    (void)check_told(DENIED, "2130706433:80", "");
    (void)check_told(DENIED, "ev?il.test:443", "");
    (void)check_told(DENIED, "evil.test", "");
    (void)check_told(DENIED, "allowed.test", "");
    (void)check_told(DENIED, "(none)", "this is a proxy");
    (void)check_told(DENIED, "(none)", "SOCKS4");
    (void)check_told(DENIED, "no?name", "not a host");
    for (size_t i = 0; i < n_told; i++)
        assert_true(strlen(told[i].target) <= 100 && !strstr(told[i].target, "pw"));
    assert_int_equal(count_told(DENIED, "", &times), 14);
}

/* ---- budgets ---- */

static int spend_box(void)
{
    char answer[1024];

    EXPECT(fetch(connect_, 200000) <= 100000, "the tunnel was not ended");
    EXPECT(talk("127.0.0.1", proxy_port, get, strlen(get), answer, sizeof(answer), NULL) == 0,
           "and the next one came in: %s", answer);
    return bad;
}

static void test_bytes(void **state)
{
    struct scene s = {.box = spend_box, .budgets = {.bytes = 100000}};
    const struct told *t;

    (void)state;
    run(&s);
    t = check_told(ENDED, here, "the budget of 100000 bytes for box b0 is used up");
    assert_string_equal(t->setting, BUDGETS_KEY);
    assert_true(t->bytes_in + t->bytes_out == 100001);
    t = check_told(DENIED, "(any)", "the budget of 100000 bytes for box b0 is used up");
    assert_string_equal(t->setting, BUDGETS_KEY);
}

static int spend_request(void)
{
    char answer[1024], send_[512];
    int len = snprintf(send_, sizeof(send_),
                       "POST http://" HOST_NAME_HERE ":%u/ HTTP/1.1\r\nHost: " HOST_NAME_HERE
                       ":%u\r\nContent-Length: 100000\r\n\r\n",
                       outside, outside);
    autoclose int fd = connect_to("127.0.0.1", proxy_port);
    static char body[100000];

    EXPECT(write(fd, send_, (size_t)len) == len, "the head");
    for (size_t i = 0; i < sizeof(body); i += 1000) {
        if (send(fd, body + i, 1000, MSG_NOSIGNAL) < 0)
            break;
        (void)usleep(100);
    }
    (void)hear(fd, answer, sizeof(answer), NULL);
    return bad;
}

static void test_request_bytes(void **state)
{
    struct scene s = {.box = spend_request, .budgets = {.bytes = 50000}};
    const struct told *t;

    (void)state;
    run(&s);
    t = check_told(ENDED, here, "the budget of 50000 bytes");
    assert_true(t->bytes_in + t->bytes_out >= 50000 && t->bytes_in + t->bytes_out < 120000);
}

static int spend_host(void)
{
    char answer[1024];

    EXPECT(fetch(connect_, 200000) <= 100000, "the tunnel was not ended");
    EXPECT(fetch(connect_other, 50000) == 50000, "another host has a budget of its own");
    close(open_tunnel(connect_, answer, sizeof(answer)));
    EXPECT(strstr(answer, "403") && strstr(answer, BUDGETS_KEY), "the next one: %s", answer);
    return bad;
}

static const struct dest *find_dest(const char *host)
{
    const struct dest *d = dests_find(the_box->dests, host);

    assert_non_null(d);
    return d;
}

static void remember(struct relay_box *b)
{
    the_box = b;
}

/* At the last end that is told, the box is still there. */
static void check_receipt(struct relay *r, const struct relay_event *e)
{
    on_told(r, e);
    if (e->is_end && strcmp(e->target, there) == 0) {
        assert_int_equal(find_dest(HOST_NAME_HERE)->connections, 1);
        assert_int_equal(find_dest(HOST_NAME_HERE)->bytes_in + find_dest(HOST_NAME_HERE)->bytes_out,
                         100001);
        assert_int_equal(find_dest(HOST_OTHER)->bytes_in, 50000);
        assert_int_equal(find_dest(HOST_OTHER)->bytes_out, strlen("SEND 50000."));
    }
}

static void test_host_bytes(void **state)
{
    struct scene s = {.box = spend_host,
                      .budgets = {.host_bytes = 100000},
                      .on_joined = remember,
                      .on_event = check_receipt};

    (void)state;
    run(&s);
    (void)check_told(ENDED, here,
                     "the budget of 100000 bytes for host " HOST_NAME_HERE " is used up");
    assert_string_equal(check_told(ENDED, there, "")->reason, "");
    (void)check_told(DENIED, here, "the budget of 100000 bytes for host");
}

static int hold_three(void)
{
    char answer[3][1024];
    int fds[3];

    for (size_t i = 0; i < 3; i++)
        fds[i] = open_tunnel(connect_, answer[i], sizeof(answer[i]));
    EXPECT(strstr(answer[0], " 200 ") && strstr(answer[1], " 200 "), "two: %s", answer[1]);
    EXPECT(strstr(answer[2], " 403 ") && strstr(answer[2], "too many"), "three: %s", answer[2]);
    close(fds[0]);
    close(fds[2]);
    for (uint64_t began = now_ms();;) { /* the relay hears of it a moment later */
        fds[0] = open_tunnel(connect_, answer[0], sizeof(answer[0]));
        if (strstr(answer[0], " 200 ") || now_ms() - began > IN_TIME)
            break;
        close(fds[0]);
        (void)usleep(20000);
    }
    EXPECT(strstr(answer[0], " 200 "), "one that has ended makes room: %s", answer[0]);
    close(fds[0]);
    close(fds[1]);
    return bad;
}

static void test_host_conns(void **state)
{
    struct scene s = {.box = hold_three, .budgets = {.host_conns = 2}};

    (void)state;
    run(&s);
    assert_string_equal(
        check_told(DENIED, here, "too many connections to " HOST_NAME_HERE)->setting, BUDGETS_KEY);
}

static int hold_two(void)
{
    char answer[1024];
    int fd = open_tunnel(connect_, answer, sizeof(answer));

    EXPECT(strstr(answer, " 200 "), "one: %s", answer);
    close(open_tunnel(connect_other, answer, sizeof(answer)));
    EXPECT(answer[0] == 0, "two: %s", answer);
    close(fd);
    return bad;
}

static void test_conns(void **state)
{
    struct scene s = {.box = hold_two, .budgets = {.conns = 1}};

    (void)state;
    run(&s);
    assert_string_equal(check_told(DENIED, "(any)", "too many connections at once")->setting,
                        BUDGETS_KEY);
}

/* ---- the rate ---- */

static int take_time(void)
{
    uint64_t began = now_ms(), took;

    EXPECT(fetch(connect_, 700000) == 700000, "all of it arrives");
    took = now_ms() - began;
    EXPECT(took >= 350, "700 kB at 1 MB/s, 256 KiB at once: %llu ms", (unsigned long long)took);
    EXPECT(took < IN_TIME, "it took %llu ms", (unsigned long long)took);
    return bad;
}

static int take_time_by_request(void)
{
    static char answer[2 << 20];
    char request[256];
    uint64_t began = now_ms(), took;
    size_t n;
    int len = snprintf(request, sizeof(request),
                       "GET http://" HOST_NAME_HERE ":%u/ HTTP/1.1\r\nHost: " HOST_NAME_HERE
                       ":%u\r\n\r\n",
                       greeter, greeter);

    n = talk("127.0.0.1", proxy_port, request, (size_t)len, answer, sizeof(answer), NULL);
    took = now_ms() - began;
    EXPECT(n > 700000, "all of it arrives: %zu", n);
    EXPECT(took >= 350 && took < IN_TIME, "it took %llu ms", (unsigned long long)took);
    return bad;
}

static void test_rate(void **state)
{
    struct scene s = {.box = take_time, .budgets = {.bytes_per_sec = 1000000}};
    struct scene requests = {.box = take_time_by_request, .budgets = {.bytes_per_sec = 1000000}};
    static char much[700001];
    pid_t pid;

    (void)state;
    run(&s);
    memset(much, 'm', sizeof(much) - 1);
    pid = start_outside(&greeter, much);
    run(&requests);
    stop(pid);
}

/* ---- calls ---- */

static struct relay_call calls[3];
static uint64_t while_open;

static void use_two(struct relay_box *b)
{
    the_box = b;
    memset(calls, 0, sizeof(calls));
    (void)snprintf(calls[0].id, sizeof(calls[0].id), "first");
    (void)snprintf(calls[1].id, sizeof(calls[1].id), "second");
    (void)snprintf(calls[2].id, sizeof(calls[2].id), "late");
    relay_use(b, &calls[0]);
    relay_use(b, &calls[1]);
}

static int use_calls(void)
{
    char answer[4096], many[1000];
    int fd = open_tunnel(connect_, answer, sizeof(answer));

    memset(many, 'y', sizeof(many));
    EXPECT(write(fd, many, sizeof(many)) == sizeof(many), "an upload");
    EXPECT(read(fd, answer, sizeof(answer)) == sizeof(many), "an echo");
    close(open_tunnel("CONNECT evil.test:1 HTTP/1.1\r\nHost: evil.test:1\r\n\r\n", answer,
                      sizeof(answer)));
    close(open_tunnel("CONNECT evil.test:2 HTTP/1.1\r\nHost: evil.test:2\r\n\r\n", answer,
                      sizeof(answer)));
    EXPECT(write(fd, many, 500) == 500 && read(fd, answer, sizeof(answer)) == 500, "some more");
    close(fd);
    return bad;
}

static void release_one(struct relay *r, const struct relay_event *e)
{
    on_told(r, e);
    if (strcmp(e->target, "evil.test:1") == 0) {
        while_open = the_box->bytes;
        relay_release(&calls[0]);
        relay_release(&calls[0]);
        relay_use(the_box, &calls[2]);
    }
}

static void test_calls(void **state)
{
    struct scene s = {.box = use_calls, .on_joined = use_two, .on_event = release_one};

    (void)state;
    run(&s);
    assert_int_equal(while_open, 2000); /* they count while it runs */
    assert_string_equal(check_told(BEGUN, here, "")->calls, "second,first");
    assert_string_equal(check_told(DENIED, "evil.test:1", "")->calls, "second,first");
    assert_string_equal(check_told(DENIED, "evil.test:2", "")->calls, "late,second");
    assert_string_equal(check_told(ENDED, here, "")->calls, "second,first");
    assert_int_equal(calls[0].bytes_out, 1000);
    assert_int_equal(calls[0].bytes_in, 1000);
    assert_int_equal(calls[1].bytes_out, 1500);
    assert_int_equal(calls[1].bytes_in, 1500);
    assert_int_equal(calls[2].bytes_in + calls[2].bytes_out, 0); /* it began later */
    assert_int_equal(calls[2].denied, 1);
    assert_int_equal(calls[0].allowed + calls[1].allowed + calls[2].allowed, 2);
    assert_int_equal(calls[0].denied, 1);
    assert_int_equal(calls[1].denied, 2);
    assert_null(calls[0].box);
    assert_null(calls[1].box); /* the box has left */
}

static int spend_call(void)
{
    EXPECT(fetch(connect_, 200000) <= 100000, "the tunnel was not ended");
    return bad;
}

static void test_call_bytes(void **state)
{
    struct scene s = {.box = spend_call, .on_joined = use_two, .budgets = {.call_bytes = 100000}};

    (void)state;
    run(&s);
    (void)check_told(ENDED, here, "the budget of 100000 bytes for call second is used up");
}

/* ---- too many ---- */

enum { FLOOD = 600 };

static int flood(void)
{
    static const char request[] = "CONNECT evil.test:1 HTTP/1.1\r\nHost: evil.test:1\r\n\r\n";

    for (int i = 0; i < FLOOD; i++) {
        char answer[1024];

        (void)talk("127.0.0.1", proxy_port, request, sizeof(request) - 1, answer, sizeof(answer),
                   NULL);
    }
    return bad;
}

static void test_flood(void **state)
{
    struct scene s = {.box = flood, .budgets = {.new_per_sec = 1}};
    uint64_t refused, denied, began = now_ms(), secs;
    size_t n;

    (void)state;
    run(&s);
    secs = (now_ms() - began) / 1000;
    (void)count_told(DENIED, "no entry of", &denied);
    n = count_told(DENIED, "too many connections at once", &refused);
    CHECK(n >= 1 && n <= secs + 2, "%zu events", n); /* at once, each second, and when it leaves */
    assert_int_equal(refused + denied, FLOOD);
    CHECK(denied >= 2 && denied <= secs + 3, "%llu came in", (unsigned long long)denied);
}

/* ---- change ---- */

static int stay(void)
{
    char answer[1024];
    autoclose int fd = open_tunnel(connect_, answer, sizeof(answer));

    close(open_tunnel("CONNECT evil.test:1 HTTP/1.1\r\nHost: evil.test:1\r\n\r\n", answer,
                      sizeof(answer)));
    EXPECT(hear(fd, answer, sizeof(answer), NULL) == 0, "it was closed");
    return bad;
}

static void on_change(struct loop_task *t)
{
    static const struct rules_source none = {.allow_key = "network.allow",
                                             .deny_key = "network.deny",
                                             .host_ports_key = "network.hostPorts"};
    struct rules *rules;
    struct error err;

    (void)t;
    relay_change(the_box, NULL, &(struct relay_budgets){.bytes = 5});
    assert_int_equal(the_box->budgets.bytes, 5);
    assert_int_equal(the_box->budgets.host_bytes, 5);
    assert_int_equal(the_box->budgets.conns, LIMIT_RELAY_CONNS);
    CHECK_OK(rules_parse(&none, &rules, &err), err);
    assert_null(find_told(ENDED, here, ""));
    relay_change(the_box, rules, NULL);
}

static void change_soon(struct relay *r, const struct relay_event *e)
{
    static struct loop_task task = {.on_turn = on_change};

    on_told(r, e);
    if (strcmp(e->target, "evil.test:1") == 0)
        loop_later(r->loop, &task);
}

static void test_change(void **state)
{
    struct scene s = {.box = stay, .on_joined = remember, .on_event = change_soon};

    (void)state;
    run(&s);
    (void)check_told(ENDED, here, "the rules have changed");
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a box reaches what its rules allow by way of the proxy, and every refusal is told",
              test_proxy),
        CLAIM("a box's budget of bytes ends what runs and keeps out what comes", test_bytes),
        CLAIM("it counts what a request carries", test_request_bytes),
        CLAIM("a host has a budget and a receipt of its own", test_host_bytes),
        CLAIM("a host has so many connections at once", test_host_conns),
        CLAIM("and so has a box", test_conns),
        CLAIM("bytes come no faster than the rate", test_rate),
        CLAIM("a call has what happened while it was active", test_calls),
        CLAIM("a call has a budget", test_call_bytes),
        CLAIM("a flood is refused and told once a second, with its count", test_flood),
        CLAIM("new rules close what they do not allow", test_change),
    };

    return RUN_CLAIMS("egress/relay", claims);
}
