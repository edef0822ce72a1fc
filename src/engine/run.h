/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs one command in a box to its end: carries its streams, keeps the limits that the kernel does
 * not keep by itself, passes signals on, and says truthfully how it ended.
 */
#include "engine/engine.h"

struct error;

struct run_request {
    const struct engine_ops *engine;
    const struct box_spec *spec;
    struct box *live; /* a connection to a live box, ours from here on; else NULL: one is made */
    const struct box_exec
        *exec;     /* its stdio are the caller's descriptors; what init gets is decided here */
    bool terminal; /* stdin and stdout are a terminal: give the box one of its own */
    /* Called once the box is there, before the command runs (audit); may refuse. */
    int (*on_box)(void *arg, struct box *b, struct error *err);
    void *arg;
};

struct run_result {
    bool started; /* the command was executed */
    int exec_sys; /* not started: why */
    const char *exec_at;
    int status;            /* wait status of the command; SIGKILL if it was killed */
    enum limit_kind limit; /* which limit ended it */
    uint64_t limit_value, observed;
    int signal; /* a signal that we passed on ended it, or 0 */
    uint64_t wall_usec;
    struct box_usage usage;
    uint64_t
        output_bytes; /* what the command wrote to stdout and stderr, as far as we carried it */
    bool output_counted;
    enum grade grades[LIMIT_KINDS];
    uint32_t belts;
    bool from_slot;
    char box_id[65];
};

int run_command(const struct run_request *req, struct run_result *ret, struct error *err);

/* The exit status of a wrapper for this result: the command's own, 124, 126, 127, 128+n or 137. */
int run_exit_status(const struct run_result *r);
/* "memory limit 256m reached (261m seen): killed", or "" if no limit was reached. */
const char *run_limit_text(const struct run_result *r, char *text, size_t size);
