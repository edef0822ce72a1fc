/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/native/belts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/limits.h"
#include "engine/engine.h"

static const struct {
    const char *file;
    enum belt belt;
} namespaces[] = {{"ns/user", BELT_USER_NS},    {"ns/mnt", BELT_MOUNT_NS}, {"ns/pid", BELT_PID_NS},
                  {"ns/net", BELT_NET_NS},      {"ns/ipc", BELT_IPC_NS},   {"ns/uts", BELT_UTS_NS},
                  {"ns/cgroup", BELT_CGROUP_NS}};

struct reading {
    uint32_t held, seen;
};

static void note(struct reading *r, enum belt b, bool on)
{
    r->seen |= 1u << b;
    if (on)
        r->held |= 1u << b;
}

static void read_namespaces(int proc, struct reading *r)
{
    autoclose int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; i < sizeof(namespaces) / sizeof(*namespaces); i++) {
        struct stat theirs, ours;

        if (fstatat(proc, namespaces[i].file, &theirs, 0) < 0 ||
            fstatat(self, namespaces[i].file, &ours, 0) < 0)
            continue;
        note(r, namespaces[i].belt, theirs.st_ino != ours.st_ino);
    }
}

/* The value of "Key:\t value" in /proc/PID/status, in this base; false if it is not there. */
static bool status_value(const char *text, const char *key, int base, unsigned long long *ret)
{
    const char *p = strstr(text, key);

    if (!p || (p != text && p[-1] != '\n'))
        return false;
    *ret = strtoull(p + strlen(key), NULL, base);
    return true;
}

static void read_status(int proc, struct reading *r)
{
    static const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};
    char text[8192];
    unsigned long long v;
    bool none = true;

    if (fd_read_text(proc, "status", text, sizeof(text)) <= 0)
        return;
    for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
        none = none && status_value(text, sets[i], 16, &v) && v == 0;
    note(r, BELT_NO_CAPS, none);
    note(r, BELT_NO_NEW_PRIVS, status_value(text, "NoNewPrivs:", 10, &v) && v == 1);
    note(r, BELT_SECCOMP, status_value(text, "Seccomp:", 10, &v) && v == 2);
}

/* mountinfo: "id parent dev root mountpoint options ...". */
static void read_root(int proc, struct reading *r)
{
    char text[LIMIT_SMALL_FILE], *line, *save = NULL;

    if (fd_read_text(proc, "mountinfo", text, sizeof(text)) <= 0)
        return;
    for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char where[8], options[256];

        if (sscanf(line, "%*s %*s %*s %*s %7s %255s", where, options) == 2 &&
            strcmp(where, "/") == 0) {
            note(r, BELT_READ_ONLY_ROOT, strncmp(options, "ro", 2) == 0);
            return;
        }
    }
}

int belts_read(pid_t init, uint32_t *ret_held, uint32_t *ret_seen)
{
    autoclose int proc = -1;
    struct reading r = {0};
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d", (int)init);
    proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return -errno;
    read_namespaces(proc, &r);
    read_status(proc, &r);
    read_root(proc, &r);
    *ret_held = r.held;
    *ret_seen = r.seen;
    return 0;
}
