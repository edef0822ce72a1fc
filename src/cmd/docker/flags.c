/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/docker/flags.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- messages, in docker's words ---- */

static int see_help(const struct flags *f)
{
    (void)fprintf(stderr, "See 'docker %s --help'.\n", f->verb);
    return -1;
}

int flags_bad(const struct flags *f, const char *format, ...)
{
    char reason[512];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(reason, sizeof(reason), format, ap);
    va_end(ap);
    if (f->flag->letter)
        (void)fprintf(stderr, "invalid argument \"%s\" for \"-%c, --%s\" flag: %s\n", f->value,
                      f->flag->letter, f->flag->name, reason);
    else
        (void)fprintf(stderr, "invalid argument \"%s\" for \"--%s\" flag: %s\n", f->value,
                      f->flag->name, reason);
    (void)see_help(f);
    return -FLAGS_FAILED;
}

void flags_help(const struct flags *f)
{
    bool any = false;

    printf("Usage:  docker %s [OPTIONS]%s%s\n", f->verb, f->usage && f->usage[0] ? " " : "",
           f->usage ? f->usage : "");
    for (size_t i = 0; i < f->n_rows; i++)
        any |= f->rows[i].help != NULL;
    if (any)
        puts("\nOptions:");
    for (size_t i = 0; i < f->n_rows; i++) {
        const struct flag *row = &f->rows[i];
        char left[64];

        if (!row->help)
            continue;
        (void)snprintf(left, sizeof(left), "%s%c%s--%s %s", row->letter ? "-" : " ",
                       row->letter ? row->letter : ' ', row->letter ? ", " : "  ", row->name,
                       row->arg ? row->arg : "");
        printf("  %-30s %s\n", left, row->help);
    }
}

/* ---- reading ---- */

/* What Go's strconv.ParseBool takes. */
static bool read_bool(const char *s, bool *ret)
{
    static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};
    static const char *const no[] = {"0", "f", "F", "FALSE", "false", "False"};

    for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
        if (strcmp(s, yes[i]) == 0 || strcmp(s, no[i]) == 0) {
            *ret = strcmp(s, yes[i]) == 0;
            return true;
        }
    return false;
}

static int take_switch(struct flags *f, const char *value)
{
    f->value = value ? value : "true";
    if (!read_bool(f->value, &f->on)) {
        (void)flags_bad(f, "strconv.ParseBool: parsing \"%s\": invalid syntax", f->value);
        return -1;
    }
    return 1;
}

static int read_long(struct flags *f, const char *word)
{
    size_t n = strcspn(word, "=");
    const char *value = word[n] ? word + n + 1 : NULL;

    if (n == 4 && strncmp(word, "help", 4) == 0) {
        flags_help(f);
        return -2;
    }
    for (size_t i = 0; i < f->n_rows; i++) {
        if (strlen(f->rows[i].name) != n || memcmp(f->rows[i].name, word, n) != 0)
            continue;
        f->flag = &f->rows[i];
        if (!f->flag->arg)
            return take_switch(f, value);
        if (!value && f->at == f->argc) {
            (void)fprintf(stderr, "flag needs an argument: --%s\n", f->flag->name);
            return see_help(f);
        }
        f->value = value ? value : f->argv[f->at++];
        return 1;
    }
    (void)fprintf(stderr, "unknown flag: --%.*s\n", (int)n, word);
    return see_help(f);
}

/* One letter of -itd; f->cluster is what follows it. */
static int read_letter(struct flags *f)
{
    const char *word = f->cluster;

    for (size_t i = 0; i < f->n_rows; i++) {
        if (f->rows[i].letter != word[0])
            continue;
        f->flag = &f->rows[i];
        f->cluster = word[1] ? word + 1 : NULL;
        if (!f->flag->arg && word[1] != '=')
            return take_switch(f, NULL);
        if (!f->flag->arg) {
            f->cluster = NULL;
            return take_switch(f, word + 2);
        }
        f->cluster = NULL;
        if (word[1]) {
            f->value = word + 1 + (word[1] == '=');
            return 1;
        }
        if (f->at == f->argc) {
            (void)fprintf(stderr, "flag needs an argument: '%c' in -%s\n", word[0], word);
            return see_help(f);
        }
        f->value = f->argv[f->at++];
        return 1;
    }
    (void)fprintf(stderr, "unknown shorthand flag: '%c' in -%s\n", word[0], word);
    return see_help(f);
}

int flags_next(struct flags *f)
{
    f->words = f->argv;
    if (f->cluster)
        return read_letter(f);
    while (f->at < f->argc) {
        char *word = f->argv[f->at++];

        if (f->no_more || word[0] != '-' || !word[1]) {
            f->no_more |= f->words_end_flags;
            f->argv[f->n_words++] = word; /* never ahead of f->at: words keep their array */
        } else if (strcmp(word, "--") == 0) {
            f->no_more = true;
        } else if (word[1] == '-') {
            return read_long(f, word + 2);
        } else {
            f->cluster = word + 1;
            return read_letter(f);
        }
    }
    f->argv[f->n_words] = NULL;
    return 0;
}

static int check_words(const struct flags *f, int least, int most)
{
    const char *plural = (least == most ? most : least) == 1 ? "" : "s";

    if (f->n_words >= least && (most < 0 || f->n_words <= most))
        return 0;
    if (most == 0)
        (void)fprintf(stderr, "docker: 'docker %s' accepts no arguments\n", f->verb);
    else if (least == most)
        (void)fprintf(stderr, "docker: 'docker %s' requires %d argument%s\n", f->verb, least,
                      plural);
    else
        (void)fprintf(stderr, "docker: 'docker %s' requires at least %d argument%s\n", f->verb,
                      least, plural);
    (void)fprintf(stderr, "\nUsage:  docker %s [OPTIONS] %s\n\nSee 'docker %s --help'.\n", f->verb,
                  f->usage ? f->usage : "", f->verb);
    return -1;
}

bool flags_read(struct flags *f, int least, int most, int (*fn)(void *arg, const struct flags *f),
                void *arg)
{
    int r;

    while ((r = flags_next(f)) > 0) {
        int said = fn ? fn(arg, f) : 0;

        f->status = -said;
        if (said < 0)
            return false;
    }
    f->status = FLAGS_FAILED;
    if (r == -2)
        f->status = 0;
    if (r < 0)
        return false;
    f->status = 1;
    return check_words(f, least, most) >= 0;
}
