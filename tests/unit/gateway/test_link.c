/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/link.h"

#include <sys/socket.h>
#include <sys/time.h>

#include "tests/test.h"

#define BIG (3u << 20)

struct end {
    struct link link;
    struct loop *loop;
    struct buf log; /* "kind:id:len " for each frame, with short payloads */
    size_t bytes, frames;
    const char *closed;
};

static void on_frame(struct link *l, enum link_kind kind, uint32_t id, const char *data, size_t len)
{
    struct end *e = (struct end *)l;

    assert_int_equal(data[len], 0);
    e->bytes += len;
    e->frames++;
    if (e->frames > 100)
        return;
    buf_printf(&e->log, "%u:%u:%zu", (unsigned)kind, id, len);
    if (len < 16 && kind != LINK_TAKEN && kind != LINK_ANSWER)
        buf_printf(&e->log, ":%s", data);
    buf_puts(&e->log, " ");
}

static void on_closed(struct link *l, const char *why)
{
    struct end *e = (struct end *)l;

    e->closed = why;
    link_close(l);
}

struct pair {
    struct loop *loop;
    struct end a;
    int fd; /* the raw other side */
    struct loop_task round;
    int rounds;
};

static void on_round(struct loop_task *t)
{
    struct pair *p = (struct pair *)((char *)t - offsetof(struct pair, round));

    if (--p->rounds > 0)
        loop_later(p->loop, t);
    else
        loop_quit(p->loop);
}

static void run(struct pair *p, int rounds)
{
    p->rounds = rounds;
    loop_later(p->loop, &p->round);
    assert_int_equal(loop_run(p->loop), 0);
}

static void begin(struct pair *p)
{
    int s[2];

    *p = (struct pair){.round.on_turn = on_round};
    assert_int_equal(loop_new(&p->loop), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
    buf_init(&p->a.log, 1u << 20);
    p->a.link.on_frame = on_frame;
    p->a.link.on_closed = on_closed;
    assert_int_equal(link_open(&p->a.link, p->loop, s[0]), 0);
    p->fd = s[1];
}

static void end(struct pair *p)
{
    link_close(&p->a.link);
    link_close(&p->a.link); /* twice is once */
    if (p->fd >= 0)
        (void)close(p->fd);
    buf_done(&p->a.log);
    loop_free(p->loop);
}

static void put(int fd, const void *data, size_t len)
{
    assert_int_equal(send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL), (ssize_t)len);
}

static size_t make_frame(char *at, uint32_t len, uint32_t id, uint8_t kind, const char *payload)
{
    memcpy(at, &len, 4);
    memcpy(at + 4, &id, 4);
    at[8] = (char)kind;
    memcpy(at + 9, payload, strlen(payload));
    return 9 + strlen(payload);
}

static void test_split(void **state)
{
    char bytes[64];
    size_t n = make_frame(bytes, 5, 7, LINK_ASK, "hello");

    (void)state;
    n += make_frame(bytes + n, 0, 8, LINK_CANCEL, "");
    n += make_frame(bytes + n, 2, 9, LINK_EVENT, "{}");
    for (size_t cut = 0; cut <= n; cut++) {
        struct pair p;

        begin(&p);
        put(p.fd, bytes, cut);
        run(&p, 3);
        put(p.fd, bytes + cut, n - cut);
        run(&p, 3);
        CHECK_STR(p.a.log.data, "1:7:5:hello 2:8:0: 4:9:2:{} ", "split");
        assert_null(p.a.closed);
        end(&p);
    }
}

static void test_single_bytes(void **state)
{
    char bytes[32];
    size_t n = make_frame(bytes, 5, 7, LINK_ASK, "hello");
    struct pair p;

    (void)state;
    begin(&p);
    for (size_t i = 0; i < n; i++) {
        put(p.fd, bytes + i, 1);
        run(&p, 2);
        assert_int_equal(p.a.frames, i + 1 == n);
    }
    end(&p);
}

static void test_broken(void **state)
{
    static const struct {
        const char *name;
        uint32_t len;
        uint8_t kind;
        const char *payload;
    } rows[] = {
        {"too large", LIMIT_LINK_FRAME + 1, LINK_ASK, ""},
        {"as large as it gets", UINT32_MAX, LINK_EVENT, ""},
        {"kind 0", 0, 0, ""},
        {"kind 9", 0, 9, ""},
        {"kind 255", 0, 255, ""},
        {"a cancel with bytes", 1, LINK_CANCEL, "x"},
        {"credit of three bytes", 3, LINK_TAKEN, "xxx"},
        {"an answer without a status", 1, LINK_ANSWER, "x"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        char bytes[64];
        size_t n = make_frame(bytes, 2, 1, LINK_ASK, "{}");
        struct pair p;

        begin(&p);
        n += make_frame(bytes + n, row->len, 7, row->kind, row->payload);
        n += make_frame(bytes + n, 2, 2, LINK_ASK, "{}");
        put(p.fd, bytes, n);
        run(&p, 4);
        CHECK(p.a.closed && strstr(p.a.closed, "rules"), "%s: not refused", row->name);
        CHECK_STR(p.a.log.data, "1:1:2:{} ", row->name);
        end(&p);
    }
}

static void test_gone(void **state)
{
    struct pair p;

    (void)state;
    begin(&p);
    put(p.fd, "abc", 3);
    (void)close(p.fd);
    p.fd = -1;
    run(&p, 4);
    assert_non_null(p.a.closed);
    assert_int_equal(p.a.frames, 0);
    link_send(&p.a.link, LINK_ASK, 1, "{}", 2); /* nothing happens */
    run(&p, 2);
    end(&p);
}

static void test_large_both_ways(void **state)
{
    struct pair p;
    struct end b = {.link = {.on_frame = on_frame, .on_closed = on_closed}};
    char *big = calloc(1, BIG);

    (void)state;
    begin(&p);
    buf_init(&b.log, 1u << 20);
    assert_int_equal(link_open(&b.link, p.loop, p.fd), 0);
    p.fd = -1;
    for (uint32_t i = 1; i <= 4; i++) {
        link_send(&p.a.link, LINK_ASK, i, big, BIG);
        link_answer(&b.link, i, 200, big, BIG);
    }
    run(&p, 2000);
    assert_int_equal(b.bytes, 4 * BIG);
    assert_int_equal(p.a.bytes, 4 * (BIG + 2));
    CHECK_STR(p.a.log.data, "5:1:3145730 5:2:3145730 5:3:3145730 5:4:3145730 ", "answers");
    assert_true(p.a.link.in.cap <= 1u << 20 && p.a.link.out.cap <= 1u << 20);
    link_close(&b.link);
    buf_done(&b.log);
    free(big);
    end(&p);
}

/* Answers each question with a megabyte. */
static void on_question(struct link *l, enum link_kind kind, uint32_t id, const char *data,
                        size_t len)
{
    static char answer[1u << 20];

    on_frame(l, kind, id, data, len);
    link_answer(l, id, 200, answer, sizeof(answer));
}

static unsigned had_room;
static void on_room(struct link *l)
{
    (void)l;
    had_room++;
}

/* Who waits for room takes no questions meanwhile, however many came in one read. */
static void test_room(void **state)
{
    char bytes[64];
    static char sink[1u << 16];
    size_t n = make_frame(bytes, 2, 7, LINK_ASK, "{}"), taken = 0;
    struct pair p;

    (void)state;
    begin(&p);
    p.a.link.on_frame = on_question;
    p.a.link.on_room = on_room;
    for (int i = 0; i < 200; i++)
        put(p.fd, bytes, n);
    run(&p, 20);
    assert_in_range(p.a.frames, 8, 12);
    assert_int_equal(had_room, 0);
    for (int i = 0; i < 100000 && taken < 200 * (9 + 2 + (1u << 20)); i++) {
        ssize_t got = recv(p.fd, sink, sizeof(sink), MSG_DONTWAIT);

        taken += got > 0 ? (size_t)got : 0;
        run(&p, 2);
    }
    assert_int_equal(taken, 200 * (9 + 2 + (1u << 20)));
    assert_int_equal(p.a.frames, 200);
    assert_true(had_room > 0 && !p.a.closed);
    end(&p);
}

/* A body that fits no frame is told as such, and the line goes on. */
static void test_large_answer(void **state)
{
    char *big = calloc(1, LIMIT_LINK_FRAME + 1), head[11];
    struct pair p;
    uint16_t status;

    (void)state;
    begin(&p);
    link_answer(&p.a.link, 7, 200, big, LIMIT_LINK_FRAME + 1);
    run(&p, 3);
    assert_int_equal(recv(p.fd, head, sizeof(head), MSG_DONTWAIT), sizeof(head));
    memcpy(&status, head + 9, 2);
    assert_int_equal(status, 413);
    assert_null(p.a.closed);
    free(big);
    end(&p);
}

static void test_full(void **state)
{
    struct pair p;
    char *big = calloc(1, BIG);
    size_t n = 0;

    (void)state;
    begin(&p);
    while (!p.a.closed && n < 1000) { /* nobody reads */
        link_send(&p.a.link, LINK_ASK, 1, big, BIG);
        n++;
        run(&p, 2);
    }
    assert_in_range((size_t)n * BIG, LIMIT_LINK_OUT - BIG, LIMIT_LINK_OUT + 4 * BIG);
    assert_true(strstr(p.a.closed, "does not take"));
    free(big);
    end(&p);
}

static void test_own_frame_too_large(void **state)
{
    struct pair p;
    char *big = calloc(1, LIMIT_LINK_FRAME + 1);

    (void)state;
    begin(&p);
    link_send(&p.a.link, LINK_ASK, 1, big, LIMIT_LINK_FRAME + 1);
    run(&p, 3);
    assert_true(p.a.closed && strstr(p.a.closed, "too large"));
    free(big);
    end(&p);
}

static void test_many_small(void **state)
{
    struct pair p;
    struct end b = {.link = {.on_frame = on_frame, .on_closed = on_closed}};
    struct timeval from, to;

    (void)state;
    begin(&p);
    buf_init(&b.log, 1u << 20);
    assert_int_equal(link_open(&b.link, p.loop, p.fd), 0);
    p.fd = -1;
    (void)gettimeofday(&from, NULL);
    for (uint32_t i = 0; i < 200000; i++)
        link_send(&p.a.link, LINK_EVENT, i, "{\"seq\":1}", 9);
    run(&p, 500);
    (void)gettimeofday(&to, NULL);
    assert_int_equal(b.frames, 200000);
    print_message("# %.0f ns a frame\n",
                  ((double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_usec - from.tv_usec)) *
                      1000 / 200000);
    link_close(&b.link);
    buf_done(&b.log);
    end(&p);
}

static const struct CMUnitTest claims[] = {
    CLAIM("frames that come in pieces, cut anywhere, are the same frames", test_split),
    CLAIM("a frame that comes byte by byte is told once, when it is whole", test_single_bytes),
    CLAIM("a frame that breaks the rules ends the line, and nothing after it is told", test_broken),
    CLAIM("a line whose other side is gone is told closed, half a frame is not told", test_gone),
    CLAIM("megabytes go both ways at once, and their room is given back", test_large_both_ways),
    CLAIM("a line that nobody reads from ends at LIMIT_LINK_OUT", test_full),
    CLAIM("who waits for room takes no more questions, and all of them when there is", test_room),
    CLAIM("an answer that is too large for a frame is 413", test_large_answer),
    CLAIM("a frame of ours that is too large ends the line", test_own_frame_too_large),
    CLAIM("200,000 frames arrive", test_many_small),
};

int main(void)
{
    return RUN_CLAIMS("gateway/link", claims);
}
