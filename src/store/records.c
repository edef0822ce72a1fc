/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit, asked: read from its end, so that what is new is found at once however long the file
 * is. Lines that cannot match are left out before they are parsed; torn ones are left out, too.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "store/internal.h"

#define LIMIT_WANTED 512u /* bytes of a value that is looked for; longer ones match nothing */

/* One field that must have one value. */
struct wanted {
    const char *field, *value;
    char text[LIMIT_WANTED + 3]; /* as it stands in a line, quoted; empty: it may stand otherwise */
    size_t len;
    bool prefix;
};

struct want {
    struct wanted fields[6];
    size_t n;
    const char *since, *until;
    size_t since_len, until_len;
};

/* Characters that buf_json_string() and redact_word() write as they are. */
static bool is_plain(const char *s, size_t n)
{
    return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-") >= n;
}

static void want_field(struct want *w, const char *field, const char *value)
{
    struct wanted *f = &w->fields[w->n];
    size_t len = value ? strlen(value) : 0;

    if (!value)
        return;
    w->n++;
    *f = (struct wanted){.field = field, .value = value, .len = len};
    if (strcmp(field, "event") == 0 && len && value[len - 1] == '*') {
        f->prefix = true;
        f->len = --len;
    }
    if (len <= LIMIT_WANTED && is_plain(value, len))
        (void)snprintf(f->text, sizeof(f->text), "\"%.*s%s", (int)len, value,
                       f->prefix ? "" : "\"");
}

/* A time, or the beginning of one; without the Z, which would stand before a fraction. */
static int want_time(const char *time, const char **ret, size_t *ret_len, struct error *err)
{
    static const char shape[] = "0000-00-00T00:00:00.000";
    size_t n = time ? strlen(time) : 0;

    if (n && time[n - 1] == 'Z')
        n--;
    *ret = time;
    *ret_len = n;
    if (n > sizeof(shape) - 1)
        return error_set(err, ERR_INVALID, "time '%.40s' is longer than 2026-11-15T12:00:00.000Z",
                         time);
    for (size_t i = 0; i < n; i++)
        if (shape[i] == '0' ? time[i] < '0' || time[i] > '9' : time[i] != shape[i])
            return error_set(err, ERR_INVALID,
                             "time '%s' is not as in 2026-11-15T12:00:00Z, or a beginning of that",
                             time);
    return 0;
}

static int make_want(const struct records_filter *f, struct want *w, struct error *err)
{
    int r = want_time(f->since, &w->since, &w->since_len, err);

    if (r >= 0)
        r = want_time(f->until, &w->until, &w->until_len, err);
    if (r < 0)
        return r;
    want_field(w, "event", f->event);
    want_field(w, "call", f->call);
    want_field(w, "session", f->session);
    want_field(w, "agent", f->agent);
    want_field(w, "token", f->token);
    want_field(w, "tool", f->tool);
    return 0;
}

/* Can this line match at all? Cheap, and yes in doubt. */
static bool may_match(const struct want *w, const struct lines *l)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->fields[i].text[0] &&
            !memmem(l->line, l->line_len, w->fields[i].text, strlen(w->fields[i].text)))
            return false;
    return true;
}

static bool matches(const struct want *w, const json_t *record)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct wanted *f = &w->fields[i];
        const char *has = json_string_value(json_object_get(record, f->field));

        if (!has || strncmp(has, f->value, f->len) != 0 || (!f->prefix && has[f->len]))
            return false;
    }
    return true;
}

/* Is it before `since` (-1), after `until` (1), or between? A line without a time is before. */
static int place_in_time(const struct want *w, const struct lines *l)
{
    const char *time = line_time(l->line, l->line_len);

    if (w->since_len && (!time || strncmp(time, w->since, w->since_len) < 0))
        return -1;
    return w->until_len && (!time || strncmp(time, w->until, w->until_len) > 0);
}

/* Appends the line if it is wanted; 1 if it was, but there is no room. */
static int take_line(const struct want *w, const struct lines *l, json_t *list, size_t limit,
                     struct error *err)
{
    json_t *record = may_match(w, l) ? json_loadb(l->line, l->line_len, 0, NULL) : NULL;
    int r = 0;

    if (json_is_object(record) && matches(w, record)) {
        if (json_array_size(list) >= limit)
            r = 1;
        else if (json_array_append(list, record) != 0)
            r = error_sys(err, -ENOMEM, "read the audit");
    }
    json_decref(record);
    return r;
}

static int scan(struct lines *l, const struct want *w, size_t limit, json_t *list, bool *ret_more,
                struct error *err)
{
    unsigned stray = 0;
    int r;

    while ((r = lines_prev(l, err)) > 0) {
        int when = place_in_time(w, l);

        stray = when < 0 ? stray + 1 : 0;
        if (stray > LIMIT_STRAY_RECORDS)
            return 0;
        if (when == 0)
            r = take_line(w, l, list, limit, err);
        else
            r = 0;
        if (r < 0)
            return r;
        if (r > 0 || l->read > LIMIT_RECORDS_SCAN) {
            *ret_more = true;
            return 0;
        }
    }
    return r;
}

int records_query(int logs, const struct records_filter *f, json_t **ret, bool *ret_more,
                  struct error *err)
{
    struct want w = {0};
    autolines l = {.fd = -1};
    bool more = false;
    json_t *list;
    int r = make_want(f, &w, err);

    if (r >= 0)
        r = lines_open(&l, logs, err);
    if (r < 0)
        return r;
    list = json_array();
    if (!list)
        return error_sys(err, -ENOMEM, "read the audit");
    if (r > 0)
        r = scan(&l, &w, rows_limit(f->limit), list, &more, err);
    if (r < 0) {
        json_decref(list);
        return r;
    }
    *ret = list;
    *ret_more = more;
    return 0;
}
