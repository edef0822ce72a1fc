/* SPDX-License-Identifier: Apache-2.0 */
/* What a head has to be before anything else is looked at: our host, no foreign page behind it, and
 * one credential. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "gateway/front_internal.h"
#include "http/chars.h"

#define COOKIE_NAME "clawden"
#define TOKEN_CHARS (TOKEN_TEXT - 1)

/* ---- fields ---- */

const struct http_slice *gate_find_once(const struct http_head *head, const char *name,
                                        bool *ret_twice)
{
    const struct http_slice *found = NULL;

    *ret_twice = false;
    for (size_t i = 0; i < head->n_headers; i++) {
        if (!http_slice_is(head->headers[i].name, name))
            continue;
        *ret_twice |= found != NULL;
        found = &head->headers[i].value;
    }
    return found;
}

/* type/subtype without what follows a ';'. */
static struct http_slice media_type(struct http_slice s)
{
    const char *semicolon = memchr(s.at, ';', s.len);

    if (semicolon)
        s.len = (size_t)(semicolon - s.at);
    return http_trim(s);
}

bool gate_is_json(const struct http_head *head)
{
    const struct http_slice *type = http_find(head, "Content-Type");

    return type && http_slice_is(media_type(*type), "application/json");
}

bool gate_accepts(const struct http_head *head, const char *type)
{
    for (size_t i = 0; i < head->n_headers; i++) {
        struct http_slice rest = head->headers[i].value, one;

        if (!http_slice_is(head->headers[i].name, "Accept"))
            continue;
        while (http_list_next(&rest, &one))
            if (http_slice_is(media_type(one), type))
                return true;
    }
    return false;
}

/* ---- Host and Origin ---- */

/* One that names no port stands for all of them. */
static bool is_host(const char *name, const struct http_url *host)
{
    const char *colon = strrchr(name, ':');
    bool has_port = colon && (name[0] != '[' || (colon > name && colon[-1] == ']'));
    struct http_slice bare = host->authority;

    if (http_slice_is(host->authority, name))
        return true;
    if (has_port)
        return false;
    bare.len = host->is_ipv6 ? host->host.len + 2 : host->host.len;
    return http_slice_is(bare, name);
}

static bool is_allowed_host(const struct front *f, const struct http_url *host)
{
    for (char **name = f->facts.hosts; host->host.at && name && *name; name++)
        if (is_host(*name, host))
            return true;
    return false;
}

bool gate_is_own_origin(const struct http_head *head)
{
    const struct http_slice *origin = http_find(head, "Origin");
    struct http_slice rest;

    if (!origin || origin->len < 8)
        return false;
    rest = *origin;
    for (const char *scheme = memcmp(rest.at, "https", 5) == 0 ? "https://" : "http://"; *scheme;
         scheme++) {
        if (rest.len == 0 || *rest.at != *scheme)
            return false;
        rest.at++;
        rest.len--;
    }
    return http_same(rest.at, rest.len, head->host.authority.at, head->host.authority.len);
}

static bool is_allowed_origin(const struct front *f, const struct http_head *head,
                              struct http_slice origin)
{
    for (char **o = f->facts.origins; o && *o; o++)
        if (http_slice_is(origin, *o))
            return true;
    return gate_is_own_origin(head);
}

unsigned gate_host(const struct front *f, const struct http_head *head, const char **ret_why)
{
    const struct http_slice *origin = http_find(head, "Origin");

    *ret_why = "Host is not a name of this gateway's: --host of the gateway adds one";
    if (!is_allowed_host(f, &head->host))
        return 421;
    *ret_why = "Origin is not one that may ask here: --origin of the gateway lets one in";
    if (origin && !is_allowed_origin(f, head, *origin))
        return 403;
    return 0;
}

/* ---- credentials ---- */

static bool is_hex(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(s[i] >= '0' && s[i] <= '9') && !(s[i] >= 'a' && s[i] <= 'f'))
            return false;
    return true;
}

/* Whether it is one at all; whose, the back knows. */
static bool take_token(struct http_slice s, struct credential *ret)
{
    if (s.len != TOKEN_CHARS || memcmp(s.at, "cdn_", 4) != 0 || !is_hex(s.at + 4, 12) ||
        s.at[16] != '_' || !is_hex(s.at + 17, 64))
        return false;
    ret->kind = CREDENTIAL_TOKEN;
    memcpy(ret->text, s.at, s.len);
    memcpy(ret->id, s.at + 4, 12);
    return true;
}

static bool take_bearer(struct http_slice s, struct credential *ret)
{
    if (s.len < 7 || !http_same(s.at, 7, "Bearer ", 7))
        return false;
    return take_token((struct http_slice){s.at + 7, s.len - 7}, ret);
}

static bool take_cookie(struct http_slice s, struct credential *ret)
{
    if (s.len == 0 || s.len > LIMIT_FRONT_COOKIE)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!http_is(s.at[i], HTTP_CHAR_TOKEN))
            return false;
    ret->kind = CREDENTIAL_COOKIE;
    memcpy(ret->text, s.at, s.len);
    sha256_hex(s.at, s.len, ret->id);
    return true;
}

/* How many cookies of our name there are; *ret is the last. */
static unsigned find_cookie(const struct http_head *head, struct http_slice *ret)
{
    const size_t name = strlen(COOKIE_NAME);
    unsigned n = 0;

    for (size_t i = 0; i < head->n_headers; i++) {
        struct http_slice rest = head->headers[i].value;

        if (!http_slice_is(head->headers[i].name, "Cookie"))
            continue;
        while (rest.len > 0) {
            const char *end = memchr(rest.at, ';', rest.len);
            size_t len = end ? (size_t)(end - rest.at) : rest.len;
            struct http_slice one = http_trim((struct http_slice){rest.at, len});

            if (one.len > name && memcmp(one.at, COOKIE_NAME "=", name + 1) == 0) {
                *ret = (struct http_slice){one.at + name + 1, one.len - name - 1};
                n++;
            }
            rest.at += len + (end != NULL);
            rest.len -= len + (end != NULL);
        }
    }
    return n;
}

/* A browser sends cookies with whatever a page has it ask: so the page must be ours. */
static bool is_own_page(const struct http_exchange *x)
{
    bool changes = x->method != HTTP_GET && x->method != HTTP_HEAD;

    if (!changes && !http_find(x->head, "Upgrade"))
        return true;
    return gate_is_own_origin(x->head);
}

unsigned gate_credential(const struct http_exchange *x, const char *token, struct credential *ret,
                         const char **ret_why)
{
    const struct http_slice *bearer = http_find(x->head, "Authorization");
    struct http_slice cookie = {0};
    unsigned n = find_cookie(x->head, &cookie);

    *ret = (struct credential){0};
    *ret_why = "there is more than one credential";
    if (n + (bearer != NULL) + (token != NULL) > 1)
        return 400;
    if (token)
        return take_token((struct http_slice){token, strlen(token)}, ret) ? 0 : 401;
    *ret_why = bearer || n
                   ? "the credential is not one of ours: 'clawden token create' makes a token"
                   : "a token is needed, as 'Authorization: Bearer TOKEN': 'clawden token "
                     "create' makes one";
    if (bearer ? !take_bearer(*bearer, ret) : n == 0 || !take_cookie(cookie, ret))
        return 401;
    *ret_why = "a cookie is good for requests of our own page only: Origin is missing or foreign";
    return ret->kind == CREDENTIAL_COOKIE && !is_own_page(x) ? 403 : 0;
}

bool gate_is_revoked(const struct credential *c, const json_t *what)
{
    const char *id = NULL;

    if (c->kind == CREDENTIAL_TOKEN)
        id = json_string_value(json_object_get(what, "token"));
    else if (c->kind == CREDENTIAL_COOKIE)
        id = json_string_value(json_object_get(what, "cookie"));
    return id && strcmp(id, c->id) == 0;
}

/* ---- peers ---- */

bool gate_is_loopback(const struct http_peer *p)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}, one[16] = {[15] = 1};

    if (p->is_unix)
        return true;
    if (memcmp(p->address, mapped, 12) == 0)
        return p->address[12] == 127;
    return memcmp(p->address, one, 16) == 0;
}

void gate_peer(const struct http_peer *p, char *ret, size_t size)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    bool four = memcmp(p->address, mapped, 12) == 0;

    if (p->is_unix)
        (void)snprintf(ret, size, "uid:%u", (unsigned)p->uid);
    else if (!inet_ntop(four ? AF_INET : AF_INET6, p->address + (four ? 12 : 0), ret,
                        (socklen_t)size))
        (void)snprintf(ret, size, "?");
}
