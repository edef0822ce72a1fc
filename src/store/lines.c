/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "store/internal.h"

#define FILE_NAME "audit.jsonl"
#define BLOCK     (64u << 10)
#define TIME_KEY  "{\"time\":\""

int lines_open(struct lines *l, int logs, struct error *err)
{
    autoclose int fd = openat(logs, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;

    *l = (struct lines){.fd = -1};
    if (fd < 0)
        return errno == ENOENT ? 0 : error_sys(err, -errno, "open '" FILE_NAME "'");
    if (fstat(fd, &st) < 0)
        return error_sys(err, -errno, "look at '" FILE_NAME "'");
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
        return error_set(err, ERR_DENIED,
                         "'" FILE_NAME "' is not a private file of this user: chmod 600 it");
    /* A block, and before it what the block after it began with. */
    l->block = malloc(BLOCK + LIMIT_LINE);
    if (!l->block)
        return error_sys(err, -ENOMEM, "read '" FILE_NAME "'");
    l->fd = TAKE_FD(fd);
    l->at = st.st_size;
    l->line_at = st.st_size;
    return 1;
}

void lines_done(struct lines *l)
{
    free(TAKE_PTR(l->block));
    close_fd(&l->fd);
}

/* Puts the block before what is there in front of it. */
static int read_before(struct lines *l, struct error *err)
{
    size_t n = l->at < (off_t)BLOCK ? (size_t)l->at : BLOCK, got = 0;

    if (l->len > LIMIT_LINE) {
        l->in_long = true;
        l->len = 0;
    }
    memmove(l->block + n, l->block, l->len);
    while (got < n) {
        ssize_t r = pread(l->fd, l->block + got, n - got, l->at - (off_t)n + (off_t)got);

        if (r == 0 || (r < 0 && errno != EINTR))
            return error_sys(err, r == 0 ? -EIO : -errno, "read '" FILE_NAME "'");
        got += r < 0 ? 0 : (size_t)r;
    }
    l->at -= (off_t)n;
    l->len += n;
    l->read += n;
    return 0;
}

int lines_prev(struct lines *l, struct error *err)
{
    for (;;) {
        const char *end = l->len ? memrchr(l->block, '\n', l->len) : NULL;
        size_t from = end ? (size_t)(end - l->block) + 1 : 0;
        bool whole = (end || l->at == 0) && !l->in_long && l->len - from <= LIMIT_LINE;

        if (!end && l->at > 0) {
            int r = read_before(l, err);

            if (r < 0)
                return r;
            continue;
        }
        if (!end && l->len == 0)
            return 0;
        l->line = l->block + from;
        l->line_len = l->len - from;
        l->line_at = l->at + (off_t)from;
        l->len = end ? from - 1 : 0;
        l->in_long = false;
        if (whole && l->line_len > 0)
            return 1;
    }
}

/* ---- times ---- */

const char *line_time(const char *line, size_t len)
{
    const size_t at = sizeof(TIME_KEY) - 1;

    if (len < at + LINE_TIME || memcmp(line, TIME_KEY, at) != 0 || line[at + LINE_TIME - 1] != '"')
        return NULL;
    return line + at;
}

void line_time_format(int64_t ms, char ret[LINE_TIME])
{
    time_t sec = (time_t)(ms / 1000);
    struct tm tm;

    if (ms < 0 || !gmtime_r(&sec, &tm) || tm.tm_year > 8099)
        (void)snprintf(ret, LINE_TIME, "%s", ms < 0 ? "" : "9999");
    else
        (void)snprintf(ret, LINE_TIME, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
                       tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                       (int)(ms % 1000));
}

int64_t line_time_parse(const char *time)
{
    struct tm tm = {0};
    int ms = 0;

    if (sscanf(time, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
               &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms) != 7)
        return 0;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    return (int64_t)timegm(&tm) * 1000 + ms;
}
