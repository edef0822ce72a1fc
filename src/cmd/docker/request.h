/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What `create` and `run` are asked for: their flags, read into a box_record. What a box of
 * ClawDen's must not or cannot have is refused here, with the reason.
 */
#include <stdbool.h>
#include <stddef.h>

#include "cmd/docker/env.h"
#include "cmd/docker/flags.h"

struct box_record;
struct error;

struct request {
    bool run; /* the verb: else create */
    struct box_record *record;
    struct env files, given; /* --env-file, --env: docker lets --env win wherever it stands */
    const char *entrypoint;  /* NULL: the image's */
    const char *pull;        /* NULL: not said */
    bool detach;
    bool has_memory, has_swap, has_pids, has_tmp, swap_unlimited;
    char **command; /* behind the image; borrowed */
    char **notes;   /* where the box will differ; said once it is made */
};

/* Reads the words. False: leave with *ret_status. */
bool request_read(struct request *q, int argc, char **argv, int *ret_status);
/* With the image's own settings and our defaults. False: a message was written. */
bool request_finish(struct request *q);
void request_done(struct request *q);

/* The flags alone, for tests. */
extern const struct flag request_rows[];
extern const size_t request_n_rows;
