/* SPDX-License-Identifier: Apache-2.0 */
#include "base/state.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/path.h"

/*
 * The home folder of this user without NSS, which a static program cannot load: $HOME, else the
 * line of /etc/passwd.
 */
static const char *home_dir(char *text, size_t size)
{
    const char *env = getenv("HOME");
    char want[32], *line, *save = NULL;

    if (env && env[0] == '/')
        return env;
    if (fd_read_text(AT_FDCWD, "/etc/passwd", text, size) < 0)
        return NULL;
    (void)snprintf(want, sizeof(want), "%u", (unsigned)geteuid());
    for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *field[6] = {line};
        int n = 1;

        for (char *p = line; *p && n < 6; p++)
            if (*p == ':') {
                *p = 0;
                field[n++] = p + 1;
            }
        if (n == 6 && strcmp(field[2], want) == 0) {
            field[5][strcspn(field[5], ":")] = 0;
            return field[5];
        }
    }
    return NULL;
}

/* All of it or nothing: a path that is cut names another folder. */
static int put_path(char *path, size_t size, const char *base, const char *rest, struct error *err)
{
    int n = snprintf(path, size, "%s%s", base, rest);

    if (n < 0 || (size_t)n >= size)
        return error_set(err, ERR_TOO_LARGE,
                         "the path of ClawDen's folder has %d bytes: at most %zu", n, size - 1);
    return 0;
}

int state_data_path(char *path, size_t size, struct error *err)
{
    static char text[LIMIT_SMALL_FILE];
    const char *env = getenv("CLAWDEN_DATA_DIR"), *home;

    if (env && env[0] == '/')
        return put_path(path, size, env, "", err);
    home = home_dir(text, sizeof(text));
    if (!home)
        return error_set(err, ERR_NOT_FOUND, "no home folder: set HOME or CLAWDEN_DATA_DIR");
    return put_path(path, size, home, "/.clawden", err);
}

int state_runtime_path(char *path, size_t size, struct error *err)
{
    const char *env = getenv("CLAWDEN_RUNTIME_DIR"), *xdg = getenv("XDG_RUNTIME_DIR");

    char data[LIMIT_PATH];

    if (env && env[0] == '/')
        return put_path(path, size, env, "", err);
    if (geteuid() == 0)
        return put_path(path, size, "/run/clawden", "", err);
    if (xdg && xdg[0] == '/')
        return put_path(path, size, xdg, "/clawden", err);
    if (state_data_path(data, sizeof(data), err) < 0)
        return -(int)err->code;
    return put_path(path, size, data, "/run", err);
}

/* A folder of ours: owned by us and closed to others, else somebody else prepared it. */
static int open_own(const char *path, struct error *err)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
    autoclose int fd = open(path, flags);
    struct stat st;

    if (fd < 0 && errno == ENOENT) {
        int r = path_make_dirs(path, 0700);

        if (r < 0)
            return error_sys(err, r, "make folder '%s'", path);
        fd = open(path, flags);
    }
    if (fd < 0)
        return error_sys(err, -errno, "open folder '%s'", path);
    if (fstat(fd, &st) < 0)
        return error_sys(err, -errno, "look at folder '%s'", path);
    if (st.st_uid != geteuid() || (st.st_mode & 077))
        return error_set(
            err, ERR_DENIED,
            "folder '%s' belongs to uid %u with mode %04o: it must be yours and closed to others "
            "(chmod 700)",
            path, (unsigned)st.st_uid, (unsigned)st.st_mode & 07777);
    return TAKE_FD(fd);
}

int state_open_runtime(struct error *err)
{
    char path[LIMIT_PATH];
    int r = state_runtime_path(path, sizeof(path), err);

    return r < 0 ? r : open_own(path, err);
}

int state_open_data(struct error *err)
{
    char path[LIMIT_PATH];
    int r = state_data_path(path, sizeof(path), err);

    return r < 0 ? r : open_own(path, err);
}
