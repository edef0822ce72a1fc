/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of openclaw.json that are ours, made into layers. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/internal.h"

static int read_tools(struct config *c, struct key_path *p, json_t *in, const struct block *like,
                      struct error *err)
{
    static const char *const way[] = {"tools", "sandbox"};
    struct block b = *like;
    size_t depth = p->n;
    json_t *v = in;
    int r = 0;

    for (size_t i = 0; i < 2 && v && r >= 0; i++) {
        r = object_member(c, SOURCE_OPENCLAW, p, v, way[i], &v, err);
        (void)key_path_push(p, way[i]);
    }
    v = r >= 0 && v ? json_object_get(v, "tools") : NULL;
    if (v) {
        (void)key_path_push(p, "tools");
        b.home = HOME_TOOLS;
        r = block_read(&b, p, v, err);
    }
    while (p->n > depth)
        key_path_pop(p);
    return r;
}

/* `workspace`, with its variables put in. */
static int read_workspace(struct config *c, struct key_path *p, json_t *in, char **ret,
                          struct error *err)
{
    json_t *v = json_object_get(in, "workspace"), *put = NULL;
    int r = 0;

    if (!v)
        return 0;
    (void)key_path_push(p, "workspace");
    if (json_is_string(v))
        r = substitute(c, SOURCE_OPENCLAW, p, v, &put, err);
    if (r >= 0 && (!json_is_string(put) || !json_string_value(put)[0])) {
        (void)error_set(err, ERR_INVALID, "'workspace' must be a path");
        r = key_wrong(c, SOURCE_OPENCLAW, p, v, err);
    }
    if (r >= 0) {
        free(*ret);
        *ret = strdup(json_string_value(put));
    }
    json_decref(put);
    key_path_pop(p);
    return r;
}

static int read_sandbox(struct key_path *p, json_t *in, const struct block *b, struct error *err)
{
    json_t *v = json_object_get(in, "sandbox");
    int r;

    if (!v)
        return 0;
    (void)key_path_push(p, "sandbox");
    r = block_read(b, p, v, err);
    key_path_pop(p);
    return r;
}

/* ---- agents ---- */

static bool is_agent_id(const char *id)
{
    size_t n = strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

    return n > 0 && n <= LIMIT_CONFIG_AGENT_ID && !id[n];
}

/* The spelling that the client gives an id (policy/names.h): one without a '.' is as it should be,
 * but for a '-' or '_' at its start. */
static void spell_agent(const char *id, char ret[static LIMIT_CONFIG_AGENT_ID + 1])
{
    bool odd = strchr(id, '.') || id[0] == '-' || id[0] == '_';
    size_t n = 0, start = 0;

    for (; *id && n < LIMIT_CONFIG_AGENT_ID; id++)
        if (*id != '.')
            ret[n++] = *id >= 'A' && *id <= 'Z' ? (char)(*id - 'A' + 'a') : *id;
        else if (id[1] != '.')
            ret[n++] = '-';
    while (odd && n && ret[n - 1] == '-')
        n--;
    while (odd && start < n && ret[start] == '-')
        start++;
    memmove(ret, ret + start, n - start);
    ret[n - start] = 0;
}

bool agent_is_same(const char *a, const char *b)
{
    char one[LIMIT_CONFIG_AGENT_ID + 1], other[LIMIT_CONFIG_AGENT_ID + 1];

    spell_agent(a, one);
    spell_agent(b, other);
    return strcmp(one, other) == 0;
}

static bool has_agent(const struct config *c, const char *id)
{
    for (size_t i = 0; i < c->n_agents; i++)
        if (agent_is_same(c->agents[i].id, id))
            return true;
    return false;
}

static int check_agent(const struct config *c, const char *id, json_t *entry, struct error *err)
{
    if (!is_agent_id(id) || !id[strspn(id, ".-")])
        return error_set(err, ERR_INVALID,
                         "an agent's id must have 1 to %u of the characters A-Z a-z 0-9 . _ -",
                         LIMIT_CONFIG_AGENT_ID);
    if (has_agent(c, id))
        return error_set(err, ERR_INVALID, "the agent '%s' is given twice; leave one out", id);
    if (!json_is_object(entry))
        return error_set(err, ERR_INVALID, "an agent must be an object: { ... }");
    if (c->n_agents >= LIMIT_CONFIG_AGENTS)
        return error_set(err, ERR_TOO_LARGE, "more than %u agents", LIMIT_CONFIG_AGENTS);
    return 0;
}

/* p leads to the entry. */
static int read_agent(struct config *c, struct key_path *p, const char *id, json_t *entry,
                      struct error *err)
{
    struct block b = {.c = c,
                      .kind = SOURCE_OPENCLAW,
                      .origin = ORIGIN_AGENT,
                      .home = HOME_SANDBOX,
                      .is_agent = true};
    struct agent *more;
    int r;

    if (check_agent(c, id, entry, err) < 0)
        return key_wrong(c, SOURCE_OPENCLAW, p, entry, err);
    more = realloc(c->agents, (c->n_agents + 1) * sizeof(*more));
    if (!more)
        return error_sys(err, -ENOMEM, "read agents");
    c->agents = more;
    more[c->n_agents] = (struct agent){.id = strdup(id)};
    if (!more[c->n_agents].id)
        return error_sys(err, -ENOMEM, "read agents");
    b.ret = &more[c->n_agents++].own;
    r = read_sandbox(p, entry, &b, err);
    if (r >= 0)
        r = read_tools(c, p, entry, &b, err);
    if (r >= 0)
        r = read_workspace(c, p, entry, &c->agents[c->n_agents - 1].workspace, err);
    return r;
}

static int read_entries(struct config *c, struct key_path *p, json_t *agents, struct error *err)
{
    json_t *entries, *v;
    const char *id;
    int r = object_member(c, SOURCE_OPENCLAW, p, agents, "entries", &entries, err);

    (void)key_path_push(p, "entries");
    json_object_foreach(entries, id, v)
    {
        if (r < 0)
            break;
        (void)key_path_push(p, id);
        r = read_agent(c, p, id, v, err);
        key_path_pop(p);
    }
    key_path_pop(p);
    return r;
}

static int read_listed(struct config *c, struct key_path *p, json_t *v, struct error *err)
{
    const char *id = json_string_value(json_object_get(v, "id"));

    if (!id) {
        (void)error_set(err, ERR_INVALID, "an agent of 'agents.list' must have an 'id'");
        return key_wrong(c, SOURCE_OPENCLAW, p, v, err);
    }
    return read_agent(c, p, id, v, err);
}

static int read_list(struct config *c, struct key_path *p, json_t *agents, struct error *err)
{
    json_t *list = json_object_get(agents, "list"), *v;
    char number[24];
    size_t i;
    int r = 0;

    if (!list)
        return 0;
    (void)key_path_push(p, "list");
    if (!json_is_array(list)) {
        (void)error_set(err, ERR_INVALID, "'agents.list' must be a list; or write agents.entries");
        r = key_wrong(c, SOURCE_OPENCLAW, p, list, err);
    } else {
        key_warn(c, SOURCE_OPENCLAW, p, list,
                 "'agents.list' is the older form; move it to keyed 'agents.entries'");
    }
    json_array_foreach(list, i, v)
    {
        if (r < 0)
            break;
        (void)snprintf(number, sizeof(number), "%zu", i);
        (void)key_path_push(p, number);
        r = read_listed(c, p, v, err);
        key_path_pop(p);
    }
    key_path_pop(p);
    return r;
}

/* ---- the whole ---- */

static int read_defaults(struct config *c, struct key_path *p, json_t *agents, struct error *err)
{
    struct block b = {.c = c,
                      .kind = SOURCE_OPENCLAW,
                      .origin = ORIGIN_DEFAULTS,
                      .home = HOME_SANDBOX,
                      .ret = &c->defaults};
    json_t *defaults;
    int r = object_member(c, SOURCE_OPENCLAW, p, agents, "defaults", &defaults, err);

    (void)key_path_push(p, "defaults");
    if (r >= 0)
        r = read_sandbox(p, defaults, &b, err);
    if (r >= 0)
        r = read_workspace(c, p, defaults, &c->workspace, err);
    key_path_pop(p);
    return r;
}

int openclaw_build(struct config *c, struct error *err)
{
    struct block b = {.c = c,
                      .kind = SOURCE_OPENCLAW,
                      .origin = ORIGIN_DEFAULTS,
                      .home = HOME_TOOLS,
                      .ret = &c->defaults};
    json_t *top = c->parts[SOURCE_OPENCLAW], *agents;
    struct key_path p = {.n = 0};
    const char *scope =
        json_string_value(json_object_get(json_object_get(top, "session"), "scope"));
    int r = object_member(c, SOURCE_OPENCLAW, &p, top, "agents", &agents, err);

    c->sessions_are_global = scope && strcmp(scope, "global") == 0;
    (void)key_path_push(&p, "agents");
    if (r >= 0)
        r = read_defaults(c, &p, agents, err);
    if (r >= 0)
        r = read_entries(c, &p, agents, err);
    if (r >= 0)
        r = read_list(c, &p, agents, err);
    key_path_pop(&p);
    return r < 0 ? r : read_tools(c, &p, top, &b, err);
}
