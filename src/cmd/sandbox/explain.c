/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/sandbox/sandbox.h"
#include "engine/native/belts.h"
#include "engine/native/cgroup.h"
#include "engine/native/host.h"
#include "engine/native/native.h"

/* What is known before anything is made, and what a box made for this purpose shows. */
struct view {
    struct host_facts facts;
    struct launch_plan plan;
    enum cgroup_kind cgroups;
    enum grade grades[LIMIT_KINDS];
    uint32_t held, seen;  /* belts of the live box */
    struct error refused; /* why no box can be made like this; code ERR_NONE if it can */
};

static const enum limit_kind limits[] = {LIMIT_MEMORY,    LIMIT_CPU,      LIMIT_PIDS,
                                         LIMIT_WALL,      LIMIT_CPU_TIME, LIMIT_OUTPUT,
                                         LIMIT_FILE_SIZE, LIMIT_TMP,      LIMIT_DISK};
enum { N_LIMITS = sizeof(limits) / sizeof(*limits) };

static uint64_t limit_value(const struct box_limits *l, enum limit_kind kind)
{
    switch (kind) {
    case LIMIT_MEMORY:
        return l->memory_bytes;
    case LIMIT_CPU:
        return l->cpu_milli;
    case LIMIT_PIDS:
        return l->pids;
    case LIMIT_WALL:
        return l->wall_usec;
    case LIMIT_CPU_TIME:
        return l->cpu_usec;
    case LIMIT_OUTPUT:
        return l->output_bytes;
    case LIMIT_FILE_SIZE:
        return l->file_bytes;
    case LIMIT_TMP:
        return l->tmp_bytes;
    case LIMIT_DISK:
        return l->disk_bytes;
    case LIMIT_NONE:
    case LIMIT_KINDS:
        break;
    }
    return 0;
}

/*
 * Landlock is put on a command just before it is executed. A folder cannot be executed: if that is
 * what fails, everything before it went well.
 */
static bool takes_commands(struct box *box, struct error *err)
{
    static char folder[] = "/";
    char *const argv[] = {folder, NULL}, *const env[] = {NULL};
    const struct box_exec what = {.argv = argv, .env = env, .stdio = {-1, -1, -1}};
    struct box_event e;

    return box->ops->exec(box, &what, err) >= 0 && box->ops->next_event(box, &e, err) >= 0 &&
           e.kind == BOX_FAILED;
}

/* A real box, asked of the kernel, and gone again: nothing here is taken from the plan. */
static void look_at_a_box(const struct options *o, struct view *v)
{
    struct box_spec spec = o->spec;
    struct box *box;

    spec.use_spawner = false;
    if (engine_native.start(&spec, &box, &v->refused) < 0)
        return;
    if (belts_read(box->init_pid, &v->held, &v->seen) < 0)
        v->seen = 0;
    /* What /proc cannot show was put on by system calls that succeeded, or there would be no init.
     */
    v->held |= box->belts & ~v->seen;
    memcpy(v->grades, box->grades, sizeof(v->grades));
    if (!takes_commands(box, &v->refused))
        v->held &= ~(1u << BELT_LANDLOCK);
    engine_native.destroy(box);
}

static int make_view(struct options *o, struct view *v, struct error *err)
{
    struct cgroup_base base;
    int r = prepare(o, err);

    if (r >= 0)
        r = host_look(&o->spec, &v->facts, err);
    if (r < 0)
        return r;
    cgroup_find(false, &base);
    v->cgroups = base.kind;
    (void)native_grade(&o->spec, &base, &v->facts, v->grades, &v->refused);
    memcpy(v->facts.grades, v->grades, sizeof(v->grades));
    cgroup_base_done(&base);
    v->facts.ws_tree_given = v->facts.ids == IDS_RANGE;
    r = plan_make(&o->spec, &v->facts, &v->plan, err);
    if (r >= 0 && v->refused.code == ERR_NONE)
        look_at_a_box(o, v);
    return r;
}

static const char *cgroup_name(enum cgroup_kind k)
{
    return k == CGROUP_V2 ? "v2" : k == CGROUP_V1 ? "v1" : "none for this user";
}

/* ---- text ---- */

static void print_limits(const struct options *o, const struct view *v)
{
    puts("\nLimits (value, and who keeps it)");
    for (int i = 0; i < N_LIMITS; i++) {
        uint64_t n = limit_value(&o->spec.limits, limits[i]);
        char text[32];

        if (!n)
            (void)snprintf(text, sizeof(text), "-");
        else if (limits[i] == LIMIT_WALL || limits[i] == LIMIT_CPU_TIME)
            (void)units_format_usec(n, text, sizeof(text));
        else if (limits[i] == LIMIT_CPU)
            (void)snprintf(text, sizeof(text), "%llu%%", (unsigned long long)n / 10);
        else if (limits[i] == LIMIT_PIDS)
            (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
        else
            (void)units_format_size(n, text, sizeof(text));
        printf("  %-10s %-8s %s\n", limit_name(limits[i]), text, grade_name(v->grades[limits[i]]));
    }
}

static void print_belts(const struct view *v)
{
    puts("\nBelts (read from a box made just now)");
    for (int i = 0; i < BELT_COUNT; i++)
        printf("  %-3s %-26s %s\n", v->held & 1u << i ? "on" : "OFF", belt_name((enum belt)i),
               v->seen & 1u << i ? "seen in /proc" : "set by a system call that succeeded");
}

static void print_network(const struct wish *w)
{
    if (!w) {
        puts("Network    none but its own loopback");
        return;
    }
    puts("Network    by clawden-egress alone:");
    for (size_t i = 0; i < w->n_allow; i++)
        printf("           %s\n", w->allow[i]);
    for (size_t i = 0; i < w->n_deny; i++)
        printf("           not %s\n", w->deny[i]);
    for (size_t i = 0; i < w->n_host_ports; i++)
        printf("           host.clawden.internal:%u\n", w->host_ports[i]);
}

static void print_text(const struct options *o, const struct view *v)
{
    enum stage last = STAGE_DROP + 1;

    printf("Workspace  %s (%s)%s\n", o->workspace_path,
           o->spec.workspace_ro ? "read-only" : "read-write",
           o->spec.root == ROOT_HOST_RO && !v->facts.has_workspace_dir ? ""
                                                                       : ", also as /workspace");
    printf("Ids        %s\n", v->facts.ids == IDS_RANGE
                                  ? "65536 ids of the box's own; the workspace's owner is its user"
                                  : "one: the box's user 1000 is you");
    printf("Cgroup     %s\nLandlock   ABI %d\n", cgroup_name(v->cgroups), v->facts.landlock_abi);
    print_network(o->egress);
    print_limits(o, v);
    if (v->refused.code != ERR_NONE)
        printf("\nNo box can be made like this: %s\n", v->refused.msg);
    else
        print_belts(v);
    puts("\nPlan");
    for (size_t i = 0; i < v->plan.n_steps; i++) {
        const struct step *s = &v->plan.steps[i];
        char text[512];

        if (s->only == FOR_SLOT)
            continue;
        if (s->stage != last)
            printf("  %s\n", stage_name(s->stage));
        last = s->stage;
        printf("    %s%s\n", step_describe(s, text, sizeof(text)),
               s->op == OP_TREE && s->read_only ? " read-only" : "");
    }
}

/* ---- JSON ---- */

static void put_limits(struct buf *b, const struct options *o, const struct view *v)
{
    buf_json_key(b, "limits");
    buf_puts(b, "{");
    for (int i = 0; i < N_LIMITS; i++) {
        buf_json_key(b, limit_name(limits[i]));
        buf_puts(b, "{");
        buf_json_num(b, "value", (long long)limit_value(&o->spec.limits, limits[i]));
        buf_json_str(b, "grade", grade_name(v->grades[limits[i]]));
        buf_puts(b, "}");
    }
    buf_puts(b, "}");
}

static void put_plan(struct buf *b, const struct view *v)
{
    bool first = true;

    buf_json_key(b, "plan");
    buf_puts(b, "[");
    for (size_t i = 0; i < v->plan.n_steps; i++) {
        char text[512];

        if (v->plan.steps[i].only == FOR_SLOT)
            continue;
        buf_puts(b, first ? "{" : ",{");
        first = false;
        buf_json_str(b, "stage", stage_name(v->plan.steps[i].stage));
        buf_json_str(b, "step", step_describe(&v->plan.steps[i], text, sizeof(text)));
        buf_puts(b, "}");
    }
    buf_puts(b, "]");
}

static void print_json(const struct options *o, const struct view *v)
{
    autobuf b;

    buf_init(&b, 4 * LIMIT_JSON_RESULT + LIMIT_WISH_TEXT);
    buf_puts(&b, "{");
    buf_json_key(&b, "network");
    if (o->egress)
        wish_write(o->egress, &b);
    else
        buf_puts(&b, "null");
    buf_json_str(&b, "workspace", o->workspace_path);
    buf_json_bool(&b, "workspace_read_only", o->spec.workspace_ro);
    buf_json_str(&b, "ids", v->facts.ids == IDS_RANGE ? "range" : "one");
    buf_json_str(&b, "cgroup", cgroup_name(v->cgroups));
    buf_json_num(&b, "landlock_abi", v->facts.landlock_abi);
    if (v->refused.code != ERR_NONE)
        buf_json_str(&b, "refused", v->refused.msg);
    put_limits(&b, o, v);
    buf_json_key(&b, "belts");
    buf_puts(&b, "{");
    for (int i = 0; i < BELT_COUNT; i++)
        buf_json_bool(&b, belt_name((enum belt)i), v->held & 1u << i);
    buf_puts(&b, "}");
    put_plan(&b, v);
    buf_puts(&b, "}\n");
    if (!b.failed)
        (void)fd_write_full(STDOUT_FILENO, b.data, b.len);
}

int cmd_explain(struct options *o)
{
    static struct view v;
    struct error err;

    if (make_view(o, &v, &err) < 0) {
        log_error("%s", err.msg);
        return EXIT_OURS;
    }
    if (o->json)
        print_json(o, &v);
    else
        print_text(o, &v);
    return v.refused.code == ERR_NONE ? 0 : EXIT_OURS;
}
