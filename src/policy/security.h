/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Settings that would open a box, refused before there is one (OPENCLAW 9, and stricter).
 *
 * Pure: it looks at texts. That a bind's source is not a link to somewhere else is for whoever
 * opens it; he opens what was checked here, because only normalised paths pass.
 */
#include <stdbool.h>

struct error;
struct settings;

struct security_facts {
    const char *const *homes;                /* absolute, normalised; NULL ends; NULL: none */
    const char *const *secrets;              /* more that no box may see; the same */
    const char *workspace, *agent_workspace; /* absolute, normalised; NULL: none */
    bool multi_tenant;                       /* whatever the settings say about it */
};

/* The first thing that is wrong: "Sandbox security: <key> '<value>': <why>; <remedy>", one line.
 * ERR_DENIED: a rule says no; ERR_INVALID: it is not such a value. Values of variables are never
 * shown. */
int security_check(const struct settings *s, const struct security_facts *f, struct error *err);
/* A source once its links have been followed; `what` names it in the error. A workspace may lie
 * where a bind may not (root's is in /root), but not where secrets are. */
int security_check_real(const struct security_facts *f, const char *what, const char *path,
                        bool is_workspace, struct error *err);
