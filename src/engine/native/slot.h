/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Slots: half-built boxes, ready before they are asked for.
 *
 * clawden-spawn (one per user, on demand) keeps a few slot processes. A slot has walked the
 * TEMPLATE stage of a plan once and PARK for its next box, whose init runs already and waits for a
 * command; the slot waits in accept() on the spawner's socket, so a request goes straight to it.
 * One connection is one box:
 *
 *   client                                   slot
 *   REQUEST                           ──►
 *                                     ◄──    TAKEN + cgroup folders [+ id map]
 *   [WORKSPACE + mapped tree]         ──►                                        (root only)
 *                                            WORK: mounts the workspace, sets this box's limits
 *                                     ◄──    STARTED + pidfd + init's control socket, or FAILED
 *   the command, to init                     … box lives; the connection closing kills it …
 *                                     ◄──    ENDED
 *
 * Until TAKEN arrives nothing has happened and the client may build the box in place instead; the
 * command itself travels over the control socket, which only STARTED brings, so it cannot run
 * twice. The socket stands in a 0700 folder of the user's; a spawner of another user or version is
 * not used.
 *
 * A berth is a slot for a live box, which nobody may own: it is the box's own first process,
 * stopped in the middle of its plan (after INSIDE) and waiting on a socket of its own. The request
 * brings the rest; the berth walks it and becomes init, and the spawner forgets it:
 *
 *   client                                   berth
 *   BERTH                             ──►
 *                                     ◄──    TAKEN + cgroup folders + pidfd of itself
 *   FITTINGS + text, socket, trees    ──►
 *                                            WORK and DROP; it is init now
 *                                     ◄──    end of file, or FAILED and its end
 */
#include <stdint.h>

#include "base/limits.h"
#include "engine/engine.h"

struct launch;

#define SLOT_SOCKET  "spawn.sock"
#define SLOT_LOCK    "spawn.lock"
#define BERTH_SOCKET "berth.sock"

enum slot_type {
    SLOT_REQUEST = 1,
    SLOT_TAKEN,
    SLOT_WORKSPACE,
    SLOT_STARTED,
    SLOT_FAILED,
    SLOT_ENDED,
    SLOT_REFUSED,
    SLOT_BERTH,
    SLOT_FITTINGS,
};

struct slot_request {
    uint32_t type;
    uint64_t build; /* both ends must be of one build: see slot_build_id() */
    struct box_limits limits;
    uint32_t workspace_ro, fresh_net;
    uint64_t ws_dev, ws_ino;
    char ws_path[LIMIT_PATH];
};

/* Asks for a berth. */
struct berth_request {
    uint32_t type;
    uint64_t build;
};

/* One place of a live box. Its strings stand in the text, one after the other in this order. */
struct berth_place {
    uint64_t dev, ino; /* of the source */
    uint64_t bytes;
    uint32_t mode;
    uint8_t has_source, is_dir, read_only, no_exec;
};

/*
 * What makes the box this one and no other. The text is a memfd of NUL-terminated strings: host
 * name, lines for /etc/hosts, then target and source of each place. Descriptors, in this order: the
 * text, the box's socket, what to hold (if any), and of each place with a source its tree (if the
 * box has a range of ids).
 */
struct berth_fittings {
    uint32_t type;
    uint32_t uid, gid;
    struct box_limits limits;
    uint64_t text_bytes;
    uint32_t n_places, n_rlimits, has_hold, has_trees, network;
    struct box_rlimit rlimits[LIMIT_RLIMITS];
    struct berth_place places[LIMIT_PLACES];
};

/* Descriptors before the trees, at most. */
#define BERTH_FDS (3 + LIMIT_PLACES)

struct slot_reply {
    uint32_t type;
    uint32_t range_base;            /* TAKEN: 0 in one-id mode */
    uint32_t cgroup_kind;           /* TAKEN: its folders follow as descriptors, memory pids cpu */
    uint32_t controllers;           /* TAKEN: which of them (bits) */
    struct box_limits limits;       /* TAKEN: what its cgroups have already */
    uint32_t limits_known;          /* TAKEN: whether that is so */
    uint32_t belts;                 /* STARTED, and TAKEN of a berth */
    int32_t sys;                    /* FAILED */
    uint64_t cpu_usec, max_rss_kib; /* ENDED */
    uint32_t tmp_is_full;           /* ENDED */
    char why[512];                  /* FAILED: the step */
};

/* The pids that a slot takes of the box's limit: itself. */
#define SLOT_PIDS 1

/* Identifies this build of the programs: init's hash and the shape of the structures above. */
uint64_t slot_build_id(void);

/* What a slot process inherits from the spawner. */
struct slot {
    int listener;
    int id_map;     /* files of 0:0 as the box's user; -1 in one-id mode */
    int cgroups[3]; /* memory pids cpu folders, -1 */
    uint32_t cgroup_kind;
    int notify;         /* a byte per change: '+' taken, '-' free again, '!' it is a box now */
    int id_lock;        /* berths: the box keeps its range by it; -1 */
    uint64_t tmp_bytes; /* scratch size of parked boxes */
};

/* Body of a slot: launch.main. Reports when it is ready, then serves until it is killed. */
int slot_main(struct launch *l, int report_fd);
/* Body of a berth: the same, but it serves one request and becomes that box's init. */
int berth_main(struct launch *l, int report_fd);
/* What all descriptors of a slot or berth are but these: closed. Moves them out of the way. */
void slot_keep_only(struct launch *l);
const struct slot *slot_get(void);
/* Set before launch_child. */
void slot_set(const struct slot *s);
