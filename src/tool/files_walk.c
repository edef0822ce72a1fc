/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/limits.h"
#include "tool/files_internal.h"
#include "tool/tool.h"

/* ---- what was found, as paths that can be given back ---- */

/* The folder that was asked about, as it was spelled, and how much the answer still holds: a long
 * path before each of many names would make much of little. */
struct listing {
    const char *folder;
    size_t folder_len;
    json_t *list;
    int64_t room;
    bool full;
};

static void listing_start(struct listing *l, const json_t *a)
{
    const char *path = json_string_value(json_object_get(a, "path"));
    size_t n = path ? strlen(path) : 0;

    *l = (struct listing){.folder = path, .room = LIMIT_FILES_OUT, .list = json_array()};
    while (n > 1 && path[n - 1] == '/')
        n--;
    l->folder_len = n == 1 && path[0] == '.' ? 0 : n;
}

/* NULL: no room any longer, or no memory. `more` is what will stand beside it. */
static json_t *listing_path(struct listing *l, const char *name, const char *end, size_t more)
{
    autobuf path = {.max = LIMIT_FILES_OUT};

    if (l->folder_len) {
        buf_append(&path, l->folder, l->folder_len);
        buf_puts(&path, "/");
    }
    files_name_escape(&path, name, strlen(name));
    buf_puts(&path, end);
    l->room -= (int64_t)(path.len + more);
    l->full |= l->room < 0;
    return l->full || path.failed ? NULL : json_stringn(path.data, path.len);
}

static void listing_add(struct listing *l, struct reply *ret, json_t *one)
{
    if (!l->full)
        ret->failed |= json_array_append_new(l->list, one) < 0;
    else
        json_decref(one);
}

/* ---- what is missing ---- */

static void put_end(struct reply *ret, enum files_stop stop, bool full, uint64_t unreadable,
                    const char *unit)
{
    static const char *const whys[] = {"", "limit", "work", "time"};
    const char *why = full ? "size" : whys[stop];
    char note[160] = "";

    if (full)
        (void)snprintf(note, sizeof(note),
                       "more than %u bytes of %s: name a folder below, or "
                       "ask for less",
                       LIMIT_FILES_OUT, unit);
    else if (stop == FILES_STOP_MANY)
        (void)snprintf(note, sizeof(note),
                       "there may be more %s: raise limit, or narrow the search", unit);
    else if (stop == FILES_STOP_WORK)
        (void)snprintf(note, sizeof(note), "too much to look at: name a folder below");
    else if (stop == FILES_STOP_TIME)
        (void)snprintf(note, sizeof(note), "stopped after %d ms: name a folder below",
                       LIMIT_TOOL_SEARCH_MS);
    reply_put(ret, "truncated", json_boolean(why[0] != 0));
    if (why[0])
        reply_put(ret, "why", json_string(why));
    if (note[0])
        reply_put(ret, "note", json_string(note));
    if (unreadable)
        reply_number(ret, "unreadable", (int64_t)unreadable);
}

static struct files_walk how_of(const json_t *a, int64_t limit)
{
    return (struct files_walk){.limit = (size_t)arg_number(a, "limit", limit),
                               .deadline_ms = LIMIT_TOOL_SEARCH_MS};
}

/* ---- ls ---- */

static const char *type_of(char kind)
{
    return kind == '-' ? "file" : kind == 'd' ? "directory" : kind == 'l' ? "symlink" : "other";
}

static json_t *entry_of(struct listing *l, const struct files_entry *e, const char *name)
{
    json_t *path = listing_path(l, name, "", 80);
    time_t seconds = (time_t)(e->mtime_ns / 1000000000);
    char when[32] = "";
    struct reply one = {.object = json_object()};
    struct tm tm;

    if (gmtime_r(&seconds, &tm))
        (void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
    reply_put(&one, "path", path);
    reply_put(&one, "type", json_string(type_of(e->kind)));
    if (e->kind == '-')
        reply_number(&one, "size", e->size);
    reply_put(&one, "modified", json_string(when));
    if (!one.failed)
        return one.object;
    json_decref(one.object);
    return NULL;
}

static void put_list(struct reply *ret, const json_t *a, struct files_list *found, bool entries)
{
    struct listing l;

    listing_start(&l, a);
    for (size_t i = 0; i < found->n && !l.full && !ret->failed; i++) {
        const struct files_entry *e = &found->entries[i];
        const char *name = files_list_name(found, i);

        listing_add(&l, ret,
                    entries ? entry_of(&l, e, name)
                            : listing_path(&l, name, e->kind == 'd' ? "/" : "", 4));
    }
    reply_put(ret, entries ? "entries" : "paths", l.list);
    put_end(ret, found->stop, l.full, found->unreadable, entries ? "entries" : "paths");
    files_list_done(found);
}

int verb_ls(const struct files_root *root, json_t *a, struct reply *ret, struct error *err)
{
    const struct files_walk how = how_of(a, TOOL_LS_ENTRIES);
    struct files_list found;
    autobuf path = {0};
    int r = arg_path(a, ".", &path, err);

    if (r == 0)
        r = files_list(root, path.data, arg_is(a, "recursive"), &how, &found, err);
    if (r == 0)
        put_list(ret, a, &found, true);
    return r;
}

int verb_find(const struct files_root *root, json_t *a, struct reply *ret, struct error *err)
{
    const char *pattern = json_string_value(json_object_get(a, "pattern"));
    const struct files_walk how = how_of(a, TOOL_FIND_PATHS);
    struct files_list found;
    autobuf path = {0};
    int r = arg_path(a, ".", &path, err);

    if (r == 0)
        r = files_find(root, path.data, pattern, &how, &found, err);
    if (r == 0)
        put_list(ret, a, &found, false);
    return r;
}

/* ---- grep ---- */

static json_t *match_of(struct listing *l, const struct files_grep *g, const struct files_match *m)
{
    struct reply one = {.object = json_object()};

    reply_put(&one, "path", listing_path(l, g->text.data + m->path, "", m->len + 40));
    reply_number(&one, "line", (int64_t)m->line);
    reply_put(&one, "text", tool_text(g->text.data + m->text, m->len));
    if (m->is_context)
        reply_put(&one, "context", json_true());
    if (m->cut)
        reply_put(&one, "cut", json_true());
    if (!one.failed)
        return one.object;
    json_decref(one.object);
    return NULL;
}

static void put_matches(struct reply *ret, const json_t *a, struct files_grep *g)
{
    struct listing l;

    listing_start(&l, a);
    if (g->one_file)
        l.folder_len = 0; /* the whole path is in the match */
    for (size_t i = 0; i < g->n && !l.full && !ret->failed; i++)
        listing_add(&l, ret, match_of(&l, g, &g->matches[i]));
    reply_put(ret, "matches", l.list);
    reply_number(ret, "files", (int64_t)g->files);
    if (g->binary)
        reply_number(ret, "binary", (int64_t)g->binary);
    put_end(ret, g->stop, l.full, g->unreadable, "matches");
    files_grep_done(g);
}

int verb_grep(const struct files_root *root, json_t *a, struct reply *ret, struct error *err)
{
    const json_t *pattern = json_object_get(a, "pattern");
    const struct files_query query = {.pattern = json_string_value(pattern),
                                      .len = json_string_length(pattern),
                                      .literal = arg_is(a, "literal"),
                                      .ignore_case = arg_is(a, "ignoreCase"),
                                      .context = (unsigned)arg_number(a, "context", 0),
                                      .glob = json_string_value(json_object_get(a, "glob")),
                                      .how = how_of(a, TOOL_GREP_MATCHES)};
    struct files_grep found;
    autobuf path = {0};
    int r = arg_path(a, ".", &path, err);

    if (r == 0)
        r = files_grep(root, path.data, &query, &found, err);
    if (r == 0)
        put_matches(ret, a, &found);
    return r;
}
