/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of the native engine share about a box. Nobody outside includes this. */
#include "base/cleanup.h"
#include "engine/engine.h"
#include "engine/native/cgroup.h"
#include "engine/native/plan.h"

struct native_box {
    struct box box; /* first: the engine hands this out */
    int pidfd;
    int landlock; /* ABI that commands are put under, 0: none */
    bool workspace_ro;
    bool has_range;             /* init gives each command its user */
    char workspace[LIMIT_PATH]; /* as the box sees it */
    int slot_fd;                /* the connection to the slot that holds the box, or -1 */
    int id_lock;
    int sweeper; /* closing it lets the process go that removes our cgroups if we cannot */
    pid_t sweeper_pid;
    int tmp_fd; /* the box's scratch space, for its fill level; -1 in a slot, which tells it itself
                 */
    bool settled;
    bool ended; /* the command's end was told: init is on its way out */
    bool dead;
    const struct box_live *live; /* borrowed from whoever attached */
    struct cgroup_base base;
    struct cgroup_set groups;
    struct box_usage at_start; /* counters that a slot's group had before */
    struct box_usage final;
    char failure[512]; /* why a slot's box never had an init, or "" */
};

struct native_box *native_box_new(void);
void native_box_free(struct native_box *nb);
DEFINE_AUTOPTR(native_box)

/* Which grade each limit gets, and whether that is enough; refuses with the remedy if not. */
int native_grade(const struct box_spec *spec, const struct cgroup_base *base,
                 const struct host_facts *facts, enum grade grades[LIMIT_KINDS], struct error *err);
/* What exec() will put commands under. */
void native_set_landlock(struct native_box *nb, const struct box_spec *spec, int abi,
                         const char *workspace);
/* The controllers that the limits of a box need: bits of 1 << CG_*. */
unsigned native_controllers(const struct box_limits *l);

/* Makes the box in this process. */
int native_start_here(const struct box_spec *spec, struct native_box *nb, struct error *err);
/* Takes a ready slot. 1: done; 0: none to be had, build it in place; negative: an error. */
int slot_client_start(const struct box_spec *spec, struct native_box *nb, struct error *err);
/* Waits for init to be there. */
int slot_client_settle(struct native_box *nb, struct error *err);
/* Waits for the slot's last word about the box. */
void slot_client_finish(struct native_box *nb);
/* Starts a spawner for the next time, if there is none. */
void slot_client_wake(void);

/* What both kinds of clients share. */
#define SLOT_TAKEN_MS   50 /* a slot that is free answers in microseconds; after this it is not */
#define SLOT_STARTED_MS 10000 /* building is bounded too: one that hangs is an error, not a wait \
                               */
struct slot_reply;
int slot_connect(const char *name);
bool slot_wait(int fd, int ms);
/* The pid as this process sees it; a slot only knows its own view. */
pid_t slot_pid_of(int pidfd);
/* The descriptors of TAKEN: cgroup folders in order go to nb; returns the one after them or -1. */
int slot_sort_taken(const struct slot_reply *r, int *fds, struct native_box *nb);
/* Which grades this slot can give; false if they are not enough: the reason is found in place. */
bool slot_grade(const struct box_spec *spec, struct native_box *nb, struct error *err);
/* Lets go of a slot that is not used after all. */
void slot_forget(struct native_box *nb);

/* A live box from a berth; as slot_client_start. */
int berth_client_start(const struct box_spec *spec, struct native_box *nb, struct error *err);
/* The trees of the places of a live box, for a box whose ids begin at `base`. */
int native_map_places(const struct box_spec *spec, uint32_t base, int *ret_trees,
                      struct error *err);
/* What a live box's cgroups have to allow. */
struct box_limits native_group_limits(const struct box_spec *spec);

/* live.c: boxes that outlive whoever made them; see engine_ops. */
void live_leave(struct box *b, struct box_live *ret);
int live_attach(int folder, const struct box_live *live, struct box **ret, struct error *err);
int live_kill(struct native_box *nb);
/* For usage(): only who asks pays for it. */
void live_open_groups(struct native_box *nb);
int live_end(struct box *b, const struct box_live *live, struct error *err);
void live_sweep(void);
