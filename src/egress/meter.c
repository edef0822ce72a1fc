/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/meter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "egress/dest.h"
#include "egress/relay.h"

#define MILLION  1000000ull
#define BURST    (256ull << 10)
#define MAX_RATE (1ull << 40)  /* what can be counted in millionths */
#define WORTH_IT (16ull << 10) /* smaller reads cost more than they carry */

static bool counts_for(const struct meter *m, const struct relay_call *c)
{
    return c->since <= m->begun;
}

void meter_begin(struct meter *m, struct relay_box *b)
{
    size_t n = 0, len = 0;

    *m = (struct meter){.box = b, .begun = b->n_calls};
    for (const struct relay_call *c = b->calls; c && n < LIMIT_METER_CALLS; c = c->next, n++)
        len +=
            (size_t)snprintf(m->calls + len, sizeof(m->calls) - len, "%s%s", n ? "," : "", c->id);
}

/* ---- the rate ---- */

static uint64_t rate_of(const struct relay_box *b)
{
    uint64_t rate = b->budgets.bytes_per_sec;

    return rate < MAX_RATE ? rate : MAX_RATE;
}

/* Bytes of credit after what has come in since it was looked at last. */
static uint64_t refill(struct relay_box *b)
{
    uint64_t rate = rate_of(b), burst = (rate / 4 > BURST ? rate / 4 : BURST) * MILLION;
    uint64_t now = loop_now(b->relay->loop), passed = now - b->rate_usec;

    b->rate_usec = now;
    if (b->rate_credit >= burst || passed > (burst - b->rate_credit) / rate)
        b->rate_credit = burst;
    else
        b->rate_credit += passed * rate;
    return b->rate_credit / MILLION;
}

static void take_credit(struct relay_box *b, uint64_t n)
{
    uint64_t have = b->rate_credit / MILLION;

    b->rate_credit -= (n < have ? n : have) * MILLION;
}

/* ---- the budgets ---- */

/* The budget of which the least is left. */
struct tightest {
    uint64_t left, budget;
    bool overrun;
    const char *what, *whose;
};

static void look_at(struct tightest *t, uint64_t budget, uint64_t used, const char *what,
                    const char *whose)
{
    uint64_t left = budget > used ? budget - used : 0;
    bool overrun = used > budget;

    if (!t->what || left < t->left || (overrun && !t->overrun))
        *t = (struct tightest){left, budget, overrun, what, whose};
}

static struct tightest find_tightest(const struct meter *m)
{
    const struct relay_box *b = m->box;
    struct tightest t = {0};

    look_at(&t, b->budgets.bytes, b->bytes, "box ", b->id);
    if (m->dest)
        look_at(&t, b->budgets.host_bytes, m->dest->bytes_out + m->dest->bytes_in, "host ",
                m->dest->host);
    for (const struct relay_call *c = b->calls; c; c = c->next)
        if (counts_for(m, c))
            look_at(&t, b->budgets.call_bytes, c->bytes_out + c->bytes_in, "call ", c->id);
    return t;
}

static const char *say(const struct tightest *t, char text[LIMIT_METER_REASON])
{
    (void)snprintf(text, LIMIT_METER_REASON, "the budget of %" PRIu64 " bytes for %s%s is used up",
                   t->budget, t->what, t->whose);
    return text;
}

const char *meter_overrun(const struct meter *m, char text[LIMIT_METER_REASON])
{
    struct tightest t = find_tightest(m);

    return t.overrun ? say(&t, text) : NULL;
}

const char *meter_used_up(const struct meter *m, char text[LIMIT_METER_REASON])
{
    struct tightest t = find_tightest(m);

    return t.left ? NULL : say(&t, text);
}

/* ---- both ---- */

size_t meter_allowance(struct meter *m)
{
    struct relay_box *b = m->box;
    uint64_t credit = refill(b), soon = rate_of(b) / 100, left = find_tightest(m).left;

    if (credit == 0 || credit < (soon < WORTH_IT ? soon : WORTH_IT))
        return 0;
    return (size_t)(left < credit ? left + 1 : credit);
}

bool meter_spend(struct meter *m, uint64_t n, bool out)
{
    struct relay_box *b = m->box;
    uint64_t n_out = out ? n : 0, n_in = out ? 0 : n;

    m->bytes_out += n_out;
    m->bytes_in += n_in;
    b->bytes += n;
    take_credit(b, n);
    if (m->dest) {
        m->dest->bytes_out += n_out;
        m->dest->bytes_in += n_in;
    }
    for (struct relay_call *c = b->calls; c; c = c->next)
        if (counts_for(m, c)) {
            c->bytes_out += n_out;
            c->bytes_in += n_in;
        }
    return !find_tightest(m).overrun;
}
