/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/state.h"
#include "base/usage.h"
#include "cmd/clawden/clawden.h"
#include "cmd/clawden/decision.h"
#include "cmd/clawden/schema.h"
#include "sandbox/scope.h"

/* ---- what this program itself is set to ---- */

/* The folders have rules of their own: what they come to, not what the table says. */
static const char *effective(enum config_key key, bool *is_set, char *path, size_t size)
{
    const char *text = config_text(key, is_set);
    struct error ignored;

    if (key == CONFIG_DATA_DIR && state_data_path(path, size, &ignored) >= 0)
        return path;
    if (key == CONFIG_RUNTIME_DIR && state_runtime_path(path, size, &ignored) >= 0)
        return path;
    return text;
}

static int own_json(void)
{
    autobuf b;

    buf_init(&b, 64 << 10);
    buf_puts(&b, "{");
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct config_setting *s = config_setting((enum config_key)i);
        char path[4096];
        bool is_set;
        const char *value = effective((enum config_key)i, &is_set, path, sizeof(path));

        buf_json_key(&b, s->name);
        buf_puts(&b, "{");
        buf_json_str(&b, "value", value);
        buf_json_str(&b, "from", is_set ? s->variable : "standard");
        buf_json_str(&b, "standard", s->standard);
        buf_json_str(&b, "help", s->help);
        buf_puts(&b, "}");
    }
    buf_puts(&b, "}\n");
    if (!b.failed)
        (void)fputs(b.data, stdout);
    return 0;
}

static int own_text(void)
{
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct config_setting *s = config_setting((enum config_key)i);
        char path[4096];
        bool is_set;
        const char *value = effective((enum config_key)i, &is_set, path, sizeof(path));

        printf("%-15s %-32s %s\n", s->name, value, is_set ? s->variable : "standard");
        printf("%-15s %s%s%s\n", "", s->help, is_set ? "" : "; set it by ",
               is_set ? "" : s->variable);
    }
    return 0;
}

/* ---- check ---- */

/* Everything that a first call of this agent would find wrong. */
static int check_agent(const struct settings_args *args, const char *agent, struct error *err)
{
    struct settings_args one = *args;
    auto_decision d = {0};
    autoptr(scope_plan) plan = NULL;
    autoptr(wish) rules = NULL;
    int r;

    one.agent = agent;
    one.session = NULL;
    r = decision_load(&one, "check", &d, err);
    if (r < 0)
        return r;
    r = scope_plan_make(&(struct scope_request){.config = d.config,
                                                .settings = &d.settings,
                                                .policy = &d.policy,
                                                .agent = d.agent,
                                                .session = d.session},
                        &plan, err);
    if (r >= 0) /* also where no box has a network yet */
        r = scope_wish(&d.settings, "allowlist", &rules, err);
    for (size_t i = 0; r >= 0 && plan->warnings && plan->warnings[i]; i++)
        log_warn("agent '%s': %s", d.agent, plan->warnings[i]);
    return r < 0 ? error_wrap(err, "agent '%s'", d.agent) : 0;
}

static int check_json(const struct config *c, size_t agents)
{
    json_t *files = json_array(), *o;

    for (size_t i = 0; config_file(c, i); i++)
        json_array_append_new(files, json_string(config_file(c, i)));
    o = json_pack("{s:b,s:o,s:I}", "ok", 1, "files", files, "agents", (json_int_t)agents);
    (void)json_dumpf(o, stdout, JSON_COMPACT);
    puts("");
    json_decref(o);
    return 0;
}

static int check(const struct settings_args *args)
{
    autoptr(config) c = NULL;
    struct error err;
    const char *text;
    size_t files = 0, agents = 0;
    int r = config_load(&args->in, &c, &err);

    if (r >= 0)
        r = check_agent(args, "main", &err);
    for (size_t i = 0; r >= 0 && (text = config_agent(c, i)); i++, agents++)
        if (strcmp(text, "main") != 0)
            r = check_agent(args, text, &err);
    if (r < 0) {
        log_error("%s", err.msg);
        return 1;
    }
    for (size_t i = 0; (text = config_warning(c, i)); i++)
        log_warn("%s", text);
    if (args->json)
        return check_json(c, agents);
    for (; config_file(c, files); files++)
        printf("%s\n", config_file(c, files));
    printf("ok: %zu file%s, %zu agent%s named\n", files, files == 1 ? "" : "s", agents,
           agents == 1 ? "" : "s");
    return 0;
}

/* ---- show ---- */

static int show(const struct settings_args *args, bool sources)
{
    auto_decision d = {0};
    struct error err;
    json_t *all = json_object();

    if (decision_load(args, "main", &d, &err) < 0) {
        json_decref(all);
        log_error("%s", err.msg);
        return 1;
    }
    decision_say(d.config, false);
    for (size_t i = 0; i < SETTINGS; i++) {
        char full[128], from[512];
        json_t *shown;
        char *text;

        if (!d.settings.value[i])
            continue;
        shown = decision_visible(&settings_table[i], d.settings.value[i]);
        (void)setting_full_path(&settings_table[i], full, sizeof(full));
        (void)origin_describe(&d.settings.from[i], from, sizeof(from));
        if (args->json) {
            json_object_set_new(all, full,
                                sources ? json_pack("{s:o,s:s}", "value", shown, "source", from)
                                        : shown);
            continue;
        }
        text = json_dumps(shown, JSON_COMPACT | JSON_ENCODE_ANY);
        printf("%s = %s%s%s\n", full, text ? text : "?", sources ? "\n    " : "",
               sources ? from : "");
        free(text);
        json_decref(shown);
    }
    if (args->json) {
        (void)json_dumpf(all, stdout, JSON_INDENT(2));
        puts("");
    }
    json_decref(all);
    return 0;
}

/* ---- the verb ---- */

static int schema(const char *format)
{
    if (!format || strcmp(format, "json") == 0)
        schema_print_json();
    else if (strcmp(format, "man") == 0)
        schema_print_man();
    else if (strcmp(format, "ansible") == 0)
        schema_print_ansible();
    else {
        log_error("--format '%s': write json, man or ansible", format);
        return 2;
    }
    return 0;
}

static int usage(void)
{
    puts(
        "clawden config [--json]            what this program itself is set to\n"
        "clawden config check               read every file and say what is wrong, and where\n"
        "clawden config show [--sources]    the settings of sandboxes as they come to for --agent\n"
        "clawden config schema [--format json|man|ansible]\n"
        "\n"
        "  clawden config check --config ./openclaw.json\n"
        "  clawden config show --sources --agent work\n");
    puts(settings_args_help);
    puts("\nSettings, in a sandbox block or in tools.sandbox.tools (tools.*):");
    for (size_t i = 0; i < SETTINGS; i++) {
        char name[96];

        (void)snprintf(name, sizeof(name), "%s%s",
                       settings_table[i].home == HOME_TOOLS ? "tools." : "",
                       settings_table[i].path);
        printf("  %s\n      %s\n", name, settings_table[i].help);
    }
    return 0;
}

int cmd_config(int argc, char **argv)
{
    auto_settings_args args = {0};
    const char *verb = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL, *format = NULL;
    bool sources = false;

    for (int i = verb ? 2 : 1; i < argc; i++) {
        int r = settings_args_take(&args, argc, argv, &i);

        if (r < 0)
            return 2;
        if (r > 0)
            continue;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return usage();
        if (verb && strcmp(argv[i], "--sources") == 0)
            sources = true;
        else if (verb && strcmp(argv[i], "--format") == 0 && i + 1 < argc)
            format = argv[++i];
        else
            return usage_unknown("clawden config", argv[i]);
    }
    if (!verb)
        return args.json ? own_json() : own_text();
    if (strcmp(verb, "check") == 0)
        return check(&args);
    if (strcmp(verb, "schema") == 0)
        return schema(format);
    args.in.remember = true;
    return strcmp(verb, "show") == 0 ? show(&args, sources) : usage_unknown("clawden config", verb);
}
