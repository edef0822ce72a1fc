/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a box, `exec` goes out (C48): what makes boxes is denied here, and the gateway that made this
 * one has a door in it. `clawden outside` knows how to ask.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/helper.h"
#include "base/log.h"
#include "cmd/sandbox/sandbox.h"
#include "gateway/doors.h"

bool outside_is_near(void)
{
    struct stat st;

    return lstat(DOOR_PATH, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Values go by the environment, names by the command line. */
static char **make_words(const struct options *o, char seconds[32])
{
    size_t n = 0, most = 8 + 2 * o->n_env, words = 0;
    char **argv;

    while (o->command[words])
        words++;
    argv = calloc(most + words + 1, sizeof(*argv));
    if (!argv)
        abort();
    argv[n++] = (char *)"clawden";
    argv[n++] = (char *)"outside";
    if (o->spec.limits.wall_usec) {
        (void)snprintf(seconds, 32, "%.6f", (double)o->spec.limits.wall_usec / 1e6);
        argv[n++] = (char *)"--timeout";
        argv[n++] = seconds;
    }
    if (o->chdir) {
        argv[n++] = (char *)"--chdir";
        argv[n++] = (char *)o->chdir;
    }
    for (size_t i = 0; i < o->n_env; i++) {
        char *equals = strchr(o->env[i], '=');

        argv[n++] = (char *)"--env";
        argv[n] = strndup(o->env[i], (size_t)(equals - o->env[i]));
        if (!argv[n] || setenv(argv[n], equals + 1, 1) < 0)
            abort();
        n++;
    }
    argv[n++] = (char *)"--";
    memcpy(argv + n, o->command, words * sizeof(*argv));
    return argv;
}

int cmd_outside(struct options *o)
{
    const char *option = options_not_for_sibling(o);
    char path[PATH_MAX], seconds[32];

    if (option) {
        log_error("--%s: this is a box, and the box beside it has what its session has: leave it "
                  "out",
                  option);
        return EXIT_USAGE;
    }
    if (!helper_find("clawden", path, sizeof(path))) {
        log_error("this is a box: 'clawden' asks its gateway for another one, and is not beside "
                  "this program");
        return EXIT_OURS;
    }
    (void)execv(path, make_words(o, seconds));
    log_error("execute '%s': %s", path, strerror(errno));
    return EXIT_OURS;
}
