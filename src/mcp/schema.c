/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/schema.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/utf8.h"
#include "json/chars.h"

#define PATH_SHOWN 160 /* bytes of a path in a message */

/* Where in the value we are: a chain of callers' frames. */
struct place {
    const struct place *up;
    const char *key; /* of an object; NULL in an array */
    size_t index;
};

static struct chars_shown show(const char *s)
{
    return chars_show(s, s + strlen(s));
}

static bool is_plain_key(const char *key)
{
    return key[0] &&
           key[strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$-")] ==
               0;
}

static void put_place(struct buf *b, const struct place *p)
{
    if (!p->up) {
        buf_puts(b, p->key);
        return;
    }
    if (p->up->up || !p->key) /* the root's own name is said of nothing but itself */
        put_place(b, p->up);
    if (!p->key)
        buf_printf(b, "[%zu]", p->index);
    else if (is_plain_key(p->key))
        buf_printf(b, "%s%s", p->up->up ? "." : "", p->key);
    else
        buf_printf(b, "[%s]", show(p->key).text);
}

static int fail(struct error *err, const struct place *p, const char *text)
{
    autobuf path = {.max = 65536};

    put_place(&path, p);
    return error_set(err, ERR_INVALID, "%.*s: %s", PATH_SHOWN, path.data ? path.data : "?", text);
}

#define FAIL(err, p, ...)                                  \
    ({                                                     \
        char text_[320];                                   \
                                                           \
        (void)snprintf(text_, sizeof(text_), __VA_ARGS__); \
        fail((err), (p), text_);                           \
    })

/* ---- types ---- */

static const char *type_name(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "object";
    case JSON_ARRAY:
        return "array";
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
        return "integer";
    case JSON_REAL:
        return "number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "boolean";
    case JSON_NULL:
        return "null";
    }
    return "nothing";
}

/* 5.0, and small enough for its neighbours to be told from it. */
static bool is_whole(const json_t *v)
{
    double d = json_is_real(v) ? json_real_value(v) : 0.5;

    return d == floor(d) && fabs(d) <= 9007199254740992.0;
}

static bool is_type(const json_t *v, const char *type)
{
    if (strcmp(type, "number") == 0)
        return json_is_number(v);
    if (strcmp(type, "integer") == 0)
        return json_is_integer(v) || is_whole(v);
    return strcmp(type, type_name(v)) == 0;
}

static bool is_any_type(const json_t *v, const json_t *types)
{
    const json_t *one;
    size_t i;

    if (json_is_string(types))
        return is_type(v, json_string_value(types));
    json_array_foreach(types, i, one)
    {
        if (is_type(v, json_string_value(one)))
            return true;
    }
    return false;
}

static void put_words(struct buf *b, const json_t *words)
{
    const json_t *one;
    size_t i;

    json_array_foreach(words, i, one)
    {
        char *text = json_dumps(one, JSON_COMPACT | JSON_ENCODE_ANY);

        buf_printf(b, "%s%s", i ? ", " : "", text ? text : "?");
        free(text);
    }
}

static int check_type(const json_t *types, const json_t *v, const struct place *p,
                      struct error *err)
{
    autobuf words = {.max = 4096};

    if (!types || is_any_type(v, types))
        return 0;
    if (json_is_string(types))
        buf_puts(&words, json_string_value(types));
    else
        put_words(&words, types);
    return FAIL(err, p, "must be of type %s, not %s", words.data ? words.data : "?", type_name(v));
}

static int check_enum(const json_t *schema, const json_t *v, const struct place *p,
                      struct error *err)
{
    const json_t *list = json_object_get(schema, "enum"), *same, *one;
    autobuf words = {.max = 65536};
    size_t i;

    same = json_object_get(schema, "const");
    if (same && !json_equal(same, v))
        return FAIL(err, p, "must be the one value that is taken here");
    if (!list)
        return 0;
    json_array_foreach(list, i, one)
    {
        if (json_equal(one, v))
            return 0;
    }
    put_words(&words, list);
    return FAIL(err, p, "must be one of %s", words.data ? words.data : "nothing");
}

/* ---- sizes ---- */

static size_t count_characters(const char *s, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

static int check_size(const json_t *schema, const char *least, const char *most, size_t n,
                      const char *what, const struct place *p, struct error *err)
{
    const json_t *min = json_object_get(schema, least), *max = json_object_get(schema, most);

    if (min && (json_int_t)n < json_integer_value(min))
        return FAIL(err, p, "must have at least %lld %s, has %zu",
                    (long long)json_integer_value(min), what, n);
    if (max && (json_int_t)n > json_integer_value(max))
        return FAIL(err, p, "must have at most %lld %s, has %zu",
                    (long long)json_integer_value(max), what, n);
    return 0;
}

/* Integers are compared as such: a double does not tell 2^53 from its neighbour. */
static int compare(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b))
        return (json_integer_value(a) > json_integer_value(b)) -
               (json_integer_value(a) < json_integer_value(b));
    return (json_number_value(a) > json_number_value(b)) -
           (json_number_value(a) < json_number_value(b));
}

static int check_range(const json_t *schema, const json_t *v, const struct place *p,
                       struct error *err)
{
    const json_t *min = json_object_get(schema, "minimum"), *max;

    max = json_object_get(schema, "maximum");
    if (min && compare(v, min) < 0)
        return FAIL(err, p, "must be at least %.15g", json_number_value(min));
    if (max && compare(v, max) > 0)
        return FAIL(err, p, "must be at most %.15g", json_number_value(max));
    return 0;
}

/* ---- containers ---- */

static int check(const json_t *schema, json_t *v, const struct place *p, struct error *err);

static bool wants_integer(const json_t *schema, const json_t *v)
{
    const json_t *types = json_object_get(schema, "type");

    return json_is_string(types) && strcmp(json_string_value(types), "integer") == 0 && is_whole(v);
}

static json_t *as_integer(const json_t *v)
{
    return json_integer((json_int_t)json_real_value(v));
}

static int check_member(const json_t *schema, json_t *object, const char *key,
                        const struct place *up, struct error *err)
{
    const struct place p = {.up = up, .key = key};
    json_t *v = json_object_get(object, key);
    int r = check(schema, v, &p, err);

    if (r == 0 && wants_integer(schema, v) && json_object_set_new(object, key, as_integer(v)) < 0)
        return error_set(err, ERR_SYS, "out of memory");
    return r;
}

static int fail_unknown(const json_t *properties, const char *key, const struct place *p,
                        struct error *err)
{
    autobuf known = {.max = 65536};
    const char *name;
    json_t *unused;

    json_object_foreach((json_t *)properties, name, unused)
    {
        (void)unused;
        buf_printf(&known, "%s%s", known.len ? ", " : "", name);
    }
    return FAIL(err, p, "has no field %s; its fields are: %s", show(key).text,
                known.data ? known.data : "none");
}

static int check_object(const json_t *schema, json_t *v, const struct place *p, struct error *err)
{
    const json_t *properties = json_object_get(schema, "properties"), *one;
    const json_t *others = json_object_get(schema, "additionalProperties");
    const char *key;
    json_t *member;
    size_t i;
    void *next;

    json_array_foreach(json_object_get(schema, "required"), i, one)
    {
        const struct place missing = {.up = p, .key = json_string_value(one)};

        if (!json_object_get(v, missing.key))
            return FAIL(err, &missing, "is required");
    }
    json_object_foreach_safe(v, next, key, member)
    {
        const json_t *its = json_object_get(properties, key);

        (void)member;
        if (!its && json_is_false(others))
            return fail_unknown(properties, key, p, err);
        if (!its && json_is_object(others))
            its = others;
        if (its && check_member(its, v, key, p, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

static int check_array(const json_t *schema, json_t *v, const struct place *p, struct error *err)
{
    const json_t *items = json_object_get(schema, "items");
    int r = check_size(schema, "minItems", "maxItems", json_array_size(v), "items", p, err);

    for (size_t i = 0; r == 0 && items && i < json_array_size(v); i++) {
        const struct place at = {.up = p, .index = i};
        json_t *one = json_array_get(v, i);

        r = check(items, one, &at, err);
        if (r == 0 && wants_integer(items, one) && json_array_set_new(v, i, as_integer(one)) < 0)
            return error_set(err, ERR_SYS, "out of memory");
    }
    return r;
}

static int check(const json_t *schema, json_t *v, const struct place *p, struct error *err)
{
    int r = check_type(json_object_get(schema, "type"), v, p, err);

    if (r == 0)
        r = check_enum(schema, v, p, err);
    if (r < 0)
        return r;
    if (json_is_object(v))
        return check_object(schema, v, p, err);
    if (json_is_array(v))
        return check_array(schema, v, p, err);
    if (json_is_string(v))
        return check_size(schema, "minLength", "maxLength",
                          count_characters(json_string_value(v), json_string_length(v)),
                          "characters", p, err);
    return json_is_number(v) ? check_range(schema, v, p, err) : 0;
}

int schema_check(const json_t *schema, json_t *value, const char *root, struct error *err)
{
    const struct place p = {.key = root};

    return check(schema, value, &p, err);
}

/* ---- the schema itself ---- */

static int accept(const json_t *schema, const struct place *p, struct error *err);

static bool is_type_word(const json_t *v)
{
    static const char *const words[] = {"object", "array",   "string", "integer",
                                        "number", "boolean", "null"};

    for (size_t i = 0; json_is_string(v) && i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(words[i], json_string_value(v)) == 0)
            return true;
    return false;
}

static bool is_list_of(const json_t *v, bool (*is)(const json_t *))
{
    const json_t *one;
    size_t i;

    json_array_foreach(v, i, one)
    {
        if (!is(one))
            return false;
    }
    return json_is_array(v) && json_array_size(v) > 0;
}

static bool is_anything(const json_t *v)
{
    return v != NULL;
}

static bool is_text(const json_t *v)
{
    return json_is_string(v);
}

static bool is_type_words(const json_t *v)
{
    return is_type_word(v) || is_list_of(v, is_type_word);
}

static bool is_names(const json_t *v)
{
    return is_list_of(v, is_text) || (json_is_array(v) && json_array_size(v) == 0);
}

static bool is_choices(const json_t *v)
{
    return is_list_of(v, is_anything);
}

static bool is_count(const json_t *v)
{
    return json_is_integer(v) && json_integer_value(v) >= 0;
}

static bool is_number(const json_t *v)
{
    return json_is_number(v);
}

static bool is_object(const json_t *v)
{
    return json_is_object(v);
}

static bool is_closing(const json_t *v)
{
    return json_is_boolean(v) || json_is_object(v);
}

static const struct keyword {
    const char *name;
    bool (*is)(const json_t *v);
} keywords[] = {
    {"type", is_type_words},     {"enum", is_choices},      {"const", is_anything},
    {"properties", is_object},   {"required", is_names},    {"additionalProperties", is_closing},
    {"items", is_object},        {"minItems", is_count},    {"maxItems", is_count},
    {"minLength", is_count},     {"maxLength", is_count},   {"minimum", is_number},
    {"maximum", is_number},      {"title", is_text},        {"description", is_text},
    {"default", is_anything},    {"examples", is_anything}, {"format", is_text},
    {"deprecated", is_anything}, {"$schema", is_text},      {"$comment", is_text},
    {"x-mcp-header", is_text},
};

static int accept_keyword(const char *name, const json_t *v, const struct place *p,
                          struct error *err)
{
    for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++) {
        if (strcmp(keywords[i].name, name) != 0)
            continue;
        if (keywords[i].is(v))
            return 0;
        return FAIL(err, p, "its '%s' is not as it must be", name);
    }
    return FAIL(err, p, "the word '%s' is not one that is checked", name);
}

static int accept_below(const json_t *schema, const char *word, const struct place *p,
                        struct error *err)
{
    const json_t *v = json_object_get(schema, word);
    const struct place at = {.up = p, .key = word};

    return json_is_object(v) ? accept(v, &at, err) : 0;
}

static int accept(const json_t *schema, const struct place *p, struct error *err)
{
    const char *name;
    json_t *v;
    int r;

    if (!json_is_object(schema))
        return FAIL(err, p, "is not a schema object");
    json_object_foreach((json_t *)schema, name, v)
    {
        r = accept_keyword(name, v, p, err);
        if (r < 0)
            return r;
    }
    json_object_foreach(json_object_get(schema, "properties"), name, v)
    {
        const struct place at = {.up = p, .key = name};

        r = accept(v, &at, err);
        if (r < 0)
            return r;
    }
    r = accept_below(schema, "items", p, err);
    return r < 0 ? r : accept_below(schema, "additionalProperties", p, err);
}

int schema_accept(const json_t *schema, struct error *err)
{
    const struct place p = {.key = "schema"};

    return accept(schema, &p, err);
}
