/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which variables a box gets (C3, C4). A value goes into the record and nowhere else: plan->env,
 * which people see, has names only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "config/load.h"
#include "sandbox/scope_parts.h"

/*
 * The workspace is the isolated box's too: what is in it can be a trap for the program that is let
 * out (PROBES EX-15, EX-21). This closes the usual ones; the rule for where it may connect is the
 * network's.
 */
const char *const scope_routed_env[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "GIT_CONFIG_GLOBAL=/dev/null",
    "GIT_CONFIG_COUNT=5",
    "GIT_CONFIG_KEY_0=core.hooksPath",
    "GIT_CONFIG_VALUE_0=/dev/null",
    "GIT_CONFIG_KEY_1=core.fsmonitor",
    "GIT_CONFIG_VALUE_1=false",
    "GIT_CONFIG_KEY_2=core.pager",
    "GIT_CONFIG_VALUE_2=cat",
    "GIT_CONFIG_KEY_3=core.sshCommand",
    "GIT_CONFIG_VALUE_3=ssh",
    "GIT_CONFIG_KEY_4=protocol.ext.allow",
    "GIT_CONFIG_VALUE_4=never",
    "GIT_TERMINAL_PROMPT=0",
    "PAGER=cat",
    "GIT_PAGER=cat",
    "GH_PAGER=cat",
    "GH_PROMPT_DISABLED=1",
    NULL};

/* A later value takes the place of an earlier one of the same name. */
static void put(struct box_record *r, const char *name, const char *value)
{
    size_t n = strlen(name);
    char *entry;

    if (asprintf(&entry, "%s=%s", name, value) < 0)
        abort();
    for (size_t i = 0; r->env && r->env[i]; i++)
        if (strncmp(r->env[i], name, n) == 0 && r->env[i][n] == '=') {
            free(r->env[i]);
            r->env[i] = entry;
            return;
        }
    scope_add_text(&r->env, entry);
    free(entry);
}

static void note(struct scope_plan *p, const char *name, enum env_place place, enum env_result kind,
                 const char *why)
{
    p->env = realloc(p->env, (p->n_env + 1) * sizeof(*p->env));
    if (!p->env)
        abort();
    p->env[p->n_env] = (struct scope_env){.name = strdup(name),
                                          .place = place,
                                          .is_reference = kind != ENV_LITERAL,
                                          .is_missing = kind == ENV_MISSING,
                                          .why = why};
    if (!p->env[p->n_env++].name)
        abort();
}

/* A token of the gateway's under another name is still that. */
static bool names_reserved(const char *raw)
{
    char name[128];

    while (config_next_reference(&raw, name, sizeof(name)))
        if (policy_env_is_reserved(name))
            return true;
    return false;
}

/* `network_only`: an entry of networkDocker.env. */
static void add(const struct scope_request *q, struct scope_plan *p, const char *name,
                const char *raw, bool network_only)
{
    const bool allow_reserved = settings_bool(q->settings, SETTING_RESERVED_ENV);
    const bool dual = policy_is_dual(q->policy);
    /* The only box, if it has a network, is the box with a network. */
    const bool has_network = dual ? q->network : q->policy->network != NETWORK_NONE;
    autofree char *value = NULL;
    const char *why = NULL;
    enum env_result kind = config_env_value(q->config, raw, &value);
    enum env_place place =
        policy_env_place(q->policy, name, kind != ENV_LITERAL, allow_reserved, &why);

    if (place != ENV_NOWHERE && !allow_reserved && names_reserved(raw)) {
        place = ENV_NOWHERE;
        why = "it names a token of the gateway; dangerouslyAllowReservedEnv lets it in";
    }
    if (network_only && place == ENV_BOTH)
        place = ENV_NETWORK_ONLY;
    note(p, name, place, kind, why);
    if (place == ENV_NOWHERE)
        scope_warn(p, "variable %s is left out: %s", name, why ? why : "it is reserved");
    else if (value && (place == ENV_BOTH || has_network))
        put(p->record, name, value);
}

int scope_plan_env(const struct scope_request *q, struct scope_plan *p, struct error *err)
{
    const enum setting_id ids[] = {SETTING_ENV, SETTING_NETWORK_ENV};
    const char *name;
    json_t *value;

    for (size_t i = 0; i < 2; i++)
        json_object_foreach(q->settings->value[ids[i]], name, value)
        {
            if (!json_is_string(value))
                return error_set(err, ERR_INVALID, "%s.%s is not a string",
                                 settings_table[ids[i]].path, name);
            add(q, p, name, json_string_value(value), ids[i] == SETTING_NETWORK_ENV);
        }
    return 0;
}
