/* SPDX-License-Identifier: Apache-2.0 */
#include "http/sse.h"

#include "tests/http_world.h"

struct seen {
    struct sse sse;
    unsigned gone, writable;
    uint64_t beat_usec, last;
    bool has_last;
};

static struct seen *seen_of(const struct http_exchange *x)
{
    return ((struct world *)http_server_user(x->server))->user;
}

static void on_request(struct http_exchange *x)
{
    struct seen *s = seen_of(x);

    s->has_last = sse_last_id(x, &s->last);
    sse_start(&s->sse, x, NULL, 0, s->beat_usec);
}

static void on_body(struct http_exchange *x, const char *data, size_t len, bool last)
{
    (void)x;
    (void)data;
    (void)len;
    (void)last;
}

static void on_gone(struct http_exchange *x)
{
    seen_of(x)->gone++;
    sse_done(&seen_of(x)->sse);
}

static void on_writable(struct http_exchange *x)
{
    seen_of(x)->writable++;
}

static const struct http_server_ops ops = {
    .on_request = on_request, .on_body = on_body, .on_gone = on_gone, .on_writable = on_writable};

static int open_stream(struct world *w, struct seen *s, const char *fields)
{
    int fd;

    world_init(w, &ops);
    w->user = s;
    fd = world_connect(w);
    client_say(fd, "GET /s HTTP/1.1\r\nHost: x\r\n");
    client_say(fd, fields);
    client_say(fd, "\r\n");
    world_run(w);
    assert_non_null(s->sse.x);
    return fd;
}

static void read_body(int fd, struct buf *ret)
{
    autobuf raw = {0};

    buf_init(&raw, 4u << 20);
    (void)client_read(fd, &raw);
    CHECK(strstr(raw.data, "Content-Type: text/event-stream\r\n") &&
              strstr(raw.data, "Cache-Control: no-store\r\n"),
          "%s", raw.data);
    sum_up(&raw, HTTP_GET, ret);
}

static const struct {
    const char *id, *name, *data, *want;
} events[] = {
    {NULL, NULL, "a", "data: a\n\n"},
    {"7", "x", "a", "event: x\nid: 7\ndata: a\n\n"},
    {NULL, NULL, "", "data: \n\n"},
    {NULL, NULL, "a\nb", "data: a\ndata: b\n\n"},
    {NULL, NULL, "a\r\nb\rc\n", "data: a\ndata: b\ndata: c\ndata: \n\n"},
    {NULL, NULL, "\n\nid: 9\n\ndata: x", "data: \ndata: \ndata: id: 9\ndata: \ndata: data: x\n\n"},
    {NULL, NULL, "a\r\rb", "data: a\ndata: \ndata: b\n\n"},
    {NULL, NULL, " a", "data:  a\n\n"},
};

static void test_events(void **state)
{
    (void)state;
    FOR_EACH(row, events)
    {
        struct seen s = {0};
        autobuf got = {0}, want = {0};
        struct world w;
        int fd = open_stream(&w, &s, "");

        buf_init(&got, 1u << 20);
        buf_init(&want, 1u << 20);
        assert_true(sse_event(&s.sse, row->id, row->name, row->data, strlen(row->data)));
        sse_end(&s.sse);
        world_run(&w);
        read_body(fd, &got);
        buf_printf(&want, "200 %s|", row->want);
        CHECK_STR(got.data, want.data, row->data);
        (void)close(fd);
        world_run(&w);
        assert_int_equal(s.gone, 0);
        world_done(&w);
    }
}

static void test_bad_words(void **state)
{
    static const char *const bad[] = {"a\nb", "a\r", "\n"};

    (void)state;
    for (int as_name = 0; as_name < 2; as_name++)
        FOR_EACH(word, bad)
        {
            struct seen s = {0};
            autobuf got = {0};
            struct world w;
            int fd = open_stream(&w, &s, "");

            buf_init(&got, 1u << 20);
            assert_false(sse_event(&s.sse, as_name ? "1" : *word, as_name ? *word : "x", "d", 1));
            world_run(&w);
            assert_int_equal(s.gone, 1);
            read_body(fd, &got);
            CHECK_STR(got.data, "200 (cut)|", "nothing of it was sent");
            (void)close(fd);
            world_done(&w);
        }
}

static void test_beats(void **state)
{
    struct seen s = {.beat_usec = 50000};
    autobuf got = {0};
    struct world w;
    int fd = open_stream(&w, &s, "");

    (void)state;
    buf_init(&got, 1u << 20);
    for (int i = 0; i < 5; i++) { /* who speaks needs no beat */
        world_wait(&w, 10);
        (void)sse_event(&s.sse, NULL, NULL, "x", 1);
    }
    world_wait(&w, 180);
    sse_end(&s.sse);
    world_run(&w);
    read_body(fd, &got);
    CHECK(strncmp(got.data, "200 data: x\n\ndata: x\n\ndata: x\n\n", 31) == 0, "%s", got.data);
    CHECK(strstr(got.data, "x\n\n:\n\n:\n\n") && !strstr(got.data, ":\n\ndata"), "%s", got.data);
    (void)close(fd);
    world_done(&w);
}

/* HT-31: a consumer that stops. */
static void test_stalled(void **state)
{
    static const char block[4096];
    struct seen s = {.beat_usec = 5000};
    struct world w;
    int fd = open_stream(&w, &s, "");
    size_t n = 0;

    (void)state;
    http_server_limits(w.server)->write_usec = 30000;
    for (int i = 0; i < 1000 && !s.gone; i++) {
        while (s.sse.x && sse_event(&s.sse, NULL, NULL, block, sizeof(block)))
            n++;
        world_wait(&w, 2);
        if (!s.writable)
            continue;
        s.writable = 0;
    }
    assert_int_equal(s.gone, 1);
    CHECK(n < 2000, "%zu events were taken", n);
    (void)close(fd);
    world_done(&w);
}

static void test_last_id(void **state)
{
    static const struct {
        const char *field;
        bool has;
        uint64_t id;
    } ids[] = {
        {"", false, 0},
        {"Last-Event-ID: 41\r\n", true, 41},
        {"last-event-id: 0\r\n", true, 0},
        {"Last-Event-ID: -1\r\n", false, 0},
        {"Last-Event-ID: 18446744073709551616\r\n", false, 0},
        {"Last-Event-ID: x\r\n", false, 0},
    };

    (void)state;
    FOR_EACH(row, ids)
    {
        struct seen s = {0};
        struct world w;
        int fd = open_stream(&w, &s, row->field);

        CHECK(s.has_last == row->has && (!row->has || s.last == row->id), "%s", row->field);
        (void)close(fd);
        world_run(&w);
        assert_int_equal(s.gone, 1);
        world_done(&w);
    }
}

static const struct CMUnitTest claims[] = {
    CLAIM("data with line ends stays one event", test_events),
    CLAIM("an id or a name cannot begin another event", test_bad_words),
    CLAIM("silence is filled with comments", test_beats),
    CLAIM("a consumer that stops is dropped, and little waits for it", test_stalled),
    CLAIM("a client says where it was", test_last_id),
};

int main(void)
{
    return RUN_CLAIMS("http/sse", claims);
}
