/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A front, a back that is made of a few lines, and clients: in one process and one loop. The back
 * knows one token and one cookie; what it answers to calls a test says with on_call.
 */
#include "gateway/front_internal.h"
#include "tests/http_world.h"
#include "tool/tool.h"

#define TOKEN_ID_A "0123456789ab"
#define TOKEN_A    "cdn_" TOKEN_ID_A "_" HEX64
#define TOKEN_B    "cdn_ba9876543210_" HEX64
#define HEX64      "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define COOKIE     "cookie-of-a-login"
#define CALL_A     "00112233445566778899aabbccddeeff"
#define HOST       "Host: localhost:18789\r\n"
#define AUTH       "Authorization: Bearer " TOKEN_A "\r\n"
#define JSON_TYPE  "Content-Type: application/json\r\n"
#define ANSWER                                                                             \
    "{\"call\":\"" CALL_A "\",\"tool\":\"exec\",\"session\":\"s\",\"result\":{\"status\":" \
    "\"exited\",\"exitCode\":0,\"stdout\":\"hi\\n\",\"stderr\":\"\"},\"receipt\":{\"wall\":1}}"

struct back_world {
    struct world w;
    struct front *front;
    struct link link;
    void (*on_call)(struct back_world *b, uint32_t id, const json_t *q); /* NULL: ANSWER */
    json_t *last;                                                        /* the last question */
    uint32_t id;                                                         /* its id */
    unsigned n_asked, n_cancelled;
    uint32_t cancelled; /* the last one */
    size_t taken, n_taken;
    const char *ended; /* on_end() */
    bool has_ended;
    const char *closed; /* the link */
};

static struct back_world *back_of(struct link *l)
{
    return (struct back_world *)((char *)l - offsetof(struct back_world, link));
}

static inline void back_say(struct back_world *b, uint32_t id, unsigned status, const char *text)
{
    link_answer(&b->link, id, status, text, strlen(text));
}

static inline void back_tell(struct back_world *b, uint32_t id, const char *event)
{
    link_send(&b->link, LINK_EVENT, id, event, strlen(event));
}

static bool back_knows(const json_t *q)
{
    const char *token = json_string_value(json_object_get(q, "token"));
    const char *cookie = json_string_value(json_object_get(q, "cookie"));

    if (token)
        return strcmp(token, TOKEN_A) == 0;
    return cookie ? strcmp(cookie, COOKIE) == 0 : true; /* standard input's own */
}

static void back_answer(struct back_world *b, uint32_t id, const char *op, const json_t *q)
{
    if (strcmp(op, "login") == 0)
        back_say(b, id, 200, "{\"cookie\":\"" COOKIE "\",\"expires\":3600}");
    else if (!back_knows(q))
        back_say(b, id, 401, "{\"error\":{\"code\":\"unauthorized\",\"message\":\"no\"}}");
    else if (strcmp(op, "call") == 0 && b->on_call)
        b->on_call(b, id, q);
    else if (strcmp(op, "call") == 0)
        back_say(b, id, 200, ANSWER);
    else if (strcmp(op, "events") == 0 && b->on_call)
        b->on_call(b, id, q);
    else if (strcmp(op, "metrics") == 0)
        back_say(b, id, 200,
                 "{\"metrics\":[{\"name\":\"a_total\",\"type\":\"counter\",\"help\":\"x\\ny\\\\\","
                 "\"samples\":[{\"labels\":{\"l\":\"q\\\"\\n\\\\\"},\"value\":3},"
                 "{\"value\":0.5}]}]}");
    else
        back_say(b, id, 200, "{\"fine\":true}");
}

static void back_on_frame(struct link *l, enum link_kind kind, uint32_t id, const char *data,
                          size_t len)
{
    struct back_world *b = back_of(l);
    uint32_t n;

    if (kind == LINK_ASK) {
        json_decref(b->last);
        b->last = json_loadb(data, len, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(b->last);
        b->id = id;
        b->n_asked++;
        back_answer(b, id, json_string_value(json_object_get(b->last, "op")), b->last);
    } else if (kind == LINK_CANCEL) {
        b->n_cancelled++;
        b->cancelled = id;
    } else if (kind == LINK_TAKEN) {
        memcpy(&n, data, 4);
        b->taken += n;
        b->n_taken++;
    } else if (kind != LINK_READY) {
        fail_msg("the front sent kind %d", (int)kind);
    }
}

static void back_on_closed(struct link *l, const char *why)
{
    back_of(l)->closed = why;
    link_close(l);
}

static void world_on_front_end(void *user, const char *why)
{
    struct back_world *b = user;

    b->has_ended = true;
    b->ended = why;
}

static const char facts_text[] =
    "{\"version\":\"1.2.3\",\"instance\":{\"mcp_key\":\"" HEX64 "\"},"
    "\"hosts\":[\"localhost:18789\",\"127.0.0.1:18789\",\"[::1]:18789\",\"any.test\"],"
    "\"origins\":[\"https://friend.test\"],\"metrics_open\":false}";

static inline void back_facts(struct back_world *b, const char *text)
{
    link_send(&b->link, LINK_FACTS, 0, text, strlen(text));
    world_run(&b->w);
}

/* With these options, but for the link and the end. */
static inline void back_begin_with(struct back_world *b, struct front_options o)
{
    struct error err = {0};
    int p[2];

    *b = (struct back_world){.w = {.round.on_turn = world_on_round, .end.on_time = world_on_end}};
    assert_int_equal(loop_new(&b->w.loop), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
    b->link.on_frame = back_on_frame;
    b->link.on_closed = back_on_closed;
    assert_int_equal(link_open(&b->link, b->w.loop, p[1]), 0);
    o.link_fd = p[0];
    o.door_fd = -1;
    o.on_end = world_on_front_end;
    o.user = b;
    CHECK_OK(front_new(b->w.loop, &o, &b->front, &err), err);
    b->w.server = b->front->server;
}

static inline void back_begin(struct back_world *b)
{
    back_begin_with(b, (struct front_options){0});
    back_facts(b, facts_text);
}

static inline void back_end(struct back_world *b)
{
    front_free(b->front);
    link_close(&b->link);
    loop_stop_timer(&b->w.end);
    json_decref(b->last);
    loop_free(b->w.loop);
}

/* ---- clients ---- */

/* What one connection gets for these bytes: heads and all; to be freed. */
static inline char *ask_raw_bytes(struct back_world *b, const void *text, size_t len)
{
    struct buf got = {.max = 1u << 28};
    int fd = world_connect(&b->w);
    size_t at = 0;

    while (at < len) {
        ssize_t n = send(fd, (const char *)text + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n > 0)
            at += (size_t)n;
        else if (errno != EAGAIN)
            break;
        world_run(&b->w);
        (void)client_read(fd, &got);
    }
    world_run(&b->w);
    (void)client_read(fd, &got);
    (void)close(fd);
    world_run(&b->w);
    return got.data ? got.data : strdup("");
}

static inline char *ask_raw(struct back_world *b, const char *text)
{
    return ask_raw_bytes(b, text, strlen(text));
}

static inline char *ask_post(struct back_world *b, const char *path, const char *fields,
                             const char *body)
{
    struct buf text = {.max = 1u << 27};
    char *got;

    buf_printf(&text, "POST %s HTTP/1.1\r\n" HOST "%s", path, fields);
    buf_printf(&text, "Content-Length: %zu\r\n\r\n", strlen(body));
    buf_puts(&text, body);
    got = ask_raw_bytes(b, text.data, text.len);
    buf_done(&text);
    return got;
}

static inline unsigned status_of(const char *answer)
{
    unsigned status = 0;

    (void)sscanf(answer, "HTTP/1.1 %u", &status);
    return status;
}

/* One request, and what its answer must be and hold. */
#define CHECK_GET(b, want, part, request)                                                         \
    do {                                                                                          \
        char *got_ = ask_raw((b), request);                                                       \
        CHECK(status_of(got_) == (want) && strstr(got_, part), "'%.80s': got '%s', want %d '%s'", \
              request, got_, (int)(want), part);                                                  \
        free(got_);                                                                               \
    } while (0)
#define CHECK_POST(b, want, part, path, fields, body)                                         \
    do {                                                                                      \
        char *got_ = ask_post((b), path, fields, body);                                       \
        CHECK(status_of(got_) == (want) && strstr(got_, part),                                \
              "%s '%.80s': got '%.300s', want %d '%s'", path, body, got_, (int)(want), part); \
        free(got_);                                                                           \
    } while (0)

/* The value at "a.b" of the last question, as a text. */
static inline const char *asked(struct back_world *b, const char *path)
{
    static char text[512];
    const json_t *v = b->last;
    autofree char *copy = strdup(path);
    char *rest = copy, *name, *dumped;

    while ((name = strsep(&rest, "/")))
        v = json_object_get(v, name);
    dumped = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    (void)snprintf(text, sizeof(text), "%s", dumped ? dumped : "none");
    free(dumped);
    return text;
}
