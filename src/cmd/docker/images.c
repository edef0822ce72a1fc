/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "cmd/docker/docker.h"
#include "cmd/docker/flags.h"
#include "config/config.h"
#include "image/image.h"
#include "sandbox/sandbox.h"

#define SERVED_NOTE "not in the store: served from the host's own system folders"

/* The client's default image is there on every machine: the host's own programs take its place. */
static bool is_served(const char *ref)
{
    static const char *const before[] = {"", "docker.io/", "docker.io/library/"};

    for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++) {
        size_t n = strlen(before[i]);

        if (strncmp(ref, before[i], n) == 0 &&
            strcmp(ref + n, config_text(CONFIG_BOX_IMAGE, NULL)) == 0)
            return true;
    }
    return false;
}

int images_find(const char *ref, struct image **ret, bool *ret_host, struct error *err)
{
    int r = image_find(ref, ret, err);

    *ret_host = r < 0 && err->code == ERR_NOT_FOUND && is_served(ref);
    return *ret_host ? 0 : r;
}

/* ---- as JSON ---- */

static void put_config(struct buf *b, const struct image *image)
{
    buf_json_key(b, "Config");
    buf_puts(b, "{");
    buf_json_str(b, "User", image->user);
    show_strings(b, "Env", image->env);
    show_strings(b, "Cmd", image->cmd);
    show_strings(b, "Entrypoint", image->entrypoint);
    buf_json_str(b, "WorkingDir", image->workdir);
    buf_json_key(b, "Labels");
    buf_puts(b, "{");
    for (size_t i = 0; i < image->n_labels; i++)
        buf_json_str(b, image->labels[i].name, image->labels[i].value);
    buf_puts(b, "}");
    buf_json_key(b, "ExposedPorts");
    buf_puts(b, image->ports[0] ? "{" : "null");
    for (size_t i = 0; image->ports[i]; i++) {
        buf_json_key(b, image->ports[i]);
        buf_puts(b, "{}");
    }
    buf_puts(b, image->ports[0] ? "}}" : "}");
}

/* What no image of ours has, in docker's types. */
static void put_never(struct buf *b)
{
    buf_json_key(b, "RepoDigests");
    buf_puts(b, "[]");
    buf_json_str(b, "Parent", "");
    buf_json_str(b, "Author", "");
}

static void put_image(struct buf *b, const struct image *image)
{
    char text[128];

    buf_puts(b, "{");
    (void)snprintf(text, sizeof(text), "sha256:%s", image->id);
    buf_json_str(b, "Id", text);
    show_strings(b, "RepoTags", image->names);
    put_never(b);
    buf_json_str(b, "Comment", "");
    buf_json_str(b, "Created", say_time(image->created_usec, text, sizeof(text)));
    buf_json_str(b, "Architecture", image->architecture);
    buf_json_str(b, "Os", "linux");
    buf_json_num(b, "Size", (long long)image->size);
    put_config(b, image);
    buf_json_key(b, "RootFS");
    buf_puts(b, "{");
    buf_json_str(b, "Type", "layers");
    buf_json_key(b, "Layers");
    buf_puts(b, "[");
    for (size_t i = 0; i < image->n_layers; i++)
        buf_printf(b, "%s\"sha256:%s\"", i ? "," : "", image->layers[i].diff_id);
    buf_puts(b, "]}}");
}

static void put_served(struct buf *b)
{
    char *const tags[] = {(char *)config_text(CONFIG_BOX_IMAGE, NULL), NULL};

    buf_puts(b, "{");
    buf_json_str(b, "Id", "");
    show_strings(b, "RepoTags", tags);
    put_never(b);
    buf_json_str(b, "Comment", SERVED_NOTE);
    buf_json_str(b, "Os", "linux");
    buf_json_num(b, "Size", 0);
    buf_json_key(b, "Config");
    buf_puts(b, "{");
    show_strings(b, "Env", NULL);
    show_strings(b, "Cmd", NULL);
    show_strings(b, "Entrypoint", NULL);
    buf_json_str(b, "WorkingDir", "/");
    buf_json_key(b, "Labels");
    buf_puts(b, "{");
    buf_json_str(b, "clawden.root", "host");
    buf_puts(b, "}}}");
}

int images_describe(struct buf *b, const char *ref, struct error *err)
{
    autoptr(image) image = NULL;
    bool host = false;
    int r = images_find(ref, &image, &host, err);

    if (r < 0)
        return r;
    if (host) {
        put_served(b);
        say_note("image '%s' is %s", ref, SERVED_NOTE);
    } else {
        put_image(b, image);
    }
    return 0;
}

size_t images_count(void)
{
    struct image **list = NULL;
    struct error err;
    size_t n = 0;

    if (image_list(&list, &n, &err) < 0)
        return 0;
    image_list_free(list, n);
    return n;
}

/* ---- ls ---- */

enum { L_QUIET, L_NO_TRUNC, L_FORMAT, L_ALL, L_FILTER };

static const struct flag list_rows[] = {
    {"quiet", 'q', L_QUIET, NULL, "only ids"},
    {"no-trunc", 0, L_NO_TRUNC, NULL, "whole ids"},
    {"format", 0, L_FORMAT, "TEMPLATE", "table, json or a template: .ID .Repository .Tag .Size"},
    {"all", 'a', L_ALL, NULL, NULL},
};

struct list_options {
    bool quiet, no_trunc;
    const char *format;
};

static int on_list_flag(void *arg, const struct flags *f)
{
    struct list_options *o = arg;

    if (f->flag->id == L_QUIET)
        o->quiet = f->on;
    else if (f->flag->id == L_NO_TRUNC)
        o->no_trunc = f->on;
    else if (f->flag->id == L_FORMAT)
        o->format = f->value;
    return 0;
}

/* One row per name, as docker does; `name` may be NULL. */
static char *make_row(const struct image *image, const char *name, const struct list_options *o)
{
    const char *slash = name ? strrchr(name, '/') : NULL,
               *colon = name ? strchr(slash ? slash : name, ':') : NULL;
    char text[128], size[32];
    struct timespec now;
    autobuf b;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    buf_init(&b, LIMIT_SMALL_FILE);
    buf_puts(&b, "{");
    (void)snprintf(text, sizeof(text), "%s%.*s", o->no_trunc ? "sha256:" : "",
                   o->no_trunc ? 64 : 12, image->id);
    buf_json_str(&b, "ID", text);
    buf_json_key(&b, "Repository");
    if (name)
        buf_json_string(&b, name, colon ? (size_t)(colon - name) : strlen(name));
    else
        buf_puts(&b, "\"<none>\"");
    buf_json_str(&b, "Tag", colon ? colon + 1 : "<none>");
    buf_json_str(&b, "Size", say_size(image->size, 1000, size, sizeof(size)));
    buf_json_str(&b, "CreatedAt", say_date(image->created_usec, text, sizeof(text)));
    (void)say_age(now.tv_sec * 1000000LL - image->created_usec, text, sizeof(text) - 8);
    (void)snprintf(text + strlen(text), 8, " ago");
    buf_json_str(&b, "CreatedSince", image->created_usec ? text : "N/A");
    buf_puts(&b, "}");
    return b.failed ? NULL : TAKE_PTR(b.data);
}

static void add_row(char ***rows, size_t *n, char *row)
{
    if (!row)
        return;
    *rows = realloc(*rows, (*n + 1) * sizeof(**rows));
    if (!*rows)
        abort();
    (*rows)[(*n)++] = row;
}

int cmd_images(int argc, char **argv)
{
    static const char columns[] =
        "{\"ID\":\"IMAGE ID\",\"Repository\":\"REPOSITORY\",\"Tag\":\"TAG\","
        "\"Size\":\"SIZE\",\"CreatedAt\":\"CREATED AT\","
        "\"CreatedSince\":\"CREATED\"}";
    struct flags f = {.verb = "images",
                      .usage = "[NAME]",
                      .rows = list_rows,
                      .n_rows = sizeof(list_rows) / sizeof(*list_rows),
                      .argc = argc,
                      .argv = argv};
    struct list_options o = {0};
    struct image **list = NULL;
    struct error err;
    char **rows = NULL;
    size_t n = 0, n_rows = 0;
    int status;

    if (!flags_read(&f, 0, 1, on_list_flag, &o))
        return f.status;
    if (image_list(&list, &n, &err) < 0)
        return say_daemon("%s", err.msg);
    for (size_t i = 0; i < n; i++) {
        if (!list[i]->names[0] && !f.n_words)
            add_row(&rows, &n_rows, make_row(list[i], NULL, &o));
        for (size_t k = 0; list[i]->names[k]; k++)
            if (!f.n_words || strncmp(list[i]->names[k], f.words[0], strlen(f.words[0])) == 0)
                add_row(&rows, &n_rows, make_row(list[i], list[i]->names[k], &o));
    }
    status = show_rows(o.format, "{{.Repository}}\t{{.Tag}}\t{{.ID}}\t{{.CreatedSince}}\t{{.Size}}",
                       columns, rows, n_rows, o.quiet);
    for (size_t i = 0; i < n_rows; i++)
        free(rows[i]);
    free(rows);
    image_list_free(list, n);
    return status;
}

/* ---- rm, pull ---- */

static int on_force(void *arg, const struct flags *f)
{
    if (f->flag->letter == 'f')
        *(bool *)arg = f->on;
    return 0;
}

/* The box that needs the image when `ref` is its last name; its short id, or false. */
static bool is_used(const char *ref, char image_id[13], char box_id[13])
{
    autoptr(image) image = NULL;
    struct box_record **list = NULL;
    struct error none;
    bool used = false;

    if (image_find(ref, &image, &none) < 0 || (image->names[0] && image->names[1]) ||
        sandbox_list(&list, &none) < 0)
        return false;
    for (size_t i = 0; list[i] && !used; i++) {
        used = strcmp(list[i]->image_id, image->id) == 0;
        (void)snprintf(box_id, 13, "%.12s", list[i]->id);
    }
    (void)snprintf(image_id, 13, "%.12s", image->id);
    sandbox_list_free(list);
    return used;
}

int cmd_rmi(int argc, char **argv)
{
    static const struct flag rows[] = {{"force", 'f', 0, NULL, "all names of an id"},
                                       {"no-prune", 0, 1, NULL, NULL}};
    struct flags f = {.verb = "image rm",
                      .usage = "IMAGE [IMAGE...]",
                      .rows = rows,
                      .n_rows = 2,
                      .argc = argc,
                      .argv = argv};
    bool force = false, removed;
    int status = 0;

    if (!flags_read(&f, 1, -1, on_force, &force))
        return f.status;
    for (char **w = f.words; *w; w++) {
        char image_id[13], box_id[13];
        struct error err;

        if (!force && is_used(*w, image_id, box_id)) {
            status = say_daemon("conflict: unable to remove repository reference \"%s\" (must "
                                "force) - container %s is using its referenced image %s",
                                *w, box_id, image_id);
            continue;
        }
        if (image_remove(*w, force, &removed, &err) >= 0)
            printf("%s: %s\n", removed ? "Deleted" : "Untagged", *w);
        else if (err.code == ERR_NOT_FOUND)
            status = say_daemon("No such image: %s", *w);
        else
            status = say_daemon("%s", err.msg);
    }
    return status;
}

/* clawden-pull beside us, or in the bin folder that our libexec belongs to. */
static void exec_pull(char *const *argv)
{
    static const char *const places[] = {"", "../../../bin/"};
    char self[PATH_MAX], path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    if (n <= 0)
        return;
    self[n] = 0;
    slash = strrchr(self, '/');
    if (!slash)
        return;
    slash[1] = 0;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        (void)snprintf(path, sizeof(path), "%s%sclawden-pull", self, places[i]);
        (void)execv(path, argv);
    }
}

int cmd_pull(int argc, char **argv)
{
    static const struct flag rows[] = {{"quiet", 'q', 0, NULL, "only the result"},
                                       {"all-tags", 'a', 1, NULL, NULL},
                                       {"platform", 0, 2, "NAME", NULL},
                                       {"disable-content-trust", 0, 3, NULL, NULL}};
    struct flags f = {
        .verb = "pull", .usage = "NAME", .rows = rows, .n_rows = 4, .argc = argc, .argv = argv};
    char *words[] = {(char *)"clawden-pull", (char *)"pull", NULL, NULL};

    if (!flags_read(&f, 1, 1, NULL, NULL))
        return f.status;
    words[2] = f.words[0];
    (void)fflush(stdout);
    exec_pull(words);
    return say_daemon("clawden-pull cannot be started: %s; it stands beside the other programs of "
                      "ClawDen",
                      strerror(errno));
}
