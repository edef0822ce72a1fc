/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/native/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seccomp_filters.h"

/* The kernel only reads the instructions; struct sock_fprog has no way to say so. */
#define PROGRAM(insns)                                                                      \
    {                                                                                       \
        .len = sizeof(insns) / sizeof((insns)[0]), .filter = (struct sock_filter *)(insns), \
    }

static const struct sock_fprog programs[] = {
    [SECCOMP_DEFAULT] = PROGRAM(seccomp_default),
    [SECCOMP_BROWSER] = PROGRAM(seccomp_browser),
    [SECCOMP_BUILD] = PROGRAM(seccomp_build),
    [SECCOMP_RUNTIME] = PROGRAM(seccomp_runtime),
};

const struct sock_fprog *seccomp_program(enum seccomp_profile profile)
{
    if ((size_t)profile >= sizeof(programs) / sizeof(programs[0]))
        return NULL;
    return &programs[profile];
}

/* A NULL program fails with EFAULT in the kernel, so a wrong profile cannot mean "no filter". */
int seccomp_load(const struct sock_fprog *prog)
{
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, prog) < 0)
        return -errno;
    return 0;
}
