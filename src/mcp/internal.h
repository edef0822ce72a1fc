/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of mcp/ share. */
#include "base/sha256.h"
#include "mcp/limits.h"
#include "mcp/mcp.h"

#define META_PREFIX       "io.modelcontextprotocol/"
#define META_VERSION      META_PREFIX "protocolVersion"
#define META_CAPABILITIES META_PREFIX "clientCapabilities"
#define META_CLIENT       META_PREFIX "clientInfo"
#define META_SERVER       META_PREFIX "serverInfo"

enum rpc_code {
    RPC_PARSE = -32700,
    RPC_INVALID_REQUEST = -32600,
    RPC_NO_METHOD = -32601,
    RPC_INVALID_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_HEADER_MISMATCH = -32020,
    RPC_MISSING_CAPABILITY = -32021,
    RPC_UNSUPPORTED_VERSION = -32022,
};

enum http_status {
    HTTP_OK = 200,
    HTTP_ACCEPTED = 202,
    HTTP_BAD_REQUEST = 400,
    HTTP_NOT_FOUND = 404,
    HTTP_INTERNAL = 500,
};

struct own_tool {
    const struct mcp_tool *tool;
    json_t *input, *output; /* schemas; output may be NULL */
};

struct mcp {
    struct mcp_info info;
    uint8_t key[MCP_KEY];
    struct own_tool *tools; /* as many as info.tools */
    json_t *listed, *listed_legacy;
    json_t *server; /* name, title, version */
};

struct mcp_call_own {
    const struct mcp *m;
    const struct own_tool *tool;
    char *principal;
    bool modern;
    bool ended, progressed;
    uint64_t done; /* told last */
};

/* A message that is JSON-RPC, and an answer to it in the making. */
struct asked {
    const struct mcp *m;
    const struct mcp_transport *t;
    struct mcp_answer *ret;
    json_t *root;
    json_t *id;         /* borrowed like the rest; NULL in a notification */
    const char *method; /* NULL in a response */
    json_t *params;     /* an object, or NULL */
    json_t *meta;       /* the same */
    bool modern;
    const char *version; /* one of versions[], once the era is known */
    bool has_version_header;
    char version_header[LIMIT_MCP_VERSION];
};

/* ---- versions.c ---- */
const char *version_modern(const char *text); /* ours, or NULL */
const char *version_legacy(const char *text);
const char *version_newest_legacy(void);
json_t *version_list(bool legacy_too);
/* structuredContent and outputSchema came with 2025-06-18. */
bool version_has_structured(const char *version);

/* ---- message.c ---- */
/* False: the text is no message, and a->ret says so. */
bool message_read(struct asked *a, const char *text, size_t len);
/* A string or an integer, of bearable length. */
bool message_is_id(const json_t *v);

/* ---- answer.c ---- */
void answer_init(struct mcp_answer *ret);
/* `data` is taken, and may be NULL. */
void answer_error(struct mcp_answer *ret, const json_t *id, enum rpc_code code,
                  enum http_status status, json_t *data, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
/* Takes `result`; in the modern era adds what every result has. */
void answer_result(struct asked *a, json_t *result);
void answer_nothing(struct mcp_answer *ret, enum http_status status);
/* {"jsonrpc":"2.0","id":…,"result": */
void answer_open(struct mcp_answer *ret, const json_t *id);
/* Too large, or out of memory: says so instead. */
void answer_close(struct mcp_answer *ret, const json_t *id);
void answer_json(struct buf *b, const json_t *v);

/* ---- headers.c ---- */
void headers_version(struct asked *a);
/* Do the headers that every modern request has say what the body says? */
bool headers_agree(struct asked *a);
bool headers_agree_params(struct asked *a, const json_t *schema, const json_t *arguments);
/* Are its x-mcp-header words as they have to be? */
int headers_accept(const json_t *schema, struct error *err);

/* ---- call.c ---- */
void call_tool(struct asked *a);

/* ---- result.c ---- */
/* As mcp_finish(), into an answer that was begun. */
void result_put(struct mcp_call *call, const struct mcp_result *result, struct mcp_answer *ret);

/* ---- state.c ---- */
int state_seal(const struct mcp_call *call, const struct mcp_ask *ask, struct buf *out);
/* What the tool kept, to be freed; NULL if it is not ours, not for this call, or too old. */
char *state_open(const struct mcp_call *call, const char *text, uint64_t now_ms, size_t *ret_len);
