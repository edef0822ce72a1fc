/* SPDX-License-Identifier: Apache-2.0 */
/* One request, one answer, through libcurl. Nothing here prints a header or an address's query. */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cmd/pull/pull.h"
#include "version.h"

struct http {
    CURL *curl;
    bool plain;
    long idle_sec;
    char why[CURL_ERROR_SIZE];
};

/* One request on its way. */
struct exchange {
    const struct http_request *request;
    struct http_answer *answer;
    struct http *http;
    struct error *err;
    bool started, refused; /* refused: by us, with err filled */
};

/* ---- where we may go ---- */

bool host_is_loopback(const char *host)
{
    size_t n = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");
    unsigned a, b, c, d;
    int end = 0;
    char text[64];

    if (n >= sizeof(text))
        return false;
    memcpy(text, host, n);
    text[n] = 0;
    if (strcasecmp(text, "localhost") == 0 || strcmp(text, "[::1]") == 0)
        return true;
    return sscanf(text, "%3u.%3u.%3u.%3u%n", &a, &b, &c, &d, &end) == 4 && (size_t)end == n &&
           a == 127 && b < 256 && c < 256 && d < 256;
}

bool url_is_allowed(const char *url, bool plain_http)
{
    if (strncasecmp(url, "https://", 8) == 0)
        return !strchr(url, '@');
    return strncasecmp(url, "http://", 7) == 0 && !strchr(url, '@') &&
           (plain_http || host_is_loopback(url + 7));
}

/* ---- callbacks ---- */

static bool header_is(const char *line, size_t len, const char *name, char *value, size_t size)
{
    size_t n = strlen(name);

    if (len <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
        return false;
    for (n++; n < len && (line[n] == ' ' || line[n] == '\t'); n++)
        ;
    while (len > n && strchr("\r\n \t", line[len - 1]))
        len--;
    if (len - n >= size)
        return true; /* too long to mean anything: as if it were empty */
    memcpy(value, line + n, len - n);
    value[len - n] = 0;
    return true;
}

static size_t on_header(char *line, size_t one, size_t len, void *ctx)
{
    struct exchange *x = ctx;
    struct http_answer *a = x->answer;
    char text[128] = "";
    unsigned long long from;

    (void)one;
    if (len >= 5 && strncasecmp(line, "HTTP/", 5) == 0) { /* a new answer, after a redirect */
        *a = (struct http_answer){.status = 0};
        return len;
    }
    if (header_is(line, len, "Content-Type", a->type, sizeof(a->type)) ||
        header_is(line, len, "Docker-Content-Digest", a->digest, sizeof(a->digest)))
        return len;
    if (header_is(line, len, "WWW-Authenticate", text, 0)) {
        /* Bearer is preferred if both are offered. */
        char all[sizeof(a->challenge)] = "";

        (void)header_is(line, len, "WWW-Authenticate", all, sizeof(all));
        if (!a->challenge[0] || strncasecmp(all, "Bearer ", 7) == 0)
            memcpy(a->challenge, all, sizeof(all));
    } else if (header_is(line, len, "Content-Range", text, sizeof(text))) {
        if (sscanf(text, "bytes %llu-", &from) == 1)
            a->range_start = from;
    } else if (header_is(line, len, "Retry-After", text, sizeof(text))) {
        (void)sscanf(text, "%5u", &a->retry_after);
    }
    return len;
}

/* The first bytes of a good answer: does it go on where we asked it to? */
static int start(struct exchange *x, long status)
{
    const struct http_request *r = x->request;
    bool resumed = status == 206;

    x->started = true;
    if (resumed && (r->from == 0 || x->answer->range_start != r->from))
        return error_set(x->err, ERR_INVALID,
                         "the registry sends another part of the blob than "
                         "asked for");
    return r->on_start ? r->on_start(r->ctx, resumed, x->err) : 0;
}

static size_t on_data(char *data, size_t one, size_t len, void *ctx)
{
    struct exchange *x = ctx;
    long status = 0;
    int r = 0;

    (void)one;
    (void)curl_easy_getinfo(x->http->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200 && status != 206)
        return len; /* an error page: its status says enough */
    if (!x->started)
        r = start(x, status);
    if (r >= 0)
        r = x->request->on_data(x->request->ctx, data, len, x->err);
    if (r < 0)
        x->refused = true;
    return r < 0 ? 0 : len;
}

static int on_tick(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)ctx, (void)a, (void)b, (void)c, (void)d;
    return interrupted != 0;
}

/* ---- requests ---- */

int http_new(const struct options *o, bool plain, struct http **ret, struct error *err)
{
    autoptr(http) h = calloc(1, sizeof(*h));

    if (!h || curl_global_init(CURL_GLOBAL_DEFAULT) != 0 || !(h->curl = curl_easy_init()))
        return error_set(err, ERR_TOO_LARGE, "out of memory");
    h->plain = plain;
    h->idle_sec = (long)((o->idle_usec + 999999) / 1000000);
    *ret = TAKE_PTR(h);
    return 0;
}

void http_free(struct http *h)
{
    if (!h)
        return;
    if (h->curl)
        curl_easy_cleanup(h->curl);
    free(h);
}

static void set_up(struct http *h, struct exchange *x, struct curl_slist *headers)
{
    CURL *c = h->curl;

    curl_easy_reset(c); /* keeps connections */
    (void)curl_easy_setopt(c, CURLOPT_URL, x->request->url);
    (void)curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, h->plain ? "http,https" : "https");
    (void)curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, h->plain ? "http,https" : "https");
    (void)curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
    (void)curl_easy_setopt(c, CURLOPT_MAXREDIRS, (long)LIMIT_PULL_REDIRECTS);
    /* libcurl does not send an Authorization line of ours on to another host. */
    (void)curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(c, CURLOPT_USERAGENT, "clawden/" CLAWDEN_VERSION);
    (void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, h->idle_sec < 15 ? h->idle_sec : 15L);
    (void)curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
    (void)curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, h->idle_sec);
    (void)curl_easy_setopt(c, CURLOPT_ERRORBUFFER, h->why);
    (void)curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(c, CURLOPT_HEADERDATA, x);
    (void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
    (void)curl_easy_setopt(c, CURLOPT_WRITEDATA, x);
    (void)curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_tick);
    (void)curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
}

/* The host of an address, for messages: no path, no query. */
static void host_of(const char *url, char host[256])
{
    const char *p = strstr(url, "://");

    p = p ? p + 3 : url;
    (void)snprintf(host, 256, "%.*s", (int)strcspn(p, "/?"), p);
}

static int failed(struct http *h, CURLcode code, const char *url, struct http_answer *a,
                  struct error *err)
{
    char host[256];

    host_of(url, host);
    if (interrupted)
        return check_interrupt(err);
    a->transient = code != CURLE_PEER_FAILED_VERIFICATION && code != CURLE_UNSUPPORTED_PROTOCOL &&
                   code != CURLE_COULDNT_RESOLVE_HOST && code != CURLE_TOO_MANY_REDIRECTS;
    if (code == CURLE_OPERATION_TIMEDOUT)
        return error_set(err, ERR_TIMEOUT,
                         "'%s' sent nothing for %ld seconds: try again, or give "
                         "it longer with --timeout",
                         host, h->idle_sec);
    return error_set(err, ERR_SYS, "ask '%s': %.200s", host,
                     h->why[0] ? h->why : curl_easy_strerror(code));
}

int http_get(struct http *h, const struct http_request *r, struct http_answer *ret,
             struct error *err)
{
    struct exchange x = {.request = r, .answer = ret, .http = h, .err = err};
    struct curl_slist *headers = NULL;
    char range[64];
    CURLcode code;

    *ret = (struct http_answer){.status = 0};
    h->why[0] = 0;
    if (r->accept)
        headers = curl_slist_append(headers, r->accept);
    if (r->auth && r->auth[0])
        headers = curl_slist_append(headers, r->auth);
    set_up(h, &x, headers);
    if (r->from) {
        (void)snprintf(range, sizeof(range), "%llu-", (unsigned long long)r->from);
        (void)curl_easy_setopt(h->curl, CURLOPT_RANGE, range);
    }
    code = curl_easy_perform(h->curl);
    (void)curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &ret->status);
    curl_slist_free_all(headers);
    if (x.refused)
        return -(int)err->code;
    if (code != CURLE_OK)
        return failed(h, code, r->url, ret, err);
    /* An empty body never came by on_data. */
    if (ret->status == 200 && !x.started && r->on_start)
        return r->on_start(r->ctx, false, err);
    ret->transient = ret->status == 429 || ret->status == 408 || ret->status >= 500;
    return 0;
}
