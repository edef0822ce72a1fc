/* SPDX-License-Identifier: Apache-2.0 */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "cmd/docker/docker.h"
#include "cmd/docker/flags.h"
#include "sandbox/sandbox.h"

enum { P_ALL, P_QUIET, P_NO_TRUNC, P_FILTER, P_FORMAT, P_LAST, P_LATEST, P_SIZE };

static const struct flag rows[] = {
    {"all", 'a', P_ALL, NULL, "boxes that do not run, too"},
    {"quiet", 'q', P_QUIET, NULL, "only ids"},
    {"no-trunc", 0, P_NO_TRUNC, NULL, "whole ids and commands"},
    {"filter", 'f', P_FILTER, "KEY=VALUE",
     "label=K[=V], name=, id=, status=, exited=, ancestor=, network=, before=, since="},
    {"format", 0, P_FORMAT, "TEMPLATE",
     "table, json or a template: .ID .Names .Image .Command .Status .State .Ports .Labels"},
    {"last", 'n', P_LAST, "N", "the newest N"},
    {"latest", 'l', P_LATEST, NULL, "the newest"},
    {"size", 's', P_SIZE, NULL, NULL},
};

static const char columns[] =
    "{\"ID\":\"CONTAINER ID\",\"Names\":\"NAMES\",\"Image\":\"IMAGE\",\"Command\":\"COMMAND\","
    "\"CreatedAt\":\"CREATED "
    "AT\",\"RunningFor\":\"CREATED\",\"Status\":\"STATUS\",\"State\":\"STATE\","
    "\"Ports\":\"PORTS\",\"Labels\":\"LABELS\",\"Mounts\":\"MOUNTS\",\"Networks\":\"NETWORKS\","
    "\"Size\":\"SIZE\",\"LocalVolumes\":\"LOCAL VOLUMES\",\"Label\":{}}";

enum { MAX_FILTERS = 64 };

struct options {
    bool all, quiet, no_trunc;
    const char *format;
    const char *filters[MAX_FILTERS];
    size_t n_filters;
    long last; /* 0: no such limit */
};

static bool is_filter(const char *s)
{
    static const char *const known[] = {"label=",    "name=",    "id=",     "status=", "exited=",
                                        "ancestor=", "network=", "before=", "since="};

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strncmp(s, known[i], strlen(known[i])) == 0)
            return true;
    return false;
}

static bool is_status(const char *s)
{
    static const char *const known[] = {"created", "restarting", "running", "removing",
                                        "paused",  "exited",     "dead"};

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strcmp(s, known[i]) == 0)
            return true;
    return false;
}

static int on_flag(void *arg, const struct flags *f)
{
    struct options *o = arg;
    char *end;

    switch (f->flag->id) {
    case P_ALL:
        o->all = f->on;
        break;
    case P_QUIET:
        o->quiet = f->on;
        break;
    case P_NO_TRUNC:
        o->no_trunc = f->on;
        break;
    case P_FORMAT:
        o->format = f->value;
        break;
    case P_FILTER:
        if (!strchr(f->value, '='))
            return flags_bad(f, "bad format of filter (expected name=value)");
        if (!is_filter(f->value) || o->n_filters == MAX_FILTERS)
            return -say_daemon("invalid filter '%.*s'", (int)strcspn(f->value, "="), f->value);
        if (strncmp(f->value, "status=", 7) == 0 && !is_status(f->value + 7))
            return -say_daemon("invalid filter 'status=%s'", f->value + 7);
        o->filters[o->n_filters++] = f->value;
        break;
    case P_LAST:
        o->last = strtol(f->value, &end, 10);
        if (!f->value[0] || *end)
            return flags_bad(f, "strconv.ParseInt: parsing \"%s\": invalid syntax", f->value);
        break;
    case P_LATEST:
        o->last = f->on;
        break;
    default:
        break;
    }
    o->all |= o->last > 0;
    return 0;
}

/* ---- filters: of one kind any may match, except labels; kinds must all match ---- */

static bool has_label(const struct box_record *r, const char *want)
{
    size_t n = strcspn(want, "=");

    for (size_t i = 0; i < r->n_labels; i++)
        if (strlen(r->labels[i].name) == n && memcmp(r->labels[i].name, want, n) == 0 &&
            (!want[n] || strcmp(r->labels[i].value, want + n + 1) == 0))
            return true;
    return false;
}

/* A regular expression, held against the name with and without its slash, as docker does. */
static bool name_matches(const char *name, const char *want)
{
    char with_slash[256];
    regex_t re;
    bool yes;

    if (regcomp(&re, want, REG_EXTENDED | REG_NOSUB) != 0)
        return strstr(name, want) != NULL;
    (void)snprintf(with_slash, sizeof(with_slash), "/%s", name);
    yes = regexec(&re, name, 0, NULL, 0) == 0 || regexec(&re, with_slash, 0, NULL, 0) == 0;
    regfree(&re);
    return yes;
}

/* When the box was made that before= or since= names. */
static bool is_older(const struct box_record *r, const char *ref, bool *ret_newer)
{
    autoptr(box_record) other = NULL;
    struct error none;

    *ret_newer = false;
    if (sandbox_find(ref, &other, &none) < 0)
        return false;
    *ret_newer = r->created_usec > other->created_usec;
    return r->created_usec < other->created_usec;
}

static bool one_matches(const struct box_record *r, const struct box_state *s, const char *filter)
{
    const char *want = strchr(filter, '=') + 1;
    bool newer;

    switch (filter[0]) {
    case 'l':
        return has_label(r, want);
    case 'n':
        return filter[1] == 'a' ? name_matches(r->name, want)
                                : strcmp(r->network ? r->network : "none", want) == 0;
    case 'i':
        return strncmp(r->id, want, strlen(want)) == 0;
    case 'a':
        return strcmp(r->image, want) == 0;
    case 'b':
        return is_older(r, want, &newer);
    case 'e':
        return !s->running && s->started_usec && s->exit_code == strtol(want, NULL, 10);
    default:
        if (filter[1] == 'i') /* since=, status= */
            return !is_older(r, want, &newer) && newer;
        return strcmp(describe_status(s), want) == 0;
    }
}

/* Two of the same kind? name= and network= begin alike, so do since= and status=. */
static bool is_same_kind(const char *a, const char *b)
{
    return a[0] == b[0] && a[1] == b[1];
}

static bool matches(const struct box_record *r, const struct box_state *s, const struct options *o)
{
    for (size_t i = 0; i < o->n_filters; i++) {
        bool any = one_matches(r, s, o->filters[i]);

        for (size_t k = 0; k < o->n_filters && !any && o->filters[i][0] != 'l'; k++)
            any = is_same_kind(o->filters[k], o->filters[i]) && one_matches(r, s, o->filters[k]);
        if (!any)
            return false;
    }
    return true;
}

static bool asks_for_status(const struct options *o)
{
    for (size_t i = 0; i < o->n_filters; i++)
        if (strncmp(o->filters[i], "status=", 7) == 0 || o->filters[i][0] == 'e')
            return true;
    return false;
}

/* ---- one row ---- */

static int64_t now_usec(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static void put_status(struct buf *b, const struct box_state *s)
{
    char age[64], text[128];

    if (s->running)
        (void)snprintf(text, sizeof(text), "Up %s%s",
                       say_age(now_usec() - s->started_usec, age, sizeof(age)),
                       s->paused ? " (Paused)" : "");
    else if (s->started_usec)
        (void)snprintf(text, sizeof(text), "Exited (%d) %s ago", s->exit_code,
                       say_age(now_usec() - s->finished_usec, age, sizeof(age)));
    else
        (void)snprintf(text, sizeof(text), "Created");
    buf_json_str(b, "Status", text);
}

static void put_command(struct buf *b, const struct box_record *r, bool no_trunc)
{
    autobuf text;

    buf_init(&text, LIMIT_DOCKER_TEXT);
    for (size_t i = 0; r->command && r->command[i]; i++) {
        const char *quote = i && strchr(r->command[i], ' ') ? "'" : "";

        buf_printf(&text, "%s%s%s%s", i ? " " : "", quote, r->command[i], quote);
    }
    if (text.failed || !text.data)
        buf_clear(&text);
    buf_json_key(b, "Command");
    if (no_trunc || text.len <= 20) {
        autobuf quoted;

        buf_init(&quoted, LIMIT_DOCKER_TEXT);
        buf_printf(&quoted, "\"%s\"", text.data ? text.data : "");
        buf_json_string(b, quoted.data, quoted.len);
    } else {
        char cut[64];

        (void)snprintf(cut, sizeof(cut), "\"%.19s\u2026\"", text.data);
        buf_json_string(b, cut, strlen(cut));
    }
}

static void put_labels(struct buf *b, const struct box_record *r)
{
    autobuf text;

    buf_init(&text, LIMIT_DOCKER_TEXT);
    for (size_t i = 0; i < r->n_labels; i++)
        buf_printf(&text, "%s%s=%s", i ? "," : "", r->labels[i].name, r->labels[i].value);
    buf_json_str(b, "Labels", text.data && !text.failed ? text.data : "");
    buf_json_key(b, "Label");
    buf_puts(b, "{");
    for (size_t i = 0; i < r->n_labels; i++)
        buf_json_str(b, r->labels[i].name, r->labels[i].value);
    buf_puts(b, "}");
}

static void put_ports(struct buf *b, const struct box_record *r, const struct box_state *s)
{
    autobuf list;

    buf_init(&list, LIMIT_DOCKER_TEXT);
    for (size_t i = 0; s->running && i < r->n_ports && i < LIMIT_PUBLISHED; i++) {
        char at[64];

        if (!s->published[i])
            continue;
        describe_published(&r->ports[i], s->published[i], at, sizeof(at));
        buf_printf(&list, "%s%s->%u/%s", list.len ? ", " : "", at, r->ports[i].port,
                   r->ports[i].protocol);
    }
    buf_json_str(b, "Ports", list.len ? list.data : "");
}

static void put_mounts(struct buf *b, const struct box_record *r)
{
    autobuf text;

    buf_init(&text, LIMIT_DOCKER_TEXT);
    for (size_t i = 0; i < r->n_mounts; i++)
        if (r->mounts[i].kind == BOX_BIND)
            buf_printf(&text, "%s%s", text.len ? "," : "", r->mounts[i].source);
    buf_json_str(b, "Mounts", text.data && !text.failed ? text.data : "");
}

static char *make_row(const struct box_record *r, const struct box_state *s, bool no_trunc)
{
    char text[128];
    autobuf b;

    buf_init(&b, LIMIT_DOCKER_TEXT);
    buf_puts(&b, "{");
    put_command(&b, r, no_trunc);
    buf_json_str(&b, "CreatedAt", say_date(r->created_usec, text, sizeof(text)));
    (void)snprintf(text, sizeof(text), "%.*s", no_trunc ? 64 : 12, r->id);
    buf_json_str(&b, "ID", text);
    buf_json_str(&b, "Image", r->image);
    put_labels(&b, r);
    buf_json_str(&b, "LocalVolumes", "0");
    put_mounts(&b, r);
    buf_json_str(&b, "Names", r->name);
    buf_json_str(&b, "Networks", r->network ? r->network : "none");
    put_ports(&b, r, s);
    (void)say_age(now_usec() - r->created_usec, text, sizeof(text) - 8);
    (void)snprintf(text + strlen(text), 8, " ago");
    buf_json_str(&b, "RunningFor", text);
    buf_json_str(&b, "Size", "0B");
    buf_json_str(&b, "State", describe_status(s));
    put_status(&b, s);
    buf_puts(&b, "}");
    return b.failed ? NULL : TAKE_PTR(b.data);
}

/* ---- the verb ---- */

static size_t make_rows(struct box_record **list, const struct options *o, char **ret)
{
    bool all = o->all || asks_for_status(o);
    size_t n = 0;

    for (size_t i = 0; list[i] && (!o->last || n < (size_t)o->last); i++) {
        struct box_state s = {0};
        struct error err;

        if (sandbox_state(list[i], &s, &err) < 0 || (!all && !s.running) ||
            !matches(list[i], &s, o))
            continue; /* a box that went away meanwhile is not there */
        ret[n] = make_row(list[i], &s, o->no_trunc);
        n += ret[n] != NULL;
    }
    return n;
}

int cmd_ps(int argc, char **argv)
{
    struct flags f = {.verb = "ps",
                      .rows = rows,
                      .n_rows = sizeof(rows) / sizeof(*rows),
                      .argc = argc,
                      .argv = argv};
    struct box_record **list = NULL;
    autofree char **lines = NULL;
    struct options o = {0};
    struct error err;
    size_t n = 0;
    int status;

    if (!flags_read(&f, 0, 0, on_flag, &o))
        return f.status;
    if (sandbox_list(&list, &err) < 0)
        return say_daemon("%s", err.msg);
    while (list && list[n])
        n++;
    lines = calloc(n + 1, sizeof(*lines));
    if (!lines)
        abort();
    n = list ? make_rows(list, &o, lines) : 0;
    status =
        show_rows(o.format,
                  "{{.ID}}\t{{.Image}}\t{{.Command}}\t{{.RunningFor}}\t{{.Status}}\t{{.Ports}}\t"
                  "{{.Names}}",
                  columns, lines, n, o.quiet);
    for (size_t i = 0; i < n; i++)
        free(lines[i]);
    sandbox_list_free(list);
    return status;
}
