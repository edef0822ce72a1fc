/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes per second: workers that start one box after the other, at the same time. */
#include "bench.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 2, PROBE_EVERY = 16 };

struct tally {
    unsigned long done, failed, probes, from_slot;
    double seconds;
};

double rate_find(struct bench *b, enum launcher launcher)
{
    for (size_t i = 0; i < b->n_rates; i++)
        if (b->rates[i].launcher == launcher)
            return b->rates[i].per_second;
    return 0;
}

static bool is_warm(enum launcher launcher)
{
    return launcher == LAUNCH_WARM || launcher == LAUNCH_WARM_FRESH_NET;
}

static void work(const struct rate *rate, double seconds, struct tally *t)
{
    double began = now_usec(), until = began + seconds * 1e6;

    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* not inherited */
    while (now_usec() < until && !stopped && t->failed < 20) {
        bool probing = is_warm(rate->launcher) && t->done % PROBE_EVERY == 0;
        int slot = probing ? command_from_slot(rate->argv) : 0;
        bool ok = probing ? slot >= 0 : command_time(rate->argv) >= 0;

        t->done += ok;
        t->failed += !ok;
        t->probes += probing && ok;
        t->from_slot += slot > 0;
    }
    t->seconds = (now_usec() - began) / 1e6;
}

/* One pass of one launcher; the tallies are shared with the workers. */
static void run_pass(struct bench *b, struct rate *rate, struct tally *tallies)
{
    pid_t pids[WORKERS];

    for (int i = 0; i < WORKERS; i++) {
        tallies[i] = (struct tally){0};
        pids[i] = fork();
        if (pids[i] == 0) {
            work(rate, b->rate_s, &tallies[i]);
            _exit(0);
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        while (pids[i] > 0 && waitpid(pids[i], NULL, 0) < 0 && !stopped)
            ;
        if (tallies[i].seconds > 0)
            rate->per_second += (double)tallies[i].done / tallies[i].seconds / (double)b->passes;
        rate->probes += (unsigned)tallies[i].probes;
        rate->from_slot += (unsigned)tallies[i].from_slot;
        if (tallies[i].failed && !stopped)
            fail(b, "FAILED %s, %d workers: %lu of %lu runs: %s", launcher_name(rate->launcher),
                 WORKERS, tallies[i].failed, tallies[i].done + tallies[i].failed, failure_take());
    }
}

static void add_rate(struct bench *b, enum launcher launcher)
{
    struct bench_case *c = case_find(b, launcher, PAYLOAD_TRUE);

    if (c && c->every)
        b->rates[b->n_rates++] = (struct rate){.launcher = launcher, .argv = c->argv};
}

void rates_run(struct bench *b)
{
    static const enum launcher launchers[] = {LAUNCH_BARE, LAUNCH_WARM, LAUNCH_WARM_FRESH_NET,
                                              LAUNCH_IN_PLACE, LAUNCH_BWRAP};
    struct tally *tallies = mmap(NULL, WORKERS * sizeof(*tallies), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (tallies == MAP_FAILED)
        abort();
    for (size_t i = 0; i < ARRAY_LEN(launchers); i++)
        add_rate(b, launchers[i]);
    progress_begin(b, "boxes per second, 2 workers");
    for (unsigned long pass = 0; pass < b->passes && !stopped; pass++)
        for (size_t i = 0; i < b->n_rates && !stopped; i++) {
            /* Turned round every other pass, so that nobody always follows the heaviest. */
            size_t at = pass % 2 ? b->n_rates - 1 - i : i;

            progress((double)(pass * b->n_rates + i) / (double)(b->passes * b->n_rates));
            sleep_msec(300); /* the last launcher's namespaces are still being taken down */
            run_pass(b, &b->rates[at], tallies);
        }
    progress_end();
    (void)munmap(tallies, WORKERS * sizeof(*tallies));
}
