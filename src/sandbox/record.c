/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/jtext.h"
#include "base/limits.h"

/* ---- memory ---- */

static void *need(void *p)
{
    if (!p)
        abort();
    return p;
}

char **strings_copy(char *const *list)
{
    size_t n = 0;
    char **copy;

    while (list && list[n])
        n++;
    copy = need(calloc(n + 1, sizeof(*copy)));
    for (size_t i = 0; i < n; i++)
        copy[i] = need(strdup(list[i]));
    return copy;
}

void strings_free(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

void box_record_free(struct box_record *r)
{
    char **lists[] = {r ? r->command : NULL,     r ? r->env : NULL,      r ? r->dns : NULL,
                      r ? r->extra_hosts : NULL, r ? r->cap_drop : NULL, r ? r->security : NULL};

    if (!r)
        return;
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        strings_free(lists[i]);
    for (size_t i = 0; i < r->n_labels; i++) {
        free(r->labels[i].name);
        free(r->labels[i].value);
    }
    for (size_t i = 0; i < r->n_mounts; i++) {
        free(r->mounts[i].source);
        free(r->mounts[i].target);
        free(r->mounts[i].options);
    }
    for (size_t i = 0; i < r->n_ulimits; i++)
        free(r->ulimits[i].name);
    for (size_t i = 0; i < r->n_ports; i++) {
        free(r->ports[i].host_ip);
        free(r->ports[i].protocol);
    }
    free(r->labels);
    free(r->mounts);
    free(r->ulimits);
    free(r->ports);
    wish_free(r->egress);
    free(r->name);
    free(r->image);
    free(r->workdir);
    free(r->user);
    free(r->hostname);
    free(r->network);
    free(r->home);
    free(r);
}

/* ---- writing ---- */

static void put_text(struct buf *out, const char *key, const char *value)
{
    if (value)
        buf_json_str(out, key, value);
}

static void put_limits(struct buf *out, const struct box_limits *l)
{
    buf_json_key(out, "limits");
    buf_puts(out, "{");
    buf_json_num(out, "memory", (long long)l->memory_bytes);
    buf_json_num(out, "cpu_milli", l->cpu_milli);
    buf_json_num(out, "pids", l->pids);
    buf_json_num(out, "file", (long long)l->file_bytes);
    buf_json_num(out, "tmp", (long long)l->tmp_bytes);
    buf_puts(out, "}");
}

static void put_mounts(struct buf *out, const struct box_record *r)
{
    buf_json_key(out, "mounts");
    buf_puts(out, "[");
    for (size_t i = 0; i < r->n_mounts; i++) {
        const struct box_mount *m = &r->mounts[i];

        buf_puts(out, i ? ",{" : "{");
        buf_json_str(out, "kind", m->kind == BOX_BIND ? "bind" : "tmpfs");
        put_text(out, "source", m->source);
        buf_json_str(out, "target", m->target);
        put_text(out, "options", m->options);
        buf_json_bool(out, "read_only", m->read_only);
        buf_json_bool(out, "no_exec", m->no_exec);
        buf_json_num(out, "bytes", (long long)m->bytes);
        buf_json_num(out, "mode", m->mode);
        buf_json_bool(out, "implied", m->implied);
        buf_puts(out, "}");
    }
    buf_puts(out, "]");
}

static void put_labels(struct buf *out, const struct box_record *r)
{
    buf_json_key(out, "labels");
    buf_puts(out, "[");
    for (size_t i = 0; i < r->n_labels; i++) {
        buf_puts(out, i ? ",[" : "[");
        buf_json_string(out, r->labels[i].name, strlen(r->labels[i].name));
        buf_puts(out, ",");
        buf_json_string(out, r->labels[i].value, strlen(r->labels[i].value));
        buf_puts(out, "]");
    }
    buf_puts(out, "]");
}

static void put_small(struct buf *out, const struct box_record *r)
{
    buf_json_key(out, "ulimits");
    buf_puts(out, "[");
    for (size_t i = 0; i < r->n_ulimits; i++) {
        buf_puts(out, i ? ",{" : "{");
        buf_json_str(out, "name", r->ulimits[i].name);
        buf_json_num(out, "soft", r->ulimits[i].soft);
        buf_json_num(out, "hard", r->ulimits[i].hard);
        buf_puts(out, "}");
    }
    buf_puts(out, "]");
    if (r->egress) {
        buf_json_key(out, "egress");
        wish_write(r->egress, out);
    }
    buf_json_key(out, "ports");
    buf_puts(out, "[");
    for (size_t i = 0; i < r->n_ports; i++) {
        buf_puts(out, i ? ",{" : "{");
        put_text(out, "host_ip", r->ports[i].host_ip);
        buf_json_num(out, "host_port", r->ports[i].host_port);
        buf_json_num(out, "port", r->ports[i].port);
        put_text(out, "protocol", r->ports[i].protocol);
        buf_puts(out, "}");
    }
    buf_puts(out, "]");
}

void record_write(const struct box_record *r, struct buf *out)
{
    buf_puts(out, "{");
    buf_json_str(out, "id", r->id);
    buf_json_str(out, "name", r->name);
    buf_json_num(out, "created_usec", r->created_usec);
    put_text(out, "image", r->image);
    buf_json_str(out, "image_id", r->image_id);
    put_text(out, "workdir", r->workdir);
    put_text(out, "user", r->user);
    buf_json_num(out, "uid", r->uid);
    buf_json_num(out, "gid", r->gid);
    put_text(out, "home", r->home);
    put_text(out, "hostname", r->hostname);
    put_text(out, "network", r->network);
    buf_json_num(out, "memory_swap", r->memory_swap);
    buf_json_num(out, "n_entrypoint", (long long)r->n_entrypoint);
    buf_json_bool(out, "read_only_root", r->read_only_root);
    buf_json_bool(out, "init", r->init);
    buf_json_bool(out, "tty", r->tty);
    buf_json_bool(out, "open_stdin", r->open_stdin);
    buf_json_bool(out, "auto_remove", r->auto_remove);
    buf_json_strings(out, "command", r->command, SIZE_MAX);
    buf_json_strings(out, "env", r->env, SIZE_MAX);
    buf_json_strings(out, "dns", r->dns, SIZE_MAX);
    buf_json_strings(out, "extra_hosts", r->extra_hosts, SIZE_MAX);
    buf_json_strings(out, "cap_drop", r->cap_drop, SIZE_MAX);
    buf_json_strings(out, "security", r->security, SIZE_MAX);
    put_limits(out, &r->limits);
    put_labels(out, r);
    put_mounts(out, r);
    put_small(out, r);
    buf_puts(out, "}\n");
}

/* ---- reading: our own file, but a field that is missing or of another kind is simply unset ----
 */

static char *get_text(const struct jtext *v, const char *key)
{
    const char *s = jtext_string(jtext_get(v, key));

    return s ? need(strdup(s)) : NULL;
}

static uint64_t get_number(const struct jtext *v, const char *key)
{
    int64_t n = 0;

    (void)jtext_int(jtext_get(v, key), &n);
    return (uint64_t)n;
}

static bool get_bool(const struct jtext *v, const char *key)
{
    return jtext_is_true(jtext_get(v, key));
}

static char **get_list(const struct jtext *v, const char *key)
{
    const struct jtext *list = jtext_get(v, key);
    char **ret = need(calloc(jtext_count(list) + 1, sizeof(*ret)));
    size_t n = 0;

    for (const struct jtext *m = jtext_first(list); m; m = jtext_next(m))
        if (jtext_string(m))
            ret[n++] = need(strdup(jtext_string(m)));
    return ret;
}

static void get_mounts(const struct jtext *list, struct box_record *r)
{
    r->mounts = need(calloc(jtext_count(list) + 1, sizeof(*r->mounts)));
    for (const struct jtext *v = jtext_first(list); v; v = jtext_next(v)) {
        struct box_mount *m = &r->mounts[r->n_mounts];
        const char *kind = jtext_string(jtext_get(v, "kind"));

        m->kind = kind && strcmp(kind, "bind") == 0 ? BOX_BIND : BOX_TMPFS;
        m->target = get_text(v, "target");
        if (!m->target)
            continue;
        m->source = get_text(v, "source");
        m->options = get_text(v, "options");
        m->read_only = get_bool(v, "read_only");
        m->no_exec = get_bool(v, "no_exec");
        m->bytes = get_number(v, "bytes");
        m->mode = (uint32_t)get_number(v, "mode");
        m->implied = get_bool(v, "implied");
        r->n_mounts++;
    }
}

static void get_labels(const struct jtext *list, struct box_record *r)
{
    r->labels = need(calloc(jtext_count(list) + 1, sizeof(*r->labels)));
    for (const struct jtext *v = jtext_first(list); v; v = jtext_next(v)) {
        const char *name = jtext_string(jtext_first(v));
        const char *value = jtext_string(jtext_next(jtext_first(v)));

        if (!name || !value)
            continue;
        r->labels[r->n_labels].name = need(strdup(name));
        r->labels[r->n_labels++].value = need(strdup(value));
    }
}

static void get_small(const struct jtext *v, struct box_record *r)
{
    const struct jtext *ulimits = jtext_get(v, "ulimits"), *ports = jtext_get(v, "ports");

    r->ulimits = need(calloc(jtext_count(ulimits) + 1, sizeof(*r->ulimits)));
    for (const struct jtext *u = jtext_first(ulimits); u; u = jtext_next(u)) {
        struct box_ulimit *to = &r->ulimits[r->n_ulimits];

        to->name = get_text(u, "name");
        to->soft = (int64_t)get_number(u, "soft");
        to->hard = (int64_t)get_number(u, "hard");
        r->n_ulimits += to->name != NULL;
    }
    r->ports = need(calloc(jtext_count(ports) + 1, sizeof(*r->ports)));
    for (const struct jtext *p = jtext_first(ports); p; p = jtext_next(p))
        r->ports[r->n_ports++] =
            (struct box_port){.host_ip = get_text(p, "host_ip"),
                              .host_port = (uint16_t)get_number(p, "host_port"),
                              .port = (uint16_t)get_number(p, "port"),
                              .protocol = get_text(p, "protocol")};
}

int record_read(const struct jtext *v, struct box_record **ret, struct error *err)
{
    autoptr(box_record) r = need(calloc(1, sizeof(*r)));
    const char *id = jtext_string(jtext_get(v, "id")),
               *image = jtext_string(jtext_get(v, "image_id"));
    const struct jtext *limits = jtext_get(v, "limits");

    r->name = get_text(v, "name");
    if (!id || strlen(id) != 64 || !r->name)
        return error_set(err, ERR_INVALID, "box.json has no id or no name");
    (void)snprintf(r->id, sizeof(r->id), "%s", id);
    (void)snprintf(r->image_id, sizeof(r->image_id), "%s", image ? image : "");
    r->created_usec = (int64_t)get_number(v, "created_usec");
    r->image = get_text(v, "image");
    r->workdir = get_text(v, "workdir");
    r->user = get_text(v, "user");
    r->uid = (uid_t)get_number(v, "uid");
    r->gid = (gid_t)get_number(v, "gid");
    r->home = get_text(v, "home");
    r->hostname = get_text(v, "hostname");
    r->network = get_text(v, "network");
    r->memory_swap = (int64_t)get_number(v, "memory_swap");
    r->n_entrypoint = get_number(v, "n_entrypoint");
    r->read_only_root = get_bool(v, "read_only_root");
    r->init = get_bool(v, "init");
    r->tty = get_bool(v, "tty");
    r->open_stdin = get_bool(v, "open_stdin");
    r->auto_remove = get_bool(v, "auto_remove");
    r->command = get_list(v, "command");
    r->env = get_list(v, "env");
    r->dns = get_list(v, "dns");
    r->extra_hosts = get_list(v, "extra_hosts");
    r->cap_drop = get_list(v, "cap_drop");
    r->security = get_list(v, "security");
    r->limits = (struct box_limits){.memory_bytes = get_number(limits, "memory"),
                                    .cpu_milli = (uint32_t)get_number(limits, "cpu_milli"),
                                    .pids = (uint32_t)get_number(limits, "pids"),
                                    .file_bytes = get_number(limits, "file"),
                                    .tmp_bytes = get_number(limits, "tmp")};
    get_labels(jtext_get(v, "labels"), r);
    get_mounts(jtext_get(v, "mounts"), r);
    get_small(v, r);
    if (jtext_get(v, "egress") && wish_read(jtext_get(v, "egress"), &r->egress, err) < 0)
        return -(int)err->code;
    *ret = TAKE_PTR(r);
    return 0;
}

/* ---- the last start ---- */

static const char *const group_keys[] = {"cgroup_memory", "cgroup_pids", "cgroup_cpu"};

void last_write(const struct box_last *l, struct buf *out)
{
    char grades[LIMIT_KINDS + 1] = {0};

    for (int i = 0; i < LIMIT_KINDS; i++)
        grades[i] = (char)('0' + l->live.grades[i]);
    buf_puts(out, "{");
    buf_json_num(out, "init_pid", l->live.init_pid);
    buf_json_bool(out, "has_range", l->live.has_range);
    buf_json_bool(out, "from_slot", l->live.from_slot);
    buf_json_num(out, "belts", l->live.belts);
    buf_json_str(out, "grades", grades);
    for (size_t i = 0; i < 3; i++)
        buf_json_str(out, group_keys[i], l->live.cgroups[i]);
    buf_json_num(out, "started_usec", l->started_usec);
    buf_json_num(out, "finished_usec", l->finished_usec);
    buf_json_num(out, "exit_code", l->exit_code);
    buf_json_bool(out, "oom_killed", l->oom_killed);
    buf_json_str(out, "problem", l->problem);
    buf_json_key(out, "published");
    for (size_t i = 0; i < LIMIT_PUBLISHED; i++)
        buf_printf(out, "%s%u", i ? "," : "[", l->published[i]);
    buf_puts(out, "]}\n");
}

static void read_published(const struct jtext *list, uint16_t ret[static LIMIT_PUBLISHED])
{
    size_t n = 0;
    int64_t port;

    for (const struct jtext *p = jtext_first(list); p && n < LIMIT_PUBLISHED; p = jtext_next(p))
        ret[n++] = (uint16_t)(jtext_int(p, &port) && port > 0 && port <= UINT16_MAX ? port : 0);
}

int last_read(const struct jtext *v, struct box_last *ret, struct error *err)
{
    const char *grades = jtext_string(jtext_get(v, "grades")), *s;

    *ret = (struct box_last){0};
    if (!grades || strlen(grades) != LIMIT_KINDS)
        return error_set(err, ERR_INVALID, "state.json has no grades");
    for (int i = 0; i < LIMIT_KINDS; i++)
        ret->live.grades[i] = (enum grade)(grades[i] - '0');
    ret->live.init_pid = (pid_t)get_number(v, "init_pid");
    ret->live.has_range = get_bool(v, "has_range");
    ret->live.from_slot = get_bool(v, "from_slot");
    ret->live.belts = (uint32_t)get_number(v, "belts");
    for (size_t i = 0; i < 3; i++) {
        s = jtext_string(jtext_get(v, group_keys[i]));
        (void)snprintf(ret->live.cgroups[i], sizeof(ret->live.cgroups[i]), "%s", s ? s : "");
    }
    ret->started_usec = (int64_t)get_number(v, "started_usec");
    ret->finished_usec = (int64_t)get_number(v, "finished_usec");
    ret->exit_code = (int)get_number(v, "exit_code");
    ret->oom_killed = get_bool(v, "oom_killed");
    s = jtext_string(jtext_get(v, "problem"));
    (void)snprintf(ret->problem, sizeof(ret->problem), "%s", s ? s : "");
    read_published(jtext_get(v, "published"), ret->published);
    return 0;
}
