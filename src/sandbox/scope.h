/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The box of a scope. A scope key (policy/names.h) names one box, and a second one, `-net`, for the
 * calls that need a network; whoever asks first makes it. Each has a sibling, `-sib`, with the same
 * folders and settings, for those who are in a box already and want one. What a box was made from
 * is in its label `openclaw.configHash`: when the configuration says something else by now the box
 * is made anew, unless it was used in the last five minutes, because then somebody is at work in
 * it.
 */
#include "base/cleanup.h"
#include "base/limits.h"
#include "policy/policy.h"
#include "sandbox/sandbox.h"

struct config;
struct error;
struct settings;

#define SCOPE_HOT_USEC (5 * 60 * 1000000ll)

/*
 * What a box of this network may reach: `allowlist` what egress.allow names, every other one the
 * public internet as well. NULL for `none`. An error names the entry and its key.
 */
int scope_wish(const struct settings *s, const char *network, struct wish **ret, struct error *err);

/* What labels our boxes have in common with OpenClaw's. */
#define LABEL_SANDBOX "openclaw.sandbox"
#define LABEL_SESSION "openclaw.sessionKey"
#define LABEL_HASH    "openclaw.configHash"
#define LABEL_CREATED "openclaw.createdAtMs"
#define LABEL_MOUNTS  "openclaw.mountFormatVersion"
#define LABEL_BROWSER "openclaw.sandboxBrowser"

struct scope_request {
    const struct config *config;
    const struct settings *settings;
    const struct policy *policy;
    const char *agent, *session;
    bool network; /* the box with a network, where there are two */
    bool sibling; /* the one beside it, for what a command in it asks for (C48) */
};

/* One entry of the box's environment, for explain: never with its value. */
struct scope_env {
    char *name;
    enum env_place place;
    bool is_reference, is_missing;
    const char *why; /* NULL, or why it goes nowhere */
};

/* What the box of a scope is to be; nothing is made yet. */
struct scope_plan {
    char key[NAMES_KEY], name[NAMES_BOX], slug[NAMES_SLUG];
    char hash[65];
    char workspace[LIMIT_PATH];       /* the host's folder that is /workspace */
    char agent_workspace[LIMIT_PATH]; /* the agent's own folder */
    struct box_record *record;        /* as sandbox_create() wants it */
    char *setup_command;              /* or NULL */
    struct scope_env *env;
    size_t n_env;
    char **warnings; /* NULL-terminated, or NULL */
};

/* Checks the security rules (policy/security.h); their text is the error. */
int scope_plan_make(const struct scope_request *q, struct scope_plan **ret, struct error *err);
void scope_plan_free(struct scope_plan *p);
DEFINE_AUTOPTR(scope_plan)

/* Finds, makes or makes anew, and starts the box. *ret_note: what the person should know (the box
 * is older than its configuration), or NULL; both are to be freed. */
int scope_box(struct scope_plan *plan, struct box_record **ret, char **ret_note, struct error *err);

/* The host's folder that is /workspace in the box, made if it is missing: its descriptor. */
int scope_open_workspace(const struct scope_plan *plan, struct error *err);

/*
 * What a command gets on top that is routed to the network by its name: its program is looked for
 * in the box's own folders, whatever docker.env says of PATH, and git runs nothing that a
 * repository's configuration names. NULL-terminated.
 */
extern const char *const scope_routed_env[];

/* The value of a label, or NULL. */
const char *scope_label(const struct box_record *r, const char *name);
