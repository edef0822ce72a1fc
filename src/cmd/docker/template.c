/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/docker/template.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/jtext.h"
#include "base/limits.h"
#include "cmd/docker/template_value.h"

/*
 * The text is walked, not compiled: a block that is not taken is walked with `live` off, which
 * reads but neither evaluates nor prints; a range walks its body once per member.
 */
struct variable {
    const char *name;
    size_t len;
    struct value value;
};

struct walk {
    const char *text, *at;
    struct buf *out;
    struct value_heap heap;
    struct variable vars[LIMIT_TEMPLATE_VARS];
    size_t n_vars;
    unsigned steps, depth;
    bool trim; /* the last action ended with -}} */
    struct error *err;
};

enum end { END_FAILED = -1, END_TEXT, END_END, END_ELSE };

/* ---- what went wrong ---- */

static unsigned line_of(const struct walk *w)
{
    unsigned line = 1;

    for (const char *p = w->text; p < w->at; p++)
        line += *p == '\n';
    return line;
}

/* A mistake in the text. */
static int wrong(struct walk *w, const char *what, const char *word, size_t len)
{
    return error_set(w->err, ERR_INVALID, "template: :%u: %s%s%.*s%s", line_of(w), what,
                     word ? " " : "", word ? (int)len : 0, word ? word : "", "");
}

/* The text is fine; the value at `at` is not what it wants. `from` up to `to` is shown. */
static int unfit_at(struct walk *w, const char *at, const char *from, const char *to,
                    const char *what)
{
    char reason[256];

    (void)snprintf(reason, sizeof(reason), "%s", what);
    while (to > from && isspace((unsigned char)to[-1]))
        to--;
    return error_set(w->err, ERR_UNSUPPORTED, "template: :%u:%zu: executing \"\" at <%.*s>: %s",
                     line_of(w), (size_t)(at - w->text), (int)(to - from), from, reason);
}

static int unfit(struct walk *w, const char *from, const char *to, const char *what)
{
    return unfit_at(w, from, from, to, what);
}

static int spend(struct walk *w, size_t n)
{
    w->steps += (unsigned)(n < LIMIT_TEMPLATE_STEPS ? n : LIMIT_TEMPLATE_STEPS);
    if (w->steps > LIMIT_TEMPLATE_STEPS)
        return error_set(w->err, ERR_TOO_LARGE, "template: it does too much");
    return 0;
}

static int deeper(struct walk *w)
{
    if (++w->depth > LIMIT_TEMPLATE_DEPTH)
        return wrong(w, "nested too deep", NULL, 0);
    return 0;
}

/* ---- words of an action ---- */

enum token_kind {
    TOKEN_END, /* }} */
    TOKEN_FIELD,
    TOKEN_DOT,
    TOKEN_VARIABLE,
    TOKEN_TEXT,
    TOKEN_RAW,
    TOKEN_NUMBER,
    TOKEN_WORD,
    TOKEN_SIGN, /* one of | ( ) , = */
    TOKEN_DECLARE,
};

struct token {
    enum token_kind kind;
    const char *at; /* of a field, variable or text: without its sign */
    size_t len;
};

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static size_t name_len(const char *s)
{
    size_t n = 0;

    while (is_name(s[n]))
        n++;
    return n;
}

static int read_quoted(struct walk *w, struct token *t)
{
    char quote = *w->at++;

    t->kind = quote == '"' ? TOKEN_TEXT : TOKEN_RAW;
    t->at = w->at;
    for (; *w->at != quote; w->at++) {
        if (quote == '"' && *w->at == '\\' && w->at[1])
            w->at++;
        if (!*w->at || (quote == '"' && *w->at == '\n'))
            return wrong(w, quote == '"' ? "unterminated quoted string" : "unterminated raw string",
                         NULL, 0);
    }
    t->len = (size_t)(w->at++ - t->at);
    return 0;
}

static bool at_end(const struct walk *w, bool *trim)
{
    *trim = strncmp(w->at, "-}}", 3) == 0 && w->at > w->text && isspace((unsigned char)w->at[-1]);
    return *trim || strncmp(w->at, "}}", 2) == 0;
}

static int read_sign(struct walk *w, struct token *t)
{
    if (strncmp(w->at, ":=", 2) == 0) {
        t->kind = TOKEN_DECLARE;
        w->at += 2;
        return 0;
    }
    if (!*w->at)
        return wrong(w, "unclosed action", NULL, 0);
    if (!strchr("|(),=", *w->at))
        return wrong(w, "unexpected bad character in command:", w->at, 1);
    t->kind = TOKEN_SIGN;
    t->len = 1;
    w->at++;
    return 0;
}

static int read_token(struct walk *w, struct token *t)
{
    bool trim;

    while (isspace((unsigned char)*w->at))
        w->at++;
    *t = (struct token){.at = w->at};
    if (at_end(w, &trim)) {
        w->at += trim ? 3 : 2;
        w->trim = trim;
        t->kind = TOKEN_END;
        return 0;
    }
    if (*w->at == '"' || *w->at == '`')
        return read_quoted(w, t);
    if (*w->at == '.' || *w->at == '$') {
        bool field = *w->at++ == '.';

        t->at = w->at;
        t->len = name_len(w->at);
        t->kind = !field ? TOKEN_VARIABLE : t->len ? TOKEN_FIELD : TOKEN_DOT;
    } else if (isdigit((unsigned char)*w->at) ||
               (*w->at == '-' && isdigit((unsigned char)w->at[1]))) {
        t->kind = TOKEN_NUMBER;
        t->len = 1 + strspn(w->at + 1, "0123456789");
    } else if (is_name(*w->at)) {
        t->kind = TOKEN_WORD;
        t->len = name_len(w->at);
    } else {
        return read_sign(w, t);
    }
    w->at += t->len;
    return 0;
}

static int peek_token(struct walk *w, struct token *t)
{
    const char *at = w->at;
    bool trim = w->trim;
    int r = read_token(w, t);

    if (r >= 0) {
        w->at = at;
        w->trim = trim;
    }
    return r;
}

static bool token_is(const struct token *t, enum token_kind kind, const char *text)
{
    return t->kind == kind && t->len == strlen(text) && memcmp(t->at, text, t->len) == 0;
}

/* ---- pipelines ---- */

static int eval_pipeline(struct walk *w, const struct value *dot, bool live, struct value *ret);

static int text_value(struct walk *w, const struct token *t, struct value *ret)
{
    static const char from[] = "ntr\"\\'", to[] = "\n\t\r\"\\'";
    autobuf b;

    buf_init(&b, LIMIT_TEMPLATE_TEXT);
    for (size_t i = 0; i < t->len; i++) {
        const char *e = t->at + i;

        if (t->kind == TOKEN_TEXT && *e == '\\') {
            const char *known = strchr(from, *++e);

            if (!*e || !known)
                return wrong(w, "invalid syntax", NULL, 0);
            e = to + (known - from);
            i++;
        }
        buf_append(&b, e, 1);
    }
    ret->kind = VALUE_TEXT;
    ret->text = value_heap_take(&w->heap, &b);
    return ret->text ? 0 : error_set(w->err, ERR_TOO_LARGE, "template: its texts are too long");
}

static int number_value(struct walk *w, const struct token *t, struct value *ret)
{
    ret->kind = VALUE_INT;
    ret->number = 0;
    for (size_t i = t->at[0] == '-'; i < t->len; i++)
        if (__builtin_mul_overflow(ret->number, 10, &ret->number) ||
            __builtin_add_overflow(ret->number, t->at[i] - '0', &ret->number))
            return wrong(w, "integer overflow:", t->at, t->len);
    if (t->at[0] == '-')
        ret->number = -ret->number;
    return 0;
}

static int variable_value(struct walk *w, const struct token *t, struct value *ret)
{
    for (size_t i = w->n_vars; i-- > 0;)
        if (w->vars[i].len == t->len && memcmp(w->vars[i].name, t->at, t->len) == 0) {
            *ret = w->vars[i].value;
            return 0;
        }
    return wrong(w, "undefined variable", t->at - 1, t->len + 1);
}

/* One `.Name` of a chain that begins at `from`. */
static int field_value(struct walk *w, const char *from, const struct token *t, struct value *v)
{
    const struct jtext *object = v->kind == VALUE_JSON ? v->json : NULL, *member;
    char name[128], what[192];

    (void)snprintf(name, sizeof(name), "%.*s", (int)(t->len < 127 ? t->len : 127), t->at);
    if (object && (object->type == JTEXT_OBJECT || object->type == JTEXT_NULL)) {
        member = t->len < sizeof(name) ? jtext_get(object, name) : NULL;
        if (member || value_is_map(object)) {
            *v = value_of(member);
            return 0;
        }
        (void)snprintf(what, sizeof(what), "map has no entry for key \"%s\"", name);
    } else {
        (void)snprintf(what, sizeof(what), "can't evaluate field %s in type interface {}", name);
    }
    return unfit_at(w, t->at - 1, from, t->at + t->len, what);
}

/* The `.A.B` that follow an operand without a blank. */
static int eval_chain(struct walk *w, const char *from, bool live, struct value *v)
{
    while (*w->at == '.' && is_name(w->at[1])) {
        struct token t;
        int r = read_token(w, &t);

        if (r >= 0 && live)
            r = field_value(w, from, &t, v);
        if (r < 0)
            return r;
    }
    return 0;
}

static int eval_parentheses(struct walk *w, const struct value *dot, bool live, struct value *ret)
{
    struct token t;
    int r = deeper(w);

    if (r >= 0)
        r = eval_pipeline(w, dot, live, ret);
    if (r >= 0)
        r = read_token(w, &t);
    w->depth--;
    if (r >= 0 && !token_is(&t, TOKEN_SIGN, ")"))
        r = wrong(w, "unclosed left paren", NULL, 0);
    return r;
}

static int eval_operand(struct walk *w, const struct token *t, const struct value *dot, bool live,
                        struct value *ret)
{
    const char *from = t->kind == TOKEN_FIELD || t->kind == TOKEN_VARIABLE ? t->at - 1 : t->at;
    int r = 0;

    *ret = (struct value){.kind = VALUE_NONE};
    switch (t->kind) {
    case TOKEN_DOT:
        *ret = *dot;
        return 0;
    case TOKEN_FIELD:
        *ret = *dot;
        if (live)
            r = field_value(w, from, t, ret);
        break;
    case TOKEN_VARIABLE:
        r = variable_value(w, t, ret);
        break;
    case TOKEN_TEXT:
    case TOKEN_RAW:
        return text_value(w, t, ret);
    case TOKEN_NUMBER:
        return number_value(w, t, ret);
    case TOKEN_WORD:
        if (!token_is(t, TOKEN_WORD, "true") && !token_is(t, TOKEN_WORD, "false"))
            return wrong(w, "unexpected word in operand:", t->at, t->len);
        *ret = (struct value){.kind = VALUE_BOOL, .number = t->at[0] == 't'};
        return 0;
    case TOKEN_SIGN:
        if (*t->at != '(')
            return wrong(w, "unexpected in operand:", t->at, 1);
        r = eval_parentheses(w, dot, live, ret);
        break;
    case TOKEN_END:
    case TOKEN_DECLARE:
        return wrong(w, "missing value for command", NULL, 0);
    }
    return r < 0 ? r : eval_chain(w, from, live, ret);
}

static bool ends_command(const struct token *t)
{
    return t->kind == TOKEN_END || token_is(t, TOKEN_SIGN, "|") || token_is(t, TOKEN_SIGN, ")");
}

static int call_function(struct walk *w, const char *from, const struct value_function *f,
                         const struct value *args, size_t n, struct value *ret)
{
    int r = value_call(f, &w->heap, args, n, ret, w->err);
    char reason[sizeof(w->err->msg)];

    if (r >= 0)
        return 0;
    (void)snprintf(reason, sizeof(reason), "error calling %s: %.200s", value_function_name(f),
                   w->err->msg);
    return unfit(w, from, w->at, reason);
}

static int eval_args(struct walk *w, const struct value *dot, bool live, struct value *args,
                     size_t *n)
{
    struct token t;
    int r;

    while ((r = peek_token(w, &t)) >= 0 && !ends_command(&t)) {
        const struct value_function *f = t.kind == TOKEN_WORD ? value_function(t.at, t.len) : NULL;

        if (*n == LIMIT_TEMPLATE_ARGS - 1)
            return wrong(w, "too many arguments", NULL, 0);
        (void)read_token(w, &t);
        if (f) /* a function without arguments of its own: print, println */
            r = live ? call_function(w, t.at, f, NULL, 0, &args[*n]) : 0;
        else
            r = eval_operand(w, &t, dot, live, &args[*n]);
        if (r < 0)
            return r;
        (*n)++;
    }
    return r;
}

/* One command of a pipeline; `piped` is the value of the one before it, or NULL. */
static int eval_command(struct walk *w, const struct value *dot, bool live,
                        const struct value *piped, struct value *ret)
{
    struct value args[LIMIT_TEMPLATE_ARGS] = {{.kind = VALUE_NONE}};
    const struct value_function *f = NULL;
    const char *from;
    struct token t;
    size_t n = 0;
    int r = read_token(w, &t);

    if (r < 0)
        return r;
    from = t.kind == TOKEN_FIELD ? t.at - 1 : t.at;
    if (t.kind == TOKEN_WORD && !token_is(&t, TOKEN_WORD, "true") &&
        !token_is(&t, TOKEN_WORD, "false")) {
        f = value_function(t.at, t.len);
        if (!f)
            return error_set(w->err, ERR_INVALID, "template: :%u: function \"%.*s\" not defined",
                             line_of(w), (int)t.len, t.at);
    } else {
        r = eval_operand(w, &t, dot, live, &args[n++]);
    }
    if (r >= 0)
        r = eval_args(w, dot, live, args, &n);
    if (r < 0)
        return r;
    if (piped)
        args[n++] = *piped;
    if (!live)
        return 0;
    if (!f && n > 1 && args[0].kind == VALUE_JSON) /* {{.Label "key"}}: docker has a method there */
        f = value_function("index", 5);
    if (!f && n > 1)
        return unfit(w, from, w->at, "it is not a function but has arguments");
    if (!f) {
        *ret = args[0];
        return 0;
    }
    return call_function(w, from, f, args, n, ret);
}

static int eval_pipeline(struct walk *w, const struct value *dot, bool live, struct value *ret)
{
    struct value v = {.kind = VALUE_NONE}, next = v;
    struct token t;
    int r = spend(w, 1);

    if (r >= 0)
        r = eval_command(w, dot, live, NULL, &v);
    while (r >= 0 && (r = peek_token(w, &t)) >= 0 && token_is(&t, TOKEN_SIGN, "|")) {
        (void)read_token(w, &t);
        r = eval_command(w, dot, live, &v, &next);
        v = next;
    }
    if (r >= 0)
        *ret = v;
    return r;
}

/* ---- variables ---- */

static int declare(struct walk *w, const struct token *name, const struct value *v)
{
    if (w->n_vars == LIMIT_TEMPLATE_VARS)
        return wrong(w, "too many variables", NULL, 0);
    w->vars[w->n_vars++] = (struct variable){.name = name->at, .len = name->len, .value = *v};
    return 0;
}

/* `$a :=` or `$a, $b :=`; the number of names read, 0 when the pipeline begins here. */
static int read_names(struct walk *w, struct token names[2])
{
    const char *start = w->at;
    struct token t;
    int n = 0, r;

    for (; n < 2; n++) {
        r = peek_token(w, &names[n]);
        if (r < 0)
            return r;
        if (names[n].kind != TOKEN_VARIABLE || names[n].len == 0)
            break;
        (void)read_token(w, &t);
        r = read_token(w, &t);
        if (r < 0)
            return r;
        if (t.kind == TOKEN_DECLARE)
            return n + 1;
        if (!token_is(&t, TOKEN_SIGN, ","))
            break;
    }
    w->at = start;
    return 0;
}

static int read_end(struct walk *w)
{
    struct token t;
    int r = read_token(w, &t);

    if (r >= 0 && t.kind != TOKEN_END)
        return wrong(w, "unexpected in command:", t.at, t.len);
    return r;
}

/* ---- blocks ---- */

static enum end walk_list(struct walk *w, const struct value *dot, bool live);

/* After the first list of a block: its else, if it has one, and its end. */
static int walk_else(struct walk *w, enum end end, const struct value *dot, bool live);

static int walk_if(struct walk *w, const struct value *dot, bool live, bool with)
{
    struct token names[2], t;
    size_t vars = w->n_vars;
    struct value v = {.kind = VALUE_NONE};
    bool yes = false;
    int n, r;

    r = peek_token(w, &t);
    if (r >= 0 && t.kind == TOKEN_END)
        return wrong(w, with ? "missing value for with" : "missing value for if", NULL, 0);
    n = r < 0 ? r : read_names(w, names);
    if (n < 0 || (r = eval_pipeline(w, dot, live, &v)) < 0 || (r = read_end(w)) < 0 ||
        (n == 1 && (r = declare(w, &names[0], &v)) < 0))
        return n < 0 ? n : r;
    if (n == 2)
        return wrong(w, "too many declarations in if", NULL, 0);
    yes = live && value_is_true(&v);
    r = walk_else(w, walk_list(w, with ? &v : dot, yes), dot, live && !yes);
    w->n_vars = vars;
    return r;
}

static int walk_else(struct walk *w, enum end end, const struct value *dot, bool live)
{
    struct token t;
    int r;

    if (end == END_FAILED)
        return -(int)w->err->code;
    if (end == END_TEXT)
        return wrong(w, "unexpected EOF", NULL, 0);
    if (end == END_END)
        return read_end(w);
    r = peek_token(w, &t);
    if (r < 0)
        return r;
    if (token_is(&t, TOKEN_WORD, "if") || token_is(&t, TOKEN_WORD, "with")) {
        (void)read_token(w, &t);
        r = deeper(w);
        if (r >= 0)
            r = walk_if(w, dot, live, t.len == 4);
        w->depth--;
        return r;
    }
    r = read_end(w);
    if (r < 0)
        return r;
    end = walk_list(w, dot, live);
    if (end == END_ELSE)
        return wrong(w, "expected end; found {{else}}", NULL, 0);
    return walk_else(w, end, dot, live);
}

static int declare_pair(struct walk *w, const struct token names[2], int n, const struct jtext *m,
                        size_t i)
{
    struct value key = {.kind = VALUE_INT, .number = (long long)i}, v = value_of(m);
    int r = 0;

    if (m->key)
        key = (struct value){.kind = VALUE_TEXT, .text = m->key};
    if (n == 2)
        r = declare(w, &names[0], &key);
    if (r >= 0 && n > 0)
        r = declare(w, &names[n - 1], &v);
    return r;
}

/* Walks the body for every member; w->at is behind the body afterwards. */
static int walk_members(struct walk *w, const struct value *v, const struct token names[2], int n,
                        enum end *ret)
{
    autofree const struct jtext **list = value_sorted(v->json);
    size_t vars = w->n_vars, count = jtext_count(v->json);
    const char *body = w->at;
    bool trim = w->trim;

    if (!list)
        return wrong(w, "out of memory", NULL, 0);
    for (size_t i = 0; i < count; i++) {
        struct value dot = value_of(list[i]);
        int r = declare_pair(w, names, n, list[i], i);

        w->at = body;
        w->trim = trim;
        if (r < 0)
            return r;
        *ret = walk_list(w, &dot, true);
        w->n_vars = vars;
        if (*ret == END_FAILED)
            return -(int)w->err->code;
    }
    return 0;
}

static int walk_range(struct walk *w, const struct value *dot, bool live)
{
    const struct value nothing = {.kind = VALUE_NONE};
    struct value v = nothing;
    struct token names[2];
    size_t vars = w->n_vars;
    enum end end = END_FAILED;
    const char *from;
    int n = read_names(w, names), r;
    bool any;

    from = w->at;
    if (n < 0 || (r = eval_pipeline(w, dot, live, &v)) < 0 || (r = read_end(w)) < 0)
        return n < 0 ? n : r;
    if (live && v.kind != VALUE_NONE && (v.kind != VALUE_JSON || v.json->type == JTEXT_NUMBER))
        return unfit(w, from, from, "range can't iterate over it");
    any = live && v.kind == VALUE_JSON && jtext_count(v.json) > 0;
    if (any) {
        r = walk_members(w, &v, names, n, &end);
    } else { /* the names exist, so that what uses them can be read */
        for (int i = 0; i < n && r >= 0; i++)
            r = declare(w, &names[i], &nothing);
        if (r >= 0)
            end = walk_list(w, &nothing, false);
    }
    w->n_vars = vars;
    return r < 0 ? r : walk_else(w, end, dot, live && !any);
}

/* A value to print, or `$x := value`, which prints nothing. */
static int walk_value(struct walk *w, const struct value *dot, bool live)
{
    struct value v = {.kind = VALUE_NONE};
    struct token names[2];
    int n = read_names(w, names), r;

    if (n < 0 || (r = eval_pipeline(w, dot, live, &v)) < 0 || (r = read_end(w)) < 0)
        return n < 0 ? n : r;
    if (n > 0)
        return declare(w, &names[0], &v);
    if (live)
        value_print(w->out, &v);
    return 0;
}

static int skip_comment(struct walk *w)
{
    const char *close = strstr(w->at + 2, "*/");

    if (!close)
        return wrong(w, "unclosed comment", NULL, 0);
    w->at = close + 2;
    return read_end(w);
}

/* Inside {{ }}. END_TEXT means: go on. */
static enum end walk_action(struct walk *w, const struct value *dot, bool live)
{
    struct token t;
    int r;

    while (isspace((unsigned char)*w->at))
        w->at++;
    if (strncmp(w->at, "/*", 2) == 0)
        return skip_comment(w) < 0 ? END_FAILED : END_TEXT;
    r = peek_token(w, &t);
    if (r < 0)
        return END_FAILED;
    if (t.kind == TOKEN_WORD) {
        const char *word = w->at;

        w->at += t.len;
        if (token_is(&t, TOKEN_WORD, "end"))
            return END_END;
        if (token_is(&t, TOKEN_WORD, "else"))
            return END_ELSE;
        r = deeper(w);
        if (r >= 0 && (token_is(&t, TOKEN_WORD, "if") || token_is(&t, TOKEN_WORD, "with")))
            r = walk_if(w, dot, live, t.len == 4);
        else if (r >= 0 && token_is(&t, TOKEN_WORD, "range"))
            r = walk_range(w, dot, live);
        else if (r >= 0) {
            w->at = word;
            r = walk_value(w, dot, live);
        }
        w->depth--;
    } else {
        r = walk_value(w, dot, live);
    }
    return r < 0 ? END_FAILED : END_TEXT;
}

/* The text up to the next action, without the blanks that it or the one before eats. */
static void walk_text(struct walk *w, bool live)
{
    const char *open = strstr(w->at, "{{"), *end = open ? open : w->at + strlen(w->at);
    const char *from = w->at;
    bool eats = open && open[2] == '-' && isspace((unsigned char)open[3]);

    w->at = end + (open ? 2 + eats : 0);
    while (w->trim && from < end && isspace((unsigned char)*from))
        from++;
    while (eats && end > from && isspace((unsigned char)end[-1]))
        end--;
    w->trim = false;
    if (live)
        buf_append(w->out, from, (size_t)(end - from));
}

/* Until the end of the text, or behind the word `end` or `else` of the block around. */
static enum end walk_list(struct walk *w, const struct value *dot, bool live)
{
    size_t vars = w->n_vars;
    enum end end = END_TEXT;

    while (end == END_TEXT) {
        const char *before = w->at;

        walk_text(w, live);
        if (spend(w, 1 + (size_t)(w->at - before) / 64) < 0)
            return END_FAILED;
        if (!*w->at && (w->at < w->text + 2 || strncmp(w->at - 2, "{{", 2) != 0))
            break;
        end = walk_action(w, dot, live);
    }
    if (end != END_TEXT)
        w->n_vars = vars;
    return end;
}

static int walk_all(struct walk *w, const struct jtext *value, bool live)
{
    const struct token root = {.kind = TOKEN_VARIABLE, .at = w->text, .len = 0};
    struct value dot = value_of(value);

    w->at = w->text;
    w->n_vars = w->depth = w->steps = 0;
    w->trim = false;
    (void)declare(w, &root, &dot); /* $ */
    switch (walk_list(w, &dot, live)) {
    case END_FAILED:
        return -(int)w->err->code;
    case END_END:
        return wrong(w, "unexpected {{end}}", NULL, 0);
    case END_ELSE:
        return wrong(w, "unexpected {{else}}", NULL, 0);
    case END_TEXT:
        break;
    }
    return w->out->failed ? error_set(w->err, ERR_TOO_LARGE, "template: it prints too much") : 0;
}

int template_eval(const char *text, const struct jtext *value, struct buf *out, struct error *err)
{
    struct walk w = {.text = text, .at = text, .out = out, .err = err};
    int r = walk_all(&w, value, false);

    if (r >= 0)
        r = walk_all(&w, value, true);
    value_heap_done(&w.heap);
    return r;
}

void template_unescape(char *text)
{
    char *to = text;

    for (; *text; text++, to++) {
        *to = *text;
        if (text[0] == '\\' && (text[1] == 't' || text[1] == 'n'))
            *to = *++text == 't' ? '\t' : '\n';
    }
    *to = 0;
}
