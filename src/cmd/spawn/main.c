/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clawden-spawn keeps ready slots for one user (engine/native/slot.h).
 *
 * Theory of operation. Started by the first program that finds no spawner; a lock makes it the only
 * one. It makes the socket, a cgroup and an id range per slot, and the slot processes, which do the
 * rest; they tell it when they are taken and free again. When all are taken it makes more, up to a
 * limit; when nobody has asked for a while it removes everything and leaves. A berth that became a
 * live box is not its business any more. Nothing depends on it: without it, boxes are built in
 * place.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/state.h"
#include "base/usage.h"
#include "engine/native/cgroup.h"
#include "engine/native/host.h"
#include "engine/native/ids.h"
#include "engine/native/launch.h"
#include "engine/native/slot.h"
#include "version.h"

#define SPARE_SLOTS  2    /* free ones to keep */
#define SPARE_BERTHS 2    /* a session has an isolated box and one with a network */
#define IDLE_SEC     60   /* without a request: leave (CLAWDEN_SPAWN_IDLE) */
#define LOOK_MS      2000 /* how often the host is compared with what slots were made from */
#define QUIET_SEC    2 /* without a change of mounts, which come in crowds, before slots are made */
#define TMP_BYTES    (500ull << 20)

enum kind { KIND_SLOT, KIND_BERTH, KINDS };

struct one {
    enum kind kind;
    pid_t pid;
    int id_lock, id_map, notify;
    bool busy, stale;
    struct cgroup_set groups;
};

static struct spawner {
    int dir, lock, listeners[KINDS], signals, init;
    int mounts; /* /proc/self/mountinfo: poll() tells of changes */
    struct cgroup_base base;
    struct one slots[LIMIT_SLOTS];
    struct host_facts seen; /* what the present slots were made from */
    unsigned made;
    uint32_t mark; /* of this spawner's cgroups */
    time_t last_use, quiet_at;
} sp;

static time_t now_sec(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* ---- slots ---- */

static const struct box_spec slot_spec = {
    .root = ROOT_HOST,
    .root_fd = -1,
    .workspace_fd = -1,
    .workspace_path = "/workspace",
    .uid = 1000,
    .gid = 1000,
    .limits = {.tmp_bytes = TMP_BYTES, .memory_bytes = 1, .pids = 1, .cpu_milli = 1000},
};

static const char *const socket_names[KINDS] = {SLOT_SOCKET, BERTH_SOCKET};
static const unsigned spares[KINDS] = {SPARE_SLOTS, SPARE_BERTHS};

/* What a berth is before it becomes a certain box. */
static struct box_spec berth_spec(void)
{
    struct box_spec spec = slot_spec;

    spec.live = true;
    spec.workspace_path = NULL;
    if (geteuid() != 0) {
        spec.uid = geteuid();
        spec.gid = getegid();
    }
    return spec;
}

/* It is a box now: its cgroups and ids are its own. */
static void let_go(struct one *s)
{
    s->pid = 0;
    close_fd(&s->notify);
    close_fd(&s->id_map);
    close_fd(&s->id_lock);
    for (int i = 0; i < CG_COUNT; i++)
        close_fd(&s->groups.dirs[i]);
    s->groups = (struct cgroup_set)CGROUP_SET_EMPTY;
}

static void drop_slot(struct one *s)
{
    if (s->pid > 0) {
        (void)kill(s->pid, SIGKILL);
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    s->pid = 0;
    close_fd(&s->notify);
    close_fd(&s->id_map);
    close_fd(&s->id_lock);
    cgroup_remove(&s->groups);
}

/*
 * Its cgroup has no limits until a request sets them. Live boxes outlive us in groups with our
 * number in their names: the mark tells them from those of a later spawner with the same number.
 */
static int prepare_groups(struct one *s, struct host_facts *facts, struct error *err)
{
    char name[48];
    int r;

    (void)snprintf(name, sizeof(name), CGROUP_PREFIX "slot-%u-%08x-%d", sp.made++, sp.mark,
                   (int)getpid());
    r = cgroup_make(&sp.base, name, ~0u, &s->groups);
    if (r >= 0)
        r = cgroup_open_joins(&s->groups, facts->cgroup_join);
    return r < 0 ? error_sys(err, r, "make cgroup '%s'", name) : 0;
}

static int prepare_ids(struct one *s, struct host_facts *facts, struct error *err)
{
    int r;

    if (facts->ids != IDS_RANGE)
        return 0;
    r = ids_lock_range(&facts->range_base, &s->id_lock, err);
    if (r < 0)
        return r;
    s->id_map =
        ids_make_map(0, 0, facts->range_base + slot_spec.uid, facts->range_base + slot_spec.gid);
    return s->id_map < 0 ? error_sys(err, s->id_map, "make an id map") : 0;
}

static int launch_slot(struct one *s, const struct box_spec *spec, struct host_facts *facts,
                       struct error *err)
{
    static struct launch_plan plan;
    struct launch l = {.plan = &plan,
                       .facts = facts,
                       .main = s->kind == KIND_BERTH ? berth_main : slot_main,
                       .cgroup_fd = -1};
    struct slot inherit = {.listener = sp.listeners[s->kind],
                           .id_map = s->kind == KIND_BERTH ? -1 : s->id_map,
                           .id_lock = s->kind == KIND_BERTH ? s->id_lock : -1,
                           .cgroup_kind = s->groups.kind,
                           .tmp_bytes = TMP_BYTES};
    autoclose int pidfd = -1;
    int p[2], r;

    r = plan_make(spec, facts, &plan, err);
    if (r < 0)
        return r;
    if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_sys(err, -errno, "make a pipe");
    s->notify = p[0];
    inherit.notify = p[1];
    memcpy(inherit.cgroups, s->groups.dirs, sizeof(inherit.cgroups));
    slot_set(&inherit);
    child_state_init(&l.state);
    l.state.init = sp.init;
    l.cgroup_fd = cgroup_clone_fd(&s->groups);
    r = launch_child(&l, &s->pid, &pidfd, err);
    (void)close(p[1]);
    return r;
}

static int make_slot(struct one *s, enum kind kind, struct error *err)
{
    static struct host_facts facts;
    const struct box_spec spec = kind == KIND_BERTH ? berth_spec() : slot_spec;
    int r;

    *s = (struct one){
        .kind = kind, .id_lock = -1, .id_map = -1, .notify = -1, .groups = CGROUP_SET_EMPTY};
    r = host_look(&spec, &facts, err);
    if (r < 0)
        return r;
    if (facts.ids == IDS_ONE && facts.caller_gid == 0)
        return error_set(err, ERR_DENIED, "your primary group is 0, which no box may have");
    sp.seen = facts;
    facts.ws_tree_given = true;
    r = prepare_groups(s, &facts, err);
    if (r >= 0)
        r = prepare_ids(s, &facts, err);
    if (r >= 0)
        r = launch_slot(s, &spec, &facts, err);
    for (int i = 0; i < 4; i++)
        close_fd(&facts.cgroup_join[i]);
    if (r < 0)
        drop_slot(s);
    return r;
}

static int keep_ready_of(enum kind kind, struct error *err)
{
    unsigned ready = 0;

    for (unsigned i = 0; i < LIMIT_SLOTS; i++)
        ready += sp.slots[i].pid > 0 && sp.slots[i].kind == kind && !sp.slots[i].busy;
    for (unsigned i = 0; i < LIMIT_SLOTS && ready < spares[kind]; i++) {
        int r;

        if (sp.slots[i].pid > 0)
            continue;
        r = make_slot(&sp.slots[i], kind, err);
        if (r < 0)
            return r;
        ready++;
    }
    return 0;
}

/* Keeps enough free ones. A failure is told once and ends the spawner: the host cannot do it. */
static int keep_ready(struct error *err)
{
    int r = keep_ready_of(KIND_SLOT, err);

    return r < 0 ? r : keep_ready_of(KIND_BERTH, err);
}

/* ---- the process ---- */

static int open_listener(enum kind kind, struct error *err)
{
    const char *name = socket_names[kind];
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return error_sys(err, -errno, "make a socket");
    (void)unlinkat(sp.dir, name, 0); /* of a spawner that was killed: the lock is ours */
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", sp.dir, name);
    (void)umask(0177);
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 64) < 0)
        return error_sys(err, -errno, "listen on '%s'", name);
    (void)umask(022);
    sp.listeners[kind] = TAKE_FD(fd);
    return 0;
}

/* 1: another spawner is there. */
static int open_all(struct error *err)
{
    sigset_t set;
    int r;

    sp.dir = state_open_runtime(err);
    if (sp.dir < 0)
        return sp.dir;
    sp.lock = openat(sp.dir, SLOT_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (sp.lock < 0)
        return error_sys(err, -errno, "open '" SLOT_LOCK "'");
    if (flock(sp.lock, LOCK_EX | LOCK_NB) < 0)
        return 1;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    sp.signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (sp.signals < 0)
        return error_sys(err, -errno, "wait for signals");
    sp.init = launch_init_image(err);
    if (sp.init < 0)
        return sp.init;
    sp.mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (sp.mounts < 0)
        return error_sys(err, -errno, "watch the host's mounts");
    if (getrandom(&sp.mark, sizeof(sp.mark), 0) != (ssize_t)sizeof(sp.mark))
        return error_sys(err, -errno, "get random bytes for the names of cgroups");
    cgroup_find(true, &sp.base);
    cgroup_sweep(&sp.base);
    r = open_listener(KIND_SLOT, err);
    if (r >= 0)
        r = open_listener(KIND_BERTH, err);
    return r < 0 ? r : keep_ready(err);
}

static void read_notes(struct one *s)
{
    char notes[64];
    ssize_t n = read(s->notify, notes, sizeof(notes));

    for (ssize_t i = 0; i < n; i++) {
        s->busy = notes[i] != '-';
        sp.last_use = now_sec();
        if (notes[i] == '!') {
            let_go(s);
            return;
        }
    }
    if (n > 0)
        s->stale = true;
}

/* ---- making them anew ---- */

/*
 * Those that nobody uses, all at once. The last words of each are read first: one that is a box by
 * now is nobody's to kill.
 */
static void drop_unused(void)
{
    bool unused[LIMIT_SLOTS];

    for (unsigned i = 0; i < LIMIT_SLOTS; i++) {
        struct one *s = &sp.slots[i];

        if (s->pid > 0)
            read_notes(s);
        unused[i] = s->pid > 0 && !s->busy;
        if (unused[i])
            (void)kill(s->pid, SIGKILL);
    }
    for (unsigned i = 0; i < LIMIT_SLOTS; i++)
        if (unused[i])
            drop_slot(&sp.slots[i]);
}

/* An upgrade replaces files that slots have bound: those are made anew while nobody uses them. */
static void renew_slots(void)
{
    static struct host_facts facts;
    struct error ignored;

    if (host_look(&slot_spec, &facts, &ignored) < 0 ||
        (facts.n_entries == sp.seen.n_entries &&
         memcmp(facts.entries, sp.seen.entries, facts.n_entries * sizeof(*facts.entries)) == 0))
        return;
    drop_unused();
}

/*
 * Slots of an ordinary user look for places among the host's mounts as they were when the slot was
 * made; where mounts are not shared between namespaces, what is mounted or unmounted later does not
 * reach them, and a box would see what is covered, or gone, for everybody else.
 */
static void on_mounts(void)
{
    drop_unused();
    sp.quiet_at = now_sec() + QUIET_SEC;
}

static void close_all(void)
{
    for (int k = 0; k < KINDS; k++)
        if (sp.listeners[k] >= 0)
            (void)unlinkat(sp.dir, socket_names[k], 0);
    for (unsigned i = 0; i < LIMIT_SLOTS; i++) {
        struct one *s = &sp.slots[i];

        if (s->pid > 0)
            read_notes(s);
        if (s->pid > 0 && s->kind == KIND_BERTH && s->busy)
            let_go(s); /* it is becoming a box: if it does not, it dies with us */
        drop_slot(s);
    }
    cgroup_base_done(&sp.base);
}

/* Page cache of earlier boxes counts as the next one's memory. Taking it away is slow: only when
 * quiet. */
static void forget_caches(void)
{
    for (unsigned i = 0; i < LIMIT_SLOTS; i++)
        if (sp.slots[i].pid > 0 && !sp.slots[i].busy && sp.slots[i].stale) {
            cgroup_forget(&sp.slots[i].groups);
            sp.slots[i].stale = false;
        }
}

static bool any_busy(void)
{
    for (unsigned i = 0; i < LIMIT_SLOTS; i++)
        if (sp.slots[i].pid > 0 && sp.slots[i].busy)
            return true;
    return false;
}

/* True: time to go. *deaths counts slots that ended while nobody used them. */
static bool on_signal(int *deaths)
{
    struct signalfd_siginfo info;
    int pid;

    if (read(sp.signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return false;
    if (info.ssi_signo != SIGCHLD)
        return true;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        for (unsigned i = 0; i < LIMIT_SLOTS; i++)
            if (sp.slots[i].pid == pid) {
                read_notes(&sp.slots[i]); /* its last words may still be there */
                *deaths += !sp.slots[i].busy;
                sp.slots[i].pid = 0;
                drop_slot(&sp.slots[i]);
            }
    return false;
}

static int idle_seconds(void)
{
    const char *v = getenv("CLAWDEN_SPAWN_IDLE");
    long n = v ? strtol(v, NULL, 10) : 0;

    return n > 0 && n < 86400 ? (int)n : IDLE_SEC;
}

static int serve(struct error *err)
{
    int idle = idle_seconds(), deaths = 0;

    sp.last_use = now_sec();
    for (;;) {
        struct pollfd p[LIMIT_SLOTS + 2];
        int n;

        for (unsigned i = 0; i < LIMIT_SLOTS; i++)
            p[i] = (struct pollfd){.fd = sp.slots[i].pid > 0 ? sp.slots[i].notify : -1,
                                   .events = POLLIN};
        p[LIMIT_SLOTS] = (struct pollfd){.fd = sp.signals, .events = POLLIN};
        p[LIMIT_SLOTS + 1] = (struct pollfd){.fd = sp.mounts, .events = POLLPRI};
        n = poll(p, LIMIT_SLOTS + 2, LOOK_MS);
        if (n > 0 && p[LIMIT_SLOTS + 1].revents)
            on_mounts();
        for (unsigned i = 0; n > 0 && i < LIMIT_SLOTS; i++)
            if (p[i].revents & POLLIN)
                read_notes(&sp.slots[i]);
        if (n > 0 && p[LIMIT_SLOTS].revents) {
            if (on_signal(&deaths))
                return 0;
            if (deaths >
                32) /* something on this host kills them: boxes are better built in place */
                return error_set(err, ERR_UNSUPPORTED, "slots keep dying");
        }
        if (n == 0) {
            deaths = 0;
            if (faccessat(sp.dir, SLOT_SOCKET, F_OK, 0) < 0)
                return 0; /* the folder was removed: nobody can ask any more */
            renew_slots();
            forget_caches();
        }
        if (!any_busy() && now_sec() - sp.last_use >= idle)
            return 0;
        if (now_sec() >= sp.quiet_at && keep_ready(err) < 0)
            return -(int)err->code;
    }
}

/* ---- stopping the one that runs ---- */

static int stop(void)
{
    autoclose int dir = -1, fd = -1, pidfd = -1;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct ucred peer;
    socklen_t n = sizeof(peer);
    struct pollfd p;
    struct error err;

    dir = state_open_runtime(&err);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (dir < 0 || fd < 0)
        return 1;
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" SLOT_SOCKET, dir);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        return 0; /* none runs */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.uid != geteuid()) {
        log_error("the spawner on this socket is not yours");
        return 1;
    }
    pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    if (pidfd < 0 || syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) < 0)
        return errno == ESRCH ? 0 : 1;
    p = (struct pollfd){.fd = pidfd, .events = POLLIN};
    return poll(&p, 1, 5000) == 1 ? 0 : 1;
}

/* Slots park their descriptors above 200. */
static void raise_descriptors(void)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) < 0)
        return;
    l.rlim_cur = l.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &l);
}

int main(int argc, char **argv)
{
    struct error err = {0};
    int r;

    (void)signal(SIGCHLD, SIG_DFL); /* inherited as ignored, it would lose us every exit status */
    log_init("clawden-spawn");
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        puts("clawden-spawn " CLAWDEN_VERSION);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--stop") == 0)
        return stop();
    if (argc > 1 && strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-h") != 0)
        return usage_unknown("clawden-spawn", argv[1]);
    if (argc > 1) {
        puts("clawden-spawn keeps half-built boxes ready for 'clawden-sandbox exec' and for live "
             "boxes, one spawner\n"
             "per user. It is started when it is needed and leaves after a minute without work\n"
             "(CLAWDEN_SPAWN_IDLE, in seconds); live boxes stay.\n"
             "\n"
             "  clawden-spawn            run, in the foreground\n"
             "  clawden-spawn --stop     stop the one that runs, and every box in its slots\n"
             "  clawden-spawn --version | --help");
        return 0;
    }
    raise_descriptors();
    sp = (struct spawner){
        .dir = -1, .lock = -1, .listeners = {-1, -1}, .signals = -1, .init = -1, .mounts = -1};
    sp.base = (struct cgroup_base){.dirs = {-1, -1, -1}};
    for (unsigned i = 0; i < LIMIT_SLOTS; i++)
        sp.slots[i] =
            (struct one){.id_lock = -1, .id_map = -1, .notify = -1, .groups = CGROUP_SET_EMPTY};
    r = open_all(&err);
    if (r == 0)
        r = serve(&err);
    close_all();
    if (r < 0)
        log_error("%s", err.msg);
    return r < 0 ? 125 : 0;
}
