/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Boxes that outlive the program that made them.
 *
 * A box is a folder, `boxes/<id>/` in the data folder, and, while it runs, its init, which listens
 * on `init.sock` in it. No daemon owns it: any program of the same user finds it by name, id or
 * prefix of its id, runs commands in it and removes it. What is asked for at creation stands in
 * `box.json` and never changes; whether it runs is asked of the kernel each time (somebody listens
 * on its socket, or not).
 *
 * The name is a link `names/<name>` to the id, made last at creation and removed first at removal:
 * a folder without its name is garbage of a program that was killed, and the next one removes it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "egress/wire.h"
#include "egress/wish.h"
#include "engine/engine.h"
#include "engine/run.h"

struct buf;
struct error;

struct box_label {
    char *name, *value;
};

enum box_mount_kind { BOX_BIND, BOX_TMPFS };

struct box_mount {
    enum box_mount_kind kind;
    char *source;  /* BOX_BIND: as given; canonical once the box is created */
    char *target;  /* absolute */
    char *options; /* as given ("ro,z", "size=64m"), or NULL */
    bool read_only, no_exec;
    uint64_t bytes; /* BOX_TMPFS: 0 is the default */
    uint32_t mode;  /* BOX_TMPFS: 0 is 1777 */
    bool implied;   /* nobody asked for it: every box has it */
};

struct box_ulimit {
    char *name; /* "nofile" */
    int64_t soft, hard;
};

/* "127.0.0.1::9222/tcp": a port of the host's loopback that leads to one of the box's. */
struct box_port {
    char *host_ip;
    uint16_t host_port, port; /* 0: any */
    char *protocol;
};

/* What a box was created with. Lists end with NULL; every pointer is owned. */
struct box_record {
    char id[65];
    char *name;
    char *image;         /* as asked for */
    char image_id[65];   /* "" when the root is the host's own system folders */
    size_t n_entrypoint; /* how many words of `command` are the entry point */
    char **command;      /* the main command; {"sleep", "infinity"} costs no process: init waits */
    char **env;
    char *workdir, *user, *hostname;
    uid_t uid; /* what `user` means; filled at creation */
    gid_t gid;
    char *home;
    char *network; /* "none", "bridge", "allowlist", or a name, which is as "bridge" */
    struct wish
        *egress; /* what it may reach, as it was created; NULL: what the network's name says */
    struct box_label *labels;
    size_t n_labels;
    struct box_mount *mounts;
    size_t n_mounts;
    struct box_ulimit *ulimits;
    size_t n_ulimits;
    struct box_port *ports;
    size_t n_ports;
    char **dns, **extra_hosts, **cap_drop, **security;
    struct box_limits limits;
    int64_t memory_swap; /* recorded: memory and swap together, 0 unset, -1 unlimited */
    bool read_only_root, init, tty, open_stdin, auto_remove;
    int64_t created_usec;
};

void box_record_free(struct box_record *r);
DEFINE_AUTOPTR(box_record)

/* How it is now; times are 0 when that never happened. */
struct box_state {
    bool running, paused, oom_killed;
    pid_t init_pid;
    int exit_code;
    int64_t started_usec, finished_usec, used_usec;
    char problem[256]; /* why it ended, when a limit ended it */
    /* While it runs. */
    enum grade grades[LIMIT_KINDS];
    uint32_t belts;
    uint16_t published[LIMIT_PUBLISHED]; /* ports of the host's, one for each of the record; 0 */
};

/*
 * Makes the box's folder. Fills id, created_usec, image_id and, where it is NULL, name. Binds whose
 * source is missing are dropped with a warning; sources that a box must never see are refused.
 * -ERR_EXISTS if the name is taken; the message is the holder's id alone.
 */
int sandbox_create(struct box_record *r, struct error *err);

/* By name, id, or prefix of an id. -ERR_NOT_FOUND; -ERR_INVALID if a prefix means several. */
int sandbox_find(const char *ref, struct box_record **ret, struct error *err);
/* Every box, newest first; ends with NULL. */
int sandbox_list(struct box_record ***ret, struct error *err);
void sandbox_list_free(struct box_record **list);

int sandbox_state(const struct box_record *r, struct box_state *ret, struct error *err);

/* Nothing to do when it runs already. */
int sandbox_start(const struct box_record *r, struct error *err);
/* signo to the main command, SIGKILL to everything after grace_usec. Nothing to do when stopped. */
int sandbox_stop(const struct box_record *r, int signo, uint64_t grace_usec, struct error *err);
/* To the main command alone; a box that only waits ends of what `sleep` would die of. */
int sandbox_signal(const struct box_record *r, int signo, struct error *err);
/*
 * Runs fn with the init of the box, through which its files are reached. One that does not run is
 * made up for it with its init alone, and taken away behind it; nobody else sees it running. A box
 * without an image has no files then.
 */
int sandbox_visit(const struct box_record *r, int (*fn)(void *arg, pid_t init, struct error *err),
                  void *arg, struct error *err);
int sandbox_pause(const struct box_record *r, bool pause, struct error *err);
/* -ERR_DENIED if it runs and force is not given. Workspaces and other binds are never touched. */
int sandbox_remove(const struct box_record *r, bool force, struct error *err);

/* Which boxes go: idle or old (0: no such rule), never one that runs a command (C38). */
struct sandbox_prune {
    int64_t idle_usec, age_usec;
    bool dry_run;
    void (*on_prune)(void *arg, const struct box_record *r, const char *why);
    void *arg;
};

int sandbox_prune(const struct sandbox_prune *p, struct error *err);

struct sandbox_exec {
    char *const *argv;
    char *const *env;           /* NAME=VALUE on top of the box's own, or NULL */
    const char *workdir, *user; /* NULL: the box's */
    const void *program;        /* these bytes are executed, not what argv[0] names; NULL: that */
    size_t program_bytes;
    bool interactive; /* our stdin is the command's; else it has none */
    bool terminal;
    uint16_t rows, cols; /* of a terminal that is not ours */
    bool detach;         /* return once it runs; it dies with the box */
};

/*
 * Runs a command in a running box and carries its streams; returns when it has ended. If this
 * process ends first, so does the command with everything it started, unless detached.
 * -ERR_NOT_FOUND: the box does not run; -ERR_DENIED: paused, or a user it cannot have.
 */
int sandbox_exec(const struct box_record *r, const struct sandbox_exec *x, struct run_result *ret,
                 struct error *err);

/*
 * A command whose caller has a loop of its own: the streams are his, events come on
 * box->control_fd. He has recorded that it begins, as `call`, and will record its end. Closing it
 * ends what still runs, all of it.
 */
struct hold;
struct sandbox_command {
    struct box *box;
    struct hold *hold;
    int use; /* by which the relay knows that it runs, or -1 */
};

/* The descriptors stay the caller's; a terminal's comes with BOX_STARTED. Errors as above. */
int sandbox_begin(const struct box_record *r, const struct sandbox_exec *x, const int stdio[3],
                  const char *call, struct sandbox_command *ret, struct error *err);
void sandbox_finish(struct sandbox_command *c);

/* Attached start, as `docker run`: starts the box with the main command on our streams. */
int sandbox_run(const struct box_record *r, bool interactive, bool terminal, struct run_result *ret,
                struct error *err);

/* ---- network.c ---- */

bool sandbox_has_network(const struct box_record *r);
/* What it may reach as things are now; to be freed. */
int sandbox_rules(const struct box_record *r, struct wish **ret, struct error *err);
/* From now on these rules: also for what is open, if it runs, and for every later start. */
int sandbox_set_rules(const struct box_record *r, const struct wish *wish, struct error *err);
/* The same when settings say something else than they did last; what somebody has changed by hand
 * stays until then. */
int sandbox_follow_rules(const struct box_record *r, const struct wish *configured,
                         struct error *err);
/* What the relay has counted since the box was started, as a JSON object. -ERR_NOT_FOUND: no relay
 * has it. */
int sandbox_traffic(const struct box_record *r, struct buf *ret, struct error *err);

/* The log of the main command of a box that was started detached; -1 and err if there is none. */
int sandbox_open_log(const struct box_record *r, struct error *err);

/* Which belts the commands of a running box have on, asked of the kernel: bits of enum belt. */
int sandbox_belts(const struct box_record *r, uint32_t *ret_held, struct error *err);
/* Processes of a running box, for `top`: calls fn(arg, host pid) for each. */
int sandbox_each_process(const struct box_record *r, void (*fn)(void *arg, pid_t pid), void *arg,
                         struct error *err);
int sandbox_usage(const struct box_record *r, struct box_usage *ret, struct error *err);

/* Opens a path inside a running box, its links resolved within it. The box's own users may be
 * changing what stands there: decide on the descriptor, not on the path. */
int sandbox_open_inside(const struct box_record *r, const char *path, int flags, mode_t mode,
                        struct error *err);
/* A listening stream socket in a folder of a running box, for all of its users; one that stands
 * there is replaced. Its descriptor does not block. */
int sandbox_listen_inside(const struct box_record *r, const char *folder, const char *name,
                          struct error *err);
