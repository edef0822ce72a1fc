/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The sub-verbs of `clawden sandbox`, and what they have in common. */
#include <stdbool.h>

#include "cmd/clawden/settings_args.h"
#include "sandbox/scope.h"

int sandbox_explain(int argc, char **argv);
int sandbox_verb_list(int argc, char **argv);
/* `recreate` and `rm`: argv[0] says which. */
int sandbox_verb_remove(int argc, char **argv);
int sandbox_verb_prune(int argc, char **argv);
int sandbox_verb_exec(int argc, char **argv);
int sandbox_verb_start(int argc, char **argv);
int sandbox_verb_network(int argc, char **argv);

/* Is argv[i] --help or -h? */
bool sandbox_wants_help(const char *word);
/* An option that nobody knows: says so and returns the exit status. */
int sandbox_unknown(const char *verb, const char *word);

/* A box that OpenClaw or we made for a scope; with `browser`, one for its browser. */
bool sandbox_is_listed(const struct box_record *r, bool browser);
/* Its scope key, "" if it has none. */
const char *sandbox_key(const struct box_record *r);
/* The agent that its scope key names, "" if it names none. NAMES_AGENT bytes. */
void sandbox_agent(const struct box_record *r, char ret[static NAMES_AGENT]);
/* A scope key without the suffix that newer clients put behind it. NAMES_KEY bytes. */
void sandbox_plain_key(const char *key, char ret[static NAMES_KEY]);

/* The scope key of --session, by what the configuration says about scopes; "" if there is none. */
void sandbox_scope_asked(struct settings_args *a, char ret[static NAMES_KEY]);
/* Is the box one of those that --agent and --session name, where they are given? */
bool sandbox_is_asked(const struct box_record *r, const struct settings_args *a, const char *scope);

/* The configuration; says what is wrong with it, and what an older one in force means. */
int sandbox_load(struct settings_args *a, struct config **ret);
