/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The folders of a store (see image.h) as its writers see them: opening, locks, garbage, removal.
 * For image.c and clawden-pull only.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"
#include "image/reference.h"

struct error;
struct image;

struct image_store {
    int fd;
    bool read_only;
    char path[LIMIT_PATH]; /* for messages */
};

/* The caller's own, made if missing; and one that need not exist: 0 if it does not, else 1. */
int image_store_open_own(struct image_store *ret, struct error *err);
int image_store_look_own(struct image_store *ret, struct error *err);
int image_store_look_machine(struct image_store *ret, struct error *err);
void image_store_close(struct image_store *s);

/* A lock: shared for imports and pulls, exclusive for removal. The descriptor is the lock. */
int image_store_lock(const struct image_store *s, bool exclusive, struct error *err);

/* One image of this store by id; root_fd is opened and the hold taken if `open_root`. */
int image_store_load(const struct image_store *s, const char *id, bool open_root,
                     struct image **ret, struct error *err);

/* Points a name at an id; the old one, if any, is replaced in one step. */
int image_store_set_name(const struct image_store *s, const char *name, const char *id,
                         struct error *err);

/* A new temporary folder, locked as long as the descriptor lives; its name is put in `name`. */
#define STORE_TEMP_NAME 48
int image_store_make_temp(const struct image_store *s, char name[STORE_TEMP_NAME],
                          struct error *err);
/* Removes the temporary folders whose makers are gone. */
void image_store_sweep(const struct image_store *s);
/* Removes names, roots, blobs and folders that belong to no image; needs the exclusive lock. */
int image_store_collect(const struct image_store *s, struct error *err);
