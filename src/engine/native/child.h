/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Walking a plan. Nothing here allocates, logs, decides or uses libc: it runs between clone and
 * exec, in memory shared with the program that cloned (base/sys.h).
 *
 * I1: a path that leads into a tree from outside (an image, the host, the workspace) is looked up
 * with openat2, beneath the root, without following any link. Plain lookups are made only in
 * folders of the tmpfs that the plan itself has just made.
 */
#include "engine/native/plan.h"

/* What a walk knows: descriptors and the namespaces it can go back to. */
struct child_state {
    int root;   /* the box's root */
    int writer; /* the same tmpfs, writable; slots only */
    int trees[TREE_MAX];
    int maps_ready;  /* read end: a byte says that the parent has written the id maps */
    int maps_writer; /* the child's copy of the other end: closed, or a dead parent is not noticed
                      */
    int control, init, report; /* what init inherits, and where a failing step is told */
    int locks[2]; /* also inherited: a live box holds its ids and its image by them; -1 */
    int host_ns, template_ns, parked_ns, own_pid_ns; /* slots only */
    uint16_t made[48]; /* lengths of the paths that OP_DIRS made on the writable handle */
    uint32_t n_made;
    int target; /* whose limits are set: 0 for oneself, or the pid of a parked init */
    bool cold;
    bool fresh_net;  /* slots: the next box gets a new network namespace */
    bool net_is_new; /* slots: no box has had the one that is parked */
};

/* Told over the report pipe when a step fails; end-of-file means that init runs. */
struct step_report {
    uint32_t step;
    int32_t sys;
};

void child_state_init(struct child_state *st);

/* Walks the steps of stages first to last. Returns 0, or -errno with *ret_step set. */
int child_walk(struct child_state *st, const struct launch_plan *plan, enum stage first,
               enum stage last, uint32_t *ret_step);

/* Keeps the namespace with the host's mounts (st->host_ns), and goes on in a copy of it. */
int child_split_host(struct child_state *st);
/* The mount namespace we stand in, to come back to. */
int child_open_mounts(void);

/* A network namespace of its own, with its loopback up. */
int child_new_net(void);

/* Takes away what OP_DIRS made for a box that is gone. */
void child_unmake_dirs(struct child_state *st, const char *path);

/* Clones the tree at an absolute path whose object must be dev:ino (0: any); its descriptor or
 * -errno. */
int child_clone_tree(const char *path, uint64_t dev, uint64_t ino, uint64_t attrs);
