/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/security.h"

#include <arpa/inet.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "config/settings.h"
#include "policy/internal.h"
#include "policy/paths.h"

#define SHOWN     160   /* bytes of a value that a message shows */
#define ENV_VALUE 32768 /* bytes of a variable's value; more is a file, not a setting */

#define DIGITS  "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

typedef int check_text(const struct check *c, enum setting_id id, const char *text);

/* ---- messages ---- */

int security_refuse(const struct check *c, enum error_code code, enum setting_id id,
                    const char *value, const char *fmt, ...)
{
    char shown[SHOWN + 1], why[256];
    va_list ap;
    int n = policy_clip(value, SHOWN);

    for (int i = 0; i < n; i++) /* one line, whatever the value is */
        shown[i] = (unsigned char)value[i] < 0x20 || value[i] == 0x7f ? '?' : value[i];
    shown[n] = 0;
    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    return error_set(c->err, code, "Sandbox security: %s '%s%s': %s", settings_table[id].path,
                     shown, value[n] ? "..." : "", why);
}

/* ---- texts ---- */

static bool is_same(const char *text, const char *word)
{
    size_t len;

    text = policy_trim(text, &len);
    return len == strlen(word) && policy_begins(text, len, word);
}

static bool begins(const char *text, const char *word)
{
    size_t len;

    text = policy_trim(text, &len);
    return policy_begins(text, len, word);
}

static bool is_made_of(const char *text, const char *first, const char *more)
{
    return *text && strchr(first, *text) && text[strspn(text, more)] == 0;
}

/* A string without NUL, control characters or broken UTF-8; `check` looks at the rest. */
static int check_string(const struct check *c, enum setting_id id, const json_t *value,
                        check_text *check)
{
    const char *text = json_string_value(value);

    if (!text)
        return WRONG(c, id, "", "not a string; write it in quotes");
    if (policy_is_odd(text, json_string_length(value)))
        return WRONG(c, id, text, "it holds a control character; remove that");
    return check(c, id, text);
}

static int check_one(const struct check *c, enum setting_id id, check_text *check)
{
    return c->s->value[id] ? check_string(c, id, c->s->value[id], check) : 0;
}

static int check_each(const struct check *c, enum setting_id id, check_text *check)
{
    const json_t *list = c->s->value[id];

    if (list && !json_is_array(list))
        return WRONG(c, id, "", "not a list; write it as [...]");
    for (size_t i = 0; i < json_array_size(list); i++) {
        int r = check_string(c, id, json_array_get(list, i), check);

        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- networks ---- */

static bool is_network_name(const char *text)
{
    return is_made_of(text, LETTERS DIGITS, LETTERS DIGITS "_.-");
}

static int check_network(const struct check *c, enum setting_id id, const char *network)
{
    bool join = begins(network, "container:");

    if (is_same(network, "host")) {
        if (c->multi_tenant || id == SETTING_BROWSER_NETWORK)
            return DENY(
                c, id, network,
                "the box would have the host's network, which is never allowed here; write bridge");
        if (!settings_bool(c->s, SETTING_HOST_NETWORK))
            return DENY(c, id, network,
                        "the box would have the host's network; write bridge, or set "
                        "dangerouslyAllowHostNetwork");
        return 0;
    }
    if (join && c->multi_tenant)
        return DENY(c, id, network, "the box would be in another's network; write none or bridge");
    if (join && !settings_bool(c->s, SETTING_NAMESPACE_JOIN))
        return DENY(c, id, network,
                    "the box would be in another's network; write none or bridge, or set "
                    "docker.dangerouslyAllowContainerNamespaceJoin");
    if (join && is_network_name(network + strlen("container:")))
        return 0;
    if (!is_network_name(network))
        return WRONG(c, id, network, "not the name of a network; write none or bridge");
    return 0;
}

static int check_browser_network(const struct check *c, enum setting_id id, const char *network)
{
    if (settings_bool(c->s, SETTING_BROWSER) && is_same(network, "none"))
        return DENY(c, id, network,
                    "a browser without a network cannot be reached; remove the key, or set "
                    "browser.enabled to false");
    return check_network(c, id, network);
}

static int check_profile(const struct check *c, enum setting_id id, const char *profile)
{
    if (is_same(profile, "unconfined"))
        return DENY(c, id, profile, "it takes a belt off the box; remove the key");
    return 0;
}

static int check_dns(const struct check *c, enum setting_id id, const char *address)
{
    unsigned char bytes[16];

    if (inet_pton(AF_INET, address, bytes) == 1 || inet_pton(AF_INET6, address, bytes) == 1)
        return 0;
    return WRONG(c, id, address, "not an IP address; write one, as in 9.9.9.9");
}

/* name:address; an IPv6 address has more colons. `host-gateway` is the host, so it is none. */
static int check_host(const struct check *c, enum setting_id id, const char *entry)
{
    char name[256];
    unsigned char bytes[16];
    size_t n = strcspn(entry, ":");
    const char *address = entry[n] ? entry + n + 1 : "";

    (void)snprintf(name, sizeof(name), "%.*s", (int)(n < sizeof(name) ? n : 0), entry);
    if (!is_made_of(name, LETTERS DIGITS "_", LETTERS DIGITS "_.-"))
        return WRONG(c, id, entry, "it begins with no host name; write name:address");
    if (inet_pton(AF_INET, address, bytes) != 1 && inet_pton(AF_INET6, address, bytes) != 1)
        return WRONG(c, id, entry, "it ends with no IP address; write name:address");
    return 0;
}

/* ---- who, and how much ---- */

static bool is_id(const char *text, size_t len)
{
    char digits[11];
    uint64_t id = 0;

    if (len == 0 || len >= sizeof(digits))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        id = id * 10 + (uint64_t)(text[i] - '0');
    }
    return id < UINT32_MAX; /* the last one means "do not change" to the kernel */
}

static int check_user(const struct check *c, enum setting_id id, const char *user)
{
    size_t n = strcspn(user, ":");

    if (is_id(user, n) && (!user[n] || is_id(user + n + 1, strlen(user + n + 1))))
        return 0;
    if (strlen(user) <= 32 && is_made_of(user, LETTERS "_", LETTERS DIGITS "_-"))
        return 0;
    return WRONG(c, id, user, "not a user; write a name, uid or uid:gid, as in 1000:1000");
}

static int check_capabilities(const struct check *c)
{
    const json_t *list = c->s->value[SETTING_CAP_DROP];

    if (!c->multi_tenant || !list)
        return 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));

        if (text && is_same(text, "all"))
            return 0;
    }
    return DENY(c, SETTING_CAP_DROP, "", "people share this machine; write [\"ALL\"]");
}

/* Numbers are bytes, texts have units. 0 and no error if it is not set. */
static int check_size(const struct check *c, enum setting_id id, uint64_t *ret)
{
    const json_t *value = c->s->value[id];
    const char *text = json_string_value(value);
    double number = json_number_value(value);

    *ret = 0;
    if (!value)
        return 0;
    if (text && strlen(text) == json_string_length(value) && units_parse_size(text, ret) >= 0)
        return 0;
    if (json_is_number(value) && number >= 1 && number < 1e18) {
        *ret = (uint64_t)number;
        return 0;
    }
    return WRONG(c, id, text ? text : "", "not a size above 0; write it as \"512m\" or \"1g\"");
}

static int check_amounts(const struct check *c)
{
    uint64_t memory, swap;
    const json_t *cpus = c->s->value[SETTING_CPUS];
    char text[32];
    int r = check_size(c, SETTING_MEMORY, &memory);

    if (r < 0)
        return r;
    r = check_size(c, SETTING_MEMORY_SWAP, &swap);
    if (r < 0)
        return r;
    if (swap && swap < memory)
        return WRONG(c, SETTING_MEMORY_SWAP, units_format_size(swap, text, sizeof(text)),
                     "it counts memory too; write at least docker.memory");
    if (cpus && !(json_is_number(cpus) && isfinite(json_number_value(cpus)) &&
                  json_number_value(cpus) > 0)) {
        (void)snprintf(text, sizeof(text), "%g", json_number_value(cpus));
        return WRONG(c, SETTING_CPUS, text, "not a number above 0; write it as 0.5 or 2");
    }
    return 0;
}

/* -1 is no limit, and so the largest. */
static bool read_limit(const char *text, size_t len, uint64_t *ret)
{
    uint64_t value = 0;

    if (len == 2 && memcmp(text, "-1", 2) == 0) {
        *ret = UINT64_MAX;
        return true;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    *ret = value;
    return len > 0 && len < 19; /* no overflow above */
}

static bool number_limit(const json_t *value, uint64_t *ret)
{
    double number = json_number_value(value);

    *ret = number < 0 ? UINT64_MAX : number < 1e18 ? (uint64_t)number : 0;
    return json_is_number(value) && number >= -1 && number < 1e18 && floor(number) == number;
}

static bool is_limit(const json_t *value)
{
    const char *text = json_string_value(value);
    uint64_t soft, hard;

    if (json_is_object(value))
        return number_limit(json_object_get(value, "soft"), &soft) &&
               number_limit(json_object_get(value, "hard"), &hard) && soft <= hard;
    if (text) {
        size_t n = strcspn(text, ":");

        if (strlen(text) != json_string_length(value) || !read_limit(text, n, &soft))
            return false;
        return !text[n] || (read_limit(text + n + 1, strlen(text + n + 1), &hard) && soft <= hard);
    }
    return number_limit(value, &soft);
}

static bool is_limit_name(const char *name)
{
    static const char *const names[] = {"core",    "cpu",      "data",   "fsize",      "locks",
                                        "memlock", "msgqueue", "nice",   "nofile",     "nproc",
                                        "rss",     "rtprio",   "rttime", "sigpending", "stack"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static int check_ulimits(const struct check *c)
{
    json_t *limits = c->s->value[SETTING_ULIMITS];
    const char *name;
    json_t *value;

    if (limits && !json_is_object(limits))
        return WRONG(c, SETTING_ULIMITS, "", "not an object; write it as {\"nofile\": 1024}");
    json_object_foreach(limits, name, value)
    {
        if (!is_limit_name(name))
            return WRONG(c, SETTING_ULIMITS, name,
                         "no such limit; there are nofile, nproc, core, "
                         "fsize and others of setrlimit");
        if (!is_limit(value))
            return WRONG(c, SETTING_ULIMITS, name,
                         "not a limit; write a number, \"soft:hard\" or {soft, hard}, soft first "
                         "and not above hard");
    }
    return 0;
}

/* ---- variables ---- */

static int check_env(const struct check *c, enum setting_id id)
{
    json_t *map = c->s->value[id];
    const char *name;
    json_t *value;

    if (map && !json_is_object(map))
        return WRONG(c, id, "", "not an object; write it as {\"NAME\": \"value\"}");
    json_object_foreach(map, name, value)
    {
        const char *text = json_string_value(value);
        size_t len = json_string_length(value);

        if (!is_made_of(name, LETTERS "_", LETTERS DIGITS "_"))
            return WRONG(c, id, name, "not the name of a variable; use letters, digits and '_'");
        if (!text)
            return WRONG(c, id, name, "its value is not a string; write it in quotes");
        if (strlen(text) != len || strpbrk(text, "\r\n"))
            return WRONG(c, id, name, "its value holds a line break or a NUL; keep it in a file");
        if (len > ENV_VALUE)
            return WRONG(c, id, name, "its value is longer than %d bytes; keep it in a file",
                         ENV_VALUE);
    }
    return 0;
}

/* ---- all of it ---- */

static int check_lists(const struct check *c)
{
    static const struct {
        enum setting_id id;
        bool list;
        check_text *check;
    } rules[] = {
        {SETTING_BINDS, true, security_check_bind},
        {SETTING_BROWSER_BINDS, true, security_check_bind},
        {SETTING_VAULT_PATH, false, security_check_vault},
        {SETTING_NETWORK, false, check_network},
        {SETTING_NETWORK_NETWORK, false, check_network},
        {SETTING_BROWSER_NETWORK, false, check_browser_network},
        {SETTING_SECCOMP, false, check_profile},
        {SETTING_APPARMOR, false, check_profile},
        {SETTING_USER, false, check_user},
        {SETTING_TMPFS, true, security_check_tmpfs},
        {SETTING_WORKDIR, false, security_check_workdir},
        {SETTING_DNS, true, check_dns},
        {SETTING_EXTRA_HOSTS, true, check_host},
    };

    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
        int r = rules[i].list ? check_each(c, rules[i].id, rules[i].check)
                              : check_one(c, rules[i].id, rules[i].check);

        if (r < 0)
            return r;
    }
    return 0;
}

int security_check(const struct settings *s, const struct security_facts *f, struct error *err)
{
    static const enum setting_id envs[] = {SETTING_ENV, SETTING_NETWORK_ENV, SETTING_BROWSER_ENV};
    struct check c = {.s = s,
                      .f = f,
                      .multi_tenant = f->multi_tenant || settings_bool(s, SETTING_MULTI_TENANT),
                      .err = err};
    int r = check_lists(&c);

    if (r >= 0)
        r = check_capabilities(&c);
    for (size_t i = 0; r >= 0 && i < sizeof(envs) / sizeof(*envs); i++)
        r = check_env(&c, envs[i]);
    if (r >= 0)
        r = check_amounts(&c);
    if (r >= 0)
        r = check_ulimits(&c);
    return r;
}
