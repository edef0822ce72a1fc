/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files about scopes share: docker's words for a box's parts, read from settings. */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/scope.h"

/* A box of ours, whose hash we can compare; the client's own boxes have hashes of its own. */
#define LABEL_OURS "clawden.scope"
/* How mounts are laid out, as the client counts it: part of the hash, and of LABEL_MOUNTS. */
#define MOUNTS_VERSION 4

/* ---- scope_values.c: what JSON can write in several ways, by docker's rules (values.h) ---- */

/* "512m", "1.5g", "1048576", or a number. */
int scope_size(const json_t *value, uint64_t *ret_bytes, struct error *err);
/* 1024, "1024:2048", {"soft": 1024, "hard": 2048}. */
int scope_ulimit(const char *name, const json_t *value, struct box_ulimit *ret, struct error *err);

/* ---- lists that grow ---- */

void scope_add_text(char ***list, const char *text);
void scope_add_mount(struct box_record *r, struct box_mount m);
void scope_add_bind(struct box_record *r, const char *source, const char *target, bool read_only);
void scope_add_label(struct box_record *r, const char *name, const char *value);
void scope_warn(struct scope_plan *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- scope_env.c ---- */

/* Fills plan->env and the record's environment, without the image's. */
int scope_plan_env(const struct scope_request *q, struct scope_plan *p, struct error *err);

/* ---- scope_hash.c ---- */

/* The hash of what the box is made from: the same settings have the same hash, whatever the order
 * of keys in the files. `vault` is a bind, or NULL. Of variables it is told where they go too: that
 * depends on settings that are no part of a box, as the lists of what may use a network. */
int scope_hash(const struct settings *s, const char *workspace, const char *agent_workspace,
               const char *vault, const struct scope_env *env, size_t n_env, char ret[static 65],
               struct error *err);

/* ---- scope_setup.c ---- */

/* Runs it with `sh -lc` in the running box; a failure's text is its last line of output. */
int scope_run_setup(const struct box_record *r, const char *command, struct error *err);

/* ---- scope_plan.c ---- */

/* The folder that holds the boxes' own folders, absolute. */
int scope_workspace_root(const struct config *c, const struct settings *s, char *ret, size_t size,
                         struct error *err);
