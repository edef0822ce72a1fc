/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cmd/docker/docker.h"
#include "version.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} verbs[] = {
    {"exec", cmd_exec, "run a command in a running box"},
    {"inspect", cmd_inspect, "everything about boxes and images, as JSON or by template"},
    {"create", cmd_create, "make a box without starting it"},
    {"start", cmd_start, "start boxes; nothing to do where one runs"},
    {"run", cmd_run, "make a box and run its command"},
    {"ps", cmd_ps, "list boxes"},
    {"rm", cmd_rm, "remove boxes; binds stay as they are"},
    {"stop", cmd_stop, "end boxes, with time to finish"},
    {"kill", cmd_kill, "end boxes at once, or send a signal"},
    {"restart", cmd_restart, "stop and start"},
    {"pause", cmd_pause, "freeze boxes"},
    {"unpause", cmd_unpause, "let frozen boxes go on"},
    {"wait", cmd_wait, "wait until boxes end; print their exit codes"},
    {"logs", cmd_logs, "what the main command has written"},
    {"top", cmd_top, "the processes of a box"},
    {"stats", cmd_stats, "what boxes use"},
    {"cp", cmd_cp, "copy files between the host and a box"},
    {"port", cmd_port, "published ports"},
    {"images", cmd_images, "list images"},
    {"pull", cmd_pull, "fetch an image (clawden-pull)"},
    {"rmi", cmd_rmi, "remove images"},
    {"network", cmd_network, "names of networks: inspect, create, ls, rm"},
    {"version", cmd_version, "versions"},
    {"info", cmd_info, "what is here"},
};
enum { N_VERBS = sizeof(verbs) / sizeof(*verbs) };

/* What docker has and this does not, and what to do instead. */
static const struct {
    const char *name, *instead;
} missing[] = {
    {"build", "images are made by 'clawden image build', pulled by 'docker pull' or imported by "
              "'clawden image import'"},
    {"buildx", "images are made by 'clawden image build', pulled by 'docker pull' or imported by "
               "'clawden image import'"},
    {"compose", "start each box with 'docker run' or 'docker create'"},
    {"login", "registries' passwords are read by clawden-pull from its own file"},
    {"logout", "registries' passwords are read by clawden-pull from its own file"},
    {"push", "images are not published from here"},
    {"commit", "a box's root is not an image; keep what matters in a bind"},
    {"save", "images stay in the store: 'docker images'"},
    {"load", "clawden-pull imports saved images"},
    {"import", "clawden-pull imports saved images"},
    {"tag", "clawden-pull names images when it fetches them"},
    {"attach", "'docker logs -f' shows what is written; 'docker exec -it' goes in"},
    {"events", "what ran is in the record: 'clawden audit'"},
    {"rename", "a box keeps its name: remove it and create it again"},
    {"update", "limits are set when a box is created: remove it and create it again"},
    {"diff", "a box's root is not compared with its image"},
    {"export", "'docker cp' copies files out of a box"},
    {"volume", "ClawDen keeps no volumes: bind a folder with -v /host:/box"},
    {"system", "'docker info' and 'clawden doctor' say what is here"},
    {"context", "there is one place for boxes: this user's, on this machine"},
    {"swarm", "boxes run on this machine only"},
    {"service", "boxes run on this machine only"},
    {"node", "boxes run on this machine only"},
    {"search", "images are pulled by name"},
    {"history", "'docker image inspect' shows the layers"},
    {"plugin", "there are no plugins"},
};

static void usage(void)
{
    puts("docker: ClawDen's drop-in. The same words as docker's, but boxes without a daemon and "
         "without\n"
         "root, which see nothing of the host but what is bound into them.\n");
    for (int i = 0; i < N_VERBS; i++)
        printf("  docker %-10s %s\n", verbs[i].name, verbs[i].help);
    puts("  docker image      ls, inspect, rm, pull\n"
         "  docker container  the verbs of boxes, as in 'docker container ls'\n"
         "\n"
         "Examples\n"
         "  docker create --name work -v ~/project:/workspace -w /workspace \\\n"
         "         openclaw-sandbox:bookworm-slim sleep infinity\n"
         "  docker start work && docker exec work make test\n"
         "  docker rm -f work\n"
         "\n"
         "'docker VERB --help' says more. What this machine can do: 'clawden doctor'.");
}

static int say_instead(const char *group, const char *verb)
{
    for (size_t i = 0; i < sizeof(missing) / sizeof(*missing); i++)
        if (strcmp(verb, missing[i].name) == 0) {
            (void)fprintf(stderr, "docker: '%s' is not part of ClawDen's drop-in docker: %s\n",
                          verb, missing[i].instead);
            return 1;
        }
    (void)fprintf(stderr, "docker: unknown command: docker %s%s\nSee 'docker %s--help'.\n", group,
                  verb, group);
    return 1;
}

static int run_verb(const char *group, const char *verb, int argc, char **argv)
{
    for (int i = 0; i < N_VERBS; i++)
        if (strcmp(verb, verbs[i].name) == 0)
            return verbs[i].run(argc, argv);
    return say_instead(group, verb);
}

static int run_image(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } image_verbs[] = {{"inspect", cmd_image_inspect},
                       {"ls", cmd_images},
                       {"list", cmd_images},
                       {"rm", cmd_rmi},
                       {"remove", cmd_rmi},
                       {"pull", cmd_pull}};

    for (size_t i = 0; argc > 0 && i < sizeof(image_verbs) / sizeof(*image_verbs); i++)
        if (strcmp(argv[0], image_verbs[i].name) == 0)
            return image_verbs[i].run(argc - 1, argv + 1);
    if (argc > 0 && strcmp(argv[0], "--help") != 0)
        return say_instead("image ", argv[0]);
    puts("Usage:  docker image inspect|ls|rm|pull");
    return 0;
}

static int run_container(int argc, char **argv)
{
    if (argc == 0 || strcmp(argv[0], "--help") == 0) {
        puts("Usage:  docker container VERB: create, start, exec, inspect, ls, rm, ...");
        return 0;
    }
    if (strcmp(argv[0], "ls") == 0 || strcmp(argv[0], "list") == 0)
        return cmd_ps(argc - 1, argv + 1);
    if (strcmp(argv[0], "inspect") == 0)
        return cmd_container_inspect(argc - 1, argv + 1);
    return run_verb("container ", argv[0], argc - 1, argv + 1);
}

static bool is_among(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

/* --host=VALUE */
static bool begins_with_one(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(list[i]);

        if (strncmp(word, list[i], len) == 0 && word[len] == '=')
            return true;
    }
    return false;
}

/*
 * Flags before the verb say where the daemon is. There is none; -H of a client is no harm. The
 * place of the verb; -1 after a message.
 */
static int skip_global(int argc, char **argv)
{
    static const char *const with_value[] = {"-H",        "--host",      "--context", "-c",
                                             "--config",  "--log-level", "-l",        "--tlscacert",
                                             "--tlscert", "--tlskey"};
    static const char *const alone[] = {"-D", "--debug", "--tls", "--tlsverify"};
    static const char *const verbs_too[] = {"--help", "-h", "--version", "-v"};
    enum { N_VALUE = sizeof(with_value) / sizeof(*with_value) };
    enum { N_ALONE = sizeof(alone) / sizeof(*alone) };
    int i = 1;

    for (; i < argc && argv[i][0] == '-' && !is_among(argv[i], verbs_too, 4); i++) {
        if (is_among(argv[i], with_value, N_VALUE))
            i += i + 1 < argc;
        else if (!is_among(argv[i], alone, N_ALONE) &&
                 !begins_with_one(argv[i], with_value, N_VALUE) &&
                 !begins_with_one(argv[i], alone, N_ALONE)) {
            (void)fprintf(stderr, "unknown flag: %s\nSee 'docker --help'.\n", argv[i]);
            return -1;
        }
    }
    return i;
}

static int dispatch(int argc, char **argv)
{
    int at = skip_global(argc, argv);
    const char *verb = at >= 0 && at < argc ? argv[at] : "help";

    if (at < 0)
        return STATUS_REFUSED;
    argc -= at + 1;
    argv += at + 1;
    if (strcmp(verb, "--version") == 0 || strcmp(verb, "-v") == 0) {
        puts("Docker version " CLAWDEN_VERSION ", ClawDen's drop-in");
        return 0;
    }
    if (strcmp(verb, "help") == 0 && argc > 0)
        return run_verb("", argv[0], 1, (char *[]){(char *)"--help", NULL});
    if (strcmp(verb, "help") == 0 || strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0) {
        usage();
        return 0;
    }
    if (strcmp(verb, "image") == 0)
        return run_image(argc, argv);
    if (strcmp(verb, "container") == 0)
        return run_container(argc, argv);
    return run_verb("", verb, argc, argv);
}

int main(int argc, char **argv)
{
    int status;

    /* A closed 0, 1 or 2 would otherwise be the number of the next thing that is opened. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", O_RDWR);
    (void)signal(SIGCHLD, SIG_DFL); /* inherited as ignored, it would lose us every exit status */
    log_init("docker");
    status = dispatch(argc, argv);
    if (fflush(stdout) != 0 && status == 0)
        status = 1;
    return status;
}
