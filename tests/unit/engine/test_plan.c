/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans, compared without privileges: every root kind, with both ways of having ids, writable and
 * read-only, with and without Landlock and cgroups. The order of steps is the security of a box;
 * the host's plan also stands word by word in tests/data/plan-host.txt (the first argument is that
 * folder; UPDATE=1 writes the file anew, and then a person reads the difference).
 */
#include "engine/native/plan.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "engine/native/seccomp.h"
#include "tests/test.h"

static const char *data_dir = "tests/data";
static struct launch_plan plan, other;
static struct host_facts facts;

/* ---- what is asked, and of which host ---- */

struct shape {
    enum root_kind root;
    enum id_mode ids;
    bool ro;
    int landlock;
    int joins;
};

static void add_entry(enum root_entry_kind kind, const char *name, const char *source)
{
    struct root_entry *e = &facts.entries[facts.n_entries];

    e->kind = kind;
    (void)snprintf(e->name, sizeof(e->name), "%s", name);
    (void)snprintf(e->source, sizeof(e->source), "%s", source);
    e->dev = 2049;
    e->ino = 100 + facts.n_entries++;
}

static void make_facts(const struct shape *s)
{
    facts = (struct host_facts){.ids = s->ids,
                                .caller_uid = s->ids == IDS_ONE ? 1234 : 0,
                                .caller_gid = s->ids == IDS_ONE ? 5678 : 0,
                                .range_base = 1879048192u,
                                .landlock_abi = s->landlock,
                                .processors = 4,
                                .ws_dev = 2049,
                                .ws_ino = 77,
                                .ws_tree_given = s->ids == IDS_RANGE};
    for (int i = 0; i < 4; i++)
        facts.cgroup_join[i] = i < s->joins ? 40 + i : -1;
    if (s->root == ROOT_HOST) {
        add_entry(ENTRY_DIR, "usr", "/usr");
        add_entry(ENTRY_LINK, "bin", "usr/bin");
        add_entry(ENTRY_FILE, "etc/ld.so.cache", "/etc/ld.so.cache");
        add_entry(ENTRY_DIR, "etc/ssl/certs", "/etc/ssl/certs");
    } else if (s->root == ROOT_DIR) {
        add_entry(ENTRY_DIR, "usr", "/image/usr");
        add_entry(ENTRY_DIR, "etc", "/image/etc");
        add_entry(ENTRY_DIR, "var", "/image/var");
        add_entry(ENTRY_LINK, "lib", "usr/lib");
        add_entry(ENTRY_FILE, "entry.sh", "/image/entry.sh");
    } else {
        facts.hides[0] = "home";
        facts.hide_is_dir[0] = true;
        facts.hides[1] = "etc/shadow";
        facts.n_hides = 2;
    }
    facts.masks[0] = "proc/kcore";
    facts.masks[1] = "proc/acpi";
    facts.mask_is_dir[1] = true;
    facts.n_masks = 2;
    facts.grades[LIMIT_MEMORY] = facts.grades[LIMIT_CPU] = facts.grades[LIMIT_PIDS] =
        s->joins ? GRADE_KERNEL : GRADE_SUPERVISED;
}

static struct box_spec make_spec(const struct shape *s)
{
    return (struct box_spec){
        .root = s->root,
        .root_fd = -1,
        .workspace_fd = -1,
        .workspace_path = "/home/me/project",
        .workspace_ro = s->ro,
        .uid = 1000,
        .gid = 1000,
        .limits = {.memory_bytes = 1 << 30, .pids = 256, .tmp_bytes = 500 << 20}};
}

static void make(const struct shape *s)
{
    struct box_spec spec = make_spec(s);
    struct error err;

    make_facts(s);
    CHECK_OK(plan_make(&spec, &facts, &plan, &err), err);
}

/* Calls `check` for every shape, whose name is in `shape_name`. */
static char shape_name[96];

static void for_every_shape(void (*check)(const struct shape *s))
{
    static const char *const roots[] = {"host", "host-ro", "dir"};
    static const int abis[] = {0, 1, 2, 7};

    for (unsigned i = 0; i < 3 * 2 * 2 * 4 * 2; i++) {
        struct shape s = {.root = (enum root_kind)(i % 3),
                          .ids = (enum id_mode)(i / 3 % 2),
                          .ro = i / 6 % 2,
                          .landlock = abis[i / 12 % 4],
                          .joins = i / 48 % 2 ? 3 : 0};

        (void)snprintf(shape_name, sizeof(shape_name), "root %s, %s, %s, landlock %d, %d cgroups",
                       roots[s.root], s.ids == IDS_ONE ? "one id" : "range", s.ro ? "ro" : "rw",
                       s.landlock, s.joins);
        make(&s);
        check(&s);
    }
}

/* ---- looking things up ---- */

enum { NONE = -1 };

static int first_of(enum step_op op)
{
    for (size_t i = 0; i < plan.n_steps; i++)
        if (plan.steps[i].op == op)
            return (int)i;
    return NONE;
}

static int last_of(enum step_op op)
{
    for (size_t i = plan.n_steps; i-- > 0;)
        if (plan.steps[i].op == op)
            return (int)i;
    return NONE;
}

static int count_of(enum step_op op)
{
    int n = 0;

    for (size_t i = 0; i < plan.n_steps; i++)
        n += plan.steps[i].op == op;
    return n;
}

static int find_path(enum step_op op, const char *a)
{
    for (size_t i = 0; i < plan.n_steps; i++)
        if (plan.steps[i].op == op && plan.steps[i].a && strcmp(plan.steps[i].a, a) == 0)
            return (int)i;
    return NONE;
}

static int attach_of_workspace(void)
{
    for (size_t i = 0; i < plan.n_steps; i++)
        if (plan.steps[i].op == OP_ATTACH && plan.steps[i].reg == TREE_WORKSPACE)
            return (int)i;
    return NONE;
}

/* Every step of the first kind stands before every step of the second; both are there. */
static void check_before(enum step_op a, enum step_op b)
{
    CHECK(first_of(a) != NONE && first_of(b) != NONE, "%s: step kinds %d, %d: one is missing",
          shape_name, a, b);
    CHECK(last_of(a) < first_of(b), "%s: step kind %d at %d is not before %d at %d", shape_name, a,
          last_of(a), b, first_of(b));
}

/* ---- order ---- */

static void check_trees(const struct shape *s)
{
    enum step_op root = s->root == ROOT_HOST_RO ? OP_ROOT_TREE : OP_ROOT_TMPFS;

    check_before(OP_TREE, root);
    check_before(OP_DEVICE, root);
    CHECK(count_of(root) == 1, "%s: %d roots", shape_name, count_of(root));
}

static void check_pivot(const struct shape *s)
{
    static const enum step_op host_needed[] = {OP_TREE, OP_DEVICE, OP_PROC, OP_DEVPTS};

    (void)s;
    FOR_EACH(op, host_needed)
    check_before(*op, OP_PIVOT);
    CHECK(count_of(OP_PIVOT) == 1, "%s: %d pivots", shape_name, count_of(OP_PIVOT));
    CHECK(plan.steps[first_of(OP_PIVOT)].only == FOR_BOTH, "%s: the pivot is optional", shape_name);
    check_before(OP_PROC, OP_MASK);
    check_before(OP_PIVOT, OP_MASK);
    CHECK(find_path(OP_READ_ONLY, "proc/sys") > first_of(OP_NO_NESTED),
          "%s: proc/sys is closed too early", shape_name);
}

static void check_way_down(const struct shape *s)
{
    static const enum step_op in_order[] = {OP_BOUNDING_SET, OP_KEYRING,      OP_STDIO,
                                            OP_CAPS,         OP_NO_NEW_PRIVS, OP_DIE_WITH_PARENT,
                                            OP_SECCOMP,      OP_EXEC_INIT};

    for (size_t i = 1; i < COUNT(in_order); i++)
        check_before(in_order[i - 1], in_order[i]);
    CHECK(plan.steps[plan.n_steps - 1].op == OP_EXEC_INIT, "%s: init is not last", shape_name);
    CHECK(!!(plan.belts & 1u << BELT_LANDLOCK) == (s->landlock >= 2), "%s: Landlock", shape_name);
    check_before(OP_RLIMIT, OP_CAPS); /* and no limit after the right to set it is gone */
    assert_ptr_equal(plan.steps[first_of(OP_SECCOMP)].ptr, seccomp_program(SECCOMP_DEFAULT));
    for (size_t i = 0; i < plan.n_steps; i++)
        CHECK(plan.steps[i].stage != STAGE_DROP || plan.steps[i].only == FOR_BOTH,
              "%s: step %zu of the way down is optional", shape_name, i);
}

static void check_seal(const struct shape *s)
{
    int ws = attach_of_workspace(), seal = first_of(OP_SEAL);

    (void)s;
    CHECK(ws != NONE && seal > ws, "%s: sealed at %d, workspace at %d", shape_name, seal, ws);
    CHECK(last_of(OP_DIRS) < seal && last_of(OP_DIR) < seal && last_of(OP_ATTACH) < seal,
          "%s: made after the seal", shape_name);
    CHECK(plan.steps[seal].only == FOR_COLD && plan.steps[first_of(OP_WRITER)].only == FOR_SLOT,
          "%s: a box needs one of seal and writer", shape_name);
    check_before(OP_PIVOT, OP_SEAL);
}

static void check_stages(const struct shape *s)
{
    (void)s;
    for (size_t i = 1; i < plan.n_steps; i++)
        CHECK(plan.steps[i - 1].stage <= plan.steps[i].stage, "%s: step %zu goes back to stage %s",
              shape_name, i, stage_name(plan.steps[i].stage));
}

static void check_cgroups(const struct shape *s)
{
    CHECK(count_of(OP_JOIN_CGROUP) == s->joins, "%s: %d joins", shape_name,
          count_of(OP_JOIN_CGROUP));
    if (s->joins)
        check_before(OP_JOIN_CGROUP, OP_UNSHARE); /* the namespace's root is where it stands */
    CHECK(plan.steps[first_of(OP_UNSHARE)].u == CLONE_NEWCGROUP, "%s: unshare", shape_name);
}

#define TEST_EVERY(name, check)    \
    static void name(void **state) \
    {                              \
        (void)state;               \
        for_every_shape(check);    \
    }
TEST_EVERY(test_trees, check_trees)
TEST_EVERY(test_pivot, check_pivot)
TEST_EVERY(test_way_down, check_way_down)
TEST_EVERY(test_seal, check_seal)
TEST_EVERY(test_stages, check_stages)
TEST_EVERY(test_cgroups, check_cgroups)

/* ---- ids ---- */

/* Lines "inside outside count": no line may reach the host's 0. */
static void check_map(const char *text)
{
    unsigned inside, outside, count;
    int used;

    for (const char *p = text; *p; p += used) {
        CHECK(sscanf(p, "%u %u %u\n%n", &inside, &outside, &count, &used) == 3, "%s: map '%s'",
              shape_name, text);
        CHECK(outside > 0 && count > 0 && outside + count > outside, "%s: maps host id 0: '%s'",
              shape_name, text);
    }
}

static void check_ids(const struct shape *s)
{
    const struct step *last = &plan.steps[last_of(OP_IDS) < 0 ? 0 : last_of(OP_IDS)];

    if (s->ids == IDS_ONE) {
        const struct step *maps = &plan.steps[first_of(OP_WRITE_MAPS)];

        CHECK(count_of(OP_WRITE_MAPS) == 1 && !count_of(OP_WAIT_MAPS), "%s: who writes the maps",
              shape_name);
        check_map(maps->a);
        check_map(maps->b);
        assert_string_equal(maps->a, "1000 1234 1\n");
        assert_string_equal(maps->b, "1000 5678 1\n");
        CHECK(!count_of(OP_IDS), "%s: one id cannot be changed", shape_name);
        return;
    }
    CHECK(count_of(OP_WAIT_MAPS) == 1 && !count_of(OP_WRITE_MAPS), "%s: who writes the maps",
          shape_name);
    CHECK(first_of(OP_WAIT_MAPS) < first_of(OP_IDS), "%s: ids before the maps", shape_name);
    CHECK(last->u == 1000 && last->v == 1000 && last_of(OP_IDS) < first_of(OP_CAPS),
          "%s: ends as %llu:%llu", shape_name, (unsigned long long)last->u,
          (unsigned long long)last->v);
}
TEST_EVERY(test_ids, check_ids)

/* ---- trees ---- */

static void check_read_only(const struct shape *s)
{
    for (size_t i = 0; i < plan.n_steps; i++) {
        const struct step *t = &plan.steps[i];

        if (t->op != OP_TREE)
            continue;
        CHECK(t->read_only == (t->reg == TREE_WORKSPACE ? s->ro : true), "%s: '%s' is writable",
              shape_name, t->a);
        CHECK(strcmp(t->a, "/") == 0 || (t->u == 2049 && t->v), "%s: '%s' is not pinned",
              shape_name, t->a);
    }
}
TEST_EVERY(test_read_only, check_read_only)

/* Every tree is opened once and attached once, in that order; devices are what they are called. */
static void check_registers(const struct shape *s)
{
    int opened[TREE_MAX] = {0}, attached[TREE_MAX] = {0};

    opened[TREE_WORKSPACE] = s->ids == IDS_RANGE; /* by the parent */
    for (size_t i = 0; i < plan.n_steps; i++) {
        const struct step *t = &plan.steps[i];

        if (t->reg < 0)
            continue;
        CHECK(t->reg < TREE_MAX, "%s: step %zu uses tree %d", shape_name, i, t->reg);
        if (t->op == OP_TREE || t->op == OP_DEVICE)
            opened[t->reg]++;
        else
            CHECK(opened[t->reg] == 1 && !attached[t->reg]++, "%s: step %zu: tree %d", shape_name,
                  i, t->reg);
    }
    for (int i = 0; i < TREE_MAX; i++)
        CHECK(opened[i] == attached[i] && opened[i] <= 1, "%s: tree %d: opened %d, attached %d",
              shape_name, i, opened[i], attached[i]);
}
TEST_EVERY(test_registers, check_registers)

static void check_devices(const struct shape *s)
{
    static const struct {
        const char *path;
        unsigned major, minor;
    } rows[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
                {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};

    (void)s;
    CHECK(count_of(OP_DEVICE) == (int)COUNT(rows), "%s: %d devices", shape_name,
          count_of(OP_DEVICE));
    FOR_EACH(row, rows)
    {
        char from[32], to[32];
        int open, put;

        (void)snprintf(from, sizeof(from), "/dev/%s", row->path);
        (void)snprintf(to, sizeof(to), "dev/%s", row->path);
        open = find_path(OP_DEVICE, from);
        put = find_path(OP_ATTACH, to);
        CHECK(open != NONE && put != NONE, "%s: %s", shape_name, from);
        CHECK(plan.steps[open].u == makedev(row->major, row->minor), "%s: %s is another device",
              shape_name, from);
        CHECK(plan.steps[open].reg == plan.steps[put].reg, "%s: %s goes elsewhere", shape_name,
              from);
    }
}
TEST_EVERY(test_devices, check_devices)

/* Paths inside never begin with a slash or go up: they are looked up beneath the new root. */
static void check_paths(const struct shape *s)
{
    (void)s;
    for (size_t i = 0; i < plan.n_steps; i++) {
        const struct step *t = &plan.steps[i];
        bool outside = t->op == OP_TREE || t->op == OP_DEVICE;

        if (!t->a || t->op == OP_WRITE_MAPS || t->op == OP_HOSTNAME)
            continue;
        CHECK(t->a[0] && (t->a[0] == '/') == outside && !strstr(t->a, ".."), "%s: step %zu: '%s'",
              shape_name, i, t->a);
    }
}
TEST_EVERY(test_paths, check_paths)

/* ---- workspace ---- */

static void check_workspace(const struct shape *s)
{
    int at = attach_of_workspace(), scratch = find_path(OP_SCRATCH_DIR, "run");

    (void)s;
    assert_string_equal(plan.steps[at].a, "home/me/project");
    CHECK(scratch != NONE && scratch < at, "%s: scratch space would cover the workspace",
          shape_name);
    CHECK(last_of(OP_SCRATCH_DIR) == scratch, "%s: /run is not the last scratch folder",
          shape_name);
}
TEST_EVERY(test_workspace, check_workspace)

static void test_workspace_alias(void **state)
{
    static const struct shape s = {.root = ROOT_HOST};
    struct box_spec spec = make_spec(&s);
    struct error err;
    int copy;

    (void)state;
    make(&s);
    copy = find_path(OP_COPY, "workspace");
    assert_true(copy > attach_of_workspace());
    assert_string_equal(plan.steps[copy].b, "home/me/project");
    spec.workspace_path = "/workspace";
    CHECK_OK(plan_make(&spec, &facts, &plan, &err), err);
    assert_int_equal(find_path(OP_COPY, "workspace"), NONE);
    assert_true(find_path(OP_ATTACH, "workspace") > 0);
}

static void test_workspace_in_workspace(void **state)
{
    static const struct shape s = {.root = ROOT_HOST};
    struct box_spec spec = make_spec(&s);
    struct error err;
    int copy;

    (void)state;
    spec.workspace_path = "/workspace/x";
    make_facts(&s);
    CHECK_OK(plan_make(&spec, &facts, &plan, &err), err);
    copy = find_path(OP_COPY, "workspace");
    CHECK(copy == NONE || copy < attach_of_workspace(), "the copy at %d covers the workspace at %d",
          copy, attach_of_workspace());
}

/* A workspace in /home needs its folders again once /home is covered. */
static void test_hidden_workspace(void **state)
{
    static const struct shape s = {.root = ROOT_HOST_RO};
    struct box_spec spec = make_spec(&s);
    struct error err;

    (void)state;
    make(&s);
    assert_true(find_path(OP_DIRS, "home/me/project") > find_path(OP_SCRATCH_DIR, "home"));
    assert_true(find_path(OP_READ_ONLY, "home") > attach_of_workspace());
    facts.has_workspace_dir = true;
    CHECK_OK(plan_make(&spec, &facts, &plan, &err), err);
    assert_true(find_path(OP_DIRS, "home/me/project") > find_path(OP_SCRATCH_DIR, "home"));
}

/* ---- limits ---- */

static int find_rlimit(uint64_t resource)
{
    for (size_t i = 0; i < plan.n_steps; i++)
        if (plan.steps[i].op == OP_RLIMIT && plan.steps[i].u == resource)
            return (int)i;
    return NONE;
}

static void check_rlimits(const struct shape *s)
{
    CHECK(find_rlimit(RLIMIT_CORE) != NONE && plan.steps[find_rlimit(RLIMIT_CORE)].v == 0,
          "%s: core", shape_name);
    CHECK((find_rlimit(RLIMIT_NPROC) != NONE) == (s->ids == IDS_ONE), "%s: processes", shape_name);
    CHECK((find_rlimit(RLIMIT_DATA) != NONE) == !s->joins, "%s: data", shape_name);
    CHECK(find_rlimit(RLIMIT_FSIZE) == NONE && find_rlimit(RLIMIT_CPU) == NONE, "%s: not asked for",
          shape_name);
    CHECK(plan.steps[find_path(OP_SCRATCH, "run")].u == 500 << 20, "%s: scratch size", shape_name);
}
TEST_EVERY(test_rlimits, check_rlimits)

static void test_asked_limits(void **state)
{
    static const struct shape s = {.root = ROOT_HOST};
    struct box_spec spec = make_spec(&s);
    struct error err;

    (void)state;
    make_facts(&s);
    spec.limits.file_bytes = 4096;
    spec.limits.cpu_usec = 1500000;
    spec.limits.cpu_milli = 1001;
    CHECK_OK(plan_make(&spec, &facts, &plan, &err), err);
    assert_int_equal(plan.steps[find_rlimit(RLIMIT_FSIZE)].v, 4096);
    assert_int_equal(plan.steps[find_rlimit(RLIMIT_CPU)].v,
                     3); /* rounded up, and one for the supervisor */
    /* Above the limit, so that the supervisor sees a box go over it and can say so. */
    assert_true(plan.steps[find_rlimit(RLIMIT_NPROC)].v > spec.limits.pids);
    assert_true(plan.steps[find_rlimit(RLIMIT_DATA)].v >= spec.limits.memory_bytes);
    assert_int_equal(plan.steps[first_of(OP_AFFINITY)].u, 2);
}

static void test_huge_memory(void **state)
{
    static const struct shape s = {.root = ROOT_HOST};
    struct box_spec spec = make_spec(&s);
    struct error err;

    (void)state;
    make_facts(&s);
    spec.limits.memory_bytes = INT64_MAX;
    CHECK_OK(plan_make(&spec, &facts, &plan, &err), err);
    assert_true(plan.steps[find_rlimit(RLIMIT_DATA)].v >= spec.limits.memory_bytes);
}

/* ---- belts ---- */

static void check_belts(const struct shape *s)
{
    uint32_t all = (1u << BELT_COUNT) - 1,
             want = s->landlock >= 2 ? all : all & ~(1u << BELT_LANDLOCK);

    CHECK(plan.belts == want, "%s: belts %#x, want %#x", shape_name, plan.belts, want);
}
TEST_EVERY(test_belts, check_belts)

/* ---- purity and size ---- */

static void check_same(const struct shape *s)
{
    struct box_spec spec = make_spec(s);
    struct error err;
    char a[512], b[512];

    memset(&other, 0xaa, sizeof(other));
    CHECK_OK(plan_make(&spec, &facts, &other, &err), err);
    CHECK(plan.n_steps == other.n_steps && plan.belts == other.belts, "%s: differs", shape_name);
    for (size_t i = 0; i < plan.n_steps; i++)
        CHECK(strcmp(step_describe(&plan.steps[i], a, sizeof(a)),
                     step_describe(&other.steps[i], b, sizeof(b))) == 0 &&
                  plan.steps[i].u == other.steps[i].u && plan.steps[i].v == other.steps[i].v,
              "%s: step %zu: '%s', '%s'", shape_name, i, a, b);
}
TEST_EVERY(test_same, check_same)

/* Both ways to a box do the same: what a slot does on request is the stage WORK of a box built in
 * place. */
static void check_request(const struct shape *s)
{
    struct box_spec spec = make_spec(s);
    struct error err;
    size_t first = 0, last;

    CHECK_OK(plan_request(&spec, &facts, spec.limits.tmp_bytes, &other, &err), err);
    while (plan.steps[first].stage < STAGE_WORK)
        first++;
    for (last = first; plan.steps[last].stage == STAGE_WORK;)
        last++;
    CHECK(other.n_steps == last - first, "%s: %zu steps, want %zu", shape_name, other.n_steps,
          last - first);
    for (size_t i = 0; i < other.n_steps; i++) {
        const struct step *a = &plan.steps[first + i], *b = &other.steps[i];

        CHECK(a->op == b->op && a->stage == b->stage && a->only == b->only && a->reg == b->reg &&
                  a->u == b->u && a->v == b->v && a->ptr == b->ptr &&
                  strcmp(a->a ? a->a : "", b->a ? b->a : "") == 0,
              "%s: step %zu differs", shape_name, i);
    }
    spec.limits.tmp_bytes++;
    CHECK_OK(plan_request(&spec, &facts, spec.limits.tmp_bytes - 1, &other, &err), err);
    CHECK(other.steps[0].op == OP_SCRATCH_SIZE && other.steps[0].u == spec.limits.tmp_bytes,
          "%s: scratch size", shape_name);
}
TEST_EVERY(test_request, check_request)

/* ---- live boxes ---- */

static void make_live(const struct shape *s, bool writable)
{
    static const struct box_place places[] = {
        {.target = "/workspace", .source = "/home/me/project", .fd = -1, .is_dir = true},
        {.target = "/workspace/skills",
         .source = "/srv/skills",
         .fd = -1,
         .is_dir = true,
         .read_only = true},
        {.target = "/workspace/tmp", .fd = -1, .bytes = 1 << 20, .mode = 01777}};
    struct box_spec spec = make_spec(s);
    struct error err;

    spec.live = true;
    spec.workspace_path = NULL;
    spec.places = places;
    spec.n_places = COUNT(places);
    spec.writable_root = writable;
    spec.rw_fd = 5;
    make_facts(s);
    CHECK_OK(plan_make(&spec, &facts, &plan, &err), err);
}

static void check_live(const struct shape *s)
{
    const uint64_t kept = s->ids == IDS_RANGE ? 0x1e0 : 0; /* KILL, SETGID, SETUID, SETPCAP */
    int caps, landlock;

    if (s->root == ROOT_HOST_RO)
        return;
    make_live(s, false);
    caps = first_of(OP_CAPS);
    landlock = first_of(OP_LANDLOCK);
    CHECK(count_of(OP_DIE_WITH_PARENT) == 0, "%s: it dies with its maker", shape_name);
    CHECK(plan.steps[caps].u == kept, "%s: keeps capabilities %llx", shape_name,
          (unsigned long long)plan.steps[caps].u);
    CHECK(plan.steps[first_of(OP_BOUNDING_SET)].u == kept, "%s: the bounding set", shape_name);
    CHECK((landlock >= 0) == (s->landlock >= 2), "%s: Landlock", shape_name);
    if (landlock >= 0)
        CHECK(landlock > first_of(OP_NO_NEW_PRIVS) && landlock < first_of(OP_SECCOMP),
              "%s: Landlock comes at step %d", shape_name, landlock);
    CHECK(first_of(OP_SEAL) > last_of(OP_ATTACH), "%s: something is mounted on a sealed root",
          shape_name);
    CHECK(plan.n_writable == 2, "%s: %zu places can be written", shape_name, plan.n_writable);
    CHECK(find_path(OP_ATTACH, "workspace") < find_path(OP_ATTACH, "workspace/skills"),
          "%s: the inner mount comes first", shape_name);
}

static void test_live(void **state)
{
    (void)state;
    for_every_shape(check_live);
}

/* An image's names may be links to anywhere: nothing is made in its /dev but on a mount of ours. */
static void test_writable_image(void **state)
{
    static const struct shape s = {.root = ROOT_DIR, .landlock = 7};

    (void)state;
    make_live(&s, true);
    assert_int_equal(count_of(OP_ROOT_OVERLAY), 1);
    assert_int_equal(count_of(OP_SEAL), 0);
    assert_false(plan.belts & 1u << BELT_READ_ONLY_ROOT);
    assert_true(find_path(OP_SCRATCH, "dev") > first_of(OP_ROOT_OVERLAY));
    for (size_t i = 0; i < plan.n_steps; i++)
        if (plan.steps[i].op == OP_FILE && strncmp(plan.steps[i].a, "dev/", 4) == 0)
            CHECK((int)i > find_path(OP_SCRATCH, "dev"), "'%s' is made in the image's own /dev",
                  plan.steps[i].a);
}

static void fill_entries(size_t n)
{
    facts.n_entries = 0;
    for (size_t i = 0; i < n; i++) {
        char name[16], source[32];

        (void)snprintf(name, sizeof(name), "d%zu", i);
        (void)snprintf(source, sizeof(source), "/image/d%zu", i);
        add_entry(ENTRY_DIR, name, source);
    }
}

static void test_too_long(void **state)
{
    static const struct shape s = {.root = ROOT_DIR, .joins = 3, .landlock = 7};
    static struct box_place places[LIMIT_PLACES];
    static char target[512];
    struct box_spec spec = make_spec(&s);
    struct error err;

    (void)state;
    make_facts(&s);
    fill_entries(LIMIT_ROOT_ENTRIES);
    memset(target, 'x', sizeof(target) - 1); /* files, each in a folder with a long name */
    memcpy(target, "/", 1);
    memcpy(target + sizeof(target) - 4, "/f", 3);
    for (size_t i = 0; i < LIMIT_PLACES; i++)
        places[i] = (struct box_place){.target = target, .source = "/s", .fd = -1};
    spec.places = places;
    spec.n_places = LIMIT_PLACES;
    CHECK_ERR(plan_make(&spec, &facts, &plan, &err), err, ERR_TOO_LARGE, "plan of the box");
    assert_true(plan.n_steps <= LIMIT_STEPS);
    make(&s); /* a plan that failed is made anew */
    assert_false(plan.overflow);
}

static void test_long_text(void **state)
{
    static const struct shape s = {.root = ROOT_HOST_RO};
    struct box_spec spec = make_spec(&s);
    struct error err;

    (void)state;
    make_facts(&s);
    facts.n_entries = 0;
    for (size_t i = 0; i < COUNT(facts.entries); i++) {
        char deep[128];

        memset(deep, 'a', sizeof(deep) - 1);
        deep[100] = '/';
        deep[sizeof(deep) - 1] = 0;
        add_entry(ENTRY_LINK, deep, "x");
    }
    spec.root = ROOT_HOST;
    (void)plan_make(&spec, &facts, &plan, &err);
    assert_true(plan.text_len <= sizeof(plan.text));
}

static void test_full_image(void **state)
{
    static const struct shape s = {.root = ROOT_DIR, .joins = 3, .landlock = 7};
    struct box_spec spec = make_spec(&s);
    struct error err;

    (void)state;
    make_facts(&s);
    fill_entries(LIMIT_ROOT_ENTRIES);
    facts.n_masks = 30;
    for (size_t i = 0; i < facts.n_masks; i++)
        facts.masks[i] = "proc/kcore";
    spec.limits.file_bytes = spec.limits.cpu_usec = spec.limits.cpu_milli = 5000;
    CHECK_OK(plan_make(&spec, &facts, &plan, &err), err);
}

/* ---- words ---- */

static void test_words(void **state)
{
    static char texts[OP_COUNT][128];

    (void)state;
    for (int op = 0; op < OP_COUNT; op++) {
        struct step s = {.op = (enum step_op)op, .reg = -1, .fd = -1};

        (void)step_describe(&s, texts[op], sizeof(texts[op]));
        CHECK(texts[op][0] && texts[op][0] != '(', "step kind %d: '%s'", op, texts[op]);
        for (int before = 0; before < op; before++) {
            if ((op == OP_SEAL && before == OP_WRITER) ||
                (op == OP_PROC_INSTEAD && before == OP_PROC))
                continue; /* see the next test */
            CHECK(strcmp(texts[op], texts[before]) != 0, "step kinds %d and %d: '%s'", before, op,
                  texts[op]);
        }
    }
    for (int stage = STAGE_TEMPLATE; stage <= STAGE_DROP; stage++)
        assert_true(stage_name((enum stage)stage)[0]);
}

static void test_words_of_slots(void **state)
{
    static const enum step_op pairs[][2] = {{OP_SEAL, OP_WRITER}, {OP_PROC, OP_PROC_INSTEAD}};
    char a[128], b[128];

    (void)state;
    FOR_EACH(pair, pairs)
    {
        struct step one = {.op = (*pair)[0]}, two = {.op = (*pair)[1]};

        assert_string_not_equal(step_describe(&one, a, sizeof(a)),
                                step_describe(&two, b, sizeof(b)));
    }
}

static void test_words_name_paths(void **state)
{
    static const struct {
        struct step step;
        const char *text;
    } rows[] = {
        {{.op = OP_TREE, .a = "/usr"}, "open '/usr'"},
        {{.op = OP_ATTACH, .a = "usr"}, "mount on '/usr'"},
        {{.op = OP_PROC, .a = "proc"}, "mount a fresh proc on '/proc'"},
        {{.op = OP_IDS, .u = 1000, .v = 1001}, "become user 1000: 1001"},
        {{.op = OP_RLIMIT, .u = 7, .v = 65536}, "limit 7: 65536"},
        {{.op = OP_HOSTNAME, .a = "clawden"}, "set the host name"},
    };
    char text[64];

    (void)state;
    FOR_EACH(row, rows)
    CHECK_STR(step_describe(&row->step, text, sizeof(text)), row->text, row->text);
    (void)step_describe(&rows[2].step, text, 10);
    assert_string_equal(text, "mount a f");
}

/* ---- the host's plan, word by word ---- */

static void put_quoted(struct buf *b, const char *name, const char *value)
{
    if (!value)
        return;
    buf_printf(b, " %s=", name);
    buf_json_string(b, value, strlen(value));
}

static void put_plan(struct buf *b)
{
    static const char *const only[] = {"", " (cold)", " (slot)"};

    for (size_t i = 0; i < plan.n_steps; i++) {
        const struct step *s = &plan.steps[i];
        char text[512];

        buf_printf(b, "%-8s %s%s", stage_name(s->stage), step_describe(s, text, sizeof(text)),
                   only[s->only]);
        if (s->reg >= 0)
            buf_printf(b, " tree=%d", s->reg);
        if (s->op == OP_FILE || s->op == OP_LINK || s->op == OP_WRITE_MAPS || s->op == OP_COPY ||
            s->op == OP_SCRATCH_DIR)
            put_quoted(b, "b", s->b);
        if (s->op == OP_WRITE_MAPS || s->op == OP_HOSTNAME)
            put_quoted(b, "a", s->a);
        if (s->op != OP_RLIMIT && s->op != OP_IDS && (s->u || s->v))
            buf_printf(b, s->op == OP_DIR || s->op == OP_SCRATCH_DIR ? " u=0%llo" : " u=%llu",
                       (unsigned long long)s->u);
        if (s->op == OP_TREE)
            buf_printf(b, " v=%llu%s", (unsigned long long)s->v, s->read_only ? " read-only" : "");
        buf_puts(b, "\n");
    }
    buf_puts(b, "belts:");
    for (int i = 0; i < BELT_COUNT; i++)
        if (plan.belts & 1u << i)
            buf_printf(b, " %s", belt_name((enum belt)i));
    buf_puts(b, "\n");
}

static void test_golden(void **state)
{
    static const struct shape s = {.root = ROOT_HOST, .ids = IDS_ONE, .landlock = 7};
    char path[512];
    autobuf got;
    autofree char *want = NULL;
    int dir, line = 1;
    const char *update = getenv("UPDATE"), *a, *b;
    bool same;

    (void)state;
    make(&s);
    buf_init(&got, 64 << 10);
    put_plan(&got);
    assert_false(got.failed);
    dir = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(dir >= 0, "no folder '%s'", data_dir);
    if (update && strcmp(update, "1") == 0) {
        temp_write(&(struct temp){.fd = dir}, "plan-host.txt", got.data, got.len);
        assert_int_equal(fchmodat(dir, "plan-host.txt", 0644, 0), 0);
    }
    want = temp_read(&(struct temp){.fd = dir}, "plan-host.txt", NULL);
    (void)close(dir);
    (void)snprintf(path, sizeof(path), "%s/plan-host.txt", data_dir);
    for (a = got.data, b = want; *a && *a == *b; a++, b++)
        line += *a == '\n';
    same = *a == *b;
    CHECK(same, "%s:%d differs from the plan that is made; if that is meant: UPDATE=1", path, line);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("everything of the host is opened before the new root is there", test_trees),
        CLAIM("the host is let go of after proc is mounted and before anything is masked",
              test_pivot),
        CLAIM("on the way down caps, no_new_privs, Landlock, seccomp and init follow in this order",
              test_way_down),
        CLAIM("the root is sealed after the workspace is in it, and nothing is made after that",
              test_seal),
        CLAIM("stages follow one another", test_stages),
        CLAIM(
            "a live box outlives its maker, keeps what it needs to change users, and mounts outer "
            "before inner",
            test_live),
        CLAIM("in an image that may be changed nothing is made by a name that it chose",
              test_writable_image),
        CLAIM("the cgroup is joined before its namespace is made", test_cgroups),
        CLAIM("a plan never maps host id 0", test_ids),
        CLAIM("everything but a writable workspace is read-only and pinned to its inode",
              test_read_only),
        CLAIM("every tree is opened once and attached once", test_registers),
        CLAIM("a device goes where its name says and must be that device", test_devices),
        CLAIM("paths inside never leave the new root", test_paths),
        CLAIM("the workspace stands above all scratch space", test_workspace),
        CLAIM("the workspace is also /workspace, unless it is that already", test_workspace_alias),
        CLAIM("a workspace inside /workspace stays where it is", test_workspace_in_workspace),
        CLAIM("a workspace in a hidden folder of the host gets its folders back",
              test_hidden_workspace),
        CLAIM("resource limits follow from ids and grades", test_rlimits),
        CLAIM("limits that are asked for are in the plan", test_asked_limits),
        CLAIM("a huge memory limit is not a small one", test_huge_memory),
        CLAIM("a plan puts on every belt, Landlock from ABI 2 on", test_belts),
        CLAIM("the same question has the same plan", test_same),
        CLAIM("a slot does on request what a box built in place does in that stage", test_request),
        CLAIM("a plan that is too long fails and says so", test_too_long),
        CLAIM("strings of a plan stay within their room", test_long_text),
        CLAIM("a full image has room in a plan", test_full_image),
        CLAIM("every kind of step has words of its own", test_words),
        CLAIM("steps of a box and of a slot are told apart", test_words_of_slots),
        CLAIM("a step is described with its path", test_words_name_paths),
        CLAIM("the plan of the host root is the one in tests/data", test_golden),
    };

    if (argc > 1)
        data_dir = argv[1];
    return RUN_CLAIMS("engine/plan", claims);
}
