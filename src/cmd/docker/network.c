/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks by name. `none` and `bridge` are always there; others are files in <data>/networks.
 * The names are kept for clients that want one to exist: a box reaches the internet by the relay,
 * whatever its network is called, and never another box.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "base/state.h"
#include "cmd/docker/docker.h"
#include "cmd/docker/flags.h"
#include "sandbox/values.h"

static int open_networks(struct error *err)
{
    autoclose int data = state_open_data(err);
    int fd;

    if (data < 0)
        return data;
    if (mkdirat(data, "networks", 0700) < 0 && errno != EEXIST)
        return error_sys(err, -errno, "make the folder of networks");
    fd = openat(data, "networks", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? error_sys(err, -errno, "open the folder of networks") : fd;
}

static bool is_builtin(const char *name)
{
    return strcmp(name, "none") == 0 || strcmp(name, "bridge") == 0;
}

static bool exists(int dir, const char *name)
{
    return is_builtin(name) ||
           (values_is_name(name) && faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
}

/* The id is made from the name: the same for every program, kept nowhere. */
static void put_network(struct buf *b, const char *name)
{
    char id[SHA256_HEX];

    sha256_hex(name, strlen(name), id);
    buf_puts(b, "{");
    buf_json_str(b, "Name", name);
    buf_json_str(b, "Id", id);
    buf_json_str(b, "ID", id);
    buf_json_str(b, "Driver", strcmp(name, "none") == 0 ? "null" : "bridge");
    buf_json_str(b, "Scope", "local");
    buf_json_bool(b, "Internal", false);
    buf_json_key(b, "Containers");
    buf_puts(b, "{}");
    buf_json_key(b, "Labels");
    buf_puts(b, "{}");
    buf_json_str(b, "ClawDen", "a name only: boxes on it do not reach each other");
    buf_puts(b, "}");
}

/* ---- create ---- */

enum { N_DRIVER, N_FORMAT, N_QUIET, N_NO_TRUNC, N_OTHER };

struct options {
    const char *driver, *format;
    bool quiet;
};

static int on_flag(void *arg, const struct flags *f)
{
    struct options *o = arg;

    if (f->flag->id == N_DRIVER)
        o->driver = f->value;
    else if (f->flag->id == N_FORMAT)
        o->format = f->value;
    else if (f->flag->id == N_QUIET)
        o->quiet = f->on;
    return 0;
}

static int network_create(int argc, char **argv)
{
    static const struct flag rows[] = {{"driver", 'd', N_DRIVER, "bridge", "bridge"},
                                       {"internal", 0, N_OTHER, NULL, NULL},
                                       {"label", 0, N_OTHER, "KEY=VALUE", NULL},
                                       {"attachable", 0, N_OTHER, NULL, NULL}};
    struct flags f = {.verb = "network create",
                      .usage = "NETWORK",
                      .rows = rows,
                      .n_rows = 4,
                      .argc = argc,
                      .argv = argv};
    struct options o = {.driver = "bridge"};
    autoclose int dir = -1, fd = -1;
    char id[SHA256_HEX];
    struct error err;

    if (!flags_read(&f, 1, 1, on_flag, &o))
        return f.status;
    if (strcmp(o.driver, "bridge") != 0)
        return say_daemon("network driver '%s' is not supported by ClawDen: write bridge",
                          o.driver);
    if (!values_is_name(f.words[0]) || strlen(f.words[0]) > 128)
        return say_daemon("invalid network name: %s", f.words[0]);
    dir = open_networks(&err);
    if (dir < 0)
        return say_daemon("%s", err.msg);
    if (is_builtin(f.words[0]))
        return say_daemon("operation is not permitted on predefined %s network", f.words[0]);
    fd = openat(dir, f.words[0], O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return say_daemon("network with name %s already exists", f.words[0]);
    if (fd < 0)
        return say_daemon("record the network '%s': %s", f.words[0], strerror(errno));
    sha256_hex(f.words[0], strlen(f.words[0]), id);
    puts(id);
    say_note("network '%s' is a name only: boxes on it do not reach each other", f.words[0]);
    return 0;
}

/* ---- inspect ---- */

static int network_inspect(int argc, char **argv)
{
    static const struct flag rows[] = {{"format", 'f', N_FORMAT, "TEMPLATE", "print this instead"},
                                       {"verbose", 'v', N_OTHER, NULL, NULL}};
    struct flags f = {.verb = "network inspect",
                      .usage = "NETWORK [NETWORK...]",
                      .rows = rows,
                      .n_rows = 2,
                      .argc = argc,
                      .argv = argv};
    struct options o = {0};
    autoclose int dir = -1;
    const char *missing = NULL;
    struct error err;
    autobuf all, out;
    int status = 0;

    buf_init(&all, LIMIT_DOCKER_TEXT);
    buf_init(&out, LIMIT_DOCKER_TEXT);
    if (!flags_read(&f, 1, -1, on_flag, &o))
        return f.status;
    dir = open_networks(&err);
    if (dir < 0)
        return say_daemon("%s", err.msg);
    buf_puts(&all, "[");
    for (char **w = f.words; *w && !missing && !status; w++) {
        if (!exists(dir, *w)) {
            missing = *w;
        } else if (o.format && strcmp(o.format, "json") != 0) {
            autobuf one;

            buf_init(&one, LIMIT_SMALL_FILE);
            put_network(&one, *w);
            status = show_template(o.format, &one);
        } else {
            buf_puts(&all, all.len > 1 ? "," : "");
            put_network(&all, *w);
        }
    }
    buf_puts(&all, "]");
    if (!o.format || strcmp(o.format, "json") == 0) {
        show_indented(&out, all.data, all.len);
        puts(out.failed ? "[]" : out.data);
    } else if (missing && missing == f.words[0]) {
        puts(""); /* docker's empty answer ends its line too */
    }
    return missing ? say_daemon("network %s not found", missing) : status;
}

/* ---- ls, rm ---- */

static char *make_row(const char *name)
{
    char id[SHA256_HEX];
    autobuf b;

    buf_init(&b, LIMIT_SMALL_FILE);
    sha256_hex(name, strlen(name), id);
    id[12] = 0;
    buf_puts(&b, "{");
    buf_json_str(&b, "ID", id);
    buf_json_str(&b, "Name", name);
    buf_json_str(&b, "Driver", strcmp(name, "none") == 0 ? "null" : "bridge");
    buf_json_str(&b, "Scope", "local");
    buf_puts(&b, "}");
    return b.failed ? NULL : TAKE_PTR(b.data);
}

static size_t list_names(int dir, char *lines[LIMIT_DOCKER_NETWORKS])
{
    int fd = fcntl(dir, F_DUPFD_CLOEXEC, 3);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    size_t n = 0;

    lines[n++] = make_row("bridge");
    lines[n++] = make_row("none");
    while (d && n < LIMIT_DOCKER_NETWORKS && (e = readdir(d)))
        if (values_is_name(e->d_name))
            lines[n++] = make_row(e->d_name);
    if (d)
        (void)closedir(d);
    return n;
}

static int network_ls(int argc, char **argv)
{
    static const struct flag rows[] = {
        {"format", 0, N_FORMAT, "TEMPLATE", "table, json, a template"},
        {"quiet", 'q', N_QUIET, NULL, "only ids"},
        {"no-trunc", 0, N_NO_TRUNC, NULL, NULL}};
    static const char columns[] =
        "{\"ID\":\"NETWORK ID\",\"Name\":\"NAME\",\"Driver\":\"DRIVER\",\"Scope\":\"SCOPE\"}";
    struct flags f = {.verb = "network ls", .rows = rows, .n_rows = 3, .argc = argc, .argv = argv};
    char *lines[LIMIT_DOCKER_NETWORKS];
    struct options o = {0};
    autoclose int dir = -1;
    struct error err;
    size_t n;
    int status;

    if (!flags_read(&f, 0, 0, on_flag, &o))
        return f.status;
    dir = open_networks(&err);
    if (dir < 0)
        return say_daemon("%s", err.msg);
    n = list_names(dir, lines);
    status = show_rows(o.format, "{{.ID}}\t{{.Name}}\t{{.Driver}}\t{{.Scope}}", columns, lines, n,
                       o.quiet);
    for (size_t i = 0; i < n; i++)
        free(lines[i]);
    return status;
}

static int network_rm(int argc, char **argv)
{
    static const struct flag rows[] = {{"force", 'f', N_OTHER, NULL, NULL}};
    struct flags f = {.verb = "network rm",
                      .usage = "NETWORK [NETWORK...]",
                      .rows = rows,
                      .n_rows = 1,
                      .argc = argc,
                      .argv = argv};
    autoclose int dir = -1;
    struct error err;
    int status = 0;

    if (!flags_read(&f, 1, -1, NULL, NULL))
        return f.status;
    dir = open_networks(&err);
    if (dir < 0)
        return say_daemon("%s", err.msg);
    for (char **w = f.words; *w; w++) {
        if (is_builtin(*w))
            status = say_daemon("%s is a pre-defined network and cannot be removed", *w);
        else if (!values_is_name(*w) || unlinkat(dir, *w, 0) < 0)
            status = say_daemon("network %s not found", *w);
        else
            puts(*w);
    }
    return status;
}

int cmd_network(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } verbs[] = {{"inspect", network_inspect}, {"create", network_create}, {"ls", network_ls},
                 {"list", network_ls},         {"rm", network_rm},         {"remove", network_rm}};

    for (size_t i = 0; argc > 0 && i < sizeof(verbs) / sizeof(*verbs); i++)
        if (strcmp(argv[0], verbs[i].name) == 0)
            return verbs[i].run(argc - 1, argv + 1);
    if (argc > 0 && strcmp(argv[0], "--help") != 0) {
        (void)fprintf(stderr,
                      "docker: unknown command: docker network %s\nSee 'docker network --help'.\n",
                      argv[0]);
        return 1;
    }
    puts("Usage:  docker network inspect|create|ls|rm\n\n"
         "Names only: a box reaches the public internet, whatever its network is called (none: "
         "nothing;\nallowlist: what 'clawden sandbox network' allows), and never another box.");
    return 0;
}
