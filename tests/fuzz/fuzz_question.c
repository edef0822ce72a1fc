/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's body: what the front accepts is JSON that a strict reader accepts too, and means the
 * same after it was written and read again; whatever its fields are, checking them as a call, and
 * its arguments as those of each tool, only says yes or no.
 */
#include "base/error.h"
#include "gateway/front_internal.h"
#include "tests/fuzz/fuzz.h"
#include "tool/tool.h"

static void check_fields(json_t *v)
{
    json_t *arguments = json_object_get(v, "arguments");
    struct error err;

    for (size_t i = 0; i < n_front_ops; i++) {
        err.msg[0] = 0;
        if (fields_check(front_ops[i].fields, front_ops[i].n_fields, v, &err) < 0)
            PROPERTY(err.msg[0] != 0, "refused without a word");
    }
    for (size_t i = 0; json_is_object(arguments) && i < n_tools; i++) {
        char target[TOOL_TARGET];
        json_t *copy = json_deep_copy(arguments);

        if (tool_check(&tools[i], copy, &err) >= 0)
            PROPERTY(strlen(tool_target(&tools[i], copy, target)) < TOOL_TARGET, "a long target");
        json_decref(copy);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *v = NULL, *again = NULL, *other;
    struct error err = {0};
    char *text;

    if (json_strict((const char *)data, size, &v, &err) < 0) {
        PROPERTY(err.msg[0] != 0 && !v, "refused without a word");
        return 0;
    }
    other = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    PROPERTY(other && json_equal(v, other), "another reader reads another value");
    text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    PROPERTY(text && json_strict(text, strlen(text), &again, &err) >= 0 && json_equal(v, again),
             "not the same again");
    if (json_is_object(v))
        check_fields(v);
    free(text);
    json_decref(other);
    json_decref(again);
    json_decref(v);
    return 0;
}
