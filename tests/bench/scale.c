/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the set-up of a box grow with the workspace's files, or with the host's mounts? The same
 * command runs under both conditions in turn. The mounts exist only in the mount namespace of a
 * helper process, which runs the command there when it is told to; they end with it.
 */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES_PER_DIR = 1000 };

/* Where a command runs: here, or in the helper. */
struct place {
    pid_t helper; /* 0: here */
    int ask, answer;
};

struct arm {
    char *const *small, *const *large;
    const struct place *large_place;
    struct comparison *result;
};

/* ---- places ---- */

/* Answers each command index with its time, until the asking end is closed. */
static void serve(char *const *const *commands, int ask, int answer)
{
    unsigned char index;

    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    while (read(ask, &index, 1) == 1) {
        double usec = command_time(commands[index]);

        if (write(answer, &usec, sizeof(usec)) != (ssize_t)sizeof(usec))
            break;
    }
}

/* More mounts for this process only: a folder bound to each of n others. */
static int add_mounts(const char *dir, unsigned long n)
{
    char path[600];

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -errno;
    for (unsigned long i = 0; i < n; i++) {
        (void)snprintf(path, sizeof(path), "%s/mounts/%lu", dir, i);
        if ((mkdir(path, 0700) < 0 && errno != EEXIST) || mount(dir, path, NULL, MS_BIND, NULL) < 0)
            return -errno;
    }
    return 0;
}

static int place_open(struct bench *b, char *const *const *commands, struct place *ret)
{
    int ask[2], answer[2], r = 0;
    char path[600];
    pid_t pid;

    (void)snprintf(path, sizeof(path), "%s/mounts", b->dir);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return -errno;
    if (pipe2(ask, O_CLOEXEC) < 0 || pipe2(answer, O_CLOEXEC) < 0)
        return -errno;
    pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        (void)close(ask[1]);
        r = add_mounts(b->dir, b->mounts);
        if (write(answer[1], &r, sizeof(r)) == (ssize_t)sizeof(r) && r == 0)
            serve(commands, ask[0], answer[1]);
        _exit(0);
    }
    (void)close(ask[0]);
    (void)close(answer[1]);
    *ret = (struct place){.helper = pid, .ask = ask[1], .answer = answer[0]};
    if (read(ret->answer, &r, sizeof(r)) != (ssize_t)sizeof(r))
        return -EPIPE;
    return r;
}

static void place_close(struct place *p)
{
    if (!p->helper)
        return;
    (void)close(p->ask);
    (void)close(p->answer);
    while (waitpid(p->helper, NULL, 0) < 0 && errno == EINTR)
        ;
}

static double place_time(const struct place *p, unsigned char index)
{
    double usec;

    if (write(p->ask, &index, 1) != 1 ||
        read(p->answer, &usec, sizeof(usec)) != (ssize_t)sizeof(usec))
        return -1;
    return usec;
}

/* ---- comparing ---- */

static struct comparison *comparison_add(struct bench *b, const char *what, const char *dimension,
                                         unsigned long small, unsigned long large)
{
    struct comparison *c = &b->comparisons[b->n_comparisons++];

    *c = (struct comparison){.what = what, .dimension = dimension, .small = small, .large = large};
    return c;
}

static unsigned run_arm(const struct arm *a, unsigned char index, bool large)
{
    double usec;

    settle();
    if (!large)
        usec = command_time(a->small);
    else if (a->large_place)
        usec = place_time(a->large_place, index);
    else
        usec = command_time(a->large);
    if (usec < 0)
        return 1;
    samples_add(large ? &a->result->with_large : &a->result->with_small, usec);
    return 0;
}

static void compare(struct bench *b, const struct arm *arms, size_t n)
{
    double began = now_usec(), share = 0;
    unsigned failures = 0;

    while (share < 1 && !stopped && failures < 10) {
        bool large = rand() % 2;

        for (size_t i = 0; i < n; i++) {
            failures += run_arm(&arms[i], (unsigned char)i, large);
            failures += run_arm(&arms[i], (unsigned char)i, !large);
        }
        share = (now_usec() - began) / (b->compare_s * 1e6);
        progress(share);
    }
    if (failures && !stopped)
        fail(b, "FAILED set-up against %s: %u runs: %s", arms[0].result->dimension, failures,
             failure_take());
}

/* ---- files ---- */

/* A workspace with t0 and n empty files in folders of a thousand. */
static int make_workspace(struct bench *b, const char *path, unsigned long n)
{
    char name[700];

    (void)snprintf(name, sizeof(name), "%s/t0", path);
    if (mkdir(path, 0755) < 0 || link(b->t0, name) < 0)
        return -errno;
    for (unsigned long i = 0; i < n && !stopped; i++) {
        int fd;

        (void)snprintf(name, sizeof(name), "%s/%lu", path, i / FILES_PER_DIR);
        if (i % FILES_PER_DIR == 0 && mkdir(name, 0755) < 0)
            return -errno;
        (void)snprintf(name, sizeof(name), "%s/%lu/%lu", path, i / FILES_PER_DIR, i);
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0)
            return -errno;
        (void)close(fd);
        progress((double)i / (double)n);
    }
    return 0;
}

void scale_files(struct bench *b)
{
    char few[600], many[600], few_t0[610], many_t0[610];
    char *ours = (char *)b->sandbox;
    int r;

    (void)snprintf(few, sizeof(few), "%s/few", b->dir);
    (void)snprintf(many, sizeof(many), "%s/many", b->dir);
    (void)snprintf(few_t0, sizeof(few_t0), "%s/t0", few);
    (void)snprintf(many_t0, sizeof(many_t0), "%s/t0", many);

    progress_begin(b, "making a large workspace");
    r = make_workspace(b, few, 10);
    if (r == 0)
        r = make_workspace(b, many, b->files);
    progress_end();
    if (r < 0) {
        fail(b, "FAILED set-up against files: make the workspaces: %s", strerror(-r));
        return;
    }

    char *in_place_few[] = {ours, "exec", "--no-spawner", "--workspace", few, "--", few_t0, NULL};
    char *in_place_many[] = {ours, "exec", "--no-spawner", "--workspace",
                             many, "--",   many_t0,        NULL};
    char *warm_few[] = {ours, "exec", "--workspace", few, "--", few_t0, NULL};
    char *warm_many[] = {ours, "exec", "--workspace", many, "--", many_t0, NULL};
    struct arm arms[] = {
        {.small = in_place_few,
         .large = in_place_many,
         .result = comparison_add(b, "clawden-sandbox --no-spawner: t0", "files", 10, b->files)},
        {.small = warm_few,
         .large = warm_many,
         .result = comparison_add(b, "clawden-sandbox: t0", "files", 10, b->files)},
    };

    progress_begin(b, "set-up against files");
    compare(b, arms, b->slot_hits ? 2 : 1);
    progress_end();
    if (!b->slot_hits)
        b->n_comparisons--;
}

/* ---- mounts ---- */

static unsigned long count_mounts(void)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    unsigned long n = 0;
    int c;

    while (f && (c = getc(f)) != EOF)
        n += c == '\n';
    if (f)
        (void)fclose(f);
    return n;
}

void scale_mounts(struct bench *b)
{
    struct bench_case *ours = case_find(b, LAUNCH_IN_PLACE, PAYLOAD_T0);
    struct bench_case *bwrap = case_find(b, LAUNCH_BWRAP, PAYLOAD_T0);
    char *const *const commands[] = {ours->argv, bwrap ? bwrap->argv : NULL};
    unsigned long mounts = count_mounts();
    struct place crowded = {0};
    int r;

    if (geteuid() != 0) {
        note(b, "skipped set-up against mounts: only root can add mounts to a private namespace of "
                "this kind");
        return;
    }
    r = place_open(b, commands, &crowded);
    if (r < 0) {
        place_close(&crowded);
        note(b, "skipped set-up against mounts: no private mount namespace: %s", strerror(-r));
        return;
    }

    size_t n = bwrap ? 2 : 1;
    struct arm arms[2] = {
        {.small = ours->argv,
         .large_place = &crowded,
         .result = comparison_add(b, ours->name, "mounts", mounts, mounts + b->mounts)}};
    if (bwrap)
        arms[1] = (struct arm){
            .small = bwrap->argv,
            .large_place = &crowded,
            .result = comparison_add(b, bwrap->name, "mounts", mounts, mounts + b->mounts)};

    progress_begin(b, "set-up against mounts");
    compare(b, arms, n);
    progress_end();
    place_close(&crowded);
}
