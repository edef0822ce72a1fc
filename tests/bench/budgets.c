/* SPDX-License-Identifier: Apache-2.0 */
/* The budgets of the design, held against what was measured. A missed one is a line, not a failure.
 */
#include "bench.h"

#include <stdarg.h>
#include <string.h>

__attribute__((format(printf, 5, 6))) static void add_budget(struct bench *b, const char *what,
                                                             const char *limit,
                                                             enum verdict verdict, const char *fmt,
                                                             ...)
{
    struct budget *g = &b->budgets[b->n_budgets++];
    va_list ap;

    *g = (struct budget){.what = what, .limit = limit, .verdict = verdict};
    va_start(ap, fmt);
    (void)vsnprintf(g->measured, sizeof(g->measured), fmt, ap);
    va_end(ap);
}

static enum verdict verdict(bool reached)
{
    return reached ? REACHED : MISSED;
}

double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

/* The box without our program around it: its own start, measured beside it, is taken off. */
static void judge_slot(struct bench *b, enum launcher launcher, const char *what, const char *limit,
                       double times, double overhead)
{
    double start = case_median(b, LAUNCH_VERSION, PAYLOAD_NONE);
    double x = ratio(case_median(b, launcher, PAYLOAD_TRUE) - start,
                     case_median(b, LAUNCH_BARE, PAYLOAD_TRUE));
    double over =
        case_median(b, launcher, PAYLOAD_T0) - start - case_median(b, LAUNCH_BARE, PAYLOAD_T0);

    if (!b->slot_hits)
        add_budget(b, what, limit, UNMEASURED, "no box came from a slot");
    else
        add_budget(b, what, limit, verdict(x <= times && over <= overhead),
                   "%.2f x bare, t0 +%.0f us (our program's start, %.0f us, taken off)", x, over,
                   start);
}

static void judge_program(struct bench *b, enum launcher launcher, const char *what,
                          const char *limit, double times, double of_bwrap)
{
    double p50 = case_median(b, launcher, PAYLOAD_TRUE),
           bwrap = case_median(b, LAUNCH_BWRAP, PAYLOAD_TRUE);
    double x = ratio(p50, case_median(b, LAUNCH_BARE, PAYLOAD_TRUE)), y = ratio(p50, bwrap);

    if (launcher == LAUNCH_WARM && !b->slot_hits)
        add_budget(b, what, limit, UNMEASURED, "no box came from a slot");
    else if (!bwrap)
        add_budget(b, what, limit, verdict(x <= times), "%.2f x bare; no bwrap to compare with", x);
    else
        add_budget(b, what, limit, verdict(x <= times && y <= of_bwrap),
                   "%.2f x bare, %.2f x bwrap", x, y);
}

static void judge_rate(struct bench *b)
{
    double warm = rate_find(b, LAUNCH_WARM), bare = rate_find(b, LAUNCH_BARE),
           bwrap = rate_find(b, LAUNCH_BWRAP);
    double x = ratio(warm, bare), y = ratio(warm, bwrap);

    if (!b->slot_hits)
        add_budget(b, "boxes per second, 2 workers", ">= 0.5 of bare, >= 6 x bwrap", UNMEASURED,
                   "no box came from a slot; built in place %.0f/s", warm);
    else
        add_budget(b, "boxes per second, 2 workers", ">= 0.5 of bare, >= 6 x bwrap",
                   verdict(x >= 0.5 && (y >= 6 || !bwrap)),
                   "%.0f/s: %.2f of bare, %.1f x bwrap, through the program", warm, x, y);
}

static void judge_memory(struct bench *b)
{
    const struct memory *m = &b->memory;
    double all = memory_box_kib(m) * 1000 / 1024 / 1024;

    if (!m->measured) {
        add_budget(b, "idle box", "<= 360 KiB, init <= 16 KiB", UNMEASURED,
                   "the boxes did not come up");
        return;
    }
    add_budget(b, "idle box with its network namespace", "<= 360 KiB",
               verdict(memory_box_kib(m) <= 360), "%.0f KiB", memory_box_kib(m));
    if (m->init_rss >= 0)
        add_budget(b, "its init", "<= 16 KiB", verdict(m->init_rss <= 16), "%.0f KiB resident",
                   m->init_rss);
    add_budget(b, "1,000 idle boxes", "<= 0.5 GiB, made at >= 750/s",
               verdict(all <= 0.5 && m->made_per_second >= 750),
               "%.2f GiB, %.0f/s through the program (from %u)", all, m->made_per_second, m->boxes);
}

static void judge_scale(struct bench *b)
{
    for (size_t i = 0; i < b->n_comparisons; i++) {
        struct comparison *c = &b->comparisons[i];
        double small = samples_quantile(&c->with_small, 0.5),
               large = samples_quantile(&c->with_large, 0.5);

        if (strncmp(c->what, "clawden", 7) || !small)
            continue;
        add_budget(
            b,
            !strcmp(c->dimension, "files") ? "set-up against files" : "set-up against host mounts",
            "same time (<= 1.1)", verdict(large / small <= 1.1), "%.2f, %lu against %lu %s (%s)",
            large / small, c->large, c->small, c->dimension, c->what);
    }
}

void budgets_judge(struct bench *b)
{
    static const char *const elsewhere[] = {"command in a live box", "docker exec drop-in",
                                            "gateway: read, requests", "unmodified OpenClaw",
                                            "egress relay"};

    judge_slot(b, LAUNCH_WARM, "one-shot box from a ready slot", "<= 1.5 x bare, t0 +300 us", 1.5,
               300);
    judge_slot(b, LAUNCH_WARM_FRESH_NET, "same, fresh network namespace",
               "<= 2.2 x bare, t0 +850 us", 2.2, 850);
    judge_program(b, LAUNCH_WARM, "through the program, spawner warm",
                  "<= 3.0 x bare, <= 0.5 x bwrap", 3.0, 0.5);
    judge_program(b, LAUNCH_IN_PLACE, "nothing resident (--no-spawner)",
                  "<= 4.0 x bare, <= 0.7 x bwrap", 4.0, 0.7);
    judge_rate(b);
    judge_memory(b);
    judge_scale(b);
    for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++)
        add_budget(b, elsewhere[i], "ANCHORS 1", UNMEASURED, "not part of this benchmark");
}
