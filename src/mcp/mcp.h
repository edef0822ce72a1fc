/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The Model Context Protocol, server side, for tools. Pure: the text of one message and what its
 * transport knows go in; a reply, or a call of a tool, comes out. No descriptors, no clock.
 *
 * One `struct mcp` serves a whole endpoint, over streamable HTTP and stdio, in both eras at once.
 * It keeps nothing between messages, so requests of many clients may be mixed:
 *
 *  modern   2026-07-28: every request says its version and the client's capabilities in
 *           params._meta, and over HTTP repeats some of itself in headers, which must agree.
 *  legacy   2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05: begun by `initialize`. What that agreed
 *           on is kept by the caller, who hands it in with each later message (.version).
 *
 * A request is modern when its _meta names a version, or its header a modern one; initialize is
 * legacy unless its _meta names a version that we serve without it. Refused are batches (in
 * 2025-03-26 too, which allows them: no client sends them, and one message is one call here),
 * duplicate keys, NUL, bad UTF-8, and whatever mcp/limits.h does not allow.
 *
 * What stays with whoever owns the connection: methods other than POST (405), Origin (403),
 * Content-Type and Accept, session ids, matching a cancellation to a call that runs, and calling a
 * closed HTTP connection a cancellation.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"

struct error;
struct mcp;

struct mcp_tool {
    const char *name, *title, *description;
    const char *input_schema;  /* JSON text of an object's schema, in the words of mcp/schema.h */
    const char *output_schema; /* the same for structuredContent, of any type; or NULL */
    bool read_only, destructive, idempotent, open_world;
    bool unlisted; /* another name of a tool: may be called, is not shown */
};

/* Texts and tools are borrowed for the life of the endpoint; the key is copied. */
struct mcp_info {
    const char *name, *title, *version; /* of this server; title may be NULL */
    const char *instructions;           /* for the model, or NULL */
    const struct mcp_tool *tools;
    size_t n_tools;
    const uint8_t *key; /* of requestState: MCP_KEY random bytes, the same in all that serve it */
    uint32_t state_ttl_ms;
    uint32_t list_ttl_ms; /* how long a client may keep the list of tools */
    bool list_is_private; /* may the list be shared between users? */
};

#define MCP_KEY 32

/* Fails on a tool whose name or schema cannot be kept as the protocol wants it. */
int mcp_new(const struct mcp_info *info, struct mcp **ret, struct error *err);
void mcp_free(struct mcp *m);
DEFINE_AUTOPTR(mcp)

struct mcp_transport {
    bool http;
    /* HTTP: the value of a header, or NULL; names compare without case. A header that came twice
     * is joined with a comma, or refused before it comes here. */
    const char *(*header)(void *ctx, const char *name);
    void *ctx;
    const char *version;   /* what initialize agreed on for this connection or session, or NULL */
    bool session_unknown;  /* the message names a session that is not there (any longer) */
    const char *principal; /* who asks: a requestState is of use to nobody else; or NULL */
    uint64_t now_ms;
};

/* One call of a tool: to be read, not written. Ends in mcp_finish(), then mcp_call_free(). */
struct mcp_call {
    const struct mcp_tool *tool;
    json_t *id;             /* a string or an integer */
    json_t *arguments;      /* an object that the tool's schema accepts */
    json_t *progress_token; /* or NULL: nobody wants to hear of progress */
    json_t *meta;           /* the request's whole _meta, or NULL */
    const char *version;    /* of the protocol */
    /* After input_required: what mcp_ask kept, and the answers to it. Answers that come without
     * a requestState of ours are not here: nothing was asked. */
    const char *state; /* or NULL */
    size_t state_len;
    json_t *answers; /* an object, or NULL */
    struct mcp_call_own *own;
};

void mcp_call_free(struct mcp_call *call);
DEFINE_AUTOPTR(mcp_call)

enum mcp_kind {
    MCP_REPLY,   /* .text is to be sent, over HTTP with .status */
    MCP_NOTHING, /* nothing to send; over HTTP .status alone */
    MCP_CALL,    /* .call is to be run */
};

struct mcp_answer {
    enum mcp_kind kind;
    int status;            /* of HTTP */
    struct buf text;       /* one line without its end; empty (status 500) when memory ran out */
    struct mcp_call *call; /* taken by TAKE_PTR, or freed with the answer */
    const char *version;   /* initialize agreed on this: keep it, and over HTTP name a session */
    json_t *cancel;        /* the id of a request that its client gave up, or NULL */
};

/* Fills *ret whatever the text is; it is released with mcp_answer_done(). */
void mcp_take(const struct mcp *m, const char *text, size_t len, const struct mcp_transport *t,
              struct mcp_answer *ret);
void mcp_answer_done(struct mcp_answer *a);

/* Does the client give up this call? (stdio and legacy HTTP; of the same connection or session.) */
bool mcp_cancels(const struct mcp_answer *a, const struct mcp_call *call);
/* From now on the call says nothing: mcp_progress() and mcp_finish() have no text. */
void mcp_cancelled(struct mcp_call *call);

/* Appends a notification to `out`. False, and nothing appended: nobody asked for it, it has ended,
 * or `done` is not more than the last time. total 0 is unknown, message NULL is none. */
bool mcp_progress(struct mcp_call *call, uint64_t done, uint64_t total, const char *message,
                  struct buf *out);

enum mcp_content_type { MCP_TEXT, MCP_IMAGE };

struct mcp_content {
    enum mcp_content_type type;
    const void *data; /* text: bytes that are not UTF-8 become U+FFFD. image: as in a file */
    size_t len;
    const char *mime; /* of an image */
};

/* A question to the client's user, instead of a result. */
struct mcp_ask {
    json_t *requests;  /* {key: {"method": "elicitation/create", "params": {...}}}, or NULL */
    const void *state; /* comes back in call->state, unchanged, for the same tool, arguments and */
    size_t state_len;  /* principal, for state_ttl_ms. It can be read on the way, and used again. */
    uint64_t now_ms;
};

#define MCP_RECEIPT "clawden/receipt"

struct mcp_result {
    const struct mcp_content *content;
    size_t n_content;
    json_t *structured; /* or NULL. Without content, its JSON is the text too. */
    json_t *receipt;    /* or NULL: an object, MCP_RECEIPT of the result's _meta */
    bool is_error;
    const struct mcp_ask *ask; /* or NULL; then nothing else of this counts */
};

/* May this kind of question be put to the client of this call? ("elicitation/create", form.) */
bool mcp_can_ask(const struct mcp_call *call, const char *method);

/* The reply to a call. A question that the client cannot be asked becomes error -32021, or in the
 * legacy era a result that is an error. Of a call that has ended there is none (MCP_NOTHING). */
void mcp_finish(struct mcp_call *call, const struct mcp_result *result, struct mcp_answer *ret);
