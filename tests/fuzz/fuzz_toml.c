/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are either refused at a place of the text with a tame message, or read into a tree
 * whose every key and element toml_locate() finds, at a key of that name.
 */
#include "toml/toml.h"

#include <stdbool.h>

#include "base/error.h"
#include "base/limits.h"
#include "tests/fuzz/fuzz.h"

#define MOST_LOCATED 64 /* each reads the text again */

struct walk {
    const char *text;
    size_t len;
    const char *path[LIMIT_CONFIG_DEPTH + 1];
    char index[LIMIT_CONFIG_DEPTH][24];
    unsigned depth, located;
};

/* The byte at a place; NULL when the text has no such place. */
static const char *byte_at(const char *text, size_t len, struct text_place place)
{
    const char *at = text, *end = text + len;

    for (unsigned line = 1; line < place.line; line++) {
        at = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        if (!at++)
            return NULL;
    }
    for (unsigned column = 1; column < place.column; column++) {
        if (at == end || *at++ == '\n')
            return NULL;
        while (at < end && ((unsigned char)*at & 0xc0) == 0x80)
            at++;
    }
    return place.line && place.column ? at : NULL;
}

/* `key` is NULL for an element of an array. */
static void check_located(struct walk *w, const char *key)
{
    struct text_place place = {0};
    const char *at;

    if (w->located++ >= MOST_LOCATED)
        return;
    w->path[w->depth] = NULL;
    PROPERTY(toml_locate(w->text, w->len, w->path, &place) == 0, "'%s' is not found",
             w->path[w->depth - 1]);
    at = byte_at(w->text, w->len, place);
    PROPERTY(at && at < w->text + w->len, "'%s' is at %u:%u", w->path[w->depth - 1], place.line,
             place.column);
    PROPERTY(
        !key || *at == '"' || *at == '\'' ||
            ((size_t)(w->text + w->len - at) >= strlen(key) && memcmp(at, key, strlen(key)) == 0),
        "'%s' is not at %u:%u", key, place.line, place.column);
}

static void walk(struct walk *w, json_t *value)
{
    const char *key;
    size_t i;
    json_t *v;

    PROPERTY((!json_is_object(value) && !json_is_array(value)) || w->depth < LIMIT_CONFIG_DEPTH,
             "too deep");
    json_object_foreach(value, key, v)
    {
        w->path[w->depth++] = key;
        check_located(w, key);
        walk(w, v);
        w->depth--;
    }
    json_array_foreach(value, i, v)
    {
        (void)snprintf(w->index[w->depth], sizeof(w->index[0]), "%zu", i);
        w->path[w->depth] = w->index[w->depth];
        w->depth++;
        check_located(w, NULL);
        walk(w, v);
        w->depth--;
    }
}

static void check_refusal(const char *text, size_t len, struct text_place place,
                          const struct error *err)
{
    PROPERTY(byte_at(text, len, place), "failed at %u:%u", place.line, place.column);
    PROPERTY(err->msg[0] && strlen(err->msg) < 400, "message '%s'", err->msg);
    for (const char *s = err->msg; *s; s++)
        PROPERTY((unsigned char)*s >= 0x20 && *s != 0x7f, "a control character in a message");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct walk w = {.text = (const char *)data, .len = size};
    json_auto_t *tree = NULL;
    struct text_place place = {0};
    struct error err = {0};
    int r = toml_parse(w.text, size, &tree, &place, &err);

    PROPERTY((r == 0) == (tree != NULL) && r == -(int)err.code, "result %d without its due", r);
    if (tree)
        walk(&w, tree);
    else
        check_refusal(w.text, size, place, &err);
    return 0;
}
