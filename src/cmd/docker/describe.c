/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A box as docker's inspect shows it. HostConfig is what was asked for; where a box differs, the
 * object ClawDen says how.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/docker/docker.h"
#include "sandbox/sandbox.h"

bool describe_is_scratch(const struct box_mount *m)
{
    return m->kind == BOX_TMPFS && m->implied;
}

const char *describe_status(const struct box_state *s)
{
    if (s->running)
        return s->paused ? "paused" : "running";
    return s->started_usec ? "exited" : "created";
}

static void put_time(struct buf *b, const char *key, int64_t usec)
{
    char text[64];

    buf_json_str(b, key, say_time(usec, text, sizeof(text)));
}

static void open_object(struct buf *b, const char *key)
{
    buf_json_key(b, key);
    buf_puts(b, "{");
}

static void put_null(struct buf *b, const char *key)
{
    buf_json_key(b, key);
    buf_puts(b, "null");
}

static void put_state(struct buf *b, const struct box_state *s)
{
    open_object(b, "State");
    buf_json_str(b, "Status", describe_status(s));
    buf_json_bool(b, "Running", s->running);
    buf_json_bool(b, "Paused", s->paused);
    buf_json_bool(b, "Restarting", false);
    buf_json_bool(b, "OOMKilled", s->oom_killed);
    buf_json_bool(b, "Dead", false);
    buf_json_num(b, "Pid", s->running ? s->init_pid : 0);
    buf_json_num(b, "ExitCode", s->running ? 0 : s->exit_code);
    buf_json_str(b, "Error", s->problem);
    put_time(b, "StartedAt", s->started_usec);
    put_time(b, "FinishedAt", s->running ? 0 : s->finished_usec);
    buf_puts(b, "}");
}

/* Binds, all of them and nothing else: OpenClaw compares this list with the box's mountinfo. */
static void put_mounts(struct buf *b, const struct box_record *r)
{
    bool first = true;

    buf_json_key(b, "Mounts");
    buf_puts(b, "[");
    for (size_t i = 0; i < r->n_mounts; i++) {
        const struct box_mount *m = &r->mounts[i];

        if (m->kind != BOX_BIND)
            continue;
        buf_puts(b, first ? "{" : ",{");
        first = false;
        buf_json_str(b, "Type", "bind");
        buf_json_str(b, "Source", m->source);
        buf_json_str(b, "Destination", m->target);
        buf_json_str(b, "Mode", m->options ? m->options : "");
        buf_json_bool(b, "RW", !m->read_only);
        buf_json_str(b, "Propagation", "rprivate");
        buf_puts(b, "}");
    }
    buf_puts(b, "]");
}

static void put_labels(struct buf *b, const struct box_record *r)
{
    open_object(b, "Labels");
    for (size_t i = 0; i < r->n_labels; i++)
        buf_json_str(b, r->labels[i].name, r->labels[i].value);
    buf_puts(b, "}");
}

static bool is_first_of_port(const struct box_record *r, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (r->ports[k].port == r->ports[i].port &&
            strcmp(r->ports[k].protocol, r->ports[i].protocol) == 0)
            return false;
    return true;
}

/* `published`: the ports as they are now, or NULL: as they were asked for. */
static void put_bindings_of(struct buf *b, const struct box_record *r, const struct box_port *same,
                            const uint16_t *published)
{
    bool first = true;

    buf_puts(b, "[");
    for (size_t i = 0; i < r->n_ports; i++) {
        const struct box_port *p = &r->ports[i];
        unsigned number = !published ? p->host_port : i < LIMIT_PUBLISHED ? published[i] : 0;
        char port[8] = "";

        if (p->port != same->port || strcmp(p->protocol, same->protocol) != 0 ||
            (published && !number))
            continue;
        if (number)
            (void)snprintf(port, sizeof(port), "%u", number);
        buf_puts(b, first ? "{" : ",{");
        first = false;
        buf_json_str(b, "HostIp",
                     p->host_ip && p->host_ip[0] ? p->host_ip
                     : published                 ? "127.0.0.1"
                                                 : "");
        buf_json_str(b, "HostPort", port);
        buf_puts(b, "}");
    }
    buf_puts(b, "]");
}

void describe_published(const struct box_port *p, uint16_t port, char *text, size_t size)
{
    const char *ip = p->host_ip && p->host_ip[0] ? p->host_ip : "127.0.0.1";

    (void)snprintf(text, size, strchr(ip, ':') ? "[%s]:%u" : "%s:%u", ip, port);
}

static void put_ports(struct buf *b, const char *key, const struct box_record *r, bool bindings,
                      const uint16_t *published)
{
    open_object(b, key);
    for (size_t i = 0; i < r->n_ports; i++) {
        char name[32];

        if (!is_first_of_port(r, i))
            continue;
        (void)snprintf(name, sizeof(name), "%u/%s", r->ports[i].port, r->ports[i].protocol);
        buf_json_key(b, name);
        if (bindings)
            put_bindings_of(b, r, &r->ports[i], published);
        else
            buf_puts(b, "{}");
    }
    buf_puts(b, "}");
}

static void put_entrypoint(struct buf *b, const struct box_record *r)
{
    if (!r->n_entrypoint) {
        put_null(b, "Entrypoint");
        return;
    }
    buf_json_key(b, "Entrypoint");
    buf_puts(b, "[");
    for (size_t i = 0; i < r->n_entrypoint; i++) {
        buf_puts(b, i ? "," : "");
        buf_json_string(b, r->command[i], strlen(r->command[i]));
    }
    buf_puts(b, "]");
}

static void put_config(struct buf *b, const struct box_record *r)
{
    char host[16];

    (void)snprintf(host, sizeof(host), "%.12s", r->id);
    open_object(b, "Config");
    buf_json_str(b, "Hostname", r->hostname ? r->hostname : host);
    buf_json_str(b, "Domainname", "");
    buf_json_str(b, "User", r->user ? r->user : "");
    buf_json_bool(b, "AttachStdin", false);
    buf_json_bool(b, "AttachStdout", true);
    buf_json_bool(b, "AttachStderr", true);
    buf_json_bool(b, "Tty", r->tty);
    buf_json_bool(b, "OpenStdin", r->open_stdin);
    buf_json_bool(b, "StdinOnce", false);
    if (r->n_ports)
        put_ports(b, "ExposedPorts", r, false, NULL);
    else
        put_null(b, "ExposedPorts");
    show_strings(b, "Env", r->env);
    show_strings(b, "Cmd", r->command ? r->command + r->n_entrypoint : NULL);
    buf_json_str(b, "Image", r->image);
    buf_json_str(b, "WorkingDir", r->workdir ? r->workdir : "");
    put_entrypoint(b, r);
    put_null(b, "Volumes");
    put_null(b, "OnBuild");
    put_labels(b, r);
    buf_puts(b, "}");
}

static void put_binds(struct buf *b, const struct box_record *r)
{
    bool any = false;

    buf_json_key(b, "Binds");
    for (size_t i = 0; i < r->n_mounts; i++) {
        const struct box_mount *m = &r->mounts[i];
        autobuf text;

        if (m->kind != BOX_BIND)
            continue;
        buf_init(&text, 3 * 4096);
        buf_printf(&text, "%s:%s%s%s", m->source, m->target, m->options ? ":" : "",
                   m->options ? m->options : "");
        buf_puts(b, any ? "," : "[");
        if (!text.failed)
            buf_json_string(b, text.data, text.len);
        any = true;
    }
    buf_puts(b, any ? "]" : "null");
}

static void put_tmpfs(struct buf *b, const struct box_record *r)
{
    bool any = false;

    for (size_t i = 0; i < r->n_mounts; i++) {
        const struct box_mount *m = &r->mounts[i];

        if (m->kind != BOX_TMPFS || describe_is_scratch(m))
            continue;
        if (!any)
            open_object(b, "Tmpfs");
        any = true;
        buf_json_str(b, m->target, m->options ? m->options : "");
    }
    if (any)
        buf_puts(b, "}");
    else
        put_null(b, "Tmpfs");
}

static void put_ulimits(struct buf *b, const struct box_record *r)
{
    buf_json_key(b, "Ulimits");
    if (!r->n_ulimits)
        buf_puts(b, "null");
    for (size_t i = 0; i < r->n_ulimits; i++) {
        buf_puts(b, i ? ",{" : "[{");
        buf_json_str(b, "Name", r->ulimits[i].name);
        buf_json_num(b, "Hard", r->ulimits[i].hard);
        buf_json_num(b, "Soft", r->ulimits[i].soft);
        buf_puts(b, "}");
    }
    if (r->n_ulimits)
        buf_puts(b, "]");
}

/* An array even when it is empty, where docker has one. */
static void put_list(struct buf *b, const char *key, char *const *list)
{
    if (list && list[0]) {
        show_strings(b, key, list);
        return;
    }
    buf_json_key(b, key);
    buf_puts(b, "[]");
}

/* What a box never has, in docker's types: a template that names it must not fail. */
static void put_never(struct buf *b)
{
    static const char *const null[] = {"GroupAdd", "Links", "VolumesFrom"};
    static const char *const empty[] = {"PidMode", "UTSMode", "UsernsMode", "CgroupParent"};
    static const char *const list[] = {"Devices", "DnsOptions", "DnsSearch"};
    static const char *const zero[] = {"CpuShares", "CpuPeriod", "CpuQuota", "MemoryReservation"};

    for (size_t i = 0; i < sizeof(null) / sizeof(*null); i++)
        put_null(b, null[i]);
    for (size_t i = 0; i < sizeof(empty) / sizeof(*empty); i++)
        buf_json_str(b, empty[i], "");
    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
        put_list(b, list[i], NULL);
    for (size_t i = 0; i < sizeof(zero) / sizeof(*zero); i++)
        buf_json_num(b, zero[i], 0);
    buf_json_str(b, "CpusetCpus", "");
    buf_json_bool(b, "OomKillDisable", false);
    buf_json_bool(b, "PublishAllPorts", false);
    buf_json_str(b, "IpcMode", "private");
    buf_json_str(b, "Runtime", "clawden");
    open_object(b, "LogConfig");
    buf_json_str(b, "Type", "clawden");
    open_object(b, "Config");
    buf_puts(b, "}}");
    open_object(b, "RestartPolicy");
    buf_json_str(b, "Name", "no");
    buf_json_num(b, "MaximumRetryCount", 0);
    buf_puts(b, "}");
}

static void put_host_config(struct buf *b, const struct box_record *r)
{
    open_object(b, "HostConfig");
    put_never(b);
    put_binds(b, r);
    buf_json_str(b, "NetworkMode", r->network ? r->network : "none");
    put_ports(b, "PortBindings", r, true, NULL);
    buf_json_bool(b, "AutoRemove", r->auto_remove);
    buf_json_bool(b, "Privileged", false);
    buf_json_bool(b, "ReadonlyRootfs", r->read_only_root);
    put_tmpfs(b, r);
    show_strings(b, "CapDrop", r->cap_drop);
    put_null(b, "CapAdd");
    show_strings(b, "SecurityOpt", r->security);
    buf_json_num(b, "Memory", (long long)r->limits.memory_bytes);
    buf_json_num(b, "MemorySwap", (long long)r->memory_swap);
    buf_json_num(b, "NanoCpus", r->limits.cpu_milli * 1000000LL);
    buf_json_num(b, "PidsLimit", r->limits.pids);
    buf_json_num(b, "ShmSize", (long long)r->limits.tmp_bytes); /* of the same scratch space */
    put_ulimits(b, r);
    if (r->init)
        buf_json_bool(b, "Init", true);
    else
        put_null(b, "Init"); /* not asked for; a box has one all the same */
    put_list(b, "Dns", r->dns);
    show_strings(b, "ExtraHosts", r->extra_hosts);
    buf_puts(b, "}");
}

/* It has none but its loopback. */
static void put_addresses(struct buf *b)
{
    static const char *const none[] = {"EndpointID",  "Gateway",           "IPAddress",
                                       "IPv6Gateway", "GlobalIPv6Address", "MacAddress"};

    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        buf_json_str(b, none[i], "");
    buf_json_num(b, "IPPrefixLen", 0);
    buf_json_num(b, "GlobalIPv6PrefixLen", 0);
}

static void put_networks(struct buf *b, const struct box_record *r, const struct box_state *s)
{
    open_object(b, "NetworkSettings");
    put_ports(b, "Ports", s->running && sandbox_has_network(r) ? r : &(struct box_record){0}, true,
              s->published);
    put_addresses(b);
    open_object(b, "Networks");
    open_object(b, r->network ? r->network : "none");
    put_addresses(b);
    put_null(b, "IPAMConfig");
    put_null(b, "Links");
    put_null(b, "Aliases");
    put_null(b, "DriverOpts");
    buf_json_str(b, "NetworkID", "");
    buf_puts(b, "}}}");
    buf_json_key(b, "Warnings");
    buf_puts(b, r->n_ports && !sandbox_has_network(r)
                    ? "[\"published ports are recorded; without a network nothing is forwarded\"]"
                    : "[]");
}

static void put_clawden(struct buf *b, const struct box_record *r)
{
    open_object(b, "ClawDen");
    buf_json_str(b, "Root", r->image_id[0] ? "image" : "host");
    buf_json_str(b, "Network", sandbox_has_network(r) ? "egress relay" : "none");
    buf_json_str(b, "Capabilities", "none");
    buf_json_bool(b, "NoNewPrivileges", true);
    buf_json_str(b, "Seccomp", "clawden");
    open_object(b, "Scratch");
    for (size_t i = 0; i < r->n_mounts; i++)
        if (describe_is_scratch(&r->mounts[i]))
            buf_json_num(b, r->mounts[i].target, (long long)r->mounts[i].bytes);
    buf_puts(b, "}");
    buf_puts(b, "}");
}

/* Files of docker's own, which a box has not; and labels of systems that it does not use. */
static void put_paths(struct buf *b)
{
    static const char *const none[] = {"ResolvConfPath", "HostnamePath", "HostsPath",
                                       "LogPath",        "MountLabel",   "ProcessLabel",
                                       "AppArmorProfile"};

    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        buf_json_str(b, none[i], "");
    put_null(b, "ExecIDs");
}

static void put_args(struct buf *b, const struct box_record *r)
{
    buf_json_str(b, "Path", r->command && r->command[0] ? r->command[0] : "");
    buf_json_key(b, "Args");
    buf_puts(b, "[");
    for (size_t i = 1; r->command && r->command[0] && r->command[i]; i++) {
        if (i > 1)
            buf_puts(b, ",");
        buf_json_string(b, r->command[i], strlen(r->command[i]));
    }
    buf_puts(b, "]");
}

void describe_box(struct buf *b, const struct box_record *r, const struct box_state *s)
{
    char text[256];

    buf_puts(b, "{");
    buf_json_str(b, "Id", r->id);
    put_time(b, "Created", r->created_usec);
    put_args(b, r);
    put_state(b, s);
    (void)snprintf(text, sizeof(text), "%s%s", r->image_id[0] ? "sha256:" : "", r->image_id);
    buf_json_str(b, "Image", text);
    (void)snprintf(text, sizeof(text), "/%s", r->name);
    buf_json_str(b, "Name", text);
    buf_json_num(b, "RestartCount", 0);
    buf_json_str(b, "Driver", "clawden");
    buf_json_str(b, "Platform", "linux");
    put_paths(b);
    put_host_config(b, r);
    put_mounts(b, r);
    put_config(b, r);
    put_networks(b, r, s);
    put_clawden(b, r);
    buf_json_str(b, "ID", r->id); /* the name that some templates use */
    buf_puts(b, "}");
}
