/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/words.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/utf8.h"

/*
 * Outside of quotes a character stands for itself only if PLAIN or the code below says so; a
 * character nobody thought of is refused. Inside of quotes the few that a shell acts on are
 * refused.
 */
#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+.,/:@%"

struct reader {
    const char *at, *end;
    char *out;  /* next free byte of the texts of all words */
    char *word; /* where the text of the present word starts */
    bool first; /* the present word is the program */
    const char *why;
};

static bool refuse(struct reader *r, const char *why)
{
    r->why = why;
    return false;
}

/* ---- characters ---- */

static const char *why_special(char c)
{
    static const struct {
        char c;
        const char *why;
    } specials[] = {
        {';', "';' starts a second command"},
        {'&', "'&' starts a second command or puts this one into the background"},
        {'|', "'|' pipes into a second command"},
        {'<', "'<' redirects the input"},
        {'>', "'>' redirects the output"},
        {'(', "'(' starts a subshell or a function"},
        {')', "')' ends a subshell or a pattern"},
        {'`', "'`' runs a command inside the command"},
        {'$', "'$' may expand to anything"},
        {'\\', "a '\\' outside quotes changes the character after it"},
        {'*', "a '*' outside quotes may match file names"},
        {'?', "a '?' outside quotes may match file names"},
        {'[', "a '[' outside quotes may match file names"},
        {']', "a ']' outside quotes may end a pattern of file names"},
        {'{', "a '{' outside quotes may expand to several words"},
        {'}', "a '}' outside quotes may expand to several words"},
        {'!', "'!' negates a command or recalls an old one"},
        {'^', "a '^' outside quotes is a pipe, a pattern or an old command to some shells"},
    };

    for (size_t i = 0; i < sizeof(specials) / sizeof(*specials); i++)
        if (specials[i].c == c)
            return specials[i].why;
    return "a character outside quotes that not every shell takes as itself";
}

/* Why this ASCII character is not itself outside of quotes, here; NULL if it is. What came before
 * counts as text, quoted or not: shells disagree on `''~` and `a'='~`. */
static const char *why_not_bare(const struct reader *r, char c)
{
    char before = r->out > r->word ? r->out[-1] : 0;

    if (strchr(PLAIN, c))
        return NULL;
    switch (c) {
    case '~':
        return before && before != ':' && before != '='
                   ? NULL
                   : "a '~' at the start of a word or after ':' or '=' is a home folder";
    case '#':
        return before ? NULL : "'#' at the start of a word starts a comment";
    case '=':
        return before ? NULL : "'=' at the start of a word is the path of a program to some shells";
    default:
        return why_special(c);
    }
}

static const char *why_control(uint32_t c)
{
    switch (c) {
    case 0:
        return "a NUL byte cannot be part of a command";
    case '\n':
        return "a line break starts a second command";
    case '\r':
        return "a carriage return hides what stands before it";
    default:
        return "a control character";
    }
}

/* One character as itself, if it can be one anywhere. */
static bool take(struct reader *r, bool quoted)
{
    uint32_t c;
    size_t n = utf8_take(r->at, (size_t)(r->end - r->at), &c);

    if (n == 0)
        return refuse(r, "a byte that is not UTF-8");
    if (c != '\t' && utf8_is_control(c))
        return refuse(r, why_control(c));
    /* U+180E and U+200B have been white space in older versions of Unicode. */
    if (!quoted && (utf8_is_space(c) || c == 0x180e || c == 0x200b))
        return refuse(r, "a white space outside quotes at which only some shells split");
    memcpy(r->out, r->at, n);
    r->out += n;
    r->at += n;
    return true;
}

/* ---- parts of a word ---- */

static bool read_bare(struct reader *r)
{
    unsigned char c = (unsigned char)*r->at;

    if (c > 0x20 && c < 0x7f) {
        const char *why = why_not_bare(r, *r->at);

        if (why)
            return refuse(r, why);
    }
    return take(r, false);
}

static bool read_single(struct reader *r)
{
    for (r->at++; r->at < r->end && *r->at != '\'';)
        if (!take(r, true))
            return false;
    if (r->at == r->end)
        return refuse(r, "a ' is not closed");
    r->at++;
    return true;
}

static bool read_double(struct reader *r)
{
    for (r->at++; r->at < r->end && *r->at != '"';) {
        switch (*r->at) {
        case '$':
        case '`':
        case '!': /* in an interactive shell, an old command even here */
            return refuse(r, why_special(*r->at));
        case '\\':
            r->at++;
            if (r->at == r->end || (*r->at != '"' && *r->at != '\\'))
                return refuse(r, "a '\\' in double quotes before anything but '\"' and '\\'");
            break;
        default:
            break;
        }
        if (!take(r, true))
            return false;
    }
    if (r->at == r->end)
        return refuse(r, "a \" is not closed");
    r->at++;
    return true;
}

/* ---- words ---- */

static bool is_one_of(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

/* Quoted or not: a program of such a name is a mistake or a trick. */
static const char *why_not_program(const char *word)
{
    /* From "end" on: zsh's and ksh's. */
    static const char *const reserved[] = {
        "if",       "then", "else",    "elif",      "fi",        "do",     "done",
        "case",     "esac", "for",     "in",        "while",     "until",  "select",
        "function", "time", "coproc",  "{",         "}",         "!",      "[[",
        "]]",       "end",  "foreach", "namespace", "nocorrect", "noglob", "repeat"};
    /* Only what makes no sense outside of a shell: echo, test, kill, ... are programs too. */
    static const char *const builtins[] = {
        ".",        ":",       "[",      "alias",   "autoload", "bg",      "bind",     "break",
        "builtin",  "caller",  "cd",     "chdir",   "command",  "compgen", "complete", "compopt",
        "continue", "declare", "dirs",   "disown",  "enable",   "eval",    "exec",     "exit",
        "export",   "fc",      "fg",     "getopts", "hash",     "help",    "history",  "jobs",
        "let",      "local",   "logout", "mapfile", "popd",     "pushd",   "read",     "readarray",
        "readonly", "return",  "set",    "setopt",  "shift",    "shopt",   "source",   "suspend",
        "times",    "trap",    "type",   "typeset", "ulimit",   "umask",   "unalias",  "unset",
        "wait",     "whence",
    };

    if (!*word)
        return "the program has an empty name";
    if (strchr(word, '='))
        return "'GH=1' style assignment before the command";
    if (*word == '%') /* quoted too, to bash */
        return "'%' at the start of a command names a job";
    if (*word == '-' || *word == '+') /* sh -c takes the whole line for its own option */
        return "a program whose name starts with '-' or '+' is an option to a shell";
    if (word[strlen(word) - 1] == ':') /* ksh93, which drops it */
        return "a name that ends with ':' is a label to some shells";
    if (is_one_of(word, reserved, sizeof(reserved) / sizeof(*reserved)))
        return "'if' and other reserved words of a shell are not programs";
    if (is_one_of(word, builtins, sizeof(builtins) / sizeof(*builtins)))
        return "'cd' and other shell builtins do nothing outside a shell";
    return NULL;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool read_word(struct reader *r)
{
    const char *why;

    r->word = r->out;
    while (r->at < r->end && !is_blank(*r->at)) {
        bool fine = *r->at == '\'' ? read_single(r) : *r->at == '"' ? read_double(r) : read_bare(r);

        if (!fine)
            return false;
    }
    *r->out++ = 0;
    why = r->first ? why_not_program(r->word) : NULL;
    r->first = false;
    return !why || refuse(r, why);
}

static int read_line(struct reader *r, struct words *w)
{
    for (;;) {
        while (r->at < r->end && is_blank(*r->at))
            r->at++;
        if (r->at == r->end)
            break;
        if (w->n == WORDS_MAX) {
            (void)refuse(r, "too many words");
            return -E2BIG;
        }
        if (!read_word(r))
            return -EINVAL;
        w->argv[w->n++] = r->word;
    }
    if (w->n == 0) {
        (void)refuse(r, "there is no command");
        return -EINVAL;
    }
    w->argv[w->n] = NULL;
    return 0;
}

int words_split(const char *line, size_t len, struct words *ret, const char **ret_why)
{
    struct reader r = {.at = line, .end = line + len, .first = true};
    struct words w = {0};
    size_t max;
    int result;

    *ret = w;
    *ret_why = NULL;
    if (len > LIMIT_COMMAND_LINE) {
        *ret_why = "the command line is too long";
        return -E2BIG;
    }
    /* One block, for the pointers and then the texts: a word takes a byte and a blank at least, and
     * its text with a NUL is no longer than its quotes, text and blank were. */
    max = (len + 1) / 2 < WORDS_MAX ? (len + 1) / 2 : WORDS_MAX;
    w.argv = malloc((max + 1) * sizeof(*w.argv) + len + 1);
    if (!w.argv) {
        *ret_why = "out of memory";
        return -ENOMEM;
    }
    r.out = (char *)(w.argv + max + 1);
    result = read_line(&r, &w);
    if (result < 0) {
        *ret_why = r.why;
        words_done(&w);
        return result;
    }
    *ret = w;
    return 0;
}

void words_done(struct words *w)
{
    free(w->argv);
    *w = (struct words){0};
}

char *words_quote(char *const *argv)
{
    struct buf b;

    buf_init(&b, LIMIT_ARG_BYTES);
    for (size_t i = 0; argv[i]; i++) {
        buf_puts(&b, i ? " '" : "'");
        for (const char *s = argv[i]; *s; s++)
            buf_append(&b, *s == '\'' ? "'\\''" : s, *s == '\'' ? 4 : 1);
        buf_puts(&b, "'");
    }
    if (b.failed) {
        buf_done(&b);
        return NULL;
    }
    return b.data;
}
