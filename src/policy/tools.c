/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tools a sandboxed session may use (OPENCLAW 6.2, 6.3).
 *
 * Entries of a list and names of calls meet in their canonical form, so that `bash` in a list means
 * what `exec` in a call does. Deny wins. An empty allow list allows everything: that is the
 * client's rule, and the one place where taking an entry away can allow more.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "policy/glob.h"
#include "policy/internal.h"

#define GROUP "group:"

/* ---- text ---- */

/* Not tolower(): a locale must not change what a policy means. */
char policy_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool policy_begins(const char *text, size_t len, const char *word)
{
    size_t i = 0;

    while (i < len && word[i] && policy_lower(text[i]) == word[i])
        i++;
    return !word[i];
}

const char *policy_trim(const char *s, size_t *ret_len)
{
    const char *start = NULL, *end = s;
    size_t n;
    uint32_t c;

    for (size_t left = strlen(s); left; s += n, left -= n) {
        n = utf8_take(s, left, &c);
        if (n && utf8_is_space(c))
            continue;
        if (n == 0)
            n = 1;
        if (!start)
            start = s;
        end = s + n;
    }
    *ret_len = start ? (size_t)(end - start) : 0;
    return start ? start : s;
}

bool policy_is_odd(const char *s, size_t len)
{
    size_t n;
    uint32_t c;

    for (size_t i = 0; i < len; i += n) {
        n = utf8_take(s + i, len - i, &c);
        if (n == 0 || utf8_is_control(c))
            return true;
    }
    return false;
}

int policy_clip(const char *s, size_t max)
{
    size_t n = strnlen(s, max);

    if (n == max)
        while (n && ((unsigned char)s[n] & 0xc0) == 0x80)
            n--;
    return (int)n;
}

/* ---- names ---- */

static const char *resolve_alias(const char *name)
{
    static const struct {
        const char *alias, *name;
    } aliases[] = {
        {"execute", "exec"}, {"bash", "exec"}, {"shell", "exec"}, {"apply-patch", "apply_patch"}};

    for (size_t i = 0; i < sizeof(aliases) / sizeof(*aliases); i++)
        if (strcmp(name, aliases[i].alias) == 0)
            return aliases[i].name;
    return name;
}

/* Empty if it does not fit: a name that was cut might be that of another tool. */
void policy_tool_name(const char *tool, char *ret, size_t size)
{
    size_t n;
    const char *text = policy_trim(tool, &n), *name;

    if (size == 0)
        return;
    ret[0] = 0;
    if (n >= size)
        return;
    for (size_t i = 0; i < n; i++)
        ret[i] = policy_lower(text[i]);
    ret[n] = 0;
    name = resolve_alias(ret);
    if (name == ret)
        return;
    n = strlen(name); /* no alias is shorter than its name */
    memcpy(ret, name, n + 1);
}

/* ---- groups ---- */

/* The names of both client versions. `group:plugins` depends on what is installed there, so that
 * nothing here belongs to it. */
#define COMMON_GROUPS 2 /* the first two */
static const struct {
    const char *group;
    const char *names[10];
} groups[] = {
    {"fs", {"ls", "read", "write", "edit", "apply_patch"}},
    {"runtime", {"exec", "process", "code_execution"}},
    {"web", {"web_search", "web_fetch", "x_search"}},
    {"memory", {"memory_search", "memory_get"}},
    {"sessions",
     {"sessions_list", "sessions_history", "sessions_search", "sessions_send", "sessions_spawn",
      "sessions_yield", "subagents", "session_status"}},
    {"ui", {"browser", "canvas"}},
    {"messaging", {"message"}},
    {"automation", {"heartbeat_respond", "cron", "automations", "gateway"}},
    {"nodes", {"nodes", "computer", "mobile_ui"}},
    {"agents", {"agents_list"}},
    {"media",
     {"image", "view_image", "image_generate", "music_generate", "video_generate", "tts", "pdf"}},
};

static bool is_in_group(const char *group, const char *name)
{
    bool openclaw = strcmp(group, "openclaw") == 0;

    for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
        /* `group:openclaw` is what the client adds to files and commands: not those themselves. */
        bool in = openclaw ? i >= COMMON_GROUPS : strcmp(group, groups[i].group) == 0;

        if (!in)
            continue;
        for (const char *const *n = groups[i].names; *n; n++)
            if (strcmp(*n, name) == 0)
                return true;
    }
    return false;
}

bool tools_is_strange_group(const char *entry)
{
    const char *group = entry + strlen(GROUP);

    if (strncmp(entry, GROUP, strlen(GROUP)) != 0 || strcmp(group, "openclaw") == 0)
        return false;
    for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
        if (strcmp(group, groups[i].group) == 0)
            return false;
    return true;
}

/* ---- lists ---- */

bool tools_means(const char *entry, const char *name)
{
    return strncmp(entry, GROUP, strlen(GROUP)) == 0 ? is_in_group(entry + strlen(GROUP), name)
                                                     : glob_match(resolve_alias(entry), name);
}

const char *tools_find(const struct policy_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (tools_means(list->words[i], name))
            return list->words[i];
    return NULL;
}

const char *programs_find(const struct policy_list *list, const char *program)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *word = list->words[i];

        /* `g*` is about names that the box's PATH finds, not about /tmp/g/anything or g/../x. */
        if (strchr(program, '/') && !strchr(word, '/'))
            continue;
        if (glob_match(word, program))
            return word;
    }
    return NULL;
}

bool tools_allow(const struct policy *p, struct verdict *v)
{
    char rule[sizeof(v->rule)];
    const char *word = tools_find(&p->deny, v->tool);

    if (word) {
        (void)snprintf(rule, sizeof(rule), KEY_TOOLS("deny") " '%.*s'", policy_clip(word, 120),
                       word);
        verdict_deny(v, KEY_TOOLS("deny"), rule, "the tool '%s' is denied", v->tool);
        return false;
    }
    if (p->allow.n == 0 || tools_find(&p->allow, v->tool) || tools_find(&p->also, v->tool))
        return true;
    /* Looking at a picture comes with any list, in the client too. */
    if (strcmp(v->tool, "image") == 0 || strcmp(v->tool, "view_image") == 0)
        return true;
    verdict_deny(v, KEY_TOOLS("allow"), KEY_TOOLS("allow"),
                 "no entry of " KEY_TOOLS("allow") " matches '%s'", v->tool);
    return false;
}
