/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From layers to an image of the store. The order is what makes a kill at any moment harmless: the
 * root is built in the temporary folder, gets its name in roots/ in one step, is put on the disk,
 * then the record appears in one step, then the name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/tree.h"
#include "base/units.h"
#include "cmd/pull/pull.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

int work_begin(struct work *w, const struct options *o, struct error *err)
{
    int r;

    *w = (struct work){.o = o, .store = {.fd = -1}, .lock = -1, .temp = -1};
    progress_init(&w->progress, o->progress);
    r = image_store_open_own(&w->store, err);
    if (r >= 0)
        r = confine(w->store.fd, err);
    if (r < 0)
        return r;
    w->lock = image_store_lock(&w->store, false, err);
    if (w->lock < 0)
        return w->lock;
    image_store_sweep(&w->store);
    w->temp = image_store_make_temp(&w->store, w->temp_name, err);
    return w->temp < 0 ? w->temp : 0;
}

void work_end(struct work *w)
{
    progress_end(&w->progress);
    if (w->temp >= 0)
        (void)tree_remove(w->store.fd, w->temp_name);
    /* Others may rely on a blob that is there: it is dropped only if nobody else works here. */
    if (w->drop_blobs && w->lock >= 0 && flock(w->lock, LOCK_EX | LOCK_NB) == 0)
        blob_drop_all(w);
    free(w->blobs);
    w->blobs = NULL;
    close_fd(&w->temp);
    close_fd(&w->lock);
    image_store_close(&w->store);
}

/* ---- roots ---- */

/* OCI's chain id: what a root is, by the layers that made it. */
static void chain_add(char chain[DIGEST_HEX], const char *diff_id)
{
    char text[2 * (7 + DIGEST_HEX)];

    if (!chain[0]) {
        memcpy(chain, diff_id, DIGEST_HEX);
        return;
    }
    (void)snprintf(text, sizeof(text), "sha256:%s sha256:%s", chain, diff_id);
    sha256_hex(text, strlen(text), chain);
}

static int open_root(const struct work *w, const char *chain)
{
    char path[80];

    (void)snprintf(path, sizeof(path), "roots/%s", chain);
    return openat(w->store.fd, path, FOLDER);
}

static int make_root(struct work *w, struct error *err)
{
    int fd;

    if (mkdirat(w->temp, "root", 0755) < 0)
        return error_sys(err, -errno, "make a root in '%s'", w->store.path);
    fd = openat(w->temp, "root", FOLDER);
    return fd < 0 ? error_sys(err, -errno, "open the new root in '%s'", w->store.path) : fd;
}

static int add_layer(struct work *w, int root, const struct descriptor *d, const char *diff_id,
                     struct error *err)
{
    autoclose int fd = blob_open(w, d->hex, err);
    struct layer_result got;
    char what[40];
    int r;

    if (fd < 0)
        return fd;
    (void)snprintf(what, sizeof(what), "layer sha256:%.12s", d->hex);
    r = layer_unpack(w, fd, root, what, false, &got, err);
    if (r < 0)
        return r;
    if (strcmp(got.diff_id, diff_id) != 0)
        return error_set(
            err, ERR_INVALID,
            "%s unpacks to sha256:%.12s..., the config says sha256:%.12s...: the image "
            "is refused, get it again from its source",
            what, got.diff_id, diff_id);
    return 0;
}

/* Builds the root on the longest chain that is there already. */
static int build_root(struct work *w, const struct manifest *m, const struct config *c,
                      fetch_layer fetch, void *ctx, char chain[DIGEST_HEX], struct error *err)
{
    autoclose int root = -1, below = -1;
    size_t have = 0;
    int r = 0;

    for (size_t i = 0; i < c->n_diff_ids; i++) {
        int fd;

        chain_add(chain, c->diff_ids[i]);
        fd = open_root(w, chain);
        if (fd >= 0) {
            close_fd(&below);
            below = fd;
            have = i + 1;
        }
    }
    if (have == c->n_diff_ids)
        return TAKE_FD(below);
    root = make_root(w, err);
    if (root < 0)
        return root;
    if (below >= 0)
        r = clone_root(below, root, err);
    for (size_t i = have; r >= 0 && i < c->n_diff_ids; i++) {
        if (!blob_have(w, m->layers[i].hex, m->layers[i].size))
            r = fetch(ctx, w, &m->layers[i], err);
        if (r >= 0)
            r = add_layer(w, root, &m->layers[i], c->diff_ids[i], err);
    }
    return r < 0 ? r : TAKE_FD(root);
}

int assemble(struct work *w, const struct manifest *m, struct config *c, fetch_layer fetch,
             void *ctx, struct error *err)
{
    char chain[DIGEST_HEX] = "";
    autoclose int root = -1;

    if (m->n_layers != c->n_diff_ids)
        return error_set(err, ERR_INVALID,
                         "the manifest has %zu layers and the config %zu: the image is refused",
                         m->n_layers, c->n_diff_ids);
    root = build_root(w, m, c, fetch, ctx, chain, err);
    return root < 0 ? root : assemble_finish(w, m, c, chain, root, err);
}

/* ---- the record ---- */

static int commit_root(struct work *w, const char *chain, struct error *err)
{
    char path[80];

    (void)snprintf(path, sizeof(path), "roots/%s", chain);
    /* Another import of the same may have been first: its root is as good. */
    if (renameat(w->temp, "root", w->store.fd, path) < 0 && errno != ENOENT && errno != ENOTEMPTY &&
        errno != EEXIST)
        return error_sys(err, -errno, "name the root '%s/%s'", w->store.path, path);
    if (syncfs(w->store.fd) < 0)
        return error_sys(err, -errno,
                         "put the root on the disk of '%s' (free space there, or set "
                         "CLAWDEN_DATA_DIR)",
                         w->store.path);
    return 0;
}

static int write_file(int dirfd, const char *name, const struct buf *text)
{
    autoclose int fd =
        openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = fd < 0 ? -errno : fd_write_full(fd, text->data, text->len);

    return r < 0 ? r : fsync(fd) < 0 ? -errno : 0;
}

/* The folder with the record appears whole; if the image is there already, the record is renewed.
 */
static int commit_record(struct work *w, const char *id, const struct buf *text)
{
    char path[80];
    int r;

    if (mkdirat(w->temp, "record", 0700) < 0)
        return -errno;
    r = write_file(w->temp, "record/image.json", text);
    if (r < 0)
        return r;
    if (renameat(w->temp, "record", w->store.fd, id) == 0)
        return fsync(w->store.fd) < 0 ? -errno : 0;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return -errno;
    (void)snprintf(path, sizeof(path), "%s/image.json", id);
    if (renameat(w->temp, "record/image.json", w->store.fd, path) < 0)
        return -errno;
    return fsync(w->store.fd) < 0 ? -errno : 0;
}

int assemble_finish(struct work *w, const struct manifest *m, struct config *c, const char *chain,
                    int root, struct error *err)
{
    bool stored[LIMIT_IMAGE_LAYERS];
    struct measure size;
    autobuf text;
    int r = config_resolve(c, root, err);

    buf_init(&text, LIMIT_IMAGE_RECORD);
    if (r >= 0)
        r = measure_root(root, &size, err);
    if (r >= 0)
        r = commit_root(w, chain, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < c->n_diff_ids; i++) {
        char path[96];

        (void)snprintf(path, sizeof(path), "blobs/sha256/%s", m->layers[i].hex);
        if (w->o->drop_layers)
            (void)unlinkat(w->store.fd, path, 0);
        stored[i] = faccessat(w->store.fd, path, F_OK, 0) == 0;
    }
    config_record(c, m, chain, &size, stored, &text);
    r = text.failed ? -EFBIG : commit_record(w, c->id, &text);
    return r < 0
               ? error_sys(err, r, "write the record of image %.12s in '%s'", c->id, w->store.path)
               : 0;
}

/* ---- its name ---- */

int work_name(struct work *w, const struct config *c, const struct manifest *m, const char *name,
              struct error *err)
{
    struct reference ref;
    char text[REFERENCE_TEXT];
    int r = reference_parse(name, &ref, err);

    if (r < 0)
        return r;
    reference_format(&ref, text);
    r = image_store_set_name(&w->store, text, c->id, err);
    if (r < 0 || !m->hex[0])
        return r;
    memcpy(ref.digest, m->hex, DIGEST_HEX);
    reference_format(&ref, text);
    return text[0] ? image_store_set_name(&w->store, text, c->id, err) : 0;
}

static void say_dropped(const struct dropped *d)
{
    if (d->specials || d->set_ids || d->xattrs || d->mounts)
        log_info("left out: %llu devices, pipes and sockets, %llu set-id bits, %llu extended "
                 "attributes, %llu other file systems",
                 (unsigned long long)d->specials, (unsigned long long)d->set_ids,
                 (unsigned long long)d->xattrs, (unsigned long long)d->mounts);
    if (d->owners && geteuid() == 0)
        log_info("%llu entries belong to ids above 65535: they are nobody's (65534) here",
                 (unsigned long long)d->owners);
}

void work_report(const struct work *w, const struct config *c, const char *name)
{
    autobuf b;

    if (!w->o->json) {
        say_dropped(&w->dropped);
        printf("%s\n", c->id);
        return;
    }
    buf_init(&b, LIMIT_JSON_RESULT);
    buf_puts(&b, "{");
    buf_json_str(&b, "id", c->id);
    buf_json_str(&b, "name", name);
    buf_json_num(&b, "devices_dropped", (long long)w->dropped.specials);
    buf_json_num(&b, "set_ids_dropped", (long long)w->dropped.set_ids);
    buf_json_num(&b, "xattrs_dropped", (long long)w->dropped.xattrs);
    buf_json_num(&b, "owners_changed", (long long)w->dropped.owners);
    buf_json_num(&b, "file_systems_skipped", (long long)w->dropped.mounts);
    buf_puts(&b, "}");
    printf("%s\n", b.data);
}
