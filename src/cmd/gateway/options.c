/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/usage.h"
#include "cmd/gateway/gateway.h"
#include "version.h"

static const char help_text[] =
    "clawden-gateway serves tools to agents over HTTP, WebSocket and MCP: every call is decided "
    "by\n"
    "the configuration, runs in the box of its session, and is recorded. It runs in the "
    "foreground.\n"
    "\n"
    "  clawden-gateway [options]\n"
    "\n"
    "  --listen ADDRESS:PORT   where to listen (127.0.0.1:18789; the next free port if that is "
    "taken\n"
    "                          and nothing is asked for). Anything but loopback needs --tls-cert\n"
    "  --listen unix:PATH      a socket of the file system, 0600\n"
    "  --tls-cert FILE         PEM; read again on SIGHUP\n"
    "  --tls-key FILE\n"
    "  --host NAME             a name that clients call it by, beside localhost\n"
    "  --origin URL            a web page that may call it (https://example.org)\n"
    "  --open-metrics          /metrics needs no token from loopback\n"
    "  --no-link               print no one-use link\n"
    "  --log                   a line of JSON on standard error for each request\n"
    "  --stdio                 MCP on standard input and output instead (as clawden mcp)\n"
    "  --agent ID, --session KEY   whose calls those are (main, agent:main:mcp)\n"
    "  --version, --help\n"
    "\n"
    "Who may call: clawden token create --agent main --session 'agent:main:*'\n"
    "SIGHUP reads settings and certificates again; SIGTERM lets what runs come to its end (10 s).\n"
    "docs/api.md has the calls, with examples.";

struct word {
    const char *name;
    const char **text; /* takes a value */
    const char **list; /* or several, each time one */
    size_t *n, most;
    bool *flag;
};

static int take(const struct word *w, int argc, char **argv, int *i)
{
    const char *value = NULL;

    if (w->flag) {
        *w->flag = true;
        return -1;
    }
    if (*i + 1 < argc)
        value = argv[++*i];
    if (!value || !value[0]) {
        log_error("%s: it wants a value; see clawden-gateway --help", w->name);
        return 2;
    }
    if (w->list && *w->n >= w->most) {
        log_error("%s: at most %zu of them", w->name, w->most);
        return 2;
    }
    if (w->list)
        w->list[(*w->n)++] = value;
    else
        *w->text = value;
    return -1;
}

static int check(const struct options *o)
{
    if (!o->certificate != !o->key)
        log_error("--tls-cert and --tls-key go together: give both");
    else if (!o->stdio && (o->agent || o->session))
        log_error("%s goes with --stdio: over HTTP a token says whose calls they are",
                  o->agent ? "--agent" : "--session");
    else if (o->stdio && (o->n_listen || o->certificate))
        log_error("%s does not go with --stdio: nothing listens then",
                  o->n_listen ? "--listen" : "--tls-cert");
    else
        return -1;
    return 2;
}

int options_read(struct options *o, int argc, char **argv)
{
    const struct word words[] = {
        {"--listen", .list = o->listen, .n = &o->n_listen, .most = LIMIT_FRONT_LISTENERS},
        {"--host", .list = o->hosts, .n = &o->n_hosts, .most = LIMIT_NAMES},
        {"--origin", .list = o->origins, .n = &o->n_origins, .most = LIMIT_NAMES},
        {"--tls-cert", .text = &o->certificate},
        {"--tls-key", .text = &o->key},
        {"--agent", .text = &o->agent},
        {"--session", .text = &o->session},
        {"--open-metrics", .flag = &o->open_metrics},
        {"--stdio", .flag = &o->stdio},
        {"--log", .flag = &o->logs},
        {"--no-link", .flag = &o->no_link},
    };

    for (int i = 1; i < argc; i++) {
        size_t k = 0, n = sizeof(words) / sizeof(*words);
        int r;

        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            puts(help_text);
            return 0;
        }
        if (strcmp(argv[i], "--version") == 0) {
            puts("clawden-gateway " CLAWDEN_VERSION);
            return 0;
        }
        while (k < n && strcmp(argv[i], words[k].name) != 0)
            k++;
        if (k == n)
            return usage_unknown("clawden-gateway", argv[i]);
        r = take(&words[k], argc, argv, &i);
        if (r >= 0)
            return r;
    }
    return check(o);
}
