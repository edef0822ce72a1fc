/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The way out of a box (C48): a program in a box cannot make boxes, and need not. It connects to
 * DOOR_PATH, which is the gateway's, and gets what it asks for in a sibling: another box of the
 * same session, with the same workspace.
 *
 * Who may is decided by where the socket stands: whoever connects there is in that box, and is
 * nobody but its session. So each door has a token of its own (guard_door()), which no client ever
 * sees; the front gets it with each connection that came in by that door, and not before.
 */
#include "base/cleanup.h"

struct box_record;
struct door;
struct doors;
struct error;
struct guard;
struct guard_door;
struct loop;

#define DOOR_FOLDER "/run"
#define DOOR_NAME   "clawden.sock"
#define DOOR_PATH   DOOR_FOLDER "/" DOOR_NAME

struct doors_options {
    struct guard *guard; /* borrowed */
    int channel;         /* to the front: a connection and its token, a message each; ours */
    /* What that token has begun is to end. */
    void (*on_closed)(void *arg, const char *token);
    void *arg;
};

/* Takes the channel, also on failure. */
int doors_new(struct loop *l, const struct doors_options *o, struct doors **ret, struct error *err);
/* Every door has been closed. */
void doors_free(struct doors *all);
DEFINE_AUTOPTR(doors)

/* The door of this box, for calls of this session; whoever opens it twice closes it twice. NULL:
 * the box has no place for one, and is none the worse. */
struct door *door_open(struct doors *all, const struct box_record *r, const struct guard_door *who);
void door_close(struct door *d);
