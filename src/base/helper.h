/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Starting a program of ours that goes on by itself: nobody's child, without a terminal. */
#include <stdbool.h>
#include <stddef.h>

/* The program `name` beside the one that runs; false if there is none. */
bool helper_find(const char *name, char *path, size_t size);

/*
 * Starts it, twice forked, with nothing open and no signal blocked. Under a user's systemd it
 * becomes a unit of its own, with a cgroup of its own, whose end is not the end of what it has
 * started: else it would go with whatever service we belong to. What it is told in its environment
 * are the variables of `keep` (ends with NULL) alone then.
 */
void helper_start(const char *path, const char *const *keep);

/* As many descriptors as the user may have, up to `most`: of a program that serves many. */
void helper_raise_descriptors(unsigned long most);
