/* SPDX-License-Identifier: Apache-2.0 */
/* stat FOLDER NAME: "type|bytes|time of change of content" as GNU stat prints it. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "cmd/fs/fs.h"
#include "cmd/fs/text.h"

static const char *type_name(const struct stat *st)
{
    switch (st->st_mode & S_IFMT) {
    case S_IFREG:
        return st->st_size ? "regular file" : "regular empty file";
    case S_IFDIR:
        return "directory";
    case S_IFLNK:
        return "symbolic link";
    case S_IFIFO:
        return "fifo";
    case S_IFSOCK:
        return "socket";
    case S_IFBLK:
        return "block special file";
    case S_IFCHR:
        return "character special file";
    default:
        return "weird file";
    }
}

static void put(struct buf *b, long long n, int digits, const char *then)
{
    text_number(b, n, digits);
    buf_puts(b, then);
}

/* In the box's time zone, with its offset. */
static void put_time(struct buf *b, const struct timespec *t)
{
    struct tm tm = {0};
    long minutes;

    if (!localtime_r(&t->tv_sec, &tm)) {
        put(b, t->tv_sec, 1, ".");
        put(b, t->tv_nsec, 9, "");
        return;
    }
    put(b, tm.tm_year + 1900LL, 4, "-");
    put(b, tm.tm_mon + 1, 2, "-");
    put(b, tm.tm_mday, 2, " ");
    put(b, tm.tm_hour, 2, ":");
    put(b, tm.tm_min, 2, ":");
    put(b, tm.tm_sec, 2, ".");
    put(b, t->tv_nsec, 9, tm.tm_gmtoff < 0 ? " -" : " +");
    minutes = (tm.tm_gmtoff < 0 ? -tm.tm_gmtoff : tm.tm_gmtoff) / 60;
    put(b, minutes / 60 * 100 + minutes % 60, 4, "");
}

static int fail(int status, const char *text, const char *name, const char *then)
{
    autobuf b;

    buf_init(&b, LIMIT_FS_MESSAGE);
    buf_puts(&b, text);
    buf_puts(&b, name);
    buf_puts(&b, then);
    buf_puts(&b, "\n");
    if (!b.failed)
        (void)fd_write_full(STDERR_FILENO, b.data, b.len);
    return status;
}

int fs_stat(char **args)
{
    struct stat st;
    autobuf b;

    buf_init(&b, LIMIT_FS_MESSAGE);
    /* The shell's words, without the reason: the client tells "no such file" from other failures by
     * the text, and a missing folder is to it another failure. */
    if (chdir(args[0]) < 0)
        return fail(2, "openclaw-sandbox-fs: 2: cd: can't cd to ", args[0], "");
    if (lstat(args[1], &st) < 0) {
        autobuf why;

        buf_init(&why, LIMIT_FS_MESSAGE);
        buf_puts(&why, "': ");
        buf_puts(&why, fault_text(errno));
        return fail(1, "stat: cannot statx '", args[1], why.failed ? "'" : why.data);
    }
    buf_puts(&b, type_name(&st));
    buf_puts(&b, "|");
    put(&b, st.st_size, 1, "|");
    put_time(&b, &st.st_mtim);
    buf_puts(&b, "\n");
    return fs_answer(&b);
}
