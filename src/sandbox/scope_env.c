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
