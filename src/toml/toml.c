/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: one pass, from a checked text straight into the tree. Every value is put
 * into its container before it is filled, so that the root owns all there is at any moment, and so
 * that toml_locate() can follow its path down while the tree grows.
 *
 * The rules of redefinition, in terms of how a table was made (enum made):
 *  R1  what was written as a value, { } or [ ], is complete;
 *  R2  a header [a.b] may define b once: when it is new, or was only made on the way to another;
 *  R3  on its way a header passes through any table, and into the last element of a [[list]];
 *  R4  a dotted key passes only through tables that dotted keys made, or that were only on the way,
 *      which are thereby defined;
 *  R5  [[a]] begins a list or adds to one that [[a]] began.
 * A table that dotted keys made in one section cannot be reached by those of another without
 * passing a header's table, which R4 refuses: so a record need not say which section it is of.
 */
#include "toml/toml.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "toml/internal.h"

/* Where the next value goes. The key is NULL in an array. */
struct slot {
    json_t *in;
    unsigned depth; /* of `in`; the root is 1 */
    const char *key, *at;
};

/* ---- putting values into their place ---- */

static bool is_index(const char *s, size_t index)
{
    size_t v = 0;

    if (!*s || (*s == '0' && s[1]))
        return false;
    for (; *s; s++)
        if (*s < '0' || *s > '9' || v > LIMIT_CONFIG_BYTES)
            return false;
        else
            v = 10 * v + (size_t)(*s - '0');
    return v == index;
}

/* One step of the path leads to this value: to its end, which ends the reading, or into it. */
static int follow_path(struct toml_reader *p, const char *at, const json_t *value)
{
    p->path_in = value;
    if (*++p->path)
        return 0;
    p->found = true;
    p->stop = at;
    return -1;
}

/* Takes the value; NULL is one that there was no memory for. */
static int put(struct toml_reader *p, const struct slot *to, json_t *value)
{
    size_t index = json_array_size(to->in);
    int r;

    if (to->key && p->n_keys == LIMIT_CONFIG_KEYS) {
        json_decref(value);
        return toml_fail_limit(p, to->at, "more than %u keys", LIMIT_CONFIG_KEYS);
    }
    if (to->key) {
        p->n_keys++;
        r = json_object_set_new_nocheck(to->in, to->key, value);
    } else {
        r = json_array_append_new(to->in, value);
    }
    if (r < 0)
        return toml_fail_memory(p);
    if (to->in == p->path_in &&
        (to->key ? strcmp(to->key, *p->path) == 0 : is_index(*p->path, index)))
        return follow_path(p, to->at, value);
    return 0;
}

static int put_container(struct toml_reader *p, const struct slot *to, json_t *value)
{
    if (to->depth == LIMIT_CONFIG_DEPTH) {
        json_decref(value);
        return toml_fail_limit(p, to->at, "more than %u tables and arrays in each other",
                               LIMIT_CONFIG_DEPTH);
    }
    return put(p, to, value);
}

/* A table or list that is no value: more may be added to it. */
static int put_open(struct toml_reader *p, const struct slot *to, enum made made, json_t **ret)
{
    json_t *value = made == MADE_AS_LIST ? json_array() : json_object();
    int r = put_container(p, to, value);

    if (r < 0)
        return r;
    if (toml_made_add(&p->made, value, made) < 0)
        return toml_fail_memory(p);
    *ret = value;
    return 0;
}

/* ---- keys ---- */

static const char *part_name(const struct toml_reader *p, unsigned i)
{
    return p->key.names.data + p->key.part[i].name;
}

static struct slot part_slot(const struct toml_reader *p, unsigned i, json_t *in, unsigned depth)
{
    return (struct slot){in, depth, part_name(p, i), p->key.part[i].at};
}

/* The key as far as its part i, as it is written. */
static struct shown show_key(const struct toml_reader *p, unsigned i)
{
    return toml_show(p->key.part[0].at, p->key.part[i].end);
}

static int read_key_part(struct toml_reader *p)
{
    struct buf *names = &p->key.names;
    unsigned i = p->key.n;
    int r = 0;

    if (i == LIMIT_CONFIG_DEPTH)
        return toml_fail_limit(p, p->at, "more than %u parts in a key", LIMIT_CONFIG_DEPTH);
    p->key.part[i].name = names->len;
    p->key.part[i].at = p->at;
    if (toml_at(p, '"') || toml_at(p, '\'')) {
        r = toml_read_line_string(p, names);
    } else {
        while (p->at < p->end && toml_is_bare(*p->at))
            p->at++;
        if (p->at == p->key.part[i].at)
            return toml_fail(p, p->at, "expected a key%s, found %s", i ? " after '.'" : "",
                             toml_found(p).text);
        buf_append(names, p->key.part[i].at, (size_t)(p->at - p->key.part[i].at));
    }
    buf_append(names, "", 1);
    p->key.part[i].end = p->at;
    p->key.n++;
    return r < 0 ? r : names->failed ? toml_fail_memory(p) : 0;
}

/* Into p->key, with the blanks after it. */
static int read_key(struct toml_reader *p)
{
    p->key.n = 0;
    buf_clear(&p->key.names);
    for (;;) {
        int r = read_key_part(p);

        if (r < 0)
            return r;
        toml_skip_blanks(p);
        if (!toml_at(p, '.'))
            return 0;
        p->at++;
        toml_skip_blanks(p);
    }
}

/* ---- tables ---- */

static int refuse_part(struct toml_reader *p, unsigned i, const json_t *there)
{
    const char *what = json_is_object(there)  ? "an inline table, which is complete"
                       : json_is_array(there) ? "an array, which is complete"
                                              : "a value";

    return toml_fail(p, p->key.part[i].at, "expected a table, but %s is already %s",
                     show_key(p, i).text, what);
}

/* R3. Leaves in *to the table that the part names. */
static int pass_by_header(struct toml_reader *p, unsigned i, struct slot *to)
{
    json_t *there = json_object_get(to->in, part_name(p, i));
    enum made *made = there ? toml_made_find(&p->made, there) : NULL;
    struct slot s = part_slot(p, i, to->in, to->depth);

    to->depth++;
    if (!there)
        return put_open(p, &s, MADE_ON_THE_WAY, &to->in);
    if (!made)
        return refuse_part(p, i, there);
    if (*made == MADE_AS_LIST) {
        there = json_array_get(there, json_array_size(there) - 1);
        to->depth++;
    }
    to->in = there;
    return 0;
}

/* R4. */
static int pass_by_dots(struct toml_reader *p, unsigned i, struct slot *to)
{
    json_t *there = json_object_get(to->in, part_name(p, i));
    enum made *made = there ? toml_made_find(&p->made, there) : NULL;
    struct slot s = part_slot(p, i, to->in, to->depth);

    to->depth++;
    if (!there)
        return put_open(p, &s, MADE_BY_DOTS, &to->in);
    if (!made)
        return refuse_part(p, i, there);
    if (*made == MADE_AS_LIST || *made == MADE_BY_HEADER)
        return toml_fail(p, s.at, "expected a new key, but %s is already defined by [%s]",
                         show_key(p, i).text, *made == MADE_AS_LIST ? "[...]" : "...");
    *made = MADE_BY_DOTS;
    to->in = there;
    return 0;
}

/* R2. `to` is the slot of the header's last part. */
static int define_table(struct toml_reader *p, const struct slot *to)
{
    json_t *there = json_object_get(to->in, to->key);
    enum made *made = there ? toml_made_find(&p->made, there) : NULL;
    unsigned last = p->key.n - 1;

    p->section_depth = to->depth + 1;
    if (!there)
        return put_open(p, to, MADE_BY_HEADER, &p->section);
    if (!made)
        return refuse_part(p, last, there);
    if (*made != MADE_ON_THE_WAY)
        return toml_fail(p, to->at, "expected a new table, but %s is already defined by %s",
                         show_key(p, last).text,
                         *made == MADE_BY_DOTS   ? "dotted keys"
                         : *made == MADE_AS_LIST ? "[[...]]"
                                                 : "[...]");
    *made = MADE_BY_HEADER;
    p->section = there;
    return 0;
}

/* R5. */
static int define_element(struct toml_reader *p, const struct slot *to)
{
    json_t *list = json_object_get(to->in, to->key);
    enum made *made = list ? toml_made_find(&p->made, list) : NULL;
    struct slot element = {.depth = to->depth + 1, .at = to->at};
    int r = 0;

    if (!list)
        r = put_open(p, to, MADE_AS_LIST, &list);
    else if (!made)
        r = refuse_part(p, p->key.n - 1, list);
    else if (*made != MADE_AS_LIST)
        r = toml_fail(p, to->at, "expected a list of tables, but %s is already a table",
                      show_key(p, p->key.n - 1).text);
    if (r < 0)
        return r;
    element.in = list;
    p->section_depth = to->depth + 2;
    return put_open(p, &element, MADE_BY_HEADER, &p->section);
}

static int read_header(struct toml_reader *p)
{
    struct slot to = {.in = p->root, .depth = 1};
    bool is_list;
    int r;

    p->at++;
    is_list = toml_at(p, '[');
    if (is_list)
        p->at++;
    toml_skip_blanks(p);
    r = read_key(p);
    if (r < 0)
        return r;
    for (int i = is_list ? 2 : 1; i > 0; i--, p->at++)
        if (!toml_at(p, ']'))
            return toml_fail(p, p->at, "expected '%s' after %s, found %s", is_list ? "]]" : "]",
                             show_key(p, p->key.n - 1).text, toml_found(p).text);
    for (unsigned i = 0; i + 1 < p->key.n; i++) {
        r = pass_by_header(p, i, &to);
        if (r < 0)
            return r;
    }
    to = part_slot(p, p->key.n - 1, to.in, to.depth);
    return is_list ? define_element(p, &to) : define_table(p, &to);
}

/* ---- values ---- */

static int read_value(struct toml_reader *p, const struct slot *to);

/* `key = value` into a table, which may be a section or an inline table. */
static int read_pair(struct toml_reader *p, json_t *in, unsigned depth)
{
    struct slot to = {.in = in, .depth = depth};
    const char *equals;
    unsigned last;
    int r = read_key(p);

    if (r < 0)
        return r;
    last = p->key.n - 1;
    if (!toml_at(p, '='))
        return toml_fail(p, p->at, "expected '=' after %s, found %s", show_key(p, last).text,
                         toml_found(p).text);
    equals = p->at++;
    for (unsigned i = 0; i < last; i++) {
        r = pass_by_dots(p, i, &to);
        if (r < 0)
            return r;
    }
    to = part_slot(p, last, to.in, to.depth);
    if (json_object_get(to.in, to.key))
        return toml_fail(p, to.at, "expected a new key, but %s is already defined",
                         show_key(p, last).text);
    toml_skip_blanks(p);
    if (toml_at_line_end(p) || *p->at == '#')
        return toml_fail(p, p->at, "expected a value after %s, found %s",
                         toml_show(p->key.part[0].at, equals + 1).text, toml_found(p).text);
    return read_value(p, &to);
}

/* Everything that may stand between the elements of an array. */
static void skip_lines(struct toml_reader *p)
{
    do {
        toml_skip_blanks(p);
        toml_skip_comment(p);
    } while (toml_take_newline(p));
}

static int read_array(struct toml_reader *p, const struct slot *to)
{
    struct slot element = {.in = json_array(), .depth = to->depth + 1};
    int r = put_container(p, to, element.in);

    if (r < 0)
        return r;
    p->at++;
    for (skip_lines(p); !toml_at(p, ']'); skip_lines(p)) {
        element.at = p->at;
        if (p->at == p->end)
            return toml_fail(p, p->at, "expected a value or ']', found end of text");
        r = read_value(p, &element);
        if (r < 0)
            return r;
        skip_lines(p);
        if (toml_at(p, ']'))
            break;
        if (!toml_at(p, ','))
            return toml_fail(p, p->at, "expected ',' or ']' in an array, found %s",
                             toml_found(p).text);
        p->at++;
    }
    p->at++;
    return 0;
}

/* One line, and no comma after the last pair: so the specification has it. */
static int read_inline_table(struct toml_reader *p, const struct slot *to)
{
    json_t *table = json_object();
    int r = put_container(p, to, table);

    if (r < 0)
        return r;
    p->at++;
    toml_skip_blanks(p);
    if (toml_at(p, '}')) {
        p->at++;
        return 0;
    }
    for (;; p->at++) {
        toml_skip_blanks(p);
        r = read_pair(p, table, to->depth + 1);
        if (r < 0)
            return r;
        toml_skip_blanks(p);
        if (toml_at(p, '}'))
            break;
        if (!toml_at(p, ','))
            return toml_fail(p, p->at, "expected ',' or '}' in an inline table, found %s",
                             toml_found(p).text);
    }
    p->at++;
    return 0;
}

static int read_value(struct toml_reader *p, const struct slot *to)
{
    json_t *value = NULL;
    int r;

    if (toml_at(p, '['))
        return read_array(p, to);
    if (toml_at(p, '{'))
        return read_inline_table(p, to);
    if (toml_at(p, '"') || toml_at(p, '\'')) {
        buf_clear(&p->text);
        buf_append(&p->text, "", 0); /* an empty string, too, has data */
        r = toml_read_string(p, &p->text);
        if (r == 0)
            value = json_stringn_nocheck(p->text.data, p->text.len);
    } else {
        r = toml_read_scalar(p, &value);
    }
    return r < 0 ? r : put(p, to, value);
}

/* ---- the document ---- */

static int read_document(struct toml_reader *p)
{
    do {
        const char *what = "a value";
        int r = 0;

        toml_skip_blanks(p);
        if (toml_at(p, '[')) {
            what = "a table's name";
            r = read_header(p);
        } else if (!toml_at_line_end(p) && *p->at != '#') {
            r = read_pair(p, p->section, p->section_depth);
        }
        if (r < 0)
            return r;
        toml_skip_blanks(p);
        toml_skip_comment(p);
        if (!toml_at_line_end(p))
            return toml_fail(p, p->at, "expected end of line after %s, found %s", what,
                             toml_found(p).text);
    } while (toml_take_newline(p));
    return 0;
}

static int read_text(struct toml_reader *p)
{
    int r;

    p->stop = p->begin;
    if ((size_t)(p->end - p->begin) > LIMIT_CONFIG_BYTES)
        return error_set(p->err, ERR_TOO_LARGE, "more than %u bytes", LIMIT_CONFIG_BYTES);
    r = toml_check_text(p);
    if (r < 0)
        return r;
    p->root = p->section = json_object();
    p->section_depth = 1;
    if (!p->root)
        return toml_fail_memory(p);
    if (p->path)
        p->path_in = p->root;
    return read_document(p);
}

static void reader_init(struct toml_reader *p, const char *text, size_t len, struct error *err)
{
    *p = (struct toml_reader){.begin = text, .at = text, .end = text + len, .err = err};
    buf_init(&p->text, LIMIT_CONFIG_BYTES);
    buf_init(&p->key.names, LIMIT_CONFIG_BYTES + LIMIT_CONFIG_DEPTH);
}

static void reader_done(struct toml_reader *p)
{
    json_decref(p->root);
    toml_made_done(&p->made);
    buf_done(&p->text);
    buf_done(&p->key.names);
}

int toml_parse(const char *text, size_t len, json_t **ret, struct text_place *ret_place,
               struct error *err)
{
    cleanup_(reader_done) struct toml_reader p;
    int r;

    reader_init(&p, text, len, err);
    r = read_text(&p);
    if (r < 0)
        toml_place(text, p.stop, ret_place);
    else
        *ret = TAKE_PTR(p.root);
    return r;
}

int toml_locate(const char *text, size_t len, const char *const *path, struct text_place *ret)
{
    cleanup_(reader_done) struct toml_reader p;
    struct error err;

    reader_init(&p, text, len, &err);
    p.path = path;
    p.stop = text;
    p.found = !*path; /* the document itself */
    if (!p.found)
        (void)read_text(&p);
    if (!p.found)
        return -ENOENT;
    toml_place(text, p.stop, ret);
    return 0;
}
