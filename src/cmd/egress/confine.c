/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A belt around the parsers of what boxes and the network send: from here on this process reads and
 * writes the records alone (and takes its own socket away at the end), executes nothing, and has
 * the system calls of a relay. A few that only the C library asks for are in the list, because it
 * does so when it likes.
 */
#include <sys/syscall.h>

#include "base/confine.h"
#include "base/error.h"
#include "cmd/egress/egress.h"

static const uint16_t calls[] = {
    /* carrying */
    SYS_splice,
    SYS_epoll_pwait,
    SYS_epoll_ctl,
    SYS_recvfrom,
    SYS_sendto,
    SYS_read,
    SYS_write,
    SYS_close,
    SYS_accept4,
    SYS_socket,
    SYS_connect,
    SYS_shutdown,
    SYS_setsockopt,
    SYS_getsockopt,
    SYS_getsockname,
    SYS_pipe2,
    SYS_dup,
    SYS_fcntl,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_clock_gettime,
    SYS_getrandom,
    SYS_pread64,
    SYS_ioctl,
    /* records */
    SYS_openat,
    SYS_fstat,
    SYS_newfstatat,
    SYS_lseek,
    SYS_flock,
    SYS_ftruncate,
    SYS_fdatasync,
    SYS_fsync,
    SYS_unlinkat,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_geteuid,
    SYS_getuid,
    SYS_prlimit64,
    /* memory, signals, the end */
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_mprotect,
    SYS_rt_sigprocmask,
    SYS_rt_sigaction,
    SYS_rt_sigreturn,
    SYS_restart_syscall,
    SYS_futex,
    SYS_getpid,
    SYS_gettid,
    SYS_tgkill,
    SYS_exit,
    SYS_exit_group,
#ifdef SYS_epoll_wait /* not on newer architectures */
    SYS_epoll_wait,
#endif
};

_Static_assert(sizeof(calls) / sizeof(*calls) <= 60, "a relay needs few system calls");

int confine(const struct service *s, struct error *err)
{
    const struct confine_place places[] = {{s->audit.dir, CONFINE_READ | CONFINE_WRITE},
                                           {s->dir, CONFINE_WRITE}};
    int r = confine_privileges(err);

    if (r >= 0)
        r = confine_files(places, 2, true, err);
    return r < 0 ? r : confine_calls(calls, sizeof(calls) / sizeof(*calls), err);
}
