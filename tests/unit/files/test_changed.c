/* SPDX-License-Identifier: Apache-2.0 */
/* files_changed(): what is named, what is not, and what a hostile tree does to it. */
#include "files/files.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "tests/test.h"

static const struct files_walk all = {.with_git = true, .stay = true};

static int64_t now_ns(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A moment that is later than the time of anything which happened so far: from 6.13 on, a file's
 * may be ahead of the coarse clock. */
static int64_t next_tick(void)
{
    int64_t before = now_ns(CLOCK_REALTIME);

    while (now_ns(CLOCK_REALTIME_COARSE) <= before)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return now_ns(CLOCK_REALTIME_COARSE);
}

static void put(const struct temp *t, const char *path)
{
    temp_write(t, path, "x", 1);
}

static void folder(const struct temp *t, const char *path)
{
    assert_int_equal(mkdirat(t->fd, path, 0755), 0);
}

/* The names, escaped, with a blank between; *ret has the rest, without names. */
static void check_changed(const struct temp *t, int64_t since, const struct files_walk *how,
                          const char *want, struct files_list *ret)
{
    struct files_root root;
    struct files_list l;
    struct error err;
    autobuf b;

    buf_init(&b, 100000);
    files_root_init(&root, t->fd, NULL);
    CHECK_OK(files_changed(&root, since, how, &l, &err), err);
    for (size_t i = 0; i < l.n; i++) {
        buf_puts(&b, i ? " " : "");
        files_name_escape(&b, files_list_name(&l, i), strlen(files_list_name(&l, i)));
    }
    if (want)
        CHECK_STR(b.len ? b.data : "", want, "changed");
    if (ret)
        *ret = (struct files_list){
            .n = l.n, .visited = l.visited, .unreadable = l.unreadable, .stop = l.stop};
    else
        assert_true(l.stop == FILES_ALL && !l.unreadable);
    files_list_done(&l);
}

static void test_made_and_changed(void **state)
{
    struct temp *t = *state;
    int64_t since;

    folder(t, "src");
    folder(t, ".git");
    put(t, "old");
    put(t, "kept");
    put(t, "src/a");
    put(t, "src/b");
    since = next_tick();
    check_changed(t, since, &all, "", NULL);
    put(t, "src/a");
    check_changed(t, since, &all, "src/a", NULL);
    put(t, "new");
    put(t, "src/new");
    put(t, ".git/hook");
    assert_int_equal(fchmodat(t->fd, "old", 0700, 0), 0);
    check_changed(t, since, &all, ".git/hook new old src/a src/new", NULL);
}

/* A time that was set back shows in the other one. */
static void test_times_set_back(void **state)
{
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct temp *t = *state;
    int64_t since = next_tick();

    put(t, "f");
    assert_int_equal(utimensat(t->fd, "f", long_ago, 0), 0);
    check_changed(t, since, &all, "f", NULL);
}

static void test_folders(void **state)
{
    struct temp *t = *state;
    int64_t since;

    folder(t, "a");
    folder(t, "a/b");
    folder(t, "a/b/c");
    folder(t, "z");
    put(t, "a/b/f");
    put(t, "a/b/g");
    put(t, "top");
    since = next_tick();
    assert_int_equal(unlinkat(t->fd, "a/b/f", 0), 0);
    check_changed(t, since, &all, "a/b/", NULL); /* what is left of it */
    put(t, "a/b/c/n");
    check_changed(t, since, &all, "a/b/ a/b/c/n", NULL); /* n does not tell why a/b has changed */
    put(t, "a/b/g");
    check_changed(t, since, &all, "a/b/c/n a/b/g", NULL);
    folder(t, "z/empty");
    check_changed(t, since, &all, "a/b/c/n a/b/g z/empty/", NULL);
    assert_int_equal(unlinkat(t->fd, "top", 0), 0);
    check_changed(t, since, &all, "./ a/b/c/n a/b/g z/empty/", NULL);
    since = next_tick();
    assert_int_equal(renameat(t->fd, "z", t->fd, "y"), 0);
    check_changed(t, since, &all, "y/", NULL);
}

/* Where the file system says when a folder was made: else those above are named as well. */
static void test_new_folders(void **state)
{
    struct temp *t = *state;
    struct statx x;
    int64_t since;

    folder(t, "old");
    put(t, "old/f");
    if (statx(t->fd, "old", 0, STATX_BTIME, &x) < 0 || !(x.stx_mask & STATX_BTIME)) {
        host_lacks("times of birth");
        return;
    }
    since = next_tick();
    folder(t, "a");
    folder(t, "a/b");
    folder(t, "a/b/c");
    put(t, "a/b/c/f");
    check_changed(t, since, &all, "a/b/c/f", NULL);
    put(t, "old/new");
    check_changed(t, since, &all, "a/b/c/f old/new", NULL);
    assert_int_equal(unlinkat(t->fd, "old/f", 0), 0);
    assert_int_equal(unlinkat(t->fd, "old/new", 0), 0);
    check_changed(t, since, &all, "a/b/c/f old/", NULL);
}

/* "a-b" sorts between "a" and "a/b"; with its slash, "a/" does not. */
static void test_order(void **state)
{
    struct temp *t = *state;
    int64_t since = next_tick();

    folder(t, "a");
    folder(t, "a/e");
    put(t, "a-b");
    put(t, "a.b");
    put(t, "a/b");
    put(t, "a0");
    check_changed(t, since, &all, "a-b a.b a/b a/e/ a0", NULL);
}

static void test_kinds(void **state)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct temp *t = *state;
    int64_t since = next_tick();
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/sock", t->path);
    assert_int_equal(bind(s, (struct sockaddr *)&at, sizeof(at)), 0);
    (void)close(s);
    assert_int_equal(mkfifoat(t->fd, "fifo", 0600), 0); /* and it does not wait for a writer */
    assert_int_equal(symlinkat("/etc", t->fd, "link"), 0);
    assert_int_equal(symlinkat(".", t->fd, "loop"), 0);
    check_changed(t, since, &all, "fifo link loop sock", NULL);
}

static void test_names(void **state)
{
    static const char *const names[] = {"\xff\xfe", "new\nline", "\x1b[31m", "b\\s",
                                        "\xe2\x80\xae"};
    struct temp *t = *state;
    int64_t since = next_tick();

    FOR_EACH(name, names)
    put(t, *name);
    check_changed(t, since, &all, "\\x1b[31m b\\\\s new\\x0aline \\xe2\\x80\\xae \\xff\\xfe", NULL);
}

/* ---- bounds ---- */

static void test_visits(void **state)
{
    struct files_walk few = all;
    struct temp *t = *state;
    struct files_list l;
    int64_t since = next_tick();
    char name[32];

    few.visit = 100;
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof(name), "f%d", i);
        put(t, name);
    }
    check_changed(t, since, &few, NULL, &l);
    assert_int_equal(l.stop, FILES_STOP_WORK);
    assert_int_equal(l.visited, 100);
    assert_int_equal(l.n, 100);
    few.visit = 0;
    few.limit = 10;
    check_changed(t, since, &few, "f0 f1 f10 f100 f1000 f1001 f1002 f1003 f1004 f1005", &l);
    assert_int_equal(l.stop, FILES_STOP_MANY);
    few.limit = 0;
    few.deadline_ms = 1;
    check_changed(t, since, &few, NULL, &l);
    assert_int_equal(l.stop, FILES_STOP_TIME);
}

/* Deeper than any path can be; to be removed from below. */
static void test_depth(void **state)
{
    struct temp *t = *state;
    int at = dup(t->fd), next;
    struct files_list l;
    int64_t since = next_tick();
    size_t before = open_fds();

    for (int i = 0; i < 4000; i++) {
        assert_int_equal(mkdirat(at, "d", 0755), 0);
        next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(at);
        at = next;
    }
    check_changed(t, since, &all, NULL, &l);
    assert_int_equal(l.stop, FILES_STOP_WORK);
    assert_int_equal(l.visited, LIMIT_FILES_DEPTH);
    assert_int_equal(open_fds(), before);
    for (int i = 0; i < 4000; i++) {
        next = openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(at);
        at = next;
        assert_int_equal(unlinkat(at, "d", AT_REMOVEDIR), 0);
    }
    (void)close(at);
}

static void test_closed_folder(void **state)
{
    struct temp *t = *state;
    struct files_list l;
    int64_t since;

    folder(t, "closed");
    put(t, "closed/f");
    since = next_tick();
    put(t, "closed/f");
    assert_int_equal(fchmodat(t->fd, "closed", 0, 0), 0);
    /* root reads every folder */
    check_changed(t, since, &all, geteuid() == 0 ? "closed/f" : "closed/", &l);
    assert_int_equal(l.unreadable, geteuid() != 0);
    assert_int_equal(fchmodat(t->fd, "closed", 0700, 0), 0);
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    (void)close(fd);
    return ok;
}

/* Mounts of its own, for whoever we are. */
static bool leave_host(void)
{
    char uid[32], gid[32];

    (void)snprintf(uid, sizeof(uid), "0 %u 1", geteuid());
    (void)snprintf(gid, sizeof(gid), "0 %u 1", getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_text("/proc/self/uid_map", uid) &&
           write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/gid_map", gid);
}

/* In a mount namespace of its own: 0 if the mount was left alone. */
static int look_at_mount(const struct temp *t, int64_t since)
{
    struct files_walk enter = all;
    struct files_root root;
    struct files_list l;
    struct error err;
    size_t n[2] = {0};

    if (mount("none", temp_path(t, "m"), "tmpfs", 0, NULL) < 0)
        return 77;
    if (open(temp_path(t, "m/inside"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600) < 0)
        return 1;
    files_root_init(&root, open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), NULL);
    enter.stay = false;
    for (int i = 0; i < 2; i++) {
        if (files_changed(&root, since, i ? &enter : &all, &l, &err) < 0 || l.unreadable)
            return 1;
        for (size_t k = 0; k < l.n; k++)
            n[i] += strcmp(files_list_name(&l, k), "m/inside") == 0;
        files_list_done(&l);
    }
    return n[0] == 0 && n[1] == 1 ? 0 : 2;
}

static void test_mounts(void **state)
{
    struct temp *t = *state;
    int64_t since;
    int status;
    pid_t pid;

    folder(t, "m");
    since = next_tick();
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(leave_host() ? look_at_mount(t, since) : 77);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77 && host_lacks("mounts of its own"))
        return;
    assert_int_equal(WEXITSTATUS(status), 0);
}

static const struct CMUnitTest claims[] = {
    CLAIM_IN_TEMP("what was made, written or given another mode is named, .git too",
                  test_made_and_changed),
    CLAIM_IN_TEMP("a time that was set back hides nothing", test_times_set_back),
    CLAIM_IN_TEMP("a folder is named if nothing in it tells why it has changed", test_folders),
    CLAIM_IN_TEMP("what is in new folders stands for them", test_new_folders),
    CLAIM_IN_TEMP("names are sorted as they are written", test_order),
    CLAIM_IN_TEMP("links, FIFOs and sockets are named, and not followed or opened", test_kinds),
    CLAIM_IN_TEMP("strange names are names", test_names),
    CLAIM_IN_TEMP("visits, names and time are bounded, and it is told", test_visits),
    CLAIM_IN_TEMP("4,000 folders in each other are bounded, and it is told", test_depth),
    CLAIM_IN_TEMP("a folder that cannot be read is told", test_closed_folder),
    CLAIM_IN_TEMP("other mounts are not entered", test_mounts),
};

int main(void)
{
    return RUN_CLAIMS("files/changed", claims);
}
