/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what a client sends, whole and byte by byte, to one that reads at once and to one
 * that reads slowly: what comes back is answers, each whole and none after one that closes; every
 * request that the handler saw was ended or told as gone, once; and pieces change nothing.
 */
#include "http/server.h"

#include "base/cleanup.h"
#include "http/body.h"
#include "http/chars.h"
#include "tests/fuzz/memory_stream.h"

/* ---- a handler ---- */

struct work {
    struct loop_task task;
    struct http_exchange *x;
    int left;
};

struct seen {
    unsigned requests, ended, gone, open;
};

static struct seen *seen_of(const struct http_exchange *x)
{
    return http_server_user(x->server);
}

static void end(struct http_exchange *x)
{
    struct seen *s = seen_of(x);

    s->ended++;
    s->open--;
    if (x->user)
        loop_forget(&((struct work *)x->user)->task);
    free(x->user);
}

static void answer(struct http_exchange *x)
{
    end(x);
    http_reply(x, 200, NULL, 0, "text", 4);
}

static void on_turn(struct loop_task *t)
{
    struct work *w = (struct work *)t;
    struct http_exchange *x = w->x;

    if (w->left > 0) {
        w->left--;
        if (http_reply_part(x, "part", 4))
            loop_later(http_loop(x), t);
        return;
    }
    if (w->left == 0) {
        end(x);
        http_reply_end(x);
    } else {
        answer(x);
    }
}

static void work(struct http_exchange *x, int left)
{
    struct work *w = calloc(1, sizeof(*w));

    if (!w)
        abort();
    *w = (struct work){.task.on_turn = on_turn, .x = x, .left = left};
    x->user = w;
    loop_later(http_loop(x), &w->task);
}

static void on_request(struct http_exchange *x)
{
    struct seen *s = seen_of(x);

    s->requests++;
    PROPERTY(++s->open == 1, "S1: %u at once", s->open);
    PROPERTY(http_slice_is(x->path, "*") || http_path_is_canonical(x->path), "S: the path");
    if (http_slice_is(x->path, "/later")) {
        work(x, -1);
    } else if (http_slice_is(x->path, "/parts")) {
        http_reply_start(x, 200, NULL, 0);
        work(x, 5);
    } else if (http_slice_is(x->path, "/body") || http_slice_is(x->path, "/early")) {
        if (!http_read_body(x, 64))
            end(x);
    } else if (http_slice_is(x->path, "/204")) {
        end(x);
        http_reply(x, 204, NULL, 0, NULL, 0);
    } else {
        answer(x);
    }
}

static void on_body(struct http_exchange *x, const char *data, size_t len, bool last)
{
    PROPERTY(len == 0 || memchr(data, data[0], len), "no bytes");
    PROPERTY(len <= 64, "more than was asked for");
    if (last && x->method == HTTP_PUT)
        work(x, -1);
    else if (last || http_slice_is(x->path, "/early"))
        answer(x);
}

static void on_gone(struct http_exchange *x)
{
    end(x);
    seen_of(x)->ended--;
    seen_of(x)->gone++;
}

static void on_writable(struct http_exchange *x)
{
    struct work *w = x->user;

    loop_later(http_loop(x), &w->task);
}

static const struct http_server_ops ops = {
    .on_request = on_request, .on_body = on_body, .on_gone = on_gone, .on_writable = on_writable};

/* ---- what must hold ---- */

/* One answer from `at` on: where it ends; *ret_closes: it says that it is the last. */
static size_t check_answer(const struct buf *out, size_t at, bool *ret_closes)
{
    struct http_parser p;
    struct http_fault fault = {0};
    struct http_head head;
    struct http_body body;
    int r;

    http_parser_init_response(&p, HTTP_GET, LIMIT_HTTP_BODY);
    r = http_parse(&p, out->data + at, out->len - at, &head, &fault);
    PROPERTY(r > 0, "no answer at %zu: %s: %s", at, fault.reason ? fault.reason : "cut", out->data);
    if (head.status != 100)
        PROPERTY(http_find(&head, "X-Content-Type-Options") && http_find(&head, "Date"), "%s",
                 out->data);
    *ret_closes = !head.keep_alive;
    at += (size_t)r;
    http_body_init(&body, head.framing, head.length, LIMIT_HTTP_BODY);
    for (r = http_body_is_done(&body); r == 0 && at < out->len;) {
        struct http_piece piece;

        r = http_body_feed(&body, out->data + at, out->len - at, &piece, &fault);
        PROPERTY(r >= 0, "no body: %s", out->data);
        at += piece.used;
    }
    return at;
}

static void check_answers(const struct buf *out)
{
    bool closes = false;
    size_t at = 0;

    while (at < out->len) {
        PROPERTY(!closes, "S2: more after the last answer: %s", out->data);
        at = check_answer(out, at, &closes);
    }
}

/* The clock, and 100, which is not sent when the body is there already. */
static void cut(struct buf *b, const char *begin, size_t len)
{
    char *at = b->data;

    while ((at = memmem(at, b->len - (size_t)(at - b->data), begin, strlen(begin)))) {
        memmove(at, at + len, b->len - (size_t)(at - b->data) - len + 1);
        b->len -= len;
    }
}

static void talk(const uint8_t *data, size_t size, size_t step, bool slow, struct memory *m)
{
    autofree char *copy = malloc(size + 1);
    struct seen seen = {0};

    if (!copy)
        abort();
    memcpy(copy, data, size);
    *m = (struct memory){.in = copy, .len = size, .step = step, .is_slow = slow};
    memory_run(m, &ops, &seen);
    PROPERTY(seen.requests == seen.ended + seen.gone, "S3: %u requests, %u ended, %u gone",
             seen.requests, seen.ended, seen.gone);
    if (!memmem(data, size, "HEAD", 4)) /* its answers look as if a body followed */
        check_answers(&m->out);
    cut(&m->out, "\r\nDate: ", 37);
    cut(&m->out, "HTTP/1.1 100 Continue\r\n\r\n", 25);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory whole, bytes, slow;

    if (size > 4096)
        size = 4096;
    talk(data, size, SIZE_MAX, false, &whole);
    talk(data, size, 1, false, &bytes);
    talk(data, size, 300, true, &slow);
    if (!memmem(data, size, "/early", 6)) {
        PROPERTY(strcmp(whole.out.data, bytes.out.data) == 0, "whole: %s\nbytes: %s",
                 whole.out.data, bytes.out.data);
        PROPERTY(strcmp(whole.out.data, slow.out.data) == 0, "whole: %s\nslow: %s", whole.out.data,
                 slow.out.data);
    }
    buf_done(&whole.out);
    buf_done(&bytes.out);
    buf_done(&slow.out);
    return 0;
}
