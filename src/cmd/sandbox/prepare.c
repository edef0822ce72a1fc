/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/state.h"
#include "cmd/sandbox/sandbox.h"
#include "egress/client.h"

/* May not be the workspace themselves. */
static const char *const system_dirs[] = {
    "/",       "/bin",   "/boot", "/dev", "/etc",     "/home",    "/lib",     "/lib32",    "/lib64",
    "/libx32", "/media", "/mnt",  "/opt", "/proc",    "/root",    "/run",     "/sbin",     "/srv",
    "/sys",    "/tmp",   "/usr",  "/var", "/var/lib", "/var/log", "/var/tmp", "/usr/local"};
/* Nor may anything inside these. */
static const char *const closed_dirs[] = {"/bin",   "/boot",  "/dev",    "/etc",  "/lib",
                                          "/lib32", "/lib64", "/libx32", "/proc", "/run",
                                          "/sbin",  "/sys",   "/usr"};

static int canonical(const char *path, char *real, size_t size)
{
    autoclose int fd = open(path, O_PATH | O_CLOEXEC);

    return fd < 0 ? -errno : path_of_fd(fd, real, size);
}

/* A folder that the workspace must not be or hold: its owner's keys, or our own records. */
static int check_not_holding(const char *ws, const char *path, const char *what, struct error *err)
{
    char real[LIMIT_PATH];

    if (!path || canonical(path, real, sizeof(real)) < 0)
        return 0;
    if (path_is_within(real, ws))
        return error_set(err, ERR_DENIED, "workspace '%s': %s %s ('%s'); choose a folder inside it",
                         ws, strcmp(real, ws) == 0 ? "is" : "holds", what, real);
    return 0;
}

static int check_own(const char *ws, const char *own, struct error *err)
{
    char real[LIMIT_PATH];
    int r = check_not_holding(ws, own, "ClawDen's own folder", err);

    if (r < 0 || canonical(own, real, sizeof(real)) < 0 || !path_is_within(ws, real) ||
        path_is_within(ws + strlen(real), "/workspaces"))
        return r;
    return error_set(err, ERR_DENIED, "workspace '%s': is inside ClawDen's own folder ('%s')", ws,
                     real);
}

static int check_place(const char *ws, struct error *err)
{
    char path[LIMIT_PATH];
    struct error ignored;
    int r;

    for (size_t i = 0; i < sizeof(system_dirs) / sizeof(*system_dirs); i++)
        if (strcmp(ws, system_dirs[i]) == 0)
            return error_set(err, ERR_DENIED,
                             "workspace '%s': is a system folder; choose a folder of your own", ws);
    for (size_t i = 0; i < sizeof(closed_dirs) / sizeof(*closed_dirs); i++)
        if (path_is_within(ws, closed_dirs[i]))
            return error_set(err, ERR_DENIED,
                             "workspace '%s': is inside '%s'; choose a folder of your own", ws,
                             closed_dirs[i]);
    r = check_not_holding(ws, getenv("HOME"), "your home folder", err);
    if (r >= 0)
        r = check_not_holding(ws, getenv("XDG_RUNTIME_DIR"), "your runtime folder", err);
    /* The record must not be writable from inside, nor the spawner's socket be reachable. */
    if (r >= 0 && state_data_path(path, sizeof(path), &ignored) >= 0)
        r = check_own(ws, path, err);
    if (r >= 0 && state_runtime_path(path, sizeof(path), &ignored) >= 0)
        r = check_own(ws, path, err);
    return r;
}

/* Opened once; everything after works on the descriptor. */
static int open_workspace(struct options *o, struct error *err)
{
    const char *given = o->workspace ? o->workspace : getenv("WORKSPACE");
    struct stat st;
    int fd, r;

    if (!given || !given[0])
        given = ".";
    if (strpbrk(given, "\n\r"))
        return error_set(err, ERR_INVALID, "workspace: its name holds a line break");
    fd = open(given, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, ERR_SYS,
                         "workspace '%s': %s; --workspace (or $WORKSPACE) names a folder that is "
                         "there",
                         given, strerror(errno));
    o->spec.workspace_fd = fd;
    if (fstat(fd, &st) < 0)
        return error_sys(err, -errno, "workspace '%s'", given);
    r = path_of_fd(fd, o->workspace_path, sizeof(o->workspace_path));
    if (r < 0)
        return error_sys(err, r, "workspace '%s': find its path", given);
    if (strpbrk(o->workspace_path, "\n\r"))
        return error_set(err, ERR_INVALID, "workspace: its path holds a line break");
    o->spec.workspace_path = o->workspace_path;
    r = check_place(o->workspace_path, err);
    if (r < 0)
        return r;
    if (faccessat(fd, ".", o->spec.workspace_ro ? R_OK | X_OK : R_OK | W_OK | X_OK, AT_EACCESS) < 0)
        return error_sys(err, -errno, "workspace '%s': not %s for you%s", given,
                         o->spec.workspace_ro ? "readable" : "writable",
                         o->spec.workspace_ro ? "" : " (--ro mounts it read-only)");
    return 0;
}

static int open_root(struct options *o, struct error *err)
{
    struct stat st;
    int fd;

    if (o->spec.root != ROOT_DIR)
        return 0;
    fd = open(o->rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, -errno, "root folder '%s'", o->rootfs);
    o->spec.root_fd = fd;
    if (stat("/", &st) == 0) {
        struct stat other;

        if (fstat(fd, &other) == 0 && other.st_ino == st.st_ino && other.st_dev == st.st_dev)
            return error_set(err, ERR_DENIED,
                             "root folder '%s': is the host's root; use --rootfs host", o->rootfs);
    }
    return 0;
}

const char *box_workspace(const struct options *o)
{
    if (o->spec.root == ROOT_DIR && !path_is_within(o->workspace_path, "/workspace"))
        return "/workspace";
    return o->workspace_path;
}

static void default_env(struct options *o, const char *name, const char *value)
{
    size_t n = strlen(name);
    char *entry;

    for (size_t i = 0; i < o->n_env; i++)
        if (strncmp(o->env[i], name, n) == 0 && o->env[i][n] == '=')
            return;
    if (asprintf(&entry, "%s=%s", name, value) < 0)
        abort();
    o->env = realloc(o->env, (o->n_env + 2) * sizeof(*o->env));
    if (!o->env)
        abort();
    o->env[o->n_env++] = entry;
    o->env[o->n_env] = NULL;
}

/* A clean environment: nothing of the caller's but the terminal's name and its language. */
static void make_env(struct options *o)
{
    const char *term = getenv("TERM"), *lang = getenv("LANG");

    default_env(o, "PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
    default_env(o, "HOME", "/tmp");
    default_env(o, "USER", "sandbox");
    default_env(o, "LANG", lang && strncmp(lang, "C", 1) == 0 ? lang : "C.UTF-8");
    default_env(o, "TERM", term && term[0] && !strpbrk(term, "/\n") ? term : "dumb");
    default_env(o, "WORKSPACE", box_workspace(o));
    for (size_t i = 0; o->egress && client_proxy_env[i]; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(client_proxy_env[i], "="),
                       client_proxy_env[i]);
        default_env(o, name, client_proxy_env[i] + strlen(name) + 1);
    }
}

int prepare(struct options *o, struct error *err)
{
    int r = open_workspace(o, err);

    if (r >= 0)
        r = open_root(o, err);
    if (r >= 0)
        make_env(o);
    return r;
}
