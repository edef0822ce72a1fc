/* SPDX-License-Identifier: Apache-2.0 */
/* What a command line should not hold, told in one way by every program. */
#pragma once

#include <stddef.h>

/* How many letters have to be changed, added, left out or swapped; 99 for what is far. */
unsigned usage_distance(const char *a, const char *b);

/* An option or word that nobody knows. command: "clawden sandbox list", whose --help says more.
 * Returns 2, the exit status for it. */
int usage_unknown(const char *command, const char *word);
/* The same for a verb. verbs: n structs of `size` bytes that begin with their names; the nearest of
 * them is offered. */
int usage_unknown_verb(const char *command, const char *word, const void *verbs, size_t n,
                       size_t size);
