/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who we are at a registry. Passwords come from a file that other tools keep too, go into a header
 * and nowhere else: not into messages, not onto a command line.
 */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fd.h"
#include "cmd/pull/pull.h"

#define BASE64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="

static void wipe(struct buf *b)
{
    if (b->data)
        explicit_bzero(b->data, b->cap);
    buf_done(b);
}

static void json_done(json_t **o)
{
    json_decref(*o);
}

/* The file with the passwords: 1 if there is one. */
static int auth_path(char *path, size_t size)
{
    const char *env = getenv("CLAWDEN_REGISTRY_AUTH_FILE"), *home = getenv("HOME");

    if (env && env[0])
        return (size_t)snprintf(path, size, "%s", env) < size;
    if (home && home[0] == '/')
        return (size_t)snprintf(path, size, "%s/.docker/config.json", home) < size;
    return 0;
}

static int read_file(const char *path, struct buf *ret)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char chunk[4096];
    ssize_t n;

    if (fd < 0)
        return -errno;
    while ((n = fd_read_full(fd, chunk, sizeof(chunk))) > 0)
        buf_append(ret, chunk, (size_t)n);
    explicit_bzero(chunk, sizeof(chunk));
    return n < 0 ? (int)n : ret->failed ? -EFBIG : 0;
}

/* Keys are hosts, or addresses of old: "https://HOST/v1/". */
static bool is_key_of(const char *key, const char *registry)
{
    const char *p = strstr(key, "://");
    size_t n;

    p = p ? p + 3 : key;
    n = strcspn(p, "/");
    return strlen(registry) == n && strncasecmp(p, registry, n) == 0;
}

int auth_basic(const char *registry, char line[AUTH_LINE], struct error *err)
{
    cleanup_(wipe) struct buf text;
    cleanup_(json_done) json_t *o = NULL;
    char path[LIMIT_PATH];
    const char *key, *value;
    json_t *entry;
    int r;

    line[0] = 0;
    buf_init(&text, LIMIT_PULL_AUTH_FILE);
    if (!auth_path(path, sizeof(path)))
        return 0;
    r = read_file(path, &text);
    if (r == -ENOENT && !getenv("CLAWDEN_REGISTRY_AUTH_FILE"))
        return 0;
    if (r < 0)
        return error_sys(err, r, "read the passwords of registries in '%s'", path);
    o = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(o))
        return error_set(err, ERR_INVALID,
                         "'%s' with the passwords of registries is no JSON object", path);
    json_object_foreach(json_object_get(o, "auths"), key, entry)
    {
        value = json_string_value(json_object_get(entry, "auth"));
        if (!is_key_of(key, registry) || !value || !value[0])
            continue;
        if (strspn(value, BASE64) != strlen(value) || strlen(value) > AUTH_LINE - 64)
            return error_set(err, ERR_INVALID, "the entry of '%s' in '%s' is not base64", registry,
                             path);
        (void)snprintf(line, AUTH_LINE, "Authorization: Basic %s", value);
    }
    return 0;
}

/* ---- tokens ---- */

/* key="value" of a challenge; false if it is not there or does not fit. */
static bool challenge_value(const char *challenge, const char *key, char *value, size_t size)
{
    size_t n = strlen(key);

    for (const char *p = challenge; (p = strstr(p, key)); p += n) {
        size_t len;

        if ((p > challenge && !strchr(" ,", p[-1])) || p[n] != '=' || p[n + 1] != '"')
            continue;
        p += n + 2;
        len = strcspn(p, "\"");
        if (p[len] != '"' || len >= size)
            return false;
        memcpy(value, p, len);
        value[len] = 0;
        return true;
    }
    return false;
}

static int keep_text(void *ctx, const void *data, size_t len, struct error *err)
{
    struct buf *b = ctx;

    buf_append(b, data, len);
    return b->failed ? error_set(err, ERR_TOO_LARGE, "the registry's token has more than %u bytes",
                                 LIMIT_PULL_TOKEN)
                     : 0;
}

static int token_url(const char *challenge, const char *repository, bool plain, char *url,
                     size_t size, struct error *err)
{
    char realm[1024], service[256] = "", scope[LIMIT_IMAGE_NAME + 32], *s1, *s2;
    bool fits;

    if (!challenge_value(challenge, "realm", realm, sizeof(realm)) ||
        !url_is_allowed(realm, plain) || strpbrk(realm, " \t\r\n#"))
        return error_set(err, ERR_DENIED,
                         "the registry wants a token from an address that is not https: refused");
    (void)challenge_value(challenge, "service", service, sizeof(service));
    (void)snprintf(scope, sizeof(scope), "repository:%s:pull", repository);
    s1 = curl_easy_escape(NULL, service, 0);
    s2 = curl_easy_escape(NULL, scope, 0);
    fits = s1 && s2 &&
           (size_t)snprintf(url, size, "%s%cservice=%s&scope=%s", realm,
                            strchr(realm, '?') ? '&' : '?', s1, s2) < size;
    curl_free(s1);
    curl_free(s2);
    return fits ? 0
                : error_set(err, ERR_TOO_LARGE, "the registry's address for tokens is too long");
}

static int read_token(const struct buf *text, char line[AUTH_LINE], struct error *err)
{
    cleanup_(json_done) json_t *o =
        json_loadb(text->data ? text->data : "", text->len, JSON_REJECT_DUPLICATES, NULL);
    const char *token = json_string_value(json_object_get(o, "token"));

    if (!token)
        token = json_string_value(json_object_get(o, "access_token"));
    if (!token || !token[0] || strlen(token) > AUTH_LINE - 64 || strpbrk(token, "\r\n"))
        return error_set(err, ERR_INVALID, "the registry's answer holds no token");
    (void)snprintf(line, AUTH_LINE, "Authorization: Bearer %s", token);
    return 0;
}

int auth_answer(struct http *h, const struct options *o, const char *registry,
                const char *repository, const char *challenge, char line[AUTH_LINE],
                struct error *err)
{
    cleanup_(wipe) struct buf text;
    struct http_answer answer;
    char url[4096], basic[AUTH_LINE];
    struct http_request r = {.url = url, .auth = basic, .on_data = keep_text, .ctx = &text};
    int e = auth_basic(registry, basic, err);

    buf_init(&text, LIMIT_PULL_TOKEN);
    if (e < 0)
        return e;
    if (strncasecmp(challenge, "Basic", 5) == 0) {
        if (!basic[0])
            return error_set(err, ERR_DENIED,
                             "'%s' wants a password: log in with a tool that writes "
                             "~/.docker/config.json, or set CLAWDEN_REGISTRY_AUTH_FILE",
                             registry);
        memcpy(line, basic, AUTH_LINE);
        return 0;
    }
    if (strncasecmp(challenge, "Bearer ", 7) != 0)
        return error_set(err, ERR_UNSUPPORTED, "'%s' wants a way to log in that is not supported",
                         registry);
    e = token_url(challenge + 7, repository, o->plain_http, url, sizeof(url), err);
    if (e >= 0)
        e = http_get(h, &r, &answer, err);
    if (e < 0)
        return error_wrap(err, "get a token for '%s'", registry);
    if (answer.status != 200)
        return error_set(err, ERR_DENIED, "'%s' gives no token (HTTP %ld): %s", registry,
                         answer.status,
                         basic[0] ? "the password in the file is not accepted"
                                  : "it may want a password, see --help");
    return read_token(&text, line, err);
}
