/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy and a call out of lines: flags, allow, alsoAllow, deny, networkAllow, networkExecAllow
 * (words between commas), agent, session, tool, and the rest is the command. Less allowed or more
 * denied never reaches further, and what networkExecAllow lets out is words that it lists.
 *
 * Flags: x not enabled; o, n mode off, non-main; A, S scope agent, shared; b, h, t network bridge,
 * host, other; s no second network; c, d allow and deny are configured; g sessions are global;
 * e an empty allow list.
 */
#include "policy/policy.h"

#include <jansson.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "config/settings.h"
#include "policy/glob.h"
#include "tests/fuzz/fuzz.h"

enum line { FLAGS, ALLOW, ALSO, DENY, TOOLS, PROGRAMS, AGENT, SESSION, TOOL, COMMAND, LINES };

#define LIST_MAX 12 /* each entry is removed once: more would only be slow */

static const enum setting_id list_ids[] = {[ALLOW] = SETTING_TOOLS_ALLOW,
                                           [ALSO] = SETTING_TOOLS_ALSO,
                                           [DENY] = SETTING_TOOLS_DENY,
                                           [TOOLS] = SETTING_NETWORK_ALLOW,
                                           [PROGRAMS] = SETTING_NETWORK_EXEC_ALLOW};

static bool cut_lines(char *text, char *ret[static LINES])
{
    for (int i = 0; i < LINES; i++) {
        ret[i] = text;
        if (i == COMMAND)
            break;
        text = strchr(text, '\n');
        if (!text)
            return false;
        *text++ = 0;
    }
    return true;
}

static json_t *read_list(char *line)
{
    json_t *list = json_array();

    for (char *word = line; word && *line && json_array_size(list) < LIST_MAX;) {
        char *comma = strchr(word, ',');
        size_t n = comma ? (size_t)(comma - word) : strlen(word);

        /* Unchecked: the policy looks at the bytes itself. */
        json_array_append_new(list, json_stringn_nocheck(word, n));
        word = comma ? comma + 1 : NULL;
    }
    return list;
}

static json_t *choose(const char *flags, const char *letters, const char *const *words)
{
    for (size_t i = 0; letters[i]; i++)
        if (strchr(flags, letters[i]))
            return json_string(words[i]);
    return json_string(words[strlen(letters)]);
}

static void read_settings(char *const lines[static LINES], struct settings *s)
{
    static const char *const modes[] = {"off", "non-main", "all"};
    static const char *const scopes[] = {"agent", "shared", "session"};
    static const char *const networks[] = {"bridge", "host", "mine", "none"};
    static const char *const seconds[] = {"none", "bridge"};
    const char *flags = lines[FLAGS];

    *s = (struct settings){0};
    s->value[SETTING_ENABLED] = json_boolean(!strchr(flags, 'x'));
    s->value[SETTING_MODE] = choose(flags, "on", modes);
    s->value[SETTING_SCOPE] = choose(flags, "AS", scopes);
    s->value[SETTING_NETWORK] = choose(flags, "bht", networks);
    s->value[SETTING_NETWORK_NETWORK] = choose(flags, "s", seconds);
    for (int i = ALLOW; i <= PROGRAMS; i++) {
        s->value[list_ids[i]] = read_list(lines[i]);
        s->from[list_ids[i]].kind = ORIGIN_AGENT;
    }
    if (strchr(flags, 'e'))
        json_array_clear(s->value[SETTING_TOOLS_ALLOW]);
    if (!strchr(flags, 'c'))
        s->from[SETTING_TOOLS_ALLOW].kind = ORIGIN_PRESET;
    if (!strchr(flags, 'd'))
        s->from[SETTING_TOOLS_DENY].kind = ORIGIN_PRESET;
}

/* ---- properties ---- */

static bool is_listed(const struct policy_list *l, const char *program)
{
    for (size_t i = 0; i < l->n; i++)
        if (glob_match(l->words[i], program) && (!strchr(program, '/') || strchr(l->words[i], '/')))
            return true;
    return false;
}

static void check_verdict(const struct policy *p, const struct verdict *v)
{
    bool by_exec = v->route == ROUTE_NETWORK && strncmp(v->rule, "networkExec", 11) == 0;

    PROPERTY(by_exec == (v->argv.n > 0), "argv and '%s'", v->rule);
    if (by_exec)
        PROPERTY(v->second_box && is_listed(&p->network_exec, v->argv.argv[0]), "'%s' by '%s'",
                 v->argv.argv[0], v->rule);
    PROPERTY(v->allowed || (v->route == ROUTE_ISOLATED && !v->second_box), "denied, and routed");
    PROPERTY(v->rule[0] && v->reason[0], "no rule or reason");
    PROPERTY(!v->second_box || policy_is_dual(p), "a second box where there is none");
}

/* How much is let through; -1: there is no such policy. */
static int reach(const struct settings *s, bool global, const struct call *c)
{
    struct error err = {0};
    struct policy p;
    struct verdict v;
    int r;

    if (policy_make(s, global, &p, &err) < 0) {
        PROPERTY(err.code && err.msg[0], "refused without a word");
        return -1;
    }
    policy_decide(&p, c, &v);
    check_verdict(&p, &v);
    r = !v.allowed                  ? 0
        : v.route == ROUTE_ISOLATED ? 1
        : v.route == ROUTE_DIRECT   ? 4
        : v.argv.n                  ? 2
                                    : 3;
    verdict_done(&v);
    policy_done(&p);
    return r;
}

static void check_removals(struct settings *s, bool global, const struct call *c, int before)
{
    for (int i = ALLOW; i <= PROGRAMS; i++) {
        json_t **list = &s->value[list_ids[i]], *full = *list;
        size_t n = json_array_size(full);

        if (i == DENY)
            continue;
        for (size_t j = 0; j < n; j++) {
            int after;

            if (i == ALLOW && n == 1) /* an empty one allows everything */
                continue;
            *list = json_copy(full);
            json_array_remove(*list, j);
            after = reach(s, global, c);
            PROPERTY(after <= before, "list %d without entry %zu: %d became %d", i, j, before,
                     after);
            json_decref(*list);
            *list = full;
        }
    }
}

static void check_additions(struct settings *s, bool global, const struct call *c, int before)
{
    static const char *const more[] = {"exec", "*", "group:web", "e*"};
    json_t *deny = s->value[SETTING_TOOLS_DENY];

    for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++) {
        int after;

        json_array_append_new(deny, json_string(more[i]));
        after = reach(s, global, c);
        PROPERTY(after <= before, "deny '%s': %d became %d", more[i], before, after);
        json_array_remove(deny, json_array_size(deny) - 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = fuzz_text(data, size);
    char *lines[LINES];
    struct settings s;
    struct call c;
    bool global;
    int before;

    if (!cut_lines(text, lines))
        return 0;
    read_settings(lines, &s);
    global = strchr(lines[FLAGS], 'g');
    c = (struct call){.agent = lines[AGENT],
                      .session = lines[SESSION],
                      .tool = lines[TOOL],
                      .command = lines[COMMAND]};
    before = reach(&s, global, &c);
    if (before >= 0) {
        PROPERTY(reach(&s, global, &c) == before, "two answers");
        check_removals(&s, global, &c, before);
        check_additions(&s, global, &c, before);
    }
    settings_done(&s);
    return 0;
}
