/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canon PATH ALLOW_FINAL IDENTITY: the canonical path of the deepest part of PATH that exists, and
 * behind it the rest as it was given.
 *
 * ALLOW_FINAL 1: a link at the end of PATH is meant itself; its folder is printed. IDENTITY 1: an
 * answer is wanted for every path; what has no canonical form (a loop of links, a folder that
 * cannot be searched) is left as it was given.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/fs/fs.h"

/* ---- readlink -f ---- */

/* Does what follows a part need it to be a folder: "/", "/." or "/.." and nothing more? */
static bool wants_dir(const char *end)
{
    while (*end == '/') {
        end += strspn(end, "/");
        if (!*end)
            return true;
        if (*end++ != '.')
            return false;
        if (!*end || (*end == '.' && (!end[1] || end[1] == '/')))
            return true;
    }
    return false;
}

static bool is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* May a part that is no link stand here? Only the last one may be missing. */
static bool may_stand(const char *path, const char *end, int sys)
{
    if (sys == ENOENT && !end[strspn(end, "/")])
        return true;
    return sys == EINVAL && (!wants_dir(end) || is_dir(path));
}

struct resolved {
    char path[LIMIT_PATH]; /* "" is the root; no link, no dots */
    size_t len;
};

static void go_up(struct resolved *r)
{
    while (r->len > 0 && r->path[--r->len] != '/')
        ;
    r->path[r->len] = 0;
}

static bool go_down(struct resolved *r, const char *part, size_t n)
{
    if (n + 1 >= sizeof(r->path) - r->len)
        return false;
    r->path[r->len++] = '/';
    memcpy(r->path + r->len, part, n);
    r->len += n;
    r->path[r->len] = 0;
    return true;
}

/* What is still to be walked stands at the end of its buffer: a link is put before it. */
static bool resolve(const char *path, struct resolved *r)
{
    static char rest[LIMIT_FS_REST], link[LIMIT_PATH];
    size_t n = strlen(path) + 1, links = 0;
    char *p = rest + sizeof(rest) - n;

    if (n > sizeof(rest))
        return false;
    memcpy(p, path, n);
    for (;;) {
        const char *part = p += strspn(p, "/");
        ssize_t got;

        n = strcspn(p, "/");
        p += n;
        if (n == 0)
            return true;
        if (n == 1 && part[0] == '.')
            continue;
        if (n == 2 && part[0] == '.' && part[1] == '.') {
            go_up(r);
            continue;
        }
        if (!go_down(r, part, n))
            return false;
        got = readlink(r->path, link, sizeof(link));
        if (got < 0 && !may_stand(r->path, p, errno))
            return false;
        if (got < 0)
            continue;
        if (++links > LIMIT_FS_LINKS || got > p - rest)
            return false;
        p -= got;
        memcpy(p, link, (size_t)got);
        if (link[0] == '/')
            r->path[r->len = 0] = 0;
        else
            go_up(r);
    }
}

/* ---- the deepest part that exists ---- */

/* PATH, cut in two: text is the part looked at, or "" for the root; rest begins at the cut. */
struct cursor {
    char *text;
    size_t cut, len;
};

static const char *cursor_path(const struct cursor *c)
{
    return c->cut ? c->text : "/";
}

/* One part up; false at the top. */
static bool cursor_up(struct cursor *c)
{
    const char *slash = strrchr(c->text, '/');

    if (!slash || strcmp(cursor_path(c), "/") == 0)
        return false;
    if (c->cut < c->len)
        c->text[c->cut] = '/';
    c->cut = (size_t)(slash - c->text);
    c->text[c->cut] = 0;
    return true;
}

static bool is_there(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 || (lstat(path, &st) == 0 && S_ISLNK(st.st_mode));
}

static int answer(const struct cursor *c, const char *canonical)
{
    autobuf b;

    buf_init(&b, LIMIT_ARG_BYTES);
    buf_puts(&b, canonical);
    if (c->cut < c->len) {
        buf_puts(&b, "/");
        buf_puts(&b, c->text + c->cut + 1);
    }
    buf_puts(&b, "\n");
    return fs_answer(&b);
}

int fs_canon(char **args)
{
    bool identity = strcmp(args[2], "1") == 0;
    size_t whole = strlen(args[0]);
    struct cursor c = {args[0], whole, whole};
    struct resolved r = {.len = 0};
    struct stat st;

    if (strcmp(args[1], "1") == 0 && lstat(args[0], &st) == 0 && S_ISLNK(st.st_mode) &&
        cursor_up(&c))
        c.len = c.cut; /* the link's own name is not printed */
    while (!is_there(cursor_path(&c)) && cursor_up(&c))
        ;
    while (!resolve(cursor_path(&c), &r)) {
        r = (struct resolved){.len = 0};
        if (!identity)
            return 1;
        if (!cursor_up(&c)) { /* PATH as it was, put together again */
            for (; c.cut < whole; c.cut += 1 + strlen(c.text + c.cut + 1))
                c.text[c.cut] = '/';
            c.len = whole;
            return answer(&c, c.text);
        }
    }
    return answer(&c, r.len ? r.path : "/");
}
