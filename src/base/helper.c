/* SPDX-License-Identifier: Apache-2.0 */
#include "base/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"

#define MAX_KEEP 8 /* variables for one helper */

/* Beside us, or, for the drop-in in libexec/clawden/bin, in the bin beside libexec. */
bool helper_find(const char *name, char *path, size_t size)
{
    static const char *const from_here[] = {"", "../../../bin/"};
    ssize_t n = readlink("/proc/self/exe", path, size - 64);
    char *slash;

    if (n <= 0)
        return false;
    path[n] = 0;
    slash = strrchr(path, '/');
    for (size_t i = 0; i < sizeof(from_here) / sizeof(*from_here); i++) {
        (void)snprintf(slash + 1, 64, "%s%s", from_here[i], name);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

static bool has_user_manager(void)
{
    const char *xdg = getenv("XDG_RUNTIME_DIR");
    char path[LIMIT_PATH];

    if (!xdg || geteuid() == 0)
        return false;
    (void)snprintf(path, sizeof(path), "%s/systemd/private", xdg);
    return access(path, F_OK) == 0 && access("/usr/bin/systemd-run", X_OK) == 0;
}

/* Only if there is a user manager does it come back, or not at all. */
static void run_as_unit(const char *path, const char *const *keep)
{
    static char set[MAX_KEEP][LIMIT_PATH + 64];
    const char *argv[MAX_KEEP + 10] = {"systemd-run",
                                       "--user",
                                       "--quiet",
                                       "--collect",
                                       "--property=Delegate=yes",
                                       "--property=KillMode=process"};
    size_t n = 6;

    for (size_t i = 0; keep[i] && i < MAX_KEEP; i++) {
        const char *value = getenv(keep[i]);

        if (!value)
            continue;
        (void)snprintf(set[i], sizeof(set[i]), "--setenv=%s=%s", keep[i], value);
        argv[n++] = set[i];
    }
    argv[n++] = "--";
    argv[n++] = path;
    (void)execv("/usr/bin/systemd-run", (char *const *)argv);
}

static __attribute__((noreturn)) void become(const char *path, const char *const *keep)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const char *name = strrchr(path, '/');
    sigset_t none;

    (void)setsid();
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 0; i < 3; i++)
        (void)dup2(null, i);
    fd_close_range(3, ~0u);
    (void)!chdir("/");
    if (has_user_manager())
        run_as_unit(path, keep);
    (void)execl(path, name ? name + 1 : path, (char *)NULL);
    _exit(127);
}

void helper_start(const char *path, const char *const *keep)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (fork() != 0)
            _exit(0);
        become(path, keep);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void helper_raise_descriptors(unsigned long most)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) < 0)
        return;
    l.rlim_cur = l.rlim_max > most ? most : l.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &l);
}
