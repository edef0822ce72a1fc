/* SPDX-License-Identifier: Apache-2.0 */
/* `clawden why` and `clawden what-if`: the policy's answer about one call, without any box. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/usage.h"
#include "cmd/clawden/clawden.h"
#include "cmd/clawden/decision.h"

static void print_verdict(const struct decision *d, const struct verdict *v)
{
    const char *change = decision_change(d, v);

    printf("%s%s%s: %s\n", v->allowed ? "" : "deny", v->allowed ? route_name(v->route) : "",
           v->argv.n ? " (without a shell)" : "", v->reason);
    printf("  rule:   %s\n", v->rule);
    if (change)
        printf("  change: %s\n", change);
    if (v->approve[0])
        printf("  asks:   approve '%s': through the gateway it waits for a person's yes (%s)\n",
               v->approve, v->approve_why);
}

static int answer(struct settings_args *args, struct decision *d, struct verdict *v)
{
    struct error err;
    struct call call;
    bool asked;

    if (decision_load(args, "cli", d, &err) < 0) {
        log_error("%s", err.msg);
        return 1;
    }
    call = decision_call(d, args, &asked);
    policy_decide(&d->policy, &call, v);
    return 0;
}

/* Options, and one word that is the command line. Negative: go on; else the exit status. */
static int take_words(struct settings_args *a, int argc, char **argv, int (*usage)(void))
{
    for (int i = 1; i < argc; i++) {
        int r = settings_args_take(a, argc, argv, &i);

        if (r < 0)
            return 2;
        if (r > 0)
            continue;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return usage();
        if (argv[i][0] == '-')
            return usage_unknown(strcmp(argv[0], "why") == 0 ? "clawden why" : "clawden what-if",
                                 argv[i]);
        if (a->command) {
            log_error("%s: '%s' is one word too many: put the whole command line in quotes",
                      argv[0], argv[i]);
            return 2;
        }
        a->command = argv[i];
    }
    return -1;
}

/* ---- why ---- */

static int why_usage(void)
{
    puts("clawden why [COMMAND LINE] [--tool NAME] [--session KEY] [--agent ID] [--json]\n"
         "\n"
         "May this call run, and where? The rule that decides, the reason, and the key that would\n"
         "change it; nothing is run and no box is made. Exit status 0: it may; 1: it may\n"
         "not, or the settings are wrong.\n"
         "\n"
         "  clawden why 'gh pr list'\n"
         "  clawden why 'gh pr list | sh'\n"
         "  clawden why --tool browser\n");
    puts(settings_args_help);
    return 0;
}

int cmd_why(int argc, char **argv)
{
    auto_settings_args args = {.in.remember = true};
    struct decision d;
    struct verdict v;
    int status;

    status = take_words(&args, argc, argv, why_usage);
    if (status >= 0)
        return status;
    if (!args.command && !args.tool) {
        log_error("why: about which call? Write a command line in quotes, or --tool NAME");
        return 2;
    }
    status = answer(&args, &d, &v);
    if (status)
        return status;
    decision_say(d.config, false);
    if (args.json) {
        json_t *o = json_object();

        decision_add_verdict(o, &d, &v);
        (void)json_dumpf(o, stdout, JSON_INDENT(2));
        puts("");
        json_decref(o);
    } else {
        print_verdict(&d, &v);
    }
    status = v.allowed ? 0 : 1;
    verdict_done(&v);
    decision_done(&d);
    return status;
}

/* ---- what-if ---- */

static char *text_of(const struct setting *s, json_t *value)
{
    json_t *shown = value ? decision_visible(s, value) : NULL;
    char *text = shown ? json_dumps(shown, JSON_COMPACT | JSON_ENCODE_ANY) : strdup("not set");

    json_decref(shown);
    return text;
}

/* Every setting that is different, as {key: [before, after]}. */
static json_t *differences(const struct settings *before, const struct settings *after)
{
    json_t *all = json_object();

    for (size_t i = 0; i < SETTINGS; i++) {
        char full[128];
        char *a, *b;

        if (before->value[i] == after->value[i] || json_equal(before->value[i], after->value[i]))
            continue;
        a = text_of(&settings_table[i], before->value[i]);
        b = text_of(&settings_table[i], after->value[i]);
        json_object_set_new(all, setting_full_path(&settings_table[i], full, sizeof(full)),
                            json_pack("[s,s]", a ? a : "?", b ? b : "?"));
        free(a);
        free(b);
    }
    return all;
}

static void print_what_if(json_t *changed, const struct decision *now, const struct verdict *before,
                          const struct decision *then, const struct verdict *after)
{
    const char *key;
    json_t *pair;

    json_object_foreach(changed, key, pair)
        printf("%s: %s -> %s\n", key, json_string_value(json_array_get(pair, 0)),
               json_string_value(json_array_get(pair, 1)));
    if (json_object_size(changed) == 0)
        puts("no setting would change");
    if (!before)
        return;
    printf("now: ");
    print_verdict(now, before);
    printf("then: ");
    print_verdict(then, after);
}

static int what_if_usage(void)
{
    puts(
        "clawden what-if --set KEY=VALUE [--set ...] [COMMAND LINE] [--tool NAME] [--json]\n"
        "\n"
        "What would be different if a setting were: the settings that change and, for a call, the\n"
        "answer now and then. Nothing is written. Keys are those of a sandbox block, and "
        "tools.allow,\n"
        "tools.alsoAllow, tools.deny; values are JSON or a plain word.\n"
        "\n"
        "  clawden what-if --set docker.network=bridge 'npm install'\n"
        "  clawden what-if --set 'networkExecAllow=[\"gh\",\"npm\"]' 'npm install'\n");
    puts(settings_args_help);
    return 0;
}

int cmd_what_if(int argc, char **argv)
{
    auto_settings_args args = {.in.remember = true};
    struct settings_args plain;
    struct decision now, then;
    struct verdict before, after;
    json_t *changed;
    bool asked;
    int status;

    status = take_words(&args, argc, argv, what_if_usage);
    if (status >= 0)
        return status;
    if (!args.in.what_if) {
        log_error("what-if: which setting? Write --set KEY=VALUE: see 'clawden what-if --help'");
        return 2;
    }
    plain = args;
    plain.in.what_if = NULL;
    status = answer(&plain, &now, &before);
    if (status)
        return status;
    decision_say(now.config, false);
    status = answer(&args, &then, &after);
    if (status == 0) {
        asked = args.tool || args.command;
        changed = differences(&now.settings, &then.settings);
        if (args.json) {
            json_t *o = json_pack("{s:O}", "changed", changed);

            if (asked) {
                json_t *a = json_object(), *b = json_object();

                decision_add_verdict(a, &now, &before);
                decision_add_verdict(b, &then, &after);
                json_object_set_new(o, "now", a);
                json_object_set_new(o, "then", b);
            }
            (void)json_dumpf(o, stdout, JSON_INDENT(2));
            puts("");
            json_decref(o);
        } else {
            print_what_if(changed, &now, asked ? &before : NULL, &then, &after);
        }
        json_decref(changed);
        verdict_done(&after);
        decision_done(&then);
    }
    verdict_done(&before);
    decision_done(&now);
    return status;
}
