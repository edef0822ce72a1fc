/* SPDX-License-Identifier: Apache-2.0 */
/* clawden image: what is in the store. Getting more is the work of clawden-pull, which we exec. */
#include "image/image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/path.h"
#include "base/units.h"
#include "base/usage.h"
#include "cmd/clawden/clawden.h"

static void usage(void)
{
    puts("clawden image keeps the root file systems that boxes can run on.\n"
         "\n"
         "  clawden image import SOURCE [--name NAME]   a folder, a tar, an OCI layout or a saved "
         "image\n"
         "  clawden image pull REGISTRY/NAME[:TAG]      from a registry, over HTTPS\n"
         "  clawden image build RECIPE                  from Debian packages, without Docker: see "
         "its --help\n"
         "  clawden image list [--json]                 those that are here, newest first\n"
         "  clawden image inspect IMAGE [--json]        one of them: user, environment, layers, "
         "root\n"
         "  clawden image rm IMAGE... [--all]           take a name away; the image goes with its "
         "last name\n"
         "\n"
         "IMAGE is a name (debian, debian:12, debian@sha256:...), an id, or its first 12 digits "
         "or more.\n"
         "'clawden image import --help' tells the options of import and pull.\n"
         "\n"
         "Examples\n"
         "  clawden image import ./rootfs --name tools\n"
         "  clawden image import image.tar.zst --name tools:2\n"
         "  clawden image pull registry.example.org/team/tools:2 --name tools\n"
         "  clawden image inspect tools --json\n"
         "\n"
         "Images stand in images/ of ~/.clawden (or CLAWDEN_DATA_DIR); those in /var/lib/clawden "
         "are the machine's\n"
         "and only read. Exit status: 0, 1 it could not be done, 2 usage, 3 there is no such "
         "image.");
}

/* An image's words may hold anything: a terminal never sees a control byte. */
static void print_text(const char *s)
{
    for (; *s; s++)
        putchar((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s);
}

static int fail(const struct error *err)
{
    log_error("%s", err->msg);
    return err->code == ERR_NOT_FOUND ? 3 : err->code == ERR_INVALID ? 2 : 1;
}

/* ---- JSON ---- */

static void put_labels(struct buf *b, const struct image *m)
{
    buf_json_key(b, "labels");
    buf_puts(b, "{");
    for (size_t i = 0; i < m->n_labels; i++) {
        buf_puts(b, i ? "," : "");
        buf_json_string(b, m->labels[i].name, strlen(m->labels[i].name));
        buf_puts(b, ":");
        buf_json_string(b, m->labels[i].value, strlen(m->labels[i].value));
    }
    buf_puts(b, "}");
}

static void put_layers(struct buf *b, const struct image *m)
{
    buf_json_key(b, "layers");
    buf_puts(b, "[");
    for (size_t i = 0; i < m->n_layers; i++) {
        const struct image_layer *l = &m->layers[i];

        buf_printf(b, "%s{\"digest\":\"sha256:%s\",\"diff_id\":\"sha256:%s\"", i ? "," : "",
                   l->digest, l->diff_id);
        buf_json_num(b, "size", (long long)l->size);
        buf_json_bool(b, "stored", l->stored);
        buf_puts(b, "}");
    }
    buf_puts(b, "]");
}

/* The short form of a list, and with `root` the whole of one image. */
static void put_image(struct buf *b, const struct image *m, const char *root)
{
    buf_puts(b, "{");
    buf_json_str(b, "id", m->id);
    buf_json_str(b, "name", m->name);
    buf_json_strings(b, "names", m->names, SIZE_MAX);
    buf_json_num(b, "size", (long long)m->size);
    buf_json_num(b, "created_usec", m->created_usec);
    buf_json_num(b, "imported_usec", m->imported_usec);
    buf_json_bool(b, "read_only", m->read_only);
    if (root) {
        buf_json_str(b, "root", root);
        buf_json_str(b, "architecture", m->architecture);
        if (m->manifest[0]) {
            buf_json_key(b, "manifest");
            buf_printf(b, "\"sha256:%s\"", m->manifest);
        }
        buf_json_str(b, "user", m->user);
        buf_json_num(b, "uid", m->uid);
        buf_json_num(b, "gid", m->gid);
        buf_json_str(b, "workdir", m->workdir);
        buf_json_strings(b, "env", m->env, SIZE_MAX);
        buf_json_strings(b, "entrypoint", m->entrypoint, SIZE_MAX);
        buf_json_strings(b, "cmd", m->cmd, SIZE_MAX);
        buf_json_strings(b, "ports", m->ports, SIZE_MAX);
        put_labels(b, m);
        put_layers(b, m);
        buf_json_num(b, "entries", (long long)m->entries);
    }
    buf_puts(b, "}");
}

static int print_json(const struct buf *b)
{
    if (b->failed) {
        log_error("the answer is too large");
        return 1;
    }
    printf("%s\n", b->data);
    return 0;
}

/* ---- list ---- */

static void print_age(int64_t usec)
{
    static const struct {
        int64_t sec;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
    int64_t age = (int64_t)time(NULL) - usec / 1000000;

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (age >= units[i].sec || units[i].sec == 1) {
            printf("%lld%s ago", (long long)(age < 0 ? 0 : age / units[i].sec), units[i].name);
            return;
        }
}

static void print_row(const struct image *m, const char *name)
{
    char size[24];

    printf("%-40s  %.12s  %8s  ", name, m->id, units_format_size(m->size, size, sizeof(size)));
    print_age(m->imported_usec);
    puts(m->read_only ? "  (the machine's)" : "");
}

/* A row for every tag; names with a digest are in 'inspect'. */
static void print_rows(const struct image *m)
{
    size_t i = 0;

    for (; m->names[i] && !strchr(m->names[i], '@'); i++)
        print_row(m, m->names[i]);
    if (i == 0)
        print_row(m, "-");
}

static int list(int argc, char **argv)
{
    bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
    struct image **images;
    struct error err;
    autobuf b;
    size_t n;
    int r = 0;

    if (argc > 1 && !json)
        return usage_unknown("clawden image list", argv[1]);
    if (image_list(&images, &n, &err) < 0)
        return fail(&err);
    buf_init(&b, LIMIT_IMAGE_LIST * 1024u);
    if (!json && n)
        printf("%-40s  %-12s  %8s  %s\n", "NAME", "ID", "SIZE", "CAME");
    buf_puts(&b, "[");
    for (size_t i = 0; i < n; i++) {
        buf_puts(&b, i ? "," : "");
        put_image(&b, images[i], NULL);
        if (!json)
            print_rows(images[i]);
    }
    buf_puts(&b, "]");
    if (json)
        r = print_json(&b);
    else if (n == 0)
        puts("no images yet: 'clawden image import' and 'clawden image pull' get some");
    image_list_free(images, n);
    return r;
}

/* ---- inspect ---- */

static void print_list(const char *key, char *const *words)
{
    for (; *words; words++) {
        printf("%-12s ", key);
        print_text(*words);
        putchar('\n');
    }
}

static void print_image(const struct image *m, const char *root)
{
    char size[24];

    printf("%-12s %s\n", "id", m->id);
    print_list("name", m->names);
    printf("%-12s %s, %llu entries\n", "size", units_format_size(m->size, size, sizeof(size)),
           (unsigned long long)m->entries);
    printf("%-12s ", "came");
    print_age(m->imported_usec);
    printf("\n%-12s linux/", "platform");
    print_text(m->architecture);
    printf("\n%-12s ", "user");
    print_text(m->user[0] ? m->user : "root");
    printf(" (%u:%u)\n%-12s ", m->uid, m->gid, "workdir");
    print_text(m->workdir);
    putchar('\n');
    print_list("entrypoint", m->entrypoint);
    print_list("cmd", m->cmd);
    print_list("env", m->env);
    print_list("port", m->ports);
    for (size_t i = 0; i < m->n_labels; i++) {
        printf("%-12s ", "label");
        print_text(m->labels[i].name);
        putchar('=');
        print_text(m->labels[i].value);
        putchar('\n');
    }
    for (size_t i = 0; i < m->n_layers; i++)
        printf("%-12s sha256:%s\n", "layer", m->layers[i].digest);
    printf("%-12s %s\n", "root", root);
}

static int inspect(int argc, char **argv)
{
    autoptr(image) image = NULL;
    const char *ref = NULL;
    char root[LIMIT_PATH];
    bool json = false, bad = false;
    struct error err;
    autobuf b;

    buf_init(&b, 2 * LIMIT_IMAGE_RECORD);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (!ref && argv[i][0] != '-')
            ref = argv[i];
        else
            bad = true;
    }
    if (!ref || bad) {
        log_error("image inspect: one image, please; see 'clawden image --help'");
        return 2;
    }
    if (image_find(ref, &image, &err) < 0)
        return fail(&err);
    if (path_of_fd(image->root_fd, root, sizeof(root)) < 0)
        root[0] = 0;
    if (!json) {
        print_image(image, root);
        return 0;
    }
    put_image(&b, image, root);
    return print_json(&b);
}

/* ---- rm ---- */

static int rm(int argc, char **argv)
{
    bool all = false;
    int n = 0, status = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--all") == 0) {
            all = true;
        } else if (argv[i][0] == '-') {
            return usage_unknown("clawden image rm", argv[i]);
        } else {
            n++;
        }
    }
    if (n == 0) {
        log_error("image rm: which image? See 'clawden image --help'");
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        struct error err;
        bool removed;

        if (argv[i][0] == '-')
            continue;
        if (image_remove(argv[i], all, &removed, &err) < 0)
            status = fail(&err);
        else
            printf("%s %s\n", removed ? "removed" : "took away the name", argv[i]);
    }
    return status;
}

/* ---- import and pull ---- */

/* The program beside this one, wherever that is. */
static int get(int argc, char **argv)
{
    char path[LIMIT_PATH], *slash;
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("clawden-pull"));

    (void)argc;
    if (n > 0) {
        path[n] = 0;
        slash = strrchr(path, '/');
        (void)snprintf(slash + 1, sizeof(path) - (size_t)(slash + 1 - path), "clawden-pull");
        execv(path, argv - 1); /* argv[-1] becomes its argv[0]: "image" */
    }
    log_error("start clawden-pull, which should be beside clawden: %s", strerror(errno));
    return 1;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} verbs[] = {{"import", get}, {"pull", get},       {"build", cmd_image_build},
             {"list", list},  {"ls", list},        {"rm", rm},
             {"remove", rm},  {"inspect", inspect}};

int cmd_image(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "--help";

    if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0) {
        usage();
        return argc > 1 ? 0 : 2;
    }
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
        if (strcmp(verb, verbs[i].name) != 0)
            continue;
        if (argc > 2 && strcmp(argv[2], "--help") == 0 && verbs[i].run != get &&
            verbs[i].run != cmd_image_build) {
            usage();
            return 0;
        }
        return verbs[i].run(argc - 1, argv + 1);
    }
    return usage_unknown_verb("clawden image", verb, verbs, sizeof(verbs) / sizeof(*verbs),
                              sizeof(*verbs));
}
