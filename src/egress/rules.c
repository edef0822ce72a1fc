/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/rules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

enum rule_kind { RULE_NAME, RULE_BELOW, RULE_RANGE, RULE_PUBLIC };
enum rule_ports { PORTS_WEB, PORTS_ONE, PORTS_ALL };

struct rule {
    enum rule_kind kind;
    enum rule_ports ports;
    uint16_t port;
    struct cidr range;
    char *text; /* as written */
    char *name; /* canonical: of RULE_NAME, and the suffix of RULE_BELOW */
};

struct rule_list {
    struct rule *rules;
    size_t n;
    const char *key;
};

struct rules {
    struct rule_list allow, deny;
    uint16_t host_ports[LIMIT_HOST_PORTS];
    size_t n_host_ports;
    const char *host_ports_key;
};

/* Any port: what a resolver asks about. */
#define PORT_ANY 0

/* ---- reading ---- */

/* Takes ":PORT" or ":*" off the end; `len` is what stands before it. */
static const char *parse_ports(const char *text, size_t len, bool deny, struct rule *rule)
{
    rule->ports = deny ? PORTS_ALL : PORTS_WEB;
    if (!text[len])
        return NULL;
    if (strcmp(text + len, ":*") == 0) {
        rule->ports = PORTS_ALL;
        return NULL;
    }
    rule->ports = PORTS_ONE;
    if (text[len] == ':' && port_parse(text + len + 1, strlen(text + len + 1), &rule->port))
        return NULL;
    return "no port stands behind the host: write 1 to 65535 in decimal, or *";
}

/* What an allow entry may not say. A range is judged by what it is, an address by what is in it. */
static const char *check_range(const struct cidr *c)
{
    enum address_class class =
        c->len == c->network.bits ? address_class(&c->network) : address_class_outer(&c->network);

    if (c->len == 0)
        return "a range of everything: write 'public'";
    if (class == ADDRESS_LOOPBACK)
        return "loopback cannot be allowed here: ask for a port of the host with hostPorts";
    if (address_class_is_barred(class) && cidr_names(c, &c->network))
        return "multicast, broadcast and unspecified addresses cannot be allowed";
    return NULL;
}

/* ADDRESS/LENGTH, the address perhaps in brackets. */
static const char *parse_range(const char *text, bool deny, struct rule *rule)
{
    const char *slash = strchr(text, '/');
    size_t len = (size_t)(slash - text) + 1, start = 0;
    char plain[LIMIT_RULE_TEXT + 1];
    const char *problem;

    len += strspn(text + len, "0123456789");
    memcpy(plain, text, len);
    if (text[0] == '[' && slash[-1] == ']') {
        memmove(plain + (slash - text) - 1, slash, len - (size_t)(slash - text));
        start = 1;
        len--;
    }
    problem = cidr_parse(plain + start, len - start, &rule->range);
    if (problem)
        return problem;
    if (start && rule->range.network.bits != 128)
        return "only IPv6 stands in brackets";
    rule->kind = RULE_RANGE;
    problem = deny ? NULL : check_range(&rule->range);
    return problem ? problem : parse_ports(text, len + start, deny, rule);
}

/* The end of a host: its port begins there. */
static size_t host_end(const char *text)
{
    const char *bracket = text[0] == '[' ? strchr(text, ']') : NULL;

    return bracket ? (size_t)(bracket - text) + 1 : strcspn(text, ":");
}

static const char *parse_host(const char *text, bool deny, struct rule *rule, struct error *err)
{
    size_t skip = strncmp(text, "*.", 2) == 0 ? 2 : 0, end = host_end(text);
    struct host host;

    if (host_parse(text + skip, end - skip, HOST_BRACKETED, &host, err) < 0)
        return text[0] != '[' && strchr(text, ':') != strrchr(text, ':')
                   ? "more than one ':': write IPv6 as [ADDRESS] or [ADDRESS]:PORT"
                   : err->msg;
    if (skip && host.kind != HOST_NAME)
        return "an address has nothing below it";
    rule->kind = skip ? RULE_BELOW : RULE_NAME;
    if (host.kind != HOST_NAME) {
        const char *problem;

        rule->kind = RULE_RANGE;
        rule->range = cidr_of(&host.address);
        problem = deny ? NULL : check_range(&rule->range);
        if (problem)
            return problem;
    } else {
        rule->name = strdup(host.text);
        if (!rule->name)
            return "out of memory";
    }
    return parse_ports(text, end, deny, rule);
}

static const char *parse_rule(const char *text, bool deny, struct rule *rule, struct error *err)
{
    if (!text[0])
        return "it is empty";
    if (strlen(text) > LIMIT_RULE_TEXT)
        return "it is too long";
    rule->text = strdup(text);
    if (!rule->text)
        return "out of memory";
    if (text[0] == '*' && text[1] != '.')
        return "a '*' stands only before a dot, as in *.example.org; for all of the internet write "
               "'public'";
    if (strstr(text, "://"))
        return "it is a URL: write only its host, and :PORT if it is not 443 or 80";
    if (strchr(text, '/'))
        return parse_range(text, deny, rule);
    if (strncmp(text, "public", 6) == 0 && (!text[6] || text[6] == ':')) {
        rule->kind = RULE_PUBLIC;
        return parse_ports(text, 6, deny, rule);
    }
    return parse_host(text, deny, rule, err);
}

/* An entry as an error may show it: printable, and not too much of it. */
static const char *shown(const char *text, char out[64])
{
    size_t n = 0;

    for (; text[n] && n < 60; n++)
        out[n] = text[n] < 0x20 || text[n] == 0x7f ? '?' : text[n];
    out[n] = 0;
    return out;
}

static int parse_list(const char *const *entries, size_t n, const char *key, bool deny,
                      struct rule_list *ret, struct error *err)
{
    char text[64], why[sizeof(err->msg)];

    ret->key = key;
    if (n > LIMIT_RULES)
        return error_set(err, ERR_TOO_LARGE, "%s has %zu entries: at most %u", key, n, LIMIT_RULES);
    if (n == 0)
        return 0;
    ret->rules = calloc(n, sizeof(*ret->rules));
    if (!ret->rules)
        return error_sys(err, -ENOMEM, "read %s", key);
    for (size_t i = 0; i < n; i++) {
        const char *problem;

        ret->n = i + 1; /* also what is half read has to be freed */
        problem = parse_rule(entries[i], deny, &ret->rules[i], err);
        if (!problem)
            continue;
        (void)snprintf(why, sizeof(why), "%s", problem); /* it may stand in err itself */
        return error_set(err, ERR_INVALID, "%s, entry %zu '%s': %.300s", key, i + 1,
                         shown(entries[i], text), why);
    }
    return 0;
}

static int parse_host_ports(const struct rules_source *s, struct rules *rules, struct error *err)
{
    rules->host_ports_key = s->host_ports_key;
    if (s->n_host_ports > LIMIT_HOST_PORTS)
        return error_set(err, ERR_TOO_LARGE, "%s has %zu entries: at most %u", s->host_ports_key,
                         s->n_host_ports, LIMIT_HOST_PORTS);
    for (size_t i = 0; i < s->n_host_ports; i++) {
        if (s->host_ports[i] == 0)
            return error_set(err, ERR_INVALID, "%s, entry %zu: 0 is no port", s->host_ports_key,
                             i + 1);
        rules->host_ports[rules->n_host_ports++] = s->host_ports[i];
    }
    return 0;
}

int rules_parse(const struct rules_source *source, struct rules **ret, struct error *err)
{
    autoptr(rules) rules = calloc(1, sizeof(*rules));
    int r;

    if (!rules)
        return error_sys(err, -ENOMEM, "read egress rules");
    r = parse_list(source->allow, source->n_allow, source->allow_key, false, &rules->allow, err);
    if (r >= 0)
        r = parse_list(source->deny, source->n_deny, source->deny_key, true, &rules->deny, err);
    if (r >= 0)
        r = parse_host_ports(source, rules, err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(rules);
    return 0;
}

static void free_list(struct rule_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->rules[i].text);
        free(list->rules[i].name);
    }
    free(list->rules);
}

void rules_free(struct rules *r)
{
    if (!r)
        return;
    free_list(&r->allow);
    free_list(&r->deny);
    free(r);
}

/* ---- matching ---- */

static bool port_matches(const struct rule *rule, uint16_t port)
{
    if (rule->ports == PORTS_ALL || port == PORT_ANY)
        return true;
    return rule->ports == PORTS_ONE ? rule->port == port : port == 443 || port == 80;
}

/* A deny entry stops a lookup only if it leaves no port. */
static bool deny_port_matches(const struct rule *rule, uint16_t port)
{
    return port == PORT_ANY ? rule->ports == PORTS_ALL : port_matches(rule, port);
}

static bool name_matches(const struct rule *rule, const char *name)
{
    if (rule->kind == RULE_NAME)
        return strcmp(rule->name, name) == 0;
    return rule->kind == RULE_BELOW && host_is_below(name, rule->name);
}

/* A deny entry means an address however it is wrapped. */
static bool denies_address(const struct rule *rule, const struct address *a)
{
    struct address inner;

    if (rule->kind == RULE_PUBLIC)
        return address_class(a) == ADDRESS_PUBLIC;
    if (rule->kind != RULE_RANGE)
        return false;
    return cidr_contains(&rule->range, a) ||
           (address_inner(a, &inner) && cidr_contains(&rule->range, &inner));
}

/* The entry that names exactly this address, not what it carries. */
static const struct rule *find_naming(const struct rules *r, const struct address *a, uint16_t port)
{
    for (size_t i = 0; i < r->allow.n; i++) {
        const struct rule *rule = &r->allow.rules[i];

        if (rule->kind == RULE_RANGE && cidr_names(&rule->range, a) && port_matches(rule, port))
            return rule;
    }
    return NULL;
}

static const struct rule *find_public(const struct rules *r, uint16_t port)
{
    for (size_t i = 0; i < r->allow.n; i++)
        if (r->allow.rules[i].kind == RULE_PUBLIC && port_matches(&r->allow.rules[i], port))
            return &r->allow.rules[i];
    return NULL;
}

/* ---- names with a meaning of their own ---- */

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* The host that the box stands on. */
static bool is_own_host(const char *name)
{
    static const char *const names[] = {"host.clawden.internal", "host.docker.internal"};

    return is_one_of(name, names, sizeof(names) / sizeof(*names));
}

/* Never asked of a resolver (RFC 6761), or wanted only by who wants a machine's keys. */
static const char *sensitive_name(const char *name)
{
    static const char *const metadata[] = {
        "metadata",      "metadata.google.internal",   "metadata.goog",
        "instance-data", "instance-data.ec2.internal", "metadata.tencentyun.com",
    };

    if (strcmp(name, "localhost") == 0 || host_is_below(name, "localhost"))
        return "a name for loopback";
    return is_one_of(name, metadata, sizeof(metadata) / sizeof(*metadata))
               ? "the name of a cloud's metadata service"
               : NULL;
}

/* ---- verdicts ---- */

__attribute__((format(printf, 5, 6))) static void say(struct egress_verdict *v,
                                                      enum egress_decision decision,
                                                      const struct rule *rule, const char *setting,
                                                      const char *fmt, ...)
{
    va_list ap;

    v->decision = decision;
    v->rule = rule ? rule->text : NULL;
    v->setting = setting;
    va_start(ap, fmt);
    (void)vsnprintf(v->reason, sizeof(v->reason), fmt, ap);
    va_end(ap);
}

static void decide_own_host(const struct rules *r, const struct host *host, uint16_t port,
                            struct egress_verdict *v)
{
    for (size_t i = 0; i < r->n_host_ports; i++)
        if (port == PORT_ANY || r->host_ports[i] == port) {
            say(v, EGRESS_HOST_PORT, NULL, r->host_ports_key, "port %u of the host is opened by %s",
                r->host_ports[i], r->host_ports_key);
            return;
        }
    if (port == PORT_ANY)
        say(v, EGRESS_DENY, NULL, r->host_ports_key, "%s: no port of the host is opened by %s",
            host->text, r->host_ports_key);
    else
        say(v, EGRESS_DENY, NULL, r->host_ports_key, "%s: port %u of the host is not in %s",
            host->text, port, r->host_ports_key);
}

static void say_no_rule(const struct rules *r, const char *host, uint16_t port,
                        const struct rule *other_port, struct egress_verdict *v)
{
    if (r->allow.n == 0)
        say(v, EGRESS_DENY, NULL, r->allow.key, "%s: %s is empty, so nothing is allowed", host,
            r->allow.key);
    else if (other_port && other_port->ports == PORTS_ONE)
        say(v, EGRESS_DENY, other_port, r->allow.key, "%s: port %u is not allowed: '%s' is port %u",
            host, port, other_port->text, other_port->port);
    else if (other_port)
        say(v, EGRESS_DENY, other_port, r->allow.key,
            "%s: port %u is not allowed: '%s' is ports 443 and 80", host, port, other_port->text);
    else
        say(v, EGRESS_DENY, NULL, r->allow.key, "%s: no entry of %s allows it", host, r->allow.key);
}

static void decide_allow_name(const struct rules *r, const char *name, uint16_t port,
                              struct egress_verdict *v)
{
    const char *sensitive = sensitive_name(name);
    const struct rule *found = NULL, *other_port = NULL;

    for (size_t i = 0; i < r->allow.n && !found; i++) {
        const struct rule *rule = &r->allow.rules[i];

        /* What only an exact entry may mean, a wildcard does not. */
        if (sensitive ? rule->kind != RULE_NAME || !name_matches(rule, name)
                      : rule->kind != RULE_PUBLIC && !name_matches(rule, name))
            continue;
        if (port_matches(rule, port))
            found = rule;
        else if (!other_port || other_port->kind == RULE_PUBLIC)
            other_port = rule;
    }
    if (found)
        say(v, EGRESS_RESOLVE, found, r->allow.key, "%s is allowed by '%s'", name, found->text);
    else if (sensitive && !other_port)
        say(v, EGRESS_DENY, NULL, r->allow.key, "%s is %s, and no entry of %s names it", name,
            sensitive, r->allow.key);
    else
        say_no_rule(r, name, port, other_port, v);
}

static void decide_name(const struct rules *r, const struct host *host, uint16_t port,
                        struct egress_verdict *v)
{
    for (size_t i = 0; i < r->deny.n; i++) {
        const struct rule *rule = &r->deny.rules[i];

        if (name_matches(rule, host->text) && deny_port_matches(rule, port)) {
            say(v, EGRESS_DENY, rule, r->deny.key, "%s is denied by '%s'", host->text, rule->text);
            return;
        }
    }
    if (is_own_host(host->text))
        decide_own_host(r, host, port, v);
    else
        decide_allow_name(r, host->text, port, v);
}

static bool address_is_denied(const struct rules *r, const char *who, const struct address *a,
                              uint16_t port, struct egress_verdict *v)
{
    enum address_class class = address_class(a);
    char text[LIMIT_ADDRESS_TEXT];

    address_format(a, text);
    for (size_t i = 0; i < r->deny.n; i++) {
        const struct rule *rule = &r->deny.rules[i];

        if (!denies_address(rule, a) || !deny_port_matches(rule, port))
            continue;
        say(v, EGRESS_DENY, rule, r->deny.key, "%s%s is denied by '%s'", who, text, rule->text);
        return true;
    }
    if (!address_class_is_barred(class))
        return false;
    say(v, EGRESS_DENY, NULL, NULL, "%s%s is %s: a box never reaches one", who, text,
        address_class_text(class));
    return true;
}

/* An address that is not public has to be named, and so has the one that it carries. */
static void decide_special(const struct rules *r, const char *who, const struct address *a,
                           uint16_t port, struct egress_verdict *v)
{
    const struct rule *outer = find_naming(r, a, port);
    struct address inner;
    char text[LIMIT_ADDRESS_TEXT];

    address_format(a, text);
    if (outer && (!address_inner(a, &inner) || address_class(&inner) == ADDRESS_PUBLIC ||
                  find_naming(r, &inner, port)))
        say(v, EGRESS_ALLOW, outer, r->allow.key, "%s%s is named by '%s'", who, text, outer->text);
    else
        say(v, EGRESS_DENY, NULL, r->allow.key,
            "%s%s is %s, and no entry of %s names it or its range for port %u", who, text,
            address_class_text(address_class(a)), r->allow.key, port);
}

/* The other entry that would allow this public address, at another port. */
static const struct rule *find_other_port(const struct rules *r, const struct address *a)
{
    const struct rule *rule = find_naming(r, a, PORT_ANY);

    return rule ? rule : find_public(r, PORT_ANY);
}

static void decide_literal(const struct rules *r, const struct address *a, uint16_t port,
                           struct egress_verdict *v)
{
    const struct rule *rule;
    char text[LIMIT_ADDRESS_TEXT];

    if (address_is_denied(r, "", a, port, v))
        return;
    if (address_class(a) != ADDRESS_PUBLIC) {
        decide_special(r, "", a, port, v);
        return;
    }
    rule = find_naming(r, a, port);
    rule = rule ? rule : find_public(r, port);
    address_format(a, text);
    if (rule)
        say(v, EGRESS_ALLOW, rule, r->allow.key, "%s is allowed by '%s'", text, rule->text);
    else
        say_no_rule(r, text, port, find_other_port(r, a), v);
}

void rules_decide_name(const struct rules *r, const struct host *host, uint16_t port,
                       struct egress_verdict *ret)
{
    if (port == 0)
        say(ret, EGRESS_DENY, NULL, NULL, "%s: 0 is no port", host->text);
    else if (host->kind == HOST_NAME)
        decide_name(r, host, port, ret);
    else
        decide_literal(r, &host->address, port, ret);
}

void rules_decide_address(const struct rules *r, const struct host *host, uint16_t port,
                          const struct address *address, struct egress_verdict *ret)
{
    char who[LIMIT_HOST_NAME + 8], text[LIMIT_ADDRESS_TEXT];

    rules_decide_name(r, host, port, ret);
    if (ret->decision == EGRESS_DENY)
        return;
    if (ret->decision != EGRESS_RESOLVE) { /* nothing was to be resolved */
        if (ret->decision != EGRESS_ALLOW || !address_equal(&host->address, address))
            say(ret, EGRESS_DENY, NULL, NULL, "%s is not the address %s", host->text,
                address_format(address, text));
        return;
    }
    (void)snprintf(who, sizeof(who), "%s: ", host->text);
    if (address_is_denied(r, who, address, port, ret))
        return;
    if (address_class(address) != ADDRESS_PUBLIC)
        decide_special(r, who, address, port, ret);
    else
        ret->decision = EGRESS_ALLOW;
}

void rules_decide_own(const struct rules *r, const struct host *host, uint16_t port,
                      const struct address *address, struct egress_verdict *ret)
{
    char text[LIMIT_ADDRESS_TEXT];

    const struct rule *named = find_naming(r, address, port);

    /* A range is about others: who means this machine names its address. */
    if (ret->decision != EGRESS_ALLOW || (named && named->range.len == address->bits))
        return;
    say(ret, EGRESS_DENY, NULL, r->allow.key,
        "%s is at %s, an address of this machine itself, and no entry of %s names it for port %u",
        host->text, address_format(address, text), r->allow.key, port);
}

void rules_decide_lookup(const struct rules *r, const struct host *host, struct egress_verdict *ret)
{
    if (host->kind == HOST_NAME)
        decide_name(r, host, PORT_ANY, ret);
    else
        say(ret, EGRESS_DENY, NULL, NULL, "%s is an address: there is nothing to look up",
            host->text);
}
