/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Regular expressions and globs in linear time: a Thompson automaton whose sets of states are made
 * into a table as they come up. The cache is bounded; when it is full it starts anew, and the work
 * per byte is at worst the size of the program. Pure.
 *
 * Syntax: literals, . [] [^] [[:alpha:]] ^ $ * + ? {m,n} | () (?:) (?i) at the start,
 * \d \w \s \D \W \S \b \B \t \r \n \f \v \xHH, and \ before punctuation. `*?` and the like find the
 * same lines as `*`. Back references and lookaround are refused: they are what is not linear.
 * Characters are UTF-8; case is folded, and \d \w \s are, in ASCII. `$` also stands before a final
 * \r. Nothing matches a newline.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct error;
struct files_regex;

enum {
    FILES_REGEX_ICASE = 1,
    FILES_REGEX_LITERAL = 2,
    FILES_REGEX_GLOB = 4, /* see files_find(); the whole text must match */
};

int files_regex_new(const char *pattern, size_t len, unsigned flags, struct files_regex **ret,
                    struct error *err);
void files_regex_free(struct files_regex *re);
DEFINE_AUTOPTR(files_regex)

/* Is there a match in one line of text (without its newline)? */
bool files_regex_match(struct files_regex *re, const char *line, size_t len);
/*
 * Looks through whole lines, the last of which may lack its newline: the offset of a byte that
 * belongs to the first line that matches (perhaps its newline, or len), or -1.
 */
ptrdiff_t files_regex_scan(struct files_regex *re, const char *text, size_t len);
/* Does a glob have a slash, so that it is held against whole paths? */
bool files_glob_has_slash(const char *pattern);
