/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The configuration, what it comes to for one agent, and the policy made from that: what every
 * verb needs that answers a question about a call. */
#include "cmd/clawden/settings_args.h"
#include "policy/policy.h"

struct error;

#define DECISION_AGENT 65

struct decision {
    struct config *config;
    struct settings settings;
    struct policy policy;
    char agent[DECISION_AGENT];  /* asked for, or the session's, or main */
    char session[NAMES_SESSION]; /* asked for, or `last` of that agent */
    char main_session[NAMES_SESSION];
};

/* `last` is the end of the session's key when none is asked for: "main" gives agent:main:main. */
int decision_load(const struct settings_args *a, const char *last, struct decision *ret,
                  struct error *err);
void decision_done(struct decision *d);
#define auto_decision cleanup_(decision_done) struct decision

/* Prints that an older configuration is in force, and what is odd in the files. An agent reads what
 * its commands print: where one is run, odd things are told on a terminal only. */
void decision_say(const struct config *c, bool odd_things_to_people_only);
/* The call that was asked about; without one, *ret_asked is false. */
struct call decision_call(const struct decision *d, const struct settings_args *a, bool *ret_asked);
/* The key that would change the verdict, in the agent's own block if that is what decided. */
const char *decision_change(const struct decision *d, const struct verdict *v);
/* Adds verdict, route, rule, reason, change and, where it runs without a shell, argv. */
void decision_add_verdict(json_t *to, const struct decision *d, const struct verdict *v);
/* What may be shown of a value: literals of env maps and secrets are never. Owned by the caller. */
json_t *decision_visible(const struct setting *s, json_t *value);
