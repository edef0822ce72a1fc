/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/units.h"
#include "base/usage.h"
#include "cmd/clawden/clawden.h"

static void usage(void)
{
    puts("clawden audit shows what ran: one line for the beginning and one for the end of every "
         "run.\n"
         "\n"
         "  clawden audit [--follow] [--json]   print the record, and go on as it grows\n"
         "  clawden audit verify [--json]       check that no line was changed, removed or put in\n"
         "\n"
         "The record is logs/audit.jsonl in ~/.clawden (or CLAWDEN_DATA_DIR). verify exits 1 if "
         "the chain is broken.");
}

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

/* Words of a command as a person would read them; a terminal never sees a control byte. */
static void put_argv(struct buf *b, const json_t *argv)
{
    size_t i;
    json_t *word;

    json_array_foreach(argv, i, word)
    {
        const char *s = json_string_value(word);
        bool plain = s && *s && !strpbrk(s, " \t\n'\"\\$`;&|<>*?()");

        buf_puts(b, i ? " " : "");
        if (plain)
            buf_puts(b, s);
        else
            buf_json_string(b, s ? s : "", s ? strlen(s) : 0);
    }
}

/* In the unit that the limit has. */
static const char *amount(const json_t *limit, const char *key, char *text, size_t size)
{
    long long n = json_integer_value(json_object_get(limit, key));
    const char *unit = text_of(limit, "unit");

    if (n >= 0 && strcmp(unit, "microseconds") == 0)
        return units_format_usec((uint64_t)n, text, size);
    if (n >= 0 && strcmp(unit, "bytes") == 0)
        return units_format_size((uint64_t)n, text, size);
    (void)snprintf(text, size, "%lld", n);
    return text;
}

static void put_end(struct buf *b, const json_t *o)
{
    const json_t *limit = json_object_get(o, "limit"),
                 *peak = json_object_get(o, "peak_memory_bytes");
    char value[32], seen[32];

    buf_printf(b, "end    exit %lld  wall %.3fs  cpu %.3fs",
               (long long)json_integer_value(json_object_get(o, "exit")),
               json_number_value(json_object_get(o, "wall_seconds")),
               json_number_value(json_object_get(o, "cpu_seconds")));
    if (peak)
        buf_printf(b, "  peak %lldK", (long long)json_integer_value(peak) / 1024);
    if (json_is_object(limit))
        buf_printf(b, "  LIMIT %s %s (%s seen)", text_of(limit, "kind"),
                   amount(limit, "limit", value, sizeof(value)),
                   amount(limit, "observed", seen, sizeof(seen)));
}

/* A connection that a box asked for, or its end. */
static void put_egress(struct buf *b, const json_t *o, const char *event)
{
    buf_printf(b, "%s  %s", event, text_of(o, "target"));
    if (strcmp(event, "egress.end") == 0)
        buf_printf(b, "  out %lld  in %lld bytes",
                   (long long)json_integer_value(json_object_get(o, "bytes_out")),
                   (long long)json_integer_value(json_object_get(o, "bytes_in")));
    else if (strcmp(event, "egress.allow") == 0)
        buf_printf(b, "  %s  (rule %s)", text_of(o, "address"), text_of(o, "rule"));
    else
        buf_printf(b, "  %s", text_of(o, "reason"));
}

/* A call through the gateway. */
static void put_call(struct buf *b, const json_t *o, const char *event)
{
    if (strcmp(event, "call.begin") == 0)
        buf_printf(b, "call   %s %s  %s %s  (%s)", text_of(o, "tool"), text_of(o, "session"),
                   text_of(o, "verdict"), text_of(o, "route"), text_of(o, "target"));
    else
        buf_printf(b, "%s  %s %s  %s  wall %.3fs", event, text_of(o, "tool"), text_of(o, "session"),
                   text_of(o, "state"), json_number_value(json_object_get(o, "wallSeconds")));
}

/* A call that waited for a person's yes. */
static void put_approval(struct buf *b, const json_t *o, const char *event)
{
    buf_printf(b, "%s  %s %s  %s  (%s)", event, text_of(o, "tool"), text_of(o, "session"),
               text_of(o, "by"), text_of(o, "target"));
}

static void print_event(const char *line)
{
    json_t *o = json_loads(line, 0, NULL);
    static const char *const ids[] = {"box", "call", "approval", "token"};
    const char *event, *id = "";
    autobuf b;

    buf_init(&b, LIMIT_AUDIT_LINE);
    if (!o) {
        printf("? a line that is not JSON: see 'clawden audit verify'\n");
        return;
    }
    event = text_of(o, "event");
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids) && !id[0]; i++)
        id = text_of(o, ids[i]);
    buf_printf(&b, "%s  %-12.12s  ", text_of(o, "time"), id);
    if (strcmp(event, "run.begin") == 0 || strcmp(event, "exec.begin") == 0) {
        buf_puts(&b, "begin  ");
        put_argv(&b, json_object_get(o, "argv"));
    } else if (strcmp(event, "run.end") == 0 || strcmp(event, "run.limit") == 0 ||
               strcmp(event, "exec.end") == 0) {
        put_end(&b, o);
    } else if (strncmp(event, "call.", 5) == 0 || strcmp(event, "process.end") == 0) {
        put_call(&b, o, event);
    } else if (strncmp(event, "egress.", 7) == 0) {
        put_egress(&b, o, event);
    } else if (strncmp(event, "approval.", 9) == 0) {
        put_approval(&b, o, event);
    } else {
        buf_printf(&b, "%s  %s  %s", event, text_of(o, "target"), text_of(o, "name"));
    }
    printf("%s\n", b.failed ? "(too long)" : b.data);
    json_decref(o);
}

static void close_file(FILE **f)
{
    if (*f)
        (void)fclose(*f);
}

/* Prints what is there; with `follow`, waits for more until interrupted. */
static int show(const struct audit *a, bool follow, bool json)
{
    autoclose int watch = -1;
    int fd = openat(a->dir, "audit.jsonl",
                    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (follow ? O_CREAT : 0), 0600);
    cleanup_(close_file) FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    autofree char *line = NULL;
    size_t size = 0;
    char path[64];

    if (!f) {
        if (errno == ENOENT)
            return 0; /* nothing ran yet */
        log_error("read the audit record: %s", strerror(errno));
        return 1;
    }
    if (follow) {
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        watch = inotify_init1(IN_CLOEXEC);
        (void)inotify_add_watch(watch, path, IN_MODIFY);
    }
    for (;;) {
        char events[4096];

        while (getline(&line, &size, f) > 0) {
            if (json)
                (void)fputs(line, stdout);
            else
                print_event(line);
        }
        if (fflush(stdout) != 0 || !follow || read(watch, events, sizeof(events)) <= 0)
            return 0;
        clearerr(f);
    }
}

static int verify(struct audit *a, bool json)
{
    struct audit_check c;
    struct error err;

    if (faccessat(a->dir, "audit.jsonl", F_OK, 0) < 0) {
        puts(json ? "{\"lines\":0,\"ok\":true}" : "nothing is recorded yet");
        return 0;
    }
    if (audit_verify(a, &c, &err) < 0) {
        log_error("%s", err.msg);
        return 1;
    }
    if (json)
        printf("{\"lines\":%lu,\"ok\":%s,\"bad_line\":%lu,\"why\":\"%s\"}\n", c.lines,
               c.bad_line ? "false" : "true", c.bad_line, c.why ? c.why : "");
    else if (c.bad_line)
        printf("BROKEN at line %lu: %s\n", c.bad_line, c.why);
    else
        printf("ok: %lu lines, the chain holds\n", c.lines);
    return c.bad_line ? 1 : 0;
}

int cmd_audit(int argc, char **argv)
{
    bool follow = false, json = false, check = false;
    struct audit a = {.dir = -1};
    struct error err;
    int r;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--follow") == 0 || strcmp(argv[i], "-f") == 0) {
            follow = true;
        } else if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "verify") == 0) {
            check = true;
        } else {
            if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
                usage();
                return 0;
            }
            return usage_unknown("clawden audit", argv[i]);
        }
    }
    if (audit_open(&a, &err) < 0) {
        log_error("%s", err.msg);
        return 1;
    }
    r = check ? verify(&a, json) : show(&a, follow, json);
    audit_close(&a);
    return r;
}
