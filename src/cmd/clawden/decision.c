/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/clawden/decision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "config/config.h"

static int choose_names(const struct settings_args *a, const char *last, struct decision *d,
                        struct error *err)
{
    char of_session[NAMES_AGENT] = "", spelled[NAMES_AGENT] = "";
    const char *agent =
        a->agent && strlen(a->agent) < sizeof(spelled) && names_agent(a->agent, spelled) >= 0
            ? spelled
            : a->agent;

    if (a->session)
        (void)names_agent_of(a->session, of_session, sizeof(of_session));
    if (agent && of_session[0] && strcmp(agent, of_session) != 0)
        return error_set(err, ERR_INVALID, "--agent '%s' and --session '%s' name two agents",
                         a->agent, a->session);
    if ((size_t)snprintf(d->agent, sizeof(d->agent), "%s",
                         agent           ? agent
                         : of_session[0] ? of_session
                                         : "main") >= sizeof(d->agent))
        return error_set(err, ERR_INVALID, "--agent: more than %d characters", DECISION_AGENT - 1);
    if (a->session && strlen(a->session) >= sizeof(d->session))
        return error_set(err, ERR_INVALID, "--session: more than %d characters", NAMES_SESSION - 1);
    if (a->session)
        (void)snprintf(d->session, sizeof(d->session), "%s", a->session);
    else
        (void)snprintf(d->session, sizeof(d->session), "agent:%s:%s", d->agent, last);
    return 0;
}

int decision_load(const struct settings_args *a, const char *last, struct decision *ret,
                  struct error *err)
{
    int r;

    *ret = (struct decision){0};
    r = choose_names(a, last, ret, err);
    if (r >= 0)
        r = config_load(&a->in, &ret->config, err);
    if (r >= 0)
        r = config_for_agent(ret->config, ret->agent, &ret->settings, err);
    if (r >= 0)
        r = policy_make(&ret->settings, config_sessions_are_global(ret->config), &ret->policy, err);
    if (r < 0) {
        decision_done(ret);
        return r;
    }
    /* Whoever makes a box asks the process's own setting; a file can only make it stricter. */
    if (settings_bool(&ret->settings, SETTING_MULTI_TENANT))
        (void)setenv(config_setting(CONFIG_MULTI_TENANT)->variable, "1", 1);
    if (config_sessions_are_global(ret->config))
        (void)snprintf(ret->main_session, sizeof(ret->main_session), "global");
    else
        (void)snprintf(ret->main_session, sizeof(ret->main_session), "agent:%s:main", ret->agent);
    return 0;
}

void decision_done(struct decision *d)
{
    policy_done(&d->policy);
    settings_done(&d->settings);
    config_free(d->config);
    d->config = NULL;
}

void decision_say(const struct config *c, bool odd_things_to_people_only)
{
    const char *text;

    if (config_fallback(c))
        log_warn("%s", config_fallback(c));
    if (odd_things_to_people_only && !isatty(STDERR_FILENO))
        return;
    for (size_t i = 0; (text = config_warning(c, i)); i++)
        log_warn("%s", text);
}

struct call decision_call(const struct decision *d, const struct settings_args *a, bool *ret_asked)
{
    *ret_asked = a->tool || a->command;
    return (struct call){.agent = d->agent,
                         .session = d->session,
                         .tool = a->tool ? a->tool : "exec",
                         .command = a->command};
}

const char *decision_change(const struct decision *d, const struct verdict *v)
{
    char full[128];

    for (size_t i = 0; v->change && i < SETTINGS; i++)
        if (d->settings.from[i].kind == ORIGIN_AGENT && d->settings.from[i].path &&
            strcmp(setting_full_path(&settings_table[i], full, sizeof(full)), v->change) == 0)
            return d->settings.from[i].path;
    return v->change;
}

void decision_add_verdict(json_t *to, const struct decision *d, const struct verdict *v)
{
    const char *change = decision_change(d, v);

    json_object_set_new(to, "tool", json_string(v->tool));
    json_object_set_new(to, "verdict", json_string(v->allowed ? "allow" : "deny"));
    json_object_set_new(to, "route", v->allowed ? json_string(route_name(v->route)) : json_null());
    json_object_set_new(to, "rule", json_string(v->rule));
    json_object_set_new(to, "reason", json_string(v->reason));
    json_object_set_new(to, "change", change ? json_string(change) : json_null());
    if (v->approve[0])
        json_object_set_new(to, "approve", json_string(v->approve));
    if (v->argv.n) {
        json_t *argv = json_array();

        for (size_t i = 0; i < v->argv.n; i++)
            json_array_append_new(argv, json_string(v->argv.argv[i]));
        json_object_set_new(to, "argv", argv);
    }
}

static bool is_env(const struct setting *s)
{
    return s == &settings_table[SETTING_ENV] || s == &settings_table[SETTING_NETWORK_ENV] ||
           s == &settings_table[SETTING_BROWSER_ENV];
}

/* Nothing but ${NAME}: what stands beside a reference may be a secret too. */
static bool is_reference(const char *raw)
{
    char name[64];
    const char *at = raw;

    return raw[0] == '$' && config_next_reference(&at, name, sizeof(name)) && !*at &&
           !strchr(raw + 1, '$');
}

json_t *decision_visible(const struct setting *s, json_t *value)
{
    const char *key;
    json_t *e, *shown;

    if (s->kind == SETTING_SECRET)
        return json_string("(kept)");
    if (!is_env(s))
        return json_incref(value);
    shown = json_object();
    json_object_foreach(value, key, e) json_object_set_new(
        shown, key, is_reference(json_string_value(e)) ? json_incref(e) : json_string("(literal)"));
    return shown;
}
