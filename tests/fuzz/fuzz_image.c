/* SPDX-License-Identifier: Apache-2.0 */
/* image.json: whatever stands in it, what is taken keeps what the header promises. */
#include "image/image.h"

#include "base/error.h"
#include "tests/fuzz/fuzz.h"

static bool is_hex(const char *s)
{
    return strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

static void check_image(const struct image *i)
{
    PROPERTY(is_hex(i->id) && is_hex(i->root), "id '%s' root '%s'", i->id, i->root);
    PROPERTY(!i->manifest[0] || is_hex(i->manifest), "manifest '%s'", i->manifest);
    PROPERTY(i->uid <= 65535 && i->gid <= 65535, "user %u:%u", i->uid, i->gid);
    PROPERTY(i->workdir[0] == '/', "workdir '%s'", i->workdir);
    PROPERTY(i->user && i->architecture && i->name && i->names, "a text is missing");
    PROPERTY(i->cmd && i->entrypoint && i->ports && i->env, "a list is missing");
    for (char **e = i->env; *e; e++)
        PROPERTY(strchr(*e, '=') > *e, "env '%s'", *e);
    PROPERTY(i->n_layers >= 1 && i->n_layers <= LIMIT_IMAGE_LAYERS, "%zu layers", i->n_layers);
    for (size_t k = 0; k < i->n_layers; k++)
        PROPERTY(is_hex(i->layers[k].digest) && is_hex(i->layers[k].diff_id), "layer %zu", k);
    for (size_t k = 0; k < i->n_labels; k++)
        PROPERTY(i->labels[k].name && i->labels[k].value, "label %zu", k);
    PROPERTY(i->root_fd == -1 && i->hold_fd == -1, "a descriptor");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image *image = NULL;
    struct error err = {.code = ERR_NONE};

    if (image_parse((const char *)data, size, &image, &err) == 0)
        check_image(image);
    else
        PROPERTY(!image && err.code != ERR_NONE && err.msg[0], "failed without a word");
    image_free(image);
    return 0;
}
