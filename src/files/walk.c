/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking a tree that others change: one descriptor per level, names one at a time beneath it,
 * links never followed. What comes and goes meanwhile is seen or not; nothing outside is.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "files/internal.h"
#include "files/regex.h"

/* ---- the names of one folder ---- */

void files_names_done(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->list[i]);
    free(names->list);
    *names = (struct names){0};
}

/* The type stands before the name: one allocation, and it is sorted along. */
static int names_add(struct names *names, const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    char *copy = malloc(n + 2);

    if (names->n == names->cap) {
        size_t cap = names->cap ? 2 * names->cap : 64;
        char **more = reallocarray(names->list, cap, sizeof(*more));

        if (!more) {
            free(copy);
            return -ENOMEM;
        }
        names->list = more;
        names->cap = cap;
    }
    if (!copy)
        return -ENOMEM;
    copy[0] = (char)e->d_type;
    memcpy(copy + 1, e->d_name, n + 1);
    names->list[names->n++] = copy;
    return 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a + 1, *(char *const *)b + 1);
}

int files_names_read(int dir, size_t most, struct names *ret)
{
    int copy = files_open_dir_at(dir, ".", false), r = 0;
    DIR *d = copy < 0 ? NULL : fdopendir(copy);

    if (!d)
        return copy < 0 ? copy : -errno;
    for (struct dirent *e; r == 0 && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (ret->n == most) {
            ret->cut = true;
            break;
        }
        r = names_add(ret, e);
    }
    (void)closedir(d);
    if (ret->n)
        qsort(ret->list, ret->n, sizeof(*ret->list), by_bytes);
    return r;
}

/* ---- the walk ---- */

void files_walk_start(struct walk *w, const struct files_walk *how)
{
    w->how = how;
    buf_init(&w->path, LIMIT_FILES_DEPTH * NAME_SIZE + NAME_SIZE);
    if (how->deadline_ms > 0)
        w->deadline_ns = files_now_ns(CLOCK_MONOTONIC) + how->deadline_ms * 1000000;
}

static uint64_t most_visits(const struct walk *w)
{
    return w->how->visit && w->how->visit < LIMIT_FILES_VISIT ? w->how->visit : LIMIT_FILES_VISIT;
}

bool files_walk_over(struct walk *w)
{
    if (w->stop == FILES_ALL && w->deadline_ns && files_now_ns(CLOCK_MONOTONIC) > w->deadline_ns)
        w->stop = FILES_STOP_TIME;
    return w->stop == FILES_STOP_TIME || w->stop == FILES_STOP_MANY || w->visited >= most_visits(w);
}

static int walk_level(struct walk *w, int dir, unsigned depth, struct error *err);

static int walk_below(struct walk *w, int dir, const char *name, unsigned depth, struct error *err)
{
    autoclose int fd = -1;

    if (strcmp(name, ".git") == 0 && !w->how->with_git)
        return 0;
    if (depth >= LIMIT_FILES_DEPTH) {
        w->stop = FILES_STOP_WORK;
        return 0;
    }
    fd = files_open_dir_at(dir, name, w->how->stay);
    if (fd < 0) {
        w->unreadable += fd != -ENOENT && !(fd == -EXDEV && w->how->stay);
        return 0;
    }
    return walk_level(w, fd, depth, err);
}

static unsigned char type_of(int dir, const char *name, unsigned char dt)
{
    struct stat st;

    if (dt != DT_UNKNOWN)
        return dt;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? DT_UNKNOWN
                                                            : (unsigned char)IFTODT(st.st_mode);
}

static int walk_names(struct walk *w, int dir, const struct names *names, unsigned depth,
                      struct error *err)
{
    size_t above = w->path.len;
    int r = 0;

    for (size_t i = 0; i < names->n && r == 0 && !files_walk_over(w); i++) {
        const char *name = names->list[i] + 1;
        unsigned char dt = type_of(dir, name, (unsigned char)names->list[i][0]);

        w->visited++;
        buf_printf(&w->path, "%s%s", above ? "/" : "", name);
        r = w->on_entry(w, dir, name, dt, err);
        if (r == 0 && w->recursive && dt == DT_DIR && !files_walk_over(w))
            r = walk_below(w, dir, name, depth + 1, err);
        w->path.len = above;
        w->path.failed = false;
    }
    return r;
}

static int walk_level(struct walk *w, int dir, unsigned depth, struct error *err)
{
    size_t most = LIMIT_FILES_HELD - w->held;
    struct names names = {0};
    int r;

    most = most < LIMIT_FILES_NAMES ? most : LIMIT_FILES_NAMES;
    if (most_visits(w) - w->visited < most) /* others would be read and sorted in vain */
        most = most_visits(w) - w->visited;
    r = files_names_read(dir, most, &names);

    if (names.cut)
        w->stop = FILES_STOP_WORK;
    w->held += names.n;
    if (r == -ENOMEM) {
        r = error_sys(err, r, "list a folder");
    } else {
        w->unreadable += r < 0;
        r = walk_names(w, dir, &names, depth, err);
    }
    w->held -= names.n;
    files_names_done(&names);
    return r;
}

int files_walk_dir(struct walk *w, int dir, struct error *err)
{
    int r = walk_level(w, dir, 0, err);

    if (w->visited >= most_visits(w) && w->stop == FILES_ALL)
        w->stop = FILES_STOP_WORK;
    buf_done(&w->path);
    return r;
}

/* ---- list, find ---- */

void files_list_done(struct files_list *list)
{
    buf_done(&list->text);
    free(list->entries);
    *list = (struct files_list){0};
}

const char *files_list_name(const struct files_list *list, size_t i)
{
    return list->text.data + list->entries[i].name;
}

static char letter(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return '-';
    case S_IFDIR:
        return 'd';
    case S_IFLNK:
        return 'l';
    case S_IFIFO:
        return 'p';
    case S_IFSOCK:
        return 's';
    case S_IFCHR:
        return 'c';
    default:
        return 'b';
    }
}

static struct files_entry *list_room(struct files_list *list)
{
    if (list->n == list->cap) {
        size_t cap = list->cap ? 2 * list->cap : 64;
        struct files_entry *more = reallocarray(list->entries, cap, sizeof(*more));

        if (!more)
            return NULL;
        list->entries = more;
        list->cap = cap;
    }
    return &list->entries[list->n];
}

int files_list_add(struct walk *w, struct files_list *list, const struct stat *st, const char *path,
                   const char *end, struct error *err)
{
    size_t limit = w->how->limit ? w->how->limit : LIMIT_FILES_ENTRIES;
    struct files_entry *e;

    if (list->n >= limit) {
        w->stop = FILES_STOP_MANY;
        return 0;
    }
    e = list_room(list);
    if (!e)
        return error_sys(err, -ENOMEM, "list");
    *e = (struct files_entry){.name = list->text.len,
                              .kind = letter(st->st_mode),
                              .size = st->st_size,
                              .mtime_ns = files_nanoseconds(st->st_mtim),
                              .mode = st->st_mode & 07777};
    buf_puts(&list->text, path);
    buf_append(&list->text, end, strlen(end) + 1);
    if (list->text.failed) {
        w->stop = FILES_STOP_MANY;
        return 0;
    }
    list->n++;
    return 0;
}

static int list_add(struct walk *w, struct files_list *list, int dir, const char *name,
                    struct error *err)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* gone meanwhile */
    return files_list_add(w, list, &st, w->path.data, "", err);
}

static int check_walk(const struct files_walk *how, struct error *err)
{
    if (how->limit > LIMIT_FILES_ENTRIES)
        return error_set(err, ERR_INVALID, "limit %zu: at most %u entries at once", how->limit,
                         LIMIT_FILES_ENTRIES);
    if (how->deadline_ms < 0 || how->deadline_ms > 3600000)
        return error_set(err, ERR_INVALID, "deadline %lld ms: it must be 0 (none) to an hour",
                         (long long)how->deadline_ms);
    return 0;
}

int files_list_collect(const struct files_root *root, const char *path, const char *verb,
                       struct walk *w, const struct files_walk *how, struct files_list *ret,
                       struct error *err)
{
    autoclose int dir = -1;
    int r = check_walk(how, err);

    if (r < 0)
        return r;
    dir = files_place_open_dir(root, path, verb, err);
    if (dir < 0)
        return TAKE_FD(dir);
    files_walk_start(w, how);
    r = files_walk_dir(w, dir, err);
    ret->stop = w->stop;
    ret->visited = w->visited;
    ret->unreadable = w->unreadable;
    if (r < 0)
        files_list_done(ret);
    return r;
}

static int on_listed(struct walk *w, int dir, const char *name, unsigned char dt, struct error *err)
{
    (void)dt;
    return list_add(w, w->arg, dir, name, err);
}

int files_list(const struct files_root *root, const char *path, bool recursive,
               const struct files_walk *how, struct files_list *ret, struct error *err)
{
    struct walk w = {.recursive = recursive, .on_entry = on_listed, .arg = ret};

    *ret = (struct files_list){0};
    buf_init(&ret->text, LIMIT_FILES_OUT);
    return files_list_collect(root, path, "list", &w, how, ret, err);
}

struct finder {
    struct files_regex *glob;
    bool whole; /* held against the whole path */
    struct files_list *list;
};

static int on_found(struct walk *w, int dir, const char *name, unsigned char dt, struct error *err)
{
    struct finder *f = w->arg;
    const char *text = f->whole ? w->path.data : name;

    (void)dt;
    return files_regex_match(f->glob, text, strlen(text)) ? list_add(w, f->list, dir, name, err)
                                                          : 0;
}

int files_find(const struct files_root *root, const char *path, const char *pattern,
               const struct files_walk *how, struct files_list *ret, struct error *err)
{
    struct finder f = {.list = ret, .whole = files_glob_has_slash(pattern)};
    struct walk w = {.recursive = true, .on_entry = on_found, .arg = &f};
    autoptr(files_regex) glob = NULL;
    int r = files_regex_new(pattern, strlen(pattern), FILES_REGEX_GLOB, &glob, err);

    if (r < 0)
        return r;
    f.glob = glob;
    *ret = (struct files_list){0};
    buf_init(&ret->text, LIMIT_FILES_OUT);
    return files_list_collect(root, path, "find in", &w, how, ret, err);
}
