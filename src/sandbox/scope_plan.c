/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "config/config.h"
#include "config/load.h"
#include "policy/security.h"
#include "sandbox/record.h"
#include "sandbox/scope_parts.h"
#include "sandbox/values.h"

#define AGENT_FOLDER                                                                          \
    "/agent"               /* where a box sees the agent's own folder, if it may only read it \
                            */
#define ID_LAST     65533u /* a box has no ids above it but nobody's */
#define ID_STANDARD 1000u
#define CPU_LEAST   10u /* thousandths: 0 would mean all of them */

static void set_text(char **field, const char *text)
{
    free(*field);
    *field = strdup(text);
    if (!*field)
        abort();
}

/* ---- paths ---- */

/* As the configuration has it: OPENCLAW_HOME, HOME, the user's line. */
static const char *home_folder(void)
{
    static const char *const names[] = {"OPENCLAW_HOME", "HOME"};
    const struct passwd *me;

    for (size_t i = 0; i < 2; i++) {
        const char *home = getenv(names[i]);

        if (home && home[0] == '/')
            return home;
    }
    me = getpwuid(geteuid());
    return me ? me->pw_dir : "/";
}

/* "~" and "~/x" are the home folder's; everything else must be a whole path. */
static int expand(const char *what, const char *text, char *ret, size_t size, struct error *err)
{
    bool is_home = text[0] == '~' && (text[1] == 0 || text[1] == '/');
    int n;
    size_t len = strlen(text);

    if ((!is_home && text[0] != '/') || strstr(text, "/../") ||
        (len >= 3 && strcmp(text + len - 3, "/..") == 0))
        return error_set(err, ERR_INVALID,
                         "%s '%s': a whole path is needed, or one from ~/, "
                         "without '..'",
                         what, text);
    n = snprintf(ret, size, "%s%s", is_home ? home_folder() : "", text + is_home);
    if (n < 0 || (size_t)n >= size)
        return error_set(err, ERR_TOO_LARGE, "%s: the path is too long", what);
    while (n > 1 && ret[n - 1] == '/')
        ret[--n] = 0;
    return 0;
}

int scope_workspace_root(const struct config *c, const struct settings *s, char *ret, size_t size,
                         struct error *err)
{
    const char *text = settings_text(s, SETTING_WORKSPACE_ROOT);
    int n;

    /* The standard one lies in the state folder, wherever that is. */
    if (!text || s->from[SETTING_WORKSPACE_ROOT].kind == ORIGIN_PRESET) {
        n = snprintf(ret, size, "%s/sandboxes", config_state_dir(c));
        return n < 0 || (size_t)n >= size
                   ? error_set(err, ERR_TOO_LARGE, "the state folder's path is too long")
                   : 0;
    }
    return expand("workspaceRoot", text, ret, size, err);
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- who ---- */

static const char *suffix_of(const struct scope_request *q)
{
    if (q->network && policy_is_dual(q->policy))
        return q->sibling ? NAMES_SIBLING_NETWORK : NAMES_NETWORK;
    return q->sibling ? NAMES_SIBLING : "";
}

/* Another name of the same scope, which newer clients use: their box is the scope's box. */
static void find_other(const struct scope_request *q, const char *agent, struct scope_plan *p)
{
    const char *prefix = settings_text(q->settings, SETTING_PREFIX);
    autoptr(box_record) there = NULL;
    char key[NAMES_KEY], slug[NAMES_SLUG], name[NAMES_BOX];
    const char *label;
    struct error none;

    if (names_scope_key(NAMES_WORKSPACE, q->policy->scope, agent, q->session, p->agent_workspace,
                        key) < 0 ||
        names_slug(NAMES_WORKSPACE, key, slug) < 0 ||
        names_box(NAMES_WORKSPACE, prefix, key, suffix_of(q), name) < 0 ||
        strcmp(name, p->name) == 0 || sandbox_find(name, &there, &none) < 0 ||
        strcmp(there->name, name) != 0)
        return;
    label = scope_label(there, LABEL_SESSION);
    if (!label || strcmp(label, key) != 0)
        return;
    (void)snprintf(p->key, sizeof(p->key), "%s", key);
    (void)snprintf(p->slug, sizeof(p->slug), "%s", slug);
    (void)snprintf(p->name, sizeof(p->name), "%s", name);
}

/* The agent's id as keys have it. A session that names another agent is not this one's. */
static int plan_agent(const struct scope_request *q, char ret[static NAMES_AGENT])
{
    char of_session[NAMES_AGENT], key[NAMES_SESSION];
    int r = q->session ? names_agent_of(q->session, of_session, sizeof(of_session)) : -EINVAL;

    if (r < 0)
        return r;
    if (!q->agent || !q->agent[0]) {
        (void)snprintf(ret, NAMES_AGENT, "%s", of_session);
        return ret[0] ? 0 : -EINVAL;
    }
    if (strchr(q->agent, ':') || strlen(q->agent) > NAMES_SESSION - 16)
        return -EINVAL;
    (void)snprintf(key, sizeof(key), "agent:%s:x", q->agent);
    r = names_agent_of(key, ret, NAMES_AGENT);
    if (r < 0 || !ret[0])
        return -EINVAL;
    return !of_session[0] || strcmp(of_session, ret) == 0 ? 0 : -EINVAL;
}

static int plan_names(const struct scope_request *q, struct scope_plan *p, struct error *err)
{
    const char *prefix = settings_text(q->settings, SETTING_PREFIX);
    char agent[NAMES_AGENT];
    int r = plan_agent(q, agent);

    if (r < 0 ||
        names_scope_key(NAMES_PLAIN, q->policy->scope, agent, q->session, NULL, p->key) < 0)
        return error_set(err, ERR_INVALID,
                         "session '%.200s' of agent '%.80s': no scope comes of it; the session key "
                         "of an agent is like agent:main:work",
                         q->session ? q->session : "", q->agent ? q->agent : "");
    if (names_slug(NAMES_PLAIN, p->key, p->slug) < 0 || !prefix ||
        names_box(NAMES_PLAIN, prefix, p->key, suffix_of(q), p->name) < 0)
        return error_set(err, ERR_INVALID,
                         "docker.containerPrefix '%s': names of boxes begin with a letter or digit "
                         "and have [A-Za-z0-9_.-] in them",
                         prefix ? prefix : "");
    r = config_workspace(q->config, agent, p->agent_workspace, sizeof(p->agent_workspace), err);
    if (r >= 0)
        find_other(q, agent, p);
    return r;
}

/* The owner of the workspace, so that files stay his (C17); ids that no box has stand for the
 * caller as well: an ordinary user's box has one user only, and that is he. */
static void plan_user(const struct scope_request *q, struct scope_plan *p)
{
    const char *user = settings_text(q->settings, SETTING_USER);
    struct stat st;
    char text[32];

    if (user) {
        set_text(&p->record->user, user);
        return;
    }
    if (stat(p->workspace, &st) < 0) {
        st.st_uid = geteuid();
        st.st_gid = getegid();
    }
    (void)snprintf(text, sizeof(text), "%u:%u",
                   (unsigned)(st.st_uid > ID_LAST ? ID_STANDARD : st.st_uid),
                   (unsigned)(st.st_gid > ID_LAST ? ID_STANDARD : st.st_gid));
    set_text(&p->record->user, text);
}

/* ---- folders ---- */

static int plan_workspace(const struct scope_request *q, struct scope_plan *p, struct error *err)
{
    const char *workdir = settings_text(q->settings, SETTING_WORKDIR);
    char root[LIMIT_PATH];
    int n, r;

    set_text(&p->record->workdir, workdir ? workdir : "/workspace");
    if (q->policy->access == ACCESS_RW) {
        (void)snprintf(p->workspace, sizeof(p->workspace), "%s", p->agent_workspace);
    } else {
        r = scope_workspace_root(q->config, q->settings, root, sizeof(root), err);
        if (r < 0)
            return r;
        n = snprintf(p->workspace, sizeof(p->workspace), "%s%s%s", root,
                     q->policy->scope == SCOPE_SHARED ? "" : "/",
                     q->policy->scope == SCOPE_SHARED ? "" : p->slug);
        if (n < 0 || (size_t)n >= sizeof(p->workspace))
            return error_set(err, ERR_TOO_LARGE, "workspaceRoot: the path is too long");
    }
    scope_add_bind(p->record, p->workspace, p->record->workdir, false);
    if (q->policy->access != ACCESS_RO)
        return 0;
    if (is_folder(p->agent_workspace))
        scope_add_bind(p->record, p->agent_workspace, AGENT_FOLDER, true);
    else
        scope_warn(p, "the agent's folder '%s' does not exist: the box has no " AGENT_FOLDER,
                   p->agent_workspace);
    return 0;
}

static int plan_tmpfs(const struct scope_request *q, struct scope_plan *p, struct error *err)
{
    const json_t *list = q->settings->value[SETTING_TMPFS];
    uint64_t tmp;
    int r = config_number(CONFIG_BOX_TMP, &tmp, err);

    p->record->limits.tmp_bytes = tmp;
    for (size_t i = 0; r >= 0 && i < json_array_size(list); i++) {
        struct box_mount m;

        r = values_tmpfs(json_string_value(json_array_get(list, i)), &m, err);
        if (r < 0)
            return r;
        if (m.bytes == 0 && strcmp(m.target, "/tmp") == 0)
            m.bytes = tmp;
        scope_add_mount(p->record, m);
    }
    return r;
}

static bool is_real_within(const char *path, const char *folder)
{
    char real[PATH_MAX];

    return realpath(folder, real) && path_is_within(path, real);
}

/*
 * The texts have been checked; this is about what they lead to by now, since a box can put a link
 * into its workspace. The path without links is what the box is given, and is opened without any.
 */
static int check_real(const struct scope_request *q, const struct scope_plan *p,
                      const struct box_mount *m, const char *real, struct error *err)
{
    if (settings_bool(q->settings, SETTING_EXTERNAL_SOURCES) ||
        is_real_within(real, p->workspace) || is_real_within(real, p->agent_workspace))
        return 0;
    return error_set(err, ERR_DENIED,
                     "Sandbox security: docker.binds '%s': it leads to '%s', outside the "
                     "workspaces; docker.dangerouslyAllowExternalBindSources lets it through",
                     m->source, real);
}

/* A bind whose source is not there is left out: docker would make the folder, as root (C19). */
static int add_mount(const struct scope_request *q, struct scope_plan *p, const struct box_mount *m,
                     bool is_vault, struct error *err)
{
    char real[PATH_MAX];
    int r = 0;

    if (!realpath(m->source, real)) {
        if (errno != ENOENT)
            return error_sys(err, -errno, "bind '%s'", m->source);
        scope_warn(p, "bind '%s' is left out: it does not exist on the host", m->source);
        return 0;
    }
    if (!is_vault)
        r = check_real(q, p, m, real, err);
    if (r >= 0)
        scope_add_bind(p->record, real, m->target, m->read_only);
    return r;
}

/* A folder of the operator's at its own path in the box (R146). */
struct vault {
    char path[LIMIT_PATH]; /* "": none is set */
    bool is_there, read_only;
    char bind[2 * LIMIT_PATH + 8]; /* "path:path:rw", or "" */
};

static bool is_vault(const struct vault *v, const struct box_mount *m)
{
    return v->path[0] && strcmp(m->source, v->path) == 0 && strcmp(m->target, v->path) == 0;
}

/* Where the vault stands among the binds, as S1 has it, it is still one: the stricter access holds.
 */
static int look_for_vault(const struct scope_request *q, struct vault *v, struct error *err)
{
    const json_t *list = q->settings->value[SETTING_BINDS];

    for (size_t i = 0; i < json_array_size(list); i++) {
        struct box_mount m;
        int r = values_volume(json_string_value(json_array_get(list, i)), &m, err);

        if (r < 0)
            return r;
        v->read_only |= is_vault(v, &m) && m.read_only;
        values_mount_done(&m);
    }
    return 0;
}

static int plan_vault(const struct scope_request *q, struct vault *ret, struct error *err)
{
    const char *path = settings_text(q->settings, SETTING_VAULT_PATH),
               *access_word = settings_text(q->settings, SETTING_VAULT_ACCESS);
    int r;

    *ret = (struct vault){.read_only = access_word && strcmp(access_word, "ro") == 0};
    if (!path)
        return 0;
    r = expand("vaultPath", path, ret->path, sizeof(ret->path), err);
    if (r >= 0)
        r = look_for_vault(q, ret, err);
    if (r < 0)
        return r;
    ret->is_there = is_folder(ret->path); /* added only then (R149) */
    if (ret->is_there)
        (void)snprintf(ret->bind, sizeof(ret->bind), "%s:%s:%s", ret->path, ret->path,
                       ret->read_only ? "ro" : "rw");
    return 0;
}

static int plan_bind(const struct scope_request *q, struct scope_plan *p, const char *text,
                     const struct vault *v, struct error *err)
{
    struct box_mount m;
    int r = values_volume(text, &m, err);

    if (r < 0)
        return r;
    if (!is_vault(v, &m))
        r = add_mount(q, p, &m, false, err);
    else if (!v->is_there)
        r = add_mount(q, p, &m, true, err);
    values_mount_done(&m);
    return r;
}

static int plan_binds(const struct scope_request *q, struct scope_plan *p, struct vault *v,
                      struct error *err)
{
    const json_t *list = q->settings->value[SETTING_BINDS];
    struct box_mount m = {.source = v->path, .target = v->path, .read_only = v->read_only};
    int r = 0;

    for (size_t i = 0; r >= 0 && i < json_array_size(list); i++)
        r = plan_bind(q, p, json_string_value(json_array_get(list, i)), v, err);
    return r < 0 || !v->is_there ? r : add_mount(q, p, &m, true, err);
}

/* ---- limits ---- */

static int plan_memory(const struct scope_request *q, struct box_record *r, struct error *err)
{
    const json_t *memory = q->settings->value[SETTING_MEMORY],
                 *swap = q->settings->value[SETTING_MEMORY_SWAP];
    uint64_t both = 0;
    int e = memory ? scope_size(memory, &r->limits.memory_bytes, err)
                   : config_number(CONFIG_BOX_MEMORY, &r->limits.memory_bytes, err);

    if (e >= 0 && swap)
        e = scope_size(swap, &both, err);
    r->memory_swap = (int64_t)both;
    return e < 0 ? error_wrap(err, "docker.memory") : 0;
}

static int plan_ulimits(const struct scope_request *q, struct box_record *r, struct error *err)
{
    json_t *limits = q->settings->value[SETTING_ULIMITS], *value;
    const char *name;

    if (!json_object_size(limits))
        return 0;
    r->ulimits = calloc(json_object_size(limits), sizeof(*r->ulimits));
    if (!r->ulimits)
        abort();
    json_object_foreach(limits, name, value)
    {
        int e = scope_ulimit(name, value, &r->ulimits[r->n_ulimits], err);

        if (e < 0)
            return e;
        r->n_ulimits++;
    }
    return 0;
}

static int plan_limits(const struct scope_request *q, struct box_record *r, struct error *err)
{
    const struct settings *s = q->settings;
    double cpus = settings_number(s, SETTING_CPUS);
    uint64_t pids = (uint64_t)settings_number(s, SETTING_PIDS);
    int e = plan_memory(q, r, err);

    if (e >= 0 && !s->value[SETTING_PIDS])
        e = config_number(CONFIG_BOX_PIDS, &pids, err);
    if (e >= 0)
        e = plan_ulimits(q, r, err);
    r->limits.pids = (uint32_t)pids;
    if (cpus > 0)
        r->limits.cpu_milli = cpus * 1000 < CPU_LEAST ? CPU_LEAST : (uint32_t)(cpus * 1000 + 0.5);
    return e;
}

/* ---- the record ---- */

static void copy_list(const json_t *from, char ***to)
{
    for (size_t i = 0; i < json_array_size(from); i++)
        if (json_is_string(json_array_get(from, i)))
            scope_add_text(to, json_string_value(json_array_get(from, i)));
}

static bool has_variable(const struct box_record *r, const char *name)
{
    static const char *const always[] = {"HOME", "HOSTNAME", "PATH", "PWD"};
    size_t n = strlen(name);

    for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
        if (strcmp(name, always[i]) == 0)
            return true;
    for (size_t i = 0; r->env && r->env[i]; i++)
        if (strncmp(r->env[i], name, n) == 0 && r->env[i][n] == '=')
            return true;
    return false;
}

/* The box's shell puts in the values of ${VAR}, those that the box has; $${VAR} is the file's way
 * to write that. */
static void finish_setup(const struct scope_request *q, struct scope_plan *p)
{
    const char *at = p->setup_command;
    char name[128], *out = p->setup_command;

    while (config_next_reference(&at, name, sizeof(name)))
        if (!has_variable(p->record, name) && config_variable(q->config, name))
            scope_warn(p,
                       "docker.setupCommand names ${%s}, which box '%s' does not have: it is empty "
                       "there; docker.env gives it to boxes",
                       name, p->name);
    for (const char *s = p->setup_command; *s; s++)
        if (strncmp(s, "$${", 3) != 0 ||
            s[3 + strspn(s + 3, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] != '}')
            *out++ = *s;
    *out = 0;
}

static void read_setup(const struct scope_request *q, struct scope_plan *p)
{
    const json_t *lines = q->settings->value[SETTING_SETUP_COMMAND];
    size_t n = 1;

    if (json_is_string(lines) && json_string_length(lines)) {
        set_text(&p->setup_command, json_string_value(lines));
        return;
    }
    for (size_t i = 0; i < json_array_size(lines); i++)
        n += json_string_length(json_array_get(lines, i)) + 1;
    if (n == 1)
        return;
    p->setup_command = calloc(n, 1);
    if (!p->setup_command)
        abort();
    for (size_t i = 0, at = 0; i < json_array_size(lines); i++)
        at += (size_t)snprintf(p->setup_command + at, n - at, "%s%s", at ? "\n" : "",
                               json_string_value(json_array_get(lines, i)));
}

static void plan_setup(const struct scope_request *q, struct scope_plan *p)
{
    read_setup(q, p);
    if (p->setup_command)
        finish_setup(q, p);
}

static void plan_labels(struct scope_plan *p)
{
    char version[16];

    (void)snprintf(version, sizeof(version), "%d", MOUNTS_VERSION);
    scope_add_label(p->record, LABEL_SANDBOX, "1");
    scope_add_label(p->record, LABEL_SESSION, p->key);
    scope_add_label(p->record, LABEL_MOUNTS, version);
    scope_add_label(p->record, LABEL_HASH, p->hash);
    scope_add_label(p->record, LABEL_OURS, "1");
}

static int plan_rest(const struct scope_request *q, struct scope_plan *p, struct error *err)
{
    const bool second = q->network && policy_is_dual(q->policy);
    const struct settings *s = q->settings;
    struct box_record *r = p->record;
    const char *image = settings_text(s, SETTING_IMAGE),
               *network = settings_text(s, second ? SETTING_NETWORK_NETWORK : SETTING_NETWORK);
    int e;

    set_text(&r->name, p->name);
    set_text(&r->image, image ? image : config_text(CONFIG_BOX_IMAGE, NULL));
    set_text(&r->network, network ? network : second ? "bridge" : "none");
    scope_add_text(&r->command, "sleep");
    scope_add_text(&r->command, "infinity");
    scope_add_text(&r->security, "no-new-privileges");
    copy_list(s->value[SETTING_CAP_DROP], &r->cap_drop);
    copy_list(s->value[SETTING_DNS], &r->dns);
    copy_list(s->value[SETTING_EXTRA_HOSTS], &r->extra_hosts);
    r->read_only_root = second || settings_bool(s, SETTING_READ_ONLY_ROOT);
    r->init = true;
    if (settings_text(s, SETTING_BACKEND) &&
        strcmp(settings_text(s, SETTING_BACKEND), "docker") != 0)
        scope_warn(p, "backend '%s' is not used: boxes are ClawDen's own",
                   settings_text(s, SETTING_BACKEND));
    if (s->value[SETTING_GPUS])
        scope_warn(p, "docker.gpus is ignored: a box has no devices");
    plan_user(q, p);
    plan_setup(q, p);
    e = scope_wish(s, r->network, &r->egress, err);
    if (e >= 0 && r->egress && !r->egress->n_allow && !r->egress->n_host_ports)
        scope_warn(p, "network '%s' reaches nothing: egress.allow and egress.hostPorts are empty",
                   r->network);
    return e;
}

/* As far as the path exists, without links: what is missing is made later, by that name. */
static int find_real(const char *path, char ret[static PATH_MAX])
{
    char head[PATH_MAX];
    size_t n = strnlen(path, PATH_MAX);

    if (n >= PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(head, path, n + 1);
    while (!realpath(head[0] ? head : "/", ret)) {
        char *slash = strrchr(head, '/');

        if (errno != ENOENT || !slash)
            return -errno;
        *slash = 0;
    }
    n = strlen(head);
    if (strlen(ret) + strlen(path + n) >= PATH_MAX)
        return -ENAMETOOLONG;
    if (path[n])
        memcpy(ret + (ret[1] ? strlen(ret) : 0), path + n, strlen(path + n) + 1);
    return 0;
}

/* As it is written, and without links if that is another. */
static void add_place(char ***list, const char *path)
{
    char real[PATH_MAX];

    if (!path || path[0] != '/' || !path[1])
        return;
    scope_add_text(list, path);
    if (find_real(path, real) >= 0 && strcmp(real, path) != 0)
        scope_add_text(list, real);
}

/* Every file that was read, and those of the state folder that are secrets: a box that sees them
 * has what it should not, one that writes them decides what the next box is. */
static void find_secrets(const struct config *c, char ***ret)
{
    static const char *const names[] = {"openclaw.json", ".env", "credentials"};
    const char *file;
    char path[LIMIT_PATH + 16];

    for (size_t i = 0; (file = config_file(c, i)); i++)
        add_place(ret, file);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", config_state_dir(c), names[i]);
        add_place(ret, path);
    }
}

/* What the mounts lead to once links are followed: no rule about a text can know that. */
static int check_mounts(const struct scope_plan *p, const struct security_facts *f,
                        struct error *err)
{
    char real[PATH_MAX];

    for (size_t i = 0; i < p->record->n_mounts; i++) {
        const struct box_mount *m = &p->record->mounts[i];
        bool is_workspace = m->kind == BOX_BIND && (strcmp(m->source, p->workspace) == 0 ||
                                                    strcmp(m->source, p->agent_workspace) == 0);
        int r;

        if (m->kind != BOX_BIND || find_real(m->source, real) < 0)
            continue;
        r = security_check_real(f, is_workspace ? "the workspace" : "docker.binds", real,
                                is_workspace, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Before anything is looked at (`mounts` false), and when the mounts are known. */
static int check_security(const struct scope_request *q, const struct scope_plan *p, bool mounts,
                          struct error *err)
{
    const struct passwd *me = getpwuid(geteuid());
    const char *const candidates[] = {getenv("OPENCLAW_HOME"), getenv("HOME"),
                                      me ? me->pw_dir : NULL};
    char **homes = NULL, **secrets = NULL;
    int r;

    for (size_t i = 0; i < 3; i++)
        add_place(&homes, candidates[i]);
    find_secrets(q->config, &secrets);
    const struct security_facts f = {.homes = (const char *const *)homes,
                                     .secrets = (const char *const *)secrets,
                                     .workspace = p->workspace,
                                     .agent_workspace = p->agent_workspace,
                                     .multi_tenant = config_is_on(CONFIG_MULTI_TENANT)};
    r = mounts ? check_mounts(p, &f, err) : security_check(q->settings, &f, err);
    strings_free(homes);
    strings_free(secrets);
    return r;
}

static int plan_all(const struct scope_request *q, struct scope_plan *p, struct error *err)
{
    struct vault vault;
    int r = plan_names(q, p, err);

    if (r >= 0)
        r = plan_workspace(q, p, err);
    if (r >= 0)
        r = check_security(q, p, false, err);
    if (r >= 0)
        r = plan_vault(q, &vault, err);
    if (r >= 0)
        r = plan_tmpfs(q, p, err);
    if (r >= 0)
        r = plan_binds(q, p, &vault, err);
    if (r >= 0)
        r = check_security(q, p, true, err);
    if (r >= 0)
        r = plan_limits(q, p->record, err);
    if (r >= 0)
        r = scope_plan_env(q, p, err);
    if (r >= 0)
        r = scope_hash(q->settings, p->workspace, p->agent_workspace,
                       vault.is_there ? vault.bind : NULL, p->env, p->n_env, p->hash, err);
    if (r >= 0)
        r = plan_rest(q, p, err);
    if (r >= 0)
        plan_labels(p);
    return r;
}

int scope_plan_make(const struct scope_request *q, struct scope_plan **ret, struct error *err)
{
    autoptr(scope_plan) p = calloc(1, sizeof(*p));
    int r;

    if (p)
        p->record = calloc(1, sizeof(*p->record));
    if (!p || !p->record)
        return error_sys(err, -ENOMEM, "plan a box");
    r = plan_all(q, p, err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(p);
    return 0;
}

void scope_plan_free(struct scope_plan *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n_env; i++)
        free(p->env[i].name);
    free(p->env);
    free(p->setup_command);
    strings_free(p->warnings);
    box_record_free(p->record);
    free(p);
}
