/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The plan of a box: every step that builds it, decided before anything is cloned.
 *
 * plan_make() is pure: what is asked (box_spec) and what the host has (host_facts) in, an array of
 * steps out. child.c walks the steps between clone and exec; `clawden-sandbox explain` prints them;
 * unit tests compare them without privileges.
 *
 * Steps stand in five stages. A box built in place walks all of them in one child. A slot (slot.h)
 * walks TEMPLATE once, PARK before each box, and has INSIDE and DROP walked by the box's first
 * process, all before a request is there: init waits, and only WORK is left to do, from outside,
 * when it comes. Steps that only one of the two needs carry `only`.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "engine/engine.h"
#include "engine/native/ids.h"

struct sock_fprog;

enum stage { STAGE_TEMPLATE, STAGE_PARK, STAGE_INSIDE, STAGE_WORK, STAGE_DROP };
enum only { FOR_BOTH, FOR_COLD, FOR_SLOT };

enum step_op {
    OP_BEGIN,        /* a plain umask; the kernel's first choice when memory is gone */
    OP_JOIN_CGROUP,  /* fd: its tasks file */
    OP_UNSHARE,      /* u: namespaces */
    OP_WRITE_MAPS,   /* a, b: uid and gid map, written by the child itself (one id) */
    OP_WAIT_MAPS,    /* the parent writes them (range) */
    OP_IDS,          /* u, v: uid, gid */
    OP_IDS_KEEP,     /* the same; capabilities stay until OP_CAPS */
    OP_BOUNDING_SET, /* drop it, but for u */
    OP_SPLIT_HOST,   /* keep the namespace with the host's mounts for later workspaces */
    OP_TREE,         /* reg: clone the mount tree at a; u, v: device and inode it must be */
    OP_DEVICE,       /* reg: clone the device node a, whose number must be u */
    OP_ROOT_TMPFS,   /* the new root: an empty tmpfs of u bytes */
    OP_ROOT_TREE,    /* reg: the new root is this tree */
    OP_ROOT_OVERLAY, /* the new root: the folders `image` and `rw` of the present one, merged */
    OP_DIR,          /* make folder a, mode u */
    OP_DIRS,         /* make every missing folder of a */
    OP_LINK,         /* a -> b */
    OP_FILE,         /* a with text b; u: instead of what is there */
    OP_ATTACH,       /* reg: put the tree at a */
    OP_TMPFS,        /* a: a tmpfs of its own, u bytes, v: mode, read_only: without exec */
    OP_PROC,         /* a fresh /proc */
    OP_DEVPTS,       /* a terminal file system of the box's own */
    OP_PIVOT,        /* the new root becomes / and the host is gone */
    OP_WRITER,       /* keep a writable handle on the root, then make it read-only */
    OP_NO_NESTED,    /* no user namespaces inside */
    OP_LOOPBACK,     /* lo up */
    OP_PARK,         /* namespaces of the next box */
    OP_PROC_INSTEAD, /* its own /proc in the place of the slot's */
    OP_MASK,         /* hide file or folder a of /proc */
    OP_READ_ONLY,    /* make the mount at a read-only; u: make it a mount first */
    OP_HOSTNAME,
    OP_SCRATCH, /* the box's writable tmpfs, u bytes; its folders are attached by OP_SCRATCH_DIR */
    OP_SCRATCH_DIR,  /* b: name in it, a: where it goes, u: mode */
    OP_SCRATCH_SIZE, /* u bytes instead of what the slot was made with */
    OP_COPY,         /* attach another clone of the mount at b to a */
    OP_SEAL,         /* make the root read-only */
    OP_KEYRING,
    OP_SESSION,
    OP_SIGNALS,
    OP_RLIMIT,   /* u: resource, v: value (soft and hard); of the box's first process */
    OP_SOFT,     /* u: resource, v: its soft value alone */
    OP_AFFINITY, /* u: processors; the same */
    OP_STDIO,    /* nothing open but /dev/null, control socket, init and report */
    OP_CAPS,     /* u: the ones that stay */
    OP_LANDLOCK, /* u: ABI, ptr: what may be written */
    OP_NO_NEW_PRIVS,
    OP_DIE_WITH_PARENT,
    OP_SECCOMP, /* ptr: program */
    OP_EXEC_INIT,
    OP_COUNT
};

struct step {
    enum step_op op;
    enum stage stage;
    enum only only;
    int reg; /* which tree */
    int fd;
    const char *a, *b; /* paths inside are relative to the new root */
    uint64_t u, v;
    bool read_only; /* OP_TREE */
    const void *ptr;
};

enum {
    TREE_WORKSPACE = 0,
    TREE_RW = 94,
    TREE_ROOT,
    TREE_PLACE,
    TREE_MAX = TREE_PLACE + LIMIT_PLACES
};

enum id_mode { IDS_ONE, IDS_RANGE };

enum root_entry_kind { ENTRY_DIR, ENTRY_FILE, ENTRY_LINK };

/* One name that the box's root gets from the host or an image. */
struct root_entry {
    enum root_entry_kind kind;
    char name[128];   /* where, without leading slash */
    char source[384]; /* absolute path outside, or what the link says */
    uint64_t dev, ino;
};

/* What the planner needs to know about this host and this call; gathered by host.c. */
struct host_facts {
    enum id_mode ids;
    uint32_t caller_uid, caller_gid;
    uint32_t range_base;    /* IDS_RANGE: first id of the box's own range */
    struct ids_owner owner; /* IDS_RANGE: where the workspace cannot be id-mapped */
    int landlock_abi;       /* 0: none */
    uint32_t processors;
    struct root_entry entries[LIMIT_ROOT_ENTRIES];
    size_t n_entries;
    const char *masks[48]; /* paths under /proc that exist here and must not be seen */
    size_t n_masks;
    bool mask_is_dir[48];
    const char *hides[32]; /* ROOT_HOST_RO: folders and files with other people's secrets */
    bool hide_is_dir[32];
    size_t n_hides;
    char own_hides[4][384]; /* the caller's own, wherever they are: text of some of the above */
    bool has_workspace_dir; /* ROOT_HOST_RO: the host has a /workspace to mount on */
    bool no_var_tmp;        /* the root has no folder /var/tmp, and cannot get one */
    /* workspace */
    uint64_t ws_dev, ws_ino;
    bool ws_tree_given;                /* the parent clones (and id-maps) the trees itself */
    char root_path[384], rw_path[384]; /* ROOT_DIR with a writable root */
    struct {
        uint64_t dev, ino;
    } root_id, rw_id;
    struct {
        uint64_t dev, ino;
    } places[LIMIT_PLACES];
    /* limits */
    int cgroup_join[4]; /* files to write 0 to, -1 ends */
    enum grade grades[LIMIT_KINDS];
};

struct launch_plan {
    struct step steps[LIMIT_STEPS];
    size_t n_steps;
    char text[24 << 10]; /* strings made up for this plan */
    size_t text_len;
    const char *writable[LIMIT_PLACES + 2]; /* for Landlock; ends with NULL */
    size_t n_writable;
    uint32_t belts;
    bool overflow;
};

/* Fills plan; fails only if it does not fit. */
int plan_make(const struct box_spec *spec, const struct host_facts *facts, struct launch_plan *plan,
              struct error *err);

/* What no box has more of, UINT64_MAX if boxes have what their makers have. */
uint64_t plan_rlimit(unsigned resource);
/* Only the stage WORK: what a slot still has to do when a request comes. */
int plan_request(const struct box_spec *spec, const struct host_facts *facts,
                 uint64_t slot_tmp_bytes, struct launch_plan *plan, struct error *err);

/* What a berth (slot.h) still has to do, after TEMPLATE and INSIDE of a live box without a name. */
int plan_fittings(const struct box_spec *spec, const struct host_facts *facts,
                  uint64_t berth_tmp_bytes, struct launch_plan *plan, struct error *err);

/* Where the box finds its workspace: at its own path, or only at /workspace. */
const char *plan_workspace_place(const struct box_spec *spec, const struct host_facts *facts);

/* "mount a fresh /proc", "bind '/usr' read-only": for errors and for explain. */
const char *step_describe(const struct step *s, char *text, size_t size);
const char *stage_name(enum stage s);
