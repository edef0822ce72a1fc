/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "files/patch.h"
#include "mcp/base64.h"
#include "tool/files_internal.h"
#include "tool/tool.h"

#define DIFF_ROOM (LIMIT_FILES_DIFF + 64u) /* with the words that it was cut */

static void put_written(struct reply *ret, const json_t *a, const struct files_written *w)
{
    json_t *warnings = json_array();

    reply_put(ret, "path", json_incref(json_object_get(a, "path")));
    reply_version(ret, &w->id);
    if (w->link_broken)
        (void)json_array_append_new(
            warnings, json_string("the file had other names (hard links); they keep what it was"));
    if (!w->owner_kept)
        (void)json_array_append_new(
            warnings, json_string("the owner could not be kept; the file is the gateway's now"));
    if (json_array_size(warnings))
        reply_put(ret, "warnings", warnings);
    else
        json_decref(warnings);
}

static void put_counts(struct reply *ret, const struct files_written *w)
{
    reply_number(ret, "added", (int64_t)w->added);
    reply_number(ret, "removed", (int64_t)w->removed);
}

/* ---- write ---- */

/* The bytes to write: the text itself, or what `decoded` then holds. */
static int content_of(const json_t *a, struct buf *decoded, const char **ret, size_t *ret_len,
                      struct error *err)
{
    const char *encoding = json_string_value(json_object_get(a, "encoding"));
    const json_t *content = json_object_get(a, "content");

    *ret = json_string_value(content);
    *ret_len = json_string_length(content);
    if (!encoding || strcmp(encoding, "base64") != 0)
        return 0;
    buf_init(decoded, *ret_len);
    if (!base64_take(*ret, *ret_len, BASE64_PLAIN, decoded))
        return error_set(
            err, ERR_INVALID,
            "content: it is not base64 (A-Z a-z 0-9 + /, padded with =, no line ends)");
    *ret = decoded->len ? decoded->data : "";
    *ret_len = decoded->len;
    return 0;
}

int verb_write(const struct files_root *root, json_t *a, struct reply *ret, struct error *err)
{
    unsigned flags = json_is_false(json_object_get(a, "parents")) ? 0 : FILES_PARENTS;
    autobuf path = {0}, decoded = {0}, diff = {.max = DIFF_ROOM};
    struct files_id id, *expected;
    struct files_written w;
    const char *data = "";
    bool there, counted = true;
    size_t len = 0;
    int r = arg_path(a, "", &path, err);

    if (r == 0)
        r = arg_expected(a, &id, &there, err);
    if (r == 0)
        r = content_of(a, &decoded, &data, &len, err);
    if (r < 0)
        return r;
    flags |= arg_is(a, "new") ? FILES_NEW : 0;
    expected = there ? &id : NULL;
    r = files_write(root, path.data, data, len, flags, expected, &diff, &w, err);
    if (r < 0 && err->sys == EFBIG && !expected) { /* what is replaced is too large to compare */
        counted = false;
        r = files_write(root, path.data, data, len, flags, NULL, NULL, &w, err);
    }
    if (r < 0)
        return r;
    put_written(ret, a, &w);
    reply_put(ret, "created", json_boolean(w.created));
    if (counted)
        put_counts(ret, &w);
    return 0;
}

/* ---- edit ---- */

static struct files_edit edit_of(const json_t *v)
{
    const json_t *old = json_object_get(v, "oldText"), *new = json_object_get(v, "newText");

    return (struct files_edit){.old_text = json_string_value(old),
                               .old_len = json_string_length(old),
                               .new_text = json_string_value(new),
                               .new_len = json_string_length(new),
                               .all = arg_is(v, "all")};
}

int verb_edit(const struct files_root *root, json_t *a, struct reply *ret, struct error *err)
{
    const json_t *edits = json_object_get(a, "edits");
    autobuf path = {0}, diff = {.max = DIFF_ROOM};
    struct files_edit list[LIMIT_FILES_EDITS];
    size_t n = json_array_size(edits);
    struct files_written w;
    struct files_id id;
    bool there;
    int r = arg_path(a, "", &path, err);

    if (r == 0)
        r = arg_expected(a, &id, &there, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++)
        list[i] = edit_of(json_array_get(edits, i));
    r = files_edit(root, path.data, list, n, there ? &id : NULL, &diff, &w, err);
    if (r < 0)
        return r;
    put_written(ret, a, &w);
    put_counts(ret, &w);
    reply_put(ret, "diff", tool_text(diff.data ? diff.data : "", diff.len));
    return 0;
}

/* ---- apply_patch ---- */

/* A path in a patch is spelled as everywhere; what patch_parse() leaves are the bytes of its line.
 */
static int respell(char **path, struct error *err)
{
    autobuf name = {.max = LIMIT_PATH};
    int r = *path ? files_name_parse(*path, strlen(*path), &name, err) : 0;

    if (r < 0 || !*path)
        return r;
    free(*path);
    *path = name.data;
    name.data = NULL;
    return 0;
}

static int respell_all(struct patch *p, struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < p->n_ops && r == 0; i++) {
        r = respell(&p->ops[i].path, err);
        if (r == 0)
            r = respell(&p->ops[i].move_to, err);
        if (r < 0)
            return error_wrap(err, "patch line %zu", p->ops[i].row);
    }
    return r;
}

int verb_patch(const struct files_root *root, json_t *a, struct reply *ret, struct error *err)
{
    const json_t *text = json_object_get(a, "patch");
    autobuf diff = {.max = LIMIT_FILES_READ};
    autoptr(patch) p = NULL;
    struct patch_done done;
    int r = patch_parse(json_string_value(text), json_string_length(text), &p, err);

    if (r == 0)
        r = respell_all(p, err);
    if (r == 0)
        r = patch_apply(root, p, 0, &diff, &done, err);
    if (r < 0)
        return r;
    reply_number(ret, "added", (int64_t)done.added);
    reply_number(ret, "updated", (int64_t)done.updated);
    reply_number(ret, "deleted", (int64_t)done.deleted);
    reply_number(ret, "moved", (int64_t)done.moved);
    reply_put(ret, "diff", tool_text(diff.data ? diff.data : "", diff.len));
    return 0;
}
