/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML into jansson values, by the events of libyaml. A first pass over the tokens refuses what a
 * configuration is better without (anchors, aliases, tags, directives, further documents, depth),
 * each at its own place; the second makes values, or looks for one key.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "config/internal.h"
#include "json/chars.h"

struct reader {
    yaml_parser_t parser;
    const char *text;
    size_t len;
    struct text_place *place;
    struct error *err;
    size_t keys, depth;
    const char *const *want; /* what is looked for; NULL: nothing */
    bool found;
};

static struct text_place mark_place(yaml_mark_t m)
{
    return (struct text_place){(unsigned)m.line + 1, (unsigned)m.column + 1};
}

static int wrong(struct reader *r, yaml_mark_t mark, const char *what)
{
    *r->place = mark_place(mark);
    return error_set(r->err, ERR_INVALID, "%s", what);
}

static int too_large(struct reader *r, yaml_mark_t mark, const char *what, unsigned max)
{
    *r->place = mark_place(mark);
    return error_set(r->err, ERR_TOO_LARGE, "%s: at most %u", what, max);
}

/* At the end of the text libyaml is already on a line that is not there. */
static struct text_place problem_place(const struct reader *r)
{
    size_t characters = 0;

    for (size_t i = 0; i < r->len; i++)
        characters += ((unsigned char)r->text[i] & 0xc0) != 0x80;
    if (r->parser.problem_mark.index >= characters)
        return chars_place(r->text, r->text + r->len);
    return mark_place(r->parser.problem_mark);
}

/* libyaml's own words; they hold nothing of the text. */
static int broken(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;

    if (p->error == YAML_MEMORY_ERROR)
        return error_sys(r->err, -ENOMEM, "read YAML");
    *r->place = problem_place(r);
    return error_set(r->err, ERR_INVALID, "%s%s%s", p->problem ? p->problem : "not YAML",
                     p->context ? " " : "", p->context ? p->context : "");
}

/* ---- tokens ---- */

static int check_token(struct reader *r, const yaml_token_t *t, size_t *documents)
{
    switch ((int)t->type) {
    case YAML_ANCHOR_TOKEN:
    case YAML_ALIAS_TOKEN:
        return wrong(r, t->start_mark,
                     "anchors and aliases are not read; write the value out, or quote it");
    case YAML_TAG_TOKEN:
        return wrong(r, t->start_mark, "tags are not read; leave it out, or quote the value");
    case YAML_VERSION_DIRECTIVE_TOKEN:
    case YAML_TAG_DIRECTIVE_TOKEN:
        return wrong(r, t->start_mark, "directives are not read; leave it out");
    case YAML_DOCUMENT_START_TOKEN:
        if (++*documents > 1)
            return wrong(r, t->start_mark, "a second document; put everything into one");
        return 0;
    case YAML_BLOCK_SEQUENCE_START_TOKEN:
    case YAML_BLOCK_MAPPING_START_TOKEN:
    case YAML_FLOW_SEQUENCE_START_TOKEN:
    case YAML_FLOW_MAPPING_START_TOKEN:
        if (++r->depth > LIMIT_CONFIG_DEPTH)
            return too_large(r, t->start_mark, "lists and mappings in each other",
                             LIMIT_CONFIG_DEPTH);
        return 0;
    case YAML_BLOCK_END_TOKEN:
    case YAML_FLOW_SEQUENCE_END_TOKEN:
    case YAML_FLOW_MAPPING_END_TOKEN:
        if (r->depth)
            r->depth--;
        return 0;
    default:
        return 0;
    }
}

static int check_tokens(struct reader *r)
{
    size_t documents = 0;

    for (;;) {
        yaml_token_t t;
        bool end;
        int res;

        if (!yaml_parser_scan(&r->parser, &t))
            return broken(r);
        end = t.type == YAML_STREAM_END_TOKEN;
        res = check_token(r, &t, &documents);
        yaml_token_delete(&t);
        if (res < 0 || end)
            return res;
    }
}

/* ---- scalars: the core schema of YAML 1.2 ---- */

static bool is_one_of(const char *s, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(s, *words) == 0)
            return true;
    return false;
}

static size_t digits(const char **s, const char *set)
{
    size_t n = strspn(*s, set);

    *s += n;
    return n;
}

/* [-+]? ( \.[0-9]+ | [0-9]+(\.[0-9]*)? ) ([eE][-+]?[0-9]+)? */
static bool is_float(const char *s)
{
    size_t n;

    s += *s == '-' || *s == '+';
    n = digits(&s, "0123456789");
    if (*s == '.') {
        s++;
        n += digits(&s, "0123456789");
    }
    if (!n)
        return false;
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '-' || *s == '+';
        if (!digits(&s, "0123456789"))
            return false;
    }
    return !*s;
}

static json_t *plain_number(const char *s)
{
    const char *d = s + (*s == '-' || *s == '+');
    int base = 10;
    long long n;

    if (*d && d[strspn(d, "0123456789")] == 0) {
        /* not octal, whatever it begins with */
    } else if (s[0] == '0' && s[1] == 'x' && s[2] &&
               s[2 + strspn(s + 2, "0123456789abcdefABCDEF")] == 0) {
        base = 16;
        s += 2;
    } else if (s[0] == '0' && s[1] == 'o' && s[2] && s[2 + strspn(s + 2, "01234567")] == 0) {
        base = 8;
        s += 2;
    } else {
        return is_float(s) && isfinite(strtod(s, NULL)) ? json_real(strtod(s, NULL)) : NULL;
    }
    errno = 0;
    n = strtoll(s, NULL, base);
    if (errno != ERANGE)
        return json_integer(n);
    return base == 10 && isfinite(strtod(s, NULL)) ? json_real(strtod(s, NULL)) : NULL;
}

/* NULL: it cannot be a value of ours. */
static json_t *plain_value(const char *s)
{
    static const char *const none[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const yes[] = {"true", "True", "TRUE", NULL};
    static const char *const no[] = {"false", "False", "FALSE", NULL};
    static const char *const odd[] = {".inf",  ".Inf",  ".INF", "+.inf", "+.Inf", "+.INF", "-.inf",
                                      "-.Inf", "-.INF", ".nan", ".NaN",  ".NAN",  NULL};
    json_t *n;

    if (is_one_of(s, none))
        return json_null();
    if (is_one_of(s, yes))
        return json_true();
    if (is_one_of(s, no))
        return json_false();
    if (is_one_of(s, odd))
        return NULL;
    n = plain_number(s);
    if (n)
        return n;
    return is_float(s) ? NULL : json_string(s);
}

static int scalar(struct reader *r, const yaml_event_t *e, json_t **ret)
{
    const char *s = (const char *)e->data.scalar.value;
    size_t n = e->data.scalar.length;

    if (memchr(s, 0, n))
        return wrong(r, e->start_mark, "a NUL character; remove it");
    *ret = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain_value(s) : json_stringn(s, n);
    if (!*ret)
        return wrong(r, e->start_mark,
                     "infinity, NaN or too large a number; quote it if it is text");
    return 0;
}

/* ---- events ---- */

static int value(struct reader *r, const yaml_event_t *e, const char *const *want, json_t **ret);

static int next(struct reader *r, yaml_event_t *e)
{
    return yaml_parser_parse(&r->parser, e) ? 0 : broken(r);
}

/* Is this member on the way to what is looked for? NULL: no. Notes its place if it is the one. */
static const char *const *step(struct reader *r, const char *const *want, const char *key,
                               yaml_mark_t mark)
{
    if (!want || !*want || strcmp(*want, key) != 0)
        return NULL;
    if (!want[1] && !r->found) {
        r->found = true;
        *r->place = mark_place(mark);
    }
    return want + 1;
}

static int read_key(struct reader *r, json_t *out, const yaml_event_t *e, char **ret)
{
    const char *s = (const char *)e->data.scalar.value;

    if (e->type != YAML_SCALAR_EVENT)
        return wrong(r, e->start_mark, "a key must be a word or a string");
    if (memchr(s, 0, e->data.scalar.length))
        return wrong(r, e->start_mark, "a NUL character; remove it");
    if (++r->keys > LIMIT_CONFIG_KEYS)
        return too_large(r, e->start_mark, "keys", LIMIT_CONFIG_KEYS);
    if (json_object_get(out, s)) {
        *r->place = mark_place(e->start_mark);
        return error_set(r->err, ERR_INVALID, "the key %s stands twice; leave one out",
                         chars_show(s, s + strlen(s)).text);
    }
    *ret = strdup(s);
    return *ret ? 0 : error_sys(r->err, -ENOMEM, "read YAML");
}

static int member(struct reader *r, json_t *out, const yaml_event_t *e, const char *const *want)
{
    autofree char *key = NULL;
    json_t *v = NULL;
    yaml_event_t e2;
    int res = read_key(r, out, e, &key);

    if (res < 0)
        return res;
    want = step(r, want, key, e->start_mark);
    res = next(r, &e2);
    if (res < 0)
        return res;
    res = value(r, &e2, want, &v);
    yaml_event_delete(&e2);
    if (res >= 0 && json_object_set_new(out, key, v) < 0)
        res = error_sys(r->err, -ENOMEM, "read YAML");
    return res;
}

static int element(struct reader *r, json_t *out, const yaml_event_t *e, const char *const *want)
{
    char number[24];
    json_t *v = NULL;
    int res;

    (void)snprintf(number, sizeof(number), "%zu", json_array_size(out));
    if (++r->keys > LIMIT_CONFIG_KEYS)
        return too_large(r, e->start_mark, "keys and elements", LIMIT_CONFIG_KEYS);
    res = value(r, e, step(r, want, number, e->start_mark), &v);
    if (res >= 0 && json_array_append_new(out, v) < 0)
        res = error_sys(r->err, -ENOMEM, "read YAML");
    return res;
}

static int collection(struct reader *r, bool map, const char *const *want, json_t **ret)
{
    json_t *out = map ? json_object() : json_array();
    bool end = false;
    int res = 0;

    while (!end && res >= 0) {
        yaml_event_t e;

        res = next(r, &e);
        if (res < 0)
            break;
        end = e.type == YAML_MAPPING_END_EVENT || e.type == YAML_SEQUENCE_END_EVENT;
        if (!end)
            res = map ? member(r, out, &e, want) : element(r, out, &e, want);
        yaml_event_delete(&e);
    }
    if (res < 0)
        json_decref(out);
    else
        *ret = out;
    return res;
}

/* Tokens do not show every level (a list that is not indented under its key, a pair in a flow
 * list): the depth counts here too. */
static int value(struct reader *r, const yaml_event_t *e, const char *const *want, json_t **ret)
{
    int res;

    if (e->type == YAML_SCALAR_EVENT)
        return scalar(r, e, ret);
    if (e->type != YAML_MAPPING_START_EVENT && e->type != YAML_SEQUENCE_START_EVENT)
        return wrong(r, e->start_mark, "a value expected");
    if (r->depth >= LIMIT_CONFIG_DEPTH)
        return too_large(r, e->start_mark, "lists and mappings in each other", LIMIT_CONFIG_DEPTH);
    r->depth++;
    res = collection(r, e->type == YAML_MAPPING_START_EVENT, want, ret);
    r->depth--;
    return res;
}

/* Stream and document have their own events around the one value. */
static int document(struct reader *r, json_t **ret)
{
    for (;;) {
        yaml_event_t e;
        bool end;
        int res = next(r, &e);

        if (res < 0)
            return res;
        end = e.type == YAML_STREAM_END_EVENT;
        if (e.type == YAML_SCALAR_EVENT || e.type == YAML_MAPPING_START_EVENT ||
            e.type == YAML_SEQUENCE_START_EVENT)
            res = value(r, &e, r->want, ret);
        yaml_event_delete(&e);
        if (res < 0 || end)
            return res;
    }
}

static int run(int (*pass)(struct reader *, json_t **), struct reader *r, json_t **ret)
{
    int res;

    if (!yaml_parser_initialize(&r->parser))
        return error_sys(r->err, -ENOMEM, "read YAML");
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)r->text, r->len);
    r->depth = 0;
    res = pass(r, ret);
    yaml_parser_delete(&r->parser);
    return res;
}

static int tokens_pass(struct reader *r, json_t **ret)
{
    (void)ret;
    return check_tokens(r);
}

static int check_text(const char *text, size_t len, struct text_place *place, struct error *err)
{
    const char *nul = memchr(text, 0, len), *bad = chars_find_bad(text, text + len);

    *place = (struct text_place){1, 1};
    if (len > LIMIT_CONFIG_BYTES)
        return error_set(err, ERR_TOO_LARGE, "more than %u bytes", LIMIT_CONFIG_BYTES);
    if (!nul && !bad)
        return 0;
    *place = chars_place(text, !bad || (nul && nul < bad) ? nul : bad);
    return error_set(err, ERR_INVALID, "not UTF-8 text; save the file as UTF-8");
}

int yaml_parse(const char *text, size_t len, json_t **ret, struct text_place *ret_place,
               struct error *err)
{
    struct reader r = {.text = text, .len = len, .place = ret_place, .err = err};
    json_t *v = NULL;
    int res = check_text(text, len, ret_place, err);

    if (res >= 0)
        res = run(tokens_pass, &r, NULL);
    if (res >= 0)
        res = run(document, &r, &v);
    if (res < 0) {
        json_decref(v);
        return res;
    }
    *ret = v ? v : json_null();
    return 0;
}

int yaml_locate(const char *text, size_t len, const char *const *path, struct text_place *ret)
{
    struct error err;
    struct reader r = {.text = text, .len = len, .place = ret, .err = &err, .want = path};
    json_t *v = NULL;

    (void)run(document, &r, &v);
    json_decref(v);
    return r.found ? 0 : -1;
}
