/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jtext.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/utf8.h"

/*
 * Values stand in one array in the order of the text: the members of a container follow it, and
 * `end` leads past them. Strings are decoded into one block that cannot outgrow the text.
 */
struct jtext_doc {
    struct jtext *nodes;
    uint32_t n, cap;
    char *strings;
};

struct parser {
    const char *at, *end, *begin;
    struct jtext_doc *doc;
    char *out; /* next free byte of doc->strings */
    const char *problem;
};

static bool fail(struct parser *p, const char *problem)
{
    if (!p->problem)
        p->problem = problem;
    return false;
}

static void skip_space(struct parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

static bool take(struct parser *p, char c)
{
    skip_space(p);
    if (p->at == p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

/* ---- strings ---- */

static bool read_u16(struct parser *p, uint32_t *ret)
{
    uint32_t v = 0;

    if (p->end - p->at < 4)
        return fail(p, "a \\u escape is cut off");
    for (int i = 0; i < 4; i++) {
        int h = utf8_hex(*p->at++);

        if (h < 0)
            return fail(p, "a \\u escape is not hexadecimal");
        v = v << 4 | (uint32_t)h;
    }
    *ret = v;
    return true;
}

static void put_utf8(struct parser *p, uint32_t c)
{
    if (c < 0x80) {
        *p->out++ = (char)c;
    } else if (c < 0x800) {
        *p->out++ = (char)(0xc0 | c >> 6);
        *p->out++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *p->out++ = (char)(0xe0 | c >> 12);
        *p->out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *p->out++ = (char)(0x80 | (c & 0x3f));
    } else {
        *p->out++ = (char)(0xf0 | c >> 18);
        *p->out++ = (char)(0x80 | (c >> 12 & 0x3f));
        *p->out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *p->out++ = (char)(0x80 | (c & 0x3f));
    }
}

static bool read_unicode(struct parser *p)
{
    uint32_t c, low;

    if (!read_u16(p, &c))
        return false;
    if (c == 0)
        return fail(p, "a string holds U+0000");
    if (c >= 0xdc00 && c < 0xe000)
        return fail(p, "half a surrogate pair");
    if (c >= 0xd800 && c < 0xdc00) {
        if (p->end - p->at < 2 || p->at[0] != '\\' || p->at[1] != 'u')
            return fail(p, "half a surrogate pair");
        p->at += 2;
        if (!read_u16(p, &low))
            return false;
        if (low < 0xdc00 || low >= 0xe000)
            return fail(p, "half a surrogate pair");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    put_utf8(p, c);
    return true;
}

static bool read_escape(struct parser *p)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at;

    if (p->at == p->end)
        return fail(p, "a string is not closed");
    if (*p->at == 'u') {
        p->at++;
        return read_unicode(p);
    }
    at = memchr(from, *p->at, sizeof(from) - 1);
    if (!at)
        return fail(p, "an unknown escape");
    *p->out++ = to[at - from];
    p->at++;
    return true;
}

/* One character of more than one byte, copied if it is well-formed (RFC 3629). */
static bool read_utf8(struct parser *p)
{
    uint32_t c;
    size_t n = utf8_take(p->at, (size_t)(p->end - p->at), &c);

    if (n == 0)
        return fail(p, "a string is not UTF-8");
    memcpy(p->out, p->at, n);
    p->out += n;
    p->at += n;
    return true;
}

/* After the opening quote. */
static const char *read_string(struct parser *p)
{
    char *start = p->out;

    while (p->at < p->end && *p->at != '"') {
        unsigned char c = (unsigned char)*p->at;
        bool fine;

        if (c == '\\') {
            p->at++;
            fine = read_escape(p);
        } else if (c < 0x20) {
            fine = fail(p, "a string holds a raw control character");
        } else if (c < 0x80) {
            *p->out++ = *p->at++;
            fine = true;
        } else {
            fine = read_utf8(p);
        }
        if (!fine)
            return NULL;
    }
    if (p->at == p->end) {
        (void)fail(p, "a string is not closed");
        return NULL;
    }
    p->at++;
    *p->out++ = 0;
    return start;
}

/* ---- numbers and words ---- */

static bool digits(struct parser *p)
{
    const char *start = p->at;

    while (p->at < p->end && *p->at >= '0' && *p->at <= '9')
        p->at++;
    return p->at > start;
}

static bool read_number(struct parser *p, struct jtext *v)
{
    const char *start = p->at;
    size_t n;

    if (*p->at == '-')
        p->at++;
    if (p->at < p->end && *p->at == '0')
        p->at++;
    else if (!digits(p))
        return fail(p, "not a value");
    if (p->at < p->end && *p->at == '.') {
        p->at++;
        if (!digits(p))
            return fail(p, "a number ends with its point");
    }
    if (p->at < p->end && (*p->at == 'e' || *p->at == 'E')) {
        p->at++;
        if (p->at < p->end && (*p->at == '+' || *p->at == '-'))
            p->at++;
        if (!digits(p))
            return fail(p, "a number without its exponent");
    }
    n = (size_t)(p->at - start);
    v->type = JTEXT_NUMBER;
    v->text = p->out;
    memcpy(p->out, start, n);
    p->out[n] = 0;
    p->out += n + 1;
    return true;
}

static bool read_word(struct parser *p, struct jtext *v)
{
    static const struct {
        const char *word;
        enum jtext_type type;
    } words[] = {{"null", JTEXT_NULL}, {"true", JTEXT_TRUE}, {"false", JTEXT_FALSE}};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        size_t n = strlen(words[i].word);

        if ((size_t)(p->end - p->at) < n || memcmp(p->at, words[i].word, n) != 0)
            continue;
        p->at += n;
        v->type = words[i].type;
        return true;
    }
    return read_number(p, v);
}

/* ---- containers: no recursion, the open one is remembered by its members ---- */

#define NO_PARENT UINT32_MAX

static bool key_is_new(const struct jtext_doc *doc, uint32_t object, const char *key)
{
    for (uint32_t i = object + 1; i < doc->n; i = doc->nodes[i].end ? doc->nodes[i].end : i + 1)
        if (doc->nodes[i].parent == object && strcmp(doc->nodes[i].key, key) == 0)
            return false;
    return true;
}

static struct jtext *new_node(struct parser *p, uint32_t parent)
{
    struct jtext_doc *doc = p->doc;

    if (doc->n == LIMIT_JSON_NODES) {
        (void)fail(p, "too many values");
        return NULL;
    }
    if (doc->n == doc->cap) {
        uint32_t cap = doc->cap ? 2 * doc->cap : 64;
        struct jtext *nodes = realloc(doc->nodes, cap * sizeof(*nodes));

        if (!nodes) {
            (void)fail(p, "out of memory");
            return NULL;
        }
        doc->nodes = nodes;
        doc->cap = cap;
    }
    if (parent != NO_PARENT)
        doc->nodes[parent].count++;
    doc->nodes[doc->n] = (struct jtext){.self = doc->n, .parent = parent};
    return &doc->nodes[doc->n++];
}

/* The value here, with its key when it is an object's; a container is only opened. */
static bool read_value(struct parser *p, uint32_t parent)
{
    const char *key = NULL;
    struct jtext *v;

    if (parent != NO_PARENT && p->doc->nodes[parent].type == JTEXT_OBJECT) {
        if (!take(p, '"'))
            return fail(p, "a key is missing");
        key = read_string(p);
        if (!key)
            return false;
        if (!key_is_new(p->doc, parent, key))
            return fail(p, "a key comes twice");
        if (!take(p, ':'))
            return fail(p, "no ':' after a key");
    }
    skip_space(p);
    if (p->at == p->end)
        return fail(p, "the text ends where a value should be");
    v = new_node(p, parent);
    if (!v)
        return false;
    v->key = key;
    v->end = p->doc->n; /* of a container: set again when it closes */
    if (*p->at == '{' || *p->at == '[') {
        v->type = *p->at++ == '{' ? JTEXT_OBJECT : JTEXT_ARRAY;
        v->end = 0; /* open */
        return true;
    }
    if (*p->at != '"')
        return read_word(p, v);
    p->at++;
    v->type = JTEXT_STRING;
    v->text = read_string(p);
    return v->text != NULL;
}

static bool read_document(struct parser *p)
{
    uint32_t open = NO_PARENT, depth = 0, last;

    if (!read_value(p, NO_PARENT))
        return false;
    for (last = 0;;) {
        struct jtext *v = &p->doc->nodes[last];
        bool first = false;

        if (v->end == 0) { /* just opened */
            if (++depth > LIMIT_JSON_DEPTH)
                return fail(p, "nested too deep");
            open = last;
            first = true;
        }
        while (open != NO_PARENT) {
            struct jtext *o = &p->doc->nodes[open];

            if (!take(p, o->type == JTEXT_OBJECT ? '}' : ']'))
                break;
            o->end = p->doc->n;
            open = o->parent;
            depth--;
            first = false;
        }
        if (open == NO_PARENT)
            break;
        if (!first && !take(p, ','))
            return fail(p, "no ',' between values");
        last = p->doc->n;
        if (!read_value(p, open))
            return false;
    }
    skip_space(p);
    return p->at == p->end || fail(p, "something follows the value");
}

int jtext_parse(const char *text, size_t len, struct jtext_doc **ret, struct error *err)
{
    autoptr(jtext_doc) doc = calloc(1, sizeof(*doc));
    struct parser p = {.at = text, .begin = text, .end = text + len, .doc = doc};

    if (doc) /* a number and its NUL may need one byte more than they had: "1,2" */
        doc->strings = malloc(2 * len + 1);
    if (!doc || !doc->strings)
        return error_sys(err, -ENOMEM, "read %zu bytes of JSON", len);
    p.out = doc->strings;
    if (!read_document(&p))
        return error_set(err, ERR_INVALID, "JSON, byte %zu: %s", (size_t)(p.at - p.begin),
                         p.problem);
    *ret = TAKE_PTR(doc);
    return 0;
}

void jtext_doc_free(struct jtext_doc *doc)
{
    if (!doc)
        return;
    free(doc->nodes);
    free(doc->strings);
    free(doc);
}

/* ---- reading ---- */

const struct jtext *jtext_root(const struct jtext_doc *doc)
{
    return doc ? doc->nodes : NULL;
}

const struct jtext *jtext_first(const struct jtext *v)
{
    return v && v->count ? v + 1 : NULL;
}

const struct jtext *jtext_next(const struct jtext *v)
{
    const struct jtext *up;

    if (!v || v->parent == NO_PARENT)
        return NULL;
    up = v - (v->self - v->parent); /* one array: the distance is that of the indices */
    return v->end < up->end ? v + (v->end - v->self) : NULL;
}

const struct jtext *jtext_get(const struct jtext *object, const char *key)
{
    if (!object || object->type != JTEXT_OBJECT)
        return NULL;
    for (const struct jtext *v = jtext_first(object); v; v = jtext_next(v))
        if (strcmp(v->key, key) == 0)
            return v;
    return NULL;
}

const char *jtext_key(const struct jtext *v)
{
    return v ? v->key : NULL;
}

const char *jtext_string(const struct jtext *v)
{
    return v && v->type == JTEXT_STRING ? v->text : NULL;
}

bool jtext_int(const struct jtext *v, int64_t *ret)
{
    char *end;
    long long n;

    if (!v || v->type != JTEXT_NUMBER)
        return false;
    errno = 0;
    n = strtoll(v->text, &end, 10);
    if (errno || *end)
        return false;
    *ret = n;
    return true;
}

bool jtext_is_true(const struct jtext *v)
{
    return v && v->type == JTEXT_TRUE;
}

size_t jtext_count(const struct jtext *v)
{
    return v ? v->count : 0;
}
