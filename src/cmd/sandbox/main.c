/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cmd/sandbox/sandbox.h"
#include "version.h"

static void usage(void)
{
    puts("clawden-sandbox runs a command that you do not trust in a box of its own.\n"
         "\n"
         "  clawden-sandbox exec [options] -- command [words]   run it\n"
         "  clawden-sandbox explain [options] [--json]          show how the box would be built "
         "here\n"
         "  clawden-sandbox --version | --help\n"
         "\n"
         "The box sees the system's programs read-only, an empty home, its own processes, no "
         "network (but for the\n"
         "hosts you allow), and one folder of yours: the workspace, at its own path and as "
         "/workspace. Nothing else\n"
         "of the machine exists in it. When the command ends, everything it started ends with "
         "it.\n"
         "\n"
         "Examples\n"
         "  clawden-sandbox exec -- python3 script.py\n"
         "  clawden-sandbox exec --timeout 30s --memory 256m --cpu 0.5 -- make test\n"
         "  clawden-sandbox exec --ro --output 1m --json -- sh -c 'grep -rn main .'\n"
         "  clawden-sandbox exec --workspace ~/project --env CI=1 -- npm test\n"
         "  clawden-sandbox exec --allow-network=registry.npmjs.org -- npm install\n"
         "  clawden-sandbox exec --rootfs ./image -- sh\n"
         "\n"
         "Options");
    options_help();
    puts("\n"
         "Exit status: the command's own; 124 time limit, 125 the box could not be made, 126 the "
         "command cannot\n"
         "be executed, 127 it was not found, 137 a limit killed it (stderr names which), 128+n "
         "signal n, 2 usage.\n"
         "Every run is recorded: 'clawden audit'. What this machine can do: 'clawden doctor'.");
}

int main(int argc, char **argv)
{
    struct options o = {.spec = {.workspace_fd = -1, .root_fd = -1}};
    const char *verb = argc > 1 ? argv[1] : "";
    bool explain = strcmp(verb, "explain") == 0;
    int status;

    /* A closed 0, 1 or 2 would otherwise be the number of the next thing that is opened. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", O_RDWR);
    (void)signal(SIGCHLD, SIG_DFL); /* inherited as ignored, it would lose us every exit status */
    log_init("clawden-sandbox");
    if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0 || strcmp(verb, "help") == 0) {
        usage();
        return 0;
    }
    if (strcmp(verb, "--version") == 0) {
        puts("clawden-sandbox " CLAWDEN_VERSION);
        return 0;
    }
    if (!explain && strcmp(verb, "exec") != 0) {
        if (verb[0])
            log_error("unknown verb '%s': use exec or explain; see 'clawden-sandbox --help'", verb);
        else
            log_error("say what to do: 'clawden-sandbox exec -- command', or --help");
        return EXIT_USAGE;
    }
    switch (options_parse(&o, argc - 1, argv + 1)) {
    case 0:
        status = explain ? cmd_explain(&o) : cmd_exec(&o);
        break;
    case 1:
        usage();
        status = 0;
        break;
    case -2:
        status = EXIT_OURS;
        break;
    default:
        status = EXIT_USAGE;
    }
    options_done(&o);
    return status;
}
