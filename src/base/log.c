/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"

static struct {
    const char *program;
    bool json;
    enum log_level least;
} state = {.program = "clawden", .least = LOG_INFO};

void log_init(const char *program)
{
    const char *format = getenv("CLAWDEN_LOG"), *debug = getenv("CLAWDEN_DEBUG");

    state.program = program;
    state.json = format && strcmp(format, "json") == 0;
    state.least = debug && debug[0] == '1' ? LOG_DEBUG : LOG_INFO;
}

static void put_json(struct buf *line, enum log_level level, const char *msg)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    buf_puts(line, "{");
    buf_json_key(line, "time");
    buf_printf(line, "%lld.%03ld", (long long)now.tv_sec, now.tv_nsec / 1000000);
    buf_json_str(line, "program", state.program);
    buf_json_str(line, "level", names[level]);
    buf_json_str(line, "message", msg);
    buf_puts(line, "}\n");
}

/* 0x80-0x9f outside a character of more than two bytes: a terminal may take it for a command. */
static bool is_c1(const char *p, const char *start)
{
    unsigned char c = (unsigned char)*p;
    int back = 1;

    if (c < 0x80 || c > 0x9f)
        return false;
    while (p - back >= start && ((unsigned char)p[-back] & 0xc0) == 0x80 && back < 3)
        back++;
    if (p - back < start)
        return true;
    c = (unsigned char)p[-back];
    return !((c >= 0xc3 && c < 0xe0 && back == 1) || (c >= 0xe0 && c < 0xf0 && back <= 2) ||
             (c >= 0xf0 && back <= 3));
}

/* A message may quote what a box wrote: control bytes never reach the terminal as they are. */
static void put_text(struct buf *line, enum log_level level, const char *msg)
{
    const char *start = msg;

    buf_printf(line, "%s: %s", state.program, level == LOG_WARN ? "warning: " : "");
    for (; *msg; msg++) {
        unsigned char c = (unsigned char)*msg;

        if (c < 0x20 || c == 0x7f || is_c1(msg, start))
            buf_printf(line, "\\x%02x", c);
        else
            buf_append(line, msg, 1);
    }
    buf_puts(line, "\n");
}

void log_printf(enum log_level level, const char *fmt, ...)
{
    char msg[1024];
    va_list ap;
    autobuf line;

    if (level < state.least)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    buf_init(&line, 8 * sizeof(msg));
    if (state.json)
        put_json(&line, level, msg);
    else
        put_text(&line, level, msg);
    if (!line.failed)
        (void)fd_write_full(STDERR_FILENO, line.data, line.len);
}
