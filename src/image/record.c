/* SPDX-License-Identifier: Apache-2.0 */
/* Reading image.json. We wrote it, but every value is checked as if we had not. */
#include "image/image.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/jtext.h"
#include "base/limits.h"

static void free_list(char **list)
{
    if (!list)
        return;
    for (char **p = list; *p; p++)
        free(*p);
    free(list);
}

void image_free(struct image *image)
{
    if (!image)
        return;
    close_fd(&image->root_fd);
    close_fd(&image->hold_fd);
    free(image->name);
    free_list(image->names);
    free(image->user);
    free(image->workdir);
    free_list(image->env);
    free_list(image->cmd);
    free_list(image->entrypoint);
    free_list(image->ports);
    for (size_t i = 0; i < image->n_labels; i++) {
        free(image->labels[i].name);
        free(image->labels[i].value);
    }
    free(image->labels);
    free(image->architecture);
    free(image->layers);
    free(image);
}

/* All the readers below say only whether the value was as it must be. */
static bool read_text(const struct jtext *v, char **ret)
{
    const char *s = jtext_string(v);

    *ret = s ? strdup(s) : NULL;
    return *ret != NULL;
}

static bool read_hex(const struct jtext *v, char hex[DIGEST_HEX])
{
    const char *s = jtext_string(v);

    return s && digest_parse(s, hex);
}

static bool read_list(const struct jtext *v, char ***ret)
{
    size_t n = jtext_count(v), i = 0;

    if (!v || v->type != JTEXT_ARRAY || n > LIMIT_IMAGE_WORDS)
        return false;
    *ret = calloc(n + 1, sizeof(**ret));
    if (!*ret)
        return false;
    for (const struct jtext *e = jtext_first(v); e; e = jtext_next(e))
        if (!read_text(e, &(*ret)[i++]))
            return false;
    return true;
}

static bool read_number(const struct jtext *v, int64_t least, int64_t most, int64_t *ret)
{
    return jtext_int(v, ret) && *ret >= least && *ret <= most;
}

static bool read_labels(const struct jtext *v, struct image *image)
{
    size_t n = jtext_count(v);

    if (!v || v->type != JTEXT_OBJECT || n > LIMIT_IMAGE_WORDS)
        return false;
    image->labels = calloc(n + 1, sizeof(*image->labels));
    if (!image->labels)
        return false;
    for (const struct jtext *e = jtext_first(v); e; e = jtext_next(e)) {
        struct image_label *l = &image->labels[image->n_labels++];

        l->name = strdup(jtext_key(e));
        if (!l->name || !read_text(e, &l->value))
            return false;
    }
    return true;
}

static bool read_layers(const struct jtext *v, struct image *image)
{
    size_t n = jtext_count(v);

    if (!v || v->type != JTEXT_ARRAY || n < 1 || n > LIMIT_IMAGE_LAYERS)
        return false;
    image->layers = calloc(n, sizeof(*image->layers));
    if (!image->layers)
        return false;
    for (const struct jtext *e = jtext_first(v); e; e = jtext_next(e)) {
        struct image_layer *l = &image->layers[image->n_layers++];
        int64_t size;

        if (!read_hex(jtext_get(e, "digest"), l->digest) ||
            !read_hex(jtext_get(e, "diff_id"), l->diff_id) ||
            !read_number(jtext_get(e, "size"), 0, INT64_MAX, &size))
            return false;
        l->size = (uint64_t)size;
        l->stored = jtext_is_true(jtext_get(e, "stored"));
    }
    return true;
}

static bool read_user(const struct jtext *o, struct image *image)
{
    int64_t uid, gid;

    if (!read_text(jtext_get(o, "user"), &image->user) ||
        !read_number(jtext_get(o, "uid"), 0, 65535, &uid) ||
        !read_number(jtext_get(o, "gid"), 0, 65535, &gid))
        return false;
    image->uid = (uid_t)uid;
    image->gid = (gid_t)gid;
    return true;
}

static bool read_numbers(const struct jtext *o, struct image *image)
{
    int64_t size, entries;

    if (!read_number(jtext_get(o, "size"), 0, INT64_MAX, &size) ||
        !read_number(jtext_get(o, "entries"), 0, INT64_MAX, &entries) ||
        !read_number(jtext_get(o, "created_usec"), 0, INT64_MAX, &image->created_usec) ||
        !read_number(jtext_get(o, "imported_usec"), 0, INT64_MAX, &image->imported_usec))
        return false;
    image->size = (uint64_t)size;
    image->entries = (uint64_t)entries;
    return true;
}

static bool read_env(const struct jtext *o, struct image *image)
{
    if (!read_list(jtext_get(o, "env"), &image->env))
        return false;
    for (char **e = image->env; *e; e++)
        if (**e == '=' || !strchr(*e, '='))
            return false;
    return true;
}

static bool read_workdir(const struct jtext *o, struct image *image)
{
    return read_text(jtext_get(o, "workdir"), &image->workdir) && image->workdir[0] == '/';
}

/* The first key that is missing or is not what it should be; NULL if all is well. */
static const char *read_image(const struct jtext *o, struct image *image)
{
    const struct jtext *manifest = jtext_get(o, "manifest");
    int64_t version;

    if (!read_number(jtext_get(o, "version"), 1, 1, &version))
        return "version";
    if (!read_hex(jtext_get(o, "id"), image->id))
        return "id";
    if (!read_hex(jtext_get(o, "root"), image->root))
        return "root";
    if (manifest && !read_hex(manifest, image->manifest))
        return "manifest";
    if (!read_user(o, image))
        return "user";
    if (!read_workdir(o, image))
        return "workdir";
    if (!read_env(o, image))
        return "env";
    if (!read_list(jtext_get(o, "cmd"), &image->cmd))
        return "cmd";
    if (!read_list(jtext_get(o, "entrypoint"), &image->entrypoint))
        return "entrypoint";
    if (!read_list(jtext_get(o, "ports"), &image->ports))
        return "ports";
    if (!read_text(jtext_get(o, "architecture"), &image->architecture))
        return "architecture";
    if (!read_labels(jtext_get(o, "labels"), image))
        return "labels";
    if (!read_layers(jtext_get(o, "layers"), image))
        return "layers";
    if (!read_numbers(o, image))
        return "size, entries or times";
    return NULL;
}

int image_parse(const char *text, size_t len, struct image **ret, struct error *err)
{
    autoptr(jtext_doc) doc = NULL;
    autoptr(image) image = calloc(1, sizeof(*image));
    const char *bad;

    if (!image)
        return error_set(err, ERR_TOO_LARGE, "read image.json: out of memory");
    image->root_fd = image->hold_fd = -1;
    if (jtext_parse(text, len, &doc, err) < 0)
        return error_wrap(err, "read image.json");
    bad = read_image(jtext_root(doc), image);
    if (bad)
        return error_set(err, ERR_INVALID, "image.json is damaged at '%s': import the image again",
                         bad);
    image->name = strdup("");
    image->names = calloc(1, sizeof(*image->names));
    if (!image->name || !image->names)
        return error_set(err, ERR_TOO_LARGE, "read image.json: out of memory");
    *ret = TAKE_PTR(image);
    return 0;
}
