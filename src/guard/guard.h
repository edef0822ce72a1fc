/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * May this caller make this call? One function, guard_admit(), answers, and is the only maker of a
 * `pass`; whatever runs or touches a file wants one. Every verdict is in the audit before the
 * caller hears of it: a call that cannot be recorded is not admitted. A call that a person must
 * allow first is refused until he has (approvals.h).
 *
 * Identity comes from the token alone. What a client says of agent and session is a wish, held
 * against what the token is bound to.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "config/load.h"
#include "config/settings.h"
#include "guard/approvals.h"
#include "guard/tokens.h"
#include "policy/policy.h"

struct audit;
struct error;
struct guard;

#define CALL_ID            33u   /* 32 hex digits and NUL */
#define LIMIT_GUARD_AGENTS 256u  /* whose settings are kept ready */
#define LIMIT_DOORS        4096u /* boxes that can be spoken from at once */

/* The configuration as it was read once; whoever works under it holds on to it. */
struct guard_config {
    unsigned refs;
    uint64_t generation;
    struct config *config;
};

/* What it comes to for one agent. */
struct guard_agent {
    unsigned refs;
    struct guard_config *from;
    struct settings settings;
    struct policy policy;
    char agent[NAMES_AGENT];
};
struct guard_agent *guard_agent_hold(struct guard_agent *a);
void guard_agent_drop(struct guard_agent *a);

/* Who asks: a token, or whoever started us (GUARD_LOCAL). Good until tokens are read again. */
struct identity {
    char token[TOKEN_ID];
    const struct token *bound;
};
#define GUARD_LOCAL "local"

/* The proof that a call was admitted. Read only; made by guard_admit() alone. */
struct pass {
    char call[CALL_ID];
    char token[TOKEN_ID];
    char agent[NAMES_AGENT], session[NAMES_SESSION];
    struct verdict verdict;     /* the route, and the words to execute */
    char approval[APPROVAL_ID]; /* the person's yes that was used for it, or "" */
    struct guard_agent *settings;
    bool may_write;
    bool sibling; /* it came out of a box of this session: commands run in the one beside it */
    int64_t begun_ms;
};
void pass_free(struct pass *p);
DEFINE_AUTOPTR(pass)

/* A refusal, for the tool's result. */
struct denial {
    char call[CALL_ID];
    char session[NAMES_SESSION];
    char op[64], target[256], rule[192], reason[320], key[160];
    char approval[APPROVAL_ID]; /* by which a person can allow it, or "" */
    bool final;                 /* nobody can be asked to allow it, or he said no */
};

struct guard_options {
    struct audit *audit; /* borrowed, as the next */
    struct store *store; /* of approvals; NULL: what needs one is refused */
    /* Whoever started us: for which agent and session (patterns), with which rights. NULL: he is
     * nobody here. */
    const char *local_agent, *local_session;
    unsigned local_rights;
    bool local_is_open; /* who comes without a token is he; else only who is recalled by name */
};
int guard_new(const struct guard_options *o, struct guard **ret, struct error *err);
void guard_free(struct guard *g);
DEFINE_AUTOPTR(guard)
/* Reads the configuration again; if it is bad the one in force stays. */
int guard_reload(struct guard *g, struct error *err);
const struct guard_config *guard_config(const struct guard *g);
/* What they come to for an agent; borrowed until the next reload. */
int guard_settings(struct guard *g, const char *agent, struct guard_agent **ret, struct error *err);
/* Reads the tokens again if somebody has changed them: 1 if so. Identities are void then. `gone` is
 * told of each that is no more, or has another secret now. */
int guard_refresh(struct guard *g, void (*gone)(void *arg, const char *id), void *arg,
                  struct error *err);
/* Is this token (still) one of ours? */
bool guard_knows(const struct guard *g, const char *id, int64_t now_sec);

/* Whose text this is; NULL text: whoever started us. -ERR_DENIED: nobody's. */
int guard_identify(struct guard *g, const char *text, size_t len, int64_t now_sec,
                   struct identity *ret, struct error *err);
/* By the id alone, for one who has shown the token before (a cookie). */
int guard_recall(struct guard *g, const char *id, int64_t now_sec, struct identity *ret,
                 struct error *err);
/* Somebody new: whoever speaks from within a box of this session. He may have commands run for him
 * and look after those, nothing else: no file tool, which would act with our rights instead of the
 * box's, and no network that his box has not. Known to this guard alone, until guard_door_close().
 */
struct guard_door {
    const char *agent, *session;
    bool has_network;
};
int guard_door(struct guard *g, const struct guard_door *d, char ret_text[TOKEN_TEXT],
               char ret_id[TOKEN_ID], struct error *err);
void guard_door_close(struct guard *g, const char *id);
/* May it do this with that session? What is no session key is nobody's. */
bool guard_may(const struct identity *who, unsigned right, const char *session);
/* The agent and session of a call that names none, or only one of them. */
int guard_names(const struct identity *who, const char *agent, const char *session,
                char ret_agent[NAMES_AGENT], char ret_session[NAMES_SESSION], struct error *err);

struct guard_wish {
    const char *tool;
    const char *agent, *session; /* NULL: the token's own */
    const char *command;         /* of exec: the line, for the policy */
    const char *target;          /* what it is about, for the record */
    const char *key, *request; /* the client's id of the call, or NULL; the hash of what it asks */
    json_t *arguments;         /* for the person who is asked; borrowed, or NULL */
    unsigned right;            /* RIGHT_READ or RIGHT_RUN */
    bool detached;             /* it goes on when whoever asked is gone */
    bool looks;                /* it changes nothing, and its end is not recorded */
    int64_t now_ms;
};

/* 1: admitted, *ret is the pass. 0: refused, *denial says why. Negative: it could not be decided or
 * recorded, which is a refusal too. */
int guard_admit(struct guard *g, const struct identity *who, const struct guard_wish *w,
                struct pass **ret, struct denial *denial, struct error *err);

/* What a person says to a call that waits (approvals_answer()). */
int guard_answer(struct guard *g, const struct identity *who, const char *id, bool allow,
                 int64_t now_ms, struct store_approval *ret, struct error *err);

/* How a call ended, for the audit. */
struct guard_ended {
    const char *event; /* "call.end"; "process.end" of what went on in the background */
    const char *call, *token, *session, *tool, *state;
    int status;
    const char *receipt; /* the inside of a JSON object, or NULL */
};
int guard_record_end(struct guard *g, const struct guard_ended *e, struct error *err);
