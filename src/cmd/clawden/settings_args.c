/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/clawden/settings_args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

const char settings_args_help[] =
    "  --config FILE       openclaw.json, instead of the one the environment names\n"
    "  --preset NAME       strict or dev: what holds where no file says anything\n"
    "  -e KEY=VALUE        an operator's variable (sandbox_mode=all), over the files; repeatable\n"
    "  --set KEY=VALUE     a setting (docker.network=none), over everything; repeatable\n"
    "  --json              for programs";

/* One more word of a list that ends with NULL. */
static void add(const char *const **list, const char *word)
{
    const char **grown = (const char **)*list;
    size_t n = 0;

    while (grown && grown[n])
        n++;
    grown = realloc(grown, (n + 2) * sizeof(*grown));
    if (!grown)
        abort();
    grown[n] = word;
    grown[n + 1] = NULL;
    *list = grown;
}

/* Is argv[*i] this option? Then 1 and its value; negative if the value is missing or empty. */
static int value_of(const char *option, int argc, char **argv, int *i, char **ret)
{
    size_t n = strlen(option);
    char *word = argv[*i], *value = NULL;

    if (strncmp(word, option, n) != 0 || (word[n] && (word[n] != '=' || n <= 2)))
        return 0;
    if (word[n])
        value = word + n + 1;
    else if (*i + 1 < argc)
        value = argv[++*i];
    if (!value || !value[0]) {
        log_error("%s needs a value: '%s VALUE'", option, option);
        return -EINVAL;
    }
    *ret = value;
    return 1;
}

static int take_text(const char *option, const char **field, int argc, char **argv, int *i)
{
    char *value;
    int r = value_of(option, argc, argv, i, &value);

    if (r > 0 && *field) {
        log_error("%s is given twice", option);
        return -EINVAL;
    }
    if (r > 0)
        *field = value;
    return r;
}

static int take_pair(const char *option, const char *const **list, int argc, char **argv, int *i)
{
    char *value;
    int r = value_of(option, argc, argv, i, &value);

    if (r > 0)
        add(list, value);
    return r;
}

int settings_args_take(struct settings_args *a, int argc, char **argv, int *i)
{
    const struct {
        const char *option;
        const char **field;
    } texts[] = {
        {"--config", &a->in.file},  {"--preset", &a->in.preset}, {"--agent", &a->agent},
        {"--session", &a->session}, {"--tool", &a->tool},        {"--command", &a->command},
    };
    int r = 0;

    if (strcmp(argv[*i], "--json") == 0) {
        a->json = true;
        return 1;
    }
    for (size_t t = 0; r == 0 && t < sizeof(texts) / sizeof(*texts); t++)
        r = take_text(texts[t].option, texts[t].field, argc, argv, i);
    if (r == 0)
        r = take_pair("-e", &a->in.overrides, argc, argv, i);
    if (r == 0)
        r = take_pair("--extra-vars", &a->in.overrides, argc, argv, i);
    if (r == 0)
        r = take_pair("--set", &a->in.what_if, argc, argv, i);
    return r;
}

void settings_args_done(struct settings_args *a)
{
    free((void *)a->in.overrides);
    free((void *)a->in.what_if);
    *a = (struct settings_args){0};
}
