/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of settings, wherever they stand: walked by the table, so that no key goes unnoticed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/internal.h"

int object_member(struct config *c, enum source_kind kind, struct key_path *p, json_t *in,
                  const char *key, json_t **ret, struct error *err)
{
    json_t *v = json_object_get(in, key);
    int r = 0;

    *ret = NULL;
    if (!v)
        return 0;
    if (json_is_object(v)) {
        *ret = v;
        return 0;
    }
    if (!key_path_push(p, key))
        return error_set(err, ERR_TOO_LARGE, "too many keys in each other");
    (void)error_set(err, ERR_INVALID, "'%s' must be an object: { ... }", key_path_show(p).text);
    r = key_wrong(c, kind, p, v, err);
    key_path_pop(p);
    return r;
}

static int unknown(const struct block *b, const struct key_path *p, const char *relative,
                   const json_t *value, struct error *err)
{
    const char *near = setting_nearest(b->home, relative);

    if (near)
        (void)error_set(err, ERR_INVALID, "unknown key '%s'; did you mean '%s'?",
                        key_path_show(p).text, near);
    else
        (void)error_set(err, ERR_INVALID, "unknown key '%s'; take it out", key_path_show(p).text);
    return key_wrong(b->c, b->kind, p, value, err);
}

/* Who gets the value of a variable in an environment depends on where it comes from (C4). A setup
 * command has a shell, and that knows what its box was given. */
static bool keeps_references(enum setting_id id)
{
    return id == SETTING_ENV || id == SETTING_NETWORK_ENV || id == SETTING_BROWSER_ENV ||
           id == SETTING_SETUP_COMMAND;
}

static int read_setting(const struct block *b, const struct setting *s, const struct key_path *p,
                        json_t *value, struct error *err)
{
    enum setting_id id = (enum setting_id)(s - settings_table);
    struct whereabouts w;
    json_t *v = NULL;
    int r;

    if (b->is_agent && s->no_agent) {
        key_warn(b->c, b->kind, p, value, "an agent cannot change '%s'; it is ignored", s->path);
        return 0;
    }
    r = keeps_references(id) ? 0 : substitute(b->c, b->kind, p, value, &v, err);
    if (r < 0)
        return r;
    if (!v)
        v = json_incref(value);
    r = setting_check(s, v, err);
    if (r < 0) {
        json_decref(v);
        return key_wrong(b->c, b->kind, p, value, err);
    }
    w = key_find_often(b->c, b->kind, p, value);
    b->ret->value[id] = v;
    b->ret->from[id] = (struct origin){.kind = b->origin,
                                       .file = w.file,
                                       .path = config_keep(b->c, key_path_show(p).text),
                                       .place = w.place};
    return 0;
}

static int read_group(const struct block *b, struct key_path *p, const char *above, json_t *value,
                      struct error *err);

static int read_member(const struct block *b, struct key_path *p, const char *above,
                       const char *key, json_t *value, struct error *err)
{
    char relative[128];
    int n = snprintf(relative, sizeof(relative), "%s%s%s", above, above[0] ? "." : "", key);
    const struct setting *s = NULL;

    /* A dot within a key is no path. */
    if (strchr(key, '.') || (size_t)n >= sizeof(relative))
        return unknown(b, p, relative, value, err);
    s = setting_find(b->home, relative);
    if (s)
        return read_setting(b, s, p, value, err);
    if (setting_is_group(b->home, relative)) {
        if (json_is_object(value))
            return read_group(b, p, relative, value, err);
        (void)error_set(err, ERR_INVALID, "'%s' must be an object: { ... }", relative);
        return key_wrong(b->c, b->kind, p, value, err);
    }
    if (b->has_tools && strcmp(relative, "tools") == 0) {
        struct block tools = *b;

        tools.home = HOME_TOOLS;
        tools.has_tools = false;
        return block_read(&tools, p, value, err);
    }
    return unknown(b, p, relative, value, err);
}

static int read_group(const struct block *b, struct key_path *p, const char *above, json_t *value,
                      struct error *err)
{
    const char *key;
    json_t *v;

    json_object_foreach(value, key, v)
    {
        int r;

        if (!key_path_push(p, key))
            return error_set(err, ERR_TOO_LARGE, "too many keys in each other");
        r = read_member(b, p, above, key, v, err);
        key_path_pop(p);
        if (r < 0)
            return r;
    }
    return 0;
}

void older_names(struct settings *s)
{
    if (s->value[SETTING_PER_SESSION] && !s->value[SETTING_SCOPE]) {
        s->value[SETTING_SCOPE] =
            json_string(settings_bool(s, SETTING_PER_SESSION) ? "session" : "shared");
        s->from[SETTING_SCOPE] = s->from[SETTING_PER_SESSION];
    }
    if (s->value[SETTING_BROWSER_NOVNC_OLD] && !s->value[SETTING_BROWSER_NOVNC]) {
        s->value[SETTING_BROWSER_NOVNC] = json_incref(s->value[SETTING_BROWSER_NOVNC_OLD]);
        s->from[SETTING_BROWSER_NOVNC] = s->from[SETTING_BROWSER_NOVNC_OLD];
    }
}

static int check_tools(const struct block *b, struct key_path *p, const json_t *value,
                       struct error *err)
{
    json_t *also = json_object_get(value, "alsoAllow");
    int r;

    if (!json_array_size(json_object_get(value, "allow")) || !json_array_size(also))
        return 0;
    (void)error_set(err, ERR_INVALID,
                    "'allow' and 'alsoAllow' in one place; put all names into 'allow'");
    (void)key_path_push(p, "alsoAllow");
    r = key_wrong(b->c, b->kind, p, also, err);
    key_path_pop(p);
    return r;
}

int block_read(const struct block *b, struct key_path *p, json_t *value, struct error *err)
{
    int r;

    if (!json_is_object(value)) {
        (void)error_set(err, ERR_INVALID, "'%s' must be an object: { ... }", key_path_show(p).text);
        return key_wrong(b->c, b->kind, p, value, err);
    }
    r = read_group(b, p, "", value, err);
    if (r < 0)
        return r;
    if (b->home == HOME_TOOLS)
        return check_tools(b, p, value, err);
    older_names(b->ret);
    return 0;
}
