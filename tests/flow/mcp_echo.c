/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server on src/mcp with the tools of tests/mcp_toys.h, for real clients to talk to.
 *
 *   mcp_echo           stdio: a message per line
 *   mcp_echo --posts [--fixtures]
 *                      for a bridge that speaks HTTP:
 * {"headers":{...},"body":"...","version":"..."} per line; out comes
 * {"status":...,"messages":["...",...],"version":"..."}
 *
 * On stdio a count goes on while other messages are read, so that it can be cancelled.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "mcp/limits.h"
#include "tests/mcp_fixtures.h"
#include "tests/mcp_toys.h"

#define MOST_CALLS 16

struct running {
    struct mcp_call *call;
    uint64_t next_ms;
    json_int_t at, to, pause;
};

static struct running runs[MOST_CALLS];
static const char *agreed; /* by initialize, on stdio */

static uint64_t now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ---- the tools ---- */

static void finish_text(struct mcp_call *call, const char *text, struct mcp_answer *ret)
{
    const struct mcp_content c = {.type = MCP_TEXT, .data = text, .len = strlen(text)};

    mcp_finish(call, &(struct mcp_result){.content = &c, .n_content = 1}, ret);
}

static void finish_ask(struct mcp_call *call, struct mcp_answer *ret)
{
    const json_t *answer = json_object_get(call->answers, "allow");
    const char *what = json_string_value(json_object_get(call->arguments, "what"));
    const char *action = json_string_value(json_object_get(answer, "action"));
    bool yes = json_is_true(json_object_get(json_object_get(answer, "content"), "yes"));
    json_t *question = toy_question(what);
    const struct mcp_ask ask = {
        .requests = question, .state = "asked", .state_len = 5, .now_ms = now_ms()};

    if (!call->state || !action)
        mcp_finish(call, &(struct mcp_result){.ask = &ask}, ret);
    else
        finish_text(call, yes && strcmp(action, "accept") == 0 ? "done" : "not allowed", ret);
    json_decref(question);
}

static void finish_count(struct mcp_call *call, json_int_t counted, struct mcp_answer *ret)
{
    json_t *v = json_pack("{sI}", "counted", counted);

    mcp_finish(call, &(struct mcp_result){.structured = v}, ret);
    json_decref(v);
}

static void finish_now(struct mcp_call *call, struct mcp_answer *ret)
{
    const struct fixture *f = fixture_find(call->tool->name);

    if (f)
        fixture_finish(f, call, now_ms(), ret);
    else if (strcmp(call->tool->name, "ask") == 0)
        finish_ask(call, ret);
    else
        finish_text(call, json_string_value(json_object_get(call->arguments, "text")) ?: "", ret);
}

/* ---- stdio ---- */

static void send_line(const struct buf *b)
{
    if (b->len && !b->failed)
        printf("%s\n", b->data);
    (void)fflush(stdout);
}

static void send_finished(struct mcp_answer *a)
{
    if (a->kind == MCP_REPLY)
        send_line(&a->text);
    mcp_answer_done(a);
}

static void begin(struct mcp_call *call)
{
    struct mcp_answer a;

    if (strcmp(call->tool->name, "count") == 0)
        for (size_t i = 0; i < MOST_CALLS; i++)
            if (!runs[i].call) {
                runs[i] = (struct running){
                    .call = call,
                    .next_ms = now_ms(),
                    .to = json_integer_value(json_object_get(call->arguments, "to")),
                    .pause = json_integer_value(json_object_get(call->arguments, "pause_ms"))};
                return;
            }
    finish_now(call, &a);
    send_finished(&a);
    mcp_call_free(call);
}

static void end(struct running *r)
{
    mcp_call_free(r->call);
    *r = (struct running){0};
}

/* The end is a step of its own: SDK 2.4.0 loses a notification that it reads together with the
 * reply.
 */
static void step(struct running *r)
{
    autobuf told = {.max = LIMIT_MCP_REPLY};
    struct mcp_answer a;

    r->next_ms = now_ms() + (uint64_t)r->pause;
    if (r->at == r->to) {
        finish_count(r->call, r->at, &a);
        send_finished(&a);
        end(r);
        return;
    }
    r->at++;
    if (mcp_progress(r->call, (uint64_t)r->at, (uint64_t)r->to, "counting", &told))
        send_line(&told);
}

static void cancel(const struct mcp_answer *a)
{
    for (size_t i = 0; i < MOST_CALLS; i++)
        if (runs[i].call && mcp_cancels(a, runs[i].call)) {
            mcp_cancelled(runs[i].call);
            fprintf(stderr, "cancelled at %lld\n", (long long)runs[i].at);
            end(&runs[i]);
        }
}

static void take_line(const struct mcp *m, const char *line, size_t len)
{
    const struct mcp_transport t = {.version = agreed, .principal = "me", .now_ms = now_ms()};
    struct mcp_answer a;

    if (len == 0)
        return;
    mcp_take(m, line, len, &t, &a);
    if (a.version)
        agreed = a.version;
    cancel(&a);
    if (a.kind == MCP_CALL)
        begin(TAKE_PTR(a.call));
    send_finished(&a);
}

/* How long until a count has its next step; -1 without end. */
static int step_all(void)
{
    int wait = -1;

    for (size_t i = 0; i < MOST_CALLS; i++) {
        if (runs[i].call && runs[i].next_ms <= now_ms())
            step(&runs[i]);
        if (runs[i].call) {
            uint64_t now = now_ms();
            int left = runs[i].next_ms > now ? (int)(runs[i].next_ms - now) : 0;

            wait = wait < 0 || left < wait ? left : wait;
        }
    }
    return wait;
}

/* ---- posts ---- */

static const char *posted_header(void *ctx, const char *name)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)ctx, key, v)
    {
        if (strcasecmp(key, name) == 0)
            return json_string_value(v);
    }
    return NULL;
}

static void add_message(json_t *messages, const struct buf *b)
{
    (void)json_array_append_new(messages, json_stringn(b->data ? b->data : "", b->len));
}

static void run_post(struct mcp_call *call, json_t *messages, struct mcp_answer *ret)
{
    const struct fixture *f = fixture_find(call->tool->name);
    bool counts = strcmp(call->tool->name, "count") == 0;
    json_int_t to = json_integer_value(json_object_get(call->arguments, "to"));

    if (f && f->progress)
        to = 3;
    for (json_int_t i = 1; i <= to && (counts || f); i++) {
        autobuf told = {.max = LIMIT_MCP_REPLY};

        if (mcp_progress(call, (uint64_t)i, (uint64_t)to, NULL, &told))
            add_message(messages, &told);
    }
    if (counts)
        finish_count(call, to, ret);
    else
        finish_now(call, ret);
}

static void take_post(const struct mcp *m, const char *line, size_t len)
{
    json_t *post = json_loadb(line, len, 0, NULL), *messages = json_array();
    const json_t *body = json_object_get(post, "body");
    const struct mcp_transport t = {.http = true,
                                    .header = posted_header,
                                    .ctx = json_object_get(post, "headers"),
                                    .version = json_string_value(json_object_get(post, "version")),
                                    .session_unknown =
                                        json_is_true(json_object_get(post, "session_unknown")),
                                    .principal = "me",
                                    .now_ms = now_ms()};
    struct mcp_answer a, b = {0};
    const struct mcp_answer *said = &a;

    mcp_take(m, json_string_value(body), json_string_length(body), &t, &a);
    if (a.kind == MCP_CALL) {
        run_post(a.call, messages, &b);
        said = &b;
    }
    if (said->kind == MCP_REPLY)
        add_message(messages, &said->text);
    post = (json_decref(post), json_pack("{si so ss*}", "status", said->status, "messages",
                                         messages, "version", a.version));
    (void)json_dumpf(post, stdout, JSON_COMPACT);
    (void)putchar('\n');
    (void)fflush(stdout);
    json_decref(post);
    mcp_answer_done(&a);
    mcp_answer_done(&b);
}

/* ---- lines ---- */

typedef void (*on_line)(const struct mcp *m, const char *line, size_t len);

static bool read_more(struct buf *in)
{
    char chunk[65536];
    ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

    if (n > 0)
        buf_append(in, chunk, (size_t)n);
    return n > 0 && !in->failed;
}

static void take_lines(const struct mcp *m, struct buf *in, on_line take)
{
    size_t at = 0;
    char *nl;

    while (in->len > at && (nl = memchr(in->data + at, '\n', in->len - at))) {
        take(m, in->data + at, (size_t)(nl - in->data) - at);
        at = (size_t)(nl - in->data) + 1;
    }
    if (at) {
        memmove(in->data, in->data + at, in->len - at);
        in->len -= at;
    }
}

/* The suite looks for the first tool that has a header of its own, at the top of its arguments. */
static const struct mcp_info *with_fixtures(void)
{
    static struct mcp_tool tools[FIXTURES + sizeof(toy_tools) / sizeof(toy_tools[0])];
    static struct mcp_info info;

    info = toy_info;
    for (size_t i = 0; i < FIXTURES; i++)
        tools[i] = fixtures[i].tool;
    memcpy(tools + FIXTURES, toy_tools, sizeof(toy_tools));
    info.tools = tools;
    info.n_tools = sizeof(tools) / sizeof(tools[0]);
    return &info;
}

int main(int argc, char **argv)
{
    on_line take = argc > 1 && strcmp(argv[1], "--posts") == 0 ? take_post : take_line;
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    struct error err = {0};
    autoptr(mcp) m = NULL;
    autobuf in = {.max = 2 * LIMIT_MCP_MESSAGE};

    if (mcp_new(argc > 2 ? with_fixtures() : &toy_info, &m, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    for (;;) {
        int n = poll(&p, 1, step_all());

        if (n < 0 && errno != EINTR)
            return 1;
        if (n > 0 && !read_more(&in))
            break;
        take_lines(m, &in, take);
    }
    for (size_t i = 0; i < MOST_CALLS; i++)
        end(&runs[i]);
    return 0;
}
