/* SPDX-License-Identifier: Apache-2.0 */
/* From arguments to the file tools' hands (src/files), and back to a result. */
#include "tool/files_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "guard/guard.h"
#include "mcp/base64.h"
#include "tool/tool.h"

/* ---- results ---- */

json_t *tool_text(const char *s, size_t len)
{
    autobuf text = {.max = 3 * len + 1};
    uint32_t c;

    if (utf8_is_valid(s, len))
        return json_stringn_nocheck(s, len);
    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        n = utf8_take(s + i, len - i, &c);
        buf_append(&text, n ? s + i : "\xef\xbf\xbd", n ? n : 3);
    }
    return text.failed ? NULL : json_stringn(text.len ? text.data : "", text.len);
}

void reply_base64(struct reply *r, const char *key, const void *data, size_t len)
{
    autobuf text = {.max = len / 3 * 4 + 8};

    base64_put(data, len, BASE64_PLAIN, &text);
    reply_put(r, key,
              text.failed ? NULL : json_stringn_nocheck(text.len ? text.data : "", text.len));
}

static void version_format(const struct files_id *id, char out[LIMIT_TOOL_VERSION])
{
    if (id->sha256[0])
        (void)snprintf(out, LIMIT_TOOL_VERSION, "%s", id->sha256);
    else
        (void)snprintf(out, LIMIT_TOOL_VERSION, "stat:%" PRIu64 ":%" PRIu64 ":%" PRId64 ":%" PRId64,
                       id->dev, id->ino, id->size, id->mtime_ns);
}

void reply_version(struct reply *r, const struct files_id *id)
{
    char text[LIMIT_TOOL_VERSION];

    version_format(id, text);
    reply_put(r, "version", json_string(text));
}

/* ---- arguments ---- */

int arg_path(const json_t *a, const char *otherwise, struct buf *ret, struct error *err)
{
    const json_t *v = json_object_get(a, "path");
    const char *text = v ? json_string_value(v) : otherwise;
    int r;

    buf_init(ret, LIMIT_PATH);
    r = files_name_parse(text, v ? json_string_length(v) : strlen(text), ret, err);
    buf_append(ret, "", 0); /* data is there even if the path is empty */
    return r < 0 || !ret->failed ? r : error_sys(err, -ENOMEM, "path");
}

/* Exactly what version_format() makes: one version has one spelling. */
static bool version_parse(const char *text, struct files_id *ret)
{
    char again[LIMIT_TOOL_VERSION];

    *ret = (struct files_id){0};
    if (strspn(text, "0123456789abcdef") == 64 && !text[64])
        memcpy(ret->sha256, text, 65);
    else if (sscanf(text, "stat:%" SCNu64 ":%" SCNu64 ":%" SCNd64 ":%" SCNd64, &ret->dev, &ret->ino,
                    &ret->size, &ret->mtime_ns) != 4)
        return false;
    version_format(ret, again);
    return strcmp(again, text) == 0;
}

int arg_expected(const json_t *a, struct files_id *ret, bool *ret_there, struct error *err)
{
    const char *text = json_string_value(json_object_get(a, "expected"));

    *ret_there = text != NULL;
    if (text && !version_parse(text, ret))
        return error_set(err, ERR_INVALID,
                         "expected: it is not a version that read, write or edit gave");
    return 0;
}

/* ---- the verbs ---- */

static const struct verb {
    const char *name;
    int (*run)(const struct files_root *root, json_t *a, struct reply *ret, struct error *err);
} verbs[] = {
    {"read", verb_read}, {"write", verb_write}, {"edit", verb_edit}, {"apply_patch", verb_patch},
    {"ls", verb_ls},     {"find", verb_find},   {"grep", verb_grep},
};

static const struct verb *find_verb(const struct tool *t)
{
    const char *name = t->same_as ? t->same_as : t->name;

    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

int tool_files(const struct pass *p, const struct tool *t, const struct files_root *root,
               json_t *arguments, json_t **ret, struct error *err)
{
    const struct verb *verb = find_verb(t);
    struct reply reply = {0};
    int r;

    if (!verb)
        return error_set(err, ERR_NOT_FOUND, "tool '%s': it is no file tool", t->name);
    if (!t->read_only && !p->may_write)
        return error_set(err, ERR_DENIED,
                         "%s: this call may only read; the token's rights or the workspace's "
                         "access (workspaceAccess) say so",
                         t->name);
    r = tool_check(t, arguments, err);
    if (r < 0)
        return r;
    reply.object = json_object();
    r = verb->run(root, arguments, &reply, err);
    if (r == 0 && reply.failed)
        r = error_sys(err, -ENOMEM, "%s: make the result", t->name);
    if (r < 0) {
        json_decref(reply.object);
        return r;
    }
    *ret = reply.object;
    return 0;
}
