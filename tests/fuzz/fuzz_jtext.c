/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are either refused with a reason or read into a tree whose links all hold. */
#include "base/jtext.h"

#include "base/error.h"
#include "base/limits.h"
#include "tests/fuzz/fuzz.h"

static size_t walk(const struct jtext *v, unsigned depth)
{
    size_t n = 1, members = 0;

    PROPERTY(depth <= LIMIT_JSON_DEPTH, "depth %u", depth);
    for (const struct jtext *m = jtext_first(v); m; m = jtext_next(m)) {
        n += walk(m, depth + 1);
        members++;
        if (v->type == JTEXT_OBJECT)
            PROPERTY(jtext_get(v, jtext_key(m)) == m, "key '%s' finds another", jtext_key(m));
    }
    PROPERTY(members == jtext_count(v), "%zu members of %zu", members, jtext_count(v));
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autoptr(jtext_doc) doc = NULL;
    struct error err = {0};
    int r = jtext_parse((const char *)data, size, &doc, &err);

    PROPERTY(r == 0 ? doc != NULL : err.msg[0] != 0, "result %d without its due", r);
    if (doc)
        PROPERTY(walk(jtext_root(doc), 0) <= LIMIT_JSON_NODES, "too many");
    return 0;
}
