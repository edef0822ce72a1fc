/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/approvals.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "guard/guard.h"
#include "guard/internal.h"

/* ---- the record ---- */

static int record(const struct approvals *a, const char *event, const struct store_approval *x,
                  const char *by, struct error *err)
{
    autobuf f;

    buf_init(&f, LIMIT_AUDIT_LINE);
    buf_json_str(&f, "approval", x->id);
    buf_json_str(&f, "token", x->token);
    buf_json_str(&f, "agent", x->agent);
    buf_json_str(&f, "session", x->session);
    buf_json_str(&f, "tool", x->tool);
    record_target(&f, x->target);
    buf_json_str(&f, "rule", x->rule);
    buf_json_str(&f, "request", x->request);
    if (by)
        buf_json_str(&f, "by", by);
    return audit_append(a->audit, event, x->tool, &f, err);
}

/* Nothing was changed: others may write again. Returns r. */
static int let_go(const struct approvals *a, int r)
{
    struct error ignored;

    (void)store_flush(a->store, &ignored);
    return r;
}

/* ---- a call ---- */

static int make_id(char ret[APPROVAL_ID], struct error *err)
{
    unsigned char raw[(APPROVAL_ID - 1) / 2];

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return error_sys(err, -errno, "get random bytes for an approval");
    for (size_t i = 0; i < sizeof(raw); i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", raw[i]);
    return 0;
}

/* In ASCII: nothing in it can move a cursor or pass for other words. Who reads it must see when it
 * is not the whole. */
static void show_arguments(const json_t *v, char ret[APPROVAL_ARGUMENTS])
{
    autofree char *said =
        v ? json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII) : NULL;
    const char *text = said ? said : "?";
    size_t n = strlen(text);

    if (n < APPROVAL_ARGUMENTS)
        (void)snprintf(ret, APPROVAL_ARGUMENTS, "%s", text);
    else
        (void)snprintf(ret, APPROVAL_ARGUMENTS, "%.*s ... (%zu bytes in all)",
                       (int)APPROVAL_ARGUMENTS - 64, text, n);
}

static void fill(struct store_approval *x, const struct guard_wish *w, const struct pass *p)
{
    (void)snprintf(x->token, sizeof(x->token), "%s", p->token);
    (void)snprintf(x->request, sizeof(x->request), "%s", w->request);
    (void)snprintf(x->session, sizeof(x->session), "%s", p->session);
    (void)snprintf(x->agent, sizeof(x->agent), "%s", p->agent);
    (void)snprintf(x->tool, sizeof(x->tool), "%s", p->verdict.tool);
    (void)snprintf(x->target, sizeof(x->target), "%s", w->target ? w->target : "");
    (void)snprintf(x->rule, sizeof(x->rule), "%s", p->verdict.approve);
    show_arguments(w->arguments, x->arguments);
    x->asked_ms = w->now_ms;
}

/* A question that is new. */
static int put(const struct approvals *a, const struct guard_wish *w, const struct pass *p,
               struct store_approval *x, struct error *err)
{
    int r = store_approval_room(a->store, p->token, err);

    fill(x, w, p);
    if (r >= 0)
        r = make_id(x->id, err);
    if (r >= 0)
        r = record(a, "approval.ask", x, NULL, err);
    return r < 0 ? let_go(a, r) : store_approval_put(a->store, x, err);
}

static void say_pending(const struct pass *p, const struct store_approval *x, struct denial *d)
{
    (void)snprintf(d->approval, sizeof(d->approval), "%s", x->id);
    (void)snprintf(d->reason, sizeof(d->reason),
                   "a person must allow this first (%s): clawden approve %s; then make the same "
                   "call again",
                   p->verdict.approve_why, x->id);
}

static int use(const struct approvals *a, const struct store_approval *x, struct pass *p,
               struct error *err)
{
    int r = record(a, "approval.use", x, x->by, err);

    if (r < 0)
        return let_go(a, r);
    r = store_approval_remove(a->store, x->id, err);
    if (r < 0)
        return r;
    (void)snprintf(p->approval, sizeof(p->approval), "%s", x->id);
    return 1;
}

int approvals_admit(const struct approvals *a, const struct guard_wish *w, struct pass *p,
                    struct denial *d, struct error *err)
{
    struct store_approval x = {0};
    int r;

    (void)snprintf(d->rule, sizeof(d->rule), "%s", p->verdict.approve);
    (void)snprintf(d->key, sizeof(d->key), "%s", POLICY_APPROVE_KEY);
    d->final = !a->store || !w->request;
    if (d->final) {
        (void)snprintf(d->reason, sizeof(d->reason), "nobody can be asked here");
        return 0;
    }
    r = store_approval_hold(a->store, p->token, w->request, p->session, w->now_ms, &x, err);
    if (r < 0)
        return r;
    if (r > 0 && x.state == APPROVAL_ALLOWED)
        return use(a, &x, p, err);
    if (r > 0 && x.state == APPROVAL_DENIED) {
        d->final = true;
        (void)snprintf(d->reason, sizeof(d->reason), "a person has refused it (%s)", x.by);
        return let_go(a, 0);
    }
    r = r > 0 ? let_go(a, 0) : put(a, w, p, &x, err);
    if (r == -ERR_TOO_LARGE) {
        (void)snprintf(d->reason, sizeof(d->reason), "a person must allow this first, and %.200s",
                       err->msg);
        return 0;
    }
    if (r >= 0)
        say_pending(p, &x, d);
    return r < 0 ? r : 0;
}

/* ---- an answer ---- */

bool approvals_may_see(const struct identity *who, const char *token, const char *session)
{
    return who->bound->rights & RIGHT_ADMIN || strcmp(who->token, token) == 0 ||
           guard_may(who, RIGHT_APPROVE, session);
}

/* Not his own, unless that is what he was given the right for. */
bool approvals_may_answer(const struct identity *who, const char *token, const char *session)
{
    if (guard_may(who, RIGHT_APPROVE, session))
        return true;
    return who->bound->rights & RIGHT_ADMIN && strcmp(who->token, token) != 0;
}

static int check_answer(const struct identity *who, const struct store_approval *x, bool allow,
                        struct error *err)
{
    if (who && !approvals_may_see(who, x->token, x->session))
        return error_set(err, ERR_NOT_FOUND, "no call waits under '%s'", x->id);
    if (who && !approvals_may_answer(who, x->token, x->session))
        return error_set(err, ERR_DENIED,
                         "the token has not the right 'approve': another one, or 'clawden approve "
                         "%s', can answer",
                         x->id);
    if (x->state == APPROVAL_DENIED || (allow && x->state == APPROVAL_ALLOWED))
        return error_set(err, ERR_EXISTS, "it was %s already, by %s", approval_state_name(x->state),
                         x->by);
    return 0;
}

int approvals_answer(const struct approvals *a, const struct identity *who, const char *id,
                     bool allow, int64_t now_ms, struct store_approval *ret, struct error *err)
{
    char by[sizeof(ret->by)];
    int r = store_approval_hold_id(a->store, id, now_ms, ret, err);

    if (r < 0)
        return r;
    if (who)
        (void)snprintf(by, sizeof(by), "%s", who->token);
    else
        (void)snprintf(by, sizeof(by), "uid %u", (unsigned)getuid());
    r = check_answer(who, ret, allow, err);
    if (r >= 0)
        r = record(a, allow ? "approval.allow" : "approval.deny", ret, by, err);
    if (r < 0)
        return let_go(a, r);
    ret->state = allow ? APPROVAL_ALLOWED : APPROVAL_DENIED;
    (void)snprintf(ret->by, sizeof(ret->by), "%s", by);
    return store_approval_answer(a->store, id, ret->state, by, now_ms, err);
}
