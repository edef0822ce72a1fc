/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who may call: tokens, each bound to agents, sessions and rights when it is made. What a client
 * sends is looked up by the id in it, which is no secret, and compared as a digest in constant
 * time; what is kept (tokens.json in the data folder, 0600) cannot be turned back into a token.
 *
 *     cdn_<12 hex digits: its id>_<64 hex digits: the secret>
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct error;

#define TOKEN_ID       13u /* with NUL, as the next */
#define TOKEN_TEXT     82u
#define LIMIT_TOKENS   1024u /* of one user: each client has one */
#define LIMIT_PATTERNS 64u   /* of sessions, of one token */
#define LIMIT_PATTERN  256u  /* bytes; a session key is not longer */

enum right {
    RIGHT_READ = 1,    /* look: files, sessions, the record of its own sessions */
    RIGHT_RUN = 2,     /* change and run */
    RIGHT_ADMIN = 4,   /* everybody's sessions, and the settings */
    RIGHT_APPROVE = 8, /* say yes or no to calls that wait for a person, its own as well */
};

#define RIGHTS_ALL (RIGHT_READ | RIGHT_RUN | RIGHT_ADMIN | RIGHT_APPROVE)

struct token {
    char id[TOKEN_ID];
    uint8_t digest[32];
    char *agent;     /* a pattern (policy/glob.h) */
    char **sessions; /* patterns; ends with NULL */
    unsigned rights;
    int64_t created, expires; /* seconds; expires 0: never */
    char *note;
    bool is_door;     /* of a box: its agent and session are names, no patterns */
    bool has_network; /* a door's: that box has the network that its session's calls may get */
};

struct tokens;

/* As they are on disk; none is no error. Refuses a file that others may read. */
int tokens_load(struct tokens **ret, struct error *err);
void tokens_free(struct tokens *t);
DEFINE_AUTOPTR(tokens)
/* Has somebody changed them since? */
bool tokens_is_stale(const struct tokens *t);
/* In the order in which they were made; NULL: no more. */
const struct token *tokens_at(const struct tokens *t, size_t i);

/* What a new one is to be; its id, digest and time are filled. The text is shown once and is
 * nowhere else. */
int tokens_create(const struct token *wanted, char ret_text[TOKEN_TEXT], char ret_id[TOKEN_ID],
                  struct error *err);
/* -ERR_NOT_FOUND. */
int tokens_revoke(const char *id, struct error *err);
/* The same token with another secret; the old one is worth nothing from now on. */
int tokens_rotate(const char *id, char ret_text[TOKEN_TEXT], struct error *err);

/* The token that this text is, if it is one and has not expired; NULL. How long it takes says
 * nothing about the secret. */
const struct token *tokens_check(const struct tokens *t, const char *text, size_t len, int64_t now);

/* An id and a secret for a token that is not kept on disk. */
int token_make(struct token *t, char ret_text[TOKEN_TEXT], struct error *err);
/* Is this its text? How long it takes says nothing about the secret. */
bool token_is(const struct token *t, const char *text, size_t len);
/* Has it this right for this session of this agent? */
bool token_may(const struct token *t, unsigned right, const char *agent, const char *session);
const char *right_name(enum right r);
