/* SPDX-License-Identifier: Apache-2.0 */
/* Options and order of the parts. tests/bench/run prepares the ground, calls this, and cleans up.
 */
#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
    (void)sig;
    stopped = 1;
}

static void catch_signals(void)
{
    /* No SA_RESTART: a wait for a box that sleeps must end. */
    struct sigaction act = {.sa_handler = on_signal};

    (void)sigaction(SIGINT, &act, NULL);
    (void)sigaction(SIGTERM, &act, NULL);
    (void)sigaction(SIGHUP, &act, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

enum kind { TEXT, SECONDS, COUNT };

static const struct {
    const char *name;
    enum kind kind;
    size_t offset;
} options[] = {
    {"sandbox", TEXT, offsetof(struct bench, sandbox)},
    {"dir", TEXT, offsetof(struct bench, dir)},
    {"bwrap", TEXT, offsetof(struct bench, bwrap)},
    {"crun", TEXT, offsetof(struct bench, crun)},
    {"crun-bundles", TEXT, offsetof(struct bench, crun_bundles)},
    {"docker", TEXT, offsetof(struct bench, docker)},
    {"docker-image", TEXT, offsetof(struct bench, docker_image)},
    {"dropin", TEXT, offsetof(struct bench, dropin)},
    {"box", TEXT, offsetof(struct bench, box)},
    {"nsenter", TEXT, offsetof(struct bench, nsenter)},
    {"crun-box", TEXT, offsetof(struct bench, crun_box)},
    {"docker-box", TEXT, offsetof(struct bench, docker_box)},
    {"python", TEXT, offsetof(struct bench, python)},
    {"facts", TEXT, offsetof(struct bench, facts)},
    {"json", TEXT, offsetof(struct bench, json)},
    {"markdown", TEXT, offsetof(struct bench, markdown)},
    {"latency", SECONDS, offsetof(struct bench, latency_s)},
    {"rate", SECONDS, offsetof(struct bench, rate_s)},
    {"compare", SECONDS, offsetof(struct bench, compare_s)},
    {"passes", COUNT, offsetof(struct bench, passes)},
    {"boxes", COUNT, offsetof(struct bench, boxes)},
    {"files", COUNT, offsetof(struct bench, files)},
    {"mounts", COUNT, offsetof(struct bench, mounts)},
};

static void set_option(struct bench *b, size_t i, char *value)
{
    void *field = (char *)b + options[i].offset;

    switch (options[i].kind) {
    case TEXT:
        *(const char **)field = value;
        break;
    case SECONDS:
        *(double *)field = strtod(value, NULL);
        break;
    case COUNT:
        *(unsigned long *)field = strtoul(value, NULL, 10);
        break;
    }
}

static int parse_options(struct bench *b, int argc, char **argv)
{
    struct option table[ARRAY_LEN(options) + 3] = {0};
    int c, index;

    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        table[i] =
            (struct option){.name = options[i].name, .has_arg = required_argument, .val = 'o'};
    table[ARRAY_LEN(options)] =
        (struct option){.name = "skipped", .has_arg = required_argument, .val = 's'};
    table[ARRAY_LEN(options) + 1] =
        (struct option){.name = "failed", .has_arg = required_argument, .val = 'f'};
    while ((c = getopt_long(argc, argv, "", table, &index)) != -1) {
        if (c == 'o')
            set_option(b, (size_t)index, optarg);
        else if (c == 's')
            note(b, "skipped %s", optarg);
        else if (c == 'f')
            fail(b, "FAILED %s", optarg);
        else
            return -EINVAL;
    }
    if (optind != argc || !b->sandbox || !b->dir || !b->passes || !b->boxes)
        return -EINVAL;
    (void)snprintf(b->workspace, sizeof(b->workspace), "%s/ws", b->dir);
    (void)snprintf(b->t0, sizeof(b->t0), "%s/t0", b->workspace);
    return 0;
}

static void read_load(char *buf, size_t size)
{
    FILE *f = fopen("/proc/loadavg", "re");

    if (!f || !fgets(buf, (int)size, f))
        buf[0] = '\0';
    if (f)
        (void)fclose(f);
    for (int words = 0; *buf; buf++) /* the three averages */
        if (*buf == ' ' && ++words == 3)
            *buf = '\0';
}

static void note_load(struct bench *b)
{
    double start = strtod(b->load_start, NULL), end = strtod(b->load_end, NULL);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (start > (double)cores || end > (double)cores)
        note(b,
             "more work than the %ld processors: medians hold waiting for a turn, of which whoever "
             "passes through several processes meets more; the p10s are nearer to the price",
             cores);
}

static void run_parts(struct bench *b)
{
    /* Memory first: later parts leave half-empty slabs in which a box would seem cheaper. */
    static void (*const parts[])(struct bench *) = {memory_run, cases_run, rates_run, scale_files,
                                                    scale_mounts};

    for (size_t i = 0; i < ARRAY_LEN(parts) && !stopped; i++)
        parts[i](b);
}

int main(int argc, char **argv)
{
    static struct bench b;
    int r;

    if (parse_options(&b, argc, argv) < 0) {
        (void)fprintf(stderr, "bench: wrong options; start it by tests/bench/run\n");
        return 2;
    }
    r = stdio_part(&b);
    if (r < 0 || chdir(b.workspace) < 0) {
        (void)fprintf(stderr, "bench: prepare '%s': %s\n", b.dir, strerror(r < 0 ? -r : errno));
        return 1;
    }
    catch_signals();
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* bwrap leaves its PID 1 to be reaped by somebody */
    srand((unsigned)time(NULL));
    read_load(b.load_start, sizeof(b.load_start));
    cases_make(&b);
    run_parts(&b);
    if (stopped)
        return 130;
    read_load(b.load_end, sizeof(b.load_end));
    note_load(&b);
    report(&b);
    return b.failed ? 1 : 0;
}
