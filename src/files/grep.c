/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files are read into one window that slides: the lines not yet searched, and before them as many
 * as may have to be shown as context.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "files/internal.h"
#include "files/regex.h"

#define WINDOW (LIMIT_FILES_LINE + 4 * LIMIT_FILES_CHUNK)

struct search {
    struct walk walk;
    struct files_regex *re, *glob;
    bool whole_path; /* of the glob */
    const struct files_query *q;
    size_t limit;
    struct files_grep *out;

    /* the file at hand */
    char *win;
    size_t len, at; /* bytes in the window; the first that was not searched */
    uint64_t line;  /* its number */
    bool ended;     /* nothing comes after the window */
    size_t shown;   /* lines before this offset were given back already */
    unsigned after; /* lines still to be shown after a match */
    size_t path;    /* offset of its path in out->text, once it has a match */
    bool has_path;
};

void files_grep_done(struct files_grep *grep)
{
    buf_done(&grep->text);
    free(grep->matches);
    *grep = (struct files_grep){0};
}

/* ---- output ---- */

static struct files_match *room(struct files_grep *g)
{
    if (g->n == g->cap) {
        size_t cap = g->cap ? 2 * g->cap : 64;
        struct files_match *more = reallocarray(g->matches, cap, sizeof(*more));

        if (!more)
            return NULL;
        g->matches = more;
        g->cap = cap;
    }
    return &g->matches[g->n];
}

/* The end of the line that holds byte `at`: its newline, or the end of the window. */
static size_t line_end(const struct search *s, size_t at)
{
    const char *nl = at < s->len ? memchr(s->win + at, '\n', s->len - at) : NULL;

    return nl ? (size_t)(nl - s->win) : s->len;
}

static int give(struct search *s, size_t from, size_t to, uint64_t line, bool context,
                struct error *err)
{
    struct files_grep *g = s->out;
    struct files_match *m = room(g);
    size_t n = to - from;

    if (!m)
        return error_sys(err, -ENOMEM, "search");
    if (n && s->win[from + n - 1] == '\r')
        n--;
    *m = (struct files_match){.line = line, .is_context = context, .cut = n > LIMIT_FILES_LINE_OUT};
    n = m->cut ? LIMIT_FILES_LINE_OUT : n;
    /* Whole characters only. */
    while (m->cut && n && ((unsigned char)s->win[from + n] & 0xc0) == 0x80)
        n--;
    if (!s->has_path) {
        s->path = g->text.len;
        buf_append(&g->text, s->walk.path.data, s->walk.path.len + 1);
        s->has_path = true;
    }
    m->path = s->path;
    m->text = g->text.len;
    m->len = n;
    buf_append(&g->text, s->win + from, n);
    buf_append(&g->text, "", 1);
    if (g->text.failed) {
        s->walk.stop = FILES_STOP_WORK;
        return 0;
    }
    g->n++;
    g->n_matching += !context;
    s->shown = to;
    return 0;
}

static int give_before(struct search *s, size_t start, uint64_t line, struct error *err)
{
    size_t from[LIMIT_FILES_CONTEXT], at = start;
    unsigned n = 0;
    int r = 0;

    while (n < s->q->context && at > s->shown) {
        const char *nl = at > 1 ? memrchr(s->win, '\n', at - 1) : NULL;

        at = nl ? (size_t)(nl + 1 - s->win) : 0;
        if (at < s->shown)
            break;
        from[n++] = at;
    }
    while (n-- > 0 && r == 0)
        r = give(s, from[n], line_end(s, from[n]), line - n - 1, true, err);
    return r;
}

/* ---- the window ---- */

/* Where the last `n` lines before `at` begin, if that is not too far back. */
static size_t back_lines(const struct search *s, size_t at, unsigned n)
{
    size_t from = at;

    while (n-- > 0 && from > 0) {
        const char *nl = from > 1 ? memrchr(s->win, '\n', from - 1) : NULL;
        size_t prev = nl ? (size_t)(nl + 1 - s->win) : 0;

        if (at - prev > LIMIT_FILES_CHUNK)
            break;
        from = prev;
    }
    return from;
}

static int fill(struct search *s, int fd)
{
    size_t keep = back_lines(s, s->at, s->q->context);
    ssize_t n;

    memmove(s->win, s->win + keep, s->len - keep);
    s->len -= keep;
    s->at -= keep;
    s->shown = s->shown > keep ? s->shown - keep : 0;
    do
        n = read(fd, s->win + s->len, WINDOW - s->len);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    s->len += (size_t)n;
    s->ended = n == 0;
    s->out->bytes += (uint64_t)n;
    return 0;
}

/* ---- lines ---- */

static uint64_t count_newlines(const char *s, size_t n)
{
    uint64_t lines = 0;

    for (const char *p = s, *end = s + n; (p = memchr(p, '\n', (size_t)(end - p))); p++)
        lines++;
    return lines;
}

/* The lines after a match up to `upto`, as many as are still owed. */
static int give_after(struct search *s, size_t upto, struct error *err)
{
    size_t at = s->at;
    uint64_t line = s->line;
    int r = 0;

    while (s->after && at < upto && r == 0) {
        size_t end = line_end(s, at);

        r = give(s, at, end, line++, true, err);
        s->after--;
        at = end + 1;
    }
    return r;
}

static int give_match(struct search *s, size_t hit, struct error *err)
{
    const char *nl = hit > s->at ? memrchr(s->win + s->at, '\n', hit - s->at) : NULL;
    size_t start = nl ? (size_t)(nl + 1 - s->win) : s->at, end = line_end(s, hit);
    uint64_t line = s->line + count_newlines(s->win + s->at, start - s->at);
    int r = give_after(s, start, err);

    if (r == 0)
        r = give_before(s, start, line, err);
    if (r == 0)
        r = give(s, start, end, line, false, err);
    s->after = s->q->context;
    s->line = line;
    s->at = start;
    if (end < s->len) {
        s->at = end + 1;
        s->line++;
    } else {
        s->at = end;
    }
    if (s->out->n_matching >= s->limit)
        s->walk.stop = FILES_STOP_MANY;
    return r;
}

/* Everything up to `upto`, which is the end of a line or of the file or of a piece. */
static int search_lines(struct search *s, size_t upto, struct error *err)
{
    int r = 0;

    while (r == 0 && s->at < upto && !files_walk_over(&s->walk)) {
        ptrdiff_t hit = files_regex_scan(s->re, s->win + s->at, upto - s->at);

        if (hit < 0)
            break;
        r = give_match(s, s->at + (size_t)hit, err);
    }
    if (r == 0 && s->at < upto && s->walk.stop == FILES_ALL)
        r = give_after(s, upto, err);
    if (s->at < upto) {
        s->line += count_newlines(s->win + s->at, upto - s->at);
        s->at = upto;
    }
    return r;
}

/* How far whole lines go; an overlong line is taken in pieces. */
static size_t whole_lines(const struct search *s)
{
    const char *nl = memrchr(s->win + s->at, '\n', s->len - s->at);

    if (s->ended)
        return s->len;
    if (nl)
        return (size_t)(nl + 1 - s->win);
    return s->len - s->at >= LIMIT_FILES_LINE ? s->len : s->at;
}

static int search_fd(struct search *s, int fd, int64_t size, struct error *err)
{
    uint64_t before = s->out->bytes;
    int r = 0;

    s->len = s->at = s->shown = 0;
    s->line = 1;
    s->after = 0;
    s->ended = s->has_path = false;
    while (r == 0 && !s->ended && !files_walk_over(&s->walk)) {
        if (fill(s, fd) < 0) {
            s->out->unreadable++;
            return 0;
        }
        /* Whoever appends while we read does not keep us here. */
        s->ended |= s->out->bytes - before >= (uint64_t)size;
        if (s->out->bytes - before == s->len &&
            memchr(s->win, 0, s->len < LIMIT_FILES_CHUNK ? s->len : LIMIT_FILES_CHUNK)) {
            s->out->binary++;
            return 0;
        }
        r = search_lines(s, whole_lines(s), err);
    }
    s->out->files++;
    return r;
}

/* ---- files ---- */

static bool wanted(const struct search *s, const char *name)
{
    const char *text = s->whole_path ? s->walk.path.data : name;

    return !s->glob || files_regex_match(s->glob, text, strlen(text));
}

static int on_file(struct walk *w, int dir, const char *name, unsigned char dt, struct error *err)
{
    struct search *s = w->arg;
    autoclose int fd = -1;
    struct stat st;

    if (dt != DT_REG || !wanted(s, name))
        return 0;
    fd = files_open_file_at(dir, name, &st);
    if (fd < 0) {
        s->out->unreadable += fd == -EACCES || fd == -EIO;
        return 0;
    }
    return search_fd(s, fd, st.st_size, err);
}

/* One file, by its name alone. */
static int search_file(const struct files_root *root, const char *path, struct search *s,
                       struct error *err)
{
    struct stat st;
    autoclose int fd = files_open_file(root, path, "search", &st, err);
    int r;

    if (fd < 0)
        return TAKE_FD(fd);
    s->out->one_file = true;
    buf_puts(&s->walk.path, path);
    r = search_fd(s, fd, st.st_size, err);
    buf_done(&s->walk.path);
    return r;
}

static int search_path(const struct files_root *root, const char *path, struct search *s,
                       struct error *err)
{
    autoclose int dir = files_place_open_dir(root, path, "search", err);
    int r;

    files_walk_start(&s->walk, &s->q->how);
    if (dir < 0)
        return err->code == ERR_INVALID ? search_file(root, path, s, err) : TAKE_FD(dir);
    r = files_walk_dir(&s->walk, dir, err);
    s->out->unreadable += s->walk.unreadable;
    return r;
}

static int check_query(const struct files_query *q, struct error *err)
{
    if (q->context > LIMIT_FILES_CONTEXT)
        return error_set(err, ERR_INVALID, "context %u: at most %u lines", q->context,
                         LIMIT_FILES_CONTEXT);
    if (q->how.limit > LIMIT_FILES_MATCHES)
        return error_set(err, ERR_INVALID, "limit %zu: at most %u matching lines", q->how.limit,
                         LIMIT_FILES_MATCHES);
    if (q->how.deadline_ms < 0 || q->how.deadline_ms > 3600000)
        return error_set(err, ERR_INVALID, "deadline %lld ms: it must be 0 (none) to an hour",
                         (long long)q->how.deadline_ms);
    return 0;
}

int files_grep(const struct files_root *root, const char *path, const struct files_query *query,
               struct files_grep *ret, struct error *err)
{
    autoptr(files_regex) re = NULL;
    autoptr(files_regex) glob = NULL;
    autofree char *window = NULL;
    struct search s = {.q = query, .out = ret};
    int r = check_query(query, err);

    if (r == 0)
        r = files_regex_new(query->pattern, query->len,
                            (query->literal ? FILES_REGEX_LITERAL : 0) |
                                (query->ignore_case ? FILES_REGEX_ICASE : 0),
                            &re, err);
    if (r == 0 && query->glob)
        r = files_regex_new(query->glob, strlen(query->glob), FILES_REGEX_GLOB, &glob, err);
    if (r < 0)
        return r;
    window = malloc(WINDOW);
    if (!window)
        return error_sys(err, -ENOMEM, "search");
    *ret = (struct files_grep){0};
    buf_init(&ret->text, LIMIT_FILES_OUT);
    s.walk = (struct walk){.recursive = true, .on_entry = on_file, .arg = &s};
    s.re = re;
    s.glob = glob;
    s.whole_path = query->glob && files_glob_has_slash(query->glob);
    s.limit = query->how.limit ? query->how.limit : LIMIT_FILES_MATCHES;
    s.win = window;
    r = search_path(root, path, &s, err);
    ret->stop = s.walk.stop;
    if (r < 0)
        files_grep_done(ret);
    return r;
}
