/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit has every call: `call.begin` before it ran, `call.end` when its end was known (of one
 * that only looks, the beginning alone: it says so). From these a lost file is made anew, and one
 * that lost its last writes (a kill before store_flush(), a damaged -wal) is brought up to date.
 * What the audit does not have are results.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "store/internal.h"

#define SLACK_MS    60000 /* between a call's own time and that of its record */
#define STRAY_LINES 64    /* older lines in a row, and the rest is older, too */

struct rebuild {
    struct store *store;
    uint64_t calls; /* that the file did not have */
};

static const char *text(const json_t *record, const char *field)
{
    const char *s = json_string_value(json_object_get(record, field));

    return s && strlen(s) <= LIMIT_STORE_TEXT ? s : "";
}

static int add_begin(struct rebuild *b, const json_t *record, int64_t when, struct error *err)
{
    const char *key = text(record, "key"), *session = text(record, "session");
    bool denied = strcmp(text(record, "verdict"), "allow") != 0;
    struct store_call c = {.key = key[0] && strlen(key) <= LIMIT_CALL_ID ? key : NULL,
                           .token = text(record, "token"),
                           .agent = text(record, "agent"),
                           .session = session,
                           .tool = text(record, "tool"),
                           .target = text(record, "target"),
                           .state = denied ? CALL_DENIED : CALL_RUNNING,
                           .begun_ms = when,
                           .ended_ms = denied ? when : 0};
    int r;

    if (json_is_true(json_object_get(record, "looks"))) /* it is not kept, and has no end */
        return 0;
    (void)snprintf(c.id, sizeof(c.id), "%s", text(record, "call"));
    (void)snprintf(c.request, sizeof(c.request), "%s", text(record, "request"));
    r = calls_rebuild(b->store, &c, err);
    if (r <= 0)
        return r;
    b->calls++;
    return session[0] ? store_session(b->store, session, c.agent, c.token, when, err) : 0;
}

static int add_end(struct rebuild *b, const json_t *record, int64_t when, struct error *err)
{
    autoquery *q = store_query(b->store, Q_CALL_END_REBUILD);
    enum call_state state;
    int r;

    if (!call_state_parse(text(record, "state"), &state) || state == CALL_RUNNING)
        return 0;
    r = store_write(b->store, err);
    if (r < 0)
        return r;
    query_text(q, 1, text(record, "call"));
    query_int(q, 2, state);
    query_int(q, 3, json_integer_value(json_object_get(record, "status")));
    query_int(q, 4, when);
    r = store_run(b->store, q, "end a call of the audit", err);
    return r < 0 ? store_give_up(b->store, r) : store_wrote(b->store, 0, false, err);
}

/* Torn lines and those of others are left out. */
static int add_line(struct rebuild *b, const char *line, struct error *err)
{
    const char *time = line_time(line, strlen(line)), *event;
    json_t *record;
    int r = 0;

    if (!time || !strstr(line, "\"event\":\"call."))
        return 0;
    record = json_loads(line, 0, NULL);
    event = text(record, "event");
    if (strlen(text(record, "call")) != STORE_CALL - 1)
        r = 0;
    else if (strcmp(event, "call.begin") == 0)
        r = add_begin(b, record, line_time_parse(time), err);
    else if (strcmp(event, "call.end") == 0)
        r = add_end(b, record, line_time_parse(time), err);
    json_decref(record);
    return r;
}

static void close_file(FILE **f)
{
    if (*f)
        (void)fclose(*f);
}

/* Whole lines from `at` on. */
static int add_lines(struct rebuild *b, int *fd, off_t at, struct error *err)
{
    cleanup_(close_file) FILE *f = fdopen(*fd, "r");
    autofree char *line = malloc(LIMIT_LINE + 2);
    bool in_line = false;
    int r = 0;

    if (!f || !line)
        return error_sys(err, -ENOMEM, "read the audit");
    *fd = -1; /* the file's now */
    if (fseeko(f, at, SEEK_SET) < 0)
        return error_sys(err, -errno, "read the audit");
    while (r >= 0 && fgets(line, (int)LIMIT_LINE + 2, f)) {
        bool ends = line[0] && line[strlen(line) - 1] == '\n';

        if (!in_line && ends)
            r = add_line(b, line, err);
        in_line = !ends;
    }
    if (r >= 0 && ferror(f))
        return error_sys(err, -EIO, "read the audit");
    return r;
}

static int newest(struct store *s, int64_t *ret, struct error *err)
{
    autoquery *q = store_query(s, Q_CALL_NEWEST);
    int code = sqlite3_step(q);

    *ret = code == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
    return code == SQLITE_ROW || code == SQLITE_DONE ? 0
                                                     : store_fail(s, "find the newest call", err);
}

/* Where the lines begin that the file may not know. */
static int find_start(struct lines *l, int64_t known_ms, off_t *ret, struct error *err)
{
    char since[LINE_TIME];
    unsigned stray = 0;
    int r = 1;

    line_time_format(known_ms - SLACK_MS, since);
    while (stray < STRAY_LINES && l->read < LIMIT_RECORDS_SCAN && (r = lines_prev(l, err)) > 0) {
        const char *time = line_time(l->line, l->line_len);

        stray = time && strncmp(time, since, LINE_TIME - 1) >= 0 ? 0 : stray + 1;
    }
    *ret = l->line_at;
    return r;
}

/* The end of a long audit, from the first line that begins in it. */
static int find_end(struct lines *l, off_t *ret, struct error *err)
{
    off_t size = l->at;
    char c = 0;

    *ret = size > (off_t)LIMIT_REBUILD ? size - (off_t)LIMIT_REBUILD : 0;
    while (*ret > 0 && *ret < size && c != '\n')
        if (pread(l->fd, &c, 1, (*ret)++) < 0)
            return error_sys(err, -errno, "read the audit");
    return 0;
}

static int rebuild_from(struct rebuild *b, int logs, int64_t known_ms, struct error *err)
{
    autolines l = {.fd = -1};
    off_t at = 0;
    int r = lines_open(&l, logs, err);

    if (r <= 0)
        return r;
    r = known_ms ? find_start(&l, known_ms, &at, err) : find_end(&l, &at, err);
    if (r >= 0)
        r = add_lines(b, &l.fd, at, err);
    return r < 0 ? r : b->calls ? calls_rebuilt(b->store, err) : store_flush(b->store, err);
}

int store_rebuild(struct store *s, struct buf *note, struct error *err)
{
    autoclose int logs = openat(s->data, "logs", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct rebuild b = {.store = s};
    int64_t known_ms = 0;
    int r;

    if (logs < 0)
        return errno == ENOENT ? 0 : error_sys(err, -errno, "open folder 'logs'");
    r = newest(s, &known_ms, err);
    if (r >= 0)
        r = rebuild_from(&b, logs, known_ms, err);
    if (r < 0)
        return error_wrap(err, "bring " DB_NAME " up to date");
    if (b.calls)
        buf_printf(note, "%s%s %llu calls from the audit, without their results",
                   note->len ? "; " : "",
                   known_ms ? DB_NAME " lacked its newest calls: it got"
                            : DB_NAME " was made anew: it has",
                   (unsigned long long)b.calls);
    return 0;
}
