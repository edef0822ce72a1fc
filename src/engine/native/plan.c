/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/native/plan.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>

#include "base/error.h"
#include "base/landlock.h"
#include "base/path.h"
#include "engine/native/seccomp.h"
#include "wire/wire.h"

#define BOX_HOSTNAME "clawden"
#define BOX_USER     "sandbox"
/* What init of a live box with a range of ids keeps: KILL, SETGID, SETUID, SETPCAP. */
#define LIVE_CAPS (1u << 5 | 1u << 6 | 1u << 7 | 1u << 8)
_Static_assert(LIVE_CAPS >> WIRE_LAST_CAP == 1, "init drops no more than it has");

/* Limits that every box has, whatever is asked for. */
static const struct {
    unsigned resource;
    uint64_t max;
} rlimits[] = {{RLIMIT_CORE, 0},
               {RLIMIT_NOFILE, 65536},
               {RLIMIT_MEMLOCK, 8u << 20},
               {RLIMIT_MSGQUEUE, 800u << 10},
               {RLIMIT_SIGPENDING, 4096}};
/*
 * The supervisor kills at the limit and can say so; a failing malloc says nothing. This is the
 * stop for what grows faster than it looks.
 */
#define SPARE_NPROC 16
#define SPARE_DATA  (4ull << 30)
#define ROOT_BYTES                                                                 \
    (4u << 20) /* a root that is sealed holds mount points and a few files of /etc \
                */

static struct step *add(struct launch_plan *p, enum stage stage, enum step_op op)
{
    static struct step spare; /* what does not fit goes here; plan_make fails at the end */
    struct step *s = &spare;

    if (p->n_steps < LIMIT_STEPS)
        s = &p->steps[p->n_steps++];
    else
        p->overflow = true;
    *s = (struct step){.op = op, .stage = stage, .reg = -1, .fd = -1};
    return s;
}

static struct step *add_path(struct launch_plan *p, enum stage stage, enum step_op op,
                             const char *a)
{
    struct step *s = add(p, stage, op);

    s->a = a;
    return s;
}

/* A string that lives as long as the plan. */
static const char *text(struct launch_plan *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static const char *text(struct launch_plan *p, const char *fmt, ...)
{
    char *at = p->text + p->text_len;
    size_t room = sizeof(p->text) - p->text_len;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(at, room, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= room) {
        p->overflow = true;
        return "";
    }
    p->text_len += (size_t)n + 1;
    return at;
}

static void may_write(struct launch_plan *p, const char *path)
{
    if (p->n_writable + 1 < sizeof(p->writable) / sizeof(*p->writable))
        p->writable[p->n_writable++] = path;
    else
        p->overflow = true;
}

static void belt(struct launch_plan *p, enum belt b)
{
    p->belts |= 1u << b;
}

/* ---- ids and cgroup: what the box may call itself ---- */

static uint32_t live_caps(const struct box_spec *spec, const struct host_facts *f)
{
    return spec->live && f->ids == IDS_RANGE ? LIVE_CAPS : 0;
}

static void plan_ids(const struct box_spec *spec, const struct host_facts *f, struct launch_plan *p)
{
    struct step *s;

    add(p, STAGE_TEMPLATE, OP_BEGIN);
    for (int i = 0; i < 4 && f->cgroup_join[i] >= 0; i++)
        add(p, STAGE_TEMPLATE, OP_JOIN_CGROUP)->fd = f->cgroup_join[i];
    /* After the join: the namespace's root is where the process stands when it is made. */
    add(p, STAGE_TEMPLATE, OP_UNSHARE)->u = CLONE_NEWCGROUP;
    if (f->ids == IDS_ONE) {
        s = add(p, STAGE_TEMPLATE, OP_WRITE_MAPS);
        s->a = text(p, "%u %u 1\n", spec->uid, f->caller_uid);
        s->b = text(p, "%u %u 1\n", spec->gid, f->caller_gid);
    } else {
        add(p, STAGE_TEMPLATE, OP_WAIT_MAPS);
    }
    add(p, STAGE_TEMPLATE, OP_BOUNDING_SET)->u = live_caps(spec, f);
    if (f->ids == IDS_ONE)
        add(p, STAGE_TEMPLATE, OP_SPLIT_HOST)->only = FOR_SLOT;
    belt(p, BELT_USER_NS);
    belt(p, BELT_CGROUP_NS);
}

/* ---- root ---- */

static const struct {
    const char *name;
    unsigned major, minor;
} devices[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
               {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};
enum { N_DEVICES = sizeof(devices) / sizeof(*devices) };

/* Trees are cloned while the host is still in sight; attached once the new root is there. */
static int plan_trees(const struct host_facts *f, struct launch_plan *p)
{
    int reg = TREE_WORKSPACE + 1;

    for (size_t i = 0; i < f->n_entries; i++) {
        const struct root_entry *e = &f->entries[i];
        struct step *s;

        if (e->kind == ENTRY_LINK)
            continue;
        s = add_path(p, STAGE_TEMPLATE, OP_TREE, e->source);
        s->reg = reg++;
        s->u = e->dev;
        s->v = e->ino;
        s->read_only = true;
    }
    for (int i = 0; i < N_DEVICES; i++) {
        struct step *s =
            add_path(p, STAGE_TEMPLATE, OP_DEVICE, text(p, "/dev/%s", devices[i].name));

        s->reg = reg++;
        s->u = makedev(devices[i].major, devices[i].minor);
    }
    return reg;
}

static void plan_workspace_tree(const struct host_facts *f, const struct box_spec *spec,
                                struct launch_plan *p)
{
    struct step *s;

    if (f->ws_tree_given)
        return;
    for (size_t i = 0; i < spec->n_places; i++) {
        if (!spec->places[i].source)
            continue;
        s = add_path(p, STAGE_TEMPLATE, OP_TREE, spec->places[i].source);
        s->reg = TREE_PLACE + (int)i;
        s->u = f->places[i].dev;
        s->v = f->places[i].ino;
        s->read_only = spec->places[i].read_only;
    }
    if (!spec->workspace_path)
        return;
    s = add_path(p, STAGE_TEMPLATE, OP_TREE, spec->workspace_path);
    s->only = FOR_COLD; /* a slot learns of it with the request */
    s->reg = TREE_WORKSPACE;
    s->u = f->ws_dev;
    s->v = f->ws_ino;
    s->read_only = spec->workspace_ro;
}

/* Folder that holds `path`, made if it is not the root itself. */
static void plan_parent(struct launch_plan *p, const char *path, enum stage stage)
{
    const char *slash = strrchr(path, '/');

    if (slash && slash != path)
        add_path(p, stage, OP_DIRS, text(p, "%.*s", (int)(slash - path), path));
}

static void plan_entries(const struct host_facts *f, struct launch_plan *p)
{
    int reg = TREE_WORKSPACE + 1;

    for (size_t i = 0; i < f->n_entries; i++) {
        const struct root_entry *e = &f->entries[i];

        plan_parent(p, e->name, STAGE_TEMPLATE);
        if (e->kind == ENTRY_LINK) {
            add_path(p, STAGE_TEMPLATE, OP_LINK, e->name)->b = e->source;
            continue;
        }
        if (e->kind == ENTRY_DIR)
            add_path(p, STAGE_TEMPLATE, OP_DIR, e->name)->u = 0755;
        else
            add_path(p, STAGE_TEMPLATE, OP_FILE, e->name)->b = "";
        add_path(p, STAGE_TEMPLATE, OP_ATTACH, e->name)->reg = reg++;
    }
}

static const char *hostname(const struct box_spec *spec)
{
    return spec->hostname ? spec->hostname : BOX_HOSTNAME;
}

static void etc_file(struct launch_plan *p, enum stage stage, const char *name, const char *content)
{
    struct step *s = add_path(p, stage, OP_FILE, name);

    s->b = content;
    s->u = stage != STAGE_TEMPLATE; /* later ones replace what the template has */
}

/* The files of /etc that say who and where this box is. */
static void plan_identity(const struct box_spec *spec, struct launch_plan *p, enum stage stage)
{
    etc_file(p, stage, "etc/passwd",
             text(p,
                  "root:x:0:0:root:/root:/bin/sh\n" BOX_USER ":x:%u:%u:" BOX_USER ":/tmp:/bin/sh\n"
                  "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
                  spec->uid, spec->gid));
    etc_file(p, stage, "etc/group",
             text(p, "root:x:0:\ntty:x:5:\n" BOX_USER ":x:%u:\nnogroup:x:65534:\n", spec->gid));
    etc_file(p, stage, "etc/hosts",
             text(p, "127.0.0.1 localhost %s\n::1 localhost\n%s", hostname(spec),
                  spec->hosts ? spec->hosts : ""));
    etc_file(p, stage, "etc/hostname", text(p, "%s\n", hostname(spec)));
    if (spec->network)
        etc_file(p, stage, "etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:3\n");
}

/* The few files of /etc that programs look for; nothing of the host's own users is in them. */
static void plan_etc(const struct box_spec *spec, struct launch_plan *p)
{
    add_path(p, STAGE_TEMPLATE, OP_DIRS, "etc");
    add_path(p, STAGE_TEMPLATE, OP_FILE, "etc/nsswitch.conf")->b =
        "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n";
    plan_identity(spec, p, STAGE_TEMPLATE);
}

static void plan_dev(struct launch_plan *p, int first_reg)
{
    static const char *const links[][2] = {{"dev/ptmx", "pts/ptmx"},
                                           {"dev/fd", "/proc/self/fd"},
                                           {"dev/stdin", "/proc/self/fd/0"},
                                           {"dev/stdout", "/proc/self/fd/1"},
                                           {"dev/stderr", "/proc/self/fd/2"}};

    add_path(p, STAGE_TEMPLATE, OP_DIR, "dev")->u = 0755;
    for (int i = 0; i < N_DEVICES; i++) {
        const char *name = text(p, "dev/%s", devices[i].name);

        add_path(p, STAGE_TEMPLATE, OP_FILE, name)->b = "";
        add_path(p, STAGE_TEMPLATE, OP_ATTACH, name)->reg = first_reg + i;
    }
    for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
        add_path(p, STAGE_TEMPLATE, OP_LINK, links[i][0])->b = links[i][1];
    add_path(p, STAGE_TEMPLATE, OP_DIR, "dev/pts")->u = 0755;
    add_path(p, STAGE_TEMPLATE, OP_DIR, "dev/shm")->u = 0755;
    add_path(p, STAGE_TEMPLATE, OP_DEVPTS, "dev/pts");
}

/*
 * Trees are opened as the caller, whose folders they stand in; the root belongs to the box's own 0,
 * who is nobody outside.
 */
static void plan_become_owner(const struct host_facts *f, struct launch_plan *p)
{
    if (f->ids == IDS_RANGE)
        add(p, STAGE_TEMPLATE, OP_IDS);
}

/* A root of our own making: an empty tmpfs with the entries in it. */
static void plan_made_root(const struct box_spec *spec, const struct host_facts *f,
                           struct launch_plan *p)
{
    static const char *const empty[] = {"proc", "sys", "tmp", "run", "home", "root", "workspace"};
    int first_device;

    plan_workspace_tree(f, spec, p);
    first_device = plan_trees(f, p) - N_DEVICES;
    plan_become_owner(f, p);
    add(p, STAGE_TEMPLATE, OP_ROOT_TMPFS)->u =
        spec->writable_root ? spec->limits.tmp_bytes : ROOT_BYTES;
    plan_entries(f, p);
    for (size_t i = 0; i < sizeof(empty) / sizeof(*empty); i++)
        add_path(p, STAGE_TEMPLATE, OP_DIRS, empty[i]);
    if (!f->no_var_tmp)
        add_path(p, STAGE_TEMPLATE, OP_DIRS, "var/tmp");
    plan_dev(p, first_device);
    if (spec->root == ROOT_HOST)
        plan_etc(spec, p);
}

/*
 * The rest of a root that is not of our making. Its folders may be links to anywhere, so nothing is
 * made in them by name alone: /dev becomes a file system of its own first.
 */
static void plan_foreign_root(struct launch_plan *p, int first_device)
{
    add_path(p, STAGE_TEMPLATE, OP_SCRATCH, "dev")->u = 1 << 20;
    plan_dev(p, first_device);
}

/* The host's own tree, read-only, with the places where credentials live covered. */
static void plan_host_ro(const struct box_spec *spec, const struct host_facts *f,
                         struct launch_plan *p)
{
    struct step *s;
    int first_device;

    plan_workspace_tree(f, spec, p);
    first_device = plan_trees(f, p) - N_DEVICES;
    s = add_path(p, STAGE_TEMPLATE, OP_TREE, "/");
    s->reg = TREE_ROOT;
    s->read_only = true;
    plan_become_owner(f, p);
    add(p, STAGE_TEMPLATE, OP_ROOT_TREE)->reg = TREE_ROOT;
    plan_foreign_root(p, first_device);
}

static void plan_given_tree(const struct host_facts *f, struct launch_plan *p, int reg,
                            const char *path, uint64_t dev, uint64_t ino)
{
    struct step *s;

    if (f->ws_tree_given)
        return;
    s = add_path(p, STAGE_TEMPLATE, OP_TREE, path);
    s->reg = reg;
    s->u = dev;
    s->v = ino;
}

/* An image that may be changed: in a layer of the box's own, or, when it is being built, itself. */
static void plan_writable_image(const struct box_spec *spec, const struct host_facts *f,
                                struct launch_plan *p)
{
    static const char *const needed[] = {"proc", "sys",     "tmp",      "run",
                                         "dev",  "var/tmp", "workspace"};
    int first_device;

    plan_workspace_tree(f, spec, p);
    first_device = plan_trees(f, p) - N_DEVICES;
    plan_given_tree(f, p, TREE_ROOT, f->root_path, f->root_id.dev, f->root_id.ino);
    if (spec->rw_fd >= 0)
        plan_given_tree(f, p, TREE_RW, f->rw_path, f->rw_id.dev, f->rw_id.ino);
    plan_become_owner(f, p);
    if (spec->rw_fd >= 0) {
        add(p, STAGE_TEMPLATE, OP_ROOT_TMPFS)->u = ROOT_BYTES;
        add_path(p, STAGE_TEMPLATE, OP_DIR, "image")->u = 0755;
        add_path(p, STAGE_TEMPLATE, OP_ATTACH, "image")->reg = TREE_ROOT;
        add_path(p, STAGE_TEMPLATE, OP_DIR, "rw")->u = 0755;
        add_path(p, STAGE_TEMPLATE, OP_ATTACH, "rw")->reg = TREE_RW;
        add(p, STAGE_TEMPLATE, OP_ROOT_OVERLAY);
    } else {
        add(p, STAGE_TEMPLATE, OP_ROOT_TREE)->reg = TREE_ROOT;
    }
    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
        add_path(p, STAGE_TEMPLATE, OP_DIRS, needed[i]);
    plan_foreign_root(p, first_device);
}

/* ---- /proc, scratch space, workspace ---- */

static void plan_kernel_files(const struct box_spec *spec, const struct host_facts *f,
                              struct launch_plan *p)
{
    add_path(p, STAGE_TEMPLATE, OP_PROC, "proc");
    add(p, STAGE_TEMPLATE, OP_PIVOT);
    add(p, STAGE_TEMPLATE, OP_NO_NESTED);
    add(p, STAGE_TEMPLATE, OP_LOOPBACK);
    add(p, STAGE_TEMPLATE, OP_WRITER)->only = FOR_SLOT;
    add(p, STAGE_PARK, OP_PARK)->only = FOR_SLOT;
    add_path(p, STAGE_INSIDE, OP_PROC_INSTEAD, "proc")->only = FOR_SLOT;
    for (size_t i = 0; i < f->n_masks; i++)
        add_path(p, STAGE_INSIDE, OP_MASK, f->masks[i])->u = f->mask_is_dir[i];
    add_path(p, STAGE_INSIDE, OP_READ_ONLY, "proc/sys")->u = 1;
    add(p, STAGE_INSIDE, OP_HOSTNAME)->a = hostname(spec);
    belt(p, BELT_MOUNT_NS);
    belt(p, BELT_PID_NS);
    belt(p, BELT_NET_NS);
    belt(p, BELT_IPC_NS);
    belt(p, BELT_UTS_NS);
    belt(p, BELT_NO_NESTED_USER_NS);
    if (!spec->writable_root)
        belt(p, BELT_READ_ONLY_ROOT);
}

static void scratch_dir(struct launch_plan *p, const char *where, uint64_t mode)
{
    struct step *s = add_path(p, STAGE_INSIDE, OP_SCRATCH_DIR, where);
    size_t n = strlen(where);
    char name[128];

    (void)snprintf(name, sizeof(name), "%s", where);
    for (size_t i = 0; i < n && i < sizeof(name) - 1; i++)
        if (name[i] == '/')
            name[i] = '.';
    s->b = text(p, "%s", name);
    s->u = mode;
}

/* One tmpfs for everything the box may fill, so that one size bounds it all (RL-04). */
static void plan_scratch(const struct box_spec *spec, const struct host_facts *f,
                         struct launch_plan *p)
{
    add_path(p, STAGE_INSIDE, OP_SCRATCH, "run")->u = spec->limits.tmp_bytes;
    scratch_dir(p, "tmp", 01777);
    if (!f->no_var_tmp)
        scratch_dir(p, "var/tmp", 01777);
    scratch_dir(p, "dev/shm", 01777);
    if (spec->root == ROOT_HOST_RO) {
        for (size_t i = 0; i < f->n_hides; i++) {
            if (f->hide_is_dir[i])
                scratch_dir(p, f->hides[i], 0755);
            else
                add_path(p, STAGE_INSIDE, OP_MASK, f->hides[i])->u = 0;
        }
    }
    scratch_dir(p, "run", 01777); /* last: it covers the place where the tmpfs itself stands */
}

/* An image's own folder (its /home, say) may stand where the workspace's path leads: then
 * /workspace alone is it. */
static bool is_in_image(const struct box_spec *spec, const struct host_facts *f)
{
    if (spec->root == ROOT_DIR && spec->writable_root)
        return true; /* nor is a foreign path made in an image that is being written */
    for (size_t i = 0; i < f->n_entries && spec->root == ROOT_DIR; i++) {
        size_t n = strlen(f->entries[i].name);

        if (strncmp(spec->workspace_path + 1, f->entries[i].name, n) == 0 &&
            (spec->workspace_path[1 + n] == '/' || !spec->workspace_path[1 + n]))
            return true;
    }
    return false;
}

const char *plan_workspace_place(const struct box_spec *spec, const struct host_facts *f)
{
    return is_in_image(spec, f) ? "/workspace" : spec->workspace_path;
}

static void plan_tmpfs(const struct box_place *place, struct launch_plan *p)
{
    struct step *s;

    add_path(p, STAGE_WORK, OP_DIRS, place->target + 1);
    s = add_path(p, STAGE_WORK, OP_TMPFS, place->target + 1);
    s->u = place->bytes;
    s->v = place->mode;
    s->read_only = place->no_exec;
}

static void plan_bind(const struct box_place *place, int reg, struct launch_plan *p)
{
    if (place->is_dir) {
        add_path(p, STAGE_WORK, OP_DIRS, place->target + 1);
    } else {
        plan_parent(p, place->target + 1, STAGE_WORK);
        add_path(p, STAGE_WORK, OP_FILE, place->target + 1)->b = "";
    }
    add_path(p, STAGE_WORK, OP_ATTACH, place->target + 1)->reg = reg;
}

static void plan_places(const struct box_spec *spec, struct launch_plan *p)
{
    for (size_t i = 0; i < spec->n_places; i++) {
        const struct box_place *place = &spec->places[i];

        if (place->source)
            plan_bind(place, TREE_PLACE + (int)i, p);
        else
            plan_tmpfs(place, p);
        if (!place->read_only)
            may_write(p, place->target);
    }
}

static void plan_workspace(const struct box_spec *spec, const struct host_facts *f,
                           struct launch_plan *p)
{
    const char *path;

    plan_places(spec, p);
    if (!spec->workspace_path) {
        if (!spec->writable_root)
            add(p, STAGE_WORK, OP_SEAL);
        return;
    }
    path = plan_workspace_place(spec, f) + 1;
    add_path(p, STAGE_WORK, OP_DIRS, path);
    add_path(p, STAGE_WORK, OP_ATTACH, path)->reg = TREE_WORKSPACE;
    /* Below /workspace the copy would cover the workspace itself. */
    if (!path_is_within(path - 1, "/workspace") &&
        (spec->root != ROOT_HOST_RO || f->has_workspace_dir))
        add_path(p, STAGE_WORK, OP_COPY, "workspace")->b = path;
    if (spec->root == ROOT_HOST_RO)
        for (size_t i = 0; i < f->n_hides; i++)
            if (f->hide_is_dir[i] && strcmp(f->hides[i], "tmp") != 0)
                add_path(p, STAGE_WORK, OP_READ_ONLY, f->hides[i]);
    if (!spec->writable_root)
        add(p, STAGE_WORK, OP_SEAL)->only = FOR_COLD;
}

/* ---- the way down: nothing can be gained any more ---- */

static void rlimit(struct launch_plan *p, enum stage stage, uint64_t resource, uint64_t value)
{
    struct step *s = add(p, stage, OP_RLIMIT);

    s->u = resource;
    s->v = value;
}

/* What this very box may use: known only when it is asked for. */
static void plan_limits(const struct box_spec *spec, const struct host_facts *f,
                        struct launch_plan *p)
{
    const struct box_limits *l = &spec->limits;

    if (l->file_bytes)
        rlimit(p, STAGE_WORK, RLIMIT_FSIZE, l->file_bytes);
    if (l->cpu_usec)
        rlimit(p, STAGE_WORK, RLIMIT_CPU, (l->cpu_usec + 999999) / 1000000 + 1);
    if (l->memory_bytes && f->grades[LIMIT_MEMORY] == GRADE_SUPERVISED)
        rlimit(p, STAGE_WORK, RLIMIT_DATA,
               l->memory_bytes > UINT64_MAX / 32 ? UINT64_MAX : 16 * l->memory_bytes + SPARE_DATA);
    /* Above the limit: a box that goes over is then seen by the supervisor, which kills it and says
     * so. */
    if (l->pids && f->ids == IDS_ONE && !spec->live)
        rlimit(p, STAGE_WORK, RLIMIT_NPROC, 2 * (uint64_t)l->pids + SPARE_NPROC);
    /* A live box is not to die of one command: there the kernel refuses to start one more. */
    if (l->pids && f->ids == IDS_ONE && spec->live)
        rlimit(p, STAGE_WORK, RLIMIT_NPROC, (uint64_t)l->pids + LIMIT_REAPERS_FREE);
    if (l->cpu_milli && f->grades[LIMIT_CPU] == GRADE_SUPERVISED)
        add(p, STAGE_WORK, OP_AFFINITY)->u = (l->cpu_milli + 999) / 1000;
}

uint64_t plan_rlimit(unsigned resource)
{
    for (size_t i = 0; i < sizeof(rlimits) / sizeof(*rlimits); i++)
        if (rlimits[i].resource == resource)
            return rlimits[i].max;
    return UINT64_MAX;
}

static void plan_drop(const struct box_spec *spec, const struct host_facts *f,
                      struct launch_plan *p)
{
    struct step *s;

    add(p, STAGE_DROP, OP_KEYRING);
    add(p, STAGE_DROP, OP_SESSION);
    add(p, STAGE_DROP, OP_SIGNALS);
    for (size_t i = 0; i < sizeof(rlimits) / sizeof(*rlimits); i++)
        rlimit(p, STAGE_DROP, rlimits[i].resource, rlimits[i].max);
    for (size_t i = 0; i < spec->n_rlimits; i++) {
        rlimit(p, STAGE_DROP, (uint64_t)spec->rlimits[i].resource, spec->rlimits[i].hard);
        s = add(p, STAGE_DROP, OP_SOFT);
        s->u = (uint64_t)spec->rlimits[i].resource;
        s->v = spec->rlimits[i].soft;
    }
    add(p, STAGE_DROP, OP_STDIO);
    if (f->ids == IDS_RANGE) {
        /* A live box's init gives each command its user, and is itself one that no command can be.
         */
        s = add(p, STAGE_DROP, spec->live ? OP_IDS_KEEP : OP_IDS);
        s->u = spec->live ? WIRE_INIT_ID : spec->uid;
        s->v = spec->live ? WIRE_INIT_ID : spec->gid;
    }
    add(p, STAGE_DROP, OP_CAPS)->u = live_caps(spec, f);
    add(p, STAGE_DROP, OP_NO_NEW_PRIVS);
    if (!spec->live)
        add(p, STAGE_DROP, OP_DIE_WITH_PARENT);
    if (spec->live && f->landlock_abi >= LANDLOCK_LEAST) {
        if (spec->writable_root)
            may_write(p, "/");
        s = add(p, STAGE_DROP, OP_LANDLOCK);
        s->u = (uint64_t)f->landlock_abi;
        s->ptr = p->writable;
    }
    add(p, STAGE_DROP, OP_SECCOMP)->ptr =
        seccomp_program(spec->builds_image ? SECCOMP_BUILD : SECCOMP_DEFAULT);
    add(p, STAGE_DROP, OP_EXEC_INIT);
    belt(p, BELT_KEYRING);
    belt(p, BELT_NO_CAPS);
    belt(p, BELT_NO_NEW_PRIVS);
    belt(p, BELT_SECCOMP);
}

static void plan_clear(struct launch_plan *plan)
{
    plan->n_steps = plan->text_len = plan->n_writable = 0;
    memset(plan->writable, 0, sizeof(plan->writable));
    plan->belts = 0;
    plan->overflow = false;
}

static int plan_check(const struct launch_plan *plan, struct error *err)
{
    if (plan->overflow)
        return error_set(err, ERR_TOO_LARGE,
                         "plan of the box: more than %u steps or %zu bytes of text", LIMIT_STEPS,
                         sizeof(plan->text));
    return 0;
}

int plan_make(const struct box_spec *spec, const struct host_facts *facts, struct launch_plan *plan,
              struct error *err)
{
    plan_clear(plan);
    plan_ids(spec, facts, plan);
    if (spec->root == ROOT_HOST_RO)
        plan_host_ro(spec, facts, plan);
    else if (spec->root == ROOT_DIR && spec->writable_root)
        plan_writable_image(spec, facts, plan);
    else
        plan_made_root(spec, facts, plan);
    plan_kernel_files(spec, facts, plan);
    plan_scratch(spec, facts, plan);
    plan_workspace(spec, facts, plan);
    plan_limits(spec, facts, plan);
    plan_drop(spec, facts, plan);
    /* Put on each command by init. ABI 1 forbids every rename between folders: no git, no editor.
     */
    if (facts->landlock_abi >= LANDLOCK_LEAST)
        belt(plan, BELT_LANDLOCK);
    return plan_check(plan, err);
}

int plan_request(const struct box_spec *spec, const struct host_facts *facts,
                 uint64_t slot_tmp_bytes, struct launch_plan *plan, struct error *err)
{
    plan_clear(plan);
    if (spec->limits.tmp_bytes != slot_tmp_bytes)
        add_path(plan, STAGE_WORK, OP_SCRATCH_SIZE, "tmp")->u = spec->limits.tmp_bytes;
    plan_workspace(spec, facts, plan);
    plan_limits(spec, facts, plan);
    return plan_check(plan, err);
}

int plan_fittings(const struct box_spec *spec, const struct host_facts *facts,
                  uint64_t berth_tmp_bytes, struct launch_plan *plan, struct error *err)
{
    plan_clear(plan);
    plan_identity(spec, plan, STAGE_WORK);
    add(plan, STAGE_WORK, OP_HOSTNAME)->a = hostname(spec);
    if (spec->limits.tmp_bytes != berth_tmp_bytes)
        add_path(plan, STAGE_WORK, OP_SCRATCH_SIZE, "tmp")->u = spec->limits.tmp_bytes;
    plan_workspace(spec, facts, plan);
    plan_limits(spec, facts, plan);
    plan_drop(spec, facts, plan);
    return plan_check(plan, err);
}

/* ---- words for people ---- */

static const char *const op_text[OP_COUNT] = {
    [OP_BEGIN] = "be the first to go when memory is gone",
    [OP_JOIN_CGROUP] = "join the box's cgroup",
    [OP_UNSHARE] = "leave the host's cgroup namespace",
    [OP_WRITE_MAPS] = "map the box's user to the caller",
    [OP_WAIT_MAPS] = "map the box's ids to a range of its own",
    [OP_IDS] = "become user",
    [OP_IDS_KEEP] = "become user, and keep capabilities",
    [OP_BOUNDING_SET] = "drop the capability bounding set",
    [OP_SPLIT_HOST] = "keep the host's mounts apart",
    [OP_TREE] = "open",
    [OP_DEVICE] = "open device",
    [OP_ROOT_TMPFS] = "mount an empty root",
    [OP_ROOT_TREE] = "mount a tree as root",
    [OP_ROOT_OVERLAY] = "lay the box's own changes over the image",
    [OP_DIR] = "make folder",
    [OP_DIRS] = "make folders",
    [OP_LINK] = "make link",
    [OP_FILE] = "make file",
    [OP_ATTACH] = "mount on",
    [OP_TMPFS] = "mount a tmpfs on",
    [OP_PROC] = "mount a fresh proc on",
    [OP_DEVPTS] = "mount a terminal file system on",
    [OP_PIVOT] = "make it the root and let go of the host's",
    [OP_WRITER] = "keep a handle on the root and make it read-only",
    [OP_NO_NESTED] = "forbid nested user namespaces and set the quotas of this one",
    [OP_LOOPBACK] = "bring the box's loopback up",
    [OP_PARK] = "make the next box's namespaces",
    [OP_PROC_INSTEAD] = "mount the box's own proc on",
    [OP_MASK] = "mask",
    [OP_READ_ONLY] = "make read-only",
    [OP_HOSTNAME] = "set the host name",
    [OP_SCRATCH] = "mount scratch space on",
    [OP_SCRATCH_DIR] = "mount scratch folder on",
    [OP_SCRATCH_SIZE] = "set the size of",
    [OP_COPY] = "mount the workspace also on",
    [OP_SEAL] = "make the root read-only",
    [OP_KEYRING] = "join a new session keyring",
    [OP_SESSION] = "start a session of its own",
    [OP_SIGNALS] = "reset signals and umask",
    [OP_RLIMIT] = "limit",
    [OP_SOFT] = "soft limit",
    [OP_AFFINITY] = "stay on these processors",
    [OP_STDIO] = "close every descriptor",
    [OP_CAPS] = "drop all capabilities",
    [OP_LANDLOCK] = "put under Landlock",
    [OP_NO_NEW_PRIVS] = "set no_new_privs",
    [OP_DIE_WITH_PARENT] = "die with the parent",
    [OP_SECCOMP] = "load the seccomp filter",
    [OP_EXEC_INIT] = "execute init",
};

const char *stage_name(enum stage s)
{
    static const char *const names[] = {"template", "park", "inside", "work", "drop"};

    return names[s];
}

const char *step_describe(const struct step *s, char *text_, size_t size)
{
    if (s->op == OP_RLIMIT || s->op == OP_SOFT || s->op == OP_IDS || s->op == OP_IDS_KEEP)
        (void)snprintf(text_, size, "%s %llu: %llu", op_text[s->op], (unsigned long long)s->u,
                       (unsigned long long)s->v);
    else if (s->op == OP_WRITE_MAPS || s->op == OP_HOSTNAME || !s->a)
        (void)snprintf(text_, size, "%s", op_text[s->op]);
    else if (s->op == OP_TREE || s->op == OP_DEVICE)
        (void)snprintf(text_, size, "%s '%s'", op_text[s->op], s->a);
    else
        (void)snprintf(text_, size, "%s '/%s'", op_text[s->op], s->a);
    return text_;
}
