/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/life.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "config/config.h"
#include "engine/native/watch.h"
#include "image/image.h"
#include "sandbox/boxes.h"
#include "sandbox/places.h"
#include "sandbox/receipt.h"
#include "sandbox/user.h"

#define PAUSE_ROUNDS 4000
#define CLEAN_ROUNDS 8
#define READY_TRIES  3000
#define END_TRIES    1000 /* a second */

static int64_t now_usec(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

bool life_only_waits(const struct box_record *r)
{
    return r->command && r->command[0] && r->command[1] && !r->command[2] &&
           strcmp(r->command[0], "sleep") == 0 && strcmp(r->command[1], "infinity") == 0;
}

/* ---- creating ---- */

static int make_id(char id[65], struct error *err)
{
    unsigned char raw[32];

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return error_sys(err, -errno, "get random bytes for the box's id");
    for (size_t i = 0; i < sizeof(raw); i++)
        (void)snprintf(id + 2 * i, 3, "%02x", raw[i]);
    return 0;
}

static int open_image(const struct box_record *r, struct image **ret, struct error *err)
{
    char ref[80];

    *ret = NULL;
    if (!r->image_id[0])
        return 0;
    (void)snprintf(ref, sizeof(ref), "sha256:%s", r->image_id);
    return image_find(ref, ret, err);
}

static int fill_user(struct box_record *r, struct error *err)
{
    autoptr(image) image = NULL;
    struct box_user user;
    int e = open_image(r, &image, err);

    if (e >= 0)
        e = user_resolve(r->user, image ? image->root_fd : -1, &user, err);
    if (e < 0)
        return e;
    r->uid = user.uid;
    r->gid = user.gid;
    free(r->home);
    r->home = strdup(user.home);
    return r->home ? 0 : error_sys(err, -ENOMEM, "create the box");
}

int sandbox_create(struct box_record *r, struct error *err)
{
    char name[32];
    int e;

    boxes_sweep();
    engine_native.sweep();
    e = make_id(r->id, err);
    if (e < 0)
        return e;
    if (!r->name) {
        (void)snprintf(name, sizeof(name), "box-%.12s", r->id);
        r->name = strdup(name);
    }
    if (!r->name || !boxes_name_is_valid(r->name))
        return error_set(err, ERR_INVALID,
                         "Invalid container name (%s), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed",
                         r->name ? r->name : "");
    r->created_usec = now_usec();
    e = places_check(r, err);
    if (e >= 0)
        e = fill_user(r, err);
    if (e >= 0)
        e = receipt_box("box.create", r, err);
    return e < 0 ? e : boxes_add(r, err);
}

/* ---- finding ---- */

int sandbox_find(const char *ref, struct box_record **ret, struct error *err)
{
    char id[65];
    int r = boxes_resolve(ref, id, err);

    return r < 0 ? r : boxes_load(id, ret, err);
}

struct listing {
    struct box_record **list;
    size_t n;
};

static int add_to_list(void *arg, const char *id)
{
    struct listing *l = arg;
    struct box_record *r;
    struct error ignored;

    if (boxes_load(id, &r, &ignored) < 0) /* going away just now, or damaged: `rm` names it */
        return 0;
    l->list = realloc(l->list, (l->n + 2) * sizeof(*l->list));
    if (!l->list)
        abort();
    l->list[l->n++] = r;
    l->list[l->n] = NULL;
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = (*(struct box_record *const *)a)->created_usec,
            y = (*(struct box_record *const *)b)->created_usec;

    return x < y ? 1 : x > y ? -1 : 0;
}

int sandbox_list(struct box_record ***ret, struct error *err)
{
    struct listing l = {.list = calloc(1, sizeof(*l.list))};
    int r = boxes_each(add_to_list, &l, err);

    if (r < 0) {
        sandbox_list_free(l.list);
        return r;
    }
    if (l.n)
        qsort(l.list, l.n, sizeof(*l.list), newest_first);
    *ret = l.list;
    return 0;
}

void sandbox_list_free(struct box_record **list)
{
    for (size_t i = 0; list && list[i]; i++)
        box_record_free(list[i]);
    free(list);
}

/* ---- holding ---- */

int hold_open(const struct box_record *r, bool locked, struct hold *h, struct error *err)
{
    struct error none;

    h->folder = boxes_open_box(r->id, err);
    if (h->folder < 0)
        return h->folder;
    if (locked) {
        h->lock = boxes_lock(h->folder, err);
        if (h->lock < 0)
            return h->lock;
        /* Somebody may have removed it while we waited. */
        if (faccessat(h->folder, "box.json", F_OK, 0) < 0)
            return error_set(err, ERR_NOT_FOUND, "no such box: %s", r->id);
    }
    h->was_started = boxes_load_last(h->folder, &h->last, &none) >= 0;
    return 0;
}

void hold_close(struct hold *h)
{
    close_fd(&h->lock);
    close_fd(&h->folder);
}

/*
 * An init that nobody wrote down: whoever started it was killed before he could. While somebody is
 * at it the lock is taken, so a lock that is free means that nobody is.
 */
static void end_stray(const struct hold *h, struct box *stray)
{
    autoclose int lock = openat(h->folder, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct box_last now = {0};
    struct error none;

    if (h->lock < 0 && (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0))
        return;
    if (boxes_load_last(h->folder, &now, &none) >= 0 && now.live.init_pid == stray->init_pid)
        return;
    (void)engine_native.end(stray, &now.live, &none);
}

int hold_attach(const struct hold *h, struct box **ret, struct error *err)
{
    int r = engine_native.attach(h->folder, &h->last.live, ret, err);

    if (r < 0)
        return r;
    if (h->was_started && (*ret)->init_pid == h->last.live.init_pid)
        return 0;
    end_stray(h, *ret);
    engine_native.destroy(*ret);
    *ret = NULL;
    return error_set(err, ERR_NOT_FOUND, "the box does not run");
}

/* Both in one: a box that has to run for what is asked of it. */
static int hold_running(const struct box_record *r, bool locked, struct hold *h, struct box **ret,
                        struct error *err)
{
    int e = hold_open(r, locked, h, err);

    return e < 0 ? e : hold_attach(h, ret, err);
}

bool life_is_paused(pid_t init_pid)
{
    return watch_state(init_pid) == 'T';
}

/* ---- starting ---- */

static const struct {
    const char *name;
    int resource;
} ulimit_names[] = {
    {"core", RLIMIT_CORE},         {"cpu", RLIMIT_CPU},
    {"data", RLIMIT_DATA},         {"fsize", RLIMIT_FSIZE},
    {"locks", RLIMIT_LOCKS},       {"memlock", RLIMIT_MEMLOCK},
    {"msgqueue", RLIMIT_MSGQUEUE}, {"nice", RLIMIT_NICE},
    {"nofile", RLIMIT_NOFILE},     {"nproc", RLIMIT_NPROC},
    {"rss", RLIMIT_RSS},           {"rtprio", RLIMIT_RTPRIO},
    {"rttime", RLIMIT_RTTIME},     {"sigpending", RLIMIT_SIGPENDING},
    {"stack", RLIMIT_STACK},
};
enum { N_ULIMITS = sizeof(ulimit_names) / sizeof(*ulimit_names) };

static size_t rlimits_of(const struct box_record *r, struct box_rlimit *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_ulimits; i++)
        for (size_t k = 0; k < N_ULIMITS && n < N_ULIMITS; k++)
            if (strcmp(r->ulimits[i].name, ulimit_names[k].name) == 0)
                ret[n++] = (struct box_rlimit){
                    .resource = ulimit_names[k].resource,
                    .soft = r->ulimits[i].soft < 0 ? UINT64_MAX : (uint64_t)r->ulimits[i].soft,
                    .hard = r->ulimits[i].hard < 0 ? UINT64_MAX : (uint64_t)r->ulimits[i].hard};
    return n;
}

/* "name:1.2.3.4" -> a line of /etc/hosts. */
static void hosts_of(const struct box_record *r, struct buf *out)
{
    for (size_t i = 0; r->extra_hosts && r->extra_hosts[i]; i++) {
        const char *entry = r->extra_hosts[i], *colon = strchr(entry, ':');

        if (colon && strspn(colon + 1, "0123456789abcdefABCDEF.:[]") == strlen(colon + 1))
            buf_printf(out, "%s\t%.*s\n", colon + 1, (int)(colon - entry), entry);
    }
}

static void hostname_of(const struct box_record *r, char text[65])
{
    (void)snprintf(text, 65, "%.*s", r->hostname ? 64 : 12, r->hostname ? r->hostname : r->id);
}

/* Can a file of ours be mounted on /etc/hosts of the image? Only on a file, and no link leads to
 * it. */
static bool has_place_for_hosts(const struct box_record *r, const struct image *image,
                                const struct places *p)
{
    autoclose int there = path_open(image->root_fd, "etc/hosts", O_PATH | O_CLOEXEC | O_NOFOLLOW, 0,
                                    PATH_BENEATH_NOLINKS),
                  etc = -1;
    struct stat st;

    for (size_t i = 0; i < p->n; i++)
        if (path_is_within("/etc/hosts", p->list[i].target))
            return false;
    if (p->n == LIMIT_PLACES)
        return false;
    if (there >= 0)
        return fstat(there, &st) == 0 && S_ISREG(st.st_mode);
    etc =
        path_open(image->root_fd, "etc", O_PATH | O_DIRECTORY | O_CLOEXEC, 0, PATH_BENEATH_NOLINKS);
    return there == -ENOENT && etc >= 0 && !r->read_only_root;
}

/*
 * /etc/hosts of a box with an image: localhost, its own name and --add-host. Made in the box's
 * folder and bound over the image's own, as docker does; `path` keeps the name of the place.
 */
static void add_hosts(const struct box_record *r, const struct image *image, int folder,
                      struct places *p, char path[LIMIT_PATH])
{
    autoclose int fd = -1;
    char hostname[65];
    autobuf text;
    int r_fd;

    buf_init(&text, LIMIT_SMALL_FILE);
    if (!image || !has_place_for_hosts(r, image, p))
        return;
    hostname_of(r, hostname);
    buf_printf(&text, "127.0.0.1\tlocalhost %s\n::1\tlocalhost\n", hostname);
    hosts_of(r, &text);
    fd = openat(folder, "hosts", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0 || text.failed || fchmod(fd, 0644) < 0 || fd_write_full(fd, text.data, text.len) < 0)
        return;
    r_fd = openat(folder, "hosts", O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (r_fd < 0 || path_of_fd(r_fd, path, LIMIT_PATH) < 0) {
        close_fd(&r_fd);
        return;
    }
    p->list[p->n++] =
        (struct box_place){.target = "/etc/hosts", .source = path, .fd = r_fd, .read_only = true};
}

static int open_listener(int folder, struct error *err)
{
    autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    if (fd < 0)
        return error_sys(err, -errno, "make the box's socket");
    (void)unlinkat(folder, BOX_SOCKET, 0);
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/" BOX_SOCKET, folder);
    /* Init listens, not we: the socket then tells who init is. */
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
        return error_sys(err, -errno, "bind the box's socket");
    return TAKE_FD(fd);
}

/* Where a box whose root may be changed keeps the changes: they outlive a stop, not a removal. */
static int open_changes(const struct box_record *r, int folder, int *ret, struct error *err)
{
    static const char *const names[] = {"rw", "rw/upper", "rw/work"};

    if (r->read_only_root || !r->image_id[0])
        return 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (mkdirat(folder, names[i], 0755) < 0 && errno != EEXIST)
            return error_sys(err, -errno, "make the folder '%s' of the box", names[i]);
    *ret = openat(folder, "rw", O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return *ret < 0 ? error_sys(err, -errno, "open the folder of the box's changes") : 0;
}

/* Init runs; a moment later it listens. */
static int wait_until_ready(struct hold *h, struct error *err)
{
    struct box *b;
    int r = -1;

    h->was_started = true;
    for (int i = 0; i < READY_TRIES && r < 0; i++) {
        if (i)
            (void)usleep(i < 100 ? 20 : 1000);
        r = hold_attach(h, &b, err);
    }
    if (r < 0)
        return error_wrap(err, "the box was made, but its init does not answer");
    engine_native.destroy(b);
    return 0;
}

static int launch(const struct box_record *r, const struct image *image,
                  const struct places *places, struct hold *h, struct error *err)
{
    autoclose int listener = open_listener(h->folder, err);
    autoclose int rw = -1;
    struct box_rlimit rlimits[N_ULIMITS];
    autobuf hosts;
    char hostname[65];
    struct box *b;
    int e;

    buf_init(&hosts, LIMIT_SMALL_FILE);
    if (listener < 0)
        return listener;
    e = open_changes(r, h->folder, &rw, err);
    if (e < 0)
        return e;
    hosts_of(r, &hosts);
    hostname_of(r, hostname);
    e = engine_native.start(&(struct box_spec){.root = image ? ROOT_DIR : ROOT_HOST,
                                               .root_fd = image ? image->root_fd : -1,
                                               .workspace_fd = -1,
                                               .places = places->list,
                                               .n_places = places->n,
                                               .rlimits = rlimits,
                                               .n_rlimits = rlimits_of(r, rlimits),
                                               .hostname = hostname,
                                               .hosts = hosts.data,
                                               .network = sandbox_has_network(r),
                                               .writable_root = !r->read_only_root,
                                               .rw_fd = rw,
                                               .uid = r->uid,
                                               .gid = r->gid,
                                               .limits = r->limits,
                                               .multi_tenant = config_is_on(CONFIG_MULTI_TENANT),
                                               .use_spawner = !config_is_on(CONFIG_SPAWNER_OFF),
                                               .live = true,
                                               .listener = listener,
                                               .hold_fd = image ? image->hold_fd : -1},
                            &b, err);
    if (e < 0)
        return e;
    engine_native.leave(b, &h->last.live);
    return wait_until_ready(h, err);
}

/*
 * The folder that commands start in, where the image has none: docker makes it, so people name one
 * that is not there. Made from outside as the owner of the box's root, like a socket of ours; no
 * link leads out of the box. What cannot be made is told when a command wants to go there.
 */
static void make_workdir(const struct box_record *r, pid_t init)
{
    autoclose int root = -1;
    char path[LIMIT_PATH];
    struct stat st;

    if (r->read_only_root || !r->workdir || strlen(r->workdir) >= sizeof(path))
        return;
    (void)snprintf(path, sizeof(path), "/proc/%d/root", (int)init);
    root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || fstat(root, &st) < 0)
        return;
    (void)snprintf(path, sizeof(path), "%s", r->workdir + strspn(r->workdir, "/"));
    (void)setfsgid(st.st_gid);
    (void)setfsuid(st.st_uid);
    for (char *end = path; *end;) {
        autoclose int there = -1, in = -1;
        char *name, rest;

        end += strspn(end, "/");
        name = end;
        end += strcspn(end, "/");
        rest = *end;
        *end = 0;
        there = path_open(root, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0, PATH_IN_ROOT);
        if (there == -ENOENT && name > path) {
            name[-1] = 0;
            in = path_open(root, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0, PATH_IN_ROOT);
            name[-1] = '/';
        }
        if (there == -ENOENT && mkdirat(name > path ? in : root, name, 0755) < 0)
            break;
        *end = rest;
    }
    (void)setfsuid(geteuid());
    (void)setfsgid(getegid());
}

int life_begin(const struct box_record *r, struct hold *h, struct error *err)
{
    autoptr(image) image = NULL;
    char hosts_path[LIMIT_PATH];
    struct places places;
    struct error none;
    int e;

    if (h->was_started) /* groups of the last time, if nobody was there to remove them */
        (void)engine_native.end(NULL, &h->last.live, &none);
    if (!r->image_id[0] && config_is_on(CONFIG_MULTI_TENANT))
        return error_set(
            err, ERR_DENIED,
            "multi-tenant mode: box '%s' has no image but the host's own system folders; "
            "build one: clawden image build sandbox",
            r->name);
    e = open_image(r, &image, err);
    if (e >= 0)
        e = receipt_box("box.start", r, err);
    if (e < 0)
        return e;
    e = places_open(r, &places, err);
    if (e < 0)
        return e;
    add_hosts(r, image, h->folder, &places, hosts_path);
    h->last = (struct box_last){.started_usec = now_usec()};
    e = launch(r, image, &places, h, err);
    places_close(&places);
    if (e >= 0)
        make_workdir(r, h->last.live.init_pid);
    if (e >= 0)
        e = network_begin(r, h, h->last.live.init_pid, err);
    if (e >= 0)
        e = boxes_save_last(h->folder, &h->last, err);
    if (e < 0) {
        (void)life_end(h, 128 + SIGKILL, &none);
        h->was_started = false;
    }
    return e;
}

int life_end(struct hold *h, int exit_code, struct error *err)
{
    struct box_usage u = {0};
    struct box *b = NULL;
    struct error none;
    int r = hold_attach(h, &b, &none);

    if (r >= 0 && b->ops->usage(b, &u) >= 0 && u.oom_kills)
        h->last.oom_killed = true;
    r = engine_native.end(b, &h->last.live, err);
    if (b)
        engine_native.destroy(b);
    if (r < 0)
        return r;
    (void)unlinkat(h->folder, BOX_SOCKET, 0);
    if (!h->was_started || h->last.finished_usec)
        return 0;
    h->last.finished_usec = now_usec();
    h->last.exit_code = exit_code;
    return boxes_save_last(h->folder, &h->last, err);
}

static bool is_running(const struct hold *h)
{
    struct error none;
    struct box *b;

    if (hold_attach(h, &b, &none) < 0)
        return false;
    engine_native.destroy(b);
    return true;
}

int sandbox_start(const struct box_record *r, struct error *err)
{
    autohold h = HOLD_EMPTY;
    struct error none;
    int e = hold_open(r, true, &h, err);

    if (e < 0)
        return e;
    if (is_running(&h))
        return 0;
    e = life_begin(r, &h, err);
    if (e >= 0 && keeper_is_needed(r, &h.last)) {
        e = keeper_start(r, &h, !life_only_waits(r), err);
        if (e < 0)
            (void)life_end(&h, 127, &none);
    }
    return e;
}

/* ---- visiting ---- */

/*
 * Nothing of it is written down, and the lock is held: to others it does not run. If we are killed
 * its init is a stray, which the next who looks ends.
 */
static int make_up(const struct box_record *r, struct hold *h, struct error *err)
{
    autoptr(image) image = NULL;
    char hosts_path[LIMIT_PATH];
    struct places places;
    int e;

    if (!r->image_id[0])
        return error_set(err, ERR_DENIED,
                         "container %s is not running: without an image a stopped box has no files "
                         "but its binds; start it first",
                         r->name);
    e = open_image(r, &image, err);
    if (e >= 0)
        e = places_open(r, &places, err);
    if (e < 0)
        return e;
    add_hosts(r, image, h->folder, &places, hosts_path);
    h->last = (struct box_last){.started_usec = now_usec()};
    e = launch(r, image, &places, h, err);
    places_close(&places);
    if (e >= 0)
        make_workdir(r, h->last.live.init_pid);
    return e;
}

static void take_away(struct hold *h)
{
    struct error none;
    struct box *b;

    if (hold_attach(h, &b, &none) >= 0) {
        (void)engine_native.end(b, &h->last.live, &none);
        engine_native.destroy(b);
    }
    (void)unlinkat(h->folder, BOX_SOCKET, 0);
}

int sandbox_visit(const struct box_record *r, int (*fn)(void *arg, pid_t init, struct error *err),
                  void *arg, struct error *err)
{
    autohold h = HOLD_EMPTY;
    struct error none;
    struct box *b;
    int e = hold_open(r, true, &h, err);

    if (e < 0)
        return e;
    if (hold_attach(&h, &b, &none) >= 0) {
        close_fd(&h.lock); /* others may stop it meanwhile */
        e = fn(arg, b->init_pid, err);
        engine_native.destroy(b);
        return e;
    }
    e = make_up(r, &h, err);
    if (e >= 0)
        e = fn(arg, h.last.live.init_pid, err);
    take_away(&h);
    return e;
}

/* ---- looking, ending ---- */

/* Whoever ends a box writes down how when it is gone, and holds the lock until then. */
static void await_end(struct hold *h)
{
    autoclose int lock = openat(h->folder, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct error none;

    for (int i = 0; lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0 && i < END_TRIES; i++)
        (void)usleep(1000);
    (void)boxes_load_last(h->folder, &h->last, &none);
}

int sandbox_state(const struct box_record *r, struct box_state *ret, struct error *err)
{
    autohold h = HOLD_EMPTY;
    struct error none;
    struct stat st;
    struct box *b;
    int e = hold_open(r, false, &h, err);

    *ret = (struct box_state){0};
    if (e < 0)
        return e;
    if (fstatat(h.folder, "lock", &st, AT_SYMLINK_NOFOLLOW) == 0)
        ret->used_usec = (int64_t)st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000;
    if (!h.was_started)
        return 0;
    ret->started_usec = h.last.started_usec;
    if (hold_attach(&h, &b, &none) >= 0) {
        ret->running = true;
        ret->init_pid = b->init_pid;
        ret->paused = life_is_paused(b->init_pid);
        ret->belts = b->belts;
        memcpy(ret->grades, b->grades, sizeof(ret->grades));
        memcpy(ret->published, h.last.published, sizeof(ret->published));
        engine_native.destroy(b);
        return 0;
    }
    if (!h.last.finished_usec)
        await_end(&h);
    ret->finished_usec = h.last.finished_usec ? h.last.finished_usec : h.last.started_usec;
    ret->exit_code =
        h.last.finished_usec ? h.last.exit_code : 128 + SIGKILL; /* nobody saw its end */
    ret->oom_killed = h.last.oom_killed;
    (void)snprintf(ret->problem, sizeof(ret->problem), "%s", h.last.problem);
    return 0;
}

/* Until it does not run any more, or the time is over. */
static void wait_for_end(const struct hold *h, uint64_t usec)
{
    for (uint64_t i = 0; i < usec / 20000 && is_running(h); i++)
        (void)usleep(20000);
}

/* How many processes the box's groups allow; what has no such file has no such limit. */
static void allow_pids(const struct hold *h, const char *text)
{
    for (int i = 0; i < 3; i++) {
        const char *path = h->last.live.cgroups[i];
        autoclose int dir = path[0] ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

        if (dir >= 0)
            (void)fd_write_text(dir, "pids.max", text);
    }
}

static void restore_pids(const struct hold *h, const struct box_record *r)
{
    char text[24] = "max";

    if (r->limits.pids)
        (void)snprintf(text, sizeof(text), "%u", r->limits.pids + LIMIT_REAPERS_FREE);
    allow_pids(h, text);
}

/* After a pause; whoever paused it may have been killed on the way. */
static void go_on(const struct hold *h, const struct box_record *r, pid_t init_pid)
{
    restore_pids(h, r);
    watch_signal(init_pid, SIGCONT);
    (void)kill(init_pid, SIGCONT);
}

/* Does `sleep` die of it? A box that only waits has none, and ends as if it had. */
static bool ends_sleep(int signo)
{
    static const int survived[] = {SIGCHLD, SIGCONT, SIGURG,  SIGWINCH,
                                   SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};

    for (size_t i = 0; i < sizeof(survived) / sizeof(*survived); i++)
        if (signo == survived[i])
            return false;
    return true;
}

/* Takes away what still runs of it. */
static int end_now(const struct box_record *r, int exit_code, struct error *err)
{
    autohold h = HOLD_EMPTY;
    int e = hold_open(r, true, &h, err);

    if (e == -ERR_NOT_FOUND) /* --rm: it is gone with its end */
        return 0;
    return e < 0 ? e : life_end(&h, exit_code, err);
}

int sandbox_signal(const struct box_record *r, int signo, struct error *err)
{
    autohold h = HOLD_EMPTY;
    struct box *b;
    int e;

    if (signo == SIGKILL || (life_only_waits(r) && ends_sleep(signo)))
        return end_now(r, 128 + signo, err);
    e = hold_open(r, false, &h, err);
    if (e >= 0)
        e = hold_attach(&h, &b, err);
    if (e < 0)
        return e;
    if (!life_only_waits(r)) /* its reapers and other commands are not asked to end */
        watch_signal_main(b->init_pid, signo);
    engine_native.destroy(b);
    return 0;
}

int sandbox_stop(const struct box_record *r, int signo, uint64_t grace_usec, struct error *err)
{
    autohold h = HOLD_EMPTY;
    struct box *b;
    int e = hold_open(r, false, &h, err);

    if (e < 0)
        return e;
    if (hold_attach(&h, &b, err) < 0)
        return 0;
    if (signo != SIGKILL && grace_usec && !life_only_waits(r)) {
        watch_signal_main(b->init_pid, signo);
        if (life_is_paused(b->init_pid))
            go_on(&h, r, b->init_pid); /* what is stopped cannot end */
        wait_for_end(&h, grace_usec);
    }
    engine_native.destroy(b);
    return end_now(r, 128 + (grace_usec && life_only_waits(r) ? signo : SIGKILL), err);
}

/*
 * Until round after round finds nobody who runs: what is stopped starts nothing any more, but one
 * round alone may miss a process that has just left its place to its child. Where the kernel keeps
 * the number of processes, nothing flees by forking meanwhile.
 */
static bool stop_all(const struct hold *h, const struct box_record *r, pid_t init_pid)
{
    int clean = 0;

    allow_pids(h, "0");
    for (int i = 0; i < PAUSE_ROUNDS && clean < CLEAN_ROUNDS; i++) {
        watch_signal(init_pid, SIGSTOP);
        clean = watch_stop_namespace(init_pid) ? 0 : clean + 1;
    }
    restore_pids(h, r);
    return clean == CLEAN_ROUNDS;
}

int sandbox_pause(const struct box_record *r, bool pause, struct error *err)
{
    autohold h = HOLD_EMPTY;
    struct box *b;
    int e = hold_running(r, true, &h, &b, err);

    if (e < 0)
        return e;
    if (life_is_paused(b->init_pid) == pause) {
        engine_native.destroy(b);
        return error_set(err, ERR_INVALID, pause ? "is already paused" : "is not paused");
    }
    if (pause) { /* first init, so that nothing new is started */
        (void)kill(b->init_pid, SIGSTOP);
        if (!stop_all(&h, r, b->init_pid))
            e = error_set(err, ERR_TIMEOUT,
                          "box '%s' starts processes faster than they can be stopped: stop or "
                          "remove it",
                          r->name);
    } else {
        go_on(&h, r, b->init_pid);
    }
    engine_native.destroy(b);
    return e;
}

int sandbox_remove(const struct box_record *r, bool force, struct error *err)
{
    autohold h = HOLD_EMPTY;
    struct error none;
    int e = hold_open(r, true, &h, err);

    if (e < 0)
        return e;
    if (!force && is_running(&h))
        return error_set(err, ERR_DENIED, "the box runs: stop it before, or force its removal");
    e = life_end(&h, 128 + SIGKILL, err);
    if (e >= 0)
        e = boxes_drop(r, err);
    if (e >= 0 && receipt_box("box.remove", r, &none) < 0)
        log_warn("%s: the removal of this box is not recorded", none.msg);
    return e;
}

int sandbox_each_process(const struct box_record *r, void (*fn)(void *arg, pid_t pid), void *arg,
                         struct error *err)
{
    autohold h = HOLD_EMPTY;
    struct box *b;
    int e = hold_running(r, false, &h, &b, err);

    if (e < 0)
        return e;
    watch_each(b->init_pid, fn, arg);
    engine_native.destroy(b);
    return 0;
}

int sandbox_usage(const struct box_record *r, struct box_usage *ret, struct error *err)
{
    autohold h = HOLD_EMPTY;
    struct box *b;
    int e = hold_running(r, false, &h, &b, err);

    if (e < 0)
        return e;
    e = b->ops->usage(b, ret);
    engine_native.destroy(b);
    return e < 0 ? error_set(err, ERR_SYS, "the box's counters cannot be read") : 0;
}

int sandbox_open_log(const struct box_record *r, struct error *err)
{
    autohold h = HOLD_EMPTY;
    int e = hold_open(r, false, &h, err), fd;

    if (e < 0)
        return e;
    fd = openat(h.folder, "log", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? error_set(err, ERR_NOT_FOUND, "the box has no log") : fd;
}
