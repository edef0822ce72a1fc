/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of idle boxes. Each box here has three processes: the waiting clawden-sandbox, the box's
 * init, and a t0 that sleeps. The price of the box alone is what remains after the wrapper's pages
 * and two bare sleeping processes (measured first, in the same way) are taken off.
 *
 * MemAvailable counts everything, other people's work included. The sum of the kernel's own
 * counters is steadier, and is what the budget is held against.
 */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AT_ONCE = 4, READY_TIMEOUT_MS = 10000, END_TIMEOUT_MS = 5000 };

const char *const memory_part_names[MEMORY_PARTS] = {"SUnreclaim", "SReclaimable", "KernelStack",
                                                     "PageTables", "Percpu",       "Shmem"};

/* A herd of processes that each write one byte when they are ready, and then sleep. */
struct herd {
    pid_t *pids;
    size_t n;
    int ready_rd, ready_wr;
    size_t ready;
};

static struct meminfo meminfo_read(void)
{
    struct meminfo m = {0};
    FILE *f = fopen("/proc/meminfo", "re");
    char key[64];
    double kib;

    while (f && fscanf(f, " %63[^:]: %lf%*[^\n]", key, &kib) == 2) {
        if (!strcmp(key, "MemAvailable"))
            m.available = kib;
        for (size_t i = 0; i < MEMORY_PARTS; i++)
            if (!strcmp(key, memory_part_names[i]))
                m.kernel += m.parts[i] = kib;
    }
    if (f)
        (void)fclose(f);
    return m;
}

struct meminfo meminfo_settled(void)
{
    struct meminfo last = meminfo_read(), next = last;

    for (int i = 0; i < 15 && !stopped; i++) {
        sleep_msec(200);
        next = meminfo_read();
        if (next.kernel - last.kernel < 256 && last.kernel - next.kernel < 256)
            break;
        last = next;
    }
    return next;
}

/* ---- the herd ---- */

static int herd_open(struct herd *h, size_t room)
{
    int fds[2];

    *h = (struct herd){.ready_rd = -1, .ready_wr = -1};
    h->pids = calloc(room, sizeof(*h->pids));
    if (!h->pids || pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    h->ready_rd = fds[0];
    h->ready_wr = fds[1];
    return 0;
}

/* Waits for one more ready byte; false when none comes. */
static bool herd_wait_ready(struct herd *h)
{
    struct pollfd p = {.fd = h->ready_rd, .events = POLLIN};
    char bytes[64];
    ssize_t n;

    if (poll(&p, 1, READY_TIMEOUT_MS) <= 0)
        return false;
    n = read(h->ready_rd, bytes, sizeof(bytes));
    if (n > 0)
        h->ready += (size_t)n;
    return n > 0;
}

/* Starts n of them, a few at once; false when one does not come up. */
static bool herd_start(struct herd *h, char *const *argv, size_t n)
{
    while (h->ready < n && !stopped) {
        if (h->n < n && h->n - h->ready < AT_ONCE) {
            pid_t pid = command_start(argv, h->ready_wr, -1);

            if (pid < 0)
                return false;
            h->pids[h->n++] = pid;
            progress((double)h->ready / (double)n);
        } else if (!herd_wait_ready(h)) {
            return false;
        }
    }
    return h->ready >= n;
}

/* Asks all to end, then waits; after five seconds it insists. */
static void herd_end(struct herd *h)
{
    double until = now_usec() + END_TIMEOUT_MS * 1e3;

    for (size_t i = 0; i < h->n; i++)
        (void)kill(h->pids[i], SIGTERM);
    for (size_t i = 0; i < h->n; i++) {
        while (waitpid(h->pids[i], NULL, WNOHANG) == 0) {
            if (now_usec() > until)
                (void)kill(h->pids[i], SIGKILL);
            (void)usleep(200);
        }
    }
    (void)close(h->ready_rd);
    (void)close(h->ready_wr);
    free(h->pids);
    h->pids = NULL;
}

/* ---- single processes ---- */

/* A "Key: N kB" line of a file of /proc/PID; < 0 when it cannot be read. */
static double proc_kib(pid_t pid, const char *file, const char *key)
{
    char path[64], line[256];
    double kib = -1;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (!strncmp(line, key, strlen(key)) && sscanf(line + strlen(key), ": %lf", &kib) == 1)
            break;
    if (f)
        (void)fclose(f);
    return kib;
}

void process_name(pid_t pid, char *name, size_t size)
{
    char path[64];
    size_t n = 0;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    f = fopen(path, "re");
    if (f) {
        n = fread(name, 1, size - 1, f);
        (void)fclose(f);
    }
    name[n] = '\0'; /* the words that follow have their own end */
}

bool is_init(pid_t pid)
{
    char name[32];

    process_name(pid, name, sizeof(name));
    return strcmp(name, "clawden-init") == 0;
}

/* The box's PID 1 is a child of the wrapper; the other one is its sweeper. */
static pid_t box_init(pid_t wrapper)
{
    bool found = false;
    char path[64];
    int pid = 0;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)wrapper, (int)wrapper);
    f = fopen(path, "re");
    while (f && !found && fscanf(f, "%d", &pid) == 1)
        found = is_init(pid);
    if (f)
        (void)fclose(f);
    return found ? pid : 0;
}

double mean_kib(const pid_t *pids, size_t n, const char *file, const char *key)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        double kib = pids[i] > 0 ? proc_kib(pids[i], file, key) : -1;

        if (kib < 0)
            return -1;
        sum += kib;
    }
    return sum / (double)n;
}

double mean_own_kib(const pid_t *pids, size_t n)
{
    double pss = mean_kib(pids, n, "smaps_rollup", "Pss");

    return pss < 0 ? mean_kib(pids, n, "status", "RssAnon") : pss;
}

/* ---- the measurement ---- */

/* What n bare sleeping processes cost, as the control. */
static bool measure_plain(struct bench *b, struct memory *m)
{
    struct meminfo before = meminfo_settled(), with;
    char *argv[] = {b->t0, "sleep", NULL};
    struct herd h;
    bool ok = herd_open(&h, b->boxes) == 0 && herd_start(&h, argv, b->boxes);

    with = meminfo_settled();
    herd_end(&h);
    m->plain = (with.kernel - before.kernel) / (double)b->boxes;
    m->plain_available = (before.available - with.available) / (double)b->boxes;
    return ok;
}

static void inspect_boxes(struct memory *m, const struct herd *h, pid_t *inits)
{
    for (size_t i = 0; i < h->n; i++)
        inits[i] = box_init(h->pids[i]);
    m->wrapper_pss = mean_own_kib(h->pids, h->n);
    m->init_rss = mean_kib(inits, h->n, "status", "VmRSS");
    m->init_pss = mean_kib(inits, h->n, "smaps_rollup", "Pss");
}

static bool measure_boxes(struct bench *b, struct memory *m)
{
    char *argv[] = {(char *)b->sandbox,
                    "exec",
                    "--no-spawner",
                    "--workspace",
                    b->workspace,
                    "--",
                    b->t0,
                    "sleep",
                    NULL};
    struct meminfo before = meminfo_settled(), with;
    pid_t *inits = calloc(b->boxes, sizeof(*inits));
    double began = now_usec();
    struct herd h;
    bool ok = inits && herd_open(&h, b->boxes) == 0 && herd_start(&h, argv, b->boxes);

    if (!inits)
        return false;
    m->made_per_second = (double)h.ready * 1e6 / (now_usec() - began);
    with = meminfo_settled();
    if (ok)
        inspect_boxes(m, &h, inits);
    if (ok && b->dropin && !stopped)
        idle_run(b);
    began = now_usec();
    herd_end(&h);
    m->ended_per_second = (double)h.n * 1e6 / (now_usec() - began);
    for (size_t i = 0; i < h.n; i++)
        m->left_over += inits[i] > 0 && kill(inits[i], 0) == 0;
    free(inits);
    m->kernel = (with.kernel - before.kernel) / (double)b->boxes;
    m->available = (before.available - with.available) / (double)b->boxes;
    for (size_t i = 0; i < MEMORY_PARTS; i++)
        m->parts[i] = (with.parts[i] - before.parts[i]) / (double)b->boxes;
    return ok;
}

void memory_run(struct bench *b)
{
    struct memory *m = &b->memory;

    progress_begin(b, "memory of idle boxes");
    m->boxes = (unsigned)b->boxes;
    m->measured = measure_plain(b, m) && measure_boxes(b, m);
    progress_end();
    if (!m->measured && !stopped)
        fail(b, "FAILED idle boxes: one of %lu did not come up: %s", b->boxes, failure_take());
    if (m->left_over)
        fail(b, "FAILED idle boxes: %u were alive after their wrapper had ended", m->left_over);
}

double memory_box_kib(const struct memory *m)
{
    return m->kernel - 2 * m->plain + (m->init_rss > 0 ? m->init_rss : 0);
}
