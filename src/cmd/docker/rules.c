/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/docker/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/helper.h"
#include "base/limits.h"
#include "cmd/docker/docker.h"
#include "sandbox/sandbox.h"

#define LABEL_SESSION "openclaw.sessionKey"

/* Whose settings: the client says for which session it makes a box. */
static const char *session_of(const struct box_record *r)
{
    for (size_t i = 0; i < r->n_labels; i++)
        if (strcmp(r->labels[i].name, LABEL_SESSION) == 0 &&
            strncmp(r->labels[i].value, "agent:", 6) == 0)
            return r->labels[i].value;
    return NULL;
}

static __attribute__((noreturn)) void ask(const char *path, const struct box_record *r, int out)
{
    const char *session = session_of(r);
    const char *argv[] = {"clawden",  "sandbox", "network", "--settings", "--network",
                          r->network, NULL,      NULL,      NULL};

    if (session) {
        argv[6] = "--session";
        argv[7] = session;
    }
    if (dup2(out, STDOUT_FILENO) < 0)
        _exit(127);
    (void)execv(path, (char *const *)argv);
    _exit(127);
}

/* Its text, in *ret to be freed; the length, or -errno. -EPERM: it said no, on stderr. */
static ssize_t run(const char *path, const struct box_record *r, char **ret)
{
    autofree char *text = malloc(LIMIT_WISH_TEXT);
    int p[2], status;
    ssize_t n;
    pid_t pid;

    if (!text)
        return -ENOMEM;
    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        ask(path, r, p[1]);
    (void)close(p[1]);
    n = pid < 0 ? -EAGAIN : fd_read_full(p[0], text, LIMIT_WISH_TEXT);
    (void)close(p[0]);
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return -ECHILD;
    if (n < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
        return -EPERM;
    *ret = TAKE_PTR(text);
    return n;
}

bool rules_ask(struct box_record *r)
{
    autofree char *text = NULL;
    char path[LIMIT_PATH];
    struct error err;
    ssize_t n;

    if (!sandbox_has_network(r))
        return true;
    if (!helper_find("clawden", path, sizeof(path))) {
        (void)say_refused("network '%s': the program 'clawden', which reads the settings, is not "
                          "installed beside this one",
                          r->network);
        return false;
    }
    n = run(path, r, &text);
    if (n < 0) {
        (void)say_refused("the settings of network '%s' could not be read: see 'clawden config "
                          "check'",
                          r->network);
        return false;
    }
    if (wish_parse(text, (size_t)n, &r->egress, &err) < 0) {
        (void)say_refused("%s", err.msg);
        return false;
    }
    return true;
}
