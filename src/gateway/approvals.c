/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait for a person's yes: who may see them, who answers, and how a client's own user is
 * asked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gateway/back_internal.h"

#define LIMIT_SHOWN 1000u /* bytes of a command in a question: a dialog has room for so much */

void op_approvals(struct ask *a, const struct identity *who)
{
    json_t *list = NULL, *kept = json_array(), *one;
    struct error err;
    size_t i;

    if (store_approvals(a->back->store, now_ms(), &list, &err) < 0) {
        json_decref(kept);
        ask_fail(a, &err);
        return;
    }
    json_array_foreach(list, i, one)
    {
        const char *token = text_of(one, "token"), *session = text_of(one, "session");

        if (token && session && approvals_may_see(who, token, session))
            (void)json_array_append(kept, one);
    }
    json_decref(list);
    ask_answer(a, 200, json_pack("{s:o}", "approvals", kept));
}

void op_approve(struct ask *a, const struct identity *who)
{
    const char *id = text_of(a->params, "approval");
    json_t *allow = json_object_get(a->params, "allow");
    struct store_approval x;
    struct error err;

    if (!id || !json_is_boolean(allow))
        ask_refuse(a, 400, "invalid", "approval and allow are needed: which call, true or false");
    else if (guard_answer(a->back->guard, who, id, json_is_true(allow), now_ms(), &x, &err) < 0)
        ask_fail(a, &err);
    else
        ask_answer(a, 200,
                   json_pack("{s:s,s:s,s:s,s:s}", "approval", x.id, "state",
                             approval_state_name(x.state), "tool", x.tool, "session", x.session));
}

/* ---- by way of the call itself (MCP) ---- */

void approval_take(struct ask *a, const struct identity *who)
{
    json_t *answer = json_object_get(a->params, "answer");
    const char *id = text_of(answer, "approval");
    struct store_approval x;
    struct error err;

    /* If it does not count (too late, or not his to give) the call is asked about again. */
    if (id && guard_answer(a->back->guard, who, id, json_is_true(json_object_get(answer, "allow")),
                           now_ms(), &x, &err) < 0)
        log_info("approval %.16s: %s", id, err.msg);
}

/* What it is about, in quotes and ASCII: nothing in it can pass for our own words. */
static char *shown(const struct ask *a, const struct denial *d)
{
    autofree char *quoted = a->argv ? words_quote(a->argv) : NULL;
    const char *line = text_of(a->arguments, "command"), *text = line     ? line
                                                                 : quoted ? quoted
                                                                          : d->target;
    json_t *v = tool_text(text, strlen(text));
    char *said = v ? json_dumps(v, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL, *cut = NULL;

    json_decref(v);
    if (!said || strlen(said) <= LIMIT_SHOWN)
        return said;
    if (asprintf(&cut, "%.*s ... (%zu bytes in all)", (int)LIMIT_SHOWN, said, strlen(text)) < 0)
        cut = NULL;
    free(said);
    return cut;
}

json_t *approval_question(const struct ask *a, const struct identity *who, const struct denial *d)
{
    autofree char *about = NULL;

    if (!d->approval[0] || !json_is_true(json_object_get(a->params, "asks")) ||
        !approvals_may_answer(who, who->token, d->session))
        return NULL;
    about = shown(a, d);
    return about ? json_sprintf("Allow %s %s in session %s? (approve: %s)", d->op, about,
                                d->session, d->rule)
                 : NULL;
}
