/* SPDX-License-Identifier: Apache-2.0 */
/* `clawden gateway` and `clawden mcp`: the program beside us does it; and how clients are told. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/helper.h"
#include "base/log.h"
#include "cmd/clawden/clawden.h"

static int become(int argc, char **argv, const char *first)
{
    autofree char **words = calloc((size_t)argc + 2, sizeof(*words));
    char path[4096];
    int n = 0;

    if (!words || !helper_find("clawden-gateway", path, sizeof(path))) {
        log_error("clawden-gateway is not beside this program: install both");
        return 127;
    }
    words[n++] = (char *)"clawden-gateway";
    if (first)
        words[n++] = (char *)first;
    for (int i = 1; i < argc; i++)
        words[n++] = argv[i];
    (void)execv(path, words);
    log_error("execute '%s': %s", path, strerror(errno));
    return 126;
}

int cmd_gateway(int argc, char **argv)
{
    return become(argc, argv, NULL);
}

/* ---- mcp ---- */

static const char mcp_help[] =
    "clawden mcp [--agent ID] [--session KEY]\n"
    "\n"
    "Speaks the Model Context Protocol on standard input and output: the tools run in the box of "
    "the\n"
    "session (agent:main:mcp), as the configuration says. MCP clients start it by themselves:\n"
    "\n"
    "  clawden mcp install claude|codex|cursor     prints what to put into their configuration";

static void print_json_servers(const char *path)
{
    printf("{\n  \"mcpServers\": {\n    \"clawden\": {\n      \"command\": \"%s\",\n"
           "      \"args\": [\"mcp\"]\n    }\n  }\n}\n",
           path);
}

static int install(const char *client)
{
    char path[4096];

    if (!helper_find("clawden", path, sizeof(path)))
        (void)snprintf(path, sizeof(path), "clawden");
    if (client && strcmp(client, "claude") == 0) {
        printf("# run this:\nclaude mcp add clawden -- %s mcp\n\n# or put this into .mcp.json:\n",
               path);
        print_json_servers(path);
    } else if (client && strcmp(client, "codex") == 0) {
        printf("# put this into ~/.codex/config.toml:\n[mcp_servers.clawden]\ncommand = \"%s\"\n"
               "args = [\"mcp\"]\n",
               path);
    } else if (client && strcmp(client, "cursor") == 0) {
        puts("// put this into ~/.cursor/mcp.json:");
        print_json_servers(path);
    } else {
        log_error(client ? "mcp install: '%s' is no client that is known: write claude, codex or "
                           "cursor"
                         : "mcp install: for which client? Write claude, codex or cursor",
                  client);
        return 2;
    }
    return 0;
}

int cmd_mcp(int argc, char **argv)
{
    bool installs = argc > 1 && strcmp(argv[1], "install") == 0;
    const char *word = installs && argc > 2 ? argv[2] : argc > 1 ? argv[1] : "";

    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        puts(mcp_help);
        return 0;
    }
    if (installs)
        return install(argc > 2 ? argv[2] : NULL);
    return become(argc, argv, "--stdio");
}
