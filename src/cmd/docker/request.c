/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/docker/request.h"
#include "cmd/docker/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cmd/docker/docker.h"
#include "config/config.h"
#include "image/image.h"
#include "sandbox/sandbox.h"

#define DEFAULT_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* "name:latest", as docker writes a name without a tag. */
static const char *with_tag(const char *ref, char *text, size_t size)
{
    const char *last = strrchr(ref, '/');

    (void)snprintf(text, size, "%s%s", ref, strpbrk(last ? last : ref, ":@") ? "" : ":latest");
    return text;
}

static bool find_image(const struct request *q, struct image **ret, bool *ret_host)
{
    char name[512];
    struct error err;

    if (images_find(q->record->image, ret, ret_host, &err) >= 0)
        return true;
    if (err.code != ERR_NOT_FOUND) {
        (void)say_refused("%s", err.msg);
        return false;
    }
    (void)with_tag(q->record->image, name, sizeof(name));
    if (q->pull && strcmp(q->pull, "never") == 0) {
        (void)say_refused("No such image: %s", name);
        return false;
    }
    (void)fprintf(stderr, "Unable to find image '%s' locally\n", name);
    (void)say_refused("No such image: %s", name);
    say_note("nothing is pulled by itself: 'docker pull %s' does it", q->record->image);
    return false;
}

/* Docker's rule: an entrypoint of one's own leaves the image's cmd out as well. */
static bool make_command(struct request *q, const struct image *image)
{
    struct box_record *r = q->record;

    if (q->entrypoint && q->entrypoint[0])
        strings_add(&r->command, q->entrypoint);
    for (size_t i = 0; !q->entrypoint && image && image->entrypoint[i]; i++)
        strings_add(&r->command, image->entrypoint[i]);
    while (r->command && r->command[r->n_entrypoint])
        r->n_entrypoint++;
    for (size_t i = 0; q->command[i]; i++)
        strings_add(&r->command, q->command[i]);
    for (size_t i = 0; !q->entrypoint && !q->command[0] && image && image->cmd[i]; i++)
        strings_add(&r->command, image->cmd[i]);
    if (!r->command)
        (void)say_refused("no command specified");
    return r->command != NULL;
}

static int merge_env(struct env *all, const struct request *q, const struct image *image,
                     struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < q->files.n && r >= 0; i++)
        r = env_set(all, q->files.list[i], err);
    for (size_t i = 0; i < q->given.n && r >= 0; i++)
        r = env_set(all, q->given.list[i], err);
    for (size_t i = 0; image && image->env[i] && r >= 0; i++)
        if (strchr(image->env[i], '=')) /* NAME alone would be looked up here */
            r = env_default(all, image->env[i], err);
    return r < 0 ? r : env_default(all, DEFAULT_PATH, err);
}

static bool make_env(struct request *q, const struct image *image)
{
    struct env all = {0};
    struct error err;

    if (merge_env(&all, q, image, &err) < 0) {
        env_done(&all);
        (void)say_refused("%s", err.msg);
        return false;
    }
    q->record->env = TAKE_PTR(all.list); /* the same shape: strings and a NULL */
    return true;
}

/* The image's labels are the box's, where none of the same name was given. */
static void add_labels(struct box_record *r, const struct image *image)
{
    size_t given = r->n_labels;

    if (!image->n_labels)
        return;
    r->labels = realloc(r->labels, (given + image->n_labels) * sizeof(*r->labels));
    if (!r->labels)
        abort();
    for (size_t i = 0; i < image->n_labels; i++) {
        struct box_label *to = &r->labels[r->n_labels];
        size_t k = 0;

        while (k < given && strcmp(r->labels[k].name, image->labels[i].name) != 0)
            k++;
        if (k < given)
            continue;
        *to = (struct box_label){0};
        strings_set(&to->name, image->labels[i].name);
        strings_set(&to->value, image->labels[i].value);
        r->n_labels++;
    }
}

static bool check_memory(const struct request *q)
{
    const struct box_record *r = q->record;

    if (!q->has_swap || q->swap_unlimited || r->memory_swap == 0)
        return true;
    if (!q->has_memory || r->limits.memory_bytes == 0) {
        (void)say_refused(
            "You should always set the Memory limit when using Memoryswap limit, see usage");
        return false;
    }
    if (r->memory_swap < (int64_t)r->limits.memory_bytes) {
        (void)say_refused("Minimum memoryswap limit should be larger than memory limit, see usage");
        return false;
    }
    return true;
}

static void add_tmp(struct request *q, uint64_t bytes)
{
    struct box_record *r = q->record;

    r->limits.tmp_bytes = bytes;
    for (size_t i = 0; i < r->n_mounts; i++)
        if (r->mounts[i].kind == BOX_TMPFS && strcmp(r->mounts[i].target, "/tmp") == 0 &&
            r->mounts[i].bytes == 0)
            r->mounts[i].bytes = bytes;
    if (q->has_tmp)
        return;
    r->mounts = realloc(r->mounts, (r->n_mounts + 1) * sizeof(*r->mounts));
    if (!r->mounts)
        abort();
    r->mounts[r->n_mounts] = (struct box_mount){.kind = BOX_TMPFS, .bytes = bytes, .implied = true};
    strings_set(&r->mounts[r->n_mounts].target, "/tmp");
    r->n_mounts++;
}

static void note_differences(struct request *q)
{
    const struct box_record *r = q->record;
    char text[512];

    if (r->n_ports && !sandbox_has_network(r))
        strings_add(&q->notes, "--publish is recorded; with --network none nothing is forwarded");
    for (size_t i = 0; i < r->n_ports && sandbox_has_network(r); i++) {
        const struct box_port *p = &r->ports[i];

        if (strcmp(p->protocol, "tcp") == 0 && p->host_ip && p->host_ip[0])
            continue;
        (void)snprintf(text, sizeof(text), "--publish %u/%s: %s", p->port, p->protocol,
                       strcmp(p->protocol, "tcp") == 0 ? "on 127.0.0.1 alone, not on every address"
                                                       : "recorded; only TCP is forwarded");
        strings_add(&q->notes, text);
    }
    if (r->dns)
        strings_add(&q->notes, "--dns is recorded; names are asked of the host's name servers");
}

/* What users keep asking for and docker does not give: limits for a box that names none. */
static bool set_limits(struct request *q)
{
    struct box_limits *l = &q->record->limits;
    uint64_t memory, pids, tmp;
    struct error err;

    if (config_number(CONFIG_BOX_MEMORY, &memory, &err) < 0 ||
        config_number(CONFIG_BOX_PIDS, &pids, &err) < 0 ||
        config_number(CONFIG_BOX_TMP, &tmp, &err) < 0) {
        (void)say_refused("%s", err.msg);
        return false;
    }
    if (!q->has_memory)
        l->memory_bytes = memory;
    if (!q->has_pids)
        l->pids = (uint32_t)pids;
    add_tmp(q, tmp);
    return true;
}

bool request_finish(struct request *q)
{
    autoptr(image) image = NULL;
    struct box_record *r = q->record;
    bool host = false;

    if (!check_memory(q) || !find_image(q, &image, &host) || !make_command(q, image) ||
        !make_env(q, image))
        return false;
    if (host) {
        char text[512];

        (void)snprintf(text, sizeof(text),
                       "image '%s' is not in the store: the box has the host's own system folders",
                       r->image);
        strings_add(&q->notes, text);
    }
    if (image) {
        (void)snprintf(r->image_id, sizeof(r->image_id), "%s", image->id);
        add_labels(r, image);
    }
    if (!r->workdir)
        strings_set(&r->workdir, image && image->workdir[0] ? image->workdir : "/");
    if (!r->user && image && image->user[0])
        strings_set(&r->user, image->user);
    if (!r->network)
        strings_set(&r->network, "bridge");
    note_differences(q);
    return set_limits(q) && rules_ask(r);
}
