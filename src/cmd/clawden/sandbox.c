/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/clawden/sandbox.h"
#include "cmd/clawden/decision.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/usage.h"
#include "cmd/clawden/clawden.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} verbs[] = {
    {"explain", sandbox_explain, "would this call run, where, and which key decides that"},
    {"exec", sandbox_verb_exec, "run a command as a tool call: decided, routed, in its box"},
    {"start", sandbox_verb_start, "make the box of a session before it is called for"},
    {"list", sandbox_verb_list, "the boxes of sessions and agents"},
    {"recreate", sandbox_verb_remove, "remove boxes, so that the next call makes them anew"},
    {"rm", sandbox_verb_remove, "the same, by name too"},
    {"network", sandbox_verb_network, "what a box may reach and has reached; change it at once"},
    {"prune", sandbox_verb_prune, "remove boxes that are idle or old"},
};
enum { N_VERBS = sizeof(verbs) / sizeof(*verbs) };

static void usage(void)
{
    puts("clawden sandbox: the boxes that OpenClaw's sessions work in.\n");
    for (int i = 0; i < N_VERBS; i++)
        printf("  clawden sandbox %-9s %s\n", verbs[i].name, verbs[i].help);
    puts("\n"
         "A session, an agent or everybody (scope) has one box without a network and, for the "
         "tools\n"
         "and commands that openclaw.json names (networkAllow, networkExecAllow), a second one, "
         "-net.\n"
         "\n"
         "  clawden sandbox explain --session agent:main:work --tool exec --command 'gh pr list'\n"
         "  clawden sandbox exec --session agent:main:work --command 'make test'\n"
         "  clawden sandbox exec --agent main -- gh pr list\n"
         "  clawden sandbox list\n"
         "  clawden sandbox recreate --agent main        after a change of openclaw.json\n"
         "  clawden sandbox prune --dry-run\n"
         "\n"
         "Options of all of them:");
    puts(settings_args_help);
}

int cmd_sandbox(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "--help";

    if (sandbox_wants_help(verb) || strcmp(verb, "help") == 0) {
        usage();
        return argc > 1 ? 0 : 2;
    }
    for (int i = 0; i < N_VERBS; i++)
        if (strcmp(verb, verbs[i].name) == 0)
            return verbs[i].run(argc - 1, argv + 1);
    return usage_unknown_verb("clawden sandbox", verb, verbs, N_VERBS, sizeof(*verbs));
}

bool sandbox_wants_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int sandbox_unknown(const char *verb, const char *word)
{
    char command[64];

    (void)snprintf(command, sizeof(command), "clawden sandbox %s", verb);
    return usage_unknown(command, word);
}

/* ---- boxes ---- */

static bool is_on(const struct box_record *r, const char *label)
{
    const char *value = scope_label(r, label);

    return value && strcmp(value, "1") == 0;
}

bool sandbox_is_listed(const struct box_record *r, bool browser)
{
    /* The client's browser boxes have both labels. */
    return is_on(r, LABEL_BROWSER) ? browser : !browser && is_on(r, LABEL_SANDBOX);
}

const char *sandbox_key(const struct box_record *r)
{
    const char *key = scope_label(r, LABEL_SESSION);

    return key ? key : "";
}

void sandbox_plain_key(const char *key, char ret[static NAMES_KEY])
{
    static const char mark[] = ":workspace:";
    size_t n = strlen(key), tail = sizeof(mark) - 1 + 32;

    if (n > tail && strncmp(key + n - tail, mark, sizeof(mark) - 1) == 0 &&
        strspn(key + n - 32, "0123456789abcdef") == 32)
        n -= tail;
    (void)snprintf(ret, NAMES_KEY, "%.*s", (int)n, key);
}

void sandbox_agent(const struct box_record *r, char ret[static NAMES_AGENT])
{
    char key[NAMES_KEY], session[NAMES_KEY + 4];

    sandbox_plain_key(sandbox_key(r), key);
    (void)snprintf(session, sizeof(session), "%s:x", key); /* "agent:id" alone is no session */
    if (names_agent_of(session, ret, NAMES_AGENT) < 0)
        ret[0] = 0;
}

/* ---- which of them ---- */

void sandbox_scope_asked(struct settings_args *a, char ret[static NAMES_KEY])
{
    autoptr(config) c = NULL;
    struct policy p = {0};
    struct settings s = {0};
    char agent[NAMES_AGENT];
    struct error none;

    ret[0] = 0;
    if (!a->session || names_agent_of(a->session, agent, sizeof(agent)) < 0 || !agent[0] ||
        config_load(&a->in, &c, &none) < 0 || config_for_agent(c, agent, &s, &none) < 0)
        return;
    if (policy_make(&s, config_sessions_are_global(c), &p, &none) >= 0) {
        if (names_scope_key(NAMES_PLAIN, p.scope, agent, a->session, NULL, ret) < 0)
            ret[0] = 0;
        policy_done(&p);
    }
    settings_done(&s);
}

bool sandbox_is_asked(const struct box_record *r, const struct settings_args *a, const char *scope)
{
    char agent[NAMES_AGENT], want[NAMES_AGENT], plain[NAMES_KEY];

    sandbox_agent(r, agent);
    if (a->agent && (!agent[0] || names_agent(a->agent, want) < 0 || strcmp(agent, want) != 0))
        return false;
    sandbox_plain_key(sandbox_key(r), plain);
    return !a->session || strcmp(sandbox_key(r), a->session) == 0 ||
           strcmp(plain, a->session) == 0 || (scope[0] && strcmp(plain, scope) == 0);
}

/* ---- configuration ---- */

int sandbox_load(struct settings_args *a, struct config **ret)
{
    struct error err;

    if (config_load(&a->in, ret, &err) < 0) {
        log_error("%s", err.msg);
        return -1;
    }
    decision_say(*ret, true);
    return 0;
}
