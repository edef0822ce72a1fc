/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The configuration: every file that says something about sandboxes, read, checked and merged.
 *
 * Layers, lowest first: preset, clawden.yaml (its `sandbox` block), openclaw.json
 * (`agents.defaults.sandbox`, `tools.sandbox.tools`), the profile's [extra_vars], -e, the agent's
 * own block in openclaw.json, --set. Nothing is half-applied: either every file is right, or none
 * of them counts and, where `remember` was given, what loaded last stays in force.
 *
 * ${VAR} is replaced in every string but those of env maps and of docker.setupCommand, which keep
 * it: who gets the value depends on it (C4), and a shell in the box puts in what the box has.
 * Variables come from the environment, then ~/.openclaw/.env, then /etc/openclaw/secrets.env;
 * $${VAR} is a literal ${VAR}.
 */
#include "base/cleanup.h"
#include "config/settings.h"

struct error;

struct config_inputs {
    const char *file;   /* openclaw.json; NULL: as the environment says, and none is fine */
    const char *preset; /* "strict", "dev"; NULL: CLAWDEN_PRESET, clawden.yaml, or strict */
    const char *const *overrides; /* each a word after -e; ends with NULL; or NULL */
    const char *const
        *what_if;  /* key=value: keys as in a sandbox block, tools.* for the tool policy */
    bool remember; /* keep what loads, and fall back on it when something is wrong */
};

struct config;

int config_load(const struct config_inputs *in, struct config **ret, struct error *err);
void config_free(struct config *c);
DEFINE_AUTOPTR(config)

/* What was odd but not wrong (a variable that is not set, a key that is ignored); NULL ends. */
const char *config_warning(const struct config *c, size_t i);
/* The files that were read, in order; NULL ends. */
const char *config_file(const struct config *c, size_t i);
/* Why an older configuration is in force, or NULL: the one on disk is. */
const char *config_fallback(const struct config *c);

/* Merged for this agent; an agent that no file names has the defaults. */
int config_for_agent(const struct config *c, const char *agent, struct settings *ret,
                     struct error *err);
/* The agents that openclaw.json names; NULL ends. */
const char *config_agent(const struct config *c, size_t i);
/* The folder an agent works in, absolute. */
int config_workspace(const struct config *c, const char *agent, char *ret, size_t size,
                     struct error *err);
/* The state folder: OPENCLAW_STATE_DIR, else ~/.openclaw. */
const char *config_state_dir(const struct config *c);
/* Sessions are global: the main one is called so. */
bool config_sessions_are_global(const struct config *c);

/* A variable's value, or NULL. */
const char *config_variable(const struct config *c, const char *name);

enum env_result {
    ENV_LITERAL,   /* no reference in it */
    ENV_REFERENCE, /* it names a variable; *ret is the value */
    ENV_MISSING,   /* it names one that is not set */
};
/* The value of an env entry. *ret is to be freed, and NULL when a variable is missing. */
enum env_result config_env_value(const struct config *c, const char *raw, char **ret);
/* The next ${NAME} in the text *at, whose name is then in `name` and which *at then stands behind;
 * false: there is none. */
bool config_next_reference(const char **at, char *name, size_t size);
