/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of a box that know nothing of a proxy: what they connect to is caught, whom they ask for
 * names is answered, and what else they send is counted. In a network of its own, where every
 * address is local; mostly the listeners of single ports stand for the redirect of all.
 */
#include "egress/dns.h"
#include "egress/relay.h"

#include "tests/unit/egress/relay_scene.h"

static struct relay_box *the_box;

static void remember(struct relay_box *b)
{
    the_box = b;
}

static bool run(struct scene *s)
{
    pid_t echo = start_outside(&outside, ""), first = start_outside(&greeter, "220 welcome\r\n");
    size_t before = open_fds();
    bool could;

    s->net = true;
    s->ports[0] = 80;
    s->ports[1] = 443;
    s->ports[2] = 25;
    s->ports[3] = outside;
    s->ports[4] = greeter;
    s->ports[5] = 8443;
    s->n_ports = s->redirect ? 0 : 6;
    s->on_joined = remember;
    s->on_event = s->on_event ? s->on_event : on_told;
    n_told = 0;
    could = play(s);
    assert_int_equal(open_fds(), before);
    stop(echo);
    stop(first);
    return could;
}

/* ---- names ---- */

/* One question to a server at that address; the answer's code, and the first address in it. */
static int ask(const char *server, const char *name, char *ret, size_t size)
{
    struct sockaddr_storage at;
    uint8_t msg[LIMIT_DNS_QUERY], answer[2048];
    struct timeval patience = {.tv_sec = 2};
    struct dns_answer got;
    struct error err;
    struct host host;
    autoclose int fd = -1;
    socklen_t len;
    size_t n;
    ssize_t r;

    ret[0] = 0;
    if (host_parse(name, strlen(name), HOST_BARE, &host, &err) < 0)
        return -1;
    n = dns_build_query(7, &host, DNS_TYPE_A, msg);
    at = make_addr(server, dns_port, &len);
    fd = bind_at(at.ss_family == AF_INET ? "127.0.0.1" : "::1", 0, SOCK_DGRAM);
    (void)fcntl(fd, F_SETFL, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    /* Connected: an answer from elsewhere does not arrive. */
    if (connect(fd, (struct sockaddr *)&at, len) < 0 || send(fd, msg, n, 0) != (ssize_t)n)
        return -2;
    r = recv(fd, answer, sizeof(answer), 0);
    if (r < 0 || dns_parse_answer(answer, (size_t)r, 7, &host, DNS_TYPE_A, &got, &err) < 0)
        return -3;
    if (got.n)
        (void)snprintf(ret, size, "%s",
                       address_format(&got.addresses[0], (char[LIMIT_ADDRESS_TEXT]){0}));
    return (int)got.rcode;
}

static void ask_each(const char *const *servers, size_t n)
{
    char address[64], first[64] = "";

    for (size_t i = 0; i < n; i++) {
        int r = ask(servers[i], HOST_NAME_HERE, address, sizeof(address));

        EXPECT(r == DNS_NOERROR && strncmp(address, "198.1", 5) == 0, "%s: %d '%s'", servers[i], r,
               address);
        EXPECT(i == 0 || strcmp(first, address) == 0, "another address: %s", address);
        (void)snprintf(first, sizeof(first), "%s", address);
    }
}

static const char *const four[] = {"127.0.0.1", "8.8.8.8", "192.0.2.77"};
static const char *const six[] = {"::1", "2001:db8::53:1", "2606:4700:4700::1111"};

static int ask_everywhere(void)
{
    uint8_t junk[40] = {1};
    socklen_t len;
    struct sockaddr_storage at = make_addr("9.9.9.9", 53, &len);
    autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char address[64];

    ask_each(four, COUNT(four));
    ask_each(six, COUNT(six));
    EXPECT(ask("1.1.1.1", "evil.test", address, sizeof(address)) == DNS_REFUSED,
           "a name that may not be reached");
    EXPECT(sendto(fd, junk, sizeof(junk), 0, (struct sockaddr *)&at, len) == sizeof(junk), "junk");
    (void)usleep(20000); /* an answer that finds nobody would be counted */
    return bad;
}

static int ask_by_four(void)
{
    ask_each(four, COUNT(four));
    return bad;
}

static int ask_here(void)
{
    ask_each(four, 1);
    return bad;
}

static void test_names(void **state)
{
    struct scene s = {.box = ask_everywhere};
    struct scene no_ipv6 = {.box = ask_by_four, .no_ipv6 = true};
    struct scene plain = {.box = ask_here, .on_event = on_told}; /* nobody says which was asked */
    uint64_t times;

    (void)state;
    if (!run(&s))
        return;
    assert_string_equal(check_told(DENIED, "evil.test", "")->via, "dns");
    assert_int_equal(count_told(BEGUN, "", &times), 0); /* a question is no way out: no event */
    assert_int_equal(count_told(DENIED, "", &times), 1);
    assert_true(run(&no_ipv6));
    assert_int_equal(n_told, 0);
    assert_true(play(&plain));
}

static int ask_many(void)
{
    char address[64];

    for (int i = 0; i < 500; i++)
        (void)ask("127.0.0.1", HOST_NAME_HERE, address, sizeof(address));
    return bad;
}

static void count_questions(struct relay *r, const struct relay_event *e)
{
    on_told(r, e);
    assert_true(the_box->questions >= 2 && the_box->questions < 500);
}

static void test_many_names(void **state)
{
    struct scene s = {.box = ask_many, .on_event = count_questions, .budgets = {.new_per_sec = 1}};
    uint64_t times, began = now_ms(), secs;
    size_t n;

    (void)state;
    if (!run(&s))
        return;
    secs = (now_ms() - began) / 1000;
    n = count_told(DENIED, "too many questions at once", &times);
    CHECK(n >= 1 && n <= secs + 2 && n == n_told, "%zu events", n);
    CHECK(times <= 498 && times + secs + 3 >= 500, "%llu times", (unsigned long long)times);
}

/* ---- denied ---- */

/* Milliseconds until the other side ends it, without a word from here. */
static uint64_t end_of(const char *ip, uint16_t port)
{
    uint64_t began = now_ms();
    autoclose int fd = connect_to(ip, port);
    char text[64];

    EXPECT(fd >= 0, "%s:%u: no connection", ip, port);
    (void)hear(fd, text, sizeof(text), NULL);
    return now_ms() - began;
}

static int try_denied(void)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: 192.0.2.3\r\n\r\n";
    char answer[2048];
    uint64_t ms;

    ms = end_of("192.0.2.1", 25);
    EXPECT(ms < IN_TIME, "port 25: %llu ms", (unsigned long long)ms);
    ms = end_of("192.0.2.2", 443);
    EXPECT(ms < IN_TIME, "port 443: %llu ms", (unsigned long long)ms);
    (void)talk("192.0.2.3", 80, request, sizeof(request) - 1, answer, sizeof(answer), NULL);
    EXPECT(strstr(answer, "HTTP/1.1 403") && strstr(answer, "network.allow"), "port 80: %s",
           answer);
    close(connect_to("192.0.2.4", 80)); /* not a word */
    /* Whoever connects to a listener itself. */
    EXPECT(end_of("127.0.0.1", CAUGHT_PORT) < IN_TIME, "the listener of all");
    EXPECT(end_of("::1", CAUGHT_PORT) < IN_TIME, "and that of IPv6");
    return bad;
}

static void test_denied(void **state)
{
    struct scene s = {.box = try_denied};
    uint64_t times;

    (void)state;
    if (!run(&s))
        return;
    assert_string_equal(check_told(DENIED, "192.0.2.1:25", "")->via, "tcp");
    assert_string_equal(check_told(DENIED, "192.0.2.2:443", "")->setting, "network.allow");
    assert_string_equal(check_told(DENIED, "192.0.2.3:80", "")->via, "http");
    (void)check_told(DENIED, "192.0.2.4:80", "");
    (void)check_told(DENIED, "127.0.0.1:15001", "loopback");
    (void)check_told(DENIED, "[::1]:15001", "loopback");
    assert_int_equal(count_told(DENIED, "", &times), 6);
}

/* ---- allowed ---- */

/* A TLS hello that names a server, as short as it may be. */
static size_t make_hello(const char *name, uint8_t *out)
{
    size_t n = strlen(name), at = 0;
    const uint8_t start[] = {0x16, 3, 1, 0, (uint8_t)(n + 56), 1, 0, 0, (uint8_t)(n + 52), 3, 3};
    const uint8_t middle[] = {0,
                              0,
                              2,
                              0x13,
                              1,
                              1,
                              0,
                              0,
                              (uint8_t)(n + 9),
                              0,
                              0,
                              0,
                              (uint8_t)(n + 5),
                              0,
                              (uint8_t)(n + 3),
                              0,
                              0,
                              (uint8_t)n};

    memcpy(out, start, sizeof(start));
    at += sizeof(start);
    memset(out + at, 0x5a, 32); /* the random */
    at += 32;
    memcpy(out + at, middle, sizeof(middle));
    at += sizeof(middle);
    memcpy(out + at, name, n);
    return at + n;
}

static int try_allowed(void)
{
    char host[64], answer[1024];
    uint8_t hello[256];
    uint64_t began;
    size_t n;
    int fd;

    EXPECT(ask("8.8.8.8", HOST_NAME_HERE, host, sizeof(host)) == 0, "the name");
    (void)talk(host, outside, "hello, bye", 10, answer, sizeof(answer), "bye");
    EXPECT(strcmp(answer, "hello, bye") == 0, "bytes: '%s'", answer);

    began = now_ms();
    fd = connect_to(host, greeter);
    (void)hear(fd, answer, sizeof(answer), "\r\n");
    EXPECT(strstr(answer, "220 welcome"), "a server that begins: '%s'", answer);
    EXPECT(now_ms() - began < IN_TIME, "it is not waited for: %llu ms",
           (unsigned long long)(now_ms() - began));
    EXPECT(write(fd, "bye", 3) == 3 && hear(fd, answer, sizeof(answer), "bye") == 3, "then we");
    close(fd);

    fd = connect_to(host, greeter); /* as with </dev/null */
    (void)shutdown(fd, SHUT_WR);
    (void)hear(fd, answer, sizeof(answer), NULL);
    EXPECT(strstr(answer, "220 welcome"), "one who only listens: '%s'", answer);
    close(fd);

    n = make_hello(HOST_NAME_HERE, hello);
    EXPECT(talk(host, outside, hello, n, answer, sizeof(answer), HOST_NAME_HERE) == n,
           "TLS that names the host");
    n = make_hello("evil.test", hello);
    EXPECT(talk(host, outside, hello, n, answer, sizeof(answer), "evil.test") == 0,
           "TLS that names another");
    return bad;
}

static void check_allowed(struct scene *s)
{
    char echo[64], first[64];
    const struct told *t;
    uint64_t times;

    if (!run(s))
        return;
    (void)snprintf(echo, sizeof(echo), HOST_NAME_HERE ":%u", outside);
    (void)snprintf(first, sizeof(first), HOST_NAME_HERE ":%u", greeter);
    t = check_told(ENDED, echo, "");
    assert_string_equal(t->via, "tcp");
    assert_int_equal(t->bytes_out, 10);
    assert_int_equal(t->bytes_in, 10);
    times = 0;
    for (size_t i = 0; i < n_told; i++)
        if (told[i].is_end && strcmp(told[i].target, first) == 0)
            times += told[i].bytes_in;
    assert_int_equal(times, 2 * 13 + 3);
    t = check_told(DENIED, echo, "names another server");
    assert_string_equal(t->via, "tls");
    assert_int_equal(count_told(BEGUN, "", &times), 5);
}

static void test_allowed(void **state)
{
    struct scene s = {.box = try_allowed};

    (void)state;
    check_allowed(&s);
}

/* ---- redirected ---- */

static int try_redirected(void)
{
    EXPECT(end_of("192.0.2.1", 7777) < IN_TIME, "any port");
    EXPECT(end_of("2001:db8::1", 25) < IN_TIME, "of IPv6 too");
    EXPECT(end_of("127.0.0.1", CAUGHT_PORT) < IN_TIME, "the listener itself");
    return try_allowed();
}

static void test_redirected(void **state)
{
    struct scene s = {.box = try_redirected, .redirect = true};

    (void)state;
    check_allowed(&s);
    if (n_told == 0)
        return;
    (void)check_told(DENIED, "192.0.2.1:7777", "");
    (void)check_told(DENIED, "[2001:db8::1]:25", "");
    (void)check_told(DENIED, "127.0.0.1:15001", "loopback");
}

/* What is sent while it is being dialled is more than is held at once. */
static int upload(void)
{
    enum { LEN = 400000 };
    char host[64];
    static char data[LEN], answer[LEN];
    size_t sent = 0, got = 0;
    int fd;

    EXPECT(ask("8.8.8.8", HOST_NAME_HERE, host, sizeof(host)) == 0, "the name");
    for (size_t i = 0; i < LEN; i++)
        data[i] = (char)('a' + i % 23);
    fd = connect_to(host, outside);
    while (got < LEN) {
        struct pollfd p = {.fd = fd, .events = (short)(POLLIN | (sent < LEN ? POLLOUT : 0))};
        ssize_t n = 0;

        if (poll(&p, 1, 5000) < 1)
            break;
        if (p.revents & POLLOUT) {
            n = send(fd, data + sent, LEN - sent, MSG_DONTWAIT);
            sent += n > 0 ? (size_t)n : 0;
        }
        if (p.revents & (POLLIN | POLLHUP)) {
            n = recv(fd, answer + got, LEN - got, MSG_DONTWAIT);
            if (n == 0 || (n < 0 && errno != EAGAIN))
                break;
            got += n > 0 ? (size_t)n : 0;
        }
    }
    EXPECT(got == LEN && memcmp(answer, data, LEN) == 0, "%zu sent, %zu came back", sent, got);
    close(fd);
    return bad;
}

/* It waits for its name, and is not ended for having too much to say meanwhile. */
static int upload_early(void)
{
    static char data[300000];
    uint64_t began = now_ms(), took;
    char host[64], answer[64];
    size_t sent = 0;
    ssize_t n;
    int fd;

    EXPECT(ask("8.8.8.8", "x.wild.test", host, sizeof(host)) == 0, "the name");
    fd = connect_to(host, 8443);
    while (sent < sizeof(data) && (n = send(fd, data, sizeof(data) - sent, MSG_NOSIGNAL)) > 0)
        sent += (size_t)n;
    (void)hear(fd, answer, sizeof(answer), NULL);
    took = now_ms() - began;
    EXPECT(took >= 400 && took < IN_TIME, "it took %llu ms", (unsigned long long)took);
    close(fd);
    return bad;
}

static void test_upload(void **state)
{
    struct scene s = {.box = upload}, early = {.box = upload_early, .slow_names = true};

    (void)state;
    if (run(&s))
        assert_true(run(&early));
}

/* ---- UDP ---- */

static int send_datagrams(void)
{
    static const char *const to[] = {"192.0.2.9", "198.51.100.1", "2001:db8::9"};

    for (size_t i = 0; i < COUNT(to); i++) {
        socklen_t len;
        struct sockaddr_storage at = make_addr(to[i], 9999, &len);
        autoclose int fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        for (int j = 0; j < 2; j++)
            EXPECT(sendto(fd, "x", 1, 0, (struct sockaddr *)&at, len) == 1, "%s", to[i]);
        (void)usleep(i == 1 ? 600000 : 30000);
    }
    return bad;
}

static void test_udp(void **state)
{
    struct scene s = {.box = send_datagrams, .udp_usec = 200000};
    uint64_t times;
    size_t n;

    (void)state;
    if (!run(&s))
        return;
    n = count_told(DENIED, "UDP other than DNS is refused", &times);
    assert_int_equal(times, 6);
    CHECK(n >= 2 && n < 6, "%zu events: some while it runs, the rest when it leaves", n);
    assert_string_equal(check_told(DENIED, "(any)", "UDP")->via, "udp");
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a question to any server is answered, from there; only a refusal is told",
              test_names),
        CLAIM("too many questions are refused and told once a second", test_many_names),
        CLAIM("what may not be reached is refused at once and told, with a text where HTTP is",
              test_denied),
        CLAIM("what may be reached is dialled at once, whoever speaks first", test_allowed),
        CLAIM("what is redirected is known by where it was going", test_redirected),
        CLAIM("an upload that begins before its connection arrives whole", test_upload),
        CLAIM("datagrams that nobody takes are counted and told", test_udp),
    };

    return RUN_CLAIMS("egress/caught", claims);
}
