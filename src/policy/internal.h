/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of policy/ share; nobody outside includes it. */
#include "policy/policy.h"

/* The keys that change a verdict, as they stand in openclaw.json. */
#define KEY_SANDBOX(name)  "agents.defaults.sandbox." name
#define KEY_TOOLS(name)    "tools.sandbox.tools." name
#define KEY_ENABLED        KEY_SANDBOX("enabled")
#define KEY_MODE           KEY_SANDBOX("mode")
#define KEY_NETWORK        KEY_SANDBOX("docker.network")
#define KEY_SECOND         KEY_SANDBOX("networkDocker.network")
#define KEY_NETWORK_ALLOW  KEY_SANDBOX("networkAllow")
#define KEY_NETWORK_EXEC   KEY_SANDBOX("networkExecAllow")
#define KEY_APPROVE        POLICY_APPROVE_KEY
#define RULE_NETWORK_ALLOW "networkAllow"
#define RULE_NETWORK_EXEC  "networkExecAllow"
#define POLICY_LIST_WORDS  1024u /* entries of one list: a page of names, not a data set */
#define POLICY_WORD_BYTES  256u  /* of one entry: four times what a tool's name may have */

/* The text without the white space around it, as the client's trim() sees it. */
const char *policy_trim(const char *s, size_t *ret_len);
/* Not UTF-8, or a control character in it. */
bool policy_is_odd(const char *s, size_t len);
char policy_lower(char c);
/* Does the text begin with the word (in lower case), whatever its own case? */
bool policy_begins(const char *text, size_t len, const char *word);
/* At most `max` bytes of it, whole characters: for "%.*s". */
int policy_clip(const char *s, size_t max);

/* Does this entry of a list mean this canonical name? */
bool tools_means(const char *entry, const char *name);
/* Is it a group that has no tool here? */
bool tools_is_strange_group(const char *entry);
/* The first entry that means this canonical name, or NULL. Groups, globs and aliases count. */
const char *tools_find(const struct policy_list *list, const char *name);
/* The first pattern that means this program, or NULL. */
const char *programs_find(const struct policy_list *list, const char *program);
/* Is v->tool allowed in a sandboxed session? If not, the verdict says why. */
bool tools_allow(const struct policy *p, struct verdict *v);
/* Says in the verdict which entry of the list wants a person's yes, if one does. */
void approve_mark(const struct policy_list *list, const char *command, struct verdict *v);
/* A verdict that says no; never `direct`, should somebody look at the route alone. */
void verdict_deny(struct verdict *v, const char *change, const char *rule, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
