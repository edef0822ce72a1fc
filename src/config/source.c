/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts that a configuration is made of, and where a key of it stands in them. Values carry no
 * places: a text is read again when one is to be named.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/path.h"
#include "config/internal.h"
#include "toml/toml.h"
#include "json/chars.h"
#include "json/json5.h"

/* ---- key paths ---- */

bool key_path_push(struct key_path *p, const char *word)
{
    if (p->n >= LIMIT_CONFIG_WORDS)
        return false;
    p->word[p->n++] = word;
    p->word[p->n] = NULL;
    return true;
}

void key_path_pop(struct key_path *p)
{
    p->word[--p->n] = NULL;
}

bool key_path_push_dotted(struct key_path *p, const char *dotted, char *store, size_t size)
{
    int n = snprintf(store, size, "%s", dotted);
    char *save = NULL;

    if (n < 0 || (size_t)n >= size)
        return false;
    for (char *w = strtok_r(store, ".", &save); w; w = strtok_r(NULL, ".", &save))
        if (!key_path_push(p, w))
            return false;
    return true;
}

struct key_text key_path_show(const struct key_path *p)
{
    struct key_text t = {{0}};
    size_t at = 0;

    for (size_t i = 0; i < p->n && at < sizeof(t.text); i++) {
        struct chars_shown w = chars_show(p->word[i], p->word[i] + strlen(p->word[i]));

        w.text[strlen(w.text) - 1] = 0; /* the quotes go around the whole */
        at += (size_t)snprintf(t.text + at, sizeof(t.text) - at, "%s%s", i ? "." : "", w.text + 1);
    }
    if (at >= sizeof(t.text)) /* cut, and perhaps within a character */
        for (at = sizeof(t.text) - 1; at && ((unsigned char)t.text[at - 1] & 0x80);)
            t.text[--at] = 0;
    return t;
}

struct file_text file_show(const char *path)
{
    struct file_text t;
    size_t n = strlen(path), room = sizeof(t.text) - 1;
    bool cut = n > room;

    if (cut)
        path += n - (room - 3);
    while (cut && ((unsigned char)*path & 0xc0) == 0x80)
        path++;
    (void)snprintf(t.text, sizeof(t.text), "%s%s", cut ? "..." : "", path);
    for (char *p = t.text; *p; p++) /* a message is one line */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return t;
}

/* ---- texts that stay ---- */

const char *config_keep(struct config *c, const char *text)
{
    char **more = realloc(c->kept, (c->n_kept + 1) * sizeof(*more));
    char *copy = strdup(text);

    if (more)
        c->kept = more;
    if (!more || !copy) {
        free(copy);
        return NULL;
    }
    return c->kept[c->n_kept++] = copy;
}

__attribute__((format(printf, 3, 0))) static void warn_v(struct config *c, const char *before,
                                                         const char *fmt, va_list ap)
{
    char text[sizeof(((struct error *)0)->msg)];
    size_t n = (size_t)snprintf(text, sizeof(text), "%s", before);

    (void)vsnprintf(text + n, sizeof(text) - n, fmt, ap);
    for (size_t i = 0; i < c->n_warnings; i++)
        if (strcmp(c->warnings[i], text) == 0)
            return;
    if (c->n_warnings < LIMIT_CONFIG_WARNINGS && (c->warnings[c->n_warnings] = strdup(text)))
        c->n_warnings++;
}

void config_warn(struct config *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    warn_v(c, "", fmt, ap);
    va_end(ap);
}

/* ---- files ---- */

static bool is_in_one_of(const char *path, const char *const *roots)
{
    for (; *roots; roots++)
        if (path_is_within(path, *roots))
            return true;
    return false;
}

int source_open(const char *path, const char *const *roots, char **ret_canonical, struct error *err)
{
    autoclose int at = open(path, O_PATH | O_CLOEXEC), fd = -1;
    char real[LIMIT_PATH], again[32];
    struct stat st;
    int r;

    if (at < 0 && (errno == ENOENT || errno == ENOTDIR))
        return error_set(err, ERR_NOT_FOUND, "%s: no such file", file_show(path).text);
    if (at < 0 || fstat(at, &st) < 0)
        return error_sys(err, -errno, "%s", file_show(path).text);
    r = path_of_fd(at, real, sizeof(real));
    if (r < 0)
        return error_sys(err, r, "%s: find its real path", file_show(path).text);
    /* Decided on what is open, so that no link can be turned round in between. */
    if (roots && !is_in_one_of(real, roots))
        return error_set(err, ERR_DENIED,
                         "%s: outside the configuration's folder; name its folder in "
                         "OPENCLAW_INCLUDE_ROOTS to allow it",
                         file_show(path).text);
    if (!S_ISREG(st.st_mode))
        return error_set(err, ERR_INVALID, "%s: not a regular file", file_show(path).text);
    (void)snprintf(again, sizeof(again), "/proc/self/fd/%d", at);
    fd = open(again, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return error_sys(err, -errno, "%s", file_show(path).text);
    *ret_canonical = strdup(real);
    if (!*ret_canonical)
        return error_sys(err, -ENOMEM, "%s", file_show(path).text);
    return TAKE_FD(fd);
}

static int read_all(int fd, size_t max, char **ret, size_t *ret_len)
{
    struct stat st;
    size_t room;
    autofree char *text = NULL;
    ssize_t n;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size < 0 || (unsigned long long)st.st_size > max)
        return -EFBIG;
    room = (size_t)st.st_size + 1; /* one more tells whether it grows meanwhile */
    text = malloc(room);
    if (!text)
        return -ENOMEM;
    n = fd_read_full(fd, text, room);
    if (n < 0)
        return (int)n;
    if ((size_t)n == room)
        return -EAGAIN;
    text[n] = 0;
    *ret = TAKE_PTR(text);
    *ret_len = (size_t)n;
    return 0;
}

int source_read(struct config *c, int fd, const char *name, const char *canonical, size_t max,
                size_t *ret, struct error *err)
{
    struct source *more, *s;
    int r;

    if (c->n_sources >= LIMIT_CONFIG_FILES)
        return error_set(err, ERR_TOO_LARGE, "%s: more than %u files", file_show(name).text,
                         LIMIT_CONFIG_FILES);
    more = realloc(c->sources, (c->n_sources + 1) * sizeof(*more));
    if (!more)
        return error_sys(err, -ENOMEM, "%s", file_show(name).text);
    c->sources = more;
    s = &c->sources[c->n_sources++];
    *s = (struct source){.name = strdup(name), .canonical = strdup(canonical)};
    if (!s->name || !s->canonical)
        return error_sys(err, -ENOMEM, "%s", file_show(name).text);
    r = read_all(fd, max, &s->text, &s->len);
    if (r == -EFBIG)
        return error_set(err, ERR_TOO_LARGE, "%s: more than %zu bytes", file_show(name).text, max);
    if (r < 0)
        return error_sys(err, r, "%s", file_show(name).text);
    c->total_bytes += s->len;
    if (c->total_bytes > LIMIT_CONFIG_TOTAL)
        return error_set(err, ERR_TOO_LARGE, "%s: with it the files have more than %u bytes",
                         file_show(name).text, LIMIT_CONFIG_TOTAL);
    *ret = c->n_sources - 1;
    return 0;
}

int source_load(struct config *c, const char *path, size_t *ret, struct error *err)
{
    autofree char *canonical = NULL;
    autoclose int fd = source_open(path, NULL, &canonical, err);

    *ret = SIZE_MAX;
    if (fd < 0)
        return fd == -ERR_NOT_FOUND ? 0 : fd;
    return source_read(c, fd, path, canonical, LIMIT_CONFIG_BYTES, ret, err);
}

int source_wrong_at(const struct source *s, struct text_place place, struct error *err)
{
    return error_wrap(err, "%s:%u:%u", file_show(s->name).text, place.line, place.column);
}

/* ---- where keys stand ---- */

/* The value that a path leads to in what one file holds, before any include is put in. */
static const json_t *walk(const json_t *v, const char *const *words)
{
    for (; v && *words; words++)
        v = json_is_array(v) ? json_array_get(v, strtoul(*words, NULL, 10))
                             : json_object_get(v, *words);
    return v;
}

static int locate(enum source_kind kind, const struct source *s, const char *const *words,
                  struct text_place *ret)
{
    switch (kind) {
    case SOURCE_OPENCLAW:
        return json5_locate(s->text, s->len, words, ret);
    case SOURCE_YAML:
        return yaml_locate(s->text, s->len, words, ret);
    case SOURCE_PROFILE:
        return toml_locate(s->text, s->len, words, ret);
    case SOURCES:
        break;
    }
    return -1;
}

/* Is the inclusion's site on the way to p? */
static bool leads_to(const struct inclusion *in, const struct key_path *p)
{
    size_t n = json_array_size(in->site);

    if (n > p->n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (strcmp(json_string_value(json_array_get(in->site, i)), p->word[i]) != 0)
            return false;
    return true;
}

/* Lists are joined, so that an agent's number may be another one in the file it stands in. */
static bool numbers_hold(const struct config *c, const struct inclusion *in,
                         const struct key_path *p)
{
    static const char *const list[] = {"agents", "list", NULL};
    size_t site = json_array_size(in->site);

    if (p->n < 3 || site >= 3 || strcmp(p->word[0], "agents") != 0 ||
        strcmp(p->word[1], "list") != 0)
        return true;
    return json_array_size(walk(c->sources[in->source].value, list + site)) ==
           json_array_size(walk(c->parts[SOURCE_OPENCLAW], list));
}

/* Members beside an include win over it, and a later include over an earlier one: so does the
 * search. */
static bool find_included(const struct config *c, size_t number, const struct key_path *p,
                          const json_t *value, struct whereabouts *ret)
{
    const struct inclusion *in = &c->inclusions[number];
    const struct source *s = &c->sources[in->source];
    const char *const *words = p->word + json_array_size(in->site);
    const json_t *here = walk(s->value, words);

    /* Another value: a list that was joined, of which this file has a part. */
    if (here && (!value || json_is_object(value) || json_equal(here, value)) &&
        numbers_hold(c, in, p) && locate(SOURCE_OPENCLAW, s, words, &ret->place) >= 0) {
        ret->file = s->name;
        return true;
    }
    for (size_t i = c->n_inclusions; i-- > 0;)
        if (i != number && c->inclusions[i].parent == number && leads_to(&c->inclusions[i], p) &&
            find_included(c, i, p, value, ret))
            return true;
    return false;
}

struct whereabouts key_find(const struct config *c, enum source_kind kind, const struct key_path *p,
                            const json_t *value)
{
    struct whereabouts w = {0};

    if (c->remembered_file) {
        w.file = c->remembered_file;
        return w;
    }
    if (kind == SOURCES || c->top[kind] == SIZE_MAX)
        return w;
    w.file = c->sources[c->top[kind]].name;
    if (kind != SOURCE_OPENCLAW)
        (void)locate(kind, &c->sources[c->top[kind]], p->word, &w.place);
    else if (c->n_inclusions)
        (void)find_included(c, 0, p, value, &w);
    return w;
}

struct whereabouts key_find_often(struct config *c, enum source_kind kind, const struct key_path *p,
                                  const json_t *value)
{
    if (!c->remembered_file && c->top[kind] != SIZE_MAX) {
        const struct source *top = &c->sources[c->top[kind]];

        c->located_bytes += kind == SOURCE_OPENCLAW ? c->total_bytes : top->len;
        if (c->located_bytes > LIMIT_CONFIG_LOCATE)
            return (struct whereabouts){.file = top->name};
    }
    return key_find(c, kind, p, value);
}

static struct key_text where_text(struct whereabouts w)
{
    struct key_text t = {{0}};

    if (w.file && w.place.line)
        (void)snprintf(t.text, sizeof(t.text), "%s:%u:%u", file_show(w.file).text, w.place.line,
                       w.place.column);
    else if (w.file)
        (void)snprintf(t.text, sizeof(t.text), "%s", file_show(w.file).text);
    return t;
}

int key_wrong(const struct config *c, enum source_kind kind, const struct key_path *p,
              const json_t *value, struct error *err)
{
    struct key_text where = where_text(key_find(c, kind, p, value));

    return where.text[0] ? error_wrap(err, "%s", where.text) : -(int)err->code;
}

void key_warn(struct config *c, enum source_kind kind, const struct key_path *p,
              const json_t *value, const char *fmt, ...)
{
    struct key_text where = where_text(key_find_often(c, kind, p, value));
    char before[sizeof(where.text) + 2];
    va_list ap;

    (void)snprintf(before, sizeof(before), "%s%s", where.text, where.text[0] ? ": " : "");
    va_start(ap, fmt);
    warn_v(c, before, fmt, ap);
    va_end(ap);
}
