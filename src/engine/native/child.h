/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Walking a plan. Nothing here allocates, logs, decides or uses libc: it runs between clone and
 * exec, in memory shared with the program that cloned (base/sys.h). Everything is named by
 * descriptor or looked up beneath the new root without following links.
 */
#include "engine/native/plan.h"

/* What a walk knows: descriptors and the namespaces it can go back to. */
struct child_state {
    int root;   /* the box's root */
    int writer; /* the same tmpfs, writable; slots only */
    int trees[TREE_MAX];
    int maps_ready;             /* read end: a byte says that the parent has written the id maps */
    int control, init, report;  /* what init inherits, and where a failing step is told */
    int host_ns, template_ns, parked_ns, own_pid_ns; /* slots only */
    bool cold;
    bool fresh_net;  /* slots: the next box gets a new network namespace */
};

/* Told over the report pipe when a step fails; end-of-file means that init runs. */
struct step_report {
    uint32_t step;
    int32_t sys;
};

void child_state_init(struct child_state *st);

/* Walks the steps of stages first to last. Returns 0, or -errno with *ret_step set. */
int child_walk(struct child_state *st, const struct launch_plan *plan, enum stage first, enum stage last,
               uint32_t *ret_step);

/* Clones the tree at an absolute path whose object must be dev:ino (0: any); its descriptor or -errno. */
int child_clone_tree(const char *path, uint64_t dev, uint64_t ino, uint64_t attrs);
