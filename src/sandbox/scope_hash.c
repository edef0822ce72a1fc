/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/sha256.h"
#include "config/settings.h"
#include "sandbox/scope_parts.h"
#include "json/canonical.h"

/* The settings whose path begins with `group`, without that. */
static json_t *group_of(const struct settings *s, const char *group)
{
    json_t *all = json_object();
    size_t n = strlen(group);

    for (size_t i = 0; i < SETTINGS; i++)
        if (settings_table[i].home == HOME_SANDBOX && s->value[i] &&
            strncmp(settings_table[i].path, group, n) == 0)
            (void)json_object_set(all, settings_table[i].path + n, s->value[i]);
    return all;
}

/* The vault is one more bind: whether it may be written is part of what the box is. */
static void add_vault(json_t *docker, const char *vault)
{
    json_t *binds = json_object_get(docker, "binds");
    json_t *all = binds ? json_copy(binds) : json_array();

    (void)json_array_append_new(all, json_string(vault));
    (void)json_object_set_new(docker, "binds", all);
}

/* "MY_KEY": 1 and so on; NULL if there are none. */
static json_t *places_of(const struct scope_env *env, size_t n)
{
    json_t *all = n ? json_object() : NULL;

    for (size_t i = 0; i < n; i++)
        (void)json_object_set_new(all, env[i].name,
                                  json_integer(env[i].is_missing ? -1 : (int)env[i].place));
    return all;
}

int scope_hash(const struct settings *s, const char *workspace, const char *agent_workspace,
               const char *vault, const struct scope_env *env, size_t n_env, char ret[static 65],
               struct error *err)
{
    json_t *docker = group_of(s, "docker."), *all;
    autobuf text;
    int r;

    buf_init(&text, 16u << 20);
    if (vault)
        add_vault(docker, vault);
    all = json_pack("{s:o, s:o, s:O?, s:s, s:s, s:i, s:o*}", "docker", docker, "networkDocker",
                    group_of(s, "networkDocker."), "workspaceAccess",
                    s->value[SETTING_WORKSPACE_ACCESS], "workspaceDir", workspace,
                    "agentWorkspaceDir", agent_workspace, "mountFormatVersion", MOUNTS_VERSION,
                    "envPlaces", places_of(env, n_env));
    if (!all)
        return error_set(err, ERR_INVALID, "the settings cannot be hashed: not UTF-8");
    r = canonical_format(all, &text, err);
    json_decref(all);
    if (r >= 0 && text.failed)
        r = error_set(err, ERR_TOO_LARGE, "the settings of a box are more than 16 MiB");
    if (r >= 0)
        sha256_hex(text.data, text.len, ret);
    if (text.data) /* literal values of variables stand in it */
        explicit_bzero(text.data, text.len);
    return r;
}
