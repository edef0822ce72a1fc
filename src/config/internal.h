/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of config/ share. A load has two halves: reading (files into jansson values, each
 * text kept so that a place in it can be named) and building (values into layers, checked). The
 * second also works on what was remembered, where no text is at hand.
 *
 * Keys are found by path: a list of words from the top of openclaw.json, clawden.yaml or the
 * profile. Every error that is about a key names the file that holds it, with line and column.
 */
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"
#include "config/load.h"

#define LIMIT_CONFIG_INCLUDE_DEPTH 10u         /* files in each other; OpenClaw's own limit */
#define LIMIT_CONFIG_FILES         256u        /* files of one load: includes can fan out */
#define LIMIT_CONFIG_TOTAL         (16u << 20) /* bytes of all of them */
#define LIMIT_CONFIG_LOCATE        (8u << 20)  /* bytes read again to say where good values stand */
#define LIMIT_CONFIG_WORDS         96u         /* words of one key path, through includes */
#define LIMIT_CONFIG_AGENTS        1024u       /* agents of one openclaw.json */
#define LIMIT_CONFIG_WARNINGS      64u         /* the first ones tell enough */
#define LIMIT_CONFIG_AGENT_ID      64u         /* it becomes part of folder names */
#define LIMIT_CONFIG_REMEMBERED    (24u << 20) /* what is remembered: all files, escaped again */

/* ---- key paths ---- */

struct key_path {
    const char *word[LIMIT_CONFIG_WORDS + 1]; /* borrowed; NULL ends */
    size_t n;
};

/* False when it is full. */
bool key_path_push(struct key_path *p, const char *word);
void key_path_pop(struct key_path *p);
/* The same with "agents.defaults.sandbox"; the text is cut up in `store`. */
bool key_path_push_dotted(struct key_path *p, const char *dotted, char *store, size_t size);
/* "agents.defaults.sandbox", visible characters only, without quotes and cut. */
struct key_text {
    char text[160];
};
struct key_text key_path_show(const struct key_path *p);

/* A path of a file for a message: what is too long loses its beginning. */
struct file_text {
    char text[132];
};
struct file_text file_show(const char *path);

/* ---- files ---- */

/* One text that was read. */
struct source {
    char *name;      /* as it was asked for, absolute */
    char *canonical; /* with every link resolved */
    char *text;
    size_t len;
    json_t *value; /* as it stands there; NULL for env files */
};

enum source_kind { SOURCE_OPENCLAW, SOURCE_YAML, SOURCE_PROFILE, SOURCES };

/* A file put into openclaw.json: which one, where, and by which other inclusion. */
struct inclusion {
    size_t source;
    size_t parent; /* of inclusions[]; its own number: the top file */
    json_t *site;  /* the words of the path where it was put */
};

struct agent {
    char *id, *workspace; /* workspace: NULL if it says nothing */
    struct settings own;
};

/* One layer of operator variables. */
struct variables {
    struct settings set;
    json_t *extra[2]; /* more for networkAllow and networkExecAllow; NULL: none */
    struct origin extra_from[2];
    bool enabled_follows; /* `enabled` comes from docker_enabled or no_docker */
};

struct config {
    char home[LIMIT_PATH], state_dir[LIMIT_PATH], main_file[LIMIT_PATH];
    bool main_named; /* somebody asked for that file: it has to be there */

    struct source *sources;
    size_t n_sources, total_bytes, located_bytes;
    size_t top[SOURCES]; /* numbers of sources; SIZE_MAX: there is none */
    struct inclusion *inclusions;
    size_t n_inclusions;

    json_t *parts[SOURCES]; /* our parts, ${VAR} as it stands; NULL: nothing */
    json_t *variables;      /* of .env and secrets.env */

    const char *preset; /* "strict", "dev" */
    struct settings preset_values, yaml, defaults, what_if;
    struct variables profile, overrides;
    struct agent *agents;
    size_t n_agents;
    char *workspace; /* agents.defaults.workspace */
    bool sessions_are_global;

    char **kept; /* texts that origins borrow */
    size_t n_kept;
    char *warnings[LIMIT_CONFIG_WARNINGS];
    size_t n_warnings;
    char *fallback;
    const char *remembered_file; /* the values come from it, not from the files */
};

/* ---- source.c ---- */

/* Opens by path (following links), but only a regular file. *ret_canonical is freed by the caller.
 * With `roots` (a NULL-ended list of canonical folders) it must lie in one of them; nothing of a
 * file elsewhere is read. -ERR_NOT_FOUND when there is none. */
int source_open(const char *path, const char *const *roots, char **ret_canonical,
                struct error *err);
/* Reads all of fd and keeps it; the number of the source. */
int source_read(struct config *c, int fd, const char *name, const char *canonical, size_t max,
                size_t *ret, struct error *err);
/* For a missing file that may be missing: *ret is SIZE_MAX. */
int source_load(struct config *c, const char *path, size_t *ret, struct error *err);

/* Puts "FILE:LINE:COLUMN: " before the message. */
int source_wrong_at(const struct source *s, struct text_place place, struct error *err);

/* Where a key of our parts stands; file NULL: in none. `value` tells which of several files. */
struct whereabouts {
    const char *file;
    struct text_place place;
};
struct whereabouts key_find(const struct config *c, enum source_kind kind, const struct key_path *p,
                            const json_t *value);
/* The same, but reading texts again for every value adds up: beyond a bound only the top file is
 * named. */
struct whereabouts key_find_often(struct config *c, enum source_kind kind, const struct key_path *p,
                                  const json_t *value);
/* Puts where the key stands before the message. */
int key_wrong(const struct config *c, enum source_kind kind, const struct key_path *p,
              const json_t *value, struct error *err);
/* The same as a warning. */
void key_warn(struct config *c, enum source_kind kind, const struct key_path *p,
              const json_t *value, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void config_warn(struct config *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A copy that lives as long as the configuration; NULL when memory is gone. */
const char *config_keep(struct config *c, const char *text);

/* ---- paths.c ---- */

/* Fills home, state_dir and main_file from the environment. */
int config_find_paths(struct config *c, const char *file, struct error *err);
/* `~` expanded, made absolute. */
int config_full_path(const struct config *c, const char *path, char *ret, size_t size,
                     struct error *err);

/* ---- include.c ---- */

/* Reads openclaw.json with its includes into parts[SOURCE_OPENCLAW]: only what is ours. */
int openclaw_read(struct config *c, struct error *err);

/* ---- substitute.c ---- */

/* A copy of value with ${VAR} replaced in every string. Variables that are not set are warned of
 * and stay. */
int substitute(struct config *c, enum source_kind kind, const struct key_path *p, json_t *value,
               json_t **ret, struct error *err);

/* ---- env_file.c ---- */

/* Reads both files of variables. */
int env_files_read(struct config *c, struct error *err);
enum env_syntax { ENV_SYSTEMD, ENV_DOTENV /* " #" after a bare value begins a comment */ };
/* KEY=VALUE lines into an object of strings. */
int env_parse(const char *text, size_t len, enum env_syntax syntax, json_t *ret,
              struct text_place *ret_place, struct error *err);

/* ---- yaml.c ---- */

/* A subset of YAML 1.2: one document, no anchors, aliases, tags or directives. */
int yaml_parse(const char *text, size_t len, json_t **ret, struct text_place *ret_place,
               struct error *err);
int yaml_locate(const char *text, size_t len, const char *const *path, struct text_place *ret);

/* ---- block.c ---- */

/* A sandbox block, or the three lists of a tool policy: every key known, every value checked. */
struct block {
    struct config *c;
    enum source_kind kind;
    enum origin_kind origin;
    enum setting_home home;
    bool is_agent, has_tools; /* has_tools: the lists stand in the block itself, as `tools` */
    struct settings *ret;
};
int block_read(const struct block *b, struct key_path *p, json_t *value, struct error *err);
/* Older names count where the newer one is not set, in the same block. */
void older_names(struct settings *s);
/* The same agent to the client: it does not tell capital letters apart, and writes what an id
 * cannot have ('.') as '-'. */
bool agent_is_same(const char *a, const char *b);
/* A member that must be an object; *ret is NULL if it is not there. The path is not changed. */
int object_member(struct config *c, enum source_kind kind, struct key_path *p, json_t *in,
                  const char *key, json_t **ret, struct error *err);

/* ---- openclaw.c, clawden_yaml.c ---- */

int openclaw_build(struct config *c, struct error *err);
int clawden_yaml_read(struct config *c, struct error *err);
int clawden_yaml_build(struct config *c, struct error *err);
/* NULL if clawden.yaml names none. */
const char *clawden_yaml_preset(const struct config *c);

/* ---- variables.c ---- */

int profile_read(struct config *c, struct error *err);
int profile_build(struct config *c, struct error *err);
int overrides_build(struct config *c, const char *const *words, struct error *err);
int what_if_build(struct config *c, const char *const *words, struct error *err);

/* ---- last_good.c ---- */

int last_good_write(struct config *c, struct error *err);
/* Fills parts; *ret_when is seconds since 1970. */
int last_good_read(struct config *c, long long *ret_when, struct error *err);
