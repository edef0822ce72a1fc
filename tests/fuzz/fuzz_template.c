/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates: whatever the text, it ends, and it prints nothing when it is refused as no template.
 * What is before a first line that is JSON is the value; else the value is a fixed one.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/jtext.h"
#include "cmd/docker/template.h"
#include "tests/fuzz/fuzz.h"

static const char object[] = "{\"Id\":\"aa\",\"State\":{\"Running\":true,\"Pid\":12},\"Mounts\":[{"
                             "\"Type\":\"bind\",\"RW\":false}],"
                             "\"Config\":{\"Env\":[\"A=1\",\"B=2\"],\"Labels\":{\"k\":\"v\",\"b\":"
                             "\"d\"},\"Entrypoint\":null},"
                             "\"F\":1.5,\"E\":[],\"Deep\":[[[[1]]]]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *s = fuzz_text(data, size), *line = strchr(s, '\n');
    autoptr(jtext_doc) doc = NULL;
    const char *text = s;
    struct error err = {0};
    autobuf out;

    buf_init(&out, 1 << 20);
    if (line && s[0] == '{' && jtext_parse(s, (size_t)(line - s), &doc, &err) >= 0)
        text = line + 1;
    else if (jtext_parse(object, strlen(object), &doc, &err) < 0)
        abort();
    if (template_eval(text, jtext_root(doc), &out, &err) < 0) {
        PROPERTY(err.msg[0], "no reason");
        PROPERTY(err.code != ERR_INVALID || out.len == 0,
                 "printed '%s' though it is no template: %s", out.data, err.msg);
    }
    template_unescape(s);
    free(s);
    return 0;
}
