/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Every setting of a sandbox, in one table: what it is called in openclaw.json and clawden.yaml,
 * its type and range, what it is in the two presets, how layers of it merge, the operator variable
 * of S1 that sets it, and a line of help. The reader, `clawden config schema`, the manual and
 * ansible/roles/sandbox/defaults/main.yml are made from it.
 *
 * Paths are relative to a sandbox block (`agents.defaults.sandbox`, an agent's `sandbox`, the
 * `sandbox` of clawden.yaml), or, for the three lists of the tool policy, to
 * `tools.sandbox.tools`.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/place.h"

struct error;

enum setting_id {
    SETTING_ENABLED,
    SETTING_MODE,
    SETTING_BACKEND,
    SETTING_SCOPE,
    SETTING_PER_SESSION,
    SETTING_WORKSPACE_ACCESS,
    SETTING_WORKSPACE_ROOT,
    SETTING_SESSION_TOOLS,
    SETTING_APPROVE,
    SETTING_NETWORK_ALLOW,
    SETTING_NETWORK_EXEC_ALLOW,
    SETTING_NETWORK_NETWORK,
    SETTING_NETWORK_ENV,
    SETTING_HOST_NETWORK,
    SETTING_EGRESS_ALLOW,
    SETTING_EGRESS_DENY,
    SETTING_EGRESS_HOST_PORTS,
    SETTING_EGRESS_BYTES,
    SETTING_EGRESS_HOST_BYTES,
    SETTING_EGRESS_CALL_BYTES,
    SETTING_EGRESS_RATE,
    SETTING_EGRESS_CONNS,
    SETTING_EGRESS_HOST_CONNS,
    SETTING_EGRESS_NEW,
    SETTING_RESERVED_ENV,
    SETTING_MULTI_TENANT,
    SETTING_IMAGE,
    SETTING_PREFIX,
    SETTING_WORKDIR,
    SETTING_READ_ONLY_ROOT,
    SETTING_TMPFS,
    SETTING_NETWORK,
    SETTING_USER,
    SETTING_CAP_DROP,
    SETTING_ENV,
    SETTING_SETUP_COMMAND,
    SETTING_PIDS,
    SETTING_MEMORY,
    SETTING_MEMORY_SWAP,
    SETTING_CPUS,
    SETTING_GPUS,
    SETTING_ULIMITS,
    SETTING_SECCOMP,
    SETTING_APPARMOR,
    SETTING_DNS,
    SETTING_EXTRA_HOSTS,
    SETTING_BINDS,
    SETTING_RESERVED_TARGETS,
    SETTING_EXTERNAL_SOURCES,
    SETTING_NAMESPACE_JOIN,
    SETTING_SSH_TARGET,
    SETTING_SSH_COMMAND,
    SETTING_SSH_ROOT,
    SETTING_SSH_STRICT,
    SETTING_SSH_UPDATE,
    SETTING_SSH_IDENTITY_FILE,
    SETTING_SSH_CERTIFICATE_FILE,
    SETTING_SSH_KNOWN_FILE,
    SETTING_SSH_IDENTITY,
    SETTING_SSH_CERTIFICATE,
    SETTING_SSH_KNOWN,
    SETTING_BROWSER,
    SETTING_BROWSER_IMAGE,
    SETTING_BROWSER_PREFIX,
    SETTING_BROWSER_NETWORK,
    SETTING_BROWSER_CDP_PORT,
    SETTING_BROWSER_VNC_PORT,
    SETTING_BROWSER_NOVNC_PORT,
    SETTING_BROWSER_CDP_RANGE,
    SETTING_BROWSER_HEADLESS,
    SETTING_BROWSER_NOVNC,
    SETTING_BROWSER_NOVNC_OLD,
    SETTING_BROWSER_HOST_CONTROL,
    SETTING_BROWSER_AUTO_START,
    SETTING_BROWSER_START_MS,
    SETTING_BROWSER_BINDS,
    SETTING_BROWSER_ENV,
    SETTING_PRUNE_IDLE,
    SETTING_PRUNE_AGE,
    SETTING_SETUP_SCRIPT,
    SETTING_VAULT_PATH,
    SETTING_VAULT_ACCESS,
    SETTING_TOOLS_ALLOW,
    SETTING_TOOLS_ALSO,
    SETTING_TOOLS_DENY,
    SETTINGS
};

enum setting_kind {
    SETTING_WORD, /* one of `words` */
    SETTING_TEXT, /* a string that is not empty */
    SETTING_BOOL,
    SETTING_COUNT,  /* a whole number, min to max */
    SETTING_NUMBER, /* min to max, min itself excluded */
    SETTING_SIZE,   /* "1g", or a number of bytes */
    SETTING_LIST,   /* of strings */
    SETTING_CALLS,  /* a list of tools, and of command lines as exec:PATTERN */
    SETTING_PORTS,  /* a list of whole numbers, min to max */
    SETTING_MAP,    /* string to string */
    SETTING_LIMITS, /* name to a number, "soft:hard" or {soft, hard} */
    SETTING_LINES,  /* a string, or a list of them */
    SETTING_SECRET, /* a string, or an object that says where it is kept */
};

enum setting_merge {
    MERGE_REPLACE, /* the last one that says anything */
    MERGE_KEYS,    /* key by key, the last one wins */
    MERGE_CONCAT,  /* all of them, one after the other */
};

enum setting_home { HOME_SANDBOX, HOME_TOOLS };

#define COMMAND_PREFIX        "exec:" /* of an entry of SETTING_CALLS that is about commands */
#define GROUP_PREFIX          "group:"
#define LIMIT_COMMAND_PATTERN 240u /* bytes after it */
#define LIMIT_TOOL_PATTERN    63u  /* no tool has a longer name */

struct setting {
    const char *path; /* "docker.network" */
    enum setting_home home;
    enum setting_kind kind;
    enum setting_merge merge;
    const char *words; /* "off|non-main|all"; of SETTING_CALLS, the groups */
    double min, max;
    const char *strict, *dev; /* JSON, or NULL: not set */
    const char *variable;     /* "sandbox_docker_network" */
    bool no_agent;            /* an agent cannot change it */
    bool shared_ignores; /* an agent's is ignored where the scope is shared (docker, browser ...) */
    const char *help;
};

extern const struct setting settings_table[SETTINGS];

/* NULL if there is none of that name. */
const struct setting *setting_find(enum setting_home home, const char *path);
/* The known path that is nearest to a wrong one, or NULL if none is near. */
const char *setting_nearest(enum setting_home home, const char *path);
/* Is it a folder of settings ("docker"), not one itself? */
bool setting_is_group(enum setting_home home, const char *path);
/* The full path in openclaw.json: "agents.defaults.sandbox.docker.network". Needs 128 bytes. */
const char *setting_full_path(const struct setting *s, char *ret, size_t size);
/* Does the value have the type and range? If not, err says what it must be. */
int setting_check(const struct setting *s, const json_t *value, struct error *err);

/* ---- what holds for one agent ---- */

enum origin_kind {
    ORIGIN_UNSET,
    ORIGIN_PRESET,
    ORIGIN_YAML,     /* clawden.yaml */
    ORIGIN_DEFAULTS, /* openclaw.json, for all agents */
    ORIGIN_PROFILE,  /* extra_vars of the profile */
    ORIGIN_OVERRIDE, /* -e */
    ORIGIN_AGENT,    /* openclaw.json, for this agent */
    ORIGIN_WHAT_IF,  /* --set */
};

struct origin {
    enum origin_kind kind;
    const char *file;        /* borrowed from the configuration, NULL if it is in none */
    const char *path;        /* the key as it stands there */
    struct text_place place; /* 0: not known */
};

struct settings {
    json_t *value[SETTINGS]; /* owned; NULL: not set. env values are raw: their ${VAR} is kept */
    struct origin from[SETTINGS];
};

void settings_done(struct settings *s);
/* Borrowed; NULL, false, 0, or the empty list when it is not set. */
const char *settings_text(const struct settings *s, enum setting_id id);
bool settings_bool(const struct settings *s, enum setting_id id);
double settings_number(const struct settings *s, enum setting_id id);
/* "preset strict", "openclaw.json:4:9 agents.defaults.sandbox.mode", "-e sandbox_mode". */
const char *origin_describe(const struct origin *o, char *ret, size_t size);
