/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Calls that wait for a person's yes. guard_admit() puts the question and is the only one who uses
 * the answer; whoever has the right says yes or no: over HTTP, by MCP, at the command line.
 *
 * AP1: a yes is good for the same request of the same token in the same session, once, for
 *      APPROVAL_MS. A no holds as long; nobody turns it into a yes.
 * AP2: each step (approval.ask, .allow, .deny, .use) is in the audit before it has an effect.
 */
#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct audit;
struct denial;
struct error;
struct guard_wish;
struct identity;
struct pass;

/* Both borrowed. */
struct approvals {
    struct store *store; /* NULL: nobody can be asked */
    struct audit *audit;
};

/* 1: somebody said yes, and this was its use. 0: not yet, or no; *d says which. */
int approvals_admit(const struct approvals *a, const struct guard_wish *w, struct pass *p,
                    struct denial *d, struct error *err);

/* May he know of a call of this token in this session that waits; may he answer? */
bool approvals_may_see(const struct identity *who, const char *token, const char *session);
bool approvals_may_answer(const struct identity *who, const char *token, const char *session);

/* `who` NULL: the user himself. A yes that is not used yet can be taken back. -ERR_NOT_FOUND: none
 * that he may know of. -ERR_DENIED: not by him. -ERR_EXISTS: it was answered before. */
int approvals_answer(const struct approvals *a, const struct identity *who, const char *id,
                     bool allow, int64_t now_ms, struct store_approval *ret, struct error *err);
