/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The sessions that the gateway works for: each has its workspace open, once and for all, and knows
 * its boxes. Boxes are made by a process of their own (a setup command may take its time), a few at
 * once; who needs one waits for it here.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "files/files.h"
#include "gateway/worker.h"
#include "loop/loop.h"
#include "policy/names.h"
#include "tool/jobs.h"

struct door;
struct doors;
struct error;
struct guard;
struct guard_agent;
struct pass;
struct sessions;

#define LIMIT_SESSIONS 4096u /* with an open workspace; the one that is idle longest makes room */
#define LIMIT_MAKERS   4u    /* boxes that are made at once */

/* Waits for a box. Embedded in whoever waits. */
struct box_wait {
    /* err is NULL when the box is there. May not free the session. */
    void (*on_box)(struct box_wait *w, struct job_box *box, const struct error *err);
    struct box_wait *next, **back; /* back NULL: it does not wait */
};
void box_wait_stop(struct box_wait *w);

/* Which of a session's boxes: bits. */
enum { BOX_NETWORK = 1, BOX_SIBLING = 2, SESSION_BOXES = 4 };

struct session_box {
    struct session *session;
    unsigned which;
    struct job_box *box; /* NULL: none is known */
    struct door *door;   /* out of it, or NULL */
    struct box_wait *waiting;
    struct session_box *queue; /* the next to be made */
    bool is_queued;
    struct worker maker;
    uint64_t made_for; /* the configuration, by its number */
};

struct session {
    struct sessions *all;
    struct session *next, **back;
    char key[NAMES_SESSION], agent[NAMES_AGENT];
    struct guard_agent *settings;
    int workspace;
    char mount[128];       /* what the box calls the workspace */
    char path[LIMIT_PATH]; /* what the host calls it */
    struct session_box boxes[SESSION_BOXES];
    struct worker sweeper; /* removes what a killed gateway has left in the workspace */
    struct loop_timer sweep;
    bool is_ending;
    uint64_t used_usec;
    unsigned users; /* calls that work in it: it stays until they are done */
};

/* doors: NULL for boxes without any. */
int sessions_new(struct loop *l, struct doors *doors, struct sessions **ret, struct error *err);
void sessions_free(struct sessions *all);
DEFINE_AUTOPTR(sessions)
size_t sessions_count(const struct sessions *all);
uint64_t sessions_boxes_made(const struct sessions *all);

/* The session of an admitted call, opened under the settings it was admitted under. */
int session_get(struct sessions *all, const struct pass *p, struct session **ret,
                struct error *err);
/* NULL: nobody has worked in it since we started. */
struct session *session_find(struct sessions *all, const char *key);
void session_root(const struct session *s, struct files_root *ret);
/* on_box() comes now or later. */
void session_box(struct session *s, unsigned which, struct box_wait *w);
/* Nobody listened there: it is looked for, or made, again. */
void session_lost_box(struct session *s, unsigned which);
/* The settings are other ones now. */
void sessions_reload(struct sessions *all, struct guard *g);
/* Removes its boxes (in a process of its own); the workspace stays. -errno. */
int sessions_end(struct sessions *all, const char *agent, const char *key);
