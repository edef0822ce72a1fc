/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files are, as OpenClaw's own variables say. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/internal.h"

static const char *set_variable(const char *name)
{
    const char *v = getenv(name);

    return v && v[0] ? v : NULL;
}

/* All of it or nothing: a path that is cut names another file. */
static int put(char *ret, size_t size, struct error *err, const char *a, const char *b)
{
    int n = snprintf(ret, size, "%s%s", a, b);

    if (n < 0 || (size_t)n >= size)
        return error_set(err, ERR_TOO_LARGE, "%s: a path of %d bytes: at most %zu",
                         file_show(a).text, n, size - 1);
    return 0;
}

/* $HOME, else the line of /etc/passwd: a static program cannot load NSS. */
static int find_home(char *ret, size_t size, struct error *err)
{
    const char *env = getenv("HOME");
    struct passwd *pw;
    FILE *f;
    int r = -1;

    if (env && env[0] == '/')
        return put(ret, size, err, env, "");
    f = fopen("/etc/passwd", "re");
    while (f && (pw = fgetpwent(f)))
        if (pw->pw_uid == geteuid() && pw->pw_dir[0] == '/') {
            r = put(ret, size, err, pw->pw_dir, "");
            break;
        }
    if (f)
        (void)fclose(f);
    return r < 0 ? error_set(err, ERR_NOT_FOUND, "no home folder; set HOME") : 0;
}

int config_full_path(const struct config *c, const char *path, char *ret, size_t size,
                     struct error *err)
{
    char here[LIMIT_PATH];

    if (path[0] == '/')
        return put(ret, size, err, path, "");
    if (path[0] == '~' && (path[1] == '/' || !path[1]))
        return put(ret, size, err, c->home, path + 1);
    if (!getcwd(here, sizeof(here) - 1))
        return error_sys(err, -errno, "find the current folder");
    if (strcmp(path, ".") == 0)
        return put(ret, size, err, here, "");
    if (strncmp(path, "./", 2) == 0)
        path += 2;
    if (strcmp(here, "/") != 0)
        memcpy(here + strlen(here), "/", 2);
    return put(ret, size, err, here, path);
}

static int find_state_dir(struct config *c, struct error *err)
{
    const char *state = set_variable("OPENCLAW_STATE_DIR");

    if (state)
        return config_full_path(c, state, c->state_dir, sizeof(c->state_dir), err);
    return put(c->state_dir, sizeof(c->state_dir), err, c->home, "/.openclaw");
}

int config_find_paths(struct config *c, const char *file, struct error *err)
{
    const char *home = set_variable("OPENCLAW_HOME");
    const char *named = file ? file : set_variable("OPENCLAW_CONFIG_PATH");
    int r;

    r = find_home(c->home, sizeof(c->home), err);
    if (r < 0)
        return r;
    if (home) {
        char full[LIMIT_PATH];

        r = config_full_path(c, home, full, sizeof(full), err);
        if (r >= 0)
            r = put(c->home, sizeof(c->home), err, full, "");
        if (r < 0)
            return r;
    }
    r = find_state_dir(c, err);
    if (r < 0)
        return r;
    c->main_named = named != NULL;
    if (named)
        return config_full_path(c, named, c->main_file, sizeof(c->main_file), err);
    return put(c->main_file, sizeof(c->main_file), err, c->state_dir, "/openclaw.json");
}
