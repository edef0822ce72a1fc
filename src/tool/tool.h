/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The tools that agents call, in one table: REST, MCP, OpenAPI and the documentation are made from
 * it. What a tool does stands in the other files of this folder, and each of them wants a pass.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct error;
struct files_root;
struct pass;

/* What callers choose. Plain numbers: the schemas have them as text. */
#define LIMIT_TOOL_CONTENT \
    16777216 /* one file that is written: fits a frame of the link, escaped */
#define LIMIT_TOOL_IMAGE     3000000 /* one image that is read: models take 5 MB of base64 */
#define LIMIT_TOOL_VERSION   128     /* bytes of a file's version */
#define LIMIT_TOOL_SEARCH_MS 3000    /* one ls, find or grep: others wait meanwhile */
#define LIMIT_EXEC_WORD      131071 /* a word of argv, NAME=VALUE: the kernel refuses a longer one */
#define LIMIT_EXEC_WORDS     4096   /* words of argv */
#define LIMIT_EXEC_ENV       256    /* variables of one command */
#define LIMIT_EXEC_STDIN     1048576 /* what a command is given to read, and one write to it */
#define LIMIT_EXEC_SECONDS   86400   /* until a command is ended */
#define LIMIT_TERMINAL       1000    /* rows or columns */
#define LIMIT_PROCESS_ID     64      /* bytes of a command's id */
#define LIMIT_PROCESS_WAIT   60      /* seconds that a poll waits: proxies give up soon after */
#define LIMIT_PROCESS_LOG    262144  /* bytes of a log given back at once */
#define LIMIT_WEB_URL        8192    /* bytes of a URL; what servers take */
#define LIMIT_WEB_BYTES      1048576 /* of a page */
#define LIMIT_WEB_SECONDS    120     /* for one page */
#define LIMIT_WEB_QUERY      400     /* characters; the search service's own limit */
#define LIMIT_WEB_RESULTS    20      /* the same */

/* How many come when nobody says: a page that a model reads. */
#define TOOL_LS_ENTRIES   500
#define TOOL_FIND_PATHS   1000
#define TOOL_GREP_MATCHES 100

#define TOOL_TARGET 256 /* bytes of a target, with its NUL */

enum tool_kind {
    TOOL_FILES,   /* tool_files(): at once, on the workspace's descriptor */
    TOOL_EXEC,    /* starts a command (jobs.h) */
    TOOL_PROCESS, /* looks after commands of the same session (jobs.h) */
    TOOL_STATUS,  /* session_status */
    TOOL_WEB,     /* a command in the box with a network (web.h) */
};

struct tool {
    const char *name, *title, *description;
    const char *input_schema, *output_schema; /* JSON text (mcp/schema.h) */
    enum tool_kind kind;
    bool read_only, destructive, idempotent, open_world; /* as MCP's annotations */
    bool unlisted;                                       /* another name of `same_as` */
    const char *same_as;
};

extern const struct tool tools[];
extern const size_t n_tools;

/* By its name or another one of its names: the tool itself. NULL: none is called so. */
const struct tool *tool_find(const char *name);
/* Do the arguments fit its schema, and what a schema cannot say? The message names the field. An
 * integer that was written as 5.0 becomes 5 in place. `t` is an element of tools[]. */
int tool_check(const struct tool *t, json_t *arguments, struct error *err);
/* Which file or command it is about, for the record: one line, cut; "" if none. Of arguments that
 * tool_check() accepts. Returns `out`. */
const char *tool_target(const struct tool *t, json_t *arguments, char out[TOOL_TARGET]);

/*
 * read, write, edit, apply_patch, ls, find, grep. The result is what the output schema says; what
 * went wrong with the file (missing, changed since it was read, not text) is an error. `root` is
 * the workspace of the pass's session; a pass that may not write is refused by what writes.
 * Arguments are checked again here.
 */
int tool_files(const struct pass *p, const struct tool *t, const struct files_root *root,
               json_t *arguments, json_t **ret, struct error *err);

/* Bytes as a JSON text: what is not UTF-8 becomes U+FFFD. NULL: no memory. */
json_t *tool_text(const char *s, size_t len);
