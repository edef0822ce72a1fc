/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: whoever needs the box of a scope takes the scope's lock (one byte of a file
 * in the runtime folder), looks, makes what is missing, runs the setup command, and lets go. So two
 * programs never make it both, and none runs a command in a box whose setup is under way. The lock
 * is not the box's own: others (the drop-in) may create or remove the box at any time, which is why
 * a box that is suddenly there or gone is looked for again.
 *
 * A box whose setup was cut short (its program was killed) has no mark `setup` in its folder, and
 * is made anew.
 */
#include "sandbox/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/state.h"
#include "config/config.h"
#include "image/image.h"
#include "sandbox/boxes.h"
#include "sandbox/scope_parts.h"

#define ROUNDS     8 /* others create and remove it while we look: they do not do that for ever */
#define SETUP_MARK "setup"

const char *scope_label(const struct box_record *r, const char *name)
{
    for (size_t i = 0; i < r->n_labels; i++)
        if (strcmp(r->labels[i].name, name) == 0)
            return r->labels[i].value;
    return NULL;
}

static int64_t now_usec(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- the lock ---- */

static int lock_scope(const char *name, struct error *err)
{
    autoclose int dir = state_open_runtime(err), fd = -1;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    char hex[SHA256_HEX];

    if (dir < 0)
        return dir;
    fd = openat(dir, "scopes.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_sys(err, -errno, "open the lock file of scopes");
    sha256_hex(name, strlen(name), hex);
    hex[12] = 0; /* two scopes on one byte only wait for each other */
    lock.l_start = (off_t)strtoull(hex, NULL, 16);
    /* Of this process, not of the open file: the box's keeper is our child and outlives us. */
    while (fcntl(fd, F_SETLKW, &lock) < 0)
        if (errno != EINTR)
            return error_sys(err, -errno, "lock the scope of '%s'", name);
    return TAKE_FD(fd);
}

/* ---- finding ---- */

/* 1: it is there. */
static int find(const struct scope_plan *plan, struct box_record **ret, struct error *err)
{
    autoptr(box_record) there = NULL;
    const char *key;
    int r = sandbox_find(plan->name, &there, err);

    if (r == -ERR_NOT_FOUND)
        return 0;
    if (r < 0)
        return r;
    if (strcmp(there->name, plan->name) != 0) /* an id that begins like that */
        return 0;
    key = scope_label(there, LABEL_SESSION);
    if (!key || strcmp(key, plan->key) != 0)
        return error_set(err, ERR_EXISTS,
                         "box '%s' belongs to the scope '%s', not to '%s': a shorter "
                         "docker.containerPrefix keeps their names apart",
                         plan->name, key ? key : "", plan->key);
    *ret = TAKE_PTR(there);
    return 1;
}

static bool is_set_up(const struct box_record *r)
{
    struct error none;
    autoclose int folder = boxes_open_box(r->id, &none);

    return folder >= 0 && faccessat(folder, SETUP_MARK, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void mark_set_up(const struct box_record *r)
{
    struct error none;
    autoclose int folder = boxes_open_box(r->id, &none), fd = -1;

    if (folder >= 0)
        fd = openat(folder, SETUP_MARK, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        log_debug("box '%s': its setup is not marked as done", r->name);
}

enum fitness { FITS, TOO_HOT, UNFIT };

static bool has_variable(char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (; env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return true;
    return false;
}

static bool has_bind(const struct box_record *r, const struct box_mount *m)
{
    for (size_t i = 0; i < r->n_mounts; i++)
        if (r->mounts[i].kind == BOX_BIND && strcmp(r->mounts[i].target, m->target) == 0 &&
            (m->read_only || !r->mounts[i].read_only)) {
            char real[PATH_MAX]; /* a record's sources are without links, a plan's may have some */

            return strcmp(r->mounts[i].source, m->source) == 0 ||
                   (realpath(r->mounts[i].source, real) && strcmp(real, m->source) == 0);
        }
    return false;
}

/* What the box has and, by now, should not: whoever took it away must not be told otherwise. NULL:
 * nothing. */
static const char *what_is_too_much(const struct scope_plan *plan, const struct box_record *r)
{
    const struct box_record *want = plan->record;
    /* All agents work in the folder of whoever came first: that is what sharing means. */
    const bool shared = strcmp(plan->key, "shared") == 0;

    if (strcmp(r->network ? r->network : "none", want->network) != 0)
        return "another network";
    for (size_t i = 0; i < plan->n_env; i++)
        if (!has_variable(want->env, plan->env[i].name) && has_variable(r->env, plan->env[i].name))
            return "a variable";
    for (size_t i = 0; i < r->n_mounts; i++)
        if (r->mounts[i].kind == BOX_BIND && !has_bind(want, &r->mounts[i]) &&
            !(shared && strcmp(r->mounts[i].target, want->workdir) == 0))
            return "a folder of the host";
    return NULL;
}

/* Does the box that is there do for this plan? */
static int judge(const struct scope_plan *plan, const struct box_record *r, enum fitness *ret,
                 struct error *err)
{
    const char *hash = scope_label(r, LABEL_HASH), *more;
    struct box_state s;
    int e;

    *ret = FITS;
    /* The client's own box: it keeps it up to its own configuration, by a hash of its own. */
    if (!scope_label(r, LABEL_OURS)) {
        if (strcmp(r->network ? r->network : "none", plan->record->network) == 0)
            return 0;
        return error_set(err, ERR_DENIED,
                         "box '%s' was made by another program with network '%s', not '%s': "
                         "clawden sandbox recreate --session %s",
                         r->name, r->network ? r->network : "none", plan->record->network,
                         plan->key);
    }
    if (hash && strcmp(hash, plan->hash) == 0) {
        if (plan->setup_command && !is_set_up(r))
            *ret = UNFIT;
        return 0;
    }
    e = sandbox_state(r, &s, err);
    if (e < 0)
        return e;
    *ret = s.running && now_usec() - s.used_usec < SCOPE_HOT_USEC ? TOO_HOT : UNFIT;
    more = *ret == TOO_HOT ? what_is_too_much(plan, r) : NULL;
    if (more)
        return error_set(err, ERR_DENIED,
                         "it was used a moment ago and has %s that its configuration does not give "
                         "it any more: clawden sandbox recreate --session %s",
                         more, plan->key);
    return 0;
}

/* ---- making ---- */

/* The image's root and variables; what the plan has wins. */
static int take_image(struct scope_plan *plan, struct error *err)
{
    struct box_record *r = plan->record;
    autoptr(image) image = NULL;
    char **own = TAKE_PTR(r->env);
    int e = image_find(r->image, &image, err);

    if (e == -ERR_NOT_FOUND && strcmp(r->image, config_text(CONFIG_BOX_IMAGE, NULL)) == 0) {
        scope_warn(plan,
                   "image '%s' is not in the store: the box has the host's own system folders",
                   r->image);
        e = 0;
    }
    if (e >= 0 && image)
        (void)snprintf(r->image_id, sizeof(r->image_id), "%s", image->id);
    for (size_t i = 0; e >= 0 && image && image->env && image->env[i]; i++)
        if (strchr(image->env[i], '='))
            scope_add_text(&r->env, image->env[i]);
    for (size_t i = 0; own && own[i]; i++) /* later ones win when a command is run */
        scope_add_text(&r->env, own[i]);
    strings_free(own);
    return e;
}

/* A folder that is missing is made, and is the box's user's where he can have it. */
static int make_folder(const char *path, const struct box_record *r, struct error *err)
{
    unsigned uid, gid;
    struct stat st;
    char rest;
    int e;

    if (stat(path, &st) == 0)
        return 0;
    e = path_make_dirs(path, 0700);
    if (e < 0)
        return error_sys(err, e, "make the folder '%s'", path);
    if (geteuid() == 0 && r->user && sscanf(r->user, "%u:%u%c", &uid, &gid, &rest) == 2 &&
        lchown(path, uid, gid) < 0)
        return error_sys(err, -errno, "give the folder '%s' to %u:%u", path, uid, gid);
    return 0;
}

/*
 * Folders of scopes are called by 32 bits of a digest (the client's rule): which scope one belongs
 * to is written down when it is first used, where no box can change it.
 */
static int claim_workspace(const struct scope_plan *plan, struct error *err)
{
    autoclose int data = state_open_data(err), dir = -1, fd = -1;
    char known[NAMES_KEY] = "", name[SHA256_HEX];
    int e;

    if (data < 0)
        return data;
    if (mkdirat(data, "workspaces", 0700) < 0 && errno != EEXIST)
        return error_sys(err, -errno, "make the folder 'workspaces'");
    dir = openat(data, "workspaces", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0)
        return error_sys(err, -errno, "open the folder 'workspaces'");
    sha256_hex(plan->workspace, strlen(plan->workspace), name);
    fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || flock(fd, LOCK_EX) < 0)
        return error_sys(err, -errno, "look up whose folder '%s' is", plan->workspace);
    e = (int)fd_read_full(fd, known, sizeof(known) - 1);
    if (e == 0)
        e = fd_write_full(fd, plan->key, strlen(plan->key));
    else if (e > 0 && strcmp(known, plan->key) != 0)
        return error_set(err, ERR_EXISTS,
                         "the folder '%s' belongs to the scope '%s', not to '%s': another name for "
                         "the session keeps them apart",
                         plan->workspace, known, plan->key);
    return e < 0 ? error_sys(err, e, "write down whose folder '%s' is", plan->workspace) : 0;
}

int scope_open_workspace(const struct scope_plan *plan, struct error *err)
{
    bool is_own =
        strcmp(plan->workspace, plan->agent_workspace) != 0 && strcmp(plan->key, "shared") != 0;
    int e = is_own ? claim_workspace(plan, err) : 0, fd;

    if (e >= 0)
        e = make_folder(plan->workspace, plan->record, err);
    if (e < 0)
        return e;
    fd = open(plan->workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? error_sys(err, -errno, "open the workspace '%s'", plan->workspace) : fd;
}

static int create(struct scope_plan *plan, struct box_record **ret, struct error *err)
{
    struct box_record *r = plan->record;
    char ms[32];
    int e;

    if (!r)
        return error_set(err, ERR_NOT_FOUND, "box '%s' is removed as soon as it is made",
                         plan->name);
    e = make_folder(plan->workspace, r, err);
    if (e >= 0 && !r->image_id[0])
        e = take_image(plan, err);
    if (e < 0)
        return e;
    if (!scope_label(r, LABEL_CREATED)) {
        (void)snprintf(ms, sizeof(ms), "%lld", (long long)(now_usec() / 1000));
        scope_add_label(r, LABEL_CREATED, ms);
    }
    e = sandbox_create(r, err);
    if (e < 0)
        return e;
    *ret = TAKE_PTR(plan->record);
    for (size_t i = 0; plan->warnings && plan->warnings[i]; i++)
        log_warn("%s", plan->warnings[i]);
    return 0;
}

/* Starts it and sets it up; whatever fails, the box is gone. */
static int begin(const struct scope_plan *plan, const struct box_record *r, struct error *err)
{
    struct error none;
    int e = sandbox_start(r, err);

    if (e >= 0 && plan->setup_command)
        e = scope_run_setup(r, plan->setup_command, err);
    if (e >= 0)
        mark_set_up(r);
    else
        (void)sandbox_remove(r, true, &none);
    return e;
}

/* ---- the box ---- */

static char *note_of(const struct scope_plan *plan)
{
    char *text;

    if (asprintf(&text,
                 "Sandbox config changed for %s (recently used). Recreate to apply: clawden "
                 "sandbox recreate --session %s",
                 plan->name, plan->key) < 0)
        abort();
    return text;
}

/* 1: here it is; 0: it has changed under our hands, look again. */
static int use(const struct scope_plan *plan, struct box_record **there, char **ret_note,
               struct error *err)
{
    enum fitness fitness;
    int r = judge(plan, *there, &fitness, err);

    if (r >= 0 && fitness == UNFIT)
        r = sandbox_remove(*there, true, err);
    else if (r >= 0) {
        r = sandbox_follow_rules(*there, plan->record ? plan->record->egress : NULL, err);
        if (r >= 0)
            r = sandbox_start(*there, err);
    }
    if (r == -ERR_NOT_FOUND)
        return 0;
    if (r < 0)
        return error_wrap(err, "box '%s'", plan->name);
    if (fitness == TOO_HOT)
        *ret_note = note_of(plan);
    return fitness != UNFIT;
}

static int attempt(struct scope_plan *plan, struct box_record **ret, char **ret_note,
                   struct error *err)
{
    autoptr(box_record) box = NULL;
    int r = find(plan, &box, err);

    if (r > 0)
        r = use(plan, &box, ret_note, err);
    else if (r == 0) {
        r = create(plan, &box, err);
        if (r == -ERR_EXISTS) /* somebody else has just made it */
            return 0;
        if (r >= 0)
            r = begin(plan, box, err);
        if (r >= 0)
            r = 1;
    }
    if (r > 0)
        *ret = TAKE_PTR(box);
    return r;
}

int scope_box(struct scope_plan *plan, struct box_record **ret, char **ret_note, struct error *err)
{
    autoclose int lock = lock_scope(plan->name, err);
    int r = 0;

    *ret_note = NULL;
    if (lock < 0)
        return lock;
    for (int i = 0; i < ROUNDS && r == 0; i++)
        r = attempt(plan, ret, ret_note, err);
    if (r == 0)
        return error_set(err, ERR_TIMEOUT, "box '%s' is made and removed by others all the time",
                         plan->name);
    return r < 0 ? r : 0;
}
