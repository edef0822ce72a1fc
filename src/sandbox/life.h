/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of this folder share about a box that is being used. */
#include "sandbox/record.h"

/* A box's folder, and what its last start left to know. */
struct hold {
    int folder, lock; /* lock: -1 unless taken */
    bool was_started;
    struct box_last last;
};

#define HOLD_EMPTY               \
    {                            \
        .folder = -1, .lock = -1 \
    }

int hold_open(const struct box_record *r, bool locked, struct hold *h, struct error *err);
void hold_close(struct hold *h);
#define autohold cleanup_(hold_close) struct hold

/* A connection to it; -ERR_NOT_FOUND if it does not run. */
int hold_attach(const struct hold *h, struct box **ret, struct error *err);
/* Is its init stopped by a pause? */
bool life_is_paused(pid_t init_pid);

/* Makes the box and its init, with no command; the lock is held. */
int life_begin(const struct box_record *r, struct hold *h, struct error *err);
/* Ends it, whatever runs, and writes down how; the lock is held. */
int life_end(struct hold *h, int exit_code, struct error *err);

bool life_only_waits(const struct box_record *r);

/* ---- exec.c ---- */

/* Environment of a command: the box's own, then `more`. */
char **exec_environment(const struct box_record *r, char *const *more, const char *home,
                        bool terminal);

/* ---- network.c ---- */

/* Its init runs: sockets for its network, published ports, and all of it to the relay. The lock is
 * held. */
int network_begin(const struct box_record *r, struct hold *h, pid_t init, struct error *err);
/*
 * A command begins in the running box `init`: *ret_fd is to be closed when it has ended (-1: the
 * box has no network). A box that the relay does not know any more is brought to it again.
 */
int network_use(const struct box_record *r, pid_t init, const char *call, int *ret_fd,
                struct error *err);

/* ---- keeper.c ---- */

bool keeper_is_needed(const struct box_record *r, const struct box_last *last);
/*
 * Starts the main command with its output going to the log, and a process of its own that waits for
 * its end and keeps the limits that the kernel does not keep. with_main false: only the latter.
 */
int keeper_start(const struct box_record *r, struct hold *h, bool with_main, struct error *err);
