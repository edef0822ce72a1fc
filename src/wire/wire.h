/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The messages between a box's init and whoever holds its control socket.
 *
 * A box for one command has one connection, its init's descriptor 3, and ends with it. A live box's
 * descriptor 3 is a listening socket: each connection is one command, with a process of init's (its
 * reaper) at the other end, and closing it kills the command with everything that it started.
 *
 * One SEQPACKET message each, fixed size, native byte order: both ends are of one build on one
 * machine. The words of a command (argv, environment, folder) do not fit a message: they travel as
 * NUL-terminated strings in a memfd, which init maps. Plain structs and no functions with
 * state: clawden-init has no libc.
 */
#include <stdint.h>

enum wire_type {
    WIRE_EXEC = 1, /* to init: struct wire_exec + fds */
    WIRE_SIGNAL,   /* to init: struct wire_signal, for the command's process group */
    WIRE_KILL,     /* to init: struct wire_signal; everything that the command started is killed,
                      then EXITED comes */
    WIRE_STARTED,  /* from init: struct wire_reply, with the pty's other end; only if one was asked
                      for, or with WIRE_DETACH */
    WIRE_FAILED,   /* from init: the command could not be executed; .sys and .at say why */
    WIRE_EXITED,   /* from init: .status is the wait status */
};

enum wire_flags {
    WIRE_PTY = 1,       /* give the command a terminal of the box's own */
    WIRE_ONE_SHOT = 2,  /* when the command ends, so does the box */
    WIRE_READ_ONLY = 4, /* the workspace is */
    WIRE_DETACH = 8,    /* the connection may close: the command lives on until it ends */
    WIRE_LEAVE = 16,    /* what it left running when it ended may stay */
    WIRE_USER = 32,     /* run as .uid and .gid */
    WIRE_PROGRAM = 64,  /* execute the last descriptor */
};

enum wire_at {
    WIRE_AT_ARGS = 1,
    WIRE_AT_PTY,
    WIRE_AT_CHDIR,
    WIRE_AT_EXEC,
    WIRE_AT_FORK,
    WIRE_AT_LANDLOCK,
    WIRE_AT_USER
};

/* Descriptors that come with WIRE_EXEC, in this order; a pty needs only the first. */
enum wire_fd {
    WIRE_FD_ARGS,
    WIRE_FD_STDIN,
    WIRE_FD_STDOUT,
    WIRE_FD_STDERR,
    WIRE_FD_PROGRAM, /* only with WIRE_PROGRAM: executed instead of what argv[0] names */
    WIRE_FD_COUNT
};

struct wire_exec {
    uint32_t type, flags;
    uint32_t argc,
        envc;       /* strings in the memfd: argc words, envc variables, start folder, workspace */
    uint64_t bytes; /* its length */
    uint16_t rows, cols; /* of the pty */
    uint32_t landlock;   /* ABI to use, 0: none */
    uint32_t uid, gid;   /* with WIRE_USER */
};

struct wire_signal {
    uint32_t type, signal;
};

struct wire_reply {
    uint32_t type;
    int32_t pid, status, sys, at, pad;
    uint64_t cpu_usec, max_rss_kib; /* of the command and the children it waited for */
};

/* The descriptor of the control socket in init. */
#define WIRE_CONTROL_FD 3

/* Init of a live box with a range of ids keeps CAP_KILL, SETGID, SETUID, SETPCAP; all are below. */
#define WIRE_LAST_CAP 8
/* … and is a user of its own there, which no command may be. */
#define WIRE_INIT_ID 65535
