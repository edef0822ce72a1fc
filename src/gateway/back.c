/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/back.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/state.h"
#include "gateway/back_internal.h"
#include "version.h"

#define TICK_USEC    400000 /* a token that is withdrawn is so within a second */
#define FLUSH_USEC   10000
#define LIMIT_MENDED 64 /* calls that are looked at */

static int64_t now_sec(void)
{
    return now_ms() / 1000;
}

static bool random_hex(char *ret, size_t bytes)
{
    unsigned char raw[32];

    if (bytes > sizeof(raw) || getrandom(raw, bytes, 0) != (ssize_t)bytes)
        return false;
    for (size_t i = 0; i < bytes; i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", raw[i]);
    return true;
}

static bool same_bytes(const void *a, const void *b, size_t n)
{
    const unsigned char *x = a, *y = b;
    unsigned char d = 0;

    for (size_t i = 0; i < n; i++)
        d |= x[i] ^ y[i];
    return d == 0;
}

/* ---- cookies ---- */

void back_code(struct back *b, char ret[33])
{
    ret[0] = 0;
    for (size_t i = 0; i < LIMIT_CODES; i++)
        if (b->codes[i].expires < now_sec()) {
            b->codes[i].expires = now_sec() + CODE_SEC;
            if (!random_hex(b->codes[i].text, 16))
                return;
            (void)snprintf(ret, 33, "%s", b->codes[i].text);
            return;
        }
}

static bool take_code(struct back *b, const char *text)
{
    for (size_t i = 0; i < LIMIT_CODES; i++)
        if (b->codes[i].expires >= now_sec() && strlen(text) == 32 &&
            same_bytes(b->codes[i].text, text, 32)) {
            b->codes[i] = (struct code){0};
            return true;
        }
    return false;
}

static struct cookie *find_cookie(struct back *b, const char *text)
{
    char digest[SHA256_HEX];

    sha256_hex(text, strlen(text), digest);
    for (size_t i = 0; i < LIMIT_COOKIES; i++)
        if (b->cookies[i].expires >= now_sec() && same_bytes(b->cookies[i].digest, digest, 64))
            return &b->cookies[i];
    return NULL;
}

static void op_login(struct ask *a)
{
    const char *text = json_string_value(json_object_get(a->params, "code"));
    struct cookie *c = &a->back->cookies[0];
    char cookie[65];
    json_t *body;

    if (!text || !take_code(a->back, text)) {
        ask_refuse(a, 401, "unauthorized",
                   "the code is not one of ours, or was used before: start the gateway again, or "
                   "use a token");
        return;
    }
    for (size_t i = 0; i < LIMIT_COOKIES; i++) /* the one that ends first makes room */
        if (a->back->cookies[i].expires < c->expires)
            c = &a->back->cookies[i];
    if (!random_hex(cookie, 32)) {
        ask_refuse(a, 500, "internal", "no random bytes");
        return;
    }
    *c = (struct cookie){.expires = now_sec() + COOKIE_SEC, .token = GUARD_LOCAL};
    sha256_hex(cookie, strlen(cookie), c->digest);
    body = json_object();
    (void)json_object_set_new(body, "cookie", json_string(cookie));
    (void)json_object_set_new(body, "expires", json_integer(COOKIE_SEC));
    ask_answer(a, 200, body);
}

static void op_logout(struct ask *a, const struct identity *who)
{
    struct back *b = a->back;
    char text[96];

    (void)who;
    (void)snprintf(text, sizeof(text), "{\"cookie\":\"%s\"}", a->cookie);
    for (size_t i = 0; i < LIMIT_COOKIES; i++)
        if (a->cookie[0] && strcmp(b->cookies[i].digest, a->cookie) == 0)
            b->cookies[i] = (struct cookie){0};
    ask_answer(a, 200, json_object());
    link_send(&b->link, LINK_REVOKE, 0, text, strlen(text)); /* its streams end, too */
}

/* ---- who asks ---- */

static struct peer *peer_of(struct back *b, json_t *ask)
{
    const char *text = json_string_value(json_object_get(ask, "peer"));
    uint32_t h = 2166136261u;

    for (; text && *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return &b->peers[h % LIMIT_PEERS];
}

/* True: too many wrong ones came from there in this minute. */
static bool count_wrong(struct back *b, json_t *ask)
{
    struct peer *p = peer_of(b, ask);
    uint64_t minute = (uint64_t)now_sec() / 60;

    b->wrong_tokens++;
    if (p->minute != minute)
        *p = (struct peer){.minute = minute};
    return ++p->wrong > LIMIT_WRONG_TOKENS;
}

/* A box shares with all others what doors may have. */
static bool count_door(struct ask *a, const struct rate *r)
{
    struct back *b = a->back;

    if (r->n > LIMIT_DOOR_RATE || r->waiting >= LIMIT_DOOR_ASKS ||
        b->n_door_asks >= LIMIT_DOORS_ASKS)
        return true;
    a->is_door = true;
    b->n_door_asks++;
    return false;
}

/* True: this token has asked as often in this second as it may, or waits for as many answers. */
static bool count_rate(struct ask *a, const struct identity *who)
{
    const char *token = who->token;
    struct back *b = a->back;
    uint64_t second = loop_now(b->loop) / 1000000;
    struct rate *free_one = NULL;

    for (size_t i = 0; i < LIMIT_RATES; i++) {
        struct rate *r = &b->rates[i];

        if (strcmp(r->token, token) == 0) {
            free_one = r;
            break;
        }
        if (!r->waiting && (!free_one || r->second < free_one->second))
            free_one = r;
    }
    if (!free_one)
        return true;
    if (strcmp(free_one->token, token) != 0 || free_one->second != second) {
        free_one->second = second;
        free_one->n = 0;
    }
    (void)snprintf(free_one->token, sizeof(free_one->token), "%s", token);
    if (++free_one->n > LIMIT_TOKEN_RATE || free_one->waiting >= LIMIT_TOKEN_ASKS ||
        (who->bound->is_door && count_door(a, free_one)))
        return true;
    free_one->waiting++;
    a->rate = free_one;
    return false;
}

static int identify(struct ask *a, json_t *ask, struct identity *ret, struct error *err)
{
    struct back *b = a->back;
    json_t *token = json_object_get(ask, "token"), *cookie = json_object_get(ask, "cookie");
    struct cookie *c;

    if (token)
        return guard_identify(b->guard, json_string_value(token), json_string_length(token),
                              now_sec(), ret, err);
    if (!cookie)
        return guard_identify(b->guard, NULL, 0, now_sec(), ret, err);
    c = find_cookie(b, json_string_value(cookie));
    if (!c)
        return error_set(err, ERR_DENIED, "the cookie is not one of ours, or not any more");
    (void)snprintf(a->cookie, sizeof(a->cookie), "%s", c->digest);
    return guard_recall(b->guard, c->token, now_sec(), ret, err);
}

static void on_token_gone(void *arg, const char *id)
{
    struct back *b = arg;
    struct ask *next;
    char text[64];

    (void)snprintf(text, sizeof(text), "{\"token\":\"%s\"}", id);
    link_send(&b->link, LINK_REVOKE, 0, text, strlen(text));
    for (struct ask *a = b->asks; a; a = next) {
        next = a->next;
        if (strcmp(a->token, id) == 0 && !a->is_gone)
            call_gone(a);
    }
    for (struct job *j = NULL; (j = jobs_next(b->jobs, NULL, j));)
        if (strcmp(j->token, id) == 0)
            job_cancel(j, "its token was withdrawn");
}

static void refresh(struct back *b)
{
    struct error err;

    if (guard_refresh(b->guard, on_token_gone, b, &err) < 0)
        log_warn("%s: the tokens that were read before stay in force", err.msg);
}

static void on_flush(struct loop_timer *t)
{
    struct back *b = OF(struct back, flush, t);
    struct error err;

    if (store_flush(b->store, &err) < 0)
        log_warn("%s", err.msg);
}

void store_soon(struct back *b)
{
    if (!b->flush.loop)
        (void)loop_set_timer(b->loop, &b->flush, FLUSH_USEC);
}

static void on_tick(struct loop_timer *t)
{
    struct back *b = OF(struct back, tick, t);
    struct ask *next;

    refresh(b);
    for (struct ask *a = b->asks; a; a = next) { /* those that have expired */
        next = a->next;
        if (!a->is_gone && a->token[0] && !guard_knows(b->guard, a->token, now_sec())) {
            on_token_gone(b, a->token);
            break; /* the list is another one now; the rest is for the next tick */
        }
    }
    (void)loop_set_timer(b->loop, t, TICK_USEC);
}

/* ---- questions ---- */

static const struct op {
    const char *name;
    void (*run)(struct ask *a, const struct identity *who);
    bool for_doors; /* who speaks from within a box may ask it, of what he has begun */
} ops[] = {
    {"call", op_call, true},
    {"events", op_events, true},
    {"look", op_look, true},
    {"cancel", op_cancel, true},
    {"calls", op_calls},
    {"sessions", op_sessions},
    {"session.end", op_session_end},
    {"boxes", op_boxes},
    {"audit", op_audit},
    {"me", op_me, true},
    {"ready", op_ready},
    {"metrics", op_metrics},
    {"approvals", op_approvals},
    {"approve", op_approve},
    {"logout", op_logout},
};

static const struct op *find_op(const char *name)
{
    for (size_t i = 0; name && i < sizeof(ops) / sizeof(*ops); i++)
        if (strcmp(ops[i].name, name) == 0)
            return &ops[i];
    return NULL;
}

static bool is_anonymous(json_t *question)
{
    return !json_object_get(question, "token") && !json_object_get(question, "cookie");
}

static void run(struct ask *a, json_t *question)
{
    const char *name = json_string_value(json_object_get(question, "op"));
    const struct op *op = find_op(name);
    struct identity who;
    struct error err;

    a->params = json_incref(json_object_get(question, "params"));
    if (!a->params)
        a->params = json_object();
    if (name && strcmp(name, "login") == 0) {
        op_login(a);
        return;
    }
    if (op && op->run == op_metrics && a->back->metrics_are_open && is_anonymous(question)) {
        op_metrics(a, NULL);
        return;
    }
    if (identify(a, question, &who, &err) < 0) {
        if (count_wrong(a->back, question))
            ask_refuse(a, 429, "too_many", "too many wrong tokens from this address");
        else
            ask_refuse(a, 401, "unauthorized", err.msg);
        return;
    }
    (void)snprintf(a->token, sizeof(a->token), "%s", who.token);
    if (who.bound->is_door && op && !op->for_doors)
        ask_refuse(a, 403, "denied", "from within a box nothing is told of others");
    else if (count_rate(a, &who))
        ask_refuse(a, 429, "too_many", "too many requests of this token at once, or in a second");
    else if (!op || !json_is_object(a->params))
        ask_refuse(a, 404, "not_found", "there is no such operation");
    else
        op->run(a, &who);
}

static void on_ask(struct back *b, uint32_t id, const char *data, size_t len)
{
    json_error_t where;
    json_t *question = json_loadb(data, len, JSON_REJECT_DUPLICATES, &where);
    struct ask *a = b->n_asks < LIMIT_LINK_ASKS ? ask_new(b, id) : NULL;

    if (!a)
        link_answer(&b->link, id, 503, "{\"error\":{\"code\":\"busy\",\"retry_after\":1}}", 41);
    else if (!json_is_object(question))
        ask_refuse(a, 400, "invalid", "the question is no JSON object");
    else {
        refresh(b);
        run(a, question);
    }
    json_decref(question);
}

static void on_frame(struct link *l, enum link_kind kind, uint32_t id, const char *data, size_t len)
{
    struct back *b = OF(struct back, link, l);
    struct ask *a = kind == LINK_ASK ? NULL : ask_find(b, id);
    uint32_t n;

    switch (kind) {
    case LINK_ASK:
        on_ask(b, id, data, len);
        break;
    case LINK_CANCEL:
        if (a)
            call_gone(a);
        break;
    case LINK_TAKEN:
        if (a && len == sizeof(n)) {
            memcpy(&n, data, sizeof(n));
            call_on_taken(a, n);
        }
        break;
    case LINK_READY:
        if (b->on_ready)
            b->on_ready(b->ready_arg);
        b->on_ready = NULL;
        break;
    case LINK_EVENT: /* what only we may say */
    case LINK_ANSWER:
    case LINK_FACTS:
    case LINK_REVOKE:
        break;
    }
}

static void on_closed(struct link *l, const char *why)
{
    struct back *b = OF(struct back, link, l);

    if (why && !b->is_draining && !b->is_local) /* else it ends because it is over */
        log_error("the gateway's front: %s", why);
    loop_quit(b->loop);
}

/* The front takes events again: whoever has more goes on. */
static void on_room(struct link *l)
{
    struct back *b = OF(struct back, link, l);
    struct ask *next;

    for (struct ask *a = b->asks; a && !l->was_full; a = next) {
        next = a->next;
        if (a->is_stream && a->watch.job && !a->is_gone)
            command_pump(a);
    }
}

/* ---- making ---- */

static int open_folders(struct back *b, struct error *err)
{
    b->data = state_open_data(err);
    if (b->data < 0)
        return b->data;
    if (mkdirat(b->data, "calls", 0700) < 0 && errno != EEXIST)
        return error_sys(err, -errno, "make the folder 'calls'");
    b->spool = openat(b->data, "calls", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return b->spool < 0 ? error_sys(err, -errno, "open the folder 'calls'") : 0;
}

static void on_interrupted(void *arg, const struct store_call *c)
{
    struct back *b = arg;
    const struct guard_ended e = {.event = "call.end",
                                  .call = c->id,
                                  .token = c->token,
                                  .session = c->session,
                                  .tool = c->tool,
                                  .state = "interrupted"};
    struct error err;

    if (guard_record_end(b->guard, &e, &err) < 0)
        log_warn("%s", err.msg);
}

static bool has_end(json_t *ends, const char *event, const char *call)
{
    json_t *one;
    size_t i;

    json_array_foreach(ends, i, one)
    {
        const char *is = json_string_value(json_object_get(one, "event"));
        const char *of = json_string_value(json_object_get(one, "call"));

        if (is && of && strcmp(is, event) == 0 && strcmp(of, call) == 0)
            return true;
    }
    return false;
}

static void record_late(struct back *b, const char *event, const struct store_call *c,
                        const char *state)
{
    const struct guard_ended e = {.event = event,
                                  .call = c->id,
                                  .token = c->token,
                                  .session = c->session,
                                  .tool = c->tool,
                                  .state = state,
                                  .status = c->status};
    struct error err;

    if (guard_record_end(b->guard, &e, &err) < 0)
        log_warn("%s", err.msg);
}

static void mend_end(struct back *b, const char *id, json_t *ends)
{
    auto_found f = {0};
    const struct tool *t;
    struct error err;

    if (store_find(b->store, id, &f, &err) < 0)
        return;
    t = tool_find(f.call.tool);
    if ((f.call.state != CALL_DONE && f.call.state != CALL_FAILED) || !t ||
        (t->read_only && !f.call.key))
        return;
    if (!has_end(ends, "call.end", id))
        record_late(b, "call.end", &f.call, call_state_name(f.call.state));
    /* What it left in the background died with the gateway. */
    if (f.call.result && strstr(f.call.result, "\"result\":{\"status\":\"running\"") &&
        !has_end(ends, "process.end", id))
        record_late(b, "process.end", &f.call, "interrupted");
}

/* The end of a call is in the store before it is in the audit: of a gateway that was killed between
 * the two, it is put there now. That is one call at most, and a late one; ends of what ran in the
 * background may be several. */
static void mend_record(struct back *b)
{
    const struct records_filter call_ends = {.event = "call.end", .limit = 1000};
    const struct records_filter process_ends = {.event = "process.end", .limit = 1000};
    const struct store_filter last_calls = {.limit = LIMIT_MENDED};
    json_t *ends = NULL, *more_ends = NULL, *calls = NULL, *one;
    struct error err;
    bool more;
    size_t i;

    if (records_query(b->audit.dir, &call_ends, &ends, &more, &err) >= 0 &&
        records_query(b->audit.dir, &process_ends, &more_ends, &more, &err) >= 0 &&
        json_array_extend(ends, more_ends) == 0 &&
        store_calls(b->store, &last_calls, &calls, &err) >= 0)
        json_array_foreach(calls, i, one)
            mend_end(b, json_string_value(json_object_get(one, "call")), ends);
    json_decref(ends);
    json_decref(more_ends);
    json_decref(calls);
}

static int open_store(struct back *b, struct error *err)
{
    autofree char *note = NULL;
    int r = store_open(b->data, &b->store, &note, err);

    if (note)
        log_warn("%s", note);
    return r;
}

/* What those who were killed left. */
static int clear_up(struct back *b, bool alone, struct error *err)
{
    int r = store_interrupt(b->store, now_ms(), on_interrupted, b, err);

    if (r >= 0 && alone) /* there is one gateway; a `clawden mcp` may be beside it */
        mend_record(b);
    return r;
}

static int send_facts(struct back *b, const char *facts, struct error *err)
{
    json_error_t where;
    json_t *f = json_loads(facts ? facts : "{}", JSON_REJECT_DUPLICATES, &where);
    json_t *instance = json_object();
    char *text;

    if (!f)
        return error_set(err, ERR_INVALID, "the front's facts: %s", where.text);
    b->metrics_are_open = json_is_true(json_object_get(f, "metrics_open"));
    (void)json_object_set_new(instance, "mcp_key", json_string(b->mcp_key));
    (void)json_object_set_new(f, "instance", instance);
    (void)json_object_set_new(f, "version", json_string(CLAWDEN_VERSION));
    text = json_text(f);
    json_decref(f);
    if (!text)
        return error_sys(err, -ENOMEM, "write the front's facts");
    link_send(&b->link, LINK_FACTS, 0, text, strlen(text));
    free(text);
    return 0;
}

static int open_doors(struct back *b, int *channel, struct error *err)
{
    const struct doors_options o = {
        .guard = b->guard, .channel = *channel, .on_closed = on_token_gone, .arg = b};

    if (*channel < 0)
        return 0;
    *channel = -1;
    return doors_new(b->loop, &o, &b->doors, err);
}

static int open_guard(struct back *b, const struct back_options *o, struct error *err)
{
    const struct guard_options guard = {.audit = &b->audit,
                                        .store = b->store,
                                        .local_agent = o->local_agent ? o->local_agent : "*",
                                        .local_session = o->local_session,
                                        .local_rights = RIGHT_READ | RIGHT_RUN | RIGHT_APPROVE |
                                                        (o->local_agent ? 0 : RIGHT_ADMIN),
                                        .local_is_open = o->local_agent != NULL};

    return guard_new(&guard, &b->guard, err);
}

static int open_parts(struct back *b, const struct back_options *o, int *channel, struct error *err)
{
    int r = open_folders(b, err);

    if (r >= 0)
        r = audit_open(&b->audit, err);
    if (r >= 0)
        r = open_store(b, err);
    if (r >= 0)
        r = open_guard(b, o, err);
    if (r >= 0)
        r = clear_up(b, !o->local_agent, err);
    if (r >= 0)
        r = jobs_new(b->loop, b->spool, &b->jobs, err);
    if (r >= 0)
        r = open_doors(b, channel, err);
    if (r >= 0)
        r = sessions_new(b->loop, b->doors, &b->sessions, err);
    if (r >= 0 && !random_hex(b->mcp_key, 32))
        r = error_sys(err, -EIO, "get random bytes");
    return r;
}

int back_new(struct loop *l, const struct back_options *o, struct back **ret, struct error *err)
{
    autoptr(back) b = calloc(1, sizeof(*b));
    autoclose int fd = o->link, channel = o->channel;
    int r;

    if (!b)
        return error_sys(err, -ENOMEM, "make the gateway");
    *b = (struct back){
        .loop = l,
        .audit.dir = -1,
        .data = -1,
        .spool = -1,
        .link = {.on_frame = on_frame, .on_closed = on_closed, .on_room = on_room, .io.fd = -1},
        .tick.on_time = on_tick,
        .flush.on_time = on_flush,
        .on_ready = o->on_ready,
        .ready_arg = o->arg,
        .is_local = o->local_agent != NULL,
        .begun_usec = loop_now(l)};
    r = open_parts(b, o, &channel, err);
    if (r < 0)
        return r;
    r = link_open(&b->link, l, TAKE_FD(fd));
    if (r >= 0)
        r = loop_set_timer(l, &b->tick, TICK_USEC);
    if (r < 0)
        return error_sys(err, r, "speak with the front");
    r = send_facts(b, o->facts, err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(b);
    return 0;
}

void back_free(struct back *b)
{
    if (!b)
        return;
    b->on_drained = NULL;
    while (b->asks)
        ask_free(b->asks);
    loop_stop_timer(&b->tick);
    loop_stop_timer(&b->flush);
    if (b->link.io.fd >= 0)
        link_close(&b->link);
    jobs_free(b->jobs);
    sessions_free(b->sessions);
    doors_free(b->doors);
    store_free(b->store);
    guard_free(b->guard);
    audit_close(&b->audit);
    close_fd(&b->data);
    close_fd(&b->spool);
    free(b);
}

int back_reload(struct back *b, const char *facts, struct error *err)
{
    int r = guard_reload(b->guard, err);

    sessions_reload(b->sessions, b->guard);
    refresh(b);
    return r < 0 ? r : send_facts(b, facts, err);
}

void back_drain(struct back *b, void (*on_drained)(void *arg), void *arg)
{
    b->is_draining = true;
    b->on_drained = on_drained;
    b->drain_arg = arg;
    if (!b->n_asks)
        on_drained(arg);
}
