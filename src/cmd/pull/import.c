/* SPDX-License-Identifier: Apache-2.0 */
/* import SOURCE: a folder, a tar of one, an OCI layout or a saved image. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "cmd/pull/pull.h"

#define FOLDER      (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define MOST_NESTED 3 /* index.json -> index -> manifest */

/* Where the files of a layout or a saved image are: a folder, or members of a tar. */
struct source {
    int dir;
    struct members *members;
};

static void source_done(struct source *s)
{
    close_fd(&s->dir);
    members_free(s->members);
}

static int source_open(const struct source *s, const char *name, struct error *err)
{
    autoclose int fd = s->members ? members_open(s->members, name)
                                  : path_open(s->dir, name, O_RDONLY | O_NONBLOCK, 0, PATH_BENEATH);
    struct stat st;

    if (fd == -ENOENT)
        return error_set(err, ERR_NOT_FOUND,
                         "the source has no '%.200s': it is incomplete, get it again", name);
    if (fd < 0)
        return error_sys(err, fd, "open '%.200s' of the source", name);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(err, ERR_INVALID, "'%.200s' of the source is no file", name);
    return TAKE_FD(fd);
}

/* A small file of the source; `ret` has been made with its maximum. */
static int source_text(const struct source *s, const char *name, struct buf *ret, struct error *err)
{
    autoclose int fd = source_open(s, name, err);
    char chunk[LIMIT_STREAM_CHUNK];
    ssize_t n;

    if (fd < 0)
        return fd;
    buf_clear(ret);
    while ((n = fd_read_full(fd, chunk, sizeof(chunk))) > 0)
        buf_append(ret, chunk, (size_t)n);
    if (n < 0)
        return error_sys(err, (int)n, "read '%.200s' of the source", name);
    if (ret->failed)
        return error_set(err, ERR_TOO_LARGE,
                         "'%.200s' of the source has more than %zu bytes: "
                         "refused",
                         name, ret->max);
    buf_append(ret, "", 0);
    return 0;
}

static void blob_name(char name[80], const char *hex)
{
    (void)snprintf(name, 80, "blobs/sha256/%s", hex);
}

/* The same for a blob, whose size and digest are known. */
static int source_blob(const struct source *s, const struct descriptor *d, const char *what,
                       struct buf *ret, struct error *err)
{
    char name[80], hex[SHA256_HEX];
    int r;

    blob_name(name, d->hex);
    r = source_text(s, name, ret, err);
    if (r < 0)
        return r;
    sha256_hex(ret->data, ret->len, hex);
    if (ret->len != d->size || strcmp(hex, d->hex) != 0)
        return error_set(err, ERR_INVALID,
                         "the %s sha256:%.12s... has %zu bytes and the digest sha256:%.12s..., not "
                         "what is said of it: the image is refused, get it again from its source",
                         what, d->hex, ret->len, hex);
    return 0;
}

/* Copies an open file into blobs/. */
static int store_blob(struct work *w, int fd, const char *hex, uint64_t size, struct error *err)
{
    cleanup_(blob_writer_done) struct blob_writer b = {.fd = -1};
    char chunk[LIMIT_STREAM_CHUNK];
    ssize_t n;
    int r = blob_writer_init(&b, w, hex, size, err);

    while (r >= 0 && (n = fd_read_full(fd, chunk, sizeof(chunk))) != 0) {
        r = n < 0 ? error_sys(err, (int)n, "read blob sha256:%.12s... of the source", hex)
                  : blob_writer_add(&b, chunk, (size_t)n, err);
        progress_say(&w->progress, "copy", hex, b.got, size);
    }
    return r < 0 ? r : blob_writer_commit(&b, err);
}

static int fetch_from_source(void *ctx, struct work *w, const struct descriptor *d,
                             struct error *err)
{
    autoclose int fd = -1;
    char name[80];

    blob_name(name, d->hex);
    fd = source_open(ctx, name, err);
    return fd < 0 ? fd : store_blob(w, fd, d->hex, d->size, err);
}

/* ---- names ---- */

/* A name that the source brought is taken only if it is free: it must not replace another's. */
static bool may_suggest(struct work *w, const char *name, const char *id)
{
    char file[256], path[300], old[DIGEST_HEX], text[REFERENCE_TEXT];
    struct reference ref;
    struct error err;
    ssize_t n;

    if (!strpbrk(name, ":/") || reference_parse(name, &ref, &err) < 0)
        return false;
    reference_format(&ref, text);
    if (reference_encode(text, file, sizeof(file)) < 0)
        return false;
    (void)snprintf(path, sizeof(path), "names/%s", file);
    n = readlinkat(w->store.fd, path, old, sizeof(old));
    if (n < 0 || (n == 64 && strncmp(old, id, 64) == 0))
        return true;
    log_warn("the source calls the image '%s', a name that another image has here: give --name to "
             "use it",
             text);
    return false;
}

static int name_import(struct work *w, const struct config *c, const struct manifest *m,
                       const char *suggested, struct error *err)
{
    const char *name = w->o->name ? w->o->name : "";
    int r = 0;

    if (!name[0] && suggested[0] && may_suggest(w, suggested, c->id))
        name = suggested;
    if (name[0])
        r = work_name(w, c, m, name, err);
    if (r >= 0)
        work_report(w, c, name);
    return r;
}

/* ---- OCI layouts ---- */

/* Follows index.json to a manifest; *ret_name is what the layout calls it. */
static int find_manifest(const struct source *s, const char *name, struct manifest *ret,
                         struct buf *text, char ret_name[REFERENCE_TEXT], struct error *err)
{
    struct reference ref = {.tag = ""};
    struct descriptor d = {.media = MEDIA_INDEX};
    const char *tag = ref.tag;
    int r;

    if (name && reference_parse(name, &ref, err) < 0)
        return -(int)err->code;
    r = source_text(s, "index.json", text, err);
    for (int i = 0; r >= 0 && i < MOST_NESTED; i++) {
        enum media kind;

        r = manifest_kind(text->data, text->len, d.media, &kind, err);
        if (r >= 0 && kind == MEDIA_MANIFEST)
            return manifest_parse(text->data, text->len, ret, err);
        if (r >= 0)
            r = index_choose(text->data, text->len, tag, &d, err);
        if (r >= 0 && tag)
            memcpy(ret_name, d.ref_name, sizeof(d.ref_name));
        tag = NULL;
        if (r >= 0)
            r = source_blob(s, &d, d.media == MEDIA_INDEX ? "index" : "manifest", text, err);
    }
    return r < 0 ? r : error_set(err, ERR_INVALID, "the layout nests its indexes: refused");
}

static int import_layout(struct work *w, struct source *s, struct error *err)
{
    cleanup_(config_done) struct config c = {0};
    static struct manifest m;
    char suggested[REFERENCE_TEXT] = "";
    autobuf manifest, config;
    int r;

    buf_init(&manifest, LIMIT_IMAGE_MANIFEST);
    buf_init(&config, LIMIT_IMAGE_CONFIG);
    r = find_manifest(s, w->o->name, &m, &manifest, suggested, err);
    if (r >= 0)
        r = source_blob(s, &m.config, "config", &config, err);
    if (r >= 0)
        r = config_parse(config.data, config.len, &c, err);
    if (r >= 0)
        r = blob_put(w, m.hex, manifest.data, manifest.len, err);
    if (r >= 0)
        r = blob_put(w, c.id, config.data, config.len, err);
    if (r >= 0)
        r = assemble(w, &m, &c, fetch_from_source, s, err);
    return r < 0 ? r : name_import(w, &c, &m, suggested, err);
}

/* ---- docker save ---- */

/* The digest of a layer's file, which manifest.json does not say; then it is like any other. */
static int describe_layer(const struct source *s, const char *name, struct work *w,
                          struct descriptor *ret, struct error *err)
{
    autoclose int fd = source_open(s, name, err);
    char chunk[LIMIT_STREAM_CHUNK];
    struct sha256 hash;
    ssize_t n;

    if (fd < 0)
        return fd;
    *ret = (struct descriptor){.media = MEDIA_LAYER};
    sha256_init(&hash);
    while ((n = fd_read_full(fd, chunk, sizeof(chunk))) > 0) {
        sha256_update(&hash, chunk, (size_t)n);
        ret->size += (uint64_t)n;
    }
    if (n < 0)
        return error_sys(err, (int)n, "read '%.200s' of the archive", name);
    sha256_finish_hex(&hash, ret->hex);
    if (blob_have(w, ret->hex, ret->size))
        return 0;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return error_sys(err, -errno, "read '%.200s' of the archive", name);
    return store_blob(w, fd, ret->hex, ret->size, err);
}

/* "<hex>.json" and "blobs/sha256/<hex>" promise a digest: it must be kept. */
static int check_config_name(const char *name, const char *id, struct error *err)
{
    const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;

    if (strlen(base) >= 64 && digest_is_hex(base, 64) && strncmp(base, id, 64) != 0)
        return error_set(err, ERR_INVALID,
                         "the config '%.100s' of the archive has the digest sha256:%.12s...: the "
                         "image is refused, get it again from its source",
                         name, id);
    return 0;
}

static int import_saved(struct work *w, struct source *s, struct error *err)
{
    cleanup_(config_done) struct config c = {0};
    static struct manifest m; /* without a digest: there is no such document */
    static struct saved saved;
    autobuf text, config;
    int r;

    buf_init(&text, LIMIT_IMAGE_MANIFEST);
    buf_init(&config, LIMIT_IMAGE_CONFIG);
    r = source_text(s, "manifest.json", &text, err);
    if (r >= 0)
        r = saved_parse(text.data, text.len, w->o->name, &saved, err);
    if (r >= 0)
        r = source_text(s, saved.config, &config, err);
    if (r >= 0)
        r = config_parse(config.data, config.len, &c, err);
    if (r >= 0)
        r = check_config_name(saved.config, c.id, err);
    m.n_layers = saved.n_layers;
    for (size_t i = 0; r >= 0 && i < saved.n_layers; i++)
        r = describe_layer(s, saved.layers[i], w, &m.layers[i], err);
    if (r >= 0)
        r = blob_put(w, c.id, config.data, config.len, err);
    if (r >= 0)
        r = assemble(w, &m, &c, fetch_from_source, s, err);
    return r < 0 ? r : name_import(w, &c, &m, saved.name, err);
}

/* ---- root file systems ---- */

/* A root without a config gets one of ours, so that it is an image like all others. */
static int finish_plain(struct work *w, int root, const char *hex, uint64_t size, struct error *err)
{
    cleanup_(config_done) struct config c = {0};
    static struct manifest m;
    autobuf text;
    int r;

    buf_init(&text, LIMIT_IMAGE_CONFIG);
    m.n_layers = 1;
    memcpy(m.layers[0].hex, hex, DIGEST_HEX);
    m.layers[0].size = size;
    r = config_synthesize(hex, w->o->config, &text, err);
    if (r >= 0)
        r = config_parse(text.data, text.len, &c, err);
    if (r >= 0)
        r = blob_put(w, c.id, text.data, text.len, err);
    if (r >= 0)
        r = assemble_finish(w, &m, &c, hex, root, err);
    return r < 0 ? r : name_import(w, &c, &m, "", err);
}

static int import_root(struct work *w, int fd, bool is_folder, struct error *err)
{
    autoclose int root = -1;
    struct layer_result got;
    struct stat st;
    int r;

    if (mkdirat(w->temp, "root", 0755) < 0)
        return error_sys(err, -errno, "make a root in '%s'", w->store.path);
    root = openat(w->temp, "root", FOLDER);
    if (root < 0 || fstat(fd, &st) < 0)
        return error_sys(err, -errno, "open the new root in '%s'", w->store.path);
    if (is_folder)
        r = copy_folder(w, fd, root, got.diff_id, err);
    else
        r = layer_unpack(w, fd, root, "the tar", true, &got, err);
    if (r < 0)
        return r;
    if (!is_folder && w->entries == 0)
        return error_set(err, ERR_INVALID, "the tar holds nothing: no image was made");
    return finish_plain(w, root, got.diff_id, is_folder ? 0 : (uint64_t)st.st_size, err);
}

/* ---- the verb ---- */

/* What brings a config of its own keeps it: the digests are of it. */
static int refuse_config(const struct work *w, struct error *err)
{
    return w->o->config ? error_set(err, ERR_INVALID,
                                    "--config '%.200s': the source has a config of its own; "
                                    "leave the option out",
                                    w->o->config)
                        : 0;
}

static int import_tar(struct work *w, int fd, struct error *err)
{
    cleanup_(source_done) struct source s = {.dir = -1};
    enum tar_kind kind;
    int r = layer_look(fd, &kind, err);

    if (r < 0 || kind == TAR_ROOT)
        return r < 0 ? r : import_root(w, fd, false, err);
    r = refuse_config(w, err);
    if (r >= 0)
        r = members_read(w, fd, &s.members, err);
    if (r < 0)
        return r;
    return kind == TAR_OCI ? import_layout(w, &s, err) : import_saved(w, &s, err);
}

static int import_folder(struct work *w, int fd, struct error *err)
{
    cleanup_(source_done) struct source s = {.dir = -1};
    struct stat st;

    if (fstatat(fd, "oci-layout", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return import_root(w, fd, true, err);
    if (refuse_config(w, err) < 0)
        return -(int)err->code;
    s.dir = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return s.dir < 0 ? error_sys(err, -errno, "open the layout") : import_layout(w, &s, err);
}

int import(const struct options *o, struct error *err)
{
    cleanup_(work_end) struct work w = {.store = {.fd = -1}, .lock = -1, .temp = -1};
    autoclose int fd = open(o->what, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0)
        return error_sys(err, -errno, "open '%s'", o->what);
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return error_set(err, ERR_INVALID,
                         "'%s' is neither a folder nor a file: give a root file "
                         "system, a tar of one, an OCI layout or a saved image",
                         o->what);
    r = work_begin(&w, o, err);
    if (r >= 0)
        r = S_ISDIR(st.st_mode) ? import_folder(&w, fd, err) : import_tar(&w, fd, err);
    w.drop_blobs = r < 0;
    return r < 0 ? error_wrap(err, "import '%.200s'", o->what) : 0;
}
