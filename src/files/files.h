/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The file tools' hands: read, write, edit, list, find and search in a workspace that a hostile
 * program may be changing at the same time.
 *
 * F1: no path is looked up but by openat2 beneath the workspace's descriptor, or, one name at a
 *     time and without links, beneath a descriptor that was opened so. Links inside the workspace
 *     that stay inside are followed by read, write and edit; absolute links are not.
 * F2: what a thing is, is asked of the open descriptor, never of its name.
 * F3: content reaches a name only whole, by rename: whoever is killed leaves the old file or the
 *     new one, and at worst a `.clawden-tmp-*` beside it that files_sweep() removes.
 *
 * Paths are bytes, relative to the workspace; `mount` (what the box calls the workspace) may stand
 * before them. Texts that people or models see use the encoding of files_name_escape(). Buffers
 * and results belong to the caller. Everything works on the calling thread alone; as root, making
 * a folder changes the thread's fsuid for a moment.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct error;

#define FILES_TEMP_PREFIX ".clawden-tmp-"

struct files_root {
    int fd;            /* the workspace; borrowed */
    const char *mount; /* "/workspace"; NULL if absolute paths are refused altogether */
    mode_t file_mode;  /* of new files, 0644 */
    mode_t dir_mode;   /* of new folders, 0755 */
    bool sync;         /* fsync before rename: for power failures, not for SIGKILL */
};

void files_root_init(struct files_root *root, int fd, const char *mount);

/* ---- names ---- */

/*
 * Appends a name or path so that it can be shown and given back: a backslash is `\\`; bytes that
 * are not UTF-8, controls, line separators, and characters that turn or hide text are `\xHH` per
 * byte; the rest stands for itself. files_name_parse() takes exactly these texts, so that one file
 * has one spelling; it refuses NUL and any other use of a backslash.
 */
void files_name_escape(struct buf *out, const char *name, size_t len);
int files_name_parse(const char *text, size_t len, struct buf *ret, struct error *err);

/* ---- identity ---- */

/* What was read. With a hash (files up to LIMIT_FILES_HASH) the content counts, else the stat. */
struct files_id {
    uint64_t dev, ino;
    int64_t size, mtime_ns;
    char sha256[65]; /* "" = unknown */
};

/* ---- read ---- */

enum files_kind {
    FILES_TEXT, /* UTF-8 without NUL, as far as it was looked at */
    FILES_BINARY,
    FILES_PNG,
    FILES_JPEG,
    FILES_GIF,
    FILES_WEBP,
};
const char *files_kind_name(enum files_kind kind); /* "text", "binary", "image/png", ... */

struct files_ask {
    bool raw;       /* bytes, whatever they are; else lines of text */
    int64_t offset; /* first line, from 1 (0 = 1); raw: first byte */
    int64_t limit;  /* lines or bytes; 0 = as many as fit */
    size_t room;    /* bytes that may be given back; 0 = LIMIT_FILES_READ */
};

struct files_read {
    enum files_kind kind;
    struct files_id id;
    int64_t size;
    int64_t lines, total_lines; /* given back; in the file (-1: larger than LIMIT_FILES_SCAN) */
    bool cut;                   /* there is more: */
    int64_t next;               /* ... the offset to go on with, */
    bool next_raw;              /* ... in bytes, because one line alone is too long */
    char note[160];             /* the same in words; "" if there is nothing to say */
};

/* Appends to `content`. Text mode gives nothing of a file that is not text: look at ret->kind. */
int files_read(const struct files_root *root, const char *path, const struct files_ask *ask,
               struct buf *content, struct files_read *ret, struct error *err);

/* ---- write, edit ---- */

enum {
    FILES_PARENTS = 1, /* make missing folders */
    FILES_NEW = 2,     /* refuse a name that is taken */
    FILES_REPLACE = 4, /* move: replace what is there */
};

struct files_written {
    bool created;
    bool link_broken; /* the old file had other names; those keep the old content */
    bool owner_kept;  /* false: the old owner could not be given to the new file */
    struct files_id id;
    uint64_t added, removed; /* lines */
};

/*
 * Replaces or makes a file. The new one keeps owner, mode (less set-id bits, as by any write) and
 * user attributes of the old, or takes the owner of its folder. With `expected`, a file that is not
 * the one that was read is refused (ERR_EXISTS, sys = ESTALE). `diff` may be NULL.
 */
int files_write(const struct files_root *root, const char *path, const void *data, size_t len,
                unsigned flags, const struct files_id *expected, struct buf *diff,
                struct files_written *ret, struct error *err);

struct files_edit {
    const char *old_text, *new_text;
    size_t old_len, new_len;
    bool all; /* every occurrence, left to right; else there must be exactly one */
};

/* Literal replacements, one after the other, all or none; every other byte stays. */
int files_edit(const struct files_root *root, const char *path, const struct files_edit *edits,
               size_t n, const struct files_id *expected, struct buf *diff,
               struct files_written *ret, struct error *err);
/* The pure part: `ret` is initialised here, and filled only on success. */
int files_edit_text(const char *text, size_t len, const struct files_edit *edits, size_t n,
                    struct buf *ret, struct error *err);

/* Unified hunks with three lines of context; what does not fit LIMIT_FILES_DIFF is only counted. */
void files_diff(const char *old_text, size_t old_len, const char *new_text, size_t new_len,
                struct buf *out, uint64_t *ret_added, uint64_t *ret_removed);

/* ---- names come and go ---- */

/* Links are removed, not followed; mounts are not entered. `ret_n` may be NULL. */
int files_remove(const struct files_root *root, const char *path, bool recursive, uint64_t *ret_n,
                 struct error *err);
/* Moves the thing itself (a link stays a link). FILES_PARENTS, FILES_REPLACE. */
int files_move(const struct files_root *root, const char *from, const char *to, unsigned flags,
               struct error *err);
/* With FILES_PARENTS a folder that is there already is fine. */
int files_mkdir(const struct files_root *root, const char *path, unsigned flags, struct error *err);
/* Removes temporary files older than older_ms; at the start of a gateway, 0. */
int files_sweep(const struct files_root *root, int64_t older_ms, uint64_t *ret_n,
                struct error *err);

/* ---- list, find ---- */

enum files_stop {
    FILES_ALL,       /* nothing is missing */
    FILES_STOP_MANY, /* as many as were asked for */
    FILES_STOP_WORK, /* a limit of ours: entries visited, depth, names of one folder, bytes */
    FILES_STOP_TIME, /* the deadline */
};

struct files_entry {
    size_t name; /* offset in .text: the path below the folder asked for; raw bytes, NUL */
    char kind;   /* as in `ls -l`: '-' 'd' 'l' 'p' 's' 'c' 'b' */
    int64_t size, mtime_ns;
    uint32_t mode;
    bool made; /* files_changed(): a folder that was not there before */
};

struct files_list {
    struct buf text;
    struct files_entry *entries;
    size_t n, cap;
    uint64_t visited, unreadable;
    enum files_stop stop;
};

void files_list_done(struct files_list *list);
const char *files_list_name(const struct files_list *list, size_t i);

struct files_walk {
    size_t limit;        /* entries; 0 = LIMIT_FILES_ENTRIES */
    uint64_t visit;      /* entries that are looked at; 0 = LIMIT_FILES_VISIT, the most */
    int64_t deadline_ms; /* from now; 0 = none */
    bool with_git;       /* look into .git too */
    bool stay;           /* other mounts are not entered */
};

/* Sorted by bytes in each folder; a folder stands before what is in it. `ret` is initialised. */
int files_list(const struct files_root *root, const char *path, bool recursive,
               const struct files_walk *how, struct files_list *ret, struct error *err);
/*
 * `*` `?` `[a-z]` `[!a]` `{a,b}` within a name, `**` over folders. A pattern without a slash is
 * held against the last name, with one against the path below `path`. Folders match too.
 */
int files_find(const struct files_root *root, const char *path, const char *pattern,
               const struct files_walk *how, struct files_list *ret, struct error *err);

/* ---- what changed ---- */

/*
 * What has changed since a moment of the wall clock, by the times that the kernel gives files and
 * that no program can set back (ctime): made, written, renamed, given another mode or owner. Sorted
 * by bytes; a folder's name ends in '/', the workspace itself is "./". A folder is there if names
 * in it came or went (or it changed itself) and nothing that is there tells why, neither a name
 * directly in it nor what is in a folder that was made in it: that is what is left of a removed
 * file. `ret` is initialised; ret->unreadable counts folders that could not be looked into.
 */
int files_changed(const struct files_root *root, int64_t since_ns, const struct files_walk *how,
                  struct files_list *ret, struct error *err);

/* ---- grep ---- */

struct files_query {
    const char *pattern;
    size_t len;
    bool literal, ignore_case; /* case: ASCII only */
    unsigned context;
    const char *glob;      /* only files that match; NULL = all */
    struct files_walk how; /* limit = matching lines */
};

struct files_match {
    size_t path, text, len; /* offsets in .text; raw bytes */
    uint64_t line;
    bool is_context, cut;
};

struct files_grep {
    struct buf text;
    struct files_match *matches;
    size_t n, cap, n_matching;
    uint64_t files, bytes, binary, unreadable;
    enum files_stop stop;
    bool one_file; /* it was a file that was searched: .path is as it was given */
};

/* A folder or one file. Files with a NUL in their first LIMIT_FILES_CHUNK are binary: skipped. */
int files_grep(const struct files_root *root, const char *path, const struct files_query *query,
               struct files_grep *ret, struct error *err);
void files_grep_done(struct files_grep *grep);
