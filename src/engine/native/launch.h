/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Cloning a child that walks a plan. The child shares our memory until it executes init, and is
 * killed and reaped if it does not get that far; the failing step is named.
 */
#include <sys/types.h>

#include "engine/native/child.h"

struct error;

struct launch {
    const struct launch_plan *plan;
    struct host_facts *facts;
    struct child_state state;
    int cgroup_fd; /* v2: born in this group; else -1 */
    int (*main)(struct launch *l,
                int report_fd); /* what the child does; NULL: all stages, then init */
};

/* A sealed copy of clawden-init; its descriptor. */
int launch_init_image(struct error *err);

/* Starts the child: *ret_pid is ours to reap, *ret_pidfd to close. */
int launch_child(struct launch *l, pid_t *ret_pid, int *ret_pidfd, struct error *err);

/* "mount a fresh proc on '/proc': Operation not permitted (remedy)". */
int launch_error(struct error *err, const struct launch_plan *plan, const struct step_report *rep);
