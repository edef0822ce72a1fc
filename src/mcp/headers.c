/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A modern request over HTTP says part of itself twice: in the body, and in headers that proxies
 * route by. Whoever can make the two differ gets something past the proxy, so they must agree.
 */
#include "mcp/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "mcp/base64.h"

#define ENCODED_BEGIN "=?base64?"
#define ENCODED_END   "?="
#define SAFE_INTEGER  9007199254740991LL /* 2^53 - 1: what every reader of JSON holds exactly */

#define VERSION_HEADER "MCP-Protocol-Version"
#define PARAM_HEADER   "Mcp-Param-"
#define PARAM_NAME     64 /* bytes of what follows it */

/* Borrowed, without the blanks around it (RFC 9110, 5.5); NULL when there is no such header. */
static const char *get(const struct mcp_transport *t, const char *name, size_t *ret_len)
{
    const char *s = t->header ? t->header(t->ctx, name) : NULL;
    size_t n;

    if (!s)
        return NULL;
    s += strspn(s, " \t");
    n = strlen(s);
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\t'))
        n--;
    *ret_len = n;
    return s;
}

void headers_version(struct asked *a)
{
    size_t n = 0;
    const char *s = a->t->http ? get(a->t, VERSION_HEADER, &n) : NULL;

    a->has_version_header = s != NULL;
    /* One that is cut is none of ours, and that is all that is asked of it. */
    (void)snprintf(a->version_header, sizeof(a->version_header), "%.*s", (int)(n < 1024 ? n : 1024),
                   s ? s : "");
}

static bool mismatch(struct asked *a, const char *header, const char *what)
{
    answer_error(a->ret, a->id, RPC_HEADER_MISMATCH, HTTP_BAD_REQUEST,
                 json_pack("{ss}", "header", header), "Header mismatch: %s %s", header, what);
    return false;
}

static bool is_encoded(const char *s, size_t n)
{
    const size_t begin = strlen(ENCODED_BEGIN), end = strlen(ENCODED_END);

    return n >= begin + end && memcmp(s, ENCODED_BEGIN, begin) == 0 &&
           memcmp(s + n - end, ENCODED_END, end) == 0;
}

/* What the value stands for; false if it has characters that a header cannot have. */
static bool decode(const char *s, size_t n, struct buf *out)
{
    if (is_encoded(s, n))
        return base64_take(s + strlen(ENCODED_BEGIN),
                           n - strlen(ENCODED_BEGIN) - strlen(ENCODED_END), BASE64_PLAIN, out);
    for (size_t i = 0; i < n; i++)
        if (s[i] != '\t' && (s[i] < 0x20 || s[i] > 0x7e))
            return false;
    buf_append(out, s, n);
    return !out->failed;
}

static bool holds(const struct buf *b, const char *text, size_t len)
{
    return b->len == len && (len == 0 || memcmp(b->data, text, len) == 0);
}

static bool agree_method(struct asked *a)
{
    size_t n = 0;
    const char *s = get(a->t, "Mcp-Method", &n);

    if (!s)
        return mismatch(a, "Mcp-Method", "is missing");
    if (n != strlen(a->method) || memcmp(s, a->method, n) != 0)
        return mismatch(a, "Mcp-Method", "is not the method of the body");
    return true;
}

static const char *named_field(const char *method)
{
    if (strcmp(method, "tools/call") == 0 || strcmp(method, "prompts/get") == 0)
        return "name";
    return strcmp(method, "resources/read") == 0 ? "uri" : NULL;
}

static bool agree_name(struct asked *a)
{
    const char *field = named_field(a->method), *s;
    const json_t *body = field ? json_object_get(a->params, field) : NULL;
    autobuf value = {.max = LIMIT_MCP_MESSAGE};
    size_t n = 0;

    if (!json_is_string(body))
        return true; /* no such header, or no such request: told later */
    s = get(a->t, "Mcp-Name", &n);
    if (!s)
        return mismatch(a, "Mcp-Name", "is missing");
    if (!decode(s, n, &value))
        return mismatch(a, "Mcp-Name", "is wrongly encoded");
    if (!holds(&value, json_string_value(body), json_string_length(body)))
        return mismatch(a, "Mcp-Name", "is not the name in the body");
    return true;
}

bool headers_agree(struct asked *a)
{
    if (!a->t->http)
        return true;
    if (!a->has_version_header)
        return mismatch(a, VERSION_HEADER, "is missing");
    return agree_method(a) && agree_name(a);
}

/* ---- arguments that are repeated in headers ---- */

/* 42 and 42.0 are the same; 0x2a, 1e3, inf and " 42" are no decimal numbers. */
static bool is_same_number(const struct buf *b, json_int_t want)
{
    const char *digits = b->data + (b->data[0] == '-');
    size_t whole = strspn(digits, "0123456789"), rest = 0;

    if (digits[whole] == '.')
        rest = 1 + strspn(digits + whole + 1, "0");
    if (whole == 0 || whole > 16 || rest == 1 || digits[whole + rest] || strlen(b->data) != b->len)
        return false;
    return strtoll(b->data, NULL, 10) == want;
}

static bool is_same(const struct buf *b, const json_t *v)
{
    if (json_is_string(v))
        return holds(b, json_string_value(v), json_string_length(v));
    if (json_is_boolean(v))
        return json_is_true(v) ? holds(b, "true", 4) : holds(b, "false", 5);
    if (json_is_real(v) && fabs(json_real_value(v)) <= (double)SAFE_INTEGER)
        return b->len && json_real_value(v) == floor(json_real_value(v)) &&
               is_same_number(b, (json_int_t)json_real_value(v));
    return json_is_integer(v) && b->len && is_same_number(b, json_integer_value(v));
}

static bool agree_param(struct asked *a, const char *word, const json_t *v)
{
    char name[sizeof(PARAM_HEADER) + PARAM_NAME];
    autobuf value = {.max = LIMIT_MCP_MESSAGE};
    const char *s;
    size_t n = 0;

    (void)snprintf(name, sizeof(name), PARAM_HEADER "%s", word);
    s = get(a->t, name, &n);
    if (!v || json_is_null(v))
        return s ? mismatch(a, name, "is there, but not in the body") : true;
    if (json_is_object(v) || json_is_array(v))
        return true; /* the schema says no to it */
    if (!s)
        return mismatch(a, name, "is missing");
    if (!decode(s, n, &value))
        return mismatch(a, name, "is wrongly encoded");
    return is_same(&value, v) ? true : mismatch(a, name, "is not the value in the body");
}

bool headers_agree_params(struct asked *a, const json_t *schema, const json_t *arguments)
{
    const char *key;
    json_t *its;

    if (!a->t->http || !a->modern)
        return true;
    json_object_foreach(json_object_get(schema, "properties"), key, its)
    {
        const char *word = json_string_value(json_object_get(its, "x-mcp-header"));
        const json_t *v = json_object_get(arguments, key);

        if (word ? !agree_param(a, word, v) : !headers_agree_params(a, its, v))
            return false;
    }
    return true;
}

/* ---- the words of a schema ---- */

#define MOST_WORDS 32

struct words {
    const char *list[MOST_WORDS];
    size_t n;
};

static bool is_token(const char *s)
{
    size_t n = strspn(s, "!#$%&'*+-.^_`|~0123456789"
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");

    return n > 0 && n <= PARAM_NAME && s[n] == 0;
}

static bool is_carried(const json_t *schema)
{
    const char *type = json_string_value(json_object_get(schema, "type"));

    return type && (strcmp(type, "string") == 0 || strcmp(type, "integer") == 0 ||
                    strcmp(type, "boolean") == 0);
}

static int accept_word(const json_t *schema, bool reachable, struct words *w, struct error *err)
{
    const char *word = json_string_value(json_object_get(schema, "x-mcp-header"));

    if (!word)
        return 0;
    if (!reachable || !is_token(word) || !is_carried(schema) || w->n == MOST_WORDS)
        return error_set(err, ERR_INVALID,
                         "x-mcp-header '%s': must be a short token on a string, integer or boolean "
                         "that properties alone lead to",
                         word);
    for (size_t i = 0; i < w->n; i++)
        if (strcasecmp(w->list[i], word) == 0)
            return error_set(err, ERR_INVALID, "x-mcp-header '%s' is there twice", word);
    w->list[w->n++] = word;
    return 0;
}

static int accept(const json_t *schema, bool reachable, struct words *w, struct error *err)
{
    int r = accept_word(schema, reachable, w, err);
    const char *key;
    json_t *its;

    if (!json_is_object(schema))
        return 0;
    json_object_foreach(json_object_get(schema, "properties"), key, its)
    {
        if (r == 0)
            r = accept(its, reachable, w, err);
    }
    if (r == 0)
        r = accept(json_object_get(schema, "items"), false, w, err);
    return r == 0 ? accept(json_object_get(schema, "additionalProperties"), false, w, err) : r;
}

int headers_accept(const json_t *schema, struct error *err)
{
    struct words w = {0};

    if (json_object_get(schema, "x-mcp-header"))
        return error_set(err, ERR_INVALID, "x-mcp-header is not for the whole of the arguments");
    return accept(schema, true, &w, err);
}
