/* SPDX-License-Identifier: Apache-2.0 */
/* The values of docker's flags: refused with a reason, or what came out is whole and in its bounds.
 */
#include "base/error.h"
#include "sandbox/values.h"
#include "sandbox/sandbox.h"
#include "tests/fuzz/fuzz.h"

static void check_path(const char *s, const char *path)
{
    PROPERTY(path && path[0] == '/' && path[1], "'%s': target '%s'", s, path ? path : "NULL");
    PROPERTY(!strstr(path, "//"), "'%s': target '%s' is not clean", s, path);
    for (const char *p = path; (p = strstr(p, "/.")); p++)
        PROPERTY(strcmp(p, "/.") != 0 && strncmp(p, "/./", 3) != 0 && strcmp(p, "/..") != 0 &&
                     strncmp(p, "/../", 4) != 0,
                 "'%s': target '%s' goes up", s, path);
}

static void check_mount(const char *s,
                        int (*parse)(const char *, struct box_mount *, struct error *))
{
    struct box_mount m;
    struct error err = {0};

    if (parse(s, &m, &err) < 0) {
        PROPERTY(err.msg[0], "'%s': no reason", s);
        return;
    }
    check_path(s, m.target);
    PROPERTY(m.kind == BOX_TMPFS || (m.source && m.source[0] == '/'), "'%s': no source", s);
    PROPERTY(m.mode <= 01777, "'%s': mode %o", s, m.mode);
    values_mount_done(&m);
}

static void check_port(const char *s)
{
    struct box_port p;
    struct error err = {0};

    if (values_port(s, &p, &err) < 0) {
        PROPERTY(err.msg[0], "'%s': no reason", s);
        return;
    }
    PROPERTY(p.port > 0 && p.host_ip && p.protocol, "'%s': not whole", s);
    PROPERTY(strcmp(p.protocol, "tcp") == 0 || strcmp(p.protocol, "udp") == 0 ||
                 strcmp(p.protocol, "sctp") == 0,
             "'%s': protocol %s", s, p.protocol);
    PROPERTY(strspn(p.host_ip, "0123456789abcdefABCDEF:.") == strlen(p.host_ip), "'%s': address %s",
             s, p.host_ip);
    values_port_done(&p);
}

static void check_numbers(const char *s)
{
    struct box_ulimit u;
    struct error err = {0};
    uint64_t bytes = 7;
    uint32_t n = 7;

    if (values_size(s, &bytes, &err) < 0)
        PROPERTY(bytes == 7, "size '%s': written though it failed", s);
    PROPERTY(bytes <= INT64_MAX, "size '%s'", s);
    if (values_cpus(s, &n, &err) >= 0)
        PROPERTY(n == 0 || (n >= 10 && n <= 4096000), "cpus '%s': %u", s, n);
    n = 7;
    PROPERTY(values_pids(s, &n, &err) < 0 ? n == 7 : n <= 4194304, "pids '%s': %u", s, n);
    if (values_ulimit(s, &u, &err) >= 0) {
        PROPERTY(u.soft >= -1 && u.hard >= -1 &&
                     (u.hard == -1 || (u.soft != -1 && u.soft <= u.hard)),
                 "ulimit '%s'", s);
        free(u.name);
    }
    (void)values_is_name(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *s = fuzz_text(data, size);

    check_mount(s, values_volume);
    check_mount(s, values_mount);
    check_mount(s, values_tmpfs);
    check_port(s);
    check_numbers(s);
    free(s);
    return 0;
}
