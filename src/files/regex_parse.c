/* SPDX-License-Identifier: Apache-2.0 */
/* From the text of a regular expression to its tree. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "files/regex_internal.h"

struct parse {
    const char *s;
    size_t n, i;
    bool fold;
    unsigned depth;
    struct tree *t;
    struct error *err;
};

static int fault(struct parse *p, const char *why)
{
    return error_set(p->err, ERR_INVALID, "pattern: at byte %zu: %s", p->i + 1, why);
}

/* A node passes; running out of memory is told. */
static int node(struct parse *p, int n)
{
    return n == -ENOMEM ? error_sys(p->err, -ENOMEM, "pattern") : n;
}

static bool at(const struct parse *p, const char *text)
{
    size_t n = strlen(text);

    return p->n - p->i >= n && memcmp(p->s + p->i, text, n) == 0;
}

static int take_char(struct parse *p, uint32_t *ret)
{
    size_t n = utf8_take(p->s + p->i, p->n - p->i, ret);

    if (n == 0)
        return fault(p, "it is not UTF-8");
    p->i += n;
    return 0;
}

/* ---- escapes ---- */

/* The ranges of \d \w \s; false for other letters. Negated ones are made by whoever asks. */
static bool shorthand(struct parse *p, char c, int *r)
{
    struct tree *t = p->t;

    *r = 0;
    switch (c | 0x20) {
    case 'd':
        *r = files_tree_range(t, '0', '9');
        return true;
    case 'w':
        if (files_tree_range(t, '0', '9') < 0 || files_tree_range(t, 'A', 'Z') < 0 ||
            files_tree_range(t, '_', '_') < 0 || files_tree_range(t, 'a', 'z') < 0)
            *r = -ENOMEM;
        return true;
    case 's':
        if (files_tree_range(t, '\t', '\r') < 0 || files_tree_range(t, ' ', ' ') < 0)
            *r = -ENOMEM;
        return true;
    default:
        return false;
    }
}

/* After the backslash: a character that stands for itself or for a control. */
static int escaped_char(struct parse *p, uint32_t *ret)
{
    static const char letters[] = "trnfvae0", values[] = "\t\r\n\f\v\a\x1b";
    char c = p->s[p->i];
    const char *known = c ? strchr(letters, c) : NULL;

    if (c == 'x') {
        int hi = p->n - p->i > 2 ? utf8_hex(p->s[p->i + 1]) : -1;
        int lo = hi < 0 ? -1 : utf8_hex(p->s[p->i + 2]);

        if (lo < 0)
            return fault(p, "\\x needs two hexadecimal digits");
        *ret = (uint32_t)(hi << 4 | lo);
        p->i += 3;
        return 0;
    }
    if (known) {
        *ret = (unsigned char)values[known - letters];
        p->i++;
        return 0;
    }
    if ((c >= '1' && c <= '9') || c == 'k')
        return fault(p, "back references are not supported: they cannot be matched in linear time");
    if (c == '<' || c == '>')
        return fault(p, "\\< and \\> are not known; \\b is a word's edge");
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return fault(p, "no such escape; a literal backslash is \\\\");
    return take_char(p, ret);
}

static int parse_escape(struct parse *p)
{
    size_t first = p->t->n_ranges;
    uint32_t c;
    char letter;
    int r;

    if (++p->i >= p->n)
        return fault(p, "it ends in a backslash; a literal one is \\\\");
    letter = p->s[p->i];
    if (letter == 'b' || letter == 'B') {
        p->i++;
        return node(p, files_tree_assert(p->t, letter == 'b' ? AT_WORD : AT_NO_WORD));
    }
    if (shorthand(p, letter, &r)) {
        p->i++;
        return node(p, r < 0 ? r : files_tree_class(p->t, first, false, letter < 'a'));
    }
    r = escaped_char(p, &c);
    return r < 0 ? r : node(p, files_tree_char(p->t, c, p->fold));
}

/* ---- brackets ---- */

/* \D inside brackets: everything but; made apart, then joined. */
static int add_shorthand(struct parse *p, char letter, bool *ret_known)
{
    size_t first = p->t->n_ranges;
    int r;

    *ret_known = shorthand(p, letter, &r);
    if (!*ret_known || r < 0 || letter >= 'a')
        return node(p, r);
    r = files_tree_class(p->t, first, false, true); /* its node is not used */
    return r < 0 ? node(p, r) : 0;
}

static int bracket_char(struct parse *p, uint32_t *ret)
{
    if (p->s[p->i] != '\\')
        return take_char(p, ret);
    if (++p->i >= p->n)
        return fault(p, "it ends in a backslash");
    if (p->s[p->i] == 'b') {
        p->i++;
        *ret = '\b';
        return 0;
    }
    return escaped_char(p, ret);
}

static int bracket_range(struct parse *p)
{
    uint32_t lo, hi;
    int r = bracket_char(p, &lo);

    if (r < 0)
        return r;
    hi = lo;
    if (p->n - p->i >= 2 && p->s[p->i] == '-' && p->s[p->i + 1] != ']') {
        p->i++;
        r = bracket_char(p, &hi);
        if (r < 0)
            return r;
        if (hi < lo)
            return fault(p, "the range is the wrong way round");
    }
    return node(p, files_tree_range(p->t, lo, hi));
}

static int bracket_item(struct parse *p)
{
    size_t used;
    bool known;
    int r = files_tree_posix_class(p->t, p->s + p->i, p->n - p->i, &used);

    if (r < 0)
        return node(p, r);
    p->i += used;
    if (used)
        return 0;
    if (at(p, "[:") || at(p, "[.") || at(p, "[="))
        return fault(p, "no such class; a literal '[' in brackets is \\[");
    if (p->s[p->i] != '\\' || p->n - p->i < 2)
        return bracket_range(p);
    r = add_shorthand(p, p->s[p->i + 1], &known);
    if (r < 0 || !known)
        return r < 0 ? r : bracket_range(p);
    p->i += 2;
    return 0;
}

static int parse_bracket(struct parse *p)
{
    size_t first = p->t->n_ranges, open = p->i++;
    bool negate = p->i < p->n && p->s[p->i] == '^';
    int r = 0;

    p->i += negate;
    if (p->i < p->n && p->s[p->i] == ']') {
        p->i++;
        r = files_tree_range(p->t, ']', ']');
    }
    while (r == 0 && p->i < p->n && p->s[p->i] != ']')
        r = bracket_item(p);
    if (r < 0)
        return node(p, r);
    if (p->i >= p->n) {
        p->i = open;
        return fault(p, "'[' without ']'; a literal one is \\[, or ask for literal text");
    }
    p->i++;
    return node(p, files_tree_class(p->t, first, p->fold, negate));
}

/* ---- atoms, repetitions, alternatives ---- */

static int parse_alt(struct parse *p);

static int parse_group(struct parse *p)
{
    size_t open = p->i++;
    int n;

    if (at(p, "?:"))
        p->i += 2;
    else if (at(p, "?"))
        return fault(p, "of '(?' only '(?:' is known: lookaround is not matched in linear time");
    if (++p->depth > LIMIT_FILES_NESTING)
        return error_set(p->err, ERR_TOO_LARGE, "pattern: parentheses are more than %u deep",
                         LIMIT_FILES_NESTING);
    n = parse_alt(p);
    p->depth--;
    if (n < 0)
        return n;
    if (p->i >= p->n) {
        p->i = open;
        return fault(p, "'(' without ')'; a literal one is \\(, or ask for literal text");
    }
    p->i++;
    return n;
}

static int parse_atom(struct parse *p)
{
    uint32_t c;
    int r;

    switch (p->s[p->i]) {
    case '(':
        return parse_group(p);
    case '[':
        return parse_bracket(p);
    case '\\':
        return parse_escape(p);
    case '.':
        p->i++;
        return node(p, files_tree_class(p->t, p->t->n_ranges, false, true));
    case '^':
        p->i++;
        return node(p, files_tree_assert(p->t, AT_START));
    case '$':
        p->i++;
        return node(p, files_tree_assert(p->t, AT_END_CR));
    case '*':
    case '+':
    case '?':
        return fault(p, "nothing stands before it to be repeated; a literal one is \\*");
    default:
        r = take_char(p, &c);
        return r < 0 ? r : node(p, files_tree_char(p->t, c, p->fold));
    }
}

static bool take_number(struct parse *p, size_t *i, int *ret)
{
    size_t from = *i;

    for (*ret = 0; *i < p->n && p->s[*i] >= '0' && p->s[*i] <= '9'; ++*i)
        if (*ret <= (int)LIMIT_FILES_REPEAT)
            *ret = *ret * 10 + (p->s[*i] - '0');
    return *i > from;
}

/* {m} {m,} {m,n}; anything else is a brace that stands for itself. */
static bool take_braces(struct parse *p, int *min, int *max)
{
    size_t i = p->i + 1;

    if (!take_number(p, &i, min))
        return false;
    *max = *min;
    if (i < p->n && p->s[i] == ',') {
        i++;
        if (!take_number(p, &i, max))
            *max = -1;
    }
    if (i >= p->n || p->s[i] != '}')
        return false;
    p->i = i + 1;
    return true;
}

/* One quantifier, if there is one: 1, or 0, or the error. */
static int take_quantifier(struct parse *p, int *min, int *max)
{
    char c = p->i < p->n ? p->s[p->i] : 0;

    *min = c == '+';
    *max = c == '?' ? 1 : -1;
    if (c == '{') {
        if (!take_braces(p, min, max))
            return 0;
        if (*min > (int)LIMIT_FILES_REPEAT || *max > (int)LIMIT_FILES_REPEAT)
            return error_set(p->err, ERR_TOO_LARGE, "pattern: at most %u repetitions",
                             LIMIT_FILES_REPEAT);
        if (*max >= 0 && *max < *min)
            return fault(p, "the repetition is the wrong way round");
    } else if (c == '*' || c == '+' || c == '?') {
        p->i++;
    } else {
        return 0;
    }
    if (p->i < p->n && p->s[p->i] == '?') /* not greedy: the same lines */
        p->i++;
    return 1;
}

static int parse_repeat(struct parse *p)
{
    int n = parse_atom(p), min, max, r;
    unsigned times = 0;

    while (n >= 0 && (r = take_quantifier(p, &min, &max)) != 0) {
        if (r < 0)
            return r;
        if (++times > LIMIT_FILES_NESTING)
            return fault(p, "too many repetitions of repetitions");
        n = node(p, files_tree_repeat(p->t, n, min, max));
    }
    return n;
}

static int parse_cat(struct parse *p)
{
    int cat = node(p, files_tree_node(p->t, NODE_CAT)), last = -1;

    while (cat >= 0 && p->i < p->n && p->s[p->i] != '|' && p->s[p->i] != ')') {
        int n = parse_repeat(p);

        if (n < 0)
            return n;
        files_tree_chain(p->t, cat, &last, n);
    }
    return cat;
}

static int parse_alt(struct parse *p)
{
    int alt = node(p, files_tree_node(p->t, NODE_ALT)), last = -1;

    while (alt >= 0) {
        int n = parse_cat(p);

        if (n < 0)
            return n;
        files_tree_chain(p->t, alt, &last, n);
        if (p->i >= p->n || p->s[p->i] != '|')
            break;
        p->i++;
    }
    return alt;
}

int files_regex_parse(const char *s, size_t len, bool fold, struct tree *t, struct error *err)
{
    struct parse p = {.s = s, .n = len, .fold = fold, .t = t, .err = err};
    int n;

    if (at(&p, "(?i)")) {
        p.fold = true;
        p.i = 4;
    }
    n = parse_alt(&p);
    if (n >= 0 && p.i < p.n)
        return fault(&p, "')' without '('; a literal one is \\), or ask for literal text");
    return n;
}
