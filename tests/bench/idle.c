/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live boxes that only wait, made through the drop-in: nothing of them is a process but init, which
 * waits for commands itself, and, where the kernel does not keep their limits, a keeper. What their
 * folders cost (directory entries and inodes that the kernel remembers) is measured apart, before
 * they are started, and counts.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "sandbox/life.h"

#define PREFIX "idle-"

enum { AT_ONCE = 4 };

/* Runs `before`, a name, `after` for each of n boxes, a few at once; how many ended well. */
static size_t for_each(struct bench *b, char *const *before, char *const *after)
{
    pid_t running[AT_ONCE] = {0};
    size_t ok = 0;

    for (size_t i = 0; i < b->boxes + AT_ONCE; i++) {
        pid_t *slot = &running[i % AT_ONCE];
        char name[32], *named[] = {name, NULL};
        char **front, **all;

        if (*slot > 0)
            ok += command_wait(*slot);
        *slot = 0;
        if (i >= b->boxes || stopped)
            continue;
        (void)snprintf(name, sizeof(name), PREFIX "%zu", i);
        front = words_join(before, named);
        all = words_join(front, after);
        *slot = command_start(all, -1, -1);
        free(front);
        free(all);
    }
    return ok;
}

static bool create_all(struct bench *b)
{
    char *docker = (char *)b->dropin;
    char *before[] = {docker, "create", "--network", "none", "--read-only", "--name", NULL};
    char *after[] = {"openclaw-sandbox:bookworm-slim", "sleep", "infinity", NULL};

    return for_each(b, before, after) == b->boxes;
}

static bool start_all(struct bench *b)
{
    char *before[] = {(char *)b->dropin, "start", NULL};

    return for_each(b, before, (char *[]){NULL}) == b->boxes;
}

static bool remove_all(struct bench *b)
{
    char *before[] = {(char *)b->dropin, "rm", "-f", NULL};
    bool ok = for_each(b, before, (char *[]){NULL}) == b->boxes;

    command_reap(); /* their inits: we are the subreaper */
    return ok;
}

static bool is_ours(const struct box_record *r)
{
    return strncmp(r->name, PREFIX, strlen(PREFIX)) == 0;
}

/* What their last start wrote down, without asking them; how many there are. */
static size_t look(struct bench *b, struct box_live *ret)
{
    struct box_record **list;
    struct error err;
    size_t n = 0;

    if (sandbox_list(&list, &err) < 0) {
        failure_text(err.msg);
        return 0;
    }
    for (size_t i = 0; list[i] && n < b->boxes; i++) {
        autohold h = HOLD_EMPTY;

        if (!is_ours(list[i]))
            continue;
        if (hold_open(list[i], false, &h, &err) < 0)
            failure_text(err.msg);
        else
            ret[n] = h.last.live;
        n++;
    }
    sandbox_list_free(list);
    return n;
}

/* How many of these still have an init or a cgroup. */
static unsigned count_present(struct bench *b, const struct box_live *boxes, bool groups_too)
{
    unsigned n = 0;

    for (size_t i = 0; i < b->boxes; i++) {
        bool there = boxes[i].init_pid > 0 && is_init(boxes[i].init_pid);

        for (size_t k = 0; k < ARRAY_LEN(boxes[i].cgroups) && groups_too; k++)
            there = there || (boxes[i].cgroups[k][0] && access(boxes[i].cgroups[k], F_OK) == 0);
        n += there;
    }
    return n;
}

static void inspect_inits(struct bench *b, struct idle *m, const struct box_live *boxes)
{
    pid_t *pids = calloc(b->boxes, sizeof(*pids));

    if (!pids)
        abort();
    for (size_t i = 0; i < b->boxes; i++)
        pids[i] = boxes[i].init_pid;
    m->init_rss = mean_kib(pids, b->boxes, "status", "VmRSS");
    m->init_pss = mean_kib(pids, b->boxes, "smaps_rollup", "Pss");
    free(pids);
}

/* The keepers: programs of the drop-in that stayed when their parent ended, children of us now. */
static void inspect_keepers(struct bench *b, struct idle *m)
{
    pid_t *keepers = calloc(b->boxes, sizeof(*keepers));
    char path[64], name[600];
    int pid;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)getpid(), (int)getpid());
    f = fopen(path, "re");
    while (keepers && f && m->keepers < b->boxes && fscanf(f, "%d", &pid) == 1) {
        process_name(pid, name, sizeof(name));
        if (strcmp(name, b->dropin) == 0)
            keepers[m->keepers++] = pid;
    }
    if (f)
        (void)fclose(f);
    if (m->keepers)
        m->keeper = mean_own_kib(keepers, m->keepers);
    free(keepers);
}

static void take_memory(struct idle *m, const struct meminfo *before, const struct meminfo *created,
                        const struct meminfo *running)
{
    const double n = m->boxes;

    m->folder = (created->kernel - before->kernel) / n;
    m->kernel = (running->kernel - before->kernel) / n;
    m->available = (before->available - running->available) / n;
    for (size_t i = 0; i < MEMORY_PARTS; i++)
        m->parts[i] = (running->parts[i] - before->parts[i]) / n;
}

/* Makes them and measures; whatever came up is there afterwards. */
static bool measure(struct bench *b, struct idle *m, struct box_live *boxes)
{
    struct meminfo before = meminfo_settled(), created, running;
    double began = now_usec(), took;
    bool ok = create_all(b);

    took = now_usec() - began;
    progress(0.3);
    created = meminfo_settled();
    began = now_usec();
    ok = ok && !stopped && start_all(b);
    took += now_usec() - began;
    progress(0.6);
    running = meminfo_settled();
    m->made_per_second = m->boxes * 1e6 / took;
    take_memory(m, &before, &created, &running);
    if (!ok || look(b, boxes) != b->boxes || count_present(b, boxes, false) != b->boxes)
        return false;
    inspect_inits(b, m, boxes);
    inspect_keepers(b, m);
    return true;
}

void idle_run(struct bench *b)
{
    struct box_live *boxes = calloc(b->boxes, sizeof(*boxes)), *after;
    struct idle *m = &b->idle;
    double began;

    after = calloc(b->boxes, sizeof(*after));
    if (!boxes || !after)
        abort();
    progress_begin(b, "memory of idle live boxes");
    m->boxes = (unsigned)b->boxes;
    m->measured = measure(b, m, boxes);
    if (!m->measured && !stopped)
        fail(b, "FAILED idle live boxes: not all %lu came up: %s", b->boxes, failure_take());
    began = now_usec();
    if (!stopped && !remove_all(b) && m->measured && !stopped)
        fail(b, "FAILED idle live boxes: not all %lu were removed: %s", b->boxes, failure_take());
    m->ended_per_second = m->boxes * 1e6 / (now_usec() - began);
    m->left_over = count_present(b, boxes, true) + (unsigned)look(b, after);
    if (m->left_over && !stopped)
        fail(b, "FAILED idle live boxes: %u inits, cgroups or folders are there after rm -f",
             m->left_over);
    free(boxes);
    free(after);
    progress_end();
}

double idle_box_kib(const struct idle *m)
{
    double keepers = m->keepers && m->keeper > 0 ? m->keeper * m->keepers / m->boxes : 0;

    return m->kernel + keepers + (m->init_rss > 0 ? m->init_rss : 0);
}
