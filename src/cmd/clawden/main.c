/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/usage.h"
#include "cmd/clawden/clawden.h"
#include "version.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} verbs[] = {
    {"doctor", cmd_doctor,
     "what this machine can do for this user, what is missing, and how to mend it"},
    {"image", cmd_image, "root file systems for boxes: import, pull, build, list, inspect, rm"},
    {"docker", cmd_docker, "the drop-in docker: boxes that stay, by docker's words"},
    {"openclaw", cmd_openclaw, "put OpenClaw's tools into boxes: setup, and its undoing"},
    {"ps", cmd_ps, "the boxes of this user"},
    {"prune", cmd_prune, "remove boxes that are idle or old"},
    {"sandbox", cmd_sandbox,
     "the boxes of agents' sessions: explain, exec, start, list, recreate, rm, network, prune"},
    {"why", cmd_why,
     "may this command or tool run, and where: the rule, the reason, what changes it"},
    {"what-if", cmd_what_if, "the same question, if a setting were different"},
    {"config", cmd_config, "the settings: check, show with sources, schema"},
    {"gateway", cmd_gateway, "serve tools to agents over HTTP, WebSocket and MCP"},
    {"mcp", cmd_mcp, "the same over standard input and output; install prints a client's settings"},
    {"token", cmd_token, "who may call the gateway: create, list, rotate, revoke"},
    {"approve", cmd_approve, "calls that wait for a person's yes: list them, allow or refuse"},
    {"outside", cmd_outside, "from within a box: a command in the box beside it"},
    {"audit", cmd_audit, "what ran: the record, followed live or verified"},
};
enum { N_VERBS = sizeof(verbs) / sizeof(*verbs) };

static void usage(void)
{
    puts("clawden: sandboxes for AI agents' tools, on one Linux machine, without a daemon and "
         "without root.\n");
    for (int i = 0; i < N_VERBS; i++)
        printf("  clawden %-10s %s\n", verbs[i].name, verbs[i].help);
    puts("\n'clawden VERB --help' says more. To run a command in a box: clawden-sandbox exec -- "
         "command");
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "--help";

    (void)signal(SIGCHLD, SIG_DFL); /* inherited as ignored, it would lose us every exit status */
    log_init("clawden");
    if (strcmp(verb, "--help") == 0 || strcmp(verb, "help") == 0 || strcmp(verb, "-h") == 0) {
        usage();
        return argc > 1 ? 0 : 2;
    }
    if (strcmp(verb, "--version") == 0) {
        puts("clawden " CLAWDEN_VERSION);
        return 0;
    }
    for (int i = 0; i < N_VERBS; i++)
        if (strcmp(verb, verbs[i].name) == 0)
            return verbs[i].run(argc - 1, argv + 1);
    return usage_unknown_verb("clawden", verb, verbs, N_VERBS, sizeof(*verbs));
}
