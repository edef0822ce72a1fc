/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/clawden/schema.h"

#include <stdio.h>
#include <string.h>

#include "config/settings.h"
#include "version.h"

static json_t *parse(const char *text)
{
    return text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
}

/* ---- JSON Schema ---- */

static json_t *words_json(const char *words)
{
    json_t *list = json_array();

    while (words) {
        const char *end = strchr(words, '|');
        size_t n = end ? (size_t)(end - words) : strlen(words);

        json_array_append_new(list, json_stringn(words, n));
        words = end ? end + 1 : NULL;
    }
    return list;
}

static json_t *type_json(const struct setting *s)
{
    switch (s->kind) {
    case SETTING_WORD:
        return json_pack("{s:o}", "enum", words_json(s->words));
    case SETTING_TEXT:
        return json_pack("{s:s,s:i}", "type", "string", "minLength", 1);
    case SETTING_BOOL:
        return json_pack("{s:s}", "type", "boolean");
    case SETTING_COUNT:
        return json_pack("{s:s,s:I,s:I}", "type", "integer", "minimum", (json_int_t)s->min,
                         "maximum", (json_int_t)s->max);
    case SETTING_NUMBER:
        return json_pack("{s:s,s:f,s:f}", "type", "number", "exclusiveMinimum", s->min, "maximum",
                         s->max);
    case SETTING_SIZE:
        return json_pack("{s:[s,s]}", "type", "string", "number");
    case SETTING_LIST:
    case SETTING_CALLS:
        return json_pack("{s:s,s:{s:s}}", "type", "array", "items", "type", "string");
    case SETTING_PORTS:
        return json_pack("{s:s,s:{s:s,s:I,s:I}}", "type", "array", "items", "type", "integer",
                         "minimum", (json_int_t)s->min, "maximum", (json_int_t)s->max);
    case SETTING_MAP:
        return json_pack("{s:s,s:{s:s}}", "type", "object", "additionalProperties", "type",
                         "string");
    case SETTING_LIMITS:
        return json_pack("{s:s,s:{s:[s,s,s]}}", "type", "object", "additionalProperties", "type",
                         "string", "number", "object");
    case SETTING_LINES:
        return json_pack("{s:[s,s]}", "type", "string", "array");
    case SETTING_SECRET:
        return json_pack("{s:[s,s]}", "type", "string", "object");
    }
    return json_object();
}

/* The `properties` of the group that a path stands in, made on the way; *ret_name is its last part.
 */
static json_t *group_of(json_t *properties, const char *path, const char **ret_name)
{
    const char *dot;

    while ((dot = strchr(path, '.'))) {
        char name[64];
        json_t *group;

        (void)snprintf(name, sizeof(name), "%.*s", (int)(dot - path), path);
        group = json_object_get(properties, name);
        if (!group) {
            group = json_pack("{s:s,s:b,s:{}}", "type", "object", "additionalProperties", 0,
                              "properties");
            json_object_set_new(properties, name, group);
        }
        properties = json_object_get(group, "properties");
        path = dot + 1;
    }
    *ret_name = path;
    return properties;
}

static json_t *block_json(enum setting_home home)
{
    json_t *block =
        json_pack("{s:s,s:b,s:{}}", "type", "object", "additionalProperties", 0, "properties");

    for (size_t i = 0; i < SETTINGS; i++) {
        const struct setting *s = &settings_table[i];
        json_t *one = type_json(s), *standard = parse(s->strict);
        const char *name;
        json_t *into;

        if (s->home != home) {
            json_decref(one);
            json_decref(standard);
            continue;
        }
        into = group_of(json_object_get(block, "properties"), s->path, &name);
        json_object_set_new(one, "description", json_string(s->help));
        if (standard)
            json_object_set_new(one, "default", standard);
        json_object_set_new(into, name, one);
    }
    return block;
}

static json_t *ref(const char *to)
{
    return json_pack("{s:s}", "$ref", to);
}

/* {"type": "object", "properties": {name: value}} */
static json_t *object_with(const char *name, json_t *value)
{
    return json_pack("{s:s,s:{s:o}}", "type", "object", "properties", name, value);
}

static json_t *agent_json(void)
{
    json_t *agent = object_with("sandbox", ref("#/$defs/sandbox"));
    json_t *properties = json_object_get(agent, "properties");

    json_object_set_new(properties, "workspace", json_pack("{s:s}", "type", "string"));
    json_object_set_new(properties, "tools",
                        object_with("sandbox", object_with("tools", ref("#/$defs/tools"))));
    return agent;
}

void schema_print_json(void)
{
    json_t *o =
        object_with("tools", object_with("sandbox", object_with("tools", ref("#/$defs/tools"))));
    json_t *agents = object_with("defaults", agent_json());
    json_t *properties = json_object_get(agents, "properties");

    json_object_set_new(
        properties, "entries",
        json_pack("{s:s,s:o}", "type", "object", "additionalProperties", agent_json()));
    json_object_set_new(properties, "list",
                        json_pack("{s:s,s:o}", "type", "array", "items", agent_json()));
    json_object_set_new(json_object_get(o, "properties"), "agents", agents);
    json_object_set_new(o, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"));
    json_object_set_new(o, "title",
                        json_string("openclaw.json, as far as sandboxes are concerned"));
    json_object_set_new(o, "$defs",
                        json_pack("{s:o,s:o}", "sandbox", block_json(HOME_SANDBOX), "tools",
                                  block_json(HOME_TOOLS)));
    (void)json_dumpf(o, stdout, JSON_INDENT(2));
    puts("");
    json_decref(o);
}

/* ---- the manual ---- */

static const char *kind_text(const struct setting *s, char *text, size_t size)
{
    switch (s->kind) {
    case SETTING_WORD:
        return s->words;
    case SETTING_TEXT:
        return "string";
    case SETTING_BOOL:
        return "true or false";
    case SETTING_COUNT:
        (void)snprintf(text, size, "whole number, %.0f to %.0f", s->min, s->max);
        return text;
    case SETTING_NUMBER:
        (void)snprintf(text, size, "number above %g", s->min);
        return text;
    case SETTING_SIZE:
        return "size (\"512m\", \"1g\") or number of bytes";
    case SETTING_LIST:
        return s->merge == MERGE_CONCAT ? "list of strings; an agent's are added"
                                        : "list of strings";
    case SETTING_CALLS:
        return "list of tools and exec:PATTERN; an agent's are added";
    case SETTING_PORTS:
        (void)snprintf(text, size, "list of whole numbers, %.0f to %.0f", s->min, s->max);
        return text;
    case SETTING_MAP:
        return "object of strings, merged key by key";
    case SETTING_LIMITS:
        return "object, merged key by key";
    case SETTING_LINES:
        return "string or list of strings";
    case SETTING_SECRET:
        return "string or {source, provider, id}";
    }
    return "";
}

/* A line that begins with a dot or a quote would be an order to the formatter. */
static void print_roff(const char *text)
{
    if (*text == '.' || *text == '\'')
        (void)fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '\\')
            (void)fputs("\\e", stdout);
        else if (*text == '-')
            (void)fputs("\\-", stdout);
        else
            (void)putchar(*text);
        if (*text == ',') /* lists have no blanks: a line may end here */
            (void)fputs("\\:", stdout);
    }
}

static void print_man_setting(const struct setting *s)
{
    char text[96], full[128];

    puts(".TP");
    printf(".B ");
    print_roff(setting_full_path(s, full, sizeof(full)));
    puts("");
    print_roff(s->help);
    puts(".");
    printf("Type: ");
    print_roff(kind_text(s, text, sizeof(text)));
    puts(".");
    printf("Preset strict: ");
    print_roff(s->strict ? s->strict : "not set");
    printf("; dev: ");
    print_roff(s->dev ? s->dev : "not set");
    puts(".");
    if (s->variable)
        printf("Variable: %s.\n", s->variable);
    if (s->no_agent)
        puts("An agent's own block cannot change it.");
}

void schema_print_man(void)
{
    puts(".\\\" Made by 'clawden config schema --format man' from the table of settings.\n"
         ".TH CLAWDEN\\-CONFIG 5 \"\" \"ClawDen " CLAWDEN_VERSION "\" \"ClawDen\"\n"
         ".SH NAME\n"
         "clawden\\-config \\- the settings of sandboxes\n"
         ".SH DESCRIPTION\n"
         "Settings come in layers; the last that says something wins: the preset, clawden.yaml,\n"
         "openclaw.json for all agents, the profile's extra_vars, \\-e on the command line, and "
         "the\n"
         "agent's own block in openclaw.json. 'clawden sandbox explain' shows each value and "
         "where it\n"
         "came from, 'clawden config check' what is wrong, and where.\n"
         ".SH FILES\n"
         ".TP\n.I ~/.openclaw/openclaw.json\n"
         "JSON5, with $include and ${VAR}; OPENCLAW_CONFIG_PATH, OPENCLAW_STATE_DIR and "
         "OPENCLAW_HOME move it.\n"
         ".TP\n.I clawden.yaml\n"
         "its keys 'sandbox' (the same settings), 'preset' and 'mode'.\n"
         ".TP\n.I ~/.openclaw/sandbox\\-profile.toml\n"
         "its table [extra_vars].\n"
         ".TP\n.I ~/.openclaw/.env, /etc/openclaw/secrets.env\n"
         "variables for ${VAR}; both must be readable by nobody else (mode 0600).\n"
         ".SH SETTINGS\n"
         ".ad l");
    for (size_t i = 0; i < SETTINGS; i++)
        print_man_setting(&settings_table[i]);
    puts(".SH SEE ALSO\n.BR clawden (1)");
}

/* ---- ansible/roles/sandbox/defaults/main.yml (R132, R151) ---- */

static void print_yaml_value(const char *text)
{
    json_t *v = parse(text), *e;
    size_t i;

    if (json_is_array(v)) {
        (void)putchar('[');
        json_array_foreach(v, i, e) printf("%s%s", i ? ", " : "", json_string_value(e));
        puts("]");
    } else {
        puts(json_is_string(v) ? json_string_value(v) : text);
    }
    json_decref(v);
}

void schema_print_ansible(void)
{
    static const struct {
        enum setting_id id;
        bool has_extra;
    } order[] = {{SETTING_ENABLED, false},
                 {SETTING_MODE, false},
                 {SETTING_SCOPE, false},
                 {SETTING_WORKSPACE_ACCESS, false},
                 {SETTING_IMAGE, false},
                 {SETTING_BROWSER, false},
                 {SETTING_NETWORK, false},
                 {SETTING_NETWORK_ALLOW, true},
                 {SETTING_NETWORK_EXEC_ALLOW, true},
                 {SETTING_NETWORK_NETWORK, false},
                 {SETTING_SETUP_SCRIPT, false},
                 {SETTING_VAULT_PATH, false},
                 {SETTING_VAULT_ACCESS, false}};

    puts("---\n# Made by 'clawden config schema --format ansible' from the table of settings.");
    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
        const struct setting *s = &settings_table[order[i].id];

        printf("# %s\n%s: ", s->help, s->variable);
        if (order[i].id == SETTING_ENABLED)
            puts("\"{{ docker_enabled }}\"");
        else
            print_yaml_value(s->strict);
        if (order[i].has_extra)
            printf("# added to it, without replacing it\n%s_extra: []\n", s->variable);
    }
}
