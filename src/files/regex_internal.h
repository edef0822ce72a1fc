/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Between the readers of patterns (regex_parse.c, glob.c), the compiler and the matcher. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

/* ---- the tree ---- */

enum node_kind {
    NODE_EMPTY,
    NODE_CHARS,  /* one character of ranges[first, first + n) */
    NODE_BYTES,  /* one byte of them */
    NODE_CAT,    /* children one after the other */
    NODE_ALT,    /* one of the children */
    NODE_REPEAT, /* the child, min to max times; max -1 = any number */
    NODE_ASSERT,
};

enum assertion {
    AT_START,
    AT_END,
    AT_END_CR, /* also before a carriage return that is the line's last */
    AT_WORD,
    AT_NO_WORD,
};

struct node {
    enum node_kind kind;
    enum assertion what;
    int child, next; /* -1 = none */
    int min, max;
    size_t first, n;
};

struct range {
    uint32_t lo, hi;
};

struct tree {
    struct node *nodes;
    struct range *ranges;
    size_t n_nodes, cap_nodes, n_ranges, cap_ranges;
};

void files_tree_done(struct tree *t);
/* Each gives the node, or -ENOMEM. */
int files_tree_node(struct tree *t, enum node_kind kind);
int files_tree_assert(struct tree *t, enum assertion what);
int files_tree_repeat(struct tree *t, int child, int min, int max);
int files_tree_byte(struct tree *t, unsigned char c, bool fold);
int files_tree_char(struct tree *t, uint32_t c, bool fold);
/* Appends a child; chain with *last, which starts at -1. */
void files_tree_chain(struct tree *t, int parent, int *last, int child);
int files_tree_range(struct tree *t, uint32_t lo, uint32_t hi);
/* The ranges from `first` on become one class: folded, sorted, merged, turned over. */
int files_tree_class(struct tree *t, size_t first, bool fold, bool negate);

/* The root node, or -code with err filled. */
int files_regex_parse(const char *s, size_t len, bool fold, struct tree *t, struct error *err);
int files_glob_parse(const char *s, size_t len, struct tree *t, struct error *err);
/* "[...]" without its opening bracket: names of POSIX classes; 0 if it is none. */
int files_tree_posix_class(struct tree *t, const char *s, size_t len, size_t *ret_used);

/* ---- the program ---- */

enum {
    STEP_BYTE,
    STEP_SPLIT,
    STEP_ASSERT,
    STEP_MATCH,
};

struct step {
    uint8_t op, lo, hi; /* ASSERT: lo is the assertion */
    uint32_t x, y;
};

struct program {
    struct step *steps;
    size_t n;
    uint32_t start;
};

int files_regex_compile(const struct tree *t, int root, struct program *ret, struct error *err);
