/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MCP over standard input and output, one message per line, for the user who started us: there is
 * no credential. Descriptors are left as they are found (others may share them): reads wait for
 * something to be there, writes are of what fits a pipe that has room.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "gateway/front_internal.h"
#include "mcp/limits.h"

#define READ     (8u << 10) /* whose answers may be a thousand times as large: tools/list */
#define WRITE    4096u      /* PIPE_BUF: a pipe that is ready takes as much without blocking */
#define SOFT     (1u << 20) /* output that waits before nothing more is read */
#define PER_TURN 16u        /* writes, before the others have their turn */

struct stdio_call {
    struct question ask;
    struct stdio *stdio;
    struct stdio_call *next, **back;
    struct mcp_call *call;
};

struct stdio {
    struct front *front;
    struct loop_io in, out;
    struct loop_task turn; /* of files, which are always ready, and of the end */
    struct buf line, waiting;
    size_t sent; /* of waiting */
    bool is_started, has_ended, is_broken;
    bool in_is_file, out_is_file;
    const char *version; /* what initialize agreed on */
    struct stdio_call *calls;
    size_t n_calls;
    struct asker asker;
};

static size_t count_waiting(const struct stdio *s)
{
    return s->waiting.len - s->sent;
}

static struct stdio *stdio_of_task(struct loop_task *t)
{
    return (struct stdio *)((char *)t - offsetof(struct stdio, turn));
}

/* ---- what is waited for ---- */

static bool watch_one(struct loop *l, struct loop_io *io, int fd, uint32_t events, bool wanted)
{
    if (!wanted)
        loop_remove(io); /* a hang-up would be told again and again */
    else if (!io->loop)
        return loop_add(l, io, fd, events) >= 0;
    return true;
}

static bool wants_input(const struct stdio *s)
{
    return s->is_started && !s->has_ended && count_waiting(s) < SOFT;
}

static void settle(struct stdio *s)
{
    struct front *f = s->front;
    bool out = count_waiting(s) > 0 && !s->is_broken;

    if (!s->in_is_file && !watch_one(f->loop, &s->in, f->o.in_fd, EPOLLIN, wants_input(s)))
        s->in_is_file = true;
    if (!s->out_is_file && !watch_one(f->loop, &s->out, f->o.out_fd, EPOLLOUT, out))
        s->out_is_file = true;
    if ((s->in_is_file && wants_input(s)) || (s->out_is_file && out) ||
        (s->has_ended && (!out || s->is_broken)))
        loop_later(f->loop, &s->turn);
}

/* ---- lines out ---- */

/* How many bytes; 0: not now; negative: nobody reads. */
static ssize_t write_some(struct stdio *s)
{
    struct pollfd p = {.fd = s->front->o.out_fd, .events = POLLOUT};
    size_t n = count_waiting(s);
    ssize_t r;

    if (!s->out_is_file && (poll(&p, 1, 0) <= 0 || !(p.revents & (POLLOUT | POLLERR))))
        return 0;
    r = write(p.fd, s->waiting.data + s->sent, n < WRITE ? n : WRITE);
    return r < 0 && (errno == EINTR || errno == EAGAIN) ? 0 : r < 0 ? -errno : r;
}

static void pump(struct stdio *s)
{
    ssize_t n = 1;

    for (unsigned i = 0; i < PER_TURN && n > 0 && count_waiting(s) > 0; i++) {
        n = write_some(s);
        if (n > 0)
            s->sent += (size_t)n;
    }
    if (n < 0)
        s->is_broken = s->has_ended = true;
    if (count_waiting(s) == 0) {
        buf_done(&s->waiting);
        s->sent = 0;
    }
    if (count_waiting(s) < SOFT)
        for (struct stdio_call *c = s->calls; c; c = c->next)
            question_taken(&c->ask);
    settle(s);
}

static void say(struct stdio *s, const struct buf *line)
{
    if (line->len == 0 || line->failed || s->is_broken)
        return;
    if (s->sent > WRITE && s->sent > s->waiting.len / 2) {
        memmove(s->waiting.data, s->waiting.data + s->sent, count_waiting(s));
        s->waiting.len -= s->sent;
        s->sent = 0;
    }
    buf_append(&s->waiting, line->data, line->len);
    buf_puts(&s->waiting, "\n");
    if (s->waiting.failed)
        s->is_broken = s->has_ended = true;
    settle(s);
}

static void say_answer(struct stdio *s, struct mcp_answer *a)
{
    if (a->kind == MCP_REPLY)
        say(s, &a->text);
    mcp_answer_done(a);
}

/* ---- calls ---- */

static void call_free(struct stdio_call *c)
{
    question_cancel(&c->ask);
    *c->back = c->next;
    if (c->next)
        c->next->back = c->back;
    c->stdio->n_calls--;
    mcp_call_free(c->call);
    free(c);
}

static void on_event(struct question *a, const char *data, size_t len)
{
    struct stdio_call *c = (struct stdio_call *)a;
    autobuf told = {.max = LIMIT_FRONT_WAITING};

    if (front_mcp_progress(c->call, data, len, &told))
        say(c->stdio, &told);
    if (count_waiting(c->stdio) < SOFT)
        question_taken(a);
}

static void on_answer(struct question *a, unsigned status, const char *body, size_t len)
{
    struct stdio_call *c = (struct stdio_call *)a;
    struct mcp_answer answer;

    front_mcp_finish(c->call, status, body, len, &answer);
    say_answer(c->stdio, &answer);
    call_free(c);
}

static void refuse(struct stdio *s, struct mcp_call *call)
{
    static const char busy[] = "{\"error\":{\"message\":\"too many calls run at once\"}}";
    struct mcp_answer answer;

    front_mcp_finish(call, 503, busy, sizeof(busy) - 1, &answer);
    say_answer(s, &answer);
    mcp_call_free(call);
}

static void begin(struct stdio *s, struct mcp_call *call)
{
    const struct front_options *o = &s->front->o;
    struct stdio_call *c = s->n_calls < LIMIT_FRONT_CALLS ? calloc(1, sizeof(*c)) : NULL;

    if (!c) {
        refuse(s, call);
        return;
    }
    c->stdio = s;
    c->call = call;
    c->ask.on_event = on_event;
    c->ask.on_answer = on_answer;
    c->next = s->calls;
    c->back = &s->calls;
    if (c->next)
        c->next->back = &c->next;
    s->calls = c;
    s->n_calls++;
    front_request_id(s->front, s->asker.request);
    if (question_send(s->front, &c->ask, "call", front_mcp_params(call, o->agent, o->session),
                      &s->asker))
        return;
    refuse(s, TAKE_PTR(c->call));
    call_free(c);
}

static void cancel(struct stdio *s, const struct mcp_answer *a)
{
    for (struct stdio_call *c = s->calls, *next; c && a->cancel; c = next) {
        next = c->next;
        if (mcp_cancels(a, c->call))
            call_free(c);
    }
}

/* ---- lines in ---- */

static void take_line(struct stdio *s, const char *line, size_t len)
{
    struct mcp_transport t = {
        .version = s->version, .principal = "local", .now_ms = front_now_ms()};
    struct mcp_answer a;

    if (len > 0 && line[len - 1] == '\r')
        len--;
    if (len == 0)
        return;
    mcp_take(s->front->mcp, line, len, &t, &a);
    if (a.version)
        s->version = a.version;
    cancel(s, &a);
    if (a.kind == MCP_CALL)
        begin(s, TAKE_PTR(a.call));
    say_answer(s, &a);
}

/* A line that is too long is refused as one, by its length. */
static void add(struct stdio *s, const char *data, size_t len)
{
    size_t room = LIMIT_MCP_MESSAGE + 1 - s->line.len;

    buf_append(&s->line, data, len < room ? len : room);
}

static void take_bytes(struct stdio *s, const char *data, size_t len)
{
    const char *end;

    while (len > 0 && (end = memchr(data, '\n', len))) {
        size_t n = (size_t)(end - data);

        add(s, data, n);
        take_line(s, s->line.data, s->line.len);
        buf_clear(&s->line);
        data += n + 1;
        len -= n + 1;
    }
    add(s, data, len);
}

/* Nobody waits for what still runs. */
static void end_input(struct stdio *s)
{
    s->has_ended = true;
    while (s->calls)
        call_free(s->calls);
}

static void read_some(struct stdio *s)
{
    char chunk[READ];
    ssize_t n = read(s->front->o.in_fd, chunk, sizeof(chunk));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0) {
        take_bytes(s, chunk, (size_t)n);
    } else {
        take_line(s, s->line.data ? s->line.data : "", s->line.len);
        end_input(s);
    }
}

/* ---- the loop ---- */

static void on_input(struct loop_io *io, uint32_t events)
{
    struct stdio *s = (struct stdio *)((char *)io - offsetof(struct stdio, in));

    (void)events;
    read_some(s);
    pump(s);
}

static void on_output(struct loop_io *io, uint32_t events)
{
    (void)events;
    pump((struct stdio *)((char *)io - offsetof(struct stdio, out)));
}

static void on_turn(struct loop_task *t)
{
    struct stdio *s = stdio_of_task(t);

    if (s->in_is_file && wants_input(s))
        read_some(s);
    if (s->has_ended && (s->is_broken || count_waiting(s) == 0)) {
        end_input(s);
        front_over(s->front, NULL);
        return;
    }
    pump(s);
}

int stdio_new(struct front *f, struct error *err)
{
    struct stdio *s = calloc(1, sizeof(*s));

    if (!s)
        return error_sys(err, -ENOMEM, "start MCP on standard input");
    (void)signal(SIGPIPE, SIG_IGN); /* a reader that is gone is an end, no death */
    s->front = f;
    s->in.on_ready = on_input;
    s->out.on_ready = on_output;
    s->turn.on_turn = on_turn;
    buf_init(&s->line, LIMIT_MCP_MESSAGE + 1);
    buf_init(&s->waiting, LIMIT_FRONT_WAITING);
    (void)snprintf(s->asker.peer, sizeof(s->asker.peer), "stdio");
    f->stdio = s;
    return 0;
}

void stdio_start(struct stdio *s)
{
    s->is_started = true;
    settle(s);
}

void stdio_free(struct stdio *s)
{
    if (!s)
        return;
    while (s->calls)
        call_free(s->calls);
    loop_forget(&s->turn);
    loop_remove(&s->in);
    loop_remove(&s->out);
    buf_done(&s->line);
    buf_done(&s->waiting);
    free(s);
}
