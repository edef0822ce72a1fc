/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How the end of a command becomes docker's messages and exit status. */
struct run_result;

/* `before` is what stands in front of the reason: "OCI runtime exec failed: exec failed: " */
int outcome_status(const struct run_result *res, const char *before, const char *word,
                   const char *workdir);
