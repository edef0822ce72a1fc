/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cmd/docker/docker.h"
#include "cmd/docker/flags.h"
#include "sandbox/sandbox.h"

/* "9222" or "9222/tcp". */
static bool is_asked(const struct box_port *p, const char *want)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "%u/%s", p->port, p->protocol);
    return strcmp(want, name) == 0 ||
           (strncmp(want, name, strlen(want)) == 0 && strcmp(name + strlen(want), "/tcp") == 0);
}

static int print_ports(const struct box_record *r, const struct box_state *s, const char *want)
{
    int n = 0;

    for (size_t i = 0; i < r->n_ports && i < LIMIT_PUBLISHED; i++) {
        const struct box_port *p = &r->ports[i];
        char at[64];

        if (!s->published[i] || (want && !is_asked(p, want)))
            continue;
        describe_published(p, s->published[i], at, sizeof(at));
        if (!want)
            printf("%u/%s -> ", p->port, p->protocol);
        printf("%s\n", at);
        n++;
    }
    return n;
}

/* Which host port leads to a port of the box. */
int cmd_port(int argc, char **argv)
{
    struct flags f = {
        .verb = "port", .usage = "CONTAINER [PRIVATE_PORT[/PROTO]]", .argc = argc, .argv = argv};
    autoptr(box_record) r = NULL;
    struct box_state s = {0};
    struct error err;
    const char *want;

    if (!flags_read(&f, 1, 2, NULL, NULL))
        return f.status;
    r = say_find(f.words[0]);
    if (!r)
        return 1;
    if (sandbox_state(r, &s, &err) < 0)
        return say_daemon("%s", err.msg);
    want = f.n_words > 1 ? f.words[1] : NULL;
    if (print_ports(r, &s, want) || !want)
        return 0;
    (void)fprintf(stderr, "Error: No public port '%s%s' published for %s\n", want,
                  strchr(want, '/') ? "" : "/tcp", f.words[0]);
    return 1;
}
