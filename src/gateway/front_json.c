/* SPDX-License-Identifier: Apache-2.0 */
/* JSON and queries from strangers, held against what an operation takes: a field that is misspelt
 * or of another type is told by its name, and never means "the default". */
#include <string.h>

#include "gateway/front_internal.h"
#include "http/chars.h"

/* ---- text ---- */

/* Depth and number of values before anything is allocated for them: jansson's own limit is 2048
 * levels, and it has none for values. */
static int measure(const char *text, size_t len, struct error *err)
{
    size_t depth = 0, values = 1;
    bool quoted = false;

    for (size_t i = 0; i < len; i++) {
        if (quoted) {
            if (text[i] == '\\')
                i++;
            else if (text[i] == '"')
                quoted = false;
            continue;
        }
        quoted = text[i] == '"';
        if (text[i] == '[' || text[i] == '{')
            depth++;
        if ((text[i] == ']' || text[i] == '}') && depth > 0)
            depth--;
        values += text[i] == ',' || text[i] == '[' || text[i] == '{';
        if (depth > LIMIT_FRONT_DEPTH)
            return error_set(err, ERR_INVALID, "the JSON is nested deeper than %u levels",
                             LIMIT_FRONT_DEPTH);
        if (values > LIMIT_FRONT_VALUES)
            return error_set(err, ERR_INVALID, "the JSON has more than %u values",
                             LIMIT_FRONT_VALUES);
    }
    return 0;
}

int json_strict(const char *text, size_t len, json_t **ret, struct error *err)
{
    json_error_t why;
    json_t *v;
    int r = measure(text, len, err);

    if (r < 0)
        return r;
    v = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!v)
        return error_set(err, ERR_INVALID, "the body is not JSON as it is taken here: %s",
                         why.text);
    if (!json_is_object(v)) {
        json_decref(v);
        return error_set(err, ERR_INVALID, "the body is not an object");
    }
    *ret = v;
    return 0;
}

/* ---- fields ---- */

bool is_call_id(const char *text, size_t len)
{
    return len == 32 && strspn(text, "0123456789abcdef") >= 32;
}

static const char *type_name(enum field_type type)
{
    static const char *const names[] = {
        [FIELD_TEXT] = "a short string",
        [FIELD_NUMBER] = "an integer from 0 on",
        [FIELD_BOOL] = "true or false",
        [FIELD_OBJECT] = "an object",
        [FIELD_CALL] = "32 lower-case hexadecimal digits",
    };

    return names[type];
}

static bool has_type(enum field_type type, const json_t *v)
{
    switch (type) {
    case FIELD_TEXT:
        return json_is_string(v) && json_string_length(v) > 0 &&
               json_string_length(v) <= LIMIT_FRONT_TEXT;
    case FIELD_NUMBER:
        return json_is_integer(v) && json_integer_value(v) >= 0;
    case FIELD_BOOL:
        return json_is_boolean(v);
    case FIELD_OBJECT:
        return json_is_object(v);
    case FIELD_CALL:
        return json_is_string(v) && is_call_id(json_string_value(v), json_string_length(v));
    }
    return false;
}

static const struct field *find_field(const struct field *fields, size_t n, const char *name,
                                      size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(fields[i].name) == len && memcmp(fields[i].name, name, len) == 0)
            return &fields[i];
    return NULL;
}

int fields_check(const struct field *fields, size_t n, const json_t *object, struct error *err)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)object, key, v)
    {
        const struct field *f = find_field(fields, n, key, strlen(key));

        if (!f)
            return error_set(err, ERR_INVALID, "field '%.64s' is not known here", key);
        if (!has_type(f->type, v))
            return error_set(err, ERR_INVALID, "field '%s' is not %s", key, type_name(f->type));
    }
    for (size_t i = 0; i < n; i++)
        if (fields[i].required && !json_object_get(object, fields[i].name))
            return error_set(err, ERR_INVALID, "field '%s' is missing", fields[i].name);
    return 0;
}

/* ---- queries ---- */

/* One part of a query with its %XX and '+' decoded; -1: it is none, or too long. */
static int decode(struct http_slice s, char *ret, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++, n++) {
        int high, low;

        if (n + 1 >= size)
            return -1;
        ret[n] = s.at[i] == '+' ? ' ' : s.at[i];
        if (s.at[i] != '%')
            continue;
        high = i + 2 < s.len ? http_hex(s.at[i + 1]) : -1;
        low = i + 2 < s.len ? http_hex(s.at[i + 2]) : -1;
        if (high < 0 || low < 0 || (high | low) == 0)
            return -1;
        ret[n] = (char)(high << 4 | low);
        i += 2;
    }
    ret[n] = 0;
    return (int)n;
}

static json_t *query_value(const struct field *f, const char *text, size_t len)
{
    uint64_t number;

    if (f->type == FIELD_NUMBER)
        return http_number((struct http_slice){text, len}, INT64_MAX, &number)
                   ? json_integer((json_int_t)number)
                   : NULL;
    return json_stringn(text, len);
}

static int add_query_field(const struct op *op, struct http_slice part, json_t *object,
                           struct error *err)
{
    const char *equals = memchr(part.at, '=', part.len);
    size_t name_len = equals ? (size_t)(equals - part.at) : part.len;
    struct http_slice text = {equals ? equals + 1 : "", equals ? part.len - name_len - 1 : 0};
    const struct field *f = op ? find_field(op->fields, op->n_fields, part.at, name_len) : NULL;
    char value[LIMIT_FRONT_TEXT + 2];
    json_t *v;
    int n;

    if (!f)
        return error_set(err, ERR_INVALID, "query field '%.*s' is not known here",
                         name_len < 64 ? (int)name_len : 64, part.at);
    if (json_object_get(object, f->name))
        return error_set(err, ERR_INVALID, "query field '%s' comes twice", f->name);
    n = decode(text, value, sizeof(value));
    v = n < 0 ? NULL : query_value(f, value, (size_t)n);
    if (!v)
        return error_set(err, ERR_INVALID, "query field '%s' is not %s", f->name,
                         type_name(f->type));
    if (json_object_set_new(object, f->name, v) < 0)
        return error_set(err, ERR_TOO_LARGE, "query field '%s': out of memory", f->name);
    return 0;
}

int fields_from_query(const struct op *op, struct http_slice query, json_t *object,
                      struct error *err)
{
    unsigned n = 0;

    while (query.len > 0) {
        const char *and = memchr(query.at, '&', query.len);
        size_t len = and? (size_t)(and-query.at) : query.len;
        int r;

        if (++n > LIMIT_FRONT_QUERY)
            return error_set(err, ERR_INVALID, "the query has more than %u fields",
                             LIMIT_FRONT_QUERY);
        r = add_query_field(op, (struct http_slice){query.at, len}, object, err);
        if (r < 0)
            return r;
        query.at += len + (and != NULL);
        query.len -= len + (and != NULL);
    }
    return fields_check(op ? op->fields : NULL, op ? op->n_fields : 0, object, err);
}

/* ---- operations (ops.h) ---- */

#define SESSION                                               \
    {                                                         \
        "session", FIELD_TEXT, false, "Of this session only." \
    }
#define AGENT                                             \
    {                                                     \
        "agent", FIELD_TEXT, false, "Of this agent only." \
    }
#define TOOL                                            \
    {                                                   \
        "tool", FIELD_TEXT, false, "Of this tool only." \
    }
#define LIMIT                                            \
    {                                                    \
        "limit", FIELD_NUMBER, false, "As many at most." \
    }
#define CALL                                                                            \
    {                                                                                   \
        "call", FIELD_CALL, true, "The id that the call's first event and answer have." \
    }

static const struct field call_fields[] = {
    {"tool", FIELD_TEXT, true, "The tool's name."},
    {"arguments", FIELD_OBJECT, false, "What its input schema says."},
    {"agent", FIELD_TEXT, false, "For which agent; the token's own if it is left out."},
    {"session", FIELD_TEXT, false, "In which session; the token's own if it is left out."},
    {"key", FIELD_TEXT, false, "The caller's own id of the call: the same one never runs twice."},
    {"stream", FIELD_BOOL, false, "Events first, then the answer."},
};
static const struct field one_call[] = {CALL};
static const struct field events_fields[] = {
    CALL, {"after", FIELD_NUMBER, false, "Events whose seq is greater."}};
static const struct field calls_fields[] = {
    SESSION,
    AGENT,
    TOOL,
    LIMIT,
    {"state", FIELD_TEXT, false, "running, done, denied, failed or interrupted."},
    {"since", FIELD_NUMBER, false, "Begun at this time or later, in seconds since 1970."},
    {"until", FIELD_NUMBER, false, "Begun before this time."},
};
static const struct field sessions_fields[] = {AGENT, LIMIT};
static const struct field end_fields[] = {{"session", FIELD_TEXT, true, "The session's key."}};
static const struct field approve_fields[] = {
    {"approval", FIELD_TEXT, true, "The id that the denial has."},
    {"allow", FIELD_BOOL, true, "true: the same call may be made, once, within ten minutes."}};
static const struct field audit_fields[] = {
    SESSION,
    AGENT,
    TOOL,
    LIMIT,
    {"event", FIELD_TEXT, false, "Of this kind; may end in '*'."},
    {"call", FIELD_CALL, false, "Of this call only."},
    {"since", FIELD_TEXT, false, "2026-11-15T12:00:00Z or a beginning of it."},
    {"until", FIELD_TEXT, false, "The same."},
};

#define OP(name, fields)            \
    {                               \
        name, fields, COUNT(fields) \
    }
const struct op front_ops[] = {
    OP("call", call_fields),
    OP("events", events_fields),
    OP("look", one_call),
    OP("cancel", one_call),
    OP("calls", calls_fields),
    OP("sessions", sessions_fields),
    OP("session.end", end_fields),
    OP("audit", audit_fields),
    OP("approve", approve_fields),
    {"approvals", NULL, 0},
    {"boxes", NULL, 0},
    {"me", NULL, 0},
    {"ready", NULL, 0},
    {"metrics", NULL, 0},
    {"logout", NULL, 0},
};
const size_t n_front_ops = COUNT(front_ops);

const struct op *front_op(const char *name)
{
    for (size_t i = 0; i < n_front_ops; i++)
        if (strcmp(front_ops[i].name, name) == 0)
            return &front_ops[i];
    return NULL;
}
