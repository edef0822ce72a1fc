/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/names.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/sha256.h"
#include "base/utf8.h"
#include "policy/internal.h"

#define SHARED   "shared"
#define HASHED   "workspace-" /* a slug that is nothing but a hash */
#define BOX_MAX  (NAMES_BOX - 1)
#define SLUG_CUT 32 /* characters of the key that a slug shows */

struct span {
    const char *at;
    size_t len;
};

/* ---- keys ---- */

static struct span trim(const char *s)
{
    struct span text;

    text.at = policy_trim(s, &text.len);
    return text;
}

static int read_key(const char *s, size_t max, struct span *ret)
{
    size_t n;
    uint32_t c;

    if (!s)
        return -EINVAL;
    for (size_t left = strlen(s), i = 0; i < left; i += n) {
        n = utf8_take(s + i, left - i, &c);
        if (n == 0 || utf8_is_control(c))
            return -EINVAL;
    }
    *ret = trim(s);
    return ret->len == 0 || ret->len > max ? -EINVAL : 0;
}

static bool is_word_char(uint32_t c, const char *more)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (c && c < 0x80 && strchr(more, (int)c));
}

/* toLowerCase() as far as the result is ASCII: only two others become ASCII letters, and of
 * U+0130 a combining dot is left, which *ret_more tells. */
static uint32_t lower(uint32_t c, bool *ret_more)
{
    *ret_more = c == 0x130;
    if (c >= 'A' && c <= 'Z')
        return c - 'A' + 'a';
    return c == 0x212a ? 'k' : c == 0x130 ? 'i' : c;
}

/* Lower case; a run of anything but letters, digits and `more` becomes one '-'; no '-' at the ends;
 * and then, in this order, cut to `max` characters. `key` is valid and shorter than NAMES_KEY. */
static size_t fold(struct span key, const char *more, size_t max, char *ret)
{
    char all[NAMES_KEY];
    size_t n = 0, start = 0;
    bool in_run = false, rest;
    uint32_t c;

    for (size_t i = 0; i < key.len;) {
        i += utf8_take(key.at + i, key.len - i, &c);
        c = lower(c, &rest);
        if (is_word_char(c, more)) {
            all[n++] = (char)c;
            in_run = false;
        }
        if ((rest || !is_word_char(c, more)) && !in_run) {
            all[n++] = '-';
            in_run = true;
        }
    }
    while (n && all[n - 1] == '-')
        n--;
    while (start < n && all[start] == '-')
        start++;
    n = n - start < max ? n - start : max;
    memcpy(ret, all + start, n);
    ret[n] = 0;
    return n;
}

/* ---- agents ---- */

/* The client's own spelling of an id. One that is valid already keeps the dashes at its end. */
static int normalize_agent(struct span id, char ret[static NAMES_AGENT])
{
    bool valid = id.len < NAMES_AGENT, more;

    for (size_t i = 0; valid && i < id.len; i++) {
        ret[i] = (char)lower((unsigned char)id.at[i], &more);
        valid = is_word_char((unsigned char)ret[i], i ? "_-" : "");
    }
    if (valid && id.len) {
        ret[id.len] = 0;
        return 0;
    }
    return fold(id, "_-", NAMES_AGENT - 1, ret) ? 0 : -EINVAL;
}

static bool is_agent_key(struct span key)
{
    return key.len >= 6 && strncasecmp(key.at, "agent:", 6) == 0;
}

/* The id within `agent:<id>:<rest>`. */
static int agent_part(struct span key, char ret[static NAMES_AGENT])
{
    const char *id = key.at + 6, *end = key.at + key.len, *colon;
    char text[NAMES_KEY];

    colon = memchr(id, ':', (size_t)(end - id));
    if (!colon || colon + 1 == end || colon[1] == ':')
        return -EINVAL;
    memcpy(text, id, (size_t)(colon - id));
    text[colon - id] = 0;
    return normalize_agent(trim(text), ret);
}

int names_agent_of(const char *session, char *ret, size_t size)
{
    char id[NAMES_AGENT] = "";
    struct span key;
    int r = read_key(session, NAMES_SESSION, &key);

    if (r < 0)
        return r;
    if (is_agent_key(key)) {
        r = agent_part(key, id);
        if (r < 0)
            return r;
    }
    if (strlen(id) >= size)
        return -ENAMETOOLONG;
    memcpy(ret, id, strlen(id) + 1);
    return 0;
}

static int read_agent(const char *agent, const char *session, char ret[static NAMES_AGENT])
{
    struct span id;
    int r;

    if (agent && *agent) {
        r = read_key(agent, NAMES_SESSION, &id);
        return r < 0 ? r : normalize_agent(id, ret);
    }
    r = names_agent_of(session, ret, NAMES_AGENT);
    return r < 0 ? r : ret[0] ? 0 : -EINVAL;
}

int names_agent(const char *id, char ret[static NAMES_AGENT])
{
    return id && *id ? read_agent(id, NULL, ret) : -EINVAL;
}

bool names_is_main(const char *agent, const char *session, bool global)
{
    char id[NAMES_AGENT], key[NAMES_AGENT + 16];

    if (!session)
        return false;
    if (global)
        return strcmp(session, "global") == 0;
    if (read_agent(agent, NULL, id) < 0)
        return false;
    (void)snprintf(key, sizeof(key), "agent:%s:main", id);
    return strcmp(session, key) == 0;
}

/* ---- scope keys ---- */

/* Node's path.resolve() of an absolute path: no '//', '.', '..', nor '/' at the end. */
static int resolve(struct span path, char ret[static PATH_MAX])
{
    const char *at = path.at, *end = path.at + path.len;
    size_t n = 0;

    if (path.len == 0 || path.len >= PATH_MAX || *at != '/')
        return -EINVAL;
    while (at < end) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        size_t len = (size_t)((slash ? slash : end) - at);

        if (len == 2 && memcmp(at, "..", 2) == 0) {
            while (n && ret[--n] != '/')
                continue;
        } else if (len && !(len == 1 && *at == '.')) {
            ret[n++] = '/';
            memcpy(ret + n, at, len);
            n += len;
        }
        at += len + 1;
    }
    if (n == 0)
        ret[n++] = '/';
    ret[n] = 0;
    return 0;
}

static int workspace_suffix(const char *workspace, char ret[64])
{
    char path[PATH_MAX], hex[SHA256_HEX];
    int r = workspace ? resolve(trim(workspace), path) : -EINVAL;

    if (r < 0)
        return r;
    sha256_hex(path, strlen(path), hex);
    (void)snprintf(ret, 64, ":workspace:%.32s", hex);
    return 0;
}

/* A session's key is its own scope's, so it must not read as the key of another kind of scope. */
static int session_key(enum names_version v, const char *session, struct span *ret)
{
    char id[NAMES_AGENT];
    int r = read_key(session, NAMES_SESSION, ret);

    if (r < 0)
        return r;
    if (is_agent_key(*ret))
        return agent_part(*ret, id);
    if (v == NAMES_PLAIN && ret->len == strlen(SHARED) && memcmp(ret->at, SHARED, ret->len) == 0)
        return -EINVAL;
    return 0;
}

int names_scope_key(enum names_version v, enum scope scope, const char *agent, const char *session,
                    const char *workspace, char ret[static NAMES_KEY])
{
    char id[NAMES_AGENT], suffix[64] = "";
    struct span key = {0};
    int r;

    if (scope == SCOPE_SHARED) {
        (void)snprintf(ret, NAMES_KEY, SHARED);
        return 0;
    }
    r = scope == SCOPE_SESSION ? session_key(v, session, &key) : read_agent(agent, session, id);
    if (r < 0)
        return r;
    if (v == NAMES_WORKSPACE) {
        r = workspace_suffix(workspace, suffix);
        if (r < 0)
            return r;
    }
    if (scope == SCOPE_SESSION)
        (void)snprintf(ret, NAMES_KEY, "%.*s%s", (int)key.len, key.at, suffix);
    else
        (void)snprintf(ret, NAMES_KEY, "agent:%s%s", id, suffix);
    return 0;
}

/* ---- slugs and boxes ---- */

static bool is_hex32(const char *s)
{
    return strspn(s, "0123456789abcdefABCDEF") == 32 && !s[32];
}

/* ":workspace:" and 32 digits at the end; the client does not mind the case. */
static bool has_workspace(struct span key)
{
    char end[44];

    if (key.len < sizeof(end) - 1)
        return false;
    memcpy(end, key.at + key.len - (sizeof(end) - 1), sizeof(end) - 1);
    end[sizeof(end) - 1] = 0;
    return strncasecmp(end, ":workspace:", 11) == 0 && is_hex32(end + 11);
}

int names_slug(enum names_version v, const char *scope_key, char ret[static NAMES_SLUG])
{
    char base[SLUG_CUT + 1], hex[SHA256_HEX];
    struct span key;
    int r = read_key(scope_key, NAMES_KEY - 1, &key);

    if (r < 0)
        return r;
    if (strcmp(scope_key, SHARED) == 0) {
        (void)snprintf(ret, NAMES_SLUG, SHARED);
        return 0;
    }
    sha256_hex(key.at, key.len, hex);
    if (v == NAMES_WORKSPACE && has_workspace(key))
        (void)snprintf(ret, NAMES_SLUG, HASHED "%.32s", hex);
    else
        (void)snprintf(ret, NAMES_SLUG, "%s-%.8s",
                       fold(key, "._-", SLUG_CUT, base) ? base : "session", hex);
    return 0;
}

/* At most `max` characters. What is cut is the prefix if the slug is a hash, else the end; a hash
 * of the whole stands for it. */
static void cut_name(const char *prefix, const char *slug, size_t max, char ret[static NAMES_BOX])
{
    char full[NAMES_PREFIX + NAMES_SLUG], hex[SHA256_HEX];
    int n = snprintf(full, sizeof(full), "%s%s", prefix, slug), keep;

    if ((size_t)n <= max) {
        memcpy(ret, full, (size_t)n + 1);
        return;
    }
    sha256_hex(full, (size_t)n, hex);
    keep = (int)max - 1 - 12;
    if (strncmp(slug, HASHED, strlen(HASHED)) == 0 && is_hex32(slug + strlen(HASHED)))
        (void)snprintf(ret, NAMES_BOX, "%.*s-%s-%.12s", keep - 1 - (int)strlen(slug), prefix, slug,
                       hex);
    else
        (void)snprintf(ret, NAMES_BOX, "%.*s-%.12s", keep, full, hex);
}

static bool is_box_name(const char *s)
{
    static const char plain[] = "_.-ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    return *s && strchr(plain + 3, *s) && s[strspn(s, plain)] == 0;
}

int names_box(enum names_version v, const char *prefix, const char *scope_key, const char *suffix,
              char ret[static NAMES_BOX])
{
    char slug[NAMES_SLUG], full[NAMES_PREFIX + NAMES_SLUG];
    int r;

    if (strlen(prefix) > NAMES_PREFIX)
        return -EINVAL;
    r = names_slug(v, scope_key, slug);
    if (r < 0)
        return r;
    (void)snprintf(full, sizeof(full), "%s%s", prefix, slug);
    if (!is_box_name(full))
        return -EINVAL;
    if (suffix[0]) {
        cut_name(prefix, slug, BOX_MAX - strlen(suffix), ret);
        (void)snprintf(ret + strlen(ret), NAMES_BOX - strlen(ret), "%s", suffix);
    } else if (v == NAMES_WORKSPACE) {
        cut_name(prefix, slug, BOX_MAX, ret);
    } else {
        (void)snprintf(ret, NAMES_BOX, "%.*s", BOX_MAX, full);
    }
    return 0;
}
