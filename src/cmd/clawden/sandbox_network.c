/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/clawden/sandbox.h"
#include "egress/host.h"

enum change_kind { CHANGE_ALLOW, CHANGE_DENY, CHANGE_REMOVE, CHANGE_HOST_PORT };

struct change {
    enum change_kind kind;
    const char *value;
};

struct asked {
    struct settings_args args;
    const char *name, *check, *network;
    bool settings;
    struct change *changes;
    size_t n;
};

static void usage(void)
{
    puts("clawden sandbox network NAME [--allow HOST]... [--deny HOST]... [--remove HOST]...\n"
         "                             [--host-port N]... [--check HOST:PORT] [--json]\n"
         "\n"
         "What a box with a network may reach, and what it has reached since it was started. A\n"
         "change holds at once, for what is open too, until the settings (egress.*) change.\n"
         "\n"
         "  --allow HOST        host (ports 443 and 80), host:port, host:*, *.suffix, an address "
         "or\n"
         "                      CIDR, or public: every public address\n"
         "  --deny HOST         beats every --allow\n"
         "  --remove HOST       takes an entry away, as it is written in the list\n"
         "  --host-port N       this machine's loopback at that port, as host.clawden.internal\n"
         "  --check HOST:PORT   only say whether the rules would let it through, and which one\n"
         "                      decides; exit status 1 if not\n"
         "  --settings --network NET [--agent ID | --session KEY]\n"
         "                      the rules that the settings give a new box of that network, as "
         "JSON\n"
         "\n"
         "  clawden sandbox network work-net --allow api.github.com --deny '*.ads.example'\n"
         "  clawden sandbox network work-net --check api.github.com:443");
}

/* ---- words ---- */

static int add_change(struct asked *q, enum change_kind kind, const char *value)
{
    q->changes = realloc(q->changes, (q->n + 1) * sizeof(*q->changes));
    if (!q->changes)
        abort();
    q->changes[q->n++] = (struct change){kind, value};
    return 1;
}

/* The value of --name, as its own word or behind '='; NULL: it is not this option. */
static const char *value_of(const char *name, int argc, char **argv, int *i)
{
    size_t n = strlen(name);

    if (strncmp(argv[*i], name, n) != 0)
        return NULL;
    if (argv[*i][n] == '=')
        return argv[*i] + n + 1;
    return argv[*i][n] == 0 && *i + 1 < argc ? argv[++*i] : NULL;
}

static int take_own(struct asked *q, int argc, char **argv, int *i)
{
    static const struct {
        const char *name;
        enum change_kind kind;
    } kinds[] = {{"--allow", CHANGE_ALLOW},
                 {"--deny", CHANGE_DENY},
                 {"--remove", CHANGE_REMOVE},
                 {"--host-port", CHANGE_HOST_PORT}};
    const char *v;

    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
        if ((v = value_of(kinds[k].name, argc, argv, i)))
            return add_change(q, kinds[k].kind, v);
    if ((v = value_of("--check", argc, argv, i)))
        q->check = v;
    else if ((v = value_of("--network", argc, argv, i)))
        q->network = v;
    else if (strcmp(argv[*i], "--settings") == 0)
        q->settings = true;
    else if (argv[*i][0] != '-' && !q->name)
        q->name = argv[*i];
    else
        return 0;
    return 1;
}

/* ---- what settings say ---- */

static int print_settings(struct asked *q)
{
    autoptr(config) c = NULL;
    autoptr(wish) w = NULL;
    struct settings s = {0};
    char agent[NAMES_AGENT] = "";
    struct error err;
    autobuf text;
    int r;

    if (q->args.session)
        (void)names_agent_of(q->args.session, agent, sizeof(agent));
    else if (q->args.agent)
        (void)names_agent(q->args.agent, agent);
    if (sandbox_load(&q->args, &c) < 0)
        return 1;
    r = config_for_agent(c, agent, &s, &err);
    if (r >= 0)
        r = scope_wish(&s, q->network ? q->network : "bridge", &w, &err);
    if (r < 0)
        log_error("%s", err.msg);
    else if (w) {
        buf_init(&text, LIMIT_WISH_TEXT);
        wish_write(w, &text);
        (void)fd_write_full(STDOUT_FILENO, text.data, text.len);
        buf_done(&text);
    }
    settings_done(&s);
    return r < 0;
}

/* ---- a box ---- */

static int change(struct wish *w, const struct change *c)
{
    uint64_t port = 0;
    int r = 0;

    switch (c->kind) {
    case CHANGE_ALLOW:
        r = wish_add(w, WISH_ALLOW, c->value);
        break;
    case CHANGE_DENY:
        r = wish_add(w, WISH_DENY, c->value);
        break;
    case CHANGE_REMOVE:
        if (!wish_remove(w, c->value)) {
            log_error("--remove '%s': no list has this entry", c->value);
            return -1;
        }
        break;
    case CHANGE_HOST_PORT:
        if (units_parse_count(c->value, UINT16_MAX, &port) < 0) {
            log_error("--host-port '%s': not a port", c->value);
            return -1;
        }
        r = wish_add_host_port(w, (uint16_t)port);
        break;
    }
    if (r < 0)
        log_error("'%s': %s", c->value, strerror(-r));
    return r;
}

static int check(const struct asked *q, const struct wish *w)
{
    autoptr(rules) rules = NULL;
    struct egress_verdict v;
    struct error err;
    struct host host;
    uint16_t port;

    if (host_parse_authority(q->check, strlen(q->check), 443, &host, &port, &err) < 0 ||
        wish_rules(w, &rules, &err) < 0) {
        log_error("--check '%s': %s", q->check, err.msg);
        return 2;
    }
    rules_decide_name(rules, &host, port, &v);
    printf("%s: %s\n", v.decision == EGRESS_DENY ? "denied" : "allowed", v.reason);
    if (v.rule)
        printf("rule: %s\n", v.rule);
    if (v.setting && v.setting[0])
        printf("setting: %s\n", v.setting);
    if (v.decision == EGRESS_RESOLVE)
        puts("each of its addresses is asked about when somebody connects");
    return v.decision == EGRESS_DENY;
}

static void print_json(const struct box_record *r, const struct wish *w, const struct buf *traffic)
{
    autobuf b;

    buf_init(&b, 2 * LIMIT_WISH_TEXT);
    buf_puts(&b, "{");
    buf_json_str(&b, "box", r->name);
    buf_json_str(&b, "network", r->network);
    buf_json_bool(&b, "relay", traffic->len > 0);
    buf_json_strings(&b, "allow", w->allow, w->n_allow);
    buf_json_strings(&b, "deny", w->deny, w->n_deny);
    buf_json_key(&b, "hostPorts");
    buf_puts(&b, "[");
    for (size_t i = 0; i < w->n_host_ports; i++)
        buf_printf(&b, "%s%u", i ? "," : "", w->host_ports[i]);
    buf_puts(&b, "]");
    buf_json_key(&b, "counters");
    buf_puts(&b, traffic->len ? traffic->data : "null");
    buf_puts(&b, "}\n");
    (void)fd_write_full(STDOUT_FILENO, b.data, b.len);
}

static void print_list(const char *title, char *const *list, size_t n, const char *none)
{
    printf("%-11s%s\n", title, n ? list[0] : none);
    for (size_t i = 1; i < n; i++)
        printf("%-11s%s\n", "", list[i]);
}

static void print_traffic(const char *text, size_t len)
{
    json_t *o = json_loadb(text, len, 0, NULL), *hosts = json_object_get(o, "hosts"), *h;
    size_t i;

    printf("since start %lld allowed, %lld denied, %lld datagrams refused, %lld bytes out, %lld "
           "in\n",
           (long long)json_integer_value(json_object_get(o, "allowed")),
           (long long)json_integer_value(json_object_get(o, "denied")),
           (long long)json_integer_value(json_object_get(o, "udpRefused")),
           (long long)json_integer_value(json_object_get(o, "bytesOut")),
           (long long)json_integer_value(json_object_get(o, "bytesIn")));
    if (json_array_size(hosts))
        printf("\n%-40s %8s %8s %14s %14s\n", "HOST", "CONNS", "DENIED", "OUT", "IN");
    json_array_foreach(hosts, i, h)
        printf("%-40s %8lld %8lld %14lld %14lld\n", json_string_value(json_object_get(h, "host")),
               (long long)json_integer_value(json_object_get(h, "connections")),
               (long long)json_integer_value(json_object_get(h, "denied")),
               (long long)json_integer_value(json_object_get(h, "bytesOut")),
               (long long)json_integer_value(json_object_get(h, "bytesIn")));
    json_decref(o);
}

static void print_text(const struct box_record *r, const struct wish *w, const struct buf *traffic)
{
    printf("%-11s%s\n%-11s%s\n", "box", r->name, "network", r->network);
    print_list("allow", w->allow, w->n_allow, "(nothing)");
    print_list("deny", w->deny, w->n_deny, "(nothing more)");
    for (size_t i = 0; i < w->n_host_ports; i++)
        printf("%-11shost.clawden.internal:%u\n", i ? "" : "host", w->host_ports[i]);
    if (traffic->len)
        print_traffic(traffic->data, traffic->len);
    else
        puts("no relay has it now: it does not run, or nothing ran in it since its relay ended");
}

static int about_box(struct asked *q)
{
    autoptr(box_record) r = NULL;
    autoptr(wish) w = NULL;
    struct error err;
    autobuf traffic;

    buf_init(&traffic, WIRE_TEXT);
    if (sandbox_find(q->name, &r, &err) < 0 || sandbox_rules(r, &w, &err) < 0) {
        log_error("%s%s", err.msg, r ? "" : " ('clawden ps -a' shows them)");
        return 1;
    }
    for (size_t i = 0; i < q->n; i++)
        if (change(w, &q->changes[i]) < 0)
            return 2;
    if (q->check)
        return check(q, w); /* with --allow and the like: what would be */
    if (q->n && sandbox_set_rules(r, w, &err) < 0) {
        log_error("%s", err.msg);
        return 1;
    }
    (void)sandbox_traffic(r, &traffic, &err);
    if (q->args.json)
        print_json(r, w, &traffic);
    else
        print_text(r, w, &traffic);
    return 0;
}

static int run(struct asked *q, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int r;

        if (sandbox_wants_help(argv[i])) {
            usage();
            return 0;
        }
        r = settings_args_take(&q->args, argc, argv, &i);
        if (r == 0)
            r = take_own(q, argc, argv, &i);
        if (r < 0)
            return 2;
        if (r == 0)
            return sandbox_unknown("network", argv[i]);
    }
    if (q->settings)
        return print_settings(q);
    if (!q->name) {
        log_error("sandbox network: which box? write its name: clawden sandbox network NAME");
        return 2;
    }
    return about_box(q);
}

int sandbox_verb_network(int argc, char **argv)
{
    struct asked q = {0};
    int status = run(&q, argc, argv);

    free(q.changes);
    settings_args_done(&q.args);
    return status;
}
