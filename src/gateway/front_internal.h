/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of the front share. */
#include <jansson.h>
#include <netinet/in.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/sha256.h"
#include "gateway/front.h"
#include "gateway/link.h"
#include "guard/tokens.h"
#include "http/server.h"
#include "http/sse.h"
#include "http/tls.h"
#include "mcp/mcp.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct front_door;
struct request;
struct socket;
struct stdio;

/* ---- who asks (front_gate.c) ---- */

enum credential_kind { CREDENTIAL_NONE, CREDENTIAL_TOKEN, CREDENTIAL_COOKIE };

struct credential {
    enum credential_kind kind;
    char text[LIMIT_FRONT_COOKIE + 1];
    char id[SHA256_HEX]; /* by which it is revoked: a token's id, a cookie's digest */
};

struct asker {
    struct credential who;
    char peer[INET6_ADDRSTRLEN + 8];
    char request[17]; /* X-Request-Id */
};

/* ---- questions to the back (front_question.c) ---- */

struct question {
    struct front *front;
    uint32_t id; /* 0: no answer is awaited */
    size_t owed; /* bytes of events that are not told as taken */
    /* NULL: events are dropped. */
    void (*on_event)(struct question *a, const char *data, size_t len);
    /* The question is over: it may be asked again in here. */
    void (*on_answer)(struct question *a, unsigned status, const char *body, size_t len);
};

struct questions {
    struct question *at[LIMIT_LINK_ASKS];
    uint32_t ids[LIMIT_LINK_ASKS]; /* the last one of each place: place + turn * LIMIT_LINK_ASKS */
    uint16_t free[LIMIT_LINK_ASKS];
    size_t n_free;
};

void questions_init(struct questions *a);
void questions_on_frame(struct front *f, enum link_kind kind, uint32_t id, const char *data,
                        size_t len);
/* Takes `params`, which may be NULL for {}. False: too many questions, or no memory. */
bool question_send(struct front *f, struct question *a, const char *op, json_t *params,
                   const struct asker *who);
/* Nobody waits any more; nothing to do if no answer is awaited. */
void question_cancel(struct question *a);
/* What is owed has gone on to the client. */
void question_taken(struct question *a);

/* ---- the front ---- */

struct facts {
    char **hosts, **origins; /* end with NULL */
    bool metrics_open;
    char *version;
};

struct front {
    struct loop *loop;
    struct front_options o;
    struct front_listener *listeners; /* those that are not served yet */
    struct link link;
    bool has_facts, is_over, is_draining;
    struct facts facts;
    struct http_server *server;
    struct http_tls *tls;
    struct mcp *mcp;
    struct mcp_tool *tools;
    char *mcp_version, *openapi, *tools_text;
    struct questions asks;
    struct request *requests;
    struct socket *sockets;
    size_t n_sockets;
    struct stdio *stdio;
    struct loop_io doors; /* what comes out of boxes */
    struct front_door *door_list;
    size_t n_door_conns, door_bodies; /* connections, bytes */
    size_t bodies;                    /* bytes */
    uint64_t ids;                     /* of requests */
};

/* Tells on_end(), once. */
void front_over(struct front *f, const char *why);
void front_request_id(struct front *f, char ret[17]);

/* ---- facts (front_facts.c) ---- */

/* From LINK_FACTS; the first one opens what is to be served. */
int facts_take(struct front *f, const char *text, size_t len, struct error *err);
void facts_done(struct facts *f);

/* ---- JSON from strangers (front_json.c) ---- */

int json_strict(const char *text, size_t len, json_t **ret, struct error *err);

enum field_type { FIELD_TEXT, FIELD_NUMBER, FIELD_BOOL, FIELD_OBJECT, FIELD_CALL };

struct field {
    const char *name;
    enum field_type type;
    bool required;
    const char *about;
};

struct op {
    const char *name;
    const struct field *fields;
    size_t n_fields;
};

extern const struct op front_ops[];
extern const size_t n_front_ops;
const struct op *front_op(const char *name);
bool is_call_id(const char *text, size_t len);
/* The message names the field. */
int fields_check(const struct field *fields, size_t n, const json_t *object, struct error *err);
/* A query's fields, of the types that the operation wants; `object` is added to. */
int fields_from_query(const struct op *op, struct http_slice query, json_t *object,
                      struct error *err);

/* ---- checks of a head (front_gate.c) ---- */

/* 0, or the status of a refusal, with *ret_why. */
unsigned gate_host(const struct front *f, const struct http_head *head, const char **ret_why);
/* token: that of the door it came by, or NULL. */
unsigned gate_credential(const struct http_exchange *x, const char *token, struct credential *ret,
                         const char **ret_why);
/* Is the Origin that of the Host itself? */
bool gate_is_own_origin(const struct http_head *head);
bool gate_is_json(const struct http_head *head);
bool gate_accepts(const struct http_head *head, const char *type);
bool gate_is_loopback(const struct http_peer *p);
void gate_peer(const struct http_peer *p, char *ret, size_t size);
/* Does LINK_REVOKE mean this one? */
bool gate_is_revoked(const struct credential *c, const json_t *what);
/* The only field of that name, NULL if there is none; *ret_twice if there are more. */
const struct http_slice *gate_find_once(const struct http_head *head, const char *name,
                                        bool *ret_twice);

/* ---- routes (front_routes.c) ---- */

enum route_flags {
    ROUTE_OPEN = 1,   /* needs no credential */
    ROUTE_HEAD = 2,   /* HEAD too */
    ROUTE_BODY = 4,   /* JSON */
    ROUTE_STREAM = 8, /* server-sent events */
};

struct route {
    enum http_method method;
    const char *path; /* one segment may be {name} */
    unsigned flags;
    const char *op; /* its fields are the query's, or the body's; or NULL */
    void (*run)(struct request *r);
    const char *summary;
};

extern const struct route routes[];
extern const size_t n_routes;
/* NULL with *ret_allow filled: there are other methods. NULL with it empty: no such path. */
const struct route *route_find(enum http_method method, struct http_slice path,
                               struct http_slice *ret_arg, char *ret_allow, size_t size);
/* The name in the path's braces; false: it has none. */
bool route_arg(const struct route *route, char *ret, size_t size);

/* ---- connections out of boxes (front_doors.c) ---- */

int doors_watch(struct front *f, int fd, struct error *err);

/* ---- requests (front_http.c) ---- */

struct request {
    struct front *front;
    struct http_exchange *x;
    struct request *next, **back;
    struct asker asker;
    uint64_t begun;
    const struct route *route;
    struct http_slice arg;
    bool is_door;  /* it came out of a box */
    bool is_known; /* the back has said that the credential is good, or none is needed */
    struct buf body;
    struct question ask;
    void (*then)(struct request *r);
    unsigned refusal; /* told once the credential is known to be good */
    char why[256], allow[48];
    /* A stream (front_sse.c). */
    bool wants_stream, is_stopped, has_ended;
    struct sse sse;
    struct buf held; /* an end that came first */
    char held_id[24];
    /* MCP (front_mcp_http.c). */
    struct mcp_call *call;
    struct mcp_answer reply;
};

extern const struct http_server_ops front_http_ops;
/* Each of these ends the request, and frees it. */
void request_reply(struct request *r, unsigned status, const struct http_field *fields, size_t n,
                   const void *body, size_t len);
void request_fail(struct request *r, unsigned status, const char *why);
/* A refusal, after the credential has been looked at. */
void request_refuse(struct request *r, unsigned status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The back's answer as it is. */
void request_answer(struct request *r, unsigned status, const char *body, size_t len);
/* After its answer was given in another way. */
void request_done(struct request *r, unsigned status);
/* Nobody is to have an answer to this any more: 401, or what has begun is broken off. */
void request_revoke(struct request *r);

/* Asks, and answers with what comes back through on_answer; takes params. */
void request_ask(struct request *r, const char *op, json_t *params,
                 void (*on_answer)(struct question *a, unsigned status, const char *body,
                                   size_t len));
/* The same, the answer as it is. */
void request_pass(struct request *r, const char *op, json_t *params);
/* Goes on once the credential is known to be good. */
void request_verify(struct request *r, void (*then)(struct request *r));
struct request *request_of(struct question *a);
void request_log(const struct front *f, const struct asker *who, const char *method,
                 struct http_slice path, unsigned status, uint64_t usec);

/* ---- streams (front_sse.c) ---- */

/* Asks for events and their end. Before the first event an answer is an ordinary one. */
void feed_ask(struct request *r, const char *op, json_t *params);
void feed_start(struct request *r);
/* One event of any size. */
void feed_send(struct request *r, const char *id, const char *name, const char *data, size_t len);
void feed_end(struct request *r);
void feed_writable(struct request *r);

/* ---- what routes do ---- */

void serve_health(struct request *r);
void serve_page(struct request *r);
void serve_op(struct request *r);
void serve_metrics(struct request *r);
void serve_openapi(struct request *r);
void serve_tools(struct request *r);
void serve_call(struct request *r);
void serve_events(struct request *r);
void serve_approve(struct request *r);
void serve_login(struct request *r);
void serve_logout(struct request *r);
void serve_socket(struct request *r);
void serve_mcp(struct request *r);

/* {"tools": [...]}; the OpenAPI document. Of the front, made once; NULL without memory. */
const char *tools_text(struct front *f);
const char *openapi_text(struct front *f);
/* Prometheus' text format, from the back's metrics; false if they are no metrics. */
bool metrics_put(const json_t *body, struct buf *out);

/* ---- WebSockets (front_ws.c) ---- */

void sockets_revoke(struct front *f, const json_t *what);
void sockets_drain(struct front *f);
/* Those that are left are closed. */
void sockets_free(struct front *f);

/* ---- MCP (front_mcp.c, front_mcp_text.c, front_mcp_http.c) ---- */

int front_mcp_new(struct front *f, const char *key, struct error *err);
json_t *front_mcp_params(const struct mcp_call *call, const char *agent, const char *session);
uint64_t front_now_ms(void);
/* A progress message for an event; false: none. */
bool front_mcp_progress(struct mcp_call *call, const char *event, size_t len, struct buf *out);
void front_mcp_finish(struct mcp_call *call, unsigned status, const char *body, size_t len,
                      struct mcp_answer *ret);
/* What the model reads of a result. */
void front_mcp_text(const char *tool, const json_t *result, struct buf *out);

/* ---- standard input and output (front_stdio.c) ---- */

int stdio_new(struct front *f, struct error *err);
void stdio_start(struct stdio *s);
void stdio_free(struct stdio *s);
