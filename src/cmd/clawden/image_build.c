/* SPDX-License-Identifier: Apache-2.0 */
/* clawden image build: becomes the script images/build, which has the recipes beside it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/state.h"
#include "base/usage.h"
#include "cmd/clawden/clawden.h"
#include "image/reference.h"

static const struct recipe {
    const char *name, *image, *help;
} recipes[] = {
    {"sandbox", "openclaw-sandbox:bookworm-slim", "a shell, git, gh, curl, jq, ripgrep, Python"},
    {"sandbox-common", "openclaw-sandbox-common:bookworm-slim",
     "the same, Node, npm, pnpm, Bun, Go, Rust, a C compiler"},
    {"sandbox-browser", "openclaw-sandbox-browser:bookworm-slim", "Chromium, Xvfb, x11vnc, noVNC"},
};
enum { N_RECIPES = sizeof(recipes) / sizeof(*recipes) };

struct request {
    const struct recipe *recipe;
    const char *name, *sources;
    bool keep, verbose, help;
};

static void usage(void)
{
    puts("clawden image build makes an image of Debian packages, without Docker and without root.\n"
         "\n"
         "  clawden image build RECIPE [--name NAME[:TAG]] [--sources FILE] [--keep] [--verbose]\n"
         "\n"
         "Recipes, and what the image is called");
    for (int i = 0; i < N_RECIPES; i++)
        printf("  %-16s %-40s %s\n", recipes[i].name, recipes[i].image, recipes[i].help);
    puts("\n"
         "Options\n"
         "  --name NAME         call it so instead\n"
         "  --sources FILE      get Debian 12 from these repositories (a file for apt's\n"
         "                      sources.list.d, *.sources); default: where this machine gets "
         "Debian\n"
         "  --keep              keep the folder it was made in, also when it fails\n"
         "  --verbose           show what apt and dpkg say\n"
         "\n"
         "Packages come with apt (its proxies and credentials hold), are checked by its keys, kept "
         "in\n"
         "cache/apt of the data folder, and installed in a box without network. Nothing of the "
         "machine\n"
         "is changed. Exit status: 0, 1 it could not be made (nothing is left but packages), 2 "
         "usage,\n"
         "128+n interrupted by signal n.");
}

/* ---- words ---- */

static int set_recipe(struct request *q, const char *word)
{
    if (q->recipe) {
        log_error("image build: one word too many: '%s'", word);
        return -1;
    }
    for (int i = 0; i < N_RECIPES; i++)
        if (strcmp(word, recipes[i].name) == 0)
            q->recipe = &recipes[i];
    if (!q->recipe) {
        log_error("image build: unknown recipe '%s': see 'clawden image build --help'", word);
        return -1;
    }
    return 0;
}

static int check_name(const char *name)
{
    struct reference ref;
    struct error err;

    if (reference_parse(name, &ref, &err) < 0) {
        log_error("image build: --name '%s': %s", name, err.msg);
        return -1;
    }
    if (ref.digest[0]) {
        log_error("image build: --name '%s': a name cannot have a digest", name);
        return -1;
    }
    return 0;
}

/* "--option VALUE" and "--option=VALUE"; NULL if the word is another option. */
static const char *value_of(const char *option, int argc, char **argv, int *i)
{
    size_t n = strlen(option);

    if (strncmp(argv[*i], option, n) != 0 || (argv[*i][n] && argv[*i][n] != '='))
        return NULL;
    if (argv[*i][n])
        return argv[*i] + n + 1;
    return *i + 1 < argc ? argv[++*i] : "";
}

static int parse(struct request *q, int argc, char **argv)
{
    *q = (struct request){0};
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value;

        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            q->help = true;
            return 0;
        }
        if (strcmp(word, "--keep") == 0) {
            q->keep = true;
        } else if (strcmp(word, "--verbose") == 0) {
            q->verbose = true;
        } else if ((value = value_of("--name", argc, argv, &i))) {
            q->name = value;
            if (check_name(value) < 0)
                return -1;
        } else if ((value = value_of("--sources", argc, argv, &i))) {
            q->sources = value;
            if (access(value, R_OK) < 0) {
                log_error("image build: --sources '%s': %s", value, strerror(errno));
                return -1;
            }
        } else if (word[0] == '-') {
            (void)usage_unknown("clawden image build", word);
            return -1;
        } else if (set_recipe(q, word) < 0) {
            return -1;
        }
    }
    if (!q->recipe) {
        log_error("image build: which recipe? See 'clawden image build --help'");
        return -1;
    }
    return 0;
}

/* ---- the script ---- */

/* It stands in libexec, in a build folder and when installed. */
static int start(const struct request *q, const char *data)
{
    char self[PATH_MAX], script[PATH_MAX + 64];
    const char *argv[16];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;
    int k = 0;

    self[n > 0 ? n : 0] = 0;
    slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    (void)snprintf(script, sizeof(script), "%s/../libexec/clawden/images/build", self);
    argv[k++] = script;
    argv[k++] = "--bin";
    argv[k++] = self;
    argv[k++] = "--data";
    argv[k++] = data;
    if (q->name) {
        argv[k++] = "--name";
        argv[k++] = q->name;
    }
    if (q->sources) {
        argv[k++] = "--sources";
        argv[k++] = q->sources;
    }
    if (q->keep)
        argv[k++] = "--keep";
    if (q->verbose)
        argv[k++] = "--verbose";
    argv[k++] = q->recipe->name;
    argv[k] = NULL;
    (void)execv(script, (char **)argv);
    log_error("image build: start '%s': %s; it comes with clawden: install it again", script,
              strerror(errno));
    return 1;
}

int cmd_image_build(int argc, char **argv)
{
    char data[LIMIT_PATH], real[PATH_MAX];
    struct request q;
    struct error err;
    int fd;

    if (parse(&q, argc, argv) < 0)
        return 2;
    if (q.help) {
        usage();
        return 0;
    }
    fd = state_open_data(&err); /* made if it is not there */
    if (fd < 0 || state_data_path(data, sizeof(data), &err) < 0) {
        log_error("image build: %s", err.msg);
        return 1;
    }
    (void)close(fd);
    if (!realpath(data, real)) {
        log_error("image build: '%s': %s", data, strerror(errno));
        return 1;
    }
    if (strpbrk(real, "\"\\\n;")) { /* apt's configuration could not hold it */
        log_error("image build: the data folder '%s' has a quote, backslash, semicolon or line "
                  "break in its name: set CLAWDEN_DATA_DIR to another",
                  real);
        return 1;
    }
    return start(&q, real);
}
