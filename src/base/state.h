/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Our folders on disk: the one that dies with the machine ($CLAWDEN_RUNTIME_DIR,
 * $XDG_RUNTIME_DIR/clawden, /run/clawden for root) and the one that stays ($CLAWDEN_DATA_DIR,
 * ~/.clawden, /var/lib/clawden is only read). Both are 0700 and the caller's, or they are not used.
 */
#include <stddef.h>

struct error;

/* Open descriptors, to be closed by the caller; made if missing. */
int state_open_runtime(struct error *err);
int state_open_data(struct error *err);
/* Their paths, whether they exist or not. */
int state_runtime_path(char *path, size_t size, struct error *err);
int state_data_path(char *path, size_t size, struct error *err);
