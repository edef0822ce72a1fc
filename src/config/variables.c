/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operator variables (S1): those of the profile's [extra_vars] and those after -e. Which setting
 * one sets stands in the table; two more add to lists, and docker_enabled stands in for
 * sandbox_enabled. Texts become values by the setting's type. The same makes --set of it, with keys
 * of a block.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "config/internal.h"
#include "toml/toml.h"
#include "json/chars.h"
#include "json/json5.h"

#define DOCKER_ENABLED "docker_enabled"
#define PROFILE        "sandbox-profile.toml"

static const char *const extra_names[2] = {"sandbox_network_allow_extra",
                                           "sandbox_network_exec_allow_extra"};

/* Where a variable stands: in the profile, or after -e. */
struct layer {
    struct config *c;
    struct variables *ret;
    bool in_profile;
};

static bool is_ours(const char *name)
{
    return strncmp(name, "sandbox_", 8) == 0 || strcmp(name, DOCKER_ENABLED) == 0;
}

/* ---- texts into values ---- */

static json_t *text_value(const struct setting *s, const char *text)
{
    struct text_place place;
    struct error ignored;
    json_t *v = NULL;

    switch (s->kind) {
    case SETTING_BOOL:
        if (strcasecmp(text, "true") == 0 || strcasecmp(text, "yes") == 0)
            return json_true();
        if (strcasecmp(text, "false") == 0 || strcasecmp(text, "no") == 0)
            return json_false();
        break;
    case SETTING_LINES:
        if (text[0] != '[')
            break;
        /* fall through */
    case SETTING_COUNT:
    case SETTING_NUMBER:
    case SETTING_LIST:
    case SETTING_CALLS:
    case SETTING_PORTS:
    case SETTING_MAP:
    case SETTING_LIMITS:
        if (yaml_parse(text, strlen(text), &v, &place, &ignored) >= 0)
            return v;
        break;
    case SETTING_WORD:
    case SETTING_TEXT:
    case SETTING_SIZE:
    case SETTING_SECRET:
        break;
    }
    return json_string(text); /* what does not fit is refused with the type's own words */
}

/* A value of the setting's type, owned by the caller; texts are read as they are after -e. */
static int value_for(const struct setting *s, json_t *given, json_t **ret, struct error *err)
{
    json_t *v =
        json_is_string(given) ? text_value(s, json_string_value(given)) : json_incref(given);
    int r =
        v ? setting_check(s, v, err) : error_set(err, ERR_INVALID, "'%s' is not UTF-8", s->path);

    if (r < 0)
        json_decref(v);
    else
        *ret = v;
    return r;
}

/* ---- one variable ---- */

static unsigned distance(const char *a, const char *b)
{
    enum { MAX = 64 };
    unsigned row[MAX + 1];
    size_t n = strlen(a), m = strlen(b);

    if (n > MAX || m > MAX)
        return MAX;
    for (size_t j = 0; j <= m; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned corner = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned best = corner + (a[i - 1] != b[j - 1]);

            corner = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

static int unknown(const char *name, struct error *err)
{
    struct chars_shown shown = chars_show(name, name + strlen(name));
    const char *near = NULL;
    unsigned best = 6, d;

    for (size_t i = 0; i < SETTINGS + 2; i++) {
        const char *known = i < SETTINGS ? settings_table[i].variable : extra_names[i - SETTINGS];

        if (known && (d = distance(name, known)) < best) {
            best = d;
            near = known;
        }
    }
    if (near)
        return error_set(err, ERR_INVALID, "unknown variable %s; did you mean '%s'?", shown.text,
                         near);
    return error_set(err, ERR_INVALID, "unknown variable %s; take it out", shown.text);
}

static struct origin origin_of(const struct layer *l, const char *name)
{
    struct key_path p = {.word = {"extra_vars", name}, .n = 2};
    struct origin o = {.kind = l->in_profile ? ORIGIN_PROFILE : ORIGIN_OVERRIDE};

    o.path = config_keep(l->c, l->in_profile ? key_path_show(&p).text : name);
    if (l->in_profile) {
        struct whereabouts w = key_find_often(l->c, SOURCE_PROFILE, &p, NULL);

        o.file = w.file;
        o.place = w.place;
    }
    return o;
}

static int set_extra(const struct layer *l, size_t which, const char *name, json_t *given,
                     struct error *err)
{
    json_t *v = NULL;

    if (value_for(&settings_table[SETTING_NETWORK_ALLOW], given, &v, err) < 0)
        return error_set(err, ERR_INVALID, "'%s' must be a list of strings", name);
    json_decref(l->ret->extra[which]);
    l->ret->extra[which] = v;
    l->ret->extra_from[which] = origin_of(l, name);
    return 0;
}

static int set_enabled(const struct layer *l, const char *name, json_t *given, bool follows,
                       struct error *err)
{
    struct settings *s = &l->ret->set;
    json_t *v = NULL;

    if (value_for(&settings_table[SETTING_ENABLED], given, &v, err) < 0)
        return error_set(err, ERR_INVALID, "'%s' must be true or false", name);
    if (follows && s->value[SETTING_ENABLED] && !l->ret->enabled_follows) {
        json_decref(v); /* sandbox_enabled itself was given */
        return 0;
    }
    json_decref(s->value[SETTING_ENABLED]);
    s->value[SETTING_ENABLED] = v;
    s->from[SETTING_ENABLED] = origin_of(l, name);
    l->ret->enabled_follows = follows;
    return 0;
}

static int set_known(const struct layer *l, const char *name, json_t *given, struct error *err)
{
    for (size_t i = 0; i < 2; i++)
        if (strcmp(name, extra_names[i]) == 0)
            return set_extra(l, i, name, given, err);
    if (strcmp(name, DOCKER_ENABLED) == 0)
        return set_enabled(l, name, given, true, err);
    for (size_t i = 0; i < SETTINGS; i++) {
        json_t *v = NULL;
        int r;

        if (!settings_table[i].variable || strcmp(name, settings_table[i].variable) != 0)
            continue;
        if (i == SETTING_ENABLED)
            return set_enabled(l, name, given, false, err);
        r = value_for(&settings_table[i], given, &v, err);
        if (r < 0)
            return error_wrap(err, "%s", name);
        json_decref(l->ret->set.value[i]);
        l->ret->set.value[i] = v;
        l->ret->set.from[i] = origin_of(l, name);
        return 0;
    }
    return unknown(name, err);
}

/* ---- the profile ---- */

static void keep_extra_vars(struct config *c, json_t *from, json_t *ret)
{
    struct key_path p = {.word = {"extra_vars"}, .n = 1};
    const char *name;
    json_t *v;

    json_object_foreach(from, name, v)
    {
        if (is_ours(name)) {
            (void)json_object_set(ret, name, v);
            continue;
        }
        (void)key_path_push(&p, name);
        key_warn(c, SOURCE_PROFILE, &p, NULL, "'%s' is not about sandboxes; it is ignored",
                 key_path_show(&p).text);
        key_path_pop(&p);
    }
}

int profile_read(struct config *c, struct error *err)
{
    struct text_place place = {0};
    struct key_path p = {.n = 0};
    json_t *vars, *mode, *ours = json_object();
    char path[LIMIT_PATH];
    struct source *s;
    int n = snprintf(path, sizeof(path), "%s/" PROFILE, c->state_dir), r;

    c->parts[SOURCE_PROFILE] = ours;
    if (n < 0 || (size_t)n >= sizeof(path))
        return error_set(err, ERR_TOO_LARGE, "%s: too long a path", file_show(c->state_dir).text);
    r = source_load(c, path, &c->top[SOURCE_PROFILE], err);
    if (r < 0 || c->top[SOURCE_PROFILE] == SIZE_MAX)
        return r;
    s = &c->sources[c->top[SOURCE_PROFILE]];
    r = toml_parse(s->text, s->len, &s->value, &place, err);
    if (r < 0)
        return source_wrong_at(s, place, err);
    r = object_member(c, SOURCE_PROFILE, &p, s->value, "extra_vars", &vars, err);
    if (r >= 0)
        r = object_member(c, SOURCE_PROFILE, &p, s->value, "mode", &mode, err);
    if (r < 0)
        return r;
    (void)json_object_set_new(ours, "extra_vars", json_object());
    keep_extra_vars(c, vars, json_object_get(ours, "extra_vars"));
    if (json_object_get(mode, "no_docker"))
        (void)json_object_set(ours, "no_docker", json_object_get(mode, "no_docker"));
    return 0;
}

static int build_no_docker(const struct layer *l, json_t *v, struct error *err)
{
    struct key_path p = {.word = {"mode", "no_docker"}, .n = 2};
    struct settings *s = &l->ret->set;
    struct whereabouts w;

    if (v && !json_is_boolean(v)) {
        (void)error_set(err, ERR_INVALID, "'mode.no_docker' must be true or false");
        return key_wrong(l->c, SOURCE_PROFILE, &p, v, err);
    }
    if (!json_is_true(v) || s->value[SETTING_ENABLED])
        return 0;
    w = key_find(l->c, SOURCE_PROFILE, &p, NULL);
    s->value[SETTING_ENABLED] = json_false();
    s->from[SETTING_ENABLED] = (struct origin){ORIGIN_PROFILE, w.file, "mode.no_docker", w.place};
    l->ret->enabled_follows = true;
    return 0;
}

int profile_build(struct config *c, struct error *err)
{
    struct layer l = {c, &c->profile, true};
    struct key_path p = {.word = {"extra_vars"}, .n = 1};
    const char *name;
    json_t *v;

    json_object_foreach(json_object_get(c->parts[SOURCE_PROFILE], "extra_vars"), name, v)
    {
        json_t *put = NULL;
        int r;

        (void)key_path_push(&p, name);
        r = substitute(c, SOURCE_PROFILE, &p, v, &put, err);
        if (r >= 0 && (r = set_known(&l, name, put, err)) < 0)
            r = key_wrong(c, SOURCE_PROFILE, &p, v, err);
        json_decref(put);
        key_path_pop(&p);
        if (r < 0)
            return r;
    }
    return build_no_docker(&l, json_object_get(c->parts[SOURCE_PROFILE], "no_docker"), err);
}

/* ---- -e ---- */

static int set_one(const struct layer *l, const char *name, json_t *v, struct error *err)
{
    if (!is_ours(name)) {
        config_warn(l->c, "-e: %s is not about sandboxes; it is ignored",
                    chars_show(name, name + strlen(name)).text);
        return 0;
    }
    return set_known(l, name, v, err) < 0 ? error_wrap(err, "-e") : 0;
}

static int set_object(const struct layer *l, const char *word, struct error *err)
{
    struct text_place place = {0};
    const char *name;
    json_t *all = NULL, *v;
    int r = json5_parse(word, strlen(word), &all, &place, err);

    if (r < 0)
        return error_wrap(err, "-e:%u:%u", place.line, place.column);
    json_object_foreach(all, name, v)
    {
        r = set_one(l, name, v, err);
        if (r < 0)
            break;
    }
    json_decref(all);
    return r;
}

/* Splits "key=value"; *ret_key is freed by the caller. */
static int split(const char *option, const char *word, char **ret_key, json_t **ret_value,
                 struct error *err)
{
    const char *equals = strchr(word, '=');

    if (chars_find_bad(word, word + strlen(word)))
        return error_set(err, ERR_INVALID, "%s: not UTF-8", option);
    if (!equals || equals == word)
        return error_set(err, ERR_INVALID, "%s: write key=value%s", option,
                         option[1] == 'e' ? ", or a JSON object" : "");
    *ret_key = strndup(word, (size_t)(equals - word));
    *ret_value = json_string(equals + 1);
    return *ret_key && *ret_value ? 0 : error_sys(err, -ENOMEM, "%s", option);
}

int overrides_build(struct config *c, const char *const *words, struct error *err)
{
    struct layer l = {c, &c->overrides, false};
    int r = 0;

    for (; words && *words && r >= 0; words++) {
        const char *w = *words + strspn(*words, " \t\r\n");
        autofree char *key = NULL;
        json_t *v = NULL;

        if (*w == '{') {
            r = set_object(&l, w, err);
            continue;
        }
        r = split("-e", w, &key, &v, err);
        if (r >= 0)
            r = set_one(&l, key, v, err);
        json_decref(v);
    }
    /* docker_enabled is only the default of sandbox_enabled, wherever that was given. */
    if (r >= 0 && c->overrides.enabled_follows && c->profile.set.value[SETTING_ENABLED] &&
        !c->profile.enabled_follows) {
        json_decref(c->overrides.set.value[SETTING_ENABLED]);
        c->overrides.set.value[SETTING_ENABLED] = NULL;
    }
    return r;
}

/* ---- --set ---- */

static int set_what_if(struct config *c, const char *key, json_t *given, struct error *err)
{
    bool tools = strncmp(key, "tools.", 6) == 0;
    enum setting_home home = tools ? HOME_TOOLS : HOME_SANDBOX;
    const char *path = tools ? key + 6 : key;
    const struct setting *s = setting_find(home, path);
    const char *near = s ? NULL : setting_nearest(home, path);
    json_t *v = NULL;
    size_t id;

    if (!s)
        return error_set(err, ERR_INVALID, "--set: unknown key %s; %s%s%s%s",
                         chars_show(key, key + strlen(key)).text, near ? "did you mean '" : "",
                         near && tools ? "tools." : "", near ? near : "take it out",
                         near ? "'?" : "");
    if (value_for(s, given, &v, err) < 0)
        return error_wrap(err, "--set");
    id = (size_t)(s - settings_table);
    json_decref(c->what_if.value[id]);
    c->what_if.value[id] = v;
    c->what_if.from[id] = (struct origin){.kind = ORIGIN_WHAT_IF, .path = config_keep(c, key)};
    return 0;
}

int what_if_build(struct config *c, const char *const *words, struct error *err)
{
    for (; words && *words; words++) {
        autofree char *key = NULL;
        json_t *v = NULL;
        int r = split("--set", *words, &key, &v, err);

        if (r >= 0)
            r = set_what_if(c, key, v, err);
        json_decref(v);
        if (r < 0)
            return r;
    }
    older_names(&c->what_if);
    return 0;
}
