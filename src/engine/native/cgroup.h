/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Limits kept by the kernel: one control group per box (or slot), under v2 or v1.
 *
 * Nothing is ever attached from outside: that waits for a grace period (7-9 ms). A v2 box is cloned
 * into its group; a v1 child writes 0 to `tasks` itself. Where no group can be made (an ordinary
 * user without delegation) the set is empty and its limits fall to the supervisor.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"

#define CGROUP_PREFIX                                                           \
    "clawden-" /* of every group's name: clawden-box-ID-PID, clawden-slot-N-MARK-PID \
                */

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };
enum { CG_MEMORY, CG_PIDS, CG_CPU, CG_COUNT };

/* Where groups of boxes can be made: a folder per controller (v1), or one for all (v2). */
struct cgroup_base {
    enum cgroup_kind kind;
    int dirs[CG_COUNT]; /* -1: this controller cannot be used */
};

struct cgroup_set {
    enum cgroup_kind kind;
    char name[48];
    int bases[CG_COUNT]; /* borrowed from the base */
    int dirs[CG_COUNT];
};

#define CGROUP_SET_EMPTY                              \
    {                                                 \
        .bases = {-1, -1, -1}, .dirs = { -1, -1, -1 } \
    }

/*
 * Finds the base for this user. `own` says that the caller stands in a group delegated to it and
 * may rearrange it (the spawner); nobody else moves itself. Never fails: no base is CGROUP_NONE.
 */
void cgroup_find(bool own, struct cgroup_base *ret);
void cgroup_base_done(struct cgroup_base *b);

/* Makes the groups that `need` (bits of 1 << CG_*) asks for. On failure nothing is left. */
int cgroup_make(const struct cgroup_base *base, const char *name, unsigned need,
                struct cgroup_set *ret);
/* `now` is what the groups are known to have already, or NULL: only what differs is written. */
int cgroup_set_limits(const struct cgroup_set *set, const struct box_limits *limits,
                      const struct box_limits *now);
/* v2: the folder to clone into, or -1. */
int cgroup_clone_fd(const struct cgroup_set *set);
/* Opens the files that a v1 child writes 0 to; ret ends with -1. */
int cgroup_open_joins(const struct cgroup_set *set, int ret[CG_COUNT + 1]);
/* Adds what the groups know; what they do not know stays as it is. */
void cgroup_usage(const struct cgroup_set *set, struct box_usage *usage);
/* Only the counters of refusals and kills, and CPU time where it is at hand. */
void cgroup_counters(const struct cgroup_set *set, struct box_usage *usage);
/* Gives back what earlier boxes of a slot left in its memory group: the page cache of their files.
 */
void cgroup_forget(const struct cgroup_set *set);
void cgroup_remove(struct cgroup_set *set);

/* Removes empty groups whose makers are gone (names end in their pid). */
void cgroup_sweep(const struct cgroup_base *base);
