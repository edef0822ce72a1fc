/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From settings to a policy. What a file says wrongly is an error; what nobody says is the
 * strictest there is, but for the allow list: its emptiness means everything, so that it must be
 * said.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "config/settings.h"
#include "policy/internal.h"

/* ---- lists ---- */

static void list_done(struct policy_list *l)
{
    free(l->words);
    l->words = NULL;
    l->n = 0;
}

/* One entry, trimmed; *ret_len is 0 for one that says nothing. */
static int read_entry(const json_t *entry, const char *key, const char **ret, size_t *ret_len,
                      struct error *err)
{
    const char *text = json_string_value(entry);

    if (!text)
        return error_set(err, ERR_INVALID, "'%s' must be a list of strings", key);
    if (strlen(text) != json_string_length(entry))
        return error_set(err, ERR_INVALID, "'%s': an entry holds a NUL character", key);
    *ret = policy_trim(text, ret_len);
    if (*ret_len > POLICY_WORD_BYTES)
        return error_set(err, ERR_TOO_LARGE, "'%s': an entry is longer than %u bytes", key,
                         POLICY_WORD_BYTES);
    if (policy_is_odd(*ret, *ret_len))
        return error_set(err, ERR_INVALID, "'%s': an entry holds a control character", key);
    return 0;
}

/* Checks every entry; the room that the texts take. */
static int measure_list(const json_t *value, const char *key, size_t *ret_bytes, struct error *err)
{
    size_t n = json_array_size(value), bytes = 0;

    if (!json_is_array(value))
        return error_set(err, ERR_INVALID, "'%s' must be a list of strings", key);
    if (n > POLICY_LIST_WORDS)
        return error_set(err, ERR_TOO_LARGE, "'%s' has more than %u entries", key,
                         POLICY_LIST_WORDS);
    for (size_t i = 0; i < n; i++) {
        const char *text;
        size_t len;
        int r = read_entry(json_array_get(value, i), key, &text, &len, err);

        if (r < 0)
            return r;
        bytes += len + 1;
    }
    *ret_bytes = bytes;
    return 0;
}

/* One block, for the pointers and then the texts. */
static int read_list(const struct settings *s, enum setting_id id, const char *key,
                     struct policy_list *ret, struct error *err)
{
    const json_t *value = s->value[id];
    struct policy_list l = {.key = key, .configured = s->from[id].kind > ORIGIN_PRESET};
    size_t n = json_array_size(value), bytes = 0;
    char *out;
    int r = value ? measure_list(value, key, &bytes, err) : 0;

    if (r < 0)
        return r;
    if (bytes > n) { /* something is left when the empty entries are dropped */
        l.words = malloc((n + 1) * sizeof(*l.words) + bytes);
        if (!l.words)
            return error_sys(err, -ENOMEM, "read '%s'", key);
        out = (char *)(l.words + n + 1);
        for (size_t i = 0; i < n; i++) {
            size_t len;
            const char *text = policy_trim(json_string_value(json_array_get(value, i)), &len);

            if (len == 0)
                continue;
            l.words[l.n++] = out;
            for (size_t j = 0; j < len; j++)
                *out++ = policy_lower(text[j]);
            *out++ = 0;
        }
        l.words[l.n] = NULL;
    }
    *ret = l;
    return 0;
}

/* ---- tool policy (OPENCLAW 6.2) ---- */

/* A preset's deny gives way to what somebody allowed on purpose; a deny that somebody wrote does
 * not. */
static void yield_to_allowed(struct policy *p)
{
    size_t kept = 0;

    if (p->deny.configured)
        return;
    for (size_t i = 0; i < p->deny.n; i++) {
        char *word = p->deny.words[i];
        bool wanted = (p->allow.configured && tools_find(&p->allow, word)) ||
                      (p->also.configured && tools_find(&p->also, word));

        if (!wanted)
            p->deny.words[kept++] = word;
    }
    p->deny.n = kept;
    if (p->deny.words)
        p->deny.words[kept] = NULL;
}

static int read_tools(const struct settings *s, struct policy *p, struct error *err)
{
    static const char key[] = KEY_TOOLS("allow");
    int r;

    if (!s->value[SETTING_TOOLS_ALLOW])
        return error_set(err, ERR_INVALID, "'%s' is not set, not even by a preset", key);
    r = read_list(s, SETTING_TOOLS_ALLOW, key, &p->allow, err);
    if (r < 0)
        return r;
    /* [""] is a slip of the pen; taken as [] it would allow everything. */
    if (p->allow.n == 0 && json_array_size(s->value[SETTING_TOOLS_ALLOW]))
        return error_set(err, ERR_INVALID,
                         "'%s' has only empty entries; to allow everything, write []", key);
    r = read_list(s, SETTING_TOOLS_ALSO, KEY_TOOLS("alsoAllow"), &p->also, err);
    if (r < 0)
        return r;
    r = read_list(s, SETTING_TOOLS_DENY, KEY_TOOLS("deny"), &p->deny, err);
    if (r < 0)
        return r;
    yield_to_allowed(p);
    return 0;
}

/* A group of nothing would ask about nothing, and nobody would notice. */
static int read_approve(const struct settings *s, struct policy *p, struct error *err)
{
    int r = read_list(s, SETTING_APPROVE, KEY_APPROVE, &p->approve, err);

    for (size_t i = 0; r >= 0 && i < p->approve.n; i++)
        if (tools_is_strange_group(p->approve.words[i]))
            return error_set(err, ERR_INVALID, "'%s': '%s' is a group that has no tools",
                             KEY_APPROVE, p->approve.words[i]);
    return r;
}

/* ---- words ---- */

/* The index of the value among `words`, or `unset`; an unknown one is an error. */
static int read_word(const struct settings *s, enum setting_id id, const char *key,
                     const char *const *words, int unset, int *ret, struct error *err)
{
    const char *text = json_string_value(s->value[id]);

    if (!s->value[id]) {
        *ret = unset;
        return 0;
    }
    for (int i = 0; text && words[i]; i++)
        if (strcmp(text, words[i]) == 0) {
            *ret = i;
            return 0;
        }
    return error_set(err, ERR_INVALID, "'%s' must be one of %s, %s, %s", key, words[0], words[1],
                     words[2]);
}

static int read_words(const struct settings *s, struct policy *p, struct error *err)
{
    static const char *const modes[] = {
        [MODE_OFF] = "off", [MODE_NON_MAIN] = "non-main", [MODE_ALL] = "all", NULL};
    static const char *const scopes[] = {
        [SCOPE_SESSION] = "session", [SCOPE_AGENT] = "agent", [SCOPE_SHARED] = "shared", NULL};
    static const char *const accesses[] = {
        [ACCESS_NONE] = "none", [ACCESS_RO] = "ro", [ACCESS_RW] = "rw", NULL};
    int mode, scope, access, r;

    r = read_word(s, SETTING_MODE, KEY_MODE, modes, MODE_ALL, &mode, err);
    if (r < 0)
        return r;
    r = read_word(s, SETTING_SCOPE, KEY_SANDBOX("scope"), scopes, SCOPE_SESSION, &scope, err);
    if (r < 0)
        return r;
    r = read_word(s, SETTING_WORKSPACE_ACCESS, KEY_SANDBOX("workspaceAccess"), accesses,
                  ACCESS_NONE, &access, err);
    if (r < 0)
        return r;
    /* The older form counts where nobody wrote the newer one. */
    if (s->value[SETTING_PER_SESSION] && s->from[SETTING_SCOPE].kind <= ORIGIN_PRESET)
        scope = settings_bool(s, SETTING_PER_SESSION) ? SCOPE_SESSION : SCOPE_SHARED;
    p->mode = (enum policy_mode)mode;
    p->scope = (enum scope)scope;
    p->access = (enum policy_access)access;
    return 0;
}

static int read_network(const struct settings *s, enum setting_id id, const char *key,
                        enum policy_network *ret, struct error *err)
{
    static const struct {
        const char *word;
        enum policy_network network;
    } words[] = {{"none", NETWORK_NONE},
                 {"bridge", NETWORK_BRIDGE},
                 {"allowlist", NETWORK_ALLOWLIST},
                 {"host", NETWORK_HOST}};
    const char *text = json_string_value(s->value[id]);
    size_t len;

    *ret = NETWORK_NONE;
    if (!s->value[id])
        return 0;
    if (!text || (text = policy_trim(text, &len), len == 0))
        return error_set(err, ERR_INVALID, "'%s' must be a string that is not empty", key);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (len == strlen(words[i].word) && policy_begins(text, len, words[i].word)) {
            *ret = words[i].network;
            return 0;
        }
    *ret = NETWORK_OTHER;
    return 0;
}

static int read_routing(const struct settings *s, struct policy *p, struct error *err)
{
    int r = read_network(s, SETTING_NETWORK, KEY_NETWORK, &p->network, err);

    if (r < 0)
        return r;
    r = read_network(s, SETTING_NETWORK_NETWORK, KEY_SECOND, &p->second, err);
    if (r < 0)
        return r;
    r = read_list(s, SETTING_NETWORK_ALLOW, KEY_NETWORK_ALLOW, &p->network_allow, err);
    if (r < 0)
        return r;
    return read_list(s, SETTING_NETWORK_EXEC_ALLOW, KEY_NETWORK_EXEC, &p->network_exec, err);
}

/* ---- all of it ---- */

int policy_make(const struct settings *s, bool sessions_are_global, struct policy *ret,
                struct error *err)
{
    cleanup_(policy_done) struct policy p = {.sessions_are_global = sessions_are_global};
    int r;

    if (s->value[SETTING_ENABLED] && !json_is_boolean(s->value[SETTING_ENABLED]))
        return error_set(err, ERR_INVALID, "'%s' must be true or false", KEY_ENABLED);
    p.enabled = !json_is_false(s->value[SETTING_ENABLED]);
    r = read_words(s, &p, err);
    if (r < 0)
        return r;
    r = read_routing(s, &p, err);
    if (r < 0)
        return r;
    r = read_tools(s, &p, err);
    if (r < 0)
        return r;
    r = read_approve(s, &p, err);
    if (r < 0)
        return r;
    *ret = p;
    p = (struct policy){0};
    return 0;
}

void policy_done(struct policy *p)
{
    list_done(&p->allow);
    list_done(&p->also);
    list_done(&p->deny);
    list_done(&p->network_allow);
    list_done(&p->network_exec);
    list_done(&p->approve);
}
