/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/native/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/state.h"
#include "base/sys.h"

/* Does a line "name:start:count" of the file overlap base..base+65535? */
static bool listed_in(const char *file, uint32_t base)
{
    static char text[LIMIT_SMALL_FILE];
    char *line, *save = NULL;

    if (fd_read_text(AT_FDCWD, file, text, sizeof(text)) < 0)
        return false;
    for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *start = strchr(line, ':'), *count = start ? strchr(start + 1, ':') : NULL;
        unsigned long long first, n;

        if (!count)
            continue;
        first = strtoull(start + 1, NULL, 10);
        n = strtoull(count + 1, NULL, 10);
        if (first < (unsigned long long)base + IDS_PER_BOX && base < first + n)
            return true;
    }
    return false;
}

int ids_lock_range(uint32_t *ret_base, int *ret_lock, struct error *err)
{
    autoclose int dir = state_open_runtime(err), fd = -1;
    /* Neighbouring processes start at different places, so that they do not try each other's. */
    uint32_t n = (uint32_t)getpid() % IDS_RANGES;

    if (dir < 0)
        return dir;
    fd = openat(dir, "ids.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_sys(err, -errno, "open the lock file of id ranges");
    for (uint32_t i = 0; i < IDS_RANGES; i++, n = (n + 1) % IDS_RANGES) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = n, .l_len = 1};
        uint32_t base = IDS_FIRST + n * IDS_PER_BOX;

        if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
            continue;
        if (listed_in("/etc/subuid", base) || listed_in("/etc/subgid", base)) {
            lock.l_type = F_UNLCK;
            (void)fcntl(fd, F_OFD_SETLK, &lock);
            continue;
        }
        *ret_base = base;
        *ret_lock = TAKE_FD(fd);
        return 0;
    }
    return error_set(err, ERR_UNSUPPORTED, "no free range of ids: all %u are in use", IDS_RANGES);
}

static int write_map(pid_t pid, const char *file, uint32_t inside, uint32_t outside, uint32_t count)
{
    char path[64], text[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    (void)snprintf(text, sizeof(text), "%u %u %u\n", inside, outside, count);
    return fd_write_text(AT_FDCWD, path, text);
}

static int write_range(pid_t pid, const char *file, uint32_t base, uint32_t owner, uint32_t as)
{
    char path[64], text[160];

    if (!owner)
        return write_map(pid, file, 0, base, IDS_PER_BOX);
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    (void)snprintf(text, sizeof(text), "0 %u %u\n%u %u 1\n%u %u %u\n", base, as, as, owner, as + 1,
                   base + as + 1, IDS_PER_BOX - as - 1);
    return fd_write_text(AT_FDCWD, path, text);
}

int ids_write_range(pid_t pid, uint32_t base, const struct ids_owner *owner)
{
    int r = write_range(pid, "uid_map", base, owner->uid, owner->as_uid);

    return r < 0 ? r : write_range(pid, "gid_map", base, owner->gid, owner->as_gid);
}

/* Holds the namespace open until its descriptor is taken, and is killed then. */
static int hold(void *unused)
{
    (void)unused;
    (void)sys_call(__NR_ppoll, 0, 0, 0, 0, 0);
    return 0;
}

static int make_map(uint32_t uid, uint32_t gid, uint32_t to_uid, uint32_t to_gid, uint32_t count)
{
    static char stack[8192] __attribute__((aligned(16)));
    char path[64];
    int r, fd;
    pid_t pid;

    pid =
        (pid_t)sys_clone_on(CLONE_VM | CLONE_NEWUSER | SIGCHLD, stack + sizeof(stack), hold, NULL);
    if (pid < 0)
        return (int)pid;
    r = write_map(pid, "uid_map", uid, to_uid, count);
    if (r >= 0)
        r = write_map(pid, "gid_map", gid, to_gid, count);
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    fd = r < 0 ? r : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && r >= 0)
        fd = -errno;
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return fd;
}

int ids_make_map(uint32_t uid, uint32_t gid, uint32_t to_uid, uint32_t to_gid)
{
    return make_map(uid, gid, to_uid, to_gid, 1);
}

int ids_make_range_map(uint32_t base)
{
    return make_map(0, 0, base, base, IDS_PER_BOX);
}

static int set_tree(int tree, unsigned flags, uint64_t attrs, int map_fd)
{
    struct mount_attr a = {.attr_set = attrs, .propagation = MS_PRIVATE};

    if (map_fd >= 0) {
        a.attr_set |= MOUNT_ATTR_IDMAP;
        a.userns_fd = (uint64_t)map_fd;
    }
    return syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | flags, &a, sizeof(a)) < 0 ? -errno
                                                                                          : 0;
}

int ids_map_tree(int folder_fd, int map_fd, int read_only)
{
    uint64_t attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (read_only ? MOUNT_ATTR_RDONLY : 0);
    autoclose int tree =
        (int)syscall(SYS_open_tree, folder_fd, "",
                     AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    int r;

    if (tree < 0)
        return -errno;
    r = set_tree(tree, AT_RECURSIVE, attrs, map_fd);
    if (r == -EINVAL && map_fd >= 0) {
        r = set_tree(tree, AT_RECURSIVE, attrs, -1);
        if (r >= 0)
            r = set_tree(tree, 0, 0, map_fd);
    }
    return r < 0 ? r : TAKE_FD(tree);
}
