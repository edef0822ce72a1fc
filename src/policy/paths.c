/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/paths.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/path.h"
#include "policy/internal.h"

/* ---- paths ---- */

/* Absolute, and the only way to write it: what is compared here is what is opened later. */
static bool is_normal(const char *path)
{
    if (path[0] != '/' || strlen(path) >= LIMIT_PATH)
        return false;
    if (!path[1])
        return true;
    while (*path) {
        size_t n = strcspn(++path, "/");

        if (n == 0 || (n == 1 && path[0] == '.') || (n == 2 && path[0] == '.' && path[1] == '.'))
            return false;
        path += n;
    }
    return true;
}

/* Equal, inside, or around it: /var holds what /var/lib/clawden does. */
static bool touches(const char *path, const char *place)
{
    return path_is_within(path, place) || path_is_within(place, path);
}

static const char *touched_system_path(const char *path)
{
    static const char *const system_paths[] = {"/etc",
                                               "/private/etc",
                                               "/proc",
                                               "/sys",
                                               "/dev",
                                               "/root",
                                               "/boot",
                                               "/run",
                                               "/var/run",
                                               "/private/var/run",
                                               "/var/lib/clawden",
                                               "/var/lib/docker",
                                               "/var/lib/containerd",
                                               "/var/lib/containers"};
    static const char *const sockets[] = {"docker.sock", "podman.sock", "containerd.sock"};
    const char *name = strrchr(path, '/') + 1;

    for (size_t i = 0; i < sizeof(system_paths) / sizeof(*system_paths); i++)
        if (touches(path, system_paths[i]))
            return system_paths[i];
    /* Desktop engines keep theirs in folders of their own. */
    for (size_t i = 0; i < sizeof(sockets) / sizeof(*sockets); i++)
        if (strcmp(name, sockets[i]) == 0)
            return sockets[i];
    return NULL;
}

/* A home's secret that the path reaches, relative to the home. Whoever can write the gateway's
 * own configuration decides what the next box is. */
static const char *touched_secret(const struct check *c, const char *path)
{
    static const char *const secrets[] = {".aws",
                                          ".cargo",
                                          ".config",
                                          ".docker",
                                          ".gnupg",
                                          ".netrc",
                                          ".npm",
                                          ".ssh",
                                          ".kube",
                                          ".password-store",
                                          ".openclaw/openclaw.json",
                                          ".openclaw/.env",
                                          ".openclaw/credentials"};
    char place[LIMIT_PATH];

    for (const char *const *home = c->f->homes; home && *home; home++) {
        size_t n = strlen(*home);

        while (n && (*home)[n - 1] == '/')
            n--;
        if ((*home)[0] != '/' || n + 32 > sizeof(place))
            continue;
        for (size_t i = 0; i < sizeof(secrets) / sizeof(*secrets); i++) {
            (void)snprintf(place, sizeof(place), "%.*s/%s", (int)n, *home, secrets[i]);
            if (touches(path, place))
                return secrets[i];
        }
    }
    for (const char *const *more = c->f->secrets; more && *more; more++)
        if (touches(path, *more))
            return *more;
    return NULL;
}

static bool is_inside(const char *path, const char *root)
{
    return root && is_normal(root) && root[1] && path_is_within(path, root);
}

int security_check_real(const struct security_facts *f, const char *what, const char *path,
                        bool is_workspace, struct error *err)
{
    const struct check c = {.f = f, .err = err};
    const char *place = path[1] ? NULL : "the whole host";

    if (!place && !is_workspace)
        place = touched_system_path(path);
    if (!place)
        place = touched_secret(&c, path);
    if (!place)
        return 0;
    return error_set(
        err, ERR_DENIED,
        "Sandbox security: %s '%s': it reaches '%s', which no box may see; use another "
        "folder",
        what, path, place);
}

/* ---- binds ---- */

static int check_source(const struct check *c, enum setting_id id, const char *bind,
                        const char *source, bool may_be_outside)
{
    const char *place;

    if (!is_normal(source))
        return WRONG(c, id, bind,
                     "the source is not an absolute path in its shortest form; write it as "
                     "/folder/file, without '.', '..', '//' or '/' at its end");
    if (!source[1])
        return DENY(c, id, bind, "the source is the whole host; bind the folder that is needed");
    place = touched_system_path(source);
    if (place)
        return DENY(c, id, bind,
                    "the source reaches '%s', which belongs to the host; bind another folder",
                    place);
    place = touched_secret(c, source);
    if (place)
        return DENY(c, id, bind, "the source reaches '%s'%s; bind only the folder that is needed",
                    place, place[0] == '/' ? ", which no box may see" : " of a home folder");
    if (!may_be_outside && !is_inside(source, c->f->workspace) &&
        !is_inside(source, c->f->agent_workspace))
        return DENY(c, id, bind,
                    "the source is outside the workspace; move it there, or set "
                    "docker.dangerouslyAllowExternalBindSources");
    return 0;
}

static const char *const kernel[] = {"/proc", "/sys", "/dev"};
/* Where a box's programs and their settings come from: what is put there decides what `gh` is. */
static const char *const programs[] = {"/usr",   "/bin",    "/sbin", "/lib", "/lib32",
                                       "/lib64", "/libx32", "/etc",  "/boot"};

static const char *within_any(const char *path, const char *const *places, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (path_is_within(path, places[i]))
            return places[i];
    return NULL;
}

int security_check_workdir(const struct check *c, enum setting_id id, const char *path)
{
    const char *place = within_any(path, kernel, sizeof(kernel) / sizeof(*kernel));

    if (!is_normal(path) || !path[1])
        return WRONG(c, id, path, "not an absolute path in its shortest form; write it as /folder");
    if (!place)
        place = within_any(path, programs, sizeof(programs) / sizeof(*programs));
    return place ? DENY(c, id, path, "the workspace would cover %s; choose a folder of its own",
                        place)
                 : 0;
}

static int check_target(const struct check *c, enum setting_id id, const char *bind,
                        const char *target)
{
    static const char *const ours[] = {"/workspace", "/agent"};
    const char *place;

    if (!is_normal(target))
        return WRONG(c, id, bind,
                     "the target is not an absolute path in its shortest form; write it as "
                     "/folder, without '.', '..', '//' or '/' at its end");
    if (!target[1])
        return DENY(c, id, bind, "the target is the box's root; bind to a folder of its own");
    place = within_any(target, kernel, sizeof(kernel) / sizeof(*kernel));
    if (place)
        return DENY(c, id, bind, "the target is in %s; bind to a folder of its own", place);
    place = within_any(target, programs, sizeof(programs) / sizeof(*programs));
    if (place && !settings_bool(c->s, SETTING_RESERVED_TARGETS))
        return DENY(c, id, bind,
                    "the target is in %s, where the box's programs come from; choose another, or "
                    "set docker.dangerouslyAllowReservedContainerTargets",
                    place);
    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        if (path_is_within(target, ours[i]) && !settings_bool(c->s, SETTING_RESERVED_TARGETS))
            return DENY(c, id, bind,
                        "the target covers %s; choose another, or set "
                        "docker.dangerouslyAllowReservedContainerTargets",
                        ours[i]);
    return 0;
}

static bool is_option(const char *text, size_t len, const char *const *known)
{
    for (; *known; known++)
        if (len == strlen(*known) && memcmp(text, *known, len) == 0)
            return true;
    return false;
}

static int check_options(const struct check *c, enum setting_id id, const char *bind,
                         const char *options)
{
    static const char *const known[] = {"ro", "rw", "z", "Z", "private", "rprivate", NULL};
    static const char *const shared[] = {"shared", "rshared", "slave", "rslave", NULL};
    static const char *const ro[] = {"ro", NULL}, *const rw[] = {"rw", NULL};
    bool has_ro = false, has_rw = false;

    for (;;) {
        size_t n = strcspn(options, ",");

        if (is_option(options, n, shared))
            return DENY(c, id, bind,
                        "mounts would pass between host and box later on; write rprivate");
        if (!is_option(options, n, known))
            return WRONG(c, id, bind,
                         "unknown option '%.*s'; there are ro, rw, z, Z, private "
                         "and rprivate",
                         (int)(n < 32 ? n : (size_t)policy_clip(options, 32)), options);
        has_ro |= is_option(options, n, ro);
        has_rw |= is_option(options, n, rw);
        if (!options[n])
            break;
        options += n + 1;
    }
    if (has_ro && has_rw)
        return WRONG(c, id, bind, "both ro and rw; write one of them");
    return 0;
}

/* The vault may stand among the binds, too, as S1 has it: vaultPath has named it already. */
static bool is_vault(const struct check *c, const char *source, const char *target)
{
    const char *vault = settings_text(c->s, SETTING_VAULT_PATH);

    return vault && strcmp(source, vault) == 0 && strcmp(target, vault) == 0;
}

/* source:target[:options]; neither path can hold a ':'. */
int security_check_bind(const struct check *c, enum setting_id id, const char *bind)
{
    char source[LIMIT_PATH], target[LIMIT_PATH];
    const char *colon = strchr(bind, ':'), *options;
    size_t n;
    int r;

    if (!colon || strlen(bind) >= LIMIT_PATH)
        return WRONG(c, id, bind, "not a bind; write source:target or source:target:ro");
    (void)snprintf(source, sizeof(source), "%.*s", (int)(colon - bind), bind);
    n = strcspn(colon + 1, ":");
    (void)snprintf(target, sizeof(target), "%.*s", (int)n, colon + 1);
    options = colon[1 + n] ? colon + 1 + n + 1 : NULL;
    r = check_source(c, id, bind, source,
                     is_vault(c, source, target) || settings_bool(c->s, SETTING_EXTERNAL_SOURCES));
    if (r < 0)
        return r;
    r = check_target(c, id, bind, target);
    if (r < 0)
        return r;
    return options ? check_options(c, id, bind, options) : 0;
}

/* The operator's own folder, bound at its own path: it may lie anywhere that a bind may. */
int security_check_vault(const struct check *c, enum setting_id id, const char *path)
{
    int r = check_source(c, id, path, path, true);

    return r < 0 ? r : check_target(c, id, path, path);
}

/* `path` or `path:options`. */
int security_check_tmpfs(const struct check *c, enum setting_id id, const char *entry)
{
    static const char *const taken[] = {"/proc", "/sys", "/dev", "/workspace", "/agent"};
    char path[LIMIT_PATH];
    size_t n = strcspn(entry, ":");

    if (n >= sizeof(path))
        return WRONG(c, id, entry, "the path is too long; use a shorter one");
    (void)snprintf(path, sizeof(path), "%.*s", (int)n, entry);
    if (!is_normal(path))
        return WRONG(c, id, entry,
                     "not an absolute path in its shortest form; write it as /folder");
    if (!path[1])
        return DENY(c, id, entry, "it covers the box's root; name a folder");
    for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
        if (path_is_within(path, taken[i]))
            return DENY(c, id, entry, "it covers %s; use another folder", taken[i]);
    return 0;
}
