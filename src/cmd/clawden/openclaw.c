/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clawden openclaw setup: puts the drop-in `docker` where an unmodified OpenClaw finds it.
 *
 * The trap: at its start OpenClaw puts the folder of its node, /usr/bin and /bin before everything
 * else in PATH. So the drop-in has to be a link in one of those folders, or the client has to be
 * told to leave PATH alone. Nothing that is there is ever replaced; what was made is written down,
 * and --undo takes exactly that away.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/state.h"
#include "base/usage.h"
#include "cmd/clawden/clawden.h"
#include "image/image.h"

#define IMAGE  "openclaw-sandbox:bookworm-slim"
#define RECORD "openclaw-setup" /* in the data folder: the link that was made */

static void usage(void)
{
    puts(
        "clawden openclaw setup [--build] [--dir DIR] [--dry-run]   run OpenClaw's tools in boxes\n"
        "clawden openclaw setup --undo                              take the link away again\n"
        "\n"
        "  --build      make the image " IMAGE " first (a few minutes)\n"
        "  --dir DIR    put the link `docker` into this folder\n"
        "  --dry-run    say what would be done\n"
        "\n"
        "OpenClaw runs its tools through a program named docker. This puts ClawDen's drop-in where "
        "it\n"
        "looks first: beside its node, else in /usr/bin. An existing docker is never replaced: "
        "then the\n"
        "two variables that lead past it are printed. docs/openclaw.md has the whole story.");
}

/* ---- finding things ---- */

static bool find_drop_in(char *path, size_t size)
{
    char self[PATH_MAX], full[PATH_MAX + 64], *slash;
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *real;

    self[n > 0 ? n : 0] = 0;
    slash = strrchr(self, '/');
    if (!slash)
        return false;
    *slash = 0;
    (void)snprintf(full, sizeof(full), "%s/../libexec/clawden/bin/docker", self);
    if (access(full, X_OK) < 0)
        return false;
    /* Of the folder, not of the file: its name has to stay `docker`. */
    (void)snprintf(full, sizeof(full), "%s/../libexec/clawden/bin", self);
    real = realpath(full, NULL);
    if (!real)
        return false;
    (void)snprintf(path, size, "%s/docker", real);
    free(real);
    return true;
}

/* The first file of this name in PATH, links resolved. */
static bool find_in_path(const char *name, char *ret, size_t size)
{
    const char *path = getenv("PATH");

    for (const char *p = path ? path : "/usr/bin:/bin"; *p;) {
        size_t n = strcspn(p, ":");
        char full[PATH_MAX];
        char *real;

        (void)snprintf(full, sizeof(full), "%.*s/%s", (int)n, p, name);
        if (n && access(full, X_OK) == 0 && (real = realpath(full, NULL))) {
            (void)snprintf(ret, size, "%s", real);
            free(real);
            return true;
        }
        p += n + (p[n] == ':');
    }
    return false;
}

static bool is_ours(const char *link, const char *drop_in)
{
    char target[PATH_MAX];
    ssize_t n = readlink(link, target, sizeof(target) - 1);

    if (n <= 0)
        return false;
    target[n] = 0;
    return strcmp(target, drop_in) == 0;
}

/* ---- what was done ---- */

static void remember(const char *link)
{
    struct error err;
    autoclose int data = state_open_data(&err), fd = -1;

    if (data >= 0)
        fd = openat(data, RECORD, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fd_write_full(fd, link, strlen(link)) < 0)
        log_warn("the place of the link '%s' could not be written down: --undo will not find it",
                 link);
}

static int undo(const char *drop_in)
{
    struct error err;
    autoclose int data = state_open_data(&err);
    char link[PATH_MAX];

    if (data < 0) {
        log_error("%s", err.msg);
        return 1;
    }
    if (fd_read_text(data, RECORD, link, sizeof(link)) <= 0) {
        puts("Nothing to undo: no link was made.");
        return 0;
    }
    if (!is_ours(link, drop_in)) {
        log_error("'%s' is not the link to '%s' that was made: left alone", link, drop_in);
        return 1;
    }
    if (unlink(link) < 0) {
        log_error("remove '%s': %s", link, strerror(errno));
        return 1;
    }
    (void)unlinkat(data, RECORD, 0);
    printf("Removed '%s'. Boxes stay until 'openclaw sandbox recreate --all' or 'clawden docker "
           "rm'.\n",
           link);
    return 0;
}

/* ---- the steps ---- */

struct setup {
    char drop_in[PATH_MAX], link[PATH_MAX];
    const char *dir;
    bool build, dry_run;
};

static int run_self(char *const *words)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        (void)execv("/proc/self/exe", words);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int check_engine(const struct setup *s)
{
    char *const probe[] = {(char *)"clawden",     (char *)"docker",
                           (char *)"run",         (char *)"--rm",
                           (char *)"--network",   (char *)"none",
                           (char *)"--read-only", (char *)IMAGE,
                           (char *)"true",        NULL};
    int status;

    if (s->dry_run)
        return 0;
    status = run_self(probe);
    printf("%-10s %s\n", "boxes",
           status == 0 ? "work here" : "do NOT work here: run 'clawden doctor'");
    return status;
}

static int check_image(const struct setup *s)
{
    char *const build[] = {(char *)"clawden", (char *)"image", (char *)"build", (char *)"sandbox",
                           NULL};
    autoptr(image) image = NULL;
    struct error err;

    if (image_find(IMAGE, &image, &err) < 0 && s->build && !s->dry_run) {
        int status = run_self(build);

        if (status)
            return status;
    }
    image_free(image);
    image = NULL;
    if (image_find(IMAGE, &image, &err) >= 0)
        printf("%-10s %s, %llu MB\n", "image", IMAGE, (unsigned long long)(image->size >> 20));
    else
        printf("%-10s none: tools get this machine's own system folders, read-only ('clawden image "
               "build sandbox' makes one)\n",
               "image");
    return 0;
}

/* Where the client looks first: 1 found, 0 nowhere to put it. */
static int choose_place(struct setup *s)
{
    char node[PATH_MAX], *slash;
    const char *dirs[3] = {s->dir, NULL, NULL};
    size_t n = s->dir ? 1 : 0;

    if (!s->dir && find_in_path("node", node, sizeof(node)) && (slash = strrchr(node, '/'))) {
        *slash = 0;
        dirs[n++] = node;
    }
    if (!s->dir)
        dirs[n++] = "/usr/bin";
    for (size_t i = 0; i < n; i++) {
        struct stat st;

        (void)snprintf(s->link, sizeof(s->link), "%s/docker", dirs[i]);
        if (is_ours(s->link, s->drop_in))
            return 1;
        if (lstat(s->link, &st) == 0) {
            printf("%-10s '%s' is there already and stays\n", "docker", s->link);
            /* What stands in front of the later folders hides them. */
            return 0;
        }
        if (access(dirs[i], W_OK) == 0)
            return 1;
    }
    return 0;
}

static void print_variables(const struct setup *s)
{
    char folder[PATH_MAX];

    (void)snprintf(folder, sizeof(folder), "%s", s->drop_in);
    *strrchr(folder, '/') = 0;
    printf(
        "%-10s no folder that the client looks into first can be written. Start it with these "
        "two:\n\n"
        "    OPENCLAW_PATH_BOOTSTRAPPED=1 PATH=%s:$PATH openclaw gateway\n\n"
        "(as a service: put both into its environment). The first keeps the client from putting\n"
        "/usr/bin in front of PATH.\n",
        "docker", folder);
}

static int place_link(struct setup *s)
{
    if (!choose_place(s)) {
        print_variables(s);
        return 0;
    }
    if (is_ours(s->link, s->drop_in)) {
        printf("%-10s '%s' leads to the drop-in already\n", "docker", s->link);
        return 0;
    }
    if (s->dry_run) {
        printf("%-10s would make the link '%s' -> '%s'\n", "docker", s->link, s->drop_in);
        return 0;
    }
    if (symlink(s->drop_in, s->link) < 0) {
        log_error("make the link '%s': %s; choose another folder with --dir", s->link,
                  strerror(errno));
        return 1;
    }
    remember(s->link);
    printf("%-10s made '%s' -> '%s' ('clawden openclaw setup --undo' removes it)\n", "docker",
           s->link, s->drop_in);
    return 0;
}

static int setup(struct setup *s)
{
    char client[PATH_MAX];
    int status;

    if (s->dir && access(s->dir, W_OK | X_OK) < 0) {
        log_error("--dir '%s': %s; choose a folder that you may write", s->dir, strerror(errno));
        return 1;
    }
    printf("%-10s %s\n", "client",
           find_in_path("openclaw", client, sizeof(client)) ? client
                                                            : "openclaw is not in PATH (yet)");
    status = check_image(s);
    if (status == 0)
        status = check_engine(s);
    if (status == 0)
        status = place_link(s);
    if (status == 0)
        puts("\nIn ~/.openclaw/openclaw.json: { agents: { defaults: { sandbox: { mode: \"all\" } } "
             "} }\n"
             "Then: openclaw sandbox explain");
    return status;
}

int cmd_openclaw(int argc, char **argv)
{
    struct setup s = {0};
    bool take_back = false;

    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage();
        return argc < 2 ? 2 : 0;
    }
    if (strcmp(argv[1], "setup") != 0)
        return usage_unknown("clawden openclaw", argv[1]);
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--build") == 0) {
            s.build = true;
        } else if (strcmp(argv[i], "--dry-run") == 0) {
            s.dry_run = true;
        } else if (strcmp(argv[i], "--undo") == 0) {
            take_back = true;
        } else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc) {
            s.dir = argv[++i];
        } else if (strcmp(argv[i], "--help") == 0) {
            usage();
            return 0;
        } else {
            return usage_unknown("clawden openclaw setup", argv[i]);
        }
    }
    if (!find_drop_in(s.drop_in, sizeof(s.drop_in))) {
        log_error("the drop-in is missing: libexec/clawden/bin/docker beside this program's bin");
        return 1;
    }
    return take_back ? undo(s.drop_in) : setup(&s);
}
