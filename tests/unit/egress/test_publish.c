/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guests of a box: they come to a listener on the host and get to a port of the box's own loopback,
 * by a socket that was made in the box's network. There is one such socket in most of these tests:
 * whatever a connection did to it, the next one has to get through.
 */
#include "egress/relay.h"

#include "tests/unit/egress/relay_scene.h"

enum { SERVED = 8080, NOBODYS = 8081 };

static uint16_t door, dead_door; /* on the host */
static int ready[2];
static struct relay_box *the_box;

/* ---- in the box ---- */

static size_t read_all(int fd)
{
    static char text[64 << 10];
    size_t n = 0;
    ssize_t got;

    while ((got = read(fd, text, sizeof(text))) > 0)
        n += (size_t)got;
    return n;
}

/* What is wanted stands in the first byte: Echo, Reset, Half (tells how much it got), Deaf (has
 * said all before it reads, and that slowly), Count (of what Deaf heard). */
static void serve_guest(int fd)
{
    static size_t heard;
    char text[4096];
    ssize_t n = read(fd, text, 1);
    int len;

    switch (n == 1 ? text[0] : 0) {
    case 'E':
        while ((n = read(fd, text, sizeof(text))) > 0)
            (void)send(fd, text, (size_t)n, MSG_NOSIGNAL);
        break;
    case 'R':
        reset(fd);
        return;
    case 'D':
        (void)shutdown(fd, SHUT_WR);
        (void)usleep(300000);
        heard = read_all(fd);
        break;
    case 'H':
    case 'C':
        len = snprintf(text, sizeof(text), "%zu", text[0] == 'H' ? read_all(fd) : heard);
        (void)send(fd, text, (size_t)len, MSG_NOSIGNAL);
        break;
    default:
        break;
    }
    (void)close(fd);
}

static int serve_guests(void)
{
    int fd = bind_at("127.0.0.1", SERVED, SOCK_STREAM);

    (void)fcntl(fd, F_SETFL, 0);
    (void)!write(ready[1], "r", 1);
    for (;;)
        serve_guest(accept(fd, NULL, NULL));
    return 0;
}

static int stand_by(void)
{
    (void)!write(ready[1], "r", 1);
    return pause();
}

/* ---- on the host ---- */

static void wait_ready(void)
{
    char r;

    (void)!read(ready[0], &r, 1);
}

/* Says something and hears the answer; the spare of the last one may be free only in a moment. */
static int enter(const char *say, char *answer, size_t size)
{
    for (int i = 0; i < 100; i++) {
        int fd = connect_to("127.0.0.1", door);

        if (fd >= 0 && send(fd, say, strlen(say), MSG_NOSIGNAL) > 0 &&
            hear(fd, answer, size, say + 1) > 0)
            return fd;
        close_fd(&fd);
        (void)usleep(10000);
    }
    answer[0] = 0;
    return -1;
}

static void check_echo(const char *after)
{
    char answer[64];
    int fd = enter("Ehello", answer, sizeof(answer));

    EXPECT(strcmp(answer, "hello") == 0, "after %s: '%s'", after, answer);
    close_fd(&fd);
}

/* The first one to come after a reset gets in: nothing of that is left on the spare. */
static void check_first(void)
{
    char answer[64];

    (void)usleep(200000);
    (void)talk("127.0.0.1", door, "Ehello", 6, answer, sizeof(answer), "hello");
    EXPECT(strcmp(answer, "hello") == 0, "the first one after a reset: '%s'", answer);
}

static void check_half(void)
{
    char answer[64];

    for (int i = 0; i < 100; i++) {
        autoclose int fd = connect_to("127.0.0.1", door);

        (void)send(fd, "H0123456789", 11, MSG_NOSIGNAL);
        (void)shutdown(fd, SHUT_WR);
        if (hear(fd, answer, sizeof(answer), NULL) > 0)
            break;
        (void)usleep(10000);
    }
    EXPECT(strcmp(answer, "10") == 0, "one who has said all: '%s'", answer);
}

/* The box has said all, and reads only when the tunnel is over already. */
static void check_deaf(void)
{
    static char much[200000];
    char answer[64], want[64];
    size_t sent = 0;
    ssize_t n;
    int fd = connect_to("127.0.0.1", door);

    (void)snprintf(want, sizeof(want), "%zu", sizeof(much) - 1);
    memset(much, 'D', sizeof(much));
    while (sent < sizeof(much) &&
           (n = send(fd, much + sent, sizeof(much) - sent, MSG_NOSIGNAL)) > 0)
        sent += (size_t)n;
    (void)shutdown(fd, SHUT_WR);
    EXPECT(hear(fd, answer, sizeof(answer), NULL) == 0, "it says nothing");
    close_fd(&fd);
    fd = enter("C", answer, sizeof(answer));
    EXPECT(strcmp(answer, want) == 0, "the box heard '%s' of %s", answer, want);
    close_fd(&fd);
}

static int visit(void)
{
    char answer[64];
    int fd, other;

    wait_ready();
    check_echo("nothing");
    check_echo("an echo");
    check_echo("another");

    fd = enter("Ehello", answer, sizeof(answer));
    reset(fd);
    check_first();
    check_echo("a guest's reset");

    fd = connect_to("127.0.0.1", door);
    (void)send(fd, "R", 1, MSG_NOSIGNAL);
    (void)hear(fd, answer, sizeof(answer), NULL);
    close_fd(&fd);
    check_echo("the box's reset");

    check_half();
    check_echo("a half-closed one");
    (void)usleep(50000);
    check_deaf();

    fd = connect_to("127.0.0.1", dead_door);
    EXPECT(hear(fd, answer, sizeof(answer), NULL) == 0, "nobody is there");
    close_fd(&fd);
    check_echo("a refusal");

    fd = enter("Ehello", answer, sizeof(answer));
    other = connect_to("127.0.0.1", door);
    EXPECT(hear(other, answer, sizeof(answer), NULL) == 0, "there is one spare");
    close_fd(&other);
    close_fd(&fd);
    return bad;
}

/* ---- the scene ---- */

static void remember(struct relay_box *b)
{
    the_box = b;
}

static bool run(struct scene *s)
{
    size_t before = open_fds();
    int a = bind_at("127.0.0.1", 0, SOCK_STREAM), b = bind_at("127.0.0.1", 0, SOCK_STREAM);
    bool could;

    assert_true(a >= 0 && b >= 0);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    door = port_of(a);
    dead_door = port_of(b);
    outside = 1; /* of no use here */
    s->net = true;
    s->published[0] = (struct relay_publish){a, SERVED};
    s->published[1] = (struct relay_publish){b, NOBODYS};
    s->n_published = 2;
    s->n_spares = s->n_spares ? s->n_spares : 1;
    s->on_joined = s->on_joined ? s->on_joined : remember;
    s->on_event = s->on_event ? s->on_event : on_told;
    n_told = 0;
    could = play(s);
    if (!could) {
        (void)close(a);
        (void)close(b);
    }
    (void)close(ready[0]);
    (void)close(ready[1]);
    assert_int_equal(open_fds(), before);
    return could;
}

static void check_spare(struct relay *r, const struct relay_event *e)
{
    on_told(r, e);
    assert_true(the_box->spares[0].fd >= 0); /* never given up */
}

static void test_reuse(void **state)
{
    struct scene s = {.box = serve_guests, .guest = visit, .on_event = check_spare};
    const struct told *t;
    uint64_t times;

    (void)state;
    if (!run(&s))
        return;
    t = check_told(ENDED, "127.0.0.1:8080", "");
    assert_string_equal(t->via, "published");
    assert_string_equal(t->calls, "");
    t = check_told(ENDED, "127.0.0.1:8080", "");
    assert_int_equal(t->bytes_in, 6); /* into the box */
    assert_int_equal(t->bytes_out, 5);
    assert_true(count_told(ENDED, "", &times) >= 11);
    (void)check_told(DENIED, "127.0.0.1:8080", "too many connections to published ports");
    assert_null(find_told(ENDED, "127.0.0.1:8081", ""));
}

/* ---- several at once ---- */

static int visit_together(void)
{
    static char answer[64];
    int fds[MAX_SPARES];

    wait_ready();
    for (size_t i = 0; i < MAX_SPARES; i++)
        fds[i] = connect_to("127.0.0.1", door);
    (void)usleep(100000);
    EXPECT(hear(connect_to("127.0.0.1", door), answer, sizeof(answer), NULL) == 0, "one too many");
    for (size_t i = 0; i < MAX_SPARES; i++) {
        (void)send(fds[i], "Ehello", 6, MSG_NOSIGNAL);
        EXPECT(hear(fds[i], answer, sizeof(answer), "hello") == 5, "guest %zu", i);
        close(fds[i]);
    }
    return bad;
}

static void test_together(void **state)
{
    struct scene s = {.box = serve_guests, .guest = visit_together, .n_spares = MAX_SPARES};
    uint64_t times;

    (void)state;
    if (!run(&s))
        return;
    assert_int_equal(count_told(ENDED, "", &times), MAX_SPARES);
    assert_int_equal(count_told(DENIED, "too many", &times), 1);
}

/* ---- a spare that is none ---- */

static void spoil(struct relay_box *b)
{
    the_box = b;
    close_fd(&b->spares[0].fd);
    b->spares[0].fd = open("/dev/null", O_RDWR | O_CLOEXEC);
}

static int visit_twice(void)
{
    char answer[64];

    wait_ready();
    for (int i = 0; i < 2; i++) {
        autoclose int fd = connect_to("127.0.0.1", door);

        EXPECT(hear(fd, answer, sizeof(answer), NULL) == 0, "nobody gets in");
    }
    return bad;
}

static void check_forgotten(struct relay *r, const struct relay_event *e)
{
    on_told(r, e);
    assert_int_equal(the_box->spares[0].fd, -1);
}

static void test_spoilt(void **state)
{
    struct scene s = {
        .box = stand_by, .guest = visit_twice, .on_joined = spoil, .on_event = check_forgotten};
    uint64_t times;

    (void)state;
    if (!run(&s))
        return;
    assert_int_equal(count_told(DENIED, "too many", &times), 1);
    assert_int_equal(n_told, 1);
}

/* ---- the box's budget ---- */

static int visit_for_long(void)
{
    static char much[9000], answer[16000];
    int fd;

    wait_ready();
    memset(much, 'E', sizeof(much));
    fd = connect_to("127.0.0.1", door);
    (void)send(fd, much, sizeof(much), MSG_NOSIGNAL);
    EXPECT(hear(fd, answer, sizeof(answer), NULL) < 8999, "it was ended");
    close_fd(&fd);
    fd = connect_to("127.0.0.1", door);
    EXPECT(hear(fd, answer, sizeof(answer), NULL) == 0, "and nobody gets in any more");
    close_fd(&fd);
    return bad;
}

static void test_budget(void **state)
{
    struct scene s = {.box = serve_guests, .guest = visit_for_long, .budgets = {.bytes = 10000}};
    const struct told *t;

    (void)state;
    if (!run(&s))
        return;
    t = check_told(ENDED, "127.0.0.1:8080", "the budget of 10000 bytes for box b0 is used up");
    assert_string_equal(t->setting, BUDGETS_KEY);
    t = check_told(DENIED, "127.0.0.1:8080", "the budget of 10000 bytes for box b0 is used up");
    assert_string_equal(t->setting, BUDGETS_KEY);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a spare is used again, however its connection ended", test_reuse),
        CLAIM("there are as many guests at once as spares", test_together),
        CLAIM("a spare that cannot be disconnected is forgotten", test_spoilt),
        CLAIM("what guests carry counts for the box", test_budget),
    };

    return RUN_CLAIMS("egress/publish", claims);
}
