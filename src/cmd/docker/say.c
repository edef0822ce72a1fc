/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cmd/docker/docker.h"
#include "sandbox/sandbox.h"

static bool is_run;

void say_for_run(void)
{
    is_run = true;
}

static void say(const char *before, const char *format, va_list ap)
{
    char text[2048];

    (void)vsnprintf(text, sizeof(text), format, ap);
    for (char *p = text; *p; p++) /* names that a box chose are shown, not obeyed */
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = *p == '\n' || *p == '\t' ? ' ' : '?';
    (void)fflush(stdout);
    (void)fprintf(stderr, "%s%s\n", before, text);
}

int say_daemon(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    say("Error response from daemon: ", format, ap);
    va_end(ap);
    return 1;
}

int say_refused(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    say(is_run ? "docker: Error response from daemon: " : "Error response from daemon: ", format,
        ap);
    va_end(ap);
    return is_run ? STATUS_REFUSED : 1;
}

void say_note(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    say("clawden: ", format, ap);
    va_end(ap);
}

struct box_record *say_find(const char *ref)
{
    struct box_record *r = NULL;
    struct error err;

    if (sandbox_find(ref, &r, &err) >= 0)
        return r;
    if (err.code == ERR_NOT_FOUND)
        (void)say_daemon("No such container: %s", ref);
    else
        (void)say_daemon("%s", err.msg);
    return NULL;
}

int say_each(char **words, int (*fn)(const struct box_record *r, void *arg, struct error *err),
             void *arg)
{
    int status = 0;

    for (; *words; words++) {
        autoptr(box_record) r = say_find(*words);
        struct error err;

        if (!r) {
            status = 1;
        } else if (fn(r, arg, &err) < 0) {
            status = say_daemon("%s", err.msg);
        } else {
            puts(*words);
        }
    }
    return status;
}

const char *say_time(int64_t usec, char *text, size_t size)
{
    time_t seconds = (time_t)(usec / 1000000);
    struct tm tm;
    size_t n;

    if (usec <= 0 || !gmtime_r(&seconds, &tm)) {
        (void)snprintf(text, size, "0001-01-01T00:00:00Z");
        return text;
    }
    n = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(text + n, size - n, ".%06d000Z", (int)(usec % 1000000));
    return text;
}

const char *say_date(int64_t usec, char *text, size_t size)
{
    time_t seconds = (time_t)(usec / 1000000);
    struct tm tm;

    if (!localtime_r(&seconds, &tm) || !strftime(text, size, "%Y-%m-%d %H:%M:%S %z %Z", &tm))
        (void)snprintf(text, size, "0001-01-01 00:00:00 +0000 UTC");
    return text;
}

/* Docker's: three digits of units of 1000, four of 1024. */
const char *say_size(uint64_t bytes, unsigned base, char *text, size_t size)
{
    static const char *const units[2][5] = {{"B", "kB", "MB", "GB", "TB"},
                                            {"B", "KiB", "MiB", "GiB", "TiB"}};
    double n = (double)bytes;
    int i = 0;

    for (; n >= base && i < 4; i++)
        n /= base;
    (void)snprintf(text, size, "%.*g%s", base == 1000 ? 3 : 4, n, units[base == 1024][i]);
    return text;
}

/* Docker's words: one unit, the largest of which there are two or more. */
const char *say_age(int64_t usec, char *text, size_t size)
{
    static const struct {
        long long seconds;
        const char *name;
    } units[] = {{2 * 365 * 86400LL, "years"}, {60 * 86400, "months"}, {14 * 86400, "weeks"},
                 {48 * 3600, "days"},          {90 * 60, "hours"},     {120, "minutes"}};
    static const long long length[] = {365 * 86400LL, 30 * 86400, 7 * 86400, 86400, 3600, 60};
    long long s = usec / 1000000;

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (s >= units[i].seconds) {
            (void)snprintf(text, size, "%lld %s", (s + (i == 4 ? 1800 : 0)) / length[i],
                           units[i].name);
            return text;
        }
    if (s >= 46 * 60)
        (void)snprintf(text, size, "About an hour");
    else if (s >= 60)
        (void)snprintf(text, size, "About a minute");
    else if (s >= 1)
        (void)snprintf(text, size, "%lld second%s", s, s == 1 ? "" : "s");
    else
        (void)snprintf(text, size, "Less than a second");
    return text;
}

void strings_set(char **s, const char *value)
{
    char *copy = strdup(value);

    if (!copy)
        abort();
    free(*s);
    *s = copy;
}

void strings_add(char ***list, const char *s)
{
    size_t n = 0;

    while (*list && (*list)[n])
        n++;
    *list = realloc(*list, (n + 2) * sizeof(**list));
    if (!*list)
        abort();
    (*list)[n] = NULL;
    strings_set(&(*list)[n], s);
    (*list)[n + 1] = NULL;
}
