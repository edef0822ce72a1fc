/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openclaw.json with its includes put in. The file belongs to OpenClaw: only the way to our parts
 * is walked and only they are kept, so that an include of channels or models is never opened.
 *
 * An include is found relative to the file that names it, and must lie in the folder of
 * openclaw.json or one of OPENCLAW_INCLUDE_ROOTS once every link is resolved.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "config/internal.h"
#include "json/chars.h"
#include "json/json5.h"

#define INCLUDE   "$include"
#define ROOTS_MAX 32

struct walk {
    struct config *c;
    size_t at;    /* the inclusion whose text is walked */
    size_t depth; /* files above it */
    struct key_path path;
    const char *roots[ROOTS_MAX + 1];
    char root_text[ROOTS_MAX][LIMIT_PATH];
};

/* ---- which parts are ours ---- */

enum part { PART_NOT_OURS, PART_ON_THE_WAY, PART_OURS };

static enum part part_below(const char *const *w, size_t n, const char *const *way)
{
    for (size_t i = 0; way[i]; i++) {
        if (i == n)
            return PART_ON_THE_WAY;
        if (strcmp(way[i], "*") != 0 && strcmp(way[i], w[i]) != 0)
            return PART_NOT_OURS;
    }
    return PART_OURS;
}

static enum part part_of(const struct key_path *p)
{
    static const char *const ways[][7] = {
        {"agents", "defaults", "sandbox"},
        {"agents", "defaults", "workspace"},
        {"agents", "entries", "*", "sandbox"},
        {"agents", "entries", "*", "workspace"},
        {"agents", "entries", "*", "tools", "sandbox", "tools"},
        {"agents", "list", "*", "id"},
        {"agents", "list", "*", "sandbox"},
        {"agents", "list", "*", "workspace"},
        {"agents", "list", "*", "tools", "sandbox", "tools"},
        {"tools", "sandbox", "tools"},
        {"session", "scope"},
        {"session", "mainKey"},
    };
    enum part best = PART_NOT_OURS;

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && best != PART_OURS; i++) {
        enum part one = part_below(p->word, p->n, ways[i]);

        if (one > best)
            best = one;
    }
    return best;
}

/* ---- merging ---- */

/* As the client does: objects member by member, lists one after the other, else the later one. */
static json_t *merged(json_t *below, json_t *above)
{
    json_t *out;
    const char *key;
    json_t *v;

    if (json_is_array(below) && json_is_array(above)) {
        out = json_copy(below);
        return out && json_array_extend(out, above) == 0 ? out : NULL;
    }
    if (!json_is_object(below) || !json_is_object(above))
        return json_incref(above);
    out = json_copy(below);
    json_object_foreach(above, key, v)
    {
        json_t *old = json_object_get(out, key);

        if (json_object_set_new(out, key, old ? merged(old, v) : json_incref(v)) < 0) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

/* ---- errors with a place ---- */

/* The include's place is looked for in the file that is walked: parents may have the same key. */
static int wrong_here(const struct walk *w, struct error *err)
{
    const struct inclusion *in = &w->c->inclusions[w->at];
    const struct source *s = &w->c->sources[in->source];
    struct text_place place;

    if (json5_locate(s->text, s->len, w->path.word + json_array_size(in->site), &place) >= 0)
        return source_wrong_at(s, place, err);
    return error_wrap(err, "%s", file_show(s->name).text);
}

static int cycle(const struct walk *w, const char *canonical, struct error *err)
{
    const struct config *c = w->c;
    char chain[256] = "";
    struct file_text name = file_show(strrchr(canonical, '/') + 1);
    size_t n = (size_t)snprintf(chain, sizeof(chain), "%s", name.text);

    for (size_t i = w->at; n < sizeof(chain); i = c->inclusions[i].parent) {
        const char *path = c->sources[c->inclusions[i].source].canonical;

        n += (size_t)snprintf(chain + n, sizeof(chain) - n, " in %s",
                              file_show(strrchr(path, '/') + 1).text);
        if (strcmp(path, canonical) == 0)
            break;
    }
    (void)error_set(err, ERR_INVALID, "%s includes itself: %s; leave one of them out", name.text,
                    chain);
    return wrong_here(w, err);
}

/* ---- one file ---- */

static int resolve(struct walk *w, json_t *value, json_t **ret, struct error *err);

/* The file's value, and the inclusion that says where it was put. */
static int add_file(struct walk *w, int fd, const char *name, const char *canonical,
                    struct error *err)
{
    struct config *c = w->c;
    struct text_place place = {0};
    struct inclusion *more;
    struct source *s;
    size_t number;
    int r;

    r = source_read(c, fd, name, canonical, LIMIT_CONFIG_BYTES, &number, err);
    if (r < 0)
        return r;
    s = &c->sources[number];
    r = json5_parse(s->text, s->len, &s->value, &place, err);
    if (r < 0)
        return source_wrong_at(s, place, err);
    more = realloc(c->inclusions, (c->n_inclusions + 1) * sizeof(*more));
    if (!more)
        return error_sys(err, -ENOMEM, "%s", file_show(name).text);
    c->inclusions = more;
    more[c->n_inclusions] = (struct inclusion){number, w->at, json_array()};
    for (size_t i = 0; i < w->path.n; i++)
        if (json_array_append_new(more[c->n_inclusions].site, json_string(w->path.word[i])) < 0)
            return error_sys(err, -ENOMEM, "%s", file_show(name).text);
    w->at = c->n_inclusions++;
    return 0;
}

/* The path of an include, from the folder of the file that names it. */
static int name_include(const struct walk *w, const char *text, char *ret, size_t size,
                        struct error *err)
{
    const char *from = w->c->sources[w->c->inclusions[w->at].source].name;
    int n;

    while (strncmp(text, "./", 2) == 0)
        text += 2;
    n = text[0] == '/'
            ? snprintf(ret, size, "%s", text)
            : snprintf(ret, size, "%.*s/%s", (int)(strrchr(from, '/') - from), from, text);
    if (!text[0] || n < 0 || (size_t)n >= size) {
        (void)error_set(err, ERR_INVALID, "'$include' must be a path of 1 to %zu bytes", size - 1);
        return wrong_here(w, err);
    }
    return 0;
}

static int include_one(struct walk *w, const char *text, json_t **ret, struct error *err)
{
    const struct config *c = w->c;
    size_t outer = w->at;
    autofree char *canonical = NULL;
    autoclose int fd = -1;
    char name[LIMIT_PATH];
    int r;

    r = name_include(w, text, name, sizeof(name), err);
    if (r < 0)
        return r;
    if (w->depth >= LIMIT_CONFIG_INCLUDE_DEPTH) {
        (void)error_set(err, ERR_TOO_LARGE, "includes in each other more than %u deep",
                        LIMIT_CONFIG_INCLUDE_DEPTH);
        return wrong_here(w, err);
    }
    fd = source_open(name, w->roots, &canonical, err);
    if (fd < 0)
        return wrong_here(w, err);
    for (size_t i = w->at;; i = c->inclusions[i].parent) {
        if (strcmp(c->sources[c->inclusions[i].source].canonical, canonical) == 0)
            return cycle(w, canonical, err);
        if (i == 0)
            break;
    }
    r = add_file(w, fd, name, canonical, err);
    if (r < 0)
        return r;
    w->depth++;
    r = resolve(w, c->sources[c->inclusions[w->at].source].value, ret, err);
    w->depth--;
    w->at = outer;
    return r;
}

/* ---- walking ---- */

static int included(struct walk *w, json_t *what, json_t **ret, struct error *err)
{
    json_t *sum = NULL, *one, *v;
    size_t i;
    int r;

    if (json_is_string(what))
        return include_one(w, json_string_value(what), ret, err);
    if (!json_is_array(what) || json_array_size(what) == 0) {
        (void)error_set(err, ERR_INVALID, "'$include' must be a path or a list of paths");
        return wrong_here(w, err);
    }
    json_array_foreach(what, i, v)
    {
        one = NULL;
        r = json_is_string(v) ? include_one(w, json_string_value(v), &one, err)
                              : error_set(err, ERR_INVALID, "'$include' must list paths");
        if (r < 0) {
            json_decref(sum);
            return json_is_string(v) ? r : wrong_here(w, err);
        }
        if (sum && one) {
            json_t *both = merged(sum, one);

            json_decref(sum);
            json_decref(one);
            sum = both;
        } else if (one) {
            sum = one;
        }
    }
    *ret = sum;
    return 0;
}

static int resolve_member(struct walk *w, json_t *out, const char *key, json_t *v,
                          struct error *err)
{
    json_t *one = NULL;
    int r;

    if (!key_path_push(&w->path, key)) {
        (void)error_set(err, ERR_TOO_LARGE, "more than %u keys in each other", LIMIT_CONFIG_WORDS);
        return wrong_here(w, err);
    }
    r = resolve(w, v, &one, err);
    key_path_pop(&w->path);
    if (r < 0 || !one)
        return r;
    r = json_is_array(out) ? json_array_append_new(out, one) : json_object_set_new(out, key, one);
    return r < 0 ? error_sys(err, -ENOMEM, "read the configuration") : 0;
}

/* Includes come first and the members beside them second: key_find() searches backwards. */
static int resolve_object(struct walk *w, json_t *value, json_t **ret, struct error *err)
{
    json_t *what = json_object_get(value, INCLUDE), *below = NULL, *out = json_object(), *v;
    const char *key;
    int r = what ? included(w, what, &below, err) : 0;

    json_object_foreach(value, key, v)
    {
        if (r < 0)
            break;
        if (strcmp(key, INCLUDE) != 0)
            r = resolve_member(w, out, key, v, err);
    }
    if (r >= 0 && what && json_object_size(value) == 1) {
        json_decref(out);
        *ret = below;
        return 0;
    }
    if (r >= 0 && below && !json_is_object(below)) {
        (void)error_set(err, ERR_INVALID,
                        "what is included beside other keys must be an object; leave them out");
        r = wrong_here(w, err);
    }
    *ret = r < 0 ? NULL : below ? merged(below, out) : json_incref(out);
    json_decref(below);
    json_decref(out);
    return r;
}

static int resolve_list(struct walk *w, json_t *value, json_t **ret, struct error *err)
{
    json_t *out = json_array(), *v;
    char number[24];
    size_t i;
    int r = 0;

    json_array_foreach(value, i, v)
    {
        (void)snprintf(number, sizeof(number), "%zu", i);
        r = resolve_member(w, out, number, v, err);
        if (r < 0) {
            json_decref(out);
            return r;
        }
    }
    *ret = out;
    return 0;
}

static int resolve(struct walk *w, json_t *value, json_t **ret, struct error *err)
{
    *ret = NULL;
    if (part_of(&w->path) == PART_NOT_OURS)
        return 0;
    if (json_is_object(value))
        return resolve_object(w, value, ret, err);
    if (json_is_array(value))
        return resolve_list(w, value, ret, err);
    *ret = json_incref(value);
    return 0;
}

/* ---- the top file ---- */

static void add_root(struct walk *w, const char *folder, size_t *n)
{
    autoclose int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0 && *n < ROOTS_MAX && path_of_fd(fd, w->root_text[*n], LIMIT_PATH) >= 0) {
        w->roots[*n] = w->root_text[*n];
        ++*n;
    }
}

/* The folder that openclaw.json is named in, not the one a link leads to, as the client has it. */
static void find_roots(struct walk *w)
{
    const char *more = getenv("OPENCLAW_INCLUDE_ROOTS");
    const char *file = w->c->main_file;
    char folder[LIMIT_PATH], full[LIMIT_PATH];
    struct error ignored;
    size_t n = 0;

    (void)snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(file, '/') - file + 1), file);
    add_root(w, folder, &n);
    for (const char *p = more; p && *p;) {
        size_t len = strcspn(p, ":");

        (void)snprintf(folder, sizeof(folder), "%.*s", (int)len, p);
        if (len && len < sizeof(folder) &&
            config_full_path(w->c, folder, full, sizeof(full), &ignored) >= 0)
            add_root(w, full, &n);
        p += len + (p[len] == ':');
    }
}

static int read_top(struct walk *w, struct error *err)
{
    struct config *c = w->c;
    autofree char *canonical = NULL;
    autoclose int fd = source_open(c->main_file, NULL, &canonical, err);
    int r;

    if (fd < 0)
        return fd == -ERR_NOT_FOUND && !c->main_named ? 0 : fd;
    r = add_file(w, fd, c->main_file, canonical, err);
    if (r < 0)
        return r;
    c->top[SOURCE_OPENCLAW] = c->inclusions[0].source;
    find_roots(w);
    r = resolve(w, c->sources[c->inclusions[0].source].value, &c->parts[SOURCE_OPENCLAW], err);
    if (r >= 0 && !json_is_object(c->parts[SOURCE_OPENCLAW])) {
        (void)error_set(err, ERR_INVALID, "the whole must be an object: { ... }");
        return wrong_here(w, err);
    }
    return r;
}

int openclaw_read(struct config *c, struct error *err)
{
    struct walk *w = calloc(1, sizeof(*w)); /* the roots are too much for a stack */
    int r;

    if (!w)
        return error_sys(err, -ENOMEM, "read the configuration");
    w->c = c;
    r = read_top(w, err);
    free(w);
    return r;
}
