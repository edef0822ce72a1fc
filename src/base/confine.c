/* SPDX-License-Identifier: Apache-2.0 */
#include "base/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/landlock.h"

#define FS_TRUNCATE (1ULL << 14) /* ABI 3 */
#define FS_READ     (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FS_SPECIAL                                                                                \
    (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | \
     LANDLOCK_ACCESS_FS_MAKE_BLOCK)
#define FS_WRITE                                                                                  \
    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                              \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | \
     LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER)

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "which architecture is this?"
#endif
#define MAX_CALLS 200u /* a jump goes over 255 at most */

int confine_privileges(struct error *err)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

    if (syscall(SYS_capset, &head, none) < 0)
        return error_sys(err, -errno, "give up capabilities");
    return 0;
}

static uint64_t write_access(int abi)
{
    return FS_WRITE | (abi >= 3 ? FS_TRUNCATE : 0);
}

static int allow(int set, const struct confine_place *p, int abi, bool reads)
{
    struct landlock_path_beneath_attr rule = {
        .allowed_access = (p->access & CONFINE_WRITE ? write_access(abi) : 0) |
                          (reads && p->access & CONFINE_READ ? FS_READ : 0),
        .parent_fd = p->fd};

    return syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno
                                                                                         : 0;
}

int confine_files(const struct confine_place *places, size_t n, bool reads, struct error *err)
{
    int abi = landlock_abi(), r = 0;
    struct landlock_ruleset_attr attr = {.handled_access_fs = write_access(abi) | FS_SPECIAL |
                                                              LANDLOCK_ACCESS_FS_EXECUTE |
                                                              (reads ? FS_READ : 0)};
    autoclose int set = -1;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_sys(err, -errno, "give up new privileges");
    if (abi < LANDLOCK_LEAST)
        return 1;
    /* The size of ABI 1: later kernels take what is missing for zero. */
    set = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr.handled_access_fs), 0);
    if (set < 0)
        return error_sys(err, -errno, "confine this program to its files");
    for (size_t i = 0; r >= 0 && i < n; i++)
        r = allow(set, &places[i], abi, reads);
    if (r >= 0 && syscall(SYS_landlock_restrict_self, set, 0) < 0)
        r = -errno;
    return r < 0 ? error_sys(err, r, "confine this program to its files") : 0;
}

int confine_calls(const uint16_t *numbers, size_t n, struct error *err)
{
    struct sock_filter code[MAX_CALLS + 8];
    struct sock_fprog program = {.filter = code};
    unsigned short at = 0;

    if (n > MAX_CALLS)
        return error_set(err, ERR_TOO_LARGE, "%zu system calls in a filter", n);
    code[at++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[at++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < n; i++)
        code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, numbers[i],
                                                  (uint8_t)(n - i), 0);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = at;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
        return error_sys(err, -errno, "confine this program to its system calls");
    return 0;
}
