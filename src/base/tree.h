/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Folders with everything in them. */

/*
 * Removes dirfd/name, whatever it is; links are not followed, mounts not entered. The tree may be
 * as deep as the disk allows: it is taken apart from the top, with two descriptors. 0 or -errno.
 */
int tree_remove(int dirfd, const char *name);
