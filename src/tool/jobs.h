/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Commands that run in boxes, on the loop: each is a connection to its box's init, pipes (or a
 * terminal), a spool for what it writes, and a deadline. A job belongs to the table; it stays there
 * for a while after its end, so that whoever lost the connection can still ask how it went.
 *
 * A job ends by itself, by its deadline, or because somebody no longer wants it (job_cancel());
 * whatever it started ends with it in the last two cases. If this process is killed, every job of
 * it is too: the kernel closes the connections, and inits kill what is behind them.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"
#include "sandbox/sandbox.h"
#include "tool/changes.h"
#include "tool/spool.h"

struct error;
struct job;
struct jobs;
struct pass;

#define LIMIT_JOBS         1024u /* that run, of the whole gateway */
#define LIMIT_JOBS_SESSION 64u   /* of one session */
#define LIMIT_JOBS_KEPT    256u  /* that are over and can still be looked at */
#define LIMIT_KEPT_SESSION 96u   /* of one session: others' stay */
#define JOB_KEPT_USEC      (600 * 1000000ull)
#define JOB_TIMEOUT_SEC    1800.0 /* if none is asked for */
#define LIMIT_JOB_TIMEOUT  86400.0
#define LIMIT_JOB_STDIN    (16u << 20) /* bytes that wait to be read by one */
#define LIMIT_JOBS_STDIN   (64u << 20) /* by all; those of one session as much as one */
#define LIMIT_JOB_LINE     4096u       /* bytes that are shown of it */

/* Told when there is more to see, or it is over. Embedded in whoever watches. */
struct job_watch {
    void (*on_news)(struct job_watch *w);
    void (*on_gone)(struct job_watch *w); /* the job is forgotten; may be NULL */
    struct job *job;
    struct job_watch *next, **back;
};

enum job_end {
    JOB_RUNNING,
    JOB_EXITED,
    JOB_SIGNALED,
    JOB_LIMIT,     /* time, memory */
    JOB_FAILED,    /* it could not be executed */
    JOB_CANCELLED, /* nobody wanted it any more */
};

/* A box that several jobs run in. */
struct job_box {
    unsigned refs;
    struct box_record *record;
    uint64_t oom_kills; /* that are known of */
};
struct job_box *job_box_new(struct box_record *taken);
struct job_box *job_box_hold(struct job_box *b);
void job_box_drop(struct job_box *b);

struct job {
    struct jobs *all;
    struct job *next, **back;
    char id[33];
    char session[400], token[13];
    char *line;                     /* what runs, for people */
    char program[128], folder[128]; /* beginnings of them, for the reason why it did not start */
    struct job_box *box;
    struct sandbox_command command;
    struct loop_io control, out[SPOOL_STREAMS], in, pty;
    struct loop_timer deadline;
    struct spool spool;
    char held[SPOOL_STREAMS][4]; /* the beginning of a character whose end has not come */
    size_t n_held[SPOOL_STREAMS];
    struct buf stdin_text; /* that waits */
    size_t stdin_sent;
    bool stdin_open, stdin_ends; /* it can be written to; and is closed when all is written */
    bool background;
    struct job_watch *watches;
    struct loop_task tell;

    enum job_end end, meant; /* meant: why it was asked to end */
    bool is_over;
    int status; /* wait status */
    char reason[256];
    char limit[16];
    uint64_t limit_value, limit_seen;
    uint64_t begun_usec, ended_usec; /* of the loop */
    uint64_t cpu_usec, peak_bytes;
    json_t *before, *network; /* the relay's counters by host at its beginning; what came since */
    int workspace;            /* -1: what it changes there is not asked, or known */
    struct moment begun;
    struct changes changed; /* .files NULL: not known */
    char *answer;           /* what was told about it in the end; NULL: nothing yet */
    unsigned answer_status;
};

int jobs_new(struct loop *l, int folder, struct jobs **ret, struct error *err);
/* Ends all of them. */
void jobs_free(struct jobs *all);
DEFINE_AUTOPTR(jobs)
size_t jobs_running(const struct jobs *all);

struct job_request {
    const struct pass *pass;
    json_t *arguments; /* of exec */
    char *const *argv; /* what is executed: the policy's words, the client's, or a shell's */
    size_t head;       /* of its output, at hand for the result; 0: the usual */
    char *const *env;  /* on top of the client's, or NULL */
    struct job_box *box;
    int workspace; /* borrowed: what changes there is asked at the end; -1: it is not */
};

/* -ERR_NOT_FOUND: the box does not run (any longer): nothing has been started. */
int job_begin(struct jobs *all, const struct job_request *q, struct job **ret, struct error *err);
/* Of this session; NULL. */
struct job *jobs_find(struct jobs *all, const char *session, const char *id);
/* One after the other of this session (NULL: all), newest first. */
struct job *jobs_next(struct jobs *all, const char *session, struct job *after);

void job_watch(struct job *j, struct job_watch *w);
void job_unwatch(struct job_watch *w);

/* It is to end, with all it started; JOB_CANCELLED. */
void job_cancel(struct job *j, const char *why);
void job_signal(struct job *j, int signo);
/* Queued. -EPIPE: it has no input (any more); -ENOBUFS: it does not read. */
int job_write(struct job *j, const char *data, size_t len, bool ends);
int job_resize(struct job *j, uint16_t rows, uint16_t cols);

/* Copied; whoever watches is told. */
void job_set_answer(struct job *j, unsigned status, const char *text);

/* What it has changed is known; takes the files. */
void job_set_changed(struct job *j, struct changes taken);

/* As the output schema of exec says; without the output, where nobody asks for it. */
json_t *job_result(const struct job *j, bool with_output);
/* {"wallSeconds", "cpuSeconds", "peakMemoryBytes", "outputBytes"}; "files" (and "filesTruncated")
 * if they are known; "network" where it has one. */
json_t *job_receipt(const struct job *j);
/* The relay's counters of the box, by host; NULL: it has no network. */
json_t *job_traffic(const struct box_record *r);
/* [{"host", "connections", "denied", "bytesOut", "bytesIn"}] that came since. */
json_t *job_traffic_since(json_t *before, json_t *now);
/* The piece as an event, with the place behind it as its number. */
json_t *job_event(const struct spool_piece *p, const char *data);
