/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/docker/template_value.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/jtext.h"
#include "base/limits.h"

/* ---- texts that live until the end ---- */

struct value_text {
    struct value_text *next;
    char *text;
};

void value_heap_done(struct value_heap *h)
{
    while (h->first) {
        struct value_text *t = h->first;

        h->first = t->next;
        free(t->text);
        free(t);
    }
}

const char *value_heap_take(struct value_heap *h, struct buf *b)
{
    struct value_text *t;

    buf_append(b, "", 0); /* an empty one gets its NUL too */
    if (b->failed || h->bytes + b->len > LIMIT_TEMPLATE_TEXT)
        return NULL;
    if (!b->data)
        return "";
    t = malloc(sizeof(*t));
    if (!t)
        return NULL;
    h->bytes += b->len + sizeof(*t);
    *t = (struct value_text){.next = h->first, .text = TAKE_PTR(b->data)};
    h->first = t;
    b->len = b->cap = 0;
    return t->text;
}

/* ---- values ---- */

struct value value_of(const struct jtext *v)
{
    struct value r = {.kind = VALUE_JSON, .json = v};
    int64_t n;

    if (!v)
        return (struct value){.kind = VALUE_NONE};
    if (v->type == JTEXT_STRING) {
        r.kind = VALUE_TEXT;
        r.text = v->text;
    } else if (v->type == JTEXT_TRUE || v->type == JTEXT_FALSE) {
        r.kind = VALUE_BOOL;
        r.number = v->type == JTEXT_TRUE;
    } else if (jtext_int(v, &n)) {
        r.kind = VALUE_INT;
        r.number = n;
    }
    return r;
}

bool value_is_map(const struct jtext *v)
{
    static const char *const names[] = {"Labels",   "Label",        "Tmpfs",        "Ports",
                                        "Networks", "PortBindings", "ExposedPorts", "Options"};

    for (size_t i = 0; v && v->key && i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(v->key, names[i]) == 0)
            return true;
    return false;
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(const struct jtext *const *)a)->key, (*(const struct jtext *const *)b)->key);
}

const struct jtext **value_sorted(const struct jtext *object)
{
    size_t n = jtext_count(object), i = 0;
    const struct jtext **list = n ? calloc(n, sizeof(const struct jtext *)) : NULL;

    if (!list)
        return NULL;
    for (const struct jtext *m = jtext_first(object); m && i < n; m = jtext_next(m))
        list[i++] = m;
    if (object->type == JTEXT_OBJECT)
        qsort(list, n, sizeof(*list), by_key);
    return list;
}

bool value_is_true(const struct value *v)
{
    switch (v->kind) {
    case VALUE_NONE:
        return false;
    case VALUE_JSON:
        return v->json->type == JTEXT_NUMBER || jtext_count(v->json) > 0;
    case VALUE_TEXT:
        return v->text[0] != 0;
    case VALUE_INT:
    case VALUE_BOOL:
        return v->number != 0;
    }
    return false;
}

static void print_json(struct buf *out, const struct jtext *v)
{
    struct value inner;

    if (v->type == JTEXT_NULL) {
        buf_puts(out, value_is_map(v) ? "map[]" : "[]"); /* all that docker leaves null are lists */
    } else if (v->type == JTEXT_NUMBER) {
        buf_puts(out, v->text);
    } else {
        autofree const struct jtext **list = value_sorted(v);

        buf_puts(out, v->type == JTEXT_OBJECT ? "map[" : "[");
        for (size_t i = 0; list && i < jtext_count(v); i++) {
            if (i)
                buf_puts(out, " ");
            if (v->type == JTEXT_OBJECT)
                buf_printf(out, "%s:", list[i]->key);
            inner = value_of(list[i]);
            value_print(out, &inner); /* as deep as the JSON reader allows */
        }
        buf_puts(out, "]");
    }
}

void value_print(struct buf *out, const struct value *v)
{
    switch (v->kind) {
    case VALUE_NONE:
        buf_puts(out, "<no value>");
        break;
    case VALUE_JSON:
        print_json(out, v->json);
        break;
    case VALUE_TEXT:
        buf_puts(out, v->text);
        break;
    case VALUE_INT:
        buf_printf(out, "%lld", v->number);
        break;
    case VALUE_BOOL:
        buf_puts(out, v->number ? "true" : "false");
        break;
    }
}

static void json_members(struct buf *out, const struct jtext *v)
{
    autofree const struct jtext **sorted = value_is_map(v) ? value_sorted(v) : NULL;
    const struct jtext *m = jtext_first(v);
    bool object = v->type == JTEXT_OBJECT, first = true;

    buf_puts(out, object ? "{" : "[");
    for (size_t i = 0; m; i++, m = jtext_next(m)) {
        const struct jtext *this = sorted && object ? sorted[i] : m;

        if (object && !v->key && this->type == JTEXT_OBJECT && strcmp(this->key, "Label") == 0)
            continue; /* of a row: there for {{.Label "key"}}, which docker has as a method */
        buf_puts(out, first ? "" : ",");
        first = false;
        if (object) {
            buf_json_string(out, this->key, strlen(this->key));
            buf_puts(out, ":");
        }
        value_json(out, this);
    }
    buf_puts(out, object ? "}" : "]");
}

void value_json(struct buf *out, const struct jtext *v)
{
    switch (v ? v->type : JTEXT_NULL) {
    case JTEXT_NULL:
        buf_puts(out, "null");
        break;
    case JTEXT_FALSE:
    case JTEXT_TRUE:
        buf_puts(out, v->type == JTEXT_TRUE ? "true" : "false");
        break;
    case JTEXT_NUMBER:
        buf_puts(out, v->text);
        break;
    case JTEXT_STRING:
        buf_json_string(out, v->text, strlen(v->text));
        break;
    case JTEXT_ARRAY:
    case JTEXT_OBJECT:
        json_members(out, v);
        break;
    }
}

/* ---- functions ---- */

struct call {
    const struct value *args;
    size_t n;
    struct buf *out; /* becomes the text that is returned, when the function makes one */
    struct value *ret;
    struct error *err;
};

struct value_function {
    const char *name;
    size_t least, most;
    int (*run)(struct call *c);
};

static int return_bool(struct call *c, bool yes)
{
    *c->ret = (struct value){.kind = VALUE_BOOL, .number = yes};
    return 0;
}

static const char *kind_name(const struct value *v)
{
    static const char *const names[] = {"nil", "map", "string", "int", "bool"};

    if (v->kind == VALUE_JSON && v->json->type == JTEXT_ARRAY)
        return "[]string";
    return names[v->kind];
}

static int fn_json(struct call *c)
{
    const struct value *v = &c->args[0];

    if (v->kind == VALUE_TEXT)
        buf_json_string(c->out, v->text, strlen(v->text));
    else if (v->kind == VALUE_JSON)
        value_json(c->out, v->json);
    else if (v->kind == VALUE_NONE)
        buf_puts(c->out, "null");
    else
        value_print(c->out, v);
    return 0;
}

static int index_array(const struct jtext *array, const struct value *key, struct value *v,
                       struct error *err)
{
    const struct jtext *m = jtext_first(array);

    if (key->kind != VALUE_INT)
        return error_set(err, ERR_UNSUPPORTED, "cannot index slice/array with type %s",
                         kind_name(key));
    for (long long i = 0; m && i < key->number; i++)
        m = jtext_next(m);
    if (!m || key->number < 0)
        return error_set(err, ERR_NOT_FOUND, "index out of range: %lld", key->number);
    *v = value_of(m);
    return 0;
}

static int fn_index(struct call *c)
{
    struct value v = c->args[0];

    for (size_t i = 1; i < c->n; i++) {
        const struct value *key = &c->args[i];
        int r = 0;

        if (v.kind != VALUE_JSON)
            return error_set(c->err, ERR_UNSUPPORTED, "can't index item of type %s", kind_name(&v));
        if (v.json->type == JTEXT_ARRAY) {
            r = index_array(v.json, key, &v, c->err);
        } else if (key->kind != VALUE_TEXT) {
            r = error_set(c->err, ERR_UNSUPPORTED, "value has type %s; should be string",
                          kind_name(key));
        } else {
            const struct jtext *m = jtext_get(v.json, key->text);

            v = m ? value_of(m) : (struct value){.kind = VALUE_TEXT, .text = ""};
        }
        if (r < 0)
            return r;
    }
    *c->ret = v;
    return 0;
}

static int fn_len(struct call *c)
{
    const struct value *v = &c->args[0];

    if (v->kind == VALUE_TEXT)
        *c->ret = (struct value){.kind = VALUE_INT, .number = (long long)strlen(v->text)};
    else if (v->kind == VALUE_JSON && v->json->type != JTEXT_NUMBER)
        *c->ret = (struct value){.kind = VALUE_INT, .number = (long long)jtext_count(v->json)};
    else
        return error_set(c->err, ERR_UNSUPPORTED, "len of type %s", kind_name(v));
    return 0;
}

static int fn_join(struct call *c)
{
    const struct value *list = &c->args[0], *between = &c->args[1];

    if (list->kind != VALUE_JSON || between->kind != VALUE_TEXT ||
        (list->json->type != JTEXT_ARRAY && list->json->type != JTEXT_NULL))
        return error_set(c->err, ERR_UNSUPPORTED, "wants a list and a string");
    for (const struct jtext *m = jtext_first(list->json); m; m = jtext_next(m)) {
        struct value v = value_of(m);

        if (m != jtext_first(list->json))
            buf_puts(c->out, between->text);
        value_print(c->out, &v);
    }
    return 0;
}

static int change_case(struct call *c, int (*first)(int), int (*rest)(int))
{
    const char *s = c->args[0].text;

    if (c->args[0].kind != VALUE_TEXT)
        return error_set(c->err, ERR_UNSUPPORTED, "wants a string");
    for (bool begins = true; *s; begins = !isalnum((unsigned char)*s), s++) {
        char ch = (char)(begins ? first : rest)((unsigned char)*s);

        buf_append(c->out, &ch, 1);
    }
    return 0;
}

static int same(int c)
{
    return c;
}

static int fn_upper(struct call *c)
{
    return change_case(c, toupper, toupper);
}

static int fn_lower(struct call *c)
{
    return change_case(c, tolower, tolower);
}

static int fn_title(struct call *c)
{
    return change_case(c, toupper, same);
}

static int fn_truncate(struct call *c)
{
    const struct value *s = &c->args[0], *n = &c->args[1];
    size_t len;

    if (s->kind != VALUE_TEXT || n->kind != VALUE_INT || n->number < 0)
        return error_set(c->err, ERR_UNSUPPORTED, "wants a string and a length");
    len = strlen(s->text);
    buf_append(c->out, s->text, len < (size_t)n->number ? len : (size_t)n->number);
    return 0;
}

/* Of a string: the bytes from the first number up to the second. */
static int fn_slice(struct call *c)
{
    const struct value *s = &c->args[0];
    long long len, from = 0, to;

    if (s->kind != VALUE_TEXT)
        return error_set(c->err, ERR_UNSUPPORTED, "can't slice item of type %s", kind_name(s));
    to = len = (long long)strlen(s->text);
    for (size_t i = 1; i < c->n; i++) {
        if (c->args[i].kind != VALUE_INT)
            return error_set(c->err, ERR_UNSUPPORTED, "cannot index slice/array with type %s",
                             kind_name(&c->args[i]));
        if (c->args[i].number < 0 || c->args[i].number > len)
            return error_set(c->err, ERR_NOT_FOUND, "index out of range: %lld", c->args[i].number);
        *(i == 1 ? &from : &to) = c->args[i].number;
    }
    if (from > to)
        return error_set(c->err, ERR_NOT_FOUND, "invalid slice index: %lld > %lld", from, to);
    buf_append(c->out, s->text + from, (size_t)(to - from));
    return 0;
}

/* As Go's Sprint: a blank between two operands of which neither is a string. */
static int fn_print(struct call *c)
{
    for (size_t i = 0; i < c->n; i++) {
        if (i && c->args[i].kind != VALUE_TEXT && c->args[i - 1].kind != VALUE_TEXT)
            buf_puts(c->out, " ");
        value_print(c->out, &c->args[i]);
    }
    return 0;
}

static int fn_println(struct call *c)
{
    for (size_t i = 0; i < c->n; i++) {
        if (i)
            buf_puts(c->out, " ");
        value_print(c->out, &c->args[i]);
    }
    buf_puts(c->out, "\n");
    return 0;
}

static int fn_printf(struct call *c)
{
    const char *f = c->args[0].text;
    size_t next = 1;

    if (c->args[0].kind != VALUE_TEXT)
        return error_set(c->err, ERR_UNSUPPORTED, "wants a string first");
    for (; *f; f++) {
        if (*f != '%' || !f[1]) {
            buf_append(c->out, f, 1);
            continue;
        }
        f++;
        if (*f == '%')
            buf_puts(c->out, "%");
        else if (!strchr("svdqt", *f))
            return error_set(c->err, ERR_UNSUPPORTED, "%%%c is not known here", *f);
        else if (next >= c->n)
            return error_set(c->err, ERR_INVALID, "not enough values for '%s'", c->args[0].text);
        else if (*f == 'q' && c->args[next].kind == VALUE_TEXT)
            buf_json_string(c->out, c->args[next].text, strlen(c->args[next].text)), next++;
        else
            value_print(c->out, &c->args[next++]);
    }
    return 0;
}

/* -1, 0, 1, or an error when they are not of one kind. */
static int compare(struct call *c, size_t i, int *ret)
{
    const struct value *a = &c->args[0], *b = &c->args[i];

    if (a->kind != b->kind || a->kind == VALUE_JSON || a->kind == VALUE_NONE)
        return error_set(c->err, ERR_UNSUPPORTED, "incompatible types for comparison");
    if (a->kind == VALUE_TEXT)
        *ret = strcmp(a->text, b->text);
    else
        *ret = (a->number > b->number) - (a->number < b->number);
    return 0;
}

static int fn_eq(struct call *c)
{
    bool any = false;

    for (size_t i = 1; i < c->n; i++) {
        int order, r = compare(c, i, &order);

        if (r < 0)
            return r;
        any |= order == 0;
    }
    return return_bool(c, any);
}

#define DEFINE_COMPARISON(name, condition)            \
    static int fn_##name(struct call *c)              \
    {                                                 \
        int order, r = compare(c, 1, &order);         \
                                                      \
        return r < 0 ? r : return_bool(c, condition); \
    }
DEFINE_COMPARISON(ne, order != 0)
DEFINE_COMPARISON(lt, order < 0)
DEFINE_COMPARISON(le, order <= 0)
DEFINE_COMPARISON(gt, order > 0)
DEFINE_COMPARISON(ge, order >= 0)

static int fn_not(struct call *c)
{
    return return_bool(c, !value_is_true(&c->args[0]));
}

static int fn_and(struct call *c)
{
    size_t i = 0;

    while (i + 1 < c->n && value_is_true(&c->args[i]))
        i++;
    *c->ret = c->args[i];
    return 0;
}

static int fn_or(struct call *c)
{
    size_t i = 0;

    while (i + 1 < c->n && !value_is_true(&c->args[i]))
        i++;
    *c->ret = c->args[i];
    return 0;
}

static const struct value_function functions[] = {
    {"json", 1, 1, fn_json},
    {"index", 1, LIMIT_TEMPLATE_ARGS, fn_index},
    {"len", 1, 1, fn_len},
    {"join", 2, 2, fn_join},
    {"upper", 1, 1, fn_upper},
    {"lower", 1, 1, fn_lower},
    {"title", 1, 1, fn_title},
    {"truncate", 2, 2, fn_truncate},
    {"slice", 1, 3, fn_slice},
    {"print", 0, LIMIT_TEMPLATE_ARGS, fn_print},
    {"println", 0, LIMIT_TEMPLATE_ARGS, fn_println},
    {"printf", 1, LIMIT_TEMPLATE_ARGS, fn_printf},
    {"eq", 2, LIMIT_TEMPLATE_ARGS, fn_eq},
    {"ne", 2, 2, fn_ne},
    {"lt", 2, 2, fn_lt},
    {"le", 2, 2, fn_le},
    {"gt", 2, 2, fn_gt},
    {"ge", 2, 2, fn_ge},
    {"not", 1, 1, fn_not},
    {"and", 1, LIMIT_TEMPLATE_ARGS, fn_and},
    {"or", 1, LIMIT_TEMPLATE_ARGS, fn_or},
};

const struct value_function *value_function(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
        if (strlen(functions[i].name) == len && memcmp(functions[i].name, name, len) == 0)
            return &functions[i];
    return NULL;
}

const char *value_function_name(const struct value_function *f)
{
    return f->name;
}

int value_call(const struct value_function *f, struct value_heap *heap, const struct value *args,
               size_t n_args, struct value *ret, struct error *err)
{
    struct value v = {.kind = VALUE_NONE};
    struct call c = {.args = args, .n = n_args, .ret = &v, .err = err};
    autobuf out;
    int r;

    buf_init(&out, LIMIT_TEMPLATE_TEXT);
    c.out = &out;
    if (n_args < f->least || n_args > f->most)
        return error_set(err, ERR_INVALID, "wrong number of args for %s: want %zu got %zu", f->name,
                         n_args < f->least ? f->least : f->most, n_args);
    r = f->run(&c);
    if (r < 0)
        return r;
    if (v.kind == VALUE_NONE) { /* the function wrote a text */
        v = (struct value){.kind = VALUE_TEXT, .text = value_heap_take(heap, &out)};
        if (!v.text)
            return error_set(err, ERR_TOO_LARGE, "the text is too long");
    }
    *ret = v;
    return 0;
}
