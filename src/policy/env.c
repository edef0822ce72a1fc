/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which variables reach which box (C3, C4). The names do not decide what a program may do with a
 * value, only who sees it: a secret belongs where the network is, the gateway's own tokens nowhere.
 * Names that change how programs load (LD_PRELOAD, BASH_ENV, ...) pass: inside a box they reach
 * nothing that a command there could not do anyway.
 */
#include <string.h>

#include "policy/glob.h"
#include "policy/policy.h"

static bool is_name(const char *s)
{
    static const char chars[] = "0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

    return *s && strchr(chars + 10, *s) && s[strspn(s, chars)] == 0;
}

static bool matches_any(const char *name, const char *const *patterns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (glob_match(patterns[i], name))
            return true;
    return false;
}

bool policy_env_is_reserved(const char *name)
{
    static const char *const reserved[] = {
        "OPENCLAW_GATEWAY_TOKEN", "OPENCLAW_GATEWAY_PASSWORD",
        "TELEGRAM_BOT_TOKEN",     "DISCORD_BOT_TOKEN",
        "CLAWDEN_*TOKEN",         "SANDBOX_GUARD_TOKEN",
        "TOOL_RUNNER_TOKEN",
    };

    return matches_any(name, reserved, sizeof(reserved) / sizeof(*reserved));
}

bool policy_env_is_secret(const char *name)
{
    /* AWS_SESSION_TOKEN, GH_TOKEN and GITHUB_TOKEN are among the first pattern's. */
    static const char *const secrets[] = {
        "*_TOKEN",       "*_API_KEY",
        "*_PASSWORD",    "*_PASSWD",
        "*_SECRET",      "*_PRIVATE_KEY",
        "*_CREDENTIALS", "AWS_SECRET_ACCESS_KEY",
        "TOKEN",         "PASSWORD",
        "SECRET",        "API_KEY",
        "*_KEY",         "*_PAT",
        "*_PASS",        "*_AUTH",
        "*_DSN",         "*_URI",
        "DATABASE_URL",  "*_DATABASE_URL",
        "REDIS_URL",     "*_CONNECTION_STRING",
        "*_CREDENTIAL",  "*_WEBHOOK*",
    };

    return matches_any(name, secrets, sizeof(secrets) / sizeof(*secrets));
}

enum env_place policy_env_place(const struct policy *p, const char *name, bool is_reference,
                                bool allow_reserved, const char **ret_why)
{
    const char *unused;
    bool secret;

    if (!ret_why)
        ret_why = &unused;
    if (!is_name(name)) {
        *ret_why = "not the name of a variable";
        return ENV_NOWHERE;
    }
    if (policy_env_is_reserved(name) && !allow_reserved) {
        *ret_why = "a token of the gateway; dangerouslyAllowReservedEnv lets it in";
        return ENV_NOWHERE;
    }
    secret = policy_env_is_secret(name) || policy_env_is_reserved(name);
    if (!secret && !is_reference) {
        *ret_why = "a literal";
        return ENV_BOTH;
    }
    if (!policy_is_dual(p)) {
        *ret_why = "there is one box only";
        return ENV_BOTH;
    }
    *ret_why = is_reference ? "taken from the gateway's environment" : "its name is a secret's";
    return ENV_NETWORK_ONLY;
}
