/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/jtext.h"
#include "base/limits.h"
#include "cmd/docker/docker.h"
#include "cmd/docker/flags.h"
#include "cmd/docker/template.h"
#include "sandbox/sandbox.h"

enum { I_FORMAT, I_TYPE, I_SIZE, I_PLATFORM };

static const struct flag rows[] = {
    {"format", 'f', I_FORMAT, "TEMPLATE", "print this instead of the whole object; json: compact"},
    {"type", 0, I_TYPE, "container|image|network", "what the names are"},
    {"size", 's', I_SIZE, NULL, NULL},
    {"platform", 0, I_PLATFORM, "NAME", NULL},
};

struct options {
    const char *format, *type;
};

static int on_flag(void *arg, const struct flags *f)
{
    struct options *o = arg;

    if (f->flag->id == I_FORMAT)
        o->format = f->value;
    else if (f->flag->id == I_TYPE)
        o->type = f->value;
    return 0;
}

static int describe_container(struct buf *b, const char *ref, struct error *err)
{
    autoptr(box_record) r = NULL;
    struct box_state s = {0};
    int n = sandbox_find(ref, &r, err);

    if (n >= 0)
        n = sandbox_state(r, &s, err);
    if (n >= 0)
        describe_box(b, r, &s);
    return n;
}

static int describe(struct buf *b, const char *ref, const char *type, struct error *err)
{
    int r = -ERR_NOT_FOUND;

    err->code = ERR_NOT_FOUND;
    if (!type || strcmp(type, "container") == 0)
        r = describe_container(b, ref, err);
    if (r < 0 && err->code == ERR_NOT_FOUND && (!type || strcmp(type, "image") == 0))
        r = images_describe(b, ref, err);
    return r;
}

/* Told when everything that is there has been shown. */
static void note_missing(struct buf *told, const char *ref, const char *type,
                         const struct error *err)
{
    if (err->code != ERR_NOT_FOUND)
        buf_printf(told, "Error response from daemon: %s\n", err->msg);
    else if (type && strcmp(type, "image") == 0)
        buf_printf(told, "Error response from daemon: No such image: %s\n", ref);
    else if (type && strcmp(type, "container") == 0)
        buf_printf(told, "Error: No such container: %s\n", ref);
    else
        buf_printf(told, "Error: No such object: %s\n", ref);
}

static int say_missing(const struct buf *told)
{
    (void)fflush(stdout);
    if (told->len)
        (void)fd_write_full(STDERR_FILENO, told->data, told->len);
    return told->len ? 1 : 0;
}

/* A template that is none is found out before any name is looked up, as docker does. */
static int check_template(const char *format)
{
    static const char empty[] = "{}";
    autoptr(jtext_doc) doc = NULL;
    struct error err;
    autobuf out;

    buf_init(&out, LIMIT_TEMPLATE_TEXT);
    if (jtext_parse(empty, 2, &doc, &err) < 0 ||
        template_eval(format, jtext_root(doc), &out, &err) >= 0 || err.code != ERR_INVALID)
        return 0;
    (void)fprintf(stderr, "template parsing error: %s\n", err.msg);
    return STATUS_BAD_TEMPLATE;
}

/* All that are there, then what is not: docker looks every name up. */
static int by_template(const struct options *o, char **words)
{
    bool any = false;
    int status = check_template(o->format);
    autobuf missing;

    buf_init(&missing, LIMIT_DOCKER_TEXT);
    for (; *words && !status; words++) {
        struct error err;
        autobuf b;

        buf_init(&b, LIMIT_DOCKER_TEXT);
        if (describe(&b, *words, o->type, &err) < 0) {
            note_missing(&missing, *words, o->type, &err);
            continue;
        }
        status = show_template(o->format, &b);
        any = true;
    }
    if (status)
        return status;
    if (!any)
        puts(""); /* docker's empty answer ends its line too */
    return say_missing(&missing);
}

static int whole(const struct options *o, char **words)
{
    bool compact = o->format && strcmp(o->format, "json") == 0;
    struct error err;
    autobuf all, out, missing;

    buf_init(&missing, LIMIT_DOCKER_TEXT);
    buf_init(&all, LIMIT_DOCKER_TEXT);
    buf_init(&out, 2 * LIMIT_DOCKER_TEXT);
    buf_puts(&all, "[");
    for (; *words; words++) {
        size_t before = all.len;

        if (all.len > 1)
            buf_puts(&all, ",");
        if (describe(&all, *words, o->type, &err) < 0) {
            note_missing(&missing, *words, o->type, &err);
            all.len = before;
        }
    }
    buf_append(&all, "]", 1);
    if (compact)
        buf_append(&out, all.data, all.len);
    else
        show_indented(&out, all.data, all.len);
    buf_puts(&out, "\n");
    if (all.failed || out.failed)
        return say_daemon("the description is too long");
    (void)fd_write_full(STDOUT_FILENO, out.data, out.len);
    return say_missing(&missing);
}

static int run(struct flags *f, struct options *o)
{
    if (!flags_read(f, 1, -1, on_flag, o))
        return f->status;
    if (o->type && o->type[0] == 0)
        o->type = NULL;
    if (o->type && strcmp(o->type, "container") != 0 && strcmp(o->type, "image") != 0) {
        (void)fprintf(stderr, "\"%s\" is not a valid value for --type\n", o->type);
        return 1;
    }
    if (o->format && o->format[0] && strcmp(o->format, "json") != 0)
        return by_template(o, f->words);
    return whole(o, f->words);
}

int cmd_inspect(int argc, char **argv)
{
    struct flags f = {.verb = "inspect",
                      .usage = "NAME|ID [NAME|ID...]",
                      .rows = rows,
                      .n_rows = sizeof(rows) / sizeof(*rows),
                      .argc = argc,
                      .argv = argv};
    struct options o = {0};

    return run(&f, &o);
}

int cmd_container_inspect(int argc, char **argv)
{
    struct flags f = {.verb = "container inspect",
                      .usage = "CONTAINER [CONTAINER...]",
                      .rows = rows,
                      .n_rows = sizeof(rows) / sizeof(*rows),
                      .argc = argc,
                      .argv = argv};
    struct options o = {.type = "container"};

    return run(&f, &o);
}

int cmd_image_inspect(int argc, char **argv)
{
    struct flags f = {.verb = "image inspect",
                      .usage = "IMAGE [IMAGE...]",
                      .rows = rows,
                      .n_rows = sizeof(rows) / sizeof(*rows),
                      .argc = argc,
                      .argv = argv};
    struct options o = {.type = "image"};

    return run(&f, &o);
}
