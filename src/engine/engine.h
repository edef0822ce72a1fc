/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Engines make boxes. An engine gets a finished `box_spec`: it knows nothing of tools, policy or
 * the gateway. `engine_native` builds boxes out of namespaces; `engine_fake` only pretends, so that
 * everything above can be tested without privileges.
 *
 * Life of a box: start() returns it with its init running and waiting; exec() hands init a command
 * and returns at once; the caller polls box->control_fd and reads events until the command has
 * ended; destroy() kills whatever is left and removes every trace.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct error;
struct buf;

enum limit_kind {
    LIMIT_NONE,
    LIMIT_MEMORY,
    LIMIT_CPU,
    LIMIT_PIDS,
    LIMIT_WALL,
    LIMIT_CPU_TIME,
    LIMIT_OUTPUT,
    LIMIT_FILE_SIZE,
    LIMIT_TMP,
    LIMIT_DISK,
    LIMIT_KINDS
};

/* How a limit is kept: by the kernel, by a supervisor that looks every 20 ms, or not at all. */
enum grade { GRADE_NONE, GRADE_SUPERVISED, GRADE_KERNEL };

enum belt {
    BELT_USER_NS,
    BELT_MOUNT_NS,
    BELT_PID_NS,
    BELT_NET_NS,
    BELT_IPC_NS,
    BELT_UTS_NS,
    BELT_CGROUP_NS,
    BELT_NO_CAPS,
    BELT_NO_NEW_PRIVS,
    BELT_SECCOMP,
    BELT_READ_ONLY_ROOT,
    BELT_LANDLOCK,
    BELT_KEYRING,
    BELT_NO_NESTED_USER_NS,
    BELT_COUNT
};

/* 0 means: no limit of this kind. */
struct box_limits {
    uint64_t memory_bytes;
    uint32_t cpu_milli; /* thousandths of a processor */
    uint32_t pids;
    uint64_t wall_usec, cpu_usec;
    uint64_t output_bytes, file_bytes, tmp_bytes, disk_bytes;
};

enum root_kind {
    ROOT_HOST,    /* an allow-list of the host's system folders, the default */
    ROOT_HOST_RO, /* the whole host read-only with credentials masked (C5) */
    ROOT_DIR,     /* an image unpacked in a folder */
};

/* What is mounted at one place of the box: a folder or file of the host's, or a tmpfs. */
struct box_place {
    const char *target; /* absolute, normalised */
    const char *source; /* canonical; NULL: a tmpfs */
    int fd;             /* O_PATH, the object itself */
    bool is_dir, read_only;
    uint64_t bytes; /* of a tmpfs */
    uint32_t mode;
    bool no_exec;
};

struct box_rlimit {
    int resource;
    uint64_t soft, hard;
};

struct box_spec {
    enum root_kind root;
    int root_fd;                /* ROOT_DIR: the folder, else -1 */
    int workspace_fd;           /* O_PATH, the folder itself */
    const char *workspace_path; /* canonical; NULL: the box has none */
    bool workspace_ro;
    /* Mounted in this order, so that what lies inside another comes after it. */
    const struct box_place *places;
    size_t n_places;
    const struct box_rlimit *rlimits;
    size_t n_rlimits;
    const char *hostname; /* NULL: the usual one */
    const char *hosts;    /* more lines for /etc/hosts, or NULL */
    bool network;         /* somebody will serve sockets in its network: it asks its loopback for
                             names */
    /* ROOT_DIR: changes go to the folder `rw_fd` (which has `upper` and `work` in it), or, for
     * building an image, into the root itself if that is -1. ROOT_HOST: they go nowhere. */
    bool writable_root;
    int rw_fd;
    bool builds_image; /* changing owners and making devices seems to work */
    uid_t uid;         /* inside */
    gid_t gid;
    struct box_limits limits;
    bool multi_tenant;   /* a missing belt or limit denies the run */
    bool allow_degraded; /* a limit that cannot be kept is left out (never with multi_tenant) */
    bool use_spawner;    /* take a ready slot if there is one */
    bool fresh_net;      /* never a network namespace that an earlier box had, pristine or not */
    bool live; /* outlives us; its init serves `listener`, bound but not ours to accept on */
    int listener;
    int hold_fd; /* kept open as long as the box lives (a lock on its image), or -1 */
};

struct box_exec {
    char *const *argv;
    char *const *env;
    const char *cwd;
    int stdio[3];
    bool pty; /* then stdio is not used: the terminal's other end arrives with BOX_STARTED */
    uint16_t rows, cols;
    /* Live boxes only. */
    bool detach; /* it lives on when we are gone; BOX_STARTED comes */
    bool leave;  /* so does what it left running when it ended */
    uid_t uid;
    gid_t gid;
    int program; /* executed instead of what argv[0] names; 0: none */
};

/* BOX_STARTED comes only with a terminal; else the next word after exec() is one of the others. */
enum box_event_kind { BOX_STARTED, BOX_FAILED, BOX_EXITED, BOX_GONE };

struct box_event {
    enum box_event_kind kind;
    int pty_fd;     /* BOX_STARTED: the terminal, owned by the receiver, or -1 */
    int sys;        /* BOX_FAILED: errno */
    const char *at; /* BOX_FAILED: what could not be done */
    int status;     /* BOX_EXITED: wait status */
};

/* Counters of a box; fields that the host cannot tell are 0. */
struct box_usage {
    uint64_t cpu_usec;
    uint64_t peak_bytes;
    uint64_t memory_bytes;  /* now */
    uint32_t pids;          /* now */
    uint64_t oom_kills;     /* processes the kernel killed for memory */
    uint64_t forks_refused; /* by the pids limit */
    bool peak_is_whole_box; /* else the largest single process */
    bool tmp_is_full;       /* the scratch space was full at the end */
};

struct box {
    const struct engine_ops *ops;
    char id[65];
    int control_fd; /* readable when an event is there */
    pid_t init_pid; /* as seen by us, or 0 */
    enum grade grades[LIMIT_KINDS];
    uint32_t belts; /* bits of enum belt: what was put on */
    bool from_slot;
    bool live;
};

#define BOX_SOCKET "init.sock" /* of a live box, in its folder */

/* What has to be known of a live box to find it again. Paths are "" where there is none. */
struct box_live {
    pid_t init_pid; /* as it was when the box was made: ask the socket who it is now */
    bool has_range; /* users besides the one it was made for */
    bool from_slot; /* half of it was ready before it was asked for */
    enum grade grades[LIMIT_KINDS];
    uint32_t belts;
    char cgroups[3][256]; /* memory, pids, cpu */
};

struct engine_ops {
    const char *name;
    /* Makes a box with its init waiting; on failure nothing of it is left behind. */
    int (*start)(const struct box_spec *spec, struct box **ret, struct error *err);
    /* Asks init to run a command; its events arrive on control_fd. */
    int (*exec)(struct box *b, const struct box_exec *what, struct error *err);
    /* Waits until init is there: control_fd, init_pid and belts are known from here on. exec() does
     * it too. */
    int (*settle)(struct box *b, struct error *err);
    /* Reads one event; blocks if none is there. */
    int (*next_event)(struct box *b, struct box_event *ret, struct error *err);
    /* Sends a signal to the command's process group. */
    int (*signal)(struct box *b, int signo);
    /* What the box uses now, or used in all once it is dead. */
    int (*usage)(struct box *b, struct box_usage *ret);
    /* Live boxes: asks for the end of the command with everything it started, and does not wait;
     * BOX_EXITED follows. -errno. */
    int (*ask_end)(struct box *b);
    /* Kills every process of the box and waits until they are gone. May be called twice. */
    int (*kill)(struct box *b);
    /* kill, and remove every trace; frees b. */
    void (*destroy)(struct box *b);
    /* Live boxes: lets go of it without ending it; frees b. */
    void (*leave)(struct box *b, struct box_live *ret);
    /*
     * Opens a connection for one command to the live box whose socket stands in this folder.
     * -ERR_NOT_FOUND: nobody listens. kill() ends that command, destroy() closes the connection.
     */
    int (*attach)(int folder, const struct box_live *live, struct box **ret, struct error *err);
    /* Kills a live box that is attached to and waits until it is gone; removes its cgroups. */
    int (*end)(struct box *b, const struct box_live *live, struct error *err);
    /* Removes what killed programs have left in the kernel. */
    void (*sweep)(void);
};

extern const struct engine_ops engine_native, engine_fake;

const char *limit_name(enum limit_kind kind);
const char *grade_name(enum grade g);
const char *belt_name(enum belt b);
