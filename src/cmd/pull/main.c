/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/units.h"
#include "base/usage.h"
#include "cmd/pull/pull.h"
#include "version.h"

volatile sig_atomic_t interrupted;

static void on_signal(int signo)
{
    interrupted = signo;
}

int check_interrupt(struct error *err)
{
    if (!interrupted)
        return 0;
    return error_set(err, ERR_SYS,
                     "interrupted by signal %d: nothing was kept but what a pull can "
                     "resume",
                     (int)interrupted);
}

static void usage(void)
{
    puts("clawden-pull brings images into the store; 'clawden image import' and 'clawden image "
         "pull' start it.\n"
         "\n"
         "  clawden-pull import SOURCE [--name NAME[:TAG]] [options]\n"
         "      SOURCE is a folder with a root file system, a tar of one (plain, gz, xz, zst, "
         "bz2), an OCI layout\n"
         "      (folder or tar) or an image saved by 'docker save'\n"
         "  clawden-pull pull REGISTRY/NAME[:TAG|@sha256:HEX] [--name NAME[:TAG]] [options]\n"
         "      over HTTPS; plain HTTP only to this machine or with --plain-http. Passwords come "
         "from\n"
         "      $CLAWDEN_REGISTRY_AUTH_FILE or ~/.docker/config.json\n"
         "\n"
         "Options\n"
         "  --name NAME         the name it gets here\n"
         "  --config FILE       import: what the image says of itself (Env, User, Cmd, Labels...) "
         "if the\n"
         "                      source is a plain root; the JSON object 'config' of an OCI config\n"
         "  --drop-layers       do not keep the layers once they are unpacked\n"
         "  --max-size SIZE     refuse what unpacks to more (64g)\n"
         "  --max-entries N     refuse what has more files (4194304)\n"
         "  --timeout TIME      give a registry up that sends nothing for so long (30s)\n"
         "  --plain-http        pull: speak plain HTTP to a registry on another machine\n"
         "  --progress=HOW      auto, plain, json or none\n"
         "  --json              print the result as JSON\n"
         "\n"
         "Prints the image's id. Devices, set-id bits and security attributes are left out. Exit "
         "status: 0, 1 it\n"
         "could not be done (nothing is left behind but what a pull can resume), 2 usage.");
}

/* ---- options ---- */

enum option {
    OPT_NAME,
    OPT_CONFIG,
    OPT_DROP,
    OPT_SIZE,
    OPT_ENTRIES,
    OPT_TIMEOUT,
    OPT_PROGRESS,
    OPT_JSON,
    OPT_PLAIN
};

static const struct {
    const char *name;
    enum option option;
    bool value;
} rows[] = {
    {"--name", OPT_NAME, true},       {"--drop-layers", OPT_DROP, false},
    {"--max-size", OPT_SIZE, true},   {"--max-entries", OPT_ENTRIES, true},
    {"--timeout", OPT_TIMEOUT, true}, {"--progress", OPT_PROGRESS, true},
    {"--json", OPT_JSON, false},      {"--plain-http", OPT_PLAIN, false},
    {"--config", OPT_CONFIG, true},
};

static int set_progress(struct options *o, const char *value)
{
    static const char *const names[] = {"auto", "plain", "json", "none"};

    for (int i = 0; i < 4; i++)
        if (strcmp(value, names[i]) == 0) {
            o->progress = (enum progress_mode)i;
            return 0;
        }
    return -1;
}

static const char *wanted(enum option option)
{
    switch (option) {
    case OPT_NAME:
        return "NAME[:TAG], with a name of a-z0-9 and single . _ - /";
    case OPT_SIZE:
        return "a size like 512m or 8g, at most 64g";
    case OPT_ENTRIES:
        return "a number, at most 4194304";
    case OPT_TIMEOUT:
        return "a time like 30s or 2m";
    case OPT_PROGRESS:
        return "auto, plain, json or none";
    case OPT_CONFIG:
    case OPT_DROP:
    case OPT_JSON:
    case OPT_PLAIN:
        break;
    }
    return "what --help says";
}

static int set_option(struct options *o, enum option option, const char *value)
{
    struct reference ref;
    struct error err;

    switch (option) {
    case OPT_NAME:
        o->name = value;
        if (reference_parse(value, &ref, &err) < 0)
            return -1;
        return ref.digest[0] ? -1 : 0;
    case OPT_CONFIG:
        o->config = value;
        return 0;
    case OPT_DROP:
        o->drop_layers = true;
        return 0;
    case OPT_SIZE:
        return units_parse_size(value, &o->max_bytes) < 0 || o->max_bytes > LIMIT_IMAGE_BYTES ? -1
                                                                                              : 0;
    case OPT_ENTRIES:
        return units_parse_count(value, LIMIT_IMAGE_ENTRIES, &o->max_entries);
    case OPT_TIMEOUT:
        return units_parse_duration(value, &o->idle_usec);
    case OPT_PROGRESS:
        return set_progress(o, value);
    case OPT_JSON:
        o->json = true;
        return 0;
    case OPT_PLAIN:
        o->plain_http = true;
        return 0;
    }
    return -1;
}

/* One word that begins with a dash; its value may be the next. */
static int parse_option(struct options *o, char **argv, int argc, int *i)
{
    const char *word = argv[*i], *eq = strchr(word, '=');
    size_t n = eq ? (size_t)(eq - word) : strlen(word);

    for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
        const char *value = eq ? eq + 1 : NULL;

        if (strlen(rows[k].name) != n || strncmp(rows[k].name, word, n) != 0)
            continue;
        if (rows[k].value && !value && ++*i < argc)
            value = argv[*i];
        if (rows[k].value != (value != NULL)) {
            log_error("%s: %s", rows[k].name, value ? "it takes no value" : "a value is missing");
            return -1;
        }
        if (set_option(o, rows[k].option, value) < 0) {
            log_error("%s '%s': not understood; write %s", rows[k].name, value,
                      wanted(rows[k].option));
            return -1;
        }
        return 0;
    }
    (void)usage_unknown("clawden-pull", word);
    return -1;
}

/* 0, 1 if help was asked for, -1. */
static int parse(struct options *o, int argc, char **argv)
{
    *o = (struct options){
        .max_bytes = LIMIT_IMAGE_BYTES, .max_entries = LIMIT_IMAGE_ENTRIES, .idle_usec = 30000000};
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return 1;
        if (argv[i][0] == '-' && argv[i][1]) {
            if (parse_option(o, argv, argc, &i) < 0)
                return -1;
        } else if (o->what) {
            log_error("one word too many: '%s'", argv[i]);
            return -1;
        } else {
            o->what = argv[i];
        }
    }
    if (!o->what) {
        log_error("%s what? See 'clawden-pull --help'", argv[1]);
        return -1;
    }
    return 0;
}

/* ---- */

static void prepare(void)
{
    struct sigaction a = {.sa_handler = on_signal};

    (void)sigaction(SIGINT, &a, NULL);
    (void)sigaction(SIGTERM, &a, NULL);
    (void)sigaction(SIGHUP, &a, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit then fails with words */
    (void)umask(022); /* folders of an image that its archive does not name are 0755 */
    /* Names in archives are UTF-8: in the C locale libarchive cannot give them to us. */
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        (void)setlocale(LC_CTYPE, "");
    log_init("clawden-pull");
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "--help";
    bool is_import = strcmp(verb, "import") == 0;
    struct options o;
    struct error err;
    int r;

    prepare();
    if (strcmp(verb, "--version") == 0) {
        puts("clawden-pull " CLAWDEN_VERSION);
        return 0;
    }
    if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0) {
        usage();
        return argc > 1 ? 0 : 2;
    }
    if (!is_import && strcmp(verb, "pull") != 0) {
        log_error("unknown verb '%s': see 'clawden-pull --help'", verb);
        return 2;
    }
    r = parse(&o, argc, argv);
    if (r != 0) {
        if (r > 0)
            usage();
        return r > 0 ? 0 : 2;
    }
    if ((is_import ? import(&o, &err) : pull(&o, &err)) < 0) {
        log_error("%s", err.msg);
        return 1;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
