/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A belt around the parsers of what strangers send: from here on this process speaks on the sockets
 * it has, those that come in by its listeners and those that the back hands it, and can do nothing
 * else. A few calls that only
 * the C library and OpenSSL ask for are in the list, because they do so when they like.
 */
#include <errno.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/confine.h"
#include "base/error.h"
#include "gateway/front_internal.h"

static const uint16_t calls[] = {
    /* speaking */
    SYS_epoll_pwait,
    SYS_epoll_ctl,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_getpeername,
    SYS_sendto,
    SYS_read,
    SYS_write,
    SYS_close,
    SYS_accept4,
    SYS_shutdown,
    SYS_setsockopt,
    SYS_getsockopt,
    SYS_getsockname,
    SYS_fcntl,
    SYS_ppoll,
    SYS_clock_gettime,
    SYS_getrandom,
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
#ifdef SYS_poll
    SYS_poll,
#endif
};

/* What libraries open files for is done while there are files. */
static int prepare(struct error *err)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    struct tm tm;
    time_t now = 0;
    SSL_CTX *ctx;

    json_object_seed(0);
    tzset();
    (void)gmtime_r(&now, &tm);
    ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx || !EVP_Digest("", 0, digest, NULL, EVP_sha1(), NULL))
        return error_set(err, ERR_UNSUPPORTED, "OpenSSL cannot be started");
    SSL_CTX_free(ctx);
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return error_sys(err, -errno, "make this process unreadable for others");
    return 0;
}

int front_confine(struct error *err)
{
    int r = prepare(err), landlock;

    if (r >= 0)
        r = confine_privileges(err);
    if (r >= 0)
        r = confine_files(NULL, 0, true, err);
    if (r < 0)
        return r;
    landlock = r;
    r = confine_calls(calls, COUNT(calls), err);
    return r < 0 ? r : landlock;
}
