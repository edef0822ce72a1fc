/* SPDX-License-Identifier: Apache-2.0 */
/* How a run ends, and how that is told; with the engine that only pretends. */
#include "engine/run.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/test.h"

#define EXITED(n) ((n) << 8)

static void test_status(void **state)
{
    static const struct {
        const char *name;
        struct run_result r;
        int status;
    } rows[] = {
        {"success", {.started = true, .status = EXITED(0)}, 0},
        {"its own", {.started = true, .status = EXITED(3)}, 3},
        {"its own 137", {.started = true, .status = EXITED(137)}, 137},
        {"signal", {.started = true, .status = SIGTERM}, 143},
        {"signal with a core", {.started = true, .status = SIGSEGV | 0x80}, 139},
        {"killed by itself", {.started = true, .status = SIGKILL}, 137},
        {"not found", {.exec_sys = ENOENT, .exec_at = "execute"}, 127},
        {"not executable", {.exec_sys = EACCES, .exec_at = "execute"}, 126},
        {"time", {.started = true, .status = SIGKILL, .limit = LIMIT_WALL}, 124},
        {"time, but it ended by itself",
         {.started = true, .status = EXITED(0), .limit = LIMIT_WALL},
         124},
        {"memory", {.started = true, .status = SIGKILL, .limit = LIMIT_MEMORY}, 137},
        {"memory of a child", {.started = true, .status = EXITED(1), .limit = LIMIT_MEMORY}, 137},
        {"pids", {.started = true, .status = SIGKILL, .limit = LIMIT_PIDS}, 137},
        {"output", {.started = true, .status = SIGKILL, .limit = LIMIT_OUTPUT}, 137},
        {"disk", {.started = true, .status = SIGKILL, .limit = LIMIT_DISK}, 137},
        {"file size",
         {.started = true, .status = SIGXFSZ, .limit = LIMIT_FILE_SIZE},
         128 + SIGXFSZ},
        {"full scratch space", {.started = true, .status = EXITED(2), .limit = LIMIT_TMP}, 2},
    };

    (void)state;
    FOR_EACH(row, rows)
    CHECK(run_exit_status(&row->r) == row->status, "%s: %d, want %d", row->name,
          run_exit_status(&row->r), row->status);
}

static void test_status_before_start(void **state)
{
    struct run_result r = {.status = SIGKILL, .limit = LIMIT_WALL};

    (void)state;
    assert_int_equal(run_exit_status(&r), 124);
    r.limit = LIMIT_MEMORY;
    assert_int_equal(run_exit_status(&r), 137);
}

static void test_words(void **state)
{
    static const struct {
        struct run_result r;
        const char *text;
    } rows[] = {
        {{.status = EXITED(0)}, ""},
        {{.status = SIGKILL,
          .limit = LIMIT_MEMORY,
          .limit_value = 256 << 20,
          .observed = 261 << 20},
         "memory limit 256m reached (261m seen): killed"},
        {{.status = SIGKILL, .limit = LIMIT_WALL, .limit_value = 1500000, .observed = 1520999},
         "time limit 1.500s reached (1.520s seen): killed"},
        {{.status = SIGKILL, .limit = LIMIT_PIDS, .limit_value = 256, .observed = 257},
         "pids limit 256 reached (257 seen): killed"},
        {{.status = EXITED(1), .limit = LIMIT_TMP, .limit_value = 500 << 20, .observed = 500 << 20},
         "tmp limit 500m reached (500m seen): refused by the kernel"},
        {{.status = SIGKILL, .limit = LIMIT_CPU_TIME, .limit_value = 1000000, .observed = 1200000},
         "cpu_time limit 1.000s reached (1.200s seen): killed"},
    };
    char text[128];

    (void)state;
    FOR_EACH(row, rows)
    CHECK_STR(run_limit_text(&row->r, text, sizeof(text)), row->text, row->text);
}

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < LIMIT_KINDS; i++)
        CHECK(limit_name((enum limit_kind)i) && limit_name((enum limit_kind)i)[0],
              "limit %d has no name", i);
    for (int i = 0; i < BELT_COUNT; i++)
        CHECK(belt_name((enum belt)i) && belt_name((enum belt)i)[0], "belt %d has no name", i);
    for (int i = GRADE_NONE; i <= GRADE_KERNEL; i++)
        assert_true(grade_name((enum grade)i)[0]);
}

/* ---- whole runs ---- */

struct made {
    int n;
    int refuse;
};

static int on_box(void *arg, struct box *b, struct error *err)
{
    struct made *m = arg;

    assert_int_equal(strlen(b->id), 64);
    m->n++;
    return m->refuse ? error_set(err, ERR_DENIED, "not this one") : 0;
}

/* Runs `verb word` with fd as its standard output. */
static int run(const char *verb, const char *word, struct box_limits limits, int out,
               struct made *m, struct run_result *res, struct error *err)
{
    char *argv[] = {(char *)verb, (char *)word, NULL}, *env[] = {NULL};
    struct box_spec spec = {
        .root_fd = -1, .workspace_fd = -1, .workspace_path = "/w", .limits = limits};
    struct box_exec what = {.argv = argv, .env = env, .stdio = {-1, out, -1}};
    struct run_request req = {
        .engine = &engine_fake, .spec = &spec, .exec = &what, .on_box = on_box, .arg = m};
    size_t before = open_fds();
    int r = run_command(&req, res, err);

    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* a sanitizer looks at us at the end */
    assert_int_equal(open_fds(), before);
    return r;
}

static void test_runs(void **state)
{
    static const struct {
        const char *verb, *word;
        int status;
        bool started;
    } rows[] = {{"exit", "0", 0, true},
                {"exit", "7", 7, true},
                {"signal", "15", 143, true},
                {"fail", "2", 127, false},
                {"fail", "13", 126, false}};

    (void)state;
    FOR_EACH(row, rows)
    {
        struct made m = {0};
        struct run_result res;
        struct error err = {0};

        CHECK_OK(run(row->verb, row->word, (struct box_limits){0}, -1, &m, &res, &err), err);
        CHECK(run_exit_status(&res) == row->status && res.started == row->started && m.n == 1,
              "%s %s: %d", row->verb, row->word, run_exit_status(&res));
        assert_int_equal(res.limit, LIMIT_NONE);
    }
}

static void test_refused(void **state)
{
    struct made m = {.refuse = 1};
    struct run_result res;
    struct error err = {0};

    (void)state;
    CHECK_ERR(run("exit", "0", (struct box_limits){0}, -1, &m, &res, &err), err, ERR_DENIED,
              "not this one");
    assert_false(res.started);
}

static void test_time(void **state)
{
    struct made m = {0};
    struct run_result res;
    struct error err = {0};

    (void)state;
    CHECK_OK(run("hang", NULL, (struct box_limits){.wall_usec = 60000}, -1, &m, &res, &err), err);
    assert_int_equal(res.limit, LIMIT_WALL);
    assert_int_equal(res.limit_value, 60000);
    assert_true(res.observed >= 60000);
    assert_int_equal(run_exit_status(&res), 124);
}

static void test_output(void **state)
{
    static const struct {
        uint64_t limit;
        enum limit_kind kind;
        const char *text;
        bool counted;
    } rows[] = {{0, LIMIT_NONE, "hello", false},
                {5, LIMIT_NONE, "hello", true},
                {100, LIMIT_NONE, "hello", true},
                {4, LIMIT_OUTPUT, "hell", true}};
    struct temp *t = *state;

    FOR_EACH(row, rows)
    {
        struct made m = {0};
        struct run_result res;
        struct error err = {0};
        char *text;
        int out;

        temp_write(t, "out", "", 0);
        out = openat(t->fd, "out", O_WRONLY | O_CLOEXEC);
        CHECK_OK(run("print", "hello", (struct box_limits){.output_bytes = row->limit}, out, &m,
                     &res, &err),
                 err);
        (void)close(out);
        text = temp_read(t, "out", NULL);
        CHECK(strcmp(text, row->text) == 0, "limit %llu: '%s'", (unsigned long long)row->limit,
              text);
        free(text);
        CHECK(res.limit == row->kind && res.output_counted == row->counted, "limit %llu: kind %d",
              (unsigned long long)row->limit, res.limit);
        assert_int_equal(res.output_bytes, 5);
    }
}

/* Sent while the box hangs: passed on, and the command ends by it. */
static void test_signal(void **state)
{
    struct made m = {0};
    struct run_result res;
    struct error err = {0};
    pid_t self = getpid(), pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)usleep(60000);
        (void)kill(self, SIGTERM);
        _exit(0);
    }
    CHECK_OK(run("hang", NULL, (struct box_limits){.wall_usec = 5000000}, -1, &m, &res, &err), err);
    (void)waitpid(pid, NULL, 0);
    assert_int_equal(res.signal, SIGTERM);
    assert_int_equal(res.limit, LIMIT_NONE);
    assert_int_equal(run_exit_status(&res), 143);
}

static void test_far_deadline(void **state)
{
    struct made m = {0};
    struct run_result res;
    struct error err = {0};

    (void)state;
    CHECK_OK(run("exit", "0", (struct box_limits){.wall_usec = UINT64_MAX - 5}, -1, &m, &res, &err),
             err);
    assert_int_equal(res.limit, LIMIT_NONE);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("the exit status is the command's own, or says which limit", test_status),
        CLAIM("a limit that is reached before the command runs is told as that limit",
              test_status_before_start),
        CLAIM("a limit is told with its value and what was seen", test_words),
        CLAIM("limits, grades and belts have names", test_names),
        CLAIM("a run ends as its command ends", test_runs),
        CLAIM("a run that is refused does not start", test_refused),
        CLAIM("a command that hangs is ended by its time limit", test_time),
        CLAIM_IN_TEMP("not a byte more than the output limit comes out", test_output),
        CLAIM("a signal is passed on to the command", test_signal),
        CLAIM("a far deadline is far", test_far_deadline),
    };

    return RUN_CLAIMS("engine/run", claims);
}
