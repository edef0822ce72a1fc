/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `clawden sandbox explain`: what holds for a session, where each value came from, and what would
 * happen to a call. What a box is protected by is never taken from the configuration: the kernel
 * is asked about the scope's own box, or, when none runs, about one that is made for the question.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "cmd/clawden/decision.h"
#include "cmd/clawden/sandbox.h"
#include "engine/native/belts.h"
#include "sandbox/scope_parts.h"

#define PROBE_TMP (16u << 20)

/* ---- belts ---- */

struct protection {
    bool is_known, runs; /* runs: of the scope's own box */
    uint32_t held;
    enum grade grades[LIMIT_KINDS];
    char why_not[256];
};

static void ask_running(const struct box_record *box, struct protection *p)
{
    struct box_state state;
    struct error err;

    if (sandbox_state(box, &state, &err) < 0 || !state.running || state.paused ||
        sandbox_belts(box, &p->held, &err) < 0)
        return;
    memcpy(p->grades, state.grades, sizeof(p->grades));
    p->is_known = p->runs = true;
}

static void ask_a_new_one(struct protection *p)
{
    struct box_spec spec = {
        .root = ROOT_HOST,
        .root_fd = -1,
        .workspace_fd = -1,
        .rw_fd = -1,
        .listener = -1,
        .hold_fd = -1,
        .uid = 1000,
        .gid = 1000,
        .limits = {
            .tmp_bytes = PROBE_TMP, .memory_bytes = 64 << 20, .pids = 16, .cpu_milli = 1000}};
    struct error err;
    struct box *box;
    uint32_t seen = 0;

    if (engine_native.start(&spec, &box, &err) < 0) {
        (void)snprintf(p->why_not, sizeof(p->why_not), "%s", err.msg);
        return;
    }
    if (belts_read(box->init_pid, &p->held, &seen) >= 0) {
        p->held |= box->belts & ~seen;
        memcpy(p->grades, box->grades, sizeof(p->grades));
        p->is_known = true;
    }
    engine_native.destroy(box);
}

/* ---- one box of the scope ---- */

struct side {
    struct scope_plan *plan; /* NULL: refused, and err says why */
    struct box_record *box;  /* NULL: there is none yet */
    struct error err;
    bool running;
    char hash[65];      /* of the box that is there */
    struct wish *rules; /* what it reaches: asked of the box, or what it will be; NULL: nothing */
    bool has_relay;     /* somebody serves its network now */
};

/* A box that is there has its own rules: somebody may have changed them. */
static void look_at_network(struct side *s)
{
    struct error none;
    autobuf ignored;

    buf_init(&ignored, WIRE_TEXT);
    if (s->box && sandbox_has_network(s->box)) {
        (void)sandbox_rules(s->box, &s->rules, &none);
        s->has_relay = s->running && sandbox_traffic(s->box, &ignored, &none) >= 0;
    } else if (!s->box && s->plan->record->egress) {
        s->rules = wish_copy(s->plan->record->egress);
    }
}

static void look(const struct decision *d, bool network, struct side *s)
{
    const struct scope_request q = {.config = d->config,
                                    .settings = &d->settings,
                                    .policy = &d->policy,
                                    .agent = d->agent,
                                    .session = d->session,
                                    .network = network};
    struct box_state state;
    struct error none;
    const char *hash;

    if (scope_plan_make(&q, &s->plan, &s->err) < 0)
        return;
    if (sandbox_find(s->plan->name, &s->box, &none) < 0) {
        look_at_network(s);
        return;
    }
    s->running = sandbox_state(s->box, &state, &none) >= 0 && state.running;
    /* The client's own boxes have hashes of the client's, which say nothing here. */
    hash = scope_label(s->box, LABEL_OURS) ? scope_label(s->box, LABEL_HASH) : NULL;
    (void)snprintf(s->hash, sizeof(s->hash), "%s", hash ? hash : "");
    look_at_network(s);
}

static void side_done(struct side *s)
{
    scope_plan_free(s->plan);
    box_record_free(s->box);
    wish_free(s->rules);
}

/* ---- JSON ---- */

static json_t *settings_json(const struct decision *d)
{
    json_t *all = json_object();

    for (size_t i = 0; i < SETTINGS; i++) {
        char from[512];
        json_t *one;

        if (!d->settings.value[i])
            continue;
        one = json_object();
        json_object_set_new(one, "value",
                            decision_visible(&settings_table[i], d->settings.value[i]));
        json_object_set_new(one, "source",
                            json_string(origin_describe(&d->settings.from[i], from, sizeof(from))));
        if (settings_table[i].home == HOME_TOOLS) {
            char name[64];

            (void)snprintf(name, sizeof(name), "tools.%s", settings_table[i].path);
            json_object_set_new(all, name, one);
        } else {
            json_object_set_new(all, settings_table[i].path, one);
        }
    }
    return all;
}

static const char *place_name(enum env_place p)
{
    return p == ENV_BOTH ? "both" : p == ENV_NETWORK_ONLY ? "network" : "nowhere";
}

static json_t *strings_json(char *const *list, size_t n)
{
    json_t *all = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(all, json_string(list[i]));
    return all;
}

static json_t *network_json(const struct side *s)
{
    const struct box_record *r = s->box ? s->box : s->plan->record;
    json_t *o = json_object(), *ports = json_array();

    json_object_set_new(o, "name", json_string(r->network ? r->network : "none"));
    if (s->rules) {
        json_object_set_new(o, "allow", strings_json(s->rules->allow, s->rules->n_allow));
        json_object_set_new(o, "deny", strings_json(s->rules->deny, s->rules->n_deny));
        for (size_t i = 0; i < s->rules->n_host_ports; i++)
            json_array_append_new(ports, json_integer(s->rules->host_ports[i]));
        json_object_set(o, "hostPorts", ports);
        json_object_set_new(o, "relay", json_boolean(s->has_relay));
    }
    json_decref(ports);
    return o;
}

static json_t *side_json(const struct side *s)
{
    json_t *o = json_object(), *mounts = json_array(), *env = json_array();

    json_object_set_new(o, "name", json_string(s->plan->name));
    json_object_set_new(o, "scopeKey", json_string(s->plan->key));
    json_object_set_new(o, "configHash", json_string(s->plan->hash));
    json_object_set_new(o, "exists", json_boolean(s->box != NULL));
    json_object_set_new(o, "running", json_boolean(s->running));
    json_object_set_new(o, "configCurrent",
                        s->hash[0] ? json_boolean(strcmp(s->hash, s->plan->hash) == 0)
                                   : json_null());
    for (size_t i = 0; i < s->plan->record->n_mounts; i++) {
        const struct box_mount *m = &s->plan->record->mounts[i];

        json_array_append_new(mounts, json_pack("{s:s,s:s,s:s*,s:s}", "target", m->target, "kind",
                                                m->kind == BOX_BIND ? "bind" : "tmpfs", "source",
                                                m->source, "access", m->read_only ? "ro" : "rw"));
    }
    for (size_t i = 0; i < s->plan->n_env; i++) {
        const struct scope_env *e = &s->plan->env[i];

        json_array_append_new(env, json_pack("{s:s,s:s,s:b,s:b,s:s*}", "name", e->name, "to",
                                             place_name(e->place), "reference", e->is_reference,
                                             "missing", e->is_missing, "why", e->why));
    }
    json_object_set_new(o, "mounts", mounts);
    json_object_set_new(o, "env", env);
    json_object_set_new(o, "network", network_json(s));
    return o;
}

static json_t *protection_json(const struct protection *p)
{
    json_t *o = json_object(), *belts = json_object(), *grades = json_object();

    json_object_set_new(o, "asked",
                        json_string(p->runs       ? "the scope's box"
                                    : p->is_known ? "a box made for this question"
                                                  : "nobody: no box can be made"));
    if (p->why_not[0])
        json_object_set_new(o, "reason", json_string(p->why_not));
    for (int i = 0; p->is_known && i < BELT_COUNT; i++)
        json_object_set_new(belts, belt_name((enum belt)i), json_boolean(p->held >> i & 1));
    for (int i = LIMIT_NONE + 1; p->is_known && i < LIMIT_KINDS; i++)
        json_object_set_new(grades, limit_name((enum limit_kind)i),
                            json_string(grade_name(p->grades[i])));
    json_object_set_new(o, "belts", belts);
    json_object_set_new(o, "limits", grades);
    return o;
}

static void add_warnings(json_t *list, const struct side *s)
{
    for (size_t i = 0; s->plan && s->plan->warnings && s->plan->warnings[i]; i++) {
        json_t *one = json_string(s->plan->warnings[i]), *other;
        bool known = false;
        size_t k;

        json_array_foreach(list, k, other) known |= json_equal(one, other);
        if (!known) /* the boxes of a scope have most of theirs in common */
            (void)json_array_append(list, one);
        json_decref(one);
    }
}

/* What is odd about the files, and about the boxes that they come to. */
static json_t *warnings_json(const struct decision *d, const struct side *isolated,
                             const struct side *network)
{
    json_t *list = json_array();
    const char *text;

    if (config_fallback(d->config))
        json_array_append_new(list, json_string(config_fallback(d->config)));
    for (size_t i = 0; (text = config_warning(d->config, i)); i++)
        json_array_append_new(list, json_string(text));
    add_warnings(list, isolated);
    add_warnings(list, network);
    return list;
}

static json_t *files_json(const struct decision *d)
{
    json_t *list = json_array();
    const char *text;

    for (size_t i = 0; (text = config_file(d->config, i)); i++)
        json_array_append_new(list, json_string(text));
    return list;
}

static json_t *list_json(const struct policy_list *l)
{
    json_t *list = json_array();

    for (size_t i = 0; i < l->n; i++)
        json_array_append_new(list, json_string(l->words[i]));
    return list;
}

/* OpenClaw's own shape, so that scripts which read its answer read ours. */
static json_t *sandbox_json(const struct decision *d, bool sandboxed)
{
    const struct settings *s = &d->settings;
    char from[2][512];

    return json_pack(
        "{s:s*,s:s*,s:s*,s:s*,s:b,s:{s:o,s:o,s:{s:s,s:s}}}", "mode", settings_text(s, SETTING_MODE),
        "scope", settings_text(s, SETTING_SCOPE), "workspaceAccess",
        settings_text(s, SETTING_WORKSPACE_ACCESS), "workspaceRoot",
        settings_text(s, SETTING_WORKSPACE_ROOT), "sessionIsSandboxed", sandboxed, "tools", "allow",
        list_json(&d->policy.allow), "deny", list_json(&d->policy.deny), "sources", "allow",
        origin_describe(&s->from[SETTING_TOOLS_ALLOW], from[0], sizeof(from[0])), "deny",
        origin_describe(&s->from[SETTING_TOOLS_DENY], from[1], sizeof(from[1])));
}

/* ---- text ---- */

static void print_settings(const struct decision *d)
{
    puts("settings:");
    for (size_t i = 0; i < SETTINGS; i++) {
        char from[512], name[96];
        json_t *shown;
        char *text;

        if (!d->settings.value[i])
            continue;
        shown = decision_visible(&settings_table[i], d->settings.value[i]);
        text = json_dumps(shown, JSON_COMPACT | JSON_ENCODE_ANY);
        (void)snprintf(name, sizeof(name), "%s%s",
                       settings_table[i].home == HOME_TOOLS ? "tools." : "",
                       settings_table[i].path);
        printf("  %-30s %s\n  %-30s   from %s\n", name, text ? text : "?", "",
               origin_describe(&d->settings.from[i], from, sizeof(from)));
        free(text);
        json_decref(shown);
    }
}

static void print_network(const struct side *s)
{
    const struct box_record *r = s->box ? s->box : s->plan->record;

    if (!s->rules) {
        puts("  reaches                  nothing but its own loopback");
        return;
    }
    printf("  network                  %s%s\n", r->network,
           s->running && !s->has_relay ? " (no relay has it now: the next command brings it to one)"
                                       : "");
    for (size_t i = 0; i < s->rules->n_allow; i++)
        printf("  reaches                  %s\n", s->rules->allow[i]);
    if (!s->rules->n_allow && !s->rules->n_host_ports)
        puts("  reaches                  nothing: egress.allow is empty");
    for (size_t i = 0; i < s->rules->n_host_ports; i++)
        printf("  reaches                  host.clawden.internal:%u\n", s->rules->host_ports[i]);
    for (size_t i = 0; i < s->rules->n_deny; i++)
        printf("  never reaches            %s\n", s->rules->deny[i]);
}

static void print_side(const struct side *s, const char *what)
{
    printf("%s box: %s (%s%s)\n", what, s->plan->name,
           s->running ? "running"
           : s->box   ? "stopped"
                      : "not made yet: the first call makes it",
           s->hash[0] && strcmp(s->hash, s->plan->hash) != 0
               ? "; its configuration changed since: 'clawden sandbox recreate' applies it"
               : "");
    for (size_t i = 0; i < s->plan->record->n_mounts; i++) {
        const struct box_mount *m = &s->plan->record->mounts[i];

        printf("  %-24s %s %s\n", m->target, m->read_only ? "ro" : "rw",
               m->kind == BOX_BIND ? m->source : "tmpfs");
    }
    for (size_t i = 0; i < s->plan->n_env; i++) {
        const struct scope_env *e = &s->plan->env[i];

        printf("  $%-23s %s%s%s%s\n", e->name,
               e->place == ENV_BOTH           ? "every box of the scope"
               : e->place == ENV_NETWORK_ONLY ? "the box with a network only"
                                              : "no box",
               e->is_missing ? ", but the variable it names is not set" : "", e->why ? ": " : "",
               e->why ? e->why : "");
    }
    print_network(s);
}

static void print_protection(const struct protection *p)
{
    if (!p->is_known) {
        printf("belts: no box can be made here: %s\n", p->why_not);
        return;
    }
    printf("belts, asked of the kernel (%s):\n ",
           p->runs ? "the scope's own box" : "a box made for this question; none runs");
    for (int i = 0; i < BELT_COUNT; i++)
        printf(" %s%s%s", p->held >> i & 1 ? "" : "NOT ", belt_name((enum belt)i),
               i + 1 < BELT_COUNT ? "," : "\n");
    printf("limits:");
    for (int i = LIMIT_NONE + 1; i < LIMIT_KINDS; i++)
        printf(" %s %s%s", limit_name((enum limit_kind)i), grade_name(p->grades[i]),
               i + 1 < LIMIT_KINDS ? "," : "\n");
}

static void print_verdict(const struct decision *d, const struct verdict *v)
{
    const char *change = decision_change(d, v);

    printf("call: %s -> %s%s%s\n  rule:   %s\n  reason: %s\n", v->tool,
           v->allowed ? "allow" : "deny", v->allowed ? ", " : "",
           v->allowed ? route_name(v->route) : "", v->rule, v->reason);
    if (change)
        printf("  change: %s\n", change);
}

/* ---- the verb ---- */

struct answer {
    struct decision d;
    struct verdict v;
    bool asked, sandboxed;
    const char *why;
    struct side isolated, network;
    struct protection protection;
};

static void gather(struct answer *a, const struct settings_args *args)
{
    const struct call call = decision_call(&a->d, args, &a->asked);

    a->sandboxed = policy_is_sandboxed(&a->d.policy, a->d.agent, a->d.session, &a->why);
    policy_decide(&a->d.policy, &call, &a->v);
    if (!a->sandboxed)
        return;
    look(&a->d, false, &a->isolated);
    if (policy_is_dual(&a->d.policy) && a->isolated.plan)
        look(&a->d, true, &a->network);
    if (a->isolated.box)
        ask_running(a->isolated.box, &a->protection);
    if (!a->protection.is_known && a->network.box)
        ask_running(a->network.box, &a->protection);
    if (!a->protection.is_known)
        ask_a_new_one(&a->protection);
}

static void print_json(const struct answer *a)
{
    json_t *o = json_object(), *boxes = json_array();

    json_object_set_new(o, "agentId", json_string(a->d.agent));
    json_object_set_new(o, "sessionKey", json_string(a->d.session));
    json_object_set_new(o, "mainSessionKey", json_string(a->d.main_session));
    json_object_set_new(o, "runtime", json_string(a->sandboxed ? "sandboxed" : "direct"));
    json_object_set_new(o, "runtimeRule", a->why ? json_string(a->why) : json_null());
    if (a->asked)
        decision_add_verdict(o, &a->d, &a->v);
    json_object_set_new(o, "sandbox", sandbox_json(&a->d, a->sandboxed));
    json_object_set_new(o, "settings", settings_json(&a->d));
    if (a->sandboxed && !a->isolated.plan)
        json_object_set_new(o, "refused", json_string(a->isolated.err.msg));
    if (a->isolated.plan)
        json_array_append_new(boxes, side_json(&a->isolated));
    if (a->network.plan)
        json_array_append_new(boxes, side_json(&a->network));
    json_object_set_new(o, "boxes", boxes);
    json_object_set_new(o, "protection",
                        a->sandboxed ? protection_json(&a->protection) : json_null());
    json_object_set_new(o, "files", files_json(&a->d));
    json_object_set_new(o, "warnings", warnings_json(&a->d, &a->isolated, &a->network));
    (void)json_dumpf(o, stdout, JSON_INDENT(2));
    puts("");
    json_decref(o);
}

static void print_text(const struct answer *a)
{
    printf("agent %s, session %s: %s%s%s%s\n", a->d.agent, a->d.session,
           a->sandboxed ? "sandboxed" : "direct", a->why ? " (" : "", a->why ? a->why : "",
           a->why ? ")" : "");
    if (!a->sandboxed)
        puts("  tools of this session run on the host, without a box");
    if (a->asked)
        print_verdict(&a->d, &a->v);
    if (a->sandboxed && !a->isolated.plan)
        printf("no box can be made: %s\n", a->isolated.err.msg);
    if (a->isolated.plan)
        print_side(&a->isolated, policy_is_dual(&a->d.policy) ? "isolated" : "the");
    if (a->network.plan)
        print_side(&a->network, "network");
    if (a->sandboxed)
        print_protection(&a->protection);
    print_settings(&a->d);
}

static void usage(void)
{
    puts("clawden sandbox explain [--session KEY] [--agent ID] [--tool NAME] [--command LINE] "
         "[--json]\n"
         "\n"
         "What holds for a session: every setting with where it came from, the boxes with their\n"
         "mounts and the names of their variables, and which belts really hold, asked of the "
         "kernel.\n"
         "With --tool or --command: whether that call may run and where, by which rule, and which "
         "key\n"
         "would change it.\n"
         "\n"
         "  clawden sandbox explain --command 'gh pr list'\n"
         "  clawden sandbox explain --agent work --tool browser --json\n");
    puts(settings_args_help);
}

int sandbox_explain(int argc, char **argv)
{
    auto_settings_args args = {.in.remember = true};
    static struct answer a;
    struct error err;

    for (int i = 1; i < argc; i++) {
        int r = settings_args_take(&args, argc, argv, &i);

        if (r < 0)
            return 2;
        if (r == 0 && !sandbox_wants_help(argv[i]))
            return sandbox_unknown("explain", argv[i]);
        if (r == 0) {
            usage();
            return 0;
        }
    }
    if (decision_load(&args, "main", &a.d, &err) < 0) {
        log_error("%s", err.msg);
        return 1;
    }
    gather(&a, &args);
    if (args.json) {
        print_json(&a);
    } else {
        json_t *warnings = warnings_json(&a.d, &a.isolated, &a.network), *text;
        size_t i;

        json_array_foreach(warnings, i, text) log_warn("%s", json_string_value(text));
        json_decref(warnings);
        print_text(&a);
    }
    side_done(&a.isolated);
    side_done(&a.network);
    verdict_done(&a.v);
    decision_done(&a.d);
    return 0;
}
