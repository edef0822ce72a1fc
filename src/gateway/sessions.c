/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/sessions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "gateway/doors.h"
#include "guard/guard.h"
#include "sandbox/scope.h"

#define LIMIT_SWEEPERS 2u
#define LIMIT_SAID     (64u << 10)
#define SWEEP_MS       60000 /* younger ones may be those of a call that runs */

struct sessions {
    struct loop *loop;
    struct doors *doors;
    struct session *list; /* most recently used first */
    size_t n;
    struct session_box *queue; /* boxes to be made, first come first */
    size_t makers, sweepers;
    uint64_t made;
};

static void make_next(struct sessions *all);

/* ---- waiting ---- */

void box_wait_stop(struct box_wait *w)
{
    if (!w->back)
        return;
    *w->back = w->next;
    if (w->next)
        w->next->back = w->back;
    w->back = NULL;
}

static void tell(struct session_box *b, const struct error *err)
{
    struct box_wait *w;

    while ((w = b->waiting)) {
        box_wait_stop(w);
        w->on_box(w, b->box, err);
        if (!err && !b->box) /* somebody found that it is gone already: the others ask again */
            break;
    }
}

/* ---- making ---- */

/* `clawden sandbox start` makes it: a fresh program, which knows nothing of ours. */
static void work_make(const void *arg, int out, int kept)
{
    const struct session_box *b = arg;
    const struct session *s = b->session;
    const char *argv[12] = {"clawden", "sandbox", "start",     "--json",
                            "--agent", s->agent,  "--session", s->key};
    size_t n = 8;

    (void)kept;
    if (b->which & BOX_NETWORK)
        argv[n++] = "--network";
    if (b->which & BOX_SIBLING)
        argv[n++] = "--sibling";
    worker_become(out, argv);
}

/* What it says of an error, as an error. */
static int read_error(json_t *e, struct error *err)
{
    const char *code = json_string_value(json_object_get(e, "code"));
    const char *text = json_string_value(json_object_get(e, "message"));

    for (enum error_code c = ERR_SYS; code && text && c <= ERR_EXISTS; c++)
        if (strcmp(error_code_name(c), code) == 0)
            return error_set(err, c, "%s", text);
    return error_set(err, ERR_SYS, "the program that makes the box ended before it was made");
}

static int read_made(const struct buf *said, struct box_record **ret, struct error *err)
{
    json_t *v = said->failed ? NULL : json_loadb(said->data ? said->data : "", said->len, 0, NULL);
    const char *id = json_string_value(json_object_get(v, "id"));
    const char *note = json_string_value(json_object_get(v, "note"));
    int r = id ? sandbox_find(id, ret, err) : read_error(json_object_get(v, "error"), err);

    if (note)
        log_warn("%s", note);
    json_decref(v);
    return r;
}

static void queue(struct session_box *b)
{
    struct session_box **last = &b->session->all->queue;

    while (*last)
        last = &(*last)->queue;
    b->queue = NULL;
    b->is_queued = true;
    *last = b;
}

static void lose(struct session_box *b)
{
    door_close(b->door);
    b->door = NULL;
    job_box_drop(b->box);
    b->box = NULL;
}

/* Who speaks out of it: its session; where an agent's sessions share it, the agent's main one;
 * where agents do, nobody. A sibling has no sibling. */
static void open_door(struct session_box *b)
{
    const struct session *s = b->session;
    char key[NAMES_SESSION];

    if (!s->all->doors || b->which & BOX_SIBLING || s->settings->policy.scope == SCOPE_SHARED)
        return;
    if (s->settings->policy.scope == SCOPE_AGENT)
        (void)snprintf(key, sizeof(key), "agent:%s:main", s->agent);
    else
        (void)snprintf(key, sizeof(key), "%s", s->key);
    b->door =
        door_open(s->all->doors, b->box->record,
                  &(struct guard_door){
                      .agent = s->agent, .session = key, .has_network = b->which & BOX_NETWORK});
}

static void on_made(struct worker *w)
{
    struct session_box *b = OF(struct session_box, maker, w);
    struct sessions *all = b->session->all;
    autoptr(box_record) record = NULL;
    struct error err;
    int r = read_made(&w->said, &record, &err);

    all->makers--;
    if (b->made_for != b->session->settings->from->generation && b->waiting) {
        queue(b); /* the configuration is another one by now */
        make_next(all);
        return;
    }
    if (r >= 0) {
        struct door *old = b->door; /* of the same box, maybe */

        b->door = NULL;
        job_box_drop(b->box);
        b->box = job_box_new(TAKE_PTR(record));
        open_door(b);
        door_close(old);
        all->made++;
    }
    tell(b, r < 0 ? &err : NULL);
    make_next(all);
}

static int start_maker(struct session_box *b, struct error *err)
{
    int r;

    b->maker.on_end = on_made;
    b->made_for = b->session->settings->from->generation;
    r = worker_start(&b->maker, b->session->all->loop, LIMIT_SAID, -1, work_make, b);
    if (r < 0)
        return error_sys(err, r, "start a process that makes the box");
    b->session->all->makers++;
    return 0;
}

static void make_next(struct sessions *all)
{
    while (all->queue && all->makers < LIMIT_MAKERS) {
        struct session_box *b = all->queue;
        struct error err;

        all->queue = b->queue;
        b->is_queued = false;
        if (b->waiting && start_maker(b, &err) < 0)
            tell(b, &err);
    }
}

void session_box(struct session *s, unsigned which, struct box_wait *w)
{
    struct session_box *b = &s->boxes[which];

    if (b->box) {
        w->on_box(w, b->box, NULL);
        return;
    }
    w->next = b->waiting;
    w->back = &b->waiting;
    if (w->next)
        w->next->back = &w->next;
    b->waiting = w;
    if (b->is_queued || b->maker.pid)
        return;
    queue(b);
    make_next(s->all);
}

static void close_doors(struct session *s)
{
    for (int i = 0; i < SESSION_BOXES; i++) {
        door_close(s->boxes[i].door);
        s->boxes[i].door = NULL;
    }
}

/* Who shares a box with whom is another question now: whoever is in an old one speaks for nobody
 * until his session is used again. */
void sessions_reload(struct sessions *all, struct guard *g)
{
    for (struct session *s = all->list; s; s = s->next) {
        struct guard_agent *now;
        struct error err;

        if (!s->settings || guard_settings(g, s->agent, &now, &err) < 0 ||
            now->policy.scope != s->settings->policy.scope)
            close_doors(s);
    }
}

void session_lost_box(struct session *s, unsigned which)
{
    lose(&s->boxes[which]);
}

/* ---- sessions ---- */

static bool is_busy(const struct session *s)
{
    if (s->users)
        return true;
    for (int i = 0; i < SESSION_BOXES; i++)
        if (s->boxes[i].waiting || s->boxes[i].maker.pid || s->boxes[i].is_queued)
            return true;
    return false;
}

static void stop_sweeper(struct session *s)
{
    loop_stop_timer(&s->sweep);
    if (s->sweeper.pid && !s->is_ending)
        s->all->sweepers--;
    worker_stop(&s->sweeper);
}

static void session_free(struct session *s)
{
    if (!s)
        return;
    for (int i = 0; i < SESSION_BOXES; i++) {
        worker_leave(&s->boxes[i].maker); /* it goes on; the box is found the next time */
        lose(&s->boxes[i]);
    }
    if (s->back) {
        *s->back = s->next;
        if (s->next)
            s->next->back = s->back;
        s->all->n--;
    }
    stop_sweeper(s);
    guard_agent_drop(s->settings);
    close_fd(&s->workspace);
    free(s);
}
DEFINE_AUTOPTR(session)

static void to_front(struct session *s)
{
    struct sessions *all = s->all;

    if (s->back) {
        *s->back = s->next;
        if (s->next)
            s->next->back = s->back;
    } else {
        all->n++;
    }
    s->next = all->list;
    s->back = &all->list;
    if (s->next)
        s->next->back = &s->next;
    all->list = s;
    s->used_usec = loop_now(all->loop);
}

int sessions_new(struct loop *l, struct doors *doors, struct sessions **ret, struct error *err)
{
    struct sessions *all = calloc(1, sizeof(*all));

    if (!all)
        return error_sys(err, -ENOMEM, "make the table of sessions");
    all->loop = l;
    all->doors = doors;
    *ret = all;
    return 0;
}

void sessions_free(struct sessions *all)
{
    if (!all)
        return;
    while (all->list)
        session_free(all->list);
    free(all);
}

size_t sessions_count(const struct sessions *all)
{
    return all->n;
}

uint64_t sessions_boxes_made(const struct sessions *all)
{
    return all->made;
}

struct session *session_find(struct sessions *all, const char *key)
{
    for (struct session *s = all->list; s; s = s->next)
        if (strcmp(s->key, key) == 0)
            return s;
    return NULL;
}

/* Opens its workspace under these settings. */
static int open_session(struct session *s, const struct pass *p, struct error *err)
{
    const struct scope_request q = {.config = p->settings->from->config,
                                    .settings = &p->settings->settings,
                                    .policy = &p->settings->policy,
                                    .agent = p->agent,
                                    .session = p->session};
    autoptr(scope_plan) plan = NULL;
    int r = scope_plan_make(&q, &plan, err), fd;

    if (r < 0)
        return r;
    fd = scope_open_workspace(plan, err);
    if (fd < 0)
        return fd;
    close_fd(&s->workspace);
    s->workspace = fd;
    (void)snprintf(s->mount, sizeof(s->mount), "%s",
                   plan->record->workdir ? plan->record->workdir : "/workspace");
    (void)snprintf(s->path, sizeof(s->path), "%s", plan->workspace);
    guard_agent_drop(s->settings);
    s->settings = guard_agent_hold(p->settings);
    return 0;
}

/* Temporary files of a gateway that was killed; nobody waits for that. */
static void work_sweep(const void *arg, int out, int kept)
{
    struct files_root root;
    struct error none;

    (void)out;
    (void)arg;
    files_root_init(&root, kept, NULL);
    (void)files_sweep(&root, SWEEP_MS, NULL, &none);
}

static void on_swept(struct worker *w)
{
    OF(struct session, sweeper, w)->all->sweepers--;
}

static void on_sweep_time(struct loop_timer *t)
{
    struct session *s = OF(struct session, sweep, t);

    if (s->all->sweepers >= LIMIT_SWEEPERS) {
        (void)loop_set_timer(s->all->loop, t, SWEEP_MS * 1000ull);
        return;
    }
    s->sweeper.on_end = on_swept;
    if (worker_start(&s->sweeper, s->all->loop, 1, s->workspace, work_sweep, NULL) >= 0)
        s->all->sweepers++;
}

static void drop_oldest(struct sessions *all)
{
    struct session *oldest = NULL;

    for (struct session *s = all->list; s; s = s->next)
        if (!is_busy(s))
            oldest = s;
    if (oldest)
        session_free(oldest);
}

static struct session *session_new(struct sessions *all, const char *agent, const char *key)
{
    struct session *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    if (all->n >= LIMIT_SESSIONS)
        drop_oldest(all);
    s->all = all;
    s->workspace = -1;
    s->sweeper = (struct worker)WORKER_NONE;
    for (unsigned i = 0; i < SESSION_BOXES; i++)
        s->boxes[i] = (struct session_box){.session = s, .which = i, .maker = WORKER_NONE};
    (void)snprintf(s->key, sizeof(s->key), "%s", key);
    (void)snprintf(s->agent, sizeof(s->agent), "%s", agent);
    return s;
}

int session_get(struct sessions *all, const struct pass *p, struct session **ret, struct error *err)
{
    struct session *s = session_find(all, p->session);
    autoptr(session) fresh = NULL;
    int r = 0;

    if (!s) {
        s = fresh = session_new(all, p->agent, p->session);
        if (!s)
            return error_sys(err, -ENOMEM, "open a session");
    }
    if (strcmp(s->agent, p->agent) != 0)
        return error_set(err, ERR_DENIED, "session '%s' is one of agent '%s'", s->key, s->agent);
    if (s->settings != p->settings) {
        r = open_session(s, p, err);
        for (unsigned i = 0; i < SESSION_BOXES && r >= 0; i++) { /* they may have to be made anew */
            job_box_drop(s->boxes[i].box);
            s->boxes[i].box = NULL;
        }
    }
    if (r < 0)
        return r;
    if (fresh) { /* once those that a killed gateway has left are old enough */
        s->sweep.on_time = on_sweep_time;
        (void)loop_set_timer(all->loop, &s->sweep, (SWEEP_MS + 500) * 1000ull);
    }
    to_front(s);
    *ret = s;
    fresh = NULL;
    return 0;
}

void session_root(const struct session *s, struct files_root *ret)
{
    files_root_init(ret, s->workspace, s->mount);
}

/* ---- the end ---- */

static void work_end(const void *arg, int out, int kept)
{
    const struct session *s = arg;

    (void)kept;
    worker_become(out, (const char *const[]){"clawden", "sandbox", "rm", "--force", "--session",
                                             s->key, NULL});
}

static void on_ended(struct worker *w)
{
    struct session *s = OF(struct session, sweeper, w);

    s->is_ending = false;
    if (!is_busy(s))
        session_free(s);
}

int sessions_end(struct sessions *all, const char *agent, const char *key)
{
    struct session *s = session_find(all, key);

    if (!s) { /* nobody has worked in it since we started: it has boxes all the same */
        s = session_new(all, agent, key);
        if (!s)
            return -ENOMEM;
        to_front(s);
    }
    stop_sweeper(s);
    for (unsigned i = 0; i < SESSION_BOXES; i++)
        session_lost_box(s, i);
    s->is_ending = true;
    s->sweeper.on_end = on_ended;
    return worker_start(&s->sweeper, s->all->loop, LIMIT_SAID, -1, work_end, s);
}
