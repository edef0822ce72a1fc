/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/fd.h"
#include "sandbox/sandbox.h"

struct tally {
    pid_t init;
    unsigned commands;
};

/* Init's own children are reapers, one of which serves whoever is looking now. What has ended is no
 * command: the kernel shows it without a parent while it goes. */
static void count(void *arg, pid_t pid)
{
    struct tally *t = arg;
    char path[32], text[512];
    const char *p;
    int parent;
    char state;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (pid == t->init || fd_read_value(AT_FDCWD, path, text, sizeof(text)) <= 0)
        return;
    p = strrchr(text, ')');
    if (p && sscanf(p + 1, " %c %d", &state, &parent) == 2 && state != 'Z' && parent &&
        parent != t->init)
        t->commands++;
}

/* A box that cannot be looked at is not idle. */
static bool is_busy(const struct box_record *r, const struct box_state *s)
{
    struct tally t = {.init = s->init_pid};
    struct error ignored;

    if (!s->running)
        return false;
    return sandbox_each_process(r, count, &t, &ignored) < 0 || t.commands > 0;
}

static const char *why_prune(const struct box_record *r, const struct box_state *s,
                             const struct sandbox_prune *p, int64_t now)
{
    if (p->idle_usec && now - s->used_usec > p->idle_usec)
        return "idle";
    if (p->age_usec && now - r->created_usec > p->age_usec)
        return "old";
    return NULL;
}

int sandbox_prune(const struct sandbox_prune *p, struct error *err)
{
    struct box_record **list;
    int64_t now = (int64_t)time(NULL) * 1000000;
    int r = sandbox_list(&list, err);

    if (r < 0)
        return r;
    for (size_t i = 0; r >= 0 && list[i]; i++) {
        struct box_state s;
        struct error gone;
        const char *why;

        if (sandbox_state(list[i], &s, &gone) < 0) /* somebody has just removed it */
            continue;
        why = why_prune(list[i], &s, p, now);
        if (!why || is_busy(list[i], &s))
            continue;
        if (!p->dry_run)
            r = sandbox_remove(list[i], true, err);
        if (r == -ERR_NOT_FOUND)
            r = 0;
        else if (r >= 0 && p->on_prune)
            p->on_prune(p->arg, list[i], why);
    }
    sandbox_list_free(list);
    return r < 0 ? r : 0;
}
