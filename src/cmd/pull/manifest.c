/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifests and indexes, as strangers write them. A document is one or the other: one that has the
 * fields of both, or whose own type differs from what it was announced as, is refused, because two
 * readers would see two images in it.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "cmd/pull/pull.h"

#define OCI    "application/vnd.oci.image."
#define DOCKER "application/vnd.docker."
#define FLAGS  (JSON_REJECT_DUPLICATES)

static const struct {
    const char *name;
    enum media media;
} types[] = {
    {OCI "manifest.v1+json", MEDIA_MANIFEST},
    {DOCKER "distribution.manifest.v2+json", MEDIA_MANIFEST},
    {OCI "index.v1+json", MEDIA_INDEX},
    {DOCKER "distribution.manifest.list.v2+json", MEDIA_INDEX},
    {OCI "config.v1+json", MEDIA_CONFIG},
    {DOCKER "container.image.v1+json", MEDIA_CONFIG},
    {OCI "layer.v1.tar", MEDIA_LAYER},
    {OCI "layer.v1.tar+gzip", MEDIA_LAYER},
    {OCI "layer.v1.tar+zstd", MEDIA_LAYER},
    {DOCKER "image.rootfs.diff.tar", MEDIA_LAYER},
    {DOCKER "image.rootfs.diff.tar.gzip", MEDIA_LAYER},
    {DOCKER "image.rootfs.diff.tar.zstd", MEDIA_LAYER},
};

enum media media_parse(const char *type)
{
    size_t n = strcspn(type, "; ");

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (strlen(types[i].name) == n && strncmp(type, types[i].name, n) == 0)
            return types[i].media;
    return MEDIA_UNKNOWN;
}

static void json_done(json_t **o)
{
    json_decref(*o);
}
#define autojson cleanup_(json_done) json_t

static json_t *load(const char *text, size_t len, const char *what, struct error *err)
{
    json_error_t e;
    json_t *o = json_loadb(text, len, FLAGS, &e);

    if (json_is_object(o))
        return o;
    json_decref(o);
    (void)error_set(err, ERR_INVALID, "the %s is no JSON object (line %d: %.200s): refused", what,
                    o ? 1 : e.line, o ? "another value" : e.text);
    return NULL;
}

int manifest_kind(const char *text, size_t len, enum media said, enum media *ret, struct error *err)
{
    autojson *o = load(text, len, "manifest", err);
    const char *type;
    bool index, manifest;

    if (!o)
        return -(int)err->code;
    type = json_string_value(json_object_get(o, "mediaType"));
    index = json_object_get(o, "manifests") != NULL;
    manifest = json_object_get(o, "config") || json_object_get(o, "layers") ||
               json_object_get(o, "fsLayers");
    if (json_integer_value(json_object_get(o, "schemaVersion")) != 2)
        return error_set(err, ERR_UNSUPPORTED,
                         "the manifest is not of schema version 2: push the image again with a "
                         "present-day tool");
    if (index == manifest)
        return error_set(err, ERR_INVALID, "the manifest is %s: refused",
                         index ? "an image and an index at once" : "neither image nor index");
    *ret = index ? MEDIA_INDEX : MEDIA_MANIFEST;
    if ((said != MEDIA_UNKNOWN && said != *ret) || (type && media_parse(type) != *ret))
        return error_set(err, ERR_INVALID,
                         "the manifest says it is '%.100s' and is something else: refused",
                         type ? type : "of another type");
    return 0;
}

static int read_descriptor(const json_t *o, enum media want, const char *what,
                           struct descriptor *ret, struct error *err)
{
    const char *type = json_string_value(json_object_get(o, "mediaType"));
    const char *digest = json_string_value(json_object_get(o, "digest"));
    const json_t *size = json_object_get(o, "size");
    const char *name = json_string_value(
        json_object_get(json_object_get(o, "annotations"), "org.opencontainers.image.ref.name"));

    *ret = (struct descriptor){.media = type ? media_parse(type) : MEDIA_UNKNOWN};
    if (!digest || !digest_parse(digest, ret->hex))
        return error_set(err, ERR_INVALID,
                         "the %s has the digest '%.100s': only sha256: and 64 digits of 0-9a-f is "
                         "one; refused",
                         what, digest ? digest : "(none)");
    if (!json_is_integer(size) || json_integer_value(size) < 0 ||
        (unsigned long long)json_integer_value(size) > LIMIT_IMAGE_BLOB)
        return error_set(err, ERR_INVALID, "the %s sha256:%.12s... has no possible size: refused",
                         what, ret->hex);
    if (want != MEDIA_UNKNOWN && ret->media != want)
        return error_set(err, ERR_UNSUPPORTED,
                         "the %s sha256:%.12s... is of type '%.100s', which is not supported", what,
                         ret->hex, type ? type : "(none)");
    ret->size = (uint64_t)json_integer_value(size);
    if (name && strlen(name) < sizeof(ret->ref_name))
        (void)snprintf(ret->ref_name, sizeof(ret->ref_name), "%s", name);
    return 0;
}

int manifest_parse(const char *text, size_t len, struct manifest *ret, struct error *err)
{
    autojson *o = load(text, len, "manifest", err);
    const json_t *layers, *layer;
    size_t i;
    int r;

    if (!o)
        return -(int)err->code;
    sha256_hex(text, len, ret->hex);
    r = read_descriptor(json_object_get(o, "config"), MEDIA_CONFIG, "config", &ret->config, err);
    if (r < 0)
        return r;
    layers = json_object_get(o, "layers");
    ret->n_layers = json_array_size(layers);
    if (ret->n_layers < 1 || ret->n_layers > LIMIT_IMAGE_LAYERS)
        return error_set(err, ERR_INVALID, "the manifest has %zu layers: from 1 to %u are taken",
                         ret->n_layers, LIMIT_IMAGE_LAYERS);
    json_array_foreach((json_t *)layers, i, layer)
    {
        r = read_descriptor(layer, MEDIA_LAYER, "layer", &ret->layers[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- the entry of this machine ---- */

const char *machine_architecture(void)
{
    static const struct {
        const char *kernel, *image;
    } names[] = {{"x86_64", "amd64"},    {"aarch64", "arm64"},   {"i686", "386"},
                 {"ppc64le", "ppc64le"}, {"riscv64", "riscv64"}, {"s390x", "s390x"}};
    static struct utsname u;

    if (uname(&u) == 0)
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
            if (strcmp(u.machine, names[i].kernel) == 0)
                return names[i].image;
    return strncmp(u.machine, "armv", 4) == 0 ? "arm" : u.machine;
}

static bool fits_machine(const json_t *entry)
{
    const json_t *platform = json_object_get(entry, "platform");
    const char *os = json_string_value(json_object_get(platform, "os"));
    const char *arch = json_string_value(json_object_get(platform, "architecture"));

    return !platform ||
           (os && arch && strcmp(os, "linux") == 0 && strcmp(arch, machine_architecture()) == 0);
}

static bool is_annotated(const struct descriptor *d, const char *tag)
{
    const char *colon = strrchr(d->ref_name, ':');

    return tag[0] && strcmp(colon ? colon + 1 : d->ref_name, tag) == 0;
}

int index_choose(const char *text, size_t len, const char *tag, struct descriptor *ret,
                 struct error *err)
{
    autojson *o = load(text, len, "index", err);
    json_t *list, *entry;
    size_t i, n = 0, tagged = 0;

    if (!o)
        return -(int)err->code;
    list = json_object_get(o, "manifests");
    if (json_array_size(list) > LIMIT_IMAGE_MEMBERS)
        return error_set(err, ERR_TOO_LARGE, "the index has %zu entries: at most %u",
                         json_array_size(list), LIMIT_IMAGE_MEMBERS);
    json_array_foreach(list, i, entry)
    {
        struct descriptor d;
        bool named;

        if (read_descriptor(entry, MEDIA_UNKNOWN, "entry of the index", &d, err) < 0)
            return -(int)err->code;
        if (!fits_machine(entry) || (d.media != MEDIA_MANIFEST && d.media != MEDIA_INDEX))
            continue;
        named = tag && is_annotated(&d, tag);
        if (named ? tagged++ == 0 : n == 0 && tagged == 0)
            *ret = d;
        n++;
    }
    if (n == 0)
        return error_set(err, ERR_NOT_FOUND,
                         "the image has nothing for this machine (linux/%s): use one that has",
                         machine_architecture());
    if (tag && n > 1 && tagged != 1)
        return error_set(
            err, ERR_INVALID,
            "the layout holds %zu images: say which with --name NAME:TAG, where TAG is "
            "its annotation org.opencontainers.image.ref.name",
            n);
    return 0;
}

/* ---- docker save ---- */

static int read_saved(const json_t *o, struct saved *ret, struct error *err)
{
    const char *config = json_string_value(json_object_get(o, "Config"));
    const json_t *layers = json_object_get(o, "Layers"), *layer;
    const char *name = json_string_value(json_array_get(json_object_get(o, "RepoTags"), 0));
    size_t i;

    *ret = (struct saved){.n_layers = json_array_size(layers)};
    if (!config || strlen(config) >= sizeof(ret->config) || ret->n_layers < 1 ||
        ret->n_layers > LIMIT_IMAGE_LAYERS)
        return error_set(err, ERR_INVALID,
                         "manifest.json of the archive names no config, or %zu layers (from 1 to "
                         "%u are taken): refused",
                         ret->n_layers, LIMIT_IMAGE_LAYERS);
    (void)snprintf(ret->config, sizeof(ret->config), "%s", config);
    json_array_foreach((json_t *)layers, i, layer)
    {
        const char *file = json_string_value(layer);

        if (!file || strlen(file) >= sizeof(ret->layers[i]))
            return error_set(err, ERR_INVALID,
                             "manifest.json of the archive: layer %zu has no "
                             "possible name: refused",
                             i + 1);
        (void)snprintf(ret->layers[i], sizeof(ret->layers[i]), "%s", file);
    }
    if (name && strlen(name) < sizeof(ret->name))
        (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    return 0;
}

static bool has_name(const json_t *o, const char *name)
{
    const json_t *tag;
    size_t i;

    json_array_foreach(json_object_get(o, "RepoTags"), i, tag)
    {
        if (json_is_string(tag) && strcmp(json_string_value(tag), name) == 0)
            return true;
    }
    return false;
}

int saved_parse(const char *text, size_t len, const char *name, struct saved *ret,
                struct error *err)
{
    json_error_t e;
    autojson *list = json_loadb(text, len, FLAGS, &e);
    size_t n = json_array_size(list);

    if (n < 1)
        return error_set(err, ERR_INVALID,
                         "manifest.json of the archive is no list of images: "
                         "refused");
    if (n == 1)
        return read_saved(json_array_get(list, 0), ret, err);
    for (size_t i = 0; name && i < n; i++)
        if (has_name(json_array_get(list, i), name))
            return read_saved(json_array_get(list, i), ret, err);
    return error_set(err, ERR_INVALID,
                     "the archive holds %zu images: say which with --name, by the "
                     "name it has there",
                     n);
}
