/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * May this call run, and where? One pure function: same policy, same call, same answer; no files,
 * no clock, no environment.
 *
 * A policy is what the settings of one agent come to. A verdict carries its rule, the reason in
 * words, and the key of the configuration that would change it.
 */
#include <stdbool.h>
#include <stddef.h>

#include "policy/names.h"
#include "policy/words.h"

struct error;
struct settings;

enum policy_mode { MODE_OFF, MODE_NON_MAIN, MODE_ALL };
enum policy_access { ACCESS_NONE, ACCESS_RO, ACCESS_RW };
enum policy_network {
    NETWORK_NONE,
    NETWORK_BRIDGE,
    NETWORK_ALLOWLIST,
    NETWORK_HOST,
    NETWORK_OTHER
};

/* A list of the configuration: its words (lower case, trimmed, not empty) and where it came from.
 */
struct policy_list {
    char **words; /* owned, NULL-terminated; NULL is the empty list */
    size_t n;
    const char *key; /* the full path that changes it */
    bool configured; /* by a file, not by a preset */
};

struct policy {
    bool enabled;
    enum policy_mode mode;
    enum scope scope;
    enum policy_access access;
    bool sessions_are_global;
    enum policy_network network, second;  /* of the isolated box and of the one with a network */
    struct policy_list allow, also, deny; /* tool policy, as resolved (OPENCLAW 6.2) */
    struct policy_list network_allow, network_exec;
    struct policy_list approve; /* tools, and command lines as exec:PATTERN */
};

int policy_make(const struct settings *s, bool sessions_are_global, struct policy *ret,
                struct error *err);
void policy_done(struct policy *p);

/* One tool call. */
struct call {
    const char *agent, *session;
    const char *tool;    /* as asked for: aliases are resolved here */
    const char *command; /* of exec; may be NULL */
};

enum route { ROUTE_DIRECT, ROUTE_ISOLATED, ROUTE_NETWORK };

struct verdict {
    bool allowed;
    enum route route;
    bool second_box;    /* it runs in the `-net` box of the scope */
    struct words argv;  /* not empty: executed as these words, without a shell */
    char tool[64];      /* its canonical name */
    char rule[160];     /* what decided: "networkExecAllow 'gh'" */
    char reason[256];   /* a sentence for people */
    const char *change; /* the key that would change it; NULL: none would */
    /* Of a call that is allowed: the entry of `approve` that wants a person's yes first, and why it
     * is meant; "" if none does. */
    char approve[160], approve_why[160];
};

/* Never fails: what it does not understand is denied or isolated. */
void policy_decide(const struct policy *p, const struct call *c, struct verdict *ret);
void verdict_done(struct verdict *v);
const char *route_name(enum route r);
/* The key of the list that verdict.approve is from. */
#define POLICY_APPROVE_KEY "agents.defaults.sandbox.approve"

/* Does this session run in a box at all? *ret_why says what decided. */
bool policy_is_sandboxed(const struct policy *p, const char *agent, const char *session,
                         const char **ret_rule);
/* Are there two boxes per scope, one of them with a network? */
bool policy_is_dual(const struct policy *p);

/* The canonical name: lower case, trimmed, aliases resolved. */
void policy_tool_name(const char *tool, char *ret, size_t size);

/* ---- environment (C3, C4) ---- */

enum env_place {
    ENV_BOTH,         /* every box of the scope */
    ENV_NETWORK_ONLY, /* the box with a network */
    ENV_NOWHERE,      /* reserved, or not a name */
};

/* Where an entry of docker.env goes. `is_reference`: it was written as ${VAR}. */
enum env_place policy_env_place(const struct policy *p, const char *name, bool is_reference,
                                bool allow_reserved, const char **ret_why);
bool policy_env_is_secret(const char *name);
bool policy_env_is_reserved(const char *name);
