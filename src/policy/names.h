/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How scopes and boxes are called: the rules of both client versions (OPENCLAW 2.2, 2.3), because
 * a box made by one must be found by the other. Pure.
 *
 * Keys are UTF-8, cut free of white space at both ends as the client does. -EINVAL: a key that is
 * empty, too long, not UTF-8, or holds control characters. Where the client would rather fall back
 * to the agent `main` (no agent in the key, an id of which nothing is left, `agent:x` without a
 * session) the result is -EINVAL too: one agent's calls must not end in another's box.
 */
#include <stdbool.h>
#include <stddef.h>

enum names_version {
    NAMES_PLAIN,     /* until 2026.6: the key itself */
    NAMES_WORKSPACE, /* from 2026.9: with a suffix for the agent's workspace */
};
enum scope { SCOPE_SESSION, SCOPE_AGENT, SCOPE_SHARED };

#define NAMES_KEY     512 /* a scope key with its NUL */
#define NAMES_SESSION 400 /* session keys that are longer are refused */
#define NAMES_AGENT   65  /* an agent's id as the client normalises it, and a NUL */
#define NAMES_SLUG    64
#define NAMES_BOX     64  /* 63 characters, docker's own limit for a host name, and a NUL */
#define NAMES_PREFIX  128 /* characters of a box's prefix */

/* With a network; beside the one that asks for it (scope.h); both. */
#define NAMES_NETWORK         "-net"
#define NAMES_SIBLING         "-sib"
#define NAMES_SIBLING_NETWORK "-sib-net"

/* The key under which calls share a box. `workspace` (absolute) is needed by NAMES_WORKSPACE
 * only. Without `agent` (NULL or "") the session's counts. A session that is called `shared` is
 * refused by NAMES_PLAIN: its key would be that of the shared scope. */
int names_scope_key(enum names_version v, enum scope scope, const char *agent, const char *session,
                    const char *workspace, char ret[static NAMES_KEY]);
/* The scope's part of a box's name, and its folder's; `shared` of the shared scope. */
int names_slug(enum names_version v, const char *scope_key, char ret[static NAMES_SLUG]);
/*
 * `suffix`: "" or one of the suffixes above: another box of the same scope.
 *
 * A name that is too long is cut as the client does. NAMES_PLAIN cuts its end, so that a prefix of
 * more than 22 characters costs digits of the slug's hash, and one of 63 the whole slug: two scopes
 * may then have one name. NAMES_WORKSPACE keeps a hash of the whole name. So does a name with a
 * suffix in both versions: it is first cut, by the rule of NAMES_WORKSPACE, to what leaves room for
 * the suffix; two scopes never share it by cutting.
 *
 * -EINVAL also for a prefix that is longer than NAMES_PREFIX or would not make a name of
 * [A-Za-z0-9][A-Za-z0-9_.-]*.
 */
int names_box(enum names_version v, const char *prefix, const char *scope_key, const char *suffix,
              char ret[static NAMES_BOX]);
/* The main session of an agent: `agent:<id>:main`, or `global` where sessions are global. Only in
 * this spelling: what is not the main session is sandboxed. */
bool names_is_main(const char *agent, const char *session, bool global);
/* The agent of a session key `agent:<id>:...`, normalised; empty when it names none. NAMES_AGENT
 * bytes are enough. -ENAMETOOLONG if they are fewer and it does not fit. */
int names_agent_of(const char *session, char *ret, size_t size);
/* The client's spelling of an agent's id: settings and boxes must be those of one agent. */
int names_agent(const char *id, char ret[static NAMES_AGENT]);
