/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "policy/internal.h"

/* What texts show of a name that somebody else chose. */
#define SHOWN 96

/* ---- answers ---- */

/* vsnprintf cuts anywhere: what is left must still be whole characters. */
__attribute__((format(printf, 3, 0))) static void say(char *ret, size_t size, const char *fmt,
                                                      va_list ap)
{
    int n = vsnprintf(ret, size, fmt, ap);
    size_t end;

    if (n < 0 || (size_t)n < size)
        return;
    end = size - 1;
    while (end && ((unsigned char)ret[end - 1] & 0xc0) == 0x80)
        end--;
    if (end && (unsigned char)ret[end - 1] >= 0xc0)
        end--;
    ret[end] = 0;
}

void verdict_deny(struct verdict *v, const char *change, const char *rule, const char *fmt, ...)
{
    va_list ap;

    v->allowed = false;
    v->route = ROUTE_ISOLATED;
    v->change = change;
    (void)snprintf(v->rule, sizeof(v->rule), "%s", rule);
    va_start(ap, fmt);
    say(v->reason, sizeof(v->reason), fmt, ap);
    va_end(ap);
}

__attribute__((format(printf, 5, 6))) static void verdict_route(struct verdict *v, enum route route,
                                                                const char *change,
                                                                const char *rule, const char *fmt,
                                                                ...)
{
    va_list ap;

    v->allowed = true;
    v->route = route;
    v->change = change;
    (void)snprintf(v->rule, sizeof(v->rule), "%s", rule);
    va_start(ap, fmt);
    say(v->reason, sizeof(v->reason), fmt, ap);
    va_end(ap);
}

void verdict_done(struct verdict *v)
{
    words_done(&v->argv);
}

const char *route_name(enum route r)
{
    switch (r) {
    case ROUTE_DIRECT:
        return "direct";
    case ROUTE_ISOLATED:
        return "isolated";
    case ROUTE_NETWORK:
        return "network";
    }
    return "unknown";
}

/* ---- who is sandboxed ---- */

bool policy_is_sandboxed(const struct policy *p, const char *agent, const char *session,
                         const char **ret_rule)
{
    const char *rule = "mode 'all'";
    bool boxed = true;

    if (!p->enabled) {
        rule = "enabled 'false'";
        boxed = false;
    } else if (p->mode == MODE_OFF) {
        rule = "mode 'off'";
        boxed = false;
    } else if (p->mode == MODE_NON_MAIN) {
        rule = "mode 'non-main'";
        boxed = !names_is_main(agent, session, p->sessions_are_global);
    }
    if (ret_rule)
        *ret_rule = rule;
    return boxed;
}

bool policy_is_dual(const struct policy *p)
{
    return p->network == NETWORK_NONE && p->second != NETWORK_NONE &&
           (p->network_allow.n || p->network_exec.n);
}

/* ---- the call ---- */

/* Does the scope of this call have a name, and is it this agent's? A box is made by the policy of
 * its agent, so that an agent in another's session would run by the wrong one. */
static bool check_names(const struct policy *p, const struct call *c, struct verdict *v)
{
    char key[NAMES_KEY], owner[NAMES_AGENT];
    bool named = c->agent && *c->agent;

    if (names_agent_of(c->session, owner, sizeof(owner)) < 0) {
        verdict_deny(v, NULL, "session", "the session has no valid key");
        return false;
    }
    if (named && names_scope_key(NAMES_PLAIN, SCOPE_AGENT, c->agent, NULL, NULL, key) < 0) {
        verdict_deny(v, NULL, "agent", "the agent has no valid id");
        return false;
    }
    if (named && *owner && strcmp(key + strlen("agent:"), owner) != 0) {
        verdict_deny(v, NULL, "session", "the session is of agent '%s', not of '%s'", owner,
                     key + strlen("agent:"));
        return false;
    }
    if (names_scope_key(NAMES_PLAIN, p->scope, c->agent, c->session, NULL, key) < 0) {
        verdict_deny(v, KEY_SANDBOX("scope"), "scope", "session and agent do not name a scope");
        return false;
    }
    return true;
}

static bool check_tool(const char *tool, struct verdict *v)
{
    size_t len;

    if (tool && policy_is_odd(tool, strlen(tool)))
        verdict_deny(v, NULL, "tool", "the tool's name is not plain text");
    else if (!tool || (policy_trim(tool, &len), len == 0))
        verdict_deny(v, NULL, "tool", "the call names no tool");
    else if (len >= sizeof(v->tool))
        verdict_deny(v, NULL, "tool", "the tool's name is longer than %zu bytes",
                     sizeof(v->tool) - 1);
    else
        return true;
    v->tool[0] = 0;
    return false;
}

/* ---- where it runs ---- */

static void decide_single(const struct policy *p, struct verdict *v)
{
    const char *rule = p->network == NETWORK_BRIDGE      ? "docker.network 'bridge'"
                       : p->network == NETWORK_ALLOWLIST ? "docker.network 'allowlist'"
                       : p->network == NETWORK_HOST      ? "docker.network 'host'"
                                                         : "docker.network";

    verdict_route(v, ROUTE_NETWORK, KEY_NETWORK, rule,
                  "one box does everything, and it has a network");
}

static void decide_alone(const struct policy *p, struct verdict *v)
{
    if (p->second == NETWORK_NONE)
        verdict_route(v, ROUTE_ISOLATED, KEY_SECOND, "networkDocker.network 'none'",
                      "no box has a network");
    else
        verdict_route(v, ROUTE_ISOLATED, KEY_NETWORK_ALLOW, "docker.network 'none'",
                      RULE_NETWORK_ALLOW " and " RULE_NETWORK_EXEC " are empty");
}

static void isolate_exec(struct verdict *v, const char *reason, const char *detail,
                         const char *after)
{
    verdict_route(v, ROUTE_ISOLATED, KEY_NETWORK_EXEC, RULE_NETWORK_EXEC, "%s%.*s%s", reason,
                  policy_clip(detail, SHOWN), detail, after);
}

/*
 * A command reaches the network only as the words that were looked at, without a shell: whatever
 * is not surely one simple command stays isolated, where a shell can do no harm (C14).
 */
static void decide_exec(const struct policy *p, const char *command, struct verdict *v)
{
    const char *why, *word;
    char rule[sizeof(v->rule)];

    if (p->network_exec.n == 0) {
        isolate_exec(v, RULE_NETWORK_EXEC " is empty", "", "");
        return;
    }
    if (!command) {
        isolate_exec(v, "the call has no command", "", "");
        return;
    }
    if (words_split(command, strlen(command), &v->argv, &why) < 0) {
        isolate_exec(v, "not one simple command: ", why, "");
        return;
    }
    word = programs_find(&p->network_exec, v->argv.argv[0]);
    if (!word) {
        isolate_exec(v, "no entry of " RULE_NETWORK_EXEC " matches '", v->argv.argv[0], "'");
        words_done(&v->argv);
        return;
    }
    (void)snprintf(rule, sizeof(rule), RULE_NETWORK_EXEC " '%.*s'", policy_clip(word, 120), word);
    verdict_route(v, ROUTE_NETWORK, KEY_NETWORK_EXEC, rule,
                  "'%.*s' runs with a network, without a shell",
                  policy_clip(v->argv.argv[0], SHOWN), v->argv.argv[0]);
    v->second_box = true;
}

static void decide_route(const struct policy *p, const struct call *c, struct verdict *v)
{
    const char *word;
    char rule[sizeof(v->rule)];

    if (p->network != NETWORK_NONE) {
        decide_single(p, v);
        return;
    }
    if (!policy_is_dual(p)) {
        decide_alone(p, v);
        return;
    }
    word = tools_find(&p->network_allow, v->tool);
    if (word) { /* an exec too, shell and all, if that is what the operator wrote */
        (void)snprintf(rule, sizeof(rule), RULE_NETWORK_ALLOW " '%.*s'", policy_clip(word, 120),
                       word);
        verdict_route(v, ROUTE_NETWORK, KEY_NETWORK_ALLOW, rule,
                      "the tool '%s' runs with a network", v->tool);
        v->second_box = true;
    } else if (strcmp(v->tool, "exec") == 0) {
        decide_exec(p, c->command, v);
    } else {
        verdict_route(v, ROUTE_ISOLATED, KEY_NETWORK_ALLOW, RULE_NETWORK_ALLOW,
                      "no entry of " RULE_NETWORK_ALLOW " matches '%s'", v->tool);
    }
}

void policy_decide(const struct policy *p, const struct call *c, struct verdict *ret)
{
    const char *rule;

    *ret = (struct verdict){0};
    policy_tool_name(c->tool ? c->tool : "", ret->tool, sizeof(ret->tool));
    if (!policy_is_sandboxed(p, c->agent, c->session, &rule)) {
        /* The lists are about sandboxed sessions: the client has its own for the others. */
        verdict_route(ret, ROUTE_DIRECT, p->enabled ? KEY_MODE : KEY_ENABLED, rule,
                      "this session is not sandboxed");
        return;
    }
    if (check_names(p, c, ret) && check_tool(c->tool, ret) && tools_allow(p, ret))
        decide_route(p, c, ret);
    if (ret->allowed)
        approve_mark(&p->approve, c->command, ret);
}
