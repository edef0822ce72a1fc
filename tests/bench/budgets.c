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

/* The same of the p10s, which other work on the machine moves least. */
static double low_ratio(struct bench *b, enum launcher launcher)
{
    struct bench_case *c = case_find(b, launcher, PAYLOAD_TRUE),
                      *bare = case_find(b, LAUNCH_BARE, PAYLOAD_TRUE);

    return c ? ratio(samples_quantile(&c->s, 0.1), samples_quantile(&bare->s, 0.1)) : 0;
}

static void judge_times(struct bench *b, enum launcher launcher, const char *what,
                        const char *limit, double times)
{
    double p50 = case_median(b, launcher, PAYLOAD_TRUE),
           over = case_median(b, launcher, PAYLOAD_T0) - case_median(b, LAUNCH_BARE, PAYLOAD_T0);
    double x = ratio(p50, case_median(b, LAUNCH_BARE, PAYLOAD_TRUE)), low = low_ratio(b, launcher);

    if (!p50)
        add_budget(b, what, limit, UNMEASURED, "it did not run");
    else if (case_median(b, launcher, PAYLOAD_T0) > 0)
        add_budget(b, what, limit, verdict(x <= times), "%.2f x bare (p10: %.2f), t0 +%.0f us", x,
                   low, over);
    else
        add_budget(b, what, limit, verdict(x <= times), "%.2f x bare (p10: %.2f)", x, low);
}

static void judge_tail(struct bench *b)
{
    static const char what[] = "same, p99", limit[] = "<= 2 x bare's p99";
    struct bench_case *live = case_find(b, LAUNCH_LIVE, PAYLOAD_TRUE),
                      *bare = case_find(b, LAUNCH_BARE, PAYLOAD_TRUE);
    double x = live ? ratio(samples_quantile(&live->s, 0.99), samples_quantile(&bare->s, 0.99)) : 0;

    if (!x)
        add_budget(b, what, limit, UNMEASURED, "it did not run");
    else
        add_budget(b, what, limit, verdict(x <= 2), "%.2f x bare's p99 (%zu runs)", x, live->s.n);
}

static void judge_dropin(struct bench *b)
{
    static const char what[] = "docker exec drop-in", limit[] = "<= 2.5 x bare, >= 35 x Docker's";
    double p50 = case_median(b, LAUNCH_DROPIN_EXEC, PAYLOAD_TRUE),
           docker = case_median(b, LAUNCH_DOCKER_EXEC, PAYLOAD_TRUE);
    double x = ratio(p50, case_median(b, LAUNCH_BARE, PAYLOAD_TRUE)), y = ratio(docker, p50),
           low = low_ratio(b, LAUNCH_DROPIN_EXEC);

    if (!p50)
        add_budget(b, what, limit, UNMEASURED, "it did not run");
    else if (!docker)
        add_budget(b, what, limit, verdict(x <= 2.5),
                   "%.2f x bare (p10: %.2f); no Docker to compare with", x, low);
    else
        add_budget(b, what, limit, verdict(x <= 2.5 && y >= 35),
                   "%.2f x bare (p10: %.2f), %.0f x faster than Docker's", x, low, y);
}

static void judge_idle(struct bench *b)
{
    const struct idle *m = &b->idle;

    if (!m->measured) {
        add_budget(b, "idle live box", "<= 360 KiB, init <= 16 KiB", UNMEASURED,
                   "the boxes did not come up");
        return;
    }
    add_budget(b, "idle live box, its folder included", "<= 360 KiB",
               verdict(idle_box_kib(m) <= 360), "%.0f KiB", idle_box_kib(m));
    if (m->init_rss >= 0)
        add_budget(b, "init of a live box", "<= 16 KiB", verdict(m->init_rss <= 16),
                   "%.0f KiB resident", m->init_rss);
}

static void judge_live(struct bench *b)
{
    judge_times(b, LAUNCH_LIVE, "command in a live box, by library", "<= 1.3 x bare", 1.3);
    judge_times(b, LAUNCH_LIVE_CAPTURED, "same, output captured", "<= 1.45 x bare", 1.45);
    judge_tail(b);
    judge_dropin(b);
    judge_idle(b);
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
    static const char *const elsewhere[] = {"gateway: read, requests", "unmodified OpenClaw"};

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
    judge_live(b);
    judge_scale(b);
    for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++)
        add_budget(b, elsewhere[i], "ANCHORS 1", UNMEASURED, "not part of this benchmark");
}
