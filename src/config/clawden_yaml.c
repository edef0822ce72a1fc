/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clawden.yaml: `sandbox`, `preset` and `mode` are read here; the rest of the file belongs to other
 * parts of ClawDen. $CLAWDEN_YAML names it, else it is the one in our own folder. One that merely
 * stands in the present folder does not count: it may be a stranger's project, and a line in it
 * could switch boxes off or hand a variable to a box with a network.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/state.h"
#include "base/usage.h"
#include "config/internal.h"
#include "json/chars.h"

static const char *const ours[] = {"sandbox", "preset", "mode"};

static void warn_of_present_folder(struct config *c)
{
    char text[LIMIT_SMALL_FILE];
    ssize_t n = fd_read_text(AT_FDCWD, "clawden.yaml", text, sizeof(text));
    struct text_place place;
    struct error ignored;
    json_t *value = NULL;

    if (n <= 0 || yaml_parse(text, (size_t)n, &value, &place, &ignored) < 0)
        return;
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (json_object_get(value, ours[i])) {
            config_warn(c,
                        "./clawden.yaml: its '%s' does not count, because whoever wrote it could "
                        "loosen your boxes; CLAWDEN_YAML=clawden.yaml says that you trust it",
                        ours[i]);
            break;
        }
    json_decref(value);
}

static int find_file(struct config *c, char *ret, size_t size, bool *ret_named, struct error *err)
{
    const char *named = getenv("CLAWDEN_YAML");
    size_t n;
    int r;

    *ret_named = named && named[0];
    if (*ret_named)
        return config_full_path(c, named, ret, size, err);
    warn_of_present_folder(c);
    r = state_data_path(ret, size, err);
    n = strlen(ret);
    if (r >= 0 && (size_t)snprintf(ret + n, size - n, "/clawden.yaml") >= size - n)
        r = error_set(err, ERR_TOO_LARGE, "%s: too long a path", file_show(ret).text);
    return r;
}

/* Keys of others are not ours to judge, but one that is nearly ours was meant for us: who misspells
 * his rules must not believe that they hold. ('mode' is too short: 'model' is a word as well.) */
static void warn_of_near_misses(struct config *c, json_t *whole)
{
    static const char *const long_ones[] = {"sandbox", "preset"};
    const char *key;
    json_t *value;

    json_object_foreach(whole, key, value) for (size_t i = 0;
                                                i < sizeof(long_ones) / sizeof(long_ones[0]); i++)
    {
        struct key_path p = {.word = {key}, .n = 1};
        unsigned d = usage_distance(key, long_ones[i]);

        if (strcmp(key, long_ones[i]) != 0 && d <= 2)
            key_warn(c, SOURCE_YAML, &p, value, "unknown key %s; did you mean '%s'?",
                     chars_show(key, key + strlen(key)).text, long_ones[i]);
    }
}

int clawden_yaml_read(struct config *c, struct error *err)
{
    char path[LIMIT_PATH];
    struct text_place place = {0};
    struct source *s;
    bool named;
    int r = find_file(c, path, sizeof(path), &named, err);

    if (r >= 0)
        r = source_load(c, path, &c->top[SOURCE_YAML], err);
    if (r >= 0 && named && c->top[SOURCE_YAML] == SIZE_MAX)
        r = error_set(err, ERR_NOT_FOUND, "%s: no such file", file_show(path).text);
    if (r < 0 || c->top[SOURCE_YAML] == SIZE_MAX)
        return r;
    s = &c->sources[c->top[SOURCE_YAML]];
    r = yaml_parse(s->text, s->len, &s->value, &place, err);
    if (r < 0)
        return source_wrong_at(s, place, err);
    if (json_is_null(s->value)) /* nothing but comments */
        return 0;
    if (!json_is_object(s->value))
        return error_set(err, ERR_INVALID, "%s: the whole must be a mapping", file_show(path).text);
    c->parts[SOURCE_YAML] = json_object();
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (json_object_get(s->value, ours[i]))
            (void)json_object_set(c->parts[SOURCE_YAML], ours[i],
                                  json_object_get(s->value, ours[i]));
    warn_of_near_misses(c, s->value);
    return 0;
}

const char *clawden_yaml_preset(const struct config *c)
{
    return json_string_value(json_object_get(c->parts[SOURCE_YAML], "preset"));
}

/* One of two words, or NULL in *ret. */
static int read_word(struct config *c, const char *key, const char *a, const char *b,
                     const char **ret, struct error *err)
{
    json_t *v = json_object_get(c->parts[SOURCE_YAML], key);
    struct key_path p = {.word = {key}, .n = 1};
    const char *s = json_string_value(v);

    *ret = s;
    if (!v || (s && (strcmp(s, a) == 0 || strcmp(s, b) == 0)))
        return 0;
    (void)error_set(err, ERR_INVALID, "'%s' must be one of %s|%s", key, a, b);
    return key_wrong(c, SOURCE_YAML, &p, v, err);
}

int clawden_yaml_build(struct config *c, struct error *err)
{
    struct block b = {.c = c,
                      .kind = SOURCE_YAML,
                      .origin = ORIGIN_YAML,
                      .home = HOME_SANDBOX,
                      .has_tools = true,
                      .ret = &c->yaml};
    json_t *sandbox = json_object_get(c->parts[SOURCE_YAML], "sandbox");
    struct key_path p = {.word = {"sandbox"}, .n = 1}, mode = {.word = {"mode"}, .n = 1};
    const char *word;
    int r = read_word(c, "preset", "strict", "dev", &word, err);

    if (r >= 0)
        r = read_word(c, "mode", "direct", "docker", &word, err);
    if (r >= 0 && sandbox && !json_is_null(sandbox))
        r = block_read(&b, &p, sandbox, err);
    if (r < 0 || !word || strcmp(word, "direct") != 0 || c->yaml.value[SETTING_ENABLED])
        return r;
    key_warn(c, SOURCE_YAML, &mode, NULL, "mode is direct: tools run without any box");
    c->yaml.value[SETTING_ENABLED] = json_false();
    c->yaml.from[SETTING_ENABLED] = (struct origin){
        .kind = ORIGIN_YAML,
        .file = key_find(c, SOURCE_YAML, &mode, NULL).file,
        .path = "mode",
        .place = key_find(c, SOURCE_YAML, &mode, NULL).place,
    };
    return 0;
}
