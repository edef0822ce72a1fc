/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a box may come, and who is told what it did. */
#include <stdio.h>
#include <string.h>

#include "egress/relay.h"

#define MILLION   1000000ull
#define HELD_USEC 1000000ull

static bool take(const struct relay_box *b, struct relay_credit *c, uint64_t per_sec, uint64_t most)
{
    uint64_t now = loop_now(b->relay->loop), passed = now - c->usec;

    c->usec = now;
    c->left += passed * per_sec;
    if (c->left > most * MILLION)
        c->left = most * MILLION;
    if (c->left < MILLION)
        return false;
    c->left -= MILLION;
    return true;
}

void relay_fill_credits(struct relay_box *b)
{
    const uint64_t now = loop_now(b->relay->loop);
    const struct relay_credit full = {.left = UINT64_MAX / 2, .usec = now}; /* take() cuts it */

    b->news = b->visits = b->lines = full;
}

bool relay_spend(struct relay_box *b)
{
    return take(b, &b->news, b->budgets.new_per_sec, 2ull * b->budgets.new_per_sec);
}

bool relay_spend_visit(struct relay_box *b)
{
    return take(b, &b->visits, b->budgets.new_per_sec, 2ull * b->budgets.new_per_sec);
}

static void count(struct relay_box *b, const struct relay_event *e, const struct meter *m)
{
    uint64_t times = e->times ? e->times : 1;

    *(e->allowed ? &b->allowed : &b->denied) += times;
    for (struct relay_call *c = b->calls; c; c = c->next)
        if (c->since <= m->begun)
            *(e->allowed ? &c->allowed : &c->denied) += times;
}

static void send_event(struct relay_box *b, struct relay_event *e)
{
    e->box = b->id;
    if (b->relay->on_event)
        b->relay->on_event(b->relay, e);
}

void relay_tell(struct relay_box *b, struct relay_event *e, const struct meter *m)
{
    struct meter now;

    if (!m) {
        meter_begin(&now, b);
        m = &now;
    }
    if (!e->allowed && !take(b, &b->lines, LIMIT_RELAY_LINES, LIMIT_RELAY_LINES_MOST)) {
        relay_tell_often(b, e, m);
        return;
    }
    if (!e->is_end)
        count(b, e, m);
    e->calls = m->calls;
    send_event(b, e);
}

/* ---- what there is too much of ---- */

static void on_second(struct loop_timer *t)
{
    relay_tell_held((struct relay_box *)((char *)t - offsetof(struct relay_box, held) -
                                         offsetof(struct relay_held, timer)));
}

/* With it begins a second in which the next ones are only counted. */
void relay_tell_held(struct relay_box *b)
{
    struct relay_held *h = &b->held;
    struct relay_event e = {.via = h->via,
                            .target = h->target,
                            .address = "",
                            .setting = h->setting,
                            .reason = h->reason,
                            .calls = h->calls,
                            .times = h->times};

    if (!h->times)
        return;
    h->times = 0;
    h->timer.on_time = on_second;
    (void)loop_set_timer(b->relay->loop, &h->timer, HELD_USEC);
    send_event(b, &e);
}

void relay_tell_often(struct relay_box *b, struct relay_event *e, const struct meter *m)
{
    struct relay_held *h = &b->held;
    struct meter now;

    if (!m) {
        meter_begin(&now, b);
        m = &now;
    }
    count(b, e, m);
    h->times++;
    h->via = e->via;
    h->setting = e->setting;
    (void)snprintf(h->target, sizeof(h->target), "%s", e->target);
    (void)snprintf(h->reason, sizeof(h->reason), "%s", e->reason);
    memcpy(h->calls, m->calls, sizeof(h->calls));
    if (!h->timer.loop)
        relay_tell_held(b);
}
