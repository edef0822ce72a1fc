/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which belts a command of a running box has on. Init is not asked: in a box with a range of ids it
 * may change its user, and no command may. So one is started that only waits, looked at from
 * outside, and killed; it is in no record and does not count as a use of the box.
 */
#include "engine/native/belts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"
#include "sandbox/life.h"

#define LOOKS   400
#define LOOK_US 2500

/* The children of a process, as they are now. */
static size_t children_of(pid_t pid, pid_t *ret, size_t max)
{
    char path[64], text[LIMIT_CGROUP_FILE], *at = text, *end;
    size_t n = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    if (fd_read_value(AT_FDCWD, path, text, sizeof(text)) <= 0)
        return 0;
    for (long one; n < max && (one = strtol(at, &end, 10)) > 0 && end != at; at = end)
        ret[n++] = (pid_t)one;
    return n;
}

/* Executed already: until then it is a copy of its reaper. */
static bool is_command(pid_t pid)
{
    char path[64], name[64] = "";

    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    return fd_read_value(AT_FDCWD, path, name, sizeof(name)) > 0 && strncmp(name, "sleep", 5) == 0;
}

static pid_t find_command(pid_t init)
{
    pid_t reapers[64], commands[64];
    size_t n = children_of(init, reapers, 64);

    for (size_t i = 0; i < n; i++) {
        size_t m = children_of(reapers[i], commands, 64);

        for (size_t k = 0; k < m; k++)
            if (is_command(commands[k]))
                return commands[k];
    }
    return 0;
}

static int look(struct box *b, uint32_t put_on, uint32_t *ret_held)
{
    for (int i = 0; i < LOOKS; i++) {
        pid_t pid = find_command(b->init_pid);
        uint32_t seen = 0;

        if (pid > 0 && belts_read(pid, ret_held, &seen) >= 0) {
            /* What /proc cannot show was put on by system calls that succeeded. */
            *ret_held |= put_on & ~seen;
            return 0;
        }
        (void)usleep(LOOK_US);
    }
    return -1;
}

int sandbox_belts(const struct box_record *r, uint32_t *ret_held, struct error *err)
{
    static char sleeper[] = "sleep", long_enough[] = "20";
    char *const argv[] = {sleeper, long_enough, NULL};
    autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    autohold h = HOLD_EMPTY;
    struct box *b;
    char **env;
    int e = hold_open(r, false, &h, err);

    if (e >= 0)
        e = hold_attach(&h, &b, err);
    if (e < 0)
        return e;
    env = exec_environment(r, NULL, "/", false);
    e = b->ops->exec(
        b,
        &(struct box_exec){
            .argv = argv, .env = env, .stdio = {null, null, null}, .uid = r->uid, .gid = r->gid},
        err);
    free(env);
    if (e >= 0 && look(b, h.last.live.belts, ret_held) < 0)
        e = error_set(err, ERR_NOT_FOUND, "no command could be looked at in box '%s'", r->name);
    (void)b->ops->kill(b);
    b->ops->destroy(b);
    return e;
}
