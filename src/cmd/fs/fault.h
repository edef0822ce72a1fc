/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What went wrong, in the words that the client's own program would have used: the last line of a
 * Python traceback. Its users know these lines, and some search them.
 *
 * A function whose last parameter is `struct fault *f` fills it exactly when its result is
 * negative; the result is then -errno (-ECANCELED for what has none). Names are copied: the
 * original may move.
 */
#include <stdbool.h>

#include "base/limits.h"

struct fault {
    int sys;
    const char *type; /* "RuntimeError"; NULL: what Python calls .sys */
    const char *text; /* NULL: the kernel's words for .sys */
    bool named, paired;
    char name[LIMIT_PATH], other[LIMIT_PATH];
};

/* A system call failed: errno, about this name (NULL: none), or about these two. */
int fault_sys(struct fault *f, int sys, const char *name);
int fault_pair(struct fault *f, int sys, const char *name, const char *other);
/* The same with words of our own. */
int fault_say(struct fault *f, int sys, const char *text, const char *name);
/* An exception without errno. */
int fault_type(struct fault *f, const char *type, const char *text);

/* "No such file or directory": glibc's words, which is what people and programs search for. */
const char *fault_text(int sys);
/* One line on stderr. */
void fault_print(const struct fault *f);
