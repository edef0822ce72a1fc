/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one connection. Whatever happens to it (bytes, room to write, a moment, an answer
 * given) ends in its turn: steps of its stage for as long as there is something to do, then what
 * was written is sent, then it is settled what it waits for. It is freed at the end of a turn only.
 *
 * Bytes are read into the server's scratch and used there; only what is left when the turn ends is
 * copied. A connection that waits for a request has no buffer at all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "http/server_internal.h"

/* ---- deadlines ---- */

static uint64_t now(const struct http_conn *c)
{
    return loop_now(c->server->loop);
}

/* Bytes came or went: more time, up to what a connection may stand still. A rate alone would let
 * who was fast once be slow for ever, a time alone who sends one byte at a time. */
static void give_time(const struct http_conn *c, uint64_t *due, size_t n, uint64_t most)
{
    uint64_t rate = c->server->limits.min_rate, last = now(c) + most;

    *due += rate ? n * 1000000ull / rate : most;
    if (*due > last)
        *due = last;
}

/* Also the first step towards an end: nothing that comes is looked at any more. */
static void start_closing(struct http_conn *c, bool lingers)
{
    http_idle_leave(c);
    c->stage = HTTP_STAGE_CLOSE;
    c->lingers |= lingers || c->left;
    c->left = 0;
    c->read_due = 0;
    free(TAKE_PTR(c->parser));
}

static void wait_for_request(struct http_conn *c, uint64_t usec)
{
    c->stage = HTTP_STAGE_HEAD;
    c->read_due = now(c) + usec;
    http_idle_enter(c);
}

/* ---- bytes in ---- */

/* What is left stands at the begin of `in`, where more can be put behind it. */
static int hold(struct http_conn *c)
{
    if (!c->in_held) {
        buf_clear(&c->in);
        buf_append(&c->in, c->at, c->left);
    } else if (c->at != c->in.data) {
        memmove(c->in.data, c->at, c->left);
        c->in.len = c->left;
    }
    c->at = c->in.data;
    c->in_held = true;
    return c->in.failed ? -ENOMEM : 0;
}

/* 1: there are new bytes; 0: not now; negative: it has ended. */
static int read_more(struct http_conn *c)
{
    char *scratch = c->server->scratch;
    ssize_t n;

    if (!c->may_read)
        return 0;
    c->may_read = false;
    n = c->stream.ops->read(&c->stream, scratch, HTTP_STREAM_READ);
    if (n == -EAGAIN)
        return 0;
    if (n <= 0)
        return -1;
    if (c->left == 0) {
        c->at = scratch;
        c->left = (size_t)n;
        c->in_held = false;
        return 1;
    }
    if (hold(c) < 0)
        return -1;
    buf_append(&c->in, scratch, (size_t)n);
    c->at = c->in.data;
    c->left = c->in.len;
    return c->in.failed ? -1 : 1;
}

static void use(struct http_conn *c, size_t n)
{
    c->at += n;
    c->left -= n;
}

/* ---- the end of an exchange ---- */

/* It is not the handler's any more; who has not ended it is told. */
static void end_exchange(struct http_conn *c)
{
    struct exchange *e = TAKE_PTR(c->x);

    if (!e)
        return;
    if (e->upgrade)
        e->upgrade->on_end(&e->pub);
    else if (!e->ended)
        c->server->ops->on_gone(&e->pub);
    http_exchange_free(e);
}

/* The exchange cannot go on. An answer that has begun is broken off, which its framing shows. */
static void give_up(struct http_conn *c, unsigned status, const char *reason)
{
    if (!c->x->started && !c->x->ended)
        http_conn_refuse(c, status, reason);
    end_exchange(c);
    start_closing(c, true);
}

static int finish_exchange(struct http_conn *c)
{
    struct exchange *e = c->x;
    bool whole = http_body_is_done(&e->body), closes = e->closes || c->server->is_draining;

    if (!closes && !whole && http_exchange_can_drain(e)) {
        c->stage = HTTP_STAGE_DRAIN;
        c->read_due = now(c) + c->server->limits.body_usec;
        return 1;
    }
    end_exchange(c);
    if (closes || !whole)
        start_closing(c, !whole);
    else
        wait_for_request(c, c->server->limits.idle_usec);
    return 1;
}

/* ---- heads ---- */

static bool is_over(const struct http_conn *c)
{
    return http_conn_waiting(c) > c->server->limits.soft;
}

/* A head that has begun: the parser stays with the connection, and the time runs. */
static int keep_parser(struct http_conn *c)
{
    if (c->parser)
        return 0;
    c->parser = malloc(sizeof(*c->parser));
    if (!c->parser)
        return -ENOMEM;
    *c->parser = c->server->parser;
    if (c->had_request) /* the first one's time runs since the connection came */
        c->read_due = now(c) + c->server->limits.head_usec;
    return 0;
}

static void begin_exchange(struct http_conn *c, size_t len)
{
    struct exchange *e = http_exchange_new(c, c->at, len);

    use(c, len);
    free(TAKE_PTR(c->parser));
    if (!e) {
        c->dead = true;
        return;
    }
    http_idle_leave(c);
    c->x = e;
    c->had_request = true;
    c->stage = HTTP_STAGE_ANSWER;
    c->read_due = 0;
    if (e->head.form == HTTP_AUTHORITY)
        http_fail(&e->pub, 405, NULL);
    else if (e->head.form != HTTP_ASTERISK && !http_path_is_canonical(e->pub.path))
        http_fail(&e->pub, 400, "the path is not written in its one canonical way");
    else
        c->server->ops->on_request(&e->pub);
}

static int step_head(struct http_conn *c, unsigned *budget)
{
    struct http_parser *p = c->parser ? c->parser : &c->server->parser;
    struct http_fault fault;
    int r = 1;

    if (is_over(c)) /* it asks more than it takes */
        return 0;
    if (*budget == 0) {
        c->again = c->left > 0;
        return 0;
    }
    if (c->left == 0 || c->parser)
        r = read_more(c);
    if (r < 0)
        start_closing(c, false);
    if (r <= 0)
        return 0;
    if (!c->parser)
        http_parser_init_request(p, LIMIT_HTTP_BODY);
    r = http_parse(p, c->at, c->left, &c->server->head, &fault);
    if (r < 0) { /* S2 */
        http_conn_refuse(c, fault.status, fault.reason);
        start_closing(c, true);
        return 0;
    }
    if (r == 0) {
        c->dead = keep_parser(c) < 0;
        return 0;
    }
    --*budget;
    begin_exchange(c, (size_t)r);
    return 1;
}

/* ---- bodies ---- */

/* The client has closed inside the body. An answer that is there is still sent. */
static void lose_body(struct http_conn *c)
{
    if (c->stage != HTTP_STAGE_DRAIN) {
        c->dead = true;
        return;
    }
    end_exchange(c);
    start_closing(c, false);
}

/* The next piece of the body. 1 with it, 0 if it is not there; negative: the exchange is over. */
static int next_piece(struct http_conn *c, struct http_slice *ret, bool *ret_last)
{
    struct exchange *e = c->x;
    struct http_fault fault;
    struct http_piece piece;
    int r = 1;

    if (c->left == 0 && !http_body_is_done(&e->body)) {
        r = read_more(c);
        if (r < 0)
            lose_body(c);
        if (r <= 0)
            return r;
        give_time(c, &c->read_due, c->left, c->server->limits.body_usec);
    }
    r = http_body_feed(&e->body, c->at, c->left, &piece, &fault);
    if (r < 0) {
        give_up(c, fault.status, fault.reason);
        return -1;
    }
    *ret = (struct http_slice){c->at + piece.at, piece.len};
    *ret_last = r > 0;
    use(c, piece.used);
    return 1;
}

static bool reads_body(const struct exchange *e)
{
    return e->wants_body && !e->holds && !e->told_last && !e->ended;
}

static int step_answer(struct http_conn *c)
{
    struct exchange *e = c->x;
    struct http_slice data;
    bool last;
    int r;

    if (e->ended)
        return finish_exchange(c);
    if (!reads_body(e)) {
        c->read_due = 0;
        return 0;
    }
    if (!c->read_due)
        c->read_due = now(c) + c->server->limits.body_usec;
    r = next_piece(c, &data, &last);
    if (r <= 0)
        return 0;
    e->told_last = last;
    if (last)
        c->read_due = 0;
    if (data.len || last)
        c->server->ops->on_body(&e->pub, data.len ? data.at : "", data.len, last);
    return 1;
}

static int step_drain(struct http_conn *c)
{
    struct http_slice data;
    bool last;
    int r = next_piece(c, &data, &last);

    if (r <= 0)
        return 0;
    return last ? finish_exchange(c) : 1;
}

/* ---- after HTTP ---- */

static int step_upgraded(struct http_conn *c)
{
    const char *data;
    size_t len;
    int r = 1;

    if (c->x->ended) {
        end_exchange(c);
        start_closing(c, true);
        return 0;
    }
    if (is_over(c) || c->x->holds)
        return 0;
    if (c->left == 0)
        r = read_more(c);
    if (r < 0)
        c->dead = true;
    if (r <= 0)
        return 0;
    data = c->at;
    len = c->left;
    use(c, len);
    c->x->upgrade->on_bytes(&c->x->pub, data, len);
    return 1;
}

static int step_linger(struct http_conn *c)
{
    int r = read_more(c);

    c->dropped += c->left;
    c->left = 0;
    if (r < 0 || c->dropped > LIMIT_HTTP_LINGER)
        c->dead = true;
    return 0;
}

/* ---- bytes out ---- */

static int flush(struct http_conn *c)
{
    uint64_t stall = c->server->limits.write_usec;

    if (c->out.failed)
        return -ENOMEM;
    while (http_conn_waiting(c)) {
        ssize_t n = c->stream.ops->write(&c->stream, c->out.data + c->sent, http_conn_waiting(c));

        if (!c->write_due)
            c->write_due = now(c) + stall;
        if (n == -EAGAIN)
            return 0;
        if (n <= 0)
            return n < 0 ? (int)n : -EPIPE;
        c->sent += (size_t)n;
        give_time(c, &c->write_due, (size_t)n, stall);
    }
    c->write_due = 0;
    c->sent = 0;
    buf_done(&c->out);
    return 0;
}

/* All is sent. */
static void finish_closing(struct http_conn *c)
{
    if (!c->lingers) {
        c->dead = true;
        return;
    }
    c->stream.ops->finish(&c->stream);
    c->stage = HTTP_STAGE_LINGER;
    c->read_due = now(c) + c->server->limits.linger_usec;
}

static void tell_writable(struct http_conn *c)
{
    struct exchange *e = c->x;

    if (!e || !e->told_stop || e->ended || http_conn_waiting(c) > c->server->limits.soft / 2)
        return;
    e->told_stop = false;
    if (e->upgrade)
        e->upgrade->on_writable(&e->pub);
    else
        c->server->ops->on_writable(&e->pub);
    c->again = true;
}

/* ---- turns ---- */

static bool is_reading(const struct http_conn *c)
{
    switch (c->stage) {
    case HTTP_STAGE_HEAD:
        return !is_over(c);
    case HTTP_STAGE_ANSWER:
        return reads_body(c->x);
    case HTTP_STAGE_UPGRADED:
        return !is_over(c) && !c->x->holds;
    case HTTP_STAGE_DRAIN:
    case HTTP_STAGE_LINGER:
        return true;
    case HTTP_STAGE_CLOSE:
        break;
    }
    return false;
}

/*
 * While the handler works nothing is read, but a client that goes away is noticed. EPOLLIN stays
 * then until it is in the way: most answers come before it, and two system calls are spared.
 */
static int watch(struct http_conn *c)
{
    uint32_t want = http_conn_waiting(c) ? c->stream.write_events : 0;

    if (is_reading(c))
        want |= c->stream.read_events;
    if (c->stage == HTTP_STAGE_HEAD || c->stage == HTTP_STAGE_ANSWER ||
        c->stage == HTTP_STAGE_UPGRADED)
        want |= EPOLLRDHUP;
    if (c->stage == HTTP_STAGE_HEAD && is_over(c))
        want &= ~(uint32_t)EPOLLRDHUP; /* it may have closed and still take what is written */
    if (!c->is_strict && c->io.events == (want | EPOLLIN))
        return 0;
    c->is_strict = false;
    return loop_change(&c->io, want);
}

static uint64_t next_due(const struct http_conn *c)
{
    if (!c->read_due || !c->write_due)
        return c->read_due | c->write_due;
    return c->read_due < c->write_due ? c->read_due : c->write_due;
}

/* A timer that comes too early finds out and is set again: cheaper than to move it each time. */
static int set_timer(struct http_conn *c)
{
    uint64_t due = next_due(c);

    if (!due || (c->timer.loop && c->timer.at_usec <= due))
        return 0;
    return loop_set_timer(c->server->loop, &c->timer, due > now(c) ? due - now(c) : 0);
}

/* What it waits for, and what it keeps meanwhile. */
static int settle(struct http_conn *c)
{
    if (c->left == 0 && c->in.data)
        buf_done(&c->in);
    else if (c->left && !c->in_held && hold(c) < 0)
        return -ENOMEM;
    if (c->again)
        loop_later(c->server->loop, &c->turn);
    c->again = false;
    if (watch(c) < 0)
        return -EIO;
    return set_timer(c);
}

static int step(struct http_conn *c, unsigned *budget)
{
    switch (c->stage) {
    case HTTP_STAGE_HEAD:
        return step_head(c, budget);
    case HTTP_STAGE_ANSWER:
        return step_answer(c);
    case HTTP_STAGE_DRAIN:
        return step_drain(c);
    case HTTP_STAGE_UPGRADED:
        return step_upgraded(c);
    case HTTP_STAGE_LINGER:
        return step_linger(c);
    case HTTP_STAGE_CLOSE:
        break;
    }
    return 0;
}

static void take_turn(struct http_conn *c)
{
    unsigned budget = LIMIT_HTTP_PIPELINE;
    bool was_over = is_over(c);

    c->busy = true;
    while (!c->dead && step(c, &budget) > 0)
        ;
    if (!c->dead && flush(c) < 0)
        c->dead = true;
    if (!c->dead && c->stage == HTTP_STAGE_CLOSE && !http_conn_waiting(c))
        finish_closing(c);
    if (!c->dead)
        tell_writable(c);
    if (was_over && !is_over(c) && c->left)
        c->again = true;
    c->busy = false;
    if (c->dead || settle(c) < 0)
        http_conn_free(c);
}

static void on_turn(struct loop_task *t)
{
    take_turn((struct http_conn *)((char *)t - offsetof(struct http_conn, turn)));
}

static void on_ready(struct loop_io *io, uint32_t events)
{
    struct http_conn *c = (struct http_conn *)((char *)io - offsetof(struct http_conn, io));
    bool reading = is_reading(c);

    c->may_read = events & (c->stream.read_events | EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    if (!reading && (events & (EPOLLHUP | EPOLLERR)))
        c->dead = true;
    if (!reading && (events & EPOLLRDHUP) && c->x && !c->x->ended)
        c->dead = true; /* it has closed, or half of it: nobody waits for the answer */
    c->is_strict = !reading && (events & EPOLLIN);
    take_turn(c);
}

/* It was too slow. */
static void on_time(struct loop_timer *t)
{
    struct http_conn *c = (struct http_conn *)((char *)t - offsetof(struct http_conn, timer));
    bool reading = c->read_due && c->read_due <= now(c);

    c->may_read = false;
    if (c->write_due && c->write_due <= now(c)) {
        c->dead = true;
    } else if (reading && c->stage == HTTP_STAGE_HEAD && c->left) {
        http_conn_refuse(c, 408, "the head did not come in time");
        start_closing(c, true);
    } else if (reading && c->stage == HTTP_STAGE_ANSWER) {
        give_up(c, 408, "the body comes too slowly");
    } else if (reading) {
        c->dead = true;
    }
    take_turn(c);
}

void http_conn_wake(struct http_conn *c)
{
    if (!c->busy)
        loop_later(c->server->loop, &c->turn);
}

/* ---- begin and end ---- */

void http_conn_free(struct http_conn *c)
{
    struct http_server *s = c->server;

    c->busy = true; /* what the handler calls now changes nothing */
    c->dead = true;
    end_exchange(c);
    http_idle_leave(c);
    http_neighbour_leave(c);
    loop_forget(&c->turn);
    loop_stop_timer(&c->timer);
    loop_remove(&c->io);
    if (c->stream.ops)
        c->stream.ops->close(&c->stream);
    close_fd(&c->stream.fd);
    free(c->parser);
    buf_done(&c->in);
    buf_done(&c->out);
    *c->back = c->next;
    if (c->next)
        c->next->back = c->back;
    s->n_conns--;
    if (s->is_draining && s->n_conns == 0 && s->ops->on_drained)
        loop_later(s->loop, &s->drained);
    free(c);
}

static int start(struct http_conn *c, const struct http_listen *how)
{
    const struct http_stream_ops *ops = how && how->stream ? how->stream : &http_plain;
    int r;

    c->listener_user = how ? how->user : NULL;
    r = http_neighbour_enter(c);
    if (r < 0)
        return r;
    r = ops->open(&c->stream, how ? how->context : NULL);
    if (r < 0)
        return r;
    c->stream.ops = ops;
    wait_for_request(c, c->server->limits.head_usec);
    r = loop_add(c->server->loop, &c->io, c->stream.fd, EPOLLIN | EPOLLRDHUP);
    return r < 0 ? r : set_timer(c);
}

int http_conn_open(struct http_server *s, int fd, const struct http_listen *how,
                   const struct http_peer *peer)
{
    struct http_conn *c = calloc(1, sizeof(*c));
    int r;

    if (!c) {
        (void)close(fd);
        return -ENOMEM;
    }
    c->server = s;
    c->peer = *peer;
    c->stream = (struct http_stream){.fd = fd, .read_events = EPOLLIN, .write_events = EPOLLOUT};
    c->io.on_ready = on_ready;
    c->timer.on_time = on_time;
    c->turn.on_turn = on_turn;
    buf_init(&c->in, LIMIT_HTTP_HEAD + HTTP_STREAM_READ);
    buf_init(&c->out, LIMIT_HTTP_WHOLE);
    c->next = s->conns;
    c->back = &s->conns;
    if (c->next)
        c->next->back = &c->next;
    s->conns = c;
    s->n_conns++;
    r = start(c, how);
    if (r < 0)
        http_conn_free(c);
    return r;
}
