/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

#include "tests/test.h"

static char word[] = "gh";
static char *gh[] = {word, NULL};
static const struct policy dual = {
    .enabled = true, .second = NETWORK_BRIDGE, .network_exec = {.words = gh, .n = 1}};
static const struct policy single = {.enabled = true, .network = NETWORK_BRIDGE};
static const struct policy sealed = {.enabled = true, .second = NETWORK_BRIDGE};

static const struct {
    const char *name;
    bool reference, allow_reserved;
    enum env_place in_dual, in_single;
} rows[] = {
    {"LANG", false, false, ENV_BOTH, ENV_BOTH},
    {"_x9", false, false, ENV_BOTH, ENV_BOTH},
    {"LANG", true, false, ENV_NETWORK_ONLY, ENV_BOTH},
    {"GH_TOKEN", false, false, ENV_NETWORK_ONLY, ENV_BOTH},
    {"GH_TOKEN", true, false, ENV_NETWORK_ONLY, ENV_BOTH},
    {"BRAVE_API_KEY", true, false, ENV_NETWORK_ONLY, ENV_BOTH},
    {"brave_api_key", false, false, ENV_NETWORK_ONLY, ENV_BOTH},
    {"LD_PRELOAD", false, false, ENV_BOTH, ENV_BOTH},
    {"IFS", false, false, ENV_BOTH, ENV_BOTH},
    {"OPENCLAW_GATEWAY_TOKEN", true, false, ENV_NOWHERE, ENV_NOWHERE},
    {"openclaw_gateway_token", true, false, ENV_NOWHERE, ENV_NOWHERE},
    {"OPENCLAW_GATEWAY_TOKEN", true, true, ENV_NETWORK_ONLY, ENV_BOTH},
    {"OPENCLAW_GATEWAY_PASSWORD", false, false, ENV_NOWHERE, ENV_NOWHERE},
    {"TELEGRAM_BOT_TOKEN", false, false, ENV_NOWHERE, ENV_NOWHERE},
    {"DISCORD_BOT_TOKEN", false, false, ENV_NOWHERE, ENV_NOWHERE},
    {"CLAWDEN_GUARD_TOKEN", false, false, ENV_NOWHERE, ENV_NOWHERE},
    {"CLAWDEN_TOKEN", false, false, ENV_NOWHERE, ENV_NOWHERE},
    {"CLAWDEN_TOKEN", false, true, ENV_NETWORK_ONLY, ENV_BOTH},
    {"CLAWDEN_XTOKEN", false, true, ENV_NETWORK_ONLY, ENV_BOTH},
    {"CLAWDEN_PYTHON", false, false, ENV_BOTH, ENV_BOTH},
    {"SANDBOX_GUARD_TOKEN", false, false, ENV_NOWHERE, ENV_NOWHERE},
    {"TOOL_RUNNER_TOKEN", false, false, ENV_NOWHERE, ENV_NOWHERE},
    {"", false, true, ENV_NOWHERE, ENV_NOWHERE},
    {"9A", false, true, ENV_NOWHERE, ENV_NOWHERE},
    {"A-B", false, true, ENV_NOWHERE, ENV_NOWHERE},
    {"A=B", false, true, ENV_NOWHERE, ENV_NOWHERE},
    {"A B", false, true, ENV_NOWHERE, ENV_NOWHERE},
    {"A\n", false, true, ENV_NOWHERE, ENV_NOWHERE},
    {"\xc3\x84", false, true, ENV_NOWHERE, ENV_NOWHERE},
};

static void test_places(void **state)
{
    (void)state;
    FOR_EACH(row, rows)
    {
        const char *why = NULL;
        enum env_place place =
            policy_env_place(&dual, row->name, row->reference, row->allow_reserved, &why);

        CHECK(place == row->in_dual, "%s in two boxes: %d (%s)", row->name, place, why);
        CHECK(why && *why, "%s: no reason", row->name);
        place = policy_env_place(&single, row->name, row->reference, row->allow_reserved, &why);
        CHECK(place == row->in_single, "%s in one box: %d (%s)", row->name, place, why);
        place = policy_env_place(&sealed, row->name, row->reference, row->allow_reserved, NULL);
        CHECK(place == row->in_single, "%s in a sealed box: %d", row->name, place);
    }
}

static void test_secrets(void **state)
{
    static const char *const secret[] = {
        "X_API_KEY",         "X_TOKEN",       "X_PASSWORD",    "X_PASSWD",
        "X_SECRET",          "X_PRIVATE_KEY", "X_CREDENTIALS", "TOKEN",
        "PASSWORD",          "SECRET",        "API_KEY",       "AWS_SECRET_ACCESS_KEY",
        "GH_TOKEN",          "token",         "x_Token",       "_TOKEN",
        "AWS_SESSION_TOKEN", "GITHUB_TOKEN"};
    static const char *const plain[] = {"LANG",    "PATH",      "TOKENS",       "TOKEN_FILE",
                                        "MYTOKEN", "SECRETARY", "API_KEY_ID",   "PASSWORDS",
                                        "",        "KEY",       "NODE_OPTIONS", "PRIVATE_KEYS"};

    (void)state;
    FOR_EACH(name, secret)
    {
        CHECK(policy_env_is_secret(*name), "%s is a secret", *name);
    }
    FOR_EACH(name, plain)
    {
        CHECK(!policy_env_is_secret(*name), "'%s' is none", *name);
    }
    assert_true(policy_env_is_reserved("clawden_x_token"));
    assert_false(policy_env_is_reserved("GH_TOKEN"));
    assert_false(policy_env_is_reserved("XCLAWDEN_TOKEN"));
}

static const struct CMUnitTest claims[] = {
    CLAIM("every variable goes where it belongs, in two boxes and in one", test_places),
    CLAIM("names of secrets are known, whatever their case", test_secrets),
};

int main(void)
{
    return RUN_CLAIMS("policy/env", claims);
}
