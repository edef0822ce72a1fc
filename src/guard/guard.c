/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/guard.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "audit/audit.h"
#include "audit/redact.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "guard/internal.h"

#define NO_PATTERN "\n" /* no session key has one in it */

/* Who speaks from within a box. */
struct door_token {
    struct token token;
    char agent[NAMES_AGENT], session[NAMES_SESSION];
    char *sessions[2];
};

struct guard {
    struct audit *audit;
    struct approvals approvals;
    struct tokens *tokens;
    struct guard_config *config;
    struct guard_agent *agents[LIMIT_GUARD_AGENTS];
    size_t n_agents;
    bool has_local, local_is_open;
    struct token local;
    char *local_sessions[2];
    struct door_token *doors[LIMIT_DOORS];
    size_t n_doors;
};

/* ---- what is shared ---- */

static void config_drop(struct guard_config *c)
{
    if (!c || --c->refs)
        return;
    config_free(c->config);
    free(c);
}

struct guard_agent *guard_agent_hold(struct guard_agent *a)
{
    a->refs++;
    return a;
}

void guard_agent_drop(struct guard_agent *a)
{
    if (!a || --a->refs)
        return;
    policy_done(&a->policy);
    settings_done(&a->settings);
    config_drop(a->from);
    free(a);
}

void pass_free(struct pass *p)
{
    if (!p)
        return;
    verdict_done(&p->verdict);
    guard_agent_drop(p->settings);
    free(p);
}

static void forget_agents(struct guard *g)
{
    while (g->n_agents)
        guard_agent_drop(g->agents[--g->n_agents]);
}

/* ---- the configuration ---- */

int guard_reload(struct guard *g, struct error *err)
{
    const struct config_inputs in = {.remember = true};
    struct guard_config *c = calloc(1, sizeof(*c));
    int r = c ? config_load(&in, &c->config, err) : error_sys(err, -ENOMEM, "load the settings");

    if (r < 0) {
        free(c);
        return r;
    }
    c->refs = 1;
    c->generation = g->config ? g->config->generation + 1 : 1;
    config_drop(g->config);
    g->config = c;
    forget_agents(g);
    return 0;
}

const struct guard_config *guard_config(const struct guard *g)
{
    return g->config;
}

static int make_agent(struct guard *g, const char *agent, struct guard_agent **ret,
                      struct error *err)
{
    struct guard_agent *a = calloc(1, sizeof(*a));
    int r = a ? config_for_agent(g->config->config, agent, &a->settings, err)
              : error_sys(err, -ENOMEM, "load the settings");

    if (r < 0) {
        free(a);
        return r;
    }
    a->refs = 1;
    a->from = g->config;
    a->from->refs++;
    (void)snprintf(a->agent, sizeof(a->agent), "%s", agent);
    r = policy_make(&a->settings, config_sessions_are_global(g->config->config), &a->policy, err);
    if (r < 0) {
        guard_agent_drop(a);
        return r;
    }
    *ret = a;
    return 0;
}

/* The guard's own, until the next reload; the least recently made one makes room. */
static int agent_of(struct guard *g, const char *agent, struct guard_agent **ret, struct error *err)
{
    struct guard_agent *a;
    int r;

    for (size_t i = 0; i < g->n_agents; i++)
        if (strcmp(g->agents[i]->agent, agent) == 0) {
            *ret = g->agents[i];
            return 0;
        }
    r = make_agent(g, agent, &a, err);
    if (r < 0)
        return r;
    if (g->n_agents == LIMIT_GUARD_AGENTS) {
        guard_agent_drop(g->agents[0]);
        memmove(g->agents, g->agents + 1, --g->n_agents * sizeof(*g->agents));
    }
    *ret = g->agents[g->n_agents++] = a;
    return 0;
}

int guard_settings(struct guard *g, const char *agent, struct guard_agent **ret, struct error *err)
{
    return agent_of(g, agent, ret, err);
}

/* ---- making ---- */

static int set_local(struct guard *g, const struct guard_options *o, struct error *err)
{
    if (!o->local_agent)
        return 0;
    g->local = (struct token){.id = GUARD_LOCAL, .rights = o->local_rights};
    g->local.agent = strdup(o->local_agent);
    g->local_sessions[0] = strdup(o->local_session ? o->local_session : "*");
    g->local.sessions = g->local_sessions;
    g->local_is_open = o->local_is_open;
    g->has_local = g->local.agent && g->local_sessions[0];
    return g->has_local ? 0 : error_sys(err, -ENOMEM, "make the guard");
}

int guard_new(const struct guard_options *o, struct guard **ret, struct error *err)
{
    autoptr(guard) g = calloc(1, sizeof(*g));
    int r;

    if (!g)
        return error_sys(err, -ENOMEM, "make the guard");
    g->audit = o->audit;
    g->approvals = (struct approvals){.store = o->store, .audit = o->audit};
    r = set_local(g, o, err);
    if (r >= 0)
        r = tokens_load(&g->tokens, err);
    if (r >= 0)
        r = guard_reload(g, err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(g);
    return 0;
}

void guard_free(struct guard *g)
{
    if (!g)
        return;
    forget_agents(g);
    while (g->n_doors)
        free(g->doors[--g->n_doors]);
    config_drop(g->config);
    tokens_free(g->tokens);
    free(g->local.agent);
    free(g->local_sessions[0]);
    free(g);
}

/* ---- who ---- */

static const struct token *by_id(const struct tokens *tokens, const char *id)
{
    const struct token *t;

    for (size_t i = 0; (t = tokens_at(tokens, i)); i++)
        if (strcmp(t->id, id) == 0)
            return t;
    return NULL;
}

int guard_refresh(struct guard *g, void (*gone)(void *arg, const char *id), void *arg,
                  struct error *err)
{
    autoptr(tokens) old = NULL;
    struct tokens *fresh;
    const struct token *t, *now;
    int r;

    if (!tokens_is_stale(g->tokens))
        return 0;
    r = tokens_load(&fresh, err);
    if (r < 0)
        return r;
    old = g->tokens;
    g->tokens = fresh;
    for (size_t i = 0; (t = tokens_at(old, i)); i++) {
        now = by_id(fresh, t->id);
        if (!now || memcmp(now->digest, t->digest, sizeof(t->digest)) != 0)
            gone(arg, t->id);
    }
    return 1;
}

static const struct token *find_token(const struct guard *g, const char *id, int64_t now)
{
    const struct token *t;

    if (strcmp(id, GUARD_LOCAL) == 0)
        return g->has_local ? &g->local : NULL;
    t = by_id(g->tokens, id);
    for (size_t i = 0; !t && i < g->n_doors; i++)
        if (strcmp(g->doors[i]->token.id, id) == 0)
            t = &g->doors[i]->token;
    return t && t->expires && t->expires <= now ? NULL : t;
}

bool guard_knows(const struct guard *g, const char *id, int64_t now_sec)
{
    return find_token(g, id, now_sec) != NULL;
}

static int identity_of(const struct token *t, struct identity *ret, struct error *err)
{
    if (!t)
        return error_set(err, ERR_DENIED,
                         "the token is not one of ours, or not any more: clawden token create");
    (void)snprintf(ret->token, sizeof(ret->token), "%s", t->id);
    ret->bound = t;
    return 0;
}

/* ---- doors ---- */

int guard_door(struct guard *g, const struct guard_door *what, char ret_text[TOKEN_TEXT],
               char ret_id[TOKEN_ID], struct error *err)
{
    struct door_token *d;
    int r;

    if (g->n_doors == LIMIT_DOORS)
        return error_set(err, ERR_TOO_LARGE, "more than %u boxes can be spoken from", LIMIT_DOORS);
    d = calloc(1, sizeof(*d));
    if (!d)
        return error_sys(err, -ENOMEM, "make a door");
    (void)snprintf(d->agent, sizeof(d->agent), "%s", what->agent);
    (void)snprintf(d->session, sizeof(d->session), "%s", what->session);
    d->sessions[0] = d->session;
    d->token = (struct token){.agent = d->agent,
                              .sessions = d->sessions,
                              .rights = RIGHT_READ | RIGHT_RUN,
                              .is_door = true,
                              .has_network = what->has_network};
    r = token_make(&d->token, ret_text, err);
    if (r < 0) {
        free(d);
        return r;
    }
    (void)snprintf(ret_id, TOKEN_ID, "%s", d->token.id);
    g->doors[g->n_doors++] = d;
    return 0;
}

void guard_door_close(struct guard *g, const char *id)
{
    for (size_t i = 0; i < g->n_doors; i++)
        if (strcmp(g->doors[i]->token.id, id) == 0) {
            free(g->doors[i]);
            g->doors[i] = g->doors[--g->n_doors];
            return;
        }
}

static const struct token *check_doors(const struct guard *g, const char *text, size_t len)
{
    for (size_t i = 0; i < g->n_doors; i++)
        if (token_is(&g->doors[i]->token, text, len))
            return &g->doors[i]->token;
    return NULL;
}

static const struct token *check(const struct guard *g, const char *text, size_t len,
                                 int64_t now_sec)
{
    const struct token *t = tokens_check(g->tokens, text, len, now_sec);

    return t ? t : check_doors(g, text, len);
}

int guard_identify(struct guard *g, const char *text, size_t len, int64_t now_sec,
                   struct identity *ret, struct error *err)
{
    return identity_of(text               ? check(g, text, len, now_sec)
                       : g->local_is_open ? find_token(g, GUARD_LOCAL, now_sec)
                                          : NULL,
                       ret, err);
}

int guard_recall(struct guard *g, const char *id, int64_t now_sec, struct identity *ret,
                 struct error *err)
{
    return identity_of(find_token(g, id, now_sec), ret, err);
}

bool guard_may(const struct identity *who, unsigned right, const char *session)
{
    char agent[NAMES_AGENT] = "";

    (void)names_agent_of(session, agent, sizeof(agent));
    return token_may(who->bound, right, agent[0] ? agent : NO_PATTERN, session);
}

/* ---- which agent, which session ---- */

static const char *literal(const char *pattern)
{
    return pattern && pattern[0] && !strchr(pattern, '*') ? pattern : NULL;
}

int guard_names(const struct identity *who, const char *agent, const char *session,
                char ret_agent[NAMES_AGENT], char ret_session[NAMES_SESSION], struct error *err)
{
    char of_session[NAMES_AGENT] = "";
    const char *first = who->bound->sessions ? who->bound->sessions[0] : NULL;
    int n;

    if (!session && !agent)
        session = who->bound->is_door ? first : literal(first);
    if (session && (strlen(session) >= NAMES_SESSION ||
                    names_agent_of(session, of_session, sizeof(of_session)) < 0))
        return error_set(err, ERR_INVALID,
                         "session '%.80s': the session key of an agent is like agent:main:work",
                         session);
    if (!agent)
        agent = of_session[0] ? of_session : literal(who->bound->agent);
    if (!agent)
        agent = "main";
    if (strlen(agent) >= NAMES_AGENT || names_agent(agent, ret_agent) < 0)
        return error_set(err, ERR_INVALID, "agent '%.80s': no agent can be called so", agent);
    if (of_session[0] && strcmp(of_session, ret_agent) != 0)
        return error_set(err, ERR_INVALID, "agent '%.80s' and session '%.80s' name two agents",
                         agent, session);
    /* Every key names its agent: two agents' sessions are never one by a name alone. */
    if (session && of_session[0])
        n = snprintf(ret_session, NAMES_SESSION, "%s", session);
    else
        n = snprintf(ret_session, NAMES_SESSION, "agent:%s:%s", ret_agent,
                     session ? session : "main");
    if (n >= NAMES_SESSION)
        return error_set(err, ERR_TOO_LARGE, "session: more than %d characters", NAMES_SESSION - 1);
    return 0;
}

/* ---- the record ---- */

/* The time first: what is written in order is found and kept at less cost. */
static int make_id(int64_t now_ms, char ret[CALL_ID], struct error *err)
{
    unsigned char raw[10];

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return error_sys(err, -errno, "get random bytes for the call");
    (void)snprintf(ret, CALL_ID, "%012llx", (unsigned long long)now_ms & 0xffffffffffffull);
    for (size_t i = 0; i < sizeof(raw); i++)
        (void)snprintf(ret + 12 + 2 * i, 3, "%02x", raw[i]);
    return 0;
}

void record_target(struct buf *f, const char *text)
{
    char cut[1024];

    if (!text || !text[0])
        return;
    (void)snprintf(cut, sizeof(cut), "%s", text);
    buf_json_key(f, "target");
    redact_word(f, NULL, cut);
}

static int record(struct guard *g, const struct pass *p, const struct guard_wish *w,
                  const struct denial *d, struct error *err)
{
    autobuf f;

    buf_init(&f, LIMIT_AUDIT_LINE);
    buf_json_str(&f, "call", p->call);
    buf_json_str(&f, "token", p->token);
    buf_json_str(&f, "agent", p->agent);
    buf_json_str(&f, "session", p->session);
    buf_json_str(&f, "tool", p->verdict.tool[0] ? p->verdict.tool : w->tool);
    record_target(&f, w->target);
    buf_json_str(&f, "verdict", d ? "deny" : "allow");
    if (!d)
        buf_json_str(&f, "route", route_name(p->verdict.route));
    buf_json_str(&f, "rule", d ? d->rule : p->verdict.rule);
    if (w->looks)
        buf_json_bool(&f, "looks", true);
    if (p->approval[0] || (d && d->approval[0]))
        buf_json_str(&f, "approval", d ? d->approval : p->approval);
    /* The key of a call that was only asked about is not used up: the same one may come again. */
    if (w->key && (!d || d->final)) {
        buf_json_str(&f, "key", w->key);
        if (w->request)
            buf_json_str(&f, "request", w->request);
    }
    return audit_append(g->audit, "call.begin", w->tool, &f, err);
}

int guard_record_end(struct guard *g, const struct guard_ended *e, struct error *err)
{
    autobuf f;

    buf_init(&f, LIMIT_AUDIT_LINE);
    buf_json_str(&f, "call", e->call);
    buf_json_str(&f, "token", e->token);
    buf_json_str(&f, "session", e->session);
    buf_json_str(&f, "tool", e->tool);
    buf_json_str(&f, "state", e->state);
    buf_json_num(&f, "status", e->status);
    if (e->receipt && e->receipt[0]) {
        buf_puts(&f, ",");
        buf_puts(&f, e->receipt);
    }
    return audit_append(g->audit, e->event, e->tool, &f, err);
}

/* ---- deciding ---- */

__attribute__((format(printf, 4, 5))) static void deny(struct denial *d, const char *rule,
                                                       const char *key, const char *fmt, ...)
{
    va_list ap;

    (void)snprintf(d->rule, sizeof(d->rule), "%s", rule);
    (void)snprintf(d->key, sizeof(d->key), "%s", key ? key : "");
    va_start(ap, fmt);
    (void)vsnprintf(d->reason, sizeof(d->reason), fmt, ap);
    va_end(ap);
    d->final = true;
}

static bool token_allows(const struct identity *who, const struct guard_wish *w,
                         const struct pass *p, struct denial *d)
{
    if (!token_may(who->bound, w->right, p->agent, p->session)) {
        bool has = (who->bound->rights & w->right) == w->right;

        deny(d, has ? "token's sessions" : "token's rights", "clawden token create",
             has ? "the token is not for agent '%s' and session '%s'"
                 : "the token has not the right that this needs (agent '%s', session '%s')",
             p->agent, p->session);
        return false;
    }
    return true;
}

static bool policy_allows(const struct guard_wish *w, struct pass *p, struct denial *d)
{
    const struct call call = {
        .agent = p->agent, .session = p->session, .tool = w->tool, .command = w->command};
    struct verdict *v = &p->verdict;

    policy_decide(&p->settings->policy, &call, v);
    if (!v->allowed) {
        deny(d, v->rule, v->change, "%s", v->reason);
        return false;
    }
    if (v->route == ROUTE_DIRECT) {
        deny(d, v->rule, v->change ? v->change : "agents.defaults.sandbox.mode",
             "%s: the gateway runs nothing outside of a box", v->reason);
        return false;
    }
    return true;
}

/* What comes out of a box asks for no more than commands, and gets no network by that. */
static bool door_allows(const struct identity *who, const struct guard_wish *w, struct pass *p,
                        struct denial *d)
{
    static const char *const fit[] = {"exec", "process", "session_status"};

    if (!who->bound->is_door)
        return true;
    if (!who->bound->has_network && p->verdict.second_box) {
        p->verdict.second_box = false;
        p->verdict.route = ROUTE_ISOLATED;
    }
    for (size_t i = 0; i < sizeof(fit) / sizeof(*fit); i++)
        if (strcmp(w->tool, fit[i]) == 0 && !w->detached)
            return true;
    deny(d, "door", NULL,
         "from within a box only exec (not in the background), process and session_status can be "
         "asked for: it has its own files");
    return false;
}

/* 1: yes. 0: no, *d says why. The pass is filled in on the way. */
static int decide(struct guard *g, const struct identity *who, const struct guard_wish *w,
                  struct pass *p, struct denial *d, struct error *err)
{
    struct guard_agent *a;
    int r;

    if (!token_allows(who, w, p, d)) /* first: others' settings are not its business */
        return 0;
    r = agent_of(g, p->agent, &a, err);
    if (r < 0)
        return r;
    p->settings = guard_agent_hold(a);
    if (!policy_allows(w, p, d) || !door_allows(who, w, p, d))
        return 0;
    return p->verdict.approve[0] ? approvals_admit(&g->approvals, w, p, d, err) : 1;
}

int guard_admit(struct guard *g, const struct identity *who, const struct guard_wish *w,
                struct pass **ret, struct denial *denial, struct error *err)
{
    autoptr(pass) p = calloc(1, sizeof(*p));
    int r, allowed;

    if (!p)
        return error_sys(err, -ENOMEM, "admit a call");
    *denial = (struct denial){0};
    r = guard_names(who, w->agent, w->session, p->agent, p->session, err);
    if (r >= 0)
        r = make_id(w->now_ms, p->call, err);
    if (r < 0)
        return r;
    p->begun_ms = w->now_ms;
    p->may_write = who->bound->rights & RIGHT_RUN;
    p->sibling = who->bound->is_door;
    (void)snprintf(p->token, sizeof(p->token), "%s", who->token);
    (void)snprintf(denial->call, sizeof(denial->call), "%s", p->call);
    (void)snprintf(denial->session, sizeof(denial->session), "%s", p->session);
    (void)snprintf(denial->op, sizeof(denial->op), "%s", w->tool);
    (void)snprintf(denial->target, sizeof(denial->target), "%s", w->target ? w->target : "");
    allowed = decide(g, who, w, p, denial, err);
    if (allowed < 0)
        return allowed;
    r = record(g, p, w, allowed ? NULL : denial, err);
    if (r < 0)
        return r;
    if (!allowed)
        return 0;
    *ret = TAKE_PTR(p);
    return 1;
}

int guard_answer(struct guard *g, const struct identity *who, const char *id, bool allow,
                 int64_t now_ms, struct store_approval *ret, struct error *err)
{
    if (!g->approvals.store)
        return error_set(err, ERR_NOT_FOUND, "nobody is asked here");
    return approvals_answer(&g->approvals, who, id, allow, now_ms, ret, err);
}
