/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which calls wait for a person's yes (approve).
 *
 * A pattern of commands is held against the words of one simple command, parted by single blanks:
 * quotes, blanks and the form of the call make no difference. What is not surely one simple
 * command, and what starts another one of its own choice, is asked about wherever there is such a
 * pattern: nobody can say that it is not the one that was meant. A pattern is about what a command
 * says, not about what it does: who must be asked about everything that runs is asked by `exec`.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "config/settings.h"
#include "policy/glob.h"
#include "policy/internal.h"

static bool is_about_commands(const char *entry)
{
    return strncmp(entry, COMMAND_PREFIX, strlen(COMMAND_PREFIX)) == 0;
}

__attribute__((format(printf, 3, 4))) static void ask(struct verdict *v, const char *entry,
                                                      const char *fmt, ...)
{
    va_list ap;

    (void)snprintf(v->approve, sizeof(v->approve), "%.*s",
                   policy_clip(entry, sizeof(v->approve) - 1), entry);
    va_start(ap, fmt);
    (void)vsnprintf(v->approve_why, sizeof(v->approve_why), fmt, ap);
    va_end(ap);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool is_one_of(const char *word, const char *const *patterns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (glob_match(patterns[i], word))
            return true;
    return false;
}

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

/* An option of a language's interpreter that brings a program along: -c, -e, -ne, --eval=x; - is
 * its input. */
static bool is_program(const char *word)
{
    static const char *const patterns[] = {"-", "--eval*", "--print*", "eval"};

    return is_one_of(word, patterns, COUNT(patterns)) ||
           (word[0] == '-' && word[1] != '-' && strpbrk(word, "ceprCEPR"));
}

/* Does it run a command, or a program, that is given in its words? */
static bool starts_others(const struct words *w)
{
    static const char *const starters[] = {
        "sh",     "bash",    "dash",     "ash",       "ksh*",    "mksh",     "zsh",    "fish",
        "csh",    "tcsh",    "rbash",    "yash",      "env",     "busybox*", "nice",   "time",
        "toybox", "ionice",  "nohup",    "timeout",   "setsid",  "stdbuf",   "chrt",   "xargs",
        "find",   "taskset", "sudo",     "su",        "doas",    "runuser",  "watch",  "setpriv",
        "flock",  "ssh",     "parallel", "unshare",   "chroot",  "nsenter",  "script", "expect",
        "strace", "gdb",     "awk",      "ltrace",    "gawk",    "mawk",     "tmux",   "screen",
        "entr",   "ld.so",   "at",       "ld-linux*", "ld-musl*"};
    static const char *const languages[] = {"python*", "pypy*", "perl*", "ruby*", "node*",
                                            "deno*",   "bun*",  "php*",  "lua*",  "tclsh*"};
    const char *name = base_name(w->argv[0]);

    if (is_one_of(name, starters, COUNT(starters)))
        return true;
    if (!is_one_of(name, languages, COUNT(languages)))
        return false;
    for (size_t i = 1; i < w->n; i++)
        if (is_program(w->argv[i]))
            return true;
    return w->n == 1; /* its input */
}

/* The words with single blanks between them; empty ones say nothing. */
static void join(struct buf *b, const char *program, char *const *rest)
{
    buf_puts(b, program);
    for (; *rest; rest++)
        if (**rest)
            buf_printf(b, " %s", *rest);
}

static const char *find_command(const struct policy_list *list, const struct words *w)
{
    autobuf whole = {.max = LIMIT_COMMAND_LINE + 1}, named = {.max = LIMIT_COMMAND_LINE + 1};

    join(&whole, w->argv[0], w->argv + 1);
    join(&named, base_name(w->argv[0]), w->argv + 1); /* /usr/bin/git is git */
    for (size_t i = 0; i < list->n; i++) {
        const char *pattern = list->words[i] + strlen(COMMAND_PREFIX);

        if (is_about_commands(list->words[i]) &&
            (whole.failed || glob_match(pattern, whole.data) || glob_match(pattern, named.data)))
            return list->words[i];
    }
    return NULL;
}

static void ask_about_command(const struct policy_list *list, const char *first,
                              const char *command, struct verdict *v)
{
    struct words w = {0};
    const char *why = "there is none", *entry;

    if (!command || words_split(command, strlen(command), &w, &why) < 0) {
        ask(v, first, "not one simple command: %s", why);
        return;
    }
    entry = find_command(list, &w);
    if (entry)
        ask(v, entry, "the command matches");
    else if (starts_others(&w))
        ask(v, first, "'%.64s' can run any other command", base_name(w.argv[0]));
    words_done(&w);
}

void approve_mark(const struct policy_list *list, const char *command, struct verdict *v)
{
    const char *first = NULL; /* entry about commands */

    for (size_t i = 0; i < list->n; i++) {
        const char *entry = list->words[i];

        if (!is_about_commands(entry) && tools_means(entry, v->tool)) {
            ask(v, entry, "the tool matches");
            return;
        }
        if (is_about_commands(entry) && !first)
            first = entry;
    }
    if (first && strcmp(v->tool, "exec") == 0)
        ask_about_command(list, first, command, v);
}
