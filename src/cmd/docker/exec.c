/* SPDX-License-Identifier: Apache-2.0 */
/* The hot path: one file tool of an agent makes twenty of these. Find the box, run, leave. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "cmd/docker/docker.h"
#include "cmd/docker/env.h"
#include "cmd/docker/flags.h"
#include "cmd/docker/native_fs.h"
#include "cmd/docker/outcome.h"
#include "sandbox/sandbox.h"

enum { X_INTERACTIVE, X_TTY, X_DETACH, X_WORKDIR, X_ENV, X_ENV_FILE, X_USER, X_PRIVILEGED, X_KEYS };

static const struct flag rows[] = {
    {"interactive", 'i', X_INTERACTIVE, NULL, "our stdin is the command's"},
    {"tty", 't', X_TTY, NULL, "give it a terminal"},
    {"detach", 'd', X_DETACH, NULL, "run it in the background; it dies with the box"},
    {"workdir", 'w', X_WORKDIR, "PATH", "folder that it starts in"},
    {"env", 'e', X_ENV, "NAME[=VALUE]", "set a variable; NAME alone takes it from here"},
    {"env-file", 0, X_ENV_FILE, "FILE", "set the variables of a file"},
    {"user", 'u', X_USER, "USER[:GROUP]", "user in the box"},
    {"privileged", 0, X_PRIVILEGED, NULL, NULL},
    {"detach-keys", 0, X_KEYS, "KEYS", NULL},
};

struct words {
    struct sandbox_exec exec;
    struct env files, given;
};

static int on_flag(void *arg, const struct flags *f)
{
    struct words *w = arg;
    struct error err;
    int r = 0;

    switch (f->flag->id) {
    case X_INTERACTIVE:
        w->exec.interactive = f->on;
        break;
    case X_TTY:
        w->exec.terminal = f->on;
        break;
    case X_DETACH:
        w->exec.detach = f->on;
        break;
    case X_WORKDIR:
        w->exec.workdir = f->value;
        break;
    case X_USER:
        w->exec.user = f->value;
        break;
    case X_ENV:
        r = env_set(&w->given, f->value, &err);
        break;
    case X_ENV_FILE:
        r = env_read_file(&w->files, f->value, &err);
        break;
    case X_PRIVILEGED:
        if (f->on)
            return -say_daemon("--privileged is refused: a box never has privileges over the host");
        break;
    default: /* --detach-keys: there is nothing to detach from */
        break;
    }
    if (r < 0 && f->flag->id == X_ENV) {
        (void)fprintf(stderr, "docker: %s\nSee 'docker exec --help'.\n", err.msg);
        return -FLAGS_FAILED;
    }
    if (r < 0)
        (void)fprintf(stderr, "%s\n", err.msg);
    return r < 0 ? -1 : 0;
}

/* ---- OPENCLAW_PREPEND_PATH ---- */

static const char prepend[] = "OPENCLAW_PREPEND_PATH";

/* Without an answer from the box, only folders that every system has are believed. */
static bool is_usual(const char *path)
{
    static const char *const usual[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                        "/usr/bin",        "/sbin",          "/bin"};

    for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
        if (strcmp(path, usual[i]) == 0)
            return true;
    return false;
}

static bool exists_inside(int root, const char *path)
{
    autoclose int fd = -1;

    if (path[0] != '/')
        return false; /* also "", which would mean the current folder */
    if (root < 0)
        return is_usual(path);
    fd = path_open(root, path[1] ? path + 1 : ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
                   PATH_IN_ROOT);
    return fd >= 0;
}

/*
 * The gateway puts its own PATH here, and the command in front of the box's. What is not in the box
 * is taken out. Nothing left must not mean "": the shell would put the current folder first.
 */
static int clean_path(const struct box_record *r, struct env *env, struct error *err)
{
    const char *value = env_find(env, prepend);
    autofree char *copy = NULL;
    autoclose int root = -1;
    struct error ignored;
    autobuf kept;

    buf_init(&kept, LIMIT_DOCKER_ENV_STRING);
    if (!value)
        return 0;
    root = sandbox_open_inside(r, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0, &ignored);
    copy = strdup(value);
    if (!copy)
        abort();
    buf_printf(&kept, "%s=", prepend);
    for (char *save = NULL, *p = strtok_r(copy, ":", &save); p; p = strtok_r(NULL, ":", &save))
        if (exists_inside(root, p))
            buf_printf(&kept, "%s%s", kept.data[kept.len - 1] == '=' ? "" : ":", p);
    if (kept.data[kept.len - 1] == '=')
        buf_puts(&kept, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    return kept.failed ? 0 : env_set(env, kept.data, err);
}

/* ---- the verb ---- */

static int make_env(const struct box_record *r, struct words *w, struct error *err)
{
    int n = 0;

    for (size_t i = 0; i < w->given.n && n >= 0; i++)
        n = env_set(&w->files, w->given.list[i], err);
    if (n >= 0)
        n = clean_path(r, &w->files, err);
    w->exec.env = w->files.list;
    return n;
}

static int say_failure(const struct box_record *r, const char *ref, const struct error *err)
{
    struct box_state state;
    struct error ignored;

    if (err->code == ERR_NOT_FOUND)
        return say_daemon("container %s is not running", r->id);
    if (err->code == ERR_DENIED && sandbox_state(r, &state, &ignored) >= 0 && state.paused)
        return say_daemon("Container %s is paused, unpause the container before exec", ref);
    (void)fprintf(stderr, "%s%s\n",
                  strncmp(err->msg, "unable to find ", 15) == 0
                      ? "" /* a user or a group: found out before anything is executed */
                      : "OCI runtime exec failed: exec failed: ",
                  err->msg);
    return 126;
}

/* A command in the background has nobody to tell its status: what cannot be begun is the daemon's
 * refusal. */
static int say_outcome(const struct box_record *r, const struct words *w,
                       const struct run_result *res)
{
    static const char before[] = "OCI runtime exec failed: exec failed: ";
    char text[sizeof(before) + 64];
    int status;

    (void)snprintf(text, sizeof(text), "%s%s", w->exec.detach ? "Error response from daemon: " : "",
                   before);
    status =
        outcome_status(res, text, w->exec.argv[0], w->exec.workdir ? w->exec.workdir : r->workdir);
    return w->exec.detach && status ? 1 : status;
}

static int run(const char *ref, struct words *w)
{
    autoptr(box_record) r = say_find(ref);
    struct run_result res = {0};
    struct error err;

    if (!r)
        return 1;
    if (make_env(r, w, &err) < 0) {
        (void)fprintf(stderr, "docker: %s\n", err.msg);
        return STATUS_REFUSED;
    }
    if (w->exec.workdir && w->exec.workdir[0] && w->exec.workdir[0] != '/') {
        (void)fprintf(stderr, "OCI runtime exec failed: exec failed: Cwd must be an absolute path: "
                              "unknown\n");
        return 126;
    }
    if (sandbox_exec(r, &w->exec, &res, &err) < 0)
        return say_failure(r, ref, &err);
    return say_outcome(r, w, &res);
}

int cmd_exec(int argc, char **argv)
{
    struct flags f = {.verb = "exec",
                      .usage = "CONTAINER COMMAND [ARG...]",
                      .rows = rows,
                      .n_rows = sizeof(rows) / sizeof(*rows),
                      .words_end_flags = true,
                      .argc = argc,
                      .argv = argv};
    autofree char **native = NULL;
    struct words w = {0};
    int status;

    if (!flags_read(&f, 2, -1, on_flag, &w)) {
        status = f.status;
    } else if (w.exec.terminal && w.exec.interactive && !isatty(STDIN_FILENO)) {
        (void)fprintf(stderr, "the input device is not a TTY\n");
        status = 1;
    } else {
        w.exec.argv = f.words + 1;
        if (native_fs_match(w.exec.argv, &native)) {
            w.exec.argv = native;
            w.exec.program = native_fs_program(&w.exec.program_bytes);
        }
        status = run(f.words[0], &w);
    }
    env_done(&w.files);
    env_done(&w.given);
    return status;
}
