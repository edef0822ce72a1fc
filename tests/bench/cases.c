/* SPDX-License-Identifier: Apache-2.0 */
/* The table: every launcher with every payload, interleaved. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { STRIDE_SLOW = 4, STRIDE_DOCKER = 24, REPEATS = 4 };

static const char *const payload_names[] = {"true", "t0", "python3 -c pass", ""};
static const char *const launcher_names[] = {"bare vfork+exec",
                                             "clawden-sandbox --version (own start)",
                                             "clawden-sandbox",
                                             "clawden-sandbox --fresh-net",
                                             "clawden-sandbox --no-spawner",
                                             "bwrap",
                                             "crun run",
                                             "docker run",
                                             "bare vfork+exec, captured",
                                             "live box, library",
                                             "live box, library, captured",
                                             "drop-in docker --version (own start)",
                                             "drop-in docker exec",
                                             "drop-in docker create+start+rm -f",
                                             "nsenter into the live box",
                                             "crun exec",
                                             "docker exec"};

const char *launcher_name(enum launcher launcher)
{
    return launcher_names[launcher];
}

struct bench_case *case_find(struct bench *b, enum launcher launcher, enum payload payload)
{
    for (size_t i = 0; i < b->n_cases; i++)
        if (b->cases[i].launcher == launcher && b->cases[i].payload == payload)
            return &b->cases[i];
    return NULL;
}

double case_median(struct bench *b, enum launcher launcher, enum payload payload)
{
    struct bench_case *c = case_find(b, launcher, payload);

    return c ? samples_quantile(&c->s, 0.5) : 0;
}

static unsigned stride_of(enum launcher launcher, enum payload payload)
{
    switch (launcher) {
    case LAUNCH_DOCKER:
    case LAUNCH_DOCKER_EXEC:
        return STRIDE_DOCKER;
    case LAUNCH_CRUN:
    case LAUNCH_CRUN_EXEC:
    case LAUNCH_DROPIN_LIFE:
        return STRIDE_SLOW;
    default:
        return payload == PAYLOAD_PYTHON ? STRIDE_SLOW : 1;
    }
}

/* Those whose p99 is judged run more than once in a round. */
static unsigned repeats_of(enum launcher launcher, enum payload payload)
{
    bool judged =
        launcher == LAUNCH_BARE || launcher == LAUNCH_LIVE || launcher == LAUNCH_LIVE_CAPTURED;

    return judged && payload == PAYLOAD_TRUE ? REPEATS : 1;
}

static double run_program(struct bench *b, const struct bench_case *c)
{
    (void)b;
    return command_time(c->argv);
}

struct bench_case *case_add(struct bench *b, enum launcher launcher, enum payload payload,
                            char *const *before, char *const *command)
{
    struct bench_case *c = &b->cases[b->n_cases++];

    c->launcher = launcher;
    c->payload = payload;
    c->argv = words_join(before, command);
    c->run = run_program;
    c->every = stride_of(launcher, payload);
    c->repeats = repeats_of(launcher, payload);
    (void)snprintf(c->name, sizeof(c->name), "%s%s%s", launcher_names[launcher],
                   payload == PAYLOAD_NONE ? "" : ": ", payload_names[payload]);
    return c;
}

static void add_crun(struct bench *b, enum payload payload)
{
    static const char *const bundles[] = {"true", "t0", "python3"};
    char *root = NULL, *bundle = NULL;

    if (asprintf(&root, "%s/crun", b->dir) < 0 ||
        asprintf(&bundle, "%s/%s", b->crun_bundles, bundles[payload]) < 0)
        abort();
    char *before[] = {(char *)b->crun, "--root", root, "run", "-b", bundle, "clawden-bench", NULL};
    case_add(b, LAUNCH_CRUN, payload, before, (char *[]){NULL});
}

static void add_payload(struct bench *b, enum payload payload, char *const *command)
{
    char *ours = (char *)b->sandbox, *ws = b->workspace;
    char *nothing[] = {NULL};
    char *warm[] = {ours, "exec", "--workspace", ws, "--", NULL};
    char *fresh[] = {ours, "exec", "--fresh-net", "--workspace", ws, "--", NULL};
    char *in_place[] = {ours, "exec", "--no-spawner", "--workspace", ws, "--", NULL};
    char *bwrap[] = {
        (char *)b->bwrap, "--ro-bind", "/",      "/",     "--tmpfs",       "/tmp",
        "--dev",          "/dev",      "--proc", "/proc", "--unshare-all", "--die-with-parent",
        "--cap-drop",     "ALL",       NULL};
    char *docker[] = {(char *)b->docker,
                      "run",
                      "--rm",
                      "--network",
                      "none",
                      "--memory",
                      "256m",
                      "--pids-limit",
                      "128",
                      (char *)b->docker_image,
                      NULL};

    case_add(b, LAUNCH_BARE, payload, nothing, command);
    case_add(b, LAUNCH_WARM, payload, warm, command);
    case_add(b, LAUNCH_WARM_FRESH_NET, payload, fresh, command);
    case_add(b, LAUNCH_IN_PLACE, payload, in_place, command);
    if (b->bwrap)
        case_add(b, LAUNCH_BWRAP, payload, bwrap, command);
    if (b->crun)
        add_crun(b, payload);
    if (b->docker && payload != PAYLOAD_PYTHON) /* the image that `run` makes has no python */
        case_add(b, LAUNCH_DOCKER, payload, docker,
                 payload == PAYLOAD_T0 ? (char *[]){"/t0", NULL} : command);
    live_cases_make(b, payload, command);
}

void cases_make(struct bench *b)
{
    char *ours[] = {(char *)b->sandbox, "--version", NULL};

    case_add(b, LAUNCH_VERSION, PAYLOAD_NONE, ours, (char *[]){NULL});
    live_cases_make(b, PAYLOAD_NONE, (char *[]){NULL});
    add_payload(b, PAYLOAD_TRUE, (char *[]){"/bin/true", NULL});
    add_payload(b, PAYLOAD_T0, (char *[]){b->t0, NULL});
    if (b->python)
        add_payload(b, PAYLOAD_PYTHON, (char *[]){(char *)b->python, "-c", "pass", NULL});
}

/* The first box starts the spawner; the next ones wait for its slots. */
static void warm_up_spawner(struct bench *b)
{
    struct bench_case *c = case_find(b, LAUNCH_WARM, PAYLOAD_TRUE);
    double until = now_usec() + 2e6;

    while (now_usec() < until && !stopped && command_from_slot(c->argv) == 0)
        sleep_msec(50);
}

/* Runs each once to see that it works and to fill caches; drops the ones that do not. */
static void check_cases(struct bench *b)
{
    for (size_t i = 0; i < b->n_cases && !stopped; i++) {
        struct bench_case *c = &b->cases[i];

        if (c->run(b, c) < 0 && c->run(b, c) < 0 && !stopped) {
            c->failures = 2;
            c->every = 0;
            fail(b, "FAILED %s: %s", c->name, failure_take());
        }
    }
}

/* Indices of the cases, each as often as it is to run, in random order; how many. */
static size_t shuffle(const struct bench *b, size_t *order)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n_cases; i++)
        for (unsigned k = 0; k < b->cases[i].repeats; k++)
            order[n++] = i;
    for (size_t i = n - 1; i > 0; i--) {
        size_t j = (size_t)rand() % (i + 1), other = order[j];

        order[j] = order[i];
        order[i] = other;
    }
    return n;
}

static void run_round(struct bench *b, unsigned long round)
{
    size_t order[ARRAY_LEN(b->cases) * REPEATS], n = shuffle(b, order);

    for (size_t i = 0; i < n && !stopped; i++) {
        struct bench_case *c = &b->cases[order[i]];
        double t;

        if (!c->every || (round + order[i]) % c->every)
            continue;
        settle();
        t = c->run(b, c);
        if (t >= 0)
            samples_add(&c->s, t);
        else
            c->failures++;
    }
}

static void probe_slot(struct bench *b)
{
    int r = command_from_slot(case_find(b, LAUNCH_WARM, PAYLOAD_TRUE)->argv);

    if (r < 0)
        return;
    b->slot_probes++;
    b->slot_hits += (unsigned)r;
}

static void note_failures(struct bench *b)
{
    for (size_t i = 0; i < b->n_cases; i++)
        if (b->cases[i].every && b->cases[i].failures)
            fail(b, "FAILED %s: %u of %zu runs: %s", b->cases[i].name, b->cases[i].failures,
                 b->cases[i].s.n + b->cases[i].failures, failure_take());
}

void cases_run(struct bench *b)
{
    double began, share;

    progress_begin(b, "latency, all cases interleaved");
    warm_up_spawner(b);
    live_find(b);
    check_cases(b);
    began = now_usec();
    for (unsigned long round = 0; !stopped; round++) {
        share = (now_usec() - began) / (b->latency_s * 1e6);
        if (share >= 1)
            break;
        run_round(b, round);
        if (round % 8 == 0)
            probe_slot(b); /* untimed: --json is not part of what is measured */
        progress(share);
    }
    progress_end();
    if (stopped)
        return;
    note_failures(b);
    if (!b->slot_hits)
        note(b, "no box came from a slot: there is no spawner here, the plain cases were built in "
                "place as well");
    else if (b->slot_hits < b->slot_probes)
        note(b, "%u of %u probed boxes came from a slot, the others were built in place",
             b->slot_hits, b->slot_probes);
}
