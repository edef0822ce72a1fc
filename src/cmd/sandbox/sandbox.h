/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the verbs of clawden-sandbox share. */
#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"
#include "egress/wish.h"
#include "engine/engine.h"

struct error;

enum { EXIT_USAGE = 2, EXIT_OURS = 125 };

/* Everything that can be asked for on the command line of `exec` and `explain`. */
struct options {
    struct box_spec spec;
    const char *workspace; /* as given, or NULL */
    const char *rootfs;    /* a folder, or NULL */
    char workspace_path[LIMIT_PATH];
    const char *chdir;
    char **env; /* "K=V", NULL-terminated, owned */
    size_t n_env;
    char **command; /* NULL if none was given */
    bool json;
    int json_fd;
    bool quiet;
    uint64_t asked;      /* which options were given */
    struct wish *egress; /* what it may reach; NULL: nothing, it has no network */
    uint64_t rate;       /* of the network: 0 is the standard */
    uint32_t new_per_sec;
};

/* Reads the words of one verb. 0, or -1 after a one-line message was written (exit status 2). */
int options_parse(struct options *o, int argc, char **argv);
void options_done(struct options *o);
void options_help(void);

/* Opens and checks workspace and root; decides the environment. */
int prepare(struct options *o, struct error *err);

/* The workspace as the box sees it: an image may have a folder of its own where its path leads. */
const char *box_workspace(const struct options *o);

/* An option that was given and that the box beside this one cannot have, or NULL. */
const char *options_not_for_sibling(const struct options *o);

/* Is there a way out of the box that this is? */
bool outside_is_near(void);
int cmd_outside(struct options *o);
int cmd_exec(struct options *o);
int cmd_explain(struct options *o);
