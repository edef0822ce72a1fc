/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a tree of processes: ours, which needs no box. */
#include "engine/native/watch.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "engine/engine.h"
#include "tests/test.h"

/* A child that stands for init, with n children of its own that each hold `bytes`; ready when this
 * returns. */
static pid_t make_tree(int n, size_t bytes)
{
    char byte;
    int p[2];
    pid_t pid;

    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (int i = 0; i < n; i++)
            if (fork() == 0) {
                char *m = bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                : NULL;

                for (size_t at = 0; m && at < bytes; at += 4096)
                    m[at] = 1;
                (void)!write(p[1], "x", 1);
                for (;;)
                    (void)pause();
            }
        (void)!write(p[1], "x", 1);
        for (;;)
            (void)pause();
    }
    for (int i = 0; i < n + 1; i++)
        assert_int_equal(read(p[0], &byte, 1), 1);
    (void)close(p[0]);
    (void)close(p[1]);
    return pid;
}

static void end_tree(pid_t pid)
{
    watch_signal(pid, SIGKILL);
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static bool cannot_watch(void)
{
    return !watch_is_possible() && host_lacks("/proc/self/task/N/children");
}

static void test_counts(void **state)
{
    static const int sizes[] = {0, 1, 5};

    (void)state;
    if (cannot_watch())
        return;
    FOR_EACH(n, sizes)
    {
        struct box_usage u = {0};
        pid_t pid = make_tree(*n, 0);

        watch_tree(pid, &u);
        end_tree(pid);
        CHECK(u.pids == (uint32_t)*n, "%u seen, %d there", u.pids, *n);
    }
}

static void test_memory(void **state)
{
    struct box_usage one = {0}, many = {0};
    pid_t pid;

    (void)state;
    if (cannot_watch())
        return;
    pid = make_tree(1, 8 << 20);
    watch_tree(pid, &one);
    end_tree(pid);
    pid = make_tree(3, 8 << 20);
    watch_tree(pid, &many);
    end_tree(pid);
    CHECK(one.memory_bytes >= 8 << 20, "one: %llu", (unsigned long long)one.memory_bytes);
    CHECK(many.memory_bytes >= 24 << 20, "three: %llu", (unsigned long long)many.memory_bytes);
}

static char state_of(pid_t pid)
{
    char path[32], text[512], *p;
    int fd;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        (void)close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    p = strrchr(text, ')');
    return p ? p[2] : 0;
}

static pid_t first_child(pid_t pid)
{
    char path[64], text[64] = "";
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    (void)!read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    return (pid_t)strtol(text, NULL, 10);
}

static bool becomes(pid_t pid, bool stopped)
{
    for (int i = 0; i < 200; i++) {
        if ((state_of(pid) == 'T') == stopped)
            return true;
        (void)usleep(5000);
    }
    return false;
}

static void test_spares_init(void **state)
{
    pid_t pid, child;

    (void)state;
    if (cannot_watch())
        return;
    pid = make_tree(1, 0);
    child = first_child(pid);
    watch_signal(pid, SIGSTOP);
    assert_true(becomes(child, true));
    assert_int_not_equal(state_of(pid), 'T');
    watch_signal(pid, SIGCONT);
    assert_true(becomes(child, false));
    end_tree(pid);
}

static void test_gone(void **state)
{
    struct box_usage u = {.pids = 9};
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        _exit(0);
    (void)waitpid(pid, NULL, 0);
    watch_tree(pid, &u);
    assert_int_equal(u.pids, 0);
    assert_int_equal(u.cpu_usec, 0);
    watch_signal(pid, SIGKILL);
}

/* A namespace of its own, with one process at a time that lives for one fork. */
static pid_t make_chain(volatile long *beats)
{
    pid_t init = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);

    if (init != 0)
        return init;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fork() == 0)
        for (;;) {
            ++*beats;
            if (fork() > 0)
                _exit(0);
        }
    for (;;)
        if (waitpid(-1, NULL, 0) < 0)
            (void)usleep(1000);
}

static void test_fleeing(void **state)
{
    volatile long *beats =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(beats, MAP_FAILED);
    for (int trial = 0; trial < 40; trial++) {
        pid_t init = make_chain(beats);
        long before;
        int clean = 0;

        if (init < 0)
            skip(); /* no namespaces for this user */
        (void)usleep(10000);
        assert_int_equal(kill(init, SIGSTOP), 0);
        for (int i = 0; i < 4000 && clean < 8; i++)
            clean = watch_stop_namespace(init) ? 0 : clean + 1;
        (void)usleep(5000);
        before = *beats;
        (void)usleep(10000);
        CHECK(*beats == before, "trial %d: it goes on", trial);
        assert_int_equal(clean, 8);
        assert_int_equal(kill(init, SIGKILL), 0);
        assert_int_equal(waitpid(init, NULL, 0), init);
    }
    assert_int_equal(munmap((void *)beats, 4096), 0);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("every process below init is counted, init is not", test_counts),
        CLAIM("the memory of a tree is that of all its processes", test_memory),
        CLAIM("a signal reaches the tree and spares init", test_spares_init),
        CLAIM("a tree that is gone is empty", test_gone),
        CLAIM("what lives for one fork each is stopped, too", test_fleeing),
    };

    return RUN_CLAIMS("engine/watch", claims);
}
