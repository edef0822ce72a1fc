/* SPDX-License-Identifier: Apache-2.0 */
#include "base/landlock.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sys.h"

/* Debian 12's headers end at ABI 3: the newer names are ours. */
enum {
    FS_EXECUTE = 1 << 0,
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_ALL_ABI1 = (1 << 13) - 1,
    FS_REFER = 1 << 13,     /* ABI 2 */
    FS_TRUNCATE = 1 << 14,  /* ABI 3 */
    FS_IOCTL_DEV = 1 << 15, /* ABI 5 */
    SCOPE_ALL = 3,          /* ABI 6: abstract sockets and signals */
    CREATE_VERSION = 1,
    RULE_PATH = 1,
};

struct ruleset_attr {
    uint64_t fs, net, scoped;
};
struct path_attr {
    uint64_t allowed;
    int32_t fd;
} __attribute__((packed));

int landlock_abi(void)
{
    long r = sys_call(__NR_landlock_create_ruleset, 0, 0, CREATE_VERSION);

    return r < 0 ? 0 : (int)r;
}

static long allow(int ruleset, const char *path, uint64_t access)
{
    struct path_attr a = {.allowed = access};
    long r = sys_call(__NR_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC);

    if (r == -2) /* a root without that folder */
        return 0;
    if (r < 0)
        return r;
    a.fd = (int32_t)r;
    r = sys_call(__NR_landlock_add_rule, ruleset, RULE_PATH, &a, 0);
    if (r == -22) { /* a single file: rights that only folders have are refused */
        a.allowed &= FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV;
        r = sys_call(__NR_landlock_add_rule, ruleset, RULE_PATH, &a, 0);
    }
    sys_call(__NR_close, a.fd);
    return r;
}

static uint64_t handled(int abi)
{
    uint64_t all = FS_ALL_ABI1;

    if (abi >= 2)
        all |= FS_REFER;
    if (abi >= 3)
        all |= FS_TRUNCATE;
    if (abi >= 5)
        all |= FS_IOCTL_DEV;
    return all;
}

long landlock_restrict(int abi, const char *const *writable)
{
    static const char *const scratch[] = {"/tmp", "/var/tmp", "/run", "/dev/shm"};
    const uint64_t all = handled(abi), read = FS_EXECUTE | FS_READ_FILE | FS_READ_DIR;
    /* Devices: existing files may be written (null), nothing made or removed. Not so /proc: there
     * a process could make itself safer from the memory limit than init, and user 0 reach init. */
    const uint64_t kernel = read | FS_WRITE_FILE | (all & (FS_TRUNCATE | FS_IOCTL_DEV));
    struct ruleset_attr attr = {.fs = all, .scoped = abi >= 6 ? SCOPE_ALL : 0};
    size_t size = abi >= 6 ? sizeof(attr) : abi >= 4 ? 16 : 8;
    long fd = sys_call(__NR_landlock_create_ruleset, &attr, size, 0), r;

    if (fd < 0)
        return fd;
    r = allow((int)fd, "/", read);
    for (size_t i = 0; r >= 0 && i < sizeof(scratch) / sizeof(*scratch); i++)
        r = allow((int)fd, scratch[i], all);
    if (r >= 0)
        r = allow((int)fd, "/dev", kernel);
    for (; r >= 0 && *writable; writable++)
        r = allow((int)fd, *writable, all);
    if (r >= 0)
        r = sys_call(__NR_landlock_restrict_self, fd, 0);
    sys_call(__NR_close, fd);
    return r;
}
