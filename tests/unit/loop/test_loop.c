/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/loop.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tests/test.h"

struct end {
    struct loop_io io;
    int calls;
    struct end *victim; /* removed by the callback */
    uint32_t seen;
};

static void on_ready(struct loop_io *io, uint32_t events)
{
    struct end *e = (struct end *)io;
    char byte;

    e->calls++;
    e->seen |= events;
    if (e->victim) {
        loop_remove(&e->victim->io);
        if (e->victim != e)
            loop_quit(io->loop);
        return;
    }
    if (events & EPOLLIN)
        assert_true(read(io->fd, &byte, 1) >= 0);
    loop_quit(io->loop);
}

static void test_ready(void **state)
{
    autoptr(loop) l = NULL;
    struct end e = {.io.on_ready = on_ready};
    int p[2];

    (void)state;
    assert_int_equal(loop_new(&l), 0);
    assert_int_equal(loop_run(l), 0); /* nothing can happen: it does not wait for ever */
    assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(loop_add(l, &e.io, p[0], EPOLLIN), 0);
    assert_int_equal(write(p[1], "ab", 2), 2);
    assert_int_equal(loop_run(l), 0);
    assert_int_equal(loop_run(l), 0); /* level-triggered: the second byte */
    assert_int_equal(e.calls, 2);
    assert_int_equal(loop_change(&e.io, 0), 0);
    close(p[1]);
    assert_int_equal(loop_run(l), 0); /* a hang-up is told whatever was asked for */
    assert_true(e.seen & EPOLLHUP);
    loop_remove(&e.io);
    loop_remove(&e.io); /* nothing to do */
    close(p[0]);
}

static void test_removed(void **state)
{
    autoptr(loop) l = NULL;
    struct end a = {.io.on_ready = on_ready}, b = {.io.on_ready = on_ready};
    int p[2], q[2];

    (void)state;
    assert_int_equal(loop_new(&l), 0);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(pipe2(q, O_CLOEXEC), 0);
    a.victim = &b;
    b.victim = &a;
    assert_int_equal(loop_add(l, &a.io, p[0], EPOLLIN), 0);
    assert_int_equal(loop_add(l, &b.io, q[0], EPOLLIN), 0);
    assert_int_equal(write(p[1], "x", 1), 1);
    assert_int_equal(write(q[1], "x", 1), 1);
    assert_int_equal(loop_run(l), 0);
    assert_int_equal(a.calls + b.calls, 1); /* both were ready; one took the other out */
    loop_remove(&a.io);
    loop_remove(&b.io);
    a.victim = &a; /* itself */
    assert_int_equal(loop_add(l, &a.io, p[0], EPOLLIN), 0);
    assert_int_equal(loop_run(l), 0); /* ends because nothing is left */
    assert_null(a.io.loop);
    for (int i = 0; i < 2; i++) {
        close(p[i]);
        close(q[i]);
    }
}

static uint64_t order[64];
static size_t n_order;

static void on_time(struct loop_timer *t)
{
    order[n_order++] = t->at_usec;
}

static void test_timers(void **state)
{
    enum { N = 40 };
    autoptr(loop) l = NULL;
    struct loop_timer t[N] = {0};
    uint32_t seed = 1;

    (void)state;
    n_order = 0;
    assert_int_equal(loop_new(&l), 0);
    for (int i = 0; i < N; i++) {
        seed = seed * 1664525 + 1013904223;
        t[i].on_time = on_time;
        assert_int_equal(loop_set_timer(l, &t[i], seed >> 8 & 0x1fff), 0);
    }
    for (int i = 0; i < N; i += 4)
        loop_stop_timer(&t[i]);
    for (int i = 1; i < N; i += 4) { /* set again: moved, not doubled */
        seed = seed * 1664525 + 1013904223;
        assert_int_equal(loop_set_timer(l, &t[i], seed >> 8 & 0x1fff), 0);
    }
    assert_int_equal(loop_run(l), 0);
    assert_int_equal(n_order, N - N / 4);
    for (size_t i = 1; i < n_order; i++)
        assert_true(order[i - 1] <= order[i]);
    assert_true(loop_now(l) >= order[n_order - 1]); /* none too early */
}

struct again {
    struct loop_timer t;
    struct loop *l;
};

static void on_again(struct loop_timer *t)
{
    struct again *x = (struct again *)t;

    if (++n_order < 5)
        assert_int_equal(loop_set_timer(x->l, t, 0), 0);
    else
        free(x); /* its own, in its own callback */
}

static void test_again(void **state)
{
    autoptr(loop) l = NULL;
    struct again *x = calloc(1, sizeof(*x));

    (void)state;
    n_order = 0;
    assert_int_equal(loop_new(&l), 0);
    assert_non_null(x);
    *x = (struct again){.t.on_time = on_again, .l = l};
    assert_int_equal(loop_set_timer(l, &x->t, 0), 0);
    assert_int_equal(loop_run(l), 0);
    assert_int_equal(n_order, 5);
}

struct turn {
    struct loop_task task;
    struct loop *l;
    struct turn *puts_off, *forgets;
    char name;
};

static char turns[16];

static void on_turn(struct loop_task *t)
{
    struct turn *x = (struct turn *)t;
    size_t n = strlen(turns);

    turns[n] = x->name;
    if (x->puts_off)
        loop_later(x->l, &x->puts_off->task);
    x->puts_off = NULL;
    if (x->forgets)
        loop_forget(&x->forgets->task);
}

static void test_tasks(void **state)
{
    autoptr(loop) l = NULL;
    struct turn a = {.task.on_turn = on_turn, .name = 'a'},
                b = {.task.on_turn = on_turn, .name = 'b'},
                c = {.task.on_turn = on_turn, .name = 'c'};

    (void)state;
    memset(turns, 0, sizeof(turns));
    assert_int_equal(loop_new(&l), 0);
    a.l = b.l = c.l = l;
    a.puts_off = &a; /* again: in the next round, after all of this one */
    b.forgets = &c;
    loop_later(l, &a.task);
    loop_later(l, &b.task);
    loop_later(l, &c.task);
    loop_later(l, &a.task); /* is waiting already */
    assert_int_equal(loop_run(l), 0);
    assert_string_equal(turns, "aba");
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a ready descriptor is told, as long as it is ready", test_ready),
        CLAIM("a source that was removed is not called any more", test_removed),
        CLAIM("timers come in their order, none too early, none that was stopped", test_timers),
        CLAIM("a timer that sets itself for now does not stop the loop", test_again),
        CLAIM("work put off runs after the round, in order", test_tasks),
    };

    return RUN_CLAIMS("loop/loop", claims);
}
