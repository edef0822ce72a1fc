/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "cmd/docker/docker.h"
#include "cmd/docker/request.h"
#include "egress/net.h"
#include "sandbox/sandbox.h"
#include "sandbox/values.h"

enum {
    F_NAME,
    F_LABEL,
    F_ENV,
    F_ENV_FILE,
    F_USER,
    F_WORKDIR,
    F_HOSTNAME,
    F_NETWORK,
    F_ENTRYPOINT,
    F_DNS,
    F_ADD_HOST,
    F_CAP_DROP,
    F_SECURITY,
    F_MEMORY,
    F_MEMORY_SWAP,
    F_CPUS,
    F_PIDS,
    F_ULIMIT,
    F_VOLUME,
    F_MOUNT,
    F_TMPFS,
    F_PUBLISH,
    F_INIT,
    F_READ_ONLY,
    F_RM,
    F_INTERACTIVE,
    F_TTY,
    F_DETACH,
    F_PULL,
    F_PLATFORM,
    F_RESTART,
    F_NAMESPACE, /* --pid, --ipc, --uts, --userns, --cgroupns: only a box's own */
    F_IGNORED,
    F_REFUSED,
};

const struct flag request_rows[] = {
    {"name", 0, F_NAME, "NAME", "name of the box"},
    {"label", 'l', F_LABEL, "KEY[=VALUE]", "set a label"},
    {"env", 'e', F_ENV, "NAME[=VALUE]", "set a variable; NAME alone takes it from here"},
    {"env-file", 0, F_ENV_FILE, "FILE", "set the variables of a file"},
    {"user", 'u', F_USER, "USER[:GROUP]", "user in the box"},
    {"workdir", 'w', F_WORKDIR, "PATH", "folder that commands start in"},
    {"hostname", 'h', F_HOSTNAME, "NAME", "name of the machine in the box"},
    {"network", 0, F_NETWORK, "NAME",
     "none; allowlist; any other: the public internet, but no other box"},
    {"net", 0, F_NETWORK, "NAME", NULL},
    {"entrypoint", 0, F_ENTRYPOINT, "PROGRAM", "in place of the image's"},
    {"dns", 0, F_DNS, "ADDRESS", "recorded"},
    {"add-host", 0, F_ADD_HOST, "NAME:ADDRESS", "a line of /etc/hosts"},
    {"cap-drop", 0, F_CAP_DROP, "CAPABILITY", "recorded: a box never has any"},
    {"security-opt", 0, F_SECURITY, "OPTION", "no-new-privileges is always on"},
    {"memory", 'm', F_MEMORY, "BYTES", "memory of the whole box: 512m, 2g (default 1g)"},
    {"memory-swap", 0, F_MEMORY_SWAP, "BYTES", "recorded"},
    {"cpus", 0, F_CPUS, "N", "processors: 1.5"},
    {"pids-limit", 0, F_PIDS, "N", "processes and threads (default 256)"},
    {"ulimit", 0, F_ULIMIT, "NAME=SOFT[:HARD]", "a limit of each process"},
    {"volume", 'v', F_VOLUME, "HOST:BOX[:ro]", "bind a folder or file of the host"},
    {"mount", 0, F_MOUNT, "FIELDS", "type=bind|tmpfs,source=,target=,readonly"},
    {"tmpfs", 0, F_TMPFS, "PATH[:OPTIONS]", "an empty folder in memory"},
    {"publish", 'p', F_PUBLISH, "[[IP:]PORT:]PORT",
     "serve a port of the box on the host's loopback"},
    {"init", 0, F_INIT, NULL, "a box always has one"},
    {"read-only", 0, F_READ_ONLY, NULL, "the root cannot be written"},
    {"rm", 0, F_RM, NULL, "remove the box when it ends"},
    {"interactive", 'i', F_INTERACTIVE, NULL, "keep stdin open"},
    {"tty", 't', F_TTY, NULL, "give it a terminal"},
    {"detach", 'd', F_DETACH, NULL, "run it in the background (run)"},
    {"pull", 0, F_PULL, "WHEN", "never, missing or always: nothing is pulled by itself"},
    {"platform", 0, F_PLATFORM, "NAME", "this machine's"},
    {"restart", 0, F_RESTART, "no", "nothing restarts a box"},
    {"pid", 0, F_NAMESPACE, "private", NULL},
    {"ipc", 0, F_NAMESPACE, "private", NULL},
    {"uts", 0, F_NAMESPACE, "private", NULL},
    {"userns", 0, F_NAMESPACE, "private", NULL},
    {"cgroupns", 0, F_NAMESPACE, "private", NULL},
    {"quiet", 'q', F_IGNORED, NULL, NULL},
    {"sig-proxy", 0, F_IGNORED, NULL, NULL},
    {"disable-content-trust", 0, F_IGNORED, NULL, NULL},
    /* Refused, each with a reason of its own or the common one. */
    {"privileged", 0, F_REFUSED, NULL, NULL},
    {"gpus", 0, F_REFUSED, "DEVICES", NULL},
    {"cap-add", 0, F_REFUSED, "CAPABILITY", NULL},
    {"device", 0, F_REFUSED, "DEVICE", NULL},
    {"volumes-from", 0, F_REFUSED, "BOX", NULL},
    {"runtime", 0, F_REFUSED, "NAME", NULL},
    {"link", 0, F_REFUSED, "BOX", NULL},
    {"publish-all", 'P', F_REFUSED, NULL, NULL},
    {"group-add", 0, F_REFUSED, "GROUP", NULL},
    {"shm-size", 0, F_REFUSED, "BYTES", NULL},
    {"sysctl", 0, F_REFUSED, "NAME=VALUE", NULL},
    {"cpu-shares", 'c', F_REFUSED, "N", NULL},
    {"cpu-quota", 0, F_REFUSED, "N", NULL},
    {"cpu-period", 0, F_REFUSED, "N", NULL},
    {"cpuset-cpus", 0, F_REFUSED, "LIST", NULL},
    {"memory-reservation", 0, F_REFUSED, "BYTES", NULL},
    {"oom-kill-disable", 0, F_REFUSED, NULL, NULL},
    {"oom-score-adj", 0, F_REFUSED, "N", NULL},
    {"cgroup-parent", 0, F_REFUSED, "PATH", NULL},
    {"log-driver", 0, F_REFUSED, "NAME", NULL},
    {"log-opt", 0, F_REFUSED, "OPTION", NULL},
    {"stop-signal", 0, F_REFUSED, "SIGNAL", NULL},
    {"stop-timeout", 0, F_REFUSED, "SECONDS", NULL},
    {"storage-opt", 0, F_REFUSED, "OPTION", NULL},
    {"health-cmd", 0, F_REFUSED, "COMMAND", NULL},
    {"cidfile", 0, F_REFUSED, "FILE", NULL},
    {"label-file", 0, F_REFUSED, "FILE", NULL},
    {"expose", 0, F_REFUSED, "PORT", NULL},
    {"ip", 0, F_REFUSED, "ADDRESS", NULL},
    {"mac-address", 0, F_REFUSED, "ADDRESS", NULL},
    {"dns-search", 0, F_REFUSED, "DOMAIN", NULL},
    {"dns-option", 0, F_REFUSED, "OPTION", NULL},
    {"network-alias", 0, F_REFUSED, "NAME", NULL},
};
const size_t request_n_rows = sizeof(request_rows) / sizeof(*request_rows);

/* ---- refusals ---- */

static int refuse(const char *flag, const char *value, const char *reason)
{
    return -say_refused("--%s%s%s is refused: %s", flag, value ? " " : "", value ? value : "",
                        reason);
}

static int refuse_flag(const struct flags *f)
{
    static const struct {
        const char *name, *reason;
    } reasons[] = {
        {"privileged", "a box never has privileges over the host"},
        {"gpus", "a box sees no devices of the host"},
        {"device", "a box sees no devices of the host"},
        {"cap-add", "a box has no capabilities, and its filter expects none"},
        {"volumes-from", "boxes share nothing; bind the same folder with -v"},
        {"link", "boxes have no network between each other"},
        {"shm-size", "/dev/shm counts into the memory limit; set --memory"},
        {"oom-kill-disable", "a box cannot ask the kernel to spare it"},
        {"oom-score-adj", "a box cannot ask the kernel to spare it"},
        {"log-driver", "the log of a box is a file: docker logs"},
    };

    if (!f->flag->arg && !f->on)
        return 0; /* --privileged=false */
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
        if (strcmp(reasons[i].name, f->flag->name) == 0)
            return refuse(f->flag->name, NULL, reasons[i].reason);
    return refuse(f->flag->name, NULL, "ClawDen's docker does not have this setting");
}

/* --pid host and its like: a box's namespaces are its own. */
static int set_namespace(const struct flags *f)
{
    if (f->value[0] == 0 || strcmp(f->value, "private") == 0)
        return 0;
    return refuse(f->flag->name, f->value,
                  "a box shares no namespace with the host or another box");
}

static int set_network(struct request *q, const char *name)
{
    if (strcmp(name, "host") == 0)
        return refuse("network", name, "a box never shares the host's network");
    if (strncmp(name, "container:", 10) == 0)
        return refuse("network", name, "a box shares no namespace with another box");
    if (name[0] == 0 || strcmp(name, "default") == 0)
        name = "bridge";
    if (strchr(name, '/') || strlen(name) > 128)
        return refuse("network", "", "this is no name of a network");
    strings_set(&q->record->network, name);
    return 0;
}

/* ---- security options ---- */

static bool has_word(const char *s, const char *word)
{
    return strcasestr(s, word) != NULL;
}

static int set_security(struct request *q, const struct flags *f)
{
    static const char nnp[] = "no-new-privileges";
    const char *v = f->value, *rest = v + strlen(nnp);

    if (has_word(v, "unconfined"))
        return refuse("security-opt", v, "ClawDen's own filter cannot be taken off");
    if (strncmp(v, nnp, strlen(nnp)) == 0) {
        if (*rest && strcmp(rest, ":true") != 0 && strcmp(rest, "=true") != 0)
            return refuse("security-opt", v, "no_new_privs is always on");
    } else if (strncmp(v, "seccomp=", 8) == 0 || strncmp(v, "apparmor=", 9) == 0) {
        char note[512];

        (void)snprintf(note, sizeof(note),
                       "--security-opt %s is recorded, not loaded: ClawDen's own filter stays on",
                       v);
        strings_add(&q->notes, note);
    } else if (strncmp(v, "label=", 6) != 0 && strncmp(v, "label:", 6) != 0) {
        return refuse("security-opt", v, "ClawDen's docker does not have this setting");
    }
    strings_add(&q->record->security, v);
    return 0;
}

/* ---- lists of the record ---- */

static int add_label(struct request *q, const struct flags *f)
{
    struct box_record *r = q->record;
    size_t n = strcspn(f->value, "=");
    struct box_label *label = NULL;

    if (n == 0)
        return flags_bad(f, "invalid label '%s': empty name", f->value);
    for (size_t i = 0; i < r->n_labels && !label; i++)
        if (strlen(r->labels[i].name) == n && memcmp(r->labels[i].name, f->value, n) == 0)
            label = &r->labels[i];
    if (!label) {
        r->labels = realloc(r->labels, (r->n_labels + 1) * sizeof(*r->labels));
        if (!r->labels)
            abort();
        label = &r->labels[r->n_labels++];
        *label = (struct box_label){.name = strndup(f->value, n)};
        if (!label->name)
            abort();
    }
    strings_set(&label->value, f->value[n] ? f->value + n + 1 : "");
    return 0;
}

/* --mount is read by docker's client, the others by its daemon. */
static int bad_mount(const struct flags *f, const struct error *err)
{
    if (f->flag->id == F_MOUNT)
        return flags_bad(f, "%s", err->msg);
    if (strstr(err->msg, "colons"))
        return -say_refused("invalid volume specification: '%s'", f->value);
    if (f->flag->id == F_TMPFS || strncmp(err->msg, "invalid mount", 13) != 0)
        return -say_refused("%s", err->msg);
    return -say_refused(
        "invalid volume specification: '%s': invalid mount config for type \"bind\": %s", f->value,
        err->msg);
}

static bool is_same_mount(const struct box_mount *a, const struct box_mount *b)
{
    return a->kind == BOX_BIND && b->kind == BOX_BIND && strcmp(a->source, b->source) == 0 &&
           strcmp(a->options ? a->options : "", b->options ? b->options : "") == 0;
}

static int add_mount(struct request *q, const struct flags *f,
                     int (*parse)(const char *, struct box_mount *, struct error *))
{
    struct box_record *r = q->record;
    struct box_mount m;
    struct error err;

    if (parse(f->value, &m, &err) < 0)
        return err.code == ERR_INVALID ? bad_mount(f, &err)
                                       : refuse(f->flag->name, f->value, err.msg);
    for (size_t i = 0; i < r->n_mounts; i++)
        if (strcmp(r->mounts[i].target, m.target) == 0) {
            int status = is_same_mount(&r->mounts[i], &m)
                             ? 0
                             : say_refused("Duplicate mount point: %s", m.target);

            values_mount_done(&m);
            return -status;
        }
    if (f->flag->id == F_MOUNT && m.kind == BOX_BIND && access(m.source, F_OK) < 0) {
        int status = say_refused(
            "invalid mount config for type \"bind\": bind source path does not exist: %s",
            m.source);

        values_mount_done(&m);
        return -status;
    }
    q->has_tmp |= strcmp(m.target, "/tmp") == 0;
    r->mounts = realloc(r->mounts, (r->n_mounts + 1) * sizeof(*r->mounts));
    if (!r->mounts)
        abort();
    r->mounts[r->n_mounts++] = m;
    return 0;
}

static int add_ulimit(struct request *q, const struct flags *f)
{
    struct box_record *r = q->record;
    struct box_ulimit u;
    struct error err;

    if (values_ulimit(f->value, &u, &err) < 0)
        return flags_bad(f, "%s", err.msg);
    for (size_t i = 0; i < r->n_ulimits; i++)
        if (strcmp(r->ulimits[i].name, u.name) == 0) {
            free(r->ulimits[i].name);
            r->ulimits[i] = u;
            return 0;
        }
    r->ulimits = realloc(r->ulimits, (r->n_ulimits + 1) * sizeof(*r->ulimits));
    if (!r->ulimits)
        abort();
    r->ulimits[r->n_ulimits++] = u;
    return 0;
}

static bool is_loopback(const char *ip)
{
    return strncmp(ip, "127.", 4) == 0 || strcmp(ip, "::1") == 0;
}

static int add_port(struct request *q, const struct flags *f)
{
    struct box_record *r = q->record;
    struct box_port p;
    struct error err;

    if (values_port(f->value, &p, &err) < 0) {
        if (err.code == ERR_INVALID)
            (void)fprintf(stderr, "docker: %s\nSee 'docker %s --help'.\n", err.msg, f->verb);
        else
            return refuse("publish", f->value, err.msg);
        return -FLAGS_FAILED;
    }
    if (p.port == 53 || p.port == NET_PROXY_PORT || p.port == NET_CAUGHT_PORT) {
        values_port_done(&p);
        return refuse("publish", f->value, "this port of a box is the relay's own");
    }
    if (p.host_ip[0] && !is_loopback(p.host_ip)) {
        values_port_done(&p);
        return refuse("publish", f->value, "a box is offered to this machine's loopback alone");
    }
    r->ports = realloc(r->ports, (r->n_ports + 1) * sizeof(*r->ports));
    if (!r->ports)
        abort();
    r->ports[r->n_ports++] = p;
    return 0;
}

/* ---- single values ---- */

static int set_memory(struct request *q, const struct flags *f)
{
    struct error err;

    if (values_size(f->value, &q->record->limits.memory_bytes, &err) < 0)
        return flags_bad(f, "%s", err.msg);
    if (q->record->limits.memory_bytes && q->record->limits.memory_bytes < 6 << 20)
        return -say_refused("Minimum memory limit allowed is 6MB");
    q->has_memory = true;
    return 0;
}

static int set_swap(struct request *q, const struct flags *f)
{
    struct error err;
    uint64_t bytes;

    q->has_swap = true;
    q->swap_unlimited = strcmp(f->value, "-1") == 0;
    q->record->memory_swap = -1;
    if (!q->swap_unlimited) {
        if (values_size(f->value, &bytes, &err) < 0)
            return flags_bad(f, "%s", err.msg);
        q->record->memory_swap = (int64_t)bytes;
    }
    return 0;
}

static int set_number(struct request *q, const struct flags *f)
{
    struct box_limits *l = &q->record->limits;
    struct error err;
    int r;

    if (f->flag->id == F_CPUS)
        r = values_cpus(f->value, &l->cpu_milli, &err);
    else
        r = values_pids(f->value, &l->pids, &err);
    q->has_pids |= f->flag->id == F_PIDS;
    return r < 0 ? flags_bad(f, "%s", err.msg) : 0;
}

static int set_env(struct request *q, const struct flags *f)
{
    struct error err;

    if (f->flag->id == F_ENV) {
        if (env_set(&q->given, f->value, &err) >= 0)
            return 0;
    } else if (env_read_file(&q->files, f->value, &err) >= 0) {
        return 0;
    }
    (void)fprintf(stderr, "docker: %s\nSee 'docker %s --help'.\n", err.msg, f->verb);
    return -FLAGS_FAILED;
}

static int set_platform(const struct flags *f)
{
    struct utsname u;
    const char *arch = "", *v = f->value;

    if (uname(&u) == 0)
        arch = strcmp(u.machine, "x86_64") == 0    ? "amd64"
               : strcmp(u.machine, "aarch64") == 0 ? "arm64"
                                                   : u.machine;
    if (strncmp(v, "linux", 5) == 0 && (v[5] == '/' || v[5] == 0))
        v += v[5] ? 6 : 5;
    if (*v == 0 || strcmp(v, arch) == 0 || strcmp(v, u.machine) == 0)
        return 0;
    return refuse("platform", f->value, "boxes run on this machine's own processor");
}

static int set_pull(struct request *q, const struct flags *f)
{
    if (strcmp(f->value, "never") != 0 && strcmp(f->value, "missing") != 0 &&
        strcmp(f->value, "always") != 0)
        return flags_bad(f,
                         "invalid pull option: '%s': must be one of \"always\", \"missing\" or "
                         "\"never\"",
                         f->value);
    q->pull = f->value;
    if (strcmp(f->value, "always") == 0)
        strings_add(&q->notes, "--pull always: nothing is pulled by itself; 'docker pull' does it");
    return 0;
}

static int add_address(struct request *q, const struct flags *f)
{
    unsigned char binary[16];

    if (f->flag->id == F_DNS) {
        if (inet_pton(AF_INET, f->value, binary) != 1 && inet_pton(AF_INET6, f->value, binary) != 1)
            return flags_bad(f, "IP address is not correctly formatted: %s", f->value);
        strings_add(&q->record->dns, f->value);
        return 0;
    }
    if (!strpbrk(f->value, ":=") || strpbrk(f->value, ":=") == f->value || strpbrk(f->value, "\n "))
        return flags_bad(f, "bad format for add-host: \"%s\"", f->value);
    strings_add(&q->record->extra_hosts, f->value);
    return 0;
}

static int set_workdir(struct request *q, const struct flags *f)
{
    if (f->value[0] != '/')
        return -say_refused(
            "the working directory '%s' is invalid, it needs to be an absolute path", f->value);
    strings_set(&q->record->workdir, f->value);
    return 0;
}

static int set_name(struct request *q, const struct flags *f)
{
    const char *name = f->value[0] == '/' ? f->value + 1 : f->value;

    if (!f->value[0])
        return 0; /* as if it had not been said */
    if (!values_is_name(name) || strlen(name) > 200)
        return -say_refused(
            "Invalid container name (%s), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed", f->value);
    strings_set(&q->record->name, name);
    return 0;
}

static int set_switch(struct request *q, const struct flags *f)
{
    struct box_record *r = q->record;

    if (f->flag->id == F_INIT)
        r->init = f->on;
    else if (f->flag->id == F_READ_ONLY)
        r->read_only_root = f->on;
    else if (f->flag->id == F_RM)
        r->auto_remove = f->on;
    else if (f->flag->id == F_INTERACTIVE)
        r->open_stdin = f->on;
    else if (f->flag->id == F_TTY)
        r->tty = f->on;
    else if (f->flag->id == F_DETACH && q->run)
        q->detach = f->on;
    return 0;
}

static int set_text(struct request *q, const struct flags *f)
{
    struct box_record *r = q->record;

    if (f->flag->id == F_USER)
        strings_set(&r->user, f->value);
    else if (f->flag->id == F_HOSTNAME)
        strings_set(&r->hostname, f->value);
    else if (f->flag->id == F_CAP_DROP)
        strings_add(&r->cap_drop, f->value);
    else if (f->flag->id == F_ENTRYPOINT)
        q->entrypoint = f->value;
    else if (f->flag->id == F_RESTART && f->value[0] && strcmp(f->value, "no") != 0)
        return refuse("restart", f->value, "there is no daemon that would restart a box");
    return 0;
}

static int on_flag(void *arg, const struct flags *f)
{
    struct request *q = arg;

    switch (f->flag->id) {
    case F_NAME:
        return set_name(q, f);
    case F_LABEL:
        return add_label(q, f);
    case F_ENV:
    case F_ENV_FILE:
        return set_env(q, f);
    case F_WORKDIR:
        return set_workdir(q, f);
    case F_NETWORK:
        return set_network(q, f->value);
    case F_DNS:
    case F_ADD_HOST:
        return add_address(q, f);
    case F_SECURITY:
        return set_security(q, f);
    case F_MEMORY:
        return set_memory(q, f);
    case F_MEMORY_SWAP:
        return set_swap(q, f);
    case F_CPUS:
    case F_PIDS:
        return set_number(q, f);
    case F_ULIMIT:
        return add_ulimit(q, f);
    case F_VOLUME:
        return add_mount(q, f, values_volume);
    case F_MOUNT:
        return add_mount(q, f, values_mount);
    case F_TMPFS:
        return add_mount(q, f, values_tmpfs);
    case F_PUBLISH:
        return add_port(q, f);
    case F_PULL:
        return set_pull(q, f);
    case F_PLATFORM:
        return set_platform(f);
    case F_NAMESPACE:
        return set_namespace(f);
    case F_REFUSED:
        return refuse_flag(f);
    case F_IGNORED:
        return 0;
    case F_USER:
    case F_HOSTNAME:
    case F_CAP_DROP:
    case F_ENTRYPOINT:
    case F_RESTART:
        return set_text(q, f);
    default:
        return set_switch(q, f);
    }
}

bool request_read(struct request *q, int argc, char **argv, int *ret_status)
{
    struct flags f = {.verb = q->run ? "run" : "create",
                      .usage = "IMAGE [COMMAND] [ARG...]",
                      .rows = request_rows,
                      .n_rows = request_n_rows,
                      .words_end_flags = true,
                      .argc = argc,
                      .argv = argv};

    q->record = calloc(1, sizeof(*q->record));
    if (!q->record)
        abort();
    if (!flags_read(&f, 1, -1, on_flag, q)) {
        *ret_status = f.status;
        return false;
    }
    strings_set(&q->record->image, f.words[0]);
    q->command = f.words + 1;
    return true;
}

void request_done(struct request *q)
{
    for (size_t i = 0; q->notes && q->notes[i]; i++)
        free(q->notes[i]);
    free(q->notes);
    env_done(&q->files);
    env_done(&q->given);
    box_record_free(q->record);
    *q = (struct request){0};
}
