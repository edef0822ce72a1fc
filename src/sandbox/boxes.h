/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The folders of boxes:
 *
 *   boxes/<id>/  box.json  state.json (last start)  egress.json (changed rules)  init.sock  lock
 * log boxes/tmp-…  a creation under way, or what is left of one names/<name> -> <id>
 *
 * Whoever changes a box (starts, stops, removes it) holds its lock. Running commands in it takes no
 * lock: the box's socket is the only thing that is needed.
 */
#include "sandbox/record.h"

/* A name that a box may have: as docker's, [a-zA-Z0-9][a-zA-Z0-9_.-]+, at most 128 bytes. */
bool boxes_name_is_valid(const char *name);
bool boxes_is_id(const char *text);

/* The folder `boxes`, made if missing. */
int boxes_open(struct error *err);
/* The folder of a box; -ERR_NOT_FOUND if it is gone. */
int boxes_open_box(const char *id, struct error *err);
/* Waits for the lock of a box's folder; closing it lets go. */
int boxes_lock(int folder, struct error *err);

/* Puts a complete folder there under r->id and gives it its name. */
int boxes_add(const struct box_record *r, struct error *err);
/* Takes the name away, then the folder. The lock is held by the caller. */
int boxes_drop(const struct box_record *r, struct error *err);
/* Removes what killed programs have left. */
void boxes_sweep(void);

int boxes_resolve(const char *ref, char id[65], struct error *err);
int boxes_load(const char *id, struct box_record **ret, struct error *err);
/* -ERR_NOT_FOUND if it was never started. */
int boxes_load_last(int folder, struct box_last *ret, struct error *err);
int boxes_save_last(int folder, const struct box_last *l, struct error *err);
/* Rules that were changed since the box was created, and those that settings gave it last;
 * -ERR_NOT_FOUND if it has none. */
#define RULES_NOW        "egress.json"
#define RULES_CONFIGURED "egress-configured.json"
int boxes_load_rules(int folder, const char *name, struct wish **ret, struct error *err);
int boxes_save_rules(int folder, const char *name, const struct wish *w, struct error *err);

/* Calls fn for each id; stops at the first result that is not 0 and returns it. */
int boxes_each(int (*fn)(void *arg, const char *id), void *arg, struct error *err);
