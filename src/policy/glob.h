/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Patterns of OpenClaw's tool policy: `*` is any run of characters, everything else is itself;
 * anchored at both ends; case does not count (ASCII). Linear time in pattern times text. Pure.
 */
#include <stdbool.h>

bool glob_match(const char *pattern, const char *text);
/* The same, but case counts: two keys that differ in it are two sessions. */
bool glob_match_exact(const char *pattern, const char *text);
