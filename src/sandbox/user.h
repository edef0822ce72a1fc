/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* "1000", "1000:1000", "node", "node:staff": which ids that means in a box. */
#include <sys/types.h>

struct error;

struct box_user {
    uid_t uid;
    gid_t gid;
    char home[256];
};

/*
 * root_fd is the image's root, or -1 for the host's system folders, where only root, sandbox and
 * nobody have names. NULL or "" is user 0. Names are looked up in the image's own /etc.
 */
int user_resolve(const char *text, int root_fd, struct box_user *ret, struct error *err);
