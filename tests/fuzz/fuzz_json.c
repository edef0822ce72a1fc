/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are either refused with a reason or read into a tree whose links all hold. */
#include "base/json.h"

#include "base/error.h"
#include "base/limits.h"
#include "tests/fuzz/fuzz.h"

static size_t walk(const struct json *v, unsigned depth)
{
    size_t n = 1, members = 0;

    PROPERTY(depth <= LIMIT_JSON_DEPTH, "depth %u", depth);
    for (const struct json *m = json_first(v); m; m = json_next(m)) {
        n += walk(m, depth + 1);
        members++;
        if (v->type == JSON_OBJECT)
            PROPERTY(json_get(v, json_key(m)) == m, "key '%s' finds another", json_key(m));
    }
    PROPERTY(members == json_count(v), "%zu members of %zu", members, json_count(v));
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autoptr(json_doc) doc = NULL;
    struct error err = {0};
    int r = json_parse((const char *)data, size, &doc, &err);

    PROPERTY(r == 0 ? doc != NULL : err.msg[0] != 0, "result %d without its due", r);
    if (doc)
        PROPERTY(walk(json_root(doc), 0) <= LIMIT_JSON_NODES, "too many");
    return 0;
}
