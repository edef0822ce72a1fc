/* SPDX-License-Identifier: Apache-2.0 */
/* The files of control groups, in a folder that is none: what is written where, and what is read
 * back. */
#include "engine/native/cgroup.h"

#include <sys/wait.h>

#include "tests/test.h"

static struct cgroup_base make_base(struct temp *t, enum cgroup_kind kind)
{
    static const char *const names[] = {"memory", "pids", "cpu"};
    struct cgroup_base b = {.kind = kind};

    for (int i = 0; i < CG_COUNT; i++) {
        const char *name = kind == CGROUP_V2 ? "all" : names[i];

        assert_true(mkdirat(t->fd, name, 0700) == 0 || errno == EEXIST);
        b.dirs[i] = openat(t->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(b.dirs[i] >= 0);
    }
    return b;
}

static void put(int dir, const char *name, const char *text)
{
    temp_write(&(struct temp){.fd = dir}, name, text, strlen(text));
}

static void check_file(int dir, const char *name, const char *want)
{
    char *text = temp_read(&(struct temp){.fd = dir}, name, NULL);

    CHECK(strcmp(text, want) == 0, "%s: '%s', want '%s'", name, text, want);
    free(text);
}

/* Forgets a set whose folders hold files, which a real group's would not. */
static void drop(struct cgroup_set *set, struct cgroup_base *base)
{
    for (int i = 0; i < CG_COUNT; i++)
        if (set->dirs[i] >= 0)
            (void)close(set->dirs[i]);
    cgroup_base_done(base);
}

static void test_made_and_removed(void **state)
{
    static const struct {
        enum cgroup_kind kind;
        unsigned need;
    } rows[] = {{CGROUP_V1, 7},
                {CGROUP_V1, 1 << CG_PIDS},
                {CGROUP_V2, 7},
                {CGROUP_V2, 1 << CG_MEMORY},
                {CGROUP_V1, 0}};
    struct temp *t = *state;

    FOR_EACH(row, rows)
    {
        size_t before = open_fds();
        struct cgroup_base base = make_base(t, row->kind);
        struct cgroup_set set = CGROUP_SET_EMPTY;
        unsigned made = 0;

        assert_int_equal(cgroup_make(&base, "box-x-1", row->need, &set), 0);
        for (int i = 0; i < CG_COUNT; i++)
            made |= set.dirs[i] >= 0 ? 1u << i : 0;
        CHECK(made == row->need, "need %u: made %u", row->need, made);
        cgroup_remove(&set);
        cgroup_remove(&set);
        for (int i = 0; i < CG_COUNT; i++)
            CHECK(faccessat(base.dirs[i], "box-x-1", F_OK, 0) < 0, "need %u: group %d is left",
                  row->need, i);
        cgroup_base_done(&base);
        assert_int_equal(open_fds(), before);
    }
}

static void test_v2_without_memory(void **state)
{
    struct temp *t = *state;
    struct cgroup_base base = make_base(t, CGROUP_V2);
    struct cgroup_set set = CGROUP_SET_EMPTY;

    assert_int_equal(cgroup_make(&base, "box-x-1", 1 << CG_PIDS, &set), 0);
    cgroup_remove(&set);
    assert_true(faccessat(base.dirs[0], "box-x-1", F_OK, 0) < 0);
    cgroup_base_done(&base);
}

/* A slot's groups have most of it already. */
static void test_only_what_differs(void **state)
{
    struct temp *t = *state;
    struct cgroup_base base = make_base(t, CGROUP_V2);
    struct cgroup_set set = CGROUP_SET_EMPTY;
    const struct box_limits l = {.memory_bytes = 64 << 20, .pids = 10};

    assert_int_equal(cgroup_make(&base, "box-x-1", 7, &set), 0);
    assert_int_equal(cgroup_set_limits(&set, &l, &l),
                     0); /* there is no file to write to: none is written */
    assert_int_equal(
        cgroup_set_limits(&set, &l, &(struct box_limits){.memory_bytes = l.memory_bytes}), -ENOENT);
    cgroup_remove(&set);
    cgroup_base_done(&base);
}

static void test_failed_make(void **state)
{
    struct temp *t = *state;
    struct cgroup_base base = make_base(t, CGROUP_V1);
    struct cgroup_set set = CGROUP_SET_EMPTY;
    size_t before = open_fds();

    put(base.dirs[CG_CPU], "box-x-1", "in the way");
    assert_int_equal(cgroup_make(&base, "box-x-1", 7, &set), -ENOTDIR);
    assert_true(faccessat(base.dirs[CG_MEMORY], "box-x-1", F_OK, 0) < 0);
    assert_true(faccessat(base.dirs[CG_PIDS], "box-x-1", F_OK, 0) < 0);
    assert_int_equal(open_fds(), before);
    cgroup_base_done(&base);
}

static void test_limits_v1(void **state)
{
    static const struct box_limits l = {.memory_bytes = 256 << 20, .pids = 100, .cpu_milli = 500};
    struct cgroup_base base = make_base(*state, CGROUP_V1);
    struct cgroup_set set = CGROUP_SET_EMPTY;

    assert_int_equal(cgroup_make(&base, "box-x-1", 7, &set), 0);
    put(set.dirs[CG_MEMORY], "memory.limit_in_bytes", "");
    put(set.dirs[CG_PIDS], "pids.max", "");
    put(set.dirs[CG_CPU], "cpu.cfs_quota_us", "");
    assert_int_equal(cgroup_set_limits(&set, &l, NULL), 0); /* no swap accounting: not an error */
    check_file(set.dirs[CG_MEMORY], "memory.limit_in_bytes", "268435456");
    check_file(set.dirs[CG_PIDS], "pids.max", "101"); /* init is not the caller's */
    check_file(set.dirs[CG_CPU], "cpu.cfs_quota_us", "50000");
    put(set.dirs[CG_MEMORY], "memory.memsw.limit_in_bytes", "");
    put(set.dirs[CG_CPU], "cpu.cfs_quota_us", "");
    assert_int_equal(
        cgroup_set_limits(&set, &(struct box_limits){.memory_bytes = 4096, .cpu_milli = 1}, NULL),
        0);
    check_file(set.dirs[CG_MEMORY], "memory.memsw.limit_in_bytes", "4096");
    check_file(set.dirs[CG_CPU], "cpu.cfs_quota_us", "1000"); /* the kernel's least */
    drop(&set, &base);
}

static void test_limits_v2(void **state)
{
    static const struct box_limits l = {.memory_bytes = 256 << 20, .pids = 100, .cpu_milli = 1500};
    struct cgroup_base base = make_base(*state, CGROUP_V2);
    struct cgroup_set set = CGROUP_SET_EMPTY;
    int dir;

    assert_int_equal(cgroup_make(&base, "box-x-1", 7, &set), 0);
    dir = set.dirs[CG_MEMORY];
    put(dir, "memory.max", "");
    put(dir, "memory.swap.max", "");
    put(dir, "pids.max", "");
    put(dir, "cpu.max", "");
    assert_int_equal(cgroup_set_limits(&set, &l, NULL), 0);
    check_file(dir, "memory.max", "268435456");
    check_file(dir, "memory.swap.max", "0");
    check_file(dir, "pids.max", "101");
    check_file(dir, "cpu.max", "150000 100000");
    put(dir, "cpu.max", "");
    assert_int_equal(cgroup_set_limits(&set, &(struct box_limits){.memory_bytes = 1}, NULL), 0);
    check_file(dir, "cpu.max", "max");
    drop(&set, &base);
}

static void test_small_cpu_v2(void **state)
{
    struct cgroup_base base = make_base(*state, CGROUP_V2);
    struct cgroup_set set = CGROUP_SET_EMPTY;

    assert_int_equal(cgroup_make(&base, "box-x-1", 1 << CG_CPU, &set), 0);
    put(set.dirs[CG_CPU], "cpu.max", "");
    assert_int_equal(cgroup_set_limits(&set, &(struct box_limits){.cpu_milli = 5}, NULL), 0);
    check_file(set.dirs[CG_CPU], "cpu.max", "1000 100000");
    drop(&set, &base);
}

/* A limit that cannot be set is an error, not a box without it. */
static void test_no_file(void **state)
{
    struct cgroup_base base = make_base(*state, CGROUP_V1);
    struct cgroup_set set = CGROUP_SET_EMPTY;

    assert_int_equal(cgroup_make(&base, "box-x-1", 7, &set), 0);
    assert_int_equal(cgroup_set_limits(&set, &(struct box_limits){.memory_bytes = 1}, NULL),
                     -ENOENT);
    cgroup_remove(&set);
    cgroup_base_done(&base);
}

static void test_usage(void **state)
{
    static const struct {
        enum cgroup_kind kind;
        const char *files[6][2];
    } rows[] = {
        {CGROUP_V1,
         {{"memory.max_usage_in_bytes", "1000\n"},
          {"memory.usage_in_bytes", "500\n"},
          {"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"},
          {"pids.events", "max 3\n"},
          {"pids.current", "4\n"}}},
        {CGROUP_V2,
         {{"memory.peak", "1000\n"},
          {"memory.current", "500\n"},
          {"memory.events", "low 0\nhigh 0\nmax 9\noom 7\noom_kill 2\noom_group_kill 8\n"},
          {"pids.events", "max 3\nmax.imposed 9\n"},
          {"pids.current", "4\n"},
          {"cpu.stat", "usage_usec 77\nuser_usec 50\n"}}},
    };

    FOR_EACH(row, rows)
    {
        struct cgroup_base base = make_base(*state, row->kind);
        struct cgroup_set set = CGROUP_SET_EMPTY;
        struct box_usage u = {.cpu_usec = 5};

        assert_int_equal(cgroup_make(&base, "box-x-1", 7, &set), 0);
        for (size_t i = 0; i < COUNT(row->files) && row->files[i][0]; i++)
            put(set.dirs[row->files[i][0][0] == 'm'   ? CG_MEMORY
                         : row->files[i][0][0] == 'p' ? CG_PIDS
                                                      : CG_CPU],
                row->files[i][0], row->files[i][1]);
        cgroup_usage(&set, &u);
        assert_int_equal(u.peak_bytes, 1000);
        assert_true(u.peak_is_whole_box);
        assert_int_equal(u.memory_bytes, 500);
        assert_int_equal(u.oom_kills, 2);
        assert_int_equal(u.forks_refused, 3);
        assert_int_equal(u.pids, 4);
        assert_int_equal(u.cpu_usec, row->kind == CGROUP_V2 ? 77 : 5);
        drop(&set, &base);
    }
}

static void test_unknown_usage(void **state)
{
    struct cgroup_base base = make_base(*state, CGROUP_V2);
    struct cgroup_set set = CGROUP_SET_EMPTY, none = CGROUP_SET_EMPTY;
    struct box_usage u = {.peak_bytes = 1, .memory_bytes = 2, .pids = 3}, same = u;

    assert_int_equal(cgroup_make(&base, "box-x-1", 7, &set), 0);
    put(set.dirs[0], "memory.peak", "max\n");
    put(set.dirs[0], "pids.current", "");
    cgroup_usage(&set, &u);
    assert_memory_equal(&u, &same, sizeof(u));
    cgroup_usage(&none, &u);
    assert_memory_equal(&u, &same, sizeof(u));
    drop(&set, &base);
}

static void test_joins(void **state)
{
    struct cgroup_base base = make_base(*state, CGROUP_V1);
    struct cgroup_set set = CGROUP_SET_EMPTY,
                      v2 = {.kind = CGROUP_V2, .bases = {-1, -1, -1}, .dirs = {-1, -1, -1}};
    int joins[CG_COUNT + 1];
    size_t before;

    assert_int_equal(cgroup_make(&base, "box-x-1", 1 << CG_MEMORY | 1 << CG_CPU, &set), 0);
    put(set.dirs[CG_MEMORY], "tasks", "");
    before = open_fds();
    assert_int_equal(cgroup_open_joins(&set, joins), -ENOENT); /* one is missing: none stays open */
    assert_int_equal(joins[0], -1);
    assert_int_equal(open_fds(), before);
    put(set.dirs[CG_CPU], "tasks", "");
    assert_int_equal(cgroup_open_joins(&set, joins), 0);
    assert_true(joins[0] >= 0 && joins[1] >= 0);
    assert_int_equal(joins[2], -1);
    (void)close(joins[0]);
    (void)close(joins[1]);
    assert_int_equal(cgroup_open_joins(&v2, joins), 0); /* a v2 box is born in its group */
    assert_int_equal(joins[0], -1);
    drop(&set, &base);
}

static void test_sweep(void **state)
{
    struct cgroup_base base = make_base(*state, CGROUP_V2);
    const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    char gone[48], alive[48];
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid); /* its number is nobody's now */
    (void)snprintf(gone, sizeof(gone), CGROUP_PREFIX "box-abc-%d", (int)pid);
    (void)snprintf(alive, sizeof(alive), CGROUP_PREFIX "slot-abc-%d", (int)getpid());
    assert_int_equal(mkdirat(base.dirs[0], gone, 0700), 0);
    assert_int_equal(mkdirat(base.dirs[0], alive, 0700), 0);
    assert_int_equal(mkdirat(base.dirs[0], "other-abc-1", 0700), 0);
    assert_int_equal(mkdirat(base.dirs[0], "clawden-box-x", 0700), 0);
    cgroup_sweep(&base); /* just made: its maker may be one whose number we do not see */
    assert_int_equal(faccessat(base.dirs[0], gone, F_OK, 0), 0);
    assert_int_equal(utimensat(base.dirs[0], gone, long_ago, 0), 0);
    assert_int_equal(utimensat(base.dirs[0], alive, long_ago, 0), 0);
    cgroup_sweep(&base);
    assert_true(faccessat(base.dirs[0], gone, F_OK, 0) < 0);
    assert_int_equal(faccessat(base.dirs[0], alive, F_OK, 0), 0);
    assert_int_equal(faccessat(base.dirs[0], "other-abc-1", F_OK, 0), 0);
    assert_int_equal(faccessat(base.dirs[0], "clawden-box-x", F_OK, 0), 0);
    cgroup_base_done(&base);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM_IN_TEMP("groups are made as needed and leave nothing behind", test_made_and_removed),
        CLAIM_IN_TEMP("a group without a memory limit leaves nothing behind either",
                      test_v2_without_memory),
        CLAIM_IN_TEMP("groups that cannot all be made are not made at all", test_failed_make),
        CLAIM_IN_TEMP("limits that are there already are not written again",
                      test_only_what_differs),
        CLAIM_IN_TEMP("limits are written for v1", test_limits_v1),
        CLAIM_IN_TEMP("limits are written for v2", test_limits_v2),
        CLAIM_IN_TEMP("the smallest share of a processor is one the kernel takes",
                      test_small_cpu_v2),
        CLAIM_IN_TEMP("a limit that cannot be set is an error", test_no_file),
        CLAIM_IN_TEMP("counters are read under v1 and v2", test_usage),
        CLAIM_IN_TEMP("what a group does not know stays as it is", test_unknown_usage),
        CLAIM_IN_TEMP("v1 groups are joined by a file each, or none", test_joins),
        CLAIM_IN_TEMP("only groups whose makers are gone are swept", test_sweep),
    };

    return RUN_CLAIMS("engine/cgroup", claims);
}
