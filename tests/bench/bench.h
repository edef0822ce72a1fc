/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark: what a box costs from outside, beside the bare program and beside other sandboxes.
 *
 * Method. Every case is run once per round, the order of a round is shuffled, and a ratio compares
 * medians of the same run only: other work on the machine moves absolute times, and moves both
 * sides of a ratio alike. All programs are started by the same vfork + execve + waitpid from this
 * small static process; it is linked with our libraries, so that what a caller of theirs pays is
 * measured in the same rounds. Nothing here fails because of a time; only because something did not
 * run.
 *
 * struct bench holds the wishes (from options) and the results (for the report). Strings from
 * options are borrowed from argv; the rest lives until exit.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof(*(a)))

enum payload {
    PAYLOAD_TRUE,
    PAYLOAD_T0,
    PAYLOAD_PYTHON,
    PAYLOAD_NONE, /* our own program's start: nothing is run in a box */
};

enum launcher {
    LAUNCH_BARE,
    LAUNCH_VERSION, /* clawden-sandbox --version: the wrapper's start alone */
    LAUNCH_WARM,
    LAUNCH_WARM_FRESH_NET,
    LAUNCH_IN_PLACE,
    LAUNCH_BWRAP,
    LAUNCH_CRUN,
    LAUNCH_DOCKER,
    LAUNCH_BARE_CAPTURED,
    LAUNCH_LIVE, /* a command in a box that runs already, by the library */
    LAUNCH_LIVE_CAPTURED,
    LAUNCH_DROPIN_VERSION, /* the drop-in's start alone */
    LAUNCH_DROPIN_EXEC,
    LAUNCH_DROPIN_LIFE, /* create, start, rm -f */
    LAUNCH_NSENTER,
    LAUNCH_CRUN_EXEC,
    LAUNCH_DOCKER_EXEC,
    LAUNCH_COUNT,
};

struct samples {
    double *usec;
    size_t n, room;
    bool sorted;
};

struct bench;
struct bench_case;

/* Runs a case once to its end; the time in microseconds, or < 0 when it did not end well. */
typedef double case_run(struct bench *b, const struct bench_case *c);

struct bench_case {
    enum launcher launcher;
    enum payload payload;
    char name[64];
    char **argv;
    char **more[2]; /* LAUNCH_DROPIN_LIFE: the commands that follow, inside the measured time */
    case_run *run;
    unsigned every;   /* run in every n-th round only: slow payloads need fewer samples */
    unsigned repeats; /* and then this often */
    struct samples s;
    unsigned failures;
};

struct rate {
    enum launcher launcher;
    char **argv;
    double per_second; /* sum of the workers, mean of the passes */
    unsigned probes, from_slot;
};

enum { MEMORY_PARTS = 6 };

struct memory {
    bool measured;
    unsigned boxes;
    double made_per_second, ended_per_second;
    /* KiB per box */
    double available; /* fall of MemAvailable: wrapper, box and command together */
    double kernel;    /* rise of slab, percpu, kernel stacks, page tables, shmem */
    double plain;     /* the same rise for a bare sleeping t0 */
    double plain_available;
    double wrapper_pss;         /* user pages of clawden-sandbox itself */
    double init_rss, init_pss;  /* of the box's PID 1; negative where it cannot be read */
    double parts[MEMORY_PARTS]; /* what `kernel` is the sum of, in the order of memory_part_names */
    unsigned left_over;         /* inits alive after the teardown */
};

/* Live boxes that only wait: each is an init and nothing else. */
struct idle {
    bool measured;
    unsigned boxes;
    double made_per_second, ended_per_second; /* made: created and started */
    /* KiB per box */
    double folder;            /* kernel's memory of a box that was created and never started */
    double kernel, available; /* of one that runs, its folder included */
    double init_rss, init_pss;
    unsigned keepers; /* processes beside them that keep limits which the kernel does not keep */
    double keeper;    /* pages of one */
    double parts[MEMORY_PARTS];
    unsigned left_over; /* inits, cgroups or folders that are there after rm -f */
};

/* The same command under two conditions; "grows" when the second is slower. */
struct comparison {
    const char *what;
    const char *dimension; /* "files" or "mounts" */
    unsigned long small, large;
    struct samples with_small, with_large;
};

enum verdict { REACHED, MISSED, UNMEASURED };

struct budget {
    const char *what, *limit;
    enum verdict verdict;
    char measured[160];
};

struct bench {
    /* wishes */
    const char *sandbox, *dir, *bwrap, *crun, *crun_bundles, *docker, *docker_image, *python;
    const char *dropin, *box; /* our docker, and the name of a live box that runs */
    const char *nsenter;      /* with its options, blanks between them */
    const char *crun_box, *docker_box;
    const char *facts, *json, *markdown;
    double latency_s, rate_s, compare_s;
    unsigned long passes, boxes, files, mounts;

    /* results */
    struct bench_case cases[LAUNCH_COUNT * (PAYLOAD_NONE + 1)];
    size_t n_cases;
    unsigned slot_probes, slot_hits;
    struct rate rates[LAUNCH_COUNT];
    size_t n_rates;
    struct memory memory;
    struct idle idle;
    struct comparison comparisons[4];
    size_t n_comparisons;
    struct budget budgets[32];
    size_t n_budgets;
    char load_start[32], load_end[32];
    char *notes[32]; /* what was skipped, and why */
    size_t n_notes;
    bool failed; /* something did not run */

    FILE *out, *err; /* the caller's; descriptors 0-2 are the payloads' (see measure.c) */
    char workspace[512];
    char t0[544];
};

/* Set by SIGINT and SIGTERM; every loop looks at it. */
extern volatile sig_atomic_t stopped;

/* ---- measure.c ---- */

double now_usec(void);
void sleep_msec(unsigned msec);

void samples_add(struct samples *s, double usec);
/* Nearest rank, 0 <= q <= 1; 0 when there are no samples. */
double samples_quantile(struct samples *s, double q);

/* Joins two NULL-ended lists of words; the words are borrowed. */
char **words_join(char *const *first, char *const *second);

/* Gives payloads /dev/null for stdin and stdout and a file for stderr, and keeps ours in b->out,
 * b->err. */
int stdio_part(struct bench *b);
/* Starts argv with stdout and descriptor 3 replaced where >= 0. */
pid_t command_start(char *const *argv, int out_fd, int json_fd);
/* Runs argv to its end; the time in microseconds, or < 0 when it did not exit with 0. */
double command_time(char *const *argv);
/* The same with its stdout read through a pipe. */
double command_time_captured(char *const *argv);
/* Waits for a command; did it exit with 0? */
bool command_wait(pid_t pid);
/* Takes what a sandbox left to us, the subreaper. */
void command_reap(void);
/* Runs a `clawden-sandbox exec` command with --json and says whether it came from a slot; < 0: it
 * failed. */
int command_from_slot(char *const *argv);
/* Waits a few milliseconds for what the last case left to the kernel's threads. */
void settle(void);
/* How the last command failed, and what was written to stderr since the last call, on one line. */
const char *failure_take(void);
/* Remembers for it how something failed that is not a process of ours: a wait status, or text. */
void failure_status(int status);
void failure_text(const char *text);

/* Adds a line to the report. */
__attribute__((format(printf, 2, 3))) void note(struct bench *b, const char *fmt, ...);
/* The same for something that did not run: the exit status will say so. */
__attribute__((format(printf, 2, 3))) void fail(struct bench *b, const char *fmt, ...);

/* Progress on stderr once a part takes over two seconds: a bar on a terminal, else a line now and
 * then. */
void progress_begin(struct bench *b, const char *what);
void progress(double share);
void progress_end(void);

/* ---- one file each ---- */

void cases_make(struct bench *b);
void cases_run(struct bench *b);
/* Adds a case that runs `before` and `command` as one program; `run` and `every` may be changed. */
struct bench_case *case_add(struct bench *b, enum launcher launcher, enum payload payload,
                            char *const *before, char *const *command);
struct bench_case *case_find(struct bench *b, enum launcher launcher, enum payload payload);
/* p50 of a case, 0 when it was not measured. */
double case_median(struct bench *b, enum launcher launcher, enum payload payload);
const char *launcher_name(enum launcher launcher);

/* The cases that use a live box, with one payload or none. */
void live_cases_make(struct bench *b, enum payload payload, char *const *command);
/* Finds the live box for the library's cases; they are dropped if there is none. */
void live_find(struct bench *b);
/* Runs the case's command in it, by attach, exec and waiting for its end. */
double live_run(struct bench *b, const struct bench_case *c);
double live_run_captured(struct bench *b, const struct bench_case *c);

void rates_run(struct bench *b);
double rate_find(struct bench *b, enum launcher launcher);

struct meminfo {
    double available, kernel; /* KiB */
    double parts[MEMORY_PARTS];
};

extern const char *const memory_part_names[MEMORY_PARTS];
/* Waits until the kernel's memory has stopped moving (namespaces end late), at most three seconds.
 */
struct meminfo meminfo_settled(void);
/* Mean of a "Key: N kB" line of a file of /proc/PID; < 0 when one cannot be read. */
double mean_kib(const pid_t *pids, size_t n, const char *file, const char *key);
/* Pages of its own: PSS, or, where it may not be looked into, what is anonymous. */
double mean_own_kib(const pid_t *pids, size_t n);
/* argv[0] of a process; "" when it is dead. */
void process_name(pid_t pid, char *name, size_t size);
bool is_init(pid_t pid);
void memory_run(struct bench *b);
/* KiB of a box with its init, the wrapper and the command taken off. */
double memory_box_kib(const struct memory *m);

/* Called by memory_run while its boxes are still there: in the slabs that they would leave behind a
 * live box would seem cheaper. */
void idle_run(struct bench *b);
double idle_box_kib(const struct idle *m);

void scale_files(struct bench *b);
void scale_mounts(struct bench *b);

void budgets_judge(struct bench *b);
/* a / b, or 0 where b was not measured. */
double ratio(double a, double b);

/* Prints the table, and writes the Markdown and JSON files that were asked for. */
void report(struct bench *b);
