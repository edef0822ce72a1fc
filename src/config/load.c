/* SPDX-License-Identifier: Apache-2.0 */
#include "config/load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "config/internal.h"

/* ---- making and freeing ---- */

static struct config *config_new(void)
{
    struct config *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    for (size_t i = 0; i < SOURCES; i++)
        c->top[i] = SIZE_MAX;
    c->variables = json_object();
    return c;
}

static void variables_done(struct variables *v)
{
    settings_done(&v->set);
    json_decref(v->extra[0]);
    json_decref(v->extra[1]);
}

static void layers_done(struct config *c)
{
    settings_done(&c->preset_values);
    settings_done(&c->yaml);
    settings_done(&c->defaults);
    settings_done(&c->what_if);
    variables_done(&c->profile);
    variables_done(&c->overrides);
    for (size_t i = 0; i < c->n_agents; i++) {
        free(c->agents[i].id);
        free(c->agents[i].workspace);
        settings_done(&c->agents[i].own);
    }
    free(c->agents);
    free(c->workspace);
}

void config_free(struct config *c)
{
    if (!c)
        return;
    layers_done(c);
    for (size_t i = 0; i < c->n_sources; i++) {
        free(c->sources[i].name);
        free(c->sources[i].canonical);
        free(c->sources[i].text);
        json_decref(c->sources[i].value);
    }
    free(c->sources);
    for (size_t i = 0; i < c->n_inclusions; i++)
        json_decref(c->inclusions[i].site);
    free(c->inclusions);
    for (size_t i = 0; i < SOURCES; i++)
        json_decref(c->parts[i]);
    json_decref(c->variables);
    for (size_t i = 0; i < c->n_kept; i++)
        free(c->kept[i]);
    free(c->kept);
    for (size_t i = 0; i < c->n_warnings; i++)
        free(c->warnings[i]);
    free(c->fallback);
    free(c);
}

/* ---- merging ---- */

static void put(struct settings *ret, size_t id, json_t *v, const struct origin *from)
{
    json_t *old = ret->value[id], *sum = NULL;

    if (old && settings_table[id].merge == MERGE_KEYS) {
        sum = json_copy(old);
        (void)json_object_update(sum, v);
    } else if (old && settings_table[id].merge == MERGE_CONCAT) {
        sum = json_copy(old);
        (void)json_array_extend(sum, v);
    }
    ret->value[id] = sum ? sum : json_incref(v);
    ret->from[id] = *from;
    json_decref(old);
}

static void put_layer(struct settings *ret, const struct settings *layer)
{
    for (size_t i = 0; i < SETTINGS; i++)
        if (layer->value[i])
            put(ret, i, layer->value[i], &layer->from[i]);
}

static bool has_text(const json_t *list, const json_t *text)
{
    size_t i;
    json_t *v;

    json_array_foreach(list, i, v) if (json_equal(v, text)) return true;
    return false;
}

static void put_variables(struct settings *ret, const struct variables *v)
{
    static const enum setting_id lists[2] = {SETTING_NETWORK_ALLOW, SETTING_NETWORK_EXEC_ALLOW};

    put_layer(ret, &v->set);
    for (size_t i = 0; i < 2; i++) {
        json_t *old = ret->value[lists[i]], *sum, *one;
        size_t k;

        if (!json_array_size(v->extra[i]))
            continue;
        sum = old ? json_copy(old) : json_array();
        json_array_foreach(v->extra[i], k, one) if (!has_text(sum, one))(void)
            json_array_append(sum, one);
        ret->value[lists[i]] = sum;
        ret->from[lists[i]] = v->extra_from[i];
        json_decref(old);
    }
}

static const struct agent *find_agent(const struct config *c, const char *id)
{
    for (size_t i = 0; i < c->n_agents; i++)
        if (agent_is_same(c->agents[i].id, id))
            return &c->agents[i];
    return NULL;
}

static bool scope_is_shared(const struct settings *s)
{
    const char *scope = settings_text(s, SETTING_SCOPE);

    return scope && strcmp(scope, "shared") == 0;
}

/* The scope is settled first: with a shared box, what one agent wants of it does not count. */
static void put_agent(struct settings *ret, const struct settings *own,
                      const struct settings *what_if)
{
    const struct settings *says = what_if->value[SETTING_SCOPE] ? what_if
                                  : own->value[SETTING_SCOPE]   ? own
                                                                : ret;
    bool shared = scope_is_shared(says);

    for (size_t i = 0; i < SETTINGS; i++)
        if (own->value[i] && !(shared && settings_table[i].shared_ignores))
            put(ret, i, own->value[i], &own->from[i]);
}

int config_for_agent(const struct config *c, const char *agent, struct settings *ret,
                     struct error *err)
{
    const struct agent *a = find_agent(c, agent);

    (void)err; /* everything was checked when it was loaded */
    *ret = (struct settings){0};
    put_layer(ret, &c->preset_values);
    put_layer(ret, &c->yaml);
    put_layer(ret, &c->defaults);
    put_variables(ret, &c->profile);
    put_variables(ret, &c->overrides);
    if (a)
        put_agent(ret, &a->own, &c->what_if);
    put_layer(ret, &c->what_if);
    return 0;
}

/* ---- loading ---- */

static int build_preset(struct config *c, const char *asked, struct error *err)
{
    const char *env = getenv("CLAWDEN_PRESET"), *yaml = clawden_yaml_preset(c);
    const char *name = asked ? asked : env && env[0] ? env : yaml ? yaml : "strict";
    bool strict = strcmp(name, "strict") == 0;

    if (!strict && strcmp(name, "dev") != 0)
        return error_set(err, ERR_INVALID, "%s '%s': must be one of strict|dev",
                         asked ? "--preset" : "CLAWDEN_PRESET", name);
    c->preset = strict ? "strict" : "dev";
    for (size_t i = 0; i < SETTINGS; i++) {
        const char *text = strict ? settings_table[i].strict : settings_table[i].dev;

        if (!text)
            continue;
        c->preset_values.value[i] = json_loads(text, JSON_DECODE_ANY, NULL);
        c->preset_values.from[i] = (struct origin){.kind = ORIGIN_PRESET, .path = c->preset};
    }
    return 0;
}

static void warn_of_shared(struct config *c)
{
    for (size_t k = 0; k < c->n_agents; k++) {
        struct settings all = {0};
        struct error err;
        const char *ignored = NULL;

        for (size_t i = 0; i < SETTINGS && !ignored; i++)
            if (settings_table[i].shared_ignores && c->agents[k].own.value[i])
                ignored = settings_table[i].path;
        if (ignored && config_for_agent(c, c->agents[k].id, &all, &err) >= 0 &&
            scope_is_shared(&all))
            config_warn(c, "agent '%s': its scope is shared, so '%s' and the like are ignored",
                        c->agents[k].id, ignored);
        settings_done(&all);
    }
}

static int read_files(struct config *c, struct error *err)
{
    int r = openclaw_read(c, err);

    if (r >= 0)
        r = clawden_yaml_read(c, err);
    if (r >= 0)
        r = profile_read(c, err);
    return r < 0 ? r : env_files_read(c, err);
}

static int build(struct config *c, const struct config_inputs *in, struct error *err)
{
    int r = clawden_yaml_build(c, err);

    if (r >= 0)
        r = build_preset(c, in->preset, err);
    if (r >= 0)
        r = openclaw_build(c, err);
    if (r >= 0)
        r = profile_build(c, err);
    if (r >= 0)
        r = overrides_build(c, in->overrides, err);
    if (r >= 0)
        r = what_if_build(c, in->what_if, err);
    if (r >= 0)
        warn_of_shared(c);
    return r;
}

static int load_files(const struct config_inputs *in, struct config **ret, struct error *err)
{
    autoptr(config) c = config_new();
    struct error late;
    int r;

    if (!c)
        return error_sys(err, -ENOMEM, "read the configuration");
    r = config_find_paths(c, in->file, err);
    if (r >= 0)
        r = read_files(c, err);
    if (r >= 0)
        r = build(c, in, err);
    if (r < 0)
        return r;
    if (in->remember && last_good_write(c, &late) < 0)
        config_warn(c, "%s", late.msg);
    *ret = TAKE_PTR(c);
    return 0;
}

/* What loaded last, with why: the reason that the files do not count. */
static int load_remembered(const struct config_inputs *in, const char *why, struct config **ret,
                           struct error *err)
{
    autoptr(config) c = config_new();
    long long when = 0;
    char date[32] = "";
    struct tm tm;
    time_t t;
    int r;

    if (!c)
        return error_sys(err, -ENOMEM, "read the configuration");
    r = config_find_paths(c, in->file, err);
    if (r >= 0)
        r = last_good_read(c, &when, err);
    if (r < 0)
        return r;
    if (env_files_read(c, err) < 0)
        config_warn(c, "%s", err->msg);
    r = build(c, in, err);
    if (r < 0)
        return r;
    t = (time_t)when;
    if (localtime_r(&t, &tm))
        (void)strftime(date, sizeof(date), "%Y-%m-%d %H:%M", &tm);
    if (asprintf(&c->fallback, "%s; the configuration of %s stays in force", why, date) < 0)
        c->fallback = NULL;
    if (!c->fallback)
        return error_sys(err, -ENOMEM, "read the configuration");
    *ret = TAKE_PTR(c);
    return 0;
}

int config_load(const struct config_inputs *in, struct config **ret, struct error *err)
{
    struct error second;
    int r = load_files(in, ret, err);

    if (r < 0 && in->remember && load_remembered(in, err->msg, ret, &second) >= 0)
        return 0;
    return r;
}

/* ---- asking ---- */

const char *config_warning(const struct config *c, size_t i)
{
    return i < c->n_warnings ? c->warnings[i] : NULL;
}

const char *config_file(const struct config *c, size_t i)
{
    if (c->remembered_file && i-- == 0)
        return c->remembered_file;
    return i < c->n_sources ? c->sources[i].name : NULL;
}

const char *config_fallback(const struct config *c)
{
    return c->fallback;
}

const char *config_agent(const struct config *c, size_t i)
{
    return i < c->n_agents ? c->agents[i].id : NULL;
}

const char *config_state_dir(const struct config *c)
{
    return c->state_dir;
}

bool config_sessions_are_global(const struct config *c)
{
    return c->sessions_are_global;
}

int config_workspace(const struct config *c, const char *agent, char *ret, size_t size,
                     struct error *err)
{
    const struct agent *a = find_agent(c, agent);
    bool is_main = strcasecmp(agent, "main") == 0;
    char path[LIMIT_PATH + LIMIT_CONFIG_AGENT_ID + 16];
    size_t n = strspn(agent, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

    if (!n || n > LIMIT_CONFIG_AGENT_ID || agent[n])
        return error_set(err, ERR_INVALID, "not an agent's id: 1 to %u of A-Z a-z 0-9 . _ -",
                         LIMIT_CONFIG_AGENT_ID);
    if (a && a->workspace)
        return config_full_path(c, a->workspace, ret, size, err);
    if (is_main && c->workspace)
        return config_full_path(c, c->workspace, ret, size, err);
    (void)snprintf(path, sizeof(path), "%s/workspace%s%s", c->state_dir, is_main ? "" : "-",
                   is_main ? "" : agent);
    return config_full_path(c, path, ret, size, err);
}
