/* SPDX-License-Identifier: Apache-2.0 */
#include "config/settings.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "base/usage.h"

/* ---- the table ---- */

const struct setting *setting_find(enum setting_home home, const char *path)
{
    for (size_t i = 0; i < SETTINGS; i++)
        if (settings_table[i].home == home && strcmp(settings_table[i].path, path) == 0)
            return &settings_table[i];
    return NULL;
}

bool setting_is_group(enum setting_home home, const char *path)
{
    size_t n = strlen(path);

    for (size_t i = 0; i < SETTINGS; i++)
        if (settings_table[i].home == home && strncmp(settings_table[i].path, path, n) == 0 &&
            settings_table[i].path[n] == '.')
            return true;
    return false;
}

static const char *last_part(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot ? dot + 1 : path;
}

const char *setting_nearest(enum setting_home home, const char *path)
{
    unsigned best = 4;
    const char *found = NULL;

    for (size_t i = 0; i < SETTINGS; i++) {
        const char *known = settings_table[i].path;
        unsigned d;

        if (settings_table[i].home != home)
            continue;
        /* The right name in the wrong place is near too. */
        d = strcmp(last_part(path), last_part(known)) == 0 ? 1 : usage_distance(path, known);
        if (d < best) {
            best = d;
            found = known;
        }
    }
    return found;
}

const char *setting_full_path(const struct setting *s, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s.%s",
                   s->home == HOME_TOOLS ? "tools.sandbox.tools" : "agents.defaults.sandbox",
                   s->path);
    return ret;
}

/* ---- types ---- */

static int wrong(const struct setting *s, struct error *err)
{
    switch (s->kind) {
    case SETTING_WORD:
        return error_set(err, ERR_INVALID, "'%s' must be one of %s", s->path, s->words);
    case SETTING_TEXT:
        return error_set(err, ERR_INVALID, "'%s' must be a string that is not empty", s->path);
    case SETTING_BOOL:
        return error_set(err, ERR_INVALID, "'%s' must be true or false", s->path);
    case SETTING_COUNT:
        return error_set(err, ERR_INVALID, "'%s' must be a whole number from %.0f to %.0f", s->path,
                         s->min, s->max);
    case SETTING_NUMBER:
        return error_set(err, ERR_INVALID, "'%s' must be a number above %g, at most %g", s->path,
                         s->min, s->max);
    case SETTING_SIZE:
        return error_set(err, ERR_INVALID, "'%s' must be a size (\"512m\", \"1g\") or bytes",
                         s->path);
    case SETTING_LIST:
        return error_set(err, ERR_INVALID, "'%s' must be a list of strings", s->path);
    case SETTING_CALLS:
        return error_set(err, ERR_INVALID, "'%s' must be a list of tools and exec:PATTERN",
                         s->path);
    case SETTING_PORTS:
        return error_set(err, ERR_INVALID, "'%s' must be a list of whole numbers from %.0f to %.0f",
                         s->path, s->min, s->max);
    case SETTING_MAP:
        return error_set(err, ERR_INVALID, "'%s' must be an object of strings", s->path);
    case SETTING_LIMITS:
        return error_set(err, ERR_INVALID,
                         "'%s' must map names to a number, \"soft:hard\" or {soft, hard}", s->path);
    case SETTING_LINES:
        return error_set(err, ERR_INVALID, "'%s' must be a string or a list of strings", s->path);
    case SETTING_SECRET:
        return error_set(err, ERR_INVALID, "'%s' must be a string or {source, provider, id}",
                         s->path);
    }
    return error_set(err, ERR_INVALID, "'%s' has a wrong value", s->path);
}

static bool is_word(const struct setting *s, const char *value)
{
    size_t n = strlen(value);

    for (const char *w = s->words; w; w = strchr(w, '|') ? strchr(w, '|') + 1 : NULL)
        if (strncmp(w, value, n) == 0 && (w[n] == '|' || !w[n]) && n)
            return true;
    return false;
}

static bool is_list(const json_t *v)
{
    size_t i;
    json_t *e;

    if (!json_is_array(v))
        return false;
    json_array_foreach(v, i, e) if (!json_is_string(e)) return false;
    return true;
}

/* A pattern of command lines: words are parted by one blank, and stand there without quotes. */
static bool is_command_pattern(const char *text)
{
    size_t n = strlen(text);

    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f || strchr("'\"\\", text[i]) ||
            (text[i] == ' ' && (i == 0 || i + 1 == n || text[i - 1] == ' ')))
            return false;
    return n > 0 && n <= LIMIT_COMMAND_PATTERN;
}

static bool is_tool_pattern(const char *text)
{
    static const char chars[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.*";
    size_t n = strlen(text);

    return n > 0 && n <= LIMIT_TOOL_PATTERN && strspn(text, chars) == n;
}

/* What would never match is a mistake that nobody notices: it is refused. */
static bool is_call(const struct setting *s, const json_t *entry)
{
    const char *text = json_string_value(entry);

    if (!text || strlen(text) != json_string_length(entry))
        return false;
    if (strncmp(text, COMMAND_PREFIX, strlen(COMMAND_PREFIX)) == 0)
        return is_command_pattern(text + strlen(COMMAND_PREFIX));
    if (strncmp(text, GROUP_PREFIX, strlen(GROUP_PREFIX)) == 0)
        return is_word(s, text + strlen(GROUP_PREFIX));
    return is_tool_pattern(text);
}

static int check_calls(const struct setting *s, const json_t *v, struct error *err)
{
    size_t i;
    json_t *e;

    json_array_foreach(v, i, e)
    {
        if (!is_call(s, e))
            return error_set(err, ERR_INVALID,
                             "'%s': '%.64s' is no tool (write, web_*, group:fs), and no "
                             "command like exec:git push*",
                             s->path, json_string_value(e));
    }
    return 0;
}

static bool is_count(const struct setting *s, const json_t *v)
{
    return json_is_integer(v) && (double)json_integer_value(v) >= s->min &&
           (double)json_integer_value(v) <= s->max;
}

static bool is_ports(const struct setting *s, const json_t *v)
{
    size_t i;
    json_t *e;

    if (!json_is_array(v))
        return false;
    json_array_foreach(v, i, e) if (!is_count(s, e)) return false;
    return true;
}

static bool is_size(const json_t *v)
{
    uint64_t bytes;

    if (json_is_number(v))
        return json_number_value(v) > 0 && json_number_value(v) < 1e18;
    return json_is_string(v) && units_parse_size(json_string_value(v), &bytes) >= 0;
}

static bool is_map(json_t *v, bool limits)
{
    const char *key;
    json_t *e;

    if (!json_is_object(v))
        return false;
    json_object_foreach(v, key, e)
    {
        bool plain = json_is_string(e) || (limits && json_is_number(e));
        bool pair = limits && json_is_object(e) && json_object_size(e) == 2 &&
                    json_is_number(json_object_get(e, "soft")) &&
                    json_is_number(json_object_get(e, "hard"));

        if (!plain && !pair)
            return false;
    }
    return true;
}

int setting_check(const struct setting *s, const json_t *v, struct error *err)
{
    bool good = false;

    switch (s->kind) {
    case SETTING_WORD:
        good = json_is_string(v) && is_word(s, json_string_value(v));
        break;
    case SETTING_TEXT:
        good = json_is_string(v) && json_string_value(v)[0];
        break;
    case SETTING_BOOL:
        good = json_is_boolean(v);
        break;
    case SETTING_COUNT:
        good = is_count(s, v);
        break;
    case SETTING_NUMBER:
        good = json_is_number(v) && json_number_value(v) > s->min && json_number_value(v) <= s->max;
        break;
    case SETTING_SIZE:
        good = is_size(v);
        break;
    case SETTING_LIST:
        good = is_list(v);
        break;
    case SETTING_CALLS:
        good = is_list(v);
        if (good)
            return check_calls(s, v, err);
        break;
    case SETTING_PORTS:
        good = is_ports(s, v);
        break;
    case SETTING_MAP:
    case SETTING_LIMITS:
        good = is_map((json_t *)v, s->kind == SETTING_LIMITS);
        break;
    case SETTING_LINES:
        good = json_is_string(v) || is_list(v);
        break;
    case SETTING_SECRET:
        good = json_is_string(v) || json_is_object(v);
        break;
    }
    return good ? 0 : wrong(s, err);
}

/* ---- values ---- */

void settings_done(struct settings *s)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        json_decref(s->value[i]);
        s->value[i] = NULL;
    }
}

const char *settings_text(const struct settings *s, enum setting_id id)
{
    return json_string_value(s->value[id]);
}

bool settings_bool(const struct settings *s, enum setting_id id)
{
    return json_is_true(s->value[id]);
}

double settings_number(const struct settings *s, enum setting_id id)
{
    return json_number_value(s->value[id]);
}

const char *origin_describe(const struct origin *o, char *ret, size_t size)
{
    static const char *const names[] = {
        [ORIGIN_UNSET] = "not set", [ORIGIN_PRESET] = "preset",   [ORIGIN_YAML] = "clawden.yaml",
        [ORIGIN_DEFAULTS] = "file", [ORIGIN_PROFILE] = "profile", [ORIGIN_OVERRIDE] = "-e",
        [ORIGIN_AGENT] = "file",    [ORIGIN_WHAT_IF] = "--set",
    };
    const char *path = o->path ? o->path : "";

    if (o->kind == ORIGIN_UNSET)
        (void)snprintf(ret, size, "%s", names[o->kind]);
    else if (!o->file)
        (void)snprintf(ret, size, "%s%s%s", names[o->kind], path[0] ? " " : "", path);
    else if (o->place.line)
        (void)snprintf(ret, size, "%s:%u:%u %s", o->file, o->place.line, o->place.column, path);
    else
        (void)snprintf(ret, size, "%s %s", o->file, path);
    return ret;
}
