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
#include "config/config.h"
#include "guard/guard.h"
#include "sandbox/scope.h"

#define SWEEP_MS            60000 /* younger ones may be those of a call that runs */
#define OF(type, member, p) ((type *)((char *)(p)-offsetof(type, member)))

struct sessions {
    struct loop *loop;
    struct session *list; /* most recently used first */
    size_t n;
    struct session_box *queue; /* boxes to be made, first come first */
    size_t makers;
    uint64_t made;
};

/* What the process that makes a box says, in one write. */
struct made {
    int r;
    struct error err;
    char id[65], note[512];
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

/* In a process of its own: nothing of the gateway's is open here. */
static void make_box(const struct session_box *b, struct made *ret)
{
    const struct session *s = b->session;
    const struct scope_request q = {.config = s->settings->from->config,
                                    .settings = &s->settings->settings,
                                    .policy = &s->settings->policy,
                                    .agent = s->agent,
                                    .session = s->key,
                                    .network = b->network};
    autoptr(scope_plan) plan = NULL;
    autoptr(box_record) box = NULL;
    autofree char *note = NULL;

    /* Whoever makes a box asks the process's own setting; a file can only make it stricter. */
    if (settings_bool(&s->settings->settings, SETTING_MULTI_TENANT))
        (void)setenv(config_setting(CONFIG_MULTI_TENANT)->variable, "1", 1);
    ret->r = scope_plan_make(&q, &plan, &ret->err);
    if (ret->r >= 0)
        ret->r = scope_box(plan, &box, &note, &ret->err);
    if (ret->r >= 0)
        (void)snprintf(ret->id, sizeof(ret->id), "%s", box->id);
    if (note)
        (void)snprintf(ret->note, sizeof(ret->note), "%s", note);
}

static void work_make(const void *arg, int out, int kept)
{
    struct made m = {0};

    (void)kept;
    make_box(arg, &m);
    (void)fd_write_full(out, &m, sizeof(m));
}

static void on_made(struct worker *w)
{
    struct session_box *b = OF(struct session_box, maker, w);
    struct sessions *all = b->session->all;
    autoptr(box_record) record = NULL;
    struct made m = {.r = -1};

    if (w->said.len == sizeof(m))
        memcpy(&m, w->said.data, sizeof(m));
    else
        m.r = error_set(&m.err, ERR_SYS, "the process that makes the box ended before it was made");
    all->makers--;
    if (m.r >= 0)
        m.r = sandbox_find(m.id, &record, &m.err);
    if (m.note[0])
        log_warn("%s", m.note);
    if (m.r >= 0) {
        job_box_drop(b->box);
        b->box = job_box_new(TAKE_PTR(record));
        all->made++;
    }
    tell(b, m.r < 0 ? &m.err : NULL);
    make_next(all);
}

static int start_maker(struct session_box *b, struct error *err)
{
    int r;

    b->maker.on_end = on_made;
    r = worker_start(&b->maker, b->session->all->loop, sizeof(struct made), -1, work_make, b);
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

void session_box(struct session *s, bool network, struct box_wait *w)
{
    struct session_box *b = &s->boxes[network], **last = &s->all->queue;

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
    while (*last)
        last = &(*last)->queue;
    b->queue = NULL;
    b->is_queued = true;
    *last = b;
    make_next(s->all);
}

void session_lost_box(struct session *s, bool network)
{
    job_box_drop(s->boxes[network].box);
    s->boxes[network].box = NULL;
}

/* ---- sessions ---- */

static bool is_busy(const struct session *s)
{
    if (s->users)
        return true;
    for (int i = 0; i < 2; i++)
        if (s->boxes[i].waiting || s->boxes[i].maker.pid || s->boxes[i].is_queued)
            return true;
    return false;
}

static void session_free(struct session *s)
{
    if (!s)
        return;
    for (int i = 0; i < 2; i++) {
        worker_leave(&s->boxes[i].maker); /* it goes on; the box is found the next time */
        job_box_drop(s->boxes[i].box);
    }
    if (s->back) {
        *s->back = s->next;
        if (s->next)
            s->next->back = s->back;
        s->all->n--;
    }
    worker_stop(&s->sweeper);
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

int sessions_new(struct loop *l, struct sessions **ret, struct error *err)
{
    struct sessions *all = calloc(1, sizeof(*all));

    if (!all)
        return error_sys(err, -ENOMEM, "make the table of sessions");
    all->loop = l;
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
    (void)usleep((SWEEP_MS + 500) * 1000u);
    files_root_init(&root, kept, NULL);
    (void)files_sweep(&root, SWEEP_MS, NULL, &none);
}

static void on_swept(struct worker *w)
{
    (void)w;
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

int session_get(struct sessions *all, const struct pass *p, struct session **ret, struct error *err)
{
    struct session *s = session_find(all, p->session);
    autoptr(session) fresh = NULL;
    int r = 0;

    if (!s) {
        if (all->n >= LIMIT_SESSIONS)
            drop_oldest(all);
        s = fresh = calloc(1, sizeof(*fresh));
        if (!s)
            return error_sys(err, -ENOMEM, "open a session");
        s->all = all;
        s->workspace = -1;
        s->sweeper.io.fd = -1;
        for (int i = 0; i < 2; i++)
            s->boxes[i] = (struct session_box){.session = s, .network = i, .maker.io.fd = -1};
        (void)snprintf(s->key, sizeof(s->key), "%s", p->session);
        (void)snprintf(s->agent, sizeof(s->agent), "%s", p->agent);
    }
    if (s->settings != p->settings) {
        r = open_session(s, p, err);
        for (int i = 0; i < 2 && r >= 0; i++) /* they may have to be made anew */
            session_lost_box(s, i);
    }
    if (r < 0)
        return r;
    if (fresh) {
        s->sweeper.on_end = on_swept;
        (void)worker_start(&s->sweeper, all->loop, 1, s->workspace, work_sweep, NULL);
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

static void remove_boxes(const struct session *s)
{
    for (int i = 0; i < 2; i++) {
        const struct scope_request q = {.config = s->settings->from->config,
                                        .settings = &s->settings->settings,
                                        .policy = &s->settings->policy,
                                        .agent = s->agent,
                                        .session = s->key,
                                        .network = i};
        autoptr(scope_plan) plan = NULL;
        autoptr(box_record) box = NULL;
        struct error err;

        if (scope_plan_make(&q, &plan, &err) >= 0 && sandbox_find(plan->name, &box, &err) >= 0 &&
            strcmp(box->name, plan->name) == 0 && sandbox_remove(box, true, &err) < 0)
            log_warn("%s", err.msg);
    }
}

static void work_end(const void *arg, int out, int kept)
{
    (void)out;
    (void)kept;
    remove_boxes(arg);
}

static void on_ended(struct worker *w)
{
    struct session *s = OF(struct session, sweeper, w);

    if (!is_busy(s))
        session_free(s);
}

int session_end(struct session *s)
{
    worker_stop(&s->sweeper);
    for (int i = 0; i < 2; i++)
        session_lost_box(s, i);
    s->sweeper.on_end = on_ended;
    return worker_start(&s->sweeper, s->all->loop, 1, -1, work_end, s);
}
