/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web_fetch and web_search: curl in the session's box with a network, so that its rules decide what
 * is reached and nothing of what comes back is read outside. What curl is told comes on its
 * standard input: a key is in nobody's list of processes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "gateway/back_internal.h"

#define FETCH_BYTES   (256u << 10)
#define FETCH_SECONDS 30.0
#define NOT_CURLS     126 /* from here on a status is the shell's: no key, no curl */

/* A text of curl's configuration. */
static void put_quoted(struct buf *b, const char *text)
{
    buf_puts(b, "\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            buf_puts(b, "\\");
        buf_append(b, text, 1);
    }
    buf_puts(b, "\"\n");
}

static void put_escaped(struct buf *b, const char *text)
{
    for (; *text; text++)
        if ((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
            (*text >= '0' && *text <= '9') || strchr("-._~", *text))
            buf_append(b, text, 1);
        else
            buf_printf(b, "%%%02X", (unsigned char)*text);
}

static double number_or(json_t *args, const char *name, double otherwise)
{
    json_t *v = json_object_get(args, name);

    return v ? json_number_value(v) : otherwise;
}

static int put_fetch(struct buf *b, json_t *args, struct error *err)
{
    const char *url = json_string_value(json_object_get(args, "url"));

    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return error_set(err, ERR_INVALID, "url: it begins with http:// or https://");
    for (const char *c = url; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 127)
            return error_set(err, ERR_INVALID, "url: it has no blanks or control characters in it");
    buf_puts(b, "url = ");
    put_quoted(b, url);
    buf_printf(b, "max-time = %.3f\n", number_or(args, "timeout", FETCH_SECONDS));
    return 0;
}

static void put_search(struct buf *b, json_t *args)
{
    buf_puts(b, "url = \"https://api.search.brave.com/res/v1/web/search?q=");
    put_escaped(b, json_string_value(json_object_get(args, "query")));
    buf_printf(b, "&count=%d\"\n", (int)number_or(args, "count", 5));
    buf_printf(b, "max-time = %.3f\nheader = \"Accept: application/json\"\n", FETCH_SECONDS);
}

int web_words(struct ask *a, char ***ret, struct error *err)
{
    static const char fetch[] = "exec curl -q --config -";
    /* The shell of the box puts the key in: it is there alone. */
    static const char search[] =
        "[ -n \"$BRAVE_API_KEY\" ] || { echo 'BRAVE_API_KEY is not set in the box with a network: "
        "docker.env, \"BRAVE_API_KEY\": \"${BRAVE_API_KEY}\"' >&2; exit 126; }\n"
        "{ cat; printf 'header = \"X-Subscription-Token: %s\"\\n' \"$BRAVE_API_KEY\"; } | curl "
        "--config -";
    bool is_search = strcmp(a->tool->name, "web_search") == 0;
    char **argv = calloc(4, sizeof(*argv));
    json_t *run = json_object();
    autobuf b;
    int r = argv ? 0 : error_sys(err, -ENOMEM, "run curl");

    buf_init(&b, 64u << 10);
    buf_puts(&b, "silent\nshow-error\nlocation\ngloboff\nmax-redirs = 5\nproto = \"=http,https\"\n"
                 "proto-redir = \"=http,https\"\nno-buffer\n");
    /* To the other stream, where no server can write; the call's id is nobody's guess. */
    buf_printf(&b,
               "write-out = \"%%{stderr}\\n%s\\t%%{http_code}\\t%%{content_type}\\t"
               "%%{url_effective}\\n\"\n",
               a->call);
    if (r >= 0 && is_search)
        put_search(&b, a->arguments);
    else if (r >= 0)
        r = put_fetch(&b, a->arguments, err);
    if (r < 0 || b.failed) {
        free(argv);
        json_decref(run);
        return r < 0 ? r : error_set(err, ERR_TOO_LARGE, "url: it is too long");
    }
    (void)json_object_set_new(run, "stdin", json_stringn(b.data, b.len));
    (void)json_object_set_new(run, "timeout",
                              json_real(number_or(a->arguments, "timeout", FETCH_SECONDS) + 5));
    (void)json_object_set_new(a->params, "run", run);
    argv[0] = (char *)"sh";
    argv[1] = (char *)"-c";
    argv[2] = (char *)(is_search ? search : fetch);
    *ret = argv;
    return 0;
}

/* ---- what came of it ---- */

static int failed(const struct job *j, struct error *err)
{
    autobuf b;

    buf_init(&b, 2 * LIMIT_WEB_BYTES);
    (void)spool_text(&j->spool, SPOOL_ERR, &b);
    while (b.len && b.data[b.len - 1] == '\n')
        b.data[--b.len] = 0;
    (void)error_set(err, ERR_UNSUPPORTED, "%.400s",
                    b.len          ? b.data
                    : j->reason[0] ? j->reason
                                   : "curl failed");
    if (j->end == JOB_EXITED && WEXITSTATUS(j->status) < NOT_CURLS) /* it is there: others failed */
        err->sys = EHOSTUNREACH;
    return -(int)err->code;
}

static json_t *search_results(const char *text, size_t len, struct error *err)
{
    json_error_t where;
    json_t *all = json_loadb(text, len, 0, &where), *list = json_array(), *one;
    json_t *found = json_object_get(json_object_get(all, "web"), "results");
    size_t i;

    if (!all) {
        json_decref(list);
        (void)error_set(err, ERR_UNSUPPORTED, "the search did not answer with JSON: %.100s",
                        where.text);
        err->sys = EHOSTUNREACH;
        return NULL;
    }
    json_array_foreach(found, i, one)
    {
        json_t *r = json_object();
        static const char *const names[] = {"title", "url", "description"};

        for (size_t k = 0; k < 3; k++) {
            json_t *v = json_object_get(one, names[k]);

            (void)json_object_set_new(r, names[k],
                                      json_is_string(v) ? json_incref(v) : json_string(""));
        }
        (void)json_array_append_new(list, r);
    }
    json_decref(all);
    return json_pack("{s:o}", "results", list);
}

/* The line that curl writes at its end: status, type, address. */
struct report {
    int status;
    char type[256], url[2048];
};

static bool read_report(const struct ask *a, const struct job *j, struct report *ret)
{
    const char *line = NULL, *tab, *end;
    autobuf text;

    *ret = (struct report){0};
    buf_init(&text, 2 * LIMIT_WEB_BYTES);
    (void)spool_text(&j->spool, SPOOL_ERR, &text);
    for (const char *at = text.data; at && (at = strstr(at, a->call)); at++)
        line = at;
    if (!line || line[sizeof(a->call) - 1] != '\t')
        return false;
    ret->status = (int)strtol(line + sizeof(a->call), NULL, 10);
    tab = strchr(line + sizeof(a->call), '\t');
    end = tab ? strchr(tab + 1, '\t') : NULL;
    if (!end)
        return false;
    (void)snprintf(ret->type, sizeof(ret->type), "%.*s", (int)(end - tab - 1), tab + 1);
    (void)snprintf(ret->url, sizeof(ret->url), "%.*s", (int)strcspn(end + 1, "\n"), end + 1);
    return true;
}

json_t *web_result(struct ask *a, const struct job *j, struct error *err)
{
    size_t most = (size_t)number_or(a->arguments, "maxBytes", FETCH_BYTES);
    uint64_t len = j->spool.bytes[SPOOL_OUT];
    struct report report;
    autobuf b;
    json_t *r;

    buf_init(&b, 2 * LIMIT_WEB_BYTES);
    (void)spool_text(&j->spool, SPOOL_OUT, &b);
    if (j->end != JOB_EXITED || j->status != 0 || !read_report(a, j, &report)) {
        (void)failed(j, err);
        return NULL;
    }
    if (strcmp(a->tool->name, "web_search") == 0)
        return search_results(b.len ? b.data : "", b.len, err);
    r = json_object();
    (void)json_object_set_new(r, "url", tool_text(report.url, strlen(report.url)));
    (void)json_object_set_new(r, "status", json_integer(report.status));
    (void)json_object_set_new(r, "contentType", tool_text(report.type, strlen(report.type)));
    (void)json_object_set_new(r, "content",
                              tool_text(b.len ? b.data : "", b.len > most ? most : b.len));
    (void)json_object_set_new(r, "truncated", json_boolean(len > most));
    return r;
}
