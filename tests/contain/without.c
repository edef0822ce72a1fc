/* SPDX-License-Identifier: Apache-2.0 */
/*
 * without: runs a command on a kernel that lacks one system call.
 *
 *     without NUMBER ERRNO command [words]
 *
 * The call fails with ERRNO for the command and everything it starts. Numbers, not names: the
 * calls that matter are newer than the headers of some build hosts.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};

    if (argc < 4) {
        fprintf(stderr, "usage: without NUMBER ERRNO command [words]\n");
        return 2;
    }
    code[1].k = (unsigned)strtoul(argv[1], NULL, 10);
    code[2].k |= (unsigned)strtoul(argv[2], NULL, 10) & SECCOMP_RET_DATA;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0) {
        fprintf(stderr, "without: load the filter: %s\n", strerror(errno));
        return 2;
    }
    execv(argv[3], argv + 3);
    fprintf(stderr, "without: execute '%s': %s\n", argv[3], strerror(errno));
    return 2;
}
