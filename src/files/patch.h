/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * apply_patch: the "*** Begin Patch" format of codex and OpenClaw.
 *
 *     *** Begin Patch
 *     *** Add File: PATH           then "+" lines
 *     *** Delete File: PATH
 *     *** Update File: PATH        then "*** Move to: PATH" perhaps, then hunks:
 *     @@ [a line to go to first]   then " ", "-" and "+" lines, then "*** End of File" perhaps
 *     *** End Patch
 *
 * The old lines of a hunk are looked for from where the last one ended: exactly, then without
 * blanks at line ends, then without blanks at both sides. Context lines keep the file's own bytes;
 * new lines take the file's line ends. A hunk of "+" lines alone goes after its @@ line, or to the
 * end of the file if it has none.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct buf;
struct error;
struct files_root;

enum patch_kind {
    PATCH_ADD,
    PATCH_DELETE,
    PATCH_UPDATE,
};

struct patch_line {
    const char *text;
    size_t len;
    char sign; /* ' ' '-' '+' */
};

struct patch_hunk {
    struct patch_line place; /* after @@; text NULL if there was none */
    size_t first, n;         /* in patch.lines */
    size_t row;              /* line of the patch, from 1 */
    bool at_end;             /* *** End of File */
};

struct patch_op {
    enum patch_kind kind;
    char *path, *move_to;
    size_t first, n; /* hunks in patch.hunks; for PATCH_ADD, lines in patch.lines */
    size_t row;
};

struct patch {
    char *text;
    struct patch_op *ops;
    struct patch_hunk *hunks;
    struct patch_line *lines;
    size_t n_ops, n_hunks, n_lines, cap_ops, cap_hunks, cap_lines;
};

/* Pure. Errors name the line of the patch. */
int patch_parse(const char *text, size_t len, struct patch **ret, struct error *err);
void patch_free(struct patch *p);
DEFINE_AUTOPTR(patch)

/* Pure: what `op` makes of a file's old text (nothing for PATCH_ADD), appended to `out`. */
int patch_text(const struct patch *p, const struct patch_op *op, const char *old, size_t len,
               struct buf *out, struct error *err);

enum {
    PATCH_REPLACE = 1, /* Add File and Move to replace what is there, as codex does */
};

struct patch_done {
    size_t added, updated, deleted, moved;
};

/*
 * All or nothing: every file is checked and prepared beside its place first, then they are put in
 * place by rename. If one of these fails, or a file has changed meanwhile, those before it are put
 * back. Only SIGKILL between two renames leaves a part done: each file then is the old or the new
 * one, whole, and the old ones are in `.clawden-tmp-*` until files_sweep(). `diff` may be NULL.
 */
int patch_apply(const struct files_root *root, const struct patch *p, unsigned flags,
                struct buf *diff, struct patch_done *ret, struct error *err);
