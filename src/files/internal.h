/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of this folder share. */
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "files/files.h"

/* ---- places ---- */

#define NAME_SIZE 256 /* NAME_MAX with its NUL */
#define TEMP_NAME (sizeof(FILES_TEMP_PREFIX) + 16)
#define SHOWN     160

/* A path for a message: escaped, and its middle left out if it is long. Returns `out`. */
const char *files_show(const char *path, char out[SHOWN]);
#define SHOW(path) files_show(path, (char[SHOWN]){0})

/* Without mount, double slashes and "."; "." is the workspace itself. ".." is left to the kernel.
 */
int files_place_clean(const struct files_root *root, const char *path, bool folder,
                      char ret[LIMIT_PATH], struct error *err);
/* What went wrong while `verb`ing a path, by the errno of a lookup. */
int files_place_error(struct error *err, int r, const char *verb, const char *path);

/* A name in an open folder. */
struct place {
    int dir;
    char name[NAME_SIZE];
};
#define autoplace cleanup_(files_place_done) struct place
static inline void files_place_done(struct place *p)
{
    close_fd(&p->dir);
}

enum {
    PLACE_FOLLOW = 1,  /* a link at the end stands for what it points to */
    PLACE_PARENTS = 2, /* make missing folders */
};
/* A folder that this made is told to `made` (which may be NULL) by its place; it owns that. */
struct made {
    struct place *dirs;
    size_t n;
};
void files_made_done(struct made *m); /* forgets */
void files_made_undo(struct made *m); /* removes those that are empty, last first */
int files_place_find(const struct files_root *root, const char *path, unsigned flags,
                     const char *verb, struct made *made, struct place *ret, struct error *err);
int files_place_open_dir(const struct files_root *root, const char *path, const char *verb,
                         struct error *err);

/* One name in dir, without links: a regular file and what it is; -errno, or -EISDIR, -ENXIO for
 * others. */
int files_open_file_at(int dir, const char *name, struct stat *ret);
/* The same for a folder; a mount point is -EXDEV if `stay`. */
int files_open_dir_at(int dir, const char *name, bool stay);
/* By path, links inside the workspace followed. */
int files_open_file(const struct files_root *root, const char *path, const char *verb,
                    struct stat *ret, struct error *err);
/* mkdirat() for the folder's owner. -errno */
int files_make_dir_at(const struct files_root *root, int dir, const char *name);

/* ---- content ---- */

/* Everything up to `size` bytes; -EFBIG beyond LIMIT_FILES_WRITE. */
int files_content_read(int fd, int64_t size, struct buf *ret);
void files_id_of(const struct stat *st, const void *data, size_t len, struct files_id *ret);
bool files_id_is(const struct files_id *expected, const struct files_id *now);
/* The same object in the same state, as far as a stat can tell. */
bool files_stat_same(const struct stat *a, const struct stat *b);
int64_t files_nanoseconds(struct timespec t);
int64_t files_now_ns(clockid_t clock);

/*
 * A finished file under a temporary name in place->dir, with the owner, mode and attributes of
 * `old` (which may be -1: then of a new file), with *ret_owner telling whether the owner is right.
 * Returns its descriptor: as long as that is open, it can be known again.
 */
int files_stage(const struct files_root *root, int dir, const void *data, size_t len, int old,
                char ret_temp[TEMP_NAME], bool *ret_owner, struct error *err);
/*
 * The staged file `fresh` and the file under `name` change places; if that was not `old`, in the
 * state it was read in, they change back: -ESTALE. On success the old file is under `temp`; on
 * failure nothing is, unless a file of somebody else would be lost.
 */
int files_swap(int dir, const char *temp, const char *name, const struct stat *old, int fresh);
int files_swap_back(int dir, const char *temp, const char *name, int fresh);
/* Is it the open file fd that has this name? */
bool files_is_at(int dir, const char *name, int fd);
int files_temp_name(char name[TEMP_NAME]);
bool files_is_temp(const char *name);

/* ---- walking ---- */

struct names {
    char **list;
    size_t n, cap;
    bool cut;
};
/* The sorted names of an open folder, the first `most` that come; 0 or -errno. */
int files_names_read(int dir, size_t most, struct names *ret);
void files_names_done(struct names *names);

struct walk {
    const struct files_walk *how;
    struct buf path; /* of the entry that is visited, below the start */
    int64_t deadline_ns;
    uint64_t visited, unreadable;
    size_t held; /* names in memory, of all levels */
    enum files_stop stop;
    bool recursive;
    /* name is the last part of path; dt as in dirent. Negative: error, ends the walk. */
    int (*on_entry)(struct walk *w, int dir, const char *name, unsigned char dt, struct error *err);
    void *arg;
};
int files_walk_dir(struct walk *w, int dir, struct error *err);
void files_walk_start(struct walk *w, const struct files_walk *how);
/* Has something told the walk to end? Looks at the clock. */
bool files_walk_over(struct walk *w);
/* One more, called `path` and `end`; what does not fit stops the walk. */
int files_list_add(struct walk *w, struct files_list *list, const struct stat *st, const char *path,
                   const char *end, struct error *err);
/* Opens the folder, walks it, and hands over what came of it. */
int files_list_collect(const struct files_root *root, const char *path, const char *verb,
                       struct walk *w, const struct files_walk *how, struct files_list *ret,
                       struct error *err);
