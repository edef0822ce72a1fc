/* SPDX-License-Identifier: Apache-2.0 */
/* Which cases use a live box: ours by the library and through the drop-in, and what others have. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

static double run_captured(struct bench *b, const struct bench_case *c)
{
    (void)b;
    return command_time_captured(c->argv);
}

/* ---- create, start, rm -f ---- */

static double run_life(struct bench *b, const struct bench_case *c)
{
    double began = now_usec(), ended;
    bool ok = command_wait(command_start(c->argv, -1, -1));

    (void)b;
    for (size_t i = 0; i < ARRAY_LEN(c->more); i++)
        ok = command_wait(command_start(c->more[i], -1, -1)) && ok;
    ended = now_usec();
    command_reap();
    return ok ? ended - began : -1;
}

static void add_life(struct bench *b)
{
    static char *const nothing[] = {NULL};
    char *docker = (char *)b->dropin;
    char *create[] = {docker, "create", "--name", "life", "--network", "none", "--read-only", NULL};
    char *command[] = {"openclaw-sandbox:bookworm-slim", "sleep", "infinity", NULL};
    struct bench_case *c = case_add(b, LAUNCH_DROPIN_LIFE, PAYLOAD_NONE, create, command);

    c->run = run_life;
    c->more[0] = words_join((char *[]){docker, "start", "life", NULL}, nothing);
    c->more[1] = words_join((char *[]){docker, "rm", "-f", "life", NULL}, nothing);
}

static void add_program(struct bench *b)
{
    char *version[] = {(char *)b->dropin, "--version", NULL};

    case_add(b, LAUNCH_DROPIN_VERSION, PAYLOAD_NONE, version, (char *[]){NULL});
    add_life(b);
}

/* ---- a command in a box that runs ---- */

static void add_ours(struct bench *b, enum payload payload, char *const *command)
{
    char *nothing[] = {NULL}, *exec[] = {(char *)b->dropin, "exec", (char *)b->box, NULL};

    case_add(b, LAUNCH_LIVE, payload, nothing, command)->run = live_run;
    if (payload == PAYLOAD_TRUE)
        case_add(b, LAUNCH_LIVE_CAPTURED, payload, nothing, command)->run = live_run_captured;
    case_add(b, LAUNCH_DROPIN_EXEC, payload, exec, command);
}

/* NULL-ended words from one text, for options of a program that differ from user to user. */
static char **split(const char *text)
{
    char **words = NULL, *copy = strdup(text), *rest = copy, *word;

    words = words_join((char *[]){NULL}, (char *[]){NULL});
    while (copy && (word = strsep(&rest, " "))) {
        char **more = words_join(words, (char *[]){word, NULL});

        free(words);
        words = more;
    }
    return words;
}

static void add_others(struct bench *b, enum payload payload, char *const *command)
{
    char *t0[] = {"/t0", NULL}, *root = NULL;
    char *const *inside = payload == PAYLOAD_T0 ? t0 : command; /* where the others have it */

    if (b->nsenter) {
        char **before = split(b->nsenter);

        case_add(b, LAUNCH_NSENTER, payload, before, command);
        free(before);
    }
    if (b->crun_box) {
        if (asprintf(&root, "%s/crun", b->dir) < 0)
            abort();
        char *exec[] = {(char *)b->crun, "--root", root, "exec", (char *)b->crun_box, NULL};
        case_add(b, LAUNCH_CRUN_EXEC, payload, exec, inside);
    }
    if (b->docker_box) {
        char *exec[] = {(char *)b->docker, "exec", (char *)b->docker_box, NULL};
        case_add(b, LAUNCH_DOCKER_EXEC, payload, exec, inside);
    }
}

void live_cases_make(struct bench *b, enum payload payload, char *const *command)
{
    if (payload == PAYLOAD_NONE) {
        if (b->dropin)
            add_program(b);
        return;
    }
    if (payload == PAYLOAD_TRUE)
        case_add(b, LAUNCH_BARE_CAPTURED, payload, (char *[]){NULL}, command)->run = run_captured;
    if (payload == PAYLOAD_PYTHON)
        return; /* its own start is all that would be seen */
    if (b->box)
        add_ours(b, payload, command);
    add_others(b, payload, command);
}
