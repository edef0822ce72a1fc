/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/redact.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "base/state.h"

#define FILE_NAME "audit.jsonl"
#define HASH_KEY  ",\"hash\":\""
#define SUFFIX_LEN                                                                \
    (sizeof(HASH_KEY) - 1 + 64 + 3) /* ,"hash":"<64>"}\n: every line ends with it \
                                     */
#define FIRST_HASH "0000000000000000000000000000000000000000000000000000000000000000"

int audit_open(struct audit *ret, struct error *err)
{
    autoclose int data = state_open_data(err);
    int dir;

    if (data < 0)
        return error_wrap(err, "audit");
    if (mkdirat(data, "logs", 0700) < 0 && errno != EEXIST)
        return error_sys(err, -errno, "audit: make folder 'logs'");
    dir = openat(data, "logs", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0)
        return error_sys(err, -errno, "audit: open folder 'logs'");
    *ret = (struct audit){.dir = dir};
    return 0;
}

static void close_log(struct audit_file *f)
{
    if (f->is_open)
        (void)close(f->fd);
    f->is_open = false;
}

void audit_close(struct audit *a)
{
    close_log(&a->lines);
    close_log(&a->text);
    close_fd(&a->dir);
}

static bool is_ours(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == geteuid() && !(st->st_mode & 077);
}

static int open_log(const struct audit *a, const char *name, int flags, struct stat *st,
                    struct error *err)
{
    int fd = openat(a->dir, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);

    if (fd < 0)
        return error_sys(err, -errno, "audit: open '%s'", name);
    if (fstat(fd, st) < 0 || !is_ours(st)) {
        (void)close(fd);
        return error_set(err, ERR_DENIED, "audit: '%s' is not a private file of this user (0600)",
                         name);
    }
    return fd;
}

/* Its descriptor, which stays open. Somebody may have moved the file away, or closed it to us. */
static int keep_log(const struct audit *a, struct audit_file *f, const char *name,
                    struct error *err)
{
    struct stat st;
    int fd;

    if (f->is_open && fstatat(a->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        st.st_ino == f->inode && st.st_dev == f->device && is_ours(&st) && st.st_mode & S_IWUSR)
        return f->fd;
    close_log(f);
    fd = open_log(a, name, O_RDWR | O_APPEND | O_CREAT, &st, err);
    if (fd >= 0)
        *f =
            (struct audit_file){.is_open = true, .fd = fd, .device = st.st_dev, .inode = st.st_ino};
    return fd;
}

/*
 * The last line lost its end (a power cut). If only the newline is missing it is whole otherwise,
 * and the chain goes on; else a new line is begun with a new chain, so that what follows can be
 * read.
 */
static int end_torn_line(int fd, off_t size, char hash[SHA256_HEX], struct error *err)
{
    char tail[SUFFIX_LEN - 1];

    if (size >= (off_t)sizeof(tail) &&
        pread(fd, tail, sizeof(tail), size - (off_t)sizeof(tail)) == (ssize_t)sizeof(tail) &&
        memcmp(tail, HASH_KEY, sizeof(HASH_KEY) - 1) == 0 &&
        memcmp(tail + sizeof(tail) - 2, "\"}", 2) == 0)
        memcpy(hash, tail + sizeof(HASH_KEY) - 1, SHA256_HEX - 1);
    if (write(fd, "\n", 1) != 1)
        return error_sys(err, -errno, "audit: end the torn last line");
    return 0;
}

/* The hash that the last line ends with. A torn last line (power cut) is told, not overwritten. */
static int last_hash(int fd, char hash[SHA256_HEX], struct error *err)
{
    char tail[SUFFIX_LEN];
    off_t size = lseek(fd, 0, SEEK_END);

    (void)snprintf(hash, SHA256_HEX, FIRST_HASH);
    if (size <= 0)
        return 0;
    if (size < (off_t)sizeof(tail) ||
        pread(fd, tail, sizeof(tail), size - (off_t)sizeof(tail)) != (ssize_t)sizeof(tail) ||
        memcmp(tail, HASH_KEY, sizeof(HASH_KEY) - 1) != 0 ||
        memcmp(tail + sizeof(tail) - 3, "\"}\n", 3) != 0) {
        return end_torn_line(fd, size, hash, err);
    }
    memcpy(hash, tail + sizeof(HASH_KEY) - 1, SHA256_HEX - 1);
    return 0;
}

/* UTC without libc, which would read the time zone's file for it. Days are counted from 0000-03-01.
 */
static void put_time(struct buf *line, const struct timespec *now)
{
    long long days = now->tv_sec / 86400 + 719468, sec = now->tv_sec % 86400;
    long long era = days / 146097, doe = days % 146097;
    long long yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    long long doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    long long day = doy - (153 * mp + 2) / 5 + 1, month = mp < 10 ? mp + 3 : mp - 9;
    long long year = yoe + era * 400 + (month <= 2);

    buf_json_key(line, "time");
    buf_printf(line, "\"%04lld-%02lld-%02lldT%02lld:%02lld:%02lld.%03ldZ\"", year, month, day,
               sec / 3600, sec / 60 % 60, sec % 60, now->tv_nsec / 1000000);
}

static void chain(const char *prev, const char *line, size_t len, char hash[SHA256_HEX])
{
    struct sha256 s;

    sha256_init(&s);
    sha256_update(&s, prev, SHA256_HEX - 1);
    sha256_update(&s, line, len);
    sha256_finish_hex(&s, hash);
}

/* A field of audit.log: redacted like a word, at most 800 bytes, no byte that could end it. */
static void put_plain(struct buf *line, const char *text)
{
    autobuf word;
    size_t n;

    buf_init(&word, 8 * LIMIT_AUDIT_ARGV);
    redact_word(&word, NULL, text);
    n = word.failed || word.len < 2 ? 0 : word.len - 2; /* without the quotes */
    buf_append(line, n ? word.data + 1 : "", n > 800 ? 800 : n);
}

static int append_text(struct audit *a, const char *event, const char *target,
                       const struct timespec *now, struct error *err)
{
    int fd = keep_log(a, &a->text, "audit.log", err), r;
    autobuf line;

    buf_init(&line, 4 * LIMIT_AUDIT_ARGV);
    if (fd < 0)
        return fd;
    buf_printf(&line, "%lld\t%s\t", (long long)now->tv_sec * 1000 + now->tv_nsec / 1000000, event);
    put_plain(&line, target);
    buf_printf(&line, "\tuid:%u\n", (unsigned)getuid());
    if (line.failed)
        return error_set(err, ERR_TOO_LARGE, "audit: the line of event '%s' is too long", event);
    r = fd_write_full(fd, line.data, line.len);
    return r < 0 ? error_sys(err, r, "audit: write 'audit.log'") : 0;
}

/* The file is locked. */
static int append_line(int fd, const char *event, const struct buf *fields,
                       const struct timespec *now, struct error *err)
{
    char prev[SHA256_HEX], hash[SHA256_HEX];
    autobuf line;
    off_t size;
    int r = last_hash(fd, prev, err);

    buf_init(&line, LIMIT_AUDIT_LINE + SUFFIX_LEN);
    if (r < 0)
        return r;
    buf_puts(&line, "{");
    put_time(&line, now);
    buf_json_str(&line, "event", event);
    if (fields->len) {
        buf_puts(&line, ",");
        buf_append(&line, fields->data, fields->len);
    }
    if (line.failed || fields->failed || line.len > LIMIT_AUDIT_LINE)
        return error_set(err, ERR_TOO_LARGE, "audit: the line of event '%s' is too long", event);
    chain(prev, line.data, line.len, hash);
    buf_printf(&line, HASH_KEY "%s\"}\n", hash);
    size = lseek(fd, 0, SEEK_END);
    r = fd_write_full(fd, line.data, line.len);
    if (r < 0) {
        (void)!ftruncate(fd, size); /* half a line would end the chain */
        return error_sys(err, r, "audit: write '" FILE_NAME "'");
    }
    return 0;
}

int audit_append(struct audit *a, const char *event, const char *target, const struct buf *fields,
                 struct error *err)
{
    int fd = keep_log(a, &a->lines, FILE_NAME, err), r;
    struct timespec now;

    if (fd < 0)
        return fd;
    if (flock(fd, LOCK_EX) < 0)
        return error_sys(err, -errno, "audit: lock '" FILE_NAME "'");
    (void)clock_gettime(CLOCK_REALTIME, &now);
    r = append_line(fd, event, fields, &now, err);
    if (r >= 0)
        r = append_text(a, event, target, &now, err);
    (void)flock(fd, LOCK_UN);
    return r;
}

/* ---- verifying ---- */

static const char *check_line(const char *line, size_t len, char prev[SHA256_HEX])
{
    char hash[SHA256_HEX];
    size_t body = len + 1 - SUFFIX_LEN; /* line comes without its newline */

    if (len + 1 < SUFFIX_LEN || memcmp(line + body, HASH_KEY, sizeof(HASH_KEY) - 1) != 0 ||
        memcmp(line + len - 2, "\"}", 2) != 0)
        return "the line has no hash";
    chain(prev, line, body, hash);
    if (memcmp(hash, line + body + sizeof(HASH_KEY) - 1, 64) != 0)
        return "the line was changed, or one before it was removed or put in";
    memcpy(prev, hash, sizeof(hash));
    return NULL;
}

static void close_file(FILE **f)
{
    if (*f)
        (void)fclose(*f);
}

int audit_verify(struct audit *a, struct audit_check *ret, struct error *err)
{
    struct stat st;
    int fd = open_log(a, FILE_NAME, O_RDONLY, &st, err);
    cleanup_(close_file) FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    char prev[SHA256_HEX] = FIRST_HASH;
    autofree char *line = NULL;
    size_t size = 0;
    off_t at = 0;
    ssize_t n;

    if (!f)
        return fd < 0 ? fd : error_sys(err, -errno, "audit: read '" FILE_NAME "'");
    *ret = (struct audit_check){0};
    /* As far as it is whole now: nobody waits for us while we read. */
    if (flock(fd, LOCK_SH) < 0 || fstat(fd, &st) < 0 || flock(fd, LOCK_UN) < 0)
        return error_sys(err, -errno, "audit: lock '" FILE_NAME "'");
    while (at < st.st_size && (n = getline(&line, &size, f)) > 0) {
        at += n;
        ret->lines++;
        if (n > (ssize_t)LIMIT_AUDIT_LINE + (ssize_t)SUFFIX_LEN)
            ret->why = "the line is longer than any that is written";
        else if (line[n - 1] != '\n')
            ret->why = "the last line is torn";
        else
            ret->why = check_line(line, (size_t)n - 1, prev);
        if (ret->why) {
            ret->bad_line = ret->lines;
            return 0;
        }
    }
    return ferror(f) ? error_sys(err, -EIO, "audit: read '" FILE_NAME "'") : 0;
}
