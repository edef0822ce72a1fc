/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are either refused with a reason and a place within them, or read into a value that is
 * the same when it is written as JSON and read again, whose canonical text is JSON too, and whose
 * members are all located where the text has room for them.
 */
#include "json/json5.h"

#include <stdbool.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "tests/fuzz/fuzz.h"
#include "json/canonical.h"

#define MOST_LOCATED 200 /* members of one input: each takes a reading of its own */

struct input {
    const char *text;
    size_t len, lines;
    const char *path[LIMIT_CONFIG_DEPTH + 1];
    unsigned located;
};

static size_t count_lines(const char *text, size_t len)
{
    size_t n = 1;

    for (size_t i = 0; i < len; i++) /* at least as many: CR LF counts twice, U+2028 is not alone */
        n += text[i] == '\n' || text[i] == '\r' || text[i] == (char)0xe2;
    return n;
}

static bool is_sane(const struct input *in, struct text_place at)
{
    return at.line >= 1 && at.line <= in->lines && at.column >= 1 && at.column <= in->len + 1;
}

static bool is_after(struct text_place a, struct text_place b)
{
    return a.line > b.line || (a.line == b.line && a.column > b.column);
}

/* Locates what path[0..depth) leads to, and then what is in it; members stand in order. */
static struct text_place locate_all(struct input *in, const json_t *value, unsigned depth,
                                    struct text_place from)
{
    struct text_place at = {0};
    char index[24];
    const char *key;
    json_t *member;
    size_t i;

    in->path[depth] = NULL;
    PROPERTY(json5_locate(in->text, in->len, in->path, &at) == 0, "a member is not found");
    PROPERTY(is_sane(in, at) && (depth == 0 || is_after(at, from)), "place %u:%u after %u:%u",
             at.line, at.column, from.line, from.column);
    json_object_foreach((json_t *)value, key, member)
    {
        if (in->located++ > MOST_LOCATED)
            return at;
        in->path[depth] = key;
        at = locate_all(in, member, depth + 1, at);
    }
    json_array_foreach((json_t *)value, i, member)
    {
        if (in->located++ > MOST_LOCATED)
            return at;
        (void)snprintf(index, sizeof(index), "%zu", i);
        in->path[depth] = index;
        at = locate_all(in, member, depth + 1, at);
    }
    return at;
}

static json_t *read_again(const char *text)
{
    struct text_place place;
    struct error err = {0};
    json_t *value = NULL;

    PROPERTY(json5_parse(text, strlen(text), &value, &place, &err) == 0, "%s: %s", err.msg, text);
    return value;
}

static void check_canonical(const json_t *value)
{
    json_auto_t *again = NULL;
    autobuf first, second;
    struct error err;

    buf_init(&first, 16 * LIMIT_CONFIG_BYTES);
    buf_init(&second, 16 * LIMIT_CONFIG_BYTES);
    PROPERTY(canonical_format(value, &first, &err) == 0, "%s", err.msg);
    again = read_again(first.data);
    PROPERTY(canonical_format(again, &second, &err) == 0, "%s", err.msg);
    PROPERTY(strcmp(first.data, second.data) == 0, "'%s' is '%s'", first.data, second.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {.text = (const char *)data, .len = size};
    json_auto_t *value = NULL, *again = NULL;
    struct text_place place = {0};
    struct error err = {0};
    autofree char *dump = NULL;
    int r = json5_parse(in.text, size, &value, &place, &err);

    in.lines = count_lines(in.text, size);
    PROPERTY(r == 0 ? value != NULL : err.msg[0] && r == -(int)err.code, "result %d", r);
    if (!value) {
        PROPERTY(is_sane(&in, place), "place %u:%u", place.line, place.column);
        for (const char *s = err.msg; *s; s++)
            PROPERTY((unsigned char)*s >= 0x20 && *s != 0x7f, "a control byte in '%s'", err.msg);
        return 0;
    }
    dump = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    PROPERTY(dump, "a value that is not to be printed");
    if (size > LIMIT_CONFIG_BYTES / 8) /* the dump may be too large to be read */
        return 0;
    again = read_again(dump);
    PROPERTY(json_equal(value, again), "another value: %s", dump);
    check_canonical(value);
    (void)locate_all(&in, value, 0, place);
    return 0;
}
