/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generated seccomp filters, run by a small interpreter, for both architectures and all
 * profiles; then once by the kernel. Numbers are written out rather than taken from libseccomp:
 * that is where the generator has them from.
 *
 * With an argument, the file that `seccomp-gen --golden` wrote is compared as well.
 */
#include "engine/native/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SECCOMP_ALL_ARCHES
#include "seccomp_filters.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define ALLOW   SECCOMP_RET_ALLOW
#define FAIL(e) (SECCOMP_RET_ERRNO | (e))
#define KILL    SECCOMP_RET_KILL_PROCESS
#define HIGH    (UINT64_C(0xdeadbeef) << 32)
#define X32     0x40000000u

enum { MAX_INSNS = 400, MAX_CALLS = 300, NUMBERS = 1024 };
enum { X86, ARM, N_ARCHES };

static const uint32_t audit_arch[N_ARCHES] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64};

struct program {
    const char *name;
    int arch;
    enum seccomp_profile profile;
    const struct sock_filter *insns;
    size_t n;
};

#define PROGRAM(arch, suffix, profile, prefix)                                          \
    {                                                                                   \
#prefix "_" #suffix, arch, profile, prefix##_##suffix, COUNT(prefix##_##suffix) \
    }

static const struct program programs[] = {
    PROGRAM(X86, x86_64, SECCOMP_DEFAULT, seccomp_default),
    PROGRAM(X86, x86_64, SECCOMP_BROWSER, seccomp_browser),
    PROGRAM(X86, x86_64, SECCOMP_BUILD, seccomp_build),
    PROGRAM(X86, x86_64, SECCOMP_RUNTIME, seccomp_runtime),
    PROGRAM(ARM, aarch64, SECCOMP_DEFAULT, seccomp_default),
    PROGRAM(ARM, aarch64, SECCOMP_BROWSER, seccomp_browser),
    PROGRAM(ARM, aarch64, SECCOMP_BUILD, seccomp_build),
    PROGRAM(ARM, aarch64, SECCOMP_RUNTIME, seccomp_runtime),
};

/* ---- the interpreter ---- */

/* What has been seen of each instruction. */
enum { SEEN = 1, TAKEN = 2, NOT_TAKEN = 4 };
static uint8_t seen[COUNT(programs)][BPF_MAXINSNS];

static size_t jump(const struct sock_filter *in, uint32_t acc, uint8_t *mark)
{
    bool yes = false;

    switch (in->code) {
    case BPF_JMP | BPF_JA:
        *mark |= TAKEN | NOT_TAKEN;
        return in->k;
    case BPF_JMP | BPF_JEQ | BPF_K:
        yes = acc == in->k;
        break;
    case BPF_JMP | BPF_JGE | BPF_K:
        yes = acc >= in->k;
        break;
    case BPF_JMP | BPF_JSET | BPF_K:
        yes = acc & in->k;
        break;
    default:
        fail_msg("unexpected jump %#x", in->code);
    }
    *mark |= yes ? TAKEN : NOT_TAKEN;
    return yes ? in->jt : in->jf;
}

static uint32_t interpret(const struct program *p, const struct seccomp_data *data)
{
    uint8_t *marks = seen[p - programs];
    uint32_t acc = 0;

    for (size_t pc = 0; pc < p->n; pc++) {
        const struct sock_filter *in = &p->insns[pc];

        marks[pc] |= SEEN;
        if (in->code == (BPF_RET | BPF_K))
            return in->k;
        if (BPF_CLASS(in->code) == BPF_JMP) {
            pc += jump(in, acc, &marks[pc]);
        } else if (in->code == (BPF_ALU | BPF_AND | BPF_K)) {
            acc &= in->k;
        } else {
            assert_int_equal(in->code, BPF_LD | BPF_W | BPF_ABS);
            assert_true(in->k + sizeof(acc) <= sizeof(*data));
            memcpy(&acc, (const char *)data + in->k, sizeof(acc));
        }
    }
    fail_msg("%s: runs past its end", p->name);
    return 0;
}

static uint32_t verdict(const struct program *p, uint32_t nr, const uint64_t args[4])
{
    struct seccomp_data data = {.nr = (int)nr, .arch = audit_arch[p->arch]};

    memcpy(data.args, args, 4 * sizeof(args[0]));
    return interpret(p, &data);
}

/* ---- tables ---- */

struct call {
    const char *name;
    int nr[N_ARCHES]; /* -1: not there */
};

/* clang-format off */

/* Refused with EPERM in the default profile, whatever the arguments. */
static const struct call refused[] = {
    {"io_uring_setup", {425, 425}}, {"io_uring_enter", {426, 426}},
    {"io_uring_register", {427, 427}}, {"bpf", {321, 280}}, {"perf_event_open", {298, 241}},
    {"userfaultfd", {323, 282}}, {"keyctl", {250, 219}}, {"add_key", {248, 217}},
    {"request_key", {249, 218}}, {"ptrace", {101, 117}}, {"process_vm_readv", {310, 270}},
    {"process_vm_writev", {311, 271}}, {"kcmp", {312, 272}}, {"pidfd_getfd", {438, 438}},
    {"process_madvise", {440, 440}}, {"mount", {165, 40}}, {"umount2", {166, 39}},
    {"open_tree", {428, 428}}, {"move_mount", {429, 429}}, {"fsopen", {430, 430}},
    {"fsconfig", {431, 431}}, {"fsmount", {432, 432}}, {"fspick", {433, 433}},
    {"mount_setattr", {442, 442}}, {"statmount", {457, 457}}, {"listmount", {458, 458}},
    {"open_tree_attr", {467, 467}}, {"setns", {308, 268}}, {"chroot", {161, 51}},
    {"pivot_root", {155, 41}}, {"name_to_handle_at", {303, 264}},
    {"open_by_handle_at", {304, 265}}, {"fanotify_init", {300, 262}},
    {"fanotify_mark", {301, 263}}, {"quotactl", {179, 60}}, {"quotactl_fd", {443, 443}},
    {"reboot", {169, 142}}, {"swapon", {167, 224}}, {"swapoff", {168, 225}},
    {"kexec_load", {246, 104}}, {"kexec_file_load", {320, 294}}, {"acct", {163, 89}},
    {"iopl", {172, -1}}, {"ioperm", {173, -1}}, {"init_module", {175, 105}},
    {"finit_module", {313, 273}}, {"delete_module", {176, 106}}, {"create_module", {174, -1}},
    {"syslog", {103, 116}}, {"settimeofday", {164, 170}}, {"clock_settime", {227, 112}},
    {"clock_adjtime", {305, 266}}, {"adjtimex", {159, 171}}, {"mbind", {237, 235}},
    {"move_pages", {279, 239}}, {"migrate_pages", {256, 238}}, {"set_mempolicy", {238, 237}},
    {"set_mempolicy_home_node", {450, 450}}, {"memfd_secret", {447, 447}},
    {"process_mrelease", {448, 448}}, {"vhangup", {153, 58}}, {"modify_ldt", {154, -1}},
    {"lookup_dcookie", {212, 18}}, {"sethostname", {170, 161}}, {"setdomainname", {171, 162}},
};

/* Absent: ENOSYS, so that programs fall back to something that can be checked. */
static const struct call absent[] = {
    {"clone3", {435, 435}}, {"openat2", {437, 437}}, {"sysfs", {139, -1}}, {"ustat", {136, -1}},
    {"uselib", {134, -1}}, {"_sysctl", {156, -1}}, {"nfsservctl", {180, 42}},
    {"vserver", {236, -1}},
};

/* A sample of what shells, interpreters, compilers and servers cannot do without. */
static const struct call needed[] = {
    {"read", {0, 63}}, {"write", {1, 64}}, {"close", {3, 57}}, {"mmap", {9, 222}},
    {"mprotect", {10, 226}}, {"brk", {12, 214}}, {"munmap", {11, 215}}, {"futex", {202, 98}},
    {"execve", {59, 221}}, {"execveat", {322, 281}}, {"exit_group", {231, 94}},
    {"wait4", {61, 260}}, {"pipe2", {293, 59}}, {"dup3", {292, 24}}, {"fcntl", {72, 25}},
    {"getdents64", {217, 61}}, {"newfstatat", {262, 79}}, {"statx", {332, 291}},
    {"faccessat2", {439, 439}}, {"renameat2", {316, 276}}, {"unlinkat", {263, 35}},
    {"mkdirat", {258, 34}}, {"linkat", {265, 37}}, {"symlinkat", {266, 36}},
    {"readlinkat", {267, 78}}, {"utimensat", {280, 88}}, {"fchownat", {260, 54}},
    {"setxattr", {188, 5}}, {"setxattrat", {463, 463}}, {"getxattrat", {464, 464}},
    {"listxattrat", {465, 465}}, {"removexattrat", {466, 466}}, {"fsync", {74, 82}},
    {"fallocate", {285, 47}}, {"copy_file_range", {326, 285}}, {"sendfile", {40, 71}},
    {"splice", {275, 76}}, {"epoll_pwait", {281, 22}}, {"epoll_pwait2", {441, 441}},
    {"eventfd2", {290, 19}}, {"inotify_init1", {294, 26}}, {"timerfd_create", {283, 85}},
    {"memfd_create", {319, 279}}, {"close_range", {436, 436}}, {"pidfd_open", {434, 434}},
    {"pidfd_send_signal", {424, 424}}, {"rt_sigaction", {13, 134}}, {"sigaltstack", {131, 132}},
    {"setsid", {112, 157}}, {"prctl", {157, 167}}, {"seccomp", {317, 277}},
    {"landlock_restrict_self", {446, 446}}, {"mseal", {462, 462}}, {"futex_waitv", {449, 449}},
    {"futex_wait", {455, 455}}, {"futex_requeue", {456, 456}}, {"cachestat", {451, 451}},
    {"map_shadow_stack", {453, 453}}, {"membarrier", {324, 283}}, {"rseq", {334, 293}},
    {"getrandom", {318, 278}}, {"sched_setaffinity", {203, 122}},
    {"setresuid", {117, 147}}, {"setgroups", {116, 159}}, {"capset", {126, 91}},
    {"bind", {49, 200}}, {"connect", {42, 203}}, {"accept4", {288, 242}}, {"sendmsg", {46, 211}},
    {"recvmmsg", {299, 243}}, {"shmget", {29, 194}}, {"mq_open", {240, 180}},
    {"clock_nanosleep", {230, 115}}, {"fork", {57, -1}}, {"vfork", {58, -1}}, {"stat", {4, -1}},
};

struct check {
    struct call call;
    uint64_t args[4];
    uint32_t want;
};

#define SOCKET     {"socket", {41, 198}}
#define SOCKETPAIR {"socketpair", {53, 199}}
#define CLONE      {"clone", {56, 220}}
#define UNSHARE    {"unshare", {272, 97}}
#define IOCTL      {"ioctl", {16, 29}}
#define PERSONALITY {"personality", {135, 92}}
#define ARCH_PRCTL {"arch_prctl", {158, -1}}
#define PRLIMIT    {"prlimit64", {302, 261}}
#define CHMOD      {"chmod", {90, -1}}
#define FCHMOD     {"fchmod", {91, 52}}
#define FCHMODAT   {"fchmodat", {268, 53}}
#define FCHMODAT2  {"fchmodat2", {452, 452}}
#define CREAT      {"creat", {85, -1}}
#define OPEN       {"open", {2, -1}}
#define OPENAT     {"openat", {257, 56}}
#define MKNOD      {"mknod", {133, -1}}
#define MKNODAT    {"mknodat", {259, 33}}

/* The arguments decide: default profile. */
static const struct check checks[] = {
    /* namespaces, each flag alone and among others */
    {CLONE, {17}, ALLOW},                        /* fork: SIGCHLD */
    {CLONE, {0x3d0f00}, ALLOW},                  /* pthread_create */
    {CLONE, {0x4111}, ALLOW},                    /* posix_spawn */
    {CLONE, {0x80}, ALLOW},                      /* an exit signal, not CLONE_NEWTIME */
    {CLONE, {0x00020011}, FAIL(EPERM)},          /* mnt */
    {CLONE, {0x02000011}, FAIL(EPERM)},          /* cgroup */
    {CLONE, {0x04000011}, FAIL(EPERM)},          /* uts */
    {CLONE, {0x08000011}, FAIL(EPERM)},          /* ipc */
    {CLONE, {0x10000011}, FAIL(EPERM)},          /* user */
    {CLONE, {0x20000011}, FAIL(EPERM)},          /* pid */
    {CLONE, {0x40000011}, FAIL(EPERM)},          /* net */
    {CLONE, {0x7e020011}, FAIL(EPERM)},
    {CLONE, {0x103d0f00}, FAIL(EPERM)},
    {UNSHARE, {0}, ALLOW},
    {UNSHARE, {0x600}, ALLOW},                   /* files, fs */
    {UNSHARE, {0x80}, FAIL(EPERM)},              /* time */
    {UNSHARE, {0x00020000}, FAIL(EPERM)},
    {UNSHARE, {0x02000000}, FAIL(EPERM)},
    {UNSHARE, {0x04000000}, FAIL(EPERM)},
    {UNSHARE, {0x08000000}, FAIL(EPERM)},
    {UNSHARE, {0x10000000}, FAIL(EPERM)},
    {UNSHARE, {0x20000000}, FAIL(EPERM)},
    {UNSHARE, {0x40000000}, FAIL(EPERM)},
    {UNSHARE, {0x10000600}, FAIL(EPERM)},

    /* family, type, protocol */
    {SOCKET, {AF_UNIX, SOCK_STREAM}, ALLOW},
    {SOCKET, {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC}, ALLOW},
    {SOCKET, {AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK}, ALLOW},
    {SOCKET, {AF_UNIX, SOCK_RAW}, FAIL(EPERM)},
    {SOCKET, {AF_INET, SOCK_STREAM}, ALLOW},
    {SOCKET, {AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 6}, ALLOW},
    {SOCKET, {AF_INET, SOCK_DGRAM, 17}, ALLOW},
    {SOCKET, {AF_INET, SOCK_DGRAM, 1}, ALLOW},             /* ping */
    {SOCKET, {AF_INET6, SOCK_DGRAM, 58}, ALLOW},
    {SOCKET, {AF_INET6, SOCK_STREAM | SOCK_CLOEXEC}, ALLOW},
    {SOCKET, {AF_INET, SOCK_RAW, 1}, FAIL(EPERM)},
    {SOCKET, {AF_INET, SOCK_RAW | SOCK_CLOEXEC, 255}, FAIL(EPERM)},
    {SOCKET, {AF_INET6, SOCK_RAW, 58}, FAIL(EPERM)},
    {SOCKET, {AF_INET, SOCK_SEQPACKET, 132}, FAIL(EPERM)},
    {SOCKET, {AF_INET, SOCK_PACKET}, FAIL(EPERM)},
    {SOCKET, {AF_INET, 6 /* dccp */, 33}, FAIL(EPERM)},
    {SOCKET, {AF_INET, SOCK_STREAM, 132 /* sctp */}, FAIL(EPROTONOSUPPORT)},
    {SOCKET, {AF_INET, SOCK_STREAM, 256 /* smc */}, FAIL(EPROTONOSUPPORT)},
    {SOCKET, {AF_INET6, SOCK_STREAM, 262 /* mptcp */}, FAIL(EPROTONOSUPPORT)},
    {SOCKET, {AF_NETLINK, SOCK_RAW, 0}, ALLOW},
    {SOCKET, {AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, 0}, ALLOW},
    {SOCKET, {AF_NETLINK, SOCK_STREAM, 0}, FAIL(EPERM)},
    {SOCKET, {AF_NETLINK, SOCK_RAW, 9 /* audit */}, FAIL(EPROTONOSUPPORT)},
    {SOCKET, {AF_NETLINK, SOCK_DGRAM, 15 /* uevent */}, FAIL(EPROTONOSUPPORT)},
    {SOCKET, {AF_NETLINK, SOCK_RAW, 16 /* generic */}, FAIL(EPROTONOSUPPORT)},
    {SOCKET, {AF_UNSPEC, SOCK_STREAM}, FAIL(EAFNOSUPPORT)},
    {SOCKET, {AF_PACKET, SOCK_RAW}, FAIL(EAFNOSUPPORT)},
    {SOCKET, {AF_ALG, SOCK_SEQPACKET}, FAIL(EAFNOSUPPORT)},
    {SOCKET, {AF_VSOCK, SOCK_STREAM}, FAIL(EAFNOSUPPORT)},
    {SOCKETPAIR, {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC}, ALLOW},
    {SOCKETPAIR, {AF_UNIX, SOCK_SEQPACKET}, ALLOW},
    {SOCKETPAIR, {AF_INET, SOCK_STREAM}, FAIL(EAFNOSUPPORT)},
    {SOCKETPAIR, {30 /* tipc */, SOCK_STREAM}, FAIL(EAFNOSUPPORT)},

    /* terminals, with the neighbours that programs need */
    {IOCTL, {0, 0x5401}, ALLOW},                 /* TCGETS */
    {IOCTL, {0, 0x5413}, ALLOW},                 /* TIOCGWINSZ */
    {IOCTL, {0, 0x541b}, ALLOW},                 /* FIONREAD */
    {IOCTL, {0, 0x5421}, ALLOW},                 /* FIONBIO */
    {IOCTL, {0, 0x5424}, ALLOW},                 /* TIOCGETD */
    {IOCTL, {0, 0x540e}, ALLOW},                 /* TIOCSCTTY */
    {IOCTL, {0, 0x40049409}, ALLOW},             /* FICLONE */
    {IOCTL, {0, 0x80045430}, ALLOW},             /* TIOCGPTN */
    {IOCTL, {0, 0x4aff}, ALLOW},
    {IOCTL, {0, 0x4c00}, ALLOW},
    {IOCTL, {0, 0x5700}, ALLOW},
    {IOCTL, {0, 0x5412}, FAIL(EPERM)},           /* TIOCSTI */
    {IOCTL, {0, 0x541c}, FAIL(EPERM)},           /* TIOCLINUX */
    {IOCTL, {0, 0x541d}, FAIL(EPERM)},           /* TIOCCONS */
    {IOCTL, {0, 0x5423}, FAIL(EPERM)},           /* TIOCSETD */
    {IOCTL, {0, 0x4b3a}, FAIL(EPERM)},           /* KDSETMODE */
    {IOCTL, {0, 0x4b45}, FAIL(EPERM)},           /* KDSKBMODE */
    {IOCTL, {0, 0x4b47}, FAIL(EPERM)},           /* KDSKBENT */
    {IOCTL, {0, 0x5606}, FAIL(EPERM)},           /* VT_ACTIVATE */
    {IOCTL, {0, 0x560b}, FAIL(EPERM)},           /* VT_LOCKSWITCH */

    {PERSONALITY, {0}, ALLOW},
    {PERSONALITY, {8}, ALLOW},
    {PERSONALITY, {0x20000}, ALLOW},
    {PERSONALITY, {0x20008}, ALLOW},
    {PERSONALITY, {0x40000}, ALLOW},
    {PERSONALITY, {0xffffffff}, ALLOW},
    {PERSONALITY, {0x40008}, FAIL(EPERM)},
    {PERSONALITY, {0x60000}, FAIL(EPERM)},
    {PERSONALITY, {0x400000}, FAIL(EPERM)},      /* READ_IMPLIES_EXEC */
    {PERSONALITY, {0x100000}, FAIL(EPERM)},      /* MMAP_PAGE_ZERO */
    {PERSONALITY, {4}, FAIL(EPERM)},

    {PRLIMIT, {0, 7}, ALLOW},
    {PRLIMIT, {1, 7}, FAIL(EPERM)},
    {PRLIMIT, {4321, 7}, FAIL(EPERM)},
    {ARCH_PRCTL, {0x1002}, ALLOW},               /* ARCH_SET_FS */
    {ARCH_PRCTL, {0x1023}, ALLOW},               /* ARCH_REQ_XCOMP_PERM */
    {ARCH_PRCTL, {0x5001}, ALLOW},               /* ARCH_SHSTK_ENABLE */
    {ARCH_PRCTL, {0}, FAIL(EPERM)},
    {ARCH_PRCTL, {0x1025}, FAIL(EPERM)},         /* ARCH_REQ_XCOMP_GUEST_PERM */
    {ARCH_PRCTL, {0x2001}, FAIL(EPERM)},         /* ARCH_MAP_VDSO_X32 */
    {ARCH_PRCTL, {0x4002}, FAIL(EPERM)},         /* ARCH_ENABLE_TAGGED_ADDR */
    {ARCH_PRCTL, {0x5006}, FAIL(EPERM)},

    /* set-id bits in every mode */
    {CHMOD, {0, 0755}, ALLOW},
    {CHMOD, {0, 01777}, ALLOW},
    {CHMOD, {0, 04755}, FAIL(EPERM)},
    {CHMOD, {0, 02755}, FAIL(EPERM)},
    {CHMOD, {0, 06000}, FAIL(EPERM)},
    {FCHMOD, {0, 0644}, ALLOW},
    {FCHMOD, {0, 04644}, FAIL(EPERM)},
    {FCHMOD, {06000, 0644}, ALLOW},
    {FCHMODAT, {0, 06000, 0755}, ALLOW},
    {FCHMODAT, {0, 0, 02755}, FAIL(EPERM)},
    {FCHMODAT2, {0, 0, 0755, 0x100}, ALLOW},
    {FCHMODAT2, {0, 0, 04755}, FAIL(EPERM)},
    {CREAT, {0, 0666}, ALLOW},
    {CREAT, {0, 04666}, FAIL(EPERM)},
    {OPEN, {0, 0, 04755}, ALLOW},                /* creates nothing: rubbish in the mode is fine */
    {OPEN, {0, 0100, 0644}, ALLOW},
    {OPEN, {0, 0100, 04755}, FAIL(EPERM)},
    {OPEN, {0, 01101, 02755}, FAIL(EPERM)},
    {OPEN, {0, 020200002, 04755}, FAIL(EPERM)},  /* O_TMPFILE */
    {OPEN, {0, 020200002, 0600}, ALLOW},
    {OPEN, {0, 0200000, 06000}, ALLOW},          /* O_DIRECTORY */
    {OPENAT, {0, 0, 0, 04755}, ALLOW},
    {OPENAT, {0, 0, 0100, 0666}, ALLOW},
    {OPENAT, {0, 0, 0100, 04755}, FAIL(EPERM)},
    {OPENAT, {0, 0, 0302, 02755}, FAIL(EPERM)},
    {OPENAT, {0, 0, 020040002, 04755}, FAIL(EPERM)}, /* O_TMPFILE of arm64 */
    {OPENAT, {0, 0, 020040002, 0600}, ALLOW},
    {MKNOD, {0, 0644}, ALLOW},
    {MKNOD, {0, 0100644}, ALLOW},
    {MKNOD, {0, 0010644}, ALLOW},
    {MKNOD, {0, 0140644}, ALLOW},
    {MKNOD, {0, 0020644}, FAIL(EPERM)},          /* character device */
    {MKNOD, {0, 0060644}, FAIL(EPERM)},          /* block device */
    {MKNOD, {0, 0104755}, FAIL(EPERM)},
    {MKNOD, {0, 0012644}, FAIL(EPERM)},
    {MKNODAT, {0, 0, 0010600}, ALLOW},
    {MKNODAT, {0, 0, 0600}, ALLOW},
    {MKNODAT, {0, 0, 0100600}, ALLOW},
    {MKNODAT, {0, 0, 0140600}, ALLOW},
    {MKNODAT, {0, 0, 0020600, 0x501}, FAIL(EPERM)},
    {MKNODAT, {0, 0, 04600}, FAIL(EPERM)},
};

/* Where the other profiles differ, and where they must not. */
static const struct {
    enum seccomp_profile profile;
    struct check check;
} differences[] = {
    {SECCOMP_BROWSER, {CLONE, {0x70000011}, ALLOW}},
    {SECCOMP_BROWSER, {CLONE, {0x10020011}, FAIL(EPERM)}},
    {SECCOMP_BROWSER, {CLONE, {0x08000011}, FAIL(EPERM)}},
    {SECCOMP_BROWSER, {UNSHARE, {0x10000000}, ALLOW}},
    {SECCOMP_BROWSER, {UNSHARE, {0x00020000}, FAIL(EPERM)}},
    {SECCOMP_BROWSER, {UNSHARE, {0x80}, FAIL(EPERM)}},
    {SECCOMP_BROWSER, {{"chroot", {161, 51}}, {0}, ALLOW}},
    {SECCOMP_BROWSER, {{"mount", {165, 40}}, {0}, FAIL(EPERM)}},
    {SECCOMP_BROWSER, {{"clone3", {435, 435}}, {0}, FAIL(ENOSYS)}},
    {SECCOMP_BROWSER, {CHMOD, {0, 04755}, FAIL(EPERM)}},

    {SECCOMP_BUILD, {{"chown", {92, -1}}, {0}, FAIL(0)}},
    {SECCOMP_BUILD, {{"fchown", {93, 55}}, {0}, FAIL(0)}},
    {SECCOMP_BUILD, {{"lchown", {94, -1}}, {0}, FAIL(0)}},
    {SECCOMP_BUILD, {{"fchownat", {260, 54}}, {0}, FAIL(0)}},
    {SECCOMP_BUILD, {{"setuid", {105, 146}}, {0}, FAIL(0)}},
    {SECCOMP_BUILD, {{"setresgid", {119, 149}}, {0}, FAIL(0)}},
    {SECCOMP_BUILD, {{"setgroups", {116, 159}}, {0}, FAIL(0)}},
    {SECCOMP_BUILD, {MKNOD, {0, 0020600}, FAIL(0)}},
    {SECCOMP_BUILD, {MKNOD, {0, 0010600}, ALLOW}},
    {SECCOMP_BUILD, {MKNODAT, {0, 0, 0060600}, FAIL(0)}},
    {SECCOMP_BUILD, {MKNODAT, {0, 0, 0104755}, FAIL(EPERM)}},
    {SECCOMP_BUILD, {FCHMOD, {0, 04755}, FAIL(EPERM)}},
    {SECCOMP_BUILD, {CLONE, {0x10000011}, FAIL(EPERM)}},

    {SECCOMP_RUNTIME, {CLONE, {0x7e020011}, ALLOW}},
    {SECCOMP_RUNTIME, {UNSHARE, {0x7e020080}, ALLOW}},
    {SECCOMP_RUNTIME, {{"clone3", {435, 435}}, {0}, ALLOW}},
    {SECCOMP_RUNTIME, {{"setns", {308, 268}}, {0}, ALLOW}},
    {SECCOMP_RUNTIME, {{"mount", {165, 40}}, {0}, ALLOW}},
    {SECCOMP_RUNTIME, {{"pivot_root", {155, 41}}, {0}, ALLOW}},
    {SECCOMP_RUNTIME, {{"open_tree_attr", {467, 467}}, {0}, ALLOW}},
    {SECCOMP_RUNTIME, {{"sethostname", {170, 161}}, {0}, ALLOW}},
    {SECCOMP_RUNTIME, {{"openat2", {437, 437}}, {0}, FAIL(ENOSYS)}},
    {SECCOMP_RUNTIME, {{"bpf", {321, 280}}, {0}, FAIL(EPERM)}},
    {SECCOMP_RUNTIME, {{"keyctl", {250, 219}}, {0}, FAIL(EPERM)}},
    {SECCOMP_RUNTIME, {OPENAT, {0, 0, 0100, 04755}, FAIL(EPERM)}},
    {SECCOMP_RUNTIME, {SOCKET, {AF_VSOCK, SOCK_STREAM}, FAIL(EAFNOSUPPORT)}},
};
/* clang-format on */

static const uint64_t no_args[4];

/* ---- claims ---- */

/* The upper half of an argument, which the kernel throws away, must not change the answer. */
static void expect(const struct program *p, const struct check *c)
{
    uint64_t high[4];
    uint32_t got;

    if (c->call.nr[p->arch] < 0)
        return;
    for (size_t i = 0; i < COUNT(high); i++)
        high[i] = c->args[i] | HIGH;
    got = verdict(p, (uint32_t)c->call.nr[p->arch], c->args);
    if (got != c->want)
        fail_msg("%s: %s(%#jx, %#jx, %#jx, %#jx): %#x, not %#x", p->name, c->call.name,
                 (uintmax_t)c->args[0], (uintmax_t)c->args[1], (uintmax_t)c->args[2],
                 (uintmax_t)c->args[3], got, c->want);
    got = verdict(p, (uint32_t)c->call.nr[p->arch], high);
    if (got != c->want)
        fail_msg("%s: %s with high bits: %#x, not %#x", p->name, c->call.name, got, c->want);
}

/* The same answer for the call with all arguments of the tables. */
static void expect_always(const struct program *p, const struct call *call, uint32_t want)
{
    for (size_t i = 0; i < COUNT(checks); i++) {
        struct check c = {*call, {0}, want};

        memcpy(c.args, checks[i].args, sizeof(c.args));
        expect(p, &c);
    }
}

static void expect_list(const struct call *calls, size_t n, uint32_t want)
{
    for (size_t p = 0; p < COUNT(programs); p++)
        for (size_t i = 0; i < n && programs[p].profile == SECCOMP_DEFAULT; i++)
            expect_always(&programs[p], &calls[i], want);
}

static void dangerous_calls_are_refused(void **state)
{
    (void)state;
    expect_list(refused, COUNT(refused), FAIL(EPERM));
}

static void unfilterable_and_removed_calls_look_absent(void **state)
{
    (void)state;
    expect_list(absent, COUNT(absent), FAIL(ENOSYS));
}

static void ordinary_calls_are_allowed(void **state)
{
    (void)state;
    expect_list(needed, COUNT(needed), ALLOW);
}

static void arguments_decide(void **state)
{
    (void)state;
    for (size_t p = 0; p < COUNT(programs); p++)
        for (size_t i = 0; i < COUNT(checks) && programs[p].profile == SECCOMP_DEFAULT; i++)
            expect(&programs[p], &checks[i]);
}

static void profiles_differ_where_they_should(void **state)
{
    (void)state;
    for (size_t p = 0; p < COUNT(programs); p++)
        for (size_t i = 0; i < COUNT(differences); i++)
            if (differences[i].profile == programs[p].profile)
                expect(&programs[p], &differences[i].check);
}

static void no_family_but_four_passes(void **state)
{
    (void)state;
    for (size_t p = 0; p < COUNT(programs); p++) {
        for (uint64_t family = 0; family < 64; family++) {
            const bool known = family == AF_UNIX || family == AF_INET || family == AF_INET6;

            for (uint64_t type = 0; type < 16; type++) {
                const struct check c = {SOCKET, {family, type, 0}, FAIL(EAFNOSUPPORT)};

                if (!known && family != AF_NETLINK)
                    expect(&programs[p], &c);
                else if (type == 0 || type == SOCK_RDM || type > SOCK_SEQPACKET)
                    expect(&programs[p], &(struct check){SOCKET, {family, type}, FAIL(EPERM)});
            }
        }
    }
}

static void another_architecture_is_killed(void **state)
{
    static const uint32_t aliens[] = {0, AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_RISCV64,
                                      UINT32_MAX};

    (void)state;
    for (size_t p = 0; p < COUNT(programs); p++) {
        for (int nr = 0; nr < NUMBERS; nr++) {
            struct seccomp_data data = {.nr = nr, .arch = audit_arch[!programs[p].arch]};

            assert_int_equal(interpret(&programs[p], &data), KILL);
            for (size_t i = 0; i < COUNT(aliens); i++) {
                data.arch = aliens[i];
                assert_int_equal(interpret(&programs[p], &data), KILL);
            }
        }
    }
}

static void unknown_and_x32_numbers_look_absent(void **state)
{
    (void)state;
    for (size_t p = 0; p < COUNT(programs); p++) {
        for (uint32_t nr = 0; nr < NUMBERS; nr++) {
            assert_int_equal(verdict(&programs[p], X32 | nr, no_args), FAIL(ENOSYS));
            assert_int_equal(verdict(&programs[p], UINT32_MAX - nr, no_args), FAIL(ENOSYS));
            if (nr > 467)
                assert_int_equal(verdict(&programs[p], nr, no_args), FAIL(ENOSYS));
        }
    }
}

static bool can_pass(const struct program *p, uint32_t nr)
{
    for (size_t i = 0; i < COUNT(checks); i++)
        if (verdict(p, nr, checks[i].args) == ALLOW)
            return true;
    return false;
}

static void filters_stay_small(void **state)
{
    (void)state;
    for (size_t p = 0; p < COUNT(programs); p++) {
        int calls = 0;

        for (uint32_t nr = 0; nr < NUMBERS; nr++)
            calls += can_pass(&programs[p], nr);
        print_message("# %s: %zu instructions, %d calls\n", programs[p].name, programs[p].n, calls);
        assert_true(programs[p].n <= MAX_INSNS);
        assert_true(calls > 200);
        if (programs[p].profile == SECCOMP_DEFAULT)
            assert_true(calls <= MAX_CALLS);
    }
}

/* SC-22: an instruction or a direction that no call can reach is a rule that does nothing. */
static void every_branch_is_reached(void **state)
{
    (void)state;
    for (size_t p = 0; p < COUNT(programs); p++) {
        memset(seen[p], 0, sizeof(seen[p]));
        interpret(&programs[p], &(struct seccomp_data){.arch = 0});
        verdict(&programs[p], X32, no_args);
        for (uint32_t nr = 0; nr < NUMBERS; nr++)
            for (size_t i = 0; i < COUNT(checks); i++)
                verdict(&programs[p], nr, checks[i].args);

        for (size_t i = 0; i < programs[p].n; i++) {
            const bool jumps = BPF_CLASS(programs[p].insns[i].code) == BPF_JMP;
            const uint8_t want = jumps ? SEEN | TAKEN | NOT_TAKEN : SEEN;

            if (seen[p][i] != want)
                fail_msg("%s: instruction %zu: seen %#x of %#x", programs[p].name, i, seen[p][i],
                         want);
        }
    }
}

/* ---- against the golden table ---- */

static const char *golden_path;

static uint32_t golden_errno(const char *name)
{
    if (!strcmp(name, "EPERM"))
        return FAIL(EPERM);
    assert_string_equal(name, "ENOSYS");
    return FAIL(ENOSYS);
}

static void golden_table_tells_the_truth(void **state)
{
    char name[64], action[16], operand[32], line[160];
    uint32_t nr, next = 0;
    FILE *f;

    (void)state;
    if (!golden_path)
        skip();
    f = fopen(golden_path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        operand[0] = '\0';
        assert_true(sscanf(line, "%u %63s %15s %31s", &nr, name, action, operand) >= 3);
        assert_int_equal(nr, next++);
        const struct call call = {name, {(int)nr, -1}};
        if (!strcmp(action, "allow"))
            expect_always(&programs[0], &call, ALLOW);
        else if (!strcmp(action, "errno"))
            expect_always(&programs[0], &call, golden_errno(operand));
        else if (!strcmp(action, "unfiltered")) /* by the kernel; the program does not know */
            expect_always(&programs[0], &call, FAIL(ENOSYS));
        else
            assert_true(can_pass(&programs[0], nr));
    }
    fclose(f);
    assert_int_equal(next, NUMBERS);
}

/* ---- against the kernel ---- */

#if defined(__x86_64__)
static const int own_arch = X86;
#else
static const int own_arch = ARM;
#endif

static void every_profile_has_a_program(void **state)
{
    (void)state;
    for (size_t p = 0; p < COUNT(programs); p++) {
        const struct sock_fprog *prog = seccomp_program(programs[p].profile);

        assert_non_null(prog);
        if (programs[p].arch == own_arch) {
            assert_int_equal(prog->len, programs[p].n);
            assert_memory_equal(prog->filter, programs[p].insns,
                                programs[p].n * sizeof(programs[p].insns[0]));
        }
    }
    assert_null(seccomp_program((enum seccomp_profile)4));
    assert_int_equal(seccomp_load(NULL), -EFAULT);
}

static bool fails_with(long r, int want)
{
    return r == -1 && errno == want;
}

/* Runs under the filter, where cmocka could not report. Returns the number of the broken claim. */
static int claims_under(enum seccomp_profile profile)
{
    const bool runtime = profile == SECCOMP_RUNTIME, build = profile == SECCOMP_BUILD;
    pid_t pid;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_load(seccomp_program(profile)) < 0)
        return 1;
    if (!fails_with(syscall(1000), ENOSYS) || !fails_with(syscall(437 /* openat2 */), ENOSYS))
        return 2;
    if (!fails_with(syscall(425 /* io_uring_setup */, 1, NULL), EPERM))
        return 3;
    if (!fails_with(socket(AF_VSOCK, SOCK_STREAM, 0), EAFNOSUPPORT))
        return 4;
    if (!fails_with(chmod("/nonexistent", 04755), EPERM))
        return 5;
    if (!fails_with(chmod("/nonexistent", 0755), ENOENT))
        return 6;
    if (!runtime && !fails_with(unshare(CLONE_NEWNS), EPERM))
        return 7;
    if (build && (setgid(12345) != 0 || chown("/nonexistent", 1, 1) != 0))
        return 8;
    pid = fork();
    if (pid == 0)
        _exit(0);
    return pid < 0 || waitpid(pid, NULL, 0) != pid ? 9 : 0;
}

static void the_kernel_takes_the_filters(void **state)
{
    (void)state;
    for (enum seccomp_profile p = SECCOMP_DEFAULT; p <= SECCOMP_RUNTIME; p++) {
        int status = -1;
        const pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0)
            _exit(claims_under(p));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static void a_32_bit_call_kills(void **state)
{
    (void)state;
#if defined(__x86_64__)
    int status = 0;
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        long r = 20; /* getpid of i386, writev of x86-64 */

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            seccomp_load(seccomp_program(SECCOMP_DEFAULT)) < 0)
            _exit(1);
        __asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status)); /* SIGSYS; SIGSEGV where the kernel has no 32-bit calls */
#else
    skip();
#endif
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dangerous_calls_are_refused),
        cmocka_unit_test(unfilterable_and_removed_calls_look_absent),
        cmocka_unit_test(ordinary_calls_are_allowed),
        cmocka_unit_test(arguments_decide),
        cmocka_unit_test(profiles_differ_where_they_should),
        cmocka_unit_test(no_family_but_four_passes),
        cmocka_unit_test(another_architecture_is_killed),
        cmocka_unit_test(unknown_and_x32_numbers_look_absent),
        cmocka_unit_test(filters_stay_small),
        cmocka_unit_test(every_branch_is_reached),
        cmocka_unit_test(golden_table_tells_the_truth),
        cmocka_unit_test(every_profile_has_a_program),
        cmocka_unit_test(the_kernel_takes_the_filters),
        cmocka_unit_test(a_32_bit_call_kills),
    };

    golden_path = argc > 1 ? argv[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
