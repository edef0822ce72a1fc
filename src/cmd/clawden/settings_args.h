/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The options that every verb about the configuration has: which files and overrides count, and
 * which call is meant. `--name value` and `--name=value` are the same.
 */
#include <stdbool.h>

#include "base/cleanup.h"
#include "config/load.h"

struct settings_args {
    struct config_inputs in;                      /* its lists are owned, their words are argv's */
    const char *agent, *session, *tool, *command; /* NULL: not said */
    bool json;
};

/*
 * Takes argv[*i] if it is one of
 *   --config FILE  --preset strict|dev  -e K=V (--extra-vars)  --set K=V
 *   --agent ID  --session KEY  --tool NAME  --command LINE  --json
 * and leaves *i on the last word that was taken. 1: taken; 0: not one of these; negative: it was
 * wrong, and a line on standard error says why.
 */
int settings_args_take(struct settings_args *a, int argc, char **argv, int *i);
void settings_args_done(struct settings_args *a);
#define auto_settings_args cleanup_(settings_args_done) struct settings_args

/* The lines of --help for the options that say which configuration counts. */
extern const char settings_args_help[];
