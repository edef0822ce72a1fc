/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/fs/fs.h"
#include "cmd/fs/text.h"

int dir_open(int at, const char *name, struct fault *f)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? fault_sys(f, errno, name) : fd;
}

/* ---- walking ---- */

/* The next part of a path, cut out of it; NULL at its end. */
static char *next_part(char **rel)
{
    for (;;) {
        char *part = *rel, *slash;

        if (!*part)
            return NULL;
        slash = strchr(part, '/');
        if (slash)
            *slash = 0;
        *rel = slash ? slash + 1 : part + strlen(part);
        if (*part && strcmp(part, ".") != 0)
            return part;
    }
}

/* Before anything is opened or made: a path that goes up anywhere is refused as a whole. */
static bool goes_up(const char *rel)
{
    for (const char *p = rel;; p++) {
        if (p[0] == '.' && p[1] == '.' && (p[2] == '/' || !p[2]))
            return true;
        p = strchr(p, '/');
        if (!p)
            return false;
    }
}

/* Whoever made it first, it must be a folder and no link. */
static int make_and_open(int at, const char *part, struct fault *f)
{
    if (mkdirat(at, part, 0777) < 0 && errno != EEXIST)
        return fault_sys(f, errno, part);
    return dir_open(at, part, f);
}

int dir_walk(int root, char *rel, bool make, struct fault *f)
{
    autoclose int at = fcntl(root, F_DUPFD_CLOEXEC, 0);

    if (at < 0)
        return fault_sys(f, errno, NULL);
    if (goes_up(rel))
        return fault_say(f, EPERM, "path traversal is not allowed", "..");
    for (char *part; (part = next_part(&rel));) {
        int next = dir_open(at, part, f);

        if (next == -ENOENT && make)
            next = make_and_open(at, part, f);
        if (next < 0)
            return next;
        (void)close(at);
        at = next;
    }
    return TAKE_FD(at);
}

/* ---- listing ---- */

struct entry { /* struct linux_dirent64 */
    uint64_t ino;
    int64_t off;
    uint16_t len;
    uint8_t type;
    char name[];
};

/* DT_ of <dirent.h>, which would bring its own struct. */
enum { TYPE_UNKNOWN = 0, TYPE_DIR = 4, TYPE_FILE = 8 };

static int
each_entry(int fd, int (*on_entry)(int fd, const struct entry *e, struct buf *b, struct fault *f),
           struct buf *b, struct fault *f)
{
    /* One for all: a folder is read to its end before anything is done with its names. */
    static _Alignas(struct entry) char space[LIMIT_FS_ENTRIES];
    long n;

    while ((n = syscall(SYS_getdents64, fd, space, sizeof(space))) > 0)
        for (long at = 0; at < n;) {
            const struct entry *e = (const void *)(space + at);
            int r = 0;

            at += e->len;
            if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
                r = on_entry(fd, e, b, f);
            if (r < 0)
                return r;
        }
    if (n < 0)
        return fault_sys(f, errno, NULL);
    return b->failed ? fault_say(f, ENOMEM, "too many names", NULL) : 0;
}

static int add_name(int fd, const struct entry *e, struct buf *b, struct fault *f)
{
    (void)fd;
    (void)f;
    buf_append(b, e->name, strlen(e->name) + 1);
    return 0;
}

int dir_names(int fd, struct buf *names, struct fault *f)
{
    return each_entry(fd, add_name, names, f);
}

static int add_json(int fd, const struct entry *e, struct buf *b, struct fault *f)
{
    unsigned type = e->type;

    if (type == TYPE_UNKNOWN) { /* the file system does not say */
        struct stat st = {0};

        if (fstatat(fd, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
            return fault_sys(f, errno, e->name);
        type = S_ISDIR(st.st_mode) ? TYPE_DIR : S_ISREG(st.st_mode) ? TYPE_FILE : TYPE_UNKNOWN;
    }
    buf_puts(b, b->len > 1 ? ", {\"name\": " : "{\"name\": ");
    text_json(b, e->name);
    buf_puts(b, type == TYPE_DIR ? ", \"isDirectory\": true" : ", \"isDirectory\": false");
    buf_puts(b, type == TYPE_FILE ? ", \"isFile\": true}" : ", \"isFile\": false}");
    return 0;
}

int dir_list(int fd, struct buf *json, struct fault *f)
{
    int r;

    buf_puts(json, "[");
    r = each_entry(fd, add_json, json, f);
    buf_puts(json, "]\n");
    return r;
}
