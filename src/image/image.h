/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Images that were imported or pulled: the reading side, and removal. What unpacks them is the
 * program clawden-pull; nothing here parses what came from outside.
 *
 * Stores: <data>/images of the caller ($CLAWDEN_DATA_DIR or ~/.clawden), then
 * /var/lib/clawden/images, which is only read. A store is
 *
 *     <id>/image.json          our record of one image, complete or not there
 *     names/<encoded name>     a link to the id
 *     roots/<chain id>/        an unpacked root, never changed once it has this name
 *     blobs/sha256/<hex>       layers, configs and manifests as they came
 *     blobs/partial/<hex>      downloads that can be resumed
 *     tmp-<pid>-<random>/      work of a live writer, which holds a lock on it; else garbage
 *     lock                     shared by writers, exclusive for removal
 *
 * A root's links are the image's own and may point anywhere: look paths up with PATH_IN_ROOT.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "image/reference.h"

struct error;

struct image_label {
    char *name, *value;
};

struct image_layer {
    char digest[DIGEST_HEX];  /* of the blob as it came */
    char diff_id[DIGEST_HEX]; /* of its content uncompressed */
    uint64_t size;            /* bytes of the blob */
    bool stored;              /* the blob was kept */
};

/* Lists end with NULL and are never NULL themselves. */
struct image {
    char id[DIGEST_HEX];       /* sha256 of the config */
    char root[DIGEST_HEX];     /* chain id: the folder in roots/ */
    char manifest[DIGEST_HEX]; /* "" if it came without one */
    char *name;                /* one of its names, "" if it has none */
    char **names;              /* all of them, with tag; those with digest last */
    char *user;                /* as the config says it: "", "65534", "node:node" */
    uid_t uid;                 /* what it means in this image; below 65536 */
    gid_t gid;
    char *workdir; /* absolute, normalised */
    char **env, **cmd, **entrypoint;
    struct image_label *labels;
    size_t n_labels;
    char **ports; /* "8080/tcp" */
    char *architecture;
    struct image_layer *layers;
    size_t n_layers;
    uint64_t size;         /* bytes of the files in the root */
    uint64_t entries;      /* names in the root */
    int64_t created_usec;  /* when it was built, 0 if it does not say */
    int64_t imported_usec; /* when it came here */
    bool read_only;        /* it stands in the store of the machine */
    int root_fd;           /* O_PATH of its root; -1 in a list */
    int hold_fd;           /* a shared lock: while it is open the image cannot be removed */
};

/*
 * Finds by name, name:tag, name@sha256:..., id, sha256:id or the first 12 or more digits of an id.
 * ERR_NOT_FOUND says what to do about it.
 */
int image_find(const char *ref, struct image **ret, struct error *err);
void image_free(struct image *image);
DEFINE_AUTOPTR(image)

/* Every image of both stores, newest first, without roots opened. */
int image_list(struct image ***ret, size_t *ret_n, struct error *err);
void image_list_free(struct image **images, size_t n);

/*
 * Takes a name away, or with an id (or `all_names`) the image with all its names. What no image
 * needs any more (roots, blobs, dead temporary folders) goes with the last name; *ret_removed says
 * whether that was it. Denied while a box runs from it.
 */
int image_remove(const char *ref, bool all_names, bool *ret_removed, struct error *err);

/* Reads the text of an image.json; root_fd and hold_fd are -1 and there are no names. */
int image_parse(const char *text, size_t len, struct image **ret, struct error *err);
