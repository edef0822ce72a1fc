/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine.h"

const char *limit_name(enum limit_kind kind)
{
    static const char *const names[LIMIT_KINDS] = {
        [LIMIT_NONE] = "none",           [LIMIT_MEMORY] = "memory", [LIMIT_CPU] = "cpu",
        [LIMIT_PIDS] = "pids",           [LIMIT_WALL] = "timeout",  [LIMIT_CPU_TIME] = "cpu_time",
        [LIMIT_OUTPUT] = "output",       [LIMIT_TMP] = "tmp",       [LIMIT_DISK] = "disk",
        [LIMIT_FILE_SIZE] = "file_size",
    };

    return names[kind];
}

const char *grade_name(enum grade g)
{
    static const char *const names[] = {"none", "supervised", "kernel"};

    return names[g];
}

const char *belt_name(enum belt b)
{
    static const char *const names[BELT_COUNT] = {
        [BELT_USER_NS] = "user_namespace",
        [BELT_MOUNT_NS] = "mount_namespace",
        [BELT_PID_NS] = "pid_namespace",
        [BELT_NET_NS] = "net_namespace",
        [BELT_IPC_NS] = "ipc_namespace",
        [BELT_UTS_NS] = "uts_namespace",
        [BELT_CGROUP_NS] = "cgroup_namespace",
        [BELT_NO_CAPS] = "no_capabilities",
        [BELT_NO_NEW_PRIVS] = "no_new_privs",
        [BELT_SECCOMP] = "seccomp",
        [BELT_READ_ONLY_ROOT] = "read_only_root",
        [BELT_LANDLOCK] = "landlock",
        [BELT_KEYRING] = "new_keyring",
        [BELT_NO_NESTED_USER_NS] = "no_nested_user_namespaces",
    };

    return names[b];
}
