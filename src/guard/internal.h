/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of guard/ share. */
struct buf;

/* "target", without what looks like a secret; nothing if there is none. */
void record_target(struct buf *fields, const char *text);
