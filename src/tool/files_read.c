/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "tool/files_internal.h"
#include "tool/tool.h"

static bool is_image(enum files_kind kind)
{
    return kind != FILES_TEXT && kind != FILES_BINARY;
}

/* What src/files says, in the words of this tool's arguments. */
static void put_note(struct reply *ret, bool raw, const struct files_read *got)
{
    char note[sizeof(got->note)];

    (void)snprintf(note, sizeof(note), "%s", got->note);
    if (!raw && is_image(got->kind))
        (void)snprintf(note, sizeof(note),
                       "an image of %" PRId64 " bytes; at most %d are shown: make it smaller, or "
                       "read it in parts with bytes true",
                       got->size, LIMIT_TOOL_IMAGE);
    else if (!raw && got->kind == FILES_BINARY)
        (void)snprintf(note, sizeof(note),
                       "not text, %" PRId64 " bytes: read it with bytes true, or look at it with "
                       "exec",
                       got->size);
    else if (got->next_raw)
        (void)snprintf(note, sizeof(note),
                       "a line is longer than %u bytes; go on with bytes true at offset %" PRId64,
                       LIMIT_FILES_READ, got->next);
    if (note[0])
        reply_put(ret, "note", json_string(note));
}

static void put_facts(struct reply *ret, json_t *a, const struct files_read *got)
{
    const char *kind = is_image(got->kind) ? "image" : files_kind_name(got->kind);

    reply_put(ret, "path", json_incref(json_object_get(a, "path")));
    reply_put(ret, "kind", json_string(kind));
    if (is_image(got->kind))
        reply_put(ret, "mimeType", json_string(files_kind_name(got->kind)));
    reply_number(ret, "size", got->size);
    if (got->kind == FILES_TEXT && got->total_lines >= 0)
        reply_number(ret, "totalLines", got->total_lines);
    if (got->cut)
        reply_number(ret, got->next_raw ? "nextByte" : "next", got->next);
    reply_version(ret, &got->id);
}

/* In one pass of its own: the first looked for lines. */
static int read_image(const struct files_root *root, json_t *a, const char *path, struct reply *ret,
                      struct error *err)
{
    const struct files_ask ask = {.raw = true, .limit = LIMIT_TOOL_IMAGE, .room = LIMIT_TOOL_IMAGE};
    struct files_read got;
    autobuf data = {.max = LIMIT_TOOL_IMAGE};
    int r = files_read(root, path, &ask, &data, &got, err);

    if (r < 0)
        return r;
    if (got.cut || !is_image(got.kind))
        return error_set(err, ERR_EXISTS, "read: the file changed meanwhile; read it again");
    put_facts(ret, a, &got);
    reply_base64(ret, "data", data.data ? data.data : "", data.len);
    return 0;
}

int verb_read(const struct files_root *root, json_t *a, struct reply *ret, struct error *err)
{
    const struct files_ask ask = {.raw = arg_is(a, "bytes"),
                                  .offset = arg_number(a, "offset", 0),
                                  .limit = arg_number(a, "limit", 0)};
    autobuf path = {0}, content = {.max = LIMIT_FILES_READ};
    struct files_read got;
    int r = arg_path(a, "", &path, err);

    if (r == 0)
        r = files_read(root, path.data, &ask, &content, &got, err);
    if (r < 0)
        return r;
    if (!ask.raw && is_image(got.kind) && got.size <= LIMIT_TOOL_IMAGE)
        return read_image(root, a, path.data, ret, err);
    put_facts(ret, a, &got);
    put_note(ret, ask.raw, &got);
    if (ask.raw) {
        reply_base64(ret, "data", content.data ? content.data : "", content.len);
    } else if (got.kind == FILES_TEXT) {
        reply_put(ret, "content", tool_text(content.data ? content.data : "", content.len));
        reply_number(ret, "lines", got.lines);
    }
    return 0;
}
